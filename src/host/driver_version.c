/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_version: determines which driver the kernel runs, whether it is simulated, and the CUDA
 * version that follows from it. Reads only text files; libraries.c determines the version of the
 * libraries.
 */
#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/procfs.h"
#include "host/catalog.h"
#include "host/survey.h"

#define SYS_MODULE  "/sys/module/nvidia"
#define SYS_VERSION SYS_MODULE "/version"

const char *graft_cuda_version_bound(const char *driver_version)
{
	char *end;
	unsigned long branch;

	if (!driver_version || !isdigit((unsigned char)driver_version[0]))
		return NULL;
	branch = strtoul(driver_version, &end, 10);
	if (*end != '.')
		return NULL;
	for (size_t i = 0; i < graft_n_catalog_branches; i++) {
		if (graft_catalog_branches[i].branch == branch)
			return graft_catalog_branches[i].cuda;
	}
	return NULL;
}

void graft_survey_bound_cuda(struct graft_inventory *inventory)
{
	const char *bound = graft_cuda_version_bound(inventory->driver_version.value);

	if (bound)
		inventory->cuda_version = (struct graft_fact){ bound, "bounded from driver version" };
}

static bool has_module_directory(const struct graft_root *root, const char *path)
{
	return root->fd >= 0 && graft_root_has(root, path, O_DIRECTORY);
}

/*
 * WSL2, Tegra and a hidden procfs have no text from the kernel driver that could carry the mark.
 * The simulator leaves a list of its files in a driver root, and a file in /run while it runs a
 * program.
 */
static bool has_simulator_files(const struct graft_survey *survey)
{
	const struct {
		const struct graft_root *root;
		const char *path;
	} files[] = {
		{ &survey->root, "/.graft-sim" },
		{ &survey->root, "/run/graft-sim/devices" },
		{ &survey->host, "/run/graft-sim/devices" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(files); i++) {
		if (files[i].root->fd >= 0 && graft_root_has(files[i].root, files[i].path, 0))
			return true;
	}
	return false;
}

static void read_proc_version(struct graft_survey *survey)
{
	struct graft_inventory *inventory = survey->inventory;
	const char *text;
	size_t length;

	if (graft_survey_read_proc(survey, GRAFT_PROC_VERSION, &text, &length) < 0)
		return;
	survey->module_loaded = true;
	inventory->simulated = strstr(text, GRAFT_SIMULATED_MARK) != NULL;
	inventory->driver_version.value = graft_procfs_driver_version(text, length, survey->arena);
	inventory->driver_version.source = inventory->driver_version.value ? GRAFT_PROC_VERSION : NULL;
	if (!inventory->driver_version.value)
		graft_survey_omit(survey, "skipping", GRAFT_PROC_VERSION, "there is no driver version in it");
}

/* The file contains only the version. */
static void read_sys_version(struct graft_survey *survey)
{
	struct graft_inventory *inventory = survey->inventory;
	const char *text;
	size_t length, digits;

	if (has_module_directory(&survey->root, SYS_MODULE) || has_module_directory(&survey->host, SYS_MODULE))
		survey->module_loaded = true;
	if (graft_survey_read(survey, SYS_VERSION, &text, &length) < 0)
		return;
	digits = strspn(text, "0123456789.");
	if (digits == 0 || (text[digits] != '\n' && text[digits] != '\0'))
		return;
	inventory->driver_version.value = graft_arena_strndup(survey->arena, text, digits);
	inventory->driver_version.source = SYS_VERSION;
}

void graft_survey_versions(struct graft_survey *survey)
{
	struct graft_inventory *inventory = survey->inventory;

	read_proc_version(survey);
	if (!inventory->driver_version.value)
		read_sys_version(survey);
	if (!inventory->driver_version.source || strcmp(inventory->driver_version.source, GRAFT_PROC_VERSION) != 0)
		inventory->simulated = has_simulator_files(survey);
	if (inventory->simulated)
		graft_warn(survey->log, "the driver of this host is simulated");
	graft_survey_bound_cuda(inventory);
}
