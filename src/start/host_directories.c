/* SPDX-License-Identifier: Apache-2.0 */
/* host_directories: resolves paths in an image before its mounts are made. */
#include "start/host_directories.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "start/give.h"

#define LINKS_MAX 40 /* as in the kernel */

struct place {
	const char *path;      /* in the container */
	const char *directory; /* of the host, if this is one; or NULL */
	bool read_only;
};

struct places {
	struct place *items;
	size_t n;
};

static bool add_directory_place(const struct graft_start *create, struct places *places, const struct place *given)
{
	struct place *place = graft_arena_push(create->arena, &places->items, &places->n, sizeof(*place));

	if (!place)
		return false;
	*place = *given;
	place->path = given->path ? graft_path_clean("/", given->path, create->arena) : "/";
	return place->path != NULL;
}

/* The target of a dangling link as an absolute path; NULL: not a link. */
static const char *follow_directory(const struct graft_image_root *root, const char *path, struct graft_arena *arena)
{
	auto_close int fd = graft_image_root_look(root, path, O_NOFOLLOW);
	char text[PATH_MAX];
	ssize_t n = fd >= 0 ? readlinkat(fd, "", text, sizeof(text) - 1) : -1;
	const char *directory = n > 0 ? graft_path_directory(path, arena) : NULL;

	if (!directory)
		return NULL;
	text[n] = '\0';
	return graft_path_clean(directory, text, arena);
}

/*
 * Whether a mount at `path` will be at exactly that path: no link and no other mount is on the way.
 */
static bool is_plain_place(const struct graft_image_root *root, const char *path)
{
	int rc = graft_image_root_look_plain(root, path);

	return rc == 0 || rc == -ENOENT || rc == -ENOTDIR;
}

const char *graft_start_find_place(const struct graft_image_root *root, const char *path, struct graft_arena *arena)
{
	for (int n_links = 0; path && n_links <= LINKS_MAX; n_links++) {
		const char *at = path, *resolved = NULL, *to = NULL;

		if (is_plain_place(root, path))
			return path;
		while (at && graft_image_root_resolve(root, at, arena, &resolved, NULL) < 0) {
			to = follow_directory(root, at, arena);
			if (to || strcmp(at, "/") == 0)
				break;
			at = graft_path_directory(at, arena);
			resolved = NULL;
		}
		if (!at || (!to && !resolved))
			return NULL;
		to = to ? to : resolved;
		path = graft_arena_printf(arena, "%s%s", strcmp(to, "/") == 0 ? "" : to,
					  path + (strcmp(at, "/") == 0 ? 0 : strlen(at)));
		if (path && path[0] == '\0')
			path = "/";
		if (to == resolved)
			return path;
	}
	return NULL;
}

static int refuse_directory(const struct graft_image_root *root, const char *path, const char *where,
			    struct graft_error *err)
{
	if (graft_budget_left_ms(root->budget) == 0)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "reading the container's image takes too long");
	return graft_fail(err, GRAFT_UNSAFE, 0, "a link in the image leads the mount at %s %s", path, where);
}

bool graft_start_is_led_over_system(const struct graft_image_root *root, const char *path, struct graft_arena *arena)
{
	const char *clean = graft_path_clean("/", path, arena),
		   *to = clean ? graft_start_find_place(root, clean, arena) : NULL;

	return !to || (strcmp(to, clean) != 0 && graft_path_is_system(to));
}

/* Whether `place` exists in the directory, which is at `to` in the container. */
static bool exists_in(const struct place *directory, const char *to, const char *place, struct graft_arena *arena)
{
	const char *path = graft_arena_printf(arena, "%s%s", directory->directory, place + strlen(to));
	struct stat st;

	return path && lstat(path, &st) == 0 && !S_ISLNK(st.st_mode);
}

/*
 * QUIRK: crun makes directories read-only after it has made all mounts. Only the host changes such
 * a directory, so nothing is created where it has something.
 */
static int check_directory(const struct graft_image_root *root, const struct places *places, const struct place *shared,
			   struct graft_arena *arena, struct graft_error *err)
{
	const char *to = graft_start_find_place(root, shared->path, arena);

	if (!to || (strcmp(to, shared->path) != 0 && graft_path_is_system(to)))
		return refuse_directory(root, shared->path, "over /dev, /proc or /sys", err);
	for (size_t i = 0; i < places->n; i++) {
		const char *path = places->items[i].path, *place;

		if (graft_path_is_within(path, shared->path))
			continue;
		place = graft_start_find_place(root, path, arena);
		if (!place || (strcmp(place, to) != 0 && graft_path_is_within(place, to) &&
			       !(shared->read_only && exists_in(shared, to, place, arena))))
			return refuse_directory(root, path, "into a directory of the host", err);
	}
	return 0;
}

/* `source`, if it is a directory of the host. */
static const char *directory_of(const char *source)
{
	struct stat st;

	return source && stat(source, &st) == 0 && S_ISDIR(st.st_mode) ? source : NULL;
}

/* What config.json has already: the engine's mounts, and those of a lease's MPS daemon. */
static bool add_earlier_places(const struct graft_start *create, struct places *places)
{
	const struct graft_oci_spec *spec = create->spec;

	for (size_t i = 0; i < spec->n_mounts; i++)
		if (!add_directory_place(create, places, &(struct place){ .path = spec->mounts[i].destination }))
			return false;
	for (size_t i = 0; create->mps && i < create->mps->n_mounts; i++) {
		const struct graft_cdi_mount *mount = &create->mps->mounts[i];

		if (!add_directory_place(
			create, places,
			&(struct place){ .path = mount->container_path, .directory = mount->host_path }))
			return false;
	}
	return true;
}

static int check_all_directories(const struct graft_start *create, struct places *places, struct graft_error *err)
{
	auto_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	bool any = create->mps != NULL;
	int rc;

	for (size_t i = 0; i < places->n; i++)
		any = any || places->items[i].directory;
	if (any && !add_earlier_places(create, places))
		return graft_fail_memory(err);
	rc = any ? graft_start_open_image(create, &root, err) : 0;
	for (size_t i = 0; rc > 0 && i < places->n; i++)
		if (places->items[i].directory &&
		    check_directory(&root, places, &places->items[i], create->arena, err) < 0)
			rc = -1;
	return rc < 0 ? -1 : 0;
}

int graft_start_check_plan_directories(const struct graft_start *create, const struct graft_plan *plan,
				       struct graft_error *err)
{
	struct places places = { .n = 0 };

	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];
		const struct place place = { .path = edit->target,
					     .directory = edit->type == GRAFT_SOURCE_DIRECTORY ? edit->source : NULL,
					     .read_only = (edit->flags & GRAFT_MOUNT_RDONLY) != 0 };

		if (edit->kind == GRAFT_EDIT_BIND && !add_directory_place(create, &places, &place))
			return graft_fail_memory(err);
	}
	return check_all_directories(create, &places, err);
}

int graft_start_check_spec_directories(const struct graft_start *create, const struct graft_cdi_edits *edits,
				       struct graft_error *err)
{
	struct places places = { .n = 0 };

	for (size_t i = 0; i < edits->n_mounts; i++) {
		const struct graft_cdi_mount *mount = &edits->mounts[i];
		const struct place place = { .path = mount->container_path,
					     .directory = directory_of(mount->host_path),
					     .read_only = graft_is_in(mount->options, mount->n_options, "ro") };

		if (!add_directory_place(create, &places, &place))
			return graft_fail_memory(err);
	}
	return check_all_directories(create, &places, err);
}
