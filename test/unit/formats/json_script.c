/* SPDX-License-Identifier: Apache-2.0 */
/* json_script: a JSON text and the edits on standard input, a NUL between them; the edited text on standard output. test_json_property.py drives it. */
#include "json_script.h"

#include "base/buffer.h"

#define INPUT_MAX ((size_t)1 << 20)

int main(void)
{
	char *input = calloc(1, INPUT_MAX + 1);
	size_t length = input ? fread(input, 1, INPUT_MAX, stdin) : 0;
	const char *script = input ? memchr(input, '\0', length) : NULL;
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_buffer out = { 0 };
	struct graft_error err = { 0 };
	int rc = 1;

	if (script && graft_json_document_parse("input", input, (size_t)(script - input), &document, &err) == 0 &&
	    json_script_run(document, script + 1, &err) == 0 && graft_json_document_write(document, &out, &err) == 0)
		rc = fwrite(out.bytes, 1, out.length, stdout) == out.length ? 0 : 1;
	else
		(void)fprintf(stderr, "%s\n", err.msg);
	graft_buffer_done(&out);
	free(input);
	return rc;
}
