/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elsewhere: commands of nvidia-ctk and nvidia-container-cli that people look for in the other
 * program, or at another level of nvidia-ctk.
 */
#ifndef GRAFT_CLI_ELSEWHERE_H
#define GRAFT_CLI_ELSEWHERE_H

/*
 * Returns the command line of a command that `word` names elsewhere: "nvidia-container-cli plan"
 * for "plan"; NULL if there is none. `word` is unknown to the caller's program.
 */
const char *cli_meant_elsewhere(const char *word);

#endif
