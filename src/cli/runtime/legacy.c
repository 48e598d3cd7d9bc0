/* SPDX-License-Identifier: Apache-2.0 */
/*
 * legacy: the mode in which a prestart hook does the work (SPEC runtime-and-hook 10): the runtime puts the hook into every container's
 * configuration, and what the hook cannot do into those that ask for GPUs. It does not read what is asked for; the hook does.
 */
#include "apply/oci_edits.h"
#include "base/cleanup.h"
#include "cli/runtime/gates.h"
#include "cli/runtime/runtime.h"

/*
 * What containers with devices get besides the hook, in this order: gated features (SPEC 10.2), then graphics (SPEC 10.3). None of them may
 * set NVIDIA_VISIBLE_DEVICES: the hook, which runs later, reads it, and "void" would leave the container without its GPU.
 */
static int (*const additions[])(struct runtime_create *create, struct graft_error *err) = {
	runtime_give_gates,
	runtime_give_compat,
	NULL,
};

int runtime_legacy(struct runtime_create *create, struct graft_error *err)
{
	for (size_t i = 0; additions[i] && create->container->wants_devices; i++) {
		if (additions[i](create, err) < 0)
			return -1;
	}
	graft_debug(create->log, "prestart hook '%s' is put into the configuration unless one is there",
		    create->hook_path);
	return graft_oci_insert_runtime_hook(create->document, create->hook_path, err);
}
