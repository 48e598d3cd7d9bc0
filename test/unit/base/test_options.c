/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options against glibc's argp: each row of words is parsed by both, and the uses in order, the positional arguments and the bytes on
 * stderr must be the same. Where argp has no say (hidden options, Go's style) the row states what is expected.
 */
#include <argp.h>
#include <ctype.h>
#include <fcntl.h>
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/options.h"
#include "base/options_table.h"

/* argp itself leaks a byte or two for a parser without options. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#else
static void __lsan_disable(void)
{
}
static void __lsan_enable(void)
{
}
#endif

#define MAX_WORDS 16

struct values {
	bool flag;
	const char *text;
	struct graft_buffer uses; /* "debug=x;load-kmods;arg:info" */
};

static int record(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct values *values = target;

	if (value && strcmp(value, "refused") == 0)
		return graft_fail(err, GRAFT_INVALID, 0, "input error: refused");
	graft_buffer_string(&values->uses, option->name);
	if (value)
		graft_buffer_printf(&values->uses, "=%s", value);
	graft_buffer_char(&values->uses, ';');
	return 0;
}

static const struct graft_option options[] = {
	{ "debug", 'd', GRAFT_OPTION_REQUIRED, "FILE", false, "Write a debug log to FILE", record, 0, NULL, NULL },
	{ "load-kmods", 'k', GRAFT_OPTION_FLAG, NULL, false, "Load the kernel modules", record, 0, NULL, NULL },
	{ "ldcache", 'l', GRAFT_OPTION_REQUIRED, "FILE", false, "Path of the dynamic linker's cache below the root",
	  record, 0, NULL, NULL },
	{ "user", 'u', GRAFT_OPTION_OPTIONAL, "UID[:GID]", false,
	  "Identity of the helper that loads the driver's library, for those who do not like the usual one", record, 0,
	  NULL, NULL },
	{ "no-create-imex-channels", 0, GRAFT_OPTION_FLAG, NULL, false, "Do not create nodes of IMEX channels", record,
	  0, NULL, NULL },
	{ "nvml-timeout-of-very-long-name", 0, GRAFT_OPTION_REQUIRED, "SECONDS", false, "Do not wait longer", record, 0,
	  NULL, NULL },
	{ "display", 'D', GRAFT_OPTION_FLAG, NULL, false, "A capital letter", record, 0, NULL, NULL },
	{ "dir", 0, GRAFT_OPTION_OPTIONAL, "A", false, "Exactly at the column..", record, 0, NULL, NULL },
	{ "debug-more", 0, GRAFT_OPTION_FLAG, NULL, false, "Another beginning with debug", record, 0, NULL, NULL },
	{ "hidden", 'h', GRAFT_OPTION_FLAG, NULL, true, "Not shown", record, 0, NULL, NULL },
};

static const struct graft_command global = {
	.name = "prog",
	.arguments = "COMMAND [ARG...]",
	.summary = "Does this and that, in so many words that the line has to be wrapped somewhere near its end",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.min_arguments = 1,
	.max_arguments = -1,
	.stop_at_first_argument = true,
	.abbreviations = true,
};
static const struct graft_command permuted = {
	.name = "prog",
	.arguments = "ROOTFS",
	.summary = "Does one thing",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.min_arguments = 1,
	.max_arguments = 1,
	.abbreviations = true,
};
static const struct graft_command bare = {
	.name = "prog",
	.arguments = "",
	.summary = "Has no options",
	.max_arguments = 0,
	.abbreviations = true,
};

static int split(char *words, char **argv)
{
	int argc = 0;

	for (char *word = strsep(&words, " "); word && argc < MAX_WORDS - 1; word = strsep(&words, " ")) {
		if (strcmp(word, "''") == 0)
			*word = '\0';
		argv[argc++] = word;
	}
	argv[argc] = NULL;
	return argc;
}

/* ---- argp, driven by the same tables ---- */

struct oracle {
	const struct graft_command *command;
	struct values values;
	unsigned int n_arguments;
	int n_used; /* options met so far that end the parse */
	bool stop;
};

static error_t oracle_key(int key, char *arg, struct argp_state *state)
{
	struct oracle *oracle = state->input;
	const struct graft_command *command = oracle->command;

	if (key == ARGP_KEY_ARG) {
		if (command->max_arguments >= 0 && state->arg_num >= (unsigned int)command->max_arguments) {
			argp_error(state, "Too many arguments");
			return EINVAL;
		}
		graft_buffer_printf(&oracle->values.uses, "arg:%s;", arg);
		oracle->n_arguments++;
		if (command->stop_at_first_argument) {
			for (int i = state->next; i < state->argc; i++)
				graft_buffer_printf(&oracle->values.uses, "arg:%s;", state->argv[i]);
			state->next = state->argc;
		}
		return 0;
	}
	if (key == ARGP_KEY_END && oracle->n_arguments < (unsigned int)command->min_arguments) {
		argp_usage(state);
		return EINVAL;
	}
	if (key < 0x100000 && key > 0) {
		for (size_t i = 0; i < command->n_options; i++) {
			struct graft_error err;

			if (key == (command->options[i].letter != 0 ? command->options[i].letter : 0x1000 + (int)i))
				return command->options[i].parse(&oracle->values, &command->options[i], arg, &err);
		}
	}
	return ARGP_ERR_UNKNOWN;
}

static void make_argp_options(const struct graft_command *command, struct argp_option *out)
{
	size_t n = 0;

	if (command->n_options > 0)
		out[n++] = (struct argp_option){ .doc = "Options:" };
	for (size_t i = 0; i < command->n_options; i++) {
		const struct graft_option *option = &command->options[i];

		out[n++] = (struct argp_option){
			.name = option->name,
			.key = option->letter != 0 ? option->letter : 0x1000 + (int)i,
			.arg = option->value_name,
			.flags = (option->hidden ? OPTION_HIDDEN : 0) |
				 (option->argument == GRAFT_OPTION_OPTIONAL ? OPTION_ARG_OPTIONAL : 0),
			.doc = option->help,
		};
	}
	out[n] = (struct argp_option){ 0 };
}

__attribute__((visibility("default"))) const char *argp_program_version = "version";

/* Runs `call` with stderr going to a file; the text is in `text`. */
struct capture {
	int saved, fd;
};
static struct capture capture_begin(int target)
{
	struct capture capture = { .saved = fcntl(target, F_DUPFD_CLOEXEC, 3),
				   .fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) };

	assert_true(capture.saved >= 0 && capture.fd >= 0);
	(void)fflush(NULL);
	assert_true(dup2(capture.fd, target) >= 0);
	return capture;
}
static void capture_end(struct capture *capture, int target, char *text, size_t size)
{
	ssize_t n;

	(void)fflush(NULL);
	assert_true(dup2(capture->saved, target) >= 0);
	n = pread(capture->fd, text, size - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	(void)close(capture->fd);
	(void)close(capture->saved);
}

static const struct graft_command *const commands[] = { &global, &permuted, &bare };
enum { GLOBAL, PERMUTED, BARE };

static const struct {
	int command;
	const char *words;
} rows[] = {
	{ GLOBAL, "info" },
	{ GLOBAL, "" },
	{ GLOBAL, "-k info" },
	{ GLOBAL, "-k -d file info -x --bad" },
	{ GLOBAL, "-kd file info" },
	{ GLOBAL, "-kdfile info" },
	{ GLOBAL, "-dk info" },
	{ GLOBAL, "-d" },
	{ GLOBAL, "-kd" },
	{ GLOBAL, "-u info" },
	{ GLOBAL, "-u0:0 info" },
	{ GLOBAL, "-u=x info" },
	{ GLOBAL, "-ku info" },
	{ GLOBAL, "-uk info" },
	{ GLOBAL, "--user info" },
	{ GLOBAL, "--user=0:0 info" },
	{ GLOBAL, "--user= info" },
	{ GLOBAL, "--debug=file info" },
	{ GLOBAL, "--debug file info" },
	{ GLOBAL, "--debug= info" },
	{ GLOBAL, "--debug '' info" },
	{ GLOBAL, "--debug" },
	{ GLOBAL, "--debug -k info" },
	{ GLOBAL, "--debug -- info" },
	{ GLOBAL, "--debu x info" },
	{ GLOBAL, "--debug-m info" },
	{ GLOBAL, "--ld=x info" },
	{ GLOBAL, "--l=x info" },
	{ GLOBAL, "--loa info" },
	{ GLOBAL, "--load-kmods=1 info" },
	{ GLOBAL, "--loa=1 info" },
	{ GLOBAL, "--us info" },
	{ GLOBAL, "--n info" },
	{ GLOBAL, "--unknown info" },
	{ GLOBAL, "--unknown=1 info" },
	{ GLOBAL, "-x info" },
	{ GLOBAL, "-kx info" },
	{ GLOBAL, "-- -k" },
	{ GLOBAL, "--" },
	{ GLOBAL, "-k -- info -k" },
	{ GLOBAL, "- x" },
	{ GLOBAL, "'' x" },
	{ GLOBAL, "-D info" },
	{ GLOBAL, "--DEBUG x" },
	{ PERMUTED, "/root" },
	{ PERMUTED, "" },
	{ PERMUTED, "/root -k" },
	{ PERMUTED, "-k /root -d x" },
	{ PERMUTED, "/root -k -- " },
	{ PERMUTED, "-k -- /root" },
	{ PERMUTED, "-- /root -k" },
	{ PERMUTED, "/root /other" },
	{ PERMUTED, "/root /other --bad" },
	{ PERMUTED, "/root -d" },
	{ PERMUTED, "-d x -d y -k /root -l z -u" },
	{ PERMUTED, "- -k" },
	{ BARE, "" },
	{ BARE, "x" },
	{ BARE, "-k" },
	{ BARE, "--" },
	{ BARE, "-- x" },
};

/* The uses and the positional arguments as one text, and what a person reads. */
static void run_ours(const struct graft_command *command, const char *words, struct values *values,
		     struct graft_buffer *complaint)
{
	auto_free char *copy = strdup(words);
	char *argv[MAX_WORDS + 1] = { (char *)(uintptr_t) "prog" };
	int argc, first = 0, rc;
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };

	assert_non_null(copy);
	argc = 1 + (words[0] != '\0' ? split(copy, argv + 1) : 0);
	rc = graft_options_parse(command, argc, argv, values, &first, &result, &err);
	for (int i = first; rc == 0 && i < argc; i++)
		graft_buffer_printf(&values->uses, "arg:%s;", argv[i]);
	if (rc < 0)
		graft_options_complain(command, "prog", result, &err, complaint);
}

/* Takes out the line that argp does not have, "Did you mean ...". */
static void drop_suggestion(struct graft_buffer *complaint)
{
	char *line = complaint->bytes ? strstr(complaint->bytes, "\nDid you mean '--") : NULL;
	char *next = line ? strchr(line + 1, '\n') : NULL;

	if (next)
		memmove(line, next, strlen(next) + 1);
}

static void run_argp(const struct graft_command *command, const char *words, struct oracle *oracle, char *complaint,
		     size_t size)
{
	auto_free char *copy = strdup(words);
	char *argv[MAX_WORDS + 1] = { (char *)(uintptr_t) "prog" };
	struct argp_option argp_options[GRAFT_COUNT(options) + 2];
	struct argp argp = { argp_options,
			     oracle_key,
			     command->arguments[0] != '\0' ? command->arguments : NULL,
			     command->summary,
			     NULL,
			     NULL,
			     NULL };
	unsigned int flags = ARGP_NO_EXIT | (command->stop_at_first_argument ? ARGP_IN_ORDER : 0);
	struct capture capture;
	int argc;

	assert_non_null(copy);
	argc = 1 + (words[0] != '\0' ? split(copy, argv + 1) : 0);
	oracle->command = command;
	make_argp_options(command, argp_options);
	capture = capture_begin(2);
	__lsan_disable();
	(void)argp_parse(&argp, argc, argv, flags, NULL, oracle);
	__lsan_enable();
	capture_end(&capture, 2, complaint, size);
}

static void test_rows_as_argp(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_command *command = commands[rows[i].command];
		struct values values = { .flag = false };
		struct graft_buffer complaint = { .max = 0 };
		struct oracle oracle = { .stop = false };
		char expected[4096];

		run_argp(command, rows[i].words, &oracle, expected, sizeof(expected));
		run_ours(command, rows[i].words, &values, &complaint);
		drop_suggestion(&complaint);
		if (strcmp(expected, graft_buffer_text(&complaint)) != 0)
			print_message("# row %zu: '%s'\n", i, rows[i].words);
		assert_string_equal(graft_buffer_text(&complaint), expected);
		if (expected[0] == '\0')
			assert_string_equal(graft_buffer_text(&values.uses), graft_buffer_text(&oracle.values.uses));
		graft_buffer_done(&complaint);
		graft_buffer_done(&values.uses);
		graft_buffer_done(&oracle.values.uses);
	}
}

static void test_builtin_options_stop_the_parse(void **state)
{
	static const struct {
		const char *words;
		enum graft_parse_result result;
	} stops[] = {
		{ "--help", GRAFT_PARSE_HELP },   { "-?", GRAFT_PARSE_HELP },
		{ "--he", GRAFT_PARSE_HELP },     { "-k --help --bad", GRAFT_PARSE_HELP },
		{ "--usage", GRAFT_PARSE_USAGE }, { "--version", GRAFT_PARSE_VERSION },
		{ "-V", GRAFT_PARSE_VERSION },    { "-kV", GRAFT_PARSE_VERSION },
		{ "-V?", GRAFT_PARSE_VERSION },
	};

	for (size_t i = 0; i < GRAFT_COUNT(stops); i++) {
		auto_free char *copy = strdup(stops[i].words);
		char *argv[MAX_WORDS + 1] = { (char *)(uintptr_t) "prog" };
		struct values values = { .flag = false };
		enum graft_parse_result result = GRAFT_PARSE_OK;
		struct graft_error err = { .status = GRAFT_OK };
		int first = 0;

		assert_non_null(copy);
		assert_int_equal(
		    graft_options_parse(&permuted, 1 + split(copy, argv + 1), argv, &values, &first, &result, &err), 0);
		assert_int_equal(result, stops[i].result);
		graft_buffer_done(&values.uses);
	}
}

static void test_texts_as_argp(void **state)
{
	static const struct {
		unsigned int flags;
		void (*make)(const struct graft_command *command, const char *program, struct graft_buffer *out);
	} texts[] = {
		{ ARGP_HELP_STD_HELP & ~(unsigned int)ARGP_HELP_EXIT_OK, graft_options_help },
		{ ARGP_HELP_USAGE, graft_options_usage },
	};

	/* argp_help() leaves out --help and its kin, argp_parse() does not. */
	for (size_t i = 0; i < 2 * GRAFT_COUNT(commands); i++) {
		const struct graft_command *command = commands[i / 2];
		struct argp_option argp_options[GRAFT_COUNT(options) + 2];
		struct argp argp = { argp_options,
				     oracle_key,
				     command->arguments[0] != '\0' ? command->arguments : NULL,
				     command->summary,
				     NULL,
				     NULL,
				     NULL };
		struct oracle oracle = { .command = command };
		char help[] = "--help", usage[] = "--usage", name[] = "prog";
		char *argv[] = { name, i % 2 == 0 ? help : usage, NULL };
		struct graft_buffer ours = { .max = 0 };
		struct capture capture;
		char expected[8192];

		make_argp_options(command, argp_options);
		capture = capture_begin(1);
		__lsan_disable();
		(void)argp_parse(&argp, 2, argv, ARGP_NO_EXIT, NULL, &oracle);
		__lsan_enable();
		capture_end(&capture, 1, expected, sizeof(expected));
		/* without exit argp goes on to complain about missing arguments: on stderr */
		texts[i % 2].make(command, "prog", &ours);
		if (strcmp(graft_buffer_text(&ours), expected) != 0)
			print_message("# argp prints:\n%s# we print:\n%s", expected, graft_buffer_text(&ours));
		assert_string_equal(graft_buffer_text(&ours), expected);
		graft_buffer_done(&ours);
		graft_buffer_done(&oracle.values.uses);
	}
}

/* One row: words, uses, error message ("" = none). */
struct expectation {
	const char *words;
	const char *uses;
	const char *message;
	enum graft_parse_result result;
};

static void check(const struct graft_command *command, const struct expectation *row)
{
	auto_free char *copy = strdup(row->words);
	char *argv[MAX_WORDS + 1] = { (char *)(uintptr_t) "prog" };
	struct values values = { .flag = false };
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };
	int argc, first = 0, rc;

	assert_non_null(copy);
	argc = 1 + split(copy, argv + 1);
	rc = graft_options_parse(command, argc, argv, &values, &first, &result, &err);
	for (int i = first; rc == 0 && i < argc; i++)
		graft_buffer_printf(&values.uses, "arg:%s;", argv[i]);
	assert_int_equal(rc, row->message[0] != '\0' ? -1 : 0);
	assert_string_equal(err.msg, row->message);
	assert_int_equal(result, row->result);
	if (rc == 0)
		assert_string_equal(graft_buffer_text(&values.uses), row->uses);
	graft_buffer_done(&values.uses);
}

static void test_hidden_options_need_their_whole_name(void **state)
{
	static const struct expectation hidden[] = {
		{ "--hidden x", "hidden;arg:x;", "", GRAFT_PARSE_OK },
		{ "-h x", "hidden;arg:x;", "", GRAFT_PARSE_OK },
		{ "--hid x", "", "unrecognized option '--hid'", GRAFT_PARSE_WRONG },
		{ "--h", "", "", GRAFT_PARSE_HELP },
	};

	for (size_t i = 0; i < GRAFT_COUNT(hidden); i++)
		check(&permuted, &hidden[i]);
}

static void test_refused_value_speaks_for_itself(void **state)
{
	static const struct expectation refused[] = {
		{ "x --debug=refused --bad", "", "input error: refused", GRAFT_PARSE_OK },
		{ "-kdrefused x", "", "input error: refused", GRAFT_PARSE_OK },
	};

	for (size_t i = 0; i < GRAFT_COUNT(refused); i++)
		check(&permuted, &refused[i]);
}

static void test_go_style(void **state)
{
	static const struct graft_option go_options[] = {
		{ "debug", 0, GRAFT_OPTION_FLAG, NULL, false, "Debug", record, 0, NULL, NULL },
		{ "device", 'd', GRAFT_OPTION_REQUIRED, "ID", false, "Device", record, 0, NULL, NULL },
	};
	static const struct graft_command go = {
		.name = "prog",
		.arguments = "",
		.summary = "Go",
		.options = go_options,
		.n_options = GRAFT_COUNT(go_options),
		.max_arguments = -1,
		.stop_at_first_argument = true,
		.go_style = true,
	};
	static const struct expectation rows_go[] = {
		{ "-device all -debug", "device=all;debug;", "", GRAFT_PARSE_OK },
		{ "--device=all --debug=false x", "device=all;debug=false;arg:x;", "", GRAFT_PARSE_OK },
		{ "-d 0 -d=1", "device=0;device=1;", "", GRAFT_PARSE_OK },
		{ "x -debug", "arg:x;arg:-debug;", "", GRAFT_PARSE_OK },
		{ "-- -debug", "arg:-debug;", "", GRAFT_PARSE_OK },
		{ "-devic x", "", "flag provided but not defined: -devic", GRAFT_PARSE_WRONG },
		{ "--devic=x", "", "flag provided but not defined: -devic", GRAFT_PARSE_WRONG },
		{ "-device", "", "flag needs an argument: -device", GRAFT_PARSE_WRONG },
		{ "--device", "", "flag needs an argument: --device", GRAFT_PARSE_WRONG },
		{ "-h", "", "", GRAFT_PARSE_HELP },
		{ "-help", "", "", GRAFT_PARSE_HELP },
		{ "-version", "", "", GRAFT_PARSE_VERSION },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows_go); i++)
		check(&go, &rows_go[i]);
}

static void test_ready_made_parsers(void **state)
{
	const struct graft_option flag = { .name = "flag", .offset = offsetof(struct values, flag) };
	const struct graft_option text = { .name = "text", .offset = offsetof(struct values, text) };
	struct values values = { .flag = false };
	struct graft_error err;

	assert_int_equal(graft_option_set_true(&values, &flag, NULL, &err), 0);
	assert_true(values.flag);
	assert_int_equal(graft_option_set_true(&values, &flag, "False", &err), 0);
	assert_false(values.flag);
	assert_int_equal(graft_option_set_true(&values, &flag, "yes", &err), -1);
	assert_string_equal(err.msg, "invalid boolean value 'yes' for --flag");
	assert_int_equal(graft_option_set_string(&values, &text, "v", &err), 0);
	assert_string_equal(values.text, "v");
}

static void test_program_without_words(void **state)
{
	char *argv[] = { NULL };
	struct values values = { .flag = false };
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err;
	int first = 0;

	assert_int_equal(graft_options_parse(&global, 0, argv, &values, &first, &result, &err), -1);
	assert_int_equal(result, GRAFT_PARSE_MISSING);
	assert_int_equal(graft_options_parse(&bare, 0, argv, &values, &first, &result, &err), 0);
}

/* A message longer than the error holds is cut, not overrun. */
static void test_huge_words(void **state)
{
	auto_free char *word = malloc(100001);
	char *argv[] = { NULL, word, NULL };
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct values values = { .flag = false };
	struct graft_error err;
	int first = 0;

	assert_non_null(word);
	memset(word, 'x', 100000);
	word[0] = word[1] = '-';
	word[100000] = '\0';
	argv[0] = word;
	assert_int_equal(graft_options_parse(&global, 2, argv, &values, &first, &result, &err), -1);
	assert_memory_equal(err.msg, "unrecognized option '--xxx", 26);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_as_argp),
		cmocka_unit_test(test_builtin_options_stop_the_parse),
		cmocka_unit_test(test_texts_as_argp),
		cmocka_unit_test(test_hidden_options_need_their_whole_name),
		cmocka_unit_test(test_refused_value_speaks_for_itself),
		cmocka_unit_test(test_go_style),
		cmocka_unit_test(test_ready_made_parsers),
		cmocka_unit_test(test_program_without_words),
		cmocka_unit_test(test_huge_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
