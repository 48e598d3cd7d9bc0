/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed: a build tool. Writes assembler source that includes files verbatim and a table of their
 * names, so that graft-sim is a single file.
 *
 * 	embed OUTPUT TABLE FILE...
 */
#include <stdio.h>
#include <string.h>

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A checksum of the file's bytes, so that a compiler cache sees another text for another file. */
static unsigned long long sum_of(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned long long sum = 14695981039346656037ull;
	int byte;

	while (file && (byte = getc(file)) != EOF)
		sum = (sum ^ (unsigned int)byte) * 1099511628211ull;
	if (file)
		(void)fclose(file);
	return sum;
}

int main(int argc, char **argv)
{
	FILE *out = argc > 3 ? fopen(argv[1], "we") : NULL;

	if (!out) {
		(void)fputs("usage: embed OUTPUT TABLE FILE...\n", stderr);
		return 2;
	}
	(void)fputs("\t.section .rodata\n", out);
	for (int i = 3; i < argc; i++)
		(void)fprintf(
		    out,
		    "/* %016llx */\nname_%d:\t.asciz \"%s\"\n\t.balign 16\nfrom_%d:\t.incbin \"%s\"\nto_%d:\t.byte 0\n",
		    sum_of(argv[i]), i, base_name(argv[i]), i, argv[i], i);
	/*
	 * A position-independent program must relocate the addresses, hence a section that is
	 * read-only only after relocation.
	 */
	(void)fprintf(
	    out,
	    "\t.section .data.rel.ro,\"aw\"\n\t.balign 8\n\t.globl sim_embedded_%s\n\t.hidden sim_embedded_%s\n"
	    "sim_embedded_%s:\n",
	    argv[2], argv[2], argv[2]);
	for (int i = 3; i < argc; i++)
		(void)fprintf(out, "\t.quad name_%d, from_%d, to_%d\n", i, i, i);
	(void)fprintf(out,
		      "\t.section .rodata\n\t.balign 4\n\t.globl sim_n_embedded_%s\n\t.hidden "
		      "sim_n_embedded_%s\nsim_n_embedded_%s:\n"
		      "\t.long %d\n\t.section .note.GNU-stack,\"\"\n",
		      argv[2], argv[2], argv[2], argc - 3);
	return fclose(out) == 0 ? 0 : 1;
}
