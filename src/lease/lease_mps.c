/* SPDX-License-Identifier: Apache-2.0 */
/* lease_mps: the side that takes leases: finds a keeper, or starts one, and waits for it. */
#include "lease/lease_mps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/listing.h"
#include "base/root.h"
#include "base/strings.h"
#include "base/sys.h"
#include "lease/lease_mps_parts.h"

#define CTK         "nvidia-ctk"
#define CTK_DEFAULT "/usr/bin/" CTK
#define SYSTEMD     "/run/systemd/system"
#define SYSTEMD_RUN "/usr/bin/systemd-run"
#define CONFIG_NAME "NVIDIA_CTK_CONFIG_FILE_PATH"
#define LOCK_MS     60000
#define START_MS    60000
#define BEGIN_MS    5000
#define PAUSE_NS    2000000L
#define OLD_FD_MAX  4096 /* for kernels without close_range(2) */
#define NOT_BEGUN   127
#define STATE_MAX   2048u
#define NAMES_MAX   4096u

/* ---- places ---- */

int graft_lease_mps_place(const struct graft_config *config, const char *gpu, struct graft_arena *arena,
			  struct graft_lease_mps *ret_mps, struct graft_error *err)
{
	ret_mps->base = graft_arena_printf(arena, "%s/" GRAFT_LEASE_MPS "/%s", config->leases.directory, gpu);
	ret_mps->pipe = graft_arena_printf(arena, "%s/pipe", ret_mps->base);
	ret_mps->shm = graft_arena_printf(arena, "%s/shm", ret_mps->base);
	ret_mps->log = graft_arena_printf(arena, "%s/log", ret_mps->base);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

/* The GPU of which the lease has a slot, or NULL. With MPS there is at most one. */
static const char *shared_gpu_of(const struct graft_config *config, const struct graft_lease *lease)
{
	bool shared = strcmp(config->leases.sharing, "mps") == 0 && lease->n_slots > 0 && lease->slots[0].replica > 0;

	return shared ? lease->slots[0].gpu : NULL;
}

int graft_lease_mps_find(const struct graft_config *config, const struct graft_lease *lease, struct graft_arena *arena,
			 struct graft_lease_mps *ret_mps, struct graft_error *err)
{
	const char *gpu = shared_gpu_of(config, lease);
	struct stat st;

	*ret_mps = (struct graft_lease_mps){ .base = NULL };
	if (!gpu)
		return 0;
	if (graft_lease_mps_place(config, gpu, arena, ret_mps, err) < 0)
		return -1;
	if (stat(ret_mps->shm, &st) < 0)
		ret_mps->shm = NULL;
	return 0;
}

int graft_lease_mps_variables(const struct graft_lease *lease, const char *pipe, struct graft_arena *arena,
			      const char ***variables, size_t *n, struct graft_error *err)
{
	const char *text = graft_arena_printf(arena, "CUDA_MPS_PIPE_DIRECTORY=%s", pipe);

	if (!text || !graft_arena_push_string(arena, variables, n, text))
		return graft_fail_memory(err);
	if (lease->limit_mib > 0) {
		text = graft_arena_printf(arena, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=%uM", lease->limit_mib);
		if (!text || !graft_arena_push_string(arena, variables, n, text))
			return graft_fail_memory(err);
	}
	if (lease->limit_percent > 0) {
		text = graft_arena_printf(arena, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=%u", lease->limit_percent);
		if (!text || !graft_arena_push_string(arena, variables, n, text))
			return graft_fail_memory(err);
	}
	return 0;
}

int graft_lease_mps_open(const struct graft_lease_mps *mps, const char *name, struct graft_arena *arena)
{
	const char *path = graft_arena_printf(arena, "%s/%s", mps->base, name);
	int fd = path ? open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600) : -1;
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		(void)close(fd);
		errno = EINVAL;
		fd = -1;
	}
	return fd;
}

int graft_lease_mps_lock(const struct graft_lease_mps *mps, struct graft_arena *arena, int *ret_fd,
			 struct graft_error *err)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const int64_t until = graft_clock_ms() + LOCK_MS;

	*ret_fd = graft_lease_mps_open(mps, GRAFT_LEASE_MPS_LOCK, arena);
	if (*ret_fd < 0)
		return graft_fail_errno(err, errno, "%s/" GRAFT_LEASE_MPS_LOCK, mps->base);
	while (flock(*ret_fd, LOCK_EX | LOCK_NB) < 0) {
		if (graft_clock_ms() >= until) {
			(void)close(TAKE_FD(*ret_fd));
			return graft_fail(err, GRAFT_LEASES, 0,
					  "another process has held %s/" GRAFT_LEASE_MPS_LOCK " for %d s", mps->base,
					  LOCK_MS / 1000);
		}
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

/* ---- the keeper, from outside ---- */

static bool has_keeper(const struct graft_lease_mps *mps, struct graft_arena *arena)
{
	auto_close int fd = graft_lease_mps_open(mps, GRAFT_LEASE_MPS_KEEPER, arena);

	/* Only root can see. */
	if (fd < 0)
		return errno == EACCES;
	/* The lock goes with the descriptor. */
	return flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* "ready", the reason of a failure, or "" until the state is known. */
static const char *read_mps_state(const struct graft_lease_mps *mps, struct graft_arena *arena)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	const char *text = "";
	size_t length;

	if (graft_root_open(&root, mps->base, NULL) < 0 ||
	    graft_root_read(&root, GRAFT_LEASE_MPS_STATE, STATE_MAX, arena, &text, &length) < 0)
		return "";
	return text;
}

/* The program next to this one, or the installed one. */
static const char *find_ctk(struct graft_arena *arena)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *found;
	char *slash;
	struct stat st;

	path[length > 0 ? length : 0] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return CTK_DEFAULT;
	*slash = '\0';
	found = graft_arena_printf(arena, "%s/" CTK, path);
	return found && stat(found, &st) == 0 && S_ISREG(st.st_mode) ? found : CTK_DEFAULT;
}

static void close_all_but_three(void)
{
	if (graft_close_range(STDERR_FILENO + 1, ~0u, 0) == 0)
		return;
	/* BASELINE 5.9: close_range(2). */
	for (int fd = STDERR_FILENO + 1; fd < OLD_FD_MAX; fd++)
		(void)close(fd);
}

static bool has_systemd(void)
{
	struct stat st;

	return stat(SYSTEMD, &st) == 0 && S_ISDIR(st.st_mode) && stat(SYSTEMD_RUN, &st) == 0;
}

struct keeper_words {
	char *own[5];      /* nvidia-ctk --quiet lease mps UUID */
	char *systemd[12]; /* systemd-run ... with the same arguments */
	char *environment[3];
	const char *log;
};

/* execve(2) does not change its arguments, although its type allows it. */
static char *word(struct graft_arena *arena, const char *text)
{
	return graft_arena_strdup(arena, text ? text : "");
}

static int make_keeper_words(const struct graft_config *config, const struct graft_lease_mps *mps, const char *gpu,
			     struct graft_arena *arena, struct keeper_words *words, struct graft_error *err)
{
	const char *const own[] = { find_ctk(arena), "lease", GRAFT_LEASE_MPS_COMMAND, gpu };
	const char *setting = config->file ? graft_arena_printf(arena, CONFIG_NAME "=%s", config->file)
					   : CONFIG_NAME "=";
	const char *const systemd[] = { SYSTEMD_RUN,
					"--quiet",
					"--collect",
					graft_arena_printf(arena, "--unit=graft-mps@%s", gpu),
					graft_arena_printf(arena, "--setenv=%s", setting),
					"--" };
	size_t n = GRAFT_COUNT(systemd);

	*words = (struct keeper_words){ .log = graft_arena_printf(arena, "%s/supervisor.log", mps->base) };
	for (size_t i = 0; i < GRAFT_COUNT(own); i++)
		words->own[i] = word(arena, own[i]);
	for (size_t i = 0; i < n; i++)
		words->systemd[i] = word(arena, systemd[i]);
	for (size_t i = 0; i < GRAFT_COUNT(own); i++)
		words->systemd[n + i] = words->own[i];
	words->environment[0] = word(arena, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
	words->environment[1] = word(arena, setting);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

_Noreturn static void become_keeper(const struct keeper_words *words, char *const *arguments)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int log_fd = open(words->log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (setsid() < 0 || chdir("/") < 0 || dup2(null_fd, STDIN_FILENO) < 0 ||
	    dup2(log_fd >= 0 ? log_fd : null_fd, STDOUT_FILENO) < 0 ||
	    dup2(log_fd >= 0 ? log_fd : null_fd, STDERR_FILENO) < 0)
		_exit(NOT_BEGUN);
	close_all_but_three();
	(void)execve(arguments[0], arguments, words->environment);
	_exit(NOT_BEGUN);
}

/* Starts a program in the background, or, with `wait`, until it has ended. Returns its status. */
static int start_keeper_program(const struct keeper_words *words, char *const *arguments, bool wait)
{
	pid_t pid = fork();
	int status = 0;

	if (pid < 0)
		return NOT_BEGUN;
	/* Twice, so that what stays is a child of init. */
	if (pid == 0 && !wait && fork() != 0)
		_exit(0);
	if (pid == 0)
		become_keeper(words, arguments);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : NOT_BEGUN;
}

static int wait_for_keeper(const struct graft_lease_mps *mps, struct graft_arena *arena, struct graft_error *err)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const int64_t begun = graft_clock_ms(), until = begun + START_MS;
	struct graft_arena *scratch;
	const char *state;

	for (;;) {
		scratch = graft_arena_new((size_t)1 << 20);
		state = scratch ? graft_arena_strdup(arena, read_mps_state(mps, scratch)) : NULL;
		(void)graft_arena_free(scratch);
		if (!state)
			return graft_fail_memory(err);
		if (strcmp(state, GRAFT_LEASE_MPS_READY) == 0)
			return 0;
		if (state[0] != '\0')
			return graft_fail(err, GRAFT_PROGRAM, 0, "%.600s", state);
		if (graft_clock_ms() >= until || (graft_clock_ms() >= begun + BEGIN_MS && !has_keeper(mps, arena)))
			break;
		(void)nanosleep(&pause, NULL);
	}
	(void)graft_fail(err, GRAFT_TIMEOUT, 0, "MPS is not ready after %lld s",
			 (long long)(graft_clock_ms() - begun) / 1000);
	return graft_with_hint(
	    err, graft_arena_printf(arena, "See %s/supervisor.log and %s/control.log.", mps->base, mps->log));
}

static int start_keeper(const struct graft_config *config, const struct graft_lease_mps *mps, const char *gpu,
			struct graft_arena *arena, struct graft_error *err)
{
	const char *state = graft_arena_printf(arena, "%s/" GRAFT_LEASE_MPS_STATE, mps->base);
	struct keeper_words words;

	if (!state || make_keeper_words(config, mps, gpu, arena, &words, err) < 0)
		return graft_fail_memory(err);
	if (unlink(state) < 0 && errno != ENOENT)
		return graft_fail_errno(err, errno, "%s", state);
	/* In a unit of its own it outlives the session or the engine that started it. */
	if ((!has_systemd() || start_keeper_program(&words, words.systemd, true) != 0) &&
	    start_keeper_program(&words, words.own, false) != 0)
		return graft_fail(err, GRAFT_PROGRAM, 0, "%s cannot be started", words.own[0]);
	return wait_for_keeper(mps, arena, err);
}

int graft_lease_mps_ensure_keeper(const struct graft_config *config, const char *gpu, struct graft_arena *arena,
				  struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	auto_close int lock_fd = -1, base_fd = -1;
	struct graft_lease_mps mps;
	int rc;

	if (graft_lease_mps_place(config, gpu, arena, &mps, err) < 0 || graft_root_open(&root, "/", err) < 0)
		return -1;
	rc = graft_root_mkdir(&root, mps.base, 0755, NULL, &base_fd);
	if (rc < 0)
		return graft_fail_errno(err, -rc, "cannot make %s", mps.base);
	if (graft_lease_mps_lock(&mps, arena, &lock_fd, err) < 0)
		return -1;
	rc = has_keeper(&mps, arena) ? wait_for_keeper(&mps, arena, err) : start_keeper(config, &mps, gpu, arena, err);
	/* One that was killed before it was ready may have changed the compute mode. */
	if (rc < 0 && err && err->status == GRAFT_TIMEOUT && !has_keeper(&mps, arena))
		rc = start_keeper(config, &mps, gpu, arena, err);
	return rc;
}

int graft_lease_mps_ensure(const struct graft_config *config, const struct graft_lease *lease,
			   const struct graft_log *log, struct graft_arena *arena, struct graft_error *err)
{
	const char *gpu = shared_gpu_of(config, lease);

	if (!gpu)
		return 0;
	graft_debug(log, "MPS for %s", gpu);
	return graft_lease_mps_ensure_keeper(config, gpu, arena, err) < 0 ? graft_wrap(err, "%s cannot be shared", gpu)
									  : 0;
}

/* ---- what is left behind ---- */

/* A keeper resets the compute mode when it ends or fails, but not if it is killed. */
static bool needs_keeper(const struct graft_lease_mps *mps, struct graft_arena *arena)
{
	const char *mode = graft_arena_printf(arena, "%s/" GRAFT_LEASE_MPS_MODE, mps->base);
	struct stat st;

	return (mode && lstat(mode, &st) == 0) || strcmp(read_mps_state(mps, arena), GRAFT_LEASE_MPS_READY) == 0;
}

int graft_lease_mps_abandoned(const struct graft_config *config, struct graft_arena *arena,
			      struct graft_strings *ret_gpus, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	const char **names = NULL,
		   *directory = graft_arena_printf(arena, "%s/" GRAFT_LEASE_MPS, config->leases.directory);
	size_t n = 0;

	*ret_gpus = (struct graft_strings){ .n = 0 };
	if (!directory)
		return graft_fail_memory(err);
	if (graft_root_open(&root, directory, NULL) < 0 ||
	    graft_root_list(&root, "/", NAMES_MAX, arena, &names, &n, NULL) < 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		struct graft_lease_mps mps;

		if (graft_lease_mps_place(config, names[i], arena, &mps, err) < 0)
			return -1;
		if (needs_keeper(&mps, arena) && !has_keeper(&mps, arena) &&
		    !graft_arena_push_string(arena, &ret_gpus->items, &ret_gpus->n, names[i]))
			return graft_fail_memory(err);
	}
	return 0;
}
