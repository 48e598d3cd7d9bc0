/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call: streams of HTTP/2 as calls of methods: request headers, one message, then an answer and
 * trailers (SPEC kubernetes 1). Does not know what methods do.
 */
#include "rpc/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"

/*
 * SECURITY: what one request may cost beyond its bytes, and what all requests of a connection may
 * hold.
 */
#define MAX_DECODED   ((size_t)32 << 20)
#define MAX_COLLECTED (GRAFT_RPC_MAX_MESSAGE * 2)
#define MAX_HEADERS   16384
#define CONTENT_TYPE  "application/grpc"

struct graft_rpc_call {
	struct graft_rpc_connection *connection;
	const struct graft_rpc_method *method; /* NULL: not known yet, or refused before it was */
	int32_t stream;
	struct graft_loop_timer limit; /* until the request is complete; then, until more of the answer can be sent */
	int64_t began_us;
	size_t header_bytes;
	char path[96];   /* no method has a longer one */
	bool post, grpc; /* from the headers */
	struct graft_rpc_collector request;
	bool answered, streaming, over; /* finished: trailers follow the remaining data */
	uint8_t *sending, *waiting;     /* messages with their prefix; owned */
	size_t n_sending, sent, n_waiting;
	struct graft_rpc_call *next, **link;
};

/*
 * A lack of memory in nghttp2 leaves the stream without an answer; better to lose the connection.
 */
static void must_submit(struct graft_rpc_call *call, int rc)
{
	if (rc < 0)
		graft_rpc_session_break(&call->connection->session);
}

static void report_served(const struct graft_rpc_call *call, enum graft_rpc_status status)
{
	const struct graft_rpc_server_options *options = call->connection->options;

	if (options->served && call->method)
		options->served(options->service, call->method, status, graft_clock_us() - call->began_us);
}

/* The trailers of a successful call. */
static int submit_trailer(nghttp2_session *http2, int32_t stream)
{
	nghttp2_nv trailer = graft_rpc_header("grpc-status", "0");

	return nghttp2_submit_trailer(http2, stream, &trailer, 1);
}

/*
 * SECURITY: a peer whose window of flow control stays closed would hold the call and its memory
 * forever.
 */
static void answer_too_slow(void *arg)
{
	struct graft_rpc_call *call = arg;

	graft_rpc_session_break(&call->connection->session);
}

static void limit_answer(struct graft_rpc_call *call)
{
	call->limit.due = answer_too_slow;
	graft_loop_set_timer(call->connection->session.loop, &call->limit, call->connection->options->answer_limit_ms);
}

/* nghttp2 asks for the next bytes of an answer. */
static ssize_t next_of_answer(nghttp2_session *http2, int32_t stream, uint8_t *bytes, size_t n, uint32_t *flags,
			      nghttp2_data_source *source, void *connection)
{
	struct graft_rpc_call *call = source->ptr;
	size_t left = call->n_sending - call->sent;

	(void)connection;
	if (left == 0 && call->waiting) {
		free(call->sending);
		call->sending = TAKE_PTR(call->waiting);
		call->n_sending = left = call->n_waiting;
		call->sent = 0;
	}
	n = n < left ? n : left;
	if (n > 0)
		memcpy(bytes, call->sending + call->sent, n);
	call->sent += n;
	if (call->sent == call->n_sending && !call->waiting && !call->over)
		graft_loop_clear_timer(&call->limit);
	else if (n > 0)
		limit_answer(call);
	if (call->sent == call->n_sending && !call->waiting && call->over) {
		*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
		return submit_trailer(http2, stream) == 0 ? (ssize_t)n : NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	return n > 0 ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
}

/* Sends the first message, after the headers of the answer. Takes the bytes. */
static void submit_answer(struct graft_rpc_call *call, uint8_t *take_bytes, size_t n)
{
	const nghttp2_nv headers[] = { graft_rpc_header(":status", "200"),
				       graft_rpc_header("content-type", CONTENT_TYPE) };
	nghttp2_data_provider provider = { .source = { .ptr = call }, .read_callback = next_of_answer };

	call->sending = take_bytes;
	call->n_sending = n;
	call->answered = true;
	call->over = !call->streaming;
	report_served(call, GRAFT_RPC_OK);
	limit_answer(call);
	must_submit(call, nghttp2_submit_response(call->connection->session.http2, call->stream, headers,
						  GRAFT_COUNT(headers), &provider));
}

/* An answer without a message: one HEADERS frame. */
static void submit_refusal(struct graft_rpc_call *call, const char *http_status, enum graft_rpc_status status,
			   const char *text)
{
	struct graft_buffer message = { .max = 4096 };
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", (int)status);
	graft_rpc_escape(&message, text);
	{
		const nghttp2_nv headers[] = { graft_rpc_header(":status", http_status),
					       graft_rpc_header("content-type", CONTENT_TYPE),
					       graft_rpc_header("grpc-status", number),
					       graft_rpc_header("grpc-message", graft_buffer_text(&message)) };

		call->answered = true;
		must_submit(call, nghttp2_submit_response(call->connection->session.http2, call->stream, headers,
							  GRAFT_COUNT(headers), NULL));
	}
	graft_buffer_done(&message);
}

bool graft_rpc_reply(struct graft_rpc_call *call, const ProtobufCMessage *message)
{
	struct graft_error err = { .status = GRAFT_OK };
	uint8_t *bytes = NULL;
	size_t n = 0;

	if (graft_rpc_encode(message, &bytes, &n, &err) < 0) {
		graft_rpc_refuse(call, GRAFT_RPC_RESOURCE_EXHAUSTED, err.msg);
		return false;
	}
	submit_answer(call, bytes, n);
	return true;
}

void graft_rpc_refuse(struct graft_rpc_call *call, enum graft_rpc_status status, const char *text)
{
	submit_refusal(call, "200", status, text);
	call->streaming = false;
	report_served(call, status);
}

int graft_rpc_push(struct graft_rpc_call *call, const ProtobufCMessage *message, struct graft_error *err)
{
	uint8_t *bytes = NULL;
	size_t n = 0;

	if (graft_rpc_encode(message, &bytes, &n, err) < 0)
		return -1;
	free(call->waiting);
	call->waiting = bytes;
	call->n_waiting = n;
	if (!call->limit.link)
		limit_answer(call);
	/* Fails if the stream is not waiting for data; nghttp2 will then ask for these bytes later. */
	(void)nghttp2_session_resume_data(call->connection->session.http2, call->stream);
	graft_rpc_session_flush(&call->connection->session);
	return 0;
}

static void request_too_slow(void *arg)
{
	struct graft_rpc_call *call = arg;
	struct graft_rpc_session *session = &call->connection->session;

	must_submit(call, nghttp2_submit_rst_stream(session->http2, NGHTTP2_FLAG_NONE, call->stream, NGHTTP2_CANCEL));
	graft_rpc_session_flush(session);
}

/* A new stream. */
static int begin_stream(nghttp2_session *http2, const nghttp2_frame *frame, void *arg)
{
	struct graft_rpc_connection *connection = arg;
	struct graft_rpc_call *call;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	call = calloc(1, sizeof(*call));
	if (!call)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	call->connection = connection;
	call->stream = frame->hd.stream_id;
	call->began_us = graft_clock_us();
	call->limit = (struct graft_loop_timer){ .due = request_too_slow, .arg = call };
	graft_loop_set_timer(connection->session.loop, &call->limit, connection->options->request_limit_ms);
	call->next = connection->calls;
	call->link = &connection->calls;
	if (call->next)
		call->next->link = &call->next;
	connection->calls = call;
	return nghttp2_session_set_stream_user_data(http2, call->stream, call);
}

static void free_call(struct graft_rpc_call *call)
{
	const struct graft_rpc_server_options *options = call->connection->options;

	if (call->streaming && call->answered)
		call->method->ended(options->service, call);
	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
	graft_loop_clear_timer(&call->limit);
	call->connection->collected -= call->request.message.length;
	graft_rpc_collector_done(&call->request);
	free(call->sending);
	free(call->waiting);
	free(call);
}

static int end_call(nghttp2_session *http2, int32_t stream, uint32_t code, void *arg)
{
	struct graft_rpc_call *call = nghttp2_session_get_stream_user_data(http2, stream);

	(void)code;
	(void)arg;
	if (call)
		free_call(call);
	return 0;
}

static bool is_header_text(const uint8_t *bytes, size_t n, const char *text)
{
	return n == strlen(text) && memcmp(bytes, text, n) == 0;
}

/* "application/grpc", alone or followed by a format or parameters. */
static bool is_grpc(const uint8_t *value, size_t n)
{
	size_t length = strlen(CONTENT_TYPE);

	if (n < length || memcmp(value, CONTENT_TYPE, length) != 0)
		return false;
	return n == length || value[length] == ';' || is_header_text(value + length, n - length, "+proto");
}

static int take_header(nghttp2_session *http2, const nghttp2_frame *frame, const uint8_t *name, size_t n_name,
		       const uint8_t *value, size_t n_value, uint8_t flags, void *arg)
{
	struct graft_rpc_call *call = nghttp2_session_get_stream_user_data(http2, frame->hd.stream_id);

	(void)flags;
	(void)arg;
	if (!call)
		return 0;
	call->header_bytes += n_name + n_value;
	if (call->header_bytes > MAX_HEADERS)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	if (is_header_text(name, n_name, ":method"))
		call->post = is_header_text(value, n_value, "POST");
	else if (is_header_text(name, n_name, "content-type"))
		call->grpc = is_grpc(value, n_value);
	else if (is_header_text(name, n_name, ":path") && n_value < sizeof(call->path))
		(void)snprintf(call->path, sizeof(call->path), "%.*s", (int)n_value, (const char *)value);
	return 0;
}

/* The headers are complete: find the method. */
static void take_headers(struct graft_rpc_call *call)
{
	const struct graft_rpc_server_options *options = call->connection->options;
	char text[160];

	if (!call->post) {
		submit_refusal(call, "405", GRAFT_RPC_UNKNOWN, "the HTTP method is not POST");
		return;
	}
	if (!call->grpc) {
		submit_refusal(call, "415", GRAFT_RPC_UNKNOWN, "the content-type is not " CONTENT_TYPE);
		return;
	}
	for (size_t i = 0; i < options->n_methods && !call->method; i++) {
		if (strcmp(options->methods[i].path, call->path) == 0)
			call->method = &options->methods[i];
	}
	if (!call->method) {
		(void)snprintf(text, sizeof(text), "unknown method '%s'", call->path);
		graft_rpc_refuse(call, GRAFT_RPC_UNIMPLEMENTED, text);
	}
}

static void serve_request(struct graft_rpc_call *call, const ProtobufCMessage *request)
{
	const struct graft_rpc_server_options *options = call->connection->options;

	call->streaming = call->method->ended != NULL;
	call->method->serve(options->service, call, request);
	if (!call->answered)
		graft_rpc_refuse(call, GRAFT_RPC_INTERNAL, "the method did not answer");
}

/* The request is complete. */
static void take_message(struct graft_rpc_call *call)
{
	struct graft_arena *arena;
	ProtobufCMessage *request;

	graft_loop_clear_timer(&call->limit);
	if (call->answered)
		return;
	if (!graft_rpc_is_collected(&call->request)) {
		graft_rpc_refuse(call, GRAFT_RPC_INTERNAL, "the request is incomplete");
		return;
	}
	arena = graft_arena_new(MAX_DECODED);
	request = arena ? graft_rpc_decode(call->method->request, graft_buffer_text(&call->request.message),
					   call->request.message.length, arena)
			: NULL;
	if (request)
		serve_request(call, request);
	else if (!arena || graft_arena_failed(arena))
		graft_rpc_refuse(call, GRAFT_RPC_RESOURCE_EXHAUSTED, "the request needs too much memory");
	else
		graft_rpc_refuse(call, GRAFT_RPC_INVALID_ARGUMENT, "the request is malformed");
	graft_arena_free(arena);
}

static int take_data(nghttp2_session *http2, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t n, void *arg)
{
	struct graft_rpc_connection *connection = arg;
	struct graft_rpc_call *call = nghttp2_session_get_stream_user_data(http2, stream);
	enum graft_rpc_status status = GRAFT_RPC_RESOURCE_EXHAUSTED;
	const char *text = "too many large requests at once";
	size_t before;

	(void)flags;
	if (!call || call->answered)
		return 0;
	before = call->request.message.length;
	if (connection->collected + n <= MAX_COLLECTED)
		status = graft_rpc_collect(&call->request, bytes, n, &text);
	connection->collected += call->request.message.length - before;
	if (status != GRAFT_RPC_OK)
		graft_rpc_refuse(call, status, text);
	return 0;
}

static int take_frame(nghttp2_session *http2, const nghttp2_frame *frame, void *arg)
{
	struct graft_rpc_connection *connection = arg;
	struct graft_rpc_call *call;

	if (frame->hd.type == NGHTTP2_SETTINGS)
		graft_loop_clear_timer(&connection->greeting);
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	call = nghttp2_session_get_stream_user_data(http2, frame->hd.stream_id);
	if (!call)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		take_headers(call);
	if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
		take_message(call);
	return 0;
}

static void connection_over(void *arg)
{
	struct graft_rpc_connection *connection = arg;

	connection->ended(connection->owner, connection);
}

static nghttp2_session_callbacks *make_callbacks(void)
{
	nghttp2_session_callbacks *callbacks = NULL;

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		return NULL;
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_stream);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, take_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, end_call);
	return callbacks;
}

struct graft_rpc_connection *
graft_rpc_connection_new(struct graft_loop *loop, const struct graft_rpc_server_options *options, int take_fd,
			 void (*ended)(void *owner, struct graft_rpc_connection *connection), void *owner,
			 struct graft_error *err)
{
	auto_close int fd = take_fd;
	struct graft_rpc_connection *connection = calloc(1, sizeof(*connection));
	nghttp2_session_callbacks *callbacks = connection ? make_callbacks() : NULL;
	int rc = -1;

	if (callbacks) {
		rc = graft_rpc_session_begin(&connection->session, loop, TAKE_FD(fd), callbacks, options->max_streams,
					     connection_over, connection, err);
		nghttp2_session_callbacks_del(callbacks);
	}
	if (rc < 0) {
		free(connection);
		(void)graft_fail_memory(err);
		return NULL;
	}
	connection->options = options;
	connection->ended = ended;
	connection->owner = owner;
	connection->greeting = (struct graft_loop_timer){ .due = connection_over, .arg = connection };
	graft_loop_set_timer(loop, &connection->greeting, options->request_limit_ms);
	graft_rpc_session_flush(&connection->session);
	return connection;
}

void graft_rpc_connection_free(struct graft_rpc_connection *connection)
{
	while (connection->calls) {
		struct graft_rpc_call *call = connection->calls;

		(void)nghttp2_session_set_stream_user_data(connection->session.http2, call->stream, NULL);
		free_call(call);
	}
	graft_loop_clear_timer(&connection->greeting);
	graft_rpc_session_done(&connection->session);
	free(connection);
}
