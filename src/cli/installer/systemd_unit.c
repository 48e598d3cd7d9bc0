/* SPDX-License-Identifier: Apache-2.0 */
/* systemd_unit: D-Bus as far as one call needs it. Its answer is not trusted. */
#include "cli/installer/systemd_unit.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dial.h"

/* D-Bus specification, "Message Protocol". */
enum { CALL = 1, RETURN = 2, ERROR = 3 };
enum { PATH = 1, INTERFACE = 2, MEMBER = 3, ERROR_NAME = 4, REPLY_SERIAL = 5, DESTINATION = 6, SIGNATURE = 8 };
#define SERIAL      1u
#define MESSAGE_MAX ((size_t)1 << 20)
#define HEADER_SIZE ((size_t)16)

struct bus {
	int fd;
	int64_t end_ms;
	struct graft_error *err;
};

static int send_bytes(const struct bus *bus, const void *bytes, size_t n)
{
	const char *next = bytes;

	while (n > 0) {
		ssize_t sent = send(bus->fd, next, n, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return graft_fail_errno(bus->err, errno, "cannot send to systemd");
		next += sent > 0 ? sent : 0;
		n -= sent > 0 ? (size_t)sent : 0;
	}
	return 0;
}

/* Receives exactly `n` bytes. */
static int receive_bytes(const struct bus *bus, void *bytes, size_t n)
{
	char *next = bytes;

	while (n > 0) {
		struct pollfd polled = { .fd = bus->fd, .events = POLLIN };
		int64_t left = bus->end_ms - graft_clock_ms();
		ssize_t got;

		if (left <= 0 || poll(&polled, 1, (int)left) == 0)
			return graft_fail(bus->err, GRAFT_TIMEOUT, 0, "systemd does not answer");
		got = recv(bus->fd, next, n, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return graft_fail_errno(bus->err, got < 0 ? errno : ECONNRESET,
						"systemd closed the connection");
		next += got;
		n -= (size_t)got;
	}
	return 0;
}

/* Only root can use the socket; EXTERNAL states that we are root. */
static int authenticate(const struct bus *bus)
{
	static const char begin[] = "\0AUTH EXTERNAL 30\r\nBEGIN\r\n";
	char line[256];
	size_t n = 0;

	if (send_bytes(bus, begin, sizeof(begin) - 1) < 0)
		return -1;
	while (n < sizeof(line) - 1 && (n == 0 || line[n - 1] != '\n')) {
		if (receive_bytes(bus, &line[n], 1) < 0)
			return -1;
		n++;
	}
	line[n] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	if (strncmp(line, "OK ", 3) != 0)
		return graft_fail(bus->err, GRAFT_PERMISSION, 0, "systemd refused the connection: '%.64s'", line);
	return 0;
}

static void pad(struct graft_buffer *out, size_t to)
{
	while (out->length % to != 0)
		graft_buffer_char(out, '\0');
}

static void put_u32(struct graft_buffer *out, size_t value)
{
	uint32_t number = htole32((uint32_t)value);

	graft_buffer_add(out, &number, sizeof(number));
}

static void put_bus_string(struct graft_buffer *out, const char *text)
{
	pad(out, 4);
	put_u32(out, strlen(text));
	graft_buffer_add(out, text, strlen(text) + 1);
}

/* One field of the header: a byte, and a variant of type `type` with a text. */
static void put_field(struct graft_buffer *out, char code, char type, const char *text)
{
	const char head[] = { code, 1, type, '\0' };

	pad(out, 8);
	graft_buffer_add(out, head, sizeof(head));
	if (type == 'g') {
		graft_buffer_char(out, (char)strlen(text));
		graft_buffer_add(out, text, strlen(text) + 1);
	} else {
		put_bus_string(out, text);
	}
}

/* RestartUnit(unit, "replace") of the manager. */
static int call_restart(const struct bus *bus, const char *unit)
{
	static const char start[] = { 'l', CALL, 0, 1 };
	auto_buffer struct graft_buffer body = { .max = 4096 }, message = { .max = 8192 };
	size_t fields;
	uint32_t length;

	put_bus_string(&body, unit);
	put_bus_string(&body, "replace");
	graft_buffer_add(&message, start, sizeof(start));
	put_u32(&message, body.length);
	put_u32(&message, SERIAL);
	put_u32(&message, 0); /* of the fields; set below */
	put_field(&message, PATH, 'o', "/org/freedesktop/systemd1");
	put_field(&message, INTERFACE, 's', "org.freedesktop.systemd1.Manager");
	put_field(&message, MEMBER, 's', "RestartUnit");
	put_field(&message, DESTINATION, 's', "org.freedesktop.systemd1");
	put_field(&message, SIGNATURE, 'g', "ss");
	fields = message.length - HEADER_SIZE;
	pad(&message, 8);
	graft_buffer_add(&message, graft_buffer_text(&body), body.length);
	if (graft_buffer_failed(&message) || graft_buffer_failed(&body))
		return graft_fail_memory(bus->err);
	length = htole32((uint32_t)fields);
	memcpy(message.bytes + 12, &length, sizeof(length));
	return send_bytes(bus, message.bytes, message.length);
}

static size_t read_bus_u32(const unsigned char *bytes)
{
	uint32_t number;

	memcpy(&number, bytes, sizeof(number));
	return le32toh(number);
}

/*
 * Finds the serial that a message answers, and the name of its error, in the fields of its header.
 * Only fields with a text or a number are understood; any other ends the search.
 */
static void read_fields(const unsigned char *fields, size_t n, size_t *ret_serial, const char **ret_error)
{
	size_t at = 0;

	*ret_serial = 0;
	*ret_error = "";
	while (at + 8 <= n) {
		unsigned char code = fields[at], type = fields[at + 2];
		size_t length = 4;

		if (fields[at + 1] != 1 || fields[at + 3] != 0)
			return;
		at += 4;
		if (type == 'u' && code == REPLY_SERIAL) {
			*ret_serial = read_bus_u32(fields + at);
		} else if (type == 's' || type == 'o') {
			length = read_bus_u32(fields + at);
			if (length > n - at - 4 || length == n - at - 4 || fields[at + 4 + length] != '\0')
				return;
			if (code == ERROR_NAME)
				*ret_error = (const char *)fields + at + 4;
			length += 5;
		} else if (type == 'g') {
			length = (size_t)fields[at] + 2;
		} else if (type != 'u') {
			return;
		}
		at = (at + length + 7) & ~(size_t)7;
	}
}

/* Receives messages until one answers our call. */
static int await_answer(const struct bus *bus, const char *unit)
{
	unsigned char head[HEADER_SIZE];

	for (;;) {
		auto_free unsigned char *rest = NULL;
		size_t fields, body, n, serial;
		const char *error;

		if (receive_bytes(bus, head, sizeof(head)) < 0)
			return -1;
		body = read_bus_u32(head + 4);
		fields = read_bus_u32(head + 12);
		if (head[0] != 'l' || body > MESSAGE_MAX || fields > MESSAGE_MAX)
			return graft_fail(bus->err, GRAFT_FORMAT, 0, "malformed answer from systemd");
		n = ((fields + 7) & ~(size_t)7) + body;
		rest = calloc(n + 1, 1);
		if (!rest)
			return graft_fail_memory(bus->err);
		if (receive_bytes(bus, rest, n) < 0)
			return -1;
		read_fields(rest, fields, &serial, &error);
		if (serial != SERIAL)
			continue;
		if (head[1] == RETURN)
			return 0;
		return graft_fail(bus->err, GRAFT_PROGRAM, 0, "systemd does not restart %s: %.128s", unit, error);
	}
}

int installer_systemd_talk(int fd, const char *unit, int timeout_ms, struct graft_error *err)
{
	const struct bus bus = { .fd = fd, .end_ms = graft_clock_ms() + timeout_ms, .err = err };

	if (authenticate(&bus) < 0 || call_restart(&bus, unit) < 0)
		return -1;
	return await_answer(&bus, unit);
}

int installer_systemd_restart(const char *socket_path, const char *unit, int timeout_ms, struct graft_error *err)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = fd < 0 ? -errno : graft_dial(fd, socket_path);

	if (rc < 0)
		return graft_fail_errno(err, -rc, "unable to dial %s", socket_path);
	return installer_systemd_talk(fd, unit, timeout_ms, err);
}
