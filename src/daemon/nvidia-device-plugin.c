/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-device-plugin: the entry point: command line, signals, exit status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/config_source.h"
#include "daemon/http.h"
#include "daemon/metrics.h"
#include "daemon/notify.h"
#include "daemon/plugin.h"
#include "daemon/program.h"
#include "formats/procfs.h"

#define PROGRAM       "nvidia-device-plugin"
#define CLEAR_WAIT_MS 3000

struct daemon {
	struct graft_loop loop;
	struct graft_log_file log;
	struct plugin plugin;
	struct http_server http;
	struct program_signals signals;
	struct config_source source; /* with --node-label */
	struct graft_error err;      /* why nothing can be served */
	const char *notify_socket;
};

static const char *variable(const char *name)
{
	return secure_getenv(name);
}

static void hang_up(void *arg)
{
	struct daemon *daemon = arg;

	/* Until the label is known, there is nothing to reload. */
	if (!daemon->plugin.begun)
		return;
	notify_reloading(daemon->notify_socket);
	plugin_reload(&daemon->plugin);
}

static void plugin_is_ready(void *arg, const struct graft_error *err)
{
	struct daemon *daemon = arg;

	if (!err) {
		notify_send(daemon->notify_socket, "READY=1");
		return;
	}
	daemon->err = *err;
	graft_loop_stop(&daemon->loop);
}

/* --- the configuration that the node's label chooses --- */

/* A failed call is repeated by its user. */
static int plugin_config_chosen(void *arg, const char *path)
{
	struct daemon *daemon = arg;

	graft_info(&daemon->log.log, "configuration chosen by the node's label: %s",
		   path[0] != '\0' ? path : "no file");
	daemon->plugin.sources.config_file = path;
	if (daemon->plugin.begun)
		hang_up(daemon);
	else
		plugin_begin(&daemon->plugin);
	return 0;
}

static void plugin_config_failed(void *arg, const struct graft_error *err)
{
	const struct daemon *daemon = arg;
	char text[sizeof(err->msg) + sizeof(err->ctx)];

	graft_warn(&daemon->log.log, "%s; %s. %s", graft_error_text(err, text, sizeof(text)),
		   daemon->plugin.node ? "nothing is changed" : "nothing is offered", graft_error_hint(err));
}

/* Offers what is configured: at once, or when the label has been read. */
static int begin_plugin(struct daemon *daemon, const struct graft_kube_config *config, struct graft_error *err)
{
	const struct graft_cluster_sources cluster = { .loop = &daemon->loop,
						       .log = &daemon->log.log,
						       .kubeconfig = config->api.kubeconfig,
						       .variable = daemon->plugin.sources.variable };

	if (config->choice.label[0] == '\0') {
		plugin_begin(&daemon->plugin);
		*err = daemon->err;
		return err->status == GRAFT_OK ? 0 : -1;
	}
	daemon->source = (struct config_source){ .choice = config->choice,
						 .node = config->api.node_name,
						 .chosen = plugin_config_chosen,
						 .failed = plugin_config_failed,
						 .arg = daemon };
	return config_source_begin(&daemon->source, &cluster, err);
}

static int run_daemon(struct daemon *daemon, const struct graft_kube_config *config, struct graft_error *err)
{
	const char *listen = config->flags.plugin.listen;

	if (program_watch_signals(&daemon->signals, &daemon->loop, &daemon->log.log, hang_up, daemon, err) < 0)
		return -1;
	if (listen[0] != '\0' &&
	    http_begin(&daemon->http, &daemon->loop, listen, metrics_page, &daemon->plugin, err) < 0)
		return -1;
	if (begin_plugin(daemon, config, err) < 0)
		return -1;
	/* It may take long until the label is known: report that the service has started. */
	if (config->choice.label[0] != '\0')
		notify_send(daemon->notify_socket, "READY=1");
	if (graft_loop_run(&daemon->loop, err) < 0)
		return -1;
	*err = daemon->err;
	return err->status == GRAFT_OK ? 0 : -1;
}

static int run_plugin(const struct graft_kube_sources *sources, const struct graft_kube_config *config)
{
	struct daemon daemon = { .notify_socket = sources->variable("NOTIFY_SOCKET"), .signals = PROGRAM_SIGNALS_INIT };
	struct graft_error err = { .status = GRAFT_OK };
	int rc;

	graft_log_file_init(&daemon.log, STDERR_FILENO, GRAFT_LOG_INFO);
	daemon.plugin.loop = &daemon.loop;
	daemon.plugin.log = &daemon.log.log;
	daemon.plugin.sources = *sources;
	daemon.plugin.state_folder = config->flags.plugin.state_folder;
	daemon.plugin.fail_on_init_error = config->flags.fail_on_init_error;
	daemon.plugin.done = plugin_is_ready;
	daemon.plugin.arg = &daemon;
	rc = run_daemon(&daemon, config, &err);
	notify_send(daemon.notify_socket, "STOPPING=1");
	http_done(&daemon.http);
	config_source_end(&daemon.source);
	plugin_done(&daemon.plugin);
	program_signals_done(&daemon.signals);
	graft_loop_done(&daemon.loop);
	return rc < 0 ? program_complain(PROGRAM, &err) : 0;
}

/* --once: prints what would be served. */
static int report(const struct graft_kube_config *config, const struct graft_log *log, struct graft_arena *arena)
{
	struct graft_kube_node_facts facts = { .inventory = NULL };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer text = { .max = 0 };
	int rc = graft_kube_node_read(config, GRAFT_KUBE_ASK_UNSETTLED, log, arena, &facts, &err);

	if (rc == 0)
		rc = graft_kube_node_report(config, &facts, &text, &err);
	graft_kube_node_done(&facts);
	if (rc == 0)
		return program_print(PROGRAM, &text);
	graft_buffer_done(&text);
	return program_complain(PROGRAM, &err);
}

/* --- --clear-health --- */

static bool is_gpu_name(const struct graft_gpu *gpu, size_t index, const char *name)
{
	struct graft_pci_address asked, own;
	char number[24];

	(void)snprintf(number, sizeof(number), "%zu", index);
	if (strcmp(name, number) == 0 || (gpu->uuid.value && strcmp(name, gpu->uuid.value) == 0))
		return true;
	return gpu->bus_id && graft_pci_parse(name, &asked) && graft_pci_parse(gpu->bus_id, &own) &&
	       graft_pci_compare(&asked, &own) == 0;
}

/* The PCI address of the GPU, by which the plugin knows it. */
static int name_gpu(const struct graft_inventory *inventory, const char *name, const char **ret_name,
		    struct graft_error *err)
{
	*ret_name = name;
	if (strcmp(name, CLEAR_ALL) == 0)
		return 0;
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		*ret_name = inventory->gpus[i].bus_id;
		if (*ret_name && is_gpu_name(&inventory->gpus[i], i, name))
			return 0;
	}
	return graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0,
			  "this host has no GPU '%s'; give a UUID, an index, a PCI address, or all", name);
}

static int clear_gpu(const struct graft_kube_config *config, const struct graft_log *log, struct graft_arena *arena)
{
	struct graft_kube_node_facts facts = { .inventory = NULL };
	struct graft_buffer text = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };
	const char *name = NULL;
	int rc = graft_kube_node_read(config, GRAFT_KUBE_ASK_UNSETTLED, log, arena, &facts, &err);

	if (rc == 0)
		rc = name_gpu(facts.inventory, config->clear_health, &name, &err);
	if (rc == 0)
		rc = clear_request_make(config->flags.plugin.state_folder, name, CLEAR_WAIT_MS, &err);
	if (rc > 0)
		graft_buffer_printf(&text, "%s: the plugin offers it again until it next fails\n", name);
	else if (rc == 0)
		graft_buffer_printf(&text, "%s: no plugin is running; the next one to start will offer it again\n",
				    name);
	graft_kube_node_done(&facts);
	return rc < 0 ? program_complain(PROGRAM, &err) : program_print(PROGRAM, &text);
}

static int run_command(const struct graft_kube_sources *sources, const struct graft_kube_config *config,
		       struct graft_arena *arena)
{
	if (config->clear_health[0] != '\0')
		return clear_gpu(config, sources->log, arena);
	return config->once ? report(config, sources->log, arena) : run_plugin(sources, config);
}

int main(int argc, char **argv)
{
	return program_main(&graft_kube_plugin_command, argc, argv, variable, run_command);
}
