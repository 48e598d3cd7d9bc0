/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON document: what it accepts, what it gives back byte for byte, how names are found, what edits look like, and memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "formats/json/json_document.h"
#include "json_script.h"
#include "json_suite.h"

static struct graft_json_document *parse_bytes(const char *text, size_t length)
{
	struct graft_json_document *document = NULL;
	struct graft_error err = { 0 };

	if (graft_json_document_parse("config.json", text, length, &document, &err) < 0)
		assert_true(err.status == GRAFT_FORMAT || err.status == GRAFT_TOO_BIG);
	return document;
}

static struct graft_json_document *parse(const char *text)
{
	struct graft_json_document *document = parse_bytes(text, strlen(text));

	if (!document)
		fail_msg("refused: %s", text);
	return document;
}

static void assert_writes(const struct graft_json_document *document, const char *text, size_t length)
{
	struct graft_buffer out = { 0 };

	assert_int_equal(graft_json_document_write(document, &out, NULL), 0);
	assert_int_equal(out.length, length);
	assert_memory_equal(graft_buffer_text(&out), text, length);
	graft_buffer_done(&out);
}

/* Writes it child by child, as if everything had been edited: what was not is still the same byte for byte. */
static void assert_rewrites(struct graft_json_document *document, const char *text, size_t length)
{
	struct graft_json_node *root = graft_json_document_root(document);
	struct graft_json_node *extra = graft_json_new_bool(document, true, NULL);
	int rc;

	assert_non_null(extra);
	if (graft_json_node_kind(root) == GRAFT_JSON_ARRAY)
		rc = graft_json_append(document, root, extra, NULL);
	else if (graft_json_node_kind(root) == GRAFT_JSON_OBJECT)
		rc = graft_json_set(document, root, "a name that is not there", extra, NULL);
	else
		return;
	assert_int_equal(rc, 0);
	graft_json_remove(document, extra);
	assert_true(graft_json_document_changed(document));
	if (graft_json_node_first(root))
		assert_writes(document, text, length);
}

static void check_suite_file(const char *name, const char *bytes, size_t length)
{
	auto_json_document struct graft_json_document *document = parse_bytes(bytes, length);

	if (name[0] != 'i' && (document != NULL) != (name[0] == 'y'))
		fail_msg("%s: %s", document ? "accepted" : "refused", name);
	if (document) {
		assert_writes(document, bytes, length);
		assert_rewrites(document, bytes, length);
	}
}

static void test_suite(void **state)
{
	json_suite_each(check_suite_file);
}

static void test_accepts(void **state)
{
	static const struct {
		const char *text, *why; /* NULL: accepted */
	} rows[] = {
		{ "18446744073709551616", NULL },
		{ "-99999999999999999999999999999999", NULL },
		{ "1e400", NULL },
		{ "{\"a\\u0000b\": 1}", NULL },
		{ "[\"\xff\"]", NULL },
		{ "[\"\\ud800\"]", NULL },
		{ " \r\n\t1 ", NULL },
		{ "", "config.json: line 1, column 1: unexpected end" },
		{ "\xef\xbb\xbf{}", "config.json: line 1, column 1: expected a value" },
		{ "{\n  \"a\": 1,\n  \"b\": tru\n}", "config.json: line 3, column 8: expected a value" },
		{ "[1, 2", "config.json: line 1, column 6: unexpected end" },
		{ "[\"\xc3\xa4\xc3\xa4\" 2]", "config.json: line 1, column 7: expected ',' or a closing bracket" },
		{ "[1,]", "config.json: line 1, column 4: a comma before a closing bracket" },
		{ "{\"a\":1,}", "config.json: line 1, column 8: a comma before a closing bracket" },
		{ "{\"a\":{}, {}}", "config.json: line 1, column 10: a member name must be a string in double quotes" },
		{ "{\"a\":}", "config.json: line 1, column 6: expected a value" },
		{ "{\"a\":1,\"b\":}", "config.json: line 1, column 12: expected a value" },
		{ "{\n# b\n}", "config.json: line 2, column 1: a comment, and JSON has none" },
		{ "{\"a\": 1, // b\n}", "config.json: line 1, column 10: a comment, and JSON has none" },
		{ "[1 /* b */]", "config.json: line 1, column 4: a comment, and JSON has none" },
		{ "[/]", "config.json: line 1, column 2: expected a value" },
		{ "{\"a\" 1}", "config.json: line 1, column 6: expected ':'" },
		{ "{} {}", "config.json: line 1, column 4: unexpected text after the value" },
		{ "[\"a", "config.json: line 1, column 4: unterminated string" },
		{ "[\"a\\", "config.json: line 1, column 5: unterminated string" },
		{ "[\"a\\x\"]", "config.json: line 1, column 5: unknown escape" },
		{ "[\"\\u12g4\"]", "config.json: line 1, column 7: bad \\u escape" },
		{ "[\"a\tb\"]", "config.json: line 1, column 4: control character in a string" },
		{ "[01]", "config.json: line 1, column 3: number with a leading zero" },
		{ "[-]", "config.json: line 1, column 3: malformed number" },
		{ "[1.]", "config.json: line 1, column 4: malformed number" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_json_document *document = NULL;
		struct graft_error err = { 0 };

		assert_int_equal(
		    graft_json_document_parse("config.json", rows[i].text, strlen(rows[i].text), &document, &err),
		    rows[i].why ? -1 : 0);
		if (rows[i].why) {
			assert_string_equal(err.msg, rows[i].why);
			assert_int_equal(err.status, GRAFT_FORMAT);
		} else {
			assert_writes(document, rows[i].text, strlen(rows[i].text));
		}
		graft_json_document_free(document);
	}
}

static void test_limits(void **state)
{
	auto_free char *deep = malloc(2048), *big = malloc((16u << 20) + 1);
	struct graft_json_document *document = NULL;
	struct graft_error err = { 0 };

	memset(deep, '[', 1024);
	memset(deep + 512, ']', 512);
	document = parse_bytes(deep, 1024);
	assert_non_null(document);
	graft_json_document_free(document);
	memset(deep, '[', 513);
	memset(deep + 513, ']', 513);
	assert_int_equal(graft_json_document_parse("x", deep, 1026, &document, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_string_equal(err.msg, "x: line 1, column 513: nested too deeply");
	memset(big, ' ', (16u << 20) + 1);
	big[0] = '1';
	assert_int_equal(graft_json_document_parse("x", big, (16u << 20) + 1, &document, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_int_equal(graft_json_document_parse("x", big, 16u << 20, &document, &err), 0);
	graft_json_document_free(document);
}

static void test_strings(void **state)
{
	static const struct {
		const char *json, *string; /* NULL: none */
	} rows[] = {
		{ "\"\"", "" },
		{ "\"plain text that is longer than a word\"", "plain text that is longer than a word" },
		{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" },
		{ "\"12345678\\n\"", "12345678\n" },
		{ "\"\\u0041\\u00e4\\u20AC\\uD834\\udd1e\"", "A\xc3\xa4\xe2\x82\xac\xf0\x9d\x84\x9e" },
		{ "\"\xc3\xa4\xe2\x82\xac\xf0\x9d\x84\x9e\x7f\"", "\xc3\xa4\xe2\x82\xac\xf0\x9d\x84\x9e\x7f" },
		{ "\"a\\ud800b\"", "a\xef\xbf\xbd"
				   "b" },
		{ "\"\\ud800\\u0041\"", "\xef\xbf\xbd"
					"A" },
		{ "\"\\udc00\"", "\xef\xbf\xbd" },
		{ "\"\xff\xc3\xfe\\n\"", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\n" },
		{ "\"0123456789\xed\xa0\x80\"", "0123456789\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\"a\\u0000b\"", NULL },
		{ "\"\xff\\u0000\"", NULL },
		{ "1", NULL },
		{ "null", NULL },
		{ "[\"a\"]", NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		auto_json_document struct graft_json_document *document = parse(rows[i].json);
		const char *string = graft_json_node_string(graft_json_document_root(document));

		if (rows[i].string) {
			assert_non_null(string);
			assert_string_equal(string, rows[i].string);
		} else {
			assert_null(string);
		}
	}
}

/* The decoded form is three times as long as the text; it has a block of memory to itself. */
static void test_a_string_that_grows(void **state)
{
	char text[30002];
	auto_json_document struct graft_json_document *document = NULL;
	const char *string;

	memset(text, '\xff', sizeof(text));
	text[0] = text[sizeof(text) - 1] = '"';
	document = parse_bytes(text, sizeof(text));
	assert_non_null(document);
	string = graft_json_node_string(graft_json_document_root(document));
	assert_int_equal(strlen(string), 90000);
	assert_string_equal(string + 89997, "\xef\xbf\xbd");
}

/* Malformed bytes and NULs before, between and behind others: each string is whole, and outlives the document. */
static void test_strings_of_the_caller(void **state)
{
	static const char text[] = "{\"first\": \"a\\nb\", \"\xff\xff\": \"\xfe\", \"c\\u0000\": \"\\u0000\", \"d\": "
				   "[\"\", \"\xff\xff\xff\xff\xff\xff\", \"0123456789abcdef\"]}";
	struct graft_arena *strings = graft_arena_new((size_t)1 << 20);
	struct graft_json_document *document = NULL;
	const struct graft_json_node *node;
	const char *found[9] = { NULL };
	size_t n = 0;

	assert_int_equal(graft_json_document_parse_into("x", text, sizeof(text) - 1, strings, &document, NULL), 0);
	node = graft_json_node_first(graft_json_document_root(document));
	for (; node; node = graft_json_node_next(node)) {
		found[n++] = graft_json_node_name(node);
		if (graft_json_node_kind(node) == GRAFT_JSON_STRING)
			found[n++] = graft_json_node_string(node);
	}
	node = graft_json_node_first(graft_json_node_member(graft_json_document_root(document), "d"));
	assert_string_equal(graft_json_node_string(node), "");
	found[n++] = graft_json_node_string(graft_json_node_next(node));
	found[n++] = graft_json_node_string(graft_json_node_next(graft_json_node_next(node)));
	graft_json_document_free(document);
	assert_non_null(graft_arena_alloc(strings, 4096));
	assert_int_equal(n, 9);
	assert_string_equal(found[0], "first");
	assert_string_equal(found[1], "a\nb");
	assert_string_equal(found[2], "\xef\xbf\xbd\xef\xbf\xbd");
	assert_string_equal(found[3], "\xef\xbf\xbd");
	assert_null(found[4]);
	assert_null(found[5]);
	assert_string_equal(found[6], "d");
	assert_string_equal(found[7], "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	assert_string_equal(found[8], "0123456789abcdef");
	graft_arena_free(strings);
}

/* Where the caller's arena has no room for the strings, that is said. */
static void test_no_room_for_strings(void **state)
{
	static const char *const texts[] = { "\"a text that is too long\"", "\"\xff\xff\xff\"" };

	for (size_t i = 0; i < GRAFT_COUNT(texts); i++) {
		struct graft_arena *strings = graft_arena_new(16);
		struct graft_json_document *document = NULL;
		struct graft_error err = { .status = GRAFT_OK };

		assert_int_equal(
		    graft_json_document_parse_into("x", texts[i], strlen(texts[i]), strings, &document, &err), -1);
		assert_int_equal(err.status, GRAFT_NO_MEMORY);
		assert_null(document);
		graft_arena_free(strings);
	}
}

static void test_numbers(void **state)
{
	static const struct {
		const char *json;
		bool is_u64, is_i64;
		uint64_t u64;
		int64_t i64;
	} rows[] = {
		{ "0", true, true, 0, 0 },
		{ "-0", false, true, 0, 0 },
		{ "195", true, true, 195, 195 },
		{ "-1", false, true, 0, -1 },
		{ "9223372036854775807", true, true, INT64_MAX, INT64_MAX },
		{ "9223372036854775808", true, false, (uint64_t)INT64_MAX + 1, 0 },
		{ "-9223372036854775808", false, true, 0, INT64_MIN },
		{ "-9223372036854775809", false, false, 0, 0 },
		{ "18446744073709551615", true, false, UINT64_MAX, 0 },
		{ "18446744073709551616", false, false, 0, 0 },
		{ "28446744073709551615", false, false, 0, 0 },
		{ "1.0", false, false, 0, 0 },
		{ "1e2", false, false, 0, 0 },
		{ "1E2", false, false, 0, 0 },
		{ "\"1\"", false, false, 0, 0 },
		{ "true", false, false, 0, 0 },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		auto_json_document struct graft_json_document *document = parse(rows[i].json);
		const struct graft_json_node *root = graft_json_document_root(document);
		uint64_t u64 = 0;
		int64_t i64 = 0;

		print_message("# %s\n", rows[i].json);
		assert_int_equal(graft_json_node_u64(root, &u64), rows[i].is_u64);
		assert_int_equal(graft_json_node_i64(root, &i64), rows[i].is_i64);
		assert_true(u64 == rows[i].u64 && i64 == rows[i].i64);
	}
	assert_false(graft_json_node_u64(NULL, &(uint64_t){ 0 }));
	assert_false(graft_json_node_i64(NULL, &(int64_t){ 0 }));
}

static void test_members(void **state)
{
	static const char text[] = "{\"a\":{\"b\":{\"c\":1}},\"Root\":2,\"x\":3,\"X\":4,\"a.b\":5,\"nul\\u0000\":6,"
				   "\"proce\xc5\xbf\xc5\xbf\":7,\"hoo\xe2\x84\xaas\":8,\"list\":[true,null]}";
	static const struct {
		const char *path;
		uint64_t number; /* 0: not there */
	} rows[] = {
		{ "a.b.c", 1 },   { "A.B.C", 1 }, { "root", 2 },    { "ROOT", 2 },      { "x", 4 },
		{ "process", 7 }, { "hooks", 8 }, { "a.b.c.d", 0 }, { "list.true", 0 }, { "roo", 0 },
		{ "roots", 0 },   { "nul", 0 },   { "", 0 },        { ".", 0 },         { "a..c", 0 },
	};
	auto_json_document struct graft_json_document *document = parse(text);
	struct graft_json_node *root = graft_json_document_root(document);

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		uint64_t number = 0;

		print_message("# %s\n", rows[i].path);
		(void)graft_json_node_u64(graft_json_node_at(root, rows[i].path), &number);
		assert_int_equal(number, rows[i].number);
	}
	assert_int_equal(graft_json_node_count(root), 9);
	assert_int_equal(graft_json_node_count(graft_json_node_member(root, "x")), 0);
	assert_string_equal(graft_json_node_name(graft_json_node_first(root)), "a");
	assert_true(graft_json_node_is_true(graft_json_node_first(graft_json_node_at(root, "list"))));
	assert_false(graft_json_node_is_true(graft_json_node_at(root, "x")));
}

static void test_nothing_is_there(void **state)
{
	unsigned int line = 9, column = 9;

	assert_int_equal(graft_json_node_kind(NULL), GRAFT_JSON_ABSENT);
	assert_null(graft_json_node_member(NULL, "a"));
	assert_null(graft_json_node_at(NULL, "a.b"));
	assert_null(graft_json_node_first(NULL));
	assert_null(graft_json_node_next(NULL));
	assert_null(graft_json_node_string(NULL));
	assert_null(graft_json_node_name(NULL));
	assert_int_equal(graft_json_node_count(NULL), 0);
	assert_false(graft_json_node_is_true(NULL));
	graft_json_node_position(NULL, &line, &column);
	assert_int_equal(line, 0);
	assert_int_equal(column, 0);
	graft_json_document_free(NULL);
}

static void test_positions(void **state)
{
	auto_json_document struct graft_json_document *document = parse("{\n  \"\xc3\xa4\": 1, \"b\": [2,\n 3]}");
	struct graft_json_node *root = graft_json_document_root(document);
	struct graft_json_node *list = graft_json_node_at(root, "b");
	struct graft_json_node *made = graft_json_new_bool(document, true, NULL);
	unsigned int line, column;

	graft_json_node_position(list, &line, &column);
	assert_int_equal(line, 2);
	assert_int_equal(column, 11);
	graft_json_node_position(graft_json_node_next(graft_json_node_first(list)), &line, &column);
	assert_int_equal(line, 3);
	assert_int_equal(column, 2);
	graft_json_node_position(made, &line, &column);
	assert_int_equal(line, 0);
	assert_int_equal(graft_json_append(document, list, made, NULL), 0);
	graft_json_node_position(made, &line, &column);
	assert_int_equal(line, 0);
}

#define PRETTY \
	"{\n\t\"a\": 1,\n\t\"list\": [\n\t\t1,\n\t\t2\n\t],\n\t\"empty\": [],\n\t\"o\": {\n\t\t\"k\": null\n\t}\n}\n"

static const struct {
	const char *name, *before, *script, *after;
} edits[] = {
	{ "compact: set, append, new object", "{\"a\":1,\"l\":[1]}", "set\t\tb\t[1,{\"x\":\"y\"}]\nappend\tl\t2",
	  "{\"a\":1,\"l\":[1,2],\"b\":[1,{\"x\":\"y\"}]}" },
	{ "compact: into empty ones", "{\"a\":{},\"l\":[]}", "set\ta\tb\t1\nappend\tl\t2\nappend\tl\t3",
	  "{\"a\":{\"b\":1},\"l\":[2,3]}" },
	{ "one line with blanks", "{\"a\": 1, \"l\": [1, 2]}\n", "append\tl\t3\nset\t\tb\t{\"c\": [], \"d\": [1, 2]}",
	  "{\"a\": 1, \"l\": [1, 2, 3], \"b\": {\"c\": [], \"d\": [1, 2]}}\n" },
	{ "one line: a list of one", "{\"a\": [1]}", "append\ta\t2", "{\"a\": [1, 2]}" },
	{ "pretty: append and set", PRETTY, "append\tlist\t3\nset\t\tb\t2",
	  "{\n\t\"a\": 1,\n\t\"list\": [\n\t\t1,\n\t\t2,\n\t\t3\n\t],\n\t\"empty\": [],\n\t\"o\": {\n\t\t\"k\": "
	  "null\n\t},\n\t\"b\": 2\n}\n" },
	{ "pretty: into empty, nested", PRETTY, "append\tempty\t{\"x\":[1],\"y\":{}}",
	  "{\n\t\"a\": 1,\n\t\"list\": [\n\t\t1,\n\t\t2\n\t],\n\t\"empty\": [\n\t\t{\n\t\t\t\"x\": "
	  "[\n\t\t\t\t1\n\t\t\t],\n\t\t\t\"y\": {}\n\t\t}\n\t],\n\t\"o\": {\n\t\t\"k\": null\n\t}\n}\n" },
	{ "pretty: a value in its place", PRETTY, "replace\to/k\t[1,2]\nset\t\ta\t\"x\"",
	  "{\n\t\"a\": \"x\",\n\t\"list\": [\n\t\t1,\n\t\t2\n\t],\n\t\"empty\": [],\n\t\"o\": {\n\t\t\"k\": "
	  "[\n\t\t\t1,\n\t\t\t2\n\t\t]\n\t}\n}\n" },
	{ "pretty: make", "{\n  \"a\": 1\n}\n", "make\tx.y.z\tarray",
	  "{\n  \"a\": 1,\n  \"x\": {\n    \"y\": {\n      \"z\": []\n    }\n  }\n}\n" },
	{ "make: null gives way", "{\"hooks\": null, \"b\": 1}", "make\thooks.prestart\tarray",
	  "{\"hooks\": {\"prestart\": []}, \"b\": 1}" },
	{ "make: there already", "{\"x\":{\"y\":[ ]}}", "make\tx.y\tarray", "{\"x\":{\"y\":[ ]}}" },
	{ "lines end with CR LF", "{\r\n  \"a\": [],\r\n  \"b\": 2\r\n}", "append\ta\t1\nset\t\tc\t3",
	  "{\r\n  \"a\": [\r\n    1\r\n  ],\r\n  \"b\": 2,\r\n  \"c\": 3\r\n}" },
	{ "a new element looks like the one beside it",
	  "{\n  \"m\": [\n    {\"d\": \"/proc\", \"o\": [\"ro\"]},\n    { \"d\": \"/dev\" }\n  ]\n}\n",
	  "append\tm\t{\"d\":\"/x\",\"o\":[\"a\",\"b\"]}",
	  "{\n  \"m\": [\n    {\"d\": \"/proc\", \"o\": [\"ro\"]},\n    { \"d\": \"/dev\" },\n    {\"d\": \"/x\", "
	  "\"o\": [\"a\", \"b\"]}\n  ]\n}\n" },
	{ "lists on one line inside pretty objects",
	  "{\n  \"m\": [\n    {\n      \"d\": \"/proc\",\n      \"o\": [ \"ro\" ]\n    }\n  ]\n}\n",
	  "append\tm\t{\"d\":\"/x\",\"o\":[\"a\",\"b\"]}",
	  "{\n  \"m\": [\n    {\n      \"d\": \"/proc\",\n      \"o\": [ \"ro\" ]\n    },\n    {\n      \"d\": "
	  "\"/x\",\n      \"o\": [ \"a\", \"b\" ]\n    }\n  ]\n}\n" },
	{ "each member looks like the neighbour's of that name",
	  "[\n  {\n     \"a\": [\n        1\n     ],\n     \"b\": [2, 3]\n  }\n]\n",
	  "append\t\t{\"b\":[4,5],\"a\":[6],\"c\":[]}",
	  "[\n  {\n     \"a\": [\n        1\n     ],\n     \"b\": [2, 3]\n  },\n"
	  "  {\n     \"b\": [4, 5],\n     \"a\": [\n        6\n     ],\n     \"c\": []\n  }\n]\n" },
	{ "what is not edited keeps its own blanks", "[1,2,  3,\n4 , 5]", "append\t\t6\nremove\t1",
	  "[1,  3,\n4 , 5,  6]" },
	{ "blanks before colons and commas", "{ \"a\" : 1 , \"b\" : 2 }", "set\t\tc\t3\nset\t\ta\t4",
	  "{ \"a\" : 4 , \"b\" : 2, \"c\" : 3 }" },
	{ "removing the last, the first, all", "{\"l\": [1, 2, 3], \"m\": [ 1, 2 ], \"n\": [\n1\n]}",
	  "remove\tl/2\nremove\tm/0\nremove\tn/0", "{\"l\": [1, 2], \"m\": [ 2 ], \"n\": []}" },
	{ "removing members", "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}", "remove\ta\nremove\tc",
	  "{\n  \"b\": 2\n}" },
	{ "removing all and putting one", "{\n  \"a\": 1,\n  \"b\": 2\n}", "remove\ta\nremove\tb\nset\t\tc\t3",
	  "{\n  \"c\": 3\n}" },
	{ "a new order keeps the places", "{\"l\": [1, [2], 3]}", "reorder\tl\t2,0,1", "{\"l\": [3, 1, [2]]}" },
	{ "a new order of lines", "[\n  1,\n  2,\n  3\n]\n", "reorder\t\t2,1,0", "[\n  3,\n  2,\n  1\n]\n" },
	{ "the same order", "[ 1,2 ,  3]", "reorder\t\t0,1,2", "[ 1,2 ,  3]" },
	{ "the same values", "{\"a\":\"\\u0041\",\"b\":1e2,\"c\":true,\"d\":12}",
	  "set\t\ta\t\"A\"\nset\t\tc\ttrue\nset\t\td\t12", "{\"a\":\"\\u0041\",\"b\":1e2,\"c\":true,\"d\":12}" },
	{ "what is kept", "{\"n\":18446744073709551616,\"f\":1.50e+00,\"s\":\"\\u0061\\/<\xff\",\"k\\u0061\":[ ]}",
	  "set\t\tz\t1",
	  "{\"n\":18446744073709551616,\"f\":1.50e+00,\"s\":\"\\u0061\\/<\xff\",\"k\\u0061\":[ ],\"z\":1}" },
	{ "another case is the same member", "{\"Process\":{\"ENV\":[1]}}",
	  "make\tprocess.env\tarray\nset\tProcess\tenv\t2", "{\"Process\":{\"ENV\":2}}" },
	{ "but not the same key", "{\"m\":{\"ETH0\":1}}", "key\tm\teth0\t2\nkey\tm\tETH0\t3",
	  "{\"m\":{\"ETH0\":3,\"eth0\":2}}" },
	{ "the root", " [1]\n", "replace\t\t{\"a\":2}", " {\"a\":2}\n" },
	{ "the root, an indented one", "  {\n    \"a\": []\n  }\n", "append\ta\t1\nset\t\tb\t{\"c\":2}",
	  "  {\n    \"a\": [\n      1\n    ],\n    \"b\": {\n      \"c\": 2\n    }\n  }\n" },
	{ "an empty root", "{}", "set\t\ta\t[1,{\"b\":2}]", "{\"a\":[1,{\"b\":2}]}" },
	{ "escapes in what is new", "{\"a\":1}", "set\t\tx\"\\\t\"\\u0001\\n\\\"\\u00e4\"",
	  "{\"a\":1,\"x\\\"\\\\\":\"\\u0001\\n\\\"\xc3\xa4\"}" },
};

static void test_edits(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(edits); i++) {
		auto_json_document struct graft_json_document *document = parse(edits[i].before);
		struct graft_buffer out = { 0 };
		struct graft_error err = { 0 };

		print_message("# %s\n", edits[i].name);
		if (json_script_run(document, edits[i].script, &err) < 0)
			fail_msg("%s", err.msg);
		assert_int_equal(graft_json_document_write(document, &out, &err), 0);
		assert_string_equal(graft_buffer_text(&out), edits[i].after);
		assert_int_equal(graft_json_document_changed(document), strcmp(edits[i].before, edits[i].after) != 0);
		graft_buffer_done(&out);
	}
}

static const struct {
	const char *text, *script;
	enum graft_status status;
	const char *why;
} refusals[] = {
	{ "{\n\"a\":1, \"A\":2}", "set\t\ta\t3", GRAFT_FORMAT,
	  "config.json: line 2, column 8: 'a' is given twice, and programs differ in which one they use" },
	{ "{\"a\":{},\"a\":{}}", "make\ta.b\tarray", GRAFT_FORMAT,
	  "config.json: line 1, column 9: 'a' is given twice, and programs differ in which one they use" },
	{ "{\"a\":[]}", "make\ta.b\tarray", GRAFT_FORMAT,
	  "config.json: line 1, column 2: 'a' is an array, but must be an object" },
	{ "{\"a\":7}", "make\ta\tarray", GRAFT_FORMAT,
	  "config.json: line 1, column 2: 'a' is a number, but must be an array" },
	{ "{\"a\":{}}", "append\ta\t1", GRAFT_FORMAT,
	  "config.json: line 1, column 2: 'a' is an object, but must be an array" },
	{ "[\"x\"]", "make\ta\tarray", GRAFT_FORMAT,
	  "config.json: line 1, column 1: 'the value' is an array, but must be an object" },
	{ "{\"a\":[true]}", "set\ta/0\tb\t1", GRAFT_FORMAT,
	  "config.json: line 1, column 7: 'the value' is a boolean, but must be an object" },
	{ "[1,2]", "reorder\t\t0,0", GRAFT_INTERNAL, "the new order of a JSON array has different elements" },
	{ "[1,2]", "reorder\t\t0", GRAFT_INTERNAL, "the new order of a JSON array has different elements" },
	{ "[1,2]", "reorder\t\t0,1,1", GRAFT_INTERNAL, "the new order of a JSON array has different elements" },
};

static void test_refusals(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(refusals); i++) {
		auto_json_document struct graft_json_document *document = parse(refusals[i].text);
		struct graft_error err = { 0 };

		assert_int_equal(json_script_run(document, refusals[i].script, &err), -1);
		assert_string_equal(err.msg, refusals[i].why);
		assert_int_equal(err.status, refusals[i].status);
		assert_false(graft_json_document_changed(document));
		assert_writes(document, refusals[i].text, strlen(refusals[i].text));
	}
}

static void test_a_node_is_put_once(void **state)
{
	auto_json_document struct graft_json_document *document = parse("{\"a\":[1],\"b\":2}");
	struct graft_json_node *root = graft_json_document_root(document);
	struct graft_json_node *list = graft_json_node_at(root, "a");
	struct graft_json_node *made = graft_json_new_array(document, NULL);
	struct graft_json_node *inner = graft_json_new_array(document, NULL);
	struct graft_error err = { 0 };

	assert_int_equal(graft_json_append(document, made, inner, &err), 0);
	assert_false(graft_json_document_changed(document));
	assert_int_equal(graft_json_append(document, inner, made, &err), -1);
	assert_int_equal(err.status, GRAFT_INTERNAL);
	assert_int_equal(graft_json_append(document, made, made, &err), -1);
	assert_int_equal(graft_json_append(document, list, made, &err), 0);
	assert_int_equal(graft_json_append(document, list, made, &err), -1);
	assert_int_equal(graft_json_append(document, list, graft_json_node_at(root, "b"), &err), -1);
	assert_int_equal(graft_json_replace(document, made, inner, &err), -1);
	assert_null(graft_json_new_string(document, "a\xff", &err));
	assert_int_equal(err.status, GRAFT_FORMAT);
	assert_int_equal(graft_json_set(document, root, "a\xff", graft_json_new_bool(document, true, NULL), &err), -1);
	graft_json_remove(document, root);
	graft_json_remove(document, NULL);
	assert_writes(document, "{\"a\":[1,[[]]],\"b\":2}", 20);
}

/* Each allocation fails once: the edit says so, and what is written is what was there, or the whole edit. */
static void test_memory(void **state)
{
	static const char script[] = "make\tx.y.z\tarray\nset\t\tnew\t[1,{\"a\":\"b\"}]\nappend\tl\t\"text\"";
	struct graft_buffer text = { 0 };

	graft_buffer_string(&text, "{\"l\":[\"\xff\"");
	for (int i = 0; i < 1000; i++)
		graft_buffer_printf(&text, ",%d", i);
	graft_buffer_string(&text, "]}");
	for (int n = 1;; n++) {
		auto_json_document struct graft_json_document *document = NULL;
		struct graft_buffer out = { 0 };
		struct graft_error err = { 0 };
		bool failed;
		int rc;

		allocation_fail(n);
		rc = graft_json_document_parse("x", text.bytes, text.length, &document, &err);
		if (rc == 0)
			rc = json_script_run(document, script, &err);
		if (rc == 0)
			rc = graft_json_document_write(document, &out, &err);
		failed = allocation_failed();
		graft_buffer_done(&out);
		assert_int_equal(rc, failed ? -1 : 0);
		if (!failed) {
			assert_true(n > 8);
			break;
		}
		assert_int_equal(err.status, GRAFT_NO_MEMORY);
	}
	graft_buffer_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suite),
		cmocka_unit_test(test_accepts),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_strings_of_the_caller),
		cmocka_unit_test(test_no_room_for_strings),
		cmocka_unit_test(test_a_string_that_grows),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_nothing_is_there),
		cmocka_unit_test(test_positions),
		cmocka_unit_test(test_edits),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_a_node_is_put_once),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
