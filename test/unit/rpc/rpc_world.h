/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_world: a server with methods of the device plugin's interface, for the tests of its transport. */
#ifndef GRAFT_TEST_RPC_WORLD_H
#define GRAFT_TEST_RPC_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "rpc/server.h"
#include <device_plugin.pb-c.h>

#define WORLD_LIMIT_MS 10000 /* no test waits longer */

struct world {
	struct graft_loop loop;
	struct graft_rpc_server *server;
	struct graft_rpc_call *watcher; /* the stream that is open */
	int n_served, n_streams_ended;
	enum graft_rpc_status last_status;
	char directory[64], path[96];
};

/* Answers with as many bytes of '-' as the first id says; "fail TEXT" is refused, "mute" not answered. */
static void world_allocate(void *service, struct graft_rpc_call *call, const ProtobufCMessage *message)
{
	const V1beta1__AllocateRequest *request = (const V1beta1__AllocateRequest *)message;
	const char *id = "";
	V1beta1__Pair pair, *pairs[] = { &pair };
	V1beta1__ContainerAllocateResponse container = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
	V1beta1__ContainerAllocateResponse *containers[] = { &container };
	V1beta1__AllocateResponse answer = V1BETA1__ALLOCATE_RESPONSE__INIT;
	size_t size;
	char *value;

	if (request->n_container_requests > 0 && request->container_requests[0]->n_devices_ids > 0)
		id = request->container_requests[0]->devices_ids[0];
	if (strncmp(id, "fail ", 5) == 0) {
		graft_rpc_refuse(call, GRAFT_RPC_INVALID_ARGUMENT, id + 5);
		return;
	}
	if (strcmp(id, "mute") == 0)
		return;
	size = strtoul(id, NULL, 10);
	value = malloc(size + 1);
	if (!value)
		abort();
	memset(value, '-', size);
	value[size] = '\0';
	v1beta1__pair__init(&pair);
	pair.key = (char *)(uintptr_t) "value";
	pair.value = value;
	container.n_envs = 1;
	container.envs = pairs;
	answer.n_container_responses = 1;
	answer.container_responses = containers;
	graft_rpc_reply(call, &answer.base);
	free(value);
}

static void world_list(struct graft_rpc_call *call, const char *health, bool first)
{
	V1beta1__Device device, *devices[] = { &device };
	V1beta1__ListAndWatchResponse answer = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;

	v1beta1__device__init(&device);
	device.id = (char *)(uintptr_t) "GPU-0";
	device.health = (char *)(uintptr_t)health;
	answer.n_devices = 1;
	answer.devices = devices;
	if (first)
		graft_rpc_reply(call, &answer.base);
	else
		(void)graft_rpc_push(call, &answer.base, NULL);
}

static void world_watch(void *service, struct graft_rpc_call *call, const ProtobufCMessage *message)
{
	struct world *world = service;

	world->watcher = call;
	world_list(call, "Healthy", true);
}

static void world_watch_ended(void *service, struct graft_rpc_call *call)
{
	struct world *world = service;

	world->n_streams_ended++;
	if (world->watcher == call)
		world->watcher = NULL;
}

static void world_served(void *service, const struct graft_rpc_method *method, enum graft_rpc_status status,
			 int64_t took_us)
{
	struct world *world = service;

	if (took_us < 0 || !method)
		abort();
	world->n_served++;
	world->last_status = status;
}

static const struct graft_rpc_method world_methods[] = {
	{ "/v1beta1.DevicePlugin/Allocate", &v1beta1__allocate_request__descriptor, world_allocate, NULL },
	{ "/v1beta1.DevicePlugin/ListAndWatch", &v1beta1__empty__descriptor, world_watch, world_watch_ended },
};

static inline bool world_open(struct world *world, const struct graft_rpc_server_options *limits)
{
	struct graft_rpc_server_options options = limits ? *limits : (struct graft_rpc_server_options){ 0 };

	options.methods = world_methods;
	options.n_methods = GRAFT_COUNT(world_methods);
	options.service = world;
	options.served = world_served;
	*world = (struct world){ .directory = "/tmp/graft-rpc-XXXXXX" };
	if (!mkdtemp(world->directory))
		return false;
	(void)snprintf(world->path, sizeof(world->path), "%s/service.sock", world->directory);
	world->server = graft_rpc_server_new(&world->loop, &options);
	return world->server && graft_rpc_server_listen(world->server, world->path, NULL) == 0;
}

static inline void world_close(struct world *world)
{
	graft_rpc_server_free(world->server);
	graft_loop_done(&world->loop);
	(void)rmdir(world->directory);
}

/*
 * Turns the loop until the condition holds, or for WORLD_LIMIT_MS. One that reads, as hear(), may
 * hold only once.
 */
#define world_until(world, condition)                                                   \
	({                                                                              \
		int64_t end_ = graft_clock_ms() + WORLD_LIMIT_MS;                       \
		bool holds_;                                                            \
		while (!(holds_ = (condition)) && graft_clock_ms() < end_)              \
			assert_int_equal(graft_loop_turn(&(world)->loop, 50, NULL), 0); \
		holds_;                                                                 \
	})

/* A connection that is spoken to byte by byte. */
static inline int world_dial(struct world *world)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -1;
	if (graft_rpc_server_adopt(world->server, pair[1], NULL) < 0) {
		(void)close(pair[0]);
		return -1;
	}
	return pair[0];
}

#endif
