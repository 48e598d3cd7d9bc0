/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_container: the facts of one container: its config.json and the options that its engine
 * recorded, then, if it runs, its nodes, device rules, mounts and loader cache. Below its root,
 * everything is looked up from one descriptor; its bytes are parsed by a reader.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "apply/namespace/target.h"
#include "apply/oci/to_oci.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "doctor/container_case.h"
#include "formats/cdi/cdi.h"
#include "formats/procfs.h"
#include "image/inspect.h"
#include "image/loader_names.h"
#include "request/container.h"

#define CONFIG_MAX     ((size_t)16 << 20)
#define MOUNTINFO_MAX  ((size_t)32 << 20)
#define NAMES_MAX      4096u
#define PCI_CONFIG_MAX 4096u
#define NODES_MAX      1024u
#define LIBRARIES_MAX  16u
#define VOLUMES        "/var/run/nvidia-container-devices"
#define VISIBLE        "NVIDIA_VISIBLE_DEVICES="

struct look {
	const struct graft_case_options *options;
	const struct graft_root *host;
	const struct graft_found_container *found;
	struct graft_arena *arena;
	struct graft_case *one;
	/* Variables that do not come from config.json: Docker's record, or those of the process. */
	const char **env;
	size_t n_env;
	bool calls_cli; /* a hook runs nvidia-container-cli, as that of `ctr run --gpus` does */
};

static const char *case_error_text(struct look *look, const struct graft_error *err)
{
	char text[sizeof(err->msg) + sizeof(err->ctx)];

	return graft_arena_strdup(look->arena, graft_error_text(err, text, sizeof(text)));
}

/* ---- what it asked for ---- */

static void add_text(struct look *look, const char ***items, size_t *n, const char *text)
{
	if (text)
		(void)graft_arena_push_string(look->arena, items, n, text);
}

static struct graft_json_document *read_case_json(struct look *look, const char *directory, const char *name,
						  const char **ret_problem)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_json_document *document = NULL;
	const char *path = graft_arena_printf(look->arena, "%s/%s", directory, name), *text;
	size_t length;
	int rc = path ? graft_root_read_foreign(look->host, path, CONFIG_MAX, look->arena, &text, &length) : -ENOMEM;

	if (rc < 0)
		*ret_problem = graft_arena_printf(look->arena, "%s: %s", path ? path : name, strerror(-rc));
	else if (graft_json_document_parse_into(path, text, length, look->arena, &document, &err) < 0)
		*ret_problem = case_error_text(look, &err);
	return document;
}

static struct graft_json_node *root_of_case(const struct graft_json_document *document)
{
	return document ? graft_json_document_root(document) : NULL;
}

static bool is_gpu_node(const char *path)
{
	static const char *const prefixes[] = { "/dev/nvidia", "/dev/dxg", "/dev/nvhost", "/dev/nvmap", "/dev/nvgpu" };

	for (size_t i = 0; i < GRAFT_COUNT(prefixes); i++) {
		if (graft_starts_with(path, prefixes[i]))
			return true;
	}
	return false;
}

/* "libcuda.so.550.54.14": returns what follows ".so.", if it has a dot. NULL for another name. */
static const char *version_of_library(const char *name)
{
	static const char *const prefixes[] = { "libcuda.so.", "libnvidia-ml.so." };

	for (size_t i = 0; i < GRAFT_COUNT(prefixes); i++) {
		if (graft_starts_with(name, prefixes[i]) && strchr(name + strlen(prefixes[i]), '.'))
			return name + strlen(prefixes[i]);
	}
	return NULL;
}

static void read_variables(struct look *look, const char *const *env, size_t n)
{
	struct graft_case_request *asked = &look->one->asked;

	for (size_t i = 0; i < n; i++) {
		if (graft_starts_with(env[i], "NVIDIA_"))
			add_text(look, &asked->variables, &asked->n_variables, env[i]);
	}
}

/* {"Driver": "", "Count": -1, "DeviceIDs": ["0"], "Capabilities": [["gpu"]]} */
static void read_device_request(struct look *look, const struct graft_json_node *request)
{
	struct graft_case_request *asked = &look->one->asked;
	const char *driver = graft_json_node_string(graft_json_node_member(request, "Driver")), *ids = NULL, *id;
	bool cdi = driver && strcmp(driver, "cdi") == 0;
	int64_t count = 0;

	GRAFT_JSON_EACH(node, graft_json_node_member(request, "DeviceIDs")) {
		id = graft_json_node_string(node);
		if (!id)
			continue;
		if (cdi) {
			add_text(look, &asked->options, &asked->n_options,
				 graft_arena_printf(look->arena, "--device %s", id));
			add_text(look, &asked->devices, &asked->n_devices, id);
		} else {
			ids = graft_arena_printf(look->arena, "%s%s%s", ids ? ids : "", ids ? "," : "", id);
		}
	}
	if (cdi)
		return;
	(void)graft_json_node_i64(graft_json_node_member(request, "Count"), &count);
	if (!ids && count == 0)
		return;
	add_text(look, &asked->options, &asked->n_options,
		 ids         ? graft_arena_printf(look->arena, "--gpus device=%s", ids)
		 : count < 0 ? "--gpus all"
			     : graft_arena_printf(look->arena, "--gpus %lld", (long long)count));
	if (ids || count < 0)
		add_text(look, &look->env, &look->n_env,
			 graft_arena_printf(look->arena, VISIBLE "%s", ids ? ids : "all"));
}

static void read_docker_settings(struct look *look)
{
	auto_json_document struct graft_json_document *config = NULL, *host = NULL;
	struct graft_case_request *asked = &look->one->asked;
	const char *problem = NULL, *text;

	if (!look->found->settings)
		return;
	config = read_case_json(look, look->found->settings, "config.v2.json", &problem);
	host = read_case_json(look, look->found->settings, "hostconfig.json", &problem);
	text = graft_json_node_string(graft_json_node_at(root_of_case(config), "State.Error"));
	if (look->found->pid == 0 && text && text[0] != '\0')
		look->one->start_error = graft_arena_strdup(look->arena, text);
	GRAFT_JSON_EACH(node, graft_json_node_at(root_of_case(config), "Config.Env"))
		add_text(look, &look->env, &look->n_env, graft_json_node_string(node));
	GRAFT_JSON_EACH(node, graft_json_node_member(root_of_case(host), "DeviceRequests"))
		read_device_request(look, node);
	GRAFT_JSON_EACH(node, graft_json_node_member(root_of_case(host), "Devices")) {
		text = graft_json_node_string(graft_json_node_member(node, "PathOnHost"));
		if (text && is_gpu_node(text))
			add_text(look, &asked->options, &asked->n_options,
				 graft_arena_printf(look->arena, "--device %s", text));
	}
}

/* The devices of "nvidia-container-cli ... configure --device=0 ...". */
static void read_cli_hook(struct look *look, const struct graft_json_node *args)
{
	struct graft_case_request *asked = &look->one->asked;

	GRAFT_JSON_EACH(node, args) {
		const char *arg = graft_json_node_string(node);

		if (arg && strcmp(graft_path_name(arg), "nvidia-container-cli") == 0)
			look->calls_cli = true;
		if (arg && strcmp(arg, GRAFT_CDI_FILES_HOOK) == 0)
			look->one->late_mounts = "files of a CDI spec, by its hook";
		if (arg && look->calls_cli && graft_starts_with(arg, "--device="))
			add_text(look, &asked->devices, &asked->n_devices, arg + strlen("--device="));
	}
}

/* CDI specs have many hooks with the same program. */
static void add_case_hook(struct look *look, const char *stage, const char *path)
{
	struct graft_case_request *asked = &look->one->asked;
	const char *hook = graft_arena_printf(look->arena, "%s %s", stage, path);

	if (hook && !graft_is_in(asked->hooks, asked->n_hooks, hook))
		add_text(look, &asked->hooks, &asked->n_hooks, hook);
}

static void read_case_hooks(struct look *look, const struct graft_json_node *root)
{
	static const char *const stages[] = { "prestart", "createRuntime", "createContainer", "startContainer",
					      "poststart" };

	for (size_t i = 0; i < GRAFT_COUNT(stages); i++) {
		const struct graft_json_node *stage = graft_json_node_member(graft_json_node_member(root, "hooks"),
									     stages[i]);

		GRAFT_JSON_EACH(node, stage) {
			const char *path = graft_json_node_string(graft_json_node_member(node, "path"));
			bool called = look->calls_cli;

			read_cli_hook(look, graft_json_node_member(node, "args"));
			if (path && (graft_starts_with(graft_path_name(path), "nvidia-") || look->calls_cli != called))
				add_case_hook(look, stages[i], path);
		}
	}
}

static void read_spec_lists(struct look *look, const struct graft_oci_spec *spec)
{
	struct graft_case_request *asked = &look->one->asked;

	for (size_t i = 0; i < spec->n_annotations; i++) {
		const struct graft_oci_annotation *annotation = &spec->annotations[i];

		if (annotation->value && strcmp(annotation->key, GRAFT_OCI_LATE_MOUNTS) == 0)
			look->one->late_mounts = graft_arena_strdup(look->arena, annotation->value);
		if (annotation->value && (graft_starts_with(annotation->key, "cdi.k8s.io/") ||
					  strstr(annotation->key, "nvidia.com") != NULL))
			add_text(look, &asked->annotations, &asked->n_annotations,
				 graft_arena_printf(look->arena, "%s=%s", annotation->key, annotation->value));
	}
	for (size_t i = 0; i < spec->n_mounts; i++) {
		const char *destination = spec->mounts[i].destination;

		if (!destination)
			continue;
		if (graft_starts_with(destination, VOLUMES))
			add_text(look, &asked->mounts, &asked->n_mounts, destination);
		asked->n_driver_mounts += version_of_library(graft_path_name(destination)) != NULL;
	}
	for (size_t i = 0; i < spec->n_devices; i++) {
		if (spec->devices[i] && is_gpu_node(spec->devices[i]))
			add_text(look, &asked->nodes, &asked->n_nodes, spec->devices[i]);
	}
}

/* Interprets the request as a start of the container would. */
static void read_meaning(struct look *look, const struct graft_oci_spec *spec)
{
	struct graft_case_request *asked = &look->one->asked;
	struct graft_container container = { .wants_devices = false };
	struct graft_error err = { .status = GRAFT_OK };
	const char *visible = graft_oci_spec_env(spec, "NVIDIA_VISIBLE_DEVICES");

	if (graft_container_read(spec, look->options->config, true, NULL, look->arena, &container, &err) < 0) {
		asked->problem = case_error_text(look, &err);
		asked->wants = true;
		return;
	}
	asked->privileged = container.privileged;
	if (container.wants_devices) {
		asked->wants = true;
		asked->origin = container.origin_name;
		for (size_t i = 0; i < container.devices.n; i++) {
			if (!graft_is_in(asked->devices, asked->n_devices, container.devices.items[i]))
				add_text(look, &asked->devices, &asked->n_devices, container.devices.items[i]);
		}
	} else if (visible && visible[0] != '\0' && strcmp(visible, "void") != 0) {
		asked->ignored = graft_arena_printf(look->arena, VISIBLE "%s", visible);
	}
}

/*
 * If no file describes the container, as with LXC: the variables that its process was started with.
 */
static void read_process_variables(struct look *look)
{
	const char *path = graft_arena_printf(look->arena, "/proc/%lld/environ", (long long)look->found->pid), *text;
	size_t length;

	if (!path || graft_root_read(look->host, path, CONFIG_MAX, look->arena, &text, &length) < 0)
		return;
	for (const char *at = text; at < text + length; at += strlen(at) + 1) {
		if (strchr(at, '='))
			add_text(look, &look->env, &look->n_env, at);
	}
}

static void read_request(struct look *look)
{
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_case_request *asked = &look->one->asked;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_oci_spec spec = { .env = NULL };
	const char *visible;

	read_docker_settings(look);
	if (look->found->bundle)
		document = read_case_json(look, look->found->bundle, "config.json", &asked->problem);
	else if (!look->found->settings)
		read_process_variables(look);
	if (document) {
		read_case_hooks(look, root_of_case(document));
		if (graft_oci_spec_read(document, look->arena, &spec, &err) == 0)
			read_spec_lists(look, &spec);
		asked->known = asked->configured = true;
	}
	visible = graft_oci_spec_env(&spec, "NVIDIA_VISIBLE_DEVICES");
	asked->replaced = visible && strcmp(visible, "void") == 0 && (asked->n_nodes > 0 || asked->n_hooks > 0);
	if (look->n_env > 0 && (!document || asked->replaced)) {
		spec.env = look->env;
		spec.n_env = look->n_env;
		asked->known = true;
		asked->problem = NULL;
	}
	read_variables(look, spec.env, spec.n_env);
	read_meaning(look, &spec);
	asked->wants |= asked->replaced || asked->n_nodes > 0 || asked->n_options > 0 || look->calls_cli;
}

/* ---- by which way ---- */

static bool is_our_runtime(const char *runtime)
{
	return runtime && graft_starts_with(graft_path_name(runtime), "nvidia");
}

static bool has_prestart_hook(const struct look *look)
{
	const struct graft_case_request *asked = &look->one->asked;

	for (size_t i = 0; i < asked->n_hooks; i++) {
		const char *name = graft_path_name(asked->hooks[i]);

		if (strcmp(name, "nvidia-container-runtime-hook") == 0 || strcmp(name, "nvidia-container-toolkit") == 0)
			return true;
	}
	return look->calls_cli;
}

static enum graft_case_way find_way(const struct look *look)
{
	const struct graft_case_request *asked = &look->one->asked;
	const char *runtime = look->found->runtime;

	if (!asked->configured && asked->n_nodes == 0)
		return is_our_runtime(runtime) ? GRAFT_CASE_WAY_RUNTIME : GRAFT_CASE_WAY_UNKNOWN;
	if (has_prestart_hook(look))
		return GRAFT_CASE_WAY_HOOK;
	if (asked->replaced || asked->n_driver_mounts > 0)
		return runtime && !is_our_runtime(runtime) ? GRAFT_CASE_WAY_CDI : GRAFT_CASE_WAY_RUNTIME;
	if (is_our_runtime(runtime))
		return GRAFT_CASE_WAY_RUNTIME;
	return asked->n_nodes > 0 ? GRAFT_CASE_WAY_DEVICES : GRAFT_CASE_WAY_NONE;
}

static const char *find_mode(const struct look *look, enum graft_case_way way)
{
	const struct graft_case_request *asked = &look->one->asked;
	const char *runtime = look->found->runtime, *mode = look->options->config->runtime.mode;

	if (way == GRAFT_CASE_WAY_HOOK)
		return graft_mode_names[GRAFT_MODE_LEGACY];
	if (way != GRAFT_CASE_WAY_RUNTIME)
		return NULL;
	if (runtime && graft_ends_with(runtime, ".cdi"))
		return graft_mode_names[GRAFT_MODE_CDI];
	for (size_t i = 0; mode && i < GRAFT_MODE_MAX; i++) {
		if (strcmp(mode, graft_mode_names[i]) == 0)
			return graft_mode_names[i];
	}
	for (size_t i = 0; i < asked->n_devices; i++) {
		if (graft_cdi_is_qualified(asked->devices[i]))
			return graft_mode_names[GRAFT_MODE_CDI];
	}
	return graft_mode_names[look->options->health->inventory.platform == GRAFT_PLATFORM_TEGRA ? GRAFT_MODE_CSV
												  : GRAFT_MODE_JIT_CDI];
}

/* ---- what it got ---- */

static const struct graft_gpu *find_gpu(const struct look *look, const char *path)
{
	const struct graft_inventory *inventory = &look->options->health->inventory;

	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (inventory->gpus[i].node.path && strcmp(inventory->gpus[i].node.path, path) == 0)
			return &inventory->gpus[i];
	}
	return NULL;
}

static bool read_sysfs(const struct look *look, const char *pci, const char *name, const char **ret_bytes,
		       size_t *ret_length)
{
	const char *path = graft_arena_printf(look->arena, "/sys/bus/pci/devices/%s/%s", pci, name);

	return path && graft_root_read(look->host, path, PCI_CONFIG_MAX, look->arena, ret_bytes, ret_length) == 0;
}

/*
 * A function that has fallen off the bus reads as all ones, which is not the number of any vendor.
 * Reading its configuration wakes a GPU, so one that sleeps, and therefore is there, is left alone.
 */
static bool is_gpu_lost(const struct look *look, const struct graft_gpu *gpu)
{
	const char *pci = gpu->bus_id ? graft_pci_sysfs_name(gpu->bus_id, look->arena) : NULL, *bytes;
	size_t length;

	if (!pci ||
	    (read_sysfs(look, pci, "power/runtime_status", &bytes, &length) && graft_starts_with(bytes, "suspended")) ||
	    !read_sysfs(look, pci, "config", &bytes, &length) || length < 2)
		return false;
	return (unsigned char)bytes[0] == 0xff && (unsigned char)bytes[1] == 0xff;
}

/* The host's own /dev, or that of the driver's root. */
static bool find_host_node(const struct look *look, const char *path, struct stat *ret_stat)
{
	const char *root = look->options->config->cli.root, *below;

	if (graft_root_stat(look->host, path, ret_stat) == 0)
		return S_ISCHR(ret_stat->st_mode);
	below = root && root[0] == '/' ? graft_arena_printf(look->arena, "%s%s", root, path) : NULL;
	return below && graft_root_stat(look->host, below, ret_stat) == 0 && S_ISCHR(ret_stat->st_mode);
}

static void add_node(struct look *look, const struct graft_image_root *root, const char *path)
{
	struct graft_case_got *got = &look->one->got;
	const struct graft_gpu *gpu;
	struct graft_case_node *node;
	struct stat st;
	const char *char_link;

	for (size_t i = 0; i < got->n_nodes; i++) {
		if (strcmp(got->nodes[i].path, path) == 0)
			return;
	}
	if (got->n_nodes >= NODES_MAX)
		return;
	node = graft_arena_push(look->arena, &got->nodes, &got->n_nodes, sizeof(*node));
	if (!node)
		return;
	node->path = path;
	gpu = find_gpu(look, path);
	if (gpu) {
		node->gpu = gpu->uuid.value ? gpu->uuid.value : gpu->bus_id;
		node->gpu_lost = is_gpu_lost(look, gpu);
	}
	if (find_host_node(look, path, &st)) {
		node->on_host = true;
		node->host_major = major(st.st_rdev);
		node->host_minor = minor(st.st_rdev);
	}
	if (graft_image_root_stat(root, path, &st) == 0 && S_ISCHR(st.st_mode)) {
		node->present = true;
		node->major = major(st.st_rdev);
		node->minor = minor(st.st_rdev);
		char_link = graft_arena_printf(look->arena, "/dev/char/%u:%u", node->major, node->minor);
		node->has_link = char_link && graft_root_has(look->host, char_link, 0);
	}
}

static void add_node_directory(struct look *look, const struct graft_image_root *root, const char *directory)
{
	const char **names, *path;
	struct stat st;
	size_t n = 0;

	if (graft_image_list_names(root, directory, NAMES_MAX, look->arena, &names, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		path = graft_arena_printf(look->arena, "%s/%s", directory, names[i]);
		if (path && is_gpu_node(path) && graft_image_root_stat(root, path, &st) == 0 && S_ISCHR(st.st_mode))
			add_node(look, root, path);
	}
}

static void look_at_rules(struct look *look, const struct graft_target *target)
{
	struct graft_case_got *got = &look->one->got;
	auto_cgroup struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_device_rule *rules = graft_arena_list(look->arena, got->n_nodes, sizeof(*rules));
	enum graft_device_answer *answers = graft_arena_list(look->arena, got->n_nodes, sizeof(*answers));

	if (!rules || !answers)
		return;
	for (size_t i = 0; i < got->n_nodes; i++)
		rules[i] = (struct graft_device_rule){ got->nodes[i].major, got->nodes[i].minor, true, true };
	if (graft_cgroup_open(look->host->fd, target->pid, target->user_namespace, true, NULL, &cgroup, &err) < 0 ||
	    graft_cgroup_look(&cgroup, rules, got->n_nodes, NULL, answers, &err) < 0)
		got->cgroup_problem = case_error_text(look, &err);
	got->cgroup_version = (uint32_t)cgroup.version;
	got->cgroup = cgroup.path[0] != '\0' ? graft_arena_strdup(look->arena, cgroup.path) : NULL;
	got->scope = got->cgroup && strstr(got->cgroup, ".scope") != NULL;
	for (size_t i = 0; i < got->n_nodes && !got->cgroup_problem; i++)
		got->nodes[i].answer = got->nodes[i].present ? answers[i] : GRAFT_ANSWER_UNKNOWN;
}

static void add_library(struct look *look, const struct graft_image_root *root, const struct graft_mountinfo *row)
{
	struct graft_case_got *got = &look->one->got;
	const char *name = graft_path_name(row->mount_point), *version = version_of_library(name), *beside, *resolved;
	struct graft_case_library *library;

	if (!version || got->n_libraries >= LIBRARIES_MAX)
		return;
	for (size_t i = 0; i < got->n_libraries; i++) {
		if (strcmp(got->libraries[i].path, row->mount_point) == 0)
			return;
	}
	library = graft_arena_push(look->arena, &got->libraries, &got->n_libraries, sizeof(*library));
	if (!library)
		return;
	library->path = row->mount_point;
	library->version = version;
	library->deleted = graft_ends_with(row->root, "//deleted");
	library->soname = graft_arena_printf(look->arena, "%.*s1", (int)(version - name), name);
	beside = graft_arena_printf(look->arena, "%.*s%s", (int)(name - library->path), library->path,
				    library->soname ? library->soname : "");
	library->linked = beside && graft_image_root_resolve(root, beside, look->arena, &resolved, NULL) == 0;
}

static void look_at_case_mounts(struct look *look, const struct graft_image_root *root)
{
	const char *path = graft_arena_printf(look->arena, "/proc/%lld/mountinfo", (long long)look->found->pid), *text;
	struct graft_mountinfo *mounts;
	size_t length, n;

	if (!path || graft_root_read(look->host, path, MOUNTINFO_MAX, look->arena, &text, &length) < 0 ||
	    graft_procfs_mountinfo(text, length, look->arena, &mounts, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		add_library(look, root, &mounts[i]);
}

static void look_at_case_loader(struct look *look, const struct graft_image_root *root)
{
	struct graft_case_got *got = &look->one->got;
	struct graft_loader_names names = { .exists = false };
	struct graft_error err = { .status = GRAFT_OK };
	const char *asked[LIBRARIES_MAX];
	size_t n = 0;

	for (size_t i = 0; i < got->n_libraries; i++) {
		if (got->libraries[i].soname)
			asked[n++] = got->libraries[i].soname;
	}
	if (n == 0)
		return;
	if (graft_loader_names_ask(root, asked, n, look->arena, &names, &err) < 0) {
		got->cache_problem = case_error_text(look, &err);
		return;
	}
	got->has_cache = names.exists;
	if (names.exists && !names.understood)
		got->cache_problem = "it is damaged, or of an unknown format";
	for (size_t i = 0; i < got->n_libraries; i++)
		got->libraries[i].cached = graft_is_in(names.sonames, names.n_sonames, got->libraries[i].soname);
}

static void look_at_process_of_container(struct look *look)
{
	struct graft_case_got *got = &look->one->got;
	auto_target struct graft_target target = GRAFT_TARGET_INIT;
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_target_open_running((pid_t)look->found->pid, NULL, &target, &err) < 0) {
		got->problem = case_error_text(look, &err);
		return;
	}
	got->known = true;
	for (size_t i = 0; i < look->one->asked.n_nodes; i++)
		add_node(look, &target.root, look->one->asked.nodes[i]);
	add_node_directory(look, &target.root, "/dev");
	add_node_directory(look, &target.root, "/dev/nvidia-caps");
	add_node_directory(look, &target.root, "/dev/nvidia-caps-imex-channels");
	look_at_rules(look, &target);
	look_at_case_mounts(look, &target.root);
	look_at_case_loader(look, &target.root);
}

/* ---- all of it ---- */

static const char *find_driver_version(const struct graft_health *health)
{
	const struct graft_health_module *module = graft_health_find_module(health, "nvidia");

	if (module && module->loaded && module->version)
		return module->version;
	return health->inventory.proc_driver_nvidia ? health->inventory.driver_version.value : NULL;
}

int graft_case_collect(const struct graft_case_options *options, struct graft_arena *arena, struct graft_case *ret_case,
		       struct graft_error *err)
{
	auto_root struct graft_root host = GRAFT_ROOT_INIT;
	struct graft_found_container found;
	struct look look = { .options = options, .host = &host, .found = &found, .arena = arena, .one = ret_case };

	*ret_case = (struct graft_case){ .version = GRAFT_CASE_VERSION };
	if (graft_root_open(&host, options->host_root ? options->host_root : "/", err) < 0 ||
	    graft_container_find(&host, options->word, arena, &found, err) < 0)
		return -1;
	ret_case->engine = found.keeper;
	ret_case->id = found.id;
	ret_case->name = found.name;
	ret_case->pod = found.pod;
	ret_case->bundle = found.bundle;
	ret_case->runtime = found.runtime;
	ret_case->pid = (uint32_t)found.pid;
	ret_case->driver_version = find_driver_version(options->health);
	read_request(&look);
	ret_case->way = find_way(&look);
	ret_case->mode = find_mode(&look, ret_case->way);
	/* With another host root, the PID does not belong to one of our processes. */
	if (found.pid > 0 && !options->host_root)
		look_at_process_of_container(&look);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
