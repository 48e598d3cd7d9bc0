/* SPDX-License-Identifier: Apache-2.0 */
/* share_mps: edits of config.json, the same in all modes of the runtime. */
#include "start/share_mps.h"

#include <string.h>

#include "apply/oci/oci_edits.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "lease/lease_mps.h"
#include "start/host_mounts.h"

#define SHM "/dev/shm"

uint32_t graft_start_host_uid(const struct graft_oci_spec *spec)
{
	for (size_t i = 0; spec->new_user_namespace && i < spec->n_uid_mappings; i++) {
		const struct graft_oci_id_mapping *mapping = &spec->uid_mappings[i];

		if (spec->uid >= mapping->container_id && spec->uid - mapping->container_id < mapping->size)
			return mapping->host_id + (spec->uid - mapping->container_id);
	}
	return spec->uid;
}

/* The sizes that Docker, containerd, CRI-O and Podman give to /dev/shm by default. */
static bool is_default_shm(const struct graft_oci_mount *mount)
{
	static const char *const sizes[] = { "size=65536k", "size=67108864", "size=64m" };

	if (!mount->type || strcmp(mount->type, "tmpfs") != 0)
		return false;
	for (size_t i = 0; i < mount->n_options; i++) {
		if (graft_is_in(sizes, GRAFT_COUNT(sizes), mount->options[i]))
			return true;
	}
	return false;
}

bool graft_start_has_default_shm(const struct graft_oci_spec *spec)
{
	bool is_default = true;

	for (size_t i = 0; i < spec->n_mounts; i++) {
		if (spec->mounts[i].destination && strcmp(spec->mounts[i].destination, SHM) == 0)
			is_default = is_default_shm(&spec->mounts[i]);
	}
	return is_default;
}

static int add_shared(struct graft_start *create, const char *source, const char *target, struct graft_error *err)
{
	const struct graft_edit edit = { .kind = GRAFT_EDIT_BIND,
					 .source = source,
					 .target = target,
					 .type = GRAFT_SOURCE_DIRECTORY,
					 .mode = 0755,
					 .flags = GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOEXEC,
					 .rule = "lease-mps",
					 .why = "the lease has a slot of a GPU that MPS shares" };

	return graft_start_add_edit(create, &edit, err);
}

int graft_start_share_mps(struct graft_start *create, const struct graft_lease *lease, struct graft_error *err)
{
	struct graft_cdi_edits edits = { .n_env = 0 };
	struct graft_lease_mps mps;

	if (graft_lease_mps_find(create->config, lease, create->arena, &mps, err) < 0)
		return -1;
	if (!mps.base)
		return 0;
	create->has_lease_mps = true;
	if (add_shared(create, mps.pipe, GRAFT_START_MPS_PIPE, err) < 0)
		return -1;
	if (!mps.shm)
		graft_warn(create->log, "MPS has the host's " SHM ", which the container does not get");
	else if (!graft_start_has_default_shm(create->spec))
		graft_warn(create->log, "the container keeps its own " SHM "; MPS may need that of its daemon, %s",
			   mps.shm);
	else if (add_shared(create, mps.shm, SHM, err) < 0)
		return -1;
	if (graft_lease_mps_variables(lease, GRAFT_START_MPS_PIPE, create->arena, &edits.env, &edits.n_env, err) < 0)
		return -1;
	return graft_oci_apply_edits(create->document, &edits, err);
}
