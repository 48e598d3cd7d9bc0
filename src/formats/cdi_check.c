/* SPDX-License-Identifier: Apache-2.0 */
/* cdi_check: the rules of a spec's values, one function per object. The texts are those that people search for. */
#include "formats/cdi_check.h"

#include <string.h>

#include "base/cleanup.h"
#include "formats/cdi.h"
#include "formats/cdi_tree.h"

#define QUOTED_MAX      160
#define CLOS_ID_MAX     4095u
#define NET_DEVICES_MAX 1024u
#define FILE_MODE_MAX   0177777u /* with the bits of the type, which programs that make specs take over */
#define MODE_BITS       07777u

const char *const cdi_version_names[CDI_VERSION_MAX] = { [CDI_UNKNOWN] = "",
#define X(name, text) [CDI_##name] = (text),
							 CDI_VERSION_LIST(X)
#undef X
};

int cdi_check_version(const char *version, enum cdi_version *ret_version, struct graft_error *err)
{
	const char *number = version && version[0] == 'v' ? version + 1 : version;
	char quoted[QUOTED_MAX];

	for (unsigned int i = CDI_UNKNOWN + 1; number && i < CDI_VERSION_MAX; i++) {
		if (strcmp(number, cdi_version_names[i]) == 0) {
			*ret_version = (enum cdi_version)i;
			return 0;
		}
	}
	return graft_fail(err, GRAFT_FORMAT, 0, "invalid version %s",
			  cdi_quote(version ? version : "", quoted, sizeof(quoted)));
}

static bool is_one_of(const char *word, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(word, words[i]) == 0)
			return true;
	}
	return false;
}

static int check_env(const char *const *env, size_t n, struct graft_error *err)
{
	char quoted[QUOTED_MAX];

	for (size_t i = 0; i < n; i++) {
		const char *equals = strchr(env[i], '=');

		if (!equals || equals == env[i])
			return graft_fail(err, GRAFT_FORMAT, 0, "invalid environment variable %s",
					  cdi_quote(env[i], quoted, sizeof(quoted)));
	}
	return 0;
}

int cdi_check_node(void *object, struct graft_error *err)
{
	static const char *const types[] = { "b", "c", "u", "p" };
	struct graft_cdi_node *node = object;
	char path[QUOTED_MAX], value[QUOTED_MAX];

	if (!node->path)
		return graft_fail(err, GRAFT_FORMAT, 0, "invalid (empty) device path");
	(void)cdi_quote(node->path, path, sizeof(path));
	if (node->type && !is_one_of(node->type, types, GRAFT_COUNT(types)))
		return graft_fail(err, GRAFT_FORMAT, 0, "device %s: invalid type %s", path,
				  cdi_quote(node->type, value, sizeof(value)));
	if (node->permissions && strcmp(node->permissions, "none") == 0)
		node->permissions = "";
	if (node->permissions && strspn(node->permissions, "rwm") != strlen(node->permissions))
		return graft_fail(err, GRAFT_FORMAT, 0, "device %s: invalid permissions %s", path,
				  cdi_quote(node->permissions, value, sizeof(value)));
	if (node->mode > FILE_MODE_MAX)
		return graft_fail(err, GRAFT_FORMAT, 0,
				  "device %s: fileMode %u is no file mode (a decimal number in JSON)", path,
				  node->mode);
	node->mode &= MODE_BITS;
	node->has_numbers = node->major != 0 && (!node->type || strcmp(node->type, "p") != 0);
	return 0;
}

int cdi_check_net_device(void *object, struct graft_error *err)
{
	const struct graft_cdi_net_device *net = object;

	if (!net->host_name)
		return graft_fail(err, GRAFT_FORMAT, 0, "invalid network device, empty hostInterfaceName");
	if (!net->name)
		return graft_fail(err, GRAFT_FORMAT, 0, "invalid network device, empty name");
	return 0;
}

int cdi_check_mount(void *object, struct graft_error *err)
{
	const struct graft_cdi_mount *mount = object;

	if (!mount->host_path)
		return graft_fail(err, GRAFT_FORMAT, 0, "invalid mount, empty host path");
	if (!mount->container_path)
		return graft_fail(err, GRAFT_FORMAT, 0, "invalid mount, empty container path");
	return 0;
}

int cdi_check_hook(void *object, struct graft_error *err)
{
	static const char *const stages[] = { "prestart",       "createRuntime", "createContainer",
					      "startContainer", "poststart",     "poststop" };
	const struct graft_cdi_hook *hook = object;
	char quoted[QUOTED_MAX];

	if (!hook->stage || !is_one_of(hook->stage, stages, GRAFT_COUNT(stages)))
		return graft_fail(err, GRAFT_FORMAT, 0, "invalid hook name %s",
				  cdi_quote(hook->stage ? hook->stage : "", quoted, sizeof(quoted)));
	if (!hook->path)
		return graft_fail(err, GRAFT_FORMAT, 0, "invalid hook, empty path");
	return check_env(hook->env, hook->n_env, err);
}

int cdi_check_rdt(void *object, struct graft_error *err)
{
	const struct graft_cdi_rdt *rdt = object;
	const char *id = rdt->clos_id;

	/* SECURITY: it becomes the name of a directory below /sys/fs/resctrl. */
	if (id && strcmp(id, "/") != 0 &&
	    (strlen(id) > CLOS_ID_MAX || strcmp(id, ".") == 0 || strcmp(id, "..") == 0 || strpbrk(id, "/\n")))
		return graft_fail(err, GRAFT_FORMAT, 0, "invalid ClosID");
	return 0;
}

int cdi_check_edits(void *object, struct graft_error *err)
{
	const struct graft_cdi_edits *edits = object;
	char quoted[QUOTED_MAX];

	if (edits->n_net_devices > NET_DEVICES_MAX)
		return graft_fail(err, GRAFT_FORMAT, 0, "more than %u network devices", NET_DEVICES_MAX);
	for (size_t i = 0; i < edits->n_net_devices; i++) {
		const struct graft_cdi_net_device *net = &edits->net_devices[i];

		for (size_t j = 0; j < i; j++) {
			if (strcmp(net->host_name, edits->net_devices[j].host_name) == 0 ||
			    strcmp(net->name, edits->net_devices[j].name) == 0)
				return graft_fail(err, GRAFT_FORMAT, 0, "invalid network device, %s is there twice",
						  cdi_quote(net->name, quoted, sizeof(quoted)));
		}
	}
	return check_env(edits->env, edits->n_env, err);
}

static bool is_empty(const struct graft_cdi_edits *edits)
{
	return edits->n_env == 0 && edits->n_nodes == 0 && edits->n_net_devices == 0 && edits->n_mounts == 0 &&
	       edits->n_hooks == 0 && edits->n_gids == 0 && !edits->rdt;
}

int cdi_check_device_object(void *object, struct graft_error *err)
{
	const struct graft_cdi_device *device = object;

	if (cdi_check_device(device->name ? device->name : "", err) < 0)
		return -1;
	if (is_empty(&device->edits))
		return graft_fail(err, GRAFT_FORMAT, 0, "invalid device, empty device edits");
	return 0;
}
