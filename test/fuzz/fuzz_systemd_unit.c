/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes from systemd: accepted, or an error with the reason. */
#include <sys/socket.h>
#include <unistd.h>

#include "cli/installer/systemd_unit.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_error err = { .status = GRAFT_OK };
	int fds[2], rc;

	if (size > 65536 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return 0;
	if (send(fds[1], data, size, MSG_NOSIGNAL) == (ssize_t)size && shutdown(fds[1], SHUT_WR) == 0) {
		rc = installer_systemd_talk(fds[0], "crio.service", 1000, &err);
		if ((rc < 0) != (err.status != GRAFT_OK))
			__builtin_trap();
	}
	(void)close(fds[0]);
	(void)close(fds[1]);
	return 0;
}
