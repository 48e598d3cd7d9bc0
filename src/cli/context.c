/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context: the frame in which every command runs: global options, environment, debug log, capabilities, messages, phases.
 * The one place that reads environment variables. Knows nothing of what a command does.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/load_kmods.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/descriptors.h"
#include "cli/pipeline.h"

void cli_init(struct cli *cli)
{
	cli_open_standard_descriptors();
	*cli = (struct cli){
		.global = { .uid = (uid_t)-1, .gid = (gid_t)-1 },
		.log_fd = -1,
		.caps = GRAFT_CAPS_INIT,
		.started_us = (uint64_t)graft_clock_us(),
	};
	cli->phase_us = cli->started_us;
}

void cli_done(struct cli *cli)
{
	if (cli->log_fd >= 0)
		(void)close(cli->log_fd);
	cli->log_fd = -1;
	cli->log = NULL;
}

/* ---- messages ---- */

void cli_tell_simulated(const struct graft_inventory *inventory)
{
	if (inventory && inventory->simulated)
		(void)fputs(CLI_PROGRAM ": note: the driver is simulated, no GPU is behind it\n", stderr);
}

/*
 * Words that are searched for ("nvml error: driver/library version mismatch") stand directly behind the prefix, where people and programs
 * look for them; which versions, which owner and mode, which expression goes into the hint. Everywhere else the context leads up to the failure.
 */
static bool has_known_words(const struct graft_error *err)
{
	static const char *const words[] = { "nvml error: ", "driver rpc error: ", "load library failed: ",
					     "invalid expression" };

	for (size_t i = 0; i < GRAFT_COUNT(words); i++) {
		if (strncmp(err->msg, words[i], strlen(words[i])) == 0)
			return true;
	}
	return false;
}

/* An engine calls us with what a container says: who reads this can correct the container, and not our command line. */
static const char *remedy(const struct cli *cli, const struct graft_error *err)
{
	return cli->one_line && err->status == GRAFT_INVALID
		   ? "Correct the NVIDIA_* variables of the container, or config.toml."
		   : graft_status_hint(err->status);
}

int cli_fail(const struct cli *cli, const char *prefix, const struct graft_error *err)
{
	char text[sizeof(err->msg) + sizeof(err->ctx) + 128];
	const char *separator = prefix[0] != '\0' ? ": " : "";
	const char *hint = remedy(cli, err);
	const char *hint_separator = cli->one_line ? "; " : "\n" CLI_PROGRAM ": hint: ";
	struct graft_error first = *err;

	if (has_known_words(err))
		first.ctx[0] = '\0';
	(void)graft_error_text(&first, text, sizeof(text));
	graft_log_write(cli->log, GRAFT_LOG_ERROR, __FILE_NAME__, __LINE__, "%s%s%s [%s]", prefix, separator, text,
			graft_status_name(err->status));
	if (has_known_words(err) && err->ctx[0] != '\0')
		(void)fprintf(stderr, CLI_PROGRAM ": %s%s%s%s%s. %s\n", prefix, separator, text, hint_separator,
			      err->ctx, hint);
	else
		(void)fprintf(stderr, CLI_PROGRAM ": %s%s%s%s%s\n", prefix, separator, text,
			      hint[0] != '\0' ? hint_separator : "", hint);
	return 1;
}

int cli_print(const struct cli *cli, struct graft_buffer *out)
{
	struct graft_error err = { .status = GRAFT_OK };
	const char *text = graft_buffer_text(out);
	size_t done = 0;

	if (graft_buffer_failed(out)) {
		graft_buffer_done(out);
		(void)graft_fail_memory(&err);
		return cli_fail(cli, "output error", &err);
	}
	while (done < out->length) {
		ssize_t n = write(STDOUT_FILENO, text + done, out->length - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			(void)graft_fail_errno(&err, errno, "write failed: standard output");
			graft_buffer_done(out);
			return cli_fail(cli, "output error", &err);
		}
		done += (size_t)n;
	}
	graft_buffer_done(out);
	return 0;
}

void cli_phase(struct cli *cli, const char *name)
{
	uint64_t now = (uint64_t)graft_clock_us();

	if (cli->global.timing)
		(void)fprintf(stderr, CLI_PROGRAM ": timing: %-12s %8llu us, %8llu us since the start\n", name,
			      (unsigned long long)(now - cli->phase_us), (unsigned long long)(now - cli->started_us));
	cli->phase_us = now;
}

/* ---- words ---- */

static int print_text(struct graft_buffer *out)
{
	struct cli silent = { .log_fd = -1 };

	return cli_print(&silent, out);
}

int cli_parse(const struct cli *cli, const struct graft_command *command, int argc, char **argv, void *options,
	      int *ret_first, int *ret_status)
{
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer out = { .max = 0 };
	char program[128];
	int rc = graft_options_parse(command, argc, argv, options, ret_first, &result, &err);

	if (rc == 0 && result == GRAFT_PARSE_OK)
		return 0;
	(void)snprintf(program, sizeof(program), CLI_PROGRAM "%s%s", command == &cli_root ? "" : " ",
		       command == &cli_root ? "" : command->name);
	*ret_status = 1;
	if (rc < 0 && result == GRAFT_PARSE_OK) {
		(void)cli_fail(cli, "", &err);
	} else if (rc < 0) {
		graft_options_complain(command, program, result, &err, &out);
		(void)fputs(graft_buffer_text(&out), stderr);
		graft_buffer_done(&out);
	} else {
		if (result == GRAFT_PARSE_HELP)
			graft_options_help(command, program, &out);
		else if (result == GRAFT_PARSE_USAGE)
			graft_options_usage(command, program, &out);
		else
			cli_version(&out);
		*ret_status = print_text(&out);
	}
	return -1;
}

static int unknown_command(const char *name)
{
	struct graft_buffer out = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };

	graft_options_complain(&cli_root, CLI_PROGRAM, GRAFT_PARSE_MISSING, &err, &out);
	(void)fprintf(stderr, CLI_PROGRAM ": unknown command '%s'\n%s", name, graft_buffer_text(&out));
	graft_buffer_done(&out);
	return 1;
}

int cli_main(struct cli *cli, int argc, char **argv)
{
	int first = 0, status = 1;

	if (cli_parse(cli, &cli_root, argc, argv, cli, &first, &status) < 0)
		return status;
	for (size_t i = 0; cli_root.subcommands[i]; i++) {
		const struct graft_command *command = cli_root.subcommands[i];

		if (strcmp(argv[first], command->name) == 0)
			return command->run(cli, argc - first, argv + first);
	}
	return unknown_command(argv[first]);
}

/* ---- log ---- */

/*
 * SECURITY: with raised privileges (set-user-ID, file capabilities) whoever calls us must not choose a file that we open with them;
 * secure_getenv() ignores the variable then, and the option is ignored in the same way.
 */
static const char *debug_path(const struct cli *cli)
{
	if (cli->global.debug)
		return getauxval(AT_SECURE) == 0 ? cli->global.debug : NULL;
	return secure_getenv("NVC_DEBUG_FILE");
}

void cli_open_log_file(struct cli *cli, const char *path)
{
	cli->log_fd = graft_log_file_open(path);
	if (cli->log_fd < 0)
		return;
	graft_log_file_init(&cli->log_file, cli->log_fd, GRAFT_LOG_DEBUG);
	cli->log = &cli->log_file.log;
}

void cli_open_log(struct cli *cli, const struct graft_request *request)
{
	const char *path = debug_path(cli);
	struct graft_host_options options;

	if (!cli->log && path && path[0] != '\0')
		cli_open_log_file(cli, path);
	if (cli->log) {
		cli_host_options(cli, request, &options);
		cli_log_start(&options);
	}
}

/* ---- capabilities ---- */

int cli_limit(struct cli *cli, bool needed)
{
	unsigned int flags = (needed ? GRAFT_CAPS_ALL_NEEDED : 0u) |
			     (cli->global.load_kmods ? GRAFT_CAPS_MAY_EXECUTE : 0u);
	struct graft_error err = { .status = GRAFT_OK };

	if (!needed && geteuid() != 0)
		return 0;
	if (graft_caps_limit(&cli->caps, flags, &err) < 0 ||
	    graft_caps_enter(&cli->caps, GRAFT_CAPS_INIT_STEP, &err) < 0)
		return cli_fail(cli, "permission error", &err);
	return 0;
}

int cli_enter(struct cli *cli, enum graft_caps_step step)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_caps_enter(&cli->caps, step, &err) < 0)
		return cli_fail(cli, "permission error", &err);
	return 0;
}

/* ---- discovery ---- */

/* SPEC 3.6: unprivileged callers of info and list keep their ids; root's helper gets the kernel's overflow ids. */
static void choose_user(const struct cli *cli, struct graft_host_options *options)
{
	options->nvml_uid = cli->global.uid;
	options->nvml_gid = cli->global.gid;
	if (!cli->global.user_given && geteuid() != 0) {
		options->nvml_uid = geteuid();
		options->nvml_gid = getegid();
	}
}

void cli_host_options(const struct cli *cli, const struct graft_request *request,
		      struct graft_host_options *ret_options)
{
	*ret_options = (struct graft_host_options){
		.root = cli->global.root,
		.ldcache = cli->global.ldcache,
		.path = secure_getenv("PATH"),
		.mps_pipe_directory = secure_getenv("CUDA_MPS_PIPE_DIRECTORY"),
		.capabilities = GRAFT_CAP_ALL,
		.nvml_timeout_ms = cli->global.nvml_timeout_ms,
		.log = cli->log,
	};
	choose_user(cli, ret_options);
	if (!request)
		return;
	cli_request_host_options(request, ret_options);
}

static void pipeline_phase(void *arg, const char *name)
{
	cli_phase(arg, name);
}

/* NVML's child gives up its ids and its root, for which it needs capabilities that reading the host does not. */
static int pipeline_nvml(void *arg, bool begin, struct graft_error *err)
{
	const struct cli *cli = arg;

	return graft_caps_enter(&cli->caps, begin ? GRAFT_CAPS_INIT_STEP : GRAFT_CAPS_INFO, err);
}

void cli_pipeline_start(struct cli *cli, const struct graft_request *request, struct cli_pipeline *ret_pipeline)
{
	*ret_pipeline = (struct cli_pipeline){
		.prefix = "",
		.phase = pipeline_phase,
		.nvml = pipeline_nvml,
		.arg = cli,
	};
	cli_host_options(cli, request, &ret_pipeline->host);
}

/* WSL2 shows itself by this node. Its modules are Windows' matter, and its GPUs are only known to NVML. */
static bool is_wsl(void)
{
	struct stat st;

	return stat("/dev/dxg", &st) == 0;
}

/* The one program that is ever run is modprobe, here, before anything is known of a container. */
int cli_load_kmods(struct cli *cli, const struct graft_request *request)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_host_options host;
	struct graft_kmods_options kmods;

	enum graft_caps_step next = is_wsl() ? GRAFT_CAPS_INIT_STEP : GRAFT_CAPS_INFO;

	if (!cli->global.load_kmods)
		return cli_enter(cli, next);
	if (cli_enter(cli, GRAFT_CAPS_KMODS) != 0)
		return 1;
	cli_host_options(cli, request, &host);
	kmods = (struct graft_kmods_options){
		.root = host.root,
		.imex_channels = host.imex_channels,
		.n_imex_channels = host.n_imex_channels,
		.no_create_imex_channels = cli->global.no_create_imex_channels,
		.wsl = is_wsl(),
		.log = cli->log,
	};
	graft_load_kmods(&kmods);
	if (graft_caps_end_execution(&err) < 0)
		return cli_fail(cli, "permission error", &err);
	cli_phase(cli, "load-kmods");
	return cli_enter(cli, next);
}
