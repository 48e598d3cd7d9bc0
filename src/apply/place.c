/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place: targets below the container's root, as descriptors. Knows paths of edits; mounts nothing and writes nothing but empty
 * mount points and directories. umask is 0 while it works (to_namespace), modes are those of the plan.
 */
#include "apply/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"

#define PARENT_MODE 0755

void graft_place_init(struct graft_place *place, const struct graft_root *root, struct graft_journal *journal)
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

/* Splits off the last component; a target that does not end in a plain name has none. */
static const char *last_name(const char *target)
{
	const char *slash = strrchr(target, '/');
	const char *name = slash ? slash + 1 : target;

	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strlen(name) > NAME_MAX)
		return NULL;
	return name;
}

/* The descriptor of a directory that is remembered, or -1. */
static int recall(const struct graft_place *place, const char *target, size_t length)
{
	for (size_t i = 0; i < place->n_directories; i++) {
		if (place->directories[i].length == length && memcmp(place->directories[i].target, target, length) == 0)
			return place->directories[i].fd;
	}
	return -1;
}

static void remember(struct graft_place *place, const char *target, size_t length, int fd)
{
	size_t i = place->next;

	place->directories[i].target = target;
	place->directories[i].length = length;
	place->directories[i].fd = fd;
	place->next = (i + 1) % GRAFT_PLACE_DIRECTORIES;
	if (place->n_directories < GRAFT_PLACE_DIRECTORIES)
		place->n_directories++;
}

/* Finds or makes the directory, and has the journal hold it. The descriptor or -errno. */
static int open_parent(struct graft_place *place, const char *target, size_t length)
{
	struct graft_root_watch watch = graft_journal_watch(place->journal);
	char directory[PATH_MAX];
	auto_close int fd = -1;
	int rc;

	if (length >= sizeof(directory))
		return -ENAMETOOLONG;
	memcpy(directory, target, length);
	directory[length] = '\0';
	rc = graft_root_mkdir(place->root, directory, PARENT_MODE, &watch, &fd);
	if (rc == 0)
		rc = graft_journal_hold(place->journal, fd);
	return rc < 0 ? rc : TAKE_FD(fd);
}

int graft_place_parent(struct graft_place *place, const char *target, int *ret_fd, const char **ret_name)
{
	const char *name = last_name(target);
	size_t length = name ? (size_t)(name - target) : 0;
	int fd;

	if (!name || length == 0)
		return -EINVAL;
	*ret_name = name;
	fd = recall(place, target, length);
	if (fd < 0) {
		fd = open_parent(place, target, length);
		if (fd < 0)
			return fd;
		remember(place, target, length, fd);
	}
	*ret_fd = fd;
	return 0;
}

/* The directory entry by which a spot can be found again, all links resolved. */
static int find_parent(const struct graft_place *place, const char *target, struct graft_spot *spot)
{
	struct graft_arena *arena = graft_arena_new(2 * (size_t)PATH_MAX);
	const char *path = NULL;
	int rc;

	if (!arena)
		return -ENOMEM;
	rc = graft_root_resolve(place->root, target, arena, &path, NULL);
	if (rc == 0)
		rc = graft_root_parent(place->root, path, &spot->parent_fd, spot->name);
	graft_arena_free(arena);
	return rc;
}

/* By way of the root: links are followed, missing parents made. */
static int long_way(struct graft_place *place, const char *target, bool directory, mode_t mode, struct graft_spot *spot)
{
	struct graft_root_watch watch = graft_journal_watch(place->journal);
	int rc = graft_root_mountpoint(place->root, target, directory, mode, &watch, &spot->fd);

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

/* What is already there: any file will do, a link is for the long way (1). */
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

/* The usual case in one call: the name is free in a directory that is open. */
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
		rc = graft_place_parent(place, target, &parent_fd, &name);
		if (rc == 0)
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

int graft_place_existing(struct graft_place *place, const char *target, struct graft_spot *ret_spot)
{
	auto_spot struct graft_spot spot = GRAFT_SPOT_INIT;
	struct stat st;
	int rc = 0;

	spot.fd = graft_root_openat(place->root, target, O_PATH);
	if (spot.fd < 0)
		return spot.fd;
	if (fstat(spot.fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
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

	return graft_root_mkdir(place->root, target, mode, &watch, &fd);
}
