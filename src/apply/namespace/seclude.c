/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seclude: peer groups of mounts. Finds the mount of a descriptor by its id in the mount table, and
 * its root by the mount point given there; knows nothing of what is mounted on it.
 */
#include "apply/namespace/seclude.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "base/sys.h"
#include "formats/procfs.h"

#define EMPTY_PATH 0x1000u            /* AT_EMPTY_PATH, as an unsigned flag */
#define MAX_TABLE  ((size_t)64 << 20) /* enough for the kernel's limit of 100,000 mounts */
#define MAX_ARENA  ((size_t)256 << 20)

/*
 * Returns the id of the mount that `fd` is on, as in the mount table, or -ENOENT if it is unknown.
 */
static int mount_id(const struct graft_seclusion *seclusion, int fd)
{
	uint64_t id = graft_mount_id(seclusion->proc_fd, "../fdinfo", fd);

	return id > 0 && id <= INT_MAX ? (int)id : -ENOENT;
}

/*
 * Finds the line of the mount table, or NULL if the mount is not in this namespace or not visible
 * from our root.
 */
static int find_mount_by_id(const struct graft_seclusion *seclusion, int id, struct graft_arena *arena,
			    const struct graft_mountinfo **ret_mount)
{
	auto_close int fd = openat(seclusion->proc_fd, "../mountinfo", O_RDONLY | O_CLOEXEC);
	struct graft_mountinfo *mounts = NULL;
	const char *bytes = "";
	size_t length = 0, n = 0;
	int rc = fd < 0 ? -errno : graft_read_fd(fd, MAX_TABLE, arena, &bytes, &length);

	*ret_mount = NULL;
	if (rc == 0)
		rc = graft_procfs_mountinfo(bytes, length, arena, &mounts, &n);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		if (mounts[i].mount_id == id)
			*ret_mount = &mounts[i];
	}
	return rc;
}

static bool is_plain_mount(const struct graft_seclusion *seclusion, int id)
{
	for (size_t i = 0; i < seclusion->n_plain; i++) {
		if (seclusion->plain_ids[i] == id)
			return true;
	}
	return false;
}

/* SECURITY: the container chose the path; it must resolve to exactly this mount. */
static int open_root(const struct graft_seclusion *seclusion, const struct graft_mountinfo *mount)
{
	int fd = open(mount->mount_point, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (mount_id(seclusion, fd) == mount->mount_id)
		return fd;
	(void)close(fd);
	return -ESTALE;
}

/* A kernel that knows the flag rejects the descriptor; an older one rejects the flag. */
static bool has_way_back(void)
{
	return graft_move_mount(-1, "", -1, "",
				GRAFT_MOVE_MOUNT_SET_GROUP | GRAFT_MOVE_MOUNT_F_EMPTY_PATH |
				    GRAFT_MOVE_MOUNT_T_EMPTY_PATH) < 0 &&
	       errno == EBADF;
}

static int set_propagation(const struct graft_seclusion *seclusion, int mount_fd, unsigned long type)
{
	struct graft_mount_attr attr = { .propagation = type };
	char name[16];

	if (graft_mount_setattr(mount_fd, "", EMPTY_PATH, &attr) == 0)
		return 0;
	if (errno != ENOSYS && errno != EPERM)
		return -errno;
	/* BASELINE 5.12. */
	(void)snprintf(name, sizeof(name), "%d", mount_fd);
	if (fchdir(seclusion->proc_fd) < 0 || mount(NULL, name, NULL, type, NULL) < 0)
		return -errno;
	return 0;
}

static int leave_group(struct graft_seclusion *seclusion, int take_root_fd)
{
	auto_close int root_fd = take_root_fd;
	auto_close int group_fd = -1;
	int rc;

	if (seclusion->n == GRAFT_SECLUDED_MAX)
		return -E2BIG;
	/* A copy of a shared mount belongs to the same group and keeps the group alive. */
	if (has_way_back())
		group_fd = graft_open_tree(root_fd, "", GRAFT_OPEN_TREE_CLONE | O_CLOEXEC | EMPTY_PATH);
	rc = set_propagation(seclusion, root_fd, group_fd >= 0 ? MS_PRIVATE : MS_SLAVE);
	if (rc < 0)
		return rc;
	seclusion->mounts[seclusion->n].mount_fd = TAKE_FD(root_fd);
	seclusion->mounts[seclusion->n].group_fd = TAKE_FD(group_fd);
	seclusion->n++;
	return GRAFT_SECLUDE_DONE;
}

static int seclude(struct graft_seclusion *seclusion, int id, struct graft_arena *arena)
{
	const struct graft_mountinfo *mount;
	int rc = find_mount_by_id(seclusion, id, arena, &mount);

	if (rc < 0)
		return rc;
	if (!mount || !mount->shared) {
		if (seclusion->n_plain < GRAFT_SECLUDED_MAX)
			seclusion->plain_ids[seclusion->n_plain++] = id;
		return GRAFT_SECLUDE_PLAIN;
	}
	rc = open_root(seclusion, mount);
	return rc < 0 ? rc : leave_group(seclusion, rc);
}

int graft_seclude(struct graft_seclusion *seclusion, int fd)
{
	auto_arena struct graft_arena *arena = NULL;
	int id = mount_id(seclusion, fd);

	if (id < 0)
		return id;
	if (is_plain_mount(seclusion, id))
		return GRAFT_SECLUDE_PLAIN;
	if (seclusion->spared_fd >= 0 && mount_id(seclusion, seclusion->spared_fd) == id)
		return GRAFT_SECLUDE_SPARED;
	arena = graft_arena_new(MAX_ARENA);
	return arena ? seclude(seclusion, id, arena) : -ENOMEM;
}

void graft_seclude_end(struct graft_seclusion *seclusion, const struct graft_log *log)
{
	while (seclusion->n > 0) {
		int mount_fd = seclusion->mounts[--seclusion->n].mount_fd;
		int group_fd = seclusion->mounts[seclusion->n].group_fd;

		if (group_fd < 0)
			graft_warn(log, "new mounts on a volume that the container shares with the host stay "
					"private: Linux before 5.15 cannot share them again");
		else if (graft_move_mount(group_fd, "", mount_fd, "",
					  GRAFT_MOVE_MOUNT_SET_GROUP | GRAFT_MOVE_MOUNT_F_EMPTY_PATH |
					      GRAFT_MOVE_MOUNT_T_EMPTY_PATH) < 0)
			graft_warn(log, "mounts on a volume are no longer shared between container and host: %s",
				   strerror(errno));
		(void)close(mount_fd);
		if (group_fd >= 0)
			(void)close(group_fd);
	}
	seclusion->n_plain = 0;
}
