/* SPDX-License-Identifier: Apache-2.0 */
/* models: a table of facts and the few questions asked of it. Knows nothing of topologies. */
#include "models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MIG_A30   "1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb"
#define MIG_40GB  "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb"
#define MIG_80GB  "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"
#define MIG_96GB  "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb"
#define MIG_141GB "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"
#define MIG_180GB "1g.23gb 1g.23gb+me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb"
#define MIG_186GB "1g.23gb 1g.23gb+me 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb"

/* clang-format off */
const struct sim_model sim_models[] = {
	/* key               name                                  PCI     subsys  cc     architecture        brand              MiB     SMs  W     MIG */
	{ "GTX-1080-Ti",     "NVIDIA GeForce GTX 1080 Ti",         0x1b06, 0x120f, 6, 1, SIM_ARCH_PASCAL,     SIM_BRAND_GEFORCE, 11264,  28,  250,  "" },
	{ "V100-SXM2-32GB",  "Tesla V100-SXM2-32GB",               0x1db5, 0x1249, 7, 0, SIM_ARCH_VOLTA,      SIM_BRAND_NVIDIA,  32768,  80,  300,  "" },
	{ "T4",              "Tesla T4",                           0x1eb8, 0x12a2, 7, 5, SIM_ARCH_TURING,     SIM_BRAND_NVIDIA,  15360,  40,  70,   "" },
	{ "A100-SXM4-40GB",  "NVIDIA A100-SXM4-40GB",              0x20b0, 0x144e, 8, 0, SIM_ARCH_AMPERE,     SIM_BRAND_NVIDIA,  40960,  108, 400,  MIG_40GB },
	{ "A100-SXM4-80GB",  "NVIDIA A100-SXM4-80GB",              0x20b2, 0x1463, 8, 0, SIM_ARCH_AMPERE,     SIM_BRAND_NVIDIA,  81920,  108, 400,  MIG_80GB },
	{ "A30",             "NVIDIA A30",                         0x20b7, 0x1532, 8, 0, SIM_ARCH_AMPERE,     SIM_BRAND_NVIDIA,  24576,  56,  165,  MIG_A30 },
	{ "A10",             "NVIDIA A10",                         0x2236, 0x1482, 8, 6, SIM_ARCH_AMPERE,     SIM_BRAND_NVIDIA,  23028,  72,  150,  "" },
	{ "RTX-A6000",       "NVIDIA RTX A6000",                   0x2230, 0x1459, 8, 6, SIM_ARCH_AMPERE,     SIM_BRAND_RTX,     49140,  84,  300,  "" },
	{ "RTX-3060-Laptop", "NVIDIA GeForce RTX 3060 Laptop GPU", 0x2520, 0x1025, 8, 6, SIM_ARCH_AMPERE,     SIM_BRAND_GEFORCE, 6144,   30,  115,  "" },
	{ "Orin",            "Orin (nvgpu)",                       0,      0,      8, 7, SIM_ARCH_AMPERE,     SIM_BRAND_NVIDIA,  30697,  16,  50,   "" },
	{ "L4",              "NVIDIA L4",                          0x27b8, 0x16ca, 8, 9, SIM_ARCH_ADA,        SIM_BRAND_NVIDIA,  23034,  58,  72,   "" },
	{ "L40S",            "NVIDIA L40S",                        0x26b9, 0x1851, 8, 9, SIM_ARCH_ADA,        SIM_BRAND_NVIDIA,  46068,  142, 350,  "" },
	{ "RTX-4090",        "NVIDIA GeForce RTX 4090",            0x2684, 0x16f3, 8, 9, SIM_ARCH_ADA,        SIM_BRAND_GEFORCE, 24564,  128, 450,  "" },
	{ "RTX-4070-Laptop", "NVIDIA GeForce RTX 4070 Laptop GPU", 0x2860, 0x0c5a, 8, 9, SIM_ARCH_ADA,        SIM_BRAND_GEFORCE, 8188,   36,  115,  "" },
	{ "H100-PCIe",       "NVIDIA H100 PCIe",                   0x2331, 0x1626, 9, 0, SIM_ARCH_HOPPER,     SIM_BRAND_NVIDIA,  81559,  114, 350,  MIG_80GB },
	{ "H100-SXM5-80GB",  "NVIDIA H100 80GB HBM3",              0x2330, 0x16c1, 9, 0, SIM_ARCH_HOPPER,     SIM_BRAND_NVIDIA,  81559,  132, 700,  MIG_80GB },
	{ "GH200-480GB",     "NVIDIA GH200 480GB",                 0x2342, 0x16eb, 9, 0, SIM_ARCH_HOPPER,     SIM_BRAND_NVIDIA,  97871,  132, 900,  MIG_96GB },
	{ "H200-SXM5-141GB", "NVIDIA H200",                        0x2335, 0x18be, 9, 0, SIM_ARCH_HOPPER,     SIM_BRAND_NVIDIA,  143771, 132, 700,  MIG_141GB },
	{ "B200",            "NVIDIA B200",                        0x2901, 0x1999, 10, 0, SIM_ARCH_BLACKWELL, SIM_BRAND_NVIDIA,  183359, 148, 1000, MIG_180GB },
	{ "GB200",           "NVIDIA GB200",                       0x2941, 0x2046, 10, 0, SIM_ARCH_BLACKWELL, SIM_BRAND_NVIDIA,  189471, 152, 1200, MIG_186GB },
};
/* clang-format on */
const size_t sim_n_models = sizeof(sim_models) / sizeof(sim_models[0]);

const struct sim_model *sim_model_find(const char *key)
{
	for (size_t i = 0; i < sim_n_models; i++) {
		if (strcasecmp(sim_models[i].key, key) == 0)
			return &sim_models[i];
	}
	return NULL;
}

const char *sim_model_name(const struct sim_model *model, unsigned int driver_major)
{
	static const char prefix[] = "NVIDIA ";

	if (driver_major < 460 && strncmp(model->name, prefix, sizeof(prefix) - 1) == 0)
		return model->name + sizeof(prefix) - 1;
	return model->name;
}

enum sim_brand sim_model_brand(const struct sim_model *model, unsigned int driver_major)
{
	return driver_major < 460 && model->brand == SIM_BRAND_NVIDIA ? SIM_BRAND_TESLA : model->brand;
}

void sim_mig_capacity(const struct sim_model *model, uint32_t *ret_slices, uint32_t *ret_memory_slices)
{
	bool small = strcmp(model->mig_profiles, MIG_A30) == 0;

	*ret_slices = small ? 4 : 7;
	*ret_memory_slices = small ? 4 : 8;
}

static bool is_listed(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; *at != '\0'; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");

		if (n == length && memcmp(at, word, n) == 0)
			return true;
		at += n;
	}
	return false;
}

/* Ids as the driver hands them out on an empty GPU: the larger the instance, the smaller the id. */
static uint32_t first_id(uint32_t slices)
{
	static const uint32_t ids[8] = { 0, 7, 3, 1, 1, 0, 0, 0 };

	return slices < 8 ? ids[slices] : 0;
}

bool sim_mig_profile(const struct sim_model *model, const char *profile, struct sim_mig_profile *ret_profile)
{
	uint32_t slices, all_slices, all_memory_slices;
	unsigned long gib, slice_gib;
	char *end;

	if (!is_listed(model->mig_profiles, profile))
		return false;
	slices = (uint32_t)(profile[0] - '0');
	gib = strtoul(profile + 3, &end, 10);
	sim_mig_capacity(model, &all_slices, &all_memory_slices);
	/* The first profile of each list has one memory slice. */
	slice_gib = strtoul(model->mig_profiles + 3, &end, 10);
	ret_profile->slices = slices;
	ret_profile->memory_slices = (uint32_t)((gib + slice_gib / 2) / slice_gib);
	if (ret_profile->memory_slices > all_memory_slices)
		ret_profile->memory_slices = all_memory_slices;
	ret_profile->memory_mib = model->memory_mib / all_memory_slices * ret_profile->memory_slices / 128 * 128;
	ret_profile->first_id = all_slices == 4 && slices == 4 ? 0 : first_id(slices);
	return true;
}
