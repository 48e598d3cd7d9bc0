/* SPDX-License-Identifier: Apache-2.0 */
/* Any command line, a word per line: what is found in it are words of it. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "request/oci_arguments.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1), *argv[66] = { (char *)(uintptr_t) "runtime" };
	struct graft_oci_arguments arguments;
	int argc = 1;

	if (text)
		memcpy(text, data, size);
	for (char *word = text; word && argc < 65; argc++)
		argv[argc] = strsep(&word, "\n");
	if (text && graft_oci_arguments_read(argc, argv, &arguments, NULL) == 0 && arguments.bundle &&
	    (arguments.bundle < text || arguments.bundle > text + size))
		abort();
	free(text);
	return 0;
}
