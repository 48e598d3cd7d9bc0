/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kind of edit, for every kind of target; its effects on the calling process; and that a late
 * failure undoes everything.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/unit.h"
#include "apply_standins.h"
#include "apply_world.h"
#include "base/cleanup.h"

static struct world *usual(enum world_kind kind)
{
	struct world *world = world_new(kind);

	world->cgroup = &standin_cgroup;
	world->step = standin_step;
	standin_calls = (struct standin_calls){ .cgroup_allow = 0 };
	world_usual_image(world);
	world_plan_all(world);
	return world;
}

static void apply_all(enum world_kind kind)
{
	struct world *world = usual(kind);
	struct graft_buffer before = { 0 }, after = { 0 };
	char text[1024];

	world_start(world);
	world_process(&before);
	if (world_apply(world) < 0)
		fail_msg("%s: %s", world_kind_names[kind], graft_error_text(&world->error, text, sizeof(text)));
	world_process(&after);
	world_assert_same(&before, &after, "process");
	world_check_all(world);
	if (kind != WORLD_ROOTLESS) /* there they are called in the child */
		assert_string_equal(standin_calls.order, "mount state allow ldcache refresh ");
	graft_buffer_done(&before);
	graft_buffer_done(&after);
	world_free(world);
}

static void test_standalone(void **state)
{
	apply_all(WORLD_STANDALONE);
}

static void test_supervised(void **state)
{
	apply_all(WORLD_SUPERVISED);
}

static void test_userns(void **state)
{
	apply_all(WORLD_USERNS);
}

static void test_rootless(void **state)
{
	apply_all(WORLD_ROOTLESS);
}

/* The process of a rootless caller has a clock of its own, and no budget of its own. */
static void test_late(void **state)
{
	struct world *world = usual(WORLD_ROOTLESS);
	struct graft_buffer before = { 0 }, after = { 0 };

	world_start(world);
	world_snapshot(world, &before);
	world->spends_budget = true;
	assert_int_equal(world_apply(world), -1);
	world_snapshot(world, &after);
	world_assert_same(&before, &after, "late");
	graft_buffer_done(&before);
	graft_buffer_done(&after);
	world_free(world);
}

/* What is made belongs to the container's owner. */
static void test_owner(void **state)
{
	struct world *world = usual(WORLD_USERNS);
	static const char *const made[] = { "/dev/nvidia0", "/proc/driver/nvidia/params", "/usr/lib/nvidia/current",
					    "/etc/ld.so.cache", "/usr/lib/" MACHINE_TRIPLET "/libcuda.so.1" };
	struct stat st;

	assert_int_equal(world_apply(world), 0);
	for (size_t i = 1; i < GRAFT_COUNT(made); i++) {
		if (lstat(world_inside_path(world, made[i]), &st) < 0 || st.st_uid != WORLD_FIRST_ID)
			fail_msg("%s belongs to %u", made[i], st.st_uid);
	}
	world_free(world);
}

/* The last step fails: everything is as before. */
static void undo_all(enum world_kind kind, bool cgroup)
{
	struct world *world = usual(kind);
	struct graft_buffer before = { 0 }, after = { 0 };

	world_start(world);
	world_snapshot(world, &before);
	standin_calls.order[0] = '\0';
	standin_calls.cgroup_fails = cgroup;
	standin_calls.ldcache_fails = !cgroup;
	assert_int_equal(world_apply(world), -1);
	world_snapshot(world, &after);
	world_assert_same(&before, &after, world_kind_names[kind]);
	assert_null(strstr(world->log, "could not"));
	if (kind != WORLD_ROOTLESS) {
		assert_string_equal(graft_error_step(&world->error), cgroup ? "mount error" : "ldcache error");
		assert_string_equal(standin_calls.order, cgroup ? "mount state allow disallow mount "
								: "mount state allow ldcache refresh mount disallow ");
	}
	graft_buffer_done(&before);
	graft_buffer_done(&after);
	world_free(world);
}

static void test_undo(void **state)
{
	for (int kind = 0; kind < WORLD_KIND_MAX; kind++) {
		undo_all((enum world_kind)kind, true);
		undo_all((enum world_kind)kind, false);
	}
}

/* Twice on the same container: the second mounts are stacked over the first. */
static void test_twice(void **state)
{
	struct world *world = usual(WORLD_SUPERVISED);

	assert_int_equal(world_apply(world), 0);
	world->plan.edits[0].kind = GRAFT_EDIT_DIRECTORY;
	/* the stand-in of ldcache_state requires an untouched image */
	for (size_t i = 0; i < world->plan.n_edits; i++)
		if (world->plan.edits[i].kind == GRAFT_EDIT_LDCACHE)
			world->plan.edits[i].kind = GRAFT_EDIT_ENV;
	assert_int_equal(world_apply(world), 0);
	world_check_all(world);
	world_free(world);
}

/* Sources that differ from the plan; nothing is changed. */
static void test_wrong_sources(void **state)
{
	static const struct {
		enum graft_edit_kind kind;
		enum graft_source_type type;
		const char *source;
		const char *text, *end; /* before and after the source */
	} cases[] = {
		{ GRAFT_EDIT_BIND, GRAFT_SOURCE_FILE, "/fw", "unexpected source file mode 40755 for ", "" },
		{ GRAFT_EDIT_BIND, GRAFT_SOURCE_FILE, "/link", "unexpected source file mode 120777 for ", "" },
		{ GRAFT_EDIT_BIND, GRAFT_SOURCE_DIRECTORY, "/lib/libptx.so.550",
		  "unexpected source file mode 100644 for ", "" },
		{ GRAFT_EDIT_BIND, GRAFT_SOURCE_SOCKET, "/fw", "unexpected source file mode 40755 for ", "" },
		{ GRAFT_EDIT_BIND, GRAFT_SOURCE_FILE, "/absent", "lstat failed: ", ": no such file or directory" },
		{ GRAFT_EDIT_DEVICE, GRAFT_SOURCE_FILE, "/dev/nvidia0", "invalid device node: ", "" },
		{ GRAFT_EDIT_DEVICE, GRAFT_SOURCE_FILE, "/fw", "invalid device node: ", "" },
		{ GRAFT_EDIT_DEVICE, GRAFT_SOURCE_FILE, "/absent", "stat failed: ", ": no such file or directory" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct world *world = world_new(WORLD_SUPERVISED);
		struct graft_buffer before = { 0 }, after = { 0 };
		char want[512], text[1024];
		struct graft_edit *edit;

		world_usual_image(world);
		assert_int_equal(symlink("fw", graft_arena_printf(world->arena, "%s/host/link", world->top)), 0);
		assert_int_equal(world_apply(world), 0);
		world_snapshot(world, &before);
		world_add(world, GRAFT_EDIT_DIRECTORY, NULL, "/new")->mode = 0755;
		edit = world_add(world, cases[i].kind, cases[i].source, "/target");
		edit->type = cases[i].type;
		edit->major = 195;
		edit->minor = 7;
		assert_int_equal(world_apply(world), -1);
		(void)snprintf(want, sizeof(want), "%s%s%s", cases[i].text, edit->source, cases[i].end);
		assert_string_equal(graft_error_text(&world->error, text, sizeof(text)), want);
		world_snapshot(world, &after);
		world_assert_same(&before, &after, cases[i].source);
		graft_buffer_done(&before);
		graft_buffer_done(&after);
		world_free(world);
	}
}

static void test_targets(void **state)
{
	static const struct {
		pid_t pid;
		const char *rootfs, *text;
	} cases[] = {
		{ 0, "/", "invalid argument" },
		{ 1, "relative", "invalid argument" },
		{ 4194303, "/", "open failed: /proc/4194303: no such file or directory" },
	};
	struct graft_target target = GRAFT_TARGET_INIT;
	struct graft_error err = { 0 };
	char text[1024], want[128];

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		assert_int_equal(graft_target_open(cases[i].pid, true, cases[i].rootfs, NULL, NULL, &target, &err), -1);
		assert_string_equal(graft_error_text(&err, text, sizeof(text)), cases[i].text);
		assert_int_equal(target.root.fd, -1);
	}
	(void)snprintf(want, sizeof(want), "path error: /proc/%d/root/nonexistent: no such file or directory",
		       (int)getpid());
	assert_int_equal(graft_target_open(getpid(), true, "/nonexistent", NULL, NULL, &target, &err), -1);
	assert_string_equal(graft_error_text(&err, text, sizeof(text)), want);
	assert_int_equal(graft_target_open(1, false, "/nonexistent", NULL, NULL, &target, &err), -1);
	assert_string_equal(graft_error_text(&err, text, sizeof(text)),
			    "path error: /nonexistent: no such file or directory");
}

/* The flags of the source's mount are kept; propagation is private. */
static void test_flags_are_added(void **state)
{
	struct world *world = world_new(WORLD_SUPERVISED);
	struct graft_edit *edit;
	struct graft_buffer mounts = { 0 };
	const char *host, *line;

	world_usual_image(world);
	host = graft_arena_printf(world->arena, "%s/host", world->top);
	assert_int_equal(mount(host, host, NULL, MS_BIND, NULL), 0);
	assert_int_equal(mount(NULL, host, NULL, MS_BIND | MS_REMOUNT | MS_NOEXEC | MS_NOATIME, NULL), 0);
	assert_int_equal(mount(NULL, host, NULL, MS_SHARED, NULL), 0);
	edit = world_add(world, GRAFT_EDIT_BIND, "/lib/libcuda.so.550", "/usr/libcuda");
	edit->mode = 0644;
	edit->flags = GRAFT_MOUNT_RDONLY;
	assert_int_equal(world_apply(world), 0);
	world_mounts(world->container, &mounts);
	line = strstr(graft_buffer_text(&mounts), "/image/usr/libcuda ");
	assert_non_null(line);
	if (strncmp(line, "/image/usr/libcuda ro,noexec,noatime - ", 39) != 0)
		fail_msg("%.80s", line);
	assert_int_equal(umount2(host, MNT_DETACH), 0);
	graft_buffer_done(&mounts);
	world_free(world);
}

/* More edits than the soft limit on descriptors allows. */
static void test_many(void **state)
{
	struct world *world = world_new(WORLD_SUPERVISED);
	struct graft_buffer before = { 0 }, after = { 0 };

	world_usual_image(world);
	assert_int_equal(world_apply(world), 0);
	world_process(&before);
	for (int i = 0; i < 2000; i++) {
		struct graft_edit *edit = world_add(world, GRAFT_EDIT_DEVICE, "/dev/nvidia0",
						    graft_arena_printf(world->arena, "/dev/n/channel%d", i));

		edit->major = 195;
		edit->mode = 0666;
		edit->flags = GRAFT_MOUNT_NOSUID;
	}
	assert_int_equal(world_apply(world), 0);
	world_process(&after);
	world_assert_same(&before, &after, "process");
	graft_buffer_done(&before);
	graft_buffer_done(&after);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_standalone),
		cmocka_unit_test(test_supervised),
		cmocka_unit_test(test_userns),
		cmocka_unit_test(test_rootless),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_undo),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_wrong_sources),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_flags_are_added),
		cmocka_unit_test(test_many),
	};

	world_enter("apply_edits");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
