/* SPDX-License-Identifier: Apache-2.0 */
/* A Tegra board's lists, and what of them is there: SPEC runtime-and-hook 9.1, 9.2, 9.4, 14.18, SPEC ctk-and-cdi 6.10; patterns; memory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "fixture.h"
#include "host/csv.h"
#include "host/lookup.h"

#define LISTS "/etc/nvidia-container-runtime/host-files-for-container.d"
#define TEGRA "/usr/lib/aarch64-linux-gnu/nvidia"

static struct fixture *fixture;
static struct graft_csv_inventory csv;
static char lists[160];

static int setup(void **state)
{
	if (arena_setup(state) < 0 || fixture_set_up(state) < 0)
		return -1;
	fixture = *state;
	(void)snprintf(lists, sizeof(lists), "%s" LISTS, fixture->root);
	return 0;
}

static int teardown(void **state)
{
	(void)arena_teardown(state);
	return fixture_tear_down(state);
}

static struct graft_csv_options options(void)
{
	return (struct graft_csv_options){
		.root = fixture->root, .host_root = fixture->host, .directory = lists, .log = &fixture->logger
	};
}

static void discover(void)
{
	struct graft_csv_options o = options();
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_csv_discover(&o, arena, &csv, &err) < 0)
		fail_msg("%s", err.msg);
}

/* --- which lists --- */

static const char *names_of(bool all_files)
{
	static char result[512];
	const char **paths;
	size_t n;

	assert_int_equal(graft_csv_lists(lists, all_files, &fixture->logger, arena, &paths, &n, NULL), 0);
	result[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		const char *path = paths[i];

		if (strncmp(path, lists, strlen(lists)) == 0)
			path += strlen(lists) + 1;
		(void)snprintf(result + strlen(result), sizeof(result) - strlen(result), "%s%s", i ? " " : "", path);
	}
	return result;
}

static void test_lists(void **state)
{
	static const char usual[] = GRAFT_CSV_DIRECTORY "/devices.csv " GRAFT_CSV_DIRECTORY
							"/drivers.csv " GRAFT_CSV_DIRECTORY "/l4t.csv";

	assert_string_equal(names_of(true), usual);
	fixture_directory(fixture, LISTS);
	assert_string_equal(names_of(true), usual);
	fixture_write(fixture, LISTS "/cudnn.csv", "");
	assert_string_equal(names_of(false), usual);
	assert_string_equal(names_of(true), "cudnn.csv");
	fixture_write(fixture, LISTS "/drivers.csv", "");
	fixture_write(fixture, LISTS "/A.CSV", "");
	fixture_write(fixture, LISTS "/.csv", "");
	fixture_write(fixture, LISTS "/x.csv.bak", "");
	fixture_directory(fixture, LISTS "/dir.csv");
	fixture_link(fixture, "drivers.csv", LISTS "/devices.csv");
	assert_string_equal(names_of(false), "drivers.csv");
	assert_string_equal(names_of(true), "A.CSV cudnn.csv drivers.csv");
}

/* --- patterns --- */

static const struct {
	const char *pattern, *paths;
} patterns[] = {
	{ "/", "/" },
	{ "/a/one", "/a/one" },
	{ "a/one", "/a/one" },
	{ "//a///one", "/a/one" },
	{ "/a/gone", "" },
	{ "/gone/*", "" },
	{ "/a/*", "/a/.hidden /a/one /a/three /a/two" },
	{ "/a/t*", "/a/three /a/two" },
	{ "/a/t?o", "/a/two" },
	{ "/a/[to]*", "/a/one /a/three /a/two" },
	{ "/*/one", "/a/one /b/one /l/one" },
	{ "/[ab]/*e", "/a/one /a/three /b/one" },
	{ "/a/dangling", "" },
	{ "/l/one", "/l/one" },                   /* through a link to /a */
	{ "/c/absolute/one", "/c/absolute/one" }, /* an absolute link stays below the root */
	{ "/c/*", "/c/absolute /c/nowhere" },
	{ "/c/nowhere", "/c/nowhere" },
	{ "/a/\\*", "" },
};

static void test_patterns(void **state)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;

	fixture_write(fixture, "/a/one", "");
	fixture_write(fixture, "/a/two", "");
	fixture_write(fixture, "/a/three", "");
	fixture_write(fixture, "/a/.hidden", "");
	fixture_write(fixture, "/b/one", "");
	fixture_link(fixture, "a", "/l");
	fixture_link(fixture, "/a", "/c/absolute");
	fixture_link(fixture, "/nothing", "/c/nowhere");
	assert_int_equal(graft_root_open(&root, fixture->root, NULL), 0);
	for (size_t i = 0; i < GRAFT_COUNT(patterns); i++) {
		const char **paths = NULL;
		char joined[512] = "";
		size_t n = 0;
		int rc = graft_pattern_expand(&root, patterns[i].pattern, arena, &paths, &n);

		print_message("# %s\n", patterns[i].pattern);
		assert_int_equal(rc, n);
		for (size_t j = 0; j < n; j++)
			(void)snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s", j ? " " : "",
				       paths[j]);
		assert_string_equal(joined, patterns[i].paths);
	}
}

/* A pattern over everything ends by its limit. */
static void test_pattern_limit(void **state)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	const char **paths = NULL;
	char path[64];
	size_t n = 0;

	for (int i = 0; i < 130; i++) {
		(void)snprintf(path, sizeof(path), "/x/f%d", i);
		fixture_write(fixture, path, "");
	}
	for (int i = 0; i < 130; i++) {
		(void)snprintf(path, sizeof(path), "/y/l%d", i);
		fixture_link(fixture, "../x", path);
	}
	assert_int_equal(graft_root_open(&root, fixture->root, NULL), 0);
	assert_int_equal(graft_pattern_expand(&root, "/y/*/*", arena, &paths, &n), -E2BIG);
}

/* --- files and links --- */

static const char *files_text(void)
{
	static char result[4096];

	result[0] = '\0';
	for (size_t i = 0; i < csv.n_files; i++) {
		const struct graft_csv_file *file = &csv.files[i];

		(void)snprintf(result + strlen(result), sizeof(result) - strlen(result), "%s%s -> %s%s%s\n",
			       file->source, file->directory ? "/" : "", file->target, file->soname ? " " : "",
			       file->soname ? file->soname : "");
	}
	return result;
}

static const char *links_text(void)
{
	static char result[4096];

	result[0] = '\0';
	for (size_t i = 0; i < csv.n_links; i++)
		(void)snprintf(result + strlen(result), sizeof(result) - strlen(result), "%s%s::%s\n",
			       csv.links[i].listed ? "*" : "", csv.links[i].says, csv.links[i].path);
	return result;
}

static void library(const char *path, const char *soname)
{
	fixture_elf(fixture, path, &(struct fixture_elf){ .soname = soname });
}

static void test_orin(void **state)
{
	library(TEGRA "/libcuda.so.1.1", "libcuda.so.1");
	fixture_link(fixture, "libcuda.so.1.1", TEGRA "/libcuda.so");
	library(TEGRA "/libnvidia-ml.so.1", "libnvidia-ml.so.1");
	fixture_write(fixture, LISTS "/drivers.csv",
		      "lib, " TEGRA "/libcuda.so.1.1\nlib, " TEGRA
		      "/libnvidia-ml.so.1\ndir, /etc/none\nlib, /usr/lib/none*.so\n");
	fixture_write_host(fixture, "/etc/nv_tegra_release", "# R36\n");
	discover();
	assert_string_equal(files_text(),
			    TEGRA "/libcuda.so.1.1 -> " TEGRA "/libcuda.so.1.1 libcuda.so.1\n" TEGRA
				  "/libnvidia-ml.so.1 -> " TEGRA "/libnvidia-ml.so.1 libnvidia-ml.so.1\n");
	assert_string_equal(links_text(),
			    "libcuda.so.1::" TEGRA "/libcuda.so\nlibcuda.so.1.1::" TEGRA "/libcuda.so.1\n");
	assert_true(csv.release_file);
	assert_int_equal(csv.n_omissions, 2);
	assert_string_equal(csv.omissions[0].what, "/etc/none");
	assert_string_equal(csv.omissions[1].why, "no such file");
	assert_non_null(strstr(fixture->log, "missing /usr/lib/none*.so: no such file"));
}

/* A list's own link stays as the list has it, and every link of its chain is made again. */
static void test_chain(void **state)
{
	library(TEGRA "/libnvx.so.1.0.0", "libnvx.so.1");
	fixture_link(fixture, "libnvx.so.1.0.0", TEGRA "/libnvx.so.1");
	fixture_link(fixture, TEGRA "/libnvx.so.1", "/usr/lib/libnvx.so");
	fixture_link(fixture, "nothing", "/usr/lib/libgone.so");
	fixture_write(fixture, LISTS "/l4t.csv",
		      "sym, /usr/lib/libnvx.so\nsym, /usr/lib/libgone.so\nlib, " TEGRA "/libnvx.so.1\nsym, " TEGRA
		      "/libnvx.so.1.0.0\n");
	discover();
	assert_string_equal(files_text(), TEGRA "/libnvx.so.1.0.0 -> " TEGRA "/libnvx.so.1.0.0 libnvx.so.1\n");
	assert_string_equal(links_text(),
			    "*" TEGRA "/libnvx.so.1::/usr/lib/libnvx.so\n*libnvx.so.1.0.0::" TEGRA "/libnvx.so.1\n");
	assert_int_equal(csv.n_omissions, 1);
}

static void test_kinds(void **state)
{
	fixture_write(fixture, "/etc/alsa/a.conf", "");
	fixture_link(fixture, "alsa", "/etc/sound");
	fixture_write(fixture, TEGRA "/nvidia_icd.json", "{}");
	fixture_write(fixture, TEGRA "/libtext.so.1", "no ELF");
	library(TEGRA "/libplain.so", NULL);
	fixture_write(fixture, LISTS "/l4t.csv",
		      "dir, /etc/sound\ndir, " TEGRA "/nvidia_icd.json\nlib, /etc/alsa\nlib, " TEGRA "/*\nlib, " TEGRA
		      "/libplain.so\n");
	discover();
	/* A directory keeps its name; a file is no directory and a directory no file; what is listed twice is there once. */
	assert_string_equal(files_text(), "/etc/alsa/ -> /etc/sound\n" TEGRA "/libplain.so -> " TEGRA
					  "/libplain.so libplain.so\n" TEGRA "/libtext.so.1 -> " TEGRA
					  "/libtext.so.1\n" TEGRA "/nvidia_icd.json -> " TEGRA "/nvidia_icd.json\n");
	assert_string_equal(links_text(), "");
	assert_int_equal(csv.n_omissions, 2);
}

/* SPEC ctk-and-cdi 4.10, 6.10: links that a caller does without, by whole path or by name; libraries where a caller says; lists that a caller names. */
static void test_callers_choice(void **state)
{
	static const struct {
		const char *ignored, *links;
	} rows[] = {
		{ NULL, "*libx.so.1::/usr/lib/libx.so\n*liby.so.1::/usr/lib/sub/liby.so\n" },
		{ "*.so", "*libx.so.1::/usr/lib/libx.so\n*liby.so.1::/usr/lib/sub/liby.so\n" },
		{ "/usr/lib/*.so", "*liby.so.1::/usr/lib/sub/liby.so\n" },
		{ "**/*.so", "" },
		{ "**/liby.*", "*libx.so.1::/usr/lib/libx.so\n" },
		{ "**/lib/libx.so", "*libx.so.1::/usr/lib/libx.so\n*liby.so.1::/usr/lib/sub/liby.so\n" },
	};
	static const char *const directories[] = { "/nowhere", "/opt/lib" };
	struct graft_error err = { .status = GRAFT_OK };
	char list[256];
	const char *files[] = { list };

	(void)snprintf(list, sizeof(list), "%s/my.csv", fixture->root);
	fixture_write(fixture, "/usr/lib/libx.so.1", "");
	fixture_link(fixture, "libx.so.1", "/usr/lib/libx.so");
	fixture_write(fixture, "/usr/lib/sub/liby.so.1", "");
	fixture_link(fixture, "liby.so.1", "/usr/lib/sub/liby.so");
	library("/opt/lib/libz.so.1", "libz.so.1");
	fixture_write(fixture, LISTS "/l4t.csv", "lib, /usr/lib/libx.so.1\n"); /* not asked for */
	fixture_write(fixture, "/my.csv", "sym, /usr/lib/libx.so\nsym, /usr/lib/sub/liby.so\nlib, libz.so.1\n");
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_csv_options o = options();

		o.files = files;
		o.n_files = 1;
		o.ignored = &rows[i].ignored;
		o.n_ignored = rows[i].ignored != NULL;
		o.library_directories = directories;
		o.n_library_directories = GRAFT_COUNT(directories);
		assert_int_equal(graft_csv_discover(&o, arena, &csv, &err), 0);
		assert_string_equal(links_text(), rows[i].links);
		assert_non_null(strstr(files_text(), "/opt/lib/libz.so.1 -> /opt/lib/libz.so.1 libz.so.1\n"));
		assert_int_equal(csv.n_omissions, 0);
	}
}

static void test_dev_root(void **state)
{
	struct graft_csv_options o = options();
	struct graft_error err = { .status = GRAFT_OK };
	char dev_root[256];

	if (!fixture_has_nodes())
		skip();
	(void)snprintf(dev_root, sizeof(dev_root), "%s/other", fixture->root);
	fixture_node(fixture, "/dev/nvmap", 10, 124, 0400);
	fixture_node(fixture, "/other/dev/nvmap", 10, 125, 0400);
	fixture_write(fixture, LISTS "/devices.csv", "dev, /dev/nvmap\n");
	o.dev_root = dev_root;
	assert_int_equal(graft_csv_discover(&o, arena, &csv, &err), 0);
	assert_int_equal(csv.n_nodes, 1);
	assert_int_equal(csv.nodes[0].minor, 125);
	assert_string_equal(csv.dev_root, dev_root);
	o.dev_root = "/does/not/exist";
	assert_int_equal(graft_csv_discover(&o, arena, &csv, &err), -1);
}

static void test_nodes(void **state)
{
	if (!fixture_has_nodes())
		skip();
	fixture_node(fixture, "/dev/nvmap", 10, 124, 0400);
	fixture_node(fixture, "/dev/nvhost-gpu", 505, 1, 0660);
	fixture_node(fixture, "/dev/nvhost-ctrl", 505, 0, 0660);
	fixture_node(fixture, "/dev/nvidia2", 195, 2, 0666);
	fixture_write(fixture, "/dev/nvhost-file", "");
	fixture_link(fixture, "nvmap", "/dev/nvhost-link");
	fixture_write(fixture, LISTS "/devices.csv",
		      "dev, /dev/nvmap\ndev, nvhost-*\ndev, /dev/nvhost-ctrl\ndev, gone\ndev, /dev/nvhost-file\n");
	discover();
	assert_int_equal(csv.n_nodes, 3);
	assert_string_equal(csv.nodes[0].path, "/dev/nvmap");
	assert_int_equal(csv.nodes[0].major, 10);
	assert_int_equal(csv.nodes[0].minor, 124);
	assert_int_equal(csv.nodes[0].mode, 0400);
	assert_string_equal(csv.nodes[1].path, "/dev/nvhost-ctrl");
	assert_string_equal(csv.nodes[2].path, "/dev/nvhost-gpu");
	assert_int_equal(csv.n_driver_nodes, 1);
	assert_string_equal(csv.driver_nodes[0].path, "/dev/nvidia2");
	assert_int_equal(csv.n_omissions, 2);
	assert_string_equal(csv.dev_root, fixture->root);
}

static void test_memory(void **state)
{
	struct graft_csv_options o = options();

	library(TEGRA "/libcuda.so.1.1", "libcuda.so.1");
	fixture_link(fixture, "libcuda.so.1.1", TEGRA "/libcuda.so");
	fixture_write(fixture, LISTS "/drivers.csv", "sym, " TEGRA "/lib*\ndev, x*\ndir, /etc\nlib, /gone\n");
	o.log = NULL;
	for (int n = 1;; n++) {
		struct graft_arena *own = graft_arena_new((size_t)64 << 20);
		struct graft_csv_inventory found;
		struct graft_error err = { .status = GRAFT_OK };
		int rc;

		assert_non_null(own);
		allocation_fail(n);
		rc = graft_csv_discover(&o, own, &found, &err);
		if (!allocation_failed()) {
			assert_int_equal(rc, 0);
			graft_arena_free(own);
			assert_true(n > 3);
			return;
		}
		graft_arena_free(own);
		if (rc < 0)
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lists, setup, teardown),
		cmocka_unit_test_setup_teardown(test_patterns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pattern_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_orin, setup, teardown),
		cmocka_unit_test_setup_teardown(test_chain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nodes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_callers_choice, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dev_root, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
