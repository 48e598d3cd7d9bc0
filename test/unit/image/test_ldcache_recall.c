/* SPDX-License-Identifier: Apache-2.0 */
/* What an old cache answers for: names and links of one directory against one list of records, row by row. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "formats/loader/elf.h"
#include "image/ldcache_recall.h"

#define DIRECTORY "/usr/lib/here"
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

/* The directory: names, what links say, and the soname that is to be answered. */
static const struct {
	const char *name, *says, *answer;
} rows[] = {
	{ "libfile.so.1", NULL, "libfile.so.1" },
	{ "libold.so.1", "libold.so.1.2", "libold.so.1" },
	{ "libold.so.1.2", NULL, "libold.so.1" },
	{ "libnew.so.1", NULL, NULL },
	/* A development link does not tell its library's soname; two links do not agree; a chain does. */
	{ "libdev.so", "libdev.so.3", "libdev.so" },
	{ "libdev.so.3", NULL, NULL },
	{ "libtwo.so.1", "libtwo.so.9", "libtwo.so.1" },
	{ "libtwo.so.2", "libtwo.so.9", "libtwo.so.2" },
	{ "libtwo.so.9", NULL, NULL },
	{ "libchain.so", "libchain.so.1", "libchain.so" },
	{ "libchain.so.1", "libchain.so.1.7", "libchain.so.1" },
	{ "libchain.so.1.7", NULL, "libchain.so.1" },
	{ "libgap.so", "libgap.so.1", NULL },
	{ "libgap.so.1", "libgap.so.1.0", NULL },
	{ "libgap.so.1.0", NULL, NULL },
	/* Links that lead elsewhere, nowhere, to themselves. */
	{ "libaway.so.1", "../there/libfile.so.1", NULL },
	{ "libdot.so.1", "./libfile.so.1", NULL },
	{ "libgone.so.1", "libgone.so.1.0", NULL },
	{ "libself.so.1", "libself.so.1", NULL },
	{ "libround.so.1", "libround.so.2", NULL },
	{ "libround.so.2", "libround.so.1", NULL },
	/* Records that say nothing of this directory, or too much. */
	{ "libthere.so.1", NULL, NULL },
	{ "libbelow.so.1", NULL, NULL },
	{ "libhwcaps.so.1", NULL, NULL },
	{ "libforeign.so.1", NULL, NULL },
	{ "libboth.so.1", NULL, NULL },
	{ "libother.so.1", NULL, NULL },
};

static const struct {
	const char *soname, *path;
	uint32_t flags; /* 0: of this machine */
	uint64_t hwcap;
} written[] = {
	{ "libfile.so.1", DIRECTORY "/libfile.so.1", 0, 0 },
	{ "libold.so.1", DIRECTORY "/libold.so.1", 0, 0 },
	{ "libdev.so", DIRECTORY "/libdev.so", 0, 0 },
	{ "libtwo.so.1", DIRECTORY "/libtwo.so.1", 0, 0 },
	{ "libtwo.so.2", DIRECTORY "/libtwo.so.2", 0, 0 },
	{ "libchain.so", DIRECTORY "/libchain.so", 0, 0 },
	{ "libchain.so.1", DIRECTORY "/libchain.so.1", 0, 0 },
	{ "libgap.so", DIRECTORY "/libgap.so", 0, 0 },
	{ "libaway.so.1", DIRECTORY "/libaway.so.1", 0, 0 },
	{ "libdot.so.1", DIRECTORY "/libdot.so.1", 0, 0 },
	{ "libgone.so.1", DIRECTORY "/libgone.so.1", 0, 0 },
	{ "libself.so.1", DIRECTORY "/libself.so.1", 0, 0 },
	{ "libround.so.1", DIRECTORY "/libround.so.1", 0, 0 },
	{ "libround.so.2", DIRECTORY "/libround.so.2", 0, 0 },
	{ "libthere.so.1", "/usr/lib/there/libthere.so.1", 0, 0 },
	{ "libthere.so.1", DIRECTORY "r/libthere.so.1", 0, 0 },
	{ "libbelow.so.1", DIRECTORY "/below/libbelow.so.1", 0, 0 },
	{ "below/libbelow.so.1", DIRECTORY "/below/libbelow.so.1", 0, 0 },
	{ "libhwcaps.so.1", DIRECTORY "/libhwcaps.so.1", 0, (uint64_t)1 << 62 },
	{ "libforeign.so.1", DIRECTORY "/libforeign.so.1", 0x1003, 0 },
	{ "libboth.so.1", DIRECTORY "/libboth.so.1", 0, 0 },
	{ "libboth.so.1", DIRECTORY "/libboth.so.1", GRAFT_ABI_FLAGS_I386, 0 },
	{ "libboth.so.1", DIRECTORY "/libboth.so.1", GRAFT_ABI_FLAGS_ARM_HARD, 0 },
	{ "libsoname.so.1", DIRECTORY "/libother.so.1", 0, 0 },
	{ "libmissing.so.1", DIRECTORY "/libmissing.so.1", 0, 0 },
};

struct fixture {
	char top[64];
	int fd;
	struct graft_arena *arena;
	struct graft_ldcache cache;
	struct graft_ldcache_name names[COUNT(rows)];
};

static struct fixture fix;

static int setup(void **state)
{
	fix = (struct fixture){ .fd = -1 };
	(void)snprintf(fix.top, sizeof(fix.top), "/tmp/graft-test-XXXXXX");
	fix.arena = graft_arena_new((size_t)1 << 20);
	if (!fix.arena || !mkdtemp(fix.top))
		return -1;
	fix.fd = open(fix.top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (rows[i].says && symlinkat(rows[i].says, fix.fd, rows[i].name) < 0)
			return -1;
		/* Backwards, for the answer must not depend on the order of the directory. */
		fix.names[COUNT(rows) - 1 - i] =
		    (struct graft_ldcache_name){ .name = rows[i].name, .place = i, .is_link = rows[i].says != NULL };
	}
	fix.cache.records = graft_arena_list(fix.arena, COUNT(written), sizeof(*fix.cache.records));
	fix.cache.n_records = COUNT(written);
	for (size_t i = 0; i < COUNT(written); i++)
		fix.cache.records[i] = (struct graft_ldcache_record){
			.soname = written[i].soname,
			.path = written[i].path,
			.flags = written[i].flags != 0 ? written[i].flags : graft_abi_flags_native(),
			.hwcap = written[i].hwcap,
		};
	graft_ldcache_sort_names(fix.names, COUNT(rows));
	return fix.fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		(void)unlinkat(fix.fd, rows[i].name, 0);
	(void)close(fix.fd);
	(void)rmdir(fix.top);
	(void)graft_arena_free(fix.arena);
	return 0;
}

static int recall(const char *path, int64_t left_ms)
{
	struct graft_budget *budget = graft_budget_new(left_ms);
	int rc = graft_ldcache_recall(&fix.cache, fix.fd, path, fix.names, COUNT(rows), budget, fix.arena);

	graft_budget_free(budget);
	return rc;
}

static void assert_answers(void)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct graft_ldcache_name *name = &fix.names[i];
		const char *want = rows[name->place].answer;

		assert_string_equal(name->name, rows[name->place].name);
		if (!want != !name->soname || (want && strcmp(want, name->soname) != 0))
			fail_msg("%s: %s", name->name, name->soname ? name->soname : "no answer");
		if (want)
			assert_int_equal(name->flags, graft_abi_flags_native());
		if (i > 0)
			assert_true(strcmp(fix.names[i - 1].name, name->name) < 0);
		assert_ptr_equal(graft_ldcache_find_name(fix.names, COUNT(rows), name->name), name);
	}
}

static void test_answers(void **state)
{
	assert_int_equal(recall(DIRECTORY, 10000), 0);
	assert_answers();
}

static void test_directory_with_a_slash(void **state)
{
	assert_int_equal(recall(DIRECTORY "//", 10000), 0);
	assert_answers();
}

static void assert_no_answers(void)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_null(fix.names[i].soname);
}

static void test_no_answers(void **state)
{
	assert_int_equal(recall("/usr/lib/nowhere", 10000), 0);
	assert_no_answers();
	assert_int_equal(recall("/", 10000), 0);
	assert_no_answers();
	/* The time is over before anything was looked at. */
	assert_int_equal(recall(DIRECTORY, 0), 0);
	assert_no_answers();
	fix.cache.n_records = 0;
	assert_int_equal(recall(DIRECTORY, 10000), 0);
	assert_no_answers();
	assert_int_equal(graft_ldcache_recall(&fix.cache, fix.fd, DIRECTORY, NULL, 0, NULL, fix.arena), 0);
	assert_null(graft_ldcache_find_name(fix.names, COUNT(rows), "libnowhere.so.1"));
	assert_null(graft_ldcache_find_name(NULL, 0, "libfile.so.1"));
}

/* What is the root directory's own is recorded as "/libfile.so.1". */
static void test_root_directory(void **state)
{
	for (size_t i = 0; i < fix.cache.n_records; i++)
		fix.cache.records[i].path = graft_arena_printf(fix.arena, "/%s", fix.cache.records[i].soname);
	fix.cache.n_records = 2;
	assert_int_equal(recall("/", 10000), 0);
	for (size_t i = 0; i < COUNT(rows); i++)
		if (strcmp(fix.names[i].name, "libfile.so.1") == 0)
			assert_string_equal(fix.names[i].soname, "libfile.so.1");
}

static void test_allocations_fail(void **state)
{
	struct graft_budget *budget = graft_budget_new(60000);
	int n = 0, rc = -1;

	while (rc != 0) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 20);

		assert_non_null(arena);
		for (size_t i = 0; i < COUNT(rows); i++)
			fix.names[i].soname = NULL;
		allocation_fail(++n);
		rc = graft_ldcache_recall(&fix.cache, fix.fd, DIRECTORY, fix.names, COUNT(rows), budget, arena);
		(void)allocation_failed();
		(void)graft_arena_free(arena);
		assert_true(n < 100);
	}
	graft_budget_free(budget);
	assert_true(n > 1);
	assert_answers();
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		ROW(test_answers),        ROW(test_directory_with_a_slash), ROW(test_no_answers),
		ROW(test_root_directory), ROW(test_allocations_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
