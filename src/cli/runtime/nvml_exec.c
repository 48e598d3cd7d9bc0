/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_exec: the child's side of host/nvml.h for a statically linked program: it becomes
 * graft-nvml. It is part of the program rather than a library, so that the linker finds this
 * function first and leaves out the version that loads libraries.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "cli/helper.h"
#include "cli/runtime/nvml_program.h"

#define INSTALLED   GRAFT_LIBEXEC_DIRECTORY "/" RUNTIME_NVML_PROGRAM
#define NUMBER_SIZE 16

/* Answers that NVML could not be asked. */
_Noreturn static void give_up(int out_fd, int sys)
{
	const struct graft_nvml_snapshot snapshot = {
		.failure = "nvml error: cannot start the program that asks NVML: " INSTALLED, .sys = (uint32_t)sys
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
	/* All other descriptors are close-on-exec. */
	if (dup3(out_fd, STDOUT_FILENO, O_CLOEXEC) < 0 || fcntl(STDOUT_FILENO, F_SETFD, 0) < 0)
		give_up(out_fd, errno);
	cli_helper_exec(RUNTIME_NVML_PROGRAM, argv, environ);
	give_up(out_fd, errno);
}
