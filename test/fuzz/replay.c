/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay: feeds every file of a corpus directory to a fuzz target, and cuts of it at every length (a parser must survive a
 * file that ends early). One TAP line per file. Built with sanitizers in ./check, so a finding ends the program.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

#define MAX_FILE ((size_t)4 * 1024 * 1024)
/* Files up to this size are also fed cut at every length, larger ones at CUTS lengths. */
#define CUTS ((size_t)512)

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int read_file(int dir_fd, const char *name, uint8_t **ret_bytes, size_t *ret_size)
{
	struct stat st;
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	uint8_t *bytes;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size > MAX_FILE)
		return -1;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return -1;
	n = read(fd, bytes, (size_t)st.st_size);
	(void)close(fd);
	if (n != st.st_size) {
		free(bytes);
		return -1;
	}
	*ret_bytes = bytes;
	*ret_size = (size_t)st.st_size;
	return 0;
}

/* A copy of exactly `size` bytes, so that a sanitizer sees a read behind its end. */
static void feed(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		exit(1);
	memcpy(copy, bytes, size);
	(void)LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

int main(int argc, char **argv)
{
	struct dirent **entries = NULL;
	int n, dir_fd;

	if (argc != 2)
		return 64;
	dir_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	n = scandir(argv[1], &entries, not_hidden, alphasort);
	if (dir_fd < 0 || n <= 0) {
		(void)printf("1..1\nnot ok 1 - %s holds no file\n", argv[1]);
		return 1;
	}
	(void)printf("1..%d\n", n);
	for (int i = 0; i < n; i++) {
		uint8_t *bytes = NULL;
		size_t size = 0;

		if (read_file(dir_fd, entries[i]->d_name, &bytes, &size) < 0) {
			(void)printf("not ok %d - %s cannot be read\n", i + 1, entries[i]->d_name);
			continue;
		}
		/* Told before it is fed: when the program dies, the last line names the file. */
		(void)printf("# %s\n", entries[i]->d_name);
		(void)fflush(stdout);
		for (size_t cut = 0; cut <= size; cut += size / CUTS + 1)
			feed(bytes, cut);
		feed(bytes, size);
		(void)printf("ok %d - %s\n", i + 1, entries[i]->d_name);
		free(bytes);
		free(entries[i]);
	}
	free(entries);
	(void)close(dir_fd);
	return 0;
}
