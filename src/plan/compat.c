/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat: the image's CUDA forward-compatibility libraries (SPEC libnvidia-container 9.8). Nothing of an image is ever the source of a mount, so
 * both modes come to the same here: the loader's cache names the image's own files, ahead of the driver's.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "formats/cuda_compat.h"
#include "host/catalog.h"
#include "plan/rules.h"

#define REFUSED     "CUDA compatibility library %s"
#define CUDA_PREFIX "libcuda.so."

static uint32_t driver_major(const struct graft_inventory *inventory)
{
	const char *at = inventory->driver_version.value;
	uint32_t major = 0;

	for (; at && isdigit((unsigned char)*at) && major < 100000; at++)
		major = major * 10 + (uint32_t)(*at - '0');
	return major;
}

/* Whether the library belongs to a class that the container asked for. */
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

static size_t directory_length(const char *path)
{
	return (size_t)(graft_path_name(path) - path);
}

/* libcuda.so.<version> of the directory; NULL when there is none or several: then nobody knows which is meant (SPEC ctk-and-cdi 2.4). */
static const struct graft_compat_library *find_cuda(const struct graft_image *image)
{
	const struct graft_compat_library *found = NULL;

	for (size_t i = 0; i < image->n_compat; i++) {
		const char *name = graft_path_name(image->compat[i].path);

		if (strncmp(name, CUDA_PREFIX, strlen(CUDA_PREFIX)) != 0 || !strchr(name + strlen(CUDA_PREFIX), '.'))
			continue;
		if (found)
			return NULL;
		found = &image->compat[i];
	}
	return found;
}

/* Whether libcuda of the image suits the host's driver, by its own word or by its version. */
static bool suits(struct graft_planner *planner, const struct graft_compat_library *cuda)
{
	struct graft_cuda_compat compat = { .cuda_version = cuda->note_cuda };
	const char *version = graft_path_name(cuda->path) + strlen(CUDA_PREFIX);

	for (size_t i = 0; i < cuda->n_note_drivers; i++) {
		uint32_t *slot = graft_arena_push(planner->plan->arena, &compat.drivers, &compat.n_drivers,
						  sizeof(*slot));

		if (slot)
			*slot = (uint32_t)strtoul(cuda->note_drivers[i], NULL, 10);
	}
	return graft_cuda_compat_suits(cuda->note ? &compat : NULL, version, planner->inventory->driver_version.value,
				       NULL);
}

/*
 * Style OCI: libcuda decides for all of its directory, which the loader then prefers, as a hook would have written it into the loader's
 * configuration (SPEC ctk-and-cdi 2.4).
 */
static const char *obstacle_to_directory(struct graft_planner *planner, const struct graft_compat_library *library,
					 const struct graft_compat_library *cuda)
{
	if (!cuda)
		return "there is not exactly one libcuda beside it, so nobody knows what it suits";
	if (!library->soname)
		return "the loader has no name to find it by";
	if (directory_length(cuda->path) != directory_length(library->path) ||
	    strncmp(cuda->path, library->path, directory_length(library->path)) != 0)
		return "in another directory than libcuda";
	if (suits(planner, cuda))
		return NULL;
	return cuda->note ? "by its own word libcuda beside it does not suit this driver, or is not newer"
			  : "libcuda beside it is not of a newer major version than the driver: not needed";
}

/* Why the library is not used; NULL when it is. `first`: the first one that is used. */
static const char *obstacle(const struct graft_planner *planner, const struct graft_compat_library *library,
			    const struct graft_compat_library *first)
{
	uint32_t major = driver_major(planner->inventory);
	bool one_directory = planner->request->compat_mode == GRAFT_COMPAT_LDCONFIG;

	if (!library->soname || !is_enabled(planner, library->soname))
		return "not a library of the driver that the container asked for";
	if (library->major == 0 || major == 0)
		return "its version and the driver's cannot be compared";
	if (library->major == major)
		return "of the driver's own version: not needed";
	if (library->major < major && one_directory)
		return "older than the driver: not needed";
	/* The mode that mounts lets older ones in, but the loader's cache then prefers the newer file of a soname. */
	if (library->major < major && driver_has(planner, library->soname))
		return "the driver's own is newer";
	if (first && one_directory &&
	    (directory_length(first->path) != directory_length(library->path) ||
	     strncmp(first->path, library->path, directory_length(library->path)) != 0))
		return "in another directory than the first; this mode takes one";
	return NULL;
}

static const char *obstacle_to_all(const struct graft_planner *planner)
{
	if (!graft_plan_has(planner, GRAFT_CAP_COMPUTE))
		return "the capability compute was not asked for";
	if (graft_plan_is_disabled(planner, GRAFT_HOOK_COMPAT))
		return "switched off by the administrator";
	if (planner->request->compat_mode == GRAFT_COMPAT_DISABLED)
		return "excluded by the request";
	if (planner->policy->image.libc == GRAFT_LIBC_MUSL)
		return "the image's loader (musl) cannot use them";
	return NULL;
}

static void add_entry(struct graft_planner *planner, struct graft_edit *edit,
		      const struct graft_compat_library *library)
{
	struct graft_arena *arena = planner->plan->arena;
	struct graft_ldcache_entry *entry = graft_arena_push(arena, &edit->entries, &edit->n_entries, sizeof(*entry));
	size_t length = directory_length(library->path);
	const char *folder = graft_arena_strndup(arena, library->path, length > 1 ? length - 1 : length);

	if (!entry || !folder)
		return;
	entry->soname = graft_plan_copy(planner, library->soname);
	entry->path = graft_plan_copy(planner, library->path);
	entry->abi_flags = library->abi_flags;
	for (size_t i = 0; i < edit->n_folders; i++) {
		if (strcmp(edit->folders[i], folder) == 0)
			return;
	}
	(void)graft_arena_push_string(arena, &edit->folders, &edit->n_folders, folder);
}

void graft_plan_compat(struct graft_planner *planner, struct graft_edit *edit)
{
	const struct graft_image *image = &planner->policy->image;
	const struct graft_compat_library *first = NULL;
	const char *why_none = obstacle_to_all(planner), *why_not;
	const struct graft_compat_library *cuda = find_cuda(image);

	for (size_t i = 0; i < image->n_compat; i++) {
		const struct graft_compat_library *library = &image->compat[i];

		if (why_none)
			why_not = why_none;
		else if (planner->oci)
			why_not = obstacle_to_directory(planner, library, cuda);
		else
			why_not = obstacle(planner, library, first);
		if (why_not) {
			graft_plan_refuse(planner, why_not, REFUSED, library->path);
			continue;
		}
		if (!first)
			first = library;
		add_entry(planner, edit, library);
	}
}
