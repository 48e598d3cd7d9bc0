/* SPDX-License-Identifier: Apache-2.0 */
/* A restart over systemd's socket: by libsystemd's own idea of D-Bus, and what is no D-Bus at all. */
#include "../../unit.h"

#include "../../apply/fake_systemd.h"
#include "base/cleanup.h"
#include "cli/installer/systemd_unit.h"

#define SHORT_MS 200
#define LONG_MS  10000

static int restart(const struct fake_systemd *fake, int timeout_ms, struct graft_error *err)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/private", fake->directory);
	return installer_systemd_restart(path, "crio.service", timeout_ms, err);
}

static void test_restarted(void **state)
{
	struct fake_systemd fake = { .mode = FAKE_ANSWERS };
	struct graft_error err;

	fake_start(&fake);
	assert_int_equal(restart(&fake, LONG_MS, &err), 0);
	assert_string_equal(fake.shared->told, "restart crio.service replace");
	fake_stop(&fake);
}

static void test_modes(void **state)
{
	static const struct {
		enum fake_mode mode;
		enum graft_status status;
		int timeout_ms;
		const char *text;
	} rows[] = {
		{ FAKE_REFUSES, GRAFT_PROGRAM, LONG_MS,
		  "systemd does not restart crio.service: org.freedesktop.systemd1.NoSuchUnit" },
		{ FAKE_NEVER_GREETS, GRAFT_TIMEOUT, SHORT_MS, "systemd does not answer" },
		{ FAKE_NEVER_ANSWERS, GRAFT_TIMEOUT, SHORT_MS, "systemd does not answer" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct fake_systemd fake = { .mode = rows[i].mode };
		struct graft_error err;
		char text[512];

		fake_start(&fake);
		assert_int_equal(restart(&fake, rows[i].timeout_ms, &err), -1);
		assert_int_equal(err.status, rows[i].status);
		assert_string_equal(graft_error_text(&err, text, sizeof(text)), rows[i].text);
		fake_stop(&fake);
	}
}

static void test_hangs_up(void **state)
{
	struct fake_systemd fake = { .mode = FAKE_HANGS_UP };
	struct graft_error err;

	fake_start(&fake);
	/* Which of the two is noticed depends on who is first. */
	assert_int_equal(restart(&fake, LONG_MS, &err), -1);
	assert_true(strstr(err.msg, "systemd closed the connection") || strstr(err.msg, "cannot send to systemd"));
	fake_stop(&fake);
}

static void test_nobody(void **state)
{
	struct graft_error err;
	char text[512];

	assert_int_equal(installer_systemd_restart("/none/private", "crio.service", LONG_MS, &err), -1);
	assert_string_equal(graft_error_text(&err, text, sizeof(text)),
			    "unable to dial /none/private: no such file or directory");
	assert_int_equal(installer_systemd_restart("/dev/null", "crio.service", LONG_MS, &err), -1);
}

/* ---- bytes of somebody else ---- */

#define GREETING "OK 00000000000000000000000000000000\r\n"

struct answer {
	const char *bytes;
	size_t n;
	int rc;
	enum graft_status status;
};
#define BYTES(text) (text), sizeof(text) - 1

/* Sends the bytes to whoever connects, and hangs up. */
static pid_t send_answer(int listener, const struct answer *answer)
{
	pid_t pid = fork();
	char bytes[512];

	assert_true(pid >= 0);
	if (pid == 0) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		(void)!write(fd, answer->bytes, answer->n);
		(void)shutdown(fd, SHUT_WR);
		while (read(fd, bytes, sizeof(bytes)) > 0)
			continue;
		_exit(0);
	}
	return pid;
}

static void test_bytes(void **state)
{
	/* Header: order, type, flags, version; length of the body; serial; length of the fields. */
	static const struct answer answers[] = {
		{ BYTES(""), -1, GRAFT_IO },
		{ BYTES("REJECTED EXTERNAL\r\n"), -1, GRAFT_PERMISSION },
		{ BYTES(GREETING), -1, GRAFT_IO },
		{ BYTES(GREETING "B\2\0\1\0\0\0\0\1\0\0\0\0\0\0\0"), -1, GRAFT_FORMAT },
		{ BYTES(GREETING "l\2\0\1\377\377\377\377\1\0\0\0\0\0\0\0"), -1, GRAFT_FORMAT },
		{ BYTES(GREETING "l\2\0\1\0\0\0\0\1\0\0\0\377\377\377\377"), -1, GRAFT_FORMAT },
		/* A signal, which has no field; then nothing. */
		{ BYTES(GREETING "l\4\0\1\0\0\0\0\1\0\0\0\0\0\0\0"), -1, GRAFT_IO },
		/* The answer, after a signal with a body. */
		{ BYTES(GREETING "l\4\0\1\3\0\0\0\1\0\0\0\0\0\0\0abc"
				 "l\2\0\1\0\0\0\0\2\0\0\0\10\0\0\0\5\1u\0\1\0\0\0"),
		  0, GRAFT_OK },
		/* An answer to another call. */
		{ BYTES(GREETING "l\2\0\1\0\0\0\0\2\0\0\0\10\0\0\0\5\1u\0\2\0\0\0"), -1, GRAFT_IO },
		/* Texts whose length leads out of the fields, and that do not end. */
		{ BYTES(GREETING "l\3\0\1\0\0\0\0\2\0\0\0\20\0\0\0\4\1s\0\377\377\377\377abcdefg\0"), -1, GRAFT_IO },
		{ BYTES(GREETING "l\3\0\1\0\0\0\0\2\0\0\0\20\0\0\0\4\1s\0\10\0\0\0abcdefgh"), -1, GRAFT_IO },
		{ BYTES(GREETING "l\3\0\1\0\0\0\0\2\0\0\0\20\0\0\0\10\1g\0\377abcdefghij\0"), -1, GRAFT_IO },
		/* An error with a name, and an unknown type before its serial. */
		{ BYTES(GREETING "l\3\0\1\0\0\0\0\2\0\0\0\30\0\0\0\4\1s\0\3\0\0\0a.b\0\0\0\0\0\5\1u\0\1\0\0\0"), -1,
		  GRAFT_PROGRAM },
		{ BYTES(GREETING "l\3\0\1\0\0\0\0\2\0\0\0\20\0\0\0\11\1h\0\0\0\0\0\5\1u\0\1\0\0\0"), -1, GRAFT_IO },
	};
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	auto_close int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char directory[] = "/tmp/graft-systemd.XXXXXX";
	struct graft_error err;

	assert_non_null(mkdtemp(directory));
	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%s/private", directory);
	assert_int_equal(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(listener, 8), 0);
	for (size_t i = 0; i < GRAFT_COUNT(answers); i++) {
		pid_t pid = send_answer(listener, &answers[i]);
		int rc;

		err.status = GRAFT_OK;
		rc = installer_systemd_restart(name.sun_path, "crio.service", LONG_MS, &err);
		if (rc != answers[i].rc || err.status != answers[i].status)
			fail_msg("answer %zu: %d, status %d: %s", i, rc, (int)err.status, err.msg);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	assert_int_equal(unlink(name.sun_path), 0);
	assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_restarted), cmocka_unit_test(test_modes), cmocka_unit_test(test_hangs_up),
		cmocka_unit_test(test_nobody),    cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
