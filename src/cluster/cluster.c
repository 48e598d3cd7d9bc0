/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster: runs libcurl's sockets and timer in the loop, and interprets answers. Knows nothing of
 * objects.
 */
#include "cluster/cluster.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/read.h"
#include "base/strings.h"
#include "cluster/cluster_config.h"
#include "cluster/curl_library.h"
#include "formats/json/json_document.h"

#define CONNECT_MS  10000L
#define KEEPALIVE_S 30L
#define TOKEN_MAX   ((size_t)64 * 1024)
#define MEMORY_MAX  ((size_t)8 << 20)
#define QUOTED_BODY 120

struct cluster_socket {
	struct graft_cluster *cluster;
	struct graft_loop_watch watch;
};

struct graft_cluster_call {
	struct graft_cluster *cluster;
	struct graft_cluster_call *next, **link;
	CURL *easy;
	struct graft_loop_timer turn; /* set while it waits to be sent */
	struct curl_slist *headers;
	struct graft_buffer body;
	bool too_big;
	char reason[CURL_ERROR_SIZE];
	char method[8];
	char *url, *sent; /* owned */
	void (*answered)(void *arg, const struct graft_cluster_answer *answer);
	void (*received)(void *arg, const char *bytes, size_t n);
	void *arg;
};

struct graft_cluster {
	struct graft_loop *loop;
	const struct graft_log *log;
	struct graft_curl curl;
	struct graft_arena *arena; /* of the configuration */
	struct graft_cluster_config config;
	int ca_fd, certificate_fd, key_fd; /* content of a kubeconfig, as files */
	CURLM *multi;
	struct graft_loop_timer timer;
	struct graft_cluster_call *calls;
	int64_t spacing_us, slack_us; /* spacing of requests in the long run; how far a burst may be ahead of it */
	int64_t next_us;              /* time of the next request if all had kept to the spacing */
};

/* --- sockets and timer --- */

static void deliver_answers(struct graft_cluster *cluster);
static void finish_call(struct graft_cluster_call *call, CURLcode result);

static void cluster_socket_ready(void *arg, short events)
{
	struct cluster_socket *socket = arg;
	struct graft_cluster *cluster = socket->cluster;
	int running, mask = 0;

	if (events & (POLLIN | POLLHUP))
		mask |= CURL_CSELECT_IN;
	if (events & POLLOUT)
		mask |= CURL_CSELECT_OUT;
	if (events & (POLLERR | POLLNVAL))
		mask |= CURL_CSELECT_ERR;
	(void)cluster->curl.multi_socket_action(cluster->multi, socket->watch.fd, mask, &running);
	deliver_answers(cluster);
}

static void cluster_timer_due(void *arg)
{
	struct graft_cluster *cluster = arg;
	int running;

	(void)cluster->curl.multi_socket_action(cluster->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	deliver_answers(cluster);
}

static int set_cluster_timer(CURLM *multi, long delay_ms, void *arg)
{
	struct graft_cluster *cluster = arg;

	(void)multi;
	if (delay_ms < 0)
		graft_loop_clear_timer(&cluster->timer);
	else
		graft_loop_set_timer(cluster->loop, &cluster->timer, delay_ms);
	return 0;
}

static short wanted_events(int what)
{
	return (short)((what & CURL_POLL_IN ? POLLIN : 0) | (what & CURL_POLL_OUT ? POLLOUT : 0));
}

/* Called by libcurl with a socket that it waits for. */
static int watch_cluster_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct graft_cluster *cluster = arg;
	struct cluster_socket *socket = socket_arg;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (socket)
			graft_loop_forget(cluster->loop, &socket->watch);
		free(socket);
		return 0;
	}
	if (!socket) {
		socket = calloc(1, sizeof(*socket));
		if (!socket)
			return -1;
		socket->cluster = cluster;
		socket->watch = (struct graft_loop_watch){ .fd = fd, .ready = cluster_socket_ready, .arg = socket };
		if (graft_loop_watch(cluster->loop, &socket->watch, NULL) < 0 ||
		    cluster->curl.multi_assign(cluster->multi, fd, socket) != CURLM_OK) {
			graft_loop_forget(cluster->loop, &socket->watch);
			free(socket);
			return -1;
		}
	}
	socket->watch.events = wanted_events(what);
	return 0;
}

/* --- opening --- */

static int close_and_forget(int fd)
{
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

void graft_cluster_close(struct graft_cluster *cluster)
{
	if (!cluster)
		return;
	while (cluster->calls)
		graft_cluster_cancel(cluster->calls);
	if (cluster->multi)
		(void)cluster->curl.multi_cleanup(cluster->multi);
	graft_loop_clear_timer(&cluster->timer);
	graft_curl_unload(&cluster->curl);
	cluster->ca_fd = close_and_forget(cluster->ca_fd);
	cluster->certificate_fd = close_and_forget(cluster->certificate_fd);
	cluster->key_fd = close_and_forget(cluster->key_fd);
	(void)graft_arena_free(cluster->arena);
	free(cluster);
}

/*
 * Content that libcurl needs as a file, since not all of its builds accept it in another form. The
 * file has no name and belongs to this process.
 */
static int make_content_file(struct graft_cluster *cluster, struct graft_cluster_file *file, int *ret_fd,
			     struct graft_error *err)
{
	size_t written = 0;

	if (!file->data)
		return 0;
	*ret_fd = memfd_create("kubeconfig", MFD_CLOEXEC);
	while (*ret_fd >= 0 && written < file->length) {
		ssize_t n = write(*ret_fd, file->data + written, file->length - written);

		if (n <= 0)
			break;
		written += (size_t)n;
	}
	if (*ret_fd < 0 || written < file->length)
		return graft_fail_errno(err, errno, "cannot keep a certificate in memory");
	file->path = graft_arena_printf(cluster->arena, "/proc/self/fd/%d", *ret_fd);
	return file->path ? 0 : graft_fail_memory(err);
}

static int begin_multi(struct graft_cluster *cluster, struct graft_error *err)
{
	const struct graft_curl *curl = &cluster->curl;

	cluster->multi = curl->multi_init();
	if (!cluster->multi)
		return graft_fail_memory(err);
	(void)curl->multi_setopt(cluster->multi, CURLMOPT_SOCKETFUNCTION, watch_cluster_socket);
	(void)curl->multi_setopt(cluster->multi, CURLMOPT_SOCKETDATA, cluster);
	(void)curl->multi_setopt(cluster->multi, CURLMOPT_TIMERFUNCTION, set_cluster_timer);
	(void)curl->multi_setopt(cluster->multi, CURLMOPT_TIMERDATA, cluster);
	return 0;
}

static void set_rate(struct graft_cluster *cluster, double per_second, int burst)
{
	if (per_second <= 0)
		return;
	cluster->spacing_us = (int64_t)(1e6 / per_second);
	cluster->slack_us = cluster->spacing_us * (burst > 1 ? burst - 1 : 0);
}

static int open_cluster(struct graft_cluster *cluster, const struct graft_cluster_sources *sources,
			struct graft_error *err)
{
	struct graft_cluster_config *config = &cluster->config;

	cluster->arena = graft_arena_new(MEMORY_MAX);
	if (!cluster->arena)
		return graft_fail_memory(err);
	if (graft_cluster_config_read(sources->kubeconfig, sources->account ? sources->account : GRAFT_CLUSTER_ACCOUNT,
				      sources->variable, cluster->arena, config, err) < 0 ||
	    make_content_file(cluster, &config->ca, &cluster->ca_fd, err) < 0 ||
	    make_content_file(cluster, &config->certificate, &cluster->certificate_fd, err) < 0 ||
	    make_content_file(cluster, &config->key, &cluster->key_fd, err) < 0 ||
	    graft_curl_load(NULL, &cluster->curl, err) < 0 || begin_multi(cluster, err) < 0)
		return -1;
	if (config->insecure)
		graft_warn(sources->log, "%s: the API server's certificate is not verified, as %s requests",
			   config->server, sources->kubeconfig);
	return 0;
}

int graft_cluster_open(const struct graft_cluster_sources *sources, struct graft_cluster **ret_cluster,
		       struct graft_error *err)
{
	struct graft_cluster *cluster = calloc(1, sizeof(*cluster));

	if (!cluster)
		return graft_fail_memory(err);
	*cluster = (struct graft_cluster){ .loop = sources->loop,
					   .log = sources->log,
					   .timer = { .due = cluster_timer_due, .arg = cluster },
					   .ca_fd = -1,
					   .certificate_fd = -1,
					   .key_fd = -1 };
	set_rate(cluster, sources->per_second, sources->burst);
	if (open_cluster(cluster, sources, err) < 0) {
		graft_cluster_close(cluster);
		return -1;
	}
	*ret_cluster = cluster;
	return 0;
}

const char *graft_cluster_server(const struct graft_cluster *cluster)
{
	return cluster->config.server;
}

struct graft_loop *graft_cluster_loop(const struct graft_cluster *cluster, const struct graft_log **ret_log)
{
	*ret_log = cluster->log;
	return cluster->loop;
}

/* --- one request --- */

static size_t take_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct graft_cluster_call *call = arg;

	(void)size;
	graft_buffer_add(&call->body, bytes, n);
	call->too_big = graft_buffer_failed(&call->body);
	return call->too_big ? 0 : n;
}

static void free_cluster_call(struct graft_cluster_call *call)
{
	const struct graft_curl *curl = &call->cluster->curl;

	if (call->link) {
		*call->link = call->next;
		if (call->next)
			call->next->link = call->link;
	}
	graft_loop_clear_timer(&call->turn);
	if (call->easy) {
		(void)curl->multi_remove_handle(call->cluster->multi, call->easy);
		curl->easy_cleanup(call->easy);
	}
	curl->slist_free_all(call->headers);
	graft_buffer_done(&call->body);
	free(call->url);
	free(call->sent);
	free(call);
}

void graft_cluster_cancel(struct graft_cluster_call *call)
{
	if (call)
		free_cluster_call(call);
}

static bool add_header(struct graft_cluster_call *call, const char *line)
{
	struct curl_slist *longer = line ? call->cluster->curl.slist_append(call->headers, line) : NULL;

	if (longer)
		call->headers = longer;
	return longer != NULL;
}

/* The token's file may have a new token at any time: in a pod it is replaced each hour. */
static int read_token(const struct graft_cluster_config *config, struct graft_arena *arena, const char **ret_token,
		      struct graft_error *err)
{
	const char *bytes;
	size_t length;
	int rc;

	*ret_token = config->token;
	if (!config->token_file)
		return 0;
	rc = graft_read_input(config->token_file, TOKEN_MAX, arena, &bytes, &length);
	if (rc < 0)
		return graft_fail_errno(err, -rc, "cannot read the token %s", config->token_file);
	*ret_token = graft_cluster_clean_token(bytes, length, arena);
	return *ret_token ? 0 : graft_fail(err, GRAFT_FORMAT, 0, "%s: not a valid token", config->token_file);
}

static int add_request_headers(struct graft_cluster_call *call, const struct graft_cluster_request *request,
			       struct graft_error *err)
{
	struct graft_arena *arena = graft_arena_new(TOKEN_MAX * 4);
	const char *token = NULL;
	int rc = arena ? read_token(&call->cluster->config, arena, &token, err) : graft_fail_memory(err);

	if (rc == 0 && (!add_header(call, "Accept: application/json") || !add_header(call, "Expect:") ||
			(token && !add_header(call, graft_arena_printf(arena, "Authorization: Bearer %s", token))) ||
			(request->body && !add_header(call, "Content-Type: application/json"))))
		rc = graft_fail_memory(err);
	(void)graft_arena_free(arena);
	return rc;
}

/*
 * Sets all options and keeps the first failure: an option that a build of libcurl does not know
 * must not be ignored.
 */
static CURLcode set_request_options(struct graft_cluster_call *call, const struct graft_cluster_request *request)
{
	const struct graft_cluster_config *config = &call->cluster->config;
	const struct graft_curl *curl = &call->cluster->curl;
	CURLcode rc = CURLE_OK;

#define SET(option, value)                                                           \
	do {                                                                         \
		if (rc == CURLE_OK)                                                  \
			rc = curl->easy_setopt(call->easy, CURLOPT_##option, value); \
	} while (0)
	SET(URL, call->url);
	SET(CUSTOMREQUEST, call->method);
	SET(HTTPHEADER, call->headers);
	SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(USERAGENT, "graft/" GRAFT_VERSION);
	SET(NOSIGNAL, 1L);
	SET(CONNECTTIMEOUT_MS, CONNECT_MS);
	SET(TIMEOUT_MS, (long)(request->timeout_ms > 0 ? request->timeout_ms : GRAFT_CLUSTER_TIMEOUT_MS));
	SET(TCP_KEEPALIVE, 1L);
	SET(TCP_KEEPIDLE, KEEPALIVE_S);
	SET(TCP_KEEPINTVL, KEEPALIVE_S);
	SET(ERRORBUFFER, call->reason);
	SET(PRIVATE, call);
	SET(WRITEFUNCTION, take_body);
	SET(WRITEDATA, call);
	if (request->body) {
		SET(POSTFIELDSIZE_LARGE, (curl_off_t)request->length);
		SET(POSTFIELDS, call->sent);
	}
	if (config->proxy)
		SET(PROXY, config->proxy);
	if (config->ca.path)
		SET(CAINFO, config->ca.path);
	if (config->certificate.path)
		SET(SSLCERT, config->certificate.path);
	if (config->key.path)
		SET(SSLKEY, config->key.path);
	SET(SSL_VERIFYPEER, config->insecure ? 0L : 1L);
	SET(SSL_VERIFYHOST, config->insecure ? 0L : 2L);
#undef SET
#if LIBCURL_VERSION_NUM >= 0x075700
	/*
	 * The CA's file may be replaced, so do not cache it. A libcurl that does not know the
	 * option caches nothing anyway.
	 */
	(void)curl->easy_setopt(call->easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
#endif
	return rc;
}

static int prepare_call(struct graft_cluster_call *call, const struct graft_cluster_request *request,
			struct graft_error *err)
{
	const struct graft_curl *curl = &call->cluster->curl;
	CURLcode rc;

	(void)snprintf(call->method, sizeof(call->method), "%s", request->method);
	call->body.max = request->max > 0 ? request->max : GRAFT_CLUSTER_BODY_MAX;
	call->answered = request->answered;
	call->received = request->received;
	call->arg = request->arg;
	if (asprintf(&call->url, "%s%s", call->cluster->config.server, request->path) < 0)
		call->url = NULL;
	if (request->body) {
		call->sent = malloc(request->length + 1);
		if (call->sent)
			memcpy(call->sent, request->body, request->length);
	}
	call->easy = curl->easy_init();
	if (!call->url || !call->easy || (request->body && !call->sent))
		return graft_fail_memory(err);
	if (add_request_headers(call, request, err) < 0)
		return -1;
	rc = set_request_options(call, request);
	if (rc != CURLE_OK)
		return graft_fail(err, GRAFT_UNSUPPORTED, 0, "%s %s: %s", call->method, call->url,
				  curl->easy_strerror(rc));
	return 0;
}

/* --- not too many --- */

/* Returns how long a request has to wait, and counts it. */
static int64_t take_turn(struct graft_cluster *cluster)
{
	int64_t now = graft_clock_us(), wait_us;

	if (cluster->next_us < now)
		cluster->next_us = now;
	wait_us = cluster->next_us - cluster->slack_us - now;
	cluster->next_us += cluster->spacing_us;
	return wait_us > 0 ? (wait_us + 999) / 1000 : 0;
}

static void call_due(void *arg)
{
	struct graft_cluster_call *call = arg;

	/* Fails only if memory is exhausted; the call then ends like one whose connection broke. */
	if (call->cluster->curl.multi_add_handle(call->cluster->multi, call->easy) != CURLM_OK)
		finish_call(call, CURLE_OUT_OF_MEMORY);
}

static int send_in_turn(struct graft_cluster_call *call)
{
	int64_t wait_ms = take_turn(call->cluster);

	if (wait_ms == 0)
		return call->cluster->curl.multi_add_handle(call->cluster->multi, call->easy) == CURLM_OK ? 0 : -1;
	call->turn = (struct graft_loop_timer){ .due = call_due, .arg = call };
	graft_loop_set_timer(call->cluster->loop, &call->turn, wait_ms);
	return 0;
}

struct graft_cluster_call *graft_cluster_send(struct graft_cluster *cluster,
					      const struct graft_cluster_request *request, struct graft_error *err)
{
	struct graft_cluster_call *call = calloc(1, sizeof(*call));

	if (!call) {
		(void)graft_fail_memory(err);
		return NULL;
	}
	call->cluster = cluster;
	if (prepare_call(call, request, err) < 0) {
		free_cluster_call(call);
		return NULL;
	}
	call->next = cluster->calls;
	call->link = &cluster->calls;
	if (call->next)
		call->next->link = &call->next;
	cluster->calls = call;
	if (send_in_turn(call) < 0) {
		(void)graft_fail_memory(err);
		free_cluster_call(call);
		return NULL;
	}
	return call;
}

/* --- answers --- */

static const char *hint_of_status(int status)
{
	switch (status) {
	case 401:
		return "Check that the token or certificate belongs to this cluster and has not expired.";
	case 403:
		return "Bind a role (RBAC) that grants this right to the service account or user.";
	default:
		return "See the log of the API server; the request is repeated.";
	}
}

static enum graft_status status_of_answer(int status)
{
	if (status == 401 || status == 403)
		return GRAFT_PERMISSION;
	if (status == 404 || status == 410)
		return GRAFT_NOT_FOUND;
	return status >= 400 && status < 500 ? GRAFT_INVALID : GRAFT_IO;
}

/* The message of a Status, or the beginning of the server's text if it is something else. */
static void fail_by_answer(const struct graft_cluster_call *call, int status, struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_buffer visible = { .max = 0 };
	const char *message = NULL;
	char start[QUOTED_BODY + 1];

	if (graft_json_document_parse("answer", graft_buffer_text(&call->body), call->body.length, &document, NULL) ==
	    0)
		message = graft_json_node_string(graft_json_node_member(graft_json_document_root(document), "message"));
	if (!message) {
		(void)snprintf(start, sizeof(start), "%s", graft_buffer_text(&call->body));
		start[strcspn(start, "\r\n")] = '\0';
		graft_buffer_visible(&visible, start);
	}
	(void)graft_fail(err, status_of_answer(status), 0, "%s %s: %s (status %d)", call->method, call->url,
			 message ? message : graft_buffer_text(&visible), status);
	graft_buffer_done(&visible);
	graft_error_flatten(err->msg);
	(void)graft_with_hint(err, hint_of_status(status));
}

/* There is no answer, or an incomplete one. */
static void fail_by_curl(const struct graft_cluster_call *call, CURLcode result, struct graft_error *err)
{
	const char *reason = call->reason[0] != '\0' ? call->reason : call->cluster->curl.easy_strerror(result);
	enum graft_status status = result == CURLE_OPERATION_TIMEDOUT ? GRAFT_TIMEOUT : GRAFT_IO;
	const char *hint = "Check that the API server is running and can be reached from here.";
	char too_big[64];

	if (call->too_big) {
		status = GRAFT_TOO_BIG;
		(void)snprintf(too_big, sizeof(too_big), "the answer is larger than %zu bytes", call->body.max);
		reason = too_big;
		hint = "Check that this is an API server: no answer should be that large.";
	} else if (result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CACERT_BADFILE) {
		hint = "Check the CA: the service account's ca.crt, or certificate-authority in the kubeconfig.";
	} else if (result == CURLE_SSL_CERTPROBLEM) {
		hint = "Check client-certificate and client-key in the kubeconfig.";
	}
	(void)graft_fail(err, status, 0, "%s %s: %s", call->method, call->url, reason);
	graft_error_flatten(err->msg);
	(void)graft_with_hint(err, hint);
}

static const char *skip_digits(const char *text)
{
	return text + strspn(text, "0123456789");
}

bool graft_cluster_is_same_failure(const struct graft_error *before, const struct graft_error *now)
{
	const char *a = before->msg, *b = now->msg;

	for (; *(a = skip_digits(a)) == *(b = skip_digits(b)); a++, b++) {
		if (*a == '\0')
			return before->status == now->status;
	}
	return false;
}

/* Delivers the received part of a stream. The callback may end the call. */
static bool deliver_part(struct graft_cluster_call *call)
{
	struct graft_buffer part = call->body;
	long status = 0;

	if (!call->received || part.length == 0)
		return false;
	(void)call->cluster->curl.easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status < 200 || status > 299)
		return false;
	call->body = (struct graft_buffer){ .max = part.max };
	call->received(call->arg, part.bytes, part.length);
	graft_buffer_done(&part);
	return true;
}

static void finish_call(struct graft_cluster_call *call, CURLcode result)
{
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_cluster_answer answer = { .body = graft_buffer_text(&call->body), .length = call->body.length };
	long status = 0;

	(void)call->cluster->curl.easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	if (result != CURLE_OK) {
		fail_by_curl(call, result, &err);
	} else {
		answer.status = (int)status;
		if (status < 200 || status > 299)
			fail_by_answer(call, answer.status, &err);
	}
	answer.err = err.status != GRAFT_OK ? &err : NULL;
	/*
	 * A callback may cancel other calls, but this one has ended: it is no longer in any list.
	 */
	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
	call->link = NULL;
	call->answered(call->arg, &answer);
	free_cluster_call(call);
}

/* A call that has ended and whose parts were all delivered; NULL: there is none. */
static CURL *find_finished(struct graft_cluster *cluster, CURLcode *ret_result)
{
	CURLMsg *message;
	int left;

	while ((message = cluster->curl.multi_info_read(cluster->multi, &left))) {
		if (message->msg != CURLMSG_DONE)
			continue;
		*ret_result = message->data.result;
		return message->easy_handle;
	}
	return NULL;
}

/*
 * All callbacks are made here, since libcurl's own callbacks may not call its functions. Each of
 * them may end any call, so the search starts again after each.
 */
static void deliver_answers(struct graft_cluster *cluster)
{
	struct graft_cluster_call *call = cluster->calls;
	CURLcode result;
	CURL *easy;

	while (call)
		call = deliver_part(call) ? cluster->calls : call->next;
	while ((easy = find_finished(cluster, &result))) {
		if (cluster->curl.easy_getinfo(easy, CURLINFO_PRIVATE, (char **)(void *)&call) == CURLE_OK)
			finish_call(call, result);
	}
}

void graft_cluster_escape(struct graft_buffer *out, const char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (isascii(c) && (isalnum(c) || strchr("-._~", c)))
			graft_buffer_char(out, (char)c);
		else
			graft_buffer_printf(out, "%%%02X", c);
	}
}
