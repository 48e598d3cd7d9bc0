/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_scope: directories and files of cgroupfs; cgroup_v2.c has the rules of v2. */
#include "apply/cgroup/cgroup_scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/cgroup/cgroup_versions.h"
#include "apply/temporary.h"
#include "base/cleanup.h"

int graft_cgroup_scope_place(int proc_root_fd, const char *name, struct graft_arena *arena,
			     struct graft_cgroup_place *ret_place, struct graft_error *err)
{
	if (graft_cgroup_find(proc_root_fd, 0, arena, ret_place, err) < 0)
		return -1;
	ret_place->id = 0;
	ret_place->path = graft_arena_printf(arena, "%s/%s", strcmp(ret_place->path, "/") == 0 ? "" : ret_place->path,
					     name);
	return ret_place->path ? 0 : graft_fail_memory(err);
}

/* Writes to a file of the cgroup. Returns 0 or -errno. */
static int write_cgroup_file(int dir_fd, const char *name, const char *text)
{
	auto_close int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : graft_write_all(fd, text, strlen(text));
}

static bool is_allowed_in(const struct graft_cgroup_scope *scope, uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < scope->n_rules; i++) {
		if (scope->rules[i].major == major && scope->rules[i].minor == minor)
			return true;
	}
	return false;
}

/*
 * One by one: a rule for a whole major could not be lifted for some of its minors, and for GPUs it
 * would forbid nvidiactl as well.
 */
static int forbid_v1(int deny_fd, const struct graft_cgroup_scope *scope, uint32_t major, uint32_t last,
		     struct graft_error *err)
{
	char text[64];
	int rc = 0;

	for (uint32_t minor = 0; rc == 0 && minor <= last; minor++) {
		(void)snprintf(text, sizeof(text), "c %u:%u rwm", major, minor);
		if (!is_allowed_in(scope, major, minor))
			rc = graft_write_all(deny_fd, text, strlen(text));
	}
	return rc < 0 ? graft_fail(err, GRAFT_CGROUP, -rc, "cannot forbid '%s'", text) : 0;
}

static int confine_v1(int dir_fd, const struct graft_cgroup_scope *scope, struct graft_error *err)
{
	auto_close int deny_fd = openat(dir_fd, "devices.deny", O_WRONLY | O_CLOEXEC);

	if (deny_fd < 0)
		return graft_fail(err, GRAFT_CGROUP, errno, "cannot open devices.deny");
	if (forbid_v1(deny_fd, scope, GRAFT_SCOPE_GPU_MAJOR, GRAFT_SCOPE_GPU_MAX, err) < 0)
		return -1;
	return scope->caps_major > 0 ? forbid_v1(deny_fd, scope, scope->caps_major, GRAFT_SCOPE_CAPS_MAX, err) : 0;
}

int graft_cgroup_scope_enter(const struct graft_cgroup_place *place, const struct graft_cgroup_scope *scope,
			     const struct graft_log *log, struct graft_error *err)
{
	auto_arena struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	const char *path = arena ? graft_arena_printf(arena, "%s%s", place->mount, place->path) : NULL;
	auto_close int dir_fd = path && mkdir(path, 0755) == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int rc;

	if (dir_fd < 0)
		return graft_fail(err, GRAFT_CGROUP, errno, "cannot make the cgroup %s", place->path);
	if ((place->version == 1 ? confine_v1(dir_fd, scope, err) : graft_cgroup_v2_confine(dir_fd, scope, log, err)) <
	    0)
		return -1;
	rc = write_cgroup_file(dir_fd, "cgroup.procs", "0");
	return rc < 0 ? graft_fail(err, GRAFT_CGROUP, -rc, "cannot enter the cgroup %s", place->path) : 0;
}

void graft_cgroup_scope_remove(const struct graft_cgroup_place *place)
{
	auto_arena struct graft_arena *arena = graft_arena_new((size_t)1 << 16);
	const char *path = arena ? graft_arena_printf(arena, "%s%s", place->mount, place->path) : NULL;

	if (path)
		(void)rmdir(path);
}
