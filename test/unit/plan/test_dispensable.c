/* SPDX-License-Identifier: Apache-2.0 */
/* dispensable: each kind of file that a container does without, and the neighbours that it needs. */
#include <stdio.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "host/catalog.h"
#include "plan/dispensable.h"

static void test_rows(void **state)
{
	static const struct {
		const char *path;
		bool dispensable;
	} rows[] = {
		{ "/etc/OpenCL/vendors/nvidia.icd", true },
		{ "/run/opengl-driver/etc/OpenCL/vendors/nvidia.icd", true },
		{ "/etc/vulkan/icd.d/nvidia_icd.json", true },
		{ "/usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json", true },
		{ "/usr/share/glvnd/egl_vendor.d/10_nvidia.json", true },
		{ "/usr/share/nvidia/nvoptix.bin", true },
		{ "/usr/bin/nvidia-imex", true },
		{ "/usr/bin/nvidia-imex-ctl", true },
		{ "/usr/lib64/libnvidia-egl-gbm.so.1.1.1", true },
		{ "/usr/lib64/libnvidia-egl-wayland2.so.1", true },
		{ "/usr/lib64/libnvidia-nvvm70.so.4", true },
		{ "/usr/lib/xorg/modules/extensions/libglxserver_nvidia.so.550.54.14", true },
		{ "/usr/lib64/libnvidia-egl-xcb.so.1.0.5", true },
		{ "/usr/share/egl/egl_external_platform.d/20_nvidia_xlib.json", true },
		{ "/usr/bin/nvidia-xconfig", true },
		{ "/lib/firmware/nvidia/615.71/ucodes_ga10x.bin", true },
		{ "/lib/firmware/nvidia/615.71/ucodes_ga10x.txt", false },
		{ "/usr/bin/nvidia-smi", false },
		{ "/usr/bin/nvidia-imex-other", false },
		{ "/usr/bin/nv-fabricmanager", false },
		{ "/usr/lib64/libcuda.so.550.54.14", false },
		{ "/usr/lib64/libnvidia-nvvm.so.4", false },
		{ "/usr/lib64/libGL.so.1", false },
		{ "/usr/lib64/libGLX.so.0", false }, /* only if an administrator asks for it */
		{ "/lib/firmware/nvidia/550.54.14/gsp_ga10x.bin", false },
		{ "/run/nvidia-persistenced/socket", false },
		{ "/etc/OpenCL/vendors/other.icd", false },
		{ "OpenCL/vendors/nvidia.icd", false },
		{ "/notOpenCL/vendors/nvidia.icd", false },
		{ "/etc/cufile.json", false },
		{ "", false },
		{ NULL, false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		print_message("# %s\n", rows[i].path ? rows[i].path : "none");
		assert_int_equal(graft_is_dispensable(rows[i].path), rows[i].dispensable);
	}
}

/* Whatever the existing command line lists has to be there. */
static void test_what_the_command_line_lists(void **state)
{
	char path[128];

	for (size_t i = 0; i < graft_n_catalog_libraries; i++) {
		(void)snprintf(path, sizeof(path), "/usr/lib64/%s.1", graft_catalog_libraries[i].prefix);
		assert_false(graft_is_dispensable(path));
	}
	for (size_t i = 0; i < graft_n_catalog_binaries; i++) {
		(void)snprintf(path, sizeof(path), "/usr/bin/%s", graft_catalog_binaries[i].name);
		assert_int_equal(graft_is_dispensable(path), graft_catalog_binaries[i].needs != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_what_the_command_line_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
