/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit_cdi: mode jit-cdi (SPEC runtime-and-hook 7): what a container asks for becomes a plan, and the plan becomes edits of its configuration. The same inventory and the
 * same planner as everywhere; nothing is generated that is then read again.
 */
#include <string.h>

#include "base/cleanup.h"
#include "cli/pipeline.h"
#include "cli/runtime/give.h"
#include "cli/runtime/runtime.h"
#include "formats/cdi.h"
#include "plan/planner.h"

#define KIND "runtime.nvidia.com/gpu="

/* ---- the wish ---- */

/* The names without the kind that means this mode. *ret_foreign: how many are of another kind. */
static int read_names(const struct runtime_create *create, struct graft_strings *ret_names, size_t *ret_foreign,
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

/* SPEC 7.4: the first special name decides. "none" is the driver without a GPU. */
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

/* What the reference ignores in this mode is honoured where config.toml says so; otherwise every container gets all of the driver. */
static int request_capabilities(const struct runtime_create *create, struct graft_request *request,
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

static int request_requirements(const struct runtime_create *create, struct graft_request *request,
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

/* SECURITY: the nodes behind these change or watch all MIG devices of a GPU. */
static int request_mig(const struct runtime_create *create, bool *flag, const char *value, const char *name,
		       struct graft_error *err)
{
	if (!value)
		return 0;
	if (!create->container->privileged) {
		graft_warn(create->log, "%s is ignored: the container is not privileged", name);
		return 0;
	}
	return graft_request_mig(flag, value, err) < 0 ? graft_wrap(err, "%s", name) : 0;
}

static int request_imex(const struct runtime_create *create, struct graft_request *request, struct graft_error *err)
{
	const struct graft_strings *channels = &create->container->imex_channels;

	for (size_t i = 0; i < channels->n; i++)
		if (graft_request_imex_word(request, channels->items[i], err) < 0)
			return -1;
	return 0;
}

/* SPEC 7.8. What is not known is left for newer versions, as the reference does. */
static void request_flags(const struct runtime_create *create, struct graft_request *request)
{
	const struct graft_strings *flags = &create->config->runtime.jit_feature_flags;

	for (size_t i = 0; i < flags->n; i++) {
		if (strcmp(flags->items[i], "enable-explicit-driver-libraries") == 0)
			request->explicit_driver_libraries = true;
		else if (strcmp(flags->items[i], "disable-ipc-discoverer") == 0)
			request->no_persistenced = request->no_fabricmanager = request->no_mps = true;
		else
			graft_debug(create->log, "feature flag '%s' changes nothing here", flags->items[i]);
	}
	for (unsigned int gate = 0; gate < GRAFT_GATE_MAX; gate++)
		if (create->container->gates[gate])
			request->gates |= 1u << gate;
	request->all_usable = true;
}

static int make_request(const struct runtime_create *create, const struct graft_strings *names,
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

/* What each stage looks at is information for nvidia-container-cli, whose log it was written for; for a runtime, that engines give a log file each time, it is detail. */
struct detail {
	struct graft_log log;
	const struct graft_log *to;
	bool discovery; /* warns of each optional file of the driver that a host does not have */
};

static enum graft_log_level level_of_detail(const struct detail *detail, enum graft_log_level level, const char *file)
{
	bool nvml = strncmp(file, "nvml", strlen("nvml")) == 0 || strncmp(file, "complete", strlen("complete")) == 0;
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

/* The image, as far as it can be seen: a root that is mounted later is an ordinary glibc image for the plan, and the hook looks again. */
static int inspect(const struct runtime_create *create, bool compat, const struct graft_log *log,
		   struct graft_image *ret_image, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	int rc = runtime_open_image(create, &root, err);

	if (rc <= 0)
		return rc;
	return graft_image_inspect_loader(&root, compat, log, create->arena, ret_image, err);
}

/* SECURITY: neither the PATH nor any other variable of whoever called: the standard places. */
static void set_host_options(const struct runtime_create *create, const struct graft_request *request,
			     const struct graft_log *log, struct graft_host_options *options)
{
	const char *root = create->config->cli.root;

	*options = (struct graft_host_options){
		.root = root && root[0] != '\0' ? root : NULL,
		.nvml_uid = (uid_t)-1,
		.nvml_gid = (gid_t)-1,
		.capabilities = request->capabilities,
		.no_mps = request->no_mps,
		.log = log,
	};
	cli_request_host_options(request, options);
}

static int make_plan(const struct runtime_create *create, struct cli_pipeline *pipeline, struct graft_request *request,
		     struct graft_policy *policy, struct graft_plan **ret_plan, struct graft_error *err)
{
	policy->disabled_hooks = runtime_disabled_hooks(create);
	if (cli_pipeline_discover(pipeline, cli_needs(request, GRAFT_STYLE_OCI), err) < 0 ||
	    cli_pipeline_select(pipeline, request, err) < 0 || cli_pipeline_require(pipeline, request, err) < 0)
		return -1;
	pipeline->prefix = "container error";
	if (inspect(create, (request->capabilities & GRAFT_CAP_COMPUTE) != 0, pipeline->host.log, &policy->image, err) <
	    0)
		return -1;
	return cli_pipeline_plan(pipeline, request, policy, ret_plan, err);
}

/* ---- all of it ---- */

static int run(struct runtime_create *create, const struct graft_strings *names, struct graft_request *request,
	       struct graft_error *err)
{
	struct graft_policy policy = { .style = GRAFT_STYLE_OCI };
	struct cli_pipeline pipeline = { .prefix = "input error" };
	struct graft_plan *plan = NULL;
	struct detail discovery, detail;
	int rc = make_request(create, names, request, err);

	detail_init(&discovery, create->log, true);
	detail_init(&detail, create->log, false);
	set_host_options(create, request, &discovery.log, &pipeline.host);
	if (rc == 0)
		rc = make_plan(create, &pipeline, request, &policy, &plan, err);
	if (rc < 0)
		(void)graft_wrap(err, "%s", pipeline.prefix);
	if (rc == 0)
		rc = runtime_give(create, plan, &policy.image, &detail.log, err);
	graft_plan_free(plan);
	cli_pipeline_done(&pipeline);
	return rc;
}

int runtime_jit_cdi(struct runtime_create *create, struct graft_error *err)
{
	struct graft_strings names;
	struct graft_request *request;
	size_t n_foreign;
	int rc;

	if (read_names(create, &names, &n_foreign, err) < 0)
		return -1;
	if (n_foreign == names.n && n_foreign > 0)
		return runtime_cdi(create, err);
	if (n_foreign > 0)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "requesting a CDI device with vendor 'runtime.nvidia.com' is not supported when "
				  "requesting other CDI devices");
	request = graft_request_new();
	if (!request)
		return graft_fail_memory(err);
	rc = run(create, &names, request, err);
	graft_request_free(request);
	return rc;
}
