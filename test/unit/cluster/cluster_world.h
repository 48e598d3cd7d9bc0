/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_world: an API server of the test's own (test/kubernetes/apiserver.py), and the way to it. */
#ifndef GRAFT_TEST_CLUSTER_WORLD_H
#define GRAFT_TEST_CLUSTER_WORLD_H

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cluster/cluster.h"

#define WORLD_LIMIT_MS 30000 /* no test waits longer */

extern char **environ;

static struct {
	char directory[64];
	pid_t server;
	struct graft_loop loop;
	struct graft_cluster *cluster;
	struct graft_log log;
	char warnings[4096]; /* each a line */
	/* The last answer. */
	bool answered;
	int status;
	char body[4096];
	size_t length;
	struct graft_error err;
} world;

static const char *world_path(const char *name)
{
	static char paths[4][128];
	static int next;
	char *path = paths[next++ % 4];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", world.directory, name);
	return path;
}

static void world_log(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	(void)arg;
	(void)level;
	(void)file;
	(void)line;
	(void)snprintf(world.warnings + strlen(world.warnings), sizeof(world.warnings) - strlen(world.warnings), "%s\n",
		       message);
}

static const char *no_variable(const char *name)
{
	(void)name;
	return NULL;
}

static inline void world_write(const char *name, const char *text)
{
	FILE *file = fopen(world_path(name), "we");

	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		abort();
}

/* Starts the server, or starts it again with what it had. */
static inline bool world_serve(void)
{
	const char *root = getenv("GRAFT_SOURCE_ROOT");
	char script[512];
	char *argv[] = { (char *)(uintptr_t) "/usr/bin/python3", script, (char *)(uintptr_t) "serve", world.directory,
			 NULL };
	int64_t until = graft_clock_ms() + WORLD_LIMIT_MS;

	(void)snprintf(script, sizeof(script), "%s/test/kubernetes/apiserver.py", root ? root : ".");
	if (posix_spawn(&world.server, argv[0], NULL, NULL, argv, environ) != 0)
		return false;
	while (access(world_path("port"), F_OK) != 0) {
		if (graft_clock_ms() > until || waitpid(world.server, NULL, WNOHANG) != 0)
			return false;
		(void)usleep(10000);
	}
	return true;
}

static inline void world_kill(void)
{
	if (world.server > 0) {
		(void)kill(world.server, SIGKILL);
		(void)waitpid(world.server, NULL, 0);
	}
	world.server = 0;
}

static int world_open(void **state)
{
	(void)snprintf(world.directory, sizeof(world.directory), "/tmp/graft-cluster-XXXXXX");
	world.log = (struct graft_log){ .write = world_log, .max = GRAFT_LOG_INFO };
	return mkdtemp(world.directory) && world_serve() ? 0 : -1;
}

static int world_close(void **state)
{
	char *argv[] = { (char *)(uintptr_t) "/bin/rm", (char *)(uintptr_t) "-r", world.directory, NULL };
	pid_t pid;

	world_kill();
	graft_loop_done(&world.loop);
	return posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) == 0 && waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

/* Opens the way to the server by a kubeconfig of the directory. */
static inline int world_connect(const char *kubeconfig, struct graft_error *err)
{
	const struct graft_cluster_sources sources = {
		.loop = &world.loop, .log = &world.log, .kubeconfig = world_path(kubeconfig), .variable = no_variable
	};

	world.warnings[0] = '\0';
	return graft_cluster_open(&sources, &world.cluster, err);
}

static inline void world_disconnect(void)
{
	graft_cluster_close(world.cluster);
	world.cluster = NULL;
}

static void world_answered(void *arg, const struct graft_cluster_answer *answer)
{
	(void)arg;
	world.answered = true;
	world.status = answer->status;
	world.length = answer->length;
	(void)snprintf(world.body, sizeof(world.body), "%s", answer->body);
	world.err = answer->err ? *answer->err : (struct graft_error){ .status = GRAFT_OK };
}

/* Turns the loop until `*done`. Returns whether that was in time. */
static inline bool world_wait(const bool *done)
{
	int64_t until = graft_clock_ms() + WORLD_LIMIT_MS;

	while (!*done && graft_clock_ms() < until) {
		if (graft_loop_turn(&world.loop, 100, NULL) < 0)
			return false;
	}
	return *done;
}

/* One request; the answer is in `world`. Returns the status. */
static inline int world_ask(const struct graft_cluster_request *how)
{
	struct graft_cluster_request request = *how;

	request.answered = world_answered;
	world.answered = false;
	world.err = (struct graft_error){ .status = GRAFT_OK };
	if (!graft_cluster_send(world.cluster, &request, &world.err) || !world_wait(&world.answered))
		return -1;
	return world.status;
}

static inline int world_send(const char *method, const char *path, const char *body)
{
	const struct graft_cluster_request request = {
		.method = method, .path = path, .body = body, .length = body ? strlen(body) : 0
	};

	return world_ask(&request);
}

#endif
