/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registered: which programs an engine's configuration names as runtimes, for callers that inherit
 * from it (SPEC installer-and-nri 3 step 3) or compare it with what is installed.
 */
#include <string.h>

#include "base/cleanup.h"
#include "engine/toml_config.h"
#include "formats/json/json_document.h"

/* Reads one string of a document, as a copy; NULL if it has none. */
static int copy_registered(const struct graft_toml *toml, const char *const *names, struct graft_arena *arena,
			   const char **ret_string, struct graft_error *err)
{
	const char *key = engine_key(arena, names), *string = NULL;

	if (!key)
		return graft_fail_memory(err);
	if (graft_toml_get_string(toml, key, &string, err) < 0)
		return -1;
	*ret_string = string ? graft_arena_strdup(arena, string) : NULL;
	return string && !*ret_string ? graft_fail_memory(err) : 0;
}

static int read_registered_containerd(const struct graft_toml *toml, const char *runtime, struct graft_arena *arena,
				      const char **ret_path, struct graft_error *err)
{
	static const char *const plugins[] = { "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "cri" };

	for (size_t i = 0; i < GRAFT_COUNT(plugins) && !*ret_path; i++) {
		const char *const binary[] = { "plugins", plugins[i], "containerd", "runtimes",
					       runtime,   "options",  "BinaryName", NULL };
		const char *const default_name[] = { "plugins", plugins[i], "containerd", "default_runtime_name",
						     NULL };

		if (copy_registered(toml, runtime ? binary : default_name, arena, ret_path, err) < 0)
			return -1;
	}
	return 0;
}

static int read_registered_crio(const struct graft_toml *toml, const char *runtime, struct graft_arena *arena,
				const char **ret_path, struct graft_error *err)
{
	const char *const path[] = { "crio", "runtime", "runtimes", runtime, "runtime_path", NULL };
	static const char *const default_name[] = { "crio", "runtime", "default_runtime", NULL };

	return copy_registered(toml, runtime ? path : default_name, arena, ret_path, err);
}

static int read_registered_docker(const char *name, const struct graft_engine_text *text, const char *runtime,
				  struct graft_arena *arena, const char **ret_path, struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;
	const struct graft_json_node *root, *node;
	const char *string;

	if (text->bytes[strspn(text->bytes, " \t\r\n")] == '\0')
		return 0;
	if (graft_json_document_parse(name, text->bytes, text->length, &document, err) < 0)
		return -1;
	root = graft_json_document_root(document);
	node = runtime ? graft_json_node_member(
			     graft_json_node_member(graft_json_node_member(root, "runtimes"), runtime), "path")
		       : graft_json_node_member(root, "default-runtime");
	string = graft_json_node_string(node);
	*ret_path = string ? graft_arena_strdup(arena, string) : NULL;
	return string && !*ret_path ? graft_fail_memory(err) : 0;
}

int graft_engine_registered(const struct graft_engine *engine, const char *name, const struct graft_engine_text *text,
			    const char *runtime, struct graft_arena *arena, const char **ret_path,
			    struct graft_error *err)
{
	auto_toml struct graft_toml *toml = NULL;
	int rc;

	*ret_path = NULL;
	if (!text->bytes)
		return 0;
	if (engine == &graft_engine_docker) {
		rc = read_registered_docker(name, text, runtime, arena, ret_path, err);
	} else {
		if (engine_toml_open(engine->name, name, text, "", &toml, err) < 0)
			return -1;
		rc = engine == &graft_engine_crio ? read_registered_crio(toml, runtime, arena, ret_path, err)
						  : read_registered_containerd(toml, runtime, arena, ret_path, err);
	}
	return rc < 0 ? graft_wrap(err, "unable to load config for runtime %s", engine->name) : 0;
}
