/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit_request: what a container requests in mode jit-cdi, as a request for the planner (SPEC
 * runtime-and-hook 7). Does not look at the host. Of the start it uses the configuration, the
 * container, the view of its config.json, the arena and the log.
 */
#ifndef GRAFT_START_JIT_REQUEST_H
#define GRAFT_START_JIT_REQUEST_H

#include "request/request.h"
#include "start/start.h"

/*
 * The requested names without the kind of this mode. *ret_foreign: how many are of another kind.
 * Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_jit_names(const struct graft_start *create, struct graft_strings *ret_names, size_t *ret_foreign,
		    struct graft_error *err);
/*
 * Adds to `request` the devices of these names, and everything else that the container requests.
 * -1: as the parsers of request/request.h.
 */
int graft_jit_request(const struct graft_start *create, const struct graft_strings *names,
		      struct graft_request *request, struct graft_error *err);

#endif
