/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_compat: the note of a CUDA forward-compatibility library, whole and damaged, and when a library suits a host (SPEC ctk-and-cdi 2.4, 6.6). */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "../../memory_file.h"
#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "formats/loader/cuda_compat.h"
#include "formats/loader/elf.h"

#define OWNER   "NVIDIA Corporation"
#define SECTION ".note.cuda.fwd_compatibility"
#define HEADER  "{\"Format\":1,\"CUDA Version\":\"12.9\",\"Driver\":[535,550,560,565,570,575],\"Device\":[1,2]}"

/* ---- when it suits ---- */

static const struct {
	bool has_header; /* HEADER */
	const char *version, *driver, *cuda;
	bool want;
} choices[] = {
	/* without a header: by the branch */
	{ false, "333.88.99", "222.55.66", NULL, true },
	{ false, "111.88.99", "222.55.66", NULL, false },
	{ false, "222.88.99", "222.55.66", NULL, false },
	{ false, "222.88.99", "99.55.66", NULL, true },
	{ false, "222.88.99", "099.55", "", true },
	{ false, "333.88.99", "222.55.66", "12.8", false },
	{ false, "333.88.99", NULL, "12.8", false },
	{ false, "333.88.99", "", NULL, false },
	{ false, "333.x", "222.55.66", NULL, false },
	{ false, "333.88.99", "nonsense", NULL, false },
	/* with one, and both versions known: by its list and the whole version */
	{ true, "575.57.08", "590.44.01", NULL, false },
	{ true, "575.57.08", "570.211.01", NULL, true },
	{ true, "575.57.08", "575.10.10", NULL, true },
	{ true, "575.57.08", "575.57.08", NULL, false },
	{ true, "575.57.08", "575.99.99", NULL, false },
	{ true, "575.57.08", "570.1", "99.0", true },
	/* otherwise by the CUDA version */
	{ true, "575.57.08", NULL, "12.8", true },
	{ true, "575.57.08", NULL, "12.9", false },
	{ true, "575.57.08", NULL, "12.10", false },
	{ true, "575.57.08", "", "11", true },
	{ true, "odd", "570.1.1", "12.8", true },
	{ true, "575.57.08", NULL, NULL, false },
	{ true, "575.57.08", NULL, "twelve", false },
};

static void test_choice(void **state)
{
	uint32_t drivers[] = { 535, 550, 560, 565, 570, 575 };
	const struct graft_cuda_compat header = { .cuda_version = "12.9", .drivers = drivers, .n_drivers = 6 };
	const struct graft_cuda_compat silent = { .cuda_version = NULL };

	for (size_t i = 0; i < GRAFT_COUNT(choices); i++) {
		bool suits = graft_cuda_compat_suits(choices[i].has_header ? &header : NULL, choices[i].version,
						     choices[i].driver, choices[i].cuda);

		if (suits != choices[i].want)
			fail_msg("row %zu: library %s, driver %s, CUDA %s", i, choices[i].version,
				 choices[i].driver ? choices[i].driver : "-", choices[i].cuda ? choices[i].cuda : "-");
	}
	assert_false(graft_cuda_compat_suits(&silent, "575.1", NULL, "12.8"));
	assert_false(graft_cuda_compat_suits(&silent, "575.1", "570.1", NULL));
}

static void test_versions(void **state)
{
	static const char *const good[] = { "1", "12.9", "570.211.01", "0.0.0", "007" };
	static const char *const bad[] = { "",        ".",      "1.", ".1",     "1..2",
					   "1.2.3.4", "1.2.3.", "v1", "1.2-rc", "1234567890123456",
					   " 1" };

	for (size_t i = 0; i < GRAFT_COUNT(good); i++)
		assert_true(graft_cuda_compat_is_version(good[i]));
	for (size_t i = 0; i < GRAFT_COUNT(bad); i++)
		assert_false(graft_cuda_compat_is_version(bad[i]));
	assert_false(graft_cuda_compat_is_version(NULL));
}

/* ---- the note ---- */

struct note {
	unsigned char bytes[512];
	size_t length;
};

static struct note make_note(const char *owner, size_t owner_size, const char *text, size_t text_size, size_t alignment)
{
	struct note note = { .length = 0 };
	Elf64_Nhdr header = { .n_namesz = (Elf64_Word)owner_size, .n_descsz = (Elf64_Word)text_size, .n_type = 1 };
	size_t text_at = sizeof(header) + (owner_size + alignment - 1) / alignment * alignment;

	assert_true(text_at + text_size <= sizeof(note.bytes));
	memcpy(note.bytes, &header, sizeof(header));
	memcpy(note.bytes + sizeof(header), owner, owner_size);
	memcpy(note.bytes + text_at, text, text_size);
	note.length = text_at + text_size;
	return note;
}

static void check_header(const struct graft_cuda_compat *compat)
{
	assert_string_equal(compat->cuda_version, "12.9");
	assert_int_equal(compat->n_drivers, 6);
	assert_int_equal(compat->drivers[0], 535);
	assert_int_equal(compat->drivers[5], 575);
}

static int parse(const struct note *note, uint64_t alignment, struct graft_arena *arena,
		 struct graft_cuda_compat *ret_compat)
{
	struct graft_error err = { .status = GRAFT_OK };
	/* As long as it is, so that a sanitizer sees what reads beyond. */
	unsigned char *bytes = graft_arena_memdup(arena, note->bytes, note->length);

	return graft_cuda_compat_parse_note(bytes, note->length, alignment, "library", arena, ret_compat, &err);
}

static void test_note(void **state)
{
	static const struct {
		const char *owner;
		size_t owner_size;
		const char *text;
		int want;
	} rows[] = {
		{ OWNER, sizeof(OWNER), HEADER, 1 },
		{ OWNER, sizeof(OWNER) - 1, HEADER, 1 },
		{ OWNER, 0, HEADER, 0 },
		{ OWNER, sizeof(OWNER), "", 0 },
		{ "Somebody else, Inc", 18, HEADER, 0 },
		{ OWNER, 6, HEADER, 0 },
		{ OWNER, sizeof(OWNER), "{", -1 },
		{ OWNER, sizeof(OWNER), "[]", 1 },
		{ OWNER, sizeof(OWNER), "{\"Driver\":[\"x\",-1,5000000000,7.5,570],\"CUDA Version\":12}", 1 },
	};
	struct graft_arena *arena = graft_arena_new(1 << 20);

	for (size_t alignment = 4; alignment <= 8; alignment += 4) {
		for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
			struct graft_cuda_compat compat = { .cuda_version = NULL };
			struct note note = make_note(rows[i].owner, rows[i].owner_size, rows[i].text,
						     strlen(rows[i].text), alignment);

			if (parse(&note, alignment, arena, &compat) != rows[i].want)
				fail_msg("row %zu", i);
			if (i < 2)
				check_header(&compat);
			if (i == GRAFT_COUNT(rows) - 1) {
				assert_null(compat.cuda_version);
				assert_int_equal(compat.n_drivers, 1);
				assert_int_equal(compat.drivers[0], 570);
			}
		}
	}
	graft_arena_free(arena);
}

static void test_damaged_note(void **state)
{
	struct graft_arena *arena = graft_arena_new((size_t)4 << 20);
	struct note whole = make_note(OWNER, sizeof(OWNER), HEADER, strlen(HEADER), 4);
	struct graft_cuda_compat compat;

	for (size_t length = 0; length < whole.length; length++) {
		struct note cut = whole;

		cut.length = length;
		assert_int_equal(parse(&cut, 4, arena, &compat), -1);
	}
	for (size_t i = 0; i < sizeof(Elf64_Nhdr); i++) {
		struct note flipped = whole;

		flipped.bytes[i] ^= 0x80;
		assert_true(parse(&flipped, 4, arena, &compat) <= (i < 8 ? 0 : 1));
	}
	assert_int_equal(parse(&whole, 0, arena, &compat), -1);
	assert_int_equal(parse(&whole, UINT64_MAX, arena, &compat), -1);
	graft_arena_free(arena);
}

/* ---- the section ---- */

struct file {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];
	char names[64];
	struct note note;
};

static void make_file(struct file *file)
{
	static const char names[] = "\0.names\0" SECTION;

	*file = (struct file){ .note = make_note(OWNER, sizeof(OWNER), HEADER, strlen(HEADER), 4) };
	memcpy(file->header.e_ident, ELFMAG, SELFMAG);
	file->header.e_ident[EI_CLASS] = ELFCLASS64;
	file->header.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	file->header.e_shoff = offsetof(struct file, sections);
	file->header.e_shentsize = sizeof(Elf64_Shdr);
	file->header.e_shnum = 3;
	file->header.e_shstrndx = 1;
	memcpy(file->names, names, sizeof(names));
	file->sections[1] = (Elf64_Shdr){
		.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct file, names), .sh_size = sizeof(names)
	};
	file->sections[2] = (Elf64_Shdr){ .sh_name = 8,
					  .sh_type = SHT_NOTE,
					  .sh_offset = offsetof(struct file, note.bytes),
					  .sh_size = file->note.length,
					  .sh_addralign = 4 };
}

static int read_compat(struct file *file, struct graft_cuda_compat *ret_compat, struct graft_error *err)
{
	auto_close int fd = memory_file(file, sizeof(*file));
	struct graft_arena *arena = graft_arena_new(1 << 20);
	int rc = arena ? graft_cuda_compat_read_fd(fd, "library", arena, ret_compat, err) : graft_fail_memory(err);

	if (rc > 0)
		check_header(ret_compat);
	graft_arena_free(arena);
	return rc;
}

static void read_anything(struct file *file)
{
	auto_close int fd = memory_file(file, sizeof(*file));
	struct graft_arena *arena = graft_arena_new(1 << 20);
	struct graft_cuda_compat compat;
	struct graft_error err;

	assert_non_null(arena);
	(void)graft_cuda_compat_read_fd(fd, "library", arena, &compat, &err);
	graft_arena_free(arena);
}

static void test_section(void **state)
{
	struct graft_cuda_compat compat = { .cuda_version = NULL };
	struct graft_error err = { .status = GRAFT_OK };
	struct file file;

	make_file(&file);
	assert_int_equal(read_compat(&file, &compat, &err), 1);
	file.sections[2].sh_type = SHT_PROGBITS; /* of that name, but no note */
	assert_int_equal(read_compat(&file, &compat, &err), 0);
	make_file(&file);
	file.names[9] = 'x';
	assert_int_equal(read_compat(&file, &compat, &err), 0);
	make_file(&file);
	file.header.e_shnum = 0;
	assert_int_equal(read_compat(&file, &compat, &err), 0);
	make_file(&file);
	file.header.e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(read_compat(&file, &compat, &err), 0);
	make_file(&file);
	file.header.e_ident[0] = 'x';
	assert_int_equal(read_compat(&file, &compat, &err), -1);
	assert_int_equal(err.status, GRAFT_FORMAT);
}

static void test_damaged_section(void **state)
{
	static const struct {
		const char *name;
		size_t offset, size;
	} fields[] = {
		{ "e_shoff", offsetof(struct file, header.e_shoff), 8 },
		{ "e_shentsize", offsetof(struct file, header.e_shentsize), 2 },
		{ "e_shstrndx", offsetof(struct file, header.e_shstrndx), 2 },
		{ "note's offset", offsetof(struct file, sections[2].sh_offset), 8 },
		{ "note's size", offsetof(struct file, sections[2].sh_size), 8 },
		{ "note's alignment", offsetof(struct file, sections[2].sh_addralign), 8 },
	};
	struct graft_cuda_compat compat;
	struct graft_error err;
	struct file file;

	for (size_t i = 0; i < GRAFT_COUNT(fields); i++) {
		make_file(&file);
		memset((char *)&file + fields[i].offset, 0xff, fields[i].size);
		if (read_compat(&file, &compat, &err) != -1 || err.status != GRAFT_FORMAT)
			fail_msg("%s", fields[i].name);
	}
	/* A name outside of the names is a section that is not ours. */
	make_file(&file);
	file.sections[2].sh_name = UINT32_MAX;
	assert_int_equal(read_compat(&file, &compat, &err), 0);
	make_file(&file);
	file.sections[1].sh_offset = UINT64_MAX;
	assert_int_equal(read_compat(&file, &compat, &err), 0);
	/* Every bit of the headers, one at a time: anything, but in bounds. */
	for (size_t i = 0; i < offsetof(struct file, note) * 8; i++) {
		make_file(&file);
		((unsigned char *)&file)[i / 8] ^= (unsigned char)(1u << i % 8);
		read_anything(&file);
	}
}

static void test_allocations(void **state)
{
	struct graft_cuda_compat compat;
	struct graft_error err;
	struct file file;
	int n = 1;

	make_file(&file);
	for (;; n++) {
		int rc;

		allocation_fail(n);
		rc = read_compat(&file, &compat, &err);
		if (!allocation_failed()) {
			assert_int_equal(rc, 1);
			break;
		}
		assert_int_equal(rc, -1);
		assert_int_equal(err.status, GRAFT_NO_MEMORY);
	}
	assert_true(n > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choice),      cmocka_unit_test(test_versions),
		cmocka_unit_test(test_note),        cmocka_unit_test(test_damaged_note),
		cmocka_unit_test(test_section),     cmocka_unit_test(test_damaged_section),
		cmocka_unit_test(test_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
