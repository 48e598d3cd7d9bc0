/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_holder: cgroups and processes as holders. The cgroup "/", our own, and those above ours are
 * never holders: they have processes whatever happens to the container.
 */
#include "lease/lease_holder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/cgroup/cgroup_scope.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/root.h"
#include "base/strings.h"
#include "lease/lease_alive.h"

/* Of Docker, Podman, containerd and CRI-O. */
#define ID_LENGTH 64

int graft_lease_holder_of_process(pid_t pid, struct graft_arena *arena, struct graft_lease_holder *ret_holder,
				  struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	uint64_t own;
	int rc;

	*ret_holder = (struct graft_lease_holder){ .kind = GRAFT_HOLDER_PROCESS,
						   .pid = pid > 0 ? (uint32_t)pid : graft_lease_own_pid(),
						   .clock = graft_lease_clock_namespace() };
	if (graft_root_open(&root, "/", err) < 0)
		return -1;
	ret_holder->start_time = graft_lease_process_start(&root, ret_holder->pid, arena, &rc);
	if (rc < 0 || ret_holder->start_time == 0)
		return graft_fail_errno(err, rc < 0 ? -rc : ESRCH, "process %u", ret_holder->pid);
	return graft_lease_namespaces(&ret_holder->pid_namespace, &own, err);
}

pid_t graft_lease_caller(struct graft_arena *arena, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_process_family family;
	uint64_t of_proc, own;
	uint32_t pid = graft_lease_own_pid(), first = 0;
	struct stat st;
	char path[64];

	if (pid == (uint32_t)getpid())
		return getppid();
	if (graft_lease_namespaces(&of_proc, &own, err) < 0 || graft_root_open(&root, "/", err) < 0)
		return -1;
	/* Every process has an ancestor in the namespace of /proc. */
	while (graft_lease_process_family(&root, pid, arena, &family) && family.parent > 0) {
		pid = (uint32_t)family.parent;
		(void)snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
		if (stat(path, &st) < 0 || st.st_ino != own)
			break;
		first = pid;
	}
	return first > 0 ? (pid_t)first
			 : graft_fail(err, GRAFT_LEASES, 0, "/proc does not show which process called this one");
}

/* The cgroup of a process, 0 = ours. Returns false if it cannot be found. */
static bool find_cgroup(pid_t pid, struct graft_arena *arena, struct graft_cgroup_place *ret_place)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;

	return graft_root_open(&root, "/", NULL) == 0 && graft_cgroup_find(root.fd, pid, arena, ret_place, NULL) == 0;
}

static bool may_hold(const char *path, const struct graft_cgroup_place *own)
{
	return graft_lease_path_is_valid(path) && path[1] != '\0' && !graft_path_is_within(own->path, path);
}

/* An id in the name of a cgroup, "ID" or "PREFIX-ID.scope". NULL: there is none. */
static const char *find_id(const char *name, size_t length)
{
	if (length > strlen(".scope") && strncmp(name + length - strlen(".scope"), ".scope", strlen(".scope")) == 0)
		length -= strlen(".scope");
	if (length < ID_LENGTH || (length > ID_LENGTH && name[length - ID_LENGTH - 1] != '-'))
		return NULL;
	name += length - ID_LENGTH;
	return strspn(name, "0123456789abcdef") >= ID_LENGTH ? name : NULL;
}

const char *graft_lease_container_of(const char *cgroup, struct graft_arena *arena)
{
	const char *end = cgroup + strlen(cgroup);

	/*
	 * Take the last id: a container may be below another, and crun makes a cgroup below the
	 * container's.
	 */
	while (end > cgroup) {
		const char *slash = memrchr(cgroup, '/', (size_t)(end - cgroup)), *name = slash ? slash + 1 : cgroup;
		const char *id = find_id(name, (size_t)(end - name));

		if (id)
			return graft_arena_strndup(arena, id, ID_LENGTH);
		end = slash ? slash : cgroup;
	}
	return graft_lease_label(graft_path_name(cgroup), arena);
}

/* A cgroup of the same hierarchy as `place`. */
static void hold_by_cgroup(const struct graft_cgroup_place *place, const char *path, struct graft_lease_holder *holder)
{
	struct stat st;

	holder->kind = GRAFT_HOLDER_CGROUP;
	holder->cgroup_version = place->version;
	holder->cgroup_mount = place->mount;
	holder->cgroup_root = stat(place->mount, &st) == 0 ? st.st_ino : 0;
	holder->cgroup = path;
}

int graft_lease_holder_of_container(pid_t pid, struct graft_arena *arena, struct graft_lease_holder *ret_holder,
				    struct graft_error *err)
{
	struct graft_cgroup_place place, own;

	if (graft_lease_holder_of_process(pid, arena, ret_holder, err) < 0)
		return -1;
	if (!find_cgroup(pid, arena, &place) || !find_cgroup(0, arena, &own) || !may_hold(place.path, &own))
		return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
	hold_by_cgroup(&place, place.path, ret_holder);
	ret_holder->cgroup_id = place.id;
	ret_holder->container = graft_lease_container_of(place.path, arena);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

int graft_lease_holder_in_scope(struct graft_arena *arena, struct graft_lease_holder *ret_holder,
				struct graft_cgroup_place *ret_place, struct graft_error *err)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	const char *id = graft_lease_new_id(arena),
		   *name = graft_arena_printf(arena, GRAFT_LEASE_SCOPE "%s", id ? id : "");

	if (!id || !name)
		return graft_fail_memory(err);
	if (graft_lease_holder_of_process(0, arena, ret_holder, err) < 0 || graft_root_open(&root, "/", err) < 0 ||
	    graft_cgroup_scope_place(root.fd, name, arena, ret_place, err) < 0)
		return -1;
	hold_by_cgroup(ret_place, ret_place->path, ret_holder);
	return 0;
}

/* "/a.slice/a-b.slice" for "a-b.slice"; "" for "-.slice". NULL: no slice, or out of memory. */
static const char *slice_path(const char *slice, struct graft_arena *arena)
{
	const char *path = "";
	size_t length = strlen(slice);

	if (strcmp(slice, "-.slice") == 0)
		return path;
	if (!graft_ends_with(slice, ".slice") || slice[0] == '-' || slice[0] == '.')
		return NULL;
	length -= strlen(".slice");
	for (size_t i = 1; path && i <= length; i++) {
		if (i == length || slice[i] == '-')
			path = graft_arena_printf(arena, "%s/%.*s.slice", path, (int)i, slice);
	}
	return path;
}

const char *graft_lease_cgroup_path(const char *cgroups_path, struct graft_arena *arena)
{
	const char *prefix = strchr(cgroups_path, ':'), *name = prefix ? strchr(prefix + 1, ':') : NULL, *slice;

	if (cgroups_path[0] == '/') {
		cgroups_path = graft_path_clean(NULL, cgroups_path, arena);
		return cgroups_path && strcmp(cgroups_path, "/") != 0 ? cgroups_path : NULL;
	}
	if (!name || strchr(cgroups_path, '/') || strchr(name + 1, ':') || name[1] == '\0')
		return NULL;
	slice = prefix == cgroups_path ? "system.slice"
				       : graft_arena_strndup(arena, cgroups_path, (size_t)(prefix - cgroups_path));
	slice = slice ? slice_path(slice, arena) : NULL;
	if (!slice || graft_ends_with(name + 1, ".slice"))
		return NULL;
	return graft_arena_printf(arena, "%s/%.*s%s%s.scope", slice, (int)(name - prefix - 1), prefix + 1,
				  name - prefix > 1 ? "-" : "", name + 1);
}

static const char *absolute_path(const char *path, struct graft_arena *arena)
{
	char directory[PATH_MAX];

	return path[0] == '/' || getcwd(directory, sizeof(directory)) ? graft_path_clean(directory, path, arena) : NULL;
}

int graft_lease_holder_to_be(const struct graft_lease_container *container, struct graft_arena *arena,
			     struct graft_lease_holder *ret_holder, struct graft_error *err)
{
	struct graft_cgroup_place own;
	const char *path = NULL;

	if (graft_lease_holder_of_process(0, arena, ret_holder, err) < 0)
		return -1;
	ret_holder->container = graft_lease_label(container->id, arena);
	ret_holder->pid_file = container->pid_file ? absolute_path(container->pid_file, arena) : NULL;
	if (container->cgroups_path && container->cgroups_path[0] != '\0' && find_cgroup(0, arena, &own))
		path = graft_lease_cgroup_path(container->cgroups_path, arena);
	if (graft_arena_failed(arena))
		return graft_fail_memory(err);
	if (ret_holder->pid_file && !graft_lease_path_is_valid(ret_holder->pid_file))
		ret_holder->pid_file = NULL;
	if (path && may_hold(path, &own)) {
		hold_by_cgroup(&own, path, ret_holder);
		return 0;
	}
	ret_holder->kind = GRAFT_HOLDER_PID_FILE;
	if (ret_holder->pid_file)
		return 0;
	(void)graft_fail(err, GRAFT_UNSUPPORTED, 0,
			 "the container cannot be found after its creation: it has neither a usable "
			 "linux.cgroupsPath nor a --pid-file");
	return graft_with_hint(err, "Give the container a cgroup, or call 'create' with --pid-file.");
}
