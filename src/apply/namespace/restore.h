/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore: undoes changes of names: removes what was made, and restores what was renamed over, of
 * which only a descriptor is left.
 *
 * Other processes may change the same directory meanwhile, those of the container among them. A
 * name is touched only while it refers to what we made, and that is checked after a step that can
 * still be reversed: ours is moved to an unpredictable name, or exchanged with the old object, and
 * is removed once its mark identifies it. What another process put there stays, and the result is
 * -ESTALE.
 */
#ifndef GRAFT_APPLY_NAMESPACE_RESTORE_H
#define GRAFT_APPLY_NAMESPACE_RESTORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Identifies the object that a name refers to. Many file systems reuse the number of a removed
 * inode at once, so a mark is reliable only while a descriptor of the object is open. Without one,
 * the birth time is compared, and within one tick of the kernel's clock (1 to 10 ms) another object
 * of the same type can be mistaken for ours.
 */
struct graft_mark {
	bool there; /* false: the name did not exist */
	mode_t type;
	uint32_t dev_major, dev_minor, born_ns;
	uint64_t ino;
	int64_t born_s;
};

/*
 * Notes which file has the name, with one system call. Returns 0, also if nothing has it, or
 * -errno.
 */
int graft_mark(int parent_fd, const char *name, struct graft_mark *ret_mark);
/* Marks the object of a descriptor of any kind. */
int graft_mark_fd(int fd, struct graft_mark *ret_mark);

/* Whether both identify the same object. */
bool graft_mark_is_same(const struct graft_mark *a, const struct graft_mark *b);

/*
 * Removes `name` if it is `ours`: an empty directory, or anything else. Returns 0 or -errno;
 * -ENOENT: there is nothing.
 */
int graft_restore_nothing(int parent_fd, const char *name, const struct graft_mark *ours);

/*
 * Restores the object of `old_fd` (O_PATH|O_NOFOLLOW) at `name` in `parent_fd`, if that is `ours`
 * or nothing: as another hard link of the same inode while it has one, otherwise as a copy. `ours`
 * then becomes the mark of the restored object. `proc_fd` is our /proc/self/fd. Copies at most 64
 * MiB of data and keeps holes. Returns 0 or -errno.
 */
int graft_restore(int proc_fd, int old_fd, int parent_fd, const char *name, struct graft_mark *ours);

/* Restores a symbolic link that points to `text` at `name` in the same way. Returns 0 or -errno. */
int graft_restore_link(int parent_fd, const char *name, const char *text, struct graft_mark *ours);

#endif
