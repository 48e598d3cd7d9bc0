/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri_options: names, variables and defaults are those of nvidia-ctk-installer for its NRI plugin,
 * as far as it has them (SPEC installer-and-nri 2.1).
 */
#include "kubernetes/nri_options.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/option_rows.h"

/* A text. An empty one, which manifests pass for unset values, changes nothing. */
static int parse_nri_text(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	return value[0] == '\0' ? 0 : graft_option_set_string(target, option, value, err);
}

/* Texts separated by commas; each use adds to them. */
static int parse_namespaces(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct graft_nri_flags *flags = target;

	(void)option;
	for (const char *at = value; *at != '\0'; at += *at == ',') {
		size_t length = strcspn(at, ",");
		const char *name = graft_arena_strndup(flags->arena, at, length);

		if (!name || (length > 0 && !graft_arena_push_string(flags->arena, &flags->management_namespaces,
								     &flags->n_management_namespaces, name)))
			return graft_fail_memory(err);
		at += length;
	}
	return 0;
}

#define NRI_AT(member) \
	.argument = GRAFT_OPTION_REQUIRED, .parse = parse_nri_text, .offset = offsetof(struct graft_nri_flags, member)

/* clang-format off */
static const struct graft_option nri_options[] = {
	{ .name = "nri-socket", NRI_AT(socket), .value_name = "PATH", ENV("NRI_SOCKET"), ALIAS("socket"),
	  .help = "The engine's NRI socket (default /var/run/nri/nri.sock)" },
	{ .name = "nri-plugin-index", NRI_AT(index), .value_name = "NN", ENV("NRI_PLUGIN_INDEX", "NRI_PLUGIN_IDX"), ALIAS("index"),
	  .help = "Position among the engine's NRI plugins, 00 to 99 (default 10)" },
	{ .name = "nri-namespace", NRI_AT(own_namespace), .value_name = "NAMESPACE", ENV("NRI_NAMESPACE"), ALIAS("namespace"),
	  .help = "Namespace of the plugin's own pod; pods in it may ask for management devices" },
	{ .name = "nri-management-cdi-device-namespaces", .argument = GRAFT_OPTION_REQUIRED, .parse = parse_namespaces, .value_name = "LIST",
	  ENV("NRI_MANAGEMENT_CDI_DEVICE_NAMESPACES"), ALIAS("management-namespaces"),
	  .help = "Other namespaces whose pods may ask for management devices, separated by commas" },
	{ .name = "cdi-kind", NRI_AT(management_kind), .value_name = "KIND", ENV("CDI_KIND"),
	  .help = "CDI kind of the management devices (default management.nvidia.com/gpu)" },
	{ .name = "config", NRI_AT(config), .value_name = "FILE", ENV("NVIDIA_CTK_CONFIG_FILE_PATH"),
	  .help = "Configuration file (default /etc/nvidia-container-runtime/config.toml)" },
	{ .name = "driver-root", NRI_AT(driver_root), .value_name = "DIR", ENV("NVIDIA_DRIVER_ROOT", "DRIVER_ROOT"),
	  .help = "Root of the driver's files on the host (default: as in config.toml, else /)" },
	{ .name = "driver-root-ctr-path", NRI_AT(driver_root_seen), .value_name = "DIR", ENV("DRIVER_ROOT_CTR_PATH"),
	  .help = "Path of the driver root as seen by this process (default: the same path)" },
	{ .name = "nvidia-cdi-hook-path", NRI_AT(hook_path), .value_name = "PATH", ENV("NVIDIA_CDI_HOOK_PATH"),
	  .help = "Path of nvidia-cdi-hook on the host (default: found as nvidia-container-runtime finds it)" },
	{ .name = "install-hook", NRI_AT(install_hook), .value_name = "DIR", ENV("NRI_INSTALL_HOOK"),
	  .help = "First copy nvidia-cdi-hook to this directory of the host, and use the copy; a container must mount the directory at the same path" },
	{ .name = "pod-resources-socket", NRI_AT(pods_socket), .value_name = "PATH", ENV("POD_RESOURCES_SOCKET"),
	  .help = "The kubelet's PodResources socket (default /var/lib/kubelet/pod-resources/kubelet.sock)" },
	{ .name = "kubelet-checkpoint", NRI_AT(pods_checkpoint), .value_name = "PATH", ENV("KUBELET_CHECKPOINT"),
	  .help = "The kubelet's checkpoint of devices, used for init containers (default /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint)" },
	{ .name = "listen", NRI_AT(listen), .value_name = "ADDRESS", ENV("LISTEN"),
	  .help = "Serve metrics and health on PORT, ADDRESS:PORT or the path of a socket" },
};
/* clang-format on */

static const struct graft_manual_section nri_sections[] = {
	{ "WHAT PODS GET",
	  "A container gets the GPUs that the kubelet has allocated to it, as the device plugin's variables or mounts "
	  "say, and the driver's files. It needs no RuntimeClass, and its engine needs no configuration except NRI. "
	  "Variables and mounts that the image or the pod sets are ignored, unless *[nri] environment* of "
	  "_config.toml_ says otherwise.\n\n"
	  "A pod with an annotation _nvidia.cdi.k8s.io/container.NAME_, _nvidia.cdi.k8s.io/pod_ or "
	  "_nvidia.cdi.k8s.io_ gets the CDI devices that the annotation names. It may name "
	  "_management.nvidia.com/gpu=all_ in the namespaces that *--nri-namespace* and "
	  "*--nri-management-cdi-device-namespaces* name, and whatever *[nri] allowed* of _config.toml_ lists. "
	  "Anything else is refused: the container is not created, and the pod's events say why." },
	{ "WHEN THE PLUGIN DOES NOT RUN",
	  "An engine starts containers even if a plugin does not answer. This program reconnects at once, warns of "
	  "containers that were created without their devices in the meantime, and counts them in "
	  "_graft_nri_missed_containers_total_." },
	{ "SIGNALS", "*SIGHUP*\n\tRead _config.toml_ and the host again.\n\n*SIGTERM*, *SIGINT*, *SIGQUIT*\n\tExit." },
	{ "ENVIRONMENT",
	  "*NRI_PLUGIN_SOCKET*, *NRI_PLUGIN_NAME*, *NRI_PLUGIN_IDX*\n\tSet by an engine that starts the plugin itself, "
	  "from _/opt/nri/plugins_: the file descriptor of the connection, the name and the index. The program then "
	  "exits when the engine does." },
	{ "EXIT STATUS",
	  "*0* after a signal, and when the engine that started it has exited. *1* on failure; the message names "
	  "cause and remedy." },
	{ "EXAMPLES", "Let pods in the operator's namespace use management devices, and serve metrics:\n\n"
		      "```\nnvidia-nri-plugin --nri-namespace=gpu-operator --listen=127.0.0.1:9402\n```" },
	{ "SEE ALSO", "*nvidia-device-plugin*(8), *nvidia-cdi-hook*(8), *nvidia-ctk-installer*(8), "
		      "*nvidia-container-runtime-config*(5)" },
};

const struct graft_command graft_nri_command = {
	.name = "nvidia-nri-plugin",
	.arguments = "",
	.summary = "Give pods their GPUs through the engine's NRI",
	.description = GRAFT_DOC(
	    "Registers with containerd or CRI-O as an NRI plugin, and adds GPUs to the containers of pods when they "
	    "are "
	    "created. The engine is neither reconfigured nor restarted.\n\n"
	    "Each option can also be set by its environment variable; the command line takes precedence."),
	GRAFT_MANUAL(nri_sections),
	.options = nri_options,
	.n_options = GRAFT_COUNT(nri_options),
	.max_arguments = 0,
	.go_style = true,
	.stop_at_first_argument = true,
};
