/* SPDX-License-Identifier: Apache-2.0 */
/* mps-control-daemon: the entry point: command line, signals, exit status (SPEC kubernetes 9). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/config_source.h"
#include "daemon/mps_daemons.h"
#include "daemon/notify.h"
#include "daemon/program.h"

#define PROGRAM   "mps-control-daemon"
#define MOUNT_SHM "mount-shm"

struct mps_program {
	struct graft_loop loop;
	struct program_signals signals;
	struct mps_daemons daemons;
	struct config_source source; /* with --node-label */
	bool begun;                  /* the configuration is known */
	struct graft_error err;      /* why it cannot be applied, if the label chose it */
	const char *notify_socket;
};

static const char *mps_variable(const char *name)
{
	return secure_getenv(name);
}

static void mps_hang_up(void *arg)
{
	struct mps_program *program = arg;

	if (!program->begun)
		return;
	notify_reloading(program->notify_socket);
	mps_daemons_reload(&program->daemons);
	notify_send(program->notify_socket, "READY=1");
}

static int begin_daemons(struct mps_program *program, struct graft_error *err)
{
	program->begun = true;
	return mps_daemons_begin(&program->daemons, err);
}

/* --- the configuration that the node's label chooses --- */

static int mps_config_chosen(void *arg, const char *path)
{
	struct mps_program *program = arg;

	graft_info(program->daemons.log, "configuration chosen by the node's label: %s",
		   path[0] != '\0' ? path : "no file");
	program->daemons.sources.config_file = path;
	if (program->begun)
		mps_hang_up(program);
	else if (begin_daemons(program, &program->err) < 0)
		graft_loop_stop(&program->loop);
	return 0;
}

static void mps_config_failed(void *arg, const struct graft_error *err)
{
	const struct mps_program *program = arg;
	char text[sizeof(err->msg) + sizeof(err->ctx)];

	graft_warn(program->daemons.log, "%s; %s. %s", graft_error_text(err, text, sizeof(text)),
		   program->begun ? "nothing is changed" : "no daemon is started", graft_error_hint(err));
}

static int begin_by_label(struct mps_program *program, const struct graft_kube_config *config, struct graft_error *err)
{
	const struct graft_cluster_sources cluster = { .loop = &program->loop,
						       .log = program->daemons.log,
						       .kubeconfig = config->api.kubeconfig,
						       .variable = program->daemons.sources.variable };

	program->source = (struct config_source){ .choice = config->choice,
						  .node = config->api.node_name,
						  .chosen = mps_config_chosen,
						  .failed = mps_config_failed,
						  .arg = program };
	return config_source_begin(&program->source, &cluster, err);
}

static int run_mps_loop(struct mps_program *program, const struct graft_kube_config *config, struct graft_error *err)
{
	int rc;

	if (program_watch_signals(&program->signals, &program->loop, program->daemons.log, mps_hang_up, program, err) <
	    0)
		return -1;
	rc = config->choice.label[0] == '\0' ? begin_daemons(program, err) : begin_by_label(program, config, err);
	if (rc < 0)
		return -1;
	notify_send(program->notify_socket, "READY=1");
	if (graft_loop_run(&program->loop, err) < 0)
		return -1;
	*err = program->err;
	return err->status == GRAFT_OK ? 0 : -1;
}

static int run_mps(const struct graft_kube_sources *sources, const struct graft_kube_config *config,
		   struct graft_arena *arena)
{
	struct mps_program program = {
		.signals = PROGRAM_SIGNALS_INIT,
		.daemons = { .log = sources->log,
			     .sources = *sources,
			     .output_fd = STDOUT_FILENO,
			     .waits = !config->flags.fail_on_init_error },
		.notify_socket = sources->variable("NOTIFY_SOCKET"),
	};
	struct graft_error err = { .status = GRAFT_OK };
	int rc;

	(void)arena;
	program.daemons.loop = &program.loop;
	rc = run_mps_loop(&program, config, &err);
	notify_send(program.notify_socket, "STOPPING=1");
	config_source_end(&program.source);
	mps_daemons_done(&program.daemons);
	program_signals_done(&program.signals);
	graft_loop_done(&program.loop);
	return rc < 0 ? program_complain(PROGRAM, &err) : 0;
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
						    .variable = mps_variable,
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
	return program_main(&graft_kube_mps_command, argc, argv, mps_variable, run_mps);
}
