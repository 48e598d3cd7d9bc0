/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_directories: directories of the host that a container gets (the pipes of MPS). No link of
 * the image or of a volume, and no volume, may cause anything to be created in one of them: the
 * low-level runtime creates nodes and mount points wherever a path resolves to.
 */
#ifndef GRAFT_START_HOST_DIRECTORIES_H
#define GRAFT_START_HOST_DIRECTORIES_H

#include "formats/cdi/cdi.h"
#include "plan/plan.h"
#include "start/start.h"

/*
 * Refuse a container in which links redirect such a directory to /, /dev, /proc or /sys, or another
 * mount, of the engine or of ours, into such a directory. A root that is mounted later is not
 * examined, and a volume that changes later is not noticed. -1: GRAFT_UNSAFE, GRAFT_NO_MEMORY, and
 * GRAFT_TOO_BIG if reading the image took too long.
 */
int graft_start_check_plan_directories(const struct graft_start *create, const struct graft_plan *plan,
				       struct graft_error *err);
int graft_start_check_spec_directories(const struct graft_start *create, const struct graft_cdi_edits *edits,
				       struct graft_error *err);

#endif
