/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_message: texts for messages about a tree. Separate from the parsers, so that programs that
 * only quote a text are not linked with YAML.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "formats/tree/tree.h"

#define WHAT_MAX 384

const char *const graft_tree_kind_names[] = { "null",     "a boolean", "a number", "a number",
					      "a string", "a list",    "an object" };

int(graft_tree_fail_at)(const char *file, const char *what, unsigned int line, unsigned int column,
			struct graft_error *err, const char *format, ...)
{
	char text[WHAT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (line == 0)
		return graft_fail(err, GRAFT_FORMAT, 0, "%s: %s%s", file, what ? what : "", text);
	return graft_fail(err, GRAFT_FORMAT, 0, "%s: line %u, column %u: %s%s", file, line, column, what ? what : "",
			  text);
}

const char *graft_tree_quote_part(const char *text, size_t length, char *buffer, size_t size)
{
	size_t at = 0, i;

	buffer[at++] = '"';
	for (i = 0; i < length && at + 8 < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			at += (size_t)snprintf(buffer + at, size - at, "\\%c", c);
		else if (c < 0x20 || c > 0x7e)
			at += (size_t)snprintf(buffer + at, size - at, "\\x%02x", c);
		else
			buffer[at++] = (char)c;
	}
	(void)snprintf(buffer + at, size - at, "%s\"", i < length ? "..." : "");
	return buffer;
}

const char *graft_tree_quote(const char *text, char *buffer, size_t size)
{
	return graft_tree_quote_part(text, strlen(text), buffer, size);
}
