/* SPDX-License-Identifier: Apache-2.0 */
/* node_feature: compares the object with what it should be, and writes it if they differ. */
#include "daemon/node_feature.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "formats/json/json_document.h"

#define MAX_MEMORY     ((size_t)1 << 20)
#define FIRST_DELAY_MS 1000
#define LAST_DELAY_MS  60000
#define LOOK_MS        50
#define CALM_MS        600000 /* time without changes by others after which counting starts again */
#define CHANGES_TO_SAY 3
#define CHANGES_TO_END 6 /* for a program that asks once */

/* --- requests --- */

static void reconcile_feature(struct node_feature *feature);

static void feature_due(void *arg)
{
	struct node_feature *feature = arg;

	feature->pausing = false;
	reconcile_feature(feature);
}

static void describe_wanted(struct node_feature *feature)
{
	graft_buffer_done(&feature->wanted);
	feature->wanted = (struct graft_buffer){ .max = FEATURE_OBJECT_MAX };
	feature_object_describe(&feature->labels, feature->flags->node_name, &feature->wanted);
}

static void pause_writing(struct node_feature *feature, int64_t pause_ms)
{
	feature->pausing = true;
	graft_loop_set_timer(feature->loop, &feature->again, pause_ms);
}

/* A failure is logged if it differs from the previous one. */
static void feature_failed(struct node_feature *feature, const struct graft_error *err)
{
	if (feature->once) {
		feature->settled(feature->arg, err);
		return;
	}
	if (!graft_cluster_is_same_failure(&feature->failure, err))
		graft_warn(feature->log, "cannot send the labels to the API server: %s. %s", GRAFT_ERROR_TEXT(err),
			   graft_error_hint(err));
	feature->failure = *err;
	feature->delay_ms = graft_loop_next_delay(feature->delay_ms, FIRST_DELAY_MS, LAST_DELAY_MS);
	pause_writing(feature, feature->delay_ms);
}

/* --- another client that writes the object --- */

static void say_changes(const struct node_feature *feature)
{
	graft_warn(feature->log,
		   "another client keeps overwriting %s in namespace %s; the labels are now restored at growing "
		   "intervals of up to a minute. Run only one gpu-feature-discovery per node: see 'kubectl get "
		   "pods --all-namespaces --field-selector spec.nodeName=%s', and metadata.managedFields of the object "
		   "in 'kubectl get nodefeatures --namespace %s %s --output yaml --show-managed-fields'",
		   feature->name, feature->flags->namespace_, feature->flags->node_name, feature->flags->namespace_,
		   feature->name);
}

/* Another client has changed the object. Returns how long to leave it that way. */
static int64_t count_change(struct node_feature *feature)
{
	int64_t now = graft_clock_ms();

	if (now - feature->changed_ms > CALM_MS) {
		feature->n_changes = 0;
		feature->pause_ms = 0;
	}
	feature->changed_ms = now;
	if (feature->n_changes++ > 0)
		feature->pause_ms = graft_loop_next_delay(feature->pause_ms, FIRST_DELAY_MS, LAST_DELAY_MS);
	if (feature->n_changes == CHANGES_TO_SAY)
		say_changes(feature);
	return feature->pause_ms;
}

/* The object has changed since we read it. The watch will report its current state. */
static void writing_collided(struct node_feature *feature, const struct graft_error *err)
{
	int64_t pause_ms = count_change(feature);

	if (feature->once && feature->n_changes >= CHANGES_TO_END)
		feature->settled(feature->arg, err);
	else
		pause_writing(feature, pause_ms > 0 ? pause_ms : FIRST_DELAY_MS);
}

/* --- the object --- */

static bool is_as_wanted(const struct node_feature *feature)
{
	const struct feature_object *seen = &feature->seen;

	return seen->there && !graft_buffer_failed(&seen->text) && !graft_buffer_failed(&feature->wanted) &&
	       strcmp(graft_buffer_text(&seen->text), graft_buffer_text(&feature->wanted)) == 0 &&
	       (!feature->owned || feature_owners_equal(&seen->owners, &feature->owners));
}

static void object_reached(struct node_feature *feature)
{
	feature->reached = true;
	feature->pausing = false;
	graft_loop_clear_timer(&feature->again);
	if (feature->settled)
		feature->settled(feature->arg, NULL);
}

static void object_written(void *arg, const struct graft_cluster_answer *answer)
{
	struct node_feature *feature = arg;
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_error why = { .status = GRAFT_OK };

	feature->call = NULL;
	if (answer->status == 409) {
		writing_collided(feature, answer->err);
		return;
	}
	if (answer->err) {
		feature_failed(feature, answer->err);
		return;
	}
	feature->delay_ms = 0;
	feature->failure = (struct graft_error){ .status = GRAFT_OK };
	graft_info(feature->log, "labels sent to %s as %s in namespace %s", graft_cluster_server(feature->cluster),
		   feature->name, feature->flags->namespace_);
	/* The watch may have reported a newer state than the answer. */
	if (!feature->moved && graft_json_document_parse("answer", answer->body, answer->length, &document, &why) == 0)
		feature_object_read(&feature->seen, graft_json_document_root(document));
	if (feature->once || is_as_wanted(feature))
		object_reached(feature);
	else
		writing_collided(feature, NULL);
}

static int send_object(struct node_feature *feature, struct graft_error *err)
{
	const struct feature_content content = { .name = feature->name,
						 .namespace_ = feature->flags->namespace_,
						 .node = feature->flags->node_name,
						 .version = feature->seen.there ? feature->seen.version : NULL,
						 .owners = feature->owned ? &feature->owners : &feature->seen.owners,
						 .labels = &feature->labels };
	struct graft_buffer body = { .max = FEATURE_OBJECT_MAX }, path = { .max = FEATURE_OBJECT_MAX };
	struct graft_cluster_request request = { .method = content.version ? "PUT" : "POST",
						 .answered = object_written,
						 .arg = feature };

	graft_buffer_string(&path, feature->collection);
	if (content.version)
		graft_buffer_printf(&path, "/%s", feature->name);
	feature_object_write(&content, &body);
	feature->moved = false;
	if (graft_buffer_failed(&body) || graft_buffer_failed(&path)) {
		(void)graft_fail_memory(err);
	} else {
		request.path = graft_buffer_text(&path);
		request.body = graft_buffer_text(&body);
		request.length = body.length;
		feature->call = graft_cluster_send(feature->cluster, &request, err);
	}
	graft_buffer_done(&body);
	graft_buffer_done(&path);
	return feature->call ? 0 : -1;
}

/* Compares the object with the wanted one and writes it, unless that has to wait. */
static void reconcile_feature(struct node_feature *feature)
{
	struct graft_error err = { .status = GRAFT_OK };

	if (!feature->known || feature->wanted.length == 0 || feature->call)
		return;
	if (is_as_wanted(feature)) {
		object_reached(feature);
	} else if (!feature->pausing) {
		graft_loop_clear_timer(&feature->again);
		if (send_object(feature, &err) < 0)
			feature_failed(feature, &err);
	}
}

/* --- the watch --- */

static void see_object(struct node_feature *feature, const struct graft_json_node *object)
{
	int64_t pause_ms;

	feature_object_read(&feature->seen, object);
	feature->known = true;
	feature->moved = true;
	if (feature->reached && !feature->call && !is_as_wanted(feature)) {
		feature->reached = false;
		pause_ms = count_change(feature);
		if (pause_ms > 0)
			pause_writing(feature, pause_ms);
	}
	reconcile_feature(feature);
}

/*
 * At the first time, or after the watch has failed: writing may have failed too, so try it at once.
 */
static void objects_listed(void *arg, const struct graft_json_node *list)
{
	struct node_feature *feature = arg;

	feature->pausing &= feature->delay_ms == 0;
	see_object(arg, graft_json_node_first(graft_json_node_member(list, "items")));
}

static void object_changed(void *arg, enum graft_cluster_change change, const struct graft_json_node *object)
{
	see_object(arg, change == GRAFT_CLUSTER_DELETED ? NULL : object);
}

/* A program that asks once does not wait for the watch to try again. */
static void look_at_watch(void *arg)
{
	struct node_feature *feature = arg;

	feature->pausing = false;
	if (feature->watch.failure.status != GRAFT_OK) {
		feature->settled(feature->arg, &feature->watch.failure);
		return;
	}
	if (feature->known)
		reconcile_feature(feature);
	else
		graft_loop_set_timer(feature->loop, &feature->again, LOOK_MS);
}

static void watch_object(struct node_feature *feature)
{
	feature->watch = (struct graft_cluster_watch){ .path = feature->collection,
						       .query = feature->query,
						       .listed = objects_listed,
						       .changed = object_changed,
						       .arg = feature };
	graft_cluster_watch_begin(feature->cluster, &feature->watch);
	feature->again = (struct graft_loop_timer){ .due = feature->once ? look_at_watch : feature_due,
						    .arg = feature };
	if (feature->once)
		graft_loop_set_timer(feature->loop, &feature->again, LOOK_MS);
}

/* --- owners --- */

/* Without its owners the object would not be removed with the pod. */
static void pod_failed(struct node_feature *feature, const struct graft_error *err)
{
	if (!graft_cluster_is_same_failure(&feature->pod_failure, err))
		graft_warn(feature->log,
			   "the labels will not be removed with this pod, because the pod cannot be read: %s. Allow "
			   "the service account to get pods, and set --pod-name (POD_NAME) and --namespace (NAMESPACE) "
			   "to this pod",
			   GRAFT_ERROR_TEXT(err));
	feature->pod_failure = *err;
	if (feature->once)
		return;
	feature->pod_delay_ms = graft_loop_next_delay(feature->pod_delay_ms, FIRST_DELAY_MS, LAST_DELAY_MS);
	graft_loop_set_timer(feature->loop, &feature->pod_again, feature->pod_delay_ms);
}

static void pod_read(void *arg, const struct graft_cluster_answer *answer)
{
	struct node_feature *feature = arg;
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_error why = { .status = GRAFT_OK };

	feature->pod_call = NULL;
	if (answer->err) {
		why = *answer->err;
	} else if (graft_json_document_parse("answer", answer->body, answer->length, &document, &why) == 0 &&
		   feature_owners_of_pod(&feature->owners, graft_json_document_root(document), &why) == 0) {
		feature->owned = true;
		feature->reached = false;
	}
	if (!feature->owned)
		pod_failed(feature, &why);
	if (!feature->watch.cluster)
		watch_object(feature);
	else
		reconcile_feature(feature);
}

static void ask_for_pod(void *arg)
{
	struct node_feature *feature = arg;
	const struct graft_cluster_request request = {
		.method = "GET", .path = feature->pod, .answered = pod_read, .arg = feature
	};
	struct graft_error err = { .status = GRAFT_OK };

	feature->pod_call = graft_cluster_send(feature->cluster, &request, &err);
	if (feature->pod_call)
		return;
	pod_failed(feature, &err);
	if (!feature->watch.cluster)
		watch_object(feature);
}

/* --- begin and end --- */

static int make_paths(struct node_feature *feature, struct graft_error *err)
{
	const struct graft_kube_api_flags *flags = feature->flags;
	struct graft_buffer space = { .max = 0 }, pod = { .max = 0 }, name = { .max = 0 };

	graft_cluster_escape(&space, flags->namespace_);
	graft_cluster_escape(&pod, flags->pod_name);
	feature->name = graft_arena_printf(feature->arena, "nvidia-features-for-%s", flags->node_name);
	graft_cluster_escape(&name, feature->name ? feature->name : "");
	feature->collection = graft_arena_printf(
	    feature->arena, "/apis/" FEATURE_OBJECT_GROUP "/namespaces/%s/nodefeatures", graft_buffer_text(&space));
	feature->query = graft_arena_printf(feature->arena, "fieldSelector=metadata.name%%3D%s",
					    graft_buffer_text(&name));
	feature->pod = graft_arena_printf(feature->arena, "/api/v1/namespaces/%s/pods/%s", graft_buffer_text(&space),
					  graft_buffer_text(&pod));
	if (graft_buffer_failed(&space) || graft_buffer_failed(&pod) || graft_buffer_failed(&name))
		feature->pod = NULL;
	graft_buffer_done(&space);
	graft_buffer_done(&pod);
	graft_buffer_done(&name);
	return feature->pod && !graft_arena_failed(feature->arena) ? 0 : graft_fail_memory(err);
}

static int open_feature(struct node_feature *feature, struct graft_error *err)
{
	const struct graft_cluster_sources sources = { .loop = feature->loop,
						       .log = feature->log,
						       .kubeconfig = feature->flags->kubeconfig,
						       .variable = feature->variable,
						       .per_second = feature->flags->qps,
						       .burst = feature->flags->burst };

	if (feature->flags->node_name[0] == '\0')
		return graft_fail(err, GRAFT_INVALID, 0,
				  "cannot send labels to the API server without a node name; set --node-name "
				  "(NODE_NAME), or write a file: --use-node-feature-api=false");
	feature->arena = graft_arena_new(MAX_MEMORY);
	if (!feature->arena)
		return graft_fail_memory(err);
	if (make_paths(feature, err) < 0 || graft_cluster_open(&sources, &feature->cluster, err) < 0)
		return -1;
	if (feature->flags->pod_name[0] == '\0') {
		watch_object(feature);
		return 0;
	}
	feature->pod_again = (struct graft_loop_timer){ .due = ask_for_pod, .arg = feature };
	ask_for_pod(feature);
	return 0;
}

int node_feature_begin(struct node_feature *feature, struct graft_error *err)
{
	if (open_feature(feature, err) == 0)
		return 0;
	node_feature_end(feature);
	return -1;
}

void node_feature_set(struct node_feature *feature, const struct graft_kube_labels *labels)
{
	feature->labels = *labels;
	describe_wanted(feature);
	feature->reached = false;
	feature->pausing &= feature->delay_ms == 0;
	feature->delay_ms = 0;
	reconcile_feature(feature);
}

void node_feature_end(struct node_feature *feature)
{
	if (!feature->arena)
		return;
	graft_loop_clear_timer(&feature->again);
	graft_cluster_watch_end(&feature->watch);
	graft_loop_clear_timer(&feature->pod_again);
	graft_cluster_cancel(feature->call);
	graft_cluster_cancel(feature->pod_call);
	graft_cluster_close(feature->cluster);
	graft_buffer_done(&feature->wanted);
	feature_object_done(&feature->seen);
	feature_owners_done(&feature->owners);
	feature->arena = graft_arena_free(feature->arena);
	feature->call = feature->pod_call = NULL;
	feature->cluster = NULL;
}
