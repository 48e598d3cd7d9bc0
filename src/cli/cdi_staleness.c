/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_staleness: one look at the host for all specifications. */
#include "cli/cdi_staleness.h"

/* The boot is not looked at: no fact that is compared changes with it alone. */
static int look(struct cli_cdi_host *host, struct graft_error *err)
{
	struct graft_inventory *inventory;
	int rc;

	if (host->known)
		return 0;
	if (graft_host_identify(host->options, &inventory, err) < 0)
		return -1;
	rc = graft_cdi_fingerprint_make(inventory, inventory->platform == GRAFT_PLATFORM_NATIVE, NULL, host->arena,
					&host->now, err);
	/* The version is the inventory's, which ends here. */
	if (rc == 0 && host->now.driver_version) {
		host->now.driver_version = graft_arena_strdup(host->arena, host->now.driver_version);
		rc = host->now.driver_version ? 0 : graft_fail_memory(err);
	}
	(void)graft_inventory_free(inventory);
	host->known = rc == 0;
	return rc;
}

int cli_cdi_why_stale(struct cli_cdi_host *host, const struct graft_cdi_spec *spec,
		      struct graft_cdi_fingerprint *ret_made, const char **ret_why, struct graft_error *err)
{
	int rc = graft_cdi_fingerprint_find(spec, host->arena, ret_made, err);

	*ret_why = NULL;
	if (rc <= 0)
		return rc;
	if (look(host, err) < 0 || graft_cdi_fingerprint_compare(ret_made, &host->now, host->arena, ret_why, err) < 0)
		return -1;
	return 1;
}
