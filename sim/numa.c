/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numa: NUMA nodes, as sysfs shows them, for a machine that has fewer than the simulated host. The
 * machine's processors are divided among them in the same way as in NVML.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "hardware.h"
#include "run_parts.h"

#define NODES "/sys/devices/system/node"

struct numa {
	unsigned int n_nodes, n_cpus;
};

static bool has_cpu(const struct numa *numa, unsigned int node, unsigned int cpu)
{
	return sim_cpu_node(cpu, numa->n_cpus, numa->n_nodes) == node;
}

/* "0-3" */
static void add_list(const struct numa *numa, unsigned int node, struct graft_buffer *out)
{
	unsigned int first = 0, end;

	while (first < numa->n_cpus && !has_cpu(numa, node, first))
		first++;
	for (end = first; end < numa->n_cpus && has_cpu(numa, node, end);)
		end++;
	if (end > first + 1)
		graft_buffer_printf(out, "%u-%u", first, end - 1);
	else if (end > first)
		graft_buffer_printf(out, "%u", first);
	graft_buffer_char(out, '\n');
}

/* "f,ffffffff": 32 processors each, the last ones first */
static void add_map(const struct numa *numa, unsigned int node, struct graft_buffer *out)
{
	for (unsigned int word = (numa->n_cpus + 31) / 32; word > 0; word--) {
		unsigned int bits = 0;

		for (unsigned int i = 0; i < 32 && (word - 1) * 32 + i < numa->n_cpus; i++)
			bits |= has_cpu(numa, node, (word - 1) * 32 + i) ? 1u << i : 0;
		graft_buffer_printf(out, word * 32 >= numa->n_cpus ? "%x" : ",%08x", bits);
	}
	graft_buffer_char(out, '\n');
}

static int stage_node(const struct numa *numa, unsigned int node, struct graft_error *err)
{
	struct graft_buffer list = { .max = 0 }, map = { .max = 0 }, distance = { .max = 0 };
	char directory[128], path[160];

	(void)snprintf(directory, sizeof(directory), SIM_STAGE_ROOT NODES "/node%u", node);
	if (mkdir(directory, 0755) < 0)
		return graft_fail_errno(err, errno, "mkdir failed: %s", directory);
	add_list(numa, node, &list);
	(void)snprintf(path, sizeof(path), "%s/cpulist", directory);
	if (sim_write_file(path, 0444, &list, err) < 0)
		return -1;
	add_map(numa, node, &map);
	(void)snprintf(path, sizeof(path), "%s/cpumap", directory);
	if (sim_write_file(path, 0444, &map, err) < 0)
		return -1;
	for (unsigned int i = 0; i < numa->n_nodes; i++)
		graft_buffer_printf(&distance, "%s%u", i > 0 ? " " : "", i == node ? 10 : 21);
	graft_buffer_char(&distance, '\n');
	(void)snprintf(path, sizeof(path), "%s/distance", directory);
	return sim_write_file(path, 0444, &distance, err);
}

/* The lists of all nodes, of those with processors and of those with memory. */
static int stage_lists(const struct numa *numa, struct graft_error *err)
{
	static const char *const names[] = { "online", "possible", "has_cpu" };
	char path[128];

	for (size_t i = 0; i < GRAFT_COUNT(names); i++) {
		struct graft_buffer text = { .max = 0 };

		graft_buffer_printf(&text, "0-%u\n", numa->n_nodes - 1);
		(void)snprintf(path, sizeof(path), SIM_STAGE_ROOT NODES "/%s", names[i]);
		if (sim_write_file(path, 0444, &text, err) < 0)
			return -1;
	}
	return 0;
}

/* Each GPU's own view of its processors. */
static int stage_gpu(const struct sim_gpu *gpu, const struct numa *numa, struct graft_error *err)
{
	struct graft_buffer list = { .max = 0 };
	char path[160];

	(void)snprintf(path, sizeof(path), SIM_STAGE_ROOT "/sys/bus/pci/devices/%04x:%02x:%02x.0/local_cpulist",
		       gpu->domain, gpu->bus, gpu->device);
	add_list(numa, gpu->numa_node, &list);
	return sim_write_file(path, 0444, &list, err);
}

int sim_stage_numa(const struct sim_topology *topology, struct graft_error *err)
{
	static const char *const parents[] = { "/sys/devices", "/sys/devices/system", NODES };
	long configured = sysconf(_SC_NPROCESSORS_CONF);
	struct numa numa = { .n_nodes = 1, .n_cpus = configured > 0 ? (unsigned int)configured : 1 };
	char path[128];

	for (size_t i = 0; i < topology->n_gpus; i++) {
		if (topology->gpus[i].numa_node >= numa.n_nodes)
			numa.n_nodes = topology->gpus[i].numa_node + 1;
	}
	(void)snprintf(path, sizeof(path), NODES "/node%u", numa.n_nodes - 1);
	if (numa.n_cpus < numa.n_nodes || access(NODES "/node0", F_OK) < 0 || access(path, F_OK) == 0 ||
	    access(SIM_STAGE_ROOT "/sys/bus/pci/devices", F_OK) < 0)
		return 0;
	for (size_t i = 0; i < GRAFT_COUNT(parents); i++) {
		(void)snprintf(path, sizeof(path), SIM_STAGE_ROOT "%s", parents[i]);
		if (sim_make_directory(path, err) < 0)
			return -1;
	}
	for (unsigned int node = 0; node < numa.n_nodes; node++) {
		if (stage_node(&numa, node, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < topology->n_gpus; i++) {
		if (stage_gpu(&topology->gpus[i], &numa, err) < 0)
			return -1;
	}
	return stage_lists(&numa, err);
}
