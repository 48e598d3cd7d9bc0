/* SPDX-License-Identifier: Apache-2.0 */
/* SPEC runtime-and-hook 5.1, 14.9, and the grammar of CDI names (7.1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "request/container.h"
#include "request/container_words.h"

struct host {
	struct graft_platform_probes probes;
	int asked;
};

static struct graft_platform_probes probe(void *arg)
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
		struct graft_platform_probes probes;
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
		{ "auto", { "none" }, { false, false, true, false }, GRAFT_MODE_JIT_CDI, GRAFT_MODE_LEGACY, true },
	};

	(void)state;
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

	(void)state;
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_error err = { .status = GRAFT_OK };
		enum graft_mode mode;

		assert_int_equal(
		    graft_mode_resolve(rows[i].word, &container, GRAFT_MODE_LEGACY, probe, NULL, &mode, &err), -1);
		assert_int_equal(err.status, GRAFT_INVALID);
		assert_memory_equal(err.msg, rows[i].error, strlen(rows[i].error));
	}
}

static void test_cdi_names(void **state)
{
	static const struct {
		const char *name;
		bool valid;
	} rows[] = {
		{ "nvidia.com/gpu=0", true },
		{ "nvidia.com/gpu=GPU-3c8e:a_b.c-d", true },
		{ "runtime.nvidia.com/gpu=all", true },
		{ "v/c=x", true }, /* Q23 */
		{ "v/c=", false },
		{ "v/=x", false },
		{ "/c=x", false },
		{ "/v/c=x", false },
		{ "v/c", false },
		{ "vc=x", false },
		{ "v=x/c", false },
		{ "1v/c=x", false },
		{ "v/1c=x", false },
		{ "v-/c=x", false },
		{ "v/c_=x", false },
		{ "v/c=-x", false },
		{ "v/c=x:", false },
		{ "v/c=x=y", false },
		{ "v/c=x/y", false },
		{ "v:w/c=x", false },
		{ "v/c/d=x", false },
		{ "v/c=x y", false },
		{ "MIG-GPU-3c8e/3/0", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		if (graft_words_is_cdi_name(rows[i].name) != rows[i].valid)
			fail_msg("'%s' is %s", rows[i].name, rows[i].valid ? "refused" : "accepted");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_wrong_modes),
		cmocka_unit_test(test_cdi_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
