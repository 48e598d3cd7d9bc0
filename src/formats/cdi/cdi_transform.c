/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_transform: which strings of a spec are paths on which side, and how they change. Paths are
 * compared by whole components: "/root" contains "/root/lib" but not "/rootfs".
 */
#include "formats/cdi/cdi_transform.h"

#include <string.h>

#include "base/path.h"
#include "formats/cdi/cdi_check.h"
#include "formats/cdi/cdi_write.h"

struct change {
	const char *from, *to; /* without a trailing slash: "/" is "" */
	size_t from_length;
	bool in_container, nodes, files;
	struct graft_arena *arena; /* sticky: checked once, at the end */
};

/* --- paths --- */

/* Returns the path below the new root, or NULL if it is not below the old one. */
static const char *move_path(const struct change *change, const char *path)
{
	size_t length = change->from_length;
	const char *moved;

	if (path[0] != '/' || strncmp(path, change->from, length) != 0 || (path[length] != '/' && path[length] != '\0'))
		return NULL;
	moved = graft_arena_printf(change->arena, "%s/%s", change->to, path + length);
	return moved ? graft_path_clean(NULL, moved, change->arena) : NULL;
}

static const char *moved_or_same(const struct change *change, const char *path)
{
	const char *moved = move_path(change, path);

	return moved ? moved : path;
}

/*
 * Arguments may be two paths, "A::B". Those for files are of the host and of the container; one
 * path stands for both.
 */
static const char *move_argument(const struct change *change, const char *argument, bool is_file)
{
	const char *colons = strstr(argument, "::"), *second = colons ? colons + 2 : argument;
	const char *first = colons ? graft_arena_strndup(change->arena, argument, (size_t)(colons - argument))
				   : argument;

	if (!first)
		return NULL;
	if (!is_file || !change->in_container)
		first = moved_or_same(change, first);
	if (!is_file || change->in_container)
		second = moved_or_same(change, second);
	if ((!colons || is_file) && strcmp(first, second) == 0)
		return second;
	return graft_arena_printf(change->arena, "%s::%s", first, second);
}

/* --- what has paths --- */

static void change_node(const struct change *change, struct graft_cdi_node *node)
{
	const char *host_path = node->host_path ? node->host_path : node->path;
	const char *moved = move_path(change, change->in_container ? node->path : host_path);

	if (!moved)
		return;
	node->host_path = change->in_container ? host_path : moved;
	if (change->in_container)
		node->path = moved;
}

static void change_mount(const struct change *change, struct graft_cdi_mount *mount)
{
	if (change->in_container)
		mount->container_path = moved_or_same(change, mount->container_path);
	else
		mount->host_path = moved_or_same(change, mount->host_path);
}

static bool is_of_file(const struct graft_cdi_hook *hook, size_t i)
{
	return i > 0 && strcmp(hook->args[i - 1], GRAFT_CDI_FILE_OPTION) == 0;
}

/*
 * The arguments of createContainer hooks are paths of the container, although the program is on the
 * host; but those for files are paths of both.
 */
static void change_hook(const struct change *change, struct graft_cdi_hook *hook)
{
	bool start = graft_cdi_hook_is_of_image(hook);
	bool told_of_container = start || strcmp(hook->stage, "createContainer") == 0;
	const char **args;

	if (start == change->in_container)
		hook->path = moved_or_same(change, hook->path);
	if (hook->n_args == 0)
		return;
	args = graft_arena_list(change->arena, hook->n_args, sizeof(*args));
	for (size_t i = 0; args && i < hook->n_args; i++) {
		bool is_file = is_of_file(hook, i);

		args[i] = hook->args[i];
		if (is_file || told_of_container == change->in_container)
			args[i] = move_argument(change, args[i], is_file);
	}
	hook->args = args;
}

static void *copy_list(const struct change *change, const void *items, size_t n, size_t size)
{
	return n > 0 ? graft_arena_memdup(change->arena, items, n * size) : NULL;
}

static void change_edits(const struct change *change, struct graft_cdi_edits *edits)
{
	edits->nodes = copy_list(change, edits->nodes, edits->n_nodes, sizeof(*edits->nodes));
	edits->mounts = copy_list(change, edits->mounts, edits->n_mounts, sizeof(*edits->mounts));
	edits->hooks = copy_list(change, edits->hooks, edits->n_hooks, sizeof(*edits->hooks));
	if (graft_arena_failed(change->arena))
		return;
	for (size_t i = 0; change->nodes && i < edits->n_nodes; i++)
		change_node(change, &edits->nodes[i]);
	for (size_t i = 0; change->files && i < edits->n_mounts; i++)
		change_mount(change, &edits->mounts[i]);
	for (size_t i = 0; change->files && i < edits->n_hooks; i++)
		change_hook(change, &edits->hooks[i]);
}

/* --- the whole --- */

/* Returns a directory without a trailing slash, or NULL with an error. */
static const char *take_transform_root(const char *root, const char *what, struct graft_arena *arena,
				       struct graft_error *err)
{
	const char *clean;

	if (!root || root[0] == '\0')
		return "";
	if (root[0] != '/') {
		(void)graft_fail(err, GRAFT_INVALID, 0, "the root '%s' to change %s is not an absolute path", root,
				 what);
		return NULL;
	}
	clean = graft_path_clean(NULL, root, arena);
	if (!clean)
		(void)graft_fail_memory(err);
	return clean && strcmp(clean, "/") == 0 ? "" : clean;
}

/* Versions are strings; their order is that of the list. */
static int raise_version(struct graft_cdi_spec *spec, struct graft_error *err)
{
	const char *minimum = graft_cdi_spec_minimum_version(spec);
	enum cdi_version declared = CDI_UNKNOWN, needed = CDI_UNKNOWN;

	if (!spec->version)
		return 0;
	if (cdi_check_version(spec->version, &declared, err) < 0 || cdi_check_version(minimum, &needed, err) < 0)
		return -1;
	if (declared < needed)
		spec->version = minimum;
	return 0;
}

int graft_cdi_spec_change_root(const struct graft_cdi_spec *spec, const struct graft_cdi_root_change *roots,
			       struct graft_arena *arena, struct graft_cdi_spec *ret_spec, struct graft_error *err)
{
	struct change change = { .in_container = roots->in_container,
				 .nodes = roots->scope != GRAFT_CDI_ALL_BUT_NODES,
				 .files = roots->scope != GRAFT_CDI_ONLY_NODES,
				 .arena = arena };
	struct graft_cdi_spec changed = *spec;

	change.from = take_transform_root(roots->from, "from", arena, err);
	change.to = change.from ? take_transform_root(roots->to, "to", arena, err) : NULL;
	if (!change.to)
		return -1;
	change.from_length = strlen(change.from);
	if (strcmp(change.from, change.to) != 0) {
		changed.devices = copy_list(&change, spec->devices, spec->n_devices, sizeof(*spec->devices));
		change_edits(&change, &changed.edits);
		for (size_t i = 0; changed.devices && i < changed.n_devices; i++)
			change_edits(&change, &changed.devices[i].edits);
	}
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	*ret_spec = changed;
	return raise_version(ret_spec, err);
}
