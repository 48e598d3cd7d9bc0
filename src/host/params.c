/* SPDX-License-Identifier: Apache-2.0 */
/* params: reads one file of the kernel's procfs, which is the host's own. */
#include "host/discover.h"

#include <errno.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "formats/procfs.h"

#define PARAMS_MAX ((size_t)1 << 16)

int graft_params_for_container(struct graft_arena *arena, const char **ret_text, struct graft_error *err)
{
	auto_close int fd = open(GRAFT_PARAMS_PATH, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	const char *text = NULL, *changed;
	bool is_changed;
	size_t length;
	int rc;

	*ret_text = NULL;
	if (fd < 0 && errno == ENOENT)
		return 0;
	rc = fd < 0 ? -errno : graft_read_fd(fd, PARAMS_MAX, arena, &text, &length);
	if (rc < 0)
		return graft_fail_errno(err, -rc, "file read error: " GRAFT_PARAMS_PATH);
	changed = text ? graft_procfs_without_device_files(text, arena, &is_changed) : NULL;
	if (!changed)
		return graft_fail_memory(err);
	*ret_text = is_changed ? changed : NULL;
	return 0;
}
