/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_place: walks a path of the host component by component, opening each with O_NOFOLLOW in the
 * directory before it. Knows who must own a link; what is written there is up to the caller.
 *
 * QUIRK: the kernel's protected_symlinks checks links that the kernel follows, and none that a
 * program follows itself.
 */
#include "apply/host_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys.h"

#define MAX_LINKS 40
#define MAX_TRIES 4 /* other processes may make and remove directories */
/* SECURITY: in a user namespace, all unmapped owners look like this one. */
#define UNKNOWN_OWNER 65534

struct walk {
	struct graft_host_place *place; /* dir_fd is the directory reached so far */
	int root_fd;                    /* borrowed; -1 = "/" */
	unsigned int flags, n_links;
	const char *rest;  /* in `text`: yet to be walked */
	size_t own_length; /* trailing bytes of `rest` that come from the caller's path and not from a link */
	char text[PATH_MAX];
	char at[PATH_MAX]; /* path of that directory, for messages */
};

/* ---- the rules ---- */

static bool is_shared(const struct stat *directory, mode_t writers)
{
	return (directory->st_mode & S_ISVTX) != 0 && (directory->st_mode & writers) != 0;
}

/*
 * SECURITY: anyone who may write there can give a name to another user's file (link(2),
 * protected_hardlinks).
 */
static bool is_trusted_in(const struct stat *directory, const struct stat *object)
{
	return object->st_nlink == 1 && (object->st_uid == geteuid() ||
					 (object->st_uid == directory->st_uid && object->st_uid != UNKNOWN_OWNER));
}

bool graft_host_may_follow(const struct stat *directory, const struct stat *link)
{
	return !is_shared(directory, S_IWOTH) || is_trusted_in(directory, link);
}

static bool is_ours_or_roots(const struct stat *object)
{
	return object->st_uid == geteuid() || object->st_uid == 0;
}

/* SECURITY: another user who may write to the directory can give a link of root's a name there. */
static bool is_own_link(const struct stat *directory, const struct stat *link)
{
	bool others_write = (directory->st_mode & (S_IWOTH | S_IWGRP)) != 0 || !is_ours_or_roots(directory);

	return is_ours_or_roots(link) && (link->st_nlink == 1 || !others_write);
}

static bool may_write(const struct stat *directory, const struct stat *object)
{
	return !(S_ISREG(object->st_mode) || S_ISFIFO(object->st_mode)) || !is_shared(directory, S_IWOTH | S_IWGRP) ||
	       is_trusted_in(directory, object);
}

static const char *kind_of(const struct stat *object)
{
	return S_ISLNK(object->st_mode) ? "link" : S_ISFIFO(object->st_mode) ? "pipe" : "file";
}

static const char *separator(const char *path)
{
	size_t length = strlen(path);

	return length > 0 && path[length - 1] != '/' ? "/" : "";
}

static void explain_distrust(struct walk *walk, const char *name, const struct stat *directory,
			     const struct stat *object)
{
	bool shared = is_shared(directory, S_IWOTH | S_IWGRP) || is_ours_or_roots(object);

	(void)snprintf(walk->place->why, sizeof(walk->place->why), "%.200s%s%.200s is a %s of user %u%s; %s", walk->at,
		       separator(walk->at), name, kind_of(object), (unsigned int)object->st_uid,
		       shared ? " in a directory that others may write to" : "",
		       shared ? "remove it, or name another place"
			      : "remove it, or give it to yourself or to root ('chown -h')");
}

/* ---- directories ---- */

static void reach(struct walk *walk, int take_fd)
{
	if (walk->place->dir_fd >= 0)
		(void)close(walk->place->dir_fd);
	walk->place->dir_fd = take_fd;
}

static void reach_below(struct walk *walk, int take_fd, const char *name)
{
	size_t length = strlen(walk->at);

	reach(walk, take_fd);
	(void)snprintf(walk->at + length, sizeof(walk->at) - length, "%s%s", separator(walk->at), name);
}

static int go_to_host_root(struct walk *walk)
{
	int fd = walk->root_fd >= 0 ? openat(walk->root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC)
				    : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	reach(walk, fd);
	(void)snprintf(walk->at, sizeof(walk->at), "/");
	return 0;
}

static bool is_at_root(const struct walk *walk)
{
	struct stat here, root;

	return walk->root_fd >= 0 && fstat(walk->place->dir_fd, &here) == 0 && fstat(walk->root_fd, &root) == 0 &&
	       here.st_dev == root.st_dev && here.st_ino == root.st_ino;
}

/* Makes one missing directory, regardless of the umask. Returns 0 or -errno. */
static int make_host_directory(struct walk *walk, const char *name)
{
	int fd;

	if (mkdirat(walk->place->dir_fd, name, 0755) < 0)
		return -errno;
	fd = openat(walk->place->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)fchmod(fd, 0755); /* a directory that rejects the mode can still be used */
	reach_below(walk, fd, name);
	return 0;
}

/* ---- links ---- */

/*
 * The kernel makes the links of procfs: no user can plant one, and their targets need not have a
 * path.
 */
static bool is_on_procfs(const struct walk *walk)
{
	return walk->root_fd < 0 && graft_is_on_procfs(walk->place->dir_fd);
}

/* Returns whether a path can be that of a file: it ends in a name. */
static bool ends_in_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Prepends the link's target to the rest of the path. Returns 0 or -errno. */
static int follow_text(struct walk *walk, int link_fd, bool is_last)
{
	char text[PATH_MAX], rest[PATH_MAX];
	ssize_t length = readlinkat(link_fd, "", text, sizeof(text) - 1);
	int n;

	if (++walk->n_links > MAX_LINKS)
		return -ELOOP;
	if (length <= 0)
		return length < 0 ? -errno : -ENOENT;
	text[length] = '\0';
	if (is_last && !ends_in_name(text))
		return -EISDIR;
	n = snprintf(rest, sizeof(rest), "%s%s%s", text, is_last ? "" : "/", walk->rest);
	if (n < 0 || (size_t)n >= sizeof(rest))
		return -ENAMETOOLONG;
	if (walk->own_length > strlen(walk->rest))
		walk->own_length = strlen(walk->rest);
	memcpy(walk->text, rest, (size_t)n + 1);
	walk->rest = walk->text;
	return text[0] == '/' ? go_to_host_root(walk) : 0;
}

/* Follows a component that is not a directory. Returns 0 or -errno. */
static int follow_to_directory(struct walk *walk, const char *name)
{
	auto_close int fd = openat(walk->place->dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat directory, st;
	int jump;

	if (fd < 0 || fstat(fd, &st) < 0 || fstat(walk->place->dir_fd, &directory) < 0)
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return -ENOTDIR;
	if (!graft_host_may_follow(&directory, &st)) {
		explain_distrust(walk, name, &directory, &st);
		return -EACCES;
	}
	if (!is_on_procfs(walk))
		return follow_text(walk, fd, false);
	jump = openat(walk->place->dir_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (jump < 0)
		return -errno;
	reach_below(walk, jump, name);
	return 0;
}

/* ---- components ---- */

/* Takes the next component. Returns 1, 0 at the end, or -ENAMETOOLONG. */
static int take_next_name(struct walk *walk, char *name, bool *ret_own)
{
	const char *start = walk->rest + strspn(walk->rest, "/");
	size_t length = strcspn(start, "/");

	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	*ret_own = strlen(start) <= walk->own_length;
	memcpy(name, start, length);
	name[length] = '\0';
	walk->rest = start + length;
	return length > 0;
}

static bool is_path_end(const struct walk *walk)
{
	return walk->rest[strspn(walk->rest, "/")] == '\0';
}

static bool may_make(const struct walk *walk, bool own)
{
	return own && ((walk->flags & GRAFT_HOST_MAKE_PARENTS) != 0 ||
		       ((walk->flags & GRAFT_HOST_MAKE_LAST) != 0 && is_path_end(walk)));
}

static int enter_host_directory(struct walk *walk, const char *name, bool own)
{
	if (strcmp(name, ".") == 0 || (strcmp(name, "..") == 0 && is_at_root(walk)))
		return 0;
	for (int i = 0; i < MAX_TRIES; i++) {
		int fd = openat(walk->place->dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc;

		if (fd >= 0) {
			reach_below(walk, fd, name);
			return 0;
		}
		if (errno == ENOTDIR || errno == ELOOP)
			return follow_to_directory(walk, name);
		if (errno != ENOENT || !may_make(walk, own))
			return -errno;
		rc = make_host_directory(walk, name);
		if (rc != -EEXIST)
			return rc;
	}
	return -EAGAIN;
}

static bool is_stream_stat(const struct stat *st)
{
	return S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode);
}

/*
 * Handles a link at the end. Returns 1 if there is more to walk, 0 if the link itself is the
 * result, or -errno.
 */
static int look_at_last_link(struct walk *walk, int fd, const struct stat *directory)
{
	struct graft_host_place *place = walk->place;
	const bool may = graft_host_may_follow(directory, &place->st);
	int rc;

	if ((walk->flags & GRAFT_HOST_NO_FOLLOW) != 0)
		return 0;
	if (is_on_procfs(walk)) {
		struct stat st;

		if (fstatat(place->dir_fd, place->name, &st, 0) == 0 &&
		    (is_stream_stat(&st) || ((walk->flags & GRAFT_HOST_MAGIC) != 0 && S_ISREG(st.st_mode)))) {
			place->is_magic = true;
			place->st = st;
			return 0;
		}
	}
	if ((walk->flags & GRAFT_HOST_OWN_LINKS) != 0 && (!may || !is_own_link(directory, &place->st))) {
		place->found = GRAFT_HOST_FOREIGN_LINK;
		explain_distrust(walk, place->name, directory, &place->st);
		return 0;
	}
	if (!may) {
		explain_distrust(walk, place->name, directory, &place->st);
		return -EACCES;
	}
	rc = follow_text(walk, fd, true);
	return rc < 0 ? rc : 1;
}

/*
 * Examines the last component of a path that is not a directory's. Returns like
 * look_at_last_link().
 */
static int look_at_last(struct walk *walk, const char *name)
{
	struct graft_host_place *place = walk->place;
	auto_close int fd = openat(place->dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat directory;

	(void)snprintf(place->name, sizeof(place->name), "%s", name);
	place->found = GRAFT_HOST_NOTHING;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &place->st) < 0 || fstat(place->dir_fd, &directory) < 0)
		return -errno;
	place->found = GRAFT_HOST_OBJECT;
	if (S_ISLNK(place->st.st_mode))
		return look_at_last_link(walk, fd, &directory);
	if ((walk->flags & GRAFT_HOST_TO_WRITE) == 0 || may_write(&directory, &place->st))
		return 0;
	explain_distrust(walk, name, &directory, &place->st);
	return -EACCES;
}

static int look_at_last_directory(struct walk *walk)
{
	struct graft_host_place *place = walk->place;

	if ((walk->flags & GRAFT_HOST_DIRECTORY) == 0)
		return -EISDIR;
	(void)snprintf(place->name, sizeof(place->name), ".");
	place->found = GRAFT_HOST_OBJECT;
	return fstat(place->dir_fd, &place->st) < 0 ? -errno : 0;
}

static int walk_all(struct walk *walk)
{
	for (;;) {
		char name[NAME_MAX + 1];
		bool own;
		int rc = take_next_name(walk, name, &own);

		if (rc <= 0)
			return rc < 0 ? rc : look_at_last_directory(walk);
		if ((walk->flags & GRAFT_HOST_DIRECTORY) == 0 && is_path_end(walk)) {
			rc = look_at_last(walk, name);
			if (rc <= 0)
				return rc;
		} else {
			rc = enter_host_directory(walk, name, own);
			if (rc < 0)
				return rc;
		}
	}
}

/* ---- places ---- */

int graft_host_place_find(int from_fd, int root_fd, const char *path, unsigned int flags,
			  struct graft_host_place *ret_place)
{
	struct walk walk = { .place = ret_place, .root_fd = root_fd, .flags = flags, .own_length = strlen(path) };
	int fd;

	*ret_place = (struct graft_host_place)GRAFT_HOST_PLACE_INIT;
	if (strlen(path) >= sizeof(walk.text))
		return -ENAMETOOLONG;
	if ((flags & GRAFT_HOST_DIRECTORY) == 0 && !ends_in_name(path))
		return -EISDIR;
	memcpy(walk.text, path, strlen(path) + 1);
	walk.rest = walk.text;
	if (path[0] == '/') {
		int rc = go_to_host_root(&walk);

		return rc < 0 ? rc : walk_all(&walk);
	}
	fd = openat(from_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	reach(&walk, fd);
	return walk_all(&walk);
}

void graft_host_place_close(struct graft_host_place *place)
{
	if (place->dir_fd >= 0)
		(void)close(place->dir_fd);
	place->dir_fd = -1;
}

int graft_host_place_open(const struct graft_host_place *place, int flags)
{
	auto_close int fd = openat(place->dir_fd, place->name, flags | O_CLOEXEC | (place->is_magic ? 0 : O_NOFOLLOW));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return st.st_dev == place->st.st_dev && st.st_ino == place->st.st_ino ? TAKE_FD(fd) : -ESTALE;
}
