/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts_record: the field tables for the JSON form of a host's health. Does not know where facts
 * come from.
 */
#include "base/cleanup.h"
#include "doctor/facts.h"

static const char *const cache_names[] = { "good", "missing", "unreadable", "damaged" };
static const char *const cgroup_names[] = { "none", "v1", "hybrid", "v2" };
const char *const graft_health_engine_names[] = { "docker", "containerd", "cri-o", "podman" };

#define RECORD(name, S)                                                                                      \
	static const struct graft_record name##_record = { "health_" #name, sizeof(struct graft_health_##S), \
							   name##_fields, GRAFT_COUNT(name##_fields) }

#define S struct graft_health_unseen
static const struct graft_field unseen_fields[] = {
	GRAFT_F_STRING(S, path, true, "what could not be examined"),
	GRAFT_F_STRING(S, why, true, "the system's reason"),
};
#undef S
RECORD(unseen, unseen);

#define S struct graft_health_self
static const struct graft_field self_fields[] = {
	GRAFT_F_U32(S, uid, false, "effective user id of the caller"),
	GRAFT_F_BOOL(S, user_namespace, "the caller is in a user namespace with mapped ids"),
	GRAFT_F_BOOL(S, container, "the caller seems to be in a container"),
	GRAFT_F_U64(S, capabilities, false, "effective capabilities, bits by number"),
};
#undef S
RECORD(self, self);

#define S struct graft_health_module
static const struct graft_field module_fields[] = {
	GRAFT_F_STRING(S, name, true, "name as the kernel has it"),
	GRAFT_F_BOOL(S, loaded, "it is loaded"),
	GRAFT_F_STRING(S, version, false, "version that the loaded module states"),
	GRAFT_F_STRING(S, file, false, "file in the module tree of the running kernel"),
};
#undef S
RECORD(module, module);

#define S struct graft_health_pci
static const struct graft_field pci_fields[] = {
	GRAFT_F_STRING(S, bus_id, true, "PCI address"),
	GRAFT_F_BOOL(S, bridge, "an NVSwitch, not a GPU"),
	GRAFT_F_STRING(S, driver, false, "kernel driver that has it"),
};
#undef S
RECORD(pci, pci);

#define S struct graft_health_kernel
static const struct graft_field kernel_fields[] = {
	GRAFT_F_STRING(S, release, true, "release of the running kernel"),
	GRAFT_F_BOOL(S, modules_listed, "the module tree could be read"),
	GRAFT_F_BOOL(S, secure_boot, "Secure Boot is on"),
	GRAFT_F_BOOL(S, systemd, "the host was started by systemd"),
	GRAFT_F_RECORDS(S, modules, &module_record, "modules of the driver, and nouveau when it is loaded"),
	GRAFT_F_RECORDS(S, pci, &pci_record, "NVIDIA's devices on the PCI bus"),
	GRAFT_F_BOOL(S, pci_listed, "the bus could be read"),
	GRAFT_F_BOOL(S, has_file_mode, "the driver states a mode for its nodes"),
	GRAFT_F_U32(S, file_mode, false, "that mode, as a decimal number"),
	GRAFT_F_BOOL(S, modifies_nodes, "the driver's tools set owner and mode of nodes"),
};
#undef S
RECORD(kernel, kernel);

#define S struct graft_health_node
static const struct graft_field node_fields[] = {
	GRAFT_F_STRING(S, path, true, "path of the node"),
	GRAFT_F_BOOL(S, required, "without it no container can use the driver, or this GPU"),
	GRAFT_F_BOOL(S, present, "something is at the path"),
	GRAFT_F_BOOL(S, device, "it is a character device"),
	GRAFT_F_BOOL(S, has_numbers, "its numbers are known"),
	GRAFT_F_U32(S, want_major, false, "major number that it must have"),
	GRAFT_F_U32(S, want_minor, false, "minor number that it must have"),
	GRAFT_F_U32(S, major, false, "major number that it has"),
	GRAFT_F_U32(S, minor, false, "minor number that it has"),
	GRAFT_F_U32(S, mode, false, "permission bits as a decimal number"),
	GRAFT_F_U32(S, uid, false, "owner"),
	GRAFT_F_U32(S, gid, false, "group"),
	GRAFT_F_STRING(S, char_link, false, "where the link /dev/char/MAJOR:MINOR leads"),
	GRAFT_F_BOOL(S, link_leads_here, "that link leads to a device with these numbers"),
};
#undef S
RECORD(node, node);

#define S struct graft_health_library
static const struct graft_field library_fields[] = {
	GRAFT_F_STRING(S, soname, true, "the loader's name"),
	GRAFT_F_STRING(S, cached, false, "path in the loader's cache"),
	GRAFT_F_STRING(S, file, false, "the file, links resolved"),
	GRAFT_F_STRING(S, version, false, "version in the name of the file"),
};
#undef S
RECORD(library, library);

#define S struct graft_health_loader
static const struct graft_field loader_fields[] = {
	GRAFT_F_STRING(S, cache, false, "the loader's cache"),
	GRAFT_F_ENUM(S, state, cache_names, GRAFT_COUNT(cache_names), true, "whether it can be used"),
	GRAFT_F_STRING(S, problem, false, "why not"),
	GRAFT_F_I64(S, changed, false, "when it was written, in seconds since 1970"),
	GRAFT_F_RECORDS(S, libraries, &library_record, "the most important libraries of the driver"),
	GRAFT_F_STRING(S, other_root, false, "root of a driver's container that was not examined"),
};
#undef S
RECORD(loader, loader);

#define S struct graft_health_nvml
static const struct graft_field nvml_fields[] = {
	GRAFT_F_BOOL(S, asked, "the library was asked"),
	GRAFT_F_STRING(S, status, false, "name of the status of the answer"),
	GRAFT_F_STRING(S, problem, false, "text of its failure"),
	GRAFT_F_U64(S, took_ms, false, "time that the answer took"),
	GRAFT_F_STRING(S, driver_version, false, "the version that it states"),
	GRAFT_F_U32(S, n_gpus, false, "GPUs that it lists"),
	GRAFT_F_U32(S, n_migs, false, "MIG devices that it lists"),
	GRAFT_F_BOOL(S, lists_gpus, "procfs shows no GPUs: the inventory's are those that it lists"),
	GRAFT_F_STRINGS(S, bus_ids, "PCI addresses of those GPUs"),
};
#undef S
RECORD(nvml, nvml);

#define S struct graft_health_daemon
static const struct graft_field daemon_fields[] = {
	GRAFT_F_STRING(S, name, true, "name of the program"),
	GRAFT_F_STRING(S, socket, true, "where it is reached"),
	GRAFT_F_BOOL(S, has_socket, "there is something at that path"),
	GRAFT_F_BOOL(S, running, "such a process is seen"),
};
#undef S
RECORD(daemon, daemon);

#define S struct graft_health_cgroup
static const struct graft_field cgroup_fields[] = {
	GRAFT_F_ENUM(S, version, cgroup_names, GRAFT_COUNT(cgroup_names), true, "which control groups are mounted"),
	GRAFT_F_BOOL(S, devices_enabled, "v1: the kernel has the devices controller"),
	GRAFT_F_BOOL(S, devices_mounted, "v1: it is mounted"),
	GRAFT_F_U32(S, unprivileged_bpf_disabled, false, "kernel.unprivileged_bpf_disabled"),
	GRAFT_F_STRING(S, library, false, "the file of libnvidia-container.so.1"),
};
#undef S
RECORD(cgroup, cgroup);

#define S struct graft_health_userns
static const struct graft_field userns_fields[] = {
	GRAFT_F_BOOL(S, has_max, "the limit is known"),
	GRAFT_F_U64(S, max, false, "user.max_user_namespaces"),
	GRAFT_F_BOOL(S, clone_forbidden, "kernel.unprivileged_userns_clone is 0"),
	GRAFT_F_BOOL(S, apparmor_restricts, "kernel.apparmor_restrict_unprivileged_userns is 1"),
	GRAFT_F_BOOL(S, has_subuids, "the caller has ids in /etc/subuid"),
};
#undef S
RECORD(userns, userns);

#define S struct graft_health_lsm
static const struct graft_field lsm_fields[] = {
	GRAFT_F_BOOL(S, selinux, "SELinux is enabled"),
	GRAFT_F_BOOL(S, selinux_enforcing, "and enforces"),
	GRAFT_F_BOOL(S, has_container_devices, "the policy has the boolean container_use_devices"),
	GRAFT_F_BOOL(S, container_devices, "which is on"),
	GRAFT_F_BOOL(S, apparmor, "AppArmor is on"),
};
#undef S
RECORD(lsm, lsm);

#define S struct graft_health_file
static const struct graft_field file_fields[] = {
	GRAFT_F_STRING(S, path, true, "the file"),
	GRAFT_F_STRING(S, problem, false, "why it is not understood"),
	GRAFT_F_I64(S, changed, false, "when it was changed, in seconds since 1970"),
	GRAFT_F_U32(S, version, false, "containerd: version that it states"),
	GRAFT_F_BOOL(S, imported, "the engine reads it"),
};
#undef S
RECORD(file, file);

#define S struct graft_health_runtime
static const struct graft_field runtime_fields[] = {
	GRAFT_F_STRING(S, name, true, "name that containers ask for"),
	GRAFT_F_STRING(S, path, false, "program"),
	GRAFT_F_STRING(S, file, false, "what defines it"),
	GRAFT_F_STRING(S, table, false, "containerd: table of the CRI plugin that contains it"),
	GRAFT_F_BOOL(S, found, "the program is there"),
};
#undef S
RECORD(runtime, runtime);

#define S struct graft_health_hook
static const struct graft_field hook_fields[] = {
	GRAFT_F_STRING(S, file, true, "the hook's description"),
	GRAFT_F_STRING(S, path, true, "its program"),
	GRAFT_F_BOOL(S, found, "the program is there"),
};
#undef S
RECORD(hook, hook);

#define S struct graft_health_answer
static const struct graft_field answer_fields[] = {
	GRAFT_F_BOOL(S, asked, "the daemon was asked"),
	GRAFT_F_STRING(S, socket, false, "where"),
	GRAFT_F_STRING(S, problem, false, "why there is no answer"),
	GRAFT_F_RECORDS(S, runtimes, &runtime_record, "runtimes that are NVIDIA's or ours"),
	GRAFT_F_STRING(S, default_runtime, false, "runtime of containers that ask for none"),
	GRAFT_F_STRINGS(S, cdi_directories, "directories of CDI specs; none: it does not read specs"),
};
#undef S
RECORD(answer, answer);

#define S struct graft_health_engine
static const struct graft_field engine_fields[] = {
	GRAFT_F_ENUM(S, kind, graft_health_engine_names, GRAFT_COUNT(graft_health_engine_names), true, "which engine"),
	GRAFT_F_STRING(S, name, true, "its name for people"),
	GRAFT_F_BOOL(S, rootless, "it runs as an ordinary user"),
	GRAFT_F_STRING(S, unit, false, "unit of systemd, where that has another name"),
	GRAFT_F_STRING(S, program, false, "its program"),
	GRAFT_F_STRING(S, version, false, "its version"),
	GRAFT_F_STRING(S, cdi_library, false, "without a version: that of the CDI library in its program"),
	GRAFT_F_RECORD(S, answer, &answer_record, "what its daemon reports"),
	GRAFT_F_BOOL(S, running, "its daemon runs"),
	GRAFT_F_I64(S, started, false, "when the daemon was started, in seconds since 1970"),
	GRAFT_F_STRING(S, path, false, "PATH of the daemon"),
	GRAFT_F_STRING(S, hook, false, "nvidia-container-runtime-hook as the daemon finds it"),
	GRAFT_F_I64(S, hook_changed, false, "when that came there, in seconds since 1970"),
	GRAFT_F_BOOL(S, snap, "it was installed by snap"),
	GRAFT_F_BOOL(S, desktop, "Docker Desktop is installed"),
	GRAFT_F_BOOL(S, other_mounts, "what starts its containers is in another mount namespace than the caller"),
	GRAFT_F_RECORDS(S, files, &file_record, "its configuration"),
	GRAFT_F_RECORDS(S, runtimes, &runtime_record, "runtimes that are NVIDIA's or ours"),
	GRAFT_F_STRING(S, default_runtime, false, "runtime of containers that ask for none"),
	GRAFT_F_BOOL(S, no_cri, "containerd: the CRI plugin is switched off"),
	GRAFT_F_BOOL(S, has_cdi, "the configuration mentions CDI"),
	GRAFT_F_BOOL(S, cdi, "and switches it on"),
	GRAFT_F_STRINGS(S, cdi_directories, "directories of CDI specs, as configured"),
	GRAFT_F_STRINGS(S, resources, "docker: node-generic-resources"),
	GRAFT_F_RECORDS(S, hooks, &hook_record, "hook files that run one of our programs"),
};
#undef S
RECORD(engine, engine);

#define S struct graft_health_spec
static const struct graft_field spec_fields[] = {
	GRAFT_F_STRING(S, file, true, "the spec"),
	GRAFT_F_STRING(S, kind, true, "vendor/class of its devices"),
	GRAFT_F_STRING(S, version, false, "CDI version that it states"),
	GRAFT_F_U32(S, n_devices, false, "number of its devices"),
	GRAFT_F_STRING(S, stale, false, "what it names and the host no longer has"),
	GRAFT_F_STRING(S, open_hook, false, "program of a hook that would run with an image's variables"),
	GRAFT_F_STRINGS(S, names, "names of its devices"),
};
#undef S
RECORD(spec, spec);

#define S struct graft_health_cdi
static const struct graft_field cdi_fields[] = {
	GRAFT_F_STRINGS(S, directories, "directories that were searched"),
	GRAFT_F_RECORDS(S, specs, &spec_record, "specs that can be read"),
	GRAFT_F_RECORDS(S, problems, &file_record, "files that cannot be used"),
	GRAFT_F_STRINGS(S, devices, "qualified names of all devices"),
};
#undef S
RECORD(cdi, cdi);

#define S struct graft_health_disk
static const struct graft_field disk_fields[] = {
	GRAFT_F_STRING(S, path, true, "a directory of the file system"),
	GRAFT_F_BOOL(S, no_inodes, "it has space, but no inodes"),
};
#undef S
RECORD(disk, disk);

#define S struct graft_health_program
static const struct graft_field program_fields[] = {
	GRAFT_F_STRING(S, name, true, "name of the program"),
	GRAFT_F_STRING(S, path, false, "where it is"),
};
#undef S
RECORD(program, program);

#define S struct graft_config_mistake
static const struct graft_field mistake_fields[] = {
	GRAFT_F_STRING(S, key, true, "key of config.toml"),
	GRAFT_F_STRING(S, value, true, "its value, or the word of its value, that no program understands"),
	GRAFT_F_STRING(S, allowed, true, "what it can be"),
	GRAFT_F_STRING(S, standard, true, "its default"),
};
#undef S
static const struct graft_record mistake_record = { "config_mistake", sizeof(struct graft_config_mistake),
						    mistake_fields, GRAFT_COUNT(mistake_fields) };

#define S struct graft_health_config
static const struct graft_field config_fields[] = {
	GRAFT_F_STRING(S, file, false, "where config.toml was expected"),
	GRAFT_F_STRING(S, problem, false, "why it cannot be used"),
	GRAFT_F_STRING(S, mode, false, "mode of the runtime"),
	GRAFT_F_STRING(S, root, false, "driver root; absent: /"),
	GRAFT_F_STRING(S, root_problem, false, "why the driver root cannot be used; / was searched instead"),
	GRAFT_F_BOOL(S, present, "the file is there"),
	GRAFT_F_BOOL(S, no_cgroups, "the hook leaves the device cgroup alone"),
	GRAFT_F_BOOL(S, accepts_envvar, "unprivileged containers may ask by environment"),
	GRAFT_F_STRINGS(S, runtimes, "low-level runtimes in order"),
	GRAFT_F_STRING(S, runtime, false, "the first of them that was found"),
	GRAFT_F_STRINGS(S, unknown, "warnings about unknown keys and tables"),
	GRAFT_F_RECORDS(S, mistakes, &mistake_record, "settings whose value no program understands"),
};
#undef S
RECORD(config, config);

#define S struct graft_health_image
static const struct graft_field image_fields[] = {
	GRAFT_F_STRING(S, path, false, "root of the image's file system"),
	GRAFT_F_STRINGS(S, driver_files, "libraries of a driver that it ships"),
	GRAFT_F_RECORD(S, image, &graft_image_record, "what a plan would use of it"),
};
#undef S
RECORD(image, image);

#define S struct graft_health_plugin
static const struct graft_field plugin_fields[] = {
	GRAFT_F_U32(S, pid, true, "the process"),
	GRAFT_F_BOOL(S, container, "it runs in a container"),
	GRAFT_F_BOOL(S, seen, "its sockets could be counted"),
	GRAFT_F_U32(S, n_served, false, "Unix sockets at which it listens"),
	GRAFT_F_U32(S, n_watched, false, "connections to those"),
	GRAFT_F_STRING(S, strategy, false, "its device list strategy, where it is given"),
	GRAFT_F_STRING(S, config, false, "its config file"),
};
#undef S
RECORD(plugin, plugin);

#define S struct graft_health_resource
static const struct graft_field resource_fields[] = {
	GRAFT_F_STRING(S, name, true, "name of the resource"),
	GRAFT_F_U32(S, n_devices, false, "healthy devices that are offered"),
	GRAFT_F_U32(S, n_in_use, false, "devices that pods have"),
};
#undef S
RECORD(resource, resource);

#define S struct graft_health_installer
static const struct graft_field installer_fields[] = {
	GRAFT_F_U32(S, pid, true, "the process"),
	GRAFT_F_BOOL(S, container, "it runs in a container"),
	GRAFT_F_STRING(S, directory, true, "where it installs"),
};
#undef S
RECORD(installer, installer);

#define S struct graft_health_toolkit
static const struct graft_field toolkit_fields[] = {
	GRAFT_F_STRING(S, directory, true, "its directory"),
	GRAFT_F_STRINGS(S, missing, "parts that are not there"),
};
#undef S
RECORD(toolkit, toolkit);

#define S struct graft_health_cluster
static const struct graft_field cluster_fields[] = {
	GRAFT_F_BOOL(S, asked, "the rest was examined"),
	GRAFT_F_STRING(S, distribution, false,
		       "distribution of Kubernetes with its own paths: K3s, RKE2, MicroK8s, Talos"),
	GRAFT_F_BOOL(S, running, "a kubelet runs"),
	GRAFT_F_STRING(S, directory, false, "the kubelet's directory"),
	GRAFT_F_BOOL(S, has_socket, "it has a socket for device plugins"),
	GRAFT_F_BOOL(S, has_registry, "it has a directory in which it looks for plugins"),
	GRAFT_F_STRINGS(S, sockets, "sockets of NVIDIA's resources in its directories"),
	GRAFT_F_RECORDS(S, plugins, &plugin_record, "processes that offer GPUs to the kubelet"),
	GRAFT_F_BOOL(S, has_record, "the kubelet's record of devices was read"),
	GRAFT_F_STRING(S, record_problem, false, "why that record cannot be used"),
	GRAFT_F_RECORDS(S, resources, &resource_record, "NVIDIA's resources in that record"),
	GRAFT_F_STRINGS(S, plugin_specs, "CDI specs that a device plugin has written"),
	GRAFT_F_BOOL(S, has_operator, "the GPU Operator's directory is there"),
	GRAFT_F_STRINGS(S, validations, "names of the files in it"),
	GRAFT_F_RECORDS(S, installers, &installer_record, "processes that install the toolkit"),
	GRAFT_F_RECORDS(S, toolkits, &toolkit_record, "toolkits that an installer has put there"),
	GRAFT_F_BOOL(S, discovers, "gpu-feature-discovery runs"),
	GRAFT_F_STRING(S, labels_file, false, "its labels for Node Feature Discovery"),
	GRAFT_F_U32(S, n_labels, false, "how many these are"),
};
#undef S
RECORD(cluster, cluster);

#define S struct graft_health
static const struct graft_field health_fields[] = {
	GRAFT_F_U32(S, version, true, "version of this format"),
	GRAFT_F_RECORD(S, self, &self_record, "user who ran the doctor"),
	GRAFT_F_RECORD(S, inventory, &graft_inventory_record, "the driver, as far as its state allows"),
	GRAFT_F_RECORD(S, kernel, &kernel_record, "the kernel's side"),
	GRAFT_F_RECORDS(S, nodes, &node_record, "device nodes that should be there"),
	GRAFT_F_RECORD(S, loader, &loader_record, "the loader's side"),
	GRAFT_F_RECORD(S, nvml, &nvml_record, "what the management library reports"),
	GRAFT_F_RECORDS(S, daemons, &daemon_record, "daemons of the driver"),
	GRAFT_F_RECORD(S, cgroup, &cgroup_record, "control groups"),
	GRAFT_F_RECORD(S, userns, &userns_record, "user namespaces"),
	GRAFT_F_RECORD(S, lsm, &lsm_record, "security modules"),
	GRAFT_F_RECORD(S, cdi, &cdi_record, "CDI specs"),
	GRAFT_F_RECORD(S, config, &config_record, "config.toml"),
	GRAFT_F_RECORDS(S, programs, &program_record, "programs that the stack needs"),
	GRAFT_F_RECORDS(S, engines, &engine_record, "container engines"),
	GRAFT_F_BOOL(S, kubernetes, "a kubelet is there"),
	GRAFT_F_RECORD(S, cluster, &cluster_record, "the node of a cluster"),
	GRAFT_F_RECORD(S, image, &image_record, "the image that was asked about"),
	GRAFT_F_RECORDS(S, full_disks, &disk_record, "file systems that engines write to, and that are full"),
	GRAFT_F_BOOL(S, processes_hidden, "only the caller's own processes are seen"),
	GRAFT_F_RECORDS(S, unseen, &unseen_record, "what could not be examined"),
};
#undef S
const struct graft_record graft_health_record = { "health", sizeof(struct graft_health), health_fields,
						  GRAFT_COUNT(health_fields) };
