/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_candidates: what could come next on a command line, according to the tables, for shells
 * that ask the program itself (SPEC ctk-and-cdi 1.0). Knows nothing about the shells.
 */
#include <string.h>

#include "base/options_table.h"

/* The state after the arguments so far. */
struct position {
	const struct graft_command *root, *command;
	const struct graft_option *awaiting; /* its value comes next */
	const char *dashed;                  /* the last argument, if it is an option or the beginning of one */
};

static const struct graft_option *find_in(const struct graft_command *command, const char *name, size_t length)
{
	for (size_t i = 0; i < graft_options_count(command); i++) {
		const struct graft_option *option = graft_options_at(command, i);

		if (graft_option_is_called(option, name, length))
			return option;
	}
	return NULL;
}

/*
 * Finds the option that an argument with dashes names, among the command's options and the
 * program's.
 */
static const struct graft_option *find_dashed_option(const struct position *position, const char *word)
{
	const char *name = word + strspn(word, "-");
	size_t length = strcspn(name, "=");
	const struct graft_option *option = find_in(position->command, name, length);

	return option ? option : find_in(position->root, name, length);
}

static void follow_typed_word(struct position *position, const char *word)
{
	const struct graft_option *option;
	const struct graft_command *next;

	position->dashed = NULL;
	if (position->awaiting) {
		position->awaiting = NULL;
		return;
	}
	if (word[0] != '-') {
		next = graft_options_find_command(position->command, word);
		position->command = next ? next : position->command;
		return;
	}
	position->dashed = word;
	option = find_dashed_option(position, word);
	if (option && option->argument == GRAFT_OPTION_REQUIRED && !strchr(word, '='))
		position->awaiting = option;
}

/* The values of an option, each preceded by `prefix`. */
static void add_values(const struct graft_option *option, const char *prefix, size_t length, struct graft_buffer *out)
{
	for (size_t i = 0; option->values && option->values[i]; i++)
		graft_buffer_printf(out, "%.*s%s\n", (int)length, prefix, option->values[i]);
}

/* The visible options of a command that begin like `word`, with one dash or two. */
static void add_options(const struct graft_command *command, bool builtin, const char *word, struct graft_buffer *out)
{
	size_t dashes = strspn(word, "-");

	GRAFT_FOR_EACH_OPTION(option, command)
	{
		if ((builtin || !graft_option_is_builtin(option)) &&
		    strncmp(option->name, word + dashes, strlen(word + dashes)) == 0)
			graft_buffer_printf(out, "--%s\n", option->name);
	}
}

static void add_dashed(const struct position *position, struct graft_buffer *out)
{
	const char *word = position->dashed, *equals = strchr(word, '=');

	if (equals) {
		const struct graft_option *option = find_dashed_option(position, word);

		if (option)
			add_values(option, word, (size_t)(equals + 1 - word), out);
		return;
	}
	add_options(position->command, true, word, out);
	if (position->command != position->root)
		add_options(position->root, false, word, out);
}

void graft_options_candidates(const struct graft_command *root, int argc, char *const *argv, struct graft_buffer *out)
{
	struct position position = { .root = root, .command = root };

	for (int i = 1; i < argc; i++)
		follow_typed_word(&position, argv[i]);
	if (position.awaiting)
		add_values(position.awaiting, "", 0, out);
	if (position.dashed)
		add_dashed(&position, out);
	if (position.awaiting || position.dashed)
		return;
	for (size_t i = 0; position.command->subcommands && position.command->subcommands[i]; i++) {
		if (!position.command->subcommands[i]->hidden)
			graft_buffer_printf(out, "%s\n", position.command->subcommands[i]->name);
	}
}
