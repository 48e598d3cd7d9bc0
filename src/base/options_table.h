/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_table: what the parser and the generated texts share: a command's own options, those that
 * every command has, and their order.
 */
#ifndef GRAFT_BASE_OPTIONS_TABLE_H
#define GRAFT_BASE_OPTIONS_TABLE_H

#include "base/cleanup.h"
#include "base/options.h"

/* All options of a command, its own first. */
size_t graft_options_count(const struct graft_command *command);
const struct graft_option *graft_options_at(const struct graft_command *command, size_t i);
bool graft_option_is_builtin(const struct graft_option *option);
/* Returns the result that a built-in option stands for. */
enum graft_parse_result graft_option_request(const struct graft_option *option);
/*
 * Returns whether `name`, of `length` bytes, is the option's long name, its letter or one of its
 * aliases.
 */
bool graft_option_is_called(const struct graft_option *option, const char *name, size_t length);
/*
 * Returns the visible option shown after `previous` (NULL: the first one), in argp's order,
 * built-in ones last. NULL at the end. Tables are short, so searching for the successor each time
 * needs neither memory nor a sorted copy.
 */
const struct graft_option *graft_options_next(const struct graft_command *command, const struct graft_option *previous);
#define GRAFT_FOR_EACH_OPTION(option, command)                                              \
	for (const struct graft_option *option = graft_options_next(command, NULL); option; \
	     option = graft_options_next(command, option))

#endif
