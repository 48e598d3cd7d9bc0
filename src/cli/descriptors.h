/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors: what a program does before it opens its first file. */
#ifndef GRAFT_CLI_DESCRIPTORS_H
#define GRAFT_CLI_DESCRIPTORS_H

/*
 * Opens /dev/null for each standard descriptor that is closed. SECURITY: otherwise the next file
 * that we open (a log, a file of the container) would get such a number and receive our messages.
 */
void cli_open_standard_descriptors(void);
/* Closes all others. SECURITY: a hook inherits what an engine or a runtime had open. */
void cli_close_other_descriptors(void);

#endif
