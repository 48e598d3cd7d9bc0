/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_hook: nvidia-cdi-hook, the small program that container edits name (SPEC ctk-and-cdi 2). It
 * runs at createContainer: as root, in the container's mount namespace, before the root is changed,
 * with a working directory inside the image. See docs/decisions/0011-static-hook.md.
 *
 *   isolate -> options -> path of the root (--rootfs, or the state on stdin) -> descriptor of the root
 *   -> plan of a few edits -> apply all of it or nothing
 *
 * SECURITY: the program is linked statically, so no variable and no file of an image reaches its
 * loader; it discards its environment, working directory and inherited descriptors before it reads
 * a byte; it executes nothing.
 */
#ifndef GRAFT_CLI_CDI_HOOK_CDI_HOOK_H
#define GRAFT_CLI_CDI_HOOK_CDI_HOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "apply/namespace/target.h"
#include "base/arena.h"
#include "base/caps.h"
#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "formats/json/json_document.h"
#include "formats/oci_spec.h"
#include "plan/plan.h"
#include "request/config.h"

#define CDI_HOOK_PROGRAM "nvidia-cdi-hook"

/* The container's root, and what config.json mounts at its /dev. */
struct cdi_hook_root {
	const char *path; /* absolute; NULL until known */
	bool is_known;    /* as dev and inode; otherwise no mount over it may be of `sources` */
	dev_t dev;
	ino_t inode;
	struct graft_oci_dev oci_dev;
	const char **sources; /* of all its mounts */
	size_t n_sources;
	const char *cwd;   /* in which the process will start; NULL: not known */
	bool has_proc;     /* a file system is mounted at /proc */
	bool hooks_follow; /* there are other hooks, which may follow */
};

struct cdi_hook {
	const char *program; /* how the help text calls the program: "nvidia-cdi-hook", "nvidia-ctk hook" */
	bool debug, quiet;
	struct graft_log log; /* writes to stderr */
	struct graft_arena *arena;
	struct graft_caps caps;
	struct graft_budget *budget;     /* CPU time, shared by all hooks of this process */
	const char *rootfs;              /* the container's root, from --rootfs; NULL: not given */
	struct cdi_hook_root known_root; /* what the state on standard input led to, once it is read */
	/* Options of the individual hooks. */
	const char *container_spec; /* file with the OCI state; NULL, "" or "-": standard input */
	struct graft_strings links, folders, paths, files; /* in the arena */
	const char *mode, *ldconfig_path;
	const char *host_driver_version, *host_cuda_version, *compat_root;
	const char *plan, *plan_file, *cwd;
	bool has_proc; /* config.json was read, and mounts something at /proc */
	bool hooks_follow;
	const char *driver_root, *gpu_id;
};

/*
 * Must be the program's first call (isolate.c): reads the verbosity from the environment, then
 * clears it, changes to "/", closes every descriptor above standard error and makes the process
 * undumpable and unable to gain privileges.
 */
void cdi_hook_isolate(struct cdi_hook *hook);
/*
 * Sets the defaults, keeping `debug` and `quiet`, which also set the log level. `program` is
 * borrowed. Returns 0, or -1 if out of memory. Call cdi_hook_done() in both cases.
 */
int cdi_hook_init(struct cdi_hook *hook, const char *program);
void cdi_hook_done(struct cdi_hook *hook);
/*
 * Runs one hook. argv[0] is ignored; the rest are global options, a hook's name and its options.
 * Returns the exit status.
 */
int cdi_hook_run(struct cdi_hook *hook, int argc, char **argv);

/*
 * hook_container.c: opens the container's root as given by --container-spec, --rootfs or the OCI
 * state on standard input, in this order (SPEC ctk-and-cdi 2.0). *ret_target is ready for
 * graft_apply_to_namespace() and must be closed by the caller. Nothing in the container has been
 * touched yet. Returns 0, or -1 with the error set.
 */
int cdi_hook_open(struct cdi_hook *hook, struct graft_target *ret_target, struct graft_error *err);

/*
 * hook_container.c: reads the container's configuration, which the OCI state names. The caller
 * frees *ret_document, to which the strings of *ret_spec belong, also after a failure. Returns 0,
 * or -1 with the error set.
 */
int cdi_hook_read_spec(struct cdi_hook *hook, struct graft_json_document **ret_document,
		       struct graft_oci_spec *ret_spec, struct graft_error *err);

/*
 * earlier_hooks.c: deducts from the budget what earlier hooks of the same container have used.
 * `state` is the OCI state from standard input, or NULL if it was not read. Does nothing if the
 * time cannot be determined.
 */
void cdi_hook_share_budget(struct cdi_hook *hook, const struct graft_oci_state *state);

/*
 * The common shape of a hook: open the container, let `fill` add edits to an empty plan, apply the
 * plan. `fill` returns 0, 1 if there is nothing to do, or -1 with the error set. Error messages
 * start with `failure`; they are logged here. Returns the exit status.
 */
struct cdi_hook_job {
	int (*fill)(struct cdi_hook *hook, const struct graft_target *target, struct graft_plan *plan,
		    struct graft_error *err);
	bool rebuild_ldcache;
	const char *failure;
};
int cdi_hook_do(struct cdi_hook *hook, const struct cdi_hook_job *job, struct graft_error *err);
/*
 * Appends an edit to a plan; the target is copied. Returns NULL if out of memory, which the plan's
 * arena also records.
 */
struct graft_edit *cdi_hook_edit(struct graft_plan *plan, enum graft_edit_kind kind, const char *target);

/*
 * cdi_hook_program.c: runs the hook named by argv[0] with the options that follow, having dropped
 * privileges it does not need. Returns the exit status, which is 0 for an unknown hook.
 */
int cdi_hook_run_one(struct cdi_hook *hook, int argc, char **argv);

/* The program: its global options and hooks. */
extern const struct graft_command cdi_hook_program;
/*
 * The hooks. work() receives the `struct cdi_hook`, and so does run(), for the one that takes
 * arguments. They return the exit status; work() may also return -1 with the error set.
 */
extern const struct graft_command cdi_hook_create_symlinks, cdi_hook_chmod, cdi_hook_update_ldcache,
    cdi_hook_mount_files, cdi_hook_enable_cuda_compat, cdi_hook_disable_device_node_modification,
    cdi_hook_update_application_profile, cdi_hook_apply_cuda_memory_limits, cdi_hook_apply_plan, cdi_hook_sequence,
    cdi_hook_noop;

/* All of them, NULL-terminated. */
extern const struct graft_command *const cdi_hook_commands[];

/* What hooks have in common, for use in their tables. */
#define CDI_HOOK_COMMAND .arguments = "", .max_arguments = -1, .go_style = true

/*
 * Option parser: appends `value`, split at commas, to the struct graft_strings at the option's
 * offset. Returns 0, or -1 if out of memory.
 */
int cdi_hook_parse_list(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
#define CDI_HOOK_CONTAINER_SPEC(hide)                                                                                \
	{                                                                                                            \
		.name = "container-spec", .argument = GRAFT_OPTION_REQUIRED, .value_name = "FILE", .hidden = (hide), \
		.help = "File with the container's OCI state; empty or '-' is standard input",                       \
		.parse = graft_option_set_string, .offset = offsetof(struct cdi_hook, container_spec)                \
	}

/*
 * For the hooks that nvidia-container-runtime writes: the container's root, so that the hook need
 * not wait for the state (docs/decisions/0021-no-state.md).
 */
#define CDI_HOOK_ROOTFS                                                                                              \
	{                                                                                                            \
		.name = "rootfs", .argument = GRAFT_OPTION_REQUIRED, .value_name = "[DEV:INODE:]DIR",                \
		.help =                                                                                              \
		    "The container's root, as an absolute path on the host, and what must be there; standard input " \
		    "is then not read",                                                                              \
		.parse = graft_option_set_string, .offset = offsetof(struct cdi_hook, rootfs)                        \
	}

/*
 * Logs an error and its remedy as one line, after the formatted prefix `what` ("" for none).
 * Returns 1.
 */
__attribute__((format(printf, 3, 4))) int cdi_hook_fail(const struct cdi_hook *hook, const struct graft_error *err,
							const char *what, ...);

#endif
