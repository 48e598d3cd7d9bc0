/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client: one request and its answer. The caller knows the server, and when to repeat the request.
 */
#include "rpc/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "rpc/session.h"
#include "rpc/unix_socket.h"

#define MAX_STATUS_TEXT 4096
#define MAX_ANSWER      ((size_t)32 << 20) /* in memory */

struct graft_rpc_client {
	struct graft_rpc_session session;
	struct graft_loop_timer deadline;
	uint8_t *sending; /* the request with its prefix; owned */
	size_t n_sending, sent;
	struct graft_rpc_collector answer;
	const ProtobufCMessageDescriptor *type;
	int http_status, grpc_status; /* -1: not received yet */
	struct graft_buffer text;     /* grpc-message */
	void (*done)(void *arg, enum graft_rpc_status status, const char *text, const ProtobufCMessage *answer);
	void *arg;
};

static void free_client(struct graft_rpc_client *client)
{
	graft_rpc_session_done(&client->session);
	graft_loop_clear_timer(&client->deadline);
	graft_rpc_collector_done(&client->answer);
	graft_buffer_done(&client->text);
	free(client->sending);
	free(client);
}

/* Frees the client, then reports. `text` does not belong to the client. */
static void finish(struct graft_rpc_client *client, enum graft_rpc_status status, const char *text,
		   const ProtobufCMessage *answer)
{
	void (*done)(void *arg, enum graft_rpc_status status, const char *text,
		     const ProtobufCMessage *answer) = client->done;
	void *arg = client->arg;

	free_client(client);
	done(arg, status, text, answer);
}

static void finish_well(struct graft_rpc_client *client)
{
	struct graft_arena *arena = graft_arena_new(MAX_ANSWER);
	ProtobufCMessage *answer = NULL;

	if (arena && graft_rpc_is_collected(&client->answer))
		answer = graft_rpc_decode(client->type, graft_buffer_text(&client->answer.message),
					  client->answer.message.length, arena);
	finish(client, answer ? GRAFT_RPC_OK : GRAFT_RPC_INTERNAL, answer ? "" : "the answer is malformed", answer);
	graft_arena_free(arena);
}

/* The connection has ended: check whether there was an answer. */
static void client_ended(void *arg)
{
	struct graft_rpc_client *client = arg;
	struct graft_buffer text = { .max = MAX_STATUS_TEXT };

	if (client->grpc_status == GRAFT_RPC_OK) {
		finish_well(client);
		return;
	}
	if (client->grpc_status > 0)
		graft_buffer_string(&text, graft_buffer_text(&client->text));
	else if (client->http_status > 0 && client->http_status != 200)
		graft_buffer_printf(&text, "the answer has HTTP status %d", client->http_status);
	else
		graft_buffer_string(&text, "the connection ended before the answer");
	finish(client, client->grpc_status > 0 ? (enum graft_rpc_status)client->grpc_status : GRAFT_RPC_UNAVAILABLE,
	       graft_buffer_text(&text), NULL);
	graft_buffer_done(&text);
}

static void too_late(void *arg)
{
	finish(arg, GRAFT_RPC_DEADLINE_EXCEEDED, "no answer in time", NULL);
}

void graft_rpc_cancel(struct graft_rpc_client *client)
{
	if (client)
		free_client(client);
}

static ssize_t next_of_request(nghttp2_session *http2, int32_t stream, uint8_t *bytes, size_t n, uint32_t *flags,
			       nghttp2_data_source *source, void *arg)
{
	struct graft_rpc_client *client = arg;
	size_t left = client->n_sending - client->sent;

	(void)http2;
	(void)stream;
	(void)source;
	n = n < left ? n : left;
	memcpy(bytes, client->sending + client->sent, n);
	client->sent += n;
	if (n == left)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

/* Parses a number of up to three digits; -1 for anything else. */
static int status_number(const uint8_t *value, size_t n)
{
	int number = 0;

	if (n == 0 || n > 3)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (value[i] < '0' || value[i] > '9')
			return -1;
		number = number * 10 + (value[i] - '0');
	}
	return number;
}

static int take_answer_header(nghttp2_session *http2, const nghttp2_frame *frame, const uint8_t *name, size_t n_name,
			      const uint8_t *value, size_t n_value, uint8_t flags, void *arg)
{
	struct graft_rpc_client *client = arg;
	const char *text = (const char *)name;

	(void)http2;
	(void)frame;
	(void)flags;
	if (n_name == 7 && memcmp(text, ":status", 7) == 0)
		client->http_status = status_number(value, n_value);
	else if (n_name == 11 && memcmp(text, "grpc-status", 11) == 0 && client->grpc_status <= 0)
		client->grpc_status = status_number(value, n_value);
	else if (n_name == 12 && memcmp(text, "grpc-message", 12) == 0 && client->text.length == 0)
		graft_rpc_unescape(&client->text, (const char *)value, n_value);
	return 0;
}

static int take_answer_data(nghttp2_session *http2, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t n,
			    void *arg)
{
	struct graft_rpc_client *client = arg;
	enum graft_rpc_status status;
	const char *text;

	(void)flags;
	if (client->grpc_status > 0)
		return 0;
	status = graft_rpc_collect(&client->answer, bytes, n, &text);
	if (status == GRAFT_RPC_OK)
		return 0;
	/* The server's own status, which may come yet, no longer counts. */
	client->grpc_status = (int)status;
	graft_buffer_printf(&client->text, "cannot accept the answer: %s", text);
	return nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
}

/* The stream has closed, and the connection is no longer needed. */
static int take_end(nghttp2_session *http2, int32_t stream, uint32_t code, void *arg)
{
	struct graft_rpc_client *client = arg;

	(void)http2;
	(void)stream;
	(void)code;
	graft_rpc_session_break(&client->session);
	return 0;
}

static int submit_request(struct graft_rpc_client *client, const struct graft_rpc_request *request)
{
	char timeout[32];
	const nghttp2_data_provider provider = { .read_callback = next_of_request };

	(void)snprintf(timeout, sizeof(timeout), "%lldm", (long long)request->deadline_ms);
	{
		const nghttp2_nv headers[] = {
			graft_rpc_header(":method", "POST"),
			graft_rpc_header(":scheme", "http"),
			graft_rpc_header(":path", request->method),
			graft_rpc_header(":authority", "localhost"),
			graft_rpc_header("te", "trailers"),
			graft_rpc_header("content-type", "application/grpc"),
			graft_rpc_header("user-agent", "graft/" GRAFT_VERSION),
			graft_rpc_header("grpc-timeout", timeout),
		};

		return nghttp2_submit_request(client->session.http2, NULL, headers, GRAFT_COUNT(headers), &provider,
					      NULL);
	}
}

static int begin_session(struct graft_rpc_client *client, struct graft_loop *loop, int take_fd,
			 const struct graft_rpc_request *request, struct graft_error *err)
{
	auto_close int fd = take_fd;
	nghttp2_session_callbacks *callbacks = NULL;
	int rc;

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		return graft_fail_memory(err);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, take_answer_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_answer_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, take_end);
	rc = graft_rpc_session_begin(&client->session, loop, TAKE_FD(fd), callbacks, 0, client_ended, client, err);
	nghttp2_session_callbacks_del(callbacks);
	if (rc == 0 && submit_request(client, request) < 0)
		rc = graft_fail_memory(err);
	return rc;
}

struct graft_rpc_client *graft_rpc_call(struct graft_loop *loop, const struct graft_rpc_request *request,
					struct graft_error *err)
{
	struct graft_rpc_client *client;
	int fd = graft_unix_connect(request->socket);

	if (fd < 0) {
		(void)graft_fail_errno(err, -fd, "cannot connect to '%s'", request->socket);
		return NULL;
	}
	client = calloc(1, sizeof(*client));
	if (!client) {
		(void)close(fd);
		(void)graft_fail_memory(err);
		return NULL;
	}
	client->http_status = client->grpc_status = -1;
	client->text.max = MAX_STATUS_TEXT;
	client->type = request->answer;
	client->done = request->done;
	client->arg = request->arg;
	client->deadline = (struct graft_loop_timer){ .due = too_late, .arg = client };
	if (graft_rpc_encode(request->message, &client->sending, &client->n_sending, err) < 0) {
		(void)close(fd);
		free_client(client);
		return NULL;
	}
	if (begin_session(client, loop, fd, request, err) < 0) {
		free_client(client);
		return NULL;
	}
	graft_loop_set_timer(loop, &client->deadline, request->deadline_ms);
	graft_rpc_session_flush(&client->session);
	return client;
}
