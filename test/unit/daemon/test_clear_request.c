/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../folder.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/clear_request.h"

struct desk {
	struct graft_loop loop;
	struct clear_requests requests;
	char folder[64], state[80], taken[256];
};

static void note_request(void *arg, const char *name)
{
	struct desk *desk = arg;
	size_t length = strlen(desk->taken);

	(void)snprintf(desk->taken + length, sizeof(desk->taken) - length, "%s ", name);
}

static void open_desk(struct desk *desk)
{
	*desk = (struct desk){ .folder = "/tmp/graft-clear-XXXXXX" };
	assert_non_null(mkdtemp(desk->folder));
	(void)snprintf(desk->state, sizeof(desk->state), "%s/state", desk->folder);
}

static void close_desk(struct desk *desk)
{
	clear_requests_done(&desk->requests);
	clear_requests_done(&desk->requests);
	graft_loop_done(&desk->loop);
	assert_int_equal(test_remove_folder(desk->folder), 0);
}

/* Requests wait for a plugin, and are taken once. */
static void test_waiting(void **state)
{
	struct desk desk;
	struct stat st;
	char path[128];

	open_desk(&desk);
	assert_int_equal(clear_request_make(desk.state, "0000:3b:00.0", 0, NULL), 0);
	(void)snprintf(path, sizeof(path), "%s/clear-health", desk.state);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	clear_requests_begin(&desk.requests, &desk.loop, desk.state, NULL, note_request, &desk);
	assert_string_equal(desk.taken, "0000:3b:00.0 ");
	clear_requests_done(&desk.requests);
	clear_requests_begin(&desk.requests, &desk.loop, desk.state, NULL, note_request, &desk);
	assert_string_equal(desk.taken, "0000:3b:00.0 ");
	close_desk(&desk);
}

/* A plugin that runs takes them at once. */
static void test_at_once(void **state)
{
	struct desk desk;

	open_desk(&desk);
	clear_requests_begin(&desk.requests, &desk.loop, desk.state, NULL, note_request, &desk);
	assert_int_equal(clear_request_make(desk.state, CLEAR_ALL, 0, NULL), 0);
	for (int64_t end = graft_clock_ms() + 5000; desk.taken[0] == '\0' && graft_clock_ms() < end;)
		assert_int_equal(graft_loop_turn(&desk.loop, 50, NULL), 0);
	assert_string_equal(desk.taken, "all ");
	close_desk(&desk);
}

static void remove_state(const struct desk *desk)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/clear-health", desk->state);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(desk->state), 0);
}

static void turn_until_taken(struct desk *desk, const char *taken, int64_t ms)
{
	for (int64_t end = graft_clock_ms() + ms; strcmp(desk->taken, taken) != 0 && graft_clock_ms() < end;)
		assert_int_equal(graft_loop_turn(&desk->loop, 50, NULL), 0);
	assert_string_equal(desk->taken, taken);
}

/* Somebody removes the directories, twice: requests are taken at once even so. */
static void test_removed(void **state)
{
	struct desk desk;

	open_desk(&desk);
	clear_requests_begin(&desk.requests, &desk.loop, desk.state, NULL, note_request, &desk);
	for (int i = 0; i < 2; i++) {
		desk.taken[0] = '\0';
		remove_state(&desk);
		for (int k = 0; k < 3; k++)
			assert_int_equal(graft_loop_turn(&desk.loop, 50, NULL), 0);
		assert_int_equal(clear_request_make(desk.state, "0000:3b:00.0", 0, NULL), 0);
		turn_until_taken(&desk, "0000:3b:00.0 ", 3000);
	}
	/* At once after the removal. */
	desk.taken[0] = '\0';
	remove_state(&desk);
	assert_int_equal(clear_request_make(desk.state, CLEAR_ALL, 0, NULL), 0);
	turn_until_taken(&desk, "all ", 3000);
	assert_int_equal(desk.loop.n_watches, 1);
	assert_null(desk.loop.timers);
	close_desk(&desk);
}

/* Without a descriptor for inotify, they are looked for. */
static void test_no_inotify(void **state)
{
	struct rlimit before, none;
	struct desk desk;

	open_desk(&desk);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	clear_requests_begin(&desk.requests, &desk.loop, desk.state, NULL, note_request, &desk);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(desk.loop.n_watches, 0);
	assert_int_equal(clear_request_make(desk.state, "a", 0, NULL), 0);
	turn_until_taken(&desk, "a ", 10000);
	assert_int_equal(desk.loop.n_watches, 1);
	close_desk(&desk);
}

/* SECURITY: what cannot be removed would be taken for ever. */
static void test_stubborn(void **state)
{
	struct desk desk;
	char path[128];

	open_desk(&desk);
	assert_int_equal(clear_request_make(desk.state, "a", 0, NULL), 0);
	(void)snprintf(path, sizeof(path), "%s/clear-health/folder", desk.state);
	assert_int_equal(mkdir(path, 0700), 0);
	clear_requests_begin(&desk.requests, &desk.loop, desk.state, NULL, note_request, &desk);
	assert_string_equal(desk.taken, "a ");
	close_desk(&desk);
}

static void test_no_folder(void **state)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct desk desk;

	open_desk(&desk);
	assert_int_equal(clear_request_make("/proc/1/no", "a", 0, &err), -1);
	assert_string_equal(err.msg, "cannot write to /proc/1/no/clear-health");
	clear_requests_begin(&desk.requests, &desk.loop, "/proc/1/no", NULL, note_request, &desk);
	assert_int_equal(desk.loop.n_watches, 0);
	close_desk(&desk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waiting),    cmocka_unit_test(test_at_once),  cmocka_unit_test(test_removed),
		cmocka_unit_test(test_no_inotify), cmocka_unit_test(test_stubborn), cmocka_unit_test(test_no_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
