/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host on which all is well, and one thing at a time made wrong: the right check tells it, with a cause and a remedy that name what matters, and no other
 * check does, but those that the row allows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../allocation.h"
#include "base/cleanup.h"
#include "plan/doctor.h"

#define DRIVER   "550.54.14"
#define LIBDIR   "/usr/lib/x86_64-linux-gnu/"
#define ALL_CAPS 0x1ffffffffffull

struct world {
	struct graft_health health;
	struct graft_gpu gpus[3];
	struct graft_mig_device migs[1];
	struct graft_omission omissions[1];
	struct graft_health_module modules[5];
	struct graft_health_pci pci[3];
	struct graft_health_node nodes[5];
	struct graft_health_library libraries[2];
	const char *nvml_bus_ids[2];
	struct graft_health_daemon daemons[2];
	struct graft_health_spec specs[2];
	struct graft_health_file spec_problems[1];
	const char *cdi_directories[2], *cdi_devices[2];
	struct graft_health_program programs[6];
	const char *low_level[2];
	struct graft_health_engine engines[4];
	struct graft_health_file files[4][3];
	struct graft_health_runtime runtimes[4];
	struct graft_health_hook hooks[1];
	const char *resources[1], *engine_directories[1];
	struct graft_health_unseen unseen[2];
	const char *driver_files[1];
	struct graft_compat_library compat[1];
	const char *note_drivers[1];
	struct graft_doctor_question question;
	const char *devices[2], *requirements[1];
};

#define NODE(p, maj, min)                                                                               \
	{                                                                                               \
		.path = (p), .required = true, .present = true, .device = true, .has_numbers = true,    \
		.want_major = (maj), .want_minor = (min), .major = (maj), .minor = (min), .mode = 0666, \
		.char_link = "../x", .link_leads_here = true                                            \
	}

static void healthy_driver(struct world *w)
{
	static const struct world data = {
		.gpus = { { .index = 0,
			    .bus_id = "00000000:1b:00.0",
			    .uuid = { "GPU-0", "t" },
			    .model = { "NVIDIA A100", "t" },
			    .node = { .path = "/dev/nvidia0", .major = 195, .present = true } },
			  { .index = 1,
			    .bus_id = "00000000:1c:00.0",
			    .uuid = { "GPU-1", "t" },
			    .model = { "NVIDIA A100", "t" },
			    .node = { .path = "/dev/nvidia1", .major = 195, .minor = 1, .present = true } },
			  { .index = 0, .excluded = true, .bus_id = "00000000:1d:00.0" } },
		.modules = { { "nvidia", true, DRIVER, "/lib/modules/6.1/nvidia.ko" },
			     { "nvidia_uvm", true, DRIVER, NULL },
			     { "nvidia_modeset", true, DRIVER, NULL },
			     { "nvidia_drm", true, DRIVER, NULL },
			     { "nouveau", true, NULL, NULL } },
		.pci = { { "0000:1b:00.0", false, "nvidia" },
			 { "0000:1c:00.0", false, "nvidia" },
			 { "0000:05:00.0", true, NULL } },
		.nodes = { NODE("/dev/nvidiactl", 195, 255), NODE("/dev/nvidia-uvm", 510, 0),
			   NODE("/dev/nvidia0", 195, 0), NODE("/dev/nvidia1", 195, 1),
			   NODE("/dev/nvidia-caps/nvidia-cap1", 511, 1) },
		.libraries = { { "libnvidia-ml.so.1", LIBDIR "libnvidia-ml.so.1", LIBDIR "libnvidia-ml.so." DRIVER,
				 DRIVER },
			       { "libcuda.so.1", LIBDIR "libcuda.so.1", LIBDIR "libcuda.so." DRIVER, DRIVER } },
		.nvml_bus_ids = { "00000000:1B:00.0", "00000000:1C:00.0" },
		.daemons = { { "nvidia-persistenced", "/run/nvidia-persistenced/socket", true, true },
			     { "nv-fabricmanager", "/run/nvidia-fabricmanager/socket", true, true } },
	};

	*w = data;
	w->health.version = GRAFT_HEALTH_VERSION;
	w->health.inventory = (struct graft_inventory){ .platform = GRAFT_PLATFORM_NATIVE,
							.root = "/",
							.driver_version = { DRIVER, "t" },
							.cuda_version = { "12.4", "t" },
							.library_version = { DRIVER, "t" },
							.nvml_library = LIBDIR "libnvidia-ml.so." DRIVER,
							.caps_devices = true,
							.proc_driver_nvidia = true,
							.gpus = w->gpus,
							.n_gpus = 3 };
	w->health.kernel = (struct graft_health_kernel){ .release = "6.1",
							 .modules_listed = true,
							 .systemd = true,
							 .modules = w->modules,
							 .n_modules = 4,
							 .pci = w->pci,
							 .n_pci = 3,
							 .pci_listed = true,
							 .has_file_mode = true,
							 .file_mode = 0666 };
	w->health.nodes = w->nodes;
	w->health.n_nodes = 5;
	w->health.loader =
	    (struct graft_health_loader){ .cache = "/etc/ld.so.cache", .libraries = w->libraries, .n_libraries = 2 };
	w->health.nvml = (struct graft_health_nvml){ .asked = true,
						     .status = "OK",
						     .took_ms = 20,
						     .driver_version = DRIVER,
						     .n_gpus = 2,
						     .bus_ids = w->nvml_bus_ids,
						     .n_bus_ids = 2 };
	w->health.daemons = w->daemons;
	w->health.n_daemons = 2;
}

static void healthy_engine(struct world *w, size_t i, enum graft_health_engine_kind kind, const char *name,
			   const char *file)
{
	struct graft_health_engine *engine = &w->engines[i];

	w->files[i][0] = (struct graft_health_file){ .path = file, .changed = 100, .imported = true };
	w->runtimes[i] = (struct graft_health_runtime){
		.name = "nvidia", .path = "/usr/bin/nvidia-container-runtime", .file = file, .found = true
	};
	*engine = (struct graft_health_engine){ .kind = kind,
						.name = name,
						.program = "/usr/bin/x",
						.running = true,
						.started = 200,
						.path = "/usr/bin:/bin",
						.hook = "/usr/bin/nvidia-container-runtime-hook",
						.hook_changed = 100,
						.files = w->files[i],
						.n_files = 1,
						.runtimes = &w->runtimes[i],
						.n_runtimes = 1 };
}

static void healthy(struct world *w)
{
	static const char *const programs[] = { "nvidia-container-runtime-hook",
						"nvidia-container-runtime",
						"nvidia-cdi-hook",
						"nvidia-container-cli",
						"runc",
						"crun" };

	healthy_driver(w);
	w->health.self = (struct graft_health_self){ .capabilities = ALL_CAPS };
	w->health.cgroup.version = GRAFT_CGROUP_V2;
	w->health.userns = (struct graft_health_userns){ .has_max = true, .max = 1000 };
	w->health.lsm = (struct graft_health_lsm){ .selinux = true,
						   .selinux_enforcing = true,
						   .has_container_devices = true,
						   .container_devices = true,
						   .apparmor = true };
	w->specs[0] = (struct graft_health_spec){ "/etc/cdi/nvidia.yaml", "nvidia.com/gpu", 2, NULL };
	w->cdi_directories[0] = "/etc/cdi";
	w->cdi_directories[1] = "/var/run/cdi";
	w->cdi_devices[0] = "nvidia.com/gpu=0";
	w->cdi_devices[1] = "nvidia.com/gpu=all";
	w->health.cdi = (struct graft_health_cdi){ .directories = w->cdi_directories,
						   .n_directories = 2,
						   .specs = w->specs,
						   .n_specs = 1,
						   .devices = w->cdi_devices,
						   .n_devices = 2 };
	w->low_level[0] = "runc";
	w->low_level[1] = "crun";
	w->health.config = (struct graft_health_config){ .file = "/etc/nvidia-container-runtime/config.toml",
							 .mode = "auto",
							 .present = true,
							 .runtimes = w->low_level,
							 .n_runtimes = 2,
							 .runtime = "/usr/bin/runc" };
	for (size_t i = 0; i < GRAFT_COUNT(programs); i++)
		w->programs[i] = (struct graft_health_program){ programs[i], "/usr/bin/program" };
	w->health.programs = w->programs;
	w->health.n_programs = GRAFT_COUNT(programs);
	healthy_engine(w, 0, GRAFT_ENGINE_DOCKER, "docker", "/etc/docker/daemon.json");
	healthy_engine(w, 1, GRAFT_ENGINE_CONTAINERD, "containerd", "/etc/containerd/config.toml");
	w->files[1][0].version = 2;
	w->runtimes[1].table = "io.containerd.grpc.v1.cri";
	healthy_engine(w, 2, GRAFT_ENGINE_CRIO, "cri-o", "/etc/crio/crio.conf");
	healthy_engine(w, 3, GRAFT_ENGINE_PODMAN, "podman", "/etc/containers/containers.conf");
	w->health.engines = w->engines;
	w->health.n_engines = 4;
	w->health.kubernetes = true;
}

/* --- what is made wrong --- */

#define WRONG(name) static void name(struct world *w)

WRONG(nothing)
{
	(void)w;
}
WRONG(no_gpu_on_bus)
{
	w->health.kernel.n_pci = 0;
	w->health.inventory.n_gpus = 0;
	w->health.nvml.n_gpus = 0;
}
WRONG(lost_gpu)
{
	w->gpus[1] = w->gpus[2];
	w->health.inventory.n_gpus = 2;
}
WRONG(lost_gpu_in_procfs)
{
	w->omissions[0] = (struct graft_omission){ "/proc/driver/nvidia/gpus/0000:1e:00.0", "no bus id" };
	w->health.inventory.omissions = w->omissions;
	w->health.inventory.n_omissions = 1;
}
WRONG(one_gpu_for_machines)
{
	lost_gpu(w);
	w->pci[1].driver = "vfio-pci";
}
WRONG(all_gpus_for_machines)
{
	no_gpu_on_bus(w);
	w->health.kernel.n_pci = 2;
	w->pci[0].driver = w->pci[1].driver = "vfio-pci";
}
WRONG(driver_without_gpu)
{
	no_gpu_on_bus(w);
	w->health.kernel.n_pci = 2;
}
/* What goes along when the module is not there. */
WRONG(no_module)
{
	w->modules[0].loaded = false;
	w->modules[0].version = NULL;
	w->modules[1].loaded = false;
	w->health.inventory.proc_driver_nvidia = false;
	w->health.inventory.driver_version.value = NULL;
	w->health.inventory.n_gpus = 0;
	w->health.n_nodes = 0;
	w->health.nvml = (struct graft_health_nvml){ .asked = true,
						     .status = "NO_DRIVER",
						     .problem = "nvml error: driver not loaded" };
}
WRONG(no_module_nouveau)
{
	no_module(w);
	w->health.kernel.n_modules = 5;
}
WRONG(no_module_for_kernel)
{
	no_module(w);
	w->modules[0].file = NULL;
}
WRONG(no_driver_at_all)
{
	no_module_for_kernel(w);
	w->health.inventory.library_version.value = NULL;
	w->health.inventory.nvml_library = NULL;
	w->libraries[0].file = w->libraries[1].file = NULL;
	w->libraries[0].cached = w->libraries[1].cached = NULL;
	w->health.nvml = (struct graft_health_nvml){ .asked = false };
}
WRONG(no_module_secure_boot)
{
	no_module(w);
	w->health.kernel.secure_boot = true;
}
WRONG(no_uvm)
{
	w->modules[1].loaded = false;
}
WRONG(nouveau_beside)
{
	w->health.kernel.n_modules = 5;
}
WRONG(no_gpu_node)
{
	w->nodes[2] = (struct graft_health_node){ .path = "/dev/nvidia0", .required = true };
}
WRONG(no_control_node)
{
	w->nodes[0] = (struct graft_health_node){ .path = "/dev/nvidiactl", .required = true };
}
WRONG(no_capability_node)
{
	w->nodes[4] = (struct graft_health_node){ .path = "/dev/nvidia-caps/nvidia-cap1", .required = true };
}
WRONG(old_numbers)
{
	w->nodes[1].want_major = 505;
}
WRONG(directory_for_node)
{
	w->nodes[1] = (struct graft_health_node){ .path = "/dev/nvidia-uvm", .required = true, .present = true };
}
WRONG(group_nodes)
{
	for (size_t i = 0; i < 4; i++) {
		w->nodes[i].mode = 0660;
		w->nodes[i].gid = 44;
	}
	w->health.kernel.file_mode = 0660;
}
WRONG(group_nodes_by_udev)
{
	group_nodes(w);
	w->health.kernel.file_mode = 0666;
}
WRONG(group_nodes_shut_nvml_out)
{
	group_nodes(w);
	w->health.nvml = (struct graft_health_nvml){ .asked = true,
						     .status = "PERMISSION",
						     .problem = "nvml error: insufficient permissions" };
}
WRONG(no_links)
{
	for (size_t i = 0; i < 5; i++) {
		w->nodes[i].char_link = NULL;
		w->nodes[i].link_leads_here = false;
	}
}
WRONG(wrong_link)
{
	w->nodes[3].link_leads_here = false;
}
WRONG(no_links_no_systemd)
{
	no_links(w);
	w->health.kernel.systemd = false;
}
WRONG(no_nvml)
{
	w->health.inventory.nvml_library = NULL;
	w->health.inventory.library_version.value = NULL;
	w->libraries[0].file = w->libraries[0].cached = NULL;
	w->health.nvml = (struct graft_health_nvml){ .asked = false };
}
WRONG(driver_in_container)
{
	no_nvml(w);
	w->health.loader.other_root = "/run/nvidia/driver";
}
WRONG(no_cuda)
{
	w->libraries[1].file = w->libraries[1].cached = NULL;
}
WRONG(mismatch)
{
	w->modules[0].version = "550.40.07";
	w->health.nvml = (struct graft_health_nvml){ .asked = true,
						     .status = "MISMATCH",
						     .problem = "nvml error: driver/library version mismatch" };
}
WRONG(two_drivers)
{
	w->libraries[1].version = "535.161.08";
}
WRONG(no_cache)
{
	w->health.loader.state = GRAFT_CACHE_MISSING;
}
WRONG(no_cache_no_nvml)
{
	no_nvml(w);
	no_cache(w);
}
WRONG(unreadable_cache)
{
	w->health.loader.state = GRAFT_CACHE_UNREADABLE;
	w->health.loader.problem = "permission denied";
}
WRONG(damaged_cache)
{
	w->health.loader.state = GRAFT_CACHE_DAMAGED;
	w->health.loader.problem = "unsupported file format";
}
WRONG(stale_cache)
{
	w->libraries[1].file = NULL;
}
WRONG(uncached)
{
	w->libraries[0].cached = NULL;
}
WRONG(uncached_on_nixos)
{
	w->libraries[0].cached = NULL;
	w->libraries[0].file = "/run/opengl-driver/lib/libnvidia-ml.so." DRIVER;
}
WRONG(nvml_says_no_driver)
{
	w->health.nvml.status = "NO_DRIVER";
	w->health.nvml.problem = "nvml error: driver not loaded";
}
WRONG(nvml_crashes)
{
	w->health.nvml.status = "NVML";
	w->health.nvml.problem = "it was ended by signal 11";
}
WRONG(nvml_cannot_load)
{
	w->health.nvml.status = "NO_LIBRARY";
	w->health.nvml.problem = "wrong ELF class";
}
WRONG(nvml_loses_one)
{
	w->health.nvml.n_gpus = 1;
	w->health.nvml.n_bus_ids = 1;
}
WRONG(nvml_not_asked)
{
	w->health.nvml = (struct graft_health_nvml){ .asked = false };
}
WRONG(slow)
{
	w->health.nvml.took_ms = 5432;
}
WRONG(timed_out)
{
	w->health.nvml =
	    (struct graft_health_nvml){ .asked = true, .status = "TIMEOUT", .problem = "no answer", .took_ms = 30000 };
}
WRONG(no_persistence)
{
	w->daemons[0].running = w->daemons[0].has_socket = false;
}
WRONG(crashed_persistence)
{
	w->daemons[0].running = false;
}
WRONG(no_fabric_manager)
{
	w->daemons[1].running = w->daemons[1].has_socket = false;
}
WRONG(crashed_fabric_manager)
{
	w->daemons[1].running = false;
}
WRONG(hidden_daemons)
{
	w->daemons[0].running = w->daemons[1].running = false;
	w->health.processes_hidden = true;
}
WRONG(empty_mig)
{
	w->gpus[1].mig_enabled = true;
}
WRONG(mig_by_procfs)
{
	w->gpus[1].mig_enabled = true;
	w->gpus[1].mig_devices = w->migs;
	w->gpus[1].n_mig_devices = 1;
	w->migs[0].uuid = (struct graft_fact){ "MIG-1", "t" };
	w->health.inventory.caps_devices = false;
}
WRONG(no_cgroup)
{
	w->health.cgroup.version = GRAFT_CGROUP_NONE;
}
WRONG(no_controller)
{
	w->health.cgroup.version = GRAFT_CGROUP_V1;
}
WRONG(controller_not_mounted)
{
	w->health.cgroup.version = GRAFT_CGROUP_HYBRID;
	w->health.cgroup.devices_enabled = true;
}
WRONG(old_library)
{
	w->health.cgroup.library = LIBDIR "libnvidia-container.so.1.7.0";
}
WRONG(in_user_namespace)
{
	w->health.self.user_namespace = true;
}
WRONG(root_without_rights)
{
	w->health.self.capabilities = 0;
}
WRONG(no_user_namespaces)
{
	w->health.userns.max = 0;
}
WRONG(user_namespaces_forbidden)
{
	w->health.userns.clone_forbidden = true;
}
WRONG(ordinary_user_without_ids)
{
	w->health.self = (struct graft_health_self){ .uid = 1000 };
}
WRONG(selinux_refuses)
{
	w->health.lsm.container_devices = false;
}
WRONG(selinux_without_policy)
{
	w->health.lsm.container_devices = w->health.lsm.has_container_devices = false;
}
WRONG(bad_config)
{
	w->health.config.problem = "line 2, column 3: no key";
}
WRONG(bad_mode)
{
	w->health.config.mode = "magic";
}
WRONG(bad_root)
{
	w->health.config.root = "/run/nvidia/driver";
	w->health.config.root_problem = "No such file or directory";
}
WRONG(no_cgroups)
{
	w->health.config.no_cgroups = true;
}
WRONG(no_own_programs)
{
	w->programs[1].path = w->programs[2].path = NULL;
}
WRONG(no_low_level_runtime)
{
	w->health.config.runtime = NULL;
}
WRONG(bad_spec)
{
	w->spec_problems[0] = (struct graft_health_file){ .path = "/etc/cdi/x.yaml", .problem = "invalid CDI Spec" };
	w->health.cdi.problems = w->spec_problems;
	w->health.cdi.n_problems = 1;
}
WRONG(no_specs)
{
	w->health.cdi.n_specs = w->health.cdi.n_devices = 0;
}
WRONG(no_specs_for_docker)
{
	no_specs(w);
	w->engines[0].has_cdi = w->engines[0].cdi = true;
}
WRONG(specs_elsewhere)
{
	w->engine_directories[0] = "/opt/cdi";
	w->engines[0].has_cdi = w->engines[0].cdi = true;
	w->engines[0].cdi_directories = w->engine_directories;
	w->engines[0].n_cdi_directories = 1;
}
WRONG(stale_spec)
{
	w->specs[0].stale = "device 0: mount source /usr/lib/libcuda.so.1 is not on this host";
}
WRONG(stale_foreign_spec)
{
	stale_spec(w);
	w->specs[1] = w->specs[0];
	w->specs[0].stale = NULL;
	w->specs[1].kind = "vendor.com/net";
	w->health.cdi.n_specs = 2;
}
WRONG(no_engine)
{
	w->health.n_engines = 0;
}
WRONG(bad_engine_file)
{
	w->files[0][0].problem = "line 1, column 2: no value";
}
WRONG(no_hook)
{
	w->engines[0].hook = NULL;
	w->programs[0].path = NULL;
}
WRONG(hook_elsewhere)
{
	w->engines[0].hook = NULL;
	w->programs[0].path = "/opt/nvidia/nvidia-container-runtime-hook";
}
WRONG(hook_came_later)
{
	w->engines[0].hook_changed = 300;
}
WRONG(docker_of_snap)
{
	w->engines[0].snap = true;
}
WRONG(docker_desktop)
{
	w->engines[0].desktop = true;
}
WRONG(no_docker_runtime)
{
	w->engines[0].n_runtimes = 0;
}
WRONG(no_docker_runtime_rootless)
{
	no_docker_runtime(w);
	w->engines[0].rootless = true;
	w->files[0][0].path = "/home/u/.config/docker/daemon.json";
}
WRONG(no_docker_runtime_on_tegra)
{
	no_docker_runtime(w);
	w->health.inventory.platform = GRAFT_PLATFORM_TEGRA;
}
WRONG(no_docker_runtime_program)
{
	w->runtimes[0].found = false;
}
WRONG(docker_not_reloaded)
{
	w->files[0][0].changed = 300;
}
WRONG(old_swarm_gpu)
{
	w->resources[0] = "gpu=GPU-9";
	w->engines[0].resources = w->resources;
	w->engines[0].n_resources = 1;
}
WRONG(forgotten_drop_in)
{
	w->files[1][1] = (struct graft_health_file){ .path = "/etc/containerd/conf.d/99-nvidia.toml" };
	w->engines[1].n_files = 2;
	w->engines[1].n_runtimes = 0;
}
WRONG(newer_drop_in)
{
	w->files[1][1] = (struct graft_health_file){ .path = "/etc/containerd/conf.d/99-nvidia.toml",
						     .imported = true,
						     .version = 4 };
	w->engines[1].n_files = 2;
}
WRONG(older_drop_in)
{
	newer_drop_in(w);
	w->files[1][0].version = 3;
	w->files[1][1].version = 2;
	w->runtimes[1].table = "io.containerd.cri.v1.runtime";
}
WRONG(wrong_table)
{
	w->runtimes[1].table = "cri";
}
WRONG(no_containerd_program)
{
	w->runtimes[1].found = false;
	w->runtimes[1].path = NULL;
}
WRONG(containerd_not_restarted)
{
	w->files[1][0].changed = 300;
}
WRONG(no_containerd_runtime)
{
	w->engines[1].n_runtimes = 0;
}
WRONG(no_k3s_runtime)
{
	no_containerd_runtime(w);
	w->engines[1].name = "k3s";
}
WRONG(no_microk8s_runtime)
{
	no_containerd_runtime(w);
	w->engines[1].name = "microk8s";
}
WRONG(containerd_gives_cdi)
{
	no_containerd_runtime(w);
	w->engines[1].has_cdi = w->engines[1].cdi = true;
}
WRONG(containerd_without_kubernetes)
{
	no_containerd_runtime(w);
	w->health.kubernetes = false;
}
WRONG(no_cri)
{
	w->engines[1].no_cri = true;
}
WRONG(no_crio_runtime)
{
	w->engines[2].n_runtimes = 0;
	no_specs(w);
}
WRONG(crio_hook)
{
	w->engines[2].n_runtimes = 0;
	w->hooks[0] = (struct graft_health_hook){ "/etc/hooks.d/nvidia.json", "/usr/bin/nvidia-x", true };
	w->engines[2].hooks = w->hooks;
	w->engines[2].n_hooks = 1;
}
WRONG(no_crio_program)
{
	w->runtimes[2].found = false;
}
WRONG(crio_not_restarted)
{
	w->files[2][0].changed = 300;
}
WRONG(no_crio_hook_program)
{
	crio_hook(w);
	w->hooks[0].found = false;
}
WRONG(no_podman)
{
	no_specs(w);
}
WRONG(podman_hook)
{
	no_specs(w);
	w->hooks[0] = (struct graft_health_hook){ "/etc/hooks.d/nvidia.json", "/usr/bin/nvidia-x", true };
	w->engines[3].hooks = w->hooks;
	w->engines[3].n_hooks = 1;
}
WRONG(no_podman_hook_program)
{
	podman_hook(w);
	w->hooks[0].found = false;
}
WRONG(not_seen)
{
	w->unseen[0] = (struct graft_health_unseen){ "/proc/1/environ", "Permission denied" };
	w->unseen[1] = (struct graft_health_unseen){ "/etc/cdi", "Permission denied" };
	w->health.unseen = w->unseen;
	w->health.n_unseen = 2;
}

static void ask_device(struct world *w, const char *device)
{
	w->devices[0] = device;
	w->question.devices = w->devices;
	w->question.n_devices = 1;
}
WRONG(asks_known_devices)
{
	ask_device(w, "GPU-1,0");
}
WRONG(asks_old_uuid)
{
	ask_device(w, "GPU-9");
}
WRONG(asks_high_index)
{
	ask_device(w, "7");
}
WRONG(asks_mig)
{
	ask_device(w, "MIG-9");
}
WRONG(asks_other_mig)
{
	mig_by_procfs(w);
	w->health.inventory.caps_devices = true;
	ask_device(w, "MIG-9");
}
WRONG(asks_without_gpu)
{
	no_driver_at_all(w);
	ask_device(w, "0");
}
WRONG(asks_without_facts)
{
	w->gpus[0].uuid.value = NULL;
	ask_device(w, "GPU-9");
}
WRONG(asks_cdi)
{
	ask_device(w, "nvidia.com/gpu=all");
}
WRONG(asks_unknown_cdi)
{
	ask_device(w, "nvidia.com/gpu=7");
}
static void require(struct world *w, const char *expression)
{
	w->requirements[0] = expression;
	w->question.requirements = w->requirements;
	w->question.n_requirements = 1;
}
WRONG(requires_less)
{
	require(w, "cuda>=11.0");
}
WRONG(requires_more)
{
	require(w, "cuda>=13.0");
}
WRONG(requires_nonsense)
{
	require(w, "cuda=~1");
}
WRONG(requires_architecture)
{
	require(w, "arch>=9.0");
	ask_device(w, "0");
}
WRONG(clean_image)
{
	w->health.image.path = "/tmp/image";
}
WRONG(image_with_driver)
{
	clean_image(w);
	w->driver_files[0] = "/usr/lib/libcuda.so.535.54.03";
	w->health.image.driver_files = w->driver_files;
	w->health.image.n_driver_files = 1;
}
static void with_compat(struct world *w, const char *path)
{
	clean_image(w);
	w->compat[0] = (struct graft_compat_library){ .path = path, .soname = "libcuda.so.1" };
	w->health.image.image.compat = w->compat;
	w->health.image.image.n_compat = 1;
}
WRONG(good_compat)
{
	with_compat(w, "/usr/local/cuda/compat/libcuda.so.575.57.08");
}
WRONG(old_compat)
{
	with_compat(w, "/usr/local/cuda/compat/libcuda.so.470.57.02");
}
WRONG(compat_for_others)
{
	good_compat(w);
	w->compat[0].note = true;
	w->compat[0].note_cuda = "12.9";
	w->note_drivers[0] = "535";
	w->compat[0].note_drivers = w->note_drivers;
	w->compat[0].n_note_drivers = 1;
}
WRONG(compat_for_servers)
{
	good_compat(w);
	w->gpus[0].model.value = "NVIDIA GeForce RTX 4090";
}
WRONG(compat_without_driver)
{
	no_driver_at_all(w);
	good_compat(w);
}

#define OK      GRAFT_LEVEL_OK
#define UNKNOWN GRAFT_LEVEL_UNKNOWN
#define WARN    GRAFT_LEVEL_WARNING
#define BROKEN  GRAFT_LEVEL_BROKEN
#define C(name) GRAFT_CHECK_##name

/* clang-format off */
static const struct {
	void (*change)(struct world *w);
	enum graft_check check;
	enum graft_level level;
	const char *subject, *cause, *remedy; /* parts of it; NULL = no matter */
	enum graft_check others[4];           /* further checks that may find something wrong; 0 ends the list (GPU is named by its row) */
} rows[] = {
	{ no_gpu_on_bus, C(GPU), BROKEN, "PCI bus", "no NVIDIA GPU", "lspci", { C(FABRIC_MANAGER) } },
	{ lost_gpu, C(GPU), BROKEN, "0000:1c:00.0", "fallen off", "dmesg", { 0 } },
	{ lost_gpu_in_procfs, C(GPU), BROKEN, "0000:1e:00.0", "no bus id", "dmesg", { 0 } },
	{ one_gpu_for_machines, C(GPU), WARN, "0000:1c:00.0", "vfio-pci", "modprobe.d", { 0 } },
	{ all_gpus_for_machines, C(GPU), BROKEN, "PCI bus", "virtual machines", "vfio-pci", { 0 } },
	{ driver_without_gpu, C(GPU), BROKEN, "driver", "has no GPU, although the bus has 2", "dmesg", { 0 } },
	{ no_module, C(KERNEL_MODULE), BROKEN, "nvidia", "not loaded, though installed: /lib/modules/6.1/nvidia.ko", "modprobe nvidia", { C(NVML) } },
	{ no_module_nouveau, C(KERNEL_MODULE), BROKEN, "nvidia", "nouveau has the GPUs", "blacklist nouveau", { C(NVML) } },
	{ no_module_for_kernel, C(KERNEL_MODULE), BROKEN, "nvidia", "kernel 6.1 has no such module; the libraries are of " DRIVER, "dkms autoinstall", { C(NVML) } },
	{ no_driver_at_all, C(KERNEL_MODULE), BROKEN, "nvidia", "no such module", "Install the NVIDIA driver", { C(DRIVER_LIBRARY) } },
	{ no_module_secure_boot, C(KERNEL_MODULE), BROKEN, "nvidia", "Secure Boot", "mokutil", { C(NVML) } },
	{ no_uvm, C(KERNEL_MODULE), BROKEN, "nvidia_uvm", "CUDA does not", "modprobe nvidia-uvm", { 0 } },
	{ nouveau_beside, C(KERNEL_MODULE), WARN, "nouveau", "beside", "blacklist nouveau", { 0 } },
	{ no_gpu_node, C(DEVICE_NODES), BROKEN, "/dev/nvidia0", "not there", "nvidia-modprobe -c 0", { 0 } },
	{ no_control_node, C(DEVICE_NODES), BROKEN, "/dev/nvidiactl", "not there", "create-device-nodes", { 0 } },
	{ no_capability_node, C(DEVICE_NODES), BROKEN, "nvidia-cap1", "not there", "nvidia-modprobe -f", { 0 } },
	{ old_numbers, C(DEVICE_NODES), BROKEN, "/dev/nvidia-uvm", "is device 510:0, the driver's is 505:0", "rm /dev/nvidia-uvm", { 0 } },
	{ directory_for_node, C(DEVICE_NODES), BROKEN, "/dev/nvidia-uvm", "no character device", "rm -r /dev/nvidia-uvm", { 0 } },
	{ group_nodes, C(DEVICE_MODES), WARN, "/dev/nvidiactl", "insufficient permissions: mode 0660, owner 0:44", "NVreg_DeviceFileMode=0666", { 0 } },
	{ group_nodes_by_udev, C(DEVICE_MODES), WARN, "/dev/nvidiactl", "other nodes likewise", "udev", { 0 } },
	{ group_nodes_shut_nvml_out, C(DEVICE_MODES), BROKEN, "/dev/nvidiactl", "insufficient permissions", "NVreg", { C(NVML) } },
	{ group_nodes_shut_nvml_out, C(NVML), BROKEN, "NVML", "may not open", "device-modes", { C(DEVICE_MODES) } },
	{ no_links, C(DEV_CHAR_LINKS), WARN, "/dev/char/195:255", "daemon-reload", "create-dev-char-symlinks", { 0 } },
	{ wrong_link, C(DEV_CHAR_LINKS), WARN, "/dev/char/195:1", "leads elsewhere than to /dev/nvidia1", "create-dev-char-symlinks", { 0 } },
	{ no_links_no_systemd, C(DEV_CHAR_LINKS), OK, "/dev/char", "without it", NULL, { 0 } },
	{ no_nvml, C(DRIVER_LIBRARY), BROKEN, "libnvidia-ml.so.1", "load library failed", "libraries of driver " DRIVER, { 0 } },
	{ driver_in_container, C(DRIVER_LIBRARY), BROKEN, "libnvidia-ml.so.1", "/run/nvidia/driver", "root=/run/nvidia/driver", { 0 } },
	{ no_cuda, C(DRIVER_LIBRARY), BROKEN, "libcuda.so.1", "CUDA does not", "compute libraries", { 0 } },
	{ mismatch, C(LIBRARY_VERSIONS), BROKEN, "libnvidia-ml.so.1", "loaded kernel module is 550.40.07, the libraries are " DRIVER, "Reboot", { C(NVML) } },
	{ mismatch, C(NVML), BROKEN, "NVML", "different versions", "library-versions", { C(LIBRARY_VERSIONS) } },
	{ two_drivers, C(LIBRARY_VERSIONS), BROKEN, "libcuda.so.1", "is 535.161.08, NVML is " DRIVER, "dpkg -S", { 0 } },
	{ no_cache, C(LOADER_CACHE), OK, "/etc/ld.so.cache", "not needed", NULL, { 0 } },
	{ no_cache_no_nvml, C(LOADER_CACHE), WARN, "/etc/ld.so.cache", "not there", "ldconfig", { C(DRIVER_LIBRARY) } },
	{ unreadable_cache, C(LOADER_CACHE), WARN, "/etc/ld.so.cache", "permission denied", "chmod 0644", { 0 } },
	{ damaged_cache, C(LOADER_CACHE), BROKEN, "/etc/ld.so.cache", "unsupported file format", "ldconfig", { 0 } },
	{ stale_cache, C(LOADER_CACHE), WARN, "/etc/ld.so.cache", "is stale: it names " LIBDIR "libcuda.so.1", "ldconfig", { C(DRIVER_LIBRARY) } },
	{ uncached, C(LOADER_CACHE), WARN, "/etc/ld.so.cache", "does not know libnvidia-ml.so.1", "ld.so.conf.d", { 0 } },
	{ uncached_on_nixos, C(LOADER_CACHE), OK, "/etc/ld.so.cache", "knows", NULL, { 0 } },
	{ nvml_says_no_driver, C(NVML), BROKEN, "NVML", "not loaded", "modprobe nvidia", { 0 } },
	{ nvml_crashes, C(NVML), BROKEN, "NVML", "signal 11", "nvidia-smi", { 0 } },
	{ nvml_cannot_load, C(NVML), BROKEN, "NVML", "wrong ELF class", "anew", { 0 } },
	{ nvml_loses_one, C(NVML), BROKEN, "NVML", "lists 1 of 2 GPUs: 00000000:1c:00.0 has failed", "dmesg", { 0 } },
	{ nvml_not_asked, C(NVML), UNKNOWN, "NVML", "not asked", NULL, { 0 } },
	{ slow, C(START_TIME), WARN, "driver", "answered after 5.4 s", "nvidia-persistenced", { 0 } },
	{ timed_out, C(START_TIME), BROKEN, "driver", "had not answered after 30.0 s", "nvidia-persistenced", { C(NVML) } },
	{ timed_out, C(NVML), BROKEN, "NVML", "in time", "--timeout", { C(START_TIME) } },
	{ no_persistence, C(PERSISTENCE), WARN, "nvidia-persistenced", "does not run", "enable --now nvidia-persistenced", { 0 } },
	{ crashed_persistence, C(PERSISTENCE), WARN, "nvidia-persistenced", "crashed", "restart nvidia-persistenced", { 0 } },
	{ no_fabric_manager, C(FABRIC_MANAGER), BROKEN, "nv-fabricmanager", "error 802", "nvidia-fabricmanager", { 0 } },
	{ crashed_fabric_manager, C(FABRIC_MANAGER), WARN, "nv-fabricmanager", "process is not seen", "nvidia-fabricmanager", { 0 } },
	{ hidden_daemons, C(UNSEEN), UNKNOWN, "/proc", "not seen", "sudo", { 0 } },
	{ hidden_daemons, C(PERSISTENCE), OK, "nvidia-persistenced", "runs", NULL, { 0 } },
	{ empty_mig, C(MIG), WARN, "GPU 1", "no instances", "nvidia-smi mig -i 1 -cgi", { 0 } },
	{ mig_by_procfs, C(MIG), WARN, "/proc/devices", "nv_cap_enable_devfs", "nv_cap_enable_devfs", { 0 } },
	{ no_cgroup, C(CGROUP), BROKEN, "/sys/fs/cgroup", "cgroup subsystem devices not found", "mount -t cgroup2", { 0 } },
	{ no_controller, C(CGROUP), BROKEN, "cgroup v1", "the kernel has no devices controller", "cgroup_disable=devices", { 0 } },
	{ controller_not_mounted, C(CGROUP), BROKEN, "cgroup v1", "not mounted", "mount -t cgroup -o devices", { 0 } },
	{ old_library, C(CGROUP), WARN, LIBDIR "libnvidia-container.so.1.7.0", "knows cgroup v1 alone", "Upgrade the package", { 0 } },
	{ in_user_namespace, C(CGROUP_RIGHTS), WARN, "user namespace", "bpf_prog_query", "no-cgroups=true", { 0 } },
	{ root_without_rights, C(CGROUP_RIGHTS), BROKEN, "CAP_SYS_ADMIN", "bpf_prog_query", "--privileged", { 0 } },
	{ no_user_namespaces, C(USER_NAMESPACES), WARN, "user.max_user_namespaces", "is 0", "sysctl -w", { 0 } },
	{ user_namespaces_forbidden, C(USER_NAMESPACES), WARN, "kernel.unprivileged_userns_clone", "is 0", "sysctl -w", { 0 } },
	{ ordinary_user_without_ids, C(USER_NAMESPACES), WARN, "/etc/subuid", "no ids", "usermod --add-subuids", { 0 } },
	{ ordinary_user_without_ids, C(CGROUP_RIGHTS), OK, "uid 1000", "rootless", NULL, { C(USER_NAMESPACES) } },
	{ selinux_refuses, C(SELINUX), WARN, "SELinux", "insufficient permissions", "setsebool -P container_use_devices on", { 0 } },
	{ selinux_without_policy, C(SELINUX), WARN, "SELinux", "may not use devices", "container-selinux", { 0 } },
	{ bad_config, C(CONFIG), BROKEN, "config.toml", "line 2, column 3", "config default", { 0 } },
	{ bad_mode, C(CONFIG), BROKEN, "config.toml", "'magic'", "mode=auto", { 0 } },
	{ bad_root, C(CONFIG), BROKEN, "config.toml", "/run/nvidia/driver: No such file", "root=/", { 0 } },
	{ no_cgroups, C(CONFIG), WARN, "config.toml", "Unknown Error", "no-cgroups=false", { 0 } },
	{ no_own_programs, C(PROGRAMS), WARN, "nvidia-container-runtime, nvidia-cdi-hook", "not in PATH", "Install", { 0 } },
	{ no_low_level_runtime, C(PROGRAMS), BROKEN, "low-level runtime", "runc", "Install runc", { 0 } },
	{ bad_spec, C(CDI_SPECS), BROKEN, "/etc/cdi/x.yaml", "invalid CDI Spec", "cdi validate", { 0 } },
	{ no_specs_for_docker, C(CDI_SPECS), WARN, "docker", "unresolvable CDI devices", "cdi generate", { C(PODMAN) } },
	{ specs_elsewhere, C(CDI_SPECS), WARN, "docker", "looks for CDI specs in /opt/cdi", "--output=/opt/cdi/nvidia.yaml", { 0 } },
	{ stale_spec, C(CDI_STALE), BROKEN, "/etc/cdi/nvidia.yaml", "libcuda.so.1 is not on this host", "cdi refresh", { 0 } },
	{ stale_foreign_spec, C(CDI_STALE), BROKEN, "/etc/cdi/nvidia.yaml", "stale", "its vendor", { 0 } },
	{ no_engine, C(ENGINES), WARN, "container engines", "none was found", "Install one", { 0 } },
	{ bad_engine_file, C(ENGINES), BROKEN, "/etc/docker/daemon.json", "docker cannot use it: line 1, column 2", "Correct", { 0 } },
	{ no_hook, C(DOCKER_GPUS), BROKEN, "docker", "could not select device driver", "systemctl restart docker", { C(PROGRAMS) } },
	{ hook_elsewhere, C(DOCKER_GPUS), BROKEN, "docker", "not in the daemon's PATH: /usr/bin:/bin", "ln -s /opt/nvidia", { 0 } },
	{ hook_came_later, C(DOCKER_GPUS), WARN, "docker", "installed after the daemon was started", "systemctl restart docker", { 0 } },
	{ docker_of_snap, C(DOCKER_GPUS), BROKEN, "docker", "snap", "snap remove docker", { 0 } },
	{ docker_desktop, C(DOCKER_GPUS), WARN, "docker", "virtual machine", "docker context use default", { 0 } },
	{ no_docker_runtime, C(DOCKER_RUNTIME), WARN, "docker", "unknown or invalid runtime name: nvidia", "nvidia-ctk runtime configure --runtime=docker", { 0 } },
	{ no_docker_runtime_rootless, C(DOCKER_RUNTIME), WARN, "docker", "not registered", "--config=/home/u/.config/docker/daemon.json", { 0 } },
	{ no_docker_runtime_on_tegra, C(DOCKER_RUNTIME), BROKEN, "docker", "only way on Tegra", "nvidia-ctk runtime configure", { 0 } },
	{ no_docker_runtime_program, C(DOCKER_RUNTIME), BROKEN, "docker", "/usr/bin/nvidia-container-runtime, which is not there", "Install", { 0 } },
	{ docker_not_reloaded, C(DOCKER_RUNTIME), WARN, "docker", "changed after the daemon was started", "systemctl reload docker", { 0 } },
	{ old_swarm_gpu, C(DOCKER_RUNTIME), BROKEN, "docker", "GPU-9", "node-generic-resources", { 0 } },
	{ forgotten_drop_in, C(CONTAINERD_RUNTIME), BROKEN, "containerd", "99-nvidia.toml is not read", "nvidia-ctk runtime configure --runtime=containerd", { 0 } },
	{ newer_drop_in, C(CONTAINERD_RUNTIME), BROKEN, "containerd", "is of version 4, /etc/containerd/config.toml of version 2", "rm /etc/containerd/conf.d/99-nvidia.toml", { 0 } },
	{ older_drop_in, C(CONTAINERD_RUNTIME), WARN, "containerd", "other names", "rm /etc/containerd", { 0 } },
	{ wrong_table, C(CONTAINERD_RUNTIME), BROKEN, "containerd", "plugins.\"cri\", which a file of version 2 does not have", "io.containerd.grpc.v1.cri", { 0 } },
	{ no_containerd_program, C(CONTAINERD_RUNTIME), BROKEN, "containerd", "without BinaryName", "Install", { 0 } },
	{ containerd_not_restarted, C(CONTAINERD_RUNTIME), WARN, "containerd", "does not count yet", "systemctl restart containerd", { 0 } },
	{ no_containerd_runtime, C(CONTAINERD_RUNTIME), BROKEN, "containerd", "no runtime for \"nvidia\" is configured", "nvidia-ctk runtime configure --runtime=containerd && systemctl restart containerd", { 0 } },
	{ no_k3s_runtime, C(CONTAINERD_RUNTIME), BROKEN, "k3s", "no runtime", "'systemctl restart k3s'", { 0 } },
	{ no_microk8s_runtime, C(CONTAINERD_RUNTIME), BROKEN, "microk8s", "no runtime", "snap restart microk8s", { 0 } },
	{ containerd_gives_cdi, C(CONTAINERD_RUNTIME), OK, "containerd", "by CDI", NULL, { 0 } },
	{ containerd_without_kubernetes, C(CONTAINERD_RUNTIME), OK, "containerd", "only Kubernetes", NULL, { 0 } },
	{ no_cri, C(CONTAINERD_RUNTIME), BROKEN, "containerd", "disabled_plugins", "Remove \"cri\"", { 0 } },
	{ no_crio_runtime, C(CRIO_RUNTIME), BROKEN, "cri-o", "no runtime for \"nvidia\" is configured", "--runtime=crio && systemctl restart crio", { C(PODMAN) } },
	{ crio_hook, C(CRIO_RUNTIME), OK, "cri-o", "runs the hook", NULL, { 0 } },
	{ no_crio_program, C(CRIO_RUNTIME), BROKEN, "cri-o", "not there", "--runtime=crio", { 0 } },
	{ crio_not_restarted, C(CRIO_RUNTIME), WARN, "cri-o", "does not count yet", "restart crio", { 0 } },
	{ no_crio_hook_program, C(CRIO_RUNTIME), BROKEN, "cri-o", "/usr/bin/nvidia-x, which is not there", "rm /etc/hooks.d/nvidia.json", { 0 } },
	{ no_podman, C(PODMAN), WARN, "podman", "neither a CDI spec nor a hook", "cdi generate", { 0 } },
	{ podman_hook, C(PODMAN), OK, "podman", "runs the hook", NULL, { 0 } },
	{ no_podman_hook_program, C(PODMAN), BROKEN, "podman", "no container starts", "rm /etc/hooks.d/nvidia.json", { 0 } },
	{ no_specs, C(CDI_SPECS), OK, "/etc/cdi", "has no specs", NULL, { C(PODMAN) } },
	{ not_seen, C(UNSEEN), UNKNOWN, "/proc/1/environ", "nor could 1 others", "sudo", { 0 } },
	{ asks_known_devices, C(REQUESTED_DEVICES), OK, "GPU-1,0", "has it", NULL, { 0 } },
	{ asks_old_uuid, C(REQUESTED_DEVICES), BROKEN, "GPU-9", "the GPU was replaced, or the name is of another host. This host has: GPU-0, GPU-1", "nvidia-smi -L", { 0 } },
	{ asks_high_index, C(REQUESTED_DEVICES), BROKEN, "7", "fewer", "nvidia-smi -L", { 0 } },
	{ asks_mig, C(REQUESTED_DEVICES), BROKEN, "MIG-9", "no GPU has MIG instances now", NULL, { 0 } },
	{ asks_other_mig, C(REQUESTED_DEVICES), BROKEN, "MIG-9", "MIG was set up anew, which gives new names, or another GPU is meant. This host has: GPU-0, GPU-1, MIG-1", NULL, { 0 } },
	{ asks_without_gpu, C(REQUESTED_DEVICES), BROKEN, "0", "no GPU at all", NULL, { C(KERNEL_MODULE), C(DRIVER_LIBRARY) } },
	{ asks_without_facts, C(REQUESTED_DEVICES), UNKNOWN, "GPU-9", "has not told the UUIDs", NULL, { 0 } },
	{ asks_cdi, C(REQUESTED_DEVICES), OK, "nvidia.com/gpu=all", "a spec has it", NULL, { 0 } },
	{ asks_unknown_cdi, C(REQUESTED_DEVICES), BROKEN, "nvidia.com/gpu=7", "no spec in /etc/cdi, /var/run/cdi has it", "cdi list", { 0 } },
	{ requires_less, C(REQUIREMENT), OK, "cuda>=11.0", "driver " DRIVER ", CUDA 12.4", NULL, { 0 } },
	{ requires_more, C(REQUIREMENT), BROKEN, "cuda>=13.0", "unsatisfied condition: this host has driver " DRIVER ", which supports CUDA up to 12.4", "NVIDIA_DISABLE_REQUIRE", { 0 } },
	{ requires_nonsense, C(REQUIREMENT), BROKEN, "cuda=~1", "invalid expression", "cuda>=12.0", { 0 } },
	{ requires_architecture, C(REQUIREMENT), UNKNOWN, "arch>=9.0", "has not told", NULL, { 0 } },
	{ clean_image, C(IMAGE), OK, "/tmp/image", "no libraries of a driver", NULL, { 0 } },
	{ image_with_driver, C(IMAGE), WARN, "/tmp/image", "libcuda.so.535.54.03", "apt-get purge", { 0 } },
	{ good_compat, C(CUDA_COMPAT), OK, "libcuda.so.575.57.08", "suits driver " DRIVER, NULL, { 0 } },
	{ old_compat, C(CUDA_COMPAT), WARN, "libcuda.so.470.57.02", "error 803", "LD_LIBRARY_PATH", { 0 } },
	{ compat_for_others, C(CUDA_COMPAT), WARN, "libcuda.so.575.57.08", "error 803", "LD_LIBRARY_PATH", { 0 } },
	{ compat_for_servers, C(CUDA_COMPAT), WARN, "libcuda.so.575.57.08", "error 804", "cuda-compat-mode=disabled", { 0 } },
	{ compat_without_driver, C(CUDA_COMPAT), UNKNOWN, "libcuda.so.575.57.08", "no driver", NULL, { C(KERNEL_MODULE), C(DRIVER_LIBRARY) } },
};
/* clang-format on */

struct judged {
	struct graft_arena *arena;
	struct graft_diagnosis diagnosis;
};

static void judge(struct judged *judged, const struct world *w)
{
	struct graft_error err = { .status = GRAFT_OK };

	judged->arena = graft_arena_new(1 << 20);
	if (graft_doctor_judge(&w->health, &w->question, judged->arena, &judged->diagnosis, &err) < 0)
		fail_msg("%s", err.msg);
}

static bool may_complain(size_t row, enum graft_check check)
{
	if (check == rows[row].check)
		return true;
	for (size_t i = 0; i < GRAFT_COUNT(rows[row].others) && rows[row].others[i] != 0; i++) {
		if (rows[row].others[i] == check)
			return true;
	}
	return false;
}

static bool has_part(const char *text, const char *part)
{
	return !part || (text && strstr(text, part));
}

static void check_row(size_t row, const struct judged *judged)
{
	const struct graft_finding *found = NULL;

	for (size_t i = 0; i < judged->diagnosis.n_findings; i++) {
		const struct graft_finding *finding = &judged->diagnosis.findings[i];

		if (finding->check == rows[row].check && finding->level == rows[row].level && !found &&
		    has_part(finding->subject, rows[row].subject) && has_part(finding->cause, rows[row].cause))
			found = finding;
		if (finding->level >= GRAFT_LEVEL_WARNING && !may_complain(row, finding->check))
			fail_msg("row %zu (%s): %s complains too: %s: %s", row, rows[row].cause,
				 graft_check_ids[finding->check], finding->subject, finding->cause);
		/* Whoever complains says what to do. */
		if (finding->level >= GRAFT_LEVEL_WARNING && !finding->remedy)
			fail_msg("row %zu: %s has no remedy", row, finding->cause);
	}
	if (!found)
		fail_msg("row %zu: no %s of %s '%s' with '%s'", row, graft_level_names[rows[row].level],
			 graft_check_ids[rows[row].check], rows[row].subject, rows[row].cause);
	else if (!has_part(found->remedy, rows[row].remedy))
		fail_msg("row %zu: the remedy is '%s'", row, found->remedy);
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct world w;
		struct judged judged;

		healthy(&w);
		rows[i].change(&w);
		judge(&judged, &w);
		check_row(i, &judged);
		(void)graft_arena_free(judged.arena);
	}
}

/* All checks that apply to the good host say so, in their order, and none of them complains. */
static void test_healthy(void **state)
{
	struct world w;
	struct judged judged;
	unsigned long long seen = 0;
	enum graft_check last = 0;

	(void)state;
	healthy(&w);
	nothing(&w);
	judge(&judged, &w);
	assert_int_equal(judged.diagnosis.verdict, GRAFT_LEVEL_OK);
	for (size_t i = 0; i < judged.diagnosis.n_findings; i++) {
		const struct graft_finding *finding = &judged.diagnosis.findings[i];

		if (finding->level != GRAFT_LEVEL_OK)
			fail_msg("%s: %s: %s", graft_check_ids[finding->check], finding->subject, finding->cause);
		assert_true(finding->check >= last);
		last = finding->check;
		seen |= 1ull << finding->check;
	}
	for (enum graft_check check = 0; check < GRAFT_CHECK_REQUESTED_DEVICES; check++) {
		if (!(seen >> check & 1))
			fail_msg("%s says nothing", graft_check_ids[check]);
	}
	(void)graft_arena_free(judged.arena);
}

/* Each check but AppArmor's, which has nothing to complain of, has a row in which it does. */
static void test_every_check_complains(void **state)
{
	unsigned long long seen = 1ull << GRAFT_CHECK_APPARMOR;

	(void)state;
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		if (rows[i].level != GRAFT_LEVEL_OK)
			seen |= 1ull << rows[i].check;
	}
	for (enum graft_check check = 0; check < GRAFT_CHECK_MAX; check++) {
		if (!(seen >> check & 1))
			fail_msg("no row in which %s complains", graft_check_ids[check]);
	}
}

static void test_verdict(void **state)
{
	static const struct {
		void (*change)(struct world *w);
		enum graft_level verdict;
	} cases[] = {
		{ nothing, GRAFT_LEVEL_OK },
		{ not_seen, GRAFT_LEVEL_OK },
		{ slow, GRAFT_LEVEL_WARNING },
		{ no_gpu_node, GRAFT_LEVEL_BROKEN },
	};

	(void)state;
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct world w;
		struct judged judged;

		healthy(&w);
		cases[i].change(&w);
		judge(&judged, &w);
		assert_int_equal(judged.diagnosis.verdict, cases[i].verdict);
		(void)graft_arena_free(judged.arena);
	}
}

/* Facts without anything: nothing is read that is not there. */
static void test_empty_facts(void **state)
{
	struct world w;
	struct judged judged;

	(void)state;
	memset(&w, 0, sizeof(w));
	judge(&judged, &w);
	assert_int_equal(judged.diagnosis.verdict, GRAFT_LEVEL_BROKEN);
	(void)graft_arena_free(judged.arena);
}

/* --- messages --- */

/* users.md's list of what people paste: each message, the situation behind it, and the check that must then be marked. */
static void test_messages(void **state)
{
	static const struct {
		const char *message;
		void (*change)(struct world *w);
		enum graft_check check;
	} cases[] = {
		{ "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].",
		  no_hook, C(DOCKER_GPUS) },
		{ "docker: Error response from daemon: unknown or invalid runtime name: nvidia.", no_docker_runtime,
		  C(DOCKER_RUNTIME) },
		{ "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open "
		  "shared "
		  "object file: no such file or directory",
		  no_nvml, C(DRIVER_LIBRARY) },
		{ "Failed to initialize NVML: Driver/library version mismatch", mismatch, C(LIBRARY_VERSIONS) },
		{ "nvml error: driver not loaded", no_module, C(KERNEL_MODULE) },
		{ "nvml error: insufficient permissions", group_nodes_shut_nvml_out, C(DEVICE_MODES) },
		{ "nvml error: insufficient permissions", selinux_refuses, C(SELINUX) },
		{ "file creation failed: /x/merged/usr/lib/libnvidia-ml.so.1: file exists", image_with_driver,
		  C(IMAGE) },
		{ "cgroup subsystem devices not found", controller_not_mounted, C(CGROUP) },
		{ "cgroup subsystem devices not found", old_library, C(CGROUP) },
		{ "bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted", in_user_namespace,
		  C(CGROUP_RIGHTS) },
		{ "device error: GPU-9: unknown device", asks_old_uuid, C(REQUESTED_DEVICES) },
		{ "initialization error: driver rpc error: timed out", slow, C(START_TIME) },
		{ "nvcgo rpc error: timed out", no_persistence, C(PERSISTENCE) },
		{ "no runtime for \"nvidia\" is configured", no_containerd_runtime, C(CONTAINERD_RUNTIME) },
		{ "unsatisfied condition: cuda>=13.0, please update your driver to a newer version", requires_more,
		  C(REQUIREMENT) },
		{ "CUDA error 804: forward compatibility was attempted on non supported HW", compat_for_servers,
		  C(CUDA_COMPAT) },
		{ "system has unsupported display driver / cuda driver combination (error 803)", old_compat,
		  C(CUDA_COMPAT) },
		{ "Failed to initialize NVML: Unknown Error", no_links, C(DEV_CHAR_LINKS) },
		{ "CUDA initialization: system not yet initialized", no_fabric_manager, C(FABRIC_MANAGER) },
		{ "crun: cannot stat `/lib64/libEGL_nvidia.so.535`", stale_spec, C(CDI_STALE) },
	};

	(void)state;
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct world w;
		struct judged judged;
		size_t n = 0;

		healthy(&w);
		cases[i].change(&w);
		w.question.message = cases[i].message;
		judge(&judged, &w);
		assert_non_null(judged.diagnosis.message);
		for (size_t k = 0; k < judged.diagnosis.n_findings; k++) {
			const struct graft_finding *finding = &judged.diagnosis.findings[k];

			n += finding->explains && finding->check == cases[i].check;
			if (finding->explains)
				assert_true(finding->level >= GRAFT_LEVEL_WARNING);
		}
		if (n == 0)
			fail_msg("'%s': %s is not marked", cases[i].message, graft_check_ids[cases[i].check]);
		(void)graft_arena_free(judged.arena);
	}
}

static void test_unknown_message(void **state)
{
	struct world w;
	struct judged judged;

	(void)state;
	healthy(&w);
	no_gpu_node(&w);
	w.question.message = "the coffee is cold";
	judge(&judged, &w);
	assert_null(judged.diagnosis.message);
	for (size_t i = 0; i < judged.diagnosis.n_findings; i++)
		assert_false(judged.diagnosis.findings[i].explains);
	(void)graft_arena_free(judged.arena);
}

static void test_read_message(void **state)
{
	static const struct {
		const char *message, *device, *requirement;
	} cases[] = {
		{ "nvidia-container-cli: device error: GPU-9: unknown device; Run ...", "GPU-9", NULL },
		{ "device error: 0:1: unknown device", "0:1", NULL },
		{ "failed: unresolvable CDI devices nvidia.com/gpu=7", "nvidia.com/gpu=7", NULL },
		{ "requirement error: unsatisfied condition: cuda>=12.4, please update your driver", NULL,
		  "cuda>=12.4" },
		{ "requirement error: unsatisfied condition: brand=tesla", NULL, "brand=tesla" },
		{ "device error:", NULL, NULL },
		{ "device error: : unknown device", NULL, NULL },
		{ "", NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct graft_arena *arena = graft_arena_new(1 << 16);
		const char *device = "x", *requirement = "x";

		graft_doctor_read_message(cases[i].message, arena, &device, &requirement);
		if (cases[i].device)
			assert_string_equal(device, cases[i].device);
		else
			assert_null(device);
		if (cases[i].requirement)
			assert_string_equal(requirement, cases[i].requirement);
		else
			assert_null(requirement);
		(void)graft_arena_free(arena);
	}
}

/* --- memory and JSON --- */

static void everything(struct world *w)
{
	healthy(w);
	image_with_driver(w);
	with_compat(w, "/usr/local/cuda/compat/libcuda.so.575.57.08");
	asks_old_uuid(w);
	requires_more(w);
	not_seen(w);
	w->question.message = "device error: GPU-9: unknown device";
}

static void test_allocations(void **state)
{
	struct world w;
	int n;

	(void)state;
	everything(&w);
	for (n = 1;; n++) {
		struct graft_arena *arena;
		struct graft_diagnosis diagnosis;
		struct graft_error err = { .status = GRAFT_OK };
		int rc;

		arena = graft_arena_new(1 << 20);
		assert_non_null(arena);
		allocation_fail(n);
		rc = graft_doctor_judge(&w.health, &w.question, arena, &diagnosis, &err);
		if (!allocation_failed()) {
			assert_int_equal(rc, 0);
			(void)graft_arena_free(arena);
			break;
		}
		assert_int_equal(rc, -1);
		assert_int_equal(err.status, GRAFT_NO_MEMORY);
		(void)graft_arena_free(arena);
	}
	assert_true(n > 2);
}

/* An arena that is too small, at every size, is memory that failed. */
static void test_small_arenas(void **state)
{
	struct world w;
	bool failed = true;

	(void)state;
	everything(&w);
	for (size_t size = 64; failed; size += size / 2) {
		struct graft_arena *arena = graft_arena_new(size);
		struct graft_diagnosis diagnosis;
		struct graft_error err = { .status = GRAFT_OK };

		assert_true(size < 1 << 24);
		failed = graft_doctor_judge(&w.health, &w.question, arena, &diagnosis, &err) < 0;
		if (failed)
			assert_int_equal(err.status, GRAFT_NO_MEMORY);
		(void)graft_arena_free(arena);
	}
}

static void test_json(void **state)
{
	struct world w;
	struct judged judged;
	struct graft_diagnosis back = { .version = 0 };
	struct graft_buffer out = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };
	char path[128] = "";

	(void)state;
	everything(&w);
	judge(&judged, &w);
	graft_record_write(&graft_diagnosis_record, &judged.diagnosis, &out);
	assert_non_null(strstr(graft_buffer_text(&out), "\"check\": \"requested-devices\""));
	assert_non_null(strstr(graft_buffer_text(&out), "\"verdict\": \"broken\""));
	if (graft_record_read(&graft_diagnosis_record, graft_buffer_text(&out), out.length, judged.arena, &back, &err) <
	    0)
		fail_msg("%s", err.msg);
	if (!graft_record_equal(&graft_diagnosis_record, &judged.diagnosis, &back, path, sizeof(path)))
		fail_msg("%s", path);
	graft_buffer_done(&out);
	(void)graft_arena_free(judged.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_every_check_complains),
		cmocka_unit_test(test_verdict),
		cmocka_unit_test(test_empty_facts),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_unknown_message),
		cmocka_unit_test(test_read_message),
		cmocka_unit_test(test_allocations),
		cmocka_unit_test(test_small_arenas),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
