/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What few containers ask for (SPEC runtime-and-hook 7.4, 7.5, 7.10): DRM nodes of wanted GPUs, gates, every library of the driver, modules of
 * the X server, firmware in all places of the kernel. Each of it only when asked for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "fixture.h"
#include "formats/loader/elf.h"

static int set_up(void **state)
{
	(void)fixture_set_up(state);
	fixture_kernel(*state, FIXTURE_VERSION);
	fixture_libraries(*state, FIXTURE_LIBDIR, FIXTURE_VERSION);
	return 0;
}

static const struct graft_library *library_of(const struct graft_inventory *inventory, const char *soname)
{
	return fixture_find_library(inventory->libraries, inventory->n_libraries, soname);
}

/* --- DRM --- */

/* Two GPUs: the first with card1 and renderD129, the second with card0 and renderD128. A connector and a stray file are no nodes. */
static void make_drm(struct fixture *fixture)
{
	fixture_gpu(fixture, "0000:1b:00.0", 0, "GPU-0", "NVIDIA A10");
	fixture_gpu(fixture, "10000:2c:00.0", 1, "GPU-1", "NVIDIA A10");
	fixture_directory(fixture, "/sys/bus/pci/devices/0000:1b:00.0/drm/card1/");
	fixture_directory(fixture, "/sys/bus/pci/devices/0000:1b:00.0/drm/renderD129/");
	fixture_directory(fixture, "/sys/bus/pci/devices/0000:1b:00.0/drm/card1-DP-1/");
	fixture_write(fixture, "/sys/bus/pci/devices/0000:1b:00.0/drm/version", "");
	fixture_directory(fixture, "/sys/bus/pci/devices/10000:2c:00.0/drm/card0/");
	fixture_directory(fixture, "/sys/bus/pci/devices/10000:2c:00.0/drm/renderD128/");
	fixture_node(fixture, "/dev/dri/card1", 226, 1, 0660);
	fixture_node(fixture, "/dev/dri/renderD129", 226, 129, 0660);
	fixture_node(fixture, "/dev/dri/card0", 226, 0, 0660);
	fixture_node(fixture, "/dev/dri/renderD128", 1, 3, 0666); /* somebody else's device */
	fixture_directory(fixture, "/dev/dri/by-path");
	fixture_link(fixture, "../card1", "/dev/dri/by-path/pci-0000:1b:00.0-card");
	fixture_link(fixture, "../renderD128", "/dev/dri/by-path/pci-0000:1b:00.0-render");
	fixture_link(fixture, "/dev/dri/card0", "/dev/dri/by-path/pci-10000:2c:00.0-card");
}

static void test_drm_of_wanted_gpus(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;
	const struct graft_drm_node *drm;
	const size_t second[] = { 1 }, first[] = { 0 };
	struct graft_error err;
	int fds;

	if (!fixture_has_nodes())
		skip();
	make_drm(fixture);
	inventory = fixture_discover(fixture, GRAFT_NEED_GPUS);
	assert_int_equal(inventory->gpus[0].n_drm_nodes + inventory->gpus[1].n_drm_nodes, 0);

	fds = test_count_fds();
	assert_int_equal(graft_host_look_at_gpus(&fixture->options, inventory, first, 1, &err), 0);
	assert_int_equal(test_count_fds(), fds);
	assert_int_equal(inventory->gpus[0].n_drm_nodes, 2);
	assert_int_equal(inventory->gpus[1].n_drm_nodes, 0);
	drm = inventory->gpus[0].drm_nodes;
	assert_string_equal(drm[0].node.path, "/dev/dri/card1");
	assert_int_equal(drm[0].node.major, 226);
	assert_int_equal(drm[0].node.minor, 1);
	assert_int_equal(drm[0].node.mode, 0660);
	assert_true(drm[0].node.present);
	assert_string_equal(drm[0].node.source, "/sys/bus/pci/devices/0000:1b:00.0/drm");
	assert_string_equal(drm[0].by_path, "/dev/dri/by-path/pci-0000:1b:00.0-card");
	assert_string_equal(drm[0].by_path_content, "../card1");
	/* its link leads to another GPU's node */
	assert_string_equal(drm[1].node.path, "/dev/dri/renderD129");
	assert_null(drm[1].by_path);
	assert_non_null(fixture_find_omission(inventory, "/dev/dri/by-path/pci-0000:1b:00.0-render"));

	/* the same twice is the same; a domain of more than 16 bits; a node of that name that is none; a link that udev does not write */
	assert_int_equal(graft_host_look_at_gpus(&fixture->options, inventory, first, 1, &err), 0);
	assert_int_equal(inventory->gpus[0].n_drm_nodes, 2);
	assert_int_equal(graft_host_look_at_gpus(&fixture->options, inventory, second, 1, &err), 0);
	assert_int_equal(inventory->gpus[1].n_drm_nodes, 1);
	assert_string_equal(inventory->gpus[1].drm_nodes[0].node.path, "/dev/dri/card0");
	assert_null(inventory->gpus[1].drm_nodes[0].by_path);
	assert_string_equal(fixture_find_omission(inventory, "/dev/dri/renderD128"), "it is not a DRM node");
	assert_int_equal(graft_host_look_at_gpus(&fixture->options, inventory, NULL, 0, &err), 0);

	inventory = fixture_discover(fixture, GRAFT_NEED_GPUS | GRAFT_NEED_DRM);
	assert_int_equal(inventory->gpus[0].n_drm_nodes, 2);
	assert_int_equal(inventory->gpus[1].n_drm_nodes, 1);
}

/* A host for computing has no nvidia-drm; a driver root without /sys of its own has the host's. */
static void test_drm_of_the_host(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	if (!fixture_has_nodes())
		skip();
	fixture_gpu(fixture, "0000:1b:00.0", 0, "GPU-0", "NVIDIA A10");
	inventory = fixture_discover(fixture, GRAFT_NEED_GPUS | GRAFT_NEED_DRM);
	assert_int_equal(inventory->gpus[0].n_drm_nodes, 0);
	assert_null(fixture_find_omission(inventory, "/dev/dri/card0"));

	fixture_write_host(fixture, "/sys/bus/pci/devices/0000:1b:00.0/drm/card0/dev", "226:0\n");
	inventory = fixture_discover(fixture, GRAFT_NEED_GPUS | GRAFT_NEED_DRM);
	assert_string_equal(fixture_find_omission(inventory, "/dev/dri/card0"), "No such file or directory");
	fixture_node(fixture, "/dev/dri/card0", 226, 0, 0660);
	inventory = fixture_discover(fixture, GRAFT_NEED_GPUS | GRAFT_NEED_DRM);
	assert_int_equal(inventory->gpus[0].n_drm_nodes, 1);
}

static void test_look_at_gpus_without_memory(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;
	const size_t both[] = { 0, 1 };
	struct graft_error err;
	int fds;

	if (!fixture_has_nodes())
		skip();
	make_drm(fixture);
	inventory = fixture_discover(fixture, GRAFT_NEED_GPUS);
	fds = test_count_fds();
	for (int n = 1;; n++) {
		int rc;

		err = (struct graft_error){ 0 };
		allocation_fail(n);
		rc = graft_host_look_at_gpus(&fixture->options, inventory, both, 2, &err);
		if (!allocation_failed()) {
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(test_count_fds(), fds);
		if (rc < 0)
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
		else
			assert_int_equal(inventory->gpus[0].n_drm_nodes, 2);
	}
}

/* --- gates --- */

static void test_gates(void **state)
{
	static const struct {
		uint32_t gates;
		const char *nodes;
		size_t n_files;
	} rows[] = {
		{ 0, "", 0 },
		{ 1u << GRAFT_GATE_GDS, " /dev/nvidia-fs0 /dev/nvidia-fs10 /dev/nvidia-fs2", 2 },
		{ 1u << GRAFT_GATE_MOFED, " /dev/infiniband/uverbs0 /dev/infiniband/uverbs1 /dev/infiniband/rdma_cm",
		  0 },
		{ 1u << GRAFT_GATE_GDRCOPY, " /dev/gdrdrv", 0 },
		{ 1u << GRAFT_GATE_NVSWITCH, " /dev/nvidia-nvswitchctl /dev/nvidia-nvswitch0", 0 },
	};
	static const struct {
		const char *path;
		unsigned int major, minor;
	} nodes[] = {
		{ "/dev/nvidia-fs0", 500, 0 },
		{ "/dev/nvidia-fs2", 500, 2 },
		{ "/dev/nvidia-fs10", 500, 10 },
		{ "/dev/gdrdrv", 499, 0 },
		{ "/dev/gdrdrv2", 499, 1 },
		{ "/dev/infiniband/uverbs0", 231, 192 },
		{ "/dev/infiniband/uverbs1", 231, 193 },
		{ "/dev/infiniband/rdma_cm", 10, 58 },
		{ "/dev/infiniband/issm0", 231, 64 },
		{ "/dev/nvidia-nvswitch0", 498, 0 },
		{ "/dev/nvidia-nvswitchctl", 498, 255 },
	};
	struct fixture *fixture = *state;

	if (!fixture_has_nodes())
		skip();
	for (size_t i = 0; i < GRAFT_COUNT(nodes); i++)
		fixture_node(fixture, nodes[i].path, nodes[i].major, nodes[i].minor, 0666);
	fixture_write(fixture, "/dev/nvidia-fs-not-a-node", "");
	fixture_directory(fixture, "/run/udev");
	fixture_write(fixture, "/usr/local/cuda/cufile.json", "{}");
	fixture_link(fixture, "/usr/local/cuda/cufile.json", "/etc/cufile.json");
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_inventory *inventory;
		char text[512] = "";

		fixture->options.gates = rows[i].gates;
		inventory = fixture_discover(fixture, GRAFT_NEED_NODES);
		for (size_t j = 0; j < inventory->n_gate_nodes; j++) {
			const struct graft_gate_node *node = &inventory->gate_nodes[j];

			assert_true((rows[i].gates & 1u << node->gate) != 0);
			assert_true(node->node.present);
			(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s", node->node.path);
		}
		assert_string_equal(text, rows[i].nodes);
		assert_int_equal(inventory->n_gate_files, rows[i].n_files);
		if (rows[i].n_files == 2) {
			assert_string_equal(inventory->gate_files[0].path, "/run/udev");
			assert_true(inventory->gate_files[0].directory);
			assert_null(inventory->gate_files[0].target);
			assert_string_equal(inventory->gate_files[1].path, "/usr/local/cuda/cufile.json");
			assert_string_equal(inventory->gate_files[1].target, "/etc/cufile.json");
		}
	}
}

/* Nothing of it: no node, no file, no failure; and files alone are nothing. */
static void test_gates_that_lead_nowhere(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	fixture_write(fixture, "/etc/cufile.json", "{}");
	fixture->options.gates = (1u << GRAFT_GATE_MAX) - 1u;
	inventory = fixture_discover(fixture, GRAFT_NEED_NODES);
	assert_int_equal(inventory->n_gate_nodes, 0);
	assert_int_equal(inventory->n_gate_files, 0);
	assert_string_equal(fixture_find_omission(inventory, "gds"), "the host has no device node for it");
	assert_non_null(fixture_find_omission(inventory, "nvswitch"));
}

/* --- libraries --- */

static void add_unknown(struct fixture *fixture)
{
	fixture_library(fixture, FIXTURE_LIBDIR, "libnvidia-brandnew.so", FIXTURE_VERSION, "libnvidia-brandnew.so.2",
			graft_abi_flags_native());
	fixture_record(fixture, "libnvidia-brandnew.so", FIXTURE_LIBDIR "/libnvidia-brandnew.so",
		       graft_abi_flags_native());
	fixture_link(fixture, "libnvidia-brandnew.so.2", FIXTURE_LIBDIR "/libnvidia-brandnew.so");
	/* no "nvidia" in its name, but the driver's version */
	fixture_library(fixture, FIXTURE_LIBDIR, "libnvnew.so", FIXTURE_VERSION, "libnvnew.so." FIXTURE_VERSION,
			graft_abi_flags_native());
	/* another version; nobody's */
	fixture_library(fixture, FIXTURE_LIBDIR, "libnvidia-container.so", "1.17.8", "libnvidia-container.so.1",
			graft_abi_flags_native());
	fixture_library(fixture, FIXTURE_LIBDIR, "libzzz.so", "1.2", "libzzz.so.1", graft_abi_flags_native());
	/* of a row that not everybody asks for */
	fixture_library(fixture, FIXTURE_LIBDIR, "libnvidia-vulkan-producer.so", FIXTURE_VERSION,
			"libnvidia-vulkan-producer.so." FIXTURE_VERSION, graft_abi_flags_native());
	fixture_library(fixture, FIXTURE_LIBDIR, "libnvidia-egl-gbm.so", "1.1.1", "libnvidia-egl-gbm.so.1",
			graft_abi_flags_native());
	fixture_elf(fixture, FIXTURE_LIBDIR "/libnvidia-nvvm70.so.4",
		    &(struct fixture_elf){ .soname = "libnvidia-nvvm70.so.4" });
	fixture_record(fixture, "libnvidia-nvvm70.so.4", FIXTURE_LIBDIR "/libnvidia-nvvm70.so.4",
		       graft_abi_flags_native());
	fixture_library(fixture, FIXTURE_LIBDIR, "libOpenCL.so", "1.0.0", "libOpenCL.so.1", graft_abi_flags_native());
	fixture_link(fixture, "libcuda.so.1", FIXTURE_LIBDIR "/libcuda.so");
	fixture_write(fixture, FIXTURE_LIBDIR "/libnvidia-ml.so",
		      "INPUT(-lnvidia-ml)"); /* a linker script is no link */
	fixture_cache(fixture);
}

static void test_libraries(void **state)
{
	static const struct {
		unsigned int needs, capabilities;
		bool unknown, further, explicit_;
	} rows[] = {
		{ 0, GRAFT_CAP_ALL, false, false, false },
		{ GRAFT_NEED_FURTHER, GRAFT_CAP_ALL, false, true, false },
		{ GRAFT_NEED_EVERY_LIBRARY, GRAFT_CAP_ALL, true, false, false },
		{ GRAFT_NEED_EVERY_LIBRARY, GRAFT_CAP_ALL & ~(unsigned int)GRAFT_CAP_COMPAT32, true, false, false },
		{ GRAFT_NEED_EVERY_LIBRARY, GRAFT_CAP_COMPUTE, false, false, false },
		{ GRAFT_NEED_EXPLICIT, GRAFT_CAP_ALL, false, false, true },
		{ GRAFT_NEED_FURTHER | GRAFT_NEED_EXPLICIT, GRAFT_CAP_UTILITY, false, false, false },
	};
	struct fixture *fixture = *state;

	add_unknown(fixture);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_inventory *inventory;
		const struct graft_library *library;

		fixture->options.capabilities = rows[i].capabilities;
		inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES | rows[i].needs);
		library = library_of(inventory, "libnvidia-brandnew.so.2");
		assert_int_equal(library != NULL, rows[i].unknown);
		assert_int_equal(library_of(inventory, "libnvnew.so." FIXTURE_VERSION) != NULL, rows[i].unknown);
		assert_int_equal(library_of(inventory, "libnvidia-egl-gbm.so.1") != NULL, rows[i].further);
		assert_int_equal(library_of(inventory, "libnvidia-nvvm70.so.4") != NULL, rows[i].further);
		assert_int_equal(library_of(inventory, "libOpenCL.so.1") != NULL, rows[i].explicit_);
		assert_null(library_of(inventory, "libnvidia-container.so.1"));
		assert_null(library_of(inventory, "libzzz.so.1"));
		/* the catalog's own are no unknown ones, asked for or not */
		for (size_t j = 0; j < inventory->n_libraries; j++)
			assert_int_equal(inventory->libraries[j].class_ == GRAFT_CLASS_OTHER,
					 strstr(inventory->libraries[j].path, "new.so") != NULL);
		if (library) {
			assert_string_equal(library->path, FIXTURE_LIBDIR "/libnvidia-brandnew.so." FIXTURE_VERSION);
			assert_true(library->development_link);
			assert_true(library_of(inventory, "libcuda.so.1")->development_link);
			assert_false(library_of(inventory, "libnvidia-ml.so.1")->development_link);
			assert_false(library_of(inventory, "libnvnew.so." FIXTURE_VERSION)->development_link);
		}
	}
}

/* Without a cache: directories tell. */
static void test_libraries_without_a_cache(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	add_unknown(fixture);
	fixture_remove(fixture, "/etc/ld.so.cache");
	fixture_elf(fixture, FIXTURE_LIBDIR "/libnvidia-narrow.so." FIXTURE_VERSION,
		    &(struct fixture_elf){ .soname = "libnvidia-narrow.so.1", .bits32 = true });
	fixture_write(fixture, FIXTURE_LIBDIR "/libnvidia-broken.so." FIXTURE_VERSION, "no library");
	inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES | GRAFT_NEED_EVERY_LIBRARY | GRAFT_NEED_FURTHER);
	assert_int_equal(library_of(inventory, "libnvidia-brandnew.so.2")->class_, GRAFT_CLASS_OTHER);
	assert_string_equal(library_of(inventory, "libnvidia-brandnew.so.2")->source, "directory scan");
	assert_non_null(library_of(inventory, "libnvnew.so." FIXTURE_VERSION));
	assert_string_equal(library_of(inventory, "libnvidia-egl-gbm.so.1")->path,
			    FIXTURE_LIBDIR "/libnvidia-egl-gbm.so.1.1.1");
	assert_non_null(library_of(inventory, "libnvidia-nvvm70.so.4"));
	assert_null(library_of(inventory, "libnvidia-narrow.so.1"));
	assert_null(library_of(inventory, "libnvidia-container.so.1"));
}

/* --- X server, programs, firmware --- */

static void test_x_server(void **state)
{
#define MODULES FIXTURE_LIBDIR "/nvidia/xorg"
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	fixture_write(fixture, "/usr/lib/xorg/modules/drivers/nvidia_drv.so", "x");
	fixture_write(fixture, "/etc/alternatives/glx", "x");
	fixture_write(fixture, MODULES "/nvidia_drv.so", "x");
	fixture_link(fixture, "/etc/alternatives/glx", MODULES "/libglxserver_nvidia.so." FIXTURE_VERSION);
	fixture_write(fixture, "/usr/share/X11/xorg.conf.d/10-nvidia.conf", "");
	inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES | GRAFT_NEED_EXTRA_FILES);
	assert_int_equal(inventory->n_extra_files, 0);
	inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES | GRAFT_NEED_EXTRA_FILES | GRAFT_NEED_FURTHER);
	assert_int_equal(inventory->n_extra_files, 3);
	assert_string_equal(inventory->extra_files[0].path, "/usr/share/X11/xorg.conf.d/10-nvidia.conf");
	/* beside the libraries comes first; the name that the X server looks for stays */
	assert_string_equal(inventory->extra_files[1].path, MODULES "/nvidia_drv.so");
	assert_null(inventory->extra_files[1].target);
	assert_string_equal(inventory->extra_files[2].path, "/etc/alternatives/glx");
	assert_string_equal(inventory->extra_files[2].target, MODULES "/libglxserver_nvidia.so." FIXTURE_VERSION);
	fixture->options.capabilities = GRAFT_CAP_COMPUTE;
	inventory = fixture_discover(fixture, GRAFT_NEED_LIBRARIES | GRAFT_NEED_EXTRA_FILES | GRAFT_NEED_FURTHER);
	assert_int_equal(inventory->n_extra_files, 0);
}

static void test_programs_of_imex(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	fixture_write(fixture, "/usr/bin/nvidia-imex", "#!");
	fixture_write(fixture, "/usr/bin/nvidia-imex-ctl", "#!");
	inventory = fixture_discover(fixture, GRAFT_NEED_BINARIES);
	assert_int_equal(inventory->n_binaries, 0);
	inventory = fixture_discover(fixture, GRAFT_NEED_BINARIES | GRAFT_NEED_FURTHER);
	assert_int_equal(inventory->n_binaries, 2);
	assert_string_equal(inventory->binaries[1].name, "nvidia-imex-ctl");
}

static void test_firmware_places(void **state)
{
#define GSP "/nvidia/" FIXTURE_VERSION "/gsp_ga10x.bin"
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;
	struct utsname names;
	char paths[4][256];

	assert_int_equal(uname(&names), 0);
	(void)snprintf(paths[0], sizeof(paths[0]), "/opt/firmware" GSP);
	(void)snprintf(paths[1], sizeof(paths[1]), "/lib/firmware/updates/%s" GSP, names.release);
	(void)snprintf(paths[2], sizeof(paths[2]), "/lib/firmware/updates" GSP);
	(void)snprintf(paths[3], sizeof(paths[3]), "/lib/firmware" GSP);
	for (size_t i = 0; i < GRAFT_COUNT(paths); i++)
		fixture_write(fixture, paths[i], "g");
	fixture_write_host(fixture, "/sys/module/firmware_class/parameters/path", "/opt/firmware/\n");
	inventory = fixture_discover(fixture, GRAFT_NEED_FIRMWARE | GRAFT_NEED_FURTHER);
	assert_int_equal(inventory->n_firmwares, 4);
	for (size_t i = 0; i < GRAFT_COUNT(paths); i++)
		assert_string_equal(inventory->firmwares[i], paths[i]);
	/* the usual place by the administrator's word is there once; an empty or relative word is none */
	fixture_write_host(fixture, "/sys/module/firmware_class/parameters/path", "/lib/firmware\n");
	inventory = fixture_discover(fixture, GRAFT_NEED_FIRMWARE | GRAFT_NEED_FURTHER);
	assert_int_equal(inventory->n_firmwares, 3);
	assert_string_equal(inventory->firmwares[0], paths[3]);
	fixture_write_host(fixture, "/sys/module/firmware_class/parameters/path", "\n");
	inventory = fixture_discover(fixture, GRAFT_NEED_FIRMWARE | GRAFT_NEED_FURTHER);
	assert_int_equal(inventory->n_firmwares, 3);
	inventory = fixture_discover(fixture, GRAFT_NEED_FIRMWARE);
	assert_int_equal(inventory->n_firmwares, 1);
}

/* --- WSL2 --- */

static void test_rest_of_the_driver_store(void **state)
{
#define STORE "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_1"
	static const char *const files[] = { STORE "/libcuda.so.1.1",
					     STORE "/libnvidia-ml.so.1",
					     STORE "/libnvidia-brandnew.so",
					     STORE "/data.bin",
					     STORE "/nvcudart.dll",
					     STORE "/readme.txt",
					     "/usr/lib/wsl/drivers/other_1/igc64.dll" };
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	if (!fixture_has_nodes())
		skip();
	fixture_node(fixture, "/dev/dxg", 10, 125, 0666);
	for (size_t i = 0; i < GRAFT_COUNT(files); i++)
		fixture_write(fixture, files[i], "w");
	inventory = fixture_discover(fixture, GRAFT_NEED_NODES);
	assert_int_equal(inventory->platform, GRAFT_PLATFORM_WSL2);
	assert_int_equal(inventory->n_extra_files, 2);
	inventory = fixture_discover(fixture, GRAFT_NEED_NODES | GRAFT_NEED_FURTHER);
	assert_int_equal(inventory->n_extra_files, 5);
	assert_string_equal(inventory->extra_files[2].path, STORE "/data.bin");
	assert_string_equal(inventory->extra_files[3].path, STORE "/libnvidia-brandnew.so");
	assert_string_equal(inventory->extra_files[4].path, STORE "/nvcudart.dll");
}

/* --- what the caller decides --- */

/* Libraries and data files in named directories and nowhere else, whatever the cache says. */
static void test_given_directories(void **state)
{
	static const char *const libraries[] = { "/nowhere", "/opt/driver/lib" }, *const data[] = { "/opt/data" };
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;

	fixture_write(fixture, "/usr/share/vulkan/icd.d/nvidia_icd.json", "{}");
	fixture_write(fixture, "/usr/share/glvnd/egl_vendor.d/10_nvidia.json", "{}");
	fixture_write(fixture, "/opt/data/glvnd/egl_vendor.d/10_nvidia.json", "{}");
	/* They are written behind the cache's back. */
	fixture_libraries(fixture, "/opt/driver/lib", FIXTURE_VERSION);
	fixture_elf(fixture, "/opt/driver/lib/libnvidia-brandnew.so." FIXTURE_VERSION,
		    &(struct fixture_elf){ .soname = "libnvidia-brandnew.so.2" });
	fixture->options.library_directories = libraries;
	fixture->options.n_library_directories = GRAFT_COUNT(libraries);
	fixture->options.data_directories = data;
	fixture->options.n_data_directories = GRAFT_COUNT(data);
	inventory = fixture_discover(fixture, GRAFT_NEED_ALL);
	assert_true(inventory->n_libraries > 3);
	assert_non_null(library_of(inventory, "libnvidia-brandnew.so.2"));
	assert_string_equal(inventory->nvml_library, "/opt/driver/lib/libnvidia-ml.so." FIXTURE_VERSION);
	for (size_t i = 0; i < inventory->n_libraries; i++)
		assert_int_equal(strncmp(inventory->libraries[i].path, "/opt/driver/lib/", 16), 0);
	assert_int_equal(inventory->n_extra_files, 1);
	assert_string_equal(inventory->extra_files[0].path, "/opt/data/glvnd/egl_vendor.d/10_nvidia.json");
	assert_null(inventory->extra_files[0].target);
}

/* Device nodes from a named root and no other, even if it has none. */
static void test_dev_root(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;
	struct graft_error err = { 0 };
	char dev_root[128];

	if (!fixture_has_nodes())
		skip();
	(void)snprintf(dev_root, sizeof(dev_root), "%s/other/", fixture->root);
	fixture_directory(fixture, "/other");
	fixture->options.dev_root = dev_root;
	inventory = fixture_discover(fixture, GRAFT_NEED_NODES);
	for (size_t i = 0; i < inventory->n_nodes; i++)
		assert_false(inventory->nodes[i].present);
	fixture_node(fixture, "/other/dev/nvidiactl", 195, 255, 0640);
	inventory = fixture_discover(fixture, GRAFT_NEED_NODES);
	dev_root[strlen(dev_root) - 1] = '\0';
	assert_string_equal(inventory->dev_root, dev_root);
	assert_string_equal(inventory->root, fixture->root);
	assert_string_equal(inventory->nodes[0].path, "/dev/nvidiactl");
	assert_true(inventory->nodes[0].present);
	assert_int_equal(inventory->nodes[0].mode, 0640);
	fixture->options.dev_root = "/does/not/exist";
	assert_int_equal(graft_host_discover(&fixture->options, GRAFT_NEED_NODES, &inventory, &err), -1);
}

static void test_management(void **state)
{
	static const char *const nodes[] = { "/dev/nvidia0",           "/dev/nvidia12",
					     "/dev/nvidia-vgpuctl",    "/dev/nvidia-fs0",
					     "/dev/nvidia-nvswitch0",  "/dev/nvidia-nvlink",
					     "/dev/dri/card0",         "/dev/nvidia-caps/nvidia-cap1",
					     "/dev/nvidia-caps/other", "/dev/nvidia-caps-imex-channels/channel0" };
	struct fixture *fixture = *state;
	struct graft_inventory *inventory;
	char text[512] = "";

	if (!fixture_has_nodes())
		skip();
	for (size_t i = 0; i < GRAFT_COUNT(nodes); i++)
		fixture_node(fixture, nodes[i], 195, (unsigned int)i, 0666);
	fixture_write(fixture, "/dev/nvidia-no-node", "");
	inventory = fixture_discover(fixture, 0);
	assert_int_equal(inventory->n_management_nodes, 0);
	inventory = fixture_discover(fixture, GRAFT_NEED_MANAGEMENT);
	for (size_t i = 0; i < inventory->n_management_nodes; i++) {
		assert_true(inventory->management_nodes[i].present);
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s",
			       inventory->management_nodes[i].path);
	}
	assert_string_equal(
	    text, " /dev/nvidia-modeset /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia-vgpuctl /dev/nvidia0 "
		  "/dev/nvidia12 /dev/nvidiactl /dev/nvidia-caps/nvidia-cap1 /dev/nvidia-caps-imex-channels/channel0");
}

/* Every allocation of it may fail. */
static void test_without_memory(void **state)
{
	struct fixture *fixture = *state;
	struct graft_inventory *whole;
	size_t n_management_nodes;

	if (!fixture_has_nodes())
		skip();
	make_drm(fixture);
	add_unknown(fixture);
	fixture_node(fixture, "/dev/nvidia-fs0", 500, 0, 0666);
	fixture_directory(fixture, "/run/udev");
	fixture->options.gates = (1u << GRAFT_GATE_MAX) - 1u;
	whole = fixture_discover(fixture, GRAFT_NEED_MANAGEMENT);
	n_management_nodes = whole->n_management_nodes;
	for (int n = 1;; n++) {
		struct graft_inventory *inventory = NULL;
		struct graft_error err = { 0 };
		int rc;

		allocation_fail(n);
		rc = graft_host_discover(
		    &fixture->options, GRAFT_NEED_ALL | GRAFT_NEED_EXPLICIT | GRAFT_NEED_MANAGEMENT, &inventory, &err);
		if (!allocation_failed()) {
			assert_int_equal(rc, 0);
			(void)graft_inventory_free(inventory);
			break;
		}
		if (rc < 0) {
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
			continue;
		}
		assert_int_equal(inventory->gpus[0].n_drm_nodes, 2);
		assert_int_equal(inventory->n_gate_nodes, 1);
		assert_int_equal(inventory->n_management_nodes, n_management_nodes);
		assert_non_null(library_of(inventory, "libnvidia-brandnew.so.2"));
		(void)graft_inventory_free(inventory);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_drm_of_wanted_gpus),
		TEST(test_drm_of_the_host),
		TEST(test_look_at_gpus_without_memory),
		TEST(test_gates),
		TEST(test_gates_that_lead_nowhere),
		TEST(test_libraries),
		TEST(test_libraries_without_a_cache),
		TEST(test_x_server),
		TEST(test_programs_of_imex),
		TEST(test_firmware_places),
		TEST(test_rest_of_the_driver_store),
		TEST(test_given_directories),
		TEST(test_dev_root),
		TEST(test_management),
		TEST(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
