/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_systemd: a process that answers like systemd on its own socket, by means of libsystemd, so
 * that requests to it are real D-Bus. It knows one scope and records the orders that it gets. Link
 * with -lsystemd.
 *
 *	struct fake_systemd fake = { .control_group = "/system.slice/a.scope", .policy = "strict" };
 *
 *	fake_start(&fake);
 *	... struct graft_systemd_address to = { fake.address, false }; ...
 *	assert_string_equal(fake.shared->told, "a.scope 1 /dev/char/195:0=rw");
 *	fake_stop(&fake);
 */
#ifndef GRAFT_TEST_FAKE_SYSTEMD_H
#define GRAFT_TEST_FAKE_SYSTEMD_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "../unit.h"

enum fake_mode {
	FAKE_ANSWERS,
	FAKE_REFUSES,         /* any order */
	FAKE_NEVER_GREETS,    /* accepts the connection and sends nothing */
	FAKE_NEVER_ANSWERS,   /* greets, then sends nothing, like systemd during a reload */
	FAKE_HANGS_UP,        /* closes each connection at once */
	FAKE_SPEAKS_NONSENSE, /* sends numbers where text is expected */
};

struct fake_shared {
	char told[1024];
	unsigned int n_calls;
};

struct fake_systemd {
	enum fake_mode mode;
	const char *control_group, *policy;
	const char *allows[8][2];
	size_t n_allows;
	/* set by fake_start */
	char directory[64], address[128];
	struct fake_shared *shared;
	pid_t pid;
};

static int fake_reply_string(sd_bus_message *call, const struct fake_systemd *fake, const char *text)
{
	return fake->mode == FAKE_SPEAKS_NONSENSE ? sd_bus_reply_method_return(call, "v", "u", 7u)
						  : sd_bus_reply_method_return(call, "v", "s", text);
}

static int fake_reply_allows(sd_bus_message *call, const struct fake_systemd *fake)
{
	sd_bus_message *reply = NULL;
	int r = sd_bus_message_new_method_return(call, &reply);

	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'v', "a(ss)");
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "(ss)");
	for (size_t i = 0; i < fake->n_allows && r >= 0; i++)
		r = sd_bus_message_append(reply, "(ss)", fake->allows[i][0], fake->allows[i][1]);
	for (int i = 0; i < 2 && r >= 0; i++)
		r = sd_bus_message_close_container(reply);
	if (r >= 0)
		r = sd_bus_send(sd_bus_message_get_bus(call), reply, NULL);
	(void)sd_bus_message_unref(reply);
	return r;
}

static int fake_get(sd_bus_message *call, const struct fake_systemd *fake)
{
	const char *interface, *property;
	int r = sd_bus_message_read(call, "ss", &interface, &property);

	if (r < 0 || strcmp(interface, "org.freedesktop.systemd1.Scope") != 0 ||
	    strncmp(sd_bus_message_get_path(call), "/org/freedesktop/systemd1/unit/", 31) != 0)
		return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_INVALID_ARGS, "not a property of a scope");
	if (strcmp(property, "DeviceAllow") == 0)
		return fake_reply_allows(call, fake);
	return fake_reply_string(call, fake,
				 strcmp(property, "ControlGroup") == 0 ? fake->control_group : fake->policy);
}

/* The request is recorded literally, so that a wrong type or order is visible. */
static int fake_set(sd_bus_message *call, const struct fake_systemd *fake)
{
	const char *name, *property, *node, *access;
	char *told = fake->shared->told;
	size_t size = sizeof(fake->shared->told), n;
	int runtime;

	if (fake->mode == FAKE_REFUSES)
		return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_ACCESS_DENIED, "nobody may do that");
	if (sd_bus_message_read(call, "sb", &name, &runtime) < 0 ||
	    sd_bus_message_enter_container(call, 'a', "(sv)") < 0 ||
	    sd_bus_message_enter_container(call, 'r', "sv") < 0 || sd_bus_message_read(call, "s", &property) < 0 ||
	    strcmp(property, "DeviceAllow") != 0 || sd_bus_message_enter_container(call, 'v', "a(ss)") < 0 ||
	    sd_bus_message_enter_container(call, 'a', "(ss)") < 0)
		return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_INVALID_ARGS, "not what SetUnitProperties takes");
	n = (size_t)snprintf(told, size, "%s %d", name, runtime);
	while (sd_bus_message_read(call, "(ss)", &node, &access) > 0)
		n += (size_t)snprintf(told + n, size - n, " %s=%s", node, access);
	return sd_bus_reply_method_return(call, NULL);
}

/* The answer is the path of a job; it is recorded which unit, and how. */
static int fake_restart(sd_bus_message *call, const struct fake_systemd *fake)
{
	const char *unit, *mode;

	if (fake->mode == FAKE_REFUSES)
		return sd_bus_reply_method_errorf(call, "org.freedesktop.systemd1.NoSuchUnit", "there is none");
	if (sd_bus_message_read(call, "ss", &unit, &mode) < 0)
		return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_INVALID_ARGS, "not what RestartUnit takes");
	(void)snprintf(fake->shared->told, sizeof(fake->shared->told), "restart %s %s", unit, mode);
	return sd_bus_reply_method_return(call, "o", "/org/freedesktop/systemd1/job/7");
}

static int fake_handle(sd_bus_message *call, void *data, sd_bus_error *error)
{
	const struct fake_systemd *fake = data;

	if (!sd_bus_message_get_member(call))
		return 0;
	if (fake->mode == FAKE_NEVER_ANSWERS)
		return 1;
	if (sd_bus_message_is_method_call(call, "org.freedesktop.DBus", "Hello"))
		return sd_bus_reply_method_return(call, "s", ":1.7");
	fake->shared->n_calls += sd_bus_message_get_interface(call) &&
				 strcmp(sd_bus_message_get_interface(call), "org.freedesktop.DBus.Local") != 0;
	if (sd_bus_message_is_method_call(call, "org.freedesktop.DBus.Properties", "Get"))
		return fake_get(call, fake);
	if (sd_bus_message_is_method_call(call, "org.freedesktop.systemd1.Manager", "SetUnitProperties"))
		return fake_set(call, fake);
	if (sd_bus_message_is_method_call(call, "org.freedesktop.systemd1.Manager", "RestartUnit"))
		return fake_restart(call, fake);
	return 0;
}

static void fake_serve(struct fake_systemd *fake, int fd)
{
	static const sd_id128_t id = { .bytes = { 7 } };
	sd_bus *bus = NULL;
	int r = sd_bus_new(&bus);

	if (r >= 0)
		r = sd_bus_set_fd(bus, fd, fd);
	if (r >= 0)
		r = sd_bus_set_server(bus, 1, id);
	if (r >= 0)
		r = sd_bus_add_filter(bus, NULL, fake_handle, fake);
	if (r >= 0)
		r = sd_bus_start(bus);
	while (r >= 0) {
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = sd_bus_wait(bus, UINT64_MAX);
	}
	(void)sd_bus_close_unref(bus);
}

static _Noreturn void fake_run(struct fake_systemd *fake, int listener)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			_exit(0);
		if (fake->mode == FAKE_NEVER_GREETS)
			continue;
		if (fake->mode == FAKE_HANGS_UP)
			(void)close(fd);
		else
			fake_serve(fake, fd);
	}
}

static void fake_start(struct fake_systemd *fake)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(fake->directory, sizeof(fake->directory), "/tmp/graft-systemd.XXXXXX");
	assert_non_null(mkdtemp(fake->directory));
	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%s/private", fake->directory);
	(void)snprintf(fake->address, sizeof(fake->address), "unix:path=%s/private", fake->directory);
	fake->shared = mmap(NULL, sizeof(*fake->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(fake->shared != MAP_FAILED && listener >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(listener, 8), 0);
	fake->pid = fork();
	assert_true(fake->pid >= 0);
	if (fake->pid == 0)
		fake_run(fake, listener);
	assert_int_equal(close(listener), 0);
}

static void fake_stop(struct fake_systemd *fake)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/private", fake->directory);
	assert_int_equal(kill(fake->pid, SIGKILL), 0);
	assert_int_equal(waitpid(fake->pid, NULL, 0), fake->pid);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(fake->directory), 0);
	assert_int_equal(munmap(fake->shared, sizeof(*fake->shared)), 0);
}

#endif
