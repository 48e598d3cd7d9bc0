/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place: where in the container an edit goes. Finds or makes mount points and parent directories below the root and tells the journal.
 * Remembers the directories of the last targets: the libraries of a driver lie in very few.
 */
#ifndef GRAFT_APPLY_PLACE_H
#define GRAFT_APPLY_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "apply/journal.h"
#include "apply/mount.h"
#include "base/root.h"

#define GRAFT_PLACE_DIRECTORIES 4

struct graft_place {
	const struct graft_root *root;
	struct graft_journal *journal;
	bool want_parents; /* spots need parent_fd and name (mount(2) is in use) */
	struct {
		const char *target; /* begins with the directory's path as the edits write it; borrowed */
		size_t length;      /* of that path, with its last slash */
		int fd;             /* held by the journal */
	} directories[GRAFT_PLACE_DIRECTORIES];
	size_t n_directories, next; /* next: the one that gives way */
};

/* Both are borrowed. */
void graft_place_init(struct graft_place *place, const struct graft_root *root, struct graft_journal *journal);
/* Something was mounted over a directory: what was remembered may be hidden. */
void graft_place_forget(struct graft_place *place);

/* All give 0 or -errno; paths are those of base/root.h. */

/*
 * The parent directory of `target`, made if it is missing (0755). *ret_fd is borrowed and lasts as long as the journal; `target` must live as long
 * as the place.
 */
int graft_place_parent(struct graft_place *place, const char *target, int *ret_fd, const char **ret_name);
/* A mount point: graft_root_mountpoint() with what it costs reduced. */
int graft_place_mountpoint(struct graft_place *place, const char *target, bool directory, mode_t mode,
			   struct graft_spot *ret_spot);
/* What is there already and is no directory. -ENOENT, -ENOTDIR: nothing is. */
int graft_place_existing(struct graft_place *place, const char *target, struct graft_spot *ret_spot);
/* A directory that stays. */
int graft_place_directory(struct graft_place *place, const char *target, mode_t mode);

#endif
