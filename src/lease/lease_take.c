/* SPDX-License-Identifier: Apache-2.0 */
/* lease_take: the order of the steps. The host is read before the lock is taken. */
#include "lease/lease_take.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "lease/lease_choice.h"
#include "lease/lease_holder.h"
#include "lease/lease_host.h"
#include "lease/lease_log.h"
#include "lease/lease_look.h"
#include "lease/lease_mps.h"
#include "lease/lease_names.h"
#include "lease/lease_order.h"
#include "lease/lease_state.h"
#include "lease/lease_table.h"
#include "lease/lease_wait.h"

#define SCRATCH_MAX ((size_t)256 << 20)

static int make_lease(const struct graft_lease_table *table, const struct graft_lease_ask *ask,
		      struct graft_arena *arena, struct graft_lease *lease, struct graft_error *err)
{
	struct graft_buffer claim = { .max = 4096 };

	if (ask->owner && !graft_lease_owner_is_valid(ask->owner)) {
		(void)graft_fail(err, GRAFT_INVALID, 0, "'%.64s' is not a valid owner name", ask->owner);
		return graft_with_hint(err,
				       "Use up to 32 letters, digits, '.', '-', '_' and '@', beginning with a letter.");
	}
	graft_claim_write(ask->claim, &claim);
	lease->id = graft_lease_new_id(arena);
	lease->boot = graft_arena_strdup(arena, table->now.boot);
	lease->claim = graft_arena_strdup(arena, graft_buffer_text(&claim));
	lease->of = ask->claim->lease;
	lease->holder = ask->holder;
	lease->holder.clock = table->now.clock;
	lease->uid = ask->uid;
	lease->owner = ask->owner;
	lease->urgent = ask->urgent;
	lease->has_user = ask->claim->has_user;
	lease->user = ask->claim->user;
	lease->limit_mib = ask->claim->limit_mib;
	lease->limit_percent = ask->claim->limit_percent;
	lease->what = graft_lease_label(ask->what, arena);
	lease->since = table->now.time;
	lease->date = (int64_t)time(NULL);
	graft_buffer_done(&claim);
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	return lease->id ? 0 : graft_fail(err, GRAFT_LEASES, 0, "cannot get random bytes from the kernel");
}

int graft_lease_set_wait(const struct graft_config *config, const char *text, struct graft_claim *claim,
			 struct graft_error *err)
{
	const char *name = text ? "the time to wait" : "graft.leases.wait";

	if (claim->has_wait)
		return 0;
	text = text ? text : config->leases.wait;
	if (graft_claim_read_span(text, &claim->wait_ms))
		return 0;
	(void)graft_fail(err, GRAFT_INVALID, 0, "%s is not a duration: '%.32s'", name, text);
	return graft_with_hint(err, "Write a number and a unit: 90s, 30m, 8h or 2d.");
}

/* A lease on what another one holds has its limits. */
static void copy_limits(const struct graft_lease_table *table, struct graft_lease *lease)
{
	const struct graft_lease *of = lease->of ? graft_lease_table_find(table, lease->of) : NULL;

	if (!of)
		return;
	lease->limit_mib = of->limit_mib;
	lease->limit_percent = of->limit_percent;
}

/* One try: with the lock held. Returns -1 with GRAFT_BUSY if it is not its turn. */
static int try_once(struct graft_lease_table *table, const struct graft_config *config,
		    const struct graft_lendable *host, const struct graft_lease_ask *ask, struct graft_lease *lease,
		    size_t *ret_place, struct graft_error *err)
{
	struct graft_lease_queue queue = { .host = host,
					   .leases = table->leases,
					   .n_leases = table->n_leases,
					   .tickets = table->tickets,
					   .n_tickets = table->n_tickets,
					   .log = "",
					   .config = config,
					   .now = table->now.time,
					   .date = (int64_t)time(NULL) };

	if (table->n_tickets > 0)
		queue.log = graft_lease_log_read(table->directory, 0, table->arena);
	if (!queue.log)
		return graft_fail_memory(err);
	if (graft_lease_turn(&queue, lease, ask->claim, table->arena, &lease->slots, &lease->n_slots, ret_place, err) <
	    0)
		return -1;
	copy_limits(table, lease);
	/* Its time begins now, however long it has waited. */
	lease->since = table->now.time;
	lease->until = ask->for_ms > 0 ? table->now.time + ask->for_ms : 0;
	lease->date = queue.date;
	return graft_lease_table_add(table, lease, err);
}

/* What the lease holds, in an arena that lasts. */
static int copy_slots(struct graft_lease *lease, struct graft_arena *arena, struct graft_error *err)
{
	struct graft_lease_slot *slots = graft_arena_list(arena, lease->n_slots, sizeof(*slots));

	for (size_t i = 0; slots && i < lease->n_slots; i++)
		slots[i] = (struct graft_lease_slot){ graft_arena_strdup(arena, lease->slots[i].gpu),
						      graft_arena_strdup(arena, lease->slots[i].mig),
						      lease->slots[i].replica };
	lease->slots = slots;
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

/* The process that waits is the holder of the ticket. */
static int queue_up(struct graft_lease_table *table, const struct graft_lease *lease, struct graft_error *err)
{
	struct graft_lease ticket = *lease;

	ticket.slots = NULL;
	ticket.n_slots = 0;
	return graft_lease_holder_of_process(0, table->arena, &ticket.holder, err) < 0
		   ? -1
		   : graft_lease_table_queue(table, &ticket, err);
}

/* Whether the table has the ticket; one that has replaced it has not. */
static bool is_queued(const struct graft_lease_table *table, const char *id)
{
	for (size_t i = 0; i < table->n_tickets; i++)
		if (strcmp(table->tickets[i].id, id) == 0)
			return true;
	return false;
}

struct taking {
	const struct graft_config *config;
	struct graft_lendable *host;
	struct graft_lease_ask *ask;
	struct graft_claim *claim; /* of `ask` */
	struct graft_lease_wait wait;
	struct graft_lease lease; /* without an id before the first try */
	struct graft_arena *arena;
};

/*
 * One attempt with the table. Returns 0 if the lease is taken, 1 if it has to wait. What is read
 * from the table is in `scratch`, since there may be many attempts.
 */
static int try_for_turn(struct taking *taking, struct graft_arena *scratch, struct graft_error *err)
{
	auto_lease_table struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	struct graft_lease *lease = &taking->lease;
	bool first = !lease->id;
	struct graft_lease_look look;
	int rc;

	if (graft_lease_look_first(taking->config, taking->ask->holder.container, taking->claim, scratch, taking->host,
				   &look, err) < 0 ||
	    graft_lease_table_open(&table, taking->config->leases.directory, true, scratch, err) < 0 ||
	    graft_lease_table_check(&table, err) < 0 || graft_lease_look_at(&look, &table, taking->host, err) < 0 ||
	    (first && make_lease(&table, taking->ask, taking->arena, lease, err) < 0))
		return -1;
	graft_debug(taking->wait.log, "table of leases: locked after %lld us", (long long)table.lock_wait_us);
	rc = try_once(&table, taking->config, taking->host, taking->ask, lease, &taking->wait.place, err);
	if (rc < 0 && err->status == GRAFT_BUSY && table.now.time < taking->wait.until) {
		if ((!is_queued(&table, lease->id) && queue_up(&table, lease, err) < 0) ||
		    graft_lease_wait_watch(&taking->wait, &table, err) < 0)
			return -1;
		graft_error_clear(err);
		return 1;
	}
	if (!first)
		graft_lease_table_unqueue(&table, lease, rc < 0 ? "it has waited long enough" : NULL);
	return rc == 0 ? copy_slots(lease, taking->arena, err) : -1;
}

static int take_in_turn(struct taking *taking, struct graft_error *err)
{
	struct graft_arena *scratch;
	const char *hint;
	int rc;

	do {
		scratch = graft_arena_new(SCRATCH_MAX);
		rc = scratch ? try_for_turn(taking, scratch, err) : graft_fail_memory(err);
		/* The hint goes with the arena. */
		hint = rc < 0 && err && err->hint ? graft_arena_strdup(taking->arena, err->hint) : NULL;
		if (rc < 0 && err)
			err->hint = hint;
		(void)graft_arena_free(scratch);
	} while (rc > 0 && graft_lease_wait_next(&taking->wait, err) == 0);
	return rc == 0 ? 0 : -1;
}

/* Do not hold what cannot be used: a token would last. */
static void give_back(const struct graft_config *config, const struct graft_lease *lease)
{
	struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	struct graft_arena *scratch = graft_arena_new(SCRATCH_MAX);

	if (scratch && graft_lease_table_open(&table, config->leases.directory, true, scratch, NULL) == 0)
		(void)graft_lease_table_remove(&table, lease, "freed", "the GPU cannot be shared", NULL);
	graft_lease_table_close(&table);
	(void)graft_arena_free(scratch);
}

/* What it would get now, or in a state of another time or host. */
static int foresee(const struct graft_config *config, const struct graft_lease_ask *ask, const struct graft_log *log,
		   struct graft_arena *arena, struct graft_lease *ret_lease, struct graft_error *err)
{
	struct graft_lease_state state;

	*ret_lease = (struct graft_lease){ .id = NULL };
	if (!ask->state && graft_lease_state_look(config, ask->claim, log, arena, &state, err) < 0)
		return -1;
	return graft_lease_state_choose(ask->state ? ask->state : &state, ask->claim, arena, ret_lease, err);
}

int graft_lease_take(const struct graft_config *config, const struct graft_lease_ask *ask, const struct graft_log *log,
		     struct graft_arena *arena, struct graft_lease *ret_lease, struct graft_error *err)
{
	struct graft_claim claim = *ask->claim;
	struct graft_lease_ask own_ask = *ask;
	struct taking taking = {
		.config = config, .ask = &own_ask, .claim = &claim, .wait = { .log = log }, .arena = arena
	};
	struct graft_error own = { .status = GRAFT_OK };
	struct graft_lendable host;
	int rc;

	if (ask->only_look)
		return foresee(config, ask, log, arena, ret_lease, err);
	own_ask.claim = &claim;
	if (graft_lease_host_read(config, ask->claim, log, arena, &host, err) < 0 ||
	    graft_lease_names_resolve(&host, arena, &claim, err) < 0)
		return -1;
	taking.host = &host;
	if (claim.kind == GRAFT_CLAIM_NAMED)
		claim.count = graft_lease_count_fitting(&host, &claim);
	*ret_lease = (struct graft_lease){ .id = NULL };
	if (claim.kind == GRAFT_CLAIM_NAMED && claim.count == 0)
		return 0;
	if (ask->claim->wait_ms > 0)
		taking.wait.until = graft_lease_clock() + ask->claim->wait_ms;
	rc = take_in_turn(&taking, &own);
	graft_lease_wait_done(&taking.wait);
	if (rc == 0 && graft_lease_mps_ensure(config, &taking.lease, log, arena, &own) < 0) {
		give_back(config, &taking.lease);
		rc = -1;
	}
	if (rc < 0 && err)
		*err = own;
	*ret_lease = taking.lease;
	return rc;
}

int graft_lease_check_named(const struct graft_lease *lease, struct graft_error *err)
{
	if (lease->n_slots > 0)
		return 0;
	(void)graft_fail(err, GRAFT_UNKNOWN_DEVICE, 0, "this host lends no GPU of that name");
	return graft_with_hint(err, "Run 'nvidia-ctk lease list' to see what this host has.");
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
