/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include <string.h>

#include "../allocation.h"
#include "../unit.h"

static struct graft_edit directory(const char *target, uint32_t mode, const char *why)
{
	return (struct graft_edit){
		.kind = GRAFT_EDIT_DIRECTORY, .target = target, .mode = mode, .rule = "rule", .why = why
	};
}

static void test_difference(void **state)
{
	struct graft_edit before[] = { directory("/a", 0755, "x"), directory("/b", 0755, "x") };
	struct graft_edit after[] = { directory("/c", 0755, "x"), directory("/a", 0755, "another reason"),
				      directory("/b", 0555, "x"), directory("/d", 0755, "x") };
	const struct graft_plan first = { .edits = before, .n_edits = 2 };
	const struct graft_plan second = { .edits = after, .n_edits = 4, .driver_version = "1.2", .simulated = true };
	struct graft_plan *plan = NULL;

	assert_int_equal(graft_plan_difference(&first, &second, &plan, NULL), 0);
	assert_int_equal(plan->n_edits, 3);
	assert_string_equal(plan->edits[0].target, "/c");
	assert_string_equal(plan->edits[1].target, "/b");
	assert_int_equal(plan->edits[1].mode, 0555);
	assert_string_equal(plan->edits[2].target, "/d");
	assert_string_equal(plan->driver_version, "1.2");
	assert_true(plan->simulated);
	graft_plan_free(plan);
}

static void test_lists(void **state)
{
	struct graft_ldcache_entry one[] = { { "libcuda.so.1", "/x/libcuda.so.1", 771 } },
				   other[] = { { "libcuda.so.1", "/y/libcuda.so.1", 771 } };
	struct graft_edit a = { .kind = GRAFT_EDIT_LDCACHE, .entries = one, .n_entries = 1 },
			  b = { .kind = GRAFT_EDIT_LDCACHE, .entries = other, .n_entries = 1 };
	const struct graft_plan first = { .edits = &a, .n_edits = 1 }, second = { .edits = &b, .n_edits = 1 };
	struct graft_plan *plan = NULL;

	assert_int_equal(graft_plan_difference(&first, &second, &plan, NULL), 0);
	assert_int_equal(plan->n_edits, 1);
	graft_plan_free(plan);
	assert_int_equal(graft_plan_difference(&first, &first, &plan, NULL), 0);
	assert_int_equal(plan->n_edits, 0);
	graft_plan_free(plan);
}

static void test_from_nothing(void **state)
{
	struct graft_edit edits[] = { directory("/a", 0755, "x") };
	const struct graft_plan after = { .edits = edits, .n_edits = 1 }, empty = { .n_edits = 0 };
	struct graft_plan *plan = NULL;

	assert_int_equal(graft_plan_difference(NULL, &after, &plan, NULL), 0);
	assert_int_equal(plan->n_edits, 1);
	graft_plan_free(plan);
	assert_int_equal(graft_plan_difference(NULL, &empty, &plan, NULL), 0);
	assert_int_equal(plan->n_edits, 0);
	graft_plan_free(plan);
}

static void test_allocations(void **state)
{
	struct graft_edit edits[] = { directory("/a", 0755, "x") };
	const struct graft_plan after = { .edits = edits, .n_edits = 1 };

	for (int n = 1;; n++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_plan *plan = NULL;
		int rc;

		allocation_fail(n);
		rc = graft_plan_difference(NULL, &after, &plan, &err);
		if (!allocation_reported(rc, &err)) {
			graft_plan_free(plan);
			assert_true(n > 1);
			return;
		}
		assert_null(plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_difference), cmocka_unit_test(test_lists),
					    cmocka_unit_test(test_from_nothing), cmocka_unit_test(test_allocations) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
