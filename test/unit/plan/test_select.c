/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "fixture.h"
#include "host/discover.h"

struct choice {
	struct graft_request *request;
	struct graft_arena *arena;
	struct graft_selection selection;
	struct graft_error err;
	int result;
};

static void choose(struct choice *choice, const struct graft_inventory *inventory, const char *devices, bool mig_config,
		   bool mig_monitor)
{
	memset(choice, 0, sizeof(*choice));
	choice->request = graft_request_new();
	choice->arena = graft_arena_new(1 << 20);
	assert_int_equal(graft_request_devices(choice->request, devices, &choice->err), 0);
	choice->request->mig_config = mig_config;
	choice->request->mig_monitor = mig_monitor;
	choice->result = graft_select(inventory, choice->request, choice->arena, &choice->selection, &choice->err);
}

static void done(struct choice *choice)
{
	(void)graft_request_free(choice->request);
	(void)graft_arena_free(choice->arena);
}

/* "0 1 | 1:0" for GPUs 0 and 1 and MIG device 0 of GPU 1 */
static void describe(const struct graft_selection *selection, char *text, size_t size)
{
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < selection->n_gpus; i++)
		length += (size_t)snprintf(text + length, size - length, "%s%u", i > 0 ? " " : "",
					   selection->gpus[i]->index);
	for (size_t i = 0; i < selection->n_migs; i++)
		length += (size_t)snprintf(text + length, size - length, "%s%u:%u", i > 0 ? " " : " | ",
					   selection->migs[i].gpu->index, selection->migs[i].mig->index);
}

static void test_words(void **state)
{
	static const struct {
		const char *devices, *wanted; /* NULL = an error about the word below */
		const char *unknown;
		bool all;
	} rows[] = {
		{ NULL, "", NULL, false },
		{ "0", "0", NULL, false },
		{ "2,0", "2 0", NULL, false },
		{ "0,0,GPU-AAAA,0000:1b:00.0", "0", NULL, false },
		{ "1:1b:0", "2", NULL, false },
		{ "all", "0 1 2 | 1:0 1:1", NULL, true },
		{ "2,all", "2 0 1 | 1:0 1:1", NULL, true },
		{ "all,nonsense", "0 1 2 | 1:0 1:1", NULL, true },
		{ "1", "1", NULL, false },
		{ "1:1", "1 | 1:1", NULL, false },
		{ "0,1:1,1:0,1:1", "0 1 | 1:1 1:0", NULL, false },
		{ "mig-1111", "1 | 1:0", NULL, false },
		{ "MIG-GPU-bbbb/2/3", "1 | 1:1", NULL, false },
		/* fails closed */
		{ "3", NULL, "3", false },
		{ "0,junk,1", NULL, "junk", false },
		{ "junk,all", NULL, "junk", false },
		{ "-1", NULL, "-1", false },
		{ "none", NULL, "none", false },
		{ "GPU-aaa", NULL, "GPU-aaa", false },
		{ "GPU-aaaaa", NULL, "GPU-aaaaa", false },
		{ "GPU-dddd", NULL, "GPU-dddd", false }, /* excluded */
		{ "0000:ff:00.0", NULL, "0000:ff:00.0", false },
		{ "0:0", NULL, "0:0", false }, /* GPU 0 has no MIG devices */
		{ "1:2", NULL, "1:2", false },
		{ "3:0", NULL, "3:0", false },
		{ "MIG-GPU-aaaa/1/0", NULL, "MIG-GPU-aaaa/1/0", false },
		{ "MIG-GPU-bbbb/1/1", NULL, "MIG-GPU-bbbb/1/1", false },
		{ "MIG-GPU-bbbb", NULL, "MIG-GPU-bbbb", false },
	};
	struct fixture f;
	struct choice choice;
	char text[256];

	fixture_init(&f);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		choose(&choice, &f.inventory, rows[i].devices, false, false);
		if (rows[i].wanted) {
			assert_int_equal(choice.result, 0);
			describe(&choice.selection, text, sizeof(text));
			assert_string_equal(text, rows[i].wanted);
			assert_int_equal(choice.selection.all, rows[i].all);
		} else {
			(void)snprintf(text, sizeof(text), "%s: unknown device", rows[i].unknown);
			assert_int_equal(choice.result, -1);
			assert_int_equal(choice.err.status, GRAFT_UNKNOWN_DEVICE);
			assert_string_equal(choice.err.msg, text);
			assert_string_equal(graft_error_step(&choice.err), "device error");
			assert_int_equal(choice.selection.n_gpus, 0);
			assert_int_equal(choice.selection.n_migs, 0);
		}
		done(&choice);
	}
}

/* SPEC libnvidia-container 3.5: with no GPU nothing is validated. An excluded one does not count. */
static void test_no_gpus(void **state)
{
	struct fixture f;
	struct choice choice;

	fixture_init(&f);
	f.inventory.gpus = &f.gpus[3];
	f.inventory.n_gpus = 1;
	choose(&choice, &f.inventory, "5,junk,GPU-x", false, false);
	assert_int_equal(choice.result, 0);
	assert_int_equal(choice.selection.n_gpus, 0);
	assert_false(choice.selection.all);
	assert_int_equal(graft_select_missing_facts(&f.inventory, choice.request), 0);
	done(&choice);
	choose(&choice, &f.inventory, "all", true, false);
	assert_int_equal(choice.result, 0);
	assert_true(choice.selection.all);
	assert_int_equal(choice.selection.n_mig_config_gpus, 0);
	done(&choice);
}

/* A Tegra board has one GPU, which its driver does not list. */
static void test_board(void **state)
{
	static const struct {
		const char *words;
		bool known;
	} rows[] = {
		{ "all", true }, { "0", true },      { "0,all", true },           { "", true },
		{ "1", false },  { "GPU-x", false }, { "0,0000:00:00.0", false }, { "0:0", false },
	};
	struct fixture f;
	struct choice choice;

	fixture_init(&f);
	f.inventory.n_gpus = 0;
	f.inventory.platform = GRAFT_PLATFORM_TEGRA;
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		print_message("# %s\n", rows[i].words);
		choose(&choice, &f.inventory, rows[i].words, false, false);
		assert_int_equal(choice.result, rows[i].known ? 0 : -1);
		if (!rows[i].known)
			assert_int_equal(choice.err.status, GRAFT_UNKNOWN_DEVICE);
		done(&choice);
	}
}

static void test_missing_facts(void **state)
{
	static const struct {
		const char *devices;
		bool no_gpu_uuid, no_mig_uuid; /* GPU 2 and MIG device 1:0 lose theirs; 1:1 has none anyhow */
		unsigned int missing;
	} rows[] = {
		{ "GPU-cccc", false, false, 0 },
		{ "GPU-zzzz", false, false, 0 },
		{ "GPU-cccc", true, false, GRAFT_NVML_UUID },
		{ "GPU-aaaa", true, false, 0 },
		{ "0,2,1:1,0:1b:0", true, true, 0 },
		{ "all", true, true, 0 },
		{ "all,GPU-zzzz", true, true, 0 },
		{ "GPU-zzzz,all", true, true, GRAFT_NVML_UUID },
		{ "MIG-1111", false, false, 0 },
		{ "MIG-2222", false, false, GRAFT_NVML_MIG },
		{ "MIG-1111", false, true, GRAFT_NVML_MIG },
		{ "MIG-GPU-bbbb/2/3", true, true, 0 },
		{ "MIG-GPU-cccc/2/3", true, true, GRAFT_NVML_UUID | GRAFT_NVML_MIG },
		{ "junk", true, true, 0 },
	};
	struct choice choice;
	struct fixture f;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		unsigned int missing;

		fixture_init(&f);
		if (rows[i].no_gpu_uuid)
			f.gpus[2].uuid.value = NULL;
		if (rows[i].no_mig_uuid)
			f.migs[0].uuid.value = NULL;
		choose(&choice, &f.inventory, rows[i].devices, false, false);
		missing = graft_select_missing_facts(&f.inventory, choice.request);
		if (missing != rows[i].missing)
			fail_msg("'%s' needs %#x instead of %#x", rows[i].devices, missing, rows[i].missing);
		done(&choice);
	}
}

static void test_mig_config_and_monitor(void **state)
{
	static const struct {
		const char *devices;
		bool config, monitor;
		size_t n_config, n_monitor;
		const char *step, *error;
	} rows[] = {
		{ "all", true, true, 2, 2, NULL, NULL },
		{ "all", false, true, 0, 2, NULL, NULL },
		{ "0,2", true, false, 1, 0, NULL, NULL },
		{ "0", true, true, 0, 0, NULL, NULL },
		{ "", true, true, 0, 0, NULL, NULL },
		{ "1:0", true, false, 0, 0, "mig-config error",
		  "all: cannot enable mig-config with specific MIG devices selected" },
		{ "1:0", false, true, 0, 0, "mig-monitor error",
		  "all: cannot enable mig-monitor with specific MIG devices selected" },
		{ "1:0", false, false, 0, 0, NULL, NULL },
	};
	struct choice choice;
	struct fixture f;

	fixture_init(&f);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		choose(&choice, &f.inventory, rows[i].devices, rows[i].config, rows[i].monitor);
		assert_int_equal(choice.result, rows[i].error ? -1 : 0);
		if (rows[i].error) {
			assert_int_equal(choice.err.status, GRAFT_INVALID);
			assert_string_equal(choice.err.msg, rows[i].error);
			assert_string_equal(graft_error_step(&choice.err), rows[i].step);
		}
		assert_int_equal(choice.selection.n_mig_config_gpus, rows[i].n_config);
		assert_int_equal(choice.selection.n_mig_monitor_gpus, rows[i].n_monitor);
		done(&choice);
	}
}

static void test_arena_exhausted(void **state)
{
	struct fixture f;
	int result = -1;

	fixture_init(&f);
	for (size_t max = 0; max < 1024 && result < 0; max += 16) {
		struct graft_request *request = graft_request_new();
		struct graft_arena *arena = graft_arena_new(max);
		struct graft_selection selection = { 0 };
		struct graft_error err = { 0 };

		assert_int_equal(graft_request_devices(request, "all", &err), 0);
		request->mig_config = request->mig_monitor = true;
		result = graft_select(&f.inventory, request, arena, &selection, &err);
		if (result < 0) {
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
			assert_int_equal(selection.n_gpus, 0);
		}
		(void)graft_request_free(request);
		(void)graft_arena_free(arena);
	}
	assert_int_equal(result, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_no_gpus),
		cmocka_unit_test(test_board),
		cmocka_unit_test(test_missing_facts),
		cmocka_unit_test(test_mig_config_and_monitor),
		cmocka_unit_test(test_arena_exhausted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
