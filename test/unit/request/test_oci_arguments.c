/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime reads of its command line, row by row (SPEC runtime-and-hook 3.2, 3.3, 3.5, 14.1). */
#include <string.h>

#include "../unit.h"
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
	/* SPEC runtime-and-hook 14.1 */
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

/* What a container can be deleted by again, and whether the line says the same to every low-level runtime. */
#define ENGINE "create", "--bundle", "/b", "--pid-file", "/p"

static const struct {
	const char *const *line;
	int n_global;
	const char *pid_file, *container;
	bool plain;
} plain_rows[] = {
	/* containerd's shim, conmon */
	{ LINE("--root", "/r", "--log", "/l", "--log-format", "json", "--systemd-cgroup", ENGINE, "--console-socket",
	       "/s", "--no-pivot", "--no-new-keyring", "id"),
	  8, "/p", "id", true },
	{ LINE("--root=/r", "--log-format=json", "--log=/l", ENGINE, "--preserve-fds", "3", "id"), 4, "/p", "id",
	  true },
	{ LINE("--cgroup-manager", "systemd", "--rootless=true", "--debug", "--log-level", "debug", "--criu", "criu",
	       ENGINE, "--pidfd-socket", "/s", "--no-subreaper", "id"),
	  9, "/p", "id", true },
	{ LINE("create", "-b", "/b", "--pid-file=/p", "id"), 1, "/p", "id", true },
	{ LINE("--debug=false", "create", "--bundle=/b", "--no-pivot=false", "--pid-file", "/p", "id"), 2, "/p", "id",
	  true },
	{ LINE("create", "id"), 1, NULL, "id", true },
	/* options may stand behind the container, whose name may be anything */
	{ LINE("create", "id", "--bundle", "/b", "--pid-file", "/p"), 1, "/p", "id", true },
	{ LINE("create", "--pid-file", "/p", "create"), 1, "/p", "create", true },
	{ LINE("--root", "create", "create", "--pid-file", "create", "3"), 3, "create", "3", true },
	/* a value is no container */
	{ LINE(ENGINE, "--preserve-fds", "3"), 1, "/p", NULL, true },
	{ LINE(ENGINE, "--console-socket", "id"), 1, "/p", NULL, true },
	{ LINE("create", "--pid-file", "id"), 1, "id", NULL, true },
	{ LINE("create", "--no-pivot", "id"), 1, NULL, "id", true },
	{ LINE("create", "--preserve-fds=3", "id", "--pid-file", "/p"), 1, "/p", "id", true },
	/* the last one counts; none is one, too */
	{ LINE("create", "--pid-file", "/a", "id", "--pid-file=/b"), 1, "/b", "id", true },
	{ LINE("create", "--pid-file=", "id"), 1, NULL, "id", true },
	{ LINE("create", "--pid-file", "/a", "--pid-file", "", "id"), 1, NULL, "id", true },
	{ LINE("create", "--pid-file=/p=q", "id"), 1, "/p=q", "id", true },
	{ LINE("create", "--pid-file=-", "id"), 1, "-", "id", true },
	/* no container, or several */
	{ LINE(ENGINE), 1, "/p", NULL, true },
	{ LINE(ENGINE, "a", "b"), 1, "/p", NULL, true },
	{ LINE(ENGINE, "a", "b", "c"), 1, "/p", NULL, true },
	{ LINE(ENGINE, "id", "id"), 1, "/p", NULL, true },
	/* an option that is not known, before or behind the subcommand */
	{ LINE("--strict", ENGINE, "id"), 2, "/p", "id", false },
	{ LINE("--platform", "kvm", ENGINE, "id"), 3, "/p", "id", false },
	{ LINE("--platform=kvm", ENGINE, "id"), 2, "/p", "id", false },
	{ LINE("--bundle", "/b", "create", "--pid-file", "/p", "id"), 3, "/p", "id", false },
	{ LINE("--pid-file", "/p", "create", "id"), 3, NULL, "id", false },
	{ LINE(ENGINE, "--strict", "id"), 1, "/p", "id", false },
	{ LINE(ENGINE, "--strict=1", "id"), 1, "/p", "id", false },
	{ LINE(ENGINE, "--log", "/l", "id"), 1, "/p", NULL, false },
	{ LINE(ENGINE, "--debug", "id"), 1, "/p", "id", false },
	/* one without its value */
	{ LINE("create", "id", "--pid-file"), 1, NULL, "id", false },
	{ LINE("create", "--pid-file", "/p", "id", "--preserve-fds"), 1, "/p", "id", false },
	/* what makes the low-level runtime do something else: say what it is, or read another file than config.json */
	{ LINE("--version", ENGINE, "id"), 2, "/p", "id", false },
	{ LINE("-v", ENGINE, "id"), 2, "/p", "id", false },
	{ LINE("-V", ENGINE, "id"), 2, "/p", "id", false },
	{ LINE("--help", ENGINE, "id"), 2, "/p", "id", false },
	{ LINE("-h", ENGINE, "id"), 2, "/p", "id", false },
	{ LINE(ENGINE, "--help", "id"), 1, "/p", "id", false },
	{ LINE(ENGINE, "-h", "id"), 1, "/p", "id", false },
	{ LINE(ENGINE, "--config", "other.json", "id"), 1, "/p", "id", false },
	{ LINE(ENGINE, "-f", "other.json", "id"), 1, "/p", "id", false },
	/* runc takes one dash or two, crun takes beginnings and letters in a row */
	{ LINE("-debug", ENGINE, "id"), 2, "/p", "id", false },
	{ LINE("---root", "/r", ENGINE, "id"), 3, "/p", "id", false },
	{ LINE("--roo", "/r", ENGINE, "id"), 3, "/p", "id", false },
	{ LINE("create", "-pid-file", "/p", "id"), 1, "/p", "id", false },
	{ LINE("create", "--pid", "/p", "id"), 1, NULL, NULL, false },
	{ LINE("create", "-bundle", "/b", "--pid-file", "/p", "id"), 1, "/p", "id", false },
	{ LINE("create", "-b=/b", "--pid-file", "/p", "id"), 1, "/p", "id", false },
	{ LINE("create", "-b/b", "--pid-file", "/p", "id"), 1, "/p", "id", false },
	{ LINE("create", "--b", "/b", "--pid-file", "/p", "id"), 1, "/p", "id", false },
	{ LINE("create", "--bun", "/b", "--pid-file", "/p", "id"), 1, "/p", "id", false },
	/* a value that looks like an option: runc 1.1 creates a container "-" of the first line, and writes a file "id" */
	{ LINE("create", "id", "--pid-file", "-"), 1, "-", "id", false },
	{ LINE("create", "id", "--pid-file", "--"), 1, "--", "id", false },
	{ LINE("create", "id", "--pid-file", "--no-pivot"), 1, "--no-pivot", "id", false },
	{ LINE("--root", "-r", ENGINE, "id"), 3, "/p", "id", false },
	{ LINE(ENGINE, "-"), 1, "/p", "-", false },
	{ LINE(ENGINE, "---"), 1, "/p", "---", false },
	/* the end of the options */
	{ LINE("--", ENGINE, "id"), 2, "/p", "id", false },
	{ LINE(ENGINE, "--", "id"), 1, "/p", NULL, false },
	{ LINE(ENGINE, "id", "--"), 1, "/p", "id", false },
};

static void test_plain(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(plain_rows); i++) {
		struct graft_oci_arguments arguments;
		struct graft_error err = { 0 };

		if (read_line(plain_rows[i].line, &arguments, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		assert_true(arguments.create);
		assert_same(arguments.pid_file, plain_rows[i].pid_file, i);
		assert_same(arguments.container, plain_rows[i].container, i);
		if (arguments.n_global != plain_rows[i].n_global || arguments.plain != plain_rows[i].plain)
			fail_msg("row %zu: %d words before, %s", i, arguments.n_global,
				 arguments.plain ? "plain" : "not plain");
	}
}

/* Of other subcommands nothing is known. */
static void test_other_subcommands(void **state)
{
	const char *const *const lines[] = {
		LINE("run", "--pid-file", "/p", "id"),
		LINE("state", "id"),
		LINE("--pid-file", "/p"),
	};

	for (size_t i = 0; i < GRAFT_COUNT(lines); i++) {
		struct graft_oci_arguments arguments;

		assert_int_equal(read_line(lines[i], &arguments, NULL), 0);
		assert_false(arguments.create);
		assert_same(arguments.pid_file, NULL, i);
		assert_same(arguments.container, NULL, i);
	}
}

/* A program can be started without any word. */
static void test_no_words(void **state)
{
	char *argv[] = { NULL };
	struct graft_oci_arguments arguments;

	assert_int_equal(graft_oci_arguments_read(0, argv, &arguments, NULL), 0);
	assert_null(arguments.subcommand);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_and_bundle), cmocka_unit_test(test_bundle_without_value),
		cmocka_unit_test(test_log_and_version),   cmocka_unit_test(test_plain),
		cmocka_unit_test(test_other_subcommands), cmocka_unit_test(test_no_words),
	};

	return cmocka_run_group_tests_name("oci_arguments", tests, NULL, NULL);
}
