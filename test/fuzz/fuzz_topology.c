/* SPDX-License-Identifier: Apache-2.0 */
/* A topology file of the simulated driver. */
#include "fuzz.h"
#include "topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sim_topology *topology = NULL;

	if (size <= ((size_t)64 << 10) && sim_topology_read(data, size, "input.yaml", &topology, NULL) == 0)
		(void)sim_topology_free(topology);
	return 0;
}
