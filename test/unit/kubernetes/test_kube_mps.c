/* SPDX-License-Identifier: Apache-2.0 */
/* Which MPS daemons a node runs, for offers that a table makes. */
#include <stdio.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "kubernetes/kube_mps.h"

static struct graft_arena *arena;
static struct graft_gpu gpus[3];
static struct graft_nvml_gpu nvml_gpus[3];
static struct graft_inventory inventory;
static struct graft_kept_facts kept;
static struct graft_kube_device devices[16];
static struct graft_kube_resource resources[3];
static struct graft_kube_offer offer;

static const char *const ids[] = { "00000000:10:00.0", "00000000:11:00.0", "00000000:12:00.0" };
static const char *const uuids[] = { "GPU-0", "GPU-1", "GPU-2" };

/* Adds the replicas of a GPU to the last resource. */
static void add_replicas(uint32_t gpu, uint32_t replicas)
{
	static const char *const indexes[] = { "0", "1", "2" };
	struct graft_kube_resource *resource = &resources[offer.n_resources - 1];

	for (uint32_t i = 0; i < (replicas < 4 ? replicas : 4); i++)
		resource->devices[resource->n_devices++] = (struct graft_kube_device){ .base_id = uuids[gpu],
										       .index = indexes[gpu],
										       .replicas = replicas,
										       .gpu = gpu,
										       .bus_id = ids[gpu] };
}

static void add_resource(const char *name, enum graft_kube_sharing_strategy sharing)
{
	struct graft_kube_device *first = devices;

	if (offer.n_resources > 0)
		first = resources[offer.n_resources - 1].devices + resources[offer.n_resources - 1].n_devices;
	resources[offer.n_resources++] =
	    (struct graft_kube_resource){ .name = name, .sharing = sharing, .devices = first };
}

static int setup(void **state)
{
	arena = graft_arena_new((size_t)16 << 20);
	for (uint32_t i = 0; i < 3; i++) {
		gpus[i] = (struct graft_gpu){ .index = i, .bus_id = ids[i], .uuid = { uuids[i], "procfs" } };
		nvml_gpus[i] = (struct graft_nvml_gpu){ .index = i,
							.bus_id = ids[i],
							.has_memory = true,
							.memory_mib = 10001 * (i + 1),
							.has_arch = true,
							.arch_major = 8 };
	}
	inventory = (struct graft_inventory){ .gpus = gpus, .n_gpus = 3 };
	kept = (struct graft_kept_facts){ .nvml = { .gpus = nvml_gpus, .n_gpus = 3 } };
	offer = (struct graft_kube_offer){ .resources = resources };
	return 0;
}

static int teardown(void **state)
{
	arena = graft_arena_free(arena);
	return 0;
}

/* The plan as "nvidia.com/gpu 25% GPU-0=2500 GPU-1=5000; ..." or the message. */
static const char *plan(void)
{
	static char text[512];
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kube_mps mps;
	size_t at = 0;

	text[0] = '\0';
	if (graft_kube_mps_plan(&offer, &inventory, &kept, arena, &mps, &err) < 0) {
		assert_int_equal(err.status, GRAFT_INVALID);
		return graft_error_text(&err, text, sizeof(text));
	}
	for (size_t i = 0; i < mps.n_daemons; i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %u%%", i > 0 ? "; " : "",
				       mps.daemons[i].resource, mps.daemons[i].percent);
		for (size_t k = 0; k < mps.daemons[i].n_gpus; k++)
			at += (size_t)snprintf(text + at, sizeof(text) - at, " %s=%u", mps.daemons[i].gpus[k].uuid,
					       mps.daemons[i].gpus[k].mib);
	}
	return text;
}

static void test_plans(void **state)
{
	assert_string_equal(plan(), "");
	/* What is shared otherwise, or by nobody, has no daemon. */
	add_resource("nvidia.com/gpu", GRAFT_KUBE_TIME_SLICING);
	add_replicas(0, 4);
	assert_string_equal(plan(), "");
	resources[0].sharing = GRAFT_KUBE_MPS;
	assert_string_equal(plan(), "nvidia.com/gpu 25% GPU-0=2500");
	/* Beside a whole one; another number of replicas. */
	add_replicas(1, 1);
	add_replicas(2, 3);
	assert_string_equal(plan(), "nvidia.com/gpu 25% GPU-0=2500 GPU-2=10001");
	add_resource("nvidia.com/gpu.half", GRAFT_KUBE_MPS);
	add_replicas(1, 2);
	assert_string_equal(plan(), "nvidia.com/gpu 25% GPU-0=2500 GPU-2=10001; nvidia.com/gpu.half 50% GPU-1=10001");
	/* Memory that NVML does not say is not bounded. */
	nvml_gpus[0].has_memory = false;
	kept.nvml.n_gpus = 2;
	assert_string_equal(plan(), "nvidia.com/gpu 25% GPU-0=0 GPU-2=0; nvidia.com/gpu.half 50% GPU-1=10001");
}

static void test_refusals(void **state)
{
	add_resource("nvidia.com/gpu", GRAFT_KUBE_MPS);
	add_replicas(1, 48);
	assert_string_equal(plan(), "nvidia.com/gpu 2% GPU-1=416");
	nvml_gpus[1].arch_major = 6;
	assert_string_equal(plan(),
			    "nvidia.com/gpu: MPS serves at most 16 programs on GPU 1, but 48 replicas are configured");
	nvml_gpus[1].has_arch = false;
	assert_string_equal(plan(), "nvidia.com/gpu 2% GPU-1=416");
	devices[0].replicas = 49;
	assert_string_equal(plan(),
			    "nvidia.com/gpu: MPS serves at most 48 programs on GPU 1, but 49 replicas are configured");
	devices[0].replicas = 2;
	gpus[1].mig_enabled = true;
	assert_string_equal(plan(),
			    "nvidia.com/gpu: MPS is configured, but GPU 1 is in MIG mode: MPS shares whole GPUs");
	gpus[1].mig_enabled = false;
	devices[0].mig = true;
	assert_string_equal(plan(),
			    "nvidia.com/gpu: MPS is configured, but GPU 1 is in MIG mode: MPS shares whole GPUs");
	devices[0].mig = false;
	devices[0].bus_id = NULL;
	assert_string_equal(plan(), "nvidia.com/gpu: MPS cannot share device 'GPU-1': it is not a PCI GPU");
}

static void test_record(void **state)
{
	struct graft_buffer text = { .max = 0 };
	struct graft_kube_mps_daemon again;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_kube_mps mps;

	add_resource("nvidia.com/gpu", GRAFT_KUBE_MPS);
	add_replicas(0, 4);
	assert_int_equal(graft_kube_mps_plan(&offer, &inventory, &kept, arena, &mps, &err), 0);
	graft_record_write(&graft_kube_mps_daemon_record, &mps.daemons[0], &text);
	assert_int_equal(graft_record_read(&graft_kube_mps_daemon_record, text.bytes, text.length, arena, &again, &err),
			 0);
	assert_true(graft_record_equal(&graft_kube_mps_daemon_record, &mps.daemons[0], &again, NULL, 0));
	graft_buffer_done(&text);
}

static void test_allocation(void **state)
{
	struct graft_kube_mps mps;

	add_resource("nvidia.com/gpu", GRAFT_KUBE_MPS);
	add_replicas(0, 4);
	add_replicas(1, 4);
	assert_true(allocation_each(own, err, graft_kube_mps_plan(&offer, &inventory, &kept, own, &mps, &err)) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_plans, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_record, setup, teardown),
		cmocka_unit_test_setup_teardown(test_allocation, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
