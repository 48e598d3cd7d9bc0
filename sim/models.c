/* SPDX-License-Identifier: Apache-2.0 */
/* models: a table of facts and a few queries. Knows nothing about topologies. */
#include "models.h"

#include <string.h>
#include <strings.h>

struct mig_size {
	const char *name; /* without "+me" */
	uint32_t slices, memory_slices, memory_mib, multiprocessors;
};

/* clang-format off */
/*
 * The MIG profiles of each GPU. Memory and multiprocessors are the values of `nvidia-smi mig
 * -lgip`, in MiB (it rounds GiB to two decimals); a "+me" profile has the values of the profile
 * without. Sources: names from NVIDIA's MIG user guide; figures from published outputs: A100 (same
 * as go-nvml's mock data), A30, GH200, H100 SXM; mig-parted's issues 120 (H200), 166 (B200), 227
 * (GB200). No published values were found for H100 PCIe (memory as on SXM) and for the profiles
 * from 3g up on B200 and GB200, which follow from the GPU's total.
 */
static const struct mig_size a30_24gb[] = {
	{ "1g.6gb", 1, 1, 5952, 14 }, { "2g.12gb", 2, 2, 11968, 28 }, { "4g.24gb", 4, 4, 24000, 56 }, { 0 },
};
static const struct mig_size a100_40gb[] = {
	{ "1g.5gb", 1, 1, 4864, 14 },   { "1g.10gb", 1, 2, 9856, 14 },  { "2g.10gb", 2, 2, 9856, 28 },
	{ "3g.20gb", 3, 4, 19968, 42 }, { "4g.20gb", 4, 4, 19968, 56 }, { "7g.40gb", 7, 8, 40192, 98 }, { 0 },
};
static const struct mig_size a100_80gb[] = {
	{ "1g.10gb", 1, 1, 9728, 14 },  { "1g.20gb", 1, 2, 19968, 14 }, { "2g.20gb", 2, 2, 19968, 28 },
	{ "3g.40gb", 3, 4, 40192, 42 }, { "4g.40gb", 4, 4, 40192, 56 }, { "7g.80gb", 7, 8, 80896, 98 }, { 0 },
};
static const struct mig_size h100_pcie[] = {
	{ "1g.10gb", 1, 1, 9984, 14 },  { "1g.20gb", 1, 2, 20096, 14 }, { "2g.20gb", 2, 2, 20096, 28 },
	{ "3g.40gb", 3, 4, 40448, 42 }, { "4g.40gb", 4, 4, 40448, 56 }, { "7g.80gb", 7, 8, 81152, 114 }, { 0 },
};
static const struct mig_size h100_80gb[] = {
	{ "1g.10gb", 1, 1, 9984, 16 },  { "1g.20gb", 1, 2, 20096, 26 }, { "2g.20gb", 2, 2, 20096, 32 },
	{ "3g.40gb", 3, 4, 40448, 60 }, { "4g.40gb", 4, 4, 40448, 64 }, { "7g.80gb", 7, 8, 81152, 132 }, { 0 },
};
static const struct mig_size gh200_96gb[] = {
	{ "1g.12gb", 1, 1, 11264, 16 }, { "1g.24gb", 1, 2, 23552, 26 }, { "2g.24gb", 2, 2, 23552, 32 },
	{ "3g.48gb", 3, 4, 47616, 60 }, { "4g.48gb", 4, 4, 47616, 64 }, { "7g.96gb", 7, 8, 95232, 132 }, { 0 },
};
static const struct mig_size h200_141gb[] = {
	{ "1g.18gb", 1, 1, 16384, 16 }, { "1g.35gb", 1, 2, 33024, 26 }, { "2g.35gb", 2, 2, 33024, 32 },
	{ "3g.71gb", 3, 4, 71168, 60 }, { "4g.71gb", 4, 4, 71168, 64 }, { "7g.141gb", 7, 8, 143360, 132 }, { 0 },
};
static const struct mig_size b200_180gb[] = {
	{ "1g.23gb", 1, 1, 22528, 18 }, { "1g.45gb", 1, 2, 45312, 30 }, { "2g.45gb", 2, 2, 45312, 36 },
	{ "3g.90gb", 3, 4, 90880, 70 }, { "4g.90gb", 4, 4, 90880, 74 }, { "7g.180gb", 7, 8, 182272, 148 }, { 0 },
};
static const struct mig_size gb200_186gb[] = {
	{ "1g.23gb", 1, 1, 22528, 18 }, { "1g.47gb", 1, 2, 46592, 32 }, { "2g.47gb", 2, 2, 46592, 38 },
	{ "3g.93gb", 3, 4, 93696, 74 }, { "4g.93gb", 4, 4, 93696, 76 }, { "7g.186gb", 7, 8, 188416, 152 }, { 0 },
};

#define MIG_NONE  "", NULL
#define MIG_A30   "1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb", a30_24gb
#define MIG_40GB  "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb", a100_40gb
#define MIG_80GB  "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"
#define MIG_96GB  "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb", gh200_96gb
#define MIG_141GB "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb", h200_141gb
#define MIG_180GB "1g.23gb 1g.23gb+me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb", b200_180gb
#define MIG_186GB "1g.23gb 1g.23gb+me 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb", gb200_186gb

/*
 * Sources: device ids and names from pci.ids and from the list of supported GPUs in the README of
 * NVIDIA's open kernel modules, which also contains the subsystems of the data-centre boards and of
 * the A6000 (GH200: 16eb and 1805 are the 120GB board, 1809 the 480GB one); B200's and GB200's from
 * the profiles in NVIDIA/k8s-test-infra; memory, power and brand from published outputs of
 * nvidia-smi. The subsystem of a GeForce depends on the board maker: here it is that of NVIDIA's
 * own board, or the number of one laptop with NVIDIA's vendor id.
 */
const struct sim_model sim_models[] = {
	/*
	 * key               name                                  PCI     subsys  cc     architecture        brand              MiB     SMs  W     MIG
	 */
	{ "GTX-1080-Ti",     "NVIDIA GeForce GTX 1080 Ti",         0x1b06, 0x120f, 6, 1, SIM_ARCH_PASCAL,     SIM_BRAND_GEFORCE, 11264,  28,  250,  MIG_NONE },
	{ "V100-SXM2-32GB",  "Tesla V100-SXM2-32GB",               0x1db5, 0x1249, 7, 0, SIM_ARCH_VOLTA,      SIM_BRAND_NVIDIA,  32768,  80,  300,  MIG_NONE },
	{ "T4",              "Tesla T4",                           0x1eb8, 0x12a2, 7, 5, SIM_ARCH_TURING,     SIM_BRAND_NVIDIA,  15360,  40,  70,   MIG_NONE },
	{ "A100-SXM4-40GB",  "NVIDIA A100-SXM4-40GB",              0x20b0, 0x144e, 8, 0, SIM_ARCH_AMPERE,     SIM_BRAND_NVIDIA,  40960,  108, 400,  MIG_40GB },
	{ "A100-SXM4-80GB",  "NVIDIA A100-SXM4-80GB",              0x20b2, 0x1463, 8, 0, SIM_ARCH_AMPERE,     SIM_BRAND_NVIDIA,  81920,  108, 400,  MIG_80GB, a100_80gb },
	{ "A30",             "NVIDIA A30",                         0x20b7, 0x1532, 8, 0, SIM_ARCH_AMPERE,     SIM_BRAND_NVIDIA,  24576,  56,  165,  MIG_A30 },
	{ "A10",             "NVIDIA A10",                         0x2236, 0x1482, 8, 6, SIM_ARCH_AMPERE,     SIM_BRAND_NVIDIA,  23028,  72,  150,  MIG_NONE },
	{ "RTX-A6000",       "NVIDIA RTX A6000",                   0x2230, 0x1459, 8, 6, SIM_ARCH_AMPERE,     SIM_BRAND_RTX,     49140,  84,  300,  MIG_NONE },
	{ "RTX-3060-Laptop", "NVIDIA GeForce RTX 3060 Laptop GPU", 0x2520, 0x1025, 8, 6, SIM_ARCH_AMPERE,     SIM_BRAND_GEFORCE, 6144,   30,  115,  MIG_NONE },
	{ "Orin",            "Orin (nvgpu)",                       0,      0,      8, 7, SIM_ARCH_AMPERE,     SIM_BRAND_NVIDIA,  30697,  16,  50,   MIG_NONE },
	{ "L4",              "NVIDIA L4",                          0x27b8, 0x16ca, 8, 9, SIM_ARCH_ADA,        SIM_BRAND_NVIDIA,  23034,  58,  72,   MIG_NONE },
	{ "L40S",            "NVIDIA L40S",                        0x26b9, 0x1851, 8, 9, SIM_ARCH_ADA,        SIM_BRAND_NVIDIA,  46068,  142, 350,  MIG_NONE },
	{ "RTX-4090",        "NVIDIA GeForce RTX 4090",            0x2684, 0x16f3, 8, 9, SIM_ARCH_ADA,        SIM_BRAND_GEFORCE, 24564,  128, 450,  MIG_NONE },
	{ "RTX-4070-Laptop", "NVIDIA GeForce RTX 4070 Laptop GPU", 0x2860, 0x0c5a, 8, 9, SIM_ARCH_ADA,        SIM_BRAND_GEFORCE, 8188,   36,  115,  MIG_NONE },
	{ "H100-PCIe",       "NVIDIA H100 PCIe",                   0x2331, 0x1626, 9, 0, SIM_ARCH_HOPPER,     SIM_BRAND_NVIDIA,  81559,  114, 350,  MIG_80GB, h100_pcie },
	{ "H100-SXM5-80GB",  "NVIDIA H100 80GB HBM3",              0x2330, 0x16c1, 9, 0, SIM_ARCH_HOPPER,     SIM_BRAND_NVIDIA,  81559,  132, 700,  MIG_80GB, h100_80gb },
	{ "GH200-480GB",     "NVIDIA GH200 480GB",                 0x2342, 0x1809, 9, 0, SIM_ARCH_HOPPER,     SIM_BRAND_NVIDIA,  97871,  132, 900,  MIG_96GB },
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

bool sim_model_is_coherent(const struct sim_model *model)
{
	return strncmp(model->key, "GH", 2) == 0 || strncmp(model->key, "GB", 2) == 0;
}

void sim_mig_capacity(const struct sim_model *model, uint32_t *ret_slices, uint32_t *ret_memory_slices)
{
	const struct mig_size *size = model->mig_sizes;

	/* The last row is the whole GPU. */
	*ret_slices = *ret_memory_slices = 0;
	for (; size && size->name; size++) {
		*ret_slices = size->slices;
		*ret_memory_slices = size->memory_slices;
	}
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

bool sim_mig_profile(const struct sim_model *model, const char *profile, struct sim_mig_profile *ret_profile)
{
	const struct mig_size *size = model->mig_sizes;
	size_t length = strcspn(profile, "+");
	uint32_t all_slices, all_memory_slices;

	if (!size || !is_listed(model->mig_profiles, profile))
		return false;
	while (size->name && (strlen(size->name) != length || memcmp(size->name, profile, length) != 0))
		size++;
	if (!size->name)
		return false;
	sim_mig_capacity(model, &all_slices, &all_memory_slices);
	ret_profile->slices = size->slices;
	ret_profile->memory_slices = size->memory_slices;
	ret_profile->memory_mib = size->memory_mib;
	ret_profile->multiprocessors = size->multiprocessors;
	ret_profile->slice_multiprocessors = model->mig_sizes->multiprocessors;
	/*
	 * The driver assigns ids on an empty GPU like this: whole 0, halves from 1, quarters from
	 * 3, eighths from 7.
	 */
	ret_profile->first_id = all_memory_slices / size->memory_slices - 1;
	return true;
}
