/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes of a server: the call ends once, with an answer or without one. */
#include <device_plugin.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "rpc/client.h"
#include "rpc/unix_socket.h"

static void note_end(void *arg, enum graft_rpc_status status, const char *text, const ProtobufCMessage *answer)
{
	int *n = arg;

	if ((status == GRAFT_RPC_OK) != (answer != NULL) || (answer && text[0] != '\0') || ++*n > 1)
		__builtin_trap();
}

/* Begins a call, and returns the server's end of its connection. */
static int begin_call(struct graft_loop *loop, const char *path, int *n_ends)
{
	V1beta1__RegisterRequest message;
	const struct graft_rpc_request request = { .socket = path,
						   .method = "/v1beta1.Registration/Register",
						   .message = &message.base,
						   .answer = &v1beta1__allocate_response__descriptor,
						   .deadline_ms = 20,
						   .done = note_end,
						   .arg = n_ends };
	struct graft_unix_socket listener = GRAFT_UNIX_SOCKET_INIT;
	int fd = -1;

	v1beta1__register_request__init(&message);
	if (graft_unix_listen(path, &listener, NULL) == 0 && graft_rpc_call(loop, &request, NULL))
		fd = accept4(listener.fd, NULL, NULL, SOCK_CLOEXEC);
	graft_unix_close(&listener);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char directory[] = "/tmp/graft-rpc-XXXXXX", path[96];
	struct graft_loop loop = { 0 };
	int n_ends = 0, fd;

	if (size > 65536 || !mkdtemp(directory))
		return 0;
	(void)snprintf(path, sizeof(path), "%s/service.sock", directory);
	fd = begin_call(&loop, path, &n_ends);
	if (fd < 0 || send(fd, data, size, MSG_NOSIGNAL) != (ssize_t)size || shutdown(fd, SHUT_WR) < 0)
		__builtin_trap();
	while (n_ends == 0 && graft_loop_turn(&loop, 1000, NULL) == 0)
		;
	(void)close(fd);
	graft_loop_done(&loop);
	(void)rmdir(directory);
	return 0;
}
