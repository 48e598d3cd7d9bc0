/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts about a host's health, except for its engines (test_look_engines.c): each fact from the
 * file that contains it, including odd and missing files.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "../allocation.h"
#include "../host/fixture.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "doctor/distributions.h"
#include "doctor/facts.h"

static struct fixture *fixture;
static struct graft_health_options options;
static struct graft_health *health;
static char cdi[128], release[65 + 32];
static const char *directories[] = { cdi };

static int setup(void **state)
{
	struct utsname names;

	if (fixture_set_up(state) < 0 || uname(&names) < 0)
		return -1;
	fixture = *state;
	fixture->options.host_root = fixture->root;
	(void)snprintf(cdi, sizeof(cdi), "%s/etc/cdi", fixture->root);
	(void)snprintf(release, sizeof(release), "/lib/modules/%s/modules.dep", names.release);
	options = (struct graft_health_options){ .host = fixture->options,
						 .cdi_directories = directories,
						 .n_cdi_directories = 1 };
	return 0;
}

static int teardown(void **state)
{
	health = graft_health_free(health);
	return fixture_tear_down(state);
}

static void look(void)
{
	struct graft_error err = { .status = GRAFT_OK };

	health = graft_health_free(health);
	if (graft_health_collect(&options, &health, &err) < 0)
		fail_msg("%s: %s", err.ctx, err.msg);
}

static const struct graft_health_node *find_node(const char *path)
{
	static const struct graft_health_node none = { .path = NULL };

	for (size_t i = 0; i < health->n_nodes; i++) {
		if (strcmp(health->nodes[i].path, path) == 0)
			return &health->nodes[i];
	}
	fail_msg("no row for %s", path);
	return &none;
}

static const struct graft_health_library *find_library(const char *soname)
{
	static const struct graft_health_library none = { .soname = NULL };

	for (size_t i = 0; i < health->loader.n_libraries; i++) {
		if (strcmp(health->loader.libraries[i].soname, soname) == 0)
			return &health->loader.libraries[i];
	}
	fail_msg("no row for %s", soname);
	return &none;
}

static void test_nothing(void **state)
{
	look();
	assert_int_equal(health->version, GRAFT_HEALTH_VERSION);
	assert_int_equal(health->n_nodes, 0);
	assert_int_equal(health->n_engines, 0);
	assert_int_equal(health->kernel.n_pci, 0);
	assert_false(health->kernel.pci_listed);
	assert_false(health->kernel.modules_listed);
	assert_false(graft_health_find_module(health, "nvidia")->loaded);
	assert_null(graft_health_find_module(health, "nouveau"));
	assert_int_equal(health->loader.state, GRAFT_CACHE_MISSING);
	assert_null(find_library("libcuda.so.1")->file);
	assert_int_equal(health->cgroup.version, GRAFT_CGROUP_NONE);
	assert_false(health->nvml.asked);
	assert_true(health->processes_hidden);
}

/* --- the kernel --- */

static void test_modules(void **state)
{
	static const struct {
		const char *file; /* in modules.dep */
		const char *module;
		bool found;
	} files[] = {
		{ "updates/dkms/nvidia.ko", "nvidia", true },
		{ "updates/dkms/nvidia.ko.xz", "nvidia", true },
		{ "updates/dkms/nvidia-current.ko", "nvidia", true },
		{ "nvidia/nvidia-tesla-470.ko.zst", "nvidia", true },
		{ "nvidia/nvidia-legacy-390xx-uvm.ko", "nvidia_uvm", true },
		{ "updates/nvidia-uvm.ko", "nvidia", false },
		{ "updates/nvidia-uvm.ko", "nvidia_uvm", true },
		{ "updates/nvidia-current-drm.ko.gz", "nvidia_drm", true },
		{ "kernel/drivers/video/fbdev/nvidia/nvidiafb.ko", "nvidia", false },
		{ "kernel/nvidia-wmi-ec-backlight.ko", "nvidia", false },
		{ "kernel/i2c-nvidia-gpu.ko", "nvidia", false },
		{ "nvidia.ko", "nvidia", true },
		{ "x/nvidia", "nvidia", false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(files); i++) {
		char text[256];

		(void)snprintf(text, sizeof(text),
			       "kernel/a.ko: kernel/nvidia/nvidia.ko\n%s: kernel/b.ko\nkernel/c.ko:\n", files[i].file);
		fixture_write(fixture, release, text);
		look();
		assert_true(health->kernel.modules_listed);
		if ((graft_health_find_module(health, files[i].module)->file != NULL) != files[i].found)
			fail_msg("%s: %s", files[i].file, files[i].module);
	}
	fixture_write(fixture, "/proc/modules",
		      "nvidia_uvm 1 0 - Live 0x0\nnvidia 2 1 nvidia_uvm, Live 0x0\nnouveau 1 0 -\n");
	fixture_write(fixture, "/sys/module/nvidia/version", "550.54.14\n");
	fixture_write(fixture, "/sys/module/nvidia_drm/initstate", "live\n");
	look();
	assert_true(graft_health_find_module(health, "nvidia")->loaded);
	assert_string_equal(graft_health_find_module(health, "nvidia")->version, "550.54.14");
	assert_true(graft_health_find_module(health, "nvidia_uvm")->loaded);
	assert_null(graft_health_find_module(health, "nvidia_uvm")->version);
	assert_true(graft_health_find_module(health, "nvidia_drm")->loaded);
	assert_false(graft_health_find_module(health, "nvidia_modeset")->loaded);
	assert_non_null(graft_health_find_module(health, "nouveau"));
}

static void test_bus(void **state)
{
	fixture_write(fixture, "/sys/bus/pci/devices/0000:1b:00.0/vendor", "0x10de\n");
	fixture_write(fixture, "/sys/bus/pci/devices/0000:1b:00.0/class", "0x030200\n");
	fixture_link(fixture, "../../../bus/pci/drivers/vfio-pci", "/sys/bus/pci/devices/0000:1b:00.0/driver");
	fixture_write(fixture, "/sys/bus/pci/devices/0000:1b:00.1/vendor", "0x10de\n");
	fixture_write(fixture, "/sys/bus/pci/devices/0000:1b:00.1/class", "0x040300\n"); /* its audio function */
	fixture_write(fixture, "/sys/bus/pci/devices/0000:05:00.0/vendor", "0x10de\n");
	fixture_write(fixture, "/sys/bus/pci/devices/0000:05:00.0/class", "0x068000\n");
	fixture_write(fixture, "/sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n");
	fixture_write(fixture, "/sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
	fixture_directory(fixture, "/sys/bus/pci/devices/0000:ff:00.0");
	look();
	assert_true(health->kernel.pci_listed);
	assert_int_equal(health->kernel.n_pci, 2);
	assert_string_equal(health->kernel.pci[0].bus_id, "0000:05:00.0");
	assert_true(health->kernel.pci[0].bridge);
	assert_null(health->kernel.pci[0].driver);
	assert_string_equal(health->kernel.pci[1].bus_id, "0000:1b:00.0");
	assert_string_equal(health->kernel.pci[1].driver, "vfio-pci");
}

static void test_kernel(void **state)
{
	static const char on[] = { 6, 0, 0, 0, 1 }, off[] = { 6, 0, 0, 0, 0 };
	static const char name[] = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_directory(fixture, "/run/systemd/system");
	fixture_write_bytes(fixture, name, on, sizeof(on));
	look();
	assert_true(health->kernel.secure_boot);
	assert_true(health->kernel.systemd);
	assert_true(health->kernel.has_file_mode);
	assert_int_equal(health->kernel.file_mode, 0666);
	assert_true(health->kernel.modifies_nodes);
	assert_string_equal(health->inventory.driver_version.value, FIXTURE_VERSION);
	fixture_write_bytes(fixture, name, off, sizeof(off));
	fixture_write(fixture, "/proc/driver/nvidia/params", "DeviceFileMode: 432\nModifyDeviceFiles: 0\n");
	look();
	assert_false(health->kernel.secure_boot);
	assert_int_equal(health->kernel.file_mode, 0660);
	assert_false(health->kernel.modifies_nodes);
}

/* --- nodes --- */

static void test_nodes(void **state)
{
	const struct graft_health_node *node;

	if (!fixture_has_nodes())
		skip();
	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_gpu(fixture, "0000:1b:00.0", 0, "GPU-0", "NVIDIA A100");
	fixture_gpu(fixture, "0000:2c:00.0", 1, "GPU-1", "NVIDIA A100");
	fixture_remove(fixture, "/dev/nvidia1");
	fixture_remove(fixture, "/dev/nvidia-uvm-tools");
	fixture_directory(fixture, "/dev/nvidia-uvm-tools");
	fixture_remove(fixture, "/dev/nvidia-uvm");
	fixture_node(fixture, "/dev/nvidia-uvm", 505, 0, 0660);
	fixture_link(fixture, "../nvidiactl", "/dev/char/195:255");
	fixture_link(fixture, "../nvidiactl", "/dev/char/195:0");
	look();
	node = find_node("/dev/nvidiactl");
	assert_true(node->required && node->present && node->device && node->link_leads_here);
	assert_int_equal(node->major, 195);
	assert_int_equal(node->minor, 255);
	assert_int_equal(node->mode, 0666);
	assert_string_equal(node->char_link, "../nvidiactl");
	node = find_node("/dev/nvidia0");
	assert_string_equal(node->char_link, "../nvidiactl");
	assert_false(node->link_leads_here);
	node = find_node("/dev/nvidia1");
	assert_true(node->required && node->has_numbers && !node->present);
	assert_int_equal(node->want_minor, 1);
	node = find_node("/dev/nvidia-uvm");
	assert_int_equal(node->major, 505);
	assert_int_equal(node->want_major, 510);
	assert_int_equal(node->mode, 0660);
	assert_null(node->char_link);
	node = find_node("/dev/nvidia-uvm-tools");
	assert_true(node->present && !node->device && !node->required);
	assert_non_null(find_node("/dev/nvidia-modeset"));
}

static void test_capability_nodes(void **state)
{
	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_gpu(fixture, "0000:1b:00.0", 0, "GPU-0", "NVIDIA A100");
	fixture_write(fixture, "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\n");
	fixture_write(fixture, "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access", "DeviceFileMinor: 13\n");
	look();
	assert_int_equal(health->inventory.gpus[0].n_mig_devices, 1);
	assert_int_equal(find_node("/dev/nvidia-caps/nvidia-cap12")->want_major, 234);
	assert_true(find_node("/dev/nvidia-caps/nvidia-cap13")->required);
}

/* --- libraries --- */

static void test_libraries(void **state)
{
	const struct graft_health_library *library;

	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	look();
	assert_int_equal(health->loader.state, GRAFT_CACHE_GOOD);
	assert_string_equal(health->loader.cache, "/etc/ld.so.cache");
	assert_true(health->loader.changed > 0);
	library = find_library("libcuda.so.1");
	assert_string_equal(library->cached, FIXTURE_LIBDIR "/libcuda.so.1");
	assert_string_equal(library->file, FIXTURE_LIBDIR "/libcuda.so." FIXTURE_VERSION);
	assert_string_equal(library->version, FIXTURE_VERSION);
	/* An entry whose file is gone. */
	fixture_remove(fixture, FIXTURE_LIBDIR "/libcuda.so." FIXTURE_VERSION);
	look();
	library = find_library("libcuda.so.1");
	assert_non_null(library->cached);
	assert_null(library->file);
	/* Without a cache it is found in the directories where drivers are installed. */
	fixture_remove(fixture, "/etc/ld.so.cache");
	look();
	assert_int_equal(health->loader.state, GRAFT_CACHE_MISSING);
	library = find_library("libnvidia-ml.so.1");
	assert_null(library->cached);
	assert_string_equal(library->file, FIXTURE_LIBDIR "/libnvidia-ml.so." FIXTURE_VERSION);
	fixture_write(fixture, "/etc/ld.so.cache", "this is no cache");
	look();
	assert_int_equal(health->loader.state, GRAFT_CACHE_DAMAGED);
	assert_non_null(health->loader.problem);
	fixture_remove(fixture, "/etc/ld.so.cache");
	fixture_directory(fixture, "/etc/ld.so.cache");
	look();
	assert_int_equal(health->loader.state, GRAFT_CACHE_UNREADABLE);
}

static void test_versions_that_differ(void **state)
{
	fixture_kernel(fixture, "550.40.07");
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_directory(fixture, "/run/nvidia/driver/usr");
	look();
	assert_string_equal(health->inventory.driver_version.value, "550.40.07");
	assert_string_equal(health->inventory.library_version.value, FIXTURE_VERSION);
	assert_string_equal(health->loader.other_root, "/run/nvidia/driver");
}

/* The answer of the tests' stub library is used; a failing library is a fact. */
static void test_nvml(void **state)
{
	options.ask_nvml = true;
	look();
	assert_false(health->nvml.asked);
	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	look(); /* an empty ELF file */
	assert_true(health->nvml.asked);
	assert_string_not_equal(health->nvml.status, "OK");
	assert_non_null(health->nvml.problem);
}

/* --- rights --- */

static void test_self(void **state)
{
	fixture_write(fixture, "/proc/self/status",
		      "Name:\tx\nUid:\t1000\t1001\t1000\t1000\nCapEff:\t0000000000200000\n");
	fixture_write(fixture, "/proc/self/uid_map", "         0          0 4294967295\n");
	look();
	assert_int_equal(health->self.uid, 1001);
	assert_int_equal(health->self.capabilities, 0x200000);
	assert_false(health->self.user_namespace);
	assert_false(health->self.container);
	fixture_write(fixture, "/proc/self/uid_map",
		      "         0       1000          1\n         1     100000      65536\n");
	fixture_write(fixture, "/run/.containerenv", "");
	look();
	assert_true(health->self.user_namespace);
	assert_true(health->self.container);
}

static void test_cgroup(void **state)
{
	static const char v2[] = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
	static const char v1[] = "31 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
	static const char devices[] = "32 23 0:28 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n";
	static const struct {
		const char *mounts[3], *controllers;
		enum graft_health_cgroup_version version;
		bool mounted, enabled;
	} cases[] = {
		{ { v2 }, "#subsys_name\n", GRAFT_CGROUP_V2, false, false },
		{ { v1 }, "devices\t5\t8\t1\n", GRAFT_CGROUP_V1, false, true },
		{ { v1, devices }, "cpu\t1\t8\t1\ndevices\t5\t8\t0\n", GRAFT_CGROUP_V1, true, false },
		{ { v2, v1, devices }, "devices\t5\t8\t1\n", GRAFT_CGROUP_HYBRID, true, true },
		{ { "" }, "", GRAFT_CGROUP_NONE, false, false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		char text[1024] = "";

		for (size_t k = 0; k < 3 && cases[i].mounts[k]; k++)
			(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", cases[i].mounts[k]);
		fixture_write(fixture, "/proc/self/mountinfo", text);
		fixture_write(fixture, "/proc/cgroups", cases[i].controllers);
		look();
		assert_int_equal(health->cgroup.version, cases[i].version);
		assert_int_equal(health->cgroup.devices_mounted, cases[i].mounted);
		assert_int_equal(health->cgroup.devices_enabled, cases[i].enabled);
	}
}

static void test_library(void **state)
{
	look();
	assert_null(health->cgroup.library);
	fixture_write(fixture, "/usr/lib64/libnvidia-container.so.1.7.0", "");
	fixture_link(fixture, "libnvidia-container.so.1.7.0", "/usr/lib64/libnvidia-container.so.1");
	look();
	assert_string_equal(health->cgroup.library, "/usr/lib64/libnvidia-container.so.1.7.0");
	fixture_link(fixture, "/elsewhere/libnvidia-container.so.1.17.8",
		     "/usr/local/nvidia/toolkit/libnvidia-container.so.1");
	look();
	assert_string_equal(health->cgroup.library, "/usr/local/nvidia/toolkit/libnvidia-container.so.1.17.8");
}

static void test_user_namespaces(void **state)
{
	static const struct {
		const char *subuid;
		bool has;
	} cases[] = {
		{ "user:100000:65536\n", true },
		{ "root:1:2\n1000:100000:65536\n", true },
		{ "user2:100000:65536\nuse:1:2\n10000:1:2\n", false },
		{ "user", false },
		{ "", false },
	};

	fixture_write(fixture, "/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n");
	fixture_write(fixture, "/etc/passwd",
		      "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:,,,:/home/user:/bin/sh\n");
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		fixture_write(fixture, "/etc/subuid", cases[i].subuid);
		look();
		assert_int_equal(health->userns.has_subuids, cases[i].has);
	}
	assert_false(health->userns.has_max);
	fixture_write(fixture, "/proc/sys/user/max_user_namespaces", "0\n");
	fixture_write(fixture, "/proc/sys/kernel/unprivileged_userns_clone", "0\n");
	fixture_write(fixture, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
	fixture_write(fixture, "/proc/sys/kernel/unprivileged_bpf_disabled", "2\n");
	look();
	assert_true(health->userns.has_max);
	assert_int_equal(health->userns.max, 0);
	assert_true(health->userns.clone_forbidden);
	assert_true(health->userns.apparmor_restricts);
	assert_int_equal(health->cgroup.unprivileged_bpf_disabled, 2);
}

static void test_security_modules(void **state)
{
	fixture_write(fixture, "/sys/fs/selinux/enforce", "1");
	fixture_write(fixture, "/sys/fs/selinux/booleans/container_use_devices", "0 1");
	fixture_write(fixture, "/sys/module/apparmor/parameters/enabled", "Y\n");
	look();
	assert_true(health->lsm.selinux && health->lsm.selinux_enforcing && health->lsm.has_container_devices);
	assert_false(health->lsm.container_devices);
	assert_true(health->lsm.apparmor);
	fixture_write(fixture, "/sys/fs/selinux/enforce", "0");
	fixture_write(fixture, "/sys/fs/selinux/booleans/container_use_devices", "1 1");
	look();
	assert_false(health->lsm.selinux_enforcing);
	assert_true(health->lsm.container_devices);
}

/* --- daemons --- */

static void process(const char *pid, const char *name, const char *ids)
{
	char path[64], text[256];

	(void)snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	(void)snprintf(text, sizeof(text), "%s\n", name);
	fixture_write(fixture, path, text);
	(void)snprintf(path, sizeof(path), "/proc/%s/status", pid);
	(void)snprintf(text, sizeof(text), "Name:\t%s\nUid:\t0\t0\t0\t0\nNSpid:\t%s\n", name, ids);
	fixture_write(fixture, path, text);
}

static void test_daemons(void **state)
{
	process("1", "systemd", "1");
	process("20", "nvidia-persiste", "20");
	process("30", "nv-fabricmanage", "30\t7"); /* in a container */
	process("40", "kubelet", "40");
	fixture_write(fixture, "/run/nvidia-fabricmanager/socket", "");
	look();
	assert_false(health->processes_hidden);
	assert_true(graft_health_find_daemon(health, "nvidia-persistenced")->running);
	assert_false(graft_health_find_daemon(health, "nvidia-persistenced")->has_socket);
	assert_false(graft_health_find_daemon(health, "nv-fabricmanager")->running);
	assert_true(graft_health_find_daemon(health, "nv-fabricmanager")->has_socket);
	assert_true(health->kubernetes);
	assert_null(graft_health_find_daemon(health, "x"));
}

/* --- CDI, programs, image --- */

static void test_cdi(void **state)
{
	fixture_write(
	    fixture, "/etc/cdi/a.yaml",
	    "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: \"1\"\n  containerEdits:\n    deviceNodes:\n"
	    "    - path: /dev/null\n- name: \"0\"\n  containerEdits:\n    mounts:\n    - hostPath: /no/such/file\n"
	    "      containerPath: /x\n");
	fixture_write(fixture, "/etc/cdi/b.json", "{");
	look();
	assert_int_equal(health->cdi.n_specs, 1);
	assert_string_equal(health->cdi.specs[0].kind, "nvidia.com/gpu");
	assert_int_equal(health->cdi.specs[0].n_devices, 2);
	assert_non_null(strstr(health->cdi.specs[0].stale, "/no/such/file"));
	assert_int_equal(health->cdi.n_devices, 2);
	assert_string_equal(health->cdi.devices[0], "nvidia.com/gpu=0");
	assert_int_equal(health->cdi.n_problems, 1);
	assert_non_null(strstr(health->cdi.problems[0].path, "/etc/cdi/b.json"));
	/* Not a directory. */
	fixture_remove(fixture, "/etc/cdi/a.yaml");
	fixture_remove(fixture, "/etc/cdi/b.json");
	assert_int_equal(rmdir(cdi), 0);
	fixture_write(fixture, "/etc/cdi", "x");
	look();
	assert_int_equal(health->cdi.n_problems, 1);
}

static void test_config(void **state)
{
	static const char *runtimes[] = { "youki", "crun" };
	const struct graft_health_config config = { .file = "/x", .runtimes = runtimes, .n_runtimes = 2 };
	char path[192];

	fixture_write(fixture, "/usr/bin/crun", "#!");
	fixture_write(fixture, "/usr/sbin/youki", "#!"); /* not executable */
	(void)snprintf(path, sizeof(path), "%s/usr/bin/crun", fixture->root);
	assert_int_equal(chmod(path, 0755), 0);
	options.config = &config;
	look();
	assert_string_equal(health->config.runtime, "/usr/bin/crun");
	for (size_t i = 0; i < health->n_programs; i++)
		assert_int_equal(health->programs[i].path != NULL, strcmp(health->programs[i].name, "crun") == 0);
}

static void test_image(void **state)
{
	char path[192];
	struct graft_error err = { .status = GRAFT_OK };

	(void)snprintf(path, sizeof(path), "%s/image", fixture->root);
	options.image = path;
	assert_int_equal(graft_health_collect(&options, &health, &err), -1);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
	assert_null(health);
	fixture_write(fixture, "/image/usr/lib64/libcuda.so.535.54.03", "ELF");
	fixture_link(fixture, "libcuda.so.535.54.03", "/image/usr/lib64/libcuda.so.1");
	fixture_write(fixture, "/image/usr/lib64/libnvidia-ml.so.550.1", ""); /* left behind by a mount */
	fixture_write(fixture, "/image/usr/lib64/libGL.so.1.7.0", "ELF");
	fixture_write(fixture, "/image/usr/lib64/libcudart.so.12.1", "ELF");
	fixture_link(fixture, "lib64", "/image/usr/lib");
	fixture_link(fixture, "/../../../../etc", "/image/lib64");
	look();
	assert_int_equal(health->image.n_driver_files, 1);
	assert_string_equal(health->image.driver_files[0], "/usr/lib64/libcuda.so.535.54.03");
}

/* --- the whole --- */

static void make_host(void)
{
	fixture_kernel(fixture, FIXTURE_VERSION);
	fixture_gpu(fixture, "0000:1b:00.0", 0, "GPU-0", "NVIDIA A100");
	fixture_libraries(fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_write(fixture, release, "updates/nvidia.ko:\n");
	fixture_write(fixture, "/proc/modules", "nvidia 1 0 -\n");
	fixture_write(fixture, "/proc/stat", "cpu 1\nbtime 1000\n");
	fixture_write(fixture, "/etc/docker/daemon.json", "{\"runtimes\": {\"nvidia\": {\"path\": \"/usr/bin/x\"}}}");
	fixture_write(
	    fixture, "/etc/containerd/config.toml",
	    "version = 2\nimports = [\"conf.d/*.toml\"]\n"
	    "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia.options]\nBinaryName = \"/x\"\n");
	fixture_write(fixture, "/etc/containerd/conf.d/a.toml", "version = 2\n");
	fixture_write(fixture, "/etc/crio/crio.conf", "[crio.runtime]\ndefault_runtime = \"runc\"\n");
	fixture_write(
	    fixture, "/etc/cdi/a.yaml",
	    "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: \"0\"\n  containerEdits:\n    env: [A=B]\n");
	process("1", "systemd", "1");
	process("20", "dockerd", "20");
}

static char *text_of(void)
{
	struct graft_buffer out = { .max = 0 };

	graft_health_write(health, &out);
	assert_false(graft_buffer_failed(&out));
	return out.bytes;
}

static void test_json(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	char *text, *again;

	make_host();
	look();
	text = text_of();
	health = graft_health_free(health);
	if (graft_health_read(text, strlen(text), &health, &err) < 0)
		fail_msg("%s", err.msg);
	again = text_of();
	assert_string_equal(again, text);
	health = graft_health_free(health);
	free(again);
	free(text);
	assert_int_equal(graft_health_read("{}", 2, &health, &err), -1);
	assert_int_equal(err.status, GRAFT_FORMAT);
	assert_int_equal(graft_health_read("[", 1, &health, &err), -1);
	assert_null(health);
}

static void test_other_version(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	char *text, *at;

	look();
	text = text_of();
	at = strstr(text, "\"version\": 1");
	assert_non_null(at);
	at[strlen("\"version\": ")] = '9';
	health = graft_health_free(health);
	assert_int_equal(graft_health_read(text, strlen(text), &health, &err), -1);
	assert_int_equal(err.status, GRAFT_UNSUPPORTED);
	assert_null(health);
	free(text);
}

/* A failed allocation is reported, or has no effect. */
static void test_allocations(void **state)
{
	char *expected, *text;
	int n;

	make_host();
	look();
	expected = text_of();
	for (n = 1;; n++) {
		struct graft_error err = { .status = GRAFT_OK };
		int fds = test_count_fds(), rc;

		health = graft_health_free(health);
		allocation_fail(n);
		rc = graft_health_collect(&options, &health, &err);
		if (!allocation_failed()) {
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(test_count_fds(), fds);
		if (rc < 0) {
			assert_null(health);
			if (err.status != GRAFT_NO_MEMORY)
				fail_msg("allocation %d: %s", n, err.msg);
			continue;
		}
		text = text_of();
		assert_string_equal(text, expected);
		free(text);
	}
	assert_true(n > 10);
	free(expected);
}

/* --- a node of a cluster --- */

static const char *distribution_with(const char *file, const char *text)
{
	fixture_write(fixture, file, text);
	look();
	fixture_remove(fixture, file);
	return health->cluster.distribution;
}

static void test_distributions(void **state)
{
	options.look_at_cluster = true;
	for (const struct graft_distribution *at = graft_distributions; at->name; at++)
		assert_string_equal(distribution_with(at->file, at->line ? at->line : ""), at->name);
	assert_string_equal(distribution_with("/etc/os-release", "NAME=x\nID=\"talos\"\n"), "Talos");
	assert_null(distribution_with("/etc/os-release", "NAME=talos\nID=talos2\nID=\"talos\nBUILD_ID=talos\n"));
	assert_null(distribution_with("/etc/os-release", "ID=debian\nID"));
	assert_null(graft_distribution_find("Debian"));
	assert_null(graft_distribution_find(NULL));
}

#define STATUS(name, ids) "Name:\t" name "\nUid:\t0\t0\t0\t0\nNSpid:\t" ids "\n"

static void test_cluster(void **state)
{
	const struct graft_health_cluster *cluster;

	options.look_at_cluster = true;
	look();
	assert_true(health->cluster.asked);
	assert_false(health->cluster.running);
	assert_string_equal(health->cluster.directory, "/var/lib/kubelet");
	assert_false(health->cluster.has_record);

	fixture_write(fixture, "/proc/1/comm", "systemd\n");
	fixture_write(fixture, "/proc/20/comm", "kubelet\n");
	fixture_write(fixture, "/proc/20/status", STATUS("kubelet", "20"));
	fixture_write(fixture, "/proc/20/cmdline", "kubelet");
	fixture_write(fixture, "/proc/30/comm", "nvidia-device-p\n");
	fixture_write(fixture, "/proc/30/status", STATUS("nvidia-device-p", "30\t1"));
	fixture_write(fixture, "/proc/30/cmdline", "nvidia-device-plugin");
	fixture_write(fixture, "/proc/30/environ", "A=b");
	fixture_link(fixture, "/dev/null", "/proc/30/fd/0");
	fixture_link(fixture, "socket:[101]", "/proc/30/fd/5");
	fixture_link(fixture, "socket:[103]", "/proc/30/fd/6");
	fixture_link(fixture, "socket:[104]", "/proc/30/fd/7");
	fixture_write(fixture, "/proc/30/net/unix",
		      "Num RefCount Protocol Flags Type St Inode Path\n"
		      "0: 00000002 00000000 00010000 0001 01 101 /proc/self/fd/4/.graft-1\n"
		      "0: 00000002 00000000 00010000 0001 01 102 /run/other\n"
		      "0: 00000003 00000000 00000000 0001 03 103 /proc/self/fd/4/.graft-1\n"
		      "0: 00000003 00000000 00000000 0001 03 104\n"
		      "0: 00000003 00000000 00000000 0001 03 105 /run/other\ngarbage\n");
	fixture_write(fixture, "/proc/40/comm", "gpu-feature-dis\n");
	fixture_write(fixture, "/var/lib/kubelet/device-plugins/kubelet.sock", "");
	fixture_write(fixture, "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
		      "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"u\",\"ResourceName\":\"nvidia.com/gpu\","
		      "\"DeviceIDs\":{\"0\":[\"GPU-0\"],\"1\":[\"GPU-1\"]}},{\"ResourceName\":\"nvidia.com/gpu\","
		      "\"DeviceIDs\":[\"GPU-2\"]},{\"ResourceName\":\"example.com/x\",\"DeviceIDs\":[\"1\"]}],"
		      "\"RegisteredDevices\":{\"nvidia.com/gpu\":[\"GPU-0\",\"GPU-1\",\"GPU-2\",\"GPU-3\"],"
		      "\"nvidia.com/mig-1g.5gb\":null,\"example.com/x\":[\"1\"]}},\"Checksum\":1}");
	fixture_write(fixture, "/var/lib/kubelet/plugins_registry/nvidia.com-gpu-reg.sock", "");
	fixture_write(fixture, "/var/lib/kubelet/plugins_registry/other.sock", "");
	fixture_write(fixture, "/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json", "{}");
	fixture_write(fixture, "/run/nvidia/validations/driver-ready", "");
	fixture_write(fixture, "/etc/kubernetes/node-feature-discovery/features.d/gfd",
		      "# x=y\nno label\na=b\nc=d\n\n");
	look();
	cluster = &health->cluster;
	assert_true(cluster->running);
	assert_true(cluster->has_socket);
	assert_true(cluster->has_registry);
	assert_int_equal(cluster->n_sockets, 1);
	assert_string_equal(cluster->sockets[0], "/var/lib/kubelet/plugins_registry/nvidia.com-gpu-reg.sock");
	assert_int_equal(cluster->n_plugins, 1);
	assert_int_equal(cluster->plugins[0].pid, 30);
	assert_true(cluster->plugins[0].container);
	assert_true(cluster->plugins[0].seen);
	assert_int_equal(cluster->plugins[0].n_served, 1);
	assert_int_equal(cluster->plugins[0].n_watched, 1);
	assert_null(cluster->plugins[0].strategy);
	assert_null(cluster->plugins[0].config);
	assert_true(cluster->discovers);
	assert_true(cluster->has_record);
	assert_int_equal(cluster->n_resources, 2);
	assert_string_equal(cluster->resources[0].name, "nvidia.com/gpu");
	assert_int_equal(cluster->resources[0].n_devices, 4);
	assert_int_equal(cluster->resources[0].n_in_use, 3);
	assert_int_equal(cluster->resources[1].n_devices, 0);
	assert_int_equal(cluster->n_plugin_specs, 1);
	assert_true(cluster->has_operator);
	assert_int_equal(cluster->n_validations, 1);
	assert_int_equal(cluster->n_labels, 2);

	fixture_write(fixture, "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "{\"Data\"");
	look();
	assert_false(health->cluster.has_record);
	assert_non_null(strstr(health->cluster.record_problem, "line 1"));
	/* Not asked: nothing is looked at. */
	options.look_at_cluster = false;
	look();
	assert_false(health->cluster.asked);
	assert_int_equal(health->cluster.n_plugins, 0);
}

/* What the process was given says more than what is usual. */
static void test_cluster_settings(void **state)
{
	options.look_at_cluster = true;
	fixture_write(fixture, "/proc/20/comm", "kubelet\n");
	fixture_write(fixture, "/proc/20/status", STATUS("kubelet", "20"));
	fixture_write(fixture, "/proc/20/cmdline", "kubelet --root-dir=/data/kubelet");
	fixture_write(fixture, "/proc/30/comm", "nvidia-device-p\n");
	fixture_write(fixture, "/proc/30/status", STATUS("nvidia-device-p", "30"));
	fixture_write(fixture, "/proc/30/cmdline", "nvidia-device-plugin");
	fixture_write(fixture, "/proc/30/environ", "DEVICE_LIST_STRATEGY=cdi-cri");
	look();
	assert_int_equal(health->cluster.n_plugins, 1);
	assert_false(health->cluster.plugins[0].container);
	assert_false(health->cluster.plugins[0].seen);
	assert_string_equal(health->cluster.plugins[0].strategy, "cdi-cri");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(nothing),
		TEST(modules),
		TEST(bus),
		TEST(kernel),
		TEST(nodes),
		TEST(capability_nodes),
		TEST(libraries),
		TEST(versions_that_differ),
		TEST(nvml),
		TEST(self),
		TEST(cgroup),
		TEST(library),
		TEST(user_namespaces),
		TEST(security_modules),
		TEST(daemons),
		TEST(cdi),
		TEST(config),
		TEST(image),
		TEST(json),
		TEST(other_version),
		TEST(distributions),
		TEST(cluster),
		TEST(cluster_settings),
		TEST(allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
