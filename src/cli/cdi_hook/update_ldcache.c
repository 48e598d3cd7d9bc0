/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update_ldcache: makes the container's loader find the libraries in the given directories (SPEC
 * ctk-and-cdi 2.3). No ldconfig is run, neither the host's nor the image's: the whole cache is
 * rebuilt as ldconfig would build it (docs/ld-so-cache.md), and musl's search path is extended.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/option_rows.h"
#include "base/root.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "image/inspect.h"
#include "plan/loader_search.h"

#define CONF_PATH "/etc/ld.so.conf"

/*
 * Without this file, what other hooks (enable-cuda-compat) put into the directory would not be
 * read.
 */
static int add_conf(const struct graft_target *target, struct graft_plan *plan, struct graft_error *err)
{
	struct graft_edit *edit;
	struct stat st;

	if (graft_image_root_stat(&target->root, CONF_PATH, &st) != -ENOENT)
		return 0;
	edit = cdi_hook_edit(plan, GRAFT_EDIT_FILE, CONF_PATH);
	if (!edit)
		return graft_fail_memory(err);
	edit->content = "include " CONF_PATH ".d/*.conf\n";
	edit->mode = 0644;
	return 0;
}

static int add_folders(struct cdi_hook *hook, struct graft_plan *plan, const struct graft_image *image,
		       struct graft_error *err)
{
	struct graft_edit *edit = cdi_hook_edit(plan, GRAFT_EDIT_LDCACHE, NULL);

	if (!edit)
		return graft_fail_memory(err);
	for (size_t i = 0; i < hook->folders.n; i++) {
		const char *folder = hook->folders.items[i];

		if (folder[0] == '\0')
			continue;
		if (folder[0] != '/')
			folder = graft_arena_printf(hook->arena, "/%s", folder);
		if (!folder || !graft_loader_add_folder(plan->arena, edit, folder))
			return graft_fail_memory(err);
	}
	graft_loader_search(plan->arena, image, edit);
	return 0;
}

static int fill_ldcache_update(struct cdi_hook *hook, const struct graft_target *target, struct graft_plan *plan,
			       struct graft_error *err)
{
	struct graft_image image = { .debian = false };

	if (graft_image_inspect_loader(&target->root, NULL, &hook->log, hook->arena, &image, err) < 0)
		return -1;
	if (!graft_loader_is_musl(&image) && add_conf(target, plan, err) < 0)
		return -1;
	return add_folders(hook, plan, &image, err);
}

static int update_ldcache(void *target, struct graft_error *err)
{
	static const struct cdi_hook_job job = { .fill = fill_ldcache_update,
						 .rebuild_ldcache = true,
						 .failure = "failed to update ldcache" };
	struct cdi_hook *hook = target;

	if (hook->ldconfig_path[0] == '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "ldconfig-path must be specified");
	return cdi_hook_do(hook, &job, err);
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct cdi_hook, member)
static const struct graft_option options[] = {
	{ .name = "folder", .argument = GRAFT_OPTION_REQUIRED, .parse = cdi_hook_parse_list, AT(folders),
	  .value_name = "DIR",
	  .help = "Directory of the container that the loader must search; can be repeated" },
	{ .name = "ldconfig-path", TEXT, AT(ldconfig_path), .value_name = "FILE",
	  .help = "Accepted for compatibility: no program is run" },
	CDI_HOOK_CONTAINER_SPEC(false),
};
/* clang-format on */

const struct graft_command cdi_hook_update_ldcache = {
	CDI_HOOK_COMMAND,
	.name = "update-ldcache",
	.summary = "Update the dynamic loader's cache of the container",
	GRAFT_OPTIONS(options),
	.work = update_ldcache,
};
