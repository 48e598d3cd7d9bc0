/* SPDX-License-Identifier: Apache-2.0 */
/* graft_sim: the program, for main() and for the tool that generates its man page. */
#ifndef GRAFT_SIM_PROGRAM_H
#define GRAFT_SIM_PROGRAM_H

#include "base/options.h"

/* The tables of graft-sim's commands and options. */
extern const struct graft_command sim_program;

/* Runs the program. Returns its exit status. */
int sim_main(int argc, char **argv);

#endif
