/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_log: the log lines for engines and people, and the files that they go to. Does not decide
 * what is logged.
 */
#include "cli/runtime/runtime_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "apply/host_file.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "cli/log_line.h"
#include "formats/json/json.h"

bool runtime_log_level(const char *word, enum graft_log_level *ret_level)
{
	static const struct {
		const char *word;
		enum graft_log_level level;
	} rows[] = {
		{ "panic", GRAFT_LOG_ERROR },  { "fatal", GRAFT_LOG_ERROR }, { "error", GRAFT_LOG_ERROR },
		{ "warning", GRAFT_LOG_WARN }, { "warn", GRAFT_LOG_WARN },   { "info", GRAFT_LOG_INFO },
		{ "debug", GRAFT_LOG_DEBUG },  { "trace", GRAFT_LOG_DEBUG },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		if (strcasecmp(word, rows[i].word) == 0) {
			*ret_level = rows[i].level;
			return true;
		}
	}
	return false;
}

void runtime_log_format(bool json, long long seconds, enum graft_log_level level, const char *message,
			struct graft_buffer *out)
{
	char date[CLI_LOG_TIME_SIZE];

	if (!json) {
		cli_log_line(seconds, level, message, out);
		return;
	}
	cli_log_time(seconds, date);
	graft_buffer_printf(out, "{\"level\":\"%s\",\"msg\":", cli_log_level_name(level));
	graft_json_quote(out, message);
	graft_buffer_printf(out, ",\"time\":\"%s\"}\n", date);
}

/* ---- files ---- */

static void write_runtime_line(int fd, bool json, enum graft_log_level level, const char *message)
{
	auto_buffer struct graft_buffer line = { .max = 0 };
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &now);
	runtime_log_format(json, (long long)now.tv_sec, level, message, &line);
	/* A log that cannot be written must not make the work fail. */
	if (!graft_buffer_failed(&line) && write(fd, line.bytes, line.length) < 0)
		errno = 0;
}

static void tell_unopened(const struct runtime_log *log, const struct graft_error *err)
{
	char message[sizeof(err->msg) + sizeof(err->ctx)];

	(void)graft_error_text(err, message, sizeof(message));
	for (size_t i = 0; i < RUNTIME_LOG_FILES; i++) {
		if (log->files[i].fd >= 0) {
			write_runtime_line(log->files[i].fd, log->json, GRAFT_LOG_WARN, message);
			return;
		}
	}
	write_runtime_line(STDERR_FILENO, false, GRAFT_LOG_WARN, message);
}

static void open_files(struct runtime_log *log)
{
	struct graft_error failures[RUNTIME_LOG_FILES] = { { .status = GRAFT_OK } };

	for (size_t i = 0; i < RUNTIME_LOG_FILES; i++) {
		struct runtime_log_file *file = &log->files[i];

		if (!file->path || file->tried)
			continue;
		file->tried = true;
		/* A pipe without a reader must not block the start of a container. */
		file->fd = graft_host_log_open(file->path, O_NONBLOCK, true, &failures[i]);
	}
	for (size_t i = 0; i < RUNTIME_LOG_FILES; i++) {
		if (failures[i].status != GRAFT_OK)
			tell_unopened(log, &failures[i]);
	}
}

static void write_log(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	struct runtime_log *log = arg;

	(void)file;
	(void)line;
	open_files(log);
	for (size_t i = 0; i < RUNTIME_LOG_FILES; i++) {
		if (log->files[i].fd >= 0)
			write_runtime_line(log->files[i].fd, log->json, level, message);
	}
}

/* Opens every file, or fails to; none is tried again. */
static void settle_runtime_log(void *arg)
{
	open_files(arg);
}

/*
 * The file that --log names, or NULL. As in crun(1): file:PATH is a file, journald: and syslog: are
 * not.
 */
static const char *log_argument(const char *argument)
{
	if (!argument || argument[0] == '\0')
		return NULL;
	if (graft_starts_with(argument, "journald:") || graft_starts_with(argument, "syslog:"))
		return NULL;
	return graft_starts_with(argument, "file:") ? argument + strlen("file:") : argument;
}

static void close_files(struct runtime_log *log)
{
	for (size_t i = 0; i < RUNTIME_LOG_FILES; i++) {
		if (log->files[i].fd >= 0)
			(void)close(log->files[i].fd);
		log->files[i] = (struct runtime_log_file){ .fd = -1 };
	}
}

static void set_runtime_level(struct runtime_log *log, const struct graft_config *config, bool debug)
{
	bool known = !config || runtime_log_level(config->runtime.log_level, &log->log.max);

	if (debug)
		log->log.max = GRAFT_LOG_DEBUG;
	if (!known)
		graft_warn(
		    &log->log,
		    "Error getting log level: invalid log-level '%s' (nvidia-container-runtime.log-level in %s); "
		    "allowed: error, warning, info, debug",
		    config->runtime.log_level, config->file ? config->file : "the defaults");
}

void runtime_log_start(struct runtime_log *log, const struct graft_config *config,
		       const struct graft_oci_arguments *arguments)
{
	const char *debug = config ? config->runtime.debug : "";

	*log = (struct runtime_log){
		.log = { .write = write_log, .settle = settle_runtime_log, .arg = log, .max = GRAFT_LOG_INFO },
		.files = { { .fd = -1 }, { .fd = -1 } },
		.json = arguments->log_format && strcmp(arguments->log_format, "json") == 0,
	};
	if (!arguments->version) {
		log->files[0].path = debug[0] != '\0' && strcmp(debug, "/dev/null") != 0 ? debug : NULL;
		log->files[1].path = log_argument(arguments->log);
	}
	set_runtime_level(log, config, arguments->debug);
}

/*
 * The error's hint or its status', except where the message itself states what is allowed or
 * missing.
 */
static const char *hint_beyond_message(const struct graft_error *err)
{
	bool says_itself = err->status == GRAFT_INVALID || err->status == GRAFT_FORMAT ||
			   err->status == GRAFT_NOT_FOUND;

	if (err->hint || err->status == GRAFT_IO)
		return graft_error_hint(err);
	return says_itself ? "" : graft_status_hint(err->status);
}

void runtime_log_fatal(struct runtime_log *log, const struct graft_error *err)
{
	char text[sizeof(err->msg) + sizeof(err->ctx) + 128];
	char message[sizeof(text) + 2048];
	const char *hint = hint_beyond_message(err);

	/* Engines show a single line, so it includes the hint. */
	(void)graft_error_text(err, text, sizeof(text));
	(void)snprintf(message, sizeof(message), "%s%s%s", text, hint[0] != '\0' ? ". " : "", hint);
	graft_log_write(&log->log, GRAFT_LOG_ERROR, __FILE_NAME__, __LINE__, "%s", message);
	close_files(log);
	write_runtime_line(STDERR_FILENO, false, GRAFT_LOG_ERROR, message);
}
