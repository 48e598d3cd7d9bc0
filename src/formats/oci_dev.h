/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_dev: what config.json mounts at a container's /dev. A tmpfs there may be new, or a volume of
 * the host; this is known without the table of mounts, which takes longer to read the more the host
 * has mounted.
 */
#ifndef GRAFT_FORMATS_OCI_DEV_H
#define GRAFT_FORMATS_OCI_DEV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "formats/oci_spec.h"

struct graft_oci_dev {
	bool tmpfs;           /* a new tmpfs is mounted there; a link of the image can lead one of `sources` over it */
	const char **sources; /* absolute paths of the host, of all mounts that are not new file systems */
	size_t n_sources;
};

/*
 * Reads this. The strings are copied. If anything is unclear, or if out of memory, `tmpfs` is
 * false.
 */
void graft_oci_dev_read(const struct graft_oci_spec *spec, struct graft_arena *arena, struct graft_oci_dev *ret_dev);

#endif
