/* SPDX-License-Identifier: Apache-2.0 */
/* mps: runs nvidia-cuda-mps-control and nvidia-smi of the driver root, each with a time limit. */
#include "apply/mps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/listing.h"
#include "base/root.h"
#include "base/strings.h"
#include "base/sys.h"

#define CONTROL       "nvidia-cuda-mps-control"
#define SMI           "nvidia-smi"
#define ANSWER_MAX    ((size_t)64 * 1024)
#define ASK_MS        5000
#define START_MS      30000
#define SMI_MS        60000
#define QUIT_MS       10000
#define PAUSE_NS      5000000L
#define NOT_BEGUN     127
#define TMPFS_MAGIC   0x01021994
#define SHM           "/dev/shm"
#define WORDS_MAX     ((size_t)256 << 10) /* of a process */
#define SCRATCH_MAX   ((size_t)64 << 20)
#define PROCESSES_MAX ((size_t)1 << 20)
#define USER_LINE     "\nUid:\t"
#define PIPE_NAME     "CUDA_MPS_PIPE_DIRECTORY"
#define DEVICES_NAME  "CUDA_VISIBLE_DEVICES"

/* Where a program of a foreign driver root finds the daemon's directories. */
#define OTHER_PIPE "/tmp/pipe"
#define OTHER_LOG  "/tmp/log"

static const char *driver_root_of(const struct graft_mps *mps)
{
	return !mps->root || strcmp(mps->root, "/") == 0 ? "" : mps->root;
}

/* ---- a program of the driver ---- */

/* The path below the driver root. */
static int find_driver_program(const struct graft_mps *mps, const struct graft_root *root, const char *name,
			       const char **ret_path, struct graft_error *err)
{
	struct stat st;

	for (const char *at = mps->path; *at != '\0';) {
		int length = (int)strcspn(at, ":");
		const char *path = graft_arena_printf(mps->arena, "%.*s/%s", length, at, name);

		if (!path)
			return graft_fail_memory(err);
		*ret_path = path;
		if (graft_root_stat(root, path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0)
			return 0;
		at += length + (at[length] == ':');
	}
	(void)graft_fail(err, GRAFT_NOT_FOUND, 0, "the driver has no %s", name);
	return graft_with_hint(err, "Install the driver's compute utilities.");
}

/*
 * A whole root file system, such as a driver container's, as opposed to the driver's files alone.
 */
static bool is_whole_system(const struct graft_root *root)
{
	static const char *const loaders[] = { "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1" };
	bool whole = false;

	for (size_t i = 0; i < GRAFT_COUNT(loaders); i++)
		whole |= graft_root_has(root, loaders[i], 0);
	return whole && graft_root_has(root, "/tmp", O_DIRECTORY);
}

struct program {
	const struct graft_mps *mps;
	const char *name;
	const char *const *arguments; /* after its name; NULL-terminated */
	const char *input;            /* NULL = none */
	bool own_shm;                 /* in a mount namespace of its own, with the daemon's /dev/shm */
	const char *path;             /* of the program: below `other`, or as we see it */
	const char *other;            /* its root directory; NULL = ours */
	bool needs_pipe;              /* the daemon's directories exist, and the program searches them */
	int limit_ms;
	const char *output; /* the answer */
};

/*
 * The driver's program finds its server through PATH, and the server finds the driver's libraries.
 */
static char **make_mps_environment(const struct program *program)
{
	const struct graft_mps *mps = program->mps;
	const char *root = program->other ? "" : driver_root_of(mps), *path = "PATH=";
	char **environment = graft_arena_list(mps->arena, 7, sizeof(*environment));
	size_t n = 0;

	if (!environment)
		return NULL;
	for (const char *at = mps->path; path && *at != '\0';) {
		int length = (int)strcspn(at, ":");

		path = graft_arena_printf(mps->arena, "%s%s%.*s:", path, root, length, at);
		at += length + (at[length] == ':');
	}
	environment[n++] = path ? graft_arena_printf(mps->arena, "%s/usr/bin:/bin", path) : NULL;
	environment[n++] = graft_arena_strdup(mps->arena, "LC_ALL=C");
	environment[n++] = graft_arena_printf(mps->arena, PIPE_NAME "=%s", program->other ? OTHER_PIPE : mps->pipe);
	environment[n++] = graft_arena_printf(mps->arena, "CUDA_MPS_LOG_DIRECTORY=%s",
					      program->other ? OTHER_LOG : mps->log);
	if (mps->devices)
		environment[n++] = graft_arena_printf(mps->arena, DEVICES_NAME "=%s", mps->devices);
	if (root[0] != '\0')
		environment[n++] = graft_arena_printf(mps->arena,
						      "LD_LIBRARY_PATH=%s/usr/lib/x86_64-linux-gnu:%s/usr/lib/"
						      "aarch64-linux-gnu:%s/usr/lib64:%s/usr/lib",
						      root, root, root, root);
	environment[n] = NULL;
	return graft_arena_failed(mps->arena) ? NULL : environment;
}

static int make_own_mounts(void)
{
	return unshare(CLONE_NEWNS) < 0 ? -1 : mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL);
}

static bool is_at_shm(const char *shm)
{
	struct stat there, st;

	return stat(SHM, &there) == 0 && stat(shm, &st) == 0 && there.st_dev == st.st_dev && there.st_ino == st.st_ino;
}

int graft_mps_enter(const char *shm, struct graft_error *err)
{
	if (is_at_shm(shm))
		return 0;
	if (make_own_mounts() < 0 || mount(shm, SHM, NULL, MS_BIND, NULL) < 0)
		return graft_fail(err, GRAFT_MOUNT, errno, "cannot mount %s at " SHM, shm);
	return 0;
}

/* ---- below a driver root that is not ours ---- */

/* Makes one of our directories visible at `place` in the root that is the working directory. */
static int show_directory(const char *directory, const char *place)
{
	if (mkdir(place, 0755) < 0 && errno != EEXIST)
		return -1;
	return mount(directory, place, NULL, MS_BIND | MS_REC, NULL);
}

/*
 * Runs the driver's files with the loader and the C library that they were installed with: those of
 * this system may have another version. Only this process and its children see the mounts.
 */
static int enter_driver_root(const struct program *program)
{
	const struct graft_mps *mps = program->mps;
	const char *shm = mps->shm ? mps->shm : SHM;
	struct stat st;

	if (make_own_mounts() < 0 || chdir(program->other) < 0)
		return -1;
	if (stat("dev/nvidiactl", &st) < 0 && mount("/dev", "dev", NULL, MS_BIND | MS_REC, NULL) < 0)
		return -1;
	if (lstat("proc/self", &st) < 0 && mount("/proc", "proc", NULL, MS_BIND | MS_REC, NULL) < 0)
		return -1;
	if (mount("none", "tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") < 0)
		return -1;
	if (program->needs_pipe &&
	    (show_directory(mps->pipe, &OTHER_PIPE[1]) < 0 || show_directory(mps->log, &OTHER_LOG[1]) < 0 ||
	     mount(shm, &SHM[1], NULL, MS_BIND, NULL) < 0))
		return -1;
	return chroot(".") < 0 ? -1 : chdir("/");
}

_Noreturn static void become_program(const struct program *program, char *const *arguments, char *const *environment,
				     int in_fd, int out_fd)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	if (setsid() < 0 || dup2(in_fd, STDIN_FILENO) < 0 || dup2(out_fd, STDOUT_FILENO) < 0 ||
	    dup2(out_fd, STDERR_FILENO) < 0 || chdir("/") < 0)
		_exit(NOT_BEGUN);
	if (program->other ? enter_driver_root(program) < 0
			   : program->own_shm && program->mps->shm && graft_mps_enter(program->mps->shm, NULL) < 0)
		_exit(NOT_BEGUN);
	(void)execve(program->path, arguments, environment);
	_exit(NOT_BEGUN);
}

/* Returns the exit status, or -1 with GRAFT_TIMEOUT after killing the program. */
static int wait_for_program(const struct program *program, pid_t pid, struct graft_error *err)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const int64_t until = graft_clock_ms() + program->limit_ms;
	int status = 0;

	for (;;) {
		pid_t ended = waitpid(pid, &status, WNOHANG);

		if (ended == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		if (ended < 0 && errno != EINTR)
			return graft_fail_errno(err, errno, "cannot wait for %s", program->name);
		if (graft_clock_ms() >= until)
			break;
		(void)nanosleep(&pause, NULL);
	}
	(void)kill(-pid, SIGKILL);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	return graft_fail(err, GRAFT_TIMEOUT, 0, "%s gave no answer within %d seconds", program->name,
			  program->limit_ms / 1000);
}

/* Returns the program's output, without the last line break. */
static int read_program_answer(struct program *program, int fd, struct graft_error *err)
{
	char text[ANSWER_MAX];
	ssize_t n = pread(fd, text, sizeof(text), 0);

	while (n > 0 && text[n - 1] == '\n')
		n--;
	program->output = graft_arena_strndup(program->mps->arena, text, n > 0 ? (size_t)n : 0);
	return program->output ? 0 : graft_fail_memory(err);
}

static int place_program(struct program *program, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	const char *place = driver_root_of(program->mps);

	if (graft_root_open(&root, place[0] != '\0' ? place : "/", err) < 0 ||
	    find_driver_program(program->mps, &root, program->name, &program->path, err) < 0)
		return -1;
	if (place[0] == '\0')
		return 0;
	if (is_whole_system(&root))
		program->other = place;
	else
		program->path = graft_arena_printf(program->mps->arena, "%s%s", place, program->path);
	return program->path ? 0 : graft_fail_memory(err);
}

static int run_program(struct program *program, struct graft_error *err)
{
	auto_close int in_fd = memfd_create("input", MFD_CLOEXEC), out_fd = memfd_create("output", MFD_CLOEXEC);
	char *arguments[8] = { NULL }, **environment;
	size_t length = program->input ? strlen(program->input) : 0;
	int status;
	pid_t pid;

	if (place_program(program, err) < 0)
		return -1;
	environment = make_mps_environment(program);
	arguments[0] = graft_arena_strdup(program->mps->arena, program->path);
	for (size_t i = 0; program->arguments[i] && i + 2 < GRAFT_COUNT(arguments); i++)
		arguments[i + 1] = graft_arena_strdup(program->mps->arena, program->arguments[i]);
	if (!environment || graft_arena_failed(program->mps->arena))
		return graft_fail_memory(err);
	if (in_fd < 0 || out_fd < 0 || (length > 0 && pwrite(in_fd, program->input, length, 0) != (ssize_t)length))
		return graft_fail_errno(err, errno, "memfd_create failed");
	pid = fork();
	if (pid < 0)
		return graft_fail_errno(err, errno, "process creation failed");
	if (pid == 0)
		become_program(program, arguments, environment, in_fd, out_fd);
	status = wait_for_program(program, pid, err);
	if (status < 0 || read_program_answer(program, out_fd, err) < 0)
		return -1;
	if (status != 0)
		return graft_fail(err, GRAFT_PROGRAM, 0, "%s failed with exit status %d: %.300s", program->name, status,
				  program->output[0] != '\0' ? program->output : "(no output)");
	return 0;
}

/* ---- directories ---- */

/* Labels the directory as writable for containers. Failure is ignored: SELinux may be off. */
static void label_for_containers(const char *path)
{
	static const char label[] = "system_u:object_r:container_file_t:s0";

	(void)setxattr(path, "security.selinux", label, sizeof(label), 0);
}

static int make_mps_directory(const char *path, mode_t mode, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	auto_close int fd = -1;
	int rc;

	if (graft_root_open(&root, "/", err) < 0)
		return -1;
	rc = graft_root_mkdir(&root, path, mode, NULL, &fd);
	return rc < 0 ? graft_fail_errno(err, -rc, "cannot make %s", path) : 0;
}

static bool is_mounted_tmpfs(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat st, parent;
	struct statfs fs;
	char above[4096] = "";

	if (!slash || (size_t)(slash - path) >= sizeof(above))
		return false;
	memcpy(above, path, (size_t)(slash - path));
	return stat(path, &st) == 0 && stat(above, &parent) == 0 && st.st_dev != parent.st_dev &&
	       statfs(path, &fs) == 0 && (unsigned long)fs.f_type == TMPFS_MAGIC;
}

int graft_mps_mount(const char *shm, const char *size, struct graft_arena *arena, struct graft_error *err)
{
	const char *options = graft_arena_printf(arena, "mode=1777,size=%s", size);
	bool mounted;

	if (!options)
		return graft_fail_memory(err);
	if (make_mps_directory(shm, 0755, err) < 0)
		return -1;
	mounted = is_mounted_tmpfs(shm);
	if (!mounted && mount("shm", shm, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0) {
		(void)graft_fail_errno(err, errno, "cannot mount a tmpfs at %s", shm);
		(void)rmdir(shm);
		return -1;
	}
	label_for_containers(shm);
	return mounted ? 0 : 1;
}

int graft_mps_make_directories(struct graft_mps *mps, const char *shm_size, struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };

	if (make_mps_directory(mps->pipe, 0755, err) < 0 || make_mps_directory(mps->log, 0755, err) < 0)
		return -1;
	label_for_containers(mps->pipe);
	if (!mps->shm || graft_mps_mount(mps->shm, shm_size, mps->arena, &why) >= 0)
		return 0;
	if (why.sys != EPERM) {
		*err = why;
		return -1;
	}
	mps->shm = NULL;
	return 0;
}

void graft_mps_unmount(const struct graft_mps *mps)
{
	while (mps->shm && is_mounted_tmpfs(mps->shm)) {
		if (umount2(mps->shm, MNT_DETACH) < 0)
			break;
	}
}

/* ---- the daemon ---- */

int graft_mps_ask(const struct graft_mps *mps, const char *command, const char **ret_answer, struct graft_error *err)
{
	static const char *const none[] = { NULL };
	struct program program = {
		.mps = mps, .name = CONTROL, .arguments = none, .needs_pipe = true, .limit_ms = ASK_MS
	};

	program.input = graft_arena_printf(mps->arena, "%s\n", command);
	if (!program.input)
		return graft_fail_memory(err);
	if (run_program(&program, err) < 0)
		return graft_wrap(err, "MPS, '%.40s'", command);
	*ret_answer = program.output;
	return 0;
}

int graft_mps_start(const struct graft_mps *mps, struct graft_error *err)
{
	static const char *const arguments[] = { "-d", NULL };
	struct program program = { .mps = mps,
				   .name = CONTROL,
				   .arguments = arguments,
				   .own_shm = true,
				   .needs_pipe = true,
				   .limit_ms = START_MS };
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const int64_t until = graft_clock_ms() + ASK_MS;
	const char *answer;

	if (run_program(&program, err) < 0)
		return graft_wrap(err, "MPS cannot be started");
	while (graft_mps_ask(mps, "get_server_list", &answer, err) < 0) {
		if (graft_clock_ms() >= until)
			return graft_wrap(err, "MPS cannot be started");
		graft_error_clear(err);
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

int graft_mps_limit(const struct graft_mps *mps, uint32_t percent, const uint32_t *mib, size_t n_devices,
		    struct graft_error *err)
{
	const char *answer,
	    *command = graft_arena_printf(mps->arena, "set_default_active_thread_percentage %u", percent);

	if (!command)
		return graft_fail_memory(err);
	if (graft_mps_ask(mps, command, &answer, err) < 0)
		return -1;
	for (size_t i = 0; i < n_devices; i++) {
		if (mib[i] == 0)
			continue;
		command = graft_arena_printf(mps->arena, "set_default_device_pinned_mem_limit %zu %uM", i, mib[i]);
		if (!command)
			return graft_fail_memory(err);
		if (graft_mps_ask(mps, command, &answer, err) < 0)
			return -1;
	}
	return 0;
}

/* Returns whether a file of a process contains this string. */
static bool has_process_word(const char *strings, size_t length, const char *text)
{
	for (size_t at = 0; at < length; at += strlen(strings + at) + 1) {
		if (strcmp(strings + at, text) == 0)
			return true;
	}
	return false;
}

/* Its environment has the directory that it was given and the GPUs that it serves. */
static bool has_daemon_environment(const struct graft_mps *mps, const char *strings, size_t length,
				   struct graft_arena *arena)
{
	const char *pipe = graft_arena_printf(arena, PIPE_NAME "=%s", mps->pipe);
	const char *devices = graft_arena_printf(arena, DEVICES_NAME "=%s", mps->devices ? mps->devices : "");

	return pipe && devices &&
	       (has_process_word(strings, length, pipe) ||
		(driver_root_of(mps)[0] != '\0' && has_process_word(strings, length, PIPE_NAME "=" OTHER_PIPE))) &&
	       (!mps->devices || has_process_word(strings, length, devices));
}

/* Returns whether the text of /proc/PID/status names this process's user. */
static bool is_own_user(const char *status)
{
	const char *line = strstr(status, USER_LINE);

	return line && strtoul(line + strlen(USER_LINE), NULL, 10) == getuid();
}

/*
 * SECURITY: neither a process of a container nor one of another user can forge this: the kernel
 * reports what a process executes, as which user, in which PID namespace, and with which arguments
 * and environment.
 */
static bool is_daemon(const struct graft_mps *mps, const struct graft_root *proc, const char *pid,
		      struct graft_arena *arena)
{
	char path[64], program[PATH_MAX];
	struct stat own, its;
	const char *text;
	size_t length;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
	n = readlink(path, program, sizeof(program) - 1);
	program[n > 0 ? n : 0] = '\0';
	/* If an upgrade of the driver has replaced the program, "(deleted)" follows its name. */
	if (!strrchr(program, '/') || !graft_starts_with(strrchr(program, '/') + 1, CONTROL))
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%.20s/ns/pid", pid);
	if (stat(path, &its) < 0 || stat("/proc/self/ns/pid", &own) < 0 || its.st_ino != own.st_ino)
		return false;
	(void)snprintf(path, sizeof(path), "%.20s/status", pid);
	if (graft_root_read(proc, path, WORDS_MAX, arena, &text, &length) < 0 || !is_own_user(text))
		return false;
	(void)snprintf(path, sizeof(path), "%.20s/cmdline", pid);
	if (graft_root_read(proc, path, WORDS_MAX, arena, &text, &length) < 0 || !has_process_word(text, length, "-d"))
		return false;
	(void)snprintf(path, sizeof(path), "%.20s/environ", pid);
	return graft_root_read(proc, path, WORDS_MAX, arena, &text, &length) == 0 &&
	       has_daemon_environment(mps, text, length, arena);
}

pid_t graft_mps_pid(const struct graft_mps *mps)
{
	auto_root struct graft_root proc = GRAFT_ROOT_INIT;
	auto_arena struct graft_arena *scratch = graft_arena_new(SCRATCH_MAX);
	const char **names = NULL;
	size_t n = 0;
	long found = 0;

	if (scratch && graft_root_open(&proc, "/proc", NULL) == 0)
		(void)graft_root_list(&proc, "/", PROCESSES_MAX, scratch, &names, &n, NULL);
	for (size_t i = 0; i < n && found == 0; i++) {
		if (names[i][0] >= '1' && names[i][0] <= '9' && is_daemon(mps, &proc, names[i], scratch))
			found = strtol(names[i], NULL, 10);
	}
	return (pid_t)found;
}

bool graft_mps_has_pid(const struct graft_mps *mps, pid_t pid)
{
	auto_root struct graft_root proc = GRAFT_ROOT_INIT;
	auto_arena struct graft_arena *scratch = graft_arena_new(SCRATCH_MAX);
	char name[16];

	(void)snprintf(name, sizeof(name), "%d", (int)pid);
	return scratch && graft_root_open(&proc, "/proc", NULL) == 0 && is_daemon(mps, &proc, name, scratch);
}

/*
 * Waits until the process has ended. If this process is the first of a container, the daemon
 * becomes its child once it is in the background; elsewhere another process reaps it sooner or
 * later.
 */
static bool has_ended(pid_t pid, int limit_ms)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const int64_t until = graft_clock_ms() + limit_ms;
	auto_close int fd = graft_pidfd_open(pid, 0);
	struct pollfd polled = { .fd = fd, .events = POLLIN };

	if (fd >= 0 && poll(&polled, 1, limit_ms) > 0) {
		(void)waitpid(pid, NULL, WNOHANG);
		return true;
	}
	/* BASELINE 5.3: pidfd_open(2). */
	while (fd < 0) {
		if (waitpid(pid, NULL, WNOHANG) == pid || kill(pid, 0) < 0)
			return true;
		if (graft_clock_ms() >= until)
			break;
		(void)nanosleep(&pause, NULL);
	}
	return false;
}

int graft_mps_quit(const struct graft_mps *mps, struct graft_error *err)
{
	const pid_t pid = graft_mps_pid(mps);
	const char *answer;
	int rc;

	rc = graft_mps_ask(mps, "quit", &answer, err);
	/*
	 * The daemon waits for programs that do not end. By now its PID may belong to another
	 * process.
	 */
	if (pid > 0 && !has_ended(pid, QUIT_MS) && graft_mps_has_pid(mps, pid))
		rc = kill(pid, SIGKILL) < 0 ? graft_fail_errno(err, errno, "kill failed: process %d", (int)pid) : 0;
	return rc;
}

/* ---- the compute mode ---- */

int graft_mps_read_mode(const struct graft_mps *mps, const char *gpu, const char **ret_mode, struct graft_error *err)
{
	const char *const arguments[] = { "-i", gpu, "--query-gpu=compute_mode", "--format=csv,noheader", NULL };
	struct program program = { .mps = mps, .name = SMI, .arguments = arguments, .limit_ms = SMI_MS };

	if (run_program(&program, err) < 0)
		return graft_wrap(err, "compute mode");
	/* nvidia-smi prints "Exclusive_Process" and accepts EXCLUSIVE_PROCESS. */
	*ret_mode = strncasecmp(program.output, GRAFT_MPS_EXCLUSIVE, strlen(GRAFT_MPS_EXCLUSIVE)) == 0
			? GRAFT_MPS_EXCLUSIVE
			: GRAFT_MPS_SHARED;
	return 0;
}

int graft_mps_set_mode(const struct graft_mps *mps, const char *gpu, const char *mode, struct graft_error *err)
{
	const char *const arguments[] = { "-i", gpu, "-c", mode, NULL };
	struct program program = { .mps = mps, .name = SMI, .arguments = arguments, .limit_ms = SMI_MS };

	return run_program(&program, err) < 0 ? graft_wrap(err, "compute mode") : 0;
}
