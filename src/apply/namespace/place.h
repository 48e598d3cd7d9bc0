/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place: where in the container an edit goes. Finds or makes mount points and parent directories
 * below the root and records them in the journal. Remembers the directories of the last targets,
 * since the libraries of a driver are in very few.
 */
#ifndef GRAFT_APPLY_NAMESPACE_PLACE_H
#define GRAFT_APPLY_NAMESPACE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "apply/namespace/journal.h"
#include "apply/namespace/mount.h"
#include "base/image_root.h"

#define GRAFT_PLACE_DIRECTORIES 4

struct graft_place {
	const struct graft_image_root *root;
	struct graft_journal *journal;
	bool want_parents; /* spots need parent_fd and name (mount(2) is in use) */
	struct {
		const char *target;             /* begins with the directory's path as the edits write it; borrowed */
		size_t length;                  /* of that path, including its last slash */
		int fd;                         /* held by the journal */
		enum graft_image_change change; /* what may be changed in it */
	} directories[GRAFT_PLACE_DIRECTORIES];
	size_t n_directories, next; /* next: the entry to overwrite */
};

/* Initializes a place. Both arguments are borrowed. */
void graft_place_init(struct graft_place *place, const struct graft_image_root *root, struct graft_journal *journal);
/*
 * Forgets the remembered directories. Call it after mounting over a directory, which may hide them.
 */
void graft_place_forget(struct graft_place *place);

/*
 * The following functions return 0 or -errno; paths are those of base/image_root.h. -EXDEV: the
 * object is on another mount and may not be changed for this.
 */

/*
 * Opens the parent directory of `target` for that kind of change, creating it if it is missing
 * (0755). *ret_fd is borrowed and remains valid as long as the journal; `target` must outlive the
 * place.
 */
int graft_place_parent(struct graft_place *place, const char *target, enum graft_image_change change, int *ret_fd,
		       const char **ret_name);
/* Opens or creates a mount point, like graft_image_root_mountpoint() but cheaper. */
int graft_place_mountpoint(struct graft_place *place, const char *target, bool directory, mode_t mode,
			   struct graft_spot *ret_spot);
/*
 * Opens an existing directory or, without `directory`, anything else. -ENOENT, -ENOTDIR: there is
 * none.
 */
int graft_place_existing(struct graft_place *place, const char *target, bool directory, struct graft_spot *ret_spot);
/* Creates a directory that stays, unless it exists. */
int graft_place_directory(struct graft_place *place, const char *target, mode_t mode);

#endif
