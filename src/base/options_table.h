/* SPDX-License-Identifier: Apache-2.0 */
/* options_table: what parsing and texts share: a command's options, those that every command has, and the order of both. */
#ifndef GRAFT_BASE_OPTIONS_TABLE_H
#define GRAFT_BASE_OPTIONS_TABLE_H

#include "base/cleanup.h"
#include "base/options.h"

/* The options that every command of that style has, and what they ask for. */
const struct graft_option *graft_options_builtin(const struct graft_command *command, size_t *ret_n);
/* All options of a command, its own first. */
size_t graft_options_count(const struct graft_command *command);
const struct graft_option *graft_options_at(const struct graft_command *command, size_t i);
bool graft_option_is_builtin(const struct graft_option *option);
/* What a built-in option asks for. */
enum graft_parse_result graft_option_request(const struct graft_option *option);
/* Whether the option has that name of `length` bytes: its long name, its letter or one of the aliases. */
bool graft_option_is_called(const struct graft_option *option, const char *name, size_t length);
/*
 * The visible option that is shown after `previous` (NULL = the first), in argp's order, the built-in ones last; NULL at the end.
 * Tables are short: looking for the successor each time needs neither memory nor a sorted copy.
 */
const struct graft_option *graft_options_next(const struct graft_command *command, const struct graft_option *previous);
#define GRAFT_FOR_EACH_OPTION(option, command)                                              \
	for (const struct graft_option *option = graft_options_next(command, NULL); option; \
	     option = graft_options_next(command, option))

#endif
