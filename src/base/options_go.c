/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_go: command lines in the style of Go programs: one dash or two, letters that may be
 * bundled, program options that sub-commands accept too, values from the environment. The caller
 * reads the environment.
 */
#include <string.h>

#include "base/options_parser.h"
#include "base/options_table.h"

/* An option and the target of its parser. */
struct use {
	const struct graft_option *option;
	void *target;
	size_t index; /* among the command's own; n_options for any other */
};

static int fail_unknown_flag(struct graft_options_parser *parser, const char *name, size_t length)
{
	return graft_options_fail(parser, "flag provided but not defined: -%.*s", (int)length, name);
}

static int fail_flag_argument(struct graft_options_parser *parser, const char *dashes, const char *name, size_t length)
{
	return graft_options_fail(parser, "flag needs an argument: %s%.*s", dashes, (int)length, name);
}

/*
 * Searches the command's own options, then those that every command has, then the inherited ones.
 */
static bool find_go_flag(const struct graft_options_parser *parser, const char *name, size_t length,
			 struct use *ret_use)
{
	const struct graft_command *command = parser->command, *inherited = parser->scope->inherited;

	for (size_t i = 0; i < graft_options_count(command); i++) {
		const struct graft_option *option = graft_options_at(command, i);

		if (graft_option_is_called(option, name, length)) {
			*ret_use = (struct use){ option, parser->target,
						 i < command->n_options ? i : command->n_options };
			return true;
		}
	}
	for (size_t i = 0; inherited && i < inherited->n_options; i++) {
		const struct graft_option *option = &inherited->options[i];

		if (graft_option_is_called(option, name, length)) {
			*ret_use = (struct use){ option, parser->scope->inherited_target, command->n_options };
			return true;
		}
	}
	return false;
}

/* Parses an option of the command itself. */
static int parse_own(const struct graft_options_parser *parser, const struct graft_option *option, const char *value,
		     struct graft_error *err)
{
	if (parser->scope->used)
		parser->scope->used(parser->scope->arg, option, value);
	return option->parse(parser->target, option, value, err);
}

static int apply_go_flag(struct graft_options_parser *parser, const struct use *use, const char *value)
{
	if (graft_option_is_builtin(use->option)) {
		parser->result = graft_option_request(use->option);
		return 0;
	}
	if (use->index == parser->command->n_options)
		return use->option->parse(use->target, use->option, value, parser->err);
	parser->given |= (uint64_t)1 << use->index;
	return parse_own(parser, use->option, value, parser->err);
}

/*
 * Parses the letters of one argument; the last letter may take a value. All letters must be known
 * before the first one takes effect.
 */
static int parse_bundle(struct graft_options_parser *parser, const char *letters, size_t length, const char *value,
			int *n_words)
{
	struct use use;

	for (size_t i = 0; i < length; i++) {
		if (!find_go_flag(parser, &letters[i], 1, &use))
			return fail_unknown_flag(parser, letters, length);
		if (use.option->argument == GRAFT_OPTION_REQUIRED && i + 1 < length)
			return fail_flag_argument(parser, "-", &letters[i], 1);
	}
	for (size_t i = 0; i < length && parser->result == GRAFT_PARSE_OK; i++) {
		bool last = i + 1 == length;
		const char *given = last ? value : NULL;

		if (!find_go_flag(parser, &letters[i], 1, &use))
			return fail_unknown_flag(parser, letters, length);
		if (use.option->argument == GRAFT_OPTION_REQUIRED && !given)
			given = graft_options_take_word(parser, n_words);
		if (use.option->argument == GRAFT_OPTION_REQUIRED && !given)
			return fail_flag_argument(parser, "-", &letters[i], 1);
		if (apply_go_flag(parser, &use, given) < 0)
			return -1;
	}
	return 0;
}

int graft_options_parse_go(struct graft_options_parser *parser, const char *word, int *n_words)
{
	const char *dashes = word[1] == '-' ? "--" : "-";
	const char *name = word + strlen(dashes);
	size_t length = strcspn(name, "=");
	const char *value = name[length] == '=' ? name + length + 1 : NULL;
	struct use use;

	if (!find_go_flag(parser, name, length, &use)) {
		if (parser->command->bundled && length > 1 && word[1] != '-')
			return parse_bundle(parser, name, length, value, n_words);
		return fail_unknown_flag(parser, name, length);
	}
	if (use.option->argument == GRAFT_OPTION_REQUIRED && !value)
		value = graft_options_take_word(parser, n_words);
	if (use.option->argument == GRAFT_OPTION_REQUIRED && !value)
		return fail_flag_argument(parser, dashes, name, length);
	return apply_go_flag(parser, &use, value);
}

/* ---- environment ---- */

static int read_flag_variable(struct graft_options_parser *parser, const struct graft_option *option, const char *name,
			      const char *value)
{
	bool flag = option->argument == GRAFT_OPTION_FLAG;
	struct graft_error refused = { .status = GRAFT_OK };

	if (parse_own(parser, option, flag && value[0] == '\0' ? "false" : value, &refused) == 0)
		return 0;
	return graft_fail(parser->err, refused.status, refused.sys,
			  "could not parse \"%s\" as %s value from environment variable \"%s\" for flag %s: %s", value,
			  flag ? "bool" : "string", name, option->name, refused.msg);
}

int graft_options_read_environment(struct graft_options_parser *parser)
{
	const struct graft_command *command = parser->command;

	for (size_t i = 0; parser->scope->variable && i < command->n_options; i++) {
		const struct graft_option *option = &command->options[i];
		const char *value = NULL;
		size_t n = 0;

		if (!option->environment || (parser->given >> i & 1) != 0)
			continue;
		while (option->environment[n] && !(value = parser->scope->variable(option->environment[n])))
			n++;
		if (value && read_flag_variable(parser, option, option->environment[n], value) < 0)
			return -1;
	}
	return 0;
}
