/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_cluster: whether pods of this node can have GPUs: the kubelet, the device plugin, what the
 * kubelet has recorded about the plugin, and how the container runtime learns which devices were
 * chosen.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "doctor/judge_state.h"

/* Only root sees the kubelet's directories and the sockets of processes. */
static bool is_blind(const struct graft_judge *judge)
{
	return judge->health->self.uid != 0 || judge->health->processes_hidden;
}

#define REMEDY_ROOT "Run 'sudo nvidia-ctk doctor kubernetes' to see it."

static void judge_kubelet(struct graft_judge *judge)
{
	const struct graft_health_cluster *cluster = &judge->health->cluster;

	if (!cluster->running && judge->health->processes_hidden)
		graft_judge_add(judge, GRAFT_CHECK_KUBELET, GRAFT_LEVEL_UNKNOWN, "kubelet",
				"cannot be seen among the processes")
		    ->remedy = REMEDY_ROOT;
	else if (!cluster->running)
		graft_judge_add(judge, GRAFT_CHECK_KUBELET, GRAFT_LEVEL_BROKEN, "kubelet",
				"is not running on this host, so no pod starts here")
		    ->remedy = "Run 'systemctl restart kubelet'; 'journalctl --unit kubelet' shows why it ended. If "
			       "this host is not a node of the cluster, run the doctor on one.";
	else if (cluster->has_socket)
		graft_judge_add(judge, GRAFT_CHECK_KUBELET, GRAFT_LEVEL_OK, "kubelet",
				"is running, and accepts device plugins in %s/device-plugins%s", cluster->directory,
				cluster->has_registry ? " and plugins_registry" : "");
	else if (is_blind(judge))
		graft_judge_add(judge, GRAFT_CHECK_KUBELET, GRAFT_LEVEL_UNKNOWN, "kubelet",
				"is running; its directory %s cannot be seen", cluster->directory)
		    ->remedy = REMEDY_ROOT;
	else
		graft_judge_add(judge, GRAFT_CHECK_KUBELET, GRAFT_LEVEL_BROKEN, "kubelet",
				"has no socket %s/device-plugins/kubelet.sock, at which device plugins register",
				cluster->directory)
		    ->remedy = "Run 'systemctl restart kubelet', and look for 'device plugin' in 'journalctl --unit "
			       "kubelet'. If the kubelet uses another directory, give it to the plugin "
			       "(--kubelet-socket; kubeletRoot of the Helm chart).";
}

/* --- the device plugin --- */

static const char *plugin_log_command(const struct graft_health_plugin *plugin)
{
	return plugin->container ? "kubectl logs' of its pod" : "journalctl --unit nvidia-device-plugin'";
}

static const char *plugin_subject(struct graft_judge *judge, const struct graft_health_plugin *plugin)
{
	return graft_judge_text(judge, "process %u%s", plugin->pid, plugin->container ? " (of a pod)" : "");
}

static void judge_no_plugin(struct graft_judge *judge)
{
	if (judge->health->processes_hidden) {
		graft_judge_add(judge, GRAFT_CHECK_DEVICE_PLUGIN, GRAFT_LEVEL_UNKNOWN, "nvidia-device-plugin",
				"cannot be seen among the processes")
		    ->remedy = REMEDY_ROOT;
		return;
	}
	graft_judge_add(judge, GRAFT_CHECK_DEVICE_PLUGIN, GRAFT_LEVEL_BROKEN, "nvidia-device-plugin",
			"is not running on this node, so the kubelet has no GPU to offer")
	    ->remedy =
	    "Run 'systemctl enable --now nvidia-device-plugin' (package nvidia-device-plugin), or install its "
	    "DaemonSet. If there is one, its node selector or a taint may keep it away: 'kubectl get "
	    "daemonsets --all-namespaces', 'kubectl describe node'.";
}

/* Returns whether more than one process offers something; each then replaces the other. */
static bool judge_two_plugins(struct graft_judge *judge)
{
	const struct graft_health_cluster *cluster = &judge->health->cluster;
	const struct graft_health_plugin *serving[2] = { NULL, NULL };
	size_t n = 0;

	for (size_t i = 0; i < cluster->n_plugins && n < GRAFT_COUNT(serving); i++) {
		if (cluster->plugins[i].n_served > 0)
			serving[n++] = &cluster->plugins[i];
	}
	if (n < GRAFT_COUNT(serving))
		return false;
	graft_judge_add(judge, GRAFT_CHECK_DEVICE_PLUGIN, GRAFT_LEVEL_BROKEN, "two device plugins",
			"%s and %s both offer GPUs, and replace each other's registration with the kubelet",
			plugin_subject(judge, serving[0]), plugin_subject(judge, serving[1]))
	    ->remedy = "Keep one: 'systemctl disable --now nvidia-device-plugin' stops the node's own; 'kubectl get "
		       "daemonsets --all-namespaces' lists the DaemonSets.";
	return true;
}

static void judge_unwatched(struct graft_judge *judge, const struct graft_health_plugin *plugin)
{
	const struct graft_health_cluster *cluster = &judge->health->cluster;
	const char *subject = plugin_subject(judge, plugin);

	if (cluster->n_sockets == 0 && cluster->running)
		graft_judge_add(judge, GRAFT_CHECK_DEVICE_PLUGIN, GRAFT_LEVEL_BROKEN, subject,
				"serves, but has no socket in the kubelet's directory %s", cluster->directory)
		    ->remedy = "Mount device-plugins and plugins_registry of that directory in its pod, below "
			       "/var/lib/kubelet (kubeletRoot of the Helm chart).";
	else
		graft_judge_add(judge, GRAFT_CHECK_DEVICE_PLUGIN, GRAFT_LEVEL_BROKEN, subject,
				"serves, but no kubelet is connected to it")
		    ->remedy = graft_judge_text(judge,
						"See 'journalctl --unit kubelet' for the reason, and '%s; restarting "
						"the plugin registers it again.",
						plugin_log_command(plugin));
}

static void judge_device_plugin(struct graft_judge *judge, const struct graft_health_plugin *plugin)
{
	const char *subject = plugin_subject(judge, plugin);

	if (!plugin->seen)
		graft_judge_add(judge, GRAFT_CHECK_DEVICE_PLUGIN, GRAFT_LEVEL_UNKNOWN, subject,
				"is running; whether the kubelet is connected to it cannot be seen")
		    ->remedy = REMEDY_ROOT;
	else if (plugin->n_served == 0)
		graft_judge_add(
		    judge, GRAFT_CHECK_DEVICE_PLUGIN, GRAFT_LEVEL_BROKEN, subject,
		    "is running, and offers nothing: it has found no driver, no GPU, or no directory of a kubelet")
		    ->remedy = graft_judge_text(judge, "See '%s.", plugin_log_command(plugin));
	else if (plugin->n_watched == 0)
		judge_unwatched(judge, plugin);
	else
		graft_judge_add(judge, GRAFT_CHECK_DEVICE_PLUGIN, GRAFT_LEVEL_OK, subject,
				"serves, and the kubelet is connected to it");
}

static void judge_device_plugins(struct graft_judge *judge)
{
	const struct graft_health_cluster *cluster = &judge->health->cluster;

	if (cluster->n_plugins == 0)
		judge_no_plugin(judge);
	if (judge_two_plugins(judge))
		return;
	for (size_t i = 0; i < cluster->n_plugins; i++)
		judge_device_plugin(judge, &cluster->plugins[i]);
}

/* --- what the kubelet has recorded --- */

static void judge_resource(struct graft_judge *judge, const struct graft_health_resource *resource, bool others)
{
	if (resource->n_devices == 0) {
		graft_judge_add(
		    judge, GRAFT_CHECK_NODE_CAPACITY, others ? GRAFT_LEVEL_WARNING : GRAFT_LEVEL_BROKEN, resource->name,
		    "the kubelet has no healthy device of this resource: no pod that asks for one can run here")
		    ->remedy =
		    "If the device plugin serves (see device-plugin), all of its devices are unhealthy: look "
		    "for Xids in 'dmesg | grep -i xid'.";
		return;
	}
	graft_judge_add(judge, GRAFT_CHECK_NODE_CAPACITY, GRAFT_LEVEL_OK, resource->name,
			"the kubelet has %u healthy device%s, and has given %u to pods", resource->n_devices,
			resource->n_devices == 1 ? "" : "s", resource->n_in_use)
	    ->remedy =
	    resource->n_in_use < resource->n_devices
		? NULL
		: "All are in use: wait for a pod to end, or share GPUs (sharing.timeSlicing of the device plugin's "
		  "config file). The kubelet frees devices of pods that have ended when it next admits one.";
}

static void judge_capacity(struct graft_judge *judge)
{
	const struct graft_health_cluster *cluster = &judge->health->cluster;
	bool others = false;

	if (cluster->record_problem)
		graft_judge_add(judge, GRAFT_CHECK_NODE_CAPACITY, GRAFT_LEVEL_WARNING, cluster->directory,
				"the kubelet's record of devices is damaged: %s", cluster->record_problem)
		    ->remedy = graft_judge_text(
		    judge,
		    "Run 'systemctl restart kubelet'; if that does not help, drain the node and "
		    "remove %s/device-plugins/kubelet_internal_checkpoint before.",
		    cluster->directory);
	else if (!cluster->has_record)
		graft_judge_add(judge, GRAFT_CHECK_NODE_CAPACITY, GRAFT_LEVEL_UNKNOWN, cluster->directory,
				"has no readable record of devices")
		    ->remedy = is_blind(judge) ? REMEDY_ROOT : NULL;
	else if (cluster->n_resources == 0)
		graft_judge_add(judge, GRAFT_CHECK_NODE_CAPACITY, GRAFT_LEVEL_BROKEN, "nvidia.com/gpu",
				"the kubelet does not know this resource: no device plugin has registered it")
		    ->remedy =
		    "See device-plugin; if that is ok, run 'systemctl restart nvidia-device-plugin', or delete "
		    "the pod of its DaemonSet.";
	for (size_t i = 0; i < cluster->n_resources; i++)
		others |= cluster->resources[i].n_devices > 0;
	for (size_t i = 0; i < cluster->n_resources; i++)
		judge_resource(judge, &cluster->resources[i], others);
}

/* --- how the container runtime learns of the choice --- */

/* Whether a plugin names CDI devices; *ret_unknown: it depends on a config file. */
static bool names_cdi_devices(const struct graft_judge *judge, const char *strategy, bool *ret_unknown)
{
	const struct graft_health_cluster *cluster = &judge->health->cluster;
	bool found = false;

	*ret_unknown = false;
	for (size_t i = 0; i < cluster->n_plugins; i++) {
		found |= cluster->plugins[i].strategy && strstr(cluster->plugins[i].strategy, strategy);
		*ret_unknown |= !cluster->plugins[i].strategy && cluster->plugins[i].config;
	}
	return found;
}

static void judge_engine_handler(struct graft_judge *judge, const struct graft_health_engine *engine)
{
	bool unknown, cdi = names_cdi_devices(judge, "cdi-", &unknown);
	struct graft_finding *finding;

	if (engine->n_runtimes > 0) {
		graft_judge_add(
		    judge, GRAFT_CHECK_RUNTIME_HANDLER, GRAFT_LEVEL_OK, engine->name, "has the runtime %s%s",
		    engine->runtimes[0].name,
		    cdi || (engine->default_runtime && strcmp(engine->default_runtime, engine->runtimes[0].name) == 0)
			? ""
			: graft_judge_text(judge,
					   ", which is not the default: pods need 'runtimeClassName: %s' and the "
					   "RuntimeClass",
					   engine->runtimes[0].name));
		return;
	}
	if (cdi) {
		graft_judge_add(judge, GRAFT_CHECK_RUNTIME_HANDLER, GRAFT_LEVEL_OK, engine->name,
				"has no runtime nvidia; the device plugin names CDI devices, which need none");
		return;
	}
	finding = graft_judge_add(
	    judge, GRAFT_CHECK_RUNTIME_HANDLER, unknown ? GRAFT_LEVEL_UNKNOWN : GRAFT_LEVEL_BROKEN, engine->name,
	    "has no runtime nvidia: pods of the runtime class do not start (no runtime for \"nvidia\" "
	    "is configured), and others see no GPU%s",
	    unknown ? ", unless the device plugin's config file says cdi-cri" : "");
	finding->remedy = graft_judge_text(judge,
					   "Run '%s', or let the device plugin name CDI devices "
					   "(--device-list-strategy=cdi-cri).",
					   graft_judge_configure_command(judge, engine));
}

static void judge_handlers(struct graft_judge *judge)
{
	for (size_t i = 0; i < judge->health->n_engines; i++) {
		const struct graft_health_engine *engine = &judge->health->engines[i];

		if ((engine->kind == GRAFT_ENGINE_CONTAINERD || engine->kind == GRAFT_ENGINE_CRIO) && !engine->rootless)
			judge_engine_handler(judge, engine);
	}
}

static void judge_plugin_specs(struct graft_judge *judge)
{
	const struct graft_health_cluster *cluster = &judge->health->cluster;
	bool unknown;

	if (!names_cdi_devices(judge, "cdi-", &unknown))
		return;
	if (cluster->n_plugin_specs == 0) {
		graft_judge_add(judge, GRAFT_CHECK_PLUGIN_SPECS, GRAFT_LEVEL_BROKEN, "/var/run/cdi",
				"has no CDI spec from the device plugin, although the plugin names CDI devices")
		    ->remedy =
		    "Mount the node's /var/run/cdi at the same path in the plugin's pod, then restart the pod.";
		return;
	}
	for (size_t i = 0; i < judge->health->n_engines; i++) {
		const struct graft_health_engine *engine = &judge->health->engines[i];

		if (engine->kind != GRAFT_ENGINE_CONTAINERD || !engine->has_cdi || engine->cdi ||
		    !names_cdi_devices(judge, "cdi-cri", &unknown))
			continue;
		graft_judge_add(judge, GRAFT_CHECK_PLUGIN_SPECS, GRAFT_LEVEL_BROKEN, engine->name,
				"has CDI switched off, and the device plugin names CDI devices")
		    ->remedy =
		    "Run 'nvidia-ctk runtime configure --runtime=containerd --cdi.enabled', then restart it.";
		return;
	}
	graft_judge_add(judge, GRAFT_CHECK_PLUGIN_SPECS, GRAFT_LEVEL_OK, cluster->plugin_specs[0],
			"is the device plugin's");
}

/* --- feature discovery and the operator --- */

static void judge_operator(struct graft_judge *judge)
{
	static const struct {
		const char *file, *what, *container;
	} steps[] = {
		{ "driver-ready", "the driver", "driver-validation" },
		{ "toolkit-ready", "the container runtime", "toolkit-validation" },
	};
	const struct graft_health_cluster *cluster = &judge->health->cluster;

	if (!cluster->has_operator)
		return;
	for (size_t i = 0; i < GRAFT_COUNT(steps); i++) {
		if (graft_is_in(cluster->validations, cluster->n_validations, steps[i].file))
			continue;
		graft_judge_add(
		    judge, GRAFT_CHECK_GPU_OPERATOR, GRAFT_LEVEL_WARNING, "/run/nvidia/validations",
		    "has no %s: the GPU Operator has not found %s usable since the node was started, and its "
		    "other pods wait for that",
		    steps[i].file, steps[i].what)
		    ->remedy = graft_judge_text(judge,
						"Run 'kubectl logs --namespace gpu-operator --selector "
						"app=nvidia-operator-validator --container %s'.",
						steps[i].container);
		return;
	}
	graft_judge_add(judge, GRAFT_CHECK_GPU_OPERATOR, GRAFT_LEVEL_OK, "/run/nvidia/validations",
			"the GPU Operator has found the driver and the container runtime usable");
}

static void judge_labels(struct graft_judge *judge)
{
	const struct graft_health_cluster *cluster = &judge->health->cluster;

	if (cluster->labels_file && !cluster->discovers && !judge->health->processes_hidden)
		graft_judge_add(
		    judge, GRAFT_CHECK_NODE_LABELS, GRAFT_LEVEL_WARNING, cluster->labels_file,
		    "was written by a gpu-feature-discovery that is no longer running: its labels are out of date")
		    ->remedy = graft_judge_text(judge, "Start it again, or run 'rm %s'.", cluster->labels_file);
	else if (cluster->labels_file)
		graft_judge_add(judge, GRAFT_CHECK_NODE_LABELS, GRAFT_LEVEL_OK, cluster->labels_file,
				"has %u label%s for Node Feature Discovery", cluster->n_labels,
				cluster->n_labels == 1 ? "" : "s");
	else if (cluster->discovers)
		graft_judge_add(judge, GRAFT_CHECK_NODE_LABELS, GRAFT_LEVEL_OK, "gpu-feature-discovery",
				"is running, and writes no file: it sends the labels to the API server");
}

void graft_judge_cluster(struct graft_judge *judge)
{
	if (!judge->health->cluster.asked)
		return;
	judge_kubelet(judge);
	judge_device_plugins(judge);
	judge_capacity(judge);
	judge_handlers(judge);
	judge_plugin_specs(judge);
	judge_operator(judge);
	graft_judge_owners(judge);
	judge_labels(judge);
}
