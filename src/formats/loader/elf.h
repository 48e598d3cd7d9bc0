/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf: the few properties of a shared object or program that matter here, read with bounds checks
 * from untrusted bytes: class and machine, SONAME, DT_NEEDED, the kernel of .note.ABI-tag, whether
 * it was made by Go. Only the pages of the headers and of these tables are read (pread), never the
 * whole file. System V ABI ch. 4-5; SPEC ld-so-cache 5 for the cache flags.
 */
#ifndef GRAFT_FORMATS_LOADER_ELF_H
#define GRAFT_FORMATS_LOADER_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/*
 * glibc's ld.so.cache flags of an ABI: 0x0303 x86-64, 0x0003 i386, 0x0a03 aarch64, ... (SPEC
 * ld-so-cache 5)
 */
#define GRAFT_ABI_FLAGS_I386     0x0003u
#define GRAFT_ABI_FLAGS_X86_64   0x0303u
#define GRAFT_ABI_FLAGS_AARCH64  0x0a03u
#define GRAFT_ABI_FLAGS_ARM_HARD 0x0903u
#define GRAFT_ABI_FLAGS_PPC64LE  0x0503u

/* Return the flags of this build's 64-bit ABI and of its 32-bit companion (0 if there is none). */
uint32_t graft_abi_flags_native(void);
uint32_t graft_abi_flags_compat32(void);

struct graft_elf {
	uint32_t abi_flags;  /* 0 if the machine is not in the table */
	const char *soname;  /* in the arena; NULL without DT_SONAME */
	const char **needed; /* DT_NEEDED, in order */
	size_t n_needed;
	bool has_abi_note;      /* there is a .note.ABI-tag for Linux */
	uint32_t abi_kernel[3]; /* its kernel version, e.g. 2.3.99 marks the TLS build of libnvidia-tls */
	bool is_go;             /* has the note of Go's linker (cmd/internal/buildid) */
};

/*
 * Reads the properties of a file. Returns 0, or -1 with GRAFT_FORMAT (not ELF, or damaged). `name`
 * is for messages.
 */
int graft_elf_read_fd(int fd, const char *name, struct graft_arena *arena, struct graft_elf *ret_elf,
		      struct graft_error *err);

struct graft_elf_section {
	const unsigned char *bytes; /* in the arena */
	size_t length;
	uint64_t alignment; /* at least 1 */
};

/*
 * Finds the section called `section` of type `type` (SHT_...). Returns 1; 0 if there is none, or if
 * the file is of another class or byte order; -1 with GRAFT_FORMAT if it is not ELF, damaged, or
 * the section is longer than `max`.
 */
int graft_elf_section(int fd, const char *name, const char *section, uint32_t type, size_t max,
		      struct graft_arena *arena, struct graft_elf_section *ret_section, struct graft_error *err);

#endif
