/* SPDX-License-Identifier: Apache-2.0 */
/* host_mounts: turns mounts of edits into edits of a plan. Mounts nothing. */
#include "start/host_mounts.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/root.h"
#include "base/strings.h"
#include "start/give.h"

/* ---- from edits ---- */

/* Sets *ret_flags to those of the options; false if there are other options. */
static bool read_mount_flags(const struct graft_cdi_mount *mount, uint32_t *ret_flags)
{
	static const struct {
		const char *option;
		uint32_t set, clear;
	} known[] = {
		{ "bind", 0, 0 },
		{ "rbind", GRAFT_MOUNT_RECURSIVE, 0 },
		{ "private", 0, 0 },
		{ "rprivate", 0, 0 },
		{ "ro", GRAFT_MOUNT_RDONLY, 0 },
		{ "rw", 0, GRAFT_MOUNT_RDONLY },
		{ "nosuid", GRAFT_MOUNT_NOSUID, 0 },
		{ "suid", 0, GRAFT_MOUNT_NOSUID },
		{ "nodev", GRAFT_MOUNT_NODEV, 0 },
		{ "dev", 0, GRAFT_MOUNT_NODEV },
		{ "noexec", GRAFT_MOUNT_NOEXEC, 0 },
		{ "exec", 0, GRAFT_MOUNT_NOEXEC },
		{ "relatime", 0, 0 },
		{ "norelatime", 0, 0 },
		{ "noatime", 0, 0 },
		{ "nodiratime", 0, 0 },
		{ "strictatime", 0, 0 },
	};

	*ret_flags = 0;
	for (size_t i = 0; i < mount->n_options; i++) {
		size_t row = 0;

		while (row < GRAFT_COUNT(known) && strcmp(mount->options[i], known[row].option) != 0)
			row++;
		if (row == GRAFT_COUNT(known))
			return false;
		*ret_flags = (*ret_flags | known[row].set) & ~known[row].clear;
	}
	return true;
}

static bool is_bind_mount(const struct graft_cdi_mount *mount)
{
	return mount->host_path[0] == '/' && ((mount->type && strcmp(mount->type, "bind") == 0) ||
					      graft_is_in(mount->options, mount->n_options, "bind") ||
					      graft_is_in(mount->options, mount->n_options, "rbind"));
}

/* The mount as an edit; false if it cannot be one. */
static bool read_host_mount(const struct graft_cdi_mount *mount, struct graft_arena *arena, struct graft_edit *ret_edit)
{
	struct stat st;
	uint32_t flags;

	if (!is_bind_mount(mount) || !read_mount_flags(mount, &flags) || stat(mount->host_path, &st) < 0)
		return false;
	*ret_edit = (struct graft_edit){ .kind = GRAFT_EDIT_BIND,
					 .source = mount->host_path,
					 .target = graft_path_clean("/", mount->container_path, arena),
					 .flags = flags,
					 .rule = "host-directory",
					 .why = "a directory of the host, or in one" };
	ret_edit->mode = S_ISDIR(st.st_mode) ? 0755 : 0644;
	if (S_ISDIR(st.st_mode))
		ret_edit->type = GRAFT_SOURCE_DIRECTORY;
	else if (S_ISSOCK(st.st_mode))
		ret_edit->type = GRAFT_SOURCE_SOCKET;
	else
		ret_edit->type = GRAFT_SOURCE_FILE;
	return ret_edit->target && (S_ISDIR(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISREG(st.st_mode));
}

int graft_start_add_edit(struct graft_start *create, const struct graft_edit *edit, struct graft_error *err)
{
	struct graft_edit *added = graft_arena_push(create->arena, &create->edits, &create->n_edits, sizeof(*added));

	if (!added)
		return graft_fail_memory(err);
	*added = *edit;
	return 0;
}

/* One mount of the edits, and what can become of it. */
struct candidate {
	struct graft_edit edit; /* if `possible` */
	const char *place;      /* clean */
	bool possible, taken;
};

/* Where a mount is, and where it will be. */
struct located {
	const char *given, *place; /* clean; place NULL: not a mount */
	bool is_directory;         /* of the host */
};

/* What is mounted in a directory of the host is there, whatever the image has at this path. */
static int move_with_directories(struct located *all, size_t n, struct graft_arena *arena, struct graft_error *err)
{
	const struct located **directories = graft_arena_list(arena, n, sizeof(struct located *));
	size_t n_directories = 0;

	for (size_t i = 0; directories && i < n; i++)
		if (all[i].is_directory)
			directories[n_directories++] = &all[i];
	for (size_t i = 0; i < n; i++) {
		const struct located *outer = &all[i];

		for (size_t j = 0; all[i].place && j < n_directories; j++)
			if (graft_path_is_within(outer->given, directories[j]->given))
				outer = directories[j];
		if (outer != &all[i])
			all[i].place = graft_arena_printf(arena, "%s%s", outer->place,
							  all[i].given + strlen(outer->given));
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

static bool is_directory_candidate(const struct candidate *candidate)
{
	return candidate->possible && candidate->edit.type == GRAFT_SOURCE_DIRECTORY;
}

/*
 * SECURITY: by the devices that it asks for, an image can choose what is mounted in a directory,
 * but not that the low-level runtime mounts the directory.
 */
static int check_whole(const struct candidate *directory, const struct candidate *all,
		       const struct graft_cdi_mount *mounts, size_t n, struct graft_error *err)
{
	for (size_t i = 0; i < n; i++)
		if (!all[i].possible && graft_path_is_within(all[i].place, directory->place))
			return graft_fail(err, GRAFT_UNSUPPORTED, 0,
					  "the mount at %s cannot be made in a directory of the host, %s: only files, "
					  "sockets and directories, without propagation, can",
					  mounts[i].container_path, directory->edit.source);
	return 0;
}

static void take_what_is_in(const struct candidate *directory, struct candidate *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		all[i].taken = all[i].taken || graft_path_is_within(all[i].place, directory->place);
}

/* Returns the mounts as candidates, still without their places; NULL: no memory. */
static struct candidate *list_candidates(const struct graft_cdi_edits *edits, struct graft_arena *arena,
					 bool *ret_directory)
{
	struct candidate *all = graft_arena_list(arena, edits->n_mounts, sizeof(*all));

	*ret_directory = false;
	for (size_t i = 0; all && i < edits->n_mounts; i++) {
		all[i].possible = read_host_mount(&edits->mounts[i], arena, &all[i].edit);
		*ret_directory = *ret_directory || is_directory_candidate(&all[i]);
	}
	return all;
}

/*
 * Finds the places, without links of the image: /lib may be a link to /usr/lib. A directory that is
 * masked stays with the low-level runtime, which hides it; crun does so before its hooks. SECURITY:
 * no link of the image may decide that.
 */
static int find_candidate_places(const struct graft_start *create, const struct graft_cdi_edits *edits,
				 struct candidate *all, struct graft_error *err)
{
	auto_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	const struct graft_oci_spec *spec = create->spec;
	struct located *located = graft_arena_list(create->arena, edits->n_mounts, sizeof(*located));
	int rc = graft_start_open_image(create, &root, err);

	if (!located)
		return graft_fail_memory(err);
	if (rc < 0)
		return -1;
	for (size_t i = 0; i < edits->n_mounts; i++) {
		const char *given = graft_path_clean("/", edits->mounts[i].container_path, create->arena);

		if (!given)
			return graft_fail_memory(err);
		if (is_directory_candidate(&all[i]) &&
		    graft_path_overlaps_one(given, spec->masked_paths, spec->n_masked_paths, create->arena))
			all[i].possible = false;
		located[i] = (struct located){ .given = given,
					       .place = graft_start_image_place(rc > 0 ? &root : NULL, given,
										create->arena),
					       .is_directory = is_directory_candidate(&all[i]) };
	}
	if (move_with_directories(located, edits->n_mounts, create->arena, err) < 0)
		return -1;
	for (size_t i = 0; i < edits->n_mounts; i++)
		all[i].place = located[i].place;
	return 0;
}

/* A file may be a link on the host, which an edit does not follow. */
static int resolve_sources(struct graft_start *create, struct graft_error *err)
{
	auto_root struct graft_root host = GRAFT_ROOT_INIT;

	if (create->n_edits == 0)
		return 0;
	if (graft_root_open(&host, "/", err) < 0)
		return -1;
	for (size_t i = 0; i < create->n_edits; i++) {
		struct graft_edit *edit = &create->edits[i];
		const char *resolved;

		if (edit->type == GRAFT_SOURCE_FILE &&
		    graft_root_resolve(&host, edit->source, create->arena, &resolved, NULL) == 0)
			edit->source = resolved;
	}
	return graft_arena_failed(create->arena) ? graft_fail_memory(err) : 0;
}

int graft_start_take_host_directories(struct graft_start *create, struct graft_cdi_edits *edits,
				      struct graft_error *err)
{
	struct candidate *all;
	bool has_directory;
	size_t n = 0;

	if (edits->n_mounts == 0 || graft_start_binds_nodes(create))
		return 0;
	all = list_candidates(edits, create->arena, &has_directory);
	if (!all)
		return graft_fail_memory(err);
	if (!has_directory)
		return graft_arena_failed(create->arena) ? graft_fail_memory(err) : 0;
	if (find_candidate_places(create, edits, all, err) < 0)
		return -1;
	for (size_t i = 0; i < edits->n_mounts; i++) {
		if (!is_directory_candidate(&all[i]))
			continue;
		if (check_whole(&all[i], all, edits->mounts, edits->n_mounts, err) < 0)
			return -1;
		take_what_is_in(&all[i], all, edits->n_mounts);
	}
	for (size_t i = 0; i < edits->n_mounts; i++) {
		if (!all[i].taken) {
			edits->mounts[n++] = edits->mounts[i];
			continue;
		}
		if (graft_start_add_edit(create, &all[i].edit, err) < 0)
			return -1;
	}
	edits->n_mounts = n;
	return resolve_sources(create, err);
}

/* ---- to a plan ---- */

int graft_start_add_plan(struct graft_start *create, const struct graft_plan *plan, struct graft_error *err)
{
	for (size_t i = 0; i < plan->n_refusals; i++)
		graft_debug(create->log, "not given: %s: %s", plan->refusals[i].what, plan->refusals[i].why);
	for (size_t i = 0; i < plan->n_edits; i++)
		if (graft_start_add_edit(create, &plan->edits[i], err) < 0)
			return -1;
	return 0;
}

/* Copies the plan, with room for the mounts that are added. */
static struct graft_plan *join_plan(const struct graft_start *create, const struct graft_plan *plan)
{
	struct graft_plan *whole = graft_arena_memdup(create->arena, plan, sizeof(*plan));
	struct graft_edit *edits = graft_arena_list(create->arena, plan->n_edits + create->n_edits, sizeof(*edits));

	if (!whole || !edits)
		return NULL;
	for (size_t i = 0; i < plan->n_edits; i++)
		edits[i] = plan->edits[i];
	for (size_t i = 0; i < create->n_edits; i++)
		edits[plan->n_edits + i] = create->edits[i];
	whole->edits = edits;
	whole->n_edits = plan->n_edits + create->n_edits;
	return whole;
}

/* A mount of config.json, and where it will be as far as the image's links say. */
struct placed {
	const struct graft_oci_mount *mount;
	const char *place;
};

static int list_placed(const struct graft_start *create, const struct graft_image_root *root, struct placed **ret_list,
		       struct graft_error *err)
{
	const struct graft_oci_spec *spec = create->spec;
	struct placed *list = graft_arena_list(create->arena, spec->n_mounts + 1, sizeof(*list));

	for (size_t i = 0; list && i < spec->n_mounts; i++) {
		const char *clean = graft_path_clean(
		    "/", spec->mounts[i].destination ? spec->mounts[i].destination : "/", create->arena);

		list[i].mount = &spec->mounts[i];
		list[i].place = clean ? graft_start_image_place(root, clean, create->arena) : NULL;
	}
	*ret_list = list;
	return graft_arena_failed(create->arena) ? graft_fail_memory(err) : 0;
}

/* Nothing of config.json may be hidden by the directory but a mount that it replaces. */
static int check_hidden(const struct graft_edit *directory, const char *place, const struct placed *list, size_t n,
			struct graft_error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(list[i].place, place) == 0 || !graft_path_is_within(list[i].place, place))
			continue;
		(void)graft_fail(err, GRAFT_INVALID, 0, "the mount at %s would be made in a directory of the host, %s",
				 list[i].mount->destination, directory->source);
		return graft_with_hint(err, "Mount it elsewhere.");
	}
	return 0;
}

/*
 * Whether what is at the place is the root's, or in a file system that the low-level runtime makes
 * for the container. SECURITY: a mount point is made in a volume only if no link leads there.
 */
static bool is_own_place(const char *place, const struct placed *list, size_t n)
{
	const struct placed *around = NULL;

	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].place, "/") != 0 && graft_path_is_within(place, list[i].place) &&
		    (!around || strlen(list[i].place) >= strlen(around->place)))
			around = &list[i];
	return !around || (around->mount->type && strcmp(around->mount->type, "tmpfs") == 0);
}

struct replaced {
	const char *place;
	struct graft_arena *arena;
};

static bool is_bind_at(struct graft_json_node *mount, void *arg)
{
	const struct replaced *replaced = arg;
	const char *destination = graft_json_node_string(graft_json_node_member(mount, "destination"));
	const char *type = graft_json_node_string(graft_json_node_member(mount, "type"));
	const char *clean = destination ? graft_path_clean("/", destination, replaced->arena) : NULL;
	bool bind = type && strcmp(type, "bind") == 0;

	if (!clean || strcmp(clean, replaced->place) != 0)
		return false;
	GRAFT_JSON_EACH(option, graft_json_node_member(mount, "options")) {
		const char *word = graft_json_node_string(option);

		bind = bind || (word && (strcmp(word, "bind") == 0 || strcmp(word, "rbind") == 0));
	}
	return bind;
}

static int remove_binds(const struct graft_start *create, const char *place, struct graft_error *err)
{
	struct replaced replaced = { place, create->arena };
	struct graft_json_node *mounts;

	if (create->spec->n_mounts == 0)
		return 0;
	mounts = graft_json_make(create->document, "mounts", GRAFT_JSON_ARRAY, err);
	if (!mounts)
		return -1;
	(void)graft_json_remove_each(create->document, mounts, is_bind_at, &replaced);
	return 0;
}

/* Whether the place is that of a directory of the host, or in one. */
static bool is_in_one(const struct located *all, size_t n, const char *place)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].is_directory && graft_path_is_within(place, all[i].place))
			return true;
	return false;
}

/*
 * Whether the edit may have another last component. SECURITY: a directory that can be written to
 * keeps its name, so that nothing else is made in it. Nor may one cover what else the plan gives.
 */
static bool may_be_renamed(const struct graft_plan *plan, const struct located *all, size_t edit)
{
	const char *given = all[edit].given, *place = all[edit].place;

	if (strcmp(graft_path_name(place), graft_path_name(given)) == 0)
		return true;
	if ((plan->edits[edit].flags & GRAFT_MOUNT_RDONLY) == 0)
		return false;
	for (size_t i = 0; i < plan->n_edits; i++) {
		const char *other = all[i].given ? all[i].given : plan->edits[i].target;

		if (other && graft_path_is_within(other, place) && !graft_path_is_within(other, given))
			return false;
	}
	return true;
}

/*
 * Finds where each directory of the host, and what is mounted in it, will be. SECURITY: what a link
 * leads over /dev, /proc or /sys, or what may not be renamed, keeps its path, by which it is
 * refused later.
 */
static int settle_places(const struct graft_start *create, struct graft_plan *plan, struct graft_error *err)
{
	auto_image_root struct graft_image_root image = GRAFT_IMAGE_ROOT_INIT;
	struct located *all = graft_arena_list(create->arena, plan->n_edits, sizeof(*all));
	const size_t n = create->spec->n_mounts;
	struct placed *list;
	int rc = graft_start_open_image(create, &image, err);

	if (!all)
		return graft_fail_memory(err);
	if (rc < 0 || list_placed(create, rc > 0 ? &image : NULL, &list, err) < 0)
		return -1;
	for (size_t i = 0; i < plan->n_edits; i++)
		if (plan->edits[i].kind == GRAFT_EDIT_BIND)
			all[i] = (struct located){ .given = plan->edits[i].target,
						   .place = graft_start_image_place(
						       rc > 0 ? &image : NULL, plan->edits[i].target, create->arena),
						   .is_directory = graft_edit_mounts_directory(&plan->edits[i]) };
	if (move_with_directories(all, plan->n_edits, create->arena, err) < 0)
		return -1;
	for (size_t i = 0; i < plan->n_edits; i++) {
		struct graft_edit *edit = &plan->edits[i];
		const char *place = all[i].place;

		if (!place || !is_in_one(all, plan->n_edits, place) ||
		    (graft_path_is_system(place) && strcmp(place, edit->target) != 0))
			continue;
		if (all[i].is_directory &&
		    (check_hidden(edit, place, list, n, err) < 0 || remove_binds(create, edit->target, err) < 0))
			return -1;
		if (is_own_place(place, list, n) && may_be_renamed(plan, all, i))
			edit->target = place;
	}
	return graft_arena_failed(create->arena) ? graft_fail_memory(err) : 0;
}

const struct graft_plan *graft_start_join_edits(struct graft_start *create, const struct graft_plan *plan,
						struct graft_error *err)
{
	struct graft_plan *whole;

	if (create->n_edits == 0 && (graft_start_binds_nodes(create) || !graft_plan_mounts_directory(plan)))
		return plan;
	whole = join_plan(create, plan);
	create->n_edits = 0;
	if (!whole) {
		(void)graft_fail_memory(err);
		return NULL;
	}
	if (graft_start_binds_nodes(create) || !graft_plan_mounts_directory(whole))
		return whole;
	return settle_places(create, whole, err) == 0 ? whole : NULL;
}
