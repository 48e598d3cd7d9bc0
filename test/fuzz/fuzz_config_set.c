/* SPDX-License-Identifier: Apache-2.0 */
/* A setting, a newline, a document: what comes out is TOML, and what is refused leaves the document as it was. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "request/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = size <= 65536 ? malloc(size + 1) : NULL;
	char *document = NULL;
	struct graft_toml *toml = NULL, *again = NULL;
	size_t length;

	if (text) {
		if (size > 0)
			memcpy(text, data, size);
		text[size] = '\0';
		document = strchr(text, '\n');
	}
	if (document && graft_toml_parse("fuzz", document + 1, strlen(document + 1), &toml, NULL) == 0) {
		*document = '\0';
		if (graft_config_set(&toml, text, ":", NULL) < 0 &&
		    strcmp(graft_toml_text(toml, &length), document + 1) != 0)
			__builtin_trap();
		document = strdup(graft_toml_text(toml, &length));
		if (!document || graft_toml_parse("again", document, length, &again, NULL) < 0)
			__builtin_trap();
		free(document);
	}
	graft_toml_free(toml);
	graft_toml_free(again);
	return 0;
}
