/* SPDX-License-Identifier: Apache-2.0 */
/* unix_socket: names and files of sockets. Does not interpret the data. */
#include "rpc/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/dial.h"

/*
 * A name in an address has at most 107 bytes; a path may have more. The address therefore consists
 * of the path of the directory's descriptor and the last component.
 */
struct socket_place {
	int directory_fd;
	const char *name; /* last component of the path */
};

static int open_place(const char *path, struct socket_place *ret_place)
{
	const char *slash = strrchr(path, '/');
	char directory[PATH_MAX];
	size_t length = slash ? (size_t)(slash - path) : 0;

	if (length >= sizeof(directory))
		return -ENAMETOOLONG;
	if (!slash)
		(void)snprintf(directory, sizeof(directory), ".");
	else
		(void)snprintf(directory, sizeof(directory), "%.*s/", (int)length, path);
	ret_place->name = slash ? slash + 1 : path;
	ret_place->directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return ret_place->directory_fd < 0 ? -errno : 0;
}

static int make_address(int directory_fd, const char *name, struct sockaddr_un *ret_address)
{
	int n;

	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "/proc/self/fd/%d/%s", directory_fd, name);
	return n > 0 && (size_t)n < sizeof(ret_address->sun_path) ? 0 : -ENAMETOOLONG;
}

/* A listening socket called `name`; returns -errno. */
static int listen_as(int directory_fd, const char *name)
{
	struct sockaddr_un address;
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = make_address(directory_fd, name, &address);

	if (rc < 0)
		return rc;
	/* The mode of the socket becomes that of its name, whatever the umask; fchmod(2) before bind(2) is Linux's way. */
	if (fd < 0 || fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (listen(fd, SOMAXCONN) < 0) {
		rc = -errno;
		(void)unlinkat(directory_fd, name, 0);
		return rc;
	}
	return TAKE_FD(fd);
}

/* Listens under a temporary name, then renames the socket to its final name. */
static int listen_and_rename(const struct socket_place *place, struct graft_unix_socket *s)
{
	char own_name[64];
	struct stat st;

	/* The kubelet, which watches the directory, ignores names that begin with a dot (SPEC kubernetes 4). */
	(void)snprintf(own_name, sizeof(own_name), ".graft-%lld-%p", (long long)getpid(), (void *)s);
	if (fstatat(place->directory_fd, place->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISSOCK(st.st_mode))
		return -EEXIST;
	(void)unlinkat(place->directory_fd, own_name, 0);
	s->fd = listen_as(place->directory_fd, own_name);
	if (s->fd < 0)
		return s->fd;
	if (fstatat(place->directory_fd, own_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    renameat(place->directory_fd, own_name, place->directory_fd, place->name) < 0) {
		int rc = -errno;

		(void)unlinkat(place->directory_fd, own_name, 0);
		return rc;
	}
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	return 0;
}

int graft_unix_listen(const char *path, struct graft_unix_socket *ret_socket, struct graft_error *err)
{
	struct graft_unix_socket made = GRAFT_UNIX_SOCKET_INIT;
	struct socket_place place = { .directory_fd = -1 };
	int rc = open_place(path, &place);

	if (rc == 0) {
		rc = listen_and_rename(&place, &made);
		(void)close(place.directory_fd);
	}
	if (rc == 0) {
		made.path = strdup(path);
		rc = made.path ? 0 : -ENOMEM;
	}
	if (rc < 0) {
		graft_unix_close(&made);
		if (rc == -EEXIST)
			return graft_fail(err, GRAFT_INVALID, 0,
					  "cannot listen at '%s': the file exists and is not a socket", path);
		return graft_fail_errno(err, -rc, "cannot listen at '%s'", path);
	}
	*ret_socket = made;
	return 0;
}

bool graft_unix_is_there(const struct graft_unix_socket *s)
{
	struct stat st;

	return s->path && lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

bool graft_unix_is_replaced(const struct graft_unix_socket *s)
{
	auto_close int fd = -1;

	if (!s->path || graft_unix_is_there(s))
		return false;
	fd = graft_unix_connect(s->path);
	return fd >= 0 || fd == -EAGAIN;
}

void graft_unix_close(struct graft_unix_socket *s)
{
	if (s->fd >= 0) {
		if (graft_unix_is_there(s))
			(void)unlink(s->path);
		(void)close(s->fd);
	}
	free(s->path);
	*s = (struct graft_unix_socket)GRAFT_UNIX_SOCKET_INIT;
}

int graft_unix_connect(const char *path)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = fd < 0 ? -errno : graft_dial(fd, path);

	return rc < 0 ? rc : TAKE_FD(fd);
}
