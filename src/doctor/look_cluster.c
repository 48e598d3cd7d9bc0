/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_cluster: the Kubernetes side of a host: the kubelet and its directories, the device plugin,
 * and the kubelet's records. Reads only files, so the kubelet may be down. Includes processes in
 * containers, since the device plugin usually runs in one.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "doctor/distributions.h"
#include "doctor/look.h"
#include "formats/json/json_document.h"
#include "formats/procfs.h"

#define KUBELET_DIRECTORY "/var/lib/kubelet"
#define CHECKPOINT        "device-plugins/kubelet_internal_checkpoint"
#define VENDOR            "nvidia.com/"
#define VALIDATIONS       "/run/nvidia/validations"
#define CDI_DIRECTORY     "/var/run/cdi"
#define FEATURES          "/etc/kubernetes/node-feature-discovery/features.d/gfd"
/* Names as in the kernel, which keeps 15 bytes. */
#define PLUGIN_NAME    "nvidia-device-p"
#define DISCOVERY_NAME "gpu-feature-dis"
/* The installer has the second name in pods of the GPU Operator, through a link. */
#define INSTALLER_NAME "nvidia-ctk-inst"
#define INSTALLER_LINK "nvidia-toolkit"
#define INSTALLER      "nvidia-ctk-installer"
#define INSTALL_DIR    "/usr/local/nvidia"
#define TOOLKIT_NAME   "toolkit"
/* Flags and states in /proc/net/unix: the socket listens; it is connected. */
#define ACCEPTS   0x10000ul
#define CONNECTED 3ul

static void push_cluster_text(struct graft_health_look *look, const char ***items, size_t *n, const char *text)
{
	if (text)
		(void)graft_arena_push_string(look->arena, items, n, text);
}

/* --- the distribution --- */

/* Whether the text has that line, with or without quotation marks: "ID=talos", "ID=\"talos\"". */
static bool has_line_of(const char *text, const char *wanted)
{
	size_t key = strcspn(wanted, "=") + 1, value = strlen(wanted) - key;

	for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL)) {
		size_t length = strcspn(line, "\n");
		bool quoted = length == key + value + 2 && (line[key] == '"' || line[key] == '\'');

		if ((quoted || length == key + value) && strncmp(line, wanted, key) == 0 &&
		    strncmp(line + key + quoted, wanted + key, value) == 0)
			return true;
	}
	return false;
}

static void look_at_distribution(struct graft_health_look *look)
{
	for (const struct graft_distribution *at = graft_distributions; at->name; at++) {
		const char *text;
		size_t length;

		if (!graft_health_exists(look, at->file))
			continue;
		if (at->line &&
		    (graft_health_read_file(look, at->file, &text, &length) < 0 || !has_line_of(text, at->line)))
			continue;
		look->health->cluster.distribution = at->name;
		return;
	}
}

/* --- the kubelet --- */

/* Distributions that include the kubelet in a larger program keep its folder in the usual place. */
static void look_at_kubelet(struct graft_health_look *look)
{
	struct graft_health_cluster *cluster = &look->health->cluster;
	const struct graft_health_process *process = graft_health_find_kubelet(look);
	struct graft_command_line line;
	const char *path, *directory = NULL;

	cluster->running = process != NULL;
	path = process ? graft_arena_printf(look->scratch, "%s/cmdline", process->directory) : NULL;
	if (path && graft_health_read_file(look, path, &line.text, &line.length) == 0)
		directory = graft_procfs_option(&line, "--root-dir");
	cluster->directory = graft_arena_strdup(look->arena, directory ? directory : KUBELET_DIRECTORY);
}

static const char *below_kubelet(struct graft_health_look *look, const char *name)
{
	return graft_arena_printf(look->scratch, "%s/%s", look->health->cluster.directory, name);
}

static void look_at_folder(struct graft_health_look *look, const char *name)
{
	struct graft_health_cluster *cluster = &look->health->cluster;
	const char *folder = below_kubelet(look, name), **names;
	size_t n;

	if (!folder || graft_health_list(look, folder, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		/*
		 * The names that NVIDIA's plugin and ours use; a file whose name begins with a dot
		 * is not finished.
		 */
		if (graft_starts_with(names[i], "nvidia") && strstr(names[i], ".sock"))
			push_cluster_text(look, &cluster->sockets, &cluster->n_sockets,
					  graft_arena_printf(look->scratch, "%s/%s", folder, names[i]));
	}
}

static void look_at_folders(struct graft_health_look *look)
{
	struct graft_health_cluster *cluster = &look->health->cluster;
	const char *socket = below_kubelet(look, "device-plugins/kubelet.sock");
	const char *registry = below_kubelet(look, "plugins_registry");

	cluster->has_socket = socket && graft_health_exists(look, socket);
	cluster->has_registry = registry && graft_health_exists(look, registry);
	look_at_folder(look, "device-plugins");
	look_at_folder(look, "plugins_registry");
}

/* --- what the kubelet has recorded --- */

static struct graft_health_resource *find_cluster_resource(struct graft_health_look *look, const char *name)
{
	struct graft_health_cluster *cluster = &look->health->cluster;
	struct graft_health_resource *resource;

	if (!name || !graft_starts_with(name, VENDOR))
		return NULL;
	for (size_t i = 0; i < cluster->n_resources; i++) {
		if (strcmp(cluster->resources[i].name, name) == 0)
			return &cluster->resources[i];
	}
	resource = graft_arena_push(look->arena, &cluster->resources, &cluster->n_resources, sizeof(*resource));
	if (resource)
		resource->name = graft_arena_strdup(look->arena, name);
	return resource;
}

/* Kubelets before 1.20 have a list of devices, others one for each NUMA node. */
static uint32_t count_cluster_devices(const struct graft_json_node *devices)
{
	size_t n = 0;

	if (graft_json_node_kind(devices) == GRAFT_JSON_ARRAY)
		return (uint32_t)graft_json_node_count(devices);
	if (graft_json_node_kind(devices) != GRAFT_JSON_OBJECT)
		return 0;
	GRAFT_JSON_EACH(node, devices)
		n += graft_json_node_kind(node) == GRAFT_JSON_ARRAY ? graft_json_node_count(node) : 0;
	return (uint32_t)n;
}

static void read_kubelet_record(struct graft_health_look *look, const struct graft_json_node *data)
{
	const struct graft_json_node *offered = graft_json_node_member(data, "RegisteredDevices");
	const struct graft_json_node *given = graft_json_node_member(data, "PodDeviceEntries");
	struct graft_health_resource *resource;

	if (graft_json_node_kind(offered) == GRAFT_JSON_OBJECT) {
		GRAFT_JSON_EACH(node, offered) {
			resource = find_cluster_resource(look, graft_json_node_name(node));
			if (resource)
				resource->n_devices = count_cluster_devices(node);
		}
	}
	if (graft_json_node_kind(given) != GRAFT_JSON_ARRAY)
		return;
	GRAFT_JSON_EACH(node, given) {
		resource = find_cluster_resource(look,
						 graft_json_node_string(graft_json_node_member(node, "ResourceName")));
		if (resource)
			resource->n_in_use += count_cluster_devices(graft_json_node_member(node, "DeviceIDs"));
	}
}

static void look_at_record(struct graft_health_look *look)
{
	struct graft_health_cluster *cluster = &look->health->cluster;
	auto_json_document struct graft_json_document *document = NULL;
	const char *path = below_kubelet(look, CHECKPOINT), *text;
	struct graft_error err = { .status = GRAFT_OK };
	size_t length;

	if (!path || graft_health_read_file(look, path, &text, &length) < 0)
		return;
	if (graft_json_document_parse(path, text, length, &document, &err) < 0) {
		cluster->record_problem = graft_arena_strdup(look->arena, err.msg);
		return;
	}
	cluster->has_record = true;
	read_kubelet_record(look, graft_json_node_member(graft_json_document_root(document), "Data"));
}

/* --- the device plugin --- */

/* Whether the process has the socket, judging by the links of its descriptors. */
static bool has_socket_inode(const char *const *inodes, size_t n, unsigned long inode)
{
	for (size_t i = 0; i < n; i++) {
		if (strtoul(inodes[i], NULL, 10) == inode)
			return true;
	}
	return false;
}

/* Lists the inodes of the process's sockets. Returns false if they are not visible. */
static bool list_socket_inodes(struct graft_health_look *look, const char *directory, const char ***inodes, size_t *n)
{
	const char *folder = graft_arena_printf(look->scratch, "%s/fd", directory), **names;
	size_t n_names;

	*n = 0;
	if (!folder || graft_health_list(look, folder, &names, &n_names) < 0)
		return false;
	for (size_t i = 0; i < n_names; i++) {
		const char *path = graft_arena_printf(look->scratch, "%s/%s", folder, names[i]);
		const char *target = path ? graft_health_read_link(look, path) : NULL;

		if (target && graft_starts_with(target, "socket:["))
			(void)graft_arena_push_string(look->scratch, inodes, n, target + strlen("socket:["));
	}
	return true;
}

/*
 * A line of /proc/net/unix: address, references, protocol, flags, type, state, inode, path. The
 * server's end of a connection has the path of the listening socket; the client's has none.
 */
static void count_unix_socket(const char *line, const char *const *inodes, size_t n, struct graft_health_plugin *plugin)
{
	enum { ADDRESS, REFERENCES, PROTOCOL, FLAGS, TYPE, STATE, INODE, FIELDS };
	unsigned long fields[FIELDS];

	for (int i = 0; i < FIELDS; i++) {
		char *end;

		fields[i] = strtoul(line, &end, i == INODE ? 10 : 16);
		line = end + strspn(end, ": ");
	}
	if (*line == '\0' || *line == '\n' || !has_socket_inode(inodes, n, fields[INODE]))
		return;
	plugin->n_served += (fields[FLAGS] & ACCEPTS) != 0;
	plugin->n_watched += fields[STATE] == CONNECTED;
}

static void count_sockets(struct graft_health_look *look, const char *directory, struct graft_health_plugin *plugin)
{
	const char *path = graft_arena_printf(look->scratch, "%s/net/unix", directory), *text, **inodes = NULL;
	size_t length, n = 0;

	if (!path || !list_socket_inodes(look, directory, &inodes, &n) ||
	    graft_health_read_file(look, path, &text, &length) < 0)
		return;
	plugin->seen = true;
	for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
		count_unix_socket(line, inodes, n, plugin);
}

static const char *plugin_setting(struct graft_health_look *look, const char *directory, const char *option,
				  const char *variable)
{
	const char *path = graft_arena_printf(look->scratch, "%s/cmdline", directory), *value = NULL, *text;
	struct graft_command_line line;
	size_t length;

	if (path && graft_health_read_file(look, path, &line.text, &line.length) == 0)
		value = graft_procfs_option(&line, option);
	path = graft_arena_printf(look->scratch, "%s/environ", directory);
	if (!value && path && graft_health_read_file(look, path, &text, &length) == 0)
		value = graft_health_find_variable(text, length, variable);
	return value && value[0] != '\0' ? graft_arena_strdup(look->arena, value) : NULL;
}

/* Whether the program has that name, too: through a link, a process can get any name. */
static bool is_program(struct graft_health_look *look, const char *directory, const char *name)
{
	const char *path = graft_arena_printf(look->scratch, "%s/exe", directory);
	const char *target = path ? graft_health_read_link(look, path) : NULL;
	size_t length = strlen(name);

	/* Visible only to the owner. */
	if (!target)
		return true;
	target = graft_path_name(target);
	/* " (deleted)" follows when it was updated. */
	return graft_starts_with(target, name) && (target[length] == '\0' || target[length] == ' ');
}

/*
 * SECURITY: an ordinary user can give a process that name, but the cluster's programs belong to
 * root. *ret_container: whether it is in a container. Returns false for a process of another user.
 */
static bool is_process_of_root(struct graft_health_look *look, const char *directory, bool *ret_container)
{
	const char *path = graft_arena_printf(look->scratch, "%s/status", directory), *text, *owner;
	struct graft_key_value *items;
	size_t length, n;

	/* A process may exit at any time. */
	if (!path || graft_root_read(look->host, path, GRAFT_SOURCE_FILE_MAX, look->scratch, &text, &length) < 0 ||
	    graft_procfs_key_values(text, length, look->scratch, &items, &n) < 0)
		return false;
	owner = graft_key_value_find(items, n, "Uid");
	*ret_container = graft_procfs_is_in_container(graft_key_value_find(items, n, "NSpid"));
	return owner && strtoul(owner, NULL, 10) == 0;
}

static void add_device_plugin(struct graft_health_look *look, const char *pid, const char *directory)
{
	struct graft_health_cluster *cluster = &look->health->cluster;
	struct graft_health_plugin *plugin;
	bool container;

	if (!is_process_of_root(look, directory, &container))
		return;
	plugin = graft_arena_push(look->arena, &cluster->plugins, &cluster->n_plugins, sizeof(*plugin));
	if (!plugin)
		return;
	plugin->pid = (uint32_t)strtoul(pid, NULL, 10);
	plugin->container = container;
	plugin->strategy = plugin_setting(look, directory, "--device-list-strategy", "DEVICE_LIST_STRATEGY");
	plugin->config = plugin_setting(look, directory, "--config-file", "CONFIG_FILE");
	count_sockets(look, directory, plugin);
}

/* An installer shares the host's process IDs, so that it can signal the engine. */
static void add_installer(struct graft_health_look *look, const char *pid, const char *directory)
{
	struct graft_health_cluster *cluster = &look->health->cluster;
	struct graft_health_installer *installer;
	const char *root = plugin_setting(look, directory, "--toolkit-install-dir", "TOOLKIT_INSTALL_DIR");
	bool container;

	if (!is_process_of_root(look, directory, &container))
		return;
	if (!root)
		root = plugin_setting(look, directory, "--root", "ROOT");
	installer = graft_arena_push(look->arena, &cluster->installers, &cluster->n_installers, sizeof(*installer));
	if (installer)
		*installer = (struct graft_health_installer){ .pid = (uint32_t)strtoul(pid, NULL, 10),
							      .container = container,
							      .directory = root ? root : INSTALL_DIR };
}

static void look_at_programs_of_cluster(struct graft_health_look *look)
{
	const char **names, *text;
	size_t n, length;

	if (graft_health_list(look, "/proc", &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		const char *directory = graft_arena_printf(look->scratch, "/proc/%s", names[i]);
		const char *path = directory ? graft_arena_printf(look->scratch, "%s/comm", directory) : NULL;

		if (!isdigit((unsigned char)names[i][0]) || !path ||
		    graft_root_read(look->host, path, GRAFT_SOURCE_FILE_MAX, look->scratch, &text, &length) < 0)
			continue;
		if (strcmp(text, PLUGIN_NAME "\n") == 0 && is_program(look, directory, "nvidia-device-plugin"))
			add_device_plugin(look, names[i], directory);
		if ((strcmp(text, INSTALLER_NAME "\n") == 0 || strcmp(text, INSTALLER_LINK "\n") == 0) &&
		    is_program(look, directory, INSTALLER))
			add_installer(look, names[i], directory);
		look->health->cluster.discovers |= strcmp(text, DISCOVERY_NAME "\n") == 0 &&
						   is_program(look, directory, "gpu-feature-discovery");
	}
}

/* --- specs, feature discovery, operator --- */

static void look_at_plugin_specs(struct graft_health_look *look)
{
	struct graft_health_cluster *cluster = &look->health->cluster;
	const char **names;
	size_t n;

	if (graft_health_list(look, CDI_DIRECTORY, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (graft_starts_with(names[i], "k8s.") && strstr(names[i], "nvidia.com"))
			push_cluster_text(look, &cluster->plugin_specs, &cluster->n_plugin_specs,
					  graft_arena_printf(look->scratch, CDI_DIRECTORY "/%s", names[i]));
	}
}

static void look_at_operator(struct graft_health_look *look)
{
	struct graft_health_cluster *cluster = &look->health->cluster;
	const char **names;
	size_t n;

	if (graft_health_list(look, VALIDATIONS, &names, &n) < 0)
		return;
	cluster->has_operator = true;
	for (size_t i = 0; i < n; i++)
		push_cluster_text(look, &cluster->validations, &cluster->n_validations, names[i]);
}

/* --- toolkits --- */

static bool has_toolkit(const struct graft_health_cluster *cluster, const char *directory)
{
	for (size_t i = 0; i < cluster->n_toolkits; i++) {
		if (strcmp(cluster->toolkits[i].directory, directory) == 0)
			return true;
	}
	return false;
}

static void look_at_toolkit(struct graft_health_look *look, const char *directory)
{
	static const char *const parts[] = { "nvidia-container-runtime", "nvidia-container-runtime-hook",
					     "nvidia-cdi-hook", "nvidia-ctk",
					     ".config/nvidia-container-runtime/config.toml" };
	struct graft_health_cluster *cluster = &look->health->cluster;
	struct graft_health_toolkit *toolkit;

	if (!directory || has_toolkit(cluster, directory) || !graft_health_exists(look, directory))
		return;
	toolkit = graft_arena_push(look->arena, &cluster->toolkits, &cluster->n_toolkits, sizeof(*toolkit));
	if (!toolkit)
		return;
	*toolkit = (struct graft_health_toolkit){ .directory = graft_arena_strdup(look->arena, directory) };
	for (size_t i = 0; i < GRAFT_COUNT(parts); i++) {
		const char *path = graft_arena_printf(look->scratch, "%s/%s", directory, parts[i]);

		if (path && !graft_health_exists(look, path))
			push_cluster_text(look, &toolkit->missing, &toolkit->n_missing, parts[i]);
	}
}

/* Toolkits of installers, and those that engines name: the directory always has the same name. */
static void look_at_toolkits(struct graft_health_look *look)
{
	const struct graft_health *health = look->health;

	look_at_toolkit(look, INSTALL_DIR "/" TOOLKIT_NAME);
	for (size_t i = 0; i < health->cluster.n_installers; i++)
		look_at_toolkit(look, graft_arena_printf(look->scratch, "%s/" TOOLKIT_NAME,
							 health->cluster.installers[i].directory));
	for (size_t i = 0; i < health->n_engines; i++) {
		for (size_t k = 0; k < health->engines[i].n_runtimes; k++) {
			const char *path = health->engines[i].runtimes[k].path;
			const char *directory = path && path[0] == '/' ? graft_path_directory(path, look->scratch)
								       : NULL;

			if (directory && strcmp(graft_path_name(directory), TOOLKIT_NAME) == 0)
				look_at_toolkit(look, directory);
		}
	}
}

static void look_at_labels(struct graft_health_look *look)
{
	struct graft_health_cluster *cluster = &look->health->cluster;
	const char *text;
	size_t length;

	if (graft_health_read_file(look, FEATURES, &text, &length) < 0)
		return;
	cluster->labels_file = FEATURES;
	for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
		cluster->n_labels += line[strcspn(line, "=\n")] == '=' && line[0] != '#';
}

void graft_health_look_cluster(struct graft_health_look *look)
{
	if (!look->options->look_at_cluster)
		return;
	look->health->cluster.asked = true;
	look_at_distribution(look);
	look_at_kubelet(look);
	if (!look->health->cluster.directory)
		return;
	look_at_folders(look);
	look_at_record(look);
	look_at_programs_of_cluster(look);
	look_at_plugin_specs(look);
	look_at_operator(look);
	look_at_toolkits(look);
	look_at_labels(look);
}
