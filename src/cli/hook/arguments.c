/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments: the table of flags and commands, from which the parser, the help text and the man page
 * are made. Prints nothing.
 */
#include "base/option_rows.h"
#include "cli/hook/hook.h"

#include <string.h>

#include "base/cleanup.h"

/* clang-format off */
#define AT(member) .offset = offsetof(struct hook_arguments, member)
static const struct graft_option options[] = {
	{ .name = "config", TEXT, AT(config), .value_name = "FILE",
	  .help = "Use FILE instead of /etc/nvidia-container-runtime/config.toml" },
	{ .name = "debug", FLAG, AT(debug), .help = "Log every step on stderr" },
};
/* clang-format on */

/* clang-format off */
#define STAGE(name_, summary_) \
	{ .name = name_, .arguments = "", .summary = summary_, .max_arguments = -1, .go_style = true }
static const struct graft_command prestart = STAGE("prestart", "Give the container the GPUs that it asks for");
static const struct graft_command poststart = STAGE("poststart", "Do nothing");
static const struct graft_command poststop = STAGE("poststop", "Do nothing");

static const struct graft_option lease_options[] = {
	{ .name = "count", .letter = 'n', TEXT, AT(count), .value_name = "N",
	  .help = "Number of GPUs (default 1)" },
	{ .name = "claim", TEXT, AT(claim), .value_name = "CLAIM",
	  .help = "What to take, such as 'any:2;model=H100'" },
};
/* clang-format on */
static const struct graft_command lease = {
	.name = "lease",
	.arguments = "",
	.summary = "Take GPUs on a lease for the container, and give it access to them",
	.description = "The createRuntime hook of the CDI devices that 'nvidia-ctk cdi generate --leases' describes. "
		       "The container's NVIDIA_VISIBLE_DEVICES is ignored. Leases must be on in config.toml.",
	GRAFT_OPTIONS(lease_options),
	.go_style = true,
};
static const struct graft_command *const commands[] = { &prestart, &poststart, &poststop, &lease, NULL };

static const struct graft_manual_section sections[] = {
	{ "EXIT STATUS", "*0* on success and for a container that asks for no GPU. *1* on failure; one line on stderr "
			 "names cause and remedy. *2* for a wrong command line. If config.toml names another "
			 "*nvidia-container-cli*, its exit status." },
	{ "ENVIRONMENT",
	  "*NVIDIA_CTK_CONFIG_FILE_PATH*\n\tThe configuration file, unless *-config* is "
	  "given.\n\n*XDG_CONFIG_HOME*\n\tIf the former is not set: nvidia-container-runtime/config.toml below this "
	  "directory.\n\n*PATH*, *NVC_DEBUG_FILE*, *CUDA_MPS_PIPE_DIRECTORY*\n\tAs for "
	  "*nvidia-container-cli*(1).\n\nEach counts only if the _env_ of a hook in the bundle's config.json has it "
	  "with the same value; otherwise it may come from an image. Nothing else is read." },
	{ "EXAMPLES", "The hook in a config.json, for a low-level runtime without an engine:\n\n```\n\"hooks\": {\n  "
		      "\"prestart\": [\n    {\n      \"path\": \"/usr/bin/nvidia-container-runtime-hook\",\n      "
		      "\"args\": [\"nvidia-container-runtime-hook\", \"prestart\"]\n    }\n  ]\n}\n```" },
	{ "SEE ALSO", "*nvidia-container-runtime*(8), *nvidia-container-cli*(1), *nvidia-ctk*(1), "
		      "*nvidia-container-runtime-config*(5)" },
};

const struct graft_command hook_program = {
	.name = HOOK_PROGRAM,
	.arguments = "COMMAND",
	.summary = "Give containers their GPUs, as an OCI hook",
	.description = "Called by a container runtime while it creates a container, with the container's state on "
		       "standard input. Reads the container's request from the bundle's config.json and gives it the "
		       "GPUs. A container that asks for no GPU is left alone, silently.\n\nFlags can start with one "
		       "dash or two. nvidia-container-toolkit is the same program.",
	GRAFT_OPTIONS(options),
	.max_arguments = -1,
	.stop_at_first_argument = true,
	.go_style = true,
	.subcommands = commands,
	GRAFT_MANUAL(sections),
};

int hook_arguments_read(int argc, char **argv, struct hook_arguments *ret_arguments,
			enum graft_parse_result *ret_result, struct graft_error *err)
{
	int first = 0, rest;

	*ret_arguments = (struct hook_arguments){ .command = HOOK_NONE, .asked = &hook_program };
	if (graft_options_parse(&hook_program, argc, argv, ret_arguments, &first, ret_result, err) < 0)
		return -1;
	for (size_t i = 0; first < argc && commands[i]; i++) {
		if (strcmp(argv[first], commands[i]->name) == 0)
			ret_arguments->command = (enum hook_command)(HOOK_PRESTART + i);
	}
	if (*ret_result != GRAFT_PARSE_OK || ret_arguments->command != HOOK_LEASE)
		return 0;
	ret_arguments->asked = &lease;
	if (graft_options_parse(&lease, argc - first, argv + first, ret_arguments, &rest, ret_result, err) < 0)
		return -1;
	if (ret_arguments->claim && ret_arguments->count)
		return graft_fail(err, GRAFT_INVALID, 0, "--count and --claim cannot be used together");
	return 0;
}
