/* SPDX-License-Identifier: Apache-2.0 */
/* graft-nvml: asks NVML for a nvidia-container-runtime, which starts it when it needs to know what the kernel driver does not tell. The entry point. */
#include <stdio.h>
#include <unistd.h>

#include "cli/runtime/nvml.h"

int main(int argc, char **argv)
{
	struct graft_nvml_question question;
	pid_t parent;

	if (!runtime_nvml_parse(argc, (const char *const *)argv, &question, &parent)) {
		(void)fprintf(stderr,
			      "graft-nvml: nvidia-container-runtime starts this program; it is of no use by hand\n");
		return 64;
	}
	graft_nvml_child(&question, parent, STDOUT_FILENO);
}
