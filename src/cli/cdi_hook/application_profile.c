/* SPDX-License-Identifier: Apache-2.0 */
/* application_profile: tells EGL which GPUs it may show, by the nodes that the container has (SPEC ctk-and-cdi 2.6). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "plan/driver_nodes.h"
#include "plan/hook_edits.h"

#define MAX_ENTRIES 65536 /* of a directory of the container */

static uint64_t bit_of(struct cdi_hook *hook, int dev_fd, const char *name)
{
	struct stat st;

	if (!graft_is_gpu_node_name(name) || fstatat(dev_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISCHR(st.st_mode))
		return 0;
	if (minor(st.st_rdev) < 64)
		return UINT64_C(1) << minor(st.st_rdev);
	graft_warn(&hook->log, "/dev/%s: the driver's mask of visible GPUs has no bit for minor %u", name,
		   minor(st.st_rdev));
	return 0;
}

static int visible_mask(struct cdi_hook *hook, const struct graft_root *root, uint64_t *ret_mask,
			struct graft_error *err)
{
	auto_dir DIR *dir = NULL;
	auto_close int fd = graft_root_openat(root, "/dev", O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	const struct dirent *entry;
	int dev_fd;

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return graft_fail_errno(err, -fd, "open failed: /dev of the container");
	dev_fd = fd;
	dir = fdopendir(fd);
	if (!dir)
		return graft_fail_errno(err, errno, "directory read error: /dev of the container");
	(void)TAKE_FD(fd);
	for (int i = 0; i < MAX_ENTRIES && (entry = readdir(dir)); i++)
		*ret_mask |= bit_of(hook, dev_fd, entry->d_name);
	return 0;
}

static int fill(struct cdi_hook *hook, const struct graft_target *target, struct graft_plan *plan,
		struct graft_error *err)
{
	uint64_t mask = 0;

	if (visible_mask(hook, &target->root, &mask, err) < 0)
		return -1;
	if (mask == 0)
		return 1;
	return graft_hook_add_profile(plan, mask) ? 0 : graft_fail_memory(err);
}

static int run(void *context, int argc, char **argv)
{
	static const struct cdi_hook_job job = { .fill = fill, .failure = "failed to update application profile" };

	(void)argc;
	(void)argv;
	return cdi_hook_do(context, &job);
}

static const struct graft_option options[] = { CDI_HOOK_CONTAINER_SPEC(true) };

const struct graft_command cdi_hook_update_application_profile = {
	.name = "update-application-profile",
	.arguments = "",
	.summary = "Tell EGL which GPUs the container has",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.max_arguments = -1,
	.go_style = true,
	.run = run,
};
