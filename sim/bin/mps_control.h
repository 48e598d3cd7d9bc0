/* SPDX-License-Identifier: Apache-2.0 */
/* mps_control: one of the programs of daemon.c that does something. */
#ifndef GRAFT_SIM_MPS_CONTROL_H
#define GRAFT_SIM_MPS_CONTROL_H

/* main() of nvidia-cuda-mps-control. Returns the exit status. */
int sim_mps_control(int argc, char **argv);

#endif
