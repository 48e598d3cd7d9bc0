/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf: program headers -> dynamic section -> SONAME and NEEDED; note segments -> kernel of
 * .note.ABI-tag. Reads only those tables. Every offset and count of the file is checked against
 * fixed limits. A file of another byte order or an unknown machine is recognised, but not read
 * further.
 */
#include "formats/loader/elf.h"

#include <elf.h>
#include <string.h>

#include "base/read.h"

/* Limits far above those of real libraries. A file that exceeds them is not credible. */
#define PROGRAM_HEADERS_MAX 512
#define DYNAMIC_ENTRIES_MAX 4096
#define NEEDED_MAX          256
#define NAME_MAX_BYTES      1024
#define NOTES_MAX_BYTES     4096
#define ABI_NOTE_SIZE       16
#define NT_GO_BUILD_ID      4 /* Go: cmd/link, ELF_NOTE_GOBUILDID_TAG */

/*
 * A part of the file in memory. What we look for in a library is close together in a few places,
 * and a system call for each field took longer than everything else.
 */
#define WINDOW_SIZE ((size_t)8192)
/*
 * Windows begin at a multiple of this. Up to this many bytes from any offset fit into one window.
 */
#define WINDOW_STEP ((size_t)4096)

struct window {
	uint64_t offset;
	size_t n; /* less than WINDOW_SIZE at the end of the file; 0: not read yet */
	unsigned char bytes[WINDOW_SIZE];
};

struct file {
	int fd;
	/* Headers and notes are at the start of the file, the dynamic section and names are not. */
	struct window start, elsewhere;
	const char *name;
	struct graft_arena *arena;
	struct graft_error *err;
	bool is_64;
	Elf64_Phdr *segments; /* 32-bit headers are widened */
	size_t n_segments;
};

/* Moves the window to `offset`. Returns 0 or -1. */
static int move_window(struct window *window, int fd, uint64_t offset)
{
	uint64_t start = offset / WINDOW_STEP * WINDOW_STEP;
	long n;

	if (window->n > 0 && window->offset == start)
		return 0;
	window->n = 0;
	n = graft_read_at(fd, window->bytes, sizeof(window->bytes), start);
	if (n < 0)
		return -1;
	window->offset = start;
	window->n = (size_t)n;
	return 0;
}

/* Like pread(2): returns the count, which is short only at the end, or -1. */
static long read_elf_window(struct file *file, void *bytes, size_t n, uint64_t offset)
{
	struct window *window = offset < WINDOW_STEP ? &file->start : &file->elsewhere;
	size_t skipped = (size_t)(offset % WINDOW_STEP);

	if (n > WINDOW_STEP)
		return graft_read_at(file->fd, bytes, n, offset);
	if (move_window(window, file->fd, offset) < 0)
		return -1;
	if (skipped >= window->n)
		return 0;
	if (n > window->n - skipped)
		n = window->n - skipped;
	memcpy(bytes, window->bytes + skipped, n);
	return (long)n;
}

static int fail_malformed_elf(const struct file *file, const char *why)
{
	return graft_fail(file->err, GRAFT_FORMAT, 0, "elf file read error: %s: %s", file->name, why);
}

static int read_elf_bytes(struct file *file, void *bytes, size_t n, uint64_t offset)
{
	if (offset > INT64_MAX || read_elf_window(file, bytes, n, offset) != (long)n)
		return fail_malformed_elf(file, "shorter than its headers say");
	return 0;
}

/* ld.so.cache flags of an ABI by machine and class (SPEC ld-so-cache 5). */
static const struct {
	uint16_t machine;
	bool is_64;
	uint32_t e_flags_mask, e_flags;
	uint32_t abi_flags;
} abis[] = {
	{ EM_X86_64, true, 0, 0, GRAFT_ABI_FLAGS_X86_64 },
	{ EM_X86_64, false, 0, 0, 0x0803 }, /* x32 */
	{ EM_386, false, 0, 0, GRAFT_ABI_FLAGS_I386 },
	{ EM_AARCH64, true, 0, 0, GRAFT_ABI_FLAGS_AARCH64 },
	{ EM_ARM, false, EF_ARM_ABI_FLOAT_HARD, EF_ARM_ABI_FLOAT_HARD, GRAFT_ABI_FLAGS_ARM_HARD },
	{ EM_ARM, false, EF_ARM_ABI_FLOAT_SOFT, EF_ARM_ABI_FLOAT_SOFT, 0x0b03 },
	{ EM_PPC64, true, EF_PPC64_ABI, 2, GRAFT_ABI_FLAGS_PPC64LE },
	{ EM_S390, true, 0, 0, 0x0403 },
	{ 243 /* EM_RISCV */, true, 0x6, 0x4, 0x1003 }, /* lp64d */
};

static uint32_t abi_flags_of(uint16_t machine, bool is_64, uint32_t e_flags)
{
	for (size_t i = 0; i < sizeof(abis) / sizeof(abis[0]); i++) {
		if (abis[i].machine == machine && abis[i].is_64 == is_64 &&
		    (e_flags & abis[i].e_flags_mask) == abis[i].e_flags)
			return abis[i].abi_flags;
	}
	return 0;
}

uint32_t graft_abi_flags_native(void)
{
#if defined(__x86_64__)
	return GRAFT_ABI_FLAGS_X86_64;
#elif defined(__aarch64__)
	return GRAFT_ABI_FLAGS_AARCH64;
#elif defined(__powerpc64__)
	return GRAFT_ABI_FLAGS_PPC64LE;
#else
#error "unknown machine: add its ld.so.cache flags (SPEC ld-so-cache 5)"
#endif
}

uint32_t graft_abi_flags_compat32(void)
{
#if defined(__x86_64__)
	return GRAFT_ABI_FLAGS_I386;
#elif defined(__aarch64__)
	return GRAFT_ABI_FLAGS_ARM_HARD;
#else
	return 0;
#endif
}

static int read_segments(struct file *file, uint64_t offset, size_t n, size_t entry_size)
{
	size_t wanted = file->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);

	if (n == 0 || n > PROGRAM_HEADERS_MAX || entry_size != wanted)
		return fail_malformed_elf(file, "bad program headers");
	file->segments = graft_arena_alloc(file->arena, n * sizeof(*file->segments));
	if (!file->segments)
		return graft_fail_memory(file->err);
	file->n_segments = n;
	if (file->is_64)
		return read_elf_bytes(file, file->segments, n * wanted, offset);
	for (size_t i = 0; i < n; i++) {
		Elf32_Phdr narrow;

		if (read_elf_bytes(file, &narrow, sizeof(narrow), offset + i * sizeof(narrow)) < 0)
			return -1;
		file->segments[i] = (Elf64_Phdr){
			.p_type = narrow.p_type,
			.p_offset = narrow.p_offset,
			.p_vaddr = narrow.p_vaddr,
			.p_filesz = narrow.p_filesz,
		};
	}
	return 0;
}

static int read_header(struct file *file, struct graft_elf *elf)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr narrow;
		Elf64_Ehdr wide;
	} header = { .ident = { 0 } };
	static const unsigned char native = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

	if (read_elf_bytes(file, header.ident, EI_NIDENT, 0) < 0)
		return -1;
	if (memcmp(header.ident, ELFMAG, SELFMAG) != 0)
		return fail_malformed_elf(file, "not an ELF file");
	if (header.ident[EI_DATA] != native)
		return fail_malformed_elf(file, "of another byte order");
	if (header.ident[EI_CLASS] == ELFCLASS64) {
		file->is_64 = true;
		if (read_elf_bytes(file, &header, sizeof(header.wide), 0) < 0)
			return -1;
		elf->abi_flags = abi_flags_of(header.wide.e_machine, true, header.wide.e_flags);
		return read_segments(file, header.wide.e_phoff, header.wide.e_phnum, header.wide.e_phentsize);
	}
	if (header.ident[EI_CLASS] != ELFCLASS32)
		return fail_malformed_elf(file, "neither 32 nor 64 bit");
	if (read_elf_bytes(file, &header, sizeof(header.narrow), 0) < 0)
		return -1;
	elf->abi_flags = abi_flags_of(header.narrow.e_machine, false, header.narrow.e_flags);
	return read_segments(file, header.narrow.e_phoff, header.narrow.e_phnum, header.narrow.e_phentsize);
}

/* Finds the file offset of a virtual address. Returns false if it is in no segment. */
static bool offset_of(const struct file *file, uint64_t address, uint64_t *ret_offset)
{
	for (size_t i = 0; i < file->n_segments; i++) {
		const Elf64_Phdr *segment = &file->segments[i];

		if (segment->p_type != PT_LOAD || address < segment->p_vaddr ||
		    address - segment->p_vaddr >= segment->p_filesz ||
		    segment->p_offset > UINT64_MAX - (address - segment->p_vaddr))
			continue;
		*ret_offset = segment->p_offset + (address - segment->p_vaddr);
		return true;
	}
	return false;
}

/* The dynamic section's string table in the file. */
struct strings {
	uint64_t offset, size;
};

static int read_elf_string(struct file *file, const struct strings *strings, uint64_t index, const char **ret_string)
{
	char text[NAME_MAX_BYTES];
	uint64_t left;
	long n;

	if (index >= strings->size)
		return fail_malformed_elf(file, "name outside the string table");
	left = strings->size - index;
	if (strings->offset > INT64_MAX - index)
		return fail_malformed_elf(file, "bad string table");
	n = read_elf_window(file, text, left < sizeof(text) ? (size_t)left : sizeof(text), strings->offset + index);
	if (n <= 0 || !memchr(text, '\0', (size_t)n))
		return fail_malformed_elf(file, "unterminated name");
	*ret_string = graft_arena_strdup(file->arena, text);
	return *ret_string ? 0 : graft_fail_memory(file->err);
}

struct dynamic {
	Elf64_Dyn *entries;
	size_t n;
};

static int read_dynamic(struct file *file, const Elf64_Phdr *segment, struct dynamic *dynamic)
{
	size_t entry_size = file->is_64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
	uint64_t n = segment->p_filesz / entry_size;

	if (n > DYNAMIC_ENTRIES_MAX)
		n = DYNAMIC_ENTRIES_MAX;
	dynamic->entries = graft_arena_alloc(file->arena, (size_t)n * sizeof(*dynamic->entries));
	if (!dynamic->entries)
		return graft_fail_memory(file->err);
	dynamic->n = (size_t)n;
	if (file->is_64)
		return read_elf_bytes(file, dynamic->entries, (size_t)n * entry_size, segment->p_offset);
	/*
	 * Read the entries into the second half of the buffer, then widen them from the front:
	 * writing never overtakes reading.
	 */
	Elf32_Dyn *narrow = (Elf32_Dyn *)(void *)(dynamic->entries + n) - n;

	if (read_elf_bytes(file, narrow, (size_t)n * entry_size, segment->p_offset) < 0)
		return -1;
	for (uint64_t i = 0; i < n; i++) {
		Elf32_Dyn entry = narrow[i];

		dynamic->entries[i] = (Elf64_Dyn){ .d_tag = entry.d_tag, .d_un.d_val = entry.d_un.d_val };
	}
	return 0;
}

static bool find_tag(const struct dynamic *dynamic, int64_t tag, uint64_t *ret_value)
{
	for (size_t i = 0; i < dynamic->n && dynamic->entries[i].d_tag != DT_NULL; i++) {
		if (dynamic->entries[i].d_tag == tag) {
			*ret_value = dynamic->entries[i].d_un.d_val;
			return true;
		}
	}
	return false;
}

static int read_soname_and_needed(struct file *file, const struct dynamic *dynamic, const struct strings *strings,
				  struct graft_elf *elf)
{
	for (size_t i = 0; i < dynamic->n && dynamic->entries[i].d_tag != DT_NULL; i++) {
		const Elf64_Dyn *entry = &dynamic->entries[i];
		const char **slot;

		if (entry->d_tag == DT_SONAME && !elf->soname) {
			if (read_elf_string(file, strings, entry->d_un.d_val, &elf->soname) < 0)
				return -1;
		}
		if (entry->d_tag != DT_NEEDED || elf->n_needed == NEEDED_MAX)
			continue;
		slot = graft_arena_push(file->arena, &elf->needed, &elf->n_needed, sizeof(*slot));
		if (!slot)
			return graft_fail_memory(file->err);
		if (read_elf_string(file, strings, entry->d_un.d_val, slot) < 0)
			return -1;
	}
	return 0;
}

static int read_dynamic_names(struct file *file, const Elf64_Phdr *segment, struct graft_elf *elf)
{
	struct strings strings = { 0 };
	struct dynamic dynamic = { 0 };
	uint64_t address = 0, unused;

	if (read_dynamic(file, segment, &dynamic) < 0)
		return -1;
	if (!find_tag(&dynamic, DT_SONAME, &unused) && !find_tag(&dynamic, DT_NEEDED, &unused))
		return 0;
	if (!find_tag(&dynamic, DT_STRTAB, &address) || !find_tag(&dynamic, DT_STRSZ, &strings.size) ||
	    !offset_of(file, address, &strings.offset))
		return fail_malformed_elf(file, "no string table");
	return read_soname_and_needed(file, &dynamic, &strings, elf);
}

static size_t round_up4(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static bool is_note(const Elf64_Nhdr *note, const unsigned char *name, const char *owner, size_t size, uint32_t type)
{
	return note->n_type == type && note->n_namesz == size && memcmp(name, owner, size) == 0;
}

/* The ABI note for Linux: {u32 0 (Linux), u32 kernel[3]}. */
static void read_abi_note(const unsigned char *value, struct graft_elf *elf)
{
	uint32_t words[4];

	memcpy(words, value, sizeof(words));
	elf->has_abi_note = words[0] == ELF_NOTE_OS_LINUX;
	memcpy(elf->abi_kernel, words + 1, sizeof(elf->abi_kernel));
}

/* Reads the notes of a segment. The first one of each kind applies. */
static int read_notes(struct file *file, const Elf64_Phdr *segment, struct graft_elf *elf)
{
	unsigned char bytes[NOTES_MAX_BYTES];
	size_t n = segment->p_filesz < sizeof(bytes) ? (size_t)segment->p_filesz : sizeof(bytes);
	size_t at = 0;

	if (read_elf_bytes(file, bytes, n, segment->p_offset) < 0)
		return -1;
	while (n - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note; /* both classes have the same header */
		size_t name_at = at + sizeof(note), value_at;

		memcpy(&note, bytes + at, sizeof(note));
		if (note.n_namesz > n || note.n_descsz > n)
			return 0;
		value_at = name_at + round_up4(note.n_namesz);
		if (value_at > n || round_up4(note.n_descsz) > n - value_at)
			return 0;
		if (!elf->has_abi_note && note.n_descsz >= ABI_NOTE_SIZE &&
		    is_note(&note, bytes + name_at, "GNU", sizeof("GNU"), NT_GNU_ABI_TAG))
			read_abi_note(bytes + value_at, elf);
		if (is_note(&note, bytes + name_at, "Go\0", sizeof("Go\0"), NT_GO_BUILD_ID))
			elf->is_go = true;
		at = value_at + round_up4(note.n_descsz);
	}
	return 0;
}

int graft_elf_read_fd(int fd, const char *name, struct graft_arena *arena, struct graft_elf *ret_elf,
		      struct graft_error *err)
{
	struct graft_elf elf = { 0 };
	bool dynamic_seen = false;
	struct file file;

	/* The bytes of the windows are not zeroed. */
	file.fd = fd;
	file.start.n = file.elsewhere.n = 0;
	file.name = name;
	file.arena = arena;
	file.err = err;
	file.is_64 = false;
	if (read_header(&file, &elf) < 0)
		return -1;
	for (size_t i = 0; i < file.n_segments; i++) {
		const Elf64_Phdr *segment = &file.segments[i];
		int rc = 0;

		if (segment->p_type == PT_DYNAMIC && !dynamic_seen) {
			dynamic_seen = true;
			rc = read_dynamic_names(&file, segment, &elf);
		} else if (segment->p_type == PT_NOTE) {
			rc = read_notes(&file, segment, &elf);
		}
		if (rc < 0)
			return rc;
	}
	*ret_elf = elf;
	return 0;
}
