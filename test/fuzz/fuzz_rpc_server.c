/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes on a connection of the server: it answers or ends the connection, and holds nothing afterwards. */
#include "../unit/rpc/rpc_world.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world world = { 0 };
	const struct graft_rpc_server_options options = { .methods = world_methods,
							  .n_methods = GRAFT_COUNT(world_methods),
							  .service = &world,
							  .served = world_served };
	int fd;

	world.server = graft_rpc_server_new(&world.loop, &options);
	fd = world.server ? world_dial(&world) : -1;
	if (fd >= 0 && size <= 65536 && send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size) {
		(void)shutdown(fd, SHUT_WR);
		while (graft_rpc_server_connections(world.server) > 0 && graft_loop_turn(&world.loop, 1000, NULL) == 0)
			;
	}
	(void)close(fd);
	graft_rpc_server_free(world.server);
	graft_loop_done(&world.loop);
	return 0;
}
