/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup on the kernel's own cgroups, v1 and v2: a process in a cgroup opens and makes nodes while
 * its rules change. libbpf, which the product does not use, loads the programs that exist before
 * and reads back those that exist after.
 *
 * Needs root and cgroup file systems that can be mounted; skipped otherwise.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../folder.h"
#include "../unit.h"
#include "apply/cgroup/cgroup_versions.h"
#include "base/cleanup.h"

/* -------- injected failures: allocations, and bpf(2) of the code under test (not libbpf's own calls) -------- */

static struct {
	int calls;                   /* of bpf(2), so far */
	int fail_at;                 /* number of the call that fails; -1 = none */
	bool go_on;                  /* later calls fail as well */
	int error;                   /* the errno */
	enum bpf_cmd only_command;   /* count only this command; -1 = all */
	bool no_replace;             /* an old kernel: rejects BPF_F_REPLACE */
	void (*before_attach)(void); /* called once, before the first attach */
	long allocations_left;       /* -1 = no limit */
} faults;

static void no_faults(void)
{
	memset(&faults, 0, sizeof(faults));
	faults.fail_at = -1;
	faults.only_command = (enum bpf_cmd) - 1;
	faults.allocations_left = -1;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long first, const union bpf_attr *second, long third, long fourth, long fifth,
		    long sixth);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

static bool may_allocate(void)
{
	return faults.allocations_left < 0 || faults.allocations_left-- > 0;
}

void *__wrap_malloc(size_t size)
{
	return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return may_allocate() ? __real_calloc(n, size) : NULL;
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return may_allocate() ? __real_reallocarray(p, n, size) : NULL;
}

static int fail_bpf(enum bpf_cmd command, const union bpf_attr *attr)
{
	if (command == BPF_PROG_ATTACH && faults.before_attach) {
		void (*call)(void) = faults.before_attach;

		faults.before_attach = NULL;
		call();
	}
	if (faults.no_replace && command == BPF_PROG_ATTACH && (attr->attach_flags & BPF_F_REPLACE))
		return EINVAL;
	if (faults.only_command != (enum bpf_cmd) - 1 && command != faults.only_command)
		return 0;
	faults.calls++;
	if (faults.fail_at < 0)
		return 0;
	return faults.calls - 1 == faults.fail_at || (faults.go_on && faults.calls > faults.fail_at) ? faults.error : 0;
}

/* Always six arguments, as the kernel takes them. */
long __wrap_syscall(long number, long first, const union bpf_attr *second, long third, long fourth, long fifth,
		    long sixth)
{
	int error = number == SYS_bpf ? fail_bpf((enum bpf_cmd)first, second) : 0;

	if (error) {
		errno = error;
		return -1;
	}
	return __real_syscall(number, first, second, third, fourth, fifth, sixth);
}

/* -------- the setup: our own cgroups and nodes, and a process in the cgroup -------- */

/* Orders to the process in the cgroup. */
enum order { OPEN, MKNOD, HAMMER };
struct request {
	enum order order;
	unsigned int major, minor;
	mode_t type;
};

/*
 * Read by the hammering process. generation: odd = a change is in progress; allowed: whether the
 * target is allowed.
 */
struct shared {
	atomic_uint generation;
	atomic_bool allowed, stop;
	atomic_ulong rounds, checked, errors;
	char complaint[128];
};

#define MAX_PROGRAMS 8

struct world {
	char top[64];
	char v1[96], v2[96]; /* paths of our own cgroups */
	bool have_v1, have_v2;
	pid_t subject;
	int socket;
	struct shared *shared;
	char log[4096];
	struct graft_log sink;
};

static struct world world;

/* 195, the driver's major; if a real driver is loaded, an unused major, so that no GPU is woken. */
static unsigned int gpu_major = 195;

enum { NULL_MINOR = 3, ZERO_MINOR = 5, RANDOM_MINOR = 8, MEM_MAJOR = 1 };

static int open_node(unsigned int node_major, unsigned int node_minor, int flags)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/nodes/%u:%u", world.top, node_major, node_minor);
	fd = open(path, flags | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno;
	(void)close(fd);
	return 0;
}

static int make_node(mode_t type, unsigned int node_major, unsigned int node_minor)
{
	char path[128];
	int r;

	(void)snprintf(path, sizeof(path), "%s/nodes/made", world.top);
	r = mknod(path, type | 0666, makedev(node_major, node_minor)) < 0 ? errno : 0;
	(void)unlink(path);
	return r;
}

static void complain(struct shared *shared, const char *what, int error)
{
	if (atomic_fetch_add(&shared->errors, 1) == 0)
		(void)snprintf(shared->complaint, sizeof(shared->complaint), "%s: %s", what, strerror(error));
}

/*
 * The zero device is always allowed, the random device never, the null device according to the
 * shared state.
 */
static int hammer(struct shared *shared)
{
	while (!atomic_load(&shared->stop)) {
		unsigned int before = atomic_load(&shared->generation);
		bool allowed = atomic_load(&shared->allowed);
		int target = open_node(MEM_MAJOR, NULL_MINOR, O_RDWR);
		int error;

		if (target != 0 && target != EPERM)
			complain(shared, "target", target);
		if (before % 2 == 0 && atomic_load(&shared->generation) == before) {
			atomic_fetch_add(&shared->checked, 1);
			if ((target == 0) != allowed)
				complain(shared, allowed ? "an allowed device" : "a device not allowed", target);
		}
		error = open_node(MEM_MAJOR, ZERO_MINOR, O_RDWR);
		if (error != 0)
			complain(shared, "a device that is always allowed", error);
		error = open_node(MEM_MAJOR, RANDOM_MINOR, O_RDONLY);
		if (error != EPERM)
			complain(shared, "a device that is never allowed", error);
		atomic_fetch_add(&shared->rounds, 1);
	}
	return 0;
}

static void subject_main(int socket)
{
	struct request request;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (recv(socket, &request, sizeof(request), 0) == sizeof(request)) {
		int result = -1;

		switch (request.order) {
		case OPEN:
			result = open_node(request.major, request.minor, O_RDWR);
			break;
		case MKNOD:
			result = make_node(request.type, request.major, request.minor);
			break;
		case HAMMER:
			result = hammer(world.shared);
			break;
		}
		if (send(socket, &result, sizeof(result), 0) != sizeof(result))
			break;
	}
	_exit(0);
}

static void order(enum order what, mode_t type, unsigned int node_major, unsigned int node_minor)
{
	struct request request = { what, node_major, node_minor, type };

	assert_int_equal(send(world.socket, &request, sizeof(request), 0), sizeof(request));
}

static int answer(void)
{
	int result = -1;

	assert_int_equal(recv(world.socket, &result, sizeof(result), 0), sizeof(result));
	return result;
}

/* errno of an open() for reading and writing, or of mknod(), in the process in the cgroup. */
static int subject_open(unsigned int node_major, unsigned int node_minor)
{
	order(OPEN, 0, node_major, node_minor);
	return answer();
}

static int subject_mknod(mode_t type, unsigned int node_major, unsigned int node_minor)
{
	order(MKNOD, type, node_major, node_minor);
	return answer();
}

static bool write_text(const char *directory, const char *file, const char *text)
{
	char path[160];
	bool done;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		(void)close(fd);
	return done;
}

/* Mounts a hierarchy in our own mount namespace and makes a cgroup in it. */
static bool make_cgroup(const char *name, const char *type, const char *options, char path[96])
{
	char mount_point[80];

	(void)snprintf(mount_point, sizeof(mount_point), "%s/%s", world.top, name);
	if (mkdir(mount_point, 0755) < 0 || mount(type, mount_point, type, 0, options) < 0)
		return false;
	(void)snprintf(path, 96, "%s/graft-test-%d", mount_point, (int)getpid());
	return mkdir(path, 0755) == 0;
}

static void make_nodes(void)
{
	const struct {
		unsigned int major, minor;
	} nodes[] = { { gpu_major, 0 },          { gpu_major, 1 },          { gpu_major, 255 },
		      { MEM_MAJOR, NULL_MINOR }, { MEM_MAJOR, ZERO_MINOR }, { MEM_MAJOR, RANDOM_MINOR } };
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/nodes", world.top);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(mount("nodes", path, "tmpfs", MS_NOSUID, "mode=755"), 0);
	for (size_t i = 0; i < GRAFT_COUNT(nodes); i++) {
		(void)snprintf(path, sizeof(path), "%s/nodes/%u:%u", world.top, nodes[i].major, nodes[i].minor);
		assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)), 0);
	}
}

static void start_subject(void)
{
	int sockets[2];
	char pid[16];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	world.subject = fork();
	assert_true(world.subject >= 0);
	if (world.subject == 0) {
		(void)close(sockets[0]);
		subject_main(sockets[1]);
	}
	(void)close(sockets[1]);
	world.socket = sockets[0];
	(void)snprintf(pid, sizeof(pid), "%d", (int)world.subject);
	assert_true(!world.have_v1 || write_text(world.v1, "cgroup.procs", pid));
	assert_true(!world.have_v2 || write_text(world.v2, "cgroup.procs", pid));
}

static bool driver_is_loaded(void)
{
	struct stat st;

	return stat("/proc/driver/nvidia/version", &st) == 0;
}

static void keep_log(void *arg, enum graft_log_level level, const char *file, int line, const char *message)
{
	size_t length = strlen(world.log);

	if (level <= GRAFT_LOG_WARN)
		(void)snprintf(world.log + length, sizeof(world.log) - length, "%s\n", message);
}

static int make_world(void **state)
{
	no_faults();
	world.socket = -1;
	world.sink = (struct graft_log){ keep_log, NULL, GRAFT_LOG_DEBUG };
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 0;
	if (driver_is_loaded())
		gpu_major = 4011;
	(void)snprintf(world.top, sizeof(world.top), "/tmp/graft-test-cgroup-XXXXXX");
	if (!mkdtemp(world.top) || mount("top", world.top, "tmpfs", 0, "mode=755") < 0)
		return -1;
	world.shared = mmap(NULL, sizeof(*world.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (world.shared == MAP_FAILED)
		return -1;
	make_nodes();
	world.have_v1 = make_cgroup("v1", "cgroup", "devices", world.v1);
	world.have_v2 = make_cgroup("v2", "cgroup2", NULL, world.v2);
	if (world.have_v1 || world.have_v2)
		start_subject();
	return 0;
}

static int end_world(void **state)
{
	int status;

	if (world.subject > 0) {
		(void)kill(world.subject, SIGKILL);
		(void)waitpid(world.subject, &status, 0);
		(void)close(world.socket);
	}
	for (int i = 0; i < 100; i++) {
		bool done = (!world.have_v1 || rmdir(world.v1) == 0 || errno == ENOENT) &&
			    (!world.have_v2 || rmdir(world.v2) == 0 || errno == ENOENT);

		if (done)
			break;
		(void)usleep(10000);
	}
	if (world.top[0]) {
		(void)umount2(world.top, MNT_DETACH);
		(void)rmdir(world.top);
	}
	return 0;
}

/* -------- v2: programs -------- */

#define READ_MAJOR                                                                      \
	{                                                                               \
		.code = BPF_LDX | BPF_W | BPF_MEM, .dst_reg = 4, .src_reg = 1, .off = 4 \
	}
#define READ_MINOR                                                                      \
	{                                                                               \
		.code = BPF_LDX | BPF_W | BPF_MEM, .dst_reg = 5, .src_reg = 1, .off = 8 \
	}
#define SKIP_UNLESS(reg, value, n)                                                              \
	{                                                                                       \
		.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = (reg), .off = (n), .imm = (value) \
	}
#define ANSWER(value)                                                          \
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = (value) }, \
	{                                                                      \
		.code = BPF_JMP | BPF_EXIT                                     \
	}

/* Allows only the zero device. */
static const struct bpf_insn only_zero[] = {
	READ_MAJOR, READ_MINOR, SKIP_UNLESS(4, MEM_MAJOR, 3), SKIP_UNLESS(5, ZERO_MINOR, 2), ANSWER(1), ANSWER(0),
};
/* The same answers from other instructions. */
static const struct bpf_insn only_zero_too[] = {
	READ_MINOR, READ_MAJOR, SKIP_UNLESS(5, ZERO_MINOR, 3), SKIP_UNLESS(4, MEM_MAJOR, 2), ANSWER(1), ANSWER(0),
};

static int load(const struct bpf_insn *insns, size_t n, const char *name)
{
	int fd = bpf_prog_load(BPF_PROG_TYPE_CGROUP_DEVICE, name, "Apache", insns, n, NULL);

	assert_true(fd >= 0);
	return fd;
}

static int cgroup_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

struct attached {
	__u32 ids[MAX_PROGRAMS];
	__u32 n, flags;
};

static struct attached list_attached(void)
{
	struct attached attached = { .n = MAX_PROGRAMS };
	int fd = cgroup_directory(world.v2);

	assert_int_equal(bpf_prog_query(fd, BPF_CGROUP_DEVICE, 0, &attached.flags, attached.ids, &attached.n), 0);
	(void)close(fd);
	return attached;
}

static void expect_same(const struct attached *a, const struct attached *b)
{
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->flags, b->flags);
	for (__u32 i = 0; i < a->n; i++)
		assert_int_equal(a->ids[i], b->ids[i]);
}

/*
 * Expects the same programs in any order: without BPF_F_REPLACE a restored program is attached
 * last.
 */
static void expect_same_set(const struct attached *a, const struct attached *b)
{
	assert_int_equal(a->n, b->n);
	for (__u32 i = 0; i < a->n; i++) {
		bool found = false;

		for (__u32 k = 0; k < b->n; k++)
			found |= a->ids[i] == b->ids[k];
		assert_true(found);
	}
}

static size_t read_back(__u32 id, struct bpf_insn *insns, size_t max, struct bpf_prog_info *ret_info)
{
	struct bpf_prog_info info = { 0 };
	__u32 length = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(id);

	assert_true(fd >= 0);
	info.xlated_prog_insns = (__u64)(uintptr_t)insns;
	info.xlated_prog_len = (__u32)(max * sizeof(*insns));
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &length), 0);
	(void)close(fd);
	if (ret_info)
		*ret_info = info;
	return info.xlated_prog_len / sizeof(*insns);
}

static void attach(const struct bpf_insn *insns, size_t n, unsigned int flags)
{
	auto_close int cgroup = cgroup_directory(world.v2);
	auto_close int program = load(insns, n, "before");

	assert_int_equal(bpf_prog_attach(program, cgroup, BPF_CGROUP_DEVICE, flags), 0);
}
#define ATTACH(program, flags) attach(program, GRAFT_COUNT(program), flags)

/* The v2 cgroup as graft_cgroup_open() returns it when nothing hides it. */
static struct graft_cgroup v2_cgroup(void)
{
	struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;

	cgroup.version = 2;
	cgroup.dir_fd = cgroup_directory(world.v2);
	(void)snprintf(cgroup.path, sizeof(cgroup.path), "%s", world.v2);
	return cgroup;
}

static int descriptors_before;

static int setup_v2(void **state)
{
	no_faults();
	world.log[0] = '\0';
	descriptors_before = test_count_fds();
	return 0;
}

static void detach_all(void)
{
	for (struct attached attached = list_attached(); attached.n > 0; attached = list_attached()) {
		auto_close int cgroup = cgroup_directory(world.v2);
		auto_close int program = bpf_prog_get_fd_by_id(attached.ids[0]);

		assert_int_equal(bpf_prog_detach2(program, cgroup, BPF_CGROUP_DEVICE), 0);
	}
}

static int teardown_v2(void **state)
{
	no_faults();
	if (!world.have_v2)
		return 0;
	detach_all();
	assert_int_equal(test_count_fds(), descriptors_before);
	return 0;
}

#define NEED_V2()           \
	if (!world.have_v2) \
	skip()
#define NEED_V1()           \
	if (!world.have_v1) \
	skip()

static struct graft_device_rule gpu_rules[] = { { 195, 0, true, true }, { 195, 255, true, true } };
#define N_GPU_RULES GRAFT_COUNT(gpu_rules)

static int allow(struct graft_cgroup *cgroup, struct graft_error *err)
{
	for (size_t i = 0; i < N_GPU_RULES; i++)
		gpu_rules[i].major = gpu_major;
	return graft_cgroup_allow(cgroup, gpu_rules, N_GPU_RULES, &world.sink, err);
}

static void expect_before(void)
{
	assert_int_equal(subject_open(gpu_major, 0), EPERM);
	assert_int_equal(subject_open(gpu_major, 1), EPERM);
	assert_int_equal(subject_open(gpu_major, 255), EPERM);
	assert_int_equal(subject_open(MEM_MAJOR, ZERO_MINOR), 0);
	assert_int_equal(subject_open(MEM_MAJOR, RANDOM_MINOR), EPERM);
}

static void expect_allowed(void)
{
	assert_int_equal(subject_open(gpu_major, 0), ENXIO);
	assert_int_equal(subject_open(gpu_major, 255), ENXIO);
	assert_int_equal(subject_open(gpu_major, 1), EPERM);
	assert_int_equal(subject_open(MEM_MAJOR, ZERO_MINOR), 0);
	assert_int_equal(subject_open(MEM_MAJOR, RANDOM_MINOR), EPERM);
	assert_int_equal(subject_mknod(S_IFCHR, gpu_major, 0), EPERM);
	assert_int_equal(subject_mknod(S_IFCHR, gpu_major, 1), EPERM);
	assert_int_equal(subject_mknod(S_IFBLK, gpu_major, 0), EPERM);
}

static void test_v2_replaces_in_place(void **state)
{
	struct graft_cgroup cgroup;
	struct graft_error err = { 0 };
	struct attached before, after, again;
	struct bpf_insn old[64], new[128];
	struct bpf_prog_info info;
	size_t n_old, n_new;

	NEED_V2();
	ATTACH(only_zero, BPF_F_ALLOW_MULTI);
	before = list_attached();
	cgroup = v2_cgroup();
	expect_before();
	assert_int_equal(allow(&cgroup, &err), 0);
	expect_allowed();
	after = list_attached();
	assert_int_equal(after.n, 1);
	assert_int_equal(after.flags, before.flags);
	assert_int_not_equal(after.ids[0], before.ids[0]);
	/*
	 * The new program consists of the rules followed by the old program, instruction by
	 * instruction.
	 */
	n_old = read_back(before.ids[0], old, GRAFT_COUNT(old), NULL);
	n_new = read_back(after.ids[0], new, GRAFT_COUNT(new), &info);
	assert_int_equal(n_old, GRAFT_COUNT(only_zero));
	assert_int_equal(n_new, n_old + 7 + 7 * N_GPU_RULES);
	assert_memory_equal(new + n_new - n_old, old, n_old * sizeof(*old));
	assert_string_equal(info.name, "graft_devices");
	/* Rules that exist already change nothing. */
	assert_int_equal(allow(&cgroup, &err), 0);
	again = list_attached();
	expect_same(&after, &again);
	graft_cgroup_undo(&cgroup, &world.sink);
	after = list_attached();
	expect_same(&before, &after);
	expect_before();
	graft_cgroup_close(&cgroup);
	assert_string_equal(world.log, "");
}

static void test_v2_rights_outlive_us(void **state)
{
	struct graft_cgroup cgroup;
	struct graft_error err = { 0 };

	NEED_V2();
	ATTACH(only_zero, BPF_F_ALLOW_MULTI);
	cgroup = v2_cgroup();
	assert_int_equal(allow(&cgroup, &err), 0);
	graft_cgroup_close(&cgroup);
	expect_allowed();
}

static void test_v2_every_kind_of_attachment(void **state)
{
	static const unsigned int flags[] = { 0, BPF_F_ALLOW_OVERRIDE, BPF_F_ALLOW_MULTI };

	NEED_V2();
	for (size_t i = 0; i < 2 * GRAFT_COUNT(flags); i++) {
		struct graft_cgroup cgroup = v2_cgroup();
		struct graft_error err = { 0 };
		struct attached before, after;

		faults.no_replace = i >= GRAFT_COUNT(flags);
		ATTACH(only_zero, flags[i % GRAFT_COUNT(flags)]);
		before = list_attached();
		assert_int_equal(allow(&cgroup, &err), 0);
		expect_allowed();
		after = list_attached();
		assert_int_equal(after.n, 1);
		assert_int_equal(after.flags, before.flags);
		graft_cgroup_undo(&cgroup, &world.sink);
		after = list_attached();
		expect_same(&before, &after);
		graft_cgroup_close(&cgroup);
		detach_all();
	}
}

static void test_v2_no_program(void **state)
{
	struct graft_cgroup cgroup;
	struct graft_error err = { 0 };

	NEED_V2();
	cgroup = v2_cgroup();
	assert_int_equal(allow(&cgroup, &err), 0);
	assert_int_equal(list_attached().n, 0);
	assert_int_equal(cgroup.n_changes, 0);
	assert_int_equal(subject_open(gpu_major, 0), ENXIO);
	graft_cgroup_close(&cgroup);
}

static void test_v2_several_programs(void **state)
{
	struct graft_cgroup cgroup;
	struct graft_error err = { 0 };
	struct attached before, after;

	NEED_V2();
	ATTACH(only_zero, BPF_F_ALLOW_MULTI);
	ATTACH(only_zero_too, BPF_F_ALLOW_MULTI);
	ATTACH(only_zero, BPF_F_ALLOW_MULTI);
	before = list_attached();
	assert_int_equal(before.n, 3);
	cgroup = v2_cgroup();
	assert_int_equal(allow(&cgroup, &err), 0);
	expect_allowed();
	after = list_attached();
	assert_int_equal(after.n, 3);
	graft_cgroup_undo(&cgroup, &world.sink);
	after = list_attached();
	expect_same(&before, &after);
	expect_before();
	graft_cgroup_close(&cgroup);
}

/*
 * Fails every bpf(2) call in turn, in three ways and on both kinds of kernel: rights and programs
 * stay as they were.
 */
static void test_v2_every_call_fails(void **state)
{
	static const int errors[] = { EPERM, EIO, EINVAL };
	struct attached before, after;

	NEED_V2();
	ATTACH(only_zero, BPF_F_ALLOW_MULTI);
	ATTACH(only_zero_too, BPF_F_ALLOW_MULTI);
	before = list_attached();
	for (size_t i = 0; i < 2 * GRAFT_COUNT(errors); i++) {
		int n_failures = 0;

		for (int at = 0; at < 40; at++) {
			struct graft_cgroup cgroup = v2_cgroup();
			struct graft_error err = { 0 };
			bool hit;
			int r;

			no_faults();
			faults.no_replace = i >= GRAFT_COUNT(errors);
			faults.fail_at = at;
			faults.error = errors[i % GRAFT_COUNT(errors)];
			cgroup.required = true;
			r = allow(&cgroup, &err);
			hit = faults.calls > at;
			no_faults();
			after = list_attached();
			if (r < 0) {
				n_failures++;
				assert_int_equal(cgroup.n_changes, 0);
				expect_same_set(&before, &after);
			} else {
				assert_int_equal(after.n, before.n);
				graft_cgroup_undo(&cgroup, &world.sink);
			}
			graft_cgroup_close(&cgroup);
			if (!hit)
				break;
			assert_int_not_equal(at, 39);
		}
		assert_true(n_failures >= 4);
		after = list_attached();
		expect_same_set(&before, &after);
	}
	expect_before();
}

static void test_v2_allocations(void **state)
{
	struct attached before, after;
	long limit;

	NEED_V2();
	ATTACH(only_zero, BPF_F_ALLOW_MULTI);
	before = list_attached();
	for (limit = 0; limit < 50; limit++) {
		struct graft_cgroup cgroup = v2_cgroup();
		struct graft_error err = { 0 };
		int r;

		faults.allocations_left = limit;
		r = allow(&cgroup, &err);
		no_faults();
		graft_cgroup_undo(&cgroup, NULL);
		graft_cgroup_close(&cgroup);
		after = list_attached();
		expect_same(&before, &after);
		if (r == 0)
			break;
		assert_int_equal(err.status, GRAFT_NO_MEMORY);
	}
	assert_true(limit >= 2 && limit < 50);
}

static void test_v2_no_rights(void **state)
{
	static const enum bpf_cmd commands[] = { BPF_PROG_QUERY, BPF_PROG_GET_FD_BY_ID, BPF_PROG_LOAD,
						 BPF_PROG_ATTACH };

	NEED_V2();
	ATTACH(only_zero, BPF_F_ALLOW_MULTI);
	for (size_t i = 0; i < 2 * GRAFT_COUNT(commands); i++) {
		struct graft_cgroup cgroup = v2_cgroup();
		struct graft_error err = { 0 };
		bool required = i % 2;

		no_faults();
		faults.only_command = commands[i / 2];
		faults.fail_at = 0;
		faults.go_on = true; /* a load is attempted twice */
		faults.error = EPERM;
		world.log[0] = '\0';
		cgroup.required = required;
		if (required) {
			assert_int_equal(allow(&cgroup, &err), -1);
			assert_int_equal(err.status, GRAFT_PERMISSION);
			assert_string_equal(err.ctx, "failed to add device rules");
		} else {
			assert_int_equal(allow(&cgroup, &err), 0);
			assert_non_null(
			    strstr(world.log, "skipping device cgroup rules: failed to add device rules: "));
		}
		graft_cgroup_close(&cgroup);
		expect_before();
	}
}

/* RLIMIT_MEMLOCK is raised only for a load that the old memory accounting refused. */
static void test_v2_locked_memory(void **state)
{
	struct rlimit before, low = { 0, 0 }, after;
	struct graft_cgroup cgroup;
	struct graft_error err = { 0 };

	NEED_V2();
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	low = before;
	if (low.rlim_cur > 4096)
		low.rlim_cur = 4096;
	ATTACH(only_zero, BPF_F_ALLOW_MULTI);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	for (int error = 0; error < 2; error++) {
		cgroup = v2_cgroup();
		faults.only_command = BPF_PROG_LOAD;
		faults.calls = 0;
		faults.fail_at = 0;
		faults.error = error ? EPERM : ENOMEM;
		assert_int_equal(allow(&cgroup, &err), 0);
		assert_int_equal(faults.calls, 2);
		assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &after), 0);
		assert_int_equal(after.rlim_cur, low.rlim_cur);
		assert_int_equal(after.rlim_max, low.rlim_max);
		graft_cgroup_undo(&cgroup, NULL);
		graft_cgroup_close(&cgroup);
	}
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

static void expect_refused(const char *text)
{
	struct graft_cgroup cgroup = v2_cgroup();
	struct graft_error err = { 0 };
	struct attached before = list_attached(), after;
	char got[1024];

	assert_int_equal(allow(&cgroup, &err), -1);
	if (!strstr(graft_error_text(&err, got, sizeof(got)), text))
		fail_msg("'%s' is not in '%s'", text, got);
	after = list_attached();
	expect_same(&before, &after);
	graft_cgroup_close(&cgroup);
}

static void test_v2_what_cannot_be_loaded_again(void **state)
{
	auto_close int map = -1;
	/* Calls the helper bpf_get_current_uid_gid(), then allows. */
	const struct bpf_insn helper[] = { { .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_uid_gid },
					   ANSWER(1) };

	NEED_V2();
	map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "rules", 4, 8, 1, NULL);
	assert_true(map >= 0);
	{
		const struct bpf_insn with_map[] = {
			{ .code = BPF_LD | BPF_IMM | BPF_DW,
			  .dst_reg = 2,
			  .src_reg = BPF_PSEUDO_MAP_VALUE,
			  .imm = map },
			{ .code = 0 },
			{ .code = BPF_LDX | BPF_DW | BPF_MEM, .dst_reg = 0, .src_reg = 2 },
			{ .code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = 0, .imm = 1 },
			{ .code = BPF_JMP | BPF_EXIT },
		};

		ATTACH(with_map, BPF_F_ALLOW_MULTI);
	}
	expect_refused("failed to add device rules: device program ");
	expect_refused("'before' uses a map or a kernel symbol, so it cannot be loaded again with more rules");
	detach_all();
	/* A second program, which could be replaced, is left as it is, too. */
	ATTACH(only_zero, BPF_F_ALLOW_MULTI);
	ATTACH(helper, BPF_F_ALLOW_MULTI);
	expect_refused("'before' uses a helper function of the kernel, so it cannot be loaded again");
	graft_cleanup_close(&map);
	map = -1;
}

static void test_v2_attached_by_a_link(void **state)
{
	struct graft_cgroup cgroup;
	int program, link;

	NEED_V2();
	cgroup = v2_cgroup();
	program = load(only_zero, GRAFT_COUNT(only_zero), "before");
	link = bpf_link_create(program, cgroup.dir_fd, BPF_CGROUP_DEVICE, NULL);
	assert_true(link >= 0);
	expect_refused("keep changing, or are attached by a BPF link");
	(void)close(link);
	(void)close(program);
	graft_cgroup_close(&cgroup);
}

/*
 * Another process replaces the program after we have read it: the rules are added to the new
 * program.
 */
static void replace_behind_the_back(void)
{
	struct attached attached = list_attached();
	int cgroup = cgroup_directory(world.v2);
	int old = bpf_prog_get_fd_by_id(attached.ids[0]);
	int new = load(only_zero_too, GRAFT_COUNT(only_zero_too), "theirs");
	LIBBPF_OPTS(bpf_prog_attach_opts, opts, .flags = BPF_F_ALLOW_MULTI | BPF_F_REPLACE, .replace_prog_fd = old);

	assert_int_equal(bpf_prog_attach_opts(new, cgroup, BPF_CGROUP_DEVICE, &opts), 0);
	(void)close(old);
	(void)close(new);
	(void)close(cgroup);
}

static void test_v2_changed_meanwhile(void **state)
{
	struct graft_cgroup cgroup;
	struct graft_error err = { 0 };
	struct attached after;
	struct bpf_insn new[128];
	size_t n;

	NEED_V2();
	ATTACH(only_zero, BPF_F_ALLOW_MULTI);
	cgroup = v2_cgroup();
	faults.before_attach = replace_behind_the_back;
	assert_int_equal(allow(&cgroup, &err), 0);
	expect_allowed();
	after = list_attached();
	assert_int_equal(after.n, 1);
	n = read_back(after.ids[0], new, GRAFT_COUNT(new), NULL);
	assert_true(n > GRAFT_COUNT(only_zero_too));
	assert_memory_equal(new + n - GRAFT_COUNT(only_zero_too), only_zero_too, sizeof(only_zero_too));
	graft_cgroup_close(&cgroup);
}

/* -------- during a change -------- */

static void begin_change(void)
{
	atomic_fetch_add(&world.shared->generation, 1);
}

static void end_change(bool allowed)
{
	atomic_store(&world.shared->allowed, allowed);
	atomic_fetch_add(&world.shared->generation, 1);
}

static void wait_for_rounds(unsigned long n)
{
	unsigned long goal = atomic_load(&world.shared->rounds) + n;

	while (atomic_load(&world.shared->rounds) < goal)
		(void)usleep(20);
}

/* Another process keeps opening nodes while rules are added and removed. */
static void change_under_fire(struct graft_cgroup *cgroup, int rounds)
{
	static const struct graft_device_rule rule[] = { { MEM_MAJOR, NULL_MINOR, true, true } };

	memset(world.shared, 0, sizeof(*world.shared));
	order(HAMMER, 0, 0, 0);
	for (int i = 0; i < rounds; i++) {
		struct graft_error err = { 0 };

		begin_change();
		assert_int_equal(graft_cgroup_allow(cgroup, rule, 1, NULL, &err), 0);
		end_change(true);
		wait_for_rounds(3);
		begin_change();
		graft_cgroup_undo(cgroup, &world.sink);
		end_change(false);
		wait_for_rounds(3);
	}
	atomic_store(&world.shared->stop, true);
	assert_int_equal(answer(), 0);
	if (atomic_load(&world.shared->errors) > 0)
		fail_msg("%lu wrong answers; the first: %s", atomic_load(&world.shared->errors),
			 world.shared->complaint);
	assert_true(atomic_load(&world.shared->checked) > (unsigned long)rounds);
}

static void test_v2_under_fire(void **state)
{
	NEED_V2();
	for (int variant = 0; variant < 4; variant++) {
		struct graft_cgroup cgroup;

		ATTACH(only_zero, BPF_F_ALLOW_MULTI);
		if (variant >= 2)
			ATTACH(only_zero_too, BPF_F_ALLOW_MULTI);
		cgroup = v2_cgroup();
		faults.no_replace = variant % 2;
		change_under_fire(&cgroup, 100);
		graft_cgroup_close(&cgroup);
		detach_all();
	}
}

/* -------- v1 -------- */

static struct graft_cgroup v1_cgroup(void)
{
	struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;

	cgroup.version = 1;
	cgroup.dir_fd = cgroup_directory(world.v1);
	(void)snprintf(cgroup.path, sizeof(cgroup.path), "%s", world.v1);
	return cgroup;
}

static void read_list(char *text, size_t size)
{
	char path[128];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/devices.list", world.v1);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	n = read(fd, text, size - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	(void)close(fd);
}

static void deny_all_but_zero(void)
{
	assert_true(write_text(world.v1, "devices.deny", "a"));
	assert_true(write_text(world.v1, "devices.allow", "c 1:5 rwm"));
}

static int setup_v1(void **state)
{
	no_faults();
	world.log[0] = '\0';
	return !world.have_v1 || write_text(world.v1, "devices.allow", "a") ? 0 : -1;
}

static void test_v1_allows_and_takes_back(void **state)
{
	struct graft_cgroup cgroup;
	struct graft_error err = { 0 };
	char before[512], after[512], rule[32];

	NEED_V1();
	deny_all_but_zero();
	(void)snprintf(rule, sizeof(rule), "c %u:255 r", gpu_major);
	assert_true(write_text(world.v1, "devices.allow", rule));
	read_list(before, sizeof(before));
	cgroup = v1_cgroup();
	expect_before();
	assert_int_equal(allow(&cgroup, &err), 0);
	expect_allowed();
	assert_int_equal(allow(&cgroup, &err), 0); /* a second time: nothing new */
	graft_cgroup_undo(&cgroup, &world.sink);
	read_list(after, sizeof(after));
	assert_string_equal(before, after);
	expect_before();
	graft_cgroup_close(&cgroup);
	assert_string_equal(world.log, "");
}

/* What was allowed before is still allowed after an undo. */
static void test_v1_keeps_what_was_allowed(void **state)
{
	struct graft_cgroup cgroup;
	struct graft_error err = { 0 };
	char rule[32];

	NEED_V1();
	deny_all_but_zero();
	(void)snprintf(rule, sizeof(rule), "c %u:* rw", gpu_major);
	assert_true(write_text(world.v1, "devices.allow", rule));
	cgroup = v1_cgroup();
	assert_int_equal(allow(&cgroup, &err), 0);
	assert_int_equal(cgroup.n_changes, 0);
	graft_cgroup_undo(&cgroup, &world.sink);
	assert_int_equal(subject_open(gpu_major, 0), ENXIO);
	assert_int_equal(subject_open(gpu_major, 1), ENXIO);
	graft_cgroup_close(&cgroup);
}

/* A cgroup that allows by default, with an exception that devices.list does not show. */
static void test_v1_allow_by_default(void **state)
{
	struct graft_cgroup cgroup;
	struct graft_error err = { 0 };
	char rule[32];

	NEED_V1();
	(void)snprintf(rule, sizeof(rule), "c %u:0 rwm", gpu_major);
	assert_true(write_text(world.v1, "devices.deny", rule));
	assert_int_equal(subject_open(gpu_major, 0), EPERM);
	cgroup = v1_cgroup();
	assert_int_equal(allow(&cgroup, &err), 0);
	assert_int_equal(subject_open(gpu_major, 0), ENXIO);
	assert_int_equal(subject_mknod(S_IFCHR, gpu_major, 0), EPERM);
	graft_cgroup_undo(&cgroup, &world.sink);
	assert_int_equal(subject_open(gpu_major, 255), ENXIO);
	graft_cgroup_close(&cgroup);
}

static void test_v1_under_fire(void **state)
{
	struct graft_cgroup cgroup;

	NEED_V1();
	deny_all_but_zero();
	cgroup = v1_cgroup();
	change_under_fire(&cgroup, 200);
	graft_cgroup_close(&cgroup);
}

/* -------- finding it -------- */

/* Hides every mount of v1's devices controller in a mount namespace of its own. */
static int find_version_without_v1(void)
{
	struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
	struct graft_error err = { 0 };
	struct stat found, expected;
	pid_t child = fork();
	int status, root;

	assert_true(child >= 0);
	if (child > 0) {
		assert_int_equal(waitpid(child, &status, 0), child);
		return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
	}
	/*
	 * Like a hybrid kernel whose administrator mounts only v2: the v1 mount still exists
	 * underneath.
	 */
	if (unshare(CLONE_NEWNS) < 0 || umount2("/sys/fs/cgroup", MNT_DETACH) < 0 ||
	    mount("none", "/sys/fs/cgroup", "cgroup2", 0, NULL) < 0)
		_exit(254);
	(void)snprintf(world.v1, sizeof(world.v1), "%s/v1", world.top);
	if (mount("none", world.v1, "tmpfs", 0, NULL) < 0)
		_exit(251);
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (graft_cgroup_open(root, world.subject, false, true, NULL, &cgroup, &err) < 0 ||
	    fstat(cgroup.dir_fd, &found) < 0 || stat(world.v2, &expected) < 0)
		_exit(253);
	_exit(found.st_ino == expected.st_ino && found.st_dev == expected.st_dev ? cgroup.version : 252);
}

static void test_open_finds_it(void **state)
{
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct graft_cgroup cgroup = GRAFT_CGROUP_INIT;
	struct graft_error err = { 0 };
	struct stat found, expected;

	if (!world.have_v1 && !world.have_v2)
		skip();
	assert_int_equal(graft_cgroup_open(root, world.subject, false, true, &world.sink, &cgroup, &err), 0);
	assert_int_equal(cgroup.version, world.have_v1 ? 1 : 2);
	assert_int_equal(fstat(cgroup.dir_fd, &found), 0);
	assert_int_equal(stat(world.have_v1 ? world.v1 : world.v2, &expected), 0);
	assert_int_equal(found.st_ino, expected.st_ino);
	graft_cgroup_close(&cgroup);
	if (world.have_v1 && world.have_v2)
		assert_int_equal(find_version_without_v1(), 2);
	/* A process that has ended. */
	assert_int_equal(graft_cgroup_open(root, 0x7ffffffe, false, false, NULL, &cgroup, &err), -1);
	assert_int_equal(err.status, GRAFT_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define V2_TEST(name) cmocka_unit_test_setup_teardown(name, setup_v2, teardown_v2)
#define V1_TEST(name) cmocka_unit_test_setup_teardown(name, setup_v1, setup_v1)
		V2_TEST(test_v2_replaces_in_place),
		V2_TEST(test_v2_rights_outlive_us),
		V2_TEST(test_v2_every_kind_of_attachment),
		V2_TEST(test_v2_no_program),
		V2_TEST(test_v2_several_programs),
		V2_TEST(test_v2_every_call_fails),
		V2_TEST(test_v2_allocations),
		V2_TEST(test_v2_no_rights),
		V2_TEST(test_v2_locked_memory),
		V2_TEST(test_v2_what_cannot_be_loaded_again),
		V2_TEST(test_v2_attached_by_a_link),
		V2_TEST(test_v2_changed_meanwhile),
		V2_TEST(test_v2_under_fire),
		V1_TEST(test_v1_allows_and_takes_back),
		V1_TEST(test_v1_keeps_what_was_allowed),
		V1_TEST(test_v1_allow_by_default),
		V1_TEST(test_v1_under_fire),
		cmocka_unit_test(test_open_finds_it),
	};

	return cmocka_run_group_tests_name("cgroup_kernel", tests, make_world, end_world);
}
