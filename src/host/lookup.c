/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup: remembers resolved directories. A driver's hundred libraries are in one or two
 * directories, and most names there are links to siblings, which makes lookups cheap. Knows nothing
 * of what the files are.
 */
#include "host/lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MAX_SIBLING_LINKS 8

void graft_lookup_init(struct graft_lookup *lookup, const struct graft_root *root, struct graft_arena *arena)
{
	*lookup = (struct graft_lookup){ .root = root, .arena = arena };
}

void graft_lookup_done(struct graft_lookup *lookup)
{
	for (size_t i = 0; i < lookup->n_directories; i++) {
		if (lookup->directories[i].fd >= 0)
			(void)close(lookup->directories[i].fd);
	}
	*lookup = (struct graft_lookup){ 0 };
}

const struct graft_lookup_directory *graft_lookup_directory(struct graft_lookup *lookup, const char *path,
							    size_t length)
{
	struct graft_lookup_directory *directory;
	int rc;

	/* Newest first: the records of a cache come in runs of one directory. */
	for (size_t i = lookup->n_directories; i-- > 0;) {
		directory = &lookup->directories[i];
		if (strncmp(directory->path, path, length) == 0 && directory->path[length] == '\0')
			return directory;
	}
	directory = graft_arena_push(lookup->arena, &lookup->directories, &lookup->n_directories, sizeof(*directory));
	if (!directory)
		return NULL;
	directory->fd = -ENOMEM;
	directory->path = graft_arena_strndup(lookup->arena, path, length);
	if (!directory->path) {
		lookup->n_directories--;
		return NULL;
	}
	rc = graft_root_resolve_directory(lookup->root, directory->path, lookup->arena, &directory->resolved,
					  &directory->fd);
	if (rc < 0)
		directory->fd = rc;
	graft_note_shortage(&lookup->shortage, rc);
	return directory;
}

static const char *join_lookup_path(struct graft_lookup *lookup, const struct graft_lookup_directory *directory,
				    const char *name)
{
	size_t length = strlen(directory->resolved);

	return graft_arena_join(lookup->arena, directory->resolved, length > 1 ? length : 0, name);
}

/* For names whose links leave the directory. */
static int resolve_whole(struct graft_lookup *lookup, const struct graft_lookup_directory *directory, const char *name,
			 const char **ret_path, struct stat *ret_stat)
{
	const char *path = join_lookup_path(lookup, directory, name);
	auto_close int fd = -1;
	int rc = path ? graft_root_resolve(lookup->root, path, lookup->arena, ret_path, &fd) : -ENOMEM;

	graft_note_shortage(&lookup->shortage, rc);
	if (rc < 0)
		return rc;
	return fstat(fd, ret_stat) < 0 ? -errno : 0;
}

#define IS_LINK 1

/* Returns 0, IS_LINK, or -errno. */
static int look_at_lookup_entry(int directory_fd, const char *name, struct stat *ret_stat)
{
	if (fstatat(directory_fd, name, ret_stat, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISLNK(ret_stat->st_mode) ? IS_LINK : 0;
}

/*
 * Matches libcuda.so.1, which usually is a link and can be read without a stat first.
 * libcuda.so.550.54.14 and other files usually are not.
 */
static bool is_soname(const char *name)
{
	const char *version = strstr(name, ".so.");

	return version && !strchr(version + strlen(".so."), '.');
}

int graft_lookup_file(struct graft_lookup *lookup, const struct graft_lookup_directory *directory, const char *name,
		      const char **ret_path, struct stat *ret_stat)
{
	char buffers[2][NAME_MAX + 1];
	const char *current = name;
	int rc;

	if (directory->fd < 0)
		return directory->fd;
	rc = is_soname(name) ? IS_LINK : look_at_lookup_entry(directory->fd, name, ret_stat);
	for (int i = 0; rc == IS_LINK; i++) {
		char *target = buffers[i % 2];
		ssize_t length = i == MAX_SIBLING_LINKS
				     ? 0
				     : readlinkat(directory->fd, current, target, sizeof(buffers[0]));

		if (length < 0 && errno != EINVAL)
			return -errno;
		if (length == 0 || length == (ssize_t)sizeof(buffers[0]))
			return resolve_whole(lookup, directory, name, ret_path, ret_stat);
		if (length > 0) {
			target[length] = '\0';
			current = target;
		}
		if (length > 0 && strchr(target, '/'))
			return resolve_whole(lookup, directory, name, ret_path, ret_stat);
		rc = look_at_lookup_entry(directory->fd, current, ret_stat);
	}
	if (rc < 0)
		return rc;
	*ret_path = join_lookup_path(lookup, directory, current);
	return *ret_path ? 0 : -ENOMEM;
}

int graft_lookup_path(struct graft_lookup *lookup, const char *path, const char **ret_path, struct stat *ret_stat)
{
	const char *slash = strrchr(path, '/');
	const struct graft_lookup_directory *directory;

	if (!slash || slash[1] == '\0')
		return -EINVAL;
	directory = graft_lookup_directory(lookup, path, slash == path ? 1 : (size_t)(slash - path));
	return directory ? graft_lookup_file(lookup, directory, slash + 1, ret_path, ret_stat) : -ENOMEM;
}
