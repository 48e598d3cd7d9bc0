/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit.h"
#include "base/cleanup.h"
#include "formats/xid.h"

static const struct {
	const char *line;
	enum graft_xid_kind kind;
	uint32_t domain, bus, device, number;
	bool has_instance;
	uint32_t gi, ci;
} lines[] = {
	{ "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.", GRAFT_XID_FAULT, 0,
	  0x3b, 0, 79, false, 0, 0 },
	{ "4,1234,5678,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
	  GRAFT_XID_FAULT, 0, 0x3b, 0, 79, false, 0, 0 },
	{ "NVRM: Xid (PCI:0001:41:1f GPU-I:02 GPU-CI:0a): 43, pid=7, name=a, Ch 00000008", GRAFT_XID_FAULT, 1, 0x41,
	  0x1f, 43, true, 2, 10 },
	{ "NVRM: Xid (0000:03:00): 14, Channel 00000001", GRAFT_XID_FAULT, 0, 3, 0, 14, false, 0, 0 },
	{ "3,9,9,-,caller=T1;NVRM: Xid (PCI:0000:03:00): 48, An uncorrectable double bit error", GRAFT_XID_FAULT, 0, 3,
	  0, 48, false, 0, 0 },
	{ "NVRM: Xid (PCI:0000:41:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
	  GRAFT_XID_FAULT, 0, 0x41, 0, 154, false, 0, 0 },
	{ "NVRM: Xid (PCI:0000:41:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
	  GRAFT_XID_RECOVERED, 0, 0x41, 0, 154, false, 0, 0 },
	{ "NVRM: Xid (PCI:0000:41:00): 154, pid=9, name= to 0x0 (None), GPU recovery action changed from 0x0 (None) to "
	  "0x1 (GPU Reset Required)",
	  GRAFT_XID_FAULT, 0, 0x41, 0, 154, false, 0, 0 },
	{ "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023", GRAFT_XID_LOADED,
	  0, 0, 0, 0, false, 0, 0 },
	{ "6,77,5678,-;pci 0000:3b:00.0: [10de:2330] type 00 class 0x030200 PCIe Endpoint", GRAFT_XID_FOUND, 0, 0x3b, 0,
	  0, false, 0, 0 },
	{ "NVRM: GPU 0000:3b:00.0: GPU reset", GRAFT_XID_RECOVERED, 0, 0x3b, 0, 0, false, 0, 0 },
	{ "6,78,5678,-;NVRM: GPU 0001:41:00.0: GPU reset", GRAFT_XID_RECOVERED, 1, 0x41, 0, 0, false, 0, 0 },
	/* What is none of them. */
	{ "12,78,5678,-;NVRM: GPU 0000:3b:00.0: GPU reset", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
	{ "NVRM: GPU 0000:3b:00.0: GPU reset required", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
	{ "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x26:0x56:1463)", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0,
	  0 },
	{ "NVRM: GPU reset", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
	{ "pci 0000:3b:00.1: [10de:22bc] type 00 class 0x040300", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
	{ "pci 0000:3b:00.0: [8086:2330] type 00 class 0x030200", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
	{ "12,77,5678,-;pci 0000:3b:00.0: [10de:2330] type 00 class 0x030200", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0,
	  0 },
	{ "12,1234,5678,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=a, written by a process", GRAFT_XID_NOTHING, 0, 0,
	  0, 0, false, 0, 0 },
	{ "audit: NVRM: Xid (PCI:0000:3b:00): 79, pid=1", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
	{ " DEVICE=+pci:0000:3b:00.0", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
	{ "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
	{ "NVRM: Xid (PCI:0000:3b", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
	{ "NVRM: Xid (PCI:0000:3b:00)", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
	{ "NVRM: Xid (PCI:0000:3b:00): 79", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
	{ "NVRM: Xid (PCI:0000:3b:00): , pid", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
	{ "NVRM: Xid (PCI:): 79, pid (0000:3b:00)", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
	{ "4,1;", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
	{ "", GRAFT_XID_NOTHING, 0, 0, 0, 0, false, 0, 0 },
};

static void test_lines(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(lines); i++) {
		struct graft_xid_line line = graft_xid_parse(lines[i].line);

		print_message("# %s\n", lines[i].line);
		assert_int_equal(line.kind, lines[i].kind);
		assert_int_equal(line.domain, lines[i].domain);
		assert_int_equal(line.bus, lines[i].bus);
		assert_int_equal(line.device, lines[i].device);
		assert_int_equal(line.number, lines[i].number);
		assert_int_equal(line.has_instance, lines[i].has_instance);
		assert_int_equal(line.gi, lines[i].gi);
		assert_int_equal(line.ci, lines[i].ci);
	}
}

static void test_sequence(void **state)
{
	assert_int_equal(graft_xid_parse("4,1234,5678,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1").sequence, 1234);
	assert_int_equal(graft_xid_parse("4,1235,5678,-;something else").sequence, 1235);
	assert_int_equal(graft_xid_parse("12,1236,5678,-;of a process").sequence, 0);
	assert_int_equal(graft_xid_parse("NVRM: Xid (PCI:0000:3b:00): 79, pid=1").sequence, 0);
}

static const struct {
	const char *disable, *enable;
	bool any, of_13, of_48, of_79, of_5000;
} rules[] = {
	{ "", "", true, false, true, true, true },
	{ "48", "", true, false, false, true, true },
	{ " 48, 79 ,word,99999999999", "", true, false, false, false, true },
	{ "", "13", true, true, true, true, true },
	{ "79", "79", true, false, true, true, true },
	{ "48", "all", true, true, true, true, true },
	{ "all", "", false, false, false, false, false },
	{ "48,xids", "", false, false, false, false, false },
	/* SPEC kubernetes 15.4 */
	{ "all", "79", true, false, false, true, false },
	{ "ALL", "ALL", true, true, true, true, true },
};

static void test_rules(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rules); i++) {
		struct graft_xid_rules made = graft_xid_rules_make(rules[i].disable, rules[i].enable);

		print_message("# disable '%s', enable '%s'\n", rules[i].disable, rules[i].enable);
		assert_int_equal(graft_xid_any_matters(&made), rules[i].any);
		assert_int_equal(graft_xid_matters(&made, 13), rules[i].of_13);
		assert_int_equal(graft_xid_matters(&made, 48), rules[i].of_48);
		assert_int_equal(graft_xid_matters(&made, 79), rules[i].of_79);
		assert_int_equal(graft_xid_matters(&made, 5000), rules[i].of_5000);
	}
}

static void test_is_of(void **state)
{
	struct graft_xid_line line = graft_xid_parse("NVRM: Xid (PCI:0001:3b:02): 79, pid=1");

	assert_true(graft_xid_is_of(&line, "00000001:3b:02.0"));
	assert_true(graft_xid_is_of(&line, "00000001:3B:02.0"));
	assert_false(graft_xid_is_of(&line, "00000000:3b:02.0"));
	assert_false(graft_xid_is_of(&line, "00000001:3b:00.0"));
	assert_false(graft_xid_is_of(&line, "00000001:3c:02.0"));
	assert_false(graft_xid_is_of(&line, "tegra"));
	assert_false(graft_xid_is_of(&line, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_sequence),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_is_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
