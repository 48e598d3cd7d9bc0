/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Specifications from a host in memory: the devices of each mode, what all of them share, kinds of
 * coherence, hosts without devices, memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../plan/fixture.h"
#include "../unit.h"
#include "formats/cdi/cdi_write.h"
#include "plan/cdi_devices.h"
#include "start/cdi_spec.h"

#define ARENA_MAX  ((size_t)64 << 20)
#define HOOK       "/usr/bin/nvidia-cdi-hook"
#define EVERYTHING ((uint32_t)GRAFT_CAP_ALL & ~(uint32_t)GRAFT_CAP_COMPAT32)
#define USUAL      (GRAFT_CDI_NAMING_INDEX | GRAFT_CDI_NAMING_UUID)
#define CONTROL    "/dev/nvidia-modeset /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidiactl"

static struct graft_node management_nodes[] = { FIXTURE_NODE("/dev/nvidia0", 195, 0),
						FIXTURE_NODE("/dev/nvidia9", 195, 9) };
static struct graft_node dxg[] = { FIXTURE_NODE("/dev/dxg", 10, 125) };
static struct graft_extra_file store[] = { { "/usr/lib/wsl/drivers/nv/libcuda.so.1.1", NULL, GRAFT_CLASS_WSL,
					     "test" } };
/* A board with an integrated GPU and a card. */
static struct graft_node board_nodes[] = { FIXTURE_NODE("/dev/nvidia0", 195, 0), FIXTURE_NODE("/dev/nvidia1", 195, 1),
					   FIXTURE_NODE("/dev/nvmap", 10, 124) };
static struct graft_node board_driver_nodes[] = { FIXTURE_NODE("/dev/nvidiactl", 195, 255),
						  FIXTURE_NODE("/dev/nvidia2", 195, 2) };
static struct graft_csv_file board_files[] = { { "/usr/lib/tegra/libcuda.so.1.1", "/usr/lib/tegra/libcuda.so.1.1",
						 false, "libcuda.so.1", 0xa03 } };
static const struct graft_csv_inventory board = { .root = "/",
						  .dev_root = "/",
						  .nodes = board_nodes,
						  .n_nodes = 3,
						  .driver_nodes = board_driver_nodes,
						  .n_driver_nodes = 2,
						  .files = board_files,
						  .n_files = 1 };
static struct graft_gpu board_gpus[] = {
	{ .index = 0,
	  .bus_id = "00000000:01:00.0",
	  .model = { "NVIDIA Thor", "test" },
	  .uuid = { "GPU-thor", "test" },
	  .node = FIXTURE_NODE("/dev/nvidia0", 195, 0) },
	{ .index = 1,
	  .bus_id = "00000000:3b:00.0",
	  .model = { "NVIDIA A10", "test" },
	  .uuid = { "GPU-card", "test" },
	  .node = FIXTURE_NODE("/dev/nvidia1", 195, 1) },
};

/* What a test starts from: the fixture's host, GPUs, all capabilities. */
struct world {
	struct fixture f;
	struct graft_cdi_demand demand;
	struct graft_cdi_host host;
	struct graft_arena *arena;
	struct graft_cdi_specs specs;
	struct graft_error err;
};

static const char *const all[] = { "all" };

static void set_up(struct world *world, enum graft_cdi_mode mode)
{
	*world = (struct world){ .arena = graft_arena_new(ARENA_MAX) };
	fixture_init(&world->f);
	fixture_add_further(&world->f);
	world->f.migs[1].uuid = (struct graft_fact){ "MIG-2222", "nvml" };
	world->demand = (struct graft_cdi_demand){ .mode = mode,
						   .vendor = graft_cdi_modes[mode].vendor,
						   .class_ = graft_cdi_modes[mode].class_,
						   .ids = all,
						   .n_ids = 1,
						   .namings = USUAL,
						   .capabilities = EVERYTHING,
						   .hook_path = HOOK,
						   .provenance = GRAFT_CDI_PROVENANCE_NONE };
	world->host = (struct graft_cdi_host){ .inventory = &world->f.inventory };
}

static void tear_down(struct world *world)
{
	graft_cdi_specs_done(&world->specs);
	world->arena = graft_arena_free(world->arena);
}

static int make(struct world *world)
{
	world->err = (struct graft_error){ .status = GRAFT_OK };
	return graft_cdi_make(&world->demand, &world->host, world->arena, &world->specs, &world->err);
}

static const char *nodes_of(const struct graft_cdi_edits *edits, struct graft_arena *arena)
{
	const char *text = "";

	for (size_t i = 0; i < edits->n_nodes; i++)
		text = graft_arena_printf(arena, "%s%s%s", text, i > 0 ? " " : "", edits->nodes[i].path);
	return text;
}

/* "kind: common nodes" and a line for each device. */
static const char *text_of(const struct world *world, size_t i)
{
	const struct graft_cdi_spec *spec = &world->specs.items[i].spec;
	const char *text = graft_arena_printf(world->arena, "%s/%s: %s", spec->vendor, spec->class_,
					      nodes_of(&spec->edits, world->arena));

	for (size_t j = 0; j < spec->n_devices; j++)
		text = graft_arena_printf(world->arena, "%s\n%s: %s", text, spec->devices[j].name,
					  nodes_of(&spec->devices[j].edits, world->arena));
	return text;
}

static const char *hooks_of(const struct graft_cdi_edits *edits, struct graft_arena *arena)
{
	const char *text = "";

	for (size_t i = 0; i < edits->n_hooks; i++)
		text = graft_arena_printf(arena, "%s%s%s", text, i > 0 ? " " : "", edits->hooks[i].args[1]);
	return text;
}

static bool has_mount(const struct graft_cdi_edits *edits, const char *path)
{
	for (size_t i = 0; i < edits->n_mounts; i++) {
		if (strcmp(edits->mounts[i].container_path, path) == 0)
			return true;
	}
	return false;
}

static void expect(struct world *world, const char *text)
{
	if (make(world) < 0)
		fail_msg("%s: %s", world->err.ctx, world->err.msg);
	assert_string_equal(text_of(world, 0), text);
}

static void expect_failure(struct world *world, enum graft_status status, const char *text)
{
	char all_text[1024];

	assert_int_equal(make(world), -1);
	assert_string_equal(graft_error_text(&world->err, all_text, sizeof(all_text)), text);
	assert_int_equal(world->err.status, status);
}

static void test_gpus(void **state)
{
	const struct graft_cdi_spec *spec;
	struct world world;

	set_up(&world, GRAFT_CDI_MODE_NVML);
	expect(&world, "nvidia.com/gpu: " CONTROL "\n"
		       "0: /dev/nvidia0 /dev/dri/card1 /dev/dri/renderD129\n"
		       "1:0: /dev/nvidia1 /dev/nvidia-caps/nvidia-cap10 /dev/nvidia-caps/nvidia-cap11\n"
		       "1:1: /dev/nvidia1 /dev/nvidia-caps/nvidia-cap20 /dev/nvidia-caps/nvidia-cap21\n"
		       "2: /dev/nvidia7\n"
		       "GPU-aaaa: /dev/nvidia0 /dev/dri/card1 /dev/dri/renderD129\n"
		       "GPU-cccc: /dev/nvidia7\n"
		       "MIG-1111: /dev/nvidia1 /dev/nvidia-caps/nvidia-cap10 /dev/nvidia-caps/nvidia-cap11\n"
		       "MIG-2222: /dev/nvidia1 /dev/nvidia-caps/nvidia-cap20 /dev/nvidia-caps/nvidia-cap21\n"
		       "all: /dev/nvidia0 /dev/nvidia1 /dev/nvidia7 /dev/dri/card1 /dev/dri/renderD129 "
		       "/dev/nvidia-caps/nvidia-cap10 /dev/nvidia-caps/nvidia-cap11 /dev/nvidia-caps/nvidia-cap20 "
		       "/dev/nvidia-caps/nvidia-cap21");
	spec = &world.specs.items[0].spec;
	assert_int_equal(world.specs.n, 1);
	assert_string_equal(hooks_of(&spec->edits, world.arena),
			    "create-symlinks enable-cuda-compat update-ldcache disable-device-node-modification "
			    "update-application-profile");
	assert_string_equal(spec->edits.hooks[1].args[2], "--host-driver-version=550.54.14");
	/* Links of the first GPU's display nodes; what all have is not there again. */
	assert_string_equal(hooks_of(&spec->devices[0].edits, world.arena), "create-symlinks");
	assert_int_equal(spec->devices[0].edits.n_mounts + spec->devices[0].edits.n_env, 0);
	assert_int_equal(spec->devices[0].edits.n_gids, 1);
	assert_string_equal(hooks_of(&spec->devices[1].edits, world.arena), "");
	assert_true(has_mount(&spec->edits, "/usr/lib/libcuda.so.550.54.14"));
	assert_string_equal(spec->edits.env[spec->edits.n_env - 1], "NVIDIA_VISIBLE_DEVICES=void");
	assert_int_equal(world.specs.n_warnings, 0);
	tear_down(&world);
}

/* The device for all has one hook for the links of all GPUs, each once, though each GPU has two names; the GPUs' own are as they were. */
static void test_links_of_all(void **state)
{
	static const char *const links[] = {
		"nvidia-cdi-hook", "create-symlinks",
		"--link",          "../card1::/dev/dri/by-path/pci-0000:1b:00.0-card",
		"--link",          "../renderD129::/dev/dri/by-path/pci-0000:1b:00.0-render",
		"--link",          "../card3::/dev/dri/by-path/pci-0001:1b:00.0-card"
	};
	static struct graft_drm_node third[] = { { .node = FIXTURE_NODE("/dev/dri/card3", 226, 3),
						   .by_path = "/dev/dri/by-path/pci-0001:1b:00.0-card",
						   .by_path_content = "../card3" } };
	const struct graft_cdi_spec *spec;
	struct world world;

	set_up(&world, GRAFT_CDI_MODE_NVML);
	world.f.gpus[2].drm_nodes = third;
	world.f.gpus[2].n_drm_nodes = 1;
	assert_int_equal(make(&world), 0);
	spec = &world.specs.items[0].spec;
	for (size_t i = 0; i < spec->n_devices; i++) {
		const struct graft_cdi_edits *edits = &spec->devices[i].edits;

		if (strcmp(spec->devices[i].name, "0") == 0)
			assert_int_equal(edits->hooks[0].n_args, 6);
		if (strcmp(spec->devices[i].name, "all") != 0)
			continue;
		assert_int_equal(edits->n_hooks, 1);
		assert_int_equal(edits->hooks[0].n_args, GRAFT_COUNT(links));
		for (size_t j = 0; j < GRAFT_COUNT(links); j++)
			assert_string_equal(edits->hooks[0].args[j], links[j]);
	}
	tear_down(&world);
}

static void test_choices(void **state)
{
	const char *ids[] = { "2" }, *none[] = { "none" }, *unknown[] = { "99" };
	struct world world;

	set_up(&world, GRAFT_CDI_MODE_NVML);
	world.demand.ids = ids;
	world.demand.namings = GRAFT_CDI_NAMING_TYPE_INDEX;
	expect(&world, "nvidia.com/gpu: " CONTROL "\nall: /dev/nvidia7\ngpu2: /dev/nvidia7");
	tear_down(&world);

	set_up(&world, GRAFT_CDI_MODE_NVML);
	world.demand.ids = none;
	world.demand.no_all_device = true;
	expect(&world, "nvidia.com/gpu: " CONTROL "\nnone: ");
	assert_int_equal(world.specs.items[0].spec.devices[0].edits.n_env, 1);
	assert_string_equal(world.specs.items[0].spec.devices[0].edits.env[0], "NVCT_EMPTY_DEVICE=");
	tear_down(&world);

	set_up(&world, GRAFT_CDI_MODE_NVML);
	world.demand.ids = unknown;
	expect_failure(&world, GRAFT_UNKNOWN_DEVICE,
		       "failed to create device CDI specs: failed to construct device spec generators: failed to get "
		       "device handle from index: ERROR_INVALID_ARGUMENT: no device '99'");
	tear_down(&world);
}

/* A node that is missing is an error, and never a specification that lacks a device. */
static void test_faults(void **state)
{
	struct world world;

	set_up(&world, GRAFT_CDI_MODE_NVML);
	world.f.gpus[2].node.present = false;
	expect_failure(&world, GRAFT_NOT_FOUND,
		       "failed to create device CDI specs: GPU 2: device node /dev/nvidia7 is missing on the host; "
		       "running nvidia-smi or nvidia-modprobe there creates the nodes");
	tear_down(&world);
	set_up(&world, GRAFT_CDI_MODE_NVML);
	world.f.inventory.n_gpus = 0;
	expect_failure(&world, GRAFT_NOT_FOUND,
		       "no devices: this host has no GPU that programs can run on (mode nvml)");
	tear_down(&world);
	/* UUIDs are all that was asked for, and one is not known. */
	set_up(&world, GRAFT_CDI_MODE_NVML);
	world.demand.namings = GRAFT_CDI_NAMING_UUID;
	world.f.gpus[0].uuid.value = NULL;
	assert_int_equal(make(&world), 0);
	assert_int_equal(world.specs.n_warnings, 1);
	assert_int_equal(world.specs.items[0].spec.n_devices, 4);
	tear_down(&world);
}

static void test_hooks(void **state)
{
	struct world world;

	set_up(&world, GRAFT_CDI_MODE_NVML);
	world.demand.disabled_hooks = GRAFT_HOOK_ALL & ~(uint32_t)GRAFT_HOOK_LDCACHE;
	assert_int_equal(make(&world), 0);
	assert_string_equal(hooks_of(&world.specs.items[0].spec.edits, world.arena), "update-ldcache");
	tear_down(&world);
	set_up(&world, GRAFT_CDI_MODE_NVML);
	world.demand.no_hooks = true;
	assert_int_equal(make(&world), 0);
	assert_string_equal(hooks_of(&world.specs.items[0].spec.edits, world.arena), "");
	assert_true(has_mount(&world.specs.items[0].spec.edits, "/usr/lib/libcuda.so.1"));
	tear_down(&world);
}

static void test_coherence(void **state)
{
	struct world world;

	set_up(&world, GRAFT_CDI_MODE_NVML);
	world.f.gpus[0].addressing = (struct graft_fact){ "ats", "nvml" };
	world.f.gpus[2].addressing = (struct graft_fact){ "none", "nvml" };
	assert_int_equal(make(&world), 0);
	assert_int_equal(world.specs.n, 1); /* nobody asked */
	graft_cdi_specs_done(&world.specs);
	world.demand.coherent = true;
	world.demand.namings = GRAFT_CDI_NAMING_INDEX;
	assert_int_equal(make(&world), 0);
	assert_int_equal(world.specs.n, 3);
	assert_string_equal(world.specs.items[1].infix, ".coherent");
	assert_string_equal(text_of(&world, 1), "nvidia.com/gpu.coherent: " CONTROL "\n"
						"0: /dev/nvidia0 /dev/dri/card1 /dev/dri/renderD129\n"
						"all: /dev/nvidia0 /dev/dri/card1 /dev/dri/renderD129");
	assert_string_equal(world.specs.items[2].infix, ".noncoherent");
	assert_string_equal(text_of(&world, 2),
			    "nvidia.com/gpu.noncoherent: " CONTROL "\n2: /dev/nvidia7\nall: /dev/nvidia7");
	tear_down(&world);
}

static void test_provenance(void **state)
{
	struct graft_cdi_fingerprint found;
	struct world world;

	set_up(&world, GRAFT_CDI_MODE_NVML);
	world.demand.provenance = GRAFT_CDI_PROVENANCE_AUTO;
	world.host.boot_id = "0bd5b3a1";
	assert_int_equal(make(&world), 0);
	assert_true(world.specs.items[0].has_provenance);
	assert_int_equal(graft_cdi_fingerprint_find(&world.specs.items[0].spec, world.arena, &found, &world.err), 1);
	assert_string_equal(found.boot_id, "0bd5b3a1");
	assert_string_equal(found.driver_version, "550.54.14");
	assert_string_equal(found.mig, "00000000:1c:00.0=1/0+2/3");
	tear_down(&world);
	/* What does not change with GPUs does not say which there are. */
	set_up(&world, GRAFT_CDI_MODE_GDS);
	world.demand.provenance = GRAFT_CDI_PROVENANCE_ANNOTATIONS;
	assert_int_equal(make(&world), 0);
	assert_int_equal(graft_cdi_fingerprint_find(&world.specs.items[0].spec, world.arena, &found, &world.err), 1);
	assert_null(found.gpus);
	tear_down(&world);
}

static void test_gates(void **state)
{
	const struct graft_cdi_spec *spec;
	struct world world;

	set_up(&world, GRAFT_CDI_MODE_GDS);
	expect(&world, "nvidia.com/gds: \nall: /dev/nvidia-fs0 /dev/nvidia-fs1");
	spec = &world.specs.items[0].spec;
	assert_int_equal(spec->edits.n_env, 1);
	assert_string_equal(spec->edits.env[0], "NVIDIA_VISIBLE_DEVICES=void");
	assert_int_equal(spec->edits.n_hooks + spec->edits.n_mounts, 0);
	assert_true(has_mount(&spec->devices[0].edits, "/run/udev"));
	assert_true(has_mount(&spec->devices[0].edits, "/etc/cufile.json"));
	tear_down(&world);
	set_up(&world, GRAFT_CDI_MODE_GDRCOPY);
	expect(&world, "nvidia.com/gdrcopy: \nall: /dev/gdrdrv");
	tear_down(&world);
	set_up(&world, GRAFT_CDI_MODE_MOFED);
	expect_failure(&world, GRAFT_NOT_FOUND,
		       "no devices: this host has no /dev/infiniband/uverbs* or rdma_cm (mode mofed)");
	tear_down(&world);
	set_up(&world, GRAFT_CDI_MODE_NVSWITCH);
	expect_failure(&world, GRAFT_NOT_FOUND, "no devices: this host has no /dev/nvidia-nvswitch* (mode nvswitch)");
	tear_down(&world);
}

static void test_channels(void **state)
{
	const char *five[] = { "5" }, *zero[] = { "channel0", "0" }, *bogus[] = { "bogus" };
	struct world world;

	set_up(&world, GRAFT_CDI_MODE_IMEX);
	/* Channel 5 was asked for once and has no node. */
	expect(&world, "nvidia.com/imex-channel: \n0: /dev/nvidia-caps-imex-channels/channel0\n"
		       "all: /dev/nvidia-caps-imex-channels/channel0");
	tear_down(&world);
	set_up(&world, GRAFT_CDI_MODE_IMEX);
	world.demand.ids = zero;
	world.demand.n_ids = 2;
	world.demand.no_all_device = true;
	expect(&world, "nvidia.com/imex-channel: \n0: /dev/nvidia-caps-imex-channels/channel0");
	tear_down(&world);
	set_up(&world, GRAFT_CDI_MODE_IMEX);
	world.demand.ids = five;
	assert_int_equal(make(&world), -1);
	assert_string_equal(world.err.msg,
			    "IMEX channel 5 not found at /dev/nvidia-caps-imex-channels/channel5; on the host, 'mknod "
			    "-m 0666 /dev/nvidia-caps-imex-channels/channel5 c 233 5' makes the node");
	tear_down(&world);
	set_up(&world, GRAFT_CDI_MODE_IMEX);
	world.demand.ids = bogus;
	assert_int_equal(make(&world), -1);
	assert_string_equal(world.err.msg, "invalid channel ID bogus: must be a number, or 'channel' and a number");
	tear_down(&world);
	set_up(&world, GRAFT_CDI_MODE_IMEX);
	world.f.inventory.n_imex = 0;
	expect_failure(&world, GRAFT_NOT_FOUND,
		       "no devices: this host has no /dev/nvidia-caps-imex-channels/channel* (mode imex)");
	tear_down(&world);
}

static void test_management(void **state)
{
	const struct graft_cdi_spec *spec;
	struct world world;

	set_up(&world, GRAFT_CDI_MODE_MANAGEMENT);
	world.demand.disabled_hooks = GRAFT_HOOK_PARAMS;
	expect_failure(&world, GRAFT_NOT_FOUND, "no devices: this host has no NVIDIA device node (mode management)");
	graft_cdi_specs_done(&world.specs);
	world.f.inventory.management_nodes = management_nodes;
	world.f.inventory.n_management_nodes = GRAFT_COUNT(management_nodes);
	expect(&world, "management.nvidia.com/gpu: \nall: /dev/nvidia0 /dev/nvidia9");
	spec = &world.specs.items[0].spec;
	assert_string_equal(hooks_of(&spec->edits, world.arena), "create-symlinks enable-cuda-compat update-ldcache");
	assert_true(has_mount(&spec->edits, "/usr/lib/libcuda.so.550.54.14"));
	assert_false(has_mount(&spec->edits, "/etc/vulkan/icd.d/nvidia_icd.json"));
	tear_down(&world);
}

static void test_wsl(void **state)
{
	const struct graft_cdi_spec *spec;
	struct world world;

	set_up(&world, GRAFT_CDI_MODE_WSL);
	expect_failure(&world, GRAFT_NOT_FOUND, "no devices: this host has no /dev/dxg (mode wsl)");
	graft_cdi_specs_done(&world.specs);
	world.f.inventory.platform = GRAFT_PLATFORM_WSL2;
	world.f.inventory.nodes = dxg;
	world.f.inventory.n_nodes = 1;
	world.f.inventory.extra_files = store;
	world.f.inventory.n_extra_files = 1;
	world.f.inventory.n_gpus = world.f.inventory.n_proc_files = 0;
	expect(&world, "nvidia.com/gpu: \nall: /dev/dxg");
	spec = &world.specs.items[0].spec;
	assert_true(has_mount(&spec->edits, "/usr/lib/wsl/drivers/nv/libcuda.so.1.1"));
	assert_string_equal(hooks_of(&spec->edits, world.arena), "create-symlinks update-ldcache");
	assert_int_equal(spec->devices[0].edits.n_mounts + spec->devices[0].edits.n_hooks, 0);
	tear_down(&world);
}

static void test_boards(void **state)
{
	static const struct graft_csv_facts orin = { .from_nvml = true, .cuda = "13.1", .orin = true },
					    libcuda = { .cuda = "13.1" };
	const char *one[] = { "1", "GPU-card" }, *two[] = { "2" };
	const struct graft_cdi_spec *spec;
	struct world world;

	set_up(&world, GRAFT_CDI_MODE_CSV);
	world.host.csv = &board;
	world.host.csv_facts = &orin;
	world.demand.csv_compat_directory = "/compat";
	world.f.inventory.gpus = board_gpus;
	world.f.inventory.n_gpus = 2;
	expect(&world, "nvidia.com/gpu: \n"
		       "0: /dev/nvidia0 /dev/nvidia2 /dev/nvmap\n"
		       "1: /dev/nvidia1 /dev/nvidiactl /dev/nvmap\n"
		       "GPU-card: /dev/nvidia1 /dev/nvidiactl /dev/nvmap\n"
		       "GPU-thor: /dev/nvidia0 /dev/nvidia2 /dev/nvmap\n"
		       "all: /dev/nvidia0 /dev/nvidia1 /dev/nvidia2 /dev/nvidiactl /dev/nvmap");
	spec = &world.specs.items[0].spec;
	assert_string_equal(hooks_of(&spec->edits, world.arena), "enable-cuda-compat update-ldcache");
	assert_string_equal(spec->edits.hooks[0].args[2], "--host-cuda-version=13.1");
	assert_string_equal(spec->edits.hooks[0].args[3], "--cuda-compat-container-root=/compat");
	graft_cdi_specs_done(&world.specs);

	/* One of them, by two names; libcuda's word is not NVML's. */
	world.demand.ids = one;
	world.demand.n_ids = 2;
	world.demand.no_all_device = true;
	world.host.csv_facts = &libcuda;
	expect(&world, "nvidia.com/gpu: \n1: /dev/nvidia1 /dev/nvidiactl /dev/nvmap\n"
		       "GPU-card: /dev/nvidia1 /dev/nvidiactl /dev/nvmap");
	assert_string_equal(hooks_of(&world.specs.items[0].spec.edits, world.arena), "update-ldcache");
	graft_cdi_specs_done(&world.specs);
	world.demand.ids = two;
	world.demand.n_ids = 1;
	expect_failure(&world, GRAFT_UNKNOWN_DEVICE,
		       "failed to create device CDI specs: unsupported device id: 2; on this board there are 0, 1, all "
		       "and their UUIDs");
	graft_cdi_specs_done(&world.specs);

	/* All nodes are the only GPU's, and it has no UUID that anybody knows. */
	world.demand.single_csv_device = true;
	world.demand.ids = all;
	expect(&world, "nvidia.com/gpu: \n0: /dev/nvidia0 /dev/nvidia1 /dev/nvmap");
	graft_cdi_specs_done(&world.specs);
	world.demand.namings = GRAFT_CDI_NAMING_UUID;
	expect_failure(&world, GRAFT_NOT_FOUND,
		       "no devices: this host has no GPU that the requested strategies can name (mode csv)");
	tear_down(&world);
}

/* What a reader would refuse never comes out. */
static void test_all_can_be_written(void **state)
{
	static const enum graft_cdi_mode modes[] = { GRAFT_CDI_MODE_NVML, GRAFT_CDI_MODE_GDS, GRAFT_CDI_MODE_GDRCOPY,
						     GRAFT_CDI_MODE_IMEX };

	for (size_t i = 0; i < GRAFT_COUNT(modes); i++) {
		struct graft_buffer out = { 0 };
		struct world world;

		set_up(&world, modes[i]);
		world.demand.provenance = GRAFT_CDI_PROVENANCE_ANNOTATIONS;
		world.demand.chmod = true;
		assert_int_equal(make(&world), 0);
		if (graft_cdi_spec_write(&world.specs.items[0].spec, GRAFT_CDI_YAML, &out, &world.err) < 0)
			fail_msg("%s", world.err.msg);
		graft_buffer_done(&out);
		tear_down(&world);
	}
}

static void test_allocations(void **state)
{
	for (int n = 1;; n++) {
		struct world world;
		bool failed;
		int rc;

		set_up(&world, GRAFT_CDI_MODE_NVML);
		world.demand.provenance = GRAFT_CDI_PROVENANCE_AUTO;
		allocation_fail(n);
		rc = make(&world);
		failed = allocation_reported(rc, &world.err);
		tear_down(&world);
		if (!failed) {
			assert_true(n > 10);
			return;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_links_of_all),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_hooks),
		cmocka_unit_test(test_coherence),
		cmocka_unit_test(test_provenance),
		cmocka_unit_test(test_gates),
		cmocka_unit_test(test_channels),
		cmocka_unit_test(test_management),
		cmocka_unit_test(test_wsl),
		cmocka_unit_test(test_boards),
		cmocka_unit_test(test_all_can_be_written),
		cmocka_unit_test(test_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
