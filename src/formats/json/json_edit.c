/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_edit: changes the tree. Allocates memory before changing the first link, so that a failed
 * edit changes nothing. Does not know how the result is formatted (json_write.c).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strings.h"
#include "formats/json/json_tree.h"

static struct graft_json_node *new_edited_node(struct graft_json_document *document, enum graft_json_kind kind,
					       const char *text, struct graft_error *err)
{
	struct graft_json_node *node = json_new_node(document);
	const char *copy = graft_arena_strdup(document->arena, text);

	if (!node || (text && !copy)) {
		(void)graft_fail_memory(err);
		return NULL;
	}
	node->kind = (uint8_t)kind;
	node->fresh = true;
	node->text = copy;
	return node;
}

static int check_utf8(const struct graft_json_document *document, const char *string, struct graft_error *err)
{
	return graft_is_utf8(string)
		   ? 0
		   : graft_fail(err, GRAFT_FORMAT, 0, "%s: '%s' cannot be written as JSON: it is not UTF-8",
				document->name, string);
}

struct graft_json_node *graft_json_new_string(struct graft_json_document *document, const char *string,
					      struct graft_error *err)
{
	return check_utf8(document, string, err) < 0 ? NULL : new_edited_node(document, GRAFT_JSON_STRING, string, err);
}

struct graft_json_node *graft_json_new_u64(struct graft_json_document *document, uint64_t value,
					   struct graft_error *err)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	return new_edited_node(document, GRAFT_JSON_NUMBER, text, err);
}

struct graft_json_node *graft_json_new_i64(struct graft_json_document *document, int64_t value, struct graft_error *err)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, value);
	return new_edited_node(document, GRAFT_JSON_NUMBER, text, err);
}

struct graft_json_node *graft_json_new_bool(struct graft_json_document *document, bool value, struct graft_error *err)
{
	return new_edited_node(document, GRAFT_JSON_BOOL, value ? "true" : "false", err);
}

struct graft_json_node *graft_json_new_array(struct graft_json_document *document, struct graft_error *err)
{
	return new_edited_node(document, GRAFT_JSON_ARRAY, NULL, err);
}

struct graft_json_node *graft_json_new_object(struct graft_json_document *document, struct graft_error *err)
{
	return new_edited_node(document, GRAFT_JSON_OBJECT, NULL, err);
}

/*
 * Marks a container and its parents. Changes in a detached value do not affect what would be
 * written.
 */
static void mark_changed(struct graft_json_document *document, struct graft_json_node *container)
{
	for (; container; container = container->parent) {
		container->dirty = true;
		document->changed = document->changed || container == &document->top;
	}
}

static const char *kind_name(const struct graft_json_node *node)
{
	static const char *const names[] = {
		[GRAFT_JSON_ABSENT] = "nothing",   [GRAFT_JSON_NULL] = "null",       [GRAFT_JSON_BOOL] = "a boolean",
		[GRAFT_JSON_NUMBER] = "a number",  [GRAFT_JSON_STRING] = "a string", [GRAFT_JSON_ARRAY] = "an array",
		[GRAFT_JSON_OBJECT] = "an object",
	};

	return names[graft_json_node_kind(node)];
}

/* "FILE" or "FILE: line 3, column 8", for messages. */
static const char *name_json_place(const struct graft_json_document *document, const struct graft_json_node *node,
				   char *buffer, size_t size)
{
	unsigned int line, column;

	graft_json_node_position(node, &line, &column);
	if (line > 0)
		(void)snprintf(buffer, size, "%s: line %u, column %u", document->name, line, column);
	else
		(void)snprintf(buffer, size, "%s", document->name);
	return buffer;
}

#define PLACE_SIZE 256

static int check_json_kind(const struct graft_json_document *document, const struct graft_json_node *node,
			   enum graft_json_kind kind, struct graft_error *err)
{
	const struct graft_json_node wanted = { .kind = (uint8_t)kind };
	const char *name = graft_json_node_name(node);
	char where[PLACE_SIZE];

	if (graft_json_node_kind(node) == kind)
		return 0;
	return graft_fail(err, GRAFT_FORMAT, 0, "%s: '%s' is %s, but must be %s",
			  name_json_place(document, node, where, sizeof(where)), name ? name : "the value",
			  kind_name(node), kind_name(&wanted));
}

/* A value to be inserted must be new and detached, and must not contain its new place. */
static int check_new(const struct graft_json_node *value, const struct graft_json_node *place, struct graft_error *err)
{
	if (!value->fresh || value->parent)
		return graft_fail(err, GRAFT_INTERNAL, 0, "a JSON node is inserted a second time");
	for (; place; place = place->parent) {
		if (place == value)
			return graft_fail(err, GRAFT_INTERNAL, 0, "a JSON node is inserted into itself");
	}
	return 0;
}

/*
 * How names are compared: as members of something that a runtime reads into a struct, or as keys of
 * a map.
 */
enum matching { AS_MEMBER, AS_KEY };

static bool matches(const struct graft_json_node *member, const char *name, size_t length, enum matching matching)
{
	if (matching == AS_MEMBER)
		return json_name_is(member, name, length);
	return member->name && strncmp(member->name, name, length) == 0 && member->name[length] == '\0';
}

/*
 * Finds the only member with that name; NULL if it does not exist. Returns -1 if there are several,
 * because readers disagree about which one applies.
 */
static int find_single(const struct graft_json_document *document, const struct graft_json_node *object,
		       const char *name, size_t length, enum matching matching, struct graft_json_node **ret_member,
		       struct graft_error *err)
{
	char where[PLACE_SIZE];

	*ret_member = NULL;
	for (struct graft_json_node *member = object->first; member; member = member->next) {
		if (!matches(member, name, length, matching))
			continue;
		if (*ret_member)
			return graft_fail(err, GRAFT_FORMAT, 0,
					  "%s: '%.*s' is given twice, and programs differ in which one they use",
					  name_json_place(document, member, where, sizeof(where)), (int)length, name);
		*ret_member = member;
	}
	return 0;
}

static struct graft_json_node **find_sibling_link(struct graft_json_node *parent, const struct graft_json_node *node)
{
	struct graft_json_node **link = &parent->first;

	while (*link != node)
		link = &(*link)->next;
	return link;
}

static void link_last(struct graft_json_document *document, struct graft_json_node *container,
		      struct graft_json_node *value)
{
	*find_sibling_link(container, NULL) = value;
	value->parent = container;
	mark_changed(document, container);
}

/* Gives the new value the place, name and bytes of the old one. */
static void link_over(struct graft_json_document *document, struct graft_json_node *old, struct graft_json_node *value)
{
	*find_sibling_link(old->parent, old) = value;
	value->parent = old->parent;
	value->next = old->next;
	value->name = old->name;
	value->name_start = old->name_start;
	value->start = old->start;
	value->end = old->end;
	value->placed = old->placed;
	mark_changed(document, old->parent);
	old->parent = NULL;
	old->next = NULL;
}

/* Returns whether two values are equal. Containers never are. */
static bool says_the_same(const struct graft_json_node *a, const struct graft_json_node *b)
{
	return !json_is_container(a) && graft_json_node_is_same(a, b);
}

int graft_json_replace(struct graft_json_document *document, struct graft_json_node *node,
		       struct graft_json_node *value, struct graft_error *err)
{
	if (!node->parent)
		return graft_fail(err, GRAFT_INTERNAL, 0, "cannot replace a JSON node that is in no document");
	if (check_new(value, node, err) < 0)
		return -1;
	if (!says_the_same(node, value))
		link_over(document, node, value);
	return 0;
}

static int set_json_member(struct graft_json_document *document, struct graft_json_node *object, const char *name,
			   enum matching matching, struct graft_json_node *value, struct graft_error *err)
{
	struct graft_json_node *member;
	const char *copy;

	if (check_json_kind(document, object, GRAFT_JSON_OBJECT, err) < 0 || check_new(value, object, err) < 0 ||
	    check_utf8(document, name, err) < 0 ||
	    find_single(document, object, name, strlen(name), matching, &member, err) < 0)
		return -1;
	if (member)
		return graft_json_replace(document, member, value, err);
	copy = graft_arena_strdup(document->arena, name);
	if (!copy)
		return graft_fail_memory(err);
	value->name = copy;
	link_last(document, object, value);
	return 0;
}

int graft_json_set(struct graft_json_document *document, struct graft_json_node *object, const char *name,
		   struct graft_json_node *value, struct graft_error *err)
{
	return set_json_member(document, object, name, AS_MEMBER, value, err);
}

int graft_json_set_key(struct graft_json_document *document, struct graft_json_node *map, const char *key,
		       struct graft_json_node *value, struct graft_error *err)
{
	return set_json_member(document, map, key, AS_KEY, value, err);
}

int graft_json_append(struct graft_json_document *document, struct graft_json_node *array,
		      struct graft_json_node *value, struct graft_error *err)
{
	if (check_json_kind(document, array, GRAFT_JSON_ARRAY, err) < 0 || check_new(value, array, err) < 0)
		return -1;
	link_last(document, array, value);
	return 0;
}

static void unlink_at(struct graft_json_node **link)
{
	struct graft_json_node *node = *link;

	*link = node->next;
	node->parent = NULL;
	node->next = NULL;
}

void graft_json_remove(struct graft_json_document *document, struct graft_json_node *node)
{
	if (!node || !node->parent || node->parent == &document->top)
		return;
	mark_changed(document, node->parent);
	unlink_at(find_sibling_link(node->parent, node));
}

size_t graft_json_remove_each(struct graft_json_document *document, struct graft_json_node *container,
			      bool (*is_unwanted)(struct graft_json_node *child, void *arg), void *arg)
{
	struct graft_json_node **link = &container->first;
	size_t n = 0;

	while (*link) {
		if (is_unwanted(*link, arg)) {
			unlink_at(link);
			n++;
		} else {
			link = &(*link)->next;
		}
	}
	if (n > 0)
		mark_changed(document, container);
	return n;
}

/* Returns whether `order` contains each element once. */
static bool is_permutation(struct graft_json_node *array, struct graft_json_node *const *order, size_t n)
{
	size_t met = 0;

	for (size_t i = 0; i < n; i++) {
		if (order[i] && order[i]->parent == array && !order[i]->marked) {
			order[i]->marked = true;
			met++;
		}
	}
	for (struct graft_json_node *child = array->first; child; child = child->next)
		child->marked = false;
	return met == n && graft_json_node_count(array) == n;
}

static bool is_in_order(const struct graft_json_node *array, struct graft_json_node *const *order)
{
	for (const struct graft_json_node *child = array->first; child; child = child->next) {
		if (child != *order++)
			return false;
	}
	return true;
}

int graft_json_reorder(struct graft_json_document *document, struct graft_json_node *array,
		       struct graft_json_node *const *order, size_t n, struct graft_error *err)
{
	struct graft_json_node **link = &array->first;

	if (check_json_kind(document, array, GRAFT_JSON_ARRAY, err) < 0)
		return -1;
	if (!is_permutation(array, order, n))
		return graft_fail(err, GRAFT_INTERNAL, 0, "the new order of a JSON array has different elements");
	if (is_in_order(array, order))
		return 0;
	for (size_t i = 0; i < n; i++) {
		*link = order[i];
		link = &order[i]->next;
	}
	*link = NULL;
	mark_changed(document, array);
	return 0;
}

/*
 * Creates the values that `path` lacks: the last one is of `kind`, the others are objects that
 * contain the next.
 */
static struct graft_json_node *new_chain(struct graft_json_document *document, const char *path,
					 enum graft_json_kind kind, struct graft_json_node **ret_last,
					 struct graft_error *err)
{
	struct graft_json_node *first = NULL, **holder = &first, *parent = NULL;

	for (;;) {
		size_t length = strcspn(path, ".");
		bool last = path[length] == '\0';
		struct graft_json_node *node = new_edited_node(document, last ? kind : GRAFT_JSON_OBJECT, NULL, err);

		if (!node)
			return NULL;
		node->name = graft_arena_strndup(document->arena, path, length);
		if (!node->name) {
			(void)graft_fail_memory(err);
			return NULL;
		}
		node->parent = parent;
		*holder = node;
		if (last) {
			*ret_last = node;
			return first;
		}
		holder = &node->first;
		parent = node;
		path += length + 1;
	}
}

struct graft_json_node *graft_json_make(struct graft_json_document *document, const char *path,
					enum graft_json_kind kind, struct graft_error *err)
{
	struct graft_json_node *object = document->top.first, *member, *chain, *made = NULL;

	for (;;) {
		size_t length = strcspn(path, ".");
		bool last = path[length] == '\0';

		if (check_json_kind(document, object, GRAFT_JSON_OBJECT, err) < 0 ||
		    find_single(document, object, path, length, AS_MEMBER, &member, err) < 0)
			return NULL;
		if (!member || member->kind == GRAFT_JSON_NULL)
			break;
		if (last)
			return check_json_kind(document, member, kind, err) < 0 ? NULL : member;
		object = member;
		path += length + 1;
	}
	chain = new_chain(document, path, kind, &made, err);
	if (!chain)
		return NULL;
	if (member)
		link_over(document, member, chain);
	else
		link_last(document, object, chain);
	return made;
}
