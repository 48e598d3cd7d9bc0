/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_reload: makes the engine read its files (SPEC installer-and-nri 5) if it has not: an
 * unnecessary restart of containerd makes a node's pods unready.
 *
 * The process is the one that answers on the engine's socket: with socket activation, systemd is
 * the one that opened it. SECURITY: only a process with the engine's name is signalled, and never a
 * PID below 2, which would mean several processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dial.h"
#include "base/root.h"
#include "base/strings.h"
#include "base/sys.h"
#include "cli/ctk/child.h"
#include "cli/installer/installer.h"
#include "cli/installer/systemd_unit.h"
#include "engine/docker_info.h"
#include "lease/lease_alive.h"

#define PENDING     ".engine-has-to-read"
#define RETRY_MS    5000
#define ANSWER_MS   2000
#define ANSWER_MAX  ((size_t)4 << 20)
#define RESTART_MS  60000
#define TICK_MARGIN ((int64_t)20) /* ms: start times of processes are that coarse */

/* ---- what was not finished ---- */

static const char *pending_file(const struct installer_options *o)
{
	return graft_arena_printf(o->base.ctk->arena, "%s/" PENDING, o->install_dir);
}

void installer_engine_note_pending(const struct installer_options *o)
{
	const char *path = pending_file(o);
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644) : -1;

	if (fd >= 0)
		(void)close(fd);
}

static bool is_pending(const struct installer_options *o)
{
	const char *path = pending_file(o);
	struct stat st;

	return path && lstat(path, &st) == 0;
}

static void drop_pending(const struct installer_options *o)
{
	const char *path = pending_file(o);

	if (path)
		(void)unlink(path);
}

/* ---- the process ---- */

struct engine_process {
	pid_t pid;
	int64_t start_ms;           /* -1: not known */
	struct graft_buffer answer; /* its answer */
};

static bool is_engine(const struct installer_options *o, pid_t pid)
{
	const char *name = o->engine == &graft_engine_docker ? "dockerd" : o->engine->name;
	char path[64], comm[32];
	auto_close int fd = -1;
	ssize_t n;

	if (pid < 2)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, comm, sizeof(comm) - 1);
	if (n <= 0)
		return false;
	comm[n] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
	return strcmp(comm, name) == 0;
}

/* Receives once. Returns the number of bytes, or -errno; *ret_pid is the sender, 0 if unknown. */
static ssize_t receive_with_sender(int fd, char *bytes, size_t size, pid_t *ret_pid)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec part = { bytes, size };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)
	};
	ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *header;
	struct ucred sender;

	*ret_pid = 0;
	header = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_CREDENTIALS) {
		memcpy(&sender, CMSG_DATA(header), sizeof(sender));
		*ret_pid = sender.pid;
	}
	return n < 0 ? -errno : n;
}

static int connect_to_engine(const struct installer_options *o, struct graft_error *err)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, rc;

	/* Before anything is received: bytes that come earlier have no sender. */
	rc = fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) < 0 ? -errno
										      : graft_dial(fd, o->socket);
	return rc < 0 ? graft_fail_errno(err, -rc, "unable to dial %s", o->socket) : TAKE_FD(fd);
}

/* Reads what the engine sends: all of Docker's answer, the first bytes of others. */
static void listen_to_engine(const struct installer_options *o, int fd, struct engine_process *process)
{
	int64_t end_ms = graft_clock_ms() + ANSWER_MS;
	bool whole = o->engine == &graft_engine_docker;
	char bytes[8192];

	for (;;) {
		struct pollfd polled = { .fd = fd, .events = POLLIN };
		int64_t left = end_ms - graft_clock_ms();
		ssize_t n;
		pid_t pid;

		if (left <= 0 || poll(&polled, 1, (int)left) <= 0)
			return;
		n = receive_with_sender(fd, bytes, sizeof(bytes), &pid);
		if (n <= 0)
			return;
		if (process->pid == 0 && is_engine(o, pid))
			process->pid = pid;
		graft_buffer_add(&process->answer, bytes, (size_t)n);
		if (!whole)
			return;
	}
}

/* Milliseconds of the host's running time at which the process started; -1: not known. */
static int64_t start_of(pid_t pid, struct graft_arena *arena)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	uint64_t ticks;
	int rc;

	if (graft_root_open(&root, "/", NULL) < 0)
		return -1;
	ticks = graft_lease_process_start(&root, (uint32_t)pid, arena, &rc);
	return rc < 0 || ticks == 0 ? -1 : (int64_t)ticks * 1000 / sysconf(_SC_CLK_TCK);
}

static int find_engine(const struct installer_options *o, struct engine_process *process, struct graft_error *err)
{
	auto_close int fd = connect_to_engine(o, err);
	struct ucred peer = { .pid = 0 };
	socklen_t size = sizeof(peer);

	process->pid = 0;
	graft_buffer_done(&process->answer);
	process->answer = (struct graft_buffer){ .max = ANSWER_MAX };
	if (fd < 0)
		return -1;
	if (o->engine == &graft_engine_docker)
		(void)!send(fd, GRAFT_DOCKER_INFO_REQUEST, strlen(GRAFT_DOCKER_INFO_REQUEST), MSG_NOSIGNAL);
	listen_to_engine(o, fd, process);
	if (process->pid == 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && is_engine(o, peer.pid))
		process->pid = peer.pid;
	if (process->pid == 0)
		return graft_fail(err, GRAFT_NOT_FOUND, 0,
				  "no process of %s answers on %s. Does the pod have hostPID: true?", o->engine->name,
				  o->socket);
	process->start_ms = start_of(process->pid, o->base.ctk->arena);
	return 0;
}

/* ---- has it read its files? ---- */

static int64_t clock_ms(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_newer(const char *path, int64_t start_ms)
{
	struct stat st;
	int64_t age_ms;

	if (!path || stat(path, &st) < 0)
		return false;
	age_ms = clock_ms(CLOCK_REALTIME) - ((int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000);
	/* Written before the clock was set back: it would seem newer than each new engine. */
	if (age_ms < 0)
		return false;
	return clock_ms(CLOCK_BOOTTIME) - age_ms > start_ms + TICK_MARGIN;
}

/*
 * Asks Docker which runtimes it has. A signal may have reached it, so its start time proves
 * nothing.
 */
static bool docker_has_read(const struct installer_options *o, const struct engine_process *process)
{
	struct installer_runtime runtimes[INSTALLER_RUNTIMES];
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_docker_info info;

	if (graft_docker_info_parse(graft_buffer_text(&process->answer), process->answer.length, o->base.ctk->arena,
				    &info, &err) < 0 ||
	    installer_list_runtimes(o, runtimes, &err) < 0)
		return true; /* a signal would not change its answer */
	for (size_t i = 0; i < INSTALLER_RUNTIMES; i++) {
		bool has = false;

		for (size_t k = 0; k < info.n_runtimes; k++)
			has = has || strcmp(info.runtimes[k].name, runtimes[i].name) == 0;
		if (!has || (runtimes[i].is_default && info.default_runtime &&
			     strcmp(info.default_runtime, runtimes[i].name) != 0))
			return false;
	}
	return true;
}

static bool has_read(const struct installer_options *o, const struct engine_process *process)
{
	if (o->engine == &graft_engine_docker)
		return docker_has_read(o, process);
	return process->start_ms < 0 ||
	       (!is_newer(o->config, process->start_ms) && !is_newer(o->drop_in_path, process->start_ms));
}

/* ---- the ways ---- */

/*
 * SECURITY: the engine may have ended since it was found, and its process ID may be another
 * process's. So the process is compared after its pidfd is open. BASELINE 5.3: before pidfd_open(2)
 * a moment remains. Returns 1, 0 if it has ended, or -1 with errno.
 */
static int hang_up(const struct installer_options *o, const struct engine_process *process)
{
	auto_close int fd = graft_pidfd_open(process->pid, 0);
	int rc;

	if (!is_engine(o, process->pid) || start_of(process->pid, o->base.ctk->arena) != process->start_ms)
		return 0;
	rc = fd >= 0 ? graft_pidfd_send_signal(fd, SIGHUP) : kill(process->pid, SIGHUP);
	return rc == 0 ? 1 : errno == ESRCH ? 0 : -1;
}

static int reload_by_signal(const struct installer_options *o, bool needed, int tries, struct graft_error *err)
{
	const struct graft_log *log = &o->base.ctk->log;
	struct engine_process process = { .pid = 0 };
	char text[800];
	int rc;

	for (int i = 0;; i++) {
		rc = find_engine(o, &process, err);
		if (rc == 0 || i + 1 >= tries)
			break;
		graft_warn(log, "Error signaling %s, attempt %d/%d: %s", o->engine->name, i + 1, tries,
			   graft_error_text(err, text, sizeof(text)));
		(void)poll(NULL, 0, RETRY_MS);
	}
	if (rc == 0 && !needed && has_read(o, &process)) {
		graft_info(log, "%s has already read its configuration: not signaling it", o->engine->name);
	} else if (rc == 0) {
		graft_info(log, "Sending SIGHUP signal to %s (PID %d)", o->engine->name, (int)process.pid);
		rc = hang_up(o, &process);
		if (rc < 0)
			(void)graft_fail_errno(err, errno, "unable to send SIGHUP to %s", o->engine->name);
		else if (rc == 0)
			graft_info(log, "%s has ended meanwhile: it reads its configuration when it starts",
				   o->engine->name);
	}
	graft_buffer_done(&process.answer);
	return rc < 0 ? graft_wrap(err, "unable to signal %s", o->engine->name) : 0;
}

static int restart_by_program(const struct installer_options *o, const char *service, struct graft_error *err)
{
	const char *const argv[] = { "systemctl", "restart", service, NULL };
	const struct ctk_child child = { .argv = argv, .root = installer_other_root(o), .timeout_ms = RESTART_MS };
	struct ctk_child_result result;

	if (ctk_child_run(&child, o->base.ctk->arena, &result, err) < 0)
		return -1;
	if (result.status != 0)
		return graft_fail(err, GRAFT_PROGRAM, 0, "systemctl restart %s: exit status %d: %s", service,
				  result.status, result.err);
	return 0;
}

static int reload_by_systemd(const struct installer_options *o, bool needed, struct graft_error *err)
{
	const char *path = installer_host_path(o, "/run/systemd/private"), *service;
	const struct graft_log *log = &o->base.ctk->log;
	struct engine_process process = { .pid = 0 };
	struct graft_error ignored = { .status = GRAFT_OK };
	struct stat st;
	int rc;

	if (!needed && find_engine(o, &process, &ignored) == 0)
		needed = !has_read(o, &process);
	graft_buffer_done(&process.answer);
	if (!needed) {
		graft_info(log, "%s has already read its configuration: not restarting it", o->engine->name);
		return 0;
	}
	service = graft_arena_printf(o->base.ctk->arena, "%s.service", o->engine->name);
	if (!path || !service)
		return graft_fail_memory(err);
	graft_info(log, "Restarting %s using systemd", o->engine->name);
	rc = installer_stat_below(o->host_root, "/run/systemd/private", &st)
		 ? installer_systemd_restart(path, service, RESTART_MS, err)
		 : restart_by_program(o, service, err);
	return rc < 0 ? graft_wrap(err, "error restarting %s using systemd", o->engine->name) : 0;
}

int installer_engine_reload(const struct installer_options *o, bool changed, int tries, struct graft_error *err)
{
	bool needed = changed || is_pending(o);
	int rc = 0;

	if (o->by_hook)
		return 0;
	switch (o->restart) {
	case INSTALLER_RESTART_NONE:
		if (needed)
			graft_warn(&o->base.ctk->log, "Skipping restart of %s due to --restart-mode=none",
				   o->engine->name);
		break;
	case INSTALLER_RESTART_SIGNAL:
		rc = reload_by_signal(o, needed, tries, err);
		break;
	case INSTALLER_RESTART_SYSTEMD:
		rc = reload_by_systemd(o, needed, err);
		break;
	}
	if (rc == 0)
		drop_pending(o);
	return rc;
}
