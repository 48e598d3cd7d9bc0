/* SPDX-License-Identifier: Apache-2.0 */
/*
 * to_namespace: the order of things: sources, the line, edits, device rules, the loader's cache; and the way back, whatever happens. What an edit does
 * is in edit.c; how a rootless caller gets there is in rootless.c.
 */
#include "apply/to_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/edit.h"
#include "apply/rootless.h"
#include "base/cleanup.h"

static const char prefix_mount[] = "mount error";
static const char prefix_ldcache[] = "ldcache error";

/* Descriptors per edit: a mount, a spot, and entries of the journal; and what the process has open anyway. */
#define DESCRIPTORS_PER_EDIT 4
#define DESCRIPTORS_OTHER    128

static int call_step(const struct graft_namespace_options *options, const char *step, struct graft_error *err)
{
	return options->step ? options->step(options->arg, step, err) : 0;
}

static bool has_edit(const struct graft_plan *plan, enum graft_edit_kind kind)
{
	for (size_t i = 0; i < plan->n_edits; i++)
		if (plan->edits[i].kind == kind)
			return true;
	return false;
}

/* musl's loader has no cache that could be up to date. */
static bool has_glibc_cache(const struct graft_plan *plan)
{
	for (size_t i = 0; i < plan->n_edits; i++)
		if (plan->edits[i].kind == GRAFT_EDIT_LDCACHE && !plan->edits[i].musl_path_file)
			return true;
	return false;
}

/* Hundreds of MIG or IMEX nodes need more descriptors than the usual soft limit. *ret_old is what to go back to. */
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
	return graft_source_open(&apply->mounter, &edit, &apply->late, apply->log, &apply->sources[index], err);
}

/* Links that may have to mount over a file open their source when it comes to that, unless there is no way back then. */
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

/* Whether applying it may come to a mount. */
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

/* Everything that is looked up on the host. */
static int prepare(struct graft_apply *apply, struct graft_error *err)
{
	apply->sources = calloc(apply->plan->n_edits + 1, sizeof(*apply->sources));
	for (size_t i = 0; apply->sources && i < apply->plan->n_edits; i++)
		apply->sources[i] = (struct graft_source)GRAFT_SOURCE_INIT;
	apply->journal = graft_journal_new(apply->log);
	if (!apply->journal || !apply->sources)
		return graft_fail_memory(err);
	/* Without it no mount could be taken back. */
	if (graft_journal_proc_fd(apply->journal) < 0 && mounts(apply->plan))
		return graft_fail(err, GRAFT_NOT_FOUND, ENOENT, "open failed: /proc/self/fd");
	graft_place_init(&apply->place, &apply->target->root, apply->journal);
	if (mounts(apply->plan))
		graft_mounter_probe(&apply->mounter, graft_journal_proc_fd(apply->journal));
	apply->late = apply->target->user_ns_fd >= 0 || !graft_mounter_detaches(&apply->mounter);
	if (graft_join_prepare(&apply->join, apply->target, err) < 0)
		return -1;
	return open_sources(apply, err);
}

static int become_owner(struct graft_apply *apply, struct graft_error *err)
{
	return graft_identity_enter(&apply->identity, apply->owner_uid, apply->owner_gid, err);
}

/* Joins, and finds out what is possible there. */
static int cross_the_line(struct graft_apply *apply, struct graft_error *err)
{
	struct stat st;
	int fd;

	if (graft_join_enter(&apply->join, err) < 0)
		return -1;
	if (apply->join.inside && apply->mounter.refused)
		graft_mounter_probe(&apply->mounter, apply->mounter.proc_fd);
	if (apply->join.inside && apply->late) {
		fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return graft_fail_errno(err, errno, "open failed: /");
		graft_root_take(&apply->namespace_root, fd);
	}
	/* Seen from another user namespace the owner has another number. */
	if (apply->join.one_way && fstat(apply->target->process_fd, &st) == 0) {
		apply->owner_uid = st.st_uid;
		apply->owner_gid = st.st_gid;
	}
	apply->place.want_parents = !graft_mounter_detaches(&apply->mounter) ||
				    !graft_mounter_makes_tmpfs(&apply->mounter);
	return become_owner(apply, err);
}

/* The container's root, with our procfs: files of the image are looked at before they are opened. */
static struct graft_root readable_root(const struct graft_apply *apply)
{
	struct graft_root root = apply->target->root;

	root.proc_fd = graft_journal_proc_fd(apply->journal);
	return root;
}

static int apply_edits(struct graft_apply *apply, const struct graft_namespace_options *options,
		       struct graft_error *err)
{
	struct graft_root root = readable_root(apply);

	/* Mount points change the times of directories, which tell whether the cache is up to date. */
	apply->ldcache_state = GRAFT_LDCACHE_REBUILD;
	if (options->ldcache_state)
		apply->ldcache_state = *options->ldcache_state;
	else if (has_glibc_cache(apply->plan) && !options->rebuild_ldcache)
		apply->ldcache_state = graft_ldcache_state(&root, apply->log);
	if (options->early && apply->ldcache_state == GRAFT_LDCACHE_REBUILD)
		apply->ldcache_state = GRAFT_LDCACHE_REBUILD_EARLY;
	for (size_t i = 0; i < apply->plan->n_edits; i++) {
		if (graft_apply_edit(apply, i, err) == 0)
			continue;
		if (options->ret_edit)
			*options->ret_edit = i;
		return -1;
	}
	return 0;
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
	if (!cgroup || cgroup->version == 0 || !has_edit(apply->plan, GRAFT_EDIT_CGROUP))
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
	struct graft_root root = readable_root(apply);

	for (size_t i = 0; i < apply->plan->n_edits; i++) {
		const struct graft_edit *edit = &apply->plan->edits[i];

		if (edit->kind == GRAFT_EDIT_LDCACHE &&
		    graft_ldcache_refresh(&root, edit, apply->ldcache_state, apply->journal, apply->log, err) < 0)
			return -1;
	}
	return 0;
}

/* A step changes capabilities, of which the owner's identity raises one: it is left before and taken again after. */
static int next_step(struct graft_apply *apply, const struct graft_namespace_options *options, const char *step,
		     struct graft_error *err)
{
	graft_identity_leave(&apply->identity);
	if (call_step(options, step, err) < 0)
		return -1;
	return become_owner(apply, err);
}

/* Everything behind the line. */
static int work_inside(struct graft_apply *apply, const struct graft_namespace_options *options,
		       const char **ret_prefix, struct graft_error *err)
{
	if (cross_the_line(apply, err) < 0 || apply_edits(apply, options, err) < 0 ||
	    apply_cgroup(apply, options->cgroup, err) < 0)
		return -1;
	*ret_prefix = prefix_ldcache;
	if (next_step(apply, options, "ldcache", err) < 0)
		return -1;
	return refresh_ldcache(apply, err);
}

/* With the capabilities of the mount step, whichever step failed; the error that is told is the first one. */
static void undo(struct graft_apply *apply, const struct graft_namespace_options *options)
{
	if (graft_join_enter(&apply->join, NULL) < 0)
		graft_warn(apply->log, "could not enter the container again to undo");
	if (next_step(apply, options, "mount", NULL) < 0)
		graft_warn(apply->log, "undoing with the rights of the step that failed");
	graft_journal_undo(apply->journal);
	graft_identity_leave(&apply->identity);
	if (apply->cgroup)
		graft_cgroup_undo(apply->cgroup, apply->log);
}

static int work(struct graft_apply *apply, const struct graft_namespace_options *options, const char **ret_prefix,
		struct graft_error *err)
{
	mode_t mask;
	int rc;

	*ret_prefix = prefix_mount;
	if (call_step(options, "mount", err) < 0 || prepare(apply, err) < 0)
		return -1;

	/* ---- the line: all that is known of the host is open; from here on the container's tree is touched ---- */

	mask = umask(0);
	rc = work_inside(apply, options, ret_prefix, err);
	graft_identity_leave(&apply->identity);
	if (rc == 0)
		rc = graft_join_leave(&apply->join, err);
	if (rc < 0) {
		undo(apply, options);
		if (graft_join_leave(&apply->join, NULL) < 0)
			graft_warn(apply->log, "could not leave the container's mount namespace");
	}
	(void)umask(mask);
	return rc;
}

static void finish(struct graft_apply *apply)
{
	for (size_t i = 0; apply->sources && i < apply->plan->n_edits; i++)
		graft_source_close(&apply->sources[i]);
	free(apply->sources);
	graft_root_close(&apply->namespace_root);
	graft_join_done(&apply->join);
	apply->journal = graft_journal_free(apply->journal);
}

static int apply_here(const struct graft_plan *plan, const struct graft_target *target,
		      const struct graft_namespace_options *options, const char **ret_prefix, struct graft_error *err)
{
	struct graft_apply apply = {
		.plan = plan,
		.target = target,
		.log = options->log,
		.join = GRAFT_JOIN_INIT,
		.namespace_root = GRAFT_ROOT_INIT,
		.owner_uid = target->uid,
		.owner_gid = target->gid,
	};
	struct rlimit old_limit;
	bool raised = raise_descriptor_limit(plan->n_edits, &old_limit);
	int rc = work(&apply, options, ret_prefix, err);

	finish(&apply);
	if (raised)
		(void)setrlimit(RLIMIT_NOFILE, &old_limit);
	return rc;
}

/* What a rootless child needs; also the meaning of the number that comes back with its result. */
struct job {
	const struct graft_plan *plan;
	const struct graft_target *target;
	const struct graft_namespace_options *options;
};

static int apply_in_child(void *arg, struct graft_rootless_child *child, int *ret_note, struct graft_error *err)
{
	const struct job *job = arg;
	struct graft_namespace_options options = *job->options;
	const char *prefix = prefix_mount;
	int rc;

	options.step = graft_rootless_step;
	options.arg = child;
	rc = apply_here(job->plan, job->target, &options, &prefix, err);
	*ret_note = prefix == prefix_ldcache;
	return rc;
}

int graft_apply_to_namespace(const struct graft_plan *plan, struct graft_target *target,
			     const struct graft_namespace_options *options, const char **ret_prefix,
			     struct graft_error *err)
{
	struct job job = { .plan = plan, .target = target, .options = options };
	const char *prefix = prefix_mount;
	int rc, note = 0;

	if (target->user_ns_fd < 0) {
		rc = apply_here(plan, target, options, &prefix, err);
	} else {
		rc = graft_rootless_run(apply_in_child, &job, options->step, options->arg, &note, err);
		prefix = note ? prefix_ldcache : prefix_mount;
	}
	if (ret_prefix)
		*ret_prefix = prefix;
	return rc;
}
