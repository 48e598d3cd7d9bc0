/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd_bus: sd-bus through dlopen. Declares the few functions that are needed here, so that the
 * build does not need libsystemd's header either.
 *
 * SECURITY: the addresses are constants of the caller; no environment variable
 * (DBUS_SYSTEM_BUS_ADDRESS) determines where systemd listens.
 */
#include "apply/cgroup/systemd_bus.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define DESTINATION "org.freedesktop.systemd1"
#define UNITS       "/org/freedesktop/systemd1/unit"
#define MANAGER     "/org/freedesktop/systemd1"
#define MAX_ALLOWS  4096u

/* sd-bus(3): the ABI of libsystemd.so.0. */
struct sd_bus;
struct sd_bus_message;
struct sd_bus_error {
	const char *name;
	const char *message;
	int need_free;
};

#define FUNCTIONS(X)                                                                                           \
	X(int, new, struct sd_bus **)                                                                          \
	X(int, set_address, struct sd_bus *, const char *)                                                     \
	X(int, set_bus_client, struct sd_bus *, int)                                                           \
	X(int, start, struct sd_bus *)                                                                         \
	X(int, is_ready, struct sd_bus *)                                                                      \
	X(int, process, struct sd_bus *, struct sd_bus_message **)                                             \
	X(int, wait, struct sd_bus *, uint64_t)                                                                \
	X(int, path_encode, const char *, const char *, char **)                                               \
	X(int, message_new_method_call, struct sd_bus *, struct sd_bus_message **, const char *, const char *, \
	  const char *, const char *)                                                                          \
	X(int, message_append, struct sd_bus_message *, const char *, ...)                                     \
	X(int, message_open_container, struct sd_bus_message *, char, const char *)                            \
	X(int, message_close_container, struct sd_bus_message *)                                               \
	X(int, message_enter_container, struct sd_bus_message *, char, const char *)                           \
	X(int, message_read, struct sd_bus_message *, const char *, ...)                                       \
	X(int, call, struct sd_bus *, struct sd_bus_message *, uint64_t, struct sd_bus_error *,                \
	  struct sd_bus_message **)                                                                            \
	X(struct sd_bus_message *, message_unref, struct sd_bus_message *)                                     \
	X(void, error_free, struct sd_bus_error *)                                                             \
	X(void, close, struct sd_bus *)                                                                        \
	X(struct sd_bus *, unref, struct sd_bus *)

struct functions {
#define X(type, name, ...) type (*name)(__VA_ARGS__);
	FUNCTIONS(X)
#undef X
};

struct graft_systemd_bus {
	void *library;
	struct functions sd;
	struct sd_bus *bus;
	int64_t deadline_us;
};

/* A request or reply that is released at the end of its scope. */
struct held {
	struct graft_systemd_bus *bus;
	struct sd_bus_message *message;
};

static void held_done(struct held *held)
{
	if (held->message)
		(void)held->bus->sd.message_unref(held->message);
}
#define auto_held __attribute__((cleanup(held_done))) struct held

/* -------- opening -------- */

/* Looks up all functions. Returns the name of the first one that the library lacks, or NULL. */
static const char *find_functions(struct graft_systemd_bus *bus)
{
#define X(type, name, ...)                                              \
	*(void **)&bus->sd.name = dlsym(bus->library, "sd_bus_" #name); \
	if (!bus->sd.name)                                              \
		return "sd_bus_" #name;
	FUNCTIONS(X)
#undef X
	return NULL;
}

/*
 * Returns the remaining time in microseconds, at least 1: sd-bus takes 0 for its default of 25 s.
 */
static uint64_t time_left(const struct graft_systemd_bus *bus)
{
	int64_t left = bus->deadline_us - graft_clock_us();

	return left > 0 ? (uint64_t)left : 1;
}

static bool is_over(const struct graft_systemd_bus *bus)
{
	return graft_clock_us() >= bus->deadline_us;
}

/*
 * Waits until the other side has answered the handshake, within our own deadline; sd_bus_call()
 * would wait 25 s for it. Returns 0 or -errno.
 */
static int become_ready(struct graft_systemd_bus *bus)
{
	for (;;) {
		int r = bus->sd.is_ready(bus->bus);

		if (r != 0)
			return r < 0 ? r : 0;
		if (is_over(bus))
			return -ETIMEDOUT;
		r = bus->sd.process(bus->bus, NULL);
		if (r == 0)
			r = bus->sd.wait(bus->bus, time_left(bus));
		if (r < 0 && r != -EINTR)
			return r;
	}
}

static void disconnect(struct graft_systemd_bus *bus)
{
	if (!bus->bus)
		return;
	bus->sd.close(bus->bus);
	bus->bus = bus->sd.unref(bus->bus);
}

/* Returns 0 or -errno. */
static int connect_to(struct graft_systemd_bus *bus, const struct graft_systemd_address *to)
{
	int r = bus->sd.new(&bus->bus);

	if (r < 0) {
		bus->bus = NULL;
		return r;
	}
	r = bus->sd.set_address(bus->bus, to->address);
	if (r >= 0 && to->is_bus)
		r = bus->sd.set_bus_client(bus->bus, 1);
	if (r >= 0)
		r = bus->sd.start(bus->bus);
	if (r >= 0)
		r = become_ready(bus);
	if (r < 0)
		disconnect(bus);
	return r < 0 ? r : 0;
}

static int fail_bus(struct graft_error *err, int sys, const char *text)
{
	if (sys == ETIMEDOUT)
		return graft_fail(err, GRAFT_TIMEOUT, 0, "systemd did not answer in time");
	return graft_fail_errno(err, sys, "%s", text);
}

/*
 * Tries the addresses in order. Returns 1 when connected, 0 if no process listens, -1 on failure.
 */
static int connect_any(struct graft_systemd_bus *bus, const struct graft_systemd *systemd, const struct graft_log *log,
		       struct graft_error *err)
{
	int r = -ENOENT;

	for (const struct graft_systemd_address *to = systemd->addresses; to->address; to++) {
		r = connect_to(bus, to);
		if (r == 0)
			return 1;
		if (r == -ETIMEDOUT || r == -ENOMEM)
			break;
		graft_debug(log, "no systemd at %s: %s", to->address, strerror(-r));
	}
	if (r == -ENOENT || r == -ECONNREFUSED) {
		graft_info(log, "systemd was not informed of the devices: it is not listening");
		return 0;
	}
	return fail_bus(err, -r, "cannot connect to systemd");
}

int graft_systemd_bus_open(const struct graft_systemd *systemd, const struct graft_log *log,
			   struct graft_systemd_bus **ret_bus, struct graft_error *err)
{
	struct graft_systemd_bus *bus = calloc(1, sizeof(*bus));
	const char *missing;
	int r;

	if (!bus)
		return graft_fail_memory(err);
	bus->deadline_us = graft_clock_us() + (int64_t)systemd->timeout_ms * 1000;
	bus->library = dlopen(systemd->library, RTLD_NOW | RTLD_LOCAL);
	if (!bus->library) {
		graft_info(log, "systemd was not informed of the devices: %s", dlerror());
		free(bus);
		return 0;
	}
	missing = find_functions(bus);
	if (missing) {
		graft_info(log, "systemd was not informed of the devices: %s lacks %s", systemd->library, missing);
		r = 0;
	} else {
		r = connect_any(bus, systemd, log, err);
	}
	if (r <= 0) {
		(void)dlclose(bus->library);
		free(bus);
		return r;
	}
	*ret_bus = bus;
	return 1;
}

void graft_systemd_bus_close(struct graft_systemd_bus *bus)
{
	if (!bus)
		return;
	disconnect(bus);
	(void)dlclose(bus->library);
	free(bus);
}

/* -------- requests -------- */

static int call(struct held *request, struct held *ret_reply, const char *what, struct graft_error *err)
{
	struct graft_systemd_bus *bus = request->bus;
	struct sd_bus_error error = { 0 };
	int r = is_over(bus) ? -ETIMEDOUT
			     : bus->sd.call(bus->bus, request->message, time_left(bus), &error, &ret_reply->message);

	if (r >= 0)
		return 0;
	if (r == -ETIMEDOUT || !error.message)
		(void)fail_bus(err, -r, what);
	else
		(void)graft_fail_errno(err, -r, "%s: %s", what, error.message);
	bus->sd.error_free(&error);
	return -1;
}

/* Reads a property of a scope; *ret_reply is positioned inside the variant. */
static int get_scope_property(struct graft_systemd_bus *bus, const char *path, const char *property,
			      const char *signature, struct held *ret_reply, struct graft_error *err)
{
	auto_held request = { .bus = bus };
	int r = bus->sd.message_new_method_call(bus->bus, &request.message, DESTINATION, path,
						"org.freedesktop.DBus.Properties", "Get");

	if (r >= 0)
		r = bus->sd.message_append(request.message, "ss", DESTINATION ".Scope", property);
	if (r < 0)
		return fail_bus(err, -r, "cannot ask systemd");
	if (call(&request, ret_reply, "cannot read from systemd which devices the scope may use", err) < 0)
		return -1;
	r = bus->sd.message_enter_container(ret_reply->message, 'v', signature);
	return r < 0 ? fail_bus(err, -r, "cannot parse systemd's answer") : 0;
}

static int get_string(struct graft_systemd_bus *bus, const char *path, const char *property, struct graft_arena *arena,
		      const char **ret_text, struct graft_error *err)
{
	auto_held reply = { .bus = bus };
	const char *text = NULL;
	int r;

	if (get_scope_property(bus, path, property, "s", &reply, err) < 0)
		return -1;
	r = bus->sd.message_read(reply.message, "s", &text);
	if (r <= 0)
		return fail_bus(err, r < 0 ? -r : EBADMSG, "cannot parse systemd's answer");
	*ret_text = graft_arena_strdup(arena, text);
	return *ret_text ? 0 : graft_fail_memory(err);
}

static int get_allows(struct graft_systemd_bus *bus, const char *path, struct graft_arena *arena,
		      struct graft_systemd_unit *unit, struct graft_error *err)
{
	auto_held reply = { .bus = bus };
	const char *node, *access;
	int r;

	if (get_scope_property(bus, path, "DeviceAllow", "a(ss)", &reply, err) < 0)
		return -1;
	r = bus->sd.message_enter_container(reply.message, 'a', "(ss)");
	while (r >= 0 && (r = bus->sd.message_read(reply.message, "(ss)", &node, &access)) > 0) {
		struct graft_systemd_allow *allow = unit->n_allows < MAX_ALLOWS
							? graft_arena_push(arena, &unit->allows, &unit->n_allows,
									   sizeof(*allow))
							: NULL;

		if (!allow)
			return graft_fail_memory(err);
		allow->node = graft_arena_strdup(arena, node);
		allow->access = graft_arena_strdup(arena, access);
		if (!allow->node || !allow->access)
			return graft_fail_memory(err);
	}
	return r < 0 ? fail_bus(err, -r, "cannot parse systemd's answer") : 0;
}

int graft_systemd_bus_read(struct graft_systemd_bus *bus, const char *name, struct graft_arena *arena,
			   struct graft_systemd_unit *ret_unit, struct graft_error *err)
{
	struct graft_systemd_unit unit = { 0 };
	auto_free char *path = NULL;
	int r = bus->sd.path_encode(UNITS, name, &path);

	if (r < 0)
		return fail_bus(err, -r, "cannot ask systemd");
	if (get_string(bus, path, "ControlGroup", arena, &unit.control_group, err) < 0 ||
	    get_string(bus, path, "DevicePolicy", arena, &unit.device_policy, err) < 0 ||
	    get_allows(bus, path, arena, &unit, err) < 0)
		return -1;
	*ret_unit = unit;
	return 0;
}

/*
 * Builds SetUnitProperties(name, runtime = true, [("DeviceAllow", <[(node, access), ...]>)]).
 * Returns 0 or -errno.
 */
static int fill_unit_request(struct held *request, const char *name, const struct graft_systemd_allow *allows,
			     size_t n_allows)
{
	const struct functions *sd = &request->bus->sd;
	struct sd_bus_message *message = request->message;
	int r = sd->message_append(message, "sb", name, 1);

	if (r < 0 || (r = sd->message_open_container(message, 'a', "(sv)")) < 0 ||
	    (r = sd->message_open_container(message, 'r', "sv")) < 0 ||
	    (r = sd->message_append(message, "s", "DeviceAllow")) < 0 ||
	    (r = sd->message_open_container(message, 'v', "a(ss)")) < 0 ||
	    (r = sd->message_open_container(message, 'a', "(ss)")) < 0)
		return r;
	for (size_t i = 0; i < n_allows && r >= 0; i++)
		r = sd->message_append(message, "(ss)", allows[i].node, allows[i].access);
	for (int depth = 0; depth < 4 && r >= 0; depth++)
		r = sd->message_close_container(message);
	return r;
}

int graft_systemd_bus_allow(struct graft_systemd_bus *bus, const char *name, const struct graft_systemd_allow *allows,
			    size_t n_allows, struct graft_error *err)
{
	auto_held request = { .bus = bus };
	auto_held reply = { .bus = bus };
	int r = bus->sd.message_new_method_call(bus->bus, &request.message, DESTINATION, MANAGER,
						DESTINATION ".Manager", "SetUnitProperties");

	if (r >= 0)
		r = fill_unit_request(&request, name, allows, n_allows);
	if (r < 0)
		return fail_bus(err, -r, "cannot pass the devices to systemd");
	return call(&request, &reply, "systemd refused to add the devices to the container's scope", err);
}
