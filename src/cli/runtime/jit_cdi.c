/* SPDX-License-Identifier: Apache-2.0 */
/* jit_cdi: mode jit-cdi (SPEC runtime-and-hook 7). Not in this build: a container that asks for GPUs in this mode is refused. */
#include "cli/runtime/runtime.h"

int runtime_jit_cdi(struct runtime_create *create, struct graft_error *err)
{
	(void)create;
	return graft_fail(err, GRAFT_UNSUPPORTED, 0, "mode 'jit-cdi' is not in this build");
}
