/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_spec: converts the tree of a config.json to plain data. Takes the members that it knows and
 * ignores the rest. Knows nothing about GPUs.
 */
#include "formats/oci_spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"

static bool read_u32(const struct graft_json_node *node, uint32_t *ret_value)
{
	uint64_t value;

	if (!graft_json_node_u64(node, &value) || value > UINT32_MAX)
		return false;
	*ret_value = (uint32_t)value;
	return true;
}

/* Reads an array's strings, borrowed from the document. Other elements are skipped. */
static int read_oci_strings(const struct graft_json_node *array, struct graft_arena *arena, const char ***ret_strings,
			    size_t *ret_n, struct graft_error *err)
{
	size_t count = graft_json_node_kind(array) == GRAFT_JSON_ARRAY ? graft_json_node_count(array) : 0;
	const char **strings = graft_arena_list(arena, count, sizeof(*strings));
	const struct graft_json_node *item = count > 0 ? graft_json_node_first(array) : NULL;
	size_t n = 0;

	if (count > 0 && !strings)
		return graft_fail_memory(err);
	for (; item; item = graft_json_node_next(item)) {
		const char *string = graft_json_node_string(item);

		if (string)
			strings[n++] = string;
	}
	*ret_strings = strings;
	*ret_n = n;
	return 0;
}

static int read_env(const struct graft_json_node *process, struct graft_oci_spec *spec, struct graft_error *err)
{
	const struct graft_json_node *env = graft_json_node_member(process, "env");
	size_t n = 0;

	if (read_oci_strings(env, spec->arena, &spec->env, &spec->n_env, err) < 0)
		return -1;
	for (size_t i = 0; i < spec->n_env; i++) {
		if (strchr(spec->env[i], '='))
			spec->env[n++] = spec->env[i];
	}
	spec->n_env = n;
	if (graft_json_node_kind(env) == GRAFT_JSON_ARRAY)
		spec->n_malformed_env = graft_json_node_count(env) - n;
	return 0;
}

/*
 * SPEC runtime-and-hook 4.2: from 1.0.0-rc1 up to, but not including, 1.0.0-rc5 the capabilities
 * were a single list. Semantic versions compare that part as text: versions in that range begin
 * with "rc1" to "rc4".
 */
static bool has_plain_capabilities(const char *version)
{
	static const char release[] = "1.0.0-rc", allowed[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
							      "abcdefghijklmnopqrstuvwxyz-.+";
	size_t length = strlen(release);

	if (!version || strncmp(version, release, length) != 0 || version[strspn(version, allowed)] != '\0')
		return false;
	return version[length] >= '1' && version[length] <= '4';
}

static bool is_privileged(const struct graft_json_node *process, const char *version)
{
	const struct graft_json_node *list = graft_json_node_member(process, "capabilities");

	if (!has_plain_capabilities(version))
		list = graft_json_node_member(list, "bounding");
	if (graft_json_node_kind(list) != GRAFT_JSON_ARRAY)
		return false;
	GRAFT_JSON_EACH(item, list) {
		const char *name = graft_json_node_string(item);

		if (name && strcmp(name, "CAP_SYS_ADMIN") == 0)
			return true;
	}
	return false;
}

static int read_process(const struct graft_json_node *process, struct graft_oci_spec *spec, struct graft_error *err)
{
	spec->has_process = graft_json_node_kind(process) == GRAFT_JSON_OBJECT;
	spec->privileged = is_privileged(process, spec->oci_version);
	(void)read_u32(graft_json_node_at(process, "user.uid"), &spec->uid);
	(void)read_u32(graft_json_node_at(process, "user.gid"), &spec->gid);
	spec->program = graft_json_node_string(graft_json_node_first(graft_json_node_member(process, "args")));
	spec->cwd = graft_json_node_string(graft_json_node_member(process, "cwd"));
	return read_env(process, spec, err);
}

/* Returns the next object of an array, starting with `node` itself; NULL at the end. */
static struct graft_json_node *next_object(struct graft_json_node *node)
{
	while (node && graft_json_node_kind(node) != GRAFT_JSON_OBJECT)
		node = graft_json_node_next(node);
	return node;
}

/*
 * Finds the first object of what should be an array of objects, and allocates as many items as the
 * array has elements.
 */
static int first_object(const struct graft_json_node *array, struct graft_arena *arena, size_t item_size,
			struct graft_json_node **ret_first, void *ret_items, struct graft_error *err)
{
	size_t count = graft_json_node_kind(array) == GRAFT_JSON_ARRAY ? graft_json_node_count(array) : 0;
	void *items = graft_arena_list(arena, count, item_size);

	if (count > 0 && !items)
		return graft_fail_memory(err);
	memcpy(ret_items, &items, sizeof(items));
	*ret_first = count > 0 ? next_object(graft_json_node_first(array)) : NULL;
	return 0;
}

static const char *string_of(const struct graft_json_node *object, const char *name)
{
	return graft_json_node_string(graft_json_node_member(object, name));
}

static int read_oci_mounts(const struct graft_json_node *array, struct graft_oci_spec *spec, struct graft_error *err)
{
	struct graft_json_node *node;

	if (first_object(array, spec->arena, sizeof(*spec->mounts), &node, &spec->mounts, err) < 0)
		return -1;
	for (; node; node = next_object(graft_json_node_next(node))) {
		struct graft_oci_mount *mount = &spec->mounts[spec->n_mounts++];

		mount->node = node;
		mount->destination = string_of(node, "destination");
		mount->source = string_of(node, "source");
		mount->type = string_of(node, "type");
		if (read_oci_strings(graft_json_node_member(node, "options"), spec->arena, &mount->options,
				     &mount->n_options, err) < 0)
			return -1;
	}
	return 0;
}

static int read_prestart(const struct graft_json_node *array, struct graft_oci_spec *spec, struct graft_error *err)
{
	struct graft_json_node *node;

	if (first_object(array, spec->arena, sizeof(*spec->prestart), &node, &spec->prestart, err) < 0)
		return -1;
	for (; node; node = next_object(graft_json_node_next(node))) {
		struct graft_oci_hook *hook = &spec->prestart[spec->n_prestart++];

		hook->node = node;
		hook->path = string_of(node, "path");
	}
	return 0;
}

static int read_mappings(const struct graft_json_node *array, struct graft_arena *arena,
			 struct graft_oci_id_mapping **ret_mappings, size_t *ret_n, struct graft_error *err)
{
	struct graft_json_node *node;

	if (first_object(array, arena, sizeof(**ret_mappings), &node, ret_mappings, err) < 0)
		return -1;
	for (; node; node = next_object(graft_json_node_next(node))) {
		struct graft_oci_id_mapping mapping;

		if (read_u32(graft_json_node_member(node, "containerID"), &mapping.container_id) &&
		    read_u32(graft_json_node_member(node, "hostID"), &mapping.host_id) &&
		    read_u32(graft_json_node_member(node, "size"), &mapping.size))
			(*ret_mappings)[(*ret_n)++] = mapping;
	}
	return 0;
}

static void read_namespaces(const struct graft_json_node *array, struct graft_oci_spec *spec)
{
	struct graft_json_node *node = graft_json_node_first(array);

	for (node = next_object(node); node; node = next_object(graft_json_node_next(node))) {
		const char *type = string_of(node, "type"), *path = string_of(node, "path");

		if (type && strcmp(type, "user") == 0)
			spec->new_user_namespace = true;
		if (type && strcmp(type, "mount") == 0)
			spec->new_mount_namespace = !path || path[0] == '\0';
	}
}

static int read_oci_devices(const struct graft_json_node *array, struct graft_oci_spec *spec, struct graft_error *err)
{
	struct graft_json_node *node;

	if (first_object(array, spec->arena, sizeof(*spec->devices), &node, &spec->devices, err) < 0)
		return -1;
	for (; node; node = next_object(graft_json_node_next(node))) {
		const char *path = string_of(node, "path");

		if (path)
			spec->devices[spec->n_devices++] = path;
	}
	return 0;
}

static int read_linux(const struct graft_json_node *node, struct graft_oci_spec *spec, struct graft_error *err)
{
	spec->cgroups_path = string_of(node, "cgroupsPath");
	read_namespaces(graft_json_node_member(node, "namespaces"), spec);
	if (read_oci_devices(graft_json_node_member(node, "devices"), spec, err) < 0 ||
	    read_oci_strings(graft_json_node_member(node, "maskedPaths"), spec->arena, &spec->masked_paths,
			     &spec->n_masked_paths, err) < 0 ||
	    read_oci_strings(graft_json_node_member(node, "readonlyPaths"), spec->arena, &spec->readonly_paths,
			     &spec->n_readonly_paths, err) < 0 ||
	    read_mappings(graft_json_node_member(node, "uidMappings"), spec->arena, &spec->uid_mappings,
			  &spec->n_uid_mappings, err) < 0)
		return -1;
	return read_mappings(graft_json_node_member(node, "gidMappings"), spec->arena, &spec->gid_mappings,
			     &spec->n_gid_mappings, err);
}

struct placed_annotation {
	struct graft_oci_annotation annotation;
	size_t place;
};

/* Sorts by key; of equal keys, the last one in the text comes first. */
static int compare_annotations(const void *a, const void *b)
{
	const struct placed_annotation *x = a, *y = b;
	int order = strcmp(x->annotation.key, y->annotation.key);

	return order != 0 ? order : x->place < y->place ? 1 : -1;
}

static size_t collect_annotations(const struct graft_json_node *object, struct placed_annotation *list)
{
	size_t n = 0;

	GRAFT_JSON_EACH(node, object) {
		const char *key = graft_json_node_name(node), *value = graft_json_node_string(node);

		if (key && value) {
			list[n] = (struct placed_annotation){ { key, value }, n };
			n++;
		}
	}
	if (n > 0)
		qsort(list, n, sizeof(*list), compare_annotations);
	return n;
}

static int read_annotations(const struct graft_json_node *object, struct graft_oci_spec *spec, struct graft_error *err)
{
	size_t count = graft_json_node_kind(object) == GRAFT_JSON_OBJECT ? graft_json_node_count(object) : 0;
	struct placed_annotation *list = graft_arena_list(spec->arena, count, sizeof(*list));
	size_t n;

	spec->annotations = graft_arena_list(spec->arena, count, sizeof(*spec->annotations));
	if (count > 0 && (!list || !spec->annotations))
		return graft_fail_memory(err);
	n = count > 0 ? collect_annotations(object, list) : 0;
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || strcmp(list[i - 1].annotation.key, list[i].annotation.key) != 0)
			spec->annotations[spec->n_annotations++] = list[i].annotation;
	}
	return 0;
}

int graft_oci_spec_read(const struct graft_json_document *document, struct graft_arena *arena,
			struct graft_oci_spec *ret_spec, struct graft_error *err)
{
	const struct graft_json_node *root = graft_json_document_root(document);
	struct graft_oci_spec spec = { .arena = arena };

	if (graft_json_node_kind(root) != GRAFT_JSON_OBJECT)
		return graft_fail(err, GRAFT_FORMAT, 0, "the OCI specification is not a JSON object");
	spec.oci_version = string_of(root, "ociVersion");
	spec.root_path = graft_json_node_string(graft_json_node_at(root, "root.path"));
	spec.root_readonly = graft_json_node_is_true(graft_json_node_at(root, "root.readonly"));
	if (read_process(graft_json_node_member(root, "process"), &spec, err) < 0 ||
	    read_oci_mounts(graft_json_node_member(root, "mounts"), &spec, err) < 0 ||
	    read_annotations(graft_json_node_member(root, "annotations"), &spec, err) < 0 ||
	    read_prestart(graft_json_node_at(root, "hooks.prestart"), &spec, err) < 0 ||
	    read_linux(graft_json_node_member(root, "linux"), &spec, err) < 0)
		return -1;
	*ret_spec = spec;
	return 0;
}

int graft_oci_spec_check(const struct graft_oci_spec *spec, struct graft_error *err)
{
	const char *what = NULL;

	if (!spec->oci_version || spec->oci_version[0] == '\0')
		what = "Version";
	else if (!spec->has_process)
		what = "Process";
	else if (!spec->root_path || spec->root_path[0] == '\0')
		what = "Root";
	return what ? graft_fail(err, GRAFT_FORMAT, 0, "%s is empty in OCI spec", what) : 0;
}

const char *graft_oci_spec_env(const struct graft_oci_spec *spec, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = spec->n_env; i > 0; i--) {
		const char *entry = spec->env[i - 1];

		if (strncmp(entry, name, length) == 0 && entry[length] == '=')
			return entry + length + 1;
	}
	return NULL;
}

const char *graft_oci_mount_source(const struct graft_oci_mount *mount, const char *bundle, struct graft_arena *arena)
{
	const char *source = mount->source;

	if (!source || source[0] == '/' || !bundle)
		return source ? graft_arena_strdup(arena, source) : NULL;
	return graft_arena_printf(arena, "%s/%s", bundle, source);
}

const char **graft_oci_spec_sources(const struct graft_oci_spec *spec, const char *bundle, struct graft_arena *arena,
				    size_t *ret_n)
{
	const char **sources = graft_arena_list(arena, spec->n_mounts + 1, sizeof(*sources));

	*ret_n = 0;
	for (size_t i = 0; sources && i < spec->n_mounts; i++) {
		const char *to = spec->mounts[i].destination;

		/* What is to be the root is not a volume. */
		if (spec->mounts[i].source && to && strcmp(to, "/") != 0)
			sources[(*ret_n)++] = graft_oci_mount_source(&spec->mounts[i], bundle, arena);
	}
	return graft_arena_failed(arena) ? NULL : sources;
}

const struct graft_oci_mount *graft_oci_spec_mount_at(const struct graft_oci_spec *spec, const char *place,
						      struct graft_arena *arena)
{
	for (size_t i = spec->n_mounts; i-- > 0;) {
		const char *given = spec->mounts[i].destination;
		const char *path = given ? graft_path_clean("/", given, arena) : NULL;

		if (path && strcmp(path, place) == 0)
			return &spec->mounts[i];
	}
	return NULL;
}

/* Copies a member that is a string or absent. Anything else is refused. */
static int read_state_string(const struct graft_json_node *root, const char *name, struct graft_arena *arena,
			     const char **ret_string, struct graft_error *err)
{
	const struct graft_json_node *node = graft_json_node_member(root, name);
	const char *string = graft_json_node_string(node);

	if (!node || graft_json_node_kind(node) == GRAFT_JSON_NULL)
		return 0;
	if (!string)
		return graft_fail(err, GRAFT_FORMAT, 0, "'%s' must be a string", name);
	*ret_string = graft_arena_strdup(arena, string);
	return *ret_string ? 0 : graft_fail_memory(err);
}

static int read_oci_state(const struct graft_json_node *root, struct graft_arena *arena, struct graft_oci_state *state,
			  struct graft_error *err)
{
	const struct graft_json_node *pid = graft_json_node_member(root, "pid");
	const char *bundle = NULL, *old_bundle = NULL;

	if (graft_json_node_kind(root) != GRAFT_JSON_OBJECT)
		return graft_fail(err, GRAFT_FORMAT, 0, "it is not a JSON object");
	if (pid && graft_json_node_kind(pid) != GRAFT_JSON_NULL && !graft_json_node_i64(pid, &state->pid))
		return graft_fail(err, GRAFT_FORMAT, 0, "'pid' must be a whole number");
	if (read_state_string(root, "bundle", arena, &bundle, err) < 0 ||
	    read_state_string(root, "bundlePath", arena, &old_bundle, err) < 0 ||
	    read_state_string(root, "id", arena, &state->id, err) < 0 ||
	    read_state_string(root, "status", arena, &state->status, err) < 0)
		return -1;
	state->bundle = bundle && bundle[0] != '\0' ? bundle : old_bundle;
	return 0;
}

int graft_oci_state_read(const char *text, size_t length, struct graft_arena *arena, struct graft_oci_state *ret_state,
			 struct graft_error *err)
{
	auto_json_document struct graft_json_document *document = NULL;
	struct graft_oci_state state = { .pid = 0 };

	if (graft_json_document_parse_first(NULL, text, length, &document, err) < 0 ||
	    read_oci_state(graft_json_document_root(document), arena, &state, err) < 0)
		return graft_wrap(err, "could not decode container state");
	*ret_state = state;
	return 0;
}
