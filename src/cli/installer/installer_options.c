/* SPDX-License-Identifier: Apache-2.0 */
/*
 * installer_options: the flags and variables of nvidia-ctk-installer, and their rules (SPEC
 * installer-and-nri 2). Opens nothing but what decides a default: whether the host has rpm.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/option_rows.h"
#include "base/path.h"
#include "base/root.h"
#include "cli/installer/installer.h"
#include "formats/cdi/cdi.h"

#define DEFAULT_NAME "nvidia"

/* A boolean whose default is the value of another one. */
static int set_given_bool(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	bool is = false;
	struct graft_option plain = *option;

	plain.offset = 0;
	if (graft_option_set_true(&is, &plain, value, err) < 0)
		return -1;
	*(const char **)(void *)((char *)target + option->offset) = is ? "true" : "false";
	return 0;
}

/* A list whose last item may be empty: lists of other options end at a last comma. */
static int set_nodes(void *target, const struct graft_option *option, const char *value, struct graft_error *err)
{
	struct ctk_base *base = target;
	struct ctk_list *list = (struct ctk_list *)(void *)((char *)target + option->offset);
	size_t length = strlen(value);

	if (ctk_option_list(target, option, value, err) < 0)
		return -1;
	if (length > 0 && value[length - 1] == ',' &&
	    !graft_arena_push_string(base->ctk->arena, &list->items, &list->n, ""))
		return graft_fail_memory(err);
	return 0;
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct installer_options, member)
#define LIST       .argument = GRAFT_OPTION_REQUIRED, .parse = ctk_option_list

static const struct graft_option options[] = {
	{ .name = "no-daemon", .letter = 'n', FLAG, AT(no_daemon), ENV("NO_DAEMON"),
	  .help = "Exit when everything is set up, and leave it in place" },
	{ .name = "no-runtime-config", FLAG, AT(no_runtime_config), ENV("NO_RUNTIME_CONFIG"),
	  .help = "Install the toolkit only; leave the container engine alone" },
	{ .name = "enable-nri-plugin", .letter = 'p', FLAG, AT(nri), ENV("ENABLE_NRI_PLUGIN"),
	  .help = "Serve the engine through NRI instead of changing its configuration" },
	{ .name = "nri-plugin-index", TEXT, AT(nri_index), .value_name = "INDEX", ENV("NRI_PLUGIN_INDEX"),
	  .help = "Position of the NRI plugin among others, 0 to 99 (default 10)" },
	{ .name = "nri-socket", TEXT, AT(nri_socket), .value_name = "SOCKET", ENV("NRI_SOCKET"),
	  .help = "Socket on which the engine serves NRI (default /var/run/nri/nri.sock)" },
	{ .name = "nri-namespace", TEXT, AT(nri_namespace), .value_name = "NAMESPACE", ENV("NRI_NAMESPACE"),
	  .help = "Namespace of this pod, whose pods may get management devices" },
	{ .name = "nri-management-cdi-device-namespaces", LIST, AT(nri_namespaces), .value_name = "NAMESPACE",
	  ENV("NRI_MANAGEMENT_CDI_DEVICE_NAMESPACES"), .help = "Further namespaces whose pods may get management devices" },
	{ .name = "runtime", .letter = 'r', TEXT, AT(runtime), .value_name = "ENGINE", ENV("RUNTIME"),
	  .help = "Container engine of the node: docker, containerd or crio (default docker)", WORDS("docker", "containerd", "crio") },
	{ .name = "toolkit-install-dir", TEXT, AT(install_dir), ALIAS("root"), .value_name = "DIR", ENV("TOOLKIT_INSTALL_DIR", "ROOT"),
	  .help = "Directory on the node in which to create the directory toolkit; same path in this container (default /usr/local/nvidia)" },
	{ .name = "toolkit-source-root", TEXT, AT(source_root), .value_name = "DIR", ENV("TOOLKIT_SOURCE_ROOT"),
	  .help = "Unpacked packages of the toolkit (default /artifacts/TYPE)" },
	{ .name = "toolkit-package-type", TEXT, AT(package_type), .value_name = "TYPE", ENV("TOOLKIT_PACKAGE_TYPE"),
	  .help = "deb, rpm, or auto: rpm if the node has that program (default auto)", WORDS("auto", "deb", "rpm") },
	{ .name = "pid-file", TEXT, AT(pid_file), .value_name = "FILE", ENV("TOOLKIT_PID_FILE", "PID_FILE"),
	  .help = "Lock and process ID; its name is toolkit.pid (default /run/nvidia/toolkit/toolkit.pid)" },
	{ .name = "debug", FLAG, AT(debug), ENV("TOOLKIT_DEBUG"), .help = "Log every step on stderr" },

	{ .name = "driver-root", TEXT, AT(driver_root), ALIAS("nvidia-driver-root"), .value_name = "DIR",
	  ENV("NVIDIA_DRIVER_ROOT", "DRIVER_ROOT"), .help = "Root of the driver's files on the node (default /run/nvidia/driver)" },
	{ .name = "driver-root-ctr-path", TEXT, AT(driver_root_ctr), .value_name = "DIR", ENV("DRIVER_ROOT_CTR_PATH"),
	  .help = "The same directory as seen by this process (default /run/nvidia/driver)" },
	{ .name = "dev-root", TEXT, AT(dev_root), .value_name = "DIR", ENV("NVIDIA_DEV_ROOT", "DEV_ROOT"),
	  .help = "Root of the device nodes on the node (default that of the driver)" },
	{ .name = "dev-root-ctr-path", TEXT, AT(dev_root_ctr), .value_name = "DIR", ENV("DEV_ROOT_CTR_PATH"),
	  .help = "The same directory as seen by this process; control nodes are created there" },
	{ .name = "nvidia-container-runtime.debug", TEXT, AT(runtime_debug), ALIAS("nvidia-container-runtime-debug"), .value_name = "FILE",
	  ENV("NVIDIA_CONTAINER_RUNTIME_DEBUG"), .help = "This key of config.toml" },
	{ .name = "nvidia-container-runtime.log-level", TEXT, AT(runtime_log_level), ALIAS("nvidia-container-runtime-debug-log-level"),
	  .value_name = "LEVEL", ENV("NVIDIA_CONTAINER_RUNTIME_LOG_LEVEL"), .help = "This key of config.toml" },
	{ .name = "nvidia-container-runtime.mode", TEXT, AT(runtime_mode), ALIAS("nvidia-container-runtime-mode"), .value_name = "MODE",
	  ENV("NVIDIA_CONTAINER_RUNTIME_MODE"), .help = "This key of config.toml" },
	{ .name = "nvidia-container-runtime.modes.cdi.default-kind", TEXT, AT(cdi_default_kind), .value_name = "KIND",
	  ENV("NVIDIA_CONTAINER_RUNTIME_MODES_CDI_DEFAULT_KIND"), .help = "This key of config.toml" },
	{ .name = "nvidia-container-runtime.modes.cdi.annotation-prefixes", LIST, AT(annotation_prefixes), .value_name = "PREFIX",
	  ENV("NVIDIA_CONTAINER_RUNTIME_MODES_CDI_ANNOTATION_PREFIXES"), .help = "This key of config.toml, and the annotations that containerd passes on" },
	{ .name = "nvidia-container-runtime.runtimes", LIST, AT(runtimes), .value_name = "RUNTIME",
	  ENV("NVIDIA_CONTAINER_RUNTIME_RUNTIMES"), .help = "This key of config.toml (default the engine's own, then runc, crun)" },
	{ .name = "nvidia-container-runtime-hook.skip-mode-detection", FLAG, AT(skip_mode_detection),
	  ENV("NVIDIA_CONTAINER_RUNTIME_HOOK_SKIP_MODE_DETECTION"), .help = "This key of config.toml (default true)" },
	{ .name = "nvidia-container-cli.debug", TEXT, AT(cli_debug), ALIAS("nvidia-container-cli-debug"), .value_name = "FILE",
	  ENV("NVIDIA_CONTAINER_CLI_DEBUG"), .help = "This key of config.toml" },
	{ .name = "accept-nvidia-visible-devices-envvar-when-unprivileged", FLAG, AT(accept_envvar),
	  ENV("ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"), .help = "This key of config.toml (default true)" },
	{ .name = "accept-nvidia-visible-devices-as-volume-mounts", FLAG, AT(accept_mounts),
	  ENV("ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS"), .help = "This key of config.toml (default false)" },
	{ .name = "cdi-enabled", FLAG, AT(cdi), ALIAS("enable-cdi"), ENV("CDI_ENABLED", "ENABLE_CDI"),
	  .help = "Create control nodes and the management specification" },
	{ .name = "cdi-output-dir", TEXT, AT(cdi_output_dir), .value_name = "DIR", ENV("CDI_OUTPUT_DIR"),
	  .help = "Directory of the management specification (default /var/run/cdi)" },
	{ .name = "cdi-kind", TEXT, AT(cdi_kind), .value_name = "KIND", ENV("CDI_KIND"),
	  .help = "Vendor and class of the management specification (default management.nvidia.com/gpu)" },
	{ .name = "create-device-nodes", .argument = GRAFT_OPTION_REQUIRED, .parse = set_nodes, AT(device_nodes), .value_name = "WHICH", ENV("CREATE_DEVICE_NODES"),
	  .help = "Nodes to create with CDI: control or none (default control)", WORDS("control", "none") },
	{ .name = "opt-in-features", LIST, AT(opt_in_features), .hidden = true, .value_name = "FEATURE",
	  ENV("NVIDIA_CONTAINER_TOOLKIT_OPT_IN_FEATURES"), .help = "Features of config.toml to switch on" },
	{ .name = "ignore-errors", FLAG, AT(ignore_errors), .hidden = true, .help = "Log what cannot be installed, and continue" },

	{ .name = "config", TEXT, AT(config), .value_name = "FILE", ENV("RUNTIME_CONFIG", "CONTAINERD_CONFIG", "DOCKER_CONFIG"),
	  .help = "The engine's configuration file, as seen by this process" },
	{ .name = "drop-in-config", TEXT, AT(drop_in), .value_name = "FILE", ENV("RUNTIME_DROP_IN_CONFIG"),
	  .help = "Drop-in file for additions, as seen by this process" },
	{ .name = "drop-in-config-host-path", TEXT, AT(drop_in_host), .value_name = "FILE", ENV("RUNTIME_DROP_IN_CONFIG_HOST_PATH"),
	  .help = "Path of the drop-in file on the node, for containerd's imports" },
	{ .name = "executable-path", TEXT, AT(executable), .value_name = "PATH", ENV("RUNTIME_EXECUTABLE_PATH"),
	  .help = "The engine's program on the node, which prints its configuration" },
	{ .name = "socket", TEXT, AT(socket), .value_name = "SOCKET", ENV("RUNTIME_SOCKET", "CONTAINERD_SOCKET", "DOCKER_SOCKET"),
	  .help = "The engine's socket, used to find its process" },
	{ .name = "restart-mode", TEXT, AT(restart_mode), .value_name = "MODE", ENV("RUNTIME_RESTART_MODE"),
	  .help = "How to make the engine read its configuration: signal, systemd or none (default signal; for crio systemd)",
	  WORDS("signal", "systemd", "none") },
	{ .name = "enable-cdi-in-runtime", .parse = set_given_bool, AT(cdi_in_runtime), ENV("RUNTIME_ENABLE_CDI"),
	  .help = "Switch CDI on in the engine (default: as --cdi-enabled)" },
	{ .name = "host-root", TEXT, AT(host_root), .value_name = "DIR", ENV("HOST_ROOT_MOUNT"),
	  .help = "The node's root directory as seen by this process (default /host)" },
	{ .name = "runtime-name", TEXT, AT(runtime_name), ALIAS("nvidia-runtime-name", "runtime-class"), .value_name = "NAME",
	  ENV("NVIDIA_RUNTIME_NAME", "CONTAINERD_RUNTIME_CLASS", "DOCKER_RUNTIME_NAME"), .help = "Name of the runtime (default nvidia)" },
	{ .name = "set-as-default", FLAG, AT(set_as_default), .hidden = true,
	  ENV("NVIDIA_RUNTIME_SET_AS_DEFAULT", "CONTAINERD_SET_AS_DEFAULT", "DOCKER_SET_AS_DEFAULT"),
	  .help = "Make the runtime of that name the engine's default (default true)" },
	{ .name = "config-source", LIST, AT(config_sources), ALIAS("config-sources"), .value_name = "SOURCE",
	  ENV("RUNTIME_CONFIG_SOURCES", "RUNTIME_CONFIG_SOURCE"),
	  .help = "What the new runtimes inherit from: command, file or file=PATH; the first that can be read applies (default command,file)" },
	{ .name = "use-legacy-config", FLAG, AT(legacy_config), ENV("CONTAINERD_USE_LEGACY_CONFIG"),
	  .help = "containerd before 1.3: the default runtime is a table" },
	{ .name = "runtime-type", TEXT, AT(runtime_type), .value_name = "TYPE", ENV("CONTAINERD_RUNTIME_TYPE"),
	  .help = "containerd: type of runtimes that inherit none (default io.containerd.runc.v2)" },
	{ .name = "nvidia-container-runtime-modes.cdi.annotation-prefixes", LIST, AT(containerd_annotation_prefixes), .value_name = "PREFIX",
	  .help = "containerd: pod annotations to pass on to the runtime (default: those of that key of config.toml)" },
	{ .name = "runtime-config-override", TEXT, AT(config_override), .value_name = "JSON",
	  ENV("RUNTIME_CONFIG_OVERRIDE", "CONTAINERD_RUNTIME_CONFIG_OVERRIDE"), .help = "Accepted; has no effect" },
	{ .name = "hooks-dir", TEXT, AT(hooks_dir), .value_name = "DIR", ENV("CRIO_HOOKS_DIR"),
	  .help = "CRI-O: directory of hooks (default /usr/share/containers/oci/hooks.d)" },
	{ .name = "hook-filename", TEXT, AT(hook_filename), .value_name = "NAME", ENV("CRIO_HOOK_FILENAME"),
	  .help = "CRI-O: name of the hook's file (default oci-nvidia-hook.json)" },
	{ .name = "config-mode", TEXT, AT(crio_mode), .value_name = "MODE", ENV("CRIO_CONFIG_MODE"),
	  .help = "CRI-O: config, or hook, which is deprecated (default config)", WORDS("config", "hook") },
};
/* clang-format on */

void installer_options_init(struct installer_options *ret)
{
	static const char *nodes[] = { "control" }, *sources[] = { "command", "file" };

	*ret = (struct installer_options){
		.nri_index = "10",
		.nri_socket = "/var/run/nri/nri.sock",
		.nri_namespace = "",
		.runtime = "docker",
		.install_dir = "/usr/local/nvidia",
		.package_type = "auto",
		.pid_file = "/run/nvidia/toolkit/toolkit.pid",
		.driver_root = "/run/nvidia/driver",
		.driver_root_ctr = "/run/nvidia/driver",
		.dev_root = "",
		.dev_root_ctr = "",
		.skip_mode_detection = true,
		.accept_envvar = true,
		.cdi_output_dir = "/var/run/cdi",
		.cdi_kind = "management.nvidia.com/gpu",
		.device_nodes = { nodes, GRAFT_COUNT(nodes), false },
		.drop_in_host = "",
		.executable = "",
		.host_root = "/host",
		.runtime_name = DEFAULT_NAME,
		.set_as_default = true,
		.config_sources = { sources, GRAFT_COUNT(sources), false },
		.runtime_type = "io.containerd.runc.v2",
		.config_override = "{}",
		.hooks_dir = "/usr/share/containers/oci/hooks.d",
		.hook_filename = "oci-nvidia-hook.json",
		.crio_mode = "config",
	};
}

/* ---- rules ---- */

const char *installer_other_root(const struct installer_options *o)
{
	return o->host_root[0] == '\0' || strcmp(o->host_root, "/") == 0 ? NULL : o->host_root;
}

const char *installer_host_path(const struct installer_options *o, const char *path)
{
	const char *root = installer_other_root(o);

	return graft_arena_printf(o->base.ctk->arena, "%s%s", root ? root : "", path);
}

bool installer_stat_below(const char *root, const char *path, struct stat *ret_stat)
{
	auto_root struct graft_root below = GRAFT_ROOT_INIT;

	return graft_root_open(&below, root[0] != '\0' ? root : "/", NULL) == 0 &&
	       graft_root_stat(&below, path, ret_stat) == 0;
}

static bool has_rpm(const struct installer_options *o)
{
	struct stat st;

	return installer_stat_below(o->host_root, "/usr/bin/rpm", &st) && S_ISREG(st.st_mode) &&
	       (st.st_mode & 0111) != 0;
}

static int check_source_root(struct installer_options *o, struct graft_error *err)
{
	const char *type = o->package_type;

	if (strcmp(type, "auto") == 0 || type[0] == '\0')
		type = has_rpm(o) ? "rpm" : "deb";
	if (strcmp(type, "deb") != 0 && strcmp(type, "rpm") != 0)
		return graft_fail(err, GRAFT_INVALID, 0, "invalid package type: %s", type);
	o->package_type = type;
	if (!o->source_root || o->source_root[0] == '\0')
		o->source_root = graft_arena_printf(o->base.ctk->arena, "/artifacts/%s", type);
	return o->source_root ? 0 : graft_fail_memory(err);
}

static int check_install_root(struct installer_options *o, struct graft_error *err)
{
	struct graft_arena *arena = o->base.ctk->arena;
	const char *clean;

	if (o->install_dir[0] == '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "the install root must be specified");
	clean = graft_path_clean(NULL, o->install_dir, arena);
	if (!clean && !graft_arena_failed(arena))
		return graft_fail(err, GRAFT_INVALID, 0, "the install root %s is not an absolute path", o->install_dir);
	if (!clean)
		return graft_fail_memory(err);
	o->install_dir = clean;
	o->toolkit = graft_arena_printf(arena, "%s/toolkit", strcmp(clean, "/") == 0 ? "" : clean);
	return o->toolkit ? 0 : graft_fail_memory(err);
}

static int check_nri(struct installer_options *o, struct graft_error *err)
{
	char *end;
	long index = strtol(o->nri_index, &end, 10);

	if (*end != '\0' || end == o->nri_index || index < 0 || index > 99)
		return graft_fail(err, GRAFT_INVALID, 0, "invalid NRI plugin index: %s; allowed: 0 to 99",
				  o->nri_index);
	/* The engine wants two digits. */
	o->nri_index = graft_arena_printf(o->base.ctk->arena, "%02ld", index);
	if (!o->nri_index)
		return graft_fail_memory(err);
	if (o->nri && o->nri_namespace[0] == '\0')
		return graft_fail(err, GRAFT_INVALID, 0,
				  "the NRI namespace must be specified when the NRI plugin is enabled");
	return 0;
}

static int check_cdi(struct installer_options *o, struct graft_error *err)
{
	const char *slash = strchr(o->cdi_kind, '/');
	struct graft_arena *arena = o->base.ctk->arena;

	if (o->cdi && o->cdi_output_dir[0] == '\0') {
		graft_warn(&o->base.ctk->log, "Skipping CDI spec generation (no output directory specified)");
		o->cdi = false;
	}
	o->vendor = slash ? graft_arena_strndup(arena, o->cdi_kind, (size_t)(slash - o->cdi_kind)) : "";
	o->class_ = slash ? slash + 1 : o->cdi_kind;
	if (!o->vendor)
		return graft_fail_memory(err);
	if (graft_cdi_check_vendor(o->vendor, err) < 0)
		return graft_wrap(err, "invalid CDI vendor name");
	return graft_cdi_check_class(o->class_, err) < 0 ? graft_wrap(err, "invalid CDI class name") : 0;
}

static int check_nodes(struct installer_options *o, struct graft_error *err)
{
	const struct ctk_list *list = &o->device_nodes;

	o->makes_nodes = list->n > 0;
	for (size_t i = 0; i < list->n; i++) {
		if (strcmp(list->items[i], "none") == 0 || list->items[i][0] == '\0')
			o->makes_nodes = false;
		else if (strcmp(list->items[i], "control") != 0)
			return graft_fail(err, GRAFT_INVALID, 0, "invalid --create-device-nodes value: %s",
					  list->items[i]);
	}
	if (o->makes_nodes && !o->cdi) {
		graft_info(&o->base.ctk->log, "Not creating device nodes: CDI is not enabled");
		o->makes_nodes = false;
	}
	return 0;
}

static int check_restart(struct installer_options *o, struct graft_error *err)
{
	bool is_crio = o->engine == &graft_engine_crio;
	const char *mode = o->restart_mode ? o->restart_mode : is_crio ? "systemd" : "signal";

	if (strcmp(mode, "none") == 0)
		o->restart = INSTALLER_RESTART_NONE;
	else if (strcmp(mode, "systemd") == 0)
		o->restart = INSTALLER_RESTART_SYSTEMD;
	else if (strcmp(mode, "signal") == 0 && !is_crio)
		o->restart = INSTALLER_RESTART_SIGNAL;
	else
		return graft_fail(err, GRAFT_INVALID, 0, "invalid restart mode specified: %s", mode);
	return 0;
}

static int check_sources(struct installer_options *o, struct graft_error *err)
{
	static const char *file[] = { "file" };
	struct ctk_list trimmed = { .given = true };

	for (size_t i = 0; i < o->config_sources.n; i++) {
		const char *item = o->config_sources.items[i] + strspn(o->config_sources.items[i], " \t");
		size_t length = strlen(item);
		const char *word;

		while (length > 0 && strchr(" \t", item[length - 1]))
			length--;
		word = graft_arena_strndup(o->base.ctk->arena, item, length);
		if (!word || !graft_arena_push_string(o->base.ctk->arena, &trimmed.items, &trimmed.n, word))
			return graft_fail_memory(err);
		if (strcmp(word, "command") != 0 && strcmp(word, "file") != 0 && strncmp(word, "file=", 5) != 0)
			return graft_fail(err, GRAFT_INVALID, 0, "unsupported config source \"%s\"", word);
	}
	o->config_sources = trimmed;
	if (o->engine != &graft_engine_docker)
		return 0;
	if (o->executable[0] != '\0')
		graft_warn(&o->base.ctk->log, "Ignoring executable-path=\"%s\" flag for docker", o->executable);
	o->executable = "";
	o->config_sources = (struct ctk_list){ file, GRAFT_COUNT(file), true };
	return 0;
}

static int check_crio_options(struct installer_options *o, struct graft_error *err)
{
	if (o->engine != &graft_engine_crio)
		return 0;
	o->by_hook = strcmp(o->crio_mode, "hook") == 0;
	if (o->by_hook)
		graft_warn(&o->base.ctk->log, "The \"hook\" config mode of CRI-O is deprecated");
	else if (strcmp(o->crio_mode, "config") != 0)
		return graft_fail(err, GRAFT_INVALID, 0, "invalid cri-o config mode: \"%s\"", o->crio_mode);
	return 0;
}

static void set_engine_paths(struct installer_options *o)
{
	const struct graft_engine *engine = o->engine;
	bool is_docker = engine == &graft_engine_docker;

	if (!o->config || o->config[0] == '\0')
		o->config = engine->config_path;
	if (!o->socket || o->socket[0] == '\0')
		o->socket = is_docker                      ? "/var/run/docker.sock"
			    : engine == &graft_engine_crio ? "/var/run/crio/crio.sock"
							   : "/run/containerd/containerd.sock";
	if (is_docker && o->drop_in && o->drop_in[0] != '\0')
		graft_warn(&o->base.ctk->log, "Ignoring drop-in-config=\"%s\" flag for docker", o->drop_in);
	o->drop_in_path = is_docker ? NULL : o->drop_in ? o->drop_in : engine->drop_in_path;
	if (o->drop_in_path && o->drop_in_path[0] == '\0')
		o->drop_in_path = NULL;
}

static int check_installer_engine(struct installer_options *o, struct graft_error *err)
{
	o->engine = strcmp(o->runtime, "podman") == 0 ? NULL : graft_engine_find(o->runtime);
	if (!o->engine)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "invalid runtime \"%s\"; expected one of [containerd | crio | docker]", o->runtime);
	set_engine_paths(o);
	o->base.ctk->engine_root = installer_other_root(o);
	if (!o->containerd_annotation_prefixes.given)
		o->containerd_annotation_prefixes = o->annotation_prefixes;
	o->enable_cdi = o->cdi_in_runtime ? strcmp(o->cdi_in_runtime, "true") == 0 : o->cdi;
	if (check_restart(o, err) < 0 || check_sources(o, err) < 0)
		return -1;
	return check_crio_options(o, err);
}

int installer_options_check(struct installer_options *o, struct graft_error *err)
{
	if (check_source_root(o, err) < 0 || check_install_root(o, err) < 0)
		return -1;
	if (strcmp(graft_path_name(o->pid_file), "toolkit.pid") != 0)
		return graft_fail(err, GRAFT_INVALID, 0, "invalid toolkit.pid path %s", o->pid_file);
	if (check_nri(o, err) < 0 || check_cdi(o, err) < 0 || check_nodes(o, err) < 0)
		return -1;
	if (o->dev_root[0] == '\0')
		o->dev_root = o->driver_root;
	if (o->dev_root_ctr[0] == '\0')
		o->dev_root_ctr = o->driver_root_ctr;
	return check_installer_engine(o, err);
}

int installer_list_runtimes(const struct installer_options *o, struct installer_runtime ret[INSTALLER_RUNTIMES],
			    struct graft_error *err)
{
	static const char *const programs[] = { ".cdi", ".legacy", "" };
	bool is_taken = strcmp(o->runtime_name, "nvidia-cdi") == 0 || strcmp(o->runtime_name, "nvidia-legacy") == 0;
	const char *const names[] = { "nvidia-cdi", "nvidia-legacy", is_taken ? DEFAULT_NAME : o->runtime_name };
	size_t last = INSTALLER_RUNTIMES - 1;

	for (size_t i = 0; i < INSTALLER_RUNTIMES; i++) {
		ret[i].name = names[i];
		ret[i].path = graft_arena_printf(o->base.ctk->arena, "%s/nvidia-container-runtime%s", o->toolkit,
						 programs[i]);
		ret[i].is_default = o->set_as_default && strcmp(names[i], o->runtime_name) == 0;
		if (!ret[i].path)
			return graft_fail_memory(err);
	}
	for (size_t i = 0; i < last; i++) {
		if (ret[i].is_default) {
			const struct installer_runtime moved = ret[i];

			ret[i] = ret[last];
			ret[last] = moved;
			break;
		}
	}
	return 0;
}

/* ---- the manual ---- */

static const struct graft_manual_section sections[] = {
	{ "WHAT IT DOES",
	  "Takes the lock; installs the toolkit beside _DIR_/toolkit and exchanges the two atomically; writes "
	  "_config.toml_; with *--cdi-enabled*, creates the control nodes and the management specification; registers "
	  "the runtimes _nvidia_, _nvidia-cdi_ and _nvidia-legacy_ with the engine; makes the engine read its "
	  "configuration, unless it already has; and waits.\n\n"
	  "Meanwhile it repairs the engine's files and the toolkit if another program changes them, up to three times "
	  "in ten minutes. It leaves a runtime alone that a package of the node has registered under one of these "
	  "names." },
	{ "SIGNALS",
	  "*SIGTERM*, *SIGINT*, *SIGQUIT*, *SIGHUP*, *SIGPIPE*\n\tRemove the runtimes from the engine's configuration, "
	  "make the engine read it, and exit. Files that no other program has changed are restored byte for byte. The "
	  "toolkit stays, since running containers need it. During the installation: exit at once, with the old or "
	  "the new toolkit complete." },
	{ "EXIT STATUS",
	  "*0* after a signal, and with *--no-daemon* when everything is set up. *1* on failure; the message names "
	  "the cause." },
	{ "FILES", "_DIR/toolkit_\n\tThe programs, and their configuration "
		   "_.config/nvidia-container-runtime/config.toml_.\n\n"
		   "_/run/nvidia/toolkit/toolkit.pid_\n\tThe lock and the process ID.\n\n"
		   "_FILE.nvidia-ctk.bak_\n\tAn engine's file as it was before.\n\n"
		   "_/var/run/cdi/management.nvidia.com-gpu.yaml_\n\tThe management specification." },
	{ "EXAMPLES",
	  "Install the toolkit for containerd, leave its default runtime alone, and use the node's own driver:\n\n"
	  "```\nnvidia-ctk-installer --runtime=containerd --driver-root=/ --driver-root-ctr-path=/host "
	  "--cdi-enabled --set-as-default=false\n```" },
	{ "SEE ALSO", "*nvidia-ctk*(1), *nvidia-container-runtime*(8), *nvidia-nri-plugin*(8), "
		      "*nvidia-container-runtime-config*(5)" },
};

const struct graft_command installer_command = {
	.name = INSTALLER_PROGRAM,
	.arguments = "",
	.max_arguments = -1,
	.summary = "Install the toolkit on a cluster node and keep it repaired",
	.description =
	    "Runs in a privileged pod on each node, as the GPU Operator starts it. Each option can also be set "
	    "by its environment variable, even an empty one; the command line takes precedence.",
	GRAFT_OPTIONS(options),
	.go_style = true,
	.stop_at_first_argument = true,
	GRAFT_MANUAL(sections),
};
