/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options in the style of Go's programs (SPEC ctk-and-cdi 1.0): further names, inherited options, bundles, positional words before options, sub-commands'
 * names, variables. Each row is words and what became of them.
 */
#include <string.h>

#include "../unit.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/options.h"

#define MAX_WORDS 16

/* What was used, in order: "output=x;in-place;". The program's options and a command's write to one of their own. */
struct target {
	char mark; /* 'r'oot, 'c'ommand */
	struct graft_buffer *uses;
	bool flag;
};

static int record(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	const struct target *to = target;

	if (value && strcmp(value, "refused") == 0)
		return graft_fail(err, GRAFT_INVALID, 0, "no");
	graft_buffer_printf(to->uses, "%c:%s", to->mark, option->name);
	if (value)
		graft_buffer_printf(to->uses, "=%s", value);
	graft_buffer_char(to->uses, ';');
	return 0;
}

#define NAMES(...)                \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}

static const struct graft_option root_options[] = {
	{ .name = "debug", .letter = 'd', .help = "Debug", .parse = record, .environment = NAMES("DEBUG") },
	{ .name = "config",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "FILE",
	  .help = "File",
	  .parse = record,
	  .environment = NAMES("CONFIG") },
};
static const struct graft_option options[] = {
	{ .name = "config-file",
	  .letter = 'c',
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "FILE",
	  .help = "File",
	  .parse = record,
	  .aliases = NAMES("config", "C") },
	{ .name = "in-place",
	  .letter = 'i',
	  .help = "In place",
	  .parse = record,
	  .environment = NAMES("NEW_IN_PLACE", "IN_PLACE") },
	{ .name = "output",
	  .letter = 'o',
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "FILE",
	  .help = "Output",
	  .parse = record,
	  .environment = NAMES("OUTPUT") },
};

static const struct graft_command child = { .name = "default",
					    .aliases = NAMES("make-default", "d"),
					    .arguments = "",
					    .summary = "Defaults",
					    .go_style = true };
static const struct graft_command *const children[] = { &child, NULL };
static const struct graft_command program = {
	.name = "prog",
	.arguments = "COMMAND",
	.summary = "Program",
	.options = root_options,
	.n_options = GRAFT_COUNT(root_options),
	.max_arguments = -1,
	.stop_at_first_argument = true,
	.go_style = true,
};
static const struct graft_command plain = {
	.name = "plain",
	.arguments = "",
	.summary = "Plain",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.max_arguments = -1,
	.go_style = true,
	.interspersed = true,
};
static const struct graft_command bundling = {
	.name = "bundling",
	.arguments = "",
	.summary = "Bundling",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.max_arguments = -1,
	.go_style = true,
	.interspersed = true,
	.bundled = true,
	.subcommands = children,
};

struct row {
	const struct graft_command *command;
	const char *words;
	const char *uses; /* then positional words: "arg:x;" */
	const char *message;
	enum graft_parse_result result;
};

static const struct row rows[] = {
	/* further names */
	{ &plain, "--config-file a --config b -config=c -c d -c=e -C f",
	  "c:config-file=a;c:config-file=b;c:config-file=c;c:config-file=d;c:config-file=e;c:config-file=f;", "",
	  GRAFT_PARSE_OK },
	{ &plain, "--c x --o=y", "c:config-file=x;c:output=y;", "", GRAFT_PARSE_OK },
	{ &plain, "--confi x", "", "flag provided but not defined: -confi", GRAFT_PARSE_WRONG },
	{ &plain, "--config", "", "flag needs an argument: --config", GRAFT_PARSE_WRONG },
	{ &plain, "-o", "", "flag needs an argument: -o", GRAFT_PARSE_WRONG },
	{ &plain, "--=x", "", "flag provided but not defined: -", GRAFT_PARSE_WRONG },
	{ &plain, "-o=", "c:output=;", "", GRAFT_PARSE_OK },
	/* what the program has, too */
	{ &plain, "-d -i --debug=false", "r:debug;c:in-place;r:debug=false;", "", GRAFT_PARSE_OK },
	{ &program, "-d --config x y --debug", "c:debug;c:config=x;arg:y;arg:--debug;", "", GRAFT_PARSE_OK },
	/* help and version */
	{ &plain, "-i --help --bad", "c:in-place;", "", GRAFT_PARSE_HELP },
	{ &plain, "-h", "", "", GRAFT_PARSE_HELP },
	{ &plain, "--version", "", "flag provided but not defined: -version", GRAFT_PARSE_WRONG },
	{ &plain, "-?", "", "flag provided but not defined: -?", GRAFT_PARSE_WRONG },
	{ &program, "--version", "", "", GRAFT_PARSE_VERSION },
	{ &program, "-v", "", "", GRAFT_PARSE_VERSION },
	/* positional words anywhere; "-" is one; "--" ends the options */
	{ &plain, "x -i - --output=y z", "c:in-place;c:output=y;arg:x;arg:-;arg:z;", "", GRAFT_PARSE_OK },
	{ &plain, "x -- -i", "arg:x;arg:-i;", "", GRAFT_PARSE_OK },
	/* a sub-command's name takes the rest, where it stands first */
	{ &bundling, "-i default -o x", "c:in-place;arg:default;arg:-o;arg:x;", "", GRAFT_PARSE_OK },
	{ &bundling, "-i make-default -o x", "c:in-place;arg:make-default;arg:-o;arg:x;", "", GRAFT_PARSE_OK },
	{ &bundling, "x default -o y", "c:output=y;arg:x;arg:default;", "", GRAFT_PARSE_OK },
	{ &plain, "default -o y", "c:output=y;arg:default;", "", GRAFT_PARSE_OK },
	/* bundles */
	{ &bundling, "-io x", "c:in-place;c:output=x;", "", GRAFT_PARSE_OK },
	{ &bundling, "-dio=x y", "r:debug;c:in-place;c:output=x;arg:y;", "", GRAFT_PARSE_OK },
	{ &bundling, "-ih --bad", "c:in-place;", "", GRAFT_PARSE_HELP },
	{ &bundling, "-iz", "", "flag provided but not defined: -iz", GRAFT_PARSE_WRONG },
	{ &bundling, "-zi", "", "flag provided but not defined: -zi", GRAFT_PARSE_WRONG },
	{ &bundling, "-oi x", "", "flag needs an argument: -o", GRAFT_PARSE_WRONG },
	{ &bundling, "-io", "c:in-place;", "flag needs an argument: -o", GRAFT_PARSE_WRONG },
	{ &bundling, "--io x", "", "flag provided but not defined: -io", GRAFT_PARSE_WRONG },
	{ &bundling, "-id=refused", "c:in-place;", "no", GRAFT_PARSE_OK },
	{ &plain, "-io x", "", "flag provided but not defined: -io", GRAFT_PARSE_WRONG },
};

static int split(char *words, char **argv)
{
	int argc = 0;

	for (char *word = strsep(&words, " "); word && argc < MAX_WORDS - 1; word = strsep(&words, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	return argc;
}

/* "NAME=value" for each defined variable. */
static const char *const *environment;

static const char *variable(const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; environment && environment[i]; i++) {
		if (strncmp(environment[i], name, length) == 0 && environment[i][length] == '=')
			return environment[i] + length + 1;
	}
	return NULL;
}

/* What was sent to the scope, in the form of `record`. */
static void note(void *arg, const struct graft_option *option, const char *value)
{
	graft_buffer_printf(arg, "c:%s%s%s;", option->name, value ? "=" : "", value ? value : "");
}

/* The uses of the command's own options are what was noted. */
static void assert_noted(const char *uses, const char *noted)
{
	for (; *uses != '\0'; uses += strcspn(uses, ";") + 1) {
		size_t length = strcspn(uses, ";") + 1;

		if (strncmp(uses, "c:", 2) != 0)
			continue;
		assert_memory_equal(noted, uses, length);
		noted += length;
	}
	assert_string_equal(noted, "");
}

static void check(const struct row *row)
{
	auto_free char *copy = strdup(row->words);
	char *argv[MAX_WORDS + 1] = { (char *)(uintptr_t) "prog" };
	struct graft_buffer uses = { .max = 0 }, noted = { .max = 0 };
	struct target own = { 'c', &uses, false }, inherited = { 'r', &uses, false };
	const struct graft_options_scope scope = { row->command == &program ? NULL : &program, &inherited, variable,
						   note, &noted };
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };
	int argc, first = 0, rc;

	assert_non_null(copy);
	argc = 1 + (row->words[0] != '\0' ? split(copy, argv + 1) : 0);
	rc = graft_options_parse_in(&scope, row->command, argc, argv, &own, &first, &result, &err);
	for (int i = first; rc == 0 && result == GRAFT_PARSE_OK && i < argc; i++)
		graft_buffer_printf(&uses, "arg:%s;", argv[i]);
	if (strcmp(err.msg, row->message) != 0 || strcmp(graft_buffer_text(&uses), row->uses) != 0)
		print_message("# '%s'\n", row->words);
	assert_string_equal(err.msg, row->message);
	assert_int_equal(rc, row->message[0] != '\0' ? -1 : 0);
	assert_int_equal(result, row->result);
	assert_string_equal(graft_buffer_text(&uses), row->uses);
	if (rc == 0 && row->command != &program)
		assert_noted(graft_buffer_text(&uses), graft_buffer_text(&noted));
	graft_buffer_done(&uses);
	graft_buffer_done(&noted);
}

static void test_words(void **state)
{
	environment = NULL;
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		check(&rows[i]);
}

static void test_variables(void **state)
{
	static const struct {
		const char *environment[4];
		struct row row;
	} cases[] = {
		{ { "OUTPUT=x" }, { &plain, "", "c:output=x;", "", GRAFT_PARSE_OK } },
		{ { "OUTPUT=x" }, { &plain, "y", "c:output=x;arg:y;", "", GRAFT_PARSE_OK } },
		/* an option that was given, the variable is not looked at, right or wrong */
		{ { "OUTPUT=refused" }, { &plain, "--output=y", "c:output=y;", "", GRAFT_PARSE_OK } },
		/* an empty one is set, and for a flag false */
		{ { "OUTPUT=", "IN_PLACE=" }, { &plain, "", "c:in-place=false;c:output=;", "", GRAFT_PARSE_OK } },
		/* the first that is defined */
		{ { "IN_PLACE=true", "NEW_IN_PLACE=0" }, { &plain, "", "c:in-place=0;", "", GRAFT_PARSE_OK } },
		{ { "IN_PLACE=true", "NEW_IN_PLACE=" }, { &plain, "", "c:in-place=false;", "", GRAFT_PARSE_OK } },
		{ { "OUTPUT=refused" },
		  { &plain, "x", "",
		    "could not parse \"refused\" as string value from environment variable \"OUTPUT\" for flag output: "
		    "no",
		    GRAFT_PARSE_OK } },
		{ { "IN_PLACE=refused" },
		  { &plain, "", "",
		    "could not parse \"refused\" as bool value from environment variable \"IN_PLACE\" for flag "
		    "in-place: no",
		    GRAFT_PARSE_OK } },
		/* the program's own are read with the program's words, not again with a command's */
		{ { "DEBUG=1", "CONFIG=f" }, { &program, "", "c:debug=1;c:config=f;", "", GRAFT_PARSE_OK } },
		{ { "DEBUG=1", "CONFIG=f" }, { &plain, "", "", "", GRAFT_PARSE_OK } },
		/* help does not mention variables */
		{ { "OUTPUT=refused" }, { &plain, "--help", "", "", GRAFT_PARSE_HELP } },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		environment = cases[i].environment;
		check(&cases[i].row);
	}
	environment = NULL;
}

static void test_find_command(void **state)
{
	assert_ptr_equal(graft_options_find_command(&bundling, "default"), &child);
	assert_ptr_equal(graft_options_find_command(&bundling, "make-default"), &child);
	assert_ptr_equal(graft_options_find_command(&bundling, "d"), &child);
	assert_null(graft_options_find_command(&bundling, "defaults"));
	assert_null(graft_options_find_command(&bundling, ""));
	assert_null(graft_options_find_command(&plain, "default"));
}

/* One bit each: more options than that are a defect of a table, which must not go unseen. */
static void test_too_many_options(void **state)
{
	static const struct graft_option many[65] = { { .name = "x", .help = "x", .parse = record } };
	const struct graft_command command = {
		.name = "many", .arguments = "", .summary = "", .options = many, .n_options = 65, .go_style = true
	};
	char *argv[] = { (char *)(uintptr_t) "prog", NULL };
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };
	int first = 0;

	assert_int_equal(graft_options_parse(&command, 1, argv, NULL, &first, &result, &err), -1);
	assert_int_equal(err.status, GRAFT_INTERNAL);
}

static void test_help_tells_names_and_variables(void **state)
{
	static const struct graft_command hidden = {
		.name = "secret", .arguments = "", .summary = "Secret", .hidden = true
	};
	const struct graft_command *const shown[] = { &child, &hidden, NULL };
	struct graft_command command = bundling;
	struct graft_buffer text = { .max = 0 };

	command.subcommands = shown;
	graft_options_help(&command, "prog bundling", &text);
	assert_string_equal(graft_buffer_text(&text),
			    "Usage: prog bundling [OPTION...]\n"
			    "Bundling\n\n"
			    " Commands:\n"
			    "  default                    Defaults\n\n"
			    " Options:\n"
			    "  -c, --config-file=FILE     File (also --config, -C)\n"
			    "  -i, --in-place             In place [$NEW_IN_PLACE, $IN_PLACE]\n"
			    "  -o, --output=FILE          Output [$OUTPUT]\n\n"
			    "  -h, --help                 Show help\n\n"
			    "Mandatory or optional arguments to long options are also mandatory or optional\n"
			    "for any corresponding short options.\n");
	graft_buffer_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_find_command),
		cmocka_unit_test(test_too_many_options),
		cmocka_unit_test(test_help_tells_names_and_variables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
