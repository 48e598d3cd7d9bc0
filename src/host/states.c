/* SPDX-License-Identifier: Apache-2.0 */
/*
 * states: the ways in which the driver as a whole can be broken, distinguished without NVML. The
 * messages are those of NVML and the existing stack, because people search for them (SPEC
 * libnvidia-container 2.3). The checks are in the order in which NVML would fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "host/nvml.h"
#include "host/survey.h"

static int check_library(struct graft_survey *survey, struct graft_error *err)
{
	if (survey->inventory->nvml_library)
		return 0;
	(void)graft_nvml_fail_missing(GRAFT_NVML_SONAME, err);
	if (!survey->module_loaded && survey->inventory->platform != GRAFT_PLATFORM_WSL2)
		(void)graft_wrap(err, "no kernel driver is loaded");
	return -1;
}

static int check_module(struct graft_survey *survey, struct graft_error *err)
{
	/* Only NVML can distinguish a hidden procfs from a missing driver. */
	if (survey->module_loaded || survey->inventory->nvml_library)
		return 0;
	return graft_fail(err, GRAFT_NO_DRIVER, 0, "nvml error: driver not loaded");
}

static int check_versions(struct graft_survey *survey, struct graft_error *err)
{
	const struct graft_inventory *inventory = survey->inventory;
	const char *module = inventory->driver_version.value, *library = inventory->library_version.value;

	if (!module || !library || strcmp(module, library) == 0)
		return 0;
	(void)graft_fail(err, GRAFT_MISMATCH, 0, "nvml error: driver/library version mismatch");
	return graft_wrap(err, "the kernel module is %s, the library %s", module, library);
}

/*
 * Checks that the caller may use the control node. Uses faccessat(2), because opening the node
 * wakes the GPUs.
 */
static int check_permission(struct graft_survey *survey, struct graft_error *err)
{
	struct graft_node node = { .path = "/dev/nvidiactl" };

	if (geteuid() == 0 || graft_survey_node_as_is(survey, &node) < 0)
		return 0;
	if (faccessat(survey->dev_fd, "nvidiactl", R_OK | W_OK, AT_EACCESS) == 0 || (errno != EACCES && errno != EPERM))
		return 0;
	(void)graft_fail(err, GRAFT_PERMISSION, 0, "nvml error: insufficient permissions");
	return graft_wrap(err, "/dev/nvidiactl has owner %u:%u and mode %04o", node.uid, node.gid, node.mode);
}

int graft_survey_states(struct graft_survey *survey, struct graft_error *err)
{
	switch (survey->inventory->platform) {
	case GRAFT_PLATFORM_TEGRA: /* works without NVML, and before JetPack 6 without the module */
		return 0;
	case GRAFT_PLATFORM_WSL2: /* has neither module nor nodes of the driver */
		return check_library(survey, err);
	case GRAFT_PLATFORM_NONE:
	case GRAFT_PLATFORM_NATIVE:
		break;
	}
	if ((!survey->options->without_nvml && check_library(survey, err) < 0) || check_module(survey, err) < 0 ||
	    check_versions(survey, err) < 0)
		return -1;
	return check_permission(survey, err);
}
