/* SPDX-License-Identifier: Apache-2.0 */
/* error: formatting of failures. Knows the table of statuses and nothing of where they come from. */
#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int exit_status;
	const char *text;
	const char *hint;
} statuses[GRAFT_STATUS_MAX] = {
#define X(name, exit_status, text, hint) [GRAFT_##name] = { #name, exit_status, text, hint },
	GRAFT_STATUS_LIST(X)
#undef X
};

__attribute__((format(printf, 4, 0))) static int fail(struct graft_error *err, enum graft_status status, int sys,
						      const char *format, va_list args)
{
	if (!err)
		return -1;
	err->status = status;
	err->sys = sys;
	err->ctx[0] = '\0';
	(void)vsnprintf(err->msg, sizeof(err->msg), format, args);
	return -1;
}

int(graft_fail)(struct graft_error *err, enum graft_status status, int sys, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)fail(err, status, sys, format, args);
	va_end(args);
	return -1;
}

static enum graft_status status_of_errno(int sys)
{
	switch (sys) {
	case ENOMEM:
		return GRAFT_NO_MEMORY;
	case EACCES:
	case EPERM:
		return GRAFT_PERMISSION;
	case ENOENT:
		return GRAFT_NOT_FOUND;
	case EROFS:
		return GRAFT_READ_ONLY;
	case ELOOP:
	case EXDEV:
		return GRAFT_UNSAFE;
	case EFBIG:
		return GRAFT_TOO_BIG;
	default:
		return GRAFT_IO;
	}
}

int(graft_fail_errno)(struct graft_error *err, int sys, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)fail(err, status_of_errno(sys), sys, format, args);
	va_end(args);
	return -1;
}

int(graft_wrap)(struct graft_error *err, const char *format, ...)
{
	char inner[sizeof(err->ctx)];
	va_list args;
	size_t used;

	if (!err)
		return -1;
	memcpy(inner, err->ctx, sizeof(inner));
	va_start(args, format);
	(void)vsnprintf(err->ctx, sizeof(err->ctx), format, args);
	va_end(args);
	used = strlen(err->ctx);
	if (inner[0] != '\0')
		(void)snprintf(err->ctx + used, sizeof(err->ctx) - used, ": %s", inner);
	return -1;
}

int(graft_fail_memory)(struct graft_error *err)
{
	return graft_fail(err, GRAFT_NO_MEMORY, ENOMEM, "memory allocation failed");
}

void graft_note_shortage(int *shortage, int rc)
{
	if (*shortage == 0 && (rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE))
		*shortage = -rc;
}

int(graft_fail_shortage)(struct graft_error *err, int shortage, const char *what)
{
	if (shortage == ENOMEM)
		return graft_fail_memory(err);
	return graft_fail_errno(err, shortage, "%s cannot be looked at", what);
}

void graft_error_clear(struct graft_error *err)
{
	if (err)
		*err = (struct graft_error){ .status = GRAFT_OK };
}

void graft_error_flatten(char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
	}
}

const char *graft_error_text(const struct graft_error *err, char *buffer, size_t size)
{
	const char *separator = err->ctx[0] != '\0' ? ": " : "";
	char *line_end;

	if (size == 0)
		return "";
	if (err->sys != 0)
		(void)snprintf(buffer, size, "%s%s%s: %s", err->ctx, separator, err->msg, strerror(err->sys));
	else
		(void)snprintf(buffer, size, "%s%s%s", err->ctx, separator, err->msg);
	line_end = strchr(buffer, '\n');
	if (line_end)
		*line_end = '\0';
	graft_error_flatten(buffer);
	if (err->sys != 0) {
		char *reason = strrchr(buffer, ':');

		for (char *c = reason; c && *c != '\0'; c++)
			*c = (char)tolower((unsigned char)*c);
	}
	return buffer;
}

static enum graft_status known(enum graft_status status)
{
	return (unsigned int)status < GRAFT_STATUS_MAX ? status : GRAFT_INTERNAL;
}

const char *graft_status_name(enum graft_status status)
{
	return statuses[known(status)].name;
}

const char *graft_status_text(enum graft_status status)
{
	return statuses[known(status)].text;
}

const char *graft_status_hint(enum graft_status status)
{
	return statuses[known(status)].hint;
}

int graft_status_exit(enum graft_status status)
{
	return statuses[known(status)].exit_status;
}
