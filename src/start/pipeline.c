/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline: the order of the stages. Knows only to which step an error belongs. */
#include "start/pipeline.h"

#include "base/cleanup.h"

/*
 * SPEC libnvidia-container 3.5: what the existing stack detects during initialisation (NVML) is an
 * "initialization error"; what it detects while it searches for files is a "detection error".
 */
static enum graft_step discovery_step(const struct graft_error *err)
{
	switch (err->status) {
	case GRAFT_NO_DRIVER:
	case GRAFT_NO_LIBRARY:
	case GRAFT_MISMATCH:
	case GRAFT_NVML:
	case GRAFT_TIMEOUT:
	case GRAFT_PERMISSION:
	case GRAFT_NO_MEMORY:
	case GRAFT_INTERNAL:
		return GRAFT_STEP_INITIALIZATION;
	case GRAFT_OK:
	case GRAFT_INVALID:
	case GRAFT_UNKNOWN_DEVICE:
	case GRAFT_REQUIREMENT:
	case GRAFT_EXPRESSION:
	case GRAFT_NOT_FOUND:
	case GRAFT_IO:
	case GRAFT_FORMAT:
	case GRAFT_TOO_BIG:
	case GRAFT_UNSAFE:
	case GRAFT_READ_ONLY:
	case GRAFT_UNSUPPORTED:
	case GRAFT_MOUNT:
	case GRAFT_BUSY:
	case GRAFT_LEASES:
	case GRAFT_CGROUP:
	case GRAFT_STALE:
	case GRAFT_PROGRAM:
	case GRAFT_STATUS_MAX:
		break;
	}
	return GRAFT_STEP_DETECTION;
}

static bool wants_mig_devices(const struct graft_request *request)
{
	for (size_t i = 0; i < request->n_devices; i++) {
		enum graft_device_kind kind = request->devices[i].kind;

		if (kind == GRAFT_DEVICE_ALL || kind == GRAFT_DEVICE_MIG_UUID || kind == GRAFT_DEVICE_MIG_INDEX)
			return true;
	}
	return request->mig_config || request->mig_monitor;
}

unsigned int graft_pipeline_needs(const struct graft_request *request, enum graft_style style)
{
	unsigned int caps = request->capabilities;
	bool oci = style == GRAFT_STYLE_OCI;
	const struct {
		bool condition;
		unsigned int needs;
		const char *why;
	} rows[] = {
		{ true, GRAFT_NEED_NODES | GRAFT_NEED_PROC_FILES | GRAFT_NEED_LIBRARIES | GRAFT_NEED_EXTRA_FILES,
		  "every container gets these; classes follow the capabilities" },
		{ request->n_devices > 0 || request->mig_config || request->mig_monitor, GRAFT_NEED_GPUS,
		  "devices are requested" },
		{ wants_mig_devices(request), GRAFT_NEED_MIG, "MIG devices are requested" },
		{ request->mig_config || request->mig_monitor, GRAFT_NEED_MIG_CAPS,
		  "all nodes of a GPU's capabilities" },
		{ (caps & GRAFT_CAP_COMPAT32) != 0, GRAFT_NEED_LIBRARIES32, "32-bit libraries" },
		{ (caps & (GRAFT_CAP_UTILITY | GRAFT_CAP_COMPUTE)) != 0, GRAFT_NEED_BINARIES | GRAFT_NEED_IPCS,
		  "most programs and all sockets are of these two classes" },
		{ (caps & (GRAFT_CAP_GRAPHICS | GRAFT_CAP_DISPLAY)) != 0, GRAFT_NEED_BINARIES, "nvidia-xconfig" },
		{ !request->no_gsp_firmware, GRAFT_NEED_FIRMWARE, "provided without any capability" },
		{ true, GRAFT_NEED_FURTHER, "what the command line does not list; by class, too" },
		{ request->all_imex_channels, GRAFT_NEED_IMEX, "every channel that there is" },
		{ oci, GRAFT_NEED_EVERY_LIBRARY, "the host's directories are reproduced" },
		{ oci && request->explicit_driver_libraries, GRAFT_NEED_EXPLICIT, "an administrator's choice" },
	};
	unsigned int needs = 0;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++)
		needs |= rows[i].condition ? rows[i].needs : 0u;
	return needs;
}

void graft_pipeline_log_start(const struct graft_host_options *host)
{
	uid_t uid = host->nvml_uid;
	gid_t gid = host->nvml_gid;

	if (!host->log)
		return;
	if (uid == (uid_t)-1)
		uid = graft_host_overflow_id(GRAFT_OVERFLOW_UID);
	if (gid == (gid_t)-1)
		gid = graft_host_overflow_id(GRAFT_OVERFLOW_GID);
	graft_info(host->log, "initializing library context (version=%s, build=graft)", GRAFT_COMPATIBLE);
	graft_info(host->log, "using root %s", host->root ? host->root : "/");
	graft_info(host->log, "using ldcache %s", host->ldcache ? host->ldcache : "/etc/ld.so.cache");
	graft_info(host->log, "using unprivileged user %u:%u", uid, gid);
	for (size_t i = 0; i < host->n_imex_channels; i++)
		graft_info(host->log, "using IMEX channel %u", host->imex_channels[i]);
}

static void end_phase(const struct graft_pipeline *pipeline, const char *name)
{
	if (pipeline->phase)
		pipeline->phase(pipeline->arg, name);
}

int graft_pipeline_discover(struct graft_pipeline *pipeline, unsigned int needs, struct graft_error *err)
{
	if (pipeline->replay)
		return 0;
	graft_info(pipeline->host.log, "requesting driver information with ''");
	graft_info(pipeline->host.log, "requesting device information with ''");
	if (graft_host_discover(&pipeline->host, needs, &pipeline->inventory, err) < 0)
		return graft_in_step(err, discovery_step(err));
	end_phase(pipeline, "discover");
	return 0;
}

static const char *const fact_names[] = { "UUIDs",        "models",      "brands",          "architectures",
					  "CUDA version", "MIG devices", "addressing modes" };

static int fail_replay(unsigned int facts, struct graft_error *err)
{
	unsigned int bit = (unsigned int)__builtin_ctz(facts);

	(void)graft_fail(err, GRAFT_NVML, 0, "the inventory lacks the %s, which only NVML on the host reports",
			 bit < GRAFT_COUNT(fact_names) ? fact_names[bit] : "facts");
	return graft_in_step(err, GRAFT_STEP_INITIALIZATION);
}

int graft_pipeline_complete(struct graft_pipeline *pipeline, unsigned int facts, struct graft_error *err)
{
	if (facts == 0)
		return 0;
	if (pipeline->replay)
		return fail_replay(facts, err);
	if ((pipeline->nvml && pipeline->nvml(pipeline->arg, true, err) < 0) ||
	    graft_host_complete(&pipeline->host, pipeline->inventory, facts, err) < 0 ||
	    (pipeline->nvml && pipeline->nvml(pipeline->arg, false, err) < 0))
		return graft_in_step(err, GRAFT_STEP_INITIALIZATION);
	end_phase(pipeline, "nvml");
	return 0;
}

int graft_pipeline_select(struct graft_pipeline *pipeline, struct graft_request *request, struct graft_error *err)
{
	unsigned int missing = graft_select_missing_facts(pipeline->inventory, request);

	if (graft_pipeline_complete(pipeline, missing, err) < 0 ||
	    graft_select(pipeline->inventory, request, request->arena, &pipeline->selection, err) < 0)
		return -1;
	end_phase(pipeline, "select");
	return 0;
}

/* Adds facts until none is missing: each turn adds at least one, and there are three kinds. */
int graft_pipeline_require(struct graft_pipeline *pipeline, struct graft_request *request, struct graft_error *err)
{
	for (int turn = 0; turn < 4; turn++) {
		unsigned int missing = 0;
		int rc = graft_plan_check_requirements(pipeline->inventory, request, &pipeline->selection, &missing,
						       err);

		if (rc <= 0)
			return rc < 0 ? graft_in_step(err, GRAFT_STEP_REQUIREMENT) : 0;
		/* The selection points into the inventory, which has grown. */
		if (graft_pipeline_complete(pipeline, missing, err) < 0 ||
		    graft_pipeline_select(pipeline, request, err) < 0)
			return -1;
	}
	(void)graft_fail(err, GRAFT_NVML, 0, "NVML does not report a fact that a requirement depends on");
	return graft_in_step(err, GRAFT_STEP_REQUIREMENT);
}

struct graft_policy graft_pipeline_default_policy(const struct graft_inventory *inventory)
{
	/*
	 * The kernel driver's entries are in every fresh procfs; the simulated driver has no kernel
	 * part.
	 */
	bool in_procfs = inventory->proc_driver_nvidia && !inventory->simulated;

	return (struct graft_policy){
		.image = { .usr_lib = true, .proc_driver = true, .proc_driver_nvidia = in_procfs },
	};
}

void graft_pipeline_host_options(const struct graft_request *request, struct graft_host_options *options)
{
	options->no_persistenced = request->no_persistenced;
	options->no_fabricmanager = request->no_fabricmanager;
	options->no_gsp_firmware = request->no_gsp_firmware;
	options->gates = request->gates;
	_Static_assert(sizeof(struct graft_imex_channel) == sizeof(uint32_t),
		       "a list of channels is a list of numbers");
	options->n_imex_channels = request->n_imex_channels;
	options->imex_channels = request->n_imex_channels > 0 ? &request->imex_channels->id : NULL;
}

/*
 * Looks up further facts of the selected GPUs only, so that the cost of a start does not grow with
 * the others.
 */
static int look_at_selected(struct graft_pipeline *pipeline, const struct graft_request *request,
			    struct graft_error *err)
{
	const struct graft_selection *selection = &pipeline->selection;
	size_t *places = graft_arena_list(request->arena, selection->n_gpus, sizeof(*places));

	if (pipeline->replay || selection->n_gpus == 0 ||
	    (request->capabilities & (GRAFT_CAP_GRAPHICS | GRAFT_CAP_DISPLAY)) == 0)
		return 0;
	if (!places)
		return graft_fail_memory(err);
	for (size_t i = 0; i < selection->n_gpus; i++)
		places[i] = (size_t)(selection->gpus[i] - pipeline->inventory->gpus);
	return graft_host_look_at_gpus(&pipeline->host, pipeline->inventory, places, selection->n_gpus, err);
}

/* In a replay, unknown facts stay unknown, and the plan states what it left out. */
static int complete_selected(struct graft_pipeline *pipeline, const struct graft_request *request,
			     struct graft_error *err)
{
	unsigned int missing = graft_plan_missing_facts(request, &pipeline->selection);

	return pipeline->replay ? 0 : graft_pipeline_complete(pipeline, missing, err);
}

int graft_pipeline_plan(struct graft_pipeline *pipeline, const struct graft_request *request,
			const struct graft_policy *policy, struct graft_plan **ret_plan, struct graft_error *err)
{
	if (look_at_selected(pipeline, request, err) < 0)
		return graft_in_step(err, GRAFT_STEP_DETECTION);
	if (complete_selected(pipeline, request, err) < 0)
		return -1;
	if (graft_plan_make(pipeline->inventory, request, policy, &pipeline->selection, ret_plan, err) < 0)
		return graft_in_step(err, GRAFT_STEP_MOUNT);
	end_phase(pipeline, "plan");
	return 0;
}

void graft_pipeline_done(struct graft_pipeline *pipeline)
{
	pipeline->inventory = graft_inventory_free(pipeline->inventory);
}
