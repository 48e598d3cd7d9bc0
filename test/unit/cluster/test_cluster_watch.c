/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit.h"
#include "cluster/cluster_watch.h"
#include "cluster_world.h"

#define NODES "/api/v1/nodes"

/* What is known of the node "a": the text of its label x. */
static struct {
	struct graft_cluster_watch watch;
	char value[64];
	int n_lists, n_changes;
	enum graft_cluster_change last;
	bool end_at_once;
} seen;

static void look_at(const struct graft_json_node *object)
{
	const char *text = graft_json_node_string(graft_json_node_at(object, "metadata.labels.x"));

	(void)snprintf(seen.value, sizeof(seen.value), "%s", text ? text : "");
}

static void take_listed(void *arg, const struct graft_json_node *list)
{
	const struct graft_json_node *item = graft_json_node_first(graft_json_node_member(list, "items"));

	seen.n_lists++;
	(void)snprintf(seen.value, sizeof(seen.value), "absent");
	if (item)
		look_at(item);
	if (seen.end_at_once)
		graft_cluster_watch_end(&seen.watch);
}

static void take_changed(void *arg, enum graft_cluster_change change, const struct graft_json_node *object)
{
	seen.n_changes++;
	seen.last = change;
	if (change == GRAFT_CLUSTER_DELETED)
		(void)snprintf(seen.value, sizeof(seen.value), "absent");
	else
		look_at(object);
	if (seen.end_at_once)
		graft_cluster_watch_end(&seen.watch);
}

static void set_label(const char *value)
{
	char body[128];

	(void)snprintf(body, sizeof(body), "{\"metadata\": {\"name\": \"a\", \"labels\": {\"x\": \"%s\"}}}", value);
	assert_int_equal(world_send("PUT", NODES "/a", body), 200);
}

static bool wait_for(const char *value)
{
	int64_t until = graft_clock_ms() + WORLD_LIMIT_MS;

	while (strcmp(seen.value, value) != 0 && graft_clock_ms() < until) {
		if (graft_loop_turn(&world.loop, 100, NULL) < 0)
			return false;
	}
	return strcmp(seen.value, value) == 0;
}

static bool wait_for_streams(int n)
{
	int64_t until = graft_clock_ms() + WORLD_LIMIT_MS;
	char text[32];

	(void)snprintf(text, sizeof(text), "\"streams\": %d,", n);
	while (graft_clock_ms() < until) {
		if (world_send("GET", "/-/state", NULL) == 200 && strstr(world.body, text))
			return true;
		(void)graft_loop_turn(&world.loop, 20, NULL);
	}
	return false;
}

static void fault(const char *what)
{
	assert_int_equal(world_send("POST", "/-/fault", what), 200);
}

static void stream(const char *what)
{
	assert_int_equal(world_send("POST", "/-/stream", what), 200);
}

/* Each test begins with the node "a" with x=0, and a watch that has seen it. */
static int begin(void **state)
{
	memset(&seen, 0, sizeof(seen));
	if (world_connect("kubeconfig", NULL) < 0 ||
	    world_send("POST", NODES, "{\"metadata\": {\"name\": \"a\", \"labels\": {\"x\": \"0\"}}}") != 201)
		return -1;
	seen.watch = (struct graft_cluster_watch){ .path = NODES,
						   .query = "fieldSelector=metadata.name%3Da",
						   .listed = take_listed,
						   .changed = take_changed };
	graft_cluster_watch_begin(world.cluster, &seen.watch);
	return wait_for("0") && wait_for_streams(1) ? 0 : -1;
}

static int end(void **state)
{
	graft_cluster_watch_end(&seen.watch);
	graft_cluster_watch_end(&seen.watch);
	(void)world_send("DELETE", NODES "/a", NULL);
	world_disconnect();
	return world.loop.n_watches == 0 && !world.loop.timers ? 0 : -1;
}

static void test_changes(void **state)
{
	set_label("1");
	assert_true(wait_for("1"));
	assert_int_equal(seen.last, GRAFT_CLUSTER_MODIFIED);
	/* Of another node nothing is said. */
	assert_int_equal(world_send("POST", NODES, "{\"metadata\": {\"name\": \"b\"}}"), 201);
	assert_int_equal(world_send("DELETE", NODES "/b", NULL), 200);
	assert_int_equal(world_send("DELETE", NODES "/a", NULL), 200);
	assert_true(wait_for("absent"));
	assert_int_equal(seen.last, GRAFT_CLUSTER_DELETED);
	assert_int_equal(world_send("POST", NODES, "{\"metadata\": {\"name\": \"a\", \"labels\": {\"x\": \"2\"}}}"),
			 201);
	assert_true(wait_for("2"));
	assert_int_equal(seen.last, GRAFT_CLUSTER_ADDED);
	assert_int_equal(seen.n_lists, 1);
	assert_int_equal(seen.n_changes, 3);
	assert_string_equal(world.warnings, "");
}

/* A stream that ends or breaks goes on where it ended: nothing is lost, and nothing listed anew. */
static void test_goes_on(void **state)
{
	static const char *const ways[] = { "{\"kind\": \"end\"}", "{\"kind\": \"cut\"}" };
	char value[16];

	for (int i = 0; i < 2; i++) {
		(void)snprintf(value, sizeof(value), "end-%d", i);
		(void)usleep(1100000); /* one that ends earlier has failed */
		stream(ways[i]);
		set_label(value);
		assert_true(wait_for(value));
		assert_true(wait_for_streams(1));
	}
	assert_int_equal(seen.n_lists, 1);
}

/* A bookmark moves the place from which it goes on: what was forgotten before that is not missed. */
static void test_bookmark(void **state)
{
	assert_int_equal(world_send("POST", NODES, "{\"metadata\": {\"name\": \"b\"}}"), 201);
	assert_int_equal(world_send("POST", "/-/forget", "{}"), 200);
	(void)usleep(1100000);
	stream("{\"kind\": \"bookmark\"}");
	stream("{\"kind\": \"end\"}");
	set_label("marked");
	assert_true(wait_for("marked"));
	assert_int_equal(seen.n_lists, 1);
	assert_int_equal(world_send("DELETE", NODES "/b", NULL), 200);
}

/* A server that has forgotten is asked for the list, whether it says so at once or in the stream. */
static void test_gone(void **state)
{
	stream("{\"kind\": \"gone\"}");
	set_label("1");
	assert_true(wait_for("1"));
	assert_true(wait_for_streams(1));
	assert_int_equal(seen.n_lists, 2);

	(void)usleep(1100000);
	assert_int_equal(world_send("POST", "/-/forget", "{}"), 200);
	stream("{\"kind\": \"end\"}");
	assert_true(wait_for_streams(1));
	set_label("2");
	assert_true(wait_for("2"));
	assert_int_equal(seen.n_lists, 3);
	assert_string_equal(world.warnings, "");
}

/* A server that refuses the version from which the watch goes on is asked for the list. */
static void test_refused_version(void **state)
{
	fault("{\"match\": \"" NODES "?fieldSelector=metadata.name%3Da&watch\", \"kind\": \"status\", \"code\": 400, "
	      "\"message\": \"invalid resource version\"}");
	(void)usleep(1100000);
	stream("{\"kind\": \"end\"}");
	set_label("1");
	assert_true(wait_for("1"));
	assert_true(wait_for_streams(1));
	assert_int_equal(seen.n_lists, 2);
	assert_non_null(strstr(world.warnings, ": invalid resource version (status 400); trying again."));
}

/* One that is overloaded is not also asked for the list. */
static void test_overloaded(void **state)
{
	fault("{\"match\": \"" NODES "?fieldSelector=metadata.name%3Da&watch\", \"kind\": \"status\", \"code\": 429, "
	      "\"message\": \"too many requests\"}");
	(void)usleep(1100000);
	stream("{\"kind\": \"end\"}");
	set_label("1");
	assert_true(wait_for("1"));
	assert_true(wait_for_streams(1));
	assert_int_equal(seen.n_lists, 1);
	assert_non_null(strstr(world.warnings, ": too many requests (status 429); trying again."));
}

/* What is no event, and errors, begin anew with the list; each is logged, with what the server says. */
static void test_nonsense(void **state)
{
	static const struct {
		const char *what, *warning;
	} rows[] = {
		{ "{\"kind\": \"garbage\"}", ": event: line 1, column 1: " },
		{ "{\"kind\": \"raw\", \"text\": \"{}\\n\"}", ": event: unknown type; trying again." },
		{ "{\"kind\": \"raw\", \"text\": \"{\\\"type\\\": \\\"ADDED\\\"}\\n\"}",
		  ": event: no object; trying again." },
		{ "{\"kind\": \"raw\", \"text\": \"{\\\"type\\\": \\\"ADDED\\\", \\\"object\\\": {}}\\n\"}",
		  ": event: no resourceVersion; trying again." },
		{ "{\"kind\": \"error\", \"code\": 500, \"message\": \"etcd is\\nfull\"}",
		  ": etcd is?full (event ERROR, code 500); trying again." },
	};
	char value[16];

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		world.warnings[0] = '\0';
		stream(rows[i].what);
		(void)snprintf(value, sizeof(value), "after-%zu", i);
		set_label(value);
		assert_true(wait_for(value));
		assert_true(wait_for_streams(1));
		assert_non_null(strstr(world.warnings, rows[i].warning));
		assert_non_null(strstr(world.warnings, NODES ": the API server answers again\n"));
		assert_int_equal(seen.n_lists, 2 + (int)i);
		/* An event that is one makes the next failure the first again. */
		set_label("calm");
		assert_true(wait_for("calm"));
	}
}

/* Lists that are none, or refused. */
static void test_list_fails(void **state)
{
	static const struct {
		const char *fault, *warning;
	} rows[] = {
		{ "{\"match\": \"/api\", \"kind\": \"status\", \"code\": 403, \"message\": \"nodes is forbidden\"}",
		  ": nodes is forbidden (status 403); trying again. Bind a role (RBAC)" },
		{ "{\"match\": \"/api\", \"kind\": \"garbage\"}", ": list: line 1, column 1: " },
		{ "{\"match\": \"/api\", \"kind\": \"status\", \"code\": 200, \"text\": \"{}\"}",
		  ": the list has no resourceVersion; trying again." },
		{ "{\"match\": \"/api\", \"kind\": \"cut\"}", "; trying again. Check that the API server is running" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		graft_cluster_watch_end(&seen.watch);
		/* A request of before that the server has not read yet would meet the fault instead. */
		assert_true(wait_for_streams(0));
		(void)snprintf(seen.value, sizeof(seen.value), "unknown");
		world.warnings[0] = '\0';
		fault(rows[i].fault);
		graft_cluster_watch_begin(world.cluster, &seen.watch);
		assert_true(wait_for("0"));
		assert_non_null(strstr(world.warnings, rows[i].warning));
		assert_non_null(strstr(world.warnings, ": the API server answers again\n"));
		assert_true(wait_for_streams(1));
	}
}

/* Events in pieces of one byte, and one of 4 MiB. */
static void test_sizes(void **state)
{
	const size_t size = (size_t)4 << 20;
	char *body = malloc(size + 256);

	assert_non_null(body);
	(void)snprintf(body, 256, "{\"metadata\": {\"name\": \"a\", \"labels\": {\"x\": \"large\"}, \"padding\": \"");
	memset(body + strlen(body), 'x', size);
	(void)snprintf(body + size, 16, "\"}}");
	assert_int_equal(world_send("PUT", NODES "/a", body), 200);
	free(body);
	assert_true(wait_for("large"));

	stream("{\"kind\": \"slow\", \"pause\": 0.001}");
	set_label("slow");
	assert_true(wait_for("slow"));
	assert_int_equal(seen.n_lists, 1);
}

/* Away for a while: one warning, and what happened meanwhile is seen afterwards. */
static void test_server_is_away(void **state)
{
	char *warning;

	world_kill();
	for (int64_t until = graft_clock_ms() + 4000; graft_clock_ms() < until;)
		assert_int_equal(graft_loop_turn(&world.loop, 100, NULL), 0);
	assert_string_equal(seen.value, "0");
	warning = strstr(world.warnings, "Couldn't connect");
	if (!warning)
		warning = strstr(world.warnings, "Failed to connect");
	assert_non_null(warning);
	assert_null(strstr(warning + 10, "Failed to connect"));
	/* The new one knows nothing: the node is gone, until it is back. */
	assert_true(world_serve());
	assert_true(wait_for("absent"));
	assert_int_equal(world_send("POST", NODES, "{\"metadata\": {\"name\": \"a\", \"labels\": {\"x\": \"9\"}}}"),
			 201);
	assert_true(wait_for("9"));
	assert_non_null(strstr(world.warnings, ": the API server answers again\n"));
}

/* Callbacks may end the watch. */
static void test_ends_within(void **state)
{
	seen.end_at_once = true;
	set_label("1");
	assert_true(wait_for("1"));
	assert_true(wait_for_streams(0));
	set_label("2");
	graft_cluster_watch_begin(world.cluster, &seen.watch);
	assert_true(wait_for("2"));
	assert_true(wait_for_streams(0));
	assert_int_equal(seen.n_changes, 1);
	assert_int_equal(seen.n_lists, 2);
}

static void test_event(void **state)
{
	static const struct {
		const char *text;
		enum graft_cluster_change change;
		const char *version;
		int status;
	} rows[] = {
		{ "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"resourceVersion\":\"12\"}}}",
		  GRAFT_CLUSTER_DELETED, "12", 0 },
		{ "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"x&y\"}}}",
		  GRAFT_CLUSTER_BOOKMARK, "x&y", 0 },
		{ "{\"type\":\"ERROR\",\"object\":{\"code\":410}}", GRAFT_CLUSTER_ERROR, "", 410 },
		{ "{\"type\":\"ERROR\",\"object\":{\"code\":-1}}", GRAFT_CLUSTER_ERROR, "", 0 },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		auto_json_document struct graft_json_document *document = NULL;
		struct graft_cluster_event event;

		assert_int_equal(graft_cluster_event_parse(rows[i].text, strlen(rows[i].text), &document, &event, NULL),
				 0);
		assert_int_equal(event.change, rows[i].change);
		assert_string_equal(event.version, rows[i].version);
		assert_int_equal(event.status, rows[i].status);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_changes, begin, end),
		cmocka_unit_test_setup_teardown(test_goes_on, begin, end),
		cmocka_unit_test_setup_teardown(test_bookmark, begin, end),
		cmocka_unit_test_setup_teardown(test_gone, begin, end),
		cmocka_unit_test_setup_teardown(test_refused_version, begin, end),
		cmocka_unit_test_setup_teardown(test_overloaded, begin, end),
		cmocka_unit_test_setup_teardown(test_nonsense, begin, end),
		cmocka_unit_test_setup_teardown(test_list_fails, begin, end),
		cmocka_unit_test_setup_teardown(test_sizes, begin, end),
		cmocka_unit_test_setup_teardown(test_ends_within, begin, end),
		cmocka_unit_test_setup_teardown(test_server_is_away, begin, end),
		cmocka_unit_test(test_event),
	};

	return cmocka_run_group_tests(tests, world_open, world_close);
}
