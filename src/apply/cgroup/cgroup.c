/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: finds the devices cgroup of a process and passes rules to the code for its cgroup
 * version. Decides whether a failure is an error or missing permission that may be skipped; does
 * not know what a rule looks like in the kernel or where rules come from.
 */
#include "apply/cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "apply/cgroup/cgroup_versions.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "base/strings.h"
#include "formats/procfs.h"

#define CGROUP_MAX    ((size_t)1024 * 1024)
#define MOUNTINFO_MAX ((size_t)32 * 1024 * 1024)
#define ARENA_MAX     (4 * MOUNTINFO_MAX)

struct search {
	struct graft_root root;
	struct graft_arena *arena;
	pid_t pid;
	struct graft_mountinfo *mounts, usual;
	size_t n_mounts;
	/* What was found: the mount that shows the cgroup, and its path below that. */
	const struct graft_mountinfo *mount;
	const char *rest;
};

static void search_done(struct search *search)
{
	graft_root_close(&search->root);
	search->arena = graft_arena_free(search->arena);
}

static int read_cgroup_file(const struct search *search, const char *path, size_t max, const char **ret_text,
			    size_t *ret_length, struct graft_error *err)
{
	int r = graft_root_read(&search->root, path, max, search->arena, ret_text, ret_length);

	return r < 0 ? graft_fail_errno(err, -r, "open failed: /%s", path) : 0;
}

/*
 * Finds the cgroup paths of the process: [1] in the v1 hierarchy with the devices controller, [2]
 * in v2; NULL if it has none.
 */
static int read_paths(const struct search *search, const char *ret_paths[3], struct graft_error *err)
{
	struct graft_cgroup_entry *entries = NULL;
	const char *text;
	size_t length, n = 0;
	char path[64] = "proc/self/cgroup";

	if (search->pid > 0)
		(void)snprintf(path, sizeof(path), "proc/%d/cgroup", (int)search->pid);
	if (read_cgroup_file(search, path, CGROUP_MAX, &text, &length, err) < 0 ||
	    graft_procfs_cgroup(text, length, search->arena, &entries, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		int version = graft_list_has(entries[i].controllers, "devices") ? 1
			      : entries[i].controllers[0] == '\0'               ? 2
										: 0;

		if (version && !ret_paths[version])
			ret_paths[version] = entries[i].path;
	}
	if (ret_paths[1] || ret_paths[2])
		return 0;
	(void)graft_fail(err, GRAFT_NOT_FOUND, 0, "no devices or unified cgroup entries found");
	return -1;
}

static int read_cgroup_mounts(struct search *search, struct graft_error *err)
{
	const char *text;
	size_t length;

	/* Ours, not the container's or the parent's: these are the paths that we can open. */
	if (read_cgroup_file(search, "proc/self/mountinfo", MOUNTINFO_MAX, &text, &length, err) < 0)
		return -1;
	if (graft_procfs_mountinfo(text, length, search->arena, &search->mounts, &search->n_mounts) < 0)
		return graft_fail_memory(err);
	return 0;
}

/* The kernel's numbers for the first cgroup namespace and for the root directory of a hierarchy. */
#define INITIAL_CGROUP_NAMESPACE 0xeffffffbu
#define HIERARCHY_ROOT           1

/*
 * Looks for the hierarchy where nearly every host has it. If it is visible from its root there, we
 * need no table of mounts, which costs more than all other steps together.
 */
static bool find_usual_mount(struct search *search, int version, struct graft_mountinfo *ret_mount)
{
	static const struct graft_mountinfo usual[] = {
		[1] = { .mount_point = "/sys/fs/cgroup/devices", .fs_type = "cgroup", .super_options = "devices" },
		[2] = { .mount_point = "/sys/fs/cgroup", .fs_type = "cgroup2", .super_options = "" },
	};
	auto_close int fd = graft_root_openat(&search->root, usual[version].mount_point, O_PATH | O_DIRECTORY);
	struct statfs fs;
	struct stat st, namespace;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != HIERARCHY_ROOT || fstatfs(fd, &fs) < 0 ||
	    fs.f_type != (version == 1 ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC) ||
	    stat("/proc/self/ns/cgroup", &namespace) < 0 || namespace.st_ino != INITIAL_CGROUP_NAMESPACE ||
	    (version == 1 && faccessat(fd, "devices.list", F_OK, 0) < 0))
		return false;
	*ret_mount = usual[version];
	ret_mount->root = "/";
	ret_mount->major = major(st.st_dev);
	ret_mount->minor = minor(st.st_dev);
	return true;
}

static bool is_of_version(const struct graft_mountinfo *mount, int version)
{
	return version == 2 ? strcmp(mount->fs_type, "cgroup2") == 0
			    : strcmp(mount->fs_type, "cgroup") == 0 && graft_list_has(mount->super_options, "devices");
}

/*
 * Returns the part of `path` below the mount's root, or NULL if `path` is not below it. Both are
 * relative to our own cgroup namespace; paths outside it begin with "/..", which is compared like
 * any other component but cannot be walked down.
 */
static const char *below(const char *mount_root, const char *path)
{
	size_t length = strlen(mount_root);
	const char *rest;

	while (length > 0 && mount_root[length - 1] == '/')
		length--;
	if (strncmp(mount_root, path, length) != 0)
		return NULL;
	rest = path + length;
	if ((*rest != '/' && *rest != '\0') || strstr(rest, "/../"))
		return NULL;
	length = strlen(rest);
	return length >= 3 && strcmp(rest + length - 3, "/..") == 0 ? NULL : rest;
}

/*
 * Opens the mount's root directory if it is visible at its mount point, that is, if nothing is
 * mounted over it. Returns -1 otherwise.
 */
static int open_mount(const struct search *search, const struct graft_mountinfo *mount)
{
	auto_close int fd = graft_root_openat(&search->root, mount->mount_point, O_PATH | O_DIRECTORY);
	struct statfs fs;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != makedev(mount->major, mount->minor))
		return -1;
	/*
	 * SECURITY: only the kernel's own file systems are written to. A directory that an attacker
	 * provides under this name could have hard links to other files in place of the cgroup's.
	 */
	if (fstatfs(fd, &fs) < 0 || (fs.f_type != CGROUP_SUPER_MAGIC && fs.f_type != CGROUP2_SUPER_MAGIC))
		return -1;
	return TAKE_FD(fd);
}

static const char *const no_mount[] = {
	[1] = "no cgroup filesystem mounted for the devices subsytem in mountinfo file",
	[2] = "no cgroup2 filesystem in mountinfo file",
};

/* Reports the most specific known reason why no mount could be used. */
static int fail_no_mount(const struct search *search, int version, const char *path, struct graft_error *err)
{
	for (size_t i = 0; i < search->n_mounts; i++) {
		const struct graft_mountinfo *mount = &search->mounts[i];

		if (!is_of_version(mount, version))
			continue;
		if (strncmp(mount->root, "/..", 3) == 0)
			return graft_fail(err, GRAFT_NOT_FOUND, 0, "relative path in mount prefix: %s", mount->root);
		return graft_fail(err, GRAFT_NOT_FOUND, 0,
				  below(mount->root, path)
				      ? "the cgroup '%s' is not visible: another mount hides '%s', mounted at %s"
				      : "the cgroup '%s' is not below '%s', mounted at %s",
				  path, mount->root, mount->mount_point);
	}
	return graft_fail(err, GRAFT_NOT_FOUND, 0, "%s", no_mount[version]);
}

/*
 * Opens the cgroup `path` in one of the mounts of its version. Returns 1 when opened, 0 if no mount
 * of this version shows it, -1 on failure.
 */
static int open_cgroup_directory(struct search *search, int version, const char *path, struct graft_cgroup *ret_cgroup,
				 struct graft_error *err)
{
	for (size_t i = 0; i < search->n_mounts; i++) {
		const struct graft_mountinfo *mount = &search->mounts[i];
		const char *rest = is_of_version(mount, version) ? below(mount->root, path) : NULL;
		auto_root struct graft_root root = GRAFT_ROOT_INIT;
		int fd = rest ? open_mount(search, mount) : -1;

		if (fd < 0)
			continue;
		graft_root_take(&root, fd);
		(void)snprintf(ret_cgroup->path, sizeof(ret_cgroup->path), "%s%s", mount->mount_point,
			       strcmp(rest, "/") == 0 ? "" : rest);
		fd = graft_root_openat(&root, rest[0] ? rest : "/", O_RDONLY | O_DIRECTORY);
		if (fd < 0) {
			(void)graft_fail_errno(err, -fd, "open failed: %s", ret_cgroup->path);
			return graft_wrap(err, "failed to get device cgroup root path");
		}
		ret_cgroup->dir_fd = fd;
		ret_cgroup->version = version;
		search->mount = mount;
		search->rest = rest;
		return 1;
	}
	return 0;
}

static int find_devices_cgroup(struct search *search, struct graft_cgroup *ret_cgroup, struct graft_error *err)
{
	const char *paths[3] = { NULL, NULL, NULL };
	int r = 0;

	if (read_paths(search, paths, err) < 0)
		return graft_wrap(err, "failed to get device cgroup version");
	if (find_usual_mount(search, paths[1] ? 1 : 2, &search->usual)) {
		search->mounts = &search->usual;
		search->n_mounts = 1;
	} else if (read_cgroup_mounts(search, err) < 0) {
		return graft_wrap(err, "failed to get device cgroup mount path");
	}
	/*
	 * v1 takes precedence on hybrid hosts. The kernel names the v1 hierarchy even to a process
	 * that can only see a cgroup2 mount; v2 enforces the rules there.
	 */
	for (int version = 1; version <= 2 && r == 0; version++)
		if (paths[version])
			r = open_cgroup_directory(search, version, paths[version], ret_cgroup, err);
	if (r == 0) {
		int version = paths[1] ? 1 : 2;

		(void)fail_no_mount(search, version, paths[version], err);
		return graft_wrap(err, "failed to get device cgroup mount path");
	}
	return r < 0 ? -1 : 0;
}

static void log_skip(const struct graft_log *log, const struct graft_error *err)
{
	char text[sizeof(err->msg) + sizeof(err->ctx) + 64];

	graft_warn(log, "skipping device cgroup rules: %s", graft_error_text(err, text, sizeof(text)));
}

static int start_search(struct search *search, int proc_root_fd, struct graft_error *err)
{
	int fd = fcntl(proc_root_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return graft_fail_errno(err, errno, "cannot use the root directory");
	graft_root_take(&search->root, fd);
	search->arena = graft_arena_new(ARENA_MAX);
	return search->arena ? 0 : graft_fail_memory(err);
}

int graft_cgroup_find(int proc_root_fd, pid_t pid, struct graft_arena *arena, struct graft_cgroup_place *ret_place,
		      struct graft_error *err)
{
	auto_cgroup struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
	__attribute__((cleanup(search_done))) struct search search = { .root = GRAFT_ROOT_INIT, .pid = pid };
	struct stat st;

	if (start_search(&search, proc_root_fd, err) < 0 || find_devices_cgroup(&search, &cgroup, err) < 0)
		return -1;
	if (fstat(cgroup.dir_fd, &st) < 0)
		return graft_fail_errno(err, errno, "%s", cgroup.path);
	ret_place->version = (uint32_t)cgroup.version;
	ret_place->mount = graft_arena_strdup(arena, search.mount->mount_point);
	ret_place->path = graft_arena_strdup(arena, search.rest[0] != '\0' ? search.rest : "/");
	ret_place->id = st.st_ino;
	return ret_place->mount && ret_place->path ? 0 : graft_fail_memory(err);
}

int graft_cgroup_open(int proc_root_fd, pid_t pid, bool user_namespace, bool required, const struct graft_log *log,
		      struct graft_cgroup *ret_cgroup, struct graft_error *err)
{
	struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
	__attribute__((cleanup(search_done))) struct search search = { .root = GRAFT_ROOT_INIT, .pid = pid };
	struct graft_error own = { 0 };

	if (start_search(&search, proc_root_fd, err) < 0)
		return -1;
	cgroup.required = required;
	if (find_devices_cgroup(&search, &cgroup, &own) < 0) {
		bool skip = own.status == GRAFT_PERMISSION || (user_namespace && own.status == GRAFT_NOT_FOUND);

		if (required || !skip) {
			if (err)
				*err = own;
			return -1;
		}
		log_skip(log, &own);
		cgroup.version = 0;
	} else {
		graft_info(log, "using device cgroup version %d: %s", cgroup.version, cgroup.path);
	}
	*ret_cgroup = cgroup;
	return 0;
}

struct graft_cgroup_change *graft_cgroup_changes_grow(struct graft_cgroup *cgroup, size_t n)
{
	struct graft_cgroup_change *changes = reallocarray(cgroup->changes, cgroup->n_changes + n,
							   sizeof(*cgroup->changes));

	if (!changes)
		return NULL;
	cgroup->changes = changes;
	changes += cgroup->n_changes;
	for (size_t i = 0; i < n; i++)
		changes[i] = (struct graft_cgroup_change){ .old_fd = -1, .new_fd = -1 };
	cgroup->n_changes += n;
	return changes;
}

int graft_cgroup_allow(struct graft_cgroup *cgroup, const struct graft_device_rule *rules, size_t n_rules,
		       const struct graft_log *log, struct graft_error *err)
{
	struct graft_error own = { 0 };
	int r;

	if (cgroup->version == 0 || n_rules == 0)
		return 0;
	r = cgroup->version == 1 ? graft_cgroup_v1_allow(cgroup, rules, n_rules, log, &own)
				 : graft_cgroup_v2_allow(cgroup, rules, n_rules, log, &own);
	if (r == 0)
		return 0;
	(void)graft_wrap(&own, "failed to add device rules");
	if (own.status == GRAFT_PERMISSION && !cgroup->required) {
		log_skip(log, &own);
		return 0;
	}
	if (err)
		*err = own;
	return -1;
}

int graft_cgroup_look(struct graft_cgroup *cgroup, const struct graft_device_rule *accesses, size_t n,
		      const struct graft_log *log, enum graft_device_answer *ret_answers, struct graft_error *err)
{
	for (size_t i = 0; i < n; i++)
		ret_answers[i] = GRAFT_ANSWER_UNKNOWN;
	if (cgroup->version == 0 || n == 0)
		return 0;
	return cgroup->version == 1 ? graft_cgroup_v1_look(cgroup, accesses, n, ret_answers, err)
				    : graft_cgroup_v2_look(cgroup, accesses, n, log, ret_answers, err);
}

static void change_done(struct graft_cgroup_change *change)
{
	graft_cleanup_close(&change->old_fd);
	graft_cleanup_close(&change->new_fd);
}

void graft_cgroup_undo(struct graft_cgroup *cgroup, const struct graft_log *log)
{
	while (cgroup->n_changes > 0) {
		struct graft_cgroup_change *change = &cgroup->changes[--cgroup->n_changes];
		int r = cgroup->version == 1 ? graft_cgroup_v1_undo(cgroup, change)
					     : graft_cgroup_v2_undo(cgroup, change);

		if (r < 0)
			graft_warn(log, "cannot remove the device rules of %s again: %s", cgroup->path, strerror(-r));
		change_done(change);
	}
}

void graft_cgroup_close(struct graft_cgroup *cgroup)
{
	for (size_t i = 0; i < cgroup->n_changes; i++)
		change_done(&cgroup->changes[i]);
	free(cgroup->changes);
	graft_cleanup_close(&cgroup->dir_fd);
	*cgroup = (struct graft_cgroup)GRAFT_CGROUP_INIT;
}
