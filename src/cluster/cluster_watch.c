/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_watch: lists and watches. Does not know what the objects are. */
#include "cluster/cluster_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define DELAY_MIN_MS 1000
#define DELAY_MAX_MS 30000
#define STREAM_S     300   /* the server ends a stream after this time, and up to as much again */
#define GRACE_MS     30000 /* after this time we end it */
#define LIVED_MS     1000  /* a stream that ends earlier has failed */

static void attempt_watch(void *arg);

/* A number below `limit`, so that the nodes of a cluster do not all connect at once. */
static uint32_t random_below(uint32_t limit)
{
	uint32_t number = 0;

	return getrandom(&number, sizeof(number), GRND_NONBLOCK) > 0 ? number % limit : 0;
}

static void attempt_later(struct graft_cluster_watch *watch, int64_t delay_ms)
{
	graft_loop_set_timer(watch->loop, &watch->again, delay_ms);
}

/* --- how it goes --- */

static void watch_failed(struct graft_cluster_watch *watch, const struct graft_error *err)
{
	if (!graft_cluster_is_same_failure(&watch->failure, err))
		graft_warn(watch->log, "%s; trying again. %s", GRAFT_ERROR_TEXT(err), graft_error_hint(err));
	watch->failure = *err;
	watch->delay_ms = graft_loop_next_delay(watch->delay_ms, DELAY_MIN_MS, DELAY_MAX_MS);
	attempt_later(watch, watch->delay_ms + random_below((uint32_t)watch->delay_ms / 4));
}

static void watch_works(struct graft_cluster_watch *watch)
{
	if (watch->failure.status != GRAFT_OK)
		graft_info(watch->log, "%s%s: the API server answers again", graft_cluster_server(watch->cluster),
			   watch->path);
	watch->failure = (struct graft_error){ .status = GRAFT_OK };
}

/* The answer is not a list, or not an event. */
static void watch_got_nonsense(struct graft_cluster_watch *watch, struct graft_error *err)
{
	(void)graft_with_hint(err, "Check that this is an API server, and that no proxy changes its answers.");
	(void)graft_wrap(err, "GET %s%s", graft_cluster_server(watch->cluster), watch->path);
	watch_failed(watch, err);
}

/* Returns whether there was a stream; if so, its end is a new failure. */
static bool stream_lived(struct graft_cluster_watch *watch)
{
	bool lived = graft_clock_ms() - watch->began_ms >= LIVED_MS;

	if (lived)
		watch->delay_ms = 0;
	return lived;
}

/*
 * The server has lost our position: lists again, at once the first time, after growing delays if
 * that repeats.
 */
static void list_again(struct graft_cluster_watch *watch)
{
	watch->version[0] = '\0';
	attempt_later(watch, watch->delay_ms);
	watch->delay_ms = graft_loop_next_delay(watch->delay_ms, DELAY_MIN_MS, DELAY_MAX_MS);
}

/*
 * SECURITY: it becomes part of a URL, escaped. Returns false if there is none, or if it is too
 * long.
 */
static bool copy_object_version(const struct graft_json_node *object, char *version)
{
	const char *text = graft_json_node_string(graft_json_node_at(object, "metadata.resourceVersion"));

	if (!text || text[0] == '\0' || strlen(text) >= GRAFT_CLUSTER_VERSION_SIZE)
		return false;
	(void)snprintf(version, GRAFT_CLUSTER_VERSION_SIZE, "%s", text);
	return true;
}

/* --- the list --- */

static int take_cluster_list(struct graft_cluster_watch *watch, const struct graft_cluster_answer *answer,
			     struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;
	const struct graft_json_node *list;

	if (graft_json_document_parse("list", answer->body, answer->length, &document, err) < 0)
		return -1;
	list = graft_json_document_root(document);
	if (!copy_object_version(list, watch->version))
		return graft_fail(err, GRAFT_FORMAT, 0, "the list has no resourceVersion");
	watch_works(watch);
	watch->listed(watch->arg, list);
	return 0;
}

static void list_answered(void *arg, const struct graft_cluster_answer *answer)
{
	struct graft_cluster_watch *watch = arg;
	struct graft_error err = { .status = GRAFT_OK };

	watch->call = NULL;
	if (answer->err) {
		watch_failed(watch, answer->err);
	} else if (take_cluster_list(watch, answer, &err) < 0) {
		watch_got_nonsense(watch, &err);
	} else if (!watch->ended) {
		attempt_watch(watch);
	}
}

/* --- the stream --- */

static bool find_event_type(const char *type, enum graft_cluster_change *ret_change)
{
	static const char *const types[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR" };

	for (size_t i = 0; type && i < GRAFT_COUNT(types); i++) {
		if (strcmp(type, types[i]) == 0) {
			*ret_change = (enum graft_cluster_change)i;
			return true;
		}
	}
	return false;
}

static int read_event(const struct graft_json_node *root, struct graft_cluster_event *ret_event,
		      struct graft_error *err)
{
	const struct graft_json_node *object = graft_json_node_member(root, "object");
	int64_t code = 0;

	*ret_event = (struct graft_cluster_event){ .object = object, .version = "" };
	if (!find_event_type(graft_json_node_string(graft_json_node_member(root, "type")), &ret_event->change))
		return graft_fail(err, GRAFT_FORMAT, 0, "event: unknown type");
	if (graft_json_node_kind(object) != GRAFT_JSON_OBJECT)
		return graft_fail(err, GRAFT_FORMAT, 0, "event: no object");
	if (ret_event->change == GRAFT_CLUSTER_ERROR) {
		if (graft_json_node_i64(graft_json_node_member(object, "code"), &code) && code > 0 && code < 1000)
			ret_event->status = (int)code;
	} else if (!copy_object_version(object, ret_event->version)) {
		return graft_fail(err, GRAFT_FORMAT, 0, "event: no resourceVersion");
	}
	return 0;
}

int graft_cluster_event_parse(const char *text, size_t length, struct graft_json_document **ret_document,
			      struct graft_cluster_event *ret_event, struct graft_error *err)
{
	struct graft_json_document *document;

	if (graft_json_document_parse("event", text, length, &document, err) < 0)
		return -1;
	if (read_event(graft_json_document_root(document), ret_event, err) < 0) {
		graft_json_document_free(document);
		return -1;
	}
	*ret_document = document;
	return 0;
}

static void end_stream(struct graft_cluster_watch *watch)
{
	graft_cluster_cancel(watch->call);
	watch->call = NULL;
	graft_buffer_done(&watch->line);
}

/* An ERROR ends the stream; 410 means that the server has forgotten our version. */
static void take_error(struct graft_cluster_watch *watch, const struct graft_cluster_event *event)
{
	const char *message = graft_json_node_string(graft_json_node_member(event->object, "message"));
	struct graft_error err;

	end_stream(watch);
	if (event->status == 410) {
		list_again(watch);
		return;
	}
	watch->version[0] = '\0';
	(void)graft_fail(&err, GRAFT_IO, 0, "GET %s%s: %s (event ERROR, code %d)", graft_cluster_server(watch->cluster),
			 watch->path, message ? message : "", event->status);
	graft_error_flatten(err.msg);
	watch_failed(watch, &err);
}

/* Handles one event. Returns false if the rest of the stream must not be read. */
static bool take_cluster_event(struct graft_cluster_watch *watch, const char *text, size_t length)
{
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_cluster_event event;
	struct graft_error err = { .status = GRAFT_OK };

	if (graft_cluster_event_parse(text, length, &document, &event, &err) < 0) {
		end_stream(watch);
		watch->version[0] = '\0';
		(void)stream_lived(watch);
		watch_got_nonsense(watch, &err);
		return false;
	}
	if (event.change == GRAFT_CLUSTER_ERROR) {
		take_error(watch, &event);
		return false;
	}
	memcpy(watch->version, event.version, sizeof(watch->version));
	watch->delay_ms = 0;
	watch_works(watch);
	if (event.change != GRAFT_CLUSTER_BOOKMARK)
		watch->changed(watch->arg, event.change, event.object);
	return !watch->ended;
}

/* Events are lines; one may arrive in many parts, and a part may contain many. */
static void stream_received(void *arg, const char *bytes, size_t n)
{
	struct graft_cluster_watch *watch = arg;
	const char *end;

	while (n > 0 && (end = memchr(bytes, '\n', n))) {
		size_t length = (size_t)(end - bytes);
		struct graft_buffer whole;
		bool go_on = true;

		graft_buffer_add(&watch->line, bytes, length);
		whole = watch->line;
		watch->line = (struct graft_buffer){ .max = whole.max };
		if (whole.length > 0 || graft_buffer_failed(&whole))
			go_on = take_cluster_event(watch, graft_buffer_text(&whole), whole.length);
		graft_buffer_done(&whole);
		if (!go_on)
			return;
		n -= length + 1;
		bytes = end + 1;
	}
	graft_buffer_add(&watch->line, bytes, n);
	if (graft_buffer_failed(&watch->line)) {
		struct graft_error err;

		end_stream(watch);
		watch->version[0] = '\0';
		(void)graft_fail(&err, GRAFT_TOO_BIG, 0, "GET %s%s: an event is too large",
				 graft_cluster_server(watch->cluster), watch->path);
		watch_failed(watch, &err);
	}
}

/*
 * Ended by the server after the requested time, or by a failure. Received events are not requested
 * again.
 */
static void stream_answered(void *arg, const struct graft_cluster_answer *answer)
{
	struct graft_cluster_watch *watch = arg;
	bool lived = stream_lived(watch);
	struct graft_error err;

	watch->call = NULL;
	graft_buffer_done(&watch->line);
	if (answer->status == 410) {
		list_again(watch);
	} else if (answer->err && !(lived && answer->err->status == GRAFT_TIMEOUT)) {
		/* Another server may refuse our version forever. */
		if (answer->status == 400 || answer->status == 422)
			watch->version[0] = '\0';
		watch_failed(watch, answer->err);
	} else if (!lived) {
		(void)graft_fail(&err, GRAFT_IO, 0, "GET %s%s: the server ends the watch at once",
				 graft_cluster_server(watch->cluster), watch->path);
		watch_failed(watch, &err);
	} else {
		watch_works(watch);
		attempt_watch(watch);
	}
}

/* --- both --- */

static void write_target(const struct graft_cluster_watch *watch, uint32_t stream_s, struct graft_buffer *out)
{
	graft_buffer_printf(out, "%s%s%s", watch->path, watch->query[0] != '\0' ? "?" : "", watch->query);
	if (watch->version[0] == '\0')
		return;
	graft_buffer_printf(out, "%swatch=true&allowWatchBookmarks=true&timeoutSeconds=%" PRIu32 "&resourceVersion=",
			    watch->query[0] != '\0' ? "&" : "?", stream_s);
	graft_cluster_escape(out, watch->version);
}

static void attempt_watch(void *arg)
{
	struct graft_cluster_watch *watch = arg;
	uint32_t stream_s = STREAM_S + random_below(STREAM_S);
	struct graft_cluster_request request = { .method = "GET", .answered = list_answered, .arg = watch };
	struct graft_buffer target = { .max = 0 };
	struct graft_error err = { .status = GRAFT_OK };

	write_target(watch, stream_s, &target);
	request.path = graft_buffer_text(&target);
	if (watch->version[0] != '\0') {
		request.answered = stream_answered;
		request.received = stream_received;
		request.timeout_ms = (int)stream_s * 1000 + GRACE_MS;
		watch->line = (struct graft_buffer){ .max = GRAFT_CLUSTER_BODY_MAX };
		watch->began_ms = graft_clock_ms();
	}
	if (graft_buffer_failed(&target))
		(void)graft_fail_memory(&err);
	else
		watch->call = graft_cluster_send(watch->cluster, &request, &err);
	graft_buffer_done(&target);
	if (!watch->call)
		watch_failed(watch, &err);
}

void graft_cluster_watch_begin(struct graft_cluster *cluster, struct graft_cluster_watch *watch)
{
	watch->cluster = cluster;
	watch->call = NULL;
	watch->loop = graft_cluster_loop(cluster, &watch->log);
	watch->again = (struct graft_loop_timer){ .due = attempt_watch, .arg = watch };
	watch->line = (struct graft_buffer){ .max = 0 };
	watch->version[0] = '\0';
	watch->delay_ms = 0;
	watch->failure = (struct graft_error){ .status = GRAFT_OK };
	watch->ended = false;
	attempt_watch(watch);
}

void graft_cluster_watch_end(struct graft_cluster_watch *watch)
{
	if (!watch->cluster)
		return;
	graft_loop_clear_timer(&watch->again);
	end_stream(watch);
	watch->cluster = NULL;
	watch->ended = true;
}
