/* SPDX-License-Identifier: Apache-2.0 */
/* mounted_libraries: an open and one or two reads a library. */
#include "host/mounted_libraries.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "formats/elf.h"
#include "formats/ldcache.h"

/* /lib and /usr/lib are one directory on most systems; where they are two, a library too many is in the cache. */
static const char *skip_usr(const char *path)
{
	return strncmp(path, "/usr/", strlen("/usr/")) == 0 ? path + strlen("/usr") : path;
}

static bool is_in_folders(const char *path, const char *const *folders, size_t n_folders)
{
	const char *from = skip_usr(path);
	size_t length = (size_t)(graft_path_name(from) - from);

	while (length > 1 && from[length - 1] == '/')
		length--;
	for (size_t i = 0; i < n_folders; i++) {
		const char *folder = skip_usr(folders[i]);

		if (strncmp(folder, from, length) == 0 && folder[length] == '\0')
			return true;
	}
	return false;
}

/* 1: it is a library, 0: it is not, -1: out of memory. */
static int read_library(const struct graft_cdi_mount *row, struct graft_arena *arena,
			struct graft_mounted_libraries *libraries, struct graft_mounted_library *ret_library)
{
	/* Not open(2), behind which musl asks for FD_CLOEXEC once more. */
	auto_close int fd = openat(AT_FDCWD, row->host_path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_elf elf;
	struct stat st;

	if (fd < 0)
		return 0;
	if (!graft_arena_push_string(arena, &libraries->sources, &libraries->n_sources, row->host_path))
		return -1;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (graft_elf_read_fd(fd, row->host_path, arena, &elf, &why) < 0)
		return why.status == GRAFT_NO_MEMORY ? -1 : 0;
	*ret_library = (struct graft_mounted_library){ .path = row->container_path,
						       .soname = elf.soname ? elf.soname
									    : graft_path_name(row->container_path),
						       .abi_flags = elf.abi_flags };
	return elf.abi_flags != 0;
}

static int add(const struct graft_cdi_mount *row, const char *const *folders, size_t n_folders,
	       struct graft_arena *arena, struct graft_mounted_libraries *libraries)
{
	struct graft_mounted_library library, *slot;
	int rc = graft_ldcache_is_library_name(graft_path_name(row->container_path)) &&
			 is_in_folders(row->container_path, folders, n_folders)
		     ? read_library(row, arena, libraries, &library)
		     : 0;

	if (rc < 0)
		return -1;
	if (rc == 0)
		return graft_arena_push_string(arena, &libraries->others, &libraries->n_others, row->container_path)
			   ? 0
			   : -1;
	slot = graft_arena_push(arena, &libraries->items, &libraries->n, sizeof(*slot));
	if (!slot)
		return -1;
	*slot = library;
	return 0;
}

int graft_mounted_libraries_read(const struct graft_cdi_edits *edits, const char *const *folders, size_t n_folders,
				 struct graft_arena *arena, struct graft_mounted_libraries *ret,
				 struct graft_error *err)
{
	*ret = (struct graft_mounted_libraries){ .n = 0 };
	for (size_t i = 0; i < edits->n_mounts; i++)
		if (add(&edits->mounts[i], folders, n_folders, arena, ret) < 0)
			return graft_fail_memory(err);
	return 0;
}
