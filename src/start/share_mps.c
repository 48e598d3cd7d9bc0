/* SPDX-License-Identifier: Apache-2.0 */
/* share_mps: edits of config.json, the same in all modes of the runtime. */
#include "start/share_mps.h"

#include <string.h>

#include "apply/oci/oci_edits.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "lease/lease_mps.h"

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

int graft_start_share_mps(const struct graft_config *config, const struct graft_oci_spec *spec,
			  const struct graft_lease *lease, const struct graft_log *log, struct graft_arena *arena,
			  struct graft_json_document *document, const struct graft_cdi_edits **ret_mps,
			  struct graft_error *err)
{
	static const char *options[] = { "rbind", "rw", "nosuid", "nodev", "noexec", "rprivate" };
	struct graft_lease_mps mps;
	struct graft_cdi_mount mounts[2] = { { .container_path = GRAFT_START_MPS_PIPE }, { .container_path = SHM } };
	struct graft_cdi_edits edits = { .n_mounts = 1 };

	*ret_mps = NULL;
	if (graft_lease_mps_find(config, lease, arena, &mps, err) < 0)
		return -1;
	if (!mps.base)
		return 0;
	mounts[0].host_path = mps.pipe;
	mounts[1].host_path = mps.shm;
	for (size_t i = 0; i < GRAFT_COUNT(mounts); i++) {
		mounts[i].type = "bind";
		mounts[i].options = options;
		mounts[i].n_options = GRAFT_COUNT(options);
	}
	if (!mps.shm)
		graft_warn(log, "MPS has the host's " SHM ", which the container does not get");
	else if (graft_start_has_default_shm(spec))
		edits.n_mounts = 2;
	else
		graft_warn(log, "the container keeps its own " SHM "; MPS may need that of its daemon, %s", mps.shm);
	if (graft_lease_mps_variables(lease, GRAFT_START_MPS_PIPE, arena, &edits.env, &edits.n_env, err) < 0)
		return -1;
	edits.mounts = graft_arena_memdup(arena, mounts, sizeof(mounts));
	*ret_mps = graft_arena_memdup(arena, &edits, sizeof(edits));
	if (!edits.mounts || !*ret_mps)
		return graft_fail_memory(err);
	return graft_oci_apply_edits(document, &edits, err);
}
