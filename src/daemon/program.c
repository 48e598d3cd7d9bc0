/* SPDX-License-Identifier: Apache-2.0 */
/* program: the frame of a daemon's main. */
#include "daemon/program.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/notify.h"

int program_complain(const char *name, const struct graft_error *err)
{
	(void)fprintf(stderr, "%s: %s\n  %s\n", name, GRAFT_ERROR_TEXT(err), graft_error_hint(err));
	return 1;
}

int program_print(const char *name, struct graft_buffer *text)
{
	bool failed = graft_buffer_failed(text);

	(void)fputs(graft_buffer_text(text), stdout);
	graft_buffer_done(text);
	if (fflush(stdout) != 0 || failed) {
		(void)fprintf(stderr, "%s: cannot write to standard output\n", name);
		return 1;
	}
	return 0;
}

const char *program_variable(const char *name)
{
	return secure_getenv(name);
}

/* A call that only prints uses the file that the node's label chooses, too. */
static int configure_by_label(struct graft_kube_sources *sources, struct graft_arena *arena,
			      struct graft_kube_config *ret_config, enum graft_parse_result *ret_result,
			      struct graft_error *err)
{
	const struct graft_cluster_sources cluster = { .log = sources->log,
						       .kubeconfig = ret_config->api.kubeconfig,
						       .variable = sources->variable };
	const struct config_source source = { .choice = ret_config->choice, .node = ret_config->api.node_name };

	if (config_source_once(&source, &cluster, arena, &sources->config_file, err) < 0)
		return -1;
	return graft_kube_configure(sources, arena, ret_config, ret_result, err);
}

static void fill_signal_set(sigset_t *set)
{
	static const int numbers[] = { SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM };

	(void)sigemptyset(set);
	for (size_t i = 0; i < GRAFT_COUNT(numbers); i++)
		(void)sigaddset(set, numbers[i]);
}

/*
 * An invalid config file ends a program unless command line and variables, which are readable,
 * specify that the program survives errors at the start. A call that only prints ends in any case.
 */
static bool waits_for_config(const struct graft_kube_sources *sources, struct graft_arena *arena,
			     struct graft_kube_config *config)
{
	struct graft_kube_sources without_file = *sources;
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };

	without_file.config_file = "";
	without_file.log = NULL;
	return graft_kube_configure(&without_file, arena, config, &result, &err) == 0 && result == GRAFT_PARSE_OK &&
	       config->config_file[0] != '\0' && !config->flags.fail_on_init_error && !config->flags.gfd.oneshot &&
	       !config->print_config && !config->once && config->clear_health[0] == '\0';
}

/*
 * Returns whether `run` reads the configuration again and will report its warnings: that is so for
 * a program with a config file that does not only print. Command line and variables determine this.
 */
static bool reads_again(const struct graft_kube_sources *sources, const struct graft_kube_config *config)
{
	return graft_kube_has_option(sources->command, "config-file") && !config->print_config && !config->once &&
	       config->clear_health[0] == '\0';
}

static int read_at_start(const struct graft_kube_sources *sources, struct graft_arena *arena,
			 struct graft_kube_config *config, enum graft_parse_result *ret_result, struct graft_error *err)
{
	struct graft_kube_sources quiet = *sources;

	quiet.config_file = "";
	quiet.log = NULL;
	if (graft_kube_configure(&quiet, arena, config, ret_result, err) < 0)
		return -1;
	if (*ret_result != GRAFT_PARSE_OK)
		return 0;
	quiet.config_file = NULL;
	if (!reads_again(sources, config))
		return graft_kube_configure(sources, arena, config, ret_result, err);
	if (strcmp(config->config_file, "-") == 0)
		return graft_fail(
		    err, GRAFT_INVALID, 0,
		    "--config-file=-: a daemon rereads its config file, which standard input does not allow");
	return graft_kube_configure(&quiet, arena, config, ret_result, err);
}

int program_main(const struct graft_command *command, int argc, char **argv, const char *(*variable)(const char *name),
		 int (*run)(const struct graft_kube_sources *sources, const struct graft_kube_config *config,
			    struct graft_arena *arena))
{
	struct graft_log_file log;
	struct graft_kube_sources sources = {
		.command = command, .argc = argc, .argv = argv, .variable = variable, .log = &log.log
	};
	struct graft_arena *arena = graft_arena_new((size_t)256 << 20);
	enum graft_parse_result result = GRAFT_PARSE_OK;
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer text = { .max = 0 };
	struct graft_kube_config config;
	bool failed;
	sigset_t signals, before;
	int status;

	/* A signal that comes before the program is ready takes effect then. */
	fill_signal_set(&signals);
	(void)sigprocmask(SIG_BLOCK, &signals, &before);
	/* Writing to a closed connection returns an error instead. */
	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	graft_log_file_init(&log, STDERR_FILENO, GRAFT_LOG_INFO);
	if (!arena)
		(void)graft_fail_memory(&err);
	failed = !arena || (read_at_start(&sources, arena, &config, &result, &err) < 0 &&
			    !waits_for_config(&sources, arena, &config));
	if (!failed && result == GRAFT_PARSE_OK &&
	    (config.print_config || config.once || config.clear_health[0] != '\0')) {
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
		failed = (config.print_config || config.once) && config.choice.label[0] != '\0' &&
			 configure_by_label(&sources, arena, &config, &result, &err) < 0;
	}
	if (failed) {
		graft_options_suggest_option(command, &err);
		status = program_complain(command->name, &err);
	} else if (result == GRAFT_PARSE_OK && !config.print_config) {
		status = run(&sources, &config, arena);
	} else {
		if (result == GRAFT_PARSE_VERSION)
			graft_buffer_printf(&text, "%s version " GRAFT_VERSION "\n", command->name);
		else if (result != GRAFT_PARSE_OK)
			graft_options_help(command, command->name, &text);
		else
			graft_kube_config_write(&config, &text);
		status = program_print(command->name, &text);
	}
	(void)graft_arena_free(arena);
	return status;
}

static void take_signal(void *arg, short events)
{
	struct program_signals *signals = arg;
	struct signalfd_siginfo info;

	(void)events;
	if (read(signals->watch.fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	/* A child that the driver held longer than we waited for it (host/nvml.h). */
	if (info.ssi_signo == SIGCHLD) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		return;
	}
	if (info.ssi_signo == SIGHUP) {
		signals->hang_up(signals->arg);
		return;
	}
	graft_info(signals->log, "exiting on signal %u", info.ssi_signo);
	graft_loop_stop(signals->loop);
}

int program_watch_signals(struct program_signals *signals, struct graft_loop *loop, const struct graft_log *log,
			  void (*hang_up)(void *arg), void *arg, struct graft_error *err)
{
	sigset_t set;

	fill_signal_set(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return graft_fail_errno(err, errno, "cannot block signals");
	*signals = (struct program_signals){ .loop = loop, .log = log, .hang_up = hang_up, .arg = arg };
	signals->watch = (struct graft_loop_watch){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
						    .events = POLLIN,
						    .ready = take_signal,
						    .arg = signals };
	if (signals->watch.fd < 0)
		return graft_fail_errno(err, errno, "cannot wait for signals");
	return graft_loop_watch(loop, &signals->watch, err);
}

void program_signals_done(struct program_signals *signals)
{
	if (signals->watch.fd >= 0)
		(void)close(signals->watch.fd);
	signals->watch.fd = -1;
}

/* --- daemons with a config file --- */

static int begin_daemon(struct program_daemon *daemon)
{
	daemon->begun = true;
	return daemon->begin(daemon->arg, &daemon->err);
}

static void reload_daemon(void *arg)
{
	struct program_daemon *daemon = arg;

	/* Until the label is known, there is nothing to reload. */
	if (!daemon->begun)
		return;
	notify_reloading(daemon->notify_socket);
	daemon->reload(daemon->arg);
	if (!daemon->ready_later)
		notify_send(daemon->notify_socket, "READY=1");
}

/* A failed call is repeated by its user. */
static int label_chose(void *arg, const char *path)
{
	struct program_daemon *daemon = arg;

	graft_info(daemon->sources->log, "configuration chosen by the node's label: %s",
		   path[0] != '\0' ? path : "no file");
	daemon->sources->config_file = path;
	if (daemon->begun)
		reload_daemon(daemon);
	else if (begin_daemon(daemon) != 0)
		graft_loop_stop(&daemon->loop);
	return 0;
}

static void label_failed(void *arg, const struct graft_error *err)
{
	struct program_daemon *daemon = arg;

	if (!daemon->begun && daemon->oneshot) {
		daemon->err = *err;
		graft_loop_stop(&daemon->loop);
		return;
	}
	graft_warn(daemon->sources->log, "%s; %s. %s", GRAFT_ERROR_TEXT(err), daemon->state(daemon->arg),
		   graft_error_hint(err));
}

static int begin_by_label(struct program_daemon *daemon, const struct graft_kube_config *config)
{
	const struct graft_cluster_sources cluster = { .loop = &daemon->loop,
						       .log = daemon->sources->log,
						       .kubeconfig = config->api.kubeconfig,
						       .variable = daemon->sources->variable,
						       .per_second = config->api.qps,
						       .burst = config->api.burst };

	daemon->source = (struct config_source){ .choice = config->choice,
						 .node = config->api.node_name,
						 .chosen = label_chose,
						 .failed = label_failed,
						 .arg = daemon };
	return config_source_begin(&daemon->source, &cluster, &daemon->err);
}

static int run_loop(struct program_daemon *daemon, const struct graft_kube_config *config)
{
	bool by_label = config->choice.label[0] != '\0';
	int rc;

	if (program_watch_signals(&daemon->signals, &daemon->loop, daemon->sources->log, reload_daemon, daemon,
				  &daemon->err) < 0)
		return -1;
	rc = by_label ? begin_by_label(daemon, config) : begin_daemon(daemon);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	/* It may take long until the label is known: report that the service has started. */
	if (by_label || !daemon->ready_later)
		notify_send(daemon->notify_socket, "READY=1");
	if (graft_loop_run(&daemon->loop, &daemon->err) < 0)
		return -1;
	return daemon->err.status == GRAFT_OK ? 0 : -1;
}

int program_run(struct program_daemon *daemon, const struct graft_kube_config *config)
{
	int rc;

	daemon->notify_socket = daemon->sources->variable("NOTIFY_SOCKET");
	rc = run_loop(daemon, config);
	notify_send(daemon->notify_socket, "STOPPING=1");
	config_source_end(&daemon->source);
	return rc;
}

void program_done(struct program_daemon *daemon)
{
	if (daemon->signals.loop)
		program_signals_done(&daemon->signals);
	graft_loop_done(&daemon->loop);
}
