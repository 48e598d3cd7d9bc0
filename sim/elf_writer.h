/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_writer: writes the smallest shared object that readelf, ldconfig and the dynamic loader
 * accept: a SONAME, DT_NEEDED entries and optionally the .note.ABI-tag that identifies NVIDIA's
 * thread-local-storage library. It contains no code, so no compiler is needed.
 */
#ifndef GRAFT_SIM_ELF_WRITER_H
#define GRAFT_SIM_ELF_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum sim_elf_machine { SIM_ELF_X86_64, SIM_ELF_I386, SIM_ELF_AARCH64, SIM_ELF_ARM };

struct sim_elf {
	enum sim_elf_machine machine;
	const char *soname;
	const char *const *needed;  /* NULL-terminated, or NULL */
	const uint32_t *abi_kernel; /* three numbers for .note.ABI-tag, or NULL for none */
};

/* Appends the bytes of the file. If out of memory, the buffer's failed flag is set. */
void sim_elf_write(const struct sim_elf *elf, struct graft_buffer *out);

#endif
