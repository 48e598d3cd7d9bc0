/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply_world: a host, an image and a container for the tests of the apply stage, all on a tmpfs of its own in a private
 * mount namespace, and a plan with every kind of edit for it.
 *
 *	TOP/host     the driver's files and nodes
 *	TOP/image    the container's root
 *	TOP/outside  what must never be touched
 */
#ifndef GRAFT_TEST_APPLY_WORLD_H
#define GRAFT_TEST_APPLY_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "apply/namespace/target.h"
#include "apply/namespace/to_namespace.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "plan/plan.h"

#include "../unit/machine.h"

enum world_kind {
	WORLD_STANDALONE, /* we are in the container's namespaces */
	WORLD_SUPERVISED, /* another process with a mount namespace of its own */
	WORLD_USERNS,     /* which is owned by a user namespace where ids begin at 100000 */
	WORLD_ROOTLESS, /* whose user namespace was made by WORLD_USER, and so is the caller: he has no rights of his own */
	WORLD_KIND_MAX
};
extern const char *const world_kind_names[WORLD_KIND_MAX];
#define WORLD_USER     65534
#define WORLD_FIRST_ID 100000

struct world {
	enum world_kind kind;
	char top[64], rootfs[80];
	char inside[160]; /* prefix by which this process sees the container's root with its mounts */
	pid_t container;  /* 0 = none */
	bool bare;        /* the container mounts nothing of its own (otherwise a tmpfs on /dev) */
	int alive_fd;     /* it ends when this closes */
	struct graft_arena *arena;
	struct graft_plan plan;
	char log[1 << 16];
	struct graft_log log_sink;
	struct graft_cgroup *cgroup; /* for the options; may be NULL */
	bool spends_budget;          /* it is spent when the target has been opened */
	int (*step)(void *arg, const char *step, struct graft_error *err);
	struct graft_error error;
};

/* Private mount namespace for the whole test program. Without the rights the program ends with 77 and says why. */
void world_enter(const char *program);
struct world *world_new(enum world_kind kind);
void world_free(struct world *world);

/* Puts things into the image (or, with "../outside/x", beside it). Failures end the test. */
void world_directory(struct world *world, const char *path);
void world_file(struct world *world, const char *path, const char *content);
void world_link(struct world *world, const char *path, const char *text);
void world_parents(struct world *world, const char *path); /* the directories on the way to it */
void world_remove(struct world *world, const char *path);
const char *world_path(struct world *world, const char *path); /* in the image */
const char *world_inside_path(struct world *world,
			      const char *path); /* as the container sees it; a last link is not resolved in it */

/* The image that world_plan_all() is made for, and the plan. */
void world_usual_image(struct world *world);
void world_plan_all(struct world *world);
struct graft_edit *world_add(struct world *world, enum graft_edit_kind kind, const char *source, const char *target);
/* Fails the test unless everything that world_plan_all() asks for is there. */
void world_check_all(struct world *world);

/* Starts the container's process, once the image is as it shall be; world_apply() does it if need be. */
void world_start(struct world *world);
/* Opens the target and applies world->plan; as WORLD_USER in a child for WORLD_ROOTLESS. The result of graft_apply_to_namespace(). */
int world_apply(struct world *world);

/* Everything below a directory (one file system): names, types, modes, owners, sizes, beginnings of contents, links. */
void world_tree(const char *path, struct graft_buffer *out);
/* Mounts of a process, and the state of this one: namespaces, ids, capabilities, umask, directories, open descriptors. */
void world_mounts(pid_t pid, struct graft_buffer *out);
void world_process(struct graft_buffer *out);
/* All of it: image, outside, host, mounts of container and test, process. */
void world_snapshot(struct world *world, struct graft_buffer *out);
/* Fails the test with the first line that differs. */
void world_assert_same(const struct graft_buffer *before, const struct graft_buffer *after, const char *when);

#endif
