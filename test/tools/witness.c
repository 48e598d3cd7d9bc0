/* SPDX-License-Identifier: Apache-2.0 */
/*
 * witness: runs a command and reports what our programs open and how much CPU time they use,
 * whatever they fork, join or execute.
 *
 *	witness --programs DIRECTORY --report FILE [--cpu SECONDS] [--time SECONDS] COMMAND [ARGUMENT...]
 *
 * A process is ours if its program is a file of DIRECTORY. If one opens something that is neither a
 * regular file nor a directory, except with O_PATH, the report gets a line
 *
 *	unsafe PROGRAM: CALL "PATH": character device 10:130
 *
 * and the call returns ENODEV without being made, so that no driver sees it. There are two
 * exceptions: what lies in the host's own /dev, and a device on a mount with nodev, which the
 * kernel must refuse with EACCES. The last line is "cpu SECONDS", of all our processes together.
 * Processes that exceed the CPU or time limit are killed, with the line "over cpu" or "over time".
 *
 * The exit status is the command's, or 128 plus the number of its signal. Other processes that the
 * command leaves are killed, but processes of ours are waited for.
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROGRAMS 64
#define MAX_TASKS    1024
#define MAX_LINES    200
#define ST_NODEV_BIT 4 /* statfs.f_flags */

struct task {
	pid_t tid;           /* 0: nobody */
	bool ours;           /* its program is one of ours */
	uint64_t base, last; /* ns of CPU when it executed its program, and when we looked last */
	bool refused, nodev; /* what to do with the current call */
	struct stat st;
	char call[PATH_MAX + 64];
};

static struct task tasks[MAX_TASKS];
static size_t n_tasks; /* places ever used */
static struct file_id {
	dev_t dev;
	ino_t ino;
} programs[MAX_PROGRAMS];
static size_t n_programs;
static dev_t host_dev;
static uint64_t spent_ns;
static int n_lines;
static FILE *report;

static void fail(const char *what)
{
	(void)fprintf(stderr, "witness: %s: %s\n", what, strerror(errno));
	exit(125);
}

/* ---- processes ---- */

static bool is_ours(pid_t tid)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", tid);
	if (stat(path, &st) < 0)
		return false;
	for (size_t i = 0; i < n_programs; i++)
		if (programs[i].dev == st.st_dev && programs[i].ino == st.st_ino)
			return true;
	return false;
}

/* The CPU time of one thread, or the last known one if it can no longer be read. */
static uint64_t cpu_of(struct task *task)
{
	char path[64];
	unsigned long long ns;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", task->tid, task->tid);
	file = fopen(path, "re");
	if (!file)
		return task->last;
	if (fscanf(file, "%llu", &ns) == 1)
		task->last = ns;
	(void)fclose(file);
	return task->last;
}

static struct task *find_task(pid_t tid)
{
	struct task *place = NULL;

	for (size_t i = 0; i < n_tasks; i++) {
		if (tasks[i].tid == tid)
			return &tasks[i];
		if (tasks[i].tid == 0 && !place)
			place = &tasks[i];
	}
	if (!place && n_tasks == MAX_TASKS) {
		errno = EAGAIN;
		fail("too many processes");
	}
	if (!place)
		place = &tasks[n_tasks++];
	*place = (struct task){ .tid = tid, .ours = is_ours(tid) };
	return place;
}

static void settle(struct task *task)
{
	uint64_t now = cpu_of(task);

	if (task->ours)
		spent_ns += now - task->base;
	task->base = now;
}

static const char *program_name(pid_t tid, char text[static PATH_MAX])
{
	char link[64];
	ssize_t length;
	const char *slash;

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", tid);
	length = readlink(link, text, PATH_MAX - 1);
	text[length > 0 ? length : 0] = '\0';
	slash = strrchr(text, '/');
	return slash ? slash + 1 : text;
}

/* ---- opens ---- */

static const char *type_of(const struct stat *st, char text[static 64])
{
	const char *kind = S_ISCHR(st->st_mode) ? "character device" : "block device";

	if (S_ISFIFO(st->st_mode))
		return "FIFO";
	if (S_ISSOCK(st->st_mode))
		return "socket";
	(void)snprintf(text, 64, "%s %u:%u", kind, major(st->st_rdev), minor(st->st_rdev));
	return text;
}

/*
 * Whether opening it is allowed: a file, a directory, a node of the host's /dev, the caller's pipe.
 */
static bool is_safe(int fd, const struct stat *st)
{
	struct statfs fs;

	if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode) || st->st_dev == host_dev)
		return true;
	return fd >= 0 && fstatfs(fd, &fs) == 0 && (fs.f_type == PIPEFS_MAGIC || fs.f_type == SOCKFS_MAGIC);
}

struct call {
	const char *name;
	int dirfd;
	uint64_t path, flags, resolve;
};

static void read_memory(pid_t tid, uint64_t address, void *to, size_t size)
{
	size_t done = 0;

	/* Page by page: the page after a text need not be mapped. */
	while (done < size) {
		size_t part = 4096 - (size_t)((address + done) % 4096);
		struct iovec local, remote;

		if (part > size - done)
			part = size - done;
		local = (struct iovec){ (char *)to + done, part };
		/* The address is of another process. */
		memcpy(&remote.iov_base, &(uint64_t){ address + done }, sizeof(remote.iov_base));
		remote.iov_len = part;
		if (process_vm_readv(tid, &local, 1, &remote, 1, 0) != (ssize_t)part)
			return;
		done += part;
	}
}

static bool decode(pid_t tid, const struct __ptrace_syscall_info *info, struct call *ret)
{
	const uint64_t *args = info->seccomp.args;
	struct open_how how = { 0 };

	*ret = (struct call){ .dirfd = (int)args[0], .path = args[1], .flags = args[2] };
	switch (info->seccomp.nr) {
#ifdef SYS_open
	case SYS_open:
		*ret = (struct call){ "open", AT_FDCWD, args[0], args[1], 0 };
		return true;
	case SYS_creat:
		*ret = (struct call){ "creat", AT_FDCWD, args[0], O_CREAT | O_WRONLY | O_TRUNC, 0 };
		return true;
#endif
	case SYS_openat:
		ret->name = "openat";
		return true;
	case SYS_openat2:
		read_memory(tid, args[2], &how, sizeof(how));
		ret->name = "openat2";
		ret->flags = how.flags;
		ret->resolve = how.resolve;
		return true;
	default:
		ret->name = "open_by_handle_at";
		return false;
	}
}

/*
 * O_PATH of what the call would open; -1 if that is unknown, so that only the result of the call
 * counts.
 */
static int look(pid_t tid, const struct call *call, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | (call->flags & O_NOFOLLOW), .resolve = call->resolve };
	char base[64], own[PATH_MAX];
	int base_fd, fd;

	if (!(call->resolve & RESOLVE_IN_ROOT)) {
		/* "self" means the caller; the last one is relative to a descriptor of procfs. */
		static const char *const selves[] = { "/proc/self/", "/proc/thread-self/", "self/" };

		for (size_t i = 0; i < 3; i++) {
			if (strncmp(path, selves[i], strlen(selves[i])) != 0)
				continue;
			if (snprintf(own, sizeof(own), "/proc/%d/%s", tid, path + strlen(selves[i])) >=
			    (int)sizeof(own))
				return -1;
			return (int)syscall(SYS_openat2, AT_FDCWD, own, &how, sizeof(how));
		}
	}
	if (path[0] == '/' && !(call->resolve & RESOLVE_IN_ROOT)) {
		(void)snprintf(base, sizeof(base), "/proc/%d/root", tid);
		how.resolve |= RESOLVE_IN_ROOT;
	} else if (call->dirfd == AT_FDCWD) {
		(void)snprintf(base, sizeof(base), "/proc/%d/cwd", tid);
	} else {
		(void)snprintf(base, sizeof(base), "/proc/%d/fd/%d", tid, call->dirfd);
	}
	base_fd = open(base, O_PATH | O_CLOEXEC);
	if (base_fd < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, base_fd, path, &how, sizeof(how));
	(void)close(base_fd);
	return fd;
}

static void tell_unsafe(const struct task *task, const struct stat *st, const char *why)
{
	char name[PATH_MAX], type[64];

	if (n_lines++ < MAX_LINES)
		(void)fprintf(report, "unsafe %s: %s: %s%s\n", program_name(task->tid, name), task->call,
			      type_of(st, type), why);
}

/* ---- registers ---- */

static void set_register(pid_t tid, bool number, long value)
{
#if defined(__x86_64__)
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) < 0)
		return;
	if (number)
		regs.orig_rax = (unsigned long long)value;
	else
		regs.rax = (unsigned long long)value;
	(void)ptrace(PTRACE_SETREGS, tid, NULL, &regs);
#elif defined(__aarch64__)
	int nr = (int)value;
	struct user_regs_struct regs;
	struct iovec call = { &nr, sizeof(nr) }, all = { &regs, sizeof(regs) };

	if (number) {
		(void)ptrace(PTRACE_SETREGSET, tid, (void *)0x404 /* NT_ARM_SYSTEM_CALL */, &call);
		return;
	}
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &all) < 0)
		return;
	regs.regs[0] = (unsigned long long)value;
	(void)ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &all);
#else
#error "registers of this architecture"
#endif
}

/* ---- calls ---- */

/* Before the call. Returns whether its result must be examined. */
static bool at_entry(struct task *task)
{
	struct __ptrace_syscall_info info;
	struct call call;
	char path[PATH_MAX] = "";
	struct statfs fs;
	struct stat st;
	int fd;
	bool known;

	task->refused = task->nodev = false;
	if (!task->ours || ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof(info), &info) < 0 ||
	    info.op != PTRACE_SYSCALL_INFO_SECCOMP)
		return false;
	known = decode(task->tid, &info, &call);
	if (known && (call.flags & O_PATH))
		return false;
	if (known)
		read_memory(task->tid, call.path, path, sizeof(path) - 1);
	(void)snprintf(task->call, sizeof(task->call), "%s \"%s\"", call.name, path);
	/*
	 * With O_EXCL the file is new, and with O_DIRECTORY it is no node: the kernel ensures both.
	 */
	if (!known || (call.flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) || (call.flags & O_DIRECTORY))
		return true;
	fd = look(task->tid, &call, path);
	if (fd < 0)
		return true;
	if (fstat(fd, &st) == 0 && !is_safe(fd, &st)) {
		bool device = S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode);

		if (device && fstatfs(fd, &fs) == 0 && (fs.f_flags & ST_NODEV_BIT)) {
			task->nodev = true;
			task->st = st;
		} else {
			tell_unsafe(task, &st, "");
			task->refused = true;
			set_register(task->tid, true, -1);
		}
	}
	(void)close(fd);
	return true;
}

static void at_exit_of_call(struct task *task)
{
	struct __ptrace_syscall_info info;
	char path[64];
	struct stat st;
	int fd;

	if (task->refused) {
		set_register(task->tid, false, -ENODEV);
		return;
	}
	if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof(info), &info) < 0 || info.op != PTRACE_SYSCALL_INFO_EXIT)
		return;
	if (info.exit.rval < 0) {
		if (task->nodev && info.exit.rval != -EACCES)
			tell_unsafe(task, &task->st, ", and nodev does not refuse it");
		return;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", task->tid, (int)info.exit.rval);
	if (stat(path, &st) < 0)
		return;
	fd = open(path, O_PATH | O_CLOEXEC);
	if (!is_safe(fd, &st))
		tell_unsafe(task, &st, ", it was opened");
	if (fd >= 0)
		(void)close(fd);
}

/* ---- the loop ---- */

static volatile sig_atomic_t ticked;

static void tick(int number)
{
	(void)number;
	ticked = 1;
}

static double now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double cpu_seconds(void)
{
	uint64_t ns = spent_ns;

	for (size_t i = 0; i < n_tasks; i++)
		if (tasks[i].tid != 0 && tasks[i].ours)
			ns += cpu_of(&tasks[i]) - tasks[i].base;
	return (double)ns / 1e9;
}

static void kill_all(void)
{
	for (size_t i = 0; i < n_tasks; i++)
		if (tasks[i].tid != 0)
			(void)kill(tasks[i].tid, SIGKILL);
}

static bool any_of_ours(void)
{
	for (size_t i = 0; i < n_tasks; i++)
		if (tasks[i].tid != 0 && tasks[i].ours)
			return true;
	return false;
}

static void on_stop(struct task *task, int status)
{
	int number = WSTOPSIG(status), event = status >> 16;
	enum __ptrace_request next = PTRACE_CONT;
	long deliver = 0;

	if (event == PTRACE_EVENT_SECCOMP) {
		if (at_entry(task))
			next = PTRACE_SYSCALL;
	} else if (event == PTRACE_EVENT_EXEC) {
		settle(task);
		task->ours = is_ours(task->tid);
	} else if (event == PTRACE_EVENT_EXIT) {
		settle(task);
		task->ours = false;
	} else if (event == PTRACE_EVENT_STOP) {
		if (number != SIGTRAP)
			next = PTRACE_LISTEN;
	} else if (event == 0 && number == (SIGTRAP | 0x80)) {
		at_exit_of_call(task);
	} else if (event == 0) {
		deliver = number;
	}
	(void)ptrace(next, task->tid, NULL, deliver);
}

/* Until the command has ended, and every process of ours. Returns the command's status as of wait(2). */
static int follow(pid_t command, double cpu_limit, double time_limit)
{
	double begin = now();
	int result = 0;
	bool ended = false, over = false;

	while (!ended || any_of_ours()) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL);

		if (tid < 0 && errno != EINTR)
			break;
		if (ticked && !over) {
			const char *why = cpu_seconds() > cpu_limit    ? "cpu"
					  : now() - begin > time_limit ? "time"
								       : NULL;

			ticked = 0;
			if (why) {
				(void)fprintf(report, "over %s\n", why);
				over = true;
				kill_all();
			}
		}
		if (tid < 0)
			continue;
		if (WIFSTOPPED(status)) {
			on_stop(find_task(tid), status);
			continue;
		}
		if (tid == command) {
			result = status;
			ended = true;
		}
		settle(find_task(tid));
		find_task(tid)->tid = 0;
	}
	return result;
}

/* ---- start ---- */

static void read_programs(const char *directory)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	struct stat st;

	if (!stream)
		fail(directory);
	while ((entry = readdir(stream)) != NULL) {
		if (fstatat(dirfd(stream), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode) &&
		    n_programs < MAX_PROGRAMS)
			programs[n_programs++] = (struct file_id){ st.st_dev, st.st_ino };
	}
	(void)closedir(stream);
}

static int install_filter(void)
{
	static const unsigned int calls[] = {
#ifdef SYS_open
		SYS_open,   SYS_creat,
#endif
		SYS_openat, SYS_openat2, SYS_open_by_handle_at,
	};
	enum { N = sizeof(calls) / sizeof(calls[0]) };
	struct sock_filter filter[2 * N + 2];
	unsigned short n = 0;
	struct sock_fprog program = { .filter = filter };

	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < N; i++) {
		filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = n;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static pid_t start(char **argv)
{
	static const long wanted = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
				   PTRACE_O_TRACEEXIT | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD |
				   PTRACE_O_EXITKILL;
	char byte = 0;
	int ready[2];
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0)
		fail("pipe");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		if (read(ready[0], &byte, 1) != 1 || install_filter() < 0)
			_exit(125);
		(void)execvp(argv[0], argv);
		(void)fprintf(stderr, "witness: %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	if (ptrace(PTRACE_SEIZE, pid, NULL, wanted) < 0)
		fail("ptrace");
	if (write(ready[1], &byte, 1) != 1)
		fail("pipe");
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

int main(int argc, char **argv)
{
	static const struct sigaction on_alarm = { .sa_handler = tick };
	static const struct itimerval often = { { 0, 100000 }, { 0, 100000 } };
	double cpu_limit = 10, time_limit = 60;
	struct stat st;
	int status, i = 1;

	for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
		if (strcmp(argv[i], "--programs") == 0)
			read_programs(argv[i + 1]);
		else if (strcmp(argv[i], "--report") == 0)
			report = fopen(argv[i + 1], "we");
		else if (strcmp(argv[i], "--cpu") == 0)
			cpu_limit = strtod(argv[i + 1], NULL);
		else if (strcmp(argv[i], "--time") == 0)
			time_limit = strtod(argv[i + 1], NULL);
		else
			break;
	}
	if (!report || i >= argc || n_programs == 0) {
		(void)fprintf(stderr,
			      "usage: witness --programs DIRECTORY --report FILE [--cpu SECONDS] [--time SECONDS] "
			      "COMMAND [ARGUMENT...]\n");
		return 64;
	}
	/* Without it no process could be stopped in time. */
	if (syscall(SYS_openat2, AT_FDCWD, "/", &(struct open_how){ .flags = O_PATH | O_CLOEXEC },
		    sizeof(struct open_how)) < 0)
		fail("openat2");
	if (stat("/dev", &st) == 0)
		host_dev = st.st_dev;
	status = start(argv + i);
	(void)sigaction(SIGALRM, &on_alarm, NULL);
	(void)setitimer(ITIMER_REAL, &often, NULL);
	status = follow(status, cpu_limit, time_limit);
	(void)fprintf(report, "cpu %.3f\n", (double)spent_ns / 1e9);
	if (fclose(report) != 0)
		fail("report");
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
