/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolate: discards what a hook must not inherit. The engine that starts it may have taken
 * environment, working directory and descriptors from an image (docs/decisions/0011-static-hook.md
 * names the attacks).
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "cli/descriptors.h"

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
	cli_close_other_descriptors();
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
