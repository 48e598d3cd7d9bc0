/* SPDX-License-Identifier: Apache-2.0 */
/* jit_request: what a container's words mean under this config.toml. */
#include "start/jit_request.h"

#include <string.h>

#include "base/cleanup.h"
#include "formats/cdi/cdi.h"

#define KIND "runtime.nvidia.com/gpu="

int graft_jit_names(const struct graft_start *create, struct graft_strings *ret_names, size_t *ret_foreign,
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
	request->no_mps = request->no_mps || create->has_lease_mps;
	for (unsigned int gate = 0; gate < GRAFT_GATE_MAX; gate++)
		if (create->container->gates[gate])
			request->gates |= 1u << gate;
	request->all_usable = true;
}

int graft_jit_request(const struct graft_start *create, const struct graft_strings *names,
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
