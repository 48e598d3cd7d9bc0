/* SPDX-License-Identifier: Apache-2.0 */
/* Any config.toml: it is refused with a reason, or it gives a value for every key. */
#include "../unit/request/config_text.h"
#include "formats/toml/toml.h"
#include "fuzz.h"
#include "request/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)8 << 20);
	struct graft_buffer json = { 0 };
	auto_toml struct graft_toml *toml = NULL;
	struct graft_config config;
	struct graft_error err = { 0 };

	if (arena && size <= 65536 && graft_toml_parse("fuzz", (const char *)data, size, &toml, NULL) == 0) {
		if (graft_config_read(toml, NULL, arena, &config, &err) == 0)
			config_text(&config, &json);
		else if (err.status == GRAFT_OK || err.msg[0] == '\0')
			__builtin_trap();
	}
	graft_buffer_done(&json);
	graft_arena_free(arena);
	return 0;
}
