/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd_bus: the requests to systemd, and every way in which systemd, its bus or its library may
 * be missing.
 */
#include "../allocation.h"
#include "../unit.h"
#include "apply/cgroup/systemd_bus.h"
#include "base/clock.h"
#include "fake_systemd.h"

static char log_text[2048];

static void note(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	size_t used = strlen(log_text);

	(void)snprintf(log_text + used, sizeof(log_text) - used, "%s\n", message);
}

static const struct graft_log logger = { .write = note, .max = GRAFT_LOG_DEBUG };

static int setup(void **state)
{
	log_text[0] = '\0';
	return 0;
}

static const struct graft_systemd_allow two[] = { { "/dev/char/195:0", "rw" }, { "/dev/char/195:255", "rwm" } };

static void expect_error(const struct graft_error *err, enum graft_status status, const char *part)
{
	char text[1024];

	assert_int_equal(err->status, status);
	if (!strstr(graft_error_text(err, text, sizeof(text)), part))
		fail_msg("'%s' is not in '%s'", part, text);
}

/* Opens, reads and allows; the result is that of the first function that fails. */
static int do_all(const struct graft_systemd *systemd, struct graft_systemd_unit *ret_unit, struct graft_arena *arena,
		  struct graft_error *err)
{
	struct graft_systemd_bus *bus = NULL;
	int r = graft_systemd_bus_open(systemd, &logger, &bus, err);

	if (r > 0 && graft_systemd_bus_read(bus, "docker-1.scope", arena, ret_unit, err) < 0)
		r = -1;
	if (r > 0 && graft_systemd_bus_allow(bus, "docker-1.scope", two, 2, err) < 0)
		r = -1;
	graft_systemd_bus_close(bus);
	return r;
}

static int talk(struct fake_systemd *fake, bool is_bus, int timeout_ms, struct graft_error *err)
{
	const struct graft_systemd_address addresses[] = { { "unix:path=/nonexistent/private", false },
							   { fake->address, is_bus },
							   { NULL, false } };
	const struct graft_systemd systemd = { "libsystemd.so.0", addresses, timeout_ms };
	struct graft_arena *arena = graft_arena_new(1 << 20);
	struct graft_systemd_unit unit = { 0 };
	int r;

	assert_non_null(arena);
	r = do_all(&systemd, &unit, arena, err);
	if (r > 0) {
		assert_string_equal(unit.control_group, fake->control_group);
		assert_string_equal(unit.device_policy, fake->policy);
		assert_int_equal(unit.n_allows, fake->n_allows);
		for (size_t i = 0; i < unit.n_allows; i++) {
			assert_string_equal(unit.allows[i].node, fake->allows[i][0]);
			assert_string_equal(unit.allows[i].access, fake->allows[i][1]);
		}
	}
	(void)graft_arena_free(arena);
	return r;
}

static struct fake_systemd ordinary(enum fake_mode mode)
{
	return (struct fake_systemd){
		.mode = mode,
		.control_group = "/system.slice/docker-1.scope",
		.policy = "strict",
		.allows = { { "/dev/char/1:3", "rwm" }, { "char-pts", "rwm" } },
		.n_allows = 2,
	};
}

/* Through systemd's own socket and through a bus. */
static void test_talk(void **state)
{
	for (int is_bus = 0; is_bus < 2; is_bus++) {
		struct fake_systemd fake = ordinary(FAKE_ANSWERS);
		struct graft_error err = { 0 };

		fake_start(&fake);
		assert_int_equal(talk(&fake, is_bus, 5000, &err), 1);
		assert_string_equal(fake.shared->told, "docker-1.scope 1 /dev/char/195:0=rw /dev/char/195:255=rwm");
		/* Three queries and one order. */
		assert_int_equal(fake.shared->n_calls, 4);
		fake_stop(&fake);
	}
	assert_non_null(strstr(log_text, "no systemd at unix:path=/nonexistent/private: No such file or directory"));
}

static void test_empty_unit(void **state)
{
	struct fake_systemd fake = { .control_group = "", .policy = "auto" };
	struct graft_error err = { 0 };

	fake_start(&fake);
	assert_int_equal(talk(&fake, false, 5000, &err), 1);
	fake_stop(&fake);
}

/* Each fails soon and reports what happened. */
static void test_refusals(void **state)
{
	static const struct {
		enum fake_mode mode;
		bool is_bus;
		enum graft_status status;
		const char *part;
	} rows[] = {
		{ FAKE_REFUSES, false, GRAFT_PERMISSION,
		  "systemd refused to add the devices to the container's scope: nobody may do that" },
		{ FAKE_NEVER_GREETS, false, GRAFT_TIMEOUT, "systemd did not answer in time" },
		{ FAKE_NEVER_GREETS, true, GRAFT_TIMEOUT, "systemd did not answer in time" },
		{ FAKE_NEVER_ANSWERS, false, GRAFT_TIMEOUT, "systemd did not answer in time" },
		{ FAKE_NEVER_ANSWERS, true, GRAFT_TIMEOUT, "systemd did not answer in time" },
		{ FAKE_HANGS_UP, false, GRAFT_IO, "cannot connect to systemd" },
		{ FAKE_SPEAKS_NONSENSE, false, GRAFT_IO, "cannot parse systemd's answer" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fake_systemd fake = ordinary(rows[i].mode);
		struct graft_error err = { 0 };
		int64_t before = graft_clock_ms();

		fake_start(&fake);
		print_message("row %zu\n", i);
		assert_int_equal(talk(&fake, rows[i].is_bus, 300, &err), -1);
		expect_error(&err, rows[i].status, rows[i].part);
		/* By default sd-bus waits 25 s for a connection. */
		assert_true(graft_clock_ms() - before < 10000);
		assert_string_equal(fake.shared->told, "");
		fake_stop(&fake);
	}
}

/* The time limit is for all calls together. */
static void test_time_is_over(void **state)
{
	struct fake_systemd fake = ordinary(FAKE_ANSWERS);
	struct graft_error err = { 0 };

	fake_start(&fake);
	assert_int_equal(talk(&fake, false, 0, &err), -1);
	expect_error(&err, GRAFT_TIMEOUT, "systemd did not answer in time");
	fake_stop(&fake);
}

/* It is not an error if there is nothing to connect to. */
static void test_nobody(void **state)
{
	static const struct graft_systemd_address nobody[] = { { "unix:path=/nonexistent/private", false },
							       { "unix:path=/nonexistent/bus", true },
							       { NULL, false } };
	static const struct {
		struct graft_systemd systemd;
		const char *log;
	} rows[] = {
		{ { "libsystemd.so.0", nobody, 1000 },
		  "systemd was not informed of the devices: it is not listening\n" },
		{ { "libsystemd.so.0", nobody + 2, 1000 },
		  "systemd was not informed of the devices: it is not listening\n" },
		{ { "libgraft-none.so.0", nobody, 1000 },
		  "systemd was not informed of the devices: libgraft-none.so.0: cannot open shared object file" },
		{ { "libc.so.6", nobody, 1000 },
		  "systemd was not informed of the devices: libc.so.6 lacks sd_bus_new\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct graft_systemd_bus *bus = NULL;
		struct graft_error err = { 0 };

		log_text[0] = '\0';
		assert_int_equal(graft_systemd_bus_open(&rows[i].systemd, &logger, &bus, &err), 0);
		assert_null(bus);
		assert_int_equal(err.status, GRAFT_OK);
		assert_non_null(strstr(log_text, rows[i].log));
	}
	graft_systemd_bus_close(NULL);
}

/* Environment variables cannot change the address. */
static void test_environment(void **state)
{
	struct fake_systemd fake = ordinary(FAKE_ANSWERS);
	static const struct graft_systemd_address nobody[] = { { "unix:path=/nonexistent/bus", true },
							       { NULL, false } };
	const struct graft_systemd systemd = { "libsystemd.so.0", nobody, 1000 };
	struct graft_systemd_bus *bus = NULL;
	struct graft_error err = { 0 };

	fake_start(&fake);
	assert_int_equal(setenv("DBUS_SYSTEM_BUS_ADDRESS", fake.address, 1), 0);
	assert_int_equal(setenv("DBUS_STARTER_ADDRESS", fake.address, 1), 0);
	assert_int_equal(graft_systemd_bus_open(&systemd, &logger, &bus, &err), 0);
	assert_int_equal(unsetenv("DBUS_SYSTEM_BUS_ADDRESS") + unsetenv("DBUS_STARTER_ADDRESS"), 0);
	assert_int_equal(fake.shared->n_calls, 0);
	fake_stop(&fake);
}

static void test_no_memory(void **state)
{
	struct fake_systemd fake = ordinary(FAKE_ANSWERS);

	fake_start(&fake);
	for (int n = 1;; n++) {
		const struct graft_systemd_address addresses[] = { { fake.address, false }, { NULL, false } };
		const struct graft_systemd systemd = { "libsystemd.so.0", addresses, 5000 };
		struct graft_arena *arena = graft_arena_new(1 << 20);
		struct graft_systemd_unit unit = { 0 };
		struct graft_error err = { 0 };
		int r;

		assert_non_null(arena);
		allocation_fail(n);
		r = do_all(&systemd, &unit, arena, &err);
		(void)graft_arena_free(arena);
		if (!allocation_failed()) {
			assert_int_equal(r, 1);
			assert_true(n > 2);
			break;
		}
		assert_int_equal(r, -1);
		assert_int_equal(err.status, GRAFT_NO_MEMORY);
	}
	fake_stop(&fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_talk, setup),      cmocka_unit_test_setup(test_empty_unit, setup),
		cmocka_unit_test_setup(test_refusals, setup),  cmocka_unit_test_setup(test_time_is_over, setup),
		cmocka_unit_test_setup(test_nobody, setup),    cmocka_unit_test_setup(test_environment, setup),
		cmocka_unit_test_setup(test_no_memory, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
