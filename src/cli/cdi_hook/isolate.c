/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolate: discards what a hook must not inherit. The engine that starts it may have taken
 * environment, working directory and descriptors from an image (docs/decisions/0011-static-hook.md
 * names the attacks).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "cli/descriptors.h"

#define FIRST_FD (STDERR_FILENO + 1)
#define MAX_FD   65536 /* limit on kernels without close_range(2) */

/* If the new name is set, the old one is ignored, whatever the value; an empty value is false. */
static bool is_set(const char *name, const char *old_name)
{
	const char *value = secure_getenv(name);
	const struct graft_option flag = { .name = "flag", .offset = 0 };
	bool set = false;

	if (!value)
		value = secure_getenv(old_name);
	return value && value[0] != '\0' && graft_option_set_true(&set, &flag, value, NULL) == 0 && set;
}

/* BASELINE 5.9: close_range(2). */
static void close_inherited(void)
{
	struct rlimit limit = { .rlim_cur = MAX_FD };

	if (graft_close_range(FIRST_FD, ~0u, 0) == 0)
		return;
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = FIRST_FD; fd < MAX_FD && (rlim_t)fd < limit.rlim_cur; fd++)
		(void)close(fd);
}

/* Neither a closed log pipe nor a file size limit may kill the process between two changes. */
static void ignore_signals(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)sigaction(SIGXFSZ, &ignore, NULL);
}

void cdi_hook_isolate(struct cdi_hook *hook)
{
	hook->debug = is_set("NVIDIA_CTK_DEBUG", "NVIDIA_CDI_DEBUG");
	hook->quiet = is_set("NVIDIA_CTK_QUIET", "NVIDIA_CDI_QUIET");
	if (clearenv() != 0)
		environ = NULL;
	cli_open_standard_descriptors();
	close_inherited();
	ignore_signals();
	/*
	 * Neither can fail here; graft_caps_limit() repeats and checks them before the container is
	 * touched.
	 */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (chdir("/") < 0)
		_exit(1);
}
