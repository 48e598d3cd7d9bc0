/* SPDX-License-Identifier: Apache-2.0 */
/* lease_wait: inotify for the table, pidfds for holders, and a plain look every few seconds. */
#include "lease/lease_wait.h"

#include <errno.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys.h"

#define FIRST_PAUSE_MS 5
#define LAST_PAUSE_MS  5000
#define SAY_MS         10000u

static void forget_processes(struct graft_lease_wait *wait)
{
	while (wait->n_fds > 1)
		(void)close(wait->fds[--wait->n_fds].fd);
}

void graft_lease_wait_done(struct graft_lease_wait *wait)
{
	forget_processes(wait);
	if (wait->n_fds > 0 && wait->fds[0].fd >= 0)
		(void)close(wait->fds[0].fd);
	wait->n_fds = 0;
}

/* BASELINE Linux 5.3: on older kernels, the periodic check has to do. */
static void watch_processes(struct graft_lease_wait *wait, const struct graft_lease_table *table,
			    const struct graft_lease *lease)
{
	uint32_t *pids;
	size_t n;

	if (graft_lease_processes(&table->now, lease, table->arena, &pids, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		int fd = wait->n_fds <= GRAFT_LEASE_WATCHED ? graft_pidfd_open((pid_t)pids[i], 0) : -1;

		if (fd >= 0)
			wait->fds[wait->n_fds++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
}

int graft_lease_wait_watch(struct graft_lease_wait *wait, const struct graft_lease_table *table,
			   struct graft_error *err)
{
	const char *path = graft_lease_table_event(table);

	if (!path)
		return graft_fail_memory(err);
	/* A user may have few inotify instances: without one, the periodic check has to do. */
	if (wait->n_fds == 0) {
		wait->fds[wait->n_fds++] = (struct pollfd){ .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
							    .events = POLLIN };
		wait->said = graft_lease_clock();
	}
	/* Each time, since the file may be another one. */
	(void)inotify_add_watch(wait->fds[0].fd, path, IN_ATTRIB);
	forget_processes(wait);
	for (size_t i = 0; i < table->n_leases; i++)
		watch_processes(wait, table, &table->leases[i]);
	/* Those that wait: if the first is killed, it is the turn of the next. */
	for (size_t i = 0; i < table->n_tickets; i++)
		watch_processes(wait, table, &table->tickets[i]);
	return 0;
}

/* Reads all pending inotify events. Returns whether there were any. */
static bool drain_events(const struct graft_lease_wait *wait)
{
	char events[4096];
	bool any = false;

	while (read(wait->fds[0].fd, events, sizeof(events)) > 0)
		any = true;
	return any;
}

static void say_place(struct graft_lease_wait *wait, uint64_t now)
{
	if (now - wait->said < SAY_MS)
		return;
	wait->said = now;
	graft_info(wait->log, GRAFT_LEASE_WAITING " behind %zu other%s, for up to %llu s more", wait->place,
		   wait->place == 1 ? "" : "s", wait->until > now ? (unsigned long long)(wait->until - now) / 1000 : 0);
}

int graft_lease_wait_next(struct graft_lease_wait *wait, struct graft_error *err)
{
	const struct timespec least = { .tv_nsec = FIRST_PAUSE_MS * 1000000L };
	uint64_t now = graft_lease_clock();
	uint64_t left = wait->until > now ? wait->until - now : 0;
	int n;

	say_place(wait, now);
	if (wait->pause_ms < FIRST_PAUSE_MS)
		wait->pause_ms = FIRST_PAUSE_MS;
	n = poll(wait->fds, (nfds_t)wait->n_fds, left < (uint64_t)wait->pause_ms ? (int)left : wait->pause_ms);
	if (n < 0 && errno != EINTR)
		return graft_fail_errno(err, errno, "poll failed");
	if (n <= 0) {
		wait->pause_ms = wait->pause_ms * 2 < LAST_PAUSE_MS ? wait->pause_ms * 2 : LAST_PAUSE_MS;
		return 0;
	}
	/* A process that ends leaves its cgroup a moment later. */
	if (!drain_events(wait)) {
		wait->pause_ms = FIRST_PAUSE_MS;
		(void)nanosleep(&least, NULL);
	}
	return 0;
}
