/* SPDX-License-Identifier: Apache-2.0 */
/* hook_rows: hooks of a specification from text and back, one a line: "stage path|env|args". */
#ifndef GRAFT_TEST_PLAN_HOOK_ROWS_H
#define GRAFT_TEST_PLAN_HOOK_ROWS_H

#include <string.h>

#include "../unit.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "formats/cdi/cdi.h"

#define HOOK_PROGRAM "/usr/bin/nvidia-cdi-hook"
#define HOOK         "createContainer " HOOK_PROGRAM "|E=0|nvidia-cdi-hook "

/* Of each test: what it makes is thrown away behind it. */
static struct graft_arena *arena;

static inline int setup(void **state)
{
	arena = graft_arena_new((size_t)1 << 20);
	return arena ? 0 : -1;
}

static inline int teardown(void **state)
{
	arena = graft_arena_free(arena);
	return 0;
}

static inline void hook_rows_split(const char *text, char separator, const char ***ret_words, size_t *ret_n)
{
	while (*text != '\0') {
		size_t length = strcspn(text, (const char[]){ separator, '\0' });
		const char *word = graft_arena_strndup(arena, text, length);

		assert_non_null(graft_arena_push_string(arena, ret_words, ret_n, word));
		text += length + (text[length] != '\0' ? 1 : 0);
	}
}

static inline struct graft_cdi_edits hook_rows_parse(const char *text)
{
	struct graft_cdi_edits edits = { .env = NULL };
	const char **lines = NULL;
	size_t n = 0;

	hook_rows_split(text, '\n', &lines, &n);
	for (size_t i = 0; i < n; i++) {
		struct graft_cdi_hook *hook = graft_arena_push(arena, &edits.hooks, &edits.n_hooks, sizeof(*hook));
		size_t space = strcspn(lines[i], " "), bar = strcspn(lines[i], "|");
		const char *env = lines[i] + bar + 1, *args = strchr(env, '|') + 1;

		assert_non_null(hook);
		hook->stage = graft_arena_strndup(arena, lines[i], space);
		hook->path = graft_arena_strndup(arena, lines[i] + space + 1, bar - space - 1);
		hook_rows_split(graft_arena_strndup(arena, env, (size_t)(args - env) - 1), ' ', &hook->env,
				&hook->n_env);
		hook_rows_split(args, ' ', &hook->args, &hook->n_args);
	}
	return edits;
}

static inline void hook_rows_add_words(struct graft_buffer *out, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		graft_buffer_printf(out, "%s%s", i > 0 ? " " : "", words[i]);
}

/* Whether the hooks are those of `text`. */
static inline void hook_rows_assert(const struct graft_cdi_edits *edits, const char *text)
{
	struct graft_buffer out = { .max = 0 };

	for (size_t i = 0; i < edits->n_hooks; i++) {
		const struct graft_cdi_hook *hook = &edits->hooks[i];

		graft_buffer_printf(&out, "%s %s|", hook->stage, hook->path);
		hook_rows_add_words(&out, hook->env, hook->n_env);
		graft_buffer_string(&out, "|");
		hook_rows_add_words(&out, hook->args, hook->n_args);
		graft_buffer_string(&out, "\n");
	}
	assert_string_equal(graft_buffer_text(&out), text);
	graft_buffer_done(&out);
}

#endif
