/* SPDX-License-Identifier: Apache-2.0 */
/* Requirements in mode csv: SPEC runtime-and-hook 9.5, 14.14. */
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "request/request.h"
#include "request/requirement.h"

#define CUDA GRAFT_REQUIREMENT_CUDA
#define ARCH GRAFT_REQUIREMENT_ARCH

static const struct {
	const char *expression, *cuda, *arch, *driver;
	int rc;
	unsigned int missing;
	const char *message;
} rows[] = {
	{ "", NULL, NULL, "", 0, 0, NULL },
	{ "foo=45", NULL, NULL, "", 0, 0, NULL },
	{ "foo=45,bar<1 baz!=x", NULL, NULL, "", 0, 0, NULL },
	{ "notvalid", "11.4", "8.7", "", -1, 0, "invalid expression" },
	{ "cuda=foo", "11.4", "8.7", "", -1, 0, "invalid expression" },
	{ "cuda>=11.6", NULL, NULL, "", 1, CUDA, NULL },
	{ "cuda>=11.6", "11.4", NULL, "", -1, 0,
	  "requirements not met: unsatisfied condition: cuda>=11.6 (cuda=11.4)" },
	{ "cuda>=12.4", "12.2", NULL, "", -1, 0,
	  "requirements not met: unsatisfied condition: cuda>=12.4 (cuda=12.2)" },
	{ "cuda>=11.4", "11.4", NULL, "", 0, 0, NULL },
	{ "cuda>11.4", "11.4", NULL, "", -1, 0, NULL },
	{ "cuda<=11.4", "11.4", NULL, "", 0, 0, NULL },
	{ "cuda<11.4", "11.4", NULL, "", -1, 0, NULL },
	{ "cuda=11.4", "11.4", NULL, "", 0, 0, NULL },
	{ "cuda!=11.4", "11.4", NULL, "", -1, 0, NULL },
	{ "cuda>=12.10", "12.9", NULL, "", -1, 0, NULL }, /* numbers, not texts */
	{ "cuda>=11.6 foo=bar", "11.4", NULL, "", -1, 0, NULL },
	{ "cuda>=11.6 foo=bar", "11.6", NULL, "", 0, 0, NULL },
	{ "cuda>=11.6,foo=bar", "11.6", NULL, "", 0, 0, NULL },
	{ "cuda>=11.6 arch=8.7", "11.4", "8.7", "", 0, 0, NULL },
	{ "cuda>=11.6,arch=8.7", "11.4", "8.7", "", -1, 0, NULL },
	{ "cuda>=11.6,arch=8.7", "11.6", NULL, "", 1, ARCH, NULL },
	{ "cuda>=11.6 arch=8.7", "11.6", NULL, "", 0, 0, NULL }, /* certain without the other */
	{ "cuda<13.6 cuda>=11.6,arch=5.3", "11.0", "8.7", "", 0, 0, NULL },
	{ "cuda<10.6 cuda>=11.6,arch=5.3", "11.6", "5.3", "", 0, 0, NULL },
	{ "cuda<10.6 cuda>=11.6,arch=5.3", "11.6", "8.7", "", -1, 0, NULL },
	/* What cannot be found out is older than any version, and of no brand. */
	{ "cuda>=11.6", "", NULL, "", -1, 0, "requirements not met: unsatisfied condition: cuda>=11.6 (cuda=)" },
	{ "driver<535", NULL, NULL, "", 0, 0, NULL },
	{ "driver>=535", NULL, NULL, "", -1, 0, NULL },
	{ "driver>=535", NULL, NULL, "540.4.0", 0, 0, NULL },
	{ "brand=tesla", NULL, NULL, "", -1, 0, "requirements not met: unsatisfied condition: brand=tesla (brand=)" },
	{ "brand!=tesla", NULL, NULL, "", 0, 0, NULL },
	/* What images of CUDA 12 say */
	{ "cuda>=12.2 brand=tesla,driver>=470,driver<471 brand=unknown,driver>=470,driver<471", "12.2", NULL, "", 0, 0,
	  NULL },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_requirement_facts facts = {
			.cuda = rows[i].cuda, .arch = rows[i].arch, .driver = rows[i].driver, .brand = ""
		};
		struct graft_arena *arena = graft_arena_new(65536);
		struct graft_error err = { .status = GRAFT_OK };
		unsigned int missing;

		print_message("# %s\n", rows[i].expression);
		assert_int_equal(graft_csv_requirements(&rows[i].expression, 1, &facts, arena, &missing, &err),
				 rows[i].rc);
		assert_int_equal(missing, rows[i].missing);
		if (rows[i].rc < 0)
			assert_int_not_equal(err.status, GRAFT_OK);
		if (rows[i].message)
			assert_string_equal(err.msg, rows[i].message);
		graft_arena_free(arena);
	}
}

static void test_all_must_hold(void **state)
{
	static const char *const both[] = { "cuda>=11.0", "arch>=9.0" };
	struct graft_requirement_facts facts = { .cuda = "11.4", .arch = "8.7", .driver = "", .brand = "" };
	struct graft_arena *arena = graft_arena_new(65536);
	unsigned int missing;

	assert_int_equal(graft_csv_requirements(both, 1, &facts, arena, &missing, NULL), 0);
	assert_int_equal(graft_csv_requirements(both, 2, &facts, arena, &missing, NULL), -1);
	graft_arena_free(arena);
}

/* An image may set a variable of any length: the work grows with it, not with its square. */
static void test_many_parts(void **state)
{
	static const struct graft_requirement_facts facts = { .cuda = "12.2" };
	static const size_t length = (size_t)1 << 20;
	char *parts = malloc(length + 1);
	const char *const expression[] = { parts };
	auto_arena struct graft_arena *arena = graft_arena_new((size_t)16 << 20);
	struct graft_error err = { .status = GRAFT_OK };
	char text[1024];
	unsigned int missing;

	assert_non_null(parts);
	for (size_t i = 0; i < length; i++)
		parts[i] = i % 2 == 0 ? 'a' : ',';
	parts[length] = '\0';
	assert_int_equal(graft_csv_requirements(expression, 1, &facts, arena, &missing, &err), -1);
	assert_int_equal(err.status, GRAFT_EXPRESSION);
	assert_string_printed(graft_error_text(&err, text, sizeof(text)),
			      "requirements not met: '%.*s': invalid expression", 200, parts);
	free(parts);
}

/* None is skipped: what is beyond the limit is not read, so the rest does not count either. */
static void test_too_many(void **state)
{
	static const struct graft_requirement_facts facts = { .cuda = "12.2" };
	const char *expressions[GRAFT_REQUIREMENTS_MAX + 1];
	auto_arena struct graft_arena *arena = graft_arena_new(65536);
	struct graft_error err = { .status = GRAFT_OK };
	unsigned int missing;

	for (size_t i = 0; i < GRAFT_COUNT(expressions); i++)
		expressions[i] = "cuda>=12.0";
	assert_int_equal(graft_csv_requirements(expressions, GRAFT_REQUIREMENTS_MAX, &facts, arena, &missing, &err), 0);
	assert_int_equal(graft_csv_requirements(expressions, GRAFT_COUNT(expressions), &facts, arena, &missing, &err),
			 -1);
	assert_int_equal(err.status, GRAFT_INVALID);
	assert_string_equal(err.msg, "too many requirements");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_all_must_hold),
		cmocka_unit_test(test_many_parts),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
