/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes that the driver needs (SPEC ctk-and-cdi 1.7, 1.8, 6.8): from numbers to paths. */
#include <stdio.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "plan/driver_nodes.h"

/* Instance ids with gaps, as they are where a GPU is divided unevenly. */
static struct graft_mig_minor minors[] = {
	{ GRAFT_MIG_MINOR_CONFIG, -1, -1, -1, 1 }, { GRAFT_MIG_MINOR_MONITOR, -1, -1, -1, 2 },
	{ GRAFT_MIG_MINOR_GI, 0, 1, -1, 12 },      { GRAFT_MIG_MINOR_CI, 0, 1, 0, 13 },
	{ GRAFT_MIG_MINOR_GI, 0, 7, -1, 66 },      { GRAFT_MIG_MINOR_CI, 0, 7, 3, 70 },
	{ GRAFT_MIG_MINOR_GI, 1, 0, -1, 138 },     { GRAFT_MIG_MINOR_GI, 2, 0, -1, 273 },
};

static const struct graft_driver_devices whole = {
	.any = true,
	.has_nvidia = true,
	.has_uvm = true,
	.has_caps = true,
	.nvidia_major = 195,
	.uvm_major = 243,
	.caps_major = 235,
	.n_gpus = 2,
	.lists_mig = true,
	.mig_minors = minors,
	.n_mig_minors = GRAFT_COUNT(minors),
	.params = "",
};

typedef int plan_function(const struct graft_driver_devices *devices, struct graft_arena *arena,
			  struct graft_node **ret_nodes, size_t *ret_n, struct graft_error *err);

/* "PATH MAJOR:MINOR;" for each node, or the error. */
static void check(plan_function *plan, const struct graft_driver_devices *devices, const char *expected)
{
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_buffer text = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_node *nodes;
	size_t n;

	assert_non_null(arena);
	if (plan(devices, arena, &nodes, &n, &err) < 0) {
		assert_int_equal(err.status, GRAFT_NO_DRIVER);
		graft_buffer_string(&text, err.msg);
	} else {
		for (size_t i = 0; i < n; i++)
			graft_buffer_printf(&text, "%s %u:%u;", nodes[i].path, nodes[i].major, nodes[i].minor);
	}
	assert_string_equal(graft_buffer_text(&text), expected);
	graft_buffer_done(&text);
	graft_arena_free(arena);
}

static void test_control_nodes(void **state)
{
	struct graft_driver_devices devices = whole;

	check(graft_plan_control_nodes, &devices,
	      "/dev/nvidiactl 195:255;/dev/nvidia-modeset 195:254;/dev/nvidia-uvm 243:0;/dev/nvidia-uvm-tools 243:1;");
	devices.n_gpus = 0; /* makes no difference */
	devices.nvidia_major = 10;
	check(graft_plan_control_nodes, &devices,
	      "/dev/nvidiactl 10:255;/dev/nvidia-modeset 10:254;/dev/nvidia-uvm 243:0;/dev/nvidia-uvm-tools 243:1;");
	devices.has_uvm = false;
	check(graft_plan_control_nodes, &devices,
	      "failed to determine major: invalid device node: /proc/devices has no nvidia-uvm");
	devices.has_nvidia = false;
	check(graft_plan_control_nodes, &devices,
	      "failed to determine major: invalid device node: /proc/devices has no nvidia");
	devices.any = false;
	check(graft_plan_control_nodes, &devices, "failed to create devices info: no NVIDIA devices found");
}

#define CONTROL                                                                                           \
	"/dev/nvidia-modeset 195:254;/dev/nvidiactl 195:255;/dev/nvidia-uvm 243:0;/dev/nvidia-uvm-tools " \
	"243:1;"

static void test_all_nodes(void **state)
{
	struct graft_driver_devices devices = whole;

	check(graft_plan_driver_nodes, &devices,
	      CONTROL "/dev/nvidia-caps/nvidia-cap1 235:1;/dev/nvidia-caps/nvidia-cap2 235:2;"
		      "/dev/nvidia0 195:0;/dev/nvidia-caps/nvidia-cap12 235:12;/dev/nvidia-caps/nvidia-cap13 235:13;"
		      "/dev/nvidia-caps/nvidia-cap66 235:66;/dev/nvidia-caps/nvidia-cap70 235:70;"
		      "/dev/nvidia1 195:1;/dev/nvidia-caps/nvidia-cap138 235:138;");
	devices.n_gpus = 0;
	check(graft_plan_driver_nodes, &devices, "");
	devices.n_gpus = 1;
	devices.lists_mig = devices.has_caps = false;
	devices.n_mig_minors = 0;
	check(graft_plan_driver_nodes, &devices, CONTROL "/dev/nvidia0 195:0;");
	devices.lists_mig = true;
	check(graft_plan_driver_nodes, &devices, "missing required device major nvidia-caps");
	devices.has_uvm = false;
	check(graft_plan_driver_nodes, &devices, "missing required device major nvidia-uvm");
	devices.has_nvidia = false;
	check(graft_plan_driver_nodes, &devices, "missing required device major nvidia");
}

static void test_gpu_nodes(void **state)
{
	static const struct {
		const char *name;
		bool gpu;
	} rows[] = {
		{ "nvidia0", true },      { "nvidia15", true },    { "nvidia007", true }, { "nvidia", false },
		{ "nvidiactl", false },   { "nvidia-uvm", false }, { "nvidia0x", false }, { "nvidia-1", false },
		{ "nvidia 0", false },    { "nvidi0", false },     { "xnvidia0", false }, { "nvidia0/x", false },
		{ "nvidia-caps", false }, { "", false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "/dev/%s", rows[i].name);
		if (graft_is_gpu_node_name(rows[i].name) != rows[i].gpu || graft_is_gpu_node(path) != rows[i].gpu)
			fail_msg("%s", rows[i].name);
		assert_false(graft_is_gpu_node(rows[i].name));
	}
	assert_false(graft_is_gpu_node("/dev"));
	assert_false(graft_is_gpu_node("/dev/dri/nvidia0"));
	assert_false(graft_is_gpu_node("/x/dev/nvidia0"));
	assert_false(graft_is_gpu_node("/device/nvidia0"));
}

static void test_memory(void **state)
{
	bool failed = true;

	for (size_t max = 0; failed; max += 16) {
		struct graft_arena *arena = graft_arena_new(max);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_node *nodes;
		size_t n;

		failed = graft_plan_driver_nodes(&whole, arena, &nodes, &n, &err) < 0;
		assert_int_equal(err.status, failed ? GRAFT_NO_MEMORY : GRAFT_OK);
		graft_arena_free(arena);
	}
	allocation_fail(1);
	{
		struct graft_arena *arena = graft_arena_new((size_t)1 << 16);
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_node *nodes;
		size_t n;

		if (arena)
			assert_int_equal(graft_plan_control_nodes(&whole, arena, &nodes, &n, &err), -1);
		assert_true(allocation_failed());
		graft_arena_free(arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_control_nodes),
		cmocka_unit_test(test_all_nodes),
		cmocka_unit_test(test_gpu_nodes),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
