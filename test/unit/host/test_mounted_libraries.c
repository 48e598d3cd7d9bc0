/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts of a specification: which are libraries that the loader will look for. */
#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "fixture.h"
#include "formats/loader/elf.h"
#include "host/mounted_libraries.h"

static const char *const folders[] = { FIXTURE_LIBDIR, "/lib64", "/opt" };

static void make_host(struct fixture *f)
{
	fixture_elf(f, "/libs/libcuda.so.5", &(struct fixture_elf){ .soname = "libcuda.so.1" });
	fixture_elf(f, "/libs/libnone.so", &(struct fixture_elf){ .soname = NULL });
	fixture_elf(f, "/libs/libold.so.5", &(struct fixture_elf){ .soname = "libold.so.1", .bits32 = true });
	/* What cannot be the name of a link beside the library. */
	fixture_elf(f, "/libs/libslash.so.5", &(struct fixture_elf){ .soname = "../x/libslash.so.1" });
	fixture_elf(f, "/libs/libnameless.so.5", &(struct fixture_elf){ .soname = "" });
	fixture_write(f, "/libs/libtext.so.5", "INPUT(-lcuda)\n");
	fixture_write(f, "/libs/libempty.so.5", "");
	fixture_directory(f, "/libs/libdirectory.so");
	fixture_link(f, "libcuda.so.5", "/libs/liblink.so");
}

static void test_rows(void **state)
{
	static const struct {
		const char *file, *path;
		const char *soname; /* NULL: it is another mount */
		bool bits32;
		bool absent, directory;
	} rows[] = {
		{ "libcuda.so.5", FIXTURE_LIBDIR "/libcuda.so.5", "libcuda.so.1", false },
		{ "libcuda.so.5", "/lib/" MACHINE_TRIPLET "/libcuda.so.5", "libcuda.so.1", false },
		{ "libcuda.so.5", "/usr/lib64/libcuda.so.5", "libcuda.so.1", false },
		{ "libcuda.so.5", "/opt//libcuda.so.5", "libcuda.so.1", false },
		{ "liblink.so", "/opt/libanother.so", "libcuda.so.1", false },
		{ "libnone.so", "/opt/libnone.so", "libnone.so", false },
		{ "libold.so.5", "/opt/libold.so.5", "libold.so.1", true },
		/* elsewhere, or by a name that ldconfig passes over */
		{ "libcuda.so.5", "/opt/below/libcuda.so.5", NULL, false },
		{ "libcuda.so.5", FIXTURE_LIBDIR "x/libcuda.so.5", NULL, false },
		{ "libcuda.so.5", "/libcuda.so.5", NULL, false },
		{ "libcuda.so.5", "/opt/cuda.so.5", NULL, false },
		{ "libcuda.so.5", "/opt/libcuda", NULL, false },
		{ "libdirectory.so", "/elsewhere", NULL, false, .directory = true },
		/* no libraries */
		{ "libslash.so.5", "/opt/libslash.so.5", NULL, false },
		{ "libnameless.so.5", "/opt/libnameless.so.5", NULL, false },
		{ "libtext.so.5", "/opt/libtext.so.5", NULL, false },
		{ "libempty.so.5", "/opt/libempty.so.5", NULL, false },
		{ "libdirectory.so", "/opt/libdirectory.so", NULL, false, .directory = true },
		{ "libabsent.so", "/opt/libabsent.so", NULL, false, .absent = true },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
		struct graft_mounted_libraries libraries;
		int fds = test_count_fds();
		struct graft_cdi_mount mount = { .container_path = rows[i].path };
		const struct graft_cdi_edits edits = { .mounts = &mount, .n_mounts = 1 };
		struct fixture fixture;
		char file[256];

		fixture_init(&fixture);
		make_host(&fixture);
		(void)snprintf(file, sizeof(file), "%s/libs/%s", fixture.root, rows[i].file);
		mount.host_path = file;
		assert_int_equal(
		    graft_mounted_libraries_read(&edits, folders, GRAFT_COUNT(folders), arena, &libraries, NULL), 0);
		if (libraries.n != (rows[i].soname != NULL) || libraries.n_others != (rows[i].soname == NULL))
			fail_msg("row %zu: %zu libraries, %zu others", i, libraries.n, libraries.n_others);
		/* What is there is there, library or not. */
		if (libraries.n_sources != !rows[i].absent || libraries.n_directories != rows[i].directory)
			fail_msg("row %zu: %zu sources, %zu directories", i, libraries.n_sources,
				 libraries.n_directories);
		if (!rows[i].absent)
			assert_string_equal(libraries.sources[0], file);
		if (rows[i].directory)
			assert_string_equal(libraries.directories[0], rows[i].path);
		if (rows[i].soname) {
			assert_string_equal(libraries.items[0].soname, rows[i].soname);
			assert_string_equal(libraries.items[0].path, rows[i].path);
			assert_int_equal(libraries.items[0].abi_flags,
					 rows[i].bits32 ? graft_abi_flags_compat32() : graft_abi_flags_native());
		} else {
			assert_string_equal(libraries.others[0], rows[i].path);
		}
		fixture_done(&fixture);
		graft_arena_free(arena);
		assert_int_equal(test_count_fds(), fds);
	}
}

/* A file system that has no place on the host covers what is below it as well. */
static void test_file_system(void **state)
{
	struct graft_cdi_mount mount = { .host_path = "tmpfs", .container_path = "/opt", .type = "tmpfs" };
	const struct graft_cdi_edits edits = { .mounts = &mount, .n_mounts = 1 };
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_mounted_libraries libraries;

	assert_int_equal(graft_mounted_libraries_read(&edits, folders, GRAFT_COUNT(folders), arena, &libraries, NULL),
			 0);
	assert_int_equal(libraries.n_sources, 0);
	assert_int_equal(libraries.n_others, 1);
	assert_int_equal(libraries.n_directories, 1);
	assert_string_equal(libraries.directories[0], "/opt");
	graft_arena_free(arena);
}

static void test_memory(void **state)
{
	struct graft_cdi_mount mount = { .host_path = "/nowhere", .container_path = "/opt/x" };
	const struct graft_cdi_edits edits = { .mounts = &mount, .n_mounts = 1 };
	struct graft_arena *arena = graft_arena_new(1);
	struct graft_mounted_libraries libraries;
	struct graft_error err = { .status = GRAFT_OK };

	assert_int_equal(graft_mounted_libraries_read(&edits, folders, GRAFT_COUNT(folders), arena, &libraries, &err),
			 -1);
	assert_int_equal(err.status, GRAFT_NO_MEMORY);
	graft_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows), cmocka_unit_test(test_file_system),
					    cmocka_unit_test(test_memory) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
