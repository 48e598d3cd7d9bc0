/* SPDX-License-Identifier: Apache-2.0 */
/* containers.conf, the hooks directory, and the description of a hook. */
#include "../unit.h"
#include "engine_case.h"

#define OURS  "[engine.runtimes]\nnvidia = [\"/usr/bin/nvidia-container-runtime\"]\n"
#define HOOK  "/usr/bin/nvidia-container-runtime-hook"
#define HOOKS "/usr/share/containers/oci/hooks.d"

static const struct engine_case rows[] = {
	{ "nothing there", .expected_drop_in = "# Made by nvidia-ctk runtime configure; --undo removes it.\n\n" OURS,
	  .exactly = true },
	{ "the default runtime", .set_as_default = true, .expected_drop_in = "[engine]\nruntime = 'nvidia'\n" OURS },
	{ "another name", .name = "g.p", .path = "/x", .expected_drop_in = "[engine.runtimes]\n\"g.p\" = ['/x']\n" },
	{ "an old path", .drop_in = "[engine.runtimes]\n# mine\nnvidia = [\n '/old',\n]\nkata = ['k']\n",
	  .expected_drop_in =
	      "[engine.runtimes]\n# mine\nnvidia = [\"/usr/bin/nvidia-container-runtime\"]\nkata = ['k']\n",
	  .exactly = true },
	{ "there already", .drop_in = "engine = { runtimes = { nvidia = ['/usr/bin/nvidia-container-runtime'] } }\n",
	  .expected_drop_in = "engine = { runtimes = { nvidia = ['/usr/bin/nvidia-container-runtime'] } }\n",
	  .exactly = true },
	{ "the default one goes without the flag", .drop_in = "[engine]\nruntime = 'nvidia'\nx = 1\n",
	  .expected_drop_in = "[engine]\nx = 1\n" OURS },
	{ "no drop-in", .in_config = true, .config = "# c\n[engine]\nruntime = 'crun'\n",
	  .expected_config = "# c\n[engine]\nruntime = 'crun'\n\n" OURS, .exactly = true },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		check_case(&graft_engine_podman, &rows[i]);
}

static void test_refusals(void **state)
{
	static const struct {
		struct engine_case row;
		const char *message;
	} refusals[] = {
		{ { "no TOML", .drop_in = "x\n" },
		  "unable to load config for runtime podman: /etc/containers/containers.conf.d/99-nvidia.conf: line "
		  "1" },
		{ { "a runtime that is none", .drop_in = "[engine.runtimes]\nnvidia = '/x'\n" },
		  "unable to update config: /etc/containers/containers.conf.d/99-nvidia.conf: line 2" },
		{ { "no table", .drop_in = "[engine]\nruntimes = []\n" }, "unable to update config" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(refusals); i++)
		check_refusal(&graft_engine_podman, &refusals[i].row, refusals[i].message);
}

/* SPEC ctk-and-cdi 1.1 "OCI hook mode", to the byte. */
static void test_hook(void **state)
{
	static const char expected[] =
	    "{\n  \"version\": \"1.0.0\",\n  \"hook\": {\n    \"path\": \"/opt/\\\"x\\\"/hook\",\n    \"args\": [\n    "
	    "  \"hook\",\n      \"prestart\"\n    ],\n"
	    "    \"env\": [\n      "
	    "\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/\\\"x\\\"\"\n    ]\n  },\n"
	    "  \"when\": {\n    \"always\": true,\n    \"commands\": [\n      \".*\"\n    ]\n  },\n  \"stages\": [\n   "
	    " \"prestart\"\n  ]\n}\n";
	static const char *const searched[] = { HOOK, "/sbin/x", "/bin/y", "/usr/local/sbin/z" };
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_engine_text text;

	assert_int_equal(graft_engine_oci_hook("/opt/\"x\"/hook", arena, &text, NULL), 0);
	assert_string_equal(text.bytes, expected);
	assert_int_equal(text.length, strlen(expected));
	for (size_t i = 0; i < GRAFT_COUNT(searched); i++) {
		assert_int_equal(graft_engine_oci_hook(searched[i], arena, &text, NULL), 0);
		assert_non_null(
		    strstr(text.bytes, "\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\""));
	}
	assert_int_equal(graft_engine_oci_hook("/usr/local/x", arena, &text, NULL), 0);
	assert_non_null(strstr(text.bytes, ":/bin:/usr/local\""));
	(void)graft_arena_free(arena);
}

static const struct {
	const char *what, *hook, *config, *drop_in, *expected_drop_in; /* NULL: no edit */
} hooks[] = {
	{ "where Podman looks anyway", HOOKS "/h.json", NULL, NULL, NULL },
	{ "a directory of its own", "/etc/h.d/h.json", NULL, NULL,
	  "[engine]\nhooks_dir = ['" HOOKS "', '/etc/h.d']\n" },
	{ "the top-level file has a list", "/etc/h.d/h.json", "[engine]\nhooks_dir = ['/a']\n", NULL,
	  "[engine]\nhooks_dir = ['/a', '/etc/h.d']\n" },
	{ "the drop-in has one", "/etc/h.d/h.json", "[engine]\nhooks_dir = ['/a']\n", "[engine]\nhooks_dir = ['/b']\n",
	  "[engine]\nhooks_dir = ['/b', '/etc/h.d']\n" },
	{ "it is listed", "/a/h.json", "[engine]\nhooks_dir = ['/a']\n", NULL, NULL },
	{ "the usual place is not listed", HOOKS "/h.json", "[engine]\nhooks_dir = []\n", NULL,
	  "[engine]\nhooks_dir = ['" HOOKS "']\n" },
};

static void test_hook_files(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(hooks); i++) {
		const struct engine_case row = { "", .config = hooks[i].config, .drop_in = hooks[i].drop_in };
		struct graft_engine_request request = request_of(&graft_engine_podman, &row);
		struct graft_arena *arena = graft_arena_new((size_t)4 << 20);
		struct graft_engine_changes changes, again;
		struct graft_engine_text hook;
		struct graft_error err = { 0 };

		print_message("# %s\n", hooks[i].what);
		request.hook.path = hooks[i].hook;
		request.hook_path = HOOK;
		assert_int_equal(graft_engine_oci_hook(HOOK, arena, &hook, NULL), 0);
		assert_fine(graft_engine_podman_hook(&request, arena, &changes, &err), &err);
		assert_edit(&changes, &request.drop_in, hooks[i].expected_drop_in, false);
		assert_edit(&changes, &request.hook, hook.bytes, true);
		take_over(&changes, &request.hook);
		take_over(&changes, &request.drop_in);
		assert_fine(graft_engine_podman_hook(&request, arena, &again, &err), &err);
		for (size_t k = 0; k < again.n_edits; k++)
			assert_false(graft_engine_edit_changes(&again.edits[k]));
		assert_fine(graft_engine_podman_unhook(&request, arena, &again, &err), &err);
		assert_undone(&again, &request.hook);
		assert_undone(&again, &request.drop_in);
		assert_int_equal(again.n_edits, request.drop_in.text.bytes ? 2 : 1);
		request.hook.text = text_of("{}");
		assert_fine(graft_engine_podman_unhook(&request, arena, &again, &err), &err);
		assert_null(edit_of(&again, &request.hook));
		assert_true(has_note(&again, "has been changed since, so it is kept"));
		(void)graft_arena_free(arena);
	}
}

/* The first line of our drop-in is not a comment of the administrator's, in the form of earlier releases either. */
static void test_first_line(void **state)
{
	static const char *const drop_ins[] = {
		"# Made by nvidia-ctk runtime configure; --undo removes it.\nx = 1\n" OURS,
		"# Made by nvidia-ctk runtime configure; its option --undo takes it away.\nx = 1\n" OURS,
	};

	for (size_t i = 0; i < GRAFT_COUNT(drop_ins); i++) {
		const struct engine_case row = { "", .drop_in = drop_ins[i] };
		struct graft_engine_request request = request_of(&graft_engine_podman, &row);
		struct graft_arena *arena = graft_arena_new((size_t)4 << 20);
		struct graft_engine_changes changes;
		struct graft_error err = { 0 };

		request.drop_in.backup = text_of("x   = 1\n");
		assert_fine(graft_engine_podman.undo(&request, arena, &changes, &err), &err);
		assert_edit(&changes, &request.drop_in, "x   = 1\n", true);
		(void)graft_arena_free(arena);
	}
}

static void test_find(void **state)
{
	static const char *const names[] = { "docker", "containerd", "crio", "podman" };

	for (size_t i = 0; i < GRAFT_COUNT(names); i++)
		assert_string_equal(graft_engine_find(names[i])->name, names[i]);
	assert_null(graft_engine_find("invalid"));
	assert_null(graft_engine_find(""));
}

static void test_memory(void **state)
{
	const struct engine_case row = { "", .drop_in = "[engine]\nhooks_dir = ['/b', '/h.d']\n" OURS,
					 .set_as_default = true };
	struct graft_engine_request request = request_of(&graft_engine_podman, &row);
	struct graft_engine_changes changes;

	request.hook = (struct graft_engine_file){ .path = "/new.d/h.json", .text = text_of("{}") };
	request.hook_path = HOOK;
	assert_true(allocation_each(own, err, graft_engine_podman_hook(&request, own, &changes, &err)) > 1);
	request.hook.path = "/h.d/h.json";
	assert_true(allocation_each(own, err, graft_engine_podman_unhook(&request, own, &changes, &err)) > 1);
	check_memory(&graft_engine_podman, &request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),       cmocka_unit_test(test_refusals), cmocka_unit_test(test_hook),
		cmocka_unit_test(test_hook_files), cmocka_unit_test(test_find),     cmocka_unit_test(test_memory),
		cmocka_unit_test(test_first_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
