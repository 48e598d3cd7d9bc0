/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/hardware.h"

static void count_change(void *arg)
{
	(*(int *)arg)++;
}

static void turn_for(struct graft_loop *loop, int ms, const int *n)
{
	int before = *n;

	for (int64_t end = graft_clock_ms() + ms; graft_clock_ms() < end && *n == before;)
		assert_int_equal(graft_loop_turn(loop, 50, NULL), 0);
}

/* Device nodes that come and go, several at once, are one change. */
static void test_nodes(void **state)
{
	char folder[] = "/tmp/graft-hardware-XXXXXX", path[64], other[64];
	auto_loop struct graft_loop loop = { 0 };
	struct hardware hardware;
	int n = 0;

	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/nvidia0", folder);
	(void)snprintf(other, sizeof(other), "%s/nvidia1", folder);
	hardware_begin(&hardware, &loop, folder, NULL, count_change, &n);
	hardware_look_soon(&hardware);
	hardware_look_soon(&hardware);
	assert_int_equal(n, 0);
	turn_for(&loop, 5000, &n);
	assert_int_equal(n, 1);
	n = 0;
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(rename(path, other), 0);
	turn_for(&loop, 5000, &n);
	assert_int_equal(n, 1);
	assert_int_equal(unlink(other), 0);
	turn_for(&loop, 5000, &n);
	assert_int_equal(n, 2);
	hardware_done(&hardware);
	assert_int_equal(loop.n_watches, 0);
	assert_null(loop.timers);
	assert_int_equal(rmdir(folder), 0);
}

/* Has the kernel make an event of a device. Returns whether it does. */
static bool make_event(const char *device)
{
	char path[600];
	auto_close int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/uevent", device);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, "change", 6) == 6;
}

static bool make_pci_event(void)
{
	DIR *folder = opendir("/sys/bus/pci/devices");
	const struct dirent *entry;
	char path[512];
	bool made = false;

	while (folder && !made && (entry = readdir(folder))) {
		(void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", entry->d_name);
		made = entry->d_name[0] != '.' && make_event(path);
	}
	if (folder)
		(void)closedir(folder);
	return made;
}

/* The kernel's events of PCI devices count, those of virtual devices wake nobody. */
static void test_events(void **state)
{
	auto_loop struct graft_loop loop = { 0 };
	struct hardware hardware;
	int n = 0;
	bool made;

	hardware_begin(&hardware, &loop, "/", NULL, count_change, &n);
	if (!make_event("/sys/class/mem/null")) {
		hardware_done(&hardware);
		skip();
	}
	for (int i = 0; i < 5 && loop.n_watches > 0; i++)
		assert_int_equal(graft_loop_turn(&loop, 50, NULL), 0);
	assert_null(hardware.settle.link);
	made = make_pci_event();
	turn_for(&loop, made ? 5000 : 100, &n);
	assert_int_equal(n, made ? 1 : 0);
	hardware_done(&hardware);
}

/* What cannot be watched is no error, and ending twice does no harm. */
static void test_nothing_there(void **state)
{
	auto_loop struct graft_loop loop = { 0 };
	struct hardware hardware;
	int n = 0;

	hardware_begin(&hardware, &loop, "/tmp/graft-no-such-folder", NULL, count_change, &n);
	assert_int_equal(hardware.nodes.fd, -1);
	/* It is looked for instead, again and again. */
	for (int i = 1; i <= 2; i++) {
		assert_non_null(hardware.poll.link);
		assert_true(hardware.poll.at_ms > graft_clock_ms() + HARDWARE_POLL_MS / 2);
		graft_loop_set_timer(&loop, &hardware.poll, 0);
		assert_int_equal(graft_loop_turn(&loop, 0, NULL), 0);
		assert_int_equal(n, i);
	}
	hardware_done(&hardware);
	hardware_done(&hardware);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_nothing_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
