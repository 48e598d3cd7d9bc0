/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program: common to the mains of the daemons for Kubernetes: command line, messages, signals, exit
 * status. Only for mains: it prints.
 */
#ifndef GRAFT_DAEMON_PROGRAM_H
#define GRAFT_DAEMON_PROGRAM_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "kubernetes/kube_config.h"
#include "rpc/loop.h"

/* Prints an error and its remedy; returns the exit status. */
int program_complain(const char *name, const struct graft_error *err);
/* Prints the text to standard output and frees it; returns the exit status. */
int program_print(const char *name, struct graft_buffer *text);

/*
 * main(): blocks the signals of program_watch_signals(), reads the configuration of `command`,
 * prints help, version or the configuration if asked to, otherwise calls `run`, whose result is the
 * exit status. `variable` is secure_getenv(3), which only a main may name. `arena` of `run` is
 * freed afterwards. If the config file is invalid and fail-on-init-error is off, `run` gets the
 * configuration without a file, and must try the file again.
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

#endif
