/* SPDX-License-Identifier: Apache-2.0 */
/*
 * targets: where programs and libraries go in an image, from the facts about it (SPEC
 * libnvidia-container 9.2).
 */
#include <string.h>

#include "base/cleanup.h"
#include "plan/rules.h"

static const struct {
	const char *machine;
	const char *libs_dir, *libs32_dir;
	const char *why;
} debian_dirs[] = {
	{ "x86_64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/i386-linux-gnu", "multiarch" },
	{ "aarch64", "/usr/lib/aarch64-linux-gnu", "/var/empty", "multiarch; the driver has no 32-bit libraries" },
	{ "ppc64le", "/usr/lib/powerpc64le-linux-gnu", "/var/empty", "multiarch; the driver has no 32-bit libraries" },
};

static const char *other_libs32(const struct graft_image *image)
{
	if (image->usr_lib32)
		return "/usr/lib32";
	return image->usr_lib && !image->usr_lib_is_usr_lib64 ? "/usr/lib" : "/usr/lib32";
}

void graft_plan_targets(struct graft_planner *planner)
{
	const struct graft_policy *policy = planner->policy;
	const char *machine = planner->inventory->machine;
	const char *libs_dir = "/usr/lib64", *libs32_dir = other_libs32(&policy->image);

	for (size_t i = 0; policy->image.debian && machine && i < GRAFT_COUNT(debian_dirs); i++) {
		if (strcmp(debian_dirs[i].machine, machine) == 0) {
			libs_dir = debian_dirs[i].libs_dir;
			libs32_dir = debian_dirs[i].libs32_dir;
		}
	}
	planner->bins_dir = policy->bins_dir ? policy->bins_dir : "/usr/bin";
	planner->libs_dir = policy->libs_dir ? policy->libs_dir : libs_dir;
	planner->libs32_dir = policy->libs32_dir ? policy->libs32_dir : libs32_dir;
}
