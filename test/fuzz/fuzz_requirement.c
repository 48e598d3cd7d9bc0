/* SPDX-License-Identifier: Apache-2.0 */
/* An expression with everything known, and with nothing: what is decided without facts must not change with them. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "request/requirement.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct graft_requirement_facts all = {
		.cuda = "12.4", .driver = "550.54.14", .arch = "8.0", .brand = "Tesla"
	};
	static const struct graft_requirement_facts none = { .cuda_min = "12.0", .cuda_max = "12.6" };
	enum graft_requirement_result with = GRAFT_REQUIREMENT_UNKNOWN, without = GRAFT_REQUIREMENT_UNKNOWN;
	char *text = malloc(size + 1);
	struct graft_error err;
	unsigned int missing = 0;
	int result_with, result_without;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	result_with = graft_requirement_evaluate(text, &all, &with, &missing, &err);
	if (result_with == 0 && (with == GRAFT_REQUIREMENT_UNKNOWN || missing != 0))
		abort();
	missing = 0;
	result_without = graft_requirement_evaluate(text, &none, &without, &missing, &err);
	if ((missing != 0) != (result_without == 0 && without == GRAFT_REQUIREMENT_UNKNOWN))
		abort();
	if (result_without < 0 ? result_with == 0 : missing == 0 && (result_with < 0 || with != without))
		abort();
	(void)graft_requirement_fail(text, &err);
	free(text);
	return 0;
}
