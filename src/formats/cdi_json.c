/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_json: a JSON text as values, through the reader that is strict about JSON, and the walk through values of either kind. Its tree of nodes is not copied:
 * a view is made of each node that is looked at.
 */
#include "formats/cdi_tree.h"
#include "formats/json_document.h"

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

static void read_number(const struct graft_json_node *node, struct cdi_value *view)
{
	int64_t number;

	view->kind = CDI_INTEGER;
	if (graft_json_node_u64(node, &view->magnitude))
		return;
	if (graft_json_node_i64(node, &number)) {
		view->negative = true;
		view->magnitude = 0 - (uint64_t)number;
	} else {
		view->kind = CDI_FRACTION;
	}
}

static void read_content(const struct graft_json_node *node, struct cdi_value *view)
{
	switch (graft_json_node_kind(node)) {
	case GRAFT_JSON_ABSENT:
	case GRAFT_JSON_NULL:
		view->kind = CDI_NULL;
		break;
	case GRAFT_JSON_BOOL:
		view->kind = CDI_BOOL;
		view->magnitude = graft_json_node_is_true(node);
		view->text = view->magnitude != 0 ? "true" : "false";
		break;
	case GRAFT_JSON_NUMBER:
		read_number(node, view);
		break;
	case GRAFT_JSON_STRING:
		view->kind = CDI_STRING;
		view->text = graft_json_node_string(node);
		break;
	case GRAFT_JSON_ARRAY:
		view->kind = CDI_LIST;
		break;
	case GRAFT_JSON_OBJECT:
		view->kind = CDI_MAP;
		break;
	}
}

static const struct cdi_value *look(const struct graft_json_node *node, struct cdi_value *view)
{
	if (!node)
		return NULL;
	*view = (struct cdi_value){ .key = graft_json_node_name(node), .node = node };
	read_content(node, view);
	return view;
}

const struct cdi_value *cdi_first(const struct cdi_value *value, struct cdi_value *view)
{
	return value->node ? look(graft_json_node_first(value->node), view) : value->first;
}

const struct cdi_value *cdi_next(const struct cdi_value *item, struct cdi_value *view)
{
	return item->node ? look(graft_json_node_next(item->node), view) : item->next;
}

size_t cdi_count(const struct cdi_value *value)
{
	size_t n = 0;

	if (value->node)
		return graft_json_node_count(value->node);
	for (const struct cdi_value *item = value->first; item; item = item->next)
		n++;
	return n;
}

int cdi_tree_from_json(struct cdi_builder *builder, const char *text, size_t length, const struct cdi_value **ret_root)
{
	if (graft_json_document_parse_into(builder->file, text, length, builder->texts, &builder->document,
					   builder->err) < 0)
		return -1;
	*ret_root = look(graft_json_document_root(builder->document), &builder->root);
	return 0;
}
