/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program: common to the mains of the daemons for Kubernetes: command line, messages, signals, exit
 * status, the loop of those with a config file. Only for mains: it prints.
 */
#ifndef GRAFT_DAEMON_PROGRAM_H
#define GRAFT_DAEMON_PROGRAM_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "daemon/config_source.h"
#include "kubernetes/kube_config.h"
#include "rpc/loop.h"

/* Prints an error and its remedy; returns the exit status. */
int program_complain(const char *name, const struct graft_error *err);
/* Prints the text to standard output and frees it; returns the exit status. */
int program_print(const char *name, struct graft_buffer *text);

/* secure_getenv(3), for `variable` below and of struct graft_kube_sources. */
const char *program_variable(const char *name);

/*
 * main(): blocks the signals of program_watch_signals(), reads the configuration of `command`,
 * prints help, version or the configuration if asked to, otherwise calls `run`, whose result is the
 * exit status. `variable` is program_variable(), or a test's. `arena` of `run` is freed afterwards.
 * If the config file is invalid and fail-on-init-error is off, `run` gets the configuration without
 * a file, and must try the file again.
 */
int program_main(const struct graft_command *command, int argc, char **argv, const char *(*variable)(const char *name),
		 int (*run)(const struct graft_kube_sources *sources, const struct graft_kube_config *config,
			    struct graft_arena *arena));

struct program_signals {
	struct graft_loop *loop;
	const struct graft_log *log;
	struct graft_loop_watch watch;
	void (*hang_up)(void *arg);
	void *arg;
};
#define PROGRAM_SIGNALS_INIT    \
	{                       \
		.watch = { -1 } \
	}

/*
 * From now on SIGHUP calls `hang_up`; SIGINT, SIGQUIT and SIGTERM end the loop; ended children are
 * reaped unless a caller waits for them. Returns 0, or -1 with the error set.
 */
int program_watch_signals(struct program_signals *signals, struct graft_loop *loop, const struct graft_log *log,
			  void (*hang_up)(void *arg), void *arg, struct graft_error *err);
void program_signals_done(struct program_signals *signals);

/* A daemon with a config file, which the node's label may choose. */
struct program_daemon {
	/* Set by the caller, and borrowed. */
	struct graft_kube_sources *sources; /* `config_file` becomes the chosen file */
	/* Returns 0 if the loop must run, 1 if nothing is left to do, or -1 with the error set. */
	int (*begin)(void *arg, struct graft_error *err);
	/* Reads the configuration again, which has begun before. */
	void (*reload)(void *arg);
	/* Says, in a warning, what the daemon does while no file can be chosen. */
	const char *(*state)(const void *arg);
	void *arg;
	bool oneshot;     /* not to wait for a file to choose */
	bool ready_later; /* `begin` and `reload` return before the service is ready */

	/* Its own. */
	struct graft_loop loop;
	struct program_signals signals;
	struct config_source source;
	bool begun;
	struct graft_error err; /* why the loop ended; the caller may set it, too, and stop the loop */
	const char *notify_socket;
};

/*
 * Begins at once, or when the node's label has been read, and runs the loop; reports to systemd
 * what it does. Returns 0, or -1 with `err` of the daemon set. `config` must live as long. The
 * caller ends what it has begun, and then calls program_done().
 */
int program_run(struct program_daemon *daemon, const struct graft_kube_config *config);
void program_done(struct program_daemon *daemon);

#endif
