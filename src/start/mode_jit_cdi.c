/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mode_jit_cdi: mode jit-cdi (SPEC runtime-and-hook 7): turns a container's request into a plan,
 * and the plan into edits of its configuration. Inventory and planner are those of the other
 * programs; no CDI specification is generated and read back.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/cdi/cdi.h"
#include "host/platform.h"
#include "plan/planner.h"
#include "start/give.h"
#include "start/jit_request.h"
#include "start/pipeline.h"
#include "start/start.h"

/* ---- the log ---- */

/*
 * A log that demotes messages. What the stages report as information is meant for the log of
 * nvidia-container-cli. For a runtime, which engines give a new log file each time, it is only for
 * debugging.
 */
struct detail {
	struct graft_log log;
	const struct graft_log *to;
	bool discovery; /* also demote warnings: discovery has one for each optional driver file that is missing */
};

static enum graft_log_level level_of_detail(const struct detail *detail, enum graft_log_level level, const char *file)
{
	bool nvml = graft_starts_with(file, "nvml") || graft_starts_with(file, "complete");
	bool is_detail = level == GRAFT_LOG_INFO || (level == GRAFT_LOG_WARN && detail->discovery);

	return is_detail && !nvml ? GRAFT_LOG_DEBUG : level;
}

static bool wants_detail(const void *arg, enum graft_log_level level, const char *file)
{
	const struct detail *detail = arg;

	return level_of_detail(detail, level, file) <= detail->to->max;
}

static void write_detail(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	const struct detail *detail = arg;

	detail->to->write(detail->to->arg, level_of_detail(detail, level, file), file, line, message);
}

static void detail_init(struct detail *detail, const struct graft_log *to, bool discovery)
{
	detail->to = to;
	detail->discovery = discovery;
	detail->log = (struct graft_log){ .write = to && to->write ? write_detail : NULL,
					  .wants = wants_detail,
					  .arg = detail,
					  .max = to ? to->max : GRAFT_LOG_ERROR };
}

/* ---- the plan ---- */

/*
 * Starts to read the image, if it is visible. A root that is mounted later is planned as an
 * ordinary glibc image, and the hook looks again.
 */
static int start_inspection(const struct graft_start *create, bool compat, const struct graft_log *log,
			    struct graft_image_root *root, struct graft_reader *ret_reader, struct graft_error *err)
{
	int rc = graft_start_open_image(create, root, err);

	if (rc <= 0)
		return rc;
	return graft_image_start_loader(root, compat ? GRAFT_COMPAT_DIRECTORY : NULL, log, ret_reader, err);
}

/*
 * SECURITY: neither PATH nor any other variable of the caller is used, only the standard
 * directories.
 */
static void set_jit_host_options(const struct graft_start *create, const struct graft_request *request,
				 const struct graft_log *log, struct graft_host_options *options)
{
	*options = graft_start_host_options(create);
	options->capabilities = request->capabilities;
	options->log = log;
	graft_pipeline_host_options(request, options);
}

static int make_jit_plan(const struct graft_start *create, struct graft_pipeline *pipeline,
			 struct graft_request *request, struct graft_policy *policy, struct graft_plan **ret_plan,
			 struct graft_error *err)
{
	auto_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	auto_reader struct graft_reader reader = GRAFT_READER_INIT;

	policy->disabled_hooks = graft_start_disabled_hooks(create);
	/* The image is read while the host is examined. */
	if (start_inspection(create, (request->capabilities & GRAFT_CAP_COMPUTE) != 0, pipeline->host.log, &root,
			     &reader, err) < 0)
		return graft_in_step(err, GRAFT_STEP_CONTAINER);
	if (graft_pipeline_discover(pipeline, graft_pipeline_needs(request, GRAFT_STYLE_OCI), err) < 0 ||
	    graft_pipeline_select(pipeline, request, err) < 0 || graft_pipeline_require(pipeline, request, err) < 0)
		return -1;
	if (reader.fd >= 0 && graft_reader_finish(&reader, create->arena, &policy->image, NULL, NULL, err) < 0)
		return graft_in_step(err, GRAFT_STEP_CONTAINER);
	return graft_pipeline_plan(pipeline, request, policy, ret_plan, err);
}

/* ---- the whole mode ---- */

static int run_jit_mode(struct graft_start *create, const struct graft_strings *names, struct graft_request *request,
			struct graft_error *err)
{
	struct graft_policy policy = { .style = GRAFT_STYLE_OCI };
	struct graft_pipeline pipeline = { .inventory = NULL };
	struct graft_plan *plan = NULL;
	struct detail discovery, detail;
	int rc = graft_jit_request(create, names, request, err);

	detail_init(&discovery, create->log, true);
	detail_init(&detail, create->log, false);
	set_jit_host_options(create, request, &discovery.log, &pipeline.host);
	if (rc < 0)
		(void)graft_in_step(err, GRAFT_STEP_INPUT);
	else
		rc = make_jit_plan(create, &pipeline, request, &policy, &plan, err);
	if (rc < 0)
		(void)graft_wrap(err, "%s", graft_error_step(err));
	if (rc == 0)
		rc = graft_start_give(create, plan, &policy.image, &detail.log, err);
	graft_plan_free(plan);
	graft_pipeline_done(&pipeline);
	return rc;
}

/*
 * SPEC runtime-and-hook 7.3: a Tegra board's lists name what its containers get, also under the
 * names of this mode.
 */
static bool is_board(const struct graft_start *create)
{
	struct graft_platform_facts facts;

	if (create->no_board)
		return false;
	facts = graft_platform_of_host();
	return graft_mode_is_board(&facts);
}

static int run_on_board(struct graft_start *create, const struct graft_strings *names, struct graft_error *err)
{
	struct graft_container container = *create->container;
	struct graft_start board = *create;
	int rc;

	container.devices = *names;
	board.container = &container;
	graft_debug(create->log, "this is a Tegra board: its CSV files list what the container gets");
	rc = graft_mode_csv(&board, err);
	create->waiting = board.waiting;
	return rc;
}

int graft_mode_jit_cdi(struct graft_start *create, struct graft_error *err)
{
	struct graft_strings names;
	struct graft_request *request;
	size_t n_foreign;
	int rc;

	if (graft_jit_names(create, &names, &n_foreign, err) < 0)
		return -1;
	if (n_foreign == names.n && n_foreign > 0)
		return graft_mode_cdi(create, err);
	if (n_foreign > 0)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "requesting a CDI device with vendor 'runtime.nvidia.com' is not supported when "
				  "requesting other CDI devices");
	if (is_board(create))
		return run_on_board(create, &names, err);
	request = graft_request_new();
	if (!request)
		return graft_fail_memory(err);
	rc = run_jit_mode(create, &names, request, err);
	graft_request_free(request);
	return rc;
}
