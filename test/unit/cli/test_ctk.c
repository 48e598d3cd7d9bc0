/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of nvidia-ctk share: lists, words, variables, levels of the log; each allocation fails once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "base/cleanup.h"
#include "cli/ctk/ctk.h"

struct options {
	struct ctk_base base;
	struct ctk_list list;
	const char *text;
	bool flag;
};

static const struct graft_option table[] = {
	{ .name = "list",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "ITEM",
	  .help = "A list",
	  .parse = ctk_option_list,
	  .offset = offsetof(struct options, list),
	  .environment = (const char *const[]){ "GRAFT_TEST_LIST", NULL } },
	{ .name = "text",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "TEXT",
	  .help = "A text",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct options, text) },
	{ .name = "flag", .help = "A flag", .parse = graft_option_set_true, .offset = offsetof(struct options, flag) },
};
static const struct graft_command command = { CTK_COMMAND, .name = "command", .summary = "A command", .options = table,
					      .n_options = GRAFT_COUNT(table) };

static int parse(struct ctk *ctk, struct options *options, const char *words, int *ret_first, int *ret_status)
{
	static char copy[256];
	static char *argv[16];
	int argc = 0;

	(void)snprintf(copy, sizeof(copy), "command %s", words);
	for (char *next = copy; next && argc < 15;) {
		char *word = strsep(&next, " ");

		if (word[0] != '\0' || argc == 0)
			argv[argc++] = word;
	}
	argv[argc] = NULL;
	return ctk_parse(ctk, &command, options, argc, argv, ret_first, ret_status);
}

static void test_lists(void **state)
{
	static const char *const standard[] = { "index", "uuid" };
	static const struct {
		const char *words, *variable; /* NULL = not defined */
		const char *items;            /* each with ';' */
	} rows[] = {
		{ "", NULL, "index;uuid;" },
		{ "--list a", NULL, "a;" },
		{ "--list a --list=b", NULL, "a;b;" },
		{ "--list a,b x --list c", NULL, "a;b;c;" },
		{ "--list=", NULL, "" },
		{ "--list= --list a", NULL, "a;" },
		{ "--list a,,b,", NULL, "a;;b;" },
		{ "", "x,y", "x;y;" },
		{ "", "", "" },
		{ "--list a", "x", "a;" },
	};

	(void)state;
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct ctk ctk = { .arena = graft_arena_new((size_t)1 << 16), .words = "prog command" };
		const char **items = graft_arena_memdup(ctk.arena, standard, sizeof(standard));
		struct options options = { .list = { .items = items, .n = 2 } };
		struct graft_buffer text = { .max = 0 };
		int first, status = -1;

		assert_int_equal(
		    rows[i].variable ? setenv("GRAFT_TEST_LIST", rows[i].variable, 1) : unsetenv("GRAFT_TEST_LIST"), 0);
		assert_int_equal(parse(&ctk, &options, rows[i].words, &first, &status), 0);
		for (size_t j = 0; j < options.list.n; j++)
			graft_buffer_printf(&text, "%s;", options.list.items[j]);
		assert_string_equal(graft_buffer_text(&text), rows[i].items);
		assert_int_equal(options.list.given, rows[i].words[0] != '\0' || rows[i].variable);
		graft_buffer_done(&text);
		graft_arena_free(ctk.arena);
	}
	assert_int_equal(unsetenv("GRAFT_TEST_LIST"), 0);
}

static void test_levels(void **state)
{
	static const struct {
		const char *words;
		enum graft_log_level log, steps;
	} rows[] = {
		{ "", GRAFT_LOG_INFO, GRAFT_LOG_WARN },
		{ "--debug", GRAFT_LOG_DEBUG, GRAFT_LOG_DEBUG },
		{ "x -d y", GRAFT_LOG_DEBUG, GRAFT_LOG_DEBUG },
		{ "--quiet", GRAFT_LOG_ERROR, GRAFT_LOG_ERROR },
		{ "--quiet --debug", GRAFT_LOG_ERROR, GRAFT_LOG_ERROR },
		{ "--debug --debug=false", GRAFT_LOG_INFO, GRAFT_LOG_WARN },
	};

	(void)state;
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct ctk ctk = { .arena = graft_arena_new((size_t)1 << 16), .words = "prog command" };
		struct options options = { .flag = false };
		int first, status;

		assert_int_equal(parse(&ctk, &options, rows[i].words, &first, &status), 0);
		assert_ptr_equal(options.base.ctk, &ctk);
		assert_int_equal(ctk.log.max, rows[i].log);
		assert_int_equal(ctk.steps.max, rows[i].steps);
		graft_arena_free(ctk.arena);
	}
}

/* The program's --config goes to the program; a value keeps its bytes. */
static void test_targets(void **state)
{
	struct ctk ctk = { .arena = graft_arena_new((size_t)1 << 16), .words = "prog command" };
	struct options options = { .flag = false };
	int first, status;

	(void)state;
	assert_int_equal(parse(&ctk, &options, "a --text=x=y,z --config f --flag b", &first, &status), 0);
	assert_string_equal(options.text, "x=y,z");
	assert_string_equal(ctk.config, "f");
	assert_true(options.flag);
	assert_int_equal(first, 5);
	graft_arena_free(ctk.arena);
}

static void test_allocations(void **state)
{
	bool failed = true;

	(void)state;
	for (size_t max = 0; failed; max += 16) {
		struct ctk ctk = { .arena = graft_arena_new(max), .words = "prog command" };
		struct options options = { .flag = false };
		int first, status = -1;

		failed = parse(&ctk, &options, "--list a,b,c --list dddddddddddddddddddddddddddddd", &first, &status) <
			 0;
		assert_int_equal(status, failed ? 1 : -1);
		if (!failed)
			assert_int_equal(options.list.n, 4);
		graft_arena_free(ctk.arena);
	}
	/* Help that cannot be made is no success. */
	for (int n = 1; n < 4; n++) {
		struct ctk ctk = { .words = "prog command" };
		struct options options = { .flag = false };
		int first, status = -1;

		allocation_fail(n);
		assert_int_equal(parse(&ctk, &options, "--help", &first, &status), -1);
		assert_true(allocation_failed());
		assert_int_equal(status, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
