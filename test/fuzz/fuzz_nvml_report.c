/* SPDX-License-Identifier: Apache-2.0 */
/* Any line of the child that watches NVML: what is a report has a short text that can be printed. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "host/nvml_watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_nvml_report report;
	char *line = malloc(size + 1);

	if (!line)
		return 0;
	memcpy(line, data, size);
	line[size] = '\0';
	if (graft_nvml_report_parse(line, &report) && (report.text[0] < ' ' || strlen(report.text) > 255))
		__builtin_trap();
	free(line);
	return 0;
}
