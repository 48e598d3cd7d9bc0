/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modprobe: finds and runs one program in a root directory. The caller decides which modules to
 * load and how to handle a failure.
 */
#include "apply/modprobe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/cleanup.h"

#define SETTING            "/proc/sys/kernel/modprobe"
#define SETTING_MAX        ((size_t)1 << 16)
#define STATUS_NOT_STARTED 127

static bool is_modprobe(const struct graft_root *root, const char *path)
{
	struct stat st;

	return path && graft_root_stat(root, path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IXUSR);
}

const char *graft_modprobe_find(const struct graft_root *root, const struct graft_root *host, struct graft_arena *arena)
{
	const char *text = "", *path;
	size_t length;

	if (graft_root_read(root, SETTING, SETTING_MAX, arena, &text, &length) < 0)
		(void)graft_root_read(host, SETTING, SETTING_MAX, arena, &text, &length);
	path = text[0] == '/' ? graft_arena_strndup(arena, text, strcspn(text, "\n")) : NULL;
	if (is_modprobe(root, path))
		return path;
	return is_modprobe(root, GRAFT_MODPROBE_DEFAULT) ? GRAFT_MODPROBE_DEFAULT : NULL;
}

/*
 * SPEC libnvidia-container 5 step 3: the only capability passed to modprobe is the one to load
 * modules (besides what root has through the bounding set).
 */
static void inherit_sys_module(void)
{
	struct graft_caps_sets sets;

	if (graft_caps_read(&sets) < 0)
		return;
	sets.inheritable |= UINT64_C(1) << CAP_SYS_MODULE;
	(void)graft_caps_write(&sets);
}

/* Standard input is empty; the other two go to `output_fd`, or nowhere if that is -1. */
static void set_descriptors(int output_fd)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3; fd++) {
		int source = fd > 0 && output_fd >= 0 ? output_fd : null_fd;

		if (source < 0)
			(void)close(fd);
		else if (dup2(source, fd) < 0)
			_exit(STATUS_NOT_STARTED);
	}
}

_Noreturn static void become_modprobe(const struct graft_root *root, const char *program, const char *module,
				      int output_fd)
{
	char name[64];
	char argument[] = "modprobe", search_path[] = "PATH=/sbin";
	char *const arguments[] = { argument, name, NULL };
	char *const environment[] = { search_path, NULL };

	(void)snprintf(name, sizeof(name), "%s", module);
	if (fchdir(root->fd) < 0 || chroot(".") < 0 || chdir("/") < 0)
		_exit(STATUS_NOT_STARTED);
	set_descriptors(output_fd);
	inherit_sys_module();
	(void)execve(program, arguments, environment);
	_exit(STATUS_NOT_STARTED);
}

/*
 * Reads until the last writer has closed the pipe. Excess output is read and dropped, so that no
 * writer blocks.
 */
static void read_modprobe_output(int fd, char *output, size_t size)
{
	char dropped[512];
	size_t used = 0;

	for (;;) {
		bool room = used + 1 < size;
		ssize_t n = room ? read(fd, output + used, size - 1 - used) : read(fd, dropped, sizeof(dropped));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		used += room ? (size_t)n : 0;
	}
	while (used > 0 && output[used - 1] == '\n')
		used--;
	output[used] = '\0';
}

static int judge_modprobe_status(int status, struct graft_error *err)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status))
		return graft_fail(err, GRAFT_NO_DRIVER, 0, "killed by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status) == STATUS_NOT_STARTED)
		return graft_fail(err, GRAFT_NO_DRIVER, 0, "the program could not be started");
	return graft_fail(err, GRAFT_NO_DRIVER, 0, "exit status %d", WEXITSTATUS(status));
}

int graft_modprobe_run(const struct graft_root *root, const char *program, const char *module, char *output,
		       size_t size, struct graft_error *err)
{
	int ends[2] = { -1, -1 }, status = 0, sys;
	pid_t pid;

	if (output)
		output[0] = '\0';
	if (output && pipe2(ends, O_CLOEXEC) < 0)
		return graft_fail_errno(err, errno, "pipe creation failed");
	pid = fork();
	sys = errno;
	if (pid == 0)
		become_modprobe(root, program, module, ends[1]);
	if (output)
		(void)close(ends[1]);
	if (output && pid > 0)
		read_modprobe_output(ends[0], output, size);
	if (output)
		(void)close(ends[0]);
	if (pid < 0)
		return graft_fail_errno(err, sys, "process creation failed");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return judge_modprobe_status(status, err);
}
