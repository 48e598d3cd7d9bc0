/* SPDX-License-Identifier: Apache-2.0 */
/* mount_places: where mounts will be, as runc 1.1.5 and crun 1.8 make them, whatever links an image and volumes have. */
#include "../unit.h"
#include "creation.h"
#include "start/mount_places.h"

/* What is made, in this order. */
struct given {
	const char *path, *source; /* the source is in the world */
	const char *at;            /* where it will be; NULL: this cannot be determined */
	/*
	 * 'd': a directory of ours; 'e': its links enter one; 'c': it copies what it covers; 'o': its
	 * links cannot be examined; 'k': a file system of the kernel; 'n': a node; 'w': ours, and its
	 * links enter its own directory
	 */
	char kind;
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
	places.items = graft_arena_list(world->arena, n, sizeof(*places.items));
	places.n = n;
	assert_non_null(places.items);
	for (size_t i = 0; i < n; i++) {
		const char *source = given[i].source ? world_path(world, given[i].source) : NULL;

		places.items[i] = (struct graft_mount_place){ .made = given[i].kind == 'n' ? GRAFT_MADE_NODE
											   : GRAFT_MADE_MOUNT,
							      .given = given[i].path,
							      .source = source,
							      .directory = given[i].kind == 'd' ? source : NULL,
							      .ours = given[i].kind == 'w',
							      .opaque = given[i].kind == 'o',
							      .linked = given[i].kind == 'k',
							      .copies = given[i].kind == 'c' };
	}
	graft_mount_places_find(&places, &root, world->arena);
	for (size_t i = 0; i < n; i++) {
		const struct graft_mount_place *place = &places.items[i];

		print_message("# %s: %s\n", place->path, place->at ? place->at : "nowhere");
		assert_string_equal(place->at ? place->at : "nowhere", given[i].at ? given[i].at : "nowhere");
		assert_int_equal(place->entered != NULL, given[i].kind == 'e');
	}
	(void)graft_budget_free(budget);
}

static void test_links(void **state)
{
	static const struct given given[] = {
		{ "/dev", NULL, "/dev", ' ' },
		{ "/dev/shm", NULL, "/dev/shm", ' ' },
		{ "/dev/./dri", NULL, "/dev/dri", ' ' },
		{ "/dev/dri/../x", NULL, NULL, ' ' },
		{ "/dev/fd", NULL, NULL, ' ' }, /* also if the image's own /dev stays */
		{ "/usr//bin/./plain", NULL, "/usr/lib/real", ' ' },
		{ "/usr/bin/system", NULL, "/etc/x", ' ' },
		{ "/usr/bin/loop", NULL, NULL, ' ' },
		{ "/usr/bin/decoy", NULL, "/far/shared/x", ' ' },
		{ "/usr/bin/through", NULL, "/usr/lib/x", ' ' },
		{ "/to/new", NULL, "/other/new", ' ' },
		{ "/etc/new", NULL, "/etc/new", ' ' },
		{ NULL, NULL, "/", ' ' },
	};

	make_links(*state);
	expect_places(*state, given, GRAFT_COUNT(given));
}

/* ".." after a link: runc creates and mounts at two places. */
static void test_dots(void **state)
{
	static const struct given given[] = {
		{ "/etc/../to/x", NULL, "/other/x", ' ' },
		{ "/etc/../to/../x", NULL, "/x", ' ' },
		{ "/usr/bin/../../to/y/./../z", NULL, "/other/z", ' ' },
		{ "../../to/y", NULL, "/other/y", ' ' },
		{ "/cover/way/../x", NULL, NULL, ' ' },
		{ "/cover/way/../../cover/x", NULL, NULL, ' ' },
		{ "/usr/bin/plain/../z", NULL, NULL, ' ' },
		{ "/usr/bin/loop/..", NULL, NULL, ' ' },
	};

	make_links(*state);
	expect_places(*state, given, GRAFT_COUNT(given));
}

/* What a mount covers is not believed; what it has is. */
static void test_covered_links(void **state)
{
	static const struct given given[] = {
		{ "/cover", "empty", "/cover", ' ' },
		{ "/data", "volume", "/data", ' ' },
		{ "/shared", "host", "/shared", 'd' },
		{ "/usr/bin/decoy", NULL, "/shared/x", 'e' },
		{ "/usr/bin/through", NULL, "/usr/lib/x", 'e' },
		{ "/usr/bin/volume", NULL, "/shared/y", 'e' },
		{ "/data/in/token", NULL, "/shared/token", 'e' },
		{ "/data/in/node", NULL, "/shared/node", 'e' },
		{ "/data/up/x", NULL, "/lib/x", ' ' },
		{ "/shared/meant", NULL, "/shared/meant", ' ' },
		{ "/shared/out/x", NULL, "/etc/x", ' ' },
		{ "/usr/bin/existing", NULL, "/usr/lib/x", ' ' },
		{ "/usr/bin/again", NULL, "/shared/out.keep", 'e' },
		{ "/shared/later/../../x", NULL, "/x", 'e' },
		{ "/shared/own/../own", NULL, "/shared/own", 'w' },
	};

	make_links(*state);
	expect_places(*state, given, GRAFT_COUNT(given));
}

/* Links in a file system that is mounted later cannot be examined; that it is there can. */
static void test_opaque(void **state)
{
	static const struct given given[] = {
		{ "/cover", NULL, "/cover", 'o' },
		{ "/cover/x", NULL, NULL, ' ' },
		{ "/usr/bin/decoy", NULL, NULL, ' ' },
		{ "/etc/new", NULL, "/etc/new", ' ' },
	};

	make_links(*state);
	expect_places(*state, given, GRAFT_COUNT(given));
}

/* Links of sysfs and procfs are not known, so nothing may come there by a link or "..". */
static void test_kernel(void **state)
{
	static const struct given given[] = {
		{ "/far", NULL, "/far", 'k' },
		{ "/far/fs/cgroup", NULL, "/far/fs/cgroup", ' ' },
		{ "/usr/bin/decoy", NULL, NULL, ' ' },
		{ "/etc/../far/x", NULL, NULL, ' ' },
		{ "/far/../etc/x", NULL, "/etc/x", ' ' },
		{ "/far/x/../../etc/x", NULL, NULL, ' ' },
		{ "/etc/new", NULL, "/etc/new", ' ' },
	};

	make_links(*state);
	expect_places(*state, given, GRAFT_COUNT(given));
}

/* A tmpfs that gets what it covers covers nothing; what is mounted later and nodes neither. */
static void test_what_covers_nothing(void **state)
{
	static const struct given given[] = {
		{ "/cover", NULL, "/cover", 'c' },
		{ "/cover", NULL, "/cover", 'n' },
		{ "/usr/bin/decoy", NULL, "/far/shared/x", ' ' },
		{ "/cover/way/x", "empty", "/far/far/away/x", ' ' },
		{ "/cover/below/it", "empty", "/cover/below/it", ' ' },
		{ "/cover", "empty", "/cover", ' ' },
	};

	make_links(*state);
	expect_places(*state, given, GRAFT_COUNT(given));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_links, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_dots, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_covered_links, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_opaque, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_kernel, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_what_covers_nothing, world_begin, world_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
