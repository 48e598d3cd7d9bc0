/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firmware: files for the GPU's system processor, of exactly the driver's version (SPEC libnvidia-container 6.6; the places
 * of runtime-and-hook 7.5 for GRAFT_NEED_FURTHER).
 */
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "host/survey.h"

#define FIRMWARE_DIR       "/lib/firmware"
#define FIRMWARE_PATH_FILE "/sys/module/firmware_class/parameters/path"
#define FIRMWARE_PREFIX    "gsp"
#define FIRMWARE_SUFFIX    ".bin"

static bool is_firmware(const char *name)
{
	size_t length = strlen(name);

	return strncmp(name, FIRMWARE_PREFIX, strlen(FIRMWARE_PREFIX)) == 0 && length > strlen(FIRMWARE_SUFFIX) &&
	       strcmp(name + length - strlen(FIRMWARE_SUFFIX), FIRMWARE_SUFFIX) == 0;
}

/* The files of one directory. Returns 0, or -errno when it cannot be listed. */
static int list_directory(struct graft_survey *survey, const char *directory)
{
	struct graft_inventory *inventory = survey->inventory;
	const char **names;
	size_t n;
	int rc = graft_survey_list(survey, &survey->root, directory, &names, &n);

	for (size_t i = 0; rc == 0 && i < n; i++) {
		const char *path = is_firmware(names[i])
				       ? graft_arena_printf(survey->scratch, "%s/%s", directory, names[i])
				       : NULL;

		if (path &&
		    graft_arena_push_string(survey->arena, &inventory->firmwares, &inventory->n_firmwares, path))
			graft_info(survey->log, "listing firmware path %s", path);
	}
	return rc;
}

/* Where the kernel looks, best first: a directory of the administrator's choice, updates, what belongs to the kernel, the rest. */
static void list_places(struct graft_survey *survey, const char ***ret_places, size_t *ret_n)
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
	text = graft_arena_printf(scratch, FIRMWARE_DIR "/updates/%s", names.release);
	if (text)
		(void)graft_arena_push_string(scratch, ret_places, ret_n, text);
	(void)graft_arena_push_string(scratch, ret_places, ret_n, FIRMWARE_DIR "/updates");
	text = graft_arena_printf(scratch, FIRMWARE_DIR "/%s", names.release);
	if (text)
		(void)graft_arena_push_string(scratch, ret_places, ret_n, text);
}

static bool is_listed(const char *const *places, size_t n, const char *place)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(places[i], place) == 0)
			return true;
	}
	return false;
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
		list_places(survey, &places, &n);
	if (!is_listed(places, n, FIRMWARE_DIR))
		(void)graft_arena_push_string(survey->scratch, &places, &n, FIRMWARE_DIR);
	for (size_t i = 0; i < n; i++) {
		directory = graft_arena_printf(survey->scratch, "%s/nvidia/%s", places[i], version);
		rc = directory ? list_directory(survey, directory) : -ENOMEM;
	}
	if (inventory->n_firmwares == 0 && directory)
		graft_survey_omit(survey, "missing firmware path", directory, "%s",
				  rc < 0 ? strerror(-rc) : "no " FIRMWARE_PREFIX "*" FIRMWARE_SUFFIX " in it");
}
