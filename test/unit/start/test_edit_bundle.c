/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which mode is chosen for which container, and what happens to config.json (SPEC runtime-and-hook
 * 5.3, 6.1, 14.2, 14.3). The modes are stand-ins that record their input.
 */
#include "../allocation.h"
#include "../folder.h"
#include "../unit.h"
#include "start/start.h"
#include "world.h"

enum { NO_MODE = -1, JIT_OR_CSV = -2 };

static struct {
	int mode;
	char devices[128];
	char hook_path[128], cdi_hook_path[128], hook_root[128];
	bool fails, removes_bundle;
	bool comes_back, leaves_waiting;
	const struct graft_budget *budget; /* of the start */
	const struct world *world;
} seen;

static struct graft_oci_waiting *ret_waiting; /* for edit_bundle() to pass on */

static int stand_in(struct graft_start *create, enum graft_mode mode, struct graft_error *err)
{
	size_t used = 0;

	seen.mode = (int)mode;
	for (size_t i = 0; i < create->container->devices.n; i++)
		used += (size_t)snprintf(seen.devices + used, sizeof(seen.devices) - used, "%s%s", i == 0 ? "" : " ",
					 create->container->devices.items[i]);
	(void)snprintf(seen.hook_path, sizeof(seen.hook_path), "%s", create->hook_path ? create->hook_path : "");
	(void)snprintf(seen.cdi_hook_path, sizeof(seen.cdi_hook_path), "%s",
		       create->cdi_hook_path ? create->cdi_hook_path : "");
	(void)snprintf(seen.hook_root, sizeof(seen.hook_root), "%s", create->hook_root ? create->hook_root : "");
	if (seen.removes_bundle)
		assert_int_equal(test_remove_folder(graft_arena_printf(create->arena, "%s/b", seen.world->directory)),
				 0);
	seen.comes_back = create->comes_back;
	seen.budget = create->budget;
	if (seen.leaves_waiting)
		create->waiting = (struct graft_oci_waiting){ .plan = graft_plan_new(), .dev = 7, .inode = 8 };
	if (graft_json_set(create->document, graft_json_document_root(create->document), "seen",
			   graft_json_new_bool(create->document, true, err), err) < 0)
		return -1;
	return seen.fails ? graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "'7': unknown device") : 0;
}

int graft_mode_legacy(struct graft_start *create, struct graft_error *err)
{
	return stand_in(create, GRAFT_MODE_LEGACY, err);
}

int graft_mode_jit_cdi(struct graft_start *create, struct graft_error *err)
{
	return stand_in(create, GRAFT_MODE_JIT_CDI, err);
}

int graft_mode_cdi(struct graft_start *create, struct graft_error *err)
{
	return stand_in(create, GRAFT_MODE_CDI, err);
}

int graft_mode_csv(struct graft_start *create, struct graft_error *err)
{
	return stand_in(create, GRAFT_MODE_CSV, err);
}

static int edit_bundle(const struct world *world, const char *toml_text, const char *word, const char *json,
		       struct graft_error *err)
{
	auto_toml struct graft_toml *toml = NULL;
	struct graft_config config;

	seen.mode = NO_MODE;
	seen.devices[0] = '\0';
	world_put(world, "b/config.json", json, 0644);
	assert_int_equal(graft_toml_parse("/c.toml", toml_text, strlen(toml_text), &toml, err), 0);
	assert_int_equal(graft_config_read(toml, NULL, world->arena, &config, err), 0);
	return graft_start_edit_bundle(&config, word ? word : config.runtime.mode, "/nowhere/runc",
				       &(struct graft_oci_arguments){ .bundle = world_path(world, "b") }, NULL,
				       world->arena, ret_waiting, err);
}

#define SPEC(env, rest)                                                                                   \
	"{\"ociVersion\":\"1.0.2\",  \"process\":{\"env\":[" env "]},\"root\":{\"path\":\"rootfs\"}" rest \
	",\"unknown\": 18446744073709551615 }\n"
#define VISIBLE(devices) "\"NVIDIA_VISIBLE_DEVICES=" devices "\""
#define ANNOTATED(value) ",\"annotations\":{\"cdi.k8s.io/x\":\"" value "\"}"
#define HOOK             ",\"hooks\":{\"prestart\":[{\"path\":\"/x/nvidia-container-runtime-hook\"}]}"

static void test_modes(void **state)
{
	static const struct {
		const char *toml, *word; /* word NULL = the configured mode */
		const char *json;
		int mode;
		const char *devices;
	} rows[] = {
		/* without a request for a GPU only mode legacy is called */
		{ "", NULL, SPEC("", ""), NO_MODE, "" },
		{ "", NULL, SPEC("\"PATH=/bin\"", ""), NO_MODE, "" },
		{ "", NULL, SPEC(VISIBLE("void"), ""), NO_MODE, "" },
		{ "", NULL, "{}", NO_MODE, "" },
		{ "", "jit-cdi", SPEC("", ""), NO_MODE, "" },
		{ "", "cdi", SPEC("", ""), NO_MODE, "" },
		{ "", "csv", SPEC("", ""), NO_MODE, "" },
		{ "", "legacy", SPEC("", ""), GRAFT_MODE_LEGACY, "" },
		{ "", "legacy", SPEC(VISIBLE("0"), ""), GRAFT_MODE_LEGACY, "0" },
		/* the configured mode, and its override */
		{ "nvidia-container-runtime.mode = \"jit-cdi\"", NULL, SPEC(VISIBLE("0"), ""), GRAFT_MODE_JIT_CDI,
		  "0" },
		{ "nvidia-container-runtime.mode = \"csv\"", NULL, SPEC(VISIBLE("0"), ""), GRAFT_MODE_CSV, "0" },
		{ "nvidia-container-runtime.mode = \"cdi\"", NULL, SPEC(VISIBLE("0"), ""), GRAFT_MODE_CDI, "0" },
		{ "nvidia-container-runtime.mode = \"csv\"", "cdi", SPEC(VISIBLE("all"), ""), GRAFT_MODE_CDI, "all" },
		/* auto (SPEC runtime-and-hook 14.9) */
		{ "", NULL, SPEC(VISIBLE("0"), ""), JIT_OR_CSV, "0" },
		{ "", NULL, SPEC(VISIBLE("nvidia.com/gpu=all"), ""), GRAFT_MODE_CDI, "nvidia.com/gpu=all" },
		{ "", NULL, SPEC(VISIBLE("nvidia.com/gpu=0,0"), ""), JIT_OR_CSV, "nvidia.com/gpu=0 0" },
		/*
		 * annotations can request CDI devices, in mode cdi only; they override the
		 * environment
		 */
		{ "", NULL, SPEC("", ANNOTATED("nvidia.com/gpu=1")), GRAFT_MODE_CDI, "nvidia.com/gpu=1" },
		{ "", NULL, SPEC(VISIBLE("0"), ANNOTATED("nvidia.com/gpu=1")), GRAFT_MODE_CDI, "nvidia.com/gpu=1" },
		{ "", "cdi", SPEC(VISIBLE("0"), ANNOTATED("1")), GRAFT_MODE_CDI, "1" },
		{ "", NULL, SPEC(VISIBLE("0"), ANNOTATED("1")), JIT_OR_CSV, "0" },
		{ "", NULL, SPEC("", ANNOTATED("1")), NO_MODE, "" },
		{ "", "jit-cdi", SPEC("", ANNOTATED("nvidia.com/gpu=1")), NO_MODE, "" },
		{ "", "jit-cdi", SPEC(VISIBLE("0"), ANNOTATED("nvidia.com/gpu=1")), GRAFT_MODE_JIT_CDI, "0" },
		{ "", "legacy", SPEC("", ANNOTATED("nvidia.com/gpu=1")), GRAFT_MODE_LEGACY, "" },
		/* the mode that annotations resulted in stays when they are ignored */
		{ "", NULL, SPEC(VISIBLE("nvidia.com/gpu=0"), ANNOTATED("1")), JIT_OR_CSV, "nvidia.com/gpu=0" },
		{ "nvidia-container-runtime.modes.cdi.annotation-prefixes = [\"other/\"]", NULL,
		  SPEC("", ANNOTATED("nvidia.com/gpu=1")), NO_MODE, "" },
	};
	const struct world *world = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { 0 };

		if (edit_bundle(world, rows[i].toml, rows[i].word, rows[i].json, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		if (rows[i].mode == JIT_OR_CSV ? seen.mode != GRAFT_MODE_JIT_CDI && seen.mode != GRAFT_MODE_CSV
					       : seen.mode != rows[i].mode)
			fail_msg("row %zu: mode %d", i, seen.mode);
		assert_string_equal(seen.devices, rows[i].devices);
		if (rows[i].mode == NO_MODE)
			assert_string_equal(world_get(world, "b/config.json"), rows[i].json);
		else
			assert_non_null(strstr(world_get(world, "b/config.json"), "\"seen\":true"));
	}
}

/*
 * SPEC runtime-and-hook 6.2: all modes but legacy remove NVIDIA's own hook, with or without a
 * request for a GPU; the rest stays byte for byte.
 */
static void test_hook_removal(void **state)
{
	static const char *const words[] = { "auto", "cdi", "jit-cdi", "csv", "legacy" };
	const struct world *world = *state;
	struct graft_error err = { 0 };

	for (size_t i = 0; i < GRAFT_COUNT(words); i++) {
		const char *text;

		assert_int_equal(edit_bundle(world, "", words[i], SPEC("", HOOK), &err), 0);
		text = world_get(world, "b/config.json");
		assert_int_equal(strstr(text, "nvidia-container-runtime-hook") != NULL,
				 strcmp(words[i], "legacy") == 0);
		assert_non_null(strstr(text, "\"1.0.2\",  \"process\""));
		assert_non_null(strstr(text, "18446744073709551615"));
	}
	assert_int_equal(edit_bundle(world, "", NULL, SPEC(VISIBLE("0"), HOOK), &err), 0);
	assert_null(strstr(world_get(world, "b/config.json"), "nvidia-container-runtime-hook"));
}

static void test_refused(void **state)
{
	static const struct {
		const char *toml, *word, *json;
		const char *message; /* prefix of the error's text */
	} rows[] = {
		{ "", "", SPEC("", ""), "nvidia-container-runtime.mode in /c.toml: a mode must be specified" },
		{ "", "non-legacy", SPEC("", ""),
		  "nvidia-container-runtime.mode in /c.toml: invalid mode \"non-legacy\"" },
		{ "nvidia-container-runtime.mode = \"CDI\"", NULL, SPEC(VISIBLE("0"), ""),
		  "nvidia-container-runtime.mode in /c.toml: invalid mode \"CDI\"" },
		{ "", NULL, "", "error loading OCI specification from file: error reading OCI specification: " },
		{ "", NULL, "{", "error loading OCI specification from file: error reading OCI specification: " },
		{ "", NULL, "[]", "error loading OCI specification from file: error reading OCI specification: " },
	};
	const struct world *world = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { 0 };
		char text[1024];

		assert_int_equal(edit_bundle(world, rows[i].toml, rows[i].word, rows[i].json, &err), -1);
		(void)graft_error_text(&err, text, sizeof(text));
		if (strncmp(text, rows[i].message, strlen(rows[i].message)) != 0)
			fail_msg("row %zu: %s", i, text);
		/* Each clause stands there once. */
		assert_null(strstr(text + 1, "error loading OCI specification"));
		assert_int_equal(seen.mode, NO_MODE);
		assert_string_equal(world_get(world, "b/config.json"), rows[i].json);
	}
}

static void test_no_bundle(void **state)
{
	const struct world *world = *state;
	const struct graft_config config = { .file = NULL };
	struct graft_error err = { 0 };
	char text[1024];

	assert_int_equal(
	    graft_start_edit_bundle(&config, "auto", "/nowhere/runc",
				    &(struct graft_oci_arguments){ .bundle = world_path(world, "nowhere") }, NULL,
				    world->arena, NULL, &err),
	    -1);
	(void)graft_error_text(&err, text, sizeof(text));
	assert_memory_equal(text, "error opening OCI specification file ", 37);
	assert_non_null(strstr(text, "/nowhere/config.json': no such file or directory"));
}

/*
 * SPEC runtime-and-hook 14.2: if a mode fails or the file cannot be written, the file is unchanged
 * and the caller gets an error.
 */
static void test_failures(void **state)
{
	static const char json[] = SPEC(VISIBLE("0"), HOOK);
	const struct world *world = *state;
	struct graft_error err = { 0 };

	seen.world = world;
	seen.fails = true;
	assert_int_equal(edit_bundle(world, "", "cdi", json, &err), -1);
	assert_string_equal(world_get(world, "b/config.json"), json);
	assert_string_equal(err.ctx,
			    "could not apply required modification to OCI specification: error modifying OCI spec");
	assert_int_equal(err.status, GRAFT_UNKNOWN_DEVICE);
	seen.fails = false;
	seen.removes_bundle = true;
	assert_int_equal(edit_bundle(world, "", "cdi", json, &err), -1);
	assert_string_equal(err.ctx,
			    "could not apply required modification to OCI specification: error writing OCI spec");
	seen.removes_bundle = false;
}

/* What has to wait is passed to a caller that comes back; after a failure nothing of it remains. */
static void test_waiting(void **state)
{
	static const char json[] = SPEC(VISIBLE("0"), "");
	struct graft_oci_waiting waiting = { .plan = NULL };
	const struct world *world = *state;

	ret_waiting = NULL;
	assert_int_equal(edit_bundle(world, "", "cdi", json, NULL), 0);
	assert_false(seen.comes_back);
	ret_waiting = &waiting;
	seen.leaves_waiting = true;
	assert_int_equal(edit_bundle(world, "", "cdi", json, NULL), 0);
	assert_true(seen.comes_back);
	assert_non_null(waiting.plan);
	assert_true(waiting.dev == 7 && waiting.inode == 8);
	assert_ptr_equal(waiting.budget, seen.budget);
	graft_oci_waiting_done(&waiting);
	seen.fails = true;
	assert_int_equal(edit_bundle(world, "", "cdi", json, NULL), -1);
	assert_null(waiting.plan);
	seen.fails = false;
	seen.removes_bundle = true;
	seen.world = world;
	assert_int_equal(edit_bundle(world, "", "cdi", json, NULL), -1);
	assert_null(waiting.plan);
	seen.removes_bundle = seen.leaves_waiting = false;
	/* It is reset whatever it contained, if no mode is called or the mode leaves nothing. */
	waiting.dev = waiting.inode = 1;
	assert_int_equal(edit_bundle(world, "", "cdi", SPEC("", ""), NULL), 0);
	assert_null(waiting.plan);
	assert_int_equal(waiting.dev + waiting.inode, 0);
	assert_int_equal(edit_bundle(world, "", "cdi", json, NULL), 0);
	assert_null(waiting.plan);
	ret_waiting = NULL;
}

/* Helpers are only searched for where they are needed. */
static void test_helpers(void **state)
{
	static const char toml[] =
	    "nvidia-ctk.path = \"/opt/hook\"\nnvidia-container-runtime-hook.path = \"/opt/prestart\"";
	static const struct {
		const char *word, *json, *hook, *cdi_hook;
	} rows[] = {
		{ "legacy", SPEC("", ""), "/opt/prestart", "" },
		{ "legacy", SPEC(VISIBLE("0"), ""), "/opt/prestart", "/opt/hook" },
		{ "jit-cdi", SPEC(VISIBLE("0"), ""), "", "/opt/hook" },
	};
	const struct world *world = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		assert_int_equal(edit_bundle(world, toml, rows[i].word, rows[i].json, NULL), 0);
		assert_string_equal(seen.hook_path, rows[i].hook);
		assert_string_equal(seen.cdi_hook_path, rows[i].cdi_hook);
	}
}

/* DEV:INODE:PATH; "" for "". */
static const char *root_argument(const struct world *world, const char *path)
{
	struct stat st;

	if (path[0] == '\0')
		return "";
	assert_int_equal(stat(path, &st), 0);
	return graft_arena_printf(world->arena, "%ju:%ju:%s", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino, path);
}

/*
 * Hooks get the root's path as an argument if it is absolute and the low-level runtime is runc
 * itself.
 */
static void test_hook_root(void **state)
{
	static const char *const words[] = { "jit-cdi", "cdi", "csv", "legacy" };
	static const struct {
		const char *root, *bundle, *low_level; /* '@' = the directory; bundle NULL = the working directory */
		const char *want;
	} rows[] = {
		{ "\"path\":\"/usr\"", "@b", "@bin/runc", "/usr" },
		{ "\"path\":\"/usr\"", "b", "@bin/runc", "/usr" },
		{ "\"path\":\"/usr\"", NULL, "@bin/runc", "/usr" },
		{ "\"path\":\"rootfs\"", "@b", "@bin/runc", "@b/rootfs" },
		{ "\"path\":\"../x\"", "@b", "@bin/runc", "@b/../x" },
		/* the hook could not know what the path is relative to */
		{ "\"path\":\"rootfs\"", "b", "@bin/runc", "" },
		{ "\"path\":\"rootfs\"", "./b", "@bin/runc", "" },
		{ "\"path\":\"rootfs\"", NULL, "@bin/runc", "" },
		{ "\"path\":\"rootfs\"", "", "@bin/runc", "" },
		{ "\"path\":\"\"", "@b", "@bin/runc", "" },
		/* nothing is there to compare with */
		{ "\"path\":\"/nowhere/rootfs\"", "@b", "@bin/runc", "" },
		{ "\"readonly\":true", "@b", "@bin/runc", "" },
		/* a runtime that might take it for a failure */
		{ "\"path\":\"/usr\"", "@b", "@bin/crun", "" },
		{ "\"path\":\"/usr\"", "@b", "@bin/script/runc", "" },
		{ "\"path\":\"/usr\"", "@b", "/nowhere/runc", "" },
	};
	const struct world *world = *state;
	static const char toml_text[] = "nvidia-ctk.path = \"/opt/hook\"";
	auto_toml struct graft_toml *toml = NULL;
	auto_close int saved = open(".", O_PATH | O_CLOEXEC);
	struct graft_config config;

	assert_int_equal(graft_toml_parse("/c.toml", toml_text, strlen(toml_text), &toml, NULL), 0);
	assert_int_equal(graft_config_read(toml, NULL, world->arena, &config, NULL), 0);
	world_put(world, "b/rootfs/etc/os-release", "", 0644);
	world_put(world, "x/etc/os-release", "", 0644);
	world_put_program(world, "bin/runc", true);
	world_put_program(world, "bin/crun", true);
	world_put(world, "bin/script/runc", "#!/bin/sh\n", 0755);
	for (size_t i = 0; i < GRAFT_COUNT(rows) * GRAFT_COUNT(words); i++) {
		size_t row = i / GRAFT_COUNT(words);
		const char *bundle = rows[row].bundle, *low_level = rows[row].low_level, *want = rows[row].want;
		const char *json = graft_arena_printf(
		    world->arena, "{\"root\":{%s},\"process\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=0\"]}}",
		    rows[row].root);

		world_put(world, "b/config.json", json, 0644);
		assert_int_equal(chdir(bundle && bundle[0] ? world->directory : world_path(world, "b")), 0);
		assert_int_equal(
		    graft_start_edit_bundle(
			&config, words[i % GRAFT_COUNT(words)], world_text(world, low_level),
			&(struct graft_oci_arguments){ .bundle = bundle ? world_text(world, bundle) : NULL }, NULL,
			world->arena, NULL, NULL),
		    0);
		print_message("# %s %s %s\n", words[i % GRAFT_COUNT(words)], rows[row].root, bundle ? bundle : "-");
		assert_string_equal(seen.hook_root, root_argument(world, world_text(world, want)));
		assert_string_equal(seen.cdi_hook_path, "/opt/hook");
	}
	assert_int_equal(fchdir(saved), 0);
}

/*
 * Fails each allocation once: the file has the old or the new content, and the error is reported.
 */
static void test_allocations(void **state)
{
	static const char toml_text[] = "nvidia-container-runtime.mode = \"cdi\"\nnvidia-ctk.path = \"/opt/hook\"";
	static const char json[] = SPEC(VISIBLE("0"), HOOK ANNOTATED("nvidia.com/gpu=1"));
	const struct world *world = *state;
	auto_toml struct graft_toml *toml = NULL;
	const char *bundle = world_path(world, "b"), *runc = world_put_program(world, "bin/runc", true);
	struct graft_config config;
	int n = 1;

	assert_int_equal(graft_toml_parse("/c.toml", toml_text, strlen(toml_text), &toml, NULL), 0);
	assert_int_equal(graft_config_read(toml, NULL, world->arena, &config, NULL), 0);
	for (bool failed = true; failed; n++) {
		struct graft_arena *arena = graft_arena_new((size_t)16 << 20);
		struct graft_error err = { 0 };
		const char *text;
		int rc;

		world_put(world, "b/config.json", json, 0644);
		allocation_fail(n);
		rc = graft_start_edit_bundle(&config, "auto", runc, &(struct graft_oci_arguments){ .bundle = bundle },
					     NULL, arena, NULL, &err);
		failed = allocation_reported(rc, &err);
		graft_arena_free(arena);
		text = world_get(world, "b/config.json");
		if (rc < 0)
			assert_string_equal(text, json);
		else
			assert_non_null(strstr(text, "\"seen\":true"));
	}
	assert_true(n > 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_modes, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_hook_removal, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_refused, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_no_bundle, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_failures, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_waiting, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_helpers, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_hook_root, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_allocations, world_begin, world_end),
	};

	return cmocka_run_group_tests_name("runtime_create", tests, NULL, NULL);
}
