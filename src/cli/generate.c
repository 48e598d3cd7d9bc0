/* SPDX-License-Identifier: Apache-2.0 */
/* generate: run while building: writes the man page (in scdoc's format) or a shell's completion from the tables of the program. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "cli/cli.h"
#include "cli/ctk/ctk.h"
#include "cli/hook/arguments.h"
#include "request/config.h"

/* Man pages: the word, the program's table, the section. */
static const struct {
	const char *word;
	const struct graft_command *program;
	int section;
} pages[] = {
	{ "man", &cli_root, 1 },
	{ "man-hook", &hook_program, 8 },
	{ "man-ctk", &ctk_program, 1 },
	{ "man-cdi-hook", &cdi_hook_program, 8 },
};

static int generate(const char *word, struct graft_buffer *out)
{
	struct graft_error err = { .status = GRAFT_OK };

	for (size_t i = 0; i < GRAFT_COUNT(pages); i++) {
		if (strcmp(word, pages[i].word) == 0) {
			graft_options_man(pages[i].program, pages[i].section, out);
			return 0;
		}
	}
	if (strcmp(word, "man-config") == 0) {
		graft_config_manual(out);
		return 0;
	}
	return graft_options_completion(&cli_root, word, out, &err);
}

int main(int argc, char **argv)
{
	struct graft_buffer out = { .max = 0 };
	struct cli cli;

	cli_init(&cli);
	if (argc != 2 || generate(argv[1], &out) < 0) {
		(void)fprintf(stderr, "usage: generate man|man-hook|man-ctk|man-cdi-hook|man-config|bash|zsh|fish\n");
		return 1;
	}
	return cli_print(&cli, &out);
}
