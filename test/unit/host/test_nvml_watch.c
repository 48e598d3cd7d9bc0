/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "host/nvml_watch.h"

static void test_reports(void **state)
{
	static const struct {
		const char *line;
		bool good;
		struct graft_nvml_report report;
	} rows[] = {
		{ "xid 00000000:1b:00.0 79", true, { GRAFT_NVML_REPORT_XID, "00000000:1b:00.0", 79, false, 0, 0 } },
		{ "xid 00000000:1b:00.0 43 2 0", true, { GRAFT_NVML_REPORT_XID, "00000000:1b:00.0", 43, true, 2, 0 } },
		{ "lost 00000000:1b:00.0", true, { GRAFT_NVML_REPORT_LOST, "00000000:1b:00.0", 0, false, 0, 0 } },
		{ "answers 00000000:1b:00.0", true, { GRAFT_NVML_REPORT_ANSWERS, "00000000:1b:00.0", 0, false, 0, 0 } },
		{ "failure nvml error: unknown",
		  true,
		  { GRAFT_NVML_REPORT_FAILURE, "nvml error: unknown", 0, false, 0, 0 } },
		{ .line = "" },
		{ .line = "xid" },
		{ .line = "xid " },
		{ .line = "xid 00000000:1b:00.0" },
		{ .line = "xid 00000000:1b:00.0 -1" },
		{ .line = "xid 00000000:1b:00.0 99999999999" },
		{ .line = "xid 00000000:1b:00.0 79 2" },
		{ .line = "xid 00000000:1b:00.0 79 2 0 1" },
		{ .line = "xid 00000000:1b:00.0 79x" },
		{ .line = "lost " },
		{ .line = "lost \033[2J" },
		{ .line = "found 00000000:1b:00.0" },
	};
	char line[600] = "failure ";
	struct graft_nvml_report report;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		bool good = graft_nvml_report_parse(rows[i].line, &report);

		if (good != rows[i].good)
			fail_msg("%s: %d", rows[i].line, good);
		if (!good)
			continue;
		assert_int_equal(report.kind, rows[i].report.kind);
		assert_string_equal(report.text, rows[i].report.text);
		assert_int_equal(report.xid, rows[i].report.xid);
		assert_int_equal(report.has_instance, rows[i].report.has_instance);
		assert_int_equal(report.gi, rows[i].report.gi);
		assert_int_equal(report.ci, rows[i].report.ci);
	}
	memset(line + 8, 'x', sizeof(line) - 9);
	assert_false(graft_nvml_report_parse(line, &report));
	memcpy(line, "xid xxxx", 8);
	assert_false(graft_nvml_report_parse(line, &report));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
