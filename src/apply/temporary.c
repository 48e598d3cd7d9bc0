/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temporary: unpredictable names. SECURITY: an image may have hard links to files of the host under
 * any name that it can guess, so no existing file is ever opened for writing here.
 */
#include "apply/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"

#define MAX_TRIES 16

static int new_name(char *name)
{
	uint64_t bits;

	if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return -EIO;
	(void)snprintf(name, GRAFT_TEMPORARY_SIZE, ".graft-%016" PRIx64, bits);
	return 0;
}

/* What to make: one set of arguments for all kinds. */
struct maker {
	int (*make)(const struct maker *maker, int parent_fd, const char *name);
	mode_t mode;
	dev_t dev;
	const char *text;
	int from_fd;
};

static int make_temporary(const struct maker *maker, int parent_fd, char *name)
{
	for (int i = 0; i < MAX_TRIES; i++) {
		int rc = new_name(name);

		if (rc < 0)
			return rc;
		rc = maker->make(maker, parent_fd, name);
		if (rc >= 0)
			return rc;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int make_temporary_file(const struct maker *maker, int parent_fd, const char *name)
{
	return openat(parent_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, maker->mode);
}

static int make_temporary_link(const struct maker *maker, int parent_fd, const char *name)
{
	return symlinkat(maker->text, parent_fd, name);
}

static int make_temporary_node(const struct maker *maker, int parent_fd, const char *name)
{
	return mknodat(parent_fd, name, maker->mode, maker->dev);
}

static int make_hard_link(const struct maker *maker, int parent_fd, const char *name)
{
	return linkat(maker->from_fd, maker->text, parent_fd, name, AT_SYMLINK_FOLLOW);
}

static int move_there(const struct maker *maker, int parent_fd, const char *name)
{
	return graft_renameat2(parent_fd, maker->text, parent_fd, name, GRAFT_RENAME_NOREPLACE);
}

int graft_temporary_file(int parent_fd, mode_t mode, char *name)
{
	struct maker maker = { .make = make_temporary_file, .mode = mode };

	return make_temporary(&maker, parent_fd, name);
}

int graft_temporary_link(int parent_fd, const char *text, char *name)
{
	struct maker maker = { .make = make_temporary_link, .text = text };

	return make_temporary(&maker, parent_fd, name);
}

int graft_link_replace(int parent_fd, const char *name, const char *text)
{
	char temporary[GRAFT_TEMPORARY_SIZE];
	int rc = graft_temporary_link(parent_fd, text, temporary);

	if (rc == 0 && renameat(parent_fd, temporary, parent_fd, name) < 0) {
		rc = -errno;
		(void)unlinkat(parent_fd, temporary, 0);
	}
	return rc;
}

int graft_temporary_node(int parent_fd, mode_t mode, dev_t dev, char *name)
{
	struct maker maker = { .make = make_temporary_node, .mode = mode, .dev = dev };

	return make_temporary(&maker, parent_fd, name);
}

int graft_temporary_hard_link(int parent_fd, int from_fd, const char *from, char *name)
{
	struct maker maker = { .make = make_hard_link, .from_fd = from_fd, .text = from };

	return make_temporary(&maker, parent_fd, name);
}

int graft_temporary_move(int parent_fd, const char *from, char *name)
{
	struct maker maker = { .make = move_there, .text = from };

	return make_temporary(&maker, parent_fd, name);
}

int graft_write_all(int fd, const void *bytes, size_t length)
{
	const char *next = bytes;

	while (length > 0) {
		ssize_t n = write(fd, next, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		next += n;
		length -= (size_t)n;
	}
	return 0;
}
