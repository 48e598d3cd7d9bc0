/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_place: resolves a path of the host to the descriptor of a directory and a name in it, for
 * writing there.
 *
 * Links are followed one by one, each checked through its own descriptor. The kernel's rules for
 * world-writable directories (protected_symlinks, protected_regular and protected_fifos of proc(5))
 * are applied to every component of the path, however these switches are set:
 *
 *	a link in a sticky directory that everybody may write to is followed only if it belongs to us or to the directory's owner
 *	a file or FIFO in a sticky directory that its group or everybody may write to is written to only if it belongs to one of these two
 *
 * Later operations use the name in the descriptor, so they cannot be redirected meanwhile.
 *
 * The directories are the host's: do not use this for a container's root.
 */
#ifndef GRAFT_APPLY_HOST_PLACE_H
#define GRAFT_APPLY_HOST_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum graft_host_found {
	GRAFT_HOST_NOTHING,
	GRAFT_HOST_OBJECT,       /* described by `st` */
	GRAFT_HOST_FOREIGN_LINK, /* a link that must not be followed; with GRAFT_HOST_OWN_LINKS */
};

struct graft_host_place {
	int dir_fd;              /* O_PATH; owned; -1 = no place */
	char name[NAME_MAX + 1]; /* one component; "." with GRAFT_HOST_DIRECTORY */
	enum graft_host_found found;
	struct stat st; /* unless found is NOTHING */
	bool is_magic;  /* a procfs link to a stream or file: open the name without O_NOFOLLOW */
	char why[640];  /* a link or file that the rules forbid: what it is, where, and what to do; otherwise empty */
};
#define GRAFT_HOST_PLACE_INIT                       \
	{                                           \
		.dir_fd = -1, .name = "", .why = "" \
	}

enum graft_host_flag {
	GRAFT_HOST_MAKE_PARENTS = 1 << 0, /* make missing directories of `path` (0755) */
	GRAFT_HOST_MAKE_LAST = 1 << 1,    /* with DIRECTORY: make the directory itself, if only that is missing */
	GRAFT_HOST_DIRECTORY = 1 << 2,    /* the path is a directory: dir_fd */
	GRAFT_HOST_NO_FOLLOW = 1 << 3,    /* find a link at the end itself */
	/*
	 * A link at the end is followed only if it is ours or root's, and has no other name where
	 * another user may have given it this one. Any other is found as FOREIGN_LINK, with `why`,
	 * and has to be replaced or refused.
	 */
	GRAFT_HOST_OWN_LINKS = 1 << 4,
	GRAFT_HOST_TO_WRITE = 1 << 5, /* refuse files and FIFOs of others in shared directories */
	GRAFT_HOST_MAGIC = 1 << 6,    /* a procfs link to a file: find that file, and not the link's text */
};

/*
 * Finds `path` from the directory `from_fd` (AT_FDCWD is fine). `root_fd`, unless -1, is used as
 * "/", and ".." does not leave it. Returns 0 or -errno; -EACCES with `why` for what the rules
 * forbid; -EISDIR for a path, or a link at its end, that cannot be a file's. Close the place in
 * either case.
 */
int graft_host_place_find(int from_fd, int root_fd, const char *path, unsigned int flags,
			  struct graft_host_place *ret_place);
void graft_host_place_close(struct graft_host_place *place);
#define auto_host_place __attribute__((cleanup(graft_host_place_close)))

/*
 * Opens the object that was found. Returns the descriptor or -errno; -ESTALE if something else is
 * there by now.
 */
int graft_host_place_open(const struct graft_host_place *place, int flags);

/* Whether the rules allow following this link in this directory. */
bool graft_host_may_follow(const struct stat *directory, const struct stat *link);

#endif
