/* SPDX-License-Identifier: Apache-2.0 */
/* buffer: doubles its capacity up to the maximum. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"

#define DEFAULT_MAX ((size_t)64 * 1024 * 1024)

void graft_buffer_done(struct graft_buffer *buffer)
{
	size_t max = buffer->max;

	free(buffer->bytes);
	*buffer = (struct graft_buffer){ .max = max };
}

static bool grow(struct graft_buffer *buffer, size_t n)
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
	if (capacity > max)
		capacity = max + 1;
	bytes = realloc(buffer->bytes, capacity);
	if (!bytes) {
		buffer->failed = true;
		return false;
	}
	buffer->bytes = bytes;
	buffer->capacity = capacity;
	return true;
}

/*
 * Makes room for `n` more bytes and a NUL. The capacity never exceeds what the maximum allows, so
 * checking it is enough.
 */
static bool reserve(struct graft_buffer *buffer, size_t n)
{
	if (n < buffer->capacity - buffer->length && !buffer->failed)
		return true;
	return grow(buffer, n);
}

char *graft_buffer_extend(struct graft_buffer *buffer, size_t n)
{
	char *end;

	if (!reserve(buffer, n))
		return NULL;
	end = buffer->bytes + buffer->length;
	end[n] = '\0';
	buffer->length += n;
	return end;
}

void graft_buffer_add(struct graft_buffer *buffer, const void *bytes, size_t n)
{
	char *end = graft_buffer_extend(buffer, n);

	if (end && n > 0)
		memcpy(end, bytes, n);
}

void graft_buffer_string(struct graft_buffer *buffer, const char *s)
{
	graft_buffer_add(buffer, s, strlen(s));
}

void graft_buffer_char(struct graft_buffer *buffer, char c)
{
	char *end = graft_buffer_extend(buffer, 1);

	if (end)
		*end = c;
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

void graft_buffer_visible(struct graft_buffer *buffer, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	for (size_t left = strlen(text), n; left > 0; s += n, left -= n) {
		n = graft_visible_length(s, left);
		if (*s == '\\')
			graft_buffer_string(buffer, "\\\\");
		else if (n > 0)
			graft_buffer_add(buffer, s, n);
		else
			graft_buffer_printf(buffer, "\\x%02x", *s);
		n = n > 0 ? n : 1;
	}
}

bool graft_buffer_failed(const struct graft_buffer *buffer)
{
	return buffer->failed;
}

const char *graft_buffer_text(const struct graft_buffer *buffer)
{
	return buffer->bytes ? buffer->bytes : "";
}
