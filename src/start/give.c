/* SPDX-License-Identifier: Apache-2.0 */
/* give: applies a plan to a container's configuration. Decides nothing. */
#include "start/give.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/namespace/target.h"
#include "apply/oci/to_oci.h"
#include "base/caps.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "start/host_mounts.h"
#include "start/room.h"

/* --- before the plan --- */

int graft_start_open_image(const struct graft_start *create, struct graft_image_root *root, struct graft_error *err)
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
		graft_debug(create->log, "the container's root is not visible yet: %s", path);
		return 0;
	}
	graft_image_root_take(root, fd, create->budget);
	return 1;
}

#define LINKS_MAX 40 /* as in the kernel */

const char *graft_start_find_image_place(const struct graft_image_root *root, const char *path,
					 struct graft_arena *arena)
{
	const char *part = path;
	int n_links = 0;

	while (part && path && n_links <= LINKS_MAX) {
		const char *rest = path + strlen(part), *place, *directory;
		int rc = graft_image_root_resolve(root, part, arena, &place, NULL);
		auto_close int fd = rc == -ENOENT ? graft_image_root_look(root, part, O_NOFOLLOW) : -1;
		char text[PATH_MAX];
		ssize_t n;

		rest += strspn(rest, "/");
		if (rc == 0)
			return rest[0] == '\0' ? place : graft_path_clean(place, rest, arena);
		if (rc == -ENOTDIR)
			return path;
		if (rc != -ENOENT || (fd < 0 && strcmp(part, "/") == 0))
			return NULL;
		directory = graft_path_directory(part, arena);
		if (fd < 0) {
			part = directory;
			continue;
		}
		/* A link to what does not exist. */
		n = readlinkat(fd, "", text, sizeof(text) - 1);
		if (n <= 0 || !directory || graft_image_root_resolve(root, directory, arena, &place, NULL) < 0)
			return NULL;
		text[n] = '\0';
		part = path = graft_arena_printf(arena, "%s/%s%s%s", text[0] == '/' ? "" : place, text,
						 rest[0] == '\0' ? "" : "/", rest);
		n_links++;
	}
	return NULL;
}

const char *graft_start_image_place(const struct graft_image_root *root, const char *path, struct graft_arena *arena)
{
	const char *place = root && !graft_path_is_system(path) ? graft_start_find_image_place(root, path, arena)
								: NULL;

	return place ? place : path;
}

bool graft_start_is_bind(const struct graft_oci_mount *mount)
{
	return (mount->type && strcmp(mount->type, "bind") == 0) ||
	       graft_is_in(mount->options, mount->n_options, "bind") ||
	       graft_is_in(mount->options, mount->n_options, "rbind");
}

/* The low-level runtime makes nodes where this leads, which may be a volume. */
static bool is_dev_a_link(const struct graft_image_root *root)
{
	auto_close int fd = graft_image_root_look(root, "/dev", O_NOFOLLOW);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

int graft_start_look_at_mounts(struct graft_start *create, struct graft_error *err)
{
	auto_image_root struct graft_image_root root = GRAFT_IMAGE_ROOT_INIT;
	int rc = graft_start_open_image(create, &root, err);
	bool *plain;

	if (rc <= 0)
		return rc;
	if (is_dev_a_link(&root))
		return graft_fail(err, GRAFT_UNSAFE, 0,
				  "/dev of the image is a link: nodes would be made where it leads");
	plain = graft_arena_list(create->arena, create->spec->n_mounts + 1, sizeof(*plain));
	if (!plain)
		return graft_fail_memory(err);
	create->plain_mounts = plain;
	for (size_t i = 0; i < create->spec->n_mounts; i++) {
		const struct graft_oci_mount *mount = &create->spec->mounts[i];

		if (!graft_start_is_bind(mount) || !mount->destination || strcmp(mount->destination, "/") == 0)
			continue;
		rc = graft_image_root_look_plain(&root, mount->destination);
		plain[i] = rc == 0 || rc == -ENOENT;
	}
	return 0;
}

uint32_t graft_start_disabled_hooks(const struct graft_start *create)
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

bool graft_start_binds_nodes(const struct graft_start *create)
{
	return create->spec->new_user_namespace || geteuid() != 0 || graft_in_user_namespace();
}

/* --- the plan --- */

static void log_plan(const struct graft_log *log, const struct graft_plan *plan)
{
	if (plan->simulated)
		graft_warn(log, "the driver is simulated: there is no real GPU");
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

/* systemd's cgroups are named "slice:prefix:name", or cgroupsPath is absent. */
static bool may_be_systemd(const struct graft_oci_spec *spec)
{
	return !spec->cgroups_path || strchr(spec->cgroups_path, ':');
}

void graft_start_link_nodes(const struct graft_start *create, const struct graft_dev_char *nodes, size_t n_nodes)
{
	struct graft_error why = { .status = GRAFT_OK };

	if (n_nodes == 0 || geteuid() != 0 || !may_be_systemd(create->spec))
		return;
	if (graft_dev_char_make(nodes, n_nodes, create->log, &why) < 0)
		graft_warn(create->log, "%s; the container may lose its GPUs at the next 'systemctl daemon-reload'",
			   why.msg);
}

/*
 * Optional nodes are left out: low-level runtimes follow these links, so one to a missing node is
 * useless.
 */
static int link_nodes_of_plan(const struct graft_start *create, const struct graft_plan *plan, struct graft_error *err)
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
	graft_start_link_nodes(create, nodes, n);
	return 0;
}

/* The directories that ldconfig would search in this root. */
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

/*
 * Whether the caller comes back after `create` and may join the container then. The mounts of a
 * user namespace can only be changed from inside it.
 */
static bool may_wait_for_create(const struct graft_start *create)
{
	if (graft_start_binds_nodes(create) || create->hooks_follow)
		return false;
	return create->only_look || (create->comes_back && !create->waiting.plan && graft_caps_hold(GRAFT_CAPS_MOUNT));
}

int graft_start_give(struct graft_start *create, const struct graft_plan *plan, const struct graft_image *image,
		     const struct graft_log *detail, struct graft_error *err)
{
	bool known = image && image->libc != GRAFT_LIBC_MUSL; /* musl has no ld.so.conf */
	size_t n_loader_dirs = 0;
	struct graft_oci_waiting waiting = { .plan = NULL };
	const char **loader_dirs = known ? list_loader_dirs(create->arena, image, &n_loader_dirs) : NULL;
	const struct graft_oci_options options = {
		.hook_path = create->cdi_hook_path,
		.hook_root = create->hook_root,
		.hooks_follow = create->hooks_follow,
		.no_additional_gids = create->config->features.no_additional_gids_for_device_nodes,
		.mount_directories = graft_start_binds_nodes(create),
		.loader_dirs = loader_dirs,
		.n_loader_dirs = n_loader_dirs,
		.plain_mounts = create->plain_mounts,
		.other_mounts = create->other_mounts,
		.n_other_mounts = create->n_other_mounts,
		.budget = create->budget,
		.late_mounts = create->config->late_mounts,
		.no_late_mounts = create->container->no_late_mounts,
		.only_look = create->only_look,
		.log = detail,
		.ret_waiting = may_wait_for_create(create) ? &waiting : NULL,
	};

	if (n_loader_dirs > 0 && !loader_dirs)
		return graft_fail_memory(err);
	plan = graft_start_join_edits(create, plan, err);
	if (!plan)
		return -1;
	log_plan(create->log, plan);
	plan = graft_start_leave_out_edits(create, plan, err);
	if (!plan)
		return -1;
	if (!create->only_look && link_nodes_of_plan(create, plan, err) < 0)
		return -1;
	/* ---- privileged work starts here: input is parsed, all decisions are in the plan ---- */
	if (graft_apply_to_oci(plan, create->bundle, create->spec, &options, create->document, err) < 0)
		return -1;
	if (waiting.plan)
		create->waiting = waiting;
	return 0;
}

struct graft_host_options graft_start_host_options(const struct graft_start *create)
{
	const char *root = create->config->cli.root;

	return (struct graft_host_options){ .root = root && root[0] != '\0' ? root : NULL,
					    .nvml_uid = (uid_t)-1,
					    .nvml_gid = (gid_t)-1 };
}
