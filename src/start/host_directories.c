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
	const char *volume;    /* of the engine: what it mounts there; or NULL */
	const char *at;        /* where links of the image lead `path` */
	bool read_only;
};

struct places {
	struct place *items; /* ours, then the engine's */
	size_t n, n_ours;
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

/*
 * Whether a mount at `path` will be at exactly that path: no link and no other mount is on the way.
 */
static bool is_plain_place(const struct graft_image_root *root, const char *path)
{
	int rc = graft_image_root_look_plain(root, path);

	return rc == 0 || rc == -ENOENT || rc == -ENOTDIR;
}

/* Whether a mount will cover what the image has at `path`. */
static bool is_covered_place(const char *path, const char *cover)
{
	return graft_path_is_system(path) || (cover && graft_path_is_within(path, cover));
}

/* Returns the length of the link's text, 0 if `path` is not a link, or -errno. */
static ssize_t read_image_link(const struct graft_image_root *root, const char *path, char *text, size_t size)
{
	auto_close int fd = graft_image_root_look(root, path, O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
	n = readlinkat(fd, "", text, size);
	/* QUIRK: ENOENT says that an O_PATH descriptor is not that of a link; EINVAL is for paths. */
	return n < 0 ? 0 : n;
}

/*
 * Follows links one by one. SECURITY: what the image has in a place that is covered is not there
 * when the mounts are made, so it is not believed.
 */
const char *graft_start_find_place(const struct graft_image_root *root, const char *path, const char *cover,
				   struct graft_arena *arena)
{
	const char *done = "/", *rest = path;
	int n_links = 0;

	if (is_plain_place(root, path))
		return path;
	while (rest && *(rest += strspn(rest, "/")) != '\0') {
		size_t length = strcspn(rest, "/");
		/* No link is in `done`, so ".." may be removed from it. */
		const char *name = graft_arena_strndup(arena, rest, length),
			   *next = name ? graft_path_clean(done, name, arena) : NULL;
		char text[PATH_MAX];
		ssize_t n = 0;

		rest += length;
		if (!next)
			return NULL;
		if (strcmp(next, "/") != 0 && !is_covered_place(next, cover))
			n = read_image_link(root, next, text, sizeof(text) - 1);
		if (n < 0 || (n > 0 && ++n_links > LINKS_MAX))
			return NULL;
		if (n == 0) {
			done = next;
			continue;
		}
		text[n] = '\0';
		done = text[0] == '/' ? "/" : done;
		rest = graft_arena_printf(arena, "%s/%s", text, rest);
	}
	return rest ? done : NULL;
}

static int refuse_directory(const struct graft_image_root *root, const char *path, const char *where,
			    const struct graft_arena *arena, struct graft_error *err)
{
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	if (graft_budget_left_ms(root->budget) == 0)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "reading the container's image takes too long");
	return graft_fail(err, GRAFT_UNSAFE, 0, "a link in the image leads the mount at %s %s", path, where);
}

bool graft_start_is_led_over_system(const struct graft_image_root *root, const char *path, struct graft_arena *arena)
{
	const char *clean = graft_path_clean("/", path, arena),
		   *to = clean ? graft_start_find_place(root, clean, NULL, arena) : NULL;

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
 * Refuses a place that a link in a volume of the engine leads elsewhere. A volume that changes
 * later is not noticed.
 */
static int check_volumes(const struct places *places, const struct place *place, struct graft_budget *budget,
			 struct graft_error *err)
{
	for (size_t i = places->n_ours; i < places->n; i++) {
		const struct place *mount = &places->items[i];
		auto_image_root struct graft_image_root volume = GRAFT_IMAGE_ROOT_INIT;
		const char *below;
		int fd;

		if (!mount->volume || !graft_path_is_within(place->at, mount->at))
			continue;
		below = place->at + strlen(mount->at);
		if (below[0] != '/')
			continue;
		fd = open(mount->volume, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue; /* the runtime reports what is wrong with it */
		graft_image_root_take(&volume, fd, budget);
		if (!is_plain_place(&volume, below))
			return graft_fail(err, GRAFT_UNSAFE, 0,
					  "a link in the volume %s leads the mount at %s elsewhere", mount->volume,
					  place->path);
	}
	return 0;
}

/*
 * QUIRK: crun makes directories read-only after it has made all mounts. Nothing is created where
 * such a directory has something.
 */
static int check_directory(const struct graft_image_root *root, const struct places *places, const struct place *shared,
			   struct graft_arena *arena, struct graft_error *err)
{
	const char *to = shared->at;

	if (strcmp(to, shared->path) != 0 && graft_path_is_system(to))
		return refuse_directory(root, shared->path, "over /dev, /proc or /sys", arena, err);
	for (size_t i = 0; i < places->n; i++) {
		const char *path = places->items[i].path, *place = places->items[i].at;

		if (graft_path_is_within(path, shared->path))
			continue;
		/* On its way it may pass through what the directory covers. */
		if (strcmp(place, path) != 0)
			place = graft_start_find_place(root, path, to, arena);
		if (!place || (strcmp(place, to) != 0 && graft_path_is_within(place, to) &&
			       !(shared->read_only && exists_in(shared, to, place, arena))))
			return refuse_directory(root, path, "into a directory of the host", arena, err);
	}
	return 0;
}

/* `source`, if it is a directory of the host. */
static const char *directory_of(const char *source)
{
	struct stat st;

	return source && stat(source, &st) == 0 && S_ISDIR(st.st_mode) ? source : NULL;
}

/* What config.json has already: the mounts of a lease's MPS daemon, and the engine's. */
static bool add_earlier_places(const struct graft_start *create, struct places *places)
{
	const struct graft_oci_spec *spec = create->spec;

	for (size_t i = 0; create->mps && i < create->mps->n_mounts; i++) {
		const struct graft_cdi_mount *mount = &create->mps->mounts[i];

		if (!add_directory_place(
			create, places,
			&(struct place){ .path = mount->container_path, .directory = mount->host_path }))
			return false;
	}
	places->n_ours = places->n;
	for (size_t i = 0; i < spec->n_mounts; i++) {
		const struct graft_oci_mount *mount = &spec->mounts[i];
		struct place place = { .path = mount->destination };

		if (graft_start_is_bind(mount))
			place.volume = graft_oci_mount_source(mount, create->bundle, create->arena);
		if (!add_directory_place(create, places, &place))
			return false;
	}
	return true;
}

static int find_all_places(const struct graft_image_root *root, const struct places *places, struct graft_arena *arena,
			   struct graft_error *err)
{
	for (size_t i = 0; i < places->n; i++) {
		struct place *place = &places->items[i];

		place->at = graft_start_find_place(root, place->path, NULL, arena);
		if (!place->at)
			return refuse_directory(
			    root, place->path,
			    place->directory ? "over /dev, /proc or /sys" : "into a directory of the host", arena, err);
	}
	return 0;
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
	if (rc > 0 && find_all_places(&root, places, create->arena, err) < 0)
		rc = -1;
	for (size_t i = 0; rc > 0 && i < places->n; i++)
		if (places->items[i].directory &&
		    check_directory(&root, places, &places->items[i], create->arena, err) < 0)
			rc = -1;
	for (size_t i = 0; rc > 0 && i < places->n_ours; i++)
		if (check_volumes(places, &places->items[i], create->budget, err) < 0)
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
