/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit.h"
#include "rpc/unix_socket.h"

static char directory[64];

static int make_directory(void **state)
{
	(void)snprintf(directory, sizeof(directory), "/tmp/graft-socket-XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	return rmdir(directory);
}

static void check_talk(const struct graft_unix_socket *s, const char *path)
{
	int fd = graft_unix_connect(path), other;
	char byte = 0;

	assert_true(fd >= 0);
	other = accept(s->fd, NULL, NULL);
	assert_true(other >= 0);
	assert_int_equal(write(other, "x", 1), 1);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	(void)close(other);
	(void)close(fd);
}

static void test_listen(void **state)
{
	struct graft_unix_socket s = GRAFT_UNIX_SOCKET_INIT, second = GRAFT_UNIX_SOCKET_INIT;
	char path[128];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/s.sock", directory);
	assert_int_equal(graft_unix_connect(path), -ENOENT);
	assert_int_equal(graft_unix_listen(path, &s, NULL), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	check_talk(&s, path);
	assert_true(graft_unix_is_there(&s));
	/* A second one takes the name over; the first one leaves it alone when it ends. */
	assert_int_equal(graft_unix_listen(path, &second, NULL), 0);
	assert_false(graft_unix_is_there(&s));
	graft_unix_close(&s);
	assert_true(graft_unix_is_there(&second));
	check_talk(&second, path);
	graft_unix_close(&second);
	graft_unix_close(&second);
	assert_int_equal(lstat(path, &st), -1);
}

/* Longer than an address may be. */
static void test_long_path(void **state)
{
	struct graft_unix_socket s = GRAFT_UNIX_SOCKET_INIT;
	char folder[200], path[256];

	(void)snprintf(folder, sizeof(folder), "%s/%0100d", directory, 0);
	(void)snprintf(path, sizeof(path), "%s/gpu.sock", folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(graft_unix_listen(path, &s, NULL), 0);
	check_talk(&s, path);
	graft_unix_close(&s);
	assert_int_equal(rmdir(folder), 0);
}

static void test_refused(void **state)
{
	struct graft_unix_socket s = GRAFT_UNIX_SOCKET_INIT;
	struct graft_error err = { .status = GRAFT_OK };
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/file", directory);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(graft_unix_listen(path, &s, &err), -1);
	assert_int_equal(err.status, GRAFT_INVALID);
	assert_string_printed(err.msg, "cannot listen at '%s': the file exists and is not a socket", path);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/none/s.sock", directory);
	assert_int_equal(graft_unix_listen(path, &s, &err), -1);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
	assert_string_printed(err.msg, "cannot listen at '%s'", path);
	assert_int_equal(s.fd, -1);
	assert_int_equal(graft_unix_connect(path), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listen),
		cmocka_unit_test(test_long_path),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
