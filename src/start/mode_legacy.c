/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mode_legacy: the mode in which a prestart hook does the work (SPEC runtime-and-hook 10). The
 * runtime puts the hook into every container's configuration, and what the hook cannot provide into
 * those that request GPUs. Reading the request is left to the hook.
 */
#include <stdlib.h>

#include "apply/oci/oci_edits.h"
#include "base/cleanup.h"
#include "start/gated_devices.h"
#include "start/hook_variables.h"
#include "start/start.h"

/*
 * What containers with devices get besides the hook, in this order: gated features (SPEC
 * runtime-and-hook 10.2), then hooks for the image's CUDA compatibility libraries. Graphics (SPEC
 * runtime-and-hook 10.3) is part of the plan that the hook itself applies. None of them may set
 * NVIDIA_VISIBLE_DEVICES: the hook, which runs later, reads it, and "void" would leave the
 * container without its GPU.
 */
static int (*const additions[])(struct graft_start *create, struct graft_error *err) = {
	graft_start_give_gates,
	graft_start_give_compat,
	NULL,
};

/*
 * The engine's values of the variables that the hook reads. The hook trusts only those in its entry
 * in config.json.
 */
static int list_variables(const struct graft_start *create, const char ***ret_env, size_t *ret_n,
			  struct graft_error *err)
{
	*ret_env = NULL;
	*ret_n = 0;
	for (size_t i = 0; graft_hook_variables[i]; i++) {
		const char *name = graft_hook_variables[i], *value = secure_getenv(name);
		const char *entry = value ? graft_arena_printf(create->arena, "%s=%s", name, value) : NULL;

		if (entry)
			(void)graft_arena_push_string(create->arena, ret_env, ret_n, entry);
	}
	return graft_arena_failed(create->arena) ? graft_fail_memory(err) : 0;
}

int graft_mode_legacy(struct graft_start *create, struct graft_error *err)
{
	const char **env;
	size_t n_env;

	for (size_t i = 0; additions[i] && create->container->wants_devices; i++) {
		if (additions[i](create, err) < 0)
			return -1;
	}
	graft_debug(create->log, "adding prestart hook '%s' to the configuration unless it has one", create->hook_path);
	if (list_variables(create, &env, &n_env, err) < 0)
		return -1;
	return graft_oci_insert_runtime_hook(create->document, create->hook_path, env, n_env, err);
}
