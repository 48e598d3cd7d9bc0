/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_config: what the engines with a configuration in TOML share. For src/engine alone. A place in a document is a list of names, ended by NULL: { "crio",
 * "runtime", NULL }.
 */
#ifndef GRAFT_ENGINE_TOML_CONFIG_H
#define GRAFT_ENGINE_TOML_CONFIG_H

#include "engine/changes.h"
#include "formats/toml.h"

#define ENGINE_MAX_NAMES 8

/* What a drop-in that we make begins with. */
#define ENGINE_DROP_IN_HEADER "# Made by nvidia-ctk runtime configure; its option --undo takes it away.\n"

/* The names as a dotted key; NULL: memory. */
const char *engine_key(struct graft_arena *arena, const char *const *names);

/* A file's document; `otherwise` is the text of one that is not there. Errors are those of loading `runtime`'s configuration. */
int engine_toml_open(const char *runtime, const char *name, const struct graft_engine_text *text, const char *otherwise,
		     struct graft_toml **ret_toml, struct graft_error *err);

/*
 * The table of the new runtime `name`, as table "runtime" of a new document: a copy of the first one that there is of the default runtime (another one whose name
 * begins with "nvidia" does not count; the runtime itself does, since what it inherited from may not be found any more), runc and crun, in table `runtimes` of `source`. `default_key` names the default one. When there is none the table is empty and
 * `ret_tried` says which were looked for, "[runc crun]"; otherwise it is NULL.
 */
int engine_toml_inherit(const struct graft_toml *source, const char *const *runtimes, const char *default_key,
			const char *name, struct graft_arena *arena, struct graft_toml **ret_table,
			const char **ret_tried, struct graft_error *err);

/* Sets, or removes when the value is `name`, the key that names the default runtime. */
int engine_toml_default(struct graft_toml *toml, const char *key, const char *name, bool set, struct graft_error *err);

/* What is at the place becomes what `backup` has there; with NULL, and where that has nothing, it goes, and so do tables that it leaves empty. */
int engine_toml_restore(struct graft_toml *toml, const char *const *names, const struct graft_toml *backup,
			struct graft_arena *arena, struct graft_error *err);
/* Sets the key that names the default runtime to `name` again, where the backup has that and the document nothing. */
int engine_toml_put_default_back(struct graft_toml *toml, const char *const *names, const char *name,
				 const struct graft_toml *backup, struct graft_arena *arena, struct graft_error *err);
/* That, and what engine_toml_restore() does where the default runtime is `name`. */
int engine_toml_restore_default(struct graft_toml *toml, const char *const *names, const char *name,
				const struct graft_toml *backup, struct graft_arena *arena, struct graft_error *err);

/* Adds the document as an edit of the file. */
int engine_toml_edit(const struct graft_toml *toml, struct graft_engine_changes *changes, struct graft_arena *arena,
		     const struct graft_engine_file *file, const char *label, struct graft_error *err);
/*
 * The same for a document from which all that is ours was taken: the backup's bytes when it means the same as that and has every comment; no file when it holds
 * nothing and there is no backup; else itself. `backup` is the parsed backup, NULL when there is none.
 */
int engine_toml_undo(const struct graft_toml *toml, const struct graft_toml *backup,
		     struct graft_engine_changes *changes, struct graft_arena *arena,
		     const struct graft_engine_file *file, const char *label, struct graft_error *err);

#endif
