/* SPDX-License-Identifier: Apache-2.0 */
/* The kubeconfig file: what of it applies, and every message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../allocation.h"
#include "../arena.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "cluster/cluster_config.h"

static struct graft_cluster_config config;
static struct graft_error err;

static int parse(const char *text)
{
	err = (struct graft_error){ .status = GRAFT_OK };
	return graft_kubeconfig_parse("/etc/kube/config", text, strlen(text), arena, &config, &err);
}

/* A file with one context, of the content of its cluster and user. */
static int parse_parts(const char *cluster, const char *user)
{
	char text[2048];

	(void)snprintf(text, sizeof(text),
		       "current-context: here\n"
		       "contexts:\n"
		       "- name: here\n"
		       "  context: {cluster: c, user: u}\n"
		       "clusters:\n"
		       "- name: c\n"
		       "  cluster: {%s}\n"
		       "users:\n"
		       "- name: u\n"
		       "  user: {%s}\n",
		       cluster, user);
	return parse(text);
}

static void test_whole(void **state)
{
	static const char text[] = "apiVersion: v1\nkind: Config\npreferences: {}\ncurrent-context: b\n"
				   "contexts:\n"
				   "- {name: a, context: {cluster: a, user: a}}\n"
				   "- {name: b, context: {cluster: second, user: two, namespace: gpu}}\n"
				   "clusters:\n"
				   "- {name: first, cluster: {server: 'https://first'}}\n"
				   "- name: second\n"
				   "  cluster:\n"
				   "    server: https://10.0.0.1:6443/prefix//\n"
				   "    certificate-authority: pki/ca.crt\n"
				   "    proxy-url: http://proxy:3128\n"
				   "users:\n"
				   "- name: two\n"
				   "  user:\n"
				   "    client-certificate: /abs/client.crt\n"
				   "    client-key-data: a2V5\n"
				   "    tokenFile: token\n";

	assert_int_equal(parse(text), 0);
	assert_string_equal(config.server, "https://10.0.0.1:6443/prefix");
	assert_string_equal(config.ca.path, "/etc/kube/pki/ca.crt");
	assert_null(config.ca.data);
	assert_string_equal(config.proxy, "http://proxy:3128");
	assert_string_equal(config.certificate.path, "/abs/client.crt");
	assert_null(config.key.path);
	assert_int_equal(config.key.length, 3);
	assert_memory_equal(config.key.data, "key", 3);
	assert_string_equal(config.token_file, "/etc/kube/token");
	assert_null(config.token);
	assert_false(config.insecure);
}

static void test_json(void **state)
{
	assert_int_equal(
	    parse("{\"current-context\": \"x\", \"contexts\": [{\"name\": \"x\", \"context\": {\"cluster\": \"y\"}}], "
		  "\"clusters\": [{\"name\": \"y\", \"cluster\": {\"server\": \"http://127.0.0.1:8001\", "
		  "\"insecure-skip-tls-verify\": true}}], \"users\": null}"),
	    0);
	assert_string_equal(config.server, "http://127.0.0.1:8001");
	assert_true(config.insecure);
	assert_null(config.token);
}

static void test_data(void **state)
{
	static const struct {
		const char *base64, *bytes; /* NULL: refused */
	} rows[] = {
		{ "aA==", "h" },         { "aGU=", "he" },        { "a2V5", "key" },
		{ "aGVsbG8=", "hello" }, { "/+9+", "\xff\xef~" }, { "aGVs\\n  bG8=\\n", "hello" },
		{ "aGVsbG8", NULL },     { "a", NULL },           { "aGV=s", NULL },
		{ "====", NULL },        { "=", NULL },           { "aG-_", NULL },
		{ "aGVs====", NULL },    { " ", NULL },
	};
	char user[128];

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		(void)snprintf(user, sizeof(user), "certificate-authority-data: \"%s\", server: https://s",
			       rows[i].base64);
		if (!rows[i].bytes) {
			assert_int_equal(parse_parts(user, ""), -1);
			assert_string_equal(
			    err.msg, "/etc/kube/config: line 7, column 3: certificate-authority-data must be base64");
			continue;
		}
		assert_int_equal(parse_parts(user, ""), 0);
		assert_int_equal(config.ca.length, strlen(rows[i].bytes));
		assert_memory_equal(config.ca.data, rows[i].bytes, config.ca.length);
	}
}

static void test_refused_parts(void **state)
{
#define AT(line, column) "/etc/kube/config: line " #line ", column " #column ": "
	static const struct {
		const char *cluster, *user;
		enum graft_status status;
		const char *message;
	} rows[] = {
		{ "", "", GRAFT_INVALID, AT(7, 3) "server must be a URL that begins with https://" },
		{ "server: ''", "", GRAFT_INVALID, AT(7, 3) "server must be a URL that begins with https://" },
		{ "server: 'ftp://s'", "", GRAFT_INVALID, AT(7, 3) "server must be a URL that begins with https://" },
		{ "server: 5", "", GRAFT_FORMAT, AT(7, 13) "server must be a string" },
		{ "server: 'https://s/?x'", "", GRAFT_INVALID,
		  AT(7, 3) "server may only have a scheme, host, port and path" },
		{ "server: 'https://a:b@s'", "", GRAFT_INVALID,
		  AT(7, 3) "server may only have a scheme, host, port and path" },
		{ "server: \"https://s\\r\\nX: y\"", "", GRAFT_INVALID,
		  AT(7, 3) "server may only have a scheme, host, port and path" },
		{ "server: 'https://s', tls-server-name: x", "", GRAFT_UNSUPPORTED,
		  AT(7, 3) "tls-server-name is not supported; server must have a name that its certificate has" },
		{ "server: 'https://s', insecure-skip-tls-verify: maybe", "", GRAFT_FORMAT,
		  AT(7, 34) "insecure-skip-tls-verify must be true or false" },
		{ "server: 'https://s'", "exec: {command: aws}", GRAFT_UNSUPPORTED,
		  AT(10, 10) "exec is not supported: Graft runs no login programs; use a client certificate, token or "
			     "tokenFile" },
		{ "server: 'https://s'", "auth-provider: {name: gcp}", GRAFT_UNSUPPORTED,
		  AT(10, 10) "auth-provider is not supported; use a client certificate, token or tokenFile" },
		{ "server: 'https://s'", "username: me, password: secret", GRAFT_UNSUPPORTED,
		  AT(10, 10) "username and password are not supported; use a client certificate, token or tokenFile" },
		{ "server: 'https://s'", "as: root", GRAFT_UNSUPPORTED,
		  AT(10, 10) "impersonation (as) is not supported" },
		{ "server: 'https://s'", "token: \"a\\nb\"", GRAFT_INVALID, AT(10, 3) "token is not valid" },
		{ "server: 'https://s'", "token: \"  \"", GRAFT_INVALID, AT(10, 3) "token is not valid" },
		{ "server: 'https://s'", "client-certificate: c", GRAFT_INVALID,
		  AT(10, 3) "a client certificate needs its key, and a key its certificate" },
		{ "server: 'https://s'", "client-key-data: aGVs", GRAFT_INVALID,
		  AT(10, 3) "a client certificate needs its key, and a key its certificate" },
		{ "server: 'http://s'", "token: secret", GRAFT_INVALID,
		  "/etc/kube/config: the user's token or key is not sent to http://s: use https" },
		{ "server: 'http://s'", "client-key: k, client-certificate: c", GRAFT_INVALID,
		  "/etc/kube/config: the user's token or key is not sent to http://s: use https" },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		assert_int_equal(parse_parts(rows[i].cluster, rows[i].user), -1);
		assert_string_equal(err.msg, rows[i].message);
		assert_int_equal(err.status, rows[i].status);
	}
}

static void test_refused_files(void **state)
{
	static const struct {
		const char *text;
		enum graft_status status;
		const char *message;
	} rows[] = {
		{ "{}", GRAFT_INVALID,
		  "/etc/kube/config: current-context is not set: it names the cluster and the user" },
		{ "current-context: ''", GRAFT_INVALID,
		  "/etc/kube/config: current-context is not set: it names the cluster and the user" },
		{ "current-context: a", GRAFT_INVALID, "/etc/kube/config: there is no context 'a'" },
		{ "[]", GRAFT_FORMAT, AT(1, 1) "must be an object" },
		{ "current-context: a\ncontexts: {}", GRAFT_FORMAT, AT(2, 1) "must be a list" },
		{ "current-context: a\ncontexts: [1]", GRAFT_FORMAT, AT(2, 12) "must be an object" },
		{ "current-context: a\ncontexts: [{name: a}]", GRAFT_FORMAT, AT(2, 12) "the entry has no context" },
		{ "current-context: a\ncontexts: [{name: a, context: {}}]", GRAFT_INVALID,
		  AT(2, 22) "the context names no cluster" },
		{ "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]", GRAFT_INVALID,
		  "/etc/kube/config: there is no cluster 'c'" },
		{ "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
		  "clusters: [{name: c, cluster: {server: 'https://s'}}]",
		  GRAFT_INVALID, "/etc/kube/config: there is no user 'u'" },
		{ "a: [", GRAFT_FORMAT, NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		assert_int_equal(parse(rows[i].text), -1);
		if (rows[i].message)
			assert_string_equal(err.msg, rows[i].message);
		assert_int_equal(err.status, rows[i].status);
	}
}

static const char *pod_variable(const char *name)
{
	if (strcmp(name, "KUBERNETES_SERVICE_HOST") == 0)
		return "fd00::1";
	return strcmp(name, "KUBERNETES_SERVICE_PORT") == 0 ? "443" : NULL;
}

static void test_pod(void **state)
{
	assert_int_equal(graft_cluster_config_read("", GRAFT_CLUSTER_ACCOUNT, pod_variable, arena, &config, &err), 0);
	assert_string_equal(config.server, "https://[fd00::1]:443");
	assert_string_equal(config.ca.path, "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt");
	assert_string_equal(config.token_file, "/var/run/secrets/kubernetes.io/serviceaccount/token");
	assert_int_equal(graft_cluster_config_read("/nowhere/config", "", pod_variable, arena, &config, &err), -1);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
	assert_string_equal(err.msg, "unable to read kubeconfig /nowhere/config");
}

static void test_token(void **state)
{
	static const struct {
		const char *bytes, *token;
	} rows[] = {
		{ "abc", "abc" }, { "abc\n", "abc" }, { "abc \r\n\n", "abc" }, { "", NULL },
		{ "\n", NULL },   { "a b", NULL },    { "a\nb", NULL },        { "\xc3\xa4", NULL },
	};

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		const char *token = graft_cluster_clean_token(rows[i].bytes, strlen(rows[i].bytes), arena);

		if (rows[i].token)
			assert_string_equal(token, rows[i].token);
		else
			assert_null(token);
	}
	assert_null(graft_cluster_clean_token("a\0b", 3, arena));
	assert_null(graft_cluster_clean_token("ab\0", 3, arena));
}

static void test_memory(void **state)
{
	static const char text[] =
	    "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
	    "clusters: [{name: c, cluster: {server: 'https://s', certificate-authority-data: aGVs}}]\n"
	    "users: [{name: u, user: {token: t}}]";

	assert_true(allocation_each(own, e, graft_kubeconfig_parse("f", text, strlen(text), own, &config, &e)) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),         cmocka_unit_test(test_json),          cmocka_unit_test(test_data),
		cmocka_unit_test(test_refused_parts), cmocka_unit_test(test_refused_files), cmocka_unit_test(test_pod),
		cmocka_unit_test(test_token),         cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, arena_setup, arena_teardown);
}
