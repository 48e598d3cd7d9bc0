/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: prints config.toml, or the defaults, with settings changed in it (SPEC ctk-and-cdi 1.4). A file keeps its comments, its order and the keys that
 * nobody knows. What could not be used by the other programs is neither printed nor written. What a setting means is request/config.h.
 */
#include <errno.h>
#include <string.h>

#include "apply/host_file.h"
#include "base/cleanup.h"
#include "cli/config.h"
#include "cli/ctk/ctk.h"

#define FILE_MODE 0644

struct config_options {
	struct ctk_base base;
	const char *file; /* NULL = the usual places; "" = none */
	struct graft_strings settings;
	const char *separator;
	bool in_place;
	const char *output; /* NULL or "" = standard output */
};

/* A document and where it is from. */
struct document {
	const char *path; /* "" = nowhere */
	struct graft_config_host host;
	struct graft_toml *toml; /* owned */
	bool missing;            /* there is no file: these are the defaults */
};

static int parse_settings(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct config_options *options = target;
	struct graft_arena *arena = options->base.ctk->arena;
	struct graft_strings settings;

	(void)option;
	if (graft_config_split_settings(value, arena, &settings, err) < 0)
		return -1;
	for (size_t i = 0; i < settings.n; i++) {
		if (!graft_arena_push_string(arena, &options->settings.items, &options->settings.n, settings.items[i]))
			return graft_fail_memory(err);
	}
	return 0;
}

static void read_host(struct graft_arena *arena, struct graft_config_host *ret_host)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;

	*ret_host = (struct graft_config_host){ 0 };
	if (graft_root_open(&root, "/", NULL) == 0)
		cli_config_host(&root, arena, ret_host);
}

/* ---- the document ---- */

static int make_defaults(struct document *document, struct graft_arena *arena, struct graft_error *err)
{
	struct graft_buffer text = { .max = 0 };
	int rc = graft_config_default_document(&document->host, arena, &text, err);

	if (rc == 0)
		rc = graft_toml_parse("built-in configuration", graft_buffer_text(&text), text.length, &document->toml,
				      err);
	graft_buffer_done(&text);
	return rc;
}

static int load(struct document *document, const char *file, struct graft_arena *arena, struct graft_error *err)
{
	bool required;

	document->path = file ? file : cli_config_path(CLI_CONFIG_RUNTIME, NULL, arena, &required);
	if (!document->path)
		return graft_fail_memory(err);
	read_host(arena, &document->host);
	document->missing = document->path[0] == '\0';
	if (!document->missing) {
		if (cli_config_read(document->path, arena, &document->toml, err) == 0)
			return 0;
		document->missing = err->sys == ENOENT;
	}
	if (!document->missing)
		return graft_wrap(err, "unable to create config: failed to load specified config file");
	graft_error_clear(err);
	return make_defaults(document, arena, err);
}

/* -1 as well when what comes out is no configuration. */
static int change(struct document *document, const struct config_options *options, struct graft_arena *arena,
		  struct graft_error *err)
{
	struct graft_config config;

	for (size_t i = 0; i < options->settings.n; i++) {
		if (graft_config_set(&document->toml, options->settings.items[i], options->separator, err) < 0)
			return -1;
	}
	if (graft_config_read(document->toml, &document->host, arena, &config, err) < 0)
		return graft_wrap(err, "unable to create config");
	return 0;
}

static int write_out(const struct ctk *ctk, const char *path, const char *text, size_t length)
{
	struct graft_buffer out = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };

	if (!path || path[0] == '\0') {
		graft_buffer_add(&out, text, length);
		return ctk_print(ctk, &out);
	}
	if (graft_host_file_write(path, text, length, FILE_MODE, &err) < 0)
		return ctk_fail(ctk, &err, "unable to save config");
	return 0;
}

/* A file that has what is wanted already is left alone. */
static int write_in_place(const struct ctk *ctk, const struct document *document, bool changed)
{
	size_t length;
	const char *text = graft_toml_text(document->toml, &length);

	return changed || document->missing ? write_out(ctk, document->path, text, length) : 0;
}

/* ---- config ---- */

static int check(const struct config_options *options, struct graft_error *err)
{
	if (options->separator[0] == '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "set-list-separator must be set");
	if (options->in_place && options->output && options->output[0] != '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "--in-place and --output cannot both be given");
	if (options->in_place && options->file && options->file[0] == '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "--in-place needs a file, and --config-file names none");
	return 0;
}

static int show(const struct config_options *options, struct document *document)
{
	const struct ctk *ctk = options->base.ctk;
	struct graft_error err = { .status = GRAFT_OK };
	const char *before;
	size_t length, length_before;

	if (check(options, &err) < 0 || load(document, options->file, ctk->arena, &err) < 0)
		return ctk_fail(ctk, &err, "%s", "");
	before = graft_toml_text(document->toml, &length_before);
	before = graft_arena_memdup(ctk->arena, before, length_before);
	if (!before)
		(void)graft_fail_memory(&err);
	if (!before || change(document, options, ctk->arena, &err) < 0)
		return ctk_fail(ctk, &err, "%s", "");
	(void)graft_toml_text(document->toml, &length);
	if (options->in_place)
		return write_in_place(ctk, document,
				      length != length_before ||
					  memcmp(graft_toml_text(document->toml, &length), before, length) != 0);
	return write_out(ctk, options->output, graft_toml_text(document->toml, &length), length);
}

static int run(void *context, int argc, char **argv)
{
	struct config_options options = { .separator = ":" };
	struct document document = { .toml = NULL };
	int first, status = 0;

	if (ctk_parse(context, &ctk_config, &options, argc, argv, &first, &status) < 0)
		return status;
	status = show(&options, &document);
	graft_toml_free(document.toml);
	return status;
}

/* ---- config default ---- */

struct default_options {
	struct ctk_base base;
	const char *output;
};

static const struct graft_option default_table[] = {
	{ .name = "output",
	  .letter = 'o',
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "FILE",
	  .help = "Write to FILE instead of standard output",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct default_options, output) },
};

static int run_default(void *context, int argc, char **argv);

static const struct graft_command config_default = {
	CTK_COMMAND,
	.name = "default",
	.aliases = (const char *const[]){ "create-default", "generate-default", NULL },
	.summary = "Print the built-in configuration",
	.options = default_table,
	.n_options = GRAFT_COUNT(default_table),
	.run = run_default,
};

static int run_default(void *context, int argc, char **argv)
{
	struct ctk *ctk = context;
	struct default_options options = { .output = NULL };
	struct graft_config_host host;
	struct graft_buffer text = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };
	int first, status = 0;

	if (ctk_parse(ctk, &config_default, &options, argc, argv, &first, &status) < 0)
		return status;
	read_host(ctk->arena, &host);
	if (graft_config_default_document(&host, ctk->arena, &text, &err) < 0)
		status = ctk_fail(ctk, &err, "%s", "");
	else
		status = write_out(ctk, options.output, graft_buffer_text(&text), text.length);
	graft_buffer_done(&text);
	return status;
}

/* ---- tables ---- */

static const struct graft_option table[] = {
	{ .name = "config-file",
	  .letter = 'c',
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "FILE",
	  .help = "Read FILE instead of /etc/nvidia-container-runtime/config.toml",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct config_options, file),
	  .aliases = (const char *const[]){ "config", NULL } },
	{ .name = "set",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "KEY[=VALUE]",
	  .help = "Set a key; can be repeated. KEY alone sets a bool to true, nil deletes a key of [features], colons "
		  "or commas separate the items of a list",
	  .parse = parse_settings },
	{ .name = "set-list-separator",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "TEXT",
	  .hidden = true,
	  .help = "What separates the items of a list",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct config_options, separator) },
	{ .name = "in-place",
	  .letter = 'i',
	  .help = "Write the result to the file that was read",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct config_options, in_place) },
	{ .name = "output",
	  .letter = 'o',
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "FILE",
	  .help = "Write to FILE instead of standard output",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct config_options, output) },
};

static const struct graft_command *const subcommands[] = { &config_default, NULL };

const struct graft_command ctk_config = {
	CTK_COMMAND,
	.name = "config",
	.summary = "Print or change config.toml",
	.description = "Prints the configuration file, or the built-in configuration where there is none, with the "
		       "settings of --set put in. What is not set "
		       "stays as it is written, comments and unknown keys too.",
	.options = table,
	.n_options = GRAFT_COUNT(table),
	.bundled = true,
	.subcommands = subcommands,
	.run = run,
};
