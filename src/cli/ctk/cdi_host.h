/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_host: reads of a host what specifications of a mode are made from, and nothing else: NVML is asked only for what procfs does not say and names need. */
#ifndef GRAFT_CLI_CTK_CDI_HOST_H
#define GRAFT_CLI_CTK_CDI_HOST_H

#include "cli/ctk/cdi_spec.h"
#include "cli/ctk/ctk.h"
#include "host/discover.h"

/* Where to look; what is NULL or empty is where it usually is. Paths are the host's. */
struct ctk_cdi_places {
	const char *driver_root, *dev_root;
	const char *path; /* $PATH */
	const char *const *library_directories, *const *data_directories;
	size_t n_library_directories, n_data_directories;
	const char *const *csv_files, *const *csv_ignore_patterns;
	size_t n_csv_files, n_csv_ignore_patterns;
};

/* SPEC 4.1: csv for a Tegra board, wsl, else nvml; a host on which nothing of a driver was found counts as one of these, with a warning. */
int ctk_cdi_detect_mode(const struct ctk *ctk, const struct ctk_cdi_places *places, enum ctk_cdi_mode *ret_mode,
			struct graft_error *err);

/* Reads. The inventory is *ret_host's own and released by ctk_cdi_host_done(), after a failure too; all else is the arena's of `ctk`. */
int ctk_cdi_read_host(struct ctk *ctk, const struct ctk_cdi_wish *wish, const struct ctk_cdi_places *places,
		      struct ctk_cdi_host *ret_host, struct graft_error *err);
void ctk_cdi_host_done(struct ctk_cdi_host *host);

#endif
