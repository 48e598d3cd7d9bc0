/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: the state and the counters of the plugin as text. Changes nothing. */
#include "daemon/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/plugin.h"

#define METRIC "graft_device_plugin_"

static const char *method_name(size_t method)
{
	return strrchr(plugin_methods[method].path, '/') + 1;
}

static void metric_head(struct graft_buffer *out, const char *name, const char *type, const char *help)
{
	graft_buffer_printf(out, "# HELP " METRIC "%s %s\n# TYPE " METRIC "%s %s\n", name, help, name, type);
}

static void write_devices(const struct plugin *plugin, struct graft_buffer *out)
{
	metric_head(out, "devices", "gauge", "Devices offered to the kubelet.");
	for (size_t i = 0; i < plugin->node->n_resources; i++) {
		const struct graft_kube_resource *offer = plugin->node->resources[i].offer;
		size_t n_faulty = 0;

		for (size_t k = 0; k < offer->n_devices; k++)
			n_faulty += !plugin_is_healthy(&plugin->node->resources[i], &offer->devices[k]);
		graft_buffer_printf(out, METRIC "devices{resource=\"%s\",health=\"Healthy\"} %zu\n", offer->name,
				    offer->n_devices - n_faulty);
		graft_buffer_printf(out, METRIC "devices{resource=\"%s\",health=\"Unhealthy\"} %zu\n", offer->name,
				    n_faulty);
	}
}

static void write_registrations(const struct plugin *plugin, struct graft_buffer *out)
{
	metric_head(out, "watched", "gauge", "Whether the kubelet watches the resource.");
	for (size_t i = 0; i < plugin->node->n_resources; i++)
		graft_buffer_printf(out, METRIC "watched{resource=\"%s\"} %d\n", plugin->node->resources[i].offer->name,
				    plugin_resource_is_watched(&plugin->node->resources[i]));
	metric_head(out, "registrations_total", "counter", "How often the kubelet has registered the resource.");
	for (size_t i = 0; i < plugin->node->n_resources; i++)
		graft_buffer_printf(out, METRIC "registrations_total{resource=\"%s\"} %" PRIu64 "\n",
				    plugin->node->resources[i].offer->name, plugin->node->resources[i].n_registrations);
}

static void write_calls(const struct plugin *plugin, struct graft_buffer *out)
{
	metric_head(out, "calls_total", "counter", "Calls by the kubelet.");
	for (size_t i = 0; i < plugin->node->n_resources * PLUGIN_METHODS; i++) {
		const struct plugin_resource *resource = &plugin->node->resources[i / PLUGIN_METHODS];
		const struct plugin_calls *calls = &resource->calls[i % PLUGIN_METHODS];
		const char *method = method_name(i % PLUGIN_METHODS);

		graft_buffer_printf(
		    out, METRIC "calls_total{resource=\"%s\",method=\"%s\",result=\"answered\"} %" PRIu64 "\n",
		    resource->offer->name, method, calls->answered);
		graft_buffer_printf(
		    out, METRIC "calls_total{resource=\"%s\",method=\"%s\",result=\"refused\"} %" PRIu64 "\n",
		    resource->offer->name, method, calls->refused);
	}
	metric_head(out, "call_seconds_total", "counter", "Time from the beginning of a call to its answer.");
	for (size_t i = 0; i < plugin->node->n_resources * PLUGIN_METHODS; i++) {
		const struct plugin_resource *resource = &plugin->node->resources[i / PLUGIN_METHODS];
		int64_t us = resource->calls[i % PLUGIN_METHODS].took_us;

		graft_buffer_printf(
		    out, METRIC "call_seconds_total{resource=\"%s\",method=\"%s\"} %" PRId64 ".%06" PRId64 "\n",
		    resource->offer->name, method_name(i % PLUGIN_METHODS), us / 1000000, us % 1000000);
	}
}

static void write_health(const struct plugin *plugin, struct graft_buffer *out)
{
	const struct health *health = &plugin->health;

	metric_head(out, "xids_total", "counter", "Xid messages in the kernel log since boot, whatever their cause.");
	graft_buffer_printf(out, METRIC "xids_total %" PRIu64 "\n", health->n_xids);
	metric_head(out, "nvml_xids_total", "counter", "Xids that NVML has reported, with --health=nvml.");
	graft_buffer_printf(out, METRIC "nvml_xids_total %" PRIu64 "\n", health->n_nvml_xids);
	metric_head(out, "nvml_watched", "gauge", "Whether NVML is asked about the health of GPUs.");
	graft_buffer_printf(out, METRIC "nvml_watched %d\n", health_nvml_runs(&plugin->nvml));
	metric_head(out, "gpu_unhealthy", "gauge", "A GPU that is offered as unhealthy, and why.");
	for (size_t i = 0; i < health->n_faults; i++) {
		const struct health_fault *fault = &health->faults[i];

		graft_buffer_printf(out, METRIC "gpu_unhealthy{pci=\"%04x:%02x:%02x.0\",cause=\"%s\",xid=\"%u\"} 1\n",
				    fault->line.domain, fault->line.bus, fault->line.device,
				    health_cause_names[fault->cause], fault->line.number);
	}
	metric_head(out, "leased", "gauge", "GPUs and MIG devices leased outside Kubernetes.");
	graft_buffer_printf(out, METRIC "leased %zu\n", plugin->leases.n_busy);
	metric_head(out, "faults_total", "counter", "Faults of GPUs that made them unhealthy, by cause.");
	for (size_t i = 0; i < HEALTH_CAUSES; i++)
		graft_buffer_printf(out, METRIC "faults_total{cause=\"%s\"} %" PRIu64 "\n", health_cause_names[i],
				    health->n_began[i]);
	metric_head(out, "recoveries_total", "counter", "Faults of GPUs that ended, by what ended them.");
	for (size_t i = 0; i < HEALTH_ENDS; i++)
		graft_buffer_printf(out, METRIC "recoveries_total{cause=\"%s\"} %" PRIu64 "\n", health_end_names[i],
				    health->n_ended[i]);
}

static bool is_served(const struct plugin *plugin)
{
	for (size_t i = 0; i < plugin->node->n_resources; i++) {
		if (!plugin->node->resources[i].server)
			return false;
	}
	return true;
}

static const char *why_nothing(const struct plugin *plugin)
{
	if (!plugin->begun)
		return "waiting for the node's label, which chooses the configuration\n";
	if (plugin->reading.node)
		return "waiting for NVML to list the GPUs\n";
	return "nothing can be offered; the log says why\n";
}

int metrics_page(void *arg, const char *path, struct graft_buffer *body)
{
	const struct plugin *plugin = arg;

	if (!plugin->node) {
		graft_buffer_string(body, why_nothing(plugin));
		return 503;
	}
	if (strcmp(path, "/healthz") == 0) {
		bool served = is_served(plugin);

		graft_buffer_string(body, served ? "ok\n" : "not every resource is served; the log says why\n");
		return served ? 200 : 503;
	}
	if (strcmp(path, "/metrics") != 0) {
		graft_buffer_string(body, "see /metrics and /healthz\n");
		return 404;
	}
	write_devices(plugin, body);
	write_registrations(plugin, body);
	write_calls(plugin, body);
	write_health(plugin, body);
	return 200;
}
