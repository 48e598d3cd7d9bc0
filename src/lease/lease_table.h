/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_table: the directory that records who holds what: a file in held/ for each lease, and in
 * queue/ for each waiting process, written under a new name and renamed. Readers need no lock.
 * Writers hold the lock for as long as it takes to read the leases and write one, and never while
 * they wait for something else.
 *
 * SECURITY: only the directory's owner, root, may write there, and only root may open the lock: a
 * process that can open it can hold it.
 */
#ifndef GRAFT_LEASE_LEASE_TABLE_H
#define GRAFT_LEASE_LEASE_TABLE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/log.h"
#include "base/root.h"
#include "lease/lease.h"
#include "lease/lease_alive.h"

#define GRAFT_LEASE_LOCK_MS 5000

/* A file of the table that is not a lease. As long as it exists, nothing is lent. */
struct graft_lease_damage {
	const char *name;
	const char *why;
};

struct graft_lease_table {
	const char *directory;
	struct graft_root root; /* the directory; its fd is -1 if there is none */
	int lock_fd;            /* -1: only for reading */
	int64_t lock_wait_us;   /* how long others held the lock */
	bool hurries;           /* runs at a higher priority while it holds the lock */
	int priority;
	struct graft_lease_now now;
	struct graft_lease *leases; /* that count */
	size_t n_leases;
	struct graft_lease *tickets; /* of processes that wait, and live */
	size_t n_tickets;
	struct graft_lease_damage *damages;
	size_t n_damages;
	struct graft_buffer events; /* to be logged when the table is closed */
	struct graft_arena *arena;  /* borrowed */
};
#define GRAFT_LEASE_TABLE_INIT                                                      \
	{                                                                           \
		.root = GRAFT_ROOT_INIT, .lock_fd = -1, .now = GRAFT_LEASE_NOW_INIT \
	}

/*
 * Opens the table and reads the leases that count. With `change`, creates a missing table, takes
 * the lock and removes what no longer counts. Close it in either case. Returns -1 with GRAFT_LEASES
 * or the like; with GRAFT_PERMISSION if only root can.
 */
int graft_lease_table_open(struct graft_lease_table *table, const char *directory, bool change,
			   struct graft_arena *arena, struct graft_error *err);
/*
 * Whether this is root in the initial user namespace: root of another one may not change root's
 * table.
 */
bool graft_lease_table_is_root(void);
/* Fails with GRAFT_PERMISSION: this process may not change the table. Returns -1. */
int graft_lease_table_fail_permission(const char *directory, struct graft_error *err);
/* Logs the events and releases the lock. What was read stays valid, but nothing can be changed. */
void graft_lease_table_unlock(struct graft_lease_table *table);
/* The same, and closes the table. */
void graft_lease_table_close(struct graft_lease_table *table);
#define auto_lease_table __attribute__((cleanup(graft_lease_table_close)))

/* Returns -1 with GRAFT_LEASES, naming the first of the damaged files, if there are any. */
int graft_lease_table_check(const struct graft_lease_table *table, struct graft_error *err);
/* Writes a new lease. Returns -1 if it is not in the table: then nothing was lent. */
int graft_lease_table_add(struct graft_lease_table *table, const struct graft_lease *lease, struct graft_error *err);
/* Writes a changed lease of the table again, under the same id. */
int graft_lease_table_renew(struct graft_lease_table *table, const struct graft_lease *lease, struct graft_error *err);
/* Removes a lease. `event` and `why` are logged. */
int graft_lease_table_remove(struct graft_lease_table *table, const struct graft_lease *lease, const char *event,
			     const char *why, struct graft_error *err);
/*
 * Write a ticket, which is a lease without slots; remove one, if it exists. `why` is logged, which
 * wakes the waiters; NULL: it has got its lease. The next change removes damaged files of the
 * queue: only an order is lost.
 */
int graft_lease_table_queue(struct graft_lease_table *table, const struct graft_lease *ticket, struct graft_error *err);
void graft_lease_table_unqueue(struct graft_lease_table *table, const struct graft_lease *ticket, const char *why);
/*
 * Makes the file that each change touches, if it is missing. Returns its path; NULL: out of memory.
 */
const char *graft_lease_table_event(const struct graft_lease_table *table);
/* Removes a damaged file. */
int graft_lease_table_repair(struct graft_lease_table *table, const struct graft_lease_damage *damage,
			     struct graft_error *err);
/* Returns the lease with that id, or NULL. */
const struct graft_lease *graft_lease_table_find(const struct graft_lease_table *table, const char *id);

#endif
