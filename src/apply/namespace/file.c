/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file: writes small files and links into a container. SECURITY: every name may be a hard link to a
 * file of the host, a link or a FIFO. Existing objects are opened with O_PATH only, and every
 * change is the rename of a new inode.
 */
#include "apply/namespace/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/temporary.h"
#include "base/cleanup.h"

/*
 * Renames the temporary over `name`, as announced to the journal. Removes the temporary on failure.
 */
static int put_in_place(struct graft_journal *journal, int announced, int parent_fd, const char *temporary,
			const char *name)
{
	int rc = announced;

	if (rc == 0 && renameat(parent_fd, temporary, parent_fd, name) < 0) {
		/* The name is a mount point. */
		rc = errno == EBUSY ? -EXDEV : -errno;
		graft_journal_forget(journal);
	}
	if (rc == 0)
		graft_journal_settle(journal);
	if (rc < 0)
		(void)unlinkat(parent_fd, temporary, 0);
	return rc;
}

int graft_file_write(struct graft_journal *journal, int parent_fd, const char *name, const void *content, size_t length,
		     mode_t mode)
{
	char temporary[GRAFT_TEMPORARY_SIZE];
	auto_close int old_fd = openat(parent_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	auto_close int fd = -1;
	struct stat st;
	int rc;

	if (old_fd < 0 && errno != ENOENT)
		return -errno;
	if (old_fd >= 0 && fstat(old_fd, &st) < 0)
		return -errno;
	if (old_fd >= 0 && S_ISDIR(st.st_mode))
		return -EISDIR;
	fd = graft_temporary_file(parent_fd, mode, temporary);
	if (fd < 0)
		return fd;
	/* The mode does not depend on the caller's umask. */
	rc = fchmod(fd, mode) < 0 ? -errno : graft_write_all(fd, content, length);
	if (rc == 0)
		rc = graft_journal_replaced(journal, parent_fd, name, old_fd);
	return put_in_place(journal, rc, parent_fd, temporary, name);
}

/* Replaces `old_fd` with a link. */
static int put_link(struct graft_journal *journal, int parent_fd, const char *name, int old_fd, const char *text)
{
	char temporary[GRAFT_TEMPORARY_SIZE];
	int rc = graft_temporary_link(parent_fd, text, temporary);

	if (rc < 0)
		return rc;
	rc = graft_journal_replaced(journal, parent_fd, name, old_fd);
	return put_in_place(journal, rc, parent_fd, temporary, name);
}

/* Handles a name that exists already, with conflict REPLACE or OVERWRITE. */
static int meet(struct graft_journal *journal, int parent_fd, const char *name, const char *text,
		enum graft_conflict conflict)
{
	bool overwrite = conflict == GRAFT_CONFLICT_OVERWRITE;
	auto_close int fd = openat(parent_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char old_text[PATH_MAX];
	struct stat st;
	ssize_t length;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode) && !overwrite)
		return GRAFT_LINK_IS_FILE;
	if (S_ISDIR(st.st_mode) && overwrite)
		return -EISDIR;
	if (!S_ISLNK(st.st_mode) && !overwrite)
		return GRAFT_LINK_KEPT;
	if (S_ISLNK(st.st_mode)) {
		length = readlinkat(fd, "", old_text, sizeof(old_text) - 1);
		if (length < 0)
			return -errno;
		old_text[length] = '\0';
		if (strcmp(old_text, text) == 0)
			return GRAFT_LINK_DONE;
	}
	rc = put_link(journal, parent_fd, name, fd, text);
	return rc < 0 ? rc : GRAFT_LINK_DONE;
}

int graft_file_link(struct graft_journal *journal, int parent_fd, const char *name, const char *text,
		    enum graft_conflict conflict)
{
	int rc;

	if (symlinkat(text, parent_fd, name) < 0) {
		if (errno != EEXIST)
			return -errno;
		return conflict == GRAFT_CONFLICT_KEEP ? GRAFT_LINK_KEPT
						       : meet(journal, parent_fd, name, text, conflict);
	}
	rc = graft_journal_linked(journal, parent_fd, name, text);
	if (rc < 0)
		(void)unlinkat(parent_fd, name, 0);
	return rc < 0 ? rc : GRAFT_LINK_DONE;
}
