/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../allocation.h"
#include "../host/fixture.h"
#include "../image_root.h"
#include "../unit.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "formats/loader/elf.h"
#include "image/inspect.h"

struct inspection {
	struct graft_arena *arena;
	struct graft_image image;
};

static struct inspection inspect(struct fixture *fixture, bool want_compat)
{
	struct inspection inspection = { .arena = graft_arena_new(1 << 20) };
	struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	struct graft_error err = { 0 };
	int fds = test_count_fds();

	assert_int_equal(test_image_root_open(&root, fixture->root), 0);
	if (graft_image_inspect(&root, want_compat, &fixture->logger, inspection.arena, &inspection.image, &err) < 0)
		fail_msg("%s: %s", err.ctx, err.msg);
	test_image_root_close(&root);
	assert_int_equal(test_count_fds(), fds);
	return inspection;
}

/* The loader alone: the same as when all is looked at, and nothing besides. */
static void compare_loader(struct fixture *fixture, const struct graft_image *whole)
{
	struct graft_arena *arena = graft_arena_new(1 << 20);
	struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	struct graft_error err = { 0 };
	struct graft_image image;

	assert_int_equal(test_image_root_open(&root, fixture->root), 0);
	assert_int_equal(graft_image_inspect_loader(&root, NULL, &fixture->logger, arena, &image, &err), 0);
	assert_int_equal(image.n_compat, 0);
	if (whole->n_compat > 0)
		assert_int_equal(
		    graft_image_inspect_loader(&root, GRAFT_COMPAT_DIRECTORY, &fixture->logger, arena, &image, &err),
		    0);
	assert_int_equal(image.n_compat, whole->n_compat);
	for (size_t i = 0; i < image.n_compat; i++)
		assert_string_equal(image.compat[i].path, whole->compat[i].path);
	test_image_root_close(&root);
	assert_int_equal(image.libc, whole->libc);
	assert_int_equal(image.n_loader_dirs, whole->n_loader_dirs);
	for (size_t i = 0; i < image.n_loader_dirs; i++)
		assert_string_equal(image.loader_dirs[i], whole->loader_dirs[i]);
	assert_int_equal(image.n_added_dirs, whole->n_added_dirs);
	assert_true(!image.musl_path_file == !whole->musl_path_file);
	assert_true(!image.musl_path == !whole->musl_path);
	assert_false(image.usr_lib || image.debian || image.proc_driver);
	(void)graft_arena_free(arena);
}

static bool has_dir(const struct graft_image *image, const char *dir)
{
	for (size_t i = 0; i < image->n_loader_dirs; i++) {
		if (strcmp(image->loader_dirs[i], dir) == 0)
			return true;
	}
	return false;
}

static void test_empty_root(void **state)
{
	struct inspection seen = inspect(*state, true);

	assert_false(seen.image.debian);
	assert_false(seen.image.usr_lib);
	assert_false(seen.image.proc_driver);
	assert_int_equal(seen.image.libc, GRAFT_LIBC_UNKNOWN);
	assert_int_equal(seen.image.n_compat, 0);
	compare_loader(*state, &seen.image);
	(void)graft_arena_free(seen.arena);
}

static void test_debian(void **state)
{
	struct fixture *fixture = *state;
	struct inspection seen;

	fixture_write(fixture, "/etc/debian_version", "12.5\n");
	fixture_write(fixture, "/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
	fixture_write(fixture, "/etc/ld.so.conf.d/multi.conf", FIXTURE_LIBDIR "\n");
	fixture_write(fixture, "/usr" MACHINE_LOADER, "");
	fixture_link(fixture, "usr/lib64", "/lib64");
	fixture_link(fixture, "usr/lib", "/lib");
	fixture_directory(fixture, "/usr/lib");
	fixture_directory(fixture, "/proc/driver/nvidia");
	seen = inspect(fixture, false);
	assert_true(seen.image.debian);
	assert_true(seen.image.usr_lib);
	assert_false(seen.image.usr_lib32);
	assert_false(seen.image.usr_lib_is_usr_lib64);
	assert_true(seen.image.proc_driver);
	assert_true(seen.image.proc_driver_nvidia);
	assert_int_equal(seen.image.libc, GRAFT_LIBC_GLIBC);
	assert_true(has_dir(&seen.image, FIXTURE_LIBDIR));
	assert_null(seen.image.musl_path_file);
	compare_loader(*state, &seen.image);
	(void)graft_arena_free(seen.arena);
}

/* What Graft wrote when the root was used before is not the image's word; what the hook wrote is. */
static void test_own_configuration(void **state)
{
	struct fixture *fixture = *state;
	struct inspection seen;

	fixture_write(fixture, "/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
	fixture_write(fixture, "/etc/ld.so.conf.d/00-graft.conf", "# comment\n/usr/local/cuda/compat\n");
	fixture_write(fixture, "/etc/ld.so.conf.d/00-compat-graft.conf", "/opt/compat\n");
	seen = inspect(fixture, false);
	assert_false(has_dir(&seen.image, "/usr/local/cuda/compat"));
	assert_true(has_dir(&seen.image, "/opt/compat"));
	assert_int_equal(seen.image.n_added_dirs, 1);
	assert_string_equal(seen.image.added_dirs[0], "/usr/local/cuda/compat");
	compare_loader(*state, &seen.image);
	(void)graft_arena_free(seen.arena);
	/* A reading that fails leaves nothing. */
	fixture_write(fixture, "/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf ld.so.conf\n");
	seen = inspect(fixture, false);
	assert_int_equal(seen.image.n_loader_dirs, 0);
	assert_int_equal(seen.image.n_added_dirs, 0);
	(void)graft_arena_free(seen.arena);
}

static void test_one_library_directory(void **state)
{
	struct fixture *fixture = *state;
	struct inspection seen;

	fixture_directory(fixture, "/usr/lib");
	fixture_link(fixture, "lib", "/usr/lib64");
	fixture_directory(fixture, "/usr/lib32");
	seen = inspect(fixture, false);
	assert_true(seen.image.usr_lib_is_usr_lib64);
	assert_true(seen.image.usr_lib32);
	(void)graft_arena_free(seen.arena);
}

static void test_musl(void **state)
{
	struct fixture *fixture = *state;
	struct inspection seen;

	fixture_write(fixture, MACHINE_MUSL_LOADER, "");
	seen = inspect(fixture, false);
	assert_int_equal(seen.image.libc, GRAFT_LIBC_MUSL);
	assert_string_equal(seen.image.musl_path_file, MACHINE_MUSL_PATH);
	assert_null(seen.image.musl_path);
	assert_int_equal(seen.image.n_loader_dirs, 3);
	assert_true(has_dir(&seen.image, "/usr/local/lib"));
	compare_loader(*state, &seen.image);
	(void)graft_arena_free(seen.arena);

	fixture_write(fixture, MACHINE_MUSL_PATH, "/lib\n/opt/lib:relative:/usr/lib\n");
	seen = inspect(fixture, false);
	assert_string_equal(seen.image.musl_path, "/lib\n/opt/lib:relative:/usr/lib\n");
	assert_int_equal(seen.image.n_loader_dirs, 3);
	assert_true(has_dir(&seen.image, "/opt/lib"));
	assert_false(has_dir(&seen.image, "relative"));
	(void)graft_arena_free(seen.arena);
}

static void test_compat(void **state)
{
	struct fixture *fixture = *state;
	struct inspection seen;

	fixture_elf(fixture, "/usr/local/cuda-12.8/compat/libcuda.so.570.86.10",
		    &(struct fixture_elf){ .soname = "libcuda.so.1" });
	fixture_link(fixture, "libcuda.so.570.86.10", "/usr/local/cuda-12.8/compat/libcuda.so.1");
	fixture_elf(fixture, "/usr/local/cuda-12.8/compat/libnvidia-ptxjitcompiler.so.1",
		    &(struct fixture_elf){ .soname = NULL });
	fixture_write(fixture, "/usr/local/cuda-12.8/compat/libbroken.so.1", "no library");
	fixture_write(fixture, "/usr/local/cuda-12.8/compat/readme.so.1", "not lib*");
	fixture_link(fixture, "cuda-12.8", "/usr/local/cuda");
	seen = inspect(fixture, false);
	assert_int_equal(seen.image.n_compat, 0);
	(void)graft_arena_free(seen.arena);
	seen = inspect(fixture, true);
	assert_int_equal(seen.image.n_compat, 2);
	assert_string_equal(seen.image.compat[0].path, "/usr/local/cuda-12.8/compat/libcuda.so.570.86.10");
	assert_string_equal(seen.image.compat[0].soname, "libcuda.so.1");
	assert_int_equal(seen.image.compat[0].major, 570);
	assert_int_equal(seen.image.compat[0].abi_flags, graft_abi_flags_native());
	assert_null(seen.image.compat[1].soname);
	assert_int_equal(seen.image.compat[1].major, 1);
	(void)graft_arena_free(seen.arena);
}

#define CUDA_12_9 "/usr/local/cuda-12.9/compat"

/* Libraries and their links by soname, as NVIDIA's package has them, the directory behind a link. */
static void write_libraries(struct fixture *fixture)
{
	fixture_elf(fixture, CUDA_12_9 "/libcuda.so.575.57.08", &(struct fixture_elf){ .soname = "libcuda.so.1" });
	fixture_elf(fixture, CUDA_12_9 "/libnvidia-nvvm.so.575.57.08",
		    &(struct fixture_elf){ .soname = "libnvidia-nvvm.so.4" });
	fixture_link(fixture, "libcuda.so.575.57.08", CUDA_12_9 "/libcuda.so.1");
	fixture_link(fixture, "libnvidia-nvvm.so.575.57.08", CUDA_12_9 "/libnvidia-nvvm.so.4");
	fixture_link(fixture, "cuda-12.9", "/usr/local/cuda");
}

/* The development links of all libraries: "LIBRARY: LINK LINK" each. In the inspection's arena. */
static const char *links_of(const struct inspection *seen)
{
	struct graft_buffer text = { 0 };
	const char *copy;

	for (size_t i = 0; i < seen->image.n_compat; i++) {
		const struct graft_compat_library *library = &seen->image.compat[i];

		if (library->n_development_links > 0)
			graft_buffer_printf(&text, "%s:", strrchr(library->path, '/') + 1);
		for (size_t j = 0; j < library->n_development_links; j++)
			graft_buffer_printf(&text, " %s%s", library->development_links[j],
					    j + 1 == library->n_development_links ? "\n" : "");
	}
	copy = graft_arena_strdup(seen->arena, graft_buffer_text(&text));
	graft_buffer_done(&text);
	return copy;
}

#define CUDA_LINKED "libcuda.so.575.57.08: libcuda.so\n"

static void test_development_links(void **state)
{
	static const struct {
		const char *says, *name; /* the link */
		const char *expected;
	} rows[] = {
		{ "libcuda.so.1", "libcuda.so", CUDA_LINKED },
		{ "libcuda.so.575.57.08", "libcuda.so", CUDA_LINKED },
		{ CUDA_12_9 "/libcuda.so.1", "libcuda.so", CUDA_LINKED },
		{ "/usr/local/cuda/compat/libcuda.so.1", "libcuda.so", CUDA_LINKED },
		{ "../../../../../../../../../.." CUDA_12_9 "/libcuda.so.1", "libcuda.so", CUDA_LINKED },
		/* Of no soname, of another library's, or of the whole one. */
		{ "libcuda.so.1", "libcud.so", "" },
		{ "libcuda.so.1", "libcuda-12.so", "" },
		{ "libcuda.so.1", "cuda.so", "" },
		{ "libcuda.so.1", "libcuda.s", "" },
		{ "libnvidia-nvvm.so.4", "libcuda.so", "" },
		{ "libcuda.so.1", "libnvidia-nvvm.so", "" },
		/* To what is no library of the directory. */
		{ "/usr/lib/libcuda.so.1", "libcuda.so", "" },
		{ "/opt/libcuda.so.1", "libcuda.so", "" },
		{ "/opt", "libcuda.so", "" },
		{ "libcuda.so", "libcuda.so", "" },
		{ "/proc/self/exe", "libcuda.so", "" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		char path[128];
		struct inspection seen;

		write_libraries(*state);
		fixture_elf(*state, "/opt/libcuda.so.1", &(struct fixture_elf){ .soname = "libcuda.so.1" });
		(void)snprintf(path, sizeof(path), CUDA_12_9 "/%s", rows[i].name);
		fixture_link(*state, rows[i].says, path);
		seen = inspect(*state, true);
		assert_int_equal(seen.image.n_compat, 2);
		if (strcmp(links_of(&seen), rows[i].expected) != 0)
			fail_msg("row %zu: '%s'", i, links_of(&seen));
		(void)graft_arena_free(seen.arena);
		(void)fixture_tear_down(state);
		(void)fixture_set_up(state);
	}
}

/* Each library has its own, in the order of the names; a file of such a name is a library by itself, or nothing. */
static void test_development_links_and_files(void **state)
{
	struct fixture *fixture = *state;
	struct inspection seen;
	char path[256];

	write_libraries(fixture);
	fixture_link(fixture, "libcuda.so.1", CUDA_12_9 "/libcuda.so");
	fixture_link(fixture, "libnvidia-nvvm.so.4", CUDA_12_9 "/libnvidia-nvvm.so");
	fixture_elf(fixture, CUDA_12_9 "/libown.so", &(struct fixture_elf){ .soname = "libown.so.1" });
	fixture_link(fixture, "libown.so", CUDA_12_9 "/libown.so.1");
	fixture_elf(fixture, CUDA_12_9 "/libtwo.so.1", &(struct fixture_elf){ .soname = "libtwo.so.1" });
	fixture_elf(fixture, CUDA_12_9 "/libtwo.so", &(struct fixture_elf){ .soname = "libtwo.so.1" });
	fixture_elf(fixture, CUDA_12_9 "/libfifo.so.1", &(struct fixture_elf){ .soname = "libfifo.so.1" });
	(void)snprintf(path, sizeof(path), "%s" CUDA_12_9 "/libfifo.so", fixture->root);
	assert_int_equal(mkfifo(path, 0644), 0);
	fixture_elf(fixture, CUDA_12_9 "/libunversioned.so.9", &(struct fixture_elf){ .soname = "libunversioned.so" });
	fixture_link(fixture, "libunversioned.so.9", CUDA_12_9 "/libunversioned.so");
	fixture_elf(fixture, CUDA_12_9 "/libnameless.so.1", &(struct fixture_elf){ .soname = NULL });
	fixture_link(fixture, "libnameless.so.1", CUDA_12_9 "/libnameless.so");
	seen = inspect(fixture, true);
	assert_int_equal(seen.image.n_compat, 7);
	assert_string_equal(links_of(&seen), CUDA_LINKED "libnvidia-nvvm.so.575.57.08: libnvidia-nvvm.so\n");
	compare_loader(fixture, &seen.image);
	(void)graft_arena_free(seen.arena);
}

/* No more names are followed than 64, of libraries and of links together. */
static void test_development_links_are_bounded(void **state)
{
	struct fixture *fixture = *state;
	struct inspection seen;
	size_t n_links = 0;

	for (int i = 10; i < 50; i++) {
		char name[16], path[64];

		(void)snprintf(name, sizeof(name), "libx%d.so.1", i);
		(void)snprintf(path, sizeof(path), "/usr/local/cuda/compat/%s", name);
		fixture_elf(fixture, path, &(struct fixture_elf){ .soname = name });
		path[strlen(path) - strlen(".1")] = '\0';
		fixture_link(fixture, name, path);
	}
	seen = inspect(fixture, true);
	assert_int_equal(seen.image.n_compat, 40);
	for (size_t i = 0; i < seen.image.n_compat; i++)
		n_links += seen.image.compat[i].n_development_links;
	assert_int_equal(n_links, 64 - 40);
	(void)graft_arena_free(seen.arena);
}

/* A libcuda with a note: the stub, the note's section, the sections' names, the table of sections. */
static void write_noted(struct fixture *fixture, const char *path, const char *json)
{
	static const char names[] = "\0.shstrtab\0.note.cuda.fwd_compatibility";
	static const char owner[20] = "NVIDIA Corporation";
	uint32_t sizes[3] = { sizeof("NVIDIA Corporation"), (uint32_t)strlen(json), 1 };
	Elf64_Shdr sections[3] = { 0 };
	struct graft_buffer bytes = { 0 };
	struct graft_arena *arena = graft_arena_new(1 << 16);
	struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	const char *stub;
	size_t length;

	fixture_elf(fixture, path, &(struct fixture_elf){ .soname = "libcuda.so.1" });
	assert_int_equal(test_image_root_open(&root, fixture->root), 0);
	assert_int_equal(graft_image_root_read(&root, path, 1 << 16, arena, &stub, &length), 0);
	graft_buffer_add(&bytes, stub, length);
	while (bytes.length % 8 != 0)
		graft_buffer_char(&bytes, '\0');
	sections[1] =
	    (Elf64_Shdr){ .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = bytes.length, .sh_size = sizeof(names) };
	graft_buffer_add(&bytes, names, sizeof(names));
	while (bytes.length % 8 != 0)
		graft_buffer_char(&bytes, '\0');
	sections[2] = (Elf64_Shdr){ .sh_name = 11,
				    .sh_type = SHT_NOTE,
				    .sh_offset = bytes.length,
				    .sh_size = sizeof(sizes) + sizeof(owner) + strlen(json),
				    .sh_addralign = 4 };
	graft_buffer_add(&bytes, sizes, sizeof(sizes));
	graft_buffer_add(&bytes, owner, sizeof(owner));
	graft_buffer_add(&bytes, json, strlen(json));
	while (bytes.length % 8 != 0)
		graft_buffer_char(&bytes, '\0');
	((Elf64_Ehdr *)(void *)bytes.bytes)->e_shoff = bytes.length;
	((Elf64_Ehdr *)(void *)bytes.bytes)->e_shnum = 3;
	((Elf64_Ehdr *)(void *)bytes.bytes)->e_shentsize = sizeof(sections[0]);
	((Elf64_Ehdr *)(void *)bytes.bytes)->e_shstrndx = 1;
	graft_buffer_add(&bytes, sections, sizeof(sections));
	fixture_write_bytes(fixture, path, bytes.bytes, bytes.length);
	graft_buffer_done(&bytes);
	test_image_root_close(&root);
	(void)graft_arena_free(arena);
}

/* What libcuda says of itself. Another library is not asked, and nonsense is as if nothing were said. */
static void test_compat_note(void **state)
{
	static const char json[] =
	    "{\"Format\": 1, \"CUDA Version\": \"12.9\", \"Driver\": [535, 550], \"Device\": []}";
	struct fixture *fixture = *state;
	const struct graft_compat_library *library;
	struct inspection seen;

	write_noted(fixture, "/usr/local/cuda/compat/libcuda.so.575.57.08", json);
	write_noted(fixture, "/usr/local/cuda/compat/libnvidia-nvvm.so.575.57.08", json);
	seen = inspect(fixture, true);
	assert_int_equal(seen.image.n_compat, 2);
	library = &seen.image.compat[0];
	assert_string_equal(library->path, "/usr/local/cuda/compat/libcuda.so.575.57.08");
	assert_true(library->note);
	assert_string_equal(library->note_cuda, "12.9");
	assert_int_equal(library->n_note_drivers, 2);
	assert_string_equal(library->note_drivers[0], "535");
	assert_string_equal(library->note_drivers[1], "550");
	assert_false(seen.image.compat[1].note);
	(void)graft_arena_free(seen.arena);

	write_noted(fixture, "/usr/local/cuda/compat/libcuda.so.575.57.08", "{\"Driver\": ");
	seen = inspect(fixture, true);
	assert_int_equal(seen.image.n_compat, 2);
	assert_false(seen.image.compat[0].note);
	assert_non_null(
	    strstr(fixture->log, "skipping the content of /usr/local/cuda/compat/libcuda.so.575.57.08 of the image"));
	(void)graft_arena_free(seen.arena);
}

/* Boards have a directory of their own: only that one is looked at. */
static void test_compat_elsewhere(void **state)
{
	static const char json[] = "{\"Format\": 1, \"CUDA Version\": \"12.9\", \"Driver\": [], \"Device\": []}";
	struct fixture *fixture = *state;
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	auto_test_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	struct graft_compat_library *libraries;
	size_t n;

	write_noted(fixture, "/usr/local/cuda/compat/libcuda.so.575.57.08", json);
	write_noted(fixture, "/usr/local/cuda/compat_orin/libcuda.so.1.1", json);
	assert_int_equal(test_image_root_open(&root, fixture->root), 0);
	assert_int_equal(
	    graft_image_find_compat(&root, "/usr/local/cuda/compat_orin", NULL, arena, &libraries, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_string_equal(libraries[0].path, "/usr/local/cuda/compat_orin/libcuda.so.1.1");
	assert_true(libraries[0].note);
	assert_string_equal(libraries[0].note_cuda, "12.9");
	assert_int_equal(graft_image_find_compat(&root, "/none", NULL, arena, &libraries, &n, NULL), 0);
	assert_int_equal(n, 0);
	(void)graft_arena_free(arena);
}

/* Nothing of the image makes us leave it, block, or read without end. */
static void test_hostile(void **state)
{
	struct fixture *fixture = *state;
	char path[256], secret[256];
	struct inspection seen;

	/* A compat directory that would be the host's, and one whose entries are a FIFO, a directory and links out. */
	fixture_write_host(fixture, "/compat/libcuda.so.999.1", "host file");
	(void)snprintf(secret, sizeof(secret), "../../../../../../../..%s/compat", fixture->host);
	fixture_link(fixture, secret, "/usr/local/cuda/compat");
	seen = inspect(fixture, true);
	assert_int_equal(seen.image.n_compat, 0);
	(void)graft_arena_free(seen.arena);

	(void)snprintf(path, sizeof(path), "%s/usr/local/cuda/compat", fixture->root);
	assert_int_equal(unlink(path), 0);
	fixture_directory(fixture, "/usr/local/cuda/compat/libdir.so.1");
	(void)snprintf(path, sizeof(path), "%s/usr/local/cuda/compat/libfifo.so.1", fixture->root);
	assert_int_equal(mkfifo(path, 0644), 0);
	fixture_link(fixture, "/proc/self/exe", "/usr/local/cuda/compat/libmagic.so.1");
	fixture_link(fixture, "libloop.so.1", "/usr/local/cuda/compat/libloop.so.1");
	if (fixture_has_nodes())
		fixture_node(fixture, "/usr/local/cuda/compat/libzero.so.1", 1, 5, 0666);
	fixture_write(fixture, MACHINE_MUSL_LOADER, "");
	(void)snprintf(path, sizeof(path), "%s/etc", fixture->root);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s" MACHINE_MUSL_PATH, fixture->root);
	assert_int_equal(mkfifo(path, 0644), 0);
	seen = inspect(fixture, true);
	assert_int_equal(seen.image.n_compat, 0);
	assert_int_equal(seen.image.libc, GRAFT_LIBC_MUSL);
	assert_null(seen.image.musl_path);
	(void)graft_arena_free(seen.arena);

	/* A sparse terabyte. */
	assert_int_equal(unlink(path), 0);
	fixture_write(fixture, MACHINE_MUSL_PATH, "/lib");
	assert_int_equal(truncate(path, (off_t)1 << 40), 0);
	(void)snprintf(path, sizeof(path), "%s/usr/local/cuda/compat/libbig.so.1", fixture->root);
	fixture_write(fixture, "/usr/local/cuda/compat/libbig.so.1", "");
	assert_int_equal(truncate(path, (off_t)1 << 40), 0);
	seen = inspect(fixture, true);
	assert_int_equal(seen.image.n_compat, 0);
	assert_null(seen.image.musl_path);
	(void)graft_arena_free(seen.arena);
}

static void test_json_form(void **state)
{
	struct fixture *fixture = *state;
	struct graft_buffer first = { 0 }, second = { 0 };
	struct graft_image copy = { 0 };
	struct graft_error err = { 0 };
	struct inspection seen;

	fixture_write(fixture, "/etc/debian_version", "12\n");
	fixture_write(fixture, MACHINE_MUSL_LOADER, "");
	fixture_elf(fixture, "/usr/local/cuda/compat/libcuda.so.570.1",
		    &(struct fixture_elf){ .soname = "libcuda.so.1" });
	fixture_link(fixture, "libcuda.so.570.1", "/usr/local/cuda/compat/libcuda.so");
	seen = inspect(fixture, true);
	graft_record_write(&graft_image_record, &seen.image, &first);
	if (graft_record_read(&graft_image_record, first.bytes, first.length, seen.arena, &copy, &err) < 0)
		fail_msg("%s", err.msg);
	graft_record_write(&graft_image_record, &copy, &second);
	assert_string_equal(first.bytes, second.bytes);
	assert_non_null(strstr(first.bytes, "\"development_links\""));
	assert_string_equal(copy.compat[0].development_links[0], "libcuda.so");
	graft_buffer_done(&first);
	graft_buffer_done(&second);
	(void)graft_arena_free(seen.arena);
}

/* Without memory there is an error, or nothing has been lost. */
static void test_allocations_fail(void **state)
{
	struct fixture *fixture = *state;
	int rc = -1, n = 0;

	write_libraries(fixture);
	fixture_link(fixture, "libcuda.so.1", CUDA_12_9 "/libcuda.so");
	while (rc != 0 || n == 0) {
		struct inspection seen = { .arena = graft_arena_new(1 << 20) };
		struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
		struct graft_error err = { 0 };
		int fds;

		assert_int_equal(test_image_root_open(&root, fixture->root), 0);
		fds = test_count_fds();
		allocation_fail(++n);
		rc = graft_image_inspect(&root, true, NULL, seen.arena, &seen.image, &err);
		/* One that fails in the reader is not counted here. */
		assert_false(allocation_failed() && rc == 0);
		assert_int_equal(err.status, rc != 0 ? GRAFT_NO_MEMORY : GRAFT_OK);
		(void)graft_budget_end_child(root.budget);
		assert_int_equal(test_count_fds(), fds);
		if (rc == 0)
			assert_string_equal(links_of(&seen), CUDA_LINKED);
		test_image_root_close(&root);
		(void)graft_arena_free(seen.arena);
	}
	assert_true(n > 1);
}

/* An arena's maximum stands for memory that ends in the middle of a word. */
static void test_arena_is_full(void **state)
{
	struct fixture *fixture = *state;
	struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	int rc = -1;
	size_t max;

	write_libraries(fixture);
	fixture_link(fixture, "libcuda.so.1", CUDA_12_9 "/libcuda.so");
	assert_int_equal(test_image_root_open(&root, fixture->root), 0);
	for (max = 0; rc != 0; max += 16) {
		struct inspection seen = { .arena = graft_arena_new(max) };
		struct graft_error err = { 0 };

		rc = graft_image_inspect(&root, true, NULL, seen.arena, &seen.image, &err);
		assert_int_equal(err.status, rc != 0 ? GRAFT_NO_MEMORY : GRAFT_OK);
		if (rc == 0)
			assert_string_equal(seen.image.compat[0].development_links[0], "libcuda.so");
		(void)graft_arena_free(seen.arena);
	}
	assert_true(max > 256);
	test_image_root_close(&root);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_empty_root),
		TEST(test_debian),
		TEST(test_own_configuration),
		TEST(test_one_library_directory),
		TEST(test_musl),
		TEST(test_compat),
		TEST(test_compat_note),
		TEST(test_compat_elsewhere),
		TEST(test_hostile),
		TEST(test_json_form),
		TEST(test_development_links),
		TEST(test_development_links_and_files),
		TEST(test_development_links_are_bounded),
		TEST(test_allocations_fail),
		TEST(test_arena_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
