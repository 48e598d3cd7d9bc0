/* SPDX-License-Identifier: Apache-2.0 */
/* go_program: for tests, a program with the build information of Go, and nothing else. */
#ifndef GRAFT_TEST_GO_PROGRAM_H
#define GRAFT_TEST_GO_PROGRAM_H

#include <elf.h>
#include <string.h>

#include "../unit.h"

struct go_section {
	unsigned char bytes[1024];
	size_t length;
};

static inline void add_go_text(struct go_section *section, const char *text)
{
	size_t length = strlen(text);

	assert_true(section->length + length + 2 <= sizeof(section->bytes) && length < 1 << 14);
	section->bytes[section->length++] = (unsigned char)(length | 0x80u);
	section->bytes[section->length++] = (unsigned char)(length >> 7);
	memcpy(section->bytes + section->length, text, length);
	section->length += length;
}

/* The text stands between two marks of 16 bytes; here the first ends and the second begins a line. */
static inline struct go_section make_go_section(const char *text)
{
	struct go_section section = { .bytes = "\xff Go buildinf:\x08\x02", .length = 32 };
	char marked[900] = "0123456789abcde\n";

	assert_true(strlen(text) + 33 <= sizeof(marked));
	memcpy(marked + 16, text, strlen(text) + 1);
	memcpy(marked + strlen(marked), "\n123456789abcdef", 17);
	add_go_text(&section, "go1.22.5");
	add_go_text(&section, marked);
	return section;
}

struct go_program {
	Elf64_Ehdr header;
	Elf64_Shdr sections[3];
	char names[32];
	struct go_section info;
};

static inline struct go_program make_go_program(const char *text)
{
	struct go_program program = {
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB,
					 EV_CURRENT },
			    .e_shoff = offsetof(struct go_program, sections),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 3,
			    .e_shstrndx = 1 },
		.sections = { [1] = { .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct go_program, names),
				      .sh_size = 32 },
			      [2] = { .sh_name = 1,
				      .sh_type = SHT_PROGBITS,
				      .sh_offset = offsetof(struct go_program, info) } },
		.names = "\0.go.buildinfo",
		.info = make_go_section(text),
	};

	program.sections[2].sh_size = program.info.length;
	return program;
}

#endif
