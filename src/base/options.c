/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: parses command lines according to a table, and reports errors. Behaves as glibc's argp
 * and getopt_long do, message for message, because people and scripts know those. argp itself is
 * missing in musl and cannot generate man pages or completions. Does not know what the options
 * mean. The texts generated from the same tables are in options_text.c.
 */
#include "base/options.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/options_parser.h"
#include "base/options_table.h"

/* The values that Go's strconv.ParseBool accepts. */
static const struct {
	const char *word;
	bool value;
} bool_words[] = {
	{ "1", true },  { "t", true },  { "T", true },  { "true", true },   { "TRUE", true },   { "True", true },
	{ "0", false }, { "f", false }, { "F", false }, { "false", false }, { "FALSE", false }, { "False", false },
};

int graft_option_set_true(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	bool *member = (bool *)((char *)target + option->offset);

	if (!value) {
		*member = true;
		return 0;
	}
	for (size_t i = 0; i < GRAFT_COUNT(bool_words); i++) {
		if (strcmp(value, bool_words[i].word) == 0) {
			*member = bool_words[i].value;
			return 0;
		}
	}
	return graft_fail(err, GRAFT_INVALID, 0, "invalid boolean value '%s' for --%s", value, option->name);
}

int graft_option_set_string(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	(void)err;
	*(const char **)((char *)target + option->offset) = value;
	return 0;
}

static const struct graft_option *find_letter(const struct graft_options_parser *parser, int letter)
{
	for (size_t i = 0; i < graft_options_count(parser->command); i++) {
		const struct graft_option *option = graft_options_at(parser->command, i);

		if (option->letter != 0 && option->letter == letter)
			return option;
	}
	return NULL;
}

static int fail_ambiguous(struct graft_options_parser *parser, const char *name, size_t length)
{
	struct graft_buffer list = { .max = sizeof(parser->err->msg) };
	int rc;

	for (size_t i = 0; i < graft_options_count(parser->command); i++) {
		const struct graft_option *option = graft_options_at(parser->command, i);

		if (!option->hidden && strncmp(option->name, name, length) == 0)
			graft_buffer_printf(&list, " '--%s'", option->name);
	}
	rc = graft_options_fail(parser, "option '--%s' is ambiguous; possibilities:%s", name, graft_buffer_text(&list));
	graft_buffer_done(&list);
	return rc;
}

/* Finds a long option by its name or, unless it is hidden, by an unambiguous abbreviation. */
static int find_name(struct graft_options_parser *parser, const char *dashes, const char *name, size_t length,
		     const struct graft_option **ret_option)
{
	const struct graft_option *found = NULL;
	size_t n_found = 0;

	for (size_t i = 0; i < graft_options_count(parser->command); i++) {
		const struct graft_option *option = graft_options_at(parser->command, i);

		if (strncmp(option->name, name, length) != 0)
			continue;
		if (option->name[length] == '\0') {
			*ret_option = option;
			return 0;
		}
		if (option->hidden)
			continue;
		found = option;
		n_found++;
	}
	if (!parser->command->abbreviations || n_found == 0)
		return graft_options_fail(parser, "unrecognized option '%s%s'", dashes, name);
	if (n_found > 1)
		return fail_ambiguous(parser, name, length);
	*ret_option = found;
	return 0;
}

/* Appends what was probably meant to the message of an option's parser, if something is near. */
static int suggest_value(struct graft_options_parser *parser, const struct graft_option *option, const char *value)
{
	const char *meant = value ? graft_options_meant_value(option, value) : NULL;
	struct graft_error *err = parser->err;
	size_t length = err ? strlen(err->msg) : 0;

	if (err && meant && err->status == GRAFT_INVALID)
		(void)snprintf(err->msg + length, sizeof(err->msg) - length, " (did you mean '%s'?)", meant);
	return -1;
}

static int use_option(struct graft_options_parser *parser, const struct graft_option *option, const char *value)
{
	if (graft_option_is_builtin(option)) {
		parser->result = graft_option_request(option);
		return 0;
	}
	if (option->parse(parser->target, option, value, parser->err) == 0)
		return 0;
	return suggest_value(parser, option, value);
}

char *graft_options_take_word(struct graft_options_parser *parser, int *n_words)
{
	if (parser->next + *n_words >= parser->argc)
		return NULL;
	return parser->argv[parser->next + (*n_words)++];
}

/* "--name", "--name=value", "--name value". */
static int parse_long(struct graft_options_parser *parser, const char *dashes, const char *word, int *n_words)
{
	size_t length = strcspn(word, "=");
	const char *value = word[length] == '=' ? word + length + 1 : NULL;
	const struct graft_option *option = NULL;

	if (find_name(parser, dashes, word, length, &option) < 0 || !option)
		return -1;
	if (option->argument == GRAFT_OPTION_FLAG && value)
		return graft_options_fail(parser, "option '%s%s' doesn't allow an argument", dashes, option->name);
	if (option->argument == GRAFT_OPTION_REQUIRED && !value)
		value = graft_options_take_word(parser, n_words);
	if (option->argument == GRAFT_OPTION_REQUIRED && !value)
		return graft_options_fail(parser, "option '%s%s' requires an argument", dashes, option->name);
	return use_option(parser, option, value);
}

/* "-abc", "-dVALUE", "-d VALUE"; an optional value must be attached. */
static int parse_cluster(struct graft_options_parser *parser, const char *letters, int *n_words)
{
	for (const char *c = letters; *c != '\0' && parser->result == GRAFT_PARSE_OK; c++) {
		const struct graft_option *option = find_letter(parser, (unsigned char)*c);
		const char *value = NULL;

		if (!option)
			return graft_options_fail(parser, "invalid option -- '%c'", *c);
		if (option->argument != GRAFT_OPTION_FLAG && c[1] != '\0')
			value = c + 1;
		else if (option->argument == GRAFT_OPTION_REQUIRED)
			value = graft_options_take_word(parser, n_words);
		if (option->argument == GRAFT_OPTION_REQUIRED && !value)
			return graft_options_fail(parser, "option requires an argument -- '%c'", *c);
		if (use_option(parser, option, value) < 0)
			return -1;
		if (value)
			return 0;
	}
	return 0;
}

/* One argument that begins with a dash, as argp parses it. graft_options_parse_go(): as Go does. */
static int parse_argp(struct graft_options_parser *parser, const char *word, int *n_words)
{
	if (word[1] == '-')
		return parse_long(parser, "--", word + 2, n_words);
	return parse_cluster(parser, word + 1, n_words);
}

/* The style of a command line: parses `word`, which begins with a dash. */
typedef int (*parse_option)(struct graft_options_parser *parser, const char *word, int *n_words);

/* Moves the `n_words` arguments at `next` in front of the positional arguments seen so far. */
static void move_to_options(struct graft_options_parser *parser, int n_words)
{
	while (n_words-- > 0) {
		char *word = parser->argv[parser->next];

		memmove(&parser->argv[parser->first + 1], &parser->argv[parser->first],
			(size_t)(parser->next - parser->first) * sizeof(*parser->argv));
		parser->argv[parser->first++] = word;
		parser->next++;
	}
}

/*
 * Returns whether the options end at `word`, which is a positional argument. Only the first
 * positional argument can be the name of a sub-command.
 */
static bool is_end_of_options(const struct graft_options_parser *parser, const char *word)
{
	const struct graft_command *command = parser->command;

	if (command->stop_at_first_argument || (command->go_style && !command->interspersed))
		return true;
	return parser->next == parser->first && graft_options_find_command(command, word) != NULL;
}

static int parse_words(struct graft_options_parser *parser, parse_option parse)
{
	while (parser->next < parser->argc && parser->result == GRAFT_PARSE_OK) {
		const char *word = parser->argv[parser->next];
		int n_words = 1;

		if (strcmp(word, "--") == 0) {
			move_to_options(parser, 1);
			return 0;
		}
		if (word[0] != '-' || word[1] == '\0') {
			if (is_end_of_options(parser, word))
				return 0;
			parser->next++;
			continue;
		}
		if (parse(parser, word, &n_words) < 0)
			return -1;
		move_to_options(parser, n_words);
	}
	return 0;
}

static int check_arguments(struct graft_options_parser *parser)
{
	const struct graft_command *command = parser->command;
	int n = parser->argc - parser->first;

	if (command->max_arguments >= 0 && n > command->max_arguments)
		return graft_options_fail(parser, "Too many arguments");
	if (n >= command->min_arguments)
		return 0;
	parser->result = GRAFT_PARSE_MISSING;
	return graft_fail(parser->err, GRAFT_INVALID, 0, "missing argument: %s", command->arguments);
}

static int parse(const struct graft_options_scope *scope, parse_option parse_style, const struct graft_command *command,
		 int argc, char **argv, void *target, int *ret_first, enum graft_parse_result *ret_result,
		 struct graft_error *err)
{
	struct graft_options_parser parser = {
		.command = command,
		.scope = scope,
		.argc = argc,
		.argv = argv,
		.target = target,
		.first = 1,
		.next = 1,
		.result = GRAFT_PARSE_OK,
		.err = err,
	};
	int rc;

	if (command->n_options > GRAFT_OPTIONS_GIVEN_MAX)
		return graft_fail(err, GRAFT_INTERNAL, 0, "command '%s' has too many options", command->name);
	rc = argc > 0 ? parse_words(&parser, parse_style) : 0;
	if (argc < 1)
		parser.argc = 1;
	if (rc == 0 && parser.result == GRAFT_PARSE_OK)
		rc = graft_options_read_environment(&parser);
	if (rc == 0 && parser.result == GRAFT_PARSE_OK)
		rc = check_arguments(&parser);
	*ret_first = parser.first;
	*ret_result = parser.result;
	return rc;
}

/* Programs that only call this one are linked without argp's style. */
int graft_options_parse_in(const struct graft_options_scope *scope, const struct graft_command *command, int argc,
			   char **argv, void *target, int *ret_first, enum graft_parse_result *ret_result,
			   struct graft_error *err)
{
	return parse(scope, graft_options_parse_go, command, argc, argv, target, ret_first, ret_result, err);
}

int graft_options_parse(const struct graft_command *command, int argc, char **argv, void *target, int *ret_first,
			enum graft_parse_result *ret_result, struct graft_error *err)
{
	static const struct graft_options_scope alone = { .inherited = NULL };

	return parse(&alone, command->go_style ? graft_options_parse_go : parse_argp, command, argc, argv, target,
		     ret_first, ret_result, err);
}
