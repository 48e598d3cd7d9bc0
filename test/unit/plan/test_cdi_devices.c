/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a specification and their names: what "all" means, each form of an id, strategies, what is asked of NVML, refusals. */
#include <stdio.h>
#include <stdlib.h>

#include "../allocation.h"
#include "../arena.h"
#include "../unit.h"
#include "fixture.h"
#include "host/discover.h"
#include "plan/cdi_devices.h"

#define ARENA_MAX ((size_t)1 << 20)
#define USUAL     (GRAFT_CDI_NAMING_INDEX | GRAFT_CDI_NAMING_UUID)

static void set_up_host(struct fixture *f)
{
	fixture_init(f);
	f->migs[0].uuid = (struct graft_fact){ "MIG-aaaa", "test" };
	f->migs[1].uuid = (struct graft_fact){ "MIG-bbbb", "test" };
}

/* "0,GPU-aaaa 1:0,MIG-..." */
static const char *text_of(const struct graft_cdi_choices *choices)
{
	const char *text = "";

	for (size_t i = 0; i < choices->n; i++) {
		text = graft_arena_printf(arena, "%s%s", text, i > 0 ? " " : "");
		for (size_t j = 0; j < choices->items[i].n_names; j++)
			text = graft_arena_printf(arena, "%s%s%s", text, j > 0 ? "," : "", choices->items[i].names[j]);
	}
	return text;
}

/* Words separated by blanks. */
static size_t split(const char *words, const char **ids)
{
	size_t n = 0;

	for (const char *at = words; *at != '\0'; at += *at == ' ') {
		size_t length = strcspn(at, " ");

		ids[n++] = graft_arena_strndup(arena, at, length);
		at += length;
	}
	return n;
}

static void test_choose(void **state)
{
	static const struct {
		const char *ids;
		unsigned int namings;
		const char *choices; /* or the error's text */
		enum graft_status status;
	} rows[] = {
		{ "all", USUAL, "0,GPU-aaaa 2,GPU-cccc 1:0,MIG-aaaa 1:1,MIG-bbbb", GRAFT_OK },
		{ "0 all 7", USUAL, "0,GPU-aaaa 2,GPU-cccc 1:0,MIG-aaaa 1:1,MIG-bbbb", GRAFT_OK },
		{ "all", GRAFT_CDI_NAMING_TYPE_INDEX, "gpu0 gpu2 mig1:0 mig1:1", GRAFT_OK },
		{ "0", USUAL | GRAFT_CDI_NAMING_TYPE_INDEX, "0,GPU-aaaa,gpu0", GRAFT_OK },
		{ "all", 0, "   ", GRAFT_OK }, /* four without a name */
		{ "2 0", USUAL, "2,GPU-cccc 0,GPU-aaaa", GRAFT_OK },
		{ "0 GPU-aaaa 0000:1b:00.0 0", USUAL, "0,GPU-aaaa", GRAFT_OK },
		{ "1", USUAL, "1,GPU-bbbb", GRAFT_OK }, /* in MIG mode, and as a whole asked for */
		{ "1:1 1:0", USUAL, "1:1,MIG-bbbb 1:0,MIG-aaaa", GRAFT_OK },
		{ "MIG-bbbb", USUAL, "1:1,MIG-bbbb", GRAFT_OK },
		{ "1 1:0", USUAL, "1,GPU-bbbb 1:0,MIG-aaaa", GRAFT_OK },
		{ "none", USUAL, "none", GRAFT_OK },
		{ "none all", USUAL, "none", GRAFT_OK },
		{ "0 none", USUAL, "none", GRAFT_OK },
		{ "all none", USUAL, "0,GPU-aaaa 2,GPU-cccc 1:0,MIG-aaaa 1:1,MIG-bbbb", GRAFT_OK },
		{ "", USUAL, "", GRAFT_OK },
		{ "99", USUAL, "failed to get device handle from index: ERROR_INVALID_ARGUMENT: no device '99'",
		  GRAFT_UNKNOWN_DEVICE },
		{ "0 GPU-eeee", USUAL, "failed to get device handle from UUID: ERROR_NOT_FOUND: no device 'GPU-eeee'",
		  GRAFT_UNKNOWN_DEVICE },
		{ "0:9", USUAL, "failed to get device handle from MIG index: ERROR_NOT_FOUND: no device '0:9'",
		  GRAFT_UNKNOWN_DEVICE },
		{ "0000:ee:00.0", USUAL,
		  "failed to get device handle from PCI address: ERROR_NOT_FOUND: no device '0000:ee:00.0'",
		  GRAFT_UNKNOWN_DEVICE },
		{ "0 bogus", USUAL, "identifier is not a valid UUID or index: \"bogus\"", GRAFT_INVALID },
		{ "-1", USUAL, "identifier is not a valid UUID or index: \"-1\"", GRAFT_INVALID },
	};
	struct fixture f;

	set_up_host(&f);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_cdi_choices choices = { .n = 0 };
		const char *ids[8];
		size_t n = split(rows[i].ids, ids);
		int rc = graft_cdi_choose(&f.inventory, ids, n, rows[i].namings, arena, &choices, &err);

		if (rc != (rows[i].status == GRAFT_OK ? 0 : -1) || err.status != rows[i].status ||
		    strcmp(rc < 0 ? err.msg : text_of(&choices), rows[i].choices) != 0)
			fail_msg("%s: '%s'", rows[i].ids, rc < 0 ? err.msg : text_of(&choices));
	}
}

/* What a device's plan is made with. */
static void test_selections(void **state)
{
	const char *ids[] = { "0", "1:1" };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_cdi_choices choices;
	struct fixture f;

	set_up_host(&f);
	assert_int_equal(graft_cdi_choose(&f.inventory, ids, 2, USUAL, arena, &choices, &err), 0);
	assert_int_equal(choices.n, 2);
	assert_int_equal(choices.items[0].selection.n_gpus, 1);
	assert_int_equal(choices.items[0].selection.n_migs, 0);
	assert_ptr_equal(choices.items[0].selection.gpus[0], &f.gpus[0]);
	assert_int_equal(choices.items[1].selection.n_gpus, 1);
	assert_ptr_equal(choices.items[1].selection.gpus[0], &f.gpus[1]);
	assert_int_equal(choices.items[1].selection.n_migs, 1);
	assert_ptr_equal(choices.items[1].selection.migs[0].mig, &f.migs[1]);
}

/* A display's card and a GPU without its own instances are not "all"; a host without GPUs has nothing. */
static void test_all(void **state)
{
	const char *all[] = { "all" }, *zero[] = { "0" };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_cdi_choices choices;
	struct fixture f;

	set_up_host(&f);
	f.gpus[2].model = (struct graft_fact){ "NVIDIA DGX Display", "test" };
	f.gpus[1].n_mig_devices = 0;
	assert_int_equal(graft_cdi_choose(&f.inventory, all, 1, USUAL, arena, &choices, &err), 0);
	assert_string_equal(text_of(&choices), "0,GPU-aaaa");
	f.inventory.n_gpus = 0;
	assert_int_equal(graft_cdi_choose(&f.inventory, all, 1, USUAL, arena, &choices, &err), 0);
	assert_int_equal(choices.n, 0);
	assert_int_equal(graft_cdi_choose(&f.inventory, zero, 1, USUAL, arena, &choices, &err), -1);
	assert_int_equal(err.status, GRAFT_UNKNOWN_DEVICE);
}

/* Names that are not known, and names that no device may have. */
static void test_names_left_out(void **state)
{
	const char *all[] = { "all" };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_cdi_choices choices;
	struct fixture f;

	set_up_host(&f);
	f.gpus[0].uuid.value = NULL;
	f.migs[0].uuid.value = "MIG-GPU-bbbb/1/0";
	assert_int_equal(graft_cdi_choose(&f.inventory, all, 1, USUAL, arena, &choices, &err), 0);
	assert_string_equal(text_of(&choices), "0 2,GPU-cccc 1:0 1:1,MIG-bbbb");
}

static void test_missing_facts(void **state)
{
	static const struct {
		const char *ids;
		unsigned int namings, facts;
		bool no_gpu, no_mig; /* the UUID of GPU 0, of MIG device 1:0 */
	} rows[] = {
		{ "all", USUAL, 0, false, false },
		{ "all", USUAL, GRAFT_NVML_UUID, true, false },
		{ "all", USUAL, GRAFT_NVML_MIG, false, true },
		{ "all", USUAL, GRAFT_NVML_UUID | GRAFT_NVML_MIG, true, true },
		{ "all", GRAFT_CDI_NAMING_INDEX, 0, true, true },
		{ "2", USUAL, 0, true, true },
		{ "1:1", USUAL, 0, true, true },
		{ "1:0", USUAL, GRAFT_NVML_MIG, true, true },
		{ "MIG-aaaa", GRAFT_CDI_NAMING_INDEX, GRAFT_NVML_MIG, false, true },
		{ "GPU-zzzz", GRAFT_CDI_NAMING_INDEX, GRAFT_NVML_UUID, true, false },
		{ "none", USUAL, 0, true, true },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		unsigned int facts;
		struct fixture f;
		const char *ids[4];
		size_t n = split(rows[i].ids, ids);

		set_up_host(&f);
		if (rows[i].no_gpu)
			f.gpus[0].uuid.value = NULL;
		if (rows[i].no_mig)
			f.migs[0].uuid.value = NULL;
		assert_int_equal(graft_cdi_missing_facts(&f.inventory, ids, n, rows[i].namings, arena, &facts, &err),
				 0);
		if (facts != rows[i].facts)
			fail_msg("row %zu: %x", i, facts);
	}
}

/* Until more blocks than one are needed. */
static int choose_often(const struct fixture *f, struct graft_arena *own, struct graft_error *err)
{
	const char *ids[] = { "0", "GPU-cccc", "1:1", "MIG-aaaa" };
	struct graft_cdi_choices choices;
	unsigned int facts;

	for (int i = 0; i < 50; i++)
		if (graft_cdi_missing_facts(&f->inventory, ids, 4, USUAL, own, &facts, err) < 0 ||
		    graft_cdi_choose(&f->inventory, ids, 4, USUAL, own, &choices, err) < 0)
			return -1;
	return 0;
}

static void test_allocations(void **state)
{
	struct fixture f;

	set_up_host(&f);
	assert_true(allocation_each(own, err, choose_often(&f, own, &err)) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_choose, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_selections, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_all, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_names_left_out, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_missing_facts, arena_setup, arena_teardown),
		cmocka_unit_test_setup_teardown(test_allocations, arena_setup, arena_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
