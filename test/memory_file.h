/* SPDX-License-Identifier: Apache-2.0 */
/* memory_file: bytes as a file that has no name. */
#ifndef GRAFT_TEST_MEMORY_FILE_H
#define GRAFT_TEST_MEMORY_FILE_H

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* Returns a descriptor of the file, owned by the caller, or -1. */
static inline int memory_file(const void *bytes, size_t length)
{
	int fd = memfd_create("bytes", MFD_CLOEXEC);

	if (fd >= 0 && pwrite(fd, bytes, length, 0) != (ssize_t)length) {
		(void)close(fd);
		fd = -1;
	}
	return fd;
}

#endif
