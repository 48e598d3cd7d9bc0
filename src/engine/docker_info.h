/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docker_info: what a running Docker daemon reports about itself: its answer to "GET /info" (Docker
 * Engine API), which has the runtimes and CDI directories that the daemon uses now, whatever the
 * files contain. Bytes in, struct out; docker_info knows nothing of sockets.
 *
 * SECURITY: a rootless daemon belongs to an ordinary user, and root asks it too. The answer is
 * untrusted: strings with control characters, which a terminal would obey, are dropped.
 */
#ifndef GRAFT_ENGINE_DOCKER_INFO_H
#define GRAFT_ENGINE_DOCKER_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/* The request to send. The daemon closes an HTTP/1.0 connection after its answer. */
#define GRAFT_DOCKER_INFO_REQUEST "GET /info HTTP/1.0\r\nHost: docker\r\n\r\n"

struct graft_docker_runtime {
	const char *name;
	const char *path; /* NULL: none, as for runtimes with a shim of their own */
};

struct graft_docker_info {
	const char *version; /* "20.10.24"; NULL: not stated */
	struct graft_docker_runtime *runtimes;
	size_t n_runtimes;
	const char *default_runtime;
	const char **cdi_directories; /* none: the daemon does not read CDI specs */
	size_t n_cdi_directories;
};

/*
 * Parses the whole answer, with its HTTP header. The strings are in `arena`. Returns 0, or -1 with
 * GRAFT_FORMAT (no HTTP, another status than 200, no JSON object) or GRAFT_NO_MEMORY.
 */
int graft_docker_info_parse(const char *answer, size_t length, struct graft_arena *arena,
			    struct graft_docker_info *ret_info, struct graft_error *err);

#endif
