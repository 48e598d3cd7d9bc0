/* SPDX-License-Identifier: Apache-2.0 */
/* give: what the modes do alike when a container's plan is made: tell it, link its nodes for systemd, apply it. */
#ifndef GRAFT_CLI_RUNTIME_GIVE_H
#define GRAFT_CLI_RUNTIME_GIVE_H

#include "cli/runtime/runtime.h"
#include "plan/plan.h"
#include "plan/planner.h"

/* One log line per decision, then the edits (apply/to_oci.h). */
int runtime_give(struct runtime_create *create, const struct graft_plan *plan, struct graft_error *err);
/* The bits of nvcdi-disable-hooks. A word that is not known is a warning. */
uint32_t runtime_disabled_hooks(const struct runtime_create *create);

#endif
