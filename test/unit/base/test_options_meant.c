/* SPDX-License-Identifier: Apache-2.0 */
/* What was probably meant by a command, an option or a value that is not in the tables; and how that is printed. */
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/options.h"

static const char *const styles[] = { "namespace", "oci", NULL };

static int parse_style(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	return strcmp(value, "oci") == 0 ? 0 : graft_fail(err, GRAFT_INVALID, 0, "unsupported style: %s", value);
}

static const struct graft_option options[] = {
	{ .name = "driver-root",
	  .aliases = (const char *const[]){ "r", "library-path", NULL },
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "DIR",
	  .help = "Root",
	  .parse = graft_option_set_string },
	{ .name = "style",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "STYLE",
	  .help = "The style",
	  .parse = parse_style,
	  .values = styles },
	{ .name = "format",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "F",
	  .help = "json or yaml",
	  .parse = graft_option_set_string,
	  .values = (const char *const[]){ "json", "yaml", NULL } },
	{ .name = "secret", .hidden = true, .help = "", .parse = graft_option_set_true },
};
static const struct graft_option root_options[] = {
	{ .name = "debug",
	  .aliases = (const char *const[]){ "talkative", NULL },
	  .help = "Debug",
	  .parse = graft_option_set_true },
};
static const struct graft_command generate = { .name = "generate",
					       .aliases = (const char *const[]){ "create", NULL },
					       .arguments = "",
					       .summary = "Make",
					       .options = options,
					       .n_options = GRAFT_COUNT(options) };
static const struct graft_command hidden = { .name = "hook", .arguments = "", .summary = "Hook", .hidden = true };
static const struct graft_command *const commands[] = { &generate, &hidden, NULL };
static const struct graft_command root = { .name = "prog",
					   .arguments = "",
					   .summary = "Prog",
					   .options = root_options,
					   .n_options = GRAFT_COUNT(root_options),
					   .subcommands = commands };

static void test_options(void **state)
{
	static const struct {
		const char *message, *meant;
	} rows[] = {
		{ "unrecognized option '--driver-rot'", "driver-root" },
		{ "unrecognized option '--driver_root=/x'", "driver-root" },
		{ "flag provided but not defined: -driverroot", "driver-root" },
		{ "flag provided but not defined: -debgu", "debug" },
		{ "unrecognized option '--libary-path=/x'", "library-path" },
		{ "flag provided but not defined: -talkativ", "talkative" },
		{ "unrecognized option '--elephant'", NULL },
		{ "unrecognized option '--secrte'", NULL },
		/* Any two single letters are close. */
		{ "flag provided but not defined: -x", NULL },
		{ "flag provided but not defined: -rx", NULL },
		{ "option '--style' requires an argument", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_INVALID };
		const char *meant;

		(void)graft_fail(&err, GRAFT_INVALID, 0, "%s", rows[i].message);
		meant = graft_options_meant_option(&generate, &root, &err);
		if (rows[i].meant ? !meant || strcmp(meant, rows[i].meant) != 0 : meant != NULL)
			fail_msg("%s: %s", rows[i].message, meant ? meant : "nothing");
	}
}

static void test_suggestions(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };

	(void)graft_fail(&err, GRAFT_INVALID, 0, "flag provided but not defined: -styel");
	graft_options_suggest_option(&generate, &err);
	assert_string_equal(err.msg, "flag provided but not defined: -styel (did you mean '--style'?)");
	(void)graft_fail(&err, GRAFT_INVALID, 0, "flag provided but not defined: -elephant");
	graft_options_suggest_option(&generate, &err);
	assert_string_equal(err.msg, "flag provided but not defined: -elephant");
}

static void test_commands_and_values(void **state)
{
	assert_string_equal(graft_options_meant_command(&root, "genexate"), "generate");
	assert_string_equal(graft_options_meant_command(&root, "gen"), "generate");
	assert_string_equal(graft_options_meant_command(&root, "creat"), "create");
	assert_null(graft_options_meant_command(&root, "hok"));
	assert_null(graft_options_meant_command(&generate, "x"));
	assert_string_equal(graft_options_meant_value(&options[1], "namespaces"), "namespace");
	assert_null(graft_options_meant_value(&options[1], "oci"));
	assert_null(graft_options_meant_value(&options[1], "elephant"));
	assert_null(graft_options_meant_value(&options[0], "x"));
}

/* A value that an option's own parser refuses. */
static void test_refused_value(void **state)
{
	char word[] = "x", near[] = "--style=ocl", *argv[] = { word, near, NULL };
	char other[] = "--style=elephant", *far[] = { word, other, NULL };
	enum graft_parse_result result;
	struct graft_error err = { .status = GRAFT_OK };
	int first;

	assert_int_equal(graft_options_parse(&generate, 2, argv, NULL, &first, &result, &err), -1);
	assert_string_equal(err.msg, "unsupported style: ocl (did you mean 'oci'?)");
	assert_int_equal(graft_options_parse(&generate, 2, far, NULL, &first, &result, &err), -1);
	assert_string_equal(err.msg, "unsupported style: elephant");
}

static void test_texts(void **state)
{
	struct graft_buffer text = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };

	(void)graft_fail(&err, GRAFT_INVALID, 0, "unrecognized option '--styel'");
	graft_options_complain(&generate, "prog generate", GRAFT_PARSE_WRONG, &err, &text);
	assert_string_equal(graft_buffer_text(&text),
			    "prog generate: unrecognized option '--styel'\n"
			    "Did you mean '--style'?\n"
			    "Try `prog generate --help' or `prog generate --usage' for more information.\n");
	graft_buffer_done(&text);
	/* The values are in the help, once. */
	graft_options_help(&generate, "prog generate", &text);
	assert_non_null(strstr(graft_buffer_text(&text), "The style: namespace, oci\n"));
	assert_non_null(strstr(graft_buffer_text(&text), "json or yaml\n"));
	graft_buffer_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_suggestions),
		cmocka_unit_test(test_commands_and_values),
		cmocka_unit_test(test_refused_value),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests_name("options_meant", tests, NULL, NULL);
}
