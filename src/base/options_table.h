/* SPDX-License-Identifier: Apache-2.0 */
/* options_table: what parsing (options.c) and texts (options_text.c) share: a command's options and those that every command has. */
#ifndef GRAFT_BASE_OPTIONS_TABLE_H
#define GRAFT_BASE_OPTIONS_TABLE_H

#include "base/cleanup.h"
#include "base/options.h"

#define GRAFT_BUILTIN_OPTIONS 3 /* help, usage, version */
extern const struct graft_option graft_builtin_options[GRAFT_BUILTIN_OPTIONS];

/* All options of a command, its own first. */
size_t graft_options_count(const struct graft_command *command);
const struct graft_option *graft_options_at(const struct graft_command *command, size_t i);

#endif
