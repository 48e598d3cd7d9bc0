/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place: where in the container an edit goes. Finds or makes mount points and parent directories below the root and tells the journal.
 * Remembers the directory of the last target: the libraries of a driver all lie in one.
 */
#ifndef GRAFT_APPLY_PLACE_H
#define GRAFT_APPLY_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "apply/journal.h"
#include "apply/mount.h"
#include "base/root.h"

struct graft_place {
	const struct graft_root *root;
	struct graft_journal *journal;
	bool want_parents;        /* spots need parent_fd and name (mount(2) is in use) */
	int directory_fd;         /* held by the journal */
	char directory[PATH_MAX]; /* its path as the edits write it; "" = none */
};

/* Both are borrowed. */
void graft_place_init(struct graft_place *place, const struct graft_root *root, struct graft_journal *journal);
/* Something was mounted over a directory: what was remembered may be hidden. */
void graft_place_forget(struct graft_place *place);

/* All give 0 or -errno; paths are those of base/root.h. */

/* The parent directory of `target`, made if it is missing (0755). *ret_fd is borrowed and lasts as long as the journal. */
int graft_place_parent(struct graft_place *place, const char *target, int *ret_fd, const char **ret_name);
/* A mount point: graft_root_mountpoint() with what it costs reduced. */
int graft_place_mountpoint(struct graft_place *place, const char *target, bool directory, mode_t mode,
			   struct graft_spot *ret_spot);
/* What is there already and is no directory. -ENOENT, -ENOTDIR: nothing is. */
int graft_place_existing(struct graft_place *place, const char *target, struct graft_spot *ret_spot);
/* A directory that stays. */
int graft_place_directory(struct graft_place *place, const char *target, mode_t mode);

#endif
