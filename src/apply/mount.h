/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: the mount core (docs/decisions/0004-mount-core.md): a source, a place, flags; descriptors only.
 *
 * With the mount API of Linux 5.2 a mount is made detached (graft_mount_clone), gets its flags (5.12: mount_setattr) and is then attached,
 * so it is never visible without them. Where a call is missing, mount(2) does that part onto /proc/self/fd/N. What is missing is
 * found by calling each with arguments that it must refuse: EINVAL or EBADF is a call that exists, ENOSYS or EPERM (a seccomp filter's answer) one
 * that does not.
 *
 * Paths of /proc/self/fd are relative to a descriptor of it opened at the start: it stays that of our own procfs in the container's
 * mount namespace, where "/proc" is the image's.
 */
#ifndef GRAFT_APPLY_MOUNT_H
#define GRAFT_APPLY_MOUNT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* call, what we do without it */
#define GRAFT_MOUNT_CALL_LIST(X)                                      \
	X(OPEN_TREE, "open_tree", "mount(2) with MS_BIND")            \
	X(MOVE_MOUNT, "move_mount", "mount(2) with MS_BIND")          \
	X(MOUNT_SETATTR, "mount_setattr", "mount(2) with MS_REMOUNT") \
	X(FSOPEN, "fsopen", "mount(2) of a tmpfs")                    \
	X(FSCONFIG, "fsconfig", "mount(2) of a tmpfs")                \
	X(FSMOUNT, "fsmount", "mount(2) of a tmpfs")

enum graft_mount_call {
#define X(name, word, without) GRAFT_MOUNT_CALL_##name,
	GRAFT_MOUNT_CALL_LIST(X)
#undef X
	    GRAFT_MOUNT_CALL_MAX
};
extern const char *const graft_mount_call_names[GRAFT_MOUNT_CALL_MAX];

struct graft_mounter {
	int proc_fd; /* our /proc/self/fd, borrowed */
	bool missing[GRAFT_MOUNT_CALL_MAX];
	bool refused; /* one answered EPERM: a filter, or no rights in the present mount namespace */
};

/* Finds out which calls there are. May be repeated after joining a namespace in which there are more rights. */
void graft_mounter_probe(struct graft_mounter *mounter, int proc_fd);
/* Binds are made detached; tmpfs are. */
bool graft_mounter_detaches(const struct graft_mounter *mounter);
bool graft_mounter_makes_tmpfs(const struct graft_mounter *mounter);

/*
 * Where a mount goes. `parent_fd` and `name` are needed (and set) only where mount(2) has to be used: a mount made by it is found
 * again by its name.
 */
struct graft_spot {
	int fd;        /* O_PATH; what is mounted over; owned */
	int parent_fd; /* owned; -1 */
	char name[NAME_MAX + 1];
};
#define GRAFT_SPOT_INIT                   \
	{                                 \
		.fd = -1, .parent_fd = -1 \
	}
void graft_spot_done(struct graft_spot *spot);
#define auto_spot __attribute__((cleanup(graft_spot_done)))

/* Detached copies of the mount that shows `path` (a last link is not followed if `nofollow`) or `fd`. Descriptor or -errno. */
int graft_mount_clone_path(const char *path, bool nofollow);
int graft_mount_clone_fd(int fd);

/*
 * Adds flags (enum graft_mount_flag) to those that the mount has, and makes its propagation private. On a detached mount this does nothing where
 * mount_setattr is missing; *ret_done says whether it was done. 0 or -errno.
 */
int graft_mount_settle(const struct graft_mounter *mounter, int mount_fd, uint32_t flags, bool attached,
		       bool *ret_done);

/* Attaches a detached mount; its descriptor stays the one of its root. 0 or -errno. */
int graft_mount_attach(int mount_fd, const struct graft_spot *spot);
/*
 * mount(2) of what `source_fd` is, which must be in the present mount namespace. Gives the mount's root; without flags yet. -ESTALE: its name
 * led elsewhere all the time; then nothing is mounted.
 */
int graft_mount_bind(const struct graft_mounter *mounter, int source_fd, const struct graft_spot *spot,
		     int *ret_mount_fd);

/* A detached empty tmpfs with flags, as a descriptor, or -errno. */
int graft_mount_new_tmpfs(mode_t mode, uint32_t flags);
/* mount(2) of one with its flags. Gives the mount's root; fails as graft_mount_bind does. */
int graft_mount_tmpfs(const struct graft_mounter *mounter, const struct graft_spot *spot, mode_t mode, uint32_t flags,
		      int *ret_mount_fd);

/* A number that tells mounts of one file system apart; 0 where the kernel does not say (BASELINE 5.8). */
uint64_t graft_mount_id(int fd);

#endif
