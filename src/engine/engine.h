/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine: configures the NVIDIA runtime in container engines (SPEC ctk-and-cdi 1.1, 7.1). Converts
 * texts of configuration files and a request into the new texts and notes for a person; reads,
 * writes and runs nothing.
 *
 *	struct graft_engine_request request = { .runtime_name = "nvidia", .runtime_path = "/usr/bin/nvidia-container-runtime",
 *		.config = { .path = "/etc/docker/daemon.json", .text = { bytes, length } } };
 *
 *	if (graft_engine_docker.configure(&request, arena, &changes, err) < 0)
 *		return -1;
 *
 * Documents are edited in place: comments, order, layout and unknown keys are kept. An edit that
 * does not change the meaning does not change a byte, so configuring twice changes nothing. Errors
 * begin with "unable to load config for runtime NAME" if a file cannot be understood, and with
 * "unable to update config" if it contains something of an unexpected type.
 */
#ifndef GRAFT_ENGINE_ENGINE_H
#define GRAFT_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#define GRAFT_ENGINE_RUNTIME_PATH "/usr/bin/nvidia-container-runtime" /* for engines that need an absolute path */

/*
 * `bytes` NULL: the file does not exist. Otherwise they are followed by a NUL that is not included
 * in the length.
 */
struct graft_engine_text {
	const char *bytes;
	size_t length;
};

struct graft_engine_file {
	const char *path; /* NULL: this file is not requested */
	struct graft_engine_text text;
	struct graft_engine_text backup; /* for undo: the file before it was configured, if that was kept */
	bool is_ours;                    /* a record was kept that the file did not exist before */
};

struct graft_engine_request {
	const char *runtime_name; /* "nvidia" */
	const char *runtime_path;
	bool set_as_default, enable_cdi;
	struct graft_engine_file config;  /* the top-level file */
	struct graft_engine_file drop_in; /* path NULL: the top-level file itself is edited */
	/*
	 * The configuration as printed by the engine, from which a new runtime inherits. bytes
	 * NULL: it inherits from the top-level file.
	 */
	const char *source_name;
	struct graft_engine_text source;
	/*
	 * containerd: files are merged key by key (2.1 and later), so a drop-in needs no copy of
	 * its section.
	 */
	bool merges_deeply;
	/* containerd: files other than the drop-in need the import of its directory. */
	bool import_is_shared;
	/*
	 * containerd: the drop-in's path as the engine sees it, if it differs. NULL: it is the
	 * same.
	 */
	const char *drop_in_host_path;
	/* containerd: pod annotations to pass on to the runtime, before the existing ones. */
	const char *const *annotations;
	size_t n_annotations;
	const char *runtime_type; /* containerd: type of a runtime that inherits none; NULL: io.containerd.runc.v2 */
	/* containerd before 1.3, version 1: the default runtime is a table of its own. */
	bool has_default_table;
	/* CRI-O, undo: restore only the default runtime, because running pods name ours. */
	bool keeps_runtime;
	/* Podman, by hook: the JSON file and the program of the hook. */
	struct graft_engine_file hook;
	const char *hook_path;
};

struct graft_engine_edit {
	const struct graft_engine_file *file; /* of the request */
	const char *label;                    /* "Drop-in config:", for a person who sees several edits; may be NULL */
	struct graft_engine_text text;        /* the new text; bytes NULL: no file */
};

struct graft_engine_note {
	bool is_warning;
	const char *text;
};

#define GRAFT_ENGINE_MAX_EDITS 2
struct graft_engine_changes {
	struct graft_engine_edit edits[GRAFT_ENGINE_MAX_EDITS]; /* in the order in which they are shown and made */
	size_t n_edits;
	struct graft_engine_note *notes;
	size_t n_notes;
};

/* Allocates its results in `arena`; they also borrow strings of the request. */
typedef int graft_engine_function(const struct graft_engine_request *request, struct graft_arena *arena,
				  struct graft_engine_changes *ret_changes, struct graft_error *err);

struct graft_engine {
	const char *name;                       /* "docker" */
	const char *config_path, *drop_in_path; /* drop_in_path NULL: the engine has no drop-ins */
	bool needs_absolute_path;               /* of the runtime */
	bool has_cdi_switch;
	graft_engine_function *configure;
	/*
	 * Removes what configure() put into the same files and restores it from the backup where
	 * that has it. If nothing else differs from the backup, its bytes are restored; a file that
	 * becomes empty and had no backup is removed.
	 */
	graft_engine_function *undo;
};

extern const struct graft_engine graft_engine_docker, graft_engine_containerd, graft_engine_crio, graft_engine_podman;

/* Finds an engine by name; NULL if there is none. */
const struct graft_engine *graft_engine_find(const char *name);

/*
 * The program that a configuration registers under a name, in the arena; NULL if it registers none.
 * `runtime` NULL: *ret_path is the name of the default runtime instead. `name` is for messages.
 * Returns 0, or -1 if the text cannot be understood.
 */
int graft_engine_registered(const struct graft_engine *engine, const char *name, const struct graft_engine_text *text,
			    const char *runtime, struct graft_arena *arena, const char **ret_path,
			    struct graft_error *err);

/* Whether an edit changes its file. */
bool graft_engine_edit_changes(const struct graft_engine_edit *edit);

/*
 * Makes the JSON description of an OCI hook for hooks.d: `hook_path` is called before a container's
 * process starts, with a PATH that includes its directory (SPEC ctk-and-cdi 1.1 "OCI hook mode").
 * Fails if out of memory or if a path is not UTF-8.
 */
int graft_engine_oci_hook(const char *hook_path, struct graft_arena *arena, struct graft_engine_text *ret_text,
			  struct graft_error *err);

/*
 * Configure Podman by hook instead of by runtime, and undo that: the hook's file, and a drop-in
 * with its directory if Podman does not search that by default. They use request->hook and
 * hook_path and ignore the runtime.
 */
graft_engine_function graft_engine_podman_hook, graft_engine_podman_unhook;

/*
 * Whether this version of containerd ("containerd github.com/containerd/containerd 1.6.20~ds1 ...")
 * merges files key by key.
 */
bool graft_engine_containerd_merges_deeply(const char *version_line);

#endif
