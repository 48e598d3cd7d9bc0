/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_decision: what the flags of nvidia-ctk cdi generate mean (SPEC ctk-and-cdi 1.5): checked in the order that scripts see, with what the configuration and the host's kind say. */
#ifndef GRAFT_CLI_CTK_CDI_DECISION_H
#define GRAFT_CLI_CTK_CDI_DECISION_H

#include "cli/ctk/cdi_host.h"
#include "cli/ctk/cdi_spec.h"
#include "cli/ctk/ctk.h"
#include "formats/cdi_write.h"

#define CTK_CDI_HOOK_NAME   "nvidia-cdi-hook"
#define CTK_CDI_ORIN_COMPAT "/usr/local/cuda/compat_orin"

/* The flags as they were given. */
struct ctk_cdi_flags {
	struct ctk_base base;
	const char *output, *format, *mode, *dev_root, *driver_root, *hook_path, *ldconfig_path, *vendor, *class_;
	const char *csv_compat_directory, *provenance;
	struct ctk_list config_search_path, namings, library_search_path, csv_files, csv_ignore_patterns;
	struct ctk_list disabled_hooks, enabled_hooks, features, ids, capabilities;
	bool no_all_device, compat32, no_hooks;
};

/* What follows from them. */
struct ctk_cdi_decision {
	struct ctk_cdi_wish wish;
	struct ctk_cdi_places places;
	const char *output; /* ends in .json or .yaml; NULL = standard output */
	enum graft_cdi_format format;
};

/* 0; -1 with the error set; 1 when it was told already. */
int ctk_cdi_decide(struct ctk *ctk, const struct ctk_cdi_flags *given, struct ctk_cdi_decision *ret_decision,
		   struct graft_error *err);

#endif
