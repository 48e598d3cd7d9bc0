/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors: the three standard descriptors, which a caller may have closed. */
#include "cli/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void cli_open_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
			return;
	}
}
