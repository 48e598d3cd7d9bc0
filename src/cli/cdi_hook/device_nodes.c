/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_nodes: tells the driver's libraries in the container to make no device nodes (SPEC ctk-and-cdi 2.5): the driver's parameters say so in a file of
 * procfs, which is covered by a copy that does.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "cli/cdi_hook/cdi_hook.h"

#define PARAMS     "/proc/driver/nvidia/params"
#define PARAMS_MAX ((size_t)1 << 16)

static const char line_yes[] = "ModifyDeviceFiles: 1", line_no[] = "ModifyDeviceFiles: 0";

/* The text with every such line changed; *ret_changed says whether there was one. */
static const char *without_modification(struct graft_arena *arena, const char *text, bool *ret_changed)
{
	struct graft_buffer out = { .max = 2 * PARAMS_MAX };
	const char *copy;

	*ret_changed = false;
	while (*text != '\0') {
		size_t length = strcspn(text, "\n");
		bool is_yes = length == strlen(line_yes) && memcmp(text, line_yes, length) == 0;

		if (length == strlen(line_no) && memcmp(text, line_no, length) == 0)
			break;
		*ret_changed |= is_yes;
		graft_buffer_add(&out, is_yes ? line_no : text, length);
		graft_buffer_char(&out, '\n');
		text += length + (text[length] == '\n');
	}
	if (*text != '\0')
		*ret_changed = false; /* the driver is told already */
	copy = graft_buffer_failed(&out) ? NULL : graft_arena_strdup(arena, graft_buffer_text(&out));
	graft_buffer_done(&out);
	return copy;
}

static int fill(struct cdi_hook *hook, const struct graft_target *target, struct graft_plan *plan,
		struct graft_error *err)
{
	auto_close int fd = open(PARAMS, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	const char *text = NULL, *changed;
	struct graft_edit *edit;
	size_t length = 0;
	bool is_changed;
	int rc;

	(void)target;
	if (fd < 0 && errno == ENOENT)
		return 1;
	rc = fd < 0 ? -errno : graft_read_fd(fd, PARAMS_MAX, hook->arena, &text, &length);
	if (rc < 0)
		return graft_fail_errno(err, -rc, "file read error: " PARAMS);
	changed = text ? without_modification(hook->arena, text, &is_changed) : NULL;
	if (changed && !is_changed)
		return 1;
	edit = changed ? cdi_hook_edit(plan, GRAFT_EDIT_COVER, PARAMS) : NULL;
	if (!edit)
		return graft_fail_memory(err);
	edit->content = changed;
	edit->mode = 0444;
	edit->flags = GRAFT_MOUNT_RDONLY | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOEXEC;
	return 0;
}

static int run(void *context, int argc, char **argv)
{
	static const struct cdi_hook_job job = { .fill = fill,
						 .failure = "failed to disable device node modification" };

	(void)argc;
	(void)argv;
	return cdi_hook_do(context, &job);
}

static const struct graft_option options[] = { CDI_HOOK_CONTAINER_SPEC(true) };

const struct graft_command cdi_hook_disable_device_node_modification = {
	.name = "disable-device-node-modification",
	.arguments = "",
	.summary = "Tell the driver's libraries in the container to make no device nodes",
	.options = options,
	.n_options = GRAFT_COUNT(options),
	.max_arguments = -1,
	.go_style = true,
	.run = run,
};
