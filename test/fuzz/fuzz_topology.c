/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of topologies, and what the simulated libraries would be given. */
#include "data.h"
#include "fuzz.h"
#include "topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sim_data block;
	struct sim_topology *topology = NULL;
	struct graft_error err;

	if (size <= 65536 && sim_topology_read(data, size, "fuzz.yaml", &topology, &err) == 0)
		sim_topology_data(topology, &block);
	(void)sim_topology_free(topology);
	return 0;
}
