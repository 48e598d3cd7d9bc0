/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans as edits of CDI specifications: what becomes a hook and with which arguments, what belongs
 * to a single device, and what remains without hooks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "apply/to_cdi.h"
#include "base/buffer.h"
#include "base/cleanup.h"

#define ARENA_MAX  ((size_t)16 << 20)
#define HOOK       "/usr/bin/nvidia-cdi-hook"
#define FILE_FLAGS ((uint32_t)GRAFT_MOUNT_RDONLY | (uint32_t)GRAFT_MOUNT_NOSUID | (uint32_t)GRAFT_MOUNT_NODEV)
#define LIBS       "/usr/lib/x86_64-linux-gnu"
#define EDITS_MAX  8

/* A hook is one line; an argument per line would be too long. */
static void show(const struct graft_cdi_edits *edits, struct graft_buffer *out)
{
	for (size_t i = 0; i < edits->n_env; i++)
		graft_buffer_printf(out, "env %s\n", edits->env[i]);
	for (size_t i = 0; i < edits->n_nodes; i++) {
		const struct graft_cdi_node *node = &edits->nodes[i];

		assert_null(node->type);
		assert_false(node->has_numbers);
		assert_int_equal(node->major | node->minor, 0);
		assert_false(node->has_uid);
		graft_buffer_printf(out, "node %s%s%s", node->path, node->host_path ? " from " : "",
				    node->host_path ? node->host_path : "");
		if (node->has_mode)
			graft_buffer_printf(out, " %o", node->mode);
		if (node->has_gid)
			graft_buffer_printf(out, " gid %u", node->gid);
		graft_buffer_printf(out, " %s\n", node->permissions);
	}
	for (size_t i = 0; i < edits->n_mounts; i++) {
		const struct graft_cdi_mount *mount = &edits->mounts[i];

		graft_buffer_printf(out, "mount %s at %s", mount->host_path, mount->container_path);
		for (size_t j = 0; j < mount->n_options; j++)
			graft_buffer_printf(out, "%c%s", j == 0 ? ' ' : ',', mount->options[j]);
		graft_buffer_char(out, '\n');
	}
	for (size_t i = 0; i < edits->n_hooks; i++) {
		const struct graft_cdi_hook *hook = &edits->hooks[i];

		assert_string_equal(hook->stage, "createContainer");
		/* SECURITY: must always have an environment of its own. */
		assert_int_equal(hook->n_env, 1);
		assert_string_equal(hook->env[0], "NVIDIA_CTK_DEBUG=false");
		graft_buffer_printf(out, "%s:", hook->path);
		for (size_t j = 0; j < hook->n_args; j++)
			graft_buffer_printf(out, " %s", hook->args[j]);
		graft_buffer_char(out, '\n');
	}
	for (size_t i = 0; i < edits->n_gids; i++)
		graft_buffer_printf(out, "gid %u\n", edits->gids[i]);
}

static const char *folders[] = { LIBS, LIBS "/vdpau" };
static const char *odd_folders[] = { "/a,b" };

/* clang-format off */
#define NODE_EDIT(path, min) { .kind = GRAFT_EDIT_DEVICE, .source = (path), .target = (path), .major = 195, .minor = (min), .mode = 0666 }
#define RULE_EDIT(min)       { .kind = GRAFT_EDIT_CGROUP, .major = 195, .minor = (min), .access = "rwm" }
#define FILE_EDIT(path)      { .kind = GRAFT_EDIT_BIND, .source = "/r" path, .target = (path), .flags = FILE_FLAGS }
#define LINK_EDIT(path, to)  { .kind = GRAFT_EDIT_SYMLINK, .target = (path), .content = (to) }
#define CACHE_EDIT           { .kind = GRAFT_EDIT_LDCACHE, .folders = folders, .n_folders = 2 }
#define PARAMS_EDIT          { .kind = GRAFT_EDIT_COVER, .target = "/proc/driver/nvidia/params", .content = "ModifyDeviceFiles: 0\n" }
#define PROFILE_EDIT(text)   { .kind = GRAFT_EDIT_FILE, .target = "/etc/profile", .content = (text), .rule = "application-profile" }
#define OPTIONS              .hook_path = HOOK

static const struct {
	const char *what;
	struct graft_edit edits[EDITS_MAX];
	struct graft_edit common[EDITS_MAX]; /* if there are any, the plan is a device's */
	struct graft_cdi_options options;
	const char *want; /* NULL = refused */
} rows[] = {
	{ "nothing", { { .rule = NULL } }, { { .rule = NULL } }, { OPTIONS }, "" },
	{ "a node: neither type nor numbers, which change with a reboot", { NODE_EDIT("/dev/nvidia0", 0), RULE_EDIT(0) }, { { .rule = NULL } }, { OPTIONS },
	  "node /dev/nvidia0 666 rwm\n" },
	{ "a node of a group", { { .kind = GRAFT_EDIT_DEVICE, .source = "/d/dev/dri/card0", .target = "/dev/dri/card0", .major = 226, .mode = 0660, .gid = 44 },
	    { .kind = GRAFT_EDIT_CGROUP, .major = 226, .access = "rwm" } }, { { .rule = NULL } }, { OPTIONS },
	  "node /dev/dri/card0 from /d/dev/dri/card0 660 gid 44 rwm\ngid 44\n" },
	{ "and without it", { { .kind = GRAFT_EDIT_DEVICE, .source = "/dev/dri/card0", .target = "/dev/dri/card0", .major = 226, .mode = 0660, .gid = 44 },
	    { .kind = GRAFT_EDIT_CGROUP, .major = 226, .access = "rwm" } }, { { .rule = NULL } }, { OPTIONS, .no_additional_gids = true },
	  "node /dev/dri/card0 660 gid 44 rwm\n" },
	{ "all hooks, in the order in which they need each other",
	  { PROFILE_EDIT("x"), PARAMS_EDIT, CACHE_EDIT, LINK_EDIT(LIBS "/libcuda.so", "libcuda.so.1"), LINK_EDIT("/l", "m") }, { { .rule = NULL } },
	  { OPTIONS, .compat = { .driver_version = "550.54.14" } },
	  HOOK ": nvidia-cdi-hook create-symlinks --link libcuda.so.1::" LIBS "/libcuda.so --link m::/l\n"
	  HOOK ": nvidia-cdi-hook enable-cuda-compat --host-driver-version=550.54.14\n"
	  HOOK ": nvidia-cdi-hook update-ldcache --folder " LIBS " --folder " LIBS "/vdpau\n"
	  HOOK ": nvidia-cdi-hook disable-device-node-modification\n"
	  HOOK ": nvidia-cdi-hook update-application-profile\n" },
	{ "by nvidia-ctk; an ldconfig; a board's compatibility libraries", { CACHE_EDIT }, { { .rule = NULL } },
	  { .hook_path = "/opt/nvidia-ctk", .ldconfig_path = "/sbin/ldconfig.real", .compat = { .cuda_version = "13.1", .directory = "/usr/local/cuda/compat_orin" } },
	  "/opt/nvidia-ctk: nvidia-ctk hook enable-cuda-compat --host-cuda-version=13.1 --cuda-compat-container-root=/usr/local/cuda/compat_orin\n"
	  "/opt/nvidia-ctk: nvidia-ctk hook update-ldcache --ldconfig-path /sbin/ldconfig.real --folder " LIBS " --folder " LIBS "/vdpau\n" },
	{ "what a device has beside what all have",
	  { NODE_EDIT("/dev/nvidia0", 0), RULE_EDIT(0), NODE_EDIT("/dev/nvidiactl", 255), RULE_EDIT(255), FILE_EDIT("/a"),
	    LINK_EDIT("/dev/dri/by-path/x", "../card0"), LINK_EDIT("/b", "a"), CACHE_EDIT },
	  { NODE_EDIT("/dev/nvidiactl", 255), RULE_EDIT(255), FILE_EDIT("/a"), LINK_EDIT("/b", "a"), CACHE_EDIT },
	  { OPTIONS, .compat = { .driver_version = "550.54.14" } },
	  "node /dev/nvidia0 666 rwm\n" HOOK ": nvidia-cdi-hook create-symlinks --link ../card0::/dev/dri/by-path/x\n" },
	{ "the profile of a device is what the hook finds out itself", { PROFILE_EDIT("0x1"), PARAMS_EDIT }, { PROFILE_EDIT("0x0"), PARAMS_EDIT }, { OPTIONS }, "" },
	{ "the same in another order",
	  { FILE_EDIT("/c"), FILE_EDIT("/b"), FILE_EDIT("/a") }, { FILE_EDIT("/a"), FILE_EDIT("/b"), FILE_EDIT("/d") }, { OPTIONS },
	  "mount /r/c at /c ro,nosuid,nodev,rbind,rprivate\n" },
	{ "two nodes of one device: the rule stays with the one that stays", { NODE_EDIT("/dev/a", 1), NODE_EDIT("/dev/b", 1), RULE_EDIT(1) },
	  { NODE_EDIT("/dev/a", 1), RULE_EDIT(1) }, { OPTIONS }, "node /dev/b 666 rwm\n" },
	{ "directories of nodes, when asked for", { NODE_EDIT("/dev/nvidia0", 0), RULE_EDIT(0), NODE_EDIT("/dev/dri/card0", 1), RULE_EDIT(1),
	    NODE_EDIT("/dev/dri/card1", 2), RULE_EDIT(2), NODE_EDIT("/dev/nvidia-caps/nvidia-cap1", 3), RULE_EDIT(3) }, { { .rule = NULL } },
	  { OPTIONS, .chmod = true },
	  "node /dev/nvidia0 666 rwm\nnode /dev/dri/card0 666 rwm\nnode /dev/dri/card1 666 rwm\nnode /dev/nvidia-caps/nvidia-cap1 666 rwm\n"
	  HOOK ": nvidia-cdi-hook chmod --mode 755 --path /dev/dri --path /dev/nvidia-caps\n" },
	{ "no directories, no hook", { NODE_EDIT("/dev/nvidia0", 0), RULE_EDIT(0) }, { { .rule = NULL } }, { OPTIONS, .chmod = true }, "node /dev/nvidia0 666 rwm\n" },
	{ "without hooks: links become what they lead to, by as many steps as it takes",
	  { FILE_EDIT("/l/libcuda.so.550"), LINK_EDIT("/l/libcuda.so", "libcuda.so.1"), LINK_EDIT("/l/libcuda.so.1", "libcuda.so.550"),
	    LINK_EDIT("/l/gbm/x.so", "../libcuda.so"), LINK_EDIT("/abs", "/l/libcuda.so.550"), CACHE_EDIT, PARAMS_EDIT, PROFILE_EDIT("x") }, { { .rule = NULL } },
	  { OPTIONS, .no_hooks = true, .compat = { .driver_version = "550.54.14" } },
	  "mount /r/l/libcuda.so.550 at /abs ro,nosuid,nodev,rbind,rprivate\n"
	  "mount /r/l/libcuda.so.550 at /l/libcuda.so ro,nosuid,nodev,rbind,rprivate\n"
	  "mount /r/l/libcuda.so.550 at /l/libcuda.so.1 ro,nosuid,nodev,rbind,rprivate\n"
	  "mount /r/l/libcuda.so.550 at /l/libcuda.so.550 ro,nosuid,nodev,rbind,rprivate\n"
	  "mount /r/l/libcuda.so.550 at /l/gbm/x.so ro,nosuid,nodev,rbind,rprivate\n" },
	{ "without hooks: to nodes, of another part of the specification too, and to nothing",
	  { NODE_EDIT("/dev/dri/card0", 0), RULE_EDIT(0), LINK_EDIT("/dev/dri/by-path/a", "../card0"), LINK_EDIT("/x", "y"), LINK_EDIT("/o", "o") },
	  { NODE_EDIT("/dev/dri/card0", 0), RULE_EDIT(0) }, { OPTIONS, .no_hooks = true },
	  "node /dev/dri/by-path/a from /dev/dri/card0 666 rwm\n" },
	{ "late mounts: files by the hook, and all hooks in one; sockets, directories and what cannot be a word as without",
	  { FILE_EDIT("/l/libcuda.so.550"), { .kind = GRAFT_EDIT_BIND, .source = "/same", .target = "/same", .flags = FILE_FLAGS }, FILE_EDIT("/a,b"),
	    { .kind = GRAFT_EDIT_BIND, .source = "/s", .target = "/s", .type = GRAFT_SOURCE_SOCKET, .flags = FILE_FLAGS },
	    LINK_EDIT("/l/libcuda.so.1", "libcuda.so.550"), CACHE_EDIT }, { { .rule = NULL } },
	  { OPTIONS, .late_mounts = true, .compat = { .driver_version = "550.54.14" } },
	  "mount /r/a,b at /a,b ro,nosuid,nodev,rbind,rprivate\n"
	  "mount /s at /s ro,nosuid,nodev,rbind,rprivate\n"
	  HOOK ": nvidia-cdi-hook sequence mount-files --file /r/l/libcuda.so.550::/l/libcuda.so.550 --file /same"
	  " --then create-symlinks --link libcuda.so.550::/l/libcuda.so.1 --then enable-cuda-compat --host-driver-version=550.54.14"
	  " --then update-ldcache --folder " LIBS " --folder " LIBS "/vdpau\n" },
	{ "late mounts: a file of a device, by nvidia-ctk, which has no hooks in a row", { FILE_EDIT("/d"), FILE_EDIT("/c"), LINK_EDIT("/b", "a") },
	  { FILE_EDIT("/c") }, { .hook_path = "/opt/nvidia-ctk", .late_mounts = true },
	  "/opt/nvidia-ctk: nvidia-ctk hook mount-files --file /r/d::/d\n/opt/nvidia-ctk: nvidia-ctk hook create-symlinks --link a::/b\n" },
	{ "a path with a comma", { LINK_EDIT("/a,b", "c") }, { { .rule = NULL } }, { OPTIONS }, NULL },
	{ "a path with two colons", { LINK_EDIT("/a", "b::c") }, { { .rule = NULL } }, { OPTIONS }, NULL },
	{ "a directory with a comma", { { .kind = GRAFT_EDIT_LDCACHE, .folders = odd_folders, .n_folders = 1 } }, { { .rule = NULL } }, { OPTIONS }, NULL },
	{ "a file that no hook writes", { { .kind = GRAFT_EDIT_FILE, .target = "/f", .content = "x", .rule = "other" } }, { { .rule = NULL } }, { OPTIONS }, NULL },
	{ "a cover that no hook makes", { { .kind = GRAFT_EDIT_COVER, .target = "/proc/other", .content = "x" } }, { { .rule = NULL } }, { OPTIONS }, NULL },
};
/* clang-format on */

/* The edits of a row, up to the first without a target or numbers. */
static struct graft_plan plan_of(const struct graft_edit *edits, struct graft_edit *copies)
{
	struct graft_plan plan = { .version = GRAFT_PLAN_VERSION, .driver_version = "550.54.14", .edits = copies };

	for (; plan.n_edits < EDITS_MAX; plan.n_edits++) {
		const struct graft_edit *edit = &edits[plan.n_edits];

		if (!edit->target && !edit->access && edit->n_folders == 0)
			break;
		copies[plan.n_edits] = *edit;
		if (!edit->rule)
			copies[plan.n_edits].rule = "test";
	}
	return plan;
}

static int convert(size_t row, struct graft_arena *arena, struct graft_cdi_edits *edits, struct graft_error *err)
{
	struct graft_edit copies[2][EDITS_MAX];
	const struct graft_plan plan = plan_of(rows[row].edits, copies[0]);
	const struct graft_plan common = plan_of(rows[row].common, copies[1]);

	return graft_plan_to_cdi(&plan, common.n_edits > 0 ? &common : NULL, &rows[row].options, arena, edits, err);
}

static void test_rows(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_arena *arena = graft_arena_new(ARENA_MAX);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_buffer text = { 0 };
		struct graft_cdi_edits edits;
		int rc = convert(i, arena, &edits, &err);

		if (rc == 0)
			show(&edits, &text);
		if (rows[i].want && (rc < 0 || strcmp(graft_buffer_text(&text), rows[i].want) != 0))
			fail_msg("%s: %s\n%s\n%s", rows[i].what, err.msg, graft_buffer_text(&text), rows[i].want);
		if (!rows[i].want && (rc == 0 || err.status != GRAFT_UNSUPPORTED))
			fail_msg("%s: %s", rows[i].what, graft_buffer_text(&text));
		graft_buffer_done(&text);
		(void)graft_arena_free(arena);
	}
}

static void test_allocations(void **state)
{
	for (size_t row = 0; row < GRAFT_COUNT(rows); row++) {
		for (int n = 1; rows[row].want; n++) {
			struct graft_error err = { .status = GRAFT_OK };
			struct graft_arena *arena;
			struct graft_cdi_edits edits;
			bool failed;
			int rc = -1;

			allocation_fail(n);
			arena = graft_arena_new(ARENA_MAX);
			/* Small arenas: each block is an allocation that can fail. */
			for (int i = 0; arena && i < 60 && (i == 0 || rc == 0); i++)
				rc = convert(row, arena, &edits, &err);
			failed = allocation_failed();
			if (arena && failed) {
				assert_int_equal(rc, -1);
				assert_int_equal(err.status, GRAFT_NO_MEMORY);
			}
			assert_true(failed || rc == 0);
			if (arena)
				(void)graft_arena_free(arena);
			if (!failed)
				break;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
