/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root_command: the top level of nvidia-container-cli: its global options and commands (SPEC
 * libnvidia-container 3.2).
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/option_rows.h"
#include "cli/cli.h"

static int set_user(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct cli *cli = target;

	(void)option;
	cli->global.user_given = true;
	return cli_parse_user(value, &cli->global.uid, &cli->global.gid, err);
}

static int fail_timeout(int sys, struct graft_error *err)
{
	return graft_fail(err, GRAFT_INVALID, sys, "input error: parse NVML timeout failed");
}

/* Parses seconds, possibly with a fraction; 0 = no limit. */
static int set_nvml_timeout(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct cli *cli = target;
	char *end = NULL;
	double seconds;

	(void)option;
	errno = 0;
	seconds = strtod(value, &end);
	if (end == value || *end != '\0' || !isfinite(seconds) || seconds < 0)
		return fail_timeout(EINVAL, err);
	if (seconds * 1000 >= INT_MAX)
		return fail_timeout(ERANGE, err);
	cli->global.nvml_timeout_ms = (int)(seconds * 1000);
	if (seconds > 0 && cli->global.nvml_timeout_ms == 0)
		cli->global.nvml_timeout_ms = 1;
	return 0;
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct cli, member)
static const struct graft_option options[] = {
	{ .name = "debug", .letter = 'd', TEXT, AT(global.debug), .value_name = "FILE",
	  .help = "Append a debug log to FILE" },
	{ .name = "load-kmods", .letter = 'k', FLAG, AT(global.load_kmods),
	  .help = "Load the kernel modules and create the device nodes of the host" },
	{ .name = "no-pivot", .letter = 'n', FLAG, AT(global.no_pivot),
	  .help = "Accepted for compatibility: no program is run that would need it" },
	{ .name = "user", .letter = 'u', .argument = GRAFT_OPTION_OPTIONAL, .parse = set_user,
	  .value_name = "UID[:GID]",
	  .help = "User and group of the process that loads NVML; without a value: the caller's own" },
	{ .name = "root", .letter = 'r', TEXT, AT(global.root), .value_name = "PATH",
	  .help = "Driver root: the directory in which the driver is installed (default: /)" },
	{ .name = "ldcache", .letter = 'l', TEXT, AT(global.ldcache), .value_name = "FILE",
	  .help = "Dynamic linker's cache inside the driver root (default: /etc/ld.so.cache)" },
	{ .name = "no-create-imex-channels", FLAG, AT(global.no_create_imex_channels),
	  .help = "With --load-kmods: do not create the nodes of IMEX channels" },
	{ .name = "nvml-timeout", .argument = GRAFT_OPTION_REQUIRED, .parse = set_nvml_timeout,
	  .value_name = "SECONDS",
	  .help = "Give up waiting for NVML after SECONDS (default: wait forever)" },
	{ .name = "timing", FLAG, AT(global.timing), .help = "Print on stderr how long each phase took" },
};
/* clang-format on */

static const struct graft_command *const commands[] = { &cli_configure, &cli_info, &cli_list, &cli_plan, NULL };

static const struct graft_manual_section sections[] = {
	{ "EXIT STATUS", "*0* on success. *info*, *list* and *configure* exit with *1* on any failure; *plan* has an "
			 "exit status for each kind of failure.\n\nThe first line on stderr names the step and what "
			 "failed; a line with _hint:_ names the remedy." },
	{ "ENVIRONMENT",
	  "*NVC_DEBUG_FILE*\n\tFile to append a debug log to, as *--debug*.\n\n*PATH*\n\tDirectories to search for the "
	  "driver's programs, below the driver root.\n\n*CUDA_MPS_PIPE_DIRECTORY*\n\tDirectory of the MPS pipes "
	  "(default: /tmp/nvidia-mps).\n\n*NVC_INSECURE_MODE*\n\tHas no effect: no program of an image is ever "
	  "run.\n\nAll are ignored when the program runs with raised privileges." },
	{ "EXAMPLES", "What this host has:\n\n*nvidia-container-cli info*\n\nWhat a container would get, and why:\n\n"
		      "*nvidia-container-cli plan --device=0 --compute --utility /path/to/rootfs*\n\n"
		      "The same for a container that is running:\n\n"
		      "*nvidia-container-cli plan --pid=1234 --device=0 --compute --utility "
		      "/proc/1234/root*" },
	{ "SEE ALSO",
	  "*nvidia-ctk*(1), *nvidia-container-runtime*(8), *nvidia-container-runtime-hook*(8), *nvidia-cdi-hook*(8), "
	  "*nvidia-container-runtime-config*(5), *graft-sim*(1)" },
};

const struct graft_command cli_root = {
	.name = CLI_PROGRAM,
	.arguments = "COMMAND [ARG...]",
	.summary = "Give Linux containers their NVIDIA GPUs",
	.description = "Finds the driver of this host and gives a container the parts of it that it asks for. Global "
		       "options must precede the command.",
	GRAFT_OPTIONS(options),
	.min_arguments = 1,
	.max_arguments = -1,
	.stop_at_first_argument = true,
	.abbreviations = true,
	.subcommands = commands,
	GRAFT_MANUAL(sections),
};
