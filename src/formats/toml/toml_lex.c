/* SPDX-License-Identifier: Apache-2.0 */
/* toml_lex: blanks, comments, keys and strings of TOML. Knows nothing about tables. */
#include <string.h>

#include "base/strings.h"
#include "formats/toml/toml_tree.h"

bool toml_wrong(struct toml_scan *scan, size_t at, const char *why)
{
	if (!scan->why) {
		scan->why = why;
		scan->why_at = at;
		scan->status = GRAFT_FORMAT;
	}
	return false;
}

bool toml_no_memory(struct toml_scan *scan)
{
	(void)toml_wrong(scan, scan->at, "out of memory");
	scan->status = GRAFT_NO_MEMORY;
	return false;
}

bool toml_copy(struct toml_scan *scan, const char *bytes, size_t n, struct toml_text *ret_text)
{
	char *copy = graft_arena_alloc(scan->arena, n + 1);

	if (!copy)
		return toml_no_memory(scan);
	memcpy(copy, bytes, n);
	*ret_text = (struct toml_text){ copy, n };
	return true;
}

bool toml_is_at(const struct toml_scan *scan, char c)
{
	return scan->at < scan->length && scan->text[scan->at] == c;
}

static bool is_blank_at(const struct toml_scan *scan, size_t at)
{
	return at < scan->length && (scan->text[at] == ' ' || scan->text[at] == '\t');
}

void toml_skip_blanks(struct toml_scan *scan)
{
	while (is_blank_at(scan, scan->at))
		scan->at++;
}

size_t toml_newline(const struct toml_scan *scan, size_t at)
{
	if (at < scan->length && scan->text[at] == '\n')
		return at + 1;
	if (scan->length - at >= 2 && scan->text[at] == '\r' && scan->text[at + 1] == '\n')
		return at + 2;
	return at;
}

static bool is_control(char c)
{
	return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

bool toml_skip_comment(struct toml_scan *scan)
{
	if (!toml_is_at(scan, '#'))
		return true;
	while (scan->at < scan->length && toml_newline(scan, scan->at) == scan->at) {
		if (is_control(scan->text[scan->at]))
			return toml_wrong(scan, scan->at, "control character in a comment");
		scan->at++;
	}
	return true;
}

bool toml_skip_lines(struct toml_scan *scan)
{
	for (;;) {
		size_t behind;

		toml_skip_blanks(scan);
		if (!toml_skip_comment(scan))
			return false;
		behind = toml_newline(scan, scan->at);
		if (behind == scan->at)
			return true;
		scan->at = behind;
	}
}

bool toml_check_utf8(struct toml_scan *scan)
{
	for (size_t at = 0; at < scan->length;) {
		const unsigned char *s = (const unsigned char *)scan->text + at;
		size_t n = *s < 0x80 ? 1 : graft_utf8_length(s, scan->length - at);

		if (n == 0)
			return toml_wrong(scan, at, "invalid UTF-8");
		at += n;
	}
	return true;
}

/*
 * Scans \uXXXX or \UXXXXXXXX from the first digit on. The decoded form is never longer than the
 * escape.
 */
static bool scan_code(struct toml_scan *scan, int digits, size_t *n)
{
	size_t start = scan->at;
	uint32_t code = 0;

	for (int i = 0; i < digits; i++, scan->at++) {
		char c = scan->text[scan->at];

		if (c >= '0' && c <= '9')
			code = code << 4 | (uint32_t)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			code = code << 4 | (uint32_t)((c | 0x20) - 'a' + 10);
		else
			return toml_wrong(scan, scan->at, "a hexadecimal digit is missing in the escape");
	}
	if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return toml_wrong(scan, start, "the escape is not a Unicode character");
	*n = (size_t)(graft_utf8_put(scan->scratch + *n, code) - scan->scratch);
	return true;
}

/* A backslash at the end of a line swallows all white space up to the next character. */
static bool skip_folded(struct toml_scan *scan)
{
	size_t at = scan->at + 1, behind;

	while (is_blank_at(scan, at))
		at++;
	if (toml_newline(scan, at) == at)
		return false;
	for (;;) {
		while (is_blank_at(scan, at))
			at++;
		behind = toml_newline(scan, at);
		if (behind == at)
			break;
		at = behind;
	}
	scan->at = at;
	return true;
}

static bool scan_toml_escape(struct toml_scan *scan, bool multiline, size_t *n)
{
	static const char letters[] = "btnfr\"\\", bytes[] = "\b\t\n\f\r\"\\";
	const char *letter;
	char c;

	if (multiline && skip_folded(scan))
		return true;
	c = scan->text[scan->at + 1];
	scan->at += 2;
	if (c == 'u' || c == 'U')
		return scan_code(scan, c == 'u' ? 4 : 8, n);
	letter = c ? strchr(letters, c) : NULL;
	if (!letter)
		return toml_wrong(scan, scan->at - 2, "unknown escape; a literal backslash is written \\\\");
	scan->scratch[(*n)++] = bytes[letter - letters];
	return true;
}

/*
 * Scans quotes inside or at the end of a multi-line string: up to two may precede the three that
 * end it.
 */
static bool scan_quotes(struct toml_scan *scan, char quote, size_t *n)
{
	size_t run = 0;

	while (run < 5 && toml_is_at(scan, quote)) {
		run++;
		scan->at++;
	}
	memset(scan->scratch + *n, quote, run);
	*n += run < 3 ? run : run - 3;
	return run >= 3;
}

static bool scan_string_char(struct toml_scan *scan, bool multiline, size_t *n)
{
	size_t behind = toml_newline(scan, scan->at);

	if (behind != scan->at) {
		if (!multiline)
			return toml_wrong(scan, scan->at, "the string does not end on its line");
		memcpy(scan->scratch + *n, scan->text + scan->at, behind - scan->at);
		*n += behind - scan->at;
		scan->at = behind;
		return true;
	}
	if (is_control(scan->text[scan->at]))
		return toml_wrong(scan, scan->at, "control character in a string");
	scan->scratch[(*n)++] = scan->text[scan->at++];
	return true;
}

bool toml_scan_string(struct toml_scan *scan, bool may_be_long, struct toml_text *ret_text)
{
	size_t start = scan->at, n = 0;
	char quote = scan->text[scan->at];
	bool multiline = may_be_long && scan->length - start >= 3 && scan->text[start + 1] == quote &&
			 scan->text[start + 2] == quote;

	scan->at += multiline ? 3 : 1;
	if (multiline)
		scan->at = toml_newline(scan, scan->at);
	while (scan->at < scan->length) {
		if (toml_is_at(scan, quote)) {
			if (multiline && !scan_quotes(scan, quote, &n))
				continue;
			scan->at += multiline ? 0 : 1;
			return toml_copy(scan, scan->scratch, n, ret_text);
		}
		if (quote == '"' && toml_is_at(scan, '\\')) {
			if (!scan_toml_escape(scan, multiline, &n))
				return false;
		} else if (!scan_string_char(scan, multiline, &n)) {
			return false;
		}
	}
	return toml_wrong(scan, start, "the string does not end");
}

bool toml_is_bare(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '-';
}

bool toml_scan_key_part(struct toml_scan *scan, struct toml_text *ret_key)
{
	size_t start = scan->at;

	if (toml_is_at(scan, '"') || toml_is_at(scan, '\''))
		return toml_scan_string(scan, false, ret_key);
	while (scan->at < scan->length && toml_is_bare(scan->text[scan->at]))
		scan->at++;
	if (scan->at == start)
		return toml_wrong(scan, start, "expected a key");
	return toml_copy(scan, scan->text + start, scan->at - start, ret_key);
}
