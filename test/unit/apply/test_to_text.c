/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../unit.h"
#include "apply/to_text.h"
#include "base/cleanup.h"

static void check(const struct graft_plan *plan, const char *wanted)
{
	struct graft_buffer text = { 0 };

	graft_plan_to_text(plan, &text);
	assert_string_equal(graft_buffer_text(&text), wanted);
	graft_buffer_done(&text);
}

static void test_empty(void **state)
{
	static const struct graft_plan plan = { .version = 1 },
				       simulated = { .driver_version = "1.2", .simulated = true };

	check(&plan, "driver of unknown version\n\ngets: 0\n\nedits: 0\n\nrefused: 0\n");
	check(&simulated, "driver 1.2 (SIMULATED)\n\ngets: 0\n\nedits: 0\n\nrefused: 0\n");
}

static void test_every_kind(void **state)
{
	static const char *folders[] = { "/usr/lib64", "/opt" }, *missing[] = { "/opt" };
	static struct graft_ldcache_entry entries[] = { { "libcuda.so.1", "/usr/lib64/libcuda.so.1", 0x303 },
							{ "libcuda.so.1", "/opt/libcuda.so.5", 3 } };
	static struct graft_edit edits[] = {
		{ .kind = GRAFT_EDIT_TMPFS,
		  .target = "/proc/driver",
		  .mode = 0555,
		  .flags = 14,
		  .rule = "a",
		  .why = "first" },
		{ .kind = GRAFT_EDIT_DIRECTORY,
		  .target = "/proc/driver/nvidia",
		  .mode = 0555,
		  .rule = "a",
		  .why = "first" },
		{ .kind = GRAFT_EDIT_FILE,
		  .target = "/f",
		  .mode = 0444,
		  .content = "1\n2",
		  .rule = "a",
		  .why = "second" },
		{ .kind = GRAFT_EDIT_FILE,
		  .target = "/g",
		  .mode = 0444,
		  .content = "\n\n\n\n\n",
		  .rule = "a",
		  .why = "second" },
		{ .kind = GRAFT_EDIT_BIND,
		  .source = "/d/x",
		  .target = "/x",
		  .mode = 0644,
		  .flags = 7,
		  .rule = "b",
		  .why = "c" },
		{ .kind = GRAFT_EDIT_BIND,
		  .source = "/s",
		  .target = "/s",
		  .type = GRAFT_SOURCE_SOCKET,
		  .mode = 0644,
		  .optional = true,
		  .rule = "b",
		  .why = "c" },
		{ .kind = GRAFT_EDIT_DEVICE,
		  .source = "/dev/n",
		  .target = "/dev/n",
		  .major = 195,
		  .minor = 3,
		  .mode = 0666,
		  .flags = 11,
		  .rule = "d",
		  .why = "e" },
		{ .kind = GRAFT_EDIT_CGROUP, .major = 195, .minor = 3, .access = "rw", .rule = "d", .why = "e" },
		{ .kind = GRAFT_EDIT_DEVICE,
		  .source = "/r/dev/dri/card1",
		  .target = "/dev/dri/card1",
		  .major = 226,
		  .minor = 1,
		  .gid = 44,
		  .mode = 0660,
		  .rule = "d",
		  .why = "e" },
		{ .kind = GRAFT_EDIT_COVER,
		  .target = "/c",
		  .mode = 0444,
		  .flags = 15,
		  .content = "a\nb\n",
		  .rule = "d",
		  .why = "e" },
		{ .kind = GRAFT_EDIT_SYMLINK,
		  .source = "/h/lib.so.5",
		  .target = "/l/lib.so.1",
		  .content = "lib.so.5",
		  .conflict = GRAFT_CONFLICT_REPLACE,
		  .rule = "f",
		  .why = "g" },
		{ .kind = GRAFT_EDIT_SYMLINK,
		  .source = "/l/lib.so.5",
		  .target = "/l/lib.so.1",
		  .content = "lib.so.5",
		  .conflict = GRAFT_CONFLICT_REPLACE,
		  .rule = "f",
		  .why = "g" },
		{ .kind = GRAFT_EDIT_SYMLINK, .target = "/l/lib.so", .content = "lib.so.1", .rule = "f", .why = "g" },
		{ .kind = GRAFT_EDIT_ENV, .target = "NAME", .content = "value", .rule = "h", .why = "i" },
		{ .kind = GRAFT_EDIT_LDCACHE,
		  .folders = folders,
		  .n_folders = 2,
		  .missing_folders = missing,
		  .n_missing_folders = 1,
		  .entries = entries,
		  .n_entries = 2,
		  .rule = "j",
		  .why = "k" },
		{ .kind = GRAFT_EDIT_LDCACHE,
		  .musl_path_file = "/etc/ld-musl.path",
		  .musl_path = "/lib\n",
		  .rule = "j",
		  .why = "k" },
	};
	static struct graft_grant grants[] = {
		{ .index = 3, .minor = 7, .uuid = "GPU-1", .bus_id = "0:1b:0", .model = "Model" },
		{ .index = 3, .minor = 7, .mig = true, .mig_index = 2, .gi = 5, .ci = 6, .model = "Model" },
		{ .index = 0 },
	};
	static struct graft_refusal refusals[] = { { "this", "that" } };
	static const struct graft_plan plan = { .driver_version = "550.54.14",
						.grants = grants,
						.n_grants = GRAFT_COUNT(grants),
						.edits = edits,
						.n_edits = GRAFT_COUNT(edits),
						.refusals = refusals,
						.n_refusals = 1 };

	check(&plan, "driver 550.54.14\n"
		     "\n"
		     "gets: 3\n"
		     "  GPU 3  minor 7, Model, GPU-1, at 0:1b:0\n"
		     "  MIG 3:2  GPU instance 5, compute instance 6\n"
		     "  GPU 0  minor 0\n"
		     "\n"
		     "edits: 16\n"
		     "  a: first\n"
		     "    1 tmpfs     /proc/driver  mode 0555 nosuid nodev noexec\n"
		     "    2 directory /proc/driver/nvidia  mode 0555\n"
		     "  a: second\n"
		     "    3 file      /f  mode 0444\n"
		     "             | 1\n"
		     "             | 2\n"
		     "    4 file      /g  mode 0444\n"
		     "             | 5 lines, 5 bytes, checksum 8e84557d\n"
		     "  b: c\n"
		     "    5 bind      /x  ro nosuid nodev (0644)\n"
		     "             from /d/x\n"
		     "    6 bind      /s=  (0644) if it is still there\n"
		     "  d: e\n"
		     "    7 device    /dev/n  195:3 ro nosuid noexec (0666)\n"
		     "    8 cgroup    c 195:3 rw\n"
		     "    9 device    /dev/dri/card1  226:1 (0660 0:44)\n"
		     "             from /r/dev/dri/card1\n"
		     "   10 cover     /c  mode 0444 ro nosuid nodev noexec if it is there\n"
		     "             | a\n"
		     "             | b\n"
		     "  f: g\n"
		     "   11 symlink   /l/lib.so.1 -> lib.so.5  replaces\n"
		     "             from /h/lib.so.5\n"
		     "   12 symlink   /l/lib.so.1 -> lib.so.5  replaces\n"
		     "   13 symlink   /l/lib.so -> lib.so.1  unless it exists\n"
		     "  h: i\n"
		     "   14 env       NAME=value\n"
		     "  j: k\n"
		     "   15 ldcache   /etc/ld.so.cache\n"
		     "             directory /usr/lib64\n"
		     "             directory /opt (not in the image's configuration)\n"
		     "             /usr/lib64/libcuda.so.1 (0x0303)\n"
		     "             /opt/libcuda.so.5 (0x0003) for libcuda.so.1\n"
		     "   16 ldcache   /etc/ld-musl.path\n"
		     "             | /lib\n"
		     "\n"
		     "refused: 1\n"
		     "  this: that\n");
}

/* SECURITY: names come from images and must not control a terminal. */
static void test_control_characters(void **state)
{
	static struct graft_edit edits[] = { { .kind = GRAFT_EDIT_LDCACHE,
					       .musl_path_file = "/etc/\x1b]0;x\x07",
					       .musl_path = "\x1b[2J\nb\r",
					       .rule = "r",
					       .why = "w\n" } };
	static struct graft_refusal refusals[] = { { "/c/lib\n  1 bind",
						     "\x7f\xc2\x9b\xd8\x9c\xe2\x80\xae\xff\xc3\xa9" } };
	static const struct graft_plan plan = {
		.driver_version = "\x1b", .edits = edits, .n_edits = 1, .refusals = refusals, .n_refusals = 1
	};

	check(&plan, "driver \\x1b\n\ngets: 0\n\nedits: 1\n  r: w\\x0a\n    1 ldcache   /etc/\\x1b]0;x\\x07\n"
		     "             | \\x1b[2J\n             | b\\x0d\n\nrefused: 1\n  /c/lib\\x0a  1 bind: "
		     "\\x7f\\xc2\\x9b\\xd8\\x9c\\xe2\\x80\\xae\\xff\xc3\xa9\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_every_kind),
		cmocka_unit_test(test_control_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
