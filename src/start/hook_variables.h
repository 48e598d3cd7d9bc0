/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook_variables: the environment variables that nvidia-container-runtime-hook reads, and that
 * nvidia-container-runtime passes to it in mode legacy.
 */
#ifndef GRAFT_START_HOOK_VARIABLES_H
#define GRAFT_START_HOOK_VARIABLES_H

#define GRAFT_HOOK_VARIABLES_MAX 5

/* NULL-terminated. */
static const char *const graft_hook_variables[GRAFT_HOOK_VARIABLES_MAX + 1] = {
	"PATH", "NVIDIA_CTK_CONFIG_FILE_PATH", "XDG_CONFIG_HOME", "NVC_DEBUG_FILE", "CUDA_MPS_PIPE_DIRECTORY",
};

#endif
