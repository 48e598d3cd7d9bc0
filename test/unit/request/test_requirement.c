/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "request/requirement.h"

enum { F = GRAFT_REQUIREMENT_FALSE, T = GRAFT_REQUIREMENT_TRUE, U = GRAFT_REQUIREMENT_UNKNOWN, BAD = -1 };

static int evaluate(const char *expression, const struct graft_requirement_facts *facts, unsigned int *ret_missing)
{
	enum graft_requirement_result result = GRAFT_REQUIREMENT_UNKNOWN;
	struct graft_error err = { 0 };

	*ret_missing = 0;
	if (graft_requirement_evaluate(expression, facts, &result, ret_missing, &err) < 0) {
		assert_int_equal(err.status, GRAFT_EXPRESSION);
		assert_string_equal(err.msg, "invalid expression");
		return BAD;
	}
	assert_true((result == GRAFT_REQUIREMENT_UNKNOWN) == (*ret_missing != 0));
	return (int)result;
}

static void test_known_facts(void **state)
{
	static const struct graft_requirement_facts facts = {
		.cuda = "12.4", .driver = "550.54.14", .arch = "8.0", .brand = "Tesla"
	};
	static const struct {
		const char *expression;
		int wanted;
	} rows[] = {
		/* the operators */
		{ "cuda=12.4", T },
		{ "cuda=12.5", F },
		{ "cuda!=12.5", T },
		{ "cuda!12.5", T },
		{ "cuda!12.4", F },
		{ "cuda<12.5", T },
		{ "cuda<12.4", F },
		{ "cuda<=12.4", T },
		{ "cuda<=12.3", F },
		{ "cuda>12.3", T },
		{ "cuda>12.4", F },
		{ "cuda>=12.4", T },
		{ "cuda>=12.5", F },
		{ "cuda>=13", F },
		/* versions: numbers, not text; missing parts are zero */
		{ "cuda=12.4.0", T },
		{ "cuda>12", T },
		{ "cuda>=9.2", T },
		{ "driver=550.54.14.0", T },
		{ "driver>=550.54.9", T },
		{ "driver<1000", T },
		{ "driver=550..54...14", T },
		{ "driver=00550.054.14", T },
		{ "driver<99999999999999999999999999", T },
		/* names and words in any case */
		{ "CUDA>=12.0,Brand=TESLA", T },
		{ "brand!=quadro", T },
		{ "brand=tesl", F },
		{ "brand=teslaa", F },
		{ "arch>=7.5", T },
		/* AND binds closer than OR */
		{ "cuda>=12.0,driver<500", F },
		{ "cuda>=13 driver>=550", T },
		{ "cuda>=13,brand=tesla arch=8.0,brand=tesla", T },
		{ "cuda>=13 driver<500", F },
		/* empty parts */
		{ "", T },
		{ "   ", T },
		{ ",", T },
		{ ",,cuda>=12,,", T },
		{ "  cuda>=13   cuda=12.4  ", T },
		/* malformed */
		{ "cuda", BAD },
		{ "cuda>=", BAD },
		{ ">=12", BAD },
		{ "cuda==12", BAD },
		{ "cuda=>12", BAD },
		{ "cuda<>12", BAD },
		{ "cuda>=12.x", BAD },
		{ "cuda>=v12", BAD },
		{ "gpu=1", BAD },
		{ "brand>=tesla", BAD },
		{ "cuda >=12", BAD },
		{ "cuda>=1=2", BAD },
		/* ... but only if evaluation gets there */
		{ "cuda>=12 foo=1", T },
		{ "cuda>=13 foo=1", BAD },
		{ "cuda>=13,foo=1", F },
		{ "cuda>=12,foo=1", BAD },
		{ "driver<551 foo=1", T },
	};
	unsigned int missing;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		int got = evaluate(rows[i].expression, &facts, &missing);

		if (got != rows[i].wanted)
			fail_msg("'%s' gives %d instead of %d", rows[i].expression, got, rows[i].wanted);
	}
}

#define CUDA  GRAFT_REQUIREMENT_CUDA
#define ARCH  GRAFT_REQUIREMENT_ARCH
#define BRAND GRAFT_REQUIREMENT_BRAND

/* Only driver and a bound of the CUDA version are known, as without NVML. */
static void test_missing_facts_are_asked_for_only_when_they_decide(void **state)
{
	static const struct graft_requirement_facts facts = { .driver = "550.54.14",
							      .cuda_min = "12.2",
							      .cuda_max = "12.4" };
	static const struct {
		const char *expression;
		int wanted;
		unsigned int missing;
	} rows[] = {
		{ "driver>=550", T, 0 },
		{ "cuda>=12.2", T, 0 },
		{ "cuda>=12.0", T, 0 },
		{ "cuda>=12.3", U, CUDA },
		{ "cuda>=12.4", U, CUDA },
		{ "cuda>=12.5", F, 0 },
		{ "cuda>12.4", F, 0 },
		{ "cuda>12.1", T, 0 },
		{ "cuda<12.5", T, 0 },
		{ "cuda<12.4", U, CUDA },
		{ "cuda<12.2", F, 0 },
		{ "cuda<=12.4", T, 0 },
		{ "cuda<=12.1", F, 0 },
		{ "cuda=12.3", U, CUDA },
		{ "cuda=12.5", F, 0 },
		{ "cuda!=12.5", T, 0 },
		{ "cuda!=12.3", U, CUDA },
		{ "arch>=8.0", U, ARCH },
		{ "brand=tesla", U, BRAND },
		{ "arch>=8.0,brand=tesla", U, ARCH | BRAND },
		/* decided whatever the unknown fact is */
		{ "arch>=8.0,driver<500", F, 0 },
		{ "arch>=8.0 driver>=550", T, 0 },
		{ "cuda>=12.5 driver>=550", T, 0 },
		{ "arch>=8.0,driver<500 brand=tesla", U, BRAND },
		/* malformed: an error only where evaluation surely arrives */
		{ "foo=1", BAD, 0 },
		{ "arch>=8.0,foo=1", U, ARCH },
		{ "arch>=8.0 foo=1", U, ARCH },
		{ "arch>=8.0 foo=1 driver>=550", U, ARCH },
		{ "arch>=8.0,foo=1 driver>=550", U, ARCH },
		{ "arch>=x", BAD, 0 },
		{ "brand<x", BAD, 0 },
	};
	unsigned int missing;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		int got = evaluate(rows[i].expression, &facts, &missing);

		if (got != rows[i].wanted || missing != rows[i].missing)
			fail_msg("'%s' gives %d, missing %#x, instead of %d, %#x", rows[i].expression, got, missing,
				 rows[i].wanted, rows[i].missing);
	}
}

static void test_open_ended_bounds(void **state)
{
	static const struct graft_requirement_facts at_least = { .cuda_min = "12.4" }, at_most = { .cuda_max = "12.4" };
	unsigned int missing;

	assert_int_equal(evaluate("cuda>=12.4", &at_least, &missing), T);
	assert_int_equal(evaluate("cuda<12.4", &at_least, &missing), F);
	assert_int_equal(evaluate("cuda<=12.4", &at_least, &missing), U);
	assert_int_equal(evaluate("cuda<=12.4", &at_most, &missing), T);
	assert_int_equal(evaluate("cuda>12.4", &at_most, &missing), F);
	assert_int_equal(evaluate("cuda>=12.4", &at_most, &missing), U);
	assert_int_equal(missing, CUDA);
}

/* SPEC libnvidia-container 8: missing data counts as satisfied. */
static void test_absent_facts_are_satisfied(void **state)
{
	static const struct graft_requirement_facts facts = { .driver = "550.54.14",
							      .cuda = "12.4",
							      .absent = ARCH | BRAND };
	unsigned int missing;

	assert_int_equal(evaluate("arch>=99.0,brand=tesla", &facts, &missing), T);
	assert_int_equal(evaluate("arch>=99.0,cuda>=13", &facts, &missing), F);
	assert_int_equal(evaluate("arch", &facts, &missing), BAD);
}

/*
 * Whatever is still unknown, the lazy answer must be the plain one: for each expression, each subset of known facts and each value of the unknown
 * ones, an answer other than UNKNOWN equals the answer with everything known.
 */
static void test_lazy_agrees_with_eager(void **state)
{
	static const char *const comparisons[] = { "cuda>=12", "cuda<12", "arch=8.0", "brand=tesla", "foo=1" };
	static const char *const cuda_values[] = { "11.8", "12.4" }, *const arch_values[] = { "7.5", "8.0" },
				 *const brand_values[] = { "Tesla", "Quadro" };
	static const char separators[] = " ,";
	const unsigned int n = GRAFT_COUNT(comparisons);
	unsigned int missing, decided = 0;

	for (unsigned int code = 0; code < n * n * n * 4; code++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "%s%c%s%c%s", comparisons[code % n],
			       separators[code / (n * n * n) % 2], comparisons[code / n % n],
			       separators[code / (n * n * n) / 2], comparisons[code / (n * n) % n]);
		for (unsigned int values = 0; values < 8; values++) {
			const struct graft_requirement_facts all = { .cuda = cuda_values[values & 1],
								     .arch = arch_values[values >> 1 & 1],
								     .brand = brand_values[values >> 2] };
			int eager = evaluate(text, &all, &missing);

			for (unsigned int known = 0; known < 7; known++) {
				const struct graft_requirement_facts some = { .cuda = known & 1 ? all.cuda : NULL,
									      .arch = known & 2 ? all.arch : NULL,
									      .brand = known & 4 ? all.brand : NULL };
				int lazy = evaluate(text, &some, &missing);

				if (lazy != U && lazy != eager)
					fail_msg("'%s': %d with facts %u, %d with all", text, lazy, known, eager);
				decided += lazy != U;
			}
		}
	}
	assert_true(decided > 1000); /* not everything was UNKNOWN */
}

static void test_failure_text(void **state)
{
	static const struct {
		const char *expression, *wanted;
	} rows[] = {
		{ "cuda>=13.0",
		  "unsatisfied condition: cuda>=13.0, please update your driver to a newer version, or use an "
		  "earlier cuda container" },
		{ "cuda>=13.0,brand=tesla arch>=9.0", "unsatisfied condition: cuda>=13.0,brand=tesla, please update "
						      "your driver to a newer version, or use an "
						      "earlier cuda container" },
		{ "brand=tesla,cuda>=13 arch>=9.0", "unsatisfied condition: brand=tesla,cuda>=13" },
		{ "driver>=600", "unsatisfied condition: driver>=600" },
	};
	struct graft_error err;
	char long_one[1000], text[1024];

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		graft_error_clear(&err);
		assert_int_equal(graft_requirement_fail(rows[i].expression, &err), -1);
		assert_int_equal(err.status, GRAFT_REQUIREMENT);
		assert_string_equal(graft_error_text(&err, text, sizeof(text)), rows[i].wanted);
	}
	memset(long_one, '1', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = '\0';
	memcpy(long_one, "cuda>=", 6);
	(void)graft_requirement_fail(long_one, &err);
	assert_string_printed(err.msg,
			      "unsatisfied condition: %.*s, please update your driver to a newer version, or use an "
			      "earlier cuda container",
			      384, long_one);
}

static void test_version_compare(void **state)
{
	static const struct {
		const char *a, *b;
		int wanted;
	} rows[] = {
		{ "12.4", "12.4.0", 0 }, { "12", "12.4", -1 },
		{ "12.10", "12.9", 1 },  { "550.54.14", "550.54.14.0", 0 },
		{ "1000", "550", 1 },    { "0.0.1", "0", 1 },
		{ "", "0", 0 },          { "18446744073709551617", "1", 1 },
		{ "12.4", "12.40", -1 }, { "012.04", "12.4.", 0 },
		{ "2", "10", -1 },       { "12.0.1", "12.0.0.9", 1 },
	};
	static const char *const signs[] = { "<", "=", ">" };

	for (size_t i = 0; i < 2 * GRAFT_COUNT(rows); i++) {
		bool turned = i % 2 != 0;
		const char *a = turned ? rows[i / 2].b : rows[i / 2].a, *b = turned ? rows[i / 2].a : rows[i / 2].b;
		int wanted = turned ? -rows[i / 2].wanted : rows[i / 2].wanted;
		const struct graft_requirement_facts facts = { .driver = a };

		for (int sign = -1; sign <= 1 && b[0] != '\0'; sign++) {
			unsigned int missing;
			char expression[64];

			(void)snprintf(expression, sizeof(expression), "driver%s%s", signs[sign + 1], b);
			if (evaluate(expression, &facts, &missing) != (sign == wanted ? T : F))
				fail_msg("%s with %s", expression, a);
		}
	}
}

static void test_no_versions(void **state)
{
	static const char *const rows[][2] = { { "12.x", "12" }, { "v12", "12" }, { "12", "12-1" }, { "12", "12 .1" } };
	unsigned int missing;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_requirement_facts facts = { .driver = rows[i][0] };
		char expression[64];

		(void)snprintf(expression, sizeof(expression), "driver>%s", rows[i][1]);
		if (evaluate(expression, &facts, &missing) != BAD)
			fail_msg("%s with %s", expression, rows[i][0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_facts),
		cmocka_unit_test(test_missing_facts_are_asked_for_only_when_they_decide),
		cmocka_unit_test(test_open_ended_bounds),
		cmocka_unit_test(test_absent_facts_are_satisfied),
		cmocka_unit_test(test_lazy_agrees_with_eager),
		cmocka_unit_test(test_failure_text),
		cmocka_unit_test(test_version_compare),
		cmocka_unit_test(test_no_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
