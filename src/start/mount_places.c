/* SPDX-License-Identifier: Apache-2.0 */
/* mount_places: follows links one by one, each in the mount that will be visible there. */
#include "start/mount_places.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "start/give.h"

#define LINKS_MAX 40 /* as in the kernel */

bool graft_mount_places_add(struct graft_mount_places *places, const struct graft_mount_place *given,
			    struct graft_arena *arena)
{
	struct graft_mount_place *place = graft_arena_push(arena, &places->items, &places->n, sizeof(*place));

	if (!place)
		return false;
	*place = *given;
	place->given = given->path ? given->path : "/";
	place->path = graft_path_clean("/", place->given, arena);
	place->order = places->n;
	for (const char *at = place->path; at && *at != '\0'; at++)
		place->depth += *at == '/';
	place->depth -= place->given[0] != '/';
	return place->path != NULL;
}

bool graft_mount_places_add_spec(struct graft_mount_places *places, const struct graft_start *create)
{
	for (size_t i = 0; i < create->spec->n_mounts; i++) {
		const struct graft_oci_mount *mount = &create->spec->mounts[i];
		struct graft_mount_place place = { .path = mount->destination };

		if (graft_start_is_bind(mount))
			place.source = graft_oci_mount_source(mount, create->bundle, create->arena);
		place.copies = graft_is_in(mount->options, mount->n_options, "tmpcopyup");
		place.plain = create->plain_mounts && create->plain_mounts[i];
		if (!graft_mount_places_add(places, &place, create->arena))
			return false;
	}
	return true;
}

static int compare_mount_places(const void *a, const void *b)
{
	const struct graft_mount_place *x = a, *y = b;

	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	if (x->sorted && y->sorted && strcmp(x->path, y->path) != 0)
		return strcmp(x->path, y->path);
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Like graft_path_is_within(). Long paths, which an image may choose, differ at their end. */
static bool covers_place(const struct graft_mount_place *mount, const char *path, size_t length)
{
	size_t tail = mount->length < 8 ? mount->length : 8, start = mount->length - tail;

	if (!mount->at || mount->copies || mount->replaced || length < mount->length)
		return false;
	if (mount->length == 1)
		return true;
	return (path[mount->length] == '\0' || path[mount->length] == '/') &&
	       memcmp(path + start, mount->at + start, tail) == 0 && memcmp(path, mount->at, start) == 0;
}

/* The last mount that covers it. */
static const struct graft_mount_place *find_covering(const struct graft_mount_places *places, const char *path)
{
	size_t length = strlen(path);

	for (size_t i = places ? places->n : 0; i-- > 0;)
		if (covers_place(&places->items[i], path, length))
			return &places->items[i];
	return NULL;
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
 * SECURITY: what the image has in a place that a mount covers is not there when the mounts are
 * made, so it is not believed.
 */
static ssize_t read_visible_link(const struct graft_image_root *root, const struct graft_mount_place *mount,
				 const char *path, char *text, size_t size)
{
	auto_image_root struct graft_image_root volume = GRAFT_IMAGE_ROOT_INIT;
	int fd;

	if (!mount)
		return read_image_link(root, path, text, size);
	if (!mount->source || strcmp(path, mount->at) == 0)
		return 0;
	fd = open(mount->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* the runtime reports what is wrong with it */
	graft_image_root_take(&volume, fd, root->budget);
	return read_image_link(&volume, path + (mount->length == 1 ? 0 : mount->length), text, size);
}

/* Whether a mount at `path` will be at exactly that path: no link is on the way. */
static bool is_plain_place(const struct graft_image_root *root, const char *path)
{
	int rc = graft_path_has_dots(path) ? -ELOOP : graft_image_root_look_plain(root, path);

	return rc == 0 || rc == -ENOENT || rc == -ENOTDIR;
}

/*
 * Whether `next` would be made in a directory of the host. QUIRK: crun 1.8 makes each component
 * that a link names, also if ".." follows.
 */
static bool is_made_in_directory(const struct graft_mount_place *mount, const char *next, struct graft_arena *arena)
{
	const char *path;
	struct stat st;

	if (!mount || !mount->directory || strcmp(next, mount->at) == 0)
		return false;
	path = graft_arena_printf(arena, "%s%s", mount->directory, next + mount->length);
	return !path || lstat(path, &st) < 0;
}

static bool is_place_covered(const struct graft_mount_places *places, const char *path)
{
	return places ? find_covering(places, path) != NULL : graft_path_is_system(path);
}

const char *graft_start_find_place(const struct graft_image_root *root, const char *path,
				   const struct graft_mount_places *places, struct graft_arena *arena,
				   const struct graft_mount_place **ret_entered)
{
	const char *done = "/", *rest = path;
	int n_links = 0;

	if (!is_place_covered(places, path) && is_plain_place(root, path))
		return path;
	while (rest && *(rest += strspn(rest, "/")) != '\0') {
		size_t length = strcspn(rest, "/");
		/* No link is in `done`, so ".." may be removed from it. */
		const char *name = graft_arena_strndup(arena, rest, length),
			   *next = name ? graft_path_clean(done, name, arena) : NULL;
		const struct graft_mount_place *mount;
		char text[PATH_MAX];
		ssize_t n = 0;

		rest += length;
		if (!next || graft_budget_is_spent(root->budget))
			return NULL;
		mount = find_covering(places, next);
		if (ret_entered && !*ret_entered && (n_links > 0 || graft_path_has_dots(path)) &&
		    is_made_in_directory(mount, next, arena))
			*ret_entered = mount;
		if (strcmp(next, "/") != 0 && (mount || !is_place_covered(places, next)))
			n = read_visible_link(root, mount, next, text, sizeof(text) - 1);
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

void graft_mount_places_find(struct graft_mount_places *places, const struct graft_image_root *root,
			     struct graft_arena *arena)
{
	if (places->n > 0)
		qsort(places->items, places->n, sizeof(*places->items), compare_mount_places);
	for (size_t i = 0; i < places->n && !graft_budget_is_spent(root->budget); i++) {
		const struct graft_mount_places earlier = { places->items, i };
		struct graft_mount_place *place = &places->items[i];
		bool has_dots = graft_path_has_dots(place->given);
		bool plain = place->plain && !has_dots && !find_covering(&earlier, place->path);

		place->at = plain ? place->path
				  : graft_start_find_place(root, has_dots ? place->given : place->path, &earlier, arena,
							   &place->entered);
		place->length = place->at ? strlen(place->at) : 0;
		place->below = place->at ? find_covering(&earlier, place->at) : NULL;
	}
}

/* What is below /proc and /sys has links of the kernel's; no node is made there. */
static bool stays_below(const struct graft_mount_place *place, const char *tree)
{
	return !place->ours && graft_path_is_within(place->path, tree) && graft_path_is_within(place->at, tree) &&
	       strcmp(place->at, tree) != 0;
}

int graft_mount_place_check_volume(const struct graft_mount_place *place, const struct graft_start *create,
				   struct graft_error *err)
{
	if (place->replaced)
		return 0;
	if (!place->at)
		return graft_mount_place_refuse(place, "to a place that cannot be determined", create, err);
	/* Only a volume has files of the host that could be changed. */
	if (!place->source)
		return 0;
	if (strcmp(place->at, "/") == 0 && strcmp(place->given, "/") != 0)
		return graft_mount_place_refuse(place, "over the whole root", create, err);
	if (strcmp(place->at, place->path) == 0)
		return 0;
	if (graft_path_is_system(place->at) && !stays_below(place, "/proc") && !stays_below(place, "/sys"))
		return graft_mount_place_refuse(place, "over /dev, /proc or /sys", create, err);
	return 0;
}

int graft_mount_place_refuse(const struct graft_mount_place *place, const char *where, const struct graft_start *create,
			     struct graft_error *err)
{
	if (graft_arena_failed(create->arena))
		return graft_fail_memory(err);
	if (!place->at && graft_budget_left_ms(create->budget) == 0)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "reading the container's image takes too long");
	return graft_fail(err, GRAFT_UNSAFE, 0, "a link in the image or a volume leads the mount at %s %s",
			  place->given, where);
}
