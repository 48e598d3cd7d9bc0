/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing: getdents64(2) by hand. The C library's opendir would make three more system calls on a
 * descriptor that we have just opened, and allocate 32 KiB.
 */
#include "base/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/strings.h"

#define CHUNK 4096

/*
 * With 64-bit offsets, which the whole project uses, struct dirent is the kernel's. musl 1.2.4 and
 * later have no name for struct dirent64.
 */
_Static_assert(offsetof(struct dirent, d_off) == 8 && offsetof(struct dirent, d_reclen) == 16 &&
		   offsetof(struct dirent, d_name) == 19,
	       "struct dirent is that of getdents64(2)");

struct list {
	struct graft_arena *arena;
	const char **names;
	size_t n, max;
	bool more;
};

/* Returns 0, 1 if the list is full, or -ENOMEM. */
static int add_listed_name(struct list *list, const char *name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (list->n == list->max) {
		list->more = true;
		return 1;
	}
	return graft_arena_push_string(list->arena, &list->names, &list->n, name) ? 0 : -ENOMEM;
}

/* Adds the entries of one getdents64(2) call. Returns like add_listed_name(). */
static int add_listed_entries(struct list *list, const char *bytes, size_t length)
{
	int rc = 0;

	for (size_t at = 0; at < length && rc == 0;) {
		const struct dirent *entry = (const struct dirent *)(const void *)(bytes + at);

		rc = add_listed_name(list, entry->d_name);
		at += entry->d_reclen;
	}
	return rc;
}

int graft_list_names(int fd, size_t max, struct graft_arena *arena, const char ***ret_names, size_t *ret_n,
		     bool *ret_more)
{
	struct list list = { .arena = arena, .max = max };
	_Alignas(struct dirent) char bytes[CHUNK];
	int rc = 0;

	while (rc == 0) {
		ssize_t length = syscall(SYS_getdents64, fd, bytes, sizeof(bytes));

		if (length < 0)
			return -errno;
		if (length == 0)
			break;
		rc = add_listed_entries(&list, bytes, (size_t)length);
	}
	if (rc < 0)
		return rc;
	if (list.n > 1)
		qsort(list.names, list.n, sizeof(*list.names), graft_compare_strings);
	*ret_names = list.names;
	*ret_n = list.n;
	if (ret_more)
		*ret_more = list.more;
	return 0;
}

int graft_root_list(const struct graft_root *root, const char *path, size_t max, struct graft_arena *arena,
		    const char ***ret_names, size_t *ret_n, bool *ret_more)
{
	auto_close int fd = graft_root_openat(root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);

	*ret_names = NULL;
	*ret_n = 0;
	return fd < 0 ? fd : graft_list_names(fd, max, arena, ret_names, ret_n, ret_more);
}
