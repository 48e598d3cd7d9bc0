/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that keep containers: which of a host's there are, whose, and where they run. */
#include <stdio.h>
#include <string.h>

#include "../host/fixture.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "doctor/engine_processes.h"

static void write_process(struct fixture *fixture, const char *pid, const char *comm, const char *status,
			  const char *line)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	fixture_write(fixture, path, comm);
	(void)snprintf(path, sizeof(path), "/proc/%s/status", pid);
	fixture_write(fixture, path, status);
	(void)snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	fixture_write(fixture, path, line);
}

static void test_processes(void **state)
{
	static const struct {
		const char *pid, *comm, *status, *line;
		bool found, root;
		enum graft_engine_program program;
	} rows[] = {
		{ "11", "containerd-shim\n", "Uid:\t0\t0\t0\t0\nNSpid:\t11\n", "shim", true, true, GRAFT_ENGINE_SHIM },
		{ "12", "conmon\n", "Uid:\t1000\t0\t0\t0\nNSpid:\t12\n", "conmon", true, false, GRAFT_ENGINE_CONMON },
		{ "13", "dockerd\n", "Uid:\t0\t0\t0\t0\n", "dockerd", true, true, GRAFT_ENGINE_DOCKERD },
		/* In a container; of another name; a thread of the kernel; ended meanwhile. */
		{ "14", "conmon\n", "Uid:\t0\t0\t0\t0\nNSpid:\t14\t3\n", "conmon", false, false, 0 },
		{ "15", "bash\n", "Uid:\t0\t0\t0\t0\nNSpid:\t15\n", "/usr/bin/conmon", false, false, 0 },
		{ "16", "conmon\n", "Uid:\t0\t0\t0\t0\nNSpid:\t16\n", "", false, false, 0 },
		{ "self", "conmon\n", "Uid:\t0\t0\t0\t0\n", "conmon", false, false, 0 },
	};
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	auto_root struct graft_root host = GRAFT_ROOT_INIT;
	struct graft_engine_process *processes;
	struct graft_error err = { .status = GRAFT_OK };
	struct fixture fixture;
	bool denied = false;
	char path[64];
	size_t n, found = 0;

	fixture_init(&fixture);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		write_process(&fixture, rows[i].pid, rows[i].comm, rows[i].status, rows[i].line);
	fixture_link(&fixture, "/run/bundle", "/proc/11/cwd");
	fixture_link(&fixture, "bundle", "/proc/12/cwd");
	assert_int_equal(graft_root_open(&host, fixture.root, &err), 0);
	graft_engine_processes(&host, arena, &processes, &n, &denied);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		if (!rows[i].found)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s", rows[i].pid);
		assert_true(found < n);
		assert_string_equal(processes[found].directory, path);
		assert_int_equal(processes[found].program, rows[i].program);
		assert_int_equal(processes[found].root, rows[i].root);
		assert_int_equal(processes[found].line.length, strlen(rows[i].line));
		found++;
	}
	assert_int_equal(n, found);
	assert_string_equal(graft_engine_process_directory(&host, &processes[0], arena, &denied), "/run/bundle");
	assert_null(graft_engine_process_directory(&host, &processes[1], arena, &denied));
	assert_null(graft_engine_process_directory(&host, &processes[2], arena, &denied));
	assert_false(denied);
	fixture_done(&fixture);
	graft_arena_free(arena);
}

/* A host without procfs has no such processes. */
static void test_no_procfs(void **state)
{
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	auto_root struct graft_root host = GRAFT_ROOT_INIT;
	struct graft_engine_process *processes;
	struct graft_error err = { .status = GRAFT_OK };
	struct fixture fixture;
	bool denied = false;
	size_t n = 1;

	fixture_init(&fixture);
	assert_int_equal(graft_root_open(&host, fixture.root, &err), 0);
	graft_engine_processes(&host, arena, &processes, &n, &denied);
	assert_int_equal(n, 0);
	assert_false(denied);
	fixture_done(&fixture);
	graft_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_no_procfs),
	};

	return cmocka_run_group_tests_name("engine_processes", tests, NULL, NULL);
}
