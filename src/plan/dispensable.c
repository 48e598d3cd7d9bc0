/* SPDX-License-Identifier: Apache-2.0 */
/* dispensable: compares paths with the rows of the catalogue. Looks at no file. */
#include "plan/dispensable.h"

#include <string.h>

#include "base/path.h"
#include "base/strings.h"
#include "host/catalog.h"

/* Returns whether a path of this length is `name` below some directory. */
static bool is_named(const char *path, size_t length, const char *name)
{
	size_t n = strlen(name);

	return length > n && path[length - n - 1] == '/' && strcmp(path + length - n, name) == 0;
}

static bool is_further_library(const char *name)
{
	for (size_t i = 0; i < graft_n_catalog_libraries; i++)
		if (graft_starts_with(name, graft_catalog_libraries[i].prefix))
			return false;
	for (size_t i = 0; i < graft_n_catalog_further_libraries; i++)
		if ((graft_catalog_further_libraries[i].needs & GRAFT_NEED_FURTHER) &&
		    graft_starts_with(name, graft_catalog_further_libraries[i].row.prefix))
			return true;
	return false;
}

static bool is_further_binary(const char *name)
{
	for (size_t i = 0; i < graft_n_catalog_binaries; i++)
		if (strcmp(name, graft_catalog_binaries[i].name) == 0)
			return (graft_catalog_binaries[i].needs & GRAFT_NEED_FURTHER) != 0;
	return false;
}

static bool is_xorg_module(const char *name)
{
	for (size_t i = 0; i < graft_n_catalog_xorg_modules; i++)
		if (graft_starts_with(name, graft_catalog_xorg_modules[i].name))
			return true;
	return false;
}

static bool is_further_firmware(const char *name)
{
	for (size_t i = 0; i < graft_n_catalog_firmwares; i++)
		if ((graft_catalog_firmwares[i].needs & GRAFT_NEED_FURTHER) &&
		    graft_starts_with(name, graft_catalog_firmwares[i].prefix))
			return graft_ends_with(name, GRAFT_CATALOG_FIRMWARE_SUFFIX);
	return false;
}

bool graft_is_dispensable(const char *path)
{
	const char *name = path ? graft_path_name(path) : NULL;
	size_t length;

	if (!name)
		return false;
	length = strlen(path);
	for (size_t i = 0; i < graft_n_catalog_extras; i++)
		if (is_named(path, length, graft_catalog_extras[i].name))
			return true;
	return is_further_library(name) || is_further_binary(name) || is_further_firmware(name) || is_xorg_module(name);
}
