/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_resource: the methods of the device plugin's interface for one resource. src/kubernetes
 * decides what a container gets; this file puts it into messages.
 */
#include <device_plugin.pb-c.h>
#include <errno.h>
#include <plugin_registration.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "daemon/plugin.h"
#include "kubernetes/kube_allocate.h"
#include "kubernetes/kube_preferred.h"

#define MAX_ANSWER_MEMORY ((size_t)64 << 20)

/* --- devices --- */

const struct health_fault *plugin_device_fault(const struct plugin *plugin, const struct graft_kube_device *device)
{
	return health_find(&plugin->health, device->bus_id, device->mig, device->gi, device->ci);
}

bool plugin_is_healthy(const struct plugin_resource *resource, const struct graft_kube_device *device)
{
	return !(resource->no_mps && device->replicas > 1) && !plugin_device_fault(resource->plugin, device) &&
	       !pod_leases_is_busy(&resource->plugin->leases, device);
}

struct device_message {
	V1beta1__Device device;
	V1beta1__TopologyInfo topology;
	V1beta1__NUMANode node, *nodes[1];
};

static void fill_device_message(const struct plugin_resource *resource, const struct graft_kube_device *device,
				struct device_message *message)
{
	v1beta1__device__init(&message->device);
	message->device.id = graft_rpc_read_only(device->id);
	message->device.health = graft_rpc_read_only(plugin_is_healthy(resource, device) ? "Healthy" : "Unhealthy");
	if (!device->has_numa_node)
		return;
	v1beta1__numanode__init(&message->node);
	v1beta1__topology_info__init(&message->topology);
	message->node.id = device->numa_node;
	message->nodes[0] = &message->node;
	message->topology.n_nodes = 1;
	message->topology.nodes = message->nodes;
	message->device.topology = &message->topology;
}

/* The list of all devices, in the arena; NULL: out of memory. */
static V1beta1__ListAndWatchResponse *device_list_message(const struct plugin_resource *resource,
							  struct graft_arena *arena)
{
	size_t n = resource->offer->n_devices;
	V1beta1__ListAndWatchResponse *list = graft_arena_alloc(arena, sizeof(*list));
	struct device_message *messages = graft_arena_alloc(arena, n * sizeof(*messages));
	V1beta1__Device **devices = graft_arena_alloc(arena, n * sizeof(*devices));

	if (!list || !messages || !devices)
		return NULL;
	v1beta1__list_and_watch_response__init(list);
	for (size_t i = 0; i < n; i++) {
		fill_device_message(resource, &resource->offer->devices[i], &messages[i]);
		devices[i] = &messages[i].device;
	}
	list->n_devices = n;
	list->devices = devices;
	return list;
}

bool plugin_resource_is_watched(const struct plugin_resource *resource)
{
	for (size_t i = 0; i < PLUGIN_WATCHERS; i++) {
		if (resource->watchers[i])
			return true;
	}
	return false;
}

void plugin_resource_push(struct plugin_resource *resource)
{
	struct graft_arena *arena = graft_arena_new(MAX_ANSWER_MEMORY);
	V1beta1__ListAndWatchResponse *list = arena ? device_list_message(resource, arena) : NULL;
	struct graft_error err = { .status = GRAFT_OK };

	for (size_t i = 0; i < PLUGIN_WATCHERS; i++) {
		if (resource->watchers[i] && (!list || graft_rpc_push(resource->watchers[i], &list->base, &err) < 0))
			graft_warn(resource->plugin->log, "%s: cannot send an update to the kubelet: %s",
				   resource->offer->name, list ? err.msg : "out of memory");
	}
	(void)graft_arena_free(arena);
}

static void serve_watch(void *service, struct graft_rpc_call *call, const ProtobufCMessage *request)
{
	struct plugin_resource *resource = service;
	struct graft_arena *arena = graft_arena_new(MAX_ANSWER_MEMORY);
	V1beta1__ListAndWatchResponse *list = arena ? device_list_message(resource, arena) : NULL;
	size_t i = 0;

	(void)request;
	while (i < PLUGIN_WATCHERS && resource->watchers[i])
		i++;
	if (!list || i == PLUGIN_WATCHERS) {
		graft_rpc_refuse(call, GRAFT_RPC_RESOURCE_EXHAUSTED, list ? "too many streams" : "out of memory");
	} else if (graft_rpc_reply(call, &list->base)) {
		resource->watchers[i] = call;
		(void)clock_gettime(CLOCK_REALTIME, &resource->watched_since);
		graft_info(resource->plugin->log, "%s: the kubelet watches %zu devices", resource->offer->name,
			   list->n_devices);
	}
	(void)graft_arena_free(arena);
}

static void watch_ended(void *service, struct graft_rpc_call *call)
{
	struct plugin_resource *resource = service;

	for (size_t i = 0; i < PLUGIN_WATCHERS; i++) {
		if (resource->watchers[i] == call)
			resource->watchers[i] = NULL;
	}
	if (!plugin_resource_is_watched(resource))
		plugin_register_stream_ended(resource);
}

/* --- the other methods --- */

static void serve_options(void *service, struct graft_rpc_call *call, const ProtobufCMessage *request)
{
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

	(void)service;
	(void)request;
	options.get_preferred_allocation_available = true;
	graft_rpc_reply(call, &options.base);
}

static void serve_prestart(void *service, struct graft_rpc_call *call, const ProtobufCMessage *request)
{
	V1beta1__Empty empty = V1BETA1__EMPTY__INIT;

	(void)service;
	(void)request;
	graft_rpc_reply(call, &empty.base);
}

static void refuse(struct plugin_resource *resource, struct graft_rpc_call *call, const struct graft_error *err)
{
	char text[sizeof(err->msg) + sizeof(err->ctx)];

	(void)graft_error_text(err, text, sizeof(text));
	graft_warn(resource->plugin->log, "%s: refused: %s", resource->offer->name, text);
	graft_rpc_refuse(call, GRAFT_RPC_UNKNOWN, text);
}

/* A random UUID, in its usual form. */
static int make_uuid(char text[37], struct graft_error *err)
{
	uint8_t b[16];

	if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
		return graft_fail_errno(err, errno, "cannot get random bytes");
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	(void)snprintf(text, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
		       b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
	return 0;
}

static int fill_pairs(const struct graft_kube_pair *pairs, size_t n, struct graft_arena *arena, size_t *ret_n,
		      V1beta1__Pair ***ret_messages)
{
	V1beta1__Pair *messages = graft_rpc_list(&v1beta1__pair__descriptor, n, arena, ret_messages);

	for (size_t i = 0; messages && i < n; i++) {
		messages[i].key = graft_rpc_read_only(pairs[i].name);
		messages[i].value = graft_rpc_read_only(pairs[i].value);
	}
	*ret_n = n;
	return messages ? 0 : -1;
}

/* Mounts, nodes and CDI devices. */
static int fill_files(const struct graft_kube_answer *answer, struct graft_arena *arena,
		      V1beta1__ContainerAllocateResponse *message)
{
	V1beta1__Mount *mounts = graft_rpc_list(&v1beta1__mount__descriptor, answer->n_mounts, arena, &message->mounts);
	V1beta1__DeviceSpec *devices = graft_rpc_list(&v1beta1__device_spec__descriptor, answer->n_devices, arena,
						      &message->devices);
	V1beta1__CDIDevice *names = graft_rpc_list(&v1beta1__cdidevice__descriptor, answer->n_cdi_devices, arena,
						   &message->cdi_devices);

	if (!mounts || !devices || !names)
		return -1;
	for (size_t i = 0; i < answer->n_mounts; i++) {
		mounts[i].container_path = graft_rpc_read_only(answer->mounts[i].container_path);
		mounts[i].host_path = graft_rpc_read_only(answer->mounts[i].host_path);
		mounts[i].read_only = answer->mounts[i].read_only;
	}
	for (size_t i = 0; i < answer->n_devices; i++) {
		devices[i].container_path = graft_rpc_read_only(answer->devices[i].container_path);
		devices[i].host_path = graft_rpc_read_only(answer->devices[i].host_path);
		devices[i].permissions = graft_rpc_read_only(answer->devices[i].permissions);
	}
	for (size_t i = 0; i < answer->n_cdi_devices; i++)
		names[i].name = graft_rpc_read_only(answer->cdi_devices[i]);
	message->n_mounts = answer->n_mounts;
	message->n_devices = answer->n_devices;
	message->n_cdi_devices = answer->n_cdi_devices;
	return 0;
}

static int answer_container(const struct plugin_resource *resource, const V1beta1__ContainerAllocateRequest *request,
			    struct graft_arena *arena, V1beta1__ContainerAllocateResponse *message,
			    struct graft_error *err)
{
	const struct plugin_node *node = resource->plugin->node;
	struct graft_kube_answer answer = { .n_envs = 0 };
	char uuid[37];

	(void)plugin_find_nodes(resource->plugin);
	if (make_uuid(uuid, err) < 0 ||
	    graft_kube_allocate(&node->config, node->facts.inventory, resource->offer,
				(const char *const *)request->devices_ids, request->n_devices_ids,
				graft_arena_strdup(arena, uuid), arena, &answer, err) < 0)
		return -1;
	if (fill_pairs(answer.envs, answer.n_envs, arena, &message->n_envs, &message->envs) < 0 ||
	    fill_pairs(answer.annotations, answer.n_annotations, arena, &message->n_annotations,
		       &message->annotations) < 0 ||
	    fill_files(&answer, arena, message) < 0)
		return graft_fail_memory(err);
	/* This comes last: a request that is refused for another reason must not leave a lease. */
	if (pod_leases_count(&resource->plugin->leases))
		return pod_leases_take(&resource->plugin->leases, resource->offer,
				       (const char *const *)request->devices_ids, request->n_devices_ids, err);
	return 0;
}

static void serve_allocate(void *service, struct graft_rpc_call *call, const ProtobufCMessage *message)
{
	const V1beta1__AllocateRequest *request = (const V1beta1__AllocateRequest *)message;
	struct plugin_resource *resource = service;
	V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;
	struct graft_arena *arena = graft_arena_new(MAX_ANSWER_MEMORY);
	struct graft_error err = { .status = GRAFT_OK };
	V1beta1__ContainerAllocateResponse *containers = NULL;
	size_t n = request->n_container_requests;
	int rc = 0;

	if (arena)
		containers = graft_rpc_list(&v1beta1__container_allocate_response__descriptor, n, arena,
					    &response.container_responses);
	if (!containers)
		rc = graft_fail_memory(&err);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = answer_container(resource, request->container_requests[i], arena, &containers[i], &err);
	response.n_container_responses = n;
	if (rc < 0)
		refuse(resource, call, &err);
	else
		graft_rpc_reply(call, &response.base);
	(void)graft_arena_free(arena);
}

static int prefer_for_container(const struct plugin_resource *resource,
				const V1beta1__ContainerPreferredAllocationRequest *request, struct graft_arena *arena,
				V1beta1__ContainerPreferredAllocationResponse *message, struct graft_error *err)
{
	const struct plugin_node *node = resource->plugin->node;
	const struct graft_kube_preference preference = {
		.available = (const char *const *)request->available_deviceids,
		.n_available = request->n_available_deviceids,
		.required = (const char *const *)request->must_include_deviceids,
		.n_required = request->n_must_include_deviceids,
		.size = request->allocation_size > 0 ? (uint32_t)request->allocation_size : 0,
	};
	const char *const *ids = NULL;

	if (graft_kube_prefer(&node->config, resource->offer, &node->facts.tree, &preference, arena, &ids, err) < 0)
		return -1;
	message->n_deviceids = preference.size;
	message->deviceids = graft_rpc_read_only(ids);
	return 0;
}

static void serve_prefer(void *service, struct graft_rpc_call *call, const ProtobufCMessage *message)
{
	const V1beta1__PreferredAllocationRequest *request = (const V1beta1__PreferredAllocationRequest *)message;
	struct plugin_resource *resource = service;
	V1beta1__PreferredAllocationResponse response = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
	struct graft_arena *arena = graft_arena_new(MAX_ANSWER_MEMORY);
	struct graft_error err = { .status = GRAFT_OK };
	V1beta1__ContainerPreferredAllocationResponse *containers = NULL;
	size_t n = request->n_container_requests;
	int rc = 0;

	if (arena)
		containers = graft_rpc_list(&v1beta1__container_preferred_allocation_response__descriptor, n, arena,
					    &response.container_responses);
	if (!containers)
		rc = graft_fail_memory(&err);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = prefer_for_container(resource, request->container_requests[i], arena, &containers[i], &err);
	response.n_container_responses = n;
	if (rc < 0)
		refuse(resource, call, &err);
	else
		graft_rpc_reply(call, &response.base);
	(void)graft_arena_free(arena);
}

/* --- registration by the kubelet's own search (SPEC kubernetes 4) --- */

static void serve_info(void *service, struct graft_rpc_call *call, const ProtobufCMessage *request)
{
	const struct plugin_resource *resource = service;
	char *versions[] = { graft_rpc_read_only("v1beta1") };
	Pluginregistration__PluginInfo info;

	(void)request;
	pluginregistration__plugin_info__init(&info);
	info.type = graft_rpc_read_only("DevicePlugin");
	info.name = graft_rpc_read_only(resource->offer->name);
	info.n_supported_versions = 1;
	info.supported_versions = versions;
	graft_rpc_reply(call, &info.base);
}

static void serve_status(void *service, struct graft_rpc_call *call, const ProtobufCMessage *message)
{
	const Pluginregistration__RegistrationStatus *status = (const Pluginregistration__RegistrationStatus *)message;
	Pluginregistration__RegistrationStatusResponse response =
	    PLUGINREGISTRATION__REGISTRATION_STATUS_RESPONSE__INIT;
	struct plugin_resource *resource = service;

	plugin_register_found(resource, status->plugin_registered);
	if (status->plugin_registered) {
		graft_info(resource->plugin->log, "%s: registered with the kubelet", resource->offer->name);
	} else {
		graft_warn(resource->plugin->log, "%s: the kubelet did not register it: %s", resource->offer->name,
			   status->error);
	}
	graft_rpc_reply(call, &response.base);
}

const struct graft_rpc_method plugin_methods[PLUGIN_METHODS] = {
	[PLUGIN_OPTIONS] = { "/v1beta1.DevicePlugin/GetDevicePluginOptions", &v1beta1__empty__descriptor, serve_options,
			     NULL },
	[PLUGIN_WATCH] = { "/v1beta1.DevicePlugin/ListAndWatch", &v1beta1__empty__descriptor, serve_watch,
			   watch_ended },
	[PLUGIN_PREFER] = { "/v1beta1.DevicePlugin/GetPreferredAllocation",
			    &v1beta1__preferred_allocation_request__descriptor, serve_prefer, NULL },
	[PLUGIN_ALLOCATE] = { "/v1beta1.DevicePlugin/Allocate", &v1beta1__allocate_request__descriptor, serve_allocate,
			      NULL },
	[PLUGIN_PRESTART] = { "/v1beta1.DevicePlugin/PreStartContainer",
			      &v1beta1__pre_start_container_request__descriptor, serve_prestart, NULL },
	[PLUGIN_INFO] = { "/pluginregistration.Registration/GetInfo", &pluginregistration__info_request__descriptor,
			  serve_info, NULL },
	[PLUGIN_STATUS] = { "/pluginregistration.Registration/NotifyRegistrationStatus",
			    &pluginregistration__registration_status__descriptor, serve_status, NULL },
};

static void count_call(void *service, const struct graft_rpc_method *method, enum graft_rpc_status status,
		       int64_t took_us)
{
	struct plugin_resource *resource = service;
	struct plugin_calls *calls = &resource->calls[method - plugin_methods];

	calls->answered += status == GRAFT_RPC_OK;
	calls->refused += status != GRAFT_RPC_OK;
	calls->took_us += took_us;
}

int plugin_resource_serve(struct plugin_resource *resource, struct graft_error *err)
{
	const struct graft_rpc_server_options options = {
		.methods = plugin_methods, .n_methods = PLUGIN_METHODS, .service = resource, .served = count_call
	};

	if (!resource->server)
		resource->server = graft_rpc_server_new(resource->plugin->loop, &options);
	if (!resource->server)
		return graft_fail_memory(err);
	return graft_rpc_server_listen(resource->server, resource->socket, err);
}

void plugin_resource_end(struct plugin_resource *resource)
{
	struct graft_rpc_server *server = resource->server;

	/* Streams that end with the server do not start another registration. */
	resource->server = NULL;
	graft_rpc_server_free(server);
	plugin_register_end(resource);
}
