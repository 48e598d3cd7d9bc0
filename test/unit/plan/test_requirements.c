/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../unit.h"
#include "fixture.h"
#include "host/discover.h"

static int check(const struct graft_inventory *inventory, const char *devices, const char *const *expressions,
		 unsigned int *ret_missing, struct graft_error *err)
{
	struct graft_request *request = graft_request_new();
	struct graft_arena *arena = graft_arena_new(1 << 20);
	struct graft_selection selection = { 0 };
	int result;

	assert_int_equal(graft_request_devices(request, devices, err), 0);
	for (; *expressions; expressions++)
		assert_int_equal(graft_request_requirement(request, *expressions, err), 0);
	assert_int_equal(graft_select(inventory, request, arena, &selection, err), 0);
	result = graft_plan_check_requirements(inventory, request, &selection, ret_missing, err);
	(void)graft_request_free(request);
	(void)graft_arena_free(arena);
	return result;
}

static void test_checks(void **state)
{
	static const char false_arch[] = "unsatisfied condition: arch>=8.0";
	static const struct {
		const char *devices, *first, *second;
		int wanted;
		unsigned int missing;
		const char *error;
	} rows[] = {
		{ "all", NULL, NULL, 0, 0, NULL },
		/* the point of the bound: CUDA is decided without NVML, in both directions and exactly */
		{ "0", "cuda>=12.0", NULL, 0, 0, NULL },
		{ "0", "cuda>=12.4", "cuda<=12.4", 0, 0, NULL },
		{ "0", "cuda=12.4", "cuda!=12.3", 0, 0, NULL },
		{ "0", "cuda>=12.5", NULL, -1, 0,
		  "unsatisfied condition: cuda>=12.5, please update your driver to a newer version, or use an earlier "
		  "cuda "
		  "container" },
		{ "0", "driver>=550", "driver<551", 0, 0, NULL },
		{ "0", "driver>=551", NULL, -1, 0, "unsatisfied condition: driver>=551" },
		{ "0", "cuda=>1", NULL, -1, 0, "invalid expression" },
		/* GPU 0 has arch 8.0 and brand Tesla, GPU 2 has 7.5; GPU 1 has neither yet */
		{ "0", "arch>=8.0,brand=tesla", NULL, 0, 0, NULL },
		{ "2", "arch>=8.0", NULL, -1, 0, false_arch },
		{ "0,2", "arch>=8.0", NULL, -1, 0, false_arch },
		{ "1", "arch>=8.0", NULL, 1, GRAFT_NVML_ARCH, NULL },
		{ "0,1", "arch>=8.0,brand=tesla", NULL, 1, GRAFT_NVML_ARCH | GRAFT_NVML_BRAND, NULL },
		{ "1", "arch>=8.0 driver>=550", NULL, 0, 0, NULL },
		{ "1:0", "arch>=8.0", NULL, 1, GRAFT_NVML_ARCH, NULL },
		{ "1", "driver>=551", "arch>=8.0", -1, 0, "unsatisfied condition: driver>=551" },
		/* no device: what only devices have counts as satisfied */
		{ "", "arch>=99,brand=nosuch", NULL, 0, 0, NULL },
		{ "", "cuda>=12.0", NULL, 0, 0, NULL },
		{ "", "driver>=551", NULL, -1, 0, "unsatisfied condition: driver>=551" },
	};
	struct fixture f;

	fixture_init(&f);
	f.gpus[0].arch = (struct graft_fact){ "8.0", "nvml" };
	f.gpus[0].brand = (struct graft_fact){ "Tesla", "nvml" };
	f.gpus[2].arch = (struct graft_fact){ "7.5", "nvml" };
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *const expressions[] = { rows[i].first, rows[i].second, NULL };
		struct graft_error err = { 0 };
		unsigned int missing = 99;
		int result = check(&f.inventory, rows[i].devices, expressions, &missing, &err);

		if (result != rows[i].wanted || missing != rows[i].missing)
			fail_msg("'%s' for '%s': %d, missing %#x", rows[i].first, rows[i].devices, result, missing);
		if (rows[i].error) {
			assert_true(err.status == GRAFT_REQUIREMENT || err.status == GRAFT_EXPRESSION);
			assert_string_equal(err.msg, rows[i].error);
		}
	}
}

static void test_cuda_sources(void **state)
{
	static const char *const expressions[] = { "cuda>=12.0", NULL };
	struct graft_error err = { 0 };
	struct fixture f;
	unsigned int missing;

	fixture_init(&f);
	/* a driver that the table does not know */
	f.inventory.cuda_version = (struct graft_fact){ NULL, NULL };
	assert_int_equal(check(&f.inventory, "0", expressions, &missing, &err), 1);
	assert_int_equal(missing, GRAFT_NVML_CUDA);
	f.inventory.cuda_version = (struct graft_fact){ "11.8", "nvml" };
	assert_int_equal(check(&f.inventory, "0", expressions, &missing, &err), -1);
	f.inventory.cuda_version = (struct graft_fact){ "12.0", "nvml" };
	assert_int_equal(check(&f.inventory, "0", expressions, &missing, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checks),
		cmocka_unit_test(test_cuda_sources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
