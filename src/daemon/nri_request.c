/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri_request: from CreateContainer to its answer. If the answer cannot be determined in time, the
 * container is refused: without an answer, the engine would start it unchanged (SPEC
 * installer-and-nri 14).
 */
#include <nri.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "daemon/nri_message.h"
#include "daemon/nri_parts.h"

typedef Nri__Pkg__Api__V1alpha1__PodSandbox nri_pod;
typedef Nri__Pkg__Api__V1alpha1__Container nri_box;
typedef Nri__Pkg__Api__V1alpha1__ContainerAdjustment nri_adjustment;

#define REQUEST_MEMORY ((size_t)32 << 20)
#define STOPPED        4 /* state of a container */
/* Limit on what is kept of the engine's containers until it has listed all. */
#define PARTS_MAX      ((size_t)64 << 20)
#define EXISTING_LIMIT 120000 /* milliseconds */

const char *const nri_result_names[NRI_RESULTS] = { "nothing", "given", "refused", "late" };
const int64_t nri_bounds_us[NRI_BOUNDS] = { 250, 500, 1000, 2500, 10000, 100000, 1000000, 2000000 };

static void try_request(struct nri_request *request);

static void free_request(struct nri_request *request)
{
	struct nri_plugin *plugin = request->plugin;
	struct nri_request **link = &plugin->requests;

	while (*link && *link != request)
		link = &(*link)->next;
	if (*link)
		*link = request->next;
	if (request->waits_for_kubelet)
		nri_kubelet_forget(&plugin->kubelet, &request->question);
	graft_loop_clear_timer(&request->limit);
	(void)graft_arena_free(request->arena);
	free(request);
}

static void count_request(struct nri_request *request, enum nri_result result)
{
	struct nri_counts *counts = &request->plugin->counts;
	int64_t took_us = graft_clock_us() - request->began_us;
	size_t bound = 0;

	while (bound < NRI_BOUNDS && took_us > nri_bounds_us[bound])
		bound++;
	counts->results[result]++;
	counts->took[bound]++;
	counts->took_us += took_us;
}

/* --- answers --- */

static void reply_with(struct nri_request *request, const nri_adjustment *adjustment)
{
	Nri__Pkg__Api__V1alpha1__CreateContainerResponse answer =
	    NRI__PKG__API__V1ALPHA1__CREATE_CONTAINER_RESPONSE__INIT;

	/* The engine only reads the message. */
	memcpy(&answer.adjust, &adjustment, sizeof(answer.adjust));
	graft_ttrpc_link_reply(&request->plugin->link, request->stream, &answer.base);
}

/* The text for the pod's events. */
static void refuse_nri_request(struct nri_request *request, enum nri_result result, const struct graft_error *err)
{
	const struct graft_nri_container *container = &request->container;
	struct nri_plugin *plugin = request->plugin;
	char text[sizeof(err->msg) + sizeof(err->ctx)], said[sizeof(text) + 512];

	(void)snprintf(said, sizeof(said), "graft: container %.63s of pod %.63s/%.63s: %s. %s", container->name,
		       container->namespace_, container->pod, graft_error_text(err, text, sizeof(text)),
		       graft_error_hint(err));
	graft_error_flatten(said);
	graft_utf8_mend(said);
	if (request->existing) {
		graft_debug(plugin->log, "it is unknown whether it has its devices: %s", said);
	} else {
		graft_ttrpc_link_refuse(&plugin->link, request->stream, GRAFT_RPC_UNKNOWN, said);
		count_request(request, result);
		graft_warn(plugin->log, "refused: %s", said + strlen("graft: "));
	}
	free_request(request);
}

/* --- what a container has --- */

static bool has_variable(const nri_box *container, const char *key, const char *value)
{
	size_t length = strlen(key);

	for (size_t i = 0; i < container->n_env; i++) {
		if (strncmp(container->env[i], key, length) == 0 && container->env[i][length] == '=' &&
		    strcmp(container->env[i] + length + 1, value) == 0)
			return true;
	}
	return false;
}

static bool has_nri_node(const nri_box *container, const char *path)
{
	const Nri__Pkg__Api__V1alpha1__LinuxContainer *part = container->linux_part;

	for (size_t i = 0; part && i < part->n_devices; i++) {
		if (strcmp(part->devices[i]->path, path) == 0)
			return true;
	}
	return false;
}

static bool has_mount(const nri_box *container, const char *destination)
{
	for (size_t i = 0; i < container->n_mounts; i++) {
		if (strcmp(container->mounts[i]->destination, destination) == 0)
			return true;
	}
	return false;
}

/* Whether a container has everything that an answer would give it. */
static bool has_edits(const nri_box *container, const nri_adjustment *adjustment)
{
	const Nri__Pkg__Api__V1alpha1__LinuxContainerAdjustment *given = adjustment->linux_part;
	bool has = true;

	for (size_t i = 0; given && i < given->n_devices && has; i++)
		has = has_nri_node(container, given->devices[i]->path);
	for (size_t i = 0; i < adjustment->n_env && has; i++)
		has = has_variable(container, adjustment->env[i]->key, adjustment->env[i]->value);
	for (size_t i = 0; i < adjustment->n_mounts && has; i++)
		has = has_mount(container, adjustment->mounts[i]->destination);
	return has;
}

/*
 * Reports a container that was made while no plugin was running, and that lacks what it would get.
 */
static void report_missed(struct nri_request *request)
{
	struct nri_plugin *plugin = request->plugin;

	plugin->counts.n_missed++;
	graft_warn(plugin->log,
		   "container %s of pod %s/%s was created without its devices while this plugin did not answer; delete "
		   "the pod",
		   request->container.name, request->container.namespace_, request->container.pod);
}

/* Answer first: writing to the log may take a while. */
static void end_request(struct nri_request *request, const nri_adjustment *adjustment)
{
	const struct graft_nri_container *container = &request->container;
	struct nri_plugin *plugin = request->plugin;

	if (request->existing) {
		if (adjustment && !has_edits(request->existing, adjustment))
			report_missed(request);
		free_request(request);
		return;
	}
	reply_with(request, adjustment);
	count_request(request, adjustment ? NRI_GIVEN : NRI_NOTHING);
	if (adjustment)
		graft_info(plugin->log, "container %s of pod %s/%s, by %s: %zu devices, %zu mounts", container->name,
			   container->namespace_, container->pod, request->demand.origin,
			   adjustment->linux_part ? adjustment->linux_part->n_devices : 0, adjustment->n_mounts);
	free_request(request);
}

/* --- decisions --- */

static int decide_request(struct nri_request *request, const struct graft_nri_host *host,
			  const nri_adjustment **ret_adjustment, struct graft_nri_answer *answer,
			  struct graft_error *err)
{
	struct nri_plugin *plugin = request->plugin;
	struct graft_nri_demand *demand = &request->demand;

	const struct graft_strings ids = { .items = request->ids, .n = request->n_ids };

	if (graft_nri_decide(&plugin->policy, host, &ids, demand, plugin->log, request->arena, answer, err) < 0)
		return -1;
	if (demand->kind == GRAFT_NRI_NOTHING)
		return 0;
	*ret_adjustment = (const void *)nri_message_adjust(&answer->edits, request->arena, err);
	return *ret_adjustment ? 0 : -1;
}

/* The driver's own message, if the driver is the cause. */
static void explain_host(const struct nri_plugin *plugin, struct graft_error *err)
{
	if (err->status == GRAFT_NO_DRIVER && plugin->host.why.status != GRAFT_OK)
		(void)graft_fail(err, GRAFT_NO_DRIVER, 0, "this node has no GPU for containers: %.300s",
				 GRAFT_ERROR_TEXT(&plugin->host.why));
}

static void decide_and_answer(struct nri_request *request, const struct graft_nri_host *host)
{
	struct graft_nri_answer answer = { .plan = NULL };
	const nri_adjustment *adjustment = NULL;
	struct nri_plugin *plugin = request->plugin;
	struct graft_error err = { .status = GRAFT_OK };
	int rc = decide_request(request, host, &adjustment, &answer, &err);

	/*
	 * The device may have been made after the host was read: MIG devices appear without an
	 * event.
	 */
	if (rc < 0 && request->reading == 0 &&
	    (err.status == GRAFT_UNKNOWN_DEVICE || err.status == GRAFT_NO_DRIVER || err.status == GRAFT_NVML)) {
		request->reading = nri_host_renew(&plugin->host);
		request->waits_for_host = true;
	} else if (rc < 0) {
		explain_host(plugin, &err);
		refuse_nri_request(request, NRI_REFUSED, &err);
	} else {
		end_request(request, adjustment);
	}
	graft_nri_answer_done(&answer);
}

static void kubelet_answered(void *arg, const char *const *ids, size_t n_ids, const struct graft_error *err)
{
	struct nri_request *request = arg;

	request->waits_for_kubelet = false;
	request->is_answered = true;
	for (size_t i = 0; i < n_ids; i++)
		(void)graft_arena_push_string(request->arena, &request->ids, &request->n_ids, ids[i]);
	if (err)
		refuse_nri_request(request, NRI_REFUSED, err);
	else
		try_request(request);
}

static void ask_kubelet(struct nri_request *request)
{
	request->waits_for_kubelet = true;
	request->question = (struct nri_kubelet_question){ .namespace_ = request->container.namespace_,
							   .pod = request->container.pod,
							   .uid = request->container.uid,
							   .container = request->container.name,
							   .answered = kubelet_answered,
							   .arg = request };
	nri_kubelet_ask(&request->plugin->kubelet, &request->question);
}

/* Continues as far as possible. May free the request. */
static void try_request(struct nri_request *request)
{
	const struct graft_strings ids = { .items = request->ids, .n = request->n_ids };
	struct graft_error err = { .status = GRAFT_OK };
	struct graft_nri_host host;

	if (graft_arena_failed(request->arena)) {
		(void)graft_fail_memory(&err);
		refuse_nri_request(request, NRI_REFUSED, &err);
	} else if (request->demand.compare && !request->is_answered) {
		ask_kubelet(request);
	} else if (request->demand.compare && !graft_nri_is_given(&ids)) {
		end_request(request, NULL);
	} else if (!nri_host_is_known(&request->plugin->host, request->reading, &host)) {
		request->waits_for_host = true;
	} else {
		decide_and_answer(request, &host);
	}
}

static struct nri_request *find_due(const struct nri_plugin *plugin)
{
	struct nri_request *request = plugin->requests;

	while (request && !request->due)
		request = request->next;
	return request;
}

/* Each one continues once, whatever happens to it and the others meanwhile. */
void nri_request_host_renewed(struct nri_plugin *plugin)
{
	struct nri_request *request;

	for (request = plugin->requests; request; request = request->next)
		request->due = request->waits_for_host;
	while ((request = find_due(plugin)) != NULL) {
		request->due = request->waits_for_host = false;
		try_request(request);
	}
}

/* --- requests --- */

/* SPEC installer-and-nri 14: later, the engine would no longer listen. */
static void answer_too_late(void *arg)
{
	struct nri_request *request = arg;
	struct graft_error err = { .status = GRAFT_OK };

	(void)graft_fail(&err, GRAFT_TIMEOUT, 0, "%s has not answered in time",
			 request->waits_for_kubelet ? "the kubelet" : "the process that reads the host's driver");
	(void)graft_with_hint(&err, "The kubelet will try again.");
	refuse_nri_request(request, NRI_LATE, &err);
}

static struct nri_request *new_request(struct nri_plugin *plugin, struct graft_arena *take_arena, int64_t limit_ms)
{
	struct nri_request *request = calloc(1, sizeof(*request));

	if (!request) {
		(void)graft_arena_free(take_arena);
		return NULL;
	}
	*request = (struct nri_request){
		.plugin = plugin, .arena = take_arena, .began_us = graft_clock_us(), .next = plugin->requests
	};
	request->limit = (struct graft_loop_timer){ .due = answer_too_late, .arg = request };
	plugin->requests = request;
	graft_loop_set_timer(plugin->loop, &request->limit, limit_ms);
	return request;
}

void nri_request_create(void *service, struct graft_ttrpc_call *call)
{
	const Nri__Pkg__Api__V1alpha1__CreateContainerRequest *message = (const void *)call->message;
	struct nri_plugin *plugin = service;
	struct nri_request *request = new_request(plugin, TAKE_PTR(call->arena), plugin->limit_ms);
	struct graft_error err = { .status = GRAFT_OK };

	if (!request) {
		graft_ttrpc_link_refuse(&plugin->link, call->stream, GRAFT_RPC_RESOURCE_EXHAUSTED,
					"graft: out of memory");
		return;
	}
	request->stream = call->stream;
	if (nri_message_view(message->pod ? &message->pod->base : NULL,
			     message->container ? &message->container->base : NULL, request->arena, &request->container,
			     &err) < 0 ||
	    graft_nri_read(&plugin->policy, &request->container, plugin->log, request->arena, &request->demand, &err) <
		0)
		refuse_nri_request(request, NRI_REFUSED, &err);
	else if (request->demand.kind == GRAFT_NRI_NOTHING)
		end_request(request, NULL);
	else
		try_request(request);
}

/* --- what was missed --- */

/* A part of the engine's list at registration; in its own arena. */
struct nri_part {
	struct graft_arena *arena;
	const Nri__Pkg__Api__V1alpha1__SynchronizeRequest *message;
	struct nri_part *next;
};

void nri_request_drop_parts(struct nri_plugin *plugin)
{
	while (plugin->parts) {
		struct nri_part *part = plugin->parts;

		plugin->parts = part->next;
		(void)graft_arena_free(part->arena);
	}
	plugin->size_of_parts = 0;
}

/* A container's pod can be in another part. */
static const nri_pod *find_pod(const struct nri_plugin *plugin, const char *id)
{
	for (const struct nri_part *part = plugin->parts; part; part = part->next) {
		for (size_t i = 0; i < part->message->n_pods; i++) {
			if (strcmp(part->message->pods[i]->id, id) == 0)
				return part->message->pods[i];
		}
	}
	return NULL;
}

/*
 * This variable shows that this plugin gave the GPUs; the driver's device shows that something else
 * did.
 */
static bool has_been_served(const nri_box *container)
{
	return has_variable(container, "NVIDIA_VISIBLE_DEVICES", "void") || has_nri_node(container, "/dev/nvidiactl");
}

/* Copies the message into another arena. NULL if out of memory. */
static const void *copy_message(const ProtobufCMessage *message, struct graft_arena *arena)
{
	size_t n = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes = graft_arena_alloc(arena, n + 1);

	if (!bytes)
		return NULL;
	(void)protobuf_c_message_pack(message, bytes);
	return graft_rpc_decode(message->descriptor, bytes, n, arena);
}

/*
 * An existing container that asks for devices and lacks them was made while no plugin answered: the
 * engine does not report that itself.
 */
static void look_at_existing(struct nri_plugin *plugin, const nri_pod *pod, const nri_box *container)
{
	static const struct graft_log quiet = { .max = GRAFT_LOG_ERROR };
	struct graft_arena *arena = graft_arena_new(REQUEST_MEMORY);
	struct nri_request *request = arena ? new_request(plugin, arena, EXISTING_LIMIT) : NULL;
	struct graft_error err = { .status = GRAFT_OK };

	if (!request)
		return;
	pod = copy_message(&pod->base, arena);
	request->existing = copy_message(&container->base, arena);
	if (!pod || !request->existing ||
	    nri_message_view(&pod->base, &request->existing->base, arena, &request->container, &err) < 0 ||
	    graft_nri_read(&plugin->policy, &request->container, &quiet, arena, &request->demand, &err) < 0 ||
	    request->demand.kind == GRAFT_NRI_NOTHING)
		free_request(request);
	else
		try_request(request);
}

static void look_at_parts(struct nri_plugin *plugin)
{
	for (const struct nri_part *part = plugin->parts; part; part = part->next) {
		for (size_t i = 0; i < part->message->n_containers; i++) {
			const nri_box *container = part->message->containers[i];
			const nri_pod *pod = find_pod(plugin, container->pod_sandbox_id);

			if (pod && container->state != STOPPED && !has_been_served(container))
				look_at_existing(plugin, pod, container);
		}
	}
}

/* Returns whether it was kept. */
static bool keep_part(struct nri_plugin *plugin, struct graft_ttrpc_call *call)
{
	struct nri_part *part = graft_arena_alloc(call->arena, sizeof(*part));

	/* What it takes in memory: structures are many times as large as their bytes on the wire. */
	if (!part || graft_arena_size(call->arena) > PARTS_MAX - plugin->size_of_parts)
		return false;
	plugin->size_of_parts += graft_arena_size(call->arena);
	*part = (struct nri_part){ .message = (const void *)call->message, .next = plugin->parts };
	part->arena = TAKE_PTR(call->arena);
	plugin->parts = part;
	return true;
}

void nri_request_synchronize(void *service, struct graft_ttrpc_call *call)
{
	const Nri__Pkg__Api__V1alpha1__SynchronizeRequest *message = (const void *)call->message;
	Nri__Pkg__Api__V1alpha1__SynchronizeResponse answer = NRI__PKG__API__V1ALPHA1__SYNCHRONIZE_RESPONSE__INIT;
	struct nri_plugin *plugin = service;
	bool more = message->more;

	answer.more = message->more;
	graft_ttrpc_link_reply(&plugin->link, call->stream, &answer.base);
	if (!keep_part(plugin, call))
		graft_warn(plugin->log, "the engine has too many containers to check whether each has its devices");
	if (more)
		return;
	look_at_parts(plugin);
	nri_request_drop_parts(plugin);
}

void nri_request_end_all(struct nri_plugin *plugin, const char *why)
{
	while (plugin->requests) {
		struct graft_error err = { .status = GRAFT_OK };

		if (why) {
			(void)graft_fail(&err, GRAFT_BUSY, 0, "%s", why);
			(void)graft_with_hint(&err, "The kubelet will try again.");
			refuse_nri_request(plugin->requests, NRI_REFUSED, &err);
		} else {
			free_request(plugin->requests);
		}
	}
}
