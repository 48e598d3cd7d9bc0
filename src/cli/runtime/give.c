/* SPDX-License-Identifier: Apache-2.0 */
/* give: from a plan to a container's configuration. Decides nothing. */
#include "cli/runtime/give.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "apply/target.h"
#include "apply/to_oci.h"
#include "base/caps.h"

/* --- before the plan --- */

int runtime_open_image(const struct runtime_create *create, struct graft_root *root, struct graft_error *err)
{
	const char *path = create->spec->root_path;
	int fd;

	if (!path || path[0] == '\0')
		return 0;
	if (path[0] != '/' && create->bundle)
		path = graft_arena_printf(create->arena, "%s/%s", create->bundle, path);
	if (!path)
		return graft_fail_memory(err);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		graft_debug(create->log, "the container's root cannot be seen yet: %s", path);
		return 0;
	}
	graft_root_take(root, fd);
	root->texts = create->texts;
	return 1;
}

uint32_t runtime_disabled_hooks(const struct runtime_create *create)
{
	const struct graft_strings *words = &create->config->runtime.jit_disable_hooks;
	uint32_t hooks = 0;

	for (size_t i = 0; i < words->n; i++) {
		struct graft_error why = { .status = GRAFT_OK };

		if (graft_policy_disable_hook(&hooks, words->items[i], &why) < 0)
			graft_warn(create->log, "%s", why.msg);
	}
	return hooks;
}

bool runtime_binds_nodes(const struct runtime_create *create)
{
	return create->spec->new_user_namespace || geteuid() != 0 || graft_in_user_namespace();
}

/* --- the plan --- */

static void log_plan(const struct graft_log *log, const struct graft_plan *plan)
{
	if (plan->simulated)
		graft_warn(log, "the driver is simulated, no GPU is behind it");
	for (size_t i = 0; i < plan->n_grants; i++) {
		const struct graft_grant *grant = &plan->grants[i];
		const char *name = grant->uuid ? grant->uuid : grant->model;

		graft_info(log, "granting GPU %u%s%s", grant->index, name ? ": " : "", name ? name : "");
	}
	for (size_t i = 0; i < plan->n_edits; i++)
		graft_debug(log, "%s %s: %s", graft_edit_names[plan->edits[i].kind],
			    plan->edits[i].target ? plan->edits[i].target : "", plan->edits[i].why);
	for (size_t i = 0; i < plan->n_refusals; i++)
		graft_debug(log, "not given: %s: %s", plan->refusals[i].what, plan->refusals[i].why);
}

/* A cgroup of systemd's is named "slice:prefix:name", or not at all. */
static bool may_be_systemd(const struct graft_oci_spec *spec)
{
	return !spec->cgroups_path || strchr(spec->cgroups_path, ':');
}

void runtime_link_nodes(const struct runtime_create *create, const struct graft_dev_char *nodes, size_t n_nodes)
{
	struct graft_error why = { .status = GRAFT_OK };

	if (n_nodes == 0 || geteuid() != 0 || !may_be_systemd(create->spec))
		return;
	if (graft_dev_char_make(nodes, n_nodes, create->log, &why) < 0)
		graft_warn(create->log, "%s; the next 'systemctl daemon-reload' may take the GPUs away", why.msg);
}

/* A link to what is not there yet would help nobody: low-level runtimes look through it. */
static int link_nodes_of_plan(const struct runtime_create *create, const struct graft_plan *plan,
			      struct graft_error *err)
{
	struct graft_dev_char *nodes = graft_arena_list(create->arena, plan->n_edits, sizeof(*nodes));
	size_t n = 0;

	if (plan->n_edits > 0 && !nodes)
		return graft_fail_memory(err);
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];

		if (edit->kind == GRAFT_EDIT_DEVICE && !edit->optional)
			nodes[n++] = (struct graft_dev_char){ .major = edit->major,
							      .minor = edit->minor,
							      .path = edit->source ? edit->source : edit->target };
	}
	runtime_link_nodes(create, nodes, n);
	return 0;
}

/* What an ldconfig in the root would search. */
static const char **list_loader_dirs(struct graft_arena *arena, const struct graft_image *image, size_t *ret_n)
{
	const char **dirs;

	*ret_n = image->n_loader_dirs;
	if (image->n_added_dirs == 0)
		return image->loader_dirs;
	*ret_n = image->n_added_dirs + image->n_loader_dirs;
	dirs = graft_arena_list(arena, *ret_n, sizeof(*dirs));
	if (!dirs)
		return NULL;
	memcpy(dirs, image->added_dirs, image->n_added_dirs * sizeof(*dirs));
	memcpy(dirs + image->n_added_dirs, image->loader_dirs, image->n_loader_dirs * sizeof(*dirs));
	return dirs;
}

/* Whether we come back, and may join the container then: in a user namespace its mounts are to be changed from inside alone. */
static bool may_wait(const struct runtime_create *create)
{
	return create->comes_back && !create->waiting.plan && !runtime_binds_nodes(create) &&
	       graft_caps_hold(GRAFT_CAPS_MOUNT);
}

int runtime_give(struct runtime_create *create, const struct graft_plan *plan, const struct graft_image *image,
		 const struct graft_log *detail, struct graft_error *err)
{
	bool known = image && image->libc != GRAFT_LIBC_MUSL; /* which has no ld.so.conf */
	size_t n_loader_dirs = 0;
	struct graft_oci_waiting waiting = { .plan = NULL };
	const char **loader_dirs = known ? list_loader_dirs(create->arena, image, &n_loader_dirs) : NULL;
	const struct graft_oci_options options = {
		.hook_path = create->cdi_hook_path,
		.hook_root = create->hook_root,
		.no_additional_gids = create->config->features.no_additional_gids_for_device_nodes,
		.loader_dirs = loader_dirs,
		.n_loader_dirs = n_loader_dirs,
		.other_mounts = create->other_mounts,
		.n_other_mounts = create->n_other_mounts,
		.texts = create->texts,
		.log = detail,
		.ret_waiting = may_wait(create) ? &waiting : NULL,
	};

	if (n_loader_dirs > 0 && !loader_dirs)
		return graft_fail_memory(err);
	log_plan(create->log, plan);
	if (link_nodes_of_plan(create, plan, err) < 0)
		return -1;
	/* ---- privileged work starts here: all input is parsed, all decisions are in the plan ---- */
	if (graft_apply_to_oci(plan, create->bundle, create->spec, &options, create->document, err) < 0)
		return -1;
	if (waiting.plan)
		create->waiting = waiting;
	return 0;
}
