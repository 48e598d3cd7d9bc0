/* SPDX-License-Identifier: Apache-2.0 */
/* log_line: formats time, level and message as one line. Has no state. */
#include "cli/log_line.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "formats/json/json.h"

const char *cli_log_level_name(enum graft_log_level level)
{
	static const char *const names[] = {
		[GRAFT_LOG_ERROR] = "error",
		[GRAFT_LOG_WARN] = "warning",
		[GRAFT_LOG_INFO] = "info",
		[GRAFT_LOG_DEBUG] = "debug",
	};

	return names[level];
}

void cli_log_time(long long seconds, char text[CLI_LOG_TIME_SIZE])
{
	time_t when = (time_t)seconds;
	struct tm utc;

	if (!gmtime_r(&when, &utc) || strftime(text, CLI_LOG_TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
		text[0] = '\0';
}

void cli_log_line(long long seconds, enum graft_log_level level, const char *message, struct graft_buffer *out)
{
	char date[CLI_LOG_TIME_SIZE];

	cli_log_time(seconds, date);
	graft_buffer_printf(out, "time=\"%s\" level=%s msg=", date, cli_log_level_name(level));
	graft_json_quote(out, message);
	graft_buffer_char(out, '\n');
}

void cli_log_line_write(int fd, enum graft_log_level level, const char *message)
{
	auto_buffer struct graft_buffer line = { .max = 0 };

	cli_log_line((long long)time(NULL), level, message, &line);
	if (!graft_buffer_failed(&line) && write(fd, line.bytes, line.length) < 0) {
		/* the log has no reader */
	}
}

void cli_log_failure(const struct graft_log *log, const char *prefix, const struct graft_error *err)
{
	char text[sizeof(err->msg) + sizeof(err->ctx) + 128];
	const char *hint = graft_error_hint(err);

	(void)graft_error_text(err, text, sizeof(text));
	graft_log_write(log, GRAFT_LOG_ERROR, __FILE_NAME__, __LINE__, "%s%s%s%s%s", prefix,
			prefix[0] != '\0' ? ": " : "", text, hint[0] != '\0' ? ". " : "", hint);
}

bool cli_wants_waiting(const void *arg, enum graft_log_level level, const char *file)
{
	(void)arg;
	return level == GRAFT_LOG_INFO && (strcmp(file, "nvml.c") == 0 || strcmp(file, "lease_wait.c") == 0);
}
