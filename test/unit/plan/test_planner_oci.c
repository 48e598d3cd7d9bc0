/* SPDX-License-Identifier: Apache-2.0 */
/* The style for a container that is not there yet (SPEC runtime-and-hook 7), rule by rule, each known by its tag. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "host/discover.h"
#include "planned.h"

#define EVERYTHING "compute,graphics,utility,video,display,ngx"
#define FILE_FLAGS (GRAFT_MOUNT_RDONLY | GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOSUID)

static int setup(void **state)
{
	fixture_init(&f);
	fixture_add_further(&f);
	f.policy.style = GRAFT_STYLE_OCI;
	return 0;
}

/* The edits of a rule as text, one each: "kind target[ -> content]". */
static const char *edits_of(const char *rule)
{
	const char *text = "";

	for (size_t i = 0; i < r.plan->n_edits; i++) {
		const struct graft_edit *edit = &r.plan->edits[i];

		if (strcmp(edit->rule, rule) != 0 || edit->kind == GRAFT_EDIT_CGROUP)
			continue;
		text = graft_arena_printf(
		    r.arena, "%s%s%s %s%s%s", text, text[0] != '\0' ? "\n" : "", graft_edit_names[edit->kind],
		    edit->target ? edit->target : "",
		    edit->kind == GRAFT_EDIT_SYMLINK || edit->kind == GRAFT_EDIT_ENV ? " -> " : "",
		    edit->kind == GRAFT_EDIT_SYMLINK || edit->kind == GRAFT_EDIT_ENV ? edit->content : "");
	}
	return text;
}

static bool is_below(const char *path, const char *directory)
{
	return strncmp(path, directory, strlen(directory)) == 0;
}

/* What a sink may rely on. */
static void check_edit(const struct graft_plan *plan, size_t i)
{
	const struct graft_edit *edit = &plan->edits[i], *next = edit + 1;

	assert_non_null(edit->rule);
	assert_true(strlen(edit->why) > 10);
	assert_true(edit->kind != GRAFT_EDIT_TMPFS);
	if (edit->kind != GRAFT_EDIT_CGROUP && edit->kind != GRAFT_EDIT_LDCACHE && edit->kind != GRAFT_EDIT_ENV) {
		assert_int_equal(edit->target[0], '/');
		assert_null(strstr(edit->target, "//"));
		assert_null(strstr(edit->target, ".."));
		/* a low-level runtime mounts nothing into /proc */
		assert_true(!is_below(edit->target, "/proc/") || edit->kind == GRAFT_EDIT_COVER);
	}
	if (edit->kind == GRAFT_EDIT_DEVICE) {
		assert_int_equal(edit->flags, 0);
		assert_non_null(edit->source);
		assert_true(i + 1 < plan->n_edits && next->kind == GRAFT_EDIT_CGROUP);
		assert_int_equal(next->major, edit->major);
		assert_int_equal(next->minor, edit->minor);
	}
	if (edit->kind == GRAFT_EDIT_CGROUP) {
		assert_string_equal(edit->access, "rwm");
		assert_true(i > 0 && edit[-1].kind == GRAFT_EDIT_DEVICE); /* no rule without its node */
	}
	if (edit->kind == GRAFT_EDIT_BIND)
		assert_int_equal(edit->flags & (GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOSUID),
				 GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOSUID);
	if (edit->kind == GRAFT_EDIT_SYMLINK && edit->conflict == GRAFT_CONFLICT_REPLACE) {
		assert_non_null(edit->source);
		assert_int_equal(edit->flags, FILE_FLAGS);
	}
	assert_true(edit->kind != GRAFT_EDIT_LDCACHE || i == plan->n_edits - 1);
}

static void check_invariants(const struct graft_plan *plan)
{
	for (size_t i = 0; i < plan->n_edits; i++) {
		check_edit(plan, i);
		for (size_t j = 0; j < i && plan->edits[i].target; j++) {
			if (plan->edits[j].target && strcmp(plan->edits[j].target, plan->edits[i].target) == 0)
				fail_msg("two edits for %s", plan->edits[i].target);
		}
	}
}

/* SPEC runtime-and-hook 7.2, 7.5: devices first, what they have in common after them, then what only the root or a hook can do; links before the cache. */
static void test_order(void **state)
{
	static const char *const order[] = {
		"gpu-node",    "drm-node",     "drm-link",    "mig-node",     "driver-node",         "gate-node",
		"gate-file",   "imex-channel", "binary",      "library",      "extra-file",          "firmware",
		"ipc",         "environment",  "soname-link", "library-link", "application-profile", "driver-params",
		"loader-cache"
	};
	size_t at = 0;

	make("0,1:0", EVERYTHING, NULL);
	assert_int_equal(r.result, 0);
	check_invariants(r.plan);
	for (size_t i = 0; i < r.plan->n_edits; i++) {
		const char *rule = r.plan->edits[i].rule;

		if (strcmp(rule, "gpu-node") == 0 || strcmp(rule, "drm-node") == 0)
			continue; /* once a GPU */
		while (at < GRAFT_COUNT(order) && strcmp(rule, order[at]) != 0)
			at++;
		if (at == GRAFT_COUNT(order))
			fail_msg("edit %zu of rule %s is out of order", i, rule);
	}
}

/* Everything at the host's paths, less the driver root. */
static void test_paths_are_the_hosts(void **state)
{
	const struct graft_edit *edit;

	f.inventory.root = "/run/nvidia/driver";
	f.inventory.dev_root = "/run/nvidia/driver";
	f.policy.image.debian = true; /* of no concern here */
	make("0", EVERYTHING, NULL);
	check_invariants(r.plan);
	edit = expect(r.plan, GRAFT_EDIT_BIND, "/usr/lib/libcuda.so.550.54.14");
	assert_string_equal(edit->source, "/run/nvidia/driver/usr/lib/libcuda.so.550.54.14");
	assert_int_equal(edit->flags, FILE_FLAGS);
	edit = expect(r.plan, GRAFT_EDIT_DEVICE, "/dev/nvidia0");
	assert_string_equal(edit->source, "/run/nvidia/driver/dev/nvidia0");
	assert_int_equal(edit->mode, 0666);
	edit = expect(r.plan, GRAFT_EDIT_BIND, "/etc/vulkan/icd.d/nvidia_icd.json");
	assert_string_equal(edit->source, "/run/nvidia/driver/usr/share/vulkan/icd.d/nvidia_icd.json");
	/* the same file name and the same soname in two directories: both */
	(void)expect(r.plan, GRAFT_EDIT_BIND, "/opt/lib/libcuda.so.550.54.14");
	(void)expect(r.plan, GRAFT_EDIT_BIND, "/opt/lib/libcuda.so.550.54.14.b");
	edit = expect(r.plan, GRAFT_EDIT_BIND, "/run/nvidia-persistenced/socket");
	assert_int_equal(edit->flags, GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NODEV | GRAFT_MOUNT_NOEXEC);
}

/* A program is at the host's path, unless that is not in a usual PATH. */
static void test_programs(void **state)
{
	static const struct {
		const char *source, *target;
	} rows[] = {
		{ "/usr/bin", "/usr/bin/nvidia-smi" },
		{ "/usr/local/bin", "/usr/local/bin/nvidia-smi" },
		{ "/sbin", "/sbin/nvidia-smi" },
		{ "/run/current-system/sw/bin", "/usr/bin/nvidia-smi" },
		{ "/usr/lib/wsl/drivers/x", "/usr/bin/nvidia-smi" },
		{ "/usr/binary", "/usr/bin/nvidia-smi" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		f.binaries[0].source = rows[i].source;
		make("0", "utility", NULL);
		assert_string_equal(expect(r.plan, GRAFT_EDIT_BIND, rows[i].target)->source, "/usr/bin/nvidia-smi");
	}
}

/* SPEC runtime-and-hook 7.4 */
static void test_gpu(void **state)
{
	make("0", EVERYTHING, NULL);
	assert_string_equal(edits_of("gpu-node"), "device /dev/nvidia0");
	assert_string_equal(edits_of("drm-node"), "device /dev/dri/card1\ndevice /dev/dri/renderD129");
	assert_int_equal(expect(r.plan, GRAFT_EDIT_DEVICE, "/dev/dri/card1")->gid, 44);
	assert_int_equal(expect(r.plan, GRAFT_EDIT_DEVICE, "/dev/dri/card1")->mode, 0660);
	assert_string_equal(edits_of("drm-link"), "symlink /dev/dri/by-path/pci-0000:1b:00.0-card -> ../card1\n"
						  "symlink /dev/dri/by-path/pci-0000:1b:00.0-render -> ../renderD129");
	/* SPEC runtime-and-hook Q12: by index and by UUID is one GPU */
	make("0,GPU-aaaa,0000:1b:00.0", EVERYTHING, NULL);
	assert_string_equal(edits_of("gpu-node"), "device /dev/nvidia0");
	assert_int_equal(r.plan->n_grants, 1);
	/* graphics not asked for */
	make("0", "compute,utility", NULL);
	assert_string_equal(edits_of("drm-node"), "");
	assert_string_equal(edits_of("drm-link"), "");
	assert_string_equal(refusal(r.plan, "DRM nodes of GPU 0: 2"), "neither graphics nor display was asked for");
	/* another GPU's do not matter */
	make("2", EVERYTHING, NULL);
	assert_string_equal(edits_of("gpu-node"), "device /dev/nvidia7");
	assert_string_equal(edits_of("drm-node"), "");
}

/* The namespace's way gives them too, bound from the host. */
static void test_graphics_in_a_namespace(void **state)
{
	const struct graft_edit *edit;

	f.policy.style = GRAFT_STYLE_NAMESPACE;
	make("0", "display", NULL);
	edit = expect(r.plan, GRAFT_EDIT_DEVICE, "/dev/dri/card1");
	assert_int_equal(edit->flags, GRAFT_MOUNT_RDONLY | GRAFT_MOUNT_NOSUID | GRAFT_MOUNT_NOEXEC);
	assert_string_equal(edit[1].access, "rw");
	assert_int_equal(expect(r.plan, GRAFT_EDIT_SYMLINK, "/dev/dri/by-path/pci-0000:1b:00.0-card")->conflict,
			 GRAFT_CONFLICT_KEEP);
	(void)expect(r.plan, GRAFT_EDIT_BIND, "/usr/lib/nvidia/xorg/nvidia_drv.so");
	assert_string_equal(expect(r.plan, GRAFT_EDIT_SYMLINK, "/usr/lib/nvidia/xorg/libglxserver_nvidia.so")->content,
			    "libglxserver_nvidia.so.550.54.14");
	assert_non_null(refusal(r.plan, "class other"));
	assert_null(find(r.plan, GRAFT_EDIT_BIND, "/usr/lib/libnvidia-new.so.550.54.14"));
	make("0", "graphics,compute", NULL);
	edit = expect(r.plan, GRAFT_EDIT_SYMLINK, "/usr/lib/x86_64-linux-gnu/gbm/nvidia-drm_gbm.so");
	assert_string_equal(edit->content, "../libnvidia-allocator.so.1");
	assert_int_equal(edit->conflict, GRAFT_CONFLICT_KEEP);
	assert_int_equal(f.policy.disabled_hooks, 0);
	/* switching off hooks concerns containers that have some */
	f.policy.disabled_hooks = GRAFT_HOOK_ALL;
	make("0", "graphics,compute", NULL);
	(void)expect(r.plan, GRAFT_EDIT_SYMLINK, "/dev/dri/by-path/pci-0000:1b:00.0-card");
	(void)expect(r.plan, GRAFT_EDIT_SYMLINK, "/usr/lib/x86_64-linux-gnu/libcuda.so.1");
	assert_int_equal(r.plan->edits[r.plan->n_edits - 1].kind, GRAFT_EDIT_LDCACHE);
	make("0", "compute,utility", NULL);
	assert_null(find(r.plan, GRAFT_EDIT_DEVICE, "/dev/dri/card1"));
	assert_null(find(r.plan, GRAFT_EDIT_SYMLINK, "/usr/lib/x86_64-linux-gnu/gbm/nvidia-drm_gbm.so"));
}

/* SPEC runtime-and-hook 7.4: a MIG device brings the parent's node and two capability nodes, and nothing of the whole GPU. */
static void test_mig(void **state)
{
	make("1:0", EVERYTHING, NULL);
	assert_string_equal(edits_of("gpu-node"), "device /dev/nvidia1");
	assert_string_equal(edits_of("mig-node"),
			    "device /dev/nvidia-caps/nvidia-cap10\ndevice /dev/nvidia-caps/nvidia-cap11");
	assert_string_equal(edits_of("mig-access"), ""); /* the container has the kernel's own procfs */
	assert_string_equal(edits_of("drm-node"), "");
	assert_non_null(strstr(refusal(r.plan, "DRM nodes of GPU 1"), "no selected MIG device of it is known to do"));
	/* a capability that the driver does not name */
	f.migs[0].ci_node.path = NULL;
	make("1:0", EVERYTHING, NULL);
	assert_int_equal(r.result, -1);
	assert_int_equal(r.err.status, GRAFT_NOT_FOUND);
	assert_string_equal(r.err.msg, "the driver names no capability device for "
				       "/proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0");
	/* drivers without such nodes */
	f.inventory.caps_devices = false;
	make("1:0", EVERYTHING, NULL);
	assert_int_equal(r.result, 0);
	assert_string_equal(edits_of("mig-node"), "");
}

/*
 * SPEC runtime-and-hook 7.4: display nodes go with profiles that have graphics; which one a MIG device has, NVML knows, and is asked only where it
 * can matter.
 */
static void test_mig_with_graphics(void **state)
{
	f.gpus[1].model.value = "NVIDIA RTX PRO 6000 Blackwell Server Edition";
	make("1:0", EVERYTHING, NULL);
	assert_int_equal(graft_plan_missing_facts(r.request, &r.selection), GRAFT_NVML_MIG);
	assert_string_equal(edits_of("drm-node"), "");
	f.migs[0].profile.value = "1g.24gb+gfx";
	f.migs[1].profile.value = "1g.24gb+me";
	make("1:0", EVERYTHING, NULL);
	assert_int_equal(graft_plan_missing_facts(r.request, &r.selection), 0);
	assert_string_equal(edits_of("drm-node"), "device /dev/dri/card2\ndevice /dev/dri/renderD130");
	make("1:1", EVERYTHING, NULL);
	assert_int_equal(graft_plan_missing_facts(r.request, &r.selection), 0);
	assert_string_equal(edits_of("drm-node"), "");
	/* the GPU itself, in MIG mode, does none */
	make("1", EVERYTHING, NULL);
	assert_string_equal(edits_of("drm-node"), "");
	/* nobody is asked without need */
	f.migs[0].profile.value = NULL;
	make("1:0", "compute,utility", NULL);
	assert_int_equal(graft_plan_missing_facts(r.request, &r.selection), 0);
	f.gpus[1].model.value = "NVIDIA A100-SXM4-40GB";
	make("1:0", EVERYTHING, NULL);
	assert_int_equal(graft_plan_missing_facts(r.request, &r.selection), 0);
	f.gpus[1].model.value = "NVIDIA RTX PRO 6000 Blackwell Server Edition";
	f.gpus[1].n_drm_nodes = 0;
	make("1:0", EVERYTHING, NULL);
	assert_int_equal(graft_plan_missing_facts(r.request, &r.selection), 0);
}

static void ask_mig_config(struct graft_request *request)
{
	request->mig_config = true;
}

static void ask_mig_both(struct graft_request *request)
{
	request->mig_config = request->mig_monitor = true;
}

/* Each node with its rule: a low-level runtime cannot get a rule without a node. */
static void test_mig_config(void **state)
{
	make("1", EVERYTHING, ask_mig_config);
	check_invariants(r.plan);
	assert_string_equal(edits_of("mig-config"), "device /dev/nvidia-caps/nvidia-cap1");
	assert_string_equal(edits_of("mig-monitor"), "");
	make("all", EVERYTHING, ask_mig_both);
	check_invariants(r.plan);
	assert_string_equal(edits_of("mig-config"), "device /dev/nvidia-caps/nvidia-cap1");
	assert_string_equal(edits_of("mig-monitor"), "device /dev/nvidia-caps/nvidia-cap2");
	assert_string_equal(edits_of("mig-capabilities"), "device /dev/nvidia-caps/nvidia-cap10\n"
							  "device /dev/nvidia-caps/nvidia-cap11");
	assert_string_equal(edits_of("mig-node"), "");
	/* GPU 0 cannot be split */
	make("0", EVERYTHING, ask_mig_both);
	assert_string_equal(edits_of("mig-config"), "");
	assert_non_null(refusal(r.plan, "MIG configuration and monitoring"));
	f.inventory.mig_config_node.present = false;
	make("1", EVERYTHING, ask_mig_config);
	assert_int_equal(r.result, -1);
	assert_string_equal(r.err.msg, "device node /dev/nvidia-caps/nvidia-cap1 is missing on the host; running "
				       "nvidia-smi or nvidia-modprobe there creates the nodes");
}

/* The node of an instance that is still to be made: by its number, where the runtime makes nodes. */
static void test_mig_config_of_instances_to_come(void **state)
{
	const struct graft_edit *edit;

	f.caps_nodes[1].present = false;
	f.caps_nodes[1].mode = 0;
	make("1", EVERYTHING, ask_mig_config);
	check_invariants(r.plan);
	assert_string_equal(edits_of("mig-capabilities"), "device /dev/nvidia-caps/nvidia-cap10\n"
							  "device /dev/nvidia-caps/nvidia-cap11");
	assert_false(expect(r.plan, GRAFT_EDIT_DEVICE, "/dev/nvidia-caps/nvidia-cap10")->optional);
	edit = expect(r.plan, GRAFT_EDIT_DEVICE, "/dev/nvidia-caps/nvidia-cap11");
	assert_true(edit->optional);
	assert_int_equal(edit->major, 234);
	assert_int_equal(edit->minor, 11);
	assert_int_equal(edit->mode, 0444);
	assert_int_equal(edit[1].kind, GRAFT_EDIT_CGROUP);
	assert_false(edit[1].optional);
	f.policy.no_new_nodes = true;
	make("1", EVERYTHING, ask_mig_config);
	check_invariants(r.plan);
	assert_string_equal(edits_of("mig-capabilities"), "device /dev/nvidia-caps/nvidia-cap10");
}

/* SPEC runtime-and-hook 7.4: "all" is what programs can run on. */
static void test_all(void **state)
{
	make("all", EVERYTHING, NULL);
	assert_string_equal(edits_of("gpu-node"), "device /dev/nvidia0\ndevice /dev/nvidia1\ndevice /dev/nvidia7");
	assert_int_equal(r.selection.n_migs, 2);
	/* in MIG mode without a MIG device; a card for the display of a workstation */
	f.gpus[1].n_mig_devices = 0;
	f.gpus[2].model.value = "NVIDIA DGX Display";
	make("all", EVERYTHING, NULL);
	assert_string_equal(edits_of("gpu-node"), "device /dev/nvidia0");
	/* by name they are to be had */
	make("1,2", EVERYTHING, NULL);
	assert_string_equal(edits_of("gpu-node"), "device /dev/nvidia1\ndevice /dev/nvidia7");
}

/* SPEC runtime-and-hook 7.4, 15.3: the driver and its control nodes, no GPU. */
static void test_none(void **state)
{
	make("", EVERYTHING, NULL);
	check_invariants(r.plan);
	assert_int_equal(r.plan->n_grants, 0);
	assert_string_equal(edits_of("gpu-node"), "");
	assert_string_equal(edits_of("drm-node"), "");
	assert_string_equal(edits_of("driver-node"), "device /dev/nvidia-modeset\ndevice /dev/nvidia-uvm\n"
						     "device /dev/nvidia-uvm-tools\ndevice /dev/nvidiactl");
	(void)expect(r.plan, GRAFT_EDIT_BIND, "/usr/lib/libcuda.so.550.54.14");
	assert_string_equal(edits_of("application-profile"), "");
	assert_string_equal(edits_of("environment"), "env NVCT_EMPTY_DEVICE -> \n"
						     "env NVIDIA_CTK_LIBCUDA_DIR -> /usr/lib:/opt/lib:/lib64\n"
						     "env NVIDIA_VISIBLE_DEVICES -> void");
}

/* SPEC runtime-and-hook 7.5 (1), 7.9: sorted; what is not there is left out, except what nothing works without. */
static void test_control_nodes(void **state)
{
	f.nodes[1].present = false; /* nvidia-uvm */
	f.nodes[3].present = false; /* nvidia-modeset */
	make("0", EVERYTHING, NULL);
	assert_int_equal(r.result, 0);
	assert_string_equal(edits_of("driver-node"), "device /dev/nvidia-uvm-tools\ndevice /dev/nvidiactl");
	assert_string_equal(refusal(r.plan, "/dev/nvidia-modeset"), "the host does not have it");
	f.nodes[0].present = false;
	make("0", EVERYTHING, NULL);
	assert_int_equal(r.result, -1);
	assert_int_equal(r.err.status, GRAFT_NOT_FOUND);
	assert_string_equal(r.err.msg, "device node /dev/nvidiactl is missing on the host; running nvidia-smi or "
				       "nvidia-modprobe there creates the nodes");
	/* without a GPU not even that */
	make("", EVERYTHING, NULL);
	assert_int_equal(r.result, 0);
	f.nodes[0].present = true;
	f.gpus[0].node.present = false;
	make("0", EVERYTHING, NULL);
	assert_int_equal(r.result, -1);
	assert_string_equal(r.err.msg, "device node /dev/nvidia0 is missing on the host; running nvidia-smi or "
				       "nvidia-modprobe there creates the nodes");
	assert_string_equal(r.err.ctx, "GPU 0");
}

static void open_gds(struct graft_request *request)
{
	request->gates = 1u << GRAFT_GATE_GDS | 1u << GRAFT_GATE_NVSWITCH;
}

/* SPEC runtime-and-hook 7.10: nothing found is no error. */
static void test_gates(void **state)
{
	make("0", EVERYTHING, open_gds);
	check_invariants(r.plan);
	assert_string_equal(edits_of("gate-node"), "device /dev/nvidia-fs0\ndevice /dev/nvidia-fs1");
	assert_string_equal(edits_of("gate-file"), "bind /run/udev\nbind /etc/cufile.json");
	assert_int_equal(expect(r.plan, GRAFT_EDIT_BIND, "/run/udev")->type, GRAFT_SOURCE_DIRECTORY);
	assert_string_equal(expect(r.plan, GRAFT_EDIT_BIND, "/etc/cufile.json")->source, "/usr/local/cuda/cufile.json");
	assert_string_equal(refusal(r.plan, "nvswitch"), "the host has no device node for it");
	assert_null(refusal(r.plan, "gds"));
	make("0", EVERYTHING, NULL);
	assert_string_equal(edits_of("gate-node"), "");
	assert_string_equal(edits_of("gate-file"), "");
}

static void ask_channels(struct graft_request *request)
{
	struct graft_error err;

	assert_int_equal(graft_request_imex_word(request, "channel0", &err), 0);
	assert_int_equal(graft_request_imex_word(request, "0", &err), 0);
}

static void ask_absent_channel(struct graft_request *request)
{
	struct graft_error err;

	assert_int_equal(graft_request_imex_word(request, "5", &err), 0);
}

static void ask_all_channels(struct graft_request *request)
{
	struct graft_error err;

	assert_int_equal(graft_request_imex_word(request, "0", &err), 0);
	assert_int_equal(graft_request_imex_word(request, "all", &err), 0);
}

/* SPEC runtime-and-hook 7.11 */
static void test_imex(void **state)
{
#define CHANNELS "/dev/nvidia-caps-imex-channels"

	make("0", EVERYTHING, ask_channels);
	assert_string_equal(edits_of("imex-channel"), "device " CHANNELS "/channel0");
	make("0", EVERYTHING, ask_all_channels); /* 5 has no node */
	assert_string_equal(edits_of("imex-channel"), "device " CHANNELS "/channel0");
	make("0", EVERYTHING, ask_absent_channel);
	assert_int_equal(r.result, -1);
	assert_int_equal(r.err.status, GRAFT_NOT_FOUND);
	assert_string_equal(r.err.msg,
			    "IMEX channel 5 not found at " CHANNELS "/channel5; on the host, 'mknod -m 0666 " CHANNELS
			    "/channel5 c 233 5' makes the node");
	f.inventory.n_imex = 0;
	make("0", EVERYTHING, ask_absent_channel);
	assert_int_equal(r.result, -1);
	assert_string_equal(r.err.msg,
			    "IMEX channel 5 not found at /dev/nvidia-caps-imex-channels/channel5; the driver of this "
			    "host has no channels (no nvidia-caps-imex-channels in /proc/devices)");
	make("0", EVERYTHING, ask_all_channels);
	assert_int_equal(r.result, -1); /* channel 0 was named */
}

/* SPEC runtime-and-hook 7.5 (3): sonames, the few names of SPEC libnvidia-container 9.5, the host's development links, plug-ins of graphics. */
static void test_links(void **state)
{
	make("0", EVERYTHING, NULL);
	check_invariants(r.plan);
	assert_string_equal(edits_of("soname-link"),
			    "symlink /usr/lib/libnvidia-ml.so.1 -> libnvidia-ml.so.550.54.14\n"
			    "symlink /usr/lib/libcuda.so.1 -> libcuda.so.550.54.14\n"
			    "symlink /usr/lib/libnvidia-ngx.so.1 -> libnvidia-ngx.so.550.54.14\n"
			    "symlink /usr/lib/libnvidia-opticalflow.so.1 -> libnvidia-opticalflow.so.550.54.14\n"
			    "symlink /usr/lib/libGLX_nvidia.so.0 -> libGLX_nvidia.so.550.54.14\n"
			    "symlink /usr/lib/old/libGL.so.1 -> libGL.so.1.550\n"
			    "symlink /opt/lib/libcuda.so.1 -> libcuda.so.550.54.14\n"
			    "symlink /usr/lib/libnvidia-allocator.so.1 -> libnvidia-allocator.so.550.54.14\n"
			    "symlink /usr/lib/vdpau/libvdpau_nvidia.so.1 -> libvdpau_nvidia.so.550.54.14\n"
			    "symlink /usr/lib/libnvidia-egl-gbm.so.1 -> libnvidia-egl-gbm.so.1.1.1\n"
			    "symlink /usr/lib/libnvidia-new.so.1 -> libnvidia-new.so.550.54.14");
	assert_string_equal(edits_of("library-link"),
			    "symlink /usr/lib/libcuda.so -> libcuda.so.1\n"
			    "symlink /usr/lib/libnvidia-opticalflow.so -> libnvidia-opticalflow.so.1\n"
			    "symlink /usr/lib/libGLX_indirect.so.0 -> libGLX_nvidia.so.550.54.14\n"
			    "symlink /opt/lib/libcuda.so -> libcuda.so.1\n"
			    "symlink /usr/lib/gbm/nvidia-drm_gbm.so -> ../libnvidia-allocator.so.1\n"
			    "symlink /usr/lib/libnvidia-allocator.so -> libnvidia-allocator.so.1\n"
			    "symlink /usr/lib/libnvidia-vulkan-producer.so -> libnvidia-vulkan-producer.so.550.54.14\n"
			    "symlink /usr/lib/libnvidia-new.so -> libnvidia-new.so.1\n"
			    "symlink /usr/lib/nvidia/xorg/libglxserver_nvidia.so -> libglxserver_nvidia.so.550.54.14");
	for (size_t i = 0; i < r.plan->n_edits; i++) {
		const struct graft_edit *edit = &r.plan->edits[i];

		/* the host's names replace those of an image */
		if (edit->kind == GRAFT_EDIT_SYMLINK && strcmp(edit->rule, "drm-link") != 0)
			assert_int_equal(edit->conflict, GRAFT_CONFLICT_REPLACE);
	}
	/* a link of graphics is nobody else's */
	make("0", "compute,utility", NULL);
	assert_null(find(r.plan, GRAFT_EDIT_SYMLINK, "/usr/lib/gbm/nvidia-drm_gbm.so"));
}

/* A soname's link is one a directory: what lies deeper is another one. */
static void test_links_by_directory(void **state)
{
	static struct graft_library libraries[] = {
		{ "/usr/lib/sub/liba.so.550.54.14", "liba.so.1", 0x303, GRAFT_CLASS_COMPUTE, "test" },
		{ "/usr/lib/liba.so.550.54.14", "liba.so.1", 0x303, GRAFT_CLASS_COMPUTE, "test" },
		{ "/usr/lib/liba.so.550.54.14.old", "liba.so.1", 0x303, GRAFT_CLASS_COMPUTE, "test" },
	};

	f.inventory.libraries = libraries;
	f.inventory.n_libraries = GRAFT_COUNT(libraries);
	make("0", "compute", NULL);
	assert_string_equal(edits_of("soname-link"), "symlink /usr/lib/sub/liba.so.1 -> liba.so.550.54.14\n"
						     "symlink /usr/lib/liba.so.1 -> liba.so.550.54.14");
	assert_int_equal(r.plan->edits[r.plan->n_edits - 1].n_entries, 1);
}

/* What no table knows goes to those who asked for everything. 32-bit libraries are something else. */
static void test_capabilities(void **state)
{
	static const struct {
		const char *capabilities;
		bool other, bits32;
	} rows[] = {
		{ EVERYTHING, true, false },
		{ EVERYTHING ",compat32", true, true },
		{ "all", true, true },
		{ "compute,graphics,utility,video,display", false, false },
		{ "compute,compat32", false, true },
		{ "", false, false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		make("0", rows[i].capabilities, NULL);
		check_invariants(r.plan);
		assert_int_equal(find(r.plan, GRAFT_EDIT_BIND, "/usr/lib/libnvidia-new.so.550.54.14") != NULL,
				 rows[i].other);
		assert_int_equal(refusal(r.plan, "2 of class other") == NULL, rows[i].other);
		assert_int_equal(find(r.plan, GRAFT_EDIT_BIND, "/usr/lib32/libcuda.so.550.54.14") != NULL,
				 rows[i].bits32);
	}
}

/* SPEC runtime-and-hook 6.6, 7.5: the loader's cache has what was mounted, where it was mounted. */
static void test_loader_cache(void **state)
{
	static const char *dirs[] = { "/usr/lib/", "/lib64" };
	const struct graft_edit *edit;

	f.policy.image.loader_dirs = dirs;
	f.policy.image.n_loader_dirs = GRAFT_COUNT(dirs);
	make("0", "compute,video", NULL);
	edit = &r.plan->edits[r.plan->n_edits - 1];
	assert_int_equal(edit->kind, GRAFT_EDIT_LDCACHE);
	assert_int_equal(edit->n_folders, 2);
	assert_string_equal(edit->folders[0], "/usr/lib");
	assert_string_equal(edit->folders[1], "/usr/lib/vdpau");
	assert_int_equal(edit->n_missing_folders, 1);
	assert_string_equal(edit->missing_folders[0], "/usr/lib/vdpau");
	assert_string_equal(edit->entries[0].path, "/usr/lib/libcuda.so.1");
	/* nothing is done for nothing */
	make("0", "", NULL);
	assert_int_equal(r.plan->edits[r.plan->n_edits - 1].kind == GRAFT_EDIT_LDCACHE, false);
}

/* SPEC ctk-and-cdi 2.4: libcuda decides for its directory, by its own word if it has one. The driver is 550.54.14. */
static void test_compat_decision(void **state)
{
	static const char *drivers_550[] = { "535", "550" }, *drivers_570[] = { "570" };
	static const struct {
		const char *name;
		bool note;
		const char **drivers;
		size_t n_drivers;
		bool used;
	} rows[] = {
		{ "libcuda.so.560.35.05", false, NULL, 0, true },
		{ "libcuda.so.550.90.07", false, NULL, 0, false }, /* of the same branch: the driver's own does */
		{ "libcuda.so.535.1", false, NULL, 0, false },
		{ "libcuda.so.560.35.05", true, drivers_550, 2, true },
		{ "libcuda.so.550.90.07", true, drivers_550, 2, true }, /* newer within the branch, and says so */
		{ "libcuda.so.550.54.14", true, drivers_550, 2, false },
		{ "libcuda.so.535.1", true, drivers_550, 2, false },
		{ "libcuda.so.580.65.06", true, drivers_570, 1, false },
		{ "libcuda.so.580.65.06", true, NULL, 0, false },
		{ "libcuda.so.x.y", false, NULL, 0, false },
		{ "libcuda.so.x.y", true, drivers_550, 2, false },
	};
	static const char *links[] = { "libcuda.so" };
	struct graft_compat_library compat[] = {
		{ .soname = "libcuda.so.1", .abi_flags = 0x303, .development_links = links, .n_development_links = 1 },
		{ "/usr/local/cuda/compat/libnvidia-nvvm70.so.4", "libnvidia-nvvm70.so.4", 0x303, 4 },
		{ "/elsewhere/libnvidia-nvvm.so.560.35.05", "libnvidia-nvvm.so.4", 0x303, 560 },
		{ "/usr/local/cuda/compat/nameless.so.1", NULL, 0x303, 1 },
	};

	f.policy.image.compat = compat;
	f.policy.image.n_compat = GRAFT_COUNT(compat);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		char path[128];
		const struct graft_edit *edit;

		(void)snprintf(path, sizeof(path), "/usr/local/cuda/compat/%s", rows[i].name);
		compat[0].path = path;
		compat[0].note = rows[i].note;
		compat[0].note_drivers = rows[i].drivers;
		compat[0].n_note_drivers = rows[i].n_drivers;
		make("0", EVERYTHING, NULL);
		edit = &r.plan->edits[r.plan->n_edits - 1];
		if ((strcmp(edit->folders[0], "/usr/local/cuda/compat") == 0) != rows[i].used)
			fail_msg("row %zu: %s", i, rows[i].name);
		/* a library without the driver's version goes with its directory */
		assert_int_equal(refusal(r.plan, compat[1].path) == NULL, rows[i].used);
		assert_string_equal(edit->entries[0].path, rows[i].used ? path : "/usr/lib/libnvidia-ml.so.1");
		assert_int_equal(strcmp(edit->entries[1].soname, "libcuda.so") == 0, rows[i].used);
		if (rows[i].used)
			assert_string_equal(edit->entries[1].path, path);
		assert_non_null(refusal(r.plan, compat[2].path));
		assert_non_null(refusal(r.plan, compat[3].path));
	}
}

static void test_compat_refused(void **state)
{
	static struct graft_compat_library compat[] = {
		{ "/usr/local/cuda/compat/libcuda.so.560.35.05", "libcuda.so.1", 0x303, 560 },
		{ "/usr/local/cuda/compat/libcuda.so.570.1", "libcuda.so.1", 0x303, 570 },
	};

	f.policy.image.compat = compat;
	f.policy.image.n_compat = 2;
	make("0", EVERYTHING, NULL);
	assert_non_null(strstr(refusal(r.plan, compat[0].path), "not have exactly one libcuda"));
	f.policy.image.n_compat = 1;
	make("0", EVERYTHING, NULL);
	assert_null(refusal(r.plan, compat[0].path));
	f.policy.disabled_hooks = GRAFT_HOOK_COMPAT;
	make("0", EVERYTHING, NULL);
	assert_string_equal(refusal(r.plan, compat[0].path), "switched off by the administrator");
	assert_string_equal(r.plan->edits[r.plan->n_edits - 1].folders[0], "/usr/lib");
	f.policy.disabled_hooks = 0;
	f.policy.image.libc = GRAFT_LIBC_MUSL;
	make("0", EVERYTHING, NULL);
	assert_non_null(strstr(refusal(r.plan, compat[0].path), "musl"));
}

/* SPEC runtime-and-hook 7.7: what a hook would do is left out, and nothing else. */
static void test_disabled_hooks(void **state)
{
	static const struct {
		uint32_t hook;
		const char *rules[3];
	} rows[] = {
		{ GRAFT_HOOK_SYMLINKS, { "drm-link", "soname-link", "library-link" } },
		{ GRAFT_HOOK_LDCACHE, { "loader-cache" } },
		{ GRAFT_HOOK_PARAMS, { "driver-params" } },
		{ GRAFT_HOOK_PROFILE, { "application-profile" } },
	};
	struct graft_plan *whole;

	make("0", EVERYTHING, NULL);
	whole = TAKE_PTR(r.plan);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		size_t n_left_out = 0;

		f.policy.disabled_hooks = rows[i].hook;
		make("0", EVERYTHING, NULL);
		check_invariants(r.plan);
		for (size_t j = 0; j < whole->n_edits; j++) {
			for (size_t k = 0; k < GRAFT_COUNT(rows[i].rules) && rows[i].rules[k]; k++)
				n_left_out += strcmp(whole->edits[j].rule, rows[i].rules[k]) == 0;
		}
		assert_true(n_left_out > 0);
		assert_int_equal(r.plan->n_edits, whole->n_edits - n_left_out);
		assert_true(r.plan->n_refusals > whole->n_refusals);
	}
	/* entries of the cache then name the files themselves */
	f.policy.disabled_hooks = GRAFT_HOOK_SYMLINKS;
	make("0", EVERYTHING, NULL);
	assert_string_equal(r.plan->edits[r.plan->n_edits - 1].entries[0].path, "/usr/lib/libnvidia-ml.so.550.54.14");
	(void)graft_plan_free(whole);
}

/* SPEC runtime-and-hook 6.6: only where the host's own file says something else. */
static void test_params(void **state)
{
	static const struct {
		const char *host, *covered;
	} rows[] = {
		{ "A: 1\nModifyDeviceFiles: 1\nB: 2\n", "A: 1\nModifyDeviceFiles: 0\nB: 2\n" },
		{ "ModifyDeviceFiles: 1", "ModifyDeviceFiles: 0" },
		{ "A: 1\nModifyDeviceFiles: 0\n", NULL },
		{ "ModifyDeviceFiles: 11\n", NULL },
		{ "XModifyDeviceFiles: 1\n", NULL },
		{ "ModifyDeviceFiles: 1 \n", NULL },
		{ "ModifyDeviceFiles: 12\nModifyDeviceFiles: 1\n", "ModifyDeviceFiles: 12\nModifyDeviceFiles: 0\n" },
		{ "ModifyDeviceFiles: 1\nModifyDeviceFiles: 1\n", "ModifyDeviceFiles: 0\nModifyDeviceFiles: 0\n" },
		{ "", NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const struct graft_edit *edit;

		f.proc_files[0].content = rows[i].host;
		make("0", EVERYTHING, NULL);
		edit = find(r.plan, GRAFT_EDIT_COVER, "/proc/driver/nvidia/params");
		assert_int_equal(edit != NULL, rows[i].covered != NULL);
		if (edit) {
			assert_string_equal(edit->content, rows[i].covered);
			assert_int_equal(edit->mode, 0444);
			assert_int_equal(edit->flags, FILE_FLAGS | GRAFT_MOUNT_NOEXEC);
		}
	}
}

static void test_application_profile(void **state)
{
	const struct graft_edit *edit;

	make("0,2", EVERYTHING, NULL);
	assert_string_equal(edits_of("application-profile"),
			    "directory /etc/nvidia/nvidia-application-profiles-rc.d\n"
			    "file /etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf");
	edit = expect(r.plan, GRAFT_EDIT_FILE, "/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf");
	assert_string_equal(edit->content,
			    "{\"profiles\":[{\"name\":\"_container_\",\"settings\":[\"EGLVisibleDGPUDevices"
			    "\",0x81]}],\"rules\":[{\"pattern\":[],\"profile\":\"_container_\"}]}");
	assert_int_equal(edit->mode, 0444);
	assert_int_equal(edit[-1].mode, 0555);
	make("0", "compute", NULL);
	assert_string_equal(edits_of("application-profile"), "");
}

static void without_daemons(struct graft_request *request)
{
	request->no_persistenced = request->no_fabricmanager = request->no_mps = true;
}

/* SPEC runtime-and-hook 7.8, disable-ipc-discoverer */
static void test_without_daemons(void **state)
{
	make("0", EVERYTHING, NULL);
	assert_string_equal(
	    edits_of("ipc"),
	    "bind /run/nvidia-persistenced/socket\nbind /run/nvidia-fabricmanager/socket\nbind /tmp/nvidia-mps");
	make("0", EVERYTHING, without_daemons);
	assert_string_equal(edits_of("ipc"), "");
}

/* SPEC runtime-and-hook Q11: WSL2 honours "none", unlike the existing stack. */
static void test_wsl(void **state)
{
	static struct graft_node dxg[] = { FIXTURE_NODE("/dev/dxg", 10, 125) };
	static struct graft_extra_file store[] = { { "/usr/lib/wsl/drivers/nv/libcuda.so.1.1", NULL, GRAFT_CLASS_WSL,
						     "test" } };

	f.inventory.platform = GRAFT_PLATFORM_WSL2;
	f.inventory.nodes = dxg;
	f.inventory.n_nodes = 1;
	f.inventory.extra_files = store;
	f.inventory.n_extra_files = 1;
	f.inventory.n_gpus = 0;
	f.inventory.n_proc_files = 0;
	make("all", EVERYTHING, NULL);
	assert_string_equal(edits_of("driver-node"), "device /dev/dxg");
	assert_string_equal(edits_of("driver-store"), "bind /usr/lib/wsl/drivers/nv/libcuda.so.1.1");
	assert_string_equal(edits_of("environment"), "env NVIDIA_VISIBLE_DEVICES -> void");
	assert_string_equal(edits_of("application-profile"), "");
	make("", EVERYTHING, NULL);
	assert_string_equal(edits_of("driver-node"), "");
	assert_string_equal(edits_of("driver-store"), "");
}

/* What a specification says once for all of its devices. */
static void test_shared(void **state)
{
	static struct graft_extra_file store[] = { { "/usr/lib/wsl/drivers/nv/libcuda.so.1.1", NULL, GRAFT_CLASS_WSL,
						     "test" } };

	f.policy.shared = true;
	f.proc_files[0].content = "ModifyDeviceFiles: 0\n";
	make("", EVERYTHING, NULL);
	check_invariants(r.plan);
	assert_int_equal(r.plan->n_grants, 0);
	assert_string_equal(edits_of("gpu-node"), "");
	assert_null(find(r.plan, GRAFT_EDIT_ENV, "NVCT_EMPTY_DEVICE"));
	(void)expect(r.plan, GRAFT_EDIT_ENV, "NVIDIA_VISIBLE_DEVICES");
	(void)expect(r.plan, GRAFT_EDIT_DEVICE, "/dev/nvidiactl");
	/* Whatever the host's parameters are today; and a profile of devices that are not known yet. */
	(void)expect(r.plan, GRAFT_EDIT_COVER, "/proc/driver/nvidia/params");
	assert_string_equal(edits_of("application-profile"), "directory /etc/nvidia/nvidia-application-profiles-rc.d");

	f.inventory.platform = GRAFT_PLATFORM_WSL2;
	f.inventory.extra_files = store;
	f.inventory.n_extra_files = 1;
	make("", EVERYTHING, NULL);
	assert_string_equal(edits_of("driver-store"), "bind /usr/lib/wsl/drivers/nv/libcuda.so.1.1");
}

static void ask_management(struct graft_request *request)
{
	request->management = true;
}

/* Nodes by their names alone, and none twice: those of GPUs and of the driver are among them. */
static void test_management(void **state)
{
	static struct graft_node nodes[] = { FIXTURE_NODE("/dev/nvidia0", 195, 0), FIXTURE_NODE("/dev/nvidia9", 195, 9),
					     FIXTURE_NODE("/dev/nvidiactl", 195, 255) };

	f.inventory.management_nodes = nodes;
	f.inventory.n_management_nodes = GRAFT_COUNT(nodes);
	make("", EVERYTHING, ask_management);
	check_invariants(r.plan);
	assert_string_equal(edits_of("management-node"),
			    "device /dev/nvidia0\ndevice /dev/nvidia9\ndevice /dev/nvidiactl");
	assert_string_equal(edits_of("driver-node"), "");
	assert_null(find(r.plan, GRAFT_EDIT_ENV, "NVCT_EMPTY_DEVICE"));
	f.policy.shared = true;
	make("", EVERYTHING, ask_management);
	assert_string_equal(edits_of("management-node"), "");
	assert_string_equal(edits_of("driver-node"), "");
}

static void ask_everything(struct graft_request *request)
{
	request->gates = (1u << GRAFT_GATE_MAX) - 1u;
	ask_all_channels(request);
}

static void test_every_allocation_may_fail(void **state)
{
	make("all", "all", ask_everything);
	assert_int_equal(r.result, 0);
	for (int n = 1;; n++) {
		struct graft_error err = { 0 };
		struct graft_plan *plan = NULL;
		int result;

		allocation_fail(n);
		result = graft_plan_make(&f.inventory, r.request, &f.policy, &r.selection, &plan, &err);
		if (!allocation_reported(result, &err)) {
			assert_int_equal(plan->n_edits, r.plan->n_edits);
			assert_true(n > 3);
			(void)graft_plan_free(plan);
			break;
		}
		assert_null(plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_paths_are_the_hosts, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_programs, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_gpu, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_graphics_in_a_namespace, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_mig, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_mig_with_graphics, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_mig_config_of_instances_to_come, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_mig_config, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_all, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_none, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_control_nodes, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_gates, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_imex, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_links, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_links_by_directory, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_capabilities, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_loader_cache, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_compat_decision, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_compat_refused, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_disabled_hooks, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_params, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_application_profile, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_without_daemons, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_wsl, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_shared, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_management, setup, free_plan),
		cmocka_unit_test_setup_teardown(test_every_allocation_may_fail, setup, free_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
