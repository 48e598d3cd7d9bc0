/* SPDX-License-Identifier: Apache-2.0 */
/* Text from an image cannot begin a new line, in messages and in logs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"

static const struct {
	const char *said, *message, *logged;
} rows[] = {
	{ "0", "device '0'", "device '0'" },
	{ "a\tb\033[31mc\177", "device 'a?b?[31mc?'", "device 'a?b?[31mc?'" },
	{ "gpu \303\251", "device 'gpu \303\251'", "device 'gpu \303\251'" },
	/* messages end at the first line, as callers of the existing stack expect */
	{ "x\nE1122 forged", "device 'x", "device 'x?E1122 forged'" },
};

static void keep(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	(void)snprintf(arg, 256, "%s", message);
}

static void test_control_characters(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		char text[256], logged[256] = "";
		const struct graft_log log = { .write = keep, .arg = logged, .max = GRAFT_LOG_INFO };

		(void)graft_fail(&err, GRAFT_INVALID, 0, "device '%s'", rows[i].said);
		assert_string_equal(graft_error_text(&err, text, sizeof(text)), rows[i].message);
		graft_info(&log, "device '%s'", rows[i].said);
		assert_string_equal(logged, rows[i].logged);
	}
}

static bool wants_warnings_of_this_file(const void *arg, enum graft_log_level level, const char *file)
{
	return level == GRAFT_LOG_WARN && strstr(file, "test_messages");
}

/* A log with wants() is asked before a message is formatted, and only about levels up to its maximum. */
static void test_wanted_messages(void **state)
{
	char logged[256] = "";
	const struct graft_log log = {
		.write = keep, .wants = wants_warnings_of_this_file, .arg = logged, .max = GRAFT_LOG_INFO
	};

	graft_info(&log, "not wanted");
	graft_debug(&log, "above the maximum");
	graft_log_write(&log, GRAFT_LOG_WARN, "other.c", 1, "of another file");
	assert_string_equal(logged, "");
	graft_warn(&log, "wanted %d", 1);
	assert_string_equal(logged, "wanted 1");
}

/* The hint for a full disk differs from that for other failures of I/O. */
static void test_hints(void **state)
{
	static const char full[] = "Free some space: 'df -h' and 'df -i' show which file system is full.";
	const struct graft_error own = { .status = GRAFT_IO, .sys = ENOSPC, .hint = "x" };
	struct graft_error err = { .status = GRAFT_OK };

	(void)graft_fail_errno(&err, ENOSPC, "write failed");
	assert_int_equal(err.status, GRAFT_IO);
	assert_string_equal(graft_error_hint(&err), full);
	(void)graft_fail_errno(&err, EDQUOT, "write failed");
	assert_string_equal(graft_error_hint(&err), full);
	(void)graft_fail_errno(&err, EIO, "write failed");
	assert_string_equal(graft_error_hint(&err), graft_status_hint(GRAFT_IO));
	assert_string_equal(graft_error_hint(&own), "x");
}

/* What is spent is not a clock's time. */
static void test_spent_budget(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };

	(void)graft_fail_errno(&err, ETIME, "file creation failed: /dev/a");
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_string_equal(GRAFT_ERROR_TEXT(&err),
			    "file creation failed: /dev/a: reading the container's image takes too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_control_characters), cmocka_unit_test(test_hints),
					    cmocka_unit_test(test_wanted_messages),
					    cmocka_unit_test(test_spent_budget) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
