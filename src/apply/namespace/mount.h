/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount: the mount core (docs/decisions/0004-mount-core.md): mounts a source at a spot with flags,
 * using descriptors only.
 *
 * With the mount API of Linux 5.2 a mount is made detached (graft_mount_clone), gets its flags
 * (5.12: mount_setattr) and is then attached, so it is never visible without them. Where a call is
 * missing, mount(2) does that part on /proc/self/fd/N. Each call is probed with arguments that it
 * must refuse: EINVAL or EBADF means that it exists; ENOSYS or EPERM (the answer of a seccomp
 * filter) means that it does not.
 *
 * Paths of /proc/self/fd are relative to a descriptor that was opened at the start. It remains that
 * of our own procfs in the container's mount namespace, where "/proc" is the image's.
 */
#ifndef GRAFT_APPLY_NAMESPACE_MOUNT_H
#define GRAFT_APPLY_NAMESPACE_MOUNT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "apply/namespace/seclude.h"
#include "base/buffer.h"

/* call, what we do without it */
enum graft_mount_call {
	GRAFT_MOUNT_CALL_OPEN_TREE,     /* without it: mount(2) with MS_BIND */
	GRAFT_MOUNT_CALL_MOVE_MOUNT,    /* mount(2) with MS_BIND */
	GRAFT_MOUNT_CALL_MOUNT_SETATTR, /* mount(2) with MS_REMOUNT */
	GRAFT_MOUNT_CALL_FSOPEN,        /* mount(2) of a tmpfs, and so for the next two */
	GRAFT_MOUNT_CALL_FSCONFIG,
	GRAFT_MOUNT_CALL_FSMOUNT,
	GRAFT_MOUNT_CALL_MAX
};

struct graft_mounter {
	int proc_fd; /* our /proc/self/fd, borrowed */
	bool missing[GRAFT_MOUNT_CALL_MAX];
	bool refused; /* a call failed with EPERM: a filter, or no rights in the current mount namespace */
	struct graft_seclusion seclusion;
	/* Only if mount(2) has to be used; of the mount namespace in which it is used first. */
	int table_fd;              /* the mount table, which reports changes; -1: none yet; owned */
	struct graft_buffer table; /* what is mounted, ours included, with a line feed before each line */
	bool is_table_old;         /* another process has changed it */
};

/*
 * Determines which calls exist. Nothing is secluded yet. May be repeated after joining a namespace
 * in which we have more rights, before anything is mounted.
 */
void graft_mounter_probe(struct graft_mounter *mounter, int proc_fd);
/* Frees what mounting needed. A zeroed mounter, without a probe, is allowed. */
void graft_mounter_done(struct graft_mounter *mounter);
/* Whether bind mounts can be made detached, and whether tmpfs can. */
bool graft_mounter_detaches(const struct graft_mounter *mounter);
bool graft_mounter_makes_tmpfs(const struct graft_mounter *mounter);

/*
 * Where a mount goes. `parent_fd` and `name` are needed (and set) only if mount(2) has to be used,
 * since its mount is found again by name.
 */
struct graft_spot {
	int fd;        /* O_PATH; what is mounted over; owned unless kept */
	bool kept;     /* fd belongs to the journal by now */
	int parent_fd; /* owned; -1 = none */
	char name[NAME_MAX + 1];
};
#define GRAFT_SPOT_INIT                   \
	{                                 \
		.fd = -1, .parent_fd = -1 \
	}
void graft_spot_done(struct graft_spot *spot);
#define auto_spot __attribute__((cleanup(graft_spot_done)))

/*
 * Make a detached copy of the mount at `path` (a final link is not followed if `nofollow`) or at
 * `fd`; of what is mounted below it as well if `flags` has GRAFT_MOUNT_RECURSIVE. They return a
 * descriptor or -errno.
 */
int graft_mount_clone_path(const char *path, bool nofollow, uint32_t flags);
int graft_mount_clone_fd(int fd, uint32_t flags);

/*
 * Adds flags (enum graft_mount_flag) to those of the mount. An attached mount becomes private. A
 * detached one becomes unbindable, which the kernel refuses to attach to a shared mount, so that
 * nothing has to be checked before; without mount_setattr a detached mount is left unchanged, and
 * gets its flags once it is attached. Returns 0 or -errno.
 */
int graft_mount_settle(struct graft_mounter *mounter, int mount_fd, uint32_t flags, bool attached);

/*
 * Attaches a detached mount without propagating it to the peers of the mount below; its descriptor
 * remains that of its root. Settle the mount again afterwards. Returns 0 or -errno.
 */
int graft_mount_attach(struct graft_mounter *mounter, int mount_fd, const struct graft_spot *spot);
/*
 * Bind mounts `source_fd` with mount(2), recursively if `flags` has GRAFT_MOUNT_RECURSIVE; the
 * source must be in the current mount namespace. Opens the mount's root, still without flags.
 * Returns 0 or -errno; -ESTALE if its name led elsewhere all the time. On failure nothing is
 * mounted.
 */
int graft_mount_bind(struct graft_mounter *mounter, int source_fd, const struct graft_spot *spot, uint32_t flags,
		     int *ret_mount_fd);

/* Makes a detached, settled, empty tmpfs with flags. Returns a descriptor or -errno. */
int graft_mount_new_tmpfs(struct graft_mounter *mounter, mode_t mode, uint32_t flags);
/* Mounts a tmpfs with its flags by mount(2) and opens its root. Fails like graft_mount_bind(). */
int graft_mount_tmpfs(struct graft_mounter *mounter, const struct graft_spot *spot, mode_t mode, uint32_t flags,
		      int *ret_mount_fd);

#endif
