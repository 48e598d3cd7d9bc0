/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_spec: makes CDI specifications from the facts of a host and the user's choices (SPEC
 * ctk-and-cdi 4). Each device is planned as for a container that requests it alone; what all
 * devices share is planned once. Does no I/O: the same input gives the same specifications.
 */
#ifndef GRAFT_START_CDI_SPEC_H
#define GRAFT_START_CDI_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/cdi/cdi.h"
#include "host/csv.h"
#include "host/inventory.h"
#include "plan/cdi_fingerprint.h"
#include "plan/plan.h"
#include "request/request.h"

/*
 * Modes: enum, value of --mode, default vendor and class of its specifications, what it describes.
 */
#define GRAFT_CDI_MODE_LIST(X)                                                                 \
	X(CSV, "csv", "nvidia.com", "gpu", "GPUs of a Tegra board")                            \
	X(GDRCOPY, "gdrcopy", "nvidia.com", "gdrcopy", "the device of GDRCopy")                \
	X(GDS, "gds", "nvidia.com", "gds", "devices of GPUDirect storage")                     \
	X(IMEX, "imex", "nvidia.com", "imex-channel", "IMEX channels")                         \
	X(MANAGEMENT, "management", "management.nvidia.com", "gpu", "all nodes of the driver") \
	X(MOFED, "mofed", "nvidia.com", "mofed", "InfiniBand adapters")                        \
	X(NVML, "nvml", "nvidia.com", "gpu", "GPUs and MIG devices")                           \
	X(NVSWITCH, "nvswitch", "nvidia.com", "nvswitch", "NVSwitches")                        \
	X(WSL, "wsl", "nvidia.com", "gpu", "the GPUs of Windows Subsystem for Linux")

/* Class, and part of the file name, of the specification of leases. */
#define GRAFT_CDI_LEASE       "lease"
#define GRAFT_CDI_LEASE_INFIX "." GRAFT_CDI_LEASE

enum graft_cdi_mode {
#define X(name, word, vendor, class_, help) GRAFT_CDI_MODE_##name,
	GRAFT_CDI_MODE_LIST(X)
#undef X
	    GRAFT_CDI_MODES
};
struct graft_cdi_mode_row {
	const char *word, *vendor, *class_;
};
extern const struct graft_cdi_mode_row graft_cdi_modes[GRAFT_CDI_MODES];

/* What was asked for; all strings are borrowed. */
struct graft_cdi_demand {
	enum graft_cdi_mode mode;
	const char *vendor, *class_;
	const char *const *ids; /* devices, in the terms of the mode (SPEC ctk-and-cdi 4.6, 4.9, 4.10) */
	size_t n_ids;
	unsigned int namings;    /* bits GRAFT_CDI_NAMING_* */
	uint32_t capabilities;   /* bits GRAFT_CAP_* */
	uint32_t disabled_hooks; /* bits GRAFT_HOOK_* */
	bool chmod;
	bool no_hooks, late_mounts, no_additional_gids, no_all_device;
	bool explicit_libraries, no_daemons, single_csv_device, coherent; /* feature flags */
	const char *hook_path, *ldconfig_path;
	const char *lease_hook_path;      /* nvidia-container-runtime-hook; only for graft_cdi_add_leases() */
	const char *config;               /* the configuration file that this hook is to read; NULL = the usual one */
	const char *csv_compat_directory; /* for boards with an Orin */
	enum graft_cdi_provenance provenance;
	const char *flags; /* the options to record in the specification, from graft_cdi_flags_write() */
};

/* Facts of the host. Those that a mode does not use may be NULL. */
struct graft_cdi_host {
	struct graft_arena *arena; /* of everything but the inventory; borrowed */
	struct graft_inventory *inventory;
	const struct graft_csv_inventory *csv;
	const struct graft_csv_facts *csv_facts; /* NULL: NVML was not asked */
	const char *boot_id;
};

struct graft_cdi_item {
	struct graft_cdi_spec spec;
	const char *infix; /* part of the file name: "", ".coherent", ".noncoherent", ".lease" */
	bool has_provenance;
};

struct graft_cdi_specs {
	struct graft_cdi_item items[4];
	size_t n;
	const char **warnings; /* sentences for the user */
	size_t n_warnings;
	struct graft_plan **plans; /* owned; the specifications point into them */
	size_t n_plans;
};

/* Sets what a feature flag stands for (SPEC ctk-and-cdi 1.5). Returns false if it is not known. */
bool graft_cdi_set_feature(struct graft_cdi_demand *demand, const char *word);

/*
 * Returns the request of a container that asks for everything in `demand` except GPUs; the caller
 * releases it with graft_request_free(). NULL: out of memory, or an id is not an IMEX channel.
 */
struct graft_request *graft_cdi_request(const struct graft_cdi_demand *demand, struct graft_error *err);

/*
 * Makes the specifications: one, and with `coherent` one more for each kind of GPU, coherent and
 * not, that exists. *ret_specs must be released with graft_cdi_specs_done(), after a failure too.
 * Returns 0, or -1: GRAFT_NOT_FOUND if the host has no such device, or its node is missing;
 * otherwise the errors of graft_cdi_choose() and the planner.
 */
int graft_cdi_make(const struct graft_cdi_demand *demand, const struct graft_cdi_host *host, struct graft_arena *arena,
		   struct graft_cdi_specs *ret_specs, struct graft_error *err);
/*
 * Adds the specification for GPUs by number, nvidia.com/lease=2. Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_cdi_add_leases(const struct graft_cdi_demand *demand, const struct graft_cdi_host *host,
			 struct graft_arena *arena, struct graft_cdi_specs *specs, struct graft_error *err);
void graft_cdi_specs_done(struct graft_cdi_specs *specs);

#endif
