/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json: strict reading, and writing, of our own JSON (inventory, request, policy, plan, the answer
 * of the NVML child). Refuses everything that readers interpret differently, so that no two of them
 * see different things: malformed UTF-8, lone surrogates, NUL in the names of members, integers
 * beyond int64/uint64, and more levels than expected. JSON of other programs is read by
 * json_document.h.
 */
#ifndef GRAFT_FORMATS_JSON_JSON_H
#define GRAFT_FORMATS_JSON_JSON_H

#include "base/buffer.h"
#include "base/error.h"
#include "formats/json/json_document.h"

/*
 * Parses exactly one JSON text of at most 16 MiB and `max_depth` levels. Returns 0, or -1 with
 * GRAFT_FORMAT "invalid JSON at line ..., column ...: what is wrong", GRAFT_TOO_BIG or
 * GRAFT_NO_MEMORY.
 */
int graft_json_parse(const char *text, size_t length, unsigned int max_depth, struct graft_json_document **ret_document,
		     struct graft_error *err);

/*
 * Appends `s` as a JSON string with its quotes. Invalid UTF-8 bytes become U+FFFD, control
 * characters are escaped.
 */
void graft_json_quote(struct graft_buffer *out, const char *s);

#endif
