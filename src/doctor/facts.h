/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts: everything to know about a host if GPUs do not work in its containers: driver, nodes,
 * loader, daemons, control groups, CDI specs, container engines. Plain data with a JSON form
 * (docs/doctor.md); doctor/judge.h interprets it.
 *
 * Looking changes nothing: every file is opened for reading, no device node is opened, no program
 * is started. If the caller requests it, the driver's management library is asked in a child
 * without privileges (host/nvml.h), and running Docker daemons are asked about themselves.
 *
 * A host may lack anything, and the caller may be any user. Missing things are NULL, 0 or false;
 * what could not be examined for lack of permission is in `unseen`, so that "does not exist" and
 * "was not seen" can be distinguished.
 */
#ifndef GRAFT_DOCTOR_FACTS_H
#define GRAFT_DOCTOR_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "formats/record.h"
#include "host/discover.h"
#include "host/inventory.h"
#include "image/inspect.h"
#include "request/config.h"

#define GRAFT_HEALTH_VERSION 1u

/* Something that could not be examined. */
struct graft_health_unseen {
	const char *path, *why;
};

/* The calling process. */
struct graft_health_self {
	uint32_t uid;
	bool user_namespace;   /* not the initial one: its ids are mapped */
	bool container;        /* the marker files that engines leave in their containers exist */
	uint64_t capabilities; /* effective capabilities, by bit number */
};

struct graft_health_module {
	const char *name; /* "nvidia", "nvidia_uvm", "nouveau" */
	bool loaded;
	const char *version; /* reported by the loaded module; NULL = not reported */
	const char *file;    /* in the module tree of the running kernel; NULL = not in it */
};

/* An NVIDIA device on the PCI bus. */
struct graft_health_pci {
	const char *bus_id; /* "0000:1b:00.0" */
	bool bridge;        /* an NVSwitch, not a GPU */
	const char *driver; /* bound kernel driver: "nvidia", "nouveau", "vfio-pci"; NULL = none */
};

struct graft_health_kernel {
	const char *release; /* 6.1.0-18-amd64 */
	bool modules_listed; /* the module tree could be read, so `file` of the modules is valid */
	bool secure_boot;
	bool systemd;                        /* systemd is the init process */
	struct graft_health_module *modules; /* those of the driver; nouveau only if loaded */
	size_t n_modules;
	struct graft_health_pci *pci;
	size_t n_pci;
	bool pci_listed;    /* the bus could be read */
	bool has_file_mode; /* the driver's parameter for the mode of its nodes is known */
	uint32_t file_mode;
	bool modifies_nodes; /* the driver's own tools set owner and mode of nodes */
};

/* A device node as it should be and as it is. */
struct graft_health_node {
	const char *path;
	bool required;    /* without it no container can use the driver, or this GPU */
	bool present;     /* something is at the path */
	bool device;      /* it is a character device */
	bool has_numbers; /* its proper numbers are known */
	uint32_t want_major, want_minor;
	uint32_t major, minor, mode, uid, gid; /* as found */
	const char *char_link;                 /* target of /dev/char/MAJOR:MINOR; NULL = there is no such link */
	bool link_leads_here;                  /* it resolves to a device with these numbers */
};

/* One of the libraries without which nothing works, by the loader's name. */
struct graft_health_library {
	const char *soname;
	const char *cached;  /* path in the loader's cache; NULL = not cached */
	const char *file;    /* resolved, from the cache or the directories of drivers; NULL = not found */
	const char *version; /* at the end of its file name */
};

enum graft_health_cache { GRAFT_CACHE_GOOD, GRAFT_CACHE_MISSING, GRAFT_CACHE_UNREADABLE, GRAFT_CACHE_DAMAGED };

struct graft_health_loader {
	const char *cache; /* path below the driver root */
	enum graft_health_cache state;
	const char *problem; /* set unless the state is GRAFT_CACHE_GOOD */
	int64_t changed;     /* seconds since 1970; 0 = unknown */
	struct graft_health_library *libraries;
	size_t n_libraries;
	const char *other_root; /* root of a driver's container, which was not examined; NULL = none found */
};

/* The results of the management library. */
struct graft_health_nvml {
	bool asked;
	const char *status;  /* name of a status: "OK", "NO_DRIVER", "MISMATCH", "TIMEOUT" ... */
	const char *problem; /* text of the failure */
	uint64_t took_ms;
	const char *driver_version;
	uint32_t n_gpus, n_migs;
	bool lists_gpus;      /* the inventory has its GPUs, because procfs shows none */
	const char **bus_ids; /* of the GPUs that it lists */
	size_t n_bus_ids;
};

/* A daemon of the driver. */
struct graft_health_daemon {
	const char *name;   /* nvidia-persistenced */
	const char *socket; /* path of its socket */
	bool has_socket;    /* something is at that path */
	bool running;       /* a process of that name was found */
};

enum graft_health_cgroup_version { GRAFT_CGROUP_NONE, GRAFT_CGROUP_V1, GRAFT_CGROUP_HYBRID, GRAFT_CGROUP_V2 };

struct graft_health_cgroup {
	enum graft_health_cgroup_version version;
	bool devices_enabled; /* v1: the kernel has the controller */
	bool devices_mounted; /* v1: it is mounted and visible */
	uint32_t unprivileged_bpf_disabled;
	/*
	 * The file of libnvidia-container.so.1, through which programs change device rules; NULL =
	 * not installed.
	 */
	const char *library;
};

struct graft_health_userns {
	bool has_max;
	uint64_t max;            /* user.max_user_namespaces */
	bool clone_forbidden;    /* Debian's kernel.unprivileged_userns_clone is 0 */
	bool apparmor_restricts; /* kernel.apparmor_restrict_unprivileged_userns is 1 */
	bool has_subuids;        /* the caller has ids in /etc/subuid */
};

struct graft_health_lsm {
	bool selinux, selinux_enforcing;
	bool has_container_devices, container_devices; /* the SELinux boolean container_use_devices */
	bool apparmor;
};

/* A file that was parsed or could not be parsed. */
struct graft_health_file {
	const char *path;
	const char *problem; /* NULL = it was understood */
	int64_t changed;     /* seconds since 1970 */
	uint32_t version;    /* containerd: of the configuration; 0 = not given */
	bool imported;       /* the engine reads it: a drop-in that is imported, or the main file */
};

struct graft_health_runtime {
	const char *name;
	const char *path;  /* program, as configured; NULL = the entry has none */
	const char *file;  /* the file, or option, that configures it */
	const char *table; /* containerd: name of the plugin's table */
	bool found;        /* the program exists: at the path, or in the daemon's PATH */
};

/*
 * A hook in /usr/share/containers/oci/hooks.d or a similar directory that runs one of our programs.
 */
struct graft_health_hook {
	const char *file, *path;
	bool found;
};

/* What a running daemon reports about itself (engine/docker_info.h). */
struct graft_health_answer {
	bool asked;          /* it runs, and its socket was tried */
	const char *socket;  /* path of that socket */
	const char *problem; /* why there is no answer; NULL = the rest is valid */
	struct graft_health_runtime
	    *runtimes; /* those that are ours, judging by name or program; `file` is the socket */
	size_t n_runtimes;
	const char *default_runtime;
	const char **cdi_directories; /* none = it does not read CDI specs */
	size_t n_cdi_directories;
};

enum graft_health_engine_kind {
	GRAFT_ENGINE_DOCKER,
	GRAFT_ENGINE_CONTAINERD,
	GRAFT_ENGINE_CRIO,
	GRAFT_ENGINE_PODMAN,
};
extern const char *const graft_health_engine_names[]; /* "docker", "containerd", "cri-o", "podman" */

struct graft_health_engine {
	enum graft_health_engine_kind kind;
	const char *name; /* "docker", "docker (rootless, uid 1000)", "k3s" */
	bool rootless;
	const char *unit;    /* of systemd; NULL = it has the engine's name */
	const char *program; /* its daemon's program, or podman's; NULL = not found */
	const char *version; /* from the daemon, otherwise from the database of packages; NULL = unknown */
	/*
	 * If the version is unknown: that of the CDI library in its program ("0.6.2"); NULL =
	 * unknown too.
	 */
	const char *cdi_library;
	struct graft_health_answer answer; /* docker */
	bool running;                      /* podman has no daemon: true if the program exists */
	int64_t started;                   /* seconds since 1970, upper bound; 0 = unknown */
	const char *path;                  /* PATH of the running daemon; NULL = not visible */
	const char *hook;                  /* nvidia-container-runtime-hook in that PATH, otherwise in the usual one */
	int64_t hook_changed;              /* when that was installed */
	bool snap;                         /* installed by snap, whose programs do not see the host's driver */
	bool desktop;                      /* Docker Desktop: containers run in a virtual machine */
	/*
	 * The daemon, or for Docker every containerd, is in another mount namespace than the
	 * caller.
	 */
	bool other_mounts;
	struct graft_health_file *files;
	size_t n_files;
	struct graft_health_runtime *runtimes; /* those that are ours by name or program */
	size_t n_runtimes;
	const char *default_runtime;
	bool no_cri;                  /* containerd: the CRI plugin is disabled */
	bool has_cdi, cdi;            /* whether the configuration has a CDI switch, and its value */
	const char **cdi_directories; /* as configured; none = the engine's default */
	size_t n_cdi_directories;
	const char **resources; /* docker: node-generic-resources */
	size_t n_resources;
	struct graft_health_hook *hooks;
	size_t n_hooks;
};

struct graft_health_spec {
	const char *file, *kind;
	const char *version; /* of the CDI, as it states: an engine ignores a spec that is newer than it knows */
	uint32_t n_devices;
	const char *stale; /* why it is stale; NULL = everything in it exists */
	/*
	 * Program of a hook that would run with an image's variables
	 * (graft_cdi_spec_find_open_hook()); NULL = none.
	 */
	const char *open_hook;
	const char **names; /* of its devices */
	size_t n_names;
};

struct graft_health_cdi {
	const char **directories;
	size_t n_directories;
	struct graft_health_spec *specs;
	size_t n_specs;
	struct graft_health_file *problems; /* files that cannot be used */
	size_t n_problems;
	const char **devices; /* qualified names, sorted */
	size_t n_devices;
};

/* A file system that engines write to, and that is full. */
struct graft_health_disk {
	const char *path;
	bool no_inodes; /* it has space, but no inodes */
};

/* A program that the stack needs. */
struct graft_health_program {
	const char *name;
	const char *path; /* NULL = not found */
};

/* config.toml; filled in by the programs that know its path and meaning. */
struct graft_health_config {
	const char *file;    /* expected path */
	const char *problem; /* why it cannot be used; the rest is then unknown */
	const char *mode;
	const char *root;         /* driver root; NULL = "/" */
	const char *root_problem; /* why the root cannot be used; "/" was examined instead */
	bool present;
	bool no_cgroups;
	bool accepts_envvar;   /* unprivileged containers may request devices by environment */
	const char **runtimes; /* low-level runtimes, in order */
	size_t n_runtimes;
	const char *runtime;  /* the first of them that was found; NULL = none */
	const char **unknown; /* warnings about unknown keys and tables */
	size_t n_unknown;
	struct graft_config_mistake *mistakes; /* values that no program understands */
	size_t n_mistakes;
};

/* The file system of an image to examine. */
struct graft_health_image {
	const char *path;          /* NULL = none was given */
	const char **driver_files; /* libraries of a driver that the image itself contains, below its root */
	size_t n_driver_files;
	struct graft_image image;
};

/* A process that offers GPUs to the kubelet, on the host or in a container. */
struct graft_health_plugin {
	uint32_t pid;
	bool container;       /* it runs in a container: as a pod of a DaemonSet */
	bool seen;            /* its sockets could be counted, which only root may do */
	uint32_t n_served;    /* Unix sockets at which it listens */
	uint32_t n_watched;   /* connections to those: the kubelet's */
	const char *strategy; /* device list strategy of its command line or environment; NULL = not given */
	const char *config;   /* its config file, which may have further settings; NULL = none */
};

/* A process that installs the toolkit and keeps it up to date. */
struct graft_health_installer {
	uint32_t pid;
	bool container;
	const char *directory; /* where it installs: "/usr/local/nvidia" */
};

/* A toolkit that an installer has put on this host: its directory, and missing parts. */
struct graft_health_toolkit {
	const char *directory; /* "/usr/local/nvidia/toolkit" */
	const char **missing;
	size_t n_missing;
};

/* A resource, as recorded by the kubelet. */
struct graft_health_resource {
	const char *name;   /* "nvidia.com/gpu" */
	uint32_t n_devices; /* healthy devices that are offered */
	uint32_t n_in_use;  /* devices that pods have */
};

/* The node of a cluster; collected on request. */
struct graft_health_cluster {
	bool asked;
	const char *distribution; /* "K3s": a name in distributions.c; NULL = none of them */
	bool running;             /* a kubelet runs */
	const char *directory;    /* of the kubelet: "/var/lib/kubelet" */
	bool has_socket;          /* it has a socket for device plugins */
	bool has_registry;        /* it has a directory in which it searches for plugins */
	const char **sockets;     /* of NVIDIA's resources in these two directories: paths */
	size_t n_sockets;
	struct graft_health_plugin *plugins;
	size_t n_plugins;
	bool has_record;                         /* the kubelet's record of devices (its checkpoint) was read */
	const char *record_problem;              /* why it cannot be used */
	struct graft_health_resource *resources; /* of nvidia.com */
	size_t n_resources;
	const char **plugin_specs; /* CDI specs that a device plugin has written */
	size_t n_plugin_specs;
	bool has_operator;        /* the GPU Operator's directory is there */
	const char **validations; /* files in it: "driver-ready" */
	size_t n_validations;
	struct graft_health_installer *installers;
	size_t n_installers;
	struct graft_health_toolkit *toolkits;
	size_t n_toolkits;
	bool discovers;          /* gpu-feature-discovery runs */
	const char *labels_file; /* its labels for Node Feature Discovery; NULL = no such file */
	uint32_t n_labels;
};

struct graft_health {
	uint32_t version; /* GRAFT_HEALTH_VERSION */
	struct graft_health_self self;
	struct graft_inventory inventory; /* as far as the state of the driver allows */
	struct graft_health_kernel kernel;
	struct graft_health_node *nodes;
	size_t n_nodes;
	struct graft_health_loader loader;
	struct graft_health_nvml nvml;
	struct graft_health_daemon *daemons;
	size_t n_daemons;
	struct graft_health_cgroup cgroup;
	struct graft_health_userns userns;
	struct graft_health_lsm lsm;
	struct graft_health_cdi cdi;
	struct graft_health_config config;
	struct graft_health_program *programs;
	size_t n_programs;
	struct graft_health_engine *engines;
	size_t n_engines;
	bool kubernetes; /* a kubelet runs, or was set up */
	struct graft_health_cluster cluster;
	struct graft_health_image image;
	struct graft_health_disk *full_disks;
	size_t n_full_disks;
	bool processes_hidden; /* procfs shows the caller's own processes only */
	struct graft_health_unseen *unseen;
	size_t n_unseen;
	struct graft_arena *arena; /* owned; not part of the JSON form */
};

extern const struct graft_record graft_health_record;

struct graft_health_options {
	struct graft_host_options
	    host; /* driver root, host root, identity and time limit of the NVML child; `imex_channels` is not used */
	bool ask_nvml;
	bool look_at_cluster;  /* the kubelet, the device plugin, and everything else about the node of a cluster */
	bool ask_daemons;      /* connect to the sockets of running engines; read-only requests */
	int daemon_timeout_ms; /* how long such a daemon may take; 0 = 3 s */
	const char *const *cdi_directories; /* in ascending priority; absolute */
	size_t n_cdi_directories;
	const char *home, *config_home;           /* of the caller: $HOME, $XDG_CONFIG_HOME; NULL = unknown */
	const char *image;                        /* root of an image's file system; NULL = none */
	const struct graft_health_config *config; /* borrowed; copied into the result with its strings borrowed */
};

/*
 * Collects the facts. Fails only if out of memory (GRAFT_NO_MEMORY), or if a directory given by the
 * caller (driver root, image) cannot be opened. Release the result with graft_health_free().
 */
int graft_health_collect(const struct graft_health_options *options, struct graft_health **ret_health,
			 struct graft_error *err);
/*
 * Collects only the installed container engines and their versions, for
 * graft_doctor_oldest_reader(). An engine's configuration is read only if its version reads CDI
 * specs on request and limits their version. Errors and release as above.
 */
int graft_health_collect_readers(const struct graft_health_options *options, struct graft_health **ret_health,
				 struct graft_error *err);
/* NULL is fine. Returns NULL. */
struct graft_health *graft_health_free(struct graft_health *health);
/* Appends the JSON form; the same facts give the same bytes. */
void graft_health_write(const struct graft_health *health, struct graft_buffer *out);
/*
 * Parses the JSON form. Fails with GRAFT_FORMAT, GRAFT_UNSUPPORTED (another version), GRAFT_TOO_BIG
 * or GRAFT_NO_MEMORY.
 */
int graft_health_read(const char *json, size_t length, struct graft_health **ret_health, struct graft_error *err);

/* Finds the module of that name; NULL if there is no such row. */
const struct graft_health_module *graft_health_find_module(const struct graft_health *health, const char *name);
/* Returns the file that the host has of the library; NULL if it has none. */
const char *graft_health_find_library_file(const struct graft_health *health, const char *soname);
/* Finds the daemon of that name; NULL if there is no such row. */
const struct graft_health_daemon *graft_health_find_daemon(const struct graft_health *health, const char *name);

#endif
