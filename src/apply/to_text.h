/* SPDX-License-Identifier: Apache-2.0 */
/* to_text: a plan as a tree for a person, in the stable text format that golden tests compare. */
#ifndef GRAFT_APPLY_TO_TEXT_H
#define GRAFT_APPLY_TO_TEXT_H

#include "base/buffer.h"
#include "plan/plan.h"

/* Appends the text to `out`; the same plan gives the same bytes. */
void graft_plan_to_text(const struct graft_plan *plan, struct graft_buffer *out);

/*
 * Parts of the text that are also in the summary (to_summary.h): the first line, a granted GPU, and
 * late mounts.
 */
void graft_plan_add_driver(const struct graft_plan *plan, struct graft_buffer *out);
void graft_plan_add_grant(const struct graft_grant *grant, struct graft_buffer *out);
/* An empty line and the line about late mounts; nothing if the plan says nothing of them. */
void graft_plan_add_late_mounts(const struct graft_plan *plan, struct graft_buffer *out);
/* Appends text from outside; what is not visible (graft_visible_length()) as \xNN, NULL as "?". */
void graft_plan_add_plain_text(struct graft_buffer *out, const char *text);

#endif
