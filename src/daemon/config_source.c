/* SPDX-License-Identifier: Apache-2.0 */
/* config_source: watches label and directory. The program decides what to do with the file. */
#include "daemon/config_source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/read.h"

#define CONTENT_MAX     ((size_t)1024 * 1024)
#define MEMORY_MAX      ((size_t)8 << 20)
#define SETTLE_MS       100
#define FOLDER_AGAIN_MS 5000
#define AGAIN_FIRST_MS  5000
#define AGAIN_LAST_MS   300000
#define FOLDER_EVENTS                                                                                           \
	(IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | \
	 IN_ONLYDIR)

/* --- the choice --- */

static bool is_same_choice(const struct config_source *source, const char *path, const char *content, size_t length)
{
	return source->path && strcmp(source->path, path) == 0 && source->length == length &&
	       memcmp(source->content, content, length) == 0;
}

/* The file and its content, in an arena of their own. */
static int read_choice(const struct config_source *source, struct graft_arena *arena, const char **ret_path,
		       const char **ret_content, size_t *ret_length, struct graft_error *err)
{
	int rc;

	if (graft_kube_choose(&source->choice, source->value, arena, ret_path, err) < 0)
		return -1;
	*ret_content = "";
	*ret_length = 0;
	if ((*ret_path)[0] == '\0')
		return 0;
	rc = graft_read_input(*ret_path, CONTENT_MAX, arena, ret_content, ret_length);
	return rc < 0 ? graft_fail_errno(err, -rc, "unable to read config file %s", *ret_path) : 0;
}

/* The latest time; a steady stream of events does not delay it further. */
static void settle_within(struct config_source *source, int64_t delay_ms)
{
	if (!source->settle.link || source->settle.at_ms > graft_clock_ms() + delay_ms)
		graft_loop_set_timer(source->loop, &source->settle, delay_ms);
}

/* Tries again at growing intervals, since the cause may disappear. */
static void try_again(struct config_source *source)
{
	source->delay_ms = graft_loop_next_delay(source->delay_ms, AGAIN_FIRST_MS, AGAIN_LAST_MS);
	settle_within(source, source->delay_ms);
}

/* Logs each failure once: a directory that is being changed is read often. */
static void choice_failed(struct config_source *source, const struct graft_error *err)
{
	bool again = strcmp(source->failure, err->msg) == 0;

	(void)snprintf(source->failure, sizeof(source->failure), "%s", err->msg);
	if (!again)
		source->failed(source->arg, err);
}

static void choose_again(void *arg)
{
	struct config_source *source = arg;
	struct graft_arena *arena, *before = source->arena;
	struct graft_error err = { .status = GRAFT_OK };
	const char *path = "", *content = "";
	size_t length = 0;

	if (!source->known)
		return;
	arena = graft_arena_new(MEMORY_MAX);
	if (!arena || read_choice(source, arena, &path, &content, &length, &err) < 0) {
		if (!arena)
			(void)graft_fail_memory(&err);
		choice_failed(source, &err);
		(void)graft_arena_free(arena);
		try_again(source);
		return;
	}
	source->failure[0] = '\0';
	if (!source->pending && is_same_choice(source, path, content, length)) {
		(void)graft_arena_free(arena);
		return;
	}
	source->arena = arena;
	source->path = path;
	source->content = content;
	source->length = length;
	source->pending = source->chosen(source->arg, path) < 0;
	(void)graft_arena_free(before);
	if (source->pending)
		try_again(source);
	else
		source->delay_ms = 0;
}

/* --- the directory --- */

static void watch_config_folder(struct config_source *source);

static void folder_settled(void *arg)
{
	struct config_source *source = arg;

	if (source->folder.fd < 0)
		watch_config_folder(source);
	choose_again(source);
}

/*
 * A mounted ConfigMap changes when a link in the directory is replaced; a file that is written is
 * read when it is closed.
 */
static void config_folder_changed(void *arg, short events)
{
	struct config_source *source = arg;
	_Alignas(struct inotify_event) char bytes[4096];
	bool gone = false;
	ssize_t n;

	(void)events;
	while ((n = read(source->folder.fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t at = 0; at < n;) {
			struct inotify_event event;

			memcpy(&event, bytes + at, sizeof(event));
			gone |= (event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) != 0;
			at += (ssize_t)(sizeof(event) + event.len);
		}
	}
	if (gone)
		graft_loop_close(source->loop, &source->folder);
	settle_within(source, SETTLE_MS);
}

/*
 * Checks a directory that cannot be watched from time to time, so that it is found once it exists.
 */
static void watch_config_folder(struct config_source *source)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), sys;

	source->folder =
	    (struct graft_loop_watch){ .fd = fd, .events = POLLIN, .ready = config_folder_changed, .arg = source };
	if (fd >= 0 && inotify_add_watch(fd, source->choice.folder, FOLDER_EVENTS) >= 0 &&
	    graft_loop_watch(source->loop, &source->folder, NULL) == 0) {
		source->blind = false;
		return;
	}
	/* A missing directory is reported as an error of the choice. */
	sys = errno;
	if (!source->blind && sys != ENOENT)
		graft_warn(source->log, "cannot watch %s: %s; checking it every five seconds", source->choice.folder,
			   strerror(sys));
	source->blind = sys != ENOENT;
	graft_loop_close(source->loop, &source->folder);
	settle_within(source, FOLDER_AGAIN_MS);
}

/* --- the label --- */

static const char *label_of(const struct config_source *source, const struct graft_json_node *node)
{
	GRAFT_JSON_EACH(label, graft_json_node_at(node, "metadata.labels")) {
		const char *name = graft_json_node_name(label);

		if (name && strcmp(name, source->choice.label) == 0)
			return graft_json_node_string(label);
	}
	return NULL;
}

static void take_label(struct config_source *source, const struct graft_json_node *node)
{
	const char *value = label_of(source, node);
	bool same;

	if (!value)
		value = "";
	same = source->known && strcmp(source->value, value) == 0;
	/* A value that is truncated here is too long for a label, so it cannot name a listed file. */
	(void)snprintf(source->value, sizeof(source->value), "%s", value);
	source->known = true;
	if (!same)
		choose_again(source);
}

static void nodes_listed(void *arg, const struct graft_json_node *list)
{
	struct config_source *source = arg;
	const struct graft_json_node *node = graft_json_node_first(graft_json_node_member(list, "items"));

	if (node)
		take_label(source, node);
	else
		graft_warn(source->log,
			   "node '%s' does not exist; waiting for it. --node-name must be a name that 'kubectl get "
			   "nodes' lists",
			   source->node);
}

/* A node that is removed from the cluster keeps its file. */
static void node_changed(void *arg, enum graft_cluster_change change, const struct graft_json_node *node)
{
	struct config_source *source = arg;

	if (change != GRAFT_CLUSTER_DELETED)
		take_label(source, node);
}

/* --- begin and end --- */

static int require_option(const char *value, const char *option, const char *variable, struct graft_error *err)
{
	if (value[0] != '\0')
		return 0;
	return graft_fail(err, GRAFT_INVALID, 0, "--%s or %s must be set", option, variable);
}

int config_source_begin(struct config_source *source, const struct graft_cluster_sources *cluster,
			struct graft_error *err)
{
	struct graft_buffer query = { .max = 0 };
	bool failed;

	source->loop = NULL;
	if (require_option(source->choice.label, "node-label", "NODE_LABEL", err) < 0 ||
	    require_option(source->node, "node-name", "NODE_NAME", err) < 0 ||
	    require_option(source->choice.folder, "config-file-srcdir", "CONFIG_FILE_SRCDIR", err) < 0)
		return -1;
	graft_buffer_string(&query, "fieldSelector=metadata.name%3D");
	graft_cluster_escape(&query, source->node);
	/* Without a selector, the answer would be all nodes. */
	failed = graft_buffer_failed(&query);
	if (failed || graft_cluster_open(cluster, &source->cluster, err) < 0) {
		graft_buffer_done(&query);
		return failed ? graft_fail_memory(err) : -1;
	}
	source->loop = cluster->loop;
	source->log = cluster->log;
	source->arena = NULL;
	source->path = NULL;
	source->known = source->pending = source->blind = false;
	source->delay_ms = 0;
	source->failure[0] = '\0';
	source->settle = (struct graft_loop_timer){ .due = folder_settled, .arg = source };
	watch_config_folder(source);
	source->query = query.bytes;
	source->watch = (struct graft_cluster_watch){ .path = "/api/v1/nodes",
						      .query = source->query,
						      .listed = nodes_listed,
						      .changed = node_changed,
						      .arg = source };
	graft_cluster_watch_begin(source->cluster, &source->watch);
	return 0;
}

void config_source_look(struct config_source *source)
{
	source->failure[0] = '\0';
	choose_again(source);
}

void config_source_end(struct config_source *source)
{
	if (!source->loop)
		return;
	graft_cluster_watch_end(&source->watch);
	graft_cluster_close(source->cluster);
	graft_loop_close(source->loop, &source->folder);
	graft_loop_clear_timer(&source->settle);
	free(source->query);
	source->arena = graft_arena_free(source->arena);
	source->loop = NULL;
}

/* --- once --- */

struct once {
	struct config_source source;
	struct graft_loop loop;
	struct graft_arena *arena;
	const char *path;
	struct graft_error err;
};

static int chosen_once(void *arg, const char *path)
{
	struct once *once = arg;

	once->path = graft_arena_strdup(once->arena, path);
	if (!once->path)
		(void)graft_fail_memory(&once->err);
	graft_loop_stop(&once->loop);
	return 0;
}

static void failed_once(void *arg, const struct graft_error *err)
{
	struct once *once = arg;

	once->err = *err;
	graft_loop_stop(&once->loop);
}

int config_source_once(const struct config_source *source, const struct graft_cluster_sources *cluster,
		       struct graft_arena *arena, const char **ret_path, struct graft_error *err)
{
	struct once once = { .source = *source, .arena = arena };
	struct graft_cluster_sources own = *cluster;
	int rc;

	own.loop = &once.loop;
	once.source.chosen = chosen_once;
	once.source.failed = failed_once;
	once.source.arg = &once;
	rc = config_source_begin(&once.source, &own, err);
	if (rc == 0)
		rc = graft_loop_run(&once.loop, err);
	if (rc == 0 && once.err.status != GRAFT_OK) {
		*err = once.err;
		rc = -1;
	}
	config_source_end(&once.source);
	graft_loop_done(&once.loop);
	*ret_path = once.path;
	return rc;
}
