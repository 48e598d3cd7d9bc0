/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a discovery fails once, and descriptors end at every number of them: the result is an error that says so, or the same inventory; nothing leaks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../allocation.h"
#include "../unit.h"
#include "fixture.h"

static char *text_of(const struct graft_inventory *inventory)
{
	struct graft_buffer out = { 0 };

	graft_inventory_write(inventory, &out);
	assert_false(graft_buffer_failed(&out));
	return out.bytes;
}

static void make_host(struct fixture *fixture)
{
	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_gpu(fixture, "0000:1b:00.0", 0, "GPU-0", "NVIDIA A100");
	fixture_gpu(fixture, "0000:2c:00.0", 1, "GPU-1", "NVIDIA A100");
	fixture_write(fixture, "/proc/driver/nvidia/capabilities/gpu1/mig/gi1/access", "DeviceFileMinor: 12\n");
	fixture_write(fixture, "/proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0/access", "DeviceFileMinor: 13\n");
	fixture_write(fixture, "/proc/driver/nvidia-caps/mig-minors", "gpu1/gi1/access 12\ngpu1/gi1/ci0/access 13\n");
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_link(fixture, "../other/libnvoptix.so." FIXTURE_VERSION,
		     FIXTURE_LIBDIR "/libnvoptix.so." FIXTURE_VERSION);
	fixture_elf(fixture, "/usr/lib/other/libnvoptix.so." FIXTURE_VERSION,
		    &(struct fixture_elf){ .soname = "libnvoptix.so.1" });
	fixture_write(fixture, "/usr/bin/nvidia-smi", "#!");
	fixture_write(fixture, "/usr/share/vulkan/icd.d/nvidia_icd.json", "{}");
	fixture_write(fixture, "/lib/firmware/nvidia/" FIXTURE_VERSION "/gsp_ga10x.bin", "g");
}

typedef int look_at(const struct graft_host_options *options, struct graft_inventory **ret_inventory,
		    struct graft_error *err);

static int look_at_all(const struct graft_host_options *options, struct graft_inventory **ret_inventory,
		       struct graft_error *err)
{
	return graft_host_discover(options, GRAFT_NEED_ALL, ret_inventory, err);
}

static void every_allocation(struct fixture *fixture, look_at *look)
{
	struct graft_inventory *inventory;
	struct graft_error err = { 0 };
	char *expected, *text;
	int n;

	if (look(&fixture->options, &inventory, &err) < 0)
		fail_msg("%s: %s", err.ctx, err.msg);
	expected = text_of(inventory);
	(void)graft_inventory_free(inventory);
	for (n = 1;; n++) {
		int fds = test_count_fds(), rc;

		inventory = NULL;
		err = (struct graft_error){ 0 };
		allocation_fail(n);
		rc = look(&fixture->options, &inventory, &err);
		if (!allocation_failed()) {
			assert_int_equal(rc, 0);
			(void)graft_inventory_free(inventory);
			break;
		}
		assert_int_equal(test_count_fds(), fds);
		if (rc < 0) {
			assert_null(inventory);
			if (err.status != GRAFT_NO_MEMORY)
				fail_msg("allocation %d: %s: %s", n, err.ctx, err.msg);
			continue;
		}
		/* What went on without that memory must not have lost a fact. */
		text = text_of(inventory);
		assert_string_equal(text, expected);
		free(text);
		(void)graft_inventory_free(inventory);
	}
	assert_true(n > 3); /* arenas allocate by the block */
	free(expected);
}

/* The number that the next descriptor gets. */
static rlim_t next_descriptor(void)
{
	int fd = dup(0);

	assert_true(fd >= 0);
	(void)close(fd);
	return (rlim_t)fd;
}

static void every_descriptor(struct fixture *fixture, look_at *look)
{
	const rlim_t first = next_descriptor();
	struct graft_inventory *inventory;
	struct graft_error err = { 0 };
	struct rlimit limit;
	char *expected, *text;
	int n_refused = 0;

	assert_int_equal(look(&fixture->options, &inventory, &err), 0);
	expected = text_of(inventory);
	(void)graft_inventory_free(inventory);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (rlim_t n = 0; n < 64; n++) {
		const struct rlimit few = { first + n, limit.rlim_max };
		int rc;

		inventory = NULL;
		err = (struct graft_error){ 0 };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		rc = look(&fixture->options, &inventory, &err);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		assert_int_equal(next_descriptor(), first);
		if (rc < 0) {
			assert_null(inventory);
			if (err.sys != EMFILE)
				fail_msg("%d descriptors: %s: %s", (int)n, err.ctx, err.msg);
			n_refused++;
			continue;
		}
		text = text_of(inventory);
		assert_string_equal(text, expected);
		free(text);
		(void)graft_inventory_free(inventory);
	}
	assert_in_range(n_refused, 1, 63);
	free(expected);
}

static int identify(const struct graft_host_options *options, struct graft_inventory **ret_inventory,
		    struct graft_error *err)
{
	static const char *const assumed[] = { "00000000:99:00.0" };

	return graft_host_identify(options, assumed, 1, ret_inventory, err);
}

static void test_descriptors(void **state)
{
	struct fixture fixture;

	fixture_init(&fixture);
	make_host(&fixture);
	every_descriptor(&fixture, look_at_all);
	every_descriptor(&fixture, identify);
	fixture_done(&fixture);
}

static void test_with_a_cache(void **state)
{
	struct fixture fixture;

	fixture_init(&fixture);
	make_host(&fixture);
	every_allocation(&fixture, look_at_all);
	every_allocation(&fixture, identify);
	fixture_done(&fixture);
}

static void test_with_the_file_list(void **state)
{
	struct fixture fixture;

	fixture_init(&fixture);
	make_host(&fixture);
	fixture_remove(&fixture, "/etc/ld.so.cache");
	fixture_write(&fixture, "/etc/ld.so.conf", "/usr/lib/other\n");
	fixture_write(&fixture, "/usr/share/nvidia/files.d/sandboxutils-filelist.json",
		      "[{\"name\": \"libcuda.so." FIXTURE_VERSION "\", \"type\": \"LIB\"}]");
	every_allocation(&fixture, look_at_all);
	fixture_done(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_with_a_cache),
		cmocka_unit_test(test_with_the_file_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
