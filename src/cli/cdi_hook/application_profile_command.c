/* SPDX-License-Identifier: Apache-2.0 */
/*
 * application_profile_command: shows EGL only the GPUs whose device nodes the container has (SPEC
 * ctk-and-cdi 2.6).
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "image/inspect.h"
#include "plan/driver_nodes.h"
#include "plan/hook_edits.h"

#define MAX_ENTRIES 65536 /* names read from the container's /dev */

static uint64_t bit_of(struct cdi_hook *hook, const struct graft_image_root *root, const char *name)
{
	const char *path = graft_is_gpu_node_name(name) ? graft_arena_printf(hook->arena, "/dev/%s", name) : NULL;
	auto_close int fd = path ? graft_image_root_look(root, path, O_NOFOLLOW) : -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode))
		return 0;
	if (minor(st.st_rdev) < 64)
		return UINT64_C(1) << minor(st.st_rdev);
	graft_warn(&hook->log, "%s: the driver's mask of visible GPUs has no bit for minor %u", path,
		   minor(st.st_rdev));
	return 0;
}

static int read_visible_gpu_mask(struct cdi_hook *hook, const struct graft_image_root *root, uint64_t *ret_mask,
				 struct graft_error *err)
{
	const char **names;
	size_t n;

	if (graft_image_list_names(root, "/dev", MAX_ENTRIES, hook->arena, &names, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		*ret_mask |= bit_of(hook, root, names[i]);
	return 0;
}

static int fill_application_profile(struct cdi_hook *hook, const struct graft_target *target, struct graft_plan *plan,
				    struct graft_error *err)
{
	uint64_t mask = 0;

	if (read_visible_gpu_mask(hook, &target->root, &mask, err) < 0)
		return -1;
	if (mask == 0)
		return 1;
	return graft_hook_add_profile(plan, mask) ? 0 : graft_fail_memory(err);
}

static int update_application_profile(void *hook, struct graft_error *err)
{
	static const struct cdi_hook_job job = { .fill = fill_application_profile,
						 .failure = "failed to update application profile" };

	return cdi_hook_do(hook, &job, err);
}

static const struct graft_option options[] = { CDI_HOOK_CONTAINER_SPEC(true) };

const struct graft_command cdi_hook_update_application_profile = {
	CDI_HOOK_COMMAND,
	.name = "update-application-profile",
	.summary = "Restrict EGL to the GPUs that the container has",
	GRAFT_OPTIONS(options),
	.work = update_application_profile,
};
