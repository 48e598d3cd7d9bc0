/* SPDX-License-Identifier: Apache-2.0 */
/* Any line of a kernel log, any list of numbers: a fault has a place, and all numbers are either checked or not. */
#include <stdlib.h>
#include <string.h>

#include "formats/xid.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1);

	if (!line)
		return 0;
	memcpy(line, data, size);
	line[size] = '\0';
	if (size <= 4096) {
		struct graft_xid_line read = graft_xid_parse(line);
		struct graft_xid_rules rules = graft_xid_rules_make(line, "79");

		if ((read.kind == GRAFT_XID_FAULT && read.bus > 0xff) || !graft_xid_matters(&rules, 79))
			__builtin_trap();
	}
	free(line);
	return 0;
}
