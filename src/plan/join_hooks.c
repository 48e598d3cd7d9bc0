/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join_hooks: joins hooks, because starting a program costs more than what most hooks do. Knows
 * names of hooks and arguments that cannot be joined, not what hooks do.
 */

#include <string.h>

#include "plan/planner.h"
#include "plan/spec_hooks.h"

#define STAGE "createContainer"

static bool is_separable(const char *word)
{
	static const char state[] = "--container-spec";

	return strcmp(word, GRAFT_SEQUENCE_THEN) != 0 && strncmp(word, state, strlen(state)) != 0 &&
	       strncmp(word, state + 1, strlen(state) - 1) != 0; /* one dash works as well as two */
}

static bool is_sequence(const struct graft_cdi_hook *hook)
{
	return strcmp(hook->args[1], GRAFT_SEQUENCE_HOOK) == 0;
}

/* args[0] is the program's name, args[1] the hook, or args[2] the first of a sequence. */
static bool is_joinable(const char *program, const struct graft_cdi_hook *hook)
{
	bool sequence = hook->n_args > 2 && is_sequence(hook);
	size_t first = sequence ? 2 : 1;

	if (strcmp(hook->path, program) != 0 || hook->has_timeout || hook->n_args < 2 ||
	    !graft_is_hook_name(hook->args[first]) || strcmp(hook->args[first], GRAFT_SEQUENCE_HOOK) == 0)
		return false;
	for (size_t i = first + 1; i < hook->n_args; i++)
		if (!is_separable(hook->args[i]) && !(sequence && strcmp(hook->args[i], GRAFT_SEQUENCE_THEN) == 0))
			return false;
	return true;
}

static bool have_same_environment(const struct graft_cdi_hook *a, const struct graft_cdi_hook *b)
{
	if (a->n_env != b->n_env)
		return false;
	for (size_t i = 0; i < a->n_env; i++)
		if (strcmp(a->env[i], b->env[i]) != 0)
			return false;
	return true;
}

/* If memory is exhausted, the arena records it. */
static void add_sequence_word(struct graft_arena *arena, struct graft_cdi_hook *row, const char *word)
{
	(void)graft_arena_push_string(arena, &row->args, &row->n_args, word);
}

static void add_words(struct graft_arena *arena, struct graft_cdi_hook *row, const struct graft_cdi_hook *hook)
{
	for (size_t i = is_sequence(hook) ? 2 : 1; i < hook->n_args; i++)
		add_sequence_word(arena, row, hook->args[i]);
}

static void begin_sequence(struct graft_arena *arena, const char *root, struct graft_cdi_hook *row)
{
	const struct graft_cdi_hook first = *row;

	row->args = NULL;
	row->n_args = 0;
	add_sequence_word(arena, row, first.args[0]);
	add_sequence_word(arena, row, GRAFT_SEQUENCE_HOOK);
	if (root) {
		add_sequence_word(arena, row, "--rootfs");
		add_sequence_word(arena, row, root);
	}
	add_words(arena, row, &first);
}

/*
 * Appends the arguments of `hook` to those of `row`, which becomes a sequence with its second hook.
 */
static void append_to_sequence(struct graft_arena *arena, struct graft_cdi_hook *row, const struct graft_cdi_hook *hook)
{
	if (!is_sequence(row))
		begin_sequence(arena, NULL, row);
	add_sequence_word(arena, row, GRAFT_SEQUENCE_THEN);
	add_words(arena, row, hook);
}

int graft_join_hooks(const char *program, const char *root, struct graft_arena *arena, struct graft_cdi_edits *edits,
		     struct graft_error *err)
{
	struct graft_cdi_hook *hooks = graft_arena_list(arena, edits->n_hooks, sizeof(*hooks)), *row = NULL;
	size_t n = 0;

	if (!hooks && edits->n_hooks > 0)
		return graft_fail_memory(err);
	for (size_t i = 0; i < edits->n_hooks; i++) {
		const struct graft_cdi_hook *hook = &edits->hooks[i];
		bool is_of_stage = strcmp(hook->stage, STAGE) == 0, joinable = is_joinable(program, hook);

		if (is_of_stage && joinable && row && have_same_environment(row, hook)) {
			append_to_sequence(arena, row, hook);
			continue;
		}
		hooks[n] = *hook;
		if (is_of_stage)
			row = joinable ? &hooks[n] : NULL;
		/*
		 * This includes a sequence, whose list of arguments belongs to the specification.
		 */
		if (is_of_stage && joinable && (root || is_sequence(hook)))
			begin_sequence(arena, root, row);
		n++;
	}
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	edits->hooks = hooks;
	edits->n_hooks = n;
	return 0;
}
