/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_find: finds a container of a host by its ID, name, process or bundle, in the files of
 * the engines and low-level runtimes and in procfs. Starts no program, connects to no socket,
 * changes nothing.
 *
 *   engines             where
 *   Docker              containers/ID/config.v2.json and hostconfig.json below its data root
 *   Podman, CRI-O       containers.json of containers/storage, conmon's command line
 *   containerd, CRI     bundles below its state directory, the command line of its shims
 *   runc, crun          state.json or status below /run/runc, /run/crun and those of users
 *
 * Facts about one container from several of them are merged by its ID.
 */
#ifndef GRAFT_DOCTOR_CONTAINER_FIND_H
#define GRAFT_DOCTOR_CONTAINER_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/root.h"

/* In ascending order: an engine knows more about its container than the runtime below it. */
enum graft_keeper {
	GRAFT_KEEPER_UNKNOWN, /* a process in namespaces of its own that is not in any engine's files */
	GRAFT_KEEPER_RUNC,
	GRAFT_KEEPER_CRUN,
	GRAFT_KEEPER_CONTAINERD,
	GRAFT_KEEPER_KUBERNETES, /* containerd, by its CRI */
	GRAFT_KEEPER_CRIO,
	GRAFT_KEEPER_PODMAN,
	GRAFT_KEEPER_DOCKER,
	GRAFT_KEEPER_MAX,
};
extern const char *const graft_keeper_names[GRAFT_KEEPER_MAX];

/* Strings are in the arena; NULL = unknown. */
struct graft_found_container {
	enum graft_keeper keeper;
	const char *id;
	const char *name;
	const char *pod;      /* Kubernetes: of the container */
	const char *bundle;   /* directory of config.json */
	const char *runtime;  /* program, or the engine's name for it: "runc", "nvidia" */
	const char *settings; /* Docker: directory of config.v2.json */
	int64_t pid;          /* of its first process; 0 = it does not run */
};

/*
 * Finds the container that `word` names: a full ID or name, the beginning of an ID, a process ID,
 * or, if it has a slash, a bundle. `host` is the host's "/". Returns 0, or -1 with GRAFT_NOT_FOUND
 * (with similar names), GRAFT_INVALID (several containers are meant, or the process is in none),
 * GRAFT_PERMISSION (this user cannot see the engines' files) or GRAFT_NO_MEMORY.
 */
int graft_container_find(const struct graft_root *host, const char *word, struct graft_arena *arena,
			 struct graft_found_container *ret_container, struct graft_error *err);

#endif
