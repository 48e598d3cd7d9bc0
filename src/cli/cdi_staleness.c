/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_staleness: one look at the host for all specifications. */
#include "cli/cdi_staleness.h"

/* The boot is not looked at: no fact that is compared changes with it alone. */
static int look(const struct cli_cdi_host *host, const char *const *assumed, size_t n_assumed,
		struct graft_cdi_fingerprint *ret_now, struct graft_error *err)
{
	struct graft_inventory *inventory;
	int rc;

	if (graft_host_identify(host->options, assumed, n_assumed, &inventory, err) < 0)
		return -1;
	rc = graft_cdi_fingerprint_make(inventory, inventory->platform == GRAFT_PLATFORM_NATIVE, NULL, host->arena,
					ret_now, err);
	/* The version is the inventory's, which ends here. */
	if (rc == 0 && ret_now->driver_version) {
		ret_now->driver_version = graft_arena_strdup(host->arena, ret_now->driver_version);
		rc = ret_now->driver_version ? 0 : graft_fail_memory(err);
	}
	(void)graft_inventory_free(inventory);
	return rc;
}

int cli_cdi_why_stale(struct cli_cdi_host *host, const struct graft_cdi_spec *spec, const char *const *devices,
		      size_t n_devices, struct graft_cdi_fingerprint *ret_made, const char **ret_why,
		      struct graft_error *err)
{
	const char **assumed = NULL;
	size_t n_assumed = 0;
	struct graft_cdi_fingerprint made, now;
	int rc = graft_cdi_fingerprint_find(spec, host->arena, ret_made, err);

	*ret_why = NULL;
	if (rc <= 0)
		return rc;
	made = *ret_made;
	if (!host->known &&
	    graft_cdi_fingerprint_narrow(&made, devices, n_devices, host->arena, &assumed, &n_assumed, err) < 0)
		return -1;
	now = host->now;
	if (!host->known && look(host, assumed, n_assumed, &now, err) < 0)
		return -1;
	/* What was looked at in part is no answer to the next question. */
	if (n_assumed == 0) {
		host->now = now;
		host->known = true;
	}
	return graft_cdi_fingerprint_compare(&made, &now, host->arena, ret_why, err) < 0 ? -1 : 1;
}
