/* SPDX-License-Identifier: Apache-2.0 */
/* clear_request: both sides of the directory. Does not know which GPUs there are. */
#include "daemon/clear_request.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define FOLDER_NAME    "clear-health"
#define LOOK_EVERY_MS  20
#define LOOK_AGAIN_MS  5000
#define REQUEST_EVENTS (IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW)

static bool name_folder(const char *state_folder, char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%s/" FOLDER_NAME, state_folder) < PATH_MAX;
}

/* Makes the directory if it is missing. Returns an O_RDONLY descriptor of it, or -errno. */
static int open_folder(const char *state_folder)
{
	char path[PATH_MAX];
	int fd;

	if (!name_folder(state_folder, path))
		return -ENAMETOOLONG;
	if ((mkdir(state_folder, 0755) < 0 && errno != EEXIST) || (mkdir(path, 0700) < 0 && errno != EEXIST))
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Handles only requests that it could remove; others would be repeated forever. */
static void take_requests(struct clear_requests *requests, int take_fd)
{
	DIR *folder = fdopendir(take_fd);
	const struct dirent *entry;

	if (!folder) {
		(void)close(take_fd);
		return;
	}
	while ((entry = readdir(folder))) {
		char name[NAME_MAX + 1];

		(void)snprintf(name, sizeof(name), "%s", entry->d_name);
		if (name[0] != '.' && unlinkat(dirfd(folder), name, 0) == 0)
			requests->clear(requests->arg, name);
	}
	(void)closedir(folder);
}

/* Watches the current directory. The watch of a removed directory reports nothing more. */
static int watch_requests(struct clear_requests *requests)
{
	char path[PATH_MAX];

	if (requests->watch.fd < 0)
		requests->watch.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (requests->watch.fd < 0 || !name_folder(requests->state_folder, path) ||
	    inotify_add_watch(requests->watch.fd, path, REQUEST_EVENTS) < 0)
		return -errno;
	if (requests->watch.place != 0)
		return 0;
	return graft_loop_watch(requests->loop, &requests->watch, NULL) < 0 ? -ENOMEM : 0;
}

/*
 * Makes the directory if it is missing, watches it, and takes the requests in it. A directory that
 * cannot be watched is checked from time to time. QUIRK: no descriptor of the directory is kept,
 * because the kernel does not report the removal of one that is open.
 */
static void look_for_requests(void *arg)
{
	struct clear_requests *requests = arg;
	int fd = open_folder(requests->state_folder), rc = fd < 0 ? fd : watch_requests(requests);

	if (rc < 0 && !requests->failed)
		graft_warn(requests->log, "cannot watch %s/" FOLDER_NAME ": %s; --clear-health will take a few seconds",
			   requests->state_folder, strerror(-rc));
	requests->failed = rc < 0;
	if (rc < 0)
		graft_loop_set_timer(requests->loop, &requests->again, LOOK_AGAIN_MS);
	if (fd >= 0)
		take_requests(requests, fd);
}

static void request_came(void *arg, short events)
{
	struct clear_requests *requests = arg;
	char notes[4096];

	(void)events;
	while (read(requests->watch.fd, notes, sizeof(notes)) > 0)
		;
	look_for_requests(requests);
}

void clear_requests_begin(struct clear_requests *requests, struct graft_loop *loop, const char *state_folder,
			  const struct graft_log *log, void (*clear)(void *arg, const char *name), void *arg)
{
	*requests = (struct clear_requests){
		.loop = loop, .state_folder = state_folder, .log = log, .clear = clear, .arg = arg
	};
	requests->watch =
	    (struct graft_loop_watch){ .fd = -1, .events = POLLIN, .ready = request_came, .arg = requests };
	requests->again = (struct graft_loop_timer){ .due = look_for_requests, .arg = requests };
	look_for_requests(requests);
}

void clear_requests_done(struct clear_requests *requests)
{
	if (!requests->loop)
		return;
	graft_loop_close(requests->loop, &requests->watch);
	graft_loop_clear_timer(&requests->again);
	requests->loop = NULL;
}

int clear_request_make(const char *state_folder, const char *name, int64_t wait_ms, struct graft_error *err)
{
	auto_close int folder_fd = open_folder(state_folder), fd = -1;
	int64_t end = graft_clock_ms() + wait_ms;

	if (folder_fd >= 0)
		fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return graft_fail_errno(err, folder_fd < 0 ? -folder_fd : errno, "cannot write to %s/" FOLDER_NAME,
					state_folder);
	while (faccessat(folder_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		if (graft_clock_ms() >= end)
			return 0;
		(void)poll(NULL, 0, LOOK_EVERY_MS);
	}
	return 1;
}
