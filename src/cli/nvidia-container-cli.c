/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-container-cli: the entry point. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
	struct cli cli;
	int status;

	cli_init(&cli);
	status = cli_main(&cli, argc, argv);
	cli_done(&cli);
	return status;
}
