/* SPDX-License-Identifier: Apache-2.0 */
/* document: the reference of one JSON form, from its field table, as Markdown: `document inventory|request|policy|plan`. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/inventory.h"
#include "plan/planner.h"

int main(int argc, char **argv)
{
	static const struct graft_record *const records[] = { &graft_inventory_record, &graft_request_record,
							      &graft_policy_record, &graft_plan_record };
	struct graft_buffer out = { 0 };

	for (size_t i = 0; argc == 2 && i < GRAFT_COUNT(records); i++) {
		if (strcmp(argv[1], records[i]->name) == 0)
			graft_record_document(records[i], &out);
	}
	if (out.length == 0) {
		(void)fputs("usage: document inventory|request|policy|plan\n", stderr);
		return 64;
	}
	(void)fputs(graft_buffer_text(&out), stdout);
	graft_buffer_done(&out);
	return 0;
}
