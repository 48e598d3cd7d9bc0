/* SPDX-License-Identifier: Apache-2.0 */
/* toml_tree: what the parts of the TOML reader and editor share. For src/formats/toml*.c alone. */
#ifndef GRAFT_FORMATS_TOML_TREE_H
#define GRAFT_FORMATS_TOML_TREE_H

#include "formats/toml.h"

#define TOML_TEXT_MAX   ((size_t)16 * 1024 * 1024)
#define TOML_DEPTH_MAX  128
#define TOML_VALUES_MAX 1000000

enum toml_type {
	TOML_STRING,
	TOML_INTEGER,
	TOML_FLOAT,
	TOML_BOOL,
	TOML_DATETIME,
	TOML_DATETIME_LOCAL,
	TOML_DATE_LOCAL,
	TOML_TIME_LOCAL,
	TOML_ARRAY,
	TOML_TABLE,
};

/* How a table or array came to be, which decides who may still add to it (SPEC TOML 1.0.0 "Table"). */
enum toml_form {
	TOML_BY_VALUE,  /* behind '=': complete as written */
	TOML_BY_NAME,   /* only named in the header of a table below it: a header of its own may follow */
	TOML_BY_HEADER, /* [a] or [[a]], an element of the latter, and the root */
	TOML_BY_KEY,    /* by a dotted key: more dotted keys of the same section may add to it */
};

struct toml_text {
	const char *bytes; /* NUL-terminated, and may hold NULs */
	size_t length;
};

struct toml_node {
	struct toml_node *parent, *next, *first, *last; /* children in the order of their first mention */
	struct toml_text key;                           /* bytes NULL for elements of arrays and the root */
	enum toml_type type;
	enum toml_form form;
	unsigned int depth;
	size_t start, end;     /* the value's bytes; for a table without a value, where it was first named */
	struct toml_text text; /* strings decoded; floats and dates normalised */
	int64_t integer;       /* integers, and 0 or 1 for booleans */
};

/* One `key = value` or header, in the order of the text. */
struct toml_entry {
	struct toml_node *node;
	const struct toml_node *inside; /* the inline table it stands in; NULL for those that have lines of their own */
	size_t start, end;              /* from the key or '[' to the end of the value or behind ']' */
	bool header;
};

struct graft_toml {
	char *name, *text; /* owned */
	size_t length;
	struct graft_arena *arena; /* all below, but the slots */
	struct toml_node *root;
	struct toml_entry *entries;
	size_t n_entries, n_nodes;
	struct toml_node **slots; /* owned; by parent and key, open addressing, a power of two */
	size_t n_slots, n_named;
};

/* A place in a text that is being read. */
struct toml_scan {
	const char *text; /* a NUL stands behind its `length` bytes */
	size_t length, at;
	char *scratch; /* room for `length` bytes and a NUL */
	struct graft_arena *arena;
	const char *why; /* what is wrong, once something is, and where */
	size_t why_at;
	enum graft_status status; /* with it */
};

/* Each returns false once something is wrong; the first reason stays. */
bool toml_wrong(struct toml_scan *scan, size_t at, const char *why);
bool toml_no_memory(struct toml_scan *scan);
bool toml_is_at(const struct toml_scan *scan, char c);
void toml_skip_blanks(struct toml_scan *scan);
/* Behind a newline (LF or CR LF) if one is at `at`, else `at`. */
size_t toml_newline(const struct toml_scan *scan, size_t at);
/* Skips a comment if there is one; not the newline behind it. */
bool toml_skip_comment(struct toml_scan *scan);
/* Blanks, comments and newlines. */
bool toml_skip_lines(struct toml_scan *scan);
/* Well-formed UTF-8 throughout. */
bool toml_check_utf8(struct toml_scan *scan);
/* A decoded copy in the arena. */
bool toml_scan_string(struct toml_scan *scan, bool may_be_long, struct toml_text *ret_text);
/* Whether a key with this character needs no quotes. */
bool toml_is_bare(char c);
/* One part of a key, bare or quoted. */
bool toml_scan_key_part(struct toml_scan *scan, struct toml_text *ret_key);
/* A number, a boolean or a date into `node`. */
bool toml_scan_scalar(struct toml_scan *scan, struct toml_node *node);
/* A NUL-terminated copy in the arena; false without memory. */
bool toml_copy(struct toml_scan *scan, const char *bytes, size_t n, struct toml_text *ret_text);

/* The member of a table, or NULL. */
struct toml_node *toml_find(const struct graft_toml *toml, const struct toml_node *table, const struct toml_text *key);
/* Line and column of byte `at`, from 1; columns count characters. */
void toml_place(const char *text, size_t at, size_t *ret_line, size_t *ret_column);
/*
 * Follows `path` as far as it exists. *ret_node is the last node reached, *ret_rest the part of `path` that is left ("" when all was
 * found). -1 with GRAFT_INVALID when `path` is no dotted key.
 */
int toml_follow(const struct graft_toml *toml, const char *path, struct toml_node **ret_node, const char **ret_rest,
		struct graft_error *err);
/* The document becomes the one with bytes [start, end) replaced, if that is one. */
int toml_splice(struct graft_toml *toml, size_t start, size_t end, const struct graft_buffer *with,
		struct graft_error *err);
/* Lets `edit` do several steps on a copy, which takes the document's place when all succeeded. */
int toml_edit_copy(struct graft_toml *toml,
		   int (*edit)(struct graft_toml *copy, const void *arg, struct graft_error *err), const void *arg,
		   struct graft_error *err);
/* Puts whole lines at the document's end, behind an empty one. */
int toml_append(struct graft_toml *toml, const struct graft_buffer *lines, struct graft_error *err);
/* Where the line of byte `at` begins, and where the next one does. */
size_t toml_line_start(const struct graft_toml *toml, size_t at);
size_t toml_line_end(const struct graft_toml *toml, size_t at);
/* How lines of the document end. */
const char *toml_newline_of(const struct graft_toml *toml);
/* One part of a key as it is written. Strings: graft_toml_quote(). */
void toml_add_key(struct graft_buffer *out, const struct toml_text *key);
/* Whether two values mean the same: tables whatever the order of their keys and the way they are written. */
bool toml_is_equal(const struct graft_toml *toml, const struct toml_node *node, const struct graft_toml *other_toml,
		   const struct toml_node *other);
/* One value in the tagged form. */
void toml_node_json(struct graft_buffer *out, const struct toml_node *node);

#endif
