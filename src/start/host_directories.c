/* SPDX-License-Identifier: Apache-2.0 */
/* host_directories: compares where the mounts of a container will be. */
#include "start/host_directories.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "start/give.h"
#include "start/mount_places.h"

static const char over_system[] = "over /dev, /proc or /sys";
static const char into_directory[] = "into a directory of the host";

/* Whether the directory has what is to be mounted over. */
static bool exists_in(const struct graft_mount_place *directory, const struct graft_mount_place *place,
		      struct graft_arena *arena)
{
	const char *path = graft_arena_printf(arena, "%s%s", directory->directory, place->at + directory->length);
	struct stat st;

	return path && lstat(path, &st) == 0 && !S_ISLNK(st.st_mode);
}

/*
 * QUIRK: crun makes directories read-only after it has made all mounts. Nothing is created where
 * such a directory has something. SECURITY: an image can have volumes anywhere, also in there.
 */
static int check_place(const struct graft_start *create, const struct graft_mount_place *shared,
		       const struct graft_mount_place *place, struct graft_error *err)
{
	bool is_meant = graft_path_is_within(place->path, shared->path);
	bool is_inside = graft_path_is_within(place->at, shared->at) && strcmp(place->at, shared->at) != 0;

	if ((!is_inside && place->entered != shared) || (is_meant && place->ours) ||
	    (is_inside && (is_meant || shared->read_only) && exists_in(shared, place, create->arena)))
		return 0;
	if (!is_meant)
		return graft_mount_place_refuse(place, into_directory, create, err);
	return graft_fail(err, GRAFT_UNSAFE, 0, "the mount at %s would be made in a directory of the host, %s",
			  place->path, shared->directory);
}

static int check_directory(const struct graft_start *create, const struct graft_mount_places *places,
			   const struct graft_mount_place *shared, struct graft_error *err)
{
	if (strcmp(shared->at, shared->path) != 0 && graft_path_is_system(shared->at))
		return graft_mount_place_refuse(shared, over_system, create, err);
	for (size_t i = 0; i < places->n; i++)
		if (check_place(create, shared, &places->items[i], err) < 0)
			return -1;
	return 0;
}

/* `source`, if it is a directory of the host. */
static const char *directory_of(const char *source)
{
	struct stat st;

	return source && stat(source, &st) == 0 && S_ISDIR(st.st_mode) ? source : NULL;
}

/* `directory`: of the host, or NULL if it is a file. */
static bool add_given_mount(struct graft_mount_places *places, const char *path, const char *directory, bool read_only,
			    struct graft_arena *arena)
{
	const struct graft_mount_place place = {
		.path = path, .source = directory, .directory = directory, .ours = true, .read_only = read_only
	};

	return graft_mount_places_add(places, &place, arena);
}

/* What config.json has already: the engine's mounts, and those of a lease's MPS daemon. */
static bool add_earlier_places(const struct graft_start *create, struct graft_mount_places *places)
{
	if (!graft_mount_places_add_spec(places, create))
		return false;
	for (size_t i = 0; create->mps && i < create->mps->n_mounts; i++) {
		const struct graft_cdi_mount *mount = &create->mps->mounts[i];

		if (!add_given_mount(places, mount->container_path, mount->host_path, false, create->arena))
			return false;
	}
	return true;
}

static int check_all_directories(const struct graft_start *create, struct graft_mount_places *places,
				 struct graft_error *err)
{
	auto_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	bool any = false;
	int rc;

	for (size_t i = 0; i < places->n; i++)
		any = any || places->items[i].directory;
	rc = any ? graft_start_open_image(create, &root, err) : 0;
	if (rc <= 0)
		return rc;
	graft_mount_places_find(places, &root, create->arena);
	for (size_t i = 0; i < places->n; i++)
		if (!places->items[i].at)
			return graft_mount_place_refuse(
			    &places->items[i], places->items[i].directory ? over_system : into_directory, create, err);
	for (size_t i = 0; i < places->n; i++)
		if (places->items[i].directory && check_directory(create, places, &places->items[i], err) < 0)
			return -1;
	return 0;
}

int graft_start_check_plan_directories(const struct graft_start *create, const struct graft_plan *plan,
				       struct graft_error *err)
{
	struct graft_mount_places places = { .n = 0 };

	if (!add_earlier_places(create, &places))
		return graft_fail_memory(err);
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];
		const char *directory = edit->type == GRAFT_SOURCE_DIRECTORY ? edit->source : NULL;

		if (edit->kind == GRAFT_EDIT_BIND &&
		    !add_given_mount(&places, edit->target, directory, (edit->flags & GRAFT_MOUNT_RDONLY) != 0,
				     create->arena))
			return graft_fail_memory(err);
	}
	return check_all_directories(create, &places, err);
}

int graft_start_check_spec_directories(const struct graft_start *create, const struct graft_cdi_edits *edits,
				       struct graft_error *err)
{
	struct graft_mount_places places = { .n = 0 };

	if (!add_earlier_places(create, &places))
		return graft_fail_memory(err);
	for (size_t i = 0; i < edits->n_mounts; i++) {
		const struct graft_cdi_mount *mount = &edits->mounts[i];
		const char *directory = directory_of(mount->host_path);

		if (!add_given_mount(&places, mount->container_path, directory,
				     graft_is_in(mount->options, mount->n_options, "ro"), create->arena))
			return graft_fail_memory(err);
	}
	return check_all_directories(create, &places, err);
}
