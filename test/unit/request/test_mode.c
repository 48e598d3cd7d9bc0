/* SPDX-License-Identifier: Apache-2.0 */
/* SPEC runtime-and-hook 5.1, 14.9. */
#include <string.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "request/container.h"

struct host {
	struct graft_platform_facts probes;
	int asked;
};

static struct graft_platform_facts probe(void *arg)
{
	struct host *host = arg;

	host->asked++;
	return host->probes;
}

static void test_modes(void **state)
{
	static struct {
		const char *word;
		const char *devices[3];
		struct graft_platform_facts probes;
		enum graft_mode runtime, hook;
		bool asks;
	} rows[] = {
		{ "legacy",
		  { "nvidia.com/gpu=0" },
		  { false, true, false, true },
		  GRAFT_MODE_LEGACY,
		  GRAFT_MODE_LEGACY,
		  false },
		{ "csv", { "0" }, { false, false, true, false }, GRAFT_MODE_CSV, GRAFT_MODE_CSV, false },
		{ "cdi", { NULL }, { false, true, false, true }, GRAFT_MODE_CDI, GRAFT_MODE_CDI, false },
		{ "jit-cdi", { NULL }, { false, true, false, true }, GRAFT_MODE_JIT_CDI, GRAFT_MODE_JIT_CDI, false },
		{ "auto", { NULL }, { false, false, false, false }, GRAFT_MODE_JIT_CDI, GRAFT_MODE_LEGACY, true },
		{ "auto", { "0" }, { false, false, false, true }, GRAFT_MODE_CSV, GRAFT_MODE_CSV, true },
		{ "auto", { "0" }, { false, true, false, false }, GRAFT_MODE_CSV, GRAFT_MODE_CSV, true },
		{ "auto", { "0" }, { false, true, false, true }, GRAFT_MODE_CSV, GRAFT_MODE_CSV, true },
		{ "auto", { "0" }, { false, false, true, false }, GRAFT_MODE_JIT_CDI, GRAFT_MODE_LEGACY, true },
		{ "auto", { "0" }, { false, false, true, true }, GRAFT_MODE_CSV, GRAFT_MODE_CSV, true },
		{ "auto", { "0" }, { false, true, true, false }, GRAFT_MODE_JIT_CDI, GRAFT_MODE_LEGACY, true },
		{ "auto", { "0" }, { false, true, true, true }, GRAFT_MODE_CSV, GRAFT_MODE_CSV, true },
		{ "auto", { "0" }, { true, true, false, true }, GRAFT_MODE_JIT_CDI, GRAFT_MODE_LEGACY, true },
		{ "auto",
		  { "nvidia.com/gpu=all" },
		  { false, true, false, true },
		  GRAFT_MODE_CDI,
		  GRAFT_MODE_CDI,
		  false },
		{ "auto",
		  { "nvidia.com/gpu=0", "nvidia.com/gpu=1" },
		  { false, false, true, false },
		  GRAFT_MODE_CDI,
		  GRAFT_MODE_CDI,
		  false },
		{ "auto",
		  { "nvidia.com/gpu=0", "0" },
		  { false, false, true, false },
		  GRAFT_MODE_JIT_CDI,
		  GRAFT_MODE_LEGACY,
		  true },
		{ "auto",
		  { "nvidia.com/gpu=0", "0" },
		  { false, true, false, false },
		  GRAFT_MODE_CSV,
		  GRAFT_MODE_CSV,
		  true },
		/* SPEC runtime-and-hook Q23; and what is no name of a CDI device */
		{ "auto", { "v/c=x" }, { false, false, true, false }, GRAFT_MODE_CDI, GRAFT_MODE_CDI, false },
		{ "auto",
		  { "MIG-GPU-3c8e/3/0" },
		  { false, false, true, false },
		  GRAFT_MODE_JIT_CDI,
		  GRAFT_MODE_LEGACY,
		  true },
		{ "auto", { "/v/c=x" }, { false, false, true, false }, GRAFT_MODE_JIT_CDI, GRAFT_MODE_LEGACY, true },
		{ "auto", { "none" }, { false, false, true, false }, GRAFT_MODE_JIT_CDI, GRAFT_MODE_LEGACY, true },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_container container = { .devices = { .items = rows[i].devices } };
		struct graft_error err = { .status = GRAFT_OK };
		struct host host = { .probes = rows[i].probes };
		enum graft_mode mode = GRAFT_MODE_MAX;

		while (rows[i].devices[container.devices.n])
			container.devices.n++;
		assert_int_equal(
		    graft_mode_resolve(rows[i].word, &container, GRAFT_MODE_JIT_CDI, probe, &host, &mode, &err), 0);
		if (mode != rows[i].runtime || host.asked != (rows[i].asks ? 1 : 0))
			fail_msg("row %zu: %s, asked %d times", i, graft_mode_names[mode], host.asked);
		assert_int_equal(
		    graft_mode_resolve(rows[i].word, &container, GRAFT_MODE_LEGACY, probe, &host, &mode, &err), 0);
		assert_int_equal(mode, rows[i].hook);
	}
}

static void test_wrong_modes(void **state)
{
	static const struct {
		const char *word, *error;
	} rows[] = {
		{ "", "a mode must be specified" },
		{ NULL, "a mode must be specified" },
		{ "non-legacy", "invalid mode \"non-legacy\"" },
		{ "AUTO", "invalid mode \"AUTO\"" },
	};
	const struct graft_container container = { .wants_devices = false };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		enum graft_mode mode;

		assert_int_equal(
		    graft_mode_resolve(rows[i].word, &container, GRAFT_MODE_LEGACY, probe, NULL, &mode, &err), -1);
		assert_int_equal(err.status, GRAFT_INVALID);
		assert_memory_equal(err.msg, rows[i].error, strlen(rows[i].error));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_wrong_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
