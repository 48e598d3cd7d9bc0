/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is, on a made-up machine of four GPUs: both orders, who blocks whom, limits, what users have had. */
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "base/cleanup.h"
#include "lease/lease_order.h"

static struct graft_lendable_gpu gpus[] = {
	{ .uuid = "GPU-0", .model = "A100", .index = 0 },
	{ .uuid = "GPU-1", .model = "A100", .index = 1 },
	{ .uuid = "GPU-2", .model = "H100", .index = 2 },
	{ .uuid = "GPU-3", .model = "H100", .index = 3 },
};
static const struct graft_lendable host = { .gpus = gpus, .n_gpus = 4 };
static struct graft_lease_slot slots[] = { { "GPU-0", NULL }, { "GPU-1", NULL }, { "GPU-2", NULL }, { "GPU-3", NULL } };

/* "UID", with the name of an owner and '!' for an urgent ticket after it. Returns what follows the colon. */
static const char *read_owner(const char *text, struct graft_lease *lease)
{
	char name[33] = "";
	int at = 0;

	assert_int_equal(sscanf(text, "%u%n", &lease->uid, &at), 1);
	text += at;
	if (sscanf(text, "%32[a-z]%n", name, &at) == 1) {
		lease->owner = graft_arena_strdup(arena, name);
		text += at;
	}
	lease->urgent = *text == '!';
	text += *text == '!';
	assert_int_equal(*text, ':');
	return text + 1;
}

/* "UID:SINCE:CLAIM" */
static struct graft_lease make_ticket(const char *text, const char *id)
{
	struct graft_lease ticket = { .id = id };
	unsigned int since;
	int at = 0;

	text = read_owner(text, &ticket);
	assert_int_equal(sscanf(text, "%u:%n", &since, &at), 1);
	ticket.since = since;
	ticket.claim = text + at;
	return ticket;
}

struct row {
	const char *order, *limit, *log;
	const char *held;       /* a lease of these first GPUs, "UID:N"; NULL: none */
	const char *tickets[3]; /* those who wait already */
	const char *asks;
	const char *want; /* GPUs, or the message */
};

static const char *turn(const struct row *row, const char **ret_place)
{
	static const char *const ids[] = { "abcdefgh2222", "abcdefgh3333", "abcdefgh4444" };
	struct graft_lease lease = { .id = "abcdefgh7777", .slots = slots }, tickets[3];
	struct graft_config config = { .leases = { .order = row->order } };
	struct graft_lease_queue queue = { .host = &host,
					   .leases = &lease,
					   .tickets = tickets,
					   .log = row->log ? row->log : "",
					   .config = &config,
					   .now = 4000000,
					   .date = 200000 };
	struct graft_lease ask = make_ticket(row->asks, "abcdefgh5555");
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_lease_slot *chosen;
	struct graft_claim claim;
	const char *answer = "";
	const char *limits[] = { row->limit, "default=100" };
	size_t n, place = 0;

	if (row->limit)
		config.leases.limits = (struct graft_strings){ limits, 2 };
	if (row->held) {
		assert_int_equal(sscanf(read_owner(row->held, &lease), "%zu", &lease.n_slots), 1);
		queue.n_leases = 1;
	}
	for (; queue.n_tickets < 3 && row->tickets[queue.n_tickets]; queue.n_tickets++)
		tickets[queue.n_tickets] = make_ticket(row->tickets[queue.n_tickets], ids[queue.n_tickets]);
	assert_int_equal(graft_claim_parse(ask.claim, arena, &claim, &err), 0);
	if (graft_lease_turn(&queue, &ask, &claim, arena, &chosen, &n, &place, &err) < 0)
		answer = graft_arena_strdup(arena, err.msg);
	else
		for (size_t i = 0; i < n; i++)
			answer = graft_arena_printf(arena, "%s%s", answer, chosen[i].gpu + 3);
	*ret_place = graft_arena_printf(arena, "%zu", place);
	return answer;
}

#define NEW "3999000" /* since then: a second */
#define OLD "1000"    /* more than an hour */

static void test_turns(void **state)
{
	static const struct row rows[] = {
		{ "fifo", .asks = "1:" NEW ":any:4", .want = "-0-1-2-3" },
		/* What those before would have now is theirs. */
		{ "fifo", .tickets = { "1:3000000:any:2" }, .asks = "2:" NEW ":any:2", .want = "-2-3" },
		{ "fifo", .tickets = { "1:3000000:any:2" }, .asks = "2:" NEW ":any:3",
		  .want = "GPUs are free, but 1 claim comes first" },
		{ "fifo", .tickets = { "1:3999500:any:2" }, .asks = "2:" NEW ":any:3", .want = "-0-1-2" },
		/* The head keeps what it waits for. */
		{ "fifo", .held = "9:1", .tickets = { "1:3000000:any:4" }, .asks = "2:" NEW ":any:1",
		  .want = "GPUs are free, but 1 claim comes first" },
		{ "fifo", .held = "9:1", .tickets = { "1:3000000:any:4", "1:3000001:any" }, .asks = "2:" NEW ":any:1",
		  .want = "GPUs are free, but 2 claims come first" },
		{ "fifo", .held = "9:1", .tickets = { "1:3000000:any:2;model=A" }, .asks = "2:" NEW ":any:1",
		  .want = "-2" },
		{ "fifo", .held = "9:4", .tickets = { "1:3000000:any:4" }, .asks = "2:" NEW ":any:1",
		  .want = "1 GPU was asked for, 0 of 4 are free" },
		/* What can never be had keeps nobody. */
		{ "fifo", .tickets = { "1:3000000:any:5" }, .asks = "2:" NEW ":any:4", .want = "-0-1-2-3" },
		{ "fifo", .tickets = { "1:3000000:nonsense" }, .asks = "2:" NEW ":any:4", .want = "-0-1-2-3" },
		/* fair: who holds less goes first, then who has had less. */
		{ "fair", .held = "1:2", .tickets = { "1:3000000:any:2" }, .asks = "2:" NEW ":any:2", .want = "-2-3" },
		{ "fair", .held = "2:1", .tickets = { "1:" NEW ":any:3" }, .asks = "2:3000000:any:3",
		  .want = "GPUs are free, but 1 claim comes first" },
		{ "fair", .log = "100000 taken abcdefgh9999 uid 1 any:1 GPU-0 process 1\n",
		  .tickets = { "1:3000000:any:3" }, .asks = "2:" NEW ":any:3", .want = "-0-1-2" },
		{ "fair", .log = "100000 taken abcdefgh9999 uid 2 any:1 GPU-0\n", .tickets = { "1:3999500:any:3" },
		  .asks = "2:" NEW ":any:3", .want = "GPUs are free, but 1 claim comes first" },
		/* Who has waited for an hour goes first. */
		{ "fair", .held = "1:1", .tickets = { "1:" OLD ":any:3" }, .asks = "2:" NEW ":any:3",
		  .want = "GPUs are free, but 1 claim comes first" },
		/* Limits. */
		{ "fair", "2=1", .held = "2:1", .asks = "2:" NEW ":any:1",
		  .want = "uid 2 holds 1 and may hold 1 at once" },
		{ "fair", "2=2", .held = "2:1", .asks = "2:" NEW ":any:1", .want = "-1" },
		{ "fifo", "1=1", .held = "1:1", .tickets = { "1:3000000:any:1" }, .asks = "2:" NEW ":any:3",
		  .want = "-1-2-3" },
		{ "fifo", "-=1", .asks = "2:" NEW ":any:3",
		  .want = "graft.leases.limits: '-=1' is not UID=N, NAME=N or default=N" },
		/* Names: one user's owners count apart, and within the limit of its id. */
		{ "fair", "anna=1", .held = "7anna:1", .asks = "7ben:" NEW ":any:3", .want = "-1-2-3" },
		{ "fair", "anna=1", .held = "7anna:1", .asks = "8anna:" NEW ":any:1",
		  .want = "anna holds 1 and may hold 1 at once" },
		{ "fair", "7=3", .held = "7anna:2", .asks = "7ben:" NEW ":any:2",
		  .want = "uid 7 holds 2 and may hold 3 at once" },
		{ "fair", .held = "7anna:1", .tickets = { "7anna:3000000:any:3" }, .asks = "7:" NEW ":any:3",
		  .want = "-1-2-3" },
		{ "fair", .log = "100000 taken abcdefgh9999 owner anna any:1 GPU-0\n",
		  .tickets = { "7anna:3000000:any:3" }, .asks = "7annabel:" NEW ":any:3", .want = "-0-1-2" },
		/* Urgent. */
		{ "fair", .held = "1:1", .tickets = { "2:" OLD ":any:3" }, .asks = "1!:" NEW ":any:3",
		  .want = "-1-2-3" },
		{ "fifo", .tickets = { "2!:" NEW ":any:3" }, .asks = "1:3000000:any:3",
		  .want = "GPUs are free, but 1 claim comes first" },
		{ "fifo", .tickets = { "2!:3000000:any:3" }, .asks = "1!:" NEW ":any:3",
		  .want = "GPUs are free, but 1 claim comes first" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *place;

		print_message("# %zu: %s\n", i, rows[i].want);
		assert_string_equal(turn(&rows[i], &place), rows[i].want);
	}
}

/* Who waits keeps what it can use, and nothing else. GPU 1 is in MIG mode. */
static void test_kept(void **state)
{
	static const struct row rows[] = {
		{ "fifo", .held = "9:1", .tickets = { "1:3000000:any:3" }, .asks = "2:" NEW ":mig:1g.10gb",
		  .want = "-1" },
		{ "fifo", .held = "9:2", .tickets = { "1:3000000:mig:1g.10gb" }, .asks = "2:" NEW ":any",
		  .want = "-2" },
		{ "fifo", .tickets = { "1:3000000:mig:1g.10gb", "1:3000001:mig:1g.10gb" },
		  .asks = "2:" NEW ":mig:2g.20gb", .want = "-1" },
		{ "fifo", .held = "9:2", .tickets = { "1:3000000:named:1:0" }, .asks = "2:" NEW ":any", .want = "-2" },
	};
	struct graft_lendable_mig migs[] = { { .uuid = "MIG-a", .profile = "1g.10gb" },
					     { .uuid = "MIG-b", .profile = "2g.20gb" } };
	const struct graft_lendable_gpu before = gpus[1];

	gpus[1].mig = true;
	gpus[1].migs = migs;
	gpus[1].n_migs = 2;
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *place;

		print_message("# %zu: %s\n", i, rows[i].want);
		assert_string_equal(turn(&rows[i], &place), rows[i].want);
	}
	gpus[1] = before;
}

/* Who waits for another lease's slot, because of MPS, keeps no GPU from anybody. */
static void test_kept_lease(void **state)
{
	struct graft_lease_slot slot = { "GPU-2", NULL, 1 };
	struct graft_lease lease = { .id = "abcdefgh7777", .slots = &slot, .n_slots = 1, .has_user = true, .user = 7 };
	struct graft_lease ticket = make_ticket("1:3000000:lease:abcdefgh7777", "abcdefgh2222");
	struct graft_lease ask = make_ticket("2:" NEW ":any", "abcdefgh5555");
	const struct graft_config config = { .leases = { .order = "fifo" } };
	const struct graft_lendable mps = { .gpus = gpus, .n_gpus = 4, .mps = true };
	const struct graft_lease_queue queue = { .host = &mps,
						 .leases = &lease,
						 .n_leases = 1,
						 .tickets = &ticket,
						 .n_tickets = 1,
						 .log = "",
						 .config = &config };
	const struct graft_claim claim = { .kind = GRAFT_CLAIM_ANY, .count = 1 };
	struct graft_lease_slot *chosen;
	size_t n, place;

	ticket.has_user = true;
	ticket.user = 8;
	gpus[2].replicas = 2;
	assert_int_equal(graft_lease_turn(&queue, &ask, &claim, arena, &chosen, &n, &place, NULL), 0);
	assert_string_equal(chosen[0].gpu, "GPU-0");
	gpus[2].replicas = 0;
}

/* Three users, whose tickets came at the same pace: each of them in turn, then by age. */
static void test_fair_order(void **state)
{
	const struct row row = { "fair",
				 .log = "199000 taken abcdefgh9999 uid 1 any:1 GPU-0\n"
					"199500 taken abcdefgh8888 uid 2 any:1 GPU-0\n"
					"199600 freed abcdefgh8888 uid 2 its process has ended\n",
				 .tickets = { "1:3000000:any:4", "2:3000001:any:4", "3:3000002:any:4" },
				 .asks = "1:" NEW ":any:4" };
	const char *place;

	(void)turn(&row, &place);
	assert_string_equal(place, "3");
}

static double use_of(const char *log, uint32_t uid, int64_t date)
{
	const struct graft_lease owner = { .uid = uid };

	return graft_lease_use(log, &owner, date);
}

static void test_use(void **state)
{
	static const char log[] = "1000 taken abcdefgh2222 uid 7 any:2 GPU-a,GPU-b container x\n"
				  "1100 freed abcdefgh2222 uid 7 no process is left in its cgroup\n"
				  "1100 taken abcdefgh3333 uid 8 any:1 GPU-a process 3\n"
				  "1150 taken abcdefgh4444 uid 7 any:1 GPU-b process 3\nnonsense\n1160 taken";

	assert_int_equal((int)use_of(log, 7, 1100), 200);
	assert_int_equal((int)use_of(log, 8, 1150), 50);
	assert_int_equal((int)use_of(log, 9, 1150), 0);
	assert_int_equal(
	    (int)use_of("1000 taken abcdefgh2222 uid 7 any:1 GPU-a\n1100 freed abcdefgh2222 x\n", 7, 1100 + 21600), 50);
	assert_int_equal(
	    (int)use_of("1000 taken abcdefgh2222 uid 7 any:1 GPU-a\n1100 freed abcdefgh2222 x\n", 7, 1100 + 86400), 0);
	/* A container on what was taken by hand counts when that has ended. */
	assert_int_equal((int)use_of("1000 taken abcdefgh2222 uid 7 any:1 GPU-a\n"
				     "1010 taken abcdefgh3333 uid 7 lease:abcdefgh2222 GPU-a container x\n",
				     7, 1100),
			 100);
	assert_int_equal((int)use_of("1000 taken abcdefgh2222 uid 7 any:1 GPU-a\n"
				     "1010 taken abcdefgh3333 uid 7 lease:abcdefgh2222 GPU-a container x\n"
				     "1040 freed abcdefgh2222 uid 7 its time is over\n",
				     7, 1100),
			 99);
}

static void test_limits(void **state)
{
	static const struct {
		uint32_t uid;
		const char *owner;
		uint32_t of_owner, of_uid;
	} rows[] = {
		{ 1000, NULL, UINT32_MAX, 8 }, { 1001, NULL, UINT32_MAX, 0 }, { 5, NULL, 4, UINT32_MAX },
		{ 1000, "anna", 2, 8 },        { 1000, "ben", 4, 8 },         { 5, "anna", 2, UINT32_MAX },
	};
	const char *items[] = { "1000=8", "default=4", "1001=0", "anna=2" };
	const struct graft_strings limits = { items, 4 };
	struct graft_lease_limits found;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_lease lease = { .uid = rows[i].uid, .owner = rows[i].owner };

		assert_int_equal(graft_lease_limit(&limits, &lease, &found, NULL), 0);
		assert_int_equal(found.owner, rows[i].of_owner);
		assert_int_equal(found.uid, rows[i].of_uid);
	}
	for (size_t i = 0; i < 3; i++) {
		items[2] = (const char *const[]){ "-1=3", "7", "an na=3" }[i];
		assert_int_equal(graft_lease_limit(&limits, &(struct graft_lease){ .uid = 5 }, &found, NULL), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_turns, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_kept, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_kept_lease, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_fair_order, arena_setup, arena_teardown),
		cmocka_unit_test(test_use),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
