/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../unit.h"
#include "base/cleanup.h"
#include "daemon/notify.h"

/* A name in the abstract namespace, as systemd uses in containers, leaves no file. */
static void test_send(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char name[64], got[128];
	ssize_t n;

	(void)snprintf(name, sizeof(name), "@graft-notify-%d", (int)getpid());
	memcpy(address.sun_path + 1, name + 1, strlen(name) - 1);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
			 0);
	notify_send(name, "READY=1");
	n = recv(fd, got, sizeof(got), 0);
	assert_int_equal(n, 7);
	assert_memory_equal(got, "READY=1", 7);
	notify_reloading(name);
	n = recv(fd, got, sizeof(got) - 1, 0);
	assert_true(n > 30);
	got[n] = '\0';
	assert_int_equal(strncmp(got, "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
	assert_int_equal(strspn(got + 27, "0123456789"), strlen(got + 27));
	/* Nobody, and what is no socket. */
	notify_send(NULL, "READY=1");
	notify_send("", "READY=1");
	notify_send("relative", "READY=1");
	notify_send("/no/such/socket", "READY=1");
	assert_int_equal(recv(fd, got, sizeof(got), 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
