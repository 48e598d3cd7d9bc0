/* SPDX-License-Identifier: Apache-2.0 */
/* SPEC runtime-and-hook 5.2: hosts made of files. */
#include <stdio.h>
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "fixture.h"
#include "formats/loader/elf.h"
#include "host/platform.h"

enum {
	RELEASE = 1,           /* /etc/nv_tegra_release */
	RELEASE_DIRECTORY = 2, /* ... as a directory */
	FAMILY = 4,            /* /sys/devices/soc0/family says Tegra */
	OTHER_FAMILY = 8,      /* ... says something else */
	NVML = 16,             /* in a usual directory */
	NVML_CACHED = 32,      /* in a directory that only the cache knows */
	NVML_STALE = 64,       /* in the cache, and gone */
	NVML_FOREIGN = 128,    /* in the cache, for another machine */
	DXCORE = 256,          /* where WSL2 has it */
	CARD = 512,            /* a discrete GPU */
	THOR = 1024,           /* an integrated GPU by its model */
	NVGPU = 2048,          /* another one */
};

static void cached(struct fixture *f, const char *path, uint32_t flags, bool there)
{
	if (there)
		fixture_write(f, path, "x");
	fixture_record(f, "libnvidia-ml.so.1", path, flags);
	fixture_cache(f);
}

static void make_host(struct fixture *f, unsigned int parts)
{
	if (parts & RELEASE)
		fixture_write(f, "/etc/nv_tegra_release", "# R36\n");
	if (parts & RELEASE_DIRECTORY)
		fixture_directory(f, "/etc/nv_tegra_release");
	if (parts & FAMILY)
		fixture_write(f, "/sys/devices/soc0/family", "Tegra\n");
	if (parts & OTHER_FAMILY)
		fixture_write(f, "/sys/devices/soc0/family", "jep106:0070\n");
	if (parts & NVML)
		fixture_write(f, FIXTURE_LIBDIR "/libnvidia-ml.so.1", "x");
	if (parts & NVML_CACHED)
		cached(f, "/opt/driver/libnvidia-ml.so.1", graft_abi_flags_native(), true);
	if (parts & NVML_STALE)
		cached(f, "/opt/driver/libnvidia-ml.so.1", graft_abi_flags_native(), false);
	if (parts & NVML_FOREIGN)
		cached(f, "/opt/driver/libnvidia-ml.so.1", GRAFT_ABI_FLAGS_PPC64LE, true);
	if (parts & DXCORE)
		fixture_write(f, "/usr/lib/wsl/lib/libdxcore.so", "x");
	if (parts & CARD)
		fixture_gpu(f, "0000:3b:00.0", 0, "GPU-1", "NVIDIA RTX A6000");
	if (parts & THOR)
		fixture_gpu(f, "0000:01:00.0", 1, "GPU-2", "NVIDIA Thor");
	if (parts & NVGPU)
		fixture_gpu(f, "0000:02:00.0", 2, "GPU-3", "Orin (nvgpu)");
}

static void test_hosts(void **state)
{
	static const struct {
		unsigned int parts;
		struct graft_platform_facts facts;
		const char *machine; /* NULL = aarch64 */
	} rows[] = {
		/* dxcore, tegra files, nvml, integrated */
		{ 0, { false, false, false, false } },
		/* No Tegra by any sign: the libraries decide nothing and are not looked for. */
		{ NVML | CARD, { false, false, false, false } },
		{ DXCORE | NVML, { false, false, false, false } },
		{ OTHER_FAMILY | NVML | CARD, { false, false, false, false } },
		{ RELEASE_DIRECTORY, { false, false, false, false } },
		{ RELEASE, { false, true, false, true } },
		{ FAMILY, { false, true, false, true } },
		{ RELEASE | NVML, { false, true, true, true } },
		{ RELEASE | NVML_CACHED | CARD, { false, true, true, false } },
		{ RELEASE | NVML_STALE, { false, true, false, true } },
		{ RELEASE | NVML_FOREIGN, { false, true, false, true } },
		{ RELEASE | NVML | CARD, { false, true, true, false } },
		{ RELEASE | NVML | CARD | THOR, { false, true, true, true } },
		{ RELEASE | DXCORE | NVML, { true, true, true, true } },
		{ NVML | CARD | NVGPU, { false, false, false, true } },
		{ DXCORE | THOR, { true, false, false, true } },
		/* Models are not read where none can be integrated, unless the files of a board are there. */
		{ NVML | CARD | NVGPU, { false, false, false, false }, "x86_64" },
		{ NVML | CARD | THOR, { false, false, false, true }, "riscv64" },
		{ RELEASE | NVML | CARD | THOR, { false, true, true, true }, "x86_64" },
		{ FAMILY, { false, true, false, true }, "x86_64" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		auto_root struct graft_root root = GRAFT_ROOT_INIT;
		int fds = test_count_fds();
		struct graft_platform_facts facts;
		struct fixture fixture;

		fixture_init(&fixture);
		make_host(&fixture, rows[i].parts);
		assert_int_equal(graft_root_open(&root, fixture.root, NULL), 0);
		facts = graft_platform_detect(&root, rows[i].machine ? rows[i].machine : "aarch64");
		if (facts.dxcore != rows[i].facts.dxcore || facts.tegra_files != rows[i].facts.tegra_files ||
		    facts.nvml != rows[i].facts.nvml || facts.integrated_gpu != rows[i].facts.integrated_gpu)
			fail_msg("row %zu: dxcore %d, tegra files %d, nvml %d, integrated %d", i, facts.dxcore,
				 facts.tegra_files, facts.nvml, facts.integrated_gpu);
		/* Where all is looked for, the libraries are what they are. */
		facts = graft_platform_detect(&root, NULL);
		assert_int_equal(facts.dxcore, (rows[i].parts & DXCORE) != 0);
		assert_int_equal(facts.nvml, (rows[i].parts & (NVML | NVML_CACHED)) != 0);
		assert_int_equal(facts.tegra_files, rows[i].facts.tegra_files);
		if (!rows[i].machine)
			assert_int_equal(facts.integrated_gpu, rows[i].facts.integrated_gpu);
		graft_root_close(&root);
		fixture_done(&fixture);
		assert_int_equal(test_count_fds(), fds);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_hosts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
