/* SPDX-License-Identifier: Apache-2.0 */
/* nvidia-nri-plugin: the entry point: the NRI plugin in a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "apply/host_file.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/read.h"
#include "daemon/http.h"
#include "daemon/notify.h"
#include "daemon/nri_plugin.h"
#include "daemon/program.h"
#include "kubernetes/nri_options.h"

#define PROGRAM  "nvidia-nri-plugin"
#define HOOK     "nvidia-cdi-hook"
#define HOOK_MAX ((size_t)64 << 20)

#define RUN_LIMIT_US 5000000 /* longest run at real-time priority without waiting */
#define PAGE_GAP_MS  50      /* between connections, so that a flood of requests does not delay answers to the engine */

struct nri_daemon {
	struct graft_loop loop;
	struct graft_log_file log;
	struct graft_nri_flags flags;
	struct graft_arena *arena;
	struct nri_plugin_options options;
	struct nri_plugin *plugin;
	struct program_signals signals;
	struct http_server http;
	const char *notify_socket;
};

/*
 * If nothing reads the log, blocking on it would keep the engine waiting, and containers would
 * start without their devices. Drop its lines instead.
 */
static bool takes_line(const void *arg, enum graft_log_level level, const char *file)
{
	struct pollfd errors = { .fd = STDERR_FILENO, .events = POLLOUT };

	(void)arg;
	(void)level;
	(void)file;
	return poll(&errors, 1, 0) == 1 && (errors.revents & POLLOUT) != 0;
}

/*
 * Real-time priority: on a busy node, answers would otherwise be delayed by milliseconds, and an
 * engine that waits too long starts containers without their devices. The process that reads the
 * host keeps the usual priority. A process that never waits is killed.
 */
static void take_priority(const struct graft_log *log)
{
	const struct sched_param lowest = { .sched_priority = 1 };
	const struct rlimit limit = { .rlim_cur = RUN_LIMIT_US, .rlim_max = RUN_LIMIT_US };

	if (setrlimit(RLIMIT_RTTIME, &limit) < 0 || sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) < 0)
		graft_warn(log, "no real-time priority (%s): answers take longer while the processors are busy",
			   strerror(errno));
}

/* --- the hook --- */

/* The program next to this one. */
static const char *own_hook(struct graft_arena *arena)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (n <= 0)
		return "/usr/bin/" HOOK;
	path[n] = '\0';
	slash = strrchr(path, '/');
	return graft_arena_printf(arena, "%.*s/" HOOK, slash ? (int)(slash - path) : 0, path);
}

/* Replaces it atomically: a container that starts meanwhile runs the old one or the new one. */
static int install_hook(struct nri_daemon *daemon, struct graft_error *err)
{
	const char *from = own_hook(daemon->arena), *text, *there;
	const char *to = graft_arena_printf(daemon->arena, "%s/" HOOK, daemon->flags.install_hook);
	size_t length, n_there;
	int rc;

	if (!from || !to)
		return graft_fail_memory(err);
	rc = graft_read_input(from, HOOK_MAX, daemon->arena, &text, &length);
	if (rc < 0)
		return graft_fail_errno(err, -rc, "cannot read %s", from);
	daemon->flags.hook_path = to;
	if (graft_read_input(to, HOOK_MAX, daemon->arena, &there, &n_there) == 0 && n_there == length &&
	    memcmp(text, there, length) == 0)
		return 0;
	graft_info(&daemon->log.log, "installing %s", to);
	return graft_host_file_write(to, text, length, 0755, err);
}

/* --- pages --- */

static int nri_page(void *arg, const char *path, struct graft_buffer *body)
{
	const struct nri_daemon *daemon = arg;
	bool registered = daemon->plugin && nri_plugin_is_registered(daemon->plugin);

	if (strcmp(path, "/metrics") == 0) {
		if (daemon->plugin)
			nri_plugin_metrics(daemon->plugin, body);
		return 200;
	}
	if (strcmp(path, "/healthz") == 0) {
		graft_buffer_string(body, "ok\n");
		return 200;
	}
	if (strcmp(path, "/readyz") != 0)
		return 404;
	graft_buffer_string(body, registered ? "ok\n" : "no engine has registered the plugin\n");
	return registered ? 200 : 503;
}

/* --- the daemon --- */

static void nri_hang_up(void *arg)
{
	struct nri_daemon *daemon = arg;

	notify_reloading(daemon->notify_socket);
	if (daemon->plugin)
		nri_plugin_reload(daemon->plugin);
	notify_send(daemon->notify_socket, "READY=1");
}

static void nri_registered(void *arg)
{
	struct nri_daemon *daemon = arg;

	notify_send(daemon->notify_socket, "READY=1\nSTATUS=registered with the engine");
}

static void nri_ended(void *arg)
{
	struct nri_daemon *daemon = arg;

	graft_loop_stop(&daemon->loop);
}

/* The environment of a plugin that an engine has started. */
static int take_engine(struct nri_daemon *daemon, struct graft_error *err)
{
	const char *number = program_variable("NRI_PLUGIN_SOCKET"), *name = program_variable("NRI_PLUGIN_NAME");
	char *end;
	long fd;

	if (!number || number[0] == '\0')
		return 0;
	fd = strtol(number, &end, 10);
	if (*end != '\0' || fd < 3 || fd > INT_MAX || fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl((int)fd, F_SETFL, O_NONBLOCK) < 0)
		return graft_fail(err, GRAFT_INVALID, 0, "NRI_PLUGIN_SOCKET=%.40s is not an open descriptor", number);
	daemon->options.has_fd = true;
	daemon->options.take_fd = (int)fd;
	if (name && name[0] != '\0')
		daemon->options.name = name;
	return 0;
}

static int begin_nri_daemon(struct nri_daemon *daemon, struct graft_error *err)
{
	const struct graft_nri_flags *flags = &daemon->flags;

	daemon->options = (struct nri_plugin_options){ .loop = &daemon->loop,
						       .log = &daemon->log.log,
						       .flags = flags,
						       .name = NRI_PLUGIN_NAME,
						       .ended = nri_ended,
						       .registered = nri_registered,
						       .arg = daemon };
	if (take_engine(daemon, err) < 0 ||
	    program_watch_signals(&daemon->signals, &daemon->loop, &daemon->log.log, nri_hang_up, daemon, err) < 0)
		return -1;
	if (flags->install_hook[0] != '\0' && install_hook(daemon, err) < 0)
		return -1;
	if (flags->listen[0] != '\0' &&
	    http_begin(&daemon->http, &daemon->loop, flags->listen, nri_page, daemon, err) < 0)
		return -1;
	daemon->http.listener.gap_ms = PAGE_GAP_MS;
	daemon->plugin = nri_plugin_begin(&daemon->options, err);
	if (!daemon->plugin)
		return -1;
	/* This service does not fail if an engine has no NRI. */
	notify_send(daemon->notify_socket, "READY=1\nSTATUS=waiting for the engine");
	return 0;
}

static int run_nri_daemon(struct nri_daemon *daemon)
{
	struct graft_error err = { .status = GRAFT_OK };
	int rc;

	take_priority(&daemon->log.log);
	rc = begin_nri_daemon(daemon, &err);

	if (rc == 0)
		rc = graft_loop_run(&daemon->loop, &err);
	notify_send(daemon->notify_socket, "STOPPING=1");
	http_done(&daemon->http);
	nri_plugin_end(daemon->plugin);
	program_signals_done(&daemon->signals);
	graft_loop_done(&daemon->loop);
	return rc < 0 ? program_complain(PROGRAM, &err) : 0;
}

static int print_nri_text(enum graft_parse_result result)
{
	struct graft_buffer text = { .max = 0 };

	if (result == GRAFT_PARSE_VERSION)
		graft_buffer_string(&text, PROGRAM " version " GRAFT_VERSION "\n");
	else
		graft_options_help(&graft_nri_command, PROGRAM, &text);
	return program_print(PROGRAM, &text);
}

int main(int argc, char **argv)
{
	const struct graft_options_scope scope = { .variable = program_variable };
	struct nri_daemon daemon = { .flags = GRAFT_NRI_FLAGS_INIT, .signals = PROGRAM_SIGNALS_INIT };
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };
	int first, status;

	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	graft_log_file_init(&daemon.log, STDERR_FILENO, GRAFT_LOG_INFO);
	daemon.log.log.wants = takes_line;
	daemon.notify_socket = program_variable("NOTIFY_SOCKET");
	daemon.arena = daemon.flags.arena = graft_arena_new((size_t)256 << 20);
	if (!daemon.arena)
		(void)graft_fail_memory(&err);
	else
		(void)graft_options_parse_in(&scope, &graft_nri_command, argc, argv, &daemon.flags, &first, &result,
					     &err);
	if (err.status != GRAFT_OK) {
		graft_options_suggest_option(&graft_nri_command, &err);
		status = program_complain(PROGRAM, &err);
	} else {
		status = result == GRAFT_PARSE_OK ? run_nri_daemon(&daemon) : print_nri_text(result);
	}
	(void)graft_arena_free(daemon.arena);
	return status;
}
