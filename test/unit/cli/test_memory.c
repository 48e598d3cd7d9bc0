/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a whole command fails once: it must say so, with a status that is not 0, and go on to its end. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "cli/cli.h"

#define MAX_WORDS 12

static char inventory_option[512];

/* Runs the program with its output thrown away. */
static int run(const char *const *words)
{
	char *argv[MAX_WORDS + 1];
	struct cli cli;
	int argc = 0, status;
	int saved_out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), saved_err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (; words[argc]; argc++)
		argv[argc] = (char *)(uintptr_t)words[argc];
	argv[argc] = NULL;
	assert_true(dup2(null, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0);
	cli_init(&cli);
	status = cli_main(&cli, argc, argv);
	cli_done(&cli);
	assert_true(dup2(saved_out, STDOUT_FILENO) >= 0 && dup2(saved_err, STDERR_FILENO) >= 0);
	(void)close(saved_out);
	(void)close(saved_err);
	(void)close(null);
	return status;
}

static void fail_each_allocation(const char *const *words)
{
	int n = 1;

	assert_int_equal(run(words), 0);
	for (;; n++) {
		int status;

		allocation_fail(n);
		status = run(words);
		if (!allocation_failed()) {
			assert_int_equal(status, 0);
			break;
		}
		if (status == 0)
			fail_msg("allocation %d of '%s' failed unnoticed", n, words[1]);
	}
	assert_true(n > 1);
}

static void test_plan(void **state)
{
	const char *const tree[] = { CLI_PROGRAM, "plan", inventory_option, "-d", "0,3", "-d1", "-cuv", NULL };
	const char *const json[] = { CLI_PROGRAM,  "plan",   inventory_option, "--json", "--require=cuda>=11.0",
				     "--device=1", "-cugDn", "--compat32",     NULL };

	fail_each_allocation(tree);
	fail_each_allocation(json);
}

static void test_requests(void **state)
{
	const char *const words[] = { CLI_PROGRAM, "plan", "--show=request",       "-d",
				      "0,all",     "-cuv", "--imex-channel=1,2,3", "--require=cuda>=1",
				      NULL };

	fail_each_allocation(words);
}

static void test_texts(void **state)
{
	const char *const help[] = { CLI_PROGRAM, "configure", "--help", NULL };
	const char *const usage[] = { CLI_PROGRAM, "list", "--usage", NULL };
	const char *const version[] = { CLI_PROGRAM, "-V", NULL };

	fail_each_allocation(help);
	fail_each_allocation(usage);
	fail_each_allocation(version);
}

static void test_users(void **state)
{
	const char *const words[] = { CLI_PROGRAM, "--user=0:0", "plan", "--show=request", NULL };

	fail_each_allocation(words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_users),
	};

	(void)snprintf(inventory_option, sizeof(inventory_option),
		       "--inventory=%s/test/golden/hosts/dgx-h100/inventory.json", getenv("GRAFT_SOURCE_ROOT"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
