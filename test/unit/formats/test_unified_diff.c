/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of texts, to the byte as diff -u prints them; and that each one leads from the one text to the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "formats/unified_diff.h"

#define HEADER "--- old\n+++ new\n"

static int diff(const char *before, const char *after, struct graft_buffer *out, struct graft_error *err)
{
	const struct graft_diff_text old = { "old", before, strlen(before) }, new = { "new", after, strlen(after) };

	return graft_unified_diff(&old, &new, out, err);
}

static void test_texts(void **state)
{
	static const char *const rows[][3] = {
		{ "", "", "" },
		{ "a\n", "a\n", "" },
		{ "", "a\nb\n", HEADER "@@ -0,0 +1,2 @@\n+a\n+b\n" },
		{ "a\nb\n", "", HEADER "@@ -1,2 +0,0 @@\n-a\n-b\n" },
		{ "a\n", "b\n", HEADER "@@ -1 +1 @@\n-a\n+b\n" },
		{ "a", "a\n", HEADER "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n" },
		{ "a\nb", "a\nc",
		  HEADER "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n" },
		{ "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n5\n6\n7\n8\n9\n",
		  HEADER "@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+x\n 5\n 6\n 7\n" },
		{ "a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
		  HEADER "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n" },
		{ "a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n",
		  HEADER "@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n" },
		{ "x\nk\ny\n", "k\nz\n", HEADER "@@ -1,3 +1,2 @@\n-x\n k\n-y\n+z\n" },
		{ "a\na\nb\n", "a\nb\nb\n", HEADER "@@ -1,3 +1,3 @@\n a\n-a\n b\n+b\n" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_buffer out = { 0 };

		print_message("# row %zu\n", i);
		assert_int_equal(diff(rows[i][0], rows[i][1], &out, NULL), 0);
		assert_string_equal(graft_buffer_text(&out), rows[i][2]);
		graft_buffer_done(&out);
	}
}

/* Applies the hunks, as patch does; asserts that context and removed lines are what they say. */
static void assert_leads(const char *before, const char *after, const char *text)
{
	auto_free char *result = calloc(1, strlen(before) + strlen(text) + strlen(after) + 1);
	const char *rest = before, *line = text;
	size_t n = 0, at = 1;

	assert_non_null(result);
	for (; *line; line += strcspn(line, "\n") + 1) {
		size_t length = strcspn(line, "\n");

		if (strncmp(line, "@@ -", 4) == 0) {
			size_t start = strtoul(line + 4, NULL, 10), count = 1;
			const char *comma = strpbrk(line + 4, ", ");

			if (*comma == ',')
				count = strtoul(comma + 1, NULL, 10);
			for (start += count == 0 ? 1 : 0; at < start; at++) {
				size_t whole = strcspn(rest, "\n") + 1;

				memcpy(result + n, rest, whole);
				n += whole;
				rest += whole;
			}
		} else if (*line == '+' && strncmp(line, "+++", 3) != 0) {
			memcpy(result + n, line + 1, length);
			n += length;
		} else if (*line == ' ' || (*line == '-' && strncmp(line, "---", 3) != 0)) {
			assert_memory_equal(rest, line + 1, length);
			if (*line == ' ') {
				memcpy(result + n, rest, length);
				n += length;
			}
			rest += length;
			at++;
		}
	}
	memcpy(result + n, rest, strlen(rest) + 1);
	assert_string_equal(result, after);
}

static void fill(char *text, unsigned int *seed, int n)
{
	for (int i = 0; i < n; i++) {
		*text++ = (char)('a' + rand_r(seed) % 3);
		*text++ = '\n';
	}
	*text = '\0';
}

static void test_each_leads_from_one_to_the_other(void **state)
{
	for (unsigned int seed = 0; seed < 2000; seed++) {
		unsigned int next = seed;
		struct graft_buffer out = { 0 };
		char before[64], after[64];

		fill(before, &next, rand_r(&next) % 25);
		fill(after, &next, rand_r(&next) % 25);
		assert_int_equal(diff(before, after, &out, NULL), 0);
		assert_leads(before, after, graft_buffer_text(&out));
		graft_buffer_done(&out);
	}
}

/* Too much for a table: shown as replaced, but for what both begin and end with. */
static void test_large_texts(void **state)
{
	struct graft_buffer before = { 0 }, after = { 0 }, out = { 0 };

	graft_buffer_string(&before, "same\n");
	graft_buffer_string(&after, "same\n");
	for (int i = 0; i < 3000; i++) {
		graft_buffer_printf(&before, "%d\n", i);
		graft_buffer_printf(&after, "%d\n", i * 2);
	}
	graft_buffer_string(&before, "end\n");
	graft_buffer_string(&after, "end\n");
	assert_int_equal(diff(before.bytes, after.bytes, &out, NULL), 0);
	assert_leads(before.bytes, after.bytes, out.bytes);
	assert_non_null(strstr(out.bytes, "@@ -1,3002 +1,3002 @@\n same\n 0\n-1\n"));
	graft_buffer_done(&before);
	graft_buffer_done(&after);
	graft_buffer_done(&out);
}

static void test_memory(void **state)
{
	for (int n = 1;; n++) {
		struct graft_buffer out = { 0 };
		struct graft_error err = { 0 };
		int rc;

		allocation_fail(n);
		rc = diff("a\nb\n", "b\nc\n", &out, &err);
		graft_buffer_done(&out);
		if (!allocation_reported(rc, &err)) {
			assert_true(n > 4);
			return;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_each_leads_from_one_to_the_other),
		cmocka_unit_test(test_large_texts),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
