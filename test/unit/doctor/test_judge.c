/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A healthy host on which one thing at a time is broken: the right check reports it, with a cause
 * and a remedy that contain the essential facts, and no other check does, except those that the row
 * allows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../allocation.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "doctor/judge.h"
#include "doctor/messages.h"

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
	const char *spec_names[2];
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
	struct graft_health_runtime answered[1];
	struct graft_health_disk disks[1];
	struct graft_binary binaries[1];
	const char *driver_files[1];
	struct graft_compat_library compat[1];
	const char *note_drivers[1];
	struct graft_doctor_question question;
	const char *devices[2], *requirements[1];
	struct graft_health_plugin plugins[2];
	struct graft_health_resource cluster_resources[2];
	const char *plugin_specs[1], *validations[2], *sockets[1];
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
		.binaries = { { .path = "/usr/bin/nvidia-smi", .name = "nvidia-smi" } },
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
							.n_gpus = 3,
							.binaries = w->binaries,
							.n_binaries = 1 };
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

/* A node of a cluster, with one pod that has a GPU. */
static void healthy_cluster(struct world *w)
{
	w->plugins[0] = (struct graft_health_plugin){
		.pid = 12, .seen = true, .n_served = 1, .n_watched = 1, .strategy = "envvar,cdi-cri"
	};
	w->plugins[1] =
	    (struct graft_health_plugin){ .pid = 34, .container = true, .seen = true, .n_served = 1, .n_watched = 1 };
	w->cluster_resources[0] = (struct graft_health_resource){ "nvidia.com/gpu", 2, 1 };
	w->cluster_resources[1] = (struct graft_health_resource){ "nvidia.com/mig-1g.5gb", 0, 0 };
	w->plugin_specs[0] = "/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json";
	w->validations[0] = "driver-ready";
	w->validations[1] = "toolkit-ready";
	w->sockets[0] = "/var/lib/kubelet/plugins_registry/nvidia.com-gpu-reg.sock";
	w->health.cluster = (struct graft_health_cluster){ .asked = true,
							   .running = true,
							   .directory = "/var/lib/kubelet",
							   .has_socket = true,
							   .has_registry = true,
							   .sockets = w->sockets,
							   .n_sockets = 1,
							   .plugins = w->plugins,
							   .n_plugins = 1,
							   .has_record = true,
							   .resources = w->cluster_resources,
							   .n_resources = 1,
							   .plugin_specs = w->plugin_specs,
							   .n_plugin_specs = 1,
							   .has_operator = true,
							   .validations = w->validations,
							   .n_validations = 2,
							   .discovers = true };
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
	healthy_cluster(w);
	w->health.self = (struct graft_health_self){ .capabilities = ALL_CAPS };
	w->health.cgroup.version = GRAFT_CGROUP_V2;
	w->health.userns = (struct graft_health_userns){ .has_max = true, .max = 1000 };
	w->health.lsm = (struct graft_health_lsm){ .selinux = true,
						   .selinux_enforcing = true,
						   .has_container_devices = true,
						   .container_devices = true,
						   .apparmor = true };
	w->specs[0] = (struct graft_health_spec){ "/etc/cdi/nvidia.yaml", "nvidia.com/gpu", "0.5.0", 2, NULL };
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

/* --- what is broken --- */

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
WRONG(lost_gpu_with_the_end_of_another)
{
	lost_gpu(w);
	w->gpus[1].bus_id = "00010000:1c:00.0";
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
/* What is also missing without the module. */
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
WRONG(no_links_without_cdi)
{
	no_links(w);
	w->health.n_engines = 2;
}
WRONG(no_links_for_crun)
{
	no_links_without_cdi(w);
	w->engines[2] = w->engines[3];
	w->health.n_engines = 3;
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
static void mistake(struct world *w, struct graft_config_mistake mistake)
{
	static struct graft_config_mistake mistakes[1];

	mistakes[0] = mistake;
	w->health.config.mistakes = mistakes;
	w->health.config.n_mistakes = 1;
}
WRONG(bad_mode)
{
	mistake(w, (struct graft_config_mistake){ "nvidia-container-runtime.mode", "magic", "auto or csv", "auto" });
}
WRONG(no_such_user)
{
	mistake(w, (struct graft_config_mistake){ "nvidia-container-cli.user", "nobody:none", "USER", "" });
}
WRONG(bad_log_level)
{
	mistake(w, (struct graft_config_mistake){ "nvidia-container-runtime.log-level", "loud", "info", "info" });
}
WRONG(unknown_keys)
{
	static const char *unknown[] = { "/etc/nvidia-container-runtime/config.toml: line 3: ignoring unknown key "
					 "'x' (did you mean 'y'?)" };

	w->health.config.unknown = unknown;
	w->health.config.n_unknown = 1;
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
WRONG(open_hook)
{
	w->specs[0].open_hook = "/usr/bin/nvidia-ctk";
}
WRONG(open_foreign_hook)
{
	w->specs[1] = w->specs[0];
	w->specs[1].kind = "vendor.com/net";
	w->specs[1].open_hook = "/opt/hook";
	w->health.cdi.n_specs = 2;
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
/* What /etc/cdi has is in /var/run/cdi, too, which counts more. */
WRONG(overridden_spec)
{
	stale_spec(w);
	w->spec_names[0] = "0";
	w->spec_names[1] = "all";
	w->specs[0].names = w->spec_names;
	w->specs[0].n_names = 2;
	w->specs[1] = w->specs[0];
	w->specs[1].file = "/var/run/cdi/nvidia.yaml";
	w->specs[1].stale = NULL;
	w->health.cdi.n_specs = 2;
}
WRONG(half_overridden_spec)
{
	overridden_spec(w);
	w->specs[1].n_names = 1;
}
WRONG(overridden_by_another_kind)
{
	overridden_spec(w);
	w->specs[1].kind = "nvidia.com/net";
}
WRONG(overridden_elsewhere)
{
	overridden_spec(w);
	w->engine_directories[0] = "/etc/cdi";
	w->engines[3].cdi_directories = w->engine_directories;
	w->engines[3].n_cdi_directories = 1;
}
WRONG(override_too_new)
{
	overridden_spec(w);
	w->specs[1].version = "0.7.0";
}
WRONG(stale_override)
{
	overridden_spec(w);
	w->specs[1].stale = w->specs[0].stale;
	w->specs[0].stale = NULL;
}
WRONG(no_engine)
{
	w->health.n_engines = 0;
}
WRONG(bad_engine_file)
{
	w->files[0][0].problem = "line 1, column 2: no value";
}
WRONG(docker_does_not_start)
{
	bad_engine_file(w);
	w->engines[0].running = false;
}
WRONG(closed_engine_file)
{
	w->files[0][0].problem = "/etc/docker/daemon.json: Permission denied";
	w->engines[0].running = false;
}
WRONG(bad_podman_file)
{
	w->files[3][0].problem = "line 3, column 1: expected a value";
}
WRONG(rootless_docker_does_not_start)
{
	docker_does_not_start(w);
	w->engines[0].name = "docker (rootless, uid 1000)";
	w->engines[0].rootless = true;
}
WRONG(crio_does_not_start)
{
	docker_does_not_start(w);
	w->engines[0].name = "cri-o";
	w->engines[0].kind = GRAFT_ENGINE_CRIO;
}
WRONG(microk8s_does_not_start)
{
	docker_does_not_start(w);
	w->engines[0].name = "microk8s";
	w->engines[0].kind = GRAFT_ENGINE_CONTAINERD;
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
WRONG(docker_changed)
{
	w->files[0][0].changed = 300;
}
static void answer(struct world *w, const struct graft_health_runtime *runtime, const char *default_runtime)
{
	struct graft_health_answer *said = &w->engines[0].answer;

	said->asked = true;
	said->socket = "/run/docker.sock";
	said->default_runtime = default_runtime;
	if (!runtime)
		return;
	w->answered[0] = *runtime;
	said->runtimes = w->answered;
	said->n_runtimes = 1;
}
static const struct graft_health_runtime answered_runtime = {
	.name = "nvidia", .path = "nvidia-container-runtime", .file = "/run/docker.sock", .found = true
};
WRONG(docker_not_reloaded)
{
	answer(w, NULL, "runc");
}
WRONG(docker_has_another_default)
{
	answer(w, &answered_runtime, "runc");
	w->engines[0].default_runtime = "nvidia";
}
WRONG(docker_answers)
{
	docker_changed(w);
	answer(w, &answered_runtime, "nvidia");
}
WRONG(docker_answers_without_program)
{
	answer(w, &answered_runtime, "runc");
	w->answered[0].found = false;
}
WRONG(docker_refuses)
{
	answer(w, NULL, NULL);
	w->engines[0].answer.problem = "Permission denied";
}
WRONG(docker_is_silent)
{
	answer(w, NULL, NULL);
	w->engines[0].answer.problem = "no answer within 3 s";
}
WRONG(podman_of_debian_12)
{
	w->engines[3].version = "4.3.1+ds1-8";
	w->engines[3].n_runtimes = 0;
	w->specs[0].version = "0.7.0";
}
WRONG(podman_of_fedora_39)
{
	w->engines[3].version = NULL;
	w->engines[3].cdi_library = "0.6.2";
	w->engines[3].n_runtimes = 0;
	w->specs[0].version = "0.7.0";
}
WRONG(podman_of_ubuntu_22)
{
	w->engines[3].version = "3.4.4";
	w->engines[3].n_runtimes = 0;
}
WRONG(podman_of_fedora)
{
	w->engines[3].version = "5.2.0";
	w->specs[0].version = "0.7.0";
}
WRONG(podman_unknown_new_spec)
{
	w->specs[0].version = "0.7.0";
}
WRONG(docker_25)
{
	w->engines[0].version = "25.0.3";
	w->engines[0].has_cdi = w->engines[0].cdi = true;
	w->specs[0].version = "0.7.0";
}
WRONG(docker_20)
{
	w->engines[0].version = "20.10.24+dfsg1";
	w->engines[0].has_cdi = w->engines[0].cdi = true;
}
WRONG(full_disk)
{
	w->disks[0].path = "/run";
	w->health.full_disks = w->disks;
	w->health.n_full_disks = 1;
}
WRONG(no_inodes)
{
	full_disk(w);
	w->disks[0] = (struct graft_health_disk){ "/var/lib", true };
}
WRONG(no_tools)
{
	w->health.inventory.n_binaries = 0;
}
WRONG(no_driver_nor_modules)
{
	no_driver_at_all(w);
	w->health.kernel.modules_listed = false;
}
WRONG(nvml_on_full_disk)
{
	w->health.nvml.status = "IO";
	w->health.nvml.problem = "write failed: No space left on device";
}
WRONG(simulated_daemons)
{
	w->health.inventory.simulated = true;
	crashed_persistence(w);
	crashed_fabric_manager(w);
}
WRONG(docker_elsewhere)
{
	w->engines[0].other_mounts = true;
}
WRONG(docker_outside)
{
	docker_elsewhere(w);
	w->health.inventory.simulated = true;
}
WRONG(no_links_for_podman)
{
	no_links_without_cdi(w);
	w->engines[2] = w->engines[3];
	w->health.n_engines = 3;
	w->programs[5].path = NULL;
}
WRONG(no_docker_runtime_for_swarm)
{
	no_docker_runtime(w);
	w->resources[0] = "gpu=GPU-1";
	w->engines[0].resources = w->resources;
	w->engines[0].n_resources = 1;
}
WRONG(comment_in_engine_file)
{
	w->files[0][0].problem = "/etc/docker/daemon.json: line 2, column 2: a comment, and JSON has none";
}
WRONG(comma_in_engine_file)
{
	w->files[0][0].problem = "/etc/docker/daemon.json: line 7, column 1: a comma before a closing bracket";
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
WRONG(no_rke2_runtime)
{
	no_containerd_runtime(w);
	w->engines[1].name = "rke2";
	w->engines[1].unit = "rke2-agent";
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
	w->engines[3].n_runtimes = 0;
	no_specs(w);
}
WRONG(no_podman_spec_without_driver)
{
	no_podman(w);
	no_module(w);
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
WRONG(asks_claim)
{
	ask_device(w, "any:2");
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

/* --- a node of a cluster --- */

WRONG(no_kubelet)
{
	w->health.cluster.running = false;
}
WRONG(kubelet_not_seen)
{
	w->health.cluster.running = false;
	w->health.processes_hidden = true;
}
WRONG(no_kubelet_socket)
{
	w->health.cluster.has_socket = false;
}
WRONG(kubelet_folder_closed)
{
	w->health.cluster.has_socket = false;
	w->health.self.uid = 1000;
}
WRONG(no_device_plugin)
{
	w->health.cluster.n_plugins = 0;
}
WRONG(plugin_not_seen)
{
	w->plugins[0].seen = false;
}
WRONG(two_device_plugins)
{
	w->health.cluster.n_plugins = 2;
}
static struct graft_health_installer both_installers[] = { { 56, true, "/usr/local/nvidia" },
							   { 78, false, "/opt/nvidia" } };
static const char *missing_parts[] = { "nvidia-cdi-hook" };
static struct graft_health_toolkit half_toolkit[] = { { "/usr/local/nvidia/toolkit", missing_parts, 1 } };
static struct graft_health_runtime two_owners[] = {
	{ .name = "nvidia",
	  .path = "/usr/bin/nvidia-container-runtime",
	  .file = "/etc/containerd/config.toml",
	  .found = true },
	{ .name = "nvidia-cdi",
	  .path = "/usr/local/nvidia/toolkit/nvidia-container-runtime.cdi",
	  .file = "/etc/containerd/conf.d/99-nvidia.toml",
	  .found = true },
};
WRONG(node_of_k3s)
{
	w->health.cluster.distribution = "K3s";
}
WRONG(node_of_microk8s)
{
	w->health.cluster.distribution = "MicroK8s";
}
WRONG(node_of_talos)
{
	w->health.cluster.distribution = "Talos";
}
WRONG(one_installer)
{
	w->health.cluster.installers = both_installers;
	w->health.cluster.n_installers = 1;
	w->runtimes[1].path = "/usr/local/nvidia/toolkit/nvidia-container-runtime";
}
WRONG(two_installers)
{
	w->health.cluster.installers = both_installers;
	w->health.cluster.n_installers = 2;
}
WRONG(half_a_toolkit)
{
	w->health.cluster.toolkits = half_toolkit;
	w->health.cluster.n_toolkits = 1;
}
WRONG(package_and_installer)
{
	w->health.cluster.installers = both_installers;
	w->health.cluster.n_installers = 1;
	w->engines[1].runtimes = two_owners;
	w->engines[1].n_runtimes = 2;
}
WRONG(plugin_serves_nothing)
{
	w->plugins[0].n_served = 0;
}
WRONG(second_plugin_waits)
{
	w->health.cluster.n_plugins = 2;
	w->plugins[1].n_served = 0;
}
WRONG(plugin_unwatched)
{
	w->plugins[0].n_watched = 0;
}
WRONG(plugin_elsewhere)
{
	w->plugins[0].n_watched = 0;
	w->plugins[0].container = true;
	w->health.cluster.n_sockets = 0;
}
WRONG(unknown_resource)
{
	w->health.cluster.n_resources = 0;
}
WRONG(no_healthy_device)
{
	w->cluster_resources[0].n_devices = 0;
}
WRONG(no_healthy_mig_device)
{
	w->health.cluster.n_resources = 2;
}
WRONG(all_given_away)
{
	w->cluster_resources[0].n_in_use = 2;
}
WRONG(no_record)
{
	w->health.cluster.has_record = false;
	w->health.cluster.n_resources = 0;
}
WRONG(damaged_record)
{
	no_record(w);
	w->health.cluster.record_problem = "invalid JSON at line 1, column 1: a value is missing";
}
WRONG(no_handler)
{
	w->plugins[0].strategy = NULL;
	w->engines[1].n_runtimes = 0;
}
WRONG(no_handler_but_config)
{
	no_handler(w);
	w->plugins[0].config = "/config/config.yaml";
}
WRONG(no_handler_but_cdi)
{
	w->engines[1].n_runtimes = 0;
}
WRONG(another_default_runtime)
{
	w->plugins[0].strategy = NULL;
}
WRONG(no_plugin_specs)
{
	w->health.cluster.n_plugin_specs = 0;
}
WRONG(cdi_off_in_containerd)
{
	w->engines[1].has_cdi = true;
	w->engines[1].cdi = false;
}
WRONG(driver_not_validated)
{
	w->health.cluster.n_validations = 0;
}
WRONG(toolkit_not_validated)
{
	w->health.cluster.n_validations = 1;
}
WRONG(old_labels)
{
	w->health.cluster.discovers = false;
	w->health.cluster.labels_file = "/etc/features.d/gfd";
}
WRONG(labels_by_file)
{
	w->health.cluster.labels_file = "/etc/features.d/gfd";
	w->health.cluster.n_labels = 7;
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
	const char *subject, *cause, *remedy; /* parts of these texts; NULL = any */
	/* other checks that may report something; 0 ends the list (GPU is set in its row) */
	enum graft_check others[4];
} rows[] = {
	{ no_gpu_on_bus, C(GPU), BROKEN, "PCI bus", "no NVIDIA GPU", "lspci", { C(FABRIC_MANAGER) } },
	{ lost_gpu, C(GPU), BROKEN, "0000:1c:00.0", "the driver does not list it", "dmesg", { 0 } },
	{ lost_gpu_with_the_end_of_another, C(GPU), BROKEN, "0000:1c:00.0", "the driver does not list it", "dmesg", { 0 } },
	{ lost_gpu_in_procfs, C(GPU), BROKEN, "0000:1e:00.0", "no bus id", "dmesg", { 0 } },
	{ one_gpu_for_machines, C(GPU), WARN, "0000:1c:00.0", "vfio-pci", "modprobe.d", { 0 } },
	{ all_gpus_for_machines, C(GPU), BROKEN, "PCI bus", "virtual machines", "vfio-pci", { 0 } },
	{ driver_without_gpu, C(GPU), BROKEN, "driver", "uses none of the 2 GPUs on the PCI bus", "dmesg", { 0 } },
	{ no_module, C(KERNEL_MODULE), BROKEN, "nvidia", "not loaded, although installed: /lib/modules/6.1/nvidia.ko", "modprobe nvidia", { C(NVML) } },
	{ no_module_nouveau, C(KERNEL_MODULE), BROKEN, "nvidia", "nouveau uses the GPUs", "blacklist nouveau", { C(NVML) } },
	{ no_module_for_kernel, C(KERNEL_MODULE), BROKEN, "nvidia", "there is no module nvidia for kernel 6.1; the libraries have version " DRIVER, "dkms autoinstall", { C(NVML) } },
	{ no_driver_at_all, C(KERNEL_MODULE), BROKEN, "nvidia", "no NVIDIA driver is installed", "Install the NVIDIA driver (Debian", { C(DRIVER_LIBRARY) } },
	{ no_driver_at_all, C(DRIVER_LIBRARY), BROKEN, "libnvidia-ml.so.1", "load library failed: not found", "see kernel-module", { C(KERNEL_MODULE) } },
	{ no_driver_nor_modules, C(KERNEL_MODULE), BROKEN, "nvidia", "no NVIDIA driver is installed", "Install the NVIDIA driver (Debian", { C(DRIVER_LIBRARY) } },
	{ no_module_secure_boot, C(KERNEL_MODULE), BROKEN, "nvidia", "Secure Boot", "mokutil", { C(NVML) } },
	{ no_uvm, C(KERNEL_MODULE), WARN, "nvidia_uvm", "CUDA needs it", "modprobe nvidia-uvm", { 0 } },
	{ nouveau_beside, C(KERNEL_MODULE), WARN, "nouveau", "as well as the NVIDIA driver", "blacklist nouveau", { 0 } },
	{ no_gpu_node, C(DEVICE_NODES), BROKEN, "/dev/nvidia0", "does not exist", "nvidia-modprobe -c N", { 0 } },
	{ no_control_node, C(DEVICE_NODES), BROKEN, "/dev/nvidiactl", "does not exist", "create-device-nodes", { 0 } },
	{ no_capability_node, C(DEVICE_NODES), BROKEN, "nvidia-cap1", "does not exist", "nvidia-modprobe -f", { 0 } },
	{ old_numbers, C(DEVICE_NODES), BROKEN, "/dev/nvidia-uvm", "is device 510:0, but the driver now uses 505:0", "rm /dev/nvidia-uvm", { 0 } },
	{ directory_for_node, C(DEVICE_NODES), BROKEN, "/dev/nvidia-uvm", "is not a character device", "rm -r /dev/nvidia-uvm", { 0 } },
	{ group_nodes, C(DEVICE_MODES), WARN, "/dev/nvidiactl", "insufficient permissions: mode 0660, owner 0:44", "NVreg_DeviceFileMode=0666", { 0 } },
	{ group_nodes_by_udev, C(DEVICE_MODES), WARN, "/dev/nvidiactl", "as other nodes", "udev", { 0 } },
	{ group_nodes_shut_nvml_out, C(DEVICE_MODES), BROKEN, "/dev/nvidiactl", "insufficient permissions", "NVreg", { C(NVML) } },
	{ group_nodes_shut_nvml_out, C(NVML), BROKEN, "NVML", "cannot open", "device-modes", { C(DEVICE_MODES) } },
	{ no_links, C(DEV_CHAR_LINKS), WARN, "/dev/char/195:255", "through CDI (cri-o) lose them", "create-dev-char-symlinks", { 0 } },
	{ no_links_for_crun, C(DEV_CHAR_LINKS), OK, "/dev/char/195:255", "the toolkit creates it", NULL, { 0 } },
	{ no_links_without_cdi, C(DEV_CHAR_LINKS), OK, "/dev/char/195:255", "does not exist for /dev/nvidiactl, and links for other nodes are missing too: the toolkit creates it", "create-dev-char-symlinks", { 0 } },
	{ no_links_for_podman, C(DEV_CHAR_LINKS), WARN, "/dev/char/195:255", "through CDI (podman) lose them at the next 'systemctl daemon-reload'", "create-dev-char-symlinks", { 0 } },
	{ wrong_link, C(DEV_CHAR_LINKS), WARN, "/dev/char/195:1", "does not lead to /dev/nvidia1", "create-dev-char-symlinks", { 0 } },
	{ no_links_no_systemd, C(DEV_CHAR_LINKS), OK, "/dev/char", "without it", NULL, { 0 } },
	{ no_nvml, C(DRIVER_LIBRARY), BROKEN, "libnvidia-ml.so.1", "load library failed", "libraries of driver " DRIVER, { 0 } },
	{ driver_in_container, C(DRIVER_LIBRARY), BROKEN, "libnvidia-ml.so.1", "/run/nvidia/driver", "root=/run/nvidia/driver", { 0 } },
	{ no_cuda, C(DRIVER_LIBRARY), BROKEN, "libcuda.so.1", "CUDA does not", "compute libraries", { 0 } },
	{ mismatch, C(LIBRARY_VERSIONS), BROKEN, "libnvidia-ml.so.1", "loaded kernel module is 550.40.07, the libraries are " DRIVER, "Reboot", { C(NVML) } },
	{ mismatch, C(NVML), BROKEN, "NVML", "different versions", "library-versions", { C(LIBRARY_VERSIONS) } },
	{ two_drivers, C(LIBRARY_VERSIONS), BROKEN, "libcuda.so.1", "has version 535.161.08, and NVML has " DRIVER, "dpkg -S", { 0 } },
	{ no_cache, C(LOADER_CACHE), OK, "/etc/ld.so.cache", "not needed", NULL, { 0 } },
	{ no_cache_no_nvml, C(LOADER_CACHE), WARN, "/etc/ld.so.cache", "does not exist", "ldconfig", { C(DRIVER_LIBRARY) } },
	{ unreadable_cache, C(LOADER_CACHE), WARN, "/etc/ld.so.cache", "permission denied", "chmod 0644", { 0 } },
	{ damaged_cache, C(LOADER_CACHE), BROKEN, "/etc/ld.so.cache", "unsupported file format", "ldconfig", { 0 } },
	{ stale_cache, C(LOADER_CACHE), WARN, "/etc/ld.so.cache", "is stale: it names " LIBDIR "libcuda.so.1", "ldconfig", { C(DRIVER_LIBRARY) } },
	{ uncached, C(LOADER_CACHE), WARN, "/etc/ld.so.cache", "does not have libnvidia-ml.so.1", "ld.so.conf.d", { 0 } },
	{ uncached_on_nixos, C(LOADER_CACHE), OK, "/etc/ld.so.cache", "has", NULL, { 0 } },
	{ nvml_says_no_driver, C(NVML), BROKEN, "NVML", "not loaded", "kernel-module", { 0 } },
	{ nvml_crashes, C(NVML), BROKEN, "NVML", "signal 11", "nvidia-smi", { 0 } },
	{ nvml_cannot_load, C(NVML), BROKEN, "NVML", "wrong ELF class", "again", { 0 } },
	{ nvml_loses_one, C(NVML), BROKEN, "NVML", "lists 1 of 2 GPUs: 00000000:1c:00.0 has failed", "dmesg", { 0 } },
	{ nvml_not_asked, C(NVML), UNKNOWN, "NVML", "not asked", NULL, { 0 } },
	{ slow, C(START_TIME), WARN, "driver", "answered after 5.4 s", "nvidia-persistenced", { 0 } },
	{ timed_out, C(START_TIME), BROKEN, "driver", "had not answered after 30.0 s", "nvidia-persistenced", { C(NVML) } },
	{ timed_out, C(NVML), BROKEN, "NVML", "in time", "--timeout", { C(START_TIME) } },
	{ no_persistence, C(PERSISTENCE), OK, "nvidia-persistenced", "is not running", "enable --now nvidia-persistenced", { 0 } },
	{ crashed_persistence, C(PERSISTENCE), WARN, "nvidia-persistenced", "crashed", "restart nvidia-persistenced", { 0 } },
	{ no_fabric_manager, C(FABRIC_MANAGER), BROKEN, "nv-fabricmanager", "error 802", "nvidia-fabricmanager", { 0 } },
	{ crashed_fabric_manager, C(FABRIC_MANAGER), WARN, "nv-fabricmanager", "but its socket exists", "nvidia-fabricmanager", { 0 } },
	{ hidden_daemons, C(UNSEEN), UNKNOWN, "/proc", "only the caller's own processes", "sudo", { 0 } },
	{ hidden_daemons, C(PERSISTENCE), OK, "nvidia-persistenced", "is running", NULL, { 0 } },
	{ empty_mig, C(MIG), WARN, "GPU 1", "without instances", "nvidia-smi mig -i 1 -cgi", { 0 } },
	{ mig_by_procfs, C(MIG), WARN, "/proc/devices", "nv_cap_enable_devfs", "nv_cap_enable_devfs", { 0 } },
	{ no_cgroup, C(CGROUP), BROKEN, "/sys/fs/cgroup", "cgroup subsystem devices not found", "mount -t cgroup2", { 0 } },
	{ no_controller, C(CGROUP), BROKEN, "cgroup v1", "the kernel has no devices controller", "cgroup_disable=devices", { 0 } },
	{ controller_not_mounted, C(CGROUP), BROKEN, "cgroup v1", "not mounted", "mount -t cgroup -o devices", { 0 } },
	{ old_library, C(CGROUP), WARN, LIBDIR "libnvidia-container.so.1.7.0", "supports cgroup v1 only", "Upgrade its package", { 0 } },
	{ in_user_namespace, C(CGROUP_RIGHTS), OK, "user namespace", "bpf_prog_query", "no-cgroups=true", { 0 } },
	{ root_without_rights, C(CGROUP_RIGHTS), BROKEN, "CAP_SYS_ADMIN", "bpf_prog_query", "--privileged", { 0 } },
	{ no_user_namespaces, C(USER_NAMESPACES), WARN, "user.max_user_namespaces", "is 0", "sysctl -w", { 0 } },
	{ user_namespaces_forbidden, C(USER_NAMESPACES), WARN, "kernel.unprivileged_userns_clone", "is 0", "sysctl -w", { 0 } },
	{ ordinary_user_without_ids, C(USER_NAMESPACES), WARN, "/etc/subuid", "no entry", "usermod --add-subuids", { 0 } },
	{ ordinary_user_without_ids, C(CGROUP_RIGHTS), OK, "uid 1000", "rootless", NULL, { C(USER_NAMESPACES) } },
	{ selinux_refuses, C(SELINUX), WARN, "SELinux", "insufficient permissions", "setsebool -P container_use_devices on", { 0 } },
	{ selinux_without_policy, C(SELINUX), WARN, "SELinux", "does not let containers open devices", "container-selinux", { 0 } },
	{ bad_config, C(CONFIG), BROKEN, "config.toml", "line 2, column 3", "Correct line 2; 'nvidia-ctk config default'", { 0 } },
	{ bad_mode, C(CONFIG), BROKEN, "config.toml",
	  "nvidia-container-runtime.mode is 'magic', so no container with a GPU starts; it can be auto or csv", "mode=auto", { 0 } },
	{ no_such_user, C(CONFIG), BROKEN, "config.toml", "'nobody:none', so no container with '--gpus' starts; it can be USER",
	  "Correct or remove it", { 0 } },
	{ bad_log_level, C(CONFIG), WARN, "config.toml", "'loud', so the level is info instead", "log-level=info", { 0 } },
	{ unknown_keys, C(CONFIG), WARN, "config.toml", "line 3: ignoring unknown key 'x' (did you mean 'y'?)", "man nvidia-container-runtime-config", { 0 } },
	{ bad_root, C(CONFIG), BROKEN, "config.toml", "/run/nvidia/driver: No such file", "root=/", { 0 } },
	{ no_cgroups, C(CONFIG), WARN, "config.toml", "Unknown Error", "no-cgroups=false", { 0 } },
	{ no_own_programs, C(PROGRAMS), WARN, "nvidia-container-runtime, nvidia-cdi-hook", "neither in PATH", "Install", { 0 } },
	{ no_low_level_runtime, C(PROGRAMS), BROKEN, "low-level runtime", "runc", "Install runc", { 0 } },
	{ bad_spec, C(CDI_SPECS), BROKEN, "/etc/cdi/x.yaml", "invalid CDI Spec", "cdi validate", { 0 } },
	{ no_specs_for_docker, C(CDI_SPECS), WARN, "docker", "unresolvable CDI devices", "cdi generate", { C(PODMAN) } },
	{ specs_elsewhere, C(CDI_SPECS), WARN, "docker", "reads CDI specs in /opt/cdi, and /etc/cdi/nvidia.yaml is not there", "--output=/opt/cdi/nvidia.yaml", { 0 } },
	{ open_hook, C(CDI_SPECS), WARN, "/etc/cdi/nvidia.yaml", "hooks without an environment (/usr/bin/nvidia-ctk)", "cdi refresh", { 0 } },
	{ open_foreign_hook, C(CDI_SPECS), WARN, "/etc/cdi/nvidia.yaml", "hooks without an environment (/opt/hook)", "its vendor", { 0 } },
	{ stale_spec, C(CDI_STALE), BROKEN, "/etc/cdi/nvidia.yaml", "libcuda.so.1 is not on this host", "cdi refresh", { 0 } },
	{ overridden_spec, C(CDI_STALE), OK, "/etc/cdi/nvidia.yaml", "is stale, but not used: /var/run/cdi/nvidia.yaml has its devices", NULL, { 0 } },
	{ half_overridden_spec, C(CDI_STALE), BROKEN, "/etc/cdi/nvidia.yaml", "is stale: device 0", "cdi refresh", { 0 } },
	{ overridden_by_another_kind, C(CDI_STALE), BROKEN, "/etc/cdi/nvidia.yaml", "is stale: device 0", "cdi refresh", { 0 } },
	{ overridden_elsewhere, C(CDI_STALE), BROKEN, "/etc/cdi/nvidia.yaml", "is stale: device 0", "cdi refresh", { 0 } },
	{ override_too_new, C(CDI_STALE), BROKEN, "/etc/cdi/nvidia.yaml", "is stale: device 0", "cdi refresh", { 0 } },
	{ stale_override, C(CDI_STALE), BROKEN, "/var/run/cdi/nvidia.yaml", "is stale: device 0", "cdi refresh", { 0 } },
	{ stale_foreign_spec, C(CDI_STALE), BROKEN, "/etc/cdi/nvidia.yaml", "stale", "its vendor", { 0 } },
	{ no_engine, C(ENGINES), WARN, "container engines", "none was found", "Install one", { 0 } },
	{ bad_engine_file, C(ENGINES), BROKEN, "/etc/docker/daemon.json", "docker cannot read it: line 1, column 2", "Correct line 1; until then", { 0 } },
	{ docker_does_not_start, C(ENGINES), BROKEN, "/etc/docker/daemon.json", "docker cannot read it: line 1, column 2", "Correct line 1; then run 'systemctl reset-failed docker; systemctl restart docker'. Until then it does not start.", { 0 } },
	{ rootless_docker_does_not_start, C(ENGINES), BROKEN, "/etc/docker/daemon.json", "docker (rootless, uid 1000) cannot read it: line 1, column 2",
	  "Correct line 1; then run 'systemctl --user reset-failed docker; systemctl --user restart docker'. Until then it does not start.", { 0 } },
	{ crio_does_not_start, C(ENGINES), BROKEN, "/etc/docker/daemon.json", "cri-o cannot read it: line 1, column 2",
	  "Correct line 1; then run 'systemctl reset-failed crio; systemctl restart crio'. Until then it does not start.", { 0 } },
	{ microk8s_does_not_start, C(ENGINES), BROKEN, "/etc/docker/daemon.json", "microk8s cannot read it: line 1, column 2",
	  "Correct line 1; then run 'snap restart microk8s'. Until then it does not start.", { 0 } },
	{ bad_podman_file, C(ENGINES), BROKEN, "/etc/containers/containers.conf", "podman cannot read it: line 3", "Correct line 3; until then podman does not work.", { 0 } },
	{ comment_in_engine_file, C(ENGINES), BROKEN, "/etc/docker/daemon.json", "a comment, and JSON has none", "Remove the comment in line 2;", { 0 } },
	{ comma_in_engine_file, C(ENGINES), BROKEN, "/etc/docker/daemon.json", "a comma before", "Remove the comma before the bracket in line 7;", { 0 } },
	{ no_hook, C(DOCKER_GPUS), BROKEN, "docker", "could not select device driver", "systemctl restart docker", { C(PROGRAMS) } },
	{ hook_elsewhere, C(DOCKER_GPUS), BROKEN, "docker", "is at /opt/nvidia/nvidia-container-runtime-hook, which is not in the daemon's PATH: /usr/bin:/bin", "ln -s /opt/nvidia", { 0 } },
	{ hook_came_later, C(DOCKER_GPUS), UNKNOWN, "docker", "installed or upgraded after the daemon started", "systemctl restart docker", { 0 } },
	{ docker_of_snap, C(DOCKER_GPUS), BROKEN, "docker", "snap", "snap remove docker", { 0 } },
	{ docker_desktop, C(DOCKER_GPUS), WARN, "docker", "virtual machine", "docker context use default", { 0 } },
	{ no_docker_runtime, C(DOCKER_RUNTIME), OK, "docker", "unknown or invalid runtime name: nvidia", "nvidia-ctk runtime configure --runtime=docker", { 0 } },
	{ no_docker_runtime_for_swarm, C(DOCKER_RUNTIME), WARN, "docker", "Swarm services", "nvidia-ctk runtime configure --runtime=docker", { 0 } },
	{ no_docker_runtime_rootless, C(DOCKER_RUNTIME), OK, "docker", "not registered", "--config=/home/u/.config/docker/daemon.json", { 0 } },
	{ no_docker_runtime_on_tegra, C(DOCKER_RUNTIME), BROKEN, "docker", "on Tegra it is the only way", "nvidia-ctk runtime configure", { 0 } },
	{ no_docker_runtime_program, C(DOCKER_RUNTIME), BROKEN, "docker", "program of the runtime nvidia does not exist: /usr/bin/nvidia-container-runtime", "Install", { 0 } },
	{ docker_changed, C(DOCKER_RUNTIME), OK, "docker", "is configured with the runtime nvidia", NULL, { 0 } },
	{ docker_not_reloaded, C(DOCKER_RUNTIME), WARN, "docker", "the running daemon does not know the runtime nvidia of /etc/docker/daemon.json", "systemctl reload docker", { 0 } },
	{ docker_has_another_default, C(DOCKER_RUNTIME), WARN, "docker", "the running daemon's default runtime is runc, but /etc/docker/daemon.json names nvidia", "systemctl reload docker", { 0 } },
	{ docker_answers, C(DOCKER_RUNTIME), OK, "docker", "has the runtime nvidia: nvidia-container-runtime, the default", NULL, { 0 } },
	{ docker_answers_without_program, C(DOCKER_RUNTIME), BROKEN, "docker", "does not exist: nvidia-container-runtime", "Install", { 0 } },
	{ docker_refuses, C(DOCKER_RUNTIME), UNKNOWN, "docker", "could not be asked which runtimes and CDI directories it has (/run/docker.sock: Permission denied)", "sudo", { 0 } },
	{ docker_is_silent, C(DOCKER_RUNTIME), UNKNOWN, "docker", "no answer within 3 s", "systemctl reload docker", { 0 } },
	{ podman_of_fedora_39, C(PODMAN), BROKEN, "podman", "CDI library 0.6.2 reads CDI specs up to 0.6.0, and /etc/cdi/nvidia.yaml is 0.7.0: it is ignored", "cdi generate --output=/etc/cdi/nvidia.yaml'", { 0 } },
	{ podman_of_debian_12, C(PODMAN), BROKEN, "podman", "version 4.3.1 reads CDI specs up to 0.5.0, and /etc/cdi/nvidia.yaml is 0.7.0: it is ignored", "cdi generate --output=/etc/cdi/nvidia.yaml'", { 0 } },
	{ podman_of_ubuntu_22, C(PODMAN), WARN, "podman", "version 3.4.4 does not read CDI specs", "runtime configure --runtime=podman", { 0 } },
	{ podman_of_fedora, C(PODMAN), OK, "podman", "has its spec", NULL, { 0 } },
	{ podman_unknown_new_spec, C(PODMAN), UNKNOWN, "podman", "if this version of Podman, which is not known, reads CDI 0.7.0", NULL, { 0 } },
	{ docker_25, C(CDI_SPECS), BROKEN, "docker", "version 25.0.3 reads CDI specs up to 0.6.0", "it writes what every engine", { 0 } },
	{ docker_20, C(CDI_SPECS), WARN, "docker", "CDI is enabled, but version 20.10.24 does not read CDI specs", "--gpus", { 0 } },
	{ full_disk, C(DISK_SPACE), BROKEN, "/run", "no space left on device: the file system has no free space", "df -h /run", { 0 } },
	{ no_inodes, C(DISK_SPACE), BROKEN, "/var/lib", "no free inodes", "df -i /var/lib", { 0 } },
	{ nvml_on_full_disk, C(NVML), BROKEN, "NVML", "fails: write failed: No space left on device", "see disk-space", { 0 } },
	{ no_tools, C(DRIVER_LIBRARY), OK, "nvidia-smi", "is not installed on this host", "Install it", { 0 } },
	{ simulated_daemons, C(PERSISTENCE), OK, "nvidia-persistenced", "the driver is simulated", NULL, { 0 } },
	{ simulated_daemons, C(FABRIC_MANAGER), OK, "nv-fabricmanager", "the driver is simulated", NULL, { 0 } },
	{ docker_outside, C(ENGINES), BROKEN, "docker", "it starts containers outside this simulated host, where this driver does not exist", "docs/simulated-driver.md", { 0 } },
	{ docker_elsewhere, C(DOCKER_GPUS), OK, "docker", "'--gpus' uses", NULL, { 0 } },
	{ old_swarm_gpu, C(DOCKER_RUNTIME), BROKEN, "docker", "GPU-9", "node-generic-resources", { 0 } },
	{ forgotten_drop_in, C(CONTAINERD_RUNTIME), BROKEN, "containerd", "99-nvidia.toml is not read", "nvidia-ctk runtime configure --runtime=containerd", { 0 } },
	{ newer_drop_in, C(CONTAINERD_RUNTIME), BROKEN, "containerd", "has version 4, and /etc/containerd/config.toml has version 2", "rm /etc/containerd/conf.d/99-nvidia.toml", { 0 } },
	{ older_drop_in, C(CONTAINERD_RUNTIME), WARN, "containerd", "other names", "rm /etc/containerd", { 0 } },
	{ wrong_table, C(CONTAINERD_RUNTIME), BROKEN, "containerd", "plugins.\"cri\", which a file of version 2 does not have", "io.containerd.grpc.v1.cri", { 0 } },
	{ no_containerd_program, C(CONTAINERD_RUNTIME), BROKEN, "containerd", "does not exist: BinaryName is not set", "Install", { 0 } },
	{ containerd_not_restarted, C(CONTAINERD_RUNTIME), WARN, "containerd", "has not read it since", "systemctl restart containerd", { 0 } },
	{ no_containerd_runtime, C(CONTAINERD_RUNTIME), BROKEN, "containerd", "no runtime for \"nvidia\" is configured", "nvidia-ctk runtime configure --runtime=containerd && systemctl restart containerd", { 0 } },
	{ no_k3s_runtime, C(CONTAINERD_RUNTIME), BROKEN, "k3s", "no runtime", "'systemctl restart k3s'", { 0 } },
	{ no_rke2_runtime, C(CONTAINERD_RUNTIME), BROKEN, "rke2", "no runtime", "'systemctl restart rke2-agent'", { 0 } },
	{ no_microk8s_runtime, C(CONTAINERD_RUNTIME), BROKEN, "microk8s", "no runtime", "nvidia-ctk runtime configure --runtime=containerd --config=/var/snap/microk8s/current/args/containerd-template.toml && snap restart microk8s", { 0 } },
	{ containerd_gives_cdi, C(CONTAINERD_RUNTIME), OK, "containerd", "through CDI", NULL, { 0 } },
	{ containerd_without_kubernetes, C(CONTAINERD_RUNTIME), OK, "containerd", "only Kubernetes", NULL, { 0 } },
	{ no_cri, C(CONTAINERD_RUNTIME), BROKEN, "containerd", "disabled_plugins", "Remove \"cri\"", { 0 } },
	{ no_crio_runtime, C(CRIO_RUNTIME), BROKEN, "cri-o", "no runtime for \"nvidia\" is configured", "--runtime=crio && systemctl restart crio", { C(PODMAN) } },
	{ crio_hook, C(CRIO_RUNTIME), OK, "cri-o", "runs the hook", NULL, { 0 } },
	{ no_crio_program, C(CRIO_RUNTIME), BROKEN, "cri-o", "does not exist", "--runtime=crio", { 0 } },
	{ crio_not_restarted, C(CRIO_RUNTIME), WARN, "cri-o", "has not read it since", "restart crio", { 0 } },
	{ no_crio_hook_program, C(CRIO_RUNTIME), BROKEN, "cri-o", "the hook /etc/hooks.d/nvidia.json does not exist: /usr/bin/nvidia-x", "rm /etc/hooks.d/nvidia.json", { 0 } },
	{ no_podman, C(PODMAN), WARN, "podman", "neither a CDI spec nor a hook", "cdi generate", { 0 } },
	{ no_podman_spec_without_driver, C(PODMAN), WARN, "podman", "neither a CDI spec nor a hook", "When the driver is loaded (see kernel-module), run 'nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml'.", { C(KERNEL_MODULE), C(NVML) } },
	{ podman_hook, C(PODMAN), OK, "podman", "runs the hook", NULL, { 0 } },
	{ no_podman_hook_program, C(PODMAN), BROKEN, "podman", "containers that need the hook do not start", "rm /etc/hooks.d/nvidia.json", { 0 } },
	{ no_specs, C(CDI_SPECS), OK, "/etc/cdi", "has no specs", NULL, { C(PODMAN) } },
	{ not_seen, C(UNSEEN), UNKNOWN, "/proc/1/environ", "could not be read (Permission denied), and 1 other", "sudo", { 0 } },
	{ asks_known_devices, C(REQUESTED_DEVICES), OK, "GPU-1,0", "exists on this host", NULL, { 0 } },
	{ asks_old_uuid, C(REQUESTED_DEVICES), BROKEN, "GPU-9", "the GPU was replaced, or the name is from another host. This host has: GPU-0, GPU-1", "nvidia-smi -L", { 0 } },
	{ asks_high_index, C(REQUESTED_DEVICES), BROKEN, "7", "the host has fewer GPUs", "nvidia-smi -L", { 0 } },
	{ asks_mig, C(REQUESTED_DEVICES), BROKEN, "MIG-9", "no GPU has MIG instances", NULL, { 0 } },
	{ asks_claim, C(REQUESTED_DEVICES), BROKEN, "any:2", "it is a claim, which counts where leases are on (graft.leases.mode)", NULL, { 0 } },
	{ asks_other_mig, C(REQUESTED_DEVICES), BROKEN, "MIG-9", "MIG was set up again, which gives new names, or it is a device of another GPU. This host has: GPU-0, GPU-1, MIG-1", NULL, { 0 } },
	{ asks_without_gpu, C(REQUESTED_DEVICES), BROKEN, "0", "no GPU at all", NULL, { C(KERNEL_MODULE), C(DRIVER_LIBRARY) } },
	{ asks_without_facts, C(REQUESTED_DEVICES), UNKNOWN, "GPU-9", "the UUIDs are not known", NULL, { 0 } },
	{ asks_cdi, C(REQUESTED_DEVICES), OK, "nvidia.com/gpu=all", "is in a CDI spec", NULL, { 0 } },
	{ asks_unknown_cdi, C(REQUESTED_DEVICES), BROKEN, "nvidia.com/gpu=7", "it is in no spec in /etc/cdi, /var/run/cdi", "Request one that 'nvidia-ctk cdi list' lists. If the GPU is new, run 'nvidia-ctk cdi refresh' first.", { 0 } },
	{ requires_less, C(REQUIREMENT), OK, "cuda>=11.0", "driver " DRIVER ", CUDA 12.4", NULL, { 0 } },
	{ requires_more, C(REQUIREMENT), BROKEN, "cuda>=13.0", "unsatisfied condition: this host has driver " DRIVER ", which supports CUDA up to 12.4", "NVIDIA_DISABLE_REQUIRE", { 0 } },
	{ requires_nonsense, C(REQUIREMENT), BROKEN, "cuda=~1", "invalid expression", "cuda>=12.0", { 0 } },
	{ requires_architecture, C(REQUIREMENT), UNKNOWN, "arch>=9.0", "that only NVML knows", NULL, { 0 } },
	{ clean_image, C(IMAGE), OK, "/tmp/image", "contains no libraries of a driver", NULL, { 0 } },
	{ image_with_driver, C(IMAGE), WARN, "/tmp/image", "libcuda.so.535.54.03", "apt-get purge", { 0 } },
	{ good_compat, C(CUDA_COMPAT), OK, "libcuda.so.575.57.08", "suits driver " DRIVER, NULL, { 0 } },
	{ old_compat, C(CUDA_COMPAT), WARN, "libcuda.so.470.57.02", "error 803", "LD_LIBRARY_PATH", { 0 } },
	{ compat_for_others, C(CUDA_COMPAT), WARN, "libcuda.so.575.57.08", "error 803", "LD_LIBRARY_PATH", { 0 } },
	{ compat_for_servers, C(CUDA_COMPAT), WARN, "libcuda.so.575.57.08", "error 804", "cuda-compat-mode=disabled", { 0 } },
	{ node_of_k3s, C(TOOLKIT_OWNER), OK, "K3s", "keeps the engine's files in its own places (found by /var/lib/rancher/k3s/agent): set CONTAINERD_CONFIG=/var/lib/rancher/k3s/agent/etc/containerd/config.toml CONTAINERD_SOCKET=/run/k3s/containerd/containerd.sock for an installer, which writes a drop-in file that K3s imports; before March 2026 it imports none: set NO_RUNTIME_CONFIG=true, and restart K3s, which finds /usr/local/nvidia/toolkit when it starts", NULL, { 0 } },
	{ node_of_microk8s, C(TOOLKIT_OWNER), OK, "MicroK8s", "keeps the engine's files in its own places (found by /var/snap/microk8s/current/args): set CONTAINERD_CONFIG=/var/snap/microk8s/current/args/containerd-template.toml CONTAINERD_SOCKET=/var/snap/microk8s/common/run/containerd.sock for an installer", NULL, { 0 } },
	{ node_of_talos, C(TOOLKIT_OWNER), OK, "Talos", "keeps the engine's files in its own places (found by /etc/os-release): set TOOLKIT_INSTALL_DIR RUNTIME_CONFIG RUNTIME_DROP_IN_CONFIG for an installer, with paths in /var, since nothing can be written below /etc and /usr, and import the file of RUNTIME_CONFIG in the machine configuration; or use CDI", NULL, { 0 } },
	{ one_installer, C(TOOLKIT_OWNER), OK, "/etc/containerd/config.toml", "gives containerd the runtime 'nvidia': /usr/local/nvidia/toolkit/nvidia-container-runtime, of an installer: process 56 of a pod, which installs to /usr/local/nvidia/toolkit", NULL, { 0 } },
	{ two_installers, C(TOOLKIT_OWNER), BROKEN, "two installers", "process 56 of a pod, which installs to /usr/local/nvidia/toolkit, and process 78, which installs to /opt/nvidia/toolkit, change the same files of the engine", "Keep one: 'kubectl get daemonsets --all-namespaces'", { 0 } },
	{ half_a_toolkit, C(TOOLKIT_OWNER), BROKEN, "/usr/local/nvidia/toolkit", "is incomplete: nvidia-cdi-hook is missing", "Start its installer again", { 0 } },
	{ package_and_installer, C(TOOLKIT_OWNER), WARN, "containerd", "has the runtime 'nvidia' of a package (/usr/bin/nvidia-container-runtime, in /etc/containerd/config.toml) and 'nvidia-cdi' of an installer (/usr/local/nvidia/toolkit/nvidia-container-runtime.cdi, in /etc/containerd/conf.d/99-nvidia.toml)", "Keep one", { 0 } },
	{ no_kubelet, C(KUBELET), BROKEN, "kubelet", "is not running on this host", "systemctl restart kubelet", { 0 } },
	{ kubelet_not_seen, C(KUBELET), UNKNOWN, "kubelet", "cannot be seen", "sudo", { 0 } },
	{ no_kubelet_socket, C(KUBELET), BROKEN, "kubelet", "no socket /var/lib/kubelet/device-plugins/kubelet.sock", "kubeletRoot", { 0 } },
	{ kubelet_folder_closed, C(KUBELET), UNKNOWN, "kubelet", "its directory /var/lib/kubelet cannot be seen", "sudo", { C(USER_NAMESPACES) } },
	{ no_device_plugin, C(DEVICE_PLUGIN), BROKEN, "nvidia-device-plugin", "is not running on this node", "systemctl enable --now nvidia-device-plugin", { 0 } },
	{ plugin_not_seen, C(DEVICE_PLUGIN), UNKNOWN, "process 12", "cannot be seen", "sudo", { 0 } },
	{ two_device_plugins, C(DEVICE_PLUGIN), BROKEN, "two device plugins", "process 12 and process 34 (of a pod) both offer GPUs", "Keep one", { 0 } },
	{ plugin_serves_nothing, C(DEVICE_PLUGIN), BROKEN, "process 12", "offers nothing", "journalctl --unit nvidia-device-plugin", { 0 } },
	{ second_plugin_waits, C(DEVICE_PLUGIN), BROKEN, "process 34 (of a pod)", "offers nothing", "kubectl logs", { 0 } },
	{ plugin_unwatched, C(DEVICE_PLUGIN), BROKEN, "process 12", "no kubelet is connected", "journalctl --unit kubelet", { 0 } },
	{ plugin_elsewhere, C(DEVICE_PLUGIN), BROKEN, "process 12 (of a pod)", "no socket in the kubelet's directory /var/lib/kubelet", "plugins_registry", { 0 } },
	{ unknown_resource, C(NODE_CAPACITY), BROKEN, "nvidia.com/gpu", "does not know this resource", "restart nvidia-device-plugin", { 0 } },
	{ no_healthy_device, C(NODE_CAPACITY), BROKEN, "nvidia.com/gpu", "no healthy device", "dmesg", { 0 } },
	{ no_healthy_mig_device, C(NODE_CAPACITY), WARN, "nvidia.com/mig-1g.5gb", "no healthy device", "dmesg", { 0 } },
	{ all_given_away, C(NODE_CAPACITY), OK, "nvidia.com/gpu", "2 healthy devices, and has given 2 to pods", "timeSlicing", { 0 } },
	{ no_record, C(NODE_CAPACITY), UNKNOWN, "/var/lib/kubelet", "no readable record", NULL, { 0 } },
	{ damaged_record, C(NODE_CAPACITY), WARN, "/var/lib/kubelet", "is damaged: invalid JSON at line 1", "kubelet_internal_checkpoint", { 0 } },
	{ no_handler, C(RUNTIME_HANDLER), BROKEN, "containerd", "has no runtime nvidia", "nvidia-ctk runtime configure --runtime=containerd && systemctl restart containerd", { C(CONTAINERD_RUNTIME) } },
	{ no_handler_but_config, C(RUNTIME_HANDLER), UNKNOWN, "containerd", "unless the device plugin's config file says cdi-cri", "--device-list-strategy=cdi-cri", { C(CONTAINERD_RUNTIME) } },
	{ no_handler_but_cdi, C(RUNTIME_HANDLER), OK, "containerd", "names CDI devices, which need none", NULL, { C(CONTAINERD_RUNTIME) } },
	{ another_default_runtime, C(RUNTIME_HANDLER), OK, "containerd", "pods need 'runtimeClassName: nvidia'", NULL, { 0 } },
	{ no_plugin_specs, C(PLUGIN_SPECS), BROKEN, "/var/run/cdi", "no CDI spec from the device plugin", "/var/run/cdi", { 0 } },
	{ cdi_off_in_containerd, C(PLUGIN_SPECS), BROKEN, "containerd", "CDI switched off", "--cdi.enabled", { 0 } },
	{ driver_not_validated, C(GPU_OPERATOR), WARN, "/run/nvidia/validations", "has no driver-ready", "--container driver-validation", { 0 } },
	{ toolkit_not_validated, C(GPU_OPERATOR), WARN, "/run/nvidia/validations", "has no toolkit-ready", "--container toolkit-validation", { 0 } },
	{ old_labels, C(NODE_LABELS), WARN, "/etc/features.d/gfd", "is no longer running", "rm /etc/features.d/gfd", { 0 } },
	{ labels_by_file, C(NODE_LABELS), OK, "/etc/features.d/gfd", "has 7 labels", NULL, { 0 } },
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
		/* Every complaint has a remedy. */
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

/* All checks that apply to the healthy host appear, in order, and none complains. */
static void test_healthy(void **state)
{
	struct world w;
	struct judged judged;
	unsigned long long seen = 0;
	enum graft_check last = 0;

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

/* Each check has a row in which it complains, except AppArmor's, which never does. */
static void test_every_check_complains(void **state)
{
	unsigned long long seen = 1ull << GRAFT_CHECK_APPARMOR;

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

/* Without any facts, nothing is read that does not exist. */
static void test_empty_facts(void **state)
{
	struct world w;
	struct judged judged;

	memset(&w, 0, sizeof(w));
	judge(&judged, &w);
	assert_int_equal(judged.diagnosis.verdict, GRAFT_LEVEL_BROKEN);
	(void)graft_arena_free(judged.arena);
}

/* --- messages --- */

/*
 * users.md's list of messages that people paste: each message, the situation that causes it, and
 * the check that must report it.
 */
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
		{ "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available",
		  no_device_plugin, C(DEVICE_PLUGIN) },
		{ "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", all_given_away, C(NODE_CAPACITY) },
		{ "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", driver_not_validated, C(GPU_OPERATOR) },
		{ "UnexpectedAdmissionError: Allocate failed due to requested number of devices unavailable for "
		  "nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected",
		  two_device_plugins, C(DEVICE_PLUGIN) },
		{ "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu",
		  no_healthy_device, C(NODE_CAPACITY) },
		{ "pod rejected: RuntimeClass \"nvidia\" not found", no_handler, C(RUNTIME_HANDLER) },
		{ "unsatisfied condition: cuda>=13.0, please update your driver to a newer version", requires_more,
		  C(REQUIREMENT) },
		{ "CUDA error 804: forward compatibility was attempted on non supported HW", compat_for_servers,
		  C(CUDA_COMPAT) },
		{ "system has unsupported display driver / cuda driver combination (error 803)", old_compat,
		  C(CUDA_COMPAT) },
		{ "Failed to initialize NVML: Unknown Error", no_links, C(DEV_CHAR_LINKS) },
		{ "CUDA initialization: system not yet initialized", no_fabric_manager, C(FABRIC_MANAGER) },
		{ "failed to create task: exec: \"nvidia-smi\": executable file not found in $PATH", no_tools,
		  C(DRIVER_LIBRARY) },
		{ "exec: \"nvidia-smi\": executable file not found in $PATH: unknown", no_hook, C(DOCKER_GPUS) },
		{ "RuntimeError: No CUDA GPUs are available", no_gpu_node, C(DEVICE_NODES) },
		{ "RuntimeError: No CUDA GPUs are available", empty_mig, C(MIG) },
		{ "CUDA driver initialization failed, you might not have a CUDA gpu.", no_uvm, C(KERNEL_MODULE) },
		{ "error while loading shared libraries: libcuda.so.1: cannot open shared object file", no_cuda,
		  C(DRIVER_LIBRARY) },
		{ "ldcache error: open failed: /sbin/ldconfig.real: no such file or directory", no_own_programs,
		  C(PROGRAMS) },
		{ "process /sbin/ldconfig failed with error code: 1", bad_config, C(CONFIG) },
		{ "could not start /sbin/ldconfig: process execution failed", bad_config, C(CONFIG) },
		{ "Failed to initialize NVML: Unknown Error", no_links_without_cdi, C(DEV_CHAR_LINKS) },
		{ "Failed to initialize NVML: Unknown Error", no_cgroups, C(CONFIG) },
		{ "CUDA error 803: system has unsupported display driver / cuda driver combination", mismatch,
		  C(LIBRARY_VERSIONS) },
		{ "bpf_prog_attach failed", root_without_rights, C(CGROUP_RIGHTS) },
		{ "could not select device driver", hook_came_later, C(DOCKER_GPUS) },
		{ "unable to configure the Docker daemon with file /etc/docker/daemon.json: invalid character '/' "
		  "looking for beginning of object key string",
		  comment_in_engine_file, C(ENGINES) },
		{ "setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all", podman_of_debian_12,
		  C(PODMAN) },
		{ "json: unknown field \"additionalGids\"", podman_of_debian_12, C(PODMAN) },
		{ "write /run/x: no space left on device", full_disk, C(DISK_SPACE) },
		{ "Unable to determine the device handle for GPU 0000:65:00.0: GPU is lost", nvml_loses_one, C(NVML) },
		{ "fork/exec /usr/bin/nvidia-container-runtime: no such file or directory", no_docker_runtime_program,
		  C(DOCKER_RUNTIME) },
		{ "crun: cannot stat `/lib64/libEGL_nvidia.so.535`", stale_spec, C(CDI_STALE) },
		{ "error running hook: fork/exec /usr/bin/nvidia-ctk: no such file or directory", stale_spec,
		  C(CDI_STALE) },
		{ "stat /usr/bin/nvidia-container-toolkit: no such file or directory", no_own_programs, C(PROGRAMS) },
		{ "nvidia-container-cli: error while loading shared libraries: libnvidia-container.so.1: cannot open "
		  "shared object file",
		  no_own_programs, C(PROGRAMS) },
		{ "error: invoking the NVIDIA Container Runtime Hook directly (e.g. specifying the docker --gpus flag) "
		  "is "
		  "not supported.",
		  no_docker_runtime_on_tegra, C(DOCKER_RUNTIME) },
		{ "error getting hook config: failed to load config: line 2, column 3: no key", bad_config, C(CONFIG) },
		{ "invalid mode \"magic\" (allowed are auto, legacy, csv, cdi, jit-cdi)", bad_mode, C(CONFIG) },
		{ "unsupported capabilities found in 'gpu' (allowed '')", bad_config, C(CONFIG) },
		{ "cannot set MIG_CONFIG_DEVICES in non privileged container", empty_mig, C(MIG) },
		{ "WARNING: The NVIDIA Driver was not detected.  GPU functionality will not be available.", no_hook,
		  C(DOCKER_GPUS) },
		{ "Failed to initialize NVML: GPU access blocked by the operating system", image_with_driver,
		  C(IMAGE) },
		{ "CUDA driver version is insufficient for CUDA runtime version", requires_more, C(REQUIREMENT) },
		{ "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.1.0-9-amd64", no_module,
		  C(KERNEL_MODULE) },
		{ "torch.cuda.is_available() is False", no_gpu_node, C(DEVICE_NODES) },
		{ "cudaErrorSystemDriverMismatch", mismatch, C(LIBRARY_VERSIONS) },
		/* Other engines, and logs, which put backslashes before quotes. */
		{ "docker: Error response from daemon: failed to discover GPU vendor from CDI: no known GPU vendor "
		  "found",
		  no_hook, C(DOCKER_GPUS) },
		{ "Error: crun: executable file `nvidia-smi` not found in $PATH: No such file or directory: OCI "
		  "runtime "
		  "attempted to invoke a command that was not found",
		  no_tools, C(DRIVER_LIBRARY) },
		{ "FATAL:   \"nvidia-smi\": executable file not found in $PATH", no_tools, C(DRIVER_LIBRARY) },
		{ "lxc_attach_run_command: 1841 No such file or directory - Failed to exec \"nvidia-smi\"", no_tools,
		  C(DRIVER_LIBRARY) },
		{ "level=error error=\"failed to create task: exec: \\\"nvidia-smi\\\": executable file not found in "
		  "$PATH\"",
		  no_tools, C(DRIVER_LIBRARY) },
		{ "caused \"exec: \\\\\\\"nvidia-smi\\\\\\\": executable file not found in $PATH\\\": unknown",
		  no_tools, C(DRIVER_LIBRARY) },
		{ "error=\"failed to get sandbox runtime: no runtime for \\\"nvidia\\\" is configured\"",
		  no_containerd_runtime, C(CONTAINERD_RUNTIME) },
		{ "failed to find runtime handler nvidia from runtime list map[runc:0xc0]", no_containerd_runtime,
		  C(CONTAINERD_RUNTIME) },
		{ "Could not find cuda drivers on your machine, GPU will not be used.", no_cuda, C(DRIVER_LIBRARY) },
		{ "failed call to cuInit: UNKNOWN ERROR (303)", no_cuda, C(DRIVER_LIBRARY) },
		{ "Error: stat nvidia.com/gpu=all: no such file or directory", podman_of_debian_12, C(PODMAN) },
		{ "error gathering device information while adding custom device \"nvidia.com/gpu=all\": no such file "
		  "or directory",
		  podman_of_debian_12, C(PODMAN) },
		{ "Error: default OCI runtime \"nvidia\" not found: invalid argument", podman_of_debian_12, C(PODMAN) },
	};

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

/* Each text of the table finds its own row, so no row hides another. */
static void test_every_text(void **state)
{
	for (size_t i = 0; i < graft_n_doctor_messages; i++) {
		const struct graft_doctor_message *message = &graft_doctor_messages[i];

		for (const char *text = message->texts; *text != '\0';) {
			size_t length = strcspn(text, "|");
			char asked[160];
			struct world w;
			struct judged judged;

			(void)snprintf(asked, sizeof(asked), "Error: %.*s.", (int)length, text);
			healthy(&w);
			w.question.message = asked;
			judge(&judged, &w);
			assert_non_null(judged.diagnosis.message);
			if (strcmp(judged.diagnosis.message, message->cause) != 0)
				fail_msg("'%s' is taken for another message: %s", asked, judged.diagnosis.message);
			assert_string_equal(judged.diagnosis.message_remedy, message->remedy);
			assert_int_equal(judged.diagnosis.verdict, GRAFT_LEVEL_OK);
			(void)graft_arena_free(judged.arena);
			text += length + (text[length] == '|');
		}
	}
}

/* --- ways --- */

#define ALL_WAYS 32

static void test_ways(void **state)
{
	static const struct {
		void (*change)(struct world *w);
		const char *command; /* NULL: no way of this engine */
		const char *engine;
		enum graft_level level;
		const char *why;
	} cases[] = {
		{ nothing, "docker run --gpus all", "docker", OK, NULL },
		{ nothing, "docker run --runtime=nvidia", "docker", OK, NULL },
		{ nothing, "podman run --device nvidia.com/gpu=all", "podman", OK, NULL },
		{ nothing, "pods with the runtime handler nvidia", "containerd", OK, NULL },
		{ nothing, "pods with the runtime handler nvidia", "cri-o", OK, NULL },
		{ nothing, "pods with CDI devices", "cri-o", OK, NULL },
		{ nothing, "ctr run --gpus 0", "containerd", OK, NULL },
		{ no_module, "docker run --gpus all", "docker", BROKEN, "see kernel-module" },
		{ no_gpu_on_bus, "docker run --gpus all", "docker", BROKEN, "see gpu" },
		{ lost_gpu, "docker run --gpus all", "docker", OK, NULL },
		{ mismatch, "podman run --device nvidia.com/gpu=all", "podman", BROKEN, "see library-versions" },
		{ no_hook, "docker run --gpus all", "docker", BROKEN, "see docker-gpus" },
		{ hook_came_later, "docker run --gpus all", "docker", UNKNOWN,
		  "whether the daemon found the hook when it started" },
		{ docker_outside, "docker run --gpus all", "docker", BROKEN, "see engines" },
		{ bad_engine_file, "docker run --gpus all", "docker", OK, NULL },
		{ docker_does_not_start, "docker run --gpus all", "docker", BROKEN, "see engines" },
		{ docker_does_not_start, "docker run --runtime=nvidia", "docker", BROKEN, "see engines" },
		{ closed_engine_file, "docker run --gpus all", "docker", OK, NULL },
		{ bad_podman_file, "podman run --device nvidia.com/gpu=all", "podman", BROKEN, "see engines" },
		{ docker_outside, "podman run --device nvidia.com/gpu=all", "podman", OK, NULL },
		{ docker_elsewhere, "docker run --gpus all", "docker", OK, NULL },
		{ docker_of_snap, NULL, "docker", OK, NULL },
		{ docker_answers, "docker run --runtime=nvidia", "docker", OK, NULL },
		{ no_docker_runtime_program, "docker run --runtime=nvidia", "docker", BROKEN,
		  "its program does not exist" },
		{ no_low_level_runtime, "docker run --runtime=nvidia", "docker", BROKEN, "see programs" },
		{ podman_of_debian_12, "podman run --device nvidia.com/gpu=all", "podman", BROKEN,
		  "the CDI spec is too new for version 4.3.1" },
		{ podman_of_fedora_39, "podman run --device nvidia.com/gpu=all", "podman", BROKEN,
		  "the CDI spec is too new for CDI library 0.6.2" },
		{ podman_unknown_new_spec, "podman run --device nvidia.com/gpu=all", "podman", UNKNOWN,
		  "whether this version reads CDI 0.7.0" },
		{ podman_of_ubuntu_22, NULL, "podman", OK, NULL },
		{ podman_hook, "podman run --env NVIDIA_VISIBLE_DEVICES=all", "podman", OK, NULL },
		{ no_podman_hook_program, "podman run --env NVIDIA_VISIBLE_DEVICES=all", "podman", BROKEN,
		  "see podman" },
		{ stale_spec, "podman run --device nvidia.com/gpu=all", "podman", BROKEN, "see cdi-stale" },
		{ overridden_spec, "podman run --device nvidia.com/gpu=all", "podman", OK, NULL },
		{ overridden_elsewhere, "podman run --device nvidia.com/gpu=all", "podman", BROKEN, "see cdi-stale" },
		{ stale_override, "podman run --device nvidia.com/gpu=all", "podman", BROKEN, "see cdi-stale" },
		{ docker_25, "docker run --device nvidia.com/gpu=all", "docker", BROKEN,
		  "the CDI spec is too new for version 25.0.3" },
		{ specs_elsewhere, "docker run --device nvidia.com/gpu=all", "docker", BROKEN,
		  "its CDI spec is in another directory" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		const struct graft_way *way = NULL;
		struct world w;
		struct judged judged;

		healthy(&w);
		cases[i].change(&w);
		judge(&judged, &w);
		assert_true(judged.diagnosis.n_ways < ALL_WAYS);
		for (size_t k = 0; k < judged.diagnosis.n_ways && !way; k++) {
			if (strcmp(judged.diagnosis.ways[k].engine, cases[i].engine) == 0 &&
			    (!cases[i].command || strcmp(judged.diagnosis.ways[k].command, cases[i].command) == 0))
				way = &judged.diagnosis.ways[k];
		}
		if (!cases[i].command) {
			if (way)
				fail_msg("case %zu: %s", i, way->command);
		} else if (!way) {
			fail_msg("case %zu: no way %s", i, cases[i].command);
		} else {
			if (way->level != cases[i].level)
				fail_msg("case %zu: %s: %s", i, graft_level_names[way->level],
					 way->why ? way->why : "");
			if (cases[i].why)
				assert_string_equal(way->why, cases[i].why);
			else
				assert_null(way->why);
		}
		(void)graft_arena_free(judged.arena);
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
	struct graft_diagnosis diagnosis;
	struct world w;

	everything(&w);
	assert_true(allocation_each(own, err, graft_doctor_judge(&w.health, &w.question, own, &diagnosis, &err)) > 1);
}

/* An arena that is too small, at every size, results in out of memory. */
static void test_small_arenas(void **state)
{
	struct world w;
	bool failed = true;

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
		cmocka_unit_test(test_every_text),
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_unknown_message),
		cmocka_unit_test(test_read_message),
		cmocka_unit_test(test_allocations),
		cmocka_unit_test(test_small_arenas),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
