/* SPDX-License-Identifier: Apache-2.0 */
/* elf_section: the bytes of one section by its name, for what no program header leads to. 64 bit, this machine's byte order. */
#ifndef GRAFT_FORMATS_ELF_SECTION_H
#define GRAFT_FORMATS_ELF_SECTION_H

#include "formats/elf.h"

struct graft_elf_section {
	const unsigned char *bytes; /* in the arena */
	size_t length;
	uint64_t alignment; /* at least 1 */
};

/*
 * Finds the section called `section` of type `type` (SHT_...). Returns 1; 0 when there is none, or the file is of another class; -1 with GRAFT_FORMAT (not ELF,
 * damaged, or longer than `max`).
 */
int graft_elf_section(const struct graft_elf_source *source, const char *name, const char *section, uint32_t type,
		      size_t max, struct graft_arena *arena, struct graft_elf_section *ret_section,
		      struct graft_error *err);

#endif
