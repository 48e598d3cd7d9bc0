/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of the log: time, level, message, in quotes; and what becomes of an error. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "cli/log_line.h"

static void test_lines(void **state)
{
	static const struct {
		long long seconds;
		enum graft_log_level level;
		const char *message, *line;
	} rows[] = {
		{ 0, GRAFT_LOG_INFO, "a b", "time=\"1970-01-01T00:00:00Z\" level=info msg=\"a b\"\n" },
		{ 1767366245, GRAFT_LOG_ERROR, "a \"b\" \\c",
		  "time=\"2026-01-02T15:04:05Z\" level=error msg=\"a \\\"b\\\" \\\\c\"\n" },
		{ 1, GRAFT_LOG_WARN, "", "time=\"1970-01-01T00:00:01Z\" level=warning msg=\"\"\n" },
		{ 1, GRAFT_LOG_DEBUG, "\xc3\xa4", "time=\"1970-01-01T00:00:01Z\" level=debug msg=\"\xc3\xa4\"\n" },
		/* a time that no calendar has */
		{ LLONG_MAX, GRAFT_LOG_INFO, "x", "time=\"\" level=info msg=\"x\"\n" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_buffer out = { .max = 0 };

		cli_log_line(rows[i].seconds, rows[i].level, rows[i].message, &out);
		assert_string_equal(graft_buffer_text(&out), rows[i].line);
		graft_buffer_done(&out);
	}
}

static void test_write(void **state)
{
	char text[256] = "";
	int ends[2];
	auto_close int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	cli_log_line_write(ends[1], GRAFT_LOG_WARN, "hello");
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "Z\" level=warning msg=\"hello\"\n"));
	(void)close(ends[0]);
	(void)close(ends[1]);
	/* Without a listener there is no notification. */
	cli_log_line_write(full, GRAFT_LOG_WARN, "hello");
}

static void keep(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	assert_int_equal(level, GRAFT_LOG_ERROR);
	(void)snprintf(arg, 1024, "%s", message);
}

static void test_failure(void **state)
{
	char text[1024] = "";
	const struct graft_log log = { .write = keep, .arg = text, .max = GRAFT_LOG_ERROR };
	struct graft_error err = { .status = GRAFT_OK };

	(void)graft_fail(&err, GRAFT_NOT_FOUND, ENOENT, "open failed: /a");
	cli_log_failure(&log, "", &err);
	assert_string_equal(text, "open failed: /a: no such file or directory. Check that the named object exists.");
	(void)graft_wrap(&err, "loading");
	cli_log_failure(&log, "failed to work", &err);
	assert_string_equal(text,
			    "failed to work: loading: open failed: /a: no such file or directory. Check that the named "
			    "object exists.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
