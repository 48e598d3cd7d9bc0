/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks as text (hook_rows.h), and the edits that they become, one a line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "hook_rows.h"
#include "plan/hooks_plan.h"

#define LIBS "/usr/lib/x86_64-linux-gnu"

static const char *text_of_edit(const struct graft_edit *edit, struct graft_buffer *out)
{
	if (edit->kind == GRAFT_EDIT_SYMLINK)
		graft_buffer_printf(out, "%s -> %s %s\n", edit->target, edit->content,
				    graft_conflict_names[edit->conflict]);
	for (size_t i = 0; i < edit->n_folders; i++)
		graft_buffer_printf(out, "folder %s\n", edit->folders[i]);
	for (size_t i = 0; i < edit->n_missing_folders; i++)
		graft_buffer_printf(out, "missing %s\n", edit->missing_folders[i]);
	for (size_t i = 0; i < edit->n_entries; i++)
		graft_buffer_printf(out, "%s => %s %x\n", edit->entries[i].soname, edit->entries[i].path,
				    edit->entries[i].abi_flags);
	return graft_buffer_text(out);
}

/* What hooks become; NULL: they must run. */
static const char *convert(const struct graft_cdi_edits *edits, const struct graft_mounted_library *libraries, size_t n)
{
	static const char *searched[] = { "/usr/lib/x86_64-linux-gnu", "/lib64" };
	const struct graft_image image = { .libc = GRAFT_LIBC_GLIBC, .loader_dirs = searched, .n_loader_dirs = 2 };
	struct graft_buffer out = { .max = 0 };
	struct graft_hook_work work;
	struct graft_plan *plan;
	const char *text;
	bool known;

	assert_int_equal(graft_hooks_read(HOOK_PROGRAM, edits, arena, &work, &known, NULL), 0);
	if (!known)
		return NULL;
	plan = graft_hooks_plan(&work, libraries, n, &image, NULL);
	assert_non_null(plan);
	for (size_t i = 0; i < plan->n_edits; i++) {
		assert_non_null(plan->edits[i].rule);
		assert_non_null(plan->edits[i].why);
		(void)text_of_edit(&plan->edits[i], &out);
	}
	text = graft_arena_strdup(arena, graft_buffer_text(&out));
	graft_buffer_done(&out);
	graft_plan_free(plan);
	return text;
}

static void test_words(void **state)
{
	static const struct {
		const char *hooks, *edits; /* NULL: they must run */
	} rows[] = {
		{ HOOK "create-symlinks --link a::/b\n" HOOK "update-ldcache --folder " LIBS "\n",
		  "/b -> a overwrite\nfolder " LIBS "\n" },
		{ HOOK "update-ldcache\n", "" },
		{ HOOK "update-ldcache --folder=/x/,/y --folder y --ldconfig-path /sbin/ldconfig\n",
		  "folder /x\nfolder /y\nmissing /x\nmissing /y\n" },
		{ HOOK "create-symlinks --link=../a::b/c,d::/e --link d::/e\n" HOOK "create-symlinks --link f::/g\n",
		  "/b/c -> ../a overwrite\n/e -> d overwrite\n/g -> f overwrite\n" },
		/* Another hook, program, stage, or order. */
		{ "", NULL },
		{ HOOK "create-symlinks --link a::/b\n" HOOK "enable-cuda-compat\n", NULL },
		{ HOOK "disable-device-node-modification\n" HOOK "update-ldcache\n", NULL },
		{ HOOK "update-ldcache\n" HOOK "create-symlinks --link a::/b\n", NULL },
		{ HOOK "update-ldcache\n" HOOK "update-ldcache\n", NULL },
		{ HOOK "update-ldcache\ncreateContainer /bin/x|E=0|x\n", NULL },
		{ "createContainer /usr/local/bin/nvidia-cdi-hook|E=0|x update-ldcache\n", NULL },
		{ HOOK "update-ldcache\nprestart " HOOK_PROGRAM "|E=0|x update-ldcache\n", NULL },
		{ "createContainer " HOOK_PROGRAM "|E=0|nvidia-cdi-hook\n", NULL },
		{ "createContainer " HOOK_PROGRAM "|E=0|nvidia-ctk hook update-ldcache\n", NULL },
		/* Options that are the hook's to judge. */
		{ HOOK "create-symlinks --link a::/b --container-spec /x\n", NULL },
		{ HOOK "create-symlinks --folder /x\n", NULL },
		{ HOOK "create-symlinks --linked a::/b\n", NULL },
		{ HOOK "create-symlinks --link\n", NULL },
		{ HOOK "create-symlinks -link a::/b\n", NULL },
		{ HOOK "create-symlinks a::/b\n", NULL },
		{ HOOK "update-ldcache --ldconfig-path=\n", NULL },
		/* Links that say too little or too much, to themselves, or twice. */
		{ HOOK "create-symlinks --link a:/b\n", NULL },
		{ HOOK "create-symlinks --link ::/b\n", NULL },
		{ HOOK "create-symlinks --link a::\n", NULL },
		{ HOOK "create-symlinks --link a::/b::/c\n", NULL },
		{ HOOK "create-symlinks --link /b::/b\n", NULL },
		{ HOOK "create-symlinks --link a::/b --link c::/b\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_cdi_edits edits = hook_rows_parse(rows[i].hooks);
		const char *text = convert(&edits, NULL, 0);

		if ((text == NULL) != (rows[i].edits == NULL))
			fail_msg("row %zu: %s", i, text ? text : "must run");
		if (text)
			assert_string_equal(text, rows[i].edits);
	}
}

static void test_timeout_and_mounts(void **state)
{
	struct graft_cdi_mount mount = { .host_path = "/x", .container_path = "/b" };
	struct graft_cdi_edits edits = hook_rows_parse(HOOK "create-symlinks --link a::/b\n");

	(void)state;
	assert_non_null(convert(&edits, NULL, 0));
	edits.hooks[0].has_timeout = true;
	assert_null(convert(&edits, NULL, 0));
	edits.hooks[0].has_timeout = false;
	edits.mounts = &mount;
	edits.n_mounts = 1;
	assert_null(convert(&edits, NULL, 0));
	mount.container_path = "/bb";
	assert_non_null(convert(&edits, NULL, 0));
}

static const struct graft_mounted_library libraries[] = {
	{ LIBS "/libcuda.so.550.54.14", "libcuda.so.1", 0x303 },
	{ LIBS "/libnvidia-glcore.so.550.54.14", "libnvidia-glcore.so.550.54.14", 0x303 },
	/* Of two the greater; of another ABI or directory it is another. */
	{ LIBS "/libx.so.9", "libx.so.1", 0x303 },
	{ LIBS "/libx.so.10", "libx.so.1", 0x303 },
	{ LIBS "/libx.so.11", "libx.so.1", 0x3 },
	{ "/opt/libx.so.12", "libx.so.1", 0x303 },
	{ LIBS "/libx.so.10", "libx.so.1", 0x303 },
	/* A link that the specification makes or mounts itself. */
	{ LIBS "/libasked.so.5", "libasked.so.1", 0x303 },
	{ LIBS "/libthere.so.5", "libthere.so.1", 0x303 },
	{ LIBS "/libthere.so.1", "libother.so", 0x303 },
};

static void test_libraries(void **state)
{
	const struct graft_cdi_edits edits = hook_rows_parse(HOOK "create-symlinks --link libasked.so.5::" LIBS
								  "/libasked.so.1\n" HOOK
								  "update-ldcache --folder " LIBS " --folder /opt\n");

	(void)state;
	assert_string_equal(convert(&edits, libraries, GRAFT_COUNT(libraries)),
			    LIBS "/libasked.so.1 -> libasked.so.5 overwrite\n" LIBS
				 "/libcuda.so.1 -> libcuda.so.550.54.14 replace\n" LIBS
				 "/libx.so.1 -> libx.so.10 replace\n" LIBS "/libx.so.1 -> libx.so.11 replace\n"
				 "/opt/libx.so.1 -> libx.so.12 replace\n" LIBS "/libother.so -> libthere.so.1 replace\n"
				 "folder " LIBS "\nfolder /opt\nmissing /opt\n"
				 "libcuda.so.1 => " LIBS "/libcuda.so.1 303\n"
				 "libnvidia-glcore.so.550.54.14 => " LIBS "/libnvidia-glcore.so.550.54.14 303\n"
				 "libx.so.1 => " LIBS "/libx.so.1 303\n"
				 "libx.so.1 => " LIBS "/libx.so.1 3\n"
				 "libx.so.1 => /opt/libx.so.1 303\n"
				 "libasked.so.1 => " LIBS "/libasked.so.1 303\n"
				 "libthere.so.1 => " LIBS "/libthere.so.1 303\n"
				 "libother.so => " LIBS "/libother.so 303\n");
}

/* Without update-ldcache nobody asked for sonames' links. */
static void test_links_only(void **state)
{
	const struct graft_cdi_edits edits = hook_rows_parse(HOOK "create-symlinks --link a::/b\n");

	(void)state;
	assert_string_equal(convert(&edits, libraries, GRAFT_COUNT(libraries)), "/b -> a overwrite\n");
}

static void test_allocations_fail(void **state)
{
	const struct graft_image image = { .libc = GRAFT_LIBC_GLIBC };
	int rc = -1, n = 0;

	(void)state;
	while (rc != 0) {
		struct graft_cdi_edits edits = hook_rows_parse(HOOK "create-symlinks --link a::b,c::d\n" HOOK
								    "update-ldcache --folder x,y\n");
		struct graft_arena *own = graft_arena_new((size_t)1 << 20);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_plan *plan = NULL;
		struct graft_hook_work work;
		bool known;

		allocation_fail(++n);
		rc = graft_hooks_read(HOOK_PROGRAM, &edits, own, &work, &known, &err);
		if (rc == 0)
			plan = graft_hooks_plan(&work, libraries, GRAFT_COUNT(libraries), &image, &err);
		if (!plan)
			rc = -1;
		if (allocation_failed())
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
		else
			assert_int_equal(rc, 0);
		graft_plan_free(plan);
		graft_arena_free(own);
	}
	assert_true(n > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_words, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timeout_and_mounts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_libraries, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links_only, setup, teardown),
		cmocka_unit_test_setup_teardown(test_allocations_fail, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
