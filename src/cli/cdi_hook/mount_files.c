/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_files: mounts files of the host in the container, for specifications that leave this to the
 * hook because a low-level runtime takes long (docs/decisions/0034-driver-tree.md).
 */
#include "cli/cdi_hook/cdi_hook.h"
#include "formats/cdi/cdi.h"
#include "plan/hook_edits.h"

static int fill_file_mounts(struct cdi_hook *hook, const struct graft_target *target, struct graft_plan *plan,
			    struct graft_error *err)
{
	(void)target;
	for (size_t i = 0; i < hook->files.n; i++) {
		struct graft_hook_file file;

		if (graft_hook_read_file(hook->files.items[i], hook->arena, &file, err) < 0)
			return -1;
		if (!graft_hook_add_file(plan, &file))
			return graft_fail_memory(err);
	}
	return 0;
}

static int mount_files(void *target, struct graft_error *err)
{
	static const struct cdi_hook_job job = { .fill = fill_file_mounts, .failure = "failed to mount files" };
	struct cdi_hook *hook = target;

	return hook->files.n > 0 ? cdi_hook_do(hook, &job, err) : 0;
}

static const struct graft_option options[] = {
	{ .name = "file",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "HOST::CONTAINER",
	  .help = "Mount the host's file HOST at CONTAINER, read-only; one path stands for both; can be repeated",
	  .parse = cdi_hook_parse_list,
	  .offset = offsetof(struct cdi_hook, files) },
	CDI_HOOK_CONTAINER_SPEC(true),
};

const struct graft_command cdi_hook_mount_files = {
	CDI_HOOK_COMMAND,       .name = GRAFT_CDI_FILES_HOOK, .summary = "Mount files of the host in the container",
	GRAFT_OPTIONS(options), .work = mount_files,
};
