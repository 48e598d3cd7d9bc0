/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_scalar: the meaning of plain (unquoted) YAML scalars, and hence which texts must be quoted.
 * They mean what they mean to the Go readers of the same files, which follow YAML 1.1 with Go's
 * numbers: `yes` is true, `0666` and `0o666` are octal, `1_000` is a thousand.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/tree/tree.h"

#define WORD_MAX 5 /* the longest ones: "false", "+.inf" */

static const char *const null_words[] = { "", "~", "null", "Null", "NULL" };
static const char *const true_words[] = { "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON" };
static const char *const false_words[] = { "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF" };
static const char *const odd_numbers[] = { ".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF",
					   "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF" };

#define IS_ONE_OF(text, words) graft_is_in(words, GRAFT_COUNT(words), text)

static int hex_value_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

/* Returns the base that a number's prefix specifies, and advances *digits past it. */
static int base_of(const char **digits)
{
	const char *at = *digits;

	if (at[0] != '0' || at[1] == '\0')
		return 10;
	*digits = at + 2;
	if (at[1] == 'x' || at[1] == 'X')
		return 16;
	if (at[1] == 'b' || at[1] == 'B')
		return 2;
	if (at[1] == 'o' || at[1] == 'O')
		return 8;
	*digits = at + 1;
	return 8;
}

/* Returns false if it is not an integer, or does not fit into 64 bits. */
static bool read_integer(const char *text, bool *ret_negative, uint64_t *ret_magnitude)
{
	const char *at = text + (text[0] == '-' || text[0] == '+');
	int base = base_of(&at);
	uint64_t value = 0;
	bool any = false;

	*ret_negative = text[0] == '-';
	for (; *at != '\0'; at++) {
		int digit = hex_value_of(*at);

		if (*at == '_')
			continue;
		if (digit >= base || __builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
		any = true;
	}
	*ret_magnitude = value;
	return any && (!*ret_negative || value <= (uint64_t)INT64_MAX + 1);
}

/*
 * A number with a fraction or an exponent, or a decimal number that a leading zero does not make
 * octal.
 */
static bool is_fraction(const char *text)
{
	const char *at = text + (text[0] == '-' || text[0] == '+');
	size_t digits = strspn(at, "0123456789_"), more = 0;

	at += digits;
	if (*at == '.') {
		more = strspn(at + 1, "0123456789_");
		at += 1 + more;
	}
	if (digits + more == 0)
		return false;
	if (*at == 'e' || *at == 'E') {
		at += 1 + (at[1] == '-' || at[1] == '+');
		if (*at == '\0')
			return false;
		at += strspn(at, "0123456789");
	}
	return *at == '\0';
}

/*
 * Nearly all texts of a spec are paths and the like: longer than any of the words above, and not
 * beginning like a number.
 */
static bool is_surely_string(const char *text)
{
	return strnlen(text, WORD_MAX + 1) > WORD_MAX && !strchr("0123456789+-._", text[0]);
}

enum graft_tree_kind graft_tree_plain_kind(const char *text, bool *ret_negative, uint64_t *ret_magnitude)
{
	bool negative;
	uint64_t magnitude;

	if (is_surely_string(text))
		return GRAFT_TREE_STRING;
	if (IS_ONE_OF(text, null_words))
		return GRAFT_TREE_NULL;
	if (IS_ONE_OF(text, true_words) || IS_ONE_OF(text, false_words)) {
		*ret_magnitude = IS_ONE_OF(text, true_words);
		return GRAFT_TREE_BOOL;
	}
	if (read_integer(text, &negative, &magnitude)) {
		*ret_negative = negative && magnitude != 0;
		*ret_magnitude = magnitude;
		return GRAFT_TREE_INTEGER;
	}
	return is_fraction(text) || IS_ONE_OF(text, odd_numbers) ? GRAFT_TREE_FRACTION : GRAFT_TREE_STRING;
}

/* --- writing --- */

/*
 * Sexagesimal numbers ("0:1"), which YAML 1.1 has, and dates. Our reader takes neither for a
 * number, but others do.
 */
static bool is_clock_or_date(const char *text)
{
	const char *at = text + (text[0] == '-' || text[0] == '+');
	size_t digits = strspn(at, "0123456789_");

	if (digits == 0)
		return false;
	return at[digits] == ':' || (digits == 4 && at[digits] == '-');
}

/* Returns the code point of a well-formed sequence of `length` bytes. */
static uint32_t decode_code_point(const unsigned char *bytes, size_t length)
{
	uint32_t code = length == 1 ? bytes[0] : bytes[0] & (0xffu >> (length + 1));

	for (size_t i = 1; i < length; i++)
		code = code << 6 | (bytes[i] & 0x3fu);
	return code;
}

/*
 * Returns whether a character can be part of a line of YAML without being escaped: it is not a
 * control character, and no reader takes it for a line end.
 */
static bool is_printable(uint32_t code)
{
	return (code >= 0x20 && code <= 0x7e) ||
	       (code >= 0xa0 && code <= 0xfffd && code != 0xfeff && code != 0x2028 && code != 0x2029) ||
	       code >= 0x10000;
}

static size_t length_at(const char *text)
{
	const unsigned char *bytes = (const unsigned char *)text;

	return *bytes < 0x80 ? 1 : graft_utf8_length(bytes, strnlen(text, 4));
}

/*
 * Returns false if the text begins like a YAML indicator. A dash is an indicator only if a blank or
 * nothing follows.
 */
static bool begins_like_plain(const char *text)
{
	if (text[0] == '-')
		return text[1] != ' ' && text[1] != '\0' && !graft_starts_with(text, "---");
	return !strchr("?:,[]{}#&*!|>'\"%@` ", text[0]) && !graft_starts_with(text, "...");
}

static bool is_plain_scalar(const char *text)
{
	uint64_t magnitude;
	bool negative;
	size_t length = strlen(text);

	if (length == 0 || !begins_like_plain(text) || text[length - 1] == ' ' || text[length - 1] == ':' ||
	    strstr(text, ": ") || strstr(text, " #") || strcmp(text, "=") == 0 || strcmp(text, "<<") == 0 ||
	    is_clock_or_date(text) || graft_tree_plain_kind(text, &negative, &magnitude) != GRAFT_TREE_STRING)
		return false;
	for (const char *at = text; *at != '\0'; at += length_at(at)) {
		if (!is_printable(decode_code_point((const unsigned char *)at, length_at(at))))
			return false;
	}
	return true;
}

static void quote_character(struct graft_buffer *out, const char *bytes, size_t length)
{
	uint32_t code = decode_code_point((const unsigned char *)bytes, length);

	if (code == '"' || code == '\\')
		graft_buffer_printf(out, "\\%c", (char)code);
	else if (code == '\n' || code == '\t')
		graft_buffer_string(out, code == '\n' ? "\\n" : "\\t");
	else if (is_printable(code))
		graft_buffer_add(out, bytes, length);
	else if (code <= 0xff)
		graft_buffer_printf(out, "\\x%02X", code);
	else
		graft_buffer_printf(out, "\\u%04X", code);
}

void graft_tree_quote_yaml(struct graft_buffer *out, const char *text)
{
	if (is_plain_scalar(text)) {
		graft_buffer_string(out, text);
		return;
	}
	graft_buffer_char(out, '"');
	for (const char *at = text; *at != '\0'; at += length_at(at))
		quote_character(out, at, length_at(at));
	graft_buffer_char(out, '"');
}
