/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper of a GPU that is not there: what it still knows of it. */
#include <stdlib.h>
#include <unistd.h>

#include "../arena.h"
#include "../folder.h"
#include "lease/lease_host.h"
#include "lease/lease_mps.h"

int __wrap_graft_lease_host_read(const struct graft_config *config, const struct graft_claim *claim,
				 const struct graft_log *log, struct graft_arena *a, struct graft_lendable *ret_host,
				 struct graft_error *err);

static struct graft_lendable_gpu other = { .uuid = "GPU-2", .replicas = 2 };
static enum graft_status status;

int __wrap_graft_lease_host_read(const struct graft_config *config, const struct graft_claim *claim,
				 const struct graft_log *log, struct graft_arena *a, struct graft_lendable *ret_host,
				 struct graft_error *err)
{
	*ret_host = (struct graft_lendable){ .gpus = &other, .n_gpus = 1 };
	return status == GRAFT_OK ? 0 : graft_fail(err, status, 0, "not to be read");
}

static void test_mode(void **state)
{
	static const struct {
		enum graft_status status;
		bool stays;
		const char *says;
	} rows[] = {
		{ GRAFT_OK, false, "this host has no GPU 'GPU-1'" },
		{ GRAFT_UNKNOWN_DEVICE, false, "not to be read" },
		{ GRAFT_NVML, true, "not to be read" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		char directory[] = "/tmp/graft-keeper-XXXXXX";
		struct graft_error err = { .status = GRAFT_OK };
		struct graft_config config = { 0 };
		const char *mode;

		assert_non_null(mkdtemp(directory));
		config.cli.root = directory;
		config.leases.directory = directory;
		mode = graft_arena_printf(arena, "%s/mps/GPU-1/mode", directory);
		assert_non_null(mode);
		test_put(AT_FDCWD, mode, "DEFAULT");
		status = rows[i].status;
		assert_int_equal(graft_lease_mps_keep(&config, "GPU-1", -1, NULL, arena, &err), -1);
		assert_string_equal(err.msg, rows[i].says);
		assert_int_equal(access(mode, F_OK) == 0, rows[i].stays);
		(void)test_remove_folder(directory);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_mode) };

	return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
