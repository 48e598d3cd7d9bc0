/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feature_object: converts the API server's JSON to data that can be compared, and the wanted
 * object to JSON.
 */
#include "daemon/feature_object.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/json/json.h"
#include "formats/json/json_document.h"

#define NODE_LABEL "nfd.node.kubernetes.io/node-name"
#define MAX_MEMORY ((size_t)8 << 20)

static const char *text_at(const struct graft_json_node *object, const char *path)
{
	const char *text = graft_json_node_string(graft_json_node_at(object, path));

	return text ? text : "";
}

/* --- owners --- */

void feature_owners_done(struct feature_owners *owners)
{
	owners->arena = graft_arena_free(owners->arena);
	owners->n = 0;
}

static int compare_uids(const void *a, const void *b)
{
	return strcmp(((const struct feature_owner *)a)->uid, ((const struct feature_owner *)b)->uid);
}

/* An incomplete owner, or one beyond the limit, is left out. */
static void add_owner(struct feature_owners *owners, const struct feature_owner *owner)
{
	struct feature_owner *slot = &owners->items[owners->n];

	if (owner->uid[0] == '\0' || owner->kind[0] == '\0' || owners->n == FEATURE_OBJECT_OWNERS)
		return;
	*slot = (struct feature_owner){ .api_version = graft_arena_strdup(owners->arena, owner->api_version),
					.kind = graft_arena_strdup(owners->arena, owner->kind),
					.name = graft_arena_strdup(owners->arena, owner->name),
					.uid = graft_arena_strdup(owners->arena, owner->uid),
					.controller = owner->controller };
	owners->n += !graft_arena_failed(owners->arena);
}

static void add_owners(struct feature_owners *owners, const struct graft_json_node *list)
{
	GRAFT_JSON_EACH(item, list) {
		const struct feature_owner owner = { .api_version = text_at(item, "apiVersion"),
						     .kind = text_at(item, "kind"),
						     .name = text_at(item, "name"),
						     .uid = text_at(item, "uid"),
						     .controller = graft_json_node_is_true(
							 graft_json_node_member(item, "controller")) };

		add_owner(owners, &owner);
	}
}

/* Returns 0, or -1 if out of memory. */
static int sort_owners(struct feature_owners *owners)
{
	if (owners->n > 1)
		qsort(owners->items, owners->n, sizeof(owners->items[0]), compare_uids);
	return owners->arena && !graft_arena_failed(owners->arena) ? 0 : -1;
}

int feature_owners_of_pod(struct feature_owners *owners, const struct graft_json_node *document,
			  struct graft_error *err)
{
	const struct graft_json_node *metadata = graft_json_node_member(document, "metadata");
	const struct feature_owner pod = {
		.api_version = "v1", .kind = "Pod", .name = text_at(metadata, "name"), .uid = text_at(metadata, "uid")
	};
	struct feature_owners made = { .arena = graft_arena_new(MAX_MEMORY) };

	if (pod.uid[0] == '\0') {
		feature_owners_done(&made);
		return graft_fail(err, GRAFT_FORMAT, 0, "the pod has no metadata.uid");
	}
	if (made.arena) {
		add_owner(&made, &pod);
		add_owners(&made, graft_json_node_member(metadata, "ownerReferences"));
	}
	if (sort_owners(&made) < 0) {
		feature_owners_done(&made);
		return graft_fail_memory(err);
	}
	feature_owners_done(owners);
	*owners = made;
	return 0;
}

bool feature_owners_equal(const struct feature_owners *a, const struct feature_owners *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		if (strcmp(a->items[i].uid, b->items[i].uid) != 0)
			return false;
	}
	return true;
}

/* --- the server's object --- */

void feature_object_describe(const struct graft_kube_labels *labels, const char *node, struct graft_buffer *out)
{
	graft_kube_labels_write(labels, out);
	graft_buffer_printf(out, "node %s\n", node);
}

static int read_labels(const struct graft_json_node *map, struct graft_arena *arena, struct graft_kube_labels *labels)
{
	GRAFT_JSON_EACH(item, map) {
		struct graft_kube_label *slot = graft_arena_push(arena, &labels->items, &labels->n_items,
								 sizeof(*slot));
		const char *value = graft_json_node_string(item), *name = graft_json_node_name(item);

		if (!slot)
			return -1;
		*slot = (struct graft_kube_label){ name ? name : "", value ? value : "" };
	}
	graft_kube_labels_sort(labels);
	return 0;
}

void feature_object_done(struct feature_object *object)
{
	graft_buffer_done(&object->text);
	feature_owners_done(&object->owners);
	*object = (struct feature_object){ .there = false };
}

void feature_object_read(struct feature_object *object, const struct graft_json_node *node)
{
	const struct graft_json_node *metadata = graft_json_node_member(node, "metadata");
	const char *version = text_at(metadata, "resourceVersion"), *name;
	struct graft_kube_labels labels = { .n_items = 0 };

	feature_object_done(object);
	if (!node)
		return;
	object->there = true;
	if (strlen(version) < sizeof(object->version))
		memcpy(object->version, version, strlen(version) + 1);
	object->text = (struct graft_buffer){ .max = FEATURE_OBJECT_MAX };
	object->owners.arena = graft_arena_new(MAX_MEMORY);
	if (!object->owners.arena ||
	    read_labels(graft_json_node_at(node, "spec.labels"), object->owners.arena, &labels) < 0)
		return;
	name = graft_json_node_string(graft_json_node_member(graft_json_node_member(metadata, "labels"), NODE_LABEL));
	feature_object_describe(&labels, name ? name : "", &object->text);
	add_owners(&object->owners, graft_json_node_member(metadata, "ownerReferences"));
	(void)sort_owners(&object->owners);
}

/* --- the object to write --- */

/* `before` is what separates it from the member before, if there is one. */
static void add_member(struct graft_buffer *out, const char *before, const char *name, const char *value)
{
	graft_buffer_string(out, before);
	graft_json_quote(out, name);
	graft_buffer_char(out, ':');
	graft_json_quote(out, value);
}

static void write_owners(const struct feature_owners *owners, struct graft_buffer *out)
{
	graft_buffer_string(out, ",\"ownerReferences\":[");
	for (size_t i = 0; i < owners->n; i++) {
		const struct feature_owner *owner = &owners->items[i];

		add_member(out, i > 0 ? ",{" : "{", "apiVersion", owner->api_version);
		add_member(out, ",", "kind", owner->kind);
		add_member(out, ",", "name", owner->name);
		add_member(out, ",", "uid", owner->uid);
		graft_buffer_string(out, owner->controller ? ",\"controller\":true}" : "}");
	}
	graft_buffer_char(out, ']');
}

static void write_metadata(const struct feature_content *content, struct graft_buffer *out)
{
	add_member(out, "", "name", content->name);
	add_member(out, ",", "namespace", content->namespace_);
	if (content->version)
		add_member(out, ",", "resourceVersion", content->version);
	add_member(out, ",\"labels\":{", NODE_LABEL, content->node);
	graft_buffer_char(out, '}');
	write_owners(content->owners, out);
}

void feature_object_write(const struct feature_content *content, struct graft_buffer *out)
{
	graft_buffer_string(out,
			    "{\"apiVersion\":\"" FEATURE_OBJECT_GROUP "\",\"kind\":\"NodeFeature\",\"metadata\":{");
	write_metadata(content, out);
	graft_buffer_string(out,
			    "},\"spec\":{\"features\":{\"flags\":{},\"attributes\":{},\"instances\":{}},\"labels\":{");
	for (size_t i = 0; i < content->labels->n_items; i++)
		add_member(out, i > 0 ? "," : "", content->labels->items[i].name, content->labels->items[i].value);
	graft_buffer_string(out, "}}}");
}
