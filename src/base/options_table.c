/* SPDX-License-Identifier: Apache-2.0 */
/* options_table: the options that every command has, and the order in which options are shown. */
#include "base/options_table.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const struct graft_option argp_options[] = {
	{ .name = "help", .letter = '?', .help = "Give this help list" },
	{ .name = "usage", .help = "Give a short usage message" },
	{ .name = "version", .letter = 'V', .help = "Print program version" },
};
static const enum graft_parse_result argp_requests[] = { GRAFT_PARSE_HELP, GRAFT_PARSE_USAGE, GRAFT_PARSE_VERSION };

/* The last one is for programs only. */
static const struct graft_option go_options[] = {
	{ .name = "help", .letter = 'h', .help = "Show help" },
	{ .name = "version", .letter = 'v', .help = "Print the version" },
};
static const enum graft_parse_result go_requests[] = { GRAFT_PARSE_HELP, GRAFT_PARSE_VERSION };

/* Returns the options that every command of that style has. */
static const struct graft_option *builtin_options(const struct graft_command *command, size_t *ret_n)
{
	if (!command->go_style) {
		*ret_n = GRAFT_COUNT(argp_options);
		return argp_options;
	}
	*ret_n = command->stop_at_first_argument ? GRAFT_COUNT(go_options) : GRAFT_COUNT(go_options) - 1;
	return go_options;
}

size_t graft_options_count(const struct graft_command *command)
{
	size_t n_builtin;

	(void)builtin_options(command, &n_builtin);
	return command->n_options + n_builtin;
}

const struct graft_option *graft_options_at(const struct graft_command *command, size_t i)
{
	size_t n_builtin;
	const struct graft_option *builtin = builtin_options(command, &n_builtin);

	return i < command->n_options ? &command->options[i] : &builtin[i - command->n_options];
}

static const enum graft_parse_result *find_request(const struct graft_option *option)
{
	for (size_t i = 0; i < GRAFT_COUNT(argp_options); i++) {
		if (option == &argp_options[i])
			return &argp_requests[i];
	}
	for (size_t i = 0; i < GRAFT_COUNT(go_options); i++) {
		if (option == &go_options[i])
			return &go_requests[i];
	}
	return NULL;
}

bool graft_option_is_builtin(const struct graft_option *option)
{
	return find_request(option) != NULL;
}

enum graft_parse_result graft_option_request(const struct graft_option *option)
{
	const enum graft_parse_result *request = find_request(option);

	return request ? *request : GRAFT_PARSE_OK;
}

static bool is_option_name(const char *whole, const char *name, size_t length)
{
	return strncmp(whole, name, length) == 0 && whole[length] == '\0';
}

bool graft_option_is_called(const struct graft_option *option, const char *name, size_t length)
{
	if (length == 1 && option->letter != 0 && option->letter == (unsigned char)name[0])
		return true;
	for (size_t i = 0; option->aliases && option->aliases[i]; i++) {
		if (is_option_name(option->aliases[i], name, length))
			return true;
	}
	return is_option_name(option->name, name, length);
}

static bool is_command_called(const struct graft_command *command, const char *name)
{
	for (size_t i = 0; command->aliases && command->aliases[i]; i++) {
		if (strcmp(command->aliases[i], name) == 0)
			return true;
	}
	return strcmp(command->name, name) == 0;
}

const struct graft_command *graft_options_find_command(const struct graft_command *command, const char *name)
{
	for (size_t i = 0; command->subcommands && command->subcommands[i]; i++) {
		if (is_command_called(command->subcommands[i], name))
			return command->subcommands[i];
	}
	return NULL;
}

/*
 * argp's order: by letter or, without one, by the first character of the name. Case is ignored,
 * then lower case comes first, then names without a letter. Two names without letters are compared
 * as a whole.
 */
static int compare_options(const struct graft_option *a, const struct graft_option *b)
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
	size_t n_builtin;
	const struct graft_option *builtin = builtin_options(command, &n_builtin), *best = NULL;

	if (previous && graft_option_is_builtin(previous))
		return previous + 1 < builtin + n_builtin ? previous + 1 : NULL;
	for (size_t i = 0; i < command->n_options; i++) {
		const struct graft_option *option = &command->options[i];
		int order = previous ? compare_options(option, previous) : 1;

		if (option->hidden || option == previous || order < 0 || (order == 0 && option < previous))
			continue;
		if (!best || compare_options(option, best) < 0)
			best = option;
	}
	return best ? best : &builtin[0];
}
