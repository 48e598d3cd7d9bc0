/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <nghttp2/nghttp2.h>

#include "../unit.h"
#include "base/buffer.h"
#include "rpc_world.h"

#define PREFACE  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define ALLOCATE "/v1beta1.DevicePlugin/Allocate"
#define WATCH    "/v1beta1.DevicePlugin/ListAndWatch"

/* A peer made of bytes: what it says is written by hand, what it hears is noted frame by frame. */
struct peer {
	struct world *world;
	int fd;
	nghttp2_hd_inflater *inflater;
	struct graft_buffer in, heard, data; /* bytes; a line for each frame; bodies of DATA */
};

static void open_peer(struct world *world, struct peer *peer)
{
	*peer = (struct peer){ .world = world, .fd = world_dial(world) };
	assert_true(peer->fd >= 0);
	assert_int_equal(nghttp2_hd_inflate_new(&peer->inflater), 0);
}

static void close_peer(struct peer *peer)
{
	(void)close(peer->fd);
	nghttp2_hd_inflate_del(peer->inflater);
	graft_buffer_done(&peer->in);
	graft_buffer_done(&peer->heard);
	graft_buffer_done(&peer->data);
}

static void say(struct peer *peer, const void *bytes, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(peer->fd, bytes, n, MSG_NOSIGNAL);

		if (sent < 0) {
			assert_int_equal(errno, EAGAIN);
			assert_int_equal(graft_loop_turn(&peer->world->loop, 10, NULL), 0);
			continue;
		}
		bytes = (const char *)bytes + sent;
		n -= (size_t)sent;
	}
}

static void add_frame(struct graft_buffer *out, uint8_t type, uint8_t flags, uint32_t stream, const void *body,
		      size_t n)
{
	const uint8_t head[9] = {
		(uint8_t)(n >> 16),      (uint8_t)(n >> 8),      (uint8_t)n,     type, flags, (uint8_t)(stream >> 24),
		(uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream
	};

	graft_buffer_add(out, head, sizeof(head));
	if (n > 0)
		graft_buffer_add(out, body, n);
}

static void say_frame(struct peer *peer, uint8_t type, uint8_t flags, uint32_t stream, const void *body, size_t n)
{
	struct graft_buffer bytes = { 0 };

	add_frame(&bytes, type, flags, stream, body, n);
	say(peer, bytes.bytes, bytes.length);
	graft_buffer_done(&bytes);
}

/* Header fields as pairs of words, as literals. */
static void say_headers(struct peer *peer, uint32_t stream, bool end, const char *const *words)
{
	struct graft_buffer block = { 0 };

	for (size_t i = 0; words[i]; i++) {
		if (i % 2 == 0)
			graft_buffer_char(&block, '\0');
		assert_true(strlen(words[i]) < 127);
		graft_buffer_char(&block, (char)strlen(words[i]));
		graft_buffer_string(&block, words[i]);
	}
	say_frame(peer, NGHTTP2_HEADERS, (uint8_t)(NGHTTP2_FLAG_END_HEADERS | (end ? NGHTTP2_FLAG_END_STREAM : 0)),
		  stream, block.bytes, block.length);
	graft_buffer_done(&block);
}

static void greet(struct peer *peer)
{
	say(peer, PREFACE, strlen(PREFACE));
	say_frame(peer, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

static const char *const allocate_headers[] = {
	":method", "POST",   ":scheme",    ":path", /* wrong, and ignored */
	":path",   ALLOCATE, ":authority", "localhost", "content-type", "application/grpc", NULL
};
static const char *const watch_headers[] = { ":method",    "POST",      ":path",        WATCH,
					     ":authority", "localhost", "content-type", "application/grpc+proto",
					     NULL };

/* AllocateRequest of one container with one id, "5". */
#define ALLOCATE_5               \
	"\0\0\0\0\5\x0a\3\x0a\1" \
	"5"

static void note_headers(struct peer *peer, const uint8_t *block, size_t n)
{
	while (n > 0) {
		nghttp2_nv field;
		int flags = 0;
		ssize_t used = nghttp2_hd_inflate_hd2(peer->inflater, &field, &flags, block, n, 1);

		assert_true(used >= 0);
		block += used;
		n -= (size_t)used;
		if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0)
			graft_buffer_printf(&peer->heard, " %s=%s", (const char *)field.name,
					    (const char *)field.value);
		if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0)
			nghttp2_hd_inflate_end_headers(peer->inflater);
	}
}

static void note_frame(struct peer *peer, const uint8_t *head, const uint8_t *body, size_t n)
{
	bool end = (head[4] & NGHTTP2_FLAG_END_STREAM) != 0;

	switch (head[3]) {
	case NGHTTP2_HEADERS:
		graft_buffer_printf(&peer->heard, "%d:", head[8]);
		note_headers(peer, body, n);
		graft_buffer_string(&peer->heard, end ? " end\n" : "\n");
		break;
	case NGHTTP2_DATA:
		graft_buffer_add(&peer->data, body, n);
		graft_buffer_printf(&peer->heard, "%d: data%s\n", head[8], end ? " end" : "");
		break;
	case NGHTTP2_RST_STREAM:
		graft_buffer_printf(&peer->heard, "%d: reset %d\n", head[8], body[3]);
		break;
	case NGHTTP2_GOAWAY:
		graft_buffer_printf(&peer->heard, "goaway %d\n", body[7]);
		break;
	default:
		break;
	}
}

/* Hears what there is. Returns whether the connection is still open. */
static bool hear(struct peer *peer)
{
	uint8_t bytes[65536];
	ssize_t n = recv(peer->fd, bytes, sizeof(bytes), 0);
	size_t at = 0;

	if (n > 0)
		graft_buffer_add(&peer->in, bytes, (size_t)n);
	while (peer->in.length - at >= 9) {
		const uint8_t *head = (const uint8_t *)peer->in.bytes + at;
		size_t length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];

		if (peer->in.length - at < 9 + length)
			break;
		note_frame(peer, head, head + 9, length);
		at += 9 + length;
	}
	if (at > 0) {
		memmove(peer->in.bytes, peer->in.bytes + at, peer->in.length - at);
		peer->in.length -= at;
	}
	return n > 0 || (n < 0 && errno == EAGAIN);
}

static bool has_heard(struct peer *peer, const char *text)
{
	(void)hear(peer);
	return strstr(graft_buffer_text(&peer->heard), text) != NULL;
}

#define assert_hears(peer, text)                                                                 \
	do {                                                                                     \
		if (!world_until((peer)->world, has_heard(peer, text)))                          \
			fail_msg("'%s' is not in: %s", text, graft_buffer_text(&(peer)->heard)); \
	} while (0)

/* A peer that has called the method that streams, and has its first message. */
static void open_watcher(struct world *world, struct peer *peer)
{
	open_peer(world, peer);
	greet(peer);
	say_headers(peer, 1, false, watch_headers);
	say_frame(peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, "\0\0\0\0\0", 5);
	assert_hears(peer, "1: data\n");
}

static const struct {
	const char *name;
	const char *headers[13];
	const char *answer;
} requests[] = {
	{ "as a new kubelet",
	  { ":method", "POST", ":path", ALLOCATE, ":authority", "localhost", "content-type", "application/grpc", "te",
	    "trailers" },
	  "1: :status=200 content-type=application/grpc\n1: data\n1: grpc-status=0 end\n" },
	/* QUIRK: SPEC kubernetes 1 */
	{ "the authority is a path",
	  { ":method", "POST", ":path", ALLOCATE, ":authority", "/var/lib/kubelet/device-plugins/nvidia-gpu.sock",
	    "content-type", "application/grpc" },
	  "1: :status=200 content-type=application/grpc\n1: data\n1: grpc-status=0 end\n" },
	{ "no authority, no scheme",
	  { ":method", "POST", ":path", ALLOCATE, "content-type", "application/grpc;charset=utf-8" },
	  "1: :status=200 content-type=application/grpc\n1: data\n1: grpc-status=0 end\n" },
	{ "another method of HTTP",
	  { ":method", "GET", ":path", ALLOCATE, "content-type", "application/grpc" },
	  "1: :status=405 content-type=application/grpc grpc-status=2 grpc-message=the HTTP method is not POST "
	  "end\n" },
	{ "no method of HTTP",
	  { ":path", ALLOCATE, "content-type", "application/grpc" },
	  "1: :status=405 content-type=application/grpc grpc-status=2 grpc-message=the HTTP method is not POST "
	  "end\n" },
	{ "another type",
	  { ":method", "POST", ":path", ALLOCATE, "content-type", "application/grpcweb" },
	  "1: :status=415 content-type=application/grpc grpc-status=2 grpc-message=the content-type is not "
	  "application/grpc end\n" },
	{ "an unknown method",
	  { ":method", "POST", ":path", "/v1.X/\xc3\xa9", "content-type", "application/grpc" },
	  "1: :status=200 content-type=application/grpc grpc-status=12 grpc-message=unknown method '/v1.X/%C3%A9' "
	  "end\n" },
	{ "no path",
	  { ":method", "POST", "content-type", "application/grpc" },
	  "1: :status=200 content-type=application/grpc grpc-status=12 grpc-message=unknown method '' end\n" },
	{ "a path that is too long",
	  { ":method", "POST", ":path",
	    "/v1.X/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456",
	    "content-type", "application/grpc" },
	  "1: :status=200 content-type=application/grpc grpc-status=12 grpc-message=unknown method '' end\n" },
};

static void test_requests(void **state)
{
	struct world world;

	assert_true(world_open(&world, NULL));
	for (size_t i = 0; i < GRAFT_COUNT(requests); i++) {
		struct peer peer;

		print_message("# %s\n", requests[i].name);
		open_peer(&world, &peer);
		greet(&peer);
		say_headers(&peer, 1, false, requests[i].headers);
		say_frame(&peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, ALLOCATE_5, sizeof(ALLOCATE_5) - 1);
		assert_hears(&peer, " end\n");
		assert_string_equal(graft_buffer_text(&peer.heard), requests[i].answer);
		close_peer(&peer);
	}
	world_close(&world);
}

static const struct {
	const char *name, *bytes;
	size_t n;
	const char *status;
} messages[] = {
	{ "no message", "", 0, "grpc-status=13 grpc-message=the request is incomplete end" },
	{ "half a message", ALLOCATE_5, 8, "grpc-status=13 grpc-message=the request is incomplete end" },
	{ "two messages", ALLOCATE_5 ALLOCATE_5, 20,
	  "grpc-status=13 grpc-message=more than one message in a call that has one end" },
	{ "a compressed one", "\1\0\0\0\0", 5,
	  "grpc-status=12 grpc-message=compressed messages are not supported end" },
	{ "4 MiB and one byte", "\0\0\100\0\1", 5,
	  "grpc-status=8 grpc-message=a message of 4194305 bytes is larger than 4 MiB end" },
	{ "no protobuf", "\0\0\0\0\2\x0a\7", 7, "grpc-status=3 grpc-message=the request is malformed end" },
	{ "unknown fields", "\0\0\0\0\3\xf8\1\1", 8, "grpc-status=0 end" },
};

/* A message that is wrong is answered, and the connection goes on. */
static void test_messages(void **state)
{
	struct world world;
	struct peer peer;
	uint32_t stream = 1;

	assert_true(world_open(&world, NULL));
	open_peer(&world, &peer);
	greet(&peer);
	for (size_t i = 0; i < GRAFT_COUNT(messages); i++, stream += 2) {
		print_message("# %s\n", messages[i].name);
		say_headers(&peer, stream, false, allocate_headers);
		say_frame(&peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream, messages[i].bytes, messages[i].n);
		assert_hears(&peer, messages[i].status);
		assert_null(strstr(graft_buffer_text(&peer.heard), "reset"));
		graft_buffer_done(&peer.heard);
	}
	say_headers(&peer, stream, true, allocate_headers);
	assert_hears(&peer, "the request is incomplete end");
	close_peer(&peer);
	world_close(&world);
}

/* What each of these says first, its connection is lost with; the one that was there is served on. */
static const struct {
	const char *name, *bytes;
	size_t n;
} nonsense[] = {
	{ "HTTP/1.1", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27 },
	{ "noise", "\x16\3\1\2\0\1\0\1\xfc\3\3\xaa\xbb\xcc\xdd\xee\xff\0\0\0\0\0\0\0\0\0", 26 },
	{ "no settings", PREFACE "\0\0\0\0\1\0\0\0\1", 33 },
	{ "a frame that is too large", PREFACE "\0\0\0\4\0\0\0\0\0\377\377\377\0\0\0\0\0\1", 42 },
	{ "data of stream 0", PREFACE "\0\0\0\4\0\0\0\0\0\0\0\1\0\1\0\0\0\0x", 43 },
	{ "data of a stream that is not open", PREFACE "\0\0\0\4\0\0\0\0\0\0\0\1\0\1\0\0\0\7x", 43 },
	{ "an even stream", PREFACE "\0\0\0\4\0\0\0\0\0\0\0\1\1\5\0\0\0\2\x82", 43 },
	{ "headers that are not HPACK", PREFACE "\0\0\0\4\0\0\0\0\0\0\0\1\1\5\0\0\0\1\xff", 43 },
	{ "half headers, then another frame", PREFACE "\0\0\0\4\0\0\0\0\0\0\0\1\1\0\0\0\0\1\x82\0\0\0\4\0\0\0\0\0",
	  52 },
};

static void test_nonsense(void **state)
{
	struct world world;
	struct peer good;

	assert_true(world_open(&world, NULL));
	open_watcher(&world, &good);
	for (size_t i = 0; i < GRAFT_COUNT(nonsense); i++) {
		struct peer peer;

		print_message("# %s\n", nonsense[i].name);
		open_peer(&world, &peer);
		assert_int_equal(graft_rpc_server_connections(world.server), 2);
		say(&peer, nonsense[i].bytes, nonsense[i].n);
		assert_true(world_until(&world, !hear(&peer)));
		assert_true(world_until(&world, graft_rpc_server_connections(world.server) == 1));
		close_peer(&peer);
	}
	graft_buffer_done(&good.heard);
	world_list(world.watcher, "Unhealthy", false);
	assert_hears(&good, "1: data\n");
	assert_non_null(memmem(good.data.bytes, good.data.length, "Unhealthy", 9));
	close_peer(&good);
	assert_true(world_until(&world, world.n_streams_ended == 1));
	assert_null(world.watcher);
	world_close(&world);
}

/* A peer that does not finish what it began is cut off: a greeting, headers, a message. */
static void test_half(void **state)
{
	const struct graft_rpc_server_options limits = { .request_limit_ms = 100 };
	struct world world;
	struct peer peer;

	assert_true(world_open(&world, &limits));
	open_peer(&world, &peer);
	say(&peer, PREFACE, 10);
	assert_true(world_until(&world, !hear(&peer)));
	close_peer(&peer);

	open_peer(&world, &peer);
	greet(&peer);
	say_headers(&peer, 1, false, allocate_headers);
	say_frame(&peer, NGHTTP2_DATA, 0, 1, ALLOCATE_5, 7);
	assert_hears(&peer, "1: reset 8\n");
	/* The connection is kept: the next request on it may be better. */
	say_headers(&peer, 3, false, allocate_headers);
	say_frame(&peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 3, ALLOCATE_5, sizeof(ALLOCATE_5) - 1);
	assert_hears(&peer, "3: grpc-status=0 end\n");
	assert_true(world_until(&world, graft_rpc_server_connections(world.server) == 1));
	close_peer(&peer);
	assert_true(world_until(&world, graft_rpc_server_connections(world.server) == 0));
	world_close(&world);
}

/* A call that is open keeps its connection; without one, the oldest makes room. */
static void test_connections(void **state)
{
	const struct graft_rpc_server_options limits = { .max_connections = 2 };
	struct peer watching, idle, next, last;
	struct world world;

	assert_true(world_open(&world, &limits));
	open_watcher(&world, &watching);
	open_peer(&world, &idle);
	greet(&idle);
	open_peer(&world, &next);
	assert_true(world_until(&world, !hear(&idle)));
	greet(&next);
	say_headers(&next, 1, false, allocate_headers);
	for (int i = 0; i < 5; i++)
		assert_int_equal(graft_loop_turn(&world.loop, 10, NULL), 0);
	last.fd = world_dial(&world);
	assert_int_equal(last.fd, -1);
	assert_true(hear(&watching));
	assert_true(hear(&next));
	assert_int_equal(graft_rpc_server_connections(world.server), 2);
	close_peer(&watching);
	close_peer(&idle);
	close_peer(&next);
	world_close(&world);
}

static void test_streams(void **state)
{
	const struct graft_rpc_server_options limits = { .max_streams = 4 };
	struct world world;
	struct peer peer;

	assert_true(world_open(&world, &limits));
	open_peer(&world, &peer);
	greet(&peer);
	for (uint32_t stream = 1; stream <= 9; stream += 2)
		say_headers(&peer, stream, false, allocate_headers);
	/* The fifth: refused stream, or as a violation of SETTINGS that have not been acknowledged yet. */
	assert_hears(&peer, "9: reset 7\n");
	say_frame(&peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, ALLOCATE_5, sizeof(ALLOCATE_5) - 1);
	assert_hears(&peer, "1: grpc-status=0 end\n");
	close_peer(&peer);
	world_close(&world);
}

/* A peer that does not read gets the newest state when it does, and costs no memory until then. */
static void test_slow_reader(void **state)
{
	struct world world;
	struct peer peer;

	assert_true(world_open(&world, NULL));
	open_watcher(&world, &peer);
	graft_buffer_done(&peer.data);
	for (int i = 0; i < 100000; i++)
		world_list(world.watcher, i % 2 == 0 ? "Unhealthy" : "Healthy", false);
	world_list(world.watcher, "the last one", false);
	/* Without further WINDOW_UPDATEs: 65,535 bytes of the stream fit. */
	for (int i = 0; i < 20; i++) {
		assert_int_equal(graft_loop_turn(&world.loop, 5, NULL), 0);
		assert_true(hear(&peer));
	}
	assert_true(peer.data.length <= 65535);
	say_frame(&peer, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\xff\xff", 4);
	say_frame(&peer, NGHTTP2_WINDOW_UPDATE, 0, 1, "\0\0\xff\xff", 4);
	assert_true(world_until(&world, hear(&peer) && peer.data.length > 12 &&
					    memcmp(peer.data.bytes + peer.data.length - 12, "the last one", 12) == 0));
	close_peer(&peer);
	world_close(&world);
}

static bool has_ended(struct world *world, struct peer *peer)
{
	(void)hear(peer);
	return graft_rpc_server_connections(world->server) == 0;
}

/* SECURITY: a peer that reads, but opens no window for the rest of an answer, is left; a stream that has nothing to say is not. */
static void test_closed_window(void **state)
{
	static const char allocate_100000[] = "\0\0\0\0\x0a\x0a\x08\x0a\6"
					      "100000";
	const struct graft_rpc_server_options limits = { .answer_limit_ms = 100 };
	struct world world;
	struct peer peer;

	assert_true(world_open(&world, &limits));
	open_watcher(&world, &peer);
	for (int64_t end = graft_clock_ms() + 400; graft_clock_ms() < end;)
		assert_int_equal(graft_loop_turn(&world.loop, 50, NULL), 0);
	assert_non_null(world.watcher);
	while (peer.data.length < 65000) {
		world_list(world.watcher, "Unhealthy", false);
		assert_int_equal(graft_loop_turn(&world.loop, 0, NULL), 0);
		assert_true(hear(&peer));
	}
	for (int i = 0; i < 100; i++)
		world_list(world.watcher, "Healthy", false);
	assert_true(world_until(&world, has_ended(&world, &peer)));
	assert_int_equal(world.n_streams_ended, 1);
	close_peer(&peer);

	open_peer(&world, &peer);
	greet(&peer);
	say_headers(&peer, 1, false, allocate_headers);
	say_frame(&peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, allocate_100000, sizeof(allocate_100000) - 1);
	assert_true(world_until(&world, hear(&peer) && peer.data.length == 65535));
	assert_true(world_until(&world, has_ended(&world, &peer)));
	close_peer(&peer);
	world_close(&world);
}

/* SECURITY: pings and settings want acknowledgements; a peer that does not read them is left. */
static void test_flood(void **state)
{
	struct graft_buffer flood = { 0 };
	struct world world;
	struct peer peer;
	size_t at = 0;

	assert_true(world_open(&world, NULL));
	open_peer(&world, &peer);
	greet(&peer);
	for (int i = 0; i < 200000; i++)
		add_frame(&flood, NGHTTP2_PING, 0, 0, "01234567", 8);
	while (at < flood.length && graft_rpc_server_connections(world.server) > 0) {
		ssize_t n = send(peer.fd, flood.bytes + at, flood.length - at, MSG_NOSIGNAL);

		if (n > 0)
			at += (size_t)n;
		assert_int_equal(graft_loop_turn(&world.loop, 10, NULL), 0);
	}
	assert_true(at < flood.length);
	graft_buffer_done(&flood);
	close_peer(&peer);
	world_close(&world);
}

/* Two large requests and a third one on one connection: the third is refused. */
static void test_memory(void **state)
{
	static const uint8_t chunk[16384];
	struct world world;
	struct peer peer;

	assert_true(world_open(&world, NULL));
	open_peer(&world, &peer);
	greet(&peer);
	for (uint32_t stream = 1; stream <= 5; stream += 2) {
		say_headers(&peer, stream, false, allocate_headers);
		say_frame(&peer, NGHTTP2_DATA, 0, stream, "\0\0\100\0\0", 5);
		for (size_t i = 0; i < GRAFT_RPC_MAX_MESSAGE / sizeof(chunk) - 1; i++) {
			say_frame(&peer, NGHTTP2_DATA, 0, stream, chunk, sizeof(chunk));
			if (i % 2 == 1) {
				/* What it may send is what was read. */
				assert_int_equal(graft_loop_turn(&world.loop, 10, NULL), 0);
				assert_true(hear(&peer));
			}
		}
	}
	assert_hears(&peer, "5: :status=200 content-type=application/grpc grpc-status=8 grpc-message=too many large "
			    "requests at once end\n");
	close_peer(&peer);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),    cmocka_unit_test(test_messages),
		cmocka_unit_test(test_nonsense),    cmocka_unit_test(test_half),
		cmocka_unit_test(test_connections), cmocka_unit_test(test_streams),
		cmocka_unit_test(test_slow_reader), cmocka_unit_test(test_closed_window),
		cmocka_unit_test(test_flood),       cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
