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
#include "start/pipeline.h"
#include "start/start.h"

#define KIND "runtime.nvidia.com/gpu="

/* ---- the request ---- */

/* The requested names without the kind of this mode. *ret_foreign: how many are of another kind. */
static int read_device_names(const struct graft_start *create, struct graft_strings *ret_names, size_t *ret_foreign,
			     struct graft_error *err)
{
	const struct graft_strings *devices = &create->container->devices;

	*ret_names = (struct graft_strings){ .items = NULL };
	*ret_foreign = 0;
	for (size_t i = 0; i < devices->n; i++) {
		const char *name = devices->items[i];

		if (strncmp(name, KIND, strlen(KIND)) == 0)
			name += strlen(KIND);
		else if (graft_cdi_is_qualified(name))
			(*ret_foreign)++;
		if (!graft_arena_push_string(create->arena, &ret_names->items, &ret_names->n, name))
			return graft_fail_memory(err);
	}
	return 0;
}

/*
 * SPEC runtime-and-hook 7.4: the first special name decides. "none" means the driver without a GPU.
 */
static int request_devices(const struct graft_strings *names, struct graft_request *request, struct graft_error *err)
{
	for (size_t i = 0; i < names->n; i++) {
		if (strcmp(names->items[i], "none") == 0)
			return 0;
		if (strcmp(names->items[i], "all") == 0)
			return graft_request_devices(request, "all", err);
	}
	for (size_t i = 0; i < names->n; i++)
		if (graft_request_devices(request, names->items[i], err) < 0)
			return -1;
	return 0;
}

/*
 * The reference ignores driver capabilities in this mode and gives every container the whole
 * driver. They are honoured here only if config.toml says so.
 */
static int request_capabilities(const struct graft_start *create, struct graft_request *request,
				struct graft_error *err)
{
	const struct graft_config *config = create->config;

	if (config->features.honor_driver_capabilities)
		return graft_container_capabilities(create->container, config->supported_driver_capabilities,
						    &request->capabilities, err);
	request->capabilities = (uint32_t)GRAFT_CAP_ALL & ~(uint32_t)GRAFT_CAP_COMPAT32;
	if (config->features.compat32)
		request->capabilities |= GRAFT_CAP_COMPAT32;
	return 0;
}

static int request_requirements(const struct graft_start *create, struct graft_request *request,
				struct graft_error *err)
{
	struct graft_container container = *create->container;

	if (!create->config->features.honor_requirements || create->config->disable_require ||
	    container.requirements_disabled)
		return 0;
	if (graft_container_legacy_requirement(create->spec, create->arena, &container, err) < 0)
		return -1;
	for (size_t i = 0; i < container.requirements.n; i++)
		if (graft_request_requirement(request, container.requirements.items[i], err) < 0)
			return -1;
	return 0;
}

/* SECURITY: with these nodes a container can change or watch all MIG devices of a GPU. */
static int request_mig(const struct graft_start *create, bool *flag, const char *value, const char *name,
		       struct graft_error *err)
{
	if (!value)
		return 0;
	if (!create->container->privileged) {
		graft_warn(create->log, "ignoring %s: the container is not privileged", name);
		return 0;
	}
	return graft_request_mig(flag, value, err) < 0 ? graft_wrap(err, "%s", name) : 0;
}

static int request_imex(const struct graft_start *create, struct graft_request *request, struct graft_error *err)
{
	const struct graft_strings *channels = &create->container->imex_channels;

	for (size_t i = 0; i < channels->n; i++)
		if (graft_request_imex_word(request, channels->items[i], err) < 0)
			return -1;
	return 0;
}

/*
 * SPEC runtime-and-hook 7.8. Unknown flags are ignored, as in the reference: they may be for newer
 * versions.
 */
static void request_flags(const struct graft_start *create, struct graft_request *request)
{
	const struct graft_strings *flags = &create->config->runtime.jit_feature_flags;

	for (size_t i = 0; i < flags->n; i++) {
		if (strcmp(flags->items[i], "enable-explicit-driver-libraries") == 0)
			request->explicit_driver_libraries = true;
		else if (strcmp(flags->items[i], "disable-ipc-discoverer") == 0)
			request->no_persistenced = request->no_fabricmanager = request->no_mps = true;
		else
			graft_debug(create->log, "feature flag '%s' has no effect here", flags->items[i]);
	}
	request->no_mps = request->no_mps || create->mps;
	for (unsigned int gate = 0; gate < GRAFT_GATE_MAX; gate++)
		if (create->container->gates[gate])
			request->gates |= 1u << gate;
	request->all_usable = true;
}

static int make_request(const struct graft_start *create, const struct graft_strings *names,
			struct graft_request *request, struct graft_error *err)
{
	const struct graft_container *container = create->container;

	request_flags(create, request);
	if (request_devices(names, request, err) < 0 || request_capabilities(create, request, err) < 0 ||
	    request_requirements(create, request, err) < 0 ||
	    request_mig(create, &request->mig_config, container->mig_config, "NVIDIA_MIG_CONFIG_DEVICES", err) < 0 ||
	    request_mig(create, &request->mig_monitor, container->mig_monitor, "NVIDIA_MIG_MONITOR_DEVICES", err) < 0)
		return -1;
	return request_imex(create, request, err);
}

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
	int rc = make_request(create, names, request, err);

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

	if (read_device_names(create, &names, &n_foreign, err) < 0)
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
