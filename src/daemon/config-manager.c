/* SPDX-License-Identifier: Apache-2.0 */
/* config-manager: the entry point: the choice becomes a link and a signal (SPEC kubernetes 7). */
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/config_link.h"
#include "daemon/config_source.h"
#include "daemon/program.h"

#define PROGRAM       "config-manager"
#define DEFAULT_LABEL "nvidia.com/device-plugin.config"

struct manager {
	struct graft_loop loop;
	const struct graft_log *log;
	const struct graft_kube_manager_flags *flags;
	struct config_source source;
	struct program_signals signals;
	bool linked;            /* the link is one of ours */
	struct graft_error err; /* with oneshot: why no file was chosen */
};

/* Logs an error with its hint; the program continues. */
static void manager_warn(const struct manager *manager, const struct graft_error *err, const char *after)
{
	graft_warn(manager->log, "%s; %s. %s", GRAFT_ERROR_TEXT(err), after, graft_error_hint(err));
}

static void choice_impossible(void *arg, const struct graft_error *err)
{
	struct manager *manager = arg;

	if (manager->flags->oneshot) {
		manager->err = *err;
		graft_loop_stop(&manager->loop);
	} else {
		manager_warn(manager, err, "nothing was changed");
	}
}

/* With `changed`, only to processes that started before that time. */
static void send_signal(const struct manager *manager, const struct timespec *changed)
{
	const struct graft_kube_manager_flags *flags = manager->flags;
	struct graft_error err = { .status = GRAFT_OK };
	size_t n;

	if (config_link_signal("/proc", flags->process, flags->signal, changed, &n, &err) < 0)
		manager_warn(manager, &err, "it may still use its old configuration");
	else if (n == 0 && changed)
		graft_debug(manager->log, "no process %s needs the signal", flags->process);
	else if (n == 0)
		graft_warn(manager->log,
			   "found no process %s to send signal %d to: it must be running, and the pod must have "
			   "shareProcessNamespace: true",
			   flags->process, flags->signal);
	else
		graft_info(manager->log, "sent signal %d to %s", flags->signal, flags->process);
}

/*
 * If the link is right at the first call, the init container made it and the program has read it,
 * unless the file is newer: then it has changed while this program was not running. At later calls,
 * the same link means that the file has changed.
 */
static int config_chosen(void *arg, const char *path)
{
	struct manager *manager = arg;
	struct graft_error err = { .status = GRAFT_OK };
	int rc = config_link_set(manager->flags->destination, path, &err);
	bool changed = rc > 0 || manager->linked;
	struct stat st;

	if (rc < 0) {
		choice_impossible(manager, &err);
		return -1;
	}
	manager->linked = true;
	graft_info(manager->log, "%s: %s", manager->flags->destination,
		   path[0] != '\0' ? path : "no file (fallback strategy 'empty')");
	if (manager->flags->oneshot)
		graft_loop_stop(&manager->loop);
	else if (changed && manager->flags->send_signal)
		send_signal(manager, NULL);
	else if (manager->flags->send_signal && path[0] != '\0' && stat(path, &st) == 0)
		send_signal(manager, &st.st_ctim);
	return 0;
}

static void manager_hang_up(void *arg)
{
	struct manager *manager = arg;

	config_source_look(&manager->source);
}

static int run_manager_loop(struct manager *manager, const struct graft_kube_sources *sources,
			    const struct graft_kube_config *config, struct graft_error *err)
{
	const struct graft_cluster_sources cluster = { .loop = &manager->loop,
						       .log = sources->log,
						       .kubeconfig = config->api.kubeconfig,
						       .variable = sources->variable };

	if (manager->flags->destination[0] == '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "--config-file-dst or CONFIG_FILE_DST must be set");
	if (program_watch_signals(&manager->signals, &manager->loop, sources->log, manager_hang_up, manager, err) < 0 ||
	    config_source_begin(&manager->source, &cluster, err) < 0 || graft_loop_run(&manager->loop, err) < 0)
		return -1;
	if (manager->err.status != GRAFT_OK)
		*err = manager->err;
	else if (manager->flags->oneshot && !manager->linked)
		(void)graft_fail(err, GRAFT_TIMEOUT, 0, "stopped by a signal before the node's label was known");
	return err->status == GRAFT_OK ? 0 : -1;
}

static int run_manager(const struct graft_kube_sources *sources, const struct graft_kube_config *config,
		       struct graft_arena *arena)
{
	struct manager manager = { .log = sources->log, .flags = &config->manager, .signals = PROGRAM_SIGNALS_INIT };
	struct graft_error err = { .status = GRAFT_OK };
	int rc;

	(void)arena;
	manager.source = (struct config_source){ .choice = config->choice,
						 .node = config->api.node_name,
						 .chosen = config_chosen,
						 .failed = choice_impossible,
						 .arg = &manager };
	if (manager.source.choice.label[0] == '\0')
		manager.source.choice.label = DEFAULT_LABEL;
	rc = run_manager_loop(&manager, sources, config, &err);
	config_source_end(&manager.source);
	program_signals_done(&manager.signals);
	graft_loop_done(&manager.loop);
	return rc < 0 ? program_complain(PROGRAM, &err) : 0;
}

int main(int argc, char **argv)
{
	return program_main(&graft_kube_manager_command, argc, argv, program_variable, run_manager);
}
