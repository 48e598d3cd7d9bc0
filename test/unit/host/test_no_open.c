/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discovery wakes no GPU: under strace it opens no device node of the driver and starts no process, whatever it looks
 * for. The program runs itself: with a root directory as argument it discovers, without one it is the test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "fixture.h"

static const char *self;

static int discover(const char *root, const char *host)
{
	const uint32_t channel = 0;
	const struct graft_host_options options = { .root = root,
						    .host_root = host,
						    .capabilities = GRAFT_CAP_ALL,
						    .imex_channels = &channel,
						    .n_imex_channels = 1 };
	struct graft_inventory *inventory;
	struct graft_error err;
	size_t n;

	if (graft_host_discover(&options, GRAFT_NEED_ALL, &inventory, &err) < 0)
		return 3;
	n = inventory->n_gpus;
	(void)graft_inventory_free(inventory);
	return n == 2 ? 0 : 4;
}

/* Lines of the trace that open or create (openat without O_PATH), or start a process. */
static void check_trace(FILE *trace)
{
	int n_lines = 0, n_opened = 0;
	char line[4096];

	while (fgets(line, sizeof(line), trace)) {
		n_lines++;
		if (strstr(line, "execve(") && n_lines > 1)
			fail_msg("started a program: %s", line);
		if (strstr(line, "clone") || strstr(line, "fork("))
			fail_msg("started a process: %s", line);
		if (!strstr(line, "open"))
			continue;
		n_opened++;
		if (strstr(line, "nvidia0") || strstr(line, "nvidia1\"") || strstr(line, "nvidiactl") ||
		    strstr(line, "nvidia-uvm\"") || strstr(line, "nvidia-modeset") || strstr(line, "nvidia-cap12") ||
		    strstr(line, "channel0"))
			fail_msg("opened a device node: %s", line);
	}
	/* The trace is not empty, and it is the trace of a discovery. */
	assert_true(n_opened > 10);
}

static void test_opens_no_node_and_starts_nothing(void **state)
{
	char command[1024], trace_path[128];
	struct fixture fixture;
	FILE *trace;

	if (system("command -v strace >/dev/null 2>&1") != 0 || !fixture_has_nodes())
		skip();
	fixture_init(&fixture);
	fixture_kernel(&fixture, FIXTURE_VERSION);
	fixture_gpu(&fixture, "0000:1b:00.0", 0, "GPU-0", "NVIDIA A100");
	fixture_gpu(&fixture, "0000:2c:00.0", 1, "GPU-\?\?\?\?", "NVIDIA A100");
	fixture_write(&fixture, "/proc/driver/nvidia/capabilities/gpu1/mig/gi1/access", "DeviceFileMinor: 12\n");
	fixture_write(&fixture, "/proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0/access", "DeviceFileMinor: 13\n");
	fixture_node(&fixture, "/dev/nvidia-caps/nvidia-cap12", 234, 12, 0444);
	fixture_node(&fixture, "/dev/nvidia-caps-imex-channels/channel0", 235, 0, 0666);
	fixture_libraries(&fixture, FIXTURE_LIBDIR, FIXTURE_VERSION);
	(void)snprintf(trace_path, sizeof(trace_path), "%s/trace", fixture.top);
	(void)snprintf(command, sizeof(command),
		       "ASAN_OPTIONS=detect_leaks=0 exec strace -f -o '%s' -e trace=file,process '%s' '%s' '%s'",
		       trace_path, self, fixture.root, fixture.host);
	assert_int_equal(system(command), 0);
	trace = fopen(trace_path, "re");
	assert_non_null(trace);
	check_trace(trace);
	(void)fclose(trace);
	fixture_done(&fixture);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_opens_no_node_and_starts_nothing) };

	self = argv[0];
	if (argc == 3)
		return discover(argv[1], argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
