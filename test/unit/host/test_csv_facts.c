/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The question to the driver of a Tegra board (SPEC runtime-and-hook 9.5, 9.6, Q21): which library is asked, for what, as whom; what becomes of its
 * answer; that no answer is no failure. The child that would ask is a stand-in.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "host/csv.h"
#include "host/discover.h"
#include "host/nvml.h"

#define NOBODY 65534u

uid_t __wrap_geteuid(void);

static struct {
	uid_t uid;
	int n_asked;
	struct graft_nvml_question question; /* of the last */
	struct graft_nvml_snapshot answer;
	enum graft_status fails; /* GRAFT_OK = it answers */
} child;

uid_t __wrap_geteuid(void)
{
	return child.uid;
}

int graft_nvml_ask(const struct graft_nvml_question *question, struct graft_arena *arena,
		   struct graft_nvml_snapshot *ret_snapshot, struct graft_error *err)
{
	child.n_asked++;
	child.question = *question;
	if (child.fails != GRAFT_OK)
		return graft_fail(err, child.fails, 0, "nvml error: driver not loaded");
	*ret_snapshot = child.answer;
	return graft_arena_alloc(arena, 1) ? 0 : graft_fail_memory(err);
}

static void write_line(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	static const char letters[] = "EWID";

	graft_buffer_printf(arg, "%c %s\n", letters[level], message);
}

static struct graft_buffer lines;
static const struct graft_log logger = { .write = write_line, .arg = &lines, .max = GRAFT_LOG_DEBUG };
static struct graft_arena *arena;

static int setup(void **state)
{
	memset(&child, 0, sizeof(child));
	child.uid = 0;
	arena = graft_arena_new((size_t)1 << 20);
	return arena ? 0 : -1;
}

static int teardown(void **state)
{
	graft_buffer_done(&lines);
	arena = graft_arena_free(arena);
	return 0;
}

#define TEGRA "/usr/lib/aarch64-linux-gnu/nvidia"

static struct graft_csv_file files[] = {
	{ .source = TEGRA "/nvidia_icd.json" },
	{ .source = TEGRA "/libcudart.so.12", .soname = "libcudart.so.12" },
	{ .source = TEGRA "/libcuda.so.1.1", .soname = "libcuda.so.1" },
	{ .source = TEGRA "/later/libcuda.so.1.1", .soname = "libcuda.so.1" },
};
static const struct graft_csv_inventory with_cuda = { .root = "/drv", .files = files, .n_files = GRAFT_COUNT(files) };
static const struct graft_csv_inventory without_cuda = { .root = "/drv", .files = files, .n_files = 2 };

static struct graft_csv_facts ask(const struct graft_inventory *inventory, const struct graft_csv_inventory *csv,
				  bool want_arch)
{
	struct graft_csv_facts facts = { .cuda = "of before", .arch = "of before", .orin = true };
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_csv_ask(inventory, csv, want_arch, &logger, arena, &facts, &err) < 0)
		fail_msg("%s", err.msg);
	return facts;
}

/* --- the question --- */

static void test_library(void **state)
{
	static const struct graft_inventory nvml = { .nvml_library = "/usr/lib/libnvidia-ml.so.1" };
	static const struct graft_inventory none = { .nvml_library = NULL };
	static const struct {
		const struct graft_inventory *inventory;
		const struct graft_csv_inventory *csv;
		const char *library; /* NULL = nobody is asked */
		bool from_nvml;
	} rows[] = {
		{ &nvml, &with_cuda, "/usr/lib/libnvidia-ml.so.1", true },
		{ &nvml, &without_cuda, "/usr/lib/libnvidia-ml.so.1", true },
		{ &none, &with_cuda, TEGRA "/libcuda.so.1.1", false },
		{ NULL, &with_cuda, TEGRA "/libcuda.so.1.1", false },
		{ &none, &without_cuda, NULL, false },
		{ NULL, &without_cuda, NULL, false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_csv_facts facts;

		child.n_asked = 0;
		facts = ask(rows[i].inventory, rows[i].csv, false);
		assert_int_equal(child.n_asked, rows[i].library ? 1 : 0);
		assert_int_equal(facts.from_nvml, rows[i].from_nvml);
		assert_null(facts.cuda);
		assert_null(facts.arch);
		assert_false(facts.orin);
		if (!rows[i].library)
			continue;
		assert_string_equal(child.question.library, rows[i].library);
		assert_string_equal(child.question.root, "/drv");
		assert_int_equal(child.question.cuda, !rows[i].from_nvml);
		assert_true(child.question.timeout_ms > 0);
	}
	assert_string_equal(
	    graft_buffer_text(&lines),
	    "W this board has neither NVML nor a libcuda in its CSV files: its CUDA version is not known\n"
	    "W this board has neither NVML nor a libcuda in its CSV files: its CUDA version is not known\n");
}

/*
 * The architecture may wake the GPU, so it is read only if needed. If we are root, the driver's
 * code runs as nobody.
 */
static void test_question(void **state)
{
	(void)ask(NULL, &with_cuda, false);
	assert_int_equal(child.question.facts, GRAFT_NVML_CUDA | GRAFT_NVML_MODEL);
	assert_int_equal(child.question.uid, NOBODY);
	assert_int_equal(child.question.gid, NOBODY);
	child.uid = 1000;
	(void)ask(NULL, &with_cuda, true);
	assert_int_equal(child.question.facts, GRAFT_NVML_CUDA | GRAFT_NVML_MODEL | GRAFT_NVML_ARCH);
	assert_int_equal(child.question.uid, 1000);
	assert_int_equal(child.question.gid, getegid());
}

/* --- the answer --- */

static void test_versions(void **state)
{
	static const struct {
		uint32_t number;
		const char *text;
	} rows[] = {
		{ 0, NULL },       { 11040, "11.4" },  { 12000, "12.0" },
		{ 12060, "12.6" }, { 12110, "12.11" }, { 13000, "13.0" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_csv_facts facts;

		child.answer.cuda_version = rows[i].number;
		facts = ask(NULL, &with_cuda, false);
		print_message("# %u\n", rows[i].number);
		if (rows[i].text)
			assert_string_equal(facts.cuda, rows[i].text);
		else
			assert_null(facts.cuda);
	}
}

/* The architecture is the first GPU's; the board is an Orin when any of its GPUs is. */
static void test_gpus(void **state)
{
	static struct graft_nvml_gpu gpus[] = {
		{ .model = NULL, .has_arch = true, .arch_major = 8, .arch_minor = 7 },
		{ .model = "NVIDIA RTX 6000", .has_arch = true, .arch_major = 8, .arch_minor = 9 },
		{ .model = "Orin (nvgpu)", .has_arch = true, .arch_major = 10, .arch_minor = 1 },
	};
	static struct graft_nvml_gpu unknown = { .model = "Thor", .arch_major = 9 };
	static const struct {
		struct graft_nvml_gpu *gpus;
		size_t n;
		const char *arch;
		bool orin;
	} rows[] = {
		{ NULL, 0, NULL, false },      { gpus, 2, "8.7", false },    { gpus, 3, "8.7", true },
		{ gpus + 2, 1, "10.1", true }, { &unknown, 1, NULL, false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_csv_facts facts;

		child.answer.gpus = rows[i].gpus;
		child.answer.n_gpus = rows[i].n;
		facts = ask(NULL, &with_cuda, true);
		if (rows[i].arch)
			assert_string_equal(facts.arch, rows[i].arch);
		else
			assert_null(facts.arch);
		assert_int_equal(facts.orin, rows[i].orin);
	}
}

/*
 * A board whose driver says nothing still runs containers: the fact is unknown, and the reason is
 * logged.
 */
static void test_no_answer(void **state)
{
	struct graft_csv_facts facts;

	child.answer.cuda_version = 12040;
	child.fails = GRAFT_NO_DRIVER;
	facts = ask(NULL, &with_cuda, false);
	assert_null(facts.cuda);
	assert_string_equal(graft_buffer_text(&lines),
			    "W the driver does not state its CUDA version: nvml error: driver not loaded\n");
}

static void test_memory(void **state)
{
	static struct graft_nvml_gpu gpu = { .has_arch = true, .arch_major = 8, .arch_minor = 7 };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_csv_facts facts;

	child.answer.cuda_version = 12040;
	child.answer.gpus = &gpu;
	child.answer.n_gpus = 1;
	child.fails = GRAFT_NO_MEMORY;
	assert_int_equal(graft_csv_ask(NULL, &with_cuda, true, NULL, arena, &facts, &err), -1);
	assert_int_equal(err.status, GRAFT_NO_MEMORY);
	child.fails = GRAFT_OK;
	/* An arena with room for what the child says, and for each of the strings. */
	for (size_t room = 1; room <= 4; room++) {
		struct graft_arena *own = graft_arena_new(room * 16);
		int rc;

		assert_non_null(own);
		err.status = GRAFT_OK;
		rc = graft_csv_ask(NULL, &with_cuda, true, NULL, own, &facts, &err);
		assert_int_equal(rc, room < 3 ? -1 : 0);
		assert_int_equal(err.status, room < 3 ? GRAFT_NO_MEMORY : GRAFT_OK);
		if (rc == 0)
			assert_string_equal(facts.arch, "8.7");
		graft_arena_free(own);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_library, setup, teardown),
		cmocka_unit_test_setup_teardown(test_question, setup, teardown),
		cmocka_unit_test_setup_teardown(test_versions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gpus, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
