/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: where decisions are told. A log is a value passed along; there is no global one. A NULL log swallows all.
 * Library code reports failures through graft_error, never here; the log is for what was chosen and what was left.
 *
 * The file form is the one that tools of the existing stack read (SPEC libnvidia-container 3.8):
 *	I1121 05:04:34.098164 18131 nvc_info.c:799] requesting driver information with ''
 */
#ifndef GRAFT_BASE_LOG_H
#define GRAFT_BASE_LOG_H

#include <stdbool.h>

enum graft_log_level { GRAFT_LOG_ERROR, GRAFT_LOG_WARN, GRAFT_LOG_INFO, GRAFT_LOG_DEBUG };

struct graft_log {
	void (*write)(void *arg, enum graft_log_level level, const char *file, int line, const char *message);
	void *arg;                /* passed to write and wants */
	enum graft_log_level max; /* messages above it are not formatted */
	/* NULL, or whether a message of that file is wanted at all: what is not is not formatted either. */
	bool (*wants)(const void *arg, enum graft_log_level level, const char *file);
};

/* Formats one message and hands it to the log, if the log wants that level. Keeps errno. Callers use the macros below. */
__attribute__((format(printf, 5, 6))) void graft_log_write(const struct graft_log *log, enum graft_log_level level,
							   const char *file, int line, const char *format, ...);

#ifndef __FILE_NAME__
#define __FILE_NAME__ __FILE__
#endif

#define graft_warn(log, ...)  graft_log_write(log, GRAFT_LOG_WARN, __FILE_NAME__, __LINE__, __VA_ARGS__)
#define graft_info(log, ...)  graft_log_write(log, GRAFT_LOG_INFO, __FILE_NAME__, __LINE__, __VA_ARGS__)
#define graft_debug(log, ...) graft_log_write(log, GRAFT_LOG_DEBUG, __FILE_NAME__, __LINE__, __VA_ARGS__)

/* A log that appends lines of the form above to `fd` (one write(2) a line). The state is inside; fd is borrowed. */
struct graft_log_file {
	struct graft_log log;
	int fd;
};
void graft_log_file_init(struct graft_log_file *file, int fd, enum graft_log_level max);

/*
 * Opens the host's `path` for appending (a link is followed: callers give /dev/stderr) and writes the banner lines of
 * SPEC 3.8. Returns the fd, or -1 with errno when it cannot be opened (callers go on without a log).
 */
int graft_log_file_open(const char *path);

#endif
