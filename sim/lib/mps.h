/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mps: the protocol between the simulated CUDA and the simulated MPS control daemon. The pipe
 * directory and its `control` socket are those of the real ones; the protocol is our own: one line,
 * one answer. A client remains one as long as its connection is open.
 */
#ifndef GRAFT_SIM_MPS_H
#define GRAFT_SIM_MPS_H

#include <stdbool.h>

#define SIM_MPS_DIRECTORY_VARIABLE "CUDA_MPS_PIPE_DIRECTORY"
#define SIM_MPS_DIRECTORY          "/tmp/nvidia-mps"
#define SIM_MPS_CLIENT             "client\n"
#define SIM_MPS_WELCOME            "welcome\n"

struct sockaddr_un;

/*
 * Sets the address of the control socket, from the environment variable or the default. Returns
 * false if the path is too long.
 */
bool sim_mps_address(struct sockaddr_un *address);

/*
 * Joins this machine's MPS server for the rest of the process. Returns false if no server answers;
 * the GPU is then shared by time slices.
 */
bool sim_mps_join(void);

#endif
