/* SPDX-License-Identifier: Apache-2.0 */
/* Real libraries against readelf, this test's own program against truncation at every byte and flipped bytes. */
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "formats/loader/elf.h"

#include "../../memory_file.h"
#include "../elf_notes.h"
#include "../elf_stub.h"

#define ARENA_MAX ((size_t)64 * 1024 * 1024)

/* What `readelf -d` says of a file: SONAME and the NEEDED names, one a line, in order. */
static char *readelf(const char *path)
{
	int pipe_fds[2], status;
	char *text = calloc(1, 65536);
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		(void)dup2(pipe_fds[1], STDOUT_FILENO);
		(void)execlp("readelf", "readelf", "-dW", path, (char *)NULL);
		_exit(127);
	}
	(void)close(pipe_fds[1]);
	while (used < 65535 && (n = read(pipe_fds[0], text + used, 65535 - used)) > 0)
		used += (size_t)n;
	(void)close(pipe_fds[0]);
	(void)waitpid(pid, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 0);
	return text;
}

/* The name in brackets of the next line of `text` with `tag`; NULL when there is none. */
static char *next_name(const char **text, const char *tag, char *name, size_t size)
{
	const char *line = strstr(*text, tag);
	const char *open = line ? strchr(line, '[') : NULL;
	const char *close = open ? strchr(open, ']') : NULL;

	if (!close || (size_t)(close - open) > size)
		return NULL;
	memcpy(name, open + 1, (size_t)(close - open) - 1);
	name[close - open - 1] = '\0';
	*text = close;
	return name;
}

static void compare_with_readelf(const char *path, const struct graft_elf *elf)
{
	auto_free char *text = readelf(path);
	const char *at = text;
	char name[1024];
	size_t n = 0;

	if (next_name(&at, "(SONAME)", name, sizeof(name)))
		assert_string_equal(elf->soname, name);
	else
		assert_null(elf->soname);
	at = text;
	while (next_name(&at, "(NEEDED)", name, sizeof(name))) {
		assert_true(n < elf->n_needed);
		assert_string_equal(elf->needed[n++], name);
	}
	assert_int_equal(n, elf->n_needed);
}

static void test_real_libraries(void **state)
{
	static const char dir_name[] = "/usr/lib/" MACHINE_TRIPLET;
	auto_dir DIR *dir = opendir(dir_name);
	struct dirent *entry;
	int n = 0;

	if (!dir || access("/usr/bin/readelf", X_OK) != 0) {
		print_message("# SKIP: elf-readelf-oracle: no readelf or no %s\n", dir_name);
		skip();
		return;
	}
	while (n < 60 && (entry = readdir(dir)) != NULL) {
		struct graft_arena *arena;
		struct graft_error err = { 0 };
		struct graft_elf elf = { 0 };
		char path[512];
		auto_close int fd = -1;

		if (!strstr(entry->d_name, ".so.") || entry->d_type != DT_REG)
			continue;
		arena = graft_arena_new(ARENA_MAX);
		(void)snprintf(path, sizeof(path), "%s/%s", dir_name, entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (graft_elf_read_fd(fd, path, arena, &elf, &err) < 0)
			fail_msg("%s", err.msg);
		assert_int_equal(elf.abi_flags, MACHINE_ABI);
		compare_with_readelf(path, &elf);
		n++;
		graft_arena_free(arena);
	}
	assert_true(n > 5);
}

static void test_abi_note(void **state)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct graft_error err = { 0 };
	struct graft_elf elf = { 0 };
	auto_close int fd = open("/lib/" MACHINE_TRIPLET "/libc.so.6", O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		print_message("# SKIP: elf-abi-note: no glibc at its Debian place\n");
		skip();
	}
	assert_int_equal(graft_elf_read_fd(fd, "libc.so.6", arena, &elf, &err), 0);
	assert_string_equal(elf.soname, "libc.so.6");
	assert_true(elf.has_abi_note);
	assert_true(elf.abi_kernel[0] >= 2 && elf.abi_kernel[0] < 10);
	graft_arena_free(arena);
}

/* A minimal 32-bit shared object: header, PT_LOAD + PT_DYNAMIC + PT_NOTE, dynamic section, strings, note. */
struct tiny32 {
	Elf32_Ehdr header;
	Elf32_Phdr segments[3];
	Elf32_Dyn dynamic[5];
	char strings[32];
	Elf32_Nhdr note;
	char note_name[4];
	uint32_t note_value[4];
};

static struct tiny32 tiny32(void)
{
	struct tiny32 tiny;

	memset(&tiny, 0, sizeof(tiny));
	memcpy(tiny.header.e_ident, ELFMAG, SELFMAG);
	tiny.header.e_ident[EI_CLASS] = ELFCLASS32;
	tiny.header.e_ident[EI_DATA] = ELFDATA2LSB;
	tiny.header.e_machine = EM_386;
	tiny.header.e_phoff = offsetof(struct tiny32, segments);
	tiny.header.e_phnum = 3;
	tiny.header.e_phentsize = sizeof(Elf32_Phdr);
	tiny.segments[0] = (Elf32_Phdr){ .p_type = PT_LOAD, .p_vaddr = 0x1000, .p_filesz = sizeof(tiny) };
	tiny.segments[1] = (Elf32_Phdr){ .p_type = PT_DYNAMIC,
					 .p_offset = offsetof(struct tiny32, dynamic),
					 .p_filesz = sizeof(tiny.dynamic) };
	tiny.segments[2] = (Elf32_Phdr){ .p_type = PT_NOTE,
					 .p_offset = offsetof(struct tiny32, note),
					 .p_filesz = sizeof(tiny.note) + 4 + 16 };
	memcpy(tiny.strings, "\0libtls.so.1\0libc.so.6", 22);
	tiny.dynamic[0] = (Elf32_Dyn){ .d_tag = DT_NEEDED, .d_un.d_val = 13 };
	tiny.dynamic[1] = (Elf32_Dyn){ .d_tag = DT_SONAME, .d_un.d_val = 1 };
	tiny.dynamic[2] = (Elf32_Dyn){ .d_tag = DT_STRTAB, .d_un.d_val = 0x1000 + offsetof(struct tiny32, strings) };
	tiny.dynamic[3] = (Elf32_Dyn){ .d_tag = DT_STRSZ, .d_un.d_val = sizeof(tiny.strings) };
	tiny.note = (Elf32_Nhdr){ .n_namesz = 4, .n_descsz = 16, .n_type = NT_GNU_ABI_TAG };
	memcpy(tiny.note_name, "GNU", 4);
	tiny.note_value[1] = 2;
	tiny.note_value[2] = 3;
	tiny.note_value[3] = 99;
	return tiny;
}

static int read_tiny(const void *bytes, size_t length, struct graft_elf *elf, struct graft_error *err,
		     struct graft_arena *arena)
{
	auto_close int fd = memory_file(bytes, length);

	return graft_elf_read_fd(fd, "tiny", arena, elf, err);
}

static void test_32_bit(void **state)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct graft_error err = { 0 };
	struct tiny32 tiny = tiny32();
	struct graft_elf elf = { 0 };

	assert_int_equal(read_tiny(&tiny, sizeof(tiny), &elf, &err, arena), 0);
	assert_int_equal(elf.abi_flags, GRAFT_ABI_FLAGS_I386);
	assert_string_equal(elf.soname, "libtls.so.1");
	assert_int_equal(elf.n_needed, 1);
	assert_string_equal(elf.needed[0], "libc.so.6");
	assert_true(elf.has_abi_note);
	assert_int_equal(elf.abi_kernel[0] * 10000 + elf.abi_kernel[1] * 100 + elf.abi_kernel[2], 20399);
	graft_arena_free(arena);
}

/* ---- notes ---- */

static const struct {
	const char *name;
	struct elf_note notes[3];
	size_t cut;
	bool is_go, has_abi_note;
} notes_rows[] = {
	{ "none", { { .owner_size = 0 } }, 0, false, false },
	{ "Go's alone", { ELF_NOTES_GO(0) }, 0, true, false },
	{ "Go's before glibc's", { ELF_NOTES_GO(0), ELF_NOTES_GLIBC(0) }, 0, true, true },
	{ "Go's behind glibc's", { ELF_NOTES_GLIBC(0), ELF_NOTES_GO(0) }, 0, true, true },
	{ "Go's behind one of a name that is padded",
	  { { .owner = "X", .owner_size = 2, .type = 4 }, ELF_NOTES_GO(0) },
	  0,
	  true,
	  false },
	{ "Go's in the segment behind glibc's", { ELF_NOTES_GLIBC(0), ELF_NOTES_GO(1) }, 0, true, true },
	{ "Go's in the segment before glibc's", { ELF_NOTES_GO(0), ELF_NOTES_GLIBC(1) }, 0, true, true },
	{ "Go's twice", { ELF_NOTES_GO(0), ELF_NOTES_GO(1) }, 0, true, false },
	{ "another type of Go's", { { .owner = "Go\0", .owner_size = 4, .type = 3 } }, 0, false, false },
	{ "Go's type of another owner", { { .owner = "GNU", .owner_size = 4, .type = 4 } }, 0, false, false },
	{ "an owner whose name begins so", { { .owner = "Goo", .owner_size = 4, .type = 4 } }, 0, false, false },
	{ "a shorter owner", { { .owner = "Go", .owner_size = 3, .type = 4 } }, 0, false, false },
	{ "a longer owner", { { .owner = "Go\0\0", .owner_size = 5, .type = 4 } }, 0, false, false },
	{ "a segment that ends in the value", { ELF_NOTES_GLIBC(0), ELF_NOTES_GO(0) }, 1, false, true },
	{ "a segment that ends before the value", { ELF_NOTES_GLIBC(0), ELF_NOTES_GO(0) }, 16, false, true },
	{ "a segment that ends before the name", { ELF_NOTES_GLIBC(0), ELF_NOTES_GO(0) }, 20, false, true },
	{ "a segment that ends in the header", { ELF_NOTES_GLIBC(0), ELF_NOTES_GO(0) }, 21, false, true },
};

static void check_notes(size_t row, bool is_64)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	unsigned char bytes[ELF_NOTES_MAX];
	struct graft_error err = { 0 };
	struct graft_elf elf = { .is_go = !notes_rows[row].is_go };
	size_t length = elf_notes_make(bytes, is_64, notes_rows[row].notes, GRAFT_COUNT(notes_rows[row].notes),
				       notes_rows[row].cut);

	print_message("# %s, %d bits\n", notes_rows[row].name, is_64 ? 64 : 32);
	assert_int_equal(read_tiny(bytes, length, &elf, &err, arena), 0);
	assert_int_equal(elf.abi_flags, is_64 ? GRAFT_ABI_FLAGS_X86_64 : GRAFT_ABI_FLAGS_I386);
	assert_int_equal(elf.is_go, notes_rows[row].is_go);
	assert_int_equal(elf.has_abi_note, notes_rows[row].has_abi_note);
	if (elf.has_abi_note)
		assert_int_equal(elf.abi_kernel[0] * 10000 + elf.abi_kernel[1] * 100 + elf.abi_kernel[2], 30200);
	graft_arena_free(arena);
}

static void test_notes(void **state)
{
	for (size_t i = 0; i < GRAFT_COUNT(notes_rows); i++) {
		check_notes(i, true);
		check_notes(i, false);
	}
}

/* A program whose end is missing is damaged, and not reported as Go's. */
static void test_notes_cut_off(void **state)
{
	static const struct elf_note notes[] = { ELF_NOTES_GLIBC(0), ELF_NOTES_GO(1) };

	for (int is_64 = 0; is_64 < 2; is_64++) {
		unsigned char bytes[ELF_NOTES_MAX];
		size_t whole = elf_notes_make(bytes, is_64 != 0, notes, GRAFT_COUNT(notes), 0);

		for (size_t length = 0; length < whole; length++) {
			struct graft_arena *arena = graft_arena_new(ARENA_MAX);
			struct graft_error err = { 0 };
			struct graft_elf elf = { 0 };
			void *copy = malloc(length + 1);

			memcpy(copy, bytes, length);
			assert_int_equal(read_tiny(copy, length, &elf, &err, arena), -1);
			assert_int_equal(err.status, GRAFT_FORMAT);
			assert_false(elf.is_go);
			free(copy);
			graft_arena_free(arena);
		}
	}
}

/* A program of the C compiler is not Go's. */
static void test_own_program(void **state)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	auto_close int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct graft_elf elf = { .is_go = true };

	assert_int_equal(graft_elf_read_fd(fd, "self", arena, &elf, NULL), 0);
	assert_false(elf.is_go);
	graft_arena_free(arena);
}

/* ---- damage ---- */

/* No byte of the file may lead outside it, whatever it says: the sanitizers watch. */
static void test_damaged(void **state)
{
	struct tiny32 good = tiny32();

	for (size_t length = 0; length < sizeof(good); length++) {
		struct graft_arena *arena = graft_arena_new(ARENA_MAX);
		struct graft_error err = { 0 };
		struct graft_elf elf = { 0 };
		void *copy = malloc(length + 1); /* exact size: an overread is seen */

		memcpy(copy, &good, length);
		if (read_tiny(copy, length, &elf, &err, arena) < 0)
			assert_int_equal(err.status, GRAFT_FORMAT);
		free(copy);
		graft_arena_free(arena);
	}
	for (size_t i = 0; i < sizeof(good); i++) {
		for (int value = 0; value < 256; value += 85) {
			struct graft_arena *arena = graft_arena_new(ARENA_MAX);
			struct graft_error err = { 0 };
			struct graft_elf elf = { 0 };
			struct tiny32 bad = good;

			((unsigned char *)&bad)[i] = (unsigned char)value;
			(void)read_tiny(&bad, sizeof(bad), &elf, &err, arena);
			graft_arena_free(arena);
		}
	}
}

static void test_refused(void **state)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct graft_error err = { 0 };
	struct tiny32 tiny = tiny32();
	struct graft_elf elf = { 0 };

	assert_int_equal(read_tiny("#!/bin/sh\necho hello\n", 21, &elf, &err, arena), -1);
	assert_string_equal(err.msg, "elf file read error: tiny: not an ELF file");
	tiny.header.e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(read_tiny(&tiny, sizeof(tiny), &elf, &err, arena), -1);
	tiny = tiny32();
	tiny.dynamic[1].d_un.d_val = 4000;
	assert_int_equal(read_tiny(&tiny, sizeof(tiny), &elf, &err, arena), -1);
	assert_string_equal(err.msg, "elf file read error: tiny: name outside the string table");
	graft_arena_free(arena);
}

/* A library whose dynamic section and names lie at these offsets of a file, which ends where the names do. */
static size_t make_spread(unsigned char *bytes, size_t dynamic, size_t strings)
{
	struct elf_stub stub;
	size_t end = dynamic + sizeof(stub.dynamic);

	elf_stub_make(&stub, "libspread.so.1");
	if (end < strings + 16)
		end = strings + 16;
	stub.segments[0].p_filesz = stub.segments[0].p_memsz = end;
	stub.segments[1].p_offset = dynamic;
	stub.dynamic[0].d_un.d_ptr = strings;
	stub.dynamic[1].d_un.d_val = 16;
	memcpy(bytes, &stub, offsetof(struct elf_stub, dynamic));
	memcpy(bytes + dynamic, stub.dynamic, sizeof(stub.dynamic));
	memcpy(bytes + strings, stub.strings, 16);
	return end;
}

/* A file is read in windows; wherever a piece lies, they show what is there, and no more than is there. */
static void test_windows(void **state)
{
	static const size_t dynamics[] = { 500, 4032, 4080, 4096, 8190, 12287, 12352, 16416, 20479 };
	static const size_t names[] = { 700, 4000, 4200, 8170, 12260, 16380, 16500, 20460 };
	const size_t n = sizeof(names) / sizeof(names[0]);
	auto_free unsigned char *bytes = calloc(1, 32768);
	char path[] = "/tmp/graft-elf-XXXXXX";
	auto_close int fd = mkstemp(path);

	assert_non_null(bytes);
	assert_true(fd >= 0);
	(void)unlink(path);
	for (size_t i = 0; i < n * sizeof(dynamics) / sizeof(dynamics[0]); i++) {
		size_t dynamic = dynamics[i / n], strings = names[i % n], length;
		struct graft_arena *arena = graft_arena_new(ARENA_MAX);
		struct graft_error err = { 0 };
		struct graft_elf elf = { 0 };

		memset(bytes, 0xa5, 32768);
		length = make_spread(bytes, dynamic, strings);
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, bytes, length, 0), length);
		assert_int_equal(graft_elf_read_fd(fd, "spread", arena, &elf, &err), 0);
		assert_string_equal(elf.soname, "libspread.so.1");
		assert_int_equal(ftruncate(fd, (off_t)length - 1), 0);
		assert_int_equal(graft_elf_read_fd(fd, "spread", arena, &elf, &err), -1);
		assert_int_equal(err.status, GRAFT_FORMAT);
		graft_arena_free(arena);
	}
}

static void test_unreadable(void **state)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	struct graft_error err = { 0 };
	struct graft_elf elf = { 0 };

	assert_int_equal(graft_elf_read_fd(-1, "gone", arena, &elf, &err), -1);
	assert_string_equal(err.msg, "elf file read error: gone: shorter than its headers say");
	graft_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_libraries), cmocka_unit_test(test_abi_note),
		cmocka_unit_test(test_32_bit),         cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_refused),        cmocka_unit_test(test_windows),
		cmocka_unit_test(test_unreadable),     cmocka_unit_test(test_notes),
		cmocka_unit_test(test_notes_cut_off),  cmocka_unit_test(test_own_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
