/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_line: the log lines of our programs, in the format that people and engines look for (SPEC
 * ctk-and-cdi 1.0, SPEC runtime-and-hook 3.5): time="2026-01-02T15:04:05Z" level=info msg="...".
 * Where a line is written is up to the program.
 */
#ifndef GRAFT_CLI_LOG_LINE_H
#define GRAFT_CLI_LOG_LINE_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"

/* Returns "error", "warning", "info" or "debug". */
const char *cli_log_level_name(enum graft_log_level level);
/*
 * Formats a Unix time as it appears in a log line. In UTC, since the host's time zone is in a file
 * that we may not be able to read.
 */
#define CLI_LOG_TIME_SIZE 32
void cli_log_time(long long seconds, char text[CLI_LOG_TIME_SIZE]);
/*
 * Appends one line with its newline. The message must not contain newlines (graft_log_write() sees
 * to that).
 */
void cli_log_line(long long seconds, enum graft_log_level level, const char *message, struct graft_buffer *out);
/*
 * Writes a line with the current time in one write(2). Errors are ignored: a log must not make the
 * work fail.
 */
void cli_log_line_write(int fd, enum graft_log_level level, const char *message);

/*
 * Logs an error at level error, in one line: "<prefix>: <error>. <hint>"; an empty prefix is left
 * out.
 */
void cli_log_failure(const struct graft_log *log, const char *prefix, const struct graft_error *err);

/*
 * The `wants` of a log that shows a person at a terminal what takes more than a second. Returns
 * whether the message can begin with GRAFT_NVML_WAITING or GRAFT_LEASE_WAITING.
 */
bool cli_wants_waiting(const void *arg, enum graft_log_level level, const char *file);

#endif
