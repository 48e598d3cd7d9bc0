/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_command: prints config.toml, or the defaults, with some settings changed (SPEC ctk-and-cdi
 * 1.4). Comments, order and unknown keys of a file are kept. A result that the other programs could
 * not use is neither printed nor written. request/config.h defines the settings.
 */
#include <errno.h>
#include <string.h>

#include "apply/host_file.h"
#include "base/cleanup.h"
#include "base/option_rows.h"
#include "base/read.h"
#include "cli/ctk/ctk.h"
#include "start/config_file.h"

#define FILE_MODE 0644

struct config_options {
	struct ctk_base base;
	const char *file; /* NULL: search the usual places; "": none */
	struct graft_strings settings;
	const char *separator;
	bool in_place;
	const char *output; /* NULL or "": standard output */
};

/* A document and its origin. */
struct document {
	const char *path; /* "": no file */
	struct graft_config_host host;
	struct graft_toml *toml; /* owned */
	bool missing;            /* the file does not exist; these are the defaults */
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

static void read_ctk_config_host(struct graft_arena *arena, struct graft_config_host *ret_host)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;

	*ret_host = (struct graft_config_host){ 0 };
	if (graft_root_open(&root, "/", NULL) == 0)
		graft_config_file_host(&root, arena, ret_host);
}

/* ---- the document ---- */

static int make_defaults(struct document *document, struct graft_arena *arena, struct graft_error *err)
{
	auto_buffer struct graft_buffer text = { .max = 0 };

	if (graft_config_default_document(&document->host, arena, &text, err) < 0)
		return -1;
	return graft_toml_parse("built-in configuration", graft_buffer_text(&text), text.length, &document->toml, err);
}

/* Returns whether the file being read will also be written. */
static bool is_rewritten(const struct config_options *options, const char *path)
{
	return options->in_place || (options->output && strcmp(options->output, path) == 0);
}

/*
 * SECURITY: what is written back must not have been read through another user's link. Returns -1
 * with err->sys ENOENT if there is no file.
 */
static int read_to_rewrite(const char *path, struct graft_arena *arena, struct graft_toml **ret_toml,
			   struct graft_error *err)
{
	const char *text;
	size_t length;
	int found = graft_host_file_read(path, GRAFT_CONFIG_MAX_BYTES, arena, &text, &length, err);

	if (found == 0)
		return graft_fail_errno(err, ENOENT, "cannot read %s", path);
	return found < 0 ? -1 : graft_toml_parse(path, text, length, ret_toml, err);
}

static int load_ctk_config(struct document *document, const struct config_options *options, struct graft_error *err)
{
	struct graft_arena *arena = options->base.ctk->arena;
	const char *file = options->file;
	bool required;

	document->path = file ? file : graft_config_file_path(GRAFT_CONFIG_OF_RUNTIME, NULL, arena, &required);
	if (!document->path)
		return graft_fail_memory(err);
	read_ctk_config_host(arena, &document->host);
	document->missing = document->path[0] == '\0';
	if (!document->missing) {
		if ((is_rewritten(options, document->path)
			 ? read_to_rewrite(document->path, arena, &document->toml, err)
			 : graft_config_file_read(document->path, file != NULL, arena, &document->toml, err)) == 0)
			return 0;
		document->missing = err->sys == ENOENT;
	}
	if (!document->missing)
		return graft_wrap(err, "unable to create config: failed to load specified config file");
	graft_error_clear(err);
	return make_defaults(document, arena, err);
}

int ctk_warn_of_mistakes(const struct ctk *ctk, const struct graft_config *config, struct graft_error *err)
{
	struct graft_config_mistake *mistakes;
	size_t n;

	if (graft_config_find_mistakes(config, ctk->arena, &mistakes, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		graft_warn(&ctk->log, "%s is '%s'; it can be %s", mistakes[i].key, mistakes[i].value,
			   mistakes[i].allowed);
	return 0;
}

/* Applies the settings. Also fails if the result is not a valid configuration. */
static int change_ctk_config(struct document *document, const struct config_options *options, struct graft_error *err)
{
	const struct ctk *ctk = options->base.ctk;
	struct graft_config config;

	for (size_t i = 0; i < options->settings.n; i++) {
		if (graft_config_set(&document->toml, options->settings.items[i], options->separator, err) < 0)
			return -1;
	}
	if (graft_config_read(document->toml, &document->host, ctk->arena, &config, err) < 0)
		return graft_wrap(err, "unable to create config");
	return ctk_warn_of_mistakes(ctk, &config, err);
}

static int write_ctk_config(const struct ctk *ctk, const char *path, const char *text, size_t length,
			    struct graft_error *err)
{
	if (!path || path[0] == '\0')
		return ctk_print_bytes(ctk, text, length);
	return graft_host_file_write(path, text, length, FILE_MODE, err) < 0 ? graft_wrap(err, "unable to save config")
									     : 0;
}

/* ---- config ---- */

static int check_ctk_config_options(const struct config_options *options, struct graft_error *err)
{
	if (options->separator[0] == '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "set-list-separator must be set");
	if (options->in_place && options->output && options->output[0] != '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "--in-place and --output cannot both be given");
	if (options->in_place && options->file && options->file[0] == '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "--in-place needs a file, and --config-file names none");
	if (options->in_place && options->file && graft_is_stream(options->file))
		return graft_fail(err, GRAFT_INVALID, 0, "--in-place needs a file, and %s is not one",
				  graft_input_name(options->file));
	return 0;
}

static int edit_ctk_config(const struct config_options *options, struct document *document, struct graft_error *err)
{
	const struct ctk *ctk = options->base.ctk;
	const char *before, *text;
	size_t length, length_before;

	if (check_ctk_config_options(options, err) < 0 || load_ctk_config(document, options, err) < 0)
		return -1;
	before = graft_toml_text(document->toml, &length_before);
	before = graft_arena_memdup(ctk->arena, before, length_before);
	if (!before)
		return graft_fail_memory(err);
	if (change_ctk_config(document, options, err) < 0)
		return -1;
	text = graft_toml_text(document->toml, &length);
	if (!options->in_place)
		return write_ctk_config(ctk, options->output, text, length, err);
	/* A file that already contains the result is left alone. */
	if (!document->missing && length == length_before && memcmp(text, before, length) == 0)
		return 0;
	return write_ctk_config(ctk, document->path, text, length, err);
}

static int config(void *target, struct graft_error *err)
{
	struct document document = { .toml = NULL };
	int status = edit_ctk_config(target, &document, err);

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

static int write_default(void *target, struct graft_error *err)
{
	const struct default_options *options = target;
	const struct ctk *ctk = options->base.ctk;
	struct graft_config_host host;
	auto_buffer struct graft_buffer text = { .max = 0 };

	read_ctk_config_host(ctk->arena, &host);
	if (graft_config_default_document(&host, ctk->arena, &text, err) < 0)
		return -1;
	return write_ctk_config(ctk, options->output, graft_buffer_text(&text), text.length, err);
}

static const struct graft_command config_default = {
	CTK_COMMAND,
	.name = "default",
	.aliases = (const char *const[]){ "create-default", "generate-default", NULL },
	.summary = "Print the built-in configuration",
	GRAFT_OPTIONS(default_table),
	CTK_WORK(write_default, struct default_options),
};

/* ---- tables ---- */

/* clang-format off */
#define AT(member) .offset = offsetof(struct config_options, member)
static const struct graft_option table[] = {
	{ .name = "config-file", .letter = 'c', TEXT, AT(file), ALIAS("config"), .value_name = "FILE",
	  .help = "Read FILE instead of /etc/nvidia-container-runtime/config.toml; - is standard input" },
	{ .name = "set", .argument = GRAFT_OPTION_REQUIRED, .parse = parse_settings,
	  .value_name = "KEY[=VALUE]",
	  .help = "Set a key; can be repeated. KEY alone sets a boolean to true, the value nil deletes a key of "
		  "[features], and colons or commas separate the items of a list" },
	{ .name = "set-list-separator", TEXT, AT(separator), .value_name = "TEXT", .hidden = true,
	  .help = "What separates the items of a list" },
	{ .name = "in-place", .letter = 'i', FLAG, AT(in_place),
	  .help = "Write the result to the file that was read" },
	{ .name = "output", .letter = 'o', TEXT, AT(output), .value_name = "FILE",
	  .help = "Write to FILE instead of standard output" },
};
/* clang-format on */

static const struct graft_command *const subcommands[] = { &config_default, NULL };

const struct graft_command ctk_config = {
	CTK_COMMAND,
	.name = "config",
	.summary = "Print or change config.toml",
	.description =
	    "Prints the configuration file, or the built-in configuration if there is none, with the settings of --set "
	    "applied. Everything else stays as written, including comments and unknown keys.",
	GRAFT_OPTIONS(table),
	.bundled = true,
	.subcommands = subcommands,
	CTK_WORK(config, struct config_options, .separator = ":"),
};
