/* SPDX-License-Identifier: Apache-2.0 */
/* generate: run while building: writes the man page (in scdoc's format) or a shell's completion from the tables of the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/ctk/ctk.h"
#include "cli/hook/arguments.h"

int main(int argc, char **argv)
{
	struct graft_buffer out = { .max = 0 };
	struct graft_error err;
	struct cli cli;

	cli_init(&cli);
	if (argc == 2 && strcmp(argv[1], "man") == 0) {
		graft_options_man(&cli_root, 1, &out);
	} else if (argc == 2 && strcmp(argv[1], "man-hook") == 0) {
		graft_options_man(&hook_program, 8, &out);
	} else if (argc == 2 && strcmp(argv[1], "man-ctk") == 0) {
		graft_options_man(&ctk_program, 1, &out);
	} else if (argc != 2 || graft_options_completion(&cli_root, argv[1], &out, &err) < 0) {
		(void)fprintf(stderr, "usage: generate man|man-hook|man-ctk|bash|zsh|fish\n");
		return 1;
	}
	return cli_print(&cli, &out);
}
