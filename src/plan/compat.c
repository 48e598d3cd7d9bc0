/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat: the image's CUDA forward-compatibility libraries (SPEC libnvidia-container 9.8). Nothing
 * in an image is ever the source of a mount, so both modes have the same result here: the loader's
 * cache has the image's own files ahead of the driver's.
 */
#include <ctype.h>
#include <string.h>

#include "host/catalog.h"
#include "plan/compat_directory.h"
#include "plan/rules.h"

#define REFUSED "CUDA compatibility library %s"

static uint32_t driver_major(const struct graft_inventory *inventory)
{
	const char *at = inventory->driver_version.value;
	uint32_t major = 0;

	for (; at && isdigit((unsigned char)*at) && major < 100000; at++)
		major = major * 10 + (uint32_t)(*at - '0');
	return major;
}

/* Returns whether the library belongs to a class that the container requested. */
static bool is_enabled(const struct graft_planner *planner, const char *soname)
{
	for (size_t i = 0; i < graft_n_catalog_libraries; i++) {
		const struct graft_catalog_library *row = &graft_catalog_libraries[i];

		if (strncmp(soname, row->prefix, strlen(row->prefix)) == 0)
			return graft_plan_has(planner, graft_class_capabilities(row->class_));
	}
	return false;
}

static bool driver_has(const struct graft_planner *planner, const char *soname)
{
	const struct graft_inventory *inventory = planner->inventory;

	for (size_t i = 0; i < inventory->n_libraries; i++) {
		if (strcmp(inventory->libraries[i].soname, soname) == 0)
			return graft_plan_takes(planner, inventory->libraries, i);
	}
	return false;
}

/*
 * Returns why the library is not used, or NULL if it is. `first` is the first library that is used.
 */
static const char *compat_library_obstacle(const struct graft_planner *planner,
					   const struct graft_compat_library *library,
					   const struct graft_compat_library *first)
{
	uint32_t major = driver_major(planner->inventory);
	bool one_directory = planner->request->compat_mode == GRAFT_COMPAT_LDCONFIG;

	if (!library->soname || !is_enabled(planner, library->soname))
		return "not a library of the driver that the container asked for";
	if (library->major == 0 || major == 0)
		return "its version and the driver's cannot be compared";
	if (library->major == major)
		return "the same version as the driver: not needed";
	if (library->major < major && one_directory)
		return "older than the driver: not needed";
	/*
	 * The mode that mounts accepts older ones, but the loader's cache then prefers the newer
	 * file with the same soname.
	 */
	if (library->major < major && driver_has(planner, library->soname))
		return "the driver's own is newer";
	if (first && one_directory && !graft_path_same_directory(first->path, library->path))
		return "in another directory than the first; this mode takes one";
	return NULL;
}

/* Returns why one of the libraries is not used, or NULL if it is. */
static const char *find_compat_obstacle(const struct graft_planner *planner,
					const struct graft_compat_directory *directory,
					const struct graft_compat_library *library,
					const struct graft_compat_library *first)
{
	if (!graft_plan_has(planner, GRAFT_CAP_COMPUTE))
		return "the capability compute was not asked for";
	if (graft_plan_is_disabled(planner, GRAFT_HOOK_COMPAT))
		return "switched off by the administrator";
	if (planner->request->compat_mode == GRAFT_COMPAT_DISABLED)
		return "excluded by the request";
	if (planner->policy->image.libc == GRAFT_LIBC_MUSL)
		return "the image's loader (musl) cannot use them";
	return planner->oci ? graft_compat_directory_obstacle(directory, library)
			    : compat_library_obstacle(planner, library, first);
}

void graft_plan_compat(struct graft_planner *planner, struct graft_edit *edit)
{
	const struct graft_image *image = &planner->policy->image;
	const struct graft_compat_library *first = NULL;
	struct graft_compat_directory directory;

	if (!image->compat)
		return;
	directory = graft_compat_directory(image, planner->inventory->driver_version.value, NULL, planner->plan->arena);
	for (size_t i = 0; i < image->n_compat; i++) {
		const struct graft_compat_library *library = &image->compat[i];
		const char *why_not = find_compat_obstacle(planner, &directory, library, first);

		if (why_not)
			graft_plan_refuse(planner, why_not, REFUSED, library->path);
		else
			graft_compat_add(planner->plan->arena, edit, library);
		if (!why_not && !first)
			first = library;
	}
}
