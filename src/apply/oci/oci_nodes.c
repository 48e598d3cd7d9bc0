/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_nodes: device nodes, and the cgroup rules that allow opening them (SPEC ctk-and-cdi 5.6).
 * Properties that an edit omits are read from the host's node with lstat; the node is never opened.
 * Knows nothing of the container's root.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "apply/oci/oci_put.h"

static const char *node_type_of(mode_t mode)
{
	return S_ISCHR(mode) ? "c" : S_ISBLK(mode) ? "b" : S_ISFIFO(mode) ? "p" : NULL;
}

static bool is_type(const struct graft_cdi_node *node, const char *type)
{
	return node->type && strcmp(node->type, type) == 0;
}

static int complete_oci_node(struct graft_cdi_node *node, struct graft_error *err)
{
	const char *host_path = node->host_path ? node->host_path : node->path, *type = NULL;
	bool minimal = node->type && (node->has_numbers || is_type(node, "p"));
	int sys = 0;
	struct stat st = { .st_mode = 0 };

	if (minimal && node->has_mode)
		return 0;
	if (lstat(host_path, &st) < 0)
		sys = errno;
	else
		type = node_type_of(st.st_mode);
	if (type && !node->has_mode) {
		node->mode = st.st_mode & 0777;
		node->has_mode = true;
	}
	if (minimal)
		return 0;
	if (sys != 0)
		return graft_fail_errno(err, sys, "failed to stat CDI host device \"%s\"", host_path);
	if (!type)
		return graft_fail(err, GRAFT_INVALID, 0, "failed to stat CDI host device \"%s\": not a device node",
				  host_path);
	if (node->type && strcmp(node->type, type) != 0)
		return graft_fail(err, GRAFT_INVALID, 0, "CDI device (\"%s\", \"%s\"), host type mismatch (%s, %s)",
				  node->path, host_path, node->type, type);
	node->type = type;
	if (!node->has_numbers && !is_type(node, "p")) {
		node->major = major(st.st_rdev);
		node->minor = minor(st.st_rdev);
		node->has_numbers = true;
	}
	return 0;
}

/* A node without an owner belongs to the container's user, unless that is root. */
static void choose_owner(const struct graft_json_document *document, struct graft_cdi_node *node)
{
	const struct graft_json_node *user = graft_json_node_at(graft_json_document_root(document), "process.user");
	uint64_t id;

	if (!node->has_uid && graft_json_node_u64(graft_json_node_member(user, "uid"), &id) && id > 0 &&
	    id <= UINT32_MAX) {
		node->uid = (uint32_t)id;
		node->has_uid = true;
	}
	if (!node->has_gid && graft_json_node_u64(graft_json_node_member(user, "gid"), &id) && id > 0 &&
	    id <= UINT32_MAX) {
		node->gid = (uint32_t)id;
		node->has_gid = true;
	}
}

static struct graft_json_node *new_oci_node(struct graft_json_document *document, const struct graft_cdi_node *node,
					    struct graft_error *err)
{
	struct graft_json_node *object = graft_json_new_object(document, err);

	if (!object || oci_put_string(document, object, "path", node->path, err) < 0 ||
	    oci_put_string(document, object, "type", node->type, err) < 0)
		return NULL;
	if (node->has_numbers && (oci_put_number(document, object, "major", node->major, err) < 0 ||
				  oci_put_number(document, object, "minor", node->minor, err) < 0))
		return NULL;
	if ((node->has_mode && oci_put_number(document, object, "fileMode", node->mode, err) < 0) ||
	    (node->has_uid && oci_put_number(document, object, "uid", node->uid, err) < 0) ||
	    (node->has_gid && oci_put_number(document, object, "gid", node->gid, err) < 0))
		return NULL;
	return object;
}

/* The argument is the path of a new node. */
static bool has_node_path(struct graft_json_node *device, void *arg)
{
	const char *path = graft_json_node_string(graft_json_node_member(device, "path")), *const *new_path = arg;

	return path && strcmp(path, *new_path) == 0;
}

static int put_node(struct graft_json_document *document, const struct graft_cdi_node *node, struct graft_error *err)
{
	struct graft_json_node *devices = graft_json_make(document, "linux.devices", GRAFT_JSON_ARRAY, err);
	struct graft_json_node *object = devices ? new_oci_node(document, node, err) : NULL;
	const char *path = node->path;

	if (!object)
		return -1;
	(void)graft_json_remove_each(document, devices, has_node_path, &path);
	return graft_json_append(document, devices, object, err);
}

/* Returns "rwm" as bits; other letters are ignored. */
static unsigned int oci_access_bits(const char *access)
{
	unsigned int bits = 0;

	for (; access && *access != '\0'; access++)
		bits |= *access == 'r' ? 1u : *access == 'w' ? 2u : *access == 'm' ? 4u : 0u;
	return bits;
}

static bool is_number(const struct graft_json_node *node, int64_t number)
{
	int64_t value;

	return graft_json_node_i64(node, &value) && value == number;
}

static bool allows(const struct graft_json_node *rule, const struct graft_cdi_node *node, unsigned int bits)
{
	const char *type = graft_json_node_string(graft_json_node_member(rule, "type"));

	return type && strcmp(type, node->type) == 0 && is_number(graft_json_node_member(rule, "major"), node->major) &&
	       is_number(graft_json_node_member(rule, "minor"), node->minor) &&
	       (oci_access_bits(graft_json_node_string(graft_json_node_member(rule, "access"))) & bits) == bits;
}

/*
 * Whether the rules already allow this node (SPEC runtime-and-hook Q12). Rules apply in order, so a
 * later deny rule overrides an earlier one.
 */
static bool is_allowed(const struct graft_json_node *rules, const struct graft_cdi_node *node, unsigned int bits)
{
	bool allowed = false;

	GRAFT_JSON_EACH(rule, rules) {
		if (!graft_json_node_is_true(graft_json_node_member(rule, "allow")))
			allowed = false;
		else if (allows(rule, node, bits))
			allowed = true;
	}
	return allowed;
}

static int put_rule(struct graft_json_document *document, const struct graft_cdi_node *node, struct graft_error *err)
{
	const char *access = node->permissions ? node->permissions : "rwm";
	struct graft_json_node *rules, *rule;

	if ((!is_type(node, "b") && !is_type(node, "c")) || access[0] == '\0')
		return 0;
	rules = graft_json_make(document, "linux.resources.devices", GRAFT_JSON_ARRAY, err);
	if (!rules || is_allowed(rules, node, oci_access_bits(access)))
		return rules ? 0 : -1;
	rule = graft_json_new_object(document, err);
	if (!rule || oci_put_bool(document, rule, "allow", true, err) < 0 ||
	    oci_put_string(document, rule, "type", node->type, err) < 0 ||
	    oci_put_number(document, rule, "major", node->major, err) < 0 ||
	    oci_put_number(document, rule, "minor", node->minor, err) < 0 ||
	    oci_put_string(document, rule, "access", access, err) < 0)
		return -1;
	return graft_json_append(document, rules, rule, err);
}

int oci_put_nodes(struct graft_json_document *document, const struct graft_cdi_node *nodes, size_t n,
		  struct graft_error *err)
{
	for (size_t i = 0; i < n; i++) {
		struct graft_cdi_node node = nodes[i];

		if (complete_oci_node(&node, err) < 0)
			return -1;
		choose_owner(document, &node);
		if (put_node(document, &node, err) < 0 || put_rule(document, &node, err) < 0)
			return -1;
	}
	return 0;
}
