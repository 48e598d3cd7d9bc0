/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../arena.h"
#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/nri_kubelet.h"
#include "rpc/server.h"
#include <pod_resources.pb-c.h>

#define LIMIT_MS 10000

struct node {
	struct graft_loop loop;
	struct graft_rpc_server *server;
	struct nri_kubelet kubelet;
	char folder[64], socket[96], checkpoint[96];
	int n_lists;
	size_t n_pods;    /* in the list: of the pod "pod", with GPU-1, GPU-2... */
	size_t n_devices; /* of each */
	bool lacks;       /* the second one has no containers */
	bool refuses;
	/* The last answer. */
	int n_answers;
	char ids[256], why[1024];
};

static void serve_list(void *service, struct graft_rpc_call *call, const ProtobufCMessage *request)
{
	static const char *const gpus[] = { "GPU-1", "GPU-2" };
	struct node *node = service;
	V1__ListPodResourcesResponse answer = V1__LIST_POD_RESOURCES_RESPONSE__INIT;
	V1__PodResources pods[2], *pod_list[] = { &pods[0], &pods[1] };
	V1__ContainerResources containers[2], *container_lists[2][1] = { { &containers[0] }, { &containers[1] } };
	V1__ContainerDevices devices[2], *device_lists[2][1] = { { &devices[0] }, { &devices[1] } };
	char *ids[2][1] = { { (char *)(uintptr_t)gpus[0] }, { (char *)(uintptr_t)gpus[1] } };

	(void)request;
	node->n_lists++;
	if (node->refuses) {
		graft_rpc_refuse(call, GRAFT_RPC_RESOURCE_EXHAUSTED, "too many calls");
		return;
	}
	for (size_t i = 0; i < 2; i++) {
		v1__pod_resources__init(&pods[i]);
		v1__container_resources__init(&containers[i]);
		v1__container_devices__init(&devices[i]);
		pods[i].name = (char *)(uintptr_t) "pod";
		pods[i].namespace_ = (char *)(uintptr_t) "default";
		pods[i].n_containers = i == 1 && node->lacks ? 0 : 1;
		pods[i].containers = container_lists[i];
		containers[i].name = (char *)(uintptr_t) "main";
		containers[i].n_devices = node->n_devices;
		containers[i].devices = device_lists[i];
		devices[i].n_device_ids = 1;
		devices[i].device_ids = ids[i];
	}
	answer.n_pod_resources = node->n_pods;
	answer.pod_resources = pod_list;
	graft_rpc_reply(call, &answer.base);
}

static const struct graft_rpc_method list_method = { "/v1.PodResourcesLister/List",
						     &v1__list_pod_resources_request__descriptor, serve_list, NULL };

static int setup_node(void **state)
{
	struct node *node = calloc(1, sizeof(*node));
	const struct graft_rpc_server_options options = { .methods = &list_method, .n_methods = 1, .service = node };

	assert_non_null(node);
	(void)snprintf(node->folder, sizeof(node->folder), "/tmp/graft-nri-kubelet-XXXXXX");
	assert_non_null(mkdtemp(node->folder));
	(void)snprintf(node->socket, sizeof(node->socket), "%s/sock", node->folder);
	(void)snprintf(node->checkpoint, sizeof(node->checkpoint), "%s/checkpoint", node->folder);
	node->server = graft_rpc_server_new(&node->loop, &options);
	assert_non_null(node->server);
	assert_int_equal(graft_rpc_server_listen(node->server, node->socket, NULL), 0);
	node->kubelet = (struct nri_kubelet){
		.loop = &node->loop, .socket = node->socket, .checkpoint = node->checkpoint, .limit_ms = 2000
	};
	node->n_devices = 1;
	nri_kubelet_begin(&node->kubelet);
	*state = node;
	return arena_setup(state) == 0 ? (*state = node, 0) : -1;
}

static int teardown_node(void **state)
{
	struct node *node = *state;

	nri_kubelet_done(&node->kubelet);
	graft_rpc_server_free(node->server);
	assert_int_equal(node->loop.n_watches, 0);
	graft_loop_done(&node->loop);
	(void)unlink(node->checkpoint);
	assert_int_equal(rmdir(node->folder), 0);
	free(node);
	return arena_teardown(state);
}

static void write_checkpoint(const struct node *node, const char *text)
{
	FILE *file = fopen(node->checkpoint, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void note_ids(void *arg, const char *const *ids, size_t n, const struct graft_error *err)
{
	struct node *node = arg;

	node->n_answers++;
	node->ids[0] = node->why[0] = '\0';
	for (size_t i = 0; i < n; i++)
		(void)snprintf(node->ids + strlen(node->ids), sizeof(node->ids) - strlen(node->ids), "%s ", ids[i]);
	if (err)
		(void)graft_error_text(err, node->why, sizeof(node->why));
}

static void ask(struct node *node, struct nri_kubelet_question *question, const char *container)
{
	*question = (struct nri_kubelet_question){ .namespace_ = "default",
						   .pod = "pod",
						   .uid = "uid-2",
						   .container = container,
						   .answered = note_ids,
						   .arg = node };
	nri_kubelet_ask(&node->kubelet, question);
}

static void await_answers(struct node *node, int n)
{
	for (int64_t end = graft_clock_ms() + LIMIT_MS; node->n_answers < n;) {
		assert_true(graft_clock_ms() < end);
		assert_int_equal(graft_loop_turn(&node->loop, 50, NULL), 0);
	}
}

#define CHECKPOINT                                                                                                \
	"{\"Data\": {\"PodDeviceEntries\": [{\"PodUID\": \"uid-1\", \"ContainerName\": \"main\", \"DeviceIDs\": " \
	"[\"GPU-1\"]}, "                                                                                          \
	"{\"PodUID\": \"uid-2\", \"ContainerName\": \"main\", \"DeviceIDs\": {\"0\": [\"GPU-2\"], \"1\": "        \
	"[\"GPU-3\"]}}, "                                                                                         \
	"{\"PodUID\": \"uid-2\", \"ContainerName\": \"init\", \"DeviceIDs\": {\"-1\": [\"GPU-4\"]}}, "            \
	"{\"PodUID\": \"uid-2\", \"ContainerName\": \"init\", \"DeviceIDs\": {\"-1\": [\"NIC-1\"]}}]}}"

#define OTHER_POD                                                                                                 \
	"{\"Data\": {\"PodDeviceEntries\": [{\"PodUID\": \"uid-1\", \"ContainerName\": \"main\", \"DeviceIDs\": " \
	"[\"GPU-1\"]}]}}"

static void test_answers(void **state)
{
	static const struct {
		const char *name, *checkpoint, *container;
		size_t n_pods;
		bool refuses;
		const char *ids, *why;
		bool has_none, lacks;
	} rows[] = {
		{ "in the list", NULL, "main", 1, false, "GPU-1 ", "" },
		{ "an init container", CHECKPOINT, "init", 1, false, "GPU-4 NIC-1 ", "" },
		{ "nowhere", CHECKPOINT, "other", 1, false, "", "" },
		{ "nowhere, without a checkpoint", NULL, "other", 0, false, "", "" },
		{ "no list, but a checkpoint", CHECKPOINT, "main", 0, true, "GPU-2 GPU-3 ", "" },
		{ "neither", NULL, "main", 0, true, "",
		  "the kubelet does not say which devices it has allocated to this container: too many calls" },
		/* SECURITY: the other one can have GPUs that this one has not. */
		{ "two pods of that name", CHECKPOINT, "main", 2, false, "GPU-2 GPU-3 ", "" },
		{ "two pods of that name, of which the other has devices", OTHER_POD, "main", 2, false, "", "" },
		{ "two pods of that name, without a checkpoint", NULL, "main", 2, false, "",
		  "the kubelet does not say which devices it has allocated to this container: it has several pods of "
		  "this name, and there is no checkpoint to distinguish them" },
		{ "two pods of that name, with a checkpoint that is broken", "{", "main", 2, false, "",
		  "the kubelet does not say which devices it has allocated to this container: it has several pods of "
		  "this name, and its checkpoint cannot be read" },
		{ "two pods of that name, without devices", NULL, "main", 2, false, "", "", true },
		{ "two pods of that name, without devices, of which one does not list the container", CHECKPOINT,
		  "main", 2, false, "GPU-2 GPU-3 ", "", true, true },
		{ "a checkpoint that is broken", "{", "init", 1, false, "", NULL },
	};
	struct node *node = *state;
	struct nri_kubelet_question question;

	for (size_t i = 0; i < GRAFT_COUNT(rows); i++) {
		print_message("# %s\n", rows[i].name);
		(void)unlink(node->checkpoint);
		if (rows[i].checkpoint)
			write_checkpoint(node, rows[i].checkpoint);
		node->n_pods = rows[i].n_pods;
		node->n_devices = rows[i].has_none ? 0 : 1;
		node->lacks = rows[i].lacks;
		node->refuses = rows[i].refuses;
		node->n_answers = 0;
		ask(node, &question, rows[i].container);
		await_answers(node, 1);
		assert_string_equal(node->ids, rows[i].ids);
		if (rows[i].why)
			assert_string_equal(node->why, rows[i].why);
		else
			assert_string_not_equal(node->why, "");
	}
}

/* Questions share calls; one that is taken back is not answered. */
static void test_shared_calls(void **state)
{
	struct node *node = *state;
	struct nri_kubelet_question questions[20];

	node->n_pods = 1;
	for (size_t i = 0; i < GRAFT_COUNT(questions); i++)
		ask(node, &questions[i], "main");
	nri_kubelet_forget(&node->kubelet, &questions[7]);
	await_answers(node, 19);
	assert_int_equal(node->n_lists, 1);
	assert_int_equal(node->kubelet.n_calls, 1);
	/* What is asked meanwhile waits for the next one. */
	ask(node, &questions[0], "main");
	while (!node->kubelet.client)
		assert_int_equal(graft_loop_turn(&node->loop, 50, NULL), 0);
	ask(node, &questions[1], "main");
	await_answers(node, 21);
	assert_int_equal(node->kubelet.n_calls, 3);
	ask(node, &questions[0], "main");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers, setup_node, teardown_node),
		cmocka_unit_test_setup_teardown(test_shared_calls, setup_node, teardown_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
