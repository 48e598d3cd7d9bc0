/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_copy: compares values with those of another document, and copies them from there. The depth
 * limit of documents bounds the recursion.
 */
#include <string.h>

#include "formats/json/json_tree.h"

static size_t length_of_scalar(const struct graft_json_node *node)
{
	return node->fresh ? strlen(node->text) : (size_t)(node->end - node->start);
}

static const struct graft_json_node *find_copied_key(const struct graft_json_node *object, const char *name)
{
	for (const struct graft_json_node *member = object->first; member; member = member->next) {
		if (member->name && strcmp(member->name, name) == 0)
			return member;
	}
	return NULL;
}

static bool is_same_object(const struct graft_json_node *a, const struct graft_json_node *b)
{
	for (const struct graft_json_node *member = a->first; member; member = member->next) {
		const struct graft_json_node *twin = member->name ? find_copied_key(b, member->name) : NULL;

		if (!twin || !graft_json_node_is_same(member, twin))
			return false;
	}
	return graft_json_node_count(a) == graft_json_node_count(b);
}

static bool is_same_array(const struct graft_json_node *a, const struct graft_json_node *b)
{
	a = a->first;
	b = b->first;
	while (a && b && graft_json_node_is_same(a, b)) {
		a = a->next;
		b = b->next;
	}
	return !a && !b;
}

bool graft_json_node_is_same(const struct graft_json_node *a, const struct graft_json_node *b)
{
	if (!a || !b || a->kind != b->kind)
		return !a && !b;
	if (a->kind == GRAFT_JSON_OBJECT)
		return is_same_object(a, b);
	if (a->kind == GRAFT_JSON_ARRAY)
		return is_same_array(a, b);
	if (a->kind == GRAFT_JSON_STRING)
		return a->text && b->text && strcmp(a->text, b->text) == 0;
	return length_of_scalar(a) == length_of_scalar(b) && memcmp(a->text, b->text, length_of_scalar(a)) == 0;
}

static struct graft_json_node *copy_scalar(struct graft_json_document *document, const struct graft_json_node *node,
					   struct graft_error *err)
{
	size_t length = node->text && node->kind != GRAFT_JSON_STRING ? length_of_scalar(node) : 0;
	struct graft_json_node *copy;

	if (!node->text) {
		(void)graft_fail(err, GRAFT_FORMAT, 0, "%s: a string that contains a NUL character cannot be copied",
				 document->name);
		return NULL;
	}
	if (node->kind == GRAFT_JSON_STRING)
		return graft_json_new_string(document, node->text, err);
	copy = json_new_node(document);
	if (copy)
		copy->text = graft_arena_strndup(document->arena, node->text, length);
	if (!copy || !copy->text) {
		(void)graft_fail_memory(err);
		return NULL;
	}
	copy->kind = node->kind;
	copy->fresh = true;
	return copy;
}

static int copy_children(struct graft_json_document *document, struct graft_json_node *copy,
			 const struct graft_json_node *node, struct graft_error *err)
{
	for (const struct graft_json_node *child = node->first; child; child = child->next) {
		struct graft_json_node *twin = graft_json_new_copy(document, child, err);
		int rc;

		if (!twin)
			return -1;
		if (node->kind == GRAFT_JSON_ARRAY)
			rc = graft_json_append(document, copy, twin, err);
		else if (child->name)
			rc = graft_json_set_key(document, copy, child->name, twin, err);
		else
			rc = graft_fail(err, GRAFT_FORMAT, 0,
					"%s: a name that contains a NUL character cannot be copied", document->name);
		if (rc < 0)
			return -1;
	}
	return 0;
}

struct graft_json_node *graft_json_new_copy(struct graft_json_document *document, const struct graft_json_node *node,
					    struct graft_error *err)
{
	struct graft_json_node *copy;

	if (!json_is_container(node))
		return copy_scalar(document, node, err);
	copy = node->kind == GRAFT_JSON_ARRAY ? graft_json_new_array(document, err)
					      : graft_json_new_object(document, err);
	return copy && copy_children(document, copy, node, err) == 0 ? copy : NULL;
}
