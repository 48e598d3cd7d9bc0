/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create_symlinks: creates the links TARGET::LINK in the container (SPEC ctk-and-cdi 2.1, 6.4). A
 * link's text is stored verbatim and never resolved.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/image_root.h"
#include "base/strings.h"
#include "cli/cdi_hook/cdi_hook.h"
#include "plan/hook_edits.h"

/*
 * If a link would point to itself and a file exists at its path, the file is what was meant and
 * stays.
 */
static bool is_its_own_target(const struct graft_image_root *root, const struct graft_hook_link *link)
{
	struct stat st;
	auto_close int fd = strcmp(link->says, link->path) == 0 ? graft_image_root_look(root, link->path, O_NOFOLLOW)
								: -1;

	return fd >= 0 && fstat(fd, &st) == 0 && !S_ISLNK(st.st_mode);
}

static int fill_symlinks(struct cdi_hook *hook, const struct graft_target *target, struct graft_plan *plan,
			 struct graft_error *err)
{
	for (size_t i = 0; i < hook->links.n; i++) {
		struct graft_hook_link link;

		if (graft_budget_is_spent(hook->budget))
			return graft_fail(err, GRAFT_TOO_BIG, 0, "checking %zu links takes too long", hook->links.n);
		if (graft_is_in(hook->links.items, i, hook->links.items[i]))
			continue;
		if (graft_hook_read_link(hook->links.items[i], hook->arena, &link, err) < 0)
			return -1;
		if (!is_its_own_target(&target->root, &link) && !graft_hook_add_link(plan, &link))
			return graft_fail_memory(err);
	}
	return 0;
}

static int create_symlinks(void *target, struct graft_error *err)
{
	static const struct cdi_hook_job job = { .fill = fill_symlinks, .failure = "failed to create links" };
	struct cdi_hook *hook = target;

	return hook->links.n > 0 ? cdi_hook_do(hook, &job, err) : 0;
}

static const struct graft_option options[] = {
	{ .name = "link",
	  .argument = GRAFT_OPTION_REQUIRED,
	  .value_name = "TARGET::LINK",
	  .help = "Create LINK in the container, pointing to TARGET; can be repeated",
	  .parse = cdi_hook_parse_list,
	  .offset = offsetof(struct cdi_hook, links) },
	CDI_HOOK_CONTAINER_SPEC(true),
};

const struct graft_command cdi_hook_create_symlinks = {
	CDI_HOOK_COMMAND,       .name = "create-symlinks", .summary = "Create symbolic links in the container",
	GRAFT_OPTIONS(options), .work = create_symlinks,
};
