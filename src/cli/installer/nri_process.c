/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri_process: the program that serves NRI. It is not part of this one: it is linked to libraries,
 * and stays in memory for every start of a container.
 */
#include "cli/installer/installer.h"

int installer_nri_start(const struct installer_options *o, struct graft_error *err)
{
	return graft_fail(err, GRAFT_UNSUPPORTED, 0, "this release serves no NRI on %s", o->nri_socket);
}
