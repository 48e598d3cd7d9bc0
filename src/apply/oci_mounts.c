/* SPDX-License-Identifier: Apache-2.0 */
/* oci_mounts: mounts of an OCI configuration, each once by destination, parents before children (SPEC ctk-and-cdi 5.6). Mounts nothing. */
#include <stdlib.h>
#include <string.h>

#include "apply/oci_put.h"
#include "base/cleanup.h"

static const char *destination_of(const struct graft_json_node *mount)
{
	return graft_json_node_string(graft_json_node_member(mount, "destination"));
}

/* The number of '/' in the cleaned path, which is what the reference sorts by: 1 for "/" and "/a", 0 for "a" and "". */
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
	struct graft_json_node *node;
	size_t depth, place;
};

static int compare(const void *a, const void *b)
{
	const struct placed_mount *x = a, *y = b;

	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static int sort(struct graft_json_document *document, struct graft_json_node *mounts, struct graft_error *err)
{
	size_t n = graft_json_node_count(mounts), i = 0;
	auto_free struct placed_mount *placed = calloc(n, sizeof(*placed));
	auto_free struct graft_json_node **order = calloc(n, sizeof(struct graft_json_node *));

	if (!placed || !order)
		return graft_fail_memory(err);
	for (struct graft_json_node *mount = graft_json_node_first(mounts); mount;
	     mount = graft_json_node_next(mount)) {
		placed[i] = (struct placed_mount){ mount, depth_of(destination_of(mount)), i };
		i++;
	}
	qsort(placed, n, sizeof(*placed), compare);
	for (i = 0; i < n; i++)
		order[i] = placed[i].node;
	return graft_json_reorder(document, mounts, order, n, err);
}

static int put_mount(struct graft_json_document *document, struct graft_json_node *mounts,
		     const struct graft_cdi_mount *mount, struct graft_error *err)
{
	struct graft_json_node *object = graft_json_new_object(document, err), *old = graft_json_node_first(mounts);

	if (!object || oci_put_string(document, object, "destination", mount->container_path, err) < 0 ||
	    oci_put_string(document, object, "type", mount->type, err) < 0 ||
	    oci_put_string(document, object, "source", mount->host_path, err) < 0 ||
	    oci_put_strings(document, object, "options", mount->options, mount->n_options, err) < 0)
		return -1;
	for (; old; old = graft_json_node_next(old)) {
		const char *destination = destination_of(old);

		if (destination && strcmp(destination, mount->container_path) == 0)
			break;
	}
	graft_json_remove(document, old);
	return graft_json_append(document, mounts, object, err);
}

int oci_put_mounts(struct graft_json_document *document, const struct graft_cdi_mount *mounts, size_t n,
		   struct graft_error *err)
{
	struct graft_json_node *array;

	if (n == 0)
		return 0;
	array = graft_json_make(document, "mounts", GRAFT_JSON_ARRAY, err);
	if (!array)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (put_mount(document, array, &mounts[i], err) < 0)
			return -1;
	}
	return sort(document, array, err);
}
