/* SPDX-License-Identifier: Apache-2.0 */
/* hooks_plan: parses the arguments of hooks, and turns what they request into edits. */
#include "plan/hooks_plan.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "formats/loader/ldcache.h"
#include "plan/compat_directory.h"
#include "plan/driver_nodes.h"
#include "plan/loader_search.h"

#define STAGE "createContainer"

/* ---- arguments ---- */

/* The options of one enable-cuda-compat. NULL = not given. */
struct compat_words {
	const char *root, *driver_version, *cuda_version;
};

struct reader {
	struct graft_arena *arena;
	struct graft_hook_work *work;
	struct compat_words compat;
	bool unsettled; /* something was requested that the next update-ldcache has to take into account */
	bool profile;   /* update-application-profile is among the hooks */
};

/* Results of parsing an argument. */
enum { FAILED = -1, FOREIGN, UNDERSTOOD };

static bool has_link(const struct graft_hook_work *work, const char *path)
{
	return work->n_links > 0 && graft_string_map_find(&work->link_paths, path) != GRAFT_STRING_MAP_NONE;
}

/*
 * Makes room for all links that these hooks can request: each is an argument, or an item of one
 * after a comma.
 */
static bool init_links(struct reader *reader, const struct graft_cdi_edits *edits)
{
	size_t n = 0;

	for (size_t i = 0; i < edits->n_hooks; i++) {
		for (size_t j = 2; j < edits->hooks[i].n_args; j++) {
			n++;
			for (const char *at = edits->hooks[i].args[j]; (at = strchr(at, ',')); at++)
				n++;
		}
	}
	return graft_string_map_init(&reader->work->link_paths, n, reader->arena);
}

/*
 * Leaves to the hook: links to themselves, which depend on a file; two different links of one name,
 * which depend on the order; and paths with "..", which depend on the image's links.
 */
static int read_link_option(struct reader *reader, const char *spec)
{
	struct graft_hook_work *work = reader->work;
	struct graft_error why = { .status = GRAFT_OK };
	struct graft_hook_link link, *slot;
	const char *clean;
	size_t index;

	if (graft_hook_read_link(spec, reader->arena, &link, &why) < 0)
		return why.status == GRAFT_NO_MEMORY ? FAILED : FOREIGN;
	clean = graft_path_clean("/", link.path, reader->arena);
	if (!clean)
		return FAILED;
	if (strcmp(clean, link.path) != 0)
		return FOREIGN;
	/* Libraries are not searched for in /dev. */
	reader->unsettled = reader->unsettled || !graft_path_is_within(link.path, "/dev");
	index = graft_string_map_put(&work->link_paths, link.path, work->n_links);
	if (index < work->n_links)
		return strcmp(work->links[index].says, link.says) == 0 ? UNDERSTOOD : FOREIGN;
	if (link.says[0] == '\0' || link.path[1] == '\0' || strcmp(link.says, link.path) == 0)
		return FOREIGN;
	slot = graft_arena_push(reader->arena, &work->links, &work->n_links, sizeof(*slot));
	if (!slot)
		return FAILED;
	*slot = link;
	return UNDERSTOOD;
}

static int read_folder(struct reader *reader, const char *spec)
{
	struct graft_hook_work *work = reader->work;
	const char *path = graft_arena_printf(reader->arena, "%s%s", spec[0] == '/' ? "" : "/", spec);
	size_t length = path ? strlen(path) : 0;

	while (length > 1 && path[length - 1] == '/')
		length--;
	path = graft_arena_strndup(reader->arena, path, length);
	if (!path)
		return FAILED;
	if (graft_is_in(work->folders, work->n_folders, path))
		return UNDERSTOOD;
	return graft_arena_push_string(reader->arena, &work->folders, &work->n_folders, path) ? UNDERSTOOD : FAILED;
}

/* If an option is given twice with different values, the hook must decide. */
static int read_once(const char **slot, const char *value)
{
	if (*slot && strcmp(*slot, value) != 0)
		return FOREIGN;
	*slot = value;
	return UNDERSTOOD;
}

static int read_driver_version(struct reader *reader, const char *value)
{
	return read_once(&reader->compat.driver_version, value);
}

static int read_cuda_version(struct reader *reader, const char *value)
{
	return read_once(&reader->compat.cuda_version, value);
}

static int read_compat_root(struct reader *reader, const char *value)
{
	const char *path = graft_path_clean("/", value, reader->arena);

	return path ? read_once(&reader->compat.root, path) : FAILED;
}

static int ignore(struct reader *reader, const char *value)
{
	(void)reader;
	return value[0] != '\0' ? UNDERSTOOD : FOREIGN;
}

static const struct option {
	const char *hook, *name;
	bool is_list; /* split at commas */
	int (*take)(struct reader *reader, const char *value);
} options[] = {
	{ "create-symlinks", "--link", true, read_link_option },
	{ "enable-cuda-compat", "--host-driver-version", false, read_driver_version },
	{ "enable-cuda-compat", "--host-cuda-version", false, read_cuda_version },
	{ "enable-cuda-compat", "--cuda-compat-container-root", false, read_compat_root },
	{ "update-ldcache", "--folder", true, read_folder },
	{ "update-ldcache", "--ldconfig-path", false, ignore },
};

static int read_option_value(struct reader *reader, const struct option *option, const char *value)
{
	int rc = UNDERSTOOD;

	if (!option->is_list)
		return option->take(reader, value);
	while (rc == UNDERSTOOD) {
		size_t length = strcspn(value, ",");
		const char *item = graft_arena_strndup(reader->arena, value, length);

		if (!item)
			return FAILED;
		if (item[0] != '\0')
			rc = option->take(reader, item);
		if (value[length] == '\0')
			break;
		value += length + 1;
	}
	return rc;
}

/* Finds the option of an argument, and its value if that is in the same argument. */
static const struct option *find_option(const char *hook, const char *word, const char **ret_value)
{
	for (size_t i = 0; i < GRAFT_COUNT(options); i++) {
		size_t length = strlen(options[i].name);

		if (strcmp(options[i].hook, hook) != 0 || strncmp(word, options[i].name, length) != 0)
			continue;
		if (word[length] != '\0' && word[length] != '=')
			continue;
		*ret_value = word[length] == '=' ? word + length + 1 : NULL;
		return &options[i];
	}
	return NULL;
}

static int read_hook_options(struct reader *reader, const struct graft_cdi_hook *hook)
{
	for (size_t i = 2; i < hook->n_args; i++) {
		const char *value = NULL;
		const struct option *option = find_option(hook->args[1], hook->args[i], &value);
		int rc;

		if (!option || (!value && ++i == hook->n_args))
			return FOREIGN;
		rc = read_option_value(reader, option, value ? value : hook->args[i]);
		if (rc != UNDERSTOOD)
			return rc;
	}
	return UNDERSTOOD;
}

static bool is_version_given(const char *version)
{
	return version && version[0] != '\0';
}

static bool is_same_version(const char *a, const char *b)
{
	return is_version_given(a) == is_version_given(b) && (!is_version_given(a) || strcmp(a, b) == 0);
}

/*
 * Without a version, the hook does nothing, wherever it looks. If two of these hooks differ, the
 * last one decides, so they have to run.
 */
static int take_compat(struct reader *reader)
{
	struct graft_hook_work *work = reader->work;
	const struct compat_words words = reader->compat;
	const char *root = words.root ? words.root : GRAFT_COMPAT_DIRECTORY;

	reader->compat = (struct compat_words){ .root = NULL };
	if (!is_version_given(words.driver_version) && !is_version_given(words.cuda_version))
		return UNDERSTOOD;
	if (work->compat_root &&
	    (strcmp(work->compat_root, root) != 0 || !is_same_version(work->driver_version, words.driver_version) ||
	     !is_same_version(work->cuda_version, words.cuda_version)))
		return FOREIGN;
	work->compat_root = root;
	work->driver_version = words.driver_version;
	work->cuda_version = words.cuda_version;
	reader->unsettled = true;
	return UNDERSTOOD;
}

static int take_ldcache(struct reader *reader)
{
	reader->work->ldcache = true;
	reader->unsettled = false;
	return UNDERSTOOD;
}

static int take_params(struct reader *reader)
{
	reader->work->params = true;
	return UNDERSTOOD;
}

static int take_profile(struct reader *reader)
{
	reader->profile = true;
	return UNDERSTOOD;
}

static bool is_variable_set(const struct graft_oci_spec *spec, const char *variable)
{
	const char *value = graft_oci_spec_env(spec, variable);

	return value && value[0] != '\0';
}

/* Newer specifications have this hook once for each GPU; nearly no container needs it. */
static bool is_idle_memory_hook(const char *program, const struct graft_oci_spec *spec,
				const struct graft_cdi_hook *hook)
{
	return strcmp(hook->stage, "createRuntime") == 0 && strcmp(hook->path, program) == 0 && hook->n_args >= 2 &&
	       strcmp(hook->args[1], GRAFT_MEMORY_HOOK) == 0 && !is_variable_set(spec, GRAFT_MEMORY_LIMIT) &&
	       !is_variable_set(spec, GRAFT_MEMORY_REQUEST);
}

static int read_hook(struct reader *reader, const char *program, const struct graft_oci_spec *spec,
		     const struct graft_cdi_hook *hook)
{
	static const struct {
		const char *name;
		int (*take)(struct reader *reader); /* what the hook does besides its options; NULL = nothing */
	} hooks[] = {
		{ "create-symlinks", NULL },
		{ "enable-cuda-compat", take_compat },
		{ "update-ldcache", take_ldcache },
		{ "disable-device-node-modification", take_params },
		{ "update-application-profile", take_profile },
	};
	int rc;

	if (is_idle_memory_hook(program, spec, hook))
		return UNDERSTOOD;
	if (strcmp(hook->stage, STAGE) != 0 || strcmp(hook->path, program) != 0 || hook->has_timeout ||
	    hook->n_args < 2)
		return FOREIGN;
	for (size_t i = 0; i < GRAFT_COUNT(hooks); i++) {
		if (strcmp(hook->args[1], hooks[i].name) != 0)
			continue;
		rc = read_hook_options(reader, hook);
		return rc == UNDERSTOOD && hooks[i].take ? hooks[i].take(reader) : rc;
	}
	return FOREIGN;
}

/* ---- what exists only when a hook runs ---- */

/* Paths of mounts. The first ones are the specification's, the rest those of config.json. */
struct mounts {
	const char **paths; /* cleaned */
	bool *empty;        /* contains only what the low-level runtime creates */
	size_t n, n_own;
};

static const char *clean(struct graft_arena *arena, const char *path)
{
	return path ? graft_path_clean("/", path, arena) : "/";
}

static int list_hook_mounts(const struct graft_cdi_edits *edits, const struct graft_oci_spec *spec,
			    struct graft_arena *arena, struct mounts *ret_mounts)
{
	size_t n = edits->n_mounts + spec->n_mounts;

	*ret_mounts = (struct mounts){ .paths = graft_arena_list(arena, n, sizeof(*ret_mounts->paths)),
				       .empty = graft_arena_list(arena, n, sizeof(*ret_mounts->empty)),
				       .n = n,
				       .n_own = edits->n_mounts };
	if (n > 0 && (!ret_mounts->paths || !ret_mounts->empty))
		return -1;
	for (size_t i = 0; i < n; i++) {
		const struct graft_oci_mount *mount = i < edits->n_mounts ? NULL : &spec->mounts[i - edits->n_mounts];
		const char *path = mount ? mount->destination : edits->mounts[i].container_path;

		ret_mounts->paths[i] = clean(arena, path);
		ret_mounts->empty[i] = mount && mount->type && strcmp(mount->type, "tmpfs") == 0;
		if (!ret_mounts->paths[i])
			return -1;
	}
	return 0;
}

/* /lib is a link to /usr/lib in most images, and likewise /bin and /sbin. */
static bool has_link_by_either_name(const struct graft_hook_work *work, const char *path, struct graft_arena *arena)
{
	static const char usr[] = "/usr";
	const char *other;

	if (has_link(work, path))
		return true;
	if (graft_path_is_within(path, usr))
		return has_link(work, path + strlen(usr));
	if (!graft_starts_with(path, "/lib") && !graft_starts_with(path, "/bin") && !graft_starts_with(path, "/sbin"))
		return false;
	other = graft_arena_join(arena, usr, strlen(usr), path + 1);
	return !other || has_link(work, other);
}

/* The sink handles mounts of config.json over links (apply/oci/oci_root.h). */
static bool has_link_at_mount(const struct graft_hook_work *work, const struct mounts *mounts,
			      struct graft_arena *arena)
{
	for (size_t i = 0; i < mounts->n_own; i++)
		if (has_link_by_either_name(work, mounts->paths[i], arena))
			return true;
	return false;
}

/* Other rules apply to libraries below glibc-hwcaps; and paths are compared as text. */
static bool has_odd_mount(const struct graft_cdi_edits *edits, const struct mounts *mounts)
{
	for (size_t i = 0; i < mounts->n_own; i++)
		if (strcmp(mounts->paths[i], edits->mounts[i].container_path) != 0 ||
		    strstr(mounts->paths[i], "/glibc-hwcaps/"))
			return true;
	return false;
}

/* Returns whether mounts or links change the directory of compatibility libraries. */
static bool changes_compat(const struct graft_hook_work *work, const struct mounts *mounts)
{
	for (size_t i = 0; i < mounts->n; i++)
		if (strcmp(mounts->paths[i], "/") != 0 && graft_path_overlap(mounts->paths[i], work->compat_root))
			return true;
	for (size_t i = 0; i < work->n_links; i++)
		if (graft_path_overlap(work->links[i].path, work->compat_root))
			return true;
	return false;
}

static bool has_cdi_node(const struct graft_cdi_edits *edits, const char *path)
{
	for (size_t i = 0; i < edits->n_nodes; i++)
		if (strcmp(edits->nodes[i].path, path) == 0)
			return true;
	return false;
}

/*
 * Returns whether the container has GPUs independently of the specification: by being privileged,
 * from --device, or from the host's own /dev.
 */
static bool has_other_gpus(const struct graft_cdi_edits *edits, const struct graft_oci_spec *spec,
			   const struct mounts *mounts)
{
	for (size_t i = 0; i < spec->n_devices; i++)
		if (graft_is_gpu_node(spec->devices[i]) && !has_cdi_node(edits, spec->devices[i]))
			return true;
	for (size_t i = 0; i < mounts->n; i++)
		if (graft_is_gpu_node(mounts->paths[i]) || (strcmp(mounts->paths[i], "/dev") == 0 && !mounts->empty[i]))
			return true;
	return false;
}

/*
 * Determines the mask of the nodes, as the hook would find them in /dev. Returns false if only the
 * hook can.
 */
static bool find_gpus(const struct graft_cdi_edits *edits, uint64_t *ret_gpus)
{
	for (size_t i = 0; i < edits->n_nodes; i++) {
		const struct graft_cdi_node *node = &edits->nodes[i];

		if (!graft_is_gpu_node(node->path))
			continue;
		if (!node->has_numbers || !node->type || strcmp(node->type, "c") != 0 || node->minor < 0 ||
		    node->minor > 63)
			return false;
		*ret_gpus |= UINT64_C(1) << node->minor;
	}
	return true;
}

/* Decides whether everything that the hooks would find can be determined now. */
static int check_hook_work(struct reader *reader, const struct graft_cdi_edits *edits,
			   const struct graft_oci_spec *spec)
{
	struct graft_hook_work *work = reader->work;
	struct mounts mounts;

	if (reader->unsettled && (work->ldcache || work->compat_root))
		return FOREIGN;
	if (list_hook_mounts(edits, spec, reader->arena, &mounts) < 0)
		return FAILED;
	if (has_link_at_mount(work, &mounts, reader->arena) || (work->ldcache && has_odd_mount(edits, &mounts)) ||
	    (work->compat_root && changes_compat(work, &mounts)))
		return FOREIGN;
	if (!reader->profile)
		return UNDERSTOOD;
	return !has_other_gpus(edits, spec, &mounts) && find_gpus(edits, &work->gpus) ? UNDERSTOOD : FOREIGN;
}

int graft_hooks_read(const char *program, const struct graft_cdi_edits *edits, const struct graft_oci_spec *spec,
		     struct graft_arena *arena, struct graft_hook_work *ret_work, bool *ret_known,
		     struct graft_error *err)
{
	struct reader reader = { .arena = arena, .work = ret_work };
	bool any = false;
	int rc;

	*ret_work = (struct graft_hook_work){ .ldcache = false };
	rc = init_links(&reader, edits) ? UNDERSTOOD : FAILED;
	for (size_t i = 0; i < edits->n_hooks && rc == UNDERSTOOD; i++) {
		/* It runs after all others. */
		if (graft_cdi_hook_is_of_image(&edits->hooks[i]))
			continue;
		any = true;
		rc = read_hook(&reader, program, spec, &edits->hooks[i]);
	}
	if (rc == UNDERSTOOD && !any)
		rc = FOREIGN;
	if (rc == UNDERSTOOD)
		rc = check_hook_work(&reader, edits, spec);
	*ret_known = rc == UNDERSTOOD;
	return rc == FAILED ? graft_fail_memory(err) : 0;
}

/* ---- edits ---- */

/* If memory is exhausted, the arena records it. */
static void push_hook_edit(struct graft_plan *plan, const struct graft_edit *edit)
{
	struct graft_edit *slot = graft_arena_push(plan->arena, &plan->edits, &plan->n_edits, sizeof(*slot));

	if (slot)
		*slot = *edit;
}

static void add_soname_link(struct graft_plan *plan, const char *path, const char *says)
{
	push_hook_edit(plan, &(struct graft_edit){ .kind = GRAFT_EDIT_SYMLINK,
						   .target = path,
						   .content = says,
						   .conflict = GRAFT_CONFLICT_REPLACE,
						   .rule = "soname-link",
						   .why = "programs ask for the library by its soname" });
}

/*
 * The libraries to enter into the cache. Neighbours are libraries whose soname link would be the
 * same.
 */
struct entered {
	const struct graft_mounted_library *libraries;
	size_t n;
	const char **names; /* of each: the path of its soname link */
	size_t *neighbours; /* of each: the first with the same name */
	struct graft_string_map mounted;
	struct graft_string_map link_targets;
	size_t *next_link; /* of each link: the next one with the same target */
};

static bool enter_libraries(struct graft_arena *arena, const struct graft_hook_facts *facts,
			    struct entered *ret_entered)
{
	size_t n = facts->n_libraries;
	struct graft_string_map first;

	*ret_entered = (struct entered){ .libraries = facts->libraries,
					 .n = n,
					 .names = graft_arena_list(arena, n, sizeof(*ret_entered->names)),
					 .neighbours = graft_arena_list(arena, n, sizeof(*ret_entered->neighbours)) };
	if (!graft_string_map_init(&ret_entered->mounted, n, arena) || !graft_string_map_init(&first, n, arena) ||
	    graft_arena_failed(arena))
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct graft_mounted_library *library = &facts->libraries[i];
		size_t slash = (size_t)(graft_path_name(library->path) - library->path) - 1;
		const char *name = graft_arena_join(arena, library->path, slash, library->soname);

		if (!name)
			return false;
		ret_entered->names[i] = name;
		ret_entered->neighbours[i] = graft_string_map_put(&first, name, i);
		(void)graft_string_map_put(&ret_entered->mounted, library->path, i);
	}
	return true;
}

/*
 * Of several libraries with one soname in a directory, ldconfig takes the greatest file name (SPEC
 * ld-so-cache 8).
 */
static bool is_winner(const struct entered *entered, size_t index)
{
	const struct graft_mounted_library *library = &entered->libraries[index];

	for (size_t i = entered->neighbours[index]; i < entered->n; i++) {
		const struct graft_mounted_library *other = &entered->libraries[i];
		int order;

		if (i == index || entered->neighbours[i] != entered->neighbours[index] ||
		    other->abi_flags != library->abi_flags)
			continue;
		order = graft_ldcache_compare(graft_path_name(other->path), graft_path_name(library->path));
		if (order > 0 || (order == 0 && i < index))
			return false;
	}
	return true;
}

/*
 * Returns the target of a link as a path; NULL if it is in another directory, or memory is
 * exhausted.
 */
static const char *link_target_of(struct graft_arena *arena, const struct graft_hook_link *link)
{
	if (link->says[0] == '/')
		return link->says;
	if (strchr(link->says, '/'))
		return NULL;
	return graft_arena_join(arena, link->path, (size_t)(graft_path_name(link->path) - link->path) - 1, link->says);
}

/* Indexes development links, "libx.so" to "libx.so.1", by target, in the order of the links. */
static bool enter_links(struct graft_arena *arena, const struct graft_hook_work *work, struct entered *entered)
{
	entered->next_link = graft_arena_list(arena, work->n_links, sizeof(*entered->next_link));
	if (!graft_string_map_init(&entered->link_targets, work->n_links, arena) || graft_arena_failed(arena))
		return false;
	for (size_t i = 0; i < work->n_links; i++) {
		const char *target = graft_ldcache_is_development_name(work->links[i].path)
					 ? link_target_of(arena, &work->links[i])
					 : NULL;
		size_t last = target ? graft_string_map_put(&entered->link_targets, target, i) : i;

		entered->next_link[i] = GRAFT_STRING_MAP_NONE;
		while (last != i && entered->next_link[last] != GRAFT_STRING_MAP_NONE)
			last = entered->next_link[last];
		if (last != i)
			entered->next_link[last] = i;
	}
	return !graft_arena_failed(arena);
}

/* Development links have cache entries of their own name (SPEC ld-so-cache 8). */
static void add_development_links(struct graft_plan *plan, struct graft_edit *cache, const struct graft_hook_work *work,
				  const struct entered *entered, const struct graft_mounted_library *library,
				  const char *target)
{
	size_t i = work->n_links > 0 ? graft_string_map_find(&entered->link_targets, target) : GRAFT_STRING_MAP_NONE;

	for (; i != GRAFT_STRING_MAP_NONE; i = entered->next_link[i]) {
		const struct graft_hook_link *link = &work->links[i];
		const char *name = graft_path_name(link->path);
		struct graft_ldcache_entry *entry;

		if (!graft_ldcache_is_development_link(name, library->soname) ||
		    !graft_path_same_directory(link->path, library->path))
			continue;
		entry = graft_arena_push(plan->arena, &cache->entries, &cache->n_entries, sizeof(*entry));
		if (entry)
			*entry = (struct graft_ldcache_entry){ .soname = name,
							       .path = link->path,
							       .abi_flags = library->abi_flags };
	}
}

static void add_cache_library(struct graft_plan *plan, struct graft_edit *cache, const struct graft_hook_work *work,
			      const struct entered *entered, size_t index)
{
	const struct graft_mounted_library *library = &entered->libraries[index];
	const char *path = entered->names[index];
	struct graft_ldcache_entry *entry;

	if (!is_winner(entered, index))
		return;
	entry = graft_arena_push(plan->arena, &cache->entries, &cache->n_entries, sizeof(*entry));
	if (!entry)
		return;
	*entry =
	    (struct graft_ldcache_entry){ .soname = library->soname, .path = path, .abi_flags = library->abi_flags };
	add_development_links(plan, cache, work, entered, library, path);
	if (strcmp(path, library->path) != 0)
		add_development_links(plan, cache, work, entered, library, library->path);
	if (graft_string_map_find(&entered->mounted, path) == GRAFT_STRING_MAP_NONE && !has_link(work, path))
		add_soname_link(plan, path, graft_path_name(library->path));
}

/* These entries come first, so that the loader takes them before the driver's. */
static void add_compat_libraries(struct graft_plan *plan, struct graft_edit *cache, const struct graft_hook_work *work,
				 const struct graft_image *image)
{
	const struct graft_compat_directory directory = graft_compat_directory(image, work->driver_version,
									       work->cuda_version, plan->arena);

	for (size_t i = 0; i < image->n_compat; i++) {
		const struct graft_compat_library *library = &image->compat[i];
		const char *why_not = graft_loader_is_musl(image)
					  ? "the image's loader (musl) cannot use it"
					  : graft_compat_directory_obstacle(&directory, library);
		struct graft_refusal *refusal;

		if (!why_not) {
			graft_compat_add(plan->arena, cache, library);
			continue;
		}
		refusal = graft_arena_push(plan->arena, &plan->refusals, &plan->n_refusals, sizeof(*refusal));
		if (refusal)
			*refusal = (struct graft_refusal){ .what = library->path, .why = why_not };
	}
}

static void add_cache(struct graft_plan *plan, const struct graft_hook_work *work, const struct graft_hook_facts *facts)
{
	/* It follows the links, some of which add_cache_library() still adds. */
	struct graft_edit cache = { .kind = GRAFT_EDIT_LDCACHE,
				    .rule = "spec-ldcache",
				    .why = "the specification asks for it" };
	struct entered entered;

	if (!enter_libraries(plan->arena, facts, &entered) || !enter_links(plan->arena, work, &entered))
		return;
	if (work->compat_root)
		add_compat_libraries(plan, &cache, work, facts->image);
	for (size_t i = 0; i < work->n_folders; i++)
		(void)graft_loader_add_folder(plan->arena, &cache, work->folders[i]);
	for (size_t i = 0; i < facts->n_libraries; i++)
		add_cache_library(plan, &cache, work, &entered, i);
	graft_loader_search(plan->arena, facts->image, &cache);
	push_hook_edit(plan, &cache);
}

struct graft_plan *graft_hooks_plan(const struct graft_hook_work *work, const struct graft_hook_facts *facts,
				    struct graft_error *err)
{
	struct graft_plan *plan = graft_plan_new();

	if (plan) {
		for (size_t i = 0; i < work->n_links; i++)
			(void)graft_hook_add_link(plan, &work->links[i]);
		if (work->ldcache)
			add_cache(plan, work, facts);
		if (work->params && facts->params)
			(void)graft_hook_add_params(plan, facts->params);
		if (work->gpus != 0)
			(void)graft_hook_add_profile(plan, work->gpus);
	}
	if (!plan || graft_arena_failed(plan->arena)) {
		graft_plan_free(plan);
		(void)graft_fail_memory(err);
		return NULL;
	}
	return plan;
}
