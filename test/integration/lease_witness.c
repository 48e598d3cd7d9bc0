/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the containers of lease-storm.bats and lease-docker.bats run. It takes a lock in /tmp, which
 * they share, for each GPU that it sees. The kernel frees it with the process. A GPU whose lock is
 * taken is in two containers: that is written to /tmp/twice, all others to /tmp/given.
 */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static void say(const char *file, const char *gpu)
{
	const char *name = getenv("NAME");
	char line[256];
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	int length = snprintf(line, sizeof(line), "%s %s\n", gpu, name ? name : "?");

	if (fd < 0 || write(fd, line, (size_t)length) != length)
		_exit(1);
	(void)close(fd);
}

int main(void)
{
	struct timespec now = { 0 }, pause = { 0 };
	glob_t found;

	if (glob("/dev/nvidia[0-9]*", 0, NULL, &found) != 0)
		return 1;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char path[64];
		int fd;

		(void)snprintf(path, sizeof(path), "/tmp%s", strrchr(found.gl_pathv[i], '/'));
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
			say("/tmp/twice", found.gl_pathv[i]);
		say("/tmp/given", found.gl_pathv[i]);
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	pause.tv_nsec = 50000000 + now.tv_nsec % 150000000;
	(void)nanosleep(&pause, NULL);
	return 0;
}
