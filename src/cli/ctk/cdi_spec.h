/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_spec: CDI specifications from what is known of a host and what was asked for (SPEC ctk-and-cdi 4). Each device is a request of its own, planned as for a container
 * that asks for it alone; what all of them get is planned once. Nothing is looked up here, so that the same values give the same specifications.
 */
#ifndef GRAFT_CLI_CTK_CDI_SPEC_H
#define GRAFT_CLI_CTK_CDI_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/cdi.h"
#include "host/csv.h"
#include "host/csv_facts.h"
#include "host/inventory.h"
#include "plan/cdi_fingerprint.h"
#include "plan/plan.h"
#include "request/request.h"

/* Modes: enum, word, vendor and class of its specifications unless flags say otherwise, what it describes. */
#define CTK_CDI_MODE_LIST(X)                                                                   \
	X(CSV, "csv", "nvidia.com", "gpu", "GPUs of a Tegra board")                            \
	X(GDRCOPY, "gdrcopy", "nvidia.com", "gdrcopy", "the device of GDRCopy")                \
	X(GDS, "gds", "nvidia.com", "gds", "devices of GPUDirect storage")                     \
	X(IMEX, "imex", "nvidia.com", "imex-channel", "IMEX channels")                         \
	X(MANAGEMENT, "management", "management.nvidia.com", "gpu", "all nodes of the driver") \
	X(MOFED, "mofed", "nvidia.com", "mofed", "InfiniBand adapters")                        \
	X(NVML, "nvml", "nvidia.com", "gpu", "GPUs and MIG devices")                           \
	X(NVSWITCH, "nvswitch", "nvidia.com", "nvswitch", "NVSwitches")                        \
	X(WSL, "wsl", "nvidia.com", "gpu", "the GPUs of Windows Subsystem for Linux")

enum ctk_cdi_mode {
#define X(name, word, vendor, class_, help) CTK_CDI_##name,
	CTK_CDI_MODE_LIST(X)
#undef X
	    CTK_CDI_MODES
};
struct ctk_cdi_mode_row {
	const char *word, *vendor, *class_;
};
extern const struct ctk_cdi_mode_row ctk_cdi_modes[CTK_CDI_MODES];

/* What was asked for; all strings are borrowed. */
struct ctk_cdi_wish {
	enum ctk_cdi_mode mode;
	const char *vendor, *class_;
	const char *const *ids; /* devices, as the mode understands them (SPEC 4.6, 4.9, 4.10) */
	size_t n_ids;
	unsigned int namings;    /* bits GRAFT_CDI_NAMING_* */
	uint32_t capabilities;   /* bits GRAFT_CAP_* */
	uint32_t disabled_hooks; /* bits GRAFT_HOOK_* */
	bool chmod;
	bool no_hooks, no_additional_gids, no_all_device;
	bool explicit_libraries, no_daemons, single_csv_device, coherent; /* feature flags */
	const char *hook_path, *ldconfig_path;
	const char *csv_compat_directory; /* of boards with an Orin */
	enum graft_cdi_provenance provenance;
	const char *flags; /* what it says of how it was made: graft_cdi_flags_write() */
};

/* What is known of the host; what a mode does not use may be NULL. */
struct ctk_cdi_host {
	struct graft_inventory *inventory;
	const struct graft_csv_inventory *csv;
	const struct graft_csv_facts *csv_facts; /* NULL = not asked */
	const char *boot_id;
};

struct ctk_cdi_item {
	struct graft_cdi_spec spec;
	const char *infix; /* of its file's name: "", ".coherent", ".noncoherent" */
	bool has_provenance;
};

struct ctk_cdi_specs {
	struct ctk_cdi_item items[3];
	size_t n;
	const char **warnings; /* sentences for a person */
	size_t n_warnings;
	struct graft_plan **plans; /* owned: the specifications point into them */
	size_t n_plans;
};

/* The request of a container that asks for all that the wish allows, without a device. NULL: memory, or an id of a channel that is none. */
struct graft_request *ctk_cdi_request(const struct ctk_cdi_wish *wish, struct graft_error *err);

/*
 * Makes the specifications: one, and with `coherent` one more for each of the two kinds of GPUs that there are. *ret_specs is released by ctk_cdi_specs_done(), after a
 * failure too. -1: GRAFT_NOT_FOUND when the host has no such device, or its node is missing; what graft_cdi_choose() and the planner say.
 */
int ctk_cdi_make(const struct ctk_cdi_wish *wish, const struct ctk_cdi_host *host, struct graft_arena *arena,
		 struct ctk_cdi_specs *ret_specs, struct graft_error *err);
void ctk_cdi_specs_done(struct ctk_cdi_specs *specs);

#endif
