/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv: the plan for a container on a Tegra board (SPEC runtime-and-hook 9.3, 9.4), from the lists of the board and, where there is a second GPU, from what
 * the driver says of both. Style OCI. Pure, as the planner is.
 */
#ifndef GRAFT_PLAN_CSV_H
#define GRAFT_PLAN_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "host/csv.h"
#include "host/image.h"
#include "host/inventory.h"
#include "plan/plan.h"
#include "plan/planner.h"

/* Which of the board's GPUs a container gets. */
struct graft_csv_selection {
	bool single;     /* the board has one GPU, and all nodes of the lists are its */
	bool integrated; /* with `single`: the only one */
	const struct graft_gpu *integrated_gpu,
	    *discrete_gpu; /* what the driver says of them; NULL = not selected, or not known */
};

/*
 * Selects by the words of a request: "all", an index, a UUID; "none" alone is no GPU (Q13). `gpus` is the driver's list: with two, the integrated one must
 * be the first and the other one discrete, else *ret_fallback says why they count as one. `single` leaves the list out (nvcdi-feature-flags
 * "disable-multiple-csv-devices"). -1: GRAFT_UNKNOWN_DEVICE "unsupported device id: ...".
 */
int graft_csv_select(const struct graft_inventory *gpus, bool single, const char *const *words, size_t n_words,
		     struct graft_csv_selection *ret_selection, const char **ret_fallback, struct graft_error *err);

/* Whether a GPU is part of the system on chip. */
bool graft_csv_is_integrated(const struct graft_gpu *gpu);

/* What comes of the image and of config.toml. `compat`: the image's CUDA compatibility libraries that suit, in front of the board's own. */
struct graft_csv_policy {
	uint32_t disabled_hooks; /* bits GRAFT_HOOK_* */
	const struct graft_compat_library *compat;
	size_t n_compat;
	const struct graft_image *image; /* NULL = unknown */
};

/* Makes the plan. -1: GRAFT_NOT_FOUND when a GPU is given and the lists name no device node that is there; GRAFT_NO_MEMORY. */
int graft_csv_plan(const struct graft_csv_inventory *csv, const struct graft_csv_selection *selection,
		   const struct graft_csv_policy *policy, struct graft_plan **ret_plan, struct graft_error *err);

#endif
