/* SPDX-License-Identifier: Apache-2.0 */
/* hooks_plan: words to links and folders, and those to edits. What the words mean is said once more in cli/cdi_hook, for hooks that do run. */
#include "plan/hooks_plan.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "formats/ldcache.h"
#include "plan/loader_search.h"

#define STAGE     "createContainer"
#define SEPARATOR "::"

/* ---- words ---- */

struct reader {
	struct graft_arena *arena;
	struct graft_hook_work *work;
};

/* Results of reading a word. */
enum { FAILED = -1, FOREIGN, UNDERSTOOD };

static const char *make_absolute(const struct reader *reader, const char *path)
{
	return path[0] == '/' ? path : graft_arena_printf(reader->arena, "/%s", path);
}

static bool has_link(const struct graft_hook_work *work, const char *path, const char *says)
{
	for (size_t i = 0; i < work->n_links; i++)
		if (strcmp(work->links[i].path, path) == 0 && (!says || strcmp(work->links[i].says, says) == 0))
			return true;
	return false;
}

/* TARGET::LINK. A link to itself is a question about a file, and two of one name are a question of order: those are left to the hook. */
static int read_link(struct reader *reader, const char *spec)
{
	const char *separator = strstr(spec, SEPARATOR), *says, *path;
	struct graft_hook_link *link;

	if (!separator || separator == spec || strstr(separator + strlen(SEPARATOR), SEPARATOR) ||
	    separator[strlen(SEPARATOR)] == '\0')
		return FOREIGN;
	says = graft_arena_strndup(reader->arena, spec, (size_t)(separator - spec));
	path = make_absolute(reader, separator + strlen(SEPARATOR));
	if (!says || !path)
		return FAILED;
	if (has_link(reader->work, path, says))
		return UNDERSTOOD;
	if (strcmp(says, path) == 0 || has_link(reader->work, path, NULL))
		return FOREIGN;
	link = graft_arena_push(reader->arena, &reader->work->links, &reader->work->n_links, sizeof(*link));
	if (!link)
		return FAILED;
	*link = (struct graft_hook_link){ .path = path, .says = says };
	return UNDERSTOOD;
}

static int read_folder(struct reader *reader, const char *spec)
{
	struct graft_hook_work *work = reader->work;
	const char *path = make_absolute(reader, spec);
	size_t length = path ? strlen(path) : 0;

	while (length > 1 && path[length - 1] == '/')
		length--;
	path = graft_arena_strndup(reader->arena, path, length);
	if (!path)
		return FAILED;
	for (size_t i = 0; i < work->n_folders; i++)
		if (strcmp(work->folders[i], path) == 0)
			return UNDERSTOOD;
	return graft_arena_push_string(reader->arena, &work->folders, &work->n_folders, path) ? UNDERSTOOD : FAILED;
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
	{ "create-symlinks", "--link", true, read_link },
	{ "update-ldcache", "--folder", true, read_folder },
	{ "update-ldcache", "--ldconfig-path", false, ignore },
};

static int read_value(struct reader *reader, const struct option *option, const char *value)
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

/* The option that a word is, and its value if that is in the same word. */
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

static int read_words(struct reader *reader, const struct graft_cdi_hook *hook)
{
	for (size_t i = 2; i < hook->n_args; i++) {
		const char *value = NULL;
		const struct option *option = find_option(hook->args[1], hook->args[i], &value);
		int rc;

		if (!option || (!value && ++i == hook->n_args))
			return FOREIGN;
		rc = read_value(reader, option, value ? value : hook->args[i]);
		if (rc != UNDERSTOOD)
			return rc;
	}
	return UNDERSTOOD;
}

static int read_hook(struct reader *reader, const char *program, const struct graft_cdi_hook *hook)
{
	bool is_ldcache;

	if (strcmp(hook->stage, STAGE) != 0 || strcmp(hook->path, program) != 0 || hook->has_timeout ||
	    hook->n_args < 2)
		return FOREIGN;
	is_ldcache = strcmp(hook->args[1], "update-ldcache") == 0;
	/* Nothing follows the cache: a link that comes after it may lead to what it does not know. */
	if (reader->work->ldcache || (!is_ldcache && strcmp(hook->args[1], "create-symlinks") != 0))
		return FOREIGN;
	reader->work->ldcache = is_ldcache;
	return read_words(reader, hook);
}

/* What is mounted is there when a hook runs, and not before. */
static bool meets_mount(const struct graft_hook_work *work, const struct graft_cdi_edits *edits)
{
	for (size_t i = 0; i < edits->n_mounts; i++)
		if (has_link(work, edits->mounts[i].container_path, NULL))
			return true;
	return false;
}

int graft_hooks_read(const char *program, const struct graft_cdi_edits *edits, struct graft_arena *arena,
		     struct graft_hook_work *ret_work, bool *ret_known, struct graft_error *err)
{
	struct reader reader = { .arena = arena, .work = ret_work };
	int rc = edits->n_hooks > 0 ? UNDERSTOOD : FOREIGN;

	*ret_work = (struct graft_hook_work){ .ldcache = false };
	for (size_t i = 0; i < edits->n_hooks && rc == UNDERSTOOD; i++)
		rc = read_hook(&reader, program, &edits->hooks[i]);
	*ret_known = rc == UNDERSTOOD && !meets_mount(ret_work, edits);
	return rc == FAILED ? graft_fail_memory(err) : 0;
}

/* ---- edits ---- */

/* Without memory the arena remembers. */
static void add_edit(struct graft_plan *plan, const struct graft_edit *edit)
{
	struct graft_edit *slot = graft_arena_push(plan->arena, &plan->edits, &plan->n_edits, sizeof(*slot));

	if (slot)
		*slot = *edit;
}

static void add_link(struct graft_plan *plan, const char *path, const char *says, enum graft_conflict conflict,
		     const char *why)
{
	add_edit(plan, &(struct graft_edit){ .kind = GRAFT_EDIT_SYMLINK,
					     .target = path,
					     .content = says,
					     .conflict = conflict,
					     .rule = "spec-link",
					     .why = why });
}

static size_t directory_length(const char *path)
{
	return (size_t)(graft_path_name(path) - path);
}

static bool is_same_name(const struct graft_mounted_library *a, const struct graft_mounted_library *b)
{
	size_t length = directory_length(a->path);

	return a->abi_flags == b->abi_flags && strcmp(a->soname, b->soname) == 0 &&
	       length == directory_length(b->path) && strncmp(a->path, b->path, length) == 0;
}

/* Of several with a soname in a directory ldconfig takes the greatest name (SPEC ld-so-cache 8). */
static bool is_winner(const struct graft_mounted_library *libraries, size_t n, size_t index)
{
	const struct graft_mounted_library *library = &libraries[index];

	for (size_t i = 0; i < n; i++) {
		int order = i != index && is_same_name(&libraries[i], library)
				? graft_ldcache_compare(graft_path_name(libraries[i].path),
							graft_path_name(library->path))
				: -1;

		if (order > 0 || (order == 0 && i < index))
			return false;
	}
	return true;
}

static bool is_mounted(const struct graft_mounted_library *libraries, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(libraries[i].path, path) == 0)
			return true;
	return false;
}

static void add_library(struct graft_plan *plan, struct graft_edit *cache, const struct graft_hook_work *work,
			const struct graft_mounted_library *libraries, size_t n, size_t index)
{
	const struct graft_mounted_library *library = &libraries[index];
	struct graft_ldcache_entry *entry;
	const char *path;

	if (!is_winner(libraries, n, index))
		return;
	path = graft_arena_printf(plan->arena, "%.*s%s", (int)directory_length(library->path), library->path,
				  library->soname);
	entry = graft_arena_push(plan->arena, &cache->entries, &cache->n_entries, sizeof(*entry));
	if (!path || !entry)
		return;
	*entry =
	    (struct graft_ldcache_entry){ .soname = library->soname, .path = path, .abi_flags = library->abi_flags };
	if (!is_mounted(libraries, n, path) && !has_link(work, path, NULL))
		add_link(plan, path, graft_path_name(library->path), GRAFT_CONFLICT_REPLACE,
			 "programs ask for the library by its soname");
}

static void add_cache(struct graft_plan *plan, const struct graft_hook_work *work,
		      const struct graft_mounted_library *libraries, size_t n, const struct graft_image *image)
{
	/* Behind the links, which add_library() still adds. */
	struct graft_edit cache = { .kind = GRAFT_EDIT_LDCACHE,
				    .rule = "spec-ldcache",
				    .why = "the specification asks for it" };

	for (size_t i = 0; i < work->n_folders; i++)
		(void)graft_loader_add_folder(plan->arena, &cache, work->folders[i]);
	for (size_t i = 0; i < n; i++)
		add_library(plan, &cache, work, libraries, n, i);
	graft_loader_search(plan->arena, image, &cache);
	add_edit(plan, &cache);
}

struct graft_plan *graft_hooks_plan(const struct graft_hook_work *work, const struct graft_mounted_library *libraries,
				    size_t n_libraries, const struct graft_image *image, struct graft_error *err)
{
	struct graft_plan *plan = graft_plan_new();

	if (plan) {
		for (size_t i = 0; i < work->n_links; i++)
			add_link(plan, work->links[i].path, work->links[i].says, GRAFT_CONFLICT_OVERWRITE,
				 "the specification asks for it");
		if (work->ldcache)
			add_cache(plan, work, libraries, n_libraries, image);
	}
	if (!plan || graft_arena_failed(plan->arena)) {
		graft_plan_free(plan);
		(void)graft_fail_memory(err);
		return NULL;
	}
	return plan;
}
