/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_file: where nvidia-ctk finds CDI specs and puts them: options, standard input and output, names of files. */
#ifndef GRAFT_CLI_CTK_CDI_FILE_H
#define GRAFT_CLI_CTK_CDI_FILE_H

#include "cli/ctk/ctk.h"
#include "formats/cdi_write.h"
#include "plan/cdi_fingerprint.h"

/* The directories that container engines read, by priority. */
#define CTK_CDI_STATIC_DIRECTORY  "/etc/cdi"
#define CTK_CDI_DYNAMIC_DIRECTORY "/var/run/cdi"
#define CTK_CDI_DIRECTORIES                                                                              \
	(struct ctk_list)                                                                                \
	{                                                                                                \
		.items = (const char *[]){ CTK_CDI_STATIC_DIRECTORY, CTK_CDI_DYNAMIC_DIRECTORY }, .n = 2 \
	}
/* The row of --spec-dir, into a struct ctk_list (SPEC ctk-and-cdi 1.2). */
#define CTK_CDI_DIRECTORIES_OPTION(type, member)                                                                      \
	{                                                                                                             \
		.name = "spec-dir", .argument = GRAFT_OPTION_REQUIRED, .value_name = "DIR",                           \
		.help = "Directory of CDI specs, later ones override earlier ones (default " CTK_CDI_STATIC_DIRECTORY \
			", " CTK_CDI_DYNAMIC_DIRECTORY ")",                                                           \
		.parse = ctk_option_list, .offset = offsetof(type, member),                                           \
		.environment = (const char *const[]){ "NVIDIA_CTK_CDI_SPEC_DIRS", NULL },                             \
	}

/*
 * The options of `cdi generate` as a specification keeps them (plan/cdi_fingerprint.h): in the order of their names, without those that say where it goes and in
 * which format; behind them the configuration that the program was given, which says what they do not. Words that are no options are left out. NULL: memory.
 */
const char *ctk_cdi_flags_text(struct ctk *ctk, const char *const *words, size_t n);

/* Writes the text of a spec, whole or not at all (mode 0644), or gives it to the sink of `ctk`. */
int ctk_cdi_write_file(const struct ctk *ctk, const char *path, const struct graft_buffer *text,
		       struct graft_error *err);

/* Reads one spec; "-" is standard input. -1 as graft_cdi_file_read() and graft_cdi_spec_read(). */
int ctk_cdi_read(struct ctk *ctk, const char *path, struct graft_cdi_spec *ret_spec, struct graft_error *err);

/*
 * Writes a spec (mode 0644) to a file whose ending says the format, ".json" or ".yaml"; any other name gets ".yaml". NULL and "" are standard output, in
 * YAML. `ret_path`, which may be NULL, is set to the name of the file, NULL for standard output.
 */
int ctk_cdi_save(struct ctk *ctk, const struct graft_cdi_spec *spec, const char *path, const char **ret_path,
		 struct graft_error *err);

#endif
