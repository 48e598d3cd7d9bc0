/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_tree: the text of a CDI file as a tree of values, the same for JSON and for YAML. For src/formats/cdi*.c alone.
 *
 * A YAML text becomes a tree of these values. They may be shared (aliases), so the tree is read and never changed; no value contains itself. A JSON text has
 * a tree already, of nodes: its values are views, made when somebody looks.
 */
#ifndef GRAFT_FORMATS_CDI_TREE_H
#define GRAFT_FORMATS_CDI_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

#define CDI_TEXT_MAX  ((size_t)16 * 1024 * 1024)
#define CDI_DEPTH_MAX 32u

enum cdi_kind { CDI_NULL, CDI_BOOL, CDI_INTEGER, CDI_FRACTION, CDI_STRING, CDI_LIST, CDI_MAP };

struct graft_json_document;
struct graft_json_node;

struct cdi_value {
	enum cdi_kind kind;
	bool negative;             /* INTEGER */
	unsigned int line, column; /* of YAML, from 1; of the key for a member; see cdi_line() */
	const char *key;           /* of a member, NULL where it holds a NUL; NULL for elements and the root */
	/*
	 * STRING, NULL where it holds a NUL; of the others what a reader that wants a string takes them for, where NULL is an integer as usual. Texts
	 * and keys live in the builder's arena for texts.
	 */
	const char *text;
	uint64_t magnitude;                 /* INTEGER; BOOL: 0 or 1 */
	const struct graft_json_node *node; /* what a view is of; NULL for YAML */
	/* Of YAML: the next one of the list or map that this one is part of, and the first one in this list or map. */
	const struct cdi_value *next, *first;
};

/* A text that becomes values. */
struct cdi_builder {
	const char *file;
	struct graft_arena *texts; /* holds texts and keys; outlives the values */
	struct graft_arena *arena; /* holds the tree of a YAML text */
	size_t n_values;           /* of that tree */
	struct graft_error *err;
	struct graft_json_document *document; /* of a JSON text; owned, outlives the views; cdi_builder_done() */
	struct cdi_value root;                /* of a JSON text */
};

/* Frees the document. */
void cdi_builder_done(struct cdi_builder *builder);
/*
 * The first value of a list or map, and the one behind another; NULL when there is none (of any other kind: always). `view` is where a view is made: what was
 * in it is no more, and it may be the one that is given. It may also be copied.
 */
const struct cdi_value *cdi_first(const struct cdi_value *value, struct cdi_value *view);
const struct cdi_value *cdi_next(const struct cdi_value *item, struct cdi_value *view);
/* How many values a list or map holds; they are counted. */
size_t cdi_count(const struct cdi_value *value);
/* Where a value stood. Counted when asked: of most values nobody asks. */
unsigned int cdi_line(const struct cdi_value *value);
unsigned int cdi_column(const struct cdi_value *value);

/* Sets GRAFT_FORMAT "FILE: line 1, column 2: invalid CDI Spec: <what>" and returns -1. Line 0: without a place. */
__attribute__((format(printf, 5, 6))) int cdi_fail_at(const char *file, unsigned int line, unsigned int column,
						      struct graft_error *err, const char *format, ...);
#define cdi_fail_at(...) ((void)(cdi_fail_at)(__VA_ARGS__), -1)

/* Parses one text. The root lives as long as the builder and its arenas. -1: GRAFT_FORMAT, GRAFT_TOO_BIG, GRAFT_NO_MEMORY. */
int cdi_tree_from_json(struct cdi_builder *builder, const char *text, size_t length, const struct cdi_value **ret_root);
int cdi_tree_from_yaml(struct cdi_builder *builder, const char *text, size_t length, const struct cdi_value **ret_root);

/*
 * What an unquoted word of YAML is: null, a boolean, a number or a string. Sets the magnitude of a boolean, and sign and magnitude of an
 * integer; nothing else.
 */
enum cdi_kind cdi_plain_kind(const char *text, bool *ret_negative, uint64_t *ret_magnitude);
/* Appends a text as a scalar of block style: plain where every reader takes it for that string, else in double quotes. It must be UTF-8. */
void cdi_quote_yaml(struct graft_buffer *out, const char *text);
/* -1: GRAFT_INVALID, the text is not UTF-8. */
int cdi_check_utf8(const char *text, struct graft_error *err);
/* A text for messages, quoted, with everything but printable ASCII escaped, cut if long. */
const char *cdi_quote(const char *text, char *buffer, size_t size);
/* Cuts "vendor/class" in two; the strings are copies in `arena`. */
int cdi_check_kind(const char *kind, struct graft_arena *arena, const char **ret_vendor, const char **ret_class,
		   struct graft_error *err);

#endif
