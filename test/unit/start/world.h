/* SPDX-License-Identifier: Apache-2.0 */
/* world: a directory and an arena for each test of nvidia-container-runtime. */
#ifndef GRAFT_TEST_RUNTIME_WORLD_H
#define GRAFT_TEST_RUNTIME_WORLD_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../folder.h"
#include "../unit.h"
#include "base/arena.h"
#include "base/cleanup.h"

#include "../elf_notes.h"

struct world {
	char directory[64];
	struct graft_arena *arena;
};

static inline const char *world_path(const struct world *world, const char *path)
{
	return graft_arena_printf(world->arena, "%s/%s", world->directory, path);
}

/* The text, with the world's directory and a slash for each "@". */
static inline const char *world_text(const struct world *world, const char *text)
{
	const char *found = "";

	for (const char *at; (at = strchr(text, '@')); text = at + 1)
		found = graft_arena_printf(world->arena, "%s%.*s%s/", found, (int)(at - text), text, world->directory);
	return graft_arena_printf(world->arena, "%s%s", found, text);
}

/* Writes a file and makes its parent directories. */
static inline const char *world_put_bytes(const struct world *world, const char *path, const void *bytes, size_t n,
					  mode_t mode)
{
	const char *full = world_path(world, path);

	test_put_bytes(AT_FDCWD, full, bytes, n);
	assert_int_equal(chmod(full, mode), 0);
	return full;
}

static inline const char *world_put(const struct world *world, const char *path, const char *text, mode_t mode)
{
	return world_put_bytes(world, path, text, strlen(text), mode);
}

/* Writes a program with the ELF notes of glibc and, if `go`, of Go. */
static inline const char *world_put_program(const struct world *world, const char *path, bool go)
{
	static const struct elf_note notes[] = { ELF_NOTES_GLIBC(0), ELF_NOTES_GO(0) };
	unsigned char bytes[ELF_NOTES_MAX];
	size_t n = elf_notes_make(bytes, true, notes, go ? 2 : 1, 0);

	return world_put_bytes(world, path, bytes, n, 0755);
}

/* The text of a file; "" if it does not exist. */
static inline const char *world_get(const struct world *world, const char *path)
{
	auto_close int fd = open(world_path(world, path), O_RDONLY | O_CLOEXEC);
	char *text = graft_arena_alloc(world->arena, 65536);
	ssize_t n = fd < 0 ? 0 : read(fd, text, 65535);

	assert_true(n >= 0);
	return text;
}

static inline int world_begin(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	if (!world)
		return -1;
	(void)snprintf(world->directory, sizeof(world->directory), "/tmp/graft-runtime-XXXXXX");
	world->arena = graft_arena_new((size_t)64 << 20);
	*state = world;
	return world->arena && mkdtemp(world->directory) ? 0 : -1;
}

static inline int world_end(void **state)
{
	struct world *world = *state;
	int rc = test_remove_folder(world->directory);

	graft_arena_free(world->arena);
	free(world);
	return rc;
}

#endif
