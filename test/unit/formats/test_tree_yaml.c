/* SPDX-License-Identifier: Apache-2.0 */
/* YAML as the readers of Go take it: what a plain scalar is, anchors, documents, and what is refused with its place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../arena.h"
#include "../unit.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "formats/tree/tree.h"

static int parse(const char *text, const struct graft_tree_value **ret_root, struct graft_error *err)
{
	struct graft_tree_builder builder = {
		.file = "f", .what = "invalid text: ", .texts = arena, .arena = arena, .err = err
	};

	return graft_tree_from_yaml(&builder, text, strlen(text), ret_root);
}

static const struct {
	const char *text;
	enum graft_tree_kind kind;
	bool negative;
	uint64_t magnitude;
	const char *as_text; /* what a reader of a string takes it for; NULL = it refuses */
} scalars[] = {
	{ "~", GRAFT_TREE_NULL, false, 0, "" },
	{ "null", GRAFT_TREE_NULL, false, 0, "" },
	{ "Null", GRAFT_TREE_NULL, false, 0, "" },
	{ "nUll", GRAFT_TREE_STRING, false, 0, "nUll" },
	{ "'null'", GRAFT_TREE_STRING, false, 0, "null" },
	{ "true", GRAFT_TREE_BOOL, false, 1, "true" },
	{ "yes", GRAFT_TREE_BOOL, false, 1, "true" },
	{ "On", GRAFT_TREE_BOOL, false, 1, "true" },
	{ "y", GRAFT_TREE_BOOL, false, 1, "true" },
	{ "no", GRAFT_TREE_BOOL, false, 0, "false" },
	{ "OFF", GRAFT_TREE_BOOL, false, 0, "false" },
	{ "\"no\"", GRAFT_TREE_STRING, false, 0, "no" },
	{ "tRue", GRAFT_TREE_STRING, false, 0, "tRue" },
	{ "0", GRAFT_TREE_INTEGER, false, 0, "0" },
	{ "-0", GRAFT_TREE_INTEGER, false, 0, "0" },
	{ "+7", GRAFT_TREE_INTEGER, false, 7, "7" },
	{ "195", GRAFT_TREE_INTEGER, false, 195, "195" },
	{ "1_000", GRAFT_TREE_INTEGER, false, 1000, "1000" },
	{ "0666", GRAFT_TREE_INTEGER, false, 438, "438" },
	{ "0o666", GRAFT_TREE_INTEGER, false, 438, "438" },
	{ "0x1B6", GRAFT_TREE_INTEGER, false, 438, "438" },
	{ "0b110110110", GRAFT_TREE_INTEGER, false, 438, "438" },
	{ "-0x10", GRAFT_TREE_INTEGER, true, 16, "-16" },
	{ "18446744073709551615", GRAFT_TREE_INTEGER, false, UINT64_MAX, "18446744073709551615" },
	{ "-9223372036854775808", GRAFT_TREE_INTEGER, true, (uint64_t)1 << 63, "-9223372036854775808" },
	{ "18446744073709551616", GRAFT_TREE_FRACTION, false, 0, NULL },
	{ "-9223372036854775809", GRAFT_TREE_FRACTION, false, 0, NULL },
	{ "089", GRAFT_TREE_FRACTION, false, 0, NULL },
	{ "1.5", GRAFT_TREE_FRACTION, false, 0, NULL },
	{ "1e3", GRAFT_TREE_FRACTION, false, 0, NULL },
	{ ".5", GRAFT_TREE_FRACTION, false, 0, NULL },
	{ "-.inf", GRAFT_TREE_FRACTION, false, 0, NULL },
	{ ".nan", GRAFT_TREE_FRACTION, false, 0, NULL },
	{ "0.5.0", GRAFT_TREE_STRING, false, 0, "0.5.0" },
	{ "1.2.3.4", GRAFT_TREE_STRING, false, 0, "1.2.3.4" },
	{ "2026-01-02", GRAFT_TREE_STRING, false, 0, "2026-01-02" },
	{ "0x", GRAFT_TREE_STRING, false, 0, "0x" },
	{ "0xg", GRAFT_TREE_STRING, false, 0, "0xg" },
	{ "1e", GRAFT_TREE_STRING, false, 0, "1e" },
	{ ".", GRAFT_TREE_STRING, false, 0, "." },
	{ "+", GRAFT_TREE_STRING, false, 0, "+" },
	{ "0:1", GRAFT_TREE_STRING, false, 0, "0:1" },
	{ "<<", GRAFT_TREE_STRING, false, 0, "<<" },
	{ "!!str 7", GRAFT_TREE_STRING, false, 0, "7" },
	{ "!!str 0666", GRAFT_TREE_STRING, false, 0, "0666" },
	{ "!!str yes", GRAFT_TREE_STRING, false, 0, "yes" },
	{ "!!int 7", GRAFT_TREE_INTEGER, false, 7, "7" },
	{ "! 7", GRAFT_TREE_STRING, false, 0, "7" },
	{ "\xef\xbb\xbf"
	  "7",
	  GRAFT_TREE_INTEGER, false, 7, "7" },
	{ "|\n  a\n  b\n", GRAFT_TREE_STRING, false, 0, "a\nb\n" },
	{ ">-\n  a\n  b\n", GRAFT_TREE_STRING, false, 0, "a b" },
};

static void test_scalars(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(scalars); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		const struct graft_tree_value *root;

		print_message("# %s\n", scalars[i].text);
		if (parse(scalars[i].text, &root, &err) < 0)
			fail_msg("%s", err.msg);
		assert_int_equal(root->kind, scalars[i].kind);
		assert_int_equal(root->negative, scalars[i].negative);
		assert_true(root->magnitude == scalars[i].magnitude);
		if (scalars[i].as_text)
			assert_string_equal(root->text, scalars[i].as_text);
	}
}

static const struct {
	const char *text, *message;
} bad[] = {
	{ "a: 1\n---\nb: 1\n", "f: line 2, column 1: invalid text: more than one document" },
	{ "a: &x [*x]\n", "f: line 1, column 8: invalid text: an alias to a value that contains it: \"x\"" },
	{ "&x {a: *x}\n", "f: line 1, column 8: invalid text: an alias to a value that contains it: \"x\"" },
	{ "a: *x\n", "f: line 1, column 4: invalid text: an alias to an anchor that does not exist: \"x\"" },
	{ "a: !!binary aGk=\n", NULL },
	{ "a: !local 1\n", NULL },
	{ "a: !!int x\n", NULL },
	{ "a: !!str [x]\n", NULL },
	{ "? [a]\n: 1\n", "f: line 1, column 3: invalid text: nested too deeply, or not a single value" },
	{ "~: 1\n", "f: line 1, column 1: invalid text: expected a name" },
	{ "a: \"x\\0y\"\n", "f: line 1, column 4: invalid text: a string must not contain a NUL character" },
	{ "a: b: c\n", "f: line 1, column 5: invalid text: mapping values are not allowed in this context" },
	{ "a:\n\t- b\n", NULL },
	{ "a: [1, 2\n", NULL },
	{ "a: \"x\n", NULL },
	{ "a: \xff\n", "f: invalid text: invalid leading UTF-8 octet at byte 3" },
	{ "\xff\xfe"
	  "a\x01",
	  NULL },
	{ "a: \x01\n", NULL },
	{ "%YAML 3.0\n---\na: 1\n", NULL },
};

static void test_bad(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(bad); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		const struct graft_tree_value *root;

		print_message("# row %zu\n", i);
		assert_int_equal(parse(bad[i].text, &root, &err), -1);
		assert_int_equal(err.status, GRAFT_FORMAT);
		if (bad[i].message)
			assert_string_equal(err.msg, bad[i].message);
	}
}

static const struct graft_tree_value *member(const struct graft_tree_value *map, const char *name)
{
	for (const struct graft_tree_value *at = map->first; at; at = at->next) {
		if (strcmp(at->key, name) == 0)
			return at;
	}
	fail_msg("no member %s", name);
	return map;
}

static void test_aliases(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	const struct graft_tree_value *root;

	if (parse("a: &x [1, 2]\nb: *x\nc: &x 7\nd: *x\n", &root, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(graft_tree_count(root), 4);
	assert_ptr_equal(member(root, "b")->first, member(root, "a")->first);
	assert_int_equal(graft_tree_count(member(root, "b")), 2);
	assert_int_equal(member(root, "b")->line, 2);
	assert_int_equal(member(root, "d")->magnitude, 7); /* the later anchor of a name counts */
}

/* Aliases to aliases stand for more values than there are atoms; the tree stays as small as the text. */
static void test_laughs(void **state)
{
	struct graft_buffer text = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_tree_builder builder = {
		.file = "f", .what = "invalid text: ", .texts = arena, .arena = arena, .err = &err
	};
	const struct graft_tree_value *root;

	graft_buffer_string(&text, "l0: &l0 [a, a, a, a, a, a, a, a, a]\n");
	for (int i = 1; i < 30; i++) {
		graft_buffer_printf(&text, "l%d: &l%d [", i, i);
		for (int j = 0; j < 9; j++)
			graft_buffer_printf(&text, "%s*l%d", j ? ", " : "", i - 1);
		graft_buffer_string(&text, "]\n");
	}
	assert_int_equal(graft_tree_from_yaml(&builder, text.bytes, text.length, &root), 0);
	assert_true(builder.n_values < 400);
	graft_buffer_done(&text);
}

static void repeat(struct graft_buffer *text, const char *part, size_t n)
{
	for (size_t i = 0; i < n; i++)
		graft_buffer_string(text, part);
}

/* None of them may take long or much. */
static void test_hostile(void **state)
{
	static const char *const parts[] = { "[",        "{",      "{a: ", "- ", "? ",  "&a ",
					     "- &a x\n", "!!str ", "\"",   "*a", "[]: " };

	for (size_t i = 0; i < GRAFT_COUNT(parts); i++) {
		struct graft_buffer text = { .max = 0 };
		struct graft_error err = { .status = GRAFT_OK };
		const struct graft_tree_value *root;

		print_message("# %s...\n", parts[i]);
		repeat(&text, parts[i], 100000);
		assert_int_equal(parse(graft_buffer_text(&text), &root, &err), -1);
		graft_buffer_done(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_scalars, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_bad, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_aliases, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_laughs, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_hostile, arena_setup, arena_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
