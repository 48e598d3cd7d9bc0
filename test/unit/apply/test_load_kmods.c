/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_kmods: --load-kmods on a driver root made of files, in its own mount namespace: a fake
 * modprobe, two GPUs on the PCI bus, and the resulting nodes.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../folder.h"
#include "../unit.h"
#include "apply/load_kmods.h"

static char root[64], fake_modprobe[512], log_text[16384];

static void collect(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	size_t used = strlen(log_text);

	(void)snprintf(log_text + used, sizeof(log_text) - used, "%s\n", message);
}

static const struct graft_log logger = { .write = collect, .max = GRAFT_LOG_DEBUG };

static void full_path(const char *path, char *full)
{
	(void)snprintf(full, 256, "%s%s", root, path);
	test_make_parents(AT_FDCWD, full);
}

static void put(const char *path, const char *text)
{
	char full[256];

	full_path(path, full);
	test_put(AT_FDCWD, full, text);
}

static void copy_program(const char *from, const char *path)
{
	char full[256], bytes[65536];
	int in = open(from, O_RDONLY | O_CLOEXEC), out;
	ssize_t n;

	full_path(path, full);
	out = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)n), n);
	assert_int_equal(close(in) + close(out), 0);
}

static void make_pci_function(const char *name, const char *vendor, const char *class_)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/vendor", name);
	put(path, vendor);
	(void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/class", name);
	put(path, class_);
}

static int set_up(void **state)
{
	if (geteuid() != 0)
		return 0;
	log_text[0] = '\0';
	(void)snprintf(root, sizeof(root), "/tmp/graft-kmods-XXXXXX");
	assert_non_null(mkdtemp(root));
	put("/proc/modules", "ext4 1 0 - Live 0x0\n");
	put("/proc/sys/kernel/modprobe", "/opt/modprobe\n");
	put("/proc/devices", "Character devices:\n195 nvidia\n234 nvidia-caps\n235 nvidia-caps-imex-channels\n"
			     "510 nvidia-uvm\n\nBlock devices:\n");
	put("/proc/driver/nvidia/params",
	    "ModifyDeviceFiles: 1\nDeviceFileUID: 7\nDeviceFileGID: 44\nDeviceFileMode: 432\n");
	put("/dev/keep", "");
	put("/loadable", "");
	make_pci_function("0000:00:02.0", "0x8086\n", "0x030000\n");
	make_pci_function("0000:01:00.0", "0x10de\n", "0x030200\n");
	make_pci_function("0000:01:00.1", "0x10de\n", "0x040300\n"); /* its audio function */
	make_pci_function("0000:02:00.0", "0x10de\n", "0x030000\n");
	copy_program(fake_modprobe, "/opt/modprobe");
	return 0;
}

static int tear_down(void **state)
{
	return geteuid() == 0 ? test_remove_folder(root) : 0;
}

static void load(const uint32_t *channels, size_t n)
{
	const struct graft_kmods_options options = {
		.root = root, .imex_channels = channels, .n_imex_channels = n, .log = &logger
	};

	graft_load_kmods(&options);
}

static void assert_node(const char *path, unsigned int major, unsigned int minor, unsigned int mode, uid_t uid,
			gid_t gid)
{
	char full[256], link[256], target[256];
	struct stat st;
	ssize_t n;

	(void)snprintf(full, sizeof(full), "%s%s", root, path);
	if (lstat(full, &st) < 0)
		fail_msg("%s: %s\n%s", path, strerror(errno), log_text);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(st.st_rdev, makedev(major, minor));
	assert_int_equal(st.st_mode & 07777, mode);
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_gid, gid);
	(void)snprintf(link, sizeof(link), "%s/dev/char/%u:%u", root, major, minor);
	n = readlink(link, target, sizeof(target) - 1);
	assert_true(n > 0);
	target[n] = '\0';
	assert_string_printed(target, "../%s", path + 5);
}

static bool exists(const char *path)
{
	char full[256];
	struct stat st;

	(void)snprintf(full, sizeof(full), "%s%s", root, path);
	return lstat(full, &st) == 0;
}

static const char *read_text(const char *path)
{
	static char text[4096];
	char full[256];
	FILE *file;
	size_t n;

	(void)snprintf(full, sizeof(full), "%s%s", root, path);
	file = fopen(full, "re");
	if (!file)
		return "";
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	(void)fclose(file);
	return text;
}

static void test_loads_and_makes_nodes(void **state)
{
	static const uint32_t channels[] = { 0, 9 };
	mode_t old;

	if (geteuid() != 0)
		skip();
	old = umask(077); /* must not matter */
	load(channels, 2);
	(void)umask(old);
	assert_string_equal(read_text("/modprobe-log"), "modprobe nvidia PATH=/sbin\nmodprobe nvidia-uvm PATH=/sbin\n"
							"modprobe nvidia-modeset PATH=/sbin\n");
	assert_node("/dev/nvidiactl", 195, 255, 0660, 7, 44);
	assert_node("/dev/nvidia0", 195, 0, 0660, 7, 44);
	assert_node("/dev/nvidia1", 195, 1, 0660, 7, 44);
	assert_false(exists("/dev/nvidia2"));
	assert_node("/dev/nvidia-uvm", 510, 0, 0666, 0, 0);
	assert_node("/dev/nvidia-uvm-tools", 510, 1, 0666, 0, 0);
	assert_node("/dev/nvidia-modeset", 195, 254, 0660, 7, 44);
	assert_node("/dev/nvidia-caps-imex-channels/channel0", 235, 0, 0660, 7, 44);
	assert_node("/dev/nvidia-caps-imex-channels/channel9", 235, 9, 0660, 7, 44);
	assert_false(exists("/dev/nvidia-caps"));
	/* The second time nothing is run and nothing changes. */
	load(channels, 2);
	assert_string_equal(read_text("/modprobe-log"), "modprobe nvidia PATH=/sbin\nmodprobe nvidia-uvm PATH=/sbin\n"
							"modprobe nvidia-modeset PATH=/sbin\n");
	assert_node("/dev/nvidia1", 195, 1, 0660, 7, 44);
}

static void test_corrects_what_is_there(void **state)
{
	char full[256];

	if (geteuid() != 0)
		skip();
	put("/dev/nvidia0", "a file in the way");
	full_path("/dev/nvidia1", full);
	assert_int_equal(mknod(full, S_IFCHR | 0600, makedev(1, 3)), 0);
	full_path("/dev/nvidiactl", full);
	assert_int_equal(mknod(full, S_IFCHR | 0600, makedev(195, 255)), 0);
	full_path("/dev/char/195:0", full);
	assert_int_equal(symlink("../elsewhere", full), 0);
	load(NULL, 0);
	assert_node("/dev/nvidia0", 195, 0, 0660, 7, 44);
	assert_node("/dev/nvidia1", 195, 1, 0660, 7, 44);
	assert_node("/dev/nvidiactl", 195, 255, 0660, 7, 44);
}

static void test_mig_nodes(void **state)
{
	if (geteuid() != 0)
		skip();
	put("/proc/driver/nvidia-caps/mig-minors", "config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access "
						   "13\ngpu0/gi2/access 21\ngpu5/gi1/access 700\n");
	put("/proc/driver/nvidia/capabilities/mig/config",
	    "DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n");
	put("/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access",
	    "DeviceFileMinor: 12\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
	put("/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access",
	    "DeviceFileMinor: 13\nDeviceFileMode: 292\nDeviceFileModify: 0\n");
	put("/proc/driver/nvidia/capabilities/gpu5/mig/gi1/access", "DeviceFileMinor: 700\n");
	load(NULL, 0);
	assert_node("/dev/nvidia-caps/nvidia-cap1", 234, 1, 0400, 0, 0);
	assert_node("/dev/nvidia-caps/nvidia-cap12", 234, 12, 0444, 0, 0);
	assert_false(exists("/dev/nvidia-caps/nvidia-cap13"));  /* must not be made */
	assert_false(exists("/dev/nvidia-caps/nvidia-cap2"));   /* no capability of that name */
	assert_false(exists("/dev/nvidia-caps/nvidia-cap21"));  /* no such instance */
	assert_false(exists("/dev/nvidia-caps/nvidia-cap700")); /* no such GPU on the bus */
}

static void test_driver_forbids_nodes(void **state)
{
	static const uint32_t channel = 0;

	if (geteuid() != 0)
		skip();
	put("/proc/driver/nvidia/params", "ModifyDeviceFiles: 0\n");
	load(&channel, 1);
	assert_false(exists("/dev/nvidiactl"));
	assert_false(exists("/dev/nvidia-caps-imex-channels/channel0"));
	assert_node("/dev/nvidia-uvm", 510, 0, 0666, 0, 0); /* that rule does not apply */
}

static void test_modules_that_cannot_be_loaded(void **state)
{
	char full[256];

	if (geteuid() != 0)
		skip();
	full_path("/loadable", full);
	assert_int_equal(unlink(full), 0);
	load(NULL, 0);
	assert_non_null(strstr(log_text, "could not load kernel module nvidia\n"));
	assert_non_null(strstr(log_text, "could not load kernel module nvidia-modeset\n"));
	assert_false(exists("/dev/nvidiactl"));
	/* modprobe is missing or not executable. */
	full_path("/opt/modprobe", full);
	assert_int_equal(chmod(full, 0644), 0);
	load(NULL, 0);
	assert_non_null(strstr(log_text, "modprobe was not found"));
}

static void test_options(void **state)
{
	static const uint32_t channel = 3;
	struct graft_kmods_options options = { .root = root,
					       .imex_channels = &channel,
					       .n_imex_channels = 1,
					       .no_create_imex_channels = true,
					       .log = &logger };

	if (geteuid() != 0)
		skip();
	graft_load_kmods(&options);
	assert_true(exists("/dev/nvidiactl"));
	assert_false(exists("/dev/nvidia-caps-imex-channels"));
	log_text[0] = '\0';
	options.wsl = true;
	graft_load_kmods(&options);
	assert_string_equal(log_text, "skipping kernel modules load on WSL\n");
	/* A missing root directory is only logged. */
	options.wsl = false;
	options.root = "/nonexistent/driver/root";
	graft_load_kmods(&options);
	assert_non_null(strstr(log_text, "kernel modules are not loaded: open failed: /nonexistent/driver/root"));
}

/* Nothing is attempted in a user namespace. */
static void test_user_namespace(void **state)
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER) < 0)
			_exit(77);
		load(NULL, 0);
		_exit(strcmp(log_text, "skipping kernel modules load due to user namespace\n") == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
	assert_false(exists("/modprobe-log"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_loads_and_makes_nodes), TEST(test_corrects_what_is_there),        TEST(test_mig_nodes),
		TEST(test_driver_forbids_nodes),  TEST(test_modules_that_cannot_be_loaded), TEST(test_options),
		TEST(test_user_namespace),
	};
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
	int length = slash ? (int)(slash - argv[0]) : 1;

	(void)snprintf(fake_modprobe, sizeof(fake_modprobe), "%.*s/apply/fake_modprobe", length, slash ? argv[0] : ".");
	/* The machine's own mounts must stay untouched, whatever goes wrong. */
	if (geteuid() == 0 && (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
