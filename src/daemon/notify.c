/* SPDX-License-Identifier: Apache-2.0 */
/* notify: one datagram to the service manager. */
#include "daemon/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/clock.h"

void notify_send(const char *socket_name, const char *state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = socket_name ? strlen(socket_name) : 0;
	auto_close int fd = -1;

	if (length == 0 || length >= sizeof(address.sun_path) || (socket_name[0] != '/' && socket_name[0] != '@'))
		return;
	memcpy(address.sun_path, socket_name, length);
	if (address.sun_path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&address,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
}

void notify_reloading(const char *socket_name)
{
	char state[64];

	(void)snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRId64, graft_clock_us());
	notify_send(socket_name, state);
}
