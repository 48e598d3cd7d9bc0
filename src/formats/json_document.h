/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_document: a JSON text that is edited without loss. Reading builds a tree whose nodes remember the bytes they stand at; what
 * is not edited is written byte for byte as it was read: number spelling, key order, escapes, white space, unknown members.
 * docs/decisions/0009-lossless-json.md says why it is not json-c.
 *
 * The grammar is strict: RFC 8259, one value, nothing behind it but white space. Values are not: malformed UTF-8 and lone surrogates read as
 * U+FFFD, as Go's decoder has it, and numbers may have any size; all of them are written back as they are. Limits: 16 MiB of text, 512
 * levels (GRAFT_TOO_BIG).
 *
 * Names of members are compared as Go's decoder does, which the low-level runtimes use: exactly or without regard to case, and the last of
 * several wins. Only a map's keys (annotations) are exact: read those in a loop, and set them by graft_json_set_key(). Functions that edit refuse an object in which the name they edit occurs more than once: what one reader takes for
 * the value another one does not.
 */
#ifndef GRAFT_FORMATS_JSON_DOCUMENT_H
#define GRAFT_FORMATS_JSON_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

struct graft_json_document;
struct graft_json_node; /* belongs to its document; NULL stands for "not there" in every function that reads */

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
 * Parses `length` bytes, which are copied. `name` is the file that errors speak of. -1: GRAFT_FORMAT with name, line, column and
 * what is wrong; GRAFT_TOO_BIG; GRAFT_NO_MEMORY. Time and memory grow with the length alone.
 */
int graft_json_document_parse(const char *name, const char *text, size_t length,
			      struct graft_json_document **ret_document, struct graft_error *err);
/*
 * The same for the first value of a text that may go on: what follows is not looked at, and written back as it is. The low-level runtimes read
 * config.json and state so. `name` NULL: errors say "invalid JSON at line ...".
 */
int graft_json_document_parse_first(const char *name, const char *text, size_t length,
				    struct graft_json_document **ret_document, struct graft_error *err);
/*
 * The same as graft_json_document_parse(), but what graft_json_node_string() and graft_json_node_name() give lives as long as `strings`, an arena of the
 * caller that outlives the document. A text that is not parsed leaves little in it, or nothing.
 */
int graft_json_document_parse_into(const char *name, const char *text, size_t length, struct graft_arena *strings,
				   struct graft_json_document **ret_document, struct graft_error *err);
/* NULL is fine. */
void graft_json_document_free(struct graft_json_document *document);
#define auto_json_document __attribute__((cleanup(graft_json_document_cleanup)))
void graft_json_document_cleanup(struct graft_json_document **document);

/* Whether any edit changed what would be written. */
bool graft_json_document_changed(const struct graft_json_document *document);
/* Appends the text; without edits the bytes that were parsed. -1: GRAFT_NO_MEMORY. */
int graft_json_document_write(const struct graft_json_document *document, struct graft_buffer *out,
			      struct graft_error *err);

/* Reading. */
struct graft_json_node *graft_json_document_root(const struct graft_json_document *document);
enum graft_json_kind graft_json_node_kind(const struct graft_json_node *node);
/* Of an object; NULL for anything else. */
struct graft_json_node *graft_json_node_member(const struct graft_json_node *object, const char *name);
/* The member at the end of a path of names, "linux.resources.devices"; NULL as soon as one is not there. */
struct graft_json_node *graft_json_node_at(const struct graft_json_node *object, const char *path);
/* Children of an array or object, in order. */
struct graft_json_node *graft_json_node_first(const struct graft_json_node *container);
struct graft_json_node *graft_json_node_next(const struct graft_json_node *node);
size_t graft_json_node_count(const struct graft_json_node *container);
/* Decoded; NULL when it is no string, or holds a NUL (which would cut it unseen). Lives as long as the document. */
const char *graft_json_node_string(const struct graft_json_node *node);
/* The decoded name of a member; NULL for the element of an array, and where it holds a NUL. */
const char *graft_json_node_name(const struct graft_json_node *node);
/* True and the value when it is a number without fraction and exponent that fits. */
bool graft_json_node_u64(const struct graft_json_node *node, uint64_t *ret_value);
bool graft_json_node_i64(const struct graft_json_node *node, int64_t *ret_value);
/* True when it is the literal true. */
bool graft_json_node_is_true(const struct graft_json_node *node);
/* Whether two values mean the same, of one document or of two: members in any order, numbers by their spelling. NULL is the same as NULL alone. */
bool graft_json_node_is_same(const struct graft_json_node *a, const struct graft_json_node *b);
/* Line and column, from 1, of where it stood when it was parsed; 0, 0 for a new one. */
void graft_json_node_position(const struct graft_json_node *node, unsigned int *ret_line, unsigned int *ret_column);

/*
 * Editing. New nodes belong to the document and stand nowhere until they are put somewhere; each may be put once. -1 or NULL:
 * GRAFT_NO_MEMORY, GRAFT_FORMAT (a member that is edited is of another kind than needed, or occurs twice; a new string is not UTF-8),
 * GRAFT_INTERNAL (a node is put twice). A failed edit changes nothing. Where a string, number or boolean is replaced by an equal one nothing is
 * changed either: the old node stays, and the new one stands nowhere.
 *
 * New nodes look like their neighbours (json_write.c says how): compact stays compact, pretty stays pretty.
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
/* A value of another document, or of this one, with all that is in it. */
struct graft_json_node *graft_json_new_copy(struct graft_json_document *document, const struct graft_json_node *node,
					    struct graft_error *err);
/* The object or array at a path of names, made (with what leads to it) where it is not there or null. */
struct graft_json_node *graft_json_make(struct graft_json_document *document, const char *path,
					enum graft_json_kind kind, struct graft_error *err);
/* Replaces the member's value in its place, or puts it last. */
int graft_json_set(struct graft_json_document *document, struct graft_json_node *object, const char *name,
		   struct graft_json_node *value, struct graft_error *err);
/* The same for an object that is a map (annotations, net devices): its keys are compared exactly. */
int graft_json_set_key(struct graft_json_document *document, struct graft_json_node *map, const char *key,
		       struct graft_json_node *value, struct graft_error *err);
/* Puts an element last. */
int graft_json_append(struct graft_json_document *document, struct graft_json_node *array,
		      struct graft_json_node *value, struct graft_error *err);
/* Replaces one value, an element or a member, by a new one in its place. */
int graft_json_replace(struct graft_json_document *document, struct graft_json_node *node,
		       struct graft_json_node *value, struct graft_error *err);
/* Takes an element or member out. It is not used again. */
void graft_json_remove(struct graft_json_document *document, struct graft_json_node *node);
/*
 * Puts the elements of an array into the order of `order`, which holds each of them once. An array that is in that order already is not
 * changed.
 */
int graft_json_reorder(struct graft_json_document *document, struct graft_json_node *array,
		       struct graft_json_node *const *order, size_t n, struct graft_error *err);

#endif
