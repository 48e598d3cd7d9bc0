/* SPDX-License-Identifier: Apache-2.0 */
/* lease_table: files, their names, and the lock. Does not know which GPUs exist. */
#include "lease/lease_table.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "apply/cgroup/cgroup_scope.h"
#include "apply/temporary.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/listing.h"
#include "base/path.h"
#include "base/strings.h"
#include "lease/lease_holder.h"
#include "lease/lease_log.h"
#include "request/claim.h"

#define HELD        "held"
#define QUEUE       "queue"
#define LOCK        "lock"
#define EVENT       "event"
#define RECORD_MODE 0644
#define NAMES_MAX   ((size_t)1 << 20)
#define SCRATCH_MAX ((size_t)16 << 20)
#define FEW         256
#define LOCKS_MAX   ((size_t)4 << 20)
#define HURRY       (-20)
/* PROC_USER_INIT_INO of the kernel. */
#define INITIAL_USER_NAMESPACE 0xEFFFFFFDU

static int fail_table(const struct graft_lease_table *table, int rc, const char *name, struct graft_error *err)
{
	(void)graft_fail_errno(err, -rc, "%s/%s", table->directory, name);
	return graft_wrap(err, "table of leases");
}

/* ---- the lock ---- */

/* The process that holds the lock, according to /proc/locks; 0 = unknown. */
static long find_lock_holder(const struct graft_lease_table *table, struct graft_arena *scratch)
{
	const char *text, *line;
	char inode[32];
	struct stat st;
	size_t length;
	long pid = 0;

	if (fstat(table->lock_fd, &st) < 0 ||
	    graft_root_read(&table->now.root, "/proc/locks", LOCKS_MAX, scratch, &text, &length) < 0)
		return 0;
	(void)snprintf(inode, sizeof(inode), ":%llu ", (unsigned long long)st.st_ino);
	for (line = text; line && pid == 0; line = strchr(line + 1, '\n')) {
		const char *found = strstr(line, inode), *end = strchr(line + 1, '\n');
		const char *holder = strstr(line, ": FLOCK  ADVISORY  WRITE ");

		if (found && holder && holder < found && (!end || found < end))
			pid = strtol(holder + strlen(": FLOCK  ADVISORY  WRITE "), NULL, 10);
	}
	return pid;
}

static int fail_locked(const struct graft_lease_table *table, struct graft_error *err)
{
	struct graft_arena *scratch = graft_arena_new(2 * LOCKS_MAX);
	long pid = scratch ? find_lock_holder(table, scratch) : 0;

	(void)graft_arena_free(scratch);
	if (pid > 0)
		return graft_fail(err, GRAFT_LEASES, 0, "process %ld has held %s/" LOCK " for %d s", pid,
				  table->directory, GRAFT_LEASE_LOCK_MS / 1000);
	return graft_fail(err, GRAFT_LEASES, 0, "another process has held %s/" LOCK " for %d s", table->directory,
			  GRAFT_LEASE_LOCK_MS / 1000);
}

static void ignore_alarm(int number)
{
	(void)number;
}

/*
 * Waits in the kernel's queue, which is served in order: 200 processes that poll would keep the
 * processors from the one with the lock. Returns 0, or -errno; -EINTR: the time is over.
 */
static int wait_for_lock(int fd, int64_t until_us)
{
	const struct sigaction ours = { .sa_handler = ignore_alarm };
	/* More than one: the first may come just before flock. */
	struct itimerval limit = { .it_value.tv_sec = GRAFT_LEASE_LOCK_MS / 1000, .it_interval.tv_usec = 50000 };
	struct itimerval old_limit;
	struct sigaction old;
	sigset_t alarm_only, old_mask;
	int rc;

	(void)sigemptyset(&alarm_only);
	(void)sigaddset(&alarm_only, SIGALRM);
	(void)sigaction(SIGALRM, &ours, &old);
	(void)sigprocmask(SIG_UNBLOCK, &alarm_only, &old_mask);
	(void)setitimer(ITIMER_REAL, &limit, &old_limit);
	do {
		rc = flock(fd, LOCK_EX) < 0 ? -errno : 0;
	} while (rc == -EINTR && graft_clock_us() < until_us);
	(void)setitimer(ITIMER_REAL, &old_limit, NULL);
	(void)sigprocmask(SIG_SETMASK, &old_mask, NULL);
	(void)sigaction(SIGALRM, &old, NULL);
	return rc;
}

/*
 * If many containers start at once, there are many more processes than processors: the process with
 * the lock must not lose its processor to one that waits for the lock. Does what the caller's
 * permissions allow.
 */
static void hurry(struct graft_lease_table *table)
{
	table->priority = getpriority(PRIO_PROCESS, 0);
	table->hurries = setpriority(PRIO_PROCESS, 0, HURRY) == 0;
}

static void end_hurry(struct graft_lease_table *table)
{
	if (table->hurries)
		(void)setpriority(PRIO_PROCESS, 0, table->priority);
	table->hurries = false;
}

/* Whether the table has another lock by now, since it or the whole directory was replaced. */
static bool is_lock_replaced(const struct graft_lease_table *table, const struct stat *ours)
{
	const char *path = graft_arena_printf(table->arena, "%s/" LOCK, table->directory);
	struct stat st;

	if (!path || stat(path, &st) < 0)
		return path && errno == ENOENT;
	return st.st_ino != ours->st_ino || st.st_dev != ours->st_dev;
}

/* Returns 1 if the lock that it has got is no longer that of the table. */
static int lock_table(struct graft_lease_table *table, struct graft_error *err)
{
	const int64_t since = graft_clock_us();
	struct stat st;
	int rc;

	table->lock_fd = openat(table->root.fd, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (table->lock_fd < 0)
		return fail_table(table, -errno, LOCK, err);
	if (fstat(table->lock_fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_mode & 0077) != 0)
		return graft_fail(err, GRAFT_LEASES, 0,
				  "%s/" LOCK " must be a regular file that only its owner can use", table->directory);
	hurry(table);
	rc = flock(table->lock_fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	if (rc == -EWOULDBLOCK || rc == -EINTR)
		rc = wait_for_lock(table->lock_fd, since + GRAFT_LEASE_LOCK_MS * INT64_C(1000));
	if (rc == -EINTR)
		return fail_locked(table, err);
	if (rc < 0)
		return fail_table(table, rc, LOCK, err);
	table->lock_wait_us = graft_clock_us() - since;
	return is_lock_replaced(table, &st);
}

/* ---- the directory ---- */

bool graft_lease_table_is_root(void)
{
	struct stat st;

	return geteuid() == 0 && stat("/proc/self/ns/user", &st) == 0 && st.st_ino == INITIAL_USER_NAMESPACE;
}

int graft_lease_table_fail_permission(const char *directory, struct graft_error *err)
{
	(void)graft_fail(err, GRAFT_PERMISSION, 0, "only root can take GPUs: this process may not change %s",
			 directory);
	return graft_with_hint(err, "Run the command with sudo.");
}

static int open_directory(struct graft_lease_table *table, bool change, struct graft_error *err)
{
	const char *held = graft_arena_printf(table->arena, "%s/" HELD, table->directory);
	struct graft_error own = { .status = GRAFT_OK };
	struct stat st;
	int fd = -1, rc;

	if (!held)
		return graft_fail_memory(err);
	if (table->directory[0] != '/')
		return graft_fail(err, GRAFT_LEASES, 0, "graft.leases.directory is not an absolute path: '%s'",
				  table->directory);
	if (change) {
		rc = graft_root_mkdir(&table->now.root, held, 0755, NULL, &fd);
		if ((rc == -EACCES || rc == -EPERM) && !graft_lease_table_is_root())
			return graft_lease_table_fail_permission(table->directory, err);
		if (rc < 0)
			return fail_table(table, rc, HELD, err);
		(void)close(fd);
	}
	if (graft_root_open(&table->root, table->directory, &own) < 0) {
		if (own.sys == ENOENT && !change)
			return 0;
		return fail_table(table, own.sys ? -own.sys : -EIO, HELD, err);
	}
	if (!change)
		return 0;
	rc = fstat(table->root.fd, &st);
	if (rc == 0 && st.st_uid != geteuid() && !graft_lease_table_is_root())
		return graft_lease_table_fail_permission(table->directory, err);
	if (rc < 0 || st.st_uid != geteuid() || (st.st_mode & 0022) != 0)
		return graft_fail(err, GRAFT_LEASES, 0, "%s must be a directory that only uid %u can write to",
				  table->directory, (unsigned int)geteuid());
	return 0;
}

/* ---- leases ---- */

/* What waiters watch. */
static int open_event(const struct graft_lease_table *table)
{
	return openat(table->root.fd, EVENT, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, RECORD_MODE);
}

static int open_lease_folder(const struct graft_lease_table *table, const char *folder)
{
	return openat(table->root.fd, folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Writes the lease to a new file and gives it its name. */
static int write_lease(const struct graft_lease_table *table, const char *folder, const struct graft_lease *lease,
		       struct graft_error *err)
{
	auto_close int held_fd = open_lease_folder(table, folder);
	struct graft_buffer text = { .max = GRAFT_LEASE_BYTES_MAX };
	struct graft_lease read_back;
	char name[GRAFT_TEMPORARY_SIZE] = "";
	auto_close int fd = held_fd >= 0 ? graft_temporary_file(held_fd, RECORD_MODE, name) : -errno;
	int rc = fd < 0 ? fd : 0;

	graft_lease_write(lease, &text);
	/* Do not write what a reader would reject. */
	if (graft_buffer_failed(&text) ||
	    graft_lease_parse(text.bytes, text.length, table->arena, &read_back, err) < 0) {
		rc = -EINVAL;
	} else if (rc == 0) {
		rc = fchmod(fd, RECORD_MODE) < 0 ? -errno : graft_write_all(fd, text.bytes, text.length);
		if (rc == 0 && renameat(held_fd, name, held_fd, lease->id) < 0)
			rc = -errno;
	}
	graft_buffer_done(&text);
	if (rc < 0 && fd >= 0)
		(void)unlinkat(held_fd, name, 0);
	return rc < 0 ? fail_table(table, rc, folder, err) : 0;
}

static int push_damage(struct graft_lease_table *table, const char *name, const char *why, struct graft_error *err)
{
	struct graft_lease_damage *damage = graft_arena_push(table->arena, &table->damages, &table->n_damages,
							     sizeof(*damage));
	struct graft_buffer visible = { .max = 4096 };

	if (!damage)
		return graft_fail_memory(err);
	graft_buffer_visible(&visible, why);
	damage->name = graft_arena_strdup(table->arena, name);
	damage->why = graft_arena_strdup(table->arena, graft_buffer_text(&visible));
	graft_buffer_done(&visible);
	return damage->name && damage->why ? 0 : graft_fail_memory(err);
}

/* A directory of the table while it is read. */
struct folder {
	const char *name;
	bool queue;
	bool few; /* so that they are read into the table's arena */
	struct graft_root root;
};

/* Keeps a lease or ticket that counts, with what has been learned about it. */
static int keep_lease(struct graft_lease_table *table, const struct folder *folder, const struct graft_lease *lease,
		      bool bound, struct graft_error *err)
{
	struct graft_buffer text = { .max = GRAFT_LEASE_BYTES_MAX };
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_lease *kept;
	int rc;

	/* On a full disk the old one stays, which is as true: otherwise nothing could be given back. */
	if (bound && table->lock_fd >= 0 && write_lease(table, folder->name, lease, &why) < 0 && why.sys != ENOSPC &&
	    why.sys != EDQUOT) {
		if (err)
			*err = why;
		return -1;
	}
	if (folder->queue)
		kept = graft_arena_push(table->arena, &table->tickets, &table->n_tickets, sizeof(*kept));
	else
		kept = graft_arena_push(table->arena, &table->leases, &table->n_leases, sizeof(*kept));
	if (!kept)
		return graft_fail_memory(err);
	if (folder->few) {
		*kept = *lease;
		return 0;
	}
	graft_lease_write(lease, &text);
	rc = graft_buffer_failed(&text) ? graft_fail_memory(err)
					: graft_lease_parse(text.bytes, text.length, table->arena, kept, err);
	graft_buffer_done(&text);
	return rc;
}

/* In the queue only an order is lost, and the file goes with the next change. */
static int note_damage(struct graft_lease_table *table, const struct folder *folder, const char *name, const char *why,
		       struct graft_error *err)
{
	if (!folder->queue)
		return push_damage(table, name, why, err);
	if (table->lock_fd >= 0 && unlinkat(folder->root.fd, name, 0) < 0)
		(void)unlinkat(folder->root.fd, name, AT_REMOVEDIR);
	return 0;
}

/* A cgroup that was made for the lease; one with processes stays. */
static void remove_scope(const struct graft_lease_holder *holder)
{
	const struct graft_cgroup_place place = { .mount = holder->cgroup_mount, .path = holder->cgroup };

	if (holder->kind != GRAFT_HOLDER_CGROUP || holder->container ||
	    !graft_starts_with(graft_path_name(holder->cgroup), GRAFT_LEASE_SCOPE))
		return;
	graft_cgroup_scope_remove(&place);
}

/*
 * The directory is its owner's alone, so only regular files are expected: a link is not
 * followed, and nothing is waited for. Returns 0 or -errno.
 */
static int read_lease_text(const struct folder *folder, const char *name, struct graft_arena *arena,
			   const char **ret_text, size_t *ret_length)
{
	auto_close int fd = openat(folder->root.fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	char *text;
	long length;

	if (fd < 0)
		return errno == ELOOP ? -EINVAL : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > (off_t)GRAFT_LEASE_BYTES_MAX)
		return -EFBIG;
	text = graft_arena_alloc(arena, (size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	length = graft_read_at(fd, text, (size_t)st.st_size, 0);
	if (length < 0)
		return -errno;
	text[length] = '\0';
	*ret_text = text;
	*ret_length = (size_t)length;
	return 0;
}

/* Reads a file. Damage does not count as failure. */
static int read_file(struct graft_lease_table *table, const struct folder *folder, const char *name,
		     struct graft_arena *scratch, struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_lease lease;
	const char *text = "", *ended;
	size_t length = 0;
	bool bound;
	int rc = read_lease_text(folder, name, scratch, &text, &length);

	/* Another process has removed it. */
	if (rc == -ENOENT && table->lock_fd < 0)
		return 0;
	if (rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE)
		return fail_table(table, rc, folder->name, err);
	if (rc < 0)
		return note_damage(table, folder, name, rc == -EINVAL ? "not a file" : strerror(-rc), err);
	if (graft_lease_parse(text, length, scratch, &lease, &why) < 0)
		return why.status == GRAFT_NO_MEMORY ? graft_fail_memory(err)
						     : note_damage(table, folder, name, why.msg, err);
	if (strcmp(lease.id, name) != 0)
		return note_damage(table, folder, name, "it has the id of another lease", err);
	if ((lease.n_slots == 0) != folder->queue)
		return note_damage(table, folder, name, "it lends nothing", err);
	if (graft_lease_is_alive(&table->now, &lease, scratch, &bound, &ended))
		return keep_lease(table, folder, &lease, bound, err);
	if (table->lock_fd < 0)
		return 0;
	graft_lease_log_add(&lease, folder->queue ? "left" : "freed", ended, &table->events);
	remove_scope(&lease.holder);
	if (unlinkat(folder->root.fd, name, 0) < 0)
		return fail_table(table, -errno, folder->name, err);
	return 0;
}

static int read_name(struct graft_lease_table *table, const struct folder *folder, const char *name,
		     struct graft_error *err)
{
	struct graft_arena *scratch;
	int rc;

	if (!graft_lease_id_is_valid(name)) {
		/* Left by a process that was killed while it wrote. */
		if (graft_starts_with(name, ".graft-")) {
			if (table->lock_fd >= 0)
				(void)unlinkat(folder->root.fd, name, 0);
			return 0;
		}
		return note_damage(table, folder, name, "not the name of a lease", err);
	}
	if (folder->few)
		return read_file(table, folder, name, table->arena, err);
	scratch = graft_arena_new(SCRATCH_MAX);
	rc = scratch ? read_file(table, folder, name, scratch, err) : graft_fail_memory(err);
	(void)graft_arena_free(scratch);
	return rc;
}

static int read_lease_folder(struct graft_lease_table *table, struct folder *folder, struct graft_error *err)
{
	const char *path = graft_arena_printf(table->arena, "%s/%s", table->directory, folder->name), **names;
	struct graft_error own = { .status = GRAFT_OK };
	size_t n;
	int rc;

	if (!path)
		return graft_fail_memory(err);
	if (graft_root_open(&folder->root, path, &own) < 0) {
		if (own.sys == ENOENT && (table->lock_fd < 0 || folder->queue))
			return 0;
		return fail_table(table, own.sys ? -own.sys : -EIO, folder->name, err);
	}
	rc = graft_root_list(&folder->root, "/", NAMES_MAX, table->arena, &names, &n, NULL);
	if (rc < 0)
		return fail_table(table, rc, folder->name, err);
	folder->few = n <= FEW;
	for (size_t i = 0; i < n; i++) {
		if (read_name(table, folder, names[i], err) < 0)
			return -1;
	}
	return 0;
}

static int read_leases(struct graft_lease_table *table, struct graft_error *err)
{
	struct folder held = { .name = HELD, .root = GRAFT_ROOT_INIT };
	struct folder queue = { .name = QUEUE, .queue = true, .root = GRAFT_ROOT_INIT };
	int rc = read_lease_folder(table, &held, err) < 0 || read_lease_folder(table, &queue, err) < 0 ? -1 : 0;

	graft_root_close(&held.root);
	graft_root_close(&queue.root);
	return rc;
}

int graft_lease_table_open(struct graft_lease_table *table, const char *directory, bool change,
			   struct graft_arena *arena, struct graft_error *err)
{
	int rc;

	table->directory = directory;
	table->arena = arena;
	table->events.max = 4 * GRAFT_LEASE_LOG_MAX;
	if (graft_lease_now_read(&table->now, arena, err) < 0)
		return -1;
	do {
		graft_lease_table_unlock(table);
		graft_root_close(&table->root);
		rc = open_directory(table, change, err);
		if (rc == 0 && change)
			rc = lock_table(table, err);
	} while (rc > 0);
	if (rc < 0)
		return -1;
	/* Decisions count from now, not from before the wait for the lock. */
	table->now.time = graft_lease_clock();
	return table->root.fd >= 0 ? read_leases(table, err) : 0;
}

void graft_lease_table_unlock(struct graft_lease_table *table)
{
	if (table->lock_fd >= 0 && table->events.length > 0) {
		auto_close int event_fd = open_event(table);

		if (event_fd >= 0)
			(void)futimens(event_fd, NULL);
		graft_lease_log_write(table->root.fd, &table->events);
	}
	graft_buffer_done(&table->events);
	if (table->lock_fd >= 0)
		(void)close(TAKE_FD(table->lock_fd));
	end_hurry(table);
}

void graft_lease_table_close(struct graft_lease_table *table)
{
	graft_lease_table_unlock(table);
	graft_root_close(&table->root);
	graft_lease_now_done(&table->now);
}

int graft_lease_table_check(const struct graft_lease_table *table, struct graft_error *err)
{
	if (table->n_damages == 0)
		return 0;
	return graft_fail(err, GRAFT_LEASES, 0, "%s/" HELD "/%.64s is damaged: %.200s", table->directory,
			  table->damages[0].name, table->damages[0].why);
}

int graft_lease_table_add(struct graft_lease_table *table, const struct graft_lease *lease, struct graft_error *err)
{
	if (write_lease(table, HELD, lease, err) < 0)
		return -1;
	graft_lease_log_add(lease, "taken", NULL, &table->events);
	return 0;
}

int graft_lease_table_renew(struct graft_lease_table *table, const struct graft_lease *lease, struct graft_error *err)
{
	return write_lease(table, HELD, lease, err);
}

int graft_lease_table_remove(struct graft_lease_table *table, const struct graft_lease *lease, const char *event,
			     const char *why, struct graft_error *err)
{
	auto_close int held_fd = open_lease_folder(table, HELD);

	if (held_fd < 0 || unlinkat(held_fd, lease->id, 0) < 0)
		return fail_table(table, -errno, HELD, err);
	graft_lease_log_add(lease, event, why, &table->events);
	return 0;
}

int graft_lease_table_queue(struct graft_lease_table *table, const struct graft_lease *ticket, struct graft_error *err)
{
	if (mkdirat(table->root.fd, QUEUE, 0755) < 0 && errno != EEXIST)
		return fail_table(table, -errno, QUEUE, err);
	return write_lease(table, QUEUE, ticket, err);
}

void graft_lease_table_unqueue(struct graft_lease_table *table, const struct graft_lease *ticket, const char *why)
{
	auto_close int fd = open_lease_folder(table, QUEUE);

	if (fd >= 0)
		(void)unlinkat(fd, ticket->id, 0);
	if (why)
		graft_lease_log_add(ticket, "left", why, &table->events);
}

const char *graft_lease_table_event(const struct graft_lease_table *table)
{
	int fd = open_event(table);

	if (fd >= 0)
		(void)close(fd);
	return graft_arena_printf(table->arena, "%s/" EVENT, table->directory);
}

int graft_lease_table_repair(struct graft_lease_table *table, const struct graft_lease_damage *damage,
			     struct graft_error *err)
{
	auto_close int held_fd = open_lease_folder(table, HELD);

	if (held_fd < 0 ||
	    (unlinkat(held_fd, damage->name, 0) < 0 && unlinkat(held_fd, damage->name, AT_REMOVEDIR) < 0))
		return fail_table(table, -errno, damage->name, err);
	return 0;
}

const struct graft_lease *graft_lease_table_find(const struct graft_lease_table *table, const char *id)
{
	for (size_t i = 0; i < table->n_leases; i++) {
		if (strcmp(table->leases[i].id, id) == 0)
			return &table->leases[i];
	}
	return NULL;
}
