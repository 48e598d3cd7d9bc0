/* SPDX-License-Identifier: Apache-2.0 */
/* lease_take: the order of the steps. The host is read before the lock is taken. */
#include "lease/lease_take.h"

#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "lease/lease_choice.h"
#include "lease/lease_host.h"
#include "lease/lease_table.h"

bool graft_lease_is_on(const struct graft_config *config)
{
	return strcmp(config->leases.mode, "on") == 0;
}

static int make_lease(const struct graft_lease_table *table, const struct graft_lease_ask *ask,
		      struct graft_arena *arena, struct graft_lease *lease, struct graft_error *err)
{
	struct graft_buffer claim = { .max = 4096 };

	graft_claim_write(ask->claim, &claim);
	lease->id = graft_lease_new_id(arena);
	lease->boot = table->now.boot;
	lease->claim = graft_arena_strdup(arena, graft_buffer_text(&claim));
	lease->of = ask->claim->lease;
	lease->holder = ask->holder;
	lease->uid = ask->uid;
	lease->what = graft_lease_label(ask->what, arena);
	lease->since = table->now.time;
	lease->until = ask->for_ms > 0 ? table->now.time + ask->for_ms : 0;
	lease->date = (int64_t)time(NULL);
	graft_buffer_done(&claim);
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	return lease->id ? 0 : graft_fail(err, GRAFT_LEASES, 0, "the kernel gives no random bytes");
}

int graft_lease_take(const struct graft_config *config, const struct graft_lease_ask *ask, const struct graft_log *log,
		     struct graft_arena *arena, struct graft_lease *ret_lease, struct graft_error *err)
{
	auto_lease_table struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	struct graft_lease lease = { .id = NULL };
	struct graft_lendable host;

	if (graft_lease_host_read(config, ask->claim, log, arena, &host, err) < 0 ||
	    graft_lease_table_open(&table, config->leases.directory, true, arena, err) < 0 ||
	    graft_lease_table_check(&table, err) < 0 ||
	    graft_lease_choose(&host, table.leases, table.n_leases, ask->claim, table.now.time, arena, &lease.slots,
			       &lease.n_slots, err) < 0 ||
	    make_lease(&table, ask, arena, &lease, err) < 0 || graft_lease_table_add(&table, &lease, err) < 0)
		return -1;
	*ret_lease = lease;
	return 0;
}

int graft_lease_devices(const struct graft_lease *lease, struct graft_arena *arena, struct graft_strings *ret_devices,
			struct graft_error *err)
{
	*ret_devices = (struct graft_strings){ .n = 0 };
	for (size_t i = 0; i < lease->n_slots; i++) {
		const struct graft_lease_slot *slot = &lease->slots[i];

		if (!graft_arena_push_string(arena, &ret_devices->items, &ret_devices->n,
					     slot->mig ? slot->mig : slot->gpu))
			return graft_fail_memory(err);
	}
	return 0;
}
