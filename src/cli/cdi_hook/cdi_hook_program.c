/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_hook_program: the command line and the messages. SPEC ctk-and-cdi 2.0: a container must not
 * fail because of a hook that this program does not know, so an unknown hook is a warning and a
 * success.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "cli/log_line.h"
#include "image/inspect.h"

#define ARENA_MAX ((size_t)32 << 20)

const struct graft_command *const cdi_hook_commands[] = {
	&cdi_hook_update_ldcache,
	&cdi_hook_create_symlinks,
	&cdi_hook_mount_files,
	&cdi_hook_chmod,
	&cdi_hook_enable_cuda_compat,
	&cdi_hook_disable_device_node_modification,
	&cdi_hook_update_application_profile,
	&cdi_hook_apply_cuda_memory_limits,
	&cdi_hook_apply_plan,
	&cdi_hook_sequence,
	&cdi_hook_noop,
	NULL,
};

static const struct graft_option options[] = {
	{ .name = "debug",
	  .letter = 'd',
	  .help = "Log every step on stderr (also: NVIDIA_CTK_DEBUG=true)",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct cdi_hook, debug) },
	{ .name = "quiet",
	  .help = "Log only errors; overrides --debug (also: NVIDIA_CTK_QUIET=true)",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct cdi_hook, quiet) },
};

static const struct graft_manual_section sections[] = {
	{ "EXIT STATUS",
	  "*0* on success and for an unknown hook. *1* on failure; one line on standard error names cause "
	  "and remedy." },
	{ "EXAMPLES",
	  "The hook of a CDI specification that makes the container's loader find the driver's "
	  "libraries:\n\n```\nhooks:\n  - hookName: createContainer\n    path: /usr/bin/nvidia-cdi-hook\n    "
	  "args: [nvidia-cdi-hook, update-ldcache, --folder, /usr/lib/x86_64-linux-gnu]\n```\n\nThe same for a "
	  "root directory, by hand:\n\n"
	  "*nvidia-cdi-hook sequence --rootfs=/path/to/rootfs update-ldcache "
	  "--folder=/usr/lib/x86_64-linux-gnu*" },
	{ "SEE ALSO", "*nvidia-ctk*(1), *nvidia-container-cli*(1), *nvidia-container-runtime*(8), "
		      "*nvidia-container-runtime-config*(5), *nvidia-nri-plugin*(8)" },
};

const struct graft_command cdi_hook_program = {
	.name = CDI_HOOK_PROGRAM,
	.arguments = "HOOK [OPTION...]",
	.summary = "Hooks of CDI specifications: small changes inside a container before it starts",
	.description = "Low-level runtimes start this program at createContainer, for hooks of a CDI specification or "
		       "of nvidia-container-runtime. Each hook reads the OCI state on standard input, unless --rootfs "
		       "names the container's root, opens that root once and changes nothing outside it.\n\nThe "
		       "program is statically linked, drops its environment, working directory and open files first, "
		       "and executes nothing. An unknown hook causes a warning and exit status 0, so that "
		       "specifications of newer releases do not keep containers from starting.",
	GRAFT_OPTIONS(options),
	.max_arguments = -1,
	.stop_at_first_argument = true,
	.go_style = true,
	.subcommands = cdi_hook_commands,
	GRAFT_MANUAL(sections),
};

/* ---- messages ---- */

/* At level info the library logs each of its steps; a hook shows them only with --debug. */
static void write_cdi_hook_log_line(void *arg, enum graft_log_level level, const char *file, int number,
				    const char *message)
{
	(void)arg;
	(void)file;
	(void)number;
	cli_log_line_write(STDERR_FILENO, level == GRAFT_LOG_INFO ? GRAFT_LOG_DEBUG : level, message);
}

static void set_cdi_hook_log_level(struct cdi_hook *hook)
{
	hook->log.max = GRAFT_LOG_WARN;
	if (hook->quiet)
		hook->log.max = GRAFT_LOG_ERROR;
	else if (hook->debug)
		hook->log.max = GRAFT_LOG_DEBUG;
}

int cdi_hook_fail(const struct cdi_hook *hook, const struct graft_error *err, const char *what, ...)
{
	char prefix[512];
	va_list args;

	va_start(args, what);
	(void)vsnprintf(prefix, sizeof(prefix), what, args);
	va_end(args);
	cli_log_failure(&hook->log, prefix, err);
	return 1;
}

/* ---- command line ---- */

int cdi_hook_init(struct cdi_hook *hook, const char *program)
{
	bool debug = hook->debug, quiet = hook->quiet;

	*hook = (struct cdi_hook){
		.program = program,
		.debug = debug,
		.quiet = quiet,
		.log = { .write = write_cdi_hook_log_line, .max = GRAFT_LOG_WARN },
		.arena = graft_arena_new(ARENA_MAX),
		.caps = GRAFT_CAPS_INIT,
		.budget = graft_budget_new(GRAFT_BUDGET_CPU_MS),
		.ldconfig_path = "/sbin/ldconfig",
		.compat_root = GRAFT_COMPAT_DIRECTORY,
	};
	set_cdi_hook_log_level(hook);
	return hook->arena && hook->budget ? 0 : -1;
}

void cdi_hook_done(struct cdi_hook *hook)
{
	hook->arena = graft_arena_free(hook->arena);
	hook->budget = graft_budget_free(hook->budget);
}

int cdi_hook_parse_list(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct cdi_hook *hook = target;
	struct graft_strings *list = (struct graft_strings *)((char *)target + option->offset);

	for (;;) {
		size_t length = strcspn(value, ",");
		const char *item = graft_arena_strndup(hook->arena, value, length);

		if (!item || !graft_arena_push_string(hook->arena, &list->items, &list->n, item))
			return graft_fail_memory(err);
		if (value[length] == '\0')
			return 0;
		value += length + 1;
	}
}

static int print_cdi_hook_text(struct graft_buffer *text)
{
	bool ok = !graft_buffer_failed(text) &&
		  fwrite(graft_buffer_text(text), 1, text->length, stdout) == text->length && fflush(stdout) == 0;

	graft_buffer_done(text);
	return ok ? 0 : 1;
}

static int print_cdi_hook_help(const struct cdi_hook *hook, const struct graft_command *command)
{
	struct graft_buffer text = { .max = 0 };
	char program[128];

	(void)snprintf(program, sizeof(program), "%s%s%s", hook->program, command == &cdi_hook_program ? "" : " ",
		       command == &cdi_hook_program ? "" : command->name);
	graft_options_help(command, program, &text);
	return print_cdi_hook_text(&text);
}

static int print_cdi_hook_version(void)
{
	struct graft_buffer text = { .max = 0 };

	graft_buffer_printf(&text, "NVIDIA CDI Hook version %s\n", GRAFT_COMPATIBLE);
	return print_cdi_hook_text(&text);
}

/*
 * Parses the options and handles --help, --version and mistakes itself. Returns 0 to continue, or
 * -1 with *ret_status set.
 */
static int parse_cdi_hook_options(struct cdi_hook *hook, const struct graft_command *command, int argc, char **argv,
				  int *ret_first, int *ret_status)
{
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_options_parse(command, argc, argv, hook, ret_first, &result, &err) < 0) {
		if (result == GRAFT_PARSE_WRONG) {
			const char *meant = graft_options_meant_option(command, NULL, &err);

			(void)fprintf(stderr, "Incorrect Usage: %s\n", err.msg);
			if (meant)
				(void)fprintf(stderr, "Did you mean '--%s'?\n", meant);
			(void)fputc('\n', stderr);
			(void)print_cdi_hook_help(hook, command);
		}
		*ret_status = cdi_hook_fail(hook, &err, "%s", "");
		return -1;
	}
	if (result == GRAFT_PARSE_OK)
		return 0;
	*ret_status = result == GRAFT_PARSE_VERSION ? print_cdi_hook_version() : print_cdi_hook_help(hook, command);
	return -1;
}

static int warn_of_cdi_hook(const struct cdi_hook *hook, const char *text, const char *name)
{
	const char *meant = name[0] != '\0' ? graft_options_meant_command(&cdi_hook_program, name) : NULL;

	graft_warn(&hook->log, "%s%s", text, name);
	if (meant)
		graft_warn(&hook->log, "Did you mean '%s'?", meant);
	return 0;
}

static int run_hook(struct cdi_hook *hook, const struct graft_command *command, int argc, char **argv)
{
	struct graft_error err = { .status = GRAFT_OK };
	int first, status = 0;

	if (parse_cdi_hook_options(hook, command, argc, argv, &first, &status) < 0)
		return status;
	/* ---- privileged work starts here: the command line has been read ---- */
	if (graft_caps_limit(&hook->caps, 0, &err) < 0)
		return cdi_hook_fail(hook, &err, "failed to give up privileges");
	if (command->run)
		return command->run(hook, argc - first, argv + first);
	status = command->work(hook, &err);
	return status < 0 ? cdi_hook_fail(hook, &err, "%s", "") : status;
}

int cdi_hook_run_one(struct cdi_hook *hook, int argc, char **argv)
{
	const struct graft_command *command = argc > 0 ? graft_options_find_command(&cdi_hook_program, argv[0]) : NULL;

	if (argc == 0)
		return warn_of_cdi_hook(hook, "No CDI hook specified", "");
	if (!command || command == &cdi_hook_sequence)
		return warn_of_cdi_hook(hook, "Unsupported CDI hook: ", argv[0]);
	return run_hook(hook, command, argc, argv);
}

/* Returns the index of the first known hook's name, or `argc`. */
static int find_hook_word(int argc, char **argv)
{
	int i = 1;

	while (i < argc && !graft_options_find_command(&cdi_hook_program, argv[i]))
		i++;
	return i;
}

/*
 * An unknown option before a hook's name, from a newer release, must not keep the hook from
 * running: each causes a warning. An argument there that is not an option is the value of one.
 */
static int run_without_unknown_options(struct cdi_hook *hook, int argc, char **argv)
{
	int at = find_hook_word(argc, argv), n = 1;

	set_cdi_hook_log_level(hook);
	if (at == argc)
		return warn_of_cdi_hook(hook, "No CDI hook specified", "");
	for (int i = 1; i < at; i++) {
		enum graft_parse_result result = GRAFT_PARSE_OK;
		int first;

		if (argv[i][0] != '-')
			continue;
		if (graft_options_parse(&cdi_hook_program, 2, (char *[]){ argv[0], argv[i], NULL }, hook, &first,
					&result, NULL) == 0)
			argv[n++] = argv[i];
		else
			(void)warn_of_cdi_hook(hook, "Ignoring unknown option: ", argv[i]);
	}
	if (n == at)
		return warn_of_cdi_hook(hook, "No CDI hook specified", "");
	while (at < argc)
		argv[n++] = argv[at++];
	return cdi_hook_run(hook, n, argv);
}

int cdi_hook_run(struct cdi_hook *hook, int argc, char **argv)
{
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };
	int first, status;

	if (graft_options_parse(&cdi_hook_program, argc, argv, hook, &first, &result, &err) < 0)
		return run_without_unknown_options(hook, argc, argv);
	set_cdi_hook_log_level(hook);
	if (result != GRAFT_PARSE_OK)
		return parse_cdi_hook_options(hook, &cdi_hook_program, argc, argv, &first, &status) < 0 ? status : 0;
	if (first < argc && (strcmp(argv[first], "help") == 0 || strcmp(argv[first], "h") == 0))
		return print_cdi_hook_help(hook, &cdi_hook_program);
	if (first < argc && strcmp(argv[first], cdi_hook_sequence.name) == 0)
		return run_hook(hook, &cdi_hook_sequence, argc - first, argv + first);
	return cdi_hook_run_one(hook, argc - first, argv + first);
}
