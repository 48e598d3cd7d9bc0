/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer: a growing byte string with a maximum. Errors are sticky: after a failed append, further
 * appends do nothing and graft_buffer_failed() returns true. `bytes` is always NUL-terminated once
 * anything has been appended.
 */
#ifndef GRAFT_BASE_BUFFER_H
#define GRAFT_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct graft_buffer {
	char *bytes; /* owned; NULL while empty */
	size_t length;
	size_t capacity;
	size_t max; /* bytes; 0: 64 MiB */
	bool failed;
};

/* Frees the content; the buffer can be used again. */
void graft_buffer_done(struct graft_buffer *buffer);
#define auto_buffer __attribute__((cleanup(graft_buffer_done)))
/* Appends `n` bytes for the caller to fill in. Returns the first of them, or NULL on failure. */
char *graft_buffer_extend(struct graft_buffer *buffer, size_t n);
/* Append n bytes, a string, a character or formatted text. */
void graft_buffer_add(struct graft_buffer *buffer, const void *bytes, size_t n);
void graft_buffer_string(struct graft_buffer *buffer, const char *s);
void graft_buffer_char(struct graft_buffer *buffer, char c);
__attribute__((format(printf, 2, 3))) void graft_buffer_printf(struct graft_buffer *buffer, const char *format, ...);
/*
 * Appends text from an image or another untrusted source, for people: control characters, what is
 * not UTF-8, and characters that change the direction of text become "\xNN", byte by byte, and a
 * backslash is doubled. SECURITY: nothing in it can start a line or reach a terminal as an escape
 * sequence.
 */
void graft_buffer_visible(struct graft_buffer *buffer, const char *text);
/* Returns whether any append has failed: memory or the maximum was exhausted. */
bool graft_buffer_failed(const struct graft_buffer *buffer);
/* Returns the text; "" if the buffer is empty. */
const char *graft_buffer_text(const struct graft_buffer *buffer);

#endif
