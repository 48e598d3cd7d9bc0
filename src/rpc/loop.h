/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop: the event loop of a daemon: descriptors and timers, one thread, poll(2).
 *
 * Watches and timers are members of the objects that they serve, and the loop links them; it owns
 * none of them. A callback may add, change and remove any watch or timer, its own included, and may
 * free the object that it belongs to after removing it. Nothing wakes the process when nothing
 * happens.
 */
#ifndef GRAFT_RPC_LOOP_H
#define GRAFT_RPC_LOOP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct graft_loop_watch {
	int fd;       /* borrowed, unless the owner says otherwise */
	short events; /* of poll(2); may be changed at any time; 0: errors and hang-ups only */
	void (*ready)(void *arg, short events);
	void *arg;
	size_t place; /* the loop's own: position in its list, counted from 1; 0 = not watched */
};

struct graft_loop_timer {
	void (*due)(void *arg); /* called once; the timer is cleared by then */
	void *arg;
	int64_t at_ms;                  /* graft_clock_ms(); valid if it is set */
	struct graft_loop_timer **link; /* the loop's own; NULL = not set */
	struct graft_loop_timer *next;
};

struct graft_loop {
	struct graft_loop_watch **watches;
	struct pollfd *polled;
	size_t n_watches, capacity;
	struct graft_loop_timer *timers;
	bool stopped;
};

/* Frees the loop's lists. Remaining watches and timers are forgotten. */
void graft_loop_done(struct graft_loop *loop);
#define auto_loop __attribute__((cleanup(graft_loop_done)))

/*
 * Watches `watch->fd`. Returns 0, or -1 with GRAFT_NO_MEMORY. Watching twice is a mistake of the
 * caller.
 */
int graft_loop_watch(struct graft_loop *loop, struct graft_loop_watch *watch, struct graft_error *err);
/* Stops watching. Does nothing if the watch is not watched. */
void graft_loop_forget(struct graft_loop *loop, struct graft_loop_watch *watch);
/* The same, and closes the descriptor, which becomes -1; -1 is allowed. */
void graft_loop_close(struct graft_loop *loop, struct graft_loop_watch *watch);

/* Sets the timer, or changes it, to be due in `delay_ms`. Cannot fail. */
void graft_loop_set_timer(struct graft_loop *loop, struct graft_loop_timer *timer, int64_t delay_ms);
/* Clears the timer. Does nothing if it is not set. */
void graft_loop_clear_timer(struct graft_loop_timer *timer);

/*
 * Waits for at most `timeout_ms` (-1: without limit) until something happens, and makes the
 * callbacks. Returns 0, or -1 with GRAFT_IO if poll(2) fails.
 */
int graft_loop_turn(struct graft_loop *loop, int timeout_ms, struct graft_error *err);
/* Runs turns until graft_loop_stop(). */
int graft_loop_run(struct graft_loop *loop, struct graft_error *err);
/* Ends graft_loop_run() after the current turn. */
void graft_loop_stop(struct graft_loop *loop);

/* Returns the next delay of a retry after `delay_ms`: twice as long, within both limits. */
static inline int64_t graft_loop_next_delay(int64_t delay_ms, int64_t first_ms, int64_t last_ms)
{
	int64_t next_ms = delay_ms > 0 ? delay_ms * 2 : first_ms;

	return next_ms < last_ms ? next_ms : last_ms;
}

#endif
