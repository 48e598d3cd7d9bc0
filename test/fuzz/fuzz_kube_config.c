/* SPDX-License-Identifier: Apache-2.0 */
/* The config file of the programs for Kubernetes: what is read, once it is written, is read as the same again. */
#include <string.h>

#include "fuzz.h"
#include "kubernetes/kube_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)64 << 20);
	struct graft_buffer first = { .max = 0 }, second = { .max = 0 };
	struct graft_kube_config config;

	graft_kube_config_default(&config);
	if (arena && graft_kube_config_parse("fuzz", (const char *)data, size, NULL, arena, &config, NULL) == 0) {
		graft_kube_config_write(&config, &first);
		if (graft_kube_config_parse("again", first.bytes, first.length, NULL, arena, &config, NULL) < 0)
			__builtin_trap();
		graft_kube_config_write(&config, &second);
		if (strcmp(graft_buffer_text(&first), graft_buffer_text(&second)) != 0)
			__builtin_trap();
	}
	graft_buffer_done(&first);
	graft_buffer_done(&second);
	(void)graft_arena_free(arena);
	return 0;
}
