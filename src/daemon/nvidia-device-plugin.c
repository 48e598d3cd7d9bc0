/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-device-plugin: the entry point: command line, signals, exit status. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/http.h"
#include "daemon/metrics.h"
#include "daemon/notify.h"
#include "daemon/plugin.h"
#include "daemon/program.h"
#include "formats/procfs.h"

#define PROGRAM       "nvidia-device-plugin"
#define CLEAR_WAIT_MS 3000

struct daemon {
	struct program_daemon program;
	struct plugin plugin;
	struct http_server http;
};

static int begin_plugin(void *arg, struct graft_error *err)
{
	struct daemon *daemon = arg;

	(void)err; /* plugin_is_ready() sets it */
	plugin_begin(&daemon->plugin);
	return daemon->program.err.status == GRAFT_OK ? 0 : -1;
}

static void reload_plugin(void *arg)
{
	struct daemon *daemon = arg;

	plugin_reload(&daemon->plugin);
}

static const char *plugin_state(const void *arg)
{
	const struct daemon *daemon = arg;

	return daemon->plugin.node ? "nothing was changed" : "nothing is offered";
}

static void plugin_is_ready(void *arg, const struct graft_error *err)
{
	struct daemon *daemon = arg;

	if (!err) {
		notify_send(daemon->program.notify_socket, "READY=1");
		return;
	}
	daemon->program.err = *err;
	graft_loop_stop(&daemon->program.loop);
}

static int run_plugin(const struct graft_kube_sources *sources, const struct graft_kube_config *config)
{
	const char *listen = config->flags.plugin.listen;
	struct daemon daemon = {
		.program = { .sources = &daemon.plugin.sources,
			     .begin = begin_plugin,
			     .reload = reload_plugin,
			     .state = plugin_state,
			     .arg = &daemon,
			     .ready_later = true },
		.plugin = { .loop = &daemon.program.loop,
			    .log = sources->log,
			    .sources = *sources,
			    .state_folder = config->flags.plugin.state_folder,
			    .fail_on_init_error = config->flags.fail_on_init_error,
			    .done = plugin_is_ready,
			    .arg = &daemon },
	};
	int rc = 0;

	if (listen[0] != '\0')
		rc = http_begin(&daemon.http, &daemon.program.loop, listen, metrics_page, &daemon.plugin,
				&daemon.program.err);
	if (rc == 0)
		rc = program_run(&daemon.program, config);
	http_done(&daemon.http);
	plugin_done(&daemon.plugin);
	program_done(&daemon.program);
	return rc < 0 ? program_complain(PROGRAM, &daemon.program.err) : 0;
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
	return program_main(&graft_kube_plugin_command, argc, argv, program_variable, run_command);
}
