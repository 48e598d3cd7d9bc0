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

static const struct graft_command *const programs[] = {
	&cli_root,
	&hook_program,
	&ctk_program,
	&cdi_hook_program,
	&installer_command,
	&graft_kube_plugin_command,
	&graft_kube_manager_command,
	&graft_kube_gfd_command,
	&graft_kube_mps_command,
	&graft_nri_command,
};

/* `section`: of the man page; NULL: a completion. */
static int generate_text(const char *shell, const char *name, const char *section, struct graft_buffer *out)
{
	struct graft_error err = { .status = GRAFT_OK };

	for (size_t i = 0; i < GRAFT_COUNT(programs); i++) {
		if (strcmp(name, programs[i]->name) != 0)
			continue;
		if (!section)
			return graft_options_completion(programs[i], shell, out, &err);
		graft_options_man(programs[i], section[0] - '0', out);
		return 0;
	}
	if (!section || strcmp(name, "nvidia-container-runtime-config") != 0)
		return -1;
	graft_config_manual(out);
	return 0;
}

int main(int argc, char **argv)
{
	struct graft_buffer out = { .max = 0 };
	bool is_man = argc > 1 && strcmp(argv[1], "man") == 0;
	struct cli cli;

	cli_init(&cli);
	if (argc != (is_man ? 4 : 3) || generate_text(argv[1], argv[2], is_man ? argv[3] : NULL, &out) < 0) {
		(void)fprintf(stderr, "usage: generate man PROGRAM SECTION, or: generate bash|zsh|fish PROGRAM\n");
		return 1;
	}
	return cli_print(&cli, &out);
}
