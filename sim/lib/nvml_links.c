/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_links: where the GPUs of the simulated libnvidia-ml.so.1 are and how they are connected: NUMA
 * nodes, PCI, NVLink and its switches, the fabric of a rack.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nvml_parts.h"

/* --- PCI and NUMA --- */

static unsigned int common_ancestor(const struct nvml_handle *a, const struct nvml_handle *b)
{
	return a->gpu->distances[b->gpu - sim_data.gpus];
}

static nvmlReturn_t check_two(const struct nvml_handle *a, const struct nvml_handle *b, const void *out)
{
	nvmlReturn_t rc = nvml_check_gpu(a, out);

	return rc == NVML_SUCCESS ? nvml_check_gpu(b, out) : rc;
}

ENTRY(nvmlDeviceGetTopologyCommonAncestor, nvmlDevice_t a, nvmlDevice_t b, unsigned int *level)
{
	nvmlReturn_t rc = check_two(a, b, level);

	if (rc == NVML_SUCCESS)
		*level = common_ancestor(a, b);
	return rc;
}

/* The other GPUs at exactly that distance. */
ENTRY(nvmlDeviceGetTopologyNearestGpus, nvmlDevice_t device, unsigned int level, unsigned int *count,
      nvmlDevice_t *devices)
{
	nvmlReturn_t rc = nvml_check_gpu(device, count);
	unsigned int n = 0;

	if (rc != NVML_SUCCESS)
		return rc;
	for (unsigned int i = 0; i < nvml_state.n_gpus; i++) {
		struct nvml_handle *other = &nvml_state.gpus[i];

		if (other == device || common_ancestor(device, other) != level)
			continue;
		if (devices && n < *count)
			devices[n] = other;
		n++;
	}
	*count = n;
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceOnSameBoard, nvmlDevice_t a, nvmlDevice_t b, int *same)
{
	nvmlReturn_t rc = check_two(a, b, same);

	if (rc == NVML_SUCCESS)
		*same = common_ancestor(a, b) == 0;
	return rc;
}

/* --- processors: those of this machine, divided among the simulated NUMA nodes --- */

static unsigned int count_nodes(void)
{
	unsigned int n = 1;

	for (uint32_t i = 0; i < sim_data.n_gpus; i++) {
		if (sim_data.gpus[i].numa_node >= n)
			n = sim_data.gpus[i].numa_node + 1;
	}
	return n;
}

static bool is_near(const struct nvml_handle *device, unsigned int cpu, unsigned int n_cpus)
{
	unsigned int n_nodes = count_nodes();

	return n_cpus < n_nodes || sim_cpu_node(cpu, n_cpus, n_nodes) == device->gpu->numa_node;
}

ENTRY(nvmlDeviceGetCpuAffinity, nvmlDevice_t device, unsigned int n, unsigned long *cpus)
{
	nvmlReturn_t rc = nvml_check_gpu(device, cpus);
	long configured = sysconf(_SC_NPROCESSORS_CONF);
	unsigned int n_cpus = configured > 0 ? (unsigned int)configured : 1;
	const unsigned int bits = 8 * sizeof(*cpus);

	if (rc != NVML_SUCCESS)
		return rc;
	if ((n_cpus + bits - 1) / bits > n)
		return NVML_INSUFFICIENT_SIZE;
	memset(cpus, 0, n * sizeof(*cpus));
	for (unsigned int cpu = 0; cpu < n_cpus; cpu++) {
		if (is_near(device, cpu, n_cpus))
			cpus[cpu / bits] |= 1ul << cpu % bits;
	}
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetCpuAffinityWithinScope, nvmlDevice_t device, unsigned int n, unsigned long *cpus, unsigned int scope)
{
	return scope > 1 ? NVML_INVALID_ARGUMENT : nvmlDeviceGetCpuAffinity(device, n, cpus);
}

ENTRY(nvmlDeviceGetMemoryAffinity, nvmlDevice_t device, unsigned int n, unsigned long *nodes, unsigned int scope)
{
	nvmlReturn_t rc = nvml_check_gpu(device, nodes);

	if (rc != NVML_SUCCESS || n == 0 || scope > 1)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	memset(nodes, 0, n * sizeof(*nodes));
	nodes[0] = 1ul << device->gpu->numa_node;
	return NVML_SUCCESS;
}

static nvmlReturn_t check_coherent(const struct nvml_handle *device, const void *out)
{
	nvmlReturn_t rc = nvml_check_gpu(device, out);

	return rc == NVML_SUCCESS && !device->gpu->coherent ? NVML_NOT_SUPPORTED : rc;
}

/*
 * The node of the GPU's own memory, which only GPUs have whose memory is the CPU's as well. Linux
 * reserves eight nodes for each of them, after those of the CPUs.
 */
GIVE_NUMBER(nvmlDeviceGetNumaNodeId, check_coherent, unsigned int, count_nodes() + device->index * 8)
GIVE_NUMBER(nvmlDeviceGetBusType, nvml_check_gpu, unsigned int, 2)
GIVE_NUMBER(nvmlDeviceGetModuleId, nvml_check_gpu, unsigned int, device->gpu->minor)

/* The first version of the structure is only its number; the answer follows it at once. */
ENTRY(nvmlDeviceGetC2cModeInfoV, nvmlDevice_t device, unsigned int *enabled)
{
	nvmlReturn_t rc = check_coherent(device, enabled);

	if (rc == NVML_SUCCESS)
		*enabled = 1;
	return rc;
}

ENTRY(nvmlDeviceGetPciInfoExt, nvmlDevice_t device, nvmlPciInfoExt_t *pci)
{
	nvmlReturn_t rc = nvml_check_device(device, pci);
	nvmlPciInfo_t info;

	if (rc != NVML_SUCCESS)
		return rc;
	if (pci->version != NVML_VERSION(*pci, 1))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	nvml_pci_info(device->gpu, &info);
	*pci = (nvmlPciInfoExt_t){ .version = pci->version,
				   .domain = info.domain,
				   .bus = info.bus,
				   .device = info.device,
				   .pciDeviceId = info.pciDeviceId,
				   .pciSubSystemId = info.pciSubSystemId,
				   .baseClass = 3,
				   .subClass = device->gpu->display ? 0 : 2 };
	memcpy(pci->busId, info.busId, sizeof(pci->busId));
	return NVML_SUCCESS;
}

/* --- NVLink --- */

enum { REMOTE_GPU = 0, REMOTE_SWITCH = 2, REMOTE_UNKNOWN = 255 };

static nvmlReturn_t check_link(const struct nvml_handle *device, unsigned int link, const void *out)
{
	nvmlReturn_t rc = nvml_check_gpu(device, out);

	if (rc != NVML_SUCCESS)
		return rc;
	if (device->gpu->n_links == 0)
		return NVML_NOT_SUPPORTED;
	return link < device->gpu->n_links ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
}

#define GIVE_LINK(name, type, expression)                              \
	ENTRY(name, nvmlDevice_t device, unsigned int link, type *out) \
	{                                                              \
		nvmlReturn_t rc = check_link(device, link, out);       \
                                                                       \
		if (rc == NVML_SUCCESS)                                \
			*out = (type)(expression);                     \
		return rc;                                             \
	}
GIVE_LINK(nvmlDeviceGetNvLinkState, unsigned int, device->gpu->links[link] != SIM_LINK_DOWN)
GIVE_LINK(nvmlDeviceGetNvLinkVersion, unsigned int, device->gpu->link_version)
GIVE_LINK(nvmlDeviceGetNvLinkRemoteDeviceType, unsigned int,
	  device->gpu->links[link] == SIM_LINK_DOWN   ? REMOTE_UNKNOWN
	  : device->gpu->links[link] >= SIM_LINK_RACK ? REMOTE_SWITCH
						      : REMOTE_GPU)

/*
 * Peer-to-peer, access to the system's memory, both with atomics, SLI (not supported), and that the
 * link can be used at all.
 */
ENTRY(nvmlDeviceGetNvLinkCapability, nvmlDevice_t device, unsigned int link, unsigned int capability,
      unsigned int *result)
{
	nvmlReturn_t rc = check_link(device, link, result);

	if (rc != NVML_SUCCESS || capability > 5)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*result = capability != 4;
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetNvLinkErrorCounter, nvmlDevice_t device, unsigned int link, unsigned int counter,
      unsigned long long *count)
{
	nvmlReturn_t rc = check_link(device, link, count);

	if (rc != NVML_SUCCESS || counter > 4)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}

static void switch_pci_info(unsigned int link, nvmlPciInfo_t *pci)
{
	unsigned int bus = SIM_NVSWITCH_FIRST_BUS + link % sim_data.n_switches;

	*pci = (nvmlPciInfo_t){ .bus = bus, .pciDeviceId = 0x22a310de, .pciSubSystemId = 0x179610de };
	(void)snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:00.0", bus & 0xff);
	(void)snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", bus & 0xff);
}

ENTRY(nvmlDeviceGetNvLinkRemotePciInfo_v2, nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
	nvmlReturn_t rc = check_link(device, link, pci);

	if (rc != NVML_SUCCESS)
		return rc;
	switch (device->gpu->links[link]) {
	case SIM_LINK_DOWN:
		return NVML_NOT_SUPPORTED;
	case SIM_LINK_SWITCH:
		switch_pci_info(link, pci);
		break;
	case SIM_LINK_RACK: /* on no bus of this host */
		*pci = (nvmlPciInfo_t){ .busIdLegacy = "0000:00:00.0", .busId = "00000000:00:00.0" };
		break;
	default:
		nvml_pci_info(&sim_data.gpus[device->gpu->links[link]], pci);
	}
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetNvLinkRemotePciInfo, nvmlDevice_t device, unsigned int link, nvmlPciInfo_v2_t *pci)
{
	nvmlPciInfo_t full;

	return nvml_give_pci_v2(pci ? nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &full) : NVML_INVALID_ARGUMENT,
				&full, pci);
}

/* Through switches, or over a link of their own. */
static bool are_linked(const struct nvml_handle *a, const struct nvml_handle *b)
{
	for (uint32_t i = 0; i < a->gpu->n_links; i++) {
		uint8_t end = a->gpu->links[i];

		if (end == SIM_LINK_SWITCH || end == SIM_LINK_RACK)
			return b->gpu->n_links > 0 && b->gpu->links[0] == end;
		if (end == b->gpu - sim_data.gpus)
			return true;
	}
	return false;
}

/* Reading, writing, NVLink, atomics, access as a device of its own; GPUs for displays refuse all. */
ENTRY(nvmlDeviceGetP2PStatus, nvmlDevice_t a, nvmlDevice_t b, unsigned int index, unsigned int *status)
{
	enum { OK = 0, CHIPSET_NOT_SUPPORTED = 1, NOT_SUPPORTED = 5, NVLINK = 2 };
	nvmlReturn_t rc = check_two(a, b, status);

	if (rc != NVML_SUCCESS || index > 4)
		return rc != NVML_SUCCESS ? rc : NVML_INVALID_ARGUMENT;
	if (index == NVLINK)
		*status = are_linked(a, b) ? OK : NOT_SUPPORTED;
	else
		*status = a->gpu->display || b->gpu->display ? CHIPSET_NOT_SUPPORTED : OK;
	return NVML_SUCCESS;
}

/* --- fabric --- */

static nvmlReturn_t fabric_info(const struct nvml_handle *device, const void *out, nvmlGpuFabricInfo_t *info)
{
	nvmlReturn_t rc = nvml_check_gpu(device, out);

	if (rc != NVML_SUCCESS)
		return rc;
	*info = (nvmlGpuFabricInfo_t){ .state = (unsigned char)sim_data.fabric };
	for (unsigned int i = 0; i < sizeof(info->clusterUuid); i++) {
		info->clusterUuid[i] = sim_data.fabric_uuid[i];
		info->cliqueId |= sim_data.fabric_uuid[i] != 0; /* a rack has one clique, number 1 */
	}
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetGpuFabricInfo, nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
	return fabric_info(device, info, info);
}

ENTRY(nvmlDeviceGetGpuFabricInfoV, nvmlDevice_t device, nvmlGpuFabricInfo_v2_t *info)
{
	nvmlGpuFabricInfo_t first;
	nvmlReturn_t rc = fabric_info(device, info, &first);
	bool third;

	if (rc != NVML_SUCCESS)
		return rc;
	third = info->version == NVML_VERSION(nvmlGpuFabricInfo_v3_t, 3);
	if (!third && info->version != NVML_VERSION(*info, 2))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	memcpy(info->clusterUuid, first.clusterUuid, sizeof(info->clusterUuid));
	info->status = first.status;
	info->cliqueId = first.cliqueId;
	info->state = first.state;
	info->healthMask = 0;
	if (third)
		((nvmlGpuFabricInfo_v3_t *)(void *)info)->healthSummary = first.state == 3; /* healthy */
	return NVML_SUCCESS;
}

/* Only hosts in a rack know their place. */
ENTRY(nvmlDeviceGetPlatformInfo, nvmlDevice_t device, nvmlPlatformInfo_t *info)
{
	nvmlReturn_t rc = nvml_check_gpu(device, info);
	bool first;

	if (rc != NVML_SUCCESS)
		return rc;
	first = info->version == NVML_VERSION(*info, 1);
	if (!first && info->version != NVML_VERSION(*info, 2))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	if (sim_data.n_switches > 0 || sim_data.fabric == 0)
		return NVML_NOT_SUPPORTED;
	*info = (nvmlPlatformInfo_t){ .version = info->version,
				      .slotNumber = 1,
				      .hostId = 1,
				      .peerType = 1, /* through a switch */
				      .moduleId = (unsigned char)(device->gpu->minor + 1) };
	memcpy(info->ibGuid, "graft-simulated", sizeof(info->ibGuid));
	memcpy(info->chassisSerialNumber, "simulated by us", sizeof(info->chassisSerialNumber));
	return NVML_SUCCESS;
}
