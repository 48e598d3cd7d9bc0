/* SPDX-License-Identifier: Apache-2.0 */
/* Tables carried from one TOML document to another, lists of strings, and comparing what documents mean. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "formats/toml/toml.h"

static struct graft_toml *parse(const char *text)
{
	struct graft_toml *toml = NULL;
	struct graft_error err = { 0 };

	if (graft_toml_parse("config.toml", text, strlen(text), &toml, &err) < 0)
		fail_msg("%s\n%s", err.msg, text);
	return toml;
}

static void assert_text(const struct graft_toml *toml, const char *expected)
{
	size_t length;

	assert_string_equal(graft_toml_text(toml, &length), expected);
	assert_int_equal(length, strlen(expected));
}

static const struct {
	const char *text, *path, *from, *from_path, *expected;
} assignments[] = {
	/* values: what means the same keeps its spelling and its comment */
	{ "a = 0x10 # why\n", "a", "b = 16\n", "b", "a = 0x10 # why\n" },
	{ "a = 'x' # why\n", "a", "b = \"y\\n\"\n", "b", "a = \"y\\n\" # why\n" },
	{ "a = 1\n", "a", "b = [ 1, # one\n 2 ]\n", "b", "a = [ 1, # one\n 2 ]\n" },
	{ "a = 1 # gone\nb = 2\n", "a", "", "x", "b = 2\n" },
	{ "", "a.b", "b = 1979-05-27\n", "b", "[a]\nb = 1979-05-27\n" },
	/* a table that is new: sections with headers, values first, names quoted where they have to be */
	{ "# kept\nx = 1", "t", "[s]\nb = 1\n  [s.\"x.y\"]\n  c = 'two'\n[s.e]\n", "s",
	  "# kept\nx = 1\n\n[t]\nb = 1\n\n[t.\"x.y\"]\nc = 'two'\n\n[t.e]\n" },
	{ "", "p.\"a.b\".t", "[s.u.v]\nb = 1\n", "s", "[p.\"a.b\".t.u.v]\nb = 1\n" },
	{ "", "t", "[[s.list]]\na = 1\n[[s.list]]\n[s.list.deep]\nb = 2\n", "s",
	  "[[t.list]]\na = 1\n\n[[t.list]]\n\n[t.list.deep]\nb = 2\n" },
	{ "", "t", "s.a.b = 1\ns.c = 2\n", "s", "[t]\nc = 2\n\n[t.a]\nb = 1\n" },
	{ "", "t", "s = { a = 1, b = { c = [ 'x' ] } }\n", "s", "t = { a = 1, b = { c = [ 'x' ] } }\n" },
	{ "", "t", "[s]\n", "s", "[t]\n" },
	{ "\r\n", "t", "[s]\na = 1\n", "s", "\r\n[t]\r\na = 1\r\n" },
	/* a table that is there: only what differs is edited */
	{ "[t] # mine\nb = 2\n# about a\na = 1 # one\n\n[u]\n", "t", "[s]\na = 1\nb = 3\n", "s",
	  "[t] # mine\nb = 3\n# about a\na = 1 # one\n\n[u]\n" },
	{ "[t]\na = 1\nold = 2\n[t.gone]\nx = 1\n[t.kept]\n# why\ny = 1\n", "t",
	  "[s]\na = 1\nnew = 3\n[s.kept]\ny = 1\n", "s", "[t]\na = 1\nnew = 3\n[t.kept]\n# why\ny = 1\n" },
	{ "[t.o]\nname = 'x'\n", "t", "[s.o]\nname = 'y'\nmore = 1\n[s.p]\n", "s",
	  "[t.o]\nname = 'y'\nmore = 1\n\n[t.p]\n" },
	{ "[t]\na = 1\n", "t", "[s]\n", "s", "[t]\n" },
	{ "[t]\n", "t", "s = {}\n", "s", "[t]\n" },
	/* into an inline table all goes on its line */
	{ "t = { a = 1 } # c\n", "t", "[s]\na = 1\n[s.b]\nc = 'x'\n[[s.l]]\n[[s.l]]\nd = 1\n[s.e]\n", "s",
	  "t = { a = 1, b = { c = 'x' }, l = [{}, { d = 1 }], e = {} } # c\n" },
	{ "t.a.b = 1\n", "t.c", "[s]\nd = 1\n", "s", "t.a.b = 1\n\n[t.c]\nd = 1\n" },
	/* another kind of thing */
	{ "t = 1\nx = 2\n", "t", "[s]\na = 1\n", "s", "x = 2\n\n[t]\na = 1\n" },
	{ "x = 2\n[t]\na = 1\n", "t", "s = 1\n", "s", "x = 2\nt = 1\n" },
	{ "[[t]]\na = 1\n[[t]]\n", "t", "[[s]]\na = 1\n[[s]]\n", "s", "[[t]]\na = 1\n[[t]]\n" },
	{ "[[t]]\na = 1\n[[t]]\n", "t", "[[s]]\na = 2\n", "s", "[[t]]\na = 2\n" },
};

static void test_assign(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(assignments); i++) {
		auto_toml struct graft_toml *toml = parse(assignments[i].text), *again = NULL;
		auto_toml struct graft_toml *from = parse(assignments[i].from);
		size_t length;

		print_message("# row %zu\n", i);
		for (int n = 0; n < 2; n++) {
			assert_int_equal(
			    graft_toml_assign(toml, assignments[i].path, from, assignments[i].from_path, NULL), 0);
			assert_text(toml, assignments[i].expected);
		}
		again = parse(graft_toml_text(toml, &length));
		assert_true(graft_toml_is_same(toml, again, NULL));
	}
}

static void test_refused_assignments(void **state)
{
	static const struct {
		const char *text, *path, *from_path;
	} rows[] = {
		{ "a = 1\n", "a.b", "s" },  { "a = [1]\n", "a.b", "s" }, { "[[a]]\n", "a.b", "s.v" },
		{ "a = 1\n", "a..b", "s" }, { "a = 1\n", "b", "s..t" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		auto_toml struct graft_toml *toml = parse(rows[i].text), *from = parse("[s]\nv = 1\n");
		struct graft_error err = { 0 };

		assert_int_equal(graft_toml_assign(toml, rows[i].path, from, rows[i].from_path, &err), -1);
		assert_int_equal(err.status, GRAFT_INVALID);
		assert_text(toml, rows[i].text);
	}
}

static const struct {
	const char *text, *appended, *removed; /* "new" goes last; then every "old" goes */
} lists[] = {
	{ "", "l = [\"new\"]\n", "l = [\"new\"]\n" },
	{ "l = []\n", "l = [\"new\"]\n", "l = [\"new\"]\n" },
	{ "l = [ ]", "l = [\"new\" ]", "l = [\"new\" ]" },
	{ "l = ['old']\n", "l = ['old', \"new\"]\n", "l = [\"new\"]\n" },
	{ "l = ['old',]\n", "l = ['old', \"new\",]\n", "l = [\"new\",]\n" },
	{ "l = ['x', 'old'] # c\n", "l = ['x', 'old', \"new\"] # c\n", "l = ['x', \"new\"] # c\n" },
	{ "l = [\n  'x', # one\n  'old', # two\n]\n", "l = [\n  'x', # one\n  'old', # two\n  \"new\",\n]\n",
	  "l = [\n  'x', # one\n  \"new\",\n]\n" },
	{ "l = [\n  'x',\n  'old' # two, three\n]\n", "l = [\n  'x',\n  'old', # two, three\n  \"new\"\n]\n",
	  "l = [\n  'x',\n  \"new\"\n]\n" },
	{ "l = [\n\t'old'\n\t# end\n]\n", "l = [\n\t'old',\n\t\"new\"\n\t# end\n]\n",
	  "l = [\n\t\"new\"\n\t# end\n]\n" },
	{ "l = [\n 'x', 'old',\n]\n", "l = [\n 'x', 'old', \"new\",\n]\n", "l = [\n 'x', \"new\",\n]\n" },
	{ "l = [ # first\n 'x',\n 'old']\n", "l = [ # first\n 'x',\n 'old', \"new\"]\n",
	  "l = [ # first\n 'x',\n \"new\"]\n" },
	{ "l = ['a', 'old'\n# c\n,\n]\n", "l = ['a', 'old', \"new\"\n# c\n,\n]\n", "l = ['a', \"new\"\n# c\n,\n]\n" },
	{ "l = [\r\n 'old',\r\n]\r\n", "l = [\r\n 'old',\r\n \"new\",\r\n]\r\n", "l = [\r\n \"new\",\r\n]\r\n" },
	{ "l = ['old', 1, 'old']\n", "l = ['old', 1, 'old', \"new\"]\n", "l = [1, \"new\"]\n" },
	{ "[t]\nx = 1\n", "l = [\"new\"]\n[t]\nx = 1\n", "l = [\"new\"]\n[t]\nx = 1\n" },
};

static void test_lists(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(lists); i++) {
		auto_toml struct graft_toml *toml = parse(lists[i].text);

		print_message("# row %zu\n", i);
		assert_int_equal(graft_toml_append_string(toml, "l", "new", NULL), 0);
		assert_text(toml, lists[i].appended);
		assert_int_equal(graft_toml_remove_string(toml, "l", "old", NULL), 0);
		assert_text(toml, lists[i].removed);
	}
}

static void test_removed_elements(void **state)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ "l = ['old']", "l = []" },
		{ "l = ['old',] # c\n", "l = [] # c\n" },
		{ "l = [\n 'old',\n]\n", "l = [\n]\n" },
		{ "l = [\n 'a', # x\n 'old' # y\n]\n", "l = [\n 'a', # x\n]\n" },
		{ "l = ['a', 'old',]\n", "l = ['a',]\n" },
		{ "l = ['a', # x\n 'old']\n", "l = ['a', # x\n ]\n" },
		{ "l = ['a' # x\n , 'old',]\n", "l = ['a' # x\n , ]\n" },
		{ "l = ['a', 'b']\n", "l = ['a', 'b']\n" },
		{ "l = ['old', 'a', 'old']\n", "l = ['a']\n" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		auto_toml struct graft_toml *toml = parse(rows[i][0]);

		assert_int_equal(graft_toml_remove_string(toml, "l", "old", NULL), 0);
		assert_text(toml, rows[i][1]);
	}
}

static void test_refused_lists(void **state)
{
	static const char *const texts[] = { "l = 'a'\n", "l = {}\n", "[l]\n", "[[l]]\n" };

	for (size_t i = 0; i < GRAFT_COUNT(texts); i++) {
		auto_toml struct graft_toml *toml = parse(texts[i]);
		struct graft_error err = { 0 };

		assert_int_equal(graft_toml_append_string(toml, "l", "new", &err), -1);
		assert_int_equal(err.status, GRAFT_FORMAT);
		assert_int_equal(graft_toml_remove_string(toml, "l", "new", &err), -1);
		assert_text(toml, texts[i]);
	}
}

static void test_sameness(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {
		{ "", "# nothing\n", true },
		{ "a = 1\nb = 'x'\n", "b = \"x\"\na = 0x1\n", true },
		{ "[a.b]\nc = [1, 'x']\n", "a = { b = { c = [ 1, \"x\" ] } }\n", true },
		{ "[[a]]\nb = 1\n", "a = [{ b = 1 }]\n", true },
		{ "a = 1\n", "a = 1.0\n", false },
		{ "a = true\n", "a = false\n", false },
		{ "a = 1\n", "a = 1\nb = 2\n", false },
		{ "a = 1\nb = 2\n", "a = 1\n", false },
		{ "a = [1, 2]\n", "a = [1]\n", false },
		{ "a = [1]\n", "a = [1, 2]\n", false },
		{ "a = ['x']\n", "a = ['xy']\n", false },
		{ "a = { b = 1 }\n", "a = { c = 1 }\n", false },
		{ "a = 1979-05-27\n", "a = 1979-05-28\n", false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		auto_toml struct graft_toml *a = parse(rows[i].a), *b = parse(rows[i].b);

		assert_int_equal(graft_toml_is_same(a, b, NULL), rows[i].same);
		assert_int_equal(graft_toml_is_same(b, a, NULL), rows[i].same);
		assert_true(graft_toml_is_same(a, b, "nowhere"));
	}
}

static void test_names(void **state)
{
	auto_toml struct graft_toml *toml = parse("z = 1\n[t.\"b c\"]\n[t.a]\n[u]\n\"x\\u0000y\" = 1\n");
	struct graft_arena *arena = graft_arena_new(65536);
	struct graft_buffer path = { 0 };
	enum graft_toml_kind kind;
	const char **names;
	size_t n;

	assert_int_equal(graft_toml_get_names(toml, "t", arena, &names, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_string_equal(names[0], "b c");
	assert_string_equal(names[1], "a");
	assert_int_equal(graft_toml_get_names(toml, NULL, arena, &names, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_int_equal(graft_toml_get_names(toml, "none", arena, &names, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_int_equal(graft_toml_get_names(toml, "z", arena, &names, &n, NULL), -1);
	assert_int_equal(graft_toml_get_names(toml, "u", arena, &names, &n, NULL), -1);
	graft_toml_add_name(&path, "t");
	graft_toml_add_name(&path, "b c");
	assert_string_equal(graft_buffer_text(&path), "t.\"b c\"");
	assert_int_equal(graft_toml_get_kind(toml, graft_buffer_text(&path), &kind, NULL), 0);
	assert_int_equal(kind, GRAFT_TOML_TABLE);
	assert_int_equal(graft_toml_get_kind(toml, "z", &kind, NULL), 0);
	assert_int_equal(kind, GRAFT_TOML_VALUE);
	assert_int_equal(graft_toml_get_kind(toml, "none", &kind, NULL), 0);
	assert_int_equal(kind, GRAFT_TOML_ABSENT);
	assert_int_equal(graft_toml_get_kind(toml, "a..b", &kind, NULL), -1);
	graft_buffer_done(&path);
	graft_arena_free(arena);
}

static int edit(struct graft_toml *toml, struct graft_error *err)
{
	auto_toml struct graft_toml *from = NULL;
	static const char text[] = "[s]\na = 1\nb = 3\n[s.\"x.y\"]\nc = 'two'\n[[s.l]]\n";

	if (graft_toml_parse("from", text, strlen(text), &from, err) < 0 ||
	    graft_toml_assign(toml, "t.\"q.r\"", from, "s", err) < 0 ||
	    graft_toml_append_string(toml, "list", "new", err) < 0)
		return -1;
	return graft_toml_remove_string(toml, "list", "old", err);
}

static void test_allocations(void **state)
{
	static const char text[] = "list = [\n 'old'\n]\n[t.\"q.r\"]\na = 1\nold = 2\n";
	int n = 1;

	for (;; n++) {
		auto_toml struct graft_toml *toml = parse(text);
		struct graft_error err = { 0 };
		int rc;

		allocation_fail(n);
		rc = edit(toml, &err);
		if (!allocation_reported(rc, &err)) {
			assert_text(
			    toml,
			    "list = [\n \"new\"\n]\n[t.\"q.r\"]\na = 1\nb = 3\n\n[t.\"q.r\".\"x.y\"]\nc = 'two'\n\n"
			    "[[t.\"q.r\".l]]\n");
			break;
		}
	}
	assert_true(n > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_assign),        cmocka_unit_test(test_refused_assignments),
		cmocka_unit_test(test_lists),         cmocka_unit_test(test_removed_elements),
		cmocka_unit_test(test_refused_lists), cmocka_unit_test(test_sameness),
		cmocka_unit_test(test_names),         cmocka_unit_test(test_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
