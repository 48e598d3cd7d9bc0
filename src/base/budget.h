/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget: limits the processor time that a program may spend on data from an image or a
 * specification. There is one budget for each start of a container. Every lookup below an image's
 * root and every loop over data from there checks it. Once it is spent, it stays spent.
 *
 * The time is that of this process and of the readers that it has started (image/reader.h), user
 * and system time together. Waiting for slow storage costs nothing.
 */
#ifndef GRAFT_BASE_BUDGET_H
#define GRAFT_BASE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * 2 s altogether for a start of nvidia-container-runtime and a hook, one of which applies edits and
 * may have to undo them. Further hooks of the same container use what the first has left of its
 * time, or a little (cli/cdi_hook/earlier_hooks.c): four of them fit into the 2 s.
 */
#if defined(__SANITIZE_ADDRESS__)
#define GRAFT_BUDGET_CPU_MS   12000
#define GRAFT_BUDGET_LEAST_MS 2000
#define GRAFT_BUDGET_UNDO_MS  4000
#define GRAFT_BUDGET_EDIT_MS  80
#define GRAFT_BUDGET_EDITS_MS 4000
#else
#define GRAFT_BUDGET_CPU_MS   600
#define GRAFT_BUDGET_LEAST_MS 100 /* however much earlier hooks used: they may be another vendor's */
#define GRAFT_BUDGET_UNDO_MS  200
#define GRAFT_BUDGET_EDIT_MS  1   /* extra time for each edit of a plan: the host determines their number */
#define GRAFT_BUDGET_EDITS_MS 200 /* extra time for all edits */
#endif

struct graft_budget;

/* Returns a new budget of `cpu_ms` milliseconds from now on, or NULL. */
struct graft_budget *graft_budget_new(int64_t cpu_ms);
/* Ends and reaps a reader that still exists. NULL is allowed. Always returns NULL. */
struct graft_budget *graft_budget_free(struct graft_budget *budget);

/*
 * Returns whether the budget is spent. Looks at the processor time only every few milliseconds,
 * which is also what a single lookup below a root costs at most.
 */
bool graft_budget_is_spent(struct graft_budget *budget);
/*
 * Adds time for work whose amount only the host determines, but not more than `max_ms` in all. A
 * spent budget stays spent.
 */
void graft_budget_extend(struct graft_budget *budget, int64_t cpu_ms, int64_t max_ms);
/*
 * Deducts what other processes of the same start have used already, so that at least `least_ms` of
 * a new budget remain. Only the first call counts.
 */
void graft_budget_share(struct graft_budget *budget, int64_t used_ms, int64_t least_ms);
/* Returns the milliseconds left, at least 0. */
int64_t graft_budget_left_ms(struct graft_budget *budget);

/* A child that works for a budget and answers questions about one directory of one mount. */
struct graft_budget_child {
	pid_t pid;
	int fd; /* our end of the connection; owned */
	int64_t allowed_ms;
	dev_t dev; /* the directory */
	ino_t inode;
	uint64_t mount_id;
};

/*
 * Registers a child that has begun to work for this process, and ends the previous one. The child's
 * whole allowance is deducted at once. What it did not use comes back when it is ended, also where
 * SIGCHLD is ignored, but not if it ended before it was dismissed and other code reaps it.
 */
void graft_budget_add_child(struct graft_budget *budget, const struct graft_budget_child *child);
/* Returns the child that works for this very process, or NULL. */
const struct graft_budget_child *graft_budget_child(const struct graft_budget *budget);
/*
 * Adds the time that a child was waited for, and returns how much of `max_ms` is left for all
 * answers. Waiting takes no processor time, so nothing else limits it.
 */
int64_t graft_budget_wait_ms(struct graft_budget *budget, int64_t more_ms, int64_t max_ms);
/* Closes the connection, which makes the child exit. Does not wait for it. */
void graft_budget_dismiss_child(struct graft_budget *budget);
/*
 * Closes the connection, kills the child if it still runs, and reaps it. Returns true if it used up
 * its whole allowance, or that is unknown, as of a child that does not end within 2 s.
 */
bool graft_budget_end_child(struct graft_budget *budget);
/*
 * In a new child: starts a budget of `left_ms`, the result of graft_budget_left_ms() before the
 * fork, on the child's own clock.
 */
void graft_budget_become_child(struct graft_budget *budget, int64_t left_ms);

#endif
