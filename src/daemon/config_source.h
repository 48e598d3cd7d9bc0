/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_source: the config file that a label of the node chooses, for as long as a program runs.
 * It watches the label, and the directory with the files: a new label selects another file, a
 * changed ConfigMap changes its content. While the API server is unreachable, or the label names no
 * file, the last choice stays.
 */
#ifndef GRAFT_DAEMON_CONFIG_SOURCE_H
#define GRAFT_DAEMON_CONFIG_SOURCE_H

#include <stdbool.h>

#include "cluster/cluster_watch.h"
#include "kubernetes/kube_choice.h"

struct config_source {
	/* Set by the caller, and borrowed. */
	struct graft_kube_choice choice;
	const char *node; /* its name */
	/*
	 * Called with the path of the file ("": none) when it is first known, and whenever the file
	 * or its content changes. The path lives until the next call. Returns 0, or -1 if it cannot
	 * be applied now; it is then tried again, first after five seconds.
	 */
	int (*chosen)(void *arg, const char *path);
	/* Called if no file can be chosen. The previous one stays. */
	void (*failed)(void *arg, const struct graft_error *err);
	void *arg;

	/* Its own. */
	struct graft_loop *loop;
	const struct graft_log *log;
	struct graft_cluster *cluster;
	struct graft_cluster_watch watch;
	char *query;
	char value[GRAFT_CLUSTER_VERSION_SIZE]; /* of the label; "": it has none */
	bool known;                             /* the label has been read */
	bool pending;                           /* the choice could not be applied */
	bool blind;                             /* the directory cannot be watched */
	int64_t delay_ms;                       /* delay after a failure; 0: there was none */
	struct graft_loop_watch folder;         /* inotify */
	struct graft_loop_timer settle;         /* reads the directory, soon after an event */
	struct graft_arena *arena;              /* of the choice */
	const char *path, *content;             /* NULL: no choice yet */
	size_t length;
	char failure[sizeof(((struct graft_error *)0)->msg)];
};

/*
 * Begins to query the API server. `source` must not move until config_source_end(). Returns 0, or
 * -1: GRAFT_INVALID if label, node or directory is missing, or the label's name is invalid; the
 * errors of graft_cluster_open(). The loop and the log are those of `cluster`.
 */
int config_source_begin(struct config_source *source, const struct graft_cluster_sources *cluster,
			struct graft_error *err);
/*
 * The same once, waiting without limit, for programs that print and exit: *ret_path is in the
 * arena. Uses neither the loop of `cluster` nor the callbacks of `source`. Returns 0, or -1 with
 * the errors of config_source_begin() and graft_kube_choose().
 */
int config_source_once(const struct config_source *source, const struct graft_cluster_sources *cluster,
		       struct graft_arena *arena, const char **ret_path, struct graft_error *err);
/* Reads the directory again, and reports its errors again. */
void config_source_look(struct config_source *source);
/* Ends it. Does nothing if it has not begun. */
void config_source_end(struct config_source *source);

#endif
