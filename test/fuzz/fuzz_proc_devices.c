/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/devices. */
#include "formats/procfs.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t major;

	if (size <= ((size_t)64 << 10))
		(void)graft_procfs_devices_major((const char *)data, size, "nvidia-uvm", &major);
	return 0;
}
