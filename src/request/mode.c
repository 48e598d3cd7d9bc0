/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mode: decides how a container gets its GPUs (SPEC runtime-and-hook 5.1). Knows what was
 * requested, and probes the host only if that affects the decision.
 */
#include <string.h>

#include "formats/cdi/cdi.h"
#include "request/container.h"

const char *const graft_mode_names[GRAFT_MODE_MAX] = {
	[GRAFT_MODE_LEGACY] = "legacy",
	[GRAFT_MODE_JIT_CDI] = "jit-cdi",
	[GRAFT_MODE_CDI] = "cdi",
	[GRAFT_MODE_CSV] = "csv",
};

static bool are_all_cdi_names(const struct graft_strings *devices)
{
	for (size_t i = 0; i < devices->n; i++) {
		if (!graft_cdi_is_qualified(devices->items[i]))
			return false;
	}
	return devices->n > 0;
}

bool graft_mode_is_board(const struct graft_platform_facts *probes)
{
	return !probes->dxcore && ((probes->tegra_files && !probes->nvml) || probes->integrated_gpu);
}

static enum graft_mode resolve_auto(const struct graft_container *container, enum graft_mode automatic,
				    struct graft_platform_facts (*probe)(void *arg), void *arg)
{
	struct graft_platform_facts probes;

	if (are_all_cdi_names(&container->devices))
		return GRAFT_MODE_CDI;
	probes = probe(arg);
	return graft_mode_is_board(&probes) ? GRAFT_MODE_CSV : automatic;
}

int graft_mode_resolve(const char *word, const struct graft_container *container, enum graft_mode automatic,
		       struct graft_platform_facts (*probe)(void *arg), void *arg, enum graft_mode *ret_mode,
		       struct graft_error *err)
{
	if (!word || word[0] == '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "a mode must be specified");
	if (strcmp(word, "auto") == 0) {
		*ret_mode = resolve_auto(container, automatic, probe, arg);
		return 0;
	}
	for (unsigned int i = 0; i < GRAFT_MODE_MAX; i++) {
		if (strcmp(word, graft_mode_names[i]) == 0) {
			*ret_mode = (enum graft_mode)i;
			return 0;
		}
	}
	return graft_fail(err, GRAFT_INVALID, 0, "invalid mode \"%s\" (allowed are auto, legacy, csv, cdi, jit-cdi)",
			  word);
}
