/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look: the state of one examination of a host's health, shared by the files look*.c. Private to
 * src/doctor.
 *
 * The functions that look cannot fail: missing things are left out, denied access is recorded in
 * `unseen`, and failed allocations are recorded in the arenas and the survey and checked once at
 * the end.
 */
#ifndef GRAFT_DOCTOR_LOOK_H
#define GRAFT_DOCTOR_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/root.h"
#include "doctor/facts.h"
#include "host/survey.h"

/* Where programs are by default: what systemd gives its services, and where snap puts links. */
#define GRAFT_USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"

/*
 * A process of interest in our own pid namespace: processes of containers do not belong to the
 * host.
 */
struct graft_health_process {
	const char *name;      /* as in the kernel: at most 15 bytes */
	const char *directory; /* "/proc/1234" */
	uint32_t uid;
	int64_t started; /* seconds since 1970, upper bound; 0 = unknown */
};

struct graft_health_look {
	const struct graft_health_options *options; /* borrowed */
	struct graft_survey survey;                 /* of the driver */
	const struct graft_root *host;              /* the host's own root */
	struct graft_health *health;
	struct graft_arena *arena;   /* of `health` */
	struct graft_arena *scratch; /* owned; freed at the end of the examination */
	struct graft_health_process *processes;
	size_t n_processes;
	bool versions_only;            /* of installed engines (graft_health_collect_readers()) */
	const char **package_versions; /* of engines (look_versions.c); NULL = not read yet */
};

/*
 * Records a result of a root function if it is a failed allocation or missing permission (as
 * unseen). Returns `rc`.
 */
int graft_health_note(struct graft_health_look *look, const char *path, int rc);
/* Reads a file of the host; the text is in the scratch arena. Returns 0 or -errno. */
int graft_health_read_file(struct graft_health_look *look, const char *path, const char **ret_text, size_t *ret_length);
/*
 * The same for files with a single word or number: returns the first line without surrounding
 * space, in the health's arena; NULL if it is empty or cannot be read.
 */
const char *graft_health_read_word(struct graft_health_look *look, const char *path);
/* Reads a number; returns `otherwise` if that is impossible. */
uint64_t graft_health_read_number(struct graft_health_look *look, const char *path, uint64_t otherwise);
/*
 * Reads a link; the text is in the health's arena. NULL if there is none. Links of procfs to
 * objects are read too, and never followed.
 */
const char *graft_health_read_link(struct graft_health_look *look, const char *path);
/* Lists the names in a directory of the host, sorted, in the scratch arena. Returns 0 or -errno. */
int graft_health_list(struct graft_health_look *look, const char *path, const char ***ret_names, size_t *ret_n);
/* Whether something is at the path, following links. */
bool graft_health_exists(struct graft_health_look *look, const char *path);
/* Returns the change time of a file in seconds since 1970, 0 if it does not exist. */
int64_t graft_health_changed(struct graft_health_look *look, const char *path);
/*
 * Finds an executable of that name in a list of directories like $PATH; an absolute name is checked
 * as it is. NULL if there is none.
 */
const char *graft_health_find_program(struct graft_health_look *look, const char *name, const char *path);
/*
 * Looks up a user in /etc/passwd; the strings are in the scratch arena. False if there is no such
 * line.
 */
bool graft_health_find_user(struct graft_health_look *look, uint32_t uid, const char **ret_name, const char **ret_home);
/* Whether the name or program of a runtime or hook is NVIDIA's or ours. */
bool graft_health_is_ours(const char *name);

/* One function per topic, each in the file of its name. */
void graft_health_look_kernel(struct graft_health_look *look);
void graft_health_look_security(struct graft_health_look *look);
void graft_health_look_nodes(struct graft_health_look *look);
void graft_health_look_libraries(struct graft_health_look *look);
void graft_health_look_nvml(struct graft_health_look *look);
void graft_health_look_processes(struct graft_health_look *look);
void graft_health_look_cdi(struct graft_health_look *look);
void graft_health_look_engines(struct graft_health_look *look);
void graft_health_look_cluster(struct graft_health_look *look);
int graft_health_look_image(struct graft_health_look *look, struct graft_error *err);

/*
 * The following functions are shared by the engines (look_engines.c). This one adds an engine;
 * NULL: no memory.
 */
struct graft_health_engine *graft_health_add_engine(struct graft_health_look *look, enum graft_health_engine_kind kind,
						    const char *name);
/* Adds a file; `problem` NULL = it was understood. NULL: no memory. */
struct graft_health_file *graft_health_add_file(struct graft_health_look *look, struct graft_health_engine *engine,
						const char *path, const char *problem);
/*
 * Reads a file that an engine would read. Returns 0 if it was read (`ret_file` is its row), -1 if
 * it does not exist or cannot be read.
 */
int graft_health_read_config(struct graft_health_look *look, struct graft_health_engine *engine, const char *path,
			     const char **ret_text, size_t *ret_length, struct graft_health_file **ret_file);
/* Adds a runtime if it is one of ours. `path` NULL = it has no program. */
void graft_health_add_runtime(struct graft_health_look *look, struct graft_health_engine *engine, const char *name,
			      const char *path, const char *file, const char *table);
/* The same for any list of runtimes; `path`, `file` and `table` of `runtime` may be NULL. */
void graft_health_push_runtime(struct graft_health_look *look, const struct graft_health_engine *engine,
			       struct graft_health_runtime **runtimes, size_t *n,
			       const struct graft_health_runtime *runtime);
/*
 * Finds the version of the engine's package, or of the CDI library in its program; both stay NULL
 * if there is none.
 */
void graft_health_look_version(struct graft_health_look *look, struct graft_health_engine *engine);
/*
 * Whether to read the engine's configuration: always, unless only versions are requested and the
 * engine's version is sufficient.
 */
bool graft_health_wants_config(const struct graft_health_look *look, const struct graft_health_engine *engine);
/* Asks a running Docker daemon, if the options allow it; `socket` NULL = it has none. */
void graft_health_ask_docker(struct graft_health_look *look, struct graft_health_engine *engine, const char *socket);
/*
 * Parses the TOML document at `path`, which the caller frees. NULL if it does not exist or is
 * malformed (which is recorded as the file's problem).
 */
struct graft_toml *graft_health_read_toml(struct graft_health_look *look, struct graft_health_engine *engine,
					  const char *path, struct graft_health_file **ret_file);
/* Records an error as the file's problem, unless it has one already. */
void graft_health_refuse(struct graft_health_look *look, struct graft_health_file *file, const struct graft_error *err);
/*
 * Parts of a TOML document: a path extended by a name, quoted where necessary; a string or a list
 * of strings. A missing value gives NULL or an empty list, and so does one of another type, which
 * is recorded as the file's problem. Strings belong to the document, so the caller copies those
 * that must outlive it; lists are copies already.
 */
const char *graft_health_toml_join(struct graft_health_look *look, const char *base, const char *name,
				   const char *rest);
const char *graft_health_toml_string(struct graft_health_look *look, struct graft_health_file *file,
				     const struct graft_toml *toml, const char *path);
void graft_health_toml_strings(struct graft_health_look *look, struct graft_health_file *file,
			       const struct graft_toml *toml, const char *path, const char ***ret_items, size_t *ret_n);

/* Keys of CRI-O's and Podman's settings. */
struct graft_health_toml_keys {
	const char *runtimes,
	    *program; /* the table of runtimes; the key of the program below a runtime, "" = a list of candidates */
	const char *default_runtime, *hooks, *cdi;
};
/* Reads one such file, if it exists. */
void graft_health_read_settings(struct graft_health_look *look, struct graft_health_engine *engine, const char *path,
				const struct graft_health_toml_keys *keys);

#define GRAFT_HOOKS_OF_PACKAGES      "/usr/share/containers/oci/hooks.d"
#define GRAFT_HOOKS_OF_ADMINISTRATOR "/etc/containers/oci/hooks.d"
/* Adds the hooks of one directory that are ours. */
void graft_health_look_hooks(struct graft_health_look *look, struct graft_health_engine *engine, const char *directory);
/* Records the PATH, start and program of a running daemon; `process` NULL = it does not run. */
void graft_health_look_daemon(struct graft_health_look *look, struct graft_health_engine *engine,
			      const struct graft_health_process *process);
/*
 * Whether the process is in another mount namespace than the caller; false if that is not visible.
 */
bool graft_health_has_other_mounts(struct graft_health_look *look, const struct graft_health_process *process);
/* Finds a variable in the text of /proc/PID/environ; NULL if it is not set. */
const char *graft_health_find_variable(const char *environment, size_t length, const char *name);
/* Finds the first process of that name that belongs to root, or NULL. */
const struct graft_health_process *graft_health_find_process(const struct graft_health_look *look, const char *name);
/* Finds the process that is, or contains, the kubelet, or NULL. */
const struct graft_health_process *graft_health_find_kubelet(const struct graft_health_look *look);

/* One function per engine, each in its own file. */
void graft_health_look_docker(struct graft_health_look *look);
void graft_health_look_containerd(struct graft_health_look *look);
void graft_health_look_crio(struct graft_health_look *look);
void graft_health_look_podman(struct graft_health_look *look);

#endif
