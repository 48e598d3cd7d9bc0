/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elsewhere: commands of nvidia-ctk and nvidia-container-cli that people look for in the other
 * program, or at another level of nvidia-ctk.
 */
#ifndef GRAFT_CLI_ELSEWHERE_H
#define GRAFT_CLI_ELSEWHERE_H

/*
 * Returns the command line of a command that `word` names elsewhere, for "plan"
 * "nvidia-container-cli plan"; NULL if there is none. The caller does not know `word`.
 */
const char *cli_meant_elsewhere(const char *word);

#endif
