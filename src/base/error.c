/* SPDX-License-Identifier: Apache-2.0 */
/* error: formats failures. Knows the table of statuses, but not where they come from. */
#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int exit_status;
	const char *hint;
} statuses[GRAFT_STATUS_MAX] = {
#define X(name, exit_status, text, hint) [GRAFT_##name] = { #name, exit_status, hint },
	GRAFT_STATUS_LIST(X)
#undef X
};

__attribute__((format(printf, 4, 0))) static int format_error(struct graft_error *err, enum graft_status status,
							      int sys, const char *format, va_list args)
{
	if (!err)
		return -1;
	err->status = status;
	err->step = GRAFT_STEP_NONE;
	err->sys = sys;
	err->hint = NULL;
	err->ctx[0] = '\0';
	(void)vsnprintf(err->msg, sizeof(err->msg), format, args);
	return -1;
}

int(graft_fail)(struct graft_error *err, enum graft_status status, int sys, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)format_error(err, status, sys, format, args);
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
	case ETIME:
		return GRAFT_TOO_BIG;
	default:
		return GRAFT_IO;
	}
}

int(graft_fail_errno)(struct graft_error *err, int sys, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)format_error(err, status_of_errno(sys), sys, format, args);
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

int(graft_in_step)(struct graft_error *err, enum graft_step step)
{
	if (err && err->step == GRAFT_STEP_NONE)
		err->step = step;
	return -1;
}

int(graft_with_hint)(struct graft_error *err, const char *hint)
{
	if (err && !err->hint)
		err->hint = hint;
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
	return graft_fail_errno(err, shortage, "cannot examine %s", what);
}

void graft_error_clear(struct graft_error *err)
{
	if (err)
		*err = (struct graft_error){ .status = GRAFT_OK };
}

void graft_error_flatten(char *text)
{
	for (; *text != '\0'; text++) {
		/*
		 * In UTF-8, 0xc2 and a byte below 0xa0 are one of the further control characters.
		 */
		if ((unsigned char)*text < ' ' || *text == 0x7f ||
		    ((unsigned char)text[0] == 0xc2 && (unsigned char)text[1] >= 0x80 && (unsigned char)text[1] < 0xa0))
			*text = '?';
	}
}

/* A lookup below an image's root fails with ETIME once the budget is spent (base/image_root.h). */
static const char *reason_of_errno(int sys)
{
	return sys == ETIME ? "reading the container's image takes too long" : strerror(sys);
}

const char *graft_error_text(const struct graft_error *err, char *buffer, size_t size)
{
	const char *separator = err->ctx[0] != '\0' ? ": " : "";
	char *line_end;

	if (size == 0)
		return "";
	if (err->sys != 0)
		(void)snprintf(buffer, size, "%s%s%s: %s", err->ctx, separator, err->msg, reason_of_errno(err->sys));
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

const char *graft_error_step(const struct graft_error *err)
{
	static const char *const texts[] = {
#define X(name, text) text,
		GRAFT_STEP_LIST(X)
#undef X
	};

	return (unsigned int)err->step < GRAFT_STEP_MAX ? texts[err->step] : "";
}

const char *graft_error_hint(const struct graft_error *err)
{
	if (!err->hint && (err->sys == ENOSPC || err->sys == EDQUOT))
		return "Free some space: 'df -h' and 'df -i' show which file system is full.";
	return err->hint ? err->hint : graft_status_hint(err->status);
}

static enum graft_status map_known_status(enum graft_status status)
{
	return (unsigned int)status < GRAFT_STATUS_MAX ? status : GRAFT_INTERNAL;
}

const char *graft_status_name(enum graft_status status)
{
	return statuses[map_known_status(status)].name;
}

const char *graft_status_hint(enum graft_status status)
{
	return statuses[map_known_status(status)].hint;
}

int graft_status_exit(enum graft_status status)
{
	return statuses[map_known_status(status)].exit_status;
}
