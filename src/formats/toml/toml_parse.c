/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_parse: builds the tree of a document: which table each key belongs to, and what may be added
 * to it. Every value remembers its bytes. Does not know what the keys mean.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/toml/toml_tree.h"

struct parser {
	struct toml_scan scan;
	struct graft_toml *toml;
};

static bool too_big(struct toml_scan *scan, size_t at, const char *why)
{
	(void)toml_wrong(scan, at, why);
	scan->status = GRAFT_TOO_BIG;
	return false;
}

/* FNV-1a over the key, seeded with the table. */
static size_t hash(const struct toml_node *table, const struct toml_text *key)
{
	uint64_t h = 0xcbf29ce484222325u ^ (uint64_t)(uintptr_t)table;

	for (size_t i = 0; i < key->length; i++)
		h = (h ^ (unsigned char)key->bytes[i]) * 0x100000001b3u;
	h ^= h >> 32;
	return (size_t)(h * 0x9e3779b97f4a7c15u >> 16);
}

/* Returns the slot of the key, or the free one where it belongs. There is always a free one. */
static struct toml_node **slot_of(struct toml_node **slots, size_t n, const struct toml_node *table,
				  const struct toml_text *key)
{
	size_t i = hash(table, key) & (n - 1);

	while (slots[i] && (slots[i]->parent != table || slots[i]->key.length != key->length ||
			    memcmp(slots[i]->key.bytes, key->bytes, key->length) != 0))
		i = (i + 1) & (n - 1);
	return &slots[i];
}

struct toml_node *toml_find(const struct graft_toml *toml, const struct toml_node *table, const struct toml_text *key)
{
	return toml->slots ? *slot_of(toml->slots, toml->n_slots, table, key) : NULL;
}

static bool grow_slots(struct graft_toml *toml)
{
	size_t n = toml->n_slots ? toml->n_slots * 2 : 64;
	struct toml_node **slots = calloc(n, sizeof(struct toml_node *));

	if (!slots)
		return false;
	for (size_t i = 0; i < toml->n_slots; i++) {
		if (toml->slots[i])
			*slot_of(slots, n, toml->slots[i]->parent, &toml->slots[i]->key) = toml->slots[i];
	}
	free(toml->slots);
	toml->slots = slots;
	toml->n_slots = n;
	return true;
}

/* Adds a table as last child of `parent`; `key` is NULL for an element of an array. */
static struct toml_node *add_toml_node(struct parser *p, struct toml_node *parent, const struct toml_text *key,
				       enum toml_form form, size_t at)
{
	struct graft_toml *toml = p->toml;
	struct toml_node *node;

	if (parent->depth >= TOML_DEPTH_MAX)
		return too_big(&p->scan, at, "nested deeper than 128 levels"), NULL;
	if (toml->n_nodes++ >= TOML_VALUES_MAX)
		return too_big(&p->scan, at, "more than 1000000 values"), NULL;
	if (key && toml->n_named * 2 >= toml->n_slots && !grow_slots(toml))
		return toml_no_memory(&p->scan), NULL;
	node = graft_arena_alloc(toml->arena, sizeof(*node));
	if (!node)
		return toml_no_memory(&p->scan), NULL;
	node->parent = parent;
	node->depth = parent->depth + 1;
	node->start = at;
	node->type = TOML_TABLE;
	node->form = form;
	if (parent->last)
		parent->last->next = node;
	else
		parent->first = node;
	parent->last = node;
	if (key) {
		node->key = *key;
		*slot_of(toml->slots, toml->n_slots, parent, key) = node;
		toml->n_named++;
	}
	return node;
}

/* Returns the index of the entry, since the list may move; -1 if out of memory. */
static long add_toml_entry(struct parser *p, const struct toml_node *inside, bool header)
{
	struct toml_entry *entry = graft_arena_push(p->toml->arena, &p->toml->entries, &p->toml->n_entries,
						    sizeof(*entry));

	if (!entry)
		return toml_no_memory(&p->scan), -1;
	*entry = (struct toml_entry){ .inside = inside, .header = header, .start = p->scan.at };
	return (long)p->toml->n_entries - 1;
}

static void end_entry(struct parser *p, long number, struct toml_node *node)
{
	p->toml->entries[number].node = node;
	p->toml->entries[number].end = p->scan.at;
}

static bool parse_value(struct parser *p, struct toml_node *node);

static bool parse_array(struct parser *p, struct toml_node *array)
{
	struct toml_scan *scan = &p->scan;

	array->type = TOML_ARRAY;
	scan->at++;
	for (;;) {
		struct toml_node *element;

		if (!toml_skip_lines(scan))
			return false;
		if (toml_is_at(scan, ']'))
			break;
		element = add_toml_node(p, array, NULL, TOML_BY_VALUE, scan->at);
		if (!element || !parse_value(p, element) || !toml_skip_lines(scan))
			return false;
		if (toml_is_at(scan, ']'))
			break;
		if (!toml_is_at(scan, ','))
			return toml_wrong(scan, scan->at, "expected ',' or ']'");
		scan->at++;
	}
	scan->at++;
	return true;
}

/* Returns the table that a part of a dotted key names. */
static struct toml_node *enter_by_key(struct parser *p, struct toml_node *table, const struct toml_text *key, size_t at)
{
	struct toml_node *node = toml_find(p->toml, table, key);

	if (!node)
		return add_toml_node(p, table, key, TOML_BY_KEY, at);
	if (node->type != TOML_TABLE)
		return toml_wrong(&p->scan, at, "the key already has a value and is not a table"), NULL;
	if (node->form != TOML_BY_KEY)
		return toml_wrong(&p->scan, at, "the table is defined elsewhere, so a dotted key cannot add to it"),
		       NULL;
	return node;
}

/*
 * Scans a dotted key: *table becomes the table that its parts but the last name, *ret_key and
 * *ret_at are the last part and where it is.
 */
static bool parse_dotted_key(struct parser *p,
			     struct toml_node *(*enter)(struct parser *p, struct toml_node *table,
							const struct toml_text *key, size_t at),
			     struct toml_node **table, struct toml_text *ret_key, size_t *ret_at)
{
	struct toml_scan *scan = &p->scan;

	for (;;) {
		toml_skip_blanks(scan);
		*ret_at = scan->at;
		if (!toml_scan_key_part(scan, ret_key))
			return false;
		toml_skip_blanks(scan);
		if (!toml_is_at(scan, '.'))
			return true;
		*table = enter(p, *table, ret_key, *ret_at);
		if (!*table)
			return false;
		scan->at++;
	}
}

static bool parse_key_value(struct parser *p, struct toml_node *table, const struct toml_node *inside)
{
	struct toml_scan *scan = &p->scan;
	struct toml_node *node;
	struct toml_text key;
	long entry = add_toml_entry(p, inside, false);
	size_t at;

	if (entry < 0 || !parse_dotted_key(p, enter_by_key, &table, &key, &at))
		return false;
	if (!toml_is_at(scan, '='))
		return toml_wrong(scan, scan->at, "expected '=' after the key");
	if (toml_find(p->toml, table, &key))
		return toml_wrong(scan, at, "the key is already defined");
	scan->at++;
	toml_skip_blanks(scan);
	node = add_toml_node(p, table, &key, TOML_BY_VALUE, scan->at);
	if (!node || !parse_value(p, node))
		return false;
	end_entry(p, entry, node);
	return true;
}

/* TOML 1.0.0: an inline table is on a single line and has no trailing comma. */
static bool parse_inline_table(struct parser *p, struct toml_node *table)
{
	struct toml_scan *scan = &p->scan;

	scan->at++;
	toml_skip_blanks(scan);
	if (toml_is_at(scan, '}')) {
		scan->at++;
		return true;
	}
	for (;;) {
		toml_skip_blanks(scan);
		if (!parse_key_value(p, table, table))
			return false;
		toml_skip_blanks(scan);
		if (toml_is_at(scan, '}'))
			break;
		if (!toml_is_at(scan, ','))
			return toml_wrong(scan, scan->at, "expected ',' or '}' on the same line");
		scan->at++;
	}
	scan->at++;
	return true;
}

static bool parse_value(struct parser *p, struct toml_node *node)
{
	struct toml_scan *scan = &p->scan;
	bool fine;

	node->start = scan->at;
	if (toml_is_at(scan, '[')) {
		fine = parse_array(p, node);
	} else if (toml_is_at(scan, '{')) {
		fine = parse_inline_table(p, node);
	} else if (toml_is_at(scan, '"') || toml_is_at(scan, '\'')) {
		node->type = TOML_STRING;
		fine = toml_scan_string(scan, true, &node->text);
	} else {
		fine = toml_scan_scalar(scan, node);
	}
	node->end = scan->at;
	return fine;
}

/* Returns the table named by a part of a header other than the last. */
static struct toml_node *enter_by_name(struct parser *p, struct toml_node *table, const struct toml_text *key,
				       size_t at)
{
	struct toml_node *node = toml_find(p->toml, table, key);

	if (!node)
		return add_toml_node(p, table, key, TOML_BY_NAME, at);
	if (node->form == TOML_BY_VALUE)
		return toml_wrong(&p->scan, at, "the key already has a value, so no table can be added to it"), NULL;
	return node->type == TOML_ARRAY ? node->last : node;
}

/* [a]: a new table, or one that was only named so far. */
static struct toml_node *define_table(struct parser *p, struct toml_node *parent, const struct toml_text *key,
				      size_t at)
{
	struct toml_node *node = toml_find(p->toml, parent, key);

	if (!node)
		return add_toml_node(p, parent, key, TOML_BY_HEADER, at);
	if (node->form != TOML_BY_NAME)
		return toml_wrong(&p->scan, at, "the table or key is already defined"), NULL;
	node->form = TOML_BY_HEADER;
	node->start = at;
	return node;
}

/* [[a]]: adds an element. */
static struct toml_node *define_element(struct parser *p, struct toml_node *parent, const struct toml_text *key,
					size_t at)
{
	struct toml_node *array = toml_find(p->toml, parent, key);

	if (!array) {
		array = add_toml_node(p, parent, key, TOML_BY_HEADER, at);
		if (!array)
			return NULL;
		array->type = TOML_ARRAY;
	} else if (array->type != TOML_ARRAY || array->form != TOML_BY_HEADER) {
		return toml_wrong(&p->scan, at, "the table or key is already defined, and not as an array of tables"),
		       NULL;
	}
	return add_toml_node(p, array, NULL, TOML_BY_HEADER, at);
}

static bool parse_header(struct parser *p, struct toml_node **ret_table)
{
	struct toml_scan *scan = &p->scan;
	struct toml_node *table = p->toml->root;
	struct toml_text key;
	long entry = add_toml_entry(p, NULL, true);
	bool element;
	size_t at;

	if (entry < 0)
		return false;
	scan->at++;
	element = toml_is_at(scan, '[');
	scan->at += element ? 1 : 0;
	if (!parse_dotted_key(p, enter_by_name, &table, &key, &at))
		return false;
	for (int i = 0; i < (element ? 2 : 1); i++, scan->at++) {
		if (!toml_is_at(scan, ']'))
			return toml_wrong(scan, scan->at, element ? "expected ']]'" : "expected ']'");
	}
	table = element ? define_element(p, table, &key, at) : define_table(p, table, &key, at);
	if (!table)
		return false;
	end_entry(p, entry, table);
	*ret_table = table;
	return true;
}

static bool parse_document(struct parser *p)
{
	struct toml_scan *scan = &p->scan;
	struct toml_node *table = p->toml->root;

	if (!toml_check_utf8(scan))
		return false;
	if (scan->length >= 3 && memcmp(scan->text, "\xef\xbb\xbf", 3) == 0)
		scan->at = 3;
	for (;;) {
		if (!toml_skip_lines(scan))
			return false;
		if (scan->at == scan->length)
			return true;
		if (!(toml_is_at(scan, '[') ? parse_header(p, &table) : parse_key_value(p, table, NULL)))
			return false;
		toml_skip_blanks(scan);
		if (!toml_skip_comment(scan))
			return false;
		if (scan->at < scan->length && toml_newline(scan, scan->at) == scan->at)
			return toml_wrong(scan, scan->at, "expected the end of the line");
	}
}

static int fail_toml_parse(const struct parser *p, struct graft_error *err)
{
	unsigned int line, column;

	if (p->scan.status == GRAFT_NO_MEMORY)
		return graft_fail_memory(err);
	graft_utf8_place(p->scan.text, p->scan.why_at, &line, &column);
	return graft_fail(err, p->scan.status, 0, "%s: line %u, column %u: %s", p->toml->name, line, column,
			  p->scan.why);
}

static int parse_toml_text(struct graft_toml *toml, struct graft_error *err)
{
	auto_free char *scratch = malloc(toml->length + 1);
	struct parser p = {
		.toml = toml,
		.scan = { .text = toml->text, .length = toml->length, .scratch = scratch, .arena = toml->arena }
	};

	if (!scratch)
		return graft_fail_memory(err);
	return parse_document(&p) ? 0 : fail_toml_parse(&p, err);
}

int graft_toml_parse(const char *name, const char *text, size_t length, struct graft_toml **ret_toml,
		     struct graft_error *err)
{
	auto_toml struct graft_toml *toml = NULL;

	if (length > TOML_TEXT_MAX)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "%s: %zu bytes are over the limit of %zu", name, length,
				  TOML_TEXT_MAX);
	toml = calloc(1, sizeof(*toml));
	if (!toml)
		return graft_fail_memory(err);
	toml->name = strdup(name);
	toml->text = malloc(length + 1);
	toml->arena = graft_arena_new((size_t)1 << 30);
	toml->root = toml->arena ? graft_arena_alloc(toml->arena, sizeof(*toml->root)) : NULL;
	if (!toml->name || !toml->text || !toml->root)
		return graft_fail_memory(err);
	if (length > 0)
		memcpy(toml->text, text, length);
	toml->text[length] = '\0';
	toml->length = length;
	toml->root->type = TOML_TABLE;
	toml->root->form = TOML_BY_HEADER;
	if (parse_toml_text(toml, err) < 0)
		return -1;
	*ret_toml = TAKE_PTR(toml);
	return 0;
}
