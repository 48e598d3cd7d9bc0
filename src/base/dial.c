/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial: a socket address has room for 107 bytes, and a path may be longer. The address is therefore
 * the path of an open descriptor of the socket.
 */
#include "base/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"

int graft_dial_inode(int fd, int place)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat st;

	if (fstat(place, &st) < 0)
		return -errno;
	if (!S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", place);
	return connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

int graft_dial(int fd, const char *path)
{
	auto_close int place = open(path, O_PATH | O_CLOEXEC);

	return place < 0 ? -errno : graft_dial_inode(fd, place);
}
