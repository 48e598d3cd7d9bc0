/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: records decisions. A log is a value that is passed along; there is no global one. A NULL log
 * discards everything. Library code reports failures through graft_error, never here; the log is
 * for what was chosen and what was left out.
 *
 * The tools of the existing stack read the same file format (SPEC libnvidia-container 3.8):
 *	I1121 05:04:34.098164 18131 nvc_info.c:799] requesting driver information with ''
 */
#ifndef GRAFT_BASE_LOG_H
#define GRAFT_BASE_LOG_H

#include <stdbool.h>

enum graft_log_level { GRAFT_LOG_ERROR, GRAFT_LOG_WARN, GRAFT_LOG_INFO, GRAFT_LOG_DEBUG };

struct graft_log {
	void (*write)(void *arg, enum graft_log_level level, const char *file, int line, const char *message);
	void *arg;                /* passed to write, wants and settle */
	enum graft_log_level max; /* messages above this level are not formatted */
	/*
	 * Returns whether a message from that file is wanted; others are not formatted. May be
	 * NULL.
	 */
	bool (*wants)(const void *arg, enum graft_log_level level, const char *file);
	/* Called by graft_log_settle(). May be NULL. */
	void (*settle)(void *arg);
};

/*
 * Call this before joining the mount namespace of a container. A log that opens its file on demand
 * opens it now, and never again. SECURITY: in that namespace, a path of the host would be a path of
 * the image.
 */
void graft_log_settle(const struct graft_log *log);

/*
 * Formats a message and passes it to the log, if the log wants that level. Preserves errno. Use the
 * macros below instead.
 */
__attribute__((format(printf, 5, 6))) void graft_log_write(const struct graft_log *log, enum graft_log_level level,
							   const char *file, int line, const char *format, ...);

#ifndef __FILE_NAME__
#define __FILE_NAME__ __FILE__
#endif

#define graft_warn(log, ...)  graft_log_write(log, GRAFT_LOG_WARN, __FILE_NAME__, __LINE__, __VA_ARGS__)
#define graft_info(log, ...)  graft_log_write(log, GRAFT_LOG_INFO, __FILE_NAME__, __LINE__, __VA_ARGS__)
#define graft_debug(log, ...) graft_log_write(log, GRAFT_LOG_DEBUG, __FILE_NAME__, __LINE__, __VA_ARGS__)

/*
 * A log that appends lines in the above format to `fd`, one write(2) per line. The state is inside;
 * `fd` is borrowed.
 */
struct graft_log_file {
	struct graft_log log;
	int fd;
};
/* Initialises `file` to log messages of levels up to `max`. */
void graft_log_file_init(struct graft_log_file *file, int fd, enum graft_log_level max);

/*
 * Writes the banner lines of SPEC libnvidia-container 3.8. Returns the descriptor, or -1 if it is
 * negative or cannot be written to, and closes it then; callers continue without a log.
 */
int graft_log_file_begin(int take_fd);

#endif
