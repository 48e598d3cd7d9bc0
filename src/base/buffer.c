/* SPDX-License-Identifier: Apache-2.0 */
/* buffer: doubling growth up to the maximum. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX ((size_t)64 * 1024 * 1024)

void graft_buffer_done(struct graft_buffer *buffer)
{
	size_t max = buffer->max;

	free(buffer->bytes);
	*buffer = (struct graft_buffer){ .max = max };
}

/* Room for `n` more bytes and a NUL. */
static bool reserve(struct graft_buffer *buffer, size_t n)
{
	size_t max = buffer->max != 0 ? buffer->max : DEFAULT_MAX;
	size_t capacity = buffer->capacity != 0 ? buffer->capacity : 1024;
	char *bytes;

	if (buffer->failed)
		return false;
	if (n > max || buffer->length > max - n) {
		buffer->failed = true;
		return false;
	}
	while (capacity < buffer->length + n + 1)
		capacity *= 2;
	if (capacity == buffer->capacity)
		return true;
	bytes = realloc(buffer->bytes, capacity);
	if (!bytes) {
		buffer->failed = true;
		return false;
	}
	buffer->bytes = bytes;
	buffer->capacity = capacity;
	return true;
}

void graft_buffer_add(struct graft_buffer *buffer, const void *bytes, size_t n)
{
	if (!reserve(buffer, n))
		return;
	if (n > 0)
		memcpy(buffer->bytes + buffer->length, bytes, n);
	buffer->length += n;
	buffer->bytes[buffer->length] = '\0';
}

void graft_buffer_string(struct graft_buffer *buffer, const char *s)
{
	graft_buffer_add(buffer, s, strlen(s));
}

void graft_buffer_char(struct graft_buffer *buffer, char c)
{
	graft_buffer_add(buffer, &c, 1);
}

void graft_buffer_printf(struct graft_buffer *buffer, const char *format, ...)
{
	va_list args, again;
	int length;

	va_start(args, format);
	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (length < 0)
		buffer->failed = true;
	else if (reserve(buffer, (size_t)length)) {
		(void)vsnprintf(buffer->bytes + buffer->length, (size_t)length + 1, format, again);
		buffer->length += (size_t)length;
	}
	va_end(again);
}

bool graft_buffer_failed(const struct graft_buffer *buffer)
{
	return buffer->failed;
}

const char *graft_buffer_text(const struct graft_buffer *buffer)
{
	return buffer->bytes ? buffer->bytes : "";
}
