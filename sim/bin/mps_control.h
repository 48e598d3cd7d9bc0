/* SPDX-License-Identifier: Apache-2.0 */
/* mps_control: the one program of daemon.c that does real work. */
#ifndef GRAFT_SIM_MPS_CONTROL_H
#define GRAFT_SIM_MPS_CONTROL_H

/* The main() of nvidia-cuda-mps-control. Returns the exit status. */
int sim_mps_control(int argc, char **argv);

#endif
