/* SPDX-License-Identifier: Apache-2.0 */
/* csv: mode csv (SPEC runtime-and-hook 9). Not in this build: a container that asks for GPUs in this mode is refused. */
#include "cli/runtime/runtime.h"

int runtime_csv(struct runtime_create *create, struct graft_error *err)
{
	(void)create;
	return graft_fail(err, GRAFT_UNSUPPORTED, 0, "mode 'csv' is not in this build");
}
