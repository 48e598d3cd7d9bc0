/* SPDX-License-Identifier: Apache-2.0 */
/* give: from a plan to a container's configuration. Decides nothing. */
#include "cli/runtime/give.h"

#include <string.h>
#include <unistd.h>

#include "apply/dev_char.h"
#include "apply/to_oci.h"

static void log_plan(const struct graft_log *log, const struct graft_plan *plan)
{
	for (size_t i = 0; i < plan->n_grants; i++)
		graft_info(log, "granting GPU %u: %s", plan->grants[i].index,
			   plan->grants[i].uuid    ? plan->grants[i].uuid
			   : plan->grants[i].model ? plan->grants[i].model
						   : "");
	for (size_t i = 0; i < plan->n_edits; i++)
		graft_debug(log, "%s %s: %s", graft_edit_names[plan->edits[i].kind],
			    plan->edits[i].target ? plan->edits[i].target : "", plan->edits[i].why);
	for (size_t i = 0; i < plan->n_refusals; i++)
		graft_debug(log, "not given: %s: %s", plan->refusals[i].what, plan->refusals[i].why);
}

/* A device that systemd does not know by its link is lost at its next reload. An ordinary user may not make one. */
static void link_nodes(const struct runtime_create *create, const struct graft_plan *plan)
{
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_dev_char *nodes = graft_arena_list(create->arena, plan->n_edits, sizeof(*nodes));
	size_t n = 0;

	for (size_t i = 0; nodes && i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if (edit->kind == GRAFT_EDIT_DEVICE)
			nodes[n++] =
			    (struct graft_dev_char){ .major = edit->major, .minor = edit->minor, .path = edit->source };
	}
	if (n > 0 && geteuid() == 0 && graft_dev_char_make(nodes, n, create->log, &why) < 0)
		graft_warn(create->log, "%s; the next 'systemctl daemon-reload' may take the GPUs away", why.msg);
}

uint32_t runtime_disabled_hooks(const struct runtime_create *create)
{
	const struct graft_strings *words = &create->config->runtime.jit_disable_hooks;
	uint32_t hooks = 0;

	for (size_t i = 0; i < words->n; i++) {
		struct graft_error why = { .status = GRAFT_OK };

		if (graft_policy_disable_hook(&hooks, words->items[i], &why) < 0)
			graft_warn(create->log, "%s", why.msg);
	}
	return hooks;
}

int runtime_give(struct runtime_create *create, const struct graft_plan *plan, struct graft_error *err)
{
	const struct graft_oci_options options = {
		.hook_path = create->cdi_hook_path,
		.no_additional_gids = create->config->features.no_additional_gids_for_device_nodes,
		.log = create->log,
	};

	log_plan(create->log, plan);
	link_nodes(create, plan);
	/* ---- privileged work starts here: all input is parsed, all decisions are in the plan ---- */
	return graft_apply_to_oci(plan, create->bundle, create->spec, &options, create->document, err);
}
