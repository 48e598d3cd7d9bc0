/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml: a TOML 1.0 document that keeps its text. Reading builds a tree of values, each with the bytes it stands at; an edit replaces,
 * inserts or deletes bytes of the text, so comments, order, layout and unknown keys stay as they were written.
 * docs/decisions/0008-toml.md says why it is our own. The rules are those of TOML 1.0.0 (https://toml.io/en/v1.0.0).
 *
 * Limits: 16 MiB of text, 128 levels, 1,000,000 values (GRAFT_TOO_BIG).
 *
 * A `path` names a value as a dotted key of TOML does: "nvidia-container-cli.root", `a."b.c".d`. It does not lead into arrays.
 *
 *	bool debug = false;	the default
 *	if (graft_toml_get_bool(toml, "nvidia-container-cli.load-kmods", &debug, err) < 0)
 *		return -1;
 */
#ifndef GRAFT_FORMATS_TOML_H
#define GRAFT_FORMATS_TOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

struct graft_toml;

/*
 * Parses `length` bytes, which are copied. `name` is the file that errors speak of ("/etc/nvidia-container-runtime/config.toml").
 * The result is released with graft_toml_free(). -1: GRAFT_FORMAT with name, line and column (in characters, from 1) and what is
 * wrong; GRAFT_TOO_BIG; GRAFT_NO_MEMORY.
 */
int graft_toml_parse(const char *name, const char *text, size_t length, struct graft_toml **ret_toml,
		     struct graft_error *err);
/* Frees the document and everything read from it. NULL is fine. */
void graft_toml_free(struct graft_toml *toml);
#define auto_toml __attribute__((cleanup(graft_toml_cleanup)))
void graft_toml_cleanup(struct graft_toml **toml);

/* The document's text as it is now, byte for byte what was parsed where nothing was edited; lives until the next edit. */
const char *graft_toml_text(const struct graft_toml *toml, size_t *ret_length);

/*
 * Reading. 0 when the value is there and of the wanted type, or when it is not there: then the result is left alone, so that it
 * can hold the default. -1 with GRAFT_FORMAT when it is of another type (name, line, column, key, the value and what is
 * allowed), or when a part of the path is no table; GRAFT_INVALID when `path` is no key.
 */
/* Of a path that is no key, and of one with quotes when memory is exhausted: false. */
bool graft_toml_has(const struct graft_toml *toml, const char *path);
/* The string lives until the next edit. One that holds a NUL is refused: it would be cut unseen. */
int graft_toml_get_string(const struct graft_toml *toml, const char *path, const char **ret_string,
			  struct graft_error *err);
int graft_toml_get_bool(const struct graft_toml *toml, const char *path, bool *ret_bool, struct graft_error *err);
int graft_toml_get_integer(const struct graft_toml *toml, const char *path, int64_t *ret_integer,
			   struct graft_error *err);
/* An array that holds strings alone. The list and its strings are copies in `arena`. */
int graft_toml_get_strings(const struct graft_toml *toml, const char *path, struct graft_arena *arena,
			   const char ***ret_strings, size_t *ret_n, struct graft_error *err);
/*
 * Reports that the value at `path` is none of those allowed, in the words of the getters: "NAME: line 3, column 8: KEY is VALUE; allowed:
 * ALLOWED". Always -1, with GRAFT_FORMAT.
 */
int graft_toml_refuse(const struct graft_toml *toml, const char *path, const char *allowed, struct graft_error *err);
/* Line and column, from 1, of the value at `path`; 0 and 0 when it is not there. */
void graft_toml_position(const struct graft_toml *toml, const char *path, size_t *ret_line, size_t *ret_column);
/* The name that was given to graft_toml_parse(). */
const char *graft_toml_name(const struct graft_toml *toml);

/*
 * Editing. A failure (-1) leaves the document as it was. Every edit is parsed again before it counts, so no document can be made that a
 * strict reader refuses. An edit that changes nothing changes no byte: setting the value that is there already keeps its spelling.
 *
 * graft_toml_set: `value` is one value in TOML's own spelling (`"text"`, `[1, 2]`). What is there is replaced in place, a comment
 * behind it stays. A new key goes behind the last one of its table; a table that is missing is added as [a.b] at the document's end;
 * inside an inline table the key is added in front of the brace. GRAFT_INVALID: `value` is not one value, the path is no key, a part of it
 * is no table, or it names a table that is no inline table (remove that first).
 */
int graft_toml_set(struct graft_toml *toml, const char *path, const char *value, struct graft_error *err);
int graft_toml_set_string(struct graft_toml *toml, const char *path, const char *string, struct graft_error *err);
int graft_toml_set_bool(struct graft_toml *toml, const char *path, bool value, struct graft_error *err);
int graft_toml_set_integer(struct graft_toml *toml, const char *path, int64_t value, struct graft_error *err);
int graft_toml_set_strings(struct graft_toml *toml, const char *path, const char *const *strings, size_t n,
			   struct graft_error *err);
/* Appends a string as TOML's basic string, with its quotes. What is no UTF-8 is refused when the document is parsed. */
void graft_toml_quote(struct graft_buffer *out, const char *string);
/*
 * Removes the value or the table at `path`, with everything below it: whole lines, with the comment behind a value and those inside
 * a table. Comments above stay; so does the last block of comments under a table when an empty line sets it off, since it speaks of
 * what follows. What is not there is removed already (0). Tables that existed only by the removed key's name go with it.
 */
int graft_toml_remove(struct graft_toml *toml, const char *path, struct graft_error *err);

/*
 * Makes what is at `path` mean what is at `from_path` of another document: a value, or a table with everything below it. What means the same
 * already keeps its bytes; keys that the other table lacks go; new values are spelled as they are there, new tables get headers. Nothing at `from_path`: it
 * is removed. GRAFT_INVALID: a part of `path` is no table.
 */
int graft_toml_assign(struct graft_toml *toml, const char *path, const struct graft_toml *from, const char *from_path,
		      struct graft_error *err);
/*
 * Puts a string last into the array at `path`, which is made when it is not there, on a line of its own where the others have theirs; and takes
 * every such string out of it (the array stays). GRAFT_FORMAT: it is no array, or one of tables.
 */
int graft_toml_append_string(struct graft_toml *toml, const char *path, const char *string, struct graft_error *err);
int graft_toml_remove_string(struct graft_toml *toml, const char *path, const char *string, struct graft_error *err);

/* Appends a name to a path, ".name" or `."a name"`, without the dot to an empty one. Failures stick to the buffer. */
void graft_toml_add_name(struct graft_buffer *path, const char *name);
/*
 * The names of the members of the table at `path` (NULL = the document), in the order of their first mention, as copies in `arena`; none when it is
 * not there. GRAFT_FORMAT: it is no table, or a name holds a NUL.
 */
int graft_toml_get_names(const struct graft_toml *toml, const char *path, struct graft_arena *arena,
			 const char ***ret_names, size_t *ret_n, struct graft_error *err);
enum graft_toml_kind {
	GRAFT_TOML_ABSENT,
	GRAFT_TOML_VALUE, /* arrays and arrays of tables too */
	GRAFT_TOML_TABLE,
};
/* What is at `path`. -1: it is no key, or memory. */
int graft_toml_get_kind(const struct graft_toml *toml, const char *path, enum graft_toml_kind *ret_kind,
			struct graft_error *err);
/* Whether what is at `path` (NULL = the document) means the same in both, whatever its layout, spelling and order; also when neither has it. As with graft_toml_has(). */
bool graft_toml_is_same(const struct graft_toml *toml, const struct graft_toml *other, const char *path);

/*
 * Appends the document as JSON in the tagged form of the public suite toml-test: tables and arrays as they are, every
 * other value as {"type": "integer", "value": "1"}. Floats keep their spelling less underscores and a plus; dates have T and Z.
 * -1: GRAFT_NO_MEMORY.
 */
int graft_toml_to_json(const struct graft_toml *toml, struct graft_buffer *out, struct graft_error *err);

#endif
