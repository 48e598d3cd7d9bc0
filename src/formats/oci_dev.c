/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_dev: which mounts of config.json are new file systems, and where the others come from. Reads
 * only the configuration.
 */
#include "formats/oci_dev.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"

static bool is_bind_entry(const struct graft_oci_mount *mount)
{
	return graft_is_in(mount->options, mount->n_options, "bind") ||
	       graft_is_in(mount->options, mount->n_options, "rbind");
}

/* Whether it is a new file system. A devtmpfs, for example, is that of the host. */
static bool is_new_file_system(const struct graft_oci_mount *mount)
{
	static const char *const types[] = { "tmpfs", "proc", "sysfs", "mqueue", "devpts", "cgroup", "cgroup2" };

	return mount->type && graft_is_in(types, GRAFT_COUNT(types), mount->type) && !is_bind_entry(mount);
}

/* Whether the path leads us where it leads the low-level runtime, and not to a descriptor. */
static bool is_known_place(const char *source)
{
	static const char *const own[] = { "/proc/self", "/proc/thread-self", "/dev/fd" };

	if (!source || source[0] != '/' || strstr(source, "//") || graft_path_has_dots(source))
		return false;
	for (size_t i = 0; i < GRAFT_COUNT(own); i++)
		if (graft_path_is_within(source, own[i]))
			return false;
	return true;
}

void graft_oci_dev_read(const struct graft_oci_spec *spec, struct graft_arena *arena, struct graft_oci_dev *ret_dev)
{
	const struct graft_oci_mount *last = graft_oci_spec_mount_at(spec, "/dev", arena);
	struct graft_oci_dev dev = { .tmpfs = true };

	*ret_dev = (struct graft_oci_dev){ .tmpfs = false };
	if (!last || !is_new_file_system(last) || strcmp(last->type, "tmpfs") != 0)
		return;
	dev.sources = graft_arena_alloc(arena, spec->n_mounts * sizeof(*dev.sources));
	for (size_t i = 0; dev.sources && i < spec->n_mounts; i++) {
		if (is_new_file_system(&spec->mounts[i]))
			continue;
		if (!is_known_place(spec->mounts[i].source))
			return;
		dev.sources[dev.n_sources++] = graft_arena_strdup(arena, spec->mounts[i].source);
	}
	if (!graft_arena_failed(arena))
		*ret_dev = dev;
}
