/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yardstick: a fixed amount of the work that starts a container: looks at files, makes files and
 * links in an overlay, mounts onto them. bench/run measures it beside the rows, since a system call
 * costs twice as many starts of /bin/true on one processor as on another.
 *
 *	yardstick ROOT    a fresh overlay of a Debian image, in its own mount namespace
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 40 /* about as many as a GPU's libraries */
#define LOOKS 4  /* at each of them */

static int give_up(const char *what)
{
	(void)fprintf(stderr, "yardstick: %s: %s\n", what, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	int root = argc == 2 ? open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	int folder = root >= 0 ? openat(root, "usr/lib/x86_64-linux-gnu", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	/* The name differs between architectures; any directory will do. */
	if (folder < 0 && root >= 0)
		folder = openat(root, "usr/lib", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return give_up("ROOT");
	for (int i = 0; i < FILES; i++) {
		char name[32], link[32], place[64];
		struct stat st;
		int fd;

		for (int look = 0; look < LOOKS; look++) {
			(void)snprintf(name, sizeof(name), "absent-%d-%d", i, look);
			if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
				return give_up(name);
			fd = openat(root, "etc/debian_version", O_RDONLY | O_CLOEXEC);
			if (fd < 0 || read(fd, place, sizeof(place)) < 0 || close(fd) < 0)
				return give_up("etc/debian_version");
		}
		(void)snprintf(name, sizeof(name), "yardstick.so.%d", i);
		(void)snprintf(link, sizeof(link), "yardstick-%d.so", i);
		fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0 || symlinkat(name, folder, link) < 0)
			return give_up(name);
		(void)snprintf(place, sizeof(place), "/proc/self/fd/%d", fd);
		if (mount("/etc/hostname", place, NULL, MS_BIND, NULL) < 0)
			return give_up(place);
		(void)close(fd);
	}
	return 0;
}
