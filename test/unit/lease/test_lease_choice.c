/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs a claim gets, on a made-up machine: eight GPUs on two nodes, one of them in MIG mode; every refusal. */
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "base/cleanup.h"
#include "lease/lease_choice.h"

#define GPUS 8u

static struct graft_pci_place places[GPUS];
static struct graft_lendable_gpu gpus[GPUS];
static struct graft_lendable_mig migs[3] = { { .uuid = "MIG-a", .profile = "1g.10gb" },
					     { .uuid = "MIG-b", .profile = "1g.10gb" },
					     { .uuid = "MIG-c", .profile = "2g.20gb" } };
static const char *const uuids[GPUS] = { "GPU-0", "GPU-1", "GPU-2", "GPU-3", "GPU-4", "GPU-5", "GPU-6", "GPU-7" };
static const char *const bus_ids[GPUS] = { "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7" };
/* The bridges above each pair of GPUs. */
static const char *bridges[GPUS / 2][2] = {
	{ "root0", "p0" }, { "root0", "p1" }, { "root1", "p2" }, { "root1", "p3" }
};
static const struct graft_lendable host = { .gpus = gpus, .n_gpus = GPUS };

static int setup(void **state)
{
	assert_int_equal(arena_setup(state), 0);
	for (uint32_t i = 0; i < GPUS; i++) {
		places[i] = (struct graft_pci_place){ .bus_id = bus_ids[i],
						      .has_numa_node = true,
						      .numa_node = i / 4,
						      .bridges = bridges[i / 2],
						      .n_bridges = 2 };
		gpus[i] = (struct graft_lendable_gpu){ .uuid = uuids[i],
						       .model = i < 4 ? "NVIDIA A100" : "NVIDIA H100",
						       .index = i,
						       .memory_mib = i < 4 ? 40960 : 81920,
						       .place = &places[i] };
	}
	gpus[7].mig = true;
	gpus[7].migs = migs;
	gpus[7].n_migs = 3;
	gpus[6].why_not = "not in graft.leases.pool";
	return arena ? 0 : -1;
}

/* A lease of "0 1", or of "MIG-a". */
static struct graft_lease make_lease(const char *id, const char *held)
{
	static struct graft_lease_slot slots[16][GPUS];
	static size_t next;
	struct graft_lease lease = {
		.id = id,
		.slots = slots[next++ % 16],
		.uid = 1000,
		.since = 1000,
		.holder = { .kind = GRAFT_HOLDER_CGROUP, .pid = 12, .container = "3f2a91c0d1e2aaaa" },
	};

	if (held[0] == 'M')
		lease.slots[lease.n_slots++] = (struct graft_lease_slot){ .gpu = "GPU-7", .mig = held };
	for (; held[0] != 'M' && *held != '\0'; held++) {
		if (*held != ' ')
			lease.slots[lease.n_slots++] = (struct graft_lease_slot){ .gpu = uuids[*held - '0'] };
	}
	return lease;
}

static struct graft_strings previous; /* what the claim had before */

/* The answer as "GPU-1 GPU-2", or the message. */
static const char *choose(const char *text, const char *held, const char *also_held, struct graft_error *err)
{
	struct graft_lease leases[2];
	struct graft_lease_slot *slots;
	struct graft_claim claim;
	const char *answer = "";
	size_t n_leases = 0, n;

	*err = (struct graft_error){ .status = GRAFT_OK };
	if (held)
		leases[n_leases++] = make_lease("abcdefgh2345", held);
	if (also_held)
		leases[n_leases++] = make_lease("bbcdefgh2345", also_held);
	assert_int_equal(graft_claim_parse(text, arena, &claim, err), 0);
	claim.previous = previous;
	if (claim.kind == GRAFT_CLAIM_NAMED)
		claim.count = graft_lease_count_fitting(&host, &claim);
	if (graft_lease_choose(&host, leases, n_leases, &claim, 61000, arena, &slots, &n, err) < 0)
		return err->msg;
	for (size_t i = 0; i < n; i++)
		answer = graft_arena_printf(arena, "%s%s%s", answer, i > 0 ? " " : "",
					    slots[i].mig ? slots[i].mig : slots[i].gpu);
	return answer;
}

static void test_choose(void **state)
{
	static const struct {
		const char *claim, *held, *also_held, *want;
	} rows[] = {
		{ "any", NULL, NULL, "GPU-0" },
		{ "any:2", NULL, NULL, "GPU-0 GPU-1" },
		{ "any:2", "0", NULL, "GPU-2 GPU-3" }, /* a pair stays a pair */
		{ "any:6", NULL, NULL, "GPU-0 GPU-1 GPU-2 GPU-3 GPU-4 GPU-5" },
		{ "any:7", NULL, NULL, "7 GPUs were asked for, but this host has 6 that can be lent and fit" },
		{ "any:6", "0", NULL, "6 GPUs were asked for, 5 of 6 are free" },
		{ "any", "0 1 2 3 4 5", NULL, "1 GPU was asked for, 0 of 6 are free" },
		{ "any:2;model=h100", NULL, NULL, "GPU-4 GPU-5" },
		{ "any:2;model=h100", "4", NULL, "2 GPUs were asked for, 1 of 2 is free" },
		{ "any;mem>=80G", NULL, NULL, "GPU-4" },
		{ "any;mem>=81G", NULL, NULL, "1 GPU was asked for, but this host has 0 that can be lent and fit" },
		{ "any:2;not=0;GPU-1", NULL, NULL, "GPU-2 GPU-3" },
		{ "any:3;same=numa", "0", "1", "3 GPUs were asked for, 2 of 4 are free" },
		{ "any:2;same=numa", "0 1 2", NULL, "GPU-4 GPU-5" },
		{ "any:2;same=pcie", "0 3", NULL, "GPU-4 GPU-5" },
		{ "any:2;same=pcie", "0 2 4", NULL, "2 GPUs were asked for, 1 of 2 is free" },
		{ "any:2;same=nvlink", NULL, NULL,
		  "2 GPUs were asked for, but this host has 1 that can be lent and fit" },
		{ "mig:1g.10gb", NULL, NULL, "MIG-a" },
		{ "mig:1g.10gb", "MIG-a", NULL, "MIG-b" },
		{ "mig:1g.10gb:2", NULL, NULL, "MIG-a MIG-b" },
		{ "mig:1g.10gb:2", "MIG-b", NULL, "2 MIG devices were asked for, 1 of 2 is free" },
		{ "mig:1g.10gb", "7", NULL, "1 MIG device was asked for, 0 of 2 are free" },
		{ "mig:7g.80gb", NULL, NULL,
		  "1 MIG device was asked for, but this host has 0 that can be lent and fit" },
		{ "lease:bbcdefgh2345", "0", "2 3", "GPU-2 GPU-3" },
		{ "lease:cbcdefgh2345", "0", "2 3", "lease cbcdefgh2345 does not exist, or has ended" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err;

		print_message("# %s of %s, %s\n", rows[i].claim, rows[i].held ? rows[i].held : "-",
			      rows[i].also_held ? rows[i].also_held : "-");
		assert_string_equal(choose(rows[i].claim, rows[i].held, rows[i].also_held, &err), rows[i].want);
	}
}

static void test_refusals(void **state)
{
	struct graft_error err;

	(void)choose("any:5", "0 1", "3", &err);
	assert_int_equal(err.status, GRAFT_BUSY);
	assert_string_equal(err.hint, "Held: GPU 0, 1 by uid 1000 (container 3f2a91c0d1e2, 1 min); GPU 3 by uid 1000 "
				      "(container 3f2a91c0d1e2, 1 min). See 'nvidia-ctk lease list'.");
	(void)choose("any:9", NULL, NULL, &err);
	assert_int_equal(err.status, GRAFT_UNKNOWN_DEVICE);
	(void)choose("lease:cbcdefgh2345", NULL, NULL, &err);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
}

static const char *share(const char *text, bool mps, const struct graft_lease *held, struct graft_error *err)
{
	struct graft_lendable sharing = host;
	struct graft_lease_slot *slots;
	struct graft_claim claim;
	size_t n;

	*err = (struct graft_error){ .status = GRAFT_OK };
	sharing.mps = mps;
	assert_int_equal(graft_claim_parse(text, arena, &claim, err), 0);
	claim.has_user = true;
	claim.user = 1000;
	if (graft_lease_choose(&sharing, held, 1, &claim, 61000, arena, &slots, &n, err) < 0)
		return err->msg;
	return graft_arena_printf(arena, "%s %u", slots[0].gpu, slots[0].replica);
}

/* GPU 0 has two slots and GPU 1 four; a slot of GPU 0 is held. */
static void test_share(void **state)
{
	static const struct {
		const char *claim;
		bool mps;
		uint32_t user; /* of the holder */
		const char *want;
	} rows[] = {
		{ "share", false, 1000, "GPU-0 2" },
		{ "share", false, 1001, "GPU-0 2" },
		{ "share;spread", false, 1000, "GPU-1 1" },
		{ "share;not=0", false, 1000, "GPU-1 1" },
		{ "share:3", false, 1000,
		  "3 shared GPUs were asked for, but this host has 2 that can be lent and fit" },
		{ "share;sm=10", false, 1000, "mem= and sm= have no effect on GPUs that are shared by time slicing" },
		{ "share", true, 1000, "GPU-0 2" },
		{ "share", true, 1001, "GPU-1 1" },
		{ "share;not=1", true, 1001,
		  "GPU 0 has free slots, but is used by programs of uid 1001, and MPS serves one user at a time, not "
		  "uid "
		  "1000 as well" },
		{ "share:2", true, 1000, "a program can use one GPU that is shared by MPS, not 2" },
		{ "share;mem=20G;sm=50", true, 1000, "GPU-0 2" },
		{ "share;mem=21G", true, 1000, "mem= and sm= cannot exceed a slot's share of the GPU" },
		{ "share;sm=51", true, 1000, "mem= and sm= cannot exceed a slot's share of the GPU" },
		/* A slot of GPU 1 is smaller than that. */
		{ "share;sm=26;spread", true, 1000, "GPU-0 2" },
		{ "share;mem=11G;spread", true, 1000, "GPU-0 2" },
		{ "share;sm=25;spread", true, 1000, "GPU-1 1" },
		{ "lease:abcdefgh2345", true, 1000, "GPU-0 1" },
		{ "any;not=2", false, 1000, "GPU-3 0" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_lease held = make_lease("abcdefgh2345", "0");
		struct graft_error err;

		gpus[0].replicas = 2;
		gpus[1].replicas = 4;
		held.slots[0].replica = 1;
		held.has_user = true;
		held.user = rows[i].user;
		print_message("# %s, MPS %d, uid %u\n", rows[i].claim, rows[i].mps, rows[i].user);
		assert_string_equal(share(rows[i].claim, rows[i].mps, &held, &err), rows[i].want);
	}
}

/* What is not known does not fit. */
static void test_unknown(void **state)
{
	struct graft_error err;

	for (size_t i = 0; i < 4; i++) {
		gpus[i].uuid = NULL;
		gpus[4 + i].memory_mib = 0;
		gpus[4 + i].model = NULL;
		gpus[4 + i].place = NULL;
	}
	assert_string_equal(choose("any:2", NULL, NULL, &err), "GPU-4 GPU-5");
	assert_string_equal(choose("any;mem>=1M", NULL, NULL, &err),
			    "1 GPU was asked for, but this host has 0 that can be lent and fit");
	assert_string_equal(choose("any;model=A", NULL, NULL, &err),
			    "1 GPU was asked for, but this host has 0 that can be lent and fit");
	assert_string_equal(choose("any:2;same=numa", NULL, NULL, &err),
			    "2 GPUs were asked for, but this host has 1 that can be lent and fit");
}

static void test_choice_allocations(void **state)
{
	const struct graft_lease lease = make_lease("abcdefgh2345", "0 1 2 3");
	bool failed = true;

	for (int n = 1; failed; n++) {
		struct graft_arena *own = graft_arena_new((size_t)1 << 20);
		struct graft_error err = { .status = GRAFT_OK };
		const struct graft_claim claim = { .kind = GRAFT_CLAIM_ANY, .count = n % 2 == 0 ? 2 : 4 };
		struct graft_lease_slot *slots;
		size_t n_slots;
		int rc;

		allocation_fail(n / 2 + 1);
		rc = graft_lease_choose(&host, &lease, 1, &claim, 0, own, &slots, &n_slots, &err);
		failed = allocation_failed();
		assert_int_equal(rc, failed || claim.count == 4 ? -1 : 0);
		if (failed && claim.count == 2)
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
		(void)graft_arena_free(own);
	}
}

/* What changes: who uses a GPU without a lease, which have failed, and since when they are free. */
static void test_state(void **state)
{
	struct graft_error err;

	gpus[0].in_use = "process 7 (python3, uid 1000)";
	gpus[1].ill = "it has failed: Xid 79";
	assert_string_equal(choose("any:2", NULL, NULL, &err), "GPU-2 GPU-3");
	assert_string_equal(choose("any:5", NULL, NULL, &err), "5 GPUs were asked for, 4 of 5 are free");
	assert_int_equal(err.status, GRAFT_BUSY);
	assert_string_equal(
	    err.hint, "Held: GPU 0 by process 7 (python3, uid 1000) without a lease. See 'nvidia-ctk lease list'.");
	assert_string_equal(choose("any:5", "2", NULL, &err), "5 GPUs were asked for, 3 of 5 are free");
	assert_non_null(strstr(err.hint, "; GPU 0 by process 7 (python3, uid 1000) without a lease. See "));
	assert_string_equal(choose("any:6", NULL, NULL, &err),
			    "6 GPUs were asked for, but this host has 5 that can be lent and fit");
	/* Naming it is enough. */
	assert_string_equal(choose("named:1", NULL, NULL, &err), "GPU-1");
	assert_string_equal(choose("named:0", NULL, NULL, &err), "1 GPU was asked for, 0 of 1 are free");
	/* Where leases hold it, they say what is free. */
	gpus[0].replicas = 2;
	assert_string_equal(choose("share", NULL, NULL, &err), "1 shared GPU was asked for, 0 of 1 are free");
	gpus[0].in_use = NULL;
	assert_string_equal(choose("share", NULL, NULL, &err), "GPU-0");
	migs[0].in_use = "process 8 (python3, uid 1000)";
	assert_string_equal(choose("mig:1g.10gb", NULL, NULL, &err), "MIG-b");
	migs[0].in_use = NULL;
	migs[1].ill = true;
	assert_string_equal(choose("mig:1g.10gb:2", NULL, NULL, &err),
			    "2 MIG devices were asked for, but this host has 1 that can be lent and fit");
	migs[1].ill = false;
}

static void test_idle(void **state)
{
	struct graft_error err;

	gpus[0].freed = 300;
	gpus[1].freed = 200;
	gpus[2].freed = gpus[3].freed = gpus[5].freed = 100;
	gpus[4].freed = 400;
	assert_string_equal(choose("any", NULL, NULL, &err), "GPU-2");
	assert_string_equal(choose("any;not=2;3;5", NULL, NULL, &err), "GPU-1");
	/* Links go first, and the answer is in the order of the host. */
	assert_string_equal(choose("any:2;not=2;3", NULL, NULL, &err), "GPU-4 GPU-5");
}

static void test_previous(void **state)
{
	static const struct {
		const char *claim, *previous[3], *held, *want;
	} rows[] = {
		{ "any:2;sticky", { "GPU-3", "GPU-4" }, NULL, "GPU-3 GPU-4" },
		{ "any:2;sticky", { "GPU-3", "GPU-4" }, "4", "GPU-0 GPU-1" },
		{ "any:2;sticky;not=3", { "GPU-3", "GPU-4" }, NULL, "GPU-0 GPU-1" },
		{ "any:2;sticky;same=numa", { "GPU-3", "GPU-4" }, NULL, "GPU-4 GPU-5" },
		{ "any;sticky", { "GPU-3", "GPU-4" }, NULL, "GPU-0" },
		{ "any;sticky", { "GPU-9" }, NULL, "GPU-0" },
		{ "any;sticky", { "MIG-a" }, NULL, "GPU-0" },
		{ "mig:1g.10gb;sticky", { "MIG-b" }, NULL, "MIG-b" },
		{ "mig:1g.10gb;sticky", { "MIG-b" }, "MIG-b", "MIG-a" },
		{ "mig:1g.10gb;sticky", { "MIG-c" }, NULL, "MIG-a" },
	};
	struct graft_error err;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		previous = (struct graft_strings){ (const char **)(uintptr_t)rows[i].previous, 0 };
		while (previous.n < 3 && rows[i].previous[previous.n])
			previous.n++;
		print_message("# %zu\n", i);
		assert_string_equal(choose(rows[i].claim, rows[i].held, NULL, &err), rows[i].want);
	}
	previous = (struct graft_strings){ .n = 0 };
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_state, setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_idle, setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_previous, setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_choose, setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_share, setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_unknown, setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_choice_allocations, setup, arena_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
