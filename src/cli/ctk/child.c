/* SPDX-License-Identifier: Apache-2.0 */
/* child: fork, exec and the pipes. Does not know what the program is for. */
#include "cli/ctk/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define OUTPUT_MAX    ((size_t)16 << 20)
#define MAX_VARIABLES 16
#define DEFAULT_PATH  "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* The child's output and, through the third pipe, the errno of a failed start. */
enum { OUT, ERR, WHY, N_PIPES };

struct run {
	int read[N_PIPES], write[N_PIPES];
	struct graft_buffer said[N_PIPES];
	pid_t pid;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static void run_done(struct run *run)
{
	for (int i = 0; i < N_PIPES; i++) {
		close_fd(&run->read[i]);
		close_fd(&run->write[i]);
		graft_buffer_done(&run->said[i]);
	}
	if (run->pid > 0) {
		(void)kill(-run->pid, SIGKILL);
		(void)kill(run->pid, SIGKILL);
		while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
}

static int open_pipes(struct run *run, struct graft_error *err)
{
	for (int i = 0; i < N_PIPES; i++) {
		int fds[2];

		if (pipe2(fds, O_CLOEXEC) < 0)
			return graft_fail_errno(err, errno, "cannot make a pipe");
		run->read[i] = fds[0];
		run->write[i] = fds[1];
	}
	return 0;
}

static char *make_ctk_child_variable(struct graft_arena *arena, const char *name, const char *otherwise)
{
	const char *value = secure_getenv(name);

	return graft_arena_printf(arena, "%s=%s", name, value && *value ? value : otherwise);
}

/* Returns the child's environment in the arena, or NULL if out of memory. */
static char **make_environment(const struct ctk_child *child, struct graft_arena *arena)
{
	char **environment = graft_arena_alloc(arena, (MAX_VARIABLES + 1) * sizeof(*environment));
	size_t n = 0;

	if (!environment)
		return NULL;
	environment[n++] = child->root ? graft_arena_strdup(arena, "PATH=" DEFAULT_PATH)
				       : make_ctk_child_variable(arena, "PATH", DEFAULT_PATH);
	environment[n++] = make_ctk_child_variable(arena, "HOME", "/");
	environment[n++] = graft_arena_strdup(arena, "LC_ALL=C");
	for (const char *const *item = child->variables; item && *item && n < MAX_VARIABLES; item++)
		environment[n++] = graft_arena_strdup(arena, *item);
	for (size_t i = 0; i < n; i++) {
		if (!environment[i])
			return NULL;
	}
	return environment;
}

/* QUIRK execvpe(3) searches our PATH, not the one that the program gets. */
static int become(const struct ctk_child *child, char *const *words, char **environment)
{
	static const char *const folders[] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
					       "/usr/bin",        "/sbin",          "/bin" };
	char path[4096];

	if (!child->root || strchr(words[0], '/'))
		return execvpe(words[0], words, environment);
	for (size_t i = 0; i < GRAFT_COUNT(folders); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folders[i], words[0]);
		(void)execve(path, words, environment);
		if (errno != ENOENT && errno != ENOTDIR)
			break;
	}
	return -1;
}

_Noreturn static void exec_ctk_child(const struct run *run, const struct ctk_child *child, char **environment)
{
	const char *const *argv = child->argv;
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC), why;

	char **words;

	/* execve(2) does not change the strings, although its type allows it. */
	memcpy(&words, &argv, sizeof(words));
	(void)setpgid(0, 0);
	if (null_fd >= 0 && dup2(null_fd, STDIN_FILENO) >= 0 && dup2(run->write[OUT], STDOUT_FILENO) >= 0 &&
	    dup2(run->write[ERR], STDERR_FILENO) >= 0 &&
	    (!child->root || (chroot(child->root) == 0 && chdir("/") == 0)))
		(void)become(child, words, environment);
	why = errno;
	(void)!write(run->write[WHY], &why, sizeof(why));
	_exit(127);
}

/* Reads once from a pipe; closes it at end of file. Returns 0 or -errno. */
static int take_ctk_child_output(struct run *run, int i)
{
	char bytes[8192];
	ssize_t n = read(run->read[i], bytes, sizeof(bytes));

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (n == 0)
		close_fd(&run->read[i]);
	else if ((size_t)n > OUTPUT_MAX - run->said[i].length)
		return -EFBIG;
	else
		graft_buffer_add(&run->said[i], bytes, (size_t)n);
	return graft_buffer_failed(&run->said[i]) ? -ENOMEM : 0;
}

/*
 * Reads until the child has closed all pipes. Returns 0 or -errno; -ETIMEDOUT after the deadline.
 */
static int listen_to_ctk_child(struct run *run, int64_t deadline_ms)
{
	for (;;) {
		struct pollfd polls[N_PIPES];
		int64_t left = deadline_ms - graft_clock_ms();
		int open = 0, rc;

		for (int i = 0; i < N_PIPES; i++) {
			polls[i] = (struct pollfd){ .fd = run->read[i], .events = POLLIN };
			open += run->read[i] >= 0;
		}
		if (open == 0)
			return 0;
		rc = left > 0 ? poll(polls, N_PIPES, (int)left) : 0;
		if (rc == 0)
			return -ETIMEDOUT;
		if (rc < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < N_PIPES && rc > 0; i++) {
			int failed = polls[i].revents ? take_ctk_child_output(run, i) : 0;

			if (failed < 0)
				return failed;
		}
	}
}

/*
 * Returns the exit status or -errno; -ETIMEDOUT after the deadline. A child that has closed its
 * pipes is about to exit.
 */
static int wait_for_ctk_child(struct run *run, int64_t deadline_ms)
{
	int status;

	for (;;) {
		pid_t pid = waitpid(run->pid, &status, WNOHANG);

		if (pid == run->pid)
			break;
		if (pid < 0 && errno != EINTR)
			return -errno;
		if (graft_clock_ms() >= deadline_ms)
			return -ETIMEDOUT;
		(void)poll(NULL, 0, 1);
	}
	run->pid = -1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static const char *trimmed(struct graft_arena *arena, const char *text)
{
	size_t length;

	text += strspn(text, " \t\r\n");
	length = strlen(text);
	while (length > 0 && strchr(" \t\r\n", text[length - 1]))
		length--;
	return graft_arena_strndup(arena, text, length);
}

static int fail_ctk_child(const struct ctk_child *child, int rc, struct graft_error *err)
{
	if (rc == -ETIMEDOUT)
		return graft_fail(err, GRAFT_PROGRAM, 0, "%s gave no answer within %d seconds", child->argv[0],
				  child->timeout_ms / 1000);
	if (rc == -ENOMEM)
		return graft_fail_memory(err);
	if (rc == -EFBIG)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "%s printed more than %zu bytes", child->argv[0], OUTPUT_MAX);
	return graft_fail_errno(err, -rc, "cannot read the output of %s", child->argv[0]);
}

static int collect_ctk_child(const struct ctk_child *child, struct run *run, struct graft_arena *arena,
			     struct ctk_child_result *ret_result, struct graft_error *err)
{
	int64_t deadline_ms = graft_clock_ms() + child->timeout_ms;
	int rc = listen_to_ctk_child(run, deadline_ms), why;

	if (rc < 0)
		return fail_ctk_child(child, rc, err);
	if (run->said[WHY].length == sizeof(why)) {
		memcpy(&why, run->said[WHY].bytes, sizeof(why));
		return graft_fail_errno(err, why, "%s cannot be run", child->argv[0]);
	}
	rc = wait_for_ctk_child(run, deadline_ms);
	if (rc < 0)
		return fail_ctk_child(child, rc, err);
	ret_result->status = rc;
	ret_result->out = graft_arena_strndup(arena, graft_buffer_text(&run->said[OUT]), run->said[OUT].length);
	ret_result->out_length = run->said[OUT].length;
	ret_result->err = trimmed(arena, graft_buffer_text(&run->said[ERR]));
	return ret_result->out && ret_result->err ? 0 : graft_fail_memory(err);
}

int ctk_child_run(const struct ctk_child *child, struct graft_arena *arena, struct ctk_child_result *ret_result,
		  struct graft_error *err)
{
	__attribute__((cleanup(run_done))) struct run run = { .pid = -1 };
	char **environment = make_environment(child, arena);

	for (int i = 0; i < N_PIPES; i++) {
		run.read[i] = run.write[i] = -1;
		run.said[i].max = OUTPUT_MAX;
	}
	if (!environment)
		return graft_fail_memory(err);
	if (open_pipes(&run, err) < 0)
		return -1;
	run.pid = fork();
	if (run.pid < 0)
		return graft_fail_errno(err, errno, "%s cannot be run", child->argv[0]);
	if (run.pid == 0)
		exec_ctk_child(&run, child, environment);
	(void)setpgid(run.pid, run.pid);
	for (int i = 0; i < N_PIPES; i++)
		close_fd(&run.write[i]);
	return collect_ctk_child(child, &run, arena, ret_result, err);
}
