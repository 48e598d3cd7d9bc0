/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_tree: shared by the parts of the JSON reader and editor. Only for src/formats/json.
 *
 * A node is a value of the text, or the result of an edit. Two bits distinguish them:
 *
 *	              fresh  placed
 *	parsed          -      x     its bytes are text[start, end), a member's name starts at name_start
 *	replaced        x      x     the same, but those are the bytes of the value that it replaced
 *	appended        x      -     has no bytes in the text
 */
#ifndef GRAFT_FORMATS_JSON_JSON_TREE_H
#define GRAFT_FORMATS_JSON_JSON_TREE_H

#include "base/arena.h"
#include "formats/json/json_document.h"

#define JSON_TEXT_MAX  ((size_t)16 * 1024 * 1024)
#define JSON_DEPTH_MAX 512
/* Bytes after text and strings that an eight-byte access may read or write. */
#define JSON_SLACK 8

struct graft_json_node {
	struct graft_json_node *parent, *next, *first;
	const char *name; /* of a member, decoded; NULL also if it contains a NUL */
	/*
	 * String: decoded, NULL if it contains a NUL. Other scalars: the spelling in the text, not
	 * terminated.
	 */
	const char *text;
	uint32_t name_start, start, end;
	uint8_t kind; /* enum graft_json_kind */
	bool fresh : 1, placed : 1;
	bool dirty : 1;  /* a container in or below which something was edited */
	bool marked : 1; /* used while an order is checked */
};

struct graft_json_document {
	const char *name;
	char *text; /* `length` bytes, followed by JSON_SLACK zeros */
	size_t length;
	struct graft_arena *arena;     /* for the text, all nodes, and everything that edits add */
	struct graft_arena *strings;   /* for the decoded strings, owned; NULL if they are in the caller's arena */
	struct graft_json_node top;    /* not a value: its only child is the root */
	struct graft_json_node *spare; /* nodes not handed out yet */
	size_t n_spare;
	bool changed;
};

/* How a text is read. */
struct json_rules {
	const char *name; /* of the file; NULL: errors begin with "invalid JSON at" */
	unsigned int max_depth;
	/*
	 * Refuse what readers interpret differently: malformed UTF-8, lone surrogates, NUL in
	 * names, integers beyond 64 bits.
	 */
	bool strict;
	bool may_go_on;              /* ignore what follows the value */
	struct graft_arena *strings; /* the caller's arena for the decoded strings; NULL: the document's */
};
/* Like graft_json_document_parse(). */
int json_parse(const struct json_rules *rules, const char *text, size_t length,
	       struct graft_json_document **ret_document, struct graft_error *err);

/* Returns a zeroed node of the document, or NULL if out of memory. */
struct graft_json_node *json_new_node(struct graft_json_document *document);
/*
 * Returns whether the member's name is the first `length` bytes of `name`, compared as Go's decoder
 * does.
 */
bool json_name_is(const struct graft_json_node *member, const char *name, size_t length);
/* Returns whether it is an array or object. */
bool json_is_container(const struct graft_json_node *node);

#endif
