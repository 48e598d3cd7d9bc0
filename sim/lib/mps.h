/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mps: how the simulated CUDA and the simulated MPS control daemon talk. The pipe directory and its `control` socket are the real ones'; what
 * is said through it is ours: one line, one answer, and a client stays as long as its connection.
 */
#ifndef GRAFT_SIM_MPS_H
#define GRAFT_SIM_MPS_H

#include <stdbool.h>

#define SIM_MPS_DIRECTORY_VARIABLE "CUDA_MPS_PIPE_DIRECTORY"
#define SIM_MPS_DIRECTORY          "/tmp/nvidia-mps"
#define SIM_MPS_CLIENT             "client\n"
#define SIM_MPS_WELCOME            "welcome\n"

struct sockaddr_un;

/* The control socket's address, from the variable or the default. False: the path is too long. */
bool sim_mps_address(struct sockaddr_un *address);

/* Joins the MPS server of this machine, for the rest of the process. False where none answers: the GPU is shared by time slices then. */
bool sim_mps_join(void);

#endif
