/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_host: reads from a host what the specifications of a mode are made from, and nothing else.
 * NVML is asked only for facts that are needed and that procfs does not contain.
 */
#ifndef GRAFT_START_CDI_HOST_H
#define GRAFT_START_CDI_HOST_H

#include "base/log.h"
#include "host/discover.h"
#include "start/cdi_spec.h"

/* Where to look, as paths of the host. NULL or an empty value selects the usual place. */
struct graft_cdi_places {
	const char *driver_root, *dev_root;
	const char *path; /* the value of $PATH */
	const char *const *library_directories, *const *data_directories;
	size_t n_library_directories, n_data_directories;
	const char *const *csv_files, *const *csv_ignore_patterns;
	size_t n_csv_files, n_csv_ignore_patterns;
};

/*
 * Detects the mode (SPEC ctk-and-cdi 4.1): csv on a Tegra board, wsl, otherwise nvml. A host
 * without any trace of a driver gets one of these too, with a warning. Returns 0, or -1 with the
 * error set.
 */
int graft_cdi_detect_mode(const struct graft_cdi_places *places, const struct graft_log *log,
			  enum graft_cdi_mode *ret_mode, struct graft_error *err);

/*
 * Reads the host. The inventory belongs to *ret_host and must be released with
 * graft_cdi_host_done(), after a failure too; everything else belongs to `arena`. `steps` receives
 * the library's log. Returns 0, or -1 with the error set.
 */
int graft_cdi_read_host(const struct graft_cdi_demand *demand, const struct graft_cdi_places *places,
			struct graft_log *steps, struct graft_arena *arena, struct graft_cdi_host *ret_host,
			struct graft_error *err);
void graft_cdi_host_done(struct graft_cdi_host *host);

#endif
