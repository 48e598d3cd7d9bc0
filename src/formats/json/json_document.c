/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_document: reads the tree. Allocates nothing. Knows neither how a text is parsed nor how it
 * is edited.
 */
#include "formats/json/json_document.h"

#include <string.h>

#include "base/strings.h"
#include "formats/json/json_tree.h"

bool graft_json_document_changed(const struct graft_json_document *document)
{
	return document->changed;
}

struct graft_json_node *graft_json_document_root(const struct graft_json_document *document)
{
	return document->top.first;
}

enum graft_json_kind graft_json_node_kind(const struct graft_json_node *node)
{
	return node ? (enum graft_json_kind)node->kind : GRAFT_JSON_ABSENT;
}

bool json_is_container(const struct graft_json_node *node)
{
	return graft_json_node_kind(node) == GRAFT_JSON_OBJECT || graft_json_node_kind(node) == GRAFT_JSON_ARRAY;
}

/*
 * Returns the next character, folded as Go's decoder folds the names of members: ASCII letters, and
 * the two other characters whose other case is an ASCII letter: U+017F is an s, U+212A a k.
 */
static unsigned char next_folded(const char **s)
{
	unsigned char c = (unsigned char)*(*s)++;

	if (c >= 'A' && c <= 'Z')
		return (unsigned char)(c + ('a' - 'A'));
	if (c == 0xc5 && (unsigned char)**s == 0xbf) {
		*s += 1;
		return 's';
	}
	if (c == 0xe2 && strncmp(*s, "\x84\xaa", 2) == 0) {
		*s += 2;
		return 'k';
	}
	return c;
}

bool json_name_is(const struct graft_json_node *member, const char *name, size_t length)
{
	const char *a = member->name, *b = name, *end = name + length;

	if (!a)
		return false;
	while (b < end) {
		unsigned char c = next_folded(&b);

		/* Names contain no NUL, so the one at the end stops the loop in time. */
		if (next_folded(&a) != c)
			return false;
	}
	return *a == '\0';
}

static struct graft_json_node *find_json_member(const struct graft_json_node *object, const char *name, size_t length)
{
	struct graft_json_node *found = NULL;

	if (graft_json_node_kind(object) != GRAFT_JSON_OBJECT)
		return NULL;
	for (struct graft_json_node *member = object->first; member; member = member->next) {
		if (json_name_is(member, name, length))
			found = member;
	}
	return found;
}

struct graft_json_node *graft_json_node_member(const struct graft_json_node *object, const char *name)
{
	return find_json_member(object, name, strlen(name));
}

struct graft_json_node *graft_json_node_at(const struct graft_json_node *object, const char *path)
{
	for (;;) {
		size_t length = strcspn(path, ".");
		struct graft_json_node *member = find_json_member(object, path, length);

		if (!member || path[length] == '\0')
			return member;
		object = member;
		path += length + 1;
	}
}

struct graft_json_node *graft_json_node_first(const struct graft_json_node *container)
{
	return json_is_container(container) ? container->first : NULL;
}

struct graft_json_node *graft_json_node_next(const struct graft_json_node *node)
{
	return node ? node->next : NULL;
}

size_t graft_json_node_count(const struct graft_json_node *container)
{
	size_t n = 0;

	for (const struct graft_json_node *child = graft_json_node_first(container); child; child = child->next)
		n++;
	return n;
}

const char *graft_json_node_string(const struct graft_json_node *node)
{
	return graft_json_node_kind(node) == GRAFT_JSON_STRING ? node->text : NULL;
}

const char *graft_json_node_name(const struct graft_json_node *node)
{
	return node ? node->name : NULL;
}

/*
 * Reads the digits of an integer. Returns false if there is a fraction or an exponent, or if it
 * exceeds 64 bits.
 */
static bool read_digits(const char *digits, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (; *digits >= '0' && *digits <= '9'; digits++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*digits - '0'), &value))
			return false;
	}
	*ret_value = value;
	return *digits != '.' && *digits != 'e' && *digits != 'E';
}

bool graft_json_node_u64(const struct graft_json_node *node, uint64_t *ret_value)
{
	uint64_t value;

	if (graft_json_node_kind(node) != GRAFT_JSON_NUMBER || node->text[0] == '-' || !read_digits(node->text, &value))
		return false;
	*ret_value = value;
	return true;
}

bool graft_json_node_i64(const struct graft_json_node *node, int64_t *ret_value)
{
	bool negative = graft_json_node_kind(node) == GRAFT_JSON_NUMBER && node->text[0] == '-';
	uint64_t value, limit = (uint64_t)INT64_MAX + negative;

	if (graft_json_node_kind(node) != GRAFT_JSON_NUMBER || !read_digits(node->text + negative, &value) ||
	    value > limit)
		return false;
	*ret_value = (int64_t)(negative ? 0 - value : value);
	return true;
}

bool graft_json_node_is_true(const struct graft_json_node *node)
{
	return graft_json_node_kind(node) == GRAFT_JSON_BOOL && node->text[0] == 't';
}

void graft_json_node_position(const struct graft_json_node *node, unsigned int *ret_line, unsigned int *ret_column)
{
	const struct graft_json_node *top = node;
	bool named = node && node->parent && node->parent->kind == GRAFT_JSON_OBJECT;

	*ret_line = 0;
	*ret_column = 0;
	while (top && top->parent)
		top = top->parent;
	/* If the node is not in a document, `top` is not a document's own node. */
	if (!top || top->kind != GRAFT_JSON_ABSENT || !node->placed)
		return;
	graft_utf8_place(
	    ((const struct graft_json_document *)((const char *)top - offsetof(struct graft_json_document, top)))->text,
	    named && !node->fresh ? node->name_start : node->start, ret_line, ret_column);
}
