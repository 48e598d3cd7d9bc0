/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a whole run of the hook fails once: it must say so, in one line and with status 1, and leave nothing behind. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "cli/hook/hook.h"

static char directory[] = "/tmp/graft-hook-XXXXXX";

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_not_equal(fputs(text, file), EOF);
	assert_int_equal(fclose(file), 0);
}

static void remove_file(const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	assert_int_equal(unlink(path), 0);
}

/* Runs `prestart` with the state and what it says in files; returns the status, and the number of lines. */
static int run(int *ret_n_lines)
{
	static const char *const words[] = { "hook", "-config", NULL, "prestart" };
	struct hook_environment environment = { .given = environ };
	int saved_in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), saved_err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	char path[128], said[4096], *argv[5] = { NULL };
	int state, errors, status;
	ssize_t n;

	for (size_t i = 0; i < GRAFT_COUNT(words); i++)
		argv[i] = (char *)(uintptr_t)words[i];
	(void)snprintf(path, sizeof(path), "%s/state", directory);
	state = open(path, O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "%s/errors", directory);
	errors = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	(void)snprintf(path, sizeof(path), "%s/config.toml", directory);
	argv[2] = path;
	assert_true(dup2(state, STDIN_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0);
	status = hook_main(&environment, 4, argv);
	environ = environment.given;
	assert_true(dup2(saved_in, STDIN_FILENO) >= 0 && dup2(saved_err, STDERR_FILENO) >= 0);
	n = pread(errors, said, sizeof(said), 0);
	*ret_n_lines = 0;
	for (ssize_t i = 0; i < n; i++)
		*ret_n_lines += said[i] == '\n';
	(void)close(saved_in);
	(void)close(saved_err);
	(void)close(state);
	(void)close(errors);
	return status;
}

/* `status` and lines of the run in which nothing fails. */
static void fail_each_allocation(int status, int n_lines)
{
	int got_lines, n = 1, n_unseen = 0;

	assert_int_equal(run(&got_lines), status);
	assert_int_equal(got_lines, n_lines);
	for (;; n++) {
		int got;

		allocation_fail(n);
		got = run(&got_lines);
		if (!allocation_failed()) {
			assert_int_equal(got, status);
			break;
		}
		/* what the host adds to the defaults may be missing; nothing else may */
		if ((got != 1 || got_lines != 1) && (got != status || ++n_unseen > 3))
			fail_msg("allocation %d failed: status %d, %d lines", n, got, got_lines);
	}
	assert_true(n > 5);
}

static void test_runs(void **state)
{
	char text[256];

	assert_non_null(mkdtemp(directory));
	(void)snprintf(text, sizeof(text), "{\"pid\":1,\"bundle\":\"%s\"}", directory);
	write_file("state", text);
	/* a container that wants nothing */
	write_file("config.toml", "swarm-resource = \"A,B\"\n");
	write_file("config.json",
		   "{\"ociVersion\":\"1.0.2\",\"process\":{\"env\":[\"A=\",\"B=void\",\"NVIDIA_REQUIRE_X=1\"]},"
		   "\"root\":{\"path\":\"r\"}}");
	fail_each_allocation(0, 0);
	/* one that gets as far as to another program, which is not there */
	write_file("config.toml", "[nvidia-container-cli]\npath = \"/nowhere/cli\"\nenvironment = [\"A=1\"]\n"
				  "[nvidia-container-runtime]\nmode = \"legacy\"\n");
	write_file("config.json", "{\"ociVersion\":\"1.0.2\",\"process\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=0,1\","
				  "\"CUDA_VERSION=12.4\"]},\"root\":{\"path\":\"r\"}}");
	fail_each_allocation(1, 1);
	remove_file("state");
	remove_file("errors");
	remove_file("config.toml");
	remove_file("config.json");
	assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_runs) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
