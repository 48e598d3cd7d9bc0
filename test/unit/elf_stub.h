/* SPDX-License-Identifier: Apache-2.0 */
/* elf_stub: the smallest shared object that has a soname: header, PT_LOAD, PT_DYNAMIC, strings. For the machine of this build or i386. */
#ifndef GRAFT_TEST_ELF_STUB_H
#define GRAFT_TEST_ELF_STUB_H

#include <elf.h>
#include <string.h>

#include "machine.h"

struct elf_stub {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Dyn dynamic[4];
	char strings[300];
};

/* Fills `stub`; soname NULL = none. */
static inline void elf_stub_make(struct elf_stub *stub, const char *soname)
{
	const Elf64_Off dynamic = offsetof(struct elf_stub, dynamic), strings = offsetof(struct elf_stub, strings);

	*stub = (struct elf_stub){ 0 };
	memcpy(stub->header.e_ident, ELFMAG, SELFMAG);
	stub->header.e_ident[EI_CLASS] = ELFCLASS64;
	stub->header.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	stub->header.e_ident[EI_VERSION] = EV_CURRENT;
	stub->header.e_type = ET_DYN;
	stub->header.e_machine = MACHINE_ELF;
	stub->header.e_version = EV_CURRENT;
	stub->header.e_phoff = offsetof(struct elf_stub, segments);
	stub->header.e_ehsize = sizeof(Elf64_Ehdr);
	stub->header.e_phentsize = sizeof(Elf64_Phdr);
	stub->header.e_phnum = 2;
	stub->segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_filesz = sizeof(*stub), .p_memsz = sizeof(*stub) };
	stub->segments[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
					  .p_offset = dynamic,
					  .p_vaddr = dynamic,
					  .p_filesz = sizeof(stub->dynamic),
					  .p_memsz = sizeof(stub->dynamic) };
	stub->dynamic[0] = (Elf64_Dyn){ .d_tag = DT_STRTAB, .d_un.d_ptr = strings };
	stub->dynamic[1] = (Elf64_Dyn){ .d_tag = DT_STRSZ, .d_un.d_val = sizeof(stub->strings) };
	if (soname) {
		stub->dynamic[2] = (Elf64_Dyn){ .d_tag = DT_SONAME, .d_un.d_val = 1 };
		memcpy(stub->strings + 1, soname, strlen(soname) + 1);
	}
}

#endif
