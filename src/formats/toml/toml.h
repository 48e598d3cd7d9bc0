/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml: a TOML 1.0 document that keeps its text. Reading builds a tree of values, each of which
 * remembers its bytes in the text. Edits replace, insert or delete bytes of the text, so comments,
 * order, layout and unknown keys are preserved. docs/decisions/0008-toml.md explains why it is our
 * own. The rules are those of TOML 1.0.0 (https://toml.io/en/v1.0.0).
 *
 * Limits: 16 MiB of text, 128 levels, 1,000,000 values (GRAFT_TOO_BIG).
 *
 * A `path` names a value by a dotted key of TOML: "nvidia-container-cli.root", `a."b.c".d`. It
 * cannot reach into arrays.
 *
 *	bool debug = false;	the default
 *	if (graft_toml_get_bool(toml, "nvidia-container-cli.load-kmods", &debug, err) < 0)
 *		return -1;
 */
#ifndef GRAFT_FORMATS_TOML_TOML_H
#define GRAFT_FORMATS_TOML_TOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

struct graft_toml;

/*
 * Parses `length` bytes, which are copied. `name` is the file name for error messages
 * ("/etc/nvidia-container-runtime/config.toml"). Release the result with graft_toml_free(). Returns
 * 0, or -1 with GRAFT_FORMAT (with name, line and column, in characters from 1, and what is wrong),
 * GRAFT_TOO_BIG or GRAFT_NO_MEMORY.
 */
int graft_toml_parse(const char *name, const char *text, size_t length, struct graft_toml **ret_toml,
		     struct graft_error *err);
/* Frees the document and everything read from it. NULL is allowed. */
void graft_toml_free(struct graft_toml *toml);
#define auto_toml __attribute__((cleanup(graft_toml_cleanup)))
void graft_toml_cleanup(struct graft_toml **toml);

/*
 * Returns the document's current text, byte for byte as parsed where it was not edited. It lives
 * until the next edit.
 */
const char *graft_toml_text(const struct graft_toml *toml, size_t *ret_length);

/*
 * Reading. The getters return 0 if the value exists and has the requested type. They also return 0
 * if it does not exist; the result is left unchanged then, so that it can hold the default. They
 * return -1 with GRAFT_FORMAT if it has another type (with name, line, column, key, the value and
 * what is allowed) or if a part of the path is not a table, and with GRAFT_INVALID if `path` is not
 * a key.
 */
/* Returns false also if the path is not a key, or if it has quotes and memory is exhausted. */
bool graft_toml_has(const struct graft_toml *toml, const char *path);
/*
 * The string lives until the next edit. A string with a NUL is refused: it would be silently
 * truncated.
 */
int graft_toml_get_string(const struct graft_toml *toml, const char *path, const char **ret_string,
			  struct graft_error *err);
int graft_toml_get_bool(const struct graft_toml *toml, const char *path, bool *ret_bool, struct graft_error *err);
int graft_toml_get_integer(const struct graft_toml *toml, const char *path, int64_t *ret_integer,
			   struct graft_error *err);
/* For arrays of strings only. The list and its strings are copies in `arena`. */
int graft_toml_get_strings(const struct graft_toml *toml, const char *path, struct graft_arena *arena,
			   const char ***ret_strings, size_t *ret_n, struct graft_error *err);
/*
 * Reports that the value at `path` is not allowed, in the same form as the getters: "NAME: line 3,
 * column 8: KEY is VALUE; allowed: ALLOWED". Always returns -1, with GRAFT_FORMAT.
 */
int graft_toml_refuse(const struct graft_toml *toml, const char *path, const char *allowed, struct graft_error *err);
/* Returns line and column, from 1, of the value at `path`; 0 and 0 if it does not exist. */
void graft_toml_position(const struct graft_toml *toml, const char *path, unsigned int *ret_line,
			 unsigned int *ret_column);
/* Returns the name passed to graft_toml_parse(). */
const char *graft_toml_name(const struct graft_toml *toml);

/*
 * Editing. On failure (-1) the document is unchanged. The result of each edit is parsed before it
 * takes effect, so no document can be created that a strict reader refuses. An edit without effect
 * changes no byte: setting a value to what it already is keeps its spelling.
 *
 * graft_toml_set: `value` is a single value as TOML spells it (`"text"`, `[1, 2]`). An existing
 * value is replaced in place, and a comment after it stays. A new key is added after the last one
 * of its table. A missing table is added as [a.b] at the end of the document. Inside of an inline
 * table the key is added before the brace. Fails with GRAFT_INVALID if `value` is not a single
 * value, the path is not a key, a part of it is not a table, or it names a table that is not an
 * inline table (remove that first).
 */
int graft_toml_set(struct graft_toml *toml, const char *path, const char *value, struct graft_error *err);
int graft_toml_set_string(struct graft_toml *toml, const char *path, const char *string, struct graft_error *err);
int graft_toml_set_bool(struct graft_toml *toml, const char *path, bool value, struct graft_error *err);
int graft_toml_set_integer(struct graft_toml *toml, const char *path, int64_t value, struct graft_error *err);
int graft_toml_set_strings(struct graft_toml *toml, const char *path, const char *const *strings, size_t n,
			   struct graft_error *err);
/*
 * Appends a string as a basic string of TOML, with its quotes. If it is not UTF-8, parsing the
 * document will fail.
 */
void graft_toml_quote(struct graft_buffer *out, const char *string);
/*
 * Removes the value or table at `path` and everything below it: whole lines, with the comment after
 * a value and those inside of a table. Comments above stay. So does the last block of comments in a
 * table if an empty line separates it, since it belongs to what follows. Tables that existed only
 * because they were named in the removed key are removed with it. Returns 0, also if there is
 * nothing to remove, or -1.
 */
int graft_toml_remove(struct graft_toml *toml, const char *path, struct graft_error *err);

/*
 * Makes the value or table at `path` equal to that at `from_path` of another document. Parts that
 * are equal already keep their bytes; keys that the other table lacks are removed; new values are
 * spelled as in the other document, and new tables get headers. If nothing exists at `from_path`,
 * `path` is removed. Fails with GRAFT_INVALID if a part of `path` is not a table.
 */
int graft_toml_assign(struct graft_toml *toml, const char *path, const struct graft_toml *from, const char *from_path,
		      struct graft_error *err);
/*
 * Append a string to the array at `path`, which is created if missing, on a line of its own if the
 * others have theirs; and remove every such string from it (the array stays). Fail with
 * GRAFT_FORMAT if it is not an array, or an array of tables.
 */
int graft_toml_append_string(struct graft_toml *toml, const char *path, const char *string, struct graft_error *err);
int graft_toml_remove_string(struct graft_toml *toml, const char *path, const char *string, struct graft_error *err);

/*
 * Appends a name to a path, ".name" or `."a name"`, without the dot if the path is empty. Failures
 * are sticky in the buffer.
 */
void graft_toml_add_name(struct graft_buffer *path, const char *name);
/*
 * Returns the names of the members of the table at `path` (NULL: the document), in the order in
 * which they first occur, as copies in `arena`; none if the table does not exist. Fails with
 * GRAFT_FORMAT if it is not a table, or if a name contains a NUL.
 */
int graft_toml_get_names(const struct graft_toml *toml, const char *path, struct graft_arena *arena,
			 const char ***ret_names, size_t *ret_n, struct graft_error *err);
enum graft_toml_kind {
	GRAFT_TOML_ABSENT,
	GRAFT_TOML_VALUE, /* also arrays and arrays of tables */
	GRAFT_TOML_TABLE,
};
/* Returns what is at `path`. Fails (-1) if that is not a key, or if memory is exhausted. */
int graft_toml_get_kind(const struct graft_toml *toml, const char *path, enum graft_toml_kind *ret_kind,
			struct graft_error *err);
/*
 * Returns whether the values at `path` (NULL: the documents) are equal, ignoring layout, spelling
 * and order; also true if neither exists. A `path` that is not a key is treated as in
 * graft_toml_has().
 */
bool graft_toml_is_same(const struct graft_toml *toml, const struct graft_toml *other, const char *path);

#endif
