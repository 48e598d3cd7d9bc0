/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root: paths below a root directory, as file descriptors.
 *
 * A root is one O_PATH descriptor of a directory. Whatever is looked up below it stays below it: links, absolute or
 * relative, restart at or are clamped to the root, and magic links of /proc are refused. With openat2(2) (Linux 5.6)
 * the kernel does it (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS); without it every component is opened O_NOFOLLOW and
 * links are followed by hand, at most 40 of them. graft_root_open() probes which of the two (ENOSYS, or EPERM of a seccomp
 * filter); a call that meets the refusal later falls back by itself.
 *
 * SECURITY: no string path into a container is ever handed to the kernel as a whole outside these functions.
 */
#ifndef GRAFT_BASE_ROOT_H
#define GRAFT_BASE_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/texts.h"

/* The two kinds of path, so that mixing them up does not compile. Neither owns its string. */
struct host_path {
	const char *s;
};
struct ctr_path {
	const char *s;
};

struct graft_root {
	int fd;          /* O_PATH|O_DIRECTORY|O_CLOEXEC; owned; -1 when closed */
	bool no_openat2; /* the fallback walk is in use */
	char *own_path;  /* owned; the root as our own procfs prints it; NULL for roots that were taken, see below */
	int proc_fd;     /* borrowed; our own /proc/self/fd, for graft_root_reopen; -1 when there is none */
	/* Borrowed; where graft_root_read() remembers files of a root that was taken (base/texts.h); NULL: nowhere. */
	struct graft_texts *texts;
};
#define GRAFT_ROOT_INIT                                                                       \
	{                                                                                     \
		.fd = -1, .no_openat2 = false, .own_path = NULL, .proc_fd = -1, .texts = NULL \
	}

/* Opens a host directory as a root. A final link is followed (it is the caller's own path). */
int graft_root_open(struct graft_root *ret_root, const char *host_directory, struct graft_error *err);
/*
 * Makes a root of an O_PATH directory descriptor, which it swallows: the way to a container's root. Such a root is not trusted: /proc/self/fd
 * is never asked about it (after joining the container's mount namespace /proc is the image's), and nothing below it but a
 * regular file or directory is opened for reading by graft_root_read (opening a device node can have effects).
 */
void graft_root_take(struct graft_root *ret_root, int take_fd);
void graft_root_close(struct graft_root *root);
#define auto_root __attribute__((cleanup(graft_root_close)))

/*
 * Opens `path` below the root with open(2) flags (O_CLOEXEC is added; O_NOFOLLOW concerns the last component; O_CREAT is refused, see
 * graft_root_create). Returns the descriptor, or -errno. Never blocks on a FIFO when O_PATH or O_NONBLOCK is given.
 */
int graft_root_openat(const struct graft_root *root, const char *path, int flags);

/* Whether something is at `path` (links followed below the root), with O_DIRECTORY in `flags` a directory. */
bool graft_root_has(const struct graft_root *root, const char *path, int flags);

/* fstat of what is at `path` (links followed below the root). Returns 0 or -errno. */
int graft_root_stat(const struct graft_root *root, const char *path, struct stat *ret_stat);

/*
 * Resolves all links of `path` below the root. The last component must exist. Gives the canonical path as seen from the root ("/run/x"
 * for "/var/run/x") in `arena`; ret_fd, if not NULL, receives an O_PATH descriptor of the object. Returns 0 or -errno.
 */
int graft_root_resolve(const struct graft_root *root, const char *path, struct graft_arena *arena,
		       const char **ret_path, int *ret_fd);
/* The same for a directory: anything else is -ENOTDIR. */
int graft_root_resolve_directory(const struct graft_root *root, const char *path, struct graft_arena *arena,
				 const char **ret_path, int *ret_fd);

/*
 * Looks in one call whether `path` leads where it says: absolute, without ".", ".." and doubled or trailing slashes, and no component is a
 * link or a mount point. 0: it does, so it is canonical and lies on the root's own mount. -ENOENT, -ENOTDIR: it does up to a component that is
 * not there. Anything else, -ELOOP and -EXDEV among it: ask graft_root_resolve().
 */
int graft_root_look_plain(const struct graft_root *root, const char *path);

/*
 * Opens what `path_fd` (O_PATH) is, which the caller has looked at: through root->proc_fd, so that it cannot be anything else, or else by
 * `path` once more. Returns the descriptor or -errno.
 */
int graft_root_reopen(const struct graft_root *root, int path_fd, const char *path, int flags);

/*
 * Reads a whole regular file (opened non-blocking; anything else is -EINVAL; larger than `max` is -EFBIG; files of procfs that
 * state size 0 are read to their end). The bytes are in `arena`, followed by a NUL that is not counted. Returns 0 or -errno.
 */
int graft_root_read(const struct graft_root *root, const char *path, size_t max, struct graft_arena *arena,
		    const char **ret_bytes, size_t *ret_length);
/* The same for an open descriptor. */
int graft_read_fd(int fd, size_t max, struct graft_arena *arena, const char **ret_bytes, size_t *ret_length);

/*
 * Called for each thing made below a root, in order, so that a journal can undo it. `parent_fd` is borrowed.
 * `name` is one component.
 */
struct graft_root_watch {
	int (*created)(void *arg, int parent_fd, const char *name, bool is_directory);
	void *arg;
};

/*
 * Makes `path` and its missing parents directories (parents 0755; the last `mode`, not masked by umask), each with mkdirat(2) in its
 * parent's descriptor. A dangling link on the way is followed by hand, below the root. Gives an O_PATH descriptor of the
 * directory. An existing non-directory is -ENOTDIR. Returns 0 or -errno. `watch` may be NULL.
 */
int graft_root_mkdir(const struct graft_root *root, const char *path, mode_t mode, const struct graft_root_watch *watch,
		     int *ret_fd);

/*
 * Finds or makes a mount point: what is at `path` after following links below the root if it has the right kind (directory, or anything
 * else), otherwise a new empty directory or regular file (O_CREAT|O_EXCL|O_NOFOLLOW, `mode`), missing parents included. Nothing
 * existing is opened other than O_PATH. Gives an O_PATH descriptor (of a file just made: a read-only one, so that no other can have
 * taken its name meanwhile). -EISDIR / -ENOTDIR when the wrong kind is there.
 */
int graft_root_mountpoint(const struct graft_root *root, const char *path, bool directory, mode_t mode,
			  const struct graft_root_watch *watch, int *ret_fd);

/*
 * Splits `path` into the descriptor of its parent directory (links followed, O_PATH) and the last component, copied to `name`
 * (NAME_MAX + 1 bytes). The last component need not exist and is not followed. Returns 0 or -errno.
 */
int graft_root_parent(const struct graft_root *root, const char *path, int *ret_parent_fd, char *name);

#endif
