/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native refresh in small roots made for each test: what ldconfig would do, and what hostile
 * images try.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../allocation.h"
#include "../elf_stub.h"
#include "../folder.h"
#include "../image_root.h"
#include "../machine.h"
#include "../unit.h"
#include "apply/loader/ldcache_refresh.h"
#include "base/cleanup.h"
#include "base/read.h"
#include "formats/loader/elf.h"
#include "formats/loader/ldcache.h"
#include "image/ldcache_scan.h"

#define LIB   "/usr/lib/" MACHINE_TRIPLET
#define CACHE "/etc/ld.so.cache"

/* The time that a hostile image may take; sanitizers get more. */
#if defined(__SANITIZE_ADDRESS__)
#define TIME_LIMIT_MS 20000
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TIME_LIMIT_MS 20000
#endif
#endif
#ifndef TIME_LIMIT_MS
#define TIME_LIMIT_MS 2000
#endif

struct fixture {
	char top[64]; /* the root is top/root; nothing outside of it may change */
	struct graft_image_root root;
	struct graft_journal *journal;
	struct graft_arena *arena;
};

static struct fixture fix;

/* The processor time of this process and of its readers, which it ends. */
static int64_t spent_ms(void)
{
	int64_t us = 0;

	(void)graft_budget_end_child(fix.root.budget);
	for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++) {
		struct rusage usage;

		assert_int_equal(getrusage(who, &usage), 0);
		us += (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
		      usage.ru_stime.tv_usec;
	}
	return us / 1000;
}

static const char *path_of(const char *path)
{
	return graft_arena_printf(fix.arena, "%s/root%s", fix.top, path);
}

static void make_dirs(const char *path)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "%s", path_of(path));
	for (char *at = text + strlen(fix.top) + 1; (at = strchr(at, '/')) != NULL; at++) {
		*at = '\0';
		(void)mkdir(text, 0755);
		*at = '/';
	}
	(void)mkdir(text, 0755);
}

static void put_bytes(const char *path, const void *bytes, size_t n)
{
	auto_close int fd = open(path_of(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
}

static void put_text(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

static void put_library(const char *path, const char *soname)
{
	struct elf_stub stub;

	elf_stub_make(&stub, soname);
	put_bytes(path, &stub, sizeof(stub));
}

static void put_link(const char *path, const char *text)
{
	assert_int_equal(symlink(text, path_of(path)), 0);
}

/* The text of a link, or NULL if it is not one. */
static const char *link_text(const char *path)
{
	char text[512];
	ssize_t n = readlink(path_of(path), text, sizeof(text));

	return n < 0 ? NULL : graft_arena_strndup(fix.arena, text, (size_t)n);
}

static const char *text_of(const char *path)
{
	const char *bytes = NULL;
	size_t n = 0;
	auto_close int fd = open(path_of(path), O_RDONLY | O_CLOEXEC);

	return fd >= 0 && graft_read_fd(fd, (size_t)1 << 20, fix.arena, &bytes, &n) == 0 ? bytes : NULL;
}

/* Sets the age of a file or directory in seconds. */
static void set_age(const char *path, time_t age)
{
	struct timespec times[2];

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &times[0]), 0);
	times[0].tv_sec -= age;
	times[1] = times[0];
	assert_int_equal(utimensat(AT_FDCWD, path_of(path), times, AT_SYMLINK_NOFOLLOW), 0);
}

static int setup(void **state)
{
	int fd;

	fix = (struct fixture){ .root = GRAFT_IMAGE_ROOT_INIT };
	(void)snprintf(fix.top, sizeof(fix.top), "/tmp/graft-test-XXXXXX");
	fix.arena = graft_arena_new((size_t)64 << 20);
	if (!mkdtemp(fix.top) || !fix.arena)
		return -1;
	make_dirs("/etc");
	make_dirs(LIB);
	make_dirs("/lib");
	fd = test_image_root_open(&fix.root, path_of(""));
	fix.journal = graft_journal_new(NULL);
	return fd >= 0 && fix.journal ? 0 : -1;
}

static int teardown(void **state)
{
	fix.journal = graft_journal_free(fix.journal);
	test_image_root_close(&fix.root);
	(void)test_remove_folder(fix.top);
	fix.arena = graft_arena_free(fix.arena);
	return 0;
}

static struct graft_ldcache_entry cuda_entry(void)
{
	return (struct graft_ldcache_entry){ "libcuda.so.1", LIB "/libcuda.so.1", graft_abi_flags_native() };
}

static const char *folders[] = { LIB };

/* Asks the reader and writes its answer. */
static int apply_edit(const struct graft_edit *edit, enum graft_ldcache_state state, bool early,
		      struct graft_error *err)
{
	const struct graft_loader_additions additions = graft_ldcache_additions(edit);
	struct graft_arena *arena = graft_arena_new((size_t)48 << 20);
	struct graft_loader_work work = { .cache = NULL };
	int rc = arena ? 0 : graft_fail_memory(err);

	if (rc == 0 && !edit->musl_path_file)
		rc = graft_loader_cache_read(&fix.root, &additions, state, early, NULL, arena, &work, err);
	if (rc == 0)
		rc = graft_ldcache_refresh(&fix.root, edit, &work, fix.journal, NULL, err);
	graft_arena_free(arena);
	return rc;
}

/* Applies the edit for one injected library. */
static int refresh_as(struct graft_edit *edit, enum graft_ldcache_state state, bool early, struct graft_error *err)
{
	static struct graft_ldcache_entry entry;

	entry = cuda_entry();
	edit->kind = GRAFT_EDIT_LDCACHE;
	if (!edit->entries) {
		edit->entries = &entry;
		edit->n_entries = 1;
	}
	edit->folders = folders;
	edit->n_folders = 1;
	return apply_edit(edit, state, early, err);
}

static int refresh_with(struct graft_edit *edit, enum graft_ldcache_state state, struct graft_error *err)
{
	return refresh_as(edit, state, false, err);
}

static void refresh(enum graft_ldcache_state state)
{
	struct graft_edit edit = { 0 };
	struct graft_error err = { 0 };

	if (refresh_with(&edit, state, &err) < 0)
		fail_msg("%s: %s", err.msg, strerror(err.sys));
}

/* For images for which both success and an error are right. */
static void refresh_anyhow(enum graft_ldcache_state state)
{
	struct graft_edit edit = { 0 };
	struct graft_error err = { 0 };

	if (refresh_with(&edit, state, &err) < 0)
		print_message("%s\n", err.msg);
}

static struct graft_ldcache read_cache(void)
{
	struct graft_ldcache cache = { 0 };
	struct graft_error err = { 0 };
	const char *bytes = NULL;
	size_t n = 0;
	auto_close int fd = open(path_of(CACHE), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(graft_read_fd(fd, (size_t)1 << 24, fix.arena, &bytes, &n), 0);
	if (graft_ldcache_read(bytes, n, CACHE, fix.arena, &cache, &err) < 0)
		fail_msg("%s", err.msg);
	return cache;
}

/* The path of the n-th record of a soname, or NULL. */
static const char *lookup(const struct graft_ldcache *cache, const char *soname, size_t n)
{
	for (size_t i = 0; i < cache->n_records; i++)
		if (strcmp(cache->records[i].soname, soname) == 0 && n-- == 0)
			return cache->records[i].path;
	return NULL;
}

static void put_cache(const struct graft_ldcache_record *records, size_t n)
{
	struct graft_ldcache cache = { .n_records = n };
	struct graft_buffer out = { 0 };

	cache.records = graft_arena_memdup(fix.arena, records, n * sizeof(*records));
	assert_int_equal(graft_ldcache_write(&cache, &out, NULL), 0);
	put_bytes(CACHE, out.bytes, out.length);
	graft_buffer_done(&out);
}

static void put_image_cache(void)
{
	uint32_t flags = graft_abi_flags_native();
	const struct graft_ldcache_record records[] = {
		{ "libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.1", flags, 0, 0 },
		{ "libcuda.so", LIB "/libcuda.so", flags, 0, 0 },
		{ "libz.so.1", LIB "/libz.so.1", flags, 7, 0 },
		{ "libcuda.so.1", "/lib/i386/libcuda.so.1", MACHINE_ABI_32, 0, 0 },
		{ "libcuda.so.1", LIB "/libcuda.so.1", MACHINE_ABI_32, 0, 0 },
	};

	put_cache(records, GRAFT_COUNT(records));
}

static void test_merge(void **state)
{
	struct graft_ldcache cache;

	put_image_cache();
	refresh(GRAFT_LDCACHE_MERGE);
	cache = read_cache();
	assert_int_equal(cache.n_records, 4);
	assert_string_equal(lookup(&cache, "libcuda.so.1", 0), LIB "/libcuda.so.1");
	/*
	 * The image's libraries of another ABI and in other places stay. Our path now has a file of
	 * ours.
	 */
	assert_string_equal(lookup(&cache, "libcuda.so.1", 1), "/lib/i386/libcuda.so.1");
	assert_null(lookup(&cache, "libcuda.so.1", 2));
	assert_string_equal(lookup(&cache, "libcuda.so", 0), LIB "/libcuda.so");
	assert_string_equal(lookup(&cache, "libz.so.1", 0), LIB "/libz.so.1");
	assert_string_equal(cache.generator, "graft " GRAFT_VERSION);
}

static void test_merge_keeps_hwcaps_but_not_of_ours(void **state)
{
	static const char *names[] = { "x86-64-v2" };
	uint32_t flags = graft_abi_flags_native();
	struct graft_ldcache_record records[] = {
		{ "libcuda.so.1", "/usr/lib/glibc-hwcaps/x86-64-v2/libcuda.so.1", flags, 0, (uint64_t)1 << 62 },
		{ "libz.so.1", "/usr/lib/glibc-hwcaps/x86-64-v2/libz.so.1", flags, 0, (uint64_t)1 << 62 },
	};
	struct graft_ldcache cache = { .records = records, .n_records = 2, .hwcaps = names, .n_hwcaps = 1 };
	struct graft_buffer out = { 0 };

	assert_int_equal(graft_ldcache_write(&cache, &out, NULL), 0);
	put_bytes(CACHE, out.bytes, out.length);
	graft_buffer_done(&out);
	refresh(GRAFT_LDCACHE_MERGE);
	cache = read_cache();
	assert_int_equal(cache.n_records, 2);
	assert_string_equal(lookup(&cache, "libcuda.so.1", 0), LIB "/libcuda.so.1");
	assert_int_equal(cache.n_hwcaps, 1);
	assert_int_equal(cache.records[0].hwcap, (uint64_t)1 << 62);
}

/* Entries are found in the order of the edit (compat before the driver's own). */
static void test_order_of_entries(void **state)
{
	uint32_t flags = graft_abi_flags_native();
	struct graft_ldcache_entry entries[] = {
		{ "libcuda.so.1", "/compat/libcuda.so.1", flags },
		{ "libcuda.so.1", LIB "/libcuda.so.1", flags },
		{ "liba.so.1", LIB "/liba.so.1", flags },
	};
	struct graft_edit edit = { .entries = entries, .n_entries = 3 };
	struct graft_ldcache cache;

	put_image_cache();
	assert_int_equal(refresh_with(&edit, GRAFT_LDCACHE_MERGE, NULL), 0);
	cache = read_cache();
	assert_string_equal(lookup(&cache, "libcuda.so.1", 0), "/compat/libcuda.so.1");
	assert_string_equal(lookup(&cache, "libcuda.so.1", 1), LIB "/libcuda.so.1");
	assert_string_equal(lookup(&cache, "liba.so.1", 0), LIB "/liba.so.1");
}

/* A second start of the container changes nothing: the same bytes and the same inode. */
static void test_again_is_nothing(void **state)
{
	struct stat before, after;

	put_image_cache();
	refresh(GRAFT_LDCACHE_MERGE);
	assert_int_equal(stat(path_of(CACHE), &before), 0);
	refresh(GRAFT_LDCACHE_MERGE);
	assert_int_equal(stat(path_of(CACHE), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_mode & 07777, 0644);
}

static void make_image(void)
{
	put_text("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
	make_dirs("/etc/ld.so.conf.d");
	put_text("/etc/ld.so.conf.d/" MACHINE_TRIPLET ".conf", "/usr/local/lib\n" LIB "\n");
	make_dirs("/usr/local/lib");
	put_library(LIB "/libcuda.so.550.54.14", "libcuda.so.1");
	put_library(LIB "/liba.so.1.2", "liba.so.1");
	put_library(LIB "/liba.so.1.10", "liba.so.1");
	put_link(LIB "/liba.so", "liba.so.1.10");
	put_library(LIB "/libnosoname.so", NULL);
	put_text(LIB "/libscript.so", "INPUT(libc.so.6)\n");
	put_library(LIB "/notalibrary.so", "notalibrary.so");
	put_link(LIB "/libgone.so.1", "libgone.so.1.0");
	put_link(LIB "/libgone.so", "libgone.so.1.0");
	put_library("/lib/libimpl.so.9", "libother.so.1");
	put_library("/lib/libreal.so.1", "libreal.so.1");
	put_library("/lib/libreal.so.1.5", "libreal.so.1");
	make_dirs(LIB "/glibc-hwcaps/x86-64-v3");
	put_library(LIB "/glibc-hwcaps/x86-64-v3/liba.so.1.2", "liba.so.1");
}

static void test_rebuild(void **state)
{
	struct graft_ldcache cache;

	make_image();
	refresh(GRAFT_LDCACHE_REBUILD);
	cache = read_cache();
	assert_string_equal(lookup(&cache, "libcuda.so.1", 0), LIB "/libcuda.so.1");
	assert_null(lookup(&cache, "libcuda.so.1", 1));
	assert_string_equal(lookup(&cache, "liba.so.1", 0), LIB "/glibc-hwcaps/x86-64-v3/liba.so.1.2");
	assert_string_equal(lookup(&cache, "liba.so.1", 1), LIB "/liba.so.1");
	assert_null(lookup(&cache, "liba.so.1", 2));
	assert_string_equal(lookup(&cache, "liba.so", 0), LIB "/liba.so");
	assert_string_equal(lookup(&cache, "libnosoname.so", 0), LIB "/libnosoname.so");
	assert_null(lookup(&cache, "libscript.so", 0));
	assert_null(lookup(&cache, "notalibrary.so", 0));
	assert_string_equal(lookup(&cache, "libother.so.1", 0), "/lib/libother.so.1");
	assert_int_equal(cache.n_hwcaps, 1);
	assert_string_equal(cache.hwcaps[0], "x86-64-v3");
	/* Links as ldconfig would make them. */
	assert_string_equal(link_text(LIB "/libcuda.so.1"), "libcuda.so.550.54.14");
	assert_string_equal(link_text(LIB "/liba.so.1"), "liba.so.1.10");
	assert_string_equal(link_text("/lib/libother.so.1"), "libimpl.so.9");
	assert_null(link_text(LIB "/libgone.so.1"));
	assert_string_equal(link_text(LIB "/libgone.so"), "libgone.so.1.0");
	/* A file stays a file even if a greater name has its soname. */
	assert_null(link_text("/lib/libreal.so.1"));
	assert_null(link_text(LIB "/glibc-hwcaps/x86-64-v3/liba.so.1"));
}

static void test_undo(void **state)
{
	struct stat st;

	make_image();
	put_link(LIB "/liba.so.1", "liba.so.1.2");
	put_text(CACHE, "damaged");
	refresh(GRAFT_LDCACHE_REBUILD);
	assert_string_equal(link_text(LIB "/liba.so.1"), "liba.so.1.10");
	graft_journal_undo(fix.journal, NULL);
	assert_string_equal(text_of(CACHE), "damaged");
	assert_string_equal(link_text(LIB "/liba.so.1"), "liba.so.1.2");
	assert_string_equal(link_text(LIB "/libgone.so.1"), "libgone.so.1.0");
	assert_int_equal(lstat(path_of(LIB "/libcuda.so.1"), &st), -1);
}

static void test_state(void **state)
{
	make_image();
	assert_int_equal(graft_ldcache_state(&fix.root, NULL), GRAFT_LDCACHE_REBUILD);
	refresh(GRAFT_LDCACHE_REBUILD);
	assert_int_equal(graft_ldcache_state(&fix.root, NULL), GRAFT_LDCACHE_MERGE);
	set_age(CACHE, 100);
	assert_int_equal(graft_ldcache_state(&fix.root, NULL), GRAFT_LDCACHE_REBUILD);
	set_age(LIB, 200);
	set_age(LIB "/glibc-hwcaps/x86-64-v3", 200);
	set_age("/lib", 200);
	assert_int_equal(graft_ldcache_state(&fix.root, NULL), GRAFT_LDCACHE_MERGE);
	/*
	 * Old enough but never scanned: its file in ld.so.conf.d was added without running
	 * ldconfig.
	 */
	put_library("/usr/local/lib/liblocal.so.1", "liblocal.so.1");
	set_age("/usr/local/lib", 300);
	assert_int_equal(graft_ldcache_state(&fix.root, NULL), GRAFT_LDCACHE_REBUILD);
	assert_int_equal(unlink(path_of("/usr/local/lib/liblocal.so.1")), 0);
	put_text("/usr/local/lib/liblocal.so.1", "not a library");
	assert_int_equal(graft_ldcache_state(&fix.root, NULL), GRAFT_LDCACHE_MERGE);
	put_text(CACHE, "damaged");
	assert_int_equal(graft_ldcache_state(&fix.root, NULL), GRAFT_LDCACHE_REBUILD);
}

static const char *missing[] = { "/opt/driver" };

static void refresh_missing(void)
{
	struct graft_edit edit = { .missing_folders = missing, .n_missing_folders = 1 };
	struct graft_error err = { 0 };

	if (refresh_with(&edit, GRAFT_LDCACHE_REBUILD, &err) < 0)
		fail_msg("%s: %s", err.msg, strerror(err.sys));
}

#define OUR_CONF "/etc/ld.so.conf.d/00-graft.conf"

static void test_missing_folder(void **state)
{
	make_image();
	refresh_missing();
	assert_non_null(strstr(text_of("/etc/ld.so.conf.d/00-graft.conf"), "\n/opt/driver\n"));
	assert_string_equal(text_of("/etc/ld.so.conf"), "include /etc/ld.so.conf.d/*.conf\n");
	graft_journal_undo(fix.journal, NULL);
	assert_null(text_of("/etc/ld.so.conf.d/00-graft.conf"));
}

/* The cache is made all the same. */
static void test_own_configuration_has_no_place(void **state)
{
	make_image();
	make_dirs(OUR_CONF);
	put_text(OUR_CONF "/full", "");
	refresh_missing();
	assert_non_null(text_of(CACHE));
	assert_string_equal(text_of(OUR_CONF "/full"), "");
	graft_journal_undo(fix.journal, NULL);
	assert_string_equal(text_of(OUR_CONF "/full"), "");
	assert_null(text_of(CACHE));
}

#define COMMENT "# Directories of the injected GPU driver libraries.\n"
#define COMPAT  "/usr/local/cuda/compat"

static ino_t inode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path_of(path), &st), 0);
	return st.st_ino;
}

/* Our file lists what is missing now, whatever it listed before. */
static void test_missing_folders_of_before(void **state)
{
	struct graft_edit none = { .kind = GRAFT_EDIT_LDCACHE };
	struct graft_error err = { 0 };
	ino_t inode;

	make_image();
	put_text(OUR_CONF, COMMENT COMPAT "\n/opt/driver\n");
	refresh_missing();
	assert_string_equal(text_of(OUR_CONF), COMMENT "/opt/driver\n");
	inode = inode_of(OUR_CONF);
	refresh_missing();
	assert_int_equal(inode_of(OUR_CONF), inode);
	assert_int_equal(refresh_with(&none, GRAFT_LDCACHE_REBUILD, &err), 0);
	assert_string_equal(text_of(OUR_CONF), COMMENT);
	assert_string_equal(text_of("/etc/ld.so.conf"), "include /etc/ld.so.conf.d/*.conf\n");
	inode = inode_of(OUR_CONF);
	assert_int_equal(refresh_with(&none, GRAFT_LDCACHE_REBUILD, &err), 0);
	assert_int_equal(inode_of(OUR_CONF), inode);
	graft_journal_undo(fix.journal, NULL);
	assert_string_equal(text_of(OUR_CONF), COMMENT COMPAT "\n/opt/driver\n");
}

/* If nothing is missing, and our file does not exist or is not ours, it is not made. */
static void test_nothing_was_missing(void **state)
{
	struct graft_edit none = { .kind = GRAFT_EDIT_LDCACHE };
	struct graft_error err = { 0 };

	make_image();
	assert_int_equal(refresh_with(&none, GRAFT_LDCACHE_REBUILD, &err), 0);
	assert_int_equal(access(path_of(OUR_CONF), F_OK), -1);
	make_dirs(OUR_CONF);
	assert_int_equal(refresh_with(&none, GRAFT_LDCACHE_REBUILD, &err), 0);
	assert_int_equal(access(path_of(OUR_CONF), F_OK), 0);
}

/*
 * An up-to-date cache has libraries of a directory that is no longer searched: it is rebuilt, and no
 * link of the image changes.
 */
static void test_records_of_before(void **state)
{
	const struct graft_ldcache_record before[] = {
		{ .soname = "libcuda.so", .path = COMPAT "/libcuda.so", .flags = graft_abi_flags_native() },
		{ .soname = "libcuda.so.1", .path = COMPAT "/libcuda.so.1", .flags = graft_abi_flags_native() },
	};
	struct graft_ldcache cache;

	make_image();
	make_dirs(COMPAT);
	put_library(COMPAT "/libcuda.so.1", "libcuda.so.1");
	put_link(COMPAT "/libcuda.so", "libcuda.so.1");
	put_text(OUR_CONF, COMMENT COMPAT "\n");
	put_cache(before, GRAFT_COUNT(before));
	refresh(GRAFT_LDCACHE_MERGE);
	assert_string_equal(text_of(OUR_CONF), COMMENT);
	cache = read_cache();
	assert_null(lookup(&cache, "libcuda.so", 0));
	assert_string_equal(lookup(&cache, "libcuda.so.1", 0), LIB "/libcuda.so.1");
	assert_null(lookup(&cache, "libcuda.so.1", 1));
	assert_string_equal(link_text(LIB "/libgone.so.1"), "libgone.so.1.0");
}

static void test_missing_folder_without_configuration(void **state)
{
	refresh_missing();
	assert_string_equal(text_of("/etc/ld.so.conf"), "include /etc/ld.so.conf.d/00-graft.conf\n");
	refresh_missing();
	assert_string_equal(text_of("/etc/ld.so.conf"), "include /etc/ld.so.conf.d/00-graft.conf\n");
	graft_journal_undo(fix.journal, NULL);
	assert_null(text_of("/etc/ld.so.conf"));
	assert_int_equal(access(path_of("/etc/ld.so.conf.d"), F_OK), -1);
}

static void test_missing_folder_with_configuration_that_includes_nothing(void **state)
{
	put_text("/etc/ld.so.conf", "/usr/lib\n");
	refresh_missing();
	assert_string_equal(text_of("/etc/ld.so.conf"), "include /etc/ld.so.conf.d/00-graft.conf\n/usr/lib\n");
}

/* The usual include line is trusted if it is alone; the other ones are resolved. */
static void test_missing_folder_and_ways_to_include(void **state)
{
	static const struct {
		const char *text;
		bool adds;
	} rows[] = {
		{ "include /etc/ld.so.conf.d/*.conf", false },
		{ "/opt\ninclude /etc/ld.so.conf.d/*.conf\n/x\n", false },
		{ "  include  ld.so.conf.d/*.conf # all\n", false },
		{ "include ld.so.conf.d/0*\n", false },
		{ "# include /etc/ld.so.conf.d/*.conf\n", true },
		{ "include /etc/ld.so.conf.d/*.conf.old\n", true },
		{ "xinclude /etc/ld.so.conf.d/*.conf\n", true },
		{ "include /etc/ld.so.conf.d/1*.conf\n", true },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {

		put_text("/etc/ld.so.conf", rows[i].text);
		refresh_missing();
		assert_string_printed(text_of("/etc/ld.so.conf"), "%s%s",
				      rows[i].adds ? "include /etc/ld.so.conf.d/00-graft.conf\n" : "", rows[i].text);
		graft_journal_undo(fix.journal, NULL);
	}
}

static void test_musl(void **state)
{
	struct graft_edit edit = { .musl_path_file = "/etc/ld-musl-x86_64.path", .musl_path = "/lib\n" LIB "\n" };

	assert_int_equal(refresh_with(&edit, GRAFT_LDCACHE_REBUILD, NULL), 0);
	assert_string_equal(text_of("/etc/ld-musl-x86_64.path"), "/lib\n" LIB "\n");
	assert_int_equal(access(path_of(CACHE), F_OK), -1);
}

static void test_root_without_etc(void **state)
{
	assert_int_equal(rmdir(path_of("/etc")), 0);
	refresh(GRAFT_LDCACHE_REBUILD);
	assert_non_null(text_of(CACHE));
	graft_journal_undo(fix.journal, NULL);
	assert_int_equal(access(path_of("/etc"), F_OK), -1);
}

/*
 * Makes files of the host, outside of the root, which hostile images reach by hard links and by
 * symbolic links.
 */
static void make_outside(void)
{
	auto_close int fd = open(path_of("/../precious"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, "precious", 8), 8);
}

static void assert_outside_untouched(void)
{
	struct stat st;

	assert_string_equal(text_of("/../precious"), "precious");
	assert_int_equal(stat(path_of("/../precious"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_hard_links_to_host_files(void **state)
{
	static const char *const names[] = { CACHE, "/etc/ld.so.conf", "/etc/ld.so.conf.d/00-graft.conf",
					     "/etc/ld.so.cache~", "/etc/.ld.so.cache" };

	make_outside();
	make_dirs("/etc/ld.so.conf.d");
	for (size_t i = 0; i < GRAFT_COUNT(names); i++)
		assert_int_equal(link(path_of("/../precious"), path_of(names[i])), 0);
	refresh_missing();
	assert_outside_untouched();
	(void)read_cache();
	graft_journal_undo(fix.journal, NULL);
	assert_outside_untouched();
	assert_string_equal(text_of(CACHE), "precious");
}

static void test_links_out_of_the_root(void **state)
{
	const char *outside = path_of("/../precious");

	make_outside();
	make_dirs("/etc/ld.so.conf.d");
	put_link(CACHE, outside);
	put_link("/etc/ld.so.conf.d/00-graft.conf", "../../../../precious");
	put_link("/etc/ld.so.conf", "/proc/self/root/etc/ld.so.conf");
	refresh_missing();
	assert_outside_untouched();
	assert_null(link_text(CACHE));
	(void)read_cache();
	graft_journal_undo(fix.journal, NULL);
	assert_string_equal(link_text(CACHE), outside);
}

static void test_etc_is_a_link(void **state)
{
	struct stat st;

	assert_int_equal(rmdir(path_of("/etc")), 0);
	put_link("/etc", "/../../../tmp/graft-etc");
	refresh(GRAFT_LDCACHE_REBUILD);
	assert_int_equal(stat(path_of("/tmp/graft-etc/ld.so.cache"), &st), 0);
	assert_int_equal(stat("/tmp/graft-etc", &st), -1);
}

/* A soname is chosen by the image and must not become a path. */
static void test_hostile_sonames(void **state)
{
	static const char *const sonames[] = { "../../../../precious2", "/tmp/graft-evil", ".", "..", "" };
	struct graft_ldcache cache;

	for (size_t i = 0; i < GRAFT_COUNT(sonames); i++)
		put_library(graft_arena_printf(fix.arena, "/lib/libevil%zu.so", i), sonames[i]);
	refresh(GRAFT_LDCACHE_REBUILD);
	cache = read_cache();
	assert_int_equal(cache.n_records, 1);
	assert_int_equal(access(path_of("/../precious2"), F_OK), -1);
	assert_int_equal(access("/tmp/graft-evil", F_OK), -1);
}

/* Everything that is not a library under the name of one; none of it may block. */
static void test_special_files(void **state)
{
	struct graft_ldcache cache;
	int64_t start = spent_ms();
	auto_close int sparse = -1;

	assert_int_equal(mkfifo(path_of("/lib/libfifo.so.1"), 0600), 0);
	put_link("/lib/libzero.so.1", "/dev/zero");
	put_link("/lib/libself.so.1", "libself.so.1");
	put_link("/lib/libfifolink.so", "libfifo.so.1");
	put_link("/lib/libproc.so.1", "/proc/self/exe");
	make_dirs("/dev");
	(void)mknod(path_of("/dev/zero"), S_IFCHR | 0666, 0x105);
	make_dirs("/lib/libdir.so.1");
	put_library("/lib/libsparse.so.1", "libsparse.so.1");
	sparse = open(path_of("/lib/libsparse.so.1"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(sparse, (off_t)1 << 40), 0);
	put_text("/lib/libempty.so.1", "");
	assert_int_equal(mkfifo(path_of("/etc/ld.so.conf"), 0600), 0);
	assert_int_equal(mkfifo(path_of(CACHE), 0600), 0);
	assert_int_equal(graft_ldcache_state(&fix.root, NULL), GRAFT_LDCACHE_REBUILD);
	refresh(GRAFT_LDCACHE_REBUILD);
	cache = read_cache();
	assert_int_equal(cache.n_records, 2);
	assert_non_null(lookup(&cache, "libsparse.so.1", 0));
	assert_true(spent_ms() - start < TIME_LIMIT_MS);
}

static void test_endless_cache(void **state)
{
	auto_close int fd = open(path_of(CACHE), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	assert_int_equal(graft_ldcache_state(&fix.root, NULL), GRAFT_LDCACHE_REBUILD);
	refresh(GRAFT_LDCACHE_MERGE);
	(void)read_cache();
}

static void test_cache_is_a_directory(void **state)
{
	struct graft_edit edit = { 0 };
	struct graft_error err = { 0 };

	make_dirs(CACHE);
	assert_int_equal(refresh_with(&edit, GRAFT_LDCACHE_REBUILD, &err), -1);
	assert_int_equal(err.sys, EISDIR);
	assert_string_equal(err.msg, "file write error: /etc/ld.so.cache");
}

/* One inode with thousands of names, all of which have to be read. */
static void test_many_libraries(void **state)
{
	struct graft_ldcache cache;
	struct rusage usage;
	int64_t start;

	put_library("/lib/lib0.so", NULL);
	for (int i = 1; i < 4000; i++)
		if (link(path_of("/lib/lib0.so"), path_of(graft_arena_printf(fix.arena, "/lib/lib%d.so", i))) < 0)
			break;
	start = spent_ms();
	refresh(GRAFT_LDCACHE_REBUILD);
	assert_true(spent_ms() - start < TIME_LIMIT_MS);
	cache = read_cache();
	assert_true(cache.n_records > 1000);
	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	print_message("%zu libraries in %d ms\n", cache.n_records, (int)(spent_ms() - start));
}

/*
 * A limit that is exceeded at once: an image with an outdated cache keeps it, an image without one
 * gets an error.
 */
static void test_time_limit(void **state)
{
	struct graft_image_root root = fix.root;
	struct graft_ldcache_scan scan = { .root = &root, .arena = fix.arena };
	struct graft_error err = { 0 };

	make_image();
	root.budget = graft_budget_new(0);
	assert_int_equal(graft_ldcache_scan_directory(&scan, LIB, &err), -1);
	graft_budget_free(root.budget);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_string_equal(err.msg, "reading the container's library directories takes too long: " LIB);
}

/*
 * The maximum number of records, all with the longest path and name, in as many directories as fit:
 * the most expensive comparisons.
 */
static void test_expensive_cache(void **state)
{
	const size_t n = 65536, length = 4096;
	struct graft_buffer out = { 0 };
	char *strings = graft_arena_alloc(fix.arena, 2 * length);
	uint32_t header[12] = { 0 };
	int64_t start;

	assert_non_null(strings);
	for (size_t i = 0; i < 2 * length - 1; i++)
		strings[i] = i % 2 == 0 ? '/' : 'a';
	memcpy(strings + length, "/libcuda.so.1", 14);
	memcpy(header, "glibc-ld.so.cache1.1", 20);
	header[5] = (uint32_t)n;
	header[6] = (uint32_t)(2 * length);
	header[7] = 2;
	graft_buffer_add(&out, header, sizeof(header));
	for (size_t i = 0; i < n; i++) {
		const uint32_t base = (uint32_t)(sizeof(header) + n * 24);
		const uint32_t record[6] = { MACHINE_ABI_32, base + (uint32_t)(length - 200 + i % 8 * 2),
					     base + (uint32_t)(i % 1000 * 2 + 20) };

		graft_buffer_add(&out, record, sizeof(record));
	}
	graft_buffer_add(&out, strings, 2 * length);
	put_bytes(CACHE, out.bytes, out.length);
	graft_buffer_done(&out);
	graft_budget_free(fix.root.budget);
	fix.root.budget = graft_budget_new(GRAFT_BUDGET_CPU_MS);
	start = spent_ms();
	(void)graft_ldcache_state(&fix.root, NULL);
	refresh_anyhow(GRAFT_LDCACHE_REBUILD);
	refresh_anyhow(GRAFT_LDCACHE_MERGE);
	assert_true(spent_ms() - start < TIME_LIMIT_MS);
	print_message("%d ms\n", (int)(spent_ms() - start));
}

/*
 * A configuration beyond the limits: an image with a cache keeps its content, an image without one
 * gets an error.
 */
static void test_rebuild_is_impossible(void **state)
{
	struct graft_edit edit = { 0 };
	struct graft_error err = { 0 };
	struct graft_ldcache cache;

	put_text("/etc/ld.so.conf", "include ld.so.conf\n");
	assert_int_equal(refresh_with(&edit, GRAFT_LDCACHE_REBUILD, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	put_image_cache();
	refresh(GRAFT_LDCACHE_REBUILD);
	cache = read_cache();
	assert_string_equal(lookup(&cache, "libcuda.so.1", 0), LIB "/libcuda.so.1");
	assert_string_equal(lookup(&cache, "libz.so.1", 0), LIB "/libz.so.1");
}

/* A directory with two names is used once. */
static void test_directory_once(void **state)
{
	struct graft_ldcache cache;

	put_text("/etc/ld.so.conf", "/usr/alias\n" LIB "\n");
	put_link("/usr/alias", "." LIB "/../" MACHINE_TRIPLET);
	assert_int_equal(unlink(path_of("/usr/alias")), 0);
	put_link("/usr/alias", "lib/" MACHINE_TRIPLET);
	put_library(LIB "/libb.so.1", "libb.so.1");
	refresh(GRAFT_LDCACHE_REBUILD);
	cache = read_cache();
	assert_string_equal(lookup(&cache, "libb.so.1", 0), "/usr/alias/libb.so.1");
	assert_null(lookup(&cache, "libb.so.1", 1));
}

static void list_native(const char *const *sonames, size_t n)
{
	struct graft_ldcache_record *records = graft_arena_list(fix.arena, n, sizeof(*records));

	for (size_t i = 0; i < n; i++)
		records[i] = (struct graft_ldcache_record){ sonames[i],
							    graft_arena_printf(fix.arena, LIB "/%s", sonames[i]),
							    graft_abi_flags_native(), 0, 0 };
	put_cache(records, n);
}

/*
 * Names that the cache already has are not read again; all others are, and so are those that they
 * compete with.
 */
static void test_old_cache_is_believed(void **state)
{
	static const char *const listed[] = { "libown.so.1",   "liba.so.1",    "liba.so",        "libb.so.1",
					      "libstale.so.1", "libgone.so.1", "libremoved.so.1" };
	struct graft_ldcache cache;

	put_text("/etc/ld.so.conf", LIB "\n");
	list_native(listed, GRAFT_COUNT(listed));
	/* Not a library: the result would differ if it was read. */
	put_text(LIB "/libown.so.1", "unread");
	put_text(LIB "/liba.so.1.2", "unread");
	put_link(LIB "/liba.so.1", "liba.so.1.2");
	put_link(LIB "/liba.so", "liba.so.1");
	/* A newer version, installed without ldconfig. */
	put_library(LIB "/libb.so.1.2", "libb.so.1");
	put_library(LIB "/libb.so.1.3", "libb.so.1");
	put_link(LIB "/libb.so.1", "libb.so.1.2");
	/* A leftover mount point of a newer driver. */
	put_text(LIB "/libstale.so.570", "");
	put_library(LIB "/libstale.so.550", "libstale.so.1");
	put_link(LIB "/libstale.so.1", "libstale.so.570");
	put_link(LIB "/libgone.so.1", "libgone.so.1.0");
	put_library(LIB "/libnew.so.1", "libnew.so.1");
	refresh(GRAFT_LDCACHE_REBUILD);
	cache = read_cache();
	assert_string_equal(lookup(&cache, "libown.so.1", 0), LIB "/libown.so.1");
	assert_string_equal(lookup(&cache, "liba.so.1", 0), LIB "/liba.so.1");
	assert_string_equal(lookup(&cache, "liba.so", 0), LIB "/liba.so");
	assert_string_equal(lookup(&cache, "libb.so.1", 0), LIB "/libb.so.1");
	assert_string_equal(lookup(&cache, "libstale.so.1", 0), LIB "/libstale.so.1");
	assert_string_equal(lookup(&cache, "libnew.so.1", 0), LIB "/libnew.so.1");
	assert_null(lookup(&cache, "libgone.so.1", 0));
	assert_null(lookup(&cache, "libremoved.so.1", 0));
	assert_int_equal(cache.n_records, 7); /* including the injected one */
	assert_string_equal(link_text(LIB "/liba.so.1"), "liba.so.1.2");
	assert_string_equal(link_text(LIB "/libb.so.1"), "libb.so.1.3");
	assert_string_equal(link_text(LIB "/libstale.so.1"), "libstale.so.550");
	assert_null(link_text(LIB "/libgone.so.1"));
}

/* With and without a cache the result is the same, byte for byte. */
static void test_old_cache_changes_nothing(void **state)
{
	const char *without;
	struct stat st;

	make_image();
	put_link(LIB "/liba.so.1", "liba.so.1.10");
	refresh(GRAFT_LDCACHE_REBUILD);
	assert_int_equal(unlink(path_of(CACHE)), 0);
	refresh(GRAFT_LDCACHE_REBUILD);
	without = text_of(CACHE);
	assert_int_equal(stat(path_of(CACHE), &st), 0);
	put_library(LIB "/libc.so.1.1", "libc.so.1");
	refresh(GRAFT_LDCACHE_REBUILD);
	assert_memory_not_equal(text_of(CACHE), without, (size_t)st.st_size);
	assert_int_equal(unlink(path_of(LIB "/libc.so.1.1")), 0);
	refresh(GRAFT_LDCACHE_REBUILD);
	assert_memory_equal(text_of(CACHE), without, (size_t)st.st_size);
	assert_null(link_text(LIB "/libc.so.1"));
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/*
 * Before the driver's libraries are mounted, links to them are dangling or point to empty mount
 * points. They are then none of ldconfig's concern.
 */
static void test_early(void **state)
{
	static const struct {
		const char *file, *soname;
		const char *link, *says; /* says NULL: there is no link before */
		const char *early, *late;
	} rows[] = {
		{ NULL, NULL, "/libcuda.so.1", "libcuda.so.550", "libcuda.so.550", NULL },
		{ "/libml.so.470", "libml.so.1", "/libml.so.1", "libml.so.550", "libml.so.550", "libml.so.470" },
		{ "/libold.so.470", "libold.so.1", "/libold.so.1", "empty", "empty", "libold.so.470" },
		{ "/libown.so.3", "libown.so.1", "/libown.so.1", NULL, "libown.so.3", "libown.so.3" },
	};

	put_text("/etc/ld.so.conf", LIB "\n");
	for (int early = 1; early >= 0; early--) {
		struct graft_edit edit = { 0 };
		struct graft_ldcache cache;

		put_bytes(LIB "/empty", "", 0);
		for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
			if (rows[i].file)
				put_library(graft_arena_printf(fix.arena, LIB "%s", rows[i].file), rows[i].soname);
			if (early && rows[i].says)
				put_link(graft_arena_printf(fix.arena, LIB "%s", rows[i].link), rows[i].says);
		}
		assert_int_equal(refresh_as(&edit, GRAFT_LDCACHE_REBUILD, early, NULL), 0);
		for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
			const char *got = link_text(graft_arena_printf(fix.arena, LIB "%s", rows[i].link));
			const char *want = early ? rows[i].early : rows[i].late;

			if (!want != !got || (want && strcmp(want, got) != 0))
				fail_msg("%s %s: %s", early ? "early" : "late", rows[i].link, got ? got : "gone");
		}
		cache = read_cache();
		assert_string_equal(lookup(&cache, "libcuda.so.1", 0), LIB "/libcuda.so.1");
		assert_string_equal(lookup(&cache, "libown.so.1", 0), LIB "/libown.so.1");
	}
}

/*
 * Fails each allocation once: there is an error, no descriptor leaks, and after the undo the image
 * is as before.
 */
static void fail_allocations(void)
{
	const char *before = text_of(CACHE);
	struct stat st;
	int rc = -1, n = 0;

	assert_int_equal(stat(path_of(CACHE), &st), 0);
	while (rc != 0) {
		struct graft_edit edit = { .missing_folders = missing, .n_missing_folders = 1 };
		struct graft_error err = { 0 };
		int fds = count_fds();

		allocation_fail(++n);
		rc = refresh_with(&edit, GRAFT_LDCACHE_REBUILD, &err);
		(void)allocation_failed();
		if (rc < 0)
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
		graft_journal_undo(fix.journal, NULL);
		(void)graft_budget_end_child(fix.root.budget);
		assert_int_equal(count_fds(), fds);
		assert_memory_equal(text_of(CACHE), before, (size_t)st.st_size);
		assert_null(link_text(LIB "/libcuda.so.1"));
		assert_string_equal(link_text(LIB "/libgone.so.1"), "libgone.so.1.0");
		assert_true(n < 2000);
	}
	assert_true(n > 20);
}

static void test_allocations_fail(void **state)
{
	static const char *const listed[] = { "liba.so.1", "liba.so", "libnosoname.so" };

	make_image();
	put_text(CACHE, "damaged");
	fail_allocations();
	put_link(LIB "/liba.so.1", "liba.so.1.2");
	list_native(listed, GRAFT_COUNT(listed));
	fail_allocations();
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		ROW(test_merge),
		ROW(test_merge_keeps_hwcaps_but_not_of_ours),
		ROW(test_order_of_entries),
		ROW(test_again_is_nothing),
		ROW(test_rebuild),
		ROW(test_undo),
		ROW(test_state),
		ROW(test_missing_folder),
		ROW(test_own_configuration_has_no_place),
		ROW(test_missing_folders_of_before),
		ROW(test_nothing_was_missing),
		ROW(test_records_of_before),
		ROW(test_missing_folder_without_configuration),
		ROW(test_missing_folder_with_configuration_that_includes_nothing),
		ROW(test_missing_folder_and_ways_to_include),
		ROW(test_musl),
		ROW(test_root_without_etc),
		ROW(test_hard_links_to_host_files),
		ROW(test_links_out_of_the_root),
		ROW(test_etc_is_a_link),
		ROW(test_hostile_sonames),
		ROW(test_special_files),
		ROW(test_endless_cache),
		ROW(test_cache_is_a_directory),
		ROW(test_many_libraries),
		ROW(test_time_limit),
		ROW(test_expensive_cache),
		ROW(test_rebuild_is_impossible),
		ROW(test_directory_once),
		ROW(test_old_cache_is_believed),
		ROW(test_old_cache_changes_nothing),
		ROW(test_early),
		ROW(test_allocations_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
