/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_namespace: the order of the steps: sources, the line, edits, device rules, the loader's cache;
 * and the way back, whatever happens. edit.c carries out each edit; rootless.c runs the child of a
 * rootless caller.
 */
#include "apply/namespace/to_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "apply/namespace/edit.h"
#include "apply/namespace/rootless.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "plan/plan.h"

/*
 * Descriptors per edit: a mount, a spot that the journal keeps, and other journal entries; plus
 * what the process has open anyway.
 */
#define DESCRIPTORS_PER_EDIT 4
#define DESCRIPTORS_OTHER    384
#define ARENA_MAX            ((size_t)48 << 20) /* for what a reader returns about the loader */

static int call_step(const struct graft_namespace_options *options, const char *step, struct graft_error *err)
{
	return options->step ? options->step(options->arg, step, err) : 0;
}

/*
 * Hundreds of MIG or IMEX nodes need more descriptors than the usual soft limit. *ret_old receives
 * the limit to restore.
 */
static bool raise_descriptor_limit(size_t n_edits, struct rlimit *ret_old)
{
	struct rlimit limit;
	rlim_t wanted = n_edits * DESCRIPTORS_PER_EDIT + DESCRIPTORS_OTHER;

	if (getrlimit(RLIMIT_NOFILE, ret_old) < 0 || ret_old->rlim_cur >= wanted)
		return false;
	limit = *ret_old;
	limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static int open_source(struct graft_apply *apply, size_t index, struct graft_error *err)
{
	struct graft_edit edit = apply->plan->edits[index];

	if (edit.kind == GRAFT_EDIT_SYMLINK)
		edit.type = GRAFT_SOURCE_FILE;
	if (graft_source_open(&apply->mounter, &edit, &apply->late, apply->log, &apply->sources[index], err) == 0)
		return 0;
	return graft_apply_does_without(apply, &edit, graft_journal_length(apply->journal), err) ? 0 : -1;
}

/*
 * Links that may require a mount over a file open their source only when needed, unless there is no
 * way back then.
 */
static int open_sources(struct graft_apply *apply, struct graft_error *err)
{
	const struct graft_plan *plan = apply->plan;

	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if ((edit->kind == GRAFT_EDIT_BIND || edit->kind == GRAFT_EDIT_DEVICE) &&
		    open_source(apply, i, err) < 0)
			return -1;
	}
	for (size_t i = 0; apply->late && i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if (edit->kind == GRAFT_EDIT_SYMLINK && edit->conflict == GRAFT_CONFLICT_REPLACE && edit->source &&
		    open_source(apply, i, err) < 0)
			return -1;
	}
	return 0;
}

/* Whether applying the plan may mount something. */
static bool mounts(const struct graft_plan *plan)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		switch (edit->kind) {
		case GRAFT_EDIT_TMPFS:
		case GRAFT_EDIT_BIND:
		case GRAFT_EDIT_DEVICE:
		case GRAFT_EDIT_COVER:
			return true;
		case GRAFT_EDIT_SYMLINK:
			if (edit->conflict == GRAFT_CONFLICT_REPLACE && edit->source)
				return true;
			break;
		case GRAFT_EDIT_DIRECTORY:
		case GRAFT_EDIT_FILE:
		case GRAFT_EDIT_CGROUP:
		case GRAFT_EDIT_LDCACHE:
		case GRAFT_EDIT_ENV:
		case GRAFT_EDIT_MAX:
			break;
		}
	}
	return false;
}

/* ---- directories of other mounts ---- */

/*
 * Returns the directory of a path that the edit writes to, or NULL if it writes none or the plan
 * mounts a tmpfs there.
 */
static const char *written_directory(const struct graft_plan *plan, const struct graft_edit *edit,
				     struct graft_arena *arena)
{
	const char *path = NULL;

	if (edit->kind == GRAFT_EDIT_SYMLINK || edit->kind == GRAFT_EDIT_FILE)
		path = edit->target;
	else if (edit->kind == GRAFT_EDIT_LDCACHE)
		path = edit->musl_path_file ? edit->musl_path_file : GRAFT_LDCACHE_PATH;
	for (size_t i = 0; path && i < plan->n_edits; i++)
		if (plan->edits[i].kind == GRAFT_EDIT_TMPFS && graft_path_is_within(path, plan->edits[i].target))
			path = NULL;
	return path ? graft_path_directory(path, arena) : NULL;
}

/*
 * SECURITY: the directory is looked up and not opened. If it does not exist yet, it is checked
 * after it was created.
 */
static bool is_foreign_directory(const struct graft_apply *apply, const char *directory)
{
	auto_close int fd = graft_image_root_look(&apply->root, directory, O_DIRECTORY);

	return fd >= 0 && graft_image_root_may_write(&apply->root, fd, directory, GRAFT_IMAGE_CONTENT) < 0;
}

/* Whether the plan makes more below /dev than mount points, which may be made anywhere. */
static bool changes_dev(const struct graft_plan *plan)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if ((edit->kind == GRAFT_EDIT_DIRECTORY || edit->kind == GRAFT_EDIT_SYMLINK ||
		     edit->kind == GRAFT_EDIT_FILE) &&
		    graft_path_is_within(edit->target, "/dev"))
			return true;
	}
	return false;
}

/* A tmpfs of an earlier call is still in place, and no link of the image leads there. */
static void add_earlier_mounts(struct graft_apply *apply, const struct graft_plan *done)
{
	struct statfs fs;

	for (size_t i = 0; done && i < done->n_edits; i++) {
		const struct graft_edit *edit = &done->edits[i];
		auto_close int fd = edit->kind == GRAFT_EDIT_TMPFS
					? graft_image_root_look(&apply->root, edit->target, O_DIRECTORY)
					: -1;

		/* The container may have put another mount there. */
		if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
		    graft_image_root_may_write(&apply->root, fd, edit->target, GRAFT_IMAGE_MOUNTPOINT) == 0)
			graft_image_root_add_mount(&apply->root, fd);
	}
}

/* Leaves out what would be written to a mount other than the root's own. */
static int leave_foreign_edits(struct graft_apply *apply, struct graft_error *err)
{
	const struct graft_plan *plan = apply->plan;
	const char **seen = NULL, **foreign = NULL;
	size_t n_seen = 0, n_foreign = 0;

	apply->arena = graft_arena_new(ARENA_MAX);
	for (size_t i = 0; apply->arena && i < plan->n_edits; i++) {
		const char *directory = written_directory(plan, &plan->edits[i], apply->arena);

		if (!directory || graft_is_in(seen, n_seen, directory))
			continue;
		(void)graft_arena_push_string(apply->arena, &seen, &n_seen, directory);
		if (is_foreign_directory(apply, directory))
			(void)graft_arena_push_string(apply->arena, &foreign, &n_foreign, directory);
	}
	if (apply->arena && n_foreign > 0)
		apply->plan = graft_plan_without(plan, foreign, n_foreign, apply->arena);
	if (!apply->arena || !apply->plan || graft_arena_failed(apply->arena))
		return graft_fail_memory(err);
	apply->is_shortened = apply->plan != plan;
	for (size_t i = plan->n_refusals; i < apply->plan->n_refusals; i++)
		graft_warn(apply->log, "not done: %s: %s", apply->plan->refusals[i].what, apply->plan->refusals[i].why);
	return 0;
}

/* ---- the order of the steps ---- */

/* Looks up everything on the host. */
static int prepare_apply(struct graft_apply *apply, struct graft_error *err)
{
	if (leave_foreign_edits(apply, err) < 0)
		return -1;
	apply->sources = calloc(apply->plan->n_edits + 1, sizeof(*apply->sources));
	for (size_t i = 0; apply->sources && i < apply->plan->n_edits; i++)
		apply->sources[i] = (struct graft_source)GRAFT_SOURCE_INIT;
	apply->journal = graft_journal_new(apply->log);
	if (!apply->journal || !apply->sources)
		return graft_fail_memory(err);
	/* Without it no mount could be undone. */
	if (graft_journal_proc_fd(apply->journal) < 0 && mounts(apply->plan))
		return graft_fail(err, GRAFT_NOT_FOUND, ENOENT, "open failed: /proc/self/fd");
	graft_place_init(&apply->place, &apply->root, apply->journal);
	if (mounts(apply->plan))
		graft_mounter_probe(&apply->mounter, graft_journal_proc_fd(apply->journal));
	graft_budget_extend(apply->root.budget, (int64_t)apply->plan->n_edits * GRAFT_BUDGET_EDIT_MS,
			    GRAFT_BUDGET_EDITS_MS);
	apply->late = apply->target->user_ns_fd >= 0 || !graft_mounter_detaches(&apply->mounter);
	graft_log_settle(apply->log);
	if (graft_join_prepare(&apply->join, apply->target, err) < 0)
		return -1;
	return open_sources(apply, err);
}

static int become_owner(struct graft_apply *apply, struct graft_error *err)
{
	return graft_identity_enter(&apply->identity, apply->owner_uid, apply->owner_gid, err);
}

/* Joins the namespaces and determines what is possible there. */
static int cross_the_line(struct graft_apply *apply, struct graft_error *err)
{
	struct stat st;
	int fd;

	if (graft_join_enter(&apply->join, err) < 0)
		return -1;
	if (apply->join.inside && apply->mounter.refused)
		graft_mounter_probe(&apply->mounter, apply->mounter.proc_fd);
	/*
	 * A caller that works in its own namespace may mean the host itself by the root, so the
	 * root's mount stays in its peer group.
	 */
	if (!apply->join.inside)
		apply->mounter.seclusion.spared_fd = apply->target->root.fd;
	if (apply->join.inside && apply->late) {
		fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return graft_fail_errno(err, errno, "open failed: /");
		/* SECURITY: "/proc" is the image's here. */
		apply->namespace_root = (struct graft_image_root)GRAFT_IMAGE_ROOT_INIT;
		apply->namespace_root.fd = fd;
		apply->namespace_root.budget = apply->root.budget;
	}
	/* The owner has another id when seen from another user namespace. */
	if (apply->join.one_way && fstat(apply->target->process_fd, &st) == 0) {
		apply->owner_uid = st.st_uid;
		apply->owner_gid = st.st_gid;
	}
	apply->place.want_parents = !graft_mounter_detaches(&apply->mounter) ||
				    !graft_mounter_makes_tmpfs(&apply->mounter);
	return become_owner(apply, err);
}

static bool mounts_libraries(const struct graft_plan *plan)
{
	for (size_t i = 0; i < plan->n_edits; i++)
		if (graft_edit_mounts_libraries(&plan->edits[i]))
			return true;
	return false;
}

/*
 * Mount points change the times of directories, which show whether the cache is up to date, so this
 * precedes all edits unless the cache is rebuilt anyway.
 */
static int work_out_ldcache(struct graft_apply *apply, const struct graft_namespace_options *options, bool rebuild,
			    struct graft_error *err)
{
	const struct graft_edit *edit = graft_plan_find(apply->plan, GRAFT_EDIT_LDCACHE);
	/* What the plan itself mounts and links comes after this. */
	bool makes_files = graft_plan_find(apply->plan, GRAFT_EDIT_BIND) ||
			   graft_plan_find(apply->plan, GRAFT_EDIT_SYMLINK);
	bool early = options->early || (!rebuild && makes_files);
	struct graft_loader_additions additions;

	/* musl has no cache, but a rebuild would also include the soname links. */
	if (!edit || (edit->musl_path_file && !rebuild))
		return 0;
	additions = graft_ldcache_additions(edit);
	return graft_loader_cache_read(&apply->root, &additions,
				       rebuild ? GRAFT_LDCACHE_REBUILD : options->ldcache_state, early, apply->log,
				       apply->arena, &apply->loader, err);
}

static int allow_devices(const struct graft_apply *apply, struct graft_cgroup *cgroup, struct graft_error *err)
{
	auto_free struct graft_device_rule *rules = NULL;
	size_t n = 0;

	rules = calloc(apply->plan->n_edits + 1, sizeof(*rules));
	if (!rules)
		return graft_fail_memory(err);
	for (size_t i = 0; i < apply->plan->n_edits; i++) {
		const struct graft_edit *edit = &apply->plan->edits[i];
		const char *access = edit->access ? edit->access : "rw";

		if (edit->kind == GRAFT_EDIT_CGROUP)
			rules[n++] = (struct graft_device_rule){
				.major = edit->major,
				.minor = edit->minor,
				.read = strchr(access, 'r') != NULL,
				.write = strchr(access, 'w') != NULL,
			};
	}
	return graft_cgroup_allow(cgroup, rules, n, apply->log, err);
}

/* Device rules are written with our own ids: the cgroup's files are the host's. */
static int apply_cgroup(struct graft_apply *apply, struct graft_cgroup *cgroup, struct graft_error *err)
{
	if (!cgroup || cgroup->version == 0 || !graft_plan_find(apply->plan, GRAFT_EDIT_CGROUP))
		return 0;
	graft_identity_leave(&apply->identity);
	if (allow_devices(apply, cgroup, err) < 0) {
		graft_cgroup_undo(cgroup, apply->log);
		return -1;
	}
	apply->cgroup = cgroup;
	return become_owner(apply, err);
}

static int refresh_ldcache(struct graft_apply *apply, struct graft_error *err)
{
	const struct graft_edit *edit = graft_plan_find(apply->plan, GRAFT_EDIT_LDCACHE);

	return edit ? graft_ldcache_refresh(&apply->root, edit, &apply->loader, apply->journal, apply->log, err) : 0;
}

/*
 * A step changes capabilities, and so does the owner's identity, so the identity is left before the
 * step and resumed after it.
 */
static int take_next_step(struct graft_apply *apply, const struct graft_namespace_options *options, const char *step,
			  struct graft_error *err)
{
	graft_identity_leave(&apply->identity);
	if (call_step(options, step, err) < 0)
		return -1;
	return become_owner(apply, err);
}

/* Everything after the line. */
static int change_container(struct graft_apply *apply, const struct graft_namespace_options *options,
			    struct graft_error *err)
{
	bool rebuild = options->rebuild_ldcache || mounts_libraries(apply->plan), inside;

	if (cross_the_line(apply, err) < 0)
		return -1;
	inside = apply->join.inside;
	if (!rebuild && work_out_ldcache(apply, options, rebuild, err) < 0)
		return graft_in_step(err, GRAFT_STEP_LDCACHE);
	/* A reader sees the mounts as they were when it started. */
	graft_budget_dismiss_child(apply->root.budget);
	for (size_t i = 0; i < apply->plan->n_edits; i++) {
		size_t length = graft_journal_length(apply->journal);

		if (graft_apply_edit(apply, i, err) == 0)
			continue;
		/*
		 * Whether we are back in the container: an edit that returns to our own namespace
		 * may fail there.
		 */
		if (apply->join.inside == inside &&
		    graft_apply_does_without(apply, &apply->plan->edits[i], length, err))
			continue;
		if (options->ret_edit && !apply->is_shortened)
			*options->ret_edit = i;
		return -1;
	}
	if ((options->cwd && graft_apply_check_later(apply, options->cwd, options->hooks_follow, err) < 0) ||
	    apply_cgroup(apply, options->cgroup, err) < 0)
		return -1;
	if (take_next_step(apply, options, "ldcache", err) < 0 ||
	    (rebuild && work_out_ldcache(apply, options, rebuild, err) < 0) || refresh_ldcache(apply, err) < 0)
		return graft_in_step(err, GRAFT_STEP_LDCACHE);
	return 0;
}

/*
 * Undoes with the capabilities of the mount step, whichever step failed. Only the first error is
 * reported.
 */
static void undo_apply(struct graft_apply *apply, const struct graft_namespace_options *options)
{
	struct graft_budget *budget = graft_budget_new(GRAFT_BUDGET_UNDO_MS);

	if (graft_join_enter(&apply->join, NULL) < 0)
		graft_warn(apply->log, "could not enter the container again to undo the changes");
	if (take_next_step(apply, options, "mount", NULL) < 0)
		graft_warn(apply->log, "undoing with the rights of the step that failed");
	graft_journal_undo(apply->journal, budget);
	(void)graft_budget_free(budget);
	graft_seclude_end(&apply->mounter.seclusion, apply->log);
	graft_identity_leave(&apply->identity);
	if (apply->cgroup)
		graft_cgroup_undo(apply->cgroup, apply->log);
}

static void finish_apply(struct graft_apply *apply)
{
	for (size_t i = 0; apply->sources && i < apply->plan->n_edits; i++)
		graft_source_close(&apply->sources[i]);
	free(apply->sources);
	graft_image_root_close(&apply->namespace_root);
	(void)graft_budget_end_child(apply->root.budget);
	apply->arena = graft_arena_free(apply->arena);
	graft_join_done(&apply->join);
	graft_mounter_done(&apply->mounter);
	apply->journal = graft_journal_free(apply->journal);
}

static int apply_here(const struct graft_plan *plan, const struct graft_target *target,
		      const struct graft_namespace_options *options, struct graft_error *err)
{
	struct graft_apply apply = {
		.plan = plan,
		.target = target,
		.log = options->log,
		.join = GRAFT_JOIN_INIT,
		.root = target->root,
		.namespace_root = GRAFT_IMAGE_ROOT_INIT,
		.owner_uid = target->uid,
		.owner_gid = target->gid,
	};
	struct rlimit old_limit;
	bool raised = raise_descriptor_limit(plan->n_edits, &old_limit);
	int rc;

	if (changes_dev(plan))
		graft_target_find_dev(&apply.root, &target->oci_dev);
	add_earlier_mounts(&apply, options->done);
	rc = call_step(options, "mount", err) < 0 ? -1 : prepare_apply(&apply, err);

	/* ---- the line: everything needed of the host is open; from here on the container's tree is touched ---- */

	if (rc == 0) {
		mode_t mask = umask(0);

		rc = change_container(&apply, options, err);
		graft_identity_leave(&apply.identity);
		if (rc == 0) {
			graft_seclude_end(&apply.mounter.seclusion, apply.log);
			rc = graft_join_leave(&apply.join, err);
		}
		if (rc < 0) {
			undo_apply(&apply, options);
			if (graft_join_leave(&apply.join, NULL) < 0)
				graft_warn(apply.log, "could not leave the container's mount namespace");
		}
		(void)umask(mask);
	}
	finish_apply(&apply);
	if (raised)
		(void)setrlimit(RLIMIT_NOFILE, &old_limit);
	return rc < 0 ? graft_in_step(err, GRAFT_STEP_MOUNT) : 0;
}

/* What a rootless child needs. */
struct job {
	const struct graft_plan *plan;
	const struct graft_target *target;
	const struct graft_namespace_options *options;
	int64_t left_ms; /* of the budget; a child's clock starts at 0 */
};

static int apply_in_child(void *arg, struct graft_rootless_child *child, struct graft_error *err)
{
	const struct job *job = arg;
	struct graft_namespace_options options = *job->options;

	graft_budget_become_child(job->target->root.budget, job->left_ms);
	options.step = graft_rootless_step;
	options.arg = child;
	return apply_here(job->plan, job->target, &options, err);
}

int graft_apply_to_namespace(const struct graft_plan *plan, struct graft_target *target,
			     const struct graft_namespace_options *options, struct graft_error *err)
{
	struct job job = { .plan = plan, .target = target, .options = options };

	if (target->user_ns_fd < 0)
		return apply_here(plan, target, options, err);
	job.left_ms = graft_budget_left_ms(target->root.budget);
	return graft_rootless_run(apply_in_child, &job, options->step, options->arg, err);
}
