/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>

#include "../unit.h"
#include "cluster/cluster_config.h"
#include "cluster/curl_library.h"
#include "cluster_world.h"

#define NODES "/api/v1/nodes"

static int connect_by_token(void **state)
{
	return world_connect("kubeconfig", NULL);
}

static int disconnect(void **state)
{
	world_disconnect();
	return 0;
}

/* "METHOD URL: rest", for a path of the server. */
static const char *message(const char *method, const char *path, const char *rest)
{
	static char text[512];

	(void)snprintf(text, sizeof(text), "%s %s%s: %s", method, graft_cluster_server(world.cluster), path, rest);
	return text;
}

static void test_objects(void **state)
{
	assert_int_equal(world_send("POST", NODES, "{\"metadata\": {\"name\": \"a\", \"labels\": {\"x\": \"1\"}}}"),
			 201);
	assert_int_equal(world_send("GET", NODES "/a", NULL), 200);
	assert_non_null(strstr(world.body, "\"labels\": {\"x\": \"1\"}"));
	assert_int_equal(world_send("PUT", NODES "/a", "{\"metadata\": {\"name\": \"a\"}}"), 200);
	assert_null(strstr(world.body, "labels"));
	assert_int_equal(world_send("GET", NODES "?fieldSelector=metadata.name%3Da", NULL), 200);
	assert_non_null(strstr(world.body, "\"items\": [{\"metadata\": {\"name\": \"a\""));
	assert_int_equal(world_send("DELETE", NODES "/a", NULL), 200);
	assert_int_equal(world.err.status, GRAFT_OK);
}

static void test_refusals(void **state)
{
	const struct {
		const char *fault, *method, *path;
		int status;
		enum graft_status kind;
		const char *text;
	} rows[] = {
		{ NULL, "GET", NODES "/none", 404, GRAFT_NOT_FOUND, "nodes \"none\" not found (status 404)" },
		{ "\"status\", \"code\": 403, \"message\": \"nodes is forbidden: User \\\"x\\\" cannot list\"", "GET",
		  NODES, 403, GRAFT_PERMISSION, "nodes is forbidden: User \"x\" cannot list (status 403)" },
		{ "\"status\", \"code\": 422, \"message\": \"a\\nb\\u001b[1m\"", "GET", NODES, 422, GRAFT_INVALID,
		  "a?b?[1m (status 422)" },
		{ "\"status\", \"code\": 503, \"text\": \"no backend \\u001b[1m\\nmore\"", "GET", NODES, 503, GRAFT_IO,
		  "no backend \\x1b[1m (status 503)" },
		{ "\"status\", \"code\": 500, \"text\": \"\"", "GET", NODES, 500, GRAFT_IO, " (status 500)" },
		{ "\"gone\"", "GET", NODES, 410, GRAFT_NOT_FOUND, "too old resource version (status 410)" },
		{ "\"redirect\"", "GET", NODES, 302, GRAFT_IO, " (status 302)" },
	};
	char fault[256];

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		if (rows[i].fault) {
			(void)snprintf(fault, sizeof(fault), "{\"match\": \"%s\", \"kind\": %s}", rows[i].path,
				       rows[i].fault);
			assert_int_equal(world_send("POST", "/-/fault", fault), 200);
		}
		assert_int_equal(world_send(rows[i].method, rows[i].path, NULL), rows[i].status);
		assert_int_equal(world.err.status, rows[i].kind);
		assert_string_equal(world.err.msg, message(rows[i].method, rows[i].path, rows[i].text));
	}
	assert_int_equal(world_send("GET", NODES, NULL), 200);
}

static void test_login(void **state)
{
	assert_int_equal(world_send("GET", NODES, NULL), 200);
	/* The token's file is read for each request: what is in it counts at once. */
	world_write("other", "second-token");
	assert_int_equal(rename(world_path("token"), world_path("before")), 0);
	assert_int_equal(rename(world_path("other"), world_path("token")), 0);
	assert_int_equal(world_send("GET", NODES, NULL), 200);
	world_write("token", "not a token\n");
	assert_int_equal(world_send("GET", NODES, NULL), -1);
	assert_int_equal(world.err.status, GRAFT_FORMAT);
	assert_int_equal(unlink(world_path("token")), 0);
	assert_int_equal(world_send("GET", NODES, NULL), -1);
	assert_int_equal(world.err.status, GRAFT_NOT_FOUND);
	assert_string_printed(world.err.msg, "cannot read the token %s", world_path("token"));
	assert_int_equal(rename(world_path("before"), world_path("token")), 0);
	assert_int_equal(world_send("GET", NODES, NULL), 200);
}

/* Writes a kubeconfig for this server, of parts. */
static void write_kubeconfig(const char *cluster, const char *user)
{
	char text[1024];

	(void)snprintf(text, sizeof(text),
		       "current-context: c\ncontexts:\n- {name: c, context: {cluster: c, user: u}}\nclusters:\n"
		       "- {name: c, cluster: {server: '%s', %s}}\nusers:\n- {name: u, user: {%s}}\n",
		       graft_cluster_server(world.cluster), cluster, user);
	world_write("written", text);
	world_disconnect();
}

static void test_certificates(void **state)
{
	char command[160];

	world_disconnect();
	assert_int_equal(world_connect("kubeconfig-data", NULL), 0);
	assert_int_equal(world_send("GET", NODES, NULL), 200);

	write_kubeconfig("certificate-authority: ca.crt", "client-certificate: client.crt, client-key: client.key");
	assert_int_equal(world_connect("written", NULL), 0);
	assert_int_equal(world_send("GET", NODES, NULL), 200);

	/* Both in one file, as the kubelet has them: its own kubeconfig will do. */
	(void)snprintf(command, sizeof(command), "cd %s && cat client.crt client.key >both.pem", world.directory);
	assert_int_equal(system(command), 0);
	write_kubeconfig("certificate-authority: ca.crt", "client-certificate: both.pem, client-key: both.pem");
	assert_int_equal(world_connect("written", NULL), 0);
	assert_int_equal(world_send("GET", NODES, NULL), 200);

	write_kubeconfig("certificate-authority: ca.crt", "token: wrong");
	assert_int_equal(world_connect("written", NULL), 0);
	assert_int_equal(world_send("GET", NODES, NULL), 401);
	assert_int_equal(world.err.status, GRAFT_PERMISSION);
	assert_string_equal(world.err.msg, message("GET", NODES, "Unauthorized (status 401)"));

	/* Another CA. */
	write_kubeconfig("certificate-authority: client.crt", "tokenFile: token");
	assert_int_equal(world_connect("written", NULL), 0);
	assert_int_equal(world_send("GET", NODES, NULL), 0);
	assert_int_equal(world.err.status, GRAFT_IO);
	assert_non_null(strstr(world.err.msg, "certificate"));
	assert_string_equal(graft_error_hint(&world.err),
			    "Check the CA: the service account's ca.crt, or certificate-authority in the kubeconfig.");

	write_kubeconfig("certificate-authority: none.crt", "tokenFile: token");
	assert_int_equal(world_connect("written", NULL), 0);
	assert_int_equal(world_send("GET", NODES, NULL), 0);
	assert_string_equal(graft_error_hint(&world.err),
			    "Check the CA: the service account's ca.crt, or certificate-authority in the kubeconfig.");

	write_kubeconfig("certificate-authority: ca.crt", "client-certificate: none.crt, client-key: client.key");
	assert_int_equal(world_connect("written", NULL), 0);
	assert_int_equal(world_send("GET", NODES, NULL), 0);
	assert_string_equal(graft_error_hint(&world.err), "Check client-certificate and client-key in the kubeconfig.");

	write_kubeconfig("insecure-skip-tls-verify: true", "tokenFile: token");
	assert_int_equal(world_connect("written", NULL), 0);
	assert_non_null(
	    strstr(world.warnings, ": the API server's certificate is not verified, as /tmp/graft-cluster-"));
	assert_int_equal(world_send("GET", NODES, NULL), 200);
}

static void test_broken_answers(void **state)
{
	struct graft_cluster_request request = { .method = "GET", .path = NODES, .timeout_ms = 300 };

	assert_int_equal(world_send("POST", "/-/fault", "{\"match\": \"/api\", \"kind\": \"cut\"}"), 200);
	assert_int_equal(world_send("GET", NODES, NULL), 0);
	assert_int_equal(world.err.status, GRAFT_IO);

	assert_int_equal(world_send("POST", "/-/fault", "{\"match\": \"/api\", \"kind\": \"slow\", \"pause\": 0.005}"),
			 200);
	assert_int_equal(world_send("GET", NODES, NULL), 200);
	assert_string_equal(world.body, "{\"kind\":\"Slow\",\"value\":\"xxxxxxxxxxxxxxxxxxxx\"}");

	assert_int_equal(world_send("POST", "/-/fault", "{\"match\": \"/api\", \"kind\": \"slow\", \"pause\": 0.1}"),
			 200);
	assert_int_equal(world_ask(&request), 0);
	assert_int_equal(world.err.status, GRAFT_TIMEOUT);
	assert_int_equal(world_send("POST", "/-/fault", "{\"match\": \"/api\", \"kind\": \"hang\", \"pause\": 1}"),
			 200);
	assert_int_equal(world_ask(&request), 0);
	assert_int_equal(world.err.status, GRAFT_TIMEOUT);

	/* 4 MiB are no trouble; what is over the limit is refused. */
	assert_int_equal(
	    world_send("POST", "/-/fault", "{\"match\": \"/api\", \"kind\": \"large\", \"size\": 4194304}"), 200);
	assert_int_equal(world_send("GET", NODES, NULL), 200);
	assert_true(world.length > 4194304);
	request = (struct graft_cluster_request){ .method = "GET", .path = NODES, .max = 1000000 };
	assert_int_equal(
	    world_send("POST", "/-/fault", "{\"match\": \"/api\", \"kind\": \"large\", \"size\": 4194304}"), 200);
	assert_int_equal(world_ask(&request), 0);
	assert_int_equal(world.err.status, GRAFT_TOO_BIG);
	assert_string_equal(world.err.msg, message("GET", NODES, "the answer is larger than 1000000 bytes"));
	assert_int_equal(world_send("GET", NODES, NULL), 200);
}

/* A body of 4 MiB goes there, too. */
static void test_large_body(void **state)
{
	const size_t size = (size_t)4 << 20;
	char *body = malloc(size + 1);
	static const char head[] = "{\"metadata\": {\"name\": \"large\"}, \"padding\": \"";

	assert_non_null(body);
	memset(body, 'x', size);
	memcpy(body, head, sizeof(head) - 1);
	memcpy(body + size - 2, "\"}", 3);
	assert_int_equal(world_send("POST", NODES, body), 201);
	assert_true(world.length >= size);
	assert_int_equal(world_send("DELETE", NODES "/large", NULL), 200);
	free(body);
}

struct many {
	struct graft_cluster_call *calls[8];
	int n_answered;
};
static struct many many;

/* The first answer ends all the others. */
static void cancel_others(void *arg, const struct graft_cluster_answer *answer)
{
	size_t me = (size_t)(uintptr_t)arg;

	assert_int_equal(answer->status, 200);
	many.calls[me] = NULL;
	many.n_answered++;
	for (size_t i = 0; i < GRAFT_COUNT(many.calls); i++) {
		graft_cluster_cancel(many.calls[i]);
		many.calls[i] = NULL;
	}
}

static void test_cancel(void **state)
{
	struct graft_cluster_request request = { .method = "GET", .path = NODES, .answered = cancel_others };
	const bool never = false;
	int64_t until;

	many = (struct many){ .n_answered = 0 };
	for (size_t i = 0; i < GRAFT_COUNT(many.calls); i++) {
		request.arg = (void *)(uintptr_t)i;
		many.calls[i] = graft_cluster_send(world.cluster, &request, NULL);
		assert_non_null(many.calls[i]);
	}
	for (until = graft_clock_ms() + WORLD_LIMIT_MS; many.n_answered == 0 && graft_clock_ms() < until;)
		assert_int_equal(graft_loop_turn(&world.loop, 100, NULL), 0);
	for (until = graft_clock_ms() + 200; !never && graft_clock_ms() < until;)
		assert_int_equal(graft_loop_turn(&world.loop, 50, NULL), 0);
	assert_int_equal(many.n_answered, 1);
	graft_cluster_cancel(NULL);

	/* Closing ends what is under way. */
	assert_non_null(graft_cluster_send(world.cluster, &request, NULL));
	assert_int_equal(graft_loop_turn(&world.loop, 10, NULL), 0);
	world_disconnect();
	assert_int_equal(world.loop.n_watches, 0);
	assert_null(world.loop.timers);
}

static void count_answer(void *arg, const struct graft_cluster_answer *answer)
{
	assert_int_equal(answer->status, 200);
	many.n_answered++;
}

/* Two at once, then ten a second; one that waits can be cancelled. */
static void test_rate(void **state)
{
	const struct graft_cluster_request request = { .method = "GET", .path = NODES, .answered = count_answer };
	const struct graft_cluster_sources sources = { .loop = &world.loop,
						       .log = &world.log,
						       .kubeconfig = world_path("kubeconfig"),
						       .variable = no_variable,
						       .per_second = 10,
						       .burst = 2 };
	int64_t began = graft_clock_ms();

	many = (struct many){ .n_answered = 0 };
	assert_int_equal(graft_cluster_open(&sources, &world.cluster, NULL), 0);
	for (size_t i = 0; i < 7; i++) {
		many.calls[i] = graft_cluster_send(world.cluster, &request, NULL);
		assert_non_null(many.calls[i]);
	}
	graft_cluster_cancel(many.calls[3]);
	while (many.n_answered < 6 && graft_clock_ms() < began + WORLD_LIMIT_MS)
		assert_int_equal(graft_loop_turn(&world.loop, 100, NULL), 0);
	assert_int_equal(many.n_answered, 6);
	assert_true(graft_clock_ms() - began >= 500);
	/* What waits when the cluster is closed is forgotten. */
	for (size_t i = 0; i < 7; i++)
		assert_non_null(graft_cluster_send(world.cluster, &request, NULL));
	world_disconnect();
	assert_null(world.loop.timers);
	assert_int_equal(many.n_answered, 6);
}

static void test_same_failure(void **state)
{
	static const struct {
		const char *before, *now;
		bool same;
	} cases[] = {
		{ "", "", true },
		{ "a", "b", false },
		{ "a", "", false },
		{ "connection failed after 15 ms", "connection failed after 7 ms", true },
		{ "version 1", "version ", true },
		{ "7 pods", "8 nodes", false },
	};

	for (size_t i = 0; i < GRAFT_COUNT(cases); i++) {
		struct graft_error before, now;

		(void)graft_fail(&before, GRAFT_IO, 0, "%s", cases[i].before);
		(void)graft_fail(&now, GRAFT_IO, 0, "%s", cases[i].now);
		assert_int_equal(graft_cluster_is_same_failure(&before, &now), cases[i].same);
		now.status = GRAFT_PERMISSION;
		assert_false(graft_cluster_is_same_failure(&before, &now));
	}
}

/* Nothing of many requests stays open but the connection, which they share. */
static void test_descriptors(void **state)
{
	size_t before = 0, after = 0;

	for (int round = 0; round < 20; round++) {
		DIR *directory = opendir("/proc/self/fd");

		assert_int_equal(world_send("GET", NODES, NULL), 200);
		after = 0;
		while (directory && readdir(directory))
			after++;
		(void)closedir(directory);
		if (round == 1)
			before = after;
	}
	assert_int_equal(before, after);
}

static void test_server_is_away(void **state)
{
	assert_int_equal(world_send("GET", NODES, NULL), 200);
	world_kill();
	assert_int_equal(world_send("GET", NODES, NULL), 0);
	assert_int_equal(world.err.status, GRAFT_IO);
	assert_string_equal(graft_error_hint(&world.err),
			    "Check that the API server is running and can be reached from here.");
	assert_true(world_serve());
	for (int i = 0; i < 100 && world_send("GET", NODES, NULL) != 200; i++)
		(void)usleep(50000);
	assert_int_equal(world.status, 200);
}

static const char *pod_variable(const char *name)
{
	static char port[16];
	FILE *file;

	if (strcmp(name, "KUBERNETES_SERVICE_HOST") == 0)
		return "127.0.0.1";
	if (strcmp(name, "KUBERNETES_SERVICE_PORT") != 0)
		return NULL;
	file = fopen(world_path("port"), "re");
	if (!file || !fgets(port, sizeof(port), file))
		abort();
	(void)fclose(file);
	return port;
}

/* As in a pod: variables, and the directory of the service account. */
static void test_in_cluster(void **state)
{
	struct graft_cluster_sources sources = { .loop = &world.loop, .kubeconfig = "", .variable = pod_variable };
	struct graft_error err;

	world_disconnect();
	sources.account = world.directory;
	assert_int_equal(graft_cluster_open(&sources, &world.cluster, &err), 0);
	assert_int_equal(world_send("GET", NODES, NULL), 200);
	world_disconnect();

	sources.variable = no_variable;
	assert_int_equal(graft_cluster_open(&sources, &world.cluster, &err), -1);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
	assert_string_equal(err.msg, "cannot find the API server: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT "
				     "are not set, as they are in a pod, and no kubeconfig is given");
	world.cluster = NULL;
}

static void test_library(void **state)
{
	static const char *const none[] = { "libnone.so.1", "/nowhere/libcurl.so.4", NULL };
	static const char *const other[] = { "libm.so.6", NULL };
	struct graft_curl curl;
	struct graft_error err;

	assert_int_equal(graft_curl_load(none, &curl, &err), -1);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
	assert_string_equal(err.msg,
			    "cannot load libcurl, which speaks to the API server: /nowhere/libcurl.so.4: cannot open "
			    "shared object file: No such file or directory");
	assert_string_equal(graft_error_hint(&err),
			    "Install the package libcurl4 (Debian, Ubuntu) or libcurl (Fedora, RHEL).");
	assert_int_equal(graft_curl_load(other, &curl, &err), -1);
	assert_string_equal(err.msg, "libcurl lacks curl_global_init");
}

static void test_escape(void **state)
{
	struct graft_buffer out = { .max = 0 };

	graft_cluster_escape(&out, "a-b._~Z9/?&=%\n\xc3\xa4");
	assert_string_equal(graft_buffer_text(&out), "a-b._~Z9%2F%3F%26%3D%25%0A%C3%A4");
	graft_buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_objects, connect_by_token, disconnect),
		cmocka_unit_test_setup_teardown(test_refusals, connect_by_token, disconnect),
		cmocka_unit_test_setup_teardown(test_login, connect_by_token, disconnect),
		cmocka_unit_test_setup_teardown(test_certificates, connect_by_token, disconnect),
		cmocka_unit_test_setup_teardown(test_broken_answers, connect_by_token, disconnect),
		cmocka_unit_test_setup_teardown(test_large_body, connect_by_token, disconnect),
		cmocka_unit_test_setup_teardown(test_cancel, connect_by_token, disconnect),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_same_failure),
		cmocka_unit_test_setup_teardown(test_descriptors, connect_by_token, disconnect),
		cmocka_unit_test_setup_teardown(test_server_is_away, connect_by_token, disconnect),
		cmocka_unit_test_setup_teardown(test_in_cluster, connect_by_token, disconnect),
		cmocka_unit_test(test_library),
		cmocka_unit_test(test_escape),
	};

	return cmocka_run_group_tests(tests, world_open, world_close);
}
