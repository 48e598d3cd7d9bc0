/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sequence: runs hooks one after the other, each as if it were a process of its own.
 * nvidia-container-runtime writes this for specifications with several hooks
 * (docs/decisions/0016-hooks-in-a-row.md). The first failure ends the sequence; what earlier hooks
 * did stays, as it would with separate processes.
 */
#include <string.h>

#include "base/cleanup.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "plan/spec_hooks.h"

/* Number of arguments up to the next separator. */
static int count_words(int argc, char **argv)
{
	int n = 0;

	while (n < argc && strcmp(argv[n], GRAFT_SEQUENCE_THEN) != 0)
		n++;
	return n;
}

static int run_hook_sequence(void *context, int argc, char **argv)
{
	struct cdi_hook *hook = context;
	int status = 0;

	for (int first = 0, n; first < argc && status == 0; first += n + 1) {
		struct cdi_hook one = *hook; /* without options, except what earlier hooks left */

		n = count_words(argc - first, argv + first);
		status = cdi_hook_run_one(&one, n, argv + first);
		hook->rootfs = one.rootfs;
		hook->known_root = one.known_root;
		/*
		 * The last cache replaces all earlier ones, so it must list the directories of all
		 * specifications.
		 */
		hook->folders = one.folders;
	}
	return status;
}

static const struct graft_option options[] = { CDI_HOOK_ROOTFS };

const struct graft_command cdi_hook_sequence = {
	.name = GRAFT_SEQUENCE_HOOK,
	.arguments = "HOOK [OPTION...] [" GRAFT_SEQUENCE_THEN " HOOK [OPTION...]]...",
	.summary = "Run several hooks in order (used by nvidia-container-runtime)",
	GRAFT_OPTIONS(options),
	.max_arguments = -1,
	.stop_at_first_argument = true,
	.go_style = true,
	.run = run_hook_sequence,
};
