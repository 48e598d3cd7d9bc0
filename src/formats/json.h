/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json: the one place that knows the JSON library (json-c). Strict where the library is lax: no NaN, no trailing
 * bytes, no NUL in keys, no number outside int64/uint64 in integer form, a depth limit.
 * docs/decisions/0003-json-library.md says why json-c.
 */
#ifndef GRAFT_FORMATS_JSON_H
#define GRAFT_FORMATS_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

struct json_object;

/* Parses exactly one JSON text. The result is released with graft_json_free(). -1 with GRAFT_FORMAT: line and column, and what is wrong. */
int graft_json_parse(const char *text, size_t length, unsigned int max_depth, struct json_object **ret_json,
		     struct graft_error *err);
void graft_json_free(struct json_object *json);
#define auto_json __attribute__((cleanup(graft_json_cleanup)))
void graft_json_cleanup(struct json_object **json);

/*
 * Looking into a parsed text. Each takes anything, NULL included, so that calls can be nested: what is not of the asked kind or not there
 * gives false, 0 or NULL. Results live as long as the parsed text.
 */
bool graft_json_is_array(const struct json_object *json);
size_t graft_json_length(const struct json_object *array);
const struct json_object *graft_json_at(const struct json_object *array, size_t i);
const struct json_object *graft_json_member(const struct json_object *object, const char *name);
const char *graft_json_string(const struct json_object *json);

/* Appends `s` as a JSON string with quotes; invalid UTF-8 bytes become U+FFFD, controls are escaped. Needs no library. */
void graft_json_quote(struct graft_buffer *out, const char *s);

#endif
