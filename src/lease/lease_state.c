/* SPDX-License-Identifier: Apache-2.0 */
/* lease_state: reads, writes and asks it. */
#include "lease/lease_state.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "lease/lease_host.h"
#include "lease/lease_log.h"
#include "lease/lease_look.h"
#include "lease/lease_names.h"
#include "lease/lease_table.h"

static const struct graft_field mig_fields[] = {
	GRAFT_F_STRING(struct graft_lendable_mig, uuid, false, "UUID"),
	GRAFT_F_STRING(struct graft_lendable_mig, profile, false, "profile"),
	GRAFT_F_BOOL(struct graft_lendable_mig, ill, "it has failed"),
	GRAFT_F_STRING(struct graft_lendable_mig, in_use, false, "who uses it without a lease"),
};
static const struct graft_record mig_record = { "lendable_mig", sizeof(struct graft_lendable_mig), mig_fields,
						GRAFT_COUNT(mig_fields) };

static const struct graft_field gpu_fields[] = {
	GRAFT_F_U32(struct graft_lendable_gpu, index, true, "index"),
	GRAFT_F_STRING(struct graft_lendable_gpu, uuid, false, "UUID"),
	GRAFT_F_STRING(struct graft_lendable_gpu, model, false, "name of the model"),
	GRAFT_F_STRING(struct graft_lendable_gpu, bus_id, false, "PCI address"),
	GRAFT_F_U32(struct graft_lendable_gpu, memory_mib, false, "memory in MiB; absent: it did not matter"),
	GRAFT_F_BOOL(struct graft_lendable_gpu, mig, "in MIG mode"),
	GRAFT_F_RECORDS(struct graft_lendable_gpu, migs, &mig_record, "its MIG devices"),
	GRAFT_F_U32(struct graft_lendable_gpu, replicas, false, "in how many slots it is lent"),
	GRAFT_F_STRING(struct graft_lendable_gpu, why_not, false, "why it is not lent"),
	GRAFT_F_STRING(struct graft_lendable_gpu, ill, false, "which fault it has"),
	GRAFT_F_STRING(struct graft_lendable_gpu, in_use, false, "who uses it without a lease"),
	GRAFT_F_I64(struct graft_lendable_gpu, freed, false, "when a lease on it ended, in seconds since 1970"),
};
static const struct graft_record gpu_record = { "lendable_gpu", sizeof(struct graft_lendable_gpu), gpu_fields,
						GRAFT_COUNT(gpu_fields) };

static const struct graft_field host_fields[] = {
	GRAFT_F_RECORDS(struct graft_lendable, gpus, &gpu_record, "the GPUs by index"),
	GRAFT_F_BOOL(struct graft_lendable, switches, "all GPUs are linked to each other alike"),
	GRAFT_F_BOOL(struct graft_lendable, mps, "GPUs are shared by MPS"),
};
static const struct graft_record host_record = { "lendable", sizeof(struct graft_lendable), host_fields,
						 GRAFT_COUNT(host_fields) };

static const struct graft_field state_fields[] = {
	GRAFT_F_STRING(struct graft_lease_state, claim, true, "the claim whose facts were read"),
	GRAFT_F_RECORD(struct graft_lease_state, host, &host_record, "what can be lent"),
	GRAFT_F_RECORDS(struct graft_lease_state, places, &graft_pci_place_record, "where the GPUs are"),
	GRAFT_F_RECORDS(struct graft_lease_state, leases, &graft_lease_record, "what is lent"),
	GRAFT_F_RECORDS(struct graft_lease_state, tickets, &graft_lease_record, "who waits"),
	GRAFT_F_STRING(struct graft_lease_state, log, false, "the table's log, if there are tickets"),
	GRAFT_F_STRING(struct graft_lease_state, order, true, "graft.leases.order"),
	{ "limits", GRAFT_FIELD_STRINGS, offsetof(struct graft_lease_state, limits.items),
	  offsetof(struct graft_lease_state, limits.n), NULL, NULL, 0, false, GRAFT_DOC("graft.leases.limits") },
	GRAFT_F_U32(struct graft_lease_state, uid, true, "user id of the one who asks"),
	GRAFT_F_U64(struct graft_lease_state, now, true, "milliseconds since the host started"),
	GRAFT_F_I64(struct graft_lease_state, date, true, "seconds since 1970"),
};
const struct graft_record graft_lease_state_record = { "lease_state", sizeof(struct graft_lease_state), state_fields,
						       GRAFT_COUNT(state_fields) };

/* ---- this host ---- */

static int copy_places(struct graft_lease_state *state, struct graft_arena *arena, struct graft_error *err)
{
	state->places = graft_arena_list(arena, state->host.n_gpus, sizeof(*state->places));
	for (size_t i = 0; state->places && i < state->host.n_gpus; i++) {
		if (state->host.gpus[i].place)
			state->places[state->n_places++] = *state->host.gpus[i].place;
	}
	return state->places || state->host.n_gpus == 0 ? 0 : graft_fail_memory(err);
}

/* Everything read from the table stays in the arena. */
static int read_state_table(const struct graft_config *config, const struct graft_lease_look *look,
			    struct graft_lease_table *table, struct graft_arena *arena, struct graft_lease_state *state,
			    struct graft_error *err)
{
	if (graft_lease_table_open(table, config->leases.directory, false, arena, err) < 0 ||
	    graft_lease_table_check(table, err) < 0 || graft_lease_look_at(look, table, &state->host, err) < 0)
		return -1;
	state->leases = table->leases;
	state->n_leases = table->n_leases;
	state->tickets = table->tickets;
	state->n_tickets = table->n_tickets;
	state->now = table->now.time;
	if (table->n_tickets == 0)
		return 0;
	state->log = graft_lease_log_read(table->directory, 0, arena);
	return state->log ? 0 : graft_fail_memory(err);
}

int graft_lease_state_look(const struct graft_config *config, const struct graft_claim *claim,
			   const struct graft_log *log, struct graft_arena *arena, struct graft_lease_state *ret_state,
			   struct graft_error *err)
{
	auto_lease_table struct graft_lease_table table = GRAFT_LEASE_TABLE_INIT;
	struct graft_buffer text = { .max = 4096 };
	struct graft_claim own = *claim;
	struct graft_lease_look look;

	graft_claim_write(claim, &text);
	*ret_state = (struct graft_lease_state){ .claim = graft_arena_strdup(arena, graft_buffer_text(&text)),
						 .order = config->leases.order,
						 .limits = config->leases.limits,
						 .uid = getuid(),
						 .date = (int64_t)time(NULL) };
	graft_buffer_done(&text);
	if (!ret_state->claim)
		return graft_fail_memory(err);
	if (graft_lease_host_read(config, claim, log, arena, &ret_state->host, err) < 0 ||
	    graft_lease_look_first(config, NULL, &own, arena, &ret_state->host, &look, err) < 0 ||
	    copy_places(ret_state, arena, err) < 0)
		return -1;
	return read_state_table(config, &look, &table, arena, ret_state, err);
}

/* ---- from a file ---- */

static const char *check_state_leases(const struct graft_lease *leases, size_t n)
{
	const char *wrong = NULL;

	for (size_t i = 0; i < n && !wrong; i++)
		wrong = graft_lease_check(&leases[i]);
	return wrong;
}

int graft_lease_state_parse(const char *text, size_t length, struct graft_arena *arena,
			    struct graft_lease_state *ret_state, struct graft_error *err)
{
	struct graft_lendable *host = &ret_state->host;
	const char *wrong;

	*ret_state = (struct graft_lease_state){ .claim = NULL };
	if (graft_record_read(&graft_lease_state_record, text, length, arena, ret_state, err) < 0)
		return -1;
	wrong = check_state_leases(ret_state->leases, ret_state->n_leases);
	if (!wrong)
		wrong = check_state_leases(ret_state->tickets, ret_state->n_tickets);
	for (size_t i = 0; i < host->n_gpus; i++) {
		struct graft_lendable_gpu *gpu = &host->gpus[i];

		if (!wrong && gpu->replicas > GRAFT_LEASE_REPLICAS)
			wrong = "host.gpus.replicas";
		for (size_t k = 0; k < ret_state->n_places && gpu->bus_id; k++) {
			if (strcmp(ret_state->places[k].bus_id, gpu->bus_id) == 0)
				gpu->place = &ret_state->places[k];
		}
	}
	return wrong ? graft_fail(err, GRAFT_FORMAT, 0, "%s: not valid in the state of leases", wrong) : 0;
}

/* ---- the answer ---- */

int graft_lease_state_choose(const struct graft_lease_state *state, const struct graft_claim *claim,
			     struct graft_arena *arena, struct graft_lease *ret_lease, struct graft_error *err)
{
	const struct graft_config config = { .leases = { .order = state->order, .limits = state->limits } };
	const struct graft_lease_queue queue = { .host = &state->host,
						 .leases = state->leases,
						 .n_leases = state->n_leases,
						 .tickets = state->tickets,
						 .n_tickets = state->n_tickets,
						 .log = state->log ? state->log : "",
						 .config = &config,
						 .now = state->now,
						 .date = state->date };
	struct graft_buffer text = { .max = 4096 };
	struct graft_claim own = *claim;
	size_t place;

	if (graft_lease_names_resolve(&state->host, arena, &own, err) < 0)
		return -1;
	graft_claim_write(&own, &text);
	/* An id that no ticket has. */
	*ret_lease = (struct graft_lease){ .id = "",
					   .claim = graft_arena_strdup(arena, graft_buffer_text(&text)),
					   .uid = state->uid,
					   .since = state->now };
	graft_buffer_done(&text);
	if (!ret_lease->claim)
		return graft_fail_memory(err);
	if (own.kind == GRAFT_CLAIM_NAMED)
		own.count = graft_lease_count_fitting(&state->host, &own);
	return graft_lease_turn(&queue, ret_lease, &own, arena, &ret_lease->slots, &ret_lease->n_slots, &place, err);
}
