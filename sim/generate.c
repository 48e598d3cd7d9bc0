/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate: a build tool that writes graft-sim's man page (in scdoc format) or a shell's completion
 * from its tables.
 */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "graft_sim.h"

int main(int argc, char **argv)
{
	struct graft_buffer out = { .max = 0 };
	struct graft_error err;

	if (argc == 2 && strcmp(argv[1], "man") == 0) {
		graft_options_man(&sim_program, 1, &out);
	} else if (argc != 2 || graft_options_completion(&sim_program, argv[1], &out, &err) < 0) {
		(void)fprintf(stderr, "usage: sim-generate man|bash|zsh|fish\n");
		return 1;
	}
	if (graft_buffer_failed(&out) || fputs(graft_buffer_text(&out), stdout) < 0 || fflush(stdout) != 0)
		return 1;
	graft_buffer_done(&out);
	return 0;
}
