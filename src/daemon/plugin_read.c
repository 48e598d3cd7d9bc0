/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_read: reads configuration and host. If NVML has to be asked, another process does that,
 * and the kubelet's calls are answered meanwhile. plugin.c decides what to serve.
 */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "daemon/plugin.h"
#include "kubernetes/kube_cdi.h"

#define MAX_NODE_MEMORY ((size_t)256 << 20)

struct plugin_node *plugin_node_free(struct plugin_node *node)
{
	struct graft_arena *arena;

	if (!node)
		return NULL;
	arena = node->arena;
	graft_kube_node_done(&node->facts);
	(void)graft_arena_free(arena);
	return NULL;
}

/*
 * The directory of the sockets: the one that the kubelet searches by itself, if there is one,
 * otherwise that of its own socket.
 */
static void choose_folder(struct plugin_node *node)
{
	const struct graft_kube_plugin_flags *flags = &node->config.flags.plugin;
	bool registers = strchr(flags->kubelet_socket, '/') != NULL;
	struct stat st;

	node->kubelet_folder = registers ? graft_path_directory(flags->kubelet_socket, node->arena)
					 : "/var/lib/kubelet/device-plugins";
	/* If registration is disabled, the registry is not used either. */
	node->registry = registers && flags->registry[0] != '\0' && stat(flags->registry, &st) == 0 &&
			 S_ISDIR(st.st_mode);
	node->folder = node->registry ? flags->registry : node->kubelet_folder;
}

/*
 * SPEC kubernetes 4: each resource has a unique name that includes the vendor, since other vendors
 * use the same directory.
 */
static const char *socket_path(const struct plugin_node *node, const struct graft_kube_resource *offer)
{
	char *name;

	if (!node->registry)
		return graft_arena_printf(node->arena, "%s/%s", node->folder, offer->socket);
	name = graft_arena_printf(node->arena, "%s/%s-reg.sock", node->folder, offer->name);
	for (char *at = name ? name + strlen(node->folder) + 1 : NULL; at && *at != '\0'; at++) {
		if (*at == '/')
			*at = '-';
	}
	return name;
}

static int fill_resources(struct plugin *plugin, struct plugin_node *node, struct graft_error *err)
{
	size_t n = node->facts.offer.n_resources;

	node->resources = graft_arena_list(node->arena, n, sizeof(*node->resources));
	for (size_t i = 0; i < n && node->resources; i++) {
		node->resources[i] = (struct plugin_resource){
			.plugin = plugin,
			.offer = &node->facts.offer.resources[i],
			.socket = socket_path(node, &node->facts.offer.resources[i]),
		};
	}
	node->n_resources = n;
	return graft_arena_failed(node->arena) ? graft_fail_memory(err) : 0;
}

/* Passes on the result of the reading, or its failure. */
static void end_reading(struct plugin *plugin, int rc, struct graft_error *err)
{
	struct plugin_reading *reading = &plugin->reading;
	struct plugin_node *node = reading->node;

	/* This comes before an answer can name one of their devices. */
	if (rc == 0 && node->facts.offer.n_resources > 0)
		rc = graft_kube_cdi_write(&node->config, &node->facts, GRAFT_KUBE_CDI_DIRECTORY, plugin->log, err);
	if (rc == 0) {
		choose_folder(node);
		rc = fill_resources(plugin, node, err);
	}
	reading->node = NULL;
	if (rc < 0)
		node = plugin_node_free(node);
	reading->done(plugin, node, err);
}

static void answer_came(void *arg, short events)
{
	struct plugin *plugin = arg;
	struct plugin_reading *reading = &plugin->reading;
	struct graft_error err = { .status = GRAFT_OK };
	struct plugin_node *node = reading->node;
	int rc;

	(void)events;
	if (!graft_kube_question_read(&reading->question.nvml))
		return;
	graft_loop_forget(plugin->loop, &reading->watch);
	rc = graft_kube_node_end(&node->config, &reading->log, node->arena, &node->facts, &reading->question, &err);
	end_reading(plugin, rc, &err);
}

/* Returns 1 if NVML is asked; what was read so far waits in `reading`. */
static int begin_reading(struct plugin *plugin, enum graft_kube_ask ask, struct graft_error *err)
{
	bool serving = plugin->node && plugin->node->n_resources > 0;
	struct plugin_reading *reading = &plugin->reading;
	struct plugin_node *node = reading->node;
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_kube_sources sources = plugin->sources;
	int rc;

	sources.log = &reading->log;
	if (graft_kube_configure(&sources, node->arena, &node->config, &result, err) < 0)
		return -1;
	plugin->fail_on_init_error = node->config.flags.fail_on_init_error;
	/* Keep serving if the host cannot be read. */
	node->config.flags.fail_on_init_error |= serving;
	rc = graft_kube_node_begin(&node->config, ask, &reading->log, node->arena, &node->facts, &reading->question,
				   err);
	if (rc <= 0)
		return rc;
	reading->watch = (struct graft_loop_watch){
		.fd = reading->question.nvml.fd, .events = POLLIN, .ready = answer_came, .arg = plugin
	};
	if (graft_loop_watch(plugin->loop, &reading->watch, err) == 0)
		return 1;
	graft_kube_question_done(&reading->question.nvml);
	return -1;
}

void plugin_read(struct plugin *plugin, enum graft_kube_ask ask, bool quiet, plugin_read_done *done)
{
	struct graft_arena *arena = graft_arena_new(MAX_NODE_MEMORY);
	struct plugin_node *node = arena ? graft_arena_alloc(arena, sizeof(*node)) : NULL;
	struct graft_error err = { .status = GRAFT_OK };
	int rc;

	if (!node) {
		(void)graft_arena_free(arena);
		(void)graft_fail_memory(&err);
		done(plugin, NULL, &err);
		return;
	}
	node->arena = arena;
	plugin->reading = (struct plugin_reading){ .node = node, .log = *plugin->log, .done = done };
	if (quiet)
		plugin->reading.log.max = GRAFT_LOG_ERROR;
	rc = begin_reading(plugin, ask, &err);
	if (rc <= 0)
		end_reading(plugin, rc, &err);
}

void plugin_read_stop(struct plugin *plugin)
{
	struct plugin_reading *reading = &plugin->reading;

	if (!reading->node)
		return;
	graft_loop_forget(plugin->loop, &reading->watch);
	graft_kube_question_done(&reading->question.nvml);
	reading->node = plugin_node_free(reading->node);
}
