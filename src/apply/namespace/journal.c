/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal: a list of changes, each with the one function that undoes it. Knows nothing of plans:
 * callers record what they did, and the journal undoes it through the descriptors that it kept.
 */
#include "apply/namespace/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/namespace/restore.h"
#include "base/cleanup.h"

enum entry_kind { MOUNTED, CREATED_FILE, CREATED_DIRECTORY, LINKED, REPLACED, RELINKED, HELD };

struct entry {
	enum entry_kind kind;
	int parent_fd; /* owned unless it is the held one */
	bool held;     /* parent_fd belongs to a HELD entry */
	int fd;        /* MOUNTED: root of the mount; REPLACED: the old object; HELD: the directory. Owned */
	char *name;    /* owned; one component of parent_fd */
	char *text;    /* RELINKED: the old target, NULL if there was no link; LINKED: the target of ours. Owned */
	/* What we put there: */
	bool settled;
	int made_fd;            /* owned; -1: nothing, or too many are open */
	struct graft_mark mark; /* valid if there is no descriptor */
	size_t earlier;         /* index + 1 of the one before of this name; 0: none. Valid if the journal is linked */
};

struct graft_journal {
	const struct graft_log *log;
	int proc_fd;
	struct entry *entries;
	size_t n, capacity;
	size_t n_made_fds; /* opened so far */
	bool linked;       /* link_entries() has been called for these entries */
};

/* An image can make us create thousands of objects, and a process may open a thousand files. */
#define MADE_FDS_MAX 256

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
	if (entry->made_fd >= 0)
		(void)close(entry->made_fd);
	free(entry->name);
	free(entry->text);
}

static void forget_to(struct graft_journal *journal, size_t length)
{
	while (journal->n > length)
		entry_done(&journal->entries[--journal->n]);
}

struct graft_journal *graft_journal_free(struct graft_journal *journal)
{
	if (!journal)
		return NULL;
	forget_to(journal, 0);
	if (journal->proc_fd >= 0)
		(void)close(journal->proc_fd);
	free(journal->entries);
	free(journal);
	return NULL;
}

/*
 * Identifies what has the name now. An open descriptor keeps the number of its inode from being
 * reused. Returns 0, also if nothing has the name, or -errno; then it can be tried again.
 */
static int settle_entry(struct graft_journal *journal, struct entry *entry)
{
	int rc = 0;

	if (entry->settled || !entry->name || entry->kind == LINKED)
		return 0;
	if (journal->n_made_fds < MADE_FDS_MAX)
		entry->made_fd = openat(entry->parent_fd, entry->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (entry->made_fd >= 0)
		journal->n_made_fds++;
	else
		rc = graft_mark(entry->parent_fd, entry->name, &entry->mark);
	entry->settled = rc == 0;
	return rc;
}

void graft_journal_settle(struct graft_journal *journal)
{
	if (journal->n > 0)
		(void)settle_entry(journal, &journal->entries[journal->n - 1]);
}

size_t graft_journal_length(const struct graft_journal *journal)
{
	return journal->n;
}

bool graft_journal_keep(struct graft_journal *journal, size_t length_before, int fd)
{
	struct entry *last = journal->n > length_before ? &journal->entries[journal->n - 1] : NULL;

	if (!last || last->kind != CREATED_FILE || last->settled || journal->n_made_fds >= MADE_FDS_MAX)
		return false;
	last->made_fd = fd;
	last->settled = true;
	journal->n_made_fds++;
	return true;
}

int graft_journal_reserve(struct graft_journal *journal)
{
	size_t capacity = journal->capacity == 0 ? 64 : journal->capacity * 2;
	struct entry *entries;

	/* This also precedes every mount over the name. */
	graft_journal_settle(journal);
	if (journal->n < journal->capacity)
		return 0;
	entries = realloc(journal->entries, capacity * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	journal->entries = entries;
	journal->capacity = capacity;
	return 0;
}

static void add_journal_entry(struct graft_journal *journal, const struct entry *entry)
{
	journal->entries[journal->n++] = *entry;
}

void graft_journal_mounted(struct graft_journal *journal, int take_mount_fd)
{
	add_journal_entry(journal,
			  &(struct entry){ .kind = MOUNTED, .parent_fd = -1, .fd = take_mount_fd, .made_fd = -1 });
}

int graft_journal_hold(struct graft_journal *journal, int take_directory_fd)
{
	int rc = graft_journal_reserve(journal);

	if (rc < 0)
		return rc;
	add_journal_entry(journal,
			  &(struct entry){ .kind = HELD, .parent_fd = -1, .fd = take_directory_fd, .made_fd = -1 });
	return 0;
}

/*
 * Whether a descriptor is a held directory. Searches the newest first: that mostly finds it, and an
 * image can cause thousands of entries.
 */
static bool is_held(const struct graft_journal *journal, int fd)
{
	for (size_t i = journal->n; i > 0; i--) {
		const struct entry *entry = &journal->entries[i - 1];

		if ((entry->kind == HELD && entry->fd == fd) || (entry->held && entry->parent_fd == fd))
			return true;
	}
	return false;
}

/* Adds an entry about `name`; `fd` and `text` are copied unless -1 and NULL. */
static int add_named(struct graft_journal *journal, enum entry_kind kind, int parent_fd, const char *name, int fd,
		     const char *text)
{
	struct entry entry = { .kind = kind, .parent_fd = parent_fd, .fd = -1, .made_fd = -1 };
	int rc = graft_journal_reserve(journal);

	if (rc < 0)
		return rc;
	entry.held = is_held(journal, parent_fd);
	if (!entry.held)
		entry.parent_fd = fcntl(parent_fd, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		entry.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	entry.name = strdup(name);
	entry.text = text ? strdup(text) : NULL;
	if (entry.parent_fd < 0 || (fd >= 0 && entry.fd < 0) || !entry.name || (text && !entry.text)) {
		entry_done(&entry);
		return -ENOMEM;
	}
	add_journal_entry(journal, &entry);
	return 0;
}

int graft_journal_created(struct graft_journal *journal, int parent_fd, const char *name, bool is_directory)
{
	return add_named(journal, is_directory ? CREATED_DIRECTORY : CREATED_FILE, parent_fd, name, -1, NULL);
}

int graft_journal_linked(struct graft_journal *journal, int parent_fd, const char *name, const char *text)
{
	return add_named(journal, LINKED, parent_fd, name, -1, text);
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
 * A mount has no name that is safe to use: another one may be at its path by now. Our procfs leads
 * from the descriptor to exactly this mount, even while another mount namespace is joined, since
 * the descriptor of /proc/self/fd was opened before.
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
	/*
	 * A directory on a network file system may need a second call, and the caller must not lose
	 * its working directory to the first failure.
	 */
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

static bool says(int parent_fd, const char *name, const char *text)
{
	char now[PATH_MAX];
	ssize_t n = readlinkat(parent_fd, name, now, sizeof(now));

	return n >= 0 && (size_t)n == strlen(text) && memcmp(now, text, (size_t)n) == 0;
}

/*
 * Marks a link afterwards, if the name is still a link with our target: one such link is as good as
 * another. Returns 0 or -errno.
 */
static int find_linked_name(struct entry *entry)
{
	if (!says(entry->parent_fd, entry->name, entry->text))
		return faccessat(entry->parent_fd, entry->name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : -ESTALE;
	return graft_mark(entry->parent_fd, entry->name, &entry->mark);
}

static int undo_entry(struct graft_journal *journal, struct entry *entry)
{
	struct graft_mark *ours = &entry->mark;
	int rc = entry->kind == LINKED && !entry->settled ? find_linked_name(entry) : settle_entry(journal, entry);

	if (rc == 0 && entry->made_fd >= 0)
		rc = graft_mark_fd(entry->made_fd, ours);
	if (rc < 0)
		return rc;
	switch (entry->kind) {
	case MOUNTED:
		return undo_mount(journal, entry);
	case CREATED_FILE:
	case CREATED_DIRECTORY:
	case LINKED:
		return graft_restore_nothing(entry->parent_fd, entry->name, ours);
	case REPLACED:
		if (entry->fd < 0)
			return graft_restore_nothing(entry->parent_fd, entry->name, ours);
		return graft_restore(journal->proc_fd, entry->fd, entry->parent_fd, entry->name, ours);
	case RELINKED:
		if (!entry->text)
			return graft_restore_nothing(entry->parent_fd, entry->name, ours);
		return graft_restore_link(entry->parent_fd, entry->name, entry->text, ours);
	case HELD:
		return 0;
	}
	return 0;
}

/* A name as its file system identifies it, whichever descriptor of the directory an entry has. */
struct place_of_entry {
	dev_t dev;
	ino_t inode;
	const char *name;
	size_t index;
};

static int compare_places(const void *a, const void *b)
{
	const struct place_of_entry *first = a, *second = b;

	if (first->dev != second->dev)
		return first->dev < second->dev ? -1 : 1;
	if (first->inode != second->inode)
		return first->inode < second->inode ? -1 : 1;
	return strcmp(first->name, second->name);
}

static int compare_entries(const void *a, const void *b)
{
	const struct place_of_entry *first = a, *second = b;
	int rc = compare_places(a, b);

	return rc != 0 ? rc : (first->index > second->index) - (first->index < second->index);
}

static size_t find_places(const struct graft_journal *journal, struct place_of_entry *places)
{
	struct stat st = { .st_ino = 0 };
	int fd = -1;
	size_t n = 0;

	for (size_t i = 0; i < journal->n; i++) {
		const struct entry *entry = &journal->entries[i];

		if (!entry->name)
			continue;
		if (entry->parent_fd != fd && fstat(entry->parent_fd, &st) < 0)
			continue;
		fd = entry->parent_fd;
		places[n++] = (struct place_of_entry){ st.st_dev, st.st_ino, entry->name, i };
	}
	return n;
}

/*
 * Links each entry to the earlier one of the same name. SECURITY: an image can cause thousands of
 * entries, so they are sorted once, and not searched for each of them. Without memory no entry is
 * linked; then copies are not recognized and stay.
 */
static void link_entries(struct graft_journal *journal)
{
	auto_free struct place_of_entry *places = journal->linked ? NULL : calloc(journal->n, sizeof(*places));
	size_t n = places ? find_places(journal, places) : 0;

	for (size_t i = 0; i < journal->n && !journal->linked; i++)
		journal->entries[i].earlier = 0;
	if (n > 0)
		qsort(places, n, sizeof(*places), compare_entries);
	for (size_t i = 1; i < n; i++)
		if (compare_places(&places[i - 1], &places[i]) == 0)
			journal->entries[places[i].index].earlier = places[i - 1].index + 1;
	journal->linked = true;
}

/*
 * Whether what a later change replaced is what this one had made, and not something that another
 * process put there in between.
 */
static bool made_what_was_replaced(const struct entry *entry, const struct entry *later)
{
	struct graft_mark made = entry->mark, old;

	if (entry->kind == LINKED && !entry->settled)
		return later->kind == RELINKED ? later->text && strcmp(later->text, entry->text) == 0
					       : later->fd >= 0 && says(later->fd, "", entry->text);
	if (later->fd < 0)
		return true;
	return (entry->made_fd < 0 || graft_mark_fd(entry->made_fd, &made) == 0) &&
	       graft_mark_fd(later->fd, &old) == 0 && graft_mark_is_same(&made, &old);
}

/*
 * What was restored may be a copy. It represents what an earlier change of the same name made,
 * which is undone next, so that entry gets its mark.
 */
static void hand_mark_on(struct graft_journal *journal, size_t index)
{
	const struct entry *from = &journal->entries[index];
	struct entry *to;

	link_entries(journal);
	to = from->earlier > 0 ? &journal->entries[from->earlier - 1] : NULL;
	if (!to || !made_what_was_replaced(to, from))
		return;
	if (to->made_fd >= 0)
		(void)close(to->made_fd);
	to->made_fd = -1;
	to->mark = from->mark;
	to->settled = true;
}

/* Mounts are undone in any case: only the host determines their number. */
static bool is_too_late(const struct entry *entry, struct graft_budget *budget)
{
	return budget && entry->kind != MOUNTED && entry->kind != HELD && graft_budget_is_spent(budget);
}

bool graft_journal_undo_to(struct graft_journal *journal, size_t length, struct graft_budget *budget)
{
	static const char *const words[] = {
		[MOUNTED] = "unmount",    [CREATED_FILE] = "remove file", [CREATED_DIRECTORY] = "remove directory",
		[LINKED] = "remove link", [REPLACED] = "put back file",   [RELINKED] = "put back link",
		[HELD] = "release",
	};
	auto_close int cwd_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t n_left = 0;
	bool undone = true;

	for (size_t i = journal->n; i > length; i--) {
		struct entry *entry = &journal->entries[i - 1];
		int rc;

		if (is_too_late(entry, budget)) {
			n_left++;
			continue;
		}
		rc = undo_entry(journal, entry);
		if (rc == 0 && (entry->kind == REPLACED || entry->kind == RELINKED))
			hand_mark_on(journal, i - 1);
		undone = undone && rc >= 0;
		if (rc < 0)
			graft_warn(journal->log, "could not undo: %s %s: %s", words[entry->kind],
				   entry->name ? entry->name : "",
				   rc == -ESTALE ? "another file now has that name" : strerror(-rc));
	}
	forget_to(journal, length);
	journal->linked = false;
	if (n_left > 0) {
		graft_warn(journal->log, "undoing takes too long: %zu changes stay", n_left);
		undone = false;
	}
	if (cwd_fd >= 0 && fchdir(cwd_fd) < 0) {
		graft_warn(journal->log, "could not return to the working directory: %s", strerror(errno));
		undone = false;
	}
	return undone;
}

void graft_journal_undo(struct graft_journal *journal, struct graft_budget *budget)
{
	(void)graft_journal_undo_to(journal, 0, budget);
}

static int note_created(void *arg, int parent_fd, const char *name, bool is_directory)
{
	return graft_journal_created(arg, parent_fd, name, is_directory);
}

struct graft_root_watch graft_journal_watch(struct graft_journal *journal)
{
	return (struct graft_root_watch){ .created = note_created, .arg = journal };
}
