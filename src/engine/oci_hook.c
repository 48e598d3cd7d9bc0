/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_hook: the JSON of a hook in the hooks.d directories of CRI-O and Podman (SPEC ctk-and-cdi 1.1
 * "OCI hook mode").
 */
#include "base/buffer.h"
#include "base/path.h"
#include "base/strings.h"
#include "engine/engine.h"
#include "formats/json/json.h"

static const char search_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

int graft_engine_oci_hook(const char *hook_path, struct graft_arena *arena, struct graft_engine_text *ret_text,
			  struct graft_error *err)
{
	const char *name = graft_path_name(hook_path), *environment;
	size_t length = name > hook_path ? (size_t)(name - hook_path) - 1 : 0;
	struct graft_buffer text = { 0 };
	int rc = 0;

	environment = length == 0 || graft_list_has_bytes(search_path, ':', hook_path, length)
			  ? graft_arena_printf(arena, "PATH=%s", search_path)
			  : graft_arena_printf(arena, "PATH=%s:%.*s", search_path, (int)length, hook_path);
	if (!environment)
		return graft_fail_memory(err);
	graft_buffer_string(&text, "{\n  \"version\": \"1.0.0\",\n  \"hook\": {\n    \"path\": ");
	graft_json_quote(&text, hook_path);
	graft_buffer_string(&text, ",\n    \"args\": [\n      ");
	graft_json_quote(&text, name);
	graft_buffer_string(&text, ",\n      \"prestart\"\n    ],\n    \"env\": [\n      ");
	graft_json_quote(&text, environment);
	graft_buffer_string(&text, "\n    ]\n  },\n  \"when\": {\n    \"always\": true,\n    \"commands\": [\n"
				   "      \".*\"\n    ]\n  },\n  \"stages\": [\n    \"prestart\"\n  ]\n}\n");
	ret_text->length = text.length;
	ret_text->bytes = graft_buffer_failed(&text) ? NULL : graft_arena_strdup(arena, graft_buffer_text(&text));
	if (!ret_text->bytes)
		rc = graft_fail_memory(err);
	graft_buffer_done(&text);
	return rc;
}
