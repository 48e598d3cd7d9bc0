/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_hooks: where the hooks of a spec run. Does not know what they do. */
#include <string.h>

#include "formats/cdi/cdi.h"

bool graft_cdi_hook_is_of_image(const struct graft_cdi_hook *hook)
{
	return strcmp(hook->stage, "startContainer") == 0;
}

static const struct graft_cdi_hook *find_open(const struct graft_cdi_edits *edits)
{
	for (size_t i = 0; i < edits->n_hooks; i++)
		if (edits->hooks[i].n_env == 0 && strcmp(edits->hooks[i].stage, "createContainer") == 0)
			return &edits->hooks[i];
	return NULL;
}

const struct graft_cdi_hook *graft_cdi_spec_find_open_hook(const struct graft_cdi_spec *spec)
{
	const struct graft_cdi_hook *found = find_open(&spec->edits);

	for (size_t i = 0; i < spec->n_devices && !found; i++)
		found = find_open(&spec->devices[i].edits);
	return found;
}
