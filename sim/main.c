/* SPDX-License-Identifier: Apache-2.0 */
/* main: apart from the program itself, so that the tool that writes its man page can link it. */
#include "graft_sim.h"

int main(int argc, char **argv)
{
	return sim_main(argc, argv);
}
