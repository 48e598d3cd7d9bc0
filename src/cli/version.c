/* SPDX-License-Identifier: Apache-2.0 */
/* version: the text of --version, with the labels that tools look for (SPEC libnvidia-container 3.9). */
#include <sys/utsname.h>

#include "cli/cli.h"
#include "cli_version.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static const char *const build[] = { CLI_BUILD_DATE_AND_REVISION };

const char *cli_revision(void)
{
	return build[1];
}

void cli_version(struct graft_buffer *out)
{
	graft_buffer_printf(out, "cli-version: %s\nlib-version: %s\n", GRAFT_VERSION, GRAFT_VERSION);
	cli_version_build(out);
}

void cli_version_build(struct graft_buffer *out)
{
	struct utsname system;

	graft_buffer_printf(out, "build date: %s\nbuild revision: %s\n", build[0], build[1]);
	graft_buffer_printf(out, "build compiler: %s\nbuild platform: %s\nbuild flags: %s\n", COMPILER,
			    uname(&system) == 0 ? system.machine : "unknown", CLI_BUILD_FLAGS);
}
