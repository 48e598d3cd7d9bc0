/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_options: the command line of the device plugin (SPEC kubernetes 6.1), and the order in which
 * the sources of the configuration apply.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/read.h"
#include "kubernetes/kube_options.h"
#include "kubernetes/kube_tables.h"

#define FILE_MAX ((size_t)1024 * 1024)

/* The target of the options; offsets in the table are those of `config`. */
struct options_target {
	struct graft_kube_config config;
	struct graft_arena *arena;
	const struct graft_command *command;
	/* Lists that an option has replaced, by the option's index in the table. */
	uint64_t replaced;
	int first; /* place of the first argument that is not an option; argc: none */
};

/* Returns whether this is the option's first use, which replaces the config file's value. */
static bool is_first_use(struct options_target *target, const struct graft_option *option)
{
	uint64_t bit = (uint64_t)1 << (option - target->command->options);
	bool first = (target->replaced & bit) == 0;

	target->replaced |= bit;
	return first;
}

/* The words that an option takes are those of its completion. */
static size_t count_option_words(const struct graft_option *option)
{
	size_t n = 0;

	while (option->values[n])
		n++;
	return n;
}

static int refuse_option(struct options_target *target, const struct graft_option *option, const char *word,
			 struct graft_error *err)
{
	char allowed[128];
	size_t n = count_option_words(option);

	return graft_fail(err, GRAFT_INVALID, 0, "invalid --%s option: %s%s; allowed: %s", option->name, word,
			  graft_nearest_hint(option->values, n, word, target->arena),
			  kube_list_words(option->values, n, allowed, sizeof(allowed)));
}

int kube_parse_word(void *to, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct options_target *target = to;
	int word = kube_find_word(option->values, count_option_words(option), value);

	if (value[0] == '\0')
		return 0;
	if (word < 0)
		return refuse_option(target, option, value, err);
	memcpy((char *)target + option->offset, &word, sizeof(word));
	return 0;
}

int kube_parse_bits(void *to, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct options_target *target = to;
	uint32_t *bits = (uint32_t *)(void *)((char *)target + option->offset), before;
	const char *unknown;

	if (value[0] == '\0')
		return 0;
	before = is_first_use(target, option) ? 0 : *bits;
	unknown = kube_read_bits(value, option->values, count_option_words(option), target->arena, &before);
	if (unknown || before == 0)
		return refuse_option(target, option, unknown ? unknown : value, err);
	*bits = before;
	return 0;
}

int kube_parse_list(void *to, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct options_target *target = to;
	const char ***items = (const char ***)(void *)((char *)target + option->offset);
	size_t *n = (size_t *)(void *)((char *)target + *(const size_t *)option->extra);

	if (value[0] == '\0')
		return 0;
	if (is_first_use(target, option)) {
		*items = NULL;
		*n = 0;
	}
	while (*value != '\0') {
		const char *at;
		size_t length = kube_take_item(&value, &at);
		const char *item = graft_arena_strndup(target->arena, at, length);

		if (!item || (length > 0 && !graft_arena_push_string(target->arena, items, n, item)))
			return graft_fail_memory(err);
	}
	return 0;
}

int kube_parse_channels(void *to, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct options_target *target = to;
	uint32_t channels = 0;

	(void)option;
	if (value[0] == '\0')
		return 0;
	for (const char *at = value, *item; *at != '\0';) {
		size_t length = kube_take_item(&at, &item);

		if (length != 1 || *item != '0')
			return graft_fail(err, GRAFT_INVALID, 0,
					  "invalid IMEX channel IDs: [%s]: channelIDs must be [] or [0]", value);
		channels = 1;
	}
	target->config.imex.channels = channels;
	return 0;
}

int kube_parse_filled(void *to, const struct graft_option *option, const char *value, struct graft_error *err)
{
	return value[0] != '\0' ? graft_option_set_string(to, option, value, err) : 0;
}

int kube_parse_interval(void *to, const struct graft_option *option, const char *value, struct graft_error *err)
{
	int64_t ns;

	if (value[0] != '\0' && !graft_kube_parse_duration(value, &ns))
		return graft_fail(err, GRAFT_INVALID, 0,
				  "invalid --%s option: %s; allowed: 90s, 1h30m, infinite, or a number of nanoseconds",
				  option->name, value);
	return kube_parse_filled(to, option, value, err);
}

int kube_parse_fallbacks(void *to, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct options_target *target = to;
	const char **fallbacks = (const char **)(void *)((char *)target + option->offset);
	uint32_t bits = 0;
	const char *unknown = kube_read_bits(value, option->values, count_option_words(option), target->arena, &bits);

	if (unknown)
		return refuse_option(target, option, unknown, err);
	*fallbacks = graft_arena_printf(target->arena, "%s%s%s", *fallbacks, (*fallbacks)[0] != '\0' ? "," : "", value);
	return *fallbacks ? 0 : graft_fail_memory(err);
}

/* clang-format off */
static const struct graft_option plugin_options[] = {
	{ .name = "mig-strategy", WORD, AT(flags.mig_strategy), ENV("MIG_STRATEGY"), WORDS("none", "single", "mixed"),
	  .help = "How to offer MIG devices: none, single (as GPUs) or mixed (as nvidia.com/mig-PROFILE) (default none)" },
	{ .name = "fail-on-init-error", FLAG, AT(flags.fail_on_init_error), ENV("FAIL_ON_INIT_ERROR"),
	  .help = "Exit with an error if the driver or the config file cannot be read; if false, wait (default true)" },
	{ .name = "driver-root", DIRECTORY, AT(flags.driver_root), ALIAS("nvidia-driver-root"), ENV("NVIDIA_DRIVER_ROOT"),
	  .help = "Root of the driver's files on the host (default /)" },
	{ .name = "dev-root", TEXT, AT(flags.dev_root), .value_name = "DIR", ALIAS("nvidia-dev-root"), ENV("NVIDIA_DEV_ROOT"),
	  .help = "Root of the device nodes on the host (default the driver root)" },
	{ .name = "pass-device-specs", FLAG, AT(flags.plugin.pass_device_specs), ENV("PASS_DEVICE_SPECS"),
	  .help = "Also pass device nodes to the kubelet; its CPU manager needs them" },
	{ .name = "device-list-strategy", .argument = GRAFT_OPTION_REQUIRED, .parse = kube_parse_bits, .value_name = "LIST",
	  AT(flags.plugin.device_list_strategy), ENV("DEVICE_LIST_STRATEGY"),
	  WORDS("envvar", "volume-mounts", "cdi-annotations", "cdi-cri"),
	  .help = "How to pass a container's devices to the runtime: envvar, volume-mounts, cdi-annotations, cdi-cri, or several (default envvar)" },
	{ .name = "device-id-strategy", WORD, AT(flags.plugin.device_id_strategy), ENV("DEVICE_ID_STRATEGY"),
	  WORDS("uuid", "index"), .help = "How to identify devices to the runtime: uuid or index (default uuid)" },
	{ .name = "gdrcopy-enabled", FLAG, AT(flags.gdrcopy), ENV("GDRCOPY_ENABLED"), .help = "Give containers GDRCopy" },
	{ .name = "gds-enabled", FLAG, AT(flags.gds), ENV("GDS_ENABLED"), .help = "Give containers GPUDirect Storage" },
	{ .name = "mofed-enabled", FLAG, AT(flags.mofed), ENV("MOFED_ENABLED"), .help = "Give containers the InfiniBand adapters" },
	{ .name = "cdi-annotation-prefix", TEXT, AT(flags.plugin.cdi_annotation_prefix), .value_name = "PREFIX",
	  ENV("CDI_ANNOTATION_PREFIX"), .help = "Prefix of the annotations that name CDI devices (default cdi.k8s.io/)" },
	{ .name = "nvidia-cdi-hook-path", .argument = GRAFT_OPTION_REQUIRED, .parse = kube_parse_filled,
	  .value_name = "PATH", AT(flags.plugin.cdi_hook_path), ALIAS("nvidia-ctk-path"),
	  ENV("NVIDIA_CDI_HOOK_PATH", "NVIDIA_CTK_PATH"),
	  .help = "Program on the host for the hooks of CDI specifications (default /usr/bin/nvidia-ctk)" },
	{ .name = "driver-root-ctr-path", DIRECTORY, AT(flags.plugin.container_driver_root), ALIAS("container-driver-root"),
	  ENV("DRIVER_ROOT_CTR_PATH", "CONTAINER_DRIVER_ROOT"),
	  .help = "Path of the driver root as seen by this process (default /driver-root)" },
	{ .name = "mps-root", TEXT, AT(flags.mps_root), .value_name = "DIR", ENV("MPS_ROOT"),
	  .help = "Directory of the MPS daemons on the host" },
	{ .name = "shared-devices-allocation-policy", WORD, AT(flags.plugin.sharing_policy),
	  ENV("SHARED_DEVICES_ALLOCATION_POLICY"), WORDS("distributed", "packed", "distinct"),
	  .help = "How to choose replicas of shared devices: distributed over the devices, packed on few, or distinct (never two of one device) (default distributed)" },
	{ .name = "device-discovery-strategy", WORD, AT(flags.discovery), ENV("DEVICE_DISCOVERY_STRATEGY"),
	  WORDS("auto", "nvml", "tegra"), .help = "What kind of system this is: auto, nvml or tegra (default auto)" },
	{ .name = "imex-channel-ids", .argument = GRAFT_OPTION_REQUIRED, .parse = kube_parse_channels, .value_name = "LIST",
	  ENV("IMEX_CHANNEL_IDS"), .help = "IMEX channels that every container gets: 0 (default none)" },
	{ .name = "imex-required", FLAG, AT(imex.required), ENV("IMEX_REQUIRED"),
	  .help = "Refuse containers if the IMEX channel does not exist" },
	{ .name = "kubelet-socket", TEXT, AT(flags.plugin.kubelet_socket), .value_name = "PATH", ENV("KUBELET_SOCKET"),
	  .help = "Socket of the kubelet; empty: serve, but do not register (default /var/lib/kubelet/device-plugins/kubelet.sock)" },
	{ .name = "plugin-registry", TEXT, AT(flags.plugin.registry), .value_name = "DIR", ENV("PLUGIN_REGISTRY"),
	  .help = "Directory in which the kubelet finds plugins; if empty or nonexistent, register at the kubelet's socket (default /var/lib/kubelet/plugins_registry)" },
	{ .name = "listen", TEXT, AT(flags.plugin.listen), .value_name = "ADDRESS", ENV("LISTEN_ADDRESS"),
	  .help = "Serve /metrics and /healthz at PORT, ADDRESS:PORT or the path of a socket (default none)" },
	{ .name = "state-dir", DIRECTORY, AT(flags.plugin.state_folder), ENV("STATE_DIR"),
	  .help = "Directory that keeps the health of GPUs until the next boot (default /run/graft)" },
	{ .name = "respect-leases", FLAG, AT(flags.plugin.respect_leases), ENV("RESPECT_LEASES"),
	  .help = "Offer no leased GPU, and lease the GPUs of pods; the table is 'leases' in --state-dir" },
	{ .name = "config-file", TEXT, AT(config_file), .value_name = "FILE", ENV("CONFIG_FILE"),
	  .help = "File with further settings, in YAML or JSON" },
	{ .name = "cdi-feature-flags", LIST(flags.plugin.n_cdi_feature_flags), AT(flags.plugin.cdi_feature_flags),
	  ENV("CDI_FEATURE_FLAGS"), .help = "Feature flags of CDI specifications, as for nvidia-ctk cdi generate" },
	{ .name = "cdi-disable-hooks", LIST(flags.plugin.n_cdi_disabled_hooks), AT(flags.plugin.cdi_disabled_hooks),
	  ENV("CDI_DISABLE_HOOKS"), .help = "Hooks to leave out of CDI specifications, or all" },
	{ .name = "cdi-late-mounts", FLAG, AT(flags.plugin.cdi_late_mounts), ENV("CDI_LATE_MOUNTS"),
	  .help = "Mount files of CDI specifications by a hook, as nvidia-ctk cdi generate --late-mounts does" },
	{ .name = "health", .argument = GRAFT_OPTION_REQUIRED, .parse = kube_parse_bits, .value_name = "LIST",
	  AT(flags.plugin.health_sources), ENV("HEALTH"), WORDS("kmsg", "nvml", "none"),
	  .help = "How to detect failed GPUs: kmsg (kernel log), nvml (keeps GPUs awake), both, or none (default kmsg)" },
	{ .name = "disable-health-checks", TEXT, AT(flags.plugin.disable_health_checks), .value_name = "LIST",
	  ENV("DP_DISABLE_HEALTHCHECKS"), .help = "Xids that do not make a device unhealthy; all or xids: no Xid does" },
	{ .name = "enable-health-checks", TEXT, AT(flags.plugin.enable_health_checks), .value_name = "LIST",
	  ENV("DP_ENABLE_HEALTHCHECKS"), .help = "Further Xids that make a device unhealthy; all: every Xid does" },
	KUBE_CHOICE_OPTIONS("none: --config-file applies"),
	KUBE_NODE_OPTIONS,
	{ .name = "clear-health", TEXT, AT(clear_health), .value_name = "GPU",
	  .help = "Make the plugin offer a failed GPU again (its UUID, index or PCI address, or all), and exit" },
	{ .name = "print-config", FLAG, AT(print_config), .help = "Print the effective configuration as JSON and exit" },
	{ .name = "once", FLAG, AT(once),
	  .help = "Print the resources, their devices and what a container would get, as JSON, and exit" },
};
/* clang-format on */

static const struct graft_manual_section plugin_sections[] = {
	{ "SIGNALS",
	  "*SIGHUP*\n\tReread configuration and host, query NVML again, and register again. If that "
	  "fails, the plugin keeps what it has, logs the reason, and tries again later.\n\n*SIGTERM*, *SIGINT*, "
	  "*SIGQUIT*\n\tRemove the "
	  "sockets and exit. Containers keep their GPUs." },
	{ "HEALTH",
	  "A GPU whose failure the driver reports in the kernel log (Xid) is offered as unhealthy, with all its "
	  "replicas and MIG devices. It is healthy again when the driver reports that it no longer needs a reset, when "
	  "the driver is loaded again, or when the GPU was removed and came back. Xids of applications (13, 31, "
	  "43, 45, 68, 109) do not count. Reading _/dev/kmsg_ needs CAP_SYSLOG or kernel.dmesg_restrict=0; with "
	  "neither, "
	  "the plugin logs a warning and does not detect these failures.\n\nWith *--health=kmsg,nvml*, NVML is a "
	  "second source: an unprivileged child process waits for its events, and a GPU that does not answer is "
	  "unhealthy until it does. This keeps GPUs awake.\n\nA GPU is also unhealthy while its PCI "
	  "device, its entry in the driver or its device node is missing. Use *--clear-health* for a GPU that has been "
	  "repaired without a report by the driver:\n\n```\nnvidia-device-plugin --clear-health=0000:3b:00.0\n"
	  "```" },
	{ "FILES",
	  "_/var/lib/kubelet/plugins_registry/nvidia.com-gpu-reg.sock_\n\tThe socket of a resource, if that "
	  "directory exists. The kubelet finds it there, even after a restart.\n\n"
	  "_/var/lib/kubelet/device-plugins/nvidia-gpu.sock_\n\tThe socket if it does not. The plugin registers it at "
	  "_kubelet.sock_ in the same directory.\n\n_/run/graft/health.json_\n\tThe GPUs that have failed since boot, "
	  "and "
	  "recoveries that the kernel log does not report. _/run/graft/clear-health_ holds the requests of "
	  "*--clear-health* until the plugin handles them." },
	{ "EXIT STATUS", "*0* after a signal, and for options that only print or send a request. *1* on failure; the "
			 "message names cause and remedy." },
	{ "EXAMPLES",
	  "Show what this node would offer:\n\n```\nnvidia-device-plugin --once\n```\n\nOffer each "
	  "GPU four times:\n\n```\ncat >plugin.yaml <<EOF\nversion: v1\nsharing:\n  timeSlicing:\n    resources:\n    "
	  "- name: nvidia.com/gpu\n      replicas: 4\nEOF\nnvidia-device-plugin --config-file=plugin.yaml\n```" },
	{ "SEE ALSO",
	  "*gpu-feature-discovery*(8), *config-manager*(8), *mps-control-daemon*(8), *nvidia-nri-plugin*(8), "
	  "*nvidia-ctk*(1), *nvidia-container-runtime*(8)" },
};

const struct graft_command graft_kube_plugin_command = {
	.name = "nvidia-device-plugin",
	.arguments = "",
	.summary = "Offer this node's GPUs to the kubelet",
	.description = GRAFT_DOC(
	    "Serves the kubelet's interface for device plugins, so that pods can request nvidia.com/gpu. Keeps no GPU "
	    "awake. Whenever it reads configuration and host, an unprivileged child process queries NVML for MIG "
	    "devices and, with three or more GPUs and no NVSwitch, for NVLinks.\n\n"
	    "Each option can also be set by its environment variable, and by its key in the config "
	    "file. The command line takes precedence, then the variable."),
	GRAFT_MANUAL(plugin_sections),
	.options = plugin_options,
	.n_options = GRAFT_COUNT(plugin_options),
	.max_arguments = -1,
	.go_style = true,
	.stop_at_first_argument = true,
};

/* --- sources --- */

static int read_config_file(const struct graft_kube_sources *sources, struct graft_arena *arena, const char *path,
			    struct graft_kube_config *config, struct graft_error *err)
{
	const char *text;
	size_t length;
	int rc = graft_read_input(path, FILE_MAX, arena, &text, &length);

	if (rc < 0)
		return graft_fail_errno(err, -rc, "unable to read config file %s", graft_input_name(path));
	return graft_kube_config_parse(graft_input_name(path), text, length, sources->log, arena, config, err);
}

static int parse_options(const struct graft_kube_sources *sources, struct options_target *target,
			 enum graft_parse_result *ret_result, struct graft_error *err)
{
	const struct graft_options_scope scope = { .variable = sources->variable };

	target->replaced = 0;
	return graft_options_parse_in(&scope, sources->command, sources->argc, sources->argv, target, &target->first,
				      ret_result, err);
}

/* A word that is neither an Xid nor a word for all Xids has no effect. */
static void warn_about_xids(const struct graft_log *log, const char *option, const char *list)
{
	while (*list != '\0') {
		size_t length;

		list += strspn(list, ", ");
		length = strcspn(list, ", ");
		if (strspn(list, "0123456789") < length && (length != 3 || strncasecmp(list, "all", 3) != 0) &&
		    (length != 4 || strncasecmp(list, "xids", 4) != 0))
			graft_warn(log, "--%s: ignoring '%.*s': expected Xid numbers, all or xids", option, (int)length,
				   list);
		list += length;
	}
}

bool graft_kube_has_option(const struct graft_command *command, const char *option)
{
	for (size_t i = 0; i < command->n_options; i++) {
		if (strcmp(command->options[i].name, option) == 0)
			return true;
	}
	return false;
}

/* The options name the file, but apply after it: they are parsed once for each. */
int graft_kube_configure(const struct graft_kube_sources *sources, struct graft_arena *arena,
			 struct graft_kube_config *ret_config, enum graft_parse_result *ret_result,
			 struct graft_error *err)
{
	struct options_target target = { .arena = arena, .command = sources->command };
	const char *file;

	graft_kube_config_default(&target.config);
	if (parse_options(sources, &target, ret_result, err) < 0)
		return -1;
	if (*ret_result != GRAFT_PARSE_OK)
		return 0;
	/* As in NVIDIA's program; manifests say "--fail-on-init-error false". */
	if (target.first < sources->argc)
		graft_warn(sources->log, "ignoring '%s' and all that follows: write options as --option=VALUE",
			   sources->argv[target.first]);
	file = sources->config_file ? sources->config_file : target.config.config_file;
	if (target.config.choice.label[0] != '\0' && target.config.config_file[0] != '\0')
		return graft_fail(err, GRAFT_INVALID, 0,
				  "--node-label chooses the config file: --config-file cannot be given as well");
	graft_kube_config_default(&target.config);
	if (file[0] != '\0' && read_config_file(sources, arena, file, &target.config, err) < 0)
		return -1;
	if (parse_options(sources, &target, ret_result, err) < 0)
		return -1;
	if (graft_kube_sharing_check(&target.config, err) < 0)
		return -1;
	/* No other program that reads the plugin's file is concerned with what containers get. */
	if (graft_kube_has_option(sources->command, "device-list-strategy") &&
	    graft_kube_config_check(&target.config, err) < 0)
		return -1;
	warn_about_xids(sources->log, "disable-health-checks", target.config.flags.plugin.disable_health_checks);
	warn_about_xids(sources->log, "enable-health-checks", target.config.flags.plugin.enable_health_checks);
	*ret_config = target.config;
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
