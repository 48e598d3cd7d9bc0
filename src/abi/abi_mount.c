/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi_mount: gives a container one part at a time. Each call plans what the container has and what
 * it will have, and applies the edits that only the second plan contains.
 */
#include <stdio.h>
#include <string.h>

#include "abi/abi.h"
#include "apply/cgroup/cgroup.h"
#include "apply/namespace/to_namespace.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "plan/plan.h"
#include "start/open_container.h"

/* What one call adds. */
struct step {
	struct nvc_context *ctx;
	const struct nvc_container *cnt;
	const void *subject;
	/* Extends the request; NULL = leaves it as it is. */
	int (*grow)(const struct step *step, struct graft_request *request, struct graft_error *err);
	/* Whether to apply an edit of the difference; NULL = apply all but the loader's cache. */
	bool (*means)(const struct step *step, const struct graft_edit *edit);
	bool from_nothing; /* compare with an empty container: apply the whole plan */
	bool is_driver;    /* the step that has to come first */
	bool is_forgotten; /* the request stays as it was: earlier calls have decided what it may do */
};

/* ---- plans ---- */

/*
 * A request may not name single MIG devices together with the right to configure or watch all of
 * them, while calls for both may come in any order. That right includes the devices, of which their
 * GPUs remain in the view.
 */
static int view_request(const struct step *step, struct graft_request *ret_view, struct graft_error *err)
{
	const struct graft_request *request = step->cnt->request;

	*ret_view = *request;
	if (request->n_devices == 0 || (!request->mig_config && !request->mig_monitor))
		return 0;
	ret_view->devices = graft_arena_memdup(step->cnt->arena, request->devices,
					       request->n_devices * sizeof(*request->devices));
	if (!ret_view->devices)
		return graft_fail_memory(err);
	for (size_t i = 0; i < request->n_devices; i++)
		if (ret_view->devices[i].kind == GRAFT_DEVICE_MIG_INDEX)
			ret_view->devices[i].kind = GRAFT_DEVICE_INDEX;
	return 0;
}

static int make_step_plan(const struct step *step, struct graft_plan **ret_plan, struct graft_error *err)
{
	struct graft_pipeline pipeline = { .host = step->ctx->host, .inventory = step->ctx->inventory };
	struct graft_request request;

	/* The context owns the inventory, so graft_pipeline_done() is not called. */
	if (view_request(step, &request, err) < 0 || graft_pipeline_select(&pipeline, &request, err) < 0)
		return -1;
	return graft_pipeline_plan(&pipeline, &request, &step->cnt->policy, ret_plan, err);
}

static bool is_meant(const struct step *step, const struct graft_edit *edit)
{
	return step->means ? step->means(step, edit) : edit->kind != GRAFT_EDIT_LDCACHE;
}

/* Keeps the edits that this step applies, in order. */
static void choose_step_edits(const struct step *step, struct graft_plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_edits; i++)
		if (is_meant(step, &plan->edits[i]))
			plan->edits[n++] = plan->edits[i];
	plan->n_edits = n;
}

/* ---- the request, which is restored after a failure ---- */

struct mark {
	size_t n_devices, n_imex_channels;
	bool mig_config, mig_monitor;
};

static struct mark mark_of(const struct graft_request *request)
{
	return (struct mark){ request->n_devices, request->n_imex_channels, request->mig_config, request->mig_monitor };
}

static void go_back(struct graft_request *request, const struct mark *mark)
{
	request->n_devices = mark->n_devices;
	request->n_imex_channels = mark->n_imex_channels;
	request->mig_config = mark->mig_config;
	request->mig_monitor = mark->mig_monitor;
}

/* ---- the container ---- */

struct job {
	const struct step *step;
	const struct graft_plan *plan, *done;
};

static int apply_step(void *arg, struct graft_error *err)
{
	const struct job *job = arg;
	const struct step *step = job->step;
	auto_cgroup struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
	const struct graft_namespace_options options = {
		.log = step->ctx->log, .cgroup = &cgroup, .ldcache_state = step->cnt->ldcache_state, .done = job->done
	};
	struct graft_target target = step->cnt->target; /* a copy: its descriptors belong to the container */

	if (graft_open_container_cgroup(step->cnt->request, &target, false, step->ctx->log, &cgroup, err) < 0)
		return -1;
	return graft_apply_to_namespace(job->plan, &target, &options, err);
}

static int apply_difference(const struct step *step, const struct graft_plan *before, const struct graft_plan *after,
			    struct graft_error *err)
{
	struct graft_plan *plan = NULL;
	struct job job = { .step = step, .done = before };
	int rc = 0;

	if (graft_plan_difference(before, after, &plan, err) < 0)
		return -1;
	choose_step_edits(step, plan);
	job.plan = plan;
	/* ---- privileged work starts here: input is parsed, all decisions are in the plan ---- */
	if (plan->n_edits > 0)
		rc = abi_run_apart(apply_step, &job, err);
	graft_plan_free(plan);
	return rc;
}

static int run_step(const struct step *step, struct graft_error *err)
{
	struct graft_request *request = step->cnt->request;
	struct graft_plan *before = NULL, *after = NULL;
	struct mark mark = mark_of(request);
	int rc = step->from_nothing ? 0 : make_step_plan(step, &before, err);

	if (rc == 0 && step->grow)
		rc = step->grow(step, request, err);
	if (rc == 0)
		rc = make_step_plan(step, &after, err);
	if (rc == 0)
		rc = apply_difference(step, before, after, err);
	if (rc < 0 || step->is_forgotten)
		go_back(request, &mark);
	graft_plan_free(before);
	graft_plan_free(after);
	return rc;
}

/*
 * The driver must be mounted first: GPUs go into what that step makes, a view of procfs and a
 * directory of profiles.
 */
static int check_order(const struct step *step, struct graft_error *err)
{
	if (!step->is_driver && !*step->cnt->has_driver)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "the driver has not been mounted yet: call nvc_driver_mount() first");
	return 0;
}

/* Every mount function. `subject` is what it gives, or the container itself. */
static int give(struct nvc_context *ctx, const struct nvc_container *cnt, const void *subject, struct step step)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (abi_check(ctx) < 0)
		return -1;
	if (!cnt || !subject)
		return abi_invalid(ctx);
	step.ctx = ctx;
	step.cnt = cnt;
	step.subject = subject;
	if (!abi_inventory(ctx, &err) || check_order(&step, &err) < 0 || run_step(&step, &err) < 0)
		return abi_fail(ctx, &err);
	*cnt->has_driver = true;
	return 0;
}

/* ---- the driver ---- */

static bool has_node_of_driver(const struct nvc_driver_info *info, const char *path)
{
	for (size_t i = 0; i < info->ndevs; i++)
		if (strcmp(info->devs[i].path, path) == 0)
			return true;
	return false;
}

/*
 * Whether the edit's source is this path of the host, with or without the driver root as prefix
 * (sockets and nodes have none).
 */
static bool is_source(const struct graft_edit *edit, const char *path)
{
	return edit->source && graft_ends_with(edit->source, path);
}

/* Whether the edit is for something in the inventory that the caller removed from the list. */
static bool was_taken_out(const struct step *step, const struct graft_edit *edit)
{
	const struct nvc_driver_info *info = step->subject;
	const struct graft_inventory *inventory = step->ctx->inventory;

	for (size_t i = 0; i < inventory->n_libraries; i++)
		if (is_source(edit, inventory->libraries[i].path))
			return !graft_is_in((const char *const *)info->libs, info->nlibs, inventory->libraries[i].path);
	for (size_t i = 0; i < inventory->n_extra_files; i++)
		if (inventory->extra_files[i].class_ == GRAFT_CLASS_WSL &&
		    is_source(edit, inventory->extra_files[i].path))
			return !graft_is_in((const char *const *)info->libs, info->nlibs,
					    inventory->extra_files[i].path);
	for (size_t i = 0; i < inventory->n_libraries32; i++)
		if (is_source(edit, inventory->libraries32[i].path))
			return !graft_is_in((const char *const *)info->libs32, info->nlibs32,
					    inventory->libraries32[i].path);
	for (size_t i = 0; i < inventory->n_binaries; i++)
		if (is_source(edit, inventory->binaries[i].path))
			return !graft_is_in((const char *const *)info->bins, info->nbins, inventory->binaries[i].path);
	for (size_t i = 0; i < inventory->n_ipcs; i++)
		if (is_source(edit, inventory->ipcs[i].path))
			return !graft_is_in((const char *const *)info->ipcs, info->nipcs, inventory->ipcs[i].path);
	for (size_t i = 0; i < inventory->n_firmwares; i++)
		if (is_source(edit, inventory->firmwares[i]))
			return !graft_is_in((const char *const *)info->firmwares, info->nfirmwares,
					    inventory->firmwares[i]);
	for (size_t i = 0; i < inventory->n_nodes; i++)
		if (is_source(edit, inventory->nodes[i].path) ||
		    (edit->kind == GRAFT_EDIT_CGROUP && edit->major == inventory->nodes[i].major &&
		     edit->minor == inventory->nodes[i].minor))
			return !has_node_of_driver(info, inventory->nodes[i].path);
	return false;
}

static bool means_driver(const struct step *step, const struct graft_edit *edit)
{
	return edit->kind != GRAFT_EDIT_LDCACHE && !was_taken_out(step, edit);
}

ABI_PUBLIC int nvc_driver_mount(struct nvc_context *ctx, const struct nvc_container *cnt,
				const struct nvc_driver_info *info)
{
	return give(ctx, cnt, info, (struct step){ .means = means_driver, .from_nothing = true, .is_driver = true });
}

/* ---- GPUs and their parts ---- */

static const struct graft_gpu *find_gpu_of_device(const struct graft_inventory *inventory, const char *bus_id)
{
	for (size_t i = 0; bus_id && i < inventory->n_gpus; i++)
		if (!inventory->gpus[i].excluded && strcmp(inventory->gpus[i].bus_id, bus_id) == 0)
			return &inventory->gpus[i];
	return NULL;
}

static int fail_unknown_gpu(const char *what, struct graft_error *err)
{
	return graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "%s: unknown device", what ? what : "(null)");
}

static int grow_device(const struct step *step, struct graft_request *request, struct graft_error *err)
{
	const struct nvc_device *dev = step->subject;

	if (!find_gpu_of_device(step->ctx->inventory, dev->busid))
		return fail_unknown_gpu(dev->busid, err);
	return graft_request_devices(request, dev->busid, err);
}

ABI_PUBLIC int nvc_device_mount(struct nvc_context *ctx, const struct nvc_container *cnt, const struct nvc_device *dev)
{
	return give(ctx, cnt, dev, (struct step){ .grow = grow_device });
}

static int grow_mig(const struct step *step, struct graft_request *request, struct graft_error *err)
{
	const struct nvc_mig_device *dev = step->subject;
	const struct graft_gpu *gpu = dev->parent ? find_gpu_of_device(step->ctx->inventory, dev->parent->busid) : NULL;
	char word[32];

	for (size_t i = 0; gpu && i < gpu->n_mig_devices; i++) {
		if (gpu->mig_devices[i].gi != dev->gi || gpu->mig_devices[i].ci != dev->ci)
			continue;
		(void)snprintf(word, sizeof(word), "%u:%u", gpu->index, gpu->mig_devices[i].index);
		return graft_request_devices(request, word, err);
	}
	return fail_unknown_gpu(dev->uuid, err);
}

ABI_PUBLIC int nvc_mig_device_access_caps_mount(struct nvc_context *ctx, const struct nvc_container *cnt,
						const struct nvc_mig_device *dev)
{
	return give(ctx, cnt, dev, (struct step){ .grow = grow_mig });
}

static int grow_config(const struct step *step, struct graft_request *request, struct graft_error *err)
{
	(void)step;
	(void)err;
	request->mig_config = true;
	return 0;
}

static int grow_monitor(const struct step *step, struct graft_request *request, struct graft_error *err)
{
	(void)step;
	(void)err;
	request->mig_monitor = true;
	return 0;
}

ABI_PUBLIC int nvc_mig_config_global_caps_mount(struct nvc_context *ctx, const struct nvc_container *cnt)
{
	return give(ctx, cnt, cnt, (struct step){ .grow = grow_config });
}

ABI_PUBLIC int nvc_mig_monitor_global_caps_mount(struct nvc_context *ctx, const struct nvc_container *cnt)
{
	return give(ctx, cnt, cnt, (struct step){ .grow = grow_monitor });
}

/* Selects the device rules of a GPU's capability nodes. */
static bool means_capabilities(const struct step *step, const struct graft_edit *edit)
{
	const struct nvc_device *dev = step->subject;
	const struct graft_gpu *gpu = find_gpu_of_device(step->ctx->inventory, dev->busid);

	if (edit->kind != GRAFT_EDIT_CGROUP || !gpu)
		return false;
	for (size_t i = 0; i < gpu->n_caps_nodes; i++)
		if (gpu->caps_nodes[i].major == edit->major && gpu->caps_nodes[i].minor == edit->minor)
			return true;
	return false;
}

static int grow_capabilities(const struct step *step, struct graft_request *request, struct graft_error *err)
{
	if (grow_device(step, request, err) < 0)
		return -1;
	request->mig_monitor = true;
	return 0;
}

/* Adds device rules only. */
ABI_PUBLIC int nvc_device_mig_caps_mount(struct nvc_context *ctx, const struct nvc_container *cnt,
					 const struct nvc_device *dev)
{
	return give(
	    ctx, cnt, dev,
	    (struct step){
		.grow = grow_capabilities, .means = means_capabilities, .from_nothing = true, .is_forgotten = true });
}

/* ---- channels, loader ---- */

static int grow_channel(const struct step *step, struct graft_request *request, struct graft_error *err)
{
	const struct nvc_imex_channel *chan = step->subject;
	char word[16];

	(void)snprintf(word, sizeof(word), "%d", chan->id);
	return graft_request_imex(request, word, err);
}

ABI_PUBLIC int nvc_imex_channel_mount(struct nvc_context *ctx, const struct nvc_container *cnt,
				      const struct nvc_imex_channel *chan)
{
	return give(ctx, cnt, chan, (struct step){ .grow = grow_channel });
}

static bool means_loader(const struct step *step, const struct graft_edit *edit)
{
	(void)step;
	return edit->kind == GRAFT_EDIT_LDCACHE;
}

ABI_PUBLIC int nvc_ldcache_update(struct nvc_context *ctx, const struct nvc_container *cnt)
{
	return give(ctx, cnt, cnt, (struct step){ .means = means_loader, .from_nothing = true });
}
