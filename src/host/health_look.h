/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health_look: the state of one look at a host's health, shared by the files health*.c. Private to src/host.
 *
 * The functions that look cannot fail: what is not there is left out, what may not be looked at is noted in `unseen`, and memory that
 * fails is remembered in the arenas and the survey and asked about once, at the end.
 */
#ifndef GRAFT_HOST_HEALTH_LOOK_H
#define GRAFT_HOST_HEALTH_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/root.h"
#include "host/health.h"
#include "host/survey.h"

/* Where programs are when nobody says otherwise: what systemd gives its services, and where snap puts links. */
#define GRAFT_USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"

/* A process that is of interest, in the same pid namespace as we are: those of containers are not the host's. */
struct graft_health_process {
	const char *name;      /* as the kernel has it: at most 15 bytes */
	const char *directory; /* "/proc/1234" */
	uint32_t uid;
	int64_t started; /* seconds since 1970; 0 = unknown */
};

struct graft_health_look {
	const struct graft_health_options *options; /* borrowed */
	struct graft_survey survey;                 /* of the driver */
	const struct graft_root *host;              /* the host's own root */
	struct graft_health *health;
	struct graft_arena *arena;   /* the health's */
	struct graft_arena *scratch; /* owned; dies with the look */
	struct graft_health_process *processes;
	size_t n_processes;
};

/* Whether a result of a root function is memory that failed (remembered), or a right that lacks (noted as unseen). Returns `rc`. */
int graft_health_note(struct graft_health_look *look, const char *path, int rc);
/* Reads a file of the host; the text is in the scratch arena. Returns 0 or -errno. */
int graft_health_read_file(struct graft_health_look *look, const char *path, const char **ret_text, size_t *ret_length);
/* The same for files that hold one word or number: its first line, in the health's arena; NULL when there is none. */
const char *graft_health_read_word(struct graft_health_look *look, const char *path);
/* A number; `otherwise` when it cannot be read. */
uint64_t graft_health_read_number(struct graft_health_look *look, const char *path, uint64_t otherwise);
/* What a link says, in the health's arena; NULL when there is none. Links of procfs that lead to objects are read, too, and never followed. */
const char *graft_health_read_link(struct graft_health_look *look, const char *path);
/* Sorted names in a directory of the host, in the scratch arena. Returns 0 or -errno. */
int graft_health_list(struct graft_health_look *look, const char *path, const char ***ret_names, size_t *ret_n);
/* Whether something is at the path, links followed. */
bool graft_health_exists(struct graft_health_look *look, const char *path);
/* The file's time of change in seconds since 1970, 0 when it is not there. */
int64_t graft_health_changed(struct graft_health_look *look, const char *path);
/* An executable of that name in a list of directories like $PATH; an absolute name stands for itself. NULL when there is none. */
const char *graft_health_find_program(struct graft_health_look *look, const char *name, const char *path);
/* What /etc/passwd says of a user, in the scratch arena. False when it has no such line. */
bool graft_health_find_user(struct graft_health_look *look, uint32_t uid, const char **ret_name, const char **ret_home);
/* The last component. */
const char *graft_health_base_name(const char *path);
/* Whether a name or program of a runtime or hook is NVIDIA's or ours. */
bool graft_health_is_ours(const char *name);

/* One function per concern; each in the file of its name. */
void graft_health_look_kernel(struct graft_health_look *look);
void graft_health_look_security(struct graft_health_look *look);
void graft_health_look_nodes(struct graft_health_look *look);
void graft_health_look_libraries(struct graft_health_look *look);
void graft_health_look_nvml(struct graft_health_look *look);
void graft_health_look_processes(struct graft_health_look *look);
void graft_health_look_cdi(struct graft_health_look *look);
void graft_health_look_engines(struct graft_health_look *look);
int graft_health_look_image(struct graft_health_look *look, struct graft_error *err);

/* What the engines' files have in common (health_engines.c). */
struct graft_health_engine *graft_health_add_engine(struct graft_health_look *look, enum graft_health_engine_kind kind,
						    const char *name);
/* Adds a file; `problem` NULL = it was understood. NULL: memory. */
struct graft_health_file *graft_health_add_file(struct graft_health_look *look, struct graft_health_engine *engine,
						const char *path, const char *problem);
/* Reads a file that an engine would read: 0 when it was (`ret_file` is its row), -1 when there is none, or none that can be read. */
int graft_health_read_config(struct graft_health_look *look, struct graft_health_engine *engine, const char *path,
			     const char **ret_text, size_t *ret_length, struct graft_health_file **ret_file);
/* Adds a runtime if it is one of ours. `path` NULL = none is named. */
void graft_health_add_runtime(struct graft_health_look *look, struct graft_health_engine *engine, const char *name,
			      const char *path, const char *file, const char *table);
/* The TOML document at `path`, which the caller frees; NULL when there is none or it is malformed (which is a file's problem then). */
struct graft_toml *graft_health_read_toml(struct graft_health_look *look, struct graft_health_engine *engine,
					  const char *path, struct graft_health_file **ret_file);
/* Something in the file is not as it must be. */
void graft_health_refuse(struct graft_health_look *look, struct graft_health_file *file, const struct graft_error *err);
/*
 * Parts of a TOML file: a path with a name behind it, quoted where it must be; a string or a list of them, which is not there, or of another type (the
 * file's problem): NULL, none. What lives longer than the document is copied by the caller; the lists are copies already.
 */
const char *graft_health_toml_join(struct graft_health_look *look, const char *base, const char *name,
				   const char *rest);
const char *graft_health_toml_string(struct graft_health_look *look, struct graft_health_file *file,
				     const struct graft_toml *toml, const char *path);
void graft_health_toml_strings(struct graft_health_look *look, struct graft_health_file *file,
			       const struct graft_toml *toml, const char *path, const char ***ret_items, size_t *ret_n);

/* Where CRI-O's and Podman's settings stand in their files. */
struct graft_health_toml_keys {
	const char *runtimes,
	    *program; /* the table of runtimes; what leads from one of them to its program, "" = a list of candidates */
	const char *default_runtime, *hooks, *cdi;
};
/* Reads one such file; one that is not there is fine. */
void graft_health_read_settings(struct graft_health_look *look, struct graft_health_engine *engine, const char *path,
				const struct graft_health_toml_keys *keys);

#define GRAFT_HOOKS_OF_PACKAGES      "/usr/share/containers/oci/hooks.d"
#define GRAFT_HOOKS_OF_ADMINISTRATOR "/etc/containers/oci/hooks.d"
/* The hooks of one directory that are ours. */
void graft_health_look_hooks(struct graft_health_look *look, struct graft_health_engine *engine, const char *directory);
/* A running daemon: its PATH, start, program. */
void graft_health_look_daemon(struct graft_health_look *look, struct graft_health_engine *engine,
			      const struct graft_health_process *process);
/* The first process of that name that belongs to root, or NULL. */
const struct graft_health_process *graft_health_find_process(const struct graft_health_look *look, const char *name);

/* One per engine; each in its file. */
void graft_health_look_docker(struct graft_health_look *look);
void graft_health_look_containerd(struct graft_health_look *look);
void graft_health_look_crio(struct graft_health_look *look);
void graft_health_look_podman(struct graft_health_look *look);

#endif
