/* SPDX-License-Identifier: Apache-2.0 */
/* difference: compares edits by their records. */
#include "plan/plan.h"

static bool is_same_edit(const struct graft_edit *a, const struct graft_edit *b)
{
	struct graft_edit left = *a, right = *b;

	if (a->kind != b->kind)
		return false;
	left.why = right.why = "";
	left.rule = right.rule = "";
	return graft_record_equal(&graft_edit_record, &left, &right, NULL, 0);
}

static bool plan_has_edit(const struct graft_plan *plan, const struct graft_edit *edit)
{
	for (size_t i = 0; plan && i < plan->n_edits; i++)
		if (is_same_edit(&plan->edits[i], edit))
			return true;
	return false;
}

int graft_plan_difference(const struct graft_plan *before, const struct graft_plan *after, struct graft_plan **ret_plan,
			  struct graft_error *err)
{
	struct graft_plan *plan = graft_plan_new();

	if (!plan)
		return graft_fail_memory(err);
	plan->driver_version = after->driver_version;
	plan->simulated = after->simulated;
	plan->edits = graft_arena_list(plan->arena, after->n_edits, sizeof(*plan->edits));
	for (size_t i = 0; plan->edits && i < after->n_edits; i++)
		if (!plan_has_edit(before, &after->edits[i]))
			plan->edits[plan->n_edits++] = after->edits[i];
	if (graft_arena_failed(plan->arena)) {
		(void)graft_plan_free(plan);
		return graft_fail_memory(err);
	}
	*ret_plan = plan;
	return 0;
}
