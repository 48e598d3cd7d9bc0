/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldcache_refresh: replaces files and links below a container's root. Reads nothing of the image:
 * what is written was computed by a reader or comes from the plan.
 */
#include "apply/loader/ldcache_refresh.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/namespace/file.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/loader/ldsoconf.h"

#define FILE_MODE 0644
#define ARENA_MAX ((size_t)1 << 20)

struct refresh {
	const struct graft_image_root *root;
	struct graft_journal *journal;
	const struct graft_log *log;
};

struct graft_loader_additions graft_ldcache_additions(const struct graft_edit *edit)
{
	bool musl = edit->musl_path_file != NULL; /* its directories are not in any configuration of ldconfig */

	return (struct graft_loader_additions){ .entries = edit->entries,
						.n_entries = edit->n_entries,
						.folders = edit->folders,
						.n_folders = edit->n_folders,
						.missing_folders = musl ? edit->folders : edit->missing_folders,
						.n_missing_folders = musl ? edit->n_folders : edit->n_missing_folders };
}

/* ---- files ---- */

/*
 * Opens the directory of `path`, creating it if it is missing, and checks that it may be written
 * to. Returns 0, -EXDEV, or another -errno.
 */
static int open_etc_parent(const struct refresh *refresh, const char *path, int *ret_fd, char *name)
{
	struct graft_root_watch watch = graft_journal_watch(refresh->journal);
	const char *slash = strrchr(path, '/');
	char directory[PATH_MAX];
	int rc = graft_image_root_parent(refresh->root, path, ret_fd, name);

	if (rc == -ENOENT && slash && (size_t)(slash - path) < sizeof(directory)) {
		memcpy(directory, path, (size_t)(slash - path));
		directory[slash - path] = '\0';
		rc = graft_image_root_mkdir(refresh->root, directory, 0755, GRAFT_IMAGE_CONTENT, &watch, ret_fd);
		(void)snprintf(name, NAME_MAX + 1, "%s", slash + 1);
	}
	return rc < 0 ? rc : graft_image_root_may_write_at(refresh->root, *ret_fd, true, GRAFT_IMAGE_CONTENT);
}

/* Writes a file of /etc. A file on another mount is left alone with a warning. */
static int write_etc_file(const struct refresh *refresh, const char *path, const char *bytes, size_t length,
			  struct graft_error *err)
{
	char name[NAME_MAX + 1];
	auto_close int parent_fd = -1;
	int rc = open_etc_parent(refresh, path, &parent_fd, name);

	if (rc == 0)
		rc = graft_file_write(refresh->journal, parent_fd, name, bytes, length, FILE_MODE);
	/*
	 * SECURITY: a link of the image may point to a directory of the host, or the file may be a
	 * volume.
	 */
	if (rc == -EXDEV) {
		graft_warn(refresh->log, "%s stays unchanged: it is not on the mount of the container's root", path);
		return 0;
	}
	return rc < 0 ? graft_fail_errno(err, -rc, "file write error: %s", path) : 0;
}

/* ---- links ---- */

/* A directory that gets links; links of the same directory are adjacent in the list. */
struct directory {
	const char *path;
	int fd;       /* held by the journal, or -1 */
	bool refused; /* it is on another mount, or no longer exists */
};

/* Opens `path` unless `directory` is it already. Returns 0, or -1 if out of memory. */
static int open_loader_directory(const struct refresh *refresh, const char *path, struct directory *directory)
{
	int fd;

	if (directory->path && strcmp(directory->path, path) == 0)
		return 0;
	fd = graft_image_root_look(refresh->root, path, O_DIRECTORY);
	*directory = (struct directory){ .path = path, .fd = -1, .refused = true };
	if (fd < 0)
		return 0;
	if (graft_image_root_may_write_at(refresh->root, fd, true, GRAFT_IMAGE_CONTENT) < 0) {
		(void)close(fd);
		return 0;
	}
	if (graft_journal_hold(refresh->journal, fd) < 0) {
		(void)close(fd);
		return -1;
	}
	*directory = (struct directory){ .path = path, .fd = fd };
	return 0;
}

/*
 * Decides how to make a link from what has its name now: another edit of the plan may have changed
 * it since the reader looked.
 */
static enum graft_conflict find_conflict(int directory_fd, const struct graft_loader_link *link)
{
	char now[PATH_MAX];
	ssize_t n = link->old_text ? readlinkat(directory_fd, link->name, now, sizeof(now) - 1) : -1;

	if (n < 0)
		return GRAFT_CONFLICT_KEEP;
	now[n] = '\0';
	return strcmp(now, link->old_text) == 0 ? GRAFT_CONFLICT_REPLACE : GRAFT_CONFLICT_KEEP;
}

static int remove_link(const struct refresh *refresh, const struct directory *directory,
		       const struct graft_loader_link *link, struct graft_error *err)
{
	if (graft_journal_relinked(refresh->journal, directory->fd, link->name, link->old_text) < 0)
		return graft_fail_memory(err);
	if (unlinkat(directory->fd, link->name, 0) < 0) {
		graft_journal_forget(refresh->journal);
		graft_info(refresh->log, "cannot remove dangling link %s/%s: %s", directory->path, link->name,
			   strerror(errno));
	} else {
		graft_journal_settle(refresh->journal);
		graft_info(refresh->log, "removed dangling link %s/%s", directory->path, link->name);
	}
	return 0;
}

/* Fails only if out of memory: a directory that cannot be written to stays as it is. */
static int apply_link(const struct refresh *refresh, const struct directory *directory,
		      const struct graft_loader_link *link, struct graft_error *err)
{
	enum graft_conflict conflict = find_conflict(directory->fd, link);
	int rc;

	if (!link->text)
		return conflict == GRAFT_CONFLICT_REPLACE ? remove_link(refresh, directory, link, err) : 0;
	rc = graft_file_link(refresh->journal, directory->fd, link->name, link->text, conflict);
	if (rc == -ENOMEM)
		return graft_fail_memory(err);
	if (rc < 0)
		graft_info(refresh->log, "cannot link %s/%s: %s", directory->path, link->name, strerror(-rc));
	return 0;
}

/* Makes the links of all directories or, if `folders` is not NULL, of these only. */
static int apply_links(const struct refresh *refresh, const struct graft_loader_work *work, const char *const *folders,
		       size_t n_folders, struct graft_error *err)
{
	struct directory directory = { .fd = -1 };

	for (size_t i = 0; i < work->n_links; i++) {
		if (folders && !graft_is_in(folders, n_folders, work->links[i].directory))
			continue;
		if (graft_budget_is_spent(refresh->root->budget)) {
			graft_warn(refresh->log,
				   "creating the links of the container's libraries takes too long: skipped %zu of %zu",
				   work->n_links - i, work->n_links);
			return 0;
		}
		if (open_loader_directory(refresh, work->links[i].directory, &directory) < 0)
			return graft_fail_memory(err);
		if (!directory.refused && apply_link(refresh, &directory, &work->links[i], err) < 0)
			return -1;
	}
	return 0;
}

/* ---- the whole refresh ---- */

/*
 * This file only matters if ldconfig is run in the container later, so the container does without
 * it if it cannot be written.
 */
static int write_own_conf(const struct refresh *refresh, const struct graft_edit *edit, struct graft_error *err)
{
	const struct graft_loader_additions additions = graft_ldcache_additions(edit);
	auto_arena struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	const char *text = arena ? graft_loader_own_conf(&additions, arena) : NULL;
	size_t length = graft_journal_length(refresh->journal);
	struct graft_error why = { .status = GRAFT_OK };
	char reason[sizeof(why.msg) + sizeof(why.ctx)];
	int rc = text ? write_etc_file(refresh, GRAFT_LDSOCONF_OWN, text, strlen(text), &why) : graft_fail_memory(&why);

	if (rc == 0)
		return 0;
	if (why.status == GRAFT_NO_MEMORY)
		return graft_fail_memory(err);
	if (!graft_journal_undo_to(refresh->journal, length, NULL)) {
		*err = why;
		return graft_wrap(err, "%s was created only in part, and could not be undone", GRAFT_LDSOCONF_OWN);
	}
	graft_warn(refresh->log, "%s is left out: %s", GRAFT_LDSOCONF_OWN,
		   graft_error_text(&why, reason, sizeof(reason)));
	return 0;
}

int graft_ldcache_refresh(const struct graft_image_root *root, const struct graft_edit *edit,
			  const struct graft_loader_work *work, struct graft_journal *journal,
			  const struct graft_log *log, struct graft_error *err)
{
	const struct refresh refresh = { .root = root, .journal = journal, .log = log };

	if (edit->musl_path_file && edit->musl_path) {
		if (write_etc_file(&refresh, edit->musl_path_file, edit->musl_path, strlen(edit->musl_path), err) < 0)
			return -1;
		return edit->n_folders > 0 ? apply_links(&refresh, work, edit->folders, edit->n_folders, err) : 0;
	}
	if (work->own_conf && write_own_conf(&refresh, edit, err) < 0)
		return -1;
	if (work->conf && write_etc_file(&refresh, GRAFT_LDSOCONF_PATH, work->conf, work->conf_length, err) < 0)
		return -1;
	if (apply_links(&refresh, work, NULL, 0, err) < 0)
		return -1;
	return work->cache ? write_etc_file(&refresh, GRAFT_LDCACHE_PATH, work->cache, work->cache_length, err) : 0;
}
