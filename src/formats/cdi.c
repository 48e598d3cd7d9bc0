/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi: a spec file as plain data (SPEC ctk-and-cdi 5.1, 5.3, 5.4). One table per object of the data model says which members it has, where
 * they go and since which version; cdi_check.c says what a value must be like. Strict: what is unknown, given twice, or of a wrong type is
 * refused with its place.
 */
#include "formats/cdi.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/cdi_object.h"

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
	{ "permissions", CDI_MEMBER_TEXT, AT(node, permissions) },
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
	{ "type", CDI_MEMBER_TEXT, AT(mount, type), .since = CDI_0_4_0 },
	{ "options", CDI_MEMBER_TEXTS, AT(mount, options), AT(mount, n_options) },
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
	{ "mounts", CDI_MEMBER_OBJECTS, AT(edits, mounts), AT(edits, n_mounts), &mount_object },
	{ "hooks", CDI_MEMBER_OBJECTS, AT(edits, hooks), AT(edits, n_hooks), &hook_object },
	{ "intelRdt", CDI_MEMBER_POINTER, AT(edits, rdt), 0, &rdt_object, CDI_0_7_0, true },
	{ "additionalGids", CDI_MEMBER_GROUPS, AT(edits, gids), AT(edits, n_gids), .since = CDI_0_7_0 },
};
static const struct cdi_object edits_object = { MEMBERS(edits_members), sizeof(struct graft_cdi_edits), cdi_check_edits };

static const struct cdi_member device_members[] = {
	{ "name", CDI_MEMBER_TEXT, AT(device, name) },
	{ "annotations", CDI_MEMBER_WORDS, .since = CDI_0_6_0 },
	{ "containerEdits", CDI_MEMBER_OBJECT, AT(device, edits), 0, &edits_object },
};
static const struct cdi_object device_object = { MEMBERS(device_members), sizeof(struct graft_cdi_device), cdi_check_device_object };

/* In the order in which they are checked. */
struct spec {
	const char *version, *kind;
	struct graft_cdi_spec spec;
};
#define IN_SPEC(m) (offsetof(struct spec, spec) + AT(spec, m))
static const struct cdi_member spec_members[] = {
	{ "cdiVersion", CDI_MEMBER_TEXT, offsetof(struct spec, version) },
	{ "kind", CDI_MEMBER_TEXT, offsetof(struct spec, kind) },
	{ "annotations", CDI_MEMBER_WORDS, .since = CDI_0_6_0 },
	{ "containerEdits", CDI_MEMBER_OBJECT, IN_SPEC(edits), 0, &edits_object },
	{ "devices", CDI_MEMBER_OBJECTS, IN_SPEC(devices), IN_SPEC(n_devices), &device_object },
};
static const struct cdi_object spec_object = { MEMBERS(spec_members), sizeof(struct spec), NULL };
/* clang-format on */

#define QUOTED_MAX 160

/* --- the spec as a whole --- */

static int compare_devices(const void *a, const void *b)
{
	return strcmp((*(const struct graft_cdi_device *const *)a)->name,
		      (*(const struct graft_cdi_device *const *)b)->name);
}

static int check_devices(struct cdi_reader *reader, const struct cdi_value *root, const struct graft_cdi_spec *spec)
{
	auto_free const struct graft_cdi_device **sorted = calloc(spec->n_devices + 1,
								  sizeof(struct graft_cdi_device *));
	char quoted[QUOTED_MAX];

	if (!sorted)
		return graft_fail_memory(reader->err);
	for (size_t i = 0; i < spec->n_devices; i++) {
		sorted[i] = &spec->devices[i];
		/* A version that is too low is looked at once, with all else that asks for one. */
		if (sorted[i]->name[0] >= '0' && sorted[i]->name[0] <= '9' && reader->needed < CDI_0_5_0)
			reader->needed = CDI_0_5_0;
	}
	qsort(sorted, spec->n_devices, sizeof(*sorted), compare_devices);
	for (size_t i = 1; i < spec->n_devices; i++) {
		if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
			return cdi_refuse(reader, root, "invalid spec, multiple device %s",
					  cdi_quote(sorted[i]->name, quoted, sizeof(quoted)));
	}
	return spec->n_devices > 0 ? 0 : cdi_refuse(reader, root, "invalid spec, no devices");
}

/* Version and kind come first, so that a file of another format is told by them. */
static int check_head(struct cdi_reader *reader, const struct cdi_value *root, struct spec *head,
		      enum cdi_version *ret_version)
{
	struct graft_error why = { .status = GRAFT_OK };

	if (cdi_check_version(head->version, ret_version, &why) < 0 ||
	    cdi_check_kind(head->kind ? head->kind : "", reader->arena, &head->spec.vendor, &head->spec.class_, &why) <
		0)
		return why.status == GRAFT_NO_MEMORY ? graft_fail_memory(reader->err)
						     : cdi_refuse(reader, root, "%s", why.msg);
	head->spec.version = head->version;
	if (strchr(head->spec.class_, '.') && reader->needed < CDI_0_6_0)
		reader->needed = CDI_0_6_0;
	return 0;
}

static int read_spec(struct cdi_reader *reader, const struct cdi_value *root, struct graft_cdi_spec *ret_spec)
{
	struct spec head = { .version = NULL };
	enum cdi_version version = CDI_UNKNOWN;

	if (cdi_read_object(reader, root, &spec_object, "the spec", &head) < 0 ||
	    check_head(reader, root, &head, &version) < 0 || check_devices(reader, root, &head.spec) < 0)
		return -1;
	if (version < reader->needed)
		return cdi_refuse(reader, root, "the spec version must be at least v%s",
				  cdi_version_names[reader->needed]);
	head.spec.file = graft_arena_strdup(reader->arena, reader->file);
	if (!head.spec.file)
		return graft_fail_memory(reader->err);
	*ret_spec = head.spec;
	return 0;
}

static bool begins_like_json(const char *text, size_t length)
{
	size_t i = 0;

	while (i < length && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r'))
		i++;
	return i < length && text[i] == '{';
}

/* JSON is YAML, but its own reader is many times faster; what that one refuses may still be YAML that begins with a brace. */
static int read_tree(struct cdi_builder *builder, const char *text, size_t length, const struct cdi_value **ret_root,
		     struct graft_error *err)
{
	struct graft_error json = { .status = GRAFT_OK }, yaml = { .status = GRAFT_OK };
	size_t n = strlen(builder->file);
	bool named_json = n > 5 && strcmp(builder->file + n - 5, ".json") == 0;
	int rc;

	if (begins_like_json(text, length)) {
		builder->err = &json;
		rc = cdi_tree_from_json(builder, text, length, ret_root);
		builder->err = err;
		if (rc == 0)
			return 0;
		if (json.status != GRAFT_FORMAT) {
			*err = json;
			return -1;
		}
		builder->n_values = 0;
	}
	builder->err = &yaml;
	rc = cdi_tree_from_yaml(builder, text, length, ret_root);
	builder->err = err;
	if (rc == 0)
		return 0;
	*err = named_json && json.status != GRAFT_OK && yaml.status == GRAFT_FORMAT ? json : yaml;
	return -1;
}

int graft_cdi_spec_read(const char *file, const char *text, size_t length, struct graft_arena *arena,
			struct graft_cdi_spec *ret_spec, struct graft_error *err)
{
	struct graft_error local = { .status = GRAFT_OK };
	struct cdi_builder builder = { .file = file };
	struct cdi_reader reader = { .file = file, .arena = arena, .needed = CDI_0_3_0, .err = err ? err : &local };
	const struct cdi_value *root;
	int rc = -1;

	if (length > CDI_TEXT_MAX)
		return graft_fail(err, GRAFT_TOO_BIG, 0, "%s: larger than %zu bytes", file, CDI_TEXT_MAX);
	builder.arena = graft_arena_new(SIZE_MAX / 2);
	if (!builder.arena)
		return graft_fail_memory(err);
	if (read_tree(&builder, text, length, &root, reader.err) == 0) {
		reader.budget = builder.n_values + CDI_ALIASED_MAX;
		rc = read_spec(&reader, root, ret_spec);
	}
	cdi_builder_done(&builder);
	(void)graft_arena_free(builder.arena);
	return rc;
}
