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
	/* Not in what is mounted over the directory; the places are in the order of mounting. */
	bool is_over = place->below && place->below > shared, is_meant, is_inside;

	if (place->replaced || shared->replaced)
		return 0;
	is_meant = graft_path_is_within(place->path, shared->path);
	is_inside = !is_over && graft_path_is_within(place->at, shared->at) && strcmp(place->at, shared->at) != 0;
	if (is_meant && place->ours)
		return 0;
	if (place->entered != shared &&
	    (!is_inside || ((is_meant || shared->read_only) && exists_in(shared, place, create->arena))))
		return 0;
	if (!is_meant)
		return graft_mount_place_refuse(place, "into a directory of the host", create, err);
	return graft_fail(err, GRAFT_UNSAFE, 0, "the mount at %s would be made in a directory of the host, %s",
			  place->given, shared->directory);
}

/* `source`, if it is a directory of the host. */
static const char *directory_of(const char *source)
{
	struct stat st;

	return source && stat(source, &st) == 0 && S_ISDIR(st.st_mode) ? source : NULL;
}

static bool add_given_mount(struct graft_mount_places *places, struct graft_mount_place *place,
			    struct graft_arena *arena)
{
	place->source = place->directory;
	place->ours = true;
	return graft_mount_places_add(places, place, arena);
}

/* Each of ours replaces the first one with its destination (apply/oci/oci_mounts.c). */
static void mark_replaced(struct graft_mount_places *places)
{
	for (size_t i = 0; i < places->n; i++)
		for (size_t k = 0; places->items[i].ours && k < i; k++) {
			struct graft_mount_place *old = &places->items[k];

			if (!old->replaced && strcmp(old->given, places->items[i].given) == 0) {
				old->replaced = true;
				break;
			}
		}
}

/* What config.json has already: the engine's mounts, and those of a lease's MPS daemon. */
static bool add_earlier_places(const struct graft_start *create, struct graft_mount_places *places)
{
	if (!graft_mount_places_add_spec(places, create))
		return false;
	for (size_t i = 0; create->mps && i < create->mps->n_mounts; i++) {
		const struct graft_cdi_mount *mount = &create->mps->mounts[i];
		struct graft_mount_place place = { .path = mount->container_path, .directory = mount->host_path };

		if (!add_given_mount(places, &place, create->arena))
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
	mark_replaced(places);
	graft_mount_places_find(places, &root, create->arena);
	for (size_t i = 0; i < places->n; i++)
		if (graft_mount_place_check_volume(&places->items[i], create, err) < 0)
			return -1;
	for (size_t i = 0; i < places->n; i++)
		for (size_t k = 0; places->items[i].directory && k < places->n; k++)
			if (check_place(create, &places->items[i], &places->items[k], err) < 0)
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
		struct graft_mount_place place = { .path = edit->target,
						   .directory = edit->type == GRAFT_SOURCE_DIRECTORY ? edit->source
												     : NULL,
						   .read_only = (edit->flags & GRAFT_MOUNT_RDONLY) != 0,
						   .sorted = true };

		if (edit->kind == GRAFT_EDIT_BIND && !add_given_mount(&places, &place, create->arena))
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
		struct graft_mount_place place = { .path = mount->container_path,
						   .directory = directory_of(mount->host_path),
						   .read_only = graft_is_in(mount->options, mount->n_options, "ro") };

		if (!add_given_mount(&places, &place, create->arena))
			return graft_fail_memory(err);
	}
	return check_all_directories(create, &places, err);
}
