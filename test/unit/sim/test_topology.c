/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "create.h"
#include "topology.h"

extern const struct sim_embedded sim_embedded_topologies[];
extern const unsigned int sim_n_embedded_topologies;

static struct sim_topology *read_text(const char *text)
{
	struct sim_topology *topology = NULL;
	struct graft_error err = { .status = GRAFT_OK };

	if (sim_topology_read(text, strlen(text), "dir/host.yaml", &topology, &err) < 0)
		fail_msg("%s", err.msg);
	return topology;
}

#define HOST "driver: 550.54.14\ncuda: \"12.4\"\n"
#define GPUS HOST "gpus:\n  - "

static void test_errors_name_line_and_column(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "", "dir/host.yaml: the file is empty" },
		{ "# only a comment\n", "dir/host.yaml: the file is empty" },
		{ "[1, 2]\n", "dir/host.yaml:1:1: a mapping of keys and values is expected here" },
		{ "driver: none\ndriverr: x\n", "dir/host.yaml:2:1: unknown key 'driverr'" },
		{ "driver: none\nname: a\nname: b\n", "dir/host.yaml:3:1: key 'name' is given twice" },
		{ "driver: [none]\n", "dir/host.yaml:1:9: a single value is expected here" },
		{ "driver:\n", "dir/host.yaml:1:8: a value is missing here" },
		{ "driver: \"5\n", "dir/host.yaml:2:1: found unexpected end of stream" },
		{ "driver: none\n---\ndriver: none\n", "dir/host.yaml: more than one document" },
		{ "driver: none\n\tx: y\n", "dir/host.yaml:2:1: found a tab character that violates indentation" },
		{ "driver: n\xc3\xb6ne\n", "dir/host.yaml:1:9: only printable ASCII characters are allowed in values" },
		{ "driver: \xff\n", "dir/host.yaml: byte 8: invalid leading UTF-8 octet" },
		{ "name: x\n", "dir/host.yaml: key 'driver' is missing: a version, or none" },
		{ "name: a/b\ndriver: none\n", "dir/host.yaml: 'name' has at most 63 characters and no slash" },
		{ "driver: 550\ncuda: \"12.4\"\n", "dir/host.yaml:1:9: '550' is not a driver version" },
		{ "driver: 1.2.3.4\n", "dir/host.yaml:1:9: '1.2.3.4' is not a driver version" },
		{ "driver: 550.54.14\n", "dir/host.yaml:1:9: the driver needs a 'cuda' version, such as \"12.4\"" },
		{ "driver: none\ngpus: [{model: T4}]\n", "dir/host.yaml:1:9: GPUs need a driver version here" },
		{ HOST "layout: gentoo\n", "dir/host.yaml:3:9: unknown layout 'gentoo'" },
		{ HOST "machine: vax\n", "dir/host.yaml:3:10: unknown machine 'vax'" },
		{ HOST "files: [sound]\n", "dir/host.yaml:3:9: unknown class of libraries 'sound'" },
		{ HOST "files: base\n", "dir/host.yaml:3:8: a list is expected here" },
		{ HOST "firmware: yes\n", "dir/host.yaml:3:11: 'yes' is neither true nor false" },
		{ HOST "gates: [gds, sdg]\n", "dir/host.yaml:3:14: unknown gate 'sdg'" },
		{ HOST "majors: {gdrdrv: 512}\n", "dir/host.yaml: majors are from 1 to 511" },
		{ HOST "nvswitches: -1\n", "dir/host.yaml:3:13: '-1' is not a number" },
		{ HOST "nvswitches: 17\n", "dir/host.yaml: at most 16 NVSwitches and 2048 IMEX channels" },
		{ HOST "imex-channels: 99999999999\n", "dir/host.yaml:3:16: '99999999999' is not a number" },
		{ HOST "majors: {nvidia-uvm: 0}\n", "dir/host.yaml: majors are from 1 to 511" },
		{ HOST "majors: {nvidia: 195}\n", "dir/host.yaml:3:10: unknown key 'nvidia'" },
		{ GPUS "count: 2\n", "dir/host.yaml:4:5: a group of GPUs needs a 'model'" },
		{ GPUS "model: Voodoo2\n",
		  "dir/host.yaml:4:12: unknown model 'Voodoo2'; 'graft-sim list --models' names them" },
		{ GPUS "model: T4\n    count: 0\n", "dir/host.yaml:4:5: 'count' is from 1 to 32" },
		{ GPUS "model: T4\n    bus-ids: [\"1b:00.0\"]\n",
		  "dir/host.yaml:4:5: '1b:00.0' is not a bus id of a GPU, such as \"0000:1b:00.0\"" },
		{ GPUS "model: T4\n    bus-ids: [\"0000:1b:00.1\"]\n",
		  "dir/host.yaml:4:5: '0000:1b:00.1' is not a bus id of a GPU, such as \"0000:1b:00.0\"" },
		{ GPUS "model: T4\n  - model: T4\n", "dir/host.yaml: two GPUs at bus id 0000:01:00.0" },
		{ HOST "nvswitches: 3\ngpus: [{model: A30, count: 4}]\n",
		  "dir/host.yaml: a GPU and an NVSwitch at bus id 0000:07:00.0" },
		{ GPUS "model: T4\n    count: 2\n    minors: [1, 1]\n", "dir/host.yaml: two GPUs with minor 1" },
		{ GPUS "model: T4\n    minors: [254]\n", "dir/host.yaml:4:5: '254' is not a minor from 0 to 253" },
		{ GPUS "model: T4\n    uuids: [GPU-1]\n", "dir/host.yaml:4:5: 'GPU-1' is not the UUID of a GPU" },
		{ GPUS "model: T4\n    mig: [1g.5gb]\n", "dir/host.yaml:4:5: T4 has no MIG" },
		{ GPUS "model: A30\n    mig: [3g.20gb]\n", "dir/host.yaml:5:11: A30 has no MIG profile '3g.20gb' (it "
							   "has: 1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb)" },
		{ GPUS "model: A100-SXM4-40GB\n    mig: [4g.20gb, 4g.20gb]\n",
		  "dir/host.yaml:5:20: '4g.20gb' no longer fits on the GPU" },
		{ GPUS "model: A100-SXM4-40GB\n    mig: [3g.20gb/2c/2c]\n",
		  "dir/host.yaml:5:11: the compute instances do not fit into 3g.20gb" },
		{ GPUS "model: A100-SXM4-40GB\n    mig: [3g.20gb/9c]\n",
		  "dir/host.yaml:5:11: '9c' is not a size of a compute instance, such as 1c" },
		{ GPUS "model: T4\n    numa-nodes: [64]\n", "dir/host.yaml:4:5: '64' is not a NUMA node from 0 to 63" },
		{ GPUS "model: T4\n    bridges: [\"0000:00:01.0\"]\n",
		  "dir/host.yaml:4:5: '0000:00:01.0' is not a path of PCI bridges, such as "
		  "\"pci0000:16/0000:16:01.0\"" },
		{ GPUS "model: T4\n    bridges: [\"pci0000:16/0000:16:01.0/\"]\n",
		  "dir/host.yaml:4:5: 'pci0000:16/0000:16:01.0/' is not a path of PCI bridges, such as "
		  "\"pci0000:16/0000:16:01.0\"" },
		{ GPUS "model: T4\n    count: 2\n    bridges: [\"pci0000:16/0000:16:01.0\", "
		       "\"pci0000:17/0000:16:01.0\"]\n",
		  "dir/host.yaml: a bridge is at two places: 'pci0000:16/0000:16:01.0' and 'pci0000:17/0000:16:01.0'" },
		{ GPUS "model: A30\n    count: 2\nnvlinks: [0-2]\n",
		  "dir/host.yaml:6:11: '0-2' does not name NVLinks between two GPUs, such as 0-3:2" },
		{ GPUS "model: A30\n    count: 2\nnvlinks: [\"0-1:\"]\n",
		  "dir/host.yaml:6:11: '0-1:' does not name NVLinks between two GPUs, such as 0-3:2" },
		{ GPUS "model: A30\n    count: 2\nnvlinks: [\"0-1:5\"]\n",
		  "dir/host.yaml:6:11: '0-1:5': one of these GPUs has fewer NVLinks" },
		{ GPUS "model: T4\n    count: 2\nnvlinks: [0-1]\n",
		  "dir/host.yaml:6:11: '0-1': one of these GPUs has fewer NVLinks" },
		{ GPUS "model: A100-SXM4-40GB\n    count: 2\nnvswitches: 2\nnvlinks: [0-1]\n",
		  "dir/host.yaml:7:10: NVSwitches connect the GPUs already" },
		{ GPUS "model: T4\nfaults: [gpu-lost=1]\n",
		  "dir/host.yaml:5:10: fault 'gpu-lost=1': the topology has no GPU of that index" },
		{ GPUS "model: T4\nfaults: [fire]\n",
		  "dir/host.yaml:5:10: fault 'fire': unknown; 'graft-sim run --help' lists the faults" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct sim_topology *topology = NULL;
		struct graft_error err = { .status = GRAFT_OK };

		assert_int_equal(
		    sim_topology_read(cases[i].text, strlen(cases[i].text), "dir/host.yaml", &topology, &err), -1);
		assert_null(topology);
		assert_int_equal(err.status, GRAFT_FORMAT);
		assert_string_equal(err.msg, cases[i].want);
	}
}

static void test_limits(void **state)
{
	const size_t big = (size_t)300 * 1024;
	auto_free char *text = malloc(big);
	struct sim_topology *topology = NULL;
	struct graft_error err;
	char many[2048] = HOST "gpus: [{model: T4, count: 32}, {model: T4, bus-ids: [\"0001:01:00.0\"]}]\n";

	assert_non_null(text);
	memset(text, '#', big);
	assert_int_equal(sim_topology_read(text, big, "x", &topology, &err), -1);
	assert_int_equal(err.status, GRAFT_TOO_BIG);
	assert_int_equal(sim_topology_read(many, strlen(many), "x", &topology, &err), -1);
	assert_string_equal(err.msg, "x:3:32: more than 32 GPUs");
}

static void test_defaults(void **state)
{
	struct sim_topology *topology = read_text(GPUS "model: h100-sxm5-80gb\n    count: 8\n");

	assert_string_equal(topology->name, "host");
	assert_string_equal(topology->module, "550.54.14");
	assert_int_equal(topology->driver_major, 550);
	assert_int_equal(topology->cuda_number, 12040);
	assert_int_equal(topology->layout, SIM_LAYOUT_DEBIAN);
	assert_int_equal(topology->machine, sim_machine_native());
	assert_int_equal(topology->files, SIM_FILES_BASE);
	assert_int_equal(topology->n_gpus, 8);
	assert_int_equal(topology->gpus[0].bus, 0x1b);
	assert_int_equal(topology->gpus[7].bus, 0xdf);
	assert_int_equal(topology->gpus[7].minor, 7);
	assert_string_equal(topology->gpus[3].name, "NVIDIA H100 80GB HBM3");
	(void)sim_topology_free(topology);
}

static void test_gpus_are_ordered_by_bus_id(void **state)
{
	struct sim_topology *topology = read_text(
	    GPUS "model: A10\n    count: 3\n    bus-ids: [\"0001:02:00.0\", \"0000:65:00.0\", "
		 "\"0000:17:00.0\"]\n    minors: [0, 1, 2]\n");

	assert_int_equal(topology->gpus[0].bus, 0x17);
	assert_int_equal(topology->gpus[0].minor, 2);
	assert_int_equal(topology->gpus[1].minor, 1);
	assert_int_equal(topology->gpus[2].domain, 1);
	assert_int_equal(topology->gpus[2].minor, 0);
	(void)sim_topology_free(topology);
}

static void test_uuids_are_stable_and_distinct(void **state)
{
	struct sim_topology *a = read_text(GPUS "model: T4\n    count: 32\n");
	struct sim_topology *b = read_text(GPUS "model: T4\n    count: 32\n");
	struct sim_topology *other = read_text("name: other\n" GPUS "model: T4\n    count: 32\n");

	for (size_t i = 0; i < 32; i++) {
		assert_string_equal(a->gpus[i].uuid, b->gpus[i].uuid);
		assert_string_not_equal(a->gpus[i].uuid, other->gpus[i].uuid);
		assert_int_equal(strlen(a->gpus[i].uuid), strlen("GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"));
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(a->gpus[i].uuid, a->gpus[k].uuid);
	}
	(void)sim_topology_free(a);
	(void)sim_topology_free(b);
	(void)sim_topology_free(other);
}

static void test_mig(void **state)
{
	struct sim_topology *topology = read_text(
	    GPUS "model: A100-SXM4-40GB\n    minors: [3]\n    mig: [1g.5gb, 3g.20gb/1c/2c, 2g.10gb]\n");
	const struct sim_gpu *gpu = &topology->gpus[0];
	static const struct {
		const char *name;
		uint32_t gi, ci, gi_minor, ci_minor, slices;
	} want[] = {
		{ "1c.3g.20gb", 1, 0, 3 + 3 * 135 + 9, 3 + 3 * 135 + 10, 1 },
		{ "2c.3g.20gb", 1, 1, 3 + 3 * 135 + 9, 3 + 3 * 135 + 11, 2 },
		{ "2g.10gb", 3, 0, 3 + 3 * 135 + 27, 3 + 3 * 135 + 28, 2 },
		{ "1g.5gb", 7, 0, 3 + 3 * 135 + 63, 3 + 3 * 135 + 64, 1 },
	};

	assert_true(gpu->mig_enabled);
	assert_int_equal(gpu->n_mig, GRAFT_COUNT(want));
	for (size_t i = 0; i < GRAFT_COUNT(want); i++) {
		assert_string_equal(gpu->mig[i].name, want[i].name);
		assert_int_equal(gpu->mig[i].gi, want[i].gi);
		assert_int_equal(gpu->mig[i].ci, want[i].ci);
		assert_int_equal(gpu->mig[i].gi_minor, want[i].gi_minor);
		assert_int_equal(gpu->mig[i].ci_minor, want[i].ci_minor);
		assert_int_equal(gpu->mig[i].ci_slices, want[i].slices);
		assert_memory_equal(gpu->mig[i].uuid, "MIG-", 4);
	}
	(void)sim_topology_free(topology);
}

static void test_mig_names_of_old_drivers(void **state)
{
	struct sim_topology *topology = read_text(
	    "driver: 450.80.02\ncuda: \"11.0\"\ngpus:\n  - model: A100-SXM4-40GB\n    mig: [7g.40gb]\n");

	assert_string_printed(topology->gpus[0].mig[0].uuid, "MIG-%s/0/0", topology->gpus[0].uuid);
	assert_string_equal(topology->gpus[0].name, "A100-SXM4-40GB");
	(void)sim_topology_free(topology);
}

static void test_faults(void **state)
{
	static const struct {
		const char *fault, *why;
	} bad[] = {
		{ "nvml-init-delay", "a value is missing" },
		{ "nvml-init-delay=", "not a number of seconds from 0 to 3600" },
		{ "nvml-init-delay=soon", "not a number of seconds from 0 to 3600" },
		{ "nvml-init-delay=nan", "not a number of seconds from 0 to 3600" },
		{ "nvml-init-delay=-1", "not a number of seconds from 0 to 3600" },
		{ "nvml-init-fail=1000", "not an nvmlReturn_t from 0 to 999" },
		{ "nvml-crash=1", "it takes no value" },
		{ "missing=", "a name is expected" },
		{ "gpu-lost=4", "the topology has no GPU of that index" },
		{ "", "unknown; 'graft-sim run --help' lists the faults" },
	};
	struct sim_topology *topology = read_text(GPUS "model: T4\n    count: 4\n");
	struct graft_error err;
	struct sim_data *data = malloc(sizeof(*data));

	assert_non_null(data);
	for (size_t i = 0; i < GRAFT_COUNT(bad); i++) {
		char want[256];

		(void)snprintf(want, sizeof(want), "fault '%s': %s", bad[i].fault, bad[i].why);
		assert_int_equal(sim_topology_add_fault(topology, bad[i].fault, &err), -1);
		assert_string_equal(err.msg, want);
	}
	assert_int_equal(sim_topology_add_fault(topology, "nvml-init-delay=1.5", &err), 0);
	assert_int_equal(sim_topology_add_fault(topology, "nvml-init-fail=999", &err), 0);
	assert_int_equal(sim_topology_add_fault(topology, "nvml-crash", &err), 0);
	assert_int_equal(sim_topology_add_fault(topology, "nvml-mismatch", &err), 0);
	assert_int_equal(sim_topology_add_fault(topology, "gpu-lost=2", &err), 0);
	assert_string_equal(topology->module, "550.40.07");
	sim_topology_data(topology, data);
	assert_int_equal(data->init_delay_ms, 1500);
	assert_int_equal(data->init_fail, 999);
	assert_int_equal(data->init_crash, 1);
	assert_string_equal(data->driver_version, "550.54.14");
	assert_string_equal(data->module_version, "550.40.07");
	assert_int_equal(data->gpus[2].lost, 1);
	assert_int_equal(data->gpus[1].lost, 0);
	free(data);
	(void)sim_topology_free(topology);
}

static void test_missing_names_and_paths(void **state)
{
	struct sim_topology *topology = read_text(HOST "faults: [missing=libcuda.so.1, missing=/dev/nvidia0]\n");
	static const struct {
		const char *path, *name, *soname;
		bool want;
	} cases[] = {
		{ "/usr/lib/libcuda.so.550.54.14", "libcuda.so.550.54.14", "libcuda.so.1", true },
		{ "/usr/lib/libcuda.so.1", "libcuda.so.1", NULL, true },
		{ "/usr/lib/libcuda.so.10", "libcuda.so.10", NULL, false },
		{ "/dev/nvidia0", "nvidia0", NULL, true },
		{ "/dev/nvidia0/below", "below", NULL, true },
		{ "/dev/nvidia00", "nvidia00", NULL, false },
		{ "/other/nvidia0", "nvidia0", NULL, false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		const char *names[] = { cases[i].name, cases[i].soname, NULL };

		assert_int_equal(sim_topology_is_missing(topology, cases[i].path, names), cases[i].want);
	}
	(void)sim_topology_free(topology);
}

static void test_excluded_gpus_are_not_nvml_s(void **state)
{
	struct sim_topology *topology = read_text(
	    GPUS "model: T4\n    excluded: true\n  - model: A10\n    bus-ids: [\"0000:05:00.0\"]\n");
	struct sim_data *data = malloc(sizeof(*data));

	assert_non_null(data);
	sim_topology_data(topology, data);
	assert_int_equal(topology->n_gpus, 2);
	assert_int_equal(data->n_gpus, 1);
	assert_string_equal(data->gpus[0].name, "NVIDIA A10");
	assert_int_equal(data->gpus[0].pci_id, 0x223610de);
	assert_int_equal(data->gpus[0].memory, (uint64_t)23028 << 20);
	free(data);
	(void)sim_topology_free(topology);
}

static void test_shipped_topologies_are_right(void **state)
{
	assert_in_range(sim_n_embedded_topologies, 12, 64);
	for (unsigned int i = 0; i < sim_n_embedded_topologies; i++) {
		const struct sim_embedded *file = &sim_embedded_topologies[i];
		struct sim_topology *topology = NULL;
		struct graft_error err = { .status = GRAFT_OK };
		size_t n = (size_t)(file->end - file->bytes);

		if (sim_topology_read(file->bytes, n, file->name, &topology, &err) < 0)
			fail_msg("%s", err.msg);
		assert_non_null(topology->description);
		assert_int_equal(file->bytes[0], '#'); /* each says in a sentence what it is */
		(void)sim_topology_free(topology);
	}
}

static void test_an_alias_to_its_own_ancestor_ends(void **state)
{
	struct sim_topology *topology = NULL;
	struct graft_error err;
	static const char text[] = "driver: none\ngpus: &a [*a]\n";

	assert_int_equal(sim_topology_read(text, sizeof(text) - 1, "x", &topology, &err), -1);
	assert_int_equal(err.status, GRAFT_FORMAT);
}

static void test_every_allocation_may_fail(void **state)
{
	static const char text[] = GPUS "model: A100-SXM4-40GB\n    count: 2\n    mig: [3g.20gb/1c/2c, 2g.10gb]\n"
					"faults: [missing=x, nvml-mismatch]\n";
	int n = 1;

	for (;; n++) {
		struct sim_topology *topology = NULL;
		struct graft_error err = { .status = GRAFT_OK };
		int rc;

		allocation_fail(n);
		rc = sim_topology_read(text, sizeof(text) - 1, "x", &topology, &err);
		if (!allocation_reported(rc, &err)) {
			(void)sim_topology_free(topology);
			break;
		}
	}
	assert_in_range(n, 3, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors_name_line_and_column),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_gpus_are_ordered_by_bus_id),
		cmocka_unit_test(test_uuids_are_stable_and_distinct),
		cmocka_unit_test(test_mig),
		cmocka_unit_test(test_mig_names_of_old_drivers),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_missing_names_and_paths),
		cmocka_unit_test(test_excluded_gpus_are_not_nvml_s),
		cmocka_unit_test(test_shipped_topologies_are_right),
		cmocka_unit_test(test_an_alias_to_its_own_ancestor_ends),
		cmocka_unit_test(test_every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
