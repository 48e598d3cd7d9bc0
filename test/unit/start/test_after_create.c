/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done after `create` of the low-level runtime: whose process the pid file names, and that
 * nothing remains of a container that could not be finished. A script that records its calls
 * replaces the low-level runtime.
 */
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../allocation.h"
#include "../unit.h"
#include "creation.h"
#include "start/after_create.h"

#define LIMIT_S 30u /* for anything that must not block */

/* ---- whether it is possible ---- */

static void test_can_finish(void **state)
{
	static const struct graft_oci_arguments all = {
		.create = true, .plain = true, .pid_file = "/p", .container = "id"
	};
	static const struct {
		const char *low_level;
		bool not_create, not_plain, no_pid_file, no_container, script;
		bool can;
	} rows[] = {
		{ .low_level = "/usr/sbin/runc", .can = true },
		{ .low_level = "/usr/bin/crun", .can = true },
		{ .low_level = "/usr/bin/youki" },
		{ .low_level = "/usr/sbin/runc", .not_create = true },
		{ .low_level = "/usr/sbin/runc", .not_plain = true },
		{ .low_level = "/usr/sbin/runc", .no_pid_file = true },
		{ .low_level = "/usr/sbin/runc", .no_container = true },
		{ .low_level = "/usr/sbin/runc", .script = true },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_oci_arguments arguments = all;

		arguments.create = !rows[i].not_create;
		arguments.plain = !rows[i].not_plain;
		arguments.pid_file = rows[i].no_pid_file ? NULL : "/p";
		arguments.container = rows[i].no_container ? NULL : "id";
		if (graft_after_create_is_possible(&arguments, rows[i].low_level, rows[i].script) != rows[i].can)
			fail_msg("row %zu", i);
	}
}

/* ---- the stand-in ---- */

#define GLOBAL_WORDS "--root /r --log-format=json "
#define DELETED      GLOBAL_WORDS "delete --force id\n"

struct start {
	struct world *world;
	const char *program, *pid_file, *created; /* created: how the call of `create` is recorded */
	struct graft_oci_waiting waiting;
	struct graft_buffer lines;
	struct graft_log log;
};

/*
 * Sets what the script does for `create` and `delete`; "" = it succeeds. The waiting plan is empty,
 * and for a root that no process has.
 */
static void start_init(struct start *start, struct world *world, const char *create, const char *delete)
{
	struct graft_arena *arena = world->arena;
	struct stat st;

	*start = (struct start){ .world = world, .waiting = { .plan = graft_plan_new() } };
	start->log = (struct graft_log){ .write = creation_write_line, .arg = &start->lines, .max = GRAFT_LOG_WARN };
	start->program = world_put(world, "runc",
				   graft_arena_printf(arena,
						      "#!/bin/sh\necho \"$*\" >>%s/calls\ncase \" $* \" in\n"
						      "*' delete '*) : ; %s ;;\n*) : ; %s ;;\nesac\n",
						      world->directory, delete, create),
				   0755);
	start->pid_file = world_path(world, "pid");
	start->created = graft_arena_printf(arena, GLOBAL_WORDS "create --bundle /b --pid-file %s id\n",
					    start->pid_file);
	(void)unlink(world_path(world, "calls"));
	assert_non_null(start->waiting.plan);
	assert_int_equal(stat(world->directory, &st), 0);
	start->waiting.dev = st.st_dev;
	start->waiting.inode = st.st_ino;
}

static void start_done(struct start *start)
{
	graft_oci_waiting_done(&start->waiting);
	graft_buffer_done(&start->lines);
}

static int finish(struct start *start, struct graft_arena *arena, int *ret_status, struct graft_error *err)
{
	static const char *const words[] = { "shim",   "--root",   "/r", "--log-format=json",
					     "create", "--bundle", "/b", "--pid-file",
					     NULL,     "id" };
	char *argv[GRAFT_COUNT(words) + 1] = { NULL };
	struct graft_oci_arguments arguments;

	for (size_t i = 0; i < GRAFT_COUNT(words); i++)
		argv[i] = graft_arena_strdup(start->world->arena, words[i] ? words[i] : start->pid_file);
	assert_int_equal(graft_oci_arguments_read((int)GRAFT_COUNT(words), argv, &arguments, NULL), 0);
	assert_true(graft_after_create_is_possible(&arguments, start->program, false));
	return graft_after_create(&arguments, start->program, argv, &start->waiting, &start->log, arena, ret_status,
				  err);
}

/* ---- the low-level runtime fails ---- */

/* Its status is passed on, and the pid file, which may be an old one, is not read. */
static void test_its_failure(void **state)
{
	static const struct {
		const char *create;
		int status;
	} rows[] = {
		{ "exit 1", 1 },
		{ "exit 127", 127 },
		{ "kill -TERM $$", -SIGTERM },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct start start;
		int status = 0;

		start_init(&start, *state, rows[i].create, "");
		world_put(start.world, "pid", "0", 0644);
		assert_int_equal(finish(&start, start.world->arena, &status, &err), 0);
		assert_int_equal(status, rows[i].status);
		assert_int_equal(err.status, GRAFT_OK);
		assert_string_equal(world_get(start.world, "calls"), start.created);
		assert_string_equal(graft_buffer_text(&start.lines), "");
		start_done(&start);
	}
}

static void test_not_started(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct start start;
	int status = 0;

	start_init(&start, *state, "", "");
	assert_int_equal(chmod(start.program, 0644), 0);
	assert_int_equal(finish(&start, start.world->arena, &status, &err), -1);
	assert_int_equal(err.status, GRAFT_PERMISSION);
	assert_string_equal(err.ctx, "");
	assert_string_equal(world_get(start.world, "calls"), "");
	assert_string_equal(graft_buffer_text(&start.lines), "");
	start_done(&start);
}

/* ---- the file ---- */

static void assert_taken_back(struct start *start, enum graft_status wanted)
{
	struct graft_error err = { .status = GRAFT_OK };
	int status = 0;

	assert_int_equal(finish(start, start->world->arena, &status, &err), -1);
	assert_int_equal(err.status, wanted);
	assert_string_equal(err.ctx, "failed to set up the container's GPUs");
	assert_string_equal(world_get(start->world, "calls"),
			    graft_arena_printf(start->world->arena, "%s" DELETED, start->created));
	assert_string_equal(graft_buffer_text(&start->lines), "");
}

/*
 * SECURITY: a text that is not a process ID identifies no process. '@' is replaced by this process'
 * ID, which is not a container's.
 */
static void test_texts(void **state)
{
	static const struct {
		const char *text;
		size_t n; /* 0 = the whole text */
		enum graft_status status;
	} rows[] = {
		{ "", 0, GRAFT_FORMAT },
		{ "\n", 0, GRAFT_FORMAT },
		{ "0", 0, GRAFT_FORMAT },
		{ "0\n", 0, GRAFT_FORMAT },
		{ "-1", 0, GRAFT_FORMAT },
		{ "+1", 0, GRAFT_FORMAT },
		{ " 1", 0, GRAFT_FORMAT },
		{ "01", 0, GRAFT_FORMAT },
		{ "0x10", 0, GRAFT_FORMAT },
		{ "1x", 0, GRAFT_FORMAT },
		{ "1.5", 0, GRAFT_FORMAT },
		{ "12 34", 0, GRAFT_FORMAT },
		{ "12\n34\n", 0, GRAFT_FORMAT },
		{ "12\t", 0, GRAFT_FORMAT },
		{ "12\0", 3, GRAFT_FORMAT },
		{ "12\0x", 4, GRAFT_FORMAT },
		{ "word", 0, GRAFT_FORMAT },
		{ "self", 0, GRAFT_FORMAT },
		{ "2147483648", 0, GRAFT_FORMAT },
		{ "4294967297", 0, GRAFT_FORMAT },
		{ "18446744073709551617", 0, GRAFT_FORMAT },
		{ "1111111111111111111111111111111111111111111111111111111111111111", 0, GRAFT_FORMAT },
		{ "11111111111111111111111111111111111111111111111111111111111111111", 0, GRAFT_TOO_BIG },
		/* above the largest pid_max of a kernel, 2^22 */
		{ "2147483647", 0, GRAFT_NOT_FOUND },
		{ "4194305\n", 0, GRAFT_NOT_FOUND },
		{ "@", 0, GRAFT_PROGRAM },
		{ "@\n", 0, GRAFT_PROGRAM },
		{ "@ \n \n", 0, GRAFT_PROGRAM },
	};
	struct world *world = *state;

	(void)alarm(LIMIT_S);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *text = rows[i].text;
		struct start start;

		print_message("# row %zu\n", i);
		start_init(&start, world, "", "");
		if (text[0] == '@')
			text = graft_arena_printf(world->arena, "%ld%s", (long)getpid(), text + 1);
		world_put_bytes(world, "pid", text, rows[i].n > 0 ? rows[i].n : strlen(text), 0644);
		assert_taken_back(&start, rows[i].status);
		start_done(&start);
	}
	(void)alarm(0);
}

/* Anything but a regular file is neither waited for nor read without end. */
static void test_no_file(void **state)
{
	static const struct {
		const char *make; /* run by `create`; "%s" is the file */
		enum graft_status status;
	} rows[] = {
		{ "", GRAFT_NOT_FOUND },
		{ "mkfifo %s", GRAFT_IO },
		{ "mkdir %s", GRAFT_IO },
		{ "ln -s /dev/zero %s", GRAFT_IO },
		{ "ln -s nowhere %s", GRAFT_NOT_FOUND },
		{ "truncate --size=1G %s", GRAFT_TOO_BIG },
	};
	struct world *world = *state;

	(void)alarm(LIMIT_S);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *at = strstr(rows[i].make, "%s"), *path = world_path(world, "pid"), *make = "";
		struct start start;

		print_message("# %s\n", rows[i].make);
		if (at)
			make = graft_arena_printf(world->arena, "%.*s%s", (int)(at - rows[i].make), rows[i].make, path);
		start_init(&start, world, make, "");
		assert_taken_back(&start, rows[i].status);
		start_done(&start);
		(void)remove(path);
	}
	(void)alarm(0);
}

/* ---- deleting the container ---- */

/* The first error is returned; the second one is only a warning. */
static void test_delete_fails(void **state)
{
	static const struct {
		const char *create, *delete, *why; /* '@' = the program's path in quotes */
	} rows[] = {
		{ "", "exit 4", "'@ delete --force' ended with 4" },
		{ "", "kill -KILL $$", "'@ delete --force' ended with -9" },
		{ "rm -f \"$0\"", "", "could not exec '@'" },
	};
	struct world *world = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *at = strchr(rows[i].why, '@');
		struct graft_error err = { .status = GRAFT_OK };
		struct start start;
		int status = 0;

		start_init(&start, world, rows[i].create, rows[i].delete);
		assert_int_equal(finish(&start, world->arena, &status, &err), -1);
		assert_int_equal(err.status, GRAFT_NOT_FOUND);
		assert_string_printed(err.msg, "file read error: %s", start.pid_file);
		assert_string_equal(graft_buffer_text(&start.lines),
				    graft_arena_printf(world->arena,
						       "W container 'id' could not be deleted: %.*s%s%s\n",
						       (int)(at - rows[i].why), rows[i].why, start.program, at + 1));
		start_done(&start);
	}
}

/*
 * Fails each allocation once: before `create` nothing is called; after it the container is deleted,
 * or there is a warning.
 */
static void test_memory(void **state)
{
	struct world *world = *state;
	int n = 1, n_told = 0;

	for (bool failed = true; failed; n++) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
		struct graft_error err = { .status = GRAFT_OK };
		struct start start;
		const char *calls;
		int status = 0;

		assert_non_null(arena);
		start_init(&start, world, "", "");
		world_put(world, "pid", graft_arena_printf(world->arena, "%ld", (long)getpid()), 0644);
		/* allocates memory, so that a line can always be recorded */
		graft_buffer_printf(&start.lines, "%s", "");
		allocation_fail(n);
		assert_int_equal(finish(&start, arena, &status, &err), -1);
		failed = allocation_failed();
		calls = world_get(world, "calls");
		if (calls[0] == '\0') {
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
		} else if (!strstr(calls, DELETED)) {
			assert_non_null(strstr(graft_buffer_text(&start.lines), "could not be deleted: out of memory"));
			n_told++;
		}
		start_done(&start);
		graft_arena_free(arena);
	}
	assert_true(n > 2);
	assert_true(n_told <= 3);
}

/* An earlier failure to allocate must not leave the container behind. */
static void test_memory_that_failed_before(void **state)
{
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct start start;
	int status = 0;

	assert_null(graft_arena_alloc(arena, (size_t)2 << 20));
	start_init(&start, *state, "", "");
	assert_int_equal(finish(&start, arena, &status, NULL), -1);
	assert_non_null(strstr(world_get(start.world, "calls"), DELETED));
	start_done(&start);
	graft_arena_free(arena);
}

/* ---- a container ---- */

/* Starts a process with its own mount namespace and this root. */
static pid_t start_process(const char *root)
{
	int ends[2];
	pid_t pid;
	char c = 0;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	(void)fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNS) == 0 && chroot(root) == 0 && write(ends[1], "1", 1) == 1)
			(void)pause();
		_exit(1);
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &c, 1), 1);
	(void)close(ends[0]);
	return pid;
}

/*
 * Runs graft_after_create() in a child, since joining another's mounts cannot be undone. Returns
 * whether it succeeded.
 */
static bool finish_in_child(struct start *start)
{
	int status = 1;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct graft_error err = { .status = GRAFT_OK };
		int result = -1;
		int rc = finish(start, start->world->arena, &result, &err);

		if (rc < 0)
			print_error("%s: %s\n", err.ctx, err.msg);
		_exit(rc == 0 && result == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

static void test_finished(void **state)
{
	static struct graft_edit edits[] = { { .kind = GRAFT_EDIT_DIRECTORY, .target = "/dev/a", .mode = 0755 } };
	struct world *world = *state;
	struct start start;
	struct stat st;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	start_init(&start, world, "", "");
	start.waiting.plan->edits = edits;
	start.waiting.plan->n_edits = GRAFT_COUNT(edits);
	pid = start_process(world->directory);
	world_put(world, "pid", graft_arena_printf(world->arena, "%ld\n", (long)pid), 0644);
	assert_true(finish_in_child(&start));
	assert_string_equal(world_get(world, "calls"), start.created);
	assert_int_equal(stat(world_path(world, "dev/a"), &st), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	start_done(&start);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_can_finish),
		cmocka_unit_test_setup_teardown(test_its_failure, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_not_started, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_texts, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_no_file, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_delete_fails, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_memory, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_memory_that_failed_before, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_finished, world_begin, world_end),
	};

	return cmocka_run_group_tests_name("graft_after_create", tests, NULL, NULL);
}
