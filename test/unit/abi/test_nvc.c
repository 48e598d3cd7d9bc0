/* SPDX-License-Identifier: Apache-2.0 */
/* nvc: layouts, lifetimes, option strings and errors of the C interface, where no driver is needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "nvc.h"

/* SPEC libnvidia-container 2.1: programs that were compiled against other headers have these numbers in them. */
#define MEMBER(type, member, at)                                     \
	{                                                            \
#type "." #member, offsetof(struct type, member), at \
	}
#define SIZE(type, size)                                   \
	{                                                  \
		"sizeof " #type, sizeof(struct type), size \
	}
static const struct {
	const char *name;
	size_t is, must_be;
} layout[] = {
	SIZE(nvc_imex_channel, 4),
	MEMBER(nvc_imex_channel, id, 0),
	SIZE(nvc_imex_info, 16),
	MEMBER(nvc_imex_info, chans, 0),
	MEMBER(nvc_imex_info, nchans, 8),
	SIZE(nvc_version, 24),
	MEMBER(nvc_version, major, 0),
	MEMBER(nvc_version, minor, 4),
	MEMBER(nvc_version, patch, 8),
	MEMBER(nvc_version, string, 16),
	SIZE(nvc_config, 40),
	MEMBER(nvc_config, root, 0),
	MEMBER(nvc_config, ldcache, 8),
	MEMBER(nvc_config, uid, 16),
	MEMBER(nvc_config, gid, 20),
	MEMBER(nvc_config, imex, 24),
	SIZE(nvc_device_node, 16),
	MEMBER(nvc_device_node, path, 0),
	MEMBER(nvc_device_node, id, 8),
	SIZE(nvc_driver_info, 112),
	MEMBER(nvc_driver_info, nvrm_version, 0),
	MEMBER(nvc_driver_info, cuda_version, 8),
	MEMBER(nvc_driver_info, bins, 16),
	MEMBER(nvc_driver_info, nbins, 24),
	MEMBER(nvc_driver_info, libs, 32),
	MEMBER(nvc_driver_info, nlibs, 40),
	MEMBER(nvc_driver_info, libs32, 48),
	MEMBER(nvc_driver_info, nlibs32, 56),
	MEMBER(nvc_driver_info, ipcs, 64),
	MEMBER(nvc_driver_info, nipcs, 72),
	MEMBER(nvc_driver_info, devs, 80),
	MEMBER(nvc_driver_info, ndevs, 88),
	MEMBER(nvc_driver_info, firmwares, 96),
	MEMBER(nvc_driver_info, nfirmwares, 104),
	SIZE(nvc_mig_device, 40),
	MEMBER(nvc_mig_device, parent, 0),
	MEMBER(nvc_mig_device, uuid, 8),
	MEMBER(nvc_mig_device, gi, 16),
	MEMBER(nvc_mig_device, ci, 20),
	MEMBER(nvc_mig_device, gi_caps_path, 24),
	MEMBER(nvc_mig_device, ci_caps_path, 32),
	SIZE(nvc_mig_device_info, 16),
	MEMBER(nvc_mig_device_info, devices, 0),
	MEMBER(nvc_mig_device_info, ndevices, 8),
	SIZE(nvc_device, 88),
	MEMBER(nvc_device, model, 0),
	MEMBER(nvc_device, uuid, 8),
	MEMBER(nvc_device, busid, 16),
	MEMBER(nvc_device, arch, 24),
	MEMBER(nvc_device, brand, 32),
	MEMBER(nvc_device, node, 40),
	MEMBER(nvc_device, mig_capable, 56),
	MEMBER(nvc_device, mig_caps_path, 64),
	MEMBER(nvc_device, mig_devices, 72),
	SIZE(nvc_device_info, 16),
	MEMBER(nvc_device_info, gpus, 0),
	MEMBER(nvc_device_info, ngpus, 8),
	SIZE(nvc_container_config, 56),
	MEMBER(nvc_container_config, pid, 0),
	MEMBER(nvc_container_config, rootfs, 8),
	MEMBER(nvc_container_config, bins_dir, 16),
	MEMBER(nvc_container_config, libs_dir, 24),
	MEMBER(nvc_container_config, libs32_dir, 32),
	MEMBER(nvc_container_config, cudart_dir, 40),
	MEMBER(nvc_container_config, ldconfig, 48),
};

static void test_layout(void **state)
{
	for (size_t i = 0; i < sizeof(layout) / sizeof(layout[0]); i++) {
		if (layout[i].is != layout[i].must_be)
			print_error("%s: %zu instead of %zu\n", layout[i].name, layout[i].is, layout[i].must_be);
		assert_int_equal(layout[i].is, layout[i].must_be);
	}
	assert_int_equal(NVC_ARG_MAX, 256);
	assert_int_equal(NVC_NVCAPS_STYLE_NONE, 0);
	assert_int_equal(NVC_NVCAPS_STYLE_PROC, 1);
	assert_int_equal(NVC_NVCAPS_STYLE_DEV, 2);
}

static void test_version(void **state)
{
	const struct nvc_version *version = nvc_version();
	char text[64];

	assert_ptr_equal(version, nvc_version());
	snprintf(text, sizeof(text), "%u.%u.%u", version->major, version->minor, version->patch);
	assert_string_equal(text, version->string);
	assert_string_equal(version->string, GRAFT_COMPATIBLE);
	assert_string_equal(NVC_VERSION, GRAFT_COMPATIBLE);
}

static void test_lifetimes(void **state)
{
	struct nvc_config *config = nvc_config_new();
	struct nvc_container_config *where = nvc_container_config_new(7, "/x");
	struct nvc_context *ctx = nvc_context_new();

	assert_int_equal(config->uid, (uid_t)-1);
	assert_int_equal(config->gid, (gid_t)-1);
	assert_null(config->root);
	assert_null(config->imex.chans);
	assert_int_equal(where->pid, 7);
	assert_string_equal(where->rootfs, "/x");
	assert_null(where->ldconfig);
	assert_null(nvc_error(ctx));
	assert_null(nvc_error(NULL));
	assert_int_equal(nvc_shutdown(NULL), -1);
	assert_int_equal(nvc_shutdown(ctx), 0);
	assert_int_equal(nvc_shutdown(ctx), 0);
	nvc_config_free(config);
	nvc_container_config_free(where);
	nvc_context_free(ctx);
	nvc_config_free(NULL);
	nvc_container_config_free(NULL);
	nvc_context_free(NULL);
	nvc_container_free(NULL);
	nvc_driver_info_free(NULL);
	nvc_device_info_free(NULL);
}

static void test_uninitialised(void **state)
{
	struct nvc_context *ctx = nvc_context_new();
	struct nvc_device_node node = { NULL, 0 };
	const struct nvc_container_config where = { .pid = 1, .rootfs = NULL };

	assert_null(nvc_container_new(ctx, &where, NULL));
	assert_string_equal(nvc_error(ctx), "context uninitialized");
	assert_null(nvc_driver_info_new(ctx, NULL));
	assert_null(nvc_device_info_new(ctx, NULL));
	assert_int_equal(nvc_driver_mount(ctx, NULL, NULL), -1);
	assert_int_equal(nvc_device_mount(ctx, NULL, NULL), -1);
	assert_int_equal(nvc_mig_device_access_caps_mount(ctx, NULL, NULL), -1);
	assert_int_equal(nvc_mig_config_global_caps_mount(ctx, NULL), -1);
	assert_int_equal(nvc_mig_monitor_global_caps_mount(ctx, NULL), -1);
	assert_int_equal(nvc_device_mig_caps_mount(ctx, NULL, NULL), -1);
	assert_int_equal(nvc_imex_channel_mount(ctx, NULL, NULL), -1);
	assert_int_equal(nvc_ldcache_update(ctx, NULL), -1);
	assert_int_equal(nvc_nvcaps_device_from_proc_path(ctx, "/proc/x", &node), -1);
	assert_string_equal(nvc_error(ctx), "context uninitialized");
	assert_int_equal(nvc_driver_mount(NULL, NULL, NULL), -1);
	assert_null(nvc_driver_info_new(NULL, NULL));
	nvc_context_free(ctx);
}

/* Refused before the host is looked at. */
static void test_init_arguments(void **state)
{
	static char empty[] = "";
	char words[NVC_ARG_MAX + 1];
	struct nvc_context *ctx = nvc_context_new();
	struct nvc_config *config = nvc_config_new();

	assert_int_equal(nvc_init(NULL, NULL, NULL), -1);
	config->root = empty;
	assert_int_equal(nvc_init(ctx, config, NULL), -1);
	assert_string_equal(nvc_error(ctx), "invalid argument");
	config->root = NULL;
	config->ldcache = empty;
	assert_int_equal(nvc_init(ctx, config, NULL), -1);
	assert_string_equal(nvc_error(ctx), "invalid argument");
	assert_int_equal(nvc_init(ctx, NULL, "load-kmods Load-kmods"), -1);
	assert_string_equal(nvc_error(ctx), "invalid option: Load-kmods");
	assert_int_equal(nvc_init(ctx, NULL, "load-kmod"), -1);
	assert_string_equal(nvc_error(ctx), "invalid option: load-kmod");
	memset(words, ' ', NVC_ARG_MAX);
	words[NVC_ARG_MAX] = '\0';
	assert_int_equal(nvc_init(ctx, NULL, words), -1);
	assert_string_equal(nvc_error(ctx), "too many options");
	nvc_config_free(config);
	nvc_context_free(ctx);
}

static void test_no_driver(void **state)
{
	char root[] = "/tmp/graft-nvc-XXXXXX";
	struct nvc_context *ctx = nvc_context_new();
	struct nvc_config *config = nvc_config_new();

	assert_non_null(mkdtemp(root));
	config->root = root;
	assert_int_equal(nvc_init(ctx, config, NULL), -1);
	assert_non_null(strstr(nvc_error(ctx),
			       "load library failed: libnvidia-ml.so.1: cannot open shared object file: no "
			       "such file or directory"));
	/* It is as it was: another try is another try, and nothing is left to shut down. */
	assert_int_equal(nvc_init(ctx, config, NULL), -1);
	assert_int_equal(nvc_shutdown(ctx), 0);
	assert_non_null(nvc_error(ctx));
	assert_int_equal(rmdir(root), 0);
	nvc_config_free(config);
	nvc_context_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),         cmocka_unit_test(test_version),
		cmocka_unit_test(test_lifetimes),      cmocka_unit_test(test_uninitialised),
		cmocka_unit_test(test_init_arguments), cmocka_unit_test(test_no_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
