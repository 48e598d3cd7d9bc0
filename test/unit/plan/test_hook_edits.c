/* SPDX-License-Identifier: Apache-2.0 */
/* Words of create-symlinks, and the texts of the edits. What hooks become as a whole: test_hooks_plan.c. */
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "plan/hook_edits.h"

static void test_link(void **state)
{
	static const struct {
		const char *spec, *says, *path; /* NULL: refused */
	} rows[] = {
		{ "libcuda.so.1::/usr/lib/libcuda.so", "libcuda.so.1", "/usr/lib/libcuda.so" },
		{ "../a::b/c", "../a", "/b/c" },
		{ "/a::/b", "/a", "/b" },
		{ "a:b::/c:d", "a:b", "/c:d" },
		{ "a:::b", "a", "/:b" },
		{ "::/b", "", "/b" },
		{ "a::", "a", "/" },
		{ "::", "", "/" },
		{ "a::b/../c", "a", "/b/../c" },
		{ "", NULL, NULL },
		{ "a", NULL, NULL },
		{ "a:/b", NULL, NULL },
		{ "a::b::c", NULL, NULL },
		{ "a::b::", NULL, NULL },
		{ "a::::b", NULL, NULL },
	};
	struct graft_arena *arena = graft_arena_new((size_t)1 << 16);

	assert_non_null(arena);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_hook_link link;
		int rc = graft_hook_read_link(rows[i].spec, arena, &link, &err);

		print_message("# %s\n", rows[i].spec);
		assert_int_equal(rc, rows[i].says ? 0 : -1);
		if (rc == 0) {
			assert_string_equal(link.says, rows[i].says);
			assert_string_equal(link.path, rows[i].path);
			continue;
		}
		assert_int_equal(err.status, GRAFT_INVALID);
		assert_string_equal(err.msg + strlen("invalid symlink specification "), rows[i].spec);
	}
	graft_arena_free(arena);
}

static void test_profile_text(void **state)
{
	struct graft_arena *arena = graft_arena_new((size_t)1 << 16);

	assert_non_null(arena);
	assert_string_equal(graft_hook_profile_text(arena, 0xfe),
			    "{\"profiles\":[{\"name\":\"_container_\",\"settings\":[\"EGLVisibleDGPUDevices\",0xfe]}],"
			    "\"rules\":[{\"pattern\":[],\"profile\":\"_container_\"}]}");
	assert_non_null(strstr(graft_hook_profile_text(arena, UINT64_MAX), ",0xffffffffffffffff]"));
	graft_arena_free(arena);
}

/* The caller's words may go away. */
static void test_words_are_copied(void **state)
{
	char path[] = "/a", says[] = "b", params[] = "ModifyDeviceFiles: 0\n";
	struct graft_plan *plan = graft_plan_new();

	assert_non_null(plan);
	assert_true(graft_hook_add_link(plan, &(struct graft_hook_link){ path, says }));
	assert_true(graft_hook_add_params(plan, params));
	path[1] = says[0] = params[0] = 'x';
	assert_int_equal(plan->n_edits, 2);
	assert_string_equal(plan->edits[0].target, "/a");
	assert_string_equal(plan->edits[0].content, "b");
	assert_string_equal(plan->edits[1].content, "ModifyDeviceFiles: 0\n");
	graft_plan_free(plan);
}

/* Each allocation fails once; the arena of a plan takes several where texts are long. */
static void test_memory(void **state)
{
	static char text[100000];
	bool failed = true;
	int n = 0;

	memset(text, 'x', sizeof(text) - 1);
	while (failed) {
		struct graft_plan *plan;
		bool added;

		allocation_fail(++n);
		plan = graft_plan_new();
		added = plan && graft_hook_add_link(plan, &(struct graft_hook_link){ text, text }) &&
			graft_hook_add_params(plan, text) && graft_hook_add_profile(plan, 1);
		failed = allocation_failed();
		assert_int_equal(added, !failed);
		graft_plan_free(plan);
	}
	assert_true(n > 4);
}

static void test_memory_of_a_link(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_arena *small = graft_arena_new(4);
	struct graft_hook_link link;

	assert_int_equal(graft_hook_read_link("libcuda.so.1::/usr/lib/libcuda.so", small, &link, &err), -1);
	assert_int_equal(err.status, GRAFT_NO_MEMORY);
	assert_null(graft_hook_profile_text(small, 1));
	graft_arena_free(small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_profile_text),
		cmocka_unit_test(test_words_are_copied),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_memory_of_a_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
