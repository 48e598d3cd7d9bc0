/* SPDX-License-Identifier: Apache-2.0 */
/* kube_gfd_options: the command line of gpu-feature-discovery (SPEC kubernetes 8.1). */
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "kubernetes/kube_options.h"

#define QPS_MAX   100000
#define BURST_MAX 100000

/* Empty and 0 change nothing, as in other clients of the API server. */
static int parse_qps(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	char *end;
	double number = strtod(value, &end);

	if (*end != '\0' || !isfinite(number) || number > QPS_MAX)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "invalid --%s option: %s; allowed: a number up to %d, negative: no limit",
				  option->name, value, QPS_MAX);
	if (number < 0 || number > 0)
		*(double *)(void *)((char *)target + option->offset) = number;
	return 0;
}

static int parse_burst(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	char *end;
	long number = strtol(value, &end, 10);

	if (*end != '\0' || number < 0 || number > BURST_MAX)
		return graft_fail(err, GRAFT_INVALID, 0, "invalid --%s option: %s; allowed: a number up to %d",
				  option->name, value, BURST_MAX);
	if (number > 0)
		*(int *)(void *)((char *)target + option->offset) = (int)number;
	return 0;
}

/* clang-format off */
static const struct graft_option gfd_options[] = {
	{ .name = "mig-strategy", WORD, AT(flags.mig_strategy), ENV("GFD_MIG_STRATEGY", "MIG_STRATEGY"),
	  WORDS("none", "single", "mixed"),
	  .help = "How to label MIG devices: none, single (as GPUs) or mixed (as mig-PROFILE) (default none)" },
	{ .name = "fail-on-init-error", FLAG, AT(flags.fail_on_init_error), ENV("GFD_FAIL_ON_INIT_ERROR", "FAIL_ON_INIT_ERROR"),
	  .help = "Exit with an error if the driver or the config file cannot be read; if false, wait (default true)" },
	{ .name = "oneshot", FLAG, AT(flags.gfd.oneshot), ENV("GFD_ONESHOT"), .help = "Label once, leave the labels in place and exit" },
	{ .name = "no-timestamp", FLAG, AT(flags.gfd.no_timestamp), ENV("GFD_NO_TIMESTAMP"),
	  .help = "Omit the label that says when this program was started" },
	{ .name = "sleep-interval", .argument = GRAFT_OPTION_REQUIRED, .parse = kube_parse_interval, .value_name = "TIME",
	  AT(flags.gfd.sleep_interval), ENV("GFD_SLEEP_INTERVAL"),
	  .help = "Minimum time between two changes of the labels: 60s, 1h30m; infinite: label once and stay (default 60s)" },
	{ .name = "output-file", .letter = 'o', TEXT, AT(flags.gfd.output_file), .value_name = "FILE", ALIAS("output"),
	  ENV("GFD_OUTPUT_FILE"),
	  .help = "File for the labels; empty: standard output (default /etc/kubernetes/node-feature-discovery/features.d/gfd)" },
	{ .name = "machine-type-file", TEXT, AT(flags.gfd.machine_type_file), .value_name = "FILE", ENV("GFD_MACHINE_TYPE_FILE"),
	  .help = "File with the type of this machine (default /sys/class/dmi/id/product_name)" },
	{ .name = "config-file", TEXT, AT(config_file), .value_name = "FILE", ENV("GFD_CONFIG_FILE", "CONFIG_FILE"),
	  .help = "File with further settings, in YAML or JSON, as for nvidia-device-plugin" },
	{ .name = "use-node-feature-api", FLAG, AT(flags.use_node_feature_api),
	  ENV("GFD_USE_NODE_FEATURE_API", "USE_NODE_FEATURE_API"),
	  .help = "Send the labels to the API server as a NodeFeature object instead of writing a file (default true)" },
	{ .name = "device-discovery-strategy", WORD, AT(flags.discovery), ENV("DEVICE_DISCOVERY_STRATEGY"),
	  WORDS("auto", "nvml", "tegra"), .help = "What kind of system this is: auto, nvml or tegra (default auto)" },
	{ .name = "driver-root-ctr-path", DIRECTORY, AT(flags.plugin.container_driver_root), ALIAS("container-driver-root"),
	  ENV("DRIVER_ROOT_CTR_PATH", "CONTAINER_DRIVER_ROOT"),
	  .help = "Path of the driver root as seen by this process (default /driver-root)" },
	{ .name = "kube-api-qps", .argument = GRAFT_OPTION_REQUIRED, .parse = parse_qps, AT(api.qps), .value_name = "NUMBER", ENV("KUBE_API_QPS"),
	  .help = "Requests to the API server per second, on average; negative: no limit (default 5)" },
	{ .name = "kube-api-burst", .argument = GRAFT_OPTION_REQUIRED, .parse = parse_burst, AT(api.burst), .value_name = "NUMBER", ENV("KUBE_API_BURST"),
	  .help = "Requests to the API server that may be sent at once (default 10)" },
	{ .name = "namespace", .argument = GRAFT_OPTION_REQUIRED, .parse = kube_parse_filled, AT(api.namespace_), .value_name = "NAME", ENV("NAMESPACE"),
	  .help = "Namespace of the NodeFeature object (default default)" },
	KUBE_NODE_OPTIONS,
	{ .name = "pod-name", TEXT, AT(api.pod_name), .value_name = "NAME", ENV("POD_NAME"),
	  .help = "Name of this pod; the NodeFeature object is removed along with it" },
	KUBE_CHOICE_OPTIONS("none: --config-file applies"),
	{ .name = "print-config", FLAG, AT(print_config), .help = "Print the effective configuration as JSON and exit" },
};
/* clang-format on */

static const struct graft_manual_section gfd_sections[] = {
	{ "WHEN LABELS CHANGE",
	  "The program computes the labels again when the kernel log says that the driver was loaded or a GPU was "
	  "reset, when PCI devices, modules or device nodes of the driver come or go, when the config file has "
	  "changed, when another process has changed or removed the label file, and after *SIGHUP*; but no more often "
	  "than *--sleep-interval* allows. It writes them only if they have changed. While GPUs are in MIG mode, it "
	  "reads the driver's list of MIG devices once per interval, because nothing announces changes to it.\n\n"
	  "Once per boot, an unprivileged child process asks NVML for what only NVML knows. The answer is kept in "
	  "_/run/graft/facts.json_; *SIGHUP* repeats the query. If the answer came too early, for example before a GPU "
	  "has joined its fabric, the query is repeated, at most eight times." },
	{ "SIGNALS",
	  "*SIGHUP*\n\tReread configuration and host, and query NVML again. If the new configuration is wrong, the "
	  "labels stay as they are and the log says why.\n\n*SIGTERM*, *SIGINT*, *SIGQUIT*\n\tRemove the label "
	  "file, unless *--sleep-interval* is infinite, and exit." },
	{ "FILES", "_/etc/kubernetes/node-feature-discovery/features.d/gfd_\n\tThe labels, where the worker of "
		   "Node Feature Discovery finds them.\n\n_/run/graft/facts.json_\n\tNVML's answers since boot. "
		   "May be removed at any time." },
	{ "EXIT STATUS", "*0* after a signal, with *--oneshot*, and for options that only print. *1* on failure; the "
			 "message names cause and remedy." },
	{ "EXAMPLES",
	  "Show the labels that this node would get:\n\n```\ngpu-feature-discovery --oneshot --output-file= "
	  "--use-node-feature-api=false\n```" },
	{ "SEE ALSO", "*nvidia-device-plugin*(8)" },
};

const struct graft_command graft_kube_gfd_command = {
	.name = "gpu-feature-discovery",
	.arguments = "",
	.summary = "Label this node with the properties of its GPUs",
	.description = GRAFT_DOC(
	    "Describes this node's GPUs in labels such as nvidia.com/gpu.product. Node Feature Discovery adds them to "
	    "the node in Kubernetes. Keeps no GPU awake.\n\nEach option can also be set by its environment variable, "
	    "and by its key in the config file. The command line takes precedence, then the variable."),
	GRAFT_MANUAL(gfd_sections),
	.options = gfd_options,
	.n_options = GRAFT_COUNT(gfd_options),
	.max_arguments = -1,
	.go_style = true,
	.stop_at_first_argument = true,
};
