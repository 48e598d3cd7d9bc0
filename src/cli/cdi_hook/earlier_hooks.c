/* SPDX-License-Identifier: Apache-2.0 */
/*
 * earlier_hooks: the processor time that earlier hooks of the same container have used. A
 * specification may name several, and a low-level runtime starts each as a program. It does so from
 * the container's first process, for which the kernel adds up the time of the children that it has
 * waited for. Hooks of other vendors are among them and look the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "base/sys.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "formats/procfs.h"

#define MAX_STAT   ((size_t)4096)
#define RUNC_CHILD "runc:[2:INIT]" /* what runc calls the container's process before it starts */

/*
 * Opens /proc, or returns -1. SECURITY: if a hook runs after the root was changed, /proc is a
 * directory of the image.
 */
static int open_procfs(void)
{
	auto_close int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && graft_is_on_procfs(fd) ? TAKE_FD(fd) : -1;
}

static bool read_family(struct cdi_hook *hook, int procfs_fd, const char *process, struct graft_process_family *ret)
{
	char path[32];
	const char *text;
	size_t length;
	int fd, rc;

	(void)snprintf(path, sizeof(path), "%.20s/stat", process);
	fd = openat(procfs_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	rc = graft_read_fd(fd, MAX_STAT, hook->arena, &text, &length);
	(void)close(fd);
	return rc == 0 && graft_procfs_family(text, ret);
}

/*
 * Whether our parent is the container's process. crun starts these hooks before it knows that
 * process's PID, and passes 0. Without a state, the hook was written for runc
 * (docs/decisions/0021-no-state.md) or is called by hand; then other children of the caller do not
 * count.
 */
static bool is_container(const struct graft_process_family *parent, const struct graft_oci_state *state)
{
	if (!state)
		return strcmp(parent->name, RUNC_CHILD) == 0;
	return state->pid == 0 || state->pid == getppid();
}

void cdi_hook_share_budget(struct cdi_hook *hook, const struct graft_oci_state *state)
{
	struct graft_process_family self, parent;
	auto_close int procfs_fd = open_procfs();
	long ticks = sysconf(_SC_CLK_TCK);
	char number[24];

	/* PIDs in /proc are those of the host; getppid() returns that of the container. */
	if (procfs_fd < 0 || ticks <= 0 || !read_family(hook, procfs_fd, "self", &self))
		return;
	(void)snprintf(number, sizeof(number), "%ld", (long)self.parent);
	if (read_family(hook, procfs_fd, number, &parent) && is_container(&parent, state))
		graft_budget_share(hook->budget, (int64_t)(parent.children_ticks * 1000 / (uint64_t)ticks),
				   GRAFT_BUDGET_LEAST_MS);
}
