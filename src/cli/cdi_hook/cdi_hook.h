/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_hook: nvidia-cdi-hook, the small program that container edits name (SPEC ctk-and-cdi 2). It runs at createContainer: in the container's mount
 * namespace, before the root is changed, as root, with the working directory in the image. docs/decisions/0011-static-hook.md.
 *
 *   isolate -> options -> a root's path, from an option or by the state on stdin -> its descriptor -> a plan of a few edits -> apply, wholly or not at all
 *
 * SECURITY: statically linked, so that no variable and no file of an image reaches its loader; forgets its environment, working directory and inherited
 * descriptors before it reads a byte; executes nothing.
 */
#ifndef GRAFT_CLI_CDI_HOOK_CDI_HOOK_H
#define GRAFT_CLI_CDI_HOOK_CDI_HOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "apply/target.h"
#include "base/arena.h"
#include "base/caps.h"
#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "plan/plan.h"

#define CDI_HOOK_PROGRAM "nvidia-cdi-hook"

/* A list option: given several times, each split at commas. The strings are in the hook's arena. */
struct cdi_hook_list {
	const char **items;
	size_t n;
};

struct cdi_hook {
	const char *program; /* what its words are put behind: "nvidia-cdi-hook", "nvidia-ctk hook" */
	bool debug, quiet;
	struct graft_log log; /* to stderr */
	struct graft_arena *arena;
	struct graft_caps caps;
	/* The container's root as an absolute path: given (--rootfs), or found once standard input was read; NULL before. */
	const char *rootfs;
	/* Options of the hooks. */
	const char *container_spec; /* file with the state; NULL, "" or "-" = standard input */
	struct cdi_hook_list links, folders, paths;
	const char *mode, *ldconfig_path;
	const char *host_driver_version, *host_cuda_version, *compat_root;
	const char *plan, *plan_file;
};

/*
 * The first act of the program (isolate.c): reads what the environment says about verbosity and clears it, goes to "/", closes all descriptors but the
 * first three, becomes undumpable and unable to gain privileges.
 */
void cdi_hook_isolate(struct cdi_hook *hook);
/* Fills the defaults; the log follows `debug` and `quiet`. -1: out of memory. */
int cdi_hook_init(struct cdi_hook *hook, const char *program);
void cdi_hook_done(struct cdi_hook *hook);
/* Runs one hook: argv[0] is ignored, what follows are global options, a hook's name and its options. Returns the exit status. */
int cdi_hook_run(struct cdi_hook *hook, int argc, char **argv);

/*
 * container.c: the container's root, as --rootfs or the OCI state has it (SPEC 2.0); a file that --container-spec names comes before both. *ret_target is
 * ready for graft_apply_to_namespace() and must be closed. Nothing of the container was touched.
 */
int cdi_hook_open(struct cdi_hook *hook, struct graft_target *ret_target, struct graft_error *err);

/*
 * What most hooks do: open the container, let `fill` add edits to an empty plan, apply it. `fill` returns 0, 1 when there is nothing to do, or -1. `failure` is
 * put in front of errors. Returns the exit status.
 */
struct cdi_hook_job {
	int (*fill)(struct cdi_hook *hook, const struct graft_target *target, struct graft_plan *plan,
		    struct graft_error *err);
	bool rebuild_ldcache;
	const char *failure;
};
int cdi_hook_do(struct cdi_hook *hook, const struct cdi_hook_job *job);
/*
 * apply.c: applies a plan to the container, wholly or not at all; *ret_edit (may be NULL) is the index of the edit that failed, or their number. Only
 * edits of a file system: a plan with others is refused.
 */
int cdi_hook_apply(struct cdi_hook *hook, const struct graft_plan *plan, struct graft_target *target,
		   bool rebuild_ldcache, size_t *ret_edit, struct graft_error *err);
/* Appends an edit to a plan. NULL: out of memory (also told by the arena). */
struct graft_edit *cdi_hook_edit(struct graft_plan *plan, enum graft_edit_kind kind, const char *target);

/* program.c: runs the hook of argv[0], whose options follow. Privileges were given up. Returns the exit status; one that is not known is a success. */
int cdi_hook_run_one(struct cdi_hook *hook, int argc, char **argv);

/* The program: its global options and hooks. */
extern const struct graft_command cdi_hook_program;
/* The hooks. run() gets the `struct cdi_hook` and returns the exit status. */
extern const struct graft_command cdi_hook_create_symlinks, cdi_hook_chmod, cdi_hook_update_ldcache,
    cdi_hook_enable_cuda_compat, cdi_hook_disable_device_node_modification, cdi_hook_update_application_profile,
    cdi_hook_apply_plan, cdi_hook_sequence, cdi_hook_noop;

/* All of them, NULL-terminated. */
extern const struct graft_command *const cdi_hook_commands[];

/* Options that several hooks have. */
int cdi_hook_parse_list(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
#define CDI_HOOK_CONTAINER_SPEC(hide)                                                                                \
	{                                                                                                            \
		.name = "container-spec", .argument = GRAFT_OPTION_REQUIRED, .value_name = "FILE", .hidden = (hide), \
		.help = "File with the container's OCI state; empty or '-': standard input",                         \
		.parse = graft_option_set_string, .offset = offsetof(struct cdi_hook, container_spec)                \
	}

/* For the hooks that nvidia-container-runtime writes: where the root is, so that nobody waits for the state (docs/decisions/0021-no-state.md). */
#define CDI_HOOK_ROOTFS                                                                                        \
	{                                                                                                      \
		.name = "rootfs", .argument = GRAFT_OPTION_REQUIRED, .value_name = "DIR",                      \
		.help = "The container's root, an absolute path of the host; standard input is not read then", \
		.parse = graft_option_set_string, .offset = offsetof(struct cdi_hook, rootfs)                  \
	}

/* Prints an error with what to do, as one log line, and returns 1. `what` is put in front; "" = nothing. */
__attribute__((format(printf, 3, 4))) int cdi_hook_fail(const struct cdi_hook *hook, const struct graft_error *err,
							const char *what, ...);

#endif
