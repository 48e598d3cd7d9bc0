/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "catalog.h"
#include "models.h"

static void test_rows(void **state)
{
	for (size_t i = 0; i < sim_n_models; i++) {
		const struct sim_model *model = &sim_models[i];

		assert_ptr_equal(sim_model_find(model->key), model);
		assert_in_range(strlen(model->name), 3, 63); /* NVML's buffer for names is 64 */
		assert_in_range(model->memory_mib, 4096, 262144);
		assert_in_range(model->cc_major, 6, 12);
		assert_in_range(model->multiprocessors, 8, 256);
		for (size_t k = 0; k < i; k++) {
			assert_int_not_equal(strcasecmp(model->key, sim_models[k].key), 0);
			if (model->pci_device != 0)
				assert_int_not_equal(model->pci_device, sim_models[k].pci_device);
		}
	}
	assert_null(sim_model_find("Voodoo2"));
}

static void test_words_of_old_drivers(void **state)
{
	const struct sim_model *a100 = sim_model_find("A100-SXM4-40GB"), *t4 = sim_model_find("T4"),
			       *geforce = sim_model_find("RTX-4090");

	assert_string_equal(sim_model_name(a100, 450), "A100-SXM4-40GB");
	assert_string_equal(sim_model_name(a100, 470), "NVIDIA A100-SXM4-40GB");
	assert_string_equal(sim_model_name(t4, 550), "Tesla T4");
	assert_int_equal(sim_model_brand(t4, 418), SIM_BRAND_TESLA);
	assert_int_equal(sim_model_brand(t4, 535), SIM_BRAND_NVIDIA);
	assert_int_equal(sim_model_brand(geforce, 418), SIM_BRAND_GEFORCE);
}

static void test_mig_profiles(void **state)
{
	static const struct {
		const char *model, *profile;
		uint32_t slices, memory_slices, first_id, memory_mib, multiprocessors;
	} cases[] = {
		{ "A100-SXM4-40GB", "1g.5gb", 1, 1, 7, 4864, 14 },
		{ "A100-SXM4-40GB", "1g.10gb", 1, 2, 3, 9856, 14 },
		{ "A100-SXM4-40GB", "2g.10gb", 2, 2, 3, 9856, 28 },
		{ "A100-SXM4-40GB", "3g.20gb", 3, 4, 1, 19968, 42 },
		{ "A100-SXM4-40GB", "7g.40gb", 7, 8, 0, 40192, 98 },
		{ "A100-SXM4-80GB", "1g.10gb", 1, 1, 7, 9728, 14 },
		{ "A30", "1g.6gb", 1, 1, 3, 5952, 14 },
		{ "A30", "2g.12gb+me", 2, 2, 1, 11968, 28 },
		{ "A30", "4g.24gb", 4, 4, 0, 24000, 56 },
		{ "H200-SXM5-141GB", "1g.18gb+me", 1, 1, 7, 16384, 16 },
		{ "H200-SXM5-141GB", "3g.71gb", 3, 4, 1, 71168, 60 },
		{ "B200", "4g.90gb", 4, 4, 1, 90880, 74 },
		{ "GB200", "7g.186gb", 7, 8, 0, 188416, 152 },
		{ "H100-PCIe", "1g.10gb", 1, 1, 7, 9984, 14 },
		{ "H100-SXM5-80GB", "1g.20gb", 1, 2, 3, 20096, 26 },
		{ "H100-SXM5-80GB", "3g.40gb", 3, 4, 1, 40448, 60 },
	};
	struct sim_mig_profile profile;

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		const struct sim_model *model = sim_model_find(cases[i].model);

		assert_non_null(model);
		assert_true(sim_mig_profile(model, cases[i].profile, &profile));
		assert_int_equal(profile.slices, cases[i].slices);
		assert_int_equal(profile.memory_slices, cases[i].memory_slices);
		assert_int_equal(profile.first_id, cases[i].first_id);
		assert_int_equal(profile.memory_mib, cases[i].memory_mib);
		assert_int_equal(profile.multiprocessors, cases[i].multiprocessors);
	}
	assert_false(sim_mig_profile(sim_model_find("T4"), "1g.5gb", &profile));
	assert_false(sim_mig_profile(sim_model_find("A30"), "1g.6g", &profile));
	assert_false(sim_mig_profile(sim_model_find("A30"), "", &profile));
}

/* Every profile of every model is understood. */
static void test_profile_lists(void **state)
{
	char profile[32];
	struct sim_mig_profile parsed;

	for (size_t i = 0; i < sim_n_models; i++) {
		for (const char *at = sim_models[i].mig_profiles; *at != '\0'; at += strspn(at, " ")) {
			size_t n = strcspn(at, " ");

			assert_true(n < sizeof(profile));
			memcpy(profile, at, n);
			profile[n] = '\0';
			assert_true(sim_mig_profile(&sim_models[i], profile, &parsed));
			assert_in_range(parsed.slices, 1, 7);
			assert_in_range(parsed.memory_slices, 1, 8);
			assert_in_range(parsed.memory_mib, 4096, sim_models[i].memory_mib);
			assert_in_range(parsed.multiprocessors, parsed.slices * parsed.slice_multiprocessors,
					sim_models[i].multiprocessors);
			at += n;
		}
	}
}

/* The catalog: what an old and a new driver have. */
static void test_libraries_by_version(void **state)
{
	struct sim_topology old = { .driver_major = 418, .files = 0xff }, new = { .driver_major = 560, .files = 0xff };
	static const struct {
		const char *stem;
		bool in_old, in_new;
	} cases[] = {
		{ "libcuda", true, true },          { "libnvidia-fatbinaryloader", true, false },
		{ "libnvidia-ifr", true, false },   { "libnvidia-gpucomp", false, true },
		{ "libcudadebugger", false, true }, { "libnvidia-nscq", false, true },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		const struct sim_library *library = NULL;

		for (size_t k = 0; k < sim_n_libraries; k++) {
			if (strcmp(sim_libraries[k].stem, cases[i].stem) == 0)
				library = &sim_libraries[k];
		}
		assert_non_null(library);
		assert_int_equal(sim_library_wanted(library, &old), cases[i].in_old);
		assert_int_equal(sim_library_wanted(library, &new), cases[i].in_new);
		old.files = new.files = 0;
		assert_false(sim_library_wanted(library, &new));
		old.files = new.files = 0xff;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_words_of_old_drivers),
		cmocka_unit_test(test_mig_profiles),
		cmocka_unit_test(test_profile_lists),
		cmocka_unit_test(test_libraries_by_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
