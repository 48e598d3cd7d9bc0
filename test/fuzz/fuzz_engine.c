/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as an engine's configuration; the byte in front says how. What was configured once is not changed by a second time, and can be undone. */
#include "engine/engine.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "docker", "containerd", "crio", "podman" };
	struct graft_arena *arena = graft_arena_new((size_t)64 << 20);
	const struct graft_engine *engine = graft_engine_find(names[size > 0 ? data[0] % 4 : 0]);
	struct graft_engine_request request = { .runtime_name = "n", .runtime_path = "/x", .config.path = "/c/f" };
	struct graft_engine_changes once, twice;

	request.set_as_default = size > 0 && data[0] & 4;
	request.enable_cdi = size > 0 && data[0] & 8;
	request.config.text.bytes = size > 1 ? graft_arena_strndup(arena, (const char *)data + 1, size - 1) : NULL;
	request.config.text.length = size > 1 ? size - 1 : 0;
	if (size < 65536 && engine->configure(&request, arena, &once, NULL) == 0) {
		request.config.text = once.edits[0].text;
		if (engine->configure(&request, arena, &twice, NULL) < 0 ||
		    graft_engine_edit_changes(&twice.edits[0]) || engine->undo(&request, arena, &twice, NULL) < 0)
			__builtin_trap();
	}
	(void)graft_arena_free(arena);
	return 0;
}
