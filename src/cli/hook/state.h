/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state: the two texts that a hook gets: the container's state on standard input, and the bundle's
 * config.json. The first is from the runtime; the second contains text from the image.
 */
#ifndef GRAFT_CLI_HOOK_STATE_H
#define GRAFT_CLI_HOOK_STATE_H

#include "base/arena.h"
#include "base/error.h"
#include "formats/oci_spec.h"

#define HOOK_TEXT_MAX ((size_t)16 << 20)

/*
 * Reads and parses one JSON object from `fd` without waiting for more, since a runtime may keep the
 * pipe open. Input that ends early is left to the parser to refuse. -1: "could not decode container
 * state: ...".
 */
int hook_state_read(int fd, struct graft_arena *arena, struct graft_oci_state *ret_state, struct graft_error *err);

/*
 * The bundle's directory as an absolute path: that of the state, or the working directory. NULL:
 * *err is set.
 */
const char *hook_bundle(const struct graft_oci_state *state, struct graft_arena *arena, struct graft_error *err);

/*
 * Reads <bundle>/config.json and checks that it has what a hook needs (SPEC runtime-and-hook 11.2
 * step 3). The document holds the strings; the caller frees it, also on failure. -1: "could not
 * open OCI spec: ...", "could not decode OCI spec: ...", "Version is empty in OCI spec" and so on.
 */
int hook_spec_read(const char *bundle, struct graft_arena *arena, struct graft_json_document **ret_document,
		   struct graft_oci_spec *ret_spec, struct graft_error *err);

#endif
