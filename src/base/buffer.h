/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer: a growing byte string with a maximum. Sticky: after a failed append the rest are no-ops and
 * graft_buffer_failed() says so. `bytes` is always NUL-terminated once anything was appended.
 */
#ifndef GRAFT_BASE_BUFFER_H
#define GRAFT_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct graft_buffer {
	char *bytes; /* owned; NULL while empty */
	size_t length;
	size_t capacity;
	size_t max; /* 0 = 64 MiB */
	bool failed;
};

void graft_buffer_done(struct graft_buffer *buffer); /* frees the content and zeroes it, ready for reuse */
/* Room for `n` bytes at the end, which the caller fills; they count already. NULL: failed. */
char *graft_buffer_extend(struct graft_buffer *buffer, size_t n);
void graft_buffer_add(struct graft_buffer *buffer, const void *bytes, size_t n);
void graft_buffer_string(struct graft_buffer *buffer, const char *s);
void graft_buffer_char(struct graft_buffer *buffer, char c);
__attribute__((format(printf, 2, 3))) void graft_buffer_printf(struct graft_buffer *buffer, const char *format, ...);
bool graft_buffer_failed(const struct graft_buffer *buffer);
/* The text; "" when empty. */
const char *graft_buffer_text(const struct graft_buffer *buffer);

#endif
