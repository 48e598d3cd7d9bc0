/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi: libnvidia-container.so.1, a thin layer over the stages (nvc.h documents each function; SPEC
 * libnvidia-container 2).
 *
 * The interface gives a container its parts one by one, while the planner makes one plan of all of
 * them. A container therefore keeps the request as it has grown so far, and each call applies the
 * difference between the plan without its part and the plan with it (plan/plan.h).
 */
#ifndef GRAFT_ABI_ABI_H
#define GRAFT_ABI_ABI_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/nvc.h"
#include "apply/cgroup/cgroup.h"
#include "apply/loader/ldcache_refresh.h"
#include "apply/namespace/target.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "host/discover.h"
#include "host/inventory.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "request/request.h"
#include "start/pipeline.h"

#define ABI_PUBLIC __attribute__((visibility("default")))

struct nvc_context {
	bool initialized;
	bool failed;               /* `message` is set */
	char message[1024];        /* for nvc_error() */
	struct graft_arena *arena; /* strings of `host`, for one initialisation */
	struct graft_host_options host;
	struct graft_inventory *inventory; /* the input of the mount functions' plans; read by the first of them */
	struct graft_log_file log_file;
	int log_fd;                  /* -1 = no log */
	const struct graft_log *log; /* NULL = none */
};

struct nvc_container {
	struct graft_target target;
	struct graft_policy policy;             /* includes the image as it was when the container was opened */
	enum graft_ldcache_state ldcache_state; /* as it was then, too */
	/*
	 * What was given so far. The interface takes a const container, so everything that grows is
	 * behind a pointer.
	 */
	struct graft_request *request;
	bool *has_driver;
	struct graft_arena *arena;
	bool supervised;
};

/* abi_context.c: stores the error for nvc_error(), logs it, and returns -1. */
int abi_fail(struct nvc_context *ctx, const struct graft_error *err);
/*
 * 0 if the context is initialised; otherwise -1 with the error "context uninitialized". ctx may be
 * NULL.
 */
int abi_check(struct nvc_context *ctx);
/* Fails with the error "invalid argument"; returns -1. */
int abi_invalid(struct nvc_context *ctx);
/* Whether a caller gave an empty string; NULL is not one. */
bool abi_is_empty(const char *text);
/*
 * The inventory for the mount functions, owned by the context and read at the first call; NULL with
 * *err set.
 */
struct graft_inventory *abi_inventory(struct nvc_context *ctx, struct graft_error *err);

/*
 * abi_options.c: the options of an option string. Each row sets a bool at `offset` of the target,
 * or a bit of a uint32_t if `bit` is not 0, or calls `parse` with the rest of the option after
 * `word` (which then usually ends in '='). -1: "too many options", "invalid option: <word>".
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
 * worker.c: runs a function in a thread that does not share its namespaces, root, working directory
 * and umask with the caller, so that it can join a container regardless of the rest of the process.
 * Returns what `run` returned; -1 if the thread cannot be created.
 */
int abi_run_apart(int (*run)(void *arg, struct graft_error *err), void *arg, struct graft_error *err);

#endif
