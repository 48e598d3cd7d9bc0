/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sequence: hooks one after the other, as if each was a process of its own; what nvidia-container-runtime makes of specifications that ask for several
 * (docs/decisions/0016-hooks-in-a-row.md). A hook that fails is the last one; what those before it did stays, as it would without us.
 */
#include <string.h>

#include "base/cleanup.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "plan/join_hooks.h"

/* Words up to the next separator. */
static int count_words(int argc, char **argv)
{
	int n = 0;

	while (n < argc && strcmp(argv[n], GRAFT_SEQUENCE_THEN) != 0)
		n++;
	return n;
}

static int run(void *context, int argc, char **argv)
{
	struct cdi_hook *hook = context;
	int status = 0;

	for (int first = 0, n; first < argc && status == 0; first += n + 1) {
		struct cdi_hook one = *hook; /* with no options yet but what stays of those before */

		n = count_words(argc - first, argv + first);
		status = cdi_hook_run_one(&one, n, argv + first);
		hook->rootfs = one.rootfs;
		/* Those of several specifications are all to be found: the last cache is the one that stays. */
		hook->folders = one.folders;
	}
	return status;
}

static const struct graft_option options[] = { CDI_HOOK_ROOTFS };

const struct graft_command cdi_hook_sequence = {
	.name = GRAFT_SEQUENCE_HOOK,
	.arguments = "HOOK [OPTION...] [" GRAFT_SEQUENCE_THEN " HOOK [OPTION...]]...",
	.summary = "Run several hooks one after the other (nvidia-container-runtime)",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.max_arguments = -1,
	.stop_at_first_argument = true,
	.go_style = true,
	.run = run,
};
