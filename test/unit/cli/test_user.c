/* SPDX-License-Identifier: Apache-2.0 */
/* Values of --user and --pid, row by row. The user database has at least root and nobody. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "cli/cli.h"

#define NONE ((uid_t)-1)
enum { NOBODY = -2, NOBODY_GROUP = -3 };

static const struct {
	const char *text;
	const char *error; /* NULL = accepted */
	long uid, gid;
} rows[] = {
	{ "0:0", NULL, 0, 0 },
	{ "0", NULL, 0, 0 }, /* primary group of the user */
	{ "root", NULL, 0, 0 },
	{ "root:7", NULL, 0, 7 },
	{ "12:root", NULL, 12, 0 },
	{ "nobody", NULL, NOBODY, NOBODY_GROUP },
	{ "nobody:0", NULL, NOBODY, 0 },
	{ "4200000000:4200000001", NULL, 4200000000, 4200000001 },
	{ "0:", NULL, 0, (long)NONE }, /* no group */
	{ "4200000000:", NULL, 4200000000, (long)NONE },
	{ "4200000000", "no such file or directory", 0, 0 }, /* has no primary group */
	{ "no-such-user", "no such file or directory", 0, 0 },
	{ "0:no-such-group", "no such file or directory", 0, 0 },
	{ "", "no such file or directory", 0, 0 },
	{ ":0", "no such file or directory", 0, 0 },
	{ "=0", "no such file or directory", 0, 0 },
	{ "-1", "no such file or directory", 0, 0 },
	{ "0x1", "invalid argument", 0, 0 },
	{ "1a:0", "invalid argument", 0, 0 },
	{ "1 ", "invalid argument", 0, 0 },
	{ "0:1a", "invalid argument", 0, 0 },
	{ "4294967295:0", "numerical result out of range", 0, 0 }, /* (uid_t)-1 */
	{ "4294967296:0", "numerical result out of range", 0, 0 },
	{ "0:4294967295", "numerical result out of range", 0, 0 },
	{ "99999999999999999999999:0", "numerical result out of range", 0, 0 },
};

static void test_users(void **state)
{
	const struct passwd *nobody = getpwnam("nobody");

	assert_non_null(nobody);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		long uid = rows[i].uid == NOBODY ? (long)nobody->pw_uid : rows[i].uid;
		long gid = rows[i].gid == NOBODY_GROUP ? (long)nobody->pw_gid : rows[i].gid;
		struct graft_error err = { .status = GRAFT_OK };
		uid_t got_uid = 4711;
		gid_t got_gid = 4711;
		char text[256];
		int rc = cli_parse_user(rows[i].text, &got_uid, &got_gid, &err);

		if ((rc < 0) != (rows[i].error != NULL))
			fail_msg("'%s'", rows[i].text);
		if (rc < 0) {
			assert_string_printed(graft_error_text(&err, text, sizeof(text)),
					      "input error: parse user/group failed: %s", rows[i].error);
			continue;
		}
		assert_int_equal(got_uid, (uid_t)uid);
		assert_int_equal(got_gid, (gid_t)gid);
	}
}

static void test_without_a_value_the_caller(void **state)
{
	struct graft_error err;
	uid_t uid = 4711;
	gid_t gid = 4711;

	assert_int_equal(cli_parse_user(NULL, &uid, &gid, &err), 0);
	assert_int_equal(uid, geteuid());
	assert_int_equal(gid, getegid());
}

static void test_pids(void **state)
{
	static const struct {
		const char *text;
		const char *error;
		pid_t pid;
	} pids[] = {
		{ "1", NULL, 1 },
		{ "0", NULL, 0 },
		{ "2147483647", NULL, 2147483647 },
		{ "2147483648", "numerical result out of range", 0 },
		{ "99999999999999999999", "numerical result out of range", 0 },
		{ "", "invalid argument", 0 },
		{ "-1", "invalid argument", 0 },
		{ "+1", "invalid argument", 0 },
		{ " 1", "invalid argument", 0 },
		{ "1x", "invalid argument", 0 },
		{ "0x1", "invalid argument", 0 },
	};

	for (size_t i = 0; i < GRAFT_COUNT(pids); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		char text[256];
		pid_t pid = -7;
		int rc = cli_parse_pid(pids[i].text, &pid, &err);

		if ((rc < 0) != (pids[i].error != NULL))
			fail_msg("'%s'", pids[i].text);
		if (rc < 0) {
			assert_string_printed(graft_error_text(&err, text, sizeof(text)),
					      "input error: parse pid failed: %s", pids[i].error);
			assert_int_equal(pid, -7);
		} else {
			assert_int_equal(pid, pids[i].pid);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_users),
		cmocka_unit_test(test_without_a_value_the_caller),
		cmocka_unit_test(test_pids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
