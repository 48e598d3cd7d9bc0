/* SPDX-License-Identifier: Apache-2.0 */
/* check_places: compares where the mounts and nodes of a container will be. */
#include "start/check_places.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "start/give.h"
#include "start/mount_places.h"

/* --- what is made, in this order --- */

/* File systems of the kernel, and empty ones: they have no links of an image or a volume. */
static bool is_without_links(const char *type)
{
	static const char *const types[] = { "tmpfs",  "proc",    "sysfs",     "devpts",  "mqueue",
					     "cgroup", "cgroup2", "devtmpfs",  "debugfs", "hugetlbfs",
					     "ramfs",  "tracefs", "securityfs" };

	return graft_is_in(types, GRAFT_COUNT(types), type);
}

static bool is_empty_volume(const char *path, struct graft_budget *budget, struct graft_arena *arena)
{
	auto_image_root struct graft_image_root volume = GRAFT_IMAGE_ROOT_INIT;
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char **names;
	size_t n;

	if (fd < 0)
		return false;
	graft_image_root_take(&volume, fd, budget);
	return graft_image_root_list(&volume, "/", 1, arena, &names, &n, NULL) == 0 && n == 0;
}

static const char *existing_directory(const char *source)
{
	struct stat st;

	return source && stat(source, &st) == 0 && S_ISDIR(st.st_mode) ? source : NULL;
}

/* The rest of the option that begins with `name`; NULL: there is none. */
static const char *mount_option(const struct graft_oci_mount *mount, const char *name)
{
	for (size_t i = 0; i < mount->n_options; i++)
		if (graft_starts_with(mount->options[i], name))
			return mount->options[i] + strlen(name);
	return NULL;
}

/* What an overlay shows if it is of one directory, and nothing was written above (Podman). */
static const char *overlay_source(const struct graft_oci_mount *mount, struct graft_budget *budget,
				  struct graft_arena *arena)
{
	const char *lower = mount_option(mount, "lowerdir="), *upper = mount_option(mount, "upperdir=");

	if (!mount->type || strcmp(mount->type, "overlay") != 0 || !lower || lower[0] != '/' || strpbrk(lower, ":\\") ||
	    mount_option(mount, "lowerdir+=") || mount_option(mount, "datadir+=") ||
	    (upper && (upper[0] != '/' || !is_empty_volume(upper, budget, arena))))
		return NULL;
	return existing_directory(lower);
}

/* Edits of the document move its mounts, or remove them. */
static size_t find_given_mount(const struct graft_oci_spec *given, const struct graft_oci_mount *mount)
{
	size_t i = 0;

	while (i < given->n_mounts && given->mounts[i].node != mount->node)
		i++;
	return i;
}

static struct graft_mount_place make_mount_place(const struct graft_start *create, const struct graft_oci_mount *mount,
						 struct graft_budget *budget)
{
	size_t given = find_given_mount(create->spec, mount);
	bool is_bind = graft_start_is_bind(mount), ours = given == create->spec->n_mounts;
	const char *source = is_bind ? graft_oci_mount_source(mount, create->bundle, create->arena)
				     : overlay_source(mount, budget, create->arena);
	/* A root that is mounted later is not examined. */
	bool is_root = mount->destination && strcmp(mount->destination, "/") == 0;

	return (struct graft_mount_place){
		.given = mount->destination,
		.source = source,
		.directory = ours ? existing_directory(source) : NULL,
		.ours = ours,
		.read_only = graft_is_in(mount->options, mount->n_options, "ro") ||
			     graft_is_in(mount->options, mount->n_options, "rro"),
		.copies = !is_bind && graft_is_in(mount->options, mount->n_options, "tmpcopyup"),
		.opaque = !source && !is_bind && !is_root && mount->type && !is_without_links(mount->type),
		.processes = !is_bind && mount->type && strcmp(mount->type, "proc") == 0,
		.linked = !is_bind && mount->type && strcmp(mount->type, "tmpfs") != 0,
	};
}

static bool is_given_node(const struct graft_oci_spec *given, const char *path)
{
	for (size_t i = 0; i < given->n_devices; i++)
		if (given->devices[i] == path)
			return true;
	return false;
}

/* Files of ours can do harm in a directory of ours only. Anything else of ours covers links. */
static size_t drop_ours(struct graft_mount_place *items, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!items[i].ours || !items[i].source)
			items[kept++] = items[i];
	return kept;
}

static const char *const default_nodes[] = { "/dev/null",   "/dev/zero",    "/dev/full",   "/dev/tty",
					     "/dev/random", "/dev/urandom", "/dev/console" };

/* QUIRK: runc and crun mount the socket of $NOTIFY_SOCKET after all others, each elsewhere. */
static size_t list_notify_sockets(struct graft_mount_place *items)
{
	const char *socket = secure_getenv("NOTIFY_SOCKET");

	if (!socket || socket[0] == '\0')
		return 0;
	items[0] = (struct graft_mount_place){ .given = socket, .opaque = true };
	items[1] = (struct graft_mount_place){ .given = "/run/notify", .opaque = true };
	return 2;
}

/* QUIRK: runc and crun make some nodes unasked, and the working directory last, all as root. */
static int list_mount_places(const struct graft_start *create, const struct graft_oci_spec *spec,
			     struct graft_budget *budget, struct graft_mount_places *ret_places,
			     struct graft_error *err)
{
	size_t n_max = spec->n_mounts + 2 + spec->n_devices + GRAFT_COUNT(default_nodes) + 1, n = 0;
	struct graft_mount_place *items = graft_arena_list(create->arena, n_max, sizeof(*items));
	bool has_directory = false;

	if (!items)
		return graft_fail_memory(err);
	for (size_t i = 0; i < spec->n_mounts && !graft_budget_is_spent(budget); i++) {
		items[n] = make_mount_place(create, &spec->mounts[i], budget);
		has_directory = has_directory || items[n].directory;
		n++;
	}
	if (!has_directory)
		n = drop_ours(items, n);
	n += list_notify_sockets(&items[n]);
	for (size_t i = 0; i < spec->n_devices; i++)
		items[n++] = (struct graft_mount_place){ .made = GRAFT_MADE_NODE,
							 .given = spec->devices[i],
							 .ours = !is_given_node(create->spec, spec->devices[i]) };
	for (size_t i = 0; has_directory && i < GRAFT_COUNT(default_nodes); i++)
		items[n++] = (struct graft_mount_place){ .made = GRAFT_MADE_NODE, .given = default_nodes[i] };
	if (spec->cwd && has_directory)
		items[n++] = (struct graft_mount_place){ .made = GRAFT_MADE_DIRECTORY, .given = spec->cwd };
	*ret_places = (struct graft_mount_places){ items, n };
	return graft_arena_failed(create->arena) ? graft_fail_memory(err) : 0;
}

/* --- what is refused --- */

static const char *const names[] = {
	[GRAFT_MADE_MOUNT] = "mount at",
	[GRAFT_MADE_NODE] = "node",
	[GRAFT_MADE_DIRECTORY] = "working directory",
};

static int refuse_place(const struct graft_mount_place *place, const char *where, struct graft_error *err)
{
	return graft_fail(err, GRAFT_UNSAFE, 0, "a link in the image or a volume leads the %s %s %s",
			  names[place->made], place->given, where);
}

static int refuse_in_directory(const struct graft_mount_place *shared, const struct graft_mount_place *place,
			       struct graft_error *err)
{
	if (!graft_path_is_within(place->path, shared->path))
		return refuse_place(place, "into a directory of the host", err);
	return graft_fail(err, GRAFT_UNSAFE, 0, "the %s %s would be made in a directory of the host, %s",
			  names[place->made], place->given, shared->directory);
}

/* What is below /proc and /sys has links of the kernel's; no node is made there. */
static bool stays_below(const struct graft_mount_place *place, const char *tree)
{
	return !place->ours && graft_path_is_within(place->path, tree) && graft_path_is_within(place->at, tree) &&
	       strcmp(place->at, tree) != 0;
}

/* QUIRK: by another spelling, crun does not see that a volume is at /dev, and makes nodes in it. */
static bool is_spelled_dev(const char *path)
{
	path += strspn(path, "/");
	return strcmp(path, "dev") == 0 || strcmp(path, "dev/") == 0;
}

/*
 * QUIRK: crun does not see what is mounted over the root. Anywhere else, only a volume has files of
 * the host that could be changed.
 */
static int check_volume(const struct graft_mount_place *place, struct graft_error *err)
{
	if (strcmp(place->at, "/") == 0 && strcmp(place->given, "/") != 0)
		return refuse_place(place, "over the whole root", err);
	if (!place->source && !place->opaque)
		return 0;
	if (strcmp(place->at, "/dev") == 0 && !is_spelled_dev(place->given))
		return refuse_place(place, "over /dev, /proc or /sys", err);
	if (strcmp(place->at, place->path) == 0)
		return 0;
	if (graft_path_is_system(place->at) && !stays_below(place, "/proc") && !stays_below(place, "/sys"))
		return refuse_place(place, "over /dev, /proc or /sys", err);
	return 0;
}

static int check_alone(const struct graft_mount_place *place, struct graft_error *err)
{
	if (!place->at && place->unseen)
		return graft_fail(err, GRAFT_UNSAFE, 0, "the %s %s would be below %s, whose links cannot be examined",
				  names[place->made], place->given, place->unseen->given);
	if (!place->at)
		return refuse_place(place, "to a place that cannot be determined", err);
	if (place->entered)
		return refuse_in_directory(place->entered, place, err);
	if (place->made == GRAFT_MADE_NODE && graft_path_is_within(place->path, "/dev")) {
		if (!graft_path_is_within(place->at, "/dev"))
			return refuse_place(place, "out of /dev", err);
		if (place->below && place->below->source && !graft_path_is_within(place->path, place->below->at))
			return refuse_place(place, "into a volume", err);
	}
	return place->made == GRAFT_MADE_MOUNT ? check_volume(place, err) : 0;
}

/* Whether the directory has what is to be made. */
static bool exists_in(const struct graft_mount_place *shared, const struct graft_mount_place *place,
		      struct graft_arena *arena)
{
	const char *path = graft_arena_printf(arena, "%s%s", shared->directory,
					      graft_mount_place_below(shared, place->at));
	struct stat st;

	return path && lstat(path, &st) == 0 && !S_ISLNK(st.st_mode);
}

/*
 * QUIRK: crun makes directories read-only after it has made all mounts. Nothing is created where
 * such a directory has something. SECURITY: an image can have volumes anywhere, also in there.
 */
static int check_in_directory(const struct graft_start *create, const struct graft_mount_place *shared,
			      const struct graft_mount_place *place, struct graft_error *err)
{
	bool is_meant = graft_path_is_within(place->path, shared->path);

	/* What is mounted over the directory is another, and what is made earlier is not in it. */
	if (place < shared || (place->below && place->below > shared) || !graft_path_is_within(place->at, shared->at) ||
	    strcmp(place->at, shared->at) == 0 ||
	    (place->ours && graft_mount_place_is_straight(place, shared, place->at)))
		return 0;
	if ((is_meant || shared->read_only || place->made == GRAFT_MADE_DIRECTORY) &&
	    exists_in(shared, place, create->arena))
		return 0;
	return refuse_in_directory(shared, place, err);
}

static int check_found_places(const struct graft_start *create, const struct graft_mount_places *places,
			      struct graft_error *err)
{
	for (size_t i = 0; i < places->n; i++)
		if (check_alone(&places->items[i], err) < 0)
			return -1;
	for (size_t i = 0; i < places->n; i++)
		for (size_t k = 0; places->items[i].directory && k < places->n; k++)
			if (check_in_directory(create, &places->items[i], &places->items[k], err) < 0)
				return -1;
	return graft_arena_failed(create->arena) ? graft_fail_memory(err) : 0;
}

static int check_document(const struct graft_start *create, const struct graft_image_root *root,
			  struct graft_error *err)
{
	struct graft_mount_places places;
	struct graft_oci_spec spec;

	if (graft_oci_spec_read(create->document, create->arena, &spec, err) < 0)
		return -1;
	/* Most of them are the host's choice. */
	graft_budget_extend(root->budget, (int64_t)(spec.n_mounts + spec.n_devices) / 16, GRAFT_BUDGET_EDITS_MS);
	if (list_mount_places(create, &spec, root->budget, &places, err) < 0)
		return -1;
	graft_mount_places_find(&places, root, create->arena);
	if (graft_arena_failed(create->arena))
		return graft_fail_memory(err);
	if (graft_budget_is_spent(root->budget))
		return graft_fail(err, GRAFT_TOO_BIG, 0, "reading the container's image takes too long");
	return check_found_places(create, &places, err);
}

int graft_start_check_places(const struct graft_start *create, struct graft_error *err)
{
	auto_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	struct graft_budget *budget;
	int rc = graft_start_open_image(create, &root, err);

	if (rc <= 0)
		return rc;
	/* This must be known even if reading the image has taken all of the start's time. */
	budget = graft_budget_new(GRAFT_BUDGET_LEAST_MS);
	if (!budget)
		return graft_fail_memory(err);
	root.budget = budget;
	rc = check_document(create, &root, err);
	root.budget = create->budget;
	(void)graft_budget_free(budget);
	return rc;
}
