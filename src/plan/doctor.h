/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor: what the facts of a host (host/health.h) mean: a list of findings, each with what is wrong, why, and the command that repairs it. Pure: the same
 * facts, the same findings. docs/doctor.md is made from the tables below.
 *
 * Every link of the chain from the kernel to a container has a check, and every check gives at least one finding where it applies, also when all is
 * well. A check that does not apply to the host (MIG without a driver, say) gives none.
 */
#ifndef GRAFT_PLAN_DOCTOR_H
#define GRAFT_PLAN_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "formats/record.h"
#include "host/health.h"

/* Worse is greater. UNKNOWN: it could not be seen, and is not counted. */
#define GRAFT_LEVEL_LIST(X)   \
	X(OK, "ok")           \
	X(UNKNOWN, "?")       \
	X(WARNING, "warning") \
	X(BROKEN, "broken")

enum graft_level {
#define X(name, word) GRAFT_LEVEL_##name,
	GRAFT_LEVEL_LIST(X)
#undef X
	    GRAFT_LEVEL_MAX
};
extern const char *const graft_level_names[GRAFT_LEVEL_MAX];

/* Every check in the order of the report: name, stable id, what it looks at. Append, and never give an id another meaning: people's scripts know them. */
#define GRAFT_CHECK_LIST(X)                                                                                        \
	X(GPU, "gpu", "GPUs on the PCI bus, and whether the driver has all of them")                               \
	X(KERNEL_MODULE, "kernel-module", "the driver's kernel modules: loaded, and made for the running kernel")  \
	X(DEVICE_NODES, "device-nodes", "the nodes below `/dev`: there, with the numbers that the driver has now") \
	X(DEVICE_MODES, "device-modes", "owner and mode of the nodes: whether every user may open them")           \
	X(DEV_CHAR_LINKS, "dev-char-links", "the links `/dev/char/MAJOR:MINOR`, by which systemd knows a device")  \
	X(DRIVER_LIBRARY, "driver-library", "the driver's libraries: NVML and CUDA")                               \
	X(LIBRARY_VERSIONS, "library-versions", "libraries and kernel module are of one version")                  \
	X(LOADER_CACHE, "loader-cache", "`/etc/ld.so.cache` knows the libraries")                                  \
	X(NVML, "nvml", "the management library, asked in a child without privileges")                             \
	X(START_TIME, "start-time", "how long the driver takes to answer")                                         \
	X(PERSISTENCE, "persistence", "the persistence daemon, which keeps GPUs initialised")                      \
	X(FABRIC_MANAGER, "fabric-manager", "the fabric manager, on hosts with NVSwitches")                        \
	X(MIG, "mig", "GPUs in MIG mode and their instances")                                                      \
	X(CGROUP, "cgroup", "control groups: version, and the devices controller of v1")                           \
	X(CGROUP_RIGHTS, "cgroup-rights", "whether device rules can be changed here")                              \
	X(USER_NAMESPACES, "user-namespaces", "what containers of ordinary users need of the kernel")              \
	X(SELINUX, "selinux", "SELinux and the devices of containers")                                             \
	X(APPARMOR, "apparmor", "AppArmor")                                                                        \
	X(CONFIG, "config", "`config.toml`")                                                                       \
	X(PROGRAMS, "programs", "the programs of the toolkit, and a low-level runtime")                            \
	X(CDI_SPECS, "cdi-specs", "CDI specs: valid, and there where an engine needs them")                        \
	X(CDI_STALE, "cdi-stale", "whether all that CDI specs name is still there")                                \
	X(ENGINES, "engines", "container engines, and their files")                                                \
	X(DOCKER_GPUS, "docker-gpus", "Docker: `--gpus`")                                                          \
	X(DOCKER_RUNTIME, "docker-runtime", "Docker: the runtime `nvidia`, and the GPUs promised to Swarm")        \
	X(CONTAINERD_RUNTIME, "containerd-runtime", "containerd, K3s, RKE2, MicroK8s: the runtime `nvidia`")       \
	X(CRIO_RUNTIME, "crio-runtime", "CRI-O: the runtime `nvidia`, or a hook")                                  \
	X(PODMAN, "podman", "Podman: CDI, or a hook")                                                              \
	X(REQUESTED_DEVICES, "requested-devices", "the devices of `--device`")                                     \
	X(REQUIREMENT, "requirement", "the requirement of `--require`")                                            \
	X(IMAGE, "image", "the image of `--image`: libraries of a driver that it ships")                           \
	X(CUDA_COMPAT, "cuda-compat", "the image of `--image`: its CUDA compatibility libraries")                  \
	X(UNSEEN, "unseen", "what could not be looked at")

enum graft_check {
#define X(name, id, what) GRAFT_CHECK_##name,
	GRAFT_CHECK_LIST(X)
#undef X
	    GRAFT_CHECK_MAX
};
extern const char *const graft_check_ids[GRAFT_CHECK_MAX];

struct graft_finding {
	enum graft_check check;
	enum graft_level level;
	const char *subject; /* the thing: "/dev/nvidia0", "docker", "8 GPUs" */
	const char *cause;   /* what is so, and why that is wrong */
	const char *remedy;  /* what to do, with the command; NULL where nothing is to be done */
	bool explains;       /* it may be the cause of the message that was asked about */
};

/*
 * Messages that people meet: a text that they hold (without regard to case), another wording or NULL, what is usually the matter, and the checks that find
 * what it is on a host, the likeliest first.
 */
/* clang-format off */
#define GRAFT_MESSAGE_LIST(X) \
	X("could not select device driver", NULL, \
	  "Docker looks for nvidia-container-runtime-hook in its PATH when its daemon starts, and did not find it then.", \
	  GRAFT_CHECK_DOCKER_GPUS, GRAFT_CHECK_PROGRAMS) \
	X("unknown or invalid runtime name", "unknown runtime specified", \
	  "The runtime is not registered in Docker's daemon.json, or the daemon has not read the file since.", \
	  GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_CHECK_ENGINES, GRAFT_CHECK_DOCKER_GPUS) \
	X("libnvidia-ml.so.1: cannot open shared object file", "load library failed", \
	  "The driver is not installed where the containers run, or not where the loader looks.", \
	  GRAFT_CHECK_DRIVER_LIBRARY, GRAFT_CHECK_LOADER_CACHE, GRAFT_CHECK_CONFIG, GRAFT_CHECK_KERNEL_MODULE, GRAFT_CHECK_DOCKER_GPUS) \
	X("driver/library version mismatch", NULL, \
	  "The driver was upgraded while the old kernel module stayed loaded.", \
	  GRAFT_CHECK_LIBRARY_VERSIONS, GRAFT_CHECK_NVML) \
	X("driver not loaded", "couldn't communicate with the nvidia driver", \
	  "The kernel module is not loaded, or its device nodes are missing.", \
	  GRAFT_CHECK_KERNEL_MODULE, GRAFT_CHECK_DEVICE_NODES, GRAFT_CHECK_GPU) \
	X("insufficient permissions", NULL, \
	  "The device nodes are for some users and groups only, or SELinux refuses.", \
	  GRAFT_CHECK_DEVICE_MODES, GRAFT_CHECK_SELINUX, GRAFT_CHECK_NVML) \
	X("file exists", NULL, \
	  "The image ships libraries of a driver as files of its own.", \
	  GRAFT_CHECK_IMAGE) \
	X("cgroup subsystem devices not found", NULL, \
	  "The devices controller of cgroup v1 is not there: a container in a container, or cgroup v2 and an old toolkit.", \
	  GRAFT_CHECK_CGROUP) \
	X("bpf_prog_query", "bpf_prog_attach", \
	  "Device rules of cgroup v2 can be changed by root of the first user namespace alone.", \
	  GRAFT_CHECK_CGROUP_RIGHTS, GRAFT_CHECK_USER_NAMESPACES) \
	X("unknown device", "unresolvable cdi devices", \
	  "The device is not of this host, or no longer: a replaced GPU, another MIG layout, an old name, a stale CDI spec.", \
	  GRAFT_CHECK_REQUESTED_DEVICES, GRAFT_CHECK_CDI_SPECS, GRAFT_CHECK_CDI_STALE, GRAFT_CHECK_DOCKER_RUNTIME, GRAFT_CHECK_GPU, GRAFT_CHECK_MIG, GRAFT_CHECK_PODMAN) \
	X("rpc error: timed out", NULL, \
	  "The driver takes longer than 10 s to initialise the GPUs, because no program keeps them so.", \
	  GRAFT_CHECK_START_TIME, GRAFT_CHECK_PERSISTENCE, GRAFT_CHECK_NVML, GRAFT_CHECK_GPU) \
	X("no runtime for \"nvidia\"", "no runtime for 'nvidia'", \
	  "containerd or CRI-O does not have the runtime in what it has read.", \
	  GRAFT_CHECK_CONTAINERD_RUNTIME, GRAFT_CHECK_CRIO_RUNTIME, GRAFT_CHECK_ENGINES) \
	X("unsatisfied condition", NULL, \
	  "The image wants a newer CUDA than the driver supports.", \
	  GRAFT_CHECK_REQUIREMENT, GRAFT_CHECK_CUDA_COMPAT) \
	X("forward compatibility was attempted", "unsupported display driver / cuda driver combination", \
	  "CUDA compatibility libraries of the image were loaded that do not suit this driver or GPU.", \
	  GRAFT_CHECK_CUDA_COMPAT, GRAFT_CHECK_REQUIREMENT, GRAFT_CHECK_LIBRARY_VERSIONS) \
	X("failed to initialize nvml: unknown error", NULL, \
	  "The container's device rules were taken away: systemd was reloaded and did not know the devices, or nobody set the rules.", \
	  GRAFT_CHECK_DEV_CHAR_LINKS, GRAFT_CHECK_CONFIG, GRAFT_CHECK_CGROUP) \
	X("system not yet initialized", "error 802", \
	  "The fabric manager does not run.", \
	  GRAFT_CHECK_FABRIC_MANAGER) \
	X("is stale", "cannot stat", \
	  "A CDI spec names what is no longer there.", \
	  GRAFT_CHECK_CDI_STALE)
/* clang-format on */

struct graft_doctor_message {
	const char *text, *other, *usual;
	enum graft_check checks[8];
	size_t n_checks;
};
extern const struct graft_doctor_message graft_doctor_messages[];
extern const size_t graft_n_doctor_messages;

/* What somebody wants to know beside the state of the host. Everything may be NULL. */
struct graft_doctor_question {
	const char *const *devices; /* as in NVIDIA_VISIBLE_DEVICES, also lists; or qualified CDI names */
	size_t n_devices;
	const char *const *requirements; /* as in NVIDIA_REQUIRE_CUDA */
	size_t n_requirements;
	const char *message; /* that an engine or a program printed */
};

#define GRAFT_DIAGNOSIS_VERSION 1u

struct graft_diagnosis {
	uint32_t version;               /* GRAFT_DIAGNOSIS_VERSION, of the JSON form */
	enum graft_level verdict;       /* the worst finding; OK when nothing is worse than UNKNOWN */
	struct graft_finding *findings; /* in the order of the checks */
	size_t n_findings;
	const char *
	    message; /* what is usually the matter with the message that was asked about; NULL = not known, or none was */
};

extern const struct graft_record graft_diagnosis_record;

/* Judges. All text is in the arena, or the facts'. -1: GRAFT_NO_MEMORY. */
int graft_doctor_judge(const struct graft_health *health, const struct graft_doctor_question *question,
		       struct graft_arena *arena, struct graft_diagnosis *ret_diagnosis, struct graft_error *err);

/*
 * What a message says of the devices and requirements that it is about: "device error: GPU-x: unknown device" names one, "unsatisfied condition: cuda>=12.4" the
 * other. *ret_device and *ret_requirement are NULL where it says nothing; the strings are in the arena.
 */
void graft_doctor_read_message(const char *message, struct graft_arena *arena, const char **ret_device,
			       const char **ret_requirement);

#endif
