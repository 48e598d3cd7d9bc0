/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graft-systemd: the entry point. nvidia-container-runtime-hook starts it to set the devices that
 * systemd allows to a container's scope.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apply/cgroup/systemd_scope.h"
#include "base/cleanup.h"
#include "cli/hook/systemd_words.h"

static void write_result_line(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	(void)arg;
	(void)file;
	(void)line;
	(void)printf("%c%s\n", level == GRAFT_LOG_DEBUG ? HOOK_SYSTEMD_DEBUG : HOOK_SYSTEMD_INFO, message);
}

/* Parses a decimal number that is followed by `end`. *ret_end points after that character. */
static bool parse_scope_number(const char *word, char end, const char **ret_end, unsigned int *ret_number)
{
	char *after;
	unsigned long number;

	errno = 0;
	number = strtoul(word, &after, 10);
	*ret_number = (unsigned int)number;
	*ret_end = after + 1;
	return isdigit((unsigned char)word[0]) && *after == end && errno == 0 && number <= INT_MAX;
}

static bool parse_pid(const char *word, pid_t *ret_pid)
{
	const char *end;
	unsigned int number;
	bool right = parse_scope_number(word, '\0', &end, &number);

	*ret_pid = (pid_t)number;
	return right && number > 0;
}

static bool parse_scope_device(const char *word, struct graft_scope_device *ret_device)
{
	const char *access = word;

	if (!parse_scope_number(word, ':', &access, &ret_device->major) ||
	    !parse_scope_number(access, ':', &access, &ret_device->minor))
		return false;
	ret_device->access = access;
	return access[0] != '\0' && access[strspn(access, "rwm")] == '\0';
}

static int tell_result(pid_t pid, const struct graft_scope_device *devices, size_t n)
{
	const struct graft_log log = { .write = write_result_line, .max = GRAFT_LOG_DEBUG };
	struct graft_error err = { .status = GRAFT_OK };
	char text[sizeof(err.msg) + sizeof(err.ctx) + 128];
	int rc = graft_systemd_scope_allow(pid, devices, n, &log, &err);

	if (rc < 0)
		(void)printf("%c%s\n", HOOK_SYSTEMD_ERROR, graft_error_text(&err, text, sizeof(text)));
	if (fflush(stdout) != 0 || rc < 0)
		return HOOK_SYSTEMD_FAILED;
	return rc > 0 ? HOOK_SYSTEMD_TOLD : HOOK_SYSTEMD_SILENT;
}

int main(int argc, char **argv)
{
	auto_free struct graft_scope_device *devices = calloc((size_t)argc + 1, sizeof(*devices));
	size_t n = 0;
	pid_t pid;
	bool right = devices && argc > 2 && parse_pid(argv[1], &pid);

	for (int i = 2; right && i < argc; i++)
		right = parse_scope_device(argv[i], &devices[n++]);
	if (right)
		return tell_result(pid, devices, n);
	(void)fprintf(stderr, HOOK_SYSTEMD_PROGRAM ": run by nvidia-container-runtime-hook, not by hand\n");
	return HOOK_SYSTEMD_WRONG;
}
