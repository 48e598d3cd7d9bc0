/* SPDX-License-Identifier: Apache-2.0 */
/* loop: poll(2) over a list of descriptors, and timers. Does not know what they are for. */
#include "rpc/loop.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"

void graft_loop_done(struct graft_loop *loop)
{
	for (size_t i = 0; i < loop->n_watches; i++)
		loop->watches[i]->place = 0;
	while (loop->timers)
		graft_loop_clear_timer(loop->timers);
	free(loop->watches);
	free(loop->polled);
	*loop = (struct graft_loop){ .n_watches = 0 };
}

/* Grows both lists, so that a turn needs no memory. */
static int grow_lists(struct graft_loop *loop)
{
	size_t capacity = loop->capacity ? loop->capacity * 2 : 16;
	struct graft_loop_watch **watches = reallocarray(loop->watches, capacity, sizeof(struct graft_loop_watch *));
	struct pollfd *polled;

	if (!watches)
		return -1;
	loop->watches = watches;
	polled = reallocarray(loop->polled, capacity, sizeof(*polled));
	if (!polled)
		return -1;
	loop->polled = polled;
	loop->capacity = capacity;
	return 0;
}

int graft_loop_watch(struct graft_loop *loop, struct graft_loop_watch *watch, struct graft_error *err)
{
	if (loop->n_watches == loop->capacity && grow_lists(loop) < 0)
		return graft_fail_memory(err);
	/*
	 * Report nothing for it in this turn, during which it may move to another place in the
	 * list.
	 */
	loop->polled[loop->n_watches].revents = 0;
	loop->watches[loop->n_watches++] = watch;
	watch->place = loop->n_watches;
	return 0;
}

void graft_loop_forget(struct graft_loop *loop, struct graft_loop_watch *watch)
{
	size_t i = watch->place;

	if (i == 0)
		return;
	loop->n_watches--;
	loop->watches[i - 1] = loop->watches[loop->n_watches];
	loop->polled[i - 1] = loop->polled[loop->n_watches];
	loop->watches[i - 1]->place = i;
	watch->place = 0;
}

void graft_loop_close(struct graft_loop *loop, struct graft_loop_watch *watch)
{
	graft_loop_forget(loop, watch);
	if (watch->fd >= 0)
		(void)close(watch->fd);
	watch->fd = -1;
}

void graft_loop_set_timer(struct graft_loop *loop, struct graft_loop_timer *timer, int64_t delay_ms)
{
	struct graft_loop_timer **link = &loop->timers;

	graft_loop_clear_timer(timer);
	timer->at_ms = graft_clock_ms() + delay_ms;
	while (*link && (*link)->at_ms <= timer->at_ms)
		link = &(*link)->next;
	timer->next = *link;
	timer->link = link;
	if (timer->next)
		timer->next->link = &timer->next;
	*link = timer;
}

void graft_loop_clear_timer(struct graft_loop_timer *timer)
{
	if (!timer->link)
		return;
	*timer->link = timer->next;
	if (timer->next)
		timer->next->link = timer->link;
	timer->link = NULL;
	timer->next = NULL;
}

/* Milliseconds until the first timer is due, at most `timeout_ms`; -1 = no limit. */
static int time_to_wait(const struct graft_loop *loop, int timeout_ms)
{
	int64_t left;

	if (!loop->timers)
		return timeout_ms;
	left = loop->timers->at_ms - graft_clock_ms();
	if (left < 0)
		left = 0;
	if (timeout_ms >= 0 && left > timeout_ms)
		left = timeout_ms;
	return left > INT_MAX ? INT_MAX : (int)left;
}

static void call_due_timers(struct graft_loop *loop)
{
	int64_t now = graft_clock_ms();

	while (loop->timers && loop->timers->at_ms <= now) {
		struct graft_loop_timer *timer = loop->timers;

		graft_loop_clear_timer(timer);
		timer->due(timer->arg);
	}
}

/*
 * The last watch moves to the place of one that is removed, and a callback may remove any: so each
 * place is checked until nothing is left to report there. Each event is cleared before its
 * callback.
 */
static void call_ready_watches(struct graft_loop *loop)
{
	for (size_t i = 0; i < loop->n_watches; i++) {
		while (i < loop->n_watches && loop->polled[i].revents != 0) {
			short events = loop->polled[i].revents;

			loop->polled[i].revents = 0;
			loop->watches[i]->ready(loop->watches[i]->arg, events);
		}
	}
}

int graft_loop_turn(struct graft_loop *loop, int timeout_ms, struct graft_error *err)
{
	int n;

	for (size_t i = 0; i < loop->n_watches; i++)
		loop->polled[i] =
		    (struct pollfd){ .fd = loop->watches[i]->fd, .events = loop->watches[i]->events, .revents = 0 };
	n = poll(loop->polled, loop->n_watches, time_to_wait(loop, timeout_ms));
	if (n < 0 && errno != EINTR)
		return graft_fail_errno(err, errno, "poll failed");
	if (n > 0)
		call_ready_watches(loop);
	call_due_timers(loop);
	return 0;
}

int graft_loop_run(struct graft_loop *loop, struct graft_error *err)
{
	loop->stopped = false;
	while (!loop->stopped) {
		if (graft_loop_turn(loop, -1, err) < 0)
			return -1;
	}
	return 0;
}

void graft_loop_stop(struct graft_loop *loop)
{
	loop->stopped = true;
}
