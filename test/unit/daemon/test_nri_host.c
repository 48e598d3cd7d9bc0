/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/stat.h>

#include "../unit.h"
#include "daemon/nri_host.h"
#include "nri_world.h"

struct watched {
	struct graft_loop loop;
	struct graft_arena *arena;
	struct graft_config config;
	struct graft_nri_policy policy;
	struct nri_host host;
	const char *directories[1];
	char directory[64];
	int n_renewed;
};

static void note_renewal(void *arg)
{
	((struct watched *)arg)->n_renewed++;
}

static int setup_host(void **state)
{
	struct watched *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	hide_host();
	w->arena = graft_arena_new((size_t)16 << 20);
	assert_int_equal(graft_config_defaults(NULL, w->arena, &w->config, NULL), 0);
	(void)snprintf(w->directory, sizeof(w->directory), "/tmp/graft-nri-host-XXXXXX");
	assert_non_null(mkdtemp(w->directory));
	w->directories[0] = w->directory;
	w->config.runtime.cdi_spec_dirs = (struct graft_strings){ .items = w->directories, .n = 1 };
	w->policy.config = &w->config;
	w->policy.management_kind = "management.nvidia.com/gpu";
	w->host = (struct nri_host){ .loop = &w->loop, .policy = &w->policy, .renewed = note_renewal, .arg = w };
	*state = w;
	return 0;
}

static int teardown_host(void **state)
{
	struct watched *w = *state;

	hidden->waits = false;
	nri_host_done(&w->host);
	nri_host_done(&w->host);
	assert_int_equal(w->loop.n_watches, 0);
	assert_null(w->loop.timers);
	graft_loop_done(&w->loop);
	(void)graft_arena_free(w->arena);
	assert_int_equal(rmdir(w->directory), 0);
	reap_readers();
	show_host();
	free(w);
	return 0;
}

static void turn_host(struct watched *w)
{
	assert_int_equal(graft_loop_turn(&w->loop, 20, NULL), 0);
	reap_readers();
}

static bool is_known(struct watched *w, uint64_t number)
{
	struct graft_nri_host host;

	return nri_host_is_known(&w->host, number, &host);
}

static void await_known(struct watched *w, uint64_t number)
{
	for (int64_t end = graft_clock_ms() + WORLD_LIMIT_MS; !is_known(w, number);) {
		assert_true(graft_clock_ms() < end);
		turn_host(w);
	}
}

static void await_begun(struct watched *w, int n)
{
	for (int64_t end = graft_clock_ms() + WORLD_LIMIT_MS; hidden->n_begun < n;) {
		assert_true(graft_clock_ms() < end);
		turn_host(w);
	}
}

static void test_first_reading(void **state)
{
	struct watched *w = *state;

	hidden->waits = true;
	nri_host_begin(&w->host);
	assert_false(is_known(w, 0));
	hidden->waits = false;
	await_known(w, 0);
	assert_int_equal(w->host.inventory->n_gpus, 8);
	assert_true(w->n_renewed >= 1);
}

/* From an event on, the numbers of nodes are old; a reading that began before it does not make them new. */
static void test_driver_is_loaded_again(void **state)
{
	struct watched *w = *state;
	uint32_t minor;

	nri_host_begin(&w->host);
	await_known(w, 0);
	minor = w->host.inventory->gpus[0].node.minor;

	w->host.hardware.noticed(&w->host);
	assert_false(is_known(w, 0));
	hidden->waits = true;
	await_begun(w, 2);
	/* That reading has the old numbers. */
	hidden->minor_of = 3;
	w->host.hardware.noticed(&w->host);
	hidden->waits = false;
	await_known(w, 0);
	assert_true(hidden->n_begun >= 3);
	assert_int_equal(w->host.inventory->gpus[0].node.minor, minor + 3);
}

static void touch_node(const struct watched *w, const char *name)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", w->directory, name);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(unlink(path), 0);
}

/* An event that waits to be read came before the question; those of containers do not count. */
static void test_event_that_waits(void **state)
{
	struct watched *w = *state;
	struct hardware *hardware = &w->host.hardware;
	void (*noticed)(void *arg), (*changed)(void *arg);

	nri_host_begin(&w->host);
	noticed = hardware->noticed;
	changed = hardware->changed;
	hardware_done(hardware);
	hardware_begin(hardware, &w->loop, w->directory, NULL, changed, &w->host);
	hardware->noticed = noticed;
	await_known(w, 0);
	touch_node(w, "loop7");
	assert_true(is_known(w, 0));
	touch_node(w, "nvidia0");
	assert_false(is_known(w, 0));
	await_known(w, 0);
}

/* One that is asked for is one that begins afterwards. */
static void test_renewal_during_a_reading(void **state)
{
	struct watched *w = *state;
	uint64_t number;

	hidden->waits = true;
	hidden->n_gpus = 2;
	nri_host_begin(&w->host);
	await_begun(w, 1);
	hidden->n_gpus = 4;
	number = nri_host_renew(&w->host);
	hidden->waits = false;
	await_known(w, 0);
	assert_false(is_known(w, number));
	assert_int_equal(w->host.inventory->n_gpus, 2);
	await_known(w, number);
	assert_int_equal(w->host.inventory->n_gpus, 4);
}

static void test_reading_without_end(void **state)
{
	struct watched *w = *state;

	w->host.limit_s = 1;
	hidden->waits = true;
	nri_host_begin(&w->host);
	await_known(w, 0);
	assert_int_equal(w->host.inventory->n_gpus, 0);
	assert_string_equal(w->host.why.msg, "the process that reads the host ended without an answer");
	/* It goes on. */
	hidden->waits = false;
	await_known(w, nri_host_renew(&w->host));
	assert_int_equal(w->host.inventory->n_gpus, 8);
}

static void test_failures(void **state)
{
	struct watched *w = *state;

	hidden->n_gpus = 0;
	nri_host_begin(&w->host);
	await_known(w, 0);
	assert_int_equal(w->host.why.status, GRAFT_NO_DRIVER);
	assert_string_equal(w->host.why.msg, "the driver has been taken out");
	hidden->dies = true;
	await_known(w, nri_host_renew(&w->host));
	assert_int_equal(w->host.why.status, GRAFT_IO);
	assert_int_equal(w->host.inventory->n_gpus, 0);
}

/* A specification that is written makes what was known old; a steady stream does not put the reading off. */
static void test_specifications(void **state)
{
	static const char *const allowed[] = { "example.com/thing:*" };
	struct watched *w = *state;
	char path[128];
	int n_begun;

	w->config.nri.allowed = (struct graft_strings){ .items = (const char **)(uintptr_t)allowed, .n = 1 };
	nri_host_begin(&w->host);
	await_known(w, 0);
	assert_int_equal(w->host.registry.n_specs, 0);
	n_begun = hidden->n_begun;
	(void)snprintf(path, sizeof(path), "%s/thing.json", w->directory);
	for (int64_t end = graft_clock_ms() + WORLD_LIMIT_MS; hidden->n_begun == n_begun;) {
		FILE *file = fopen(path, "we");

		assert_non_null(file);
		(void)fputs(
		    "{\"cdiVersion\": \"0.5.0\", \"kind\": \"example.com/thing\", \"devices\": [{\"name\": \"0\", "
		    "\"containerEdits\": {\"env\": [\"A=1\"]}}]}",
		    file);
		assert_int_equal(fclose(file), 0);
		assert_false(is_known(w, 0));
		assert_true(graft_clock_ms() < end);
		turn_host(w);
	}
	await_known(w, 0);
	assert_int_equal(w->host.registry.n_specs, 1);
	assert_int_equal(unlink(path), 0);
	assert_false(is_known(w, 0));
	await_known(w, 0);
	assert_int_equal(w->host.registry.n_specs, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_host, teardown_host)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_first_reading),       TEST(test_driver_is_loaded_again),
		TEST(test_event_that_waits),    TEST(test_renewal_during_a_reading),
		TEST(test_reading_without_end), TEST(test_failures),
		TEST(test_specifications),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
