/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctk_program: the tree of commands, the options that all of them share, help, error messages and
 * the log. Does not know what the commands do. The environment variables of options are read only
 * here.
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
#include "base/option_rows.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "cli/ctk/ctk.h"
#include "cli/descriptors.h"
#include "cli/elsewhere.h"
#include "cli/log_line.h"
#include "cli/terminal.h"
#include "host/nvml.h"
#include "lease/lease_wait.h"
#include "start/version.h"

#define ARENA_MAX            ((size_t)256 << 20)
#define STATUS_UNKNOWN_TOPIC 3

/* ---- the tree ---- */

#define COMMANDS(...)                                        \
	.subcommands = (const struct graft_command *const[]) \
	{                                                    \
		__VA_ARGS__, NULL                            \
	}

static const struct graft_command ctk_runtime = {
	CTK_COMMAND,
	.name = "runtime",
	.summary = "Register the NVIDIA runtime with container engines",
	COMMANDS(&ctk_runtime_configure, &ctk_runtime_remove),
};

static const struct graft_command ctk_cdi_transform = {
	CTK_COMMAND,
	.name = "transform",
	.summary = "Change the paths of container edits",
	COMMANDS(&ctk_cdi_transform_root),
};

static const struct graft_command ctk_cdi = {
	CTK_COMMAND,
	.name = "cdi",
	.summary = "Describe the GPUs of this host for the Container Device Interface",
	COMMANDS(&ctk_cdi_generate, &ctk_cdi_list, &ctk_cdi_refresh, &ctk_cdi_transform, &ctk_cdi_validate),
};

static const struct graft_command ctk_lease = {
	CTK_COMMAND,
	.name = "lease",
	.summary = "Lend GPUs, and show who has them",
	COMMANDS(&ctk_lease_acquire, &ctk_lease_doctor, &ctk_lease_explain, &ctk_lease_history, &ctk_lease_list,
		 &ctk_lease_metrics, &ctk_lease_mps, &ctk_lease_reclaim, &ctk_lease_release, &ctk_lease_run),
};

static const struct graft_command ctk_system = {
	CTK_COMMAND,
	.name = "system",
	.summary = "Prepare the devices of this host",
	COMMANDS(&ctk_system_create_dev_char_symlinks, &ctk_system_create_device_nodes),
};

static const struct graft_command ctk_info = {
	CTK_COMMAND,
	.name = "info",
	.summary = "Show this help; there are no subcommands",
};

/* clang-format off */
#define AT(member) .offset = offsetof(struct ctk, member)
static const struct graft_option options[] = {
	{ .name = "debug", .letter = 'd', FLAG, AT(debug), ENV("NVIDIA_CTK_DEBUG"),
	  .help = "Log every step on stderr" },
	{ .name = "quiet", FLAG, AT(quiet), ENV("NVIDIA_CTK_QUIET"),
	  .help = "Log only errors; overrides --debug" },
	{ .name = "config", TEXT, AT(config), .value_name = "FILE", ENV("NVIDIA_CTK_CONFIG"),
	  .help = "Read the driver root from this config.toml" },
};
/* clang-format on */

static const struct graft_manual_section sections[] = {
	{ "EXIT STATUS", "*0* on success. *1* on failure or for a wrong command line; one line on standard error names "
			 "cause and remedy. *3* for an unknown command. *doctor* has statuses of its own." },
	{ "ENVIRONMENT",
	  "*NVIDIA_CTK_CONFIG_FILE_PATH*\n\tThe configuration file of *config*, if not "
	  "empty.\n\n*XDG_CONFIG_HOME*\n\tIf the former is not set: nvidia-container-runtime/config.toml below this "
	  "directory.\n\nOptions name their environment variables in brackets: if the option is not given, the first "
	  "variable that is set counts, even if it is empty; for a flag, empty means false." },
	{ "FILES", "_/etc/nvidia-container-runtime/config.toml_\n\tThe configuration of the toolkit.\n\n"
		   "_/etc/cdi_, _/var/run/cdi_\n\tDescriptions of devices." },
	{ "EXAMPLES", "Register the runtime with Docker, and restart it:\n\n"
		      "*nvidia-ctk runtime configure --runtime=docker && systemctl restart docker*\n\n"
		      "Describe the GPUs for Podman, Docker and Kubernetes, and list their names:\n\n"
		      "*nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml && nvidia-ctk cdi list*\n\n"
		      "Find out why a container gets no GPU:\n\n"
		      "*nvidia-ctk doctor*\n\n"
		      "Change a setting of config.toml:\n\n"
		      "*nvidia-ctk config --in-place --set nvidia-container-runtime.log-level=debug*" },
	{ "SEE ALSO", "*nvidia-container-cli*(1), *nvidia-container-runtime*(8), *nvidia-container-runtime-hook*(8), "
		      "*nvidia-cdi-hook*(8), *nvidia-container-runtime-config*(5), *nvidia-device-plugin*(8), "
		      "*nvidia-ctk-installer*(8), *nvidia-docker*(1), *graft-sim*(1)" },
};

const struct graft_command ctk_program = {
	.name = CTK_PROGRAM,
	.arguments = "COMMAND",
	.summary = "Set up this host for containers with NVIDIA GPUs",
	GRAFT_OPTIONS(options),
	.max_arguments = -1,
	.stop_at_first_argument = true,
	.go_style = true,
	.bundled = true,
	.description =
	    "Registers the NVIDIA runtime with container engines, describes this host's GPUs for the Container Device "
	    "Interface (CDI), edits the toolkit's configuration, and finds out why a container gets no GPU.\n\nFlags "
	    "can start with one dash or two and can be mixed with other arguments. The global flags can be given to "
	    "every command. Data goes to standard output, everything else to standard error.",
	COMMANDS(&ctk_doctor, &ctk_hook, &ctk_runtime, &ctk_info, &ctk_cdi, &ctk_lease, &ctk_system, &ctk_config,
		 &ctk_completion),
	GRAFT_MANUAL(sections),
};

/* ---- messages ---- */

/*
 * The format that users know from the terminal: a coloured level and the seconds since the start.
 */
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

static void write_ctk_log_line(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	const struct ctk *ctk = arg;

	(void)file;
	(void)line;
	if (cli_has_colours(STDERR_FILENO))
		write_terminal_line(ctk, level, message);
	else
		cli_log_line_write(STDERR_FILENO, level, message);
}

/* Steps of the library are shown as such; a person at a terminal is shown which of them wait. */
static void write_ctk_step(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	const struct ctk *ctk = arg;
	bool waits = graft_starts_with(message, GRAFT_NVML_WAITING) || graft_starts_with(message, GRAFT_LEASE_WAITING);

	if (level == GRAFT_LOG_INFO && !(waits && isatty(STDERR_FILENO)))
		level = GRAFT_LOG_DEBUG;
	if (level <= ctk->log.max)
		write_ctk_log_line(arg, level, file, line, message);
}

/* Only steps that wait are shown to every user. */
static bool wants_ctk_step(const void *arg, enum graft_log_level level, const char *file)
{
	const struct ctk *ctk = arg;

	return ctk->log.max == GRAFT_LOG_DEBUG || level < GRAFT_LOG_INFO || cli_wants_waiting(arg, level, file);
}

void ctk_set_log_level(struct ctk *ctk)
{
	ctk->log.max = GRAFT_LOG_INFO;
	if (ctk->debug)
		ctk->log.max = GRAFT_LOG_DEBUG;
	if (ctk->quiet)
		ctk->log.max = GRAFT_LOG_ERROR;
	ctk->steps.max = ctk->waiting.max = ctk->log.max;
}

/*
 * The value that was probably meant by one of the command's options, if the message is about that
 * value; NULL if none is near.
 */
static const char *find_meant_value(const struct ctk *ctk, const char *message)
{
	for (size_t i = 0; ctk->command && i < ctk->n_given; i++) {
		const char *name = ctk->given[i] + strlen("--"), *value = strchr(name, '='), *meant;

		if (!value || value[1] == '\0' || !strstr(message, value + 1))
			continue;
		for (size_t k = 0; k < ctk->command->n_options; k++) {
			const struct graft_option *option = &ctk->command->options[k];

			if (strlen(option->name) != (size_t)(value - name) ||
			    strncmp(option->name, name, (size_t)(value - name)) != 0)
				continue;
			meant = graft_options_meant_value(option, value + 1);
			if (meant)
				return meant;
		}
	}
	return NULL;
}

int ctk_fail(const struct ctk *ctk, const struct graft_error *err, const char *format, ...)
{
	const char *meant = err->status == GRAFT_INVALID && !err->hint ? find_meant_value(ctk, err->msg) : NULL;
	struct graft_error hinted = *err;
	char prefix[512], hint[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(prefix, sizeof(prefix), format, args);
	va_end(args);
	if (meant) {
		(void)snprintf(hint, sizeof(hint), "Did you mean '%s'? %s", meant, graft_status_hint(err->status));
		hinted.hint = hint;
	}
	cli_log_failure(&ctk->log, prefix, &hinted);
	return 1;
}

static int fail_memory(const struct ctk *ctk)
{
	struct graft_error err = { .status = GRAFT_OK };

	(void)graft_fail_memory(&err);
	return ctk_fail(ctk, &err, "%s", "");
}

int ctk_print_bytes(const struct ctk *ctk, const char *bytes, size_t length)
{
	struct graft_error err = { .status = GRAFT_OK };
	int rc = graft_write_all(STDOUT_FILENO, bytes, length);

	if (rc == 0)
		return 0;
	(void)graft_fail_errno(&err, -rc, "write failed: standard output");
	return ctk_fail(ctk, &err, "%s", "");
}

int ctk_print(const struct ctk *ctk, struct graft_buffer *out)
{
	int status = graft_buffer_failed(out) ? fail_memory(ctk)
					      : ctk_print_bytes(ctk, graft_buffer_text(out), out->length);

	graft_buffer_done(out);
	return status;
}

static int print_ctk_help(const struct ctk *ctk, const struct graft_command *command, const char *words)
{
	struct graft_buffer text = { .max = 0 };

	graft_options_help(command, words, &text);
	return ctk_print(ctk, &text);
}

static int print_ctk_version(const struct ctk *ctk)
{
	struct graft_buffer text = { .max = 0 };
	const char *revision = graft_version_revision();

	graft_buffer_printf(&text, "NVIDIA Container Toolkit CLI version %s\n", GRAFT_COMPATIBLE);
	if (strcmp(revision, "unknown") != 0)
		graft_buffer_printf(&text, "commit: %s\n", revision);
	graft_version_own(&text);
	return ctk_print(ctk, &text);
}

static int no_help_topic(const struct graft_command *command, const char *word)
{
	const char *near = graft_options_meant_command(command, word);
	const char *meant = near ? near : cli_meant_elsewhere(word);

	(void)fprintf(stderr, "No help topic for '%s'\n", word);
	if (meant)
		(void)fprintf(stderr, "Did you mean '%s'?\n", meant);
	return STATUS_UNKNOWN_TOPIC;
}

/* ---- command line ---- */

int ctk_option_list(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct graft_arena *arena = ((struct ctk_base *)target)->ctk->arena;
	struct ctk_list *list = (struct ctk_list *)((char *)target + option->offset);

	if (!list->given)
		*list = (struct ctk_list){ .given = true };
	while (*value != '\0') {
		size_t length = strcspn(value, ",");
		const char *item = graft_arena_strndup(arena, value, length);

		if (!item || !graft_arena_push_string(arena, &list->items, &list->n, item))
			return graft_fail_memory(err);
		value += length + (value[length] == ',');
	}
	return 0;
}

/* If out of memory, the arena's failed flag is set. */
static void push_word(struct graft_arena *arena, const struct graft_option *option, const char *value,
		      const char ***words, size_t *n)
{
	const char *word = graft_arena_printf(arena, "--%s%s%s", option->name, value ? "=" : "", value ? value : "");

	if (word)
		(void)graft_arena_push_string(arena, words, n, word);
}

static void note_use(void *arg, const struct graft_option *option, const char *value)
{
	struct ctk *ctk = arg;

	push_word(ctk->arena, option, value, &ctk->given, &ctk->n_given);
}

static const char *read_ctk_variable(const char *name)
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
			value = read_ctk_variable(*names++);
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

/* Prints the help of the command that the arguments select. */
static int help_topic(const struct ctk *ctk, const struct graft_command *command, int argc, char **argv)
{
	const char *words = ctk->words;

	for (int i = 0; i < argc; i++) {
		const struct graft_command *next = graft_options_find_command(command, argv[i]);

		if (!next)
			return no_help_topic(command, argv[i]);
		words = graft_arena_printf(ctk->arena, "%s %s", words, next->name);
		command = next;
	}
	return print_ctk_help(ctk, command, words ? words : "");
}

int ctk_run_command(struct ctk *ctk, const struct graft_command *command, int argc, char **argv)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct ctk_base *target;
	int first, status = 0;

	if (command->run)
		return command->run(ctk, argc, argv);
	target = graft_arena_memdup(ctk->arena, command->defaults, command->defaults_size);
	if (!target)
		return fail_memory(ctk);
	if (ctk_parse(ctk, command, target, argc, argv, &first, &status) < 0)
		return status;
	target->argc = argc - first;
	target->argv = argv + first;
	status = command->work(target, &err);
	return status < 0 ? ctk_fail(ctk, &err, "%s", "") : status;
}

int ctk_run_words(struct ctk *ctk, const struct graft_command *command, const char *const *words, size_t n)
{
	char **argv = graft_arena_list(ctk->arena, n + 2, sizeof(*argv));
	int argc = 1;

	if (!argv)
		return fail_memory(ctk);
	argv[0] = graft_arena_strdup(ctk->arena, command->name);
	for (size_t i = 0; i < n; i++) {
		if (words[i] && words[i][0] != '\0')
			argv[argc++] = graft_arena_strdup(ctk->arena, words[i]);
	}
	return graft_arena_failed(ctk->arena) ? fail_memory(ctk) : ctk_run_command(ctk, command, argc, argv);
}

static int run_ctk_command(struct ctk *ctk, const struct graft_command *command, int argc, char **argv)
{
	struct ctk_base none;
	int first, status = 0;

	if (command != &ctk_program)
		ctk->words = graft_arena_printf(ctk->arena, "%s %s", ctk->words, command->name);
	if (!ctk->words)
		return fail_memory(ctk);
	if (command->run || command->work)
		return ctk_run_command(ctk, command, argc, argv);
	if (ctk_parse(ctk, command, &none, argc, argv, &first, &status) < 0)
		return status;
	return first < argc ? no_help_topic(command, argv[first]) : print_ctk_help(ctk, command, ctk->words);
}

static int complain(const struct ctk *ctk, const struct graft_command *command, enum graft_parse_result result,
		    const struct graft_error *err)
{
	const char *meant;

	if (result != GRAFT_PARSE_WRONG)
		return ctk_fail(ctk, err, "%s", "");
	meant = graft_options_meant_option(command, &ctk_program, err);
	(void)fprintf(stderr, "Incorrect Usage: %s\n", err->msg);
	if (meant)
		(void)fprintf(stderr, "Did you mean '--%s'?\n", meant);
	(void)fputc('\n', stderr);
	(void)print_ctk_help(ctk, command, ctk->words);
	graft_log_write(&ctk->log, GRAFT_LOG_ERROR, __FILE_NAME__, __LINE__, "%s", err->msg);
	return 1;
}

int ctk_parse(struct ctk *ctk, const struct graft_command *command, void *target, int argc, char **argv, int *ret_first,
	      int *ret_status)
{
	const struct graft_options_scope scope = { .inherited = command == &ctk_program ? NULL : &ctk_program,
						   .inherited_target = ctk,
						   .variable = ctk->no_variables ? NULL : read_ctk_variable,
						   .used = note_use,
						   .arg = ctk };
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };
	const struct graft_command *next;
	int rc;

	*(struct ctk_base *)target = (struct ctk_base){ .ctk = ctk };
	ctk->given = NULL;
	ctk->n_given = 0;
	ctk->command = command;
	rc = graft_options_parse_in(&scope, command, argc, argv, command == &ctk_program ? ctk : target, ret_first,
				    &result, &err);
	ctk_set_log_level(ctk);
	if (rc < 0) {
		*ret_status = complain(ctk, command, result, &err);
		return -1;
	}
	if (result != GRAFT_PARSE_OK) {
		*ret_status = result == GRAFT_PARSE_VERSION ? print_ctk_version(ctk)
							    : print_ctk_help(ctk, command, ctk->words);
		return -1;
	}
	/* If options were lost here, a specification would record too few of them. */
	if (graft_arena_failed(ctk->arena)) {
		*ret_status = fail_memory(ctk);
		return -1;
	}
	if (*ret_first >= argc)
		return 0;
	next = graft_options_find_command(command, argv[*ret_first]);
	if (next)
		*ret_status = run_ctk_command(ctk, next, argc - *ret_first, argv + *ret_first);
	else if ((command->subcommands || !command->work) && is_help(argv[*ret_first]))
		*ret_status = help_topic(ctk, command, argc - *ret_first - 1, argv + *ret_first + 1);
	else
		return 0;
	return -1;
}

/*
 * Returns the index of "hook" in argv if it is the command, otherwise 0. SECURITY: this must be
 * known before any environment variable is read, which may come from an image. Hooks accept only
 * these two options before the command; no specification contains others.
 */
static int find_hook(struct ctk *ctk, int argc, char **argv)
{
	int first = 1;

	for (; first < argc && argv[first][0] == '-'; first++) {
		const char *name = argv[first] + 1 + (argv[first][1] == '-');

		if (strcmp(name, "debug") == 0 || strcmp(name, "d") == 0)
			ctk->debug = true;
		else if (strcmp(name, "quiet") == 0)
			ctk->quiet = true;
		else
			return 0;
	}
	return first < argc && strcmp(argv[first], ctk_hook.name) == 0 ? first : 0;
}

int ctk_run_program(const char *name, int argc, char **argv, int (*run)(struct ctk *ctk, int argc, char **argv))
{
	struct ctk ctk = { .words = name, .started_us = graft_clock_us() };
	int status;

	cli_open_standard_descriptors();
	ctk.log = (struct graft_log){ .write = write_ctk_log_line, .arg = &ctk };
	ctk.steps = (struct graft_log){ .write = write_ctk_step, .wants = wants_ctk_step, .arg = &ctk };
	ctk.waiting = (struct graft_log){ .write = write_ctk_step, .wants = cli_wants_waiting, .arg = &ctk };
	ctk_set_log_level(&ctk);
	ctk.arena = graft_arena_new(ARENA_MAX);
	status = ctk.arena ? run(&ctk, argc, argv) : fail_memory(&ctk);
	ctk.arena = graft_arena_free(ctk.arena);
	return status;
}

static int run_root(struct ctk *ctk, int argc, char **argv)
{
	return run_ctk_command(ctk, &ctk_program, argc, argv);
}

int ctk_main(int argc, char **argv)
{
	struct ctk ctk = { .words = CTK_PROGRAM };
	struct graft_buffer candidates = { .max = 0 };
	int first;

	if (ctk_is_completion_request(argc, argv)) {
		graft_options_candidates(&ctk_program, argc - 1, argv, &candidates);
		return ctk_print(&ctk, &candidates);
	}
	first = find_hook(&ctk, argc, argv);
	if (first > 0)
		return ctk_hook.run(&ctk, argc - first, argv + first);
	return ctk_run_program(CTK_PROGRAM, argc, argv, run_root);
}
