/* SPDX-License-Identifier: Apache-2.0 */
/* nri_plugin and nri_request: the other end of a socket pair plays the engine, a file the kubelet. */
#include <sys/socket.h>

#include "../unit.h"
#include "daemon/nri_parts.h"
#include "nri_world.h"
#include <nri.pb-c.h>
#include <ttrpc.pb-c.h>

#define SERVICE "nri.pkg.api.v1alpha1.Plugin"

typedef Nri__Pkg__Api__V1alpha1__Container box;
typedef Nri__Pkg__Api__V1alpha1__PodSandbox sandbox;

struct engine_world {
	struct graft_loop loop;
	struct nri_plugin *plugin;
	struct graft_nri_flags flags;
	struct graft_log log;
	char logged[16384];
	int engine; /* its end */
	char config[64], checkpoint[64];
	bool ended;
	int n_registered;
	struct graft_mux_reader mux;
	struct graft_ttrpc_collector collectors[3];
	uint32_t stream;
	/* The last answer of the plugin. */
	uint32_t answered;
	Graft__Ttrpc__Response *answer;
	uint32_t registering; /* the stream of RegisterPlugin */
	size_t sent;          /* bytes of many_containers() */
};

static char *words(const char *text)
{
	return (char *)(uintptr_t)text;
}

static void keep_line(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	struct engine_world *w = arg;
	size_t n = strlen(w->logged);

	(void)level;
	(void)file;
	(void)line;
	(void)snprintf(w->logged + n, sizeof(w->logged) - n, "%s\n", message);
}

static void note_end(void *arg)
{
	((struct engine_world *)arg)->ended = true;
}
static void note_registration(void *arg)
{
	((struct engine_world *)arg)->n_registered++;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* What the kubelet has given to the container "main" of the pod with the UID "uid". */
static void give(struct engine_world *w, const char *ids)
{
	char text[1024];

	(void)snprintf(
	    text, sizeof(text),
	    "{\"Data\": {\"PodDeviceEntries\": [{\"PodUID\": \"uid\", \"ContainerName\": \"main\", \"DeviceIDs\": "
	    "{\"0\": [%s]}}]}}",
	    ids);
	write_file(w->checkpoint, text);
}

static int setup_engine(void **state)
{
	struct engine_world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	hide_host();
	w->log = (struct graft_log){ .write = keep_line, .arg = w, .max = GRAFT_LOG_DEBUG };
	(void)snprintf(w->config, sizeof(w->config), "/tmp/graft-nri-config-XXXXXX");
	(void)snprintf(w->checkpoint, sizeof(w->checkpoint), "/tmp/graft-nri-given-XXXXXX");
	assert_int_equal(close(mkstemp(w->config)) + close(mkstemp(w->checkpoint)), 0);
	give(w, "");
	w->engine = -1;
	*state = w;
	return 0;
}

static void disconnect(struct engine_world *w)
{
	nri_plugin_end(w->plugin);
	w->plugin = NULL;
	for (size_t i = 0; i < GRAFT_COUNT(w->collectors); i++)
		graft_ttrpc_collector_done(&w->collectors[i]);
	if (w->answer)
		graft__ttrpc__response__free_unpacked(w->answer, NULL);
	w->answer = NULL;
	if (w->engine >= 0)
		(void)close(w->engine);
	w->engine = -1;
}

static int teardown_engine(void **state)
{
	struct engine_world *w = *state;

	hidden->waits = false;
	disconnect(w);
	assert_int_equal(w->loop.n_watches, 0);
	assert_null(w->loop.timers);
	graft_loop_done(&w->loop);
	(void)unlink(w->config);
	(void)unlink(w->checkpoint);
	for (int64_t end = graft_clock_ms() + 100; graft_clock_ms() < end && waitpid(-1, NULL, WNOHANG) >= 0;)
		(void)usleep(1000);
	show_host();
	free(w);
	return 0;
}

/* --- the engine --- */

static int take_message(void *arg, const struct graft_ttrpc_message *message, struct graft_error *err)
{
	struct engine_world *w = arg;

	(void)err;
	if (message->type == GRAFT_TTRPC_REQUEST) {
		w->registering = message->stream;
		return 0;
	}
	if (w->answer)
		graft__ttrpc__response__free_unpacked(w->answer, NULL);
	w->answer = graft__ttrpc__response__unpack(NULL, message->n, message->data);
	assert_non_null(w->answer);
	w->answered = message->stream;
	return 0;
}

static int take_piece(void *arg, uint32_t stream, const uint8_t *bytes, size_t n, struct graft_error *err)
{
	struct engine_world *w = arg;

	assert_true(stream == GRAFT_LINK_SERVED || stream == GRAFT_LINK_CALLED);
	return graft_ttrpc_collect(&w->collectors[stream], bytes, n, take_message, w, err);
}

static void engine_turn(struct engine_world *w)
{
	uint8_t bytes[5000];
	ssize_t n;

	assert_int_equal(graft_loop_turn(&w->loop, 10, NULL), 0);
	reap_readers();
	while ((n = recv(w->engine, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		assert_int_equal(graft_mux_read(&w->mux, bytes, (size_t)n, take_piece, w, NULL), 0);
}

static void send_frames(struct engine_world *w, uint32_t stream, struct graft_buffer *message)
{
	struct graft_buffer frames = { .max = 0 };

	graft_mux_write(&frames, stream, message->bytes, message->length);
	assert_int_equal(send(w->engine, frames.bytes, frames.length, MSG_NOSIGNAL), (ssize_t)frames.length);
	graft_buffer_done(&frames);
	graft_buffer_done(message);
}

static uint32_t engine_asks(struct engine_world *w, const char *method, const ProtobufCMessage *message)
{
	struct graft_buffer bytes = { .max = 0 };

	w->stream += 2;
	assert_int_equal(graft_ttrpc_write_request(&bytes, w->stream, SERVICE, method, message, NULL), 0);
	send_frames(w, GRAFT_LINK_SERVED, &bytes);
	return w->stream;
}

static bool is_answered(const struct engine_world *w, uint32_t stream)
{
	return w->answered == stream;
}

static void await_answer(struct engine_world *w, uint32_t stream)
{
	for (int64_t end = graft_clock_ms() + WORLD_LIMIT_MS; !is_answered(w, stream);) {
		assert_true(graft_clock_ms() < end);
		engine_turn(w);
	}
}

static const char *why_refused(const struct engine_world *w)
{
	return w->answer->status ? w->answer->status->message : "";
}

static void await_reads(struct engine_world *w, uint64_t n)
{
	for (int64_t end = graft_clock_ms() + WORLD_LIMIT_MS; w->plugin->host.n_reads < n;) {
		assert_true(graft_clock_ms() < end);
		engine_turn(w);
	}
}

/* The plugin with this config.toml, registered; requests may take `timeout_ms`. */
static void connect_plugin(struct engine_world *w, const char *config, int64_t timeout_ms)
{
	static const char *monitoring[] = { "monitoring" };
	Nri__Pkg__Api__V1alpha1__ConfigureRequest message;
	struct nri_plugin_options options = { .loop = &w->loop,
					      .log = &w->log,
					      .flags = &w->flags,
					      .name = NRI_PLUGIN_NAME,
					      .has_fd = true,
					      .ended = note_end,
					      .registered = note_registration,
					      .arg = w };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_buffer bytes = { .max = 0 };
	int fds[2];

	write_file(w->config, config);
	w->flags = (struct graft_nri_flags)GRAFT_NRI_FLAGS_INIT;
	w->flags.own_namespace = "own";
	w->flags.management_namespaces = monitoring;
	w->flags.n_management_namespaces = 1;
	w->flags.config = w->config;
	w->flags.hook_path = "/usr/bin/nvidia-cdi-hook";
	w->flags.pods_socket = "/nonexistent/kubelet.sock";
	w->flags.pods_checkpoint = w->checkpoint;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	w->engine = fds[1];
	w->stream = 1;
	options.take_fd = fds[0];
	w->plugin = nri_plugin_begin(&options, &err);
	assert_string_equal(err.msg, "");
	assert_non_null(w->plugin);
	nri__pkg__api__v1alpha1__configure_request__init(&message);
	message.runtime_name = words("test");
	message.request_timeout = timeout_ms;
	await_answer(w, engine_asks(w, "Configure", &message.base));
	assert_int_not_equal(w->registering, 0);
	assert_int_equal(graft_ttrpc_write_response(&bytes, w->registering, &message.base, 0, NULL, NULL), 0);
	send_frames(w, GRAFT_LINK_CALLED, &bytes);
	for (int64_t end = graft_clock_ms() + WORLD_LIMIT_MS; !nri_plugin_is_registered(w->plugin);) {
		assert_true(graft_clock_ms() < end);
		engine_turn(w);
	}
	assert_int_equal(w->n_registered, 1);
}

/* --- containers --- */

struct container_row {
	const char *env, *annotation; /* annotation: of "nvidia.cdi.k8s.io/pod"; NULL: none */
	const char *namespace_, *pod_id, *id;
	int32_t state;
};

/* Calls `then` with the messages of a pod and a container. */
static uint32_t with_container(struct engine_world *w, const struct container_row *row,
			       uint32_t (*then)(struct engine_world *w, sandbox *pod, box *container))
{
	Nri__Pkg__Api__V1alpha1__KeyValue annotation, *annotations[] = { &annotation };
	char *env[] = { words(row->env) };
	sandbox pod;
	box container;

	nri__pkg__api__v1alpha1__pod_sandbox__init(&pod);
	nri__pkg__api__v1alpha1__container__init(&container);
	nri__pkg__api__v1alpha1__key_value__init(&annotation);
	pod.id = container.pod_sandbox_id = words(row->pod_id ? row->pod_id : "pod-id");
	pod.name = words("pod");
	pod.uid = words("uid");
	pod.namespace_ = words(row->namespace_ ? row->namespace_ : "default");
	container.name = words("main");
	container.id = words(row->id ? row->id : "id");
	container.state = row->state;
	container.n_env = row->env ? 1 : 0;
	container.env = env;
	annotation.key = words("nvidia.cdi.k8s.io/pod");
	annotation.value = words(row->annotation);
	pod.n_annotations = row->annotation ? 1 : 0;
	pod.annotations = annotations;
	return then(w, &pod, &container);
}

static uint32_t ask_create(struct engine_world *w, sandbox *pod, box *container)
{
	Nri__Pkg__Api__V1alpha1__CreateContainerRequest message =
	    NRI__PKG__API__V1ALPHA1__CREATE_CONTAINER_REQUEST__INIT;

	message.pod = pod;
	message.container = container;
	return engine_asks(w, "CreateContainer", &message.base);
}

static uint32_t creates(struct engine_world *w, const char *env, const char *annotation)
{
	return with_container(w, &(struct container_row){ .env = env, .annotation = annotation }, ask_create);
}

/* Of the last answer: its devices, and the minor of /dev/nvidia0 or -1. */
static size_t count_devices(const struct engine_world *w, int64_t *ret_minor)
{
	Nri__Pkg__Api__V1alpha1__CreateContainerResponse *answer;
	size_t n = 0;

	*ret_minor = -1;
	assert_string_equal(why_refused(w), "");
	answer = nri__pkg__api__v1alpha1__create_container_response__unpack(NULL, w->answer->payload.len,
									    w->answer->payload.data);
	assert_non_null(answer);
	for (; answer->adjust && answer->adjust->linux_part && n < answer->adjust->linux_part->n_devices; n++) {
		const Nri__Pkg__Api__V1alpha1__LinuxDevice *device = answer->adjust->linux_part->devices[n];

		if (strcmp(device->path, "/dev/nvidia0") == 0)
			*ret_minor = device->minor;
	}
	nri__pkg__api__v1alpha1__create_container_response__free_unpacked(answer, NULL);
	return n;
}

static const char *uuid_of(const struct engine_world *w, size_t i)
{
	return w->plugin->host.inventory->gpus[i].uuid.value;
}

#define ACCEPT "[nri]\nenvironment = \"accept\"\n"

static void test_container_without_gpu(void **state)
{
	struct engine_world *w = *state;
	int64_t minor;

	/* Neither host nor kubelet is needed for that. */
	hidden->waits = true;
	connect_plugin(w, "", 2000);
	await_answer(w, creates(w, "PATH=/bin", NULL));
	assert_int_equal(count_devices(w, &minor), 0);
	/* Nor the host for what the image sets itself. */
	give(w, "\"FPGA-1\"");
	await_answer(w, creates(w, "NVIDIA_VISIBLE_DEVICES=all", NULL));
	assert_int_equal(count_devices(w, &minor), 0);
	assert_int_equal(w->plugin->counts.results[NRI_NOTHING], 2);
}

static void test_given_gpu(void **state)
{
	struct engine_world *w = *state;
	char env[128], id[128];
	int64_t minor;

	connect_plugin(w, "", 2000);
	await_reads(w, 1);
	(void)snprintf(id, sizeof(id), "\"%s\"", uuid_of(w, 0));
	(void)snprintf(env, sizeof(env), "NVIDIA_VISIBLE_DEVICES=%s", uuid_of(w, 0));
	give(w, id);
	await_answer(w, creates(w, env, NULL));
	assert_true(count_devices(w, &minor) > 3);
	assert_int_equal(minor, 0);
	await_answer(w, creates(w, "NVIDIA_VISIBLE_DEVICES=all", NULL));
	assert_true(count_devices(w, &minor) > 3);
	assert_int_equal(minor, 0);
	(void)snprintf(env, sizeof(env), "NVIDIA_VISIBLE_DEVICES=%s", uuid_of(w, 1));
	await_answer(w, creates(w, env, NULL));
	assert_string_printed(
	    why_refused(w),
	    "graft: container main of pod default/pod: NVIDIA_VISIBLE_DEVICES asks for %s, which the "
	    "kubelet has not allocated to this container. Ask for GPUs in the container's limits, and "
	    "do not set NVIDIA_VISIBLE_DEVICES yourself.",
	    uuid_of(w, 1));
	assert_int_equal(w->plugin->counts.results[NRI_GIVEN], 2);
	assert_int_equal(w->plugin->counts.results[NRI_REFUSED], 1);
}

/* What the kubelet says is known; the driver is loaded anew meanwhile. */
static void test_stale_host(void **state)
{
	struct engine_world *w = *state;
	uint32_t stream;
	int64_t minor;

	connect_plugin(w, ACCEPT, 4000);
	await_reads(w, 1);
	hidden->waits = true;
	w->plugin->host.hardware.noticed(&w->plugin->host);
	stream = creates(w, "NVIDIA_VISIBLE_DEVICES=0", NULL);
	for (int i = 0; i < 20; i++)
		engine_turn(w);
	assert_false(is_answered(w, stream));
	hidden->waits = false;
	await_answer(w, stream);
	assert_true(count_devices(w, &minor) > 3);
	assert_true(w->plugin->host.n_reads >= 2);

	/* A host that nobody can read is a refusal. */
	hidden->waits = true;
	w->plugin->host.hardware.noticed(&w->plugin->host);
	await_answer(w, creates(w, "NVIDIA_VISIBLE_DEVICES=0", NULL));
	assert_string_equal(
	    why_refused(w),
	    "graft: container main of pod default/pod: the process that reads the host's driver has not "
	    "answered in time. The kubelet will try again.");
	assert_int_equal(w->plugin->counts.results[NRI_LATE], 1);
}

/* A device that is not known is looked for once, by a reading that begins after the question. */
static void test_unknown_device(void **state)
{
	struct engine_world *w = *state;
	uint32_t stream;
	int64_t minor;
	int n_begun;

	hidden->n_gpus = 2;
	connect_plugin(w, ACCEPT, 8000);
	await_reads(w, 1);
	/* A reading is under way that does not see the new GPU. */
	hidden->waits = true;
	n_begun = hidden->n_begun;
	(void)nri_host_renew(&w->plugin->host);
	while (hidden->n_begun == n_begun)
		engine_turn(w);
	hidden->n_gpus = 4;
	stream = creates(w, "NVIDIA_VISIBLE_DEVICES=3", NULL);
	for (int i = 0; i < 5; i++)
		engine_turn(w);
	hidden->waits = false;
	await_answer(w, stream);
	assert_true(count_devices(w, &minor) > 3);

	n_begun = hidden->n_begun;
	await_answer(w, creates(w, "NVIDIA_VISIBLE_DEVICES=7", NULL));
	assert_string_equal(why_refused(w),
			    "graft: container main of pod default/pod: device error: 7: unknown device. Run "
			    "'nvidia-container-cli info' to list the devices of this host.");
	assert_int_equal(hidden->n_begun, n_begun + 1);
}

/* Several wait for the host, and it cannot be kept: each is refused, and nothing turns in circles. */
static void test_host_that_cannot_be_kept(void **state)
{
	struct engine_world *w = *state;
	uint32_t first, second;

	hidden->waits = true;
	connect_plugin(w, ACCEPT, 1000);
	first = creates(w, "NVIDIA_VISIBLE_DEVICES=0", NULL);
	engine_turn(w);
	/* As after a reading without memory: there is no inventory. */
	assert_null(w->plugin->host.inventory);
	for (int i = 0; i < 3; i++)
		nri_request_host_renewed(w->plugin);
	await_answer(w, first);
	assert_string_equal(why_refused(w), "graft: container main of pod default/pod: the process that reads the "
					    "host's driver has not answered in time. The kubelet will try again.");
	second = creates(w, "NVIDIA_VISIBLE_DEVICES=0", NULL);
	hidden->waits = false;
	await_answer(w, second);
	assert_string_equal(why_refused(w), "");
}

static void test_limits(void **state)
{
	static const struct {
		int64_t timeout_ms, limit_ms;
	} rows[] = { { 2000, 1500 },      { 0, 1500 }, { -7, 1500 }, { INT64_MAX, 450000 },
		     { INT64_MIN, 1500 }, { 20, 15 },  { 1, 0 },     { 600000, 450000 } };

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		struct engine_world *w;

		assert_int_equal(teardown_engine(state), 0);
		assert_int_equal(setup_engine(state), 0);
		w = *state;
		connect_plugin(w, "", rows[i].timeout_ms);
		assert_int_equal(w->plugin->limit_ms, rows[i].limit_ms);
		assert_int_equal(w->plugin->kubelet.limit_ms, rows[i].limit_ms * 9 / 10);
	}
}

/* Engines do not decode a text that is not UTF-8, nor one that was cut inside a character. */
static void test_texts(void **state)
{
	static const char *const annotations[] = { "\xff\xfe=\n\033[31m",
						   "äääääääääääääääääääääääääääääääääääääääääääääääääää=x",
						   "xäääääääääääääääääääääääääääääääääääääääääääääääääää/y=x" };
	struct engine_world *w = *state;

	connect_plugin(w, "", 2000);
	for (size_t i = 0; i < GRAFT_COUNT(annotations); i++) {
		await_answer(w, creates(w, NULL, annotations[i]));
		assert_string_not_equal(why_refused(w), "");
		assert_true(graft_ttrpc_is_utf8(&w->answer->base));
		for (const char *at = why_refused(w); *at != '\0'; at++)
			assert_true((unsigned char)*at >= ' ');
	}
}

static uint32_t pod_alone(struct engine_world *w, sandbox *pod, box *container)
{
	Nri__Pkg__Api__V1alpha1__SynchronizeRequest message = NRI__PKG__API__V1ALPHA1__SYNCHRONIZE_REQUEST__INIT;

	(void)container;
	message.more = 1;
	message.n_pods = 1;
	message.pods = &pod;
	return engine_asks(w, "Synchronize", &message.base);
}
static uint32_t container_alone(struct engine_world *w, sandbox *pod, box *container)
{
	Nri__Pkg__Api__V1alpha1__SynchronizeRequest message = NRI__PKG__API__V1ALPHA1__SYNCHRONIZE_REQUEST__INIT;

	(void)pod;
	message.more = 1;
	message.n_containers = 1;
	message.containers = &container;
	return engine_asks(w, "Synchronize", &message.base);
}

static bool answered_more(const struct engine_world *w)
{
	Nri__Pkg__Api__V1alpha1__SynchronizeResponse *answer = nri__pkg__api__v1alpha1__synchronize_response__unpack(
	    NULL, w->answer->payload.len, w->answer->payload.data);
	bool more;

	assert_non_null(answer);
	more = answer->more;
	nri__pkg__api__v1alpha1__synchronize_response__free_unpacked(answer, NULL);
	return more;
}

/* The parts come in any order, and the pod of a container in another part. */
static void test_existing_in_parts(void **state)
{
	static const struct container_row rows[] = {
		{ .env = "NVIDIA_VISIBLE_DEVICES=0", .pod_id = "a", .state = 3 },
		{ .env = "NVIDIA_VISIBLE_DEVICES=void", .pod_id = "a", .state = 3 },
		{ .env = "NVIDIA_VISIBLE_DEVICES=0", .pod_id = "a", .state = 4 },
		{ .env = "NVIDIA_VISIBLE_DEVICES=0", .pod_id = "unknown", .state = 3 },
		{ .env = "PATH=/bin",
		  .pod_id = "b",
		  .annotation = "management.nvidia.com/gpu=all",
		  .namespace_ = "own",
		  .state = 1 },
		{ .env = "PATH=/bin", .pod_id = "c", .annotation = "management.nvidia.com/gpu=all", .state = 3 },
	};
	struct engine_world *w = *state;
	Nri__Pkg__Api__V1alpha1__SynchronizeRequest end = NRI__PKG__API__V1ALPHA1__SYNCHRONIZE_REQUEST__INIT;

	connect_plugin(w, ACCEPT, 2000);
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		await_answer(w, with_container(w, &rows[i], container_alone));
		assert_true(answered_more(w));
	}
	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		if (strcmp(rows[i].pod_id, "unknown") != 0)
			await_answer(w, with_container(w, &rows[i], pod_alone));
	}
	assert_int_equal(w->plugin->counts.n_missed, 0);
	await_answer(w, engine_asks(w, "Synchronize", &end.base));
	assert_false(answered_more(w));
	assert_null(w->plugin->parts);
	await_reads(w, 1);
	for (int64_t until = graft_clock_ms() + WORLD_LIMIT_MS; w->plugin->requests;) {
		assert_true(graft_clock_ms() < until);
		engine_turn(w);
	}
	assert_int_equal(w->plugin->counts.n_missed, 2);
	assert_non_null(strstr(w->logged,
			       "container main of pod default/pod was created without its devices while this plugin "
			       "did not answer; delete the pod\n"));
	assert_non_null(strstr(w->logged, "container main of pod own/pod was created without its devices"));
	/* An engine that goes in the middle. */
	await_answer(w, with_container(w, &rows[0], container_alone));
	assert_non_null(w->plugin->parts);
}

static uint32_t many_containers(struct engine_world *w, sandbox *pod, box *container)
{
	Nri__Pkg__Api__V1alpha1__SynchronizeRequest message = NRI__PKG__API__V1ALPHA1__SYNCHRONIZE_REQUEST__INIT;
	box *containers[1000];

	(void)pod;
	for (size_t i = 0; i < GRAFT_COUNT(containers); i++)
		containers[i] = container;
	message.more = 1;
	message.n_containers = GRAFT_COUNT(containers);
	message.containers = containers;
	w->sent = protobuf_c_message_get_packed_size(&message.base);
	return engine_asks(w, "Synchronize", &message.base);
}

/* What is kept of the engine's list is bounded by the memory that it takes, several times its length on the wire. */
static void test_parts_are_bounded(void **state)
{
	static const struct container_row row = { .env = "NVIDIA_VISIBLE_DEVICES=0", .pod_id = "a", .state = 3 };
	struct engine_world *w = *state;
	size_t n = 0;

	connect_plugin(w, ACCEPT, 2000);
	while (!strstr(w->logged, "the engine has too many containers to check whether each has its devices")) {
		assert_true(++n < 1000);
		await_answer(w, with_container(w, &row, many_containers));
		assert_true(answered_more(w));
	}
	assert_in_range(w->plugin->size_of_parts, (size_t)62 << 20, (size_t)64 << 20);
	assert_true(n * w->sent < w->plugin->size_of_parts / 3);
	nri_request_drop_parts(w->plugin);
	assert_int_equal(w->plugin->size_of_parts, 0);
}

/* What waits is refused when the plugin ends, or its configuration changes. */
static void test_end(void **state)
{
	struct engine_world *w = *state;
	uint32_t stream;
	uint8_t bytes[5000];
	ssize_t n;

	hidden->waits = true;
	connect_plugin(w, ACCEPT, 8000);
	stream = creates(w, "NVIDIA_VISIBLE_DEVICES=0", NULL);
	engine_turn(w);
	nri_plugin_reload(w->plugin);
	await_answer(w, stream);
	assert_string_equal(why_refused(w),
			    "graft: container main of pod default/pod: the plugin's configuration has changed. The "
			    "kubelet will try again.");
	write_file(w->config, "[nri]\nenvironment = \"some\"\n");
	nri_plugin_reload(w->plugin);
	assert_non_null(strstr(w->logged, "the configuration is unchanged: "));
	stream = creates(w, "NVIDIA_VISIBLE_DEVICES=0", NULL);
	engine_turn(w);
	nri_plugin_end(w->plugin);
	w->plugin = NULL;
	while ((n = recv(w->engine, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		assert_int_equal(graft_mux_read(&w->mux, bytes, (size_t)n, take_piece, w, NULL), 0);
	assert_true(is_answered(w, stream));
	assert_string_equal(why_refused(w),
			    "graft: container main of pod default/pod: the plugin ends. The kubelet will try again.");
}

static void test_engine_that_goes(void **state)
{
	struct engine_world *w = *state;

	connect_plugin(w, ACCEPT, 8000);
	hidden->waits = true;
	w->plugin->host.hardware.noticed(&w->plugin->host);
	(void)creates(w, "NVIDIA_VISIBLE_DEVICES=0", NULL);
	for (int i = 0; i < 5; i++)
		engine_turn(w);
	(void)close(w->engine);
	w->engine = -1;
	for (int64_t end = graft_clock_ms() + WORLD_LIMIT_MS; !w->ended;) {
		assert_true(graft_clock_ms() < end);
		assert_int_equal(graft_loop_turn(&w->loop, 10, NULL), 0);
	}
	assert_null(w->plugin->requests);
	assert_int_equal(w->plugin->counts.n_losses, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_engine, teardown_engine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_container_without_gpu),
		TEST(test_given_gpu),
		TEST(test_stale_host),
		TEST(test_unknown_device),
		TEST(test_host_that_cannot_be_kept),
		TEST(test_limits),
		TEST(test_texts),
		TEST(test_existing_in_parts),
		TEST(test_parts_are_bounded),
		TEST(test_end),
		TEST(test_engine_that_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
