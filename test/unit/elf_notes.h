/* SPDX-License-Identifier: Apache-2.0 */
/* elf_notes: a program that consists of headers and notes, in two segments. For x86-64 or i386; the builds that read it have that byte order. */
#ifndef GRAFT_TEST_ELF_NOTES_H
#define GRAFT_TEST_ELF_NOTES_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ELF_NOTES_SEGMENTS 2
#define ELF_NOTES_ROOM     256 /* bytes of the headers, and of each segment */
#define ELF_NOTES_MAX      ((size_t)ELF_NOTES_ROOM * (ELF_NOTES_SEGMENTS + 1))

struct elf_note {
	const char *owner;
	uint32_t owner_size; /* with its zeros; 0 = there is no such note */
	uint32_t type;
	unsigned int segment;
};

/* Of which kernel glibc's is: 3.2.0; and what Go's linker leaves. */
#define ELF_NOTES_GLIBC(number)                                                              \
	{                                                                                    \
		.owner = "GNU", .owner_size = 4, .type = NT_GNU_ABI_TAG, .segment = (number) \
	}
#define ELF_NOTES_GO(number)                                                     \
	{                                                                        \
		.owner = "Go\0", .owner_size = 4, .type = 4, .segment = (number) \
	}

/* Each note has 16 bytes of value: {0, 3, 2, 0}. Returns the end of the note in `segment`, which has `used` bytes. */
static inline size_t elf_notes_add(unsigned char *segment, size_t used, const struct elf_note *note)
{
	static const uint32_t value[4] = { 0, 3, 2, 0 };
	const Elf64_Nhdr header = { .n_namesz = note->owner_size, .n_descsz = sizeof(value), .n_type = note->type };

	memcpy(segment + used, &header, sizeof(header));
	memcpy(segment + used + sizeof(header), note->owner, note->owner_size);
	used += sizeof(header) + (note->owner_size + 3u) / 4 * 4;
	memcpy(segment + used, value, sizeof(value));
	return used + sizeof(value);
}

static inline void elf_notes_header(unsigned char *bytes, bool is_64)
{
	Elf64_Ehdr header = { .e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = EV_CURRENT };
	Elf32_Ehdr small = { .e_type = ET_EXEC, .e_machine = EM_386, .e_version = EV_CURRENT };

	header.e_phoff = sizeof(header);
	header.e_phentsize = sizeof(Elf64_Phdr);
	small.e_phoff = sizeof(small);
	small.e_phentsize = sizeof(Elf32_Phdr);
	header.e_phnum = small.e_phnum = ELF_NOTES_SEGMENTS;
	memcpy(bytes, is_64 ? (const void *)&header : &small, is_64 ? sizeof(header) : sizeof(small));
	memcpy(bytes, ELFMAG, SELFMAG);
	bytes[EI_CLASS] = is_64 ? ELFCLASS64 : ELFCLASS32;
	bytes[EI_DATA] = ELFDATA2LSB;
	bytes[EI_VERSION] = EV_CURRENT;
}

/* Fills `bytes`; `cut` bytes of each segment do not belong to it. Returns the length of the file, which ends where the last segment does. */
static inline size_t elf_notes_make(unsigned char bytes[ELF_NOTES_MAX], bool is_64, const struct elf_note *notes,
				    size_t n, size_t cut)
{
	size_t length = ELF_NOTES_ROOM;

	memset(bytes, 0, ELF_NOTES_MAX);
	elf_notes_header(bytes, is_64);
	for (unsigned int i = 0; i < ELF_NOTES_SEGMENTS; i++) {
		size_t offset = (size_t)ELF_NOTES_ROOM * (i + 1), used = 0;
		Elf64_Phdr segment = { .p_type = PT_NOTE, .p_offset = offset };
		Elf32_Phdr small = { .p_type = PT_NOTE, .p_offset = (Elf32_Off)offset };

		for (size_t j = 0; j < n && notes[j].owner_size > 0; j++)
			if (notes[j].segment == i)
				used = elf_notes_add(bytes + offset, used, &notes[j]);
		used -= used > cut ? cut : used;
		segment.p_filesz = used;
		small.p_filesz = (Elf32_Word)used;
		if (is_64)
			memcpy(bytes + sizeof(Elf64_Ehdr) + i * sizeof(segment), &segment, sizeof(segment));
		else
			memcpy(bytes + sizeof(Elf32_Ehdr) + i * sizeof(small), &small, sizeof(small));
		length = used > 0 ? offset + used : length;
	}
	return length;
}

#endif
