/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks of specifications as text (hook_rows.h), before and after. */
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "hook_rows.h"
#include "plan/spec_hooks.h"

#define OURS "/opt/bin/nvidia-cdi-hook"

/* Without `after` nothing is changed. */
static const struct {
	const char *before, *after;
} rows[] = {
	{ "", NULL },
	/* What older generators wrote. */
	{ "createContainer /usr/bin/nvidia-ctk||nvidia-ctk hook update-ldcache --folder /x\n",
	  "createContainer " OURS "|" GRAFT_HOOK_VARIABLE "|nvidia-cdi-hook update-ldcache --folder /x\n" },
	{ "createContainer /usr/local/nvidia/toolkit/nvidia-ctk||x hook chmod\n",
	  "createContainer " OURS "|" GRAFT_HOOK_VARIABLE "|nvidia-cdi-hook chmod\n" },
	{ "createContainer nvidia-ctk||nvidia-ctk hook create-symlinks --link a::/b\n",
	  "createContainer " OURS "|" GRAFT_HOOK_VARIABLE "|nvidia-cdi-hook create-symlinks --link a::/b\n" },
	/* Variables of its own stay. */
	{ "createContainer /usr/bin/nvidia-ctk|A=1 B=2|nvidia-ctk hook enable-cuda-compat\n",
	  "createContainer " OURS "|A=1 B=2|nvidia-cdi-hook enable-cuda-compat\n" },
	/* What a newer program may have, and other commands: an environment alone. */
	{ "createContainer /usr/bin/nvidia-ctk||nvidia-ctk hook of-the-future\n",
	  "createContainer /usr/bin/nvidia-ctk|" GRAFT_HOOK_VARIABLE "|nvidia-ctk hook of-the-future\n" },
	{ "createContainer /usr/bin/nvidia-ctk||nvidia-ctk hook\n",
	  "createContainer /usr/bin/nvidia-ctk|" GRAFT_HOOK_VARIABLE "|nvidia-ctk hook\n" },
	{ "createContainer /usr/bin/nvidia-ctk||nvidia-ctk --debug hook chmod\n",
	  "createContainer /usr/bin/nvidia-ctk|" GRAFT_HOOK_VARIABLE "|nvidia-ctk --debug hook chmod\n" },
	{ "createContainer /usr/bin/nvidia-ctk||\n", "createContainer /usr/bin/nvidia-ctk|" GRAFT_HOOK_VARIABLE "|\n" },
	/* Another nvidia-cdi-hook may be of another version. */
	{ "createContainer " HOOK_PROGRAM "||nvidia-cdi-hook chmod\n",
	  "createContainer " HOOK_PROGRAM "|" GRAFT_HOOK_VARIABLE "|nvidia-cdi-hook chmod\n" },
	{ "createContainer " OURS "|E=0|x chmod\n", NULL },
	/* The image's, whatever its name. */
	{ "startContainer /usr/bin/nvidia-ctk||nvidia-ctk hook chmod\nstartContainer x||\nstartContainer " OURS
	  "|A=1|nvidia-cdi-hook chmod\n",
	  NULL },
	/* Other programs, at any stage. */
	{ "prestart /bin/x||x\ncreateContainer /bin/nvidia-container-runtime-hook||x prestart\npoststop /bin/y|A=|y\n",
	  "prestart /bin/x|" GRAFT_HOOK_PATH "|x\ncreateContainer /bin/nvidia-container-runtime-hook|" GRAFT_HOOK_PATH
	  "|x prestart\npoststop /bin/y|A=|y\n" },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_cdi_edits edits = hook_rows_parse(rows[i].before);
		const struct graft_cdi_edits as_read = edits;

		assert_int_equal(graft_spec_hooks_mend(OURS, arena, &edits, NULL), 0);
		hook_rows_assert(&edits, rows[i].after ? rows[i].after : rows[i].before);
		/* The specification's own list is still what was read. */
		hook_rows_assert(&as_read, rows[i].before);
		assert_int_equal(graft_spec_hooks_mend(OURS, arena, &edits, NULL), 0);
		hook_rows_assert(&edits, rows[i].after ? rows[i].after : rows[i].before);
	}
}

static void test_no_program(void **state)
{
	struct graft_cdi_edits edits = hook_rows_parse("createContainer /usr/bin/nvidia-ctk||nvidia-ctk hook chmod\n");

	assert_int_equal(graft_spec_hooks_mend(NULL, arena, &edits, NULL), 0);
	hook_rows_assert(&edits, "createContainer /usr/bin/nvidia-ctk|" GRAFT_HOOK_VARIABLE "|nvidia-ctk hook chmod\n");
}

#define CTK(words) "createContainer /usr/bin/nvidia-ctk||nvidia-ctk " words "\n"

static const struct {
	const char *common, *device; /* hooks */
	const char *vendor, *variable;
	bool open, of_toolkit;
} specs[] = {
	{ CTK("hook chmod"), "", "nvidia.com", "NVIDIA_VISIBLE_DEVICES=void", true, true },
	{ "", CTK("hook chmod"), "nvidia.com", "NVIDIA_VISIBLE_DEVICES=void", true, true },
	{ HOOK "chmod\n", HOOK "update-ldcache\n", "nvidia.com", "NVIDIA_VISIBLE_DEVICES=void", false, true },
	{ "", "", "nvidia.com", "NVIDIA_VISIBLE_DEVICES=void", false, true },
	{ CTK("hook chmod"), "", "management.nvidia.com", "NVIDIA_VISIBLE_DEVICES=void", true, true },
	{ CTK("hook chmod"), "", "k8s.device-plugin.nvidia.com", "NVIDIA_VISIBLE_DEVICES=void", true, true },
	{ CTK("hook chmod"), "", "notnvidia.com", "NVIDIA_VISIBLE_DEVICES=void", true, false },
	{ CTK("hook chmod"), "", "nvidia.com.example.com", "NVIDIA_VISIBLE_DEVICES=void", true, false },
	{ CTK("hook chmod"), "", "nvidia.co", "NVIDIA_VISIBLE_DEVICES=void", true, false },
	{ CTK("hook chmod"), "", "nvidia.com", "A=1", true, false },
	{ CTK("hook chmod"), "", "example.com", "NVIDIA_VISIBLE_DEVICES=void", true, false },
	{ CTK("hook chmod"), "createContainer /bin/x||x\n", "nvidia.com", "NVIDIA_VISIBLE_DEVICES=void", true, false },
	{ CTK("hook mine") CTK("hook chmod"), "", "nvidia.com", "NVIDIA_VISIBLE_DEVICES=void", true, false },
	{ "prestart /bin/x|A=1|x\n", "", "nvidia.com", "NVIDIA_VISIBLE_DEVICES=void", false, false },
};

static void test_specs(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(specs); i++) {
		const char *env[] = { "Z=1", specs[i].variable };
		struct graft_cdi_device device = { .name = "0", .edits = hook_rows_parse(specs[i].device) };
		struct graft_cdi_spec spec = { .vendor = specs[i].vendor,
					       .class_ = "gpu",
					       .devices = &device,
					       .n_devices = 1,
					       .edits = hook_rows_parse(specs[i].common) };

		spec.edits.env = env;
		spec.edits.n_env = 2;
		assert_int_equal(graft_cdi_spec_find_open_hook(&spec) != NULL, specs[i].open);
		assert_int_equal(graft_spec_is_of_toolkit(&spec), specs[i].of_toolkit);
		assert_int_equal(graft_spec_hooks_find_toolkit(&spec) != NULL, specs[i].open);
		assert_int_equal(graft_spec_hooks_mend_all(OURS, arena, &spec, NULL), 0);
		assert_null(graft_cdi_spec_find_open_hook(&spec));
		assert_null(graft_spec_hooks_find_toolkit(&spec));
	}
}

/* What is joined, and what it is apart: hooks, and places of mounts with their sources. */
static const struct {
	const char *joined, *apart, *mounts;
} joined_rows[] = {
	{ HOOK "sequence mount-files --file /a --file /b::/c --then create-symlinks --link x::/y --then "
	       "update-ldcache\n" HOOK "chmod\n",
	  HOOK "create-symlinks --link x::/y\n" HOOK "update-ldcache\n" HOOK "chmod\n", "/a from /a, /c from /b, " },
	{ HOOK "mount-files --file /a\n", "", "/a from /a, " },
	{ HOOK "mount-files\n", "", "" },
	{ "createContainer /bin/nvidia-ctk|E=0|nvidia-ctk hook sequence mount-files --file /a --then chmod\n",
	  "createContainer /bin/nvidia-ctk|E=0|nvidia-ctk hook chmod\n", "/a from /a, " },
	/* What is not understood stays. */
	{ HOOK "sequence mount-files --file /a --all --then chmod\n",
	  HOOK "mount-files --file /a --all\n" HOOK "chmod\n", "" },
	{ HOOK "mount-files --file a\n", NULL, "" },
	{ HOOK "mount-files --file /a,/b\n", NULL, "" },
	{ HOOK "mount-files --file\n", NULL, "" },
	{ HOOK "sequence --rootfs /r chmod --then chmod\n", NULL, "" },
	{ HOOK "sequence\n", NULL, "" },
	{ "createRuntime " HOOK_PROGRAM "|E=0|nvidia-cdi-hook mount-files --file /a\n", NULL, "" },
	{ "createContainer /bin/other|E=0|nvidia-cdi-hook mount-files --file /a\n", NULL, "" },
	{ HOOK "chmod\n", NULL, "" },
};

static void test_take_apart(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(joined_rows); i++) {
		const char *text = "";
		struct graft_cdi_device device = { .name = "0", .edits = hook_rows_parse(joined_rows[i].joined) };
		const struct graft_cdi_edits as_read = device.edits;
		struct graft_cdi_spec spec = { .devices = &device, .n_devices = 1, .edits = device.edits };

		assert_int_equal(graft_spec_hooks_take_apart(arena, &spec, NULL), 0);
		hook_rows_assert(&spec.edits, joined_rows[i].apart ? joined_rows[i].apart : joined_rows[i].joined);
		hook_rows_assert(&device.edits, joined_rows[i].apart ? joined_rows[i].apart : joined_rows[i].joined);
		hook_rows_assert(&as_read, joined_rows[i].joined);
		for (size_t j = 0; j < spec.edits.n_mounts; j++) {
			const struct graft_cdi_mount *mount = &spec.edits.mounts[j];

			assert_int_equal(mount->n_options, 5);
			text = graft_arena_printf(arena, "%s%s from %s, ", text, mount->container_path,
						  mount->host_path);
		}
		assert_string_equal(text, joined_rows[i].mounts);
	}
}

static void test_memory(void **state)
{
	int n = 1;

	for (;; n++) {
		struct graft_arena *own = graft_arena_new((size_t)1 << 20);
		struct graft_cdi_edits edits = hook_rows_parse(rows[1].before);
		struct graft_error err = { .status = GRAFT_OK };
		int rc;

		allocation_fail(n);
		rc = graft_spec_hooks_mend(OURS, own, &edits, &err);
		if (!allocation_reported(rc, &err)) {
			(void)graft_arena_free(own);
			break;
		}
		hook_rows_assert(&edits, rows[1].before);
		(void)graft_arena_free(own);
	}
	assert_true(n > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_program, setup, teardown),
		cmocka_unit_test_setup_teardown(test_specs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_take_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
