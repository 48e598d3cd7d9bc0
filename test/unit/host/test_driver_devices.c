/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel reports about the driver's devices, and the existing nodes, on a host made of
 * files.
 */
#include <stdio.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "fixture.h"
#include "host/driver_devices.h"

static struct graft_driver_devices read_devices(const struct fixture *fixture, struct graft_arena *arena)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_driver_devices devices;
	struct graft_error err = { .status = GRAFT_OK };

	assert_int_equal(graft_root_open(&root, fixture->root, &err), 0);
	assert_int_equal(graft_host_read_driver_devices(&root, arena, &devices, &err), 0);
	return devices;
}

static void make_function(struct fixture *fixture, const char *name, const char *vendor, const char *class_)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/vendor", name);
	fixture_write(fixture, path, vendor);
	(void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/class", name);
	fixture_write(fixture, path, class_);
}

static int setup(void **state)
{
	static struct fixture fixture;

	fixture_init(&fixture);
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	fixture_done(*state);
	return 0;
}

static void test_majors(void **state)
{
	static const struct {
		const char *devices;
		bool any, nvidia, uvm, caps;
		uint32_t nvidia_major;
	} rows[] = {
		{ "Character devices:\n  1 mem\n195 nvidia\n195 nvidia-modeset\n510 nvidia-uvm\n235 nvidia-caps\n",
		  true, true, true, true, 195 },
		{ "Character devices:\n195 nvidia-frontend\n510 nvidia-uvm\n", true, true, true, false, 195 },
		{ "Character devices:\n 10 nvidia\n", true, true, false, false, 10 },
		{ "Character devices:\n234 nvidia-caps-imex-channels\n", true, false, false, false, 0 },
		{ "Character devices:\n  1 mem\n195 my-nvidia\nnvidia\n", false, false, false, false, 0 },
		{ "", false, false, false, false, 0 },
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
		struct graft_driver_devices devices;

		fixture_write(fixture, "/proc/devices", rows[i].devices);
		devices = read_devices(fixture, arena);
		assert_int_equal(devices.any, rows[i].any);
		assert_int_equal(devices.has_nvidia, rows[i].nvidia);
		assert_int_equal(devices.has_uvm, rows[i].uvm);
		assert_int_equal(devices.has_caps, rows[i].caps);
		if (rows[i].nvidia)
			assert_int_equal(devices.nvidia_major, rows[i].nvidia_major);
		assert_int_equal(devices.n_gpus, 0);
		assert_false(devices.lists_mig);
		assert_string_equal(devices.params, "");
		graft_arena_free(arena);
	}
}

static void test_gpus_and_mig(void **state)
{
	struct fixture *fixture = *state;
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	struct graft_driver_devices devices;

	fixture_write(fixture, "/proc/devices", "Character devices:\n195 nvidia\n");
	fixture_write(fixture, "/proc/driver/nvidia/params", "DeviceFileMode: 432\n");
	fixture_write(fixture, "/proc/driver/nvidia-caps/mig-minors",
		      "config 1\ngpu0/gi1/access 12\nnonsense\ngpu0/gi7/ci1/access 68\n");
	make_function(fixture, "0000:00:02.0", "0x8086\n", "0x030000\n");
	make_function(fixture, "0000:01:00.0", "0x10de\n", "0x030000\n");
	make_function(fixture, "0000:01:00.1", "0x10de\n", "0x040300\n"); /* its audio function */
	make_function(fixture, "0000:02:00.0", "0x10de\n", "0x030200\n");
	make_function(fixture, "0000:03:00.0", "0x10de\n", "0x068000\n"); /* NVSwitch */
	make_function(fixture, "0000:02:00.4", "0x10de\n", "0x030200\n");
	fixture_link(fixture, "../0000:02:00.0", "/sys/bus/pci/devices/0000:02:00.4/physfn");
	devices = read_devices(fixture, arena);
	assert_int_equal(devices.n_gpus, 2);
	assert_true(devices.lists_mig);
	assert_int_equal(devices.n_mig_minors, 3);
	assert_int_equal(devices.mig_minors[2].minor, 68);
	assert_string_equal(devices.params, "DeviceFileMode: 432\n");
	graft_arena_free(arena);
}

static void test_no_proc(void **state)
{
	struct fixture *fixture = *state;
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_driver_devices devices;
	struct graft_error err = { .status = GRAFT_OK };

	fixture_directory(fixture, "/proc");
	assert_int_equal(graft_root_open(&root, fixture->root, &err), 0);
	assert_int_equal(graft_host_read_driver_devices(&root, arena, &devices, &err), -1);
	assert_string_equal(err.msg, "read failed: /proc/devices");
	graft_arena_free(arena);
}

static void test_nodes(void **state)
{
	static const struct {
		const char *path;
		unsigned int major, minor;
	} nodes[] = {
		{ "/dev/nvidia-caps/nvidia-cap2", 235, 2 },
		{ "/dev/nvidia10", 195, 10 },
		{ "/dev/nvidia2", 195, 2 },
		{ "/dev/nvidiactl", 195, 255 },
		{ "/dev/nvidia-uvm", 510, 0 },
		{ "/dev/nvidia-fs0", 503, 0 },
		{ "/dev/nvidia-nvswitchctl", 504, 255 },
		{ "/dev/nvidia-nvlink", 505, 0 },
		{ "/dev/null", 1, 3 },
		{ "/dev/nvidia-caps/other", 235, 3 },
	};
	static const char *const expected[] = { "/dev/nvidia-caps/nvidia-cap2", "/dev/nvidia-uvm", "/dev/nvidia2",
						"/dev/nvidia10", "/dev/nvidiactl" };
	struct fixture *fixture = *state;
	struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_node *found;
	size_t n;

	fixture_write(fixture, "/dev/nvidia7", "a file");
	fixture_directory(fixture, "/dev/nvidia-caps-imex-channels");
	assert_int_equal(graft_root_open(&root, fixture->root, &err), 0);
	assert_int_equal(graft_host_list_driver_nodes(&root, arena, &found, &n, &err), 0);
	assert_int_equal(n, 0);
	if (!fixture_has_nodes()) {
		graft_arena_free(arena);
		skip();
	}
	for (size_t i = 0; i < GRAFT_COUNT(nodes); i++)
		fixture_node(fixture, nodes[i].path, nodes[i].major, nodes[i].minor, 0640);
	assert_int_equal(graft_host_list_driver_nodes(&root, arena, &found, &n, &err), 0);
	assert_int_equal(n, GRAFT_COUNT(expected));
	for (size_t i = 0; i < n; i++)
		assert_string_equal(found[i].path, expected[i]);
	assert_int_equal(found[3].major, 195);
	assert_int_equal(found[3].minor, 10);
	assert_true(found[3].present);
	assert_int_equal(found[3].mode, 0640);
	graft_arena_free(arena);
}

static void test_allocations(void **state)
{
	struct fixture *fixture = *state;
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_error err = { .status = GRAFT_OK };
	bool failed = true;

	fixture_write(fixture, "/proc/devices", "Character devices:\n195 nvidia\n");
	fixture_write(fixture, "/proc/driver/nvidia-caps/mig-minors", "config 1\n");
	make_function(fixture, "0000:01:00.0", "0x10de\n", "0x030000\n");
	assert_int_equal(graft_root_open(&root, fixture->root, &err), 0);
	for (size_t max = 0; failed; max += 16) {
		struct graft_arena *arena = graft_arena_new(max);
		struct graft_driver_devices devices;
		struct graft_node *nodes;
		size_t n;

		err = (struct graft_error){ .status = GRAFT_OK };
		failed = graft_host_read_driver_devices(&root, arena, &devices, &err) < 0 ||
			 graft_host_list_driver_nodes(&root, arena, &nodes, &n, &err) < 0;
		if (failed && err.status != GRAFT_NO_MEMORY)
			fail_msg("%s", err.msg);
		if (!failed)
			assert_int_equal(devices.n_gpus, 1);
		graft_arena_free(arena);
	}
	for (int n_th = 1; n_th < 8; n_th++) {
		struct graft_arena *arena = graft_arena_new((size_t)1 << 20);
		struct graft_node *nodes;
		size_t n;
		int rc;

		assert_non_null(arena);
		allocation_fail(n_th);
		rc = graft_host_list_driver_nodes(&root, arena, &nodes, &n, &err);
		assert_int_equal(rc, allocation_failed() ? -1 : 0);
		graft_arena_free(arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_majors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gpus_and_mig, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_proc, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nodes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_allocations, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
