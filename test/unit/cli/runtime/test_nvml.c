/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a static runtime asks NVML: the arguments of graft-nvml, and the message if the program is
 * missing. Asking itself is tried with containers.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../unit.h"
#include "base/cleanup.h"
#include "cli/runtime/nvml_program.h"

static const char *const usual[] = { "graft-nvml", "4711", "/",     "/usr/lib/libnvidia-ml.so.1",
				     "63",         "0",    "65534", "4294967295" };

static void test_words(void **state)
{
	struct graft_nvml_question question;
	pid_t parent;

	assert_int_equal(GRAFT_COUNT(usual), RUNTIME_NVML_WORDS);
	assert_true(runtime_nvml_parse(RUNTIME_NVML_WORDS, usual, &question, &parent));
	assert_int_equal(parent, 4711);
	assert_string_equal(question.root, "/");
	assert_string_equal(question.library, "/usr/lib/libnvidia-ml.so.1");
	assert_int_equal(question.facts, 63);
	assert_false(question.cuda);
	assert_int_equal(question.uid, 65534);
	assert_int_equal(question.gid, (gid_t)4294967295u);
	assert_int_equal(question.timeout_ms, 0);
}

static void test_bad_words(void **state)
{
	static const struct {
		int at;
		const char *word;
	} rows[] = {
		{ RUNTIME_NVML_PARENT, "" },
		{ RUNTIME_NVML_PARENT, "-1" },
		{ RUNTIME_NVML_PARENT, "4294967296" },
		{ RUNTIME_NVML_PARENT, "1x" },
		{ RUNTIME_NVML_ROOT, "root" },
		{ RUNTIME_NVML_LIBRARY, "libnvidia-ml.so.1" },
		{ RUNTIME_NVML_FACTS, "all" },
		{ RUNTIME_NVML_CUDA, "2" },
		{ RUNTIME_NVML_CUDA, "" },
		{ RUNTIME_NVML_UID, "4294967296" },
		{ RUNTIME_NVML_UID, " 1" },
		{ RUNTIME_NVML_GID, "+1" },
		{ RUNTIME_NVML_GID, "99999999999999999999" },
	};
	struct graft_nvml_question question;
	pid_t parent;

	assert_false(runtime_nvml_parse(1, usual, &question, &parent));
	assert_false(runtime_nvml_parse(RUNTIME_NVML_WORDS - 1, usual, &question, &parent));
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *words[RUNTIME_NVML_WORDS];

		memcpy(words, usual, sizeof(words));
		words[rows[i].at] = rows[i].word;
		if (runtime_nvml_parse(RUNTIME_NVML_WORDS, words, &question, &parent))
			fail_msg("'%s' as word %d", rows[i].word, rows[i].at);
	}
}

/* This test is linked as a static runtime is, and has no graft-nvml beside it. */
static void test_no_program(void **state)
{
	const struct graft_nvml_question question = {
		.root = "/", .library = "/nonexistent/libnvidia-ml.so.1", .uid = getuid(), .gid = getgid()
	};
	struct graft_arena *arena = graft_arena_new(1 << 20);
	struct graft_nvml_snapshot snapshot;
	struct graft_error err = { .status = GRAFT_OK };

	assert_int_equal(graft_nvml_ask(&question, arena, &snapshot, &err), -1);
	assert_int_equal(err.status, GRAFT_NVML);
	assert_string_equal(err.msg, "nvml error: cannot start the program that asks NVML: /nonexistent/graft-nvml");
	assert_int_equal(err.sys, ENOENT);
	graft_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_bad_words),
		cmocka_unit_test(test_no_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
