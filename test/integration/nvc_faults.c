/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvc_faults: the whole life of a container through nvc.h, with each allocation failing once. The
 * call in which it fails reports that and changes nothing: when repeated it succeeds, and in the
 * end the container is the same as without a failure.
 *
 *	nvc_faults IMAGE WORK [rights]
 *
 * rights: give the right to configure MIG devices instead of existing MIG devices. IMAGE is the
 * lower layer of the container's root, which is made anew each time below the directory WORK. Links
 * the archive of the library: only there the allocations can be wrapped.
 */
#include <fcntl.h>
#include <ftw.h>
#include <nvc.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/allocation.h"

#define CAPABILITIES "/proc/driver/nvidia/capabilities/mig/monitor"

static struct life {
	char rootfs[64];
	struct nvc_context *ctx;
	struct nvc_config *config;
	struct nvc_container_config *where;
	struct nvc_container *container;
	struct nvc_driver_info *driver;
	struct nvc_device_info *devices;
	size_t gpu, part; /* given by the next call */
} life;

static char top[] = "/tmp/nvc-faults-XXXXXX"; /* a tmpfs for one life, with the layers of the root */
static bool wants_parts, wants_rights, wants_channels;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("not ok 1 - ");
	vprintf(format, args);
	va_end(args);
	printf("\n1..1\n");
	exit(1);
}

/* ---- the steps, which return true on success ---- */

static bool make_context(void)
{
	return (life.ctx = nvc_context_new()) != NULL;
}

static bool make_config(void)
{
	return (life.config = nvc_config_new()) != NULL;
}

static bool init(void)
{
	static struct nvc_imex_channel channels[] = { { 0 }, { 1 } };

	life.config->imex = (struct nvc_imex_info){ channels, 2 };
	return nvc_init(life.ctx, life.config, NULL) == 0;
}

static bool make_where(void)
{
	return (life.where = nvc_container_config_new(1, life.rootfs)) != NULL;
}

static bool open_container(void)
{
	life.container = nvc_container_new(life.ctx, life.where,
					   "standalone no-cgroups compute utility cuda-compat-mode=ldconfig");
	return life.container != NULL;
}

static bool find_driver(void)
{
	return (life.driver = nvc_driver_info_new(life.ctx, "no-modeset")) != NULL;
}

static bool find_devices(void)
{
	return (life.devices = nvc_device_info_new(life.ctx, wants_parts ? NULL : "no-nvml")) != NULL;
}

static bool find_node(void)
{
	struct nvc_device_node node = { NULL, 0 };

	if (nvc_nvcaps_style() != NVC_NVCAPS_STYLE_DEV || access(CAPABILITIES, F_OK) < 0)
		return true;
	if (nvc_nvcaps_device_from_proc_path(life.ctx, CAPABILITIES, &node) < 0)
		return false;
	free(node.path);
	return true;
}

static bool give_driver(void)
{
	return nvc_driver_mount(life.ctx, life.container, life.driver) == 0;
}

static bool give_gpus(void)
{
	for (; life.gpu < life.devices->ngpus; life.gpu++)
		if (nvc_device_mount(life.ctx, life.container, &life.devices->gpus[life.gpu]) < 0)
			return false;
	return true;
}

/* Gives the MIG devices of the last GPU. */
static bool give_parts(void)
{
	const struct nvc_mig_device_info *parts = &life.devices->gpus[life.devices->ngpus - 1].mig_devices;

	for (; wants_parts && life.part < parts->ndevices; life.part++)
		if (nvc_mig_device_access_caps_mount(life.ctx, life.container, &parts->devices[life.part]) < 0)
			return false;
	return true;
}

static bool give_config(void)
{
	return !wants_rights || nvc_mig_config_global_caps_mount(life.ctx, life.container) == 0;
}

static bool give_monitor(void)
{
	return !wants_rights || nvc_mig_monitor_global_caps_mount(life.ctx, life.container) == 0;
}

static bool give_capabilities(void)
{
	return !wants_rights || nvc_device_mig_caps_mount(life.ctx, life.container, &life.devices->gpus[0]) == 0;
}

static bool give_channel(void)
{
	const struct nvc_imex_channel channel = { 0 };

	return !wants_channels || nvc_imex_channel_mount(life.ctx, life.container, &channel) == 0;
}

static bool update_cache(void)
{
	return nvc_ldcache_update(life.ctx, life.container) == 0;
}

static bool shut_down(void)
{
	return nvc_shutdown(life.ctx) == 0;
}

static const struct {
	const char *name;
	bool (*run)(void);
	bool has_no_error; /* there is no context, or the call takes none */
} steps[] = {
	{ "nvc_context_new", make_context, true },
	{ "nvc_config_new", make_config, true },
	{ "nvc_init", init },
	{ "nvc_container_config_new", make_where, true },
	{ "nvc_container_new", open_container },
	{ "nvc_driver_info_new", find_driver },
	{ "nvc_device_info_new", find_devices },
	{ "nvc_nvcaps_device_from_proc_path", find_node },
	{ "nvc_driver_mount", give_driver },
	{ "nvc_device_mount", give_gpus },
	{ "nvc_mig_device_access_caps_mount", give_parts },
	{ "nvc_mig_config_global_caps_mount", give_config },
	{ "nvc_mig_monitor_global_caps_mount", give_monitor },
	{ "nvc_device_mig_caps_mount", give_capabilities },
	{ "nvc_imex_channel_mount", give_channel },
	{ "nvc_ldcache_update", update_cache },
	{ "nvc_shutdown", shut_down },
};

/* ---- the container, and its final state ---- */

#define MAX_LINES 512

static struct lines {
	char *line[MAX_LINES]; /* one for each object, in order */
	size_t n;
} found, expected;

__attribute__((format(printf, 1, 2))) static void add_line(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (found.n == MAX_LINES || vasprintf(&found.line[found.n++], format, args) < 0)
		die("there is no room for what is to be compared");
	va_end(args);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void forget(struct lines *lines)
{
	while (lines->n > 0)
		free(lines->line[--lines->n]);
}

/*
 * Whether it is a loader's cache that contains the library. No more is compared: without the memory
 * to find out whether the cache can be extended it is rebuilt, with other bytes of the same
 * meaning.
 */
static bool is_good_cache(const char *path)
{
	static const char name[] = "/etc/ld.so.cache", library[] = "libcuda.so.1";
	char bytes[65536];
	FILE *file = NULL;
	size_t n = 0;

	if (strlen(path) > sizeof(name) && strcmp(path + strlen(path) + 1 - sizeof(name), name) == 0)
		file = fopen(path, "re");
	if (file) {
		n = fread(bytes, 1, sizeof(bytes), file);
		fclose(file);
	}
	return memmem(bytes, n, library, sizeof(library)) != NULL;
}

static int add_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
	char link[256] = "";

	(void)at;
	if (is_good_cache(path)) {
		add_line("%s, the loader's cache", path);
		return 0;
	}
	if (type == FTW_SL && readlink(path, link, sizeof(link) - 1) < 0)
		die("%s: cannot be read", path);
	add_line("%s %o %u:%u %lld %s", path, st->st_mode, st->st_uid, st->st_gid,
		 type == FTW_D ? 0 : (long long)st->st_size, link);
	return 0;
}

/*
 * Records the mounts below the root, without numbers, and the upper layer, which hides parts of the
 * image.
 */
static void look(const char *upper)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[4096], root[1024], at[1024], options[256];

	if (!file)
		die("the mounts cannot be read");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%*s %*s %*s %1023s %1023s %255s", root, at, options) == 3 &&
		    strncmp(at, life.rootfs, strlen(life.rootfs)) == 0)
			add_line("%s %s %s", root, at, options);
	fclose(file);
	if (nftw(upper, add_file, 16, FTW_PHYS) < 0)
		die("%s: cannot be walked through", upper);
	qsort(found.line, found.n, sizeof(found.line[0]), compare);
}

/* Makes the root from an almost empty image. */
static void make_root(void)
{
	static const char *const directories[] = { "root",      "upper",         "scratch",        "image",
						   "image/etc", "image/dev",     "image/tmp",      "image/run",
						   "image/usr", "image/usr/bin", "image/usr/lib64" };
	char text_of[512];
	FILE *file;

	if (mount("tmpfs", top, "tmpfs", 0, "mode=755") < 0)
		die("%s: cannot be mounted on", top);
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		snprintf(text_of, sizeof(text_of), "%s/%s", top, directories[i]);
		if (mkdir(text_of, 0755) < 0)
			die("%s: cannot be made", text_of);
	}
	snprintf(text_of, sizeof(text_of), "%s/image/etc/ld.so.conf", top);
	file = fopen(text_of, "we");
	if (!file || fputs("/usr/lib64\n", file) < 0 || fclose(file) != 0)
		die("%s: cannot be written", text_of);
	snprintf(life.rootfs, sizeof(life.rootfs), "%s/root", top);
	snprintf(text_of, sizeof(text_of), "lowerdir=%s/image,upperdir=%s/upper,workdir=%s/scratch", top, top, top);
	if (mount("overlay", life.rootfs, "overlay", 0, text_of) < 0)
		die("%s: no overlay", life.rootfs);
}

static void end_life(void)
{
	nvc_device_info_free(life.devices);
	nvc_driver_info_free(life.driver);
	nvc_container_free(life.container);
	nvc_container_config_free(life.where);
	nvc_config_free(life.config);
	nvc_context_free(life.ctx);
	if (umount2(top, MNT_DETACH) < 0)
		die("%s: cannot be unmounted", top);
	memset(&life, 0, sizeof(life));
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* ---- one life ---- */

/*
 * Whether the message is right for a failed allocation. NVML's process can report no more than that
 * it ended.
 */
static bool says_so(const char *why)
{
	if (why && strstr(why, "cannot allocate memory"))
		return true;
	return why &&
	       (strstr(why, "memory allocation failed") || strstr(why, "nvml error: the process that asked ended"));
}

static void take_step(size_t i, int n)
{
	const char *why;

	if (steps[i].run())
		return;
	why = nvc_error(life.ctx);
	if (n == 0 || *allocation_countdown > 0)
		die("%s: %s", steps[i].name, why ? why : "no reason");
	if (!steps[i].has_no_error && !says_so(why))
		die("allocation %d, %s: it says %s", n, steps[i].name, why ? why : "nothing");
	if (!steps[i].run())
		die("allocation %d, %s: it fails again: %s", n, steps[i].name, nvc_error(life.ctx));
}

/* Returns whether the n-th allocation was reached; 0: none fails. */
static bool live(int n)
{
	char upper[64];
	bool failed;

	make_root();
	allocation_fail(n);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		take_step(i, n);
	failed = allocation_failed();
	snprintf(upper, sizeof(upper), "%s/upper", top);
	look(upper);
	end_life();
	return failed;
}

/* Compares the final state with the expected one. */
static void check(int n, int n_fds)
{
	for (size_t i = 0; i < found.n || i < expected.n; i++)
		if (i >= found.n || i >= expected.n || strcmp(found.line[i], expected.line[i]) != 0)
			die("allocation %d: the container has '%s', not '%s'", n, i < found.n ? found.line[i] : "",
			    i < expected.n ? expected.line[i] : "");
	if (count_fds() != n_fds)
		die("allocation %d: %d descriptors are left", n, count_fds() - n_fds);
	forget(&found);
}

int main(int argc, char **argv)
{
	int n_fds = count_fds(), n = 1;

	wants_parts = argc == 2 && strcmp(argv[1], "parts") == 0;
	wants_rights = argc == 2 && strcmp(argv[1], "rights") == 0;
	wants_channels = argc == 2 && strcmp(argv[1], "channels") == 0;
	if (!wants_parts && !wants_rights && !wants_channels)
		return 64;
	if (!allocation_share() || !mkdtemp(top) || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("no mount namespace");
	(void)live(0);
	expected = found;
	found.n = 0;
	if (expected.n < 50)
		die("the container has got %zu things only", expected.n);
	for (; live(n); n++)
		check(n, n_fds);
	check(n, n_fds);
	forget(&expected);
	(void)rmdir(top);
	/* Otherwise nothing was wrapped. */
	if (n < 150)
		die("there were %d allocations", n - 1);
	printf("ok 1 - each of %d allocations failed once\n1..1\n", n - 1);
	return 0;
}
