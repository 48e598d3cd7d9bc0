/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge: interprets the facts of a host (doctor/facts.h) as a list of findings, each with what is
 * wrong, why, and the command that repairs it. Pure: the same facts give the same findings.
 * docs/doctor.md is made from the tables below.
 *
 * Every link of the chain from the kernel to a container has a check, and every check gives at
 * least one finding where it applies, even if all is well. A check that does not apply to the host
 * (such as MIG without a driver) gives none.
 */
#ifndef GRAFT_DOCTOR_JUDGE_H
#define GRAFT_DOCTOR_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "doctor/facts.h"
#include "engine/cdi_versions.h"
#include "formats/record.h"

/* Worse levels are greater. UNKNOWN: it could not be seen; it does not affect the verdict. */
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

/*
 * Every check in the order of the report: name, stable id, what it examines. Remove none, and never
 * change the meaning of an id: scripts of users rely on them.
 */
#define GRAFT_CHECK_LIST(X)                                                                                        \
	X(GPU, "gpu", "GPUs on the PCI bus, and whether the driver uses all of them")                              \
	X(KERNEL_MODULE, "kernel-module", "the driver's kernel modules: loaded, and built for the running kernel") \
	X(DEVICE_NODES, "device-nodes", "the nodes below `/dev`: whether they exist, with the driver's numbers")   \
	X(DEVICE_MODES, "device-modes", "owner and mode of the nodes: whether every user can open them")           \
	X(DEV_CHAR_LINKS, "dev-char-links",                                                                        \
	  "the links `/dev/char/MAJOR:MINOR`, by which runc finds a device for systemd")                           \
	X(DRIVER_LIBRARY, "driver-library", "the driver's libraries: NVML and CUDA")                               \
	X(LIBRARY_VERSIONS, "library-versions", "libraries and kernel module have the same version")               \
	X(LOADER_CACHE, "loader-cache", "`/etc/ld.so.cache` has the libraries")                                    \
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
	X(DISK_SPACE, "disk-space", "file systems that engines write to: space and inodes")                        \
	X(CONFIG, "config", "`config.toml`")                                                                       \
	X(PROGRAMS, "programs", "the programs of the toolkit, and a low-level runtime")                            \
	X(CDI_SPECS, "cdi-specs",                                                                                  \
	  "CDI specs: valid, present where needed, of a version that the engines read, with safe hooks")           \
	X(CDI_STALE, "cdi-stale", "whether everything that CDI specs name still exists")                           \
	X(ENGINES, "engines", "container engines, and their files")                                                \
	X(DOCKER_GPUS, "docker-gpus", "Docker: `--gpus`")                                                          \
	X(DOCKER_RUNTIME, "docker-runtime", "Docker: the runtime `nvidia`, and the GPUs of Swarm services")        \
	X(CONTAINERD_RUNTIME, "containerd-runtime", "containerd, K3s, RKE2, MicroK8s: the runtime `nvidia`")       \
	X(CRIO_RUNTIME, "crio-runtime", "CRI-O: the runtime `nvidia`, or a hook")                                  \
	X(PODMAN, "podman", "Podman: CDI, or a hook")                                                              \
	X(KUBELET, "kubelet", "`doctor kubernetes`: the kubelet, and its socket for device plugins")               \
	X(DEVICE_PLUGIN, "device-plugin",                                                                          \
	  "`doctor kubernetes`: the device plugin: one runs, serves, and the kubelet is connected to it")          \
	X(NODE_CAPACITY, "node-capacity",                                                                          \
	  "`doctor kubernetes`: the devices that the kubelet has on offer, and has given to pods")                 \
	X(RUNTIME_HANDLER, "runtime-handler",                                                                      \
	  "`doctor kubernetes`: whether pods with GPUs find the runtime that they need")                           \
	X(PLUGIN_SPECS, "plugin-specs",                                                                            \
	  "`doctor kubernetes`: the CDI specs of a device plugin that names CDI devices")                          \
	X(GPU_OPERATOR, "gpu-operator",                                                                            \
	  "`doctor kubernetes`: the files by which the GPU Operator's pods wait for each other")                   \
	X(TOOLKIT_OWNER, "toolkit-owner",                                                                          \
	  "`doctor node`: what owns the runtimes of the engines: an installer, a package; two that conflict")      \
	X(NODE_LABELS, "node-labels", "`doctor kubernetes`: the labels of gpu-feature-discovery")                  \
	X(REQUESTED_DEVICES, "requested-devices", "the devices of `--device`")                                     \
	X(REQUIREMENT, "requirement", "the requirement of `--require`")                                            \
	X(IMAGE, "image", "the image of `--image`: libraries of a driver in it")                                   \
	X(CUDA_COMPAT, "cuda-compat", "the image of `--image`: its CUDA compatibility libraries")                  \
	X(UNSEEN, "unseen", "what could not be read")

enum graft_check {
#define X(name, id, what) GRAFT_CHECK_##name,
	GRAFT_CHECK_LIST(X)
#undef X
	    GRAFT_CHECK_MAX
};
extern const char *const graft_check_ids[GRAFT_CHECK_MAX];

#define GRAFT_CUDA_SONAME "libcuda.so.1"

/* Remedies that findings of the host and of a container share. */
#define GRAFT_REMEDY_CUDA                                                                             \
	"Install the driver's compute libraries (Debian: libcuda1; Ubuntu: libnvidia-compute; RHEL: " \
	"nvidia-driver-cuda-libs)."
#define GRAFT_REMEDY_FAILED_GPU "See 'dmesg | grep -iE \"nvrm|xid\"', then power the host off and on."

struct graft_finding {
	enum graft_check check;
	enum graft_level level;
	const char *subject; /* the thing: "/dev/nvidia0", "docker", "8 GPUs" */
	const char *cause;   /* what was found, and why it is wrong */
	const char *remedy;  /* what to do, with the command; NULL if there is nothing to do */
	bool explains;       /* it may be the cause of the message in the question */
};

/* What the user asks about in addition to the state of the host. Everything may be NULL. */
struct graft_doctor_question {
	const char *const *devices; /* as in NVIDIA_VISIBLE_DEVICES, including lists, or qualified CDI names */
	size_t n_devices;
	const char *const *requirements; /* as in NVIDIA_REQUIRE_CUDA */
	size_t n_requirements;
	const char *message; /* printed by an engine or a program */
};

/* A way to a GPU that is set up on this host, whether or not it works. */
struct graft_way {
	const char *engine;     /* name of the engine in the facts */
	const char *command;    /* "docker run --gpus all" */
	enum graft_level level; /* OK, UNKNOWN or BROKEN */
	const char *why;        /* unless OK */
};

#define GRAFT_DIAGNOSIS_VERSION 1u

struct graft_diagnosis {
	uint32_t version;               /* GRAFT_DIAGNOSIS_VERSION, of the JSON form */
	enum graft_level verdict;       /* the worst finding; OK if nothing is worse than UNKNOWN */
	struct graft_finding *findings; /* in the order of the checks */
	size_t n_findings;
	struct graft_way *ways; /* in the order of the engines */
	size_t n_ways;
	/*
	 * The usual cause and remedy of the message in the question; NULL = unknown, or no message.
	 */
	const char *message, *message_remedy;
	bool simulated; /* the driver is Graft's simulated one: there is no GPU */
};

extern const struct graft_record graft_diagnosis_record;

/*
 * Finds the engine that reads CDI specs by itself, and of those whose version is known the one that
 * reads the oldest specs. Returns its row, and the engine in *ret_engine; NULL if there is none, or
 * all of them read whatever this toolkit writes.
 */
const struct graft_cdi_reader *graft_doctor_oldest_reader(const struct graft_health *health,
							  const struct graft_health_engine **ret_engine);

/*
 * Judges the facts. All text is in the arena or belongs to the facts. Fails with GRAFT_NO_MEMORY.
 */
int graft_doctor_judge(const struct graft_health *health, const struct graft_doctor_question *question,
		       struct graft_arena *arena, struct graft_diagnosis *ret_diagnosis, struct graft_error *err);

/*
 * Extracts the device and the requirement from an error message: "device error: GPU-x: unknown
 * device" contains the former, "unsatisfied condition: cuda>=12.4" the latter. *ret_device and
 * *ret_requirement are NULL if absent; the strings are in the arena.
 */
void graft_doctor_read_message(const char *message, struct graft_arena *arena, const char **ret_device,
			       const char **ret_requirement);
/*
 * Whether the message comes from Kubernetes, so that its cause can be found among the facts about
 * the node.
 */
bool graft_doctor_is_of_cluster(const char *message);

#endif
