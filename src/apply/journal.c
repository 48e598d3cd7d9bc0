/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal: a list of changes, each with the one function that takes it back. Knows nothing of plans: it is told what was done,
 * and undoes it by the descriptors it kept.
 */
#include "apply/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "apply/restore.h"
#include "base/cleanup.h"

enum entry_kind { MOUNTED, CREATED_FILE, CREATED_DIRECTORY, REPLACED, RELINKED, HELD };

struct entry {
	enum entry_kind kind;
	int parent_fd;  /* owned unless it is the held one */
	bool held;      /* parent_fd belongs to a HELD entry */
	int fd;         /* MOUNTED: root of the mount; REPLACED: the old object; HELD: the directory. Owned */
	char *name;     /* owned; one component of parent_fd */
	char *old_text; /* RELINKED: owned; NULL = there was none */
};

struct graft_journal {
	const struct graft_log *log;
	int proc_fd;
	struct entry *entries;
	size_t n, capacity;
};

struct graft_journal *graft_journal_new(const struct graft_log *log)
{
	struct graft_journal *journal = calloc(1, sizeof(*journal));

	if (!journal)
		return NULL;
	journal->log = log;
	journal->proc_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return journal;
}

int graft_journal_proc_fd(const struct graft_journal *journal)
{
	return journal->proc_fd;
}

static void entry_done(struct entry *entry)
{
	if (entry->parent_fd >= 0 && !entry->held)
		(void)close(entry->parent_fd);
	if (entry->fd >= 0)
		(void)close(entry->fd);
	free(entry->name);
	free(entry->old_text);
}

static void forget_all(struct graft_journal *journal)
{
	while (journal->n > 0)
		entry_done(&journal->entries[--journal->n]);
}

struct graft_journal *graft_journal_free(struct graft_journal *journal)
{
	if (!journal)
		return NULL;
	forget_all(journal);
	if (journal->proc_fd >= 0)
		(void)close(journal->proc_fd);
	free(journal->entries);
	free(journal);
	return NULL;
}

int graft_journal_reserve(struct graft_journal *journal)
{
	size_t capacity = journal->capacity == 0 ? 64 : journal->capacity * 2;
	struct entry *entries;

	if (journal->n < journal->capacity)
		return 0;
	entries = realloc(journal->entries, capacity * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	journal->entries = entries;
	journal->capacity = capacity;
	return 0;
}

static void add(struct graft_journal *journal, const struct entry *entry)
{
	journal->entries[journal->n++] = *entry;
}

void graft_journal_mounted(struct graft_journal *journal, int take_mount_fd)
{
	add(journal, &(struct entry){ .kind = MOUNTED, .parent_fd = -1, .fd = take_mount_fd });
}

int graft_journal_hold(struct graft_journal *journal, int take_directory_fd)
{
	int rc = graft_journal_reserve(journal);

	if (rc < 0)
		return rc;
	add(journal, &(struct entry){ .kind = HELD, .parent_fd = -1, .fd = take_directory_fd });
	return 0;
}

/* Whether a descriptor is a directory that is held. The newest first: it mostly is the one. */
static bool is_held(const struct graft_journal *journal, int fd)
{
	for (size_t i = journal->n; i > 0; i--) {
		if (journal->entries[i - 1].kind == HELD && journal->entries[i - 1].fd == fd)
			return true;
	}
	return false;
}

/* An entry about `name`; `fd` and `old_text` are copied, -1 and NULL stay. */
static int add_named(struct graft_journal *journal, enum entry_kind kind, int parent_fd, const char *name, int fd,
		     const char *old_text)
{
	struct entry entry = { .kind = kind, .parent_fd = parent_fd, .fd = -1 };
	int rc = graft_journal_reserve(journal);

	if (rc < 0)
		return rc;
	entry.held = is_held(journal, parent_fd);
	if (!entry.held)
		entry.parent_fd = fcntl(parent_fd, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		entry.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	entry.name = strdup(name);
	entry.old_text = old_text ? strdup(old_text) : NULL;
	if (entry.parent_fd < 0 || (fd >= 0 && entry.fd < 0) || !entry.name || (old_text && !entry.old_text)) {
		entry_done(&entry);
		return -ENOMEM;
	}
	add(journal, &entry);
	return 0;
}

int graft_journal_created(struct graft_journal *journal, int parent_fd, const char *name, bool is_directory)
{
	return add_named(journal, is_directory ? CREATED_DIRECTORY : CREATED_FILE, parent_fd, name, -1, NULL);
}

int graft_journal_replaced(struct graft_journal *journal, int parent_fd, const char *name, int old_fd)
{
	return add_named(journal, REPLACED, parent_fd, name, old_fd, NULL);
}

int graft_journal_relinked(struct graft_journal *journal, int parent_fd, const char *name, const char *old_text)
{
	return add_named(journal, RELINKED, parent_fd, name, -1, old_text);
}

void graft_journal_forget(struct graft_journal *journal)
{
	if (journal->n > 0)
		entry_done(&journal->entries[--journal->n]);
}

/*
 * A mount has no name that is safe to use: what is at its path now may be another. Our procfs leads from the descriptor to the very
 * mount, also while another mount namespace is joined, since the descriptor of /proc/self/fd was opened before.
 */
static int undo_mount(const struct graft_journal *journal, const struct entry *entry)
{
	char number[16];

	if (fchdir(journal->proc_fd) < 0)
		return -errno;
	(void)snprintf(number, sizeof(number), "%d", entry->fd);
	return umount2(number, MNT_DETACH) < 0 ? -errno : 0;
}

int graft_journal_unmount(struct graft_journal *journal, int mount_fd)
{
	auto_close int cwd_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t i = journal->n;
	int rc, back;

	if (cwd_fd < 0)
		return -errno;
	while (i > 0 && (journal->entries[i - 1].kind != MOUNTED || journal->entries[i - 1].fd != mount_fd))
		i--;
	if (i == 0)
		return -ENOENT;
	rc = undo_mount(journal, &journal->entries[i - 1]);
	/* A directory on a network may need a second call; the caller's must not be lost by one that failed. */
	back = fchdir(cwd_fd);
	if (back < 0)
		back = fchdir(cwd_fd);
	if (back < 0)
		graft_warn(journal->log, "could not return to the working directory: %s", strerror(errno));
	if (rc < 0)
		return rc;
	entry_done(&journal->entries[i - 1]);
	journal->n--;
	memmove(&journal->entries[i - 1], &journal->entries[i], (journal->n - (i - 1)) * sizeof(*journal->entries));
	return 0;
}

static int unlink_entry(const struct entry *entry, int flags)
{
	return unlinkat(entry->parent_fd, entry->name, flags) < 0 ? -errno : 0;
}

static int undo_entry(const struct graft_journal *journal, const struct entry *entry)
{
	switch (entry->kind) {
	case MOUNTED:
		return undo_mount(journal, entry);
	case CREATED_FILE:
		return unlink_entry(entry, 0);
	case CREATED_DIRECTORY:
		return unlink_entry(entry, AT_REMOVEDIR);
	case REPLACED:
		if (entry->fd < 0)
			return unlink_entry(entry, 0);
		return graft_restore(journal->proc_fd, entry->fd, entry->parent_fd, entry->name);
	case RELINKED:
		if (!entry->old_text)
			return unlink_entry(entry, 0);
		return graft_restore_link(entry->parent_fd, entry->name, entry->old_text);
	case HELD:
		return 0;
	}
	return 0;
}

void graft_journal_undo(struct graft_journal *journal)
{
	static const char *const words[] = {
		[MOUNTED] = "unmount",        [CREATED_FILE] = "remove file", [CREATED_DIRECTORY] = "remove directory",
		[REPLACED] = "put back file", [RELINKED] = "put back link",   [HELD] = "release",
	};
	auto_close int cwd_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = journal->n; i > 0; i--) {
		const struct entry *entry = &journal->entries[i - 1];
		int rc = undo_entry(journal, entry);

		if (rc < 0)
			graft_warn(journal->log, "could not undo: %s %s: %s", words[entry->kind],
				   entry->name ? entry->name : "", strerror(-rc));
	}
	forget_all(journal);
	if (cwd_fd >= 0 && fchdir(cwd_fd) < 0)
		graft_warn(journal->log, "could not return to the working directory: %s", strerror(errno));
}

static int note_created(void *arg, int parent_fd, const char *name, bool is_directory)
{
	return graft_journal_created(arg, parent_fd, name, is_directory);
}

struct graft_root_watch graft_journal_watch(struct graft_journal *journal)
{
	return (struct graft_root_watch){ .created = note_created, .arg = journal };
}
