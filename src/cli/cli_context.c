/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_context: the context in which every command runs: global options, environment, debug log,
 * capabilities, phases. The only place in nvidia-container-cli that reads environment variables.
 * Knows nothing about what a command does.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "apply/host_file.h"
#include "apply/load_kmods.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "cli/descriptors.h"
#include "cli/elsewhere.h"
#include "cli/log_line.h"
#include "host/nvml.h"
#include "host/platform.h"
#include "start/pipeline.h"
#include "start/version.h"

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

void cli_phase(struct cli *cli, const char *name)
{
	uint64_t now = (uint64_t)graft_clock_us();

	if (cli->global.timing)
		(void)fprintf(stderr, CLI_PROGRAM ": timing: %-12s %8llu us, %8llu us since the start\n", name,
			      (unsigned long long)(now - cli->phase_us), (unsigned long long)(now - cli->started_us));
	cli->phase_us = now;
}

/* ---- arguments ---- */

int cli_parse(const struct cli *cli, const struct graft_command *command, int argc, char **argv, void *options,
	      int *ret_first, int *ret_status)
{
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };
	auto_buffer struct graft_buffer out = { .max = 0 };
	char program[128];
	int rc = graft_options_parse(command, argc, argv, options, ret_first, &result, &err);

	if (rc == 0 && result == GRAFT_PARSE_OK)
		return 0;
	(void)snprintf(program, sizeof(program), CLI_PROGRAM "%s%s", command == &cli_root ? "" : " ",
		       command == &cli_root ? "" : command->name);
	*ret_status = 1;
	if (rc < 0 && result == GRAFT_PARSE_OK) {
		(void)cli_fail(cli, &err);
	} else if (rc < 0) {
		graft_options_complain(command, program, result, &err, &out);
		(void)fputs(graft_buffer_text(&out), stderr);
	} else {
		if (result == GRAFT_PARSE_HELP)
			graft_options_help(command, program, &out);
		else if (result == GRAFT_PARSE_USAGE)
			graft_options_usage(command, program, &out);
		else
			graft_version_text(&out);
		*ret_status = cli_print(cli, &out);
	}
	return -1;
}

static int unknown_command(const char *name)
{
	const char *near = graft_options_meant_command(&cli_root, name);
	const char *meant = near ? near : cli_meant_elsewhere(name);
	auto_buffer struct graft_buffer out = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };

	graft_options_complain(&cli_root, CLI_PROGRAM, GRAFT_PARSE_MISSING, &err, &out);
	(void)fprintf(stderr, CLI_PROGRAM ": unknown command '%s'%s%s%s\n%s", name, meant ? " (did you mean '" : "",
		      meant ? meant : "", meant ? "'?)" : "", graft_buffer_text(&out));
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
 * SECURITY: when run with raised privileges (set-user-ID, file capabilities), the caller must not
 * choose a file that we open with them. secure_getenv() ignores the variable then, and the option
 * is ignored as well.
 */
static const char *debug_path(const struct cli *cli)
{
	if (cli->global.debug)
		return getauxval(AT_SECURE) == 0 ? cli->global.debug : NULL;
	return secure_getenv("NVC_DEBUG_FILE");
}

void cli_open_log_file(struct cli *cli, const char *path)
{
	struct graft_error err = { .status = GRAFT_OK };

	cli->log_tried = true;
	cli->log_fd = graft_log_file_begin(graft_host_log_open(path, 0, false, &err));
	if (err.status != GRAFT_OK)
		(void)fprintf(stderr, CLI_PROGRAM ": warning: %s\n", GRAFT_ERROR_TEXT(&err));
	if (cli->log_fd < 0)
		return;
	graft_log_file_init(&cli->log_file, cli->log_fd, GRAFT_LOG_DEBUG);
	cli->log = &cli->log_file.log;
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
		return cli_fail_in(cli, GRAFT_STEP_PERMISSION, &err);
	return 0;
}

static int enter_caps_step(struct cli *cli, enum graft_caps_step step)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_caps_enter(&cli->caps, step, &err) < 0)
		return cli_fail_in(cli, GRAFT_STEP_PERMISSION, &err);
	return 0;
}

/* ---- discovery ---- */

/*
 * SPEC libnvidia-container 3.6: unprivileged callers of info and list keep their IDs; root's NVML
 * process gets the kernel's overflow IDs.
 */
static void choose_nvml_user(const struct cli *cli, struct graft_host_options *options)
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
	choose_nvml_user(cli, ret_options);
	if (!request)
		return;
	graft_pipeline_host_options(request, ret_options);
}

static void pipeline_phase(void *arg, const char *name)
{
	cli_phase(arg, name);
}

/*
 * NVML's child gives up its IDs and its root, and needs capabilities for that which reading the
 * host does not.
 */
static int pipeline_nvml(void *arg, bool begin, struct graft_error *err)
{
	const struct cli *cli = arg;

	return graft_caps_enter(&cli->caps, begin ? GRAFT_CAPS_INIT_STEP : GRAFT_CAPS_INFO, err);
}

/* ---- waiting ---- */

static void print_progress(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	(void)arg, (void)level, (void)file, (void)line;
	if (graft_starts_with(message, GRAFT_NVML_WAITING))
		(void)fprintf(stderr, CLI_PROGRAM ": %s\n", message);
}

/* For a person at a terminal without a debug log: reports what takes more than a second. */
static const struct graft_log progress = { .write = print_progress, .wants = cli_wants_waiting, .max = GRAFT_LOG_INFO };

void cli_pipeline_start(struct cli *cli, const struct graft_request *request, struct graft_pipeline *ret_pipeline)
{
	const char *path = debug_path(cli);

	*ret_pipeline = (struct graft_pipeline){
		.phase = pipeline_phase,
		.nvml = pipeline_nvml,
		.arg = cli,
	};
	if (!cli->log_tried && path && path[0] != '\0')
		cli_open_log_file(cli, path);
	if (!cli->log && isatty(STDERR_FILENO))
		cli->log = &progress;
	cli_host_options(cli, request, &ret_pipeline->host);
	graft_pipeline_log_start(&ret_pipeline->host);
}

/*
 * modprobe is the only program that is run here (static programs also start graft-nvml and
 * graft-systemd, see meson.build). It runs here, before anything is known about a container.
 */
static int load_requested_kmods(struct cli *cli, const struct graft_host_options *host)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kmods_options kmods;
	bool wsl = graft_platform_is_wsl();
	enum graft_caps_step next = wsl ? GRAFT_CAPS_INIT_STEP : GRAFT_CAPS_INFO;

	if (!cli->global.load_kmods)
		return enter_caps_step(cli, next);
	if (enter_caps_step(cli, GRAFT_CAPS_KMODS) != 0)
		return 1;
	kmods = (struct graft_kmods_options){
		.root = host->root,
		.imex_channels = host->imex_channels,
		.n_imex_channels = host->n_imex_channels,
		.no_create_imex_channels = cli->global.no_create_imex_channels,
		.wsl = wsl,
		.log = cli->log,
	};
	graft_load_kmods(&kmods);
	if (graft_caps_end_execution(&err) < 0)
		return cli_fail_in(cli, GRAFT_STEP_PERMISSION, &err);
	cli_phase(cli, "load-kmods");
	return enter_caps_step(cli, next);
}

int cli_begin(struct cli *cli, const struct graft_request *request, bool needs_capabilities,
	      struct graft_pipeline *ret_pipeline)
{
	cli_pipeline_start(cli, request, ret_pipeline);
	cli_phase(cli, "parse");
	return cli_limit(cli, needs_capabilities) != 0 || load_requested_kmods(cli, &ret_pipeline->host) != 0 ? 1 : 0;
}
