/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_config: shared by the engines with a configuration in TOML. For src/engine only. A place in
 * a document is a list of names ended by NULL: { "crio", "runtime", NULL }.
 */
#ifndef GRAFT_ENGINE_TOML_CONFIG_H
#define GRAFT_ENGINE_TOML_CONFIG_H

#include "engine/changes.h"
#include "formats/toml/toml.h"

#define ENGINE_MAX_NAMES 8

/* The beginning of the first line of our drop-ins; earlier releases ended it differently. */
#define ENGINE_DROP_IN_MARK   "# Made by nvidia-ctk runtime configure; "
#define ENGINE_DROP_IN_HEADER ENGINE_DROP_IN_MARK "--undo removes it.\n"

/* Returns the names as a dotted key; NULL: no memory. */
const char *engine_key(struct graft_arena *arena, const char *const *names);

/*
 * Parses a file; `otherwise` is the text if the file does not exist. Errors are those of loading
 * the configuration of `runtime`.
 */
int engine_toml_open(const char *runtime, const char *name, const struct graft_engine_text *text, const char *otherwise,
		     struct graft_toml **ret_toml, struct graft_error *err);

/* Returns the file that is edited: the drop-in or, without one, the top-level file. */
const struct graft_engine_file *engine_toml_target(const struct graft_engine_request *request);
/* Opens that file, which begins with our header if it is a new drop-in. */
int engine_toml_open_target(const char *runtime, const struct graft_engine_request *request,
			    struct graft_toml **ret_toml, struct graft_error *err);
/* Opens the backup of a file; *ret_backup is NULL if it has none. */
int engine_toml_open_backup(const char *runtime, const struct graft_engine_file *file, struct graft_toml **ret_backup,
			    struct graft_error *err);

/*
 * Makes the table of the new runtime `name`, as table "runtime" of a new document: a copy of the
 * first existing one of the default runtime, runc and crun in table `runtimes` of `source`.
 * `default_key` is the key of the default runtime. A default whose name begins with "nvidia" is
 * ignored unless it is `name` itself, since the runtime that it inherited from may no longer be
 * known. If none exists, the table is empty and `ret_tried` lists the candidates, "[runc crun]";
 * otherwise it is NULL.
 */
int engine_toml_inherit(const struct graft_toml *source, const char *const *runtimes, const char *default_key,
			const char *name, struct graft_arena *arena, struct graft_toml **ret_table,
			const char **ret_tried, struct graft_error *err);

/* Sets the key of the default runtime to `name`; without `set`, removes the key if it is `name`. */
int engine_toml_default(struct graft_toml *toml, const char *key, const char *name, bool set, struct graft_error *err);

/*
 * Restores the place from `backup`. Without a backup, or if the backup lacks it, removes the place
 * and the tables that become empty.
 */
int engine_toml_restore(struct graft_toml *toml, const char *const *names, const struct graft_toml *backup,
			struct graft_arena *arena, struct graft_error *err);
/*
 * Sets the key of the default runtime to `name` again if the backup has that value and the document
 * lacks the key.
 */
int engine_toml_put_default_back(struct graft_toml *toml, const char *const *names, const char *name,
				 const struct graft_toml *backup, struct graft_arena *arena, struct graft_error *err);
/*
 * Restores the default runtime: like engine_toml_restore() if it is `name`, and like
 * engine_toml_put_default_back() otherwise.
 */
int engine_toml_restore_default(struct graft_toml *toml, const char *const *names, const char *name,
				const struct graft_toml *backup, struct graft_arena *arena, struct graft_error *err);

/* Adds the document as an edit of the file. */
int engine_toml_edit(const struct graft_toml *toml, struct graft_engine_changes *changes, struct graft_arena *arena,
		     const struct graft_engine_file *file, const char *label, struct graft_error *err);
/*
 * The same for a document from which everything of ours was removed: restores the backup's bytes if
 * the document has the same meaning and no other comments; removes the file if the document is
 * empty and there is no backup; otherwise writes the document. `backup` is the parsed backup, or
 * NULL.
 */
int engine_toml_undo(const struct graft_toml *toml, const struct graft_toml *backup,
		     struct graft_engine_changes *changes, struct graft_arena *arena,
		     const struct graft_engine_file *file, const char *label, struct graft_error *err);

#endif
