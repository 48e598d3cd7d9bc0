/* SPDX-License-Identifier: Apache-2.0 */
/* mps_daemon: starts and ends the driver's daemon through apply/mps.h, and follows its log. */
#include "daemon/mps_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/host_file.h"
#include "apply/lock_file.h"
#include "apply/mps.h"
#include "apply/temporary.h"
#include "base/cleanup.h"
#include "base/listing.h"
#include "base/root.h"
#include "base/strings.h"
#include "base/sys.h"
#include "host/catalog.h"

#define STARTED     ".started"
#define RECORD      ".daemon"
#define LOG_FOLDER  "log"
#define SHM         "shm"
#define LOCK        ".lock"
#define MAX_MEMORY  ((size_t)16 << 20) /* of one daemon */
#define MAX_SCRATCH ((size_t)64 << 20) /* of one start or end */
#define RECORD_MAX  ((size_t)1 << 20)
#define RECORD_MODE 0644
#define LOGS_MAX    4096u
#define LOG_PART    ((size_t)16 << 10)
#define LOOK_MS     5000
#define SMALL_SHM   "65536k"
#define MEMORY_FILE "/proc/meminfo"
#define MEMORY_MAX  ((size_t)64 << 10)
#define MEMORY_LINE "MemTotal:"
#define LOG_KEPT    ((off_t)4 << 20)

/* ---- places ---- */

static const char *shm_size(struct graft_arena *arena)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	const char *text, *line;
	size_t length;

	if (graft_root_open(&root, "/", NULL) < 0 ||
	    graft_root_read(&root, MEMORY_FILE, MEMORY_MAX, arena, &text, &length) < 0)
		return SMALL_SHM;
	line = strstr(text, MEMORY_LINE);
	length = line ? strtoul(line + strlen(MEMORY_LINE), NULL, 10) / 2 : 0;
	return length > 0 ? graft_arena_printf(arena, "%zuk", length) : SMALL_SHM;
}

int mps_host_mount(const struct mps_host *host, struct graft_error *err)
{
	struct graft_arena *scratch = graft_arena_new(MAX_SCRATCH);
	const char *shm = scratch ? graft_arena_printf(scratch, "%s/" SHM, host->root) : NULL;
	int rc = shm ? graft_mps_mount(shm, shm_size(scratch), scratch, err) : graft_fail_memory(err);

	if (rc > 0)
		graft_info(host->log, "mounted a tmpfs at %s", shm);
	(void)graft_arena_free(scratch);
	return rc;
}

void mps_host_unmount(const struct mps_host *host)
{
	struct graft_arena *scratch = graft_arena_new(MAX_SCRATCH);
	const struct graft_mps mps = { .shm = scratch ? graft_arena_printf(scratch, "%s/" SHM, host->root) : NULL };

	graft_mps_unmount(&mps);
	(void)graft_arena_free(scratch);
}

int mps_host_lock(const struct mps_host *host, int *ret_fd, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	auto_close int path_fd = -1;
	char path[PATH_MAX];
	int rc;

	if (graft_root_open(&root, "/", err) < 0)
		return -1;
	rc = graft_root_mkdir(&root, host->root, 0755, NULL, &path_fd);
	if (rc < 0)
		return graft_fail_errno(err, -rc, "cannot make %s", host->root);
	rc = graft_lock_file_take(path_fd, LOCK);
	if (rc == -EWOULDBLOCK) {
		(void)graft_fail(err, GRAFT_BUSY, 0, "another mps-control-daemon uses %s", host->root);
		return graft_with_hint(err, "Run only one: either the service of the node or the one in a pod.");
	}
	if (rc < 0) {
		(void)snprintf(path, sizeof(path), "%s/" LOCK, host->root);
		(void)graft_lock_file_fail(rc, path, err);
		return graft_wrap(err, "cannot lock");
	}
	*ret_fd = rc;
	return 0;
}

void mps_host_unlock(const struct mps_host *host, int take_fd)
{
	struct graft_error why = { .status = GRAFT_OK };
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/" LOCK, host->root);
	if (graft_host_file_remove(path, &why) < 0)
		graft_warn(host->log, "%s", why.msg);
	(void)close(take_fd);
}

static const char *mps_place_of(const struct mps_daemon *daemon, const char *name, struct graft_arena *arena)
{
	return graft_arena_printf(arena, "%s/%s", daemon->directory, name);
}

/* Returns -1 if out of memory. */
static int describe_mps(const struct mps_daemon *daemon, struct graft_arena *arena, struct graft_mps *mps)
{
	const char *devices = NULL;

	for (size_t i = 0; i < daemon->plan.n_gpus; i++)
		devices = graft_arena_printf(arena, "%s%s%s", devices ? devices : "", devices ? "," : "",
					     daemon->plan.gpus[i].uuid);
	*mps = (struct graft_mps){ .root = daemon->host->driver_root,
				   .path = graft_catalog_binary_path(arena),
				   .devices = devices,
				   .pipe = mps_place_of(daemon, "pipe", arena),
				   .log = mps_place_of(daemon, LOG_FOLDER, arena),
				   .shm = graft_arena_printf(arena, "%s/" SHM, daemon->host->root),
				   .arena = arena };
	return graft_arena_failed(arena) ? -1 : 0;
}

/* ---- one of them ---- */

/* `text` is the plan as JSON; NULL: make it from the plan. */
static int fill_daemon(struct mps_daemon *daemon, const char *text, const struct graft_kube_mps_daemon *plan)
{
	struct graft_buffer buffer = { .max = RECORD_MAX };
	struct graft_error why = { .status = GRAFT_OK };

	if (text) {
		daemon->text = graft_arena_strdup(daemon->arena, text);
	} else {
		graft_record_write(&graft_kube_mps_daemon_record, plan, &buffer);
		if (!graft_buffer_failed(&buffer))
			daemon->text = graft_arena_strdup(daemon->arena, graft_buffer_text(&buffer));
		graft_buffer_done(&buffer);
	}
	if (!daemon->text || graft_record_read(&graft_kube_mps_daemon_record, daemon->text, strlen(daemon->text),
					       daemon->arena, &daemon->plan, &why) < 0)
		return -1;
	daemon->directory = graft_arena_printf(daemon->arena, "%s/%s", daemon->host->root, daemon->plan.resource);
	return daemon->directory ? 0 : -1;
}

static struct mps_daemon *make_daemon(const struct mps_host *host, const char *text,
				      const struct graft_kube_mps_daemon *plan)
{
	struct mps_daemon *daemon = calloc(1, sizeof(*daemon));

	if (!daemon)
		return NULL;
	*daemon = (struct mps_daemon){ .host = host,
				       .arena = graft_arena_new(MAX_MEMORY),
				       .process = { .fd = -1 },
				       .events = { .fd = -1 },
				       .log_fd = -1 };
	if (!daemon->arena || fill_daemon(daemon, text, plan) < 0)
		return mps_daemon_free(daemon);
	return daemon;
}

struct mps_daemon *mps_daemon_new(const struct mps_host *host, const struct graft_kube_mps_daemon *plan)
{
	return make_daemon(host, NULL, plan);
}

struct mps_daemon *mps_daemon_find(const struct mps_host *host, const char *resource)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_arena *scratch = graft_arena_new(RECORD_MAX * 2);
	const char *path = scratch ? graft_arena_printf(scratch, "%s/" RECORD, resource) : NULL, *text;
	struct mps_daemon *daemon = NULL;
	size_t length;

	if (path && graft_root_open(&root, host->root, NULL) == 0 &&
	    graft_root_read(&root, path, RECORD_MAX, scratch, &text, &length) == 0 && strlen(text) == length)
		daemon = make_daemon(host, text, NULL);
	/* SECURITY: a file only determines what to end in its own directory. */
	if (daemon && strcmp(daemon->plan.resource, resource) != 0)
		daemon = mps_daemon_free(daemon);
	(void)graft_arena_free(scratch);
	return daemon;
}

static void unwatch(struct mps_daemon *daemon)
{
	graft_loop_clear_timer(&daemon->look);
	graft_loop_close(daemon->host->loop, &daemon->process);
	graft_loop_close(daemon->host->loop, &daemon->events);
	if (daemon->log_fd >= 0)
		(void)close(TAKE_FD(daemon->log_fd));
}

struct mps_daemon *mps_daemon_free(struct mps_daemon *daemon)
{
	if (!daemon)
		return NULL;
	unwatch(daemon);
	(void)graft_arena_free(daemon->arena);
	free(daemon);
	return NULL;
}

/* ---- its log ---- */

/*
 * The daemon appends to its logs as long as it runs, which may be months, and on a tmpfs they
 * occupy memory. Free the copied part; the files keep their length.
 */
static void trim_logs(struct mps_daemon *daemon, off_t at)
{
	static const char *const names[] = { GRAFT_MPS_LOG, GRAFT_MPS_SERVER_LOG };
	struct graft_arena *scratch;
	struct stat st;

	if (at < daemon->trimmed_at + LOG_KEPT)
		return;
	daemon->trimmed_at = at;
	scratch = graft_arena_new(MAX_SCRATCH);
	for (size_t i = 0; scratch && i < GRAFT_COUNT(names); i++) {
		const char *path = graft_arena_printf(scratch, "%s/" LOG_FOLDER "/%s", daemon->directory, names[i]);
		auto_close int fd = path ? open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;

		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > LOG_KEPT)
			(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, st.st_size - LOG_KEPT);
	}
	(void)graft_arena_free(scratch);
}

static void copy_log(struct mps_daemon *daemon)
{
	char bytes[LOG_PART];
	struct stat st;
	off_t at;
	ssize_t n;

	if (daemon->log_fd < 0)
		return;
	at = lseek(daemon->log_fd, 0, SEEK_CUR);
	/* The file was truncated. */
	if (fstat(daemon->log_fd, &st) == 0 && st.st_size < at)
		daemon->trimmed_at = lseek(daemon->log_fd, 0, SEEK_SET);
	while ((n = read(daemon->log_fd, bytes, sizeof(bytes))) > 0) {
		if (daemon->host->output_fd >= 0)
			(void)graft_write_all(daemon->host->output_fd, bytes, (size_t)n);
	}
	trim_logs(daemon, lseek(daemon->log_fd, 0, SEEK_CUR));
}

static void log_changed(void *arg, short events)
{
	struct mps_daemon *daemon = arg;
	_Alignas(struct inotify_event) char bytes[4096];

	(void)events;
	while (read(daemon->events.fd, bytes, sizeof(bytes)) > 0)
		;
	copy_log(daemon);
}

/* Reads from its beginning, or from its end for a daemon that was running before. */
static void follow_log(struct mps_daemon *daemon, const struct graft_mps *mps, bool from_end)
{
	const char *path = graft_arena_printf(mps->arena, "%s/" GRAFT_MPS_LOG, mps->log);
	struct graft_error err = { .status = GRAFT_OK };
	struct stat st;

	daemon->log_fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	if (daemon->log_fd >= 0 && (fstat(daemon->log_fd, &st) < 0 || !S_ISREG(st.st_mode)))
		(void)close(TAKE_FD(daemon->log_fd));
	if (daemon->log_fd < 0)
		return;
	if (from_end)
		(void)lseek(daemon->log_fd, 0, SEEK_END);
	daemon->events = (struct graft_loop_watch){
		.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), .events = POLLIN, .ready = log_changed, .arg = daemon
	};
	if (daemon->events.fd < 0 || inotify_add_watch(daemon->events.fd, path, IN_MODIFY) < 0 ||
	    graft_loop_watch(daemon->host->loop, &daemon->events, &err) < 0)
		graft_warn(daemon->host->log, "cannot follow %s: %s", path, err.msg[0] ? err.msg : strerror(errno));
	copy_log(daemon);
}

/* ---- its end without mps_daemon_stop() ---- */

static void remove_started(const struct mps_daemon *daemon)
{
	struct graft_arena *scratch = graft_arena_new(MAX_SCRATCH);
	struct graft_error why = { .status = GRAFT_OK };
	const char *path = scratch ? mps_place_of(daemon, STARTED, scratch) : NULL;

	if (path && graft_host_file_remove(path, &why) < 0)
		graft_warn(daemon->host->log, "%s", why.msg);
	(void)graft_arena_free(scratch);
}

static void daemon_has_ended(struct mps_daemon *daemon)
{
	copy_log(daemon);
	unwatch(daemon);
	daemon->running = false;
	remove_started(daemon);
	graft_warn(daemon->host->log, "%s: the MPS daemon, process %d, has ended, and so have its programs",
		   daemon->plan.resource, (int)daemon->pid);
	daemon->pid = 0;
	daemon->host->ended(daemon->host->arg);
}

static void process_ended(void *arg, short events)
{
	(void)events;
	daemon_has_ended(arg);
}

static void look_due(void *arg)
{
	struct mps_daemon *daemon = arg;

	if (kill(daemon->pid, 0) < 0 && errno == ESRCH)
		daemon_has_ended(daemon);
	else
		graft_loop_set_timer(daemon->host->loop, &daemon->look, LOOK_MS);
}

/* BASELINE 5.3: pidfd_open(2). */
static void watch_process(struct mps_daemon *daemon)
{
	struct graft_error why = { .status = GRAFT_OK };

	daemon->look = (struct graft_loop_timer){ .due = look_due, .arg = daemon };
	if (daemon->pid == 0)
		return;
	daemon->process = (struct graft_loop_watch){
		.fd = graft_pidfd_open(daemon->pid, 0), .events = POLLIN, .ready = process_ended, .arg = daemon
	};
	if (daemon->process.fd < 0 || graft_loop_watch(daemon->host->loop, &daemon->process, &why) < 0)
		graft_loop_set_timer(daemon->host->loop, &daemon->look, LOOK_MS);
}

/* ---- start ---- */

static int write_state_file(const struct mps_daemon *daemon, const char *name, const char *text,
			    struct graft_arena *arena, struct graft_error *err)
{
	const char *path = mps_place_of(daemon, name, arena);

	return path ? graft_host_file_write(path, text, strlen(text), RECORD_MODE, err) : graft_fail_memory(err);
}

static void set_modes(const struct mps_daemon *daemon, const struct graft_mps *mps)
{
	struct graft_error why = { .status = GRAFT_OK };

	for (size_t i = 0; i < daemon->plan.n_gpus; i++) {
		if (graft_mps_set_mode(mps, daemon->plan.gpus[i].uuid, GRAFT_MPS_SHARED, &why) < 0)
			graft_warn(daemon->host->log, "cannot set the compute mode of %s: %s",
				   daemon->plan.gpus[i].uuid, GRAFT_ERROR_TEXT(&why));
		graft_error_clear(&why);
	}
}

static int set_exclusive_modes(const struct mps_daemon *daemon, const struct graft_mps *mps, struct graft_error *err)
{
	for (size_t i = 0; i < daemon->plan.n_gpus; i++) {
		if (graft_mps_set_mode(mps, daemon->plan.gpus[i].uuid, GRAFT_MPS_EXCLUSIVE, err) < 0)
			return -1;
	}
	return 0;
}

static int set_mps_limits(const struct mps_daemon *daemon, const struct graft_mps *mps, struct graft_error *err)
{
	uint32_t *mib = graft_arena_list(mps->arena, daemon->plan.n_gpus, sizeof(*mib));

	if (!mib)
		return graft_fail_memory(err);
	for (size_t i = 0; i < daemon->plan.n_gpus; i++)
		mib[i] = daemon->plan.gpus[i].mib;
	return graft_mps_limit(mps, daemon->plan.percent, mib, daemon->plan.n_gpus, err);
}

static int start_in(struct mps_daemon *daemon, struct graft_mps *mps, struct graft_error *err)
{
	if (graft_mps_make_directories(mps, shm_size(mps->arena), err) < 0 ||
	    write_state_file(daemon, RECORD, daemon->text, mps->arena, err) < 0 ||
	    set_exclusive_modes(daemon, mps, err) < 0 || graft_mps_start(mps, err) < 0 ||
	    set_mps_limits(daemon, mps, err) < 0 || write_state_file(daemon, STARTED, "", mps->arena, err) < 0)
		return -1;
	daemon->pid = graft_mps_pid(mps);
	daemon->running = true;
	watch_process(daemon);
	follow_log(daemon, mps, false);
	graft_info(daemon->host->log,
		   "%s: MPS daemon started, process %d, for %zu GPU%s; each program gets %u%% of one",
		   daemon->plan.resource, (int)daemon->pid, daemon->plan.n_gpus, daemon->plan.n_gpus == 1 ? "" : "s",
		   daemon->plan.percent);
	return 0;
}

int mps_daemon_start(struct mps_daemon *daemon, struct graft_error *err)
{
	struct graft_arena *scratch = graft_arena_new(MAX_SCRATCH);
	struct graft_mps mps;
	int rc;

	rc = scratch && describe_mps(daemon, scratch, &mps) == 0 ? start_in(daemon, &mps, err) : graft_fail_memory(err);
	if (rc < 0)
		mps_daemon_stop(daemon);
	(void)graft_arena_free(scratch);
	return rc < 0 ? graft_wrap(err, "%s", daemon->plan.resource) : 0;
}

bool mps_daemon_adopt(struct mps_daemon *daemon)
{
	struct graft_arena *scratch = graft_arena_new(MAX_SCRATCH);
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_mps mps;
	const char *answer;

	if (scratch && describe_mps(daemon, scratch, &mps) == 0 && (daemon->pid = graft_mps_pid(&mps)) > 0 &&
	    graft_mps_ask(&mps, "get_server_list", &answer, &why) == 0 && set_mps_limits(daemon, &mps, &why) == 0 &&
	    write_state_file(daemon, STARTED, "", scratch, &why) == 0) {
		daemon->running = true;
		watch_process(daemon);
		follow_log(daemon, &mps, true);
		graft_info(daemon->host->log, "%s: MPS daemon found running, process %d", daemon->plan.resource,
			   (int)daemon->pid);
	}
	(void)graft_arena_free(scratch);
	return daemon->running;
}

/* ---- end ---- */

static void remove_logs(const struct graft_mps *mps)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_error why = { .status = GRAFT_OK };
	const char **names = NULL;
	size_t n = 0;

	if (graft_root_open(&root, mps->log, NULL) < 0 ||
	    graft_root_list(&root, "/", LOGS_MAX, mps->arena, &names, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		const char *path = graft_arena_printf(mps->arena, "%s/%s", mps->log, names[i]);

		if (path)
			(void)graft_host_file_remove(path, &why);
	}
	(void)graft_host_folder_remove(mps->log, &why);
}

static void stop_in(const struct mps_daemon *daemon, const struct graft_mps *mps)
{
	struct graft_error why = { .status = GRAFT_OK };
	const char *path = mps_place_of(daemon, RECORD, mps->arena), *answer;

	if (graft_mps_pid(mps) > 0 || graft_mps_ask(mps, "get_server_list", &answer, &why) == 0) {
		if (graft_mps_quit(mps, &why) < 0)
			graft_warn(daemon->host->log, "%s: cannot end the MPS daemon: %s", daemon->plan.resource,
				   GRAFT_ERROR_TEXT(&why));
		else
			graft_info(daemon->host->log, "%s: MPS daemon ended", daemon->plan.resource);
	}
	set_modes(daemon, mps);
	remove_logs(mps);
	if (path)
		(void)graft_host_file_remove(path, &why);
}

void mps_daemon_stop(struct mps_daemon *daemon)
{
	struct graft_arena *scratch = graft_arena_new(MAX_SCRATCH);
	struct graft_mps mps;

	remove_started(daemon);
	if (scratch && describe_mps(daemon, scratch, &mps) == 0)
		stop_in(daemon, &mps);
	copy_log(daemon);
	unwatch(daemon);
	daemon->running = false;
	daemon->pid = 0;
	(void)graft_arena_free(scratch);
}
