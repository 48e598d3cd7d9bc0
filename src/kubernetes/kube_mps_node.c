/* SPDX-License-Identifier: Apache-2.0 */
/* kube_mps_node: reads the facts from which kube_mps.c makes a list. */
#include "host/discover.h"
#include "kubernetes/kube_mps.h"
#include "kubernetes/kube_tables.h"

static int read_mps_inventory(const struct graft_kube_config *config, const struct graft_host_options *options,
			      enum graft_kube_ask ask, struct graft_inventory *inventory, struct graft_arena *arena,
			      struct graft_kube_mps *ret_mps, struct graft_error *err)
{
	struct graft_kept_facts kept = { .n_devices = 0 };
	struct graft_kube_offer offer;

	/*
	 * NVML's answer has the memory of the GPUs, and other facts that the kernel does not
	 * report.
	 */
	if (inventory->n_gpus > 0 && graft_kube_facts(options, NULL, ask, inventory, arena, &kept, err) < 0)
		return -1;
	if (graft_kube_offer(config, inventory, NULL, options->log, arena, &offer, err) < 0)
		return -1;
	return graft_kube_mps_plan(&offer, inventory, &kept, arena, ret_mps, err);
}

int graft_kube_mps_read(const struct graft_kube_config *config, enum graft_kube_ask ask, const struct graft_log *log,
			struct graft_arena *arena, struct graft_kube_mps *ret_mps, struct graft_error *err)
{
	const struct graft_host_options options = kube_host_options(&config->flags, log);
	enum graft_kube_sharing_strategy sharing;
	struct graft_inventory *inventory = NULL;
	int rc;

	*ret_mps = (struct graft_kube_mps){ .n_daemons = 0 };
	(void)graft_kube_replication(config, &sharing);
	if (sharing != GRAFT_KUBE_MPS)
		return 0;
	rc = graft_host_discover(&options, GRAFT_NEED_NODES | GRAFT_NEED_GPUS | GRAFT_NEED_MIG, &inventory, err);
	if (rc == 0)
		rc = read_mps_inventory(config, &options, ask, inventory, arena, ret_mps, err);
	(void)graft_inventory_free(inventory);
	return rc;
}
