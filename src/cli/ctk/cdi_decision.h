/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_decision: turns the flags of nvidia-ctk cdi generate into decisions (SPEC ctk-and-cdi 1.5),
 * together with the configuration and the kind of host. Flags are checked in the order that scripts
 * rely on.
 */
#ifndef GRAFT_CLI_CTK_CDI_DECISION_H
#define GRAFT_CLI_CTK_CDI_DECISION_H

#include "cli/ctk/ctk.h"
#include "formats/cdi/cdi_write.h"
#include "start/cdi_host.h"
#include "start/cdi_spec.h"

#define CTK_CDI_HOOK_NAME   "nvidia-cdi-hook"
#define CTK_CDI_ORIN_COMPAT "/usr/local/cuda/compat_orin"

/* The flags as given. */
struct ctk_cdi_flags {
	struct ctk_base base;
	const char *output, *format, *mode, *dev_root, *driver_root, *hook_path, *ldconfig_path, *vendor, *class_;
	const char *csv_compat_directory, *provenance, *cdi_version;
	struct ctk_list config_search_path, namings, library_search_path, csv_files, csv_ignore_patterns;
	struct ctk_list disabled_hooks, enabled_hooks, features, ids, capabilities;
	bool no_all_device, compat32, no_hooks, late_mounts, leases;
};

/* What follows from them. */
struct ctk_cdi_decision {
	struct graft_cdi_demand demand;
	struct graft_cdi_places places;
	const char *output; /* ends in .json or .yaml; NULL: standard output */
	enum graft_cdi_format format;
	bool leases; /* GPUs by number as well */
	const char
	    *cdi_version; /* the highest version that the spec may need; NULL: what the engines of this host read */
};

/*
 * Evaluates the flags. All strings of *ret_decision are borrowed. Returns 0, or -1 with the error
 * set.
 */
int ctk_cdi_decide(struct ctk *ctk, const struct ctk_cdi_flags *given, struct ctk_cdi_decision *ret_decision,
		   struct graft_error *err);

#endif
