/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of the runtime's log, and which file each of them goes to (SPEC runtime-and-hook 3.5). */
#include "../../start/world.h"
#include "../../unit.h"
#include "base/buffer.h"
#include "base/log.h"
#include "cli/runtime/runtime_log.h"

static void test_format(void **state)
{
	static const struct {
		bool json;
		enum graft_log_level level;
		const char *message, *line;
	} rows[] = {
		{ false, GRAFT_LOG_ERROR, "no driver",
		  "time=\"2001-09-09T01:46:40Z\" level=error msg=\"no driver\"\n" },
		{ false, GRAFT_LOG_WARN, "a \"b\"\n",
		  "time=\"2001-09-09T01:46:40Z\" level=warning msg=\"a \\\"b\\\"\\n\"\n" },
		{ true, GRAFT_LOG_ERROR, "no driver",
		  "{\"level\":\"error\",\"msg\":\"no driver\",\"time\":\"2001-09-09T01:46:40Z\"}\n" },
		{ true, GRAFT_LOG_INFO, "a \"b\" \\ \t\xff",
		  "{\"level\":\"info\",\"msg\":\"a \\\"b\\\" \\\\ "
		  "\\t\xef\xbf\xbd\",\"time\":\"2001-09-09T01:46:40Z\"}\n" },
		{ true, GRAFT_LOG_DEBUG, "", "{\"level\":\"debug\",\"msg\":\"\",\"time\":\"2001-09-09T01:46:40Z\"}\n" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct graft_buffer line = { .max = 0 };

		runtime_log_format(rows[i].json, 1000000000, rows[i].level, rows[i].message, &line);
		assert_string_equal(graft_buffer_text(&line), rows[i].line);
		graft_buffer_done(&line);
	}
}

static void test_level(void **state)
{
	static const struct {
		const char *word;
		int level; /* -1 = none */
	} rows[] = {
		{ "panic", GRAFT_LOG_ERROR },
		{ "fatal", GRAFT_LOG_ERROR },
		{ "error", GRAFT_LOG_ERROR },
		{ "warn", GRAFT_LOG_WARN },
		{ "warning", GRAFT_LOG_WARN },
		{ "Warning", GRAFT_LOG_WARN },
		{ "info", GRAFT_LOG_INFO },
		{ "INFO", GRAFT_LOG_INFO },
		{ "debug", GRAFT_LOG_DEBUG },
		{ "trace", GRAFT_LOG_DEBUG },
		{ "", -1 },
		{ "loud", -1 },
		{ "info ", -1 },
		{ "infos", -1 },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		enum graft_log_level level = GRAFT_LOG_INFO;

		assert_int_equal(runtime_log_level(rows[i].word, &level), rows[i].level >= 0);
		if (rows[i].level >= 0)
			assert_int_equal(level, rows[i].level);
	}
}

/* Which of two lines, an info and a debug one, are in which file; "" = none was written, and the file is not there. */
static void test_files(void **state)
{
	enum { A = 1, B = 2 }; /* config's file, --log's */
	static const struct {
		const char *debug, *level,
		    *log; /* "A" and "B" stand for the two files, which lie in directories that are not there */
		bool flag, version;
		unsigned int info, detail; /* the files that have the info line and the debug line */
	} rows[] = {
		{ "", "info", NULL, false, false, 0, 0 },         { "/dev/null", "info", NULL, false, false, 0, 0 },
		{ "A", "info", NULL, false, false, A, 0 },        { "A", "debug", NULL, false, false, A, A },
		{ "A", "error", "B", false, false, 0, 0 },        { "A", "warn", "B", true, false, A | B, A | B },
		{ "", "info", "B", false, false, B, 0 },          { "", "trace", "B", false, false, B, B },
		{ "A", "info", "B", false, true, 0, 0 },          { "", "info", "file:B", false, false, B, 0 },
		{ "", "info", "journald:x", false, false, 0, 0 }, { "", "info", "syslog:x", false, false, 0, 0 },
		{ "", "info", "", false, false, 0, 0 },
	};
	const struct world *world = *state;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *a = graft_arena_printf(world->arena, "%zu/x/y/a", i);
		const char *b = graft_arena_printf(world->arena, "%zu/b", i);
		struct graft_config config = { .runtime = { .debug = rows[i].debug, .log_level = rows[i].level } };
		struct graft_oci_arguments arguments = { .log = rows[i].log,
							 .debug = rows[i].flag,
							 .version = rows[i].version };
		struct runtime_log log;
		unsigned int info, detail;

		if (strcmp(rows[i].debug, "A") == 0)
			config.runtime.debug = world_path(world, a);
		if (rows[i].log && strcmp(rows[i].log, "B") == 0)
			arguments.log = world_path(world, b);
		if (rows[i].log && strcmp(rows[i].log, "file:B") == 0)
			arguments.log = graft_arena_printf(world->arena, "file:%s", world_path(world, b));
		runtime_log_start(&log, &config, &arguments);
		graft_debug(&log.log, "a detail");
		graft_info(&log.log, "a fact");
		a = world_get(world, a);
		b = world_get(world, b);
		info = (strstr(a, "level=info msg=\"a fact\"\n") ? A : 0u) |
		       (strstr(b, "level=info msg=\"a fact\"\n") ? B : 0u);
		detail = (strstr(a, "msg=\"a detail\"\n") ? A : 0u) | (strstr(b, "msg=\"a detail\"\n") ? B : 0u);
		if (info != rows[i].info || detail != rows[i].detail)
			fail_msg("row %zu: %u %u", i, info, detail);
		for (size_t file = 0; file < RUNTIME_LOG_FILES; file++) {
			if (log.files[file].fd >= 0) {
				assert_int_equal(fcntl(log.files[file].fd, F_GETFD), FD_CLOEXEC);
				(void)close(log.files[file].fd);
			}
		}
	}
}

static void test_appends_and_has_the_format(void **state)
{
	const struct world *world = *state;
	struct graft_oci_arguments arguments = { .log = world_put(world, "log", "before\n", 0644),
						 .log_format = "json" };
	struct runtime_log log;

	runtime_log_start(&log, NULL, &arguments);
	graft_info(&log.log, "x");
	(void)close(log.files[1].fd);
	assert_non_null(strstr(world_get(world, "log"), "before\n{\"level\":\"info\",\"msg\":\"x\",\"time\":\"2"));
}

/* Runs `body` with stderr going to a file, and returns what it wrote. */
static const char *with_stderr(const struct world *world, void (*body)(struct runtime_log *log, void *arg),
			       struct runtime_log *log, void *arg)
{
	int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	int file = open(world_path(world, "stderr"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(saved >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
	body(log, arg);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	(void)close(saved);
	(void)close(file);
	return world_get(world, "stderr");
}

static void end_fatally(struct runtime_log *log, void *arg)
{
	runtime_log_fatal(log, arg);
}

/* Once to the files, with cause and remedy in one line, and once to stderr as text. */
static void test_fatal(void **state)
{
	const struct world *world = *state;
	struct graft_oci_arguments arguments = { .log = world_path(world, "log"), .log_format = "json" };
	struct graft_error err = { 0 };
	struct runtime_log log;
	const char *text;

	(void)graft_fail(&err, GRAFT_NO_DRIVER, 0, "driver not loaded");
	(void)graft_wrap(&err, "container \"x\"");
	runtime_log_start(&log, NULL, &arguments);
	text = with_stderr(world, end_fatally, &log, &err);
#define WHAT "container \\\"x\\\": driver not loaded. Load it with 'modprobe nvidia' and check the kernel log."
	assert_non_null(strstr(text, " level=error msg=\"" WHAT "\"\n"));
	assert_memory_equal(text, "time=\"", 6);
	text = world_get(world, "log");
	assert_memory_equal(text, "{\"level\":\"error\",\"msg\":\"" WHAT "\",\"time\":\"",
			    strlen("{\"level\":\"error\",\"msg\":\"" WHAT "\",\"time\":\""));
	assert_int_equal(log.files[1].fd, -1);

	/* What says itself what is allowed gets no other advice. */
	(void)graft_fail(&err, GRAFT_FORMAT, 0, "line 3: mode is 4; allowed: a string");
	arguments = (struct graft_oci_arguments){ .log = NULL };
	runtime_log_start(&log, NULL, &arguments);
	text = with_stderr(world, end_fatally, &log, &err);
	assert_non_null(strstr(text, "msg=\"line 3: mode is 4; allowed: a string\"\n"));
}

static void say_two_things(struct runtime_log *log, void *arg)
{
	graft_info(&log->log, "first");
	graft_info(&log->log, "second");
}

static void start_and_speak(struct runtime_log *log, void *arg)
{
	const struct graft_config *config = arg;
	const struct graft_oci_arguments arguments = { .log = config->runtime.debug };

	runtime_log_start(log, config, &arguments);
}

/* A file that cannot be opened is one warning, in the other file or, without one, on stderr. */
static void test_unopened(void **state)
{
	const struct world *world = *state;
	const char *bad = graft_arena_printf(world->arena, "%s/x", world_put(world, "file", "", 0644)), *text;
	const char *warning = graft_arena_printf(world->arena,
						 "level=warning msg=\"cannot log to %s: not a directory\"\n", bad);
	struct graft_config config = { .runtime = { .debug = bad, .log_level = "info" } };
	struct graft_oci_arguments arguments = { .log = world_path(world, "log") };
	struct runtime_log log;

	runtime_log_start(&log, &config, &arguments);
	assert_string_equal(with_stderr(world, say_two_things, &log, NULL), "");
	text = strstr(world_get(world, "log"), warning);
	assert_non_null(text);
	assert_null(strstr(text + strlen(warning), "cannot log to"));
	assert_non_null(strstr(text, "msg=\"first\"\n"));
	assert_non_null(strstr(text, "msg=\"second\"\n"));
	(void)close(log.files[1].fd);

	arguments.log = bad;
	config.runtime.debug = "";
	runtime_log_start(&log, &config, &arguments);
	text = with_stderr(world, say_two_things, &log, NULL);
	text = strstr(text, warning);
	assert_non_null(text);
	assert_null(strstr(text + strlen(warning), "cannot log to"));
	assert_null(strstr(text, "first"));

	/* A pipe without a reader is one of these; it does not stop the program. */
	assert_int_equal(mkfifo(world_path(world, "pipe"), 0600), 0);
	arguments.log = world_path(world, "pipe");
	runtime_log_start(&log, &config, &arguments);
	assert_non_null(strstr(with_stderr(world, say_two_things, &log, NULL), ": no such device or address"));
}

static void settle(struct runtime_log *log, void *arg)
{
	graft_log_settle(&log->log);
}

/* What is at the paths later is another tree's: nothing is opened any more, and lines still come to where they belong. */
static void test_settled(void **state)
{
	const struct world *world = *state;
	const char *file = world_put(world, "file", "", 0644), *bad = graft_arena_printf(world->arena, "%s/x", file);
	const char *path = world_path(world, "log");
	struct graft_config config = { .runtime = { .debug = bad, .log_level = "error" } };
	struct graft_oci_arguments arguments = { .log = path };
	struct runtime_log log;

	runtime_log_start(&log, &config, &arguments);
	(void)with_stderr(world, settle, &log, NULL);
	assert_int_equal(rename(path, world_path(world, "moved")), 0);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkdir(file, 0755), 0);
	graft_log_write(&log.log, GRAFT_LOG_ERROR, "x.c", 1, "late");
	assert_non_null(strstr(world_get(world, "moved"), "msg=\"late\"\n"));
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(bad, F_OK), -1);
	(void)close(log.files[1].fd);

	graft_log_settle(NULL);
	graft_log_settle(&(struct graft_log){ .max = GRAFT_LOG_INFO });
}

static void test_unknown_level(void **state)
{
	const struct world *world = *state;
	struct graft_config config = { .file = "/c.toml",
				       .runtime = { .debug = world_path(world, "log"), .log_level = "loud" } };
	struct runtime_log log;

	assert_string_equal(with_stderr(world, start_and_speak, &log, &config), "");
	assert_non_null(strstr(world_get(world, "log"),
			       "level=warning msg=\"Error getting log level: invalid log-level 'loud' "
			       "(nvidia-container-runtime.log-level in /c.toml)"));
	assert_int_equal(log.log.max, GRAFT_LOG_INFO);
	for (size_t i = 0; i < RUNTIME_LOG_FILES; i++)
		(void)close(log.files[i].fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_level),
		cmocka_unit_test_setup_teardown(test_files, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_appends_and_has_the_format, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_fatal, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_unopened, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_settled, world_begin, world_end),
		cmocka_unit_test_setup_teardown(test_unknown_level, world_begin, world_end),
	};

	return cmocka_run_group_tests_name("runtime_log", tests, NULL, NULL);
}
