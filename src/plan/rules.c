/* SPDX-License-Identifier: Apache-2.0 */
/* rules: the small functions that every rule of the planner uses. */
#include "plan/rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Bytes of a sentence for a person; longer ones are truncated. */
#define TEXT_MAX 512

struct graft_edit *(graft_plan_edit)(struct graft_planner *planner, enum graft_edit_kind kind, const char *rule,
				     const char *why, ...)
{
	struct graft_plan *plan = planner->plan;
	struct graft_edit *edit = graft_arena_push(plan->arena, &plan->edits, &plan->n_edits, sizeof(*edit));
	char text[TEXT_MAX] = "";
	va_list args;

	if (!edit) {
		memset(&planner->scratch, 0, sizeof(planner->scratch));
		edit = &planner->scratch;
	}
	va_start(args, why);
	if (why)
		(void)vsnprintf(text, sizeof(text), why, args);
	va_end(args);
	edit->kind = kind;
	edit->rule = graft_arena_strdup(plan->arena, rule);
	edit->why = why ? graft_arena_strdup(plan->arena, text) : NULL;
	return edit;
}

void(graft_plan_refuse)(struct graft_planner *planner, const char *why, const char *what, ...)
{
	struct graft_plan *plan = planner->plan;
	struct graft_refusal *refusal = graft_arena_push(plan->arena, &plan->refusals, &plan->n_refusals,
							 sizeof(*refusal));
	char text[TEXT_MAX];
	va_list args;

	if (!refusal)
		return;
	va_start(args, what);
	(void)vsnprintf(text, sizeof(text), what, args);
	va_end(args);
	refusal->what = graft_arena_strdup(plan->arena, text);
	refusal->why = graft_arena_strdup(plan->arena, why);
}

const char *graft_plan_copy(struct graft_planner *planner, const char *s)
{
	return graft_arena_strdup(planner->plan->arena, s);
}

const char *graft_plan_join(struct graft_planner *planner, const char *directory, const char *name)
{
	size_t length = strlen(directory);

	while (length > 0 && directory[length - 1] == '/')
		length--;
	while (*name == '/')
		name++;
	return graft_arena_join(planner->plan->arena, directory, length, name);
}

const char *graft_plan_on_host(struct graft_planner *planner, const char *root, const char *path)
{
	return root ? graft_plan_join(planner, root, path) : graft_plan_copy(planner, path);
}

const char *(graft_plan_capability_words)(struct graft_planner *planner, unsigned int capabilities)
{
	char text[TEXT_MAX];
	size_t length = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < GRAFT_CAP_BITS && length < sizeof(text); i++) {
		if ((capabilities & 1u << i) != 0)
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
						   length > 0 ? " or " : "", graft_capability_names[i]);
	}
	return graft_plan_copy(planner, text);
}

void graft_plan_refuse_class(struct graft_planner *planner, const char *noun, enum graft_class class_, size_t n,
			     unsigned int capabilities)
{
	const char *words = n > 0 ? graft_plan_capability_words(planner, capabilities) : NULL;

	if (words)
		graft_plan_refuse(planner, "the capability was not asked for", "%s: %zu of class %s (needs %s)", noun,
				  n, graft_class_names[class_], words);
}

bool graft_plan_has(const struct graft_planner *planner, unsigned int capabilities)
{
	return (planner->request->capabilities & capabilities) != 0;
}

bool graft_plan_is_disabled(const struct graft_planner *planner, enum graft_hook hook)
{
	return planner->oci && (planner->policy->disabled_hooks & hook) != 0;
}
