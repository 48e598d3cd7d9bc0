/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_exec: the child's side of host/nvml.h in a program that is linked statically: it becomes graft-nvml. Part of such a program itself and not of a library, so that
 * the linker finds this function first and leaves out the one that loads libraries.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "cli/runtime/nvml.h"

#define INSTALLED   GRAFT_LIBEXEC_DIRECTORY "/" RUNTIME_NVML_PROGRAM
#define NUMBER_SIZE 16

/* Becomes the one beside this program, where a build has it, or else the one that is installed. Returns only when there is none. */
static void become(char *const *argv)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	path[length > 0 ? length : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash && (size_t)(slash + 1 - path) + sizeof(RUNTIME_NVML_PROGRAM) <= sizeof(path)) {
		memcpy(slash + 1, RUNTIME_NVML_PROGRAM, sizeof(RUNTIME_NVML_PROGRAM));
		(void)execv(path, argv);
	}
	(void)execv(INSTALLED, argv);
}

/* The answer of a child that could not ask. */
_Noreturn static void give_up(int out_fd, int sys)
{
	const struct graft_nvml_snapshot snapshot = {
		.failure = "nvml error: the program that asks cannot be started: " INSTALLED, .sys = (uint32_t)sys
	};
	struct graft_buffer out = { .max = 0 };

	graft_record_write(&graft_nvml_snapshot_record, &snapshot, &out);
	_exit(!graft_buffer_failed(&out) && write(out_fd, out.bytes, out.length) == (ssize_t)out.length ? 0 : 2);
}

_Noreturn void graft_nvml_child(const struct graft_nvml_question *question, pid_t parent, int out_fd)
{
	char name[] = RUNTIME_NVML_PROGRAM;
	char numbers[RUNTIME_NVML_WORDS][NUMBER_SIZE];
	char *argv[RUNTIME_NVML_WORDS + 1] = { name };
	const unsigned int values[RUNTIME_NVML_WORDS] = {
		[RUNTIME_NVML_PARENT] = (unsigned int)parent, [RUNTIME_NVML_FACTS] = question->facts,
		[RUNTIME_NVML_CUDA] = question->cuda,         [RUNTIME_NVML_UID] = question->uid,
		[RUNTIME_NVML_GID] = question->gid,
	};

	for (size_t i = RUNTIME_NVML_PARENT; i < RUNTIME_NVML_WORDS; i++) {
		(void)snprintf(numbers[i], sizeof(numbers[i]), "%u", values[i]);
		argv[i] = numbers[i];
	}
	argv[RUNTIME_NVML_ROOT] = strdup(question->root);
	argv[RUNTIME_NVML_LIBRARY] = strdup(question->library);
	if (!argv[RUNTIME_NVML_ROOT] || !argv[RUNTIME_NVML_LIBRARY])
		_exit(2);
	/* All other descriptors close by themselves. */
	if (dup3(out_fd, STDOUT_FILENO, O_CLOEXEC) < 0 || fcntl(STDOUT_FILENO, F_SETFD, 0) < 0)
		give_up(out_fd, errno);
	become(argv);
	give_up(out_fd, errno);
}
