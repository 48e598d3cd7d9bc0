/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version: the text of --version, with the labels that tools look for (SPEC libnvidia-container
 * 3.9).
 */
#include <sys/utsname.h>

#include "start/build_flags.h"
#include "start/build_version.h"
#include "start/version.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static const char *const build[] = { GRAFT_BUILD_DATE_AND_REVISION };

const char *graft_version_revision(void)
{
	return build[1];
}

void graft_version_text(struct graft_buffer *out)
{
	graft_buffer_printf(out, "cli-version: %s\nlib-version: %s\n", GRAFT_COMPATIBLE, GRAFT_COMPATIBLE);
	graft_version_build(out);
	graft_version_own(out);
}

void graft_version_own(struct graft_buffer *out)
{
	graft_buffer_printf(out, "graft-version: %s (compatible with %s)\n", GRAFT_VERSION, GRAFT_COMPATIBLE);
}

void graft_version_build(struct graft_buffer *out)
{
	struct utsname system;

	graft_buffer_printf(out, "build date: %s\nbuild revision: %s\n", build[0], build[1]);
	graft_buffer_printf(out, "build compiler: %s\nbuild platform: %s\nbuild flags: %s\n", COMPILER,
			    uname(&system) == 0 ? system.machine : "unknown", GRAFT_BUILD_FLAGS);
}
