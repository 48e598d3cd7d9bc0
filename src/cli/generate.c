/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate: writes a man page (in scdoc's format) or a shell's completion from the tables of a
 * program. Runs during the build.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "cli/cli.h"
#include "cli/ctk/ctk.h"
#include "cli/hook/hook.h"
#include "cli/installer/installer.h"
#include "kubernetes/kube_config.h"
#include "kubernetes/nri_options.h"
#include "request/config.h"

/* Man pages: the argument that selects one, the program's table, the section. */
static const struct {
	const char *word;
	const struct graft_command *program;
	int section;
} pages[] = {
	{ "man", &cli_root, 1 },
	{ "man-hook", &hook_program, 8 },
	{ "man-ctk", &ctk_program, 1 },
	{ "man-cdi-hook", &cdi_hook_program, 8 },
	{ "man-installer", &installer_command, 8 },
	{ "man-device-plugin", &graft_kube_plugin_command, 8 },
	{ "man-config-manager", &graft_kube_manager_command, 8 },
	{ "man-feature-discovery", &graft_kube_gfd_command, 8 },
	{ "man-mps", &graft_kube_mps_command, 8 },
	{ "man-nri-plugin", &graft_nri_command, 8 },
};

/* A completion for the program of a manual page. */
static int generate_completion(const char *shell, const char *name, struct graft_buffer *out)
{
	struct graft_error err = { .status = GRAFT_OK };

	for (size_t i = 0; i < GRAFT_COUNT(pages); i++) {
		if (strcmp(name, pages[i].program->name) == 0)
			return graft_options_completion(pages[i].program, shell, out, &err);
	}
	return -1;
}

static int generate_page(const char *word, struct graft_buffer *out)
{
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
	return -1;
}

int main(int argc, char **argv)
{
	struct graft_buffer out = { .max = 0 };
	struct cli cli;

	cli_init(&cli);
	if (argc < 2 || argc > 3 ||
	    (argc == 3 ? generate_completion(argv[1], argv[2], &out) : generate_page(argv[1], &out)) < 0) {
		(void)fprintf(
		    stderr, "usage: generate "
			    "man|man-hook|man-ctk|man-cdi-hook|man-installer|man-device-plugin|man-config-manager|man-"
			    "feature-discovery|man-mps|man-nri-plugin|"
			    "man-config, or: generate bash|zsh|fish PROGRAM\n");
		return 1;
	}
	return cli_print(&cli, &out);
}
