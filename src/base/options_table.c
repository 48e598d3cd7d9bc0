/* SPDX-License-Identifier: Apache-2.0 */
/* options_table: the options that every command has, and the order in which options are shown. */
#include "base/options_table.h"

#include <ctype.h>
#include <strings.h>

const struct graft_option graft_builtin_options[GRAFT_BUILTIN_OPTIONS] = {
	{ .name = "help", .letter = '?', .help = "Give this help list" },
	{ .name = "usage", .help = "Give a short usage message" },
	{ .name = "version", .letter = 'V', .help = "Print program version" },
};
size_t graft_options_count(const struct graft_command *command)
{
	return command->n_options + GRAFT_BUILTIN_OPTIONS;
}

const struct graft_option *graft_options_at(const struct graft_command *command, size_t i)
{
	return i < command->n_options ? &command->options[i] : &graft_builtin_options[i - command->n_options];
}

bool graft_option_is_builtin(const struct graft_option *option)
{
	for (size_t i = 0; i < GRAFT_BUILTIN_OPTIONS; i++) {
		if (option == &graft_builtin_options[i])
			return true;
	}
	return false;
}

/*
 * argp's order: by letter or, without one, by the first character of the name, ignoring case, small letters first, names
 * without a letter before letters; two names without letters by the whole name.
 */
static int compare(const struct graft_option *a, const struct graft_option *b)
{
	int first_a = a->letter != 0 ? a->letter : (unsigned char)a->name[0];
	int first_b = b->letter != 0 ? b->letter : (unsigned char)b->name[0];

	if (a->letter == 0 && b->letter == 0)
		return strcasecmp(a->name, b->name);
	if (tolower(first_a) != tolower(first_b))
		return tolower(first_a) - tolower(first_b);
	if (first_a != first_b)
		return first_b - first_a;
	return (a->letter != 0) - (b->letter != 0);
}

const struct graft_option *graft_options_next(const struct graft_command *command, const struct graft_option *previous)
{
	const struct graft_option *best = NULL;

	if (previous && graft_option_is_builtin(previous))
		return previous + 1 < graft_builtin_options + GRAFT_BUILTIN_OPTIONS ? previous + 1 : NULL;
	for (size_t i = 0; i < command->n_options; i++) {
		const struct graft_option *option = &command->options[i];
		int order = previous ? compare(option, previous) : 1;

		if (option->hidden || option == previous || order < 0 || (order == 0 && option < previous))
			continue;
		if (!best || compare(option, best) < 0)
			best = option;
	}
	return best ? best : &graft_builtin_options[0];
}
