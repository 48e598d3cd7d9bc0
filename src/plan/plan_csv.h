/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_csv: the plan for a container on a Tegra board (SPEC runtime-and-hook 9.3, 9.4), from the
 * board's lists and, if there is a second GPU, from what the driver reports about both. Style OCI.
 * Pure, as the planner is.
 */
#ifndef GRAFT_PLAN_PLAN_CSV_H
#define GRAFT_PLAN_PLAN_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "host/csv.h"
#include "host/inventory.h"
#include "image/inspect.h"
#include "plan/plan.h"
#include "plan/planner.h"

/* Which of the board's GPUs a container gets. */
struct graft_csv_selection {
	bool single;     /* the board has one GPU, to which all nodes of the lists belong */
	bool integrated; /* selected; with `single`, this is the only GPU */
	const struct graft_gpu *integrated_gpu,
	    *discrete_gpu; /* as the driver describes them; NULL = not selected, or not known */
};

/*
 * Selects by the words of a request: "all", an index or a UUID; "none" selects no GPU (SPEC
 * runtime-and-hook Q13). `gpus` is the driver's list. If it has two GPUs, the first must be
 * integrated and the second discrete; otherwise *ret_fallback explains why they are treated as one.
 * `single` ignores the list (nvcdi-feature-flags "disable-multiple-csv-devices"). Returns -1 with
 * GRAFT_UNKNOWN_DEVICE "unsupported device id: ...".
 */
int graft_csv_select(const struct graft_inventory *gpus, bool single, const char *const *words, size_t n_words,
		     struct graft_csv_selection *ret_selection, const char **ret_fallback, struct graft_error *err);

/* Returns whether a GPU is part of the system on chip. */
bool graft_csv_is_integrated(const struct graft_gpu *gpu);

/*
 * Facts of the image and settings of config.toml. `compat` are the image's CUDA compatibility
 * libraries that suit; they come ahead of the board's own.
 */
struct graft_csv_policy {
	uint32_t disabled_hooks; /* bits GRAFT_HOOK_* */
	const struct graft_compat_library *compat;
	size_t n_compat;
	const struct graft_image *image; /* NULL = unknown */
};

/*
 * Makes the plan. Returns -1 with GRAFT_NOT_FOUND if a GPU is selected and the lists name no device
 * node that exists, or the discrete GPU's node is missing, or with GRAFT_NO_MEMORY.
 */
int graft_csv_plan(const struct graft_csv_inventory *csv, const struct graft_csv_selection *selection,
		   const struct graft_csv_policy *policy, struct graft_plan **ret_plan, struct graft_error *err);

#endif
