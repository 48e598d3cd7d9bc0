/* SPDX-License-Identifier: Apache-2.0 */
/* The table in a directory of its own: leases come, go and stay as their holders do; every allocation fails once. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../allocation.h"
#include "../arena.h"
#include "../folder.h"
#include "base/cleanup.h"
#include "lease/lease_holder.h"
#include "lease/lease_table.h"
#include "lease/lease_wait.h"

static char directory[] = "/tmp/graft-leases-XXXXXX";
static const char *table_path;

static int setup(void **state)
{
	(void)memcpy(directory + sizeof(directory) - 7, "XXXXXX", 6);
	arena = graft_arena_new((size_t)64 << 20);
	if (!arena || !mkdtemp(directory))
		return -1;
	table_path = graft_arena_printf(arena, "%s/leases", directory);
	return 0;
}

static int teardown(void **state)
{
	(void)test_remove_folder(directory);
	arena = graft_arena_free(arena);
	return 0;
}

static struct graft_lease lease_of(const struct graft_lease_table *table, pid_t pid, const char *id)
{
	static struct graft_lease_slot slot = { "GPU-1", NULL };
	struct graft_lease lease = {
		.id = id, .boot = table->now.boot, .slots = &slot, .n_slots = 1, .claim = "any:1"
	};

	lease.since = table->now.time;
	assert_int_equal(graft_lease_holder_of_process(pid, arena, &lease.holder, NULL), 0);
	return lease;
}

/* How many leases count; all that do not are gone afterwards. */
static size_t count_leases(void)
{
	struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	struct graft_error err = { .status = GRAFT_OK };
	size_t n;

	assert_int_equal(graft_lease_table_open(&table, table_path, true, arena, &err), 0);
	assert_int_equal(table.n_damages, 0);
	n = table.n_leases;
	graft_lease_table_close(&table);
	return n;
}

static void add(pid_t pid, const char *id)
{
	auto_lease_table struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_lease lease;

	assert_int_equal(graft_lease_table_open(&table, table_path, true, arena, &err), 0);
	lease = lease_of(&table, pid, id);
	assert_int_equal(graft_lease_table_add(&table, &lease, &err), 0);
}

static void test_life(void **state)
{
	struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	pid_t child = fork();

	if (child == 0) {
		(void)pause();
		_exit(0);
	}
	assert_int_equal(graft_lease_table_open(&table, table_path, false, arena, NULL), 0);
	assert_int_equal(table.n_leases, 0);
	graft_lease_table_close(&table);
	add(getpid(), "abcdefgh2345");
	add(child, "bbcdefgh2345");
	assert_int_equal(count_leases(), 2);
	(void)kill(child, SIGKILL);
	/* A zombie holds nothing. */
	assert_int_equal(waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	assert_int_equal(count_leases(), 1);
	(void)waitpid(child, NULL, 0);
	assert_int_equal(count_leases(), 1);
}

static void test_believed_ids(void **state)
{
	struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_lease lease;

	assert_int_equal(graft_lease_table_open(&table, table_path, true, arena, &err), 0);
	lease = lease_of(&table, getpid(), "no id");
	assert_int_equal(graft_lease_table_add(&table, &lease, &err), -1);
	assert_int_equal(table.events.length, 0);
	graft_lease_table_close(&table);
	assert_int_equal(count_leases(), 0);
}

/* A pid file: of a process that has started since; learned when it is first seen. */
static void test_pid_file(void **state)
{
	struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	const char *path = graft_arena_printf(arena, "%s/pid", directory);
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_lease lease;
	pid_t maker = fork(), child;
	FILE *file;

	if (maker == 0) {
		(void)pause();
		_exit(0);
	}
	assert_int_equal(graft_lease_table_open(&table, table_path, true, arena, &err), 0);
	lease = lease_of(&table, maker, "abcdefgh2345");
	lease.holder.kind = GRAFT_HOLDER_PID_FILE;
	lease.holder.pid_file = path;
	assert_int_equal(graft_lease_table_add(&table, &lease, &err), 0);
	graft_lease_table_close(&table);
	assert_int_equal(count_leases(), 1); /* there is no file, but its maker lives */
	(void)usleep(30000);
	child = fork();
	if (child == 0) {
		(void)pause();
		_exit(0);
	}
	file = fopen(path, "we");
	assert_non_null(file);
	(void)fprintf(file, "%d", (int)child);
	(void)fclose(file);
	(void)kill(maker, SIGKILL);
	(void)waitpid(maker, NULL, 0);
	assert_int_equal(count_leases(), 1);
	(void)unlink(path);
	assert_int_equal(count_leases(), 1);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	assert_int_equal(count_leases(), 0);
}

static const char *name_file(const char *name)
{
	return graft_arena_printf(arena, "%s/%s", table_path, name);
}

/* Somebody removes the lock, or the table, while one waits for it: the lock that it gets is the one that the next will get. */
static void test_replaced_lock(void **state)
{
	for (int whole = 0; whole < 2; whole++) {
		auto_lease_table struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
		struct graft_error err = { .status = GRAFT_OK };
		struct stat ours, there;
		int held[2];
		char byte;
		pid_t child;

		add(getpid(), "abcdefgh2345");
		assert_int_equal(pipe(held), 0);
		child = fork();
		if (child == 0) {
			struct graft_lease_table other = GRAFT_LEASE_TABLE_INIT;

			if (graft_lease_table_open(&other, table_path, true, arena, NULL) < 0 ||
			    write(held[1], "", 1) != 1)
				_exit(1);
			(void)usleep(100000);
			if (rename(whole ? table_path : name_file("lock"),
				   graft_arena_printf(arena, "%s/old-%d", directory, whole)) < 0)
				_exit(1);
			_exit(0);
		}
		assert_int_equal(read(held[0], &byte, 1), 1);
		assert_int_equal(graft_lease_table_open(&table, table_path, true, arena, &err), 0);
		assert_int_equal(table.n_leases, whole ? 0 : 1);
		assert_int_equal(fstat(table.lock_fd, &ours), 0);
		assert_int_equal(stat(name_file("lock"), &there), 0);
		assert_int_equal(ours.st_ino, there.st_ino);
		assert_int_equal(waitpid(child, NULL, 0), child);
		(void)close(held[0]);
		(void)close(held[1]);
	}
}

/* Opens the table, and watches it. */
static void watch(struct graft_lease_wait *wait)
{
	auto_lease_table struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	struct graft_error err = { .status = GRAFT_OK };

	assert_int_equal(graft_lease_table_open(&table, table_path, true, arena, &err), 0);
	assert_int_equal(graft_lease_wait_watch(wait, &table, &err), 0);
}

static bool is_woken(struct graft_lease_wait *wait)
{
	return poll(wait->fds, (nfds_t)wait->n_fds, 0) > 0;
}

/* The file that all touch is removed: the next one is watched. */
static void test_watch_again(void **state)
{
	auto_lease_wait struct graft_lease_wait wait = GRAFT_LEASE_WAIT_INIT;

	wait.until = UINT64_MAX;
	watch(&wait);
	assert_false(is_woken(&wait));
	assert_int_equal(unlink(name_file("event")), 0);
	assert_true(is_woken(&wait));
	assert_int_equal(graft_lease_wait_next(&wait, NULL), 0);
	watch(&wait);
	assert_false(is_woken(&wait));
	add(getpid(), "abcdefgh2345");
	assert_true(is_woken(&wait));
}

/* A user has few inotify instances: then processes are watched, and the time. */
static void test_watch_processes_only(void **state)
{
	auto_lease_wait struct graft_lease_wait wait = GRAFT_LEASE_WAIT_INIT;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	struct rlimit limit, none;
	int fd;

	wait.until = UINT64_MAX;
	assert_int_equal(graft_lease_table_open(&table, table_path, true, arena, &err), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	fd = dup(0);
	none = (struct rlimit){ .rlim_cur = (rlim_t)fd, .rlim_max = limit.rlim_max };
	(void)close(fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(graft_lease_wait_watch(&wait, &table, &err), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	graft_lease_table_close(&table);
	assert_int_equal(graft_lease_wait_next(&wait, &err), 0);
	add(getpid(), "abcdefgh2345");
	watch(&wait);
	assert_int_equal(wait.n_fds, 2);
	assert_int_equal(graft_lease_wait_next(&wait, &err), 0);
}

static void test_table_allocations(void **state)
{
	bool failed = true;

	add(getpid(), "abcdefgh2345");
	for (int n = 1; failed; n++) {
		struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
		struct graft_arena *own = graft_arena_new((size_t)16 << 20);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_lease lease;
		int rc;

		allocation_fail(n);
		rc = graft_lease_table_open(&table, table_path, true, own, &err);
		if (rc == 0) {
			int left = *allocation_countdown;

			allocation_fail(0);
			lease = lease_of(&table, getpid(), "bbcdefgh2345");
			allocation_fail(left);
			rc = graft_lease_table_add(&table, &lease, &err);
		}
		failed = allocation_failed();
		graft_lease_table_close(&table);
		(void)graft_arena_free(own);
		/* What was said to be there is there, and nothing else. Only an event may be lost. */
		if (!failed)
			assert_int_equal(rc, 0);
		assert_int_equal(count_leases(), rc == 0 ? 2 : 1);
		(void)unlink(graft_arena_printf(arena, "%s/held/bbcdefgh2345", table_path));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_life, setup, teardown),
		cmocka_unit_test_setup_teardown(test_believed_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pid_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replaced_lock, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watch_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watch_processes_only, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table_allocations, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
