/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvc_walk: the whole life of a container through nvc.h, and whether the caller is unchanged after
 * every call.
 *
 *	nvc_walk [-s] [-t N] [-r ROOT] [-i OPTIONS] [-d OPTIONS] [-D PATH] [-A PATH] [-m] [-w] [-c] [-x CHANNEL] OPTIONS PID ROOTFS [GPU...]
 *
 * -s: ignore SIGCHLD; -t: N threads, each with its own context and container: ROOTFS0, ROOTFS1,
 * ...; -r: driver root; -i, -d: options of nvc_init, nvc_driver_info_new; -D: remove the path from
 * the driver's lists, -A: add one to its libraries; -m: give the GPUs' MIG devices, -c: give the right to configure them; -w:
 * also to watch them, before or after -m; -x: give an IMEX channel. "nvc_walk driver" prints what
 * nvc_driver_info has.
 */
#include <nvc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_THREADS 16

struct walk {
	const char *root, *init_options, *driver_options, *taken_out, *options;
	char *added;
	int mig, config, monitor, monitor_first, channel;
	pid_t pid;
	char rootfs[4096];
	char **gpus;
	int n_gpus;
	int ok;
};

/* What must be unchanged after a call. */
struct state {
	char cwd[4096], mount_ns[64], user_ns[64], root[4096], status[2048];
	sigset_t mask;
	struct sigaction child;
	int dumpable, no_new_privs, n_fds, has_children;
};

static void read_link(const char *name, char *to, size_t size)
{
	ssize_t n = readlink(name, to, size - 1);

	to[n < 0 ? 0 : n] = '\0';
}

/* IDs, groups, capabilities and threads of this thread: the lines that a call could change. */
static void read_status(char *to, size_t size)
{
	FILE *file = fopen("/proc/thread-self/status", "re");
	char line[512];

	to[0] = '\0';
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "Uid:", 4) == 0 || strncmp(line, "Gid:", 4) == 0 || strncmp(line, "Cap", 3) == 0 ||
		    strncmp(line, "Groups:", 7) == 0 || strncmp(line, "Umask:", 6) == 0)
			strncat(to, line, size - strlen(to) - 1);
	}
	if (file)
		fclose(file);
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++) {
		struct stat st;

		n += fstat(fd, &st) == 0;
	}
	return n;
}

static int in_threads;

static void read_state(struct state *state)
{
	memset(state, 0, sizeof(*state));
	if (!getcwd(state->cwd, sizeof(state->cwd)))
		abort();
	read_link("/proc/thread-self/ns/mnt", state->mount_ns, sizeof(state->mount_ns));
	read_link("/proc/thread-self/ns/user", state->user_ns, sizeof(state->user_ns));
	read_link("/proc/thread-self/root", state->root, sizeof(state->root));
	read_status(state->status, sizeof(state->status));
	pthread_sigmask(SIG_SETMASK, NULL, &state->mask);
	sigaction(SIGCHLD, NULL, &state->child);
	state->dumpable = prctl(PR_GET_DUMPABLE);
	state->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	/* Those of other threads vary. */
	state->n_fds = in_threads ? 0 : count_fds();
	state->has_children = !in_threads && waitpid(-1, NULL, WNOHANG) >= 0;
}

/*
 * keeps_fds: do not compare descriptors: the call keeps some open, or those of other threads vary.
 */
static int same(const struct state *before, const char *call, int keeps_fds)
{
	struct state after;

	read_state(&after);
	if (strcmp(before->cwd, after.cwd) == 0 && strcmp(before->mount_ns, after.mount_ns) == 0 &&
	    strcmp(before->user_ns, after.user_ns) == 0 && strcmp(before->root, after.root) == 0 &&
	    strcmp(before->status, after.status) == 0 && memcmp(&before->mask, &after.mask, 8) == 0 &&
	    before->child.sa_handler == after.child.sa_handler && (in_threads || before->dumpable == after.dumpable) &&
	    before->no_new_privs == after.no_new_privs && (keeps_fds || before->n_fds == after.n_fds) &&
	    !after.has_children)
		return 1;
	fprintf(stderr, "nvc_walk: %s changed the caller:\n%s %s %s\n%s%d %d %d\n%s %s %s\n%s%d %d %d %d\n", call,
		before->cwd, before->mount_ns, before->root, before->status, before->dumpable, before->no_new_privs,
		before->n_fds, after.cwd, after.mount_ns, after.root, after.status, after.dumpable, after.no_new_privs,
		after.n_fds, after.has_children);
	return 0;
}

/*
 * Makes a call and checks that it succeeds and that the caller is unchanged. keeps_fds: the call
 * may keep descriptors open.
 */
#define CALL(expression, keeps_fds)                                                                  \
	do {                                                                                         \
		struct state state;                                                                  \
                                                                                                     \
		read_state(&state);                                                                  \
		if (!(expression)) {                                                                 \
			const char *why = nvc_error(ctx);                                            \
                                                                                                     \
			fprintf(stderr, "nvc_walk: %s: %s\n", #expression, why ? why : "no reason"); \
			goto out;                                                                    \
		}                                                                                    \
		if (!same(&state, #expression, (keeps_fds) || in_threads))                           \
			goto out;                                                                    \
	} while (0)

static void take_out(struct nvc_driver_info *driver, const char *path)
{
	size_t n = 0;

	for (size_t i = 0; path && i < driver->nlibs; i++)
		if (strcmp(driver->libs[i], path) != 0)
			driver->libs[n++] = driver->libs[i];
	if (path)
		driver->nlibs = n;
}

/* Not in threads. */
static void put_in(struct nvc_driver_info *driver, char *path)
{
	static char *libs[512];

	if (!path || driver->nlibs >= sizeof(libs) / sizeof(libs[0]))
		return;
	memcpy(libs, driver->libs, driver->nlibs * sizeof(libs[0]));
	libs[driver->nlibs++] = path;
	driver->libs = libs;
}

/* All three rights over MIG devices at once. */
static int watch_all(struct nvc_context *ctx, struct nvc_container *container, const struct nvc_device *gpu)
{
	int ok = 0;

	CALL(nvc_mig_config_global_caps_mount(ctx, container) == 0, 0);
	CALL(nvc_mig_monitor_global_caps_mount(ctx, container) == 0, 0);
	CALL(nvc_device_mig_caps_mount(ctx, container, gpu) == 0, 0);
	ok = 1;
out:
	return ok;
}

static void *run(void *arg)
{
	struct walk *walk = arg;
	struct nvc_context *ctx = nvc_context_new();
	struct nvc_config *config = nvc_config_new();
	struct nvc_container_config *where = nvc_container_config_new(walk->pid, walk->rootfs);
	struct nvc_container *container = NULL;
	struct nvc_driver_info *driver = NULL;
	struct nvc_device_info *devices = NULL;
	const struct nvc_imex_channel channel = { walk->channel };

	config->root = walk->root ? strdup(walk->root) : NULL;
	CALL(nvc_init(ctx, config, walk->init_options) == 0, 1);
	CALL((container = nvc_container_new(ctx, where, walk->options)), 1);
	CALL((driver = nvc_driver_info_new(ctx, walk->driver_options)), 0);
	CALL((devices = nvc_device_info_new(ctx, NULL)), 0);
	take_out(driver, walk->taken_out);
	put_in(driver, walk->added);
	CALL(nvc_driver_mount(ctx, container, driver) == 0, 0);
	for (int i = 0; i < walk->n_gpus; i++) {
		size_t index = strtoul(walk->gpus[i], NULL, 10);
		const struct nvc_device *gpu = index < devices->ngpus ? &devices->gpus[index]
								      : &(struct nvc_device){ 0 };

		CALL(nvc_device_mount(ctx, container, gpu) == 0, 0);
		if (walk->monitor && walk->monitor_first && !watch_all(ctx, container, gpu))
			goto out;
		for (size_t m = 0; walk->mig && m < gpu->mig_devices.ndevices; m++)
			CALL(nvc_mig_device_access_caps_mount(ctx, container, &gpu->mig_devices.devices[m]) == 0, 0);
		if (walk->monitor && !walk->monitor_first && !watch_all(ctx, container, gpu))
			goto out;
		if (walk->config)
			CALL(nvc_device_mig_caps_mount(ctx, container, gpu) == 0, 0);
	}
	if (walk->config)
		CALL(nvc_mig_config_global_caps_mount(ctx, container) == 0, 0);
	if (walk->channel >= 0)
		CALL(nvc_imex_channel_mount(ctx, container, &channel) == 0, 0);
	CALL(nvc_ldcache_update(ctx, container) == 0, 0);
	CALL(nvc_shutdown(ctx) == 0, 1);
	walk->ok = 1;
out:
	nvc_device_info_free(devices);
	nvc_driver_info_free(driver);
	nvc_container_free(container);
	nvc_container_config_free(where);
	free(config->root);
	nvc_config_free(config);
	nvc_context_free(ctx);
	return NULL;
}

static void print_paths(char **paths, size_t n)
{
	for (size_t i = 0; i < n; i++)
		puts(paths[i]);
}

/* Prints what nvc_driver_info has, one path a line. */
static int print_driver(void)
{
	struct nvc_context *ctx = nvc_context_new();
	struct nvc_driver_info *driver = NULL;

	if (nvc_init(ctx, NULL, NULL) == 0)
		driver = nvc_driver_info_new(ctx, NULL);
	for (size_t i = 0; driver && i < driver->ndevs; i++)
		puts(driver->devs[i].path);
	if (driver) {
		print_paths(driver->bins, driver->nbins);
		print_paths(driver->libs, driver->nlibs);
		print_paths(driver->libs32, driver->nlibs32);
		print_paths(driver->ipcs, driver->nipcs);
		print_paths(driver->firmwares, driver->nfirmwares);
	}
	nvc_driver_info_free(driver);
	nvc_context_free(ctx);
	return 0;
}

static int run_threads(const struct walk *model, const char *rootfs, int n)
{
	static struct walk walks[MAX_THREADS];
	pthread_t threads[MAX_THREADS];
	int ok = 1;

	in_threads = 1;
	for (int i = 0; i < n; i++) {
		walks[i] = *model;
		snprintf(walks[i].rootfs, sizeof(walks[i].rootfs), "%s%d", rootfs, i);
		if (pthread_create(&threads[i], NULL, run, &walks[i]) != 0)
			abort();
	}
	for (int i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		ok &= walks[i].ok;
	}
	return ok;
}

int main(int argc, char **argv)
{
	struct walk walk = { .channel = -1 };
	int option, n_threads = 0;
	int n_fds = count_fds(), dumpable = prctl(PR_GET_DUMPABLE);
	struct rlimit limits[2], limits_after[2];

	if (argc == 2 && strcmp(argv[1], "driver") == 0)
		return print_driver();
	getrlimit(RLIMIT_NOFILE, &limits[0]);
	getrlimit(RLIMIT_MEMLOCK, &limits[1]);

	while ((option = getopt(argc, argv, "+st:r:i:d:D:A:mwcx:")) != -1) {
		switch (option) {
		case 's':
			signal(SIGCHLD, SIG_IGN);
			break;
		case 't':
			n_threads = (int)strtol(optarg, NULL, 10);
			break;
		case 'r':
			walk.root = optarg;
			break;
		case 'i':
			walk.init_options = optarg;
			break;
		case 'd':
			walk.driver_options = optarg;
			break;
		case 'D':
			walk.taken_out = optarg;
			break;
		case 'A':
			walk.added = optarg;
			break;
		case 'm':
			walk.mig = 1;
			break;
		case 'w':
			walk.monitor = 1;
			walk.monitor_first = !walk.mig;
			break;
		case 'c':
			walk.config = 1;
			break;
		case 'x':
			walk.channel = (int)strtol(optarg, NULL, 10);
			break;
		default:
			return 64;
		}
	}
	if (argc - optind < 3 || n_threads > MAX_THREADS)
		return 64;
	walk.options = argv[optind];
	walk.pid = (pid_t)strtol(argv[optind + 1], NULL, 10);
	walk.gpus = argv + optind + 3;
	walk.n_gpus = argc - optind - 3;
	if (n_threads > 0) {
		walk.ok = run_threads(&walk, argv[optind + 2], n_threads);
	} else {
		snprintf(walk.rootfs, sizeof(walk.rootfs), "%s", argv[optind + 2]);
		run(&walk);
	}
	getrlimit(RLIMIT_NOFILE, &limits_after[0]);
	getrlimit(RLIMIT_MEMLOCK, &limits_after[1]);
	if (memcmp(limits, limits_after, sizeof(limits)) != 0) {
		fprintf(stderr, "nvc_walk: the process has other limits\n");
		return 1;
	}
	if (prctl(PR_GET_DUMPABLE) != dumpable) {
		fprintf(stderr, "nvc_walk: the process cannot be traced any more\n");
		return 1;
	}
	if (count_fds() != n_fds) {
		fprintf(stderr, "nvc_walk: %d descriptors are left\n", count_fds() - n_fds);
		return 1;
	}
	return !walk.ok;
}
