/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook_edits: translates single hooks of a specification to edits (SPEC ctk-and-cdi 2), for
 * nvidia-cdi-hook, which applies them in the container, and for plans that apply them earlier
 * (plan/hooks_plan.h). Pure.
 */
#ifndef GRAFT_PLAN_HOOK_EDITS_H
#define GRAFT_PLAN_HOOK_EDITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/plan.h"

/*
 * The file that enable-cuda-compat writes, as the last part of the loader's configuration that the
 * next update-ldcache reads.
 */
#define GRAFT_HOOK_COMPAT_CONF "/etc/ld.so.conf.d/00-compat-graft.conf"

struct graft_hook_link {
	const char *path; /* path of the link, absolute in the container */
	const char *says; /* target of the link */
};

/*
 * Parses TARGET::LINK of create-symlinks. The strings are in the arena. Returns -1 with
 * GRAFT_INVALID "invalid symlink specification ..." or GRAFT_NO_MEMORY.
 */
int graft_hook_read_link(const char *spec, struct graft_arena *arena, struct graft_hook_link *ret_link,
			 struct graft_error *err);

struct graft_hook_file {
	const char *source; /* on the host */
	const char *path;   /* in the container; both are absolute */
};

/*
 * Parses HOST::CONTAINER of mount-files, or one path for both. The strings are in the arena.
 * Returns -1 with GRAFT_INVALID "invalid file specification ..." or GRAFT_NO_MEMORY.
 */
int graft_hook_read_file(const char *spec, struct graft_arena *arena, struct graft_hook_file *ret_file,
			 struct graft_error *err);

/*
 * Each of these appends its edits to the plan, copying its arguments. They return false if memory
 * is exhausted.
 */
/* A link that replaces any file or link. */
bool graft_hook_add_link(struct graft_plan *plan, const struct graft_hook_link *link);
/* The file, read-only, nosuid and nodev. */
bool graft_hook_add_file(struct graft_plan *plan, const struct graft_hook_file *file);
/* disable-device-node-modification: `text` over the driver's parameters. */
bool graft_hook_add_params(struct graft_plan *plan, const char *text);
/* update-application-profile: bit N of `mask` is the GPU of minor N. */
bool graft_hook_add_profile(struct graft_plan *plan, uint64_t mask);

/*
 * Returns the driver's profile file that makes EGL show only the GPUs of `mask`: "{"profiles":...",
 * by which tools recognise it. NULL if memory is exhausted.
 */
#define GRAFT_PROFILE_DIRECTORY "/etc/nvidia/nvidia-application-profiles-rc.d"
#define GRAFT_PROFILE_FILE      GRAFT_PROFILE_DIRECTORY "/10-container.conf"
const char *graft_hook_profile_text(struct graft_arena *arena, uint64_t mask);

#endif
