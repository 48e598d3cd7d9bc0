/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room: looks at places in a root and in volumes before the low-level runtime makes mount points
 * there. Only looks; if a volume changes in the meantime, the runtime fails.
 */
#include "start/room.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "plan/dispensable.h"
#include "start/give.h"

static const char no_directory[] = "a component of the path is not a directory";
static const char no_file[] = "cannot create a file there: read-only file system";

struct room {
	const struct graft_start *create;
	struct graft_image_root root;
	bool opened, visible, read_only;
	const char **mounts; /* where each mount of config.json will be; NULL: the root, or unknown */
};

static void room_done(struct room *room)
{
	graft_image_root_close(&room->root);
}
#define auto_room __attribute__((cleanup(room_done)))

static bool is_read_only(int fd)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_RDONLY) != 0;
}

/* What a mount of config.json covers, wherever links of the image lead it. */
static const char *find_mount_place(const struct room *room, size_t mount)
{
	const char *destination = room->create->spec->mounts[mount].destination;
	struct graft_arena *arena = room->create->arena;
	const char *clean = destination ? graft_path_clean("/", destination, arena) : NULL;

	if (!clean || strcmp(clean, "/") == 0)
		return NULL;
	if (room->create->plain_mounts && room->create->plain_mounts[mount])
		return clean;
	return room->visible && !graft_path_is_system(clean) ? graft_start_find_image_place(&room->root, clean, arena)
							     : clean;
}

/* Opens the root for the first question: most containers that ask for no extras have none. */
static int open_room(struct room *room, struct graft_error *err)
{
	const struct graft_oci_spec *spec = room->create->spec;
	int rc;

	if (room->opened)
		return 0;
	rc = graft_start_open_image(room->create, &room->root, err);
	if (rc < 0)
		return -1;
	room->opened = true;
	room->visible = rc > 0;
	room->read_only = room->visible && is_read_only(room->root.fd);
	room->mounts = graft_arena_list(room->create->arena, spec->n_mounts + 1, sizeof(*room->mounts));
	if (!room->mounts)
		return graft_fail_memory(err);
	for (size_t i = 0; i < spec->n_mounts; i++)
		room->mounts[i] = find_mount_place(room, i);
	return 0;
}

/* Returns why a file cannot be mounted at `path`; NULL if it can. */
static const char *find_place_obstacle(const struct graft_image_root *root, const char *path, bool read_only)
{
	struct stat st;
	int rc = graft_image_root_stat(root, path, &st);

	if (rc == 0)
		return S_ISDIR(st.st_mode) ? "a directory has that name" : NULL;
	if (rc == -ENOENT)
		return read_only ? no_file : NULL;
	return rc == -ENOTDIR ? no_directory : NULL;
}

/* `below`: the place below the mount's destination. */
static const char *find_obstacle_in_mount(const struct room *room, const struct graft_oci_mount *mount,
					  const char *below)
{
	const struct graft_start *create = room->create;
	auto_image_root struct graft_image_root volume = GRAFT_IMAGE_ROOT_INIT;
	bool read_only = graft_is_in(mount->options, mount->n_options, "ro") ||
			 graft_is_in(mount->options, mount->n_options, "rro");
	const char *source;
	struct stat st;
	int fd;

	if (!graft_start_is_bind(mount))
		return read_only ? no_file : NULL;
	source = graft_oci_mount_source(mount, create->bundle, create->arena);
	fd = source ? open(source, O_PATH | O_CLOEXEC) : -1;
	if (fd < 0)
		return NULL; /* the runtime reports what is wrong with it */
	graft_image_root_take(&volume, fd, create->budget);
	if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return below[0] == '\0' ? NULL : no_directory;
	return find_place_obstacle(&volume, below[0] == '\0' ? "/" : below, read_only || is_read_only(fd));
}

/*
 * Finds the mount of config.json that `place` will be in; NULL: none but the root. A mount at
 * `target` itself is replaced by ours (apply/oci/oci_mounts.c). Deeper mounts come later.
 */
static const struct graft_oci_mount *find_mount_around(const struct room *room, const char *target, const char *place,
						       const char **ret_below)
{
	const struct graft_oci_spec *spec = room->create->spec;
	const struct graft_oci_mount *found = NULL;
	size_t length = 0;

	for (size_t i = 0; i < spec->n_mounts; i++) {
		const char *at = room->mounts[i];

		if (!at || strcmp(spec->mounts[i].destination, target) == 0 || !graft_path_is_within(place, at) ||
		    strlen(at) < length)
			continue;
		found = &spec->mounts[i];
		length = strlen(at);
	}
	*ret_below = place + length;
	return found;
}

/* Returns why the low-level runtime will not be able to mount a file at `target`; NULL: it will. */
static const char *find_why_no_room(const struct room *room, const char *target)
{
	const char *clean = graft_path_clean("/", target, room->create->arena), *place = clean, *below;
	const struct graft_oci_mount *mount;
	/* Most files are new to the image, and no link leads to their place. */
	bool is_new = clean && room->visible && graft_image_root_look_plain(&room->root, clean) == -ENOENT;

	if (clean && room->visible && !is_new)
		place = graft_start_find_image_place(&room->root, clean, room->create->arena);
	if (!clean)
		return NULL; /* out of memory, which the caller detects */
	if (!place)
		return "a link in the path leads nowhere";
	mount = find_mount_around(room, target, place, &below);
	if (mount)
		return find_obstacle_in_mount(room, mount, below);
	if (is_new || !room->visible)
		return room->read_only ? no_file : NULL;
	return find_place_obstacle(&room->root, place, room->read_only);
}

/* Whether the container has no place for a file that it can do without. Warns if so. */
static bool has_no_room(const struct room *room, const char *target)
{
	const char *why = find_why_no_room(room, target);

	if (why)
		graft_warn(room->create->log, "%s is left out: %s", target, why);
	return why != NULL;
}

static bool may_be_left_out(const struct graft_edit *edit)
{
	return edit->kind == GRAFT_EDIT_BIND && edit->type == GRAFT_SOURCE_FILE && edit->dispensable;
}

static bool has_dispensable_mount(const struct graft_plan *plan)
{
	for (size_t i = 0; i < plan->n_edits; i++)
		if (may_be_left_out(&plan->edits[i]))
			return true;
	return false;
}

/* Returns the plan with only its first `n` edits and room for all, or NULL. */
static struct graft_plan *copy_first_edits(const struct graft_plan *plan, size_t n, struct graft_arena *arena)
{
	struct graft_plan *copy = graft_arena_memdup(arena, plan, sizeof(*plan));

	if (copy)
		copy->edits = graft_arena_memdup(arena, plan->edits, plan->n_edits * sizeof(*plan->edits));
	if (!copy || !copy->edits)
		return NULL;
	copy->n_edits = n;
	return copy;
}

const struct graft_plan *graft_start_leave_out_edits(const struct graft_start *create, const struct graft_plan *plan,
						     struct graft_error *err)
{
	auto_room struct room room = { .create = create, .root = GRAFT_IMAGE_ROOT_INIT };
	struct graft_plan *rest = NULL;

	if (!has_dispensable_mount(plan))
		return plan;
	if (open_room(&room, err) < 0)
		return NULL;
	for (size_t i = 0; i < plan->n_edits; i++) {
		bool out = may_be_left_out(&plan->edits[i]) && has_no_room(&room, plan->edits[i].target);

		if (out && !rest)
			rest = copy_first_edits(plan, i, create->arena);
		else if (!out && rest)
			rest->edits[rest->n_edits++] = plan->edits[i];
	}
	if (graft_arena_failed(create->arena)) {
		(void)graft_fail_memory(err);
		return NULL;
	}
	return rest ? rest : plan;
}

int graft_start_leave_out_mounts(const struct graft_start *create, struct graft_cdi_edits *edits,
				 struct graft_error *err)
{
	auto_room struct room room = { .create = create, .root = GRAFT_IMAGE_ROOT_INIT };
	size_t n = 0;

	for (size_t i = 0; i < edits->n_mounts; i++) {
		bool dispensable = graft_is_dispensable(edits->mounts[i].container_path);

		if (dispensable && open_room(&room, err) < 0)
			return -1;
		if (!dispensable || !has_no_room(&room, edits->mounts[i].container_path))
			edits->mounts[n++] = edits->mounts[i];
	}
	edits->n_mounts = n;
	return graft_arena_failed(create->arena) ? graft_fail_memory(err) : 0;
}
