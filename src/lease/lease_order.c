/* SPDX-License-Identifier: Apache-2.0 */
/* lease_order: an order of tickets, and a walk along it up to the one that asks. */
#include "lease/lease_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"

#define DAY_S     86400
#define HALF_S    21600.0
#define UNLIMITED UINT32_MAX

/* ---- what users have had ---- */

/*
 * One half to the power of x, precise enough for an order; x is 0 to 4, since a day is four times
 * six hours.
 */
static double halve(double x)
{
	unsigned int whole = (unsigned int)x;

	return (1 - (x - whole) / 2) / (double)(1u << whole);
}

static size_t count_devices(const char *list, const char *end)
{
	size_t n = 1;

	for (; list < end && *list != ' '; list++)
		n += *list == ',';
	return n;
}

#define ID_LENGTH 12

/* When the lease of that id was freed: the date in its line, or `otherwise`. */
static int64_t find_freed(const char *log, const char *id, int64_t otherwise)
{
	char text[32];
	const char *found, *line;

	(void)snprintf(text, sizeof(text), " freed %.*s ", ID_LENGTH, id);
	found = strstr(log, text);
	if (!found)
		return otherwise;
	line = found;
	while (line > log && line[-1] != '\n')
		line--;
	return strtoll(line, NULL, 10);
}

/* The fields of a line "DATE taken ID uid UID CLAIM DEVICES ...", or "owner NAME" */
enum { FIELD_DATE, FIELD_EVENT, FIELD_ID, FIELD_OWNER_MARK, FIELD_OWNER, FIELD_CLAIM, FIELD_DEVICES, N_FIELDS };

static bool split_line(const char *line, const char *end, const char *fields[N_FIELDS])
{
	for (size_t i = 0; i < N_FIELDS; i++) {
		const char *space = memchr(line, ' ', (size_t)(end - line));

		fields[i] = line;
		line = space ? space + 1 : end;
	}
	return fields[FIELD_DEVICES] < end;
}

static bool is_owner_of_line(const char *const fields[N_FIELDS], const struct graft_lease *owner)
{
	size_t length = (size_t)(fields[FIELD_CLAIM] - fields[FIELD_OWNER] - 1);

	if (owner->owner)
		return graft_starts_with(fields[FIELD_OWNER_MARK], "owner ") && strlen(owner->owner) == length &&
		       strncmp(fields[FIELD_OWNER], owner->owner, length) == 0;
	return graft_starts_with(fields[FIELD_OWNER_MARK], "uid ") &&
	       strtoul(fields[FIELD_OWNER], NULL, 10) == owner->uid;
}

double graft_lease_use(const char *log, const struct graft_lease *owner, int64_t date)
{
	const char *first = ""; /* the last lease that others were made of, and its end */
	int64_t first_ended = 0;
	double use = 0;

	for (const char *line = log, *next; *line != '\0'; line = next) {
		const char *end = strchrnul(line, '\n'), *fields[N_FIELDS];
		int64_t since, until;

		next = *end == '\n' ? end + 1 : end;
		if (!split_line(line, end, fields) || !graft_starts_with(fields[FIELD_EVENT], "taken ") ||
		    graft_starts_with(fields[FIELD_CLAIM], GRAFT_LEASE_OF_POD " ") || !is_owner_of_line(fields, owner))
			continue;
		since = strtoll(fields[FIELD_DATE], NULL, 10);
		until = find_freed(next, fields[FIELD_ID], date);
		/* What two leases hold counts once: for the second when the first has ended. */
		if (graft_starts_with(fields[FIELD_CLAIM], "lease:")) {
			const char *id = fields[FIELD_CLAIM] + strlen("lease:");

			if (strncmp(first, id, ID_LENGTH) != 0)
				first_ended = find_freed(log, id, date);
			first = id;
			since = since < first_ended ? first_ended : since;
		}
		if (since < date - DAY_S)
			since = date - DAY_S;
		if (until > date)
			until = date;
		if (until > since)
			use += (double)(until - since) * (double)count_devices(fields[FIELD_DEVICES], end) *
			       halve((double)(date - until) / HALF_S);
	}
	return use;
}

/* ---- limits ---- */

static bool read_limit_number(const char *text, const char *end, uint32_t *ret_value)
{
	char *stop;
	unsigned long value = strtoul(text, &stop, 10);

	*ret_value = (uint32_t)value;
	return text[0] >= '0' && text[0] <= '9' && stop == end && value < UINT32_MAX;
}

int graft_lease_limit(const struct graft_strings *limits, const struct graft_lease *lease,
		      struct graft_lease_limits *ret_limits, struct graft_error *err)
{
	uint32_t standard = UNLIMITED;

	*ret_limits = (struct graft_lease_limits){ UNLIMITED, UNLIMITED };
	for (size_t i = 0; i < limits->n; i++) {
		const char *text = limits->items[i], *value = strchr(text, '=');
		char name[64];
		uint32_t uid, limit;
		bool is_uid;

		(void)snprintf(name, sizeof(name), "%.*s", value ? (int)(value - text) : 0, text);
		is_uid = value && read_limit_number(text, value, &uid);
		if (!value || !read_limit_number(value + 1, text + strlen(text), &limit) ||
		    (!is_uid && strcmp(name, "default") != 0 && !graft_lease_owner_is_valid(name)))
			return graft_fail(err, GRAFT_INVALID, 0,
					  "graft.leases.limits: '%.64s' is not UID=N, NAME=N or default=N", text);
		if (strcmp(name, "default") == 0)
			standard = limit;
		else if (is_uid && uid == lease->uid)
			ret_limits->uid = limit;
		else if (lease->owner && strcmp(name, lease->owner) == 0)
			ret_limits->owner = limit;
	}
	if (ret_limits->owner == UNLIMITED && (lease->owner || ret_limits->uid == UNLIMITED))
		ret_limits->owner = standard;
	return 0;
}

/* Whether the slots of a lease are those of another one, the first that exists, and count there. */
static bool is_counted_elsewhere(const struct graft_lease *leases, size_t n_leases, size_t place)
{
	const char *of = leases[place].of;

	for (size_t i = 0; of && i < n_leases; i++) {
		if (strcmp(leases[i].id, of) == 0 || (i < place && leases[i].of && strcmp(leases[i].of, of) == 0))
			return true;
	}
	return false;
}

uint32_t graft_lease_count_held(const struct graft_lease *leases, size_t n_leases, const struct graft_lease *owner,
				bool by_uid)
{
	uint32_t n = 0;

	for (size_t i = 0; i < n_leases; i++) {
		if ((by_uid ? leases[i].uid == owner->uid : graft_lease_has_same_owner(&leases[i], owner)) &&
		    !graft_lease_is_of_pod(&leases[i]) && !is_counted_elsewhere(leases, n_leases, i))
			n += (uint32_t)leases[i].n_slots;
	}
	return n;
}

/* ---- order ---- */

struct waiting {
	const struct graft_lease *ticket;
	bool is_long;
	bool asks;
	uint32_t held; /* by its owner */
	double use;
};

static int compare_age(const struct waiting *a, const struct waiting *b)
{
	if (a->ticket->since != b->ticket->since)
		return a->ticket->since < b->ticket->since ? -1 : 1;
	return strcmp(a->ticket->id, b->ticket->id);
}

static int compare_fifo(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->ticket->urgent != y->ticket->urgent)
		return x->ticket->urgent ? -1 : 1;
	return compare_age(x, y);
}

static int compare_fair(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->ticket->urgent || y->ticket->urgent)
		return compare_fifo(a, b);
	if (x->is_long != y->is_long)
		return x->is_long ? -1 : 1;
	if (!x->is_long && x->held != y->held)
		return x->held < y->held ? -1 : 1;
	if (!x->is_long && (x->use < y->use || x->use > y->use))
		return x->use < y->use ? -1 : 1;
	return compare_age(x, y);
}

/* Adds a ticket. An owner's past use is determined once. */
static void add_waiting(const struct graft_lease_queue *queue, const struct graft_lease *ticket,
			struct waiting *waiting, size_t n)
{
	size_t same = 0;

	while (same < n && !graft_lease_has_same_owner(waiting[same].ticket, ticket))
		same++;
	waiting[n] = (struct waiting){
		.ticket = ticket,
		.is_long = queue->now > ticket->since && queue->now - ticket->since > GRAFT_LEASE_LONG_MS,
		.held = same < n ? waiting[same].held
				 : graft_lease_count_held(queue->leases, queue->n_leases, ticket, false),
		.use = same < n ? waiting[same].use : graft_lease_use(queue->log, ticket, queue->date),
	};
}

/* All tickets with `ask` among them, in order. */
static struct waiting *sort_tickets(const struct graft_lease_queue *queue, const struct graft_lease *ask,
				    struct graft_arena *arena, size_t *ret_n)
{
	bool fifo = strcmp(queue->config->leases.order, "fifo") == 0;
	struct waiting *waiting = graft_arena_list(arena, queue->n_tickets + 1, sizeof(*waiting));
	size_t n = 0;

	for (size_t i = 0; waiting && i < queue->n_tickets; i++) {
		if (strcmp(queue->tickets[i].id, ask->id) != 0)
			add_waiting(queue, &queue->tickets[i], waiting, n++);
	}
	if (waiting) {
		add_waiting(queue, ask, waiting, n);
		waiting[n++].asks = true;
		qsort(waiting, n, sizeof(*waiting), fifo ? compare_fifo : compare_fair);
	}
	*ret_n = n;
	return waiting;
}

/* ---- turns ---- */

/* The leases, followed by what the tickets that go first would get or reserve. */
struct turns {
	const struct graft_lease_queue *queue;
	struct graft_lease *leases;
	size_t n_leases;
	struct graft_arena *arena;
};

/* Why an owner may not hold what it asks for. */
struct over_limit {
	uint32_t held, limit;
	bool by_uid;
};

/* Returns 1 if the owner may hold what it asks for, 0 if not. */
static int is_within_limit(const struct turns *turns, const struct graft_lease *owner, uint32_t count,
			   struct over_limit *ret_over, struct graft_error *err)
{
	struct graft_lease_limits limits;

	if (graft_lease_limit(&turns->queue->config->leases.limits, owner, &limits, err) < 0)
		return -1;
	for (int by_uid = 0; by_uid < 2; by_uid++) {
		uint32_t limit = by_uid ? limits.uid : limits.owner;
		uint32_t held = limit == UNLIMITED
				    ? 0
				    : graft_lease_count_held(turns->leases, turns->n_leases, owner, by_uid);

		*ret_over = (struct over_limit){ held, limit, by_uid };
		if (limit != UNLIMITED && (uint64_t)held + count > limit)
			return 0;
	}
	return 1;
}

/* Gives the tickets that go first what they would get now. */
static int go_before(struct turns *turns, const struct graft_lease *ticket, struct graft_error *err)
{
	struct graft_lease *kept = &turns->leases[turns->n_leases];
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_claim claim;
	struct over_limit over;
	int rc;

	/* A ticket that another version has written reserves nothing. */
	if (graft_claim_parse(ticket->claim, turns->arena, &claim, &why) < 0)
		return why.status == GRAFT_NO_MEMORY ? graft_fail_memory(err) : 0;
	claim.has_user = ticket->has_user;
	claim.user = ticket->user;
	if (claim.kind == GRAFT_CLAIM_NAMED)
		claim.count = graft_lease_count_fitting(turns->queue->host, &claim);
	rc = is_within_limit(turns, ticket, claim.count, &over, err);
	if (rc <= 0)
		return rc;
	*kept = *ticket;
	rc = graft_lease_choose(turns->queue->host, turns->leases, turns->n_leases, &claim, turns->queue->now,
				turns->arena, &kept->slots, &kept->n_slots, &why);
	if (rc < 0 && why.status == GRAFT_NO_MEMORY)
		return graft_fail_memory(err);
	if (rc < 0) {
		kept->n_slots = 0;
		/* As slots of another lease they do not count towards a limit, since the ticket only waits. */
		kept->of = ticket->id;
		/* Keep all that fits for it. */
		if (why.status == GRAFT_BUSY && graft_lease_list_fitting(turns->queue->host, &claim, turns->arena,
									 &kept->slots, &kept->n_slots, err) < 0)
			return -1;
	}
	turns->n_leases++;
	return 0;
}

static int fail_limit(const struct graft_lease *ask, const struct over_limit *over, struct graft_error *err)
{
	char uid[32];

	(void)snprintf(uid, sizeof(uid), "uid %u", ask->uid);
	(void)graft_fail(err, GRAFT_BUSY, 0, "%s holds %u and may hold %u at once",
			 ask->owner && !over->by_uid ? ask->owner : uid, over->held, over->limit);
	return graft_with_hint(err, "Wait until one of them is free, or raise graft.leases.limits in config.toml.");
}

/* Reports why others go first, if the reason is not a lack of free GPUs. */
static int fail_turn(const struct turns *turns, const struct graft_claim *claim, size_t place, struct graft_error *err)
{
	struct graft_lease_slot *slots;
	size_t n;

	if (graft_lease_choose(turns->queue->host, turns->queue->leases, turns->queue->n_leases, claim,
			       turns->queue->now, turns->arena, &slots, &n, err) < 0)
		return -1;
	(void)graft_fail(err, GRAFT_BUSY, 0, "GPUs are free, but %zu claim%s first", place,
			 place == 1 ? " comes" : "s come");
	return graft_with_hint(err, "See 'nvidia-ctk lease list'; wait with NVIDIA_LEASE_WAIT=30m or --wait.");
}

int graft_lease_turn(const struct graft_lease_queue *queue, const struct graft_lease *ask,
		     const struct graft_claim *claim, struct graft_arena *arena, struct graft_lease_slot **ret_slots,
		     size_t *ret_n, size_t *ret_place, struct graft_error *err)
{
	struct turns turns = { .queue = queue, .n_leases = queue->n_leases, .arena = arena };
	struct waiting *waiting = sort_tickets(queue, ask, arena, ret_n);
	size_t n_waiting = *ret_n;
	struct graft_error own = { .status = GRAFT_OK };
	struct over_limit over;
	int rc;

	/* What has failed decides what is said, even if the caller does not read it. */
	err = err ? err : &own;
	turns.leases = graft_arena_list(arena, queue->n_leases + n_waiting + 1, sizeof(*turns.leases));
	if (!waiting || !turns.leases)
		return graft_fail_memory(err);
	for (size_t i = 0; i < queue->n_leases; i++)
		turns.leases[i] = queue->leases[i];
	*ret_place = 0;
	/* Devices that are held already need no turn. */
	if (claim->kind != GRAFT_CLAIM_LEASE) {
		rc = is_within_limit(&turns, ask, claim->count, &over, err);
		if (rc <= 0)
			return rc < 0 ? -1 : fail_limit(ask, &over, err);
		for (; !waiting[*ret_place].asks; (*ret_place)++)
			if (go_before(&turns, waiting[*ret_place].ticket, err) < 0)
				return -1;
	}
	rc = graft_lease_choose(queue->host, turns.leases, turns.n_leases, claim, queue->now, arena, ret_slots, ret_n,
				err);
	return rc < 0 && err->status == GRAFT_BUSY ? fail_turn(&turns, claim, *ret_place, err) : rc;
}
