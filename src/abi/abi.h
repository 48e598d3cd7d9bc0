/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi: libnvidia-container.so.1, a thin face of the stages (nvc.h says what each function does; SPEC libnvidia-container 2).
 *
 * The interface gives a container its parts one after the other, the planner makes one plan of all of them. So a container keeps the request as
 * it has grown, and a call applies the difference between the plan before it and the plan with it (plan/difference.h).
 */
#ifndef GRAFT_ABI_ABI_H
#define GRAFT_ABI_ABI_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/nvc.h"
#include "apply/cgroup.h"
#include "apply/ldcache_refresh.h"
#include "apply/target.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/pipeline.h"
#include "host/discover.h"
#include "host/inventory.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "request/request.h"

#define ABI_PUBLIC __attribute__((visibility("default")))

struct nvc_context {
	bool initialized;
	bool failed;               /* `message` holds something */
	char message[1024];        /* nvc_error() */
	struct graft_arena *arena; /* of the strings of `host`; of one initialisation */
	struct graft_host_options host;
	struct graft_inventory
	    *inventory; /* what the mount functions plan with; read when the first of them needs it */
	struct graft_log_file log_file;
	int log_fd;                  /* -1 = no log */
	const struct graft_log *log; /* NULL = none */
};

struct nvc_container {
	struct graft_target target;
	struct graft_policy policy;             /* with the image, as it was when the container was opened */
	enum graft_ldcache_state ldcache_state; /* likewise */
	/* What was given so far. The interface takes containers as constant; what grows is behind pointers. */
	struct graft_request *request;
	bool *has_driver;
	struct graft_arena *arena;
	bool supervised;
};

/* context.c: keeps the error for nvc_error() and returns -1. */
int abi_fail(struct nvc_context *ctx, const struct graft_error *err);
/* -1 with "context uninitialized" unless the context is usable; ctx may be NULL. */
int abi_check(struct nvc_context *ctx);
/* -1 with "invalid argument". */
int abi_invalid(struct nvc_context *ctx);
/* The inventory of the context; NULL with the error set. */
struct graft_inventory *abi_inventory(struct nvc_context *ctx, struct graft_error *err);

/* container.c: the container's devices cgroup, by our own /proc; version 0 where its rules are others' matter. */
int abi_open_cgroup(const struct nvc_container *cnt, const struct graft_log *log, struct graft_cgroup *ret_cgroup,
		    struct graft_error *err);

/*
 * options.c: words of an option string. Each row sets a bool at `offset` of the target, or a bit of a uint32_t when `bit` is not 0; or calls `parse` with
 * what follows '=' (the word then ends in '='). -1: "too many options", "invalid option: <word>".
 */
struct abi_option {
	const char *word;
	size_t offset;
	uint32_t bit;
	int (*parse)(void *target, const char *value, struct graft_error *err);
};
int abi_options(const struct abi_option *options, size_t n_options, const char *text, void *target,
		struct graft_error *err);

/*
 * worker.c: runs a function in a thread of its own whose namespaces, root, working directory and umask are not shared with the calling one, so that it
 * may join a container whatever else the process does. Returns what `run` returned; -1 when there can be no thread.
 */
int abi_run_apart(int (*run)(void *arg, struct graft_error *err), void *arg, struct graft_error *err);

#endif
