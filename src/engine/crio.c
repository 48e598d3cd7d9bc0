/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crio: CRI-O's crio.conf and its drop-ins, which CRI-O merges key by key (SPEC ctk-and-cdi 1.1
 * "CRI-O"). The runtime goes into the drop-in or, without one, into the top-level file.
 */
#include "base/cleanup.h"
#include "engine/toml_config.h"

#define NAME "crio"

static const char default_key[] = "crio.runtime.default_runtime";

static int make_crio_runtime(const struct graft_engine_request *request, struct graft_arena *arena,
			     struct graft_engine_changes *changes, struct graft_toml **ret_table,
			     struct graft_error *err)
{
	static const char *const runtimes[] = { "crio", "runtime", "runtimes", NULL };
	auto_toml struct graft_toml *source = NULL, *table = NULL;
	bool printed = request->source.bytes != NULL;
	const char *tried;

	if (engine_toml_open(NAME, printed ? request->source_name : request->config.path,
			     printed ? &request->source : &request->config.text, "", &source, err) < 0)
		return -1;
	if (engine_toml_inherit(source, runtimes, default_key, request->runtime_name, arena, &table, &tried, err) < 0)
		return graft_wrap(err, "unable to update config");
	if (tried &&
	    engine_note(changes, arena, ENGINE_WARNS, err, "Could not infer options from runtimes %s", tried) < 0)
		return -1;
	if (graft_toml_set_string(table, "runtime.runtime_path", request->runtime_path, err) < 0 ||
	    graft_toml_set_string(table, "runtime.runtime_type", "oci", err) < 0)
		return graft_wrap(err, "unable to update config");
	*ret_table = TAKE_PTR(table);
	return 0;
}

static int configure_crio(const struct graft_engine_request *request, struct graft_arena *arena,
			  struct graft_engine_changes *ret_changes, struct graft_error *err)
{
	const char *const place[] = { "crio", "runtime", "runtimes", request->runtime_name, NULL };
	const char *key = engine_key(arena, place);
	auto_toml struct graft_toml *toml = NULL, *table = NULL;

	*ret_changes = (struct graft_engine_changes){ .n_edits = 0 };
	if (!key)
		return graft_fail_memory(err);
	if (make_crio_runtime(request, arena, ret_changes, &table, err) < 0 ||
	    engine_toml_open_target(NAME, request, &toml, err) < 0)
		return -1;
	if (graft_toml_assign(toml, key, table, "runtime", err) < 0 ||
	    engine_toml_default(toml, default_key, request->runtime_name, request->set_as_default, err) < 0)
		return graft_wrap(err, "unable to update config");
	return engine_toml_edit(toml, ret_changes, arena, engine_toml_target(request), NULL, err);
}

static int undo_crio(const struct graft_engine_request *request, struct graft_arena *arena,
		     struct graft_engine_changes *ret_changes, struct graft_error *err)
{
	const char *const runtime[] = { "crio", "runtime", "runtimes", request->runtime_name, NULL };
	static const char *const default_place[] = { "crio", "runtime", "default_runtime", NULL };
	const struct graft_engine_file *target = engine_toml_target(request);
	auto_toml struct graft_toml *toml = NULL, *backup = NULL;

	*ret_changes = (struct graft_engine_changes){ .n_edits = 0 };
	if (!target->text.bytes)
		return 0;
	if (engine_toml_open_target(NAME, request, &toml, err) < 0 ||
	    engine_toml_open_backup(NAME, target, &backup, err) < 0)
		return -1;
	if ((!request->keeps_runtime && engine_toml_restore(toml, runtime, backup, arena, err) < 0) ||
	    engine_toml_restore_default(toml, default_place, request->runtime_name, backup, arena, err) < 0)
		return graft_wrap(err, "unable to update config");
	return engine_toml_undo(toml, backup, ret_changes, arena, target, NULL, err);
}

const struct graft_engine graft_engine_crio = {
	.name = NAME,
	.config_path = "/etc/crio/crio.conf",
	.drop_in_path = "/etc/crio/crio.conf.d/99-nvidia.toml",
	.needs_absolute_path = true,
	.configure = configure_crio,
	.undo = undo_crio,
};
