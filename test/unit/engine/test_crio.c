/* SPDX-License-Identifier: Apache-2.0 */
/* crio.conf and its drop-in. */
#include "../unit.h"
#include "engine_case.h"

#define TABLE "[crio.runtime.runtimes.nvidia]\n"
#define OURS  TABLE "runtime_path = \"/usr/bin/nvidia-container-runtime\"\nruntime_type = \"oci\"\n"

static const struct engine_case rows[] = {
	{ "nothing there", .expected_drop_in = OURS, .note = "Could not infer options from runtimes [runc crun]" },
	{ "the default runtime", .set_as_default = true,
	  .expected_drop_in = "[crio.runtime]\ndefault_runtime = 'nvidia'\n" OURS },
	{ "CDI is always on", .enable_cdi = true, .expected_drop_in = OURS },
	{ "runc's options",
	  .config = "[crio.runtime.runtimes.runc]\nruntime_path = '/r'\nruntime_type = 'runcoci'\nroot = '/x' # why\n",
	  .name = "test", .path = "/usr/bin/test",
	  .expected_drop_in =
	      "[crio.runtime.runtimes.test]\nruntime_path = '/usr/bin/test'\nruntime_type = 'oci'\nroot = '/x'\n" },
	{ "the default runtime's options win",
	  .config = "[crio.runtime]\ndefault_runtime = 'c'\n[crio.runtime.runtimes.runc]\na = "
		    "1\n[crio.runtime.runtimes.c]\nb = 1\n",
	  .expected_drop_in = OURS "b = 1\n" },
	{ "what the engine says", .config = "[crio.runtime.runtimes.runc]\na = 1\n",
	  .source = "[crio.runtime.runtimes.crun]\nb = 1\n", .expected_drop_in = OURS "b = 1\n" },
	{ "the default one goes without the flag",
	  .drop_in = "# kept\n[crio.runtime]\nlog_level = 'info'\ndefault_runtime = 'nvidia'\n" OURS,
	  .expected_drop_in = "# kept\n[crio.runtime]\nlog_level = 'info'\n" OURS, .exactly = true },
	{ "an old path", .drop_in = TABLE "runtime_path = '/old' # here\nruntime_type = 'oci'\nx = 1\n",
	  .expected_drop_in = TABLE
	  "runtime_path = \"/usr/bin/nvidia-container-runtime\" # here\nruntime_type = 'oci'\n",
	  .exactly = true },
	{ "no drop-in: all else in the file stays", .in_config = true, .set_as_default = true,
	  .config = "# mine\n[crio]\nroot = '/r'\n[crio.runtime]\ndefault_runtime = \"runc\" # "
		    "d\n[crio.runtime.runtimes.runc]\nx = 1\n[crio.image]\n",
	  .expected_config = "# mine\n[crio]\nroot = '/r'\n[crio.runtime]\ndefault_runtime = \"nvidia\" # "
			     "d\n[crio.runtime.runtimes.runc]\nx = 1\n[crio.image]\n\n" TABLE
			     "x = 1\nruntime_path = \"/usr/bin/nvidia-container-runtime\"\nruntime_type = \"oci\"\n",
	  .exactly = true },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		check_case(&graft_engine_crio, &rows[i]);
}

static void test_refusals(void **state)
{
	static const struct {
		struct engine_case row;
		const char *message;
	} refusals[] = {
		{ { "no TOML", .config = "x\n" },
		  "unable to load config for runtime crio: /etc/crio/crio.conf: line 1" },
		{ { "a wrong drop-in", .drop_in = "x\n" },
		  "unable to load config for runtime crio: /etc/crio/crio.conf.d/99-nvidia.toml: line 1" },
		{ { "a runtime that is none", .config = "[crio.runtime.runtimes]\nrunc = 'x'\n" },
		  "unable to update config: /etc/crio/crio.conf: line 2, column 8: crio.runtime.runtimes.runc is 'x'" },
		{ { "a default that is none", .config = "[crio.runtime]\ndefault_runtime = 1\n" },
		  "default_runtime is 1; allowed: a string" },
		{ { "no table", .drop_in = "crio = 1\n" },
		  "'crio.runtime.runtimes.nvidia' cannot be set: a part of it is not a table" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(refusals); i++)
		check_refusal(&graft_engine_crio, &refusals[i].row, refusals[i].message);
}

static void test_undo_of_a_changed_file(void **state)
{
	const struct engine_case row = { "", .drop_in = "[crio.runtime]\ndefault_runtime = 'other'\n" OURS
							"[crio.image]\nx = 1\n" };
	struct graft_engine_request request = request_of(&graft_engine_crio, &row);
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_engine_changes changes;

	assert_int_equal(graft_engine_crio.undo(&request, arena, &changes, NULL), 0);
	assert_string_equal(changes.edits[0].text.bytes,
			    "[crio.runtime]\ndefault_runtime = 'other'\n[crio.image]\nx = 1\n");
	request.drop_in.text = text_of(NULL);
	assert_int_equal(graft_engine_crio.undo(&request, arena, &changes, NULL), 0);
	assert_int_equal(changes.n_edits, 0);
	(void)graft_arena_free(arena);
}

static void test_memory(void **state)
{
	const struct engine_case row = { "", .config = "[crio.runtime.runtimes.runc]\na = 1\n", .drop_in = OURS,
					 .set_as_default = true };
	struct graft_engine_request request = request_of(&graft_engine_crio, &row);

	request.drop_in.backup = request.drop_in.text;
	check_memory(&graft_engine_crio, &request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_undo_of_a_changed_file),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
