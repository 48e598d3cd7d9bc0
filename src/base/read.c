/* SPDX-License-Identifier: Apache-2.0 */
/* read: the whole content of a file, or of input that a user names. */
#include "base/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/cleanup.h"

#define UNKNOWN_SIZE_CHUNK ((size_t)8 * 1024)

/* Reads `size` bytes, or less at the end of the file. */
static ssize_t read_up_to(int fd, char *bytes, size_t size)
{
	size_t used = 0;

	while (used < size) {
		ssize_t n = read(fd, bytes + used, size - used);

		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

/* Pipes have no size, and files of procfs report one of 0 although they have content. */
static int read_unknown_size(int fd, size_t max, struct graft_arena *arena, const char **ret_bytes, size_t *ret_length)
{
	size_t capacity = 0, used = 0;
	auto_free char *bytes = NULL;
	char *copy;

	while (used == capacity) {
		ssize_t n;
		char *larger = realloc(bytes, capacity == 0 ? UNKNOWN_SIZE_CHUNK : capacity * 2);

		if (!larger)
			return -ENOMEM;
		bytes = larger;
		capacity = capacity == 0 ? UNKNOWN_SIZE_CHUNK : capacity * 2;
		n = read_up_to(fd, bytes + used, capacity - used);
		if (n < 0)
			return (int)n;
		used += (size_t)n;
		if (used > max)
			return -EFBIG;
	}
	copy = graft_arena_alloc(arena, used + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, used);
	*ret_bytes = copy;
	*ret_length = used;
	return 0;
}

/* Reads a regular file whose status is known. */
static int read_stated(int fd, const struct stat *st, size_t max, struct graft_arena *arena, const char **ret_bytes,
		       size_t *ret_length)
{
	char *bytes;
	ssize_t n;

	if ((uintmax_t)st->st_size > max)
		return -EFBIG;
	if (st->st_size == 0)
		return read_unknown_size(fd, max, arena, ret_bytes, ret_length);
	bytes = graft_arena_alloc(arena, (size_t)st->st_size + 1);
	if (!bytes)
		return -ENOMEM;
	n = read_up_to(fd, bytes, (size_t)st->st_size);
	if (n < 0)
		return (int)n;
	*ret_bytes = bytes;
	*ret_length = (size_t)n;
	return 0;
}

int graft_read_fd(int fd, size_t max, struct graft_arena *arena, const char **ret_bytes, size_t *ret_length)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? read_stated(fd, &st, max, arena, ret_bytes, ret_length) : -EINVAL;
}

long graft_read_at(int fd, void *bytes, size_t n, uint64_t offset)
{
	ssize_t got;

	do {
		got = pread(fd, bytes, n, (off_t)offset);
	} while (got < 0 && errno == EINTR);
	return (long)got;
}

static bool is_standard_input(const char *path)
{
	return strcmp(path, "-") == 0;
}

bool graft_is_stream(const char *path)
{
	struct stat st;

	return is_standard_input(path) ||
	       (stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISCHR(st.st_mode)));
}

const char *graft_input_name(const char *path)
{
	return is_standard_input(path) ? "standard input" : path;
}

int graft_read_input(const char *path, size_t max, struct graft_arena *arena, const char **ret_bytes,
		     size_t *ret_length)
{
	auto_close int opened = is_standard_input(path) ? -1 : open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	int fd = is_standard_input(path) ? STDIN_FILENO : opened;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return S_ISREG(st.st_mode) ? read_stated(fd, &st, max, arena, ret_bytes, ret_length)
				   : read_unknown_size(fd, max, arena, ret_bytes, ret_length);
}
