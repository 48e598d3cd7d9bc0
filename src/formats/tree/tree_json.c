/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_json: makes values from a JSON text, using the strict JSON parser, and walks values of
 * either kind. The parser's tree of nodes is not copied: a view is made of each node that is
 * visited.
 */
#include "formats/json/json_document.h"
#include "formats/tree/tree.h"

void graft_tree_builder_done(struct graft_tree_builder *builder)
{
	graft_json_document_free(builder->document);
	builder->document = NULL;
	builder->arena = graft_arena_free(builder->arena);
}

unsigned int graft_tree_line(const struct graft_tree_value *value)
{
	unsigned int line = value->line, column;

	if (value->node)
		graft_json_node_position(value->node, &line, &column);
	return line;
}

unsigned int graft_tree_column(const struct graft_tree_value *value)
{
	unsigned int line, column = value->column;

	if (value->node)
		graft_json_node_position(value->node, &line, &column);
	return column;
}

static void read_json_number(const struct graft_json_node *node, struct graft_tree_value *view)
{
	int64_t number;

	view->kind = GRAFT_TREE_INTEGER;
	if (graft_json_node_u64(node, &view->magnitude))
		return;
	if (graft_json_node_i64(node, &number)) {
		view->negative = true;
		view->magnitude = 0 - (uint64_t)number;
	} else {
		view->kind = GRAFT_TREE_FRACTION;
	}
}

static void read_content(const struct graft_json_node *node, struct graft_tree_value *view)
{
	switch (graft_json_node_kind(node)) {
	case GRAFT_JSON_ABSENT:
	case GRAFT_JSON_NULL:
		view->kind = GRAFT_TREE_NULL;
		break;
	case GRAFT_JSON_BOOL:
		view->kind = GRAFT_TREE_BOOL;
		view->magnitude = graft_json_node_is_true(node);
		view->text = view->magnitude != 0 ? "true" : "false";
		break;
	case GRAFT_JSON_NUMBER:
		read_json_number(node, view);
		break;
	case GRAFT_JSON_STRING:
		view->kind = GRAFT_TREE_STRING;
		view->text = graft_json_node_string(node);
		break;
	case GRAFT_JSON_ARRAY:
		view->kind = GRAFT_TREE_LIST;
		break;
	case GRAFT_JSON_OBJECT:
		view->kind = GRAFT_TREE_MAP;
		break;
	}
}

static const struct graft_tree_value *view_json_node(const struct graft_json_node *node, struct graft_tree_value *view)
{
	if (!node)
		return NULL;
	*view = (struct graft_tree_value){ .key = graft_json_node_name(node), .node = node };
	read_content(node, view);
	return view;
}

const struct graft_tree_value *graft_tree_first(const struct graft_tree_value *value, struct graft_tree_value *view)
{
	return value->node ? view_json_node(graft_json_node_first(value->node), view) : value->first;
}

const struct graft_tree_value *graft_tree_next(const struct graft_tree_value *item, struct graft_tree_value *view)
{
	return item->node ? view_json_node(graft_json_node_next(item->node), view) : item->next;
}

size_t graft_tree_count(const struct graft_tree_value *value)
{
	size_t n = 0;

	if (value->node)
		return graft_json_node_count(value->node);
	for (const struct graft_tree_value *item = value->first; item; item = item->next)
		n++;
	return n;
}

int graft_tree_from_json(struct graft_tree_builder *builder, const char *text, size_t length,
			 const struct graft_tree_value **ret_root)
{
	if (graft_json_document_parse_into(builder->file, text, length, builder->texts, &builder->document,
					   builder->err) < 0)
		return -1;
	*ret_root = view_json_node(graft_json_document_root(builder->document), &builder->root);
	return 0;
}
