/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern: expands a pattern component by component; only components with wildcards require reading
 * a directory.
 */
#include "host/lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/listing.h"

#define DIRECTORIES_MAX 4096u
#define PATHS_MAX       16384u

struct expansion {
	const struct graft_root *root;
	struct graft_arena *arena;
	const char ***paths;
	size_t *n_paths;
	unsigned int n_directories;
};

static bool is_pattern(const char *component, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (strchr("*?[\\", component[i]))
			return true;
	}
	return false;
}

static int list_pattern_names(struct expansion *expansion, const char *directory, const char *pattern,
			      const char ***ret_names, size_t *ret_n)
{
	const char **names;
	size_t n;
	int rc;

	if (++expansion->n_directories > DIRECTORIES_MAX)
		return -E2BIG;
	rc = graft_root_list(expansion->root, directory[0] ? directory : "/", SIZE_MAX, expansion->arena, &names, &n,
			     NULL);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	for (size_t i = 0; i < n; i++) {
		if (fnmatch(pattern, names[i], 0) == 0 &&
		    !graft_arena_push_string(expansion->arena, ret_names, ret_n, names[i]))
			return -ENOMEM;
	}
	return 0;
}

static int add_pattern_path(struct expansion *expansion, const char *path)
{
	auto_close int fd = graft_root_openat(expansion->root, path, O_PATH | O_NOFOLLOW);

	if (fd < 0)
		return 0;
	if (*expansion->n_paths >= PATHS_MAX)
		return -E2BIG;
	return graft_arena_push_string(expansion->arena, expansion->paths, expansion->n_paths, path) ? 0 : -ENOMEM;
}

static int expand(struct expansion *expansion, const char *directory, const char *rest);

static int expand_names(struct expansion *expansion, const char *directory, const char *pattern, const char *rest)
{
	const char **names = NULL;
	size_t n = 0;
	int rc = list_pattern_names(expansion, directory, pattern, &names, &n);

	for (size_t i = 0; i < n && rc == 0; i++) {
		const char *path = graft_arena_printf(expansion->arena, "%s/%s", directory, names[i]);

		rc = path ? expand(expansion, path, rest) : -ENOMEM;
	}
	return rc;
}

/* `directory` is "" for the root; `rest` is the part of the pattern after it. */
static int expand(struct expansion *expansion, const char *directory, const char *rest)
{
	const char *component = rest + strspn(rest, "/"), *text;
	size_t length = strcspn(component, "/");

	if (length == 0)
		return add_pattern_path(expansion, directory[0] ? directory : "/");
	text = graft_arena_strndup(expansion->arena, component, length);
	if (!text)
		return -ENOMEM;
	if (is_pattern(component, length))
		return expand_names(expansion, directory, text, component + length);
	text = graft_arena_printf(expansion->arena, "%s/%s", directory, text);
	return text ? expand(expansion, text, component + length) : -ENOMEM;
}

int graft_pattern_expand(const struct graft_root *root, const char *pattern, struct graft_arena *arena,
			 const char ***paths, size_t *n_paths)
{
	struct expansion expansion = { .root = root, .arena = arena, .paths = paths, .n_paths = n_paths };
	size_t before = *n_paths;
	int rc = expand(&expansion, "", pattern);

	return rc < 0 ? rc : (int)(*n_paths - before);
}
