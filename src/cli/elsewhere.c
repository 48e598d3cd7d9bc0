/* SPDX-License-Identifier: Apache-2.0 */
/* elsewhere: see elsewhere.h. */
#include "cli/elsewhere.h"

#include <string.h>

#include "base/cleanup.h"

static const struct {
	const char *word, *command;
} rows[] = {
	{ "cdi", "nvidia-ctk cdi" },
	{ "config", "nvidia-ctk config" },
	{ "configure", "nvidia-ctk runtime configure" },
	{ "doctor", "nvidia-ctk doctor" },
	{ "generate", "nvidia-ctk cdi generate" },
	{ "lease", "nvidia-ctk lease" },
	{ "list", "nvidia-ctk cdi list" },
	{ "plan", "nvidia-container-cli plan" },
	{ "refresh", "nvidia-ctk cdi refresh" },
	{ "remove", "nvidia-ctk runtime remove" },
	{ "runtime", "nvidia-ctk runtime" },
	{ "system", "nvidia-ctk system" },
	{ "validate", "nvidia-ctk cdi validate" },
};

const char *cli_meant_elsewhere(const char *word)
{
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		if (strcmp(rows[i].word, word) == 0)
			return rows[i].command;
	}
	return NULL;
}
