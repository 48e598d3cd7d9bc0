/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firmware: files for the GPU's processors, of exactly the driver's version (SPEC
 * libnvidia-container 6.6; with GRAFT_NEED_FURTHER, the directories of SPEC runtime-and-hook 7.5).
 */
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/strings.h"
#include "host/catalog.h"
#include "host/survey.h"

#define FIRMWARE_DIR       "/lib/firmware"
#define FIRMWARE_PATH_FILE "/sys/module/firmware_class/parameters/path"

static bool is_firmware(const struct graft_survey *survey, const char *name)
{
	for (size_t i = 0; i < graft_n_catalog_firmwares; i++) {
		const struct graft_catalog_firmware *row = &graft_catalog_firmwares[i];

		if ((row->needs & survey->needs) == row->needs && graft_starts_with(name, row->prefix))
			return graft_ends_with(name, GRAFT_CATALOG_FIRMWARE_SUFFIX);
	}
	return false;
}

/* Adds the firmware files of one directory. Returns 0, or -errno if it cannot be listed. */
static int list_directory(struct graft_survey *survey, const char *directory)
{
	struct graft_inventory *inventory = survey->inventory;
	const char **names;
	size_t n;
	int rc = graft_survey_list(survey, &survey->root, directory, &names, &n);

	for (size_t i = 0; rc == 0 && i < n; i++) {
		const char *path = is_firmware(survey, names[i])
				       ? graft_arena_printf(survey->scratch, "%s/%s", directory, names[i])
				       : NULL;

		if (path &&
		    graft_arena_push_string(survey->arena, &inventory->firmwares, &inventory->n_firmwares, path))
			graft_info(survey->log, "listing firmware path %s", path);
	}
	return rc;
}

/*
 * The directories that the kernel searches, in its order: the administrator's choice, updates for
 * this kernel, updates, this kernel. The caller adds the default.
 */
static void list_firmware_places(struct graft_survey *survey, const char ***ret_places, size_t *ret_n)
{
	struct graft_arena *scratch = survey->scratch;
	struct utsname names;
	const char *text;
	size_t length;

	if (graft_survey_read(survey, FIRMWARE_PATH_FILE, &text, &length) == 0) {
		length = strcspn(text, "\n");
		while (length > 1 && text[length - 1] == '/')
			length--;
		text = graft_arena_strndup(scratch, text, length);
		if (text && text[0] == '/')
			(void)graft_arena_push_string(scratch, ret_places, ret_n, text);
	}
	if (uname(&names) < 0)
		return;
	(void)graft_arena_push_string(scratch, ret_places, ret_n,
				      graft_arena_printf(scratch, FIRMWARE_DIR "/updates/%s", names.release));
	(void)graft_arena_push_string(scratch, ret_places, ret_n, FIRMWARE_DIR "/updates");
	(void)graft_arena_push_string(scratch, ret_places, ret_n,
				      graft_arena_printf(scratch, FIRMWARE_DIR "/%s", names.release));
}

void graft_survey_firmware(struct graft_survey *survey)
{
	struct graft_inventory *inventory = survey->inventory;
	const char *version = inventory->driver_version.value, *directory = NULL, **places = NULL;
	size_t n = 0;
	int rc = -ENOMEM;

	if (survey->options->no_gsp_firmware || inventory->platform == GRAFT_PLATFORM_WSL2 || !version)
		return;
	if (survey->needs & GRAFT_NEED_FURTHER)
		list_firmware_places(survey, &places, &n);
	if (!graft_is_in(places, n, FIRMWARE_DIR))
		(void)graft_arena_push_string(survey->scratch, &places, &n, FIRMWARE_DIR);
	for (size_t i = 0; i < n; i++) {
		directory = graft_arena_printf(survey->scratch, "%s/nvidia/%s", places[i], version);
		rc = directory ? list_directory(survey, directory) : -ENOMEM;
	}
	if (inventory->n_firmwares == 0 && directory)
		graft_survey_omit(survey, "missing firmware path", directory, "%s",
				  rc < 0 ? strerror(-rc) : "no gsp*" GRAFT_CATALOG_FIRMWARE_SUFFIX " in it");
}
