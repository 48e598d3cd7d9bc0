/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_find: collects the containers of a host, then picks the one that is meant. Files that
 * are missing or cannot be parsed are skipped: others may describe the container.
 */
#include "doctor/container_find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/path.h"
#include "base/strings.h"
#include "doctor/container_sources.h"

const char *const graft_keeper_names[GRAFT_KEEPER_MAX] = {
	[GRAFT_KEEPER_UNKNOWN] = "unknown",
	[GRAFT_KEEPER_RUNC] = "runc",
	[GRAFT_KEEPER_CRUN] = "crun",
	[GRAFT_KEEPER_CONTAINERD] = "containerd",
	[GRAFT_KEEPER_KUBERNETES] = "kubernetes",
	[GRAFT_KEEPER_CRIO] = "cri-o",
	[GRAFT_KEEPER_PODMAN] = "podman",
	[GRAFT_KEEPER_DOCKER] = "docker",
};

/* ---- matching ---- */

static bool is_process_id(const char *word)
{
	return word[0] != '\0' && word[strspn(word, "0123456789")] == '\0' && strlen(word) < 12;
}

static bool is_called(const struct graft_found_container *container, const char *word)
{
	const char *name = container->name;

	if (strcmp(container->id, word) == 0 || (name && strcmp(name, word) == 0))
		return true;
	/* "pod/container", or either alone. */
	if (!container->pod)
		return false;
	return strcmp(container->pod, word) == 0 ||
	       (name && graft_starts_with(word, container->pod) && word[strlen(container->pod)] == '/' &&
		strcmp(word + strlen(container->pod) + 1, name) == 0);
}

static bool begins_id(const struct graft_found_container *container, const char *word)
{
	return graft_starts_with(container->id, word);
}

static const char *describe_container(const struct graft_finder *finder, const struct graft_found_container *container)
{
	const char *text = graft_arena_printf(finder->arena, "%.12s%s%s%s (%s)", container->id,
					      container->name ? " '" : "", container->name ? container->name : "",
					      container->name ? "'" : "", graft_keeper_names[container->keeper]);

	return text ? text : "";
}

/*
 * Returns 1 and the container if exactly one matches; 0 if none does; -1 if several do.
 */
static int pick_container(struct graft_finder *finder, const char *word,
			  bool (*matches)(const struct graft_found_container *container, const char *word),
			  const struct graft_found_container **ret_container, struct graft_error *err)
{
	const struct graft_found_container *found = NULL;
	const char *list = "";
	size_t n = 0;

	for (size_t i = 0; i < finder->n_containers; i++) {
		if (!matches(&finder->containers[i], word))
			continue;
		found = &finder->containers[i];
		list = graft_arena_printf(finder->arena, "%s%s%s", list, n++ > 0 ? ", " : "",
					  describe_container(finder, found));
		if (!list)
			return graft_fail_memory(err);
	}
	*ret_container = found;
	if (n < 2)
		return (int)n;
	(void)graft_fail(err, GRAFT_INVALID, 0, "'%s' may be any of %zu containers: %s", word, n, list);
	return graft_with_hint(err, "Give the whole ID.");
}

/* ---- processes ---- */

/* The inode of a process' mount namespace; 0 if the process has ended, or may not be examined. */
static uint64_t mount_namespace(const struct graft_finder *finder, const char *process)
{
	const char *path = graft_arena_printf(finder->arena, "/proc/%s/ns/mnt", process), *number;
	auto_close int fd = path ? graft_root_openat(finder->host, path, O_PATH | O_NOFOLLOW) : -ENOMEM;
	char target[64]; /* "mnt:[4026531841]": the link itself has another inode */
	ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", target, sizeof(target) - 1);

	if (n < 0)
		return 0;
	target[n] = '\0';
	number = strchr(target, '[');
	return number ? strtoull(number + 1, NULL, 10) : 0;
}

static bool is_process(const struct graft_finder *finder, const char *word)
{
	const char *directory = graft_arena_printf(finder->arena, "/proc/%s", word);

	return directory && graft_root_has(finder->host, directory, O_DIRECTORY);
}

static int fail_no_process(const char *word, struct graft_error *err)
{
	(void)graft_fail(err, GRAFT_NOT_FOUND, 0, "no container and no process %s", word);
	return graft_with_hint(err,
			       "See 'docker ps', 'podman ps', 'ctr task list' or 'crictl ps' for what is running.");
}

/* The container to which the process belongs, as its first process or by its mounts. */
static int pick_process(struct graft_finder *finder, const char *word, struct graft_found_container *ret_container,
			struct graft_error *err)
{
	int64_t pid = strtoll(word, NULL, 10);
	uint64_t ours, theirs;

	for (size_t i = 0; i < finder->n_containers; i++) {
		if (finder->containers[i].pid == pid) {
			*ret_container = finder->containers[i];
			return 0;
		}
	}
	ours = mount_namespace(finder, "self");
	theirs = mount_namespace(finder, word);
	if (theirs == 0) {
		(void)graft_fail(err, GRAFT_PERMISSION, 0, "the namespaces of process %s cannot be seen", word);
		return graft_with_hint(err, "Run it as root, with CAP_SYS_PTRACE.");
	}
	for (size_t i = 0; i < finder->n_containers; i++) {
		const char *text = graft_arena_printf(finder->arena, "%lld", (long long)finder->containers[i].pid);

		if (text && finder->containers[i].pid > 0 && mount_namespace(finder, text) == theirs) {
			*ret_container = finder->containers[i];
			return 0;
		}
	}
	if (theirs == ours) {
		(void)graft_fail(err, GRAFT_INVALID, 0,
				 "process %s is not in a container: it has the same mounts as this program", word);
		return graft_with_hint(err, "Give the ID or the name of a container, or a process that is in it.");
	}
	*ret_container = (struct graft_found_container){ .id = word, .pid = pid };
	return 0;
}

/* ---- bundles ---- */

static int pick_bundle(struct graft_finder *finder, const char *word, struct graft_found_container *ret_container,
		       struct graft_error *err)
{
	const char *bundle, *config;

	if (word[0] != '/' || graft_root_resolve_directory(finder->host, word, finder->arena, &bundle, NULL) < 0) {
		(void)graft_fail(err, GRAFT_NOT_FOUND, 0, "no bundle at %s", word);
		return graft_with_hint(err, "Give the absolute path of the directory that holds config.json.");
	}
	config = graft_arena_printf(finder->arena, "%s/config.json", bundle);
	if (!config)
		return graft_fail_memory(err);
	if (!graft_root_has(finder->host, config, 0)) {
		(void)graft_fail(err, GRAFT_NOT_FOUND, 0, "%s is not a bundle: it has no config.json", bundle);
		return graft_with_hint(err, "Give the absolute path of the directory that holds config.json.");
	}
	for (size_t i = 0; i < finder->n_containers; i++) {
		const struct graft_found_container *container = &finder->containers[i];

		if (container->bundle && strcmp(container->bundle, bundle) == 0) {
			*ret_container = *container;
			return 0;
		}
	}
	*ret_container = (struct graft_found_container){ .id = graft_path_name(bundle), .bundle = bundle };
	return 0;
}

/* ---- errors ---- */

static int fail_no_container(struct graft_finder *finder, const char *word, struct graft_error *err)
{
	struct graft_nearest_search search = { .word = word };

	for (size_t i = 0; i < finder->n_containers; i++) {
		graft_nearest_consider(&search, finder->containers[i].id);
		if (finder->containers[i].name)
			graft_nearest_consider(&search, finder->containers[i].name);
		if (finder->containers[i].pod)
			graft_nearest_consider(&search, finder->containers[i].pod);
	}
	if (search.best)
		(void)graft_fail(err, GRAFT_NOT_FOUND, 0, "no container '%s' (did you mean '%s'?)", word, search.best);
	else
		(void)graft_fail(err, GRAFT_NOT_FOUND, 0, "no container '%s' among the %zu that can be seen", word,
				 finder->n_containers);
	return graft_with_hint(err, finder->denied
					? "Run it as root to see the containers of root, too."
					: "See 'docker ps', 'podman ps', 'ctr task list' or 'crictl ps'; or give "
					  "the process ID of a program in the container, or its bundle.");
}

int graft_container_find(const struct graft_root *host, const char *word, struct graft_arena *arena,
			 struct graft_found_container *ret_container, struct graft_error *err)
{
	struct graft_finder finder = { .host = host, .arena = arena };
	const struct graft_found_container *found = NULL;
	int n;

	graft_finder_collect(&finder);
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	if (strchr(word, '/') && word[0] != '\0' && (word[0] == '/' || word[0] == '.'))
		return pick_bundle(&finder, word, ret_container, err);
	n = pick_container(&finder, word, is_called, &found, err);
	/* A number may be the beginning of an ID, but means the process if one exists. */
	if (n == 0 && is_process_id(word) && is_process(&finder, word))
		return pick_process(&finder, word, ret_container, err);
	if (n == 0 && word[0] != '\0')
		n = pick_container(&finder, word, begins_id, &found, err);
	if (n == 0 && is_process_id(word))
		return fail_no_process(word, err);
	if (n < 0)
		return -1;
	if (n == 0)
		return fail_no_container(&finder, word, err);
	*ret_container = *found;
	return 0;
}
