/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_line: the lines in which the programs tell people and engines what happens, in the form that those look for (SPEC ctk-and-cdi 1.0,
 * runtime-and-hook 3.5): time="2026-01-02T15:04:05Z" level=info msg="...". Writes text; where it goes is the program's affair.
 */
#ifndef GRAFT_CLI_LOG_LINE_H
#define GRAFT_CLI_LOG_LINE_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"

/* "error", "warning", "info", "debug". */
const char *cli_log_level_name(enum graft_log_level level);
/* The time of day, in seconds, as it stands in such a line; in UTC, since the host's time zone is in a file that need not be ours. */
#define CLI_LOG_TIME_SIZE 32
void cli_log_time(long long seconds, char text[CLI_LOG_TIME_SIZE]);
/* Appends one line with its newline. The message is one line of text (graft_log_write() makes it so). */
void cli_log_line(long long seconds, enum graft_log_level level, const char *message, struct graft_buffer *out);
/* The line with the time of now, in one write(2). A failure is swallowed: a log must not fail the work. */
void cli_log_line_write(int fd, enum graft_log_level level, const char *message);

/* Tells an error at level error, as one line: "<prefix>: <error>. <what to do>"; an empty prefix is left out. */
void cli_log_failure(const struct graft_log *log, const char *prefix, const struct graft_error *err);

#endif
