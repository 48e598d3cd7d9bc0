/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi_merge: merges the edits of several devices and checks them against the host. A spec is used
 * some time after it was written; if the host has changed since (another driver, a reboot, one GPU
 * less), this file reports it and names the spec. A low-level runtime, which fails later, only
 * knows a path.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "host/cdi_registry.h"

/* Appends `n` items to a list. If memory is exhausted, the arena records it. */
static void append_cdi_items(struct graft_arena *arena, void *list, size_t *n_list, const void *items, size_t n,
			     size_t size)
{
	for (size_t i = 0; i < n; i++) {
		void *slot = graft_arena_push(arena, list, n_list, size);

		if (!slot)
			return;
		memcpy(slot, (const char *)items + i * size, size);
	}
}

#define APPEND(list) \
	append_cdi_items(arena, &edits->list, &edits->n_##list, more->list, more->n_##list, sizeof(*more->list))

static void merge_cdi_edits(struct graft_arena *arena, const struct graft_cdi_edits *more,
			    struct graft_cdi_edits *edits)
{
	APPEND(env);
	APPEND(nodes);
	APPEND(net_devices);
	APPEND(mounts);
	APPEND(hooks);
	APPEND(gids);
	if (more->rdt)
		edits->rdt = more->rdt;
}

static const struct graft_cdi_edits *edits_of(const struct graft_cdi_choice *choice)
{
	return choice->device ? &choice->device->edits : &choice->spec->edits;
}

int graft_cdi_choices_merge(const struct graft_cdi_choice *choices, size_t n, struct graft_arena *arena,
			    struct graft_cdi_edits *ret_edits, struct graft_error *err)
{
	*ret_edits = (struct graft_cdi_edits){ .env = NULL };
	for (size_t i = 0; i < n; i++)
		merge_cdi_edits(arena, edits_of(&choices[i]), ret_edits);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

/* --- against the host --- */

static int fail_stale(const struct graft_cdi_spec *spec, const char *what, const char *path, struct graft_error *err)
{
	return graft_fail(
	    err, GRAFT_NOT_FOUND, 0,
	    "CDI spec %s is stale: %s %s is not on this host; regenerate the spec (NVIDIA's: nvidia-ctk cdi "
	    "generate --output=%s)",
	    spec->file, what, path, spec->file);
}

static const char *device_type_of(mode_t mode)
{
	if (S_ISCHR(mode))
		return "c";
	if (S_ISBLK(mode))
		return "b";
	return S_ISFIFO(mode) ? "p" : NULL;
}

static bool is_same_type(const char *given, const char *type)
{
	return strcmp(given, type) == 0 || (strcmp(given, "u") == 0 && strcmp(type, "c") == 0);
}

static void take_numbers(const struct graft_cdi_spec *spec, const struct stat *st, const struct graft_log *log,
			 struct graft_cdi_node *node)
{
	int64_t have_major = major(st->st_rdev), have_minor = minor(st->st_rdev);

	/*
	 * The numbers of a node without a type date from when the spec was written; the node that
	 * exists now is the intended one.
	 */
	if (node->major != 0 && (node->major != have_major || node->minor != have_minor))
		graft_warn(log,
			   "CDI spec %s is stale: it has device node %s as %lld:%lld, this host as %lld:%lld; using "
			   "the latter",
			   spec->file, node->host_path ? node->host_path : node->path, (long long)node->major,
			   (long long)node->minor, (long long)have_major, (long long)have_minor);
	node->major = have_major;
	node->minor = have_minor;
	node->has_numbers = true;
}

/* SPEC ctk-and-cdi 5.6: a node whose type and numbers are given need not exist. */
static bool is_complete(const struct graft_cdi_node *node)
{
	return node->type && (node->major != 0 || strcmp(node->type, "p") == 0);
}

static int realize_node(const struct graft_cdi_spec *spec, const struct graft_log *log, struct graft_cdi_node *node,
			struct graft_error *err)
{
	const char *host = node->host_path ? node->host_path : node->path, *type;
	bool complete = is_complete(node);
	struct stat st;

	if (lstat(host, &st) < 0) {
		int error = errno;

		if (complete)
			return 0;
		if (error == ENOENT || error == ENOTDIR)
			return fail_stale(spec, "device node", host, err);
		return graft_fail_errno(err, error, "CDI spec %s: failed to stat CDI host device \"%s\"", spec->file,
					host);
	}
	type = device_type_of(st.st_mode);
	if (!type) {
		return complete ? 0
				: graft_fail(err, GRAFT_INVALID, 0,
					     "CDI spec %s: failed to stat CDI host device \"%s\": not a device node",
					     spec->file, host);
	}
	if (!node->has_mode) {
		node->has_mode = true;
		node->mode = st.st_mode & 07777;
	}
	if (complete)
		return 0;
	if (node->type && !is_same_type(node->type, type))
		return graft_fail(err, GRAFT_INVALID, 0,
				  "CDI spec %s: CDI device (\"%s\", \"%s\"), host type mismatch (%s, %s)", spec->file,
				  node->path, host, node->type, type);
	if (!node->type)
		node->type = type;
	if (strcmp(type, "p") != 0)
		take_numbers(spec, &st, log, node);
	return 0;
}

static bool is_host_path_there(const char *path)
{
	struct stat st;

	/* If the path cannot be examined for another reason, leave it to the low-level runtime. */
	return stat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

static bool is_bind(const struct graft_cdi_mount *row)
{
	return row->host_path[0] == '/' &&
	       (!row->type || strcmp(row->type, "bind") == 0 || strcmp(row->type, "none") == 0);
}

/*
 * What was already checked: sources of mounts, in the order of the choices, and the program of the
 * previous hook.
 */
struct looks {
	const char *const *sources;
	size_t n_sources;
	const char *program;
};

static bool was_seen(struct looks *looks, const char *source)
{
	if (looks->n_sources == 0 || strcmp(looks->sources[0], source) != 0)
		return false;
	looks->sources++;
	looks->n_sources--;
	return true;
}

static int check_choice_paths(const struct graft_cdi_choice *choice, struct looks *looks, struct graft_error *err)
{
	const struct graft_cdi_edits *edits = edits_of(choice);

	for (size_t i = 0; i < edits->n_mounts; i++) {
		const char *source = edits->mounts[i].host_path;

		if (is_bind(&edits->mounts[i]) && !was_seen(looks, source) && !is_host_path_there(source))
			return fail_stale(choice->spec, "mount source", source, err);
	}
	for (size_t i = 0; i < edits->n_hooks; i++) {
		const char *program = edits->hooks[i].path;

		if (graft_cdi_hook_is_of_image(&edits->hooks[i]) || program[0] != '/' ||
		    (looks->program && strcmp(program, looks->program) == 0))
			continue;
		if (!is_host_path_there(program))
			return fail_stale(choice->spec, "hook program", program, err);
		looks->program = program;
	}
	return 0;
}

int graft_cdi_choices_realize_nodes(const struct graft_cdi_choice *choices, size_t n, const struct graft_log *log,
				    struct graft_arena *arena, struct graft_cdi_edits *ret_edits,
				    struct graft_error *err)
{
	size_t node = 0;

	if (graft_cdi_choices_merge(choices, n, arena, ret_edits, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		for (size_t left = edits_of(&choices[i])->n_nodes; left > 0; left--) {
			if (realize_node(choices[i].spec, log, &ret_edits->nodes[node++], err) < 0)
				return -1;
		}
	}
	return 0;
}

int graft_cdi_choices_check_paths(const struct graft_cdi_choice *choices, size_t n, const char *const *seen,
				  size_t n_seen, struct graft_error *err)
{
	struct looks looks = { .sources = seen, .n_sources = n_seen };

	for (size_t i = 0; i < n; i++)
		if (check_choice_paths(&choices[i], &looks, err) < 0)
			return -1;
	return 0;
}

int graft_cdi_choices_realize(const struct graft_cdi_choice *choices, size_t n, const struct graft_log *log,
			      struct graft_arena *arena, struct graft_cdi_edits *ret_edits, struct graft_error *err)
{
	if (graft_cdi_choices_realize_nodes(choices, n, log, arena, ret_edits, err) < 0)
		return -1;
	return graft_cdi_choices_check_paths(choices, n, NULL, 0, err);
}
