/* SPDX-License-Identifier: Apache-2.0 */
/* compat_directory: judges one libcuda, by its own note or by its version. */
#include "plan/compat_directory.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "formats/loader/cuda_compat.h"
#include "plan/loader_search.h"

#define CUDA_PREFIX "libcuda.so."

/*
 * Returns libcuda.so.<version> of the directory; NULL if there is none or more than one, because
 * then the intended one is unknown.
 */
static const struct graft_compat_library *find_compat_cuda(const struct graft_image *image)
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

bool graft_compat_suits(const struct graft_compat_library *cuda, const char *driver_version, const char *cuda_version,
			struct graft_arena *arena)
{
	struct graft_cuda_compat compat = { .cuda_version = cuda->note_cuda };
	const char *version = graft_path_name(cuda->path) + strlen(CUDA_PREFIX);

	for (size_t i = 0; i < cuda->n_note_drivers; i++) {
		uint32_t *slot = graft_arena_push(arena, &compat.drivers, &compat.n_drivers, sizeof(*slot));

		if (slot)
			*slot = (uint32_t)strtoul(cuda->note_drivers[i], NULL, 10);
	}
	return graft_cuda_compat_suits(cuda->note ? &compat : NULL, version, driver_version, cuda_version);
}

struct graft_compat_directory graft_compat_directory(const struct graft_image *image, const char *driver_version,
						     const char *cuda_version, struct graft_arena *arena)
{
	const struct graft_compat_library *cuda = find_compat_cuda(image);

	return (struct graft_compat_directory){
		.cuda = cuda,
		.suits = cuda && graft_compat_suits(cuda, driver_version, cuda_version, arena),
	};
}

const char *graft_compat_directory_obstacle(const struct graft_compat_directory *directory,
					    const struct graft_compat_library *library)
{
	const struct graft_compat_library *cuda = directory->cuda;

	if (!cuda)
		return "its directory does not have exactly one libcuda, so the drivers that it works with are not "
		       "known";
	if (!library->soname)
		return "it has no soname by which the loader could find it";
	if (!graft_path_same_directory(cuda->path, library->path))
		return "in another directory than libcuda";
	if (directory->suits)
		return NULL;
	return cuda->note ? "the libcuda beside it states that it does not work with this driver, or is not newer"
			  : "the libcuda beside it has no newer major version than the driver: not needed";
}

static void add_compat_entry(struct graft_arena *arena, struct graft_edit *edit,
			     const struct graft_compat_library *library, const char *name)
{
	struct graft_ldcache_entry *entry = graft_arena_push(arena, &edit->entries, &edit->n_entries, sizeof(*entry));

	if (!entry)
		return;
	entry->soname = graft_arena_strdup(arena, name);
	entry->path = graft_arena_strdup(arena, library->path);
	entry->abi_flags = library->abi_flags;
}

void graft_compat_add(struct graft_arena *arena, struct graft_edit *edit, const struct graft_compat_library *library)
{
	const char *folder = graft_path_directory(library->path, arena);

	add_compat_entry(arena, edit, library, library->soname);
	/*
	 * Otherwise a program that loads "libcuda.so" would get the driver's, in addition to the
	 * image's in the same process.
	 */
	for (size_t i = 0; i < library->n_development_links; i++)
		add_compat_entry(arena, edit, library, library->development_links[i]);
	if (folder)
		(void)graft_loader_add_folder(arena, edit, folder);
}
