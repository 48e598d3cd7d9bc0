/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_image: an unpacked file system of an image: whether it contains libraries of a driver, and
 * which CUDA compatibility libraries. Everything is looked up below its root; it is untrusted.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "doctor/look.h"
#include "host/catalog.h"

#define FILES_MAX 64u
#define NAMES_MAX 65536 /* of a directory */

/*
 * Accepts names that end with a driver version, as installed by packages of an image; links and
 * mount points of an injected driver are ignored.
 */
static bool is_driver_file(const char *name)
{
	for (size_t i = 0; i < graft_n_catalog_libraries; i++) {
		const char *prefix = graft_catalog_libraries[i].prefix;
		size_t length = strlen(prefix);

		/* An image's own GL (glvnd) is not the driver's. */
		if (graft_catalog_libraries[i].class_ == GRAFT_CLASS_GLVND ||
		    graft_catalog_libraries[i].class_ == GRAFT_CLASS_NO_GLVND)
			continue;
		if (strncmp(name, prefix, length) == 0 && name[length] == '.' && strchr(name + length + 1, '.'))
			return true;
	}
	return false;
}

static void look_at_image_directory(struct graft_health_look *look, const struct graft_image_root *root,
				    const char *directory)
{
	struct graft_health_image *image = &look->health->image;
	const char **names, *path, *resolved;
	struct stat st;
	size_t n;

	if (graft_image_list_names(root, directory, NAMES_MAX, look->scratch, &names, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n && image->n_driver_files < FILES_MAX; i++) {
		if (!is_driver_file(names[i]))
			continue;
		path = graft_arena_printf(look->scratch, "%s/%s", directory, names[i]);
		/*
		 * An empty file is a mount point that an earlier container left in an overlay's
		 * upper directory.
		 */
		if (!path || graft_image_root_stat(root, path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0 ||
		    graft_health_note(look, path,
				      graft_image_root_resolve(root, path, look->scratch, &resolved, NULL)) < 0)
			continue;
		if (!graft_is_in(image->driver_files, image->n_driver_files, resolved))
			(void)graft_arena_push_string(look->arena, &image->driver_files, &image->n_driver_files,
						      resolved);
	}
}

int graft_health_look_image(struct graft_health_look *look, struct graft_error *err)
{
	struct graft_health_image *image = &look->health->image;
	auto_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	struct graft_budget *budget;
	int fd, rc;

	if (!look->options->image)
		return 0;
	fd = open(look->options->image, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		(void)graft_fail_errno(err, errno, "open failed: %s", look->options->image);
		return graft_wrap(err, "image");
	}
	budget = graft_budget_new(GRAFT_BUDGET_CPU_MS);
	graft_image_root_take(&root, fd, budget);
	if (!budget)
		return graft_fail_memory(err);
	image->path = graft_arena_strdup(look->arena, look->options->image);
	for (size_t i = 0; i < graft_n_catalog_library_directories; i++)
		look_at_image_directory(look, &root, graft_catalog_library_directories[i].path);
	rc = graft_image_inspect(&root, true, NULL, look->arena, &image->image, err);
	graft_budget_free(budget);
	return rc;
}
