/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-cdi-hook: the entry point. */
#include "cli/cdi_hook/cdi_hook.h"

int main(int argc, char **argv)
{
	struct cdi_hook hook = { .debug = false };
	int status = 1;

	cdi_hook_isolate(&hook);
	if (cdi_hook_init(&hook, CDI_HOOK_PROGRAM) == 0)
		status = cdi_hook_run(&hook, argc, argv);
	cdi_hook_done(&hook);
	return status;
}
