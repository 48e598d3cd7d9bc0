/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links: names by which programs load the injected libraries. ldconfig would make the soname
 * links; here they are edits like all others. The few other links are those of SPEC
 * libnvidia-container 9.5.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "plan/dispensable.h"
#include "plan/rules.h"

static const struct {
	const char *prefix; /* of the library's file name */
	const char *link;   /* below the library's directory */
	const char *says;   /* target; NULL = the library's file name */
	/* For graphics plug-ins, whose loaders look for these names (SPEC runtime-and-hook 7.5) */
	bool graphics;
	const char *why;
} named_links[] = {
	{ "libcuda.so", "libcuda.so", "libcuda.so.1", false, "programs that load CUDA by its development name" },
	{ "libGLX_nvidia.so", "libGLX_indirect.so.0", NULL, false,
	  "GLX falls back to this name for indirect rendering" },
	{ "libnvidia-opticalflow.so", "libnvidia-opticalflow.so", "libnvidia-opticalflow.so.1", false,
	  "the optical flow SDK loads the library by its development name" },
	{ "libnvidia-allocator.so", "gbm/nvidia-drm_gbm.so", "../libnvidia-allocator.so.1", true,
	  "GBM loads the library by this name" },
	{ "libnvidia-vulkan-producer.so", "libnvidia-vulkan-producer.so", NULL, true,
	  "Vulkan loads the library by this name" },
	{ "libglxserver_nvidia.so", "libglxserver_nvidia.so", NULL, true,
	  "the X server loads the module by this name" },
};

/*
 * `source` is the library's path on the host, used if the link is to replace something and the
 * image has a file in its place; NULL = the link does not replace.
 */
static void add_library_link(struct graft_planner *planner, const char *directory, const char *name, const char *says,
			     const char *source, const char *rule, const char *why)
{
	const char *target = graft_plan_join(planner, directory, name);
	struct graft_edit *edit = graft_plan_edit(planner, GRAFT_EDIT_SYMLINK, rule, "%s", why);

	edit->target = target;
	edit->content = graft_plan_copy(planner, says);
	edit->dispensable = graft_is_dispensable(target);
	if (!source)
		return;
	edit->source = graft_plan_on_host(planner, planner->inventory->root, source);
	edit->conflict = GRAFT_CONFLICT_REPLACE;
	/*
	 * SECURITY: if the image has a file, the library is bound over it, as well protected as any
	 * bind.
	 */
	edit->mode = 0644;
	edit->flags = GRAFT_FLAGS_FILE;
}

/* Returns whether the soname link in the library's directory points to this library. */
static bool owns_soname(const struct graft_planner *planner, const struct graft_library *libraries, size_t i)
{
	size_t length = (size_t)(graft_path_name(libraries[i].path) - libraries[i].path);

	if (!planner->oci)
		return graft_plan_is_first(planner, libraries, i);
	if (!graft_plan_takes(planner, libraries, i))
		return false;
	for (size_t j = 0; j < i; j++) {
		if (graft_plan_takes(planner, libraries, j) && strcmp(libraries[j].soname, libraries[i].soname) == 0 &&
		    strncmp(libraries[j].path, libraries[i].path, length) == 0 &&
		    graft_path_name(libraries[j].path) == libraries[j].path + length)
			return false;
	}
	return true;
}

static void add_soname_links(struct graft_planner *planner, const struct graft_library *libraries, size_t n,
			     const char *directory)
{
	for (size_t i = 0; i < n; i++) {
		const struct graft_library *library = &libraries[i];
		const char *name = graft_path_name(library->path);
		const char *folder = graft_plan_library_directory(planner, library, directory);

		if (folder && owns_soname(planner, libraries, i) && strcmp(library->soname, name) != 0)
			add_library_link(planner, folder, library->soname, name, library->path, "soname-link",
					 "the name that programs are linked against; an image's own is replaced");
	}
}

/* Returns whether a row adds a link with the library's development name. */
static bool add_extra_link(struct graft_planner *planner, const struct graft_library *library, const char *folder,
			   const char *name)
{
	/*
	 * SPEC runtime-and-hook 6.6: links at the host's paths replace; SPEC libnvidia-container
	 * 9.5: those in an image's directories do not.
	 */
	const char *source = planner->oci ? library->path : NULL;
	bool development = false;

	for (size_t j = 0; j < GRAFT_COUNT(named_links); j++) {
		if (!graft_starts_with(name, named_links[j].prefix) ||
		    (named_links[j].graphics &&
		     !graft_plan_has(planner, graft_class_capabilities(GRAFT_CLASS_GRAPHICS))))
			continue;
		add_library_link(planner, folder, named_links[j].link, named_links[j].says ? named_links[j].says : name,
				 source, "library-link", named_links[j].why);
		development |= strcmp(named_links[j].link, named_links[j].prefix) == 0;
	}
	return development;
}

static void add_extra_links(struct graft_planner *planner, const struct graft_library *libraries, size_t n,
			    const char *directory)
{
	for (size_t i = 0; i < n; i++) {
		const struct graft_library *library = &libraries[i];
		const char *name = graft_path_name(library->path), *base;
		const char *folder = graft_plan_library_directory(planner, library, directory);

		if (!folder || !owns_soname(planner, libraries, i) || add_extra_link(planner, library, folder, name) ||
		    !planner->oci || !library->development_link)
			continue;
		base = graft_arena_strndup(planner->plan->arena, library->soname,
					   (size_t)(strstr(library->soname, ".so") - library->soname) + strlen(".so"));
		if (base)
			add_library_link(planner, folder, base, library->soname, library->path, "library-link",
					 "the name that programs are linked with, as on the host");
	}
}

/* In either style, modules of the X server have the host's path. */
static void add_module_links(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;

	for (size_t i = 0; i < inventory->n_extra_files; i++) {
		const struct graft_extra_file *file = &inventory->extra_files[i];
		const char *path = file->target ? file->target : file->path;
		const char *name = graft_path_name(path);
		const char *folder = graft_arena_strndup(planner->plan->arena, path, (size_t)(name - path));

		for (size_t j = 0; folder && j < GRAFT_COUNT(named_links); j++) {
			if (named_links[j].graphics && graft_starts_with(name, named_links[j].prefix) &&
			    strcmp(name, named_links[j].link) != 0 &&
			    graft_plan_has(planner, graft_class_capabilities(file->class_)))
				add_library_link(planner, folder, named_links[j].link, name,
						 planner->oci ? file->path : NULL, "library-link", named_links[j].why);
		}
	}
}

void graft_rule_links(struct graft_planner *planner)
{
	const struct graft_inventory *inventory = planner->inventory;
	size_t n32 = graft_plan_has(planner, GRAFT_CAP_COMPAT32) ? inventory->n_libraries32 : 0;

	if (graft_plan_is_disabled(planner, GRAFT_HOOK_SYMLINKS)) {
		graft_plan_refuse(planner, "switched off by the administrator", "links of libraries and device nodes");
		return;
	}
	add_soname_links(planner, inventory->libraries, inventory->n_libraries, planner->libs_dir);
	add_soname_links(planner, inventory->libraries32, n32, planner->libs32_dir);
	add_extra_links(planner, inventory->libraries, inventory->n_libraries, planner->libs_dir);
	add_extra_links(planner, inventory->libraries32, n32, planner->libs32_dir);
	add_module_links(planner);
}
