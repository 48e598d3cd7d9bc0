/* SPDX-License-Identifier: Apache-2.0 */
/* lease_command: what the commands of `nvidia-ctk lease` share: configuration, table, host. */
#ifndef GRAFT_CLI_CTK_LEASE_COMMAND_H
#define GRAFT_CLI_CTK_LEASE_COMMAND_H

#include "base/option_rows.h"
#include "cli/ctk/ctk.h"
#include "lease/lease_choice.h"
#include "lease/lease_table.h"
#include "request/config.h"

/* Must be the first member of each command's options. */
struct lease_options {
	struct ctk_base base;
	bool json, yes, repair, watch, scope, share, urgent, overdue;
	const char *count, *claim, *wait, *span, *grace, *owner, *user, *output, *lock, *model;
};

/* clang-format off */
#define AT(member) .offset = offsetof(struct lease_options, member)
#define LEASE_JSON { .name = "json", FLAG, AT(json), .help = "Print the result as JSON" }
/* clang-format on */

/* Like CTK_COMMAND, for a command whose options come before its arguments. */
#define LEASE_COMMAND(words) .arguments = words, .max_arguments = -1, .go_style = true

/* Loads config.toml. Returns -1 with the error. */
int lease_load_config(struct ctk *ctk, struct graft_config *ret_config, struct graft_error *err);
/* Returns the user who became root with sudo, according to sudo, or else this process's. */
uint32_t lease_owner(void);

#endif
