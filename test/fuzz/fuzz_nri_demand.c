/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any CreateContainer: of two GPUs the kubelet has given the first, and the container gets no node
 * of the second, whatever it requests.
 */
#include <nri.pb-c.h>
#include <string.h>

#include "daemon/nri_message.h"
#include "fuzz.h"
#include "rpc/message.h"

static void add_gpu(struct graft_inventory *inventory, const char *uuid, const char *bus_id, const char *node)
{
	struct graft_gpu *gpu = graft_arena_push(inventory->arena, &inventory->gpus, &inventory->n_gpus, sizeof(*gpu));

	if (!gpu)
		return;
	gpu->index = (uint32_t)inventory->n_gpus - 1;
	gpu->uuid.value = uuid;
	gpu->bus_id = bus_id;
	gpu->node = (struct graft_node){ .path = node, .major = 195, .minor = gpu->index, .present = true };
}

static void check_answer(const struct graft_nri_demand *demand, const struct graft_cdi_edits *edits,
			 struct graft_arena *arena)
{
	struct graft_error err = { .status = GRAFT_OK };

	for (size_t i = 0; demand->kind == GRAFT_NRI_DEVICES && i < edits->n_nodes; i++) {
		if (strcmp(edits->nodes[i].path, "/dev/nvidia1") == 0)
			__builtin_trap();
	}
	/* The policy names no namespace, and no kind is allowed. */
	if (demand->kind == GRAFT_NRI_NAMES && demand->names.n > 0)
		__builtin_trap();
	(void)nri_message_adjust(edits, arena, &err);
}

static void answer(const ProtobufCMessage *pod, const ProtobufCMessage *container, struct graft_inventory *inventory,
		   struct graft_arena *arena)
{
	static const char *given[] = { "GPU-a" };
	const struct graft_strings ids = { .items = given, .n = 1 };
	const struct graft_nri_host host = { .inventory = inventory };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_nri_answer edits = { .plan = NULL };
	struct graft_nri_policy policy = { .management_kind = "management.nvidia.com/gpu",
					   .own_namespace = "",
					   .hook_path = "/hook" };
	struct graft_nri_container view;
	struct graft_nri_demand demand;
	struct graft_config config;

	policy.config = &config;
	if (graft_config_defaults(NULL, arena, &config, &err) == 0 &&
	    nri_message_view(pod, container, arena, &view, &err) == 0 &&
	    graft_nri_read(&policy, &view, NULL, arena, &demand, &err) == 0) {
		if (graft_nri_decide(&policy, &host, &ids, &demand, NULL, arena, &edits, &err) == 0)
			check_answer(&demand, &edits.edits, arena);
		graft_nri_answer_done(&edits);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)32 << 20);
	struct graft_inventory *inventory = graft_inventory_new();
	const Nri__Pkg__Api__V1alpha1__CreateContainerRequest *request = NULL;

	if (arena && inventory && size < 65536)
		request = (const void *)graft_rpc_decode(&nri__pkg__api__v1alpha1__create_container_request__descriptor,
							 data, size, arena);
	if (request) {
		inventory->platform = GRAFT_PLATFORM_NATIVE;
		add_gpu(inventory, "GPU-a", "00000000:01:00.0", "/dev/nvidia0");
		add_gpu(inventory, "GPU-b", "00000000:02:00.0", "/dev/nvidia1");
		answer(request->pod ? &request->pod->base : NULL, request->container ? &request->container->base : NULL,
		       inventory, arena);
	}
	(void)graft_inventory_free(inventory);
	(void)graft_arena_free(arena);
	return 0;
}
