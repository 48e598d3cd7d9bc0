/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the readers fails once: each reports it, and frees what it read before. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "../../memory_file.h"
#include "../allocation.h"
#include "../elf_stub.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "formats/loader/elf.h"
#include "formats/loader/ldsoconf.h"
#include "formats/record.h"

/* Runs `once` in an arena of its own, with the 1st, 2nd, ... allocation failing, until it succeeds. Returns how often it failed. */
static int fail_each(int (*once)(struct graft_arena *arena, void *arg, struct graft_error *err), void *arg)
{
	for (int n = 1;; n++) {
		struct graft_arena *arena = graft_arena_new((size_t)64 << 20);
		struct graft_error err = { 0 };
		bool failed;
		int rc;

		assert_non_null(arena);
		allocation_fail(n);
		rc = once(arena, arg, &err);
		failed = allocation_failed();
		graft_arena_free(arena);
		assert_int_equal(rc, failed ? -1 : 0);
		if (!failed)
			return n - 1;
		assert_int_equal(err.status, GRAFT_NO_MEMORY);
	}
}

static int read_elf(struct graft_arena *arena, void *arg, struct graft_error *err)
{
	auto_close int fd = memory_file(arg, sizeof(struct elf_stub));
	struct graft_elf elf;

	return graft_elf_read_fd(fd, "stub", arena, &elf, err);
}

static void test_elf(void **state)
{
	struct elf_stub stub;

	elf_stub_make(&stub, "libstub.so.1");
	assert_true(fail_each(read_elf, &stub) >= 1);
}

struct item {
	const char *text;
	const char **words;
	size_t n_words;
};
struct items {
	struct item *items;
	size_t n_items;
};

static const struct graft_field item_fields[] = {
	GRAFT_F_STRING(struct item, text, true, "text"),
	GRAFT_F_STRINGS(struct item, words, "words"),
};
static const struct graft_record item_record = { "item", sizeof(struct item), item_fields, GRAFT_COUNT(item_fields) };
static const struct graft_field items_fields[] = { GRAFT_F_RECORDS(struct items, items, &item_record, "items") };
static const struct graft_record items_record = { "items", sizeof(struct items), items_fields, 1 };

static int read_record(struct graft_arena *arena, void *arg, struct graft_error *err)
{
	const struct graft_buffer *text = arg;
	struct items items = { 0 };

	return graft_record_read(&items_record, text->bytes, text->length, arena, &items, err);
}

/* Long enough for several blocks of the arena. */
static void test_record(void **state)
{
	struct graft_buffer text = { 0 };

	graft_buffer_string(&text, "{\"items\": [");
	for (int i = 0; i < 600; i++)
		graft_buffer_printf(&text, "%s{\"text\": \"%0200d\", \"words\": [\"a\", \"b\"]}", i > 0 ? "," : "", i);
	graft_buffer_string(&text, "]}");
	assert_true(fail_each(read_record, &text) >= 5);
	/* The text ends early at every byte: an error each time. */
	for (size_t length = 0; length < 500; length++) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
		struct items items = { 0 };

		assert_int_equal(graft_record_read(&items_record, text.bytes, length, arena, &items, NULL), -1);
		graft_arena_free(arena);
	}
	graft_buffer_done(&text);
}

static void test_write_fails_at_its_maximum(void **state)
{
	struct item item = { .text = "0123456789" };
	struct items items = { .items = &item, .n_items = 1 };

	for (size_t max = 1; max < 40; max++) {
		struct graft_buffer out = { .max = max };

		graft_record_write(&items_record, &items, &out);
		assert_true(graft_buffer_failed(&out));
		assert_true(out.length <= max);
		graft_buffer_done(&out);
	}
}

static int read_ldsoconf(struct graft_arena *arena, void *arg, struct graft_error *err)
{
	const char **dirs = NULL;
	size_t n = 0;

	return graft_ldsoconf_read(arg, arena, &dirs, &n, err);
}

static void test_ldsoconf(void **state)
{
	char directory[] = "/tmp/graft-test-XXXXXX", line[512];
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	auto_close int fd = -1;

	assert_non_null(mkdtemp(directory));
	assert_int_equal(graft_root_open(&root, directory, NULL), 0);
	assert_int_equal(mkdirat(root.fd, "etc", 0700), 0);
	fd = openat(root.fd, "etc/ld.so.conf", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	for (int i = 0; i < 200; i++)
		assert_true(write(fd, line, (size_t)snprintf(line, sizeof(line), "/%0200d\n", i)) > 200);
	assert_true(write(fd, "include *.none\n", 15) == 15);
	assert_true(fail_each(read_ldsoconf, &root) >= 3);
	(void)unlinkat(root.fd, "etc/ld.so.conf", 0);
	(void)unlinkat(root.fd, "etc", AT_REMOVEDIR);
	(void)rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elf),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_write_fails_at_its_maximum),
		cmocka_unit_test(test_ldsoconf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
