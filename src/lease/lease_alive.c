/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_alive: processes by pid and start time, cgroups by path and inode. A path is not an
 * identity: when an engine restarts a container, its path leads to another cgroup.
 */
#include "lease/lease_alive.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/listing.h"
#include "host/discover.h"

#define STAT_MAX     ((size_t)4096)
#define PROCS_MAX    ((size_t)1 << 20)
#define CHILDREN_MAX 4096u
#define DEPTH_MAX    16u
/* How long a process that cannot be examined may take to make a container's cgroup. */
#define MAKE_MS 600000u
/* PROC_PID_INIT_INO of the kernel. */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCu
/* PROC_TIME_INIT_INO of the kernel. */
#define INITIAL_TIME_NAMESPACE 0xEFFFFFFAu

/* The result of an examination. */
enum life { GONE, LIVES, NOT_KNOWN };

uint64_t graft_lease_clock(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t graft_lease_clock_namespace(void)
{
	struct stat st;

	/* BASELINE Linux 5.6: older kernels have only one clock. */
	return stat("/proc/self/ns/time", &st) == 0 && st.st_ino != INITIAL_TIME_NAMESPACE ? st.st_ino : 0;
}

uint32_t graft_lease_own_pid(void)
{
	char text[16];
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return (uint32_t)strtoul(text, NULL, 10);
}

int graft_lease_namespaces(uint64_t *ret_of_proc, uint64_t *ret_own, struct graft_error *err)
{
	const char *path = "/proc/self/ns/pid";
	struct stat st;

	if (stat(path, &st) < 0)
		return graft_fail_errno(err, errno, "stat failed: %s", path);
	*ret_own = st.st_ino;
	path = "/proc/1/ns/pid";
	if (graft_lease_own_pid() != (uint32_t)getpid() && stat(path, &st) < 0) {
		(void)graft_fail(err, GRAFT_LEASES, errno, "cannot find out whose processes /proc shows: %s", path);
		return graft_with_hint(err, "Let the process examine others, by CAP_SYS_PTRACE and by AppArmor or "
					    "SELinux, or mount the /proc of its own PID namespace.");
	}
	*ret_of_proc = st.st_ino;
	return 0;
}

int graft_lease_now_read(struct graft_lease_now *ret_now, struct graft_arena *arena, struct graft_error *err)
{
	if (graft_root_open(&ret_now->root, "/", err) < 0 ||
	    graft_host_boot_id(&ret_now->root, arena, &ret_now->boot, err) < 0)
		return -1;
	if (!ret_now->boot)
		return graft_fail(err, GRAFT_LEASES, 0, "the kernel reports no boot id: is /proc mounted?");
	if (graft_lease_namespaces(&ret_now->pid_namespace, &ret_now->own_namespace, err) < 0)
		return -1;
	ret_now->clock = graft_lease_clock_namespace();
	ret_now->time = graft_lease_clock();
	return 0;
}

void graft_lease_now_done(struct graft_lease_now *now)
{
	graft_root_close(&now->root);
}

/* ---- processes ---- */

static int read_process_stat(const struct graft_root *root, uint32_t pid, struct graft_arena *scratch,
			     const char **ret_text)
{
	char path[64];
	size_t length;

	(void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	return graft_root_read(root, path, STAT_MAX, scratch, ret_text, &length);
}

bool graft_lease_process_family(const struct graft_root *root, uint32_t pid, struct graft_arena *scratch,
				struct graft_process_family *ret_family)
{
	const char *text;

	return read_process_stat(root, pid, scratch, &text) == 0 && graft_procfs_family(text, ret_family);
}

uint64_t graft_lease_process_start(const struct graft_root *root, uint32_t pid, struct graft_arena *scratch,
				   int *ret_rc)
{
	char state = '\0';
	const char *text;
	uint64_t start = 0;

	*ret_rc = read_process_stat(root, pid, scratch, &text);
	if (*ret_rc < 0)
		return 0;
	if (!graft_procfs_stat(text, &state, &start))
		*ret_rc = -EIO;
	return state == 'Z' || state == 'X' ? 0 : start;
}

static enum life look_at_holder(const struct graft_lease_now *now, const struct graft_lease_holder *holder,
				struct graft_arena *scratch)
{
	uint64_t start;
	int rc;

	if (holder->pid_namespace != now->pid_namespace || holder->clock != now->clock)
		return NOT_KNOWN;
	start = graft_lease_process_start(&now->root, holder->pid, scratch, &rc);
	if (rc < 0)
		return rc == -ENOENT || rc == -ESRCH ? GONE : NOT_KNOWN;
	return start == holder->start_time && start != 0 ? LIVES : GONE;
}

/*
 * The file was written by the low-level runtime at the end of `create`. Its process has started
 * after the lease was taken.
 */
static enum life look_at_pid_file(const struct graft_lease_now *now, struct graft_lease *lease,
				  struct graft_arena *scratch, bool *ret_bound)
{
	struct graft_lease_holder *holder = &lease->holder;
	const uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	const char *text;
	uint64_t start;
	size_t length;
	char *end;
	long pid;
	int rc = graft_root_read_foreign(&now->root, holder->pid_file, 32, scratch, &text, &length);

	if (holder->pid_namespace != now->pid_namespace || holder->clock != now->clock)
		return NOT_KNOWN;
	if (rc < 0)
		return rc == -ENOENT ? GONE : NOT_KNOWN;
	pid = strtol(text, &end, 10);
	if (end == text || pid <= 0 || pid > INT32_MAX)
		return GONE;
	start = graft_lease_process_start(&now->root, (uint32_t)pid, scratch, &rc);
	if (rc < 0)
		return rc == -ENOENT || rc == -ESRCH ? GONE : NOT_KNOWN;
	/* One tick, because the clocks are not read at the same moment. */
	if (start == 0 || (start + 1) * 1000 / ticks < lease->since)
		return GONE;
	holder->pid = (uint32_t)pid;
	holder->start_time = start;
	*ret_bound = true;
	return LIVES;
}

/* Whether the process of the pid file lives, or may: from now on it alone holds the lease. */
static bool becomes_process(const struct graft_lease_now *now, struct graft_lease *lease, struct graft_arena *scratch,
			    bool *ret_bound)
{
	enum life life = look_at_pid_file(now, lease, scratch, ret_bound);

	if (life == LIVES)
		lease->holder.kind = GRAFT_HOLDER_PROCESS;
	return life != GONE;
}

/* ---- cgroups ---- */

/* Whether cgroup.procs of a v1 cgroup or of one below it has a process. */
static enum life look_at_procs(const struct graft_root *cgroup, const char *path, unsigned int depth,
			       struct graft_arena *scratch)
{
	const char *procs = graft_arena_printf(scratch, "%s/cgroup.procs", path), *text, **names;
	size_t length, n;
	int rc = procs ? graft_root_read(cgroup, procs, PROCS_MAX, scratch, &text, &length) : -ENOMEM;

	if (rc < 0)
		return rc == -ENOENT || rc == -ENODEV ? GONE : NOT_KNOWN;
	if (length > 0)
		return LIVES;
	if (depth == DEPTH_MAX)
		return NOT_KNOWN;
	rc = graft_root_list(cgroup, depth > 0 ? path : "/", CHILDREN_MAX, scratch, &names, &n, NULL);
	if (rc < 0)
		return rc == -ENOENT || rc == -ENODEV ? GONE : NOT_KNOWN;
	for (size_t i = 0; i < n; i++) {
		const char *child = graft_arena_printf(scratch, "%s/%s", path, names[i]);
		enum life life;

		if (child && !graft_root_has(cgroup, child, O_DIRECTORY))
			continue;
		life = child ? look_at_procs(cgroup, child, depth + 1, scratch) : NOT_KNOWN;
		if (life != GONE)
			return life;
	}
	return GONE;
}

static enum life look_at_events(const struct graft_root *cgroup, struct graft_arena *scratch)
{
	const char *text;
	size_t length;
	int rc = graft_root_read(cgroup, "/cgroup.events", STAT_MAX, scratch, &text, &length);

	if (rc < 0)
		return rc == -ENOENT || rc == -ENODEV ? GONE : NOT_KNOWN;
	return strstr(text, "populated 0") ? GONE : LIVES;
}

/* LIVES: the cgroup exists, and is open. */
static enum life open_cgroup(const struct graft_lease_now *now, const struct graft_lease_holder *holder,
			     struct graft_arena *scratch, struct graft_root *ret_cgroup, uint64_t *ret_id)
{
	auto_close int mount_fd = graft_root_openat(&now->root, holder->cgroup_mount, O_PATH | O_DIRECTORY);
	const char *path = graft_arena_printf(scratch, "%s%s", holder->cgroup_mount, holder->cgroup);
	struct graft_error err = { .status = GRAFT_OK };
	struct statfs fs;
	struct stat st;

	/*
	 * In another mount namespace there may be something else at this path, and in another
	 * cgroup namespace another part of the hierarchy.
	 */
	if (!path || mount_fd < 0 || fstatfs(mount_fd, &fs) < 0 || fstat(mount_fd, &st) < 0 ||
	    fs.f_type != (holder->cgroup_version == 2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC) ||
	    (holder->cgroup_root != 0 && holder->cgroup_root != st.st_ino))
		return NOT_KNOWN;
	if (graft_root_open(ret_cgroup, path, &err) < 0)
		return err.sys == ENOENT ? GONE : NOT_KNOWN;
	if (fstat(ret_cgroup->fd, &st) < 0)
		return NOT_KNOWN;
	*ret_id = st.st_ino;
	return holder->cgroup_id != 0 && holder->cgroup_id != st.st_ino ? GONE : LIVES;
}

/*
 * Determines with few system calls whether a cgroup that was seen before still has processes: the
 * usual case, while the table is locked. Otherwise a closer examination is needed.
 */
static bool lives_at_first_look(const struct graft_lease_now *now, const struct graft_lease_holder *holder,
				struct graft_arena *scratch)
{
	const bool v2 = holder->cgroup_version == 2;
	const char *path = graft_arena_printf(scratch, "%s%s", holder->cgroup_mount, holder->cgroup);
	auto_close int fd = path ? graft_root_openat(&now->root, path, O_PATH | O_DIRECTORY) : -ENOMEM;
	auto_close int file_fd = -1;
	char text[64];
	struct statfs fs;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != (v2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC) ||
	    fstat(fd, &st) < 0 || holder->cgroup_id != st.st_ino)
		return false;
	file_fd = openat(fd, v2 ? "cgroup.events" : "cgroup.procs", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	n = file_fd >= 0 ? read(file_fd, text, sizeof(text) - 1) : -1;
	text[n > 0 ? n : 0] = '\0';
	return v2 ? strstr(text, "populated 1") != NULL : n > 0;
}

static enum life look_at_group(const struct graft_lease_now *now, struct graft_lease_holder *holder,
			       struct graft_arena *scratch, bool *ret_bound)
{
	auto_root struct graft_root cgroup = GRAFT_ROOT_INIT;
	uint64_t id = 0;
	enum life life = open_cgroup(now, holder, scratch, &cgroup, &id);

	if (life != LIVES)
		return life;
	life = holder->cgroup_version == 2 ? look_at_events(&cgroup, scratch) : look_at_procs(&cgroup, "", 0, scratch);
	/* QUIRK: cgroup.procs of v1 omits processes that are not in our PID namespace. */
	if (life == GONE && holder->cgroup_version == 1 && now->own_namespace != INITIAL_PID_NAMESPACE &&
	    now->own_namespace != holder->pid_namespace)
		life = NOT_KNOWN;
	if (life == LIVES && holder->cgroup_id == 0) {
		holder->cgroup_id = id;
		*ret_bound = true;
	}
	return life;
}

/* Adds the processes of a cgroup and of those below it. */
static void list_processes(const struct graft_root *cgroup, const char *path, unsigned int depth,
			   struct graft_arena *arena, uint32_t **pids, size_t *n_pids)
{
	const char *procs = graft_arena_printf(arena, "%s/cgroup.procs", path), *text, **names;
	size_t length, n;
	char *end;

	if (!procs || graft_root_read(cgroup, procs, PROCS_MAX, arena, &text, &length) < 0)
		return;
	for (; *text != '\0'; text = *end == '\n' ? end + 1 : end) {
		uint32_t value = (uint32_t)strtoul(text, &end, 10), *pid;

		if (end == text)
			return;
		/* QUIRK: a process that is not in our PID namespace is listed as 0. */
		pid = value > 0 ? graft_arena_push(arena, pids, n_pids, sizeof(*pid)) : NULL;
		if (pid)
			*pid = value;
	}
	if (depth == DEPTH_MAX ||
	    graft_root_list(cgroup, depth > 0 ? path : "/", CHILDREN_MAX, arena, &names, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		const char *child = graft_arena_printf(arena, "%s/%s", path, names[i]);

		if (child && graft_root_has(cgroup, child, O_DIRECTORY))
			list_processes(cgroup, child, depth + 1, arena, pids, n_pids);
	}
}

int graft_lease_processes(const struct graft_lease_now *now, const struct graft_lease *lease, struct graft_arena *arena,
			  uint32_t **ret_pids, size_t *ret_n, struct graft_error *err)
{
	auto_root struct graft_root cgroup = GRAFT_ROOT_INIT;
	const struct graft_lease_holder *holder = &lease->holder;
	bool listed = false;
	uint64_t id;
	uint32_t *pid;

	*ret_pids = NULL;
	*ret_n = 0;
	if (holder->kind == GRAFT_HOLDER_CGROUP && open_cgroup(now, holder, arena, &cgroup, &id) == LIVES)
		list_processes(&cgroup, "", 0, arena, ret_pids, ret_n);
	for (size_t i = 0; i < *ret_n; i++)
		listed = listed || (*ret_pids)[i] == holder->pid;
	if (!listed && holder->kind != GRAFT_HOLDER_TOKEN && now->pid_namespace == now->own_namespace &&
	    look_at_holder(now, holder, arena) == LIVES) {
		pid = graft_arena_push(arena, ret_pids, ret_n, sizeof(*pid));
		if (pid)
			*pid = holder->pid;
	}
	return graft_arena_failed(arena) ? graft_fail_memory(err) : 0;
}

/* ---- leases ---- */

bool graft_lease_is_alive(const struct graft_lease_now *now, struct graft_lease *lease, struct graft_arena *scratch,
			  bool *ret_bound, const char **ret_why)
{
	struct graft_lease_holder *holder = &lease->holder;
	enum life process, life;

	*ret_bound = false;
	*ret_why = "the host was restarted";
	if (strcmp(lease->boot, now->boot) != 0)
		return false;
	*ret_why = "its time is over";
	if (holder->kind == GRAFT_HOLDER_TOKEN)
		return holder->clock != now->clock || lease->until > now->time;
	/*
	 * While the process makes the container, everything else may belong to an older container.
	 * A cgroup that has been seen is the container's own, and usually settles the question.
	 */
	*ret_why = "its process has ended";
	if (holder->kind == GRAFT_HOLDER_CGROUP && holder->cgroup_id != 0 && lives_at_first_look(now, holder, scratch))
		return true;
	process = look_at_holder(now, holder, scratch);
	if (process == LIVES)
		return true;
	switch (holder->kind) {
	case GRAFT_HOLDER_CGROUP:
		*ret_why = "no process is left in its cgroup";
		life = look_at_group(now, holder, scratch, ret_bound);
		/* The container's process holds it as well: it may be moved to another cgroup. */
		if (*ret_bound && holder->pid_file)
			(void)look_at_pid_file(now, lease, scratch, ret_bound);
		if (life != GONE || holder->cgroup_id != 0)
			return life != GONE;
		/* A cgroup that has not been seen yet may have another path than expected. */
		if (holder->pid_file)
			return becomes_process(now, lease, scratch, ret_bound);
		return process == NOT_KNOWN && (holder->clock != now->clock || now->time - lease->since < MAKE_MS);
	case GRAFT_HOLDER_PID_FILE:
		return becomes_process(now, lease, scratch, ret_bound);
	case GRAFT_HOLDER_PROCESS:
		return process != GONE;
	case GRAFT_HOLDER_TOKEN:
		break;
	}
	return false;
}
