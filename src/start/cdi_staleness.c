/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_staleness: compares the host with the fingerprint in a CDI specification. */
#include "start/cdi_staleness.h"

/* A specification and the names of some of its devices. */
struct choice {
	const struct graft_cdi_spec *spec;
	const char *const *devices;
	size_t n_devices;
};

static int compare_with_host(const struct graft_cdi_host *host, const struct choice *choice,
			     const struct graft_cdi_fingerprint *made, const struct graft_inventory *inventory,
			     const char **ret_why, struct graft_error *err)
{
	struct graft_cdi_fingerprint now;

	/*
	 * The boot ID is left out: no fact that is compared here changes because of a reboot alone.
	 */
	if (graft_cdi_fingerprint_make(inventory, inventory->platform == GRAFT_PLATFORM_NATIVE, NULL, host->arena, &now,
				       err) < 0 ||
	    graft_cdi_fingerprint_compare(made, &now, host->arena, ret_why, err) < 0)
		return -1;
	return *ret_why ? 0
			: graft_cdi_fingerprint_compare_nodes(made, inventory, choice->spec, choice->devices,
							      choice->n_devices, host->arena, ret_why, err);
}

int graft_cdi_why_stale(const struct graft_cdi_host *host, const struct graft_cdi_spec *spec,
			const char *const *devices, size_t n_devices, struct graft_cdi_fingerprint *ret_made,
			const char **ret_why, struct graft_error *err)
{
	const struct choice choice = { spec, devices, n_devices };
	const char **assumed = NULL;
	size_t n_assumed = 0;
	struct graft_cdi_fingerprint made;
	struct graft_inventory *inventory;
	int rc = graft_cdi_fingerprint_find(spec, host->arena, ret_made, err);

	*ret_why = NULL;
	if (rc <= 0)
		return rc;
	made = *ret_made;
	if (graft_cdi_fingerprint_narrow(&made, devices, n_devices, host->arena, &assumed, &n_assumed, err) < 0 ||
	    graft_host_identify(host->options, assumed, n_assumed, &inventory, err) < 0)
		return -1;
	rc = compare_with_host(host, &choice, &made, inventory, ret_why, err);
	(void)graft_inventory_free(inventory);
	return rc < 0 ? -1 : 1;
}
