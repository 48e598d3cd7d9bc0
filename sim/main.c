/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main: separate from the program, so that the tool that generates its man page can link the
 * program.
 */
#include "graft_sim.h"

int main(int argc, char **argv)
{
	return sim_main(argc, argv);
}
