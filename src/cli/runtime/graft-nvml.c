/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graft-nvml: the entry point. One of our static programs starts it to ask NVML for what the kernel
 * driver does not report.
 */
#include <stdio.h>
#include <unistd.h>

#include "cli/runtime/nvml_program.h"

int main(int argc, char **argv)
{
	struct graft_nvml_question question;
	pid_t parent;

	if (!runtime_nvml_parse(argc, (const char *const *)argv, &question, &parent)) {
		(void)fprintf(stderr, "graft-nvml: run by Graft's static programs, not by hand\n");
		return 64;
	}
	graft_nvml_child(&question, parent, STDOUT_FILENO);
}
