/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange: the hostile process of the integration tests. Swaps the two names of each pair with
 * renameat2(RENAME_EXCHANGE) until it is killed, and counts the rounds in a file, one byte each.
 *
 *	exchange COUNT A B [A B]...
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int count_fd;

	if (argc < 4 || argc % 2 != 0) {
		(void)fprintf(stderr, "usage: exchange COUNT A B [A B]...\n");
		return 2;
	}
	count_fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (count_fd < 0)
		return 1;
	for (;;) {
		for (int i = 2; i + 1 < argc; i += 2) {
			/* Fails while something is mounted on one of them. */
			if (renameat2(AT_FDCWD, argv[i], AT_FDCWD, argv[i + 1], RENAME_EXCHANGE) == 0 &&
			    write(count_fd, "", 1) != 1)
				return 1;
		}
	}
}
