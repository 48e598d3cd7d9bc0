/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from the models of a host's GPUs: links, fabric, NUMA nodes, MIG profiles and places. */
#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "hardware.h"

static struct sim_data data;

/* Reads a topology and fills `data` from it. */
static void read_host(const char *rest)
{
	struct sim_topology *topology = NULL;
	struct graft_error err;
	char text[1024];

	(void)snprintf(text, sizeof(text), "name: host\ndriver: 550.54.14\ncuda: \"12.4\"\n%s", rest);
	assert_int_equal(sim_topology_read(text, strlen(text), "host.yaml", &topology, &err), 0);
	sim_topology_data(topology, &data);
	(void)sim_topology_free(topology);
}

static void test_links(void **state)
{
	static const struct {
		const char *gpus;
		uint32_t n_links, version, fabric;
		bool cluster;
	} rows[] = {
		{ "gpus: [{model: H100-SXM5-80GB, count: 8}]\nnvswitches: 4\nfabricmanager: true\n", 18, 4, 3, false },
		/* the switches wait for the fabric manager */
		{ "gpus: [{model: H100-SXM5-80GB, count: 8}]\nnvswitches: 4\n", 18, 4, 1, false },
		{ "gpus: [{model: A100-SXM4-80GB, count: 8}]\nnvswitches: 6\nfabricmanager: true\n", 12, 3, 0, false },
		{ "gpus: [{model: GB200, count: 4}]\n", 18, 5, 3, true },
		{ "gpus: [{model: B200, count: 8}]\nnvswitches: 2\nfabricmanager: true\n", 18, 5, 3, false },
		/* nothing is at the other end */
		{ "gpus: [{model: H100-SXM5-80GB}]\n", 0, 0, 0, false },
		{ "gpus: [{model: H100-PCIe, count: 2}]\n", 0, 0, 0, false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		bool cluster = false;

		read_host(rows[i].gpus);
		for (size_t k = 0; k < sizeof(data.fabric_uuid); k++)
			cluster = cluster || data.fabric_uuid[k] != 0;
		assert_int_equal(data.gpus[0].n_links, rows[i].n_links);
		assert_int_equal(data.gpus[0].link_version, rows[i].version);
		assert_int_equal(data.fabric, rows[i].fabric);
		assert_int_equal(cluster, rows[i].cluster);
	}
}

/* The GPU that the driver leaves alone has no number in the data. */
static void test_declared_links(void **state)
{
	static const uint8_t first[] = { 1, 1, 2, SIM_LINK_DOWN }, last[] = { 0, SIM_LINK_DOWN };

	read_host(
	    "gpus: [{model: A30}, {model: A30, excluded: true, bus-ids: [\"0000:02:00.0\"]}, {model: A30, count: 2, "
	    "bus-ids: [\"0000:03:00.0\", \"0000:04:00.0\"]}]\nnvlinks: [\"0-2:2\", 0-3, 1-3]\n");
	assert_int_equal(data.n_gpus, 3);
	assert_int_equal(data.gpus[0].n_links, 4);
	assert_memory_equal((const void *)data.gpus[0].links, first, sizeof(first));
	assert_memory_equal((const void *)data.gpus[2].links, last, sizeof(last));
}

static void test_distances(void **state)
{
	static const struct {
		const char *a, *b;
		uint32_t nodes, distance;
	} rows[] = {
		{ "pci0000:10/0000:10:01.0", "pci0000:10/0000:10:01.0", 0, 0 },
		{ "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0",
		  "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:04.0", 0, 10 },
		{ "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0/0000:14:00.0",
		  "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:04.0", 0, 20 },
		{ "pci0000:10/0000:10:01.0", "pci0000:10/0000:10:02.0", 0, 30 },
		{ "pci0000:10", "pci0000:10", 0, 30 },
		{ "pci0000:10/0000:10:01.0", "pci0000:20/0000:20:01.0", 0, 40 },
		{ "pci0000:10/0000:10:01.0", "pci0000:20/0000:20:01.0", 1, 50 },
	};
	char gpus[512];

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		(void)snprintf(gpus, sizeof(gpus),
			       "gpus: [{model: T4, count: 2, numa-nodes: [0, %u], bridges: [\"%s\", \"%s\"]}]\n",
			       rows[i].nodes, rows[i].a, rows[i].b);
		read_host(gpus);
		assert_int_equal(data.gpus[0].distances[0], 0);
		assert_int_equal(data.gpus[0].distances[1], rows[i].distance);
		assert_int_equal(data.gpus[1].distances[0], rows[i].distance);
		assert_int_equal(data.gpus[1].numa_node, rows[i].nodes);
	}
}

static void test_numa_nodes(void **state)
{
	read_host("gpus: [{model: T4}]\n");
	assert_int_equal(data.gpus[0].numa_node, 0);
	read_host("gpus: [{model: T4, count: 4}]\n");
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(data.gpus[i].numa_node, i / 2);
}

/* Source of the ids: `nvidia-smi mig -lgip` of each GPU. */
static void test_profiles(void **state)
{
	static const struct {
		const char *model;
		uint32_t slot;
		const char *name;
		uint32_t id, instances;
	} rows[] = {
		{ "A100-SXM4-40GB", 0, "1g.5gb", 19, 7 },
		{ "A100-SXM4-40GB", 1, "2g.10gb", 14, 3 },
		{ "A100-SXM4-40GB", 2, "3g.20gb", 9, 2 },
		{ "A100-SXM4-40GB", 3, "4g.20gb", 5, 1 },
		{ "A100-SXM4-40GB", 4, "7g.40gb", 0, 1 },
		{ "A100-SXM4-40GB", 7, "1g.5gb+me", 20, 1 },
		{ "A100-SXM4-40GB", 9, "1g.10gb", 15, 4 },
		{ "A100-SXM4-40GB", 5, "", 0, 0 },
		{ "A30", 0, "1g.6gb", 14, 4 },
		{ "A30", 1, "2g.12gb", 5, 2 },
		{ "A30", 3, "4g.24gb", 0, 1 },
		{ "A30", 7, "1g.6gb+me", 21, 1 },
		{ "A30", 8, "2g.12gb+me", 6, 1 },
		{ "L40S", 0, "", 0, 0 },
	};
	char gpus[64];

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct sim_data_mig_profile *profile = &data.gpus[0].mig_profiles[rows[i].slot];

		(void)snprintf(gpus, sizeof(gpus), "gpus: [{model: %s}]\n", rows[i].model);
		read_host(gpus);
		assert_string_equal(profile->name, rows[i].name);
		assert_int_equal(profile->id, rows[i].id);
		assert_int_equal(profile->instances, rows[i].instances);
	}
}

/* No two GPU instances overlap, in whatever order the file has them. */
static void test_places(void **state)
{
	static const struct {
		const char *mig;
		uint32_t starts[7]; /* of the MIG devices, by id of their GPU instance */
	} rows[] = {
		{ "3g.20gb, 4g.20gb", { 4, 0 } },
		{ "4g.20gb, 3g.20gb", { 0, 4 } },
		{ "3g.20gb, 3g.20gb", { 4, 0 } },
		{ "1g.5gb, 2g.10gb, 4g.20gb", { 0, 4, 6 } },
		{ "7g.40gb", { 0 } },
		{ "2g.10gb, 2g.10gb, 2g.10gb, 1g.5gb", { 0, 2, 4, 6 } },
		{ "3g.20gb/1c/2c, 4g.20gb", { 4, 4, 0 } },
	};
	char gpus[128];

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		(void)snprintf(gpus, sizeof(gpus), "gpus: [{model: A100-SXM4-40GB, mig: [%s]}]\n", rows[i].mig);
		read_host(gpus);
		for (uint32_t k = 0; k < data.gpus[0].n_mig; k++)
			assert_int_equal(data.gpus[0].mig[k].gi_start, rows[i].starts[k]);
	}
	assert_int_equal(data.gpus[0].mig[0].ci_start, 0);
	assert_int_equal(data.gpus[0].mig[1].ci_start, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links),     cmocka_unit_test(test_declared_links),
		cmocka_unit_test(test_distances), cmocka_unit_test(test_numa_nodes),
		cmocka_unit_test(test_profiles),  cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
