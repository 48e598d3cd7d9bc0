/* SPDX-License-Identifier: Apache-2.0 */
/* read: the whole content of a file, or of input that a user names. */
#ifndef GRAFT_BASE_READ_H
#define GRAFT_BASE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/*
 * Reads a regular file from the descriptor's position to its end. Files of procfs that report size
 * 0 are read to their end. The bytes are in `arena`, followed by a NUL that is not included in the
 * length. Returns 0 or -errno: -EINVAL unless it is a regular file, -EFBIG if it is larger than
 * `max`.
 */
int graft_read_fd(int fd, size_t max, struct graft_arena *arena, const char **ret_bytes, size_t *ret_length);

/*
 * The same for input that the user of a command names: "-" is standard input, and a pipe, a socket
 * or a device is read to its end, however long that takes. Never use it for a path that an image or
 * a directory listing provides. Returns 0 or -errno: -EISDIR for a directory, -EFBIG if there are
 * more than `max` bytes.
 */
int graft_read_input(const char *path, size_t max, struct graft_arena *arena, const char **ret_bytes,
		     size_t *ret_length);
/* pread(2), repeated after a signal. Returns the count, or -1 with errno. */
long graft_read_at(int fd, void *bytes, size_t n, uint64_t offset);
/*
 * Returns whether the input that a user names can be read only once: "-", or anything but a regular
 * file.
 */
bool graft_is_stream(const char *path);
/* Returns the name of such input in messages: "standard input" for "-", otherwise the path. */
const char *graft_input_name(const char *path);

#endif
