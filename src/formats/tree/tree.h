/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree: a text that is JSON or YAML, as a tree of values: CDI specifications, and config files of
 * the programs for Kubernetes. What the values mean is up to the caller.
 *
 * A YAML text becomes a tree of these values. They may be shared (aliases), so the tree is only
 * small in itself, and walking it needs a limit. A JSON text already has a tree of nodes; its
 * values are views, made on demand.
 */
#ifndef GRAFT_FORMATS_TREE_TREE_H
#define GRAFT_FORMATS_TREE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

#define GRAFT_TREE_DEPTH_MAX 32u
/* How many values aliases may add to those in a file. */
#define GRAFT_TREE_ALIASED_MAX ((size_t)100000)

enum graft_tree_kind {
	GRAFT_TREE_NULL,
	GRAFT_TREE_BOOL,
	GRAFT_TREE_INTEGER,
	GRAFT_TREE_FRACTION,
	GRAFT_TREE_STRING,
	GRAFT_TREE_LIST,
	GRAFT_TREE_MAP
};
/* "null", "a boolean", "a number", ..., by kind. */
extern const char *const graft_tree_kind_names[GRAFT_TREE_MAP + 1];

struct graft_json_document;
struct graft_json_node;

struct graft_tree_value {
	enum graft_tree_kind kind;
	bool negative;             /* INTEGER */
	unsigned int line, column; /* in YAML, from 1; for a member, of the key; see graft_tree_line() */
	const char *key;           /* of a member, NULL if it contains a NUL; NULL for elements and the root */
	/*
	 * STRING: the text, NULL if it contains a NUL. Other kinds: the text to use where a string
	 * is expected; NULL means an integer in decimal. Texts and keys live in the builder's arena
	 * for texts.
	 */
	const char *text;
	uint64_t magnitude;                 /* INTEGER; BOOL: 0 or 1 */
	const struct graft_json_node *node; /* what this is a view of; NULL for YAML */
	/*
	 * For YAML: the next value in the same list or map, and the first one in this list or map.
	 */
	const struct graft_tree_value *next, *first;
};

/* A text that is converted to values. */
struct graft_tree_builder {
	const char *file;          /* for messages */
	const char *what;          /* put before what is wrong: "invalid CDI Spec: "; NULL: nothing */
	struct graft_arena *texts; /* for texts and keys; outlives the values */
	struct graft_error *err;
	size_t max; /* bytes of text */
	/* The rest is set by graft_tree_parse(). */
	struct graft_arena *arena; /* of the tree of a YAML text; owned */
	/*
	 * How many values may be read, each as often as it is used: SIZE_MAX for JSON, for YAML
	 * those of the text and GRAFT_TREE_ALIASED_MAX more.
	 */
	size_t budget;
	size_t n_values;                      /* in the tree of a YAML text */
	struct graft_json_document *document; /* of a JSON text; owned, outlives the views */
	struct graft_tree_value root;         /* of a JSON text */
};

/*
 * Parses a text, which is recognised as JSON or YAML. Set the first members of the builder before.
 * The root lives until graft_tree_builder_done(), which is called after a failure too. Returns 0,
 * or -1 with GRAFT_FORMAT "FILE: line 1, column 2: ...", GRAFT_TOO_BIG or GRAFT_NO_MEMORY.
 */
int graft_tree_parse(struct graft_tree_builder *builder, const char *text, size_t length,
		     const struct graft_tree_value **ret_root);
void graft_tree_builder_done(struct graft_tree_builder *builder);

/* The two parsers, for graft_tree_parse() and tests. */
int graft_tree_from_json(struct graft_tree_builder *builder, const char *text, size_t length,
			 const struct graft_tree_value **ret_root);
int graft_tree_from_yaml(struct graft_tree_builder *builder, const char *text, size_t length,
			 const struct graft_tree_value **ret_root);

/*
 * Return the first value of a list or map, and the one after `item`; NULL at the end, and for
 * values of other kinds. `view` is storage for a view: its old content is lost, and it may be
 * `item` itself. Views may be copied.
 */
const struct graft_tree_value *graft_tree_first(const struct graft_tree_value *value, struct graft_tree_value *view);
const struct graft_tree_value *graft_tree_next(const struct graft_tree_value *item, struct graft_tree_value *view);
/* A loop over these values; `view` is a struct graft_tree_value of the caller's. */
#define GRAFT_TREE_EACH(item, value, view)                                                           \
	for (const struct graft_tree_value *item = graft_tree_first(value, &(view)); (item) != NULL; \
	     item = graft_tree_next(item, &(view)))
/* Counts the values of a list or map. */
size_t graft_tree_count(const struct graft_tree_value *value);
/* Return the position of a value. It is computed on demand, since it is rarely needed. */
unsigned int graft_tree_line(const struct graft_tree_value *value);
unsigned int graft_tree_column(const struct graft_tree_value *value);

/*
 * Sets GRAFT_FORMAT "FILE: line 1, column 2: WHAT..." and returns -1. Line 0 omits the position;
 * `what` is that of the builder.
 */
__attribute__((format(printf, 6, 7))) int graft_tree_fail_at(const char *file, const char *what, unsigned int line,
							     unsigned int column, struct graft_error *err,
							     const char *format, ...);
#define graft_tree_fail_at(...) ((void)(graft_tree_fail_at)(__VA_ARGS__), -1)

/*
 * Returns the kind of a plain (unquoted) YAML scalar: null, a boolean, a number or a string. Sets
 * the magnitude of a boolean, or the sign and magnitude of an integer, and nothing else.
 */
enum graft_tree_kind graft_tree_plain_kind(const char *text, bool *ret_negative, uint64_t *ret_magnitude);
/*
 * Appends a text, which must be UTF-8, as a scalar of block style: plain if every reader takes it
 * for that string, otherwise in double quotes.
 */
void graft_tree_quote_yaml(struct graft_buffer *out, const char *text);
/*
 * Quotes a text for messages, or its first `length` bytes: escapes everything but printable ASCII,
 * and cuts it if it is long. Returns `buffer`.
 */
const char *graft_tree_quote(const char *text, char *buffer, size_t size);
const char *graft_tree_quote_part(const char *text, size_t length, char *buffer, size_t size);

#endif
