/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json: our own forms of JSON (inventory, request, policy, plan, the answer of the NVML child): strict reading, and writing. What readers
 * disagree about is refused, so that two of them never see different things: malformed UTF-8, lone surrogates, NUL in the names of
 * members, integers beyond int64/uint64, more levels than asked for. Other people's JSON is read by json_document.h.
 */
#ifndef GRAFT_FORMATS_JSON_H
#define GRAFT_FORMATS_JSON_H

#include "base/buffer.h"
#include "base/error.h"
#include "formats/json_document.h"

/*
 * Parses exactly one JSON text of at most 16 MiB. -1: GRAFT_FORMAT "invalid JSON at line ..., column ...: what is wrong", GRAFT_TOO_BIG,
 * GRAFT_NO_MEMORY.
 */
int graft_json_parse(const char *text, size_t length, unsigned int max_depth, struct graft_json_document **ret_document,
		     struct graft_error *err);

/* Appends `s` as a JSON string with quotes; invalid UTF-8 bytes become U+FFFD, controls are escaped. */
void graft_json_quote(struct graft_buffer *out, const char *s);

#endif
