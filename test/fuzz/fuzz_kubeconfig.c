/* SPDX-License-Identifier: Apache-2.0 */
/* A kubeconfig: what is accepted names a server, and sends nothing that could end a line of a request. */
#include <string.h>

#include "cluster/cluster_config.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)64 << 20);
	struct graft_cluster_config config;

	if (arena && graft_kubeconfig_parse("/fuzz/config", (const char *)data, size, arena, &config, NULL) == 0) {
		if (strncmp(config.server, "http", 4) != 0 || strpbrk(config.server, " \r\n") ||
		    (config.token && strpbrk(config.token, " \r\n")))
			__builtin_trap();
		if (strncmp(config.server, "https://", 8) != 0 &&
		    (config.token || config.token_file || config.key.data))
			__builtin_trap();
	}
	(void)graft_arena_free(arena);
	return 0;
}
