/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_json: a JSON text as a tree of values, through the reader that is strict about JSON. Keys and texts are the document's, which outlives the tree. */
#include <string.h>

#include "formats/cdi_tree.h"
#include "formats/json_document.h"

static int read_node(struct cdi_builder *builder, const struct graft_json_node *node, unsigned int depth,
		     struct cdi_value **ret_value);

void cdi_builder_done(struct cdi_builder *builder)
{
	graft_json_document_free(builder->document);
	builder->document = NULL;
}

unsigned int cdi_line(const struct cdi_value *value)
{
	unsigned int line = value->line, column;

	if (value->node)
		graft_json_node_position(value->node, &line, &column);
	return line;
}

unsigned int cdi_column(const struct cdi_value *value)
{
	unsigned int line, column = value->column;

	if (value->node)
		graft_json_node_position(value->node, &line, &column);
	return column;
}

static int fail_node(const struct cdi_builder *builder, const struct graft_json_node *node, const char *what)
{
	unsigned int line, column;

	graft_json_node_position(node, &line, &column);
	return cdi_fail_at(builder->file, line, column, builder->err, "%s", what);
}

static int read_children(struct cdi_builder *builder, const struct graft_json_node *node, unsigned int depth,
			 struct cdi_value *value)
{
	const struct cdi_value **end = &value->first;

	if (depth >= CDI_DEPTH_MAX)
		return fail_node(builder, node, "nested too deeply");
	for (const struct graft_json_node *at = graft_json_node_first(node); at; at = graft_json_node_next(at)) {
		struct cdi_value *child = NULL;

		if (read_node(builder, at, depth + 1, &child) < 0)
			return -1;
		*end = child;
		end = &child->next;
		value->n++;
	}
	return 0;
}

static void read_number(const struct graft_json_node *node, struct cdi_value *value)
{
	int64_t number;

	value->kind = CDI_INTEGER;
	if (graft_json_node_u64(node, &value->magnitude))
		return;
	if (graft_json_node_i64(node, &number)) {
		value->negative = true;
		value->magnitude = 0 - (uint64_t)number;
	} else {
		value->kind = CDI_FRACTION;
	}
}

static int read_string(struct cdi_builder *builder, const struct graft_json_node *node, struct cdi_value *value)
{
	const char *text = graft_json_node_string(node);

	if (!text)
		return fail_node(builder, node, "a text must not hold a NUL character");
	value->kind = CDI_STRING;
	value->text = text;
	return 0;
}

static int read_content(struct cdi_builder *builder, const struct graft_json_node *node, unsigned int depth,
			struct cdi_value *value)
{
	switch (graft_json_node_kind(node)) {
	case GRAFT_JSON_ABSENT:
	case GRAFT_JSON_NULL:
		value->kind = CDI_NULL;
		return 0;
	case GRAFT_JSON_BOOL:
		value->kind = CDI_BOOL;
		value->magnitude = graft_json_node_is_true(node);
		value->text = value->magnitude != 0 ? "true" : "false";
		return 0;
	case GRAFT_JSON_NUMBER:
		read_number(node, value);
		return 0;
	case GRAFT_JSON_STRING:
		return read_string(builder, node, value);
	case GRAFT_JSON_ARRAY:
		value->kind = CDI_LIST;
		return read_children(builder, node, depth, value);
	case GRAFT_JSON_OBJECT:
		value->kind = CDI_MAP;
		return read_children(builder, node, depth, value);
	}
	return 0;
}

static int read_node(struct cdi_builder *builder, const struct graft_json_node *node, unsigned int depth,
		     struct cdi_value **ret_value)
{
	struct cdi_value *value = graft_arena_alloc(builder->arena, sizeof(*value));

	if (!value)
		return graft_fail_memory(builder->err);
	builder->n_values++;
	value->node = node;
	value->key = graft_json_node_name(node);
	*ret_value = value;
	return read_content(builder, node, depth, value);
}

int cdi_tree_from_json(struct cdi_builder *builder, const char *text, size_t length, const struct cdi_value **ret_root)
{
	struct cdi_value *root = NULL;

	if (graft_json_document_parse(builder->file, text, length, &builder->document, builder->err) < 0)
		return -1;
	if (read_node(builder, graft_json_document_root(builder->document), 0, &root) < 0)
		return -1;
	*ret_root = root;
	return 0;
}
