/* SPDX-License-Identifier: Apache-2.0 */
/* join: setns(2) into a container and back. Knows nothing of what is done inside. */
#include "apply/namespace/join.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static int fail_own(struct graft_error *err, int sys, const char *what)
{
	return graft_fail_errno(err, sys, "open failed: %s", what);
}

int graft_join_prepare(struct graft_join *ret_join, const struct graft_target *target, struct graft_error *err)
{
	auto_join struct graft_join join = GRAFT_JOIN_INIT;

	join.target = target;
	join.cwd_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (join.cwd_fd < 0)
		return fail_own(err, errno, ".");
	if (target->mount_ns_fd >= 0) {
		join.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (join.root_fd < 0)
			return fail_own(err, errno, "/");
		join.own_mount_ns_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
		if (join.own_mount_ns_fd < 0)
			return fail_own(err, errno, "/proc/self/ns/mnt");
	}
	*ret_join = join;
	join = (struct graft_join)GRAFT_JOIN_INIT;
	return 0;
}

static int fail_association(struct graft_error *err, const struct graft_target *target, const char *which)
{
	return graft_fail(err, GRAFT_PERMISSION, errno, "namespace association failed: /proc/%ld/ns/%s",
			  (long)target->pid, which);
}

int graft_join_enter(struct graft_join *join, struct graft_error *err)
{
	if (join->inside || join->target->mount_ns_fd < 0)
		return 0;
	if (join->target->user_ns_fd >= 0 && !join->one_way) {
		if (setns(join->target->user_ns_fd, CLONE_NEWUSER) < 0)
			return fail_association(err, join->target, "user");
		join->one_way = true;
	}
	if (setns(join->target->mount_ns_fd, CLONE_NEWNS) < 0)
		return fail_association(err, join->target, "mnt");
	join->inside = true;
	return 0;
}

/*
 * setns(2) sets our root to that of the namespace; a caller that runs in a chroot gets its own
 * back.
 */
static int return_to_root(const struct graft_join *join)
{
	struct stat here, there;

	if (stat("/", &here) < 0 || fstat(join->root_fd, &there) < 0)
		return -1;
	if (here.st_dev == there.st_dev && here.st_ino == there.st_ino)
		return 0;
	return fchdir(join->root_fd) < 0 ? -1 : chroot(".");
}

int graft_join_leave(struct graft_join *join, struct graft_error *err)
{
	if (join->one_way)
		return 0;
	if (join->inside) {
		if (setns(join->own_mount_ns_fd, CLONE_NEWNS) < 0)
			return fail_association(err, join->target, "mnt");
		join->inside = false;
		if (return_to_root(join) < 0)
			return graft_fail_errno(err, errno, "change root failed");
	}
	if (fchdir(join->cwd_fd) < 0)
		return graft_fail_errno(err, errno, "could not return to the working directory");
	return 0;
}

void graft_join_done(struct graft_join *join)
{
	if (join->inside)
		(void)graft_join_leave(join, NULL);
	if (join->own_mount_ns_fd >= 0)
		(void)close(join->own_mount_ns_fd);
	if (join->root_fd >= 0)
		(void)close(join->root_fd);
	if (join->cwd_fd >= 0)
		(void)close(join->cwd_fd);
	*join = (struct graft_join)GRAFT_JOIN_INIT;
}
