/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_file: reads and writes CDI specs for nvidia-ctk: options, standard input and output, file
 * names.
 */
#ifndef GRAFT_CLI_CTK_CDI_FILE_H
#define GRAFT_CLI_CTK_CDI_FILE_H

#include "cli/ctk/ctk.h"
#include "formats/cdi/cdi_write.h"
#include "plan/cdi_fingerprint.h"

/* The directories that container engines read; the later one has priority. */
#define CTK_CDI_STATIC_DIRECTORY  "/etc/cdi"
#define CTK_CDI_DYNAMIC_DIRECTORY "/var/run/cdi"
#define CTK_CDI_DIRECTORIES                                                                              \
	{                                                                                                \
		.items = (const char *[]){ CTK_CDI_STATIC_DIRECTORY, CTK_CDI_DYNAMIC_DIRECTORY }, .n = 2 \
	}
/* The option --spec-dir, stored in a struct ctk_list (SPEC ctk-and-cdi 1.2). */
#define CTK_CDI_DIRECTORIES_OPTION(type, member)                                                                      \
	{                                                                                                             \
		.name = "spec-dir", .argument = GRAFT_OPTION_REQUIRED, .value_name = "DIR",                           \
		.help = "Directory of CDI specs; later ones override earlier ones (default " CTK_CDI_STATIC_DIRECTORY \
			", " CTK_CDI_DYNAMIC_DIRECTORY ")",                                                           \
		.parse = ctk_option_list, .offset = offsetof(type, member),                                           \
		.environment = (const char *const[]){ "NVIDIA_CTK_CDI_SPEC_DIRS", NULL },                             \
	}

/*
 * Formats the options of `cdi generate` as a specification records them (plan/cdi_fingerprint.h):
 * sorted by name, without those that name the output and its format, followed by the configuration
 * file that the program was given, because the options depend on it. Arguments that are not options
 * are dropped. Returns NULL if out of memory.
 */
const char *ctk_cdi_flags_text(struct ctk *ctk, const char *const *words, size_t n);

/*
 * Writes the text of a spec atomically (mode 0644), or passes it to the sink of `ctk`. Returns 0,
 * or -1 with the error set.
 */
int ctk_cdi_write_file(const struct ctk *ctk, const char *path, const struct graft_buffer *text,
		       struct graft_error *err);

/*
 * Reads one spec from a file or a pipe; "-" is standard input. The spec belongs to the arena of
 * `ctk`. Returns 0, or -1 as graft_cdi_input_read() and graft_cdi_spec_read() do.
 */
int ctk_cdi_read(struct ctk *ctk, const char *path, struct graft_cdi_spec *ret_spec, struct graft_error *err);

/*
 * Writes a spec (mode 0644) to a file. The suffix, ".json" or ".yaml", selects the format; any
 * other name gets ".yaml" appended. NULL and "" mean standard output, in YAML. Returns 0, or -1
 * with the error set.
 */
int ctk_cdi_save(struct ctk *ctk, const struct graft_cdi_spec *spec, const char *path, struct graft_error *err);

#endif
