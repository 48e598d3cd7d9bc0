/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "plan/loader_search.h"
#include "planned.h"

static int setup(void **state)
{
	fixture_init(&f);
	return 0;
}

static void refuse_selection(const char *devices)
{
	struct graft_request *request = graft_request_new();
	struct graft_arena *arena = graft_arena_new(1 << 20);
	struct graft_selection selection;
	struct graft_error err = { .status = GRAFT_OK };

	assert_int_equal(graft_request_devices(request, devices, &err), 0);
	assert_int_equal(graft_select(&f.inventory, request, arena, &selection, &err), -1);
	assert_int_equal(err.status, GRAFT_UNKNOWN_DEVICE);
	assert_string_printed(err.msg, "%s: unknown device", devices);
	(void)graft_request_free(request);
	(void)graft_arena_free(arena);
}

static bool allows(const struct graft_plan *plan, uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		if (plan->edits[i].kind == GRAFT_EDIT_CGROUP && plan->edits[i].major == major &&
		    plan->edits[i].minor == minor)
			return true;
	}
	return false;
}

/* What holds for every plan. */
static void check_invariants(const struct graft_plan *plan)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];
		bool mounts = edit->kind == GRAFT_EDIT_BIND || edit->kind == GRAFT_EDIT_DEVICE ||
			      edit->kind == GRAFT_EDIT_TMPFS;

		assert_non_null(edit->rule);
		assert_non_null(edit->why);
		assert_true(strlen(edit->rule) > 2 && strlen(edit->why) > 10);
		assert_null(strchr(edit->rule, ' '));
		if (mounts || edit->kind == GRAFT_EDIT_FILE || edit->kind == GRAFT_EDIT_SYMLINK) {
			assert_non_null(edit->target);
			assert_int_equal(edit->target[0], '/');
			assert_null(strstr(edit->target, "//"));
			assert_null(strstr(edit->target, ".."));
		}
		if (mounts) {
			/* SPEC libnvidia-container 11, invariant 6 */
			assert_true((edit->flags & GRAFT_MOUNT_NOSUID) != 0);
			assert_true(edit->mode != 0);
		}
		if (edit->kind == GRAFT_EDIT_BIND) {
			bool node_directory = strcmp(edit->target, "/dev/nvidia-caps") == 0;

			assert_non_null(edit->source);
			assert_true((edit->flags & GRAFT_MOUNT_NODEV) != 0 || node_directory);
			assert_true((edit->flags & GRAFT_MOUNT_RDONLY) != 0 || strcmp(edit->rule, "ipc") == 0 ||
				    node_directory);
		}
		if (edit->kind == GRAFT_EDIT_DEVICE) {
			assert_int_equal(edit->flags, GRAFT_MOUNT_RDONLY | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NOEXEC);
			assert_non_null(edit->source);
		}
		if (edit->kind == GRAFT_EDIT_CGROUP)
			assert_string_equal(edit->access, "rw"); /* never "m" */
		if (edit->kind == GRAFT_EDIT_SYMLINK) {
			bool replaces = edit->conflict == GRAFT_CONFLICT_REPLACE;

			assert_int_equal(replaces, edit->source != NULL);
			/* it may become a bind over a file of the image */
			assert_int_equal(edit->flags,
					 replaces ? GRAFT_MOUNT_RDONLY | GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOSUID : 0);
		}
		assert_int_equal(edit->kind == GRAFT_EDIT_LDCACHE, i == plan->n_edits - 1);
		for (size_t j = 0; j < i && edit->target; j++) {
			const struct graft_edit *other = &plan->edits[j];
			bool same = other->target && strcmp(other->target, edit->target) == 0;
			bool layered = other->kind == GRAFT_EDIT_DIRECTORY && edit->kind == GRAFT_EDIT_TMPFS;

			if (same && !layered)
				fail_msg("two edits for %s", edit->target);
		}
	}
	for (size_t i = 0; i < plan->n_refusals; i++) {
		assert_non_null(plan->refusals[i].what);
		assert_non_null(plan->refusals[i].why);
		assert_true(strlen(plan->refusals[i].why) > 10);
	}
}

/* SPEC libnvidia-container 9.4 to 9.7: the order that callers who read mounts know. */
static void test_order(void **state)
{
	static const char *const order[] = { "procfs-view",  "application-profile", "binary",
					     "library",      "library32",           "soname-link",
					     "library-link", "extra-file",          "firmware",
					     "ipc",          "driver-node",         "gpu",
					     "mig-",         "imex-channel",        "loader-cache" };
	size_t at = 0;

	make("all", "all", NULL);
	assert_int_equal(r.result, 0);
	check_invariants(r.plan);
	for (size_t i = 0; i < r.plan->n_edits; i++) {
		const char *rule = r.plan->edits[i].rule;

		while (at < GRAFT_COUNT(order) && strncmp(rule, order[at], strlen(order[at])) != 0)
			at++;
		if (at == GRAFT_COUNT(order))
			fail_msg("edit %zu of rule %s is out of order", i, rule);
		if (r.plan->edits[i].kind == GRAFT_EDIT_DEVICE) {
			assert_int_equal(r.plan->edits[i + 1].kind, GRAFT_EDIT_CGROUP);
			assert_int_equal(r.plan->edits[i + 1].major, r.plan->edits[i].major);
			assert_int_equal(r.plan->edits[i + 1].minor, r.plan->edits[i].minor);
		}
	}
}

static void test_procfs_view(void **state)
{
	const struct graft_edit *edit;

	f.inventory.proc_root = "/host";
	make("2", NULL, NULL);
	edit = expect(r.plan, GRAFT_EDIT_TMPFS, "/proc/driver/nvidia");
	assert_int_equal(edit->mode, 0555);
	assert_int_equal(edit->flags, GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NOEXEC);
	edit = expect(r.plan, GRAFT_EDIT_FILE, "/proc/driver/nvidia/params");
	assert_string_equal(edit->content, "A: 1\nModifyDeviceFiles: 0\nB: 2\n");
	assert_int_equal(edit->mode, 0444);
	assert_string_equal(f.proc_files[0].content, "A: 1\nModifyDeviceFiles: 1\nB: 2\n");
	assert_string_equal(expect(r.plan, GRAFT_EDIT_FILE, "/proc/driver/nvidia/version")->content,
			    f.proc_files[1].content);
	edit = expect(r.plan, GRAFT_EDIT_BIND, "/proc/driver/nvidia/gpus/0001:1b:00.0");
	assert_string_equal(edit->source, "/host/proc/driver/nvidia/gpus/0001:1b:00.0");
	assert_int_equal(edit->type, GRAFT_SOURCE_DIRECTORY);
	assert_null(find(r.plan, GRAFT_EDIT_BIND, "/proc/driver/nvidia/gpus/0000:1b:00.0"));

	/* no kernel driver: one level up */
	f.policy.image.proc_driver_nvidia = false;
	make("2", NULL, NULL);
	(void)expect(r.plan, GRAFT_EDIT_TMPFS, "/proc/driver");
	assert_int_equal(expect(r.plan, GRAFT_EDIT_DIRECTORY, "/proc/driver/nvidia")->mode, 0555);
	assert_null(find(r.plan, GRAFT_EDIT_TMPFS, "/proc/driver/nvidia"));

	/* a GPU that has fallen off the bus may have lost its directory */
	f.gpus[2].procfs_path = NULL;
	make("2", NULL, NULL);
	assert_non_null(refusal(r.plan, "procfs directory of GPU 2"));

	/* no place to mount it: reported, and nothing is put below it */
	f.policy.image.proc_driver = false;
	make("all", NULL, NULL);
	assert_non_null(refusal(r.plan, "procfs view"));
	for (size_t i = 0; i < r.plan->n_edits; i++)
		assert_true(!r.plan->edits[i].target || strncmp(r.plan->edits[i].target, "/proc", 5) != 0);
	check_invariants(r.plan);
}

static void test_application_profile(void **state)
{
	const struct graft_edit *edit;

	make("0,2", "graphics", NULL);
	(void)expect(r.plan, GRAFT_EDIT_TMPFS, "/etc/nvidia/nvidia-application-profiles-rc.d");
	edit = expect(r.plan, GRAFT_EDIT_FILE, "/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf");
	assert_string_equal(edit->content, "{ \"profiles\": [{\"name\": \"_container_\", \"settings\": "
					   "[\"EGLVisibleDGPUDevices\", 0x81]}], \"rules\": [{\"pattern\": [], "
					   "\"profile\": \"_container_\"}]}");
	assert_int_equal(edit->mode, 0555);

	f.gpus[0].node.minor = 63;
	f.gpus[2].node.minor = 64;
	make("0,2", "display", NULL);
	edit = expect(r.plan, GRAFT_EDIT_FILE, "/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf");
	assert_non_null(strstr(edit->content, "0x8000000000000000]"));
	assert_non_null(refusal(r.plan, "EGL on GPU 2 (minor 64)"));

	make("0", "compute,utility,video,ngx,compat32", NULL);
	assert_null(find(r.plan, GRAFT_EDIT_TMPFS, "/etc/nvidia/nvidia-application-profiles-rc.d"));
}

/* Which capability brings which file along. */
static void test_capabilities(void **state)
{
#define LIBS "/usr/lib/x86_64-linux-gnu/"
	static const struct {
		const char *capability;
		const char *gets; /* first letters, as in `all` */
	} rows[] = {
		{ "utility", "usp" },   { "compute", "cCmOUk" }, { "video", "cOUvk" }, { "graphics", "glGi" },
		{ "display", "glGiM" }, { "ngx", "n" },          { "compat32", "" },
	};
	static const struct {
		char letter;
		const char *target;
	} all[] = {
		{ 'u', LIBS "libnvidia-ml.so.550.54.14" },
		{ 's', "/usr/bin/nvidia-smi" },
		{ 'p', "/run/nvidia-persistenced/socket" },
		{ 'c', LIBS "libcuda.so.550.54.14" },
		{ 'C', "/usr/bin/nvidia-cuda-mps-control" },
		{ 'm', "/tmp/nvidia-mps" },
		{ 'O', "/etc/OpenCL/vendors/nvidia.icd" },
		{ 'U', "/dev/nvidia-uvm" },
		{ 'k', LIBS "libcuda.so" },
		{ 'v', LIBS "libnvidia-opticalflow.so.550.54.14" },
		{ 'g', LIBS "libnvidia-glcore.so.550.54.14" },
		{ 'l', LIBS "libGLX_nvidia.so.550.54.14" },
		{ 'G', LIBS "libGL.so.1.550" },
		{ 'i', "/etc/vulkan/icd.d/nvidia_icd.json" },
		{ 'M', "/dev/nvidia-modeset" },
		{ 'n', LIBS "libnvidia-ngx.so.550.54.14" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		make("0", rows[i].capability, NULL);
		check_invariants(r.plan);
		for (size_t j = 0; j < GRAFT_COUNT(all); j++) {
			bool wanted = strchr(rows[i].gets, all[j].letter) != NULL;
			bool got = find(r.plan, GRAFT_EDIT_BIND, all[j].target) ||
				   find(r.plan, GRAFT_EDIT_DEVICE, all[j].target) ||
				   find(r.plan, GRAFT_EDIT_SYMLINK, all[j].target);

			if (wanted != got)
				fail_msg("%s with %s: %d", all[j].target, rows[i].capability, got);
		}
		/* always, whatever was asked for */
		(void)expect(r.plan, GRAFT_EDIT_DEVICE, "/dev/nvidiactl");
		(void)expect(r.plan, GRAFT_EDIT_BIND, f.firmwares[0]);
		assert_int_equal(r.plan->edits[r.plan->n_edits - 1].kind, GRAFT_EDIT_LDCACHE);
	}
}

static void test_library_links(void **state)
{
	const struct graft_edit *edit;

	f.inventory.root = "/run/driver/";
	make("0", "compute,graphics,video,compat32", NULL);
	check_invariants(r.plan);
	edit = expect(r.plan, GRAFT_EDIT_BIND, LIBS "libcuda.so.550.54.14");
	assert_string_equal(edit->source, "/run/driver/usr/lib/libcuda.so.550.54.14");
	assert_int_equal(edit->flags, GRAFT_MOUNT_RDONLY | GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOSUID);
	assert_non_null(refusal(r.plan, "/opt/lib/libcuda.so.550.54.14"));
	edit = expect(r.plan, GRAFT_EDIT_SYMLINK, LIBS "libcuda.so.1");
	assert_string_equal(edit->content, "libcuda.so.550.54.14");
	assert_string_equal(edit->source, "/run/driver/usr/lib/libcuda.so.550.54.14");
	assert_int_equal(edit->conflict, GRAFT_CONFLICT_REPLACE);
	edit = expect(r.plan, GRAFT_EDIT_SYMLINK, LIBS "libcuda.so");
	assert_string_equal(edit->content, "libcuda.so.1");
	assert_int_equal(edit->conflict, GRAFT_CONFLICT_KEEP);
	assert_string_equal(expect(r.plan, GRAFT_EDIT_SYMLINK, LIBS "libGLX_indirect.so.0")->content,
			    "libGLX_nvidia.so.550.54.14");
	assert_string_equal(expect(r.plan, GRAFT_EDIT_SYMLINK, LIBS "libnvidia-opticalflow.so")->content,
			    "libnvidia-opticalflow.so.1");
	/* its soname is its file name: a link would replace the library */
	assert_null(find(r.plan, GRAFT_EDIT_SYMLINK, LIBS "libnvidia-glcore.so.550.54.14"));
	/* 32 bit likewise, elsewhere */
	(void)expect(r.plan, GRAFT_EDIT_BIND, "/usr/lib/i386-linux-gnu/libcuda.so.550.54.14");
	(void)expect(r.plan, GRAFT_EDIT_SYMLINK, "/usr/lib/i386-linux-gnu/libcuda.so.1");
	(void)expect(r.plan, GRAFT_EDIT_SYMLINK, "/usr/lib/i386-linux-gnu/libcuda.so");
	(void)expect(r.plan, GRAFT_EDIT_SYMLINK, "/usr/lib/i386-linux-gnu/libGLX_indirect.so.0");
}

/* SPEC libnvidia-container 9.2 */
static void test_targets(void **state)
{
	static const struct {
		const char *machine;
		struct graft_image image;
		const char *libs, *libs32;
	} rows[] = {
		{ "x86_64", { .debian = true }, "/usr/lib/x86_64-linux-gnu", "/usr/lib/i386-linux-gnu" },
		{ "aarch64", { .debian = true }, "/usr/lib/aarch64-linux-gnu", "/var/empty" },
		{ "ppc64le", { .debian = true }, "/usr/lib/powerpc64le-linux-gnu", "/var/empty" },
		{ "x86_64", { .usr_lib32 = true, .usr_lib = true }, "/usr/lib64", "/usr/lib32" },
		{ "x86_64", { .usr_lib = true }, "/usr/lib64", "/usr/lib" },
		{ "x86_64", { .usr_lib = true, .usr_lib_is_usr_lib64 = true }, "/usr/lib64", "/usr/lib32" },
		{ "x86_64", { .debian = false }, "/usr/lib64", "/usr/lib32" },
		{ "riscv64", { .debian = true }, "/usr/lib64", "/usr/lib32" },
		{ NULL, { .debian = true }, "/usr/lib64", "/usr/lib32" },
	};
	char path[256];

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		f.inventory.machine = rows[i].machine;
		f.policy = (struct graft_policy){ .image = rows[i].image };
		make("0", "compute,compat32", NULL);
		(void)snprintf(path, sizeof(path), "%s/libcuda.so.550.54.14", rows[i].libs);
		(void)expect(r.plan, GRAFT_EDIT_BIND, path);
		(void)snprintf(path, sizeof(path), "%s/libcuda.so.550.54.14", rows[i].libs32);
		(void)expect(r.plan, GRAFT_EDIT_BIND, path);
	}
	f.policy = (struct graft_policy){ .bins_dir = "/b/", .libs_dir = "/l//", .libs32_dir = "/" };
	make("0", "compute,utility,compat32", NULL);
	check_invariants(r.plan);
	(void)expect(r.plan, GRAFT_EDIT_BIND, "/b/nvidia-smi");
	(void)expect(r.plan, GRAFT_EDIT_BIND, "/l/libnvidia-ml.so.550.54.14");
	(void)expect(r.plan, GRAFT_EDIT_BIND, "/libcuda.so.550.54.14");
}

static void test_devices(void **state)
{
	const struct graft_edit *edit;

	f.inventory.dev_root = "/run/driver";
	make("2", "compute", NULL);
	edit = expect(r.plan, GRAFT_EDIT_DEVICE, "/dev/nvidia7");
	assert_string_equal(edit->source, "/run/driver/dev/nvidia7");
	assert_int_equal(edit->major, 195);
	assert_int_equal(edit->minor, 7);
	assert_true(allows(r.plan, 195, 7));
	assert_true(allows(r.plan, 195, 255));
	assert_true(allows(r.plan, 510, 1));
	assert_false(allows(r.plan, 195, 0));
	assert_false(allows(r.plan, 195, 254));
	assert_int_equal(r.plan->n_grants, 1);
	assert_int_equal(r.plan->grants[0].index, 2);
	assert_int_equal(r.plan->grants[0].minor, 7);
	assert_string_equal(r.plan->grants[0].uuid, "GPU-cccc");

	/* a node that is gone: an error with its name where it is needed, a word where it is not */
	f.gpus[2].node.present = false;
	make("2", "compute", NULL);
	assert_int_equal(r.result, -1);
	assert_null(r.plan);
	assert_int_equal(r.err.status, GRAFT_NOT_FOUND);
	assert_string_equal(r.err.msg, "stat failed: /dev/nvidia7");
	f.nodes[3].present = false;
	make("0", "display", NULL);
	assert_int_equal(r.result, 0);
	assert_non_null(refusal(r.plan, "/dev/nvidia-modeset"));
	f.nodes[0].present = false;
	make("", "utility", NULL);
	assert_int_equal(r.result, 0);
	assert_non_null(refusal(r.plan, "/dev/nvidiactl"));
	make("0", "utility", NULL);
	assert_int_equal(r.result, -1);
	assert_string_equal(r.err.msg, "stat failed: /dev/nvidiactl");
}

static void no_cgroups(struct graft_request *request)
{
	request->no_cgroups = true;
}

static void no_devbind(struct graft_request *request)
{
	request->no_devbind = true;
}

static void no_daemons(struct graft_request *request)
{
	request->no_persistenced = request->no_fabricmanager = request->no_gsp_firmware = true;
}

static size_t count(const struct graft_plan *plan, enum graft_edit_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_edits; i++)
		n += plan->edits[i].kind == kind;
	return n;
}

static void test_exclusions(void **state)
{
	make("all", "all", no_cgroups);
	assert_int_equal(count(r.plan, GRAFT_EDIT_CGROUP), 0);
	assert_true(count(r.plan, GRAFT_EDIT_DEVICE) > 6);
	assert_non_null(refusal(r.plan, "device rules"));

	f.nodes[0].present = f.gpus[0].node.present = false; /* nobody looks at them */
	make("0,1:0", "all", no_devbind);
	assert_int_equal(r.result, 0);
	assert_int_equal(count(r.plan, GRAFT_EDIT_DEVICE), 0);
	assert_true(allows(r.plan, 195, 0));
	assert_true(allows(r.plan, 234, 10));
	assert_non_null(refusal(r.plan, "device nodes"));

	fixture_init(&f);
	make("0", "all", no_daemons);
	assert_null(find(r.plan, GRAFT_EDIT_BIND, "/run/nvidia-persistenced/socket"));
	assert_null(find(r.plan, GRAFT_EDIT_BIND, "/run/nvidia-fabricmanager/socket"));
	assert_null(find(r.plan, GRAFT_EDIT_BIND, f.firmwares[0]));
	assert_int_equal(expect(r.plan, GRAFT_EDIT_BIND, "/tmp/nvidia-mps")->type, GRAFT_SOURCE_DIRECTORY);
	assert_non_null(refusal(r.plan, "gsp_ga10x.bin"));
	assert_non_null(refusal(r.plan, "nvidia-persistenced"));

	f.policy.user_namespace = true;
	make("0", "all", NULL);
	assert_int_equal(count(r.plan, GRAFT_EDIT_CGROUP), 0);
	assert_non_null(refusal(r.plan, "device rules"));
}

static void test_sockets_are_writable_and_optional(void **state)
{
	const struct graft_edit *edit;

	make("", "utility,compute", NULL);
	edit = expect(r.plan, GRAFT_EDIT_BIND, "/run/nvidia-persistenced/socket");
	assert_int_equal(edit->type, GRAFT_SOURCE_SOCKET);
	assert_int_equal(edit->flags, GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NOEXEC);
	assert_true(edit->optional);
	assert_true(expect(r.plan, GRAFT_EDIT_BIND, "/tmp/nvidia-mps")->optional);
	for (size_t i = 0; i < r.plan->n_edits; i++)
		assert_int_equal(r.plan->edits[i].optional, strcmp(r.plan->edits[i].rule, "ipc") == 0);
}

/* What the command line of the existing stack does not give may find no place in the container. */
static void test_dispensable(void **state)
{
	static const struct {
		enum graft_edit_kind kind;
		const char *target;
		bool dispensable;
	} rows[] = {
		{ GRAFT_EDIT_BIND, "/etc/OpenCL/vendors/nvidia.icd", true },
		{ GRAFT_EDIT_BIND, "/etc/vulkan/icd.d/nvidia_icd.json", true },
		{ GRAFT_EDIT_BIND, "/usr/bin/nvidia-smi", false },
		{ GRAFT_EDIT_BIND, "/tmp/nvidia-mps", false },
	};

	make("0", "all", NULL);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_edit *edit = expect(r.plan, rows[i].kind, rows[i].target);

		assert_true(edit && edit->dispensable == rows[i].dispensable);
	}
	for (size_t i = 0; i < r.plan->n_edits; i++)
		if (r.plan->edits[i].kind != GRAFT_EDIT_BIND && r.plan->edits[i].kind != GRAFT_EDIT_SYMLINK)
			assert_false(r.plan->edits[i].dispensable);
}

static void test_mig_devices(void **state)
{
	static const char access[] = "/proc/driver/nvidia/capabilities/gpu1/mig/gi1/access";

	make("1:0", "utility", NULL);
	check_invariants(r.plan);
	assert_int_equal(expect(r.plan, GRAFT_EDIT_BIND, access)->flags,
			 GRAFT_MOUNT_RDONLY | GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NOEXEC);
	(void)expect(r.plan, GRAFT_EDIT_BIND, "/proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0/access");
	(void)expect(r.plan, GRAFT_EDIT_DEVICE, "/dev/nvidia-caps/nvidia-cap10");
	(void)expect(r.plan, GRAFT_EDIT_DEVICE, "/dev/nvidia-caps/nvidia-cap11");
	(void)expect(r.plan, GRAFT_EDIT_DEVICE, "/dev/nvidia1");
	assert_true(allows(r.plan, 234, 11));
	assert_false(allows(r.plan, 234, 20));
	assert_null(find(r.plan, GRAFT_EDIT_DEVICE, "/dev/nvidia-caps/nvidia-cap20"));
	assert_null(refusal(r.plan, "MIG devices of GPU"));
	assert_int_equal(r.plan->n_grants, 2);
	assert_true(r.plan->grants[1].mig);
	assert_string_equal(r.plan->grants[1].uuid, "MIG-1111");

	make("1", "utility", NULL);
	assert_null(find(r.plan, GRAFT_EDIT_BIND, access));
	assert_false(allows(r.plan, 234, 10));
	assert_non_null(refusal(r.plan, "MIG devices of GPU 1"));

	/* a node that is gone is an error with the device's name */
	f.migs[0].ci_node.present = false;
	make("1:0", "utility", NULL);
	assert_int_equal(r.result, -1);
	assert_string_equal(r.err.msg, "stat failed: /dev/nvidia-caps/nvidia-cap11");
	assert_string_equal(r.err.ctx, "MIG device 1:0");

	/* older drivers: files only */
	f.inventory.caps_devices = false;
	make("1:0", "utility", NULL);
	(void)expect(r.plan, GRAFT_EDIT_BIND, access);
	assert_false(allows(r.plan, 234, 10));
}

static void mig_config(struct graft_request *request)
{
	request->mig_config = true;
}

static void mig_both(struct graft_request *request)
{
	request->mig_config = request->mig_monitor = true;
}

static void test_mig_config(void **state)
{
	const struct graft_edit *edit;

	make("all", "utility", mig_config);
	check_invariants(r.plan);
	edit = expect(r.plan, GRAFT_EDIT_BIND, "/proc/driver/nvidia/capabilities");
	assert_int_equal(edit->type, GRAFT_SOURCE_DIRECTORY);
	edit = expect(r.plan, GRAFT_EDIT_BIND, "/dev/nvidia-caps");
	assert_int_equal(edit->flags, GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NOEXEC); /* writable: nodes appear in it */
	assert_true(allows(r.plan, 234, 1));
	assert_false(allows(r.plan, 234, 2));
	assert_true(allows(r.plan, 234, 10)); /* of caps_nodes */
	assert_false(allows(r.plan, 234, 20));
	/* it replaces access to single devices */
	assert_null(find(r.plan, GRAFT_EDIT_BIND, "/proc/driver/nvidia/capabilities/gpu1/mig/gi1/access"));

	make("all", "utility", mig_both);
	check_invariants(r.plan); /* among them: the directories are mounted once */
	assert_true(allows(r.plan, 234, 1));
	assert_true(allows(r.plan, 234, 2));

	make("0", "utility", mig_config);
	assert_null(find(r.plan, GRAFT_EDIT_BIND, "/proc/driver/nvidia/capabilities"));
	assert_false(allows(r.plan, 234, 1));
	assert_non_null(refusal(r.plan, "MIG configuration"));
}

static struct graft_imex_channel channels[3];
static size_t n_channels;

static void with_channels(struct graft_request *request)
{
	request->imex_channels = channels;
	request->n_imex_channels = n_channels;
}

static void test_imex_channels(void **state)
{
	channels[0].id = channels[1].id = 0;
	n_channels = 2;
	make("0", NULL, with_channels);
	check_invariants(r.plan);
	(void)expect(r.plan, GRAFT_EDIT_DEVICE, "/dev/nvidia-caps-imex-channels/channel0");
	assert_true(allows(r.plan, 233, 0));
	for (unsigned int id = 5; id < 7; id++) { /* listed without its node; not listed */
		char text[128];

		channels[1].id = id;
		(void)snprintf(text, sizeof(text), "stat failed: /dev/nvidia-caps-imex-channels/channel%u", id);
		make("0", NULL, with_channels);
		assert_int_equal(r.result, -1);
		assert_int_equal(r.err.status, GRAFT_NOT_FOUND);
		assert_string_equal(r.err.msg, text);
	}
}

static const struct graft_edit *cache_of(const struct graft_plan *plan)
{
	return &plan->edits[plan->n_edits - 1];
}

static void test_loader_cache(void **state)
{
	static const char *loader_dirs[] = { "/lib", "/usr/lib/x86_64-linux-gnu/" };
	static const char *added_dirs[] = { "/usr/local/cuda/compat", "/usr/lib/i386-linux-gnu" };
	const struct graft_edit *edit;

	f.policy.image.loader_dirs = loader_dirs;
	f.policy.image.n_loader_dirs = 2;
	make("0", "compute,compat32", NULL);
	edit = cache_of(r.plan);
	assert_int_equal(edit->n_entries, 2); /* one per soname and list, though three libraries have it */
	assert_string_equal(edit->entries[0].soname, "libcuda.so.1");
	assert_string_equal(edit->entries[0].path, LIBS "libcuda.so.1");
	assert_int_equal(edit->entries[0].abi_flags, 0x303);
	assert_string_equal(edit->entries[1].path, "/usr/lib/i386-linux-gnu/libcuda.so.1");
	assert_int_equal(edit->entries[1].abi_flags, 0x003);
	assert_int_equal(edit->n_folders, 2);
	assert_int_equal(edit->n_missing_folders, 1);
	assert_string_equal(edit->missing_folders[0], "/usr/lib/i386-linux-gnu");
	assert_null(edit->musl_path_file);

	/* What was added before is as missing as it was then. */
	f.policy.image.added_dirs = added_dirs;
	f.policy.image.n_added_dirs = 2;
	assert_true(graft_loader_was_added(&f.policy.image, "/usr/lib/i386-linux-gnu/"));
	assert_false(graft_loader_was_added(&f.policy.image, "/lib"));
	make("0", "compute,compat32", NULL);
	assert_int_equal(cache_of(r.plan)->n_missing_folders, 1);
	assert_string_equal(cache_of(r.plan)->missing_folders[0], "/usr/lib/i386-linux-gnu");

	make("", NULL, NULL);
	assert_int_equal(cache_of(r.plan)->kind, GRAFT_EDIT_LDCACHE);
	assert_int_equal(cache_of(r.plan)->n_entries, 0);
}

static void test_musl_path(void **state)
{
	static const struct {
		const char *path, *wanted;
	} rows[] = {
		{ NULL, "/lib\n/usr/local/lib\n/usr/lib\n/usr/lib64\n" },
		{ "", "/usr/lib64\n" },
		{ "/lib:/usr/lib\n", "/lib:/usr/lib\n/usr/lib64\n" },
		{ "/lib\n/usr/lib", "/lib\n/usr/lib\n/usr/lib64\n" },
		{ "/lib:/usr/lib64/:/x", "/lib:/usr/lib64/:/x" },
		{ "/lib\n/usr/lib64\n", "/lib\n/usr/lib64\n" },
		{ "/usr/lib64a\n", "/usr/lib64a\n/usr/lib64\n" },
	};

	f.policy.image.debian = false;
	f.policy.image.libc = GRAFT_LIBC_MUSL;
	f.policy.image.musl_path_file = "/etc/ld-musl-x86_64.path";
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		f.policy.image.musl_path = rows[i].path;
		make("0", "compute", NULL);
		assert_string_equal(cache_of(r.plan)->musl_path_file, "/etc/ld-musl-x86_64.path");
		assert_string_equal(cache_of(r.plan)->musl_path, rows[i].wanted);
		assert_int_equal(cache_of(r.plan)->n_entries, 0);
	}
}

/* Links for development of an image's library. */
static const char *cuda_links[] = { "libcuda.so" };

static enum graft_compat_mode mode;

static void with_mode(struct graft_request *request)
{
	request->compat_mode = mode;
}

static void test_compat_libraries(void **state)
{
	static struct graft_compat_library compat[] = {
		{ "/c/libcuda.so.1000.1", "libcuda.so.1", 0x303, 1000 },
		{ "/c/libcuda.so.550.54.14", "libcuda.so.1", 0x303, 550 },
		{ "/c/libcuda.so.99.1", "libcuda.so.1", 0x303, 99 },
		{ "/c/libcuda.so.x", "libcuda.so.1", 0x303, 0 },
		{ "/c/libnvidia-ml.so.560.1", "libnvidia-ml.so.1", 0x303, 560 },
		{ "/c/libevil.so.560.1", "libevil.so.1", 0x303, 560 },
		{ "/c/nosoname.so.560.1", NULL, 0x303, 560 },
		{ "/d/libcuda.so.560.1", "libcuda.so.1", 0x303, 560 },
		{ "/libcuda.so.560.1", "libcuda.so.1", 0x303, 560 },
		/* older, but the driver has none: used where the existing stack would mount it */
		{ "/d/libnvidia-nvvm.so.99.1", "libnvidia-nvvm.so.4", 0x303, 99 },
	};
	static const struct {
		enum graft_compat_mode mode;
		const char *capabilities;
		const char *wanted; /* paths of the entries before the driver's own */
	} rows[] = {
		{ GRAFT_COMPAT_MOUNT, "compute",
		  "/c/libcuda.so.1000.1 /d/libcuda.so.560.1 /libcuda.so.560.1 /d/libnvidia-nvvm.so.99.1 " },
		{ GRAFT_COMPAT_LDCONFIG, "compute", "/c/libcuda.so.1000.1 " },
		{ GRAFT_COMPAT_MOUNT, "compute,utility",
		  "/c/libcuda.so.1000.1 /c/libnvidia-ml.so.560.1 /d/libcuda.so.560.1 /libcuda.so.560.1 "
		  "/d/libnvidia-nvvm.so.99.1 " },
		{ GRAFT_COMPAT_DISABLED, "compute", "" },
		{ GRAFT_COMPAT_MOUNT, "utility,video", "" },
	};

	f.policy.image.compat = compat;
	f.policy.image.n_compat = GRAFT_COUNT(compat);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_buffer text = { 0 };
		const struct graft_edit *edit;
		size_t n_used = 0, n_refused = 0;

		mode = rows[i].mode;
		make("0", rows[i].capabilities, with_mode);
		check_invariants(r.plan);
		edit = cache_of(r.plan);
		while (n_used < edit->n_entries && strncmp(edit->entries[n_used].path, LIBS, strlen(LIBS)) != 0)
			graft_buffer_printf(&text, "%s ", edit->entries[n_used++].path);
		assert_string_equal(graft_buffer_text(&text), rows[i].wanted);
		for (size_t j = n_used; j < edit->n_entries; j++)
			assert_int_equal(strncmp(edit->entries[j].path, LIBS, strlen(LIBS)), 0);
		for (size_t j = 0; j < r.plan->n_refusals; j++)
			n_refused += strstr(r.plan->refusals[j].what, "compatibility library") != NULL;
		assert_int_equal(n_used + n_refused, GRAFT_COUNT(compat)); /* each is used or refused */
		/* SECURITY: nothing of the image is ever mounted */
		for (size_t j = 0; j < r.plan->n_edits; j++)
			assert_true(!r.plan->edits[j].source || (strncmp(r.plan->edits[j].source, "/c/", 3) != 0 &&
								 strncmp(r.plan->edits[j].source, "/d/", 3) != 0));
		if (n_used > 2)
			assert_string_equal(edit->folders[edit->n_folders - 2],
					    "/"); /* of a file in the root directory */
		graft_buffer_done(&text);
	}
}

/* By the name of a link the loader finds what it finds by the soname: the image's, or the driver's for both. */
static void test_compat_development_links(void **state)
{
	static struct graft_compat_library compat[] = {
		{ "/c/libcuda.so.560.1", "libcuda.so.1", 0x303, 560, .development_links = cuda_links,
		  .n_development_links = 1 },
	};
	static const struct {
		enum graft_compat_mode mode;
		uint32_t major;
		bool used;
	} rows[] = {
		{ GRAFT_COMPAT_MOUNT, 560, true },     { GRAFT_COMPAT_LDCONFIG, 560, true },
		{ GRAFT_COMPAT_MOUNT, 550, false },    { GRAFT_COMPAT_LDCONFIG, 550, false },
		{ GRAFT_COMPAT_DISABLED, 560, false },
	};

	f.policy.image.compat = compat;
	f.policy.image.n_compat = GRAFT_COUNT(compat);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_edit *edit;
		size_t n_found = 0;

		mode = rows[i].mode;
		compat[0].major = rows[i].major;
		make("0", "compute", with_mode);
		check_invariants(r.plan);
		edit = cache_of(r.plan);
		for (size_t j = 0; j < edit->n_entries; j++)
			n_found += strcmp(edit->entries[j].soname, "libcuda.so") == 0;
		assert_int_equal(n_found, rows[i].used);
		if (rows[i].used) {
			assert_string_equal(edit->entries[0].soname, "libcuda.so.1");
			assert_string_equal(edit->entries[1].soname, "libcuda.so");
			assert_string_equal(edit->entries[1].path, "/c/libcuda.so.560.1");
			assert_int_equal(edit->entries[1].abi_flags, 0x303);
		}
	}
}

static void test_platforms(void **state)
{
	static struct graft_node dxg[] = { FIXTURE_NODE("/dev/dxg", 10, 125) };
	static struct graft_node tegra[] = { FIXTURE_NODE("/dev/nvmap", 10, 126), FIXTURE_NODE("/dev/nvgpu", 505, 1) };
	static struct graft_extra_file store[] = { { "/usr/lib/wsl/drivers/x/libcuda.so.1.1", NULL, GRAFT_CLASS_WSL,
						     "test" } };
	static const struct {
		const char *devices;
		bool granted;
	} rows[] = { { "all", true }, { "0", true },      { "", false },
		     { "1", false },  { "GPU-x", false }, { "junk", false } };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		fixture_init(&f);
		f.inventory.platform = GRAFT_PLATFORM_WSL2;
		f.inventory.n_gpus = 0;
		f.inventory.nodes = dxg;
		f.inventory.n_nodes = 1;
		f.inventory.extra_files = store;
		f.inventory.n_extra_files = 1;
		make(rows[i].devices, "graphics", NULL);
		check_invariants(r.plan);
		assert_int_equal(find(r.plan, GRAFT_EDIT_DEVICE, "/dev/dxg") != NULL, rows[i].granted);
		assert_int_equal(allows(r.plan, 10, 125), rows[i].granted);
		assert_int_equal(find(r.plan, GRAFT_EDIT_BIND, store[0].path) != NULL, rows[i].granted);
		assert_int_equal(r.plan->n_grants, rows[i].granted);
		assert_true(rows[i].granted || refusal(r.plan, "/dev/dxg"));
		assert_int_equal(count(r.plan, GRAFT_EDIT_TMPFS), 0); /* neither procfs nor profile */

		fixture_init(&f);
		f.inventory.platform = GRAFT_PLATFORM_TEGRA;
		f.inventory.n_gpus = 0;
		f.inventory.nodes = tegra;
		f.inventory.n_nodes = 2;
		f.inventory.n_proc_files = 0;
		/* A board that lists no GPU has one, and no word but these two means it. */
		if (!rows[i].granted && rows[i].devices[0] != '\0') {
			refuse_selection(rows[i].devices);
			continue;
		}
		make(rows[i].devices, "compute", NULL);
		check_invariants(r.plan);
		assert_int_equal(count(r.plan, GRAFT_EDIT_DEVICE), rows[i].granted ? 2 : 0);
		assert_int_equal(r.plan->n_grants, rows[i].granted);
	}
}

/* One node leads to all GPUs of WSL2: what cannot be hidden is reported. */
static void test_wsl_with_listed_gpus(void **state)
{
	static struct graft_node dxg[] = { FIXTURE_NODE("/dev/dxg", 10, 125) };

	f.inventory.platform = GRAFT_PLATFORM_WSL2;
	f.inventory.nodes = dxg;
	f.inventory.n_nodes = 1;
	for (size_t i = 0; i < GRAFT_COUNT(f.gpus); i++)
		f.gpus[i].node = (struct graft_node){ .path = NULL };
	make("0", "compute", NULL);
	assert_int_equal(r.plan->n_grants, 1);
	assert_string_equal(r.plan->grants[0].uuid, "GPU-aaaa");
	assert_non_null(refusal(r.plan, "hiding the GPUs that were not selected"));
	make("0,1,2", "compute", NULL);
	assert_null(refusal(r.plan, "hiding the GPUs that were not selected"));
	make("", "compute", NULL);
	assert_int_equal(count(r.plan, GRAFT_EDIT_DEVICE), 0);
}

static void test_no_driver(void **state)
{
	f.inventory.platform = GRAFT_PLATFORM_NONE;
	make("all", "all", NULL);
	assert_int_equal(r.result, -1);
	assert_int_equal(r.err.status, GRAFT_NO_DRIVER);
	assert_null(r.plan);
}

/* Whatever is asked for, nothing of a GPU that was not selected gets in, and no right to one. */
static void test_selection_never_widens(void **state)
{
	static const char *const words[] = { "0", "1", "2", "1:0", "1:1", "GPU-cccc" };
	static const unsigned int gpus[] = { 1u << 0, 1u << 1, 1u << 2, 1u << 1, 1u << 1, 1u << 2 };
	static const unsigned int migs[] = { 0, 0, 0, 1u << 0, 1u << 1, 0 };
	static const uint32_t minors[] = { 0, 1, 7, 9 };

	for (unsigned int subset = 0; subset < 1u << GRAFT_COUNT(words); subset++) {
		unsigned int wanted = 0, wanted_migs = 0;
		char list[64] = "";

		for (size_t i = 0; i < GRAFT_COUNT(words); i++) {
			if ((subset & 1u << i) == 0)
				continue;
			(void)snprintf(list + strlen(list), sizeof(list) - strlen(list), ",%s", words[i]);
			wanted |= gpus[i];
			wanted_migs |= migs[i];
		}
		make(list, "all", NULL);
		check_invariants(r.plan);
		for (size_t i = 0; i < GRAFT_COUNT(f.gpus); i++) {
			bool has = (wanted & 1u << i) != 0;

			assert_int_equal(find(r.plan, GRAFT_EDIT_DEVICE, f.gpus[i].node.path) != NULL, has);
			assert_int_equal(allows(r.plan, 195, minors[i]), has);
			if (f.gpus[i].procfs_path)
				assert_int_equal(find(r.plan, GRAFT_EDIT_BIND, f.gpus[i].procfs_path) != NULL, has);
		}
		for (size_t i = 0; i < GRAFT_COUNT(f.migs); i++) {
			bool has = (wanted_migs & 1u << i) != 0;

			assert_int_equal(allows(r.plan, 234, f.migs[i].gi_node.minor), has);
			assert_int_equal(allows(r.plan, 234, f.migs[i].ci_node.minor), has);
		}
	}
}

static void test_every_allocation_may_fail(void **state)
{
	static struct graft_compat_library compat[] = {
		{ "/c/libcuda.so.560.1", "libcuda.so.1", 0x303, 560, .development_links = cuda_links,
		  .n_development_links = 1 },
	};

	static const char *foreign[] = { "/usr/lib/x86_64-linux-gnu" };

	f.policy.image.compat = compat;
	f.policy.image.n_compat = 1;
	f.policy.image.foreign_dirs = foreign;
	f.policy.image.n_foreign_dirs = 1;
	make("all", "all", NULL);
	assert_int_equal(r.result, 0);
	for (int n = 1;; n++) {
		r.plan = graft_plan_free(r.plan);
		allocation_fail(n);
		r.result = graft_plan_make(&f.inventory, r.request, &f.policy, &r.selection, &r.plan, &r.err);
		if (!allocation_failed())
			break;
		assert_int_equal(r.result, -1);
		assert_int_equal(r.err.status, GRAFT_NO_MEMORY);
		assert_null(r.plan);
	}
	assert_int_equal(r.result, 0);
	check_invariants(r.plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_procfs_view, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_application_profile, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_capabilities, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_library_links, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_targets, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_devices, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_exclusions, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_sockets_are_writable_and_optional, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_dispensable, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_mig_devices, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_mig_config, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_imex_channels, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_loader_cache, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_musl_path, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_compat_libraries, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_compat_development_links, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_platforms, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_wsl_with_listed_gpus, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_no_driver, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_selection_never_widens, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_every_allocation_may_fail, setup, free_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
