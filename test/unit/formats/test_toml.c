/* SPDX-License-Identifier: Apache-2.0 */
/* The TOML document against a public suite (skipped by name when it is not there), its getters, its edits, its limits, and memory. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "formats/json/json_document.h"
#include "formats/toml/toml_tree.h"

#define SUITE "../shared/conformance/toml-test/tests"

/*
 * The tagged form of the public suite toml-test: tables and arrays as they are, every other value as {"type": "integer", "value": "1"}. Floats keep their spelling
 * without underscores and plus signs; dates have upper-case T and Z.
 */
static const char *const scalar_names[] = {
	[TOML_STRING] = "string",         [TOML_INTEGER] = "integer",
	[TOML_FLOAT] = "float",           [TOML_BOOL] = "bool",
	[TOML_DATETIME] = "datetime",     [TOML_DATETIME_LOCAL] = "datetime-local",
	[TOML_DATE_LOCAL] = "date-local", [TOML_TIME_LOCAL] = "time-local",
};

static void scalar_json(struct graft_buffer *out, const struct toml_node *node)
{
	graft_buffer_printf(out, "{\"type\": \"%s\", \"value\": ", scalar_names[node->type]);
	if (node->type == TOML_INTEGER)
		graft_buffer_printf(out, "\"%lld\"", (long long)node->integer);
	else if (node->type == TOML_BOOL)
		graft_buffer_string(out, node->integer ? "\"true\"" : "\"false\"");
	else
		toml_add_quoted(out, &node->text);
	graft_buffer_char(out, '}');
}

/* The depth limit of documents bounds the recursion. */
static void node_json(struct graft_buffer *out, const struct toml_node *node)
{
	bool table = node->type == TOML_TABLE;

	if (node->type < TOML_ARRAY) {
		scalar_json(out, node);
		return;
	}
	graft_buffer_char(out, table ? '{' : '[');
	for (const struct toml_node *child = node->first; child; child = child->next) {
		if (child != node->first)
			graft_buffer_string(out, ", ");
		if (table) {
			toml_add_quoted(out, &child->key);
			graft_buffer_string(out, ": ");
		}
		node_json(out, child);
	}
	graft_buffer_char(out, table ? '}' : ']');
}

static int tagged(const struct graft_toml *toml, struct graft_buffer *out, struct graft_error *err)
{
	node_json(out, toml->root);
	return graft_buffer_failed(out) ? graft_fail_memory(err) : 0;
}

static struct graft_toml *parse(const char *text)
{
	struct graft_toml *toml = NULL;
	struct graft_error err = { 0 };

	if (graft_toml_parse("config.toml", text, strlen(text), &toml, &err) < 0)
		fail_msg("%s", err.msg);
	return toml;
}

static void assert_text(const struct graft_toml *toml, const char *expected)
{
	size_t length;

	assert_string_equal(graft_toml_text(toml, &length), expected);
	assert_int_equal(length, strlen(expected));
}

/* A name that holds a NUL is none: both sides get another character there. */
static struct graft_json_document *parse_json(const char *text, size_t length)
{
	auto_free char *copy = strndup(text, length);
	struct graft_json_document *json = NULL;

	assert_non_null(copy);
	for (char *s = copy; *s; s++) {
		if (*s == '\\' && strncmp(s, "\\u0000", 6) == 0)
			memcpy(s, "\\uf8f0", 6);
		else if (*s == '\\')
			s++; /* an escaped character, another backslash maybe */
	}
	assert_int_equal(graft_json_document_parse("json", copy, strlen(copy), &json, NULL), 0);
	return json;
}

static struct graft_json_document *to_json(const struct graft_toml *toml)
{
	struct graft_buffer out = { 0 };
	struct graft_json_document *json;

	assert_int_equal(tagged(toml, &out, NULL), 0);
	json = parse_json(out.bytes, out.length);
	graft_buffer_done(&out);
	return json;
}

/* Exactly: keys of TOML are compared with regard to case. */
static struct graft_json_node *find(const struct graft_json_node *object, const char *name)
{
	struct graft_json_node *node = graft_json_node_first(object);

	while (node && (!graft_json_node_name(node) || strcmp(graft_json_node_name(node), name) != 0))
		node = graft_json_node_next(node);
	return node;
}

static const char *member(const struct graft_json_node *json, const char *name)
{
	return graft_json_node_string(find(json, name));
}

/* Without the zeros at the end of a fraction of a second. */
static void trim_date(const char *date, char *out)
{
	const char *s = date;
	size_t n = 0;

	while (*s && *s != '.')
		out[n++] = *s++;
	if (*s == '.') {
		size_t digits = strspn(s + 1, "0123456789"), kept = digits;

		while (kept > 0 && s[kept] == '0')
			kept--;
		memcpy(out + n, s, kept > 0 ? kept + 1 : 0);
		n += kept > 0 ? kept + 1 : 0;
		s += digits + 1;
	}
	(void)snprintf(out + n, 64, "%s", s);
}

static bool same_scalar(const char *type, const char *a, const char *b)
{
	char dates[2][128];

	if (strcmp(type, "float") == 0) {
		double x = strtod(a, NULL), y = strtod(b, NULL);

		return (isnan(x) && isnan(y)) || !(x < y || x > y || isnan(x) || isnan(y));
	}
	if (strncmp(type, "date", 4) == 0 || strncmp(type, "time", 4) == 0) {
		trim_date(a, dates[0]);
		trim_date(b, dates[1]);
		return strcmp(dates[0], dates[1]) == 0;
	}
	return strcmp(a, b) == 0;
}

static bool same(const struct graft_json_node *a, const struct graft_json_node *b)
{
	const char *type = member(a, "type"), *value = member(a, "value");
	const struct graft_json_node *child, *other = graft_json_node_first(b);
	bool array = graft_json_node_kind(a) == GRAFT_JSON_ARRAY;

	if (graft_json_node_kind(a) != graft_json_node_kind(b))
		return false;
	if (type && value) {
		return member(b, "type") && member(b, "value") && strcmp(type, member(b, "type")) == 0 &&
		       same_scalar(type, value, member(b, "value"));
	}
	if ((!array && graft_json_node_kind(a) != GRAFT_JSON_OBJECT) ||
	    graft_json_node_count(a) != graft_json_node_count(b))
		return false;
	for (child = graft_json_node_first(a); child; child = graft_json_node_next(child)) {
		if (!same(child, array ? other : find(b, graft_json_node_name(child))))
			return false;
		other = graft_json_node_next(other);
	}
	return true;
}

static bool same_documents(const struct graft_json_document *a, const struct graft_json_document *b)
{
	return same(graft_json_document_root(a), graft_json_document_root(b));
}

/* One level of a path: the JSON member and the whole dotted key up to it. */
struct step {
	const struct step *up;
	const char *name;
};

static void quote_path(const struct step *step, struct graft_buffer *out)
{
	if (step->up) {
		quote_path(step->up, out);
		graft_buffer_char(out, '.');
	}
	graft_buffer_char(out, '"');
	for (const char *s = step->name; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (strncmp(s, "\xef\xa3\xb0", 3) == 0) {
			graft_buffer_string(out, "\\u0000");
			s += 2;
		} else if (c < 0x20 || c == 0x7f || c == '"' || c == '\\') {
			graft_buffer_printf(out, "\\u%04x", c);
		} else {
			graft_buffer_char(out, *s);
		}
	}
	graft_buffer_char(out, '"');
}

/* Takes the path's member away, and every table on the way that is empty then. Whether `json` itself is empty afterwards. */
static bool prune(struct graft_json_document *document, struct graft_json_node *json, const struct step *const *chain,
		  size_t n)
{
	struct graft_json_node *child = n > 0 ? find(json, chain[n - 1]->name) : NULL;

	if (child && (n == 1 || prune(document, child, chain, n - 1)))
		graft_json_remove(document, child);
	return graft_json_node_count(json) == 0;
}

static void prune_path(struct graft_json_document *json, const struct step *step)
{
	const struct step *chain[130];
	size_t n = 0;

	for (; step && n < GRAFT_COUNT(chain); step = step->up)
		chain[n++] = step;
	(void)prune(json, graft_json_document_root(json), chain, n);
}

static struct graft_toml *reparse(const char *file, const char *text, size_t length)
{
	struct graft_toml *toml = NULL;
	struct graft_error err = { 0 };

	if (graft_toml_parse(file, text, length, &toml, &err) < 0)
		fail_msg("%s", err.msg);
	return toml;
}

static void check_same(const char *file, const char *path, const char *what, const struct graft_json_document *a,
		       const struct graft_json_document *b)
{
	struct graft_buffer text = { 0 };

	if (same_documents(a, b))
		return;
	(void)graft_json_document_write(a, &text, NULL);
	graft_buffer_char(&text, '\n');
	(void)graft_json_document_write(b, &text, NULL);
	fail_msg("%s: %s of %s changed something else:\n%s", file, what, path, graft_buffer_text(&text));
}

/* Removing, then setting again, and setting in place: only this one value may differ. */
static void check_edits(const char *file, const char *text, size_t length, const struct step *step, bool table)
{
	struct graft_buffer path = { 0 };
	struct graft_error err = { 0 };
	struct graft_toml *toml = reparse(file, text, length), *set = reparse(file, text, length);
	struct graft_json_document *before = to_json(toml), *after;

	quote_path(step, &path);
	if (!graft_toml_has(toml, path.bytes))
		fail_msg("%s: %s is not found", file, path.bytes);
	if (!table) {
		if (graft_toml_set(set, path.bytes, "\"a new value\"", &err) == 0) {
			const char *value = NULL;

			assert_int_equal(graft_toml_get_string(set, path.bytes, &value, &err), 0);
			assert_string_equal(value, "a new value");
			after = to_json(set);
			prune_path(before, step);
			prune_path(after, step);
			check_same(file, path.bytes, "setting", before, after);
			graft_json_document_free(after);
		} else {
			assert_int_equal(err.status, GRAFT_INVALID); /* an array of tables */
		}
	}
	if (graft_toml_remove(toml, path.bytes, &err) < 0)
		fail_msg("%s: %s: %s: %s", file, path.bytes, err.ctx, err.msg);
	assert_false(graft_toml_has(toml, path.bytes));
	after = to_json(toml);
	prune_path(before, step);
	prune_path(after, step);
	check_same(file, path.bytes, "removing", before, after);
	graft_json_document_free(after);
	if (graft_toml_set(toml, path.bytes, "[1, 2]", &err) < 0)
		fail_msg("%s: %s: %s: %s", file, path.bytes, err.ctx, err.msg);
	assert_true(graft_toml_has(toml, path.bytes));
	after = to_json(toml);
	prune_path(after, step);
	check_same(file, path.bytes, "adding", before, after);
	graft_json_document_free(after);
	graft_json_document_free(before);
	graft_toml_free(toml);
	graft_toml_free(set);
	graft_buffer_done(&path);
}

static int edit_all(const char *file, const char *text, size_t length, const struct graft_json_node *json,
		    const struct step *up)
{
	const struct graft_json_node *child = graft_json_node_first(json);
	int n = 0;

	for (; child; child = graft_json_node_next(child)) {
		struct step step = { up, graft_json_node_name(child) };
		bool table = graft_json_node_kind(child) == GRAFT_JSON_OBJECT &&
			     !(member(child, "type") && member(child, "value"));

		check_edits(file, text, length, &step, table);
		n += 1 + (table ? edit_all(file, text, length, child, &step) : 0);
	}
	return n;
}

static const char *read_case(struct graft_arena *arena, const char *name, size_t *length)
{
	const char *source_root = getenv("GRAFT_SOURCE_ROOT");
	char path[4096];
	auto_close int fd = -1;
	const char *bytes = NULL;

	(void)snprintf(path, sizeof(path), "%s/%s/%s", source_root ? source_root : ".", SUITE, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		assert_int_equal(graft_read_fd(fd, 1 << 20, arena, &bytes, length), 0);
	return bytes;
}

static int check_valid(struct graft_arena *arena, const char *name, bool edit)
{
	size_t length, json_length = 0, kept;
	const char *text = read_case(arena, name, &length), *expected;
	struct graft_toml *toml = reparse(name, text, length);
	struct graft_json_document *is, *should;
	char json_name[512];
	int n;

	assert_memory_equal(graft_toml_text(toml, &kept), text, length);
	assert_int_equal(kept, length);
	(void)snprintf(json_name, sizeof(json_name), "%.*s.json", (int)strlen(name) - 5, name);
	expected = read_case(arena, json_name, &json_length);
	assert_non_null(expected);
	is = to_json(toml);
	should = parse_json(expected, json_length);
	check_same(name, "the whole", "reading", should, is);
	n = edit ? edit_all(name, text, length, graft_json_document_root(is), NULL) : 0;
	graft_json_document_free(is);
	graft_json_document_free(should);
	graft_toml_free(toml);
	return n;
}

static void check_invalid(struct graft_arena *arena, const char *name)
{
	struct graft_toml *toml = NULL;
	struct graft_error err = { 0 };
	size_t length;
	const char *text = read_case(arena, name, &length);

	assert_non_null(text);
	if (graft_toml_parse(name, text, length, &toml, &err) == 0)
		fail_msg("accepted: %s", name);
	assert_int_equal(err.status, GRAFT_FORMAT);
	assert_non_null(strstr(err.msg, "line "));
}

/* Every case of the list for TOML 1.0. Returns false when the suite is not there. */
static bool each_case(bool edit, int counts[3])
{
	struct graft_arena *arena = graft_arena_new((size_t)64 << 20);
	size_t length;
	const char *list = read_case(arena, "files-toml-1.0.0", &length);
	char name[512];

	for (const char *s = list; s && s < list + length; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : list + length) {
		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(s, "\n"), s);
		if (strlen(name) < 5 || strcmp(name + strlen(name) - 5, ".toml") != 0)
			continue;
		if (strncmp(name, "valid/", 6) == 0) {
			counts[0]++;
			counts[2] += check_valid(arena, name, edit);
		} else if (!edit) {
			counts[1]++;
			check_invalid(arena, name);
		}
	}
	graft_arena_free(arena);
	if (!list)
		print_message("SKIP: toml-conformance-suite: %s is not there\n", SUITE);
	return list != NULL;
}

static void test_suite(void **state)
{
	int counts[3] = { 0 };

	if (!each_case(false, counts))
		skip();
	assert_true(counts[0] >= 210);
	assert_true(counts[1] >= 499);
}

static void test_suite_edits(void **state)
{
	int counts[3] = { 0 };

	if (!each_case(true, counts))
		skip();
	assert_true(counts[2] > 800);
}

static const char config[] = "#accept = 1\n"
			     "disable-require = false # no\n"
			     "\n"
			     "[nvidia-container-cli]\n"
			     "  root = \"/run/driver\"\t# where\n"
			     "  environment = [ 'A=b',\n    \"C=d\", # last\n  ]\n"
			     "#path = \"x\"\n"
			     "\n"
			     "# the runtime\n"
			     "[nvidia-container-runtime]\n"
			     "level = 3\n"
			     "[nvidia-container-runtime.modes.cdi]\n"
			     "inline = { a.b = 1, c = \"\\u0000\" }\n";

static void test_getters(void **state)
{
	struct graft_toml *toml = parse(config);
	struct graft_arena *arena = graft_arena_new(4096);
	const char *root = "default", **list = NULL;
	bool require = true;
	int64_t number = 7;
	size_t n = 0;

	assert_int_equal(graft_toml_get_string(toml, "nvidia-container-cli.root", &root, NULL), 0);
	assert_string_equal(root, "/run/driver");
	assert_int_equal(graft_toml_get_bool(toml, "disable-require", &require, NULL), 0);
	assert_false(require);
	assert_int_equal(graft_toml_get_integer(toml, "none.there", &number, NULL), 0);
	assert_int_equal(number, 7);
	assert_int_equal(graft_toml_get_integer(toml, "nvidia-container-runtime . \"level\"", &number, NULL), 0);
	assert_int_equal(number, 3);
	assert_int_equal(graft_toml_get_strings(toml, "nvidia-container-cli.environment", arena, &list, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_string_equal(list[0], "A=b");
	assert_string_equal(list[1], "C=d");
	graft_arena_free(arena);
	graft_toml_free(toml);
}

static void test_wrong_types(void **state)
{
	static const struct {
		const char *path, *error;
	} rows[] = {
		{ "nvidia-container-cli.root", "config.toml: line 5, column 10: nvidia-container-cli.root is "
					       "\"/run/driver\"; allowed: true or false" },
		{ "nvidia-container-cli",
		  "config.toml: line 4, column 2: nvidia-container-cli is a table; allowed: true or false" },
		{ "nvidia-container-cli.root.x",
		  "config.toml: line 5, column 10: nvidia-container-cli.root is \"/run/driver\"; allowed: a table" },
		{ "nvidia-container-cli.environment",
		  "config.toml: line 6, column 17: nvidia-container-cli.environment is [ 'A=b',     \"C=d\", # last   "
		  "]; "
		  "allowed: true or false" },
		{ "a..b", "'a..b' is not a dotted key: expected a key" },
		{ "a b", "'a b' is not a dotted key: expected '.'" },
		{ "", "'' is not a dotted key: expected a key" },
	};
	struct graft_toml *toml = parse(config);
	struct graft_error err = { 0 };
	const char *string = NULL;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		bool value;

		assert_int_equal(graft_toml_get_bool(toml, rows[i].path, &value, &err), -1);
		assert_string_equal(err.msg, rows[i].error);
	}
	assert_int_equal(graft_toml_get_string(toml, "nvidia-container-runtime.modes.cdi.inline.c", &string, &err), -1);
	assert_string_equal(err.msg, "config.toml: line 15, column 25: nvidia-container-runtime.modes.cdi.inline.c is "
				     "\"\\u0000\"; allowed: a string without NUL");
	assert_int_equal(graft_toml_refuse(toml, "nvidia-container-runtime.level", "'info' or 'debug'", &err), -1);
	assert_string_equal(err.msg, "config.toml: line 13, column 9: nvidia-container-runtime.level is 3; allowed: "
				     "'info' or 'debug'");
	graft_toml_free(toml);
}

enum { SET, REMOVE };

static void test_edits(void **state)
{
	static const struct {
		const char *before;
		int what;
		const char *path, *value, *after;
	} rows[] = {
		{ "a = 1 # one\nb = 2\n", SET, "a", "5", "a = 5 # one\nb = 2\n" },
		{ "a = 'x'\n", SET, "a", "\"x\"", "a = 'x'\n" },
		{ "a = 0x10\n", SET, "a", "16", "a = 0x10\n" },
		{ "", SET, "a", "1", "a = 1\n" },
		{ "\xef\xbb\xbf", SET, "a", "1",
		  "\xef\xbb\xbf"
		  "a = 1\n" },
		{ "a = 1", SET, "b", "2", "a = 1\nb = 2\n" },
		{ "a = 1\r\n", SET, "b", "2", "a = 1\r\nb = 2\r\n" },
		{ "# top\n\n# of t\n[t]\n", SET, "a", "1", "# top\n\na = 1\n# of t\n[t]\n" },
		{ "[t]\n  a = 1 # x\n\n# u\n[u]\n", SET, "t.b", "2", "[t]\n  a = 1 # x\n  b = 2\n\n# u\n[u]\n" },
		{ "[t]\n[u]\n", SET, "t.b", "2", "[t]\nb = 2\n[u]\n" },
		{ "[t]\n# c\n", SET, "u.v.a", "2", "[t]\n# c\n\n[u.v]\na = 2\n" },
		{ "[t.u]\n", SET, "t.a", "2", "[t.u]\n\n[t]\na = 2\n" },
		{ "t.u = 1\n[x]\n", SET, "t.a", "2", "t.u = 1\nt.a = 2\n[x]\n" },
		{ "t = {}\n", SET, "t.a", "2", "t = { a = 2 }\n" },
		{ "t = { a = 1 } # x\n", SET, "t.'b c'.d", "2", "t = { a = 1, 'b c'.d = 2 } # x\n" },
		{ "a = [ # one\n 1,\n] # two\n", SET, "a", "[]", "a = [] # two\n" },
		{ "# k\na = 1 # one\nb = 2\n", REMOVE, "a", NULL, "# k\nb = 2\n" },
		{ "a = 1", REMOVE, "a", NULL, "" },
		{ "a = 1", REMOVE, "b.c", NULL, "a = 1" },
		{ "t = { a = 1, b = 2, c = 3 }", REMOVE, "t.b", NULL, "t = { a = 1, c = 3 }" },
		{ "t = { a = 1, b = 2, c = 3 }", REMOVE, "t.c", NULL, "t = { a = 1, b = 2 }" },
		{ "t = { a = 1 }", REMOVE, "t.a", NULL, "t = {  }" },
		{ "[s]\na=1\n\n[t]\n# in\nb=1\n#c=2\n\n# of u\n[u]\n", REMOVE, "t", NULL, "[s]\na=1\n\n# of u\n[u]\n" },
		{ "[t]\na=1\n[[t.u]]\n[x]\n[[t.u]]\nb=1\n", REMOVE, "t", NULL, "[x]\n" },
		{ "a.b.c = 1\na.d = 2\n", REMOVE, "a.b", NULL, "a.d = 2\n" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_toml *toml = parse(rows[i].before);

		/* The second time nothing is left to do. */
		for (int twice = 0; twice < 2; twice++) {
			struct graft_error err = { 0 };
			int rc = rows[i].what == SET ? graft_toml_set(toml, rows[i].path, rows[i].value, &err)
						     : graft_toml_remove(toml, rows[i].path, &err);

			if (rc < 0)
				fail_msg("row %zu: %s: %s", i, err.ctx, err.msg);
			assert_text(toml, rows[i].after);
		}
		graft_toml_free(toml);
	}
}

static void test_typed_setters(void **state)
{
	static const char *const list[] = { "a", "b \"c\"\n", "" };
	struct graft_toml *toml = parse("");

	assert_int_equal(graft_toml_set_string(toml, "s", "C:\\x\x01\xc3\xa9", NULL), 0);
	assert_int_equal(graft_toml_set_bool(toml, "b", true, NULL), 0);
	assert_int_equal(graft_toml_set_integer(toml, "i", INT64_MIN, NULL), 0);
	assert_int_equal(graft_toml_set_strings(toml, "l", list, 3, NULL), 0);
	assert_int_equal(graft_toml_set_strings(toml, "e", NULL, 0, NULL), 0);
	assert_text(toml, "s = \"C:\\\\x\\u0001\xc3\xa9\"\nb = true\ni = -9223372036854775808\n"
			  "l = [\"a\", \"b \\\"c\\\"\\u000A\", \"\"]\ne = []\n");
	graft_toml_free(toml);
}

static void test_refused_edits(void **state)
{
	static const struct {
		const char *path, *value;
		enum graft_status status;
	} rows[] = {
		{ "t", "1", GRAFT_INVALID },     { "a.b", "1", GRAFT_INVALID }, { "l.b", "1", GRAFT_INVALID },
		{ "l", "1", GRAFT_INVALID },     { "n", "", GRAFT_INVALID },    { "n", "1\nm = 2", GRAFT_INVALID },
		{ "n", "1 # x", GRAFT_INVALID }, { "n", "1\n", GRAFT_INVALID }, { "a..b", "1", GRAFT_INVALID },
		{ "n\nm", "1", GRAFT_INVALID },  { "n", "\"a", GRAFT_INVALID }, { "\xff", "1", GRAFT_INVALID },
		{ "i.x", "[1,\n2]", GRAFT_OK },
	};
	static const char text[] = "a = 1\ni = {}\n[t]\n[[l]]\n";

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_toml *toml = parse(text);
		struct graft_error err = { 0 };
		int rc = graft_toml_set(toml, rows[i].path, rows[i].value, &err);

		if (rc != (rows[i].status == GRAFT_OK ? 0 : -1) || err.status != rows[i].status)
			fail_msg("row %zu: %s", i, err.msg);
		if (rc < 0)
			assert_text(toml, text);
		graft_toml_free(toml);
	}
}

static void test_limits(void **state)
{
	static const char big_text[] = "config.toml: 16777217 bytes are over the limit of 16777216";
	struct graft_toml *toml = NULL;
	struct graft_error err = { 0 };
	auto_free char *big = malloc(((size_t)16 << 20) + 1);
	char deep[512] = "a = ";

	assert_non_null(big);
	memset(big, '\n', ((size_t)16 << 20) + 1);
	assert_int_equal(graft_toml_parse("config.toml", big, (size_t)16 << 20, &toml, &err), 0);
	graft_toml_free(toml);
	assert_int_equal(graft_toml_parse("config.toml", big, ((size_t)16 << 20) + 1, &toml, &err), -1);
	assert_string_equal(err.msg, big_text);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	memset(deep + 4, '[', 128);
	memset(deep + 132, ']', 128);
	assert_int_equal(graft_toml_parse("config.toml", deep, 260, &toml, &err), 0);
	graft_toml_free(toml);
	memset(deep + 4, '[', 129);
	memset(deep + 133, ']', 129);
	assert_int_equal(graft_toml_parse("config.toml", deep, 262, &toml, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_string_equal(err.msg, "config.toml: line 1, column 133: nested deeper than 128 levels");
	for (size_t i = 0; i < 129; i++)
		memcpy(deep + 2 * i, i == 128 ? "a=" : "a.", 2);
	assert_int_equal(graft_toml_parse("config.toml", deep, 258, &toml, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
}

static void test_errors_name_the_place(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "a = 1\n\xc3\xa9 = 2", "config.toml: line 2, column 1: expected a key" },
		{ "a = \"\xc3\xa9\" x", "config.toml: line 1, column 9: expected the end of the line" },
		{ "a = 1\n[b]\na = 1\na = 2", "config.toml: line 4, column 1: the key is already defined" },
		{ "a = \"x\nb = 1", "config.toml: line 1, column 7: the string does not end on its line" },
		{ "a = 99999999999999999999", "config.toml: line 1, column 5: the integer is beyond 64 bits" },
		{ "a = tru", "config.toml: line 1, column 5: expected a value" },
		{ "a = \"\xff\"", "config.toml: line 1, column 6: invalid UTF-8" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_toml *toml = NULL;
		struct graft_error err = { 0 };

		assert_int_equal(graft_toml_parse("config.toml", rows[i].text, strlen(rows[i].text), &toml, &err), -1);
		assert_string_equal(err.msg, rows[i].error);
	}
}

/* Everything once: parse, read, write, remove. */
static int use_all(struct graft_arena *arena, struct graft_error *err)
{
	auto_toml struct graft_toml *toml = NULL;
	struct graft_buffer json = { 0 };
	const char *string, **list;
	size_t n;
	int rc = -1;

	if (graft_toml_parse("config.toml", config, strlen(config), &toml, err) == 0 &&
	    graft_toml_get_string(toml, "nvidia-container-cli.root", &string, err) == 0 &&
	    graft_toml_get_strings(toml, "nvidia-container-cli.environment", arena, &list, &n, err) == 0 &&
	    graft_toml_set_string(toml, "nvidia-container-cli.root", "/", err) == 0 &&
	    graft_toml_set_strings(toml, "new.table.list", (const char *const[]){ "x" }, 1, err) == 0 &&
	    graft_toml_set_bool(toml, "nvidia-container-runtime.modes.cdi.inline.x", true, err) == 0 &&
	    graft_toml_set_integer(toml, "disable-require", 5, err) == 0 &&
	    graft_toml_remove(toml, "nvidia-container-runtime", err) == 0 && tagged(toml, &json, err) == 0)
		rc = 0;
	graft_buffer_done(&json);
	return rc;
}

static void test_allocations(void **state)
{
	assert_true(allocation_each(own, err, use_all(own, &err)) > 49);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suite),
		cmocka_unit_test(test_suite_edits),
		cmocka_unit_test(test_getters),
		cmocka_unit_test(test_wrong_types),
		cmocka_unit_test(test_edits),
		cmocka_unit_test(test_typed_setters),
		cmocka_unit_test(test_refused_edits),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_errors_name_the_place),
		cmocka_unit_test(test_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
