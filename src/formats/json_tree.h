/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_tree: what the parts of the JSON reader and editor share. For src/formats/json*.c alone.
 *
 * A node is what a value of the text is, or what an edit made. Two bits say where it comes from:
 *
 *	              fresh  placed
 *	parsed          -      x     its bytes are text[start, end), a member's name starts at name_start
 *	put in place    x      x     the same, but those bytes are the ones of the value it replaced
 *	put last        x      -     has no bytes in the text
 */
#ifndef GRAFT_FORMATS_JSON_TREE_H
#define GRAFT_FORMATS_JSON_TREE_H

#include "base/arena.h"
#include "formats/json_document.h"

#define JSON_TEXT_MAX  ((size_t)16 * 1024 * 1024)
#define JSON_DEPTH_MAX 512
/* Bytes behind text and strings that may be read, or written to, by a word that starts within. */
#define JSON_SLACK 8

struct graft_json_node {
	struct graft_json_node *parent, *next, *first;
	const char *name; /* of a member, decoded; NULL also where it holds a NUL */
	/* String: decoded, NULL where it holds a NUL. Other scalar: its spelling, which ends where the number or word ends. */
	const char *text;
	uint32_t name_start, start, end;
	uint8_t kind; /* enum graft_json_kind */
	bool fresh : 1, placed : 1;
	bool dirty : 1;  /* a container in or below which something was edited */
	bool marked : 1; /* while an order is checked */
};

struct graft_json_document {
	const char *name;
	char *text; /* JSON_SLACK zeros behind its `length` bytes */
	size_t length;
	struct graft_arena *arena;     /* the text, all nodes, and what edits bring */
	struct graft_arena *strings;   /* owned, of the decoded strings; NULL where they live in the caller's */
	struct graft_json_node top;    /* no value: its only child is the root */
	struct graft_json_node *spare; /* nodes not yet given out */
	size_t n_spare;
	bool changed;
};

/* How a text is read. */
struct json_rules {
	const char *name; /* of the file; NULL = the error says "invalid JSON at" */
	unsigned int max_depth;
	/* Refuses what readers disagree about: malformed UTF-8, lone surrogates, NUL in names, integers beyond 64 bits. */
	bool strict;
	bool may_go_on;              /* what follows the value is not looked at */
	struct graft_arena *strings; /* of the caller, where the decoded strings live; NULL = in the document */
};
/* As graft_json_document_parse(). */
int json_parse(const struct json_rules *rules, const char *text, size_t length,
	       struct graft_json_document **ret_document, struct graft_error *err);

/* A zeroed node of the document; NULL without memory. */
struct graft_json_node *json_new_node(struct graft_json_document *document);
/* Line and column (in characters) of byte `at`, from 1. */
void json_place(const char *text, size_t at, unsigned int *ret_line, unsigned int *ret_column);
/* Whether the member's name is the first `length` bytes of `name`, as Go's decoder compares. */
bool json_name_is(const struct graft_json_node *member, const char *name, size_t length);
/* Whether it is an array or object. */
bool json_is_container(const struct graft_json_node *node);

#endif
