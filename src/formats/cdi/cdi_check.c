/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_check: the rules for a spec's values, one function per object. The messages are those of the
 * reference, which people search for.
 */
#include "formats/cdi/cdi_check.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/cdi/cdi_object.h"

#define CLOS_ID_MAX     4095u
#define NET_DEVICES_MAX 1024u
#define FILE_MODE_MAX   0177777u /* includes the bits of the file type, which generators of specs copy */
#define MODE_BITS       07777u

const char *const cdi_version_names[CDI_VERSION_MAX] = { [CDI_UNKNOWN] = "",
#define X(name, text) [CDI_##name] = (text),
							 CDI_VERSION_LIST(X)
#undef X
};

int cdi_check_version(const char *version, enum cdi_version *ret_version, struct graft_error *err)
{
	const char *number = version && version[0] == 'v' ? version + 1 : version;

	for (unsigned int i = CDI_UNKNOWN + 1; number && i < CDI_VERSION_MAX; i++) {
		if (strcmp(number, cdi_version_names[i]) == 0) {
			*ret_version = (enum cdi_version)i;
			return 0;
		}
	}
	return graft_fail(err, GRAFT_FORMAT, 0, "invalid version %s", cdi_quote(version ? version : ""));
}

/* Entries that could not be read are NULL, and were reported already. */
static int check_env(struct cdi_reader *reader, const struct graft_tree_value *value, const char *const *env, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *equals = env[i] ? strchr(env[i], '=') : NULL;

		if (env[i] && (!equals || equals == env[i]) &&
		    cdi_complain(reader, value, "invalid environment variable %s", cdi_quote(env[i])) < 0)
			return -1;
	}
	return 0;
}

/* Complains if a required text is missing. */
static int demand(struct cdi_reader *reader, const struct graft_tree_value *value, const char *text, const char *what)
{
	return text ? 0 : cdi_complain(reader, value, "%s", what);
}

int cdi_check_node(struct cdi_reader *reader, const struct graft_tree_value *value, void *object)
{
	static const char *const types[] = { "b", "c", "u", "p" };
	struct graft_cdi_node *node = object;
	const char *path = node->path ? node->path : "";

	if (node->permissions && strcmp(node->permissions, "none") == 0)
		node->permissions = "";
	if (demand(reader, value, node->path, "invalid (empty) device path") < 0)
		return -1;
	if (node->type && !graft_is_in(types, GRAFT_COUNT(types), node->type) &&
	    cdi_complain(reader, value, "device %s: invalid type %s", cdi_quote(path), cdi_quote(node->type)) < 0)
		return -1;
	if (node->permissions && strspn(node->permissions, "rwm") != strlen(node->permissions) &&
	    cdi_complain(reader, value, "device %s: invalid permissions %s", cdi_quote(path),
			 cdi_quote(node->permissions)) < 0)
		return -1;
	if (node->mode > FILE_MODE_MAX &&
	    cdi_complain(reader, value, "device %s: fileMode %u is not a file mode (a decimal number in JSON)",
			 cdi_quote(path), node->mode) < 0)
		return -1;
	node->mode &= MODE_BITS;
	node->has_numbers = node->major != 0 && (!node->type || strcmp(node->type, "p") != 0);
	return 0;
}

int cdi_check_net_device(struct cdi_reader *reader, const struct graft_tree_value *value, void *object)
{
	const struct graft_cdi_net_device *net = object;

	if (demand(reader, value, net->host_name, "invalid network device, empty hostInterfaceName") < 0)
		return -1;
	return demand(reader, value, net->name, "invalid network device, empty name");
}

int cdi_check_mount(struct cdi_reader *reader, const struct graft_tree_value *value, void *object)
{
	const struct graft_cdi_mount *mount = object;

	if (demand(reader, value, mount->host_path, "invalid mount, empty host path") < 0)
		return -1;
	return demand(reader, value, mount->container_path, "invalid mount, empty container path");
}

int cdi_check_hook(struct cdi_reader *reader, const struct graft_tree_value *value, void *object)
{
	static const char *const stages[] = { "prestart",       "createRuntime", "createContainer",
					      "startContainer", "poststart",     "poststop" };
	const struct graft_cdi_hook *hook = object;

	if ((!hook->stage || !graft_is_in(stages, GRAFT_COUNT(stages), hook->stage)) &&
	    cdi_complain(reader, value, "invalid hook name %s", cdi_quote(hook->stage ? hook->stage : "")) < 0)
		return -1;
	if (demand(reader, value, hook->path, "invalid hook, empty path") < 0)
		return -1;
	if (hook->has_timeout && hook->timeout <= 0 &&
	    cdi_remark(reader, value, "the hook's timeout is %lld seconds, but must be at least 1",
		       (long long)hook->timeout) < 0)
		return -1;
	return check_env(reader, value, hook->env, hook->n_env);
}

int cdi_check_rdt(struct cdi_reader *reader, const struct graft_tree_value *value, void *object)
{
	const struct graft_cdi_rdt *rdt = object;
	const char *id = rdt->clos_id;

	/* SECURITY: it becomes the name of a directory below /sys/fs/resctrl. */
	if (id && strcmp(id, "/") != 0 &&
	    (strlen(id) > CLOS_ID_MAX || strcmp(id, ".") == 0 || strcmp(id, "..") == 0 || strpbrk(id, "/\n")))
		return cdi_complain(reader, value, "invalid ClosID");
	return 0;
}

static bool is_same_cdi_name(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

static int check_net_devices(struct cdi_reader *reader, const struct graft_tree_value *value,
			     const struct graft_cdi_net_device *nets, size_t n)
{
	if (n > NET_DEVICES_MAX)
		return cdi_complain(reader, value, "more than %u network devices", NET_DEVICES_MAX);
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < i; j++) {
			if ((is_same_cdi_name(nets[i].host_name, nets[j].host_name) ||
			     is_same_cdi_name(nets[i].name, nets[j].name)) &&
			    cdi_complain(reader, value, "invalid network device, %s is given twice",
					 cdi_quote(nets[i].name ? nets[i].name : "")) < 0)
				return -1;
		}
	}
	return 0;
}

int cdi_check_edits(struct cdi_reader *reader, const struct graft_tree_value *value, void *object)
{
	const struct graft_cdi_edits *edits = object;

	if (check_net_devices(reader, value, edits->net_devices, edits->n_net_devices) < 0)
		return -1;
	return check_env(reader, value, edits->env, edits->n_env);
}

static bool has_no_edits(const struct graft_cdi_edits *edits)
{
	return edits->n_env == 0 && edits->n_nodes == 0 && edits->n_net_devices == 0 && edits->n_mounts == 0 &&
	       edits->n_hooks == 0 && edits->n_gids == 0 && !edits->rdt;
}

/* Other readers do not check annotations, so this is no reason to refuse a file. */
int cdi_check_annotations(struct cdi_reader *reader, const struct graft_tree_value *value,
			  const struct graft_cdi_annotation *annotations, size_t n)
{
	struct graft_error why = { .status = GRAFT_OK };

	if (!reader->faults || graft_cdi_check_annotations(annotations, n, &why) == 0)
		return 0;
	return cdi_remark(reader, value, "%s", why.msg);
}

int cdi_check_device_object(struct cdi_reader *reader, const struct graft_tree_value *value, void *object)
{
	const struct graft_cdi_device *device = object;
	struct graft_error why = { .status = GRAFT_OK };

	if (graft_cdi_check_device(device->name ? device->name : "", &why) < 0 &&
	    cdi_complain(reader, value, "%s", why.msg) < 0)
		return -1;
	if (has_no_edits(&device->edits) && cdi_complain(reader, value, "invalid device, empty device edits") < 0)
		return -1;
	return cdi_check_annotations(reader, value, device->annotations, device->n_annotations);
}
