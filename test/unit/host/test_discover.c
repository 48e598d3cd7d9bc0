/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "fixture.h"
#include "formats/loader/elf.h"

static void assert_fails(struct fixture *fixture, enum graft_status status, const char *text)
{
	struct graft_inventory *inventory = NULL;
	struct graft_error err = { 0 };
	int fds = test_count_fds();

	assert_int_equal(graft_host_discover(&fixture->options, GRAFT_NEED_ALL, &inventory, &err), -1);
	assert_null(inventory);
	assert_int_equal(err.status, status);
	assert_string_equal(err.msg, text);
	assert_int_equal(test_count_fds(), fds);
}

/* What is written is read back the same, whatever the host. */
static void assert_round_trip(const struct graft_inventory *inventory)
{
	struct graft_buffer first = { 0 }, second = { 0 };
	struct graft_inventory *copy;
	struct graft_error err = { 0 };

	graft_inventory_write(inventory, &first);
	if (graft_inventory_read(first.bytes, first.length, &copy, &err) < 0)
		fail_msg("read back: %s: %s", err.ctx, err.msg);
	graft_inventory_write(copy, &second);
	assert_string_equal(first.bytes, second.bytes);
	graft_buffer_done(&first);
	graft_buffer_done(&second);
	(void)graft_inventory_free(copy);
}

static void test_one_t4_with_an_old_driver(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;
	const struct graft_library *library;

	fixture_kernel(fixture, "418.67");
	fixture_gpu(fixture, "0000:00:1e.0", 0, "GPU-0a1b2c3d-0000-1111-2222-333344445555", "Tesla T4");
	fixture_libraries(fixture, FIXTURE_LIBDIR, "418.67");
	fixture_link(fixture, "libcuda.so.1", FIXTURE_LIBDIR "/libcuda.so");
	fixture_record(fixture, "libcuda.so", FIXTURE_LIBDIR "/libcuda.so", graft_abi_flags_native());
	fixture_cache(fixture);
	fixture_write(fixture, "/usr/bin/nvidia-smi", "#!");
	fixture_write(fixture, "/var/run/nvidia-persistenced/socket", "");
	inventory = fixture_discover(fixture, GRAFT_NEED_ALL);

	assert_int_equal(inventory->platform, GRAFT_PLATFORM_NATIVE);
	assert_false(inventory->simulated);
	assert_string_equal(inventory->driver_version.value, "418.67");
	assert_string_equal(inventory->driver_version.source, "/proc/driver/nvidia/version");
	assert_string_equal(inventory->cuda_version.value, "10.1");
	assert_string_equal(inventory->library_version.value, "418.67");
	assert_int_equal(inventory->n_gpus, 1);
	assert_string_equal(inventory->gpus[0].bus_id, "00000000:00:1e.0");
	assert_string_equal(inventory->gpus[0].uuid.value, "GPU-0a1b2c3d-0000-1111-2222-333344445555");
	assert_string_equal(inventory->gpus[0].model.value, "Tesla T4");
	assert_string_equal(inventory->gpus[0].procfs_path, "/proc/driver/nvidia/gpus/0000:00:1e.0");
	assert_string_equal(inventory->gpus[0].node.path, "/dev/nvidia0");
	assert_null(inventory->gpus[0].brand.value);
	assert_false(inventory->gpus[0].mig_capable);
	if (fixture_has_nodes())
		assert_true(inventory->gpus[0].node.present);
	/* The soname that programs are linked to, not that of the development link. */
	library = fixture_find_library(inventory->libraries, inventory->n_libraries, "libcuda.so.1");
	assert_non_null(library);
	assert_string_equal(library->path, FIXTURE_LIBDIR "/libcuda.so.418.67");
	assert_string_equal(library->source, "/etc/ld.so.cache");
	assert_int_equal(library->class_, GRAFT_CLASS_COMPUTE);
	assert_null(fixture_find_library(inventory->libraries, inventory->n_libraries, "libcuda.so"));
	assert_string_equal(inventory->libraries[0].soname, "libnvidia-ml.so.1");
	assert_int_equal(inventory->n_libraries, 14);
	assert_int_equal(inventory->n_libraries32, 0);
	assert_int_equal(inventory->n_binaries, 1);
	assert_string_equal(inventory->binaries[0].path, "/usr/bin/nvidia-smi");
	assert_int_equal(inventory->n_ipcs, 1);
	assert_string_equal(inventory->ipcs[0].path, "/var/run/nvidia-persistenced/socket");
	assert_int_equal(inventory->n_proc_files, 3);
	assert_string_equal(inventory->proc_files[2].content, "Binary: \"\"\n");
	assert_int_equal(inventory->proc_files[2].mode, 0644);
	assert_non_null(fixture_find_omission(inventory, "libnvidia-nscq.so"));
	assert_non_null(fixture_find_omission(inventory, "libGLX.so"));
	assert_non_null(strstr(fixture->log, "missing library libnvidia-nscq.so"));
	assert_non_null(strstr(fixture->log, "missing binary nv-fabricmanager"));
	assert_non_null(strstr(fixture->log, "selecting " FIXTURE_LIBDIR "/libcuda.so.418.67"));
	assert_round_trip(inventory);
}

/* What tells a host from what it was: no library and no node is needed for it. */
static void test_identify(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory = NULL;
	struct graft_error err = { 0 };

	assert_int_equal(graft_host_identify(&fixture->options, NULL, 0, &inventory, &err), 0);
	assert_null(inventory->driver_version.value);
	assert_int_equal(inventory->n_gpus, 0);
	(void)graft_inventory_free(inventory);
	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_gpu(fixture, "0000:1b:00.0", 0, "GPU-0a1b2c3d-0000-1111-2222-333344445555", "A100");
	fixture_write(fixture, "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\n");
	fixture_write(fixture, "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access", "DeviceFileMinor: 13\n");
	assert_int_equal(graft_host_identify(&fixture->options, NULL, 0, &inventory, &err), 0);
	assert_int_equal(inventory->platform, GRAFT_PLATFORM_NATIVE);
	assert_string_equal(inventory->driver_version.value, FIXTURE_VERSION);
	assert_int_equal(inventory->n_gpus, 1);
	assert_string_equal(inventory->gpus[0].uuid.value, "GPU-0a1b2c3d-0000-1111-2222-333344445555");
	assert_int_equal(inventory->gpus[0].n_mig_devices, 1);
	assert_int_equal(inventory->n_libraries, 0);
	assert_null(inventory->nvml_library);
	(void)graft_inventory_free(inventory);
}

/* Of other GPUs the address is known, but none of their files is read. */
static void test_identify_some(void **state)
{
	static const char *const assumed[] = { "no place", "00000000:1B:00.0", "0000:3c:00.0", "00000001:1d:00.0" };
	struct fixture *fixture = *state;
	struct graft_inventory *inventory = NULL;
	struct graft_error err = { 0 };

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_gpu(fixture, "0000:1b:00.0", 0, "GPU-0a1b2c3d-0000-1111-2222-333344445555", "A100");
	fixture_gpu(fixture, "0000:1c:00.0", 1, "GPU-1a1b2c3d-0000-1111-2222-333344445555", "A100");
	fixture_gpu(fixture, "0000:1d:00.0", 2, "GPU-2a1b2c3d-0000-1111-2222-333344445555", "A100");
	for (int i = 0; i < 2; i++) {
		char path[96];

		(void)snprintf(path, sizeof(path), "/proc/driver/nvidia/capabilities/gpu%d/mig/gi1/access", i);
		fixture_write(fixture, path, "DeviceFileMinor: 12\n");
		(void)snprintf(path, sizeof(path), "/proc/driver/nvidia/capabilities/gpu%d/mig/gi1/ci0/access", i);
		fixture_write(fixture, path, "DeviceFileMinor: 13\n");
	}
	assert_int_equal(graft_host_identify(&fixture->options, assumed, GRAFT_COUNT(assumed), &inventory, &err), 0);
	assert_int_equal(inventory->n_gpus, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(inventory->gpus[i].index, i);
	assert_string_equal(inventory->gpus[0].bus_id, "00000000:1b:00.0");
	assert_null(inventory->gpus[0].uuid.value);
	assert_int_equal(inventory->gpus[0].n_mig_devices, 0);
	assert_string_equal(inventory->gpus[1].uuid.value, "GPU-1a1b2c3d-0000-1111-2222-333344445555");
	assert_int_equal(inventory->gpus[1].n_mig_devices, 1);
	assert_string_equal(inventory->gpus[2].uuid.value, "GPU-2a1b2c3d-0000-1111-2222-333344445555");
	(void)graft_inventory_free(inventory);
}

static void test_order_unknown_uuid_excluded_and_lost_gpus(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	/* By bus id: 1b (minor 3), then 10000:01 (32-bit domain, minor 0); 0a is excluded; 2c fell off the bus; 3d unreadable. */
	fixture_gpu(fixture, "0000:1b:00.0", 3, "GPU-\?\?\?\?\?\?\?\?-\?\?\?\?", "NVIDIA H100 80GB HBM3");
	fixture_gpu(fixture, "00010000:01:00.0", 0, "GPU-00000000-0000-0000-0000-000000000001", "Unknown");
	fixture_gpu(fixture, "0000:0a:00.0", 7, "GPU-00000000-0000-0000-0000-000000000007", "NVIDIA H100 80GB HBM3");
	fixture_write(fixture, "/proc/driver/nvidia/gpus/0000:0a:00.0/information",
		      "Model: \t NVIDIA H100\nDevice Minor: \t 7\nGPU Excluded:\t Yes\n");
	fixture_write(fixture, "/proc/driver/nvidia/gpus/0000:2c:00.0/information", "Model: \t NVIDIA H100\n");
	fixture_directory(fixture, "/proc/driver/nvidia/gpus/0000:3d:00.0/information");
	fixture_write(fixture, "/proc/driver/nvidia/gpus/garbage/information", "\xff\xfe\n::::\n");
	inventory = fixture_discover(fixture, GRAFT_NEED_GPUS);

	assert_int_equal(inventory->n_gpus, 3);
	assert_string_equal(inventory->gpus[0].bus_id, "00000000:1b:00.0");
	assert_int_equal(inventory->gpus[0].index, 0);
	assert_int_equal(inventory->gpus[0].node.minor, 3);
	assert_null(inventory->gpus[0].uuid.value);
	assert_null(inventory->gpus[0].uuid.source);
	assert_string_equal(inventory->gpus[1].bus_id, "00010000:01:00.0");
	assert_int_equal(inventory->gpus[1].index, 1);
	assert_null(inventory->gpus[1].model.value);
	assert_string_equal(inventory->gpus[1].procfs_path, "/proc/driver/nvidia/gpus/00010000:01:00.0");
	assert_true(inventory->gpus[2].excluded);
	assert_non_null(fixture_find_omission(inventory, "/proc/driver/nvidia/gpus/0000:2c:00.0/information"));
	assert_non_null(fixture_find_omission(inventory, "/proc/driver/nvidia/gpus/0000:3d:00.0/information"));
	assert_non_null(fixture_find_omission(inventory, "garbage"));
	assert_round_trip(inventory);
}

static void add_capability(struct fixture *fixture, const char *path, unsigned int minor)
{
	char full[256], text[64];

	(void)snprintf(full, sizeof(full), "/proc/driver/nvidia/capabilities/%s", path);
	(void)snprintf(text, sizeof(text), "DeviceFileMinor: %u\nDeviceFileMode: 292\nDeviceFileModify: 1\n", minor);
	fixture_write(fixture, full, text);
}

static void test_mig(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;
	const struct graft_mig_device *migs;

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_gpu(fixture, "0000:07:00.0", 0, "GPU-0", "NVIDIA A100-SXM4-40GB");
	fixture_gpu(fixture, "0000:0f:00.0", 1, "GPU-1", "NVIDIA A100-SXM4-40GB");
	add_capability(fixture, "mig/config", 1);
	add_capability(fixture, "mig/monitor", 2);
	/* gi10 sorts behind gi2; gi2 has two compute instances; gi5 has none; gi7 lacks its own access file. */
	add_capability(fixture, "gpu0/mig/gi10/access", 93);
	add_capability(fixture, "gpu0/mig/gi10/ci0/access", 94);
	add_capability(fixture, "gpu0/mig/gi2/access", 21);
	add_capability(fixture, "gpu0/mig/gi2/ci1/access", 23);
	add_capability(fixture, "gpu0/mig/gi2/ci0/access", 22);
	add_capability(fixture, "gpu0/mig/gi5/access", 48);
	add_capability(fixture, "gpu0/mig/gi7/ci0/access", 67);
	fixture_directory(fixture, "/proc/driver/nvidia/capabilities/gpu1/mig");
	fixture_write(fixture, "/proc/driver/nvidia-caps/mig-minors",
		      "config 1\nmonitor 2\ngpu0/gi2/access 21\ngpu0/gi2/ci0/access 22\ngpu0/gi2/ci1/access 23\n"
		      "gpu0/gi10/access 93\nsomething-new 5\ngpu1/gi0/access 138\n");
	if (fixture_has_nodes()) {
		fixture_node(fixture, "/dev/nvidia-caps/nvidia-cap21", 234, 21, 0444);
		fixture_node(fixture, "/dev/nvidia-caps/nvidia-cap22", 234, 99, 0444); /* another device */
	}
	inventory = fixture_discover(fixture, GRAFT_NEED_ALL);

	assert_true(inventory->caps_devices);
	assert_true(inventory->gpus[0].mig_capable);
	assert_true(inventory->gpus[0].mig_enabled);
	assert_string_equal(inventory->gpus[0].mig_caps_path, "/proc/driver/nvidia/capabilities/gpu0");
	assert_int_equal(inventory->gpus[0].n_mig_devices, 3);
	migs = inventory->gpus[0].mig_devices;
	assert_int_equal(migs[0].gi, 2);
	assert_int_equal(migs[0].ci, 0);
	assert_int_equal(migs[1].ci, 1);
	assert_int_equal(migs[2].gi, 10);
	assert_int_equal(migs[2].index, 2);
	assert_string_equal(migs[2].ci_caps_path, "/proc/driver/nvidia/capabilities/gpu0/mig/gi10/ci0");
	assert_string_equal(migs[0].gi_node.path, "/dev/nvidia-caps/nvidia-cap21");
	assert_int_equal(migs[0].gi_node.major, 234);
	/* Not in the table: from the capability's own file. */
	assert_string_equal(migs[2].ci_node.path, "/dev/nvidia-caps/nvidia-cap94");
	assert_null(migs[0].uuid.value);
	/* Its directory says nothing, and this NVML cannot be loaded. */
	assert_false(inventory->gpus[1].mig_capable);
	assert_non_null(fixture_find_omission(inventory, "MIG mode"));
	assert_int_equal(inventory->gpus[0].n_caps_nodes, 4);
	assert_int_equal(inventory->gpus[1].n_caps_nodes, 1);
	assert_string_equal(inventory->mig_config_node.path, "/dev/nvidia-caps/nvidia-cap1");
	assert_int_equal(inventory->mig_monitor_node.minor, 2);
	if (fixture_has_nodes()) {
		assert_true(migs[0].gi_node.present);
		assert_false(migs[0].ci_node.present);
		assert_true(inventory->gpus[0].caps_nodes[0].present);
		assert_false(inventory->gpus[0].caps_nodes[2].present);
	}
	assert_round_trip(inventory);

	inventory = fixture_discover(fixture, GRAFT_NEED_GPUS | GRAFT_NEED_MIG);
	assert_int_equal(inventory->gpus[0].n_mig_devices, 3);
	assert_int_equal(inventory->gpus[0].n_caps_nodes, 0);
}

static void test_imex(void **state)
{
	static const uint32_t channels[] = { 5, 0, 5 };
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	if (!fixture_has_nodes())
		skip();
	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_node(fixture, "/dev/nvidia-caps-imex-channels/channel0", 235, 0, 0666);
	fixture_node(fixture, "/dev/nvidia-caps-imex-channels/channel12", 235, 12, 0666);
	fixture_node(fixture, "/dev/nvidia-caps-imex-channels/channel3", 235, 3, 0666);
	fixture_write(fixture, "/dev/nvidia-caps-imex-channels/channelx", "");
	fixture->options.imex_channels = channels;
	fixture->options.n_imex_channels = 3;
	inventory = fixture_discover(fixture, GRAFT_NEED_NODES);
	assert_int_equal(inventory->n_imex, 2);
	assert_int_equal(inventory->imex[0].channel, 5);
	assert_false(inventory->imex[0].node.present);
	assert_int_equal(inventory->imex[0].node.major, 235);
	assert_int_equal(inventory->imex[0].node.minor, 5);
	assert_true(inventory->imex[1].node.present);

	inventory = fixture_discover(fixture, GRAFT_NEED_IMEX);
	assert_int_equal(inventory->n_imex, 4);
	assert_int_equal(inventory->imex[2].channel, 3);
	assert_int_equal(inventory->imex[3].channel, 12);
	assert_round_trip(inventory);
}

static void test_nodes(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	if (!fixture_has_nodes())
		skip();
	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	inventory = fixture_discover(fixture, GRAFT_NEED_NODES);
	assert_int_equal(inventory->n_nodes, 4);
	assert_string_equal(inventory->nodes[0].path, "/dev/nvidiactl");
	assert_int_equal(inventory->nodes[0].mode, 0666);
	assert_string_equal(inventory->nodes[1].path, "/dev/nvidia-uvm");
	assert_int_equal(inventory->nodes[1].major, 510);
	assert_string_equal(inventory->nodes[2].path, "/dev/nvidia-uvm-tools");
	assert_string_equal(inventory->nodes[3].path, "/dev/nvidia-modeset");

	/* A missing uvm node is dropped, a missing modeset node is listed by its fixed number. */
	fixture_remove(fixture, "/dev/nvidia-uvm");
	fixture_remove(fixture, "/dev/nvidia-modeset");
	fixture->options.no_uvm = false;
	inventory = fixture_discover(fixture, GRAFT_NEED_NODES);
	assert_int_equal(inventory->n_nodes, 3);
	assert_string_equal(inventory->nodes[2].path, "/dev/nvidia-modeset");
	assert_false(inventory->nodes[2].present);
	assert_non_null(fixture_find_omission(inventory, "/dev/nvidia-uvm"));

	fixture->options.no_uvm = fixture->options.no_modeset = true;
	inventory = fixture_discover(fixture, GRAFT_NEED_NODES);
	assert_int_equal(inventory->n_nodes, 1);
}

static void test_capabilities_limit_the_lookup(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_write(fixture, "/usr/bin/nvidia-smi", "#!");
	fixture_write(fixture, "/usr/bin/nvidia-cuda-mps-server", "#!");
	fixture->options.capabilities = GRAFT_CAP_VIDEO;
	inventory = fixture_discover(fixture, GRAFT_NEED_ALL);
	/* Compute libraries come with video; compute programs do not. */
	assert_non_null(fixture_find_library(inventory->libraries, inventory->n_libraries, "libcuda.so.1"));
	assert_non_null(fixture_find_library(inventory->libraries, inventory->n_libraries, "libnvcuvid.so.1"));
	assert_null(fixture_find_library(inventory->libraries, inventory->n_libraries, "libnvidia-ml.so.1"));
	assert_null(fixture_find_library(inventory->libraries, inventory->n_libraries, "libGLX_nvidia.so.0"));
	assert_int_equal(inventory->n_binaries, 0);
	/* The version of the NVML library is known nevertheless. */
	assert_string_equal(inventory->library_version.value, FIXTURE_VERSION);

	fixture->options.capabilities = GRAFT_CAP_COMPUTE;
	fixture->options.no_mps = true;
	inventory = fixture_discover(fixture, GRAFT_NEED_BINARIES);
	assert_int_equal(inventory->n_binaries, 0);
	assert_int_equal(inventory->n_libraries, 0);
}

static void test_selection_among_candidates(void **state)
{
	struct fixture *fixture = *state;
	const struct graft_library *library;
	struct graft_inventory *inventory;
	const struct fixture_elf classic_tls = { .soname = "libnvidia-tls.so." FIXTURE_VERSION,
						 .note = true,
						 .kernel = { 2, 2, 5 } };

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	/* Another version, a dangling record, a FIFO-like non-file, a classic TLS build, a second good copy that comes last. */
	fixture_library(fixture, "/opt/old", "libcuda.so", "535.129.03", "libcuda.so.1", graft_abi_flags_native());
	fixture_record(fixture, "libcuda.so.1", "/opt/gone/libcuda.so.1", graft_abi_flags_native());
	fixture_directory(fixture, "/opt/dir/libnvidia-ngx.so.1");
	fixture_record(fixture, "libnvidia-ngx.so.1", "/opt/dir/libnvidia-ngx.so.1", graft_abi_flags_native());
	fixture_elf(fixture, "/opt/tls/libnvidia-tls.so." FIXTURE_VERSION, &classic_tls);
	fixture_record(fixture, "libnvidia-tls.so." FIXTURE_VERSION, "/opt/tls/libnvidia-tls.so." FIXTURE_VERSION,
		       graft_abi_flags_native());
	fixture_library(fixture, "/opt/second", "libnvidia-encode.so", FIXTURE_VERSION, "libnvidia-encode.so.1",
			graft_abi_flags_native());
	/* "1550.54.14" ends with the version's text and is not it. */
	fixture_elf(fixture, "/opt/trap/libnvoptix.so.1550.54.14",
		    &(struct fixture_elf){ .soname = "libnvoptix.so.1" });
	fixture_record(fixture, "libnvoptix.so.1", "/opt/trap/libnvoptix.so.1550.54.14", graft_abi_flags_native());
	fixture_library(fixture, FIXTURE_LIBDIR32, "libcuda.so", FIXTURE_VERSION, "libcuda.so.1",
			graft_abi_flags_compat32());
	fixture_cache(fixture);
	inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES | GRAFT_NEED_LIBRARIES32);

	library = fixture_find_library(inventory->libraries, inventory->n_libraries, "libcuda.so.1");
	assert_string_equal(library->path, FIXTURE_LIBDIR "/libcuda.so." FIXTURE_VERSION);
	library = fixture_find_library(inventory->libraries, inventory->n_libraries,
				       "libnvidia-tls.so." FIXTURE_VERSION);
	assert_string_equal(library->path, FIXTURE_LIBDIR "/libnvidia-tls.so." FIXTURE_VERSION);
	library = fixture_find_library(inventory->libraries, inventory->n_libraries, "libnvidia-encode.so.1");
	assert_string_equal(library->path, "/opt/second/libnvidia-encode.so." FIXTURE_VERSION);
	assert_null(fixture_find_library(inventory->libraries, inventory->n_libraries, "libnvoptix.so.1"));
	assert_non_null(fixture_find_omission(inventory, "/opt/old/libcuda.so.535.129.03"));
	assert_non_null(fixture_find_omission(inventory, "/opt/gone/libcuda.so.1"));
	assert_non_null(fixture_find_omission(inventory, "/opt/dir/libnvidia-ngx.so.1"));
	assert_non_null(fixture_find_omission(inventory, "/opt/tls/libnvidia-tls.so." FIXTURE_VERSION));
	assert_int_equal(inventory->n_libraries32, 1);
	assert_string_equal(inventory->libraries32[0].path, FIXTURE_LIBDIR32 "/libcuda.so." FIXTURE_VERSION);
	assert_int_equal(inventory->libraries32[0].abi_flags, graft_abi_flags_compat32());
	assert_non_null(strstr(fixture->log, "missing compat32 library libnvidia-ml.so"));
}

static void test_gl_without_vendor_dispatch(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	fixture_kernel(fixture, "340.108");
	fixture_libraries(fixture, FIXTURE_LIBDIR, "340.108");
	fixture_elf(fixture, "/opt/gl/libGL.so.340.108",
		    &(struct fixture_elf){ .soname = "libGL.so.1", .needed = "libnvidia-glcore.so.340.108" });
	fixture_record(fixture, "libGL.so.1", "/opt/gl/libGL.so.340.108", graft_abi_flags_native());
	fixture_elf(fixture, "/opt/mesa/libEGL.so.340.108",
		    &(struct fixture_elf){ .soname = "libEGL.so.1", .needed = "libmesa.so" });
	fixture_record(fixture, "libEGL.so.1", "/opt/mesa/libEGL.so.340.108", graft_abi_flags_native());
	fixture_cache(fixture);
	inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES);
	assert_null(fixture_find_library(inventory->libraries, inventory->n_libraries, "libGL.so.1"));

	fixture->options.no_glvnd = true;
	inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES);
	assert_non_null(fixture_find_library(inventory->libraries, inventory->n_libraries, "libGL.so.1"));
	assert_null(fixture_find_library(inventory->libraries, inventory->n_libraries, "libEGL.so.1"));
	assert_null(fixture_find_library(inventory->libraries, inventory->n_libraries, "libGLX_nvidia.so.0"));
	assert_string_equal(inventory->cuda_version.value, "6.5");
}

/* A library that was installed after the last ldconfig, and one in a directory of its own. */
static void test_siblings_of_known_libraries(void **state)
{
	struct fixture *fixture = *state;
	const struct graft_library *library;
	struct graft_inventory *inventory;

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_elf(fixture, FIXTURE_LIBDIR "/libnvoptix.so." FIXTURE_VERSION,
		    &(struct fixture_elf){ .soname = "libnvoptix.so.1" });
	fixture_elf(fixture, FIXTURE_LIBDIR "/vdpau/libvdpau_nvidia.so." FIXTURE_VERSION,
		    &(struct fixture_elf){ .soname = "libvdpau_nvidia.so.1" });
	fixture_write(fixture, FIXTURE_LIBDIR "/libnvidia-ngx.so." FIXTURE_VERSION, "not a library");
	inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES);
	library = fixture_find_library(inventory->libraries, inventory->n_libraries, "libnvoptix.so.1");
	assert_non_null(library);
	assert_string_equal(library->source, "directory scan");
	library = fixture_find_library(inventory->libraries, inventory->n_libraries, "libvdpau_nvidia.so.1");
	assert_non_null(library);
	assert_string_equal(library->path, FIXTURE_LIBDIR "/vdpau/libvdpau_nvidia.so." FIXTURE_VERSION);
	assert_non_null(fixture_find_omission(inventory, FIXTURE_LIBDIR "/libnvidia-ngx.so." FIXTURE_VERSION));
}

static void test_corrupt_cache_and_rhel(void **state)
{
	struct fixture *fixture = *state;
	const struct graft_library *library;
	struct graft_inventory *inventory;

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, "/usr/lib64", FIXTURE_VERSION);
	fixture_elf(fixture, "/usr/lib/libcuda.so." FIXTURE_VERSION,
		    &(struct fixture_elf){ .soname = "libcuda.so.1", .bits32 = true });
	fixture_write(fixture, "/etc/ld.so.cache",
		      "glibc-ld.so.cache1.1 and then nonsense that is long enough for a header");
	inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES | GRAFT_NEED_LIBRARIES32);
	assert_non_null(fixture_find_omission(inventory, "/etc/ld.so.cache"));
	library = fixture_find_library(inventory->libraries, inventory->n_libraries, "libcuda.so.1");
	assert_non_null(library);
	assert_string_equal(library->path, "/usr/lib64/libcuda.so." FIXTURE_VERSION);
	assert_string_equal(library->source, "directory scan");
	assert_int_equal(inventory->n_libraries, 14);
	assert_int_equal(inventory->n_libraries32, 1);

	/* The driver's own list names them: that is then the source. */
	fixture_remove(fixture, "/etc/ld.so.cache");
	fixture_write(
	    fixture, "/usr/share/nvidia/files.d/sandboxutils-filelist.json",
	    "[ {\"name\": \"firmware/gsp_ga10x.bin\", \"type\": \"FIRMWARE\", \"category\": [\"firmware\"]},\n"
	    "  {\"name\": \"libcuda.so." FIXTURE_VERSION
	    "\", \"type\": \"LIB\", \"category\": [\"cuda\"], \"optional\": true},\n"
	    "  {\"type\": \"LIB\"}, {\"name\": 7}, [], \"x\" ]");
	inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES);
	library = fixture_find_library(inventory->libraries, inventory->n_libraries, "libcuda.so.1");
	assert_string_equal(library->source, "/usr/share/nvidia/files.d/sandboxutils-filelist.json");

	fixture_write(fixture, "/usr/share/nvidia/files.d/sandboxutils-filelist.json", "{\"not\": \"a list\"}");
	inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES);
	assert_int_equal(inventory->n_libraries, 14);
	assert_non_null(fixture_find_omission(inventory, "/usr/share/nvidia/files.d/sandboxutils-filelist.json"));
}

static void test_nixos(void **state)
{
	struct fixture *fixture = *state;
	const struct graft_library *library;
	struct graft_inventory *inventory;

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, "/nix/store/abc-nvidia-x11/lib", FIXTURE_VERSION);
	fixture_remove(fixture, "/etc/ld.so.cache");
	fixture_link(fixture, "/nix/store/abc-nvidia-x11", "/run/opengl-driver");
	fixture_write(fixture, "/nix/store/abc-nvidia-x11/share/vulkan/icd.d/nvidia_icd." MACHINE ".json", "{}");
	fixture_write(fixture, "/nix/store/abc-nvidia-x11/share/glvnd/egl_vendor.d/10_nvidia.json", "{}");
	fixture_write(fixture, "/nix/store/abc-nvidia-x11/etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1\n");
	fixture_write(fixture, "/nix/store/abc-nvidia-x11/bin/nvidia-smi", "#!");
	fixture_link(fixture, "/nix/store/abc-nvidia-x11/bin/nvidia-smi", "/run/current-system/sw/bin/nvidia-smi");
	inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES | GRAFT_NEED_EXTRA_FILES | GRAFT_NEED_BINARIES);
	library = fixture_find_library(inventory->libraries, inventory->n_libraries, "libcuda.so.1");
	assert_non_null(library);
	assert_string_equal(library->path, "/nix/store/abc-nvidia-x11/lib/libcuda.so." FIXTURE_VERSION);
	assert_int_equal(inventory->n_extra_files, 3);
	/* No loader of an image looks below /run/opengl-driver. */
	assert_string_equal(inventory->extra_files[1].target, "/usr/share/glvnd/egl_vendor.d/10_nvidia.json");
	assert_string_equal(inventory->extra_files[2].target, "/etc/OpenCL/vendors/nvidia.icd");
	assert_string_equal(inventory->extra_files[0].path,
			    "/nix/store/abc-nvidia-x11/share/vulkan/icd.d/nvidia_icd." MACHINE ".json");
	assert_string_equal(inventory->extra_files[0].target, "/etc/vulkan/icd.d/nvidia_icd." MACHINE ".json");
	assert_int_equal(inventory->n_binaries, 1);
	assert_string_equal(inventory->binaries[0].path, "/nix/store/abc-nvidia-x11/bin/nvidia-smi");
	assert_string_equal(inventory->binaries[0].name, "nvidia-smi");
}

/* A script that starts the program from elsewhere counts only where no directory has the program. */
static void test_wrapper_of_a_program(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_cache(fixture);
	fixture_write(fixture, "/usr/bin/nvidia-smi", "#!/bin/sh\nexec /usr/local/nvidia/bin/nvidia-smi \"$@\"\n");
	fixture_write(fixture, "/usr/local/bin/nvidia-smi", "#!/bin/sh\nexec other\n");
	fixture_write(fixture, "/usr/local/nvidia/bin/nvidia-smi", "\177ELF");
	fixture_write(fixture, "/usr/bin/nvidia-debugdump", "#!/bin/sh\n");
	fixture_write(fixture, "/usr/local/bin/nvidia-debugdump", "#!/bin/sh\n");
	inventory = fixture_discover(fixture, GRAFT_NEED_BINARIES);
	assert_int_equal(inventory->n_binaries, 2);
	assert_string_equal(inventory->binaries[0].path, "/usr/local/nvidia/bin/nvidia-smi");
	assert_string_equal(inventory->binaries[0].source, "/usr/local/nvidia/bin");
	assert_string_equal(inventory->binaries[1].path, "/usr/bin/nvidia-debugdump");
	assert_string_equal(inventory->binaries[1].source, "/usr/bin");
}

/* A driver container's root: its own libraries, but the kernel's files and the nodes are the host's. */
static void test_driver_root_without_proc_and_dev(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_write_host(fixture, "/proc/driver/nvidia/version",
			   "NVRM version: NVIDIA UNIX Open Kernel Module for " MACHINE "  " FIXTURE_VERSION
			   "  Release Build\n");
	fixture_write_host(fixture, "/proc/driver/nvidia/gpus/0000:01:00.0/information",
			   "Model: \t NVIDIA L4\nGPU UUID: \t GPU-1\nDevice Minor: \t 0\n");
	fixture_write_host(fixture, "/dev/nvidiactl", "");
	inventory = fixture_discover(fixture, GRAFT_NEED_ALL);
	assert_string_equal(inventory->root, fixture->root);
	assert_string_equal(inventory->proc_root, fixture->host);
	assert_string_equal(inventory->dev_root, fixture->host);
	assert_true(inventory->proc_driver_nvidia);
	assert_int_equal(inventory->n_gpus, 1);
	assert_string_equal(inventory->libraries[0].path, FIXTURE_LIBDIR "/libnvidia-ml.so." FIXTURE_VERSION);

	fixture_kernel(fixture, FIXTURE_VERSION);
	inventory = fixture_discover(fixture, GRAFT_NEED_GPUS);
	assert_string_equal(inventory->proc_root, fixture->root);
	assert_int_equal(inventory->n_gpus, 0);
	if (fixture_has_nodes())
		assert_string_equal(inventory->dev_root, fixture->root);
}

/* A driver whose procfs shows no GPUs, and an NVML that cannot be asked: no GPU, and a reason. */
static void test_hidden_gpus(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	inventory = fixture_discover(fixture, GRAFT_NEED_GPUS);
	assert_int_equal(inventory->n_gpus, 0);
	assert_non_null(fixture_find_omission(inventory, "GPUs"));
	/* An empty list says no more than none: NVML is asked. */
	fixture_directory(fixture, "/proc/driver/nvidia/gpus");
	inventory = fixture_discover(fixture, GRAFT_NEED_GPUS);
	assert_int_equal(inventory->n_gpus, 0);
	assert_non_null(fixture_find_omission(inventory, "GPUs"));
	/* It is not asked where the list has a GPU, not even one that cannot be used. */
	fixture_write(fixture, "/proc/driver/nvidia/gpus/0000:1b:00.0/information", "Model: \t NVIDIA H100\n");
	inventory = fixture_discover(fixture, GRAFT_NEED_GPUS);
	assert_int_equal(inventory->n_gpus, 0);
	assert_null(fixture_find_omission(inventory, "GPUs"));
}

static void test_broken_states(void **state)
{
	static const char no_library[] =
	    "load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or "
	    "directory";
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;
	struct graft_error err;

	/* Nothing at all; then a kernel module without libraries (half-installed). */
	assert_fails(fixture, GRAFT_NO_LIBRARY, no_library);
	fixture_kernel(fixture, FIXTURE_VERSION);
	assert_fails(fixture, GRAFT_NO_LIBRARY, no_library);
	/* Libraries, but no module. */
	fixture_remove(fixture, "/proc");
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	assert_fails(fixture, GRAFT_NO_DRIVER, "nvml error: driver not loaded");
	/* Both, of different versions. */
	fixture_write(fixture, "/proc/driver/nvidia/version",
		      "NVRM version: NVIDIA UNIX " MACHINE " Kernel Module  535.129.03  x\n");
	assert_fails(fixture, GRAFT_MISMATCH, "nvml error: driver/library version mismatch");
	assert_int_equal(graft_host_discover(&fixture->options, GRAFT_NEED_GPUS, &inventory, &err), -1);
	assert_string_equal(err.ctx, "the kernel module is 535.129.03, the library 550.54.14");
	/* The same without a cache. */
	fixture_remove(fixture, "/etc/ld.so.cache");
	assert_fails(fixture, GRAFT_MISMATCH, "nvml error: driver/library version mismatch");
	/* The right one beside the wrong one will do. */
	fixture_libraries(fixture, "/usr/lib64", "535.129.03");
	inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES);
	assert_string_equal(inventory->library_version.value, "535.129.03");
}

static void test_versions_from_elsewhere(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_write_host(fixture, "/sys/module/nvidia/version", FIXTURE_VERSION "\n");
	inventory = fixture_discover(fixture, 0);
	assert_string_equal(inventory->driver_version.value, FIXTURE_VERSION);
	assert_string_equal(inventory->driver_version.source, "/sys/module/nvidia/version");

	/* Corrupt: the module is there but does not say which it is. */
	fixture_write(fixture, "/proc/driver/nvidia/version", "\x01\x02 nothing here\n");
	fixture_write_host(fixture, "/sys/module/nvidia/version", "???");
	inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES);
	assert_string_equal(inventory->driver_version.value, FIXTURE_VERSION);
	assert_string_equal(inventory->driver_version.source, FIXTURE_LIBDIR "/libnvidia-ml.so." FIXTURE_VERSION);
	assert_int_equal(inventory->n_libraries, 14);

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_write(fixture, "/proc/driver/nvidia/version",
		      "NVRM version: NVIDIA UNIX " MACHINE " Kernel Module  " FIXTURE_VERSION
		      "  (Graft simulated driver)\n");
	inventory = fixture_discover(fixture, 0);
	assert_true(inventory->simulated);
	assert_non_null(strstr(fixture->log, "simulated"));
}

/* In a child that is not root: the control node's mode forbids its use. Nothing is opened to find that out. */
static void test_permission(void **state)
{
	struct fixture *fixture = *state;
	pid_t pid;
	int status;

	if (!fixture_has_nodes())
		skip();
	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_remove(fixture, "/dev/nvidiactl");
	fixture_node(fixture, "/dev/nvidiactl", 195, 255, 0660);
	pid = fork();
	if (pid == 0) {
		struct graft_inventory *inventory;
		struct graft_error err;

		if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		if (graft_host_discover(&fixture->options, GRAFT_NEED_ALL, &inventory, &err) == 0)
			_exit(3);
		_exit(err.status == GRAFT_PERMISSION && strcmp(err.msg, "nvml error: insufficient permissions") == 0 &&
			      strstr(err.ctx, "mode 0660")
			  ? 0
			  : 4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_firmware_and_extra_files(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_write(fixture, "/lib/firmware/nvidia/" FIXTURE_VERSION "/gsp_tu10x.bin", "t");
	fixture_write(fixture, "/lib/firmware/nvidia/" FIXTURE_VERSION "/gsp_ga10x.bin", "g");
	fixture_write(fixture, "/lib/firmware/nvidia/" FIXTURE_VERSION "/readme", "r");
	fixture_write(fixture, "/usr/share/nvidia/nvoptix.bin", "o");
	fixture_write(fixture, "/usr/share/vulkan/icd.d/nvidia_icd.json", "{}");
	fixture_write(fixture, "/usr/share/glvnd/egl_vendor.d/10_nvidia.json", "{}");
	fixture_write(fixture, "/etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1\n");
	inventory = fixture_discover(fixture, GRAFT_NEED_FIRMWARE | GRAFT_NEED_EXTRA_FILES);
	assert_int_equal(inventory->n_firmwares, 2);
	assert_string_equal(inventory->firmwares[0], "/lib/firmware/nvidia/" FIXTURE_VERSION "/gsp_ga10x.bin");
	assert_int_equal(inventory->n_extra_files, 4);
	assert_string_equal(inventory->extra_files[0].target, "/etc/vulkan/icd.d/nvidia_icd.json");
	assert_string_equal(inventory->extra_files[1].path, "/usr/share/glvnd/egl_vendor.d/10_nvidia.json");
	assert_null(inventory->extra_files[1].target);
	assert_int_equal(inventory->extra_files[3].class_, GRAFT_CLASS_COMPUTE);
	assert_round_trip(inventory);

	fixture->options.no_gsp_firmware = true;
	fixture->options.capabilities = GRAFT_CAP_UTILITY;
	inventory = fixture_discover(fixture, GRAFT_NEED_FIRMWARE | GRAFT_NEED_EXTRA_FILES);
	assert_int_equal(inventory->n_firmwares, 0);
	assert_int_equal(inventory->n_extra_files, 0);
}

static void test_ipcs(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_link(fixture, "/run", "/var/run");
	fixture_write(fixture, "/run/nvidia-persistenced/socket", "");
	fixture_write(fixture, "/run/nvidia-fabricmanager/socket", "");
	fixture_directory(fixture, "/srv/mps");
	fixture->options.mps_pipe_directory = "/srv/mps";
	inventory = fixture_discover(fixture, GRAFT_NEED_IPCS);
	assert_int_equal(inventory->n_ipcs, 3);
	assert_string_equal(inventory->ipcs[0].path, "/run/nvidia-persistenced/socket");
	assert_int_equal(inventory->ipcs[1].class_, GRAFT_CLASS_UTILITY);
	assert_string_equal(inventory->ipcs[2].path, "/srv/mps");
	assert_true(inventory->ipcs[2].directory);
	assert_int_equal(inventory->ipcs[2].class_, GRAFT_CLASS_COMPUTE);

	fixture->options.no_persistenced = fixture->options.no_fabricmanager = true;
	fixture->options.mps_pipe_directory = NULL;
	inventory = fixture_discover(fixture, GRAFT_NEED_IPCS);
	assert_int_equal(inventory->n_ipcs, 0);
	fixture_directory(fixture, "/tmp/nvidia-mps"); /* left behind */
	inventory = fixture_discover(fixture, GRAFT_NEED_IPCS);
	assert_int_equal(inventory->n_ipcs, 0);
	assert_string_equal(inventory->omissions[inventory->n_omissions - 1].why,
			    "the directory is empty: MPS is not running");
	fixture_write(fixture, "/tmp/nvidia-mps/control", "");
	inventory = fixture_discover(fixture, GRAFT_NEED_IPCS);
	assert_int_equal(inventory->n_ipcs, 1);
}

/* In a directory that all users share, only what root or we have made is believed. */
static void test_ipc_of_another_user(void **state)
{
	static const struct {
		const char *pipes, *made, *link; /* `made` is a directory or a link, at `pipes` or above */
		mode_t tmp;
		uid_t owner;
		bool found;
	} rows[] = {
		{ "/tmp/nvidia-mps", "/tmp/nvidia-mps", NULL, 01777, 1000, false },
		{ "/tmp/nvidia-mps", "/tmp/nvidia-mps", NULL, 01777, 0, true },
		{ "/tmp/nvidia-mps", "/tmp/nvidia-mps", NULL, 0755, 1000, true },
		{ "/tmp/nvidia-mps", "/tmp/nvidia-mps", "/secret/pipes", 01777, 1000, false },
		{ "/tmp/nvidia-mps", "/tmp/nvidia-mps", "private", 01777, 1000, false },
		{ "/tmp/nvidia-mps", "/tmp/nvidia-mps", "/secret/pipes", 01777, 0, true },
		{ "/tmp/nvidia-mps", "/tmp/nvidia-mps", "/secret/pipes", 0755, 1000, true },
		/* Without the sticky bit, anyone may exchange anything. */
		{ "/tmp/nvidia-mps", "/tmp/nvidia-mps", NULL, 0777, 0, false },
		/* A link of root's that leads to a stranger's directory. */
		{ "/way", "/way", "/tmp/private", 01777, 0, false },
		{ "/tmp/way//pipes", "/tmp/way", NULL, 01777, 1000, false },
		{ "/tmp/way/pipes", "/tmp/way", "/secret", 01777, 1000, false },
		{ "/tmp/way/pipes", "/tmp/way", "/secret", 01777, 0, true },
	};
	struct fixture *fixture = *state;

	if (geteuid() != 0)
		skip();
	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_write(fixture, "/secret/pipes/control", "");
	fixture_write(fixture, "/tmp/private/control", "");
	fixture_owner(fixture, "/tmp/private", 1000);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_inventory *inventory;

		if (rows[i].link)
			fixture_link(fixture, rows[i].link, rows[i].made);
		else
			fixture_directory(fixture, rows[i].pipes);
		fixture_owner(fixture, rows[i].made, rows[i].owner);
		fixture_mode(fixture, "/tmp", rows[i].tmp);
		fixture->options.mps_pipe_directory = rows[i].pipes;
		inventory = fixture_discover(fixture, GRAFT_NEED_IPCS);
		assert_int_equal(inventory->n_ipcs, rows[i].found);
		if (!rows[i].found)
			assert_string_equal(inventory->omissions[inventory->n_omissions - 1].why,
					    "another user made it in a directory that all users share");
		fixture_remove(fixture, rows[i].made);
	}
}

static void test_tegra(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	if (!fixture_has_nodes())
		skip();
	fixture_write(fixture, "/etc/nv_tegra_release", "# R36 (release), REVISION: 3.0\n");
	fixture_node(fixture, "/dev/nvhost-ctrl-gpu", 505, 2, 0660);
	fixture_node(fixture, "/dev/nvmap", 10, 123, 0660);
	fixture_node(fixture, "/dev/nvgpu/igpu0/ctrl", 506, 1, 0660);
	fixture_node(fixture, "/dev/null", 1, 3, 0666);
	/* libcuda needs a sibling, which needs another and the C library, which is the image's. */
	fixture_elf(fixture, FIXTURE_LIBDIR "/nvidia/libcuda.so.1.1",
		    &(struct fixture_elf){ .soname = "libcuda.so.1", .needed = "libnvrm_gpu.so" });
	fixture_link(fixture, "libcuda.so.1.1", FIXTURE_LIBDIR "/nvidia/libcuda.so");
	fixture_elf(fixture, FIXTURE_LIBDIR "/nvidia/libnvrm_gpu.so",
		    &(struct fixture_elf){ .soname = "libnvrm_gpu.so", .needed = "libnvos.so" });
	fixture_elf(fixture, FIXTURE_LIBDIR "/nvidia/libnvos.so",
		    &(struct fixture_elf){ .soname = "libnvos.so", .needed = "libc.so.6" });
	fixture_elf(fixture, "/lib/" MACHINE_TRIPLET "/libc.so.6", &(struct fixture_elf){ .soname = "libc.so.6" });
	fixture_record(fixture, "libnvrm_gpu.so", FIXTURE_LIBDIR "/nvidia/libnvrm_gpu.so", graft_abi_flags_native());
	fixture_record(fixture, "libnvos.so", FIXTURE_LIBDIR "/nvidia/libnvos.so", graft_abi_flags_native());
	fixture_record(fixture, "libc.so.6", "/lib/" MACHINE_TRIPLET "/libc.so.6", graft_abi_flags_native());
	fixture_record(fixture, "libcuda.so.1", FIXTURE_LIBDIR "/nvidia/libcuda.so.1.1", graft_abi_flags_native());
	fixture_cache(fixture);
	inventory = fixture_discover(fixture, GRAFT_NEED_ALL);
	assert_int_equal(inventory->platform, GRAFT_PLATFORM_TEGRA);
	assert_int_equal(inventory->n_nodes, 3);
	assert_string_equal(inventory->nodes[0].path, "/dev/nvgpu/igpu0/ctrl");
	assert_string_equal(inventory->nodes[2].path, "/dev/nvmap");
	assert_int_equal(inventory->nodes[2].major, 10);
	assert_int_equal(inventory->n_gpus, 0);
	assert_int_equal(inventory->n_libraries, 3);
	assert_string_equal(inventory->libraries[2].path, FIXTURE_LIBDIR "/nvidia/libnvos.so");
	assert_int_equal(inventory->libraries[2].class_, GRAFT_CLASS_COMPUTE);
	assert_true(inventory->libraries[0].development_link);
	assert_false(inventory->libraries[1].development_link);
	assert_false(inventory->libraries[2].development_link);
	/* A release without NVML: there is nothing to ask, which is no error. */
	assert_int_equal(graft_host_complete(&fixture->options, inventory, GRAFT_NVML_UUID, NULL), 0);
	assert_round_trip(inventory);

	/* With a PCI card the board is an ordinary host. */
	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_gpu(fixture, "0005:01:00.0", 0, "GPU-0", "NVIDIA RTX A6000");
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	inventory = fixture_discover(fixture, GRAFT_NEED_GPUS);
	assert_int_equal(inventory->platform, GRAFT_PLATFORM_NATIVE);
}

static void test_wsl_without_nvml_facts(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;
	const char *store = "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_1";
	char path[256];

	if (!fixture_has_nodes())
		skip();
	fixture_node(fixture, "/dev/dxg", 10, 127, 0666);
	(void)snprintf(path, sizeof(path), "%s/libcuda.so.1.1", store);
	fixture_elf(fixture, path, &(struct fixture_elf){ .soname = "libcuda.so.1.1" });
	(void)snprintf(path, sizeof(path), "%s/nvidia-smi", store);
	fixture_write(fixture, path, "#!");
	fixture_write(fixture, "/usr/lib/wsl/drivers/iigd_dch.inf_amd64_2/igc64.dll", "another vendor's");
	fixture_elf(fixture, "/usr/lib/wsl/lib/libdxcore.so", &(struct fixture_elf){ .soname = "libdxcore.so" });
	fixture_record(fixture, "libdxcore.so", "/usr/lib/wsl/lib/libdxcore.so", graft_abi_flags_native());
	fixture_elf(fixture, "/usr/lib/wsl/lib/libcuda.so.1", &(struct fixture_elf){ .soname = "libcuda.so.1" });
	fixture_record(fixture, "libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", graft_abi_flags_native());
	fixture_cache(fixture);
	assert_fails(
	    fixture, GRAFT_NO_LIBRARY,
	    "load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory");
	fixture_elf(fixture, "/usr/lib/wsl/lib/libnvidia-ml.so.1",
		    &(struct fixture_elf){ .soname = "libnvidia-ml.so.1" });
	inventory = fixture_discover(fixture, GRAFT_NEED_ALL & ~(unsigned int)GRAFT_NEED_GPUS);
	assert_int_equal(inventory->platform, GRAFT_PLATFORM_WSL2);
	assert_int_equal(inventory->n_nodes, 1);
	assert_string_equal(inventory->nodes[0].path, "/dev/dxg");
	assert_int_equal(inventory->n_extra_files, 2);
	assert_int_equal(inventory->extra_files[0].class_, GRAFT_CLASS_WSL);
	assert_non_null(fixture_find_library(inventory->libraries, inventory->n_libraries, "libdxcore.so"));
	assert_non_null(fixture_find_library(inventory->libraries, inventory->n_libraries, "libcuda.so.1"));
	assert_string_equal(inventory->nvml_library, "/usr/lib/wsl/lib/libnvidia-ml.so.1");
	assert_int_equal(inventory->n_binaries, 1);
	assert_string_printed(inventory->binaries[0].path, "%s/nvidia-smi", store);
}

static void test_cuda_bound(void **state)
{
	static const struct {
		const char *driver, *cuda;
	} rows[] = {
		{ "550.54.14", "12.4" },
		{ "340.29", "6.5" },
		{ "615.71.09", "13.4" },
		{ "900.1", NULL },
		{ "540.4.0", NULL },
		{ "550", NULL },
		{ "", NULL },
		{ "x550.1", NULL },
		{ "-1.2", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *cuda = graft_cuda_version_bound(rows[i].driver);

		if (rows[i].cuda)
			assert_string_equal(cuda, rows[i].cuda);
		else
			assert_null(cuda);
	}
	assert_null(graft_cuda_version_bound(NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_t4_with_an_old_driver),
		TEST(test_identify),
		TEST(test_identify_some),
		TEST(test_order_unknown_uuid_excluded_and_lost_gpus),
		TEST(test_mig),
		TEST(test_imex),
		TEST(test_nodes),
		TEST(test_capabilities_limit_the_lookup),
		TEST(test_selection_among_candidates),
		TEST(test_gl_without_vendor_dispatch),
		TEST(test_siblings_of_known_libraries),
		TEST(test_corrupt_cache_and_rhel),
		TEST(test_nixos),
		TEST(test_wrapper_of_a_program),
		TEST(test_driver_root_without_proc_and_dev),
		TEST(test_hidden_gpus),
		TEST(test_broken_states),
		TEST(test_versions_from_elsewhere),
		TEST(test_permission),
		TEST(test_firmware_and_extra_files),
		TEST(test_ipcs),
		TEST(test_ipc_of_another_user),
		TEST(test_tegra),
		TEST(test_wsl_without_nvml_facts),
		cmocka_unit_test(test_cuda_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
