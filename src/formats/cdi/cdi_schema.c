/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_schema: the members of a spec's objects, where they are in our structs, and the version that
 * introduced them (SPEC ctk-and-cdi 5.1, 5.3). They are written in this order.
 */
#include <string.h>

#include "base/cleanup.h"
#include "formats/cdi/cdi.h"
#include "formats/cdi/cdi_object.h"

/* clang-format off */
#define AT(S, m) offsetof(struct graft_cdi_##S, m)
#define MEMBERS(table) .members = (table), .n_members = GRAFT_COUNT(table)

static const struct cdi_member node_members[] = {
	{ "path", CDI_MEMBER_TEXT, AT(node, path) },
	{ "hostPath", CDI_MEMBER_TEXT, AT(node, host_path), .since = CDI_0_5_0 },
	{ "type", CDI_MEMBER_TEXT, AT(node, type) },
	{ "major", CDI_MEMBER_SIGNED, AT(node, major) },
	{ "minor", CDI_MEMBER_SIGNED, AT(node, minor) },
	{ "fileMode", CDI_MEMBER_UNSIGNED, AT(node, mode), AT(node, has_mode) },
	{ "permissions", CDI_MEMBER_TEXT, AT(node, permissions), .empty = "none" },
	{ "uid", CDI_MEMBER_UNSIGNED, AT(node, uid), AT(node, has_uid) },
	{ "gid", CDI_MEMBER_UNSIGNED, AT(node, gid), AT(node, has_gid) },
};
static const struct cdi_object node_object = { MEMBERS(node_members), sizeof(struct graft_cdi_node), cdi_check_node };

static const struct cdi_member net_members[] = {
	{ "hostInterfaceName", CDI_MEMBER_TEXT, AT(net_device, host_name) },
	{ "name", CDI_MEMBER_TEXT, AT(net_device, name) },
};
static const struct cdi_object net_object = { MEMBERS(net_members), sizeof(struct graft_cdi_net_device), cdi_check_net_device };

static const struct cdi_member mount_members[] = {
	{ "hostPath", CDI_MEMBER_TEXT, AT(mount, host_path) },
	{ "containerPath", CDI_MEMBER_TEXT, AT(mount, container_path) },
	{ "options", CDI_MEMBER_TEXTS, AT(mount, options), AT(mount, n_options) },
	{ "type", CDI_MEMBER_TEXT, AT(mount, type), .since = CDI_0_4_0 },
};
static const struct cdi_object mount_object = { MEMBERS(mount_members), sizeof(struct graft_cdi_mount), cdi_check_mount };

static const struct cdi_member hook_members[] = {
	{ "hookName", CDI_MEMBER_TEXT, AT(hook, stage) },
	{ "path", CDI_MEMBER_TEXT, AT(hook, path) },
	{ "args", CDI_MEMBER_TEXTS, AT(hook, args), AT(hook, n_args) },
	{ "env", CDI_MEMBER_TEXTS, AT(hook, env), AT(hook, n_env) },
	{ "timeout", CDI_MEMBER_SIGNED, AT(hook, timeout), AT(hook, has_timeout) },
};
static const struct cdi_object hook_object = { MEMBERS(hook_members), sizeof(struct graft_cdi_hook), cdi_check_hook };

static const struct cdi_member rdt_members[] = {
	{ "closID", CDI_MEMBER_TEXT, AT(rdt, clos_id) },
	{ "l3CacheSchema", CDI_MEMBER_TEXT, AT(rdt, l3_cache_schema) },
	{ "memBwSchema", CDI_MEMBER_TEXT, AT(rdt, mem_bw_schema) },
	{ "schemata", CDI_MEMBER_TEXTS, AT(rdt, schemata), AT(rdt, n_schemata), .since = CDI_1_1_0, .since_if_empty = true },
	{ "enableMonitoring", CDI_MEMBER_FLAG, AT(rdt, enable_monitoring), .since = CDI_1_1_0 },
};
static const struct cdi_object rdt_object = { MEMBERS(rdt_members), sizeof(struct graft_cdi_rdt), cdi_check_rdt };

static const struct cdi_member edits_members[] = {
	{ "env", CDI_MEMBER_TEXTS, AT(edits, env), AT(edits, n_env) },
	{ "deviceNodes", CDI_MEMBER_OBJECTS, AT(edits, nodes), AT(edits, n_nodes), &node_object },
	{ "netDevices", CDI_MEMBER_OBJECTS, AT(edits, net_devices), AT(edits, n_net_devices), &net_object, CDI_1_1_0 },
	{ "hooks", CDI_MEMBER_OBJECTS, AT(edits, hooks), AT(edits, n_hooks), &hook_object },
	{ "mounts", CDI_MEMBER_OBJECTS, AT(edits, mounts), AT(edits, n_mounts), &mount_object },
	{ "intelRdt", CDI_MEMBER_POINTER, AT(edits, rdt), 0, &rdt_object, CDI_0_7_0, true },
	{ "additionalGids", CDI_MEMBER_GROUPS, AT(edits, gids), AT(edits, n_gids), .since = CDI_0_7_0 },
};
const struct cdi_object cdi_edits_object = { MEMBERS(edits_members), sizeof(struct graft_cdi_edits), cdi_check_edits };

static const struct cdi_member device_members[] = {
	{ "name", CDI_MEMBER_TEXT, AT(device, name) },
	{ "annotations", CDI_MEMBER_WORDS, AT(device, annotations), AT(device, n_annotations), .since = CDI_0_6_0 },
	{ "containerEdits", CDI_MEMBER_OBJECT, AT(device, edits), 0, &cdi_edits_object },
};
const struct cdi_object cdi_device_object = { MEMBERS(device_members), sizeof(struct graft_cdi_device), cdi_check_device_object };

#define IN_SPEC(m) offsetof(struct cdi_file_spec, spec.m)
static const struct cdi_member spec_members[] = {
	{ "cdiVersion", CDI_MEMBER_TEXT, offsetof(struct cdi_file_spec, version) },
	{ "kind", CDI_MEMBER_TEXT, offsetof(struct cdi_file_spec, kind) },
	{ "annotations", CDI_MEMBER_WORDS, IN_SPEC(annotations), IN_SPEC(n_annotations), .since = CDI_0_6_0 },
	{ "devices", CDI_MEMBER_OBJECTS, IN_SPEC(devices), IN_SPEC(n_devices), &cdi_device_object },
	{ "containerEdits", CDI_MEMBER_OBJECT, IN_SPEC(edits), 0, &cdi_edits_object },
};
const struct cdi_object cdi_spec_object = { MEMBERS(spec_members), sizeof(struct cdi_file_spec), NULL };
/* clang-format on */

size_t cdi_item_size(const struct cdi_member *member)
{
	if (member->kind == CDI_MEMBER_TEXTS)
		return sizeof(const char *);
	return member->kind == CDI_MEMBER_GROUPS ? sizeof(uint32_t) : member->object->size;
}

enum cdi_version cdi_version_of_device(const char *name)
{
	return name[0] >= '0' && name[0] <= '9' ? CDI_0_5_0 : CDI_0_3_0;
}

enum cdi_version cdi_version_of_class(const char *class_)
{
	return strchr(class_, '.') ? CDI_0_6_0 : CDI_0_3_0;
}
