/* SPDX-License-Identifier: Apache-2.0 */
/* kube_choice: lists the directory and chooses. Does not read the files. */
#include "kubernetes/kube_choice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "base/nearest.h"
#include "base/strings.h"
#include "kubernetes/kube_tables.h"

#define FILES_MAX ((size_t)4096)

/* The files, in byte order. */
struct file_names {
	const char **names;
	size_t n;
};

static bool is_config_file(int folder_fd, const char *name)
{
	struct stat st;

	return !graft_starts_with(name, "..") && fstatat(folder_fd, name, &st, 0) == 0 && !S_ISDIR(st.st_mode);
}

static int list_config_files(const char *folder, struct graft_arena *arena, struct file_names *ret_files,
			     struct graft_error *err)
{
	auto_close int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char **names = NULL;
	size_t n = 0;
	int rc = fd < 0 ? -errno : graft_list_names(fd, FILES_MAX, arena, &names, &n, NULL);

	if (rc < 0)
		return graft_fail_errno(err, -rc, "cannot list the config files in %s", folder);
	*ret_files = (struct file_names){ .names = graft_arena_list(arena, n, sizeof(*names)) };
	if (n > 0 && !ret_files->names)
		return graft_fail_memory(err);
	for (size_t i = 0; i < n; i++) {
		if (is_config_file(fd, names[i]))
			ret_files->names[ret_files->n++] = names[i];
	}
	return 0;
}

/* Chooses the named file. `source`: where the name comes from. */
static int choose_named(const struct graft_kube_choice *choice, const struct file_names *files, const char *source,
			const char *name, struct graft_arena *arena, const char **ret_path, struct graft_error *err)
{
	char there[200];

	if (!graft_is_in(files->names, files->n, name)) {
		(void)graft_fail(err, GRAFT_NOT_FOUND, 0,
				 "%s names the config '%s', but %s has no such file%s; it has: %s", source, name,
				 choice->folder, graft_nearest_hint(files->names, files->n, name, arena),
				 files->n > 0 ? kube_list_words(files->names, files->n, there, sizeof(there)) : "none");
		return graft_with_hint(
		    err, "Correct the name, or add a file of that name, which is a key of the ConfigMap.");
	}
	*ret_path = graft_arena_join(arena, choice->folder, strlen(choice->folder), name);
	return *ret_path ? 0 : graft_fail_memory(err);
}

/* Returns the name of what the strategy finds, "" for no file, or NULL for nothing. */
static const char *fall_back(const char *strategy, size_t length, const struct file_names *files)
{
	if (length == strlen("named") && memcmp(strategy, "named", length) == 0)
		return graft_is_in(files->names, files->n, "default") ? "default" : NULL;
	if (length == strlen("single") && memcmp(strategy, "single", length) == 0)
		return files->n == 1 ? files->names[0] : NULL;
	return length == strlen("empty") && memcmp(strategy, "empty", length) == 0 ? "" : NULL;
}

static const char *try_fallbacks(const char *fallbacks, const struct file_names *files)
{
	const char *name = NULL;

	while (!name && *fallbacks != '\0') {
		const char *strategy;
		size_t length = kube_take_item(&fallbacks, &strategy);

		name = fall_back(strategy, length, files);
	}
	return name;
}

int graft_kube_choose(const struct graft_kube_choice *choice, const char *value, struct graft_arena *arena,
		      const char **ret_path, struct graft_error *err)
{
	struct file_names files;
	const char *name;
	char source[320];

	if (list_config_files(choice->folder, arena, &files, err) < 0)
		return -1;
	if (value && value[0] != '\0') {
		(void)snprintf(source, sizeof(source), "the node's label %s", choice->label);
		return choose_named(choice, &files, source, value, arena, ret_path, err);
	}
	if (choice->default_config[0] != '\0')
		return choose_named(choice, &files, "the default", choice->default_config, arena, ret_path, err);
	name = try_fallbacks(choice->fallbacks, &files);
	if (!name) {
		(void)graft_fail(err, GRAFT_INVALID, 0,
				 "no config was set, no default was provided, and all fallbacks failed");
		return graft_with_hint(err, "Label the node, or give --default-config or --fallback-strategies.");
	}
	*ret_path = name[0] == '\0' ? "" : graft_arena_join(arena, choice->folder, strlen(choice->folder), name);
	return *ret_path ? 0 : graft_fail_memory(err);
}
