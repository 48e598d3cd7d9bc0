/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_allocate: one function per row of the table in SPEC kubernetes 6.5, in its order.
 */
#include "kubernetes/kube_allocate.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "kubernetes/kube_tables.h"

#define VISIBLE_DEVICES "NVIDIA_VISIBLE_DEVICES"
#define MOUNTED_DEVICES "/var/run/nvidia-container-devices"
#define CHANNEL_PATH    "/dev/nvidia-caps-imex-channels/channel0"

static const struct graft_field pair_fields[] = {
	GRAFT_F_STRING(struct graft_kube_pair, name, true, "of the variable or annotation"),
	GRAFT_F_STRING(struct graft_kube_pair, value, true, "its value"),
};
static const struct graft_record pair_record = { "pair", sizeof(struct graft_kube_pair), pair_fields,
						 GRAFT_COUNT(pair_fields) };
static const struct graft_field mount_fields[] = {
	GRAFT_F_STRING(struct graft_kube_mount, container_path, true, "where it is mounted"),
	GRAFT_F_STRING(struct graft_kube_mount, host_path, true, "what is mounted"),
	GRAFT_F_BOOL(struct graft_kube_mount, read_only, "it cannot be written to"),
};
static const struct graft_record mount_record = { "mount", sizeof(struct graft_kube_mount), mount_fields,
						  GRAFT_COUNT(mount_fields) };
static const struct graft_field node_fields[] = {
	GRAFT_F_STRING(struct graft_kube_node, container_path, true, "where it appears"),
	GRAFT_F_STRING(struct graft_kube_node, host_path, true, "the host's node"),
	GRAFT_F_STRING(struct graft_kube_node, permissions, true, "letters of rwm"),
};
static const struct graft_record node_record = { "node", sizeof(struct graft_kube_node), node_fields,
						 GRAFT_COUNT(node_fields) };
static const struct graft_field answer_fields[] = {
	GRAFT_F_RECORDS(struct graft_kube_answer, envs, &pair_record, "variables"),
	GRAFT_F_RECORDS(struct graft_kube_answer, mounts, &mount_record, "mounts"),
	GRAFT_F_RECORDS(struct graft_kube_answer, devices, &node_record, "device nodes"),
	GRAFT_F_RECORDS(struct graft_kube_answer, annotations, &pair_record, "annotations"),
	GRAFT_F_STRINGS(struct graft_kube_answer, cdi_devices, "qualified names of CDI devices"),
};
const struct graft_record graft_kube_answer_record = { "answer", sizeof(struct graft_kube_answer), answer_fields,
						       GRAFT_COUNT(answer_fields) };

struct allocation {
	const struct graft_kube_config *config;
	const struct graft_inventory *inventory;
	const struct graft_kube_resource *resource;
	const char *const *ids;
	size_t n_ids;
	struct graft_arena *arena;
	struct graft_kube_answer *answer;
	/* The requested devices, each once, and their names for the container runtime. */
	const struct graft_kube_device **devices;
	const char **names;
	size_t n_devices;
	bool shared; /* one of them is a replica */
};

/*
 * If a list is full, the arena records the failure, and graft_kube_allocate() checks it at the end.
 */
static void add_kube_pair(struct allocation *allocation, struct graft_kube_pair **pairs, size_t *n, const char *name,
			  const char *value)
{
	struct graft_kube_pair *pair;

	for (size_t i = 0; i < *n; i++) {
		if (name && strcmp((*pairs)[i].name, name) == 0) {
			(*pairs)[i].value = value;
			return;
		}
	}
	pair = graft_arena_push(allocation->arena, pairs, n, sizeof(*pair));
	if (pair)
		*pair = (struct graft_kube_pair){ name, value };
}

static void add_env(struct allocation *allocation, const char *name, const char *value)
{
	add_kube_pair(allocation, &allocation->answer->envs, &allocation->answer->n_envs, name, value);
}

static void add_kube_mount(struct allocation *allocation, const char *container_path, const char *host_path)
{
	struct graft_kube_mount *mount = graft_arena_push(allocation->arena, &allocation->answer->mounts,
							  &allocation->answer->n_mounts, sizeof(*mount));

	if (mount)
		*mount = (struct graft_kube_mount){ container_path, host_path, false };
}

static const char *join_words(const char *const *words, size_t n, struct graft_arena *arena)
{
	const char *text = "";

	for (size_t i = 0; i < n && text; i++)
		text = i == 0 ? words[i] : graft_arena_printf(arena, "%s,%s", text, words[i]);
	return text;
}

/* --- what is asked for --- */

static int refuse_request(const struct allocation *allocation, enum graft_status status, struct graft_error *err,
			  const char *what)
{
	return graft_fail(err, status, 0, "invalid allocation request for \"%s\": invalid request: %s",
			  allocation->resource->name, what ? what : "");
}

static bool has_device_of(const struct allocation *allocation, const char *base_id)
{
	for (size_t i = 0; i < allocation->n_devices; i++) {
		if (strcmp(allocation->devices[i]->base_id, base_id) == 0)
			return true;
	}
	return false;
}

static int add_requested(struct allocation *allocation, const char *id, struct graft_error *err)
{
	const struct graft_kube_device *device = graft_kube_find_device(allocation->resource, id);
	struct graft_arena *arena = allocation->arena;
	bool index = allocation->config->flags.plugin.device_id_strategy == GRAFT_KUBE_ID_INDEX;
	const char *name;

	if (!device)
		return refuse_request(allocation, GRAFT_UNKNOWN_DEVICE, err,
				      graft_arena_printf(arena, "unknown device: %s", id));
	allocation->shared |= device->replicas > 1;
	if (has_device_of(allocation, device->base_id)) {
		if (allocation->config->flags.plugin.sharing_policy == GRAFT_KUBE_DISTINCT)
			return refuse_request(allocation, GRAFT_INVALID, err,
					      graft_arena_printf(arena,
								 "device %s would be given twice, which the allocation "
								 "policy 'distinct' forbids",
								 device->base_id));
		return 0;
	}
	name = index ? device->index : device->base_id;
	allocation->devices[allocation->n_devices] = device;
	allocation->names[allocation->n_devices++] = name;
	return 0;
}

static int take_request(struct allocation *allocation, struct graft_error *err)
{
	/* SECURITY: the variable would be empty, which a container runtime may take for unset. */
	if (allocation->n_ids == 0)
		return refuse_request(allocation, GRAFT_INVALID, err, "no device was requested");
	allocation->devices = graft_arena_list(allocation->arena, allocation->n_ids + 1, sizeof(*allocation->devices));
	allocation->names = graft_arena_list(allocation->arena, allocation->n_ids + 1, sizeof(*allocation->names));
	if (!allocation->devices || !allocation->names)
		return graft_fail_memory(err);
	for (size_t i = 0; i < allocation->n_ids; i++) {
		if (add_requested(allocation, allocation->ids[i], err) < 0)
			return -1;
	}
	if (allocation->shared && allocation->resource->fail_requests_greater_than_one && allocation->n_ids > 1)
		return refuse_request(allocation, GRAFT_INVALID, err,
				      graft_arena_printf(allocation->arena,
							 "maximum request size for shared resources is 1; found %zu",
							 allocation->n_ids));
	return 0;
}

bool kube_has_channel_node(const struct graft_inventory *inventory)
{
	for (size_t i = 0; i < inventory->n_imex; i++) {
		if (inventory->imex[i].channel == 0 && inventory->imex[i].node.present)
			return true;
	}
	return false;
}

bool kube_has_channel(const struct graft_kube_config *config, const struct graft_inventory *inventory)
{
	return config->imex.channels != 0 && (config->imex.required || kube_has_channel_node(inventory));
}

/* --- CDI --- */

static void add_cdi_name(struct allocation *allocation, const char *class_, const char *name)
{
	struct graft_kube_answer *answer = allocation->answer;
	const char *text = graft_arena_printf(allocation->arena, "%s/%s=%s", GRAFT_KUBE_CDI_VENDOR, class_, name);

	if (text && !graft_is_in(answer->cdi_devices, answer->n_cdi_devices, text))
		(void)graft_arena_push_string(allocation->arena, &answer->cdi_devices, &answer->n_cdi_devices, text);
}

static void add_cdi(struct allocation *allocation, const char *uuid)
{
	const struct graft_kube_flags *flags = &allocation->config->flags;
	struct graft_kube_answer *answer = allocation->answer;

	/* The specification for WSL2 has one device, which is named by its index. */
	for (size_t i = 0; i < allocation->n_devices; i++)
		add_cdi_name(allocation, "gpu",
			     allocation->inventory->platform == GRAFT_PLATFORM_WSL2 ? allocation->devices[i]->index
										    : allocation->names[i]);
	if (kube_has_channel(allocation->config, allocation->inventory))
		add_cdi_name(allocation, "imex-channel", "0");
	if (flags->gdrcopy)
		add_cdi_name(allocation, "gdrcopy", "all");
	if (flags->gds)
		add_cdi_name(allocation, "gds", "all");
	if (flags->mofed)
		add_cdi_name(allocation, "mofed", "all");
	if ((flags->plugin.device_list_strategy & GRAFT_KUBE_LIST_CDI_ANNOTATIONS) != 0)
		add_kube_pair(allocation, &answer->annotations, &answer->n_annotations,
			      graft_arena_printf(allocation->arena, "%snvidia-device-plugin_%s",
						 flags->plugin.cdi_annotation_prefix, uuid),
			      join_words(answer->cdi_devices, answer->n_cdi_devices, allocation->arena));
	if ((flags->plugin.device_list_strategy & GRAFT_KUBE_LIST_CDI_CRI) == 0)
		answer->n_cdi_devices = 0;
}

/* --- the other rows --- */

static void add_mps(struct allocation *allocation)
{
	const char *root = allocation->config->flags.mps_root, *name = allocation->resource->name;
	struct graft_arena *arena = allocation->arena;
	const char *pipe = graft_arena_printf(arena, "/mps/%s/pipe", name);

	add_env(allocation, "CUDA_MPS_PIPE_DIRECTORY", pipe);
	add_kube_mount(allocation, pipe, graft_arena_printf(arena, "%s/%s/pipe", root, name));
	add_kube_mount(allocation, "/dev/shm", graft_arena_printf(arena, "%s/shm", root));
}

static void add_gates(struct allocation *allocation)
{
	const struct graft_kube_flags *flags = &allocation->config->flags;

	if (flags->gdrcopy)
		add_env(allocation, "NVIDIA_GDRCOPY", "enabled");
	if (flags->gds)
		add_env(allocation, "NVIDIA_GDS", "enabled");
	if (flags->mofed)
		add_env(allocation, "NVIDIA_MOFED", "enabled");
}

static void add_visible_devices(struct allocation *allocation)
{
	add_env(allocation, VISIBLE_DEVICES, join_words(allocation->names, allocation->n_devices, allocation->arena));
	if (kube_has_channel(allocation->config, allocation->inventory))
		add_env(allocation, "NVIDIA_IMEX_CHANNELS", "0");
}

static void add_volume_mounts(struct allocation *allocation)
{
	add_env(allocation, VISIBLE_DEVICES, MOUNTED_DEVICES);
	for (size_t i = 0; i < allocation->n_devices; i++)
		add_kube_mount(allocation,
			       graft_arena_printf(allocation->arena, "%s/%s", MOUNTED_DEVICES, allocation->names[i]),
			       "/dev/null");
	if (kube_has_channel(allocation->config, allocation->inventory))
		add_kube_mount(allocation, MOUNTED_DEVICES "/imex/0", "/dev/null");
}

/* Adds a node below the dev root once, although MIG devices of a GPU share some. */
static void add_device_spec(struct allocation *allocation, const char *path)
{
	const struct graft_kube_flags *flags = &allocation->config->flags;
	const char *root = flags->dev_root[0] != '\0' ? flags->dev_root : flags->driver_root;
	struct graft_kube_answer *answer = allocation->answer;
	size_t length = strlen(root);
	struct graft_kube_node *node;

	for (size_t i = 0; i < answer->n_devices; i++) {
		if (strcmp(answer->devices[i].container_path, path) == 0)
			return;
	}
	while (length > 0 && root[length - 1] == '/')
		length--;
	node = graft_arena_push(allocation->arena, &answer->devices, &answer->n_devices, sizeof(*node));
	if (node)
		*node = (struct graft_kube_node){
			path, graft_arena_printf(allocation->arena, "%.*s%s", (int)length, root, path), "rw"
		};
}

const char *const graft_kube_common_nodes[] = { "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
						"/dev/nvidia-modeset" };
const size_t graft_n_kube_common_nodes = GRAFT_COUNT(graft_kube_common_nodes);

bool kube_has_node(const struct graft_inventory *inventory, const char *path)
{
	for (size_t i = 0; i < inventory->n_nodes; i++) {
		if (inventory->nodes[i].present && strcmp(inventory->nodes[i].path, path) == 0)
			return true;
	}
	return false;
}

static void add_device_specs(struct allocation *allocation)
{
	for (size_t i = 0; i < graft_n_kube_common_nodes; i++) {
		if (kube_has_node(allocation->inventory, graft_kube_common_nodes[i]))
			add_device_spec(allocation, graft_kube_common_nodes[i]);
	}
	for (size_t i = 0; i < allocation->n_devices; i++) {
		for (size_t j = 0; j < allocation->devices[i]->n_paths; j++)
			add_device_spec(allocation, allocation->devices[i]->paths[j]);
	}
	if (kube_has_channel(allocation->config, allocation->inventory))
		add_device_spec(allocation, CHANNEL_PATH);
}

int graft_kube_allocate(const struct graft_kube_config *config, const struct graft_inventory *inventory,
			const struct graft_kube_resource *resource, const char *const *ids, size_t n_ids,
			const char *uuid, struct graft_arena *arena, struct graft_kube_answer *ret_answer,
			struct graft_error *err)
{
	struct allocation allocation = { .config = config,
					 .inventory = inventory,
					 .resource = resource,
					 .ids = ids,
					 .n_ids = n_ids,
					 .arena = arena,
					 .answer = ret_answer };
	uint32_t strategies = config->flags.plugin.device_list_strategy;

	*ret_answer = (struct graft_kube_answer){ .n_envs = 0 };
	if (take_request(&allocation, err) < 0)
		return -1;
	if ((strategies & GRAFT_KUBE_LIST_CDI) != 0)
		add_cdi(&allocation, uuid);
	if (allocation.shared && resource->sharing == GRAFT_KUBE_MPS)
		add_mps(&allocation);
	add_gates(&allocation);
	if ((strategies & GRAFT_KUBE_LIST_ENVVAR) != 0)
		add_visible_devices(&allocation);
	if ((strategies & GRAFT_KUBE_LIST_VOLUME_MOUNTS) != 0)
		add_volume_mounts(&allocation);
	if (config->flags.plugin.pass_device_specs && (strategies & ~GRAFT_KUBE_LIST_CDI) != 0)
		add_device_specs(&allocation);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
