/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime reads of its command line, row by row (SPEC runtime-and-hook 3.2, 3.3, 3.5, 14.1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "request/oci_arguments.h"

#define LINE(...) ((const char *const[]){ "nvidia-container-runtime", __VA_ARGS__, NULL })

static int read_line(const char *const *line, struct graft_oci_arguments *arguments, struct graft_error *err)
{
	char *argv[24];
	int argc = 0;

	for (; line[argc]; argc++) {
		assert_true(argc < 23);
		argv[argc] = (char *)(uintptr_t)line[argc];
	}
	argv[argc] = NULL;
	return graft_oci_arguments_read(argc, argv, arguments, err);
}

static void assert_same(const char *got, const char *wanted, size_t row)
{
	if (got != wanted && (!got || !wanted || strcmp(got, wanted) != 0))
		fail_msg("row %zu: '%s' instead of '%s'", row, got ? got : "(none)", wanted ? wanted : "(none)");
}

static const struct {
	const char *const *line;
	const char *subcommand, *bundle;
} create_rows[] = {
	/* SPEC 14.1 */
	{ LINE(NULL), NULL, NULL },
	{ LINE("create"), "create", NULL },
	{ LINE("--bundle", "/foo/bar"), NULL, "/foo/bar" },
	{ LINE("-bundle", "/foo/bar"), NULL, "/foo/bar" },
	{ LINE("--bundle=/foo/bar"), NULL, "/foo/bar" },
	{ LINE("-b=/foo/bar"), NULL, "/foo/bar" },
	{ LINE("-b=/foo/=bar"), NULL, "/foo/=bar" },
	{ LINE("-b", "/foo/bar"), NULL, "/foo/bar" },
	{ LINE("--not-bundle", "/foo/bar"), NULL, NULL },
	{ LINE("--"), NULL, NULL },
	{ LINE("create", "-b", "/foo/bar"), "create", "/foo/bar" },
	{ LINE("-b", "create", "create"), "create", "create" },
	{ LINE("-b=create", "create"), "create", "create" },
	{ LINE("-b", "create"), NULL, "create" },
	{ LINE("--bundle", "create"), NULL, "create" },
	{ LINE("--bundle=create"), NULL, "create" },
	/* engines */
	{ LINE("--root", "/run/r", "--log", "/l.json", "--log-format", "json", "create", "--bundle", "/b", "--pid-file",
	       "/p", "id"),
	  "create", "/b" },
	{ LINE("--systemd-cgroup", "--root=/r", "create", "--bundle", "/b", "id"), "create", "/b" },
	{ LINE("--log-format=json", "--log=x", "create", "id", "--bundle", "/b"), "create", "/b" },
	/* the last one counts; dashes as one likes */
	{ LINE("create", "--bundle", "/a", "-b", "/b", "id"), "create", "/b" },
	{ LINE("--bundle", "/a", "create", "---bundle=/b", "id"), "create", "/b" },
	{ LINE("create", "--bundle=", "id"), "create", "" },
	/* crun: beginnings of words, attached values */
	{ LINE("create", "--bun", "/b", "id"), "create", "/b" },
	{ LINE("create", "--bundl=/b", "id"), "create", "/b" },
	{ LINE("create", "-b/b", "id"), "create", "/b" },
	{ LINE("create", "--bundles", "/b", "id"), "create", NULL },
	/* values that are no subcommand */
	{ LINE("--log", "create", "state", "id"), "state", NULL },
	{ LINE("--root", "create", "create", "id"), "create", NULL },
	{ LINE("--criu", "create", "--rootless", "create", "--cgroup-manager", "create", "--log-level", "create",
	       "--log-format", "create", "kill", "id"),
	  "kill", NULL },
	{ LINE("delete", "create"), "delete", NULL },
	{ LINE("state", "--pid-file", "create"), "state", NULL },
	{ LINE("start", "create"), "start", NULL },
	{ LINE("run", "--bundle", "create", "create"), "run", NULL },
	{ LINE("exec", "id", "create", "-b", "/b"), "exec", NULL },
	{ LINE("exec", "id", "tail", "-b"), "exec", NULL },
	/* flags take no word */
	{ LINE("--debug", "create", "id"), "create", NULL },
	{ LINE("--systemd-cgroup", "create", "id"), "create", NULL },
	{ LINE("-debug", "--debug=false", "create", "id"), "create", NULL },
	/* options that are not known: a subcommand behind them is one, another word is their value */
	{ LINE("--strict", "create", "id"), "create", NULL },
	{ LINE("--platform", "kvm", "create", "id"), "create", NULL },
	{ LINE("--platform=kvm", "create", "id"), "create", NULL },
	{ LINE("--platform", "--debug", "create", "id"), "create", NULL },
	{ LINE("--log-f", "json", "create", "id"), "create", NULL },
	{ LINE("--platform", "kvm", "other", "create"), "other", NULL },
	/* the end of the options */
	{ LINE("--", "create", "--bundle", "/b"), "create", "/b" },
	{ LINE("--", "--", "create"), "--", NULL },
	{ LINE("--", "--bundle", "/b"), "--bundle", NULL },
	{ LINE("-", "create"), "-", NULL },
	{ LINE("", "create"), "", NULL },
	{ LINE("create", "--", "--bundle", "/b"), "create", NULL },
	/* values of create's own options */
	{ LINE("create", "--pid-file", "--bundle", "id"), "create", NULL },
	{ LINE("create", "--console-socket", "-b", "--preserve-fds", "-b", "-f", "-b", "id"), "create", NULL },
	{ LINE("create", "--pid-file=x", "--bundle", "/b", "id"), "create", "/b" },
	{ LINE("create", "--no-pivot", "--bundle", "/b", "--no-new-keyring", "id"), "create", "/b" },
	{ LINE("create", "--log", "/l", "id"), "create", NULL },
};

static void test_create_and_bundle(void **state)
{
	(void)state;
	for (size_t i = 0; i < GRAFT_COUNT(create_rows); i++) {
		struct graft_oci_arguments arguments;
		struct graft_error err = { 0 };

		if (read_line(create_rows[i].line, &arguments, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		assert_same(arguments.subcommand, create_rows[i].subcommand, i);
		assert_same(arguments.bundle, create_rows[i].bundle, i);
		assert_int_equal(arguments.create,
				 create_rows[i].subcommand && strcmp(create_rows[i].subcommand, "create") == 0);
	}
}

static const char *const *const missing_rows[] = {
	LINE("--bundle"),
	LINE("-b"),
	LINE("create", "--bundle"),
	LINE("create", "id", "-b"),
	LINE("--debug", "create", "--bundle", "/b", "id", "--bundle"),
};

static void test_bundle_without_value(void **state)
{
	(void)state;
	for (size_t i = 0; i < GRAFT_COUNT(missing_rows); i++) {
		struct graft_oci_arguments arguments;
		struct graft_error err = { 0 };

		assert_int_equal(read_line(missing_rows[i], &arguments, &err), -1);
		assert_int_equal(err.status, GRAFT_INVALID);
		assert_string_equal(err.msg, "bundle option requires an argument");
	}
}

static const struct {
	const char *const *line;
	const char *log, *log_format;
	bool debug, version;
} log_rows[] = {
	{ LINE("create"), NULL, NULL, false, false },
	{ LINE("--log", "/l", "create"), "/l", NULL, false, false },
	{ LINE("--log=/l", "--log-format=json", "create"), "/l", "json", false, false },
	{ LINE("-log", "/a", "---log", "/b", "create"), "/b", NULL, false, false },
	{ LINE("--log-format", "json", "--log-format", "text", "state", "x"), NULL, "text", false, false },
	{ LINE("--log", "--debug", "create"), "--debug", NULL, false, false },
	{ LINE("--log=", "create"), "", NULL, false, false },
	{ LINE("--log"), NULL, NULL, false, false },
	{ LINE("--debug", "create"), NULL, NULL, true, false },
	{ LINE("-debug", "create"), NULL, NULL, true, false },
	{ LINE("--debug=true", "create"), NULL, NULL, true, false },
	{ LINE("--debug=false", "create"), NULL, NULL, false, false },
	{ LINE("--debug", "--debug=0", "create"), NULL, NULL, false, false },
	/* those of the subcommand, or of what it runs, are not ours */
	{ LINE("create", "--log", "/l", "--debug"), NULL, NULL, false, false },
	{ LINE("exec", "id", "tool", "--version", "--log=/l", "--debug"), NULL, NULL, false, false },
	{ LINE("--log-level", "--version", "create"), NULL, NULL, false, false },
	{ LINE("--version"), NULL, NULL, false, true },
	{ LINE("-version"), NULL, NULL, false, true },
	{ LINE("--version=true"), NULL, NULL, false, true },
	{ LINE("-v"), NULL, NULL, false, true },
	{ LINE("-V"), NULL, NULL, false, true },
	{ LINE("--debug", "--version", "create"), NULL, NULL, true, true },
	{ LINE("--versions", "create"), NULL, NULL, false, false },
};

static void test_log_and_version(void **state)
{
	(void)state;
	for (size_t i = 0; i < GRAFT_COUNT(log_rows); i++) {
		struct graft_oci_arguments arguments;
		struct graft_error err = { 0 };

		assert_int_equal(read_line(log_rows[i].line, &arguments, &err), 0);
		assert_same(arguments.log, log_rows[i].log, i);
		assert_same(arguments.log_format, log_rows[i].log_format, i);
		if (arguments.debug != log_rows[i].debug || arguments.version != log_rows[i].version)
			fail_msg("row %zu", i);
	}
}

/* A program can be started without any word. */
static void test_no_words(void **state)
{
	char *argv[] = { NULL };
	struct graft_oci_arguments arguments;

	(void)state;
	assert_int_equal(graft_oci_arguments_read(0, argv, &arguments, NULL), 0);
	assert_null(arguments.subcommand);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_and_bundle),
		cmocka_unit_test(test_bundle_without_value),
		cmocka_unit_test(test_log_and_version),
		cmocka_unit_test(test_no_words),
	};

	return cmocka_run_group_tests_name("oci_arguments", tests, NULL, NULL);
}
