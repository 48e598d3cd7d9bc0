/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of hooks as text (hook_rows.h), before and after. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "hook_rows.h"
#include "plan/spec_hooks.h"

#define PROGRAM HOOK_PROGRAM

static const struct {
	const char *before, *after;
} rows[] = {
	{ HOOK "create-symlinks --link a::/b\n" HOOK "update-ldcache --folder /x\n",
	  HOOK "sequence create-symlinks --link a::/b --then update-ldcache --folder /x\n" },
	{ HOOK "create-symlinks --link then::/b\n" HOOK "chmod --mode 755 --path /dev/dri\n" HOOK
	       "update-ldcache\n" HOOK "enable-cuda-compat --host-driver-version=1\n" HOOK
	       "disable-device-node-modification\n" HOOK "update-application-profile\n",
	  HOOK "sequence create-symlinks --link then::/b --then chmod --mode 755 --path /dev/dri --then update-ldcache "
	       "--then "
	       "enable-cuda-compat --host-driver-version=1 --then disable-device-node-modification --then "
	       "update-application-profile\n" },
	/* Of another stage: no matter. Of another program, or without a hook's name: in between. */
	{ HOOK "update-ldcache\npoststop /bin/x|E=0|x\n" HOOK "update-ldcache\n",
	  HOOK "sequence update-ldcache --then update-ldcache\npoststop /bin/x|E=0|x\n" },
	{ HOOK "update-ldcache\ncreateContainer /bin/x|E=0|x\n" HOOK "update-ldcache\n" HOOK "chmod\n",
	  HOOK "update-ldcache\ncreateContainer /bin/x|E=0|x\n" HOOK "sequence update-ldcache --then chmod\n" },
	{ HOOK "chmod\ncreateContainer " PROGRAM "|E=0|nvidia-cdi-hook\n" HOOK "chmod\n", NULL },
	/* Other stages of ours are not ours to join, nor other paths of the same program. */
	{ "prestart " PROGRAM "|E=0|x update-ldcache\nprestart " PROGRAM "|E=0|x update-ldcache\n", NULL },
	{ HOOK "chmod\ncreateContainer /usr/bin/nvidia-ctk|E=0|nvidia-ctk hook chmod\n", NULL },
	{ HOOK "chmod\ncreateContainer /usr/local" PROGRAM "|E=0|x chmod\n", NULL },
	/* What this version does not have, and options before the hook's name. */
	{ HOOK "chmod\n" HOOK "of-the-future\n", NULL },
	{ HOOK "chmod\n" HOOK "--quiet chmod\n", NULL },
	{ HOOK "chmod\n" HOOK "sequence sequence chmod\n", NULL },
	{ HOOK "chmod\n" HOOK "sequence --rootfs /r chmod\n", NULL },
	{ HOOK "chmod\n" HOOK "sequence chmod --container-spec /x\n" HOOK "sequence\n", NULL },
	/* A sequence is joined like its hooks. */
	{ HOOK "chmod\n" HOOK "sequence mount-files --file /a --then chmod\n" HOOK "chmod\n",
	  HOOK "sequence chmod --then mount-files --file /a --then chmod --then chmod\n" },
	{ HOOK "sequence chmod --then mount-files\n" HOOK "chmod\n",
	  HOOK "sequence chmod --then mount-files --then chmod\n" },
	{ HOOK "chmod\n" HOOK "apply --plan {}\n", NULL },
	/* Words that would be read in another way. */
	{ HOOK "chmod\n" HOOK "chmod --path --then\n", NULL },
	{ HOOK "chmod --container-spec /x\n" HOOK "chmod\n", NULL },
	{ HOOK "chmod\n" HOOK "chmod -container-spec=/x\n", NULL },
	/* Environments. */
	{ HOOK "chmod\ncreateContainer " PROGRAM "|E=1|x chmod\ncreateContainer " PROGRAM "|E=1|y chmod --mode 1\n",
	  HOOK "chmod\ncreateContainer " PROGRAM "|E=1|x sequence chmod --then chmod --mode 1\n" },
	{ HOOK "chmod\ncreateContainer " PROGRAM "|E=0 F=1|x chmod\n", NULL },
	{ "createContainer " PROGRAM "||x chmod\ncreateContainer " PROGRAM "||x chmod\n",
	  "createContainer " PROGRAM "||x sequence chmod --then chmod\n" },
	{ HOOK "chmod\n", NULL },
	{ "", NULL },
};

#define ROOT "/run/bundle/rootfs"
#define TOLD HOOK "sequence --rootfs " ROOT " "

/*
 * A hook that gets the root is a sequence, also a single one; a hook that is not joined does not
 * get it.
 */
static const struct {
	const char *before, *after;
} told_rows[] = {
	{ HOOK "update-ldcache --folder /x\n", TOLD "update-ldcache --folder /x\n" },
	{ HOOK "create-symlinks --link a::/b\n" HOOK "chmod --mode 755 --path /dev\n" HOOK "update-ldcache\n",
	  TOLD "create-symlinks --link a::/b --then chmod --mode 755 --path /dev --then update-ldcache\n" },
	{ HOOK "chmod\ncreateContainer " PROGRAM "|E=1|x chmod\ncreateContainer " PROGRAM "|E=1|y chmod --mode 1\n" HOOK
	       "chmod\n",
	  TOLD "chmod\ncreateContainer " PROGRAM "|E=1|x sequence --rootfs " ROOT " chmod --then chmod --mode 1\n" TOLD
	       "chmod\n" },
	{ HOOK "chmod\npoststop /bin/x|E=0|x\n" HOOK "chmod\n", TOLD "chmod --then chmod\npoststop /bin/x|E=0|x\n" },
	{ HOOK "chmod\ncreateContainer /bin/x|E=0|x --rootfs /y\n" HOOK "chmod\n",
	  TOLD "chmod\ncreateContainer /bin/x|E=0|x --rootfs /y\n" TOLD "chmod\n" },
	{ "prestart " PROGRAM "|E=0|x update-ldcache\n", NULL },
	{ "createContainer /usr/bin/nvidia-ctk|E=0|nvidia-ctk hook chmod\n", NULL },
	{ "createContainer /usr/local" PROGRAM "|E=0|x chmod\n", NULL },
	{ HOOK "chmod --container-spec /x\n" HOOK "chmod\n", HOOK "chmod --container-spec /x\n" TOLD "chmod\n" },
	{ HOOK "chmod --container-spec=/x\n" HOOK "chmod -container-spec /x\n", NULL },
	{ HOOK "of-the-future\n" HOOK "--quiet chmod\n" HOOK "apply --plan {}\n" HOOK "chmod --path --then\n", NULL },
	{ HOOK "sequence chmod --then chmod\n" HOOK "sequence --rootfs /other chmod\n",
	  TOLD "chmod --then chmod\n" HOOK "sequence --rootfs /other chmod\n" },
	{ "createContainer " PROGRAM "|E=0|nvidia-cdi-hook\n", NULL },
	{ "", NULL },
};

static void test_told_rows(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(told_rows); i++) {
		struct graft_cdi_edits edits = hook_rows_parse(told_rows[i].before), given = edits;

		assert_int_equal(graft_join_hooks(PROGRAM, ROOT, arena, &edits, NULL), 0);
		hook_rows_assert(&edits, told_rows[i].after ? told_rows[i].after : told_rows[i].before);
		hook_rows_assert(&given, told_rows[i].before);
	}
}

static void test_rows(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_cdi_edits edits = hook_rows_parse(rows[i].before);

		assert_int_equal(graft_join_hooks(PROGRAM, NULL, arena, &edits, NULL), 0);
		hook_rows_assert(&edits, rows[i].after ? rows[i].after : rows[i].before);
	}
}

/* One that must end in time would end others. */
static void test_timeout(void **state)
{
	static const char text[] = HOOK "chmod\n" HOOK "chmod\n" HOOK "chmod\n";
	struct graft_cdi_edits edits = hook_rows_parse(text);

	edits.hooks[1].has_timeout = true;
	edits.hooks[1].timeout = 5;
	assert_int_equal(graft_join_hooks(PROGRAM, NULL, arena, &edits, NULL), 0);
	hook_rows_assert(&edits, text);
	assert_true(edits.hooks[1].has_timeout);
	assert_int_equal(edits.hooks[1].timeout, 5);
	assert_int_equal(graft_join_hooks(PROGRAM, ROOT, arena, &edits, NULL), 0);
	hook_rows_assert(&edits, TOLD "chmod\n" HOOK "chmod\n" TOLD "chmod\n");
	assert_true(edits.hooks[1].has_timeout);
}

/* What was given is read only: lists of a specification are shared by containers. */
static void test_input_stays(void **state)
{
	struct graft_cdi_edits edits = hook_rows_parse(rows[1].before), given = edits;

	assert_int_equal(graft_join_hooks(PROGRAM, NULL, arena, &edits, NULL), 0);
	hook_rows_assert(&given, rows[1].before);
}

static void fail_allocations(const char *root, const char *after)
{
	int rc = -1, n = 0;

	while (rc != 0) {
		struct graft_cdi_edits edits = hook_rows_parse(rows[1].before), given = edits;
		struct graft_arena *own = graft_arena_new((size_t)1 << 20);
		struct graft_error err = { .status = GRAFT_OK };

		allocation_fail(++n);
		rc = graft_join_hooks(PROGRAM, root, own, &edits, &err);
		(void)allocation_failed();
		if (rc < 0)
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
		hook_rows_assert(&edits, rc < 0 ? rows[1].before : after);
		hook_rows_assert(&given, rows[1].before);
		(void)graft_arena_free(own);
		assert_true(n < 100);
	}
	assert_true(n > 1);
}

static void test_allocations_fail(void **state)
{
	const char *told = graft_arena_printf(arena, TOLD "%s", rows[1].after + strlen(HOOK "sequence "));

	fail_allocations(NULL, rows[1].after);
	fail_allocations(ROOT, told);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		ROW(test_rows),        ROW(test_told_rows),        ROW(test_timeout),
		ROW(test_input_stays), ROW(test_allocations_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
