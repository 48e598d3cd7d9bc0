/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml: looks up values of a parsed document, and reports those that are not allowed. Does not
 * decide which keys may exist.
 */
#include "formats/toml/toml.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/toml/toml_tree.h"

void graft_toml_free(struct graft_toml *toml)
{
	if (!toml)
		return;
	graft_arena_free(toml->arena);
	free(toml->slots);
	free(toml->text);
	free(toml->name);
	free(toml);
}

void graft_toml_cleanup(struct graft_toml **toml)
{
	graft_toml_free(*toml);
}

const char *graft_toml_text(const struct graft_toml *toml, size_t *ret_length)
{
	*ret_length = toml->length;
	return toml->text;
}

static int fail_path(const char *path, const struct toml_scan *scan, struct graft_error *err)
{
	if (scan->status == GRAFT_NO_MEMORY)
		return graft_fail_memory(err);
	return graft_fail(err, GRAFT_INVALID, 0, "'%s' is not a dotted key: %s", path, scan->why);
}

/* Takes a part of a path: a bare one as it is, without a scratch buffer no other. */
static bool take_path_part(struct toml_scan *scan, struct toml_text *ret_key)
{
	size_t start = scan->at;

	if (scan->scratch)
		return toml_scan_key_part(scan, ret_key);
	while (toml_is_bare(scan->text[scan->at]))
		scan->at++;
	*ret_key = (struct toml_text){ scan->text + start, scan->at - start };
	return scan->at > start;
}

/* Continues after a missing part of the path, so that all of it is checked. */
static bool follow_parts(const struct graft_toml *toml, struct toml_scan *scan, struct toml_node **ret_node,
			 const char **ret_rest)
{
	bool missing = false;

	*ret_node = toml->root;
	*ret_rest = scan->text + scan->length;
	for (;;) {
		struct toml_node *child = NULL;
		struct toml_text key;
		size_t at = scan->at;

		if (!take_path_part(scan, &key))
			return false;
		if (!missing && (*ret_node)->type == TOML_TABLE)
			child = toml_find(toml, *ret_node, &key);
		if (child)
			*ret_node = child;
		else if (!missing)
			*ret_rest = scan->text + at;
		missing = !child;
		toml_skip_blanks(scan);
		if (scan->at == scan->length)
			return true;
		if (!toml_is_at(scan, '.'))
			return toml_wrong(scan, scan->at, "expected '.'");
		scan->at++;
		toml_skip_blanks(scan);
	}
}

/* Paths of bare keys, the usual case, are followed without allocating. */
int toml_follow(const struct graft_toml *toml, const char *path, struct toml_node **ret_node, const char **ret_rest,
		struct graft_error *err)
{
	struct toml_scan bare = { .text = path, .length = strlen(path) }, scan = bare;
	auto_arena struct graft_arena *arena = NULL;
	auto_free char *scratch = NULL;

	if (follow_parts(toml, &bare, ret_node, ret_rest))
		return 0;
	scan.scratch = scratch = malloc(scan.length + 1);
	scan.arena = arena = graft_arena_new(4 * scan.length + 65536);
	if (!scratch || !arena)
		return graft_fail_memory(err);
	return toml_check_utf8(&scan) && follow_parts(toml, &scan, ret_node, ret_rest) ? 0
										       : fail_path(path, &scan, err);
}

/*
 * "NAME: line 3, column 8: KEY is VALUE; allowed: WHAT", with the key up to the node, and the value
 * cut to a line.
 */
static int refuse_toml_value(const struct graft_toml *toml, const struct toml_node *node, const char *path,
			     const char *rest, const char *allowed, struct graft_error *err)
{
	int key_length = (int)strlen(path) - (int)strlen(rest);
	char value[80] = "a table";
	unsigned int line, column;
	size_t n = node->end > node->start ? node->end - node->start : 0;

	while (*rest && key_length > 0 && strchr(". \t", path[key_length - 1]))
		key_length--;
	graft_utf8_place(toml->text, node->start, &line, &column);
	if (node->type == TOML_ARRAY && n == 0)
		(void)memcpy(value, "an array of tables", sizeof("an array of tables"));
	if (n > 0) {
		bool cut = n > sizeof(value) - 4;

		n = cut ? sizeof(value) - 4 : n;
		while (cut && ((unsigned char)toml->text[node->start + n] & 0xc0u) == 0x80u)
			n--;
		memcpy(value, toml->text + node->start, n);
		memcpy(value + n, cut ? "..." : "", cut ? 4 : 1);
		for (char *s = value; *s; s++) {
			if ((unsigned char)*s < 0x20)
				*s = ' ';
		}
	}
	return graft_fail(err, GRAFT_FORMAT, 0, "%s: line %u, column %u: %.*s is %s; allowed: %s", toml->name, line,
			  column, key_length, path, value, allowed);
}

int graft_toml_refuse(const struct graft_toml *toml, const char *path, const char *allowed, struct graft_error *err)
{
	struct toml_node *node;
	const char *rest;

	if (toml_follow(toml, path, &node, &rest, err) < 0)
		return -1;
	if (*rest)
		return graft_fail(err, GRAFT_FORMAT, 0, "%s: %s is not set; allowed: %s", toml->name, path, allowed);
	return refuse_toml_value(toml, node, path, rest, allowed, err);
}

void graft_toml_position(const struct graft_toml *toml, const char *path, unsigned int *ret_line,
			 unsigned int *ret_column)
{
	struct toml_node *node;
	const char *rest;

	*ret_line = *ret_column = 0;
	if (toml_follow(toml, path, &node, &rest, NULL) == 0 && !*rest)
		graft_utf8_place(toml->text, node->start, ret_line, ret_column);
}

const char *graft_toml_name(const struct graft_toml *toml)
{
	return toml->name;
}

/* Returns 1 with the node, 0 if it does not exist, or -1 if it is of another type. */
static int get_toml_node(const struct graft_toml *toml, const char *path, enum toml_type type, const char *allowed,
			 const struct toml_node **ret_node, struct graft_error *err)
{
	struct toml_node *node;
	const char *rest;

	if (toml_follow(toml, path, &node, &rest, err) < 0)
		return -1;
	if (*rest)
		return node->type == TOML_TABLE ? 0 : refuse_toml_value(toml, node, path, rest, "a table", err);
	if (node->type != type)
		return refuse_toml_value(toml, node, path, rest, allowed, err);
	*ret_node = node;
	return 1;
}

bool graft_toml_has(const struct graft_toml *toml, const char *path)
{
	struct toml_node *node;
	const char *rest;

	return toml_follow(toml, path, &node, &rest, NULL) == 0 && !*rest;
}

int graft_toml_get_string(const struct graft_toml *toml, const char *path, const char **ret_string,
			  struct graft_error *err)
{
	const struct toml_node *node = NULL;
	int rc = get_toml_node(toml, path, TOML_STRING, "a string", &node, err);

	if (!node)
		return rc;
	if (memchr(node->text.bytes, '\0', node->text.length))
		return refuse_toml_value(toml, node, path, "", "a string without NUL", err);
	*ret_string = node->text.bytes;
	return 0;
}

int graft_toml_get_bool(const struct graft_toml *toml, const char *path, bool *ret_bool, struct graft_error *err)
{
	const struct toml_node *node = NULL;
	int rc = get_toml_node(toml, path, TOML_BOOL, "true or false", &node, err);

	if (node)
		*ret_bool = node->integer != 0;
	return rc < 0 ? -1 : 0;
}

int graft_toml_get_integer(const struct graft_toml *toml, const char *path, int64_t *ret_integer,
			   struct graft_error *err)
{
	const struct toml_node *node = NULL;
	int rc = get_toml_node(toml, path, TOML_INTEGER, "an integer", &node, err);

	if (node)
		*ret_integer = node->integer;
	return rc < 0 ? -1 : 0;
}

int graft_toml_get_strings(const struct graft_toml *toml, const char *path, struct graft_arena *arena,
			   const char ***ret_strings, size_t *ret_n, struct graft_error *err)
{
	static const char allowed[] = "a list of strings, [\"a\", \"b\"]";
	const struct toml_node *node = NULL;
	const char **strings = NULL;
	size_t n = 0;
	int rc = get_toml_node(toml, path, TOML_ARRAY, allowed, &node, err);

	if (!node)
		return rc;
	for (const struct toml_node *item = node->first; item; item = item->next) {
		if (item->type != TOML_STRING || memchr(item->text.bytes, '\0', item->text.length))
			return refuse_toml_value(toml, node, path, "", allowed, err);
		if (!graft_arena_push_string(arena, &strings, &n, item->text.bytes))
			return graft_fail_memory(err);
	}
	*ret_strings = strings;
	*ret_n = n;
	return 0;
}
