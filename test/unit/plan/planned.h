/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planned: the host of a test, and the plan that make() makes of it for a request. What there is to
 * free goes with the next make(), or at the end of the test.
 */
#ifndef GRAFT_TEST_PLANNED_H
#define GRAFT_TEST_PLANNED_H

#include "../unit.h"
#include "fixture.h"

static struct fixture f;

/* A plan and what it was made from. */
static struct {
	struct graft_request *request;
	struct graft_arena *arena;
	struct graft_selection selection;
	struct graft_plan *plan;
	struct graft_error err;
	int result;
} r;

static inline int free_plan(void **state)
{
	(void)graft_plan_free(r.plan);
	(void)graft_request_free(r.request);
	(void)graft_arena_free(r.arena);
	memset(&r, 0, sizeof(r));
	return 0;
}

static inline void make(const char *devices, const char *capabilities, void (*change)(struct graft_request *request))
{
	(void)free_plan(NULL);
	r.request = graft_request_new();
	r.arena = graft_arena_new(1 << 20);
	r.request->all_usable = f.policy.style == GRAFT_STYLE_OCI;
	assert_int_equal(graft_request_devices(r.request, devices, &r.err), 0);
	assert_int_equal(graft_request_capabilities(r.request, capabilities, &r.err), 0);
	if (change)
		change(r.request);
	assert_int_equal(graft_select(&f.inventory, r.request, r.arena, &r.selection, &r.err), 0);
	r.result = graft_plan_make(&f.inventory, r.request, &f.policy, &r.selection, &r.plan, &r.err);
}

static inline const struct graft_edit *find(const struct graft_plan *plan, enum graft_edit_kind kind,
					    const char *target)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		if (plan->edits[i].kind == kind && plan->edits[i].target && strcmp(plan->edits[i].target, target) == 0)
			return &plan->edits[i];
	}
	return NULL;
}

static inline const struct graft_edit *expect(const struct graft_plan *plan, enum graft_edit_kind kind,
					      const char *target)
{
	const struct graft_edit *edit = find(plan, kind, target);

	if (!edit) {
		fail_msg("no %s edit for %s", graft_edit_names[kind], target);
		abort();
	}
	return edit;
}

/* Why the plan refuses the first thing whose name contains this; NULL if it refuses none. */
static inline const char *refusal(const struct graft_plan *plan, const char *part)
{
	for (size_t i = 0; i < plan->n_refusals; i++) {
		if (strstr(plan->refusals[i].what, part))
			return plan->refusals[i].why;
	}
	return NULL;
}

#endif
