/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors: the three standard descriptors, which a caller may have closed. */
#include "cli/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sys.h"

#define FIRST_FD (STDERR_FILENO + 1)
/* Limits on kernels without close_range(2). */
#define MAX_FD   65536
#define LEAST_FD 4096 /* even if RLIMIT_NOFILE is lower now */

void cli_open_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
			return;
	}
}

/* BASELINE 5.9: close_range(2). */
void cli_close_other_descriptors(void)
{
	struct rlimit limit = { .rlim_cur = MAX_FD };

	if (graft_close_range(FIRST_FD, ~0u, 0) == 0)
		return;
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = FIRST_FD; fd < MAX_FD && (fd < LEAST_FD || (rlim_t)fd < limit.rlim_cur); fd++)
		(void)close(fd);
}
