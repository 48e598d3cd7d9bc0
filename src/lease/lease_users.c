/* SPDX-License-Identifier: Apache-2.0 */
/* lease_users: one pass over the descriptors of all processes. */
#include "lease/lease_users.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "base/strings.h"
#include "base/sys.h"

#define GPU_MAJOR     195u
#define MODESET_MINOR 254u /* nvidia-modeset, for displays; 255 is nvidiactl */
#define PROCESSES_MAX ((size_t)1 << 20)
#define DEPTH_MAX     64u
/* The kernel keeps 15 letters of a name. */
#define KEEPS_DRIVER "nvidia-persiste"

static bool is_gpu(dev_t node)
{
	return major(node) == GPU_MAJOR && minor(node) < MODESET_MINOR;
}

static bool has_open_node(const struct graft_lease_user *user, dev_t node)
{
	for (size_t i = 0; i < user->n_nodes; i++) {
		if (user->nodes[i] == node)
			return true;
	}
	return false;
}

bool graft_lease_user_has(const struct graft_lease_user *user, uint32_t node_major, uint32_t node_minor)
{
	return has_open_node(user, makedev(node_major, node_minor));
}

/*
 * Whether it is a character device, and which. SECURITY: the file may be on a network file system,
 * or one of FUSE, that does not answer, so the file system is not asked.
 */
static bool is_open_node(int directory_fd, const char *name, dev_t *ret_node)
{
	struct graft_statx known;
	struct stat st;

	if (graft_statx(directory_fd, name, GRAFT_STATX_DONT_SYNC, GRAFT_STATX_TYPE, &known) == 0) {
		*ret_node = makedev(known.rdev_major, known.rdev_minor);
		return S_ISCHR(known.mode);
	}
	/* Without statx(2) (an old seccomp filter) it has to be. */
	if ((errno != ENOSYS && errno != EPERM) || fstatat(directory_fd, name, &st, 0) < 0)
		return false;
	*ret_node = st.st_rdev;
	return S_ISCHR(st.st_mode);
}

/* Fills nodes. Returns whether there is a GPU's among them. */
static bool read_nodes(const struct graft_root *root, const char *pid, struct graft_arena *arena,
		       struct graft_lease_user *user)
{
	char directory[64];
	const struct dirent *entry;
	bool gpu = false;
	struct stat st;
	int fd;

	(void)snprintf(directory, sizeof(directory), "/proc/%.20s/fd", pid);
	fd = graft_root_openat(root, directory, O_RDONLY | O_DIRECTORY);
	/* Read one by one: a process decides how many it has. */
	auto_dir DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;

	if (!stream && fd >= 0)
		(void)close(fd);
	if (!stream)
		return false;
	if (fstat(dirfd(stream), &st) < 0)
		return false;
	user->uid = st.st_uid;
	while ((entry = readdir(stream))) {
		dev_t *node, open_node;

		if (!is_open_node(dirfd(stream), entry->d_name, &open_node) || has_open_node(user, open_node))
			continue;
		gpu |= is_gpu(open_node);
		node = graft_arena_push(arena, &user->nodes, &user->n_nodes, sizeof(*node));
		if (!node)
			return false;
		*node = open_node;
	}
	return gpu;
}

/* Its name, and those that it descends from. */
static int read_ancestors(const struct graft_root *root, struct graft_arena *arena, struct graft_lease_user *user,
			  struct graft_error *err)
{
	struct graft_process_family family;
	struct graft_buffer name = { .max = 256 };
	uint32_t pid = user->pid;

	user->name = "?";
	while (pid > 0 && user->n_ancestors < DEPTH_MAX) {
		uint32_t *place = graft_arena_push(arena, &user->ancestors, &user->n_ancestors, sizeof(*place));

		if (!place)
			return graft_fail_memory(err);
		*place = pid;
		if (!graft_lease_process_family(root, pid, arena, &family))
			break;
		if (pid == user->pid) {
			graft_buffer_visible(&name, family.name);
			user->name = graft_arena_strdup(arena, graft_buffer_text(&name));
		}
		pid = family.parent > 0 ? (uint32_t)family.parent : 0;
	}
	graft_buffer_done(&name);
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

/*
 * QUIRK: programs that only query GPUs (nvidia-smi, monitoring) open their nodes as well, but not
 * that of unified memory, which CUDA needs, or that of displays. nvidia-persistenced may open
 * those.
 */
static bool is_computing(const struct graft_lease_user *user, bool has_uvm, dev_t uvm)
{
	if (strcmp(user->name, KEEPS_DRIVER) == 0)
		return false;
	return !has_uvm || has_open_node(user, uvm) || has_open_node(user, makedev(GPU_MAJOR, MODESET_MINOR));
}

int graft_lease_users_read(const struct graft_root *root, struct graft_arena *arena,
			   struct graft_lease_user **ret_users, size_t *ret_n, struct graft_error *err)
{
	struct graft_lease_user *place;
	struct stat uvm = { 0 };
	bool has_uvm = stat("/dev/nvidia-uvm", &uvm) == 0 && S_ISCHR(uvm.st_mode);
	const char **names;
	size_t n;
	int rc = graft_root_list(root, "/proc", PROCESSES_MAX, arena, &names, &n, NULL);

	*ret_users = NULL;
	*ret_n = 0;
	if (rc < 0)
		return graft_fail_errno(err, -rc, "/proc");
	for (size_t i = 0; i < n; i++) {
		struct graft_lease_user user = { .pid = 0 };

		if (names[i][strspn(names[i], "0123456789")] != '\0')
			continue;
		user.pid = (uint32_t)strtoul(names[i], NULL, 10);
		if (!read_nodes(root, names[i], arena, &user)) {
			if (graft_arena_failed(arena))
				return graft_fail_memory(err);
			continue;
		}
		if (read_ancestors(root, arena, &user, err) < 0)
			return -1;
		user.computes = is_computing(&user, has_uvm, uvm.st_rdev);
		place = graft_arena_push(arena, ret_users, ret_n, sizeof(*place));
		if (!place)
			return graft_fail_memory(err);
		*place = user;
	}
	return 0;
}

bool graft_lease_user_is_of(const struct graft_lease_user *user, const uint32_t *pids, size_t n)
{
	for (size_t i = 0; i < user->n_ancestors; i++) {
		for (size_t k = 0; k < n; k++) {
			if (user->ancestors[i] == pids[k])
				return true;
		}
	}
	return false;
}

void graft_lease_user_describe(const struct graft_lease_user *user, struct graft_buffer *out)
{
	graft_buffer_printf(out, "process %u (%s, uid %u)", user->pid, user->name, user->uid);
}

int graft_lease_users_holders(const struct graft_lease_now *now, const struct graft_lease *leases, size_t n_leases,
			      struct graft_arena *arena, uint32_t **ret_pids, size_t *ret_n, struct graft_error *err)
{
	*ret_pids = NULL;
	*ret_n = 0;
	for (size_t i = 0; i < n_leases; i++) {
		uint32_t *pids, *place;
		size_t n;

		if (graft_lease_processes(now, &leases[i], arena, &pids, &n, err) < 0)
			return -1;
		for (size_t k = 0; k < n; k++) {
			place = graft_arena_push(arena, ret_pids, ret_n, sizeof(*place));
			if (!place)
				return graft_fail_memory(err);
			*place = pids[k];
		}
	}
	return 0;
}

/* The first process that computes on it: with the GPU's node open and, of a MIG device, its own. */
static const char *find_gpu_user(const struct graft_lease_user *users, size_t n_users, const bool *leased,
				 const struct graft_lendable_gpu *gpu, const struct graft_lendable_mig *mig,
				 struct graft_arena *arena)
{
	struct graft_buffer text = { .max = 256 };
	const char *found = NULL;

	for (size_t i = 0; i < n_users && !found; i++) {
		if (leased[i] || !users[i].computes || !graft_lease_user_has(&users[i], gpu->major, gpu->minor) ||
		    (mig && !graft_lease_user_has(&users[i], mig->ci_major, mig->ci_minor)))
			continue;
		graft_lease_user_describe(&users[i], &text);
		found = graft_arena_strdup(arena, graft_buffer_text(&text));
	}
	graft_buffer_done(&text);
	return found;
}

int graft_lease_users_mark(const struct graft_lease_user *users, size_t n_users, const struct graft_lease_now *now,
			   const struct graft_lease *leases, size_t n_leases, struct graft_arena *arena,
			   struct graft_lendable *host, struct graft_error *err)
{
	bool *leased = graft_arena_list(arena, n_users, sizeof(*leased));
	uint32_t *pids;
	size_t n;

	if (n_users > 0 && !leased)
		return graft_fail_memory(err);
	if (graft_lease_users_holders(now, leases, n_users > 0 ? n_leases : 0, arena, &pids, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n_users; i++)
		leased[i] = graft_lease_user_is_of(&users[i], pids, n);
	for (size_t i = 0; i < host->n_gpus; i++) {
		struct graft_lendable_gpu *gpu = &host->gpus[i];

		gpu->in_use = find_gpu_user(users, n_users, leased, gpu, NULL, arena);
		for (size_t k = 0; k < gpu->n_migs; k++)
			gpu->migs[k].in_use = find_gpu_user(users, n_users, leased, gpu, &gpu->migs[k], arena);
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}
