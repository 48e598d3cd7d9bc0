/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_validate: nvidia-ctk cdi validate: reports everything that is wrong with CDI specs, with the
 * place of each fault. The exit status is 0 if engines accept all of them, and 1 if not or if
 * something could not be read.
 */
#include "base/cleanup.h"
#include "cli/ctk/cdi_file.h"
#include "formats/json/json.h"
#include "host/cdi_registry.h"

struct validate_options {
	struct ctk_base base;
	struct ctk_list directories;
	bool json;
};

static const struct graft_option options[] = {
	CTK_CDI_DIRECTORIES_OPTION(struct validate_options, directories),
	{ .name = "json",
	  .help = "Print the findings as JSON",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct validate_options, json) },
};

/* ---- output ---- */

/* The format of compiler messages, which editors understand: "FILE:3:5: error: ...". */
static void print_lines(const struct graft_cdi_examined *file, struct graft_buffer *out)
{
	for (size_t i = 0; i < file->faults.n; i++) {
		const struct graft_cdi_fault *fault = &file->faults.items[i];

		graft_buffer_string(out, file->path);
		if (fault->line > 0)
			graft_buffer_printf(out, ":%u:%u", fault->line, fault->column);
		graft_buffer_printf(out, ": %s: %s\n", fault->harmless ? "warning" : "error", fault->what);
	}
}

static void print_json(const struct graft_cdi_examined *files, size_t n, struct graft_buffer *out)
{
	graft_buffer_string(out, "[");
	for (size_t i = 0; i < n; i++) {
		graft_buffer_string(out, i > 0 ? ",\n {\"file\": " : "\n {\"file\": ");
		graft_json_quote(out, files[i].path);
		graft_buffer_printf(out, ", \"valid\": %s, \"faults\": [", files[i].valid ? "true" : "false");
		for (size_t j = 0; j < files[i].faults.n; j++) {
			const struct graft_cdi_fault *fault = &files[i].faults.items[j];

			graft_buffer_printf(out, "%s\n  {\"severity\": \"%s\", ", j > 0 ? "," : "",
					    fault->harmless ? "warning" : "error");
			if (fault->line > 0)
				graft_buffer_printf(out, "\"line\": %u, \"column\": %u, ", fault->line, fault->column);
			graft_buffer_string(out, "\"message\": ");
			graft_json_quote(out, fault->what);
			graft_buffer_char(out, '}');
		}
		graft_buffer_string(out, "]}");
	}
	graft_buffer_string(out, n > 0 ? "\n]\n" : "]\n");
}

/* ---- the work ---- */

static int validate(void *target, struct graft_error *err)
{
	const struct validate_options *given = target;
	const struct ctk *ctk = given->base.ctk;
	bool named = given->base.argc > 0;
	struct graft_buffer out = { .max = 0 };
	struct graft_cdi_examined *files;
	size_t n, n_invalid = 0;
	int status;

	if (graft_cdi_examine(named ? (const char *const *)given->base.argv : given->directories.items,
			      named ? (size_t)given->base.argc : given->directories.n, !named, ctk->arena, &files, &n,
			      err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		n_invalid += !files[i].valid;
		if (!given->json)
			print_lines(&files[i], &out);
	}
	if (given->json)
		print_json(files, n, &out);
	graft_info(&ctk->log, "%zu CDI specs, %zu of them invalid", n, n_invalid);
	status = ctk_print(ctk, &out);
	return n_invalid > 0 ? 1 : status;
}

const struct graft_command ctk_cdi_validate = {
	.name = "validate",
	.arguments = "[FILE|DIR...]",
	.summary = "Report every fault in CDI specs",
	.description = "Checks files, directories of files or, without arguments, the directories of --spec-dir. Later "
		       "directories override earlier ones. Prints each fault with line and column; a warning is "
		       "something that engines accept but should not. The exit status is 1 if an engine would reject "
		       "one of the files, or if something could not be read.",
	GRAFT_OPTIONS(options),
	.max_arguments = -1,
	.go_style = true,
	.interspersed = true,
	CTK_WORK(validate, struct validate_options, .directories = CTK_CDI_DIRECTORIES),
};
