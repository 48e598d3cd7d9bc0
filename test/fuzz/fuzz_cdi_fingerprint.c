/* SPDX-License-Identifier: Apache-2.0 */
/* The fingerprint in a specification, as a hook's variable; compared with itself it fits. */
#include <stdlib.h>

#include "fuzz.h"
#include "plan/cdi_fingerprint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	const char *variable = arena ? graft_arena_strndup(arena, (const char *)data, size) : NULL;
	struct graft_cdi_hook hook = { .env = &variable, .n_env = variable != NULL };
	const struct graft_cdi_spec spec = { .edits = { .hooks = &hook, .n_hooks = 1 } };
	struct graft_cdi_fingerprint made;
	const char *why = NULL;

	if (variable && graft_cdi_fingerprint_find(&spec, arena, &made, NULL) > 0 &&
	    graft_cdi_fingerprint_compare(&made, &made, arena, &why, NULL) == 0 && why)
		abort();
	(void)graft_arena_free(arena);
	return 0;
}
