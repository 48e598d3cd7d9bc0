/* SPDX-License-Identifier: Apache-2.0 */
/* json: the strict rules of our own forms, and their strings. Knows nothing of what the JSON means. */
#include "formats/json.h"

#include <string.h>

#include "base/utf8.h"
#include "formats/json_tree.h"

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
