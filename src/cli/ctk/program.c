/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program: the tree of commands, the flags that all of them have, help, complaints and the log. Knows nothing of what a command does. The one place of this
 * program that reads environment variables for it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apply/temporary.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/ctk/ctk.h"
#include "cli/descriptors.h"
#include "cli/log_line.h"

#define ARENA_MAX            ((size_t)256 << 20)
#define STATUS_UNKNOWN_TOPIC 3

/* ---- the tree ---- */

static const struct graft_command *const runtime_commands[] = { &ctk_runtime_configure, NULL };
static const struct graft_command ctk_runtime = {
	CTK_COMMAND,
	.name = "runtime",
	.summary = "Make container engines know the NVIDIA runtime",
	.subcommands = runtime_commands,
};

static const struct graft_command *const cdi_transform_commands[] = { &ctk_cdi_transform_root, NULL };
static const struct graft_command ctk_cdi_transform = {
	CTK_COMMAND,
	.name = "transform",
	.summary = "Change the paths of container edits",
	.subcommands = cdi_transform_commands,
};

static const struct graft_command *const cdi_commands[] = {
	&ctk_cdi_generate, &ctk_cdi_list, &ctk_cdi_refresh, &ctk_cdi_transform, &ctk_cdi_validate, NULL,
};
static const struct graft_command ctk_cdi = {
	CTK_COMMAND,
	.name = "cdi",
	.summary = "Describe the GPUs of this host for the Container Device Interface",
	.subcommands = cdi_commands,
};

static const struct graft_command *const system_commands[] = {
	&ctk_system_create_dev_char_symlinks,
	&ctk_system_create_device_nodes,
	NULL,
};
static const struct graft_command ctk_system = {
	CTK_COMMAND,
	.name = "system",
	.summary = "Prepare the devices of this host",
	.subcommands = system_commands,
};

static const struct graft_command ctk_info = {
	CTK_COMMAND,
	.name = "info",
	.summary = "Show this help; there is nothing below it",
};

static const struct graft_command *const commands[] = {
	&ctk_doctor, &ctk_hook, &ctk_runtime, &ctk_info, &ctk_cdi, &ctk_system, &ctk_config, &ctk_completion, NULL,
};

static const struct graft_option options[] = {
	{ .name = "debug",
	  .letter = 'd',
	  .help = "Tell every step on stderr",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct ctk, debug),
	  .environment = (const char *const[]){ "NVIDIA_CTK_DEBUG", NULL } },
	{ .name = "quiet",
	  .help = "Tell errors only; wins over --debug",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct ctk, quiet),
	  .environment = (const char *const[]){ "NVIDIA_CTK_QUIET", NULL } },
	{ .name = "config",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "FILE",
	  .help = "Take the driver's root from this config.toml",
	  .parse = graft_option_set_string,
	  .offset = offsetof(struct ctk, config),
	  .environment = (const char *const[]){ "NVIDIA_CTK_CONFIG", NULL } },
};

static const struct graft_manual_section sections[] = {
	{ "EXIT STATUS", "*0* on success. *1* on failure, and where the command line is wrong: one line on standard "
			 "error names cause and remedy. *3* where there is no "
			 "such command. *doctor* has statuses of its own." },
	{ "ENVIRONMENT",
	  "*NVIDIA_CTK_CONFIG_FILE_PATH*\n\tThe configuration file of *config*, if not empty.\n\n"
	  "*XDG_CONFIG_HOME*\n\tOtherwise nvidia-container-runtime/config.toml below it.\n\nOptions name "
	  "the variables that stand for them: the first that is defined counts when the option is not given. An empty "
	  "one is "
	  "set all the same; for a flag it means false." },
	{ "FILES", "_/etc/nvidia-container-runtime/config.toml_\n\tThe configuration of the toolkit.\n\n"
		   "_/etc/cdi_, _/var/run/cdi_\n\tDescriptions of devices." },
	{ "SEE ALSO", "*nvidia-container-cli*(1), *nvidia-container-runtime*(8), *nvidia-container-runtime-hook*(8)" },
};

const struct graft_command ctk_program = {
	.name = CTK_PROGRAM,
	.arguments = "COMMAND",
	.summary = "Set this host up for containers with NVIDIA GPUs",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.max_arguments = -1,
	.stop_at_first_argument = true,
	.go_style = true,
	.bundled = true,
	.description = "Makes container engines know the NVIDIA runtime, describes this host's GPUs for the Container "
		       "Device Interface, changes the toolkit's configuration, "
		       "and finds out why a container gets no GPU.\n\nFlags may have one dash or two, and stand before "
		       "or behind other words; those of the program may be given "
		       "to every command. Data goes to standard output, everything else to standard error.",
	.subcommands = commands,
	.sections = sections,
	.n_sections = GRAFT_COUNT(sections),
};

/* ---- messages ---- */

/* As people know it from the terminal: a coloured word, the seconds since the start. */
static void write_terminal_line(const struct ctk *ctk, enum graft_log_level level, const char *message)
{
	static const struct {
		const char *word;
		int colour;
	} rows[] = {
		[GRAFT_LOG_ERROR] = { "ERRO", 31 },
		[GRAFT_LOG_WARN] = { "WARN", 33 },
		[GRAFT_LOG_INFO] = { "INFO", 36 },
		[GRAFT_LOG_DEBUG] = { "DEBU", 37 },
	};

	(void)fprintf(stderr, "\033[%dm%s\033[0m[%04lld] %s\n", rows[level].colour, rows[level].word,
		      (graft_clock_us() - ctk->started_us) / 1000000, message);
}

static void write_line(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	const struct ctk *ctk = arg;

	(void)file;
	(void)line;
	if (isatty(STDERR_FILENO))
		write_terminal_line(ctk, level, message);
	else
		cli_log_line_write(STDERR_FILENO, level, message);
}

static void write_step(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	write_line(arg, level == GRAFT_LOG_INFO ? GRAFT_LOG_DEBUG : level, file, line, message);
}

static void set_level(struct ctk *ctk)
{
	ctk->log.max = GRAFT_LOG_INFO;
	if (ctk->debug)
		ctk->log.max = GRAFT_LOG_DEBUG;
	if (ctk->quiet)
		ctk->log.max = GRAFT_LOG_ERROR;
	ctk->steps.max = ctk->log.max == GRAFT_LOG_INFO ? GRAFT_LOG_WARN : ctk->log.max;
}

int ctk_fail(const struct ctk *ctk, const struct graft_error *err, const char *format, ...)
{
	char prefix[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(prefix, sizeof(prefix), format, args);
	va_end(args);
	cli_log_failure(&ctk->log, prefix, err);
	return 1;
}

int ctk_print(const struct ctk *ctk, struct graft_buffer *out)
{
	struct graft_error err = { .status = GRAFT_OK };
	bool failed = graft_buffer_failed(out);
	int rc = failed ? 0 : graft_write_all(STDOUT_FILENO, graft_buffer_text(out), out->length);

	graft_buffer_done(out);
	if (failed)
		(void)graft_fail_memory(&err);
	else if (rc < 0)
		(void)graft_fail_errno(&err, -rc, "write failed: standard output");
	return err.status == GRAFT_OK ? 0 : ctk_fail(ctk, &err, "%s", "");
}

static int print_help(const struct ctk *ctk, const struct graft_command *command, const char *words)
{
	struct graft_buffer text = { .max = 0 };

	graft_options_help(command, words, &text);
	return ctk_print(ctk, &text);
}

static int print_version(const struct ctk *ctk)
{
	struct graft_buffer text = { .max = 0 };
	const char *revision = cli_revision();

	graft_buffer_printf(&text, "NVIDIA Container Toolkit CLI version %s\n", GRAFT_VERSION);
	if (strcmp(revision, "unknown") != 0)
		graft_buffer_printf(&text, "commit: %s\n", revision);
	return ctk_print(ctk, &text);
}

static int no_help_topic(const char *word)
{
	(void)fprintf(stderr, "No help topic for '%s'\n", word);
	return STATUS_UNKNOWN_TOPIC;
}

/* ---- words ---- */

int ctk_option_list(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct graft_arena *arena = ((struct ctk_base *)target)->ctk->arena;
	struct ctk_list *list = (struct ctk_list *)((char *)target + option->offset);

	if (!list->given)
		*list = (struct ctk_list){ .given = true };
	while (*value != '\0') {
		size_t length = strcspn(value, ",");
		const char *item = graft_arena_strndup(arena, value, length);
		const char **place = item ? graft_arena_push(arena, &list->items, &list->n, sizeof(*place)) : NULL;

		if (!place)
			return graft_fail_memory(err);
		*place = item;
		value += length + (value[length] == ',');
	}
	return 0;
}

/* Failures are the arena's. */
static void push_word(struct graft_arena *arena, const struct graft_option *option, const char *value,
		      const char ***words, size_t *n)
{
	const char *word = graft_arena_printf(arena, "--%s%s%s", option->name, value ? "=" : "", value ? value : "");
	const char **slot = word ? graft_arena_push(arena, words, n, sizeof(*slot)) : NULL;

	if (slot)
		*slot = word;
}

static void note_use(void *arg, const struct graft_option *option, const char *value)
{
	struct ctk *ctk = arg;

	push_word(ctk->arena, option, value, &ctk->given, &ctk->n_given);
}

static const char *variable(const char *name)
{
	return secure_getenv(name);
}

void ctk_read_variables(struct ctk *ctk, const struct graft_command *command, const char ***ret_words, size_t *ret_n)
{
	*ret_words = NULL;
	*ret_n = 0;
	for (size_t i = 0; i < command->n_options; i++) {
		const char *const *names = command->options[i].environment;
		const char *value = NULL;

		while (names && *names && !value)
			value = variable(*names++);
		if (value && value[0] == '\0' && command->options[i].argument == GRAFT_OPTION_FLAG)
			value = "false";
		if (value)
			push_word(ctk->arena, &command->options[i], value, ret_words, ret_n);
	}
}

static bool is_help(const char *word)
{
	return strcmp(word, "help") == 0 || strcmp(word, "h") == 0;
}

/* The help of the command that `words` lead to. */
static int help_topic(const struct ctk *ctk, const struct graft_command *command, int argc, char **argv)
{
	const char *words = ctk->words;

	for (int i = 0; i < argc; i++) {
		const struct graft_command *next = graft_options_find_command(command, argv[i]);

		if (!next)
			return no_help_topic(argv[i]);
		words = graft_arena_printf(ctk->arena, "%s %s", words, next->name);
		command = next;
	}
	return print_help(ctk, command, words ? words : "");
}

static int fail_memory(const struct ctk *ctk)
{
	struct graft_error err = { .status = GRAFT_OK };

	(void)graft_fail_memory(&err);
	return ctk_fail(ctk, &err, "%s", "");
}

static int run_command(struct ctk *ctk, const struct graft_command *command, int argc, char **argv)
{
	struct ctk_base none;
	int first, status = 0;

	if (command != &ctk_program)
		ctk->words = graft_arena_printf(ctk->arena, "%s %s", ctk->words, command->name);
	if (!ctk->words)
		return fail_memory(ctk);
	if (command->run)
		return command->run(ctk, argc, argv);
	if (ctk_parse(ctk, command, &none, argc, argv, &first, &status) < 0)
		return status;
	return first < argc ? no_help_topic(argv[first]) : print_help(ctk, command, ctk->words);
}

static int complain(const struct ctk *ctk, const struct graft_command *command, enum graft_parse_result result,
		    const struct graft_error *err)
{
	if (result != GRAFT_PARSE_WRONG)
		return ctk_fail(ctk, err, "%s", "");
	(void)fprintf(stderr, "Incorrect Usage: %s\n\n", err->msg);
	(void)print_help(ctk, command, ctk->words);
	graft_log_write(&ctk->log, GRAFT_LOG_ERROR, __FILE_NAME__, __LINE__, "%s", err->msg);
	return 1;
}

int ctk_parse(struct ctk *ctk, const struct graft_command *command, void *target, int argc, char **argv, int *ret_first,
	      int *ret_status)
{
	const struct graft_options_scope scope = { .inherited = command == &ctk_program ? NULL : &ctk_program,
						   .inherited_target = ctk,
						   .variable = ctk->no_variables ? NULL : variable,
						   .used = note_use,
						   .arg = ctk };
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };
	const struct graft_command *next;
	int rc;

	*(struct ctk_base *)target = (struct ctk_base){ ctk };
	ctk->given = NULL;
	ctk->n_given = 0;
	rc = graft_options_parse_in(&scope, command, argc, argv, command == &ctk_program ? ctk : target, ret_first,
				    &result, &err);
	set_level(ctk);
	if (rc < 0) {
		*ret_status = complain(ctk, command, result, &err);
		return -1;
	}
	if (result != GRAFT_PARSE_OK) {
		*ret_status = result == GRAFT_PARSE_VERSION ? print_version(ctk) : print_help(ctk, command, ctk->words);
		return -1;
	}
	/* Options that were not noted would be missing from what a specification says of how it was made. */
	if (graft_arena_failed(ctk->arena)) {
		*ret_status = fail_memory(ctk);
		return -1;
	}
	if (*ret_first >= argc)
		return 0;
	next = graft_options_find_command(command, argv[*ret_first]);
	if (next)
		*ret_status = run_command(ctk, next, argc - *ret_first, argv + *ret_first);
	else if ((command->subcommands || !command->run) && is_help(argv[*ret_first]))
		*ret_status = help_topic(ctk, command, argc - *ret_first - 1, argv + *ret_first + 1);
	else
		return 0;
	return -1;
}

static int print_candidates(const struct ctk *ctk, int argc, char **argv)
{
	struct graft_buffer out = { .max = 0 };

	graft_options_candidates(&ctk_program, argc, argv, &out);
	return ctk_print(ctk, &out);
}

int ctk_main(int argc, char **argv)
{
	struct ctk ctk = { .program = CTK_PROGRAM, .words = CTK_PROGRAM, .started_us = graft_clock_us() };
	int status;

	if (ctk_is_completion_request(argc, argv))
		return print_candidates(&ctk, argc - 1, argv);
	if (argc > 1 && strcmp(argv[1], ctk_hook.name) == 0)
		return ctk_hook.run(&ctk, argc - 1, argv + 1);
	cli_open_standard_descriptors();
	ctk.log = (struct graft_log){ .write = write_line, .arg = &ctk };
	ctk.steps = (struct graft_log){ .write = write_step, .arg = &ctk };
	set_level(&ctk);
	ctk.arena = graft_arena_new(ARENA_MAX);
	status = ctk.arena ? run_command(&ctk, &ctk_program, argc, argv) : fail_memory(&ctk);
	ctk.arena = graft_arena_free(ctk.arena);
	return status;
}
