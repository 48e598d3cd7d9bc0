/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "plan/plan.h"

static void check_names(const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_non_null(names[i]);
		assert_int_equal(strspn(names[i], "abcdefghijklmnopqrstuvwxyz-"), strlen(names[i]));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(names[i], names[j]);
	}
}

static void test_names_are_unique_words(void **state)
{
	check_names(graft_edit_names, GRAFT_EDIT_MAX);
	check_names(graft_mount_flag_names, GRAFT_COUNT(graft_mount_flag_names));
	check_names(graft_source_type_names, GRAFT_COUNT(graft_source_type_names));
	check_names(graft_conflict_names, GRAFT_COUNT(graft_conflict_names));
	assert_string_equal(graft_edit_names[GRAFT_EDIT_LDCACHE], "ldcache");
	assert_string_equal(graft_mount_flag_names[3], "noexec"); /* bit 3 */
}

static void test_empty_plan(void **state)
{
	struct graft_plan *plan = graft_plan_new(), *again = NULL;
	struct graft_buffer text = { 0 };
	struct graft_error err = { 0 };

	assert_non_null(plan);
	assert_int_equal(plan->version, GRAFT_PLAN_VERSION);
	graft_plan_write(plan, &text);
	assert_int_equal(graft_plan_read(graft_buffer_text(&text), text.length, &again, &err), 0);
	assert_true(graft_record_equal(&graft_plan_record, plan, again, NULL, 0));
	plan = graft_plan_free(plan);
	assert_null(plan);
	again = graft_plan_free(again);
	again = graft_plan_free(again); /* NULL is fine */
	graft_buffer_done(&text);
}

static void test_read_is_strict(void **state)
{
	static const struct {
		const char *json;
		enum graft_status status;
		const char *part;
	} rows[] = {
		{ "{\"version\": 7}", GRAFT_UNSUPPORTED, "unsupported plan version: 7" },
		{ "{}", GRAFT_FORMAT, "version" },
		{ "[]", GRAFT_FORMAT, "" },
		{ "{\"version\": 1, \"edits\": [{\"kind\": \"bind\", \"rule\": \"r\"}]}", GRAFT_FORMAT, "why" },
		{ "{\"version\": 1, \"edits\": [{\"kind\": \"explode\", \"rule\": \"r\", \"why\": \"w\"}]}",
		  GRAFT_FORMAT, "kind" },
		{ "{\"version\": 1, \"edits\": [{\"kind\": \"bind\", \"rule\": \"r\", \"why\": \"w\", \"flags\": "
		  "[\"rw\"]}]}",
		  GRAFT_FORMAT, "flags" },
		{ "{\"version\": 1, \"edits\": [{\"kind\": \"cgroup\", \"rule\": \"r\", \"why\": \"w\", \"minor\": "
		  "-1}]}",
		  GRAFT_FORMAT, "minor" },
		{ "{\"version\": 1, \"owner\": \"me\"}", GRAFT_FORMAT, "owner" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_plan *plan = NULL;
		struct graft_error err = { 0 };

		assert_int_equal(graft_plan_read(rows[i].json, strlen(rows[i].json), &plan, &err), -1);
		assert_null(plan);
		assert_int_equal(err.status, rows[i].status);
		if (!strstr(err.msg, rows[i].part))
			fail_msg("'%s' says '%s'", rows[i].json, err.msg);
	}
}

/* Fails the n-th allocation from now on; 0 = none. Linked with --wrap=malloc,--wrap=calloc,--wrap=realloc. */
static unsigned int fail_at;
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool is_time_to_fail(void)
{
	return fail_at > 0 && --fail_at == 0;
}

void *__wrap_malloc(size_t size)
{
	return is_time_to_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return is_time_to_fail() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return is_time_to_fail() ? NULL : __real_realloc(p, size);
}

static void test_every_allocation_may_fail(void **state)
{
	static const char json[] =
	    "{\"version\": 1, \"edits\": [{\"kind\": \"bind\", \"source\": \"/a\", \"rule\": \"r\", "
	    "\"why\": \"w\", \"folders\": [\"x\", \"y\", \"z\"]}]}";
	struct graft_plan *plan = NULL;
	struct graft_buffer text = { 0 };
	unsigned int n = 0, n_write = 0;
	int result;

	do {
		struct graft_error err = { 0 };

		fail_at = ++n;
		result = graft_plan_read(json, strlen(json), &plan, &err);
		fail_at = 0;
		if (result < 0) {
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
			assert_null(plan);
		}
	} while (result < 0 && n < 100);
	assert_int_equal(result, 0);
	assert_in_range(n, 3, 99);
	do {
		graft_buffer_done(&text);
		fail_at = ++n_write;
		graft_plan_write(plan, &text);
		fail_at = 0;
	} while (graft_buffer_failed(&text) && n_write < 100);
	assert_in_range(n_write, 2, 99);
	graft_buffer_done(&text);
	(void)graft_plan_free(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_unique_words),
		cmocka_unit_test(test_empty_plan),
		cmocka_unit_test(test_read_is_strict),
		cmocka_unit_test(test_every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
