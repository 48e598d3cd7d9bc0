/* SPDX-License-Identifier: Apache-2.0 */
/* utf8: checks one sequence at a time. Knows nothing about the format of the text. */
#include "base/strings.h"

#include <string.h>

size_t graft_utf8_length(const unsigned char *s, size_t left)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t code;
	size_t n;

	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (left < n)
		return 0;
	code = s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0u) != 0x80u)
			return 0;
		code = code << 6 | (s[i] & 0x3fu);
	}
	return code < smallest[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? 0 : n;
}

char *graft_utf8_put(char *out, uint32_t code)
{
	if (code < 0x80) {
		*out++ = (char)code;
		return out;
	}
	if (code < 0x800) {
		*out++ = (char)(0xc0 | code >> 6);
	} else {
		if (code < 0x10000) {
			*out++ = (char)(0xe0 | code >> 12);
		} else {
			*out++ = (char)(0xf0 | code >> 18);
			*out++ = (char)(0x80 | (code >> 12 & 0x3f));
		}
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
	}
	*out++ = (char)(0x80 | (code & 0x3f));
	return out;
}

/*
 * C1 controls (U+0080 to U+009F), direction marks and overrides (U+061C, U+200E, U+200F, U+202A to
 * U+202E, U+2066 to U+2069), line and paragraph separators (U+2028, U+2029).
 */
static bool is_invisible(const unsigned char *s, size_t n)
{
	if (n == 2)
		return (s[0] == 0xc2 && s[1] < 0xa0) || (s[0] == 0xd8 && s[1] == 0x9c);
	if (n != 3 || s[0] != 0xe2)
		return false;
	return (s[1] == 0x80 && ((s[2] >= 0x8e && s[2] <= 0x8f) || (s[2] >= 0xa8 && s[2] <= 0xae))) ||
	       (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9);
}

size_t graft_visible_length(const unsigned char *s, size_t left)
{
	size_t n = *s < 0x80 ? 1u : graft_utf8_length(s, left);

	return *s < ' ' || *s == 0x7f || is_invisible(s, n) ? 0 : n;
}

/* The length of a character, or 0. */
static size_t length_of_character(const char *text)
{
	const unsigned char *bytes = (const unsigned char *)text;

	return *bytes < 0x80 ? 1 : graft_utf8_length(bytes, strnlen(text, 4));
}

bool graft_is_utf8(const char *text)
{
	for (size_t n; *text != '\0'; text += n) {
		n = length_of_character(text);
		if (n == 0)
			return false;
	}
	return true;
}

void graft_utf8_mend(char *text)
{
	for (size_t n; *text != '\0'; text += n) {
		n = length_of_character(text);
		if (n == 0) {
			*text = '?';
			n = 1;
		}
	}
}

void graft_utf8_place(const char *text, size_t at, unsigned int *ret_line, unsigned int *ret_column)
{
	*ret_line = 1;
	*ret_column = 1;
	for (size_t i = 0; i < at; i++) {
		if (text[i] == '\n') {
			(*ret_line)++;
			*ret_column = 1;
		} else if ((text[i] & 0xc0) != 0x80) {
			(*ret_column)++;
		}
	}
}
