/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: parsing of command lines from a table, and its complaints. Behaves as glibc's argp and getopt_long do, message for
 * message, since people and scripts know those; argp itself is missing in musl and cannot make man pages or completions.
 * Knows nothing of what the options mean. The texts made from the same tables are in options_text.c.
 */
#include "base/options.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/options_table.h"

/* The state of one parse: argv[1..first) are options, argv[first..next) positional arguments, the rest unseen. */
struct parser {
	const struct graft_command *command;
	int argc;
	char **argv;
	void *target;
	int first, next;
	enum graft_parse_result result;
	struct graft_error *err;
};

static const enum graft_parse_result builtin_results[GRAFT_BUILTIN_OPTIONS] = {
	GRAFT_PARSE_HELP,
	GRAFT_PARSE_USAGE,
	GRAFT_PARSE_VERSION,
};

/* The words that Go's strconv.ParseBool knows. */
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

static int wrong(struct parser *parser)
{
	parser->result = GRAFT_PARSE_WRONG;
	return -1;
}

static const struct graft_option *find_letter(const struct parser *parser, int letter)
{
	for (size_t i = 0; i < graft_options_count(parser->command); i++) {
		const struct graft_option *option = graft_options_at(parser->command, i);

		if (option->letter != 0 && option->letter == letter)
			return option;
	}
	return NULL;
}

static int fail_ambiguous(struct parser *parser, const char *name, size_t length)
{
	struct graft_buffer list = { .max = sizeof(parser->err->msg) };

	for (size_t i = 0; i < graft_options_count(parser->command); i++) {
		const struct graft_option *option = graft_options_at(parser->command, i);

		if (!option->hidden && strncmp(option->name, name, length) == 0)
			graft_buffer_printf(&list, " '--%s'", option->name);
	}
	(void)graft_fail(parser->err, GRAFT_INVALID, 0, "option '--%s' is ambiguous; possibilities:%s", name,
			 graft_buffer_text(&list));
	graft_buffer_done(&list);
	return wrong(parser);
}

static int fail_unknown(struct parser *parser, const char *dashes, const char *name, size_t length)
{
	if (parser->command->go_style)
		(void)graft_fail(parser->err, GRAFT_INVALID, 0, "flag provided but not defined: -%.*s", (int)length,
				 name);
	else
		(void)graft_fail(parser->err, GRAFT_INVALID, 0, "unrecognized option '%s%s'", dashes, name);
	return wrong(parser);
}

static int fail_no_value(struct parser *parser, const char *dashes, const struct graft_option *option)
{
	if (parser->command->go_style)
		(void)graft_fail(parser->err, GRAFT_INVALID, 0, "flag needs an argument: %s%s", dashes, option->name);
	else
		(void)graft_fail(parser->err, GRAFT_INVALID, 0, "option '%s%s' requires an argument", dashes,
				 option->name);
	return wrong(parser);
}

/* Finds a long option by its name or, if it is not hidden, an unambiguous beginning of it. */
static int find_name(struct parser *parser, const char *dashes, const char *name, size_t length,
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
		return fail_unknown(parser, dashes, name, length);
	if (n_found > 1)
		return fail_ambiguous(parser, name, length);
	*ret_option = found;
	return 0;
}

static int use(struct parser *parser, const struct graft_option *option, const char *value)
{
	if (graft_option_is_builtin(option)) {
		parser->result = builtin_results[option - graft_builtin_options];
		return 0;
	}
	return option->parse(parser->target, option, value, parser->err);
}

/* The word after the current one, or NULL. Makes it part of the option. */
static char *take_next_word(struct parser *parser, int *n_words)
{
	if (parser->next + *n_words >= parser->argc)
		return NULL;
	return parser->argv[parser->next + (*n_words)++];
}

/* "--name", "--name=value", "--name value"; in Go's style with one dash or two. */
static int parse_long(struct parser *parser, const char *dashes, const char *word, int *n_words)
{
	size_t length = strcspn(word, "=");
	const char *value = word[length] == '=' ? word + length + 1 : NULL;
	const struct graft_option *option = NULL;

	if (find_name(parser, dashes, word, length, &option) < 0 || !option)
		return -1;
	if (option->argument == GRAFT_OPTION_FLAG && value && !parser->command->go_style) {
		(void)graft_fail(parser->err, GRAFT_INVALID, 0, "option '%s%s' doesn't allow an argument", dashes,
				 option->name);
		return wrong(parser);
	}
	if (option->argument == GRAFT_OPTION_REQUIRED && !value)
		value = take_next_word(parser, n_words);
	if (option->argument == GRAFT_OPTION_REQUIRED && !value)
		return fail_no_value(parser, dashes, option);
	return use(parser, option, value);
}

/* "-abc", "-dVALUE", "-d VALUE"; a value that is optional must be attached. */
static int parse_cluster(struct parser *parser, const char *letters, int *n_words)
{
	for (const char *c = letters; *c != '\0' && parser->result == GRAFT_PARSE_OK; c++) {
		const struct graft_option *option = find_letter(parser, (unsigned char)*c);
		const char *value = NULL;

		if (!option) {
			(void)graft_fail(parser->err, GRAFT_INVALID, 0, "invalid option -- '%c'", *c);
			return wrong(parser);
		}
		if (option->argument != GRAFT_OPTION_FLAG && c[1] != '\0')
			value = c + 1;
		else if (option->argument == GRAFT_OPTION_REQUIRED)
			value = take_next_word(parser, n_words);
		if (option->argument == GRAFT_OPTION_REQUIRED && !value) {
			(void)graft_fail(parser->err, GRAFT_INVALID, 0, "option requires an argument -- '%c'", *c);
			return wrong(parser);
		}
		if (use(parser, option, value) < 0)
			return -1;
		if (value)
			return 0;
	}
	return 0;
}

/* Go's flag package: "-name" and "--name" are the same; a letter is a name of one character. */
static int parse_go(struct parser *parser, const char *word, int *n_words)
{
	const char *name = word[1] == '-' ? word + 2 : word + 1;
	const struct graft_option *option = NULL;

	if (name[0] != '\0' && (name[1] == '\0' || name[1] == '='))
		option = find_letter(parser, (unsigned char)name[0]);
	if (!option && name[0] == 'h' && name[1] == '\0')
		option = &graft_builtin_options[0];
	if (!option)
		return parse_long(parser, word[1] == '-' ? "--" : "-", name, n_words);
	if (option->argument == GRAFT_OPTION_REQUIRED && name[1] == '\0')
		return parse_cluster(parser, name, n_words);
	return use(parser, option, name[1] == '=' ? name + 2 : NULL);
}

static int parse_option(struct parser *parser, int *n_words)
{
	const char *word = parser->argv[parser->next];

	if (parser->command->go_style)
		return parse_go(parser, word, n_words);
	if (word[1] == '-')
		return parse_long(parser, "--", word + 2, n_words);
	return parse_cluster(parser, word + 1, n_words);
}

/* Moves the `n_words` words at `next` in front of the positional arguments seen so far. */
static void move_to_options(struct parser *parser, int n_words)
{
	while (n_words-- > 0) {
		char *word = parser->argv[parser->next];

		memmove(&parser->argv[parser->first + 1], &parser->argv[parser->first],
			(size_t)(parser->next - parser->first) * sizeof(*parser->argv));
		parser->argv[parser->first++] = word;
		parser->next++;
	}
}

static int parse_words(struct parser *parser)
{
	bool stop = parser->command->stop_at_first_argument || parser->command->go_style;

	while (parser->next < parser->argc && parser->result == GRAFT_PARSE_OK) {
		const char *word = parser->argv[parser->next];
		int n_words = 1;

		if (strcmp(word, "--") == 0) {
			move_to_options(parser, 1);
			return 0;
		}
		if (word[0] != '-' || word[1] == '\0') {
			if (stop)
				return 0;
			parser->next++;
			continue;
		}
		if (parse_option(parser, &n_words) < 0)
			return -1;
		move_to_options(parser, n_words);
	}
	return 0;
}

static int check_arguments(struct parser *parser)
{
	const struct graft_command *command = parser->command;
	int n = parser->argc - parser->first;

	if (command->max_arguments >= 0 && n > command->max_arguments) {
		(void)graft_fail(parser->err, GRAFT_INVALID, 0, "Too many arguments");
		return wrong(parser);
	}
	if (n < command->min_arguments) {
		(void)graft_fail(parser->err, GRAFT_INVALID, 0, "missing argument: %s", command->arguments);
		parser->result = GRAFT_PARSE_MISSING;
		return -1;
	}
	return 0;
}

int graft_options_parse(const struct graft_command *command, int argc, char **argv, void *target, int *ret_first,
			enum graft_parse_result *ret_result, struct graft_error *err)
{
	struct parser parser = {
		.command = command,
		.argc = argc,
		.argv = argv,
		.target = target,
		.first = 1,
		.next = 1,
		.result = GRAFT_PARSE_OK,
		.err = err,
	};
	int rc = argc > 0 ? parse_words(&parser) : 0;

	if (argc < 1)
		parser.argc = 1;
	if (rc == 0 && parser.result == GRAFT_PARSE_OK)
		rc = check_arguments(&parser);
	*ret_first = parser.first;
	*ret_result = parser.result;
	return rc;
}
