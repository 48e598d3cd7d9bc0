/* SPDX-License-Identifier: Apache-2.0 */
/* mount_places: where mounts will be, as runc 1.1.5 and crun 1.8 make them, whatever links an image and volumes have. */
#include "../unit.h"
#include "creation.h"
#include "start/mount_places.h"

/* What is mounted, in the order in which it is given. */
struct given {
	const char *path, *source; /* the source is in the world */
	const char *at;            /* where it will be; NULL: this cannot be determined */
	char kind; /* 'd': a directory of ours; 'e': its links enter one; 'c': it copies what it covers */
};

/* The image has these links, and the volumes. */
static void make_links(struct world *world)
{
	static const char *const links[][2] = {
		{ "root/to", "/other" },
		{ "root/usr/bin/plain", "../lib/real" },
		{ "root/usr/bin/decoy", "/cover/way/../../shared/x" },
		{ "root/cover/way", "/far/far/away" },
		{ "root/usr/bin/through", "/shared/new/../../usr/lib/x" },
		{ "root/usr/bin/system", "/dev/way/../../etc/x" },
		{ "root/dev/way", "/far/far/away" },
		{ "root/usr/bin/loop", "loop" },
		{ "root/usr/bin/volume", "/data/in/y" },
		{ "root/usr/bin/existing", "/shared/old/../../usr/lib/x" },
		{ "root/usr/bin/again", "/shared/new/../out.keep" },
		{ "volume/in", "/shared" },
		{ "volume/up", "../../lib" },
		{ "host/out", "/etc" },
	};

	world_put(world, "root/etc/.keep", "", 0644);
	world_put(world, "empty/.keep", "", 0644);
	world_put(world, "host/old/.keep", "", 0644);
	for (size_t i = 0; i < GRAFT_COUNT(links); i++) {
		world_put(world, graft_arena_printf(world->arena, "%s.keep", links[i][0]), "", 0644);
		assert_int_equal(symlink(links[i][1], world_path(world, links[i][0])), 0);
	}
}

static void expect_places(struct world *world, const struct given *given, size_t n)
{
	auto_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	struct graft_budget *budget = graft_budget_new(10000);
	struct graft_mount_places places = { .n = 0 };
	int fd = open(world_path(world, "root"), O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_non_null(budget);
	assert_true(fd >= 0);
	graft_image_root_take(&root, fd, budget);
	for (size_t i = 0; i < n; i++) {
		const char *source = given[i].source ? world_path(world, given[i].source) : NULL;
		const struct graft_mount_place place = { .path = given[i].path,
							 .source = source,
							 .directory = given[i].kind == 'd' ? source : NULL,
							 .copies = given[i].kind == 'c' };

		assert_true(graft_mount_places_add(&places, &place, world->arena));
	}
	graft_mount_places_find(&places, &root, world->arena);
	for (size_t i = 0; i < n; i++) {
		const struct graft_mount_place *place = &places.items[i];
		const struct given *expected = &given[place->order - 1];

		print_message("# %s: %s\n", place->path, place->at ? place->at : "nowhere");
		assert_string_equal(place->at ? place->at : "nowhere", expected->at ? expected->at : "nowhere");
		assert_int_equal(place->entered != NULL, expected->kind == 'e');
	}
	(void)graft_budget_free(budget);
}

static void test_links(void **state)
{
	static const struct given given[] = {
		{ "/dev", NULL, "/dev", ' ' },
		{ "/dev/shm", NULL, "/dev/shm", ' ' },
		{ "/usr//bin/./plain", NULL, "/usr/lib/real", ' ' },
		{ "/usr/bin/system", NULL, "/etc/x", ' ' },
		{ "/usr/bin/loop", NULL, NULL, ' ' },
		{ "/usr/bin/decoy", NULL, "/far/shared/x", ' ' },
		{ "/usr/bin/through", NULL, "/usr/lib/x", ' ' },
		{ "/to/new", NULL, "/other/new", ' ' },
		{ "/etc/new", NULL, "/etc/new", ' ' },
		/* ".." after a link, as runc and crun resolve it. */
		{ "/etc/../to/../x", NULL, "/x", ' ' },
		{ "/usr/bin/loop/..", NULL, NULL, ' ' },
		{ "/usr/bin/../../to/y/./../z", NULL, "/other/z", ' ' },
	};

	make_links(*state);
	expect_places(*state, given, GRAFT_COUNT(given));
}

/* What a mount covers is not believed; what it has is. */
static void test_covered_links(void **state)
{
	static const struct given given[] = {
		{ "/usr/bin/decoy", NULL, "/shared/x", 'e' },
		{ "/usr/bin/through", NULL, "/usr/lib/x", 'e' },
		{ "/usr/bin/volume", NULL, "/shared/y", 'e' },
		{ "/data/in/token", NULL, "/shared/token", 'e' },
		{ "/data/up/x", NULL, "/lib/x", ' ' },
		{ "/shared/meant", NULL, "/shared/meant", ' ' },
		{ "/shared/out/x", NULL, "/etc/x", ' ' },
		{ "/cover", "empty", "/cover", ' ' },
		{ "/usr/bin/existing", NULL, "/usr/lib/x", ' ' },
		{ "/usr/bin/again", NULL, "/shared/out.keep", 'e' },
		{ "/data", "volume", "/data", ' ' },
		{ "/shared", "host", "/shared", 'd' },
		{ "/shared/later/../../x", NULL, "/x", 'e' },
	};

	make_links(*state);
	expect_places(*state, given, GRAFT_COUNT(given));
}

/* A tmpfs that gets what it covers covers nothing; what is mounted later at the same depth neither. */
static void test_what_covers_nothing(void **state)
{
	static const struct given copied[] = {
		{ "/cover", NULL, "/cover", 'c' },
		{ "/usr/bin/decoy", NULL, "/far/shared/x", ' ' },
	};
	static const struct given later[] = {
		{ "/usr/bin/decoy", NULL, "/far/shared/x", ' ' },
		{ "/cover/below/it", "empty", "/cover/below/it", ' ' },
		{ "/cover/way/x", "empty", "/far/far/away/x", ' ' },
	};

	make_links(*state);
	expect_places(*state, copied, GRAFT_COUNT(copied));
	expect_places(*state, later, GRAFT_COUNT(later));
}

/*
 * By depth, and at the same depth as given, except for those that are added last, sorted by path
 * (oci_mounts.c). "a" has less depth than "/a".
 */
static void test_order(void **state)
{
	static const struct graft_mount_place given[] = {
		{ .path = "/z/y/x" },
		{ .path = "/c/c" },
		{ .path = "/b/a" },
		{ .path = "/" },
		{ .path = "/b/b", .sorted = true },
		{ .path = "a", .sorted = true },
		{ .path = "/a/a", .sorted = true },
		{ .path = "/b/../b/c/", .sorted = true },
	};
	static const char *const expected[] = { "/a", "/", "/c/c", "/b/a", "/a/a", "/b/b", "/b/c", "/z/y/x" };
	auto_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	struct graft_mount_places places = { .n = 0 };
	struct world *world = *state;

	root.budget = graft_budget_new(10000);
	assert_non_null(root.budget);
	for (size_t i = 0; i < GRAFT_COUNT(given); i++)
		assert_true(graft_mount_places_add(&places, &given[i], world->arena));
	graft_mount_places_find(&places, &root, world->arena);
	for (size_t i = 0; i < GRAFT_COUNT(expected); i++)
		assert_string_equal(places.items[i].path, expected[i]);
	(void)graft_budget_free(root.budget);
}

/* A volume may be led elsewhere, but not over what the runtime makes nodes in. */
static void test_volumes(void **state)
{
	static const struct {
		const char *path, *at;
		bool ours;
		const char *refused; /* where it leads; NULL: not refused */
	} cases[] = {
		{ "/data", "/other", false, NULL },
		{ "/", "/", false, NULL },
		{ "/dev", "/dev", false, NULL },
		{ "/dev/shm", "/dev/shm", false, NULL },
		{ "/proc/self/x", "/proc/1/x", false, NULL },
		{ "/sys/class/x", "/sys/devices/x", false, NULL },
		{ "/data", NULL, false, "to a place that cannot be determined" },
		{ "/data", "/", false, "over the whole root" },
		{ "/data", "/dev", false, "over /dev, /proc or /sys" },
		{ "/data", "/dev/shm", false, "over /dev, /proc or /sys" },
		{ "/data", "/proc/x", false, "over /dev, /proc or /sys" },
		{ "/dev/a", "/dev/b", false, "over /dev, /proc or /sys" },
		{ "/proc/x", "/proc", false, "over /dev, /proc or /sys" },
		{ "/proc/x", "/sys/x", false, "over /dev, /proc or /sys" },
		{ "/sys/x", "/sys", false, "over /dev, /proc or /sys" },
		{ "/proc/x", "/proc/y", true, "over /dev, /proc or /sys" },
	};
	struct world *world = *state;
	struct graft_start create = { .arena = world->arena, .budget = graft_budget_new(10000) };

	assert_non_null(create.budget);
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct graft_mount_place place = { .path = cases[i].path,
						   .given = cases[i].path,
						   .at = cases[i].at,
						   .ours = cases[i].ours,
						   .source = "/volume" };
		const char *message = graft_arena_printf(
		    world->arena, "a link in the image or a volume leads the mount at %s %s", cases[i].path,
		    cases[i].refused ? cases[i].refused : "nowhere");
		struct graft_error err = { .status = GRAFT_OK };
		int rc = graft_mount_place_check_volume(&place, &create, &err);

		print_message("# %s: %s\n", cases[i].path, cases[i].at ? cases[i].at : "nowhere");
		assert_int_equal(rc, cases[i].refused ? -1 : 0);
		if (cases[i].refused) {
			assert_int_equal(err.status, GRAFT_UNSAFE);
			assert_string_equal(err.msg, message);
		}
		/* One that is replaced is not mounted; only a volume has files of the host. */
		place.replaced = true;
		assert_int_equal(graft_mount_place_check_volume(&place, &create, NULL), 0);
		place.replaced = false;
		place.source = NULL;
		assert_int_equal(graft_mount_place_check_volume(&place, &create, NULL), cases[i].at ? 0 : -1);
	}
	create.budget = graft_budget_free(create.budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_links, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_covered_links, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_what_covers_nothing, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_order, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_volumes, world_begin, world_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
