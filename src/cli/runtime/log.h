/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: where the runtime tells what it does (SPEC runtime-and-hook 3.5): the file of config.toml and the file of --log, in which engines look for
 * the reason of a failure; each line goes to both, as logfmt text or JSON. A file is opened when its first line is written, so a call that
 * has nothing to say opens none.
 */
#ifndef GRAFT_CLI_RUNTIME_LOG_H
#define GRAFT_CLI_RUNTIME_LOG_H

#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"
#include "request/config.h"
#include "request/oci_arguments.h"

#define RUNTIME_LOG_FILES 2

struct runtime_log_file {
	const char *path; /* NULL = none */
	int fd;           /* -1 = not open */
	bool tried;       /* to open it */
};

struct runtime_log {
	struct graft_log log;
	struct runtime_log_file files[RUNTIME_LOG_FILES];
	bool json;
};

/*
 * Starts the log. `config` is NULL as long as it is not known: then --log alone is written to. It can be started again, when it is. `log` must
 * not move while it is used. With a version flag nothing is opened.
 */
void runtime_log_start(struct runtime_log *log, const struct graft_config *config,
		       const struct graft_oci_arguments *arguments);
/* Says why the program ends: one line, cause and remedy, to the files, which are then closed, and as text on stderr. */
void runtime_log_fatal(struct runtime_log *log, const struct graft_error *err);

/* The level of a word of config.toml; false for one that is none. */
bool runtime_log_level(const char *word, enum graft_log_level *ret_level);
/* One line with its newline. `seconds` is the time of day. */
struct graft_buffer;
void runtime_log_format(bool json, long long seconds, enum graft_log_level level, const char *message,
			struct graft_buffer *out);

#endif
