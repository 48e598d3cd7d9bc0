/* SPDX-License-Identifier: Apache-2.0 */
/* path: cleans and compares paths, component by component. */
#include "base/path.h"

#include <limits.h>
#include <string.h>

/* Appends the components of `path` to those in `clean`. Returns the new length. */
static size_t add_components(char *clean, size_t length, const char *path)
{
	while (*path != '\0') {
		size_t n = strcspn(path, "/");

		if (n == 2 && strncmp(path, "..", 2) == 0) {
			while (length > 0 && clean[--length] != '/')
				continue;
		} else if (n > 0 && !(n == 1 && path[0] == '.')) {
			clean[length++] = '/';
			memcpy(clean + length, path, n);
			length += n;
		}
		path += n + (path[n] == '/');
	}
	return length;
}

char *graft_path_clean(const char *base, const char *path, struct graft_arena *arena)
{
	size_t length = 0;
	char *clean;

	if (path[0] != '/' && (!base || base[0] != '/'))
		return NULL;
	clean = graft_arena_alloc(arena, (base ? strlen(base) : 0) + strlen(path) + 3);
	if (!clean)
		return NULL;
	if (path[0] != '/')
		length = add_components(clean, length, base);
	length = add_components(clean, length, path);
	if (length == 0)
		clean[length++] = '/';
	clean[length] = '\0';
	return clean;
}

static size_t count_slashes(const char *path)
{
	size_t n = 0;

	for (; *path != '\0'; path++)
		n += *path == '/';
	return n;
}

int graft_path_compare(const char *a, const char *b)
{
	size_t depth_a, depth_b;

	/* The common prefix, usually nearly everything, does not affect the order. */
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	depth_a = count_slashes(a);
	depth_b = count_slashes(b);
	if (depth_a != depth_b)
		return depth_a < depth_b ? -1 : 1;
	return strcmp(a, b);
}

bool graft_path_is_within(const char *path, const char *directory)
{
	size_t length = 0;

	if (strcmp(directory, "/") == 0)
		return true;
	while (directory[length] != '\0' && path[length] == directory[length])
		length++;
	return directory[length] == '\0' && (path[length] == '\0' || path[length] == '/');
}

bool graft_path_overlap(const char *a, const char *b)
{
	return graft_path_is_within(a, b) || graft_path_is_within(b, a);
}

bool graft_path_overlaps_one(const char *path, const char *const *paths, size_t n, struct graft_arena *arena)
{
	for (size_t i = 0; i < n; i++) {
		const char *other = graft_path_clean("/", paths[i], arena);

		if (!other || graft_path_overlap(path, other))
			return true;
	}
	return false;
}

const char *graft_path_name(const char *path)
{
	const char *name = path;

	for (; *path != '\0'; path++)
		if (*path == '/')
			name = path + 1;
	return name;
}

bool graft_path_is_system(const char *path)
{
	return graft_path_overlap(path, "/dev") || graft_path_overlap(path, "/proc") ||
	       graft_path_overlap(path, "/sys");
}

bool graft_path_same_directory(const char *a, const char *b)
{
	size_t length = (size_t)(graft_path_name(a) - a);

	return length == (size_t)(graft_path_name(b) - b) && strncmp(a, b, length) == 0;
}

const char *graft_path_directory(const char *path, struct graft_arena *arena)
{
	size_t length = (size_t)(graft_path_name(path) - path);

	return length > 0 ? graft_arena_strndup(arena, path, length > 1 ? length - 1 : length) : NULL;
}

bool graft_path_is_component(const char *name)
{
	return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/') &&
	       strlen(name) <= NAME_MAX;
}

bool graft_path_has_dots(const char *path)
{
	for (const char *at = path; (at = strstr(at, "/.")); at++)
		if (at[2] == '\0' || at[2] == '/' || (at[2] == '.' && (at[3] == '\0' || at[3] == '/')))
			return true;
	return false;
}

bool graft_path_has_parents(const char *path)
{
	for (const char *at = path; (at = strstr(at, "/..")); at++)
		if (at[3] == '\0' || at[3] == '/')
			return true;
	return false;
}
