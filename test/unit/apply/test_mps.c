/* SPDX-License-Identifier: Apache-2.0 */
/* mps: which process is the daemon. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "apply/mps.h"
#include "arena.h"
#include "folder.h"

#define DAEMON "nvidia-cuda-mps-control"
#define NOBODY 65534

/* A directory with a program of the daemon's name, which prints a line and waits for ever. */
struct program {
	char folder[32], path[64];
};

static struct program make_program(void)
{
	struct program p = { .folder = "/tmp/graft-mps-XXXXXX" };
	auto_close int from = open("/bin/sh", O_RDONLY | O_CLOEXEC), to = -1;
	char bytes[65536];
	ssize_t n;

	assert_non_null(mkdtemp(p.folder));
	assert_int_equal(chmod(p.folder, 0755), 0);
	(void)snprintf(p.path, sizeof(p.path), "%s/" DAEMON, p.folder);
	to = open(p.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(to, bytes, (size_t)n), n);
	assert_int_equal(n, 0);
	return p;
}

/* Starts it, and returns when it runs. */
static pid_t start(const struct program *p, uid_t user, const char *option, const char *pipe_name)
{
	const char *const arguments[] = { p->path, "-c", "echo; read x", option, NULL };
	const char *const environment[] = { pipe_name, "CUDA_VISIBLE_DEVICES=GPU-1", NULL };
	int in[2], out[2];
	pid_t pid;
	char line;

	assert_int_equal(pipe2(in, O_CLOEXEC) + pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(in[0], 0);
		(void)dup2(out[1], 1);
		if (user != getuid() && setuid(user) < 0)
			_exit(1);
		(void)execve(p->path, (char *const *)(uintptr_t)arguments, (char *const *)(uintptr_t)environment);
		_exit(2);
	}
	(void)close(out[1]);
	assert_int_equal(read(out[0], &line, 1), 1);
	(void)close(in[0]);
	(void)close(out[0]);
	/* in[1] stays open: the program waits for a line of it. */
	return pid;
}

static void end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_whose(void **state)
{
	const char *const right = "CUDA_MPS_PIPE_DIRECTORY=/run/m", *const wrong = "CUDA_MPS_PIPE_DIRECTORY=/run/n";
	struct program p = make_program();
	struct graft_mps mps = { .devices = "GPU-1", .pipe = "/run/m", .arena = arena };
	const struct {
		uid_t user;
		const char *option, *pipe;
		bool is;
	} rows[] = {
		{ getuid(), "-d", right, true },
		{ getuid(), "-f", right, false },
		{ getuid(), "-d", wrong, false },
		/* Root can read all of it, and anybody can make it. */
		{ NOBODY, "-d", right, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		pid_t pid;

		if (rows[i].user != getuid() && getuid() != 0)
			continue;
		pid = start(&p, rows[i].user, rows[i].option, rows[i].pipe);
		assert_int_equal(graft_mps_has_pid(&mps, pid), rows[i].is);
		assert_int_equal(graft_mps_pid(&mps), rows[i].is ? pid : 0);
		end(pid);
		assert_false(graft_mps_has_pid(&mps, pid));
	}
	assert_int_equal(test_remove_folder(p.folder), 0);
}

/* A daemon that is asked until it answers, and whose keeper runs for months: answers take little memory. */
static void test_answers_are_short(void **state)
{
	char folder[] = "/tmp/graft-mps-XXXXXX", path[64];
	struct graft_arena *small = graft_arena_new((size_t)32 << 10);
	struct graft_mps mps = { .pipe = "/run/m", .log = "/run/m", .arena = small };
	struct graft_error err = { .status = GRAFT_OK };
	const char *answer = "";

	mps.path = mkdtemp(folder);
	assert_non_null(mps.path);
	(void)snprintf(path, sizeof(path), "%s/" DAEMON, folder);
	test_put(AT_FDCWD, path, "#!/bin/sh\nread command && echo answer to $command\n");
	assert_int_equal(chmod(path, 0755), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(graft_mps_ask(&mps, "get_server_list", &answer, &err), 0);
	assert_string_equal(answer, "answer to get_server_list");
	(void)graft_arena_free(small);
	assert_int_equal(test_remove_folder(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whose, arena_setup, arena_teardown),
		cmocka_unit_test(test_answers_are_short),
	};

	return cmocka_run_group_tests_name("mps", tests, NULL, NULL);
}
