/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON form of the inventory: what was read is written and read again without loss. */
#include <stdlib.h>

#include "fuzz.h"
#include "host/inventory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_inventory *inventory = NULL, *again = NULL;
	struct graft_buffer out = { .max = (size_t)8 << 20 };

	if (size > ((size_t)256 << 10) || graft_inventory_read((const char *)data, size, &inventory, NULL) < 0)
		return 0;
	graft_inventory_write(inventory, &out);
	if (!graft_buffer_failed(&out) && (graft_inventory_read(out.bytes, out.length, &again, NULL) < 0 ||
					   !graft_record_equal(&graft_inventory_record, inventory, again, NULL, 0)))
		abort();
	graft_buffer_done(&out);
	(void)graft_inventory_free(inventory);
	(void)graft_inventory_free(again);
	return 0;
}
