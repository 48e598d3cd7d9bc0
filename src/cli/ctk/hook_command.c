/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook_command: the hooks of nvidia-cdi-hook under the name that older container edits use.
 * SECURITY: runs for a container, in surroundings that an engine may have taken from its image, so
 * everything inherited is discarded before anything is read.
 */
#include "cli/cdi_hook/cdi_hook.h"
#include "cli/ctk/ctk.h"

static int run_ctk_hook(void *context, int argc, char **argv)
{
	const struct ctk *ctk = context;
	struct cdi_hook hook = { .debug = false };
	int status = 1;

	cdi_hook_isolate(&hook);
	hook.debug = hook.debug || ctk->debug;
	hook.quiet = hook.quiet || ctk->quiet;
	if (cdi_hook_init(&hook, CTK_PROGRAM " hook") == 0)
		status = cdi_hook_run(&hook, argc, argv);
	cdi_hook_done(&hook);
	return status;
}

const struct graft_command ctk_hook = {
	.name = "hook",
	.arguments = "HOOK [OPTION...]",
	.summary = "Run a hook of a CDI spec",
	.description = "The same as nvidia-cdi-hook, under the name that older CDI specifications use. An unknown hook "
		       "causes a warning and exit status 0.",
	.max_arguments = -1,
	.go_style = true,
	.subcommands = cdi_hook_commands,
	.run = run_ctk_hook,
};
