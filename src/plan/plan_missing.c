/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_missing: what the container asked for and cannot get because the host lacks it. As with the
 * existing stack, the container starts, but programs in it will fail, with messages that do not
 * explain why.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "plan/rules.h"

#define NO_CUDA "CUDA programs cannot start"
#define NO_NVML "nvidia-smi and NVML cannot start"
#define NO_EGL  "EGL programs find no GPU"
#define NO_X11  "OpenGL programs find no GPU"

/* The files without which a capability is useless. Every driver since 418 has all of them. */
static const struct {
	unsigned int capability;
	bool program;
	const char *name; /* of a library: without version */
	const char *consequence;
} essential_files[] = {
	{ GRAFT_CAP_COMPUTE, false, "libcuda.so", NO_CUDA },
	{ GRAFT_CAP_COMPUTE, false, "libnvidia-ptxjitcompiler.so", "CUDA cannot compile PTX" },
	{ GRAFT_CAP_UTILITY, false, "libnvidia-ml.so", NO_NVML },
	{ GRAFT_CAP_UTILITY, true, "nvidia-smi", "there is no nvidia-smi" },
	{ GRAFT_CAP_VIDEO, false, "libnvcuvid.so", "video cannot be decoded" },
	{ GRAFT_CAP_VIDEO, false, "libnvidia-encode.so", "video cannot be encoded" },
	{ GRAFT_CAP_GRAPHICS | GRAFT_CAP_DISPLAY, false, "libEGL_nvidia.so", NO_EGL },
	{ GRAFT_CAP_GRAPHICS | GRAFT_CAP_DISPLAY, false, "libGLX_nvidia.so", NO_X11 },
};

/* The nodes without which a capability is useless, and how the host gets them. */
static const struct {
	unsigned int capability;
	const char *path, *consequence;
} essential_nodes[] = {
	{ GRAFT_CAP_ALL, "/dev/nvidiactl", "nothing works without it; run 'nvidia-modprobe' on the host" },
	{ GRAFT_CAP_COMPUTE, "/dev/nvidia-uvm", NO_CUDA "; run 'nvidia-modprobe -u -c 0' on the host" },
};

static void add_missing(struct graft_planner *planner, const char *what, const char *why)
{
	struct graft_plan *plan = planner->plan;
	struct graft_refusal *missing = graft_arena_push(plan->arena, &plan->missing, &plan->n_missing,
							 sizeof(*missing));

	if (missing)
		*missing = (struct graft_refusal){ .what = what, .why = why };
}

static bool has_library(const struct graft_inventory *inventory, const char *name)
{
	for (size_t i = 0; i < inventory->n_libraries; i++)
		if (graft_starts_with(graft_path_name(inventory->libraries[i].path), name))
			return true;
	return false;
}

static bool has_program(const struct graft_inventory *inventory, const char *name)
{
	for (size_t i = 0; i < inventory->n_binaries; i++)
		if (strcmp(inventory->binaries[i].name, name) == 0)
			return true;
	return false;
}

static bool has_node(const struct graft_inventory *inventory, const char *path)
{
	for (size_t i = 0; i < inventory->n_nodes; i++)
		if (strcmp(inventory->nodes[i].path, path) == 0)
			return true;
	return false;
}

static void add_missing_files(struct graft_planner *planner)
{
	struct graft_arena *arena = planner->plan->arena;

	for (size_t i = 0; i < GRAFT_COUNT(essential_files); i++) {
		const char *name = essential_files[i].name;

		if (!graft_plan_has(planner, essential_files[i].capability) ||
		    (essential_files[i].program ? has_program(planner->inventory, name)
						: has_library(planner->inventory, name)))
			continue;
		add_missing(planner, graft_plan_copy(planner, name),
			    graft_arena_printf(arena, "%s does not have it; %s",
					       planner->inventory->driver_version.value
						   ? graft_arena_printf(arena, "the host's driver %s",
									planner->inventory->driver_version.value)
						   : "the host's driver",
					       essential_files[i].consequence));
	}
}

static void add_missing_nodes(struct graft_planner *planner)
{
	for (size_t i = 0; i < GRAFT_COUNT(essential_nodes); i++)
		if (graft_plan_has(planner, essential_nodes[i].capability) &&
		    !has_node(planner->inventory, essential_nodes[i].path))
			add_missing(planner, graft_plan_copy(planner, essential_nodes[i].path),
				    graft_arena_printf(planner->plan->arena, "the host does not have it; %s",
						       essential_nodes[i].consequence));
}

void(graft_rule_missing)(struct graft_planner *planner)
{
	enum graft_platform platform = planner->inventory->platform;

	/* The part that all containers share requests nothing, and Tegra has its own lists of files. */
	if (planner->policy->shared || platform == GRAFT_PLATFORM_TEGRA)
		return;
	if (!planner->wants_gpu && !planner->request->management)
		add_missing(planner, graft_plan_copy(planner, "GPU"),
			    graft_plan_copy(planner, planner->request->n_devices > 0 ? "the host's driver lists none"
										     : "no device was asked for"));
	if (platform == GRAFT_PLATFORM_NATIVE) {
		add_missing_files(planner);
		add_missing_nodes(planner);
	}
}
