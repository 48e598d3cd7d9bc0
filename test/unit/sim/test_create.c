/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../folder.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "create.h"
#include "formats/loader/elf.h"
#include "formats/loader/ldcache.h"
#include "formats/procfs.h"
#include "topology.h"

extern const struct sim_embedded sim_embedded_topologies[];
extern const unsigned int sim_n_embedded_topologies;

static char directory[64];
static struct graft_arena *arena;

static int setup(void **state)
{
	(void)snprintf(directory, sizeof(directory), "/tmp/graft-test-create-XXXXXX");
	arena = graft_arena_new((size_t)64 << 20);
	return mkdtemp(directory) && arena ? 0 : -1;
}

static int teardown(void **state)
{
	arena = graft_arena_free(arena);
	return test_remove_folder(directory);
}

static struct sim_topology *shipped(const char *name)
{
	struct sim_topology *topology = NULL;
	struct graft_error err = { .status = GRAFT_OK };

	for (unsigned int i = 0; i < sim_n_embedded_topologies; i++) {
		const struct sim_embedded *file = &sim_embedded_topologies[i];

		if (strncmp(file->name, name, strlen(name)) == 0 && strcmp(file->name + strlen(name), ".yaml") == 0 &&
		    sim_topology_read(file->bytes, (size_t)(file->end - file->bytes), file->name, &topology, &err) < 0)
			fail_msg("%s", err.msg);
	}
	assert_non_null(topology);
	return topology;
}

static void create(const struct sim_topology *topology)
{
	struct graft_error err = { .status = GRAFT_OK };
	bool refused;

	if (sim_create(topology, directory, &refused, &err) < 0)
		fail_msg("%s: %s", err.ctx, err.msg);
}

static bool exists(const char *path)
{
	char full[512];
	struct stat status;

	(void)snprintf(full, sizeof(full), "%s%s", directory, path);
	return lstat(full, &status) == 0;
}

static const char *content(const char *path, size_t *ret_length)
{
	char full[512];
	auto_close int fd = -1;
	const char *bytes = NULL;

	(void)snprintf(full, sizeof(full), "%s%s", directory, path);
	fd = open(full, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(graft_read_fd(fd, (size_t)16 << 20, arena, &bytes, ret_length), 0);
	return bytes;
}

/* --- each shipped topology --- */

static void check_cache(void)
{
	struct graft_ldcache cache;
	struct graft_error err = { .status = GRAFT_OK };
	size_t length;
	const char *bytes = content("/etc/ld.so.cache", &length);

	if (graft_ldcache_read(bytes, length, "cache", arena, &cache, &err) < 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < cache.n_records; i++) {
		if (!exists(cache.records[i].path))
			fail_msg("in the cache but not there: %s", cache.records[i].path);
	}
}

/* The parsers of the product read what the simulator writes. */
static void check_kernel_side(const struct sim_topology *topology)
{
	struct graft_mig_minor *minors;
	size_t length, n;
	const char *text = content("/proc/driver/nvidia/version", &length);
	uint32_t major;

	assert_string_equal(graft_procfs_driver_version(text, length, arena), topology->module);
	assert_non_null(strstr(text, "(Graft simulated driver)"));
	text = content("/proc/devices", &length);
	assert_true(graft_procfs_devices_major(text, length, "nvidia-uvm", &major));
	assert_int_equal(major, topology->majors.uvm);
	if (topology->driver_major < 450)
		return;
	text = content("/proc/driver/nvidia-caps/mig-minors", &length);
	assert_int_equal(graft_procfs_mig_minors(text, length, arena, &minors, &n), 0);
	assert_int_equal(n, 2 + 32 * 15 * 9);
}

static void check_gpu(const struct sim_gpu *gpu)
{
	struct graft_key_value *items;
	char path[128];
	const char *text;
	size_t length, n;

	(void)snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%04x:%02x:%02x.0/information", gpu->domain,
		       gpu->bus, gpu->device);
	text = content(path, &length);
	assert_int_equal(graft_procfs_key_values(text, length, arena, &items, &n), 0);
	assert_string_equal(graft_key_value_find(items, n, "Model"), gpu->name);
	assert_string_equal(graft_key_value_find(items, n, "GPU UUID"), gpu->uuid);
	assert_int_equal(strtoul(graft_key_value_find(items, n, "Device Minor"), NULL, 10), gpu->minor);
	for (size_t i = 0; i < gpu->n_mig; i++) {
		(void)snprintf(path, sizeof(path), "/proc/driver/nvidia/capabilities/gpu%u/mig/gi%u/ci%u/access",
			       gpu->minor, gpu->mig[i].gi, gpu->mig[i].ci);
		text = content(path, &length);
		assert_int_equal(graft_procfs_key_values(text, length, arena, &items, &n), 0);
		assert_int_equal(strtoul(graft_key_value_find(items, n, "DeviceFileMinor"), NULL, 10),
				 gpu->mig[i].ci_minor);
	}
}

static void test_shipped_topologies(void **state)
{
	for (unsigned int i = 0; i < sim_n_embedded_topologies; i++) {
		struct sim_topology *topology = NULL;
		struct graft_error err;
		const struct sim_embedded *file = &sim_embedded_topologies[i];

		assert_int_equal(
		    sim_topology_read(file->bytes, (size_t)(file->end - file->bytes), file->name, &topology, &err), 0);
		create(topology); /* each over the one before it */
		assert_true(exists("/.graft-sim"));
		assert_int_equal(exists("/proc/driver/nvidia/version"), topology->module != NULL);
		if (topology->module)
			check_kernel_side(topology);
		for (size_t k = 0; topology->module && k < topology->n_gpus; k++)
			check_gpu(&topology->gpus[k]);
		if (topology->driver && topology->layout != SIM_LAYOUT_NIXOS &&
		    topology->layout != SIM_LAYOUT_DRIVER_CONTAINER)
			check_cache();
		(void)sim_topology_free(topology);
	}
}

/* --- what a directory held before --- */

static void test_twice_is_the_same(void **state)
{
	struct sim_topology *topology = shipped("geforce-laptop");
	const char *first, *second;
	size_t n_first, n_second;

	create(topology);
	first = content("/.graft-sim", &n_first);
	create(topology);
	second = content("/.graft-sim", &n_second);
	assert_int_equal(n_first, n_second);
	assert_memory_equal(first, second, n_first);
	(void)sim_topology_free(topology);
}

static void test_another_topology_leaves_nothing(void **state)
{
	struct sim_topology *first = shipped("dgx-h100"), *second = shipped("no-driver");
	char mine[128];
	int fd;

	create(first);
	assert_true(exists("/proc/driver/nvidia/gpus/0000:1b:00.0/information"));
	(void)snprintf(mine, sizeof(mine), "%s/usr/bin/mine", directory);
	fd = open(mine, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	(void)close(fd);
	create(second);
	assert_false(exists("/proc/driver"));
	assert_false(exists("/usr/bin/nvidia-smi"));
	assert_true(exists("/usr/bin/mine")); /* another program's file stays */
	(void)unlink(mine);
	(void)sim_topology_free(first);
	(void)sim_topology_free(second);
}

static void refused(const struct sim_topology *topology, const char *want)
{
	struct graft_error err = { .status = GRAFT_OK };
	int before = test_count_names(directory);
	bool nodes;

	assert_int_equal(sim_create(topology, directory, &nodes, &err), -1);
	assert_string_equal(err.msg, want);
	assert_int_equal(test_count_names(directory), before);
}

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "we");
	assert_non_null(file);
	(void)fputs(text, file);
	(void)fclose(file);
}

static void test_foreign_directories_are_refused(void **state)
{
	struct sim_topology *topology = shipped("single");
	char path[128], want[256];

	put("precious", "x");
	(void)snprintf(want, sizeof(want), "%s is not empty and was not made by graft-sim; give a new directory",
		       directory);
	refused(topology, want);
	(void)snprintf(path, sizeof(path), "%s/precious", directory);
	assert_int_equal(unlink(path), 0);
	put(".graft-sim", "something else\n");
	refused(topology, ".graft-sim: not a list of graft-sim");
	put(".graft-sim", "graft-sim 1 x\n../outside\n");
	refused(topology, ".graft-sim: unsafe entry '../outside'");
	put(".graft-sim", "graft-sim 1 x\n/etc/passwd\n");
	refused(topology, ".graft-sim: unsafe entry '/etc/passwd'");
	put(".graft-sim", "graft-sim 1 x\nusr/../../outside\n");
	refused(topology, ".graft-sim: unsafe entry 'usr/../../outside'");
	(void)sim_topology_free(topology);
}

/* --- graphics and what works together with GPUs --- */

static bool is_link(const char *path, const char *says)
{
	char full[512], text[256];
	ssize_t length;

	(void)snprintf(full, sizeof(full), "%s%s", directory, path);
	length = readlink(full, text, sizeof(text) - 1);
	if (length < 0)
		return false;
	text[length] = '\0';
	return strcmp(text, says) == 0;
}

static bool is_node(const char *path, unsigned int major_number, unsigned int minor_number, mode_t mode, gid_t gid)
{
	char full[512];
	struct stat status;

	(void)snprintf(full, sizeof(full), "%s%s", directory, path);
	return lstat(full, &status) == 0 && S_ISCHR(status.st_mode) && (status.st_mode & 07777) == mode &&
	       major(status.st_rdev) == major_number && minor(status.st_rdev) == minor_number && status.st_gid == gid;
}

/* Where Debian's, Red Hat's and NVIDIA's own packages put them. */
static void test_graphics(void **state)
{
	static const struct {
		const char *topology, *paths[4];
	} rows[] = {
		{ "geforce-laptop",
		  { "/usr/lib/x86_64-linux-gnu/nvidia/xorg/nvidia_drv.so",
		    "/usr/lib/x86_64-linux-gnu/nvidia/xorg/libglxserver_nvidia.so.560.35.03",
		    "/usr/share/X11/xorg.conf.d/10-nvidia.conf",
		    "/usr/lib/x86_64-linux-gnu/libnvidia-egl-wayland.so.1.1.13" } },
		{ "rhel",
		  { "/usr/lib64/xorg/modules/drivers/nvidia_drv.so",
		    "/usr/lib64/xorg/modules/extensions/libglxserver_nvidia.so.545.23.08",
		    "/usr/share/X11/xorg.conf.d/10-nvidia.conf", "/usr/lib64/libnvidia-egl-gbm.so.1.1.1" } },
		{ "driver-container",
		  { "/run/nvidia/driver/usr/lib/xorg/modules/drivers/nvidia_drv.so",
		    "/run/nvidia/driver/usr/share/X11/xorg.conf.d/nvidia-drm-outputclass.conf",
		    "/run/nvidia/driver/usr/share/vulkan/icd.d/nvidia_icd.json",
		    "/run/nvidia/driver/sys/bus/pci/devices/0000:3a:00.0/drm/card0/uevent" } },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct sim_topology *topology = shipped(rows[i].topology);

		topology->machine = SIM_MACHINE_X86_64;
		create(topology);
		for (size_t j = 0; j < GRAFT_COUNT(rows[i].paths); j++) {
			if (!exists(rows[i].paths[j]))
				fail_msg("%s: no %s", rows[i].topology, rows[i].paths[j]);
		}
		(void)sim_topology_free(topology);
	}
}

/* udev's links lead to the nodes, which belong to the groups of graphics. */
static void test_drm_nodes(void **state)
{
	struct sim_topology *topology = shipped("geforce-laptop"), *headless = shipped("single");

	create(topology);
	assert_true(is_link("/dev/dri/by-path/pci-0000:01:00.0-card", "../card0"));
	assert_true(is_link("/dev/dri/by-path/pci-0000:01:00.0-render", "../renderD128"));
	assert_true(exists("/sys/bus/pci/devices/0000:01:00.0/drm/renderD128"));
	if (exists("/dev/nvidiactl")) {
		assert_true(is_node("/dev/dri/card0", 226, 0, 0660, 44));
		assert_true(is_node("/dev/dri/renderD128", 226, 128, 0660, 104));
	}
	create(headless);
	assert_false(exists("/dev/dri"));
	(void)sim_topology_free(topology);
	(void)sim_topology_free(headless);
}

static void test_gates(void **state)
{
	struct sim_topology *topology = shipped("dgx-h100"), *none = shipped("single");
	const char *text;
	size_t length;
	uint32_t number;

	assert_int_equal(topology->gates, SIM_GATE_GDS | SIM_GATE_MOFED | SIM_GATE_GDRCOPY);
	create(topology);
	assert_true(exists("/etc/cufile.json"));
	assert_true(exists("/run/udev"));
	text = content("/proc/devices", &length);
	assert_true(graft_procfs_devices_major(text, length, "nvidia-fs", &number));
	assert_int_equal(number, topology->majors.fs);
	if (exists("/dev/nvidiactl")) {
		assert_true(is_node("/dev/nvidia-fs15", topology->majors.fs, 15, 0666, 0));
		assert_true(is_node("/dev/infiniband/uverbs7", 231, 199, 0666, 0));
		assert_true(is_node("/dev/infiniband/rdma_cm", 10, 58, 0666, 0));
		assert_true(is_node("/dev/gdrdrv", topology->majors.gdrdrv, 0, 0666, 0));
		assert_true(is_node("/dev/nvidia-nvswitchctl", topology->majors.nvswitch, 255, 0666, 0));
	}
	create(none);
	assert_false(exists("/etc/cufile.json"));
	assert_false(exists("/run/udev"));
	assert_false(exists("/dev/infiniband"));
	(void)sim_topology_free(topology);
	(void)sim_topology_free(none);
}

/* Programs and libraries that not every driver has. */
static void test_versions_of_their_own(void **state)
{
	struct sim_topology *topology = shipped("gb200");

	topology->machine = SIM_MACHINE_X86_64;
	create(topology);
	assert_true(exists("/usr/bin/nvidia-imex-ctl"));
	assert_false(exists("/usr/lib/x86_64-linux-gnu/libnvidia-nvvm70.so.4")); /* since 575 */
	topology->driver_major = 590;
	topology->files |= SIM_FILES_GRAPHICS;
	create(topology);
	assert_true(exists("/usr/lib/x86_64-linux-gnu/libnvidia-nvvm70.so.4"));
	assert_true(
	    is_link("/usr/lib/x86_64-linux-gnu/libnvidia-egl-wayland2.so.1", "libnvidia-egl-wayland2.so.1.0.1"));
	assert_true(exists("/usr/share/egl/egl_external_platform.d/09_nvidia_wayland2.json"));
	assert_true(exists("/usr/lib/x86_64-linux-gnu/libnvidia-tileiras.so.570.124.06"));
	assert_true(is_link("/usr/lib/x86_64-linux-gnu/libnvidia-egl-xcb.so.1", "libnvidia-egl-xcb.so.1.0.5"));
	assert_true(exists("/usr/share/egl/egl_external_platform.d/20_nvidia_xlib.json"));
	assert_true(exists("/usr/bin/nvidia-xconfig"));
	assert_false(exists("/usr/lib/firmware/nvidia/570.124.06/ucodes_ga10x.bin")); /* since 610 */
	check_cache();
	topology->driver_major = 610;
	create(topology);
	assert_true(exists("/usr/lib/firmware/nvidia/570.124.06/ucodes_ga10x.bin"));
	(void)sim_topology_free(topology);
}

/* A driver for arm64 is one on every machine; for another than this one nothing of it pretends to run. */
static void test_machines(void **state)
{
	static const struct {
		enum sim_machine machine;
		uint16_t elf;
		uint32_t flags;
		const char *libcuda;
		const char *version;
	} rows[] = {
		{ SIM_MACHINE_AARCH64, EM_AARCH64, GRAFT_ABI_FLAGS_AARCH64,
		  "/usr/lib/aarch64-linux-gnu/libcuda.so.570.124.06", "Open Kernel Module for aarch64 " },
		{ SIM_MACHINE_X86_64, EM_X86_64, GRAFT_ABI_FLAGS_X86_64,
		  "/usr/lib/x86_64-linux-gnu/libcuda.so.570.124.06", "Open Kernel Module for x86_64 " },
	};
	struct sim_topology *topology = shipped("gh200");

	assert_int_equal(topology->machine, SIM_MACHINE_AARCH64);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_ldcache cache;
		struct graft_error err = { .status = GRAFT_OK };
		const char *bytes;
		Elf64_Ehdr header;
		size_t length;

		topology->machine = rows[i].machine;
		create(topology);
		bytes = content(rows[i].libcuda, &length);
		assert_true(length > sizeof(header));
		memcpy(&header, bytes, sizeof(header));
		assert_int_equal(header.e_machine, rows[i].elf);
		assert_non_null(strstr(content("/proc/driver/nvidia/version", &length), rows[i].version));
		bytes = content("/usr/bin/nvidia-smi", &length);
		if (rows[i].machine == sim_machine_native())
			assert_memory_equal(bytes, ELFMAG, SELFMAG);
		else
			assert_non_null(strstr(bytes, "its programs and libraries cannot run here"));
		check_cache();
		bytes = content("/etc/ld.so.cache", &length);
		assert_int_equal(graft_ldcache_read(bytes, length, "cache", arena, &cache, &err), 0);
		assert_true(cache.n_records > 10);
		for (size_t k = 0; k < cache.n_records; k++)
			assert_int_equal(cache.records[k].flags, rows[i].flags);
	}
	(void)sim_topology_free(topology);
}

/* --- faults --- */

static void test_missing_files(void **state)
{
	static const struct {
		const char *fault, *gone, *still;
	} cases[] = {
		{ "missing=libnvidia-ml.so.1", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.14",
		  "/usr/bin/nvidia-smi" },
		{ "missing=nvidia-smi", "/usr/bin/nvidia-smi", "/usr/bin/nvidia-debugdump" },
		{ "missing=/proc/driver/nvidia/gpus", "/proc/driver/nvidia/gpus", "/proc/driver/nvidia/version" },
		{ "missing=params", "/proc/driver/nvidia/params", "/proc/driver/nvidia/version" },
		{ "missing=/run/nvidia-persistenced", "/run/nvidia-persistenced", "/run" },
		{ "missing=gsp_tu10x.bin", "/usr/lib/firmware/nvidia/550.54.14/gsp_tu10x.bin",
		  "/usr/lib/firmware/nvidia/550.54.14/gsp_ga10x.bin" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct sim_topology *topology = shipped("single");
		struct graft_error err;

		topology->machine = SIM_MACHINE_X86_64;
		assert_int_equal(sim_topology_add_fault(topology, cases[i].fault, &err), 0);
		create(topology);
		if (exists(cases[i].gone) || !exists(cases[i].still))
			fail_msg("%s", cases[i].fault);
		check_cache();
		(void)sim_topology_free(topology);
	}
}

/* Before the driver has initialised a GPU, procfs does not know its UUID; nor of one that is lost. */
static void test_unknown_uuids(void **state)
{
	static const char unknown[] = "GPU-\?\?\?\?\?\?\?\?-\?\?\?\?-\?\?\?\?-\?\?\?\?-\?\?\?\?\?\?\?\?\?\?\?\?\n";
	struct sim_topology *topology = shipped("quad");
	struct graft_error err;
	size_t length;

	assert_int_equal(sim_topology_add_fault(topology, "gpu-lost=1", &err), 0);
	create(topology);
	assert_null(strstr(content("/proc/driver/nvidia/gpus/0000:17:00.0/information", &length), unknown));
	assert_non_null(strstr(content("/proc/driver/nvidia/gpus/0000:65:00.0/information", &length), unknown));
	topology->uuids_in_procfs = false;
	create(topology);
	assert_non_null(strstr(content("/proc/driver/nvidia/gpus/0000:17:00.0/information", &length), unknown));
	(void)sim_topology_free(topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_shipped_topologies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_twice_is_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_topology_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_foreign_directories_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_graphics, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drm_nodes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gates, setup, teardown),
		cmocka_unit_test_setup_teardown(test_versions_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(test_machines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown_uuids, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
