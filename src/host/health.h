/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health: what there is to know of a host when GPUs do not work in its containers: driver, nodes, loader, daemons, control groups, CDI specs,
 * container engines. Plain data with a JSON form (docs/doctor.md); what it means is plan/doctor.h's matter.
 *
 * Looking changes nothing: every file is opened for reading, no device node is opened, no program is started. The one exception is the driver's
 * management library, which is asked in a child without privileges if the caller wants that (host/nvml.h).
 *
 * A host may lack anything, and the caller may be anybody. What is not there is NULL, 0 or false; what could not be looked at for lack of permission is in
 * `unseen`, so that "there is none" and "it was not seen" stay apart.
 */
#ifndef GRAFT_HOST_HEALTH_H
#define GRAFT_HOST_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "formats/record.h"
#include "host/discover.h"
#include "host/image.h"
#include "host/inventory.h"

#define GRAFT_HEALTH_VERSION 1u

/* Something that could not be looked at. */
struct graft_health_unseen {
	const char *path, *why;
};

/* Who looks. */
struct graft_health_self {
	uint32_t uid;
	bool user_namespace;   /* not the first one: ids of it are mapped */
	bool container;        /* the marks that engines leave in their containers are there */
	uint64_t capabilities; /* effective, bits by number */
};

struct graft_health_module {
	const char *name; /* "nvidia", "nvidia_uvm", "nouveau" */
	bool loaded;
	const char *version; /* as the loaded one says; NULL = it does not say */
	const char *file;    /* of the running kernel's tree; NULL = that tree has none */
};

/* An NVIDIA device on the PCI bus. */
struct graft_health_pci {
	const char *bus_id; /* "0000:1b:00.0" */
	bool bridge;        /* an NVSwitch, not a GPU */
	const char *driver; /* kernel driver that has it: "nvidia", "nouveau", "vfio-pci"; NULL = none */
};

struct graft_health_kernel {
	const char *release; /* 6.1.0-18-amd64 */
	bool modules_listed; /* its module tree could be read: `file` of the modules counts */
	bool secure_boot;
	bool systemd;                        /* it is the first process */
	struct graft_health_module *modules; /* those of the driver; nouveau only when it is loaded */
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
	bool has_numbers; /* what its numbers should be is known */
	uint32_t want_major, want_minor;
	uint32_t major, minor, mode, uid, gid; /* as it is */
	const char *char_link;                 /* what /dev/char/MAJOR:MINOR says; NULL = there is no such link */
	bool link_leads_here;                  /* to a device with these numbers */
};

/* One of the libraries without which nothing works, by the loader's name. */
struct graft_health_library {
	const char *soname;
	const char *cached;  /* the path that the loader's cache has; NULL = it has none */
	const char *file;    /* resolved, from the cache or from where drivers are installed; NULL = not found */
	const char *version; /* that its file name ends with */
};

enum graft_health_cache { GRAFT_CACHE_GOOD, GRAFT_CACHE_MISSING, GRAFT_CACHE_UNREADABLE, GRAFT_CACHE_DAMAGED };

struct graft_health_loader {
	const char *cache; /* path below the driver root */
	enum graft_health_cache state;
	const char *problem; /* of a cache that is not good */
	int64_t changed;     /* seconds since 1970; 0 = unknown */
	struct graft_health_library *libraries;
	size_t n_libraries;
	const char
	    *other_root; /* a driver's container shows its root there, which was not looked at; NULL = none does */
};

/* What the management library says. */
struct graft_health_nvml {
	bool asked;
	const char *status;  /* name of a status: "OK", "NO_DRIVER", "MISMATCH", "TIMEOUT" ... */
	const char *problem; /* text of the failure */
	uint64_t took_ms;
	const char *driver_version;
	uint32_t n_gpus, n_migs;
	const char **bus_ids; /* of the GPUs that it lists */
	size_t n_bus_ids;
};

/* A daemon of the driver. */
struct graft_health_daemon {
	const char *name;   /* nvidia-persistenced */
	const char *socket; /* where it is reached */
	bool has_socket;    /* there is something */
	bool running;       /* a process of that name is seen */
};

enum graft_health_cgroup_version { GRAFT_CGROUP_NONE, GRAFT_CGROUP_V1, GRAFT_CGROUP_HYBRID, GRAFT_CGROUP_V2 };

struct graft_health_cgroup {
	enum graft_health_cgroup_version version;
	bool devices_enabled; /* v1: the kernel has the controller */
	bool devices_mounted; /* v1: it is mounted where it can be seen */
	uint32_t unprivileged_bpf_disabled;
	/* The file of libnvidia-container.so.1, by which programs change device rules; NULL = there is none. */
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
	bool has_container_devices, container_devices; /* SELinux' boolean container_use_devices */
	bool apparmor;
};

/* A file that was parsed or could not be. */
struct graft_health_file {
	const char *path;
	const char *problem; /* NULL = it was understood */
	int64_t changed;     /* seconds since 1970 */
	uint32_t version;    /* containerd: of the configuration; 0 = it says none */
	bool imported;       /* a drop-in that the engine reads; the main file is always one */
};

struct graft_health_runtime {
	const char *name;
	const char *path;  /* program, as configured; NULL = the entry names none */
	const char *file;  /* who says so */
	const char *table; /* containerd: name of the plugin's table */
	bool found;        /* the program is there: at the path, or in the daemon's PATH */
};

/* A hook of /usr/share/containers/oci/hooks.d and its like that runs one of our programs. */
struct graft_health_hook {
	const char *file, *path;
	bool found;
};

enum graft_health_engine_kind {
	GRAFT_ENGINE_DOCKER,
	GRAFT_ENGINE_CONTAINERD,
	GRAFT_ENGINE_CRIO,
	GRAFT_ENGINE_PODMAN,
};

struct graft_health_engine {
	enum graft_health_engine_kind kind;
	const char *name; /* "docker", "docker (rootless, uid 1000)", "k3s" */
	bool rootless;
	const char *program;  /* its daemon's program, or podman's; NULL = not found */
	bool running;         /* podman needs no daemon: true when the program is there */
	int64_t started;      /* seconds since 1970; 0 = unknown */
	const char *path;     /* PATH of the running daemon; NULL = it could not be seen */
	const char *hook;     /* nvidia-container-runtime-hook in that PATH, else in the usual one */
	int64_t hook_changed; /* when it came there */
	bool snap;            /* it was installed by snap, whose programs do not see the host's driver */
	bool desktop;         /* Docker Desktop: containers are in a virtual machine */
	struct graft_health_file *files;
	size_t n_files;
	struct graft_health_runtime *runtimes; /* those that are ours by name or program */
	size_t n_runtimes;
	const char *default_runtime;
	bool no_cri;                  /* containerd: the CRI plugin is switched off */
	bool has_cdi, cdi;            /* whether the configuration speaks of CDI, and what it says */
	const char **cdi_directories; /* as configured; none = the engine's default */
	size_t n_cdi_directories;
	const char **resources; /* docker: node-generic-resources */
	size_t n_resources;
	struct graft_health_hook *hooks;
	size_t n_hooks;
};

struct graft_health_spec {
	const char *file, *kind;
	uint32_t n_devices;
	const char *stale; /* why it is, NULL = everything that it names is there */
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

/* A program that the stack needs. */
struct graft_health_program {
	const char *name;
	const char *path; /* NULL = not found */
};

/* config.toml; the programs that know where it is and what it means fill it in. */
struct graft_health_config {
	const char *file;    /* where it was looked for */
	const char *problem; /* why it cannot be used; the rest is then unknown */
	const char *mode;
	const char *root;         /* driver root; NULL = "/" */
	const char *root_problem; /* it cannot be used, and "/" was looked at instead */
	bool present;
	bool no_cgroups;
	bool accepts_envvar;   /* unprivileged containers may ask by environment */
	const char **runtimes; /* low-level runtimes, in order */
	size_t n_runtimes;
	const char *runtime; /* the first of them that was found; NULL = none */
};

/* An image's file system that somebody has trouble with. */
struct graft_health_image {
	const char *path;          /* NULL = none was given */
	const char **driver_files; /* libraries of a driver that the image ships itself, below its root */
	size_t n_driver_files;
	struct graft_image image;
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
	struct graft_health_image image;
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
	const char *const *cdi_directories; /* ascending priority; absolute */
	size_t n_cdi_directories;
	const char *home, *config_home;           /* of the caller: $HOME, $XDG_CONFIG_HOME; NULL = unknown */
	const char *image;                        /* root of an image's file system; NULL = none */
	const struct graft_health_config *config; /* borrowed; copied into the result with its strings borrowed */
};

/*
 * Looks. Fails only when memory is exhausted (GRAFT_NO_MEMORY), or when a directory that the caller names (driver root, image) cannot be
 * opened. The result is released with graft_health_free().
 */
int graft_health_collect(const struct graft_health_options *options, struct graft_health **ret_health,
			 struct graft_error *err);
/* NULL is fine. Returns NULL. */
struct graft_health *graft_health_free(struct graft_health *health);
/* Appends the JSON form; same facts, same bytes. */
void graft_health_write(const struct graft_health *health, struct graft_buffer *out);
/* Reads it back. -1: GRAFT_FORMAT, GRAFT_UNSUPPORTED (another version), GRAFT_TOO_BIG, GRAFT_NO_MEMORY. */
int graft_health_read(const char *json, size_t length, struct graft_health **ret_health, struct graft_error *err);

/* The module of that name; NULL when there is no such row. */
const struct graft_health_module *graft_health_find_module(const struct graft_health *health, const char *name);
/* The daemon of that name, likewise. */
const struct graft_health_daemon *graft_health_find_daemon(const struct graft_health *health, const char *name);

#endif
