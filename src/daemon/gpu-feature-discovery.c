/* SPDX-License-Identifier: Apache-2.0 */
/* gpu-feature-discovery: the entry point: command line, signals, exit status. */
#include <time.h>

#include "daemon/discovery.h"
#include "daemon/program.h"

#define PROGRAM "gpu-feature-discovery"

struct feature_daemon {
	struct program_daemon program;
	struct discovery discovery;
};

static int begin_discovery(void *arg, struct graft_error *err)
{
	struct feature_daemon *daemon = arg;

	return discovery_begin(&daemon->discovery, err);
}

static void reload_discovery(void *arg)
{
	struct feature_daemon *daemon = arg;

	discovery_reload(&daemon->discovery);
}

static const char *discovery_state(const void *arg)
{
	const struct feature_daemon *daemon = arg;

	return daemon->program.begun ? "the labels stay as they are" : "no labels";
}

static int run_discovery(const struct graft_kube_sources *sources, const struct graft_kube_config *config,
			 struct graft_arena *arena)
{
	struct feature_daemon daemon = {
		.program = { .sources = &daemon.discovery.sources,
			     .begin = begin_discovery,
			     .reload = reload_discovery,
			     .state = discovery_state,
			     .arg = &daemon,
			     .oneshot = config->flags.gfd.oneshot },
		.discovery = { .log = sources->log,
			       .sources = *sources,
			       .timestamp = time(NULL),
			       .events = { -1 },
			       .waits = !config->flags.fail_on_init_error },
	};
	const struct graft_error *err = &daemon.program.err;
	int rc;

	(void)arena;
	daemon.discovery.loop = &daemon.program.loop;
	rc = program_run(&daemon.program, config);
	if (rc == 0 && daemon.discovery.err.status != GRAFT_OK)
		err = &daemon.discovery.err;
	discovery_done(&daemon.discovery);
	program_done(&daemon.program);
	return rc < 0 || err->status != GRAFT_OK ? program_complain(PROGRAM, err) : 0;
}

int main(int argc, char **argv)
{
	return program_main(&graft_kube_gfd_command, argc, argv, program_variable, run_discovery);
}
