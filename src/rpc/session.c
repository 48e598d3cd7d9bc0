/* SPDX-License-Identifier: Apache-2.0 */
/* session: bytes between a socket and nghttp2. Knows neither calls nor messages. */
#include "rpc/session.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "rpc/message.h"

nghttp2_nv graft_rpc_header(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = graft_rpc_read_only(name),
			     .value = graft_rpc_read_only(value),
			     .namelen = strlen(name),
			     .valuelen = strlen(value) };
}

static void end_session(void *arg)
{
	struct graft_rpc_session *session = arg;

	session->ended(session->arg);
}

void graft_rpc_session_break(struct graft_rpc_session *session)
{
	session->broken = true;
	session->watch.events = 0;
	graft_loop_set_timer(session->loop, &session->stall, 0);
}

/* Gives the socket what is unsent. Returns whether more can be sent. */
static bool send_some(struct graft_rpc_session *session)
{
	ssize_t n = send(session->watch.fd, session->unsent, session->n_unsent, MSG_NOSIGNAL);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			graft_rpc_session_break(session);
		return false;
	}
	session->unsent += n;
	session->n_unsent -= (size_t)n;
	/* A session that has broken meanwhile, because the stream that this ends was its last, ends by the same timer. */
	if (session->stall.link && !session->broken)
		graft_loop_set_timer(session->loop, &session->stall, GRAFT_RPC_STALL_MS);
	return true;
}

/* Asks nghttp2 for the next frame, unless one is unsent. Returns whether there is one. */
static bool next_frame(struct graft_rpc_session *session)
{
	ssize_t n;

	if (session->n_unsent > 0)
		return true;
	n = nghttp2_session_mem_send(session->http2, &session->unsent);
	if (n < 0)
		graft_rpc_session_break(session);
	session->n_unsent = n > 0 ? (size_t)n : 0;
	return n > 0;
}

void graft_rpc_session_flush(struct graft_rpc_session *session)
{
	/* nghttp2 calls back, and is not to be called from there; what began its work sends everything later. */
	if (session->busy)
		return;
	session->busy = true;
	while (!session->broken && next_frame(session) && send_some(session))
		;
	session->busy = false;
	if (session->broken)
		return;
	if (session->n_unsent > 0) {
		session->watch.events = POLLIN | POLLOUT;
		if (!session->stall.link)
			graft_loop_set_timer(session->loop, &session->stall, GRAFT_RPC_STALL_MS);
		return;
	}
	session->watch.events = POLLIN;
	graft_loop_clear_timer(&session->stall);
	if (nghttp2_session_want_read(session->http2) == 0 && nghttp2_session_want_write(session->http2) == 0)
		graft_rpc_session_break(session);
}

static void receive_some(struct graft_rpc_session *session)
{
	uint8_t bytes[GRAFT_RPC_READ_CHUNK];
	ssize_t n = recv(session->watch.fd, bytes, sizeof(bytes), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	session->busy = true;
	/*
	 * flush sends GOAWAY to a peer that violates HTTP/2; a peer that does not speak it gets
	 * nothing.
	 */
	if (n <= 0 || nghttp2_session_mem_recv(session->http2, bytes, (size_t)n) < 0)
		graft_rpc_session_break(session);
	session->busy = false;
}

static void session_ready(void *arg, short events)
{
	struct graft_rpc_session *session = arg;

	if (session->broken)
		return;
	if ((events & (POLLIN | POLLHUP | POLLERR)) != 0)
		receive_some(session);
	graft_rpc_session_flush(session);
}

/*
 * nghttp2's own checks of HTTP are off: kubelets send paths as :authority, which HTTP forbids.
 * QUIRK: SPEC kubernetes 1
 */
static int make_http2(struct graft_rpc_session *session, const nghttp2_session_callbacks *callbacks, bool server)
{
	nghttp2_option *option = NULL;
	int rc = nghttp2_option_new(&option);

	if (rc != 0)
		return rc;
	nghttp2_option_set_no_http_messaging(option, 1);
	nghttp2_option_set_max_outbound_ack(option, 64);
	if (server)
		rc = nghttp2_session_server_new2(&session->http2, callbacks, session->arg, option);
	else
		rc = nghttp2_session_client_new2(&session->http2, callbacks, session->arg, option);
	nghttp2_option_del(option);
	return rc;
}

static int submit_settings(nghttp2_session *http2, uint32_t max_streams)
{
	const nghttp2_settings_entry entries[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, max_streams },
	};

	/* A server pushes nothing by itself; a client must state that it accepts no push. */
	return max_streams > 0 ? nghttp2_submit_settings(http2, NGHTTP2_FLAG_NONE, &entries[1], 1)
			       : nghttp2_submit_settings(http2, NGHTTP2_FLAG_NONE, &entries[0], 1);
}

int graft_rpc_session_begin(struct graft_rpc_session *session, struct graft_loop *loop, int take_fd,
			    const nghttp2_session_callbacks *callbacks, uint32_t max_streams, void (*ended)(void *arg),
			    void *arg, struct graft_error *err)
{
	*session = (struct graft_rpc_session){
		.loop = loop,
		.watch = { .fd = take_fd, .events = POLLIN, .ready = session_ready, .arg = session },
		.stall = { .due = end_session, .arg = session },
		.ended = ended,
		.arg = arg,
	};
	if (make_http2(session, callbacks, max_streams > 0) != 0 || submit_settings(session->http2, max_streams) != 0 ||
	    graft_loop_watch(loop, &session->watch, err) < 0) {
		nghttp2_session_del(session->http2);
		(void)close(take_fd);
		*session = (struct graft_rpc_session){ .loop = NULL };
		return graft_fail_memory(err);
	}
	return 0;
}

void graft_rpc_session_done(struct graft_rpc_session *session)
{
	if (!session->loop)
		return;
	graft_loop_close(session->loop, &session->watch);
	graft_loop_clear_timer(&session->stall);
	nghttp2_session_del(session->http2);
	*session = (struct graft_rpc_session){ .loop = NULL };
}
