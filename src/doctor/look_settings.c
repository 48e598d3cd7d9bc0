/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_settings: what files of several engines have in common: TOML with user-defined names,
 * settings that CRI-O and Podman share, and the hook files that both read.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "doctor/look.h"
#include "formats/json/json_document.h"
#include "formats/toml/toml.h"

/* --- TOML --- */

const char *graft_health_toml_join(struct graft_health_look *look, const char *base, const char *name, const char *rest)
{
	struct graft_buffer path = { .max = 0 };
	const char *text;

	graft_buffer_string(&path, base);
	graft_toml_add_name(&path, name);
	graft_buffer_string(&path, rest);
	text = graft_buffer_failed(&path) ? NULL : graft_arena_strdup(look->scratch, graft_buffer_text(&path));
	graft_note_shortage(&look->survey.shortage, text ? 0 : -ENOMEM);
	graft_buffer_done(&path);
	return text;
}

const char *graft_health_toml_string(struct graft_health_look *look, struct graft_health_file *file,
				     const struct graft_toml *toml, const char *path)
{
	struct graft_error err = { .status = GRAFT_OK };
	const char *string = NULL;

	if (path && graft_toml_get_string(toml, path, &string, &err) < 0)
		graft_health_refuse(look, file, &err);
	return string;
}

void graft_health_toml_strings(struct graft_health_look *look, struct graft_health_file *file,
			       const struct graft_toml *toml, const char *path, const char ***ret_items, size_t *ret_n)
{
	struct graft_error err = { .status = GRAFT_OK };

	*ret_items = NULL;
	*ret_n = 0;
	if (path && graft_toml_get_strings(toml, path, look->arena, ret_items, ret_n, &err) < 0)
		graft_health_refuse(look, file, &err);
}

/* --- CRI-O and Podman --- */

/*
 * Returns the program of a runtime: CRI-O has a single one, Podman a list of which the first
 * existing one is used.
 */
static const char *read_runtime_program(struct graft_health_look *look, struct graft_health_file *file,
					const struct graft_toml *toml, const char *path, bool list)
{
	const char **candidates;
	size_t n;

	if (!list)
		return graft_health_toml_string(look, file, toml, path);
	graft_health_toml_strings(look, file, toml, path, &candidates, &n);
	for (size_t i = 0; i < n; i++) {
		if (graft_health_find_program(look, candidates[i], GRAFT_USUAL_PATH))
			return candidates[i];
	}
	return n > 0 ? candidates[0] : NULL;
}

static void read_toml_runtimes(struct graft_health_look *look, struct graft_health_engine *engine,
			       struct graft_health_file *file, const struct graft_toml *toml,
			       const struct graft_health_toml_keys *keys)
{
	struct graft_error err = { .status = GRAFT_OK };
	const char **names = NULL, *program;
	size_t n = 0;

	if (graft_toml_get_names(toml, keys->runtimes, look->scratch, &names, &n, &err) < 0)
		graft_health_refuse(look, file, &err);
	for (size_t i = 0; i < n; i++) {
		program = read_runtime_program(look, file, toml,
					       graft_health_toml_join(look, keys->runtimes, names[i], keys->program),
					       keys->program[0] == '\0');
		graft_health_add_runtime(look, engine, names[i], program, file->path, NULL);
	}
}

void graft_health_read_settings(struct graft_health_look *look, struct graft_health_engine *engine, const char *path,
				const struct graft_health_toml_keys *keys)
{
	auto_toml struct graft_toml *toml = NULL;
	struct graft_health_file *file;
	const char *runtime, **items;
	size_t n;

	toml = graft_health_read_toml(look, engine, path, &file);
	if (!toml)
		return;
	read_toml_runtimes(look, engine, file, toml, keys);
	runtime = graft_health_toml_string(look, file, toml, keys->default_runtime);
	if (runtime)
		engine->default_runtime = graft_arena_strdup(look->arena, runtime);
	graft_health_toml_strings(look, file, toml, keys->cdi, &items, &n);
	if (n > 0) {
		engine->cdi_directories = items;
		engine->n_cdi_directories = n;
	}
	graft_health_toml_strings(look, file, toml, keys->hooks, &items, &n);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(items[i], GRAFT_HOOKS_OF_PACKAGES) != 0 &&
		    strcmp(items[i], GRAFT_HOOKS_OF_ADMINISTRATOR) != 0)
			graft_health_look_hooks(look, engine, items[i]);
	}
}

/* --- the hooks.d directories of CRI-O and Podman --- */

static void look_at_hook(struct graft_health_look *look, struct graft_health_engine *engine, const char *path)
{
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_health_file *file;
	struct graft_health_hook *hook;
	const char *text, *program;
	size_t length;

	if (graft_health_read_config(look, engine, path, &text, &length, &file) < 0)
		return;
	if (graft_json_document_parse(path, text, length, &document, &err) < 0) {
		graft_health_refuse(look, file, &err);
		return;
	}
	program = graft_json_node_string(graft_json_node_at(graft_json_document_root(document), "hook.path"));
	if (!graft_health_is_ours(program))
		return;
	hook = graft_arena_push(look->arena, &engine->hooks, &engine->n_hooks, sizeof(*hook));
	if (!hook)
		return;
	hook->file = file->path;
	hook->path = graft_arena_strdup(look->arena, program);
	hook->found = graft_health_find_program(look, program, GRAFT_USUAL_PATH) != NULL;
}

void graft_health_look_hooks(struct graft_health_look *look, struct graft_health_engine *engine, const char *directory)
{
	const char **names, *path;
	size_t n;

	if (graft_health_list(look, directory, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		path = graft_ends_with(names[i], ".json")
			   ? graft_arena_printf(look->scratch, "%s/%s", directory, names[i])
			   : NULL;
		if (path)
			look_at_hook(look, engine, path);
	}
}
