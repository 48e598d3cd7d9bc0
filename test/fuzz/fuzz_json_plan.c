/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON form of the plan: what was read is written and read again without loss. */
#include <stdlib.h>

#include "fuzz.h"
#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_plan *plan = NULL, *again = NULL;
	struct graft_buffer out = { .max = (size_t)8 << 20 };

	if (size > ((size_t)256 << 10) || graft_plan_read((const char *)data, size, &plan, NULL) < 0)
		return 0;
	graft_plan_write(plan, &out);
	if (!graft_buffer_failed(&out) && (graft_plan_read(out.bytes, out.length, &again, NULL) < 0 ||
					   !graft_record_equal(&graft_plan_record, plan, again, NULL, 0)))
		abort();
	graft_buffer_done(&out);
	(void)graft_plan_free(plan);
	(void)graft_plan_free(again);
	return 0;
}
