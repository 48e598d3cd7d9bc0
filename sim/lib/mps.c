/* SPDX-License-Identifier: Apache-2.0 */
/* mps: the client's side of the protocol. Like visible.c, it needs only an old libc. */
#include "mps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

bool sim_mps_address(struct sockaddr_un *address)
{
	const char *directory = secure_getenv(SIM_MPS_DIRECTORY_VARIABLE);
	int length;

	if (!directory || *directory == '\0')
		directory = SIM_MPS_DIRECTORY;
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	length = snprintf(address->sun_path, sizeof(address->sun_path), "%s/control", directory);
	return length > 0 && (size_t)length < sizeof(address->sun_path);
}

static bool is_welcome(int fd)
{
	char answer[sizeof(SIM_MPS_WELCOME)] = "";

	return send(fd, SIM_MPS_CLIENT, strlen(SIM_MPS_CLIENT), MSG_NOSIGNAL) == (ssize_t)strlen(SIM_MPS_CLIENT) &&
	       recv(fd, answer, sizeof(answer) - 1, MSG_WAITALL) > 0 && strcmp(answer, SIM_MPS_WELCOME) == 0;
}

bool sim_mps_join(void)
{
	static int joined = -1;
	const struct timeval limit = { .tv_sec = 5 };
	struct sockaddr_un address;
	int fd, saved = errno;

	if (joined >= 0)
		return true;
	fd = sim_mps_address(&address) ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
	if (fd >= 0) {
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 && is_welcome(fd))
			joined = fd;
		else
			(void)close(fd);
	}
	errno = saved;
	return joined >= 0;
}
