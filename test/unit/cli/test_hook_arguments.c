/* SPDX-License-Identifier: Apache-2.0 */
/* SPEC runtime-and-hook 11.1 */
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "cli/hook/hook.h"

static void test_words(void **state)
{
	static const struct {
		const char *words[6]; /* behind the program's name */
		const char *error;    /* NULL = none */
		struct hook_arguments want;
		enum graft_parse_result result;
	} rows[] = {
		{ { NULL }, NULL, { .command = HOOK_NONE } },
		{ { "prestart" }, NULL, { .command = HOOK_PRESTART } },
		{ { "poststart" }, NULL, { .command = HOOK_POSTSTART } },
		{ { "poststop" }, NULL, { .command = HOOK_POSTSTOP } },
		{ { "Prestart" }, NULL, { .command = HOOK_NONE } },
		{ { "-", "prestart" }, NULL, { .command = HOOK_NONE } },
		{ { "--", "prestart" }, NULL, { .command = HOOK_PRESTART } },
		/* what follows the command is ignored */
		{ { "prestart", "-debug", "x" }, NULL, { .command = HOOK_PRESTART } },
		{ { "-debug", "prestart" }, NULL, { .command = HOOK_PRESTART, .debug = true } },
		{ { "--debug=false", "prestart" }, NULL, { .command = HOOK_PRESTART } },
		{ { "-debug=T", "prestart" }, NULL, { .command = HOOK_PRESTART, .debug = true } },
		{ { "-debug=yes" }, "invalid boolean value 'yes' for --debug", { 0 } },
		{ { "-config", "/x", "prestart" }, NULL, { .command = HOOK_PRESTART, .config = "/x" } },
		{ { "--config=/a=b", "prestart" }, NULL, { .command = HOOK_PRESTART, .config = "/a=b" } },
		{ { "-config", "prestart" }, NULL, { .command = HOOK_NONE, .config = "prestart" } },
		{ { "-config=" }, NULL, { .command = HOOK_NONE, .config = "" } },
		{ { "prestart", "-config" }, NULL, { .command = HOOK_PRESTART } },
		{ { "-config" }, "flag needs an argument: -config", { 0 } },
		{ { "-conf" }, "flag provided but not defined: -conf", { 0 } },
		{ { "--nope=1" }, "flag provided but not defined: -nope", { 0 } },
		{ { "---debug" }, "flag provided but not defined: --debug", { 0 } },
		{ { "--version" }, NULL, { .command = HOOK_NONE }, GRAFT_PARSE_VERSION },
		{ { "-h" }, NULL, { .command = HOOK_NONE }, GRAFT_PARSE_HELP },
		{ { "-help", "prestart" }, NULL, { .command = HOOK_PRESTART }, GRAFT_PARSE_HELP },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		char program[] = "nvidia-container-runtime-hook", *argv[8] = { program };
		struct graft_error err = { .status = GRAFT_OK };
		enum graft_parse_result result = GRAFT_PARSE_OK;
		struct hook_arguments got;
		int argc = 1, rc;

		for (; rows[i].words[argc - 1]; argc++)
			argv[argc] = (char *)(uintptr_t)rows[i].words[argc - 1];
		rc = hook_arguments_read(argc, argv, &got, &result, &err);
		if (rows[i].error) {
			assert_int_equal(rc, -1);
			assert_string_equal(err.msg, rows[i].error);
			continue;
		}
		assert_int_equal(rc, 0);
		if (got.command != rows[i].want.command || got.debug != rows[i].want.debug || result != rows[i].result)
			fail_msg("row %zu: command %d", i, got.command);
		if (rows[i].want.config)
			assert_string_equal(got.config, rows[i].want.config);
		else
			assert_null(got.config);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_words) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
