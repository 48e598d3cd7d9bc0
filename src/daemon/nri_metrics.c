/* SPDX-License-Identifier: Apache-2.0 */
/* nri_metrics: the state and the counters of the NRI plugin as text. Changes nothing. */
#include <inttypes.h>

#include "daemon/nri_parts.h"

#define METRIC "graft_nri_"

static void nri_metric(struct graft_buffer *out, const char *name, const char *type, const char *help)
{
	graft_buffer_printf(out, "# HELP " METRIC "%s %s\n# TYPE " METRIC "%s %s\n", name, help, name, type);
}

static void write_number(struct graft_buffer *out, const char *name, const char *type, const char *help,
			 uint64_t number)
{
	nri_metric(out, name, type, help);
	graft_buffer_printf(out, METRIC "%s %" PRIu64 "\n", name, number);
}

static void write_requests(const struct nri_counts *counts, struct graft_buffer *out)
{
	uint64_t n = 0;

	nri_metric(out, "containers_total", "counter", "Containers created by the engine, by result.");
	for (size_t i = 0; i < NRI_RESULTS; i++)
		graft_buffer_printf(out, METRIC "containers_total{result=\"%s\"} %" PRIu64 "\n", nri_result_names[i],
				    counts->results[i]);
	nri_metric(out, "answer_seconds", "histogram", "Time from the engine's question to the answer.");
	for (size_t i = 0; i < NRI_BOUNDS; i++) {
		n += counts->took[i];
		graft_buffer_printf(out, METRIC "answer_seconds_bucket{le=\"%g\"} %" PRIu64 "\n",
				    (double)nri_bounds_us[i] / 1e6, n);
	}
	n += counts->took[NRI_BOUNDS];
	graft_buffer_printf(out, METRIC "answer_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", n);
	graft_buffer_printf(out, METRIC "answer_seconds_sum %" PRId64 ".%06" PRId64 "\n", counts->took_us / 1000000,
			    counts->took_us % 1000000);
	graft_buffer_printf(out, METRIC "answer_seconds_count %" PRIu64 "\n", n);
}

void nri_plugin_metrics(const struct nri_plugin *plugin, struct graft_buffer *out)
{
	const struct nri_counts *counts = &plugin->counts;

	write_number(out, "registered", "gauge", "Whether the plugin is registered with an engine.",
		     plugin->registered);
	write_number(out, "registrations_total", "counter", "How often the plugin was registered.",
		     counts->n_registrations);
	write_number(out, "connections_lost_total", "counter",
		     "How often the connection to the engine was lost; until the next registration, "
		     "containers start without their devices.",
		     counts->n_losses);
	write_number(out, "missed_containers_total", "counter",
		     "Containers that were created without their devices while the plugin did not answer.",
		     counts->n_missed);
	write_requests(counts, out);
	write_number(out, "host_reads_total", "counter", "How often the driver and the GPUs were read.",
		     plugin->host.n_reads);
	write_number(out, "gpus", "gauge", "Number of known GPUs.",
		     plugin->host.inventory ? plugin->host.inventory->n_gpus : 0);
	write_number(out, "kubelet_calls_total", "counter", "Calls to the kubelet's PodResources.",
		     plugin->kubelet.n_calls);
	write_number(out, "kubelet_failures_total", "counter", "Calls to the kubelet's PodResources that failed.",
		     plugin->kubelet.n_failures);
}
