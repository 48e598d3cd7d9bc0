/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors: what a program makes sure of before it opens its first file. */
#ifndef GRAFT_CLI_DESCRIPTORS_H
#define GRAFT_CLI_DESCRIPTORS_H

/*
 * Opens /dev/null in the place of each standard descriptor that is closed. SECURITY: the next file that we open (a log, a file of the container) must not
 * take such a place and receive our messages.
 */
void cli_open_standard_descriptors(void);

#endif
