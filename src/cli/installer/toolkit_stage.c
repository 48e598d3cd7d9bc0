/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toolkit_stage: a toolkit is completed under another name and gets its own name in one step, so
 * that a container that starts at any moment, and the next installer after one was killed at any
 * moment, find a complete toolkit, old or new.
 *
 * The name of a stage, GRAFT_STAGE_PREFIX and a number, is the mark by which the next installer
 * knows it, whether it was never finished or has been exchanged: nothing else is ever removed. An
 * installer locks its stage: another one with its own lock file may install to the same directory.
 *
 * QUIRK: some file systems cannot exchange two names. There, `toolkit` is a link to a stage, since
 * a link can be replaced in one step everywhere.
 */
#include "cli/installer/toolkit_stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/host_file.h"
#include "apply/lock_file.h"
#include "base/cleanup.h"
#include "base/read.h"
#include "base/strings.h"
#include "base/sys.h"
#include "start/installed.h"

#define MAX_STAGES 1000 /* with the toolkits that processes still run */
#define MAPS_MAX   ((size_t)8 << 20)
#define LOCK       ".lock" /* in the stage, and so in each toolkit */
#define LINK       "-link" /* follows the name of the stage to which the link points */

/* ---- the stage ---- */

static int explain_read_only(struct graft_error *err)
{
	return err->sys == EROFS ? graft_with_hint(err, "Set --toolkit-install-dir to a directory that can be written, "
							"such as one below /var.")
				 : -1;
}

/*
 * Locks a stage, which is open at `fd`, until *ret_lock is closed. Returns false if another
 * installer fills, exchanges or removes it, or has done so since it was opened. On a file system
 * without locks, no installer is noticed.
 */
static bool lock_stage(int parent_fd, int fd, const char *name, int *ret_lock)
{
	struct stat locked, named;

	*ret_lock = graft_lock_file_take(fd, LOCK);
	if (*ret_lock == -EWOULDBLOCK)
		return false;
	return fstat(fd, &locked) == 0 && fstatat(parent_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       locked.st_dev == named.st_dev && locked.st_ino == named.st_ino;
}

static void close_stage(struct installer_stage *stage)
{
	if (stage->lock_fd >= 0)
		(void)close(stage->lock_fd);
	if (stage->fd >= 0)
		(void)close(stage->fd);
	stage->lock_fd = stage->fd = -1;
}

/* Returns 1, 0 if another installer has the name, or -errno. */
static int make_stage(struct installer_stage *stage, int number)
{
	(void)snprintf(stage->name, sizeof(stage->name), GRAFT_STAGE_PREFIX "%d", number);
	if (mkdirat(stage->parent_fd, stage->name, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	stage->fd = openat(stage->parent_fd, stage->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (stage->fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (lock_stage(stage->parent_fd, stage->fd, stage->name, &stage->lock_fd))
		return fchmod(stage->fd, 0755) < 0 ? -errno : 1;
	close_stage(stage);
	return 0;
}

int installer_stage_open(const struct installer_options *o, struct installer_stage *ret_stage, struct graft_error *err)
{
	int rc = 0;

	*ret_stage = (struct installer_stage)INSTALLER_STAGE_INIT;
	ret_stage->options = o;
	ret_stage->parent_fd = graft_host_folder_open(o->install_dir, err);
	if (ret_stage->parent_fd < 0)
		return explain_read_only(err);
	for (int i = 0; i < MAX_STAGES && rc == 0; i++)
		rc = make_stage(ret_stage, i);
	if (rc > 0)
		return 0;
	(void)graft_fail_errno(err, rc < 0 ? -rc : EEXIST, "failed to create %s/%s", o->install_dir, ret_stage->name);
	return explain_read_only(err);
}

void installer_stage_remove(const struct installer_stage *stage)
{
	if (stage->fd >= 0)
		graft_host_tree_remove(stage->parent_fd, stage->name);
}

void installer_stage_close(struct installer_stage *stage)
{
	close_stage(stage);
	if (stage->parent_fd >= 0)
		(void)close(stage->parent_fd);
	stage->parent_fd = -1;
}

/* Whether a name is that of a stage, or of a link to one that was not finished. */
static bool is_stage_name(const char *name)
{
	size_t digits;

	if (!graft_starts_with(name, GRAFT_STAGE_PREFIX))
		return false;
	name += strlen(GRAFT_STAGE_PREFIX);
	digits = strspn(name, "0123456789");
	return digits > 0 && (name[digits] == '\0' || strcmp(name + digits, LINK) == 0);
}

/* Reads to which stage `toolkit` points. Returns false if it is not a link to one. */
static bool read_toolkit_link(int parent_fd, char target[PATH_MAX])
{
	ssize_t n = readlinkat(parent_fd, GRAFT_TOOLKIT_DIRECTORY, target, PATH_MAX - 1);

	if (n <= 0)
		return false;
	target[n] = '\0';
	return is_stage_name(target);
}

/* ---- has anything changed? ---- */

static bool is_same_part(int a_fd, int b_fd, const char *name, const struct stat *a, const struct stat *b)
{
	char left[4096], right[4096];
	auto_close int from = -1, to = -1;
	ssize_t n;

	if ((a->st_mode & 07777) != (b->st_mode & 07777) || a->st_size != b->st_size || a->st_uid != b->st_uid)
		return false;
	if (S_ISLNK(a->st_mode)) {
		n = readlinkat(a_fd, name, left, sizeof(left));
		return n >= 0 && readlinkat(b_fd, name, right, sizeof(right)) == n &&
		       memcmp(left, right, (size_t)n) == 0;
	}
	from = openat(a_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	to = openat(b_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	while ((n = read(from, left, sizeof(left))) > 0) {
		if (read(to, right, (size_t)n) != n || memcmp(left, right, (size_t)n) != 0)
			return false;
	}
	return n == 0;
}

/* Whether directory `b` has exactly the content of `a`. */
static bool is_same_tree(int a_fd, int b_fd)
{
	int copy = openat(a_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	size_t n = 0, n_other = 0;
	bool same = dir != NULL;

	while (same && (entry = readdir(dir)) != NULL) {
		struct stat a, b;

		n++;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		same = fstatat(a_fd, entry->d_name, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
		       fstatat(b_fd, entry->d_name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
		       (a.st_mode & S_IFMT) == (b.st_mode & S_IFMT);
		if (same && S_ISDIR(a.st_mode)) {
			auto_close int below_a = openat(a_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			auto_close int below_b = openat(b_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

			same = below_a >= 0 && below_b >= 0 && is_same_tree(below_a, below_b);
		} else if (same) {
			same = is_same_part(a_fd, b_fd, entry->d_name, &a, &b);
		}
	}
	if (dir)
		(void)closedir(dir);
	copy = same ? openat(b_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	dir = copy < 0 ? NULL : fdopendir(copy);
	while (dir && readdir(dir))
		n_other++;
	if (dir)
		(void)closedir(dir);
	return same && n == n_other;
}

/* ---- exchange ---- */

/* Makes `toolkit` a link to the stage, which replaces such a link, but nothing else. */
static int link_toolkit(const struct installer_stage *stage)
{
	char name[sizeof(stage->name) + sizeof(LINK)], old[PATH_MAX];
	struct stat st;

	if (fstatat(stage->parent_fd, GRAFT_TOOLKIT_DIRECTORY, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !read_toolkit_link(stage->parent_fd, old))
		return -EXDEV;
	(void)snprintf(name, sizeof(name), "%s" LINK, stage->name);
	(void)unlinkat(stage->parent_fd, name, 0);
	if (symlinkat(stage->name, stage->parent_fd, name) < 0 ||
	    renameat(stage->parent_fd, name, stage->parent_fd, GRAFT_TOOLKIT_DIRECTORY) < 0)
		return -errno;
	return 0;
}

static bool cannot_exchange(int rc)
{
	return rc == -EINVAL || rc == -ENOSYS || rc == -EXDEV;
}

static int exchange_toolkit(const struct installer_stage *stage, struct graft_error *err)
{
	const char *toolkit = stage->options->toolkit;
	char old[PATH_MAX];
	int fd = stage->parent_fd, rc = -EINVAL;

	if (!read_toolkit_link(fd, old)) {
		/*
		 * The first toolkit is exchanged for an empty directory, so that this fails now or
		 * never.
		 */
		(void)mkdirat(fd, GRAFT_TOOLKIT_DIRECTORY, 0755);
		rc = graft_renameat2(fd, stage->name, fd, GRAFT_TOOLKIT_DIRECTORY, GRAFT_RENAME_EXCHANGE) < 0 ? -errno
													      : 0;
		(void)unlinkat(fd, rc < 0 ? GRAFT_TOOLKIT_DIRECTORY : stage->name, AT_REMOVEDIR);
	}
	if (cannot_exchange(rc))
		rc = link_toolkit(stage);
	(void)fsync(fd);
	if (cannot_exchange(rc)) {
		(void)graft_fail(err, GRAFT_UNSUPPORTED, 0,
				 "failed to exchange %s: its file system cannot do that in one step, and containers "
				 "that start meanwhile would fail",
				 toolkit);
		return graft_with_hint(err, "Nothing was changed. Remove this directory while no container starts, or "
					    "set --toolkit-install-dir to a directory on another file system.");
	}
	if (rc < 0)
		(void)graft_fail_errno(err, -rc, "failed to exchange %s", toolkit);
	if (rc == -EBUSY)
		(void)graft_with_hint(err, "It is a mount point: mount its parent directory instead.");
	return rc < 0 ? -1 : 0;
}

int installer_stage_exchange(const struct installer_stage *stage, struct graft_error *err)
{
	char target[PATH_MAX];
	const char *name = read_toolkit_link(stage->parent_fd, target) ? target : GRAFT_TOOLKIT_DIRECTORY;
	auto_close int there = openat(stage->parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (there >= 0 && is_same_tree(stage->fd, there)) {
		graft_info(&stage->options->base.ctk->log, "%s is up to date", stage->options->toolkit);
		return 0;
	}
	return exchange_toolkit(stage, err) < 0 ? -1 : 1;
}

/* ---- the old ones ---- */

/* Whether a file below `directory` is in the memory map of a process, or is its program. */
static bool is_used_by(const char *proc, const char *pid, const char *directory, struct graft_arena *arena)
{
	size_t length = strlen(directory), n_text = 0;
	char path[PATH_MAX], link[PATH_MAX];
	auto_close int fd = -1;
	const char *text = NULL;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/%s/exe", proc, pid);
	n = readlink(path, link, sizeof(link) - 1);
	if (n > 0 && (size_t)n > length && strncmp(link, directory, length) == 0 && link[length] == '/')
		return true;
	(void)snprintf(path, sizeof(path), "%s/%s/maps", proc, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || graft_read_fd(fd, MAPS_MAX, arena, &text, &n_text) < 0)
		return false;
	for (const char *at = text; (at = strstr(at, directory)) != NULL; at += length) {
		if (at[length] == '/')
			return true;
	}
	return false;
}

static bool is_in_use(const char *directory)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	bool used = !dir;

	while (!used && (entry = readdir(dir)) != NULL) {
		struct graft_arena *arena;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		arena = graft_arena_new(MAPS_MAX * 4);
		used = !arena || is_used_by("/proc", entry->d_name, directory, arena);
		(void)graft_arena_free(arena);
	}
	if (dir)
		(void)closedir(dir);
	return used;
}

/* Whether an entry of the install directory is a stage of ours to which no name points. */
static bool is_left(int parent_fd, const char *name)
{
	char live[PATH_MAX];
	struct stat st;

	if (!is_stage_name(name) || (read_toolkit_link(parent_fd, live) && strcmp(live, name) == 0))
		return false;
	return fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid();
}

/* Removes what is left. Returns false if another installer has its stage. */
static bool remove_left(int parent_fd, const char *name)
{
	char stage[NAME_MAX + 1];
	auto_close int fd = -1, lock = -1;

	(void)snprintf(stage, sizeof(stage), "%s", name);
	if (graft_ends_with(stage, LINK))
		stage[strlen(stage) - strlen(LINK)] = '\0';
	fd = openat(parent_fd, stage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && !lock_stage(parent_fd, fd, stage, &lock))
		return false;
	/* It may have been exchanged meanwhile. */
	if (is_left(parent_fd, name))
		graft_host_tree_remove(parent_fd, name);
	return true;
}

bool installer_toolkit_sweep(const struct installer_options *o)
{
	auto_dir DIR *dir = opendir(o->install_dir);
	struct dirent *entry;
	bool none = true;

	while (dir && (entry = readdir(dir)) != NULL) {
		char path[PATH_MAX];

		if (!is_left(dirfd(dir), entry->d_name))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", o->install_dir, entry->d_name);
		if (is_in_use(path)) {
			none = false;
			continue;
		}
		graft_debug(&o->base.ctk->log, "removing %s", path);
		none = remove_left(dirfd(dir), entry->d_name) && none;
	}
	return none;
}
