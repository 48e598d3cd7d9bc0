/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan: the ordered list of edits that gives one container its GPUs. Plain data with a JSON form.
 *
 * Invariants: edits are in application order; every edit has a reason; nothing in the plan needs
 * another decision, the host, or the request. All memory belongs to the arena. A sink (apply/) sees
 * the plan and nothing else.
 */
/*
 * In a plan of style OCI (plan/planner.h), each DEVICE is followed by its CGROUP, and there is no
 * other CGROUP. For edits that a low-level runtime can apply itself (DEVICE, CGROUP, BIND, ENV),
 * the mode of a mount point and the flags of a device have no meaning. SYMLINK, FILE, DIRECTORY,
 * COVER and LDCACHE are for the root or a hook, in their order. There is no TMPFS.
 */
#ifndef GRAFT_PLAN_PLAN_H
#define GRAFT_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "formats/loader/ldcache.h"
#include "formats/record.h"

#define GRAFT_PLAN_VERSION 1u

/* Identifier, name, meaning. Sinks switch over the enum without a default. */
#define GRAFT_EDIT_LIST(X)                                                                                             \
	X(DIRECTORY, "directory", "make a directory at target with mode")                                              \
	X(TMPFS, "tmpfs",                                                                                              \
	  "mount an empty tmpfs (root mode) at target with flags; what follows below it is written there")             \
	X(FILE, "file", "write content to a new file at target with mode")                                             \
	X(BIND, "bind", "bind-mount the host's source (file, directory or socket: type) at target with flags")         \
	X(DEVICE, "device", "make the host's device node source (major:minor) visible at target with flags")           \
	X(SYMLINK, "symlink", "make a symbolic link at target to content")                                             \
	X(CGROUP, "cgroup", "allow access to character device major:minor")                                            \
	X(COVER, "cover", "bind-mount a private read-only file with content over the file at target, if there is one") \
	X(LDCACHE, "ldcache", "add entries to the loader's cache; folders are their directories")                      \
	X(ENV, "env", "set environment variable target to content (sinks that own the environment)")

enum graft_edit_kind {
#define X(name, word, meaning) GRAFT_EDIT_##name,
	GRAFT_EDIT_LIST(X)
#undef X
	    GRAFT_EDIT_MAX
};
extern const char *const graft_edit_names[GRAFT_EDIT_MAX];

/*
 * Bits of graft_edit.flags, which apply to a mount. Existing flags of the source are never cleared.
 */
enum graft_mount_flag {
	GRAFT_MOUNT_RDONLY = 1u << 0,
	GRAFT_MOUNT_NOSUID = 1u << 1,
	GRAFT_MOUNT_NODEV = 1u << 2,
	GRAFT_MOUNT_NOEXEC = 1u << 3,
	GRAFT_MOUNT_RECURSIVE =
	    1u << 4, /* BIND: with what is mounted below the source; other flags are for all, BASELINE 5.12 */
};
extern const char *const graft_mount_flag_names[5]; /* ro nosuid nodev noexec recursive, by bit number */

enum graft_source_type { GRAFT_SOURCE_FILE, GRAFT_SOURCE_DIRECTORY, GRAFT_SOURCE_SOCKET };
extern const char *const graft_source_type_names[3];

/* What a SYMLINK does if something exists at its target. */
enum graft_conflict {
	GRAFT_CONFLICT_KEEP,      /* leave whatever exists (SPEC libnvidia-container 9.5) */
	GRAFT_CONFLICT_REPLACE,   /* correct an existing link; bind `source` over an existing file (soname links) */
	GRAFT_CONFLICT_OVERWRITE, /* replace any link or file; a directory is an error */
};
extern const char *const graft_conflict_names[3];

struct graft_edit {
	enum graft_edit_kind kind;
	const char *source;  /* host path with the driver root's prefix (BIND, DEVICE, SYMLINK with REPLACE) */
	const char *target;  /* path in the container; ENV: the name */
	const char *content; /* FILE, COVER: text; SYMLINK: the link's target; ENV: value */
	enum graft_source_type type;
	enum graft_conflict conflict;
	/*
	 * Permission bits (DIRECTORY, TMPFS, FILE, COVER; DEVICE: the node's; BIND: for a mount
	 * point that must be made)
	 */
	uint32_t mode;
	/*
	 * GRAFT_MOUNT_* (TMPFS, BIND, COVER, DEVICE; SYMLINK with REPLACE: for the bind over an
	 * existing file)
	 */
	uint32_t flags;
	uint32_t major, minor; /* DEVICE, CGROUP */
	uint32_t uid, gid;     /* DEVICE: owner of the host's node */
	const char *access;    /* CGROUP: "rw"; "rwm" if the low-level runtime makes the nodes (style OCI) */
	const char **folders;  /* LDCACHE: directories of the entries, in search order */
	size_t n_folders;
	const char **missing_folders; /* LDCACHE: the `folders` that the image's own configuration does not search */
	size_t n_missing_folders;
	struct graft_ldcache_entry *entries; /* LDCACHE: the first match is used */
	size_t n_entries;
	const char *musl_path_file; /* LDCACHE, for musl images: file with the search path ... */
	const char *musl_path;      /* ... and its complete new text */
	/*
	 * BIND: a source that has disappeared is skipped with a warning; DEVICE (style OCI): the
	 * host does not have it yet
	 */
	bool optional;
	/*
	 * The container does without it (plan/dispensable.h): an edit that cannot be made is left
	 * out with a warning, and nothing of it stays
	 */
	bool dispensable;
	const char *rule; /* stable name of the rule that made it, e.g. "library", "soname-link" */
	const char *why;  /* a sentence for a person */
};

/* Something requested, or present on the host, that the container does not get, and why. */
struct graft_refusal {
	const char *what;
	const char *why;
};

/* A GPU (or MIG device) that the container gets. */
struct graft_grant {
	const char *uuid; /* NULL if only NVML knows it */
	const char *bus_id;
	uint32_t index, minor;
	bool mig;
	uint32_t mig_index, gi, ci;
	const char *model;
};

struct graft_plan {
	uint32_t version; /* GRAFT_PLAN_VERSION */
	const char *driver_version;
	bool simulated;
	struct graft_grant *grants;
	size_t n_grants;
	struct graft_edit *edits;
	size_t n_edits;
	struct graft_refusal *refusals;
	size_t n_refusals;
	struct graft_refusal *missing; /* asked for, but the host lacks it: programs will fail */
	size_t n_missing;
	const char *late_mounts;   /* files that wait until the container is created, and why others do not; or NULL */
	struct graft_arena *arena; /* owned; not part of the JSON form */
};

extern const struct graft_record graft_plan_record, graft_edit_record;

/* Returns an empty plan in its own arena, or NULL if memory is exhausted. */
struct graft_plan *graft_plan_new(void);
/* Frees a plan and its arena; NULL is allowed. Returns NULL. */
struct graft_plan *graft_plan_free(struct graft_plan *plan);
/* Whether the edit mounts a directory of the host, and whether one of a plan's does. */
bool graft_edit_mounts_directory(const struct graft_edit *edit);
bool graft_plan_mounts_directory(const struct graft_plan *plan);
/*
 * Whether the edit mounts a directory that may have libraries: one of a CSV file or a
 * specification, with what is mounted in it. Those of the driver, firmware and sockets, have none.
 */
bool graft_edit_mounts_libraries(const struct graft_edit *edit);
/* Returns the first edit of a kind, or NULL. */
const struct graft_edit *graft_plan_find(const struct graft_plan *plan, enum graft_edit_kind kind);
/* Appends the JSON form; equal values give equal bytes. */
void graft_plan_write(const struct graft_plan *plan, struct graft_buffer *out);
/*
 * Reads the JSON form back; the caller frees the plan. Returns -1 with GRAFT_FORMAT, GRAFT_TOO_BIG,
 * GRAFT_UNSUPPORTED (another version) or GRAFT_NO_MEMORY, and then does not set *ret_plan.
 */
int graft_plan_read(const char *json, size_t length, struct graft_plan **ret_plan, struct graft_error *err);

/*
 * Returns the edits of `after` that are not in `before` (NULL = an empty plan), in their order.
 * Edits are equal if everything that is applied is equal; their reasons are ignored. Release the
 * new plan with graft_plan_free(); its strings are those of `after`, which must outlive it. Pure.
 * Returns -1 with GRAFT_NO_MEMORY.
 */
int graft_plan_difference(const struct graft_plan *before, const struct graft_plan *after, struct graft_plan **ret_plan,
			  struct graft_error *err);

/*
 * Returns the plan without its links and files in `directories` (as the plan spells them), with a
 * refusal that explains each, and without the loader's cache if /etc is among them. Cache entries
 * that refer to a dropped link refer to its file instead. Returns the plan itself if nothing is
 * dropped, otherwise a plan in `arena` that points into it, or NULL if memory is exhausted.
 */
const struct graft_plan *graft_plan_without(const struct graft_plan *plan, const char *const *directories, size_t n,
					    struct graft_arena *arena);

#endif
