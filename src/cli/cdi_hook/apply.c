/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply: applies a plan below the container's root with the code that prestart hooks use, and
 * implements the hook `apply`, which receives a whole plan from nvidia-container-runtime
 * (docs/decisions/0010-one-hook.md). Decides nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "apply/namespace/to_namespace.h"
#include "base/cleanup.h"
#include "base/option_rows.h"
#include "base/root.h"
#include "base/sys.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "image/inspect.h"
#include "plan/loader_search.h"

#define MAX_PLAN ((size_t)16 << 20)

struct graft_edit *cdi_hook_edit(struct graft_plan *plan, enum graft_edit_kind kind, const char *target)
{
	struct graft_edit *edit = graft_arena_push(plan->arena, &plan->edits, &plan->n_edits, sizeof(*edit));

	if (!edit)
		return NULL;
	edit->kind = kind;
	edit->target = graft_arena_strdup(plan->arena, target);
	return edit;
}

/*
 * SECURITY: no other program would make these edits, and the container would start without a rule
 * that it was promised.
 */
static int refuse_others(const struct graft_plan *plan, struct graft_error *err)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		enum graft_edit_kind kind = plan->edits[i].kind;

		if (kind == GRAFT_EDIT_CGROUP || kind == GRAFT_EDIT_ENV)
			return graft_fail(err, GRAFT_UNSUPPORTED, 0,
					  "a hook cannot make edits of kind '%s'; they must be in config.json",
					  graft_edit_names[kind]);
	}
	return 0;
}

/* All steps need the same rights; a file in an image may belong to any user. */
static int enter_cdi_hook_step(void *arg, const char *step, struct graft_error *err)
{
	const struct cdi_hook *hook = arg;

	(void)step;
	return graft_caps_enter(&hook->caps, GRAFT_CAPS_MOUNT, err);
}

/*
 * Applies a plan to the container, all of it or nothing. Only edits of the file system are
 * possible; any other edit fails with GRAFT_UNSUPPORTED. *ret_edit (may be NULL) is set to the
 * index of the edit that failed, or to the number of edits if none did. Returns 0, or -1 with the
 * error set.
 */
static int apply_in_container(struct cdi_hook *hook, const struct graft_plan *plan, struct graft_target *target,
			      bool rebuild_ldcache, size_t *ret_edit, struct graft_error *err)
{
	const struct graft_namespace_options options = {
		.log = &hook->log,
		.rebuild_ldcache = rebuild_ldcache,
		.ret_edit = ret_edit,
		.cwd = hook->cwd ? hook->cwd : "",
		.hooks_follow = hook->hooks_follow,
		.step = enter_cdi_hook_step,
		.arg = hook,
	};

	if (ret_edit)
		*ret_edit = plan->n_edits;
	if (graft_arena_failed(plan->arena))
		return graft_fail_memory(err);
	if (refuse_others(plan, err) < 0)
		return -1;
	return graft_apply_to_namespace(plan, target, &options, err);
}

static int fill_and_apply(struct cdi_hook *hook, const struct cdi_hook_job *job, struct graft_plan *plan,
			  struct graft_error *err)
{
	auto_target struct graft_target target = GRAFT_TARGET_INIT;
	const struct graft_edit *failed;
	size_t index = 0;
	int rc = cdi_hook_open(hook, &target, err);

	if (rc == 0)
		rc = job->fill(hook, &target, plan, err);
	if (rc < 0)
		return cdi_hook_fail(hook, err, "%s", job->failure);
	if (rc > 0 || apply_in_container(hook, plan, &target, job->rebuild_ldcache, &index, err) == 0)
		return 0;
	failed = index < plan->n_edits ? &plan->edits[index] : NULL;
	if (failed && failed->kind == GRAFT_EDIT_SYMLINK)
		return cdi_hook_fail(hook, err, "failed to create link [%s %s]", failed->content, failed->target);
	return cdi_hook_fail(hook, err, "%s", job->failure);
}

int cdi_hook_do(struct cdi_hook *hook, const struct cdi_hook_job *job, struct graft_error *err)
{
	struct graft_plan *plan = graft_plan_new();
	int status;

	if (!plan) {
		(void)graft_fail_memory(err);
		return cdi_hook_fail(hook, err, "%s", job->failure);
	}
	status = fill_and_apply(hook, job, plan, err);
	graft_plan_free(plan);
	return status;
}

static int read_plan_file(struct cdi_hook *hook, const char **ret_text, size_t *ret_length, struct graft_error *err)
{
	auto_close int fd = -1;
	int rc;

	if (hook->plan_file[0] != '/')
		return graft_fail(err, GRAFT_INVALID, 0, "the path of the plan must be absolute: %s", hook->plan_file);
	fd = open(hook->plan_file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	rc = fd < 0 ? -errno : graft_read_fd(fd, MAX_PLAN, hook->arena, ret_text, ret_length);
	return rc < 0 ? graft_fail_errno(err, -rc, "file read error: %s", hook->plan_file) : 0;
}

static int read_plan(struct cdi_hook *hook, struct graft_plan **ret_plan, struct graft_error *err)
{
	const char *text = hook->plan;
	size_t length = text ? strlen(text) : 0;

	if (hook->plan_file && read_plan_file(hook, &text, &length, err) < 0)
		return -1;
	if (!text)
		return graft_fail(err, GRAFT_INVALID, 0, "a plan must be given: --plan JSON or --plan-file FILE");
	return graft_plan_read(text, length, ret_plan, err);
}

/*
 * The loader's cache is left to this hook when the root could not be read before it was mounted
 * completely, volumes included. The plan's assumptions about the image are replaced by the facts.
 */
static int look_again(struct cdi_hook *hook, const struct graft_target *target, struct graft_plan *plan,
		      struct graft_error *err)
{
	struct graft_image image = { .debian = false };

	for (size_t i = 0; i < plan->n_edits; i++) {
		struct graft_edit *edit = &plan->edits[i];

		if (edit->kind != GRAFT_EDIT_LDCACHE)
			continue;
		if (graft_image_inspect_loader(&target->root, NULL, &hook->log, hook->arena, &image, err) < 0)
			return -1;
		edit->missing_folders = NULL;
		edit->n_missing_folders = 0;
		edit->musl_path_file = edit->musl_path = NULL;
		graft_loader_search(plan->arena, &image, edit);
	}
	return 0;
}

/*
 * SECURITY: what is mounted after a directory of the host could be made in it. QUIRK: some versions
 * of crun, before August 2026, start these hooks before they mount.
 */
static int check_mounted(const struct cdi_hook *hook, const struct graft_target *target, const struct graft_plan *plan,
			 struct graft_error *err)
{
	auto_close int fd = -1;

	if (!hook->has_proc || !graft_plan_mounts_directory(plan))
		return 0;
	fd = graft_image_root_look(&target->root, "/proc", O_NOFOLLOW);
	if (fd >= 0 && graft_is_on_procfs(fd))
		return 0;
	return graft_fail(err, GRAFT_UNSUPPORTED, 0,
			  "the low-level runtime has not mounted /proc yet, so no directory of the host can be given");
}

static int apply_plan(void *context, struct graft_error *err)
{
	struct cdi_hook *hook = context;
	auto_target struct graft_target target = GRAFT_TARGET_INIT;
	struct graft_plan *plan = NULL;
	int rc = read_plan(hook, &plan, err);

	if (rc == 0)
		rc = cdi_hook_open(hook, &target, err);
	if (rc == 0)
		rc = check_mounted(hook, &target, plan, err);
	if (rc == 0)
		rc = look_again(hook, &target, plan, err);
	if (rc == 0)
		rc = apply_in_container(hook, plan, &target, false, NULL, err);
	graft_plan_free(plan);
	return rc < 0 ? cdi_hook_fail(hook, err, "failed to set up the container's GPUs") : 0;
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct cdi_hook, member)
static const struct graft_option options[] = {
	{ .name = "plan", TEXT, AT(plan), .value_name = "JSON",
	  .help = "The plan, as printed by 'nvidia-container-cli plan --json'" },
	{ .name = "plan-file", TEXT, AT(plan_file), .value_name = "FILE",
	  .help = "File with the plan, if it is too long for an argument" },
	{ .name = "cwd", TEXT, AT(cwd), .value_name = "DIR",
	  .help = "Directory of the container in which its process starts; needed with --rootfs" },
	{ .name = "hooks-follow", FLAG, AT(hooks_follow),
	  .help = "Other hooks change the container after this one; with --rootfs" },
	CDI_HOOK_ROOTFS,
	CDI_HOOK_CONTAINER_SPEC(true),
};
/* clang-format on */

const struct graft_command cdi_hook_apply_plan = {
	CDI_HOOK_COMMAND,
	.name = "apply",
	.summary = "Apply what remains of a plan after config.json was edited (used by nvidia-container-runtime)",
	GRAFT_OPTIONS(options),
	.work = apply_plan,
};

static int do_nothing(void *context, struct graft_error *err)
{
	(void)context;
	(void)err;
	return 0;
}

const struct graft_command cdi_hook_noop = {
	CDI_HOOK_COMMAND, .name = "noop", .summary = "Do nothing", .hidden = true, .work = do_nothing,
};
