/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_csv: edits for what a Tegra board's lists name. In the order of SPEC runtime-and-hook 9.4:
 * nodes, files, links of libraries, links of the lists, the loader's cache, and the variable that
 * keeps another runtime from doing it all again.
 */
#include "plan/plan_csv.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "plan/compat_directory.h"
#include "plan/driver_nodes.h"
#include "plan/loader_search.h"
#include "plan/rules.h"

#define RELEASE_FILE "/etc/nv_tegra_release"

static const char *const control_nodes[] = { "/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
					     "/dev/nvidiactl" };

struct csv_planner {
	struct graft_planner base;
	const struct graft_csv_inventory *csv;
	const struct graft_csv_selection *selection;
	const struct graft_csv_policy *policy;
	size_t n_nodes; /* number given to the container */
};

/* --- nodes --- */

static void give_node(struct csv_planner *planner, const struct graft_node *node, const char *rule, const char *why)
{
	struct graft_planner *base = &planner->base;
	struct graft_edit *edit;

	for (size_t i = 0; i < base->plan->n_edits; i++) {
		if (base->plan->edits[i].kind == GRAFT_EDIT_DEVICE &&
		    strcmp(base->plan->edits[i].target, node->path) == 0)
			return;
	}
	planner->n_nodes++;
	edit = graft_plan_edit(base, GRAFT_EDIT_DEVICE, rule, "%s", why);
	edit->source = graft_plan_on_host(base, planner->csv->dev_root, node->path);
	edit->target = graft_plan_copy(base, node->path);
	edit->major = node->major;
	edit->minor = node->minor;
	edit->mode = node->mode;
	edit->uid = node->uid;
	edit->gid = node->gid;
	edit = graft_plan_edit(base, GRAFT_EDIT_CGROUP, rule, "%s", why);
	edit->major = node->major;
	edit->minor = node->minor;
	edit->access = graft_plan_copy(base, "rwm");
}

/* SPEC runtime-and-hook 9.3: on boards with two GPUs, the lists have the nodes of both. */
static bool belongs(const struct graft_csv_selection *selection, const char *path, bool integrated)
{
	if (selection->single)
		return true;
	if (integrated)
		return strcmp(path, "/dev/nvidia1") != 0;
	return !graft_is_gpu_node(path) && !graft_is_in(control_nodes, GRAFT_COUNT(control_nodes), path);
}

static void give_listed_nodes(struct csv_planner *planner, bool integrated)
{
	const struct graft_csv_inventory *csv = planner->csv;

	for (size_t i = 0; i < csv->n_nodes; i++) {
		if (belongs(planner->selection, csv->nodes[i].path, integrated))
			give_node(planner, &csv->nodes[i], "csv-node", "a device node that the board's CSV files list");
	}
}

static void give_driver_node(struct csv_planner *planner, const char *path)
{
	const struct graft_csv_inventory *csv = planner->csv;

	for (size_t i = 0; i < csv->n_driver_nodes; i++) {
		if (strcmp(csv->driver_nodes[i].path, path) == 0)
			give_node(planner, &csv->driver_nodes[i], "driver-node",
				  "a node of the driver, which both GPUs of this board need");
	}
}

/* Display and render nodes, and the links that name them by the GPU's PCI address. */
static void give_drm(struct csv_planner *planner, const struct graft_gpu *gpu)
{
	for (size_t i = 0; i < gpu->n_drm_nodes; i++) {
		const struct graft_drm_node *drm = &gpu->drm_nodes[i];
		struct graft_edit *edit;

		if (!drm->node.present)
			continue;
		give_node(planner, &drm->node, "drm-node", "a display or render node of the discrete GPU");
		if (!drm->by_path || (planner->policy->disabled_hooks & GRAFT_HOOK_SYMLINKS))
			continue;
		edit = graft_plan_edit(&planner->base, GRAFT_EDIT_SYMLINK, "drm-link",
				       "the name of that node by the GPU's PCI address");
		edit->target = graft_plan_copy(&planner->base, drm->by_path);
		edit->content = graft_plan_copy(&planner->base, drm->by_path_content);
		edit->conflict = GRAFT_CONFLICT_REPLACE;
	}
}

static int give_nodes(struct csv_planner *planner, struct graft_error *err)
{
	const struct graft_csv_selection *selection = planner->selection;

	if (selection->integrated) {
		give_listed_nodes(planner, true);
		if (!selection->single)
			give_driver_node(planner, "/dev/nvidia2");
	}
	if (selection->discrete_gpu) {
		const struct graft_node *node = &selection->discrete_gpu->node;

		if (!node->path || !node->present)
			return graft_fail(err, GRAFT_NOT_FOUND, 0, "GPU 1: its device node %s is not on this host",
					  node->path ? node->path : "/dev/nvidia1");
		give_node(planner, node, "gpu-node", "the discrete GPU, which was selected");
		give_drm(planner, selection->discrete_gpu);
		for (size_t i = 0; i < GRAFT_COUNT(control_nodes); i++)
			give_driver_node(planner, control_nodes[i]);
		give_listed_nodes(planner, false);
	}
	if ((selection->integrated || selection->discrete_gpu) && planner->n_nodes == 0)
		return graft_fail(err, GRAFT_NOT_FOUND, 0,
				  "no device node that the CSV files of this board list exists: install its container "
				  "packages, or state where the files are (--csv.file, "
				  "nvidia-container-runtime.modes.csv.mount-spec-path)");
	return 0;
}

static void add_csv_grant(struct csv_planner *planner, const struct graft_gpu *gpu, uint32_t index)
{
	struct graft_plan *plan = planner->base.plan;
	struct graft_grant *grant = graft_arena_push(plan->arena, &plan->grants, &plan->n_grants, sizeof(*grant));

	if (!grant)
		return;
	grant->index = index;
	grant->model = graft_plan_copy(&planner->base,
				       gpu && gpu->model.value ? gpu->model.value : "the integrated GPU");
	if (!gpu)
		return;
	grant->uuid = graft_plan_copy(&planner->base, gpu->uuid.value);
	grant->bus_id = graft_plan_copy(&planner->base, gpu->bus_id);
	grant->minor = gpu->node.minor;
}

static void tell_grants(struct csv_planner *planner)
{
	if (planner->selection->integrated)
		add_csv_grant(planner, planner->selection->integrated_gpu, 0);
	if (planner->selection->discrete_gpu)
		add_csv_grant(planner, planner->selection->discrete_gpu, 1);
	if (planner->selection->integrated || planner->selection->discrete_gpu)
		return;
	/*
	 * SECURITY: unlike in the existing stack, where no name means all of them (SPEC
	 * runtime-and-hook Q13).
	 */
	for (size_t i = 0; i < planner->csv->n_nodes; i++)
		graft_plan_refuse(&planner->base, "no GPU was selected", "%s", planner->csv->nodes[i].path);
}

/* --- files and links --- */

static void bind_files(struct csv_planner *planner)
{
	const struct graft_csv_inventory *csv = planner->csv;
	struct graft_edit *edit;

	for (size_t i = 0; i < csv->n_files; i++) {
		const struct graft_csv_file *file = &csv->files[i];

		edit = graft_plan_edit(&planner->base, GRAFT_EDIT_BIND, file->directory ? "csv-directory" : "csv-file",
				       "a %s that the board's CSV files list", file->directory ? "directory" : "file");
		edit->source = graft_plan_on_host(&planner->base, csv->root, file->source);
		edit->target = graft_plan_copy(&planner->base, file->target);
		edit->type = file->directory ? GRAFT_SOURCE_DIRECTORY : GRAFT_SOURCE_FILE;
		edit->mode = file->directory ? 0755 : 0644;
		edit->flags = GRAFT_FLAGS_FILE | (file->directory ? (uint32_t)GRAFT_MOUNT_RECURSIVE : 0u);
	}
	if (!csv->release_file)
		return;
	edit = graft_plan_edit(&planner->base, GRAFT_EDIT_BIND, "release-file",
			       "programs identify the board by this file");
	edit->source = graft_plan_copy(&planner->base, RELEASE_FILE);
	edit->target = graft_plan_copy(&planner->base, RELEASE_FILE);
	edit->mode = 0644;
	edit->flags = GRAFT_FLAGS_FILE;
}

static bool is_disabled(struct csv_planner *planner, enum graft_hook hook, const char *what)
{
	if ((planner->policy->disabled_hooks & (uint32_t)hook) == 0)
		return false;
	graft_plan_refuse(&planner->base, "switched off by nvcdi-disable-hooks", "%s", what);
	return true;
}

static void make_csv_links(struct csv_planner *planner)
{
	const struct graft_csv_inventory *csv = planner->csv;

	if (csv->n_links == 0 || is_disabled(planner, GRAFT_HOOK_SYMLINKS, "links"))
		return;
	for (size_t i = 0; i < csv->n_links; i++) {
		const struct graft_csv_link *link = &csv->links[i];
		struct graft_edit *edit = graft_plan_edit(&planner->base, GRAFT_EDIT_SYMLINK,
							  link->listed ? "csv-link" : "library-link", "%s",
							  link->listed ? "a link that the board's CSV files list"
								       : "a name by which programs look for a library");

		edit->target = graft_plan_copy(&planner->base, link->path);
		edit->content = graft_plan_copy(&planner->base, link->says);
		edit->conflict = GRAFT_CONFLICT_REPLACE;
	}
}

/* --- the loader's cache --- */

static void add_folder(struct csv_planner *planner, struct graft_edit *edit, const char *path)
{
	size_t length = (size_t)(graft_path_name(path) - path);

	path = graft_arena_strndup(planner->base.plan->arena, path, length - (length > 1));
	if (path)
		(void)graft_loader_add_folder(planner->base.plan->arena, edit, path);
}

static void add_csv_cache_entry(struct csv_planner *planner, struct graft_edit *edit, const char *soname,
				const char *path, uint32_t abi_flags)
{
	struct graft_arena *arena = planner->base.plan->arena;
	struct graft_ldcache_entry *entry;

	for (size_t i = 0; i < edit->n_entries; i++) {
		if (edit->entries[i].abi_flags == abi_flags && strcmp(edit->entries[i].soname, soname) == 0)
			return; /* the loader uses the first entry */
	}
	entry = graft_arena_push(arena, &edit->entries, &edit->n_entries, sizeof(*entry));
	if (!entry)
		return;
	entry->soname = graft_plan_copy(&planner->base, soname);
	entry->path = graft_plan_copy(&planner->base, path);
	entry->abi_flags = abi_flags;
	add_folder(planner, edit, path);
}

static void refresh_cache(struct csv_planner *planner)
{
	const struct graft_csv_inventory *csv = planner->csv;
	const struct graft_csv_policy *policy = planner->policy;
	const struct graft_image unknown = { .n_compat = 0 };
	struct graft_edit *edit;
	size_t n = 0;

	for (size_t i = 0; i < csv->n_files; i++)
		n += csv->files[i].soname != NULL;
	if (n + policy->n_compat == 0 || is_disabled(planner, GRAFT_HOOK_LDCACHE, "the loader's cache"))
		return;
	edit = graft_plan_edit(&planner->base, GRAFT_EDIT_LDCACHE, "loader-cache",
			       "the image's loader finds libraries by its cache");
	for (size_t i = 0; i < policy->n_compat && (policy->disabled_hooks & GRAFT_HOOK_COMPAT) == 0; i++) {
		const struct graft_compat_library *library = &policy->compat[i];

		if (library->soname)
			graft_compat_add(planner->base.plan->arena, edit, library);
	}
	for (size_t i = 0; i < csv->n_files; i++) {
		const struct graft_csv_file *file = &csv->files[i];
		const char *name = graft_path_name(file->target);
		const char *path;

		if (!file->soname || strchr(file->soname, '/'))
			continue;
		path = graft_arena_printf(planner->base.plan->arena, "%.*s%s", (int)(name - file->target), file->target,
					  file->soname);
		if (path)
			add_csv_cache_entry(planner, edit, file->soname, path, file->abi_flags);
	}
	graft_loader_search(planner->base.plan->arena, policy->image ? policy->image : &unknown, edit);
}

static void set_environment(struct csv_planner *planner)
{
	struct graft_edit *edit = graft_plan_edit(&planner->base, GRAFT_EDIT_ENV, "void",
						  "keeps another runtime or hook from doing this a second time");

	edit->target = graft_plan_copy(&planner->base, "NVIDIA_VISIBLE_DEVICES");
	edit->content = graft_plan_copy(&planner->base, "void");
}

int graft_csv_plan(const struct graft_csv_inventory *csv, const struct graft_csv_selection *selection,
		   const struct graft_csv_policy *policy, struct graft_plan **ret_plan, struct graft_error *err)
{
	struct csv_planner planner = { .csv = csv, .selection = selection, .policy = policy };
	int rc;

	planner.base.plan = graft_plan_new();
	if (!planner.base.plan)
		return graft_fail_memory(err);
	rc = give_nodes(&planner, err);
	if (rc == 0) {
		tell_grants(&planner);
		bind_files(&planner);
		make_csv_links(&planner);
		refresh_cache(&planner);
		set_environment(&planner);
	}
	if (rc == 0 && graft_arena_failed(planner.base.plan->arena))
		rc = graft_fail_memory(err);
	if (rc < 0) {
		(void)graft_plan_free(planner.base.plan);
		return -1;
	}
	*ret_plan = planner.base.plan;
	return 0;
}
