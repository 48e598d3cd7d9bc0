/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_log: the runtime's log (SPEC runtime-and-hook 3.5). Each line goes both to the file of
 * config.toml and to the file of --log, where engines look for the reason of a failure, as logfmt
 * text or JSON. A file is opened for its first line, so a call that logs nothing opens none; a call
 * that joins a container's mounts opens both beforehand (graft_log_settle).
 */
#ifndef GRAFT_CLI_RUNTIME_RUNTIME_LOG_H
#define GRAFT_CLI_RUNTIME_RUNTIME_LOG_H

#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"
#include "request/config.h"
#include "request/oci_arguments.h"

#define RUNTIME_LOG_FILES 2

struct runtime_log_file {
	const char *path; /* NULL = none */
	int fd;           /* -1 = not open */
	bool tried;       /* opening it was attempted */
};

struct runtime_log {
	struct graft_log log;
	struct runtime_log_file files[RUNTIME_LOG_FILES];
	bool json;
};

/*
 * Starts the log. `config` NULL: not known yet, so only the file of --log is used; start the log
 * again once it is known. `log` must not be moved while it is in use. With a version flag no file
 * is opened.
 */
void runtime_log_start(struct runtime_log *log, const struct graft_config *config,
		       const struct graft_oci_arguments *arguments);
/*
 * Logs why the program ends, cause and hint in one line, to the files, which are then closed, and
 * as text to stderr.
 */
void runtime_log_fatal(struct runtime_log *log, const struct graft_error *err);

/* Converts a log level of config.toml; false if it is unknown. */
bool runtime_log_level(const char *word, enum graft_log_level *ret_level);
/* Appends one line with its newline. `seconds` is Unix time. */
struct graft_buffer;
void runtime_log_format(bool json, long long seconds, enum graft_log_level level, const char *message,
			struct graft_buffer *out);

#endif
