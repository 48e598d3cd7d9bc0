/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_root: looks at a container's root before the low-level runtime does. Paths are compared as
 * the container will see them: links of the image are resolved below the root, for edits and mounts
 * alike. SECURITY: the comparison only decides when an edit is made, now or later; both times it is
 * made through descriptors below the root. Another container that shares the root and moves things
 * meanwhile can divert an edit to another place in that root, but nowhere else.
 */
#include "apply/oci/oci_root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "apply/namespace/mount.h"
#include "apply/namespace/to_namespace.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/strings.h"
#include "formats/loader/ldcache.h"
#include "formats/loader/ldsoconf.h"

void graft_oci_root_close(struct graft_oci_root *root)
{
	graft_target_close(&root->target);
}

/* ---- paths ---- */

static const char *make_absolute(const char *directory, const char *path, struct graft_arena *arena)
{
	if (path[0] == '/')
		return graft_arena_strdup(arena, path);
	return graft_arena_printf(arena, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, path);
}

/* The part of a path that exists, with all links resolved. */
struct prefix {
	const char *path; /* canonical */
	size_t length;    /* bytes of the given path that it covers */
	int fd;           /* O_PATH; owned */
};

/*
 * Finds the longest part that exists. Returns 0 or -errno; -ELOOP: it ends at a dangling link, so
 * it is unknown where the rest would be.
 */
static int find_prefix(const struct graft_oci_root *root, const char *path, struct prefix *ret_prefix)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	for (;;) {
		const char *part = graft_arena_strndup(root->arena, path, length > 0 ? length : 1);
		auto_close int fd = -1;
		int rc = part ? graft_image_root_resolve(&root->target.root, part, root->arena, &ret_prefix->path,
							 &ret_prefix->fd)
			      : -ENOMEM;

		ret_prefix->length = length;
		if (rc != -ENOENT || length == 0)
			return rc;
		fd = graft_image_root_look(&root->target.root, part, O_NOFOLLOW);
		if (fd >= 0)
			return -ELOOP;
		while (length > 0 && path[length - 1] != '/')
			length--;
		while (length > 0 && path[length - 1] == '/')
			length--;
	}
}

/* Resolves a path that contains links or mount points or is not in canonical form. */
static const char *resolve_oci_path(const struct graft_oci_root *root, const char *path, bool *ret_own_mount)
{
	struct prefix prefix = { .fd = -1 };
	const char *result = NULL;

	if (find_prefix(root, path, &prefix) == 0 && !graft_path_has_dots(path + prefix.length)) {
		*ret_own_mount = graft_image_root_may_write_at(&root->target.root, prefix.fd, true,
							       GRAFT_IMAGE_CONTENT) < 0;
		result = graft_arena_printf(root->arena, "%s/%s", prefix.path, path + prefix.length);
		/* The part that does not exist was not cleaned of surplus slashes by the lookup. */
		result = result ? graft_path_clean(NULL, result, root->arena) : NULL;
	}
	graft_cleanup_close(&prefix.fd);
	return result;
}

/*
 * Resolves a path in the root; NULL if that is impossible. *ret_own_mount: it resolves to another
 * mount than that of the root.
 */
static const char *canonical(const struct graft_oci_root *root, const char *path, bool *ret_own_mount)
{
	int rc = path ? graft_image_root_look_plain(&root->target.root, path) : -ENOMEM;

	*ret_own_mount = false;
	/*
	 * Up to a missing component there are neither links nor mounts, and nothing can be below
	 * it.
	 */
	if (rc == 0 || rc == -ENOENT)
		return path;
	return path ? resolve_oci_path(root, path, ret_own_mount) : NULL;
}

/* ---- the root ---- */

static bool map_root(const struct graft_oci_id_mapping *mappings, size_t n, uint32_t *ret_id)
{
	for (size_t i = 0; i < n; i++) {
		if (mappings[i].container_id == 0 && mappings[i].size > 0) {
			*ret_id = mappings[i].host_id;
			return true;
		}
	}
	return false;
}

/* New files must belong to the container's root user, under whatever id we know it. */
static void find_owner(struct graft_oci_root *root, const struct graft_oci_spec *spec)
{
	uint32_t uid = geteuid(), gid = getegid();

	root->owner_known = !spec->new_user_namespace || (map_root(spec->uid_mappings, spec->n_uid_mappings, &uid) &&
							  map_root(spec->gid_mappings, spec->n_gid_mappings, &gid));
	root->uid = uid;
	root->gid = gid;
}

static int find_bundle(struct graft_oci_root *root, const char *bundle, struct graft_error *err)
{
	char cwd[PATH_MAX];

	if (bundle && bundle[0] == '/') {
		root->bundle = bundle;
		return 0;
	}
	if (!getcwd(cwd, sizeof(cwd)))
		return graft_fail_errno(err, errno, "the path of the working directory is not known");
	root->bundle = make_absolute(cwd, bundle ? bundle : ".", root->arena);
	return root->bundle ? 0 : graft_fail_memory(err);
}

/* An empty directory is where a root is yet to be mounted. */
static bool has_content(const struct graft_image_root *root)
{
	static const char *const usual[] = { "/etc", "/usr", "/bin", "/lib" };
	struct stat st;

	for (size_t i = 0; i < GRAFT_COUNT(usual); i++)
		if (graft_image_root_stat(root, usual[i], &st) == 0)
			return true;
	return false;
}

static int open_oci_target(struct graft_oci_root *root, const char *rootfs, struct graft_budget *budget,
			   const struct graft_log *log, struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };
	struct statvfs fs;

	if (graft_target_open(getpid(), false, rootfs, budget, log, &root->target, &why) < 0) {
		/* SECURITY: the host's own root is never changed, now or later. */
		if (why.status == GRAFT_UNSAFE || why.status == GRAFT_NO_MEMORY) {
			*err = why;
			return -1;
		}
		root->obstacle = "the root does not exist yet";
		return 0;
	}
	root->target.uid = root->uid;
	root->target.gid = root->gid;
	if (!has_content(&root->target.root))
		root->obstacle = "the root is empty: it may not be mounted yet";
	else if (fstatvfs(root->target.root.fd, &fs) < 0 || (fs.f_flag & ST_RDONLY) != 0)
		root->obstacle = "the root is not writable";
	return 0;
}

/* ---- mounts of config.json ---- */

/* What every container has, and what neither contains libraries nor directories with libraries. */
static bool is_usual(const char *path)
{
	static const char *const trees[] = { "/proc", "/sys", "/dev" };
	static const char *const files[] = { "/etc/resolv.conf", "/etc/hosts", "/etc/hostname" };

	for (size_t i = 0; i < GRAFT_COUNT(trees); i++)
		if (graft_path_is_within(path, trees[i]))
			return true;
	return graft_is_in(files, GRAFT_COUNT(files), path);
}

/*
 * Whether an earlier mount covers it already (/dev/pts below /dev), so that its location in the
 * image is irrelevant.
 */
static bool is_below_another(const struct graft_oci_root *root, const char *given)
{
	for (size_t i = 0; i < root->n_covered; i++)
		if (root->covered[i].is_plain && graft_path_is_within(given, root->covered[i].path) &&
		    !graft_path_has_dots(given))
			return true;
	return false;
}

static int add_mounts(struct graft_oci_root *root, const struct graft_oci_spec *spec, const bool *plain)
{
	for (size_t i = 0; i < spec->n_mounts; i++) {
		const char *given = spec->mounts[i].destination;
		struct graft_oci_covered *covered;
		const char *path;
		bool own_mount;

		/* SECURITY: an image can have thousands of volumes; each is compared with all others. */
		if (graft_budget_is_spent(root->target.root.budget)) {
			root->obstacle = "comparing the mounts in config.json takes too long";
			return 0;
		}
		if (!given || is_below_another(root, given))
			continue;
		path = plain && plain[i] ? given : canonical(root, make_absolute("/", given, root->arena), &own_mount);
		if (!path) {
			root->obstacle = "a mount in config.json may cover it";
			return 0;
		}
		covered = graft_arena_push(root->arena, &root->covered, &root->n_covered, sizeof(*covered));
		if (!covered)
			return -1;
		covered->path = path;
		covered->is_library = graft_ldcache_is_library_name(graft_path_name(given)) ||
				      graft_ldcache_is_library_name(graft_path_name(path));
		covered->is_plain = strcmp(given, path) == 0;
		root->has_volumes = root->has_volumes || !is_usual(path);
	}
	return 0;
}

static int add_plan_mounts(struct graft_oci_root *root, const struct graft_plan *plan,
			   const struct graft_oci_options *options)
{
	for (size_t i = 0; i < options->n_other_mounts; i++)
		if (!graft_arena_push_string(root->arena, &root->plan_mounts, &root->n_plan_mounts,
					     options->other_mounts[i]))
			return -1;
	for (size_t i = 0; i < plan->n_edits; i++) {
		const struct graft_edit *edit = &plan->edits[i];
		bool directory = edit->kind == GRAFT_EDIT_TMPFS || graft_edit_mounts_directory(edit);

		root->has_volumes = root->has_volumes || graft_edit_mounts_libraries(edit);
		if (directory &&
		    !graft_arena_push_string(root->arena, &root->plan_mounts, &root->n_plan_mounts, edit->target))
			return -1;
	}
	return 0;
}

int graft_oci_root_open(struct graft_oci_root *ret_root, const char *bundle, const struct graft_oci_spec *spec,
			const struct graft_plan *plan, const struct graft_oci_options *options,
			struct graft_arena *arena, struct graft_error *err)
{
	struct graft_oci_root *root = ret_root;

	root->arena = arena;
	root->loader_dirs = options->loader_dirs;
	root->n_loader_dirs = options->n_loader_dirs;
	find_owner(root, spec);
	if (find_bundle(root, bundle, err) < 0)
		return -1;
	if (options->no_root_work)
		root->obstacle = "the configuration leaves it to the hook";
	else if (!spec->root_path || spec->root_path[0] == '\0')
		root->obstacle = "config.json has no root";
	else if (geteuid() != 0)
		root->obstacle = "without being root, Graft could not write everywhere in it";
	else if (!root->owner_known)
		root->obstacle = "the user that is root in the container's user namespace is not known";
	if (root->obstacle)
		return 0;
	if (open_oci_target(root, make_absolute(root->bundle, spec->root_path, arena), options->budget, options->log,
			    err) < 0)
		return -1;
	if (!root->obstacle &&
	    (add_mounts(root, spec, options->plain_mounts) < 0 || add_plan_mounts(root, plan, options) < 0))
		return graft_fail_memory(err);
	return 0;
}

/* ---- edits ---- */

static const struct graft_oci_directory *find_oci_directory(struct graft_oci_root *root, const char *given)
{
	struct graft_oci_directory *directory;

	if (!given)
		return NULL;
	for (size_t i = 0; i < root->n_directories; i++)
		if (strcmp(root->directories[i].given, given) == 0)
			return &root->directories[i];
	directory = graft_arena_push(root->arena, &root->directories, &root->n_directories, sizeof(*directory));
	if (!directory)
		return NULL;
	directory->given = given;
	directory->path = canonical(root, given, &directory->own_mount);
	return directory;
}

/* Whether a mount covers it; once the budget is spent, it may. */
static bool is_covered(const struct graft_oci_root *root, const char *path)
{
	if (graft_budget_is_spent(root->target.root.budget))
		return true;
	for (size_t i = 0; i < root->n_covered; i++)
		if (graft_path_is_within(path, root->covered[i].path))
			return true;
	for (size_t i = 0; i < root->n_plan_mounts; i++)
		if (graft_path_is_within(path, root->plan_mounts[i]))
			return true;
	return false;
}

bool graft_oci_root_is_covered_below(const struct graft_oci_root *root, const struct graft_oci_spec *spec,
				     const char *mount_point, const char *path)
{
	for (size_t i = 0; i < spec->n_mounts; i++) {
		const char *given = spec->mounts[i].destination;
		const char *place = given ? graft_path_clean("/", given, root->arena) : mount_point;

		if (!place || (strcmp(place, mount_point) != 0 && graft_path_is_within(path, place)))
			return true;
	}
	/* Mounts that end up there through a link of the image. */
	for (size_t i = 0; i < root->n_covered; i++)
		if (strcmp(root->covered[i].path, mount_point) != 0 &&
		    graft_path_is_within(path, root->covered[i].path))
			return true;
	for (size_t i = 0; i < root->n_plan_mounts; i++)
		if (graft_path_is_within(path, root->plan_mounts[i]))
			return true;
	return false;
}

static const char *obstacle_at(struct graft_oci_root *root, const char *given_directory, const char *name)
{
	const struct graft_oci_directory *directory;
	const char *path;

	if (given_directory && is_below_another(root, given_directory))
		return "a mount covers it";
	directory = find_oci_directory(root, given_directory);
	if (!directory || !directory->path)
		return "its location is not known";
	if (directory->own_mount)
		return "it is not on the mount of the root";
	path = name[0] == '\0' ? directory->path
			       : graft_arena_join(root->arena, directory->path, strlen(directory->path), name);
	if (!path || is_covered(root, path))
		return "a mount covers it";
	return NULL;
}

/* For a file or link: what has its name now does not matter, since it is replaced. */
static const char *obstacle_of_file(struct graft_oci_root *root, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	size_t length = slash && slash != path ? (size_t)(slash - path) : 1;

	if (!slash)
		return "its location is not known";
	return obstacle_at(root, graft_arena_strndup(root->arena, path, length), slash + 1);
}

/*
 * Libraries of a volume belong in the cache too, but are visible only once the volume is mounted.
 * Containers without volumes skip this check, which resolves a dozen directories.
 */
static const char *obstacle_of_volumes(struct graft_oci_root *root)
{
	const char **directories = root->loader_dirs;
	size_t n = root->n_loader_dirs;

	if (!root->has_volumes)
		return NULL;
	if (n == 0)
		return "the directories that the image's loader searches are not known";
	for (size_t i = 0; i < n; i++) {
		const struct graft_oci_directory *directory = graft_budget_is_spent(root->target.root.budget)
								  ? NULL
								  : find_oci_directory(root, directories[i]);

		if (!directory || !directory->path || directory->own_mount || is_covered(root, directory->path))
			return "a mount covers a directory of the loader";
		for (size_t j = 0; j < root->n_covered; j++)
			if (root->covered[j].is_library && graft_path_is_within(root->covered[j].path, directory->path))
				return "a library is mounted into a directory of the loader";
	}
	return NULL;
}

static const char *obstacle_of_cache(struct graft_oci_root *root, const struct graft_edit *edit)
{
	static const char *const files[] = { "/etc/ld.so.cache", "/etc/ld.so.conf", GRAFT_LDSOCONF_OWN };

	if (edit->musl_path_file)
		return obstacle_of_file(root, edit->musl_path_file);
	for (size_t i = 0; i < GRAFT_COUNT(files); i++) {
		const char *why = obstacle_of_file(root, files[i]);

		if (why)
			return why;
	}
	return obstacle_of_volumes(root);
}

const char *graft_oci_root_obstacle(struct graft_oci_root *root, const struct graft_edit *edit)
{
	if (root->obstacle)
		return root->obstacle;
	switch (edit->kind) {
	case GRAFT_EDIT_SYMLINK:
	case GRAFT_EDIT_FILE:
		return obstacle_of_file(root, edit->target);
	case GRAFT_EDIT_DIRECTORY:
		return obstacle_at(root, edit->target, "");
	case GRAFT_EDIT_LDCACHE:
		return obstacle_of_cache(root, edit);
	case GRAFT_EDIT_TMPFS:
	case GRAFT_EDIT_COVER:
	case GRAFT_EDIT_BIND:
	case GRAFT_EDIT_DEVICE:
		return "it is a mount";
	case GRAFT_EDIT_CGROUP:
	case GRAFT_EDIT_ENV:
	case GRAFT_EDIT_MAX:
		break;
	}
	return "it is not a change of files";
}

static bool is_container_program(const struct graft_oci_root *root, const char *path)
{
	struct stat st;

	return graft_image_root_stat(&root->target.root, path, &st) == 0 && S_ISREG(st.st_mode) &&
	       (st.st_mode & 0111u) != 0;
}

bool graft_oci_root_has_program(const struct graft_oci_root *root, const struct graft_oci_spec *spec, const char *name)
{
	const char *path = graft_oci_spec_env(spec, "PATH");

	if (root->obstacle || name[0] == '/')
		return !root->obstacle && is_container_program(root, name);
	if (strchr(name, '/'))
		return false; /* below a working directory that may be a volume */
	while (path && path[0] != '\0') {
		size_t length = strcspn(path, ":");
		const char *file = graft_arena_join(root->arena, path, length, name);

		if (file && file[0] == '/' && is_container_program(root, file))
			return true;
		path += length + (path[length] == ':' ? 1 : 0);
	}
	return false;
}

static bool is_in_search_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;

	return (length >= 4 && memcmp(slash - 4, "/bin", 4) == 0) ||
	       (length >= 5 && memcmp(slash - 5, "/sbin", 5) == 0);
}

static bool is_to_be_hidden(const struct graft_oci_root *root, const struct graft_oci_spec *spec, const char *path)
{
	return graft_path_overlaps_one(path, spec->masked_paths, spec->n_masked_paths, root->arena) ||
	       graft_path_overlaps_one(path, spec->readonly_paths, spec->n_readonly_paths, root->arena);
}

/*
 * QUIRK: while they create a container, runc and crun look for the program that it will start, and
 * fail if there is none.
 */
const char *graft_oci_root_obstacle_later(struct graft_oci_root *root, const struct graft_oci_spec *spec,
					  const struct graft_edit *edit, const char *program, bool has_program)
{
	const char *why_not, *place;
	bool own_mount;

	if (!edit->source || !edit->target || graft_path_has_dots(edit->target))
		return "its location is not known";
	if (strcmp(graft_path_name(edit->target), graft_path_name(program)) == 0 ||
	    (!has_program && is_in_search_path(edit->target)))
		return "the low-level runtime may look for this program";
	why_not = obstacle_of_file(root, edit->target);
	if (why_not)
		return why_not;
	/* Unlike a link, a mount follows an existing link of its name. */
	place = canonical(root, edit->target, &own_mount);
	if (!place)
		return "its location is not known";
	if (own_mount || is_covered(root, place))
		return "a link leads to another mount";
	return is_to_be_hidden(root, spec, edit->target) || is_to_be_hidden(root, spec, place)
		   ? "it will be masked or read-only"
		   : NULL;
}

int graft_oci_root_apply(struct graft_oci_root *root, const struct graft_plan *plan,
			 const struct graft_oci_options *options, struct graft_error *err)
{
	const struct graft_namespace_options early = { .log = options->log, .early = true };

	return graft_apply_to_namespace(plan, &root->target, &early, err);
}
