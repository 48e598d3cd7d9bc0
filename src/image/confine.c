/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine: takes all privileges from a process. What the kernel lacks is skipped: the rest is
 * effective without it. What the kernel supports but refuses is a failure.
 */
#include "image/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/cleanup.h"
#include "base/sys.h"

/* A sanitizer's runtime maps terabytes and makes calls that no list anticipates. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER true
#else
#define HAS_SANITIZER false
#endif

#define MEMORY_MAX      ((rlim_t)512 << 20)
#define DESCRIPTORS_MAX 64
#define OLD_FD_MAX      4096 /* for kernels without close_range(2) */

static int fail_confine(int sys, const char *what, struct graft_error *err)
{
	return graft_fail(err, GRAFT_PERMISSION, sys, "cannot confine the process that reads the image: %s", what);
}

/* ---- mounts, descriptors, root ---- */

/*
 * Copies a mount; nothing can be written, executed or opened as a device node through the copy.
 * Returns -1 if the kernel does not support that, or if we lack the privilege.
 */
static int copy_mount(int fd, const char *path, unsigned int flags)
{
	const struct graft_mount_attr attr = { .attr_set = GRAFT_MOUNT_ATTR_RDONLY | GRAFT_MOUNT_ATTR_NOSUID |
							   GRAFT_MOUNT_ATTR_NODEV | GRAFT_MOUNT_ATTR_NOEXEC };
	auto_close int copy_fd = graft_open_tree(fd, path, GRAFT_OPEN_TREE_CLONE | O_CLOEXEC | flags);

	if (copy_fd < 0 || graft_mount_setattr(copy_fd, "", AT_EMPTY_PATH | flags, &attr) < 0)
		return -1;
	return TAKE_FD(copy_fd);
}

/*
 * SECURITY: of procfs, the process only needs the descriptors that it has open. Through ".." in a
 * whole procfs it could reach other processes.
 */
static void narrow_proc(struct graft_image_root *root)
{
	root->self_fd = root->proc_fd >= 0 ? copy_mount(root->proc_fd, "self/fd", 0) : -1;
	if (root->self_fd < 0)
		return;
	(void)close(root->proc_fd);
	root->proc_fd = -1;
}

/* QUIRK: only mounts of our own mount namespace can be copied. */
static void copy_mounts(struct graft_image_root *root)
{
	int fd;

	if (root->mount_ns_fd >= 0)
		(void)setns(root->mount_ns_fd, CLONE_NEWNS);
	fd = copy_mount(root->fd, "", AT_EMPTY_PATH | AT_RECURSIVE);
	if (fd < 0) {
		narrow_proc(root);
		return;
	}
	(void)close(root->fd);
	root->fd = fd;
	root->no_nodes = true;
	root->mount_id = graft_image_root_mount_id(root, root->fd);
	/* Files can be opened by name through a mount that cannot open device nodes. */
	if (root->proc_fd >= 0)
		(void)close(root->proc_fd);
	root->proc_fd = -1;
}

static void close_between(int first, int last)
{
	if (first > last || graft_close_range((unsigned int)first, (unsigned int)last, 0) == 0)
		return;
	/* BASELINE 5.9: close_range(2) */
	for (int fd = first; fd <= last && fd < OLD_FD_MAX; fd++)
		(void)close(fd);
}

static void close_others(const struct graft_image_root *root, int out_fd)
{
	int kept[] = { root->fd, root->proc_fd, root->self_fd, out_fd }, next = 0;

	for (size_t i = 0; i < GRAFT_COUNT(kept); i++)
		for (size_t j = i + 1; j < GRAFT_COUNT(kept); j++)
			if (kept[j] < kept[i]) {
				int fd = kept[i];

				kept[i] = kept[j];
				kept[j] = fd;
			}
	for (size_t i = 0; i < GRAFT_COUNT(kept); i++) {
		close_between(next, kept[i] - 1);
		next = kept[i] + 1;
	}
	close_between(next, INT32_MAX);
}

/* Without the privilege, and in sandboxes that have no other root, we rely on Landlock. */
static bool enter_image_root(const struct graft_image_root *root)
{
	return fchdir(root->fd) == 0 && chroot(".") == 0;
}

/* ---- limits ---- */

/* The C libraries disagree about the type of `resource`. */
static int get_or_set_limit(int resource, const struct rlimit *limit, struct rlimit *ret_old)
{
	return (int)syscall(SYS_prlimit64, 0, resource, limit, ret_old);
}

/*
 * Makes the kernel kill a process that does not check the budget, a little later than the budget
 * would end it, so that one that checks can still answer. In sandboxes without such timers,
 * RLIMIT_CPU limits it to whole seconds.
 */
static void set_timer(int64_t left_ms)
{
	struct sigevent end = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	const int64_t end_ms = left_ms + left_ms / 4 + 1;
	const struct itimerspec left = {
		.it_value = { .tv_sec = end_ms / 1000, .tv_nsec = end_ms % 1000 * 1000000 },
	};
	timer_t timer;

	if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &end, &timer) == 0)
		(void)timer_settime(timer, 0, &left, NULL);
}

static int set_limits(const struct graft_image_root *root, struct graft_error *err)
{
	const int64_t left_ms = graft_budget_left_ms(root->budget);
	const rlim_t seconds = (rlim_t)left_ms / 1000 + 1;
	const struct {
		int resource;
		rlim_t limit;
		bool with_sanitizer;
	} limits[] = {
		{ RLIMIT_CPU, seconds, true },
		{ RLIMIT_AS, MEMORY_MAX, false },
		{ RLIMIT_NOFILE, DESCRIPTORS_MAX, true },
		{ RLIMIT_CORE, 0, true },
		{ RLIMIT_FSIZE, 0, true },
	};

	for (size_t i = 0; i < GRAFT_COUNT(limits); i++) {
		struct rlimit limit;

		if (HAS_SANITIZER && !limits[i].with_sanitizer)
			continue;
		if (get_or_set_limit(limits[i].resource, NULL, &limit) < 0)
			return fail_confine(errno, "prlimit", err);
		if (limit.rlim_max < limits[i].limit)
			continue;
		limit.rlim_cur = limit.rlim_max = limits[i].limit;
		if (get_or_set_limit(limits[i].resource, &limit, NULL) < 0)
			return fail_confine(errno, "prlimit", err);
	}
	set_timer(left_ms);
	return 0;
}

/* ---- Landlock ---- */

/* The kernel's interface (linux/landlock.h), which the headers of some build systems lack. */
#define LANDLOCK_CREATE_RULESET 444
#define LANDLOCK_ADD_RULE       445
#define LANDLOCK_RESTRICT_SELF  446
#define LANDLOCK_PATH_BENEATH   1
#define LANDLOCK_ALL_OF_ABI_1   UINT64_C(0x1fff) /* all kinds of access to files in Linux 5.13 */
#define LANDLOCK_READ           UINT64_C(0x000c) /* files and directories */

struct landlock_ruleset {
	uint64_t handled_access_fs;
};
struct landlock_path_beneath {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

/* Returns whether the restriction is in force. */
static bool restrict_to_root(const struct graft_image_root *root)
{
	const struct landlock_ruleset all = { .handled_access_fs = LANDLOCK_ALL_OF_ABI_1 };
	const struct landlock_path_beneath image = { .allowed_access = LANDLOCK_READ, .parent_fd = root->fd };
	auto_close int rules_fd = (int)syscall(LANDLOCK_CREATE_RULESET, &all, sizeof(all), 0);

	return rules_fd >= 0 && syscall(LANDLOCK_ADD_RULE, rules_fd, LANDLOCK_PATH_BENEATH, &image, 0) == 0 &&
	       syscall(LANDLOCK_RESTRICT_SELF, rules_fd, 0) == 0;
}

/* ---- seccomp ---- */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__powerpc64__)
#define ARCHITECTURE AUDIT_ARCH_PPC64LE
#endif

#define SYS_OPENAT2 437

/* The calls needed for reading, and those that the C library makes for memory. */
static const int calls[] = {
	SYS_read,    SYS_pread64,   SYS_write,   SYS_close,      SYS_fstat,         SYS_newfstatat,
	SYS_statx,   SYS_fstatfs,   SYS_lseek,   SYS_getdents64, SYS_readlinkat,    SYS_brk,
	SYS_mremap,  SYS_munmap,    SYS_madvise, SYS_getpid,     SYS_clock_gettime, SYS_gettimeofday,
	SYS_sysinfo, SYS_getrandom, SYS_futex,   SYS_exit,       SYS_exit_group,    SYS_rt_sigreturn,
};

/* Calls that are allowed only if an argument has none of these bits set. */
static const struct {
	int number;
	unsigned int argument;
	uint32_t forbidden;
} narrow[] = {
	{ SYS_openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY) },
	/* F_DUPFD to F_GETFL are 0 to 3. SECURITY: F_SETOWN and F_SETSIG would send signals. */
	{ SYS_fcntl, 1, ~(uint32_t)F_GETFL },
	{ SYS_mmap, 2, PROT_EXEC },
	{ SYS_mprotect, 2, PROT_EXEC },
};

#define DATA(member) ((uint32_t)offsetof(struct seccomp_data, member))
/* The low half, on a little-endian machine. */
#define ARGUMENT(n) ((uint32_t)(offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t)))

struct filter {
	struct sock_filter code[9 + 2 * GRAFT_COUNT(calls) + 5 * GRAFT_COUNT(narrow)];
	unsigned short n;
};

static void add_statement(struct filter *filter, uint16_t code, uint32_t k)
{
	filter->code[filter->n++] = (struct sock_filter)BPF_STMT(code, k);
}

/* `yes` and `no`: how many instructions are skipped. */
static void add_jump(struct filter *filter, uint16_t test, uint32_t k, uint8_t yes, uint8_t no)
{
	filter->code[filter->n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, k, yes, no);
}

static void add_return(struct filter *filter, uint32_t action)
{
	add_statement(filter, BPF_RET | BPF_K, action);
}

static void allow(struct filter *filter, int number)
{
	add_jump(filter, BPF_JEQ, (uint32_t)number, 0, 1);
	add_return(filter, SECCOMP_RET_ALLOW);
}

/*
 * Calls that are not on the list fail with EPERM: a future C library may try a call that it can do
 * without.
 */
static void make_filter(struct filter *filter, bool openat2)
{
	const uint32_t refuse = SECCOMP_RET_ERRNO | EPERM;

	filter->n = 0;
	add_statement(filter, BPF_LD | BPF_W | BPF_ABS, DATA(arch));
	add_jump(filter, BPF_JEQ, ARCHITECTURE, 1, 0);
	add_return(filter, SECCOMP_RET_KILL_PROCESS);
	add_statement(filter, BPF_LD | BPF_W | BPF_ABS, DATA(nr));
	/*
	 * Changes nothing. Linux 5.11 and later interpret a filter without arithmetic once for
	 * every call that exists, to skip it later, which costs more than all calls of a reader.
	 */
	add_statement(filter, BPF_ALU | BPF_AND | BPF_K, UINT32_MAX);
	for (size_t i = 0; i < GRAFT_COUNT(calls); i++)
		allow(filter, calls[i]);
	if (openat2)
		allow(filter, SYS_OPENAT2);
	for (size_t i = 0; i < GRAFT_COUNT(narrow); i++) {
		add_jump(filter, BPF_JEQ, (uint32_t)narrow[i].number, 0, 4);
		add_statement(filter, BPF_LD | BPF_W | BPF_ABS, ARGUMENT(narrow[i].argument));
		add_jump(filter, BPF_JSET, narrow[i].forbidden, 0, 1);
		add_return(filter, refuse);
		add_return(filter, SECCOMP_RET_ALLOW);
	}
	add_return(filter, refuse);
}

static int filter_calls(bool openat2, struct graft_error *err)
{
	struct filter filter;
	struct sock_fprog program = { .filter = filter.code };

	if (HAS_SANITIZER)
		return 0;
	make_filter(&filter, openat2);
	program.len = filter.n;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 || errno == EINVAL || errno == ENOSYS)
		return 0;
	return fail_confine(errno, "seccomp", err);
}

/* ---- all of it ---- */

int graft_confine(struct graft_image_root *root, int out_fd, struct graft_error *err)
{
	bool is_rooted, is_restricted;

	(void)prctl(PR_SET_NAME, GRAFT_READER_NAME, 0, 0, 0);
	/* If the parent is killed, the reader must not survive. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (graft_caps_keep_only(GRAFT_CAPS_CONFINE, err) < 0)
		return -1;
	copy_mounts(root);
	close_others(root, out_fd);
	is_rooted = enter_image_root(root);
	if (set_limits(root, err) < 0)
		return -1;
	is_restricted = restrict_to_root(root);
	if (graft_caps_keep_only(GRAFT_CAPS_READER, err) < 0)
		return -1;
	/* SECURITY: it may read files that others may not read, so it must not see the host. */
	if (!is_rooted && !is_restricted && graft_caps_hold(GRAFT_CAPS_READER))
		return fail_confine(EPERM, "neither chroot nor Landlock is available", err);
	/*
	 * A filter cannot inspect the flags of openat2: allow it only where all mounts are
	 * read-only. Before Linux 6.2, Landlock does not prevent truncation.
	 */
	root->no_openat2 = root->no_openat2 || !root->no_nodes;
	return filter_calls(!root->no_openat2, err);
}
