/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "fixture.h"
#include "formats/loader/elf.h"
#include "host/kept_facts.h"

#define NVML_PATH FIXTURE_LIBDIR "/libnvidia-ml.so." FIXTURE_VERSION
#define ALL_FACTS                                                                                                     \
	(GRAFT_NVML_UUID | GRAFT_NVML_MODEL | GRAFT_NVML_BRAND | GRAFT_NVML_ARCH | GRAFT_NVML_CUDA | GRAFT_NVML_MIG | \
	 GRAFT_NVML_ADDRESSING)

static char stub_path[512], stub_old_path[512];

/* Two GPUs whose UUIDs procfs does not know; the second has a MIG instance. The library is the stub. */
static void make_host(struct fixture *fixture, const char *library, const char *mode)
{
	static char bytes[1 << 20];
	int fd = open(library, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	assert_true(n > 0);
	(void)close(fd);
	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_gpu(fixture, "0000:1b:00.0", 0, "GPU-from-nvml-0", "NVIDIA H100 80GB HBM3");
	fixture_gpu(fixture, "0000:2c:00.0", 1, "GPU-\?\?\?\?", "NVIDIA H100 PCIe");
	fixture_write(fixture, "/proc/driver/nvidia/capabilities/gpu1/mig/gi1/access", "DeviceFileMinor: 12\n");
	fixture_write(fixture, "/proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0/access", "DeviceFileMinor: 13\n");
	fixture_write(fixture, "/proc/driver/nvidia/capabilities/gpu1/mig/gi2/access", "DeviceFileMinor: 21\n");
	fixture_write(fixture, "/proc/driver/nvidia/capabilities/gpu1/mig/gi2/ci0/access", "DeviceFileMinor: 22\n");
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_write_bytes(fixture, NVML_PATH, bytes, (size_t)n);
	fixture_write(fixture, "/nvml-mode", mode);
}

static void assert_no_child(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static struct graft_inventory *discover(struct fixture *fixture)
{
	return fixture_discover(fixture, GRAFT_NEED_GPUS | GRAFT_NEED_MIG);
}

static struct graft_inventory *complete(struct fixture *fixture, unsigned int facts)
{
	struct graft_inventory *inventory = discover(fixture);
	struct graft_error err = { 0 };
	int fds = test_count_fds();

	if (graft_host_complete(&fixture->options, inventory, facts, &err) < 0)
		fail_msg("complete: %s: %s", err.ctx, err.msg);
	assert_int_equal(test_count_fds(), fds);
	assert_no_child();
	return inventory;
}

static void assert_fails(struct fixture *fixture, enum graft_status status, const char *text)
{
	struct graft_inventory *inventory = discover(fixture);
	struct graft_error err = { 0 };
	int fds = test_count_fds();

	assert_int_equal(graft_host_complete(&fixture->options, inventory, ALL_FACTS, &err), -1);
	assert_string_equal(err.msg, text);
	assert_int_equal(err.status, status);
	assert_int_equal(test_count_fds(), fds);
	assert_no_child();
}

static bool can_chroot(void)
{
	return geteuid() == 0;
}

static void test_fills_what_procfs_lacks(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	if (!can_chroot())
		skip();
	make_host(fixture, stub_path, "normal");
	inventory = complete(fixture, ALL_FACTS);
	assert_string_equal(inventory->gpus[0].uuid.value, "GPU-from-nvml-0");
	assert_string_equal(inventory->gpus[0].uuid.source, "/proc/driver/nvidia/gpus/0000:1b:00.0/information");
	assert_string_equal(inventory->gpus[1].uuid.value, "GPU-from-nvml-1");
	assert_string_equal(inventory->gpus[1].uuid.source, "nvml");
	assert_string_equal(inventory->gpus[1].brand.value, "Nvidia");
	assert_string_equal(inventory->gpus[1].arch.value, "9.0");
	assert_string_equal(inventory->gpus[0].addressing.value, "ats");
	assert_string_equal(inventory->gpus[1].addressing.value, "none"); /* it says that it has no such mode */
	assert_string_equal(inventory->cuda_version.value, "12.4");
	assert_string_equal(inventory->cuda_version.source, "nvml");
	assert_true(inventory->gpus[0].mig_capable);
	assert_false(inventory->gpus[0].mig_enabled);
	assert_int_equal(inventory->gpus[1].n_mig_devices, 2);
	assert_string_equal(inventory->gpus[1].mig_devices[0].uuid.value, "MIG-0");
	assert_string_equal(inventory->gpus[1].mig_devices[1].uuid.value, "MIG-1");
	assert_string_equal(inventory->gpus[1].mig_devices[0].profile.value, "1g.10gb+me");
	assert_string_equal(inventory->gpus[1].mig_devices[0].profile.source, "nvml");
	assert_null(inventory->gpus[1].mig_devices[1].profile.value); /* a name without one */
	/* If the two differ, procfs wins, and the difference is logged. */
	assert_string_equal(inventory->gpus[1].model.value, "NVIDIA H100 PCIe");
	assert_non_null(strstr(fixture_find_omission(inventory, "00000000:2c:00.0"), "NVIDIA H100 80GB HBM3"));
}

/* Whether a GPU without instances can be split: for mig-config alone it is found out, by NVML. */
static void test_mig_mode_is_asked_for_mig_config_only(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory = NULL;

	if (!can_chroot())
		skip();
	make_host(fixture, stub_path, "crash");
	fixture_directory(fixture, "/proc/driver/nvidia/capabilities/gpu0/mig");
	inventory = discover(fixture);
	assert_false(inventory->gpus[0].mig_capable);
	assert_true(inventory->gpus[1].mig_capable);
	fixture_write(fixture, "/nvml-mode", "normal");
	assert_int_equal(graft_host_discover(&fixture->options, GRAFT_NEED_MIG_CAPS, &inventory, NULL), 0);
	assert_true(inventory->gpus[0].mig_capable);
	assert_false(inventory->gpus[0].mig_enabled);
	assert_no_child();
	(void)graft_inventory_free(inventory);
}

static void test_asks_only_for_what_is_wanted(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	if (!can_chroot())
		skip();
	make_host(fixture, stub_path, "normal");
	inventory = complete(fixture, GRAFT_NVML_UUID);
	assert_string_equal(inventory->gpus[1].uuid.value, "GPU-from-nvml-1");
	assert_null(inventory->gpus[1].brand.value);
	assert_null(inventory->gpus[1].mig_devices[0].uuid.value);
	assert_string_equal(inventory->cuda_version.source, "bounded from driver version");
	/* No facts, no child: even with a library that crashes. */
	fixture_write(fixture, "/nvml-mode", "crash");
	inventory = complete(fixture, 0);
}

/* What is kept for a boot: everything, asked once. */
static void test_kept_facts(void **state)
{
	struct fixture *fixture = *state;
	struct graft_arena *arena = graft_arena_new((size_t)8 << 20);
	struct graft_kept_facts facts = { .version = GRAFT_KEPT_VERSION };
	struct graft_inventory *inventory;
	struct graft_error err = { 0 };
	const struct graft_nvml_mig *migs;

	if (!can_chroot())
		skip();
	make_host(fixture, stub_path, "normal");
	inventory = discover(fixture);
	assert_int_equal(graft_kept_ask(&fixture->options, inventory, arena, &facts, &err), 0);
	assert_no_child();
	assert_int_equal(facts.nvml.cuda_version, 12040);
	assert_int_equal(facts.nvml.n_gpus, 2);
	assert_true(facts.nvml.gpus[0].has_memory);
	assert_int_equal(facts.nvml.gpus[0].memory_mib, 81559);
	assert_string_equal(facts.nvml.gpus[0].clique, "00010203-0405-0607-0809-0a0b0c0d0e0f.7");
	assert_null(facts.nvml.gpus[1].clique);
	assert_int_equal(facts.nvml.gpus[0].n_links, 2);
	assert_string_equal(facts.nvml.gpus[0].links[0].bus_id, "00000000:5e:00.0");
	assert_int_equal(facts.nvml.gpus[0].links[0].count, 3);
	assert_string_equal(facts.nvml.gpus[0].links[1].bus_id, "00000000:ff:00.0");
	assert_int_equal(facts.nvml.gpus[0].links[1].count, 1);
	assert_int_equal(facts.nvml.gpus[1].n_links, 0);
	assert_int_equal(facts.nvml.gpus[1].n_migs, 2);
	migs = facts.nvml.gpus[1].migs;
	assert_true(migs[0].has_size);
	assert_int_equal(migs[0].multiprocessors, 10);
	assert_int_equal(migs[0].copy_engines, 11);
	assert_int_equal(migs[0].decoders, 12);
	assert_int_equal(migs[0].encoders, 13);
	assert_int_equal(migs[0].jpeg_engines, 14);
	assert_int_equal(migs[0].ofa_engines, 15);
	assert_int_equal(migs[0].gi_slices, 16);
	assert_int_equal(migs[0].ci_slices, 17);
	assert_int_equal(migs[0].memory_mib, 9856);
	assert_false(migs[1].has_size);
	assert_int_equal(graft_kept_complete(&facts, NULL, inventory, &err), 0);
	assert_string_equal(inventory->gpus[1].mig_devices[0].uuid.value, "MIG-0");
	assert_string_equal(inventory->cuda_version.value, "12.4");
	/* Amounts that cannot be are not known. */
	fixture_write(fixture, "/nvml-mode", "evil");
	facts = (struct graft_kept_facts){ .version = GRAFT_KEPT_VERSION };
	assert_int_equal(graft_kept_ask(&fixture->options, inventory, arena, &facts, &err), 0);
	assert_false(facts.nvml.gpus[0].has_memory);
	assert_false(facts.nvml.gpus[1].migs[0].has_size);
	(void)graft_arena_free(arena);
}

static void test_old_library_without_many_functions(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	if (!can_chroot())
		skip();
	make_host(fixture, stub_old_path, "normal");
	inventory = complete(fixture, ALL_FACTS);
	assert_string_equal(inventory->gpus[1].uuid.value, "GPU-from-nvml-1");
	assert_null(inventory->gpus[1].brand.value);
	assert_null(inventory->gpus[1].arch.value);
	assert_string_equal(inventory->gpus[1].addressing.value, "none");
	assert_string_equal(inventory->cuda_version.value, "12.4");
}

static void test_other_order_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	if (!can_chroot())
		skip();
	make_host(fixture, stub_path, "swapped");
	inventory = complete(fixture, GRAFT_NVML_UUID);
	assert_int_equal(inventory->gpus[0].index, 0);
	assert_string_equal(inventory->gpus[0].bus_id, "00000000:1b:00.0");
	assert_string_equal(fixture_find_omission(inventory, "00000000:1b:00.0"),
			    "NVML lists it as GPU 1, by bus id it is GPU 0");
}

static void test_lost_gpu(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	if (!can_chroot())
		skip();
	make_host(fixture, stub_path, "lost");
	inventory = complete(fixture, GRAFT_NVML_UUID | GRAFT_NVML_BRAND);
	assert_string_equal(inventory->gpus[0].brand.value, "Nvidia");
	assert_null(inventory->gpus[1].uuid.value);
	assert_non_null(strstr(fixture->log, "GPU 1 does not answer: odd error"));
}

/* Control characters and numbers beyond the table. */
static void test_untrusted_answers(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	if (!can_chroot())
		skip();
	make_host(fixture, stub_path, "evil");
	inventory = complete(fixture, GRAFT_NVML_UUID | GRAFT_NVML_BRAND);
	assert_null(inventory->gpus[1].uuid.value);
	assert_string_equal(inventory->gpus[1].brand.value, "Unknown");
	fixture_write(fixture, "/nvml-mode", "forge");
	inventory = discover(fixture);
	assert_int_equal(graft_host_complete(&fixture->options, inventory, GRAFT_NVML_UUID, NULL), -1);
	assert_no_child();
}

static void test_errors(void **state)
{
	static const struct {
		const char *mode;
		enum graft_status status;
		const char *text;
	} rows[] = {
		{ "mismatch", GRAFT_MISMATCH, "nvml error: driver/library version mismatch" },
		{ "not-loaded", GRAFT_NO_DRIVER, "nvml error: driver not loaded" },
		{ "odd-error", GRAFT_NVML, "nvml error: odd error" },
		{ "crash", GRAFT_NVML, "nvml error: the process that asked was ended by SIGSEGV (signal 11)" },
		{ "exit", GRAFT_NVML, "nvml error: the process that asked ended without an answer" },
	};
	struct fixture *fixture = *state;

	if (!can_chroot())
		skip();
	make_host(fixture, stub_path, "normal");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fixture_write(fixture, "/nvml-mode", rows[i].mode);
		assert_fails(fixture, rows[i].status, rows[i].text);
	}
	fixture_write(fixture, NVML_PATH, "not a library");
	assert_fails(fixture, GRAFT_NO_LIBRARY, "load library failed: " NVML_PATH ": file too short");
}

static void test_time(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;
	int64_t begin;

	if (!can_chroot())
		skip();
	/* Slow: progress is logged, and the answer arrives. */
	make_host(fixture, stub_path, "slow");
	inventory = complete(fixture, GRAFT_NVML_UUID);
	assert_string_equal(inventory->gpus[1].uuid.value, "GPU-from-nvml-1");
	assert_non_null(strstr(fixture->log, "waiting for NVML, which wakes the GPUs: 1 s"));
	/* One that closes everything and stays is not waited for. */
	fixture_write(fixture, "/nvml-mode", "linger");
	begin = graft_clock_ms();
	assert_fails(fixture, GRAFT_NVML, "nvml error: the process that asked ended without an answer");
	assert_in_range(graft_clock_ms() - begin, 0, 20000);
	assert_no_child();
	/* Slower than the user allows: killed and reaped at once. */
	fixture_write(fixture, "/nvml-mode", "hang");
	fixture->options.nvml_timeout_ms = 200;
	begin = graft_clock_ms();
	assert_fails(fixture, GRAFT_TIMEOUT, "driver rpc error: timed out");
	assert_true(graft_clock_ms() - begin < 1500);
}

/* What the driver's code can still do: nobody, no new privileges, not dumpable, no cores, one descriptor, no way back. */
static void test_child_has_no_privileges(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;
	const char *why;

	if (!can_chroot())
		skip();
	make_host(fixture, stub_path, "confess");
	fixture->options.nvml_uid = 12345;
	fixture->options.nvml_gid = 23456;
	inventory = complete(fixture, GRAFT_NVML_UUID);
	why = fixture_find_omission(inventory, "driver");
	assert_non_null(why);
	assert_non_null(strstr(why, "u12345 g23456 s0 n1 d0 c0 f1 p0 "));
	/* By default it is nobody. */
	fixture->options.nvml_uid = (uid_t)-1;
	fixture->options.nvml_gid = (gid_t)-1;
	inventory = complete(fixture, GRAFT_NVML_UUID);
	assert_non_null(strstr(fixture_find_omission(inventory, "driver"), "u65534 g65534 s0 "));
}

/* What the child tells of itself, asked with other supplementary groups and, unless `setgid`, without the right to change them. */
static int confess_with_groups(struct fixture *fixture, bool setgid, const char *want)
{
	static const gid_t groups[] = { 4, 6 };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2];
	struct graft_inventory *inventory;
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		if (setgroups(GRAFT_COUNT(groups), groups) < 0 || syscall(SYS_capget, &header, sets) < 0)
			_exit(1);
		if (!setgid) {
			sets[0].effective &= ~(1u << CAP_SETGID);
			sets[0].permitted &= ~(1u << CAP_SETGID);
		}
		if (syscall(SYS_capset, &header, sets) < 0)
			_exit(2);
		inventory = discover(fixture);
		if (graft_host_complete(&fixture->options, inventory, GRAFT_NVML_UUID, NULL) < 0)
			_exit(3);
		_exit(strstr(fixture_find_omission(inventory, "driver"), want) ? 0 : 4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Supplementary groups go with the right to give them up, also where the group itself stays. */
static void test_groups(void **state)
{
	struct fixture *fixture = *state;

	if (!can_chroot())
		skip();
	make_host(fixture, stub_path, "confess");
	fixture->options.nvml_uid = 12345;
	fixture->options.nvml_gid = getegid();
	assert_int_equal(confess_with_groups(fixture, true, " s0 "), 0);
	assert_int_equal(confess_with_groups(fixture, false, " s2 "), 0);
}

/* Under WSL2 NVML is the only list of GPUs there is. */
static void test_wsl(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory = NULL;
	struct graft_error err = { 0 };
	static char bytes[1 << 20];
	ssize_t n;
	int fd;

	if (!can_chroot() || !fixture_has_nodes())
		skip();
	fd = open(stub_path, O_RDONLY | O_CLOEXEC);
	n = read(fd, bytes, sizeof(bytes));
	assert_true(n > 0);
	(void)close(fd);
	fixture_node(fixture, "/dev/dxg", 10, 127, 0666);
	fixture_write_bytes(fixture, "/usr/lib/wsl/drivers/nv.inf_1/libnvidia-ml.so.1", bytes, (size_t)n);
	fixture_elf(fixture, "/usr/lib/wsl/drivers/nv.inf_1/libcuda.so.1.1",
		    &(struct fixture_elf){ .soname = "libcuda.so.1.1" });
	fixture_cache(fixture);
	fixture_write(fixture, "/nvml-mode", "normal");
	if (graft_host_discover(&fixture->options, GRAFT_NEED_ALL, &inventory, &err) < 0)
		fail_msg("%s: %s", err.ctx, err.msg);
	assert_int_equal(inventory->n_gpus, 2);
	assert_string_equal(inventory->gpus[1].uuid.value, "GPU-from-nvml-1");
	assert_string_equal(inventory->gpus[1].bus_id, "00000000:2c:00.0");
	assert_int_equal(inventory->gpus[1].index, 1);
	assert_null(inventory->gpus[1].node.path);
	assert_string_equal(inventory->driver_version.value, "550.54.14");
	assert_string_equal(inventory->driver_version.source, "nvml");
	(void)graft_inventory_free(inventory);
}

/* A parent that dies takes the child along: nothing is left behind that holds GPUs. */
static void test_orphan_dies(void **state)
{
	struct fixture *fixture = *state;
	char path[64], text[64] = "";
	int status, child = 0;
	pid_t parent;
	FILE *file;

	if (!can_chroot())
		skip();
	make_host(fixture, stub_path, "hang");
	parent = fork();
	if (parent == 0) {
		struct graft_inventory *inventory = discover(fixture);

		(void)graft_host_complete(&fixture->options, inventory, GRAFT_NVML_UUID, NULL);
		_exit(0);
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
	for (int i = 0; i < 200 && child == 0; i++) {
		(void)usleep(10 * 1000);
		file = fopen(path, "re");
		assert_non_null(file);
		child = fgets(text, sizeof(text), file) ? (int)strtol(text, NULL, 10) : 0;
		(void)fclose(file);
	}
	assert_true(child > 0);
	(void)usleep(200 * 1000); /* into the library */
	assert_int_equal(kill(parent, SIGKILL), 0);
	assert_int_equal(waitpid(parent, &status, 0), parent);
	/* The child is init's now, which may not reap it: a zombie holds nothing. */
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", child);
	for (int i = 0; i < 100; i++) {
		file = fopen(path, "re");
		if (!file)
			return;
		text[0] = '\0';
		(void)!fgets(text, sizeof(text), file);
		(void)fclose(file);
		if (strstr(text, ") Z ") || strstr(text, ") X "))
			return;
		(void)usleep(10 * 1000);
	}
	fail_msg("the NVML child survived its parent");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_fills_what_procfs_lacks),
		TEST(test_mig_mode_is_asked_for_mig_config_only),
		TEST(test_asks_only_for_what_is_wanted),
		TEST(test_kept_facts),
		TEST(test_old_library_without_many_functions),
		TEST(test_other_order_is_told),
		TEST(test_lost_gpu),
		TEST(test_untrusted_answers),
		TEST(test_errors),
		TEST(test_time),
		TEST(test_child_has_no_privileges),
		TEST(test_groups),
		TEST(test_wsl),
		TEST(test_orphan_dies),
	};
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
	int length = slash ? (int)(slash - argv[0]) : 1;

	/* The stubs are built in the directory of their source, below that of this program. */
	(void)snprintf(stub_path, sizeof(stub_path), "%.*s/host/libstub_nvml.so", length, slash ? argv[0] : ".");
	(void)snprintf(stub_old_path, sizeof(stub_old_path), "%.*s/host/libstub_nvml_old.so", length,
		       slash ? argv[0] : ".");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
