/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_script: edits of a JSON document as text, for tables of tests and for a second program that knows what they should give. One edit a
 * line, its words set apart by tabs; a path leads from the root by names and indexes, "mounts/0/options", "" is the root:
 *
 *	make	DOTTED.PATH	object|array
 *	set	PATH	NAME	VALUE		key	PATH	NAME	VALUE
 *	append	PATH	VALUE			replace	PATH	VALUE
 *	remove	PATH				reorder	PATH	2,0,1
 *
 * VALUE is JSON; its numbers are whole.
 */
#ifndef GRAFT_TEST_JSON_SCRIPT_H
#define GRAFT_TEST_JSON_SCRIPT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/json/json_document.h"

static inline struct graft_json_node *json_script_find(const struct graft_json_document *document, const char *path)
{
	struct graft_json_node *node = graft_json_document_root(document);

	while (node && *path != '\0') {
		size_t length = strcspn(path, "/");
		struct graft_json_node *child = graft_json_node_first(node);

		if (graft_json_node_kind(node) == GRAFT_JSON_ARRAY) {
			for (long i = strtol(path, NULL, 10); child && i > 0; i--)
				child = graft_json_node_next(child);
		} else {
			while (child && (strncmp(graft_json_node_name(child), path, length) != 0 ||
					 graft_json_node_name(child)[length] != '\0'))
				child = graft_json_node_next(child);
		}
		node = child;
		path += length + (path[length] == '/');
	}
	return node;
}

static inline struct graft_json_node *json_script_new(struct graft_json_document *document,
						      const struct graft_json_node *like, struct graft_error *err)
{
	enum graft_json_kind kind = graft_json_node_kind(like);
	struct graft_json_node *node = NULL;
	uint64_t number;
	int64_t negative;

	if (kind == GRAFT_JSON_STRING)
		return graft_json_new_string(document, graft_json_node_string(like), err);
	if (kind == GRAFT_JSON_BOOL)
		return graft_json_new_bool(document, graft_json_node_is_true(like), err);
	if (kind == GRAFT_JSON_NUMBER && graft_json_node_u64(like, &number))
		return graft_json_new_u64(document, number, err);
	if (kind == GRAFT_JSON_NUMBER && graft_json_node_i64(like, &negative))
		return graft_json_new_i64(document, negative, err);
	if (kind == GRAFT_JSON_ARRAY)
		node = graft_json_new_array(document, err);
	if (kind == GRAFT_JSON_OBJECT)
		node = graft_json_new_object(document, err);
	for (const struct graft_json_node *child = graft_json_node_first(like); node && child;
	     child = graft_json_node_next(child)) {
		struct graft_json_node *made = json_script_new(document, child, err);

		if (!made || (kind == GRAFT_JSON_ARRAY
				  ? graft_json_append(document, node, made, err)
				  : graft_json_set_key(document, node, graft_json_node_name(child), made, err)) < 0)
			return NULL;
	}
	return node;
}

static inline int json_script_reorder(struct graft_json_document *document, struct graft_json_node *array, char *order,
				      struct graft_error *err)
{
	struct graft_json_node *nodes[256];
	size_t n = 0;

	for (char *word = order; word && n < 256; word = strchr(word, ',') ? strchr(word, ',') + 1 : NULL) {
		nodes[n] = graft_json_node_first(array);
		for (long i = strtol(word, NULL, 10); i > 0; i--)
			nodes[n] = graft_json_node_next(nodes[n]);
		n++;
	}
	return graft_json_reorder(document, array, nodes, n, err);
}

static inline int json_script_value(struct graft_json_document *document, const char *op, struct graft_json_node *node,
				    const char *name, const char *text, struct graft_error *err)
{
	auto_json_document struct graft_json_document *other = NULL;
	struct graft_json_node *value;

	if (graft_json_document_parse("VALUE", text, strlen(text), &other, err) < 0)
		return -1;
	value = json_script_new(document, graft_json_document_root(other), err);
	if (!value)
		return -1;
	if (strcmp(op, "set") == 0)
		return graft_json_set(document, node, name, value, err);
	if (strcmp(op, "key") == 0)
		return graft_json_set_key(document, node, name, value, err);
	if (strcmp(op, "append") == 0)
		return graft_json_append(document, node, value, err);
	return graft_json_replace(document, node, value, err);
}

/* One line, which is cut into its words. */
static inline int json_script_line(struct graft_json_document *document, char *line, struct graft_error *err)
{
	char *words[4] = { line, NULL, NULL, NULL };
	struct graft_json_node *node;

	for (int i = 1; i < 4 && words[i - 1] && strchr(words[i - 1], '\t'); i++) {
		words[i] = strchr(words[i - 1], '\t') + 1;
		words[i][-1] = '\0';
	}
	if (!words[1])
		return graft_fail(err, GRAFT_INVALID, 0, "no path: %s", line);
	if (strcmp(words[0], "make") == 0 && words[2])
		return graft_json_make(document, words[1],
				       strcmp(words[2], "array") == 0 ? GRAFT_JSON_ARRAY : GRAFT_JSON_OBJECT, err)
			   ? 0
			   : -1;
	node = json_script_find(document, words[1]);
	if (!node)
		return graft_fail(err, GRAFT_INVALID, 0, "no such path: %s", words[1]);
	if (strcmp(words[0], "remove") == 0)
		graft_json_remove(document, node);
	else if (strcmp(words[0], "reorder") == 0)
		return json_script_reorder(document, node, words[2], err);
	else
		return json_script_value(document, words[0], node, words[2], words[3] ? words[3] : words[2], err);
	return 0;
}

/* All lines of a script. */
static inline int json_script_run(struct graft_json_document *document, const char *script, struct graft_error *err)
{
	char *copy = strdup(script), *line = copy;
	int rc = copy ? 0 : graft_fail_memory(err);

	while (rc == 0 && line && *line != '\0') {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		rc = json_script_line(document, line, err);
		line = end ? end + 1 : NULL;
	}
	free(copy);
	return rc;
}

#endif
