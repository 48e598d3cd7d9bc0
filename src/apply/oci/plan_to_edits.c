/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_to_edits: the edits of a plan that a low-level runtime makes from config.json, as container
 * edits of the CDI, and those that it cannot make, as a plan of the rest. Pure: opens nothing.
 */
#include "apply/oci/plan_to_edits.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "formats/cdi/cdi_simplify.h"
#include "plan/spec_hooks.h"

#define GROUP_NEEDED 0006u /* a node that everybody may read and write needs no group */

/* ---- container edits ---- */

/* Options of SPEC runtime-and-hook 6.5, in its order. */
static const struct {
	const char *word;
	uint32_t flag; /* 0: always */
} mount_options[] = {
	{ "ro", GRAFT_MOUNT_RDONLY },
	{ "nosuid", GRAFT_MOUNT_NOSUID },
	{ "nodev", GRAFT_MOUNT_NODEV },
	{ "rbind", 0 },
	{ "rprivate", 0 },
	{ "noexec", GRAFT_MOUNT_NOEXEC },
};

struct mount_words {
	const char **words;
	size_t n;
	uint32_t flags;
};

/*
 * `last` holds the options of the previous mount and the flags that they were made from. Nearly all
 * mounts have the same flags and share the list.
 */
static int add_mount(const struct graft_edit *edit, struct graft_arena *arena, struct graft_cdi_edits *edits,
		     struct mount_words *last)
{
	struct graft_cdi_mount *mount = graft_arena_push(arena, &edits->mounts, &edits->n_mounts, sizeof(*mount));

	if (!mount)
		return -1;
	mount->host_path = edit->source;
	mount->container_path = edit->target;
	if (last->n > 0 && last->flags == edit->flags) {
		mount->options = last->words;
		mount->n_options = last->n;
		return 0;
	}
	for (size_t i = 0; i < GRAFT_COUNT(mount_options); i++) {
		if (mount_options[i].flag != 0 && (edit->flags & mount_options[i].flag) == 0)
			continue;
		if (!graft_arena_push_string(arena, &mount->options, &mount->n_options, mount_options[i].word))
			return -1;
	}
	*last = (struct mount_words){ .words = mount->options, .n = mount->n_options, .flags = edit->flags };
	return 0;
}

const struct graft_edit *oci_find_of_device(const struct graft_plan *plan, enum graft_edit_kind kind,
					    const struct graft_edit *like)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if (edit->kind == kind && edit->major == like->major && edit->minor == like->minor)
			return edit;
	}
	return NULL;
}

/* Returns the access that the device's rule allows; "" without a rule: the node is only visible. */
static const char *access_of(const struct graft_plan *plan, const struct graft_edit *device)
{
	const struct graft_edit *rule = oci_find_of_device(plan, GRAFT_EDIT_CGROUP, device);

	if (!rule)
		return "";
	return rule->access ? rule->access : "rw";
}

static bool has_gid(const struct graft_cdi_edits *edits, uint32_t gid)
{
	for (size_t i = 0; i < edits->n_gids; i++)
		if (edits->gids[i] == gid)
			return true;
	return false;
}

/*
 * The container's user needs the node's group, unless everybody may use the node (SPEC
 * runtime-and-hook 6.4).
 */
static int add_gid(const struct graft_edit *edit, struct graft_arena *arena, struct graft_cdi_edits *edits)
{
	uint32_t *gid;

	if (edit->gid == 0 || edit->mode == 0 || (edit->mode & GROUP_NEEDED) == GROUP_NEEDED ||
	    has_gid(edits, edit->gid))
		return 0;
	gid = graft_arena_push(arena, &edits->gids, &edits->n_gids, sizeof(*gid));
	if (!gid)
		return -1;
	*gid = edit->gid;
	return 0;
}

/*
 * Sets no uid: a node that root owns on the host also belongs to root in the container's user
 * namespace.
 */
static int add_oci_node(const struct graft_plan *plan, const struct graft_edit *edit,
			const struct graft_oci_options *options, struct graft_arena *arena,
			struct graft_cdi_edits *edits)
{
	bool elsewhere = edit->source && strcmp(edit->source, edit->target) != 0;
	struct graft_cdi_node *node;

	for (size_t i = 0; i < edits->n_nodes; i++)
		if (strcmp(edits->nodes[i].path, edit->target) == 0)
			return 0;
	node = graft_arena_push(arena, &edits->nodes, &edits->n_nodes, sizeof(*node));
	if (!node)
		return -1;
	*node = (struct graft_cdi_node){
		.path = edit->target,
		.host_path = elsewhere ? edit->source : NULL,
		.type = "c",
		.major = edit->major,
		.minor = edit->minor,
		.has_numbers = true,
		.has_mode = edit->mode != 0,
		.mode = edit->mode,
		.permissions = access_of(plan, edit),
		.has_gid = edit->gid != 0,
		.gid = edit->gid,
	};
	return options->no_additional_gids ? 0 : add_gid(edit, arena, edits);
}

static int add_oci_variable(const struct graft_edit *edit, struct graft_arena *arena, struct graft_cdi_edits *edits)
{
	const char *text = graft_arena_printf(arena, "%s=%s", edit->target, edit->content ? edit->content : "");

	return text && graft_arena_push_string(arena, &edits->env, &edits->n_env, text) ? 0 : -1;
}

/*
 * SECURITY: a runtime gets rules only along with their nodes, so a rule without a node would be
 * lost silently.
 */
static int check_rule(const struct graft_plan *plan, const struct graft_edit *rule, struct graft_error *err)
{
	if (oci_find_of_device(plan, GRAFT_EDIT_DEVICE, rule))
		return 0;
	return graft_fail(err, GRAFT_UNSUPPORTED, 0, "a device rule without a device node: c %u:%u", rule->major,
			  rule->minor);
}

/* ---- hooks ---- */

struct graft_cdi_hook *oci_begin_hook(const char *program, const char *name, struct graft_arena *arena,
				      struct graft_cdi_edits *edits)
{
	struct graft_cdi_hook *hook = graft_arena_push(arena, &edits->hooks, &edits->n_hooks, sizeof(*hook));
	const char *program_name = graft_path_name(program);

	if (!hook)
		return NULL;
	hook->stage = "createContainer";
	hook->path = program;
	(void)graft_arena_push_string(arena, &hook->args, &hook->n_args, program_name);
	/* nvidia-ctk has the hooks as subcommands of "hook" (SPEC runtime-and-hook 6.6). */
	if (strcmp(program_name, "nvidia-ctk") == 0)
		(void)graft_arena_push_string(arena, &hook->args, &hook->n_args, "hook");
	(void)graft_arena_push_string(arena, &hook->args, &hook->n_args, name);
	/*
	 * SECURITY: a hook without a list inherits the runtime's environment, which images can
	 * influence (CVE-2025-23266).
	 */
	(void)graft_arena_push_string(arena, &hook->env, &hook->n_env, GRAFT_HOOK_VARIABLE);
	return graft_arena_failed(arena) ? NULL : hook;
}

/* ---- the rest ---- */

struct graft_plan *oci_new_rest(const struct graft_plan *plan, struct graft_arena *arena)
{
	struct graft_plan *rest = graft_arena_alloc(arena, sizeof(*rest));

	if (!rest)
		return NULL;
	rest->version = plan->version;
	rest->driver_version = plan->driver_version;
	rest->simulated = plan->simulated;
	return rest;
}

int oci_add_rest(const struct graft_edit *edit, struct graft_arena *arena, struct graft_plan *rest)
{
	struct graft_edit *copy = graft_arena_push(arena, &rest->edits, &rest->n_edits, sizeof(*copy));

	if (!copy)
		return -1;
	*copy = *edit;
	/*
	 * The link replaces a file of the image, as the hook of the reference implementation does:
	 * mounting over the file would take one more mount in each container.
	 */
	if (copy->kind == GRAFT_EDIT_SYMLINK && copy->conflict == GRAFT_CONFLICT_REPLACE) {
		copy->conflict = GRAFT_CONFLICT_OVERWRITE;
		copy->source = NULL;
	}
	return 0;
}

/*
 * SECURITY: a low-level runtime makes mount points, nodes and the working directory wherever links
 * of the image lead. So that it makes none in a directory of the host, it does not mount any, nor
 * what the plan mounts in one.
 */
static bool belongs_to_directory(const struct graft_plan *plan, const struct graft_edit *edit)
{
	for (size_t i = 0; edit->kind == GRAFT_EDIT_BIND && i < plan->n_edits; i++)
		if (graft_edit_mounts_directory(&plan->edits[i]) &&
		    graft_path_is_within(edit->target, plan->edits[i].target))
			return true;
	return false;
}

/* The order of paths, and of the plan. */
static int compare_targets(const void *a, const void *b)
{
	const struct graft_edit *const *x = a, *const *y = b;
	int order = strcmp((*x)->target, (*y)->target);

	return order != 0 ? order : (*x > *y) - (*x < *y);
}

/*
 * Adds the directories of the host, and what is mounted in them, as the last edits: what is made
 * after a directory is mounted could be made in it. A path precedes those below it, and of two
 * mounts at one path the last remains, as in config.json.
 */
static int add_host_directories(const struct graft_plan *plan, struct graft_arena *arena, struct graft_plan *rest)
{
	const struct graft_edit **found = NULL;
	size_t n = 0;

	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit **item;

		if (!belongs_to_directory(plan, &plan->edits[i]))
			continue;
		item = graft_arena_push(arena, &found, &n, sizeof(*item));
		if (!item)
			return -1;
		*item = &plan->edits[i];
	}
	if (n > 1)
		qsort(found, n, sizeof(*found), compare_targets);
	for (size_t i = 0; i < n; i++) {
		bool is_last = i + 1 == n || strcmp(found[i]->target, found[i + 1]->target) != 0;

		if (is_last && oci_add_rest(found[i], arena, rest) < 0)
			return -1;
	}
	return 0;
}

static int add_oci_edit(const struct graft_plan *plan, const struct graft_edit *edit,
			const struct graft_oci_options *options, struct graft_arena *arena,
			struct graft_cdi_edits *edits, struct graft_plan *rest, struct mount_words *last,
			struct graft_error *err)
{
	int rc = 0;

	switch (edit->kind) {
	case GRAFT_EDIT_BIND:
		if (options->mount_directories || !belongs_to_directory(plan, edit))
			rc = add_mount(edit, arena, edits, last);
		break;
	case GRAFT_EDIT_DEVICE:
		rc = add_oci_node(plan, edit, options, arena, edits);
		break;
	case GRAFT_EDIT_ENV:
		rc = add_oci_variable(edit, arena, edits);
		break;
	case GRAFT_EDIT_CGROUP:
		return check_rule(plan, edit, err);
	case GRAFT_EDIT_DIRECTORY:
	case GRAFT_EDIT_TMPFS:
	case GRAFT_EDIT_FILE:
	case GRAFT_EDIT_SYMLINK:
	case GRAFT_EDIT_COVER:
	case GRAFT_EDIT_LDCACHE:
		rc = oci_add_rest(edit, arena, rest);
		break;
	case GRAFT_EDIT_MAX:
		break;
	}
	return rc < 0 ? graft_fail_memory(err) : 0;
}

int graft_plan_to_edits(const struct graft_plan *plan, const struct graft_oci_options *options,
			struct graft_arena *arena, struct graft_cdi_edits *ret_edits, struct graft_plan **ret_rest,
			struct graft_error *err)
{
	struct graft_cdi_edits edits = { .n_env = 0 };
	struct mount_words last = { .n = 0 };
	struct graft_plan *rest = oci_new_rest(plan, arena);

	if (!rest)
		return graft_fail_memory(err);
	for (size_t i = 0; i < plan->n_edits; i++)
		if (add_oci_edit(plan, &plan->edits[i], options, arena, &edits, rest, &last, err) < 0)
			return -1;
	if (!options->mount_directories && add_host_directories(plan, arena, rest) < 0)
		return graft_fail_memory(err);
	graft_cdi_edits_sort(&edits);
	*ret_edits = edits;
	*ret_rest = rest->n_edits > 0 ? rest : NULL;
	return 0;
}
