/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv_facts: what only the driver's own code knows of a Tegra board: the CUDA version, the GPU's architecture, the names of GPUs. Asked in a child without
 * privileges (host/nvml.h): NVML where the board has it, libcuda where not. It may wake the GPU; ask only for what a container depends on.
 */
#ifndef GRAFT_HOST_CSV_FACTS_H
#define GRAFT_HOST_CSV_FACTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "host/csv.h"
#include "host/inventory.h"

struct graft_csv_facts {
	bool from_nvml;
	const char *cuda; /* "11.4"; NULL = not known. Minor versions of two digits are kept (Q21) */
	const char *arch; /* of the first GPU, "8.7"; NULL = not known, or not asked for */
	bool orin;        /* NVML names a GPU "Orin (nvgpu)" */
};

/*
 * Asks. `inventory` (may be NULL) says where NVML is, `csv` where libcuda is. `want_arch`: the architecture too. What cannot be found out is a warning in the log.
 * -1: GRAFT_NO_MEMORY.
 */
int graft_csv_ask(const struct graft_inventory *inventory, const struct graft_csv_inventory *csv, bool want_arch,
		  const struct graft_log *log, struct graft_arena *arena, struct graft_csv_facts *ret_facts,
		  struct graft_error *err);

#endif
