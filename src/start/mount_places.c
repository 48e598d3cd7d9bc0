/* SPDX-License-Identifier: Apache-2.0 */
/* mount_places: follows links one by one, each in the mount that will be visible there. */
#include "start/mount_places.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/sys.h"

#define LINKS_MAX 40 /* as in the kernel */

/* Like graft_path_is_within(). Long paths, which an image may choose, differ at their end. */
static bool covers_place(const struct graft_mount_place *mount, const char *path, size_t length)
{
	size_t tail = mount->length < 8 ? mount->length : 8, start = mount->length - tail;

	if (mount->made != GRAFT_MADE_MOUNT || !mount->at || mount->copies || length < mount->length)
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

/*
 * Returns the length of the link's text, 0 if `path` is not a link, or -errno. Links of procfs lead
 * where their text does not say, and `self` is another process to the low-level runtime.
 */
static ssize_t read_image_link(const struct graft_image_root *root, const char *path, char *text, size_t size)
{
	auto_close int fd = graft_image_root_look(root, path, O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
	n = readlinkat(fd, "", text, size);
	if (n < 0) /* QUIRK: ENOENT says that an O_PATH descriptor is not that of a link; EINVAL is for paths. */
		return errno == ENOENT || errno == EINVAL ? 0 : -errno;
	return graft_is_on_procfs(fd) ? -EXDEV : n;
}

const char *graft_mount_place_below(const struct graft_mount_place *mount, const char *path)
{
	return path + (mount->length == 1 ? 0 : mount->length);
}

/* Runtimes make it, a link to /proc/self/fd, in a new /dev and in that of the image. */
static bool is_link_of_runtime(const char *path)
{
	return graft_path_is_within(path, "/dev/fd");
}

/* QUIRK: runc follows links of procfs as text, such as that of self/root, which is "/". */
static bool is_link_of_process(const struct graft_mount_place *mount, const char *path)
{
	const char *below = graft_mount_place_below(mount, path);

	return mount->processes && ((below[1] >= '0' && below[1] <= '9') || graft_path_is_within(below, "/self") ||
				    graft_path_is_within(below, "/thread-self") || graft_path_is_within(below, "/net"));
}

/*
 * Links of sysfs, cgroup v1 and procfs stay in these, but may enter a volume that is mounted there.
 * The host has the same links; what it does not have in /sys may be one in another network
 * namespace.
 */
static bool may_be_link_of_kernel(const struct graft_mount_place *mount, const char *path)
{
	struct stat st;

	if (!graft_path_is_within(mount->at, "/sys") && !graft_path_is_within(mount->at, "/proc"))
		return false;
	return lstat(path, &st) < 0 ? graft_path_is_within(path, "/sys") : S_ISLNK(st.st_mode);
}

/*
 * SECURITY: what the image has in a place that a mount covers is not there when the mounts are
 * made, so it is not believed. QUIRK: runtimes follow links of sysfs and procfs, in which ".." is
 * another directory. `led`: a link or ".." is on the way.
 */
static ssize_t read_visible_link(const struct graft_image_root *root, const struct graft_mount_place *mount,
				 const char *path, bool led, char *text, size_t size)
{
	auto_image_root struct graft_image_root volume = GRAFT_IMAGE_ROOT_INIT;
	int fd;

	if (mount && strcmp(path, mount->at) == 0)
		return 0;
	if ((!mount || !mount->source) && is_link_of_runtime(path))
		return -EXDEV;
	if (!mount)
		return read_image_link(root, path, text, size);
	if (!mount->source)
		return mount->opaque || is_link_of_process(mount, path) ||
			       (mount->linked && (led || may_be_link_of_kernel(mount, path)))
			   ? -EXDEV
			   : 0;
	fd = open(mount->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* the runtime reports what is wrong with it */
	graft_image_root_take(&volume, fd, root->budget);
	return read_image_link(&volume, graft_mount_place_below(mount, path), text, size);
}

/* Whether a mount at `path` will be at exactly that path: no link is on the way. */
static bool is_plain_place(const struct graft_image_root *root, const char *path)
{
	int rc = graft_path_has_parents(path) || is_link_of_runtime(path) ? -ELOOP
									  : graft_image_root_look_plain(root, path);

	return rc == 0 || rc == -ENOENT || rc == -ENOTDIR;
}

bool graft_mount_place_is_straight(const struct graft_mount_place *place, const struct graft_mount_place *directory,
				   const char *at)
{
	size_t length = strcmp(directory->path, "/") == 0 ? 0 : strlen(directory->path);

	return graft_path_is_within(place->path, directory->path) &&
	       graft_path_is_within(place->path + length, graft_mount_place_below(directory, at));
}

/*
 * Whether `next`, on the way to `place`, would be made in a directory of the host. QUIRK: crun 1.8
 * makes each component that a link names, also if ".." follows.
 */
static bool is_made_in_directory(const struct graft_mount_place *place, const struct graft_mount_place *mount,
				 const char *next, struct graft_arena *arena)
{
	const char *path;
	struct stat st;

	if (!mount || !mount->directory || strcmp(next, mount->at) == 0 ||
	    (place->ours && graft_mount_place_is_straight(place, mount, next)))
		return false;
	path = graft_arena_printf(arena, "%s%s", mount->directory, graft_mount_place_below(mount, next));
	return !path || lstat(path, &st) < 0;
}

static bool is_place_covered(const struct graft_mount_places *places, const char *path)
{
	return places ? find_covering(places, path) != NULL : graft_path_is_system(path);
}

const char *graft_start_find_place(const struct graft_image_root *root, const char *path,
				   const struct graft_mount_places *places, struct graft_arena *arena,
				   struct graft_mount_place *place)
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
		const bool led = n_links > 0 || graft_path_has_parents(path);
		char text[PATH_MAX];
		ssize_t n = 0;

		rest += length;
		if (!next || graft_budget_is_spent(root->budget))
			return NULL;
		mount = find_covering(places, next);
		if (place && !place->entered && led && is_made_in_directory(place, mount, next, arena))
			place->entered = mount;
		if (strcmp(next, "/") != 0 && (mount || !is_place_covered(places, next)))
			n = read_visible_link(root, mount, next, led, text, sizeof(text) - 1);
		if (n < 0 && place && mount)
			place->unseen = mount;
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

/*
 * QUIRK: of a path with "..", runc 1.1 creates the place after links are resolved, and mounts at
 * that of the clean path; crun uses the former. If they differ, neither counts.
 */
static const char *find_place_with_parents(const struct graft_image_root *root,
					   const struct graft_mount_places *earlier, struct graft_mount_place *place,
					   struct graft_arena *arena)
{
	const char *given, *clean;

	/* A link of the kernel's in /sys, and one of the runtime's in /dev, may precede "..". */
	if (place->made == GRAFT_MADE_DIRECTORY || graft_path_is_system(place->path))
		return NULL;
	given = graft_start_find_place(root, place->given, earlier, arena, place);
	clean = graft_start_find_place(root, place->path, earlier, arena, place);
	return given && clean && strcmp(given, clean) == 0 ? given : NULL;
}

static const char *find_one_place(const struct graft_image_root *root, const struct graft_mount_places *earlier,
				  struct graft_mount_place *place, struct graft_arena *arena)
{
	if (!place->path)
		return NULL;
	if (graft_path_has_parents(place->given))
		return find_place_with_parents(root, earlier, place, arena);
	return graft_start_find_place(root, place->path, earlier, arena, place);
}

void graft_mount_places_find(struct graft_mount_places *places, const struct graft_image_root *root,
			     struct graft_arena *arena)
{
	size_t n_mounts = 0; /* the rest covers nothing */

	for (size_t i = 0; i < places->n; i++) {
		const struct graft_mount_places earlier = { places->items, n_mounts };
		struct graft_mount_place *place = &places->items[i];

		if (graft_budget_is_spent(root->budget))
			return;
		place->given = place->given ? place->given : "/";
		place->path = graft_path_clean("/", place->given, arena);
		place->at = find_one_place(root, &earlier, place, arena);
		place->length = place->at ? strlen(place->at) : 0;
		place->below = place->at ? find_covering(&earlier, place->at) : NULL;
		if (place->made == GRAFT_MADE_MOUNT)
			n_mounts = i + 1;
	}
}
