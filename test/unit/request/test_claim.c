/* SPDX-License-Identifier: Apache-2.0 */
/* Claims: what each text means, every message, and that what is written is read back. */
#include <string.h>

#include "../allocation.h"
#include "../arena.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "request/claim.h"

static const char *written(const struct graft_claim *claim)
{
	struct graft_buffer out = { .max = 4096 };
	const char *text;

	graft_claim_write(claim, &out);
	text = graft_arena_strdup(arena, graft_buffer_text(&out));
	graft_buffer_done(&out);
	return text;
}

static void test_read(void **state)
{
	static const struct {
		const char *text, *want; /* want NULL: as the text */
	} rows[] = {
		{ "any", "any:1" },
		{ "any:1", NULL },
		{ "any:64", NULL },
		{ "any;model=H100", "any:1,model=H100" },
		{ "any:2/model=NVIDIA A100-SXM4-40GB;mem>=40G,same=nvlink",
		  "any:2,model=NVIDIA A100-SXM4-40GB,mem>=40960M,same=nvlink" },
		{ "any:2;not=0;3;GPU-ab-1;model=x", "any:2,model=x,not=0,3,GPU-ab-1" },
		{ "any:2,not=0,not=1,same=pcie", "any:2,same=pcie,not=0,1" },
		{ "any,mem>=1M,same=numa", "any:1,mem>=1M,same=numa" },
		{ "mig:1g.10gb", "mig:1g.10gb:1" },
		{ "mig:1g.5gb+me:7,model=A100", NULL },
		{ "lease:abcdefgh2345", NULL },
		{ "share", "share:1" },
		{ "named:0;GPU-ab;1:2,all", "named:0;GPU-ab;1:2;all" },
		{ "named:+0;0000:1b:00.0;gpu-AB", NULL },
		{ "mig:1g.10gb;spread/sticky", "mig:1g.10gb:1,spread,sticky" },
		{ "any:2;sticky", "any:2,sticky" },
		{ "share:2;mem=8G/sm=25,spread;not=3;spread", "share:2,mem=8192M,sm=25,spread,not=3" },
		{ "share:1,mem>=80G,mem=500M", "share:1,mem=500M,mem>=81920M" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *want = rows[i].want ? rows[i].want : rows[i].text;
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_claim claim;

		print_message("# %s\n", rows[i].text);
		assert_int_equal(graft_claim_parse(rows[i].text, arena, &claim, &err), 0);
		assert_string_equal(written(&claim), want);
		assert_int_equal(graft_claim_parse(want, arena, &claim, &err), 0);
		assert_string_equal(written(&claim), want);
	}
}

static void test_refused(void **state)
{
	static const char beside[] = ": a list has either devices or one claim, not both";
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "any:", "'': the number of GPUs must be 1 to 64" },
		{ "any:0", "'0': the number of GPUs must be 1 to 64" },
		{ "any:65", "'65': the number of GPUs must be 1 to 64" },
		{ "any:99999999999999999999", "'99999999999999999999': the number of GPUs must be 1 to 64" },
		{ "named:", "'': not the name of a GPU" },
		{ "named:0;~/x", "'~': not the name of a GPU" },
		{ "named:0;model=x", "'model=x': not the name of a GPU" },
		{ "share:0", "'0': the number of GPUs must be 1 to 64" },
		{ "share,sm=101", "'101': sm= takes a percentage, 1 to 100" },
		{ "share,sm=0", "'0': sm= takes a percentage, 1 to 100" },
		{ "share,mem=8", "'8': mem= takes a size like 8G" },
		{ "share,speed=1",
		  "'speed': unknown constraint; the constraints are model=, mem>=, same=, not=, wait=, "
		  "sticky, mem=, sm= and spread" },
		{ "any,mem=8G",
		  "'mem': unknown constraint; the constraints are model=, mem>=, same=, not=, wait= and sticky" },
		{ "any:+1", "'+1': the number of GPUs must be 1 to 64" },
		{ "any:1 ", "'1 ': the number of GPUs must be 1 to 64" },
		{ "any:2,0", "'0'" },
		{ "any:2,", "''" },
		{ "0,any:2", "'0'" },
		{ "any:1,any:2", "'any:2'" },
		{ "any:1,not=0,any:2", "'any:2'" },
		{ "mig", "'mig'" },
		{ "mig:", "'': not a MIG profile" },
		{ "mig:1g/5", "'5'" },
		{ "mig:1g:0", "'0': the number of MIG devices must be 1 to 64" },
		{ "mig:\x1b[1m", "'\x1b[1m': not a MIG profile" },
		{ "lease:", "'': not the id of a lease" },
		{ "lease:ABCDEFGH2345", "'ABCDEFGH2345': not the id of a lease" },
		{ "lease:abcdefgh2345x", "'abcdefgh2345x': not the id of a lease" },
		{ "lease:abcdefgh2345,model=x", "'lease:abcdefgh2345,model=x': lease:ID takes no constraints" },
		{ "any,mem>=40", "'40': mem>= takes a size like 40G" },
		{ "any,mem>=", "'': mem>= takes a size like 40G" },
		{ "any,mem>=2000G", "'2000': mem>= takes a size like 40G" },
		{ "any,mem=4G",
		  "'mem': unknown constraint; the constraints are model=, mem>=, same=, not=, wait= and sticky" },
		{ "any,same=host", "'host': same= is nvlink, numa or pcie" },
		{ "any,model=", "'': model= takes a part of a GPU's name" },
		{ "any,model=a\nb", "'a\nb': model= takes a part of a GPU's name" },
		{ "any,wait=5", "'5': wait= takes a time like 90s, 30m or 8h" },
		{ "any,not=", "'': not= takes the index or the UUID of a GPU" },
		{ "any,not=0,../x", "'..': not= takes the index or the UUID of a GPU" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_claim claim;
		const char *want = rows[i].want;

		print_message("# %s\n", want);
		if (!strstr(want, ": "))
			want = graft_arena_printf(arena, "%s%s", want, beside);
		assert_int_equal(graft_claim_parse(rows[i].text, arena, &claim, &err), -1);
		assert_int_equal(err.status, GRAFT_INVALID);
		assert_string_equal(err.msg, want);
		assert_string_equal(err.hint,
				    "Write 'any:2', 'share', 'mig:1g.10gb' or 'lease:ID', with constraints after it: "
				    "'any:2;model=H100'.");
	}
}

/*
 * Every word that selection could read is in the claim as it stands; CDI names only if they may be
 * GPUs.
 */
static void test_of_names(void **state)
{
	static const char *const rows[][2] = {
		/* the word, the claim or the message; NULL: it needs no lease */
		{ "0", "named:0" },
		{ "+0", "named:+0" },
		{ "00", "named:00" },
		{ "ALL", "named:ALL" },
		{ "0000:1b:00.0", "named:0000:1b:00.0" },
		{ "0000:1b:00", "named:0000:1b:00" },
		{ "gpu-AB12", "named:gpu-AB12" },
		{ "MIG-GPU-ab12/3/0", "named:MIG-GPU-ab12/3/0" },
		{ "0:1", "named:0:1" },
		{ "gpu0", "named:0" },
		{ "mig0:1", "named:0:1" },
		{ "gpu", "named:gpu" },
		{ "none", NULL },
		{ "void", NULL },
		{ "NONE", "named:NONE" },
		{ "0000:1b:00=x", "'0000:1b:00=x': not the name of a GPU" },
		{ "0000:1b:00/gpu=5", "'0000:1b:00/gpu=5': not the name of a GPU" },
		{ " 0", "' 0': not the name of a GPU" },
		{ "1,0", "'1,0': not the name of a GPU" },
		{ "$(id)", "'$(id)': not the name of a GPU" },
		{ "", "'': not the name of a GPU" },
		{ "nvidia.com/gpu=0", "named:0" },
		{ "nvidia.com/gpu=gpu0", "named:0" },
		{ "nvidia.com/gpu=mig0:1", "named:0:1" },
		{ "nvidia.com/gpu=all", "named:all" },
		{ "nvidia.com/gpu=none", "named:none" },
		{ "nvidia.com/gpu.coherent=0", "named:0" },
		{ "nvidia.com/mig=0:1", "named:0:1" },
		{ "management.nvidia.com/gpu=all", "named:all" },
		{ "runtime.nvidia.com/gpu=all", "named:all" },
		{ "runtime.nvidia.com/gpu=none", NULL },
		{ "example.com/gpu=card0", "named:card0" },
		{ "example.com/lease=h100", NULL },
		{ "nvidia.com/lease=2", NULL },
		{ "nvidia.com/imex-channel=0", NULL },
		{ "nvidia.com/gds=all", NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_strings words = { .items = (const char **)(uintptr_t)rows[i], .n = 1 };
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_claim claim;
		bool none;

		print_message("# '%s'\n", rows[i][0]);
		if (graft_claim_of_names(&words, arena, &claim, &none, &err) < 0) {
			assert_int_equal(err.status, GRAFT_INVALID);
			assert_string_equal(err.msg, rows[i][1]);
			continue;
		}
		assert_int_equal(none, rows[i][1] == NULL);
		if (rows[i][1])
			assert_string_equal(written(&claim), rows[i][1]);
	}
}

static void test_is_claim(void **state)
{
	static const struct {
		const char *words[3];
		bool want;
	} rows[] = {
		{ { "any" }, true },
		{ { "0", "any:2" }, true },
		{ { "anything" }, false },
		{ { "all" }, false },
		{ { "any;x" }, true },
		{ { "MIG-1" }, false },
		{ { "mig:x" }, true },
		{ { "lease:x" }, true },
		{ { "nvidia.com/gpu=any" }, false },
		{ { "none", "GPU-1" }, false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_strings words = { .items = (const char **)(uintptr_t)rows[i].words,
					       .n = rows[i].words[1] ? 2 : 1 };

		assert_int_equal(graft_claim_is_in(&words), rows[i].want);
	}
}

static void test_claim_allocations(void **state)
{
	const char *items[] = { "any:2", "not=0", "1", "2", "3" };
	const struct graft_strings words = { .items = items, .n = 5 };
	struct graft_claim claim;

	assert_true(allocation_each(own, err, graft_claim_read(&words, own, &claim, &err)) > 0);
}

static void test_name_allocations(void **state)
{
	const char *items[] = { "nvidia.com/gpu=0", "1" };
	const struct graft_strings words = { .items = items, .n = 2 };
	struct graft_claim claim;
	bool none;

	assert_true(allocation_each(own, err, graft_claim_of_names(&words, own, &claim, &none, &err)) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_read, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_refused, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_of_names, arena_setup, arena_teardown),
		cmocka_unit_test(test_is_claim),
		cmocka_unit_test(test_claim_allocations),
		cmocka_unit_test(test_name_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
