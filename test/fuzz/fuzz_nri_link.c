/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes of an engine, in pieces: each call is answered once, and the link ends at most once. */
#include <nri.pb-c.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "rpc/ttrpc_link.h"

struct fuzzed {
	struct graft_ttrpc_link link;
	bool ended;
};

static void serve_any(void *service, struct graft_ttrpc_call *call)
{
	struct fuzzed *fuzzed = service;

	if (call->stream % 2 == 0)
		graft_ttrpc_link_refuse(&fuzzed->link, call->stream, GRAFT_RPC_UNKNOWN, "no");
	else
		graft_ttrpc_link_reply(&fuzzed->link, call->stream, call->message);
}

static void note_answer(void *arg, enum graft_rpc_status status, const char *text)
{
	(void)arg;
	(void)status;
	if (!text)
		__builtin_trap();
}

static void note_link_end(void *arg, const struct graft_error *why)
{
	struct fuzzed *fuzzed = arg;

	if (fuzzed->ended || why->status == GRAFT_OK)
		__builtin_trap();
	fuzzed->ended = true;
}

static void feed(struct fuzzed *fuzzed, struct graft_loop *loop, int engine, const uint8_t *data, size_t size)
{
	size_t step = 1u + data[0] * 16u;
	char sink[65536];

	for (size_t at = 0; at < size && !fuzzed->ended; at += step) {
		(void)send(engine, data + at, step < size - at ? step : size - at, MSG_NOSIGNAL | MSG_DONTWAIT);
		(void)graft_loop_turn(loop, 0, NULL);
		while (recv(engine, sink, sizeof(sink), MSG_DONTWAIT) > 0)
			;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const Nri__Pkg__Api__V1alpha1__Empty empty = NRI__PKG__API__V1ALPHA1__EMPTY__INIT;
	static const struct graft_ttrpc_method methods[] = {
		{ "CreateContainer", &nri__pkg__api__v1alpha1__create_container_request__descriptor, serve_any },
		{ "Synchronize", &nri__pkg__api__v1alpha1__synchronize_request__descriptor, serve_any },
	};
	struct fuzzed fuzzed = { .ended = false };
	const struct graft_ttrpc_link_options options = { .service = "nri.pkg.api.v1alpha1.Plugin",
							  .methods = methods,
							  .n_methods = 2,
							  .empty = &empty.base,
							  .arg = &fuzzed,
							  .ended = note_link_end };
	struct graft_loop loop = { 0 };
	int fds[2];

	if (size == 0 || size > 65536 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return 0;
	if (graft_ttrpc_link_begin(&fuzzed.link, &loop, fds[0], &options, NULL) == 0) {
		(void)graft_ttrpc_link_call(&fuzzed.link, "nri.pkg.api.v1alpha1.Runtime", "RegisterPlugin", &empty.base,
					    note_answer, NULL);
		feed(&fuzzed, &loop, fds[1], data, size);
	}
	graft_ttrpc_link_done(&fuzzed.link);
	graft_loop_done(&loop);
	(void)close(fds[1]);
	return 0;
}
