/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_list: adds a string to an array or removes it, preserving the array's layout: elements on
 * lines of their own stay there, and commas and comments stay with the elements that they follow.
 */
#include <string.h>

#include "base/cleanup.h"
#include "formats/toml/toml_tree.h"

struct element {
	const char *path, *string;
};

/* Returns 1 with the array, 0 if nothing exists there, or -1. */
static int find_array(const struct graft_toml *toml, const char *path, struct toml_node **ret_array,
		      struct graft_error *err)
{
	const char *rest;

	if (toml_follow(toml, path, ret_array, &rest, err) < 0)
		return -1;
	if (*rest)
		return 0;
	if ((*ret_array)->type != TOML_ARRAY || (*ret_array)->form != TOML_BY_VALUE)
		return graft_toml_refuse(toml, path, "a list of strings, [\"a\", \"b\"]", err);
	return 1;
}

/*
 * Returns the offset after the comma that follows byte `at` in the array, or 0. Commas in comments
 * are ignored.
 */
static size_t comma_behind(const struct graft_toml *toml, size_t at, const struct toml_node *array)
{
	for (; at < array->end; at++) {
		if (toml->text[at] == '#')
			at = toml_line_end(toml, at) - 1;
		else if (toml->text[at] == ',')
			return at + 1;
	}
	return 0;
}

/* Returns whether there are only blanks between the beginning of the line and `at`. */
static bool is_first_on_line(const struct graft_toml *toml, size_t at)
{
	size_t start = toml_line_start(toml, at);

	return start + strspn(toml->text + start, " \t") >= at;
}

/* Adds a line below the last element, with a comma if that one has a comma. */
static int append_line(struct graft_toml *toml, const struct toml_node *last, bool has_comma, const char *string,
		       struct graft_error *err)
{
	auto_buffer struct graft_buffer lines = { 0 };
	size_t start = toml_line_start(toml, last->start), blanks = strspn(toml->text + start, " \t");
	size_t end = toml_line_end(toml, last->end);

	/*
	 * Write the new comma, and the rest of its line, in the same step: the document would be
	 * invalid in between.
	 */
	if (!has_comma) {
		graft_buffer_char(&lines, ',');
		graft_buffer_add(&lines, toml->text + last->end, end - last->end);
	}
	graft_buffer_add(&lines, toml->text + start, blanks);
	graft_toml_quote(&lines, string);
	graft_buffer_string(&lines, has_comma ? "," : "");
	graft_buffer_string(&lines, toml_newline_of(toml));
	return toml_splice(toml, has_comma ? end : last->end, end, &lines, err);
}

static int append_array_element(struct graft_toml *toml, const struct toml_node *array, const char *string,
				struct graft_error *err)
{
	const struct toml_node *last = array->first;
	auto_buffer struct graft_buffer text = { 0 };
	size_t comma, at;

	while (last && last->next)
		last = last->next;
	comma = last ? comma_behind(toml, last->end, array) : 0;
	/* The bracket is below the last element, whose comma, if any, is on its own line. */
	if (last && is_first_on_line(toml, last->start) && toml_line_end(toml, last->end) < array->end &&
	    comma <= toml_line_end(toml, last->end))
		return append_line(toml, last, comma > 0, string, err);
	if (last)
		graft_buffer_string(&text, ", ");
	graft_toml_quote(&text, string);
	at = last ? last->end : array->start + 1;
	return toml_splice(toml, at, at, &text, err);
}

int graft_toml_append_string(struct graft_toml *toml, const char *path, const char *string, struct graft_error *err)
{
	struct toml_node *array;
	int rc = find_array(toml, path, &array, err);

	if (rc == 0)
		return graft_toml_set_strings(toml, path, &string, 1, err);
	return rc < 0 ? -1 : append_array_element(toml, array, string, err);
}

/*
 * Returns the bytes to remove with an element: its line if no other element is there, otherwise the
 * element and one comma. What is between the last element and that on a line before it stays, since
 * it may be a comment; so the comma stays, too.
 */
static void span_of(const struct graft_toml *toml, const struct toml_node *array, const struct toml_node *before,
		    const struct toml_node *node, size_t *ret_start, size_t *ret_end)
{
	size_t comma = comma_behind(toml, node->end, array), end = comma > 0 ? comma : node->end;
	size_t blanks = strspn(toml->text + end, " \t");
	bool alone = is_first_on_line(toml, node->start) && strchr("\r\n#", toml->text[end + blanks]);

	*ret_start = node->start;
	*ret_end = end;
	if (alone) {
		*ret_start = toml_line_start(toml, node->start);
		*ret_end = toml_line_end(toml, end);
	} else if (node->next) {
		*ret_end = node->next->start;
	} else if (before && !memchr(toml->text + before->end, '\n', node->start - before->end)) {
		*ret_start = before->end;
		*ret_end = node->end;
	}
}

static int remove_all(struct graft_toml *toml, const void *arg, struct graft_error *err)
{
	const struct graft_buffer nothing = { 0 };
	const struct element *element = arg;
	size_t length = strlen(element->string);

	for (;;) {
		struct toml_node *array;
		const struct toml_node *node, *before = NULL;
		size_t start, end;
		int rc = find_array(toml, element->path, &array, err);

		if (rc <= 0)
			return rc;
		for (node = array->first; node; before = node, node = node->next) {
			if (node->type == TOML_STRING && node->text.length == length &&
			    memcmp(node->text.bytes, element->string, length) == 0)
				break;
		}
		if (!node)
			return 0;
		span_of(toml, array, before, node, &start, &end);
		if (toml_splice(toml, start, end, &nothing, err) < 0)
			return -1;
	}
}

int graft_toml_remove_string(struct graft_toml *toml, const char *path, const char *string, struct graft_error *err)
{
	const struct element element = { path, string };

	return toml_edit_copy(toml, remove_all, &element, err);
}
