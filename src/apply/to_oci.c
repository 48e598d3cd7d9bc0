/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_oci: a plan into an OCI configuration: container edits for what a low-level runtime does, one hook for what is left when the root cannot take it now.
 * What the root can take is oci_root.c's question. docs/decisions/0010-one-hook.md.
 */
#include "apply/to_oci.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/oci_edits.h"
#include "apply/oci_root.h"
#include "apply/temporary.h"
#include "apply/to_namespace.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "formats/cdi_simplify.h"

#define ARENA_MAX ((size_t)32 << 20)
/* The kernel's MAX_ARG_STRLEN, for one argument with its end: 32 pages. */
#define ARGUMENT_MAX ((size_t)128 << 10)
#define PLAN_FILE    ".graft-plan.json"
#define GROUP_NEEDED 0006u /* a node that everybody may read and write needs no group */

/* ---- container edits ---- */

/* Options of SPEC runtime-and-hook 6.5, in its order. */
static const struct {
	const char *word;
	uint32_t flag; /* 0 = always */
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

/* `last`: the options of the mount before, and the flags that they come from. Nearly all mounts have the same, and share the list. */
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

/* What the device's rule allows; "" = there is none, and the node is there to be seen only. */
static const char *access_of(const struct graft_plan *plan, const struct graft_edit *device)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if (edit->kind == GRAFT_EDIT_CGROUP && edit->major == device->major && edit->minor == device->minor)
			return edit->access ? edit->access : "rw";
	}
	return "";
}

static bool has_gid(const struct graft_cdi_edits *edits, uint32_t gid)
{
	for (size_t i = 0; i < edits->n_gids; i++)
		if (edits->gids[i] == gid)
			return true;
	return false;
}

/* The container's user needs the node's group, unless everybody may use the node (SPEC 6.4). */
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

/* No uid: a node of the host's root belongs to root of the container's user namespace, too. */
static int add_node(const struct graft_plan *plan, const struct graft_edit *edit,
		    const struct graft_oci_options *options, struct graft_arena *arena, struct graft_cdi_edits *edits)
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

static int add_variable(const struct graft_edit *edit, struct graft_arena *arena, struct graft_cdi_edits *edits)
{
	const char *text = graft_arena_printf(arena, "%s=%s", edit->target, edit->content ? edit->content : "");

	return text && graft_arena_push_string(arena, &edits->env, &edits->n_env, text) ? 0 : -1;
}

/* SECURITY: a rule whose node is not given could not be told to a runtime by a node, and must not get lost. */
static int check_rule(const struct graft_plan *plan, const struct graft_edit *rule, struct graft_error *err)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if (edit->kind == GRAFT_EDIT_DEVICE && edit->major == rule->major && edit->minor == rule->minor)
			return 0;
	}
	return graft_fail(err, GRAFT_UNSUPPORTED, 0, "a device rule without its node: c %u:%u", rule->major,
			  rule->minor);
}

/* ---- what is left ---- */

static struct graft_plan *new_rest(const struct graft_plan *plan, struct graft_arena *arena)
{
	struct graft_plan *rest = graft_arena_alloc(arena, sizeof(*rest));

	if (!rest)
		return NULL;
	rest->version = plan->version;
	rest->driver_version = plan->driver_version;
	rest->simulated = plan->simulated;
	return rest;
}

static int add_rest(const struct graft_edit *edit, struct graft_arena *arena, struct graft_plan *rest)
{
	struct graft_edit *copy = graft_arena_push(arena, &rest->edits, &rest->n_edits, sizeof(*copy));

	if (!copy)
		return -1;
	*copy = *edit;
	/* A file of the image gives way, as it does to the hook of old: what mounts over it would need one more mount in each container. */
	if (copy->kind == GRAFT_EDIT_SYMLINK && copy->conflict == GRAFT_CONFLICT_REPLACE) {
		copy->conflict = GRAFT_CONFLICT_OVERWRITE;
		copy->source = NULL;
	}
	return 0;
}

static int add_edit(const struct graft_plan *plan, const struct graft_edit *edit,
		    const struct graft_oci_options *options, struct graft_arena *arena, struct graft_cdi_edits *edits,
		    struct graft_plan *rest, struct mount_words *last, struct graft_error *err)
{
	int rc = 0;

	switch (edit->kind) {
	case GRAFT_EDIT_BIND:
		rc = add_mount(edit, arena, edits, last);
		break;
	case GRAFT_EDIT_DEVICE:
		rc = add_node(plan, edit, options, arena, edits);
		break;
	case GRAFT_EDIT_ENV:
		rc = add_variable(edit, arena, edits);
		break;
	case GRAFT_EDIT_CGROUP:
		return check_rule(plan, edit, err);
	case GRAFT_EDIT_DIRECTORY:
	case GRAFT_EDIT_TMPFS:
	case GRAFT_EDIT_FILE:
	case GRAFT_EDIT_SYMLINK:
	case GRAFT_EDIT_COVER:
	case GRAFT_EDIT_LDCACHE:
		rc = add_rest(edit, arena, rest);
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
	struct graft_plan *rest = new_rest(plan, arena);

	if (!rest)
		return graft_fail_memory(err);
	for (size_t i = 0; i < plan->n_edits; i++)
		if (add_edit(plan, &plan->edits[i], options, arena, &edits, rest, &last, err) < 0)
			return -1;
	graft_cdi_edits_sort(&edits);
	*ret_edits = edits;
	*ret_rest = rest->n_edits > 0 ? rest : NULL;
	return 0;
}

/* ---- groups ---- */

/* The group by its number in the container's user namespace. False: it has none there. */
static bool translate_gid(const struct graft_oci_spec *spec, uint32_t *gid)
{
	for (size_t i = 0; i < spec->n_gid_mappings; i++) {
		const struct graft_oci_id_mapping *mapping = &spec->gid_mappings[i];

		if (*gid >= mapping->host_id && *gid - mapping->host_id < mapping->size) {
			*gid = mapping->container_id + (*gid - mapping->host_id);
			return true;
		}
	}
	return false;
}

/*
 * The groups of the host's nodes are the host's. In a user namespace they have other numbers or none; low-level runtimes refuse to start a container with a group that
 * has none, and the number itself is somebody else's group there.
 */
static void keep_usable_gids(const struct graft_oci_spec *spec, const struct graft_log *log,
			     struct graft_cdi_edits *edits)
{
	size_t n = 0;

	if (edits->n_gids == 0 || (!spec->new_user_namespace && !graft_in_user_namespace()))
		return;
	for (size_t i = 0; i < edits->n_gids; i++) {
		uint32_t gid = edits->gids[i];

		if (spec->new_user_namespace && translate_gid(spec, &gid))
			edits->gids[n++] = gid;
		else
			graft_debug(log, "group %u of device nodes is left out: the user namespace has no such group",
				    edits->gids[i]);
	}
	edits->n_gids = n;
}

/* ---- the hook ---- */

/* Takes out what is between the tokens: an argument has a limit. In place. */
static void compact(struct graft_buffer *json)
{
	bool in_string = false;
	size_t n = 0;

	for (size_t i = 0; i < json->length; i++) {
		char c = json->bytes[i];

		if (!in_string && (c == ' ' || c == '\n'))
			continue;
		json->bytes[n++] = c;
		if (c == '\\' && i + 1 < json->length)
			json->bytes[n++] = json->bytes[++i];
		else if (c == '"')
			in_string = !in_string;
	}
	json->length = n;
	json->bytes[n] = '\0';
}

/* The JSON form without reasons: they were logged. In the arena. */
static const char *plan_text(const struct graft_plan *plan, struct graft_arena *arena, struct graft_error *err)
{
	struct graft_buffer json = { .max = ARENA_MAX };
	struct graft_plan brief = *plan;
	const char *text = NULL;

	brief.edits = graft_arena_memdup(arena, plan->edits, plan->n_edits * sizeof(*plan->edits));
	for (size_t i = 0; brief.edits && i < brief.n_edits; i++)
		brief.edits[i].why = "";
	if (brief.edits)
		graft_plan_write(&brief, &json);
	if (brief.edits && !graft_buffer_failed(&json) && json.length > 0) {
		compact(&json);
		text = graft_arena_strdup(arena, json.bytes);
	}
	graft_buffer_done(&json);
	if (!text)
		(void)graft_fail_memory(err);
	return text;
}

/* Replaces a file of the bundle that an earlier start left. 0 or -errno. */
static int write_file(const char *directory, const char *text, const struct graft_oci_root *root)
{
	char temporary[GRAFT_TEMPORARY_SIZE];
	auto_close int directory_fd = directory ? open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	auto_close int fd = -1;
	int rc;

	if (directory_fd < 0)
		return -errno;
	fd = graft_temporary_file(directory_fd, 0600, temporary);
	if (fd < 0)
		return fd;
	rc = graft_write_all(fd, text, strlen(text));
	/* The hook runs as root of the container's user namespace. */
	if (rc == 0 && root->owner_known && fchown(fd, root->uid, root->gid) < 0)
		rc = -errno;
	if (rc == 0 && renameat(directory_fd, temporary, directory_fd, PLAN_FILE) < 0)
		rc = -errno;
	if (rc < 0)
		(void)unlinkat(directory_fd, temporary, 0);
	return rc;
}

/* The plan itself, or the file that it is in. */
static int add_plan_arguments(const struct graft_plan *plan, const struct graft_oci_root *root,
			      struct graft_arena *arena, struct graft_cdi_hook *hook, struct graft_error *err)
{
	const char *text = plan_text(plan, arena, err), *option = "--plan";
	int rc;

	if (!text)
		return -1;
	if (strlen(text) >= ARGUMENT_MAX) {
		rc = write_file(root->bundle, text, root);
		if (rc < 0)
			return graft_fail_errno(err, -rc, "file write error: %s/" PLAN_FILE, root->bundle);
		option = "--plan-file";
		text = graft_arena_printf(arena, "%s/" PLAN_FILE, root->bundle);
	}
	if (!text || !graft_arena_push_string(arena, &hook->args, &hook->n_args, option) ||
	    !graft_arena_push_string(arena, &hook->args, &hook->n_args, text))
		return graft_fail_memory(err);
	return 0;
}

static int add_hook(const struct graft_plan *plan, const struct graft_oci_options *options,
		    const struct graft_oci_root *root, struct graft_arena *arena, struct graft_cdi_edits *edits,
		    struct graft_error *err)
{
	const char *name = graft_path_name(options->hook_path);
	bool in_toolkit = strcmp(name, "nvidia-ctk") == 0; /* has the hooks as commands of "hook" (SPEC 6.6) */
	struct graft_cdi_hook *hook = graft_arena_push(arena, &edits->hooks, &edits->n_hooks, sizeof(*hook));

	if (!hook)
		return graft_fail_memory(err);
	hook->stage = "createContainer";
	hook->path = options->hook_path;
	/* SECURITY: a hook without a list inherits the runtime's environment, into which images have a say (CVE-2025-23266). */
	if (!graft_arena_push_string(arena, &hook->env, &hook->n_env, "NVIDIA_CTK_DEBUG=false") ||
	    !graft_arena_push_string(arena, &hook->args, &hook->n_args, name) ||
	    (in_toolkit && !graft_arena_push_string(arena, &hook->args, &hook->n_args, "hook")) ||
	    !graft_arena_push_string(arena, &hook->args, &hook->n_args, "apply"))
		return graft_fail_memory(err);
	if (add_plan_arguments(plan, root, arena, hook, err) < 0)
		return -1;
	if (options->hook_root && (!graft_arena_push_string(arena, &hook->args, &hook->n_args, "--rootfs") ||
				   !graft_arena_push_string(arena, &hook->args, &hook->n_args, options->hook_root)))
		return graft_fail_memory(err);
	return 0;
}

/* ---- what waits ---- */

/* The mount that the container sees there; NULL = none. However it is spelled: "/dev/" is /dev. */
static const struct graft_oci_mount *find_mount(const struct graft_oci_spec *spec, const char *place,
						struct graft_arena *arena)
{
	for (size_t i = spec->n_mounts; i-- > 0;) {
		const char *given = spec->mounts[i].destination;
		const char *path = given ? graft_path_clean("/", given, arena) : NULL;

		if (path && strcmp(path, place) == 0)
			return &spec->mounts[i];
	}
	return NULL;
}

/* Whether the low-level runtime mounts a tmpfs at /dev, which stays writable whatever becomes of the root. */
static bool has_own_dev(const struct graft_oci_spec *spec, struct graft_arena *arena)
{
	const struct graft_oci_mount *mount = find_mount(spec, "/dev", arena);

	if (!mount || !mount->type || strcmp(mount->type, "tmpfs") != 0)
		return false;
	for (size_t i = 0; i < mount->n_options; i++)
		if (strcmp(mount->options[i], "ro") == 0 || strcmp(mount->options[i], "rro") == 0)
			return false;
	return true;
}

static bool overlaps_one(const char *target, const char *const *paths, size_t n, struct graft_arena *arena)
{
	for (size_t i = 0; i < n; i++) {
		const char *path = graft_path_clean("/", paths[i], arena);

		if (!path || graft_path_overlap(target, path))
			return true;
	}
	return false;
}

/*
 * Whether it makes no difference that it is done a moment later. Masks have been put over paths then, and what is to be read-only is: the root, paths of that list, and
 * each tmpfs of config.json's.
 */
static bool may_wait(const struct graft_edit *edit, const struct graft_oci_spec *spec,
		     const struct graft_oci_root *root, bool own_dev)
{
	struct graft_arena *arena = root->arena;

	if (!edit->target || graft_path_has_dots(edit->target) ||
	    overlaps_one(edit->target, spec->masked_paths, spec->n_masked_paths, arena))
		return false;
	switch (edit->kind) {
	case GRAFT_EDIT_COVER:
		return graft_path_is_within(edit->target, "/proc");
	case GRAFT_EDIT_DIRECTORY:
	case GRAFT_EDIT_SYMLINK:
		return own_dev && graft_path_is_within(edit->target, "/dev") &&
		       !graft_oci_root_is_covered_below(root, spec, "/dev", edit->target) &&
		       !overlaps_one(edit->target, spec->readonly_paths, spec->n_readonly_paths, arena);
	case GRAFT_EDIT_FILE:
	case GRAFT_EDIT_TMPFS:
	case GRAFT_EDIT_BIND:
	case GRAFT_EDIT_DEVICE:
	case GRAFT_EDIT_CGROUP:
	case GRAFT_EDIT_LDCACHE:
	case GRAFT_EDIT_ENV:
	case GRAFT_EDIT_MAX:
		break;
	}
	return false;
}

/* Whether all of it may; one edit that has to be a hook's takes the others along. What is mounted over the root would be found in its place. */
static bool all_may_wait(const struct graft_plan *plan, const struct graft_oci_spec *spec,
			 const struct graft_oci_root *root, struct graft_arena *arena)
{
	bool own_dev = has_own_dev(spec, arena);

	if (!spec->new_mount_namespace || root->obstacle || find_mount(spec, "/", arena))
		return false;
	for (size_t i = 0; i < plan->n_edits; i++)
		if (!may_wait(&plan->edits[i], spec, root, own_dev))
			return false;
	return true;
}

/* A plan with memory of its own, of edits that may_wait() takes. NULL: no memory. */
static struct graft_plan *copy_waiting(const struct graft_plan *plan)
{
	struct graft_plan *copy = graft_plan_new();

	for (size_t i = 0; copy && i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];
		struct graft_edit *item = graft_arena_push(copy->arena, &copy->edits, &copy->n_edits, sizeof(*item));

		if (item)
			*item = (struct graft_edit){ .kind = edit->kind,
						     .target = graft_arena_strdup(copy->arena, edit->target),
						     .content = graft_arena_strdup(copy->arena, edit->content),
						     .conflict = edit->conflict,
						     .mode = edit->mode,
						     .flags = edit->flags };
		if (graft_arena_failed(copy->arena))
			copy = graft_plan_free(copy);
	}
	return copy;
}

void graft_oci_waiting_done(struct graft_oci_waiting *waiting)
{
	(void)graft_plan_free(waiting->plan);
	*waiting = (struct graft_oci_waiting){ .plan = NULL };
}

int graft_apply_to_created(const struct graft_oci_waiting *waiting, pid_t pid, const struct graft_log *log,
			   struct graft_error *err)
{
	auto_target struct graft_target target = GRAFT_TARGET_INIT;
	const struct graft_namespace_options options = { .log = log };

	if (graft_target_open_created(pid, waiting->dev, waiting->inode, log, &target, err) < 0)
		return -1;
	return graft_apply_to_namespace(waiting->plan, &target, &options, NULL, err);
}

/* ---- all of it ---- */

/* Each edit to the one who does it: the root now, or the hook. */
static int divide(const struct graft_plan *rest, const struct graft_oci_options *options, struct graft_oci_root *root,
		  struct graft_arena *arena, struct graft_plan *now, struct graft_plan *later)
{
	for (size_t i = 0; i < rest->n_edits; i++) {
		const struct graft_edit *edit = &rest->edits[i];
		const char *why_not = graft_oci_root_obstacle(root, edit);

		if (add_rest(edit, arena, why_not ? later : now) < 0)
			return -1;
		if (why_not)
			graft_debug(options->log, "left for later: %s %s: %s", graft_edit_names[edit->kind],
				    edit->target ? edit->target : "", why_not);
		else
			graft_debug(options->log, "done in the root: %s %s", graft_edit_names[edit->kind],
				    edit->target ? edit->target : "");
	}
	return 0;
}

/* What could not be done now: it waits, or a hook does it. */
static int put_off(const struct graft_plan *later, const struct graft_oci_spec *spec,
		   const struct graft_oci_options *options, const struct graft_oci_root *root,
		   struct graft_arena *arena, struct graft_cdi_edits *edits, struct graft_error *err)
{
	struct graft_oci_waiting *waiting = options->ret_waiting;
	bool waits = waiting && all_may_wait(later, spec, root, arena);
	struct stat st;

	if (later->n_edits == 0)
		return 0;
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	/* A root that is not what it will be has another number then. */
	if (!waits || fstat(root->target.root.fd, &st) < 0)
		return add_hook(later, options, root, arena, edits, err);
	waiting->plan = copy_waiting(later);
	waiting->dev = st.st_dev;
	waiting->inode = st.st_ino;
	return waiting->plan ? 0 : graft_fail_memory(err);
}

static int apply(const struct graft_plan *plan, const char *bundle, const struct graft_oci_spec *spec,
		 const struct graft_oci_options *options, struct graft_arena *arena,
		 struct graft_json_document *document, struct graft_error *err)
{
	auto_oci_root struct graft_oci_root root = GRAFT_OCI_ROOT_INIT;
	struct graft_plan *rest = NULL, *now = new_rest(plan, arena), *later = new_rest(plan, arena);
	struct graft_cdi_edits edits;

	if (!now || !later)
		return graft_fail_memory(err);
	if (graft_plan_to_edits(plan, options, arena, &edits, &rest, err) < 0)
		return -1;
	keep_usable_gids(spec, options->log, &edits);
	if (rest && graft_oci_root_open(&root, bundle, spec, plan, options, arena, err) < 0)
		return -1;
	/* A comparison that failed for want of memory counts as "cannot be told"; but then the rest would fail as well. */
	if (rest && (divide(rest, options, &root, arena, now, later) < 0 || graft_arena_failed(arena)))
		return graft_fail_memory(err);
	if (put_off(later, spec, options, &root, arena, &edits, err) < 0)
		return -1;
	if (graft_oci_apply_edits(document, &edits, err) < 0)
		return -1;
	/* Last: what is done here is undone by itself when it fails, and nothing after it can. */
	return now->n_edits > 0 ? graft_oci_root_apply(&root, now, options->log, err) : 0;
}

int graft_apply_to_oci(const struct graft_plan *plan, const char *bundle, const struct graft_oci_spec *spec,
		       const struct graft_oci_options *options, struct graft_json_document *document,
		       struct graft_error *err)
{
	struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	int rc;

	if (options->ret_waiting)
		*options->ret_waiting = (struct graft_oci_waiting){ .plan = NULL };
	if (!arena)
		return graft_fail_memory(err);
	rc = apply(plan, bundle, spec, options, arena, document, err);
	if (rc < 0 && options->ret_waiting)
		graft_oci_waiting_done(options->ret_waiting);
	graft_arena_free(arena);
	return rc;
}
