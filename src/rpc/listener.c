/* SPDX-License-Identifier: Apache-2.0 */
/* listener: accept(2) for the loop. Does not know who connects, or why. */
#include "rpc/listener.h"

#include <errno.h>
#include <sys/socket.h>

/* One per turn: others wait in the socket's queue, and poll(2) reports it again. */
static void accept_one(void *arg, short events)
{
	struct graft_listener *listener = arg;
	int fd = accept4(listener->watch.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd >= 0) {
		listener->watch.events = listener->gap_ms > 0 ? 0 : POLLIN;
		if (listener->gap_ms > 0)
			graft_loop_set_timer(listener->loop, &listener->again, listener->gap_ms);
		listener->accepted(listener->arg, fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		/* The connection stays in the queue, and would keep the loop busy. */
		listener->watch.events = 0;
		graft_loop_set_timer(listener->loop, &listener->again, GRAFT_LISTENER_AGAIN_MS);
	}
}

static void accept_again(void *arg)
{
	struct graft_listener *listener = arg;

	listener->watch.events = POLLIN;
}

int graft_listener_begin(struct graft_listener *listener, struct graft_loop *loop, int fd,
			 void (*accepted)(void *arg, int take_fd), void *arg, struct graft_error *err)
{
	*listener = (struct graft_listener){
		.loop = loop,
		.watch = { .fd = fd, .events = POLLIN, .ready = accept_one, .arg = listener },
		.again = { .due = accept_again, .arg = listener },
		.accepted = accepted,
		.arg = arg,
	};
	return graft_loop_watch(loop, &listener->watch, err);
}

void graft_listener_end(struct graft_listener *listener)
{
	if (!listener->loop)
		return;
	graft_loop_forget(listener->loop, &listener->watch);
	graft_loop_clear_timer(&listener->again);
}
