/* SPDX-License-Identifier: Apache-2.0 */
/* toml_json: a TOML value as JSON, every scalar tagged with its type, so that two readers can be compared. Loses nothing but layout. */
#include "formats/toml_tree.h"

static const char *const names[] = {
	[TOML_STRING] = "string",         [TOML_INTEGER] = "integer",
	[TOML_FLOAT] = "float",           [TOML_BOOL] = "bool",
	[TOML_DATETIME] = "datetime",     [TOML_DATETIME_LOCAL] = "datetime-local",
	[TOML_DATE_LOCAL] = "date-local", [TOML_TIME_LOCAL] = "time-local",
};

/* The text is valid UTF-8 and may hold NULs, which graft_json_quote() could not know. */
static void quote(struct graft_buffer *out, const struct toml_text *text)
{
	graft_buffer_char(out, '"');
	for (size_t i = 0; i < text->length; i++) {
		unsigned char c = (unsigned char)text->bytes[i];

		if (c < 0x20 || c == 0x7f) {
			graft_buffer_printf(out, "\\u%04x", c);
			continue;
		}
		if (c == '"' || c == '\\')
			graft_buffer_char(out, '\\');
		graft_buffer_char(out, (char)c);
	}
	graft_buffer_char(out, '"');
}

static void scalar_json(struct graft_buffer *out, const struct toml_node *node)
{
	graft_buffer_printf(out, "{\"type\": \"%s\", \"value\": ", names[node->type]);
	if (node->type == TOML_INTEGER)
		graft_buffer_printf(out, "\"%lld\"", (long long)node->integer);
	else if (node->type == TOML_BOOL)
		graft_buffer_string(out, node->integer ? "\"true\"" : "\"false\"");
	else
		quote(out, &node->text);
	graft_buffer_char(out, '}');
}

/* Recursion ends with the depth that a document may have. */
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
			quote(out, &child->key);
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
