/* SPDX-License-Identifier: Apache-2.0 */
/* toml_tree: shared by the parts of the TOML reader and editor. Only for src/formats/toml. */
#ifndef GRAFT_FORMATS_TOML_TOML_TREE_H
#define GRAFT_FORMATS_TOML_TOML_TREE_H

#include "formats/toml/toml.h"

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

/*
 * How a table or array was created, which determines what may be added to it (TOML 1.0.0 "Table").
 */
enum toml_form {
	TOML_BY_VALUE,  /* after '=': complete as written */
	TOML_BY_NAME,   /* only named in the header of a table below it: its own header may follow */
	TOML_BY_HEADER, /* [a] or [[a]], an element of the latter, or the root */
	TOML_BY_KEY,    /* by a dotted key: further dotted keys of the same section may add to it */
};

struct toml_text {
	const char *bytes; /* NUL-terminated, but may contain NULs */
	size_t length;
};

struct toml_node {
	struct toml_node *parent, *next, *first, *last; /* children in the order in which they first occur */
	struct toml_text key;                           /* bytes is NULL for elements of arrays and the root */
	enum toml_type type;
	enum toml_form form;
	unsigned int depth;
	size_t start, end;     /* the value's bytes; for a table without a value, where it is first named */
	struct toml_text text; /* strings decoded; floats and dates normalised */
	int64_t integer;       /* integers, and 0 or 1 for booleans */
};

/* A `key = value` or header, in the order of the text. */
struct toml_entry {
	struct toml_node *node;
	const struct toml_node *inside; /* the inline table that contains it; NULL if it has lines of its own */
	size_t start, end;              /* from the key or '[' to the end of the value or of ']' */
	bool header;
};

struct graft_toml {
	char *name, *text; /* owned */
	size_t length;
	struct graft_arena *arena; /* for everything below except the slots */
	struct toml_node *root;
	struct toml_entry *entries;
	size_t n_entries, n_nodes;
	struct toml_node **slots; /* owned; by parent and key, open addressing, a power of two */
	size_t n_slots, n_named;
};

/* A position in a text that is being read. */
struct toml_scan {
	const char *text; /* `length` bytes, followed by a NUL */
	size_t length, at;
	char *scratch; /* room for `length` bytes and a NUL */
	struct graft_arena *arena;
	const char *why; /* what is wrong at `why_at`, once something is */
	size_t why_at;
	enum graft_status status; /* of that error */
};

/* The scanning functions return false once something is wrong. The first reason is kept. */
bool toml_wrong(struct toml_scan *scan, size_t at, const char *why);
bool toml_no_memory(struct toml_scan *scan);
bool toml_is_at(const struct toml_scan *scan, char c);
void toml_skip_blanks(struct toml_scan *scan);
/* Returns the offset after the newline (LF or CR LF) at `at`, or `at` if there is none. */
size_t toml_newline(const struct toml_scan *scan, size_t at);
/* Skips a comment, if any, but not the newline after it. */
bool toml_skip_comment(struct toml_scan *scan);
/* Skips blanks, comments and newlines. */
bool toml_skip_lines(struct toml_scan *scan);
/* Checks that the whole text is well-formed UTF-8. */
bool toml_check_utf8(struct toml_scan *scan);
/* Scans a string into a decoded copy in the arena. */
bool toml_scan_string(struct toml_scan *scan, bool may_be_long, struct toml_text *ret_text);
/* Returns whether the character needs no quotes in a key. */
bool toml_is_bare(char c);
/* Scans one part of a key, bare or quoted. */
bool toml_scan_key_part(struct toml_scan *scan, struct toml_text *ret_key);
/* Scans a number, boolean or date into `node`. */
bool toml_scan_scalar(struct toml_scan *scan, struct toml_node *node);
/* Makes a NUL-terminated copy in the arena. Returns false if out of memory. */
bool toml_copy(struct toml_scan *scan, const char *bytes, size_t n, struct toml_text *ret_text);

/* Returns the member of a table, or NULL. */
struct toml_node *toml_find(const struct graft_toml *toml, const struct toml_node *table, const struct toml_text *key);
/*
 * Follows `path` as far as it exists. *ret_node is the last node reached, *ret_rest the remainder
 * of `path` ("" if all of it exists). Returns 0, or -1 with GRAFT_INVALID if `path` is not a dotted
 * key.
 */
int toml_follow(const struct graft_toml *toml, const char *path, struct toml_node **ret_node, const char **ret_rest,
		struct graft_error *err);
/* Replaces bytes [start, end) of the text. The document only changes if the result is valid. */
int toml_splice(struct graft_toml *toml, size_t start, size_t end, const struct graft_buffer *with,
		struct graft_error *err);
/*
 * Lets `edit` perform several steps on a copy, which replaces the document if all of them succeed.
 */
int toml_edit_copy(struct graft_toml *toml,
		   int (*edit)(struct graft_toml *copy, const void *arg, struct graft_error *err), const void *arg,
		   struct graft_error *err);
/* Adds whole lines at the end of the document, after an empty one. */
int toml_append(struct graft_toml *toml, const struct graft_buffer *lines, struct graft_error *err);
/* Return where the line of byte `at` begins, and where the next one does. */
size_t toml_line_start(const struct graft_toml *toml, size_t at);
size_t toml_line_end(const struct graft_toml *toml, size_t at);
/* Returns the document's line end, LF or CR LF. */
const char *toml_newline_of(const struct graft_toml *toml);
/* Appends a text, which may contain NULs, as a string that TOML and JSON read alike. */
void toml_add_quoted(struct graft_buffer *out, const struct toml_text *text);
/* Appends one part of a key as it is spelled in a document. For strings see graft_toml_quote(). */
void toml_add_key(struct graft_buffer *out, const struct toml_text *key);
/* Returns whether two values are equal. The order of keys and the form of tables are ignored. */
bool toml_is_equal(const struct graft_toml *toml, const struct toml_node *node, const struct graft_toml *other_toml,
		   const struct toml_node *other);

#endif
