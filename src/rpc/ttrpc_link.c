/* SPDX-License-Identifier: Apache-2.0 */
/* ttrpc_link: the socket, and the dispatch of its messages. Knows no methods. */
#include "rpc/ttrpc_link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ttrpc.pb-c.h"

#define READ_CHUNK  16384
#define CALL_MEMORY ((size_t)32 << 20) /* of a decoded message */

static void end_link(void *arg)
{
	struct graft_ttrpc_link *link = arg;

	link->options->ended(link->options->arg, &link->why);
}

static void break_link(struct graft_ttrpc_link *link)
{
	link->broken = true;
	link->watch.events = 0;
	graft_loop_set_timer(link->loop, &link->end, 0);
}

/* --- sending --- */

static void flush_link(struct graft_ttrpc_link *link)
{
	while (!link->broken && link->sent < link->out.length) {
		ssize_t n = send(link->watch.fd, link->out.bytes + link->sent, link->out.length - link->sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			(void)graft_fail_errno(&link->why, errno, "cannot write to the engine");
			break_link(link);
			return;
		}
		if (n < 0)
			break;
		link->sent += (size_t)n;
	}
	if (link->sent == link->out.length) {
		graft_buffer_done(&link->out);
		link->sent = 0;
	}
	if (!link->broken)
		link->watch.events = link->out.length > 0 ? POLLIN | POLLOUT : POLLIN;
}

/* Puts a message of ttrpc into frames, and sends what the socket takes. */
static void send_ttrpc(struct graft_ttrpc_link *link, uint32_t stream, struct graft_buffer *message)
{
	link->out.max = GRAFT_LINK_UNSENT_MAX;
	graft_mux_write(&link->out, stream, graft_buffer_text(message), message->length);
	graft_buffer_done(message);
	if (graft_buffer_failed(&link->out)) {
		(void)graft_fail(&link->why, GRAFT_TOO_BIG, 0, "the engine does not read its answers");
		break_link(link);
		return;
	}
	flush_link(link);
}

void graft_ttrpc_link_reply(struct graft_ttrpc_link *link, uint32_t stream, const ProtobufCMessage *message)
{
	struct graft_buffer bytes = { .max = 0 };
	struct graft_error why = { .status = GRAFT_OK };

	if (graft_ttrpc_write_response(&bytes, stream, message, 0, NULL, &why) < 0) {
		graft_buffer_done(&bytes);
		graft_ttrpc_link_refuse(link, stream, GRAFT_RPC_INTERNAL, GRAFT_ERROR_TEXT(&why));
		return;
	}
	send_ttrpc(link, GRAFT_LINK_SERVED, &bytes);
}

void graft_ttrpc_link_refuse(struct graft_ttrpc_link *link, uint32_t stream, enum graft_rpc_status status,
			     const char *text)
{
	struct graft_buffer bytes = { .max = 0 };

	if (graft_ttrpc_write_response(&bytes, stream, NULL, (int32_t)status, text, &link->why) == 0) {
		send_ttrpc(link, GRAFT_LINK_SERVED, &bytes);
		return;
	}
	/* Without an answer, the engine would start the container unchanged. */
	graft_buffer_done(&bytes);
	break_link(link);
}

int graft_ttrpc_link_call(struct graft_ttrpc_link *link, const char *service, const char *method,
			  const ProtobufCMessage *message,
			  void (*done)(void *arg, enum graft_rpc_status status, const char *text),
			  struct graft_error *err)
{
	struct graft_buffer bytes = { .max = 0 };

	if (graft_ttrpc_write_request(&bytes, link->next_stream, service, method, message, err) < 0) {
		graft_buffer_done(&bytes);
		return -1;
	}
	link->calling = link->next_stream;
	link->next_stream += 2;
	link->done = done;
	send_ttrpc(link, GRAFT_LINK_CALLED, &bytes);
	return 0;
}

/* --- messages of the peer --- */

static const struct graft_ttrpc_method *find_method(const struct graft_ttrpc_link_options *options,
						    const Graft__Ttrpc__Request *request)
{
	for (size_t i = 0; i < options->n_methods; i++) {
		if (strcmp(options->methods[i].name, request->method) == 0)
			return &options->methods[i];
	}
	return NULL;
}

static void serve_call(struct graft_ttrpc_link *link, const Graft__Ttrpc__Request *request,
		       struct graft_ttrpc_call *call)
{
	const struct graft_ttrpc_link_options *options = link->options;
	const struct graft_ttrpc_method *method = find_method(options, request);

	if (strcmp(request->service, options->service) != 0) {
		graft_ttrpc_link_refuse(link, call->stream, GRAFT_RPC_UNIMPLEMENTED, "no such service");
		return;
	}
	if (!method || !method->serve) {
		graft_ttrpc_link_reply(link, call->stream, options->empty);
		return;
	}
	if (method->request) {
		call->message = graft_rpc_decode(method->request, request->payload.data, request->payload.len,
						 call->arena);
		if (!call->message) {
			graft_ttrpc_link_refuse(link, call->stream, GRAFT_RPC_INVALID_ARGUMENT,
						"the request is malformed");
			return;
		}
	}
	method->serve(options->arg, call);
}

static int take_served(void *arg, const struct graft_ttrpc_message *message, struct graft_error *err)
{
	struct graft_ttrpc_link *link = arg;
	struct graft_ttrpc_call call = { .stream = message->stream };
	const Graft__Ttrpc__Request *request;

	/* Parts of streaming calls, which NRI does not have, and additions of newer versions. */
	if (message->type != GRAFT_TTRPC_REQUEST)
		return 0;
	call.arena = graft_arena_new(CALL_MEMORY);
	if (!call.arena)
		return graft_fail_memory(err);
	request = (const Graft__Ttrpc__Request *)(const void *)graft_rpc_decode(&graft__ttrpc__request__descriptor,
										message->data, message->n, call.arena);
	if (request)
		serve_call(link, request, &call);
	else
		graft_ttrpc_link_refuse(link, call.stream, GRAFT_RPC_INVALID_ARGUMENT, "the request is malformed");
	(void)graft_arena_free(call.arena);
	return 0;
}

static int take_called(void *arg, const struct graft_ttrpc_message *message, struct graft_error *err)
{
	struct graft_ttrpc_link *link = arg;
	struct graft_arena *arena;
	const Graft__Ttrpc__Response *response;

	if (message->type != GRAFT_TTRPC_RESPONSE || link->calling == 0 || message->stream != link->calling)
		return 0;
	arena = graft_arena_new(CALL_MEMORY);
	if (!arena)
		return graft_fail_memory(err);
	link->calling = 0;
	response = (const Graft__Ttrpc__Response *)(const void *)graft_rpc_decode(&graft__ttrpc__response__descriptor,
										  message->data, message->n, arena);
	if (!response)
		link->done(link->options->arg, GRAFT_RPC_INTERNAL, "the answer is malformed");
	else if (response->status && response->status->code != 0)
		link->done(link->options->arg, (enum graft_rpc_status)response->status->code,
			   response->status->message);
	else
		link->done(link->options->arg, GRAFT_RPC_OK, "");
	(void)graft_arena_free(arena);
	return 0;
}

static int take_stream(void *arg, uint32_t stream, const uint8_t *bytes, size_t n, struct graft_error *err)
{
	struct graft_ttrpc_link *link = arg;

	if (stream == GRAFT_LINK_SERVED)
		return graft_ttrpc_collect(&link->served, bytes, n, take_served, link, err);
	if (stream == GRAFT_LINK_CALLED)
		return graft_ttrpc_collect(&link->called, bytes, n, take_called, link, err);
	return 0;
}

static void read_link(struct graft_ttrpc_link *link)
{
	uint8_t bytes[READ_CHUNK];
	ssize_t n = recv(link->watch.fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		(void)graft_fail_errno(&link->why, errno, "cannot read from the engine");
		break_link(link);
	} else if (n == 0) {
		(void)graft_fail(&link->why, GRAFT_IO, 0, "the engine has closed the connection");
		break_link(link);
	} else if (graft_mux_read(&link->mux, bytes, (size_t)n, take_stream, link, &link->why) < 0) {
		break_link(link);
	}
}

static void link_ready(void *arg, short events)
{
	struct graft_ttrpc_link *link = arg;

	if (link->broken)
		return;
	if (events & POLLOUT)
		flush_link(link);
	if (!link->broken && (events & (POLLIN | POLLHUP | POLLERR)))
		read_link(link);
}

int graft_ttrpc_link_begin(struct graft_ttrpc_link *link, struct graft_loop *loop, int take_fd,
			   const struct graft_ttrpc_link_options *options, struct graft_error *err)
{
	*link = (struct graft_ttrpc_link){ .loop = loop, .options = options, .next_stream = 1, .begun = true };
	link->watch = (struct graft_loop_watch){ .fd = take_fd, .events = POLLIN, .ready = link_ready, .arg = link };
	link->end = (struct graft_loop_timer){ .due = end_link, .arg = link };
	if (graft_loop_watch(loop, &link->watch, err) == 0)
		return 0;
	(void)close(take_fd);
	link->begun = false;
	return -1;
}

void graft_ttrpc_link_done(struct graft_ttrpc_link *link)
{
	if (!link->begun)
		return;
	graft_loop_close(link->loop, &link->watch);
	graft_loop_clear_timer(&link->end);
	graft_ttrpc_collector_done(&link->served);
	graft_ttrpc_collector_done(&link->called);
	graft_buffer_done(&link->out);
	link->begun = false;
}
