/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook: the hooks of nvidia-cdi-hook under the name that older container edits have for them. SECURITY: called for a container, with what an engine made of
 * its image around it; so everything is forgotten before anything is read.
 */
#include "cli/cdi_hook/cdi_hook.h"
#include "cli/ctk/ctk.h"

static int run(void *context, int argc, char **argv)
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
	.summary = "Run a hook that container edits (CDI) name",
	.description = "The same as nvidia-cdi-hook, which needs no loader and should be named in its place. A hook "
		       "that is not known is a warning and a success.",
	.max_arguments = -1,
	.go_style = true,
	.subcommands = cdi_hook_commands,
	.run = run,
};
