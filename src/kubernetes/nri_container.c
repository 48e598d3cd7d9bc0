/* SPDX-License-Identifier: Apache-2.0 */
/* nri_container: what a container requests, whether it may have it, and the edits. */
#include "kubernetes/nri_container.h"

#include <string.h>

#include "apply/oci/to_oci.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/cdi/cdi_simplify.h"
#include "formats/cdi/cdi_transform.h"
#include "plan/planner.h"
#include "plan/select.h"
#include "plan/spec_hooks.h"
#include "request/request.h"
#include "start/give.h"
#include "start/jit_request.h"
#include "start/pipeline.h"

#define NAMES_MAX   64u
#define ANNOTATION  "nvidia.cdi.k8s.io"
#define CONFIG_FILE "/etc/nvidia-container-runtime/config.toml"

static bool is_of_nri_kind(const char *name, const char *kind)
{
	size_t length = strlen(kind);

	return strncmp(name, kind, length) == 0 && name[length] == '=';
}

/* --- annotations --- */

static const char *find_pod_annotation(const struct graft_nri_container *container, const char *key)
{
	for (size_t i = 0; i < container->n_pod_annotations; i++) {
		if (strcmp(container->pod_annotations[i].key, key) == 0)
			return container->pod_annotations[i].value;
	}
	return NULL;
}

/* SPEC installer-and-nri 15: the first of these three counts. */
static const char *find_demand(const struct graft_nri_container *container, struct graft_arena *arena,
			       const char **ret_key)
{
	const char *const keys[] = { graft_arena_printf(arena, ANNOTATION "/container.%s", container->name),
				     ANNOTATION "/pod", ANNOTATION };

	for (size_t i = 0; i < GRAFT_COUNT(keys); i++) {
		const char *value = keys[i] ? find_pod_annotation(container, keys[i]) : NULL;

		*ret_key = keys[i];
		if (value)
			return value;
	}
	return NULL;
}

/*
 * Whether "VENDOR/CLASS:NAMESPACE" is this kind and namespace. Exact: a pattern for kinds would
 * allow kinds that were added later.
 */
static bool is_allowed_by(const char *item, const char *name, const char *namespace_)
{
	const char *colon = strrchr(item, ':');
	size_t length = colon ? (size_t)(colon - item) : 0;

	return colon && strncmp(item, name, length) == 0 && name[length] == '=' &&
	       (strcmp(colon + 1, "*") == 0 || strcmp(colon + 1, namespace_) == 0);
}

static bool may_have(const struct graft_nri_policy *policy, const struct graft_nri_container *container,
		     const char *name)
{
	const struct graft_strings *allowed = &policy->config->nri.allowed;

	for (size_t i = 0; i < allowed->n; i++) {
		if (is_allowed_by(allowed->items[i], name, container->namespace_))
			return true;
	}
	if (!is_of_nri_kind(name, policy->management_kind) || container->namespace_[0] == '\0')
		return false;
	return strcmp(policy->own_namespace, container->namespace_) == 0 ||
	       graft_is_in(policy->management_namespaces, policy->n_management_namespaces, container->namespace_);
}

#define ADMINISTRATOR "Only the administrator of the node can do that."

static int refuse_nri_name(const struct graft_nri_policy *policy, const struct graft_nri_container *container,
			   const char *key, const char *name, struct graft_error *err)
{
	(void)graft_fail(err, GRAFT_PERMISSION, 0,
			 "the annotation %.100s asks for the CDI device '%.100s', which pods in the namespace '%.63s' "
			 "may not use; to allow it, add \"%.*s:%.63s\" to 'allowed' in [nri] of %.100s on this node",
			 key, name, container->namespace_, (int)strcspn(name, "="), name, container->namespace_,
			 policy->config->file ? policy->config->file : CONFIG_FILE);
	return graft_with_hint(err, ADMINISTRATOR);
}

/* Splits at commas; blanks are part of a name and make it invalid. */
static int read_names(const char *key, const char *value, struct graft_arena *arena, struct graft_strings *names,
		      struct graft_error *err)
{
	for (const char *at = value;; at++) {
		size_t length = strcspn(at, ",");
		const char *name = graft_arena_strndup(arena, at, length);
		struct graft_cdi_name parts;

		if (!name)
			return graft_fail_memory(err);
		if (graft_cdi_parse_name(name, arena, &parts, err) < 0) {
			(void)graft_with_hint(err, "Name devices as in 'management.nvidia.com/gpu=all', separated by "
						   "commas, without blanks.");
			return graft_wrap(err, "annotation %.100s", key);
		}
		if (!graft_is_in(names->items, names->n, name) &&
		    !graft_arena_push_string(arena, &names->items, &names->n, name))
			return graft_fail_memory(err);
		/*
		 * SECURITY: any user who creates a pod can write it, and each name is compared with
		 * the others.
		 */
		if (names->n > NAMES_MAX) {
			(void)graft_fail(err, GRAFT_INVALID, 0, "the annotation %.100s names more than %u devices", key,
					 NAMES_MAX);
			return graft_with_hint(err, "Name fewer, or a device that stands for all.");
		}
		at += length;
		if (*at == '\0')
			return 0;
	}
}

static int read_annotation(const struct graft_nri_policy *policy, const struct graft_nri_container *container,
			   const char *key, const char *value, const struct graft_log *log, struct graft_arena *arena,
			   struct graft_nri_demand *demand, struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };
	int rc = read_names(key, value, arena, &demand->names, err);

	if (rc < 0)
		return -1;
	demand->kind = GRAFT_NRI_NAMES;
	demand->origin = key;
	for (size_t i = 0; i < demand->names.n && rc == 0; i++) {
		if (!may_have(policy, container, demand->names.items[i]))
			rc = refuse_nri_name(policy, container, key, demand->names.items[i], &why);
	}
	if (rc < 0 && strcmp(policy->config->nri.refused, "skip") == 0) {
		graft_info(log, "pod %s/%s, container %s: starts without devices: %s", container->namespace_,
			   container->pod, container->name, why.msg);
		*demand = (struct graft_nri_demand){ .kind = GRAFT_NRI_NOTHING };
		return 0;
	}
	if (rc < 0)
		*err = why;
	return rc;
}

/* --- variables and mounts --- */

/*
 * What else counts besides devices: the kubelet gives neither channels nor gates, so the
 * configuration decides about them, for mounts as well as variables.
 */
static int read_beside(const struct graft_config *config, struct graft_arena *arena, struct graft_nri_demand *demand,
		       struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_container strict;

	if (graft_container_read(&demand->spec, config, false, NULL, arena, &strict, &why) < 0)
		strict.imex_channels = (struct graft_strings){ .n = 0 };
	demand->container.imex_channels = strict.imex_channels;
	if (!config->accept_envvar_unprivileged)
		memset(demand->container.gates, 0, sizeof(demand->container.gates));
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

static void view_container(const struct graft_nri_container *container, struct graft_arena *arena,
			   struct graft_oci_spec *ret_spec)
{
	*ret_spec = (struct graft_oci_spec){ .has_process = true,
					     .env = container->env,
					     .n_env = container->n_env,
					     .mounts = container->mounts,
					     .n_mounts = container->n_mounts,
					     .arena = arena };
}

static bool is_node_of_gpu(const char *path)
{
	return strcmp(path, "/dev/dxg") == 0 ||
	       (graft_starts_with(path, "/dev/nvidia") && path[11] >= '0' && path[11] <= '9');
}

static bool has_driver_file(const struct graft_nri_container *container, const char *prefix)
{
	for (size_t i = 0; i < container->n_mounts; i++) {
		const char *slash = strrchr(container->mounts[i].destination, '/');

		if (slash && graft_starts_with(slash + 1, prefix))
			return true;
	}
	return false;
}

/* "k8s.device-plugin.nvidia.com/gpu=GPU-..."; channels and the like are not GPUs. */
static bool is_cdi_name_of_gpu(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash && slash - name >= 10 && strncmp(slash - 10, "nvidia.com", 10) == 0 &&
	       (graft_starts_with(slash, "/gpu=") || graft_starts_with(slash, "/mig"));
}

/*
 * Whether the engine gives the container its GPUs by CDI, as it does for device plugins with the
 * strategies cdi-cri and cdi-annotations: then nothing is added. Device nodes alone are not enough:
 * a device plugin can pass them (pass-device-specs), and leave the driver's files to others.
 */
static bool is_injected(const struct graft_nri_container *container)
{
	bool node = false;

	for (size_t i = 0; i < container->cdi_names.n; i++) {
		if (is_cdi_name_of_gpu(container->cdi_names.items[i]))
			return true;
	}
	for (size_t i = 0; i < container->nodes.n && !node; i++)
		node = is_node_of_gpu(container->nodes.items[i]);
	return node && has_driver_file(container, "libcuda.so.") && has_driver_file(container, "libnvidia-ml.so.");
}

/*
 * An image may contain anything: as long as the kubelet has given the container no GPU, that is no
 * reason to refuse it.
 */
static int keep_error(struct graft_arena *arena, struct graft_nri_demand *demand, struct graft_error *err)
{
	if (err->status != GRAFT_INVALID && err->status != GRAFT_TOO_BIG)
		return -1;
	(void)graft_with_hint(err, "Change the container's variables or mounts, or its image's variables.");
	if (!demand->compare)
		return -1;
	demand->why = graft_arena_alloc(arena, sizeof(*demand->why));
	if (!demand->why)
		return graft_fail_memory(err);
	*demand->why = *err;
	graft_error_clear(err);
	demand->origin = "NVIDIA_VISIBLE_DEVICES";
	demand->kind = GRAFT_NRI_DEVICES;
	return 0;
}

/*
 * SECURITY: NRI does not report whether a container is privileged, so none counts as privileged.
 * Requests are compared with what the kubelet has given, so both sources may be read for that.
 */
static int read_devices(const struct graft_nri_policy *policy, const struct graft_nri_container *container,
			const struct graft_log *log, struct graft_arena *arena, struct graft_nri_demand *demand,
			struct graft_error *err)
{
	struct graft_config config = *policy->config;

	demand->compare = strcmp(config.nri.environment, "accept") != 0;
	if (demand->compare)
		config.accept_envvar_unprivileged = config.accept_volume_mounts = true;
	view_container(container, arena, &demand->spec);
	if (graft_container_read(&demand->spec, &config, false, log, arena, &demand->container, err) < 0)
		return keep_error(arena, demand, err);
	if (demand->compare && read_beside(policy->config, arena, demand, err) < 0)
		return -1;
	demand->origin = demand->container.origin_name;
	if (demand->container.wants_devices)
		demand->kind = GRAFT_NRI_DEVICES;
	return 0;
}

/* The runtime of our RuntimeClass gives the devices itself. */
static bool has_runtime(const struct graft_nri_container *container)
{
	static const char *const handlers[] = { "nvidia", "nvidia-cdi", "nvidia-legacy" };

	return graft_is_in(handlers, GRAFT_COUNT(handlers), container->handler);
}

int graft_nri_read(const struct graft_nri_policy *policy, const struct graft_nri_container *container,
		   const struct graft_log *log, struct graft_arena *arena, struct graft_nri_demand *ret_demand,
		   struct graft_error *err)
{
	const char *key, *value = find_demand(container, arena, &key);

	*ret_demand = (struct graft_nri_demand){ .kind = GRAFT_NRI_NOTHING };
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	if (value)
		return read_annotation(policy, container, key, value, log, arena, ret_demand, err);
	if (has_runtime(container) || is_injected(container) || strcmp(policy->config->nri.environment, "ignore") == 0)
		return 0;
	return read_devices(policy, container, log, arena, ret_demand, err);
}

/* --- what the kubelet has given --- */

static int check_nri_driver(const struct graft_nri_host *host, struct graft_error *err)
{
	const struct graft_inventory *inventory = host->inventory;

	if (inventory->platform == GRAFT_PLATFORM_TEGRA)
		return graft_fail(err, GRAFT_UNSUPPORTED, 0,
				  "the NRI plugin does not support Tegra boards; use the RuntimeClass nvidia");
	if (inventory->n_gpus == 0)
		return graft_fail(err, GRAFT_NO_DRIVER, 0, "no NVIDIA driver is loaded on this node");
	return 0;
}

/* Whether a GPU was selected only because one of its MIG devices was. */
static bool is_parent(const struct graft_selection *selection, const struct graft_gpu *gpu)
{
	for (size_t i = 0; i < selection->n_migs; i++) {
		if (selection->migs[i].gpu == gpu)
			return true;
	}
	return false;
}

/*
 * Adds what one word selects. SECURITY: the GPU of a MIG device is not added: having the device
 * does not mean having the GPU, or its other devices.
 */
static int add_selected(const struct graft_selection *one, struct graft_arena *arena, struct graft_selection *all,
			struct graft_error *err)
{
	for (size_t i = 0; i < one->n_gpus; i++) {
		const struct graft_gpu **gpu;

		if (is_parent(one, one->gpus[i]))
			continue;
		gpu = graft_arena_push(arena, &all->gpus, &all->n_gpus, sizeof(*gpu));
		if (!gpu)
			return graft_fail_memory(err);
		*gpu = one->gpus[i];
	}
	for (size_t i = 0; i < one->n_migs; i++) {
		struct graft_selected_mig *mig = graft_arena_push(arena, &all->migs, &all->n_migs, sizeof(*mig));

		if (!mig)
			return graft_fail_memory(err);
		*mig = one->migs[i];
	}
	return 0;
}

static int select_word(const struct graft_inventory *inventory, const char *word, struct graft_arena *arena,
		       struct graft_selection *all, struct graft_error *err)
{
	struct graft_request *request = graft_request_new();
	struct graft_selection one;
	int rc = request ? 0 : graft_fail_memory(err);

	if (rc == 0) {
		request->all_usable = true;
		rc = graft_request_devices(request, word, err);
	}
	if (rc == 0 && request->n_devices > 0) {
		rc = graft_select(inventory, request, arena, &one, err);
		rc = rc < 0 ? rc : add_selected(&one, arena, all, err);
	}
	(void)graft_request_free(request);
	return rc;
}

/*
 * Selects whole GPUs and MIG devices by a list of words, one by one: together, a MIG device would
 * hide that its GPU was named as well.
 */
static int select_words(const struct graft_inventory *inventory, const struct graft_strings *words,
			struct graft_arena *arena, struct graft_selection *ret_selection, struct graft_error *err)
{
	*ret_selection = (struct graft_selection){ .n_gpus = 0 };
	for (size_t i = 0; i < words->n; i++) {
		if (strcmp(words->items[i], "none") != 0 &&
		    select_word(inventory, words->items[i], arena, ret_selection, err) < 0)
			return -1;
	}
	return 0;
}

/* Ignores ids of other vendors' devices. */
static bool is_id_of_gpu(const char *id)
{
	return graft_starts_with(id, "GPU-") || graft_starts_with(id, "MIG-");
}

bool graft_nri_is_given(const struct graft_strings *ids)
{
	for (size_t i = 0; i < ids->n; i++) {
		if (is_id_of_gpu(ids->items[i]))
			return true;
	}
	return false;
}

/* "GPU-...::2" is a share of GPU-... */
static int list_given(const struct graft_strings *ids, struct graft_arena *arena, struct graft_strings *given,
		      struct graft_error *err)
{
	for (size_t i = 0; i < ids->n; i++) {
		const char *share = strstr(ids->items[i], "::");
		const char *id = graft_arena_strndup(arena, ids->items[i],
						     share ? (size_t)(share - ids->items[i]) : strlen(ids->items[i]));

		if (!id)
			return graft_fail_memory(err);
		if (is_id_of_gpu(id) && !graft_arena_push_string(arena, &given->items, &given->n, id))
			return graft_fail_memory(err);
	}
	return 0;
}

static bool is_gpu_given(const struct graft_selection *given, const struct graft_gpu *gpu)
{
	for (size_t i = 0; i < given->n_gpus; i++) {
		if (given->gpus[i] == gpu)
			return true;
	}
	return false;
}

/* A MIG device is given by itself, or with its whole GPU. */
static bool is_mig_given(const struct graft_selection *given, const struct graft_selected_mig *mig)
{
	for (size_t i = 0; i < given->n_migs; i++) {
		if (given->migs[i].mig == mig->mig)
			return true;
	}
	return is_gpu_given(given, mig->gpu);
}

/* The first device that is requested and was not given; NULL: there is none. */
static const char *find_excess(const struct graft_selection *wanted, const struct graft_selection *given)
{
	for (size_t i = 0; i < wanted->n_gpus; i++) {
		if (!is_gpu_given(given, wanted->gpus[i]))
			return wanted->gpus[i]->uuid.value ? wanted->gpus[i]->uuid.value : wanted->gpus[i]->bus_id;
	}
	for (size_t i = 0; i < wanted->n_migs; i++) {
		if (!is_mig_given(given, &wanted->migs[i]))
			return wanted->migs[i].mig->uuid.value ? wanted->migs[i].mig->uuid.value : "a MIG device";
	}
	return NULL;
}

static int compare_with(const struct graft_nri_host *host, const struct graft_strings *given_ids,
			const struct graft_strings *names, const char *origin, struct graft_arena *arena,
			struct graft_error *err)
{
	struct graft_selection wanted, given;
	const char *excess;

	if (select_words(host->inventory, names, arena, &wanted, err) < 0 ||
	    select_words(host->inventory, given_ids, arena, &given, err) < 0)
		return -1;
	excess = find_excess(&wanted, &given);
	if (!excess)
		return 0;
	(void)graft_fail(err, GRAFT_PERMISSION, 0,
			 "%.100s asks for %.100s, which the kubelet has not allocated to this container", origin,
			 excess);
	return graft_with_hint(
	    err, "Ask for GPUs in the container's limits, and do not set NVIDIA_VISIBLE_DEVICES yourself.");
}

/*
 * CUDA's images request "all", which means everything that the kubelet has given: it neither gives
 * more nor is it a reason to refuse the container.
 */
static void reduce_all(const struct graft_strings *given, struct graft_strings *names)
{
	if (graft_is_in(names->items, names->n, "all"))
		*names = *given;
}

/* --- edits --- */

void graft_nri_answer_done(struct graft_nri_answer *answer)
{
	answer->plan = graft_plan_free(answer->plan);
}

static int move_driver_root(const struct graft_nri_policy *policy, struct graft_arena *arena,
			    struct graft_cdi_edits *edits, struct graft_error *err)
{
	const struct graft_cdi_root_change change = { .from = policy->driver_root_seen, .to = policy->driver_root };
	struct graft_cdi_spec spec = { .version = "0.8.0", .vendor = "", .class_ = "", .edits = *edits };

	if (!policy->driver_root_seen || strcmp(policy->driver_root_seen, policy->driver_root) == 0)
		return 0;
	if (graft_cdi_spec_change_root(&spec, &change, arena, &spec, err) < 0)
		return -1;
	*edits = spec.edits;
	return 0;
}

/* Plans from the inventory alone: what it lacks is not looked up. */
static int plan_edits(const struct graft_nri_policy *policy, const struct graft_nri_host *host,
		      struct graft_request *request, uint32_t disabled_hooks, struct graft_arena *arena,
		      struct graft_nri_answer *answer, struct graft_error *err)
{
	const struct graft_policy plan_policy = { .style = GRAFT_STYLE_OCI, .disabled_hooks = disabled_hooks };
	struct graft_pipeline pipeline = { .replay = true };
	const struct graft_oci_options options = {
		.hook_path = policy->hook_path,
		.no_additional_gids = policy->config->features.no_additional_gids_for_device_nodes,
		.mount_directories = true,
	};
	int rc;

	/* The pipeline would change an inventory that it asks NVML for; a replay does not. */
	memcpy(&pipeline.inventory, &host->inventory, sizeof(pipeline.inventory));
	rc = graft_pipeline_select(&pipeline, request, err);
	if (rc == 0)
		rc = graft_pipeline_require(&pipeline, request, err);
	if (rc == 0)
		rc = graft_pipeline_plan(&pipeline, request, &plan_policy, &answer->plan, err);
	if (rc < 0)
		return graft_wrap(err, "%s", graft_error_step(err));
	if (graft_plan_to_adjustment(answer->plan, &options, arena, &answer->edits, err) < 0)
		return -1;
	return move_driver_root(policy, arena, &answer->edits, err);
}

static int plan_devices(const struct graft_nri_policy *policy, const struct graft_nri_host *host,
			const struct graft_start *start, const struct graft_strings *names,
			struct graft_nri_answer *answer, struct graft_error *err)
{
	struct graft_request *request = graft_request_new();
	int rc = request ? graft_jit_request(start, names, request, err) : graft_fail_memory(err);

	if (rc == 0)
		rc = plan_edits(policy, host, request, graft_start_disabled_hooks(start), start->arena, answer, err);
	(void)graft_request_free(request);
	return rc;
}

/*
 * SECURITY: the names from which the plan is made are compared with the kubelet's list each time,
 * on the same inventory: a name can mean another device after the host was read again.
 */
static int decide_devices(const struct graft_nri_policy *policy, const struct graft_nri_host *host,
			  const struct graft_strings *ids, struct graft_nri_demand *demand, const struct graft_log *log,
			  struct graft_arena *arena, struct graft_nri_answer *answer, struct graft_error *err)
{
	const struct graft_start start = { .config = policy->config,
					   .spec = &demand->spec,
					   .container = &demand->container,
					   .log = log,
					   .arena = arena };
	struct graft_strings names, given = { .n = 0 };
	size_t n_foreign;

	if (demand->compare && !graft_nri_is_given(ids)) {
		graft_debug(log, "%s is ignored: the kubelet has allocated no GPU to the container", demand->origin);
		demand->kind = GRAFT_NRI_NOTHING;
		return 0;
	}
	if (demand->why) {
		*err = *demand->why;
		return -1;
	}
	if (demand->compare && list_given(ids, arena, &given, err) < 0)
		return -1;
	if (check_nri_driver(host, err) < 0 || graft_jit_names(&start, &names, &n_foreign, err) < 0)
		return -1;
	if (n_foreign > 0)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "%.100s names a CDI device; name it in the annotation " ANNOTATION "/pod instead",
				  demand->origin);
	if (demand->compare)
		reduce_all(&given, &names);
	if (demand->compare && compare_with(host, &given, &names, demand->origin, arena, err) < 0)
		return -1;
	return plan_devices(policy, host, &start, &names, answer, err);
}

/* All nodes of the driver (SPEC ctk-and-cdi 4.8). */
static int decide_management(const struct graft_nri_policy *policy, const struct graft_nri_host *host,
			     const struct graft_log *log, struct graft_arena *arena, struct graft_nri_answer *answer,
			     struct graft_error *err)
{
	const struct graft_start start = { .config = policy->config, .log = log, .arena = arena };
	struct graft_request *request = graft_request_new();
	int rc;

	if (!request)
		return graft_fail_memory(err);
	request->management = true;
	request->capabilities = (uint32_t)GRAFT_CAP_ALL & ~(uint32_t)GRAFT_CAP_COMPAT32;
	rc = plan_edits(policy, host, request, graft_start_disabled_hooks(&start), arena, answer, err);
	(void)graft_request_free(request);
	return rc;
}

/* Specifications of the node, as an engine that reads them itself would apply them. */
static int decide_specified(const struct graft_nri_policy *policy, const struct graft_nri_host *host,
			    const struct graft_strings *names, const struct graft_log *log, struct graft_arena *arena,
			    struct graft_cdi_edits *edits, struct graft_error *err)
{
	struct graft_cdi_registry registry = { .n_specs = 0 };
	struct graft_cdi_choice *choices;
	size_t n;

	if (host->registry)
		registry = *host->registry;
	if (graft_cdi_registry_resolve(&registry, names->items, names->n, arena, &choices, &n, err) < 0 ||
	    graft_cdi_choices_realize_nodes(choices, n, log, arena, edits, err) < 0)
		return -1;
	return graft_spec_hooks_mend(policy->hook_path, arena, edits, err);
}

/* Appends one set of edits to another; the items are shared. */
static int join_edits(struct graft_cdi_edits *to, const struct graft_cdi_edits *from, struct graft_arena *arena,
		      struct graft_error *err)
{
	const struct graft_cdi_spec both[] = { { .edits = *to }, { .edits = *from } };
	const struct graft_cdi_choice choices[] = { { .spec = &both[0] }, { .spec = &both[1] } };

	return graft_cdi_choices_merge(choices, GRAFT_COUNT(choices), arena, to, err);
}

static int decide_names(const struct graft_nri_policy *policy, const struct graft_nri_host *host,
			const struct graft_nri_demand *demand, const struct graft_log *log, struct graft_arena *arena,
			struct graft_nri_answer *answer, struct graft_error *err)
{
	struct graft_strings specified = { .n = 0 };
	struct graft_cdi_edits edits = { .n_env = 0 };
	bool management = false;

	for (size_t i = 0; i < demand->names.n; i++) {
		const char *name = demand->names.items[i];
		bool is_management = is_of_nri_kind(name, policy->management_kind);

		if (is_management && strcmp(strchr(name, '=') + 1, "all") != 0)
			return graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0,
					  "unresolvable CDI devices %.100s; the only device of that kind is 'all'",
					  name);
		management |= is_management;
		if (!is_management && !graft_arena_push_string(arena, &specified.items, &specified.n, name))
			return graft_fail_memory(err);
	}
	if (management &&
	    (check_nri_driver(host, err) < 0 || decide_management(policy, host, log, arena, answer, err) < 0))
		return -1;
	if (specified.n == 0)
		return 0;
	if (decide_specified(policy, host, &specified, log, arena, &edits, err) < 0)
		return -1;
	return join_edits(&answer->edits, &edits, arena, err);
}

int graft_nri_decide(const struct graft_nri_policy *policy, const struct graft_nri_host *host,
		     const struct graft_strings *ids, struct graft_nri_demand *demand, const struct graft_log *log,
		     struct graft_arena *arena, struct graft_nri_answer *ret_answer, struct graft_error *err)
{
	*ret_answer = (struct graft_nri_answer){ .plan = NULL };
	switch (demand->kind) {
	case GRAFT_NRI_NOTHING:
		break;
	case GRAFT_NRI_NAMES:
		return decide_names(policy, host, demand, log, arena, ret_answer, err);
	case GRAFT_NRI_DEVICES:
		return decide_devices(policy, host, ids, demand, log, arena, ret_answer, err);
	}
	return 0;
}

int graft_nri_kinds(const struct graft_nri_policy *policy, struct graft_arena *arena, struct graft_strings *ret_kinds,
		    struct graft_error *err)
{
	const struct graft_strings *allowed = &policy->config->nri.allowed;

	*ret_kinds = (struct graft_strings){ .n = 0 };
	for (size_t i = 0; i < allowed->n; i++) {
		const char *colon = strrchr(allowed->items[i], ':');
		const char *kind = colon ? graft_arena_strndup(arena, allowed->items[i],
							       (size_t)(colon - allowed->items[i]))
					 : NULL;

		if (!colon || (kind && strcmp(kind, policy->management_kind) == 0))
			continue;
		if (!kind || !graft_arena_push_string(arena, &ret_kinds->items, &ret_kinds->n, kind))
			return graft_fail_memory(err);
	}
	return 0;
}
