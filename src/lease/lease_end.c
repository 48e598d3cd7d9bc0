/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_end: by pidfd. A process that still holds the lease after its pidfd was opened is the one
 * of the pidfd, or the pidfd's process has ended and gets no signal.
 */
#include "lease/lease_end.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/sys.h"

#define AT_ONCE 64u /* pidfds that are open at the same time */

static bool holds(const uint32_t *pids, size_t n, uint32_t pid)
{
	for (size_t i = 0; i < n; i++) {
		if (pids[i] == pid)
			return true;
	}
	return false;
}

static int signal_process(uint32_t pid, int fd, int number, struct graft_error *err)
{
	int rc = fd >= 0 ? graft_pidfd_send_signal(fd, number) : kill((pid_t)pid, number);

	return rc < 0 && errno != ESRCH ? graft_fail_errno(err, errno, "kill failed: process %u", pid) : 0;
}

/* At most AT_ONCE processes. */
static int signal_some(const struct graft_lease_now *now, const struct graft_lease *lease, int number,
		       const uint32_t *pids, size_t n, struct graft_arena *arena, struct graft_error *err)
{
	int fds[AT_ONCE], why[AT_ONCE], rc;
	uint32_t *left;
	size_t n_left;

	for (size_t i = 0; i < n; i++) {
		fds[i] = graft_pidfd_open((pid_t)pids[i], 0);
		why[i] = fds[i] < 0 ? errno : 0;
	}
	rc = graft_lease_processes(now, lease, arena, &left, &n_left, err);
	for (size_t i = 0; i < n; i++) {
		if (rc == 0 && why[i] != ESRCH && holds(left, n_left, pids[i]))
			rc = signal_process(pids[i], fds[i], number, err);
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
	return rc;
}

int graft_lease_signal(const struct graft_lease_now *now, const struct graft_lease *lease, int number,
		       struct graft_arena *arena, size_t *ret_n, struct graft_error *err)
{
	uint32_t *pids;
	int rc = graft_lease_processes(now, lease, arena, &pids, ret_n, err);

	for (size_t i = 0; rc == 0 && number != 0 && i < *ret_n; i += AT_ONCE) {
		size_t n = *ret_n - i < AT_ONCE ? *ret_n - i : AT_ONCE;

		rc = signal_some(now, lease, number, pids + i, n, arena, err);
	}
	return rc;
}
