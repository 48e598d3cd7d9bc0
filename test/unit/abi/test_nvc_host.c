/* SPDX-License-Identifier: Apache-2.0 */
/* nvc_host: the C interface on a host made of files: what stands in its structs, and how long it lives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../host/fixture.h"
#include "../unit.h"
#include "nvc.h"

#define BUS_ID "00000000:2c:00.0"

static struct fixture fixture;

static int make_host(void **state)
{
	fixture_init(&fixture);
	fixture_kernel(&fixture, FIXTURE_VERSION);
	fixture_gpu(&fixture, "0000:1b:00.0", 1, "GPU-0", "NVIDIA A100");
	fixture_gpu(&fixture, "0000:2c:00.0", 0, "GPU-1", "NVIDIA A100");
	fixture_write(&fixture, "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\n");
	fixture_write(&fixture, "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access", "DeviceFileMinor: 13\n");
	fixture_write(&fixture, "/proc/driver/nvidia-caps/mig-minors", "gpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\n");
	fixture_library(&fixture, FIXTURE_LIBDIR, "libGLX.so", FIXTURE_VERSION, "libGLX.so.0", 0x303);
	fixture_libraries(&fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	fixture_write(&fixture, "/usr/bin/nvidia-smi", "#!");
	fixture_write(&fixture, "/usr/bin/nvidia-cuda-mps-control", "#!");
	fixture_write(&fixture, "/usr/bin/nvidia-cuda-mps-server", "#!");
	fixture_write(&fixture, "/tmp/nvidia-mps/control", "");
	fixture_link(&fixture, "../run", "/var/run");
	fixture_write(&fixture, "/run/nvidia-persistenced/socket", "");
	fixture_write(&fixture, "/run/nvidia-fabricmanager/socket", "");
	fixture_write(&fixture, "/lib/firmware/nvidia/" FIXTURE_VERSION "/gsp_ga10x.bin", "g");
	return 0;
}

static int remove_host(void **state)
{
	fixture_done(&fixture);
	return 0;
}

/* A context for the host; the strings of its configuration are gone when it is back. */
static struct nvc_context *context(void)
{
	struct nvc_context *ctx = nvc_context_new();
	struct nvc_config *config = nvc_config_new();
	char root[sizeof(fixture.root)], ldcache[] = "/etc/ld.so.cache";

	(void)snprintf(root, sizeof(root), "%s", fixture.root);
	config->root = root;
	config->ldcache = ldcache;
	if (nvc_init(ctx, config, " no-create-imex-channels  ") != 0)
		fail_msg("%s", nvc_error(ctx));
	memset(root, 'x', sizeof(root) - 1);
	memset(ldcache, 'x', sizeof(ldcache) - 1);
	nvc_config_free(config);
	return ctx;
}

static void test_init_again(void **state)
{
	static char nowhere[] = "/nowhere";
	struct nvc_config *config = nvc_config_new();
	struct nvc_context *ctx = context();
	struct nvc_driver_info *info;

	/* Neither the configuration nor the options of a second call count, right or wrong. */
	config->root = nowhere;
	assert_int_equal(nvc_init(ctx, config, "x"), 0);
	assert_null(nvc_error(ctx));
	info = nvc_driver_info_new(ctx, NULL);
	assert_non_null(info);
	assert_int_equal(nvc_shutdown(ctx), 0);
	/* What was made lives on; the context is as new. */
	assert_string_equal(info->nvrm_version, FIXTURE_VERSION);
	assert_null(nvc_driver_info_new(ctx, NULL));
	assert_string_equal(nvc_error(ctx), "context uninitialized");
	nvc_driver_info_free(info);
	nvc_config_free(config);
	nvc_context_free(ctx);
}

static bool has(char *const *list, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++) {
		assert_non_null(list[i]);
		if (strcmp(list[i], path) == 0)
			return true;
	}
	return false;
}

static bool has_node(const struct nvc_driver_info *info, const char *path)
{
	for (size_t i = 0; i < info->ndevs; i++) {
		assert_non_null(info->devs[i].path);
		if (strcmp(info->devs[i].path, path) == 0)
			return true;
	}
	return false;
}

#define LIBRARY(name) FIXTURE_LIBDIR "/" name ".so." FIXTURE_VERSION
#define FIRMWARE      "/lib/firmware/nvidia/" FIXTURE_VERSION "/gsp_ga10x.bin"

/* What an option takes out, and nothing else does. */
static void test_driver_options(void **state)
{
	static const struct {
		const char *word;
		bool uvm, modeset, mps, persistenced, fabricmanager, firmware;
	} rows[] = {
		{ NULL, true, true, true, true, true, true },
		{ "", true, true, true, true, true, true },
		{ "no-uvm", false, true, true, true, true, true },
		{ "no-modeset", true, false, true, true, true, true },
		{ "no-mps", true, true, false, true, true, true },
		{ "no-persistenced", true, true, true, false, true, true },
		{ "no-fabricmanager", true, true, true, true, false, true },
		{ "no-gsp-firmware", true, true, true, true, true, false },
		{ "  no-uvm   no-mps no-uvm ", false, true, false, true, true, true },
	};
	struct nvc_context *ctx = context();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nvc_driver_info *info = nvc_driver_info_new(ctx, rows[i].word);

		if (!info)
			fail_msg("%s: %s", rows[i].word, nvc_error(ctx));
		assert_string_equal(info->nvrm_version, FIXTURE_VERSION);
		assert_string_equal(info->cuda_version, "12.4");
		assert_true(has(info->bins, info->nbins, "/usr/bin/nvidia-smi"));
		assert_true(has(info->libs, info->nlibs, LIBRARY("libcuda")));
		assert_true(has(info->libs, info->nlibs, LIBRARY("libGLX_nvidia")));
		assert_int_equal(info->nlibs32, 0);
		if (fixture_has_nodes()) {
			assert_true(has_node(info, "/dev/nvidiactl"));
			assert_int_equal(has_node(info, "/dev/nvidia-uvm"), rows[i].uvm);
			assert_int_equal(has_node(info, "/dev/nvidia-uvm-tools"), rows[i].uvm);
			assert_int_equal(has_node(info, "/dev/nvidia-modeset"), rows[i].modeset);
		}
		assert_int_equal(has(info->bins, info->nbins, "/usr/bin/nvidia-cuda-mps-server"), rows[i].mps);
		assert_int_equal(has(info->ipcs, info->nipcs, "/run/nvidia-persistenced/socket"), rows[i].persistenced);
		assert_int_equal(has(info->ipcs, info->nipcs, "/run/nvidia-fabricmanager/socket"),
				 rows[i].fabricmanager);
		assert_int_equal(has(info->firmwares, info->nfirmwares, FIRMWARE), rows[i].firmware);
		nvc_driver_info_free(info);
	}
	nvc_context_free(ctx);
}

/* Of drivers before the vendor-neutral dispatch; not another vendor's libGL. */
static void test_no_glvnd(void **state)
{
	struct nvc_context *ctx = context();
	struct nvc_driver_info *info = nvc_driver_info_new(ctx, "no-glvnd");

	assert_non_null(info);
	assert_true(has(info->libs, info->nlibs, LIBRARY("libcuda")));
	assert_false(has(info->libs, info->nlibs, LIBRARY("libGLX_nvidia")));
	nvc_driver_info_free(info);
	nvc_context_free(ctx);
}

static void test_driver_words(void **state)
{
	char long_text[NVC_ARG_MAX + 1];
	struct nvc_context *ctx = context();

	assert_null(nvc_driver_info_new(ctx, "no-uvm No-mps"));
	assert_string_equal(nvc_error(ctx), "invalid option: No-mps");
	assert_null(nvc_driver_info_new(ctx, "no-uvm=1"));
	assert_string_equal(nvc_error(ctx), "invalid option: no-uvm=1");
	memset(long_text, ' ', sizeof(long_text) - 1);
	long_text[NVC_ARG_MAX] = '\0';
	assert_null(nvc_driver_info_new(ctx, long_text));
	assert_string_equal(nvc_error(ctx), "too many options");
	nvc_context_free(ctx);
}

static void test_devices(void **state)
{
	struct nvc_context *ctx = context();
	/* No option is known to the interface: every string will do. */
	struct nvc_device_info *info = nvc_device_info_new(ctx, "anything at=all no-nvml");
	const struct nvc_device *gpu;

	if (!info)
		fail_msg("%s", nvc_error(ctx));
	assert_int_equal(info->ngpus, 2);
	gpu = &info->gpus[1];
	assert_string_equal(gpu->busid, BUS_ID);
	assert_string_equal(gpu->uuid, "GPU-1");
	assert_string_equal(gpu->model, "NVIDIA A100");
	assert_null(gpu->arch);
	assert_string_equal(gpu->node.path, "/dev/nvidia0");
	assert_true(gpu->mig_capable);
	assert_string_equal(gpu->mig_caps_path, "/proc/driver/nvidia/capabilities/gpu0");
	assert_int_equal(gpu->mig_devices.ndevices, 1);
	assert_ptr_equal(gpu->mig_devices.devices[0].parent, gpu);
	assert_int_equal(gpu->mig_devices.devices[0].gi, 1);
	assert_int_equal(gpu->mig_devices.devices[0].ci, 0);
	assert_string_equal(gpu->mig_devices.devices[0].gi_caps_path, "/proc/driver/nvidia/capabilities/gpu0/mig/gi1");
	assert_string_equal(gpu->mig_devices.devices[0].ci_caps_path,
			    "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0");
	assert_int_equal(info->gpus[0].mig_devices.ndevices, 0);
	nvc_device_info_free(info);
	nvc_context_free(ctx);
}

/* The file is that of the driver root; the number of the nodes' driver is this kernel's. */
static void test_capability_nodes(void **state)
{
	static const char missing[] = "/proc/driver/nvidia/capabilities/gpu9/mig/gi1/access";
	struct nvc_device_node node = { NULL, 0 };
	struct nvc_context *ctx = context();
	char expected[128];

	(void)snprintf(expected, sizeof(expected), "unable to get cap device attributes: %s: no such file or directory",
		       missing);
	assert_int_equal(nvc_nvcaps_device_from_proc_path(ctx, missing, &node), -1);
	assert_string_equal(nvc_error(ctx), expected);
	assert_null(node.path);
	assert_int_equal(nvc_nvcaps_device_from_proc_path(ctx, NULL, &node), -1);
	assert_string_equal(nvc_error(ctx), "invalid argument");
	assert_int_equal(nvc_nvcaps_device_from_proc_path(ctx, missing, NULL), -1);
	fixture_write(&fixture, "/proc/driver/nvidia/capabilities/odd", "DeviceFileMinor: -3\n");
	assert_int_equal(nvc_nvcaps_device_from_proc_path(ctx, "/proc/driver/nvidia/capabilities/odd", &node), -1);
	assert_string_equal(
	    nvc_error(ctx),
	    "unable to get cap device attributes: /proc/driver/nvidia/capabilities/odd: invalid argument");
	nvc_context_free(ctx);
}

/* What is in the way of a container, before anything is opened; NULL: nothing. */
static void test_containers(void **state)
{
	static const struct {
		const char *opts, *error;
	} rows[] = {
		{ NULL, NULL },
		{ "standalone no-cgroups utility compute video graphics display ngx compat32 no-devbind", NULL },
		{ "standalone no-cgroups no-cntlibs", NULL },
		{ "standalone no-cgroups cuda-compat-mode=ldconfig", NULL },
		{ "standalone no-cgroups cuda-compat-mode=disabled", NULL },
		{ "standalone no-cgroups cuda-compat-mode=mount", NULL },
		{ "", "invalid mode of operation" },
		{ "utility", "invalid mode of operation" },
		{ "standalone supervised", "invalid mode of operation" },
		{ "standalone Utility", "invalid option: Utility" },
		{ "standalone no-cntlibs=1", "invalid option: no-cntlibs=1" },
		{ "standalone cuda-compat-mode", "invalid option: cuda-compat-mode" },
	};
	struct nvc_context *ctx = context();
	struct nvc_container_config *config = nvc_container_config_new(getpid(), fixture.host);

	fixture_write_host(&fixture, "/etc/debian_version", "12.0\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nvc_container *cnt = nvc_container_new(ctx, config, rows[i].opts);

		if (!rows[i].error && !cnt)
			fail_msg("%s: %s", rows[i].opts, nvc_error(ctx));
		if (rows[i].error) {
			assert_null(cnt);
			assert_string_equal(nvc_error(ctx), rows[i].error);
		}
		nvc_container_free(cnt);
	}
	assert_null(nvc_container_new(ctx, config, "standalone no-cgroups cuda-compat-mode=x"));
	assert_string_equal(nvc_error(ctx), "unsupported cuda-compat-mode: x");
	nvc_container_config_free(config);
	nvc_context_free(ctx);
}

static void test_container_configs(void **state)
{
	static char empty[] = "", relative[] = "root", directory[] = "/usr/lib";
	struct nvc_context *ctx = context();
	struct nvc_container_config *config = nvc_container_config_new(0, fixture.host);
	char **const members[] = { &config->bins_dir, &config->libs_dir, &config->libs32_dir, &config->cudart_dir,
				   &config->ldconfig };

#define EXPECT_INVALID()                                                 \
	do {                                                             \
		assert_null(nvc_container_new(ctx, config, NULL));       \
		assert_string_equal(nvc_error(ctx), "invalid argument"); \
	} while (0)
	assert_null(nvc_container_new(ctx, NULL, NULL));
	assert_string_equal(nvc_error(ctx), "invalid argument");
	EXPECT_INVALID();
	config->pid = -1;
	EXPECT_INVALID();
	config->pid = getpid();
	config->rootfs = NULL;
	EXPECT_INVALID();
	config->rootfs = empty;
	EXPECT_INVALID();
	config->rootfs = relative;
	EXPECT_INVALID();
	config->rootfs = fixture.host;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		struct nvc_container *cnt;

		*members[i] = empty;
		EXPECT_INVALID();
		*members[i] = directory;
		cnt = nvc_container_new(ctx, config, NULL);
		assert_non_null(cnt);
		nvc_container_free(cnt);
		*members[i] = NULL;
	}
	nvc_container_config_free(config);
	nvc_context_free(ctx);
}

/* A driver comes first, and what is missing is said before anything happens. */
static void test_order(void **state)
{
	struct nvc_context *ctx = context();
	struct nvc_container_config *config = nvc_container_config_new(getpid(), fixture.host);
	struct nvc_container *cnt = nvc_container_new(ctx, config, NULL);
	struct nvc_device_info *info = nvc_device_info_new(ctx, "no-nvml");

	assert_non_null(cnt);
	assert_int_equal(nvc_device_mount(ctx, cnt, &info->gpus[0]), -1);
	assert_string_equal(nvc_error(ctx), "the driver has not been mounted yet: call nvc_driver_mount() first");
	assert_int_equal(nvc_ldcache_update(ctx, cnt), -1);
	assert_int_equal(nvc_device_mount(ctx, cnt, NULL), -1);
	assert_string_equal(nvc_error(ctx), "invalid argument");
	assert_int_equal(nvc_driver_mount(ctx, cnt, NULL), -1);
	assert_string_equal(nvc_error(ctx), "invalid argument");
	nvc_device_info_free(info);
	nvc_container_free(cnt);
	nvc_container_config_free(config);
	nvc_context_free(ctx);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_host, remove_host)
	const struct CMUnitTest tests[] = {
		TEST(test_init_again),   TEST(test_driver_options),    TEST(test_no_glvnd),
		TEST(test_driver_words), TEST(test_devices),           TEST(test_capability_nodes),
		TEST(test_containers),   TEST(test_container_configs), TEST(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
