/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_edits: puts one set of container edits into an OCI configuration: variables, groups, net
 * devices, cache allocation, and the order of all parts. Nodes, mounts and hooks have files of
 * their own. Knows nothing of GPUs.
 */
#include "apply/oci/oci_edits.h"

#include <string.h>

#include "apply/oci/oci_put.h"

static int put_member(struct graft_json_document *document, struct graft_json_node *object, const char *name,
		      struct graft_json_node *value, struct graft_error *err)
{
	return value ? graft_json_set(document, object, name, value, err) : -1;
}

int oci_put_string(struct graft_json_document *document, struct graft_json_node *object, const char *name,
		   const char *value, struct graft_error *err)
{
	return value && value[0] != '\0'
		   ? put_member(document, object, name, graft_json_new_string(document, value, err), err)
		   : 0;
}

int oci_put_number(struct graft_json_document *document, struct graft_json_node *object, const char *name,
		   int64_t value, struct graft_error *err)
{
	return put_member(document, object, name, graft_json_new_i64(document, value, err), err);
}

int oci_put_bool(struct graft_json_document *document, struct graft_json_node *object, const char *name, bool value,
		 struct graft_error *err)
{
	return put_member(document, object, name, graft_json_new_bool(document, value, err), err);
}

static int append_string(struct graft_json_document *document, struct graft_json_node *array, const char *string,
			 struct graft_error *err)
{
	struct graft_json_node *node = graft_json_new_string(document, string, err);

	return node ? graft_json_append(document, array, node, err) : -1;
}

int oci_put_strings(struct graft_json_document *document, struct graft_json_node *object, const char *name,
		    const char *const *values, size_t n, struct graft_error *err)
{
	struct graft_json_node *array;

	if (n == 0)
		return 0;
	array = graft_json_new_array(document, err);
	if (!array)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (append_string(document, array, values[i], err) < 0)
			return -1;
	}
	return put_member(document, object, name, array, err);
}

struct variable {
	const char *entry;
	size_t length;                 /* of the name in `entry` */
	struct graft_json_node *first; /* element of process.env that sets it; NULL: not found yet */
};

/* Whether the element sets a variable that an earlier one sets. */
static bool sets_again(struct graft_json_node *element, void *arg)
{
	struct variable *variable = arg;
	const char *string = graft_json_node_string(element);

	if (!string || strncmp(string, variable->entry, variable->length) != 0 || string[variable->length] != '=')
		return false;
	if (variable->first)
		return true;
	variable->first = element;
	return false;
}

/*
 * SPEC runtime-and-hook Q10: the variable keeps its position and occurs once, so no reader can pick
 * another value for it.
 */
static int put_variable(struct graft_json_document *document, struct graft_json_node *env, const char *entry,
			struct graft_error *err)
{
	struct variable variable = { .entry = entry, .length = strcspn(entry, "=") };
	struct graft_json_node *value;

	if (variable.length == 0 || entry[variable.length] != '=')
		return graft_fail(err, GRAFT_INVALID, 0, "invalid environment variable \"%s\"", entry);
	value = graft_json_new_string(document, entry, err);
	if (!value)
		return -1;
	(void)graft_json_remove_each(document, env, sets_again, &variable);
	return variable.first ? graft_json_replace(document, variable.first, value, err)
			      : graft_json_append(document, env, value, err);
}

static int put_env(struct graft_json_document *document, const struct graft_cdi_edits *edits, struct graft_error *err)
{
	struct graft_json_node *env;

	if (edits->n_env == 0)
		return 0;
	env = graft_json_make(document, "process.env", GRAFT_JSON_ARRAY, err);
	if (!env)
		return -1;
	for (size_t i = 0; i < edits->n_env; i++) {
		if (put_variable(document, env, edits->env[i], err) < 0)
			return -1;
	}
	return 0;
}

static int put_net_devices(struct graft_json_document *document, const struct graft_cdi_edits *edits,
			   struct graft_error *err)
{
	struct graft_json_node *map, *object;

	if (edits->n_net_devices == 0)
		return 0;
	map = graft_json_make(document, "linux.netDevices", GRAFT_JSON_OBJECT, err);
	if (!map)
		return -1;
	for (size_t i = 0; i < edits->n_net_devices; i++) {
		const struct graft_cdi_net_device *device = &edits->net_devices[i];

		object = graft_json_new_object(document, err);
		if (!object || oci_put_string(document, object, "name", device->name, err) < 0 ||
		    graft_json_set_key(document, map, device->host_name, object, err) < 0)
			return -1;
	}
	return 0;
}

static int put_rdt(struct graft_json_document *document, const struct graft_cdi_rdt *rdt, struct graft_error *err)
{
	struct graft_json_node *object, *parent;

	if (!rdt)
		return 0;
	parent = graft_json_make(document, "linux", GRAFT_JSON_OBJECT, err);
	object = parent ? graft_json_new_object(document, err) : NULL;
	if (!object || oci_put_string(document, object, "closID", rdt->clos_id, err) < 0 ||
	    oci_put_strings(document, object, "schemata", rdt->schemata, rdt->n_schemata, err) < 0 ||
	    oci_put_string(document, object, "l3CacheSchema", rdt->l3_cache_schema, err) < 0 ||
	    oci_put_string(document, object, "memBwSchema", rdt->mem_bw_schema, err) < 0 ||
	    (rdt->enable_monitoring && oci_put_bool(document, object, "enableMonitoring", true, err) < 0))
		return -1;
	return graft_json_set(document, parent, "intelRdt", object, err);
}

static bool has_number(const struct graft_json_node *array, uint64_t number)
{
	uint64_t value;

	GRAFT_JSON_EACH(element, array) {
		if (graft_json_node_u64(element, &value) && value == number)
			return true;
	}
	return false;
}

static int put_gid(struct graft_json_document *document, uint32_t gid, struct graft_error *err)
{
	struct graft_json_node *gids, *node;

	if (gid == 0)
		return 0;
	gids = graft_json_make(document, "process.user.additionalGids", GRAFT_JSON_ARRAY, err);
	if (!gids || has_number(gids, gid))
		return gids ? 0 : -1;
	node = graft_json_new_u64(document, gid, err);
	return node ? graft_json_append(document, gids, node, err) : -1;
}

int graft_oci_apply_edits(struct graft_json_document *document, const struct graft_cdi_edits *edits,
			  struct graft_error *err)
{
	if (put_env(document, edits, err) < 0 || oci_put_nodes(document, edits->nodes, edits->n_nodes, err) < 0 ||
	    put_net_devices(document, edits, err) < 0 ||
	    oci_put_mounts(document, edits->mounts, edits->n_mounts, err) < 0)
		return -1;
	for (size_t i = 0; i < edits->n_hooks; i++) {
		if (oci_put_hook(document, &edits->hooks[i], err) < 0)
			return -1;
	}
	if (put_rdt(document, edits->rdt, err) < 0)
		return -1;
	for (size_t i = 0; i < edits->n_gids; i++) {
		if (put_gid(document, edits->gids[i], err) < 0)
			return -1;
	}
	return 0;
}
