/* SPDX-License-Identifier: Apache-2.0 */
/* json: the strict rules for our own JSON, and its strings. Does not know what the JSON means. */
#include "formats/json/json.h"

#include <string.h>

#include "base/strings.h"
#include "formats/json/json_tree.h"

int graft_json_parse(const char *text, size_t length, unsigned int max_depth, struct graft_json_document **ret_document,
		     struct graft_error *err)
{
	struct json_rules rules = { .max_depth = max_depth, .strict = true };

	return json_parse(&rules, text, length, ret_document, err);
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

/* Returns the number of leading bytes that need no escape and are a character each. */
static size_t plain_length(const unsigned char *s)
{
	size_t n = 0;

	while (s[n] >= 0x20 && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
		n++;
	return n;
}

/* Appends one character that needs an escape or is longer than a byte. Returns its length. */
static size_t quote_other(struct graft_buffer *out, const unsigned char *bytes, size_t left)
{
	size_t n = *bytes >= 0x80 ? graft_utf8_length(bytes, left) : 1;

	if (n == 0) {
		graft_buffer_string(out, "\xef\xbf\xbd"); /* U+FFFD */
		return 1;
	}
	if (*bytes < 0x20 || *bytes == 0x7f) {
		quote_control(out, *bytes);
		return n;
	}
	if (*bytes == '"' || *bytes == '\\')
		graft_buffer_char(out, '\\');
	graft_buffer_add(out, bytes, n);
	return n;
}

void graft_json_quote(struct graft_buffer *out, const char *s)
{
	const unsigned char *bytes = (const unsigned char *)s, *end;
	size_t length = plain_length(bytes);
	char *quoted;

	/* Nearly all strings are plain. */
	if (s[length] == '\0') {
		quoted = graft_buffer_extend(out, length + 2);
		if (quoted) {
			quoted[0] = quoted[length + 1] = '"';
			memcpy(quoted + 1, s, length);
		}
		return;
	}
	end = bytes + length + strlen(s + length);
	graft_buffer_char(out, '"');
	while (bytes < end) {
		size_t n = plain_length(bytes);

		if (n > 0)
			graft_buffer_add(out, bytes, n);
		else
			n = quote_other(out, bytes, (size_t)(end - bytes));
		bytes += n;
	}
	graft_buffer_char(out, '"');
}
