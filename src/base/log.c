/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: formats log lines, and writes them to a file. Each line is a single write(2), so that
 * processes can share a file.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

#define LINE_MAX_BYTES 1024

void graft_log_write(const struct graft_log *log, enum graft_log_level level, const char *file, int line,
		     const char *format, ...)
{
	char message[LINE_MAX_BYTES];
	int saved = errno;
	va_list args;

	if (!log || !log->write || level > log->max || (log->wants && !log->wants(log->arg, level, file)))
		return;
	va_start(args, format);
	(void)vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	graft_error_flatten(message);
	log->write(log->arg, level, file, line, message);
	errno = saved;
}

void graft_log_settle(const struct graft_log *log)
{
	if (log && log->settle)
		log->settle(log->arg);
}

static char level_letter(enum graft_log_level level)
{
	switch (level) {
	case GRAFT_LOG_ERROR:
		return 'E';
	case GRAFT_LOG_WARN:
		return 'W';
	case GRAFT_LOG_INFO:
	case GRAFT_LOG_DEBUG:
		return 'I';
	}
	return 'I';
}

/* SPEC libnvidia-container 3.8: <L><MMDD> <HH:MM:SS>.<usec> <tid> <file>:<line>] <message>, UTC. */
static void write_log_file(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	const struct graft_log_file *log_file = arg;
	char text[LINE_MAX_BYTES + 128];
	struct timespec now;
	struct tm utc;
	int n;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &utc);
	n = snprintf(text, sizeof(text), "%c%02d%02d %02d:%02d:%02d.%06ld %ld %s:%d] %s\n", level_letter(level),
		     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, now.tv_nsec / 1000,
		     syscall(SYS_gettid), file, line, message);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof(text)) {
		n = (int)sizeof(text) - 1;
		text[n - 1] = '\n';
	}
	if (write(log_file->fd, text, (size_t)n) < 0)
		return; /* a log that cannot be written must not stop the work */
}

void graft_log_file_init(struct graft_log_file *file, int fd, enum graft_log_level max)
{
	file->fd = fd;
	file->log = (struct graft_log){ .write = write_log_file, .arg = file, .max = max };
}

int graft_log_file_begin(int take_fd)
{
	static const char banner[] = "\n-- WARNING, the following logs are for debugging purposes only --\n\n";
	auto_close int fd = take_fd;

	return fd >= 0 && write(fd, banner, sizeof(banner) - 1) >= 0 ? TAKE_FD(fd) : -1;
}
