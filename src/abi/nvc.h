/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvc.h: the C interface of libnvidia-container.so.1. It gives GPUs, step by step, to a container
 * that another program creates.
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
 * Results. Functions that return int return 0 on success and -1 on failure; those that return a
 * pointer return NULL on failure. nvc_error() then returns the reason.
 *
 * Ownership. What a *_new() function returns is released with the matching *_free(), which accepts
 * NULL. Strings and lists in a struct belong to it and live until it is freed; no two structs share
 * anything.
 *
 * Threads. There is no global state: any number of contexts can be in use, each by one thread at a
 * time. The library starts no program (except modprobe, for "load-kmods"), installs no signal
 * handler, and leaves no process or thread running. NVML, the driver's own library, runs in a child
 * process, and so does work for an ordinary user in the user namespace of the container; these
 * children end before the call returns, regardless of how the program handles SIGCHLD. After every
 * call the namespaces, root, working directory, umask, credentials, capabilities and signal mask of
 * the calling thread and its process are what they were before, and the process can be traced if it
 * could be before.
 *
 * Rights. The mount functions need CAP_SYS_ADMIN in the user namespace that owns the container's
 * mount namespace, unless the caller created that user namespace. Device rules need write access to
 * the devices cgroup (v1), or CAP_SYS_ADMIN and CAP_BPF (v2). Linux 4.18 or later.
 *
 * Unless noted otherwise, everything has existed since 1.0, under the symbol version NVC_1.0.
 * Layouts are those of LP64 platforms and do not change.
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
#define NVC_PATCH   1
#define NVC_TAG     ""
#define NVC_VERSION "1.20.1"

#define NVC_ARG_MAX 256 /* maximum size of an option string in bytes, with the terminating NUL */

/* How the driver gives access to MIG capabilities; see nvc_nvcaps_style(). */
#define NVC_NVCAPS_STYLE_NONE 0 /* not at all */
#define NVC_NVCAPS_STYLE_PROC 1 /* files below /proc/driver/nvidia/capabilities */
#define NVC_NVCAPS_STYLE_DEV  2 /* device nodes below /dev/nvidia-caps */

struct nvc_context;
struct nvc_container;

struct nvc_imex_channel {
	int id; /* 0 to 2^20 - 1 */
};

struct nvc_imex_info {
	struct nvc_imex_channel *chans; /* owned by the caller */
	size_t nchans;
};

struct nvc_version {
	unsigned int major;
	unsigned int minor;
	unsigned int patch;
	const char *string; /* NVC_VERSION */
};

/* Input of nvc_init(), which copies it. The strings belong to the caller. */
struct nvc_config {
	char *root;    /* where the driver is installed, absolute; NULL = "/" */
	char *ldcache; /* the loader's cache, absolute, relative to root; NULL = "/etc/ld.so.cache" */
	uid_t uid;     /* user of the NVML process; (uid_t)-1 = the kernel's overflow IDs, which own nothing */
	gid_t gid;
	struct nvc_imex_info imex; /* channels for which "load-kmods" makes nodes; since 1.17 */
};

struct nvc_device_node {
	char *path; /* on the host, without the driver root: "/dev/nvidia0" */
	dev_t id;
};

/* The driver's files. Paths do not include the driver root; links are resolved. */
struct nvc_driver_info {
	char *nvrm_version; /* "550.54.14" */
	char *cuda_version; /* "12.4", the newest version that the driver supports */
	char **bins;
	size_t nbins;
	char **libs;
	size_t nlibs;
	char **libs32;
	size_t nlibs32;
	char **ipcs; /* sockets of daemons, and the pipe directory of MPS */
	size_t nipcs;
	struct nvc_device_node *devs; /* nodes of the driver as a whole, not of a GPU */
	size_t ndevs;
	char **firmwares; /* since 1.5 */
	size_t nfirmwares;
};

struct nvc_device;

/* A MIG device: a part of a GPU. */
struct nvc_mig_device {
	struct nvc_device *parent;
	char *uuid;         /* "MIG-..." */
	unsigned int gi;    /* GPU instance ID */
	unsigned int ci;    /* compute instance ID */
	char *gi_caps_path; /* "/proc/driver/nvidia/capabilities/gpu0/mig/gi1", a directory with a file "access" */
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
	struct nvc_device *gpus; /* ordered by PCI address; index N is GPU N */
	size_t ngpus;
};

/*
 * Where the container is. The strings belong to the caller; nvc_container_new() copies them. A NULL
 * directory means the usual one of the image's distribution.
 */
struct nvc_container_config {
	/*
	 * supervised: ID of a process in the container, in the caller's PID namespace; standalone:
	 * any number above 0
	 */
	pid_t pid;
	char *rootfs;     /* absolute; supervised: as that process sees it */
	char *bins_dir;   /* "/usr/bin" */
	char *libs_dir;   /* "/usr/lib/x86_64-linux-gnu", "/usr/lib64", ... */
	char *libs32_dir; /* "/usr/lib/i386-linux-gnu", ... */
	char *cudart_dir; /* "/usr/local/cuda" */
	char *ldconfig;   /* accepted but unused: the loader's cache is written without running a program */
};

/* Returns the library's version: never NULL, and constant. */
const struct nvc_version *nvc_version(void);

/*
 * nvc_context_new: returns an empty context; NULL if out of memory. nvc_context_free: releases it,
 * after nvc_shutdown() if the caller has not called that.
 */
struct nvc_context *nvc_context_new(void);
void nvc_context_free(struct nvc_context *ctx);

/*
 * nvc_config_new: returns a configuration with all defaults. nvc_config_free: releases only the
 * struct; its strings and channels belong to the caller.
 */
struct nvc_config *nvc_config_new(void);
void nvc_config_free(struct nvc_config *cfg);

/*
 * Initialises a context. `cfg` NULL = all defaults. `opts` is a list of options separated by
 * spaces, NULL = none:
 *
 *	load-kmods               load the kernel modules and make the host's device nodes, as far as possible
 *	no-create-imex-channels  with load-kmods: make no nodes for IMEX channels; since 1.17
 *
 * Fails if there is no driver ("nvml error: driver not loaded"), if its library is missing ("load
 * library failed: libnvidia-ml.so.1: ..."), and if their versions differ. Returns 0 for a context
 * that is already initialised, and leaves it as it is. If the variable NVC_DEBUG_FILE is set, a log
 * is appended to the file that it names; set-user-id programs ignore it.
 */
int nvc_init(struct nvc_context *ctx, const struct nvc_config *cfg, const char *opts);
/*
 * Releases what nvc_init() allocated. Structs made with the context stay valid, but can no longer
 * be used with it. -1: ctx is NULL.
 */
int nvc_shutdown(struct nvc_context *ctx);

/*
 * nvc_container_config_new: does not copy `rootfs`. nvc_container_config_free: releases only the
 * struct.
 */
struct nvc_container_config *nvc_container_config_new(pid_t pid, const char *rootfs);
void nvc_container_config_free(struct nvc_container_config *cfg);

/*
 * Opens a container without changing anything in it. `opts` is a list of options separated by
 * spaces, NULL = "standalone no-cgroups no-devbind utility":
 *
 *	supervised, standalone   the container is a process, or what the caller sees at rootfs;
 *	                         exactly one is required
 *	no-cgroups, no-devbind   leave device rules, device nodes to others
 *	utility, compute, video, graphics, display, ngx, compat32
 *	                         which parts of the driver the container gets
 *	no-cntlibs               do not use the CUDA compatibility libraries of the image; the same as
 *	                         cuda-compat-mode=disabled
 *	cuda-compat-mode=MODE    mount (the default), ldconfig, disabled; since 1.17.7
 *
 * The root is opened once, as a descriptor: later changes of the path or of links do not redirect
 * later calls.
 */
struct nvc_container *nvc_container_new(struct nvc_context *ctx, const struct nvc_container_config *cfg,
					const char *opts);
void nvc_container_free(struct nvc_container *cnt);

/*
 * Finds the driver's files. `opts` is a list of options separated by spaces, NULL = none: no-glvnd,
 * no-uvm, no-modeset, no-mps, no-persistenced, no-fabricmanager and no-gsp-firmware each leave
 * something out.
 */
struct nvc_driver_info *nvc_driver_info_new(struct nvc_context *ctx, const char *opts);
void nvc_driver_info_free(struct nvc_driver_info *info);

/*
 * Finds the GPUs, and asks NVML in a child process for what the kernel does not report. `opts`:
 * unknown options are ignored. "no-nvml" does not use NVML: what only NVML knows is then NULL
 * (brand, arch, UUIDs of MIG devices), and the call takes a millisecond; since 1.20 of this
 * library.
 */
struct nvc_device_info *nvc_device_info_new(struct nvc_context *ctx, const char *opts);
void nvc_device_info_free(struct nvc_device_info *info);

/* Returns one of NVC_NVCAPS_STYLE_*, according to the /proc of the calling process. */
int nvc_nvcaps_style(void);
/*
 * Finds the device node for a capability file; `cap_path` is
 * "/proc/driver/nvidia/capabilities/...". The caller releases node->path with free(). -1: "unable
 * to get cap device attributes: <cap_path>: <reason>".
 */
int nvc_nvcaps_device_from_proc_path(struct nvc_context *ctx, const char *cap_path, struct nvc_device_node *node);

/*
 * The mount functions change the container. Each does all of its work or, on failure, none of it;
 * the work of earlier calls stays. Nothing in the image can make them follow a path out of the
 * container's root.
 *
 * nvc_driver_mount has to come first. It mounts the driver's files in `info` that the container's
 * capabilities include, with what belongs to them, and adds the driver's nodes with their device
 * rules. Whatever the caller removed from the lists of `info` is left out.
 */
int nvc_driver_mount(struct nvc_context *ctx, const struct nvc_container *cnt, const struct nvc_driver_info *info);
/*
 * Adds one GPU: its node and device rule, its part of /proc/driver/nvidia, its display nodes. `dev`
 * is identified by its busid.
 */
int nvc_device_mount(struct nvc_context *ctx, const struct nvc_container *cnt, const struct nvc_device *dev);
/*
 * Gives access to one MIG device of a GPU that was mounted before. It is identified by the busid of
 * its parent, and by gi and ci. Since 1.3.
 */
int nvc_mig_device_access_caps_mount(struct nvc_context *ctx, const struct nvc_container *cnt,
				     const struct nvc_mig_device *dev);
/*
 * Give the right to configure, and to monitor, MIG devices of the GPUs that were mounted. Since
 * 1.3.
 */
int nvc_mig_config_global_caps_mount(struct nvc_context *ctx, const struct nvc_container *cnt);
int nvc_mig_monitor_global_caps_mount(struct nvc_context *ctx, const struct nvc_container *cnt);
/*
 * Adds device rules for all present and future MIG devices of a GPU, for containers with one of
 * those rights. Since 1.3.
 */
int nvc_device_mig_caps_mount(struct nvc_context *ctx, const struct nvc_container *cnt, const struct nvc_device *dev);
/* Adds one IMEX channel. -1 if the host has no node for it. Since 1.17. */
int nvc_imex_channel_mount(struct nvc_context *ctx, const struct nvc_container *cnt,
			   const struct nvc_imex_channel *chan);
/*
 * Updates the cache of the container's loader, so that it finds the libraries; this is the last
 * step. Nothing in the image is executed.
 */
int nvc_ldcache_update(struct nvc_context *ctx, const struct nvc_container *cnt);

/*
 * Returns why the last failed call failed, in one line, valid until the next failure. NULL if none
 * has failed, or ctx is NULL. Success does not clear it.
 */
const char *nvc_error(struct nvc_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
