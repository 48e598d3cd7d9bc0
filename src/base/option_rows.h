/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option_rows: the common parts of rows in tables of options. Only for sources that have such a
 * table, which define AT(member) for the struct that the options set.
 */
#ifndef GRAFT_BASE_OPTION_ROWS_H
#define GRAFT_BASE_OPTION_ROWS_H

#include "base/options.h"

/* clang-format off */
#define FLAG       .parse = graft_option_set_true
#define TEXT       .argument = GRAFT_OPTION_REQUIRED, .parse = graft_option_set_string
#define ENV(...)   .environment = (const char *const[]){ __VA_ARGS__, NULL }
#define ALIAS(...) .aliases = (const char *const[]){ __VA_ARGS__, NULL }
#define WORDS(...) .values = (const char *const[]){ __VA_ARGS__, NULL }
/* clang-format on */

#endif
