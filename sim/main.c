/* SPDX-License-Identifier: Apache-2.0 */
#include "graft_sim.h"

int main(int argc, char **argv)
{
	return sim_main(argc, argv);
}
