/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_writer: the smallest shared object that readelf, ldconfig and the dynamic loader accept: a SONAME, DT_NEEDED entries,
 * optionally the .note.ABI-tag by which NVIDIA's thread-local-storage library is told apart. No code, no compiler needed.
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
	const uint32_t *abi_kernel; /* three numbers of .note.ABI-tag, or NULL for none */
};

/* Appends the file's bytes; failures are the buffer's. */
void sim_elf_write(const struct sim_elf *elf, struct graft_buffer *out);

#endif
