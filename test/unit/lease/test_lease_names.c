/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices the names of a claim mean: every way to write one that selection accepts, and every refusal. */
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "base/cleanup.h"
#include "lease/lease_names.h"

#define UUID_0 "GPU-0a1b2c3d-0000-4000-8000-00000000000e"
#define UUID_1 "GPU-0a1b2c3d-0000-4000-8000-00000000001e"
#define MIG_A  "MIG-0a1b2c3d-0000-4000-8000-0000000000aa"

static struct graft_lendable_mig migs[] = { { .uuid = MIG_A, .profile = "1g.10gb", .gi = 9, .ci = 0 },
					    { .profile = "1g.10gb", .gi = 11, .ci = 0 } };
static struct graft_lendable_gpu gpus[] = {
	{ .index = 0, .uuid = UUID_0, .bus_id = "00000000:1b:00.0" },
	{ .index = 1, .uuid = UUID_1, .bus_id = "00000000:43:00.0", .mig = true, .migs = migs, .n_migs = 2 },
	{ .index = 2, .bus_id = "00000000:52:00.0" },
};

/* What the names mean on a host with so many of the GPUs: as a claim, or the message. */
static const char *resolve(const char *names, size_t n_gpus)
{
	const struct graft_lendable host = { .gpus = gpus, .n_gpus = n_gpus };
	struct graft_claim claim = { .kind = GRAFT_CLAIM_NAMED };
	struct graft_error err = { .status = GRAFT_OK };
	char *rest = graft_arena_strdup(arena, names);
	struct graft_buffer out = { .max = 4096 };
	const char *text;

	while (rest)
		assert_true(graft_arena_push_string(arena, &claim.names.items, &claim.names.n, strsep(&rest, " ")));
	if (graft_lease_names_resolve(&host, arena, &claim, &err) < 0) {
		assert_int_equal(err.status, GRAFT_UNKNOWN_DEVICE);
		assert_string_equal(err.hint, "Run 'nvidia-ctk lease list' to see what this host has.");
		return graft_arena_strdup(arena, err.msg);
	}
	graft_claim_write(&claim, &out);
	text = graft_arena_strdup(arena, graft_buffer_text(&out));
	graft_buffer_done(&out);
	return text;
}

static void test_resolve(void **state)
{
	static const char *const rows[][2] = {
		{ "0", "named:0" },
		{ "+0", "named:0" },
		{ "00", "named:0" },
		{ "0000:1b:00.0", "named:0" },
		{ "0000:1B:00", "named:0" },
		{ "0:1b:0", "named:0" },
		{ "0000:1b:00.0-and-more", "named:0" },
		{ UUID_0, "named:" UUID_0 },
		{ "gpu-0a1b2c3d-0000-4000-8000-00000000000e", "named:" UUID_0 },
		{ "GPU-0A1B2C3D-0000-4000-8000-00000000000E", "named:" UUID_0 },
		{ "all", "named:all" },
		{ "ALL", "named:all" },
		{ "0 +0 00 0:1b:0 1", "named:0;1" },
		{ "0 ALL 9", "named:0;all" },
		{ "1:0", "named:1:0" },
		{ "+1:00", "named:1:0" },
		{ MIG_A, "named:" MIG_A },
		{ "mig-0A1B2C3D-0000-4000-8000-0000000000AA", "named:" MIG_A },
		{ "MIG-" UUID_1 "/9/0", "named:" MIG_A },
		{ "mig-gpu-0a1b2c3d-0000-4000-8000-00000000001E/09/0", "named:" MIG_A },
		/* refused */
		{ "9", "9: unknown device" },
		{ "0 -1", "-1: unknown device" },
		{ "GPU-x", "GPU-x: unknown device" },
		{ "0000:ff:00.0", "0000:ff:00.0: unknown device" },
		{ "1:7", "1:7: unknown device" },
		{ "MIG-" UUID_1 "/10/0", "MIG-" UUID_1 "/10/0: unknown device" },
		{ "NONE", "NONE: unknown device" },
		{ "1:1", "1:1: cannot be held, because its UUID is not known" },
		{ "MIG-" UUID_1 "/11/0", "MIG-" UUID_1 "/11/0: cannot be held, because its UUID is not known" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		print_message("# %s\n", rows[i][0]);
		assert_string_equal(resolve(rows[i][0], 2), rows[i][1]);
	}
	assert_string_equal(resolve("2", 3), "2: cannot be held, because its UUID is not known");
	assert_string_equal(resolve("all", 3), "all: cannot be held, because its UUID is not known");
	assert_string_equal(resolve("0", 0), "0: unknown device");
}

static void test_other_claims(void **state)
{
	const struct graft_lendable host = { .gpus = gpus, .n_gpus = 2 };
	struct graft_claim claim = { .kind = GRAFT_CLAIM_ANY, .count = 1 };

	assert_int_equal(graft_lease_names_resolve(&host, NULL, &claim, NULL), 0);
	assert_int_equal(claim.count, 1);
}

static int resolve_in(struct graft_arena *own, struct graft_error *err)
{
	const char *items[] = { "+0", "all" };
	const struct graft_lendable host = { .gpus = gpus, .n_gpus = 2 };
	struct graft_claim claim = { .kind = GRAFT_CLAIM_NAMED, .names = { .items = items, .n = 2 } };

	return graft_lease_names_resolve(&host, own, &claim, err);
}

static void test_resolve_allocations(void **state)
{
	assert_true(allocation_each(own, err, resolve_in(own, &err)) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_resolve, arena_setup, arena_teardown),
		cmocka_unit_test(test_other_claims),
		cmocka_unit_test(test_resolve_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
