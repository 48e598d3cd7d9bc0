/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine: how container engines are told of the NVIDIA runtime (SPEC ctk-and-cdi 1.1, 7.1). Texts of configuration files and what is asked
 * for go in, the texts as they have to be and what a person should know come out; nothing is read, written or run here.
 *
 *	struct graft_engine_request request = { .runtime_name = "nvidia", .runtime_path = "/usr/bin/nvidia-container-runtime",
 *		.config = { .path = "/etc/docker/daemon.json", .text = { bytes, length } } };
 *
 *	if (graft_engine_docker.configure(&request, arena, &changes, err) < 0)
 *		return -1;
 *
 * Documents are edited, not made anew: comments, order, layout and keys that are not known stay. An edit that changes no meaning changes no
 * byte, so that configuring twice changes nothing. Errors begin with "unable to load config for runtime NAME" when a file cannot be understood,
 * and with "unable to update config" when it holds something of another type than needed.
 */
#ifndef GRAFT_ENGINE_ENGINE_H
#define GRAFT_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#define GRAFT_ENGINE_RUNTIME_PATH "/usr/bin/nvidia-container-runtime" /* where an engine needs an absolute path */

/* `bytes` NULL: there is no such file. Otherwise a NUL that is not counted stands behind them. */
struct graft_engine_text {
	const char *bytes;
	size_t length;
};

struct graft_engine_file {
	const char *path; /* NULL: no such file is wanted */
	struct graft_engine_text text;
	struct graft_engine_text backup; /* for undo: the file before it was configured, when that was kept */
	bool is_ours;                    /* it was kept that there was no such file before */
};

struct graft_engine_request {
	const char *runtime_name; /* "nvidia" */
	const char *runtime_path;
	bool set_as_default, enable_cdi;
	struct graft_engine_file config;  /* the top-level file */
	struct graft_engine_file drop_in; /* path NULL: the top-level file itself is edited */
	/* What the engine says that its configuration is; the source of what a new runtime inherits. bytes NULL: the top-level file is that. */
	const char *source_name;
	struct graft_engine_text source;
	/* containerd: files are merged key by key (2.1 and later), so that a drop-in needs no copy of the section that it is about. */
	bool merges_deeply;
	/* containerd, undo: files besides the drop-in need the import of its directory. */
	bool import_is_shared;
	/* Podman, by hook: the JSON file, the hook, and the directories that Podman reads without being told. */
	struct graft_engine_file hook;
	const char *hook_path;
};

struct graft_engine_edit {
	const struct graft_engine_file *file; /* of the request */
	const char *label;                    /* "Drop-in config:", for a person who looks at several; NULL */
	struct graft_engine_text text;        /* as it has to be; bytes NULL: no file */
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

/* One engine. The functions put all of their result into `arena`; the request's strings are borrowed by it. */
struct graft_engine {
	const char *name;                       /* "docker" */
	const char *config_path, *drop_in_path; /* drop_in_path NULL: it has no drop-ins */
	bool needs_absolute_path;               /* of the runtime */
	bool has_cdi_switch;
	int (*configure)(const struct graft_engine_request *request, struct graft_arena *arena,
			 struct graft_engine_changes *ret_changes, struct graft_error *err);
	/*
	 * The same files without what configure() put there: what the backup has of it comes back, the rest goes. When nothing else differs from the backup, its bytes
	 * come back; a file that holds nothing any more, and had no backup, goes.
	 */
	int (*undo)(const struct graft_engine_request *request, struct graft_arena *arena,
		    struct graft_engine_changes *ret_changes, struct graft_error *err);
};

extern const struct graft_engine graft_engine_docker, graft_engine_containerd, graft_engine_crio, graft_engine_podman;

/* By name; NULL when there is none. */
const struct graft_engine *graft_engine_find(const char *name);

/* Whether an edit changes its file. */
bool graft_engine_edit_changes(const struct graft_engine_edit *edit);

/*
 * The description of an OCI hook for hooks.d: `hook_path` is called before a container's process starts, with a PATH that has its directory
 * (SPEC 1.1 "OCI hook mode"). -1: memory, or a path that is not UTF-8.
 */
int graft_engine_oci_hook(const char *hook_path, struct graft_arena *arena, struct graft_engine_text *ret_text,
			  struct graft_error *err);

/*
 * Podman by hook instead of by runtime: the hook's file, and the drop-in that names its directory where Podman would not look by itself; and the
 * reverse. request->hook and hook_path are used, the runtime is not.
 */
int graft_engine_podman_hook(const struct graft_engine_request *request, struct graft_arena *arena,
			     struct graft_engine_changes *ret_changes, struct graft_error *err);
int graft_engine_podman_unhook(const struct graft_engine_request *request, struct graft_arena *arena,
			       struct graft_engine_changes *ret_changes, struct graft_error *err);

/* containerd's version of a configuration, for those who have to know what it means: 1, 2, 3. -1: it cannot be understood. */
int graft_engine_containerd_version(const char *name, const struct graft_engine_text *text, struct graft_error *err);
/* Whether containerd of that version ("containerd github.com/containerd/containerd 1.6.20~ds1 ...") merges files key by key. */
bool graft_engine_containerd_merges_deeply(const char *version_line);

#endif
