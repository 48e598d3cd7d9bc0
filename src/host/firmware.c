/* SPDX-License-Identifier: Apache-2.0 */
/* firmware: files for the GPU's system processor, of exactly the driver's version (SPEC libnvidia-container 6.6). */
#include <string.h>

#include "host/survey.h"

#define FIRMWARE_DIR    "/lib/firmware/nvidia"
#define FIRMWARE_PREFIX "gsp"
#define FIRMWARE_SUFFIX ".bin"

static bool is_firmware(const char *name)
{
	size_t length = strlen(name);

	return strncmp(name, FIRMWARE_PREFIX, strlen(FIRMWARE_PREFIX)) == 0 && length > strlen(FIRMWARE_SUFFIX) &&
	       strcmp(name + length - strlen(FIRMWARE_SUFFIX), FIRMWARE_SUFFIX) == 0;
}

void graft_survey_firmware(struct graft_survey *survey)
{
	struct graft_inventory *inventory = survey->inventory;
	const char *directory;
	const char **names;
	size_t n;
	int rc;

	if (survey->options->no_gsp_firmware || inventory->platform == GRAFT_PLATFORM_WSL2 ||
	    !inventory->driver_version.value)
		return;
	directory = graft_arena_printf(survey->scratch, FIRMWARE_DIR "/%s", inventory->driver_version.value);
	if (!directory)
		return;
	rc = graft_survey_list(survey, &survey->root, directory, &names, &n);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const char *path = is_firmware(names[i])
				       ? graft_arena_printf(survey->scratch, "%s/%s", directory, names[i])
				       : NULL;

		if (path &&
		    graft_arena_push_string(survey->arena, &inventory->firmwares, &inventory->n_firmwares, path))
			graft_info(survey->log, "listing firmware path %s", path);
	}
	if (inventory->n_firmwares == 0)
		graft_survey_omit(survey, "missing firmware path", directory, "%s",
				  rc < 0 ? strerror(-rc) : "no " FIRMWARE_PREFIX "*" FIRMWARE_SUFFIX " in it");
}
