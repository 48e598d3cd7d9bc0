/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn: measures the time for bench/run. Times a command from posix_spawn to its end, many times,
 * each time next to a start of /bin/true, the unit. Both are pinned to one CPU and alternate, so
 * that a slow machine slows both.
 *
 *	spawn [--runs N] [--root DIRECTORY] [--mounts FILE] [--container] [--bundle FILE] [--input TEXT] -- COMMAND [ARGUMENT...]
 *
 * With --root, each command runs in its own mount namespace, with a fresh overlay of DIRECTORY at
 * /mnt/root; an argument "{root}" becomes its path. With --container, a process runs in another
 * mount namespace with that root, in its own cgroup, as a container does when a runtime calls its
 * prestart hook; "{pid}" becomes its id. All of that is made before the clock starts and removed
 * after it stops. With --mounts, each line "SOURCE TAB DESTINATION" of FILE is a bind mount in the
 * root, made before the command as a low-level runtime makes it before hooks. With --bundle,
 * /mnt/bundle has a fresh copy of FILE as config.json. With --input, the command reads TEXT, in
 * which "{pid}" is replaced as well.
 *
 * Prints one line of JSON: medians in microseconds, their ratio, the 90th percentile, the largest peak memory in KiB.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_RUNS 10000
#define WARM_UP  3

extern char **environ;

struct sample {
	double unit_us, command_us;
	long peak_kib;
	int status;
};

struct options {
	unsigned int runs;
	const char *root;
	const char *mounts;
	int container;
	const char *bundle;
	char *input[2]; /* a list like argv, for fill_in() */
	char **command;
};

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "spawn: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/*
 * Runs `argv` and returns its time and peak memory. Output goes to /dev/null, errors stay visible.
 */
static int timed(char *const argv[], const char *input, double *ret_us, long *ret_kib)
{
	posix_spawn_file_actions_t actions;
	struct rusage usage;
	double start;
	int status, rc;
	pid_t pid;

	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	if (input)
		(void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input, O_RDONLY, 0);
	start = now_us();
	rc = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
	if (rc != 0) {
		errno = rc;
		die(argv[0]);
	}
	while (wait4(pid, &status, 0, &usage) < 0) {
		if (errno != EINTR)
			die("wait4");
	}
	*ret_us = now_us() - start;
	*ret_kib = usage.ru_maxrss;
	(void)posix_spawn_file_actions_destroy(&actions);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void make_directory(const char *path)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		die(path);
}

/*
 * Mounts a fresh overlay of `lower` below a private tmpfs (on a directory that every host has);
 * returns its path.
 */
static void make_root(const char *lower, char *ret_path, size_t size)
{
	static const char base[] = "/mnt";
	char data[PATH_MAX * 2];

	if (mount("bench", base, "tmpfs", 0, "mode=755") < 0)
		die("tmpfs");
	(void)snprintf(data, sizeof(data), "%s/upper", base);
	make_directory(data);
	(void)snprintf(data, sizeof(data), "%s/work", base);
	make_directory(data);
	(void)snprintf(ret_path, size, "%s/root", base);
	make_directory(ret_path);
	(void)snprintf(data, sizeof(data), "lowerdir=%s,upperdir=%s/upper,workdir=%s/work", lower, base, base);
	if (mount("overlay", ret_path, "overlay", 0, data) < 0)
		die("overlay");
	(void)snprintf(data, sizeof(data), "%s/proc", ret_path);
	if (mount("proc", data, "proc", 0, NULL) < 0)
		die("proc");
	(void)snprintf(data, sizeof(data), "%s/dev", ret_path);
	if (mount("dev", data, "tmpfs", MS_NOSUID, "mode=755") < 0)
		die("dev");
}

/* The root is our own and its image trusted, so paths need no care. */
static void make_parents(const char *root, char *path)
{
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
		*at = '\0';
		make_directory(path);
		*at = '/';
	}
}

static void make_mount(const char *root, const char *source, const char *destination)
{
	char path[PATH_MAX * 2];
	struct stat st;
	int fd;

	(void)snprintf(path, sizeof(path), "%s%s", root, destination);
	if (stat(source, &st) < 0)
		die(source);
	make_parents(root, path);
	if (S_ISDIR(st.st_mode)) {
		make_directory(path);
	} else {
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0)
			die(path);
		(void)close(fd);
	}
	if (mount(source, path, NULL, MS_BIND, NULL) < 0)
		die(path);
}

static void make_mounts(const char *root, const char *list)
{
	FILE *stream = fopen(list, "re");
	char line[PATH_MAX * 2];

	if (!stream)
		die(list);
	while (fgets(line, sizeof(line), stream)) {
		char *tab = strchr(line, '\t');

		if (!tab)
			continue;
		*tab = '\0';
		tab[1 + strcspn(tab + 1, "\n")] = '\0';
		make_mount(root, line, tab + 1);
	}
	(void)fclose(stream);
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	(void)close(fd);
}

/* Each sample has its own bundle, since a runtime rewrites config.json. */
static void copy_bundle(const char *from)
{
	char bytes[65536];
	ssize_t n;
	int in = open(from, O_RDONLY | O_CLOEXEC), out;

	make_directory("/mnt/bundle");
	out = open("/mnt/bundle/config.json", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (in < 0 || out < 0)
		die(from);
	while ((n = read(in, bytes, sizeof(bytes))) > 0) {
		if (write(out, bytes, (size_t)n) != n)
			die("config.json");
	}
	(void)close(in);
	(void)close(out);
}

/* The cgroup that a runtime would have made: under v1's devices hierarchy, or under the one of v2. */
static void cgroup_path(char *path, size_t size, pid_t pid)
{
	static const char *const parents[] = { "/sys/fs/cgroup/devices", "/sys/fs/cgroup" };

	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
		(void)snprintf(path, size, "%s/cgroup.procs", parents[i]);
		if (access(path, W_OK) == 0) {
			(void)snprintf(path, size, "%s/graft-bench-%d", parents[i], pid);
			return;
		}
	}
	errno = ENOENT;
	die("no devices cgroup");
}

/* Forks the container: its own mount namespace and cgroup, then it sleeps until it is killed. */
static pid_t start_container(char *cgroup, size_t size)
{
	int ready[2];
	char byte, path[PATH_MAX + 32], number[16];
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0)
		die("pipe2");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNS) < 0)
			die("unshare");
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	(void)close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		die("the container did not start");
	(void)close(ready[0]);
	cgroup_path(cgroup, size, pid);
	make_directory(cgroup);
	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	(void)snprintf(number, sizeof(number), "%d", pid);
	write_text(path, number);
	return pid;
}

static void stop_container(pid_t pid, const char *cgroup)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	/* The kernel takes a moment to empty the cgroup. */
	for (int i = 0; i < 1000 && rmdir(cgroup) < 0 && errno == EBUSY; i++)
		(void)usleep(1000);
}

static void fill_in(char **argv, const char *placeholder, char *value)
{
	for (; *argv; argv++) {
		char *at = strstr(*argv, placeholder);
		char *text;

		if (!at)
			continue;
		if (asprintf(&text, "%.*s%s%s", (int)(at - *argv), *argv, value, at + strlen(placeholder)) < 0)
			die("asprintf");
		*argv = text;
	}
}

/* One run, in its own child, so that it leaves nothing behind. */
static void run_once(struct options *options, struct sample *ret_sample)
{
	static char program[] = "/bin/true";
	static char *const unit[] = { program, NULL };
	int result[2];
	pid_t pid;

	if (pipe2(result, O_CLOEXEC) < 0)
		die("pipe2");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		struct sample sample = { .status = 0 };
		char root[PATH_MAX] = "", cgroup[PATH_MAX] = "", number[16];
		pid_t container = 0;
		long ignored;

		if (options->root) {
			if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
				die("mount namespace");
			make_root(options->root, root, sizeof(root));
			fill_in(options->command, "{root}", root);
			if (options->mounts)
				make_mounts(root, options->mounts);
			if (options->bundle)
				copy_bundle(options->bundle);
		}
		if (options->container) {
			container = start_container(cgroup, sizeof(cgroup));
			(void)snprintf(number, sizeof(number), "%d", container);
			fill_in(options->command, "{pid}", number);
			fill_in(options->input, "{pid}", number);
		}
		if (options->input[0])
			write_text("/mnt/input", options->input[0]);
		(void)timed(unit, NULL, &sample.unit_us, &ignored);
		sample.status = timed(options->command, options->input[0] ? "/mnt/input" : NULL, &sample.command_us,
				      &sample.peak_kib);
		if (container > 0)
			stop_container(container, cgroup);
		if (write(result[1], &sample, sizeof(sample)) != (ssize_t)sizeof(sample))
			_exit(1);
		_exit(0);
	}
	(void)close(result[1]);
	if (read(result[0], ret_sample, sizeof(*ret_sample)) != (ssize_t)sizeof(*ret_sample)) {
		(void)fprintf(stderr, "spawn: a run failed\n");
		exit(1);
	}
	(void)close(result[0]);
	(void)waitpid(pid, NULL, 0);
	if (ret_sample->status != 0) {
		(void)fprintf(stderr, "spawn: %s ended with status %d\n", options->command[0], ret_sample->status);
		exit(1);
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The value below which `part` of the sorted values lie. */
static double quantile(double *values, unsigned int n, double part)
{
	qsort(values, n, sizeof(*values), compare);
	return values[(unsigned int)((double)(n - 1) * part + 0.5)];
}

static void parse(int argc, char **argv, struct options *options)
{
	int i;

	*options = (struct options){ .runs = 100 };
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc)
			options->runs = (unsigned int)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--root") == 0 && i + 1 < argc)
			options->root = argv[++i];
		else if (strcmp(argv[i], "--mounts") == 0 && i + 1 < argc)
			options->mounts = argv[++i];
		else if (strcmp(argv[i], "--bundle") == 0 && i + 1 < argc)
			options->bundle = argv[++i];
		else if (strcmp(argv[i], "--input") == 0 && i + 1 < argc)
			options->input[0] = argv[++i];
		else if (strcmp(argv[i], "--container") == 0)
			options->container = 1;
		else
			break;
	}
	if (i + 1 >= argc || strcmp(argv[i], "--") != 0 || options->runs == 0 || options->runs > MAX_RUNS ||
	    ((options->bundle || options->input[0] || options->mounts) && !options->root)) {
		(void)fprintf(
		    stderr, "usage: spawn [--runs N] [--root DIRECTORY] [--mounts FILE] [--container] [--bundle FILE] "
			    "[--input TEXT] -- COMMAND [ARGUMENT...]\n");
		exit(64);
	}
	options->command = argv + i + 1;
}

int main(int argc, char **argv)
{
	struct options options;
	double *unit, *command;
	long peak_kib = 0;
	cpu_set_t cpus;
	double unit_us, command_us;

	parse(argc, argv, &options);
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) {
		size_t last = CPU_SETSIZE - 1;

		while (last > 0 && !CPU_ISSET(last, &cpus))
			last--;
		CPU_ZERO(&cpus);
		CPU_SET(last, &cpus);
		(void)sched_setaffinity(0, sizeof(cpus), &cpus);
	}
	/*
	 * If allowed, nothing else runs on that CPU meanwhile, so that other programs' time is not
	 * measured.
	 */
	(void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
	unit = calloc(options.runs, sizeof(*unit));
	command = calloc(options.runs, sizeof(*command));
	if (!unit || !command)
		die("memory");
	for (unsigned int i = 0; i < options.runs + WARM_UP; i++) {
		struct sample sample;

		run_once(&options, &sample);
		if (i < WARM_UP)
			continue;
		unit[i - WARM_UP] = sample.unit_us;
		command[i - WARM_UP] = sample.command_us;
		if (sample.peak_kib > peak_kib)
			peak_kib = sample.peak_kib;
	}
	unit_us = quantile(unit, options.runs, 0.5);
	command_us = quantile(command, options.runs, 0.5);
	(void)printf("{\"runs\": %u, \"unit_us\": %.1f, \"command_us\": %.1f, \"ratio\": %.3f, \"p90_us\": %.1f, "
		     "\"peak_kib\": %ld}\n",
		     options.runs, unit_us, command_us, command_us / unit_us, quantile(command, options.runs, 0.9),
		     peak_kib);
	free(unit);
	free(command);
	return 0;
}
