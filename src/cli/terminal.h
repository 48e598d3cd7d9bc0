/* SPDX-License-Identifier: Apache-2.0 */
/* terminal: what the terminal that shows our output can do. */
#ifndef GRAFT_CLI_TERMINAL_H
#define GRAFT_CLI_TERMINAL_H

#include <stdbool.h>

/*
 * Returns whether text written to `fd` may contain colours: it is a terminal, NO_COLOR is not set
 * (https://no-color.org), and TERM is not "dumb".
 */
bool cli_has_colours(int fd);
/* Returns whether the terminal's encoding is UTF-8, by LC_ALL, LC_CTYPE and LANG. */
bool cli_has_utf8(void);

#endif
