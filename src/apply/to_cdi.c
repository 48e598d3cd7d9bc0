/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_cdi: reduces a plan to its own edits and, if hooks are not allowed, resolves links; to_oci.h
 * then converts what a low-level runtime does itself into edits, and the rest becomes hooks.
 */
#include "apply/to_cdi.h"

#include <string.h>

#include "apply/oci/plan_to_edits.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "plan/rules.h"
#include "plan/spec_hooks.h"

#define PARAMS_FILE  "/proc/driver/nvidia/params"
#define PROFILE_RULE "application-profile"
#define CHAIN_MAX    40 /* chained links, as many as the kernel follows */

/* --- what is the plan's own --- */

/*
 * A profile is written by a hook, which looks at the container's nodes itself, so any profile edit
 * matches any other.
 */
static bool is_profile(const struct graft_edit *edit)
{
	return (edit->kind == GRAFT_EDIT_DIRECTORY || edit->kind == GRAFT_EDIT_FILE) &&
	       strcmp(edit->rule, PROFILE_RULE) == 0;
}

/*
 * The loader's cache is built from the libraries, which are the same in all plans of a host, so any
 * two such edits match.
 */
static bool same_edit(const struct graft_edit *a, const struct graft_edit *b)
{
	if (a->kind == GRAFT_EDIT_LDCACHE || b->kind == GRAFT_EDIT_LDCACHE)
		return a->kind == b->kind;
	if (is_profile(a) || is_profile(b))
		return is_profile(a) && is_profile(b);
	return a->kind == b->kind && graft_is_same_text(a->target, b->target) &&
	       graft_is_same_text(a->source, b->source) && graft_is_same_text(a->content, b->content) &&
	       a->flags == b->flags && a->major == b->major && a->minor == b->minor;
}

/*
 * Plans of one host have their edits in the same order, so the search continues where the last one
 * ended.
 */
static bool has_same_edit(const struct graft_plan *plan, size_t *at, const struct graft_edit *edit)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		size_t place = (*at + i) % plan->n_edits;

		if (same_edit(&plan->edits[place], edit)) {
			*at = place + 1;
			return true;
		}
	}
	return false;
}

static int append_plan_edit(struct graft_plan *plan, const struct graft_edit *edit, struct graft_arena *arena)
{
	struct graft_edit *slot = graft_arena_push(arena, &plan->edits, &plan->n_edits, sizeof(*slot));

	if (!slot)
		return -1;
	*slot = *edit;
	return 0;
}

/* A device rule goes with its node. */
static int own_edits(const struct graft_plan *plan, const struct graft_plan *common, struct graft_arena *arena,
		     struct graft_plan *own)
{
	size_t at = 0;

	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];
		bool mine = edit->kind == GRAFT_EDIT_CGROUP ? oci_find_of_device(own, GRAFT_EDIT_DEVICE, edit) != NULL
							    : !common || !has_same_edit(common, &at, edit);

		if (mine && append_plan_edit(own, edit, arena) < 0)
			return -1;
	}
	return 0;
}

/* --- without hooks --- */

static const struct graft_edit *find_target(const struct graft_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if ((edit->kind == GRAFT_EDIT_BIND || edit->kind == GRAFT_EDIT_DEVICE ||
		     edit->kind == GRAFT_EDIT_SYMLINK) &&
		    strcmp(edit->target, path) == 0)
			return edit;
	}
	return NULL;
}

/* Follows a link of the plan to its final target; NULL if that is not part of the plan. */
static const struct graft_edit *follow_plan_link(const struct graft_plan *plan, const struct graft_edit *edit,
						 struct graft_arena *arena)
{
	for (int i = 0; edit && edit->kind == GRAFT_EDIT_SYMLINK; i++) {
		const char *directory = graft_path_directory(edit->target, arena);
		char *path = directory ? graft_path_clean(directory, edit->content, arena) : NULL;

		edit = path && i < CHAIN_MAX ? find_target(plan, path) : NULL;
	}
	return edit;
}

/* Adds the file or node again, under the link's name. */
static int add_in_place_of_link(const struct graft_plan *plan, const struct graft_edit *link, struct graft_arena *arena,
				struct graft_plan *resolved)
{
	const struct graft_edit *end = follow_plan_link(plan, link, arena), *rule;
	struct graft_edit copy;

	if (!end)
		return graft_arena_failed(arena) ? -1 : 0;
	copy = *end;
	copy.target = link->target;
	if (append_plan_edit(resolved, &copy, arena) < 0)
		return -1;
	rule = copy.kind == GRAFT_EDIT_DEVICE ? oci_find_of_device(plan, GRAFT_EDIT_CGROUP, &copy) : NULL;
	return rule ? append_plan_edit(resolved, rule, arena) : 0;
}

/* `whole` is the plan that `own` is a part of: links may point to edits outside `own`. */
static int resolve_plan_links(const struct graft_plan *whole, const struct graft_plan *own, struct graft_arena *arena,
			      struct graft_plan *resolved)
{
	for (size_t i = 0; i < own->n_edits; i++) {
		const struct graft_edit *edit = &own->edits[i];
		int rc = 0;

		switch (edit->kind) {
		case GRAFT_EDIT_BIND:
		case GRAFT_EDIT_DEVICE:
		case GRAFT_EDIT_CGROUP:
		case GRAFT_EDIT_ENV:
			rc = append_plan_edit(resolved, edit, arena);
			break;
		case GRAFT_EDIT_SYMLINK:
			rc = add_in_place_of_link(whole, edit, arena, resolved);
			break;
		case GRAFT_EDIT_DIRECTORY:
		case GRAFT_EDIT_TMPFS:
		case GRAFT_EDIT_FILE:
		case GRAFT_EDIT_COVER:
		case GRAFT_EDIT_LDCACHE:
		case GRAFT_EDIT_MAX:
			break;
		}
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* --- hooks --- */

struct hooks {
	const struct graft_cdi_options *options;
	struct graft_arena *arena;
	struct graft_cdi_edits *edits;
	struct graft_error *err;
};

static struct graft_cdi_hook *begin_hook(struct hooks *hooks, const char *name)
{
	return oci_begin_hook(hooks->options->hook_path, name, hooks->arena, hooks->edits);
}

/* SPEC ctk-and-cdi 2.0: hooks split lists at commas, and links at the first "::". */
static bool can_be_word(const char *text)
{
	return !strchr(text, ',') && !strstr(text, "::") && text[0] != '\0';
}

static int check_word(struct hooks *hooks, const char *text)
{
	if (can_be_word(text))
		return 0;
	return graft_fail(hooks->err, GRAFT_UNSUPPORTED, 0,
			  "the path '%s' cannot be passed to a hook: its arguments are split at ',' and '::'", text);
}

/* "--name value". */
static void add_pair(struct hooks *hooks, struct graft_cdi_hook *hook, const char *option, const char *value)
{
	(void)graft_arena_push_string(hooks->arena, &hook->args, &hook->n_args, option);
	(void)graft_arena_push_string(hooks->arena, &hook->args, &hook->n_args, value);
}

static int add_link_hook(struct hooks *hooks, const struct graft_plan *plan)
{
	struct graft_cdi_hook *hook = NULL;

	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];
		const char *link;

		if (edit->kind != GRAFT_EDIT_SYMLINK)
			continue;
		if (check_word(hooks, edit->content) < 0 || check_word(hooks, edit->target) < 0)
			return -1;
		if (!hook)
			hook = begin_hook(hooks, "create-symlinks");
		link = graft_arena_printf(hooks->arena, "%s::%s", edit->content, edit->target);
		if (!hook || !link)
			return graft_fail_memory(hooks->err);
		add_pair(hooks, hook, "--link", link);
	}
	return 0;
}

/*
 * Adds the directories of nodes, except /dev itself: a low-level runtime makes them accessible to
 * its own user only.
 */
static int add_chmod(struct hooks *hooks)
{
	const struct graft_cdi_edits *edits = hooks->edits;
	struct graft_cdi_hook *hook = NULL;
	const char *last = "";

	for (size_t i = 0; hooks->options->chmod && i < edits->n_nodes; i++) {
		const char *path = edits->nodes[i].path;
		const char *directory = graft_path_directory(path, hooks->arena);

		if (!directory)
			return graft_fail_memory(hooks->err);
		/* Nodes are sorted, so those of one directory are adjacent. */
		if (strcmp(directory, "/dev") == 0 || strcmp(directory, last) == 0)
			continue;
		if (check_word(hooks, directory) < 0)
			return -1;
		if (!hook) {
			hook = begin_hook(hooks, "chmod");
			if (!hook)
				return graft_fail_memory(hooks->err);
			add_pair(hooks, hook, "--mode", "755");
		}
		add_pair(hooks, hook, "--path", directory);
		last = directory;
	}
	return 0;
}

static void add_argument(struct hooks *hooks, struct graft_cdi_hook *hook, const char *option, const char *value)
{
	const char *text = value ? graft_arena_printf(hooks->arena, "%s=%s", option, value) : NULL;

	if (text)
		(void)graft_arena_push_string(hooks->arena, &hook->args, &hook->n_args, text);
}

static int add_compat_hook(struct hooks *hooks)
{
	const struct graft_cdi_compat *compat = &hooks->options->compat;
	struct graft_cdi_hook *hook;

	if (!compat->driver_version && !compat->cuda_version)
		return 0;
	hook = begin_hook(hooks, "enable-cuda-compat");
	if (!hook)
		return graft_fail_memory(hooks->err);
	add_argument(hooks, hook, "--host-driver-version", compat->driver_version);
	add_argument(hooks, hook, "--host-cuda-version", compat->cuda_version);
	add_argument(hooks, hook, "--cuda-compat-container-root", compat->directory);
	return 0;
}

static int add_ldcache(struct hooks *hooks, const struct graft_edit *edit)
{
	struct graft_cdi_hook *hook = begin_hook(hooks, "update-ldcache");

	if (!hook)
		return graft_fail_memory(hooks->err);
	if (hooks->options->ldconfig_path)
		add_pair(hooks, hook, "--ldconfig-path", hooks->options->ldconfig_path);
	for (size_t i = 0; i < edit->n_folders; i++) {
		if (check_word(hooks, edit->folders[i]) < 0)
			return -1;
		add_pair(hooks, hook, "--folder", edit->folders[i]);
	}
	return 0;
}

static bool has_profile(const struct graft_plan *plan)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		if (is_profile(&plan->edits[i]))
			return true;
	}
	return false;
}

/* Fails if no hook covers an edit, so that none is lost silently. */
static int check_cdi_rest(const struct graft_plan *rest, struct graft_error *err)
{
	for (size_t i = 0; i < rest->n_edits; i++) {
		const struct graft_edit *edit = &rest->edits[i];
		bool known = edit->kind == GRAFT_EDIT_SYMLINK || edit->kind == GRAFT_EDIT_LDCACHE || is_profile(edit) ||
			     (edit->kind == GRAFT_EDIT_COVER && strcmp(edit->target, PARAMS_FILE) == 0);

		if (!known)
			return graft_fail(err, GRAFT_UNSUPPORTED, 0, "no hook can make the edit '%s' of %s",
					  graft_edit_names[edit->kind], edit->target ? edit->target : "");
	}
	return 0;
}

/*
 * SPEC ctk-and-cdi 4.4, 6.10: in this order. Compatibility libraries only have an effect if the
 * cache is made after them.
 */
static int add_hooks(struct hooks *hooks, const struct graft_plan *rest, bool with_compat)
{
	/* One hook serves all edits of a kind. */
	const struct graft_edit *cache = graft_plan_find(rest, GRAFT_EDIT_LDCACHE);

	if (check_cdi_rest(rest, hooks->err) < 0 || add_link_hook(hooks, rest) < 0 || add_chmod(hooks) < 0)
		return -1;
	if (with_compat && add_compat_hook(hooks) < 0)
		return -1;
	if (cache && add_ldcache(hooks, cache) < 0)
		return -1;
	if (graft_plan_find(rest, GRAFT_EDIT_COVER))
		(void)begin_hook(hooks, "disable-device-node-modification");
	if (has_profile(rest))
		(void)begin_hook(hooks, "update-application-profile");
	return 0;
}

/* --- files that the hook mounts --- */

/* A file whose name cannot be passed to a hook is mounted the usual way. */
static bool is_for_hook(const struct graft_edit *edit)
{
	return edit->kind == GRAFT_EDIT_BIND && edit->type == GRAFT_SOURCE_FILE && edit->flags == GRAFT_FLAGS_FILE &&
	       edit->source[0] == '/' && can_be_word(edit->source) && edit->target[0] == '/' &&
	       can_be_word(edit->target);
}

/* Adds the hook that mounts the files, and leaves the rest of the plan in *ret_rest. */
static int add_files_hook(struct hooks *hooks, const struct graft_plan *plan, struct graft_plan *ret_rest)
{
	struct graft_cdi_hook *hook = NULL;

	*ret_rest = (struct graft_plan){ .version = plan->version, .driver_version = plan->driver_version };
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];
		const char *file;

		if (!is_for_hook(edit)) {
			if (append_plan_edit(ret_rest, edit, hooks->arena) < 0)
				return -1;
			continue;
		}
		hook = hook ? hook : begin_hook(hooks, GRAFT_CDI_FILES_HOOK);
		file = strcmp(edit->source, edit->target) == 0
			   ? edit->target
			   : graft_arena_printf(hooks->arena, "%s::%s", edit->source, edit->target);
		if (!hook || !file)
			return -1;
		add_pair(hooks, hook, GRAFT_CDI_FILE_OPTION, file);
	}
	return 0;
}

/* --- the whole plan --- */

/*
 * SPEC ctk-and-cdi 5.6, 7.1 (17): device numbers in a specification are used even if the host's
 * have changed since; without them the host's are used.
 */
static void forget_numbers(struct graft_cdi_edits *edits)
{
	for (size_t i = 0; i < edits->n_nodes; i++) {
		struct graft_cdi_node *node = &edits->nodes[i];

		node->type = NULL;
		node->has_numbers = false;
		node->major = node->minor = 0;
	}
}

int graft_plan_to_cdi(const struct graft_plan *plan, const struct graft_plan *common,
		      const struct graft_cdi_options *options, struct graft_arena *arena,
		      struct graft_cdi_edits *ret_edits, struct graft_error *err)
{
	const struct graft_oci_options oci = { .no_additional_gids = options->no_additional_gids,
					       .mount_directories = true };
	struct graft_plan own = { .version = plan->version, .driver_version = plan->driver_version }, resolved = own;
	struct graft_plan *part = &own, *rest = NULL, nothing = { .n_edits = 0 };
	struct graft_cdi_edits edits = { .n_env = 0 }, hooked = edits;
	struct hooks hooks = { .options = options, .arena = arena, .edits = &hooked, .err = err };

	if (own_edits(plan, common, arena, &own) < 0)
		return graft_fail_memory(err);
	if (options->no_hooks) {
		if (resolve_plan_links(plan, &own, arena, &resolved) < 0)
			return graft_fail_memory(err);
		part = &resolved;
	}
	if (options->late_mounts) {
		if (add_files_hook(&hooks, &own, &resolved) < 0)
			return graft_fail_memory(err);
		part = &resolved;
	}
	if (graft_plan_to_edits(part, &oci, arena, &edits, &rest, err) < 0)
		return -1;
	forget_numbers(&edits);
	hooked.nodes = edits.nodes;
	hooked.n_nodes = edits.n_nodes;
	if (!options->no_hooks && add_hooks(&hooks, rest ? rest : &nothing, !common) < 0)
		return -1;
	if (options->late_mounts && graft_join_hooks(options->hook_path, NULL, arena, &hooked, err) < 0)
		return -1;
	edits.hooks = hooked.hooks;
	edits.n_hooks = hooked.n_hooks;
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	*ret_edits = edits;
	return 0;
}
