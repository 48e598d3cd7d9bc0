/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_case: why one container of this host has its GPUs or lacks them: what it asked for, in
 * which way it was to get that, what it got, and what has changed since. Plain data with a JSON
 * form; docs/doctor-container.md describes it.
 *
 * look_container.c fills in the facts; judge_container.c, which looks at nothing, adds findings and
 * the verdict.
 */
#ifndef GRAFT_DOCTOR_CONTAINER_CASE_H
#define GRAFT_DOCTOR_CONTAINER_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apply/cgroup/cgroup.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "doctor/container_find.h"
#include "doctor/facts.h"
#include "doctor/judge.h"
#include "formats/record.h"
#include "request/config.h"

#define GRAFT_CASE_VERSION 1u

/* How GPUs come to the container. */
#define GRAFT_CASE_WAY_LIST(X)                                                                       \
	X(UNKNOWN, "unknown") /* its config.json cannot be read, or no longer exists */              \
	X(NONE, "none")       /* nothing in its start could give it GPUs */                          \
	X(RUNTIME, "runtime") /* nvidia-container-runtime edited its config.json */                  \
	X(HOOK, "hook")       /* a prestart hook; also of nvidia-container-runtime in mode legacy */ \
	X(CDI, "cdi")         /* the engine itself, from CDI specs */                                \
	X(DEVICES, "devices") /* single nodes, as with --device, without the driver's files */

enum graft_case_way {
#define X(name, word) GRAFT_CASE_WAY_##name,
	GRAFT_CASE_WAY_LIST(X)
#undef X
	    GRAFT_CASE_WAY_MAX
};
extern const char *const graft_case_way_names[GRAFT_CASE_WAY_MAX];

/* What it asked for. */
struct graft_case_request {
	bool known;          /* it is known what it asked for */
	bool configured;     /* its config.json could be read */
	const char *problem; /* why not; NULL if it could */
	bool wants;          /* it asks for GPUs in a way that counts */
	/*
	 * The runtime has replaced NVIDIA_VISIBLE_DEVICES by "void": its value is no longer known.
	 */
	bool replaced;
	const char *origin;   /* a variable's name, "annotations", "volume mounts"; NULL = it asks for nothing */
	const char **devices; /* names asked for, as far as known */
	size_t n_devices;
	const char *ignored; /* the variable that asks, but does not count; NULL = none */
	bool privileged;
	const char **variables; /* "NVIDIA_*=VALUE" */
	size_t n_variables;
	const char **annotations; /* "KEY=VALUE" of CDI and NVIDIA */
	size_t n_annotations;
	const char **mounts; /* destinations of mounts that name devices */
	size_t n_mounts;
	const char **options; /* of the engine: "--gpus all", "--device nvidia.com/gpu=0" */
	size_t n_options;
	const char **nodes; /* paths of GPU nodes in linux.devices */
	size_t n_nodes;
	const char **hooks; /* "prestart /usr/bin/nvidia-container-runtime-hook" */
	size_t n_hooks;
	uint32_t n_driver_mounts; /* mounts of the driver's libraries in config.json */
};

extern const char *const graft_device_answer_names[3]; /* unknown allowed denied */

/* A device node of the driver that the container has, or should have got. */
struct graft_case_node {
	const char *path;
	bool present; /* in the container */
	uint32_t major, minor;
	bool on_host; /* at the same path of the host */
	uint32_t host_major, host_minor;
	bool has_link;                   /* the host has /dev/char/MAJOR:MINOR, by which systemd knows it */
	enum graft_device_answer answer; /* answer of the device cgroup to reading and writing */
	const char *gpu;                 /* UUID or PCI address of the host's GPU with this node; NULL = none */
	bool gpu_lost;                   /* that GPU no longer answers on the PCI bus */
};

/* A library of the driver that was mounted into the container. */
struct graft_case_library {
	const char *path;
	const char *version;
	bool deleted;       /* its file no longer exists on the host: the driver was replaced */
	const char *soname; /* name that programs ask the loader for */
	bool linked;        /* that name leads to it, in the same directory */
	bool cached;        /* /etc/ld.so.cache has that name */
};

struct graft_case_got {
	bool known;          /* the container runs and could be examined */
	const char *problem; /* why it was not examined */
	struct graft_case_node *nodes;
	size_t n_nodes;
	struct graft_case_library *libraries;
	size_t n_libraries;
	bool has_cache;            /* it has an /etc/ld.so.cache, and that could be opened */
	const char *cache_problem; /* why the cache cannot be used; NULL = it can */
	uint32_t cgroup_version;   /* 0 = unknown */
	const char *cgroup;        /* directory of the device cgroup */
	const char *cgroup_problem;
	bool scope; /* the cgroup is a systemd scope */
};

enum graft_case_check {
	GRAFT_CASE_REQUEST,
	GRAFT_CASE_WAY,
	GRAFT_CASE_RUNNING,
	GRAFT_CASE_DRIVER,
	GRAFT_CASE_DEVICES,
	GRAFT_CASE_NODES,
	GRAFT_CASE_RULES,
	GRAFT_CASE_LIBRARIES,
	GRAFT_CASE_VERSIONS,
	GRAFT_CASE_LOADER_CACHE,
	GRAFT_CASE_LINKS,
	GRAFT_CASE_CHECK_MAX,
};
extern const char *const graft_case_check_ids[GRAFT_CASE_CHECK_MAX];

struct graft_case_finding {
	enum graft_case_check check;
	enum graft_level level;
	const char *cause;
	const char *remedy; /* NULL if there is nothing to do */
};

struct graft_case {
	uint32_t version; /* GRAFT_CASE_VERSION, of the JSON form */
	enum graft_level verdict;
	const char *summary; /* one sentence: the verdict */
	const char *remedy;  /* what to do about it; NULL = nothing */
	enum graft_keeper engine;
	const char *id, *name, *pod, *bundle, *runtime; /* NULL = unknown */
	uint32_t pid;                                   /* 0 = it does not run */
	const char
	    *start_error; /* of a container that does not run: why its last start failed; NULL = it did not fail */
	enum graft_case_way way;
	const char *mode; /* of nvidia-container-runtime or its hook; NULL = neither was involved */
	/*
	 * The files that nvidia-container-runtime or a hook of a CDI spec mounted, not the
	 * low-level runtime, and why others were not; NULL = none, or not known
	 */
	const char *late_mounts;
	struct graft_case_request asked;
	struct graft_case_got got;
	const char *driver_version; /* of the loaded module; NULL = none is loaded */
	struct graft_case_finding *findings;
	size_t n_findings;
};
extern const struct graft_record graft_case_record;

struct graft_case_options {
	const char *host_root;             /* NULL = "/"; tests have their own */
	const char *word;                  /* as in graft_container_find() */
	const struct graft_health *health; /* of the host; NVML need not have been asked */
	const struct graft_config *config;
};

/*
 * Finds the container and collects the facts. Strings are in the arena or belong to the options.
 * Fails like graft_container_find(), or with GRAFT_NO_MEMORY; what cannot be examined is itself
 * recorded as a fact.
 */
int graft_case_collect(const struct graft_case_options *options, struct graft_arena *arena, struct graft_case *ret_case,
		       struct graft_error *err);
/*
 * Adds the findings, the verdict and its summary; `health` is that of the collection. Pure. Fails
 * with GRAFT_NO_MEMORY.
 */
int graft_case_judge(const struct graft_health *health, struct graft_arena *arena, struct graft_case *one,
		     struct graft_error *err);

#endif
