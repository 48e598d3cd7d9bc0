/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_config: lets runtimes inherit from others, and removes what was put into a document. Knows
 * no particular engine.
 */
#include "engine/toml_config.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"

const char *engine_key(struct graft_arena *arena, const char *const *names)
{
	struct graft_buffer key = { 0 };
	const char *copy;

	for (; *names; names++)
		graft_toml_add_name(&key, *names);
	copy = graft_buffer_failed(&key) ? NULL : graft_arena_strdup(arena, graft_buffer_text(&key));
	graft_buffer_done(&key);
	return copy;
}

/* The general remedy for a malformed file is to remove it. */
static const char template_hint[] = "A template of K3s or RKE2 is not TOML. Restart them: they find the runtime "
				    "themselves. Or, with a release since March 2026, use --config=DIR/config.toml "
				    "--drop-in-config=DIR/config-v3.toml.d/99-nvidia.toml, with the directory of the "
				    "template.";

int engine_toml_open(const char *runtime, const char *name, const struct graft_engine_text *text, const char *otherwise,
		     struct graft_toml **ret_toml, struct graft_error *err)
{
	const char *bytes = text->bytes ? text->bytes : otherwise;

	if (graft_toml_parse(name, bytes, text->bytes ? text->length : strlen(otherwise), ret_toml, err) == 0)
		return 0;
	if (err && err->status == GRAFT_FORMAT && text->bytes && strstr(text->bytes, "{{") &&
	    strcmp(runtime, "containerd") == 0)
		(void)graft_with_hint(err, template_hint);
	return graft_wrap(err, "unable to load config for runtime %s", runtime);
}

const struct graft_engine_file *engine_toml_target(const struct graft_engine_request *request)
{
	return request->drop_in.path ? &request->drop_in : &request->config;
}

int engine_toml_open_target(const char *runtime, const struct graft_engine_request *request,
			    struct graft_toml **ret_toml, struct graft_error *err)
{
	const struct graft_engine_file *target = engine_toml_target(request);

	return engine_toml_open(runtime, target->path, &target->text,
				target == &request->drop_in ? ENGINE_DROP_IN_HEADER : "", ret_toml, err);
}

int engine_toml_open_backup(const char *runtime, const struct graft_engine_file *file, struct graft_toml **ret_backup,
			    struct graft_error *err)
{
	*ret_backup = NULL;
	return file->backup.bytes ? engine_toml_open(runtime, file->path, &file->backup, "", ret_backup, err) : 0;
}

/* Returns 1 if the runtime's table exists and was copied, 0 if it does not exist, or -1. */
static int copy_runtime(const struct graft_toml *source, const char *runtimes, const char *name,
			struct graft_arena *arena, struct graft_toml *table, struct graft_error *err)
{
	struct graft_buffer buffer = { 0 };
	enum graft_toml_kind kind;
	const char *key;

	graft_buffer_string(&buffer, runtimes);
	graft_toml_add_name(&buffer, name);
	key = graft_buffer_failed(&buffer) ? NULL : graft_arena_strdup(arena, graft_buffer_text(&buffer));
	graft_buffer_done(&buffer);
	if (!key)
		return graft_fail_memory(err);
	if (graft_toml_get_kind(source, key, &kind, err) < 0)
		return -1;
	if (kind == GRAFT_TOML_ABSENT)
		return 0;
	if (kind != GRAFT_TOML_TABLE)
		return graft_toml_refuse(source, key, "a table", err);
	return graft_toml_assign(table, "runtime", source, key, err) < 0 ? -1 : 1;
}

int engine_toml_inherit(const struct graft_toml *source, const char *const *runtimes, const char *default_key,
			const char *name, struct graft_arena *arena, struct graft_toml **ret_table,
			const char **ret_tried, struct graft_error *err)
{
	static const char section[] = "[runtime]\n";
	auto_toml struct graft_toml *table = NULL;
	const char *candidates[] = { "", "runc", "crun" }, *key = engine_key(arena, runtimes), *tried = "";

	if (!key)
		return graft_fail_memory(err);
	if (graft_toml_get_string(source, default_key, &candidates[0], err) < 0 ||
	    graft_toml_parse("runtime", section, strlen(section), &table, err) < 0)
		return -1;
	if (graft_starts_with(candidates[0], "nvidia") && strcmp(candidates[0], name) != 0)
		candidates[0] = "";
	*ret_tried = NULL;
	for (size_t i = 0; i < GRAFT_COUNT(candidates); i++) {
		int rc;

		if (!*candidates[i])
			continue;
		rc = copy_runtime(source, key, candidates[i], arena, table, err);
		if (rc < 0)
			return -1;
		if (rc > 0) {
			*ret_table = TAKE_PTR(table);
			return 0;
		}
		tried = graft_arena_printf(arena, "%s%s%s", tried, *tried ? " " : "", candidates[i]);
		if (!tried)
			return graft_fail_memory(err);
	}
	*ret_tried = graft_arena_printf(arena, "[%s]", tried);
	if (!*ret_tried)
		return graft_fail_memory(err);
	*ret_table = TAKE_PTR(table);
	return 0;
}

static int is_default_runtime(const struct graft_toml *toml, const char *key, const char *name, bool *ret_is,
			      struct graft_error *err)
{
	const char *value = NULL;

	if (graft_toml_get_string(toml, key, &value, err) < 0)
		return -1;
	*ret_is = value && strcmp(value, name) == 0;
	return 0;
}

int engine_toml_default(struct graft_toml *toml, const char *key, const char *name, bool set, struct graft_error *err)
{
	bool is;

	if (set)
		return graft_toml_set_string(toml, key, name, err);
	if (is_default_runtime(toml, key, name, &is, err) < 0)
		return -1;
	return is ? graft_toml_remove(toml, key, err) : 0;
}

static int is_empty_table(const struct graft_toml *toml, const char *key, struct graft_arena *arena, bool *ret_empty,
			  struct graft_error *err)
{
	enum graft_toml_kind kind;
	const char **names;
	size_t n = 0;

	*ret_empty = false;
	if (graft_toml_get_kind(toml, key, &kind, err) < 0)
		return -1;
	if (kind != GRAFT_TOML_TABLE)
		return 0;
	if (graft_toml_get_names(toml, key, arena, &names, &n, err) < 0)
		return -1;
	*ret_empty = n == 0;
	return 0;
}

int engine_toml_restore(struct graft_toml *toml, const char *const *names, const struct graft_toml *backup,
			struct graft_arena *arena, struct graft_error *err)
{
	const char *above[ENGINE_MAX_NAMES + 1], *key = engine_key(arena, names);
	enum graft_toml_kind kind = GRAFT_TOML_ABSENT;
	size_t n = 0;

	if (!key)
		return graft_fail_memory(err);
	if (backup && graft_toml_get_kind(backup, key, &kind, err) < 0)
		return -1;
	if (kind != GRAFT_TOML_ABSENT)
		return graft_toml_assign(toml, key, backup, key, err);
	if (graft_toml_remove(toml, key, err) < 0)
		return -1;
	while (names[n])
		n++;
	memcpy(above, names, n * sizeof(*names));
	while (n > 1) {
		bool empty;

		above[--n] = NULL;
		key = engine_key(arena, above);
		if (!key)
			return graft_fail_memory(err);
		if (backup && graft_toml_get_kind(backup, key, &kind, err) < 0)
			return -1;
		if (kind != GRAFT_TOML_ABSENT)
			break;
		if (is_empty_table(toml, key, arena, &empty, err) < 0 ||
		    (empty && graft_toml_remove(toml, key, err) < 0))
			return -1;
	}
	return 0;
}

int engine_toml_put_default_back(struct graft_toml *toml, const char *const *names, const char *name,
				 const struct graft_toml *backup, struct graft_arena *arena, struct graft_error *err)
{
	const char *key = engine_key(arena, names), *now = NULL;
	bool was = false;

	if (!key)
		return graft_fail_memory(err);
	if (graft_toml_get_string(toml, key, &now, err) < 0 ||
	    (backup && is_default_runtime(backup, key, name, &was, err) < 0))
		return -1;
	return was && !now ? graft_toml_assign(toml, key, backup, key, err) : 0;
}

int engine_toml_restore_default(struct graft_toml *toml, const char *const *names, const char *name,
				const struct graft_toml *backup, struct graft_arena *arena, struct graft_error *err)
{
	const char *key = engine_key(arena, names);
	bool is;

	if (!key)
		return graft_fail_memory(err);
	if (is_default_runtime(toml, key, name, &is, err) < 0)
		return -1;
	return is ? engine_toml_restore(toml, names, backup, arena, err)
		  : engine_toml_put_default_back(toml, names, name, backup, arena, err);
}

int engine_toml_edit(const struct graft_toml *toml, struct graft_engine_changes *changes, struct graft_arena *arena,
		     const struct graft_engine_file *file, const char *label, struct graft_error *err)
{
	size_t length;
	const char *text = graft_toml_text(toml, &length);

	return engine_edit(changes, arena, file, label, text, length, err);
}

/* Whether every line with a comment, except our header, is in the other text too. */
static bool has_comments_of(const struct graft_engine_text *text, const char *lines)
{
	while (*lines) {
		size_t n = strcspn(lines, "\n"), with_newline = n + (lines[n] == '\n');
		bool ours = graft_starts_with(lines, ENGINE_DROP_IN_MARK);

		if (memchr(lines, '#', n) && !ours && !memmem(text->bytes, text->length, lines, n))
			return false;
		lines += with_newline;
	}
	return true;
}

int engine_toml_undo(const struct graft_toml *toml, const struct graft_toml *backup,
		     struct graft_engine_changes *changes, struct graft_arena *arena,
		     const struct graft_engine_file *file, const char *label, struct graft_error *err)
{
	const char **names;
	size_t n, length;
	const char *text = graft_toml_text(toml, &length);

	if (backup && graft_toml_is_same(toml, backup, NULL) && has_comments_of(&file->backup, text))
		return engine_edit(changes, arena, file, label, file->backup.bytes, file->backup.length, err);
	if (graft_toml_get_names(toml, NULL, arena, &names, &n, err) < 0)
		return -1;
	if (n == 0 && !backup)
		return engine_edit(changes, arena, file, label, NULL, 0, err);
	return engine_toml_edit(toml, changes, arena, file, label, err);
}
