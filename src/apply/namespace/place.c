/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place: resolves targets below the container's root to descriptors. Knows paths of edits; mounts
 * nothing and creates only empty mount points and directories. The umask is 0 meanwhile
 * (to_namespace); modes are those of the plan.
 */
#include "apply/namespace/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"

#define PARENT_MODE 0755

void graft_place_init(struct graft_place *place, const struct graft_image_root *root, struct graft_journal *journal)
{
	place->root = root;
	place->journal = journal;
	place->want_parents = false;
	graft_place_forget(place);
}

void graft_place_forget(struct graft_place *place)
{
	place->n_directories = 0;
	place->next = 0;
}

/* Returns the last component, or NULL if the target does not end in a plain name. */
static const char *last_name(const char *target)
{
	const char *slash = strrchr(target, '/');
	const char *name = slash ? slash + 1 : target;

	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strlen(name) > NAME_MAX)
		return NULL;
	return name;
}

/* Returns the descriptor of a remembered directory in which that may be changed, or -1. */
static int recall(const struct graft_place *place, const char *target, size_t length, enum graft_image_change change)
{
	for (size_t i = 0; i < place->n_directories; i++) {
		if (place->directories[i].length == length &&
		    (place->directories[i].change == GRAFT_IMAGE_CONTENT || place->directories[i].change == change) &&
		    memcmp(place->directories[i].target, target, length) == 0)
			return place->directories[i].fd;
	}
	return -1;
}

static void remember(struct graft_place *place, const char *target, size_t length, enum graft_image_change change,
		     int fd)
{
	size_t i = place->next;

	place->directories[i].target = target;
	place->directories[i].length = length;
	place->directories[i].fd = fd;
	place->directories[i].change = change;
	place->next = (i + 1) % GRAFT_PLACE_DIRECTORIES;
	if (place->n_directories < GRAFT_PLACE_DIRECTORIES)
		place->n_directories++;
}

/* Finds or makes the directory and has the journal hold it. Returns its descriptor or -errno. */
static int open_target_parent(struct graft_place *place, const char *target, size_t length,
			      enum graft_image_change change)
{
	struct graft_root_watch watch = graft_journal_watch(place->journal);
	char directory[PATH_MAX];
	auto_close int fd = -1;
	int rc;

	if (length >= sizeof(directory))
		return -ENAMETOOLONG;
	memcpy(directory, target, length);
	directory[length] = '\0';
	rc = graft_image_root_mkdir(place->root, directory, PARENT_MODE, change, &watch, &fd);
	if (rc == 0)
		rc = graft_image_root_may_write(place->root, fd, directory, change);
	if (rc == 0)
		rc = graft_journal_hold(place->journal, fd);
	return rc < 0 ? rc : TAKE_FD(fd);
}

int graft_place_parent(struct graft_place *place, const char *target, enum graft_image_change change, int *ret_fd,
		       const char **ret_name)
{
	const char *name = last_name(target);
	size_t length = name ? (size_t)(name - target) : 0;
	int fd;

	if (!name || length == 0)
		return -EINVAL;
	*ret_name = name;
	fd = recall(place, target, length, change);
	if (fd < 0) {
		fd = open_target_parent(place, target, length, change);
		if (fd < 0)
			return fd;
		/* On the root's own mount, everything may be changed. */
		if (graft_image_root_may_write_at(place->root, fd, true, GRAFT_IMAGE_CONTENT) == 0)
			change = GRAFT_IMAGE_CONTENT;
		remember(place, target, length, change, fd);
	}
	*ret_fd = fd;
	return 0;
}

/* Finds the directory entry of a spot, with all links resolved, by which it can be found again. */
static int find_parent(const struct graft_place *place, const char *target, struct graft_spot *spot)
{
	auto_arena struct graft_arena *arena = graft_arena_new(2 * (size_t)PATH_MAX);
	const char *path = NULL;
	int rc;

	if (!arena)
		return -ENOMEM;
	rc = graft_image_root_resolve(place->root, target, arena, &path, NULL);
	return rc < 0 ? rc : graft_image_root_parent(place->root, path, &spot->parent_fd, spot->name);
}

/* Resolves the target from the root: follows links and makes missing parents. */
static int long_way(struct graft_place *place, const char *target, bool directory, mode_t mode, struct graft_spot *spot)
{
	struct graft_root_watch watch = graft_journal_watch(place->journal);
	int rc = graft_image_root_mountpoint(place->root, target, directory, mode, &watch, &spot->fd);

	if (rc == 0 && place->want_parents)
		rc = find_parent(place, target, spot);
	return rc;
}

static int set_parent(const struct graft_place *place, int parent_fd, const char *name, struct graft_spot *spot)
{
	if (!place->want_parents)
		return 0;
	spot->parent_fd = fcntl(parent_fd, F_DUPFD_CLOEXEC, 0);
	if (spot->parent_fd < 0)
		return -errno;
	memcpy(spot->name, name, strlen(name) + 1);
	return 0;
}

/* Takes an existing object: any file will do; a link needs the long way (returns 1). */
static int take_existing(int parent_fd, const char *name, struct graft_spot *spot)
{
	auto_close int fd = openat(parent_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (S_ISLNK(st.st_mode))
		return 1;
	spot->fd = TAKE_FD(fd);
	return 0;
}

/*
 * Creates the file with one call in the usual case: the name is free in a directory that is open.
 */
static int file_in(struct graft_place *place, int parent_fd, const char *name, mode_t mode, struct graft_spot *spot)
{
	int rc;

	spot->fd = openat(parent_fd, name, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (spot->fd >= 0) {
		rc = graft_journal_created(place->journal, parent_fd, name, false);
		if (rc < 0)
			(void)unlinkat(parent_fd, name, 0);
	} else {
		rc = errno == EEXIST ? take_existing(parent_fd, name, spot) : -errno;
	}
	return rc == 0 ? set_parent(place, parent_fd, name, spot) : rc;
}

/* SECURITY: a link to "/" must not make us mount over the whole root. */
static int refuse_root(const struct graft_place *place, const struct graft_spot *spot)
{
	struct stat root, st;

	if (fstat(place->root->fd, &root) < 0 || fstat(spot->fd, &st) < 0)
		return -errno;
	return root.st_dev == st.st_dev && root.st_ino == st.st_ino ? -EINVAL : 0;
}

int graft_place_mountpoint(struct graft_place *place, const char *target, bool directory, mode_t mode,
			   struct graft_spot *ret_spot)
{
	auto_spot struct graft_spot spot = GRAFT_SPOT_INIT;
	const char *name;
	int parent_fd, rc = 1;

	if (!directory && last_name(target)) {
		rc = graft_place_parent(place, target, GRAFT_IMAGE_MOUNTPOINT, &parent_fd, &name);
		if (rc == -EXDEV)
			rc = 1; /* an existing object may still be mounted over */
		else if (rc == 0)
			rc = file_in(place, parent_fd, name, mode, &spot);
	}
	if (rc == 1)
		rc = long_way(place, target, directory, mode, &spot);
	if (rc == 0 && directory)
		rc = refuse_root(place, &spot);
	if (rc < 0)
		return rc;
	*ret_spot = spot;
	spot = (struct graft_spot)GRAFT_SPOT_INIT;
	return 0;
}

int graft_place_existing(struct graft_place *place, const char *target, bool directory, struct graft_spot *ret_spot)
{
	auto_spot struct graft_spot spot = GRAFT_SPOT_INIT;
	struct stat st;
	int rc = 0;

	spot.fd = graft_image_root_look(place->root, target, 0);
	if (spot.fd < 0)
		return spot.fd;
	if (fstat(spot.fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode) != directory)
		return directory ? -ENOTDIR : -EISDIR;
	if (place->want_parents)
		rc = find_parent(place, target, &spot);
	if (rc < 0)
		return rc;
	*ret_spot = spot;
	spot = (struct graft_spot)GRAFT_SPOT_INIT;
	return 0;
}

int graft_place_directory(struct graft_place *place, const char *target, mode_t mode)
{
	struct graft_root_watch watch = graft_journal_watch(place->journal);
	auto_close int fd = -1;

	return graft_image_root_mkdir(place->root, target, mode, GRAFT_IMAGE_CONTENT, &watch, &fd);
}
