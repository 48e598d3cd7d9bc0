/* SPDX-License-Identifier: Apache-2.0 */
/* kube_sharing: by which rule a device is shared, and the names of resources. */
#include <string.h>

#include "base/strings.h"
#include "kubernetes/kube_tables.h"

/* Returns whether the devices that are shared include this one, the `place`th of its resource. */
static bool is_kube_shared(const struct graft_kube_shared_resource *shared, const char *index, const char *id,
			   size_t place)
{
	if (shared->n_devices > 0)
		return graft_is_in(shared->devices, shared->n_devices, index) ||
		       graft_is_in(shared->devices, shared->n_devices, id);
	return shared->n_first == 0 || place < shared->n_first;
}

const struct graft_kube_shared_resource *kube_find_sharing(const struct graft_kube_replication *replication,
							   const char *resource, const char *index, const char *id,
							   size_t place)
{
	for (size_t i = 0; replication && i < replication->n_resources; i++) {
		const struct graft_kube_shared_resource *shared = &replication->resources[i];

		if (strcmp(shared->name, resource) == 0 && is_kube_shared(shared, index, id, place))
			return shared;
	}
	return NULL;
}

const char *kube_name_shared(const struct graft_kube_replication *replication,
			     const struct graft_kube_shared_resource *shared, struct graft_arena *arena)
{
	if (shared->rename[0] != '\0')
		return shared->rename;
	if (replication->rename_by_default)
		return graft_arena_printf(arena, "%s.shared", shared->name);
	return shared->name;
}

const char *kube_name_mig(const char *profile, struct graft_arena *arena)
{
	char *name = graft_arena_printf(arena, "%smig-%s", GRAFT_KUBE_PREFIX, profile);

	for (char *at = name; at && *at != '\0'; at++) {
		if (*at == '+')
			*at = '.';
	}
	return name;
}

bool kube_is_board(const struct graft_kube_config *config, const struct graft_inventory *inventory)
{
	switch (config->flags.discovery) {
	case GRAFT_KUBE_DISCOVERY_TEGRA:
		return true;
	case GRAFT_KUBE_DISCOVERY_NVML:
		return false;
	case GRAFT_KUBE_DISCOVERY_AUTO:
		break;
	}
	return inventory->platform == GRAFT_PLATFORM_TEGRA && inventory->n_gpus == 0;
}
