/* SPDX-License-Identifier: Apache-2.0 */
/* to_text: a plan as a tree for a person. The stable text form that golden tests compare. */
#ifndef GRAFT_APPLY_TO_TEXT_H
#define GRAFT_APPLY_TO_TEXT_H

#include "base/buffer.h"
#include "plan/plan.h"

/* Appends the text to `out`; same plan, same bytes. */
void graft_plan_to_text(const struct graft_plan *plan, struct graft_buffer *out);

#endif
