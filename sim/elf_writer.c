/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_writer: one loadable segment at address 0 contains everything. See System V ABI chapters 4
 * and 5.
 *
 * 	header | program headers | note | hash | dynsym | dynstr | dynamic | shstrtab | section headers
 */
#include "elf_writer.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

static const struct {
	uint16_t machine;
	bool is_64;
	uint32_t flags;
} machines[] = {
	[SIM_ELF_X86_64] = { EM_X86_64, true, 0 },
	[SIM_ELF_I386] = { EM_386, false, 0 },
	[SIM_ELF_AARCH64] = { EM_AARCH64, true, 0 },
	[SIM_ELF_ARM] = { EM_ARM, false, 0x05000400 }, /* EABI 5, hard float: ldconfig checks this */
};

enum part { NOTE, HASH, DYNSYM, DYNSTR, DYNAMIC, SHSTRTAB, N_PARTS };

static const struct {
	const char *name;
	uint32_t type;
	bool allocated;
	unsigned int link; /* enum part */
	size_t entry_32, entry_64;
} parts[N_PARTS] = {
	[NOTE] = { ".note.ABI-tag", SHT_NOTE, true, N_PARTS, 0, 0 },
	[HASH] = { ".hash", SHT_HASH, true, DYNSYM, 4, 4 },
	[DYNSYM] = { ".dynsym", SHT_DYNSYM, true, DYNSTR, 16, 24 },
	[DYNSTR] = { ".dynstr", SHT_STRTAB, true, N_PARTS, 0, 0 },
	[DYNAMIC] = { ".dynamic", SHT_DYNAMIC, true, DYNSTR, 8, 16 },
	[SHSTRTAB] = { ".shstrtab", SHT_STRTAB, false, N_PARTS, 0, 0 },
};

struct writer {
	const struct sim_elf *elf;
	struct graft_buffer *out;
	size_t start; /* offset of the file in `out` */
	bool is_64;
	struct graft_buffer strings, names;
	uint32_t name_at[N_PARTS];
	uint64_t at[N_PARTS], size[N_PARTS];
	uint64_t sections_at;
};

static void number(struct writer *w, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		graft_buffer_char(w->out, (char)(value >> (8 * i) & 0xff));
}

/* Writes a number of the size of an address. */
static void word(struct writer *w, uint64_t value)
{
	number(w, value, w->is_64 ? 8 : 4);
}

static uint32_t add_elf_string(struct graft_buffer *strings, const char *s)
{
	uint32_t at = (uint32_t)strings->length;

	graft_buffer_add(strings, s, strlen(s) + 1);
	return at;
}

static size_t header_size(const struct writer *w)
{
	return w->is_64 ? 64 : 52;
}

static size_t program_header_size(const struct writer *w)
{
	return w->is_64 ? 56 : 32;
}

static size_t section_header_size(const struct writer *w)
{
	return w->is_64 ? 64 : 40;
}

static unsigned int n_program_headers(const struct writer *w)
{
	return w->elf->abi_kernel ? 4 : 3;
}

static size_t n_needed(const struct sim_elf *elf)
{
	size_t n = 0;

	while (elf->needed && elf->needed[n])
		n++;
	return n;
}

/* Computes all offsets before anything is written. */
static void lay_out(struct writer *w)
{
	uint64_t offset = header_size(w) + n_program_headers(w) * program_header_size(w);

	graft_buffer_char(&w->strings, '\0');
	graft_buffer_char(&w->names, '\0');
	for (size_t i = 0; i < N_PARTS; i++)
		w->name_at[i] = add_elf_string(&w->names, parts[i].name);
	(void)add_elf_string(&w->strings, w->elf->soname);
	for (size_t i = 0; i < n_needed(w->elf); i++)
		(void)add_elf_string(&w->strings, w->elf->needed[i]);
	w->size[NOTE] = w->elf->abi_kernel ? 32 : 0;
	w->size[HASH] = 16;
	w->size[DYNSYM] = w->is_64 ? 24 : 16;
	w->size[DYNSTR] = w->strings.length;
	w->size[DYNAMIC] = (7 + n_needed(w->elf)) * (w->is_64 ? 16 : 8);
	w->size[SHSTRTAB] = w->names.length;
	for (size_t i = 0; i < N_PARTS; i++) {
		offset = (offset + 7) & ~UINT64_C(7);
		w->at[i] = offset;
		offset += w->size[i];
	}
	w->sections_at = (offset + 7) & ~UINT64_C(7);
}

static void pad_to(struct writer *w, uint64_t offset)
{
	while (!graft_buffer_failed(w->out) && w->out->length - w->start < offset)
		graft_buffer_char(w->out, '\0');
}

static void write_elf_header(struct writer *w)
{
	const unsigned char ident[16] = { 0x7f,        'E',       'L', 'F', w->is_64 ? ELFCLASS64 : ELFCLASS32,
					  ELFDATA2LSB, EV_CURRENT };

	graft_buffer_add(w->out, ident, sizeof(ident));
	number(w, ET_DYN, 2);
	number(w, machines[w->elf->machine].machine, 2);
	number(w, EV_CURRENT, 4);
	word(w, 0);
	word(w, header_size(w));
	word(w, w->sections_at);
	number(w, machines[w->elf->machine].flags, 4);
	number(w, header_size(w), 2);
	number(w, program_header_size(w), 2);
	number(w, n_program_headers(w), 2);
	number(w, section_header_size(w), 2);
	number(w, N_PARTS + 1, 2);
	number(w, SHSTRTAB + 1, 2);
}

static void write_program_header(struct writer *w, uint32_t type, uint32_t flags, uint64_t at, uint64_t size,
				 uint64_t align)
{
	number(w, type, 4);
	if (w->is_64)
		number(w, flags, 4);
	word(w, at);
	word(w, at);
	word(w, at);
	word(w, size);
	word(w, size);
	if (!w->is_64)
		number(w, flags, 4);
	word(w, align);
}

static void write_program_headers(struct writer *w)
{
	/*
	 * Writable, because the loader relocates the dynamic table in place. 64 KiB pages exist on
	 * aarch64.
	 */
	write_program_header(w, PT_LOAD, PF_R | PF_W, 0, w->at[SHSTRTAB], 0x10000);
	write_program_header(w, PT_DYNAMIC, PF_R | PF_W, w->at[DYNAMIC], w->size[DYNAMIC], 8);
	write_program_header(w, PT_GNU_STACK, PF_R | PF_W, 0, 0, 16);
	if (w->elf->abi_kernel)
		write_program_header(w, PT_NOTE, PF_R, w->at[NOTE], w->size[NOTE], 4);
}

static void write_note(struct writer *w)
{
	if (!w->elf->abi_kernel)
		return;
	number(w, 4, 4);
	number(w, 16, 4);
	number(w, NT_GNU_ABI_TAG, 4);
	graft_buffer_add(w->out, "GNU", 4);
	number(w, 0, 4); /* Linux */
	for (size_t i = 0; i < 3; i++)
		number(w, w->elf->abi_kernel[i], 4);
}

static void write_hash(struct writer *w)
{
	number(w, 1, 4); /* one bucket, one chain, both empty */
	number(w, 1, 4);
	number(w, 0, 8);
}

static void dynamic_entry(struct writer *w, uint64_t tag, uint64_t value)
{
	word(w, tag);
	word(w, value);
}

static void write_dynamic(struct writer *w)
{
	uint64_t string = 1;

	dynamic_entry(w, DT_SONAME, string);
	string += strlen(w->elf->soname) + 1;
	for (size_t i = 0; i < n_needed(w->elf); i++) {
		dynamic_entry(w, DT_NEEDED, string);
		string += strlen(w->elf->needed[i]) + 1;
	}
	dynamic_entry(w, DT_HASH, w->at[HASH]);
	dynamic_entry(w, DT_STRTAB, w->at[DYNSTR]);
	dynamic_entry(w, DT_SYMTAB, w->at[DYNSYM]);
	dynamic_entry(w, DT_STRSZ, w->size[DYNSTR]);
	dynamic_entry(w, DT_SYMENT, w->size[DYNSYM]);
	dynamic_entry(w, DT_NULL, 0);
}

static void write_section(struct writer *w, enum part part)
{
	uint64_t address = parts[part].allocated ? w->at[part] : 0;
	bool empty = w->size[part] == 0;

	number(w, empty ? 0 : w->name_at[part], 4);
	number(w, empty ? SHT_NULL : parts[part].type, 4);
	word(w, parts[part].allocated && !empty ? SHF_ALLOC : 0);
	word(w, empty ? 0 : address);
	word(w, empty ? 0 : w->at[part]);
	word(w, w->size[part]);
	number(w, parts[part].link == N_PARTS ? 0 : parts[part].link + 1, 4);
	number(w, part == DYNSYM ? 1 : 0, 4);
	word(w, empty ? 0 : (part == NOTE ? 4 : 8));
	word(w, w->is_64 ? parts[part].entry_64 : parts[part].entry_32);
}

static void write_sections(struct writer *w)
{
	pad_to(w, w->sections_at + section_header_size(w)); /* the first section header is all zero */
	for (unsigned int i = 0; i < N_PARTS; i++)
		write_section(w, (enum part)i);
}

void sim_elf_write(const struct sim_elf *elf, struct graft_buffer *out)
{
	struct writer w = { .elf = elf, .out = out, .start = out->length, .is_64 = machines[elf->machine].is_64 };

	lay_out(&w);
	out->failed = out->failed || graft_buffer_failed(&w.strings) || graft_buffer_failed(&w.names);
	write_elf_header(&w);
	write_program_headers(&w);
	pad_to(&w, w.at[NOTE]);
	write_note(&w);
	pad_to(&w, w.at[HASH]);
	write_hash(&w);
	pad_to(&w, w.at[DYNSTR]); /* the only symbol is all zero */
	graft_buffer_add(out, w.strings.bytes, w.strings.length);
	pad_to(&w, w.at[DYNAMIC]);
	write_dynamic(&w);
	pad_to(&w, w.at[SHSTRTAB]);
	graft_buffer_add(out, w.names.bytes, w.names.length);
	write_sections(&w);
	graft_buffer_done(&w.strings);
	graft_buffer_done(&w.names);
}
