/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_mounts: mounts of an OCI configuration, one per destination, parents before children (SPEC
 * ctk-and-cdi 5.6). Mounts nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "apply/oci/oci_put.h"
#include "base/cleanup.h"

static const char *destination_of(const struct graft_json_node *mount)
{
	return graft_json_node_string(graft_json_node_member(mount, "destination"));
}

/*
 * Counts the '/' in the cleaned path, by which the reference implementation sorts: 1 for "/" and
 * "/a", 0 for "a" and "".
 */
static size_t depth_of(const char *path)
{
	bool rooted = path && path[0] == '/';
	size_t up = 0, down = 0;

	while (path && *path != '\0') {
		size_t length = strcspn(path, "/");

		if (length == 2 && strncmp(path, "..", 2) == 0) {
			if (down > 0)
				down--;
			else
				up++;
		} else if (length > 0 && !(length == 1 && path[0] == '.')) {
			down++;
		}
		path += length;
		path += *path == '/';
	}
	if (rooted)
		return down > 0 ? down : 1;
	return up + down > 0 ? up + down - 1 : 0;
}

struct placed_mount {
	struct graft_json_node *node; /* NULL: removed */
	const char *destination;
	size_t length; /* of the destination; neighbours differ in length more often than in their first letters */
	size_t depth, place;
};

/*
 * All mounts of the document, with room for `n_new` more, so that the document is walked once and
 * not for each new mount.
 */
struct mount_list {
	struct placed_mount *items;
	size_t n;
};

static struct placed_mount place_mount(struct graft_json_node *node)
{
	const char *destination = destination_of(node);

	return (struct placed_mount){ node, destination, destination ? strlen(destination) : 0 };
}

static int list_oci_mounts(const struct graft_json_node *mounts, size_t n_new, struct mount_list *ret_list,
			   struct graft_error *err)
{
	struct placed_mount *items = calloc(graft_json_node_count(mounts) + n_new, sizeof(*items));
	size_t n = 0;

	if (!items)
		return graft_fail_memory(err);
	GRAFT_JSON_EACH(mount, mounts)
		items[n++] = place_mount(mount);
	*ret_list = (struct mount_list){ items, n };
	return 0;
}

static void free_list(struct mount_list *list)
{
	free(list->items);
}

static int compare_mount_depth(const void *a, const void *b)
{
	const struct placed_mount *x = a, *y = b;

	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static int sort_oci_mounts(struct graft_json_document *document, struct graft_json_node *mounts,
			   struct mount_list *list, struct graft_error *err)
{
	auto_free struct graft_json_node **order = calloc(list->n, sizeof(struct graft_json_node *));
	size_t n = 0;

	if (!order)
		return graft_fail_memory(err);
	for (size_t i = 0; i < list->n; i++) {
		if (!list->items[i].node)
			continue;
		list->items[n] = list->items[i];
		list->items[n].depth = depth_of(list->items[n].destination);
		list->items[n].place = n;
		n++;
	}
	qsort(list->items, n, sizeof(*list->items), compare_mount_depth);
	for (size_t i = 0; i < n; i++)
		order[i] = list->items[i].node;
	return graft_json_reorder(document, mounts, order, n, err);
}

/* Removes the first mount with that destination. */
static void remove_mount(struct graft_json_document *document, struct mount_list *list, const char *destination)
{
	size_t length = strlen(destination);

	for (size_t i = 0; i < list->n; i++) {
		struct placed_mount *old = &list->items[i];

		if (old->node && old->destination && old->length == length &&
		    memcmp(old->destination, destination, length) == 0) {
			graft_json_remove(document, old->node);
			old->node = NULL;
			return;
		}
	}
}

static int put_mount(struct graft_json_document *document, struct graft_json_node *mounts,
		     const struct graft_cdi_mount *mount, struct mount_list *list, struct graft_error *err)
{
	struct graft_json_node *object = graft_json_new_object(document, err);

	if (!object || oci_put_string(document, object, "destination", mount->container_path, err) < 0 ||
	    oci_put_string(document, object, "type", mount->type, err) < 0 ||
	    oci_put_string(document, object, "source", mount->host_path, err) < 0 ||
	    oci_put_strings(document, object, "options", mount->options, mount->n_options, err) < 0)
		return -1;
	remove_mount(document, list, mount->container_path);
	list->items[list->n++] = place_mount(object);
	return graft_json_append(document, mounts, object, err);
}

int oci_put_mounts(struct graft_json_document *document, const struct graft_cdi_mount *mounts, size_t n,
		   struct graft_error *err)
{
	__attribute__((cleanup(free_list))) struct mount_list list = { .n = 0 };
	struct graft_json_node *array;

	if (n == 0)
		return 0;
	array = graft_json_make(document, "mounts", GRAFT_JSON_ARRAY, err);
	if (!array || list_oci_mounts(array, n, &list, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (put_mount(document, array, &mounts[i], &list, err) < 0)
			return -1;
	}
	return sort_oci_mounts(document, array, &list, err);
}
