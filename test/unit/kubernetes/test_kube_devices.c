/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices of MIG layouts that no golden host has, and requests for several devices with every message; the golden test golden-kube has the rest.
 */
#include <stdio.h>
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "kubernetes/kube_allocate.h"

/* A host of GPUs with these profiles, one text for each GPU: "1g.5gb 1g.5gb", "" for MIG mode without a device, NULL without MIG. */
static struct graft_inventory *make_host(const char *const *layouts, size_t n)
{
	struct graft_inventory *inventory = graft_arena_alloc(arena, sizeof(*inventory));

	inventory->platform = GRAFT_PLATFORM_NATIVE;
	inventory->n_gpus = n;
	inventory->gpus = graft_arena_list(arena, n, sizeof(*inventory->gpus));
	for (size_t i = 0; i < n; i++) {
		struct graft_gpu *gpu = &inventory->gpus[i];

		gpu->index = (uint32_t)i;
		gpu->bus_id = graft_arena_printf(arena, "00000000:%02zx:00.0", i + 16);
		gpu->uuid.value = graft_arena_printf(arena, "GPU-%zu", i);
		gpu->node.path = graft_arena_printf(arena, "/dev/nvidia%zu", i);
		gpu->mig_enabled = layouts && layouts[i];
		for (const char *at = layouts && layouts[i] ? layouts[i] : ""; *at != '\0';) {
			struct graft_mig_device *mig = graft_arena_push(arena, &gpu->mig_devices, &gpu->n_mig_devices,
									sizeof(*mig));
			size_t length = strcspn(at, " ");

			mig->index = (uint32_t)gpu->n_mig_devices - 1;
			mig->gi = mig->index + 7;
			mig->uuid.value = graft_arena_printf(arena, "MIG-%zu-%u", i, mig->index);
			mig->profile.value = graft_arena_strndup(arena, at, length);
			mig->gi_node.path = graft_arena_printf(arena, "/dev/nvidia-caps/nvidia-cap%u", mig->gi);
			mig->ci_node.path = graft_arena_printf(arena, "/dev/nvidia-caps/nvidia-cap%u", mig->gi + 100);
			at += length + (at[length] == ' ');
		}
	}
	return inventory;
}

#define HOST(...)                                       \
	make_host((const char *const[]){ __VA_ARGS__ }, \
		  sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

static struct graft_kube_config config_of(const char *text)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kube_config config;

	graft_kube_config_default(&config);
	if (graft_kube_config_parse("config", text, strlen(text), NULL, arena, &config, &err) < 0)
		fail_msg("%s", err.msg);
	return config;
}

/* "NAME: ID ID; NAME: ID", or the error. */
static const char *offered(const char *config_text, const struct graft_inventory *inventory)
{
	struct graft_kube_config config = config_of(config_text);
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kube_offer offer;
	const char *text = "";

	if (graft_kube_offer(&config, inventory, NULL, NULL, arena, &offer, &err) < 0)
		return graft_arena_strdup(arena, err.msg);
	for (size_t i = 0; i < offer.n_resources; i++) {
		text = graft_arena_printf(arena, "%s%s%s:", text, i > 0 ? "; " : "", offer.resources[i].name);
		for (size_t j = 0; j < offer.resources[i].n_devices; j++)
			text = graft_arena_printf(arena, "%s %s", text, offer.resources[i].devices[j].id);
	}
	return text;
}

#define SINGLE "flags: {migStrategy: single}"
#define MIXED  "flags: {migStrategy: mixed}"

static void test_mig(void **state)
{
	assert_string_equal(offered(SINGLE, HOST("3g.20gb 3g.20gb", "3g.20gb")),
			    "nvidia.com/gpu: MIG-0-0 MIG-0-1 MIG-1-0");
	assert_string_equal(offered(SINGLE, HOST(NULL, NULL)), "nvidia.com/gpu: GPU-0 GPU-1");
	assert_string_equal(offered(SINGLE, HOST("3g.20gb", NULL)),
			    "all devices on the node must be configured with the same migEnabled value");
	assert_string_equal(offered(SINGLE, HOST("3g.20gb", "")), "device 1 has no MIG devices configured");
	assert_string_equal(offered(SINGLE, HOST("3g.20gb", "3g.20gb 1g.5gb")),
			    "more than one MIG device type present on node");
	assert_string_equal(offered(SINGLE, HOST("1g.10gb", "1g.10gb+me")),
			    "more than one MIG device type present on node");
	assert_string_equal(offered("flags: {}", HOST("3g.20gb", NULL)), "nvidia.com/gpu: GPU-0 GPU-1");
	assert_string_equal(
	    offered(MIXED, HOST("1g.10gb+me 1g.10gb", NULL, "")),
	    "nvidia.com/mig-1g.10gb.me: MIG-0-0; nvidia.com/mig-1g.10gb: MIG-0-1; nvidia.com/gpu: GPU-1");
	/* A split instance is left out, alone. */
	assert_string_equal(offered(MIXED, HOST("1c.3g.20gb 2c.3g.20gb 1g.5gb")), "nvidia.com/mig-1g.5gb: MIG-0-2");
	assert_string_equal(offered(MIXED, HOST("1c.3g.20gb")), "");
}

static void test_unknown(void **state)
{
	struct graft_inventory *inventory = HOST("1g.5gb 1g.5gb", NULL, NULL);

	inventory->gpus[0].mig_devices[0].uuid.value = NULL;
	inventory->gpus[1].excluded = true;
	inventory->gpus[2].uuid.value = NULL;
	assert_string_equal(offered(MIXED, inventory), "nvidia.com/mig-1g.5gb: MIG-0-1");
}

static void test_sharing(void **state)
{
	assert_string_equal(
	    offered("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}", HOST(NULL, NULL)),
	    "nvidia.com/gpu: GPU-0::0 GPU-0::1 GPU-1::0 GPU-1::1");
	assert_string_equal(offered("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, devices: [GPU-1], "
				    "rename: some}]}}",
				    HOST(NULL, NULL, NULL)),
			    "nvidia.com/gpu: GPU-0 GPU-2; nvidia.com/some: GPU-1::0 GPU-1::1");
	/* Shared as GPUs under `single`, by the index of a MIG device. */
	assert_string_equal(offered("{flags: {migStrategy: single}, sharing: {timeSlicing: {renameByDefault: true, "
				    "resources: [{name: gpu, replicas: 2, devices: [\"0:1\"]}]}}}",
				    HOST("3g.20gb 3g.20gb")),
			    "nvidia.com/gpu: MIG-0-0; nvidia.com/gpu.shared: MIG-0-1::0 MIG-0-1::1");
	/* The suffix may make a name too long; nothing is offered then. */
	assert_string_equal(
	    offered(
		"sharing: {timeSlicing: {renameByDefault: true, resources: [{name: mig-1g.5gb, replicas: 2}, {name: "
		"gpu, replicas: 2, rename: "
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}]}}",
		HOST(NULL)),
	    "nvidia.com/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: GPU-0::0 GPU-0::1");
}

static void test_places(void **state)
{
	struct graft_kube_config config = config_of("");
	struct graft_pci_place places[] = { { .has_numa_node = true, .numa_node = 1 }, { .has_numa_node = false } };
	const struct graft_pci_tree tree = { .gpus = places, .n_gpus = 2 };
	struct graft_inventory *inventory = HOST("1g.5gb", NULL);
	struct graft_error err = { .status = GRAFT_OK };
	const struct graft_kube_device *device;
	struct graft_kube_offer offer;

	config.flags.mig_strategy = GRAFT_KUBE_MIG_MIXED;
	assert_int_equal(graft_kube_offer(&config, inventory, &tree, NULL, arena, &offer, &err), 0);
	device = graft_kube_find_device(&offer.resources[0], "MIG-0-0");
	assert_non_null(device);
	assert_true(device->has_numa_node && device->numa_node == 1);
	assert_true(device->mig && device->gi == 7 && device->ci == 0);
	assert_int_equal(device->n_paths, 3);
	assert_string_equal(device->paths[2], "/dev/nvidia-caps/nvidia-cap107");
	assert_string_equal(offer.resources[0].socket, "nvidia-mig-1g.5gb.sock");
	assert_false(offer.resources[1].devices[0].has_numa_node);
	assert_null(graft_kube_find_device(&offer.resources[0], "GPU-0"));
}

/* What a container gets as NVIDIA_VISIBLE_DEVICES, or the error. */
static const char *answered(const char *config_text, const struct graft_inventory *inventory, const char *const *ids,
			    size_t n, struct graft_kube_answer *answer)
{
	struct graft_kube_config config = config_of(config_text);
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kube_offer offer;

	assert_int_equal(graft_kube_offer(&config, inventory, NULL, NULL, arena, &offer, &err), 0);
	if (graft_kube_allocate(&config, inventory, &offer.resources[0], ids, n, "U", arena, answer, &err) < 0)
		return graft_arena_strdup(arena, err.msg);
	for (size_t i = 0; i < answer->n_envs; i++) {
		if (strcmp(answer->envs[i].name, "NVIDIA_VISIBLE_DEVICES") == 0)
			return answer->envs[i].value;
	}
	return "";
}

#define IDS(...) (const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *)

static void test_requests(void **state)
{
	struct graft_inventory *inventory = HOST(NULL, NULL, NULL);
	struct graft_kube_answer answer;

	assert_string_equal(answered("", inventory, IDS("GPU-2", "GPU-0"), &answer), "GPU-2,GPU-0");
	assert_string_equal(
	    answered("flags: {plugin: {deviceIDStrategy: index}}", inventory, IDS("GPU-2", "GPU-0"), &answer), "2,0");
	assert_string_equal(
	    answered("", inventory, IDS("GPU-0", "GPU-7"), &answer),
	    "invalid allocation request for \"nvidia.com/gpu\": invalid request: unknown device: GPU-7");
	assert_string_equal(answered("flags: {migStrategy: mixed}", HOST("1g.5gb 1g.5gb"), IDS("MIG-0-1"), &answer),
			    "MIG-0-1");
	assert_string_equal(
	    answered("flags: {migStrategy: mixed, plugin: {deviceIDStrategy: index, deviceListStrategy: cdi-cri}}",
		     HOST("1g.5gb 1g.5gb"), IDS("MIG-0-1", "MIG-0-0"), &answer),
	    "");
	assert_int_equal(answer.n_cdi_devices, 2);
	assert_string_equal(answer.cdi_devices[0], "k8s.device-plugin.nvidia.com/gpu=0:1");
	assert_int_equal(answer.n_envs + answer.n_mounts + answer.n_devices + answer.n_annotations, 0);
	/* The kubelet never asks for nothing, but an empty list is no "all". */
	assert_string_equal(
	    answered("", inventory, NULL, 0, &answer),
	    "invalid allocation request for \"nvidia.com/gpu\": invalid request: no device was requested");
}

static void test_shared_requests(void **state)
{
	struct graft_inventory *inventory = HOST(NULL, NULL);
	struct graft_kube_answer answer;

	assert_string_equal(answered("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 3}]}}", inventory,
				     IDS("GPU-0::2", "GPU-1::0", "GPU-0::1"), &answer),
			    "GPU-0,GPU-1");
	assert_string_equal(
	    answered("sharing: {timeSlicing: {failRequestsGreaterThanOne: true, resources: [{name: gpu, "
		     "replicas: 3}]}}",
		     inventory, IDS("GPU-0::2", "GPU-1::0"), &answer),
	    "invalid allocation request for \"nvidia.com/gpu\": invalid request: maximum request size "
	    "for shared resources is 1; found 2");
	assert_string_equal(answered("{flags: {plugin: {sharedDevicesAllocationPolicy: distinct}}, sharing: "
				     "{timeSlicing: {resources: [{name: gpu, replicas: 3}]}}}",
				     inventory, IDS("GPU-0::2", "GPU-0::1"), &answer),
			    "invalid allocation request for \"nvidia.com/gpu\": invalid request: device GPU-0 would be "
			    "given twice, which the allocation policy 'distinct' forbids");
	/* A GPU beside shared ones has no MPS daemon. */
	assert_string_equal(answered("{flags: {mpsRoot: /m}, sharing: {mps: {resources: [{name: gpu, replicas: 3, "
				     "devices: [1]}]}}}",
				     inventory, IDS("GPU-0"), &answer),
			    "GPU-0");
	assert_int_equal(answer.n_mounts, 0);
	assert_string_equal(answered("{flags: {mpsRoot: /m}, sharing: {mps: {resources: [{name: gpu, replicas: 3, "
				     "devices: [1]}]}}}",
				     inventory, IDS("GPU-1::0"), &answer),
			    "GPU-1");
	assert_int_equal(answer.n_mounts, 2);
	assert_string_equal(answer.mounts[0].host_path, "/m/nvidia.com/gpu/pipe");
}

static void test_memory(void **state)
{
	static const char *const id = "GPU-0::1";
	struct graft_kube_config config = config_of(
	    "{flags: {plugin: {passDeviceSpecs: true, deviceListStrategy: "
	    "[envvar, volume-mounts, cdi-annotations]}}, sharing: {timeSlicing: "
	    "{resources: [{name: gpu, replicas: 2}]}}}");
	struct graft_inventory *inventory = HOST(NULL, NULL);

	for (int n = 1;; n++) {
		struct graft_arena *small = graft_arena_new((size_t)1 << 20);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_kube_offer offer;
		struct graft_kube_answer answer;
		int rc;

		assert_non_null(small);
		allocation_fail(n);
		rc = graft_kube_offer(&config, inventory, NULL, NULL, small, &offer, &err);
		rc = rc < 0 ? rc
			    : graft_kube_allocate(&config, inventory, &offer.resources[0], &id, 1, "U", small, &answer,
						  &err);
		(void)graft_arena_free(small);
		if (!allocation_reported(rc, &err))
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mig, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_unknown, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_sharing, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_places, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_requests, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_shared_requests, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_memory, arena_setup, arena_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
