/* SPDX-License-Identifier: Apache-2.0 */
/* config_text: a configuration as text, for comparisons: one JSON object with a member per key. */
#ifndef GRAFT_TEST_CONFIG_TEXT_H
#define GRAFT_TEST_CONFIG_TEXT_H

#include "base/buffer.h"
#include "formats/json/json.h"
#include "request/config.h"

static inline void config_text_strings(const struct graft_strings *strings, struct graft_buffer *out)
{
	graft_buffer_char(out, '[');
	for (size_t i = 0; i < strings->n; i++) {
		graft_buffer_string(out, i == 0 ? "" : ", ");
		graft_json_quote(out, strings->items[i]);
	}
	graft_buffer_char(out, ']');
}

/* Unset values are null. */
static inline void config_text(const struct graft_config *config, struct graft_buffer *out)
{
	const char *separator = "{\n  ";

	for (size_t i = 0; i < graft_config_n_keys; i++, separator = ",\n  ") {
		const struct graft_config_key *key = &graft_config_keys[i];
		const void *value = (const char *)config + key->offset;

		graft_buffer_printf(out, "%s\"%s\": ", separator, key->name);
		switch (key->kind) {
		case GRAFT_CONFIG_BOOL:
			graft_buffer_string(out, *(const bool *)value ? "true" : "false");
			break;
		case GRAFT_CONFIG_STRING:
			if (*(const char *const *)value)
				graft_json_quote(out, *(const char *const *)value);
			else
				graft_buffer_string(out, "null");
			break;
		case GRAFT_CONFIG_STRINGS:
			config_text_strings(value, out);
			break;
		}
	}
	graft_buffer_string(out, "\n}\n");
}

#endif
