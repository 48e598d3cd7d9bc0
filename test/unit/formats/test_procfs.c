/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "formats/procfs.h"

static const char information[] = "Model: \t\t NVIDIA A100-SXM4-40GB\n"
				  "IRQ:   \t\t 42\n"
				  "GPU UUID: \t GPU-8f1e2c3d-0000-1111-2222-333344445555\n"
				  "Video BIOS: \t 92.00.19.00.01\n"
				  "Bus Location: \t 0000:1b:00.0\n"
				  "Device Minor: \t 0\n"
				  "no colon here\n"
				  ": no key\n"
				  "Empty:\n"
				  "GPU Excluded:\t No";

static void test_key_values(void **state)
{
	struct graft_key_value *items = NULL;
	size_t n = 0;

	assert_int_equal(graft_procfs_key_values(information, strlen(information), arena, &items, &n), 0);
	assert_int_equal(n, 8);
	assert_string_equal(graft_key_value_find(items, n, "Model"), "NVIDIA A100-SXM4-40GB");
	assert_string_equal(graft_key_value_find(items, n, "Bus Location"), "0000:1b:00.0");
	assert_string_equal(graft_key_value_find(items, n, "Empty"), "");
	assert_string_equal(graft_key_value_find(items, n, "GPU Excluded"), "No");
	assert_null(graft_key_value_find(items, n, "GPU"));
	assert_null(graft_key_value_find(items, n, "model"));
	assert_int_equal(graft_procfs_key_values("", 0, arena, &items, &n), 0);
	assert_int_equal(n, 0);
}

/* A NUL would make "A\0B" and "A" the same thing. */
static void test_line_with_nul_is_skipped(void **state)
{
	static const char text[] = "A: 1\0002\nB\0: 3\nC: 4\n";
	struct graft_key_value *items = NULL;
	struct graft_mountinfo *mounts = NULL;
	size_t n = 0;

	assert_int_equal(graft_procfs_key_values(text, sizeof(text) - 1, arena, &items, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(items[0].key, "C");
	assert_int_equal(graft_procfs_mountinfo("1 2 3:4 / /a\0b rw - tmpfs t rw\n", 31, arena, &mounts, &n), 0);
	assert_int_equal(n, 0);
}

static const struct {
	const char *name, *text, *version;
} versions[] = {
	{ "proprietary",
	  "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\n"
	  "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n",
	  "550.54.14" },
	{ "open",
	  "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.104.05  Release Build  (root@host)  Tue 8\n",
	  "535.104.05" },
	{ "aarch64", "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  570.124.06  Release Build\n",
	  "570.124.06" },
	{ "two parts", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  384.81  Wed Sep 13\n", "384.81" },
	{ "not the first line", "x\nNVRM version: a 1.2\n", "1.2" },
	{ "at the very end", "NVRM version: 1.2.3", "1.2.3" },
	{ "glued to a word", "NVRM version: v1.2 x86.64 3.4\n", "3.4" },
	{ "followed by a word", "NVRM version: 1.2beta 3.4\n", "3.4" },
	{ "ends in a dot", "NVRM version: 1. 3.4\n", "3.4" },
	{ "an integer is none", "NVRM version: 550\n", NULL },
	{ "only the compiler's", "GCC version: gcc 12.2.0\n", NULL },
	{ "prefix elsewhere", " NVRM version: 1.2\n", NULL },
	{ "empty", "", NULL },
};

static void test_driver_version(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(versions); i++) {
		const char *version = graft_procfs_driver_version(versions[i].text, strlen(versions[i].text), arena);

		if (versions[i].version && (!version || strcmp(version, versions[i].version) != 0))
			fail_msg("%s: %s", versions[i].name, version ? version : "(none)");
		if (!versions[i].version && version)
			fail_msg("%s: %s instead of none", versions[i].name, version);
	}
}

static const char devices[] = "Character devices:\n  1 mem\n195 nvidia\n195 nvidia-modeset\n195 nvidiactl\n"
			      "234 nvidia-nvswitch\n235 nvidia-caps-imex-channels\n236 nvidia-caps\n511 a b\n"
			      "99999999999 huge\n237nvidia-uvm\n"
			      "\nBlock devices:\n  7 loop\n259 blkext\n195 nvidia-block\n";

static const struct {
	const char *name;
	int64_t major; /* -1: not found */
} majors[] = {
	{ "nvidia", 195 },
	{ "nvidiactl", 195 },
	{ "nvidia-caps", 236 },
	{ "nvidia-caps-imex-channels", 235 },
	{ "mem", 1 },
	{ "a b", 511 },
	{ "b", -1 },
	{ "caps", -1 },
	{ "nvid", -1 },
	{ "loop", -1 },
	{ "nvidia-block", -1 },
	{ "huge", -1 },
	{ "", -1 },
	{ "nvidia-uvm", -1 },
};

static void test_devices_major(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(majors); i++) {
		uint32_t major = 4711;
		bool found = graft_procfs_devices_major(devices, strlen(devices), majors[i].name, &major);

		if (found != (majors[i].major >= 0) || (int64_t)major != (found ? majors[i].major : 4711))
			fail_msg("'%s': found %d, major %u", majors[i].name, found, major);
	}
}

static void test_mig_minors(void **state)
{
	static const char text[] = "config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu0/gi0/ci0/access 4\n"
				   "gpu31/gi14/ci7/access 4283\n"
				   "fabric-imex-mgmt 9\ngpu0/gi0/ci0/access\ngpu0/gi0/ci0 5\ngpu/gi0/access 5\n"
				   "gpu0/gi99999999999/access 5\nconfig 1 2\nconfigs 1\ngpu0/gi0/access -1\n"
				   "monitor 4294967296\ngpu0/gi-1/access 2\n";
	static const struct graft_mig_minor wanted[] = {
		{ GRAFT_MIG_MINOR_CONFIG, -1, -1, -1, 1 }, { GRAFT_MIG_MINOR_MONITOR, -1, -1, -1, 2 },
		{ GRAFT_MIG_MINOR_GI, 0, 0, -1, 3 },       { GRAFT_MIG_MINOR_CI, 0, 0, 0, 4 },
		{ GRAFT_MIG_MINOR_CI, 31, 14, 7, 4283 },
	};
	struct graft_mig_minor *items = NULL;
	size_t n = 0;

	assert_int_equal(graft_procfs_mig_minors(text, strlen(text), arena, &items, &n), 0);
	assert_int_equal(n, GRAFT_COUNT(wanted));
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(items[i].kind, wanted[i].kind);
		assert_int_equal(items[i].gpu, wanted[i].gpu);
		assert_int_equal(items[i].gi, wanted[i].gi);
		assert_int_equal(items[i].ci, wanted[i].ci);
		assert_int_equal(items[i].minor, wanted[i].minor);
	}
}

static void test_mountinfo(void **state)
{
	static const char text[] =
	    "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 propagate_from:2 shared:9 - ext3 /dev/root rw,errors=continue\n"
	    "25 1 0:22 / /sys/fs/cgroup/dev\\040ices\\134x rw - cgroup cgroup rw,devices\n"
	    "26 1 0:23 /..\\011 /a\\777b\\000c rw - tmpfs  rw,mode=755\n";
	struct graft_mountinfo *items = NULL;
	size_t n = 0;

	assert_int_equal(graft_procfs_mountinfo(text, strlen(text), arena, &items, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(items[0].mount_id, 36);
	assert_int_equal(items[0].parent_id, 35);
	assert_int_equal(items[0].major, 98);
	assert_int_equal(items[0].minor, 0);
	assert_true(items[0].shared);
	assert_false(items[1].shared);
	assert_string_equal(items[0].root, "/mnt1");
	assert_string_equal(items[0].mount_point, "/mnt2");
	assert_string_equal(items[0].options, "rw,noatime");
	assert_string_equal(items[0].fs_type, "ext3");
	assert_string_equal(items[0].source, "/dev/root");
	assert_string_equal(items[0].super_options, "rw,errors=continue");
	assert_string_equal(items[1].mount_point, "/sys/fs/cgroup/dev ices\\x");
	assert_string_equal(items[2].root, "/..\t");
	assert_string_equal(items[2].mount_point, "/a\\777b\\000c");
	assert_string_equal(items[2].source, "");
}

static void test_mountinfo_skips_what_it_does_not_understand(void **state)
{
	static const char *const lines[] = {
		"",
		"36",
		"36 35 98:0 / /a rw - ext3",
		"36 35 98:0 / /a rw - ext3 source",
		"36 35 98:0 / /a rw ext3 source rw",
		"x 35 98:0 / /a rw - ext3 s rw",
		"36 -1 98:0 / /a rw - ext3 s rw",
		"36 35 98 / /a rw - ext3 s rw",
		"36 35 98:0: / /a rw - ext3 s rw",
		"36 35 4294967296:0 / /a rw - ext3 s rw",
		"2147483648 35 1:0 / /a rw - ext3 s rw",
		"36  35 98:0 / /a rw - ext3 s rw",
	};
	struct graft_mountinfo *items = NULL;
	size_t n = 7;

	for (size_t i = 0; i < GRAFT_COUNT(lines); i++) {
		assert_int_equal(graft_procfs_mountinfo(lines[i], strlen(lines[i]), arena, &items, &n), 0);
		if (n != 0)
			fail_msg("understood: %s", lines[i]);
	}
}

static void test_cgroup(void **state)
{
	static const char text[] = "12:devices:/docker/abc:def\n1:name=systemd:/\n0::/user.slice\n\n";
	struct graft_cgroup_entry *items = NULL;
	struct graft_error err = { 0 };
	size_t n = 0;

	assert_int_equal(graft_procfs_cgroup(text, strlen(text), arena, &items, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_string_equal(items[0].controllers, "devices");
	assert_string_equal(items[0].path, "/docker/abc:def");
	assert_string_equal(items[2].controllers, "");
	assert_string_equal(items[2].path, "/user.slice");
}

static void test_cgroup_malformed(void **state)
{
	struct graft_cgroup_entry *items = NULL;
	struct graft_error err = { 0 };
	size_t n = 7;

	assert_int_equal(graft_procfs_cgroup("1:a:/\n2:b\n", 10, arena, &items, &n, &err), -1);
	assert_int_equal(err.status, GRAFT_FORMAT);
	assert_string_equal(err.msg, "malformed cgroup entry: 2:b");
	assert_int_equal(n, 7);
	assert_int_equal(graft_procfs_cgroup("1:a:/x\0y\n", 9, arena, &items, &n, &err), -1);
	assert_int_equal(graft_procfs_cgroup("1:a:/x\0y\n", 9, arena, &items, &n, NULL), -1);
}

static const struct {
	const char *text;
	bool good;
	struct graft_pci_address address;
} addresses[] = {
	{ "0000:1b:00.0", true, { 0, 0x1b, 0, 0 } },
	{ "00000000:1B:1f.7", true, { 0, 0x1b, 0x1f, 7 } },
	{ "fFfF:ff:00.1", true, { 0xffff, 0xff, 0, 1 } },
	{ "deadbeef:00:00.0", true, { 0xdeadbeef, 0, 0, 0 } },
	{ "", false, { 0, 0, 0, 0 } },
	{ "1b:00.0", false, { 0, 0, 0, 0 } },
	{ "0000:1b:00", false, { 0, 0, 0, 0 } },
	{ "0000:1b:00.", false, { 0, 0, 0, 0 } },
	{ "0000:1b:00.00", false, { 0, 0, 0, 0 } },
	{ "0000:1b:20.0", false, { 0, 0, 0, 0 } },
	{ "0000:1b:00.8", false, { 0, 0, 0, 0 } },
	{ "0000:011:0.0", false, { 0, 0, 0, 0 } },
	{ "0000:1:b00.0", false, { 0, 0, 0, 0 } },
	{ "10000:e1:00.0", true, { 0x10000, 0xe1, 0, 0 } },
	{ "000:1b:00.0", false, { 0, 0, 0, 0 } },
	{ "000000000:1b:00.0", false, { 0, 0, 0, 0 } },
	{ "0000:1g:00.0", false, { 0, 0, 0, 0 } },
	{ "0000:1b:00.0 ", false, { 0, 0, 0, 0 } },
	{ " 000:1b:00.0", false, { 0, 0, 0, 0 } },
	{ "0000:1b:00,0", false, { 0, 0, 0, 0 } },
};

static void test_pci_parse(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(addresses); i++) {
		struct graft_pci_address address = { 1, 2, 3, 4 };

		if (graft_pci_parse(addresses[i].text, &address) != addresses[i].good)
			fail_msg("'%s' should %sbe an address", addresses[i].text, addresses[i].good ? "" : "not ");
		if (addresses[i].good)
			assert_int_equal(graft_pci_compare(&address, &addresses[i].address), 0);
		else
			assert_int_equal(address.domain, 1);
	}
}

/* The name may contain anything. */
static void test_stat(void **state)
{
	static const struct {
		const char *text, *name;
		int parent;
		uint64_t children_ticks;
	} rows[] = {
		{ "7 (runc:[2:INIT]) S 5 7 7 0 -1 4 1 2 3 4 10 20 30 40 20 0 1 0 999 1 2\n", "runc:[2:INIT]", 5, 70 },
		{ "7 (a) R 9 (b) S 5 7 7 0 -1 4 1 2 3 4 10 20 30 40 20 0 1 0 999 1 2", "a) R 9 (b", 5, 70 },
		{ "7 () Z 0 7 7 0 -1 4 1 2 3 4 0 0 0 0 20 0 1 0 999", "", 0, 0 },
	};
	static const char *const wrong[] = {
		"",
		"7 runc S 5",
		"7 (a)",
		"7 (a) S",
		"7 (a) S 5 7 7 0 -1 4 1 2 3 4 10 20 30",
		"7 (a) S -5 7 7 0 -1 4 1 2 3 4 10 20 30 40 20 0 1 0 999",
		"7 (a) S 4294967297 7 7 0 -1 4 1 2 3 4 10 20 30 40 20 0 1 0 999",
		"7 (a) S 5 7 7 0 -1 4 1 2 3 4 10 20 18446744073709551615 40 20 0 1 0 999",
		"7 (a) S 5 7 7 0 -1 4 1 2 3 4 10 20 x 40 20 0 1 0 999",
		") (a S 5 7 7 0 -1 4 1 2 3 4 10 20 30 40 20 0 1 0 999",
		"7 (0123456789012345678901234567890123456789012345678901234567890123) S 5 7 7 0 -1 4 1 2 3 4 10 20 3 4",
	};
	struct graft_process_family family;
	uint64_t start = 0;
	char letter = '\0';

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		assert_true(graft_procfs_family(rows[i].text, &family));
		assert_string_equal(family.name, rows[i].name);
		assert_int_equal(family.parent, rows[i].parent);
		assert_int_equal(family.children_ticks, rows[i].children_ticks);
		assert_true(graft_procfs_stat(rows[i].text, &letter, &start));
		assert_int_equal(start, 999);
	}
	assert_int_equal(letter, 'Z');
	for (size_t i = 0; i < GRAFT_COUNT(wrong); i++)
		if (graft_procfs_family(wrong[i], &family))
			fail_msg("'%s'", wrong[i]);
	assert_false(graft_procfs_stat("7 (a) S 5 7 7 0 -1 4 1 2 3 4 10 20 30 40 20 0 1 0", &letter, &start));
}

static void test_pci_sysfs_name(void **state)
{
	assert_string_equal(graft_pci_sysfs_name("00000000:1B:00.0", arena), "0000:1b:00.0");
	assert_string_equal(graft_pci_sysfs_name("00010000:e1:00.1", arena), "10000:e1:00.1");
	assert_null(graft_pci_sysfs_name("1b:00.0", arena));
}

static void test_pci_order(void **state)
{
	static const struct graft_pci_address sorted[] = {
		{ 0, 0, 0, 1 }, { 0, 0, 1, 0 }, { 0, 1, 0, 0 }, { 1, 0, 0, 0 }
	};

	for (size_t i = 0; i + 1 < GRAFT_COUNT(sorted); i++) {
		assert_true(graft_pci_compare(&sorted[i], &sorted[i + 1]) < 0);
		assert_true(graft_pci_compare(&sorted[i + 1], &sorted[i]) > 0);
	}
}

static void test_without_device_files(void **state)
{
	static const struct {
		const char *text, *copy; /* NULL: the same */
		bool changed;
	} rows[] = {
		{ "ModifyDeviceFiles: 1\n", "ModifyDeviceFiles: 0\n", true },
		{ "A: 1\nModifyDeviceFiles: 1\nDeviceFileUID: 0\n", "A: 1\nModifyDeviceFiles: 0\nDeviceFileUID: 0\n",
		  true },
		{ "ModifyDeviceFiles: 1", "ModifyDeviceFiles: 0", true },
		{ "ModifyDeviceFiles: 1\nModifyDeviceFiles: 1\n", "ModifyDeviceFiles: 0\nModifyDeviceFiles: 0\n",
		  true },
		/* Said already. */
		{ "ModifyDeviceFiles: 0\n", NULL, false },
		{ "ModifyDeviceFiles: 1\nModifyDeviceFiles: 0\n", "ModifyDeviceFiles: 0\nModifyDeviceFiles: 0\n",
		  false },
		{ "ModifyDeviceFiles: 0\nModifyDeviceFiles: 1", "ModifyDeviceFiles: 0\nModifyDeviceFiles: 0", false },
		/* Other lines. */
		{ "", NULL, false },
		{ "\n\n", NULL, false },
		{ "ModifyDeviceFiles: 10\n", NULL, false },
		{ "ModifyDeviceFiles: 1 \n", NULL, false },
		{ " ModifyDeviceFiles: 1\n", NULL, false },
		{ "ModifyDeviceFiles:  1\n", NULL, false },
		{ "XModifyDeviceFile: 1\n", NULL, false },
		{ "ModifyDeviceFiles: 2\n", NULL, false },
	};
	struct graft_arena *small = graft_arena_new(8);
	bool changed = true;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *copy = graft_procfs_without_device_files(rows[i].text, arena, &changed);

		assert_string_equal(copy, rows[i].copy ? rows[i].copy : rows[i].text);
		assert_ptr_not_equal(copy, rows[i].text);
		if (changed != rows[i].changed)
			fail_msg("row %zu", i);
	}
	changed = true;
	assert_null(graft_procfs_without_device_files(rows[0].text, small, &changed));
	assert_false(changed);
	graft_arena_free(small);
}

/* All parsers on one text. Returns 0, or -1 if any of them reported a failure. */
static int parse_everything(struct graft_arena *from, const char *text, size_t length)
{
	struct graft_key_value *values = NULL;
	struct graft_mig_minor *minors = NULL;
	struct graft_mountinfo *mounts = NULL;
	struct graft_cgroup_entry *entries = NULL;
	uint32_t major;
	size_t n;
	int rc = 0;

	rc |= graft_procfs_key_values(text, length, from, &values, &n);
	rc |= graft_procfs_mig_minors(text, length, from, &minors, &n);
	rc |= graft_procfs_mountinfo(text, length, from, &mounts, &n);
	rc |= graft_procfs_cgroup(text, length, from, &entries, &n, NULL);
	(void)graft_procfs_devices_major(text, length, "x", &major);
	(void)graft_procfs_driver_version(text, length, from);
	return rc;
}

/* Every part of every file ends early once; the copies have no byte behind the end, so a sanitizer sees a read there. */
static void test_truncations(void **state)
{
	static const char *const texts[] = { information,
					     devices,
					     "config 1\ngpu0/gi1/ci2/access 7\n",
					     "36 35 98:0 /mnt1 /mnt2 rw master:1 - ext3 /dev/root rw\n",
					     "NVRM version: a  550.54.14  b\n",
					     "0::/a\n" };

	for (size_t i = 0; i < GRAFT_COUNT(texts); i++) {
		for (size_t length = 0; length <= strlen(texts[i]); length++) {
			auto_free char *copy = malloc(length + 1);

			assert_non_null(copy);
			memcpy(copy + 1, texts[i], length);
			(void)parse_everything(arena, copy + 1, length);
			assert_false(graft_arena_failed(arena));
		}
	}
}

/* Big enough that every parser needs a block of its own. */
static void test_allocations_fail(void **state)
{
	static const char line[] = "12:devices:/docker/0123456789012345678901234567890123456789\n";
	static const char minor[] = "gpu31/gi14/ci7/access 4283\n";
	static const char mount[] = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n";
	struct graft_arena *room = graft_arena_new((size_t)64 << 20);
	char *text = graft_arena_alloc(room, 600 * (sizeof(line) + sizeof(minor) + sizeof(mount)));
	size_t length = 0;
	int n, rc = -1;

	assert_non_null(text);
	for (int i = 0; i < 600; i++) {
		const char *one = i % 3 == 0 ? line : i % 3 == 1 ? minor : mount;

		memcpy(text + length, one, strlen(one) + 1);
		length += strlen(one);
	}
	for (n = 1; rc != 0; n++) {
		struct graft_key_value *values = NULL;
		struct graft_mig_minor *minors = NULL;
		struct graft_mountinfo *mounts = NULL;
		struct graft_arena *small = graft_arena_new((size_t)64 << 20);
		size_t count;

		assert_non_null(small);
		allocation_fail(n);
		rc = graft_procfs_key_values(text, length, small, &values, &count);
		rc = rc != 0 ? rc : graft_procfs_mig_minors(text, length, small, &minors, &count);
		rc = rc != 0 ? rc : graft_procfs_mountinfo(text, length, small, &mounts, &count);
		assert_int_equal(allocation_failed(), rc != 0);
		assert_int_equal(graft_arena_failed(small), rc != 0);
		graft_arena_free(small);
	}
	assert_true(n > 4);
	graft_arena_free(room);
}

static void test_full_arena(void **state)
{
	struct graft_arena *small = graft_arena_new(48);
	struct graft_cgroup_entry *entries = NULL;
	struct graft_error err = { 0 };
	size_t n = 0;

	assert_int_equal(graft_procfs_cgroup("1:a:/\n2:b:/\n3:c:/\n", 18, small, &entries, &n, &err), -1);
	assert_int_equal(err.status, GRAFT_NO_MEMORY);
	graft_arena_free(small);
}

static void test_options(void **state)
{
	static const char words[] = "/usr/bin/conmon\0-c\0id\0-r=/usr/bin/crun\0--cid-file\0-b\0-n";
	const struct graft_command_line line = { words, sizeof(words) };
	const struct graft_command_line none = { "", 0 };

	assert_string_equal(graft_procfs_option(&line, "-c"), "id");
	assert_string_equal(graft_procfs_option(&line, "-r"), "/usr/bin/crun");
	assert_string_equal(graft_procfs_option(&line, "--cid-file"), "-b");
	assert_null(graft_procfs_option(&line, "--cid"));
	assert_null(graft_procfs_option(&line, "-n"));
	assert_null(graft_procfs_option(&line, "-x"));
	assert_null(graft_procfs_option(&none, "-c"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_key_values),
		cmocka_unit_test(test_line_with_nul_is_skipped),
		cmocka_unit_test(test_driver_version),
		cmocka_unit_test(test_devices_major),
		cmocka_unit_test(test_mig_minors),
		cmocka_unit_test(test_mountinfo),
		cmocka_unit_test(test_mountinfo_skips_what_it_does_not_understand),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_cgroup_malformed),
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_pci_parse),
		cmocka_unit_test(test_pci_sysfs_name),
		cmocka_unit_test(test_pci_order),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_without_device_files),
		cmocka_unit_test(test_truncations),
		cmocka_unit_test(test_allocations_fail),
		cmocka_unit_test(test_full_arena),
	};

	return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
