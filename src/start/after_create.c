/* SPDX-License-Identifier: Apache-2.0 */
/*
 * after_create: calls the low-level runtime, checks that the process is the container's, and
 * applies the rest of the plan, or deletes the container again.
 */
#include "start/after_create.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "start/locate.h"
#include "start/low_level.h"

#define PID_TEXT_MAX ((size_t)64)

/*
 * Whether the pid file can be read once `create` has returned. crun resolves a relative path from
 * the bundle, runc from the working directory, so only an absolute one will do. Anything but a
 * regular file, such as the caller's pipe, is not ours to read; a file that does not exist yet will
 * be a regular one.
 */
static bool is_readable_later(const char *pid_file)
{
	struct stat st;

	if (pid_file[0] != '/')
		return false;
	return stat(pid_file, &st) < 0 ? errno == ENOENT : S_ISREG(st.st_mode);
}

/* Whether /proc numbers processes as our PID namespace does, whose numbers are in the pid file. */
static bool has_own_proc(void)
{
	char wanted[24], found[24];
	int length = snprintf(wanted, sizeof(wanted), "%ld", (long)getpid());

	return readlink("/proc/self", found, sizeof(found)) == length && memcmp(wanted, found, (size_t)length) == 0;
}

bool graft_after_create_is_possible(const struct graft_oci_arguments *arguments, const char *low_level, bool script)
{
	/*
	 * Sockets passed by systemd (LISTEN_FDS) belong to the process whose ID is in LISTEN_PID,
	 * which is ours: they reach the low-level runtime only if we become it.
	 */
	return arguments->create && arguments->plain && arguments->pid_file && arguments->container && !script &&
	       !secure_getenv("LISTEN_PID") && graft_low_level_stops_before_start(low_level) &&
	       is_readable_later(arguments->pid_file) && has_own_proc();
}

/* The mount namespace and root directory that this process is in. */
struct home {
	struct stat ns, root; /* the mount namespace, and the directory / */
};

static bool look_at_home(int ns_fd, struct home *ret_home)
{
	return ns_fd >= 0 && fstatat(ns_fd, "mnt", &ret_home->ns, 0) == 0 && stat("/", &ret_home->root) == 0;
}

static bool is_same_home(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int fail_pid(const char *file, const char *text, struct graft_error *err)
{
	return graft_fail(err, GRAFT_FORMAT, 0, "%s: no process ID: '%s'", file, text);
}

/* Reads the process ID of the container: decimal, followed only by spaces and newlines. */
static int read_pid(const char *file, struct graft_arena *arena, pid_t *ret_pid, struct graft_error *err)
{
	auto_close int fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	const char *text = "";
	size_t length = 0;
	char *end;
	long pid;
	int rc = fd < 0 ? -errno : graft_read_fd(fd, PID_TEXT_MAX, arena, &text, &length);

	if (rc < 0)
		return graft_fail_errno(err, -rc, "file read error: %s", file);
	if (text[0] < '1' || text[0] > '9')
		return fail_pid(file, text, err);
	errno = 0;
	pid = strtol(text, &end, 10);
	while (*end == '\n' || *end == ' ')
		end++;
	if (errno != 0 || pid > INT_MAX || end != text + length)
		return fail_pid(file, text, err);
	*ret_pid = (pid_t)pid;
	return 0;
}

/* Deletes the container, since the engine gets an error and assumes that none exists. */
static void delete_again(const struct graft_oci_arguments *arguments, const char *low_level, char *const *argv,
			 const struct graft_log *log, struct graft_arena *arena)
{
	static char command[] = "delete", force[] = "--force";
	size_t n = (size_t)arguments->n_global;
	char **words = graft_arena_list(arena, n + 4, sizeof(*words));
	char *container = graft_arena_strdup(arena, arguments->container);
	struct graft_error why = { .status = GRAFT_OK };
	int status = 0;

	for (size_t i = 0; words && i < n; i++)
		words[i] = argv[i];
	/* Try even if an earlier allocation failed: that may be why the container is deleted. */
	if (words && container) {
		words[n] = command;
		words[n + 1] = force;
		words[n + 2] = container;
		(void)graft_low_level_call(low_level, words, arena, &status, &why);
	} else {
		(void)graft_fail_memory(&why);
	}
	if (why.status != GRAFT_OK)
		graft_warn(log, "container '%s' could not be deleted: %s", arguments->container, why.msg);
	else if (status != 0)
		graft_warn(log, "container '%s' could not be deleted: '%s delete --force' ended with %d",
			   arguments->container, low_level, status);
}

/*
 * Applies what had to wait. -1: nothing of it remains, and *ret_back is whether we are back in our
 * own mount namespace and root.
 */
static int apply_waiting(const struct graft_oci_arguments *arguments, const struct graft_oci_waiting *waiting,
			 struct graft_arena *arena, bool *ret_back, struct graft_error *err)
{
	/* Opened before joining the container, whose /proc may show anything under that name. */
	auto_close int ns_fd = open("/proc/self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct home before, after;
	bool known = look_at_home(ns_fd, &before);
	pid_t pid;
	int rc = read_pid(arguments->pid_file, arena, &pid, err);

	if (rc == 0)
		rc = graft_apply_to_created(waiting, pid, NULL, err);
	if (rc < 0)
		*ret_back = known && look_at_home(ns_fd, &after) && is_same_home(&before.ns, &after.ns) &&
			    is_same_home(&before.root, &after.root);
	return rc;
}

int graft_after_create(const struct graft_oci_arguments *arguments, const char *low_level, char **argv,
		       const struct graft_oci_waiting *waiting, const struct graft_log *log, struct graft_arena *arena,
		       int *ret_status, struct graft_error *err)
{
	bool back = false;

	graft_debug(log, "calling '%s'", low_level);
	if (graft_low_level_call(low_level, argv, arena, ret_status, err) < 0)
		return -1;
	graft_log_settle(log);
	if (*ret_status != 0 || apply_waiting(arguments, waiting, arena, &back, err) == 0)
		return 0;
	(void)graft_wrap(err, "failed to set up the container's GPUs");
	/*
	 * SECURITY: inside the container's mounts, the low-level runtime's path names a file of the
	 * image.
	 */
	if (back)
		delete_again(arguments, low_level, argv, log, arena);
	else
		graft_warn(log, "container '%s' is not deleted: cannot leave its mount namespace",
			   arguments->container);
	return -1;
}
