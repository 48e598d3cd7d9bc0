/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON reader against a public suite (skipped by name when it is not there) and against its own limits. */
#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/json/json.h"
#include "json_suite.h"

/* Cases of the suite that we refuse on purpose. */
static const char *const own_limits[] = {
	"y_object_escaped_null_in_key.json",  /* a NUL ends a C string */
	"i_structure_500_nested_arrays.json", /* depth */
};

static bool parses(const char *text, size_t length)
{
	struct graft_json_document *json = NULL;
	struct graft_error err = { 0 };
	int rc = graft_json_parse(text, length, 200, &json, &err);

	graft_json_document_free(json);
	if (rc < 0)
		assert_true(err.status == GRAFT_FORMAT || err.status == GRAFT_TOO_BIG);
	return rc == 0;
}

static void check_suite_file(const char *name, const char *bytes, size_t length)
{
	bool accepted = parses(bytes, length);

	if (graft_is_in(own_limits, GRAFT_COUNT(own_limits), name) || name[0] == 'n') {
		if (accepted)
			fail_msg("accepted: %s", name);
	} else if (name[0] == 'y' && !accepted) {
		fail_msg("refused: %s", name);
	}
}

static void test_suite(void **state)
{
	json_suite_each(check_suite_file);
}

static void test_limits(void **state)
{
	static const struct {
		const char *text;
		bool accepted;
	} rows[] = {
		{ "18446744073709551615", true },
		{ "18446744073709551616", false },
		{ "-9223372036854775808", true },
		{ "-9223372036854775809", false },
		{ "{\"a\\u0000b\": 1}", false },
		{ "\"a\\u0000b\"", true },
		{ "NaN", false },
		{ "Infinity", false },
		{ "{'a': 1}", false },
		{ "[1] 2", false },
		{ "\"\xc0\x80\"", false },
		{ "\"\xed\xa0\x80\"", false },
		{ "", false },
		{ " ", false },
		{ "3", true },
		{ "-", false },
		{ "{\"a\":1,}", false },
		{ "[1,]", false },
		{ "tru", false },
		{ "{\"a\" 1}", false },
	};
	char deep[512];

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		if (parses(rows[i].text, strlen(rows[i].text)) != rows[i].accepted)
			fail_msg("row %zu: %s", i, rows[i].text);
	}
	memset(deep, '[', 200);
	memset(deep + 200, ']', 200);
	assert_true(parses(deep, 400));
	memset(deep, '[', 201);
	memset(deep + 201, ']', 201);
	assert_false(parses(deep, 402));
}

static void test_error_names_the_place(void **state)
{
	static const char text[] = "{\n  \"a\": 1,\n  \"b\": tru\n}";
	struct graft_json_document *json = NULL;
	struct graft_error err = { 0 };

	assert_int_equal(graft_json_parse(text, strlen(text), 10, &json, &err), -1);
	assert_string_equal(err.msg, "invalid JSON at line 3, column 8: expected a value");
}

static void test_quote(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "plain", "\"plain\"" },
		{ "a\"b\\c", "\"a\\\"b\\\\c\"" },
		{ "\b\t\n\v\f\r", "\"\\b\\t\\n\\u000b\\f\\r\"" },
		{ "\x01\x7f", "\"\\u0001\\u007f\"" },
		{ "\xc3\xa9", "\"\xc3\xa9\"" },
		{ "\xff", "\"\xef\xbf\xbd\"" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_buffer out = { 0 };

		graft_json_quote(&out, rows[i].in);
		assert_string_equal(graft_buffer_text(&out), rows[i].out);
		assert_true(parses(out.bytes, out.length));
		graft_buffer_done(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suite),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_error_names_the_place),
		cmocka_unit_test(test_quote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
