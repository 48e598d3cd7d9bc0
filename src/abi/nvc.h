/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvc.h: the C interface of libnvidia-container.so.1: gives a container that another program makes its GPUs, step by step.
 *
 *	struct nvc_context *ctx = nvc_context_new();
 *	struct nvc_container_config *cfg = nvc_container_config_new(pid, "/var/lib/box/rootfs");
 *
 *	nvc_init(ctx, NULL, NULL);
 *	cnt = nvc_container_new(ctx, cfg, "supervised compute utility");
 *	driver = nvc_driver_info_new(ctx, NULL);
 *	device = nvc_device_info_new(ctx, NULL);
 *	nvc_driver_mount(ctx, cnt, driver);
 *	nvc_device_mount(ctx, cnt, &device->gpus[0]);
 *	nvc_ldcache_update(ctx, cnt);
 *	nvc_shutdown(ctx);
 *
 * Results. Functions that return int give 0, or -1; those that return a pointer give NULL on failure. nvc_error() then has the reason.
 *
 * Ownership. What a *_new() returned is released by its *_free(), which takes NULL. Strings and lists inside belong to their struct and live until
 * it is freed; nothing is shared between two structs.
 *
 * Threads. There is no global state: any number of contexts may be in use, each by one thread at a time. Nothing here starts a program (but
 * "load-kmods": modprobe), installs a signal handler, or leaves a process or thread behind. NVML, the driver's own library, runs in a child process, and so
 * does what an ordinary user's call does in the user namespace of his container; they end before the call does, whatever the program does with SIGCHLD.
 * After every call the calling thread's and its process' namespaces, root, working directory, umask, credentials, capabilities and signal mask are
 * what they were, and it may be traced if it might before.
 *
 * Rights. Mount functions need CAP_SYS_ADMIN in the user namespace that owns the container's mount namespace, or that the caller made it; device rules need write access to
 * the devices cgroup (v1) or CAP_SYS_ADMIN and CAP_BPF (v2). Linux 4.18 or later.
 *
 * All of it exists since 1.0 under the symbol version NVC_1.0, unless said otherwise. Layouts are those of LP64 platforms and do not change.
 */
#ifndef NVC_H
#define NVC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NVC_MAJOR   1
#define NVC_MINOR   20
#define NVC_PATCH   0
#define NVC_TAG     ""
#define NVC_VERSION "1.20.0"

#define NVC_ARG_MAX 256 /* bytes of an option string, with its end */

/* How the driver gives access to the capabilities of MIG: nvc_nvcaps_style(). */
#define NVC_NVCAPS_STYLE_NONE 0 /* not at all */
#define NVC_NVCAPS_STYLE_PROC 1 /* files below /proc/driver/nvidia/capabilities */
#define NVC_NVCAPS_STYLE_DEV  2 /* device nodes below /dev/nvidia-caps */

struct nvc_context;
struct nvc_container;

struct nvc_imex_channel {
	int id; /* 0 to 2^20 - 1 */
};

struct nvc_imex_info {
	struct nvc_imex_channel *chans; /* the caller's */
	size_t nchans;
};

struct nvc_version {
	unsigned int major;
	unsigned int minor;
	unsigned int patch;
	const char *string; /* NVC_VERSION */
};

/* What nvc_init() reads and copies; every string is the caller's. */
struct nvc_config {
	char *root;    /* where the driver is installed, absolute; NULL = "/" */
	char *ldcache; /* the loader's cache below it, absolute; NULL = "/etc/ld.so.cache" */
	uid_t uid;     /* who NVML's process is; (uid_t)-1 = the kernel's overflow ids, which own nothing */
	gid_t gid;
	struct nvc_imex_info imex; /* channels that "load-kmods" makes nodes for; since 1.17 */
};

struct nvc_device_node {
	char *path; /* of the host, without the driver root: "/dev/nvidia0" */
	dev_t id;
};

/* The driver's files. Paths are without the driver root; links are resolved. */
struct nvc_driver_info {
	char *nvrm_version; /* "550.54.14" */
	char *cuda_version; /* "12.4", the newest that the driver supports */
	char **bins;
	size_t nbins;
	char **libs;
	size_t nlibs;
	char **libs32;
	size_t nlibs32;
	char **ipcs; /* sockets of daemons, the pipe directory of MPS */
	size_t nipcs;
	struct nvc_device_node *devs; /* of the driver as a whole */
	size_t ndevs;
	char **firmwares; /* since 1.5 */
	size_t nfirmwares;
};

struct nvc_device;

/* A part of a GPU (MIG). */
struct nvc_mig_device {
	struct nvc_device *parent;
	char *uuid;         /* "MIG-..." */
	unsigned int gi;    /* GPU instance id */
	unsigned int ci;    /* compute instance id */
	char *gi_caps_path; /* "/proc/driver/nvidia/capabilities/gpu0/mig/gi1"; the file in it is called "access" */
	char *ci_caps_path;
};

struct nvc_mig_device_info {
	struct nvc_mig_device *devices;
	size_t ndevices;
};

struct nvc_device {
	char *model;
	char *uuid;  /* "GPU-..." */
	char *busid; /* "00000000:1b:00.0" */
	char *arch;  /* "8.0" */
	char *brand; /* "Tesla" */
	struct nvc_device_node node;
	bool mig_capable;
	char *mig_caps_path; /* "/proc/driver/nvidia/capabilities/gpu0" */
	struct nvc_mig_device_info mig_devices;
};

struct nvc_device_info {
	struct nvc_device *gpus; /* in the order of their PCI addresses; index N is GPU N */
	size_t ngpus;
};

/* Where the container is. Strings are the caller's; nvc_container_new() copies them. NULL directories = what the image's distribution uses. */
struct nvc_container_config {
	pid_t pid;      /* supervised: a process of the container, by its number here; standalone: any number above 0 */
	char *rootfs;   /* absolute; supervised: as that process sees it */
	char *bins_dir; /* "/usr/bin" */
	char *libs_dir; /* "/usr/lib/x86_64-linux-gnu", "/usr/lib64", ... */
	char *libs32_dir; /* "/usr/lib/i386-linux-gnu", ... */
	char *cudart_dir; /* "/usr/local/cuda" */
	char *ldconfig;   /* accepted and not used: the loader's cache is written without running a program */
};

/* The library's version. Never NULL; constant. */
const struct nvc_version *nvc_version(void);

/*
 * nvc_context_new: an empty context; NULL when memory is exhausted. nvc_context_free: releases it, and shuts it down first if that was forgotten.
 */
struct nvc_context *nvc_context_new(void);
void nvc_context_free(struct nvc_context *ctx);

/* nvc_config_new: all defaults. nvc_config_free: releases the struct alone; its strings and channels stay the caller's. */
struct nvc_config *nvc_config_new(void);
void nvc_config_free(struct nvc_config *cfg);

/*
 * Makes a context usable. `cfg` NULL = all defaults. `opts` are words between spaces, NULL = none:
 *
 *	load-kmods               load the kernel modules and make the device nodes of the host, as far as possible
 *	no-create-imex-channels  with it: no nodes for IMEX channels; since 1.17
 *
 * Fails without a driver ("nvml error: driver not loaded"), without its library ("load library failed: libnvidia-ml.so.1: ..."), and where both are
 * of different versions. A context that is usable already stays as it is (0). The variable NVC_DEBUG_FILE names a file to which a log is
 * appended; set-user-id programs ignore it.
 */
int nvc_init(struct nvc_context *ctx, const struct nvc_config *cfg, const char *opts);
/* Releases what nvc_init() took. Structs made with the context stay valid, but are of no use to it. -1: ctx is NULL. */
int nvc_shutdown(struct nvc_context *ctx);

/* nvc_container_config_new: `rootfs` is not copied. nvc_container_config_free: releases the struct alone. */
struct nvc_container_config *nvc_container_config_new(pid_t pid, const char *rootfs);
void nvc_container_config_free(struct nvc_container_config *cfg);

/*
 * Opens a container; nothing in it is changed. `opts` are words between spaces, NULL = "standalone no-cgroups no-devbind utility":
 *
 *	supervised, standalone   the container is a process, or what the caller sees at rootfs; one of them must be there
 *	no-cgroups, no-devbind   leave device rules, device nodes to others
 *	utility, compute, video, graphics, display, ngx, compat32   what of the driver the container gets
 *	no-cntlibs               do not use the CUDA compatibility libraries of the image; the same as cuda-compat-mode=disabled
 *	cuda-compat-mode=MODE    mount (the default), ldconfig, disabled; since 1.17.7
 *
 * The root is opened once, to a descriptor; later calls are not led elsewhere by changes of the path or of links.
 */
struct nvc_container *nvc_container_new(struct nvc_context *ctx, const struct nvc_container_config *cfg,
					const char *opts);
void nvc_container_free(struct nvc_container *cnt);

/*
 * Finds the driver's files. `opts` are words between spaces, NULL = none: no-glvnd, no-uvm, no-modeset, no-mps, no-persistenced,
 * no-fabricmanager, no-gsp-firmware leave something out.
 */
struct nvc_driver_info *nvc_driver_info_new(struct nvc_context *ctx, const char *opts);
void nvc_driver_info_free(struct nvc_driver_info *info);

/*
 * Finds the GPUs and asks NVML, in a process of its own, for what the kernel does not tell. `opts`: words that are not known are ignored. "no-nvml"
 * leaves NVML alone: what only it knows is then NULL (brand, arch, UUIDs of MIG devices), and the call takes a millisecond; since 1.20 of this library.
 */
struct nvc_device_info *nvc_device_info_new(struct nvc_context *ctx, const char *opts);
void nvc_device_info_free(struct nvc_device_info *info);

/* NVC_NVCAPS_STYLE_*, by the /proc of the calling process. */
int nvc_nvcaps_style(void);
/*
 * The device node that stands for a file of capabilities: `cap_path` is "/proc/driver/nvidia/capabilities/...". node->path is to be released with
 * free(). -1: "unable to get cap device attributes: <cap_path>: <reason>".
 */
int nvc_nvcaps_device_from_proc_path(struct nvc_context *ctx, const char *cap_path, struct nvc_device_node *node);

/*
 * The mount functions change the container: each does all of its work or, on failure, nothing; what earlier calls did stays. They follow nothing that the
 * image says out of the container's root.
 *
 * nvc_driver_mount comes first: the driver's files that `info` lists, by the container's capabilities, and what belongs to them; the nodes of the
 * driver with their device rules. What was taken out of the lists of `info` is left out.
 */
int nvc_driver_mount(struct nvc_context *ctx, const struct nvc_container *cnt, const struct nvc_driver_info *info);
/* One GPU: its node and device rule, its part of /proc/driver/nvidia, its display nodes. `dev` is known by its busid. */
int nvc_device_mount(struct nvc_context *ctx, const struct nvc_container *cnt, const struct nvc_device *dev);
/* Access to one MIG device, whose GPU was mounted. It is known by the busid of its parent, and by gi and ci. Since 1.3. */
int nvc_mig_device_access_caps_mount(struct nvc_context *ctx, const struct nvc_container *cnt,
				     const struct nvc_mig_device *dev);
/* The right to make, and to watch, MIG devices of the GPUs that were mounted. Since 1.3. */
int nvc_mig_config_global_caps_mount(struct nvc_context *ctx, const struct nvc_container *cnt);
int nvc_mig_monitor_global_caps_mount(struct nvc_context *ctx, const struct nvc_container *cnt);
/* Device rules for all MIG devices that a GPU has and may get, for containers with one of those rights. Since 1.3. */
int nvc_device_mig_caps_mount(struct nvc_context *ctx, const struct nvc_container *cnt, const struct nvc_device *dev);
/* One channel of IMEX. -1 when the host has no node for it. Since 1.17. */
int nvc_imex_channel_mount(struct nvc_context *ctx, const struct nvc_container *cnt,
			   const struct nvc_imex_channel *chan);
/* Makes the container's loader know the libraries: the last step. Nothing of the image is executed. */
int nvc_ldcache_update(struct nvc_context *ctx, const struct nvc_container *cnt);

/*
 * Why the last call failed, one line; lives until the next failure. NULL when none failed, or ctx is NULL. A success does not clear it.
 */
const char *nvc_error(struct nvc_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
