/* SPDX-License-Identifier: Apache-2.0 */
/* unix_socket: Unix stream sockets in the file system, with paths of any length. */
#ifndef GRAFT_RPC_UNIX_SOCKET_H
#define GRAFT_RPC_UNIX_SOCKET_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

/* A listening socket, and the file that is its name. */
struct graft_unix_socket {
	int fd;     /* owned; -1 = none */
	char *path; /* owned */
	dev_t dev;  /* of the file */
	ino_t ino;
};
#define GRAFT_UNIX_SOCKET_INIT                                    \
	{                                                         \
		.fd = -1, .path = NULL, .dev = 0, .ino = (ino_t)0 \
	}

/*
 * Listens at `path`, with mode 0600, non-blocking. The socket gets the name by rename(2) once it
 * listens, so that a client that sees the name can connect. An existing socket of that name is
 * replaced; anything else is refused with GRAFT_INVALID.
 */
int graft_unix_listen(const char *path, struct graft_unix_socket *ret_socket, struct graft_error *err);
/* Returns whether the name still belongs to the socket. */
bool graft_unix_is_there(const struct graft_unix_socket *socket);
/*
 * Returns whether another socket has its name now and a process listens there. Connects to it to
 * find out.
 */
bool graft_unix_is_replaced(const struct graft_unix_socket *socket);
/*
 * Closes the socket and removes its name, unless the name belongs to another one by now. Closing
 * twice is allowed.
 */
void graft_unix_close(struct graft_unix_socket *socket);

/*
 * Connects to `path`, non-blocking. Returns the descriptor, or -errno: -EAGAIN if its queue is
 * full.
 */
int graft_unix_connect(const char *path);

#endif
