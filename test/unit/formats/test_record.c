/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "formats/record.h"

struct leaf {
	const char *name;
	int64_t delta;
};

enum colour { RED, GREEN, BLUE };

struct tree {
	uint32_t version;
	enum colour colour;
	uint32_t bits;
	bool on;
	uint64_t big;
	const char *text;
	const char **words;
	size_t n_words;
	struct leaf first;
	struct leaf *leaves;
	size_t n_leaves;
};

static const char *const colours[] = { "red", "green", "blue" };
static const struct graft_field leaf_fields[] = {
	GRAFT_F_STRING(struct leaf, name, false, "what it is called"),
	GRAFT_F_I64(struct leaf, delta, false, "a signed number"),
};
static const struct graft_record leaf_record = { "leaf", sizeof(struct leaf), leaf_fields, GRAFT_COUNT(leaf_fields) };
static const struct graft_field tree_fields[] = {
	GRAFT_F_U32(struct tree, version, true, "of the form"),
	GRAFT_F_ENUM(struct tree, colour, colours, 3, false, "of the leaves"),
	GRAFT_F_FLAGS(struct tree, bits, colours, 3, "mixed"),
	GRAFT_F_BOOL(struct tree, on, "or off"),
	GRAFT_F_U64(struct tree, big, false, "64 bits"),
	GRAFT_F_STRING(struct tree, text, false, "text"),
	GRAFT_F_STRINGS(struct tree, words, "several"),
	GRAFT_F_RECORD(struct tree, first, &leaf_record, "embedded"),
	GRAFT_F_RECORDS(struct tree, leaves, &leaf_record, "listed"),
};
static const struct graft_record tree_record = { "tree", sizeof(struct tree), tree_fields, GRAFT_COUNT(tree_fields) };

static const char *words[] = { "a", "", "c\n" };
static struct leaf leaves[] = { { "x", INT64_MIN }, { NULL, 0 }, { "", INT64_MAX } };

static struct tree full_tree(void)
{
	struct tree tree = { 7, BLUE, 5, true, UINT64_MAX, "t", words, 3, { "f", -1 }, leaves, 3 };

	return tree;
}

static void test_written_form(void **state)
{
	struct tree tree = full_tree();
	struct graft_buffer out = { 0 };

	graft_record_write(&tree_record, &tree, &out);
	assert_string_equal(
	    graft_buffer_text(&out),
	    "{\n  \"version\": 7,\n  \"colour\": \"blue\",\n  \"bits\": [\"red\", \"blue\"],\n"
	    "  \"on\": true,\n  \"big\": 18446744073709551615,\n  \"text\": \"t\",\n"
	    "  \"words\": [\n    \"a\",\n    \"\",\n    \"c\\n\"\n  ],\n"
	    "  \"first\": {\n    \"name\": \"f\",\n    \"delta\": -1\n  },\n"
	    "  \"leaves\": [\n    {\n      \"name\": \"x\",\n      \"delta\": -9223372036854775808\n    },\n"
	    "    {},\n    {\n      \"name\": \"\",\n      \"delta\": 9223372036854775807\n    }\n  ]\n}\n");
	graft_buffer_done(&out);
}

static void check_round_trip(const struct tree *tree)
{
	struct graft_arena *arena = graft_arena_new(1 << 20);
	struct graft_buffer out = { 0 }, again = { 0 };
	struct graft_error err = { 0 };
	struct tree back = { 0 };
	char path[64] = "";

	graft_record_write(&tree_record, tree, &out);
	if (graft_record_read(&tree_record, out.bytes, out.length, arena, &back, &err) < 0)
		fail_msg("%s", err.msg);
	if (!graft_record_equal(&tree_record, tree, &back, path, sizeof(path)))
		fail_msg("differs at %s", path);
	graft_record_write(&tree_record, &back, &again);
	assert_string_equal(graft_buffer_text(&out), graft_buffer_text(&again));
	graft_buffer_done(&out);
	graft_buffer_done(&again);
	graft_arena_free(arena);
}

static void test_round_trip(void **state)
{
	struct tree tree = full_tree(), empty = { 0 };

	check_round_trip(&tree);
	check_round_trip(&empty);
}

static void test_refused(void **state)
{
	static const struct {
		const char *json, *message;
	} rows[] = {
		{ "[]", "document: must be an object" },
		{ "{}", "version: is missing" },
		{ "{\"version\": 1, \"x\": 1}", "x: unknown member" },
		{ "{\"version\": -1}", "version: must not be negative" },
		{ "{\"version\": 4294967296}", "version: number out of range" },
		{ "{\"version\": 1.5}", "version: must be a whole number" },
		{ "{\"version\": \"1\"}", "version: must be a whole number" },
		{ "{\"version\": 1, \"colour\": \"pink\"}", "colour: unknown word 'pink'" },
		{ "{\"version\": 1, \"bits\": [\"red\", 1]}", "bits[1]: must be a string" },
		{ "{\"version\": 1, \"on\": 1}", "on: must be true or false" },
		{ "{\"version\": 1, \"text\": null}", "text: must be a string" },
		{ "{\"version\": 1, \"text\": \"a\\u0000\"}", "text: contains a NUL character" },
		{ "{\"version\": 1, \"words\": {}}", "words: must be a list" },
		{ "{\"version\": 1, \"leaves\": [{}, {\"delta\": 9223372036854775808}]}",
		  "leaves[1].delta: number out of range" },
		{ "{\"version\": 1, \"first\": {\"name\": 3}}", "first.name: must be a string" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_arena *arena = graft_arena_new(1 << 20);
		struct graft_error err = { 0 };
		struct tree tree = { 0 };

		assert_int_equal(
		    graft_record_read(&tree_record, rows[i].json, strlen(rows[i].json), arena, &tree, &err), -1);
		assert_int_equal(err.status, GRAFT_FORMAT);
		assert_string_equal(err.msg, rows[i].message);
		graft_arena_free(arena);
	}
}

/*
 * Of two members with the same name, only the last one counts. Names are case-sensitive.
 */
static void test_twice(void **state)
{
	static const char json[] =
	    "{\"first\": {\"name\": \"a\", \"delta\": 1}, \"words\": [\"x\", \"y\"], \"bits\": [\"red\"], \"version\": "
	    "1,"
	    " \"version\": 2, \"first\": {\"delta\": -0}, \"words\": [\"z\"], \"bits\": [\"blue\"], \"big\": -0}";
	struct graft_arena *arena = graft_arena_new(1 << 20);
	struct graft_error err = { 0 };
	struct tree tree = { 0 };

	assert_int_equal(graft_record_read(&tree_record, json, strlen(json), arena, &tree, &err), 0);
	assert_int_equal(tree.version, 2);
	assert_null(tree.first.name);
	assert_int_equal(tree.first.delta, 0);
	assert_int_equal(tree.n_words, 1);
	assert_string_equal(tree.words[0], "z");
	assert_int_equal(tree.bits, 4);
	assert_int_equal(graft_record_read(&tree_record, "{\"Version\": 1}", 14, arena, &tree, &err), -1);
	assert_string_equal(err.msg, "Version: unknown member");
	graft_arena_free(arena);
}

static void test_first_difference(void **state)
{
	struct leaf other[] = { leaves[0], leaves[1], { "", 5 } };
	struct tree a = full_tree(), b = full_tree();
	char path[64] = "";

	assert_true(graft_record_equal(&tree_record, &a, &b, path, sizeof(path)));
	b.leaves = other;
	assert_false(graft_record_equal(&tree_record, &a, &b, path, sizeof(path)));
	assert_string_equal(path, "leaves[2].delta");
	b = full_tree();
	b.n_words = 2;
	assert_false(graft_record_equal(&tree_record, &a, &b, path, sizeof(path)));
	assert_string_equal(path, "words");
}

static void test_document(void **state)
{
	struct graft_buffer out = { 0 };

	graft_record_document(&tree_record, &out);
	assert_non_null(
	    strstr(graft_buffer_text(&out), "| `colour` | one of `red`, `green`, `blue` |  | of the leaves |"));
	assert_non_null(strstr(graft_buffer_text(&out), "| `leaves` | list of [leaf](#leaf) |"));
	assert_ptr_equal(strstr(strstr(graft_buffer_text(&out), "### leaf") + 1, "### leaf"), NULL);
	graft_buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written_form),     cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_refused),          cmocka_unit_test(test_twice),
		cmocka_unit_test(test_first_difference), cmocka_unit_test(test_document),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
