/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_json: writes a TOML value as JSON, with the type of every scalar, to compare two parsers.
 * Loses nothing but layout.
 */
#include "formats/toml/toml_tree.h"

static const char *const names[] = {
	[TOML_STRING] = "string",         [TOML_INTEGER] = "integer",
	[TOML_FLOAT] = "float",           [TOML_BOOL] = "bool",
	[TOML_DATETIME] = "datetime",     [TOML_DATETIME_LOCAL] = "datetime-local",
	[TOML_DATE_LOCAL] = "date-local", [TOML_TIME_LOCAL] = "time-local",
};

static void scalar_json(struct graft_buffer *out, const struct toml_node *node)
{
	graft_buffer_printf(out, "{\"type\": \"%s\", \"value\": ", names[node->type]);
	if (node->type == TOML_INTEGER)
		graft_buffer_printf(out, "\"%lld\"", (long long)node->integer);
	else if (node->type == TOML_BOOL)
		graft_buffer_string(out, node->integer ? "\"true\"" : "\"false\"");
	else
		toml_add_quoted(out, &node->text);
	graft_buffer_char(out, '}');
}

/* The depth limit of documents bounds the recursion. */
void toml_node_json(struct graft_buffer *out, const struct toml_node *node)
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
		toml_node_json(out, child);
	}
	graft_buffer_char(out, table ? '}' : ']');
}

int graft_toml_to_json(const struct graft_toml *toml, struct graft_buffer *out, struct graft_error *err)
{
	toml_node_json(out, toml->root);
	return graft_buffer_failed(out) ? graft_fail_memory(err) : 0;
}
