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
	const char *path;    /* in the container */
	bool host_directory; /* a writable directory of the host */
};

struct places {
	struct place *items;
	size_t n;
};

static bool add_given_directory(const struct graft_start *create, struct places *places, const char *path,
				bool host_directory)
{
	struct place *place = graft_arena_push(create->arena, &places->items, &places->n, sizeof(*place));
	const char *clean = path ? graft_path_clean("/", path, create->arena) : "/";

	if (place)
		*place = (struct place){ clean, host_directory };
	return place && clean;
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

static int check_directory(const struct graft_image_root *root, const struct places *places, const struct place *shared,
			   struct graft_arena *arena, struct graft_error *err)
{
	const char *to = graft_start_find_place(root, shared->path, arena), *seen = NULL;

	if (!to || (strcmp(to, shared->path) != 0 && graft_path_is_system(to)))
		return refuse_directory(root, shared->path, "over /dev, /proc or /sys", err);
	for (size_t i = 0; i < places->n; i++) {
		const char *path = places->items[i].path, *directory = graft_path_directory(path, arena);

		if (&places->items[i] == shared || graft_path_is_within(path, shared->path))
			continue;
		/* Neighbours in the list mostly share a directory. */
		if (directory && seen && strcmp(directory, seen) == 0)
			continue;
		seen = directory;
		directory = directory ? graft_start_find_place(root, directory, arena) : NULL;
		if (!directory || graft_path_is_within(directory, to))
			return refuse_directory(root, path, "into a directory of the host", err);
	}
	return 0;
}

static int check_all_directories(const struct graft_start *create, const struct places *places, struct graft_error *err)
{
	auto_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	bool any = false;
	int rc;

	for (size_t i = 0; i < places->n; i++)
		any = any || places->items[i].host_directory;
	rc = any ? graft_start_open_image(create, &root, err) : 0;
	for (size_t i = 0; rc > 0 && i < places->n; i++)
		if (places->items[i].host_directory &&
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
		bool shared = edit->type == GRAFT_SOURCE_DIRECTORY && (edit->flags & GRAFT_MOUNT_RDONLY) == 0;

		if (edit->kind == GRAFT_EDIT_BIND && !add_given_directory(create, &places, edit->target, shared))
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
		struct stat st;
		bool shared = !graft_is_in(mount->options, mount->n_options, "ro") &&
			      stat(mount->host_path, &st) == 0 && S_ISDIR(st.st_mode);

		if (!add_given_directory(create, &places, mount->container_path, shared))
			return graft_fail_memory(err);
	}
	return check_all_directories(create, &places, err);
}
