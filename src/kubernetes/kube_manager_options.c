/* SPDX-License-Identifier: Apache-2.0 */
/* kube_manager_options: the command line of config-manager (SPEC kubernetes 7). */
#include <signal.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "kubernetes/kube_options.h"

/* An empty value, which manifests pass for unset ones, changes nothing. */
static int parse_signal(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	char *end;
	long number = strtol(value, &end, 10);

	if (value[0] == '\0')
		return 0;
	if (*end != '\0' || number < 1 || number >= _NSIG)
		return graft_fail(err, GRAFT_INVALID, 0, "invalid --%s option: %s; allowed: a number from 1 to %d",
				  option->name, value, _NSIG - 1);
	*(int *)(void *)((char *)target + option->offset) = (int)number;
	return 0;
}

/* clang-format off */
static const struct graft_option manager_options[] = {
	{ .name = "oneshot", FLAG, AT(manager.oneshot), ENV("ONESHOT"), .help = "Make the link and exit, as an init container does" },
	KUBE_NODE_OPTIONS,
	KUBE_CHOICE_OPTIONS("nvidia.com/device-plugin.config"),
	{ .name = "config-file-dst", TEXT, AT(manager.destination), .value_name = "PATH", ENV("CONFIG_FILE_DST"),
	  .help = "Link to create, which points to the config file" },
	{ .name = "send-signal", FLAG, AT(manager.send_signal), ENV("SEND_SIGNAL"),
	  .help = "Send a signal when another file is chosen, or when the file has changed (default true)" },
	{ .name = "signal", .argument = GRAFT_OPTION_REQUIRED, .parse = parse_signal, AT(manager.signal), .value_name = "NUMBER", ENV("SIGNAL"),
	  .help = "Number of the signal (default 1, SIGHUP)" },
	{ .name = "process-to-signal", .argument = GRAFT_OPTION_REQUIRED, .parse = kube_parse_filled, AT(manager.process), .value_name = "NAME",
	  ENV("PROCESS_TO_SIGNAL"), .help = "Process to signal: its argv[0], with or without the directory (default nvidia-device-plugin)" },
};
/* clang-format on */

static const struct graft_manual_section manager_sections[] = {
	{ "WHICH FILE",
	  "The label's value is the name of a file in *--config-file-srcdir*, where a ConfigMap is mounted. A node "
	  "without the label gets *--default-config*. Without that option, the first possible one of "
	  "*--fallback-strategies* applies. If no file is chosen, the link points to _/dev/null_, an empty "
	  "configuration.\n\nA label that names no file is an error: with *--oneshot* the program exits; otherwise it "
	  "logs the error and keeps the link until the label or the directory changes. While the API server cannot be "
	  "reached, nothing changes.\n\n"
	  "The process gets the signal when the link or the file has changed. When this program starts, it sends the "
	  "signal to a process that started before the file's last change." },
	{ "SIGNALS", "*SIGHUP*\n\tChoose the file again.\n\n*SIGTERM*, *SIGINT*, *SIGQUIT*\n\tExit. The link stays." },
	{ "PERMISSIONS",
	  "The service account must be allowed to get, list and watch _nodes_. To signal the process, the pod "
	  "needs _shareProcessNamespace: true_." },
	{ "EXIT STATUS",
	  "*0* after a signal, and with *--oneshot* when the link exists. *1* on failure; the message names cause "
	  "and remedy." },
	{ "EXAMPLES", "```\nkubectl label node worker-1 nvidia.com/device-plugin.config=shared\n"
		      "config-manager --node-name=worker-1 --config-file-srcdir=/available-configs "
		      "--config-file-dst=/config/config.yaml\n```" },
	{ "SEE ALSO", "*nvidia-device-plugin*(8), whose option *--node-label* does the same without this program; "
		      "*mps-control-daemon*(8)" },
};

const struct graft_command graft_kube_manager_command = {
	.name = "config-manager",
	.arguments = "",
	.summary = "Choose a config file by a label of the node",
	.description = GRAFT_DOC(
	    "Watches a label of the node, creates a link to the config file that the label names, and sends a signal "
	    "to the program that reads it. Runs in the pod of that program: beside it, and before it as an init "
	    "container.\n\nEach option can also be set by its environment variable. The command line takes "
	    "precedence."),
	GRAFT_MANUAL(manager_sections),
	.options = manager_options,
	.n_options = GRAFT_COUNT(manager_options),
	.max_arguments = -1,
	.go_style = true,
	.stop_at_first_argument = true,
};
