/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_staleness: compares the host with the fingerprint in a CDI specification. */
#include "start/cdi_staleness.h"

int graft_cdi_why_stale(const struct graft_host_options *host, const struct graft_cdi_spec *spec,
			const char *const *devices, size_t n_devices, struct graft_arena *arena,
			struct graft_cdi_fingerprint *ret_made, const char **ret_why, struct graft_error *err)
{
	const char **assumed = NULL;
	size_t n_assumed = 0;
	struct graft_cdi_fingerprint made, now;
	struct graft_inventory *inventory;
	int rc = graft_cdi_fingerprint_find(spec, arena, ret_made, err);

	*ret_why = NULL;
	if (rc <= 0)
		return rc;
	made = *ret_made;
	if (graft_cdi_fingerprint_narrow(&made, devices, n_devices, arena, &assumed, &n_assumed, err) < 0 ||
	    graft_host_identify(host, assumed, n_assumed, &inventory, err) < 0)
		return -1;
	/*
	 * The boot ID is left out: no fact that is compared here changes because of a reboot alone.
	 */
	rc = graft_cdi_fingerprint_make(inventory, inventory->platform == GRAFT_PLATFORM_NATIVE, NULL, arena, &now,
					err);
	if (rc == 0)
		rc = graft_cdi_fingerprint_compare(&made, &now, arena, ret_why, err);
	if (rc == 0 && !*ret_why)
		rc = graft_cdi_fingerprint_compare_nodes(&made, inventory, spec, devices, n_devices, arena, ret_why,
							 err);
	(void)graft_inventory_free(inventory);
	return rc < 0 ? -1 : 1;
}
