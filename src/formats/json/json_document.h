/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_document: edits a JSON text without loss. Reading builds a tree whose nodes remember their
 * bytes in the text. Whatever is not edited is written back byte for byte: spelling of numbers,
 * order of keys, escapes, white space, unknown members. docs/decisions/0009-lossless-json.md
 * explains why we do not use json-c.
 *
 * The grammar is strict: RFC 8259, a single value, followed by nothing but white space. Values are
 * not: malformed UTF-8 and lone surrogates read as U+FFFD, as in Go's decoder, and numbers may have
 * any size; all of them are written back unchanged. Limits: 16 MiB of text, 512 levels
 * (GRAFT_TOO_BIG).
 *
 * Names of members are compared as Go's decoder compares them, which the low-level runtimes use:
 * exactly or ignoring case, and the last of several wins. Only the keys of maps (annotations) are
 * exact; read those in a loop, and set them by graft_json_set_key(). Functions that edit refuse an
 * object in which the name in question occurs more than once, because readers disagree about which
 * value applies.
 */
#ifndef GRAFT_FORMATS_JSON_JSON_DOCUMENT_H
#define GRAFT_FORMATS_JSON_JSON_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

struct graft_json_document;
struct graft_json_node; /* belongs to its document; NULL means "not there" in every function that reads */

enum graft_json_kind {
	GRAFT_JSON_ABSENT, /* of NULL */
	GRAFT_JSON_NULL,
	GRAFT_JSON_BOOL,
	GRAFT_JSON_NUMBER,
	GRAFT_JSON_STRING,
	GRAFT_JSON_ARRAY,
	GRAFT_JSON_OBJECT,
};

/*
 * Parses `length` bytes, which are copied. `name` is the file name for error messages. Returns 0,
 * or -1 with GRAFT_FORMAT (with name, line, column and what is wrong), GRAFT_TOO_BIG or
 * GRAFT_NO_MEMORY. Time and memory only depend on the length.
 */
int graft_json_document_parse(const char *name, const char *text, size_t length,
			      struct graft_json_document **ret_document, struct graft_error *err);
/*
 * The same for the first value of a text that may continue. What follows is ignored, and written
 * back unchanged. The low-level runtimes read config.json and state like this. If `name` is NULL,
 * errors begin with "invalid JSON at line ...".
 */
int graft_json_document_parse_first(const char *name, const char *text, size_t length,
				    struct graft_json_document **ret_document, struct graft_error *err);
/*
 * Like graft_json_document_parse(), but the results of graft_json_node_string() and
 * graft_json_node_name() are allocated from `strings`, an arena of the caller that outlives the
 * document. A text that fails to parse leaves little or nothing in it.
 */
int graft_json_document_parse_into(const char *name, const char *text, size_t length, struct graft_arena *strings,
				   struct graft_json_document **ret_document, struct graft_error *err);
/* NULL is allowed. */
void graft_json_document_free(struct graft_json_document *document);
#define auto_json_document __attribute__((cleanup(graft_json_document_cleanup)))
void graft_json_document_cleanup(struct graft_json_document **document);

/* Returns whether any edit changed what would be written. */
bool graft_json_document_changed(const struct graft_json_document *document);
/*
 * Appends the text; without edits, the bytes that were parsed. Returns 0, or -1 with
 * GRAFT_NO_MEMORY.
 */
int graft_json_document_write(const struct graft_json_document *document, struct graft_buffer *out,
			      struct graft_error *err);

/* Reading. The root of a document that was parsed always exists; the kind of NULL is ABSENT. */
struct graft_json_node *graft_json_document_root(const struct graft_json_document *document);
enum graft_json_kind graft_json_node_kind(const struct graft_json_node *node);
/* Returns a member of an object; NULL for other kinds. */
struct graft_json_node *graft_json_node_member(const struct graft_json_node *object, const char *name);
/*
 * Returns the member at a path of names, "linux.resources.devices"; NULL if any of them does not
 * exist.
 */
struct graft_json_node *graft_json_node_at(const struct graft_json_node *object, const char *path);
/* The children of an array or object, in order. */
struct graft_json_node *graft_json_node_first(const struct graft_json_node *container);
struct graft_json_node *graft_json_node_next(const struct graft_json_node *node);
/* A loop over the children, which must not change the container. */
#define GRAFT_JSON_EACH(node, container)                                                      \
	for (struct graft_json_node *node = graft_json_node_first(container); (node) != NULL; \
	     node = graft_json_node_next(node))
size_t graft_json_node_count(const struct graft_json_node *container);
/*
 * Returns the decoded string; NULL if it is not a string or contains a NUL (which would silently
 * truncate it). Lives as long as the document.
 */
const char *graft_json_node_string(const struct graft_json_node *node);
/*
 * Returns the decoded name of a member; NULL for an element of an array, or if it contains a NUL.
 */
const char *graft_json_node_name(const struct graft_json_node *node);
/* Return true and the value if it is a number without fraction and exponent that fits. */
bool graft_json_node_u64(const struct graft_json_node *node, uint64_t *ret_value);
bool graft_json_node_i64(const struct graft_json_node *node, int64_t *ret_value);
/* Returns whether it is the literal true. */
bool graft_json_node_is_true(const struct graft_json_node *node);
/*
 * Returns whether two values, of the same document or not, mean the same: members in any order,
 * numbers with the same spelling. NULL only equals NULL.
 */
bool graft_json_node_is_same(const struct graft_json_node *a, const struct graft_json_node *b);
/* Returns the node's line and column in the parsed text, counted from 1; 0, 0 for a new node. */
void graft_json_node_position(const struct graft_json_node *node, unsigned int *ret_line, unsigned int *ret_column);

/*
 * Editing. New nodes belong to the document but are detached until they are inserted somewhere.
 * Each can be inserted once. The functions return -1 or NULL on failure: GRAFT_NO_MEMORY,
 * GRAFT_FORMAT (a member is not of the required kind, or occurs twice; a new string is not UTF-8),
 * GRAFT_INTERNAL (a node is inserted twice). A failed edit changes nothing. Replacing a string,
 * number or boolean by an equal one changes nothing either: the old node stays, and the new one
 * remains detached.
 *
 * New nodes are formatted like their neighbours (see json_write.c): compact stays compact, pretty
 * stays pretty.
 */
struct graft_json_node *graft_json_new_string(struct graft_json_document *document, const char *string,
					      struct graft_error *err);
struct graft_json_node *graft_json_new_u64(struct graft_json_document *document, uint64_t value,
					   struct graft_error *err);
struct graft_json_node *graft_json_new_i64(struct graft_json_document *document, int64_t value,
					   struct graft_error *err);
struct graft_json_node *graft_json_new_bool(struct graft_json_document *document, bool value, struct graft_error *err);
struct graft_json_node *graft_json_new_array(struct graft_json_document *document, struct graft_error *err);
struct graft_json_node *graft_json_new_object(struct graft_json_document *document, struct graft_error *err);
/* Returns a deep copy of a value of this document or of another one. */
struct graft_json_node *graft_json_new_copy(struct graft_json_document *document, const struct graft_json_node *node,
					    struct graft_error *err);
/*
 * Returns the object or array at a path of names. Creates it, and the objects on the way, where
 * missing or null.
 */
struct graft_json_node *graft_json_make(struct graft_json_document *document, const char *path,
					enum graft_json_kind kind, struct graft_error *err);
/* Replaces a member's value in place, or adds the member at the end. */
int graft_json_set(struct graft_json_document *document, struct graft_json_node *object, const char *name,
		   struct graft_json_node *value, struct graft_error *err);
/*
 * The same for an object that is a map (annotations, net devices): its keys are compared exactly.
 */
int graft_json_set_key(struct graft_json_document *document, struct graft_json_node *map, const char *key,
		       struct graft_json_node *value, struct graft_error *err);
/* Adds an element at the end. */
int graft_json_append(struct graft_json_document *document, struct graft_json_node *array,
		      struct graft_json_node *value, struct graft_error *err);
/* Replaces a value, an element or a member, by a new one in place. */
int graft_json_replace(struct graft_json_document *document, struct graft_json_node *node,
		       struct graft_json_node *value, struct graft_error *err);
/* Removes an element or member, which must no longer be used. */
void graft_json_remove(struct graft_json_document *document, struct graft_json_node *node);
/*
 * Removes the children for which `is_unwanted` returns true, in one pass. It is called for each
 * child once, in order, and must not edit. Returns how many were removed.
 */
size_t graft_json_remove_each(struct graft_json_document *document, struct graft_json_node *container,
			      bool (*is_unwanted)(struct graft_json_node *child, void *arg), void *arg);
/*
 * Sorts the elements of an array into the order of `order`, which contains each of them once. An
 * array that already has that order is not changed.
 */
int graft_json_reorder(struct graft_json_document *document, struct graft_json_node *array,
		       struct graft_json_node *const *order, size_t n, struct graft_error *err);

#endif
