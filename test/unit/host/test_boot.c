/* SPDX-License-Identifier: Apache-2.0 */
/* The boot id: what counts as one, and that its absence is not an error. */
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "fixture.h"
#include "host/discover.h"

#define FILE_NAME "/proc/sys/kernel/random/boot_id"
#define ID        "0bd5b3a1-0d1c-4f2b-9a54-3f7c2b1e8a90"

static void test_boot_id(void **state)
{
	static const struct {
		const char *text, *id; /* text NULL = no file */
	} rows[] = {
		{ NULL, NULL }, { ID "\n", ID },         { ID, ID },          { "", NULL },
		{ "\n", NULL }, { ID ";gpus=\n", NULL }, { "no id\n", NULL }, { ID ID ID "\n", NULL }, /* too long */
	};
	struct fixture f;

	fixture_init(&f);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_arena *arena = graft_arena_new(1 << 16);
		struct graft_error err = { .status = GRAFT_OK };
		auto_root struct graft_root root = GRAFT_ROOT_INIT;
		const char *id;

		if (rows[i].text)
			fixture_write(&f, FILE_NAME, rows[i].text);
		assert_int_equal(graft_root_open(&root, f.root, &err), 0);
		assert_int_equal(graft_host_boot_id(&root, arena, &id, &err), 0);
		if (rows[i].id)
			assert_string_equal(id, rows[i].id);
		else
			assert_null(id);
		(void)graft_arena_free(arena);
	}
	fixture_done(&f);
}

static void test_memory(void **state)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_error err = { .status = GRAFT_OK };
	struct fixture f;

	fixture_init(&f);
	fixture_write(&f, FILE_NAME, ID "\n");
	assert_int_equal(graft_root_open(&root, f.root, &err), 0);
	for (size_t max = 1; max < 60; max++) {
		struct graft_arena *arena = graft_arena_new(max);
		const char *id = "";

		if (graft_host_boot_id(&root, arena, &id, &err) < 0)
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
		else
			assert_string_equal(id, ID);
		(void)graft_arena_free(arena);
	}
	fixture_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_boot_id),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
