/* SPDX-License-Identifier: Apache-2.0 */
/* gpu-feature-discovery: the entry point: command line, signals, exit status. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/config_source.h"
#include "daemon/discovery.h"
#include "daemon/notify.h"
#include "daemon/program.h"

#define PROGRAM "gpu-feature-discovery"

struct feature_daemon {
	struct graft_loop loop;
	struct program_signals signals;
	struct discovery discovery;
	struct config_source source; /* with --node-label */
	bool oneshot;
	bool begun;             /* labels are made: the configuration is known */
	struct graft_error err; /* why they cannot be made, with the first configuration that the label chose */
	const char *notify_socket;
};

static const char *gfd_variable(const char *name)
{
	return secure_getenv(name);
}

static void gfd_hang_up(void *arg)
{
	struct feature_daemon *daemon = arg;

	if (!daemon->begun)
		return;
	notify_reloading(daemon->notify_socket);
	discovery_reload(&daemon->discovery);
	notify_send(daemon->notify_socket, "READY=1");
}

static int begin_discovery(struct feature_daemon *daemon, struct graft_error *err)
{
	daemon->begun = true;
	return discovery_begin(&daemon->discovery, err);
}

/* --- the configuration that the node's label chooses --- */

/* A failed call is repeated by its user. */
static int gfd_config_chosen(void *arg, const char *path)
{
	struct feature_daemon *daemon = arg;

	graft_info(daemon->discovery.log, "configuration chosen by the node's label: %s",
		   path[0] != '\0' ? path : "no file");
	daemon->discovery.sources.config_file = path;
	if (daemon->begun)
		gfd_hang_up(daemon);
	else if (begin_discovery(daemon, &daemon->err) != 0)
		graft_loop_stop(&daemon->loop);
	return 0;
}

static void gfd_config_failed(void *arg, const struct graft_error *err)
{
	struct feature_daemon *daemon = arg;
	char text[sizeof(err->msg) + sizeof(err->ctx)];

	if (!daemon->begun && daemon->oneshot) {
		daemon->err = *err;
		graft_loop_stop(&daemon->loop);
		return;
	}
	graft_warn(daemon->discovery.log, "%s; %s. %s", graft_error_text(err, text, sizeof(text)),
		   daemon->begun ? "the labels stay as they are" : "no labels", graft_error_hint(err));
}

/*
 * Makes the labels at once, or when the node's own label has been read. Returns as
 * discovery_begin().
 */
static int begin_by_config(struct feature_daemon *daemon, const struct graft_kube_config *config,
			   struct graft_error *err)
{
	const struct graft_cluster_sources cluster = { .loop = &daemon->loop,
						       .log = daemon->discovery.log,
						       .kubeconfig = config->api.kubeconfig,
						       .variable = daemon->discovery.sources.variable,
						       .per_second = config->api.qps,
						       .burst = config->api.burst };

	if (config->choice.label[0] == '\0')
		return begin_discovery(daemon, err);
	daemon->oneshot = config->flags.gfd.oneshot;
	daemon->source = (struct config_source){ .choice = config->choice,
						 .node = config->api.node_name,
						 .chosen = gfd_config_chosen,
						 .failed = gfd_config_failed,
						 .arg = daemon };
	return config_source_begin(&daemon->source, &cluster, err);
}

static int run_loop(struct feature_daemon *daemon, const struct graft_kube_config *config, struct graft_error *err)
{
	int rc;

	if (program_watch_signals(&daemon->signals, &daemon->loop, daemon->discovery.log, gfd_hang_up, daemon, err) < 0)
		return -1;
	rc = begin_by_config(daemon, config, err);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	notify_send(daemon->notify_socket, "READY=1");
	if (graft_loop_run(&daemon->loop, err) < 0)
		return -1;
	*err = daemon->err.status != GRAFT_OK ? daemon->err : daemon->discovery.err;
	return err->status == GRAFT_OK ? 0 : -1;
}

static int run_discovery(const struct graft_kube_sources *sources, const struct graft_kube_config *config,
			 struct graft_arena *arena)
{
	struct feature_daemon daemon = {
		.signals = PROGRAM_SIGNALS_INIT,
		.discovery = { .log = sources->log, .sources = *sources, .timestamp = time(NULL), .events = { -1 } },
		.notify_socket = sources->variable("NOTIFY_SOCKET"),
	};
	struct graft_error err = { .status = GRAFT_OK };
	int rc;

	(void)arena;
	daemon.discovery.loop = &daemon.loop;
	daemon.discovery.waits = !config->flags.fail_on_init_error;
	rc = run_loop(&daemon, config, &err);
	notify_send(daemon.notify_socket, "STOPPING=1");
	config_source_end(&daemon.source);
	discovery_done(&daemon.discovery);
	program_signals_done(&daemon.signals);
	graft_loop_done(&daemon.loop);
	return rc < 0 ? program_complain(PROGRAM, &err) : 0;
}

int main(int argc, char **argv)
{
	return program_main(&graft_kube_gfd_command, argc, argv, gfd_variable, run_discovery);
}
