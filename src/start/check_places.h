/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_places: what the low-level runtime must not make. It makes mount points, nodes and the
 * working directory wherever a path resolves to. No link of the image or of a volume, and no
 * volume, may cause anything to be made in a directory of the host that we give the container (the
 * pipes of MPS), or cover what nodes are made in.
 */
#ifndef GRAFT_START_CHECK_PLACES_H
#define GRAFT_START_CHECK_PLACES_H

#include "start/start.h"

/*
 * Checks the document as the low-level runtime will get it: nothing may be added to it afterwards
 * that the runtime creates. Refuses a container in which links lead
 * - a mount over the root, or a volume or such a directory over /dev, /proc or /sys,
 * - a node out of /dev, or from one volume below it into another,
 * - a mount, a node or the working directory into such a directory;
 * in which the engine has anything else made in such a directory; or in which one of these places
 * cannot be determined. A root that is mounted later is not examined, and a volume that changes
 * later is not noticed. -1: GRAFT_UNSAFE, GRAFT_NO_MEMORY, and GRAFT_TOO_BIG if reading the image
 * took too long.
 */
int graft_start_check_places(const struct graft_start *create, struct graft_error *err);

#endif
