/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_section: section headers -> names -> one section. The file is untrusted: every offset, count
 * and size is checked.
 */
#include "formats/loader/elf.h"

#include <elf.h>
#include <string.h>

#include "base/read.h"

/* Far above the values of real libraries. */
#define SECTIONS_MAX   4096
#define NAME_MAX_BYTES 64

struct table {
	int fd;
	const char *name;
	struct graft_error *err;
	Elf64_Shdr *headers;
	size_t n;
};

static int fail_section_table(const struct table *table, const char *why)
{
	return graft_fail(table->err, GRAFT_FORMAT, 0, "elf file read error: %s: %s", table->name, why);
}

static int read_section_bytes(const struct table *table, void *bytes, size_t n, uint64_t offset)
{
	if (offset > INT64_MAX || graft_read_at(table->fd, bytes, n, offset) != (long)n)
		return fail_section_table(table, "shorter than its headers say");
	return 0;
}

/* Returns 1, 0 if the file has no such table, or -1. */
static int read_headers(struct table *table, struct graft_arena *arena, size_t *ret_names)
{
	static const unsigned char native = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	Elf64_Ehdr header;

	if (read_section_bytes(table, &header, EI_NIDENT, 0) < 0)
		return -1;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return fail_section_table(table, "not an ELF file");
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != native)
		return 0;
	if (read_section_bytes(table, &header, sizeof(header), 0) < 0)
		return -1;
	if (header.e_shoff == 0 || header.e_shnum == 0)
		return 0;
	if (header.e_shnum > SECTIONS_MAX || header.e_shentsize != sizeof(Elf64_Shdr) ||
	    header.e_shstrndx >= header.e_shnum)
		return fail_section_table(table, "bad section headers");
	table->n = header.e_shnum;
	table->headers = graft_arena_alloc(arena, table->n * sizeof(*table->headers));
	if (!table->headers)
		return graft_fail_memory(table->err);
	*ret_names = header.e_shstrndx;
	return read_section_bytes(table, table->headers, table->n * sizeof(*table->headers), header.e_shoff) < 0 ? -1
														 : 1;
}

/*
 * Returns whether a header's name is `section`, whose length including the terminator is `length`;
 * -1 on failure.
 */
static int is_section_named(const struct table *table, const Elf64_Shdr *names, const Elf64_Shdr *header,
			    const char *section, size_t length)
{
	char text[NAME_MAX_BYTES];

	if (header->sh_name >= names->sh_size || length > names->sh_size - header->sh_name ||
	    names->sh_offset > (uint64_t)INT64_MAX - header->sh_name)
		return 0;
	if (read_section_bytes(table, text, length, names->sh_offset + header->sh_name) < 0)
		return -1;
	return memcmp(text, section, length) == 0;
}

static int read_elf_section(const struct table *table, const Elf64_Shdr *header, size_t max, struct graft_arena *arena,
			    struct graft_elf_section *ret_section)
{
	unsigned char *bytes;

	if (header->sh_size > max)
		return fail_section_table(table, "a section is too long");
	bytes = graft_arena_alloc(arena, (size_t)header->sh_size + 1);
	if (!bytes)
		return graft_fail_memory(table->err);
	if (read_section_bytes(table, bytes, (size_t)header->sh_size, header->sh_offset) < 0)
		return -1;
	*ret_section = (struct graft_elf_section){ .bytes = bytes,
						   .length = (size_t)header->sh_size,
						   .alignment = header->sh_addralign > 0 ? header->sh_addralign : 1 };
	return 1;
}

int graft_elf_section(int fd, const char *name, const char *section, uint32_t type, size_t max,
		      struct graft_arena *arena, struct graft_elf_section *ret_section, struct graft_error *err)
{
	struct table table = { .fd = fd, .name = name, .err = err };
	size_t names = 0, length = strlen(section) + 1;
	int rc = read_headers(&table, arena, &names);

	if (rc <= 0)
		return rc;
	if (length > NAME_MAX_BYTES)
		return 0;
	for (size_t i = 0; i < table.n; i++) {
		if (table.headers[i].sh_type != type)
			continue;
		rc = is_section_named(&table, &table.headers[names], &table.headers[i], section, length);
		if (rc != 0)
			return rc < 0 ? -1 : read_elf_section(&table, &table.headers[i], max, arena, ret_section);
	}
	return 0;
}
