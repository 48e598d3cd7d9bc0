/* SPDX-License-Identifier: Apache-2.0 */
/* The server as a client of another implementation sees it: Debian's python3-grpcio, driven by grpcio_peer.py. */
#include <spawn.h>
#include <sys/wait.h>

#include "../unit.h"
#include "rpc_world.h"

extern char **environ;

/* The peer changes what is watched with Allocate: after each answer there is something new to see. */
static void push_after(void *arg)
{
	struct world *world = arg;

	if (world->watcher)
		world_list(world->watcher, "Unhealthy", false);
}

static int run_peer(struct world *world, const char *script)
{
	char *argv[] = { (char *)(uintptr_t) "/usr/bin/python3", (char *)(uintptr_t)script, world->path, NULL };
	struct graft_loop_timer push = { .due = push_after, .arg = world };
	int status = -1, seen = 0;
	pid_t pid;

	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0)
		return 77;
	for (int i = 0; i < 6000 && waitpid(pid, &status, WNOHANG) == 0; i++) {
		assert_int_equal(graft_loop_turn(&world->loop, 10, NULL), 0);
		if (world->n_served != seen)
			graft_loop_set_timer(&world->loop, &push, 20);
		seen = world->n_served;
	}
	graft_loop_clear_timer(&push);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_peer(void **state)
{
	const char *source = getenv("GRAFT_SOURCE_ROOT");
	char script[512];
	struct world world;
	int status;

	(void)snprintf(script, sizeof(script), "%s/test/unit/rpc/grpcio_peer.py", source ? source : ".");
	assert_true(world_open(&world, NULL));
	status = run_peer(&world, script);
	world_close(&world);
	if (status == 77)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
