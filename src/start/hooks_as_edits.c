/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks_as_edits: gathers what a plan of the hooks' work needs to know of the image and the host,
 * and detects what cannot be known before the container's mounts exist.
 */
#include "start/hooks_as_edits.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/budget.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "formats/loader/ldcache.h"
#include "host/discover.h"
#include "host/mounted_libraries.h"
#include "plan/hooks_plan.h"
#include "plan/loader_search.h"
#include "start/give.h"

/* Images without /etc/ld.so.conf are left to update-ldcache itself. */
static bool has_loader_configuration(const struct graft_image_root *root, const struct graft_image *image)
{
	struct stat st;

	return graft_loader_is_musl(image) || graft_image_root_stat(root, "/etc/ld.so.conf", &st) == 0;
}

/* Whether the directory holds the image's compatibility libraries, all of which have been read. */
static bool is_compat_folder(const struct graft_image *image, const char *folder)
{
	size_t length = strlen(folder);

	for (size_t i = 0; i < image->n_compat; i++)
		if (strncmp(image->compat[i].path, folder, length) == 0 &&
		    graft_path_name(image->compat[i].path) == image->compat[i].path + length + 1)
			return true;
	return false;
}

/* Where a mount will be. */
static const char *resolve_place(const struct graft_image_root *root, const char *place, struct graft_arena *arena)
{
	const char *clean = graft_path_clean("/", place ? place : "/", arena);

	return clean ? graft_start_image_place(root, clean, arena) : NULL;
}

static bool is_volume_at(const struct graft_start *create, const char *folder)
{
	for (size_t i = 0; i < create->spec->n_mounts; i++) {
		const char *place = create->spec->mounts[i].destination;

		place = place ? graft_path_clean("/", place, create->arena) : NULL;
		if (place && strcmp(place, "/") != 0 && graft_path_overlap(place, folder))
			return true;
	}
	return false;
}

/*
 * Whether the plan adds a directory to the loader's search path that may hold libraries, of the
 * image or of a volume, that has not been read yet.
 */
static bool has_new_folder(const struct graft_start *create, const struct graft_image_root *root,
			   const struct graft_image *image, const struct graft_plan *plan)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		for (size_t j = 0; j < edit->n_missing_folders; j++) {
			const char *folder = edit->missing_folders[j];

			if (!is_compat_folder(image, folder) &&
			    (is_volume_at(create, folder) || (!graft_loader_was_added(image, folder) &&
							      graft_image_root_has(root, folder, O_DIRECTORY))))
				return true;
		}
	}
	return false;
}

/*
 * Whether the specification mounts a whole directory where the loader searches: its content is only
 * known once it is mounted.
 */
static bool has_mounted_folder(const struct graft_image_root *root, const struct graft_mounted_libraries *libraries,
			       const char *const *folders, size_t n_folders, struct graft_arena *arena)
{
	const char **places = graft_arena_list(arena, libraries->n_directories, sizeof(*places));

	for (size_t i = 0; places && i < libraries->n_directories; i++)
		places[i] = resolve_place(root, libraries->directories[i], arena);
	for (size_t j = 0; places && j < n_folders && libraries->n_directories > 0; j++) {
		const char *folder = resolve_place(root, folders[j], arena);

		/* Until it is known, the hooks have to find out. */
		if (graft_budget_is_spent(root->budget))
			return true;
		for (size_t i = 0; folder && i < libraries->n_directories; i++)
			if (places[i] && graft_path_is_within(folder, places[i]))
				return true;
	}
	return false;
}

/*
 * Whether the specification mounts a library into one of the directories under another name of that
 * directory.
 */
static bool has_hidden_library(const struct graft_image_root *root, const struct graft_mounted_libraries *libraries,
			       const char *const *folders, size_t n_folders, struct graft_arena *arena)
{
	for (size_t i = 0; i < libraries->n_others; i++) {
		const char *path = libraries->others[i], *directory, *resolved;

		if (!graft_ldcache_is_library_name(graft_path_name(path)))
			continue;
		directory = graft_path_directory(path, arena);
		resolved = directory ? resolve_place(root, directory, arena) : NULL;
		if (resolved && strcmp(resolved, directory) != 0 && !graft_is_in(folders, n_folders, directory) &&
		    graft_is_in(folders, n_folders, resolved))
			return true;
	}
	return false;
}

/*
 * The directories that the loader will search: the hooks' directories and, for a cache, those of
 * the image, where the specification may mount libraries as well.
 */
static const char **list_folders(const struct graft_start *create, const struct graft_hook_work *work,
				 const struct graft_image *image, size_t *ret_n)
{
	const char **folders = NULL;

	*ret_n = 0;
	for (size_t i = 0; i < work->n_folders; i++)
		(void)graft_arena_push_string(create->arena, &folders, ret_n, work->folders[i]);
	for (size_t i = 0; work->ldcache && i < image->n_loader_dirs; i++)
		(void)graft_arena_push_string(create->arena, &folders, ret_n, image->loader_dirs[i]);
	return folders;
}

/*
 * Whether a mount changes the directory of the image's compatibility libraries, once links are
 * resolved: /usr/local/cuda is a link in most images. graft_hooks_read() has compared the paths
 * only as they are written.
 */
static bool is_compat_mounted_over(const struct graft_start *create, const struct graft_image_root *root,
				   const struct graft_cdi_edits *edits, const char *directory)
{
	const struct graft_oci_spec *spec = create->spec;

	for (size_t i = 0; i < edits->n_mounts + spec->n_mounts; i++) {
		const char *place = i < edits->n_mounts ? edits->mounts[i].container_path
							: spec->mounts[i - edits->n_mounts].destination;

		place = resolve_place(root, place, create->arena);
		if (place && strcmp(place, "/") != 0 && graft_path_overlap(place, directory))
			return true;
	}
	return false;
}

/* Adds to *image what a plan needs. 1: all of it is known. 0: the hooks have to run. */
static int look_at_hooks_image(const struct graft_start *create, struct cdi_image *seen,
			       const struct graft_cdi_edits *edits, const struct graft_hook_work *work,
			       struct graft_image *image, struct graft_error *err)
{
	const struct graft_image_root *root = &seen->root;
	const char *directory;
	int rc;

	if (graft_reader_finish(&seen->reader, create->arena, image, NULL, NULL, err) < 0)
		return -1;
	if (work->ldcache && !has_loader_configuration(root, image))
		return 0;
	if (!work->compat_root)
		return 1;
	/*
	 * A hook wrote this file when the container was started before, and has to remove it
	 * itself.
	 */
	if (graft_image_root_has(root, GRAFT_HOOK_COMPAT_CONF, 0))
		return 0;
	rc = graft_image_root_resolve(root, work->compat_root, create->arena, &directory, NULL);
	if (rc == -ENOENT || rc == -ENOTDIR)
		return 1;
	/*
	 * A name with a newline cannot be written to the loader's configuration. The hook reports
	 * that.
	 */
	if (rc < 0 || strchr(directory, '\n') || is_compat_mounted_over(create, root, edits, directory))
		return 0;
	return graft_image_find_compat(root, work->compat_root, create->log, create->arena, &image->compat,
				       &image->n_compat, err) < 0
		   ? -1
		   : 1;
}

/* Makes the plan of the hooks' work; ret_planned->plan stays NULL if they have to run. */
static int make_hooks_plan(struct graft_start *create, struct cdi_image *seen, const struct graft_cdi_edits *edits,
			   const struct graft_hook_work *work, struct cdi_planned *ret_planned, struct graft_error *err)
{
	const struct graft_image_root *root = &seen->root;
	struct graft_image *image = &ret_planned->image;
	struct graft_mounted_libraries libraries;
	struct graft_hook_facts facts = { .image = image };
	const char **folders;
	size_t n_folders;
	int rc = seen->there ? look_at_hooks_image(create, seen, edits, work, image, err) : 0;

	if (rc <= 0)
		return rc;
	folders = list_folders(create, work, image, &n_folders);
	if (graft_arena_failed(create->arena))
		return graft_fail_memory(err);
	if (graft_mounted_libraries_read(edits, folders, n_folders, create->arena, &libraries, err) < 0 ||
	    (work->params && graft_params_for_container(create->arena, &facts.params, err) < 0))
		return -1;
	facts.libraries = libraries.items;
	facts.n_libraries = libraries.n;
	ret_planned->seen = libraries.sources;
	ret_planned->n_seen = libraries.n_sources;
	ret_planned->plan = graft_hooks_plan(work, &facts, err);
	if (!ret_planned->plan)
		return -1;
	if (work->ldcache && (has_new_folder(create, root, image, ret_planned->plan) ||
			      has_mounted_folder(root, &libraries, folders, n_folders, create->arena) ||
			      has_hidden_library(root, &libraries, folders, n_folders, create->arena)))
		ret_planned->plan = graft_plan_free(ret_planned->plan);
	if (graft_arena_failed(create->arena)) {
		ret_planned->plan = graft_plan_free(ret_planned->plan);
		return graft_fail_memory(err);
	}
	create->other_mounts = libraries.others;
	create->n_other_mounts = libraries.n_others;
	return 0;
}

int cdi_image_start(const struct graft_start *create, struct cdi_image *image, struct graft_error *err)
{
	int rc = graft_start_open_image(create, &image->root, err);

	image->there = rc > 0;
	return rc > 0 ? graft_image_start_loader(&image->root, NULL, create->log, &image->reader, err) : rc;
}

void cdi_image_done(struct cdi_image *image)
{
	graft_reader_drop(&image->reader);
	graft_image_root_close(&image->root);
}

/* The plan does the work of all hooks but those of the image. */
static int keep_image_hooks(struct graft_arena *arena, struct graft_cdi_edits *edits, struct graft_error *err)
{
	const struct graft_cdi_edits whole = *edits;

	edits->hooks = NULL;
	edits->n_hooks = 0;
	for (size_t i = 0; i < whole.n_hooks; i++) {
		struct graft_cdi_hook *kept;

		if (!graft_cdi_hook_is_of_image(&whole.hooks[i]))
			continue;
		kept = graft_arena_push(arena, &edits->hooks, &edits->n_hooks, sizeof(*kept));
		if (!kept)
			return graft_fail_memory(err);
		*kept = whole.hooks[i];
	}
	return 0;
}

int cdi_plan_hooks(struct graft_start *create, struct cdi_image *image, struct graft_cdi_edits *edits,
		   struct cdi_planned *ret_planned, struct graft_error *err)
{
	struct graft_hook_work work;
	bool known;

	*ret_planned = (struct cdi_planned){ .plan = NULL };
	if (graft_hooks_read(create->cdi_hook_path, edits, create->spec, create->arena, &work, &known, err) < 0 ||
	    (known && make_hooks_plan(create, image, edits, &work, ret_planned, err) < 0))
		return -1;
	return ret_planned->plan ? keep_image_hooks(create->arena, edits, err) : 0;
}
