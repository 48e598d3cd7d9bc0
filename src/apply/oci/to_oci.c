/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_oci: turns a plan into changes of an OCI configuration: container edits for what a low-level
 * runtime does, and one hook for the rest that the root cannot take now. oci_root.c determines what
 * the root can take. docs/decisions/0010-one-hook.md.
 */
#include "apply/oci/to_oci.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/namespace/to_namespace.h"
#include "apply/oci/late_mounts.h"
#include "apply/oci/oci_edits.h"
#include "apply/oci/oci_root.h"
#include "apply/oci/plan_to_edits.h"
#include "apply/temporary.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"

#define ARENA_MAX ((size_t)32 << 20)
/* The kernel's MAX_ARG_STRLEN, for one argument including its NUL: 32 pages. */
#define ARGUMENT_MAX ((size_t)128 << 10)
#define PLAN_FILE    ".graft-plan.json"

/* ---- groups ---- */

/* Maps the group into the container's user namespace; false if it has no mapping there. */
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
 * Nodes of the host carry groups of the host. In a user namespace these have other ids or none;
 * low-level runtimes refuse to start a container with an unmapped group, and the bare number would
 * be another group there.
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
			graft_debug(log, "skipping group %u of device nodes: the user namespace has no such group",
				    edits->gids[i]);
	}
	edits->n_gids = n;
}

/* ---- the hook ---- */

/* Removes whitespace between tokens, in place: the length of an argument is limited. */
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

/* Returns the plan as JSON, without the reasons, which were logged. In the arena. */
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

/* Writes a file into the bundle, replacing what an earlier start left. Returns 0 or -errno. */
static int write_bundle_file(const char *text, const struct graft_oci_root *root)
{
	char temporary[GRAFT_TEMPORARY_SIZE];
	auto_close int directory_fd = open(root->bundle, O_PATH | O_DIRECTORY | O_CLOEXEC);
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

/*
 * Adds the plan itself or, if it is too long, the path of a file that contains it. `root` NULL:
 * there is no bundle for such a file.
 */
static int add_plan_arguments(const struct graft_plan *plan, const struct graft_oci_root *root,
			      struct graft_arena *arena, struct graft_cdi_hook *hook, struct graft_error *err)
{
	const char *text = plan_text(plan, arena, err), *option = "--plan";
	int rc;

	if (!text)
		return -1;
	if (strlen(text) >= ARGUMENT_MAX && !root)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "the hook's plan has %zu bytes", strlen(text));
	if (strlen(text) >= ARGUMENT_MAX) {
		rc = write_bundle_file(text, root);
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

static void add_option(struct graft_arena *arena, struct graft_cdi_hook *hook, const char *option, const char *value)
{
	(void)graft_arena_push_string(arena, &hook->args, &hook->n_args, option);
	(void)graft_arena_push_string(arena, &hook->args, &hook->n_args, value);
}

/* `spec` and `root` NULL: there is no config.json yet. */
static int add_hook(const struct graft_plan *plan, const struct graft_oci_options *options,
		    const struct graft_oci_spec *spec, const struct graft_oci_root *root, struct graft_arena *arena,
		    struct graft_cdi_edits *edits, struct graft_error *err)
{
	struct graft_cdi_hook *hook = oci_begin_hook(options->hook_path, "apply", arena, edits);

	if (!hook)
		return graft_fail_memory(err);
	if (add_plan_arguments(plan, root, arena, hook, err) < 0)
		return -1;
	if (options->hook_root)
		add_option(arena, hook, "--rootfs", options->hook_root);
	if (options->hook_root && spec && spec->cwd && graft_plan_mounts_directory(plan)) {
		add_option(arena, hook, "--cwd", spec->cwd);
		if (options->hooks_follow)
			(void)graft_arena_push_string(arena, &hook->args, &hook->n_args, "--hooks-follow");
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

int graft_plan_to_adjustment(const struct graft_plan *plan, const struct graft_oci_options *options,
			     struct graft_arena *arena, struct graft_cdi_edits *ret_edits, struct graft_error *err)
{
	struct graft_plan *rest = NULL;

	if (graft_plan_to_edits(plan, options, arena, ret_edits, &rest, err) < 0)
		return -1;
	return rest ? add_hook(rest, options, NULL, NULL, arena, ret_edits, err) : 0;
}

/* ---- edits that wait ---- */

static bool is_tmpfs(const struct graft_oci_mount *mount, bool read_only)
{
	return mount->type && strcmp(mount->type, "tmpfs") == 0 &&
	       (graft_is_in(mount->options, mount->n_options, "ro") ||
		graft_is_in(mount->options, mount->n_options, "rro")) == read_only;
}

/*
 * Whether the low-level runtime mounts a tmpfs at /dev that stays writable even if the root is
 * read-only.
 */
static bool has_own_dev(const struct graft_oci_spec *spec, struct graft_arena *arena)
{
	const struct graft_oci_mount *mount = graft_oci_spec_mount_at(spec, "/dev", arena);

	return mount && is_tmpfs(mount, false);
}

/* Whether the path is in a tmpfs that the low-level runtime makes read-only. */
static bool is_in_read_only(const struct graft_oci_spec *spec, const char *path, struct graft_arena *arena)
{
	for (size_t i = 0; i < spec->n_mounts; i++) {
		const struct graft_oci_mount *mount = &spec->mounts[i];
		const char *place = mount->destination ? graft_path_clean("/", mount->destination, arena) : NULL;

		if (place && graft_path_is_within(path, place) && is_tmpfs(mount, true))
			return true;
	}
	return false;
}

/*
 * Whether nothing misses a directory of the host while the container is created: no hook, not the
 * search for the program, and not the process, which is in its working directory from then on. By
 * then no mount point can be made in a read-only root.
 */
static bool may_directory_wait(const struct graft_edit *edit, const struct graft_oci_spec *spec,
			       const struct graft_oci_root *root, const struct graft_json_document *document)
{
	if (spec->root_readonly || is_in_read_only(spec, edit->target, root->arena) ||
	    graft_oci_has_early_hooks(document) || !oci_can_mount_later(false) ||
	    graft_path_overlaps_one(edit->target, spec->readonly_paths, spec->n_readonly_paths, root->arena))
		return false;
	if (!spec->cwd || graft_path_is_within(spec->cwd, edit->target) ||
	    (strcmp(spec->cwd, "/") != 0 && graft_image_root_look_plain(&root->target.root, spec->cwd) < 0))
		return false;
	return spec->program && graft_oci_root_has_program(root, spec, spec->program);
}

/*
 * Returns whether the edit can be made a moment later with the same result. By then paths are
 * masked, and the root, the listed paths and tmpfs mounts are read-only if config.json says so.
 */
static bool may_edit_wait(const struct graft_edit *edit, const struct graft_oci_spec *spec,
			  const struct graft_oci_root *root, const struct graft_json_document *document, bool own_dev)
{
	struct graft_arena *arena = root->arena;

	if (!edit->target || graft_path_has_dots(edit->target) ||
	    graft_path_overlaps_one(edit->target, spec->masked_paths, spec->n_masked_paths, arena))
		return false;
	switch (edit->kind) {
	case GRAFT_EDIT_COVER:
		return graft_path_is_within(edit->target, "/proc");
	case GRAFT_EDIT_DIRECTORY:
	case GRAFT_EDIT_SYMLINK:
		return own_dev && graft_path_is_within(edit->target, "/dev") &&
		       !graft_oci_root_is_covered_below(root, spec, "/dev", edit->target) &&
		       !graft_path_overlaps_one(edit->target, spec->readonly_paths, spec->n_readonly_paths, arena);
	case GRAFT_EDIT_BIND:
		return may_directory_wait(edit, spec, root, document);
	case GRAFT_EDIT_FILE:
	case GRAFT_EDIT_TMPFS:
	case GRAFT_EDIT_DEVICE:
	case GRAFT_EDIT_CGROUP:
	case GRAFT_EDIT_LDCACHE:
	case GRAFT_EDIT_ENV:
	case GRAFT_EDIT_MAX:
		break;
	}
	return false;
}

/*
 * Returns whether all edits may wait; if one needs a hook, the hook makes all of them. A mount over
 * the root would hide it.
 */
static bool all_may_wait(const struct graft_plan *plan, const struct graft_oci_spec *spec,
			 const struct graft_oci_root *root, const struct graft_json_document *document,
			 struct graft_arena *arena)
{
	bool own_dev = has_own_dev(spec, arena);

	if (!spec->new_mount_namespace || root->obstacle || graft_oci_spec_mount_at(spec, "/", arena))
		return false;
	for (size_t i = 0; i < plan->n_edits; i++)
		if (!may_edit_wait(&plan->edits[i], spec, root, document, own_dev))
			return false;
	return true;
}

/* Copies a plan of edits that can wait, in memory of its own. NULL: no memory. */
static struct graft_plan *copy_waiting(const struct graft_plan *plan)
{
	struct graft_plan *copy = graft_plan_new();

	for (size_t i = 0; copy && i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];
		struct graft_edit *item = graft_arena_push(copy->arena, &copy->edits, &copy->n_edits, sizeof(*item));

		if (item)
			*item = (struct graft_edit){ .kind = edit->kind,
						     .source = graft_arena_strdup(copy->arena, edit->source),
						     .type = edit->type,
						     .optional = edit->optional,
						     .target = graft_arena_strdup(copy->arena, edit->target),
						     .content = graft_arena_strdup(copy->arena, edit->content),
						     .conflict = edit->conflict,
						     .mode = edit->mode,
						     .flags = edit->flags,
						     .dispensable = edit->dispensable };
		if (graft_arena_failed(copy->arena))
			copy = graft_plan_free(copy);
	}
	return copy;
}

void graft_oci_waiting_done(struct graft_oci_waiting *waiting)
{
	(void)graft_plan_free(waiting->plan);
	(void)graft_budget_free(waiting->budget);
	*waiting = (struct graft_oci_waiting){ .plan = NULL };
}

int graft_apply_to_created(const struct graft_oci_waiting *waiting, pid_t pid, const struct graft_log *log,
			   struct graft_error *err)
{
	auto_target struct graft_target target = GRAFT_TARGET_INIT;
	const struct graft_namespace_options options = { .log = log };

	if (graft_target_open_created(pid, waiting->dev, waiting->inode, waiting->budget, log, &target, err) < 0)
		return -1;
	target.oci_dev = waiting->oci_dev;
	return graft_apply_to_namespace(waiting->plan, &target, &options, err);
}

/* ---- the whole configuration ---- */

/* Divides the edits into those for the root now and those for later. */
static int divide(const struct graft_plan *rest, const struct graft_oci_options *options, struct graft_oci_root *root,
		  struct graft_arena *arena, struct graft_plan *now, struct graft_plan *later)
{
	for (size_t i = 0; i < rest->n_edits; i++) {
		const struct graft_edit *edit = &rest->edits[i];
		const char *why_not = graft_oci_root_obstacle(root, edit);

		if (oci_add_rest(edit, arena, why_not ? later : now) < 0)
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

/* Defers what could not be done now: it waits, or a hook does it. */
static int put_off(const struct graft_plan *later, bool waits, const struct graft_oci_spec *spec,
		   const struct graft_oci_options *options, const struct graft_oci_root *root,
		   struct graft_arena *arena, struct graft_cdi_edits *edits, struct graft_error *err)
{
	struct graft_oci_waiting *waiting = options->ret_waiting;
	struct stat st;

	if (later->n_edits == 0)
		return 0;
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	if (!waits)
		return add_hook(later, options, spec, root, arena, edits, err);
	/* If the container ends up with another root, the number will not match. */
	if (fstat(root->target.root.fd, &st) < 0)
		return graft_fail_errno(err, errno, "path error: %s", spec->root_path);
	waiting->plan = copy_waiting(later);
	if (waiting->plan)
		graft_oci_dev_read(spec, waiting->plan->arena, &waiting->oci_dev);
	waiting->dev = st.st_dev;
	waiting->inode = st.st_ino;
	return waiting->plan ? 0 : graft_fail_memory(err);
}

/*
 * Makes missing mount points of directories while the root can be written: QUIRK: crun makes it, or
 * paths in it, read-only before its hooks. What cannot be made now is left to the hook, which says
 * why.
 */
static void make_places(const struct graft_plan *later, const struct graft_oci_spec *spec, struct graft_oci_root *root)
{
	for (size_t i = 0; !root->obstacle && i < later->n_edits; i++) {
		const struct graft_edit *edit = &later->edits[i];
		auto_close int fd = -1;

		if (graft_edit_mounts_directory(edit) &&
		    (spec->root_readonly || graft_path_overlaps_one(edit->target, spec->readonly_paths,
								    spec->n_readonly_paths, root->arena)) &&
		    graft_image_root_look_plain(&root->target.root, edit->target) == -ENOENT)
			(void)graft_image_root_mkdir(&root->target.root, edit->target, edit->mode, GRAFT_IMAGE_CONTENT,
						     NULL, &fd);
	}
}

static int apply_to_oci(const struct graft_plan *plan, const char *bundle, const struct graft_oci_spec *spec,
			const struct graft_oci_options *options, struct graft_arena *arena,
			struct graft_json_document *document, struct graft_error *err)
{
	auto_oci_root struct graft_oci_root root = GRAFT_OCI_ROOT_INIT;
	struct graft_plan *rest = NULL, *now = oci_new_rest(plan, arena), *later = oci_new_rest(plan, arena);
	struct graft_cdi_edits edits;
	bool waits;

	if (!now || !later)
		return graft_fail_memory(err);
	if (graft_plan_to_edits(plan, options, arena, &edits, &rest, err) < 0)
		return -1;
	keep_usable_gids(spec, options->log, &edits);
	if ((rest || options->late_mounts) && graft_oci_root_open(&root, bundle, spec, plan, options, arena, err) < 0)
		return -1;
	/* Without memory a comparison cannot be decided; but then the rest would fail as well. */
	if (rest && (divide(rest, options, &root, arena, now, later) < 0 || graft_arena_failed(arena)))
		return graft_fail_memory(err);
	waits = options->ret_waiting && all_may_wait(later, spec, &root, document, arena);
	if (options->late_mounts &&
	    oci_let_mounts_wait(plan, spec, options, &root, waits, document, later, &edits, err) < 0)
		return -1;
	if (!options->only_look && put_off(later, waits, spec, options, &root, arena, &edits, err) < 0)
		return -1;
	if (graft_oci_apply_edits(document, &edits, err) < 0)
		return -1;
	if (!options->only_look)
		make_places(later, spec, &root);
	/* This comes last: its changes are undone if it fails, and nothing after it can fail. */
	return now->n_edits > 0 && !options->only_look ? graft_oci_root_apply(&root, now, options, err) : 0;
}

int graft_apply_to_oci(const struct graft_plan *plan, const char *bundle, const struct graft_oci_spec *spec,
		       const struct graft_oci_options *options, struct graft_json_document *document,
		       struct graft_error *err)
{
	auto_arena struct graft_arena *arena = graft_arena_new(ARENA_MAX);
	int rc;

	if (options->ret_waiting)
		*options->ret_waiting = (struct graft_oci_waiting){ .plan = NULL };
	if (!arena)
		return graft_fail_memory(err);
	rc = apply_to_oci(plan, bundle, spec, options, arena, document, err);
	if (rc < 0 && options->ret_waiting)
		graft_oci_waiting_done(options->ret_waiting);
	return rc;
}
