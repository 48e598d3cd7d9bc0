/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_summary: a plan in a few lines for a person: first what is missing, then what the container
 * gets, counted by kind, and what is left out, by reason. to_text.h has every edit.
 */
#ifndef GRAFT_APPLY_TO_SUMMARY_H
#define GRAFT_APPLY_TO_SUMMARY_H

#include <stdbool.h>

#include "base/buffer.h"
#include "plan/plan.h"

/* What the output may contain. */
struct graft_summary_style {
	bool colours; /* escape sequences of a terminal */
	bool lines;   /* UTF-8 lines of a tree instead of spaces */
};

/* Appends the summary to `out`. Text from outside is printed without control characters. */
void graft_plan_to_summary(const struct graft_plan *plan, const struct graft_summary_style *style,
			   struct graft_buffer *out);

#endif
