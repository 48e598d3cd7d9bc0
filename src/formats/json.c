/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json: strict parsing on top of json-c. What json-c lets through although RFC 8259 forbids it is found by a scan of
 * the text first, so that two readers of one file never disagree about it. Knows nothing of what the JSON means.
 */
#include "formats/json.h"

#include <json-c/json.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

#define TEXT_MAX ((size_t)16 * 1024 * 1024)

struct scan {
	const unsigned char *bytes;
	size_t length, at;
	unsigned int depth, max_depth;
	const char *why; /* what is wrong, once something is */
};

static bool wrong(struct scan *scan, const char *why)
{
	if (!scan->why)
		scan->why = why;
	return false;
}

static bool is_at(const struct scan *scan, char c)
{
	return scan->at < scan->length && scan->bytes[scan->at] == (unsigned char)c;
}

static bool is_digit_at(const struct scan *scan)
{
	return scan->at < scan->length && scan->bytes[scan->at] >= '0' && scan->bytes[scan->at] <= '9';
}

static void skip_blanks(struct scan *scan)
{
	while (is_at(scan, ' ') || is_at(scan, '\t') || is_at(scan, '\n') || is_at(scan, '\r'))
		scan->at++;
}

/* Four hex digits; -1 when they are not there. */
static int32_t scan_hex4(struct scan *scan)
{
	int32_t value = 0;

	for (int i = 0; i < 4; i++, scan->at++) {
		unsigned char c = scan->at < scan->length ? scan->bytes[scan->at] : 0;

		if (c >= '0' && c <= '9')
			value = value * 16 + (c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			value = value * 16 + ((c | 0x20) - 'a' + 10);
		else
			return -1;
	}
	return value;
}

static bool scan_unicode_escape(struct scan *scan, bool is_key)
{
	int32_t code = scan_hex4(scan);

	if (code < 0)
		return wrong(scan, "bad \\u escape");
	if (code == 0 && is_key)
		return wrong(scan, "NUL in a member name");
	if (code >= 0xdc00 && code <= 0xdfff)
		return wrong(scan, "lone surrogate");
	if (code < 0xd800 || code > 0xdbff)
		return true;
	if (!is_at(scan, '\\'))
		return wrong(scan, "lone surrogate");
	scan->at++;
	if (!is_at(scan, 'u'))
		return wrong(scan, "lone surrogate");
	scan->at++;
	code = scan_hex4(scan);
	return (code >= 0xdc00 && code <= 0xdfff) || wrong(scan, "lone surrogate");
}

static bool scan_escape(struct scan *scan, bool is_key)
{
	scan->at++;
	if (scan->at >= scan->length)
		return wrong(scan, "unterminated string");
	if (is_at(scan, 'u')) {
		scan->at++;
		return scan_unicode_escape(scan, is_key);
	}
	if (scan->bytes[scan->at] == '\0' || !strchr("\"\\/bfnrt", scan->bytes[scan->at]))
		return wrong(scan, "unknown escape");
	scan->at++;
	return true;
}

static bool scan_string(struct scan *scan, bool is_key)
{
	if (!is_at(scan, '"'))
		return wrong(scan, is_key ? "a member name must be a string in double quotes" : "expected a string");
	scan->at++;
	while (scan->at < scan->length) {
		unsigned char c = scan->bytes[scan->at];
		size_t n = 1;

		if (c == '"') {
			scan->at++;
			return true;
		}
		if (c < 0x20)
			return wrong(scan, "control character in a string");
		if (c == '\\') {
			if (!scan_escape(scan, is_key))
				return false;
			continue;
		}
		if (c >= 0x80)
			n = graft_utf8_length(scan->bytes + scan->at, scan->length - scan->at);
		if (n == 0)
			return wrong(scan, "invalid UTF-8");
		scan->at += n;
	}
	return wrong(scan, "unterminated string");
}

static bool scan_digits(struct scan *scan)
{
	if (!is_digit_at(scan))
		return wrong(scan, "malformed number");
	while (is_digit_at(scan))
		scan->at++;
	return true;
}

/* Whether the decimal digits fit 64 bits: at most 2^64 - 1, or 2^63 behind a minus. */
static bool fits_64_bits(const unsigned char *digits, size_t n, bool negative)
{
	static const char largest[] = "18446744073709551615", smallest[] = "9223372036854775808";
	const char *limit = negative ? smallest : largest;

	return n < strlen(limit) || (n == strlen(limit) && memcmp(digits, limit, n) <= 0);
}

static bool scan_number(struct scan *scan)
{
	bool negative = is_at(scan, '-'), integer = true;
	size_t start;

	if (negative)
		scan->at++;
	start = scan->at;
	if (is_at(scan, '0'))
		scan->at++;
	else if (!scan_digits(scan))
		return false;
	if (is_digit_at(scan))
		return wrong(scan, "number with a leading zero");
	if (is_at(scan, '.') || is_at(scan, 'e') || is_at(scan, 'E'))
		integer = false;
	if (integer && !fits_64_bits(scan->bytes + start, scan->at - start, negative))
		return wrong(scan, "integer beyond 64 bits");
	if (is_at(scan, '.')) {
		scan->at++;
		if (!scan_digits(scan))
			return false;
	}
	if (is_at(scan, 'e') || is_at(scan, 'E')) {
		scan->at++;
		if (is_at(scan, '+') || is_at(scan, '-'))
			scan->at++;
		if (!scan_digits(scan))
			return false;
	}
	return true;
}

static bool scan_word(struct scan *scan, const char *word)
{
	size_t n = strlen(word);

	if (scan->length - scan->at < n || memcmp(scan->bytes + scan->at, word, n) != 0)
		return wrong(scan, "expected a value");
	scan->at += n;
	return true;
}

static bool scan_value(struct scan *scan);

/* The inside of an object or array, up to and with its closing bracket. */
static bool scan_members(struct scan *scan, char close, bool keys)
{
	scan->at++;
	if (++scan->depth > scan->max_depth)
		return wrong(scan, "nested too deeply");
	skip_blanks(scan);
	if (is_at(scan, close)) {
		scan->at++;
		scan->depth--;
		return true;
	}
	for (;;) {
		skip_blanks(scan);
		if (keys) {
			if (!scan_string(scan, true))
				return false;
			skip_blanks(scan);
			if (!is_at(scan, ':'))
				return wrong(scan, "expected ':'");
			scan->at++;
		}
		if (!scan_value(scan))
			return false;
		skip_blanks(scan);
		if (is_at(scan, close)) {
			scan->at++;
			scan->depth--;
			return true;
		}
		if (!is_at(scan, ','))
			return wrong(scan, "expected ',' or a closing bracket");
		scan->at++;
	}
}

static bool scan_value(struct scan *scan)
{
	skip_blanks(scan);
	if (scan->at >= scan->length)
		return wrong(scan, "unexpected end");
	switch (scan->bytes[scan->at]) {
	case '{':
		return scan_members(scan, '}', true);
	case '[':
		return scan_members(scan, ']', false);
	case '"':
		return scan_string(scan, false);
	case 't':
		return scan_word(scan, "true");
	case 'f':
		return scan_word(scan, "false");
	case 'n':
		return scan_word(scan, "null");
	default:
		return scan_number(scan);
	}
}

static int fail_at(const struct scan *scan, struct graft_error *err)
{
	size_t end = scan->at < scan->length ? scan->at : scan->length;
	size_t line = 1, column = 1;

	for (size_t i = 0; i < end; i++) {
		column++;
		if (scan->bytes[i] == '\n') {
			line++;
			column = 1;
		}
	}
	return graft_fail(err, GRAFT_FORMAT, 0, "invalid JSON at line %zu, column %zu: %s", line, column, scan->why);
}

int graft_json_parse(const char *text, size_t length, unsigned int max_depth, struct json_object **ret_json,
		     struct graft_error *err)
{
	struct scan scan = { .bytes = (const unsigned char *)text, .length = length, .max_depth = max_depth };
	struct json_tokener *tokener;
	struct json_object *json;
	enum json_tokener_error rc;

	if (length > TEXT_MAX)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "JSON text of %zu bytes is over the limit of %zu", length,
				  TEXT_MAX);
	if (scan_value(&scan)) {
		skip_blanks(&scan);
		if (scan.at < scan.length)
			(void)wrong(&scan, "something follows the value");
	}
	if (scan.why)
		return fail_at(&scan, err);
	/* json-c counts the value itself as a level. */
	tokener = json_tokener_new_ex((int)max_depth + 1);
	if (!tokener)
		return graft_fail_memory(err);
	json = json_tokener_parse_ex(tokener, text, (int)length);
	rc = json_tokener_get_error(tokener);
	/* A bare number has no end of its own: the text's end is told by a NUL. */
	if (rc == json_tokener_continue) {
		json = json_tokener_parse_ex(tokener, "", 1);
		rc = json_tokener_get_error(tokener);
	}
	json_tokener_free(tokener);
	if (rc != json_tokener_success) {
		json_object_put(json);
		return graft_fail(err, GRAFT_FORMAT, 0, "invalid JSON: %s", json_tokener_error_desc(rc));
	}
	*ret_json = json;
	return 0;
}

void graft_json_free(struct json_object *json)
{
	(void)json_object_put(json);
}

void graft_json_cleanup(struct json_object **json)
{
	graft_json_free(*json);
}

static void quote_control(struct graft_buffer *out, unsigned char c)
{
	static const char letters[] = "btn.fr"; /* 0x08 to 0x0d; 0x0b has none */

	graft_buffer_char(out, '\\');
	if (c >= 0x08 && c <= 0x0d && c != 0x0b)
		graft_buffer_char(out, letters[c - 0x08]);
	else
		graft_buffer_printf(out, "u%04x", c);
}

void graft_json_quote(struct graft_buffer *out, const char *s)
{
	const unsigned char *bytes = (const unsigned char *)s;
	size_t left = strlen(s);

	graft_buffer_char(out, '"');
	while (left > 0) {
		size_t n = 1;

		if (*bytes >= 0x80)
			n = graft_utf8_length(bytes, left);
		if (n == 0) {
			graft_buffer_string(out, "\xef\xbf\xbd"); /* U+FFFD */
			n = 1;
		} else if (*bytes < 0x20 || *bytes == 0x7f) {
			quote_control(out, *bytes);
		} else {
			if (*bytes == '"' || *bytes == '\\')
				graft_buffer_char(out, '\\');
			graft_buffer_add(out, bytes, n);
		}
		bytes += n;
		left -= n;
	}
	graft_buffer_char(out, '"');
}

bool graft_json_is_array(const struct json_object *json)
{
	return json_object_is_type(json, json_type_array) != 0;
}

size_t graft_json_length(const struct json_object *array)
{
	return graft_json_is_array(array) ? json_object_array_length(array) : 0;
}

const struct json_object *graft_json_at(const struct json_object *array, size_t i)
{
	return i < graft_json_length(array) ? json_object_array_get_idx(array, i) : NULL;
}

const struct json_object *graft_json_member(const struct json_object *object, const char *name)
{
	struct json_object *member = NULL;

	if (!json_object_is_type(object, json_type_object))
		return NULL;
	return json_object_object_get_ex(object, name, &member) ? member : NULL;
}

const char *graft_json_string(const struct json_object *json)
{
	struct json_object *object;

	/* QUIRK: json-c hands out the text by a pointer to non-const, and computes nothing for a string. */
	memcpy(&object, &json, sizeof(object));
	return json_object_is_type(json, json_type_string) ? json_object_get_string(object) : NULL;
}
