/* SPDX-License-Identifier: Apache-2.0 */
/* mps-control-daemon: the entry point: command line, signals, exit status (SPEC kubernetes 9). */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/mps_daemons.h"
#include "daemon/program.h"

#define PROGRAM   "mps-control-daemon"
#define MOUNT_SHM "mount-shm"

struct mps_program {
	struct program_daemon program;
	struct mps_daemons daemons;
};

static int begin_daemons(void *arg, struct graft_error *err)
{
	struct mps_program *program = arg;

	return mps_daemons_begin(&program->daemons, err);
}

static void reload_daemons(void *arg)
{
	struct mps_program *program = arg;

	mps_daemons_reload(&program->daemons);
}

static const char *daemons_state(const void *arg)
{
	const struct mps_program *program = arg;

	return program->program.begun ? "nothing was changed" : "no daemon is started";
}

static int run_mps(const struct graft_kube_sources *sources, const struct graft_kube_config *config,
		   struct graft_arena *arena)
{
	struct mps_program program = {
		.program = { .sources = &program.daemons.sources,
			     .begin = begin_daemons,
			     .reload = reload_daemons,
			     .state = daemons_state,
			     .arg = &program },
		.daemons = { .log = sources->log,
			     .sources = *sources,
			     .output_fd = STDOUT_FILENO,
			     .waits = !config->flags.fail_on_init_error },
	};
	int rc;

	(void)arena;
	program.daemons.loop = &program.program.loop;
	rc = program_run(&program.program, config);
	mps_daemons_done(&program.daemons);
	program_done(&program.program);
	return rc < 0 ? program_complain(PROGRAM, &program.program.err) : 0;
}

/* --- mount-shm --- */

/* The config file is not needed, and in an init container it may be missing. */
static int mount_shared_memory(int argc, char **argv)
{
	struct graft_arena *arena = graft_arena_new((size_t)256 << 20);
	struct graft_log_file log;
	const struct graft_kube_sources sources = { .command = &graft_kube_mps_command,
						    .argc = argc,
						    .argv = argv,
						    .variable = program_variable,
						    .log = &log.log,
						    .config_file = "" };
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kube_config config;
	struct mps_host host = { .log = &log.log };
	int rc = arena ? 0 : graft_fail_memory(&err);

	graft_log_file_init(&log, STDERR_FILENO, GRAFT_LOG_INFO);
	if (rc == 0)
		rc = graft_kube_configure(&sources, arena, &config, &result, &err);
	if (rc == 0 && result == GRAFT_PARSE_OK) {
		host.root = mps_root(&config);
		rc = mps_host_mount(&host, &err);
	}
	(void)graft_arena_free(arena);
	return rc < 0 ? program_complain(PROGRAM, &err) : 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[argc - 1], MOUNT_SHM) == 0)
		return mount_shared_memory(argc - 1, argv);
	return program_main(&graft_kube_mps_command, argc, argv, program_variable, run_mps);
}
