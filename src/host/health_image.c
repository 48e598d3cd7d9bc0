/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health_image: an image's file system as somebody unpacked it: does it ship libraries of a driver, and which compatibility libraries of CUDA? Everything is
 * looked up below its root; it is untrusted.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/catalog.h"
#include "host/health_look.h"

#define FILES_MAX 64u

/* Real files only, with a version of a driver behind the name: what packages of an image bring, and not an injected driver's mount points. */
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

static bool is_listed(const struct graft_health_image *image, const char *path)
{
	for (size_t i = 0; i < image->n_driver_files; i++) {
		if (strcmp(image->driver_files[i], path) == 0)
			return true;
	}
	return false;
}

static void look_at_directory(struct graft_health_look *look, const struct graft_root *root, const char *directory)
{
	struct graft_health_image *image = &look->health->image;
	const char **names, *path, *resolved;
	struct stat st;
	size_t n;

	if (graft_survey_list(&look->survey, root, directory, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n && image->n_driver_files < FILES_MAX; i++) {
		if (!is_driver_file(names[i]))
			continue;
		path = graft_arena_printf(look->scratch, "%s/%s", directory, names[i]);
		/* An empty file is a mount point that an earlier container left in an overlay's upper directory. */
		if (!path || graft_root_stat(root, path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0 ||
		    graft_health_note(look, path, graft_root_resolve(root, path, look->scratch, &resolved, NULL)) < 0)
			continue;
		if (!is_listed(image, resolved))
			(void)graft_arena_push_string(look->arena, &image->driver_files, &image->n_driver_files,
						      resolved);
	}
}

int graft_health_look_image(struct graft_health_look *look, struct graft_error *err)
{
	struct graft_health_image *image = &look->health->image;
	auto_root struct graft_root root = GRAFT_ROOT_INIT;

	if (!look->options->image)
		return 0;
	if (graft_root_open(&root, look->options->image, err) < 0)
		return graft_wrap(err, "image");
	image->path = graft_arena_strdup(look->arena, look->options->image);
	for (size_t i = 0; i < graft_n_catalog_library_directories; i++)
		look_at_directory(look, &root, graft_catalog_library_directories[i].path);
	return graft_image_inspect(&root, true, NULL, look->arena, &image->image, err);
}
