/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_register: reports a resource to the kubelet by a Register call, and again whenever the
 * kubelet has forgotten it. Knows nothing about devices.
 */
#include <device_plugin.pb-c.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "daemon/plugin.h"
#include "rpc/unix_socket.h"

/*
 * QUIRK: the kubelet's socket has its name before the kubelet listens there (SPEC kubernetes 15.4):
 * the first attempts are quick.
 */
#define FIRST_DELAY_MS 10
#define LAST_DELAY_MS  30000
/* The kubelet answers Register after it has connected to the plugin, which may take it 10 s. */
#define REGISTER_MS 15000
/* By then a kubelet that has registered a resource watches it. */
#define WATCH_MS 10000
/* The same if a stream has ended during the call: that may have been the stream of this call. */
#define WATCH_AGAIN_MS 500
/*
 * How often in a row the resource is left to a plugin that was there before the last stream, until
 * that plugin counts as having lost it.
 */
#define CONTESTED_TURNS 3
/*
 * Delay after which a resource of the registry is offered again if its stream has ended, or none
 * came.
 */
#define OFFER_MS 2000

static void register_now(void *arg);

static void try_later(struct plugin_resource *resource)
{
	graft_loop_set_timer(resource->plugin->loop, &resource->again, resource->delay_ms);
	resource->delay_ms = graft_loop_next_delay(resource->delay_ms, FIRST_DELAY_MS, LAST_DELAY_MS);
}

/* A kubelet that drops the stream at once, or never watches, is asked at growing intervals. */
static void check_watched(void *arg)
{
	struct plugin_resource *resource = arg;

	if (plugin_resource_is_watched(resource)) {
		resource->delay_ms = FIRST_DELAY_MS;
		return;
	}
	graft_warn(resource->plugin->log, "%s: registered, but the kubelet does not watch it; registering again",
		   resource->offer->name);
	resource->accepted = false;
	resource->again.due = register_now;
	try_later(resource);
}

static void register_answered(void *arg, enum graft_rpc_status status, const char *text, const ProtobufCMessage *answer)
{
	struct plugin_resource *resource = arg;

	(void)answer;
	resource->client = NULL;
	resource->accepted = status == GRAFT_RPC_OK;
	if (!resource->accepted) {
		graft_warn(resource->plugin->log, "%s: the kubelet did not register it: %s", resource->offer->name,
			   text);
		try_later(resource);
		return;
	}
	resource->n_registrations++;
	resource->again.due = check_watched;
	graft_loop_set_timer(resource->plugin->loop, &resource->again, resource->dropped ? WATCH_AGAIN_MS : WATCH_MS);
	graft_info(resource->plugin->log, "%s: registered with the kubelet", resource->offer->name);
}

static void register_now(void *arg)
{
	struct plugin_resource *resource = arg;
	V1beta1__DevicePluginOptions options;
	V1beta1__RegisterRequest message;
	const struct graft_rpc_request request = {
		.socket = resource->plugin->node->config.flags.plugin.kubelet_socket,
		.method = "/v1beta1.Registration/Register",
		.message = &message.base,
		.answer = &v1beta1__empty__descriptor,
		.deadline_ms = REGISTER_MS,
		.done = register_answered,
		.arg = resource,
	};
	struct graft_error err = { .status = GRAFT_OK };

	v1beta1__device_plugin_options__init(&options);
	v1beta1__register_request__init(&message);
	options.get_preferred_allocation_available = true;
	message.version = graft_rpc_read_only("v1beta1");
	message.endpoint = graft_rpc_read_only(strrchr(resource->socket, '/') + 1);
	message.resource_name = graft_rpc_read_only(resource->offer->name);
	message.options = &options;
	resource->dropped = false;
	resource->client = graft_rpc_call(resource->plugin->loop, &request, &err);
	if (!resource->client) {
		/* This is the usual state without a kubelet; a new one is noticed at once. */
		if (resource->delay_ms == FIRST_DELAY_MS)
			graft_info(resource->plugin->log, "%s: not registered yet, waiting for the kubelet: %s",
				   resource->offer->name, err.msg);
		try_later(resource);
	}
}

/*
 * Returns whether another plugin has registered the resource by Register: whether its usual socket,
 * made at *ret_made, accepts connections.
 */
static bool is_contested(const struct plugin_resource *resource, struct timespec *ret_made)
{
	auto_close int fd = -1;
	char path[PATH_MAX];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", resource->plugin->node->kubelet_folder, resource->offer->socket);
	*ret_made = (struct timespec){ .tv_sec = stat(path, &st) == 0 ? st.st_ctim.tv_sec : 0 };
	if (ret_made->tv_sec > 0)
		ret_made->tv_nsec = st.st_ctim.tv_nsec;
	fd = graft_unix_connect(path);
	if (fd >= 0 && !resource->contested)
		graft_warn(resource->plugin->log,
			   "%s: another device plugin, at %s, has taken over this resource; run only one on a node",
			   resource->offer->name, path);
	return fd >= 0;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_earlier(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/*
 * A plugin from before our last stream has lost the resource to us and must not get it back, even
 * if it still runs. This applies once to each plugin: if it takes the resource again, it keeps it.
 */
static bool is_overruled(struct plugin_resource *resource, const struct timespec *rival_made)
{
	if (!is_earlier(rival_made, &resource->watched_since) || is_same_time(rival_made, &resource->overruled_rival) ||
	    ++resource->n_contested <= CONTESTED_TURNS)
		return false;
	resource->overruled_rival = *rival_made;
	resource->n_contested = 0;
	graft_warn(resource->plugin->log,
		   "%s: the kubelet does not watch this resource, which the other device plugin had already lost: "
		   "offering it again",
		   resource->offer->name);
	return true;
}

/*
 * No kubelet watches a resource of the registry. A kubelet that has started since then finds its
 * socket there by itself; one that has not looks only at sockets that are new. A resource that
 * another plugin has belongs to that plugin while it runs: two plugins that keep taking it from
 * each other would not serve any kubelet.
 */
static void offer_again(void *arg)
{
	struct plugin_resource *resource = arg;
	struct graft_error err = { .status = GRAFT_OK };
	struct timespec rival_made;

	if (plugin_resource_is_watched(resource) || graft_rpc_server_is_replaced(resource->server))
		return;
	resource->contested = is_contested(resource, &rival_made);
	if (!resource->contested || is_overruled(resource, &rival_made)) {
		graft_debug(resource->plugin->log, "%s: recreating its socket, as the kubelet has not come back",
			    resource->offer->name);
		if (plugin_resource_serve(resource, &err) < 0)
			graft_warn(resource->plugin->log, "%s: %s", resource->offer->name, err.msg);
	}
	try_later(resource);
}

/*
 * Whatever happened to the socket in the registry: by then the kubelet watches it, or it is made
 * again.
 */
static void expect_stream(struct plugin_resource *resource)
{
	resource->delay_ms = OFFER_MS;
	resource->again = (struct graft_loop_timer){ .due = offer_again, .arg = resource };
	graft_loop_set_timer(resource->plugin->loop, &resource->again, WATCH_MS);
}

void plugin_register_found(struct plugin_resource *resource, bool accepted)
{
	resource->accepted = accepted;
	resource->n_registrations += accepted;
	if (accepted && resource->plugin->node->registry && !plugin_resource_is_watched(resource)) {
		graft_loop_clear_timer(&resource->again);
		expect_stream(resource);
	}
}

void plugin_register(struct plugin_resource *resource)
{
	plugin_register_end(resource);
	if (resource->plugin->node->config.flags.plugin.kubelet_socket[0] == '\0')
		return;
	if (resource->plugin->node->registry) {
		expect_stream(resource);
		return;
	}
	resource->delay_ms = FIRST_DELAY_MS;
	resource->again = (struct graft_loop_timer){ .due = register_now, .arg = resource };
	register_now(resource);
}

void plugin_register_end(struct plugin_resource *resource)
{
	graft_rpc_cancel(resource->client);
	resource->client = NULL;
	resource->accepted = false;
	graft_loop_clear_timer(&resource->again);
}

void plugin_register_stream_ended(struct plugin_resource *resource)
{
	if (!resource->server)
		return;
	graft_info(resource->plugin->log, "%s: the kubelet no longer watches it", resource->offer->name);
	if (resource->plugin->node->registry) {
		resource->delay_ms = OFFER_MS;
		resource->again.due = offer_again;
		resource->again.arg = resource;
		try_later(resource);
		return;
	}
	/* A waiting call will bring the next stream; one in progress may have brought this one. */
	resource->dropped = true;
	if (resource->client || !resource->accepted)
		return;
	resource->accepted = false;
	resource->again.due = register_now;
	try_later(resource);
}
