/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <unistd.h>

#include "../unit.h"
#include "base/clock.h"
#include "rpc/loop.h"

struct end {
	struct graft_loop *loop;
	struct graft_loop_watch watch;
	struct graft_loop_timer timer;
	struct end *victim; /* forgotten when this one is ready */
	int n_ready, n_due, write_fd;
	int64_t again_ms; /* the timer is set again to that; 0 = not */
};

static void end_ready(void *arg, short events)
{
	struct end *end = arg;
	char byte;

	assert_true((events & POLLIN) != 0);
	assert_int_equal(read(end->watch.fd, &byte, 1), 1);
	end->n_ready++;
	if (end->victim)
		graft_loop_forget(end->loop, &end->victim->watch);
}

static void end_due(void *arg)
{
	struct end *end = arg;

	end->n_due++;
	if (end->again_ms > 0)
		graft_loop_set_timer(end->loop, &end->timer, end->again_ms);
	else
		graft_loop_stop(end->loop);
}

static void open_end(struct graft_loop *loop, struct end *end)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	*end = (struct end){ .loop = loop, .write_fd = fds[1] };
	end->watch = (struct graft_loop_watch){ .fd = fds[0], .events = POLLIN, .ready = end_ready, .arg = end };
	end->timer = (struct graft_loop_timer){ .due = end_due, .arg = end };
	assert_int_equal(graft_loop_watch(loop, &end->watch, NULL), 0);
}

static void close_end(struct end *end)
{
	(void)close(end->watch.fd);
	(void)close(end->write_fd);
}

/* More descriptors than the lists begin with; those that are ready are called, and only those. */
static void test_ready(void **state)
{
	auto_loop struct graft_loop loop = { 0 };
	struct end ends[40];

	for (int i = 0; i < 40; i++)
		open_end(&loop, &ends[i]);
	for (int i = 0; i < 40; i += 3)
		assert_int_equal(write(ends[i].write_fd, "x", 1), 1);
	assert_int_equal(graft_loop_turn(&loop, 1000, NULL), 0);
	for (int i = 0; i < 40; i++)
		assert_int_equal(ends[i].n_ready, i % 3 == 0);
	for (int i = 0; i < 40; i++)
		close_end(&ends[i]);
}

/*
 * A source that is removed during a turn is not called in it, whatever its position; the others
 * are, in this turn or the next.
 */
static void test_forget(void **state)
{
	for (int killer = 0; killer < 4; killer++) {
		for (int victim = 0; victim < 4; victim++) {
			auto_loop struct graft_loop loop = { 0 };
			struct end ends[4];
			int called_before = victim < killer || victim == killer;

			for (int i = 0; i < 4; i++)
				open_end(&loop, &ends[i]);
			ends[killer].victim = &ends[victim];
			for (int i = 0; i < 4; i++)
				assert_int_equal(write(ends[i].write_fd, "x", 1), 1);
			assert_int_equal(graft_loop_turn(&loop, 1000, NULL), 0);
			assert_int_equal(graft_loop_turn(&loop, 0, NULL), 0);
			assert_int_equal(loop.n_watches, 3);
			for (int i = 0; i < 4; i++)
				assert_int_equal(ends[i].n_ready, i != victim || called_before);
			graft_loop_forget(&loop, &ends[victim].watch);
			assert_int_equal(loop.n_watches, 3);
			for (int i = 0; i < 4; i++)
				close_end(&ends[i]);
		}
	}
}

static void test_timers(void **state)
{
	auto_loop struct graft_loop loop = { 0 };
	struct end late, early, never;
	int64_t began = graft_clock_ms();

	open_end(&loop, &late);
	open_end(&loop, &early);
	open_end(&loop, &never);
	graft_loop_set_timer(&loop, &late.timer, 60);
	graft_loop_set_timer(&loop, &never.timer, 30);
	graft_loop_set_timer(&loop, &early.timer, 9999);
	graft_loop_set_timer(&loop, &early.timer, 10);
	graft_loop_clear_timer(&never.timer);
	graft_loop_clear_timer(&never.timer);
	early.again_ms = 15;
	assert_int_equal(graft_loop_run(&loop, NULL), 0);
	assert_true(graft_clock_ms() - began >= 60);
	assert_int_equal(late.n_due, 1);
	assert_true(early.n_due >= 1);
	assert_int_equal(never.n_due, 0);
	/* A turn without a limit waits for the timer and no longer. */
	early.again_ms = 0;
	assert_int_equal(graft_loop_turn(&loop, -1, NULL), 0);
	assert_null(loop.timers);
	close_end(&late);
	close_end(&early);
	close_end(&never);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ready),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_timers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
