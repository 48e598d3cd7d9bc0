/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease: who holds which GPUs, as plain data with a JSON form: the content of a file of the table.
 * A lease counts while its holder exists (lease/lease_alive.h).
 */
#ifndef GRAFT_LEASE_LEASE_H
#define GRAFT_LEASE_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "formats/record.h"

#define GRAFT_LEASE_BYTES_MAX ((size_t)16 * 1024)
#define GRAFT_LEASE_SLOTS_MAX 64u
#define GRAFT_LEASE_OF_POD    "kubernetes" /* the claim of a pod's lease, which the device plugin writes */
#define GRAFT_LEASE_REPLICAS  48u          /* limit on slots of a GPU: MPS serves no more clients */

/* What is lent: a GPU, a MIG device of it, or a slot of a GPU that several share. */
struct graft_lease_slot {
	const char *gpu;  /* UUID */
	const char *mig;  /* UUID; NULL = the whole GPU */
	uint32_t replica; /* the number of a slot of a GPU that is shared, from 1; 0 = not shared */
};

/* What keeps a lease alive: always a living process, and what the kind names. */
enum graft_holder_kind {
	GRAFT_HOLDER_CGROUP,   /* a cgroup with processes */
	GRAFT_HOLDER_PROCESS,  /* nothing else */
	GRAFT_HOLDER_PID_FILE, /* the process that the file names */
	GRAFT_HOLDER_TOKEN,    /* time, until it is over or the lease is released; no process */
};

struct graft_lease_holder {
	enum graft_holder_kind kind;
	uint32_t pid;           /* of the process; while a container is being made, that of its maker */
	uint64_t start_time;    /* of that process, in clock ticks since the host started */
	uint64_t pid_namespace; /* inode; pid and start_time are valid only there */
	uint64_t clock;         /* inode of the time namespace, likewise; 0: the first one */
	uint32_t cgroup_version;
	const char *cgroup_mount; /* where the hierarchy is mounted */
	uint64_t cgroup_root;     /* inode of that; 0 = not known */
	const char *cgroup;       /* below it, "/docker/3f2a"; never "/" */
	uint64_t cgroup_id;       /* inode; 0 = the cgroup did not exist yet */
	const char *pid_file;     /* absolute */
	const char *container;    /* its id; NULL = none */
};

struct graft_lease {
	const char *id;   /* graft_lease_id_is_valid() */
	const char *boot; /* boot id of the host on which it was taken */
	struct graft_lease_slot *slots;
	size_t n_slots;    /* 0: a ticket of a process that waits for a lease */
	const char *claim; /* as graft_claim_write() writes it */
	const char *of;    /* id of the lease with which it shares these slots; NULL = none */
	struct graft_lease_holder holder;
	uint32_t uid;      /* of the owner */
	const char *owner; /* the owner's name, which counts instead of the uid; NULL = none */
	bool urgent;       /* of a ticket: it goes before others */
	bool has_user;
	uint32_t user;          /* the user as whom its programs run */
	uint32_t limit_mib;     /* memory of a shared GPU that a program may use; 0 = its slot's share */
	uint32_t limit_percent; /* likewise, percentage of the multiprocessors */
	const char *what;       /* its purpose: an image or a command; printable; NULL = unknown */
	uint64_t since;         /* milliseconds since the host started, including those asleep */
	uint64_t until;         /* likewise: a token's end; when others are expected to end; 0 = not known */
	int64_t date;           /* when it was taken, in seconds since 1970 */
};
extern const struct graft_record graft_lease_record;

/*
 * Reads a lease and checks all of it: strings that people or programs will see consist of harmless
 * characters, and the holder is complete. Strings are in the arena. Returns -1 with GRAFT_FORMAT,
 * GRAFT_TOO_BIG or GRAFT_NO_MEMORY.
 */
int graft_lease_parse(const char *text, size_t length, struct graft_arena *arena, struct graft_lease *ret_lease,
		      struct graft_error *err);
/* Checks a lease that was read in another way. Returns the invalid member, or NULL. */
const char *graft_lease_check(const struct graft_lease *lease);
/* Appends the JSON form. */
void graft_lease_write(const struct graft_lease *lease, struct graft_buffer *out);

/* Returns whether a lease can record the path: absolute, printable ASCII, up to 4096 letters. */
bool graft_lease_path_is_valid(const char *path);

/* Returns whether the lease belongs to a pod. These leases do not count for any user. */
bool graft_lease_is_of_pod(const struct graft_lease *lease);

/*
 * Returns whether a text is a valid name of an owner: up to 32 letters, digits, '.', '-', '_' and
 * '@', beginning with a letter, and not "default".
 */
bool graft_lease_owner_is_valid(const char *text);
/* Returns whether two leases or tickets count for the same owner. */
bool graft_lease_has_same_owner(const struct graft_lease *a, const struct graft_lease *b);
/* Appends the owner: "anna", "uid 1000". */
void graft_lease_add_owner(const struct graft_lease *lease, struct graft_buffer *out);

/* Makes a new id. NULL: out of memory, or no random bytes. */
const char *graft_lease_new_id(struct graft_arena *arena);
/*
 * Returns a harmless form of a text from an image or a command line: its first 64 characters, with
 * '?' for everything that is not printable ASCII. NULL for NULL, or out of memory.
 */
const char *graft_lease_label(const char *text, struct graft_arena *arena);
/*
 * Appends the holder of the lease, and how long it still needs the lease, if that is known: "uid
 * 1000 (container 3f2a91c0d1e2, 2 h, 4 h left)". `now` as `since`.
 */
void graft_lease_describe(const struct graft_lease *lease, uint64_t now, struct graft_buffer *out);
/* Appends a span of time in the largest unit that fits: "5 s", "3 min", "2 h", "4 d". */
void graft_lease_add_span(uint64_t ms, struct graft_buffer *out);

#endif
