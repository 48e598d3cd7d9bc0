/* SPDX-License-Identifier: Apache-2.0 */
/* mounted_libraries: one open and one or two reads per library. */
#include "host/mounted_libraries.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "formats/loader/elf.h"
#include "formats/loader/ldcache.h"

/*
 * /lib and /usr/lib are one directory on most systems; where they differ, the cache may get one
 * library too many.
 */
static const char *skip_usr(const char *path)
{
	return graft_starts_with(path, "/usr/") ? path + strlen("/usr") : path;
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

/* In these functions, the arena records if memory is exhausted. */
static void add_other(const struct graft_cdi_mount *row, bool is_directory, struct graft_arena *arena,
		      struct graft_mounted_libraries *libraries)
{
	(void)graft_arena_push_string(arena, &libraries->others, &libraries->n_others, row->container_path);
	if (is_directory)
		(void)graft_arena_push_string(arena, &libraries->directories, &libraries->n_directories,
					      row->container_path);
}

/*
 * Records a mount that is not a library by its name and directory. A file system of its own is a
 * directory, too.
 */
static void look_at_mounted_file(const struct graft_cdi_mount *row, struct graft_arena *arena,
				 struct graft_mounted_libraries *libraries)
{
	struct stat st = { .st_mode = row->host_path[0] == '/' ? 0 : S_IFDIR };

	if (row->host_path[0] == '/' && stat(row->host_path, &st) == 0)
		(void)graft_arena_push_string(arena, &libraries->sources, &libraries->n_sources, row->host_path);
	add_other(row, S_ISDIR(st.st_mode), arena, libraries);
}

/* Reads the header of a file that is a library by its name and directory. */
static void read_mounted_library(const struct graft_cdi_mount *row, struct graft_arena *arena,
				 struct graft_mounted_libraries *libraries)
{
	/* Not open(2): musl's follows it with another system call to set FD_CLOEXEC. */
	auto_close int fd = openat(AT_FDCWD, row->host_path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct graft_mounted_library *slot;
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_elf elf = { .abi_flags = 0 };
	struct stat st = { .st_mode = 0 };

	if (fd >= 0)
		(void)graft_arena_push_string(arena, &libraries->sources, &libraries->n_sources, row->host_path);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    graft_elf_read_fd(fd, row->host_path, arena, &elf, &why) < 0 || elf.abi_flags == 0 ||
	    (elf.soname && !graft_ldcache_is_soname(elf.soname))) {
		add_other(row, S_ISDIR(st.st_mode), arena, libraries);
		return;
	}
	slot = graft_arena_push(arena, &libraries->items, &libraries->n, sizeof(*slot));
	if (slot)
		*slot = (struct graft_mounted_library){ .path = row->container_path,
							.soname = elf.soname ? elf.soname
									     : graft_path_name(row->container_path),
							.abi_flags = elf.abi_flags };
}

int graft_mounted_libraries_read(const struct graft_cdi_edits *edits, const char *const *folders, size_t n_folders,
				 struct graft_arena *arena, struct graft_mounted_libraries *ret,
				 struct graft_error *err)
{
	*ret = (struct graft_mounted_libraries){ .n = 0 };
	for (size_t i = 0; i < edits->n_mounts; i++) {
		const struct graft_cdi_mount *row = &edits->mounts[i];

		if (graft_ldcache_is_library_name(graft_path_name(row->container_path)) &&
		    is_in_folders(row->container_path, folders, n_folders))
			read_mounted_library(row, arena, ret);
		else
			look_at_mounted_file(row, arena, ret);
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
