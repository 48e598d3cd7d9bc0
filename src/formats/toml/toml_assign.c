/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_assign: compares values of two documents, and copies them from one to the other with as few
 * edits as possible. Does not know how an edit is made (toml_edit.c).
 */
#include <string.h>

#include "base/cleanup.h"
#include "formats/toml/toml_tree.h"

static bool is_equal_table(const struct graft_toml *toml, const struct toml_node *node,
			   const struct graft_toml *other_toml, const struct toml_node *other)
{
	size_t n = 0, n_other = 0;

	for (const struct toml_node *child = other->first; child; child = child->next)
		n_other++;
	for (const struct toml_node *child = node->first; child; child = child->next, n++) {
		const struct toml_node *twin = toml_find(other_toml, other, &child->key);

		if (!twin || !toml_is_equal(toml, child, other_toml, twin))
			return false;
	}
	return n == n_other;
}

static bool is_equal_array(const struct graft_toml *toml, const struct toml_node *node,
			   const struct graft_toml *other_toml, const struct toml_node *other)
{
	const struct toml_node *a = node->first, *b = other->first;

	while (a && b && toml_is_equal(toml, a, other_toml, b)) {
		a = a->next;
		b = b->next;
	}
	return !a && !b;
}

/* The depth limit of documents bounds the recursion. */
bool toml_is_equal(const struct graft_toml *toml, const struct toml_node *node, const struct graft_toml *other_toml,
		   const struct toml_node *other)
{
	if (node->type != other->type)
		return false;
	if (node->type == TOML_TABLE)
		return is_equal_table(toml, node, other_toml, other);
	if (node->type == TOML_ARRAY)
		return is_equal_array(toml, node, other_toml, other);
	if (node->type == TOML_INTEGER || node->type == TOML_BOOL)
		return node->integer == other->integer;
	return node->text.length == other->text.length &&
	       memcmp(node->text.bytes, other->text.bytes, node->text.length) == 0;
}

/*
 * Returns the node at `path` (NULL: the root), or NULL if it does not exist, `path` is not a key,
 * or memory is exhausted.
 */
static struct toml_node *find_at(const struct graft_toml *toml, const char *path)
{
	struct toml_node *node = toml->root;
	const char *rest = "";

	if (path && toml_follow(toml, path, &node, &rest, NULL) < 0)
		return NULL;
	return *rest ? NULL : node;
}

bool graft_toml_is_same(const struct graft_toml *toml, const struct graft_toml *other, const char *path)
{
	const struct toml_node *node = find_at(toml, path), *twin = find_at(other, path);

	return node && twin ? toml_is_equal(toml, node, other, twin) : !node && !twin;
}

int graft_toml_get_kind(const struct graft_toml *toml, const char *path, enum graft_toml_kind *ret_kind,
			struct graft_error *err)
{
	struct toml_node *node;
	const char *rest;

	if (toml_follow(toml, path, &node, &rest, err) < 0)
		return -1;
	*ret_kind = *rest ? GRAFT_TOML_ABSENT : node->type == TOML_TABLE ? GRAFT_TOML_TABLE : GRAFT_TOML_VALUE;
	return 0;
}

int graft_toml_get_names(const struct graft_toml *toml, const char *path, struct graft_arena *arena,
			 const char ***ret_names, size_t *ret_n, struct graft_error *err)
{
	struct toml_node *table = toml->root;
	const char *rest = "";

	*ret_names = NULL;
	*ret_n = 0;
	if (path && toml_follow(toml, path, &table, &rest, err) < 0)
		return -1;
	if (*rest)
		table = NULL;
	if (table && table->type != TOML_TABLE)
		return graft_toml_refuse(toml, path, "a table", err);
	for (const struct toml_node *child = table ? table->first : NULL; child; child = child->next) {
		if (memchr(child->key.bytes, '\0', child->key.length))
			return graft_toml_refuse(toml, path, "names without NUL", err);
		if (!graft_arena_push_string(arena, ret_names, ret_n, child->key.bytes))
			return graft_fail_memory(err);
	}
	return 0;
}

static void add_name(struct graft_buffer *path, const struct toml_text *name)
{
	if (path->length > 0)
		graft_buffer_char(path, '.');
	toml_add_key(path, name);
}

void graft_toml_add_name(struct graft_buffer *path, const char *name)
{
	const struct toml_text text = { name, strlen(name) };

	add_name(path, &text);
}

/* Restores a path to its previous length. */
static void shorten(struct graft_buffer *path, size_t length)
{
	if (!path->bytes)
		return;
	path->length = length;
	path->bytes[length] = '\0';
}

/* Returns whether it has lines of its own: a table, or an array of tables defined by headers. */
static bool has_section(const struct toml_node *node)
{
	return node->form != TOML_BY_VALUE;
}

static void add_toml_value(struct graft_buffer *out, const struct graft_toml *toml, const struct toml_node *node);

/* Writes it on one line, for use inside of an inline table. */
static void add_inline(struct graft_buffer *out, const struct graft_toml *toml, const struct toml_node *node)
{
	bool table = node->type == TOML_TABLE;

	graft_buffer_char(out, table ? '{' : '[');
	for (const struct toml_node *child = node->first; child; child = child->next) {
		graft_buffer_string(out, child == node->first ? (table ? " " : "") : ", ");
		if (table) {
			toml_add_key(out, &child->key);
			graft_buffer_string(out, " = ");
		}
		add_toml_value(out, toml, child);
	}
	graft_buffer_string(out, table && node->first ? " }" : table ? "}" : "]");
}

/* Copies the spelling of a value, if it has one: tables and arrays with sections do not. */
static void add_toml_value(struct graft_buffer *out, const struct graft_toml *toml, const struct toml_node *node)
{
	if (has_section(node))
		add_inline(out, toml, node);
	else
		graft_buffer_add(out, toml->text + node->start, node->end - node->start);
}

struct section_writer {
	struct graft_buffer *out, *path;
	const struct graft_toml *from;
	const char *newline;
};

static void add_section(const struct section_writer *w, const struct toml_node *node, bool is_element)
{
	size_t length = w->path->length;
	bool has_values = false, has_sections = false;

	for (const struct toml_node *child = node->first; child; child = child->next) {
		has_values = has_values || !has_section(child);
		has_sections = has_sections || has_section(child);
	}
	if (has_values || !has_sections || is_element) {
		if (w->out->length > 0)
			graft_buffer_string(w->out, w->newline);
		graft_buffer_printf(w->out, is_element ? "[[%s]]%s" : "[%s]%s", graft_buffer_text(w->path), w->newline);
	}
	for (const struct toml_node *child = node->first; child; child = child->next) {
		if (has_section(child))
			continue;
		toml_add_key(w->out, &child->key);
		graft_buffer_string(w->out, " = ");
		add_toml_value(w->out, w->from, child);
		graft_buffer_string(w->out, w->newline);
	}
	for (const struct toml_node *child = node->first; child; child = child->next) {
		if (!has_section(child))
			continue;
		add_name(w->path, &child->key);
		if (child->type == TOML_TABLE)
			add_section(w, child, false);
		for (const struct toml_node *item = child->first; item && child->type == TOML_ARRAY; item = item->next)
			add_section(w, item, true);
		shorten(w->path, length);
	}
}

static int append_sections(struct graft_toml *toml, struct graft_buffer *path, const struct graft_toml *from,
			   const struct toml_node *node, struct graft_error *err)
{
	auto_buffer struct graft_buffer out = { 0 };
	const struct section_writer w = { &out, path, from, toml_newline_of(toml) };

	if (node->type == TOML_TABLE)
		add_section(&w, node, false);
	for (const struct toml_node *item = node->first; item && node->type == TOML_ARRAY; item = item->next)
		add_section(&w, item, true);
	return graft_buffer_failed(path) ? graft_fail_memory(err) : toml_append(toml, &out, err);
}

static bool is_inside_value(const struct toml_node *node)
{
	while (node && node->form != TOML_BY_VALUE)
		node = node->parent;
	return node != NULL;
}

/* `reached` is the last existing node of the path. */
static int insert_assigned_value(struct graft_toml *toml, struct graft_buffer *path, const struct toml_node *reached,
				 const struct graft_toml *from, const struct toml_node *node, struct graft_error *err)
{
	auto_buffer struct graft_buffer value = { 0 };

	if (reached->type != TOML_TABLE)
		return graft_fail(err, GRAFT_INVALID, 0, "%s: '%s' cannot be set: a part of it is not a table",
				  toml->name, graft_buffer_text(path));
	if (has_section(node) && !is_inside_value(reached))
		return append_sections(toml, path, from, node, err);
	add_toml_value(&value, from, node);
	return graft_buffer_failed(&value) ? graft_fail_memory(err)
					   : graft_toml_set(toml, path->bytes, graft_buffer_text(&value), err);
}

static int assign(struct graft_toml *toml, struct graft_buffer *path, const struct graft_toml *from,
		  const struct toml_node *node, struct graft_error *err);

/* Removes what the other table lacks. Each removal creates a new tree. */
static int remove_others(struct graft_toml *toml, struct graft_buffer *path, const struct graft_toml *from,
			 const struct toml_node *node, struct graft_error *err)
{
	size_t length = path->length;

	for (;;) {
		struct toml_node *table;
		const struct toml_node *child;
		const char *rest;
		int rc;

		if (toml_follow(toml, path->bytes, &table, &rest, err) < 0)
			return -1;
		child = *rest ? NULL : table->first;
		while (child && toml_find(from, node, &child->key))
			child = child->next;
		if (!child)
			return 0;
		add_name(path, &child->key);
		rc = graft_buffer_failed(path) ? graft_fail_memory(err) : graft_toml_remove(toml, path->bytes, err);
		shorten(path, length);
		if (rc < 0)
			return -1;
	}
}

static int assign_table(struct graft_toml *toml, struct graft_buffer *path, const struct graft_toml *from,
			const struct toml_node *node, struct graft_error *err)
{
	size_t length = path->length;

	if (remove_others(toml, path, from, node, err) < 0)
		return -1;
	for (const struct toml_node *child = node->first; child; child = child->next) {
		int rc;

		add_name(path, &child->key);
		rc = graft_buffer_failed(path) ? graft_fail_memory(err) : assign(toml, path, from, child, err);
		shorten(path, length);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int assign(struct graft_toml *toml, struct graft_buffer *path, const struct graft_toml *from,
		  const struct toml_node *node, struct graft_error *err)
{
	struct toml_node *there;
	const char *rest;

	if (toml_follow(toml, path->bytes, &there, &rest, err) < 0)
		return -1;
	if (*rest)
		return insert_assigned_value(toml, path, there, from, node, err);
	if (toml_is_equal(toml, there, from, node))
		return 0;
	if (node->type == TOML_TABLE && there->type == TOML_TABLE && node->first)
		return assign_table(toml, path, from, node, err);
	if (has_section(there) || has_section(node)) {
		if (graft_toml_remove(toml, path->bytes, err) < 0 ||
		    toml_follow(toml, path->bytes, &there, &rest, err) < 0)
			return -1;
	}
	return insert_assigned_value(toml, path, *rest ? there : there->parent, from, node, err);
}

struct assignment {
	const struct graft_toml *from;
	const char *path, *from_path;
};

static int assign_path(struct graft_toml *toml, const void *arg, struct graft_error *err)
{
	const struct assignment *assignment = arg;
	auto_buffer struct graft_buffer path = { 0 };
	struct toml_node *node;
	const char *rest;

	if (toml_follow(assignment->from, assignment->from_path, &node, &rest, err) < 0)
		return -1;
	if (*rest)
		return graft_toml_remove(toml, assignment->path, err);
	graft_buffer_string(&path, assignment->path);
	return graft_buffer_failed(&path) ? graft_fail_memory(err) : assign(toml, &path, assignment->from, node, err);
}

int graft_toml_assign(struct graft_toml *toml, const char *path, const struct graft_toml *from, const char *from_path,
		      struct graft_error *err)
{
	const struct assignment assignment = { from, path, from_path };

	return toml_edit_copy(toml, assign_path, &assignment, err);
}
