/* SPDX-License-Identifier: Apache-2.0 */
/* nri_kubelet: one call at a time, for all questions that wait. */
#include "daemon/nri_kubelet.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "formats/json/json_document.h"
#include <pod_resources.pb-c.h>

#define CHECKPOINT_MAX ((size_t)16 << 20)
#define MEMORY_MAX     ((size_t)64 << 20)

static void begin_kubelet_call(void *arg);

/* --- the checkpoint --- */

/* Lists by NUMA node are one level deeper. */
static int add_ids(const struct graft_json_node *list, struct graft_arena *arena, const char ***ids, size_t *n)
{
	GRAFT_JSON_EACH(id, list) {
		const char *text = graft_json_node_string(id);

		if (text ? !graft_arena_push_string(arena, ids, n, text) : add_ids(id, arena, ids, n) < 0)
			return -1;
	}
	return 0;
}

static bool has_nri_text(const struct graft_json_node *entry, const char *name, const char *expected)
{
	const char *text = graft_json_node_string(graft_json_node_member(entry, name));

	return text && strcmp(text, expected) == 0;
}

int nri_kubelet_checkpoint(const char *path, const char *uid, const char *container, struct graft_arena *arena,
			   const char ***ret_ids, size_t *ret_n, bool *ret_exists, struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	const char *text;
	size_t length;
	int rc = graft_root_open(&root, "/", err), found = 0;

	*ret_n = 0;
	*ret_ids = NULL;
	*ret_exists = false;
	if (rc < 0)
		return -1;
	rc = graft_root_read_foreign(&root, path, CHECKPOINT_MAX, arena, &text, &length);
	if (rc < 0)
		return rc == -ENOENT ? 0 : graft_fail_errno(err, -rc, "%s", path);
	if (graft_json_document_parse(path, text, length, &document, err) < 0)
		return -1;
	*ret_exists = true;
	GRAFT_JSON_EACH(entry, graft_json_node_at(graft_json_document_root(document), "Data.PodDeviceEntries")) {
		if (!has_nri_text(entry, "PodUID", uid) || !has_nri_text(entry, "ContainerName", container))
			continue;
		found = 1;
		if (add_ids(graft_json_node_member(entry, "DeviceIDs"), arena, ret_ids, ret_n) < 0)
			return graft_fail_memory(err);
	}
	return found;
}

/* --- answers --- */

static void take_out(struct nri_kubelet *kubelet, const struct nri_kubelet_question *question)
{
	struct nri_kubelet_question **link = &kubelet->questions;

	while (*link && *link != question)
		link = &(*link)->next;
	if (*link)
		*link = question->next;
}

/*
 * SECURITY: the list has no UIDs. While an old pod of that name still exists, as with a
 * StatefulSet, the list does not show which of them has which GPUs: *ret_n counts them, and
 * *ret_n_lacking those without the container. Prefers a container with devices.
 */
static const V1__ContainerResources *find_container(const V1__ListPodResourcesResponse *list,
						    const struct nri_kubelet_question *question, size_t *ret_n,
						    size_t *ret_n_lacking)
{
	const V1__ContainerResources *found = NULL;

	*ret_n = *ret_n_lacking = 0;
	for (size_t i = 0; i < list->n_pod_resources; i++) {
		const V1__PodResources *pod = list->pod_resources[i];
		bool has = false;

		if (strcmp(pod->name, question->pod) != 0 || strcmp(pod->namespace_, question->namespace_) != 0)
			continue;
		++*ret_n;
		for (size_t k = 0; k < pod->n_containers; k++) {
			if (strcmp(pod->containers[k]->name, question->container) != 0)
				continue;
			has = true;
			if (!found || found->n_devices == 0)
				found = pod->containers[k];
		}
		*ret_n_lacking += !has;
	}
	return found;
}

static int list_ids(const V1__ContainerResources *container, struct graft_arena *arena, const char ***ids, size_t *n,
		    struct graft_error *err)
{
	for (size_t i = 0; i < container->n_devices; i++) {
		for (size_t k = 0; k < container->devices[i]->n_device_ids; k++) {
			if (!graft_arena_push_string(arena, ids, n, container->devices[i]->device_ids[k]))
				return graft_fail_memory(err);
		}
	}
	return 0;
}

/* `list` NULL: PodResources has not answered, for the reason `why`. */
static int find_ids(const struct nri_kubelet *kubelet, const struct nri_kubelet_question *question,
		    const V1__ListPodResourcesResponse *list, const char *why, struct graft_arena *arena,
		    const char ***ids, size_t *n, struct graft_error *err)
{
	struct graft_error unread = { .status = GRAFT_OK };
	size_t n_pods = 0, n_lacking = 0;
	const V1__ContainerResources *container = list ? find_container(list, question, &n_pods, &n_lacking) : NULL;
	bool exists;
	int rc;

	/* Where none of several has devices, this one has none; but ordinary init containers are not listed. */
	if (container && (n_pods == 1 || (container->n_devices == 0 && n_lacking == 0)))
		return list_ids(container, arena, ids, n, err);
	rc = nri_kubelet_checkpoint(kubelet->checkpoint, question->uid, question->container, arena, ids, n, &exists,
				    &unread);
	/* It has the UIDs of all that have devices. The kubelet writes it before the container is created. */
	if (rc > 0 || (rc == 0 && list && (exists || n_pods <= 1)))
		return 0;
	if (n_pods > 1) {
		list = NULL;
		why = rc < 0 ? "it has several pods of this name, and its checkpoint cannot be read"
			     : "it has several pods of this name, and there is no checkpoint to distinguish them";
	}
	if (list) {
		*err = unread;
		return graft_with_hint(err, "Check that the plugin can read the kubelet's checkpoint of devices.");
	}
	(void)graft_fail(err, GRAFT_IO, 0,
			 "the kubelet does not say which devices it has allocated to this container: %s", why);
	return graft_with_hint(err, n_pods > 1 ? "Check that the plugin can read the kubelet's checkpoint of devices."
					       : "Check that the plugin can reach the kubelet's PodResources socket.");
}

static void answer_question(struct nri_kubelet *kubelet, struct nri_kubelet_question *question,
			    const V1__ListPodResourcesResponse *list, const char *why)
{
	struct graft_arena *arena = graft_arena_new(MEMORY_MAX);
	struct graft_error err = { .status = GRAFT_OK };
	const char **ids = NULL;
	size_t n = 0;

	take_out(kubelet, question);
	if (!arena)
		(void)graft_fail_memory(&err);
	else
		(void)find_ids(kubelet, question, list, why, arena, &ids, &n, &err);
	question->answered(question->arg, ids, n, err.status == GRAFT_OK ? NULL : &err);
	(void)graft_arena_free(arena);
}

/* A callback may ask the next question, or withdraw others. */
static void answer_all(struct nri_kubelet *kubelet, const V1__ListPodResourcesResponse *list, const char *why)
{
	struct nri_kubelet_question *question = kubelet->questions;

	while (question) {
		if (question->asked) {
			answer_question(kubelet, question, list, why);
			question = kubelet->questions;
		} else {
			question = question->next;
		}
	}
	if (kubelet->questions)
		graft_loop_set_timer(kubelet->loop, &kubelet->next, 0);
}

static void listed(void *arg, enum graft_rpc_status status, const char *text, const ProtobufCMessage *message)
{
	struct nri_kubelet *kubelet = arg;

	kubelet->client = NULL;
	kubelet->n_failures += status != GRAFT_RPC_OK;
	answer_all(kubelet, (const V1__ListPodResourcesResponse *)(const void *)message, text);
}

static void begin_kubelet_call(void *arg)
{
	const V1__ListPodResourcesRequest message = V1__LIST_POD_RESOURCES_REQUEST__INIT;
	struct nri_kubelet *kubelet = arg;
	const struct graft_rpc_request request = { .socket = kubelet->socket,
						   .method = "/v1.PodResourcesLister/List",
						   .message = &message.base,
						   .answer = &v1__list_pod_resources_response__descriptor,
						   .deadline_ms = kubelet->limit_ms,
						   .done = listed,
						   .arg = kubelet };
	struct graft_error err = { .status = GRAFT_OK };

	if (kubelet->client || !kubelet->questions)
		return;
	for (struct nri_kubelet_question *question = kubelet->questions; question; question = question->next)
		question->asked = true;
	kubelet->n_calls++;
	kubelet->client = graft_rpc_call(kubelet->loop, &request, &err);
	if (kubelet->client)
		return;
	kubelet->n_failures++;
	answer_all(kubelet, NULL, GRAFT_ERROR_TEXT(&err));
}

void nri_kubelet_begin(struct nri_kubelet *kubelet)
{
	kubelet->next = (struct graft_loop_timer){ .due = begin_kubelet_call, .arg = kubelet };
}

void nri_kubelet_ask(struct nri_kubelet *kubelet, struct nri_kubelet_question *question)
{
	question->asked = false;
	question->next = kubelet->questions;
	kubelet->questions = question;
	if (!kubelet->client)
		graft_loop_set_timer(kubelet->loop, &kubelet->next, 0);
}

void nri_kubelet_forget(struct nri_kubelet *kubelet, struct nri_kubelet_question *question)
{
	take_out(kubelet, question);
}

void nri_kubelet_done(struct nri_kubelet *kubelet)
{
	graft_rpc_cancel(kubelet->client);
	kubelet->client = NULL;
	kubelet->questions = NULL;
	graft_loop_clear_timer(&kubelet->next);
}
