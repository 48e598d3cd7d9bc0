/* SPDX-License-Identifier: Apache-2.0 */
/* The file of kept facts. */
#include "fuzz.h"
#include "host/kept_facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct graft_arena *arena = graft_arena_new((size_t)64 << 20);
	struct graft_kept_facts facts = { .version = GRAFT_KEPT_VERSION,
					  .boot_id = "1",
					  .driver_version = "550.54.14" };
	struct graft_inventory *inventory = graft_inventory_new();
	struct graft_error err = { .status = GRAFT_OK };

	if (arena && inventory && graft_kept_parse((const char *)data, size, NULL, arena, &facts, &err) == 1)
		(void)graft_kept_complete(&facts, NULL, inventory, &err);
	(void)graft_inventory_free(inventory);
	(void)graft_arena_free(arena);
	return 0;
}
