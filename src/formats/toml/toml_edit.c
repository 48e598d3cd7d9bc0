/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_edit: changes a document by cutting and pasting bytes of its text. Each change makes a new
 * text, which is parsed before it replaces the old one. Knows where things are, not what they mean.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/toml/toml_tree.h"

#define NONE SIZE_MAX

int toml_splice(struct graft_toml *toml, size_t start, size_t end, const struct graft_buffer *with,
		struct graft_error *err)
{
	struct graft_toml *edited = NULL, old = *toml;
	auto_buffer struct graft_buffer text = { 0 };
	int rc;

	graft_buffer_add(&text, toml->text, start);
	graft_buffer_add(&text, graft_buffer_text(with), with->length);
	graft_buffer_add(&text, toml->text + end, toml->length - end);
	if (graft_buffer_failed(with) || graft_buffer_failed(&text))
		rc = graft_fail_memory(err);
	else
		rc = graft_toml_parse(toml->name, graft_buffer_text(&text), text.length, &edited, err);
	if (rc < 0)
		return graft_wrap(err, "editing");
	*toml = *edited;
	*edited = old;
	graft_toml_free(edited);
	return 0;
}

size_t toml_line_start(const struct graft_toml *toml, size_t at)
{
	while (at > 0 && toml->text[at - 1] != '\n')
		at--;
	/* A byte order mark stays in front of everything. */
	return at == 0 && toml->length >= 3 && memcmp(toml->text, "\xef\xbb\xbf", 3) == 0 ? 3 : at;
}

size_t toml_line_end(const struct graft_toml *toml, size_t at)
{
	const char *newline = memchr(toml->text + at, '\n', toml->length - at);

	return newline ? (size_t)(newline - toml->text) + 1 : toml->length;
}

const char *toml_newline_of(const struct graft_toml *toml)
{
	const char *newline = memchr(toml->text, '\n', toml->length);

	return newline && newline > toml->text && newline[-1] == '\r' ? "\r\n" : "\n";
}

/* Returns the first byte of a line that is not a blank, '\n' if it is empty. */
static char line_kind(const struct graft_toml *toml, size_t start)
{
	while (start < toml->length && strchr(" \t\r", toml->text[start]) && toml->text[start])
		start++;
	if (start == toml->length)
		return '\n';
	return toml->text[start];
}

/*
 * Returns where the section between `from` (after its last entry) and `to` (the line of the next
 * header, or the end) really ends: before the last block of comments, if an empty line separates
 * that.
 */
static size_t section_end(const struct graft_toml *toml, size_t from, size_t to)
{
	size_t at = to;

	while (at > from) {
		size_t previous = toml_line_start(toml, at - 1);
		char kind = line_kind(toml, previous);

		if (previous < from || previous >= at || kind != '#')
			return kind == '\n' ? at : to;
		at = previous;
	}
	return to;
}

/* Returns the index of a table's header, NONE for the root. */
static size_t find_table_header(const struct graft_toml *toml, const struct toml_node *table)
{
	for (size_t i = 0; i < toml->n_entries; i++) {
		if (toml->entries[i].header && toml->entries[i].node == table)
			return i;
	}
	return NONE;
}

static size_t next_header(const struct graft_toml *toml, size_t i)
{
	while (i < toml->n_entries && !toml->entries[i].header)
		i++;
	return i;
}

/*
 * Returns the last entry with lines of its own in a section, including its header; NONE for a root
 * without keys.
 */
static size_t last_in_section(const struct graft_toml *toml, size_t header)
{
	size_t i = next_header(toml, header == NONE ? 0 : header + 1);

	while (i > 0 && toml->entries[i - 1].inside)
		i--;
	return i == 0 ? NONE : i - 1;
}

void toml_add_quoted(struct graft_buffer *out, const struct toml_text *text)
{
	graft_buffer_char(out, '"');
	for (size_t i = 0; i < text->length; i++) {
		unsigned char c = (unsigned char)text->bytes[i];

		if (c < 0x20 || c == 0x7f)
			graft_buffer_printf(out, "\\u%04X", c);
		else if (c == '"' || c == '\\')
			graft_buffer_printf(out, "\\%c", c);
		else
			graft_buffer_char(out, (char)c);
	}
	graft_buffer_char(out, '"');
}

void graft_toml_quote(struct graft_buffer *out, const char *string)
{
	const struct toml_text text = { string, strlen(string) };

	toml_add_quoted(out, &text);
}

void toml_add_key(struct graft_buffer *out, const struct toml_text *key)
{
	bool bare = key->length > 0;

	for (size_t i = 0; i < key->length; i++)
		bare = bare && toml_is_bare(key->bytes[i]);
	if (bare) {
		graft_buffer_add(out, key->bytes, key->length);
		return;
	}
	toml_add_quoted(out, key);
}

/*
 * Appends "a.b." for the tables from below `top` down to `table`. The depth limit of documents
 * bounds the recursion.
 */
static void add_prefix(struct graft_buffer *out, const struct toml_node *top, const struct toml_node *table)
{
	if (table == top)
		return;
	add_prefix(out, top, table->parent);
	toml_add_key(out, &table->key);
	graft_buffer_char(out, '.');
}

static int insert_inline(struct graft_toml *toml, const struct toml_node *table, const struct graft_buffer *line,
			 struct graft_error *err)
{
	auto_buffer struct graft_buffer out = { 0 };
	size_t start = table->start + 1, end = table->end - 1;

	graft_buffer_string(&out, " ");
	for (size_t i = 0; i < toml->n_entries; i++) {
		if (toml->entries[i].inside == table) {
			start = end = toml->entries[i].end;
			out.length = 0;
		}
	}
	if (start == end && toml->text[start - 1] != '{')
		graft_buffer_string(&out, ", ");
	graft_buffer_add(&out, graft_buffer_text(line), line->length);
	if (toml->text[start - 1] == '{')
		graft_buffer_string(&out, " ");
	return toml_splice(toml, start, end, &out, err);
}

/* Inserts a line after the entries of the section, indented like the last one. */
static int insert_line(struct graft_toml *toml, size_t header, const struct graft_buffer *line, struct graft_error *err)
{
	auto_buffer struct graft_buffer out = { 0 };
	size_t last = last_in_section(toml, header), at, next = next_header(toml, 0);

	if (last == NONE) {
		size_t to = next < toml->n_entries ? toml_line_start(toml, toml->entries[next].start) : toml->length;

		at = section_end(toml, toml_line_start(toml, 0), to);
	} else {
		at = toml_line_end(toml, toml->entries[last].end);
	}
	if (at > 0 && toml->text[at - 1] != '\n' && at != toml_line_start(toml, 0))
		graft_buffer_string(&out, toml_newline_of(toml));
	if (last != NONE) {
		size_t start = toml_line_start(toml, toml->entries[last].start);

		graft_buffer_add(&out, toml->text + start, toml->entries[last].start - start);
	}
	graft_buffer_add(&out, graft_buffer_text(line), line->length);
	graft_buffer_string(&out, toml_newline_of(toml));
	return toml_splice(toml, at, at, &out, err);
}

int toml_append(struct graft_toml *toml, const struct graft_buffer *lines, struct graft_error *err)
{
	auto_buffer struct graft_buffer out = { 0 };
	const char *newline = toml_newline_of(toml);
	size_t bom = toml_line_start(toml, 0), n = toml->length;

	if (n > bom && toml->text[n - 1] != '\n')
		graft_buffer_string(&out, newline);
	if (n > bom && (toml->text[n - 1] != '\n' || line_kind(toml, toml_line_start(toml, n - 1)) != '\n'))
		graft_buffer_string(&out, newline);
	graft_buffer_add(&out, graft_buffer_text(lines), lines->length);
	return graft_buffer_failed(lines) ? graft_fail_memory(err) : toml_splice(toml, n, n, &out, err);
}

/* Returns where the last part of a dotted key begins. The key was checked before. */
static size_t last_part(const char *path)
{
	size_t start = 0;
	char quote = 0;

	for (size_t i = 0; path[i]; i++) {
		if (quote == '"' && path[i] == '\\')
			i++;
		else if (quote && path[i] == quote)
			quote = 0;
		else if (quote)
			continue;
		else if (path[i] == '"' || path[i] == '\'')
			quote = path[i];
		else if (path[i] == '.')
			start = i + 1;
	}
	return start;
}

/* Adds a line to the inline table, or to the section, that `table` belongs to. */
static int insert_at_home(struct graft_toml *toml, const struct toml_node *home, const struct toml_node *table,
			  const char *rest, const char *value, struct graft_error *err)
{
	auto_buffer struct graft_buffer line = { 0 };

	add_prefix(&line, home, table);
	graft_buffer_printf(&line, "%s = %s", rest, value);
	if (graft_buffer_failed(&line))
		return graft_fail_memory(err);
	return home->form == TOML_BY_VALUE ? insert_inline(toml, home, &line, err)
					   : insert_line(toml, find_table_header(toml, home), &line, err);
}

/* `rest` is what is missing below `table`, as spelled by the caller. */
static int insert_toml_value(struct graft_toml *toml, const struct toml_node *table, const char *rest,
			     const char *value, struct graft_error *err)
{
	auto_buffer struct graft_buffer lines = { 0 };
	const struct toml_node *home = table;
	const char *newline = toml_newline_of(toml);
	size_t last = last_part(rest);

	while (home->form == TOML_BY_KEY)
		home = home->parent;
	if (home->form == TOML_BY_VALUE || (last == 0 && home->form == TOML_BY_HEADER))
		return insert_at_home(toml, home, table, rest, value, err);
	/* A new table, [a.b], without the dot after the last name. */
	graft_buffer_char(&lines, '[');
	add_prefix(&lines, toml->root, table);
	graft_buffer_add(&lines, rest, last);
	if (lines.length > 1)
		lines.length--;
	graft_buffer_printf(&lines, "]%s%s = %s%s", newline, rest + last + strspn(rest + last, " \t"), value, newline);
	return toml_append(toml, &lines, err);
}

/* Parses "v = VALUE", to make sure that it is a single value and nothing else. */
static int parse_single(const char *value, struct graft_toml **ret_toml, struct graft_error *err)
{
	auto_toml struct graft_toml *toml = NULL;
	auto_buffer struct graft_buffer text = { 0 };
	struct graft_error why = { 0 };
	int rc;

	graft_buffer_printf(&text, "v = %s", value);
	if (graft_buffer_failed(&text))
		return graft_fail_memory(err);
	rc = graft_toml_parse("value", text.bytes, text.length, &toml, &why);
	if (rc < 0 && why.status == GRAFT_NO_MEMORY)
		return graft_fail_memory(err);
	if (rc < 0 || toml->root->first != toml->root->last || toml->root->first->end != toml->length)
		return graft_fail(err, GRAFT_INVALID, 0, "'%s' is not a single TOML value", value);
	*ret_toml = TAKE_PTR(toml);
	return 0;
}

static int replace_toml_value(struct graft_toml *toml, const struct toml_node *node, const struct graft_toml *single,
			      const char *value, struct graft_error *err)
{
	auto_buffer struct graft_buffer text = { 0 };

	if (toml_is_equal(toml, node, single, single->root->first))
		return 0;
	graft_buffer_string(&text, value);
	return toml_splice(toml, node->start, node->end, &text, err);
}

int graft_toml_set(struct graft_toml *toml, const char *path, const char *value, struct graft_error *err)
{
	auto_toml struct graft_toml *single = NULL;
	struct toml_node *node;
	const char *rest;

	if (toml_follow(toml, path, &node, &rest, err) < 0 || parse_single(value, &single, err) < 0)
		return -1;
	if (*rest && node->type != TOML_TABLE)
		return graft_fail(err, GRAFT_INVALID, 0, "%s: '%s' cannot be set: a part of it is not a table",
				  toml->name, path);
	if (*rest)
		return insert_toml_value(toml, node, rest, value, err);
	if (node->form != TOML_BY_VALUE)
		return graft_fail(err, GRAFT_INVALID, 0, "%s: '%s' is a table, not a value", toml->name, path);
	return replace_toml_value(toml, node, single, value, err);
}

static int set_buffer(struct graft_toml *toml, const char *path, const struct graft_buffer *value,
		      struct graft_error *err)
{
	return graft_buffer_failed(value) ? graft_fail_memory(err)
					  : graft_toml_set(toml, path, graft_buffer_text(value), err);
}

int graft_toml_set_string(struct graft_toml *toml, const char *path, const char *string, struct graft_error *err)
{
	auto_buffer struct graft_buffer value = { 0 };

	graft_toml_quote(&value, string);
	return set_buffer(toml, path, &value, err);
}

int graft_toml_set_bool(struct graft_toml *toml, const char *path, bool value, struct graft_error *err)
{
	return graft_toml_set(toml, path, value ? "true" : "false", err);
}

int graft_toml_set_integer(struct graft_toml *toml, const char *path, int64_t value, struct graft_error *err)
{
	auto_buffer struct graft_buffer text = { 0 };

	graft_buffer_printf(&text, "%lld", (long long)value);
	return set_buffer(toml, path, &text, err);
}

int graft_toml_set_strings(struct graft_toml *toml, const char *path, const char *const *strings, size_t n,
			   struct graft_error *err)
{
	auto_buffer struct graft_buffer value = { 0 };

	graft_buffer_char(&value, '[');
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			graft_buffer_string(&value, ", ");
		graft_toml_quote(&value, strings[i]);
	}
	graft_buffer_char(&value, ']');
	return set_buffer(toml, path, &value, err);
}

static bool is_below(const struct toml_node *node, const struct toml_node *top)
{
	while (node && node != top)
		node = node->parent;
	return node != NULL;
}

/* The bytes of an entry of an inline table, with one comma. */
static void inline_span(const struct graft_toml *toml, size_t number, size_t *start, size_t *end)
{
	const struct toml_node *inside = toml->entries[number].inside;
	size_t before = NONE, behind = NONE;

	for (size_t i = 0; i < toml->n_entries; i++) {
		if (toml->entries[i].inside != inside || i == number)
			continue;
		if (i < number)
			before = i;
		else if (behind == NONE)
			behind = i;
	}
	*start = toml->entries[number].start;
	*end = toml->entries[number].end;
	if (behind != NONE)
		*end = toml->entries[behind].start;
	else if (before != NONE)
		*start = toml->entries[before].end;
}

/* The bytes of a line with its comment, or of a section up to the next header's own comments. */
static void line_span(const struct graft_toml *toml, size_t number, size_t *start, size_t *end)
{
	const struct toml_entry *entry = &toml->entries[number];

	*start = toml_line_start(toml, entry->start);
	*end = toml_line_end(toml, entry->end);
	if (entry->header) {
		size_t next = next_header(toml, number + 1), last = last_in_section(toml, number);
		size_t from = toml_line_end(toml, toml->entries[last].end);
		size_t to = next < toml->n_entries ? toml_line_start(toml, toml->entries[next].start) : toml->length;

		*end = section_end(toml, from, to);
	}
}

/* Removes one entry at a time, the last one first, so that those before it stay where they are. */
static int remove_entries(struct graft_toml *toml, const void *path, struct graft_error *err)
{
	const struct graft_buffer nothing = { 0 };

	for (;;) {
		struct toml_node *node;
		const char *rest;
		size_t i, start, end;

		if (toml_follow(toml, path, &node, &rest, err) < 0)
			return -1;
		i = toml->n_entries;
		while (!*rest && i > 0 && !is_below(toml->entries[i - 1].node, node))
			i--;
		if (*rest || i == 0)
			return 0;
		/*
		 * For an entry inside of a value that is removed as a whole, use the value's own
		 * entry, which comes before it.
		 */
		while (toml->entries[i - 1].inside && is_below(toml->entries[i - 1].inside, node))
			i--;
		if (toml->entries[i - 1].inside)
			inline_span(toml, i - 1, &start, &end);
		else
			line_span(toml, i - 1, &start, &end);
		if (toml_splice(toml, start, end, &nothing, err) < 0)
			return -1;
	}
}

int toml_edit_copy(struct graft_toml *toml,
		   int (*edit)(struct graft_toml *copy, const void *arg, struct graft_error *err), const void *arg,
		   struct graft_error *err)
{
	auto_toml struct graft_toml *copy = NULL;
	struct graft_toml swap;

	if (graft_toml_parse(toml->name, toml->text, toml->length, &copy, err) < 0 || edit(copy, arg, err) < 0)
		return -1;
	swap = *toml;
	*toml = *copy;
	*copy = swap;
	return 0;
}

int graft_toml_remove(struct graft_toml *toml, const char *path, struct graft_error *err)
{
	return toml_edit_copy(toml, remove_entries, path, err);
}
