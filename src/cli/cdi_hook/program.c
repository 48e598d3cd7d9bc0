/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program: words to hooks, and messages. SPEC ctk-and-cdi 2.0: a container must not fail because of a hook that this program does not know, so what
 * is not known is a warning and a success.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "cli/log_line.h"
#include "host/image.h"

#define ARENA_MAX ((size_t)32 << 20)

const struct graft_command *const cdi_hook_commands[] = {
	&cdi_hook_update_ldcache,
	&cdi_hook_create_symlinks,
	&cdi_hook_chmod,
	&cdi_hook_enable_cuda_compat,
	&cdi_hook_disable_device_node_modification,
	&cdi_hook_update_application_profile,
	&cdi_hook_apply_plan,
	&cdi_hook_sequence,
	&cdi_hook_noop,
	NULL,
};

static const struct graft_option options[] = {
	{ .name = "debug",
	  .letter = 'd',
	  .help = "Tell every step on stderr (also: NVIDIA_CTK_DEBUG=true)",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct cdi_hook, debug) },
	{ .name = "quiet",
	  .help = "Tell errors only; wins over --debug (also: NVIDIA_CTK_QUIET=true)",
	  .parse = graft_option_set_true,
	  .offset = offsetof(struct cdi_hook, quiet) },
};

const struct graft_command cdi_hook_program = {
	.name = CDI_HOOK_PROGRAM,
	.arguments = "HOOK [OPTION...]",
	.summary = "Hooks that container edits (CDI) name: small changes inside a container before it starts",
	.description = "Low-level runtimes start this program at createContainer, for the hooks that a specification "
		       "of the Container "
		       "Device Interface or nvidia-container-runtime names. Each hook reads the OCI state on standard "
		       "input, unless it is told the container's root (--rootfs), opens that "
		       "root once and changes nothing outside of it.\n\n"
		       "The program is statically linked, forgets its environment, working directory and open files "
		       "first, and executes "
		       "nothing. A hook that it does not know is a warning and a success, so that specifications of "
		       "newer releases do "
		       "not keep containers from starting.",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.max_arguments = -1,
	.stop_at_first_argument = true,
	.go_style = true,
	.subcommands = cdi_hook_commands,
};

/* ---- messages ---- */

/* What the library tells at level info are the steps it takes, which a hook tells with --debug only. */
static void write_line(void *arg, enum graft_log_level level, const char *file, int number, const char *message)
{
	(void)arg;
	(void)file;
	(void)number;
	cli_log_line_write(STDERR_FILENO, level == GRAFT_LOG_INFO ? GRAFT_LOG_DEBUG : level, message);
}

static void set_level(struct cdi_hook *hook)
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

/* ---- words ---- */

int cdi_hook_init(struct cdi_hook *hook, const char *program)
{
	bool debug = hook->debug, quiet = hook->quiet;

	*hook = (struct cdi_hook){
		.program = program,
		.debug = debug,
		.quiet = quiet,
		.log = { .write = write_line, .max = GRAFT_LOG_WARN },
		.arena = graft_arena_new(ARENA_MAX),
		.caps = GRAFT_CAPS_INIT,
		.ldconfig_path = "/sbin/ldconfig",
		.compat_root = GRAFT_COMPAT_DIRECTORY,
	};
	set_level(hook);
	return hook->arena ? 0 : -1;
}

void cdi_hook_done(struct cdi_hook *hook)
{
	hook->arena = graft_arena_free(hook->arena);
}

int cdi_hook_parse_list(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct cdi_hook *hook = target;
	struct cdi_hook_list *list = (struct cdi_hook_list *)((char *)target + option->offset);

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

static int print(struct graft_buffer *text)
{
	bool ok = !graft_buffer_failed(text) &&
		  fwrite(graft_buffer_text(text), 1, text->length, stdout) == text->length && fflush(stdout) == 0;

	graft_buffer_done(text);
	return ok ? 0 : 1;
}

static int print_help(const struct cdi_hook *hook, const struct graft_command *command)
{
	struct graft_buffer text = { .max = 0 };
	char program[128];

	(void)snprintf(program, sizeof(program), "%s%s%s", hook->program, command == &cdi_hook_program ? "" : " ",
		       command == &cdi_hook_program ? "" : command->name);
	graft_options_help(command, program, &text);
	return print(&text);
}

static int print_version(void)
{
	struct graft_buffer text = { .max = 0 };

	graft_buffer_printf(&text, "NVIDIA CDI Hook version %s\n", GRAFT_VERSION);
	return print(&text);
}

/* What was asked for instead of a hook, or complaints about words. *ret_status is set unless it goes on (0). */
static int parse(struct cdi_hook *hook, const struct graft_command *command, int argc, char **argv, int *ret_first,
		 int *ret_status)
{
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_options_parse(command, argc, argv, hook, ret_first, &result, &err) < 0) {
		if (result == GRAFT_PARSE_WRONG) {
			(void)fprintf(stderr, "Incorrect Usage: %s\n\n", err.msg);
			(void)print_help(hook, command);
		}
		*ret_status = cdi_hook_fail(hook, &err, "%s", "");
		return -1;
	}
	if (result == GRAFT_PARSE_OK)
		return 0;
	*ret_status = result == GRAFT_PARSE_VERSION ? print_version() : print_help(hook, command);
	return -1;
}

static int warn(const struct cdi_hook *hook, const char *text, const char *name)
{
	graft_warn(&hook->log, "%s%s", text, name);
	return 0;
}

static int run_hook(struct cdi_hook *hook, const struct graft_command *command, int argc, char **argv)
{
	struct graft_error err = { .status = GRAFT_OK };
	int first, status = 0;

	if (parse(hook, command, argc, argv, &first, &status) < 0)
		return status;
	/* ---- privileged work starts here: all words are read ---- */
	if (graft_caps_limit(&hook->caps, 0, &err) < 0)
		return cdi_hook_fail(hook, &err, "failed to give up privileges");
	return command->run(hook, argc - first, argv + first);
}

int cdi_hook_run_one(struct cdi_hook *hook, int argc, char **argv)
{
	const struct graft_command *command = argc > 0 ? graft_options_find_command(&cdi_hook_program, argv[0]) : NULL;

	if (argc == 0)
		return warn(hook, "No CDI hook specified", "");
	if (!command || command == &cdi_hook_sequence)
		return warn(hook, "Unsupported CDI hook: ", argv[0]);
	return run_hook(hook, command, argc, argv);
}

int cdi_hook_run(struct cdi_hook *hook, int argc, char **argv)
{
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };
	int first, status;

	if (graft_options_parse(&cdi_hook_program, argc, argv, hook, &first, &result, &err) < 0) {
		set_level(hook);
		return warn(hook, "No CDI hook specified", "");
	}
	set_level(hook);
	if (result != GRAFT_PARSE_OK)
		return parse(hook, &cdi_hook_program, argc, argv, &first, &status) < 0 ? status : 0;
	if (first < argc && (strcmp(argv[first], "help") == 0 || strcmp(argv[first], "h") == 0))
		return print_help(hook, &cdi_hook_program);
	if (first < argc && strcmp(argv[first], cdi_hook_sequence.name) == 0)
		return run_hook(hook, &cdi_hook_sequence, argc - first, argv + first);
	return cdi_hook_run_one(hook, argc - first, argv + first);
}
