/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run: a driver root in a tmpfs, and the places of the host that must show it. Everything happens
 * in a mount namespace of its own. What the machine sees of it are empty directories under /run and
 * /tmp that serve as mount points (traces.h).
 */
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "create_parts.h"
#include "formats/procfs.h"
#include "loader_cache.h"
#include "run_parts.h"
#include "traces.h"

#define TEXT_MAX ((size_t)16 * 1024 * 1024)

int sim_bind(const char *from, const char *to, struct graft_error *err)
{
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return graft_fail_errno(err, errno, "mount operation failed: %s", to);
	return 0;
}

/* Reads one of the host's own files. A missing file is treated as empty. */
static int read_host(const char *path, struct graft_arena *arena, const char **ret_bytes, size_t *ret_length,
		     struct graft_error *err)
{
	auto_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	int rc;

	*ret_bytes = "";
	*ret_length = 0;
	if (fd < 0)
		return errno == ENOENT ? 0 : graft_fail_errno(err, errno, "open failed: %s", path);
	rc = graft_read_fd(fd, TEXT_MAX, arena, ret_bytes, ret_length);
	return rc < 0 ? graft_fail_errno(err, -rc, "file read error: %s", path) : 0;
}

int sim_write_file(const char *path, mode_t mode, struct graft_buffer *take_text, struct graft_error *err)
{
	__attribute__((cleanup(graft_buffer_done))) struct graft_buffer text = *take_text;
	auto_close int fd = -1;
	ssize_t n;

	*take_text = (struct graft_buffer){ .max = 0 };
	if (graft_buffer_failed(&text))
		return graft_fail_memory(err);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
	n = fd >= 0 ? write(fd, graft_buffer_text(&text), text.length) : -1;
	if (n < 0 || (size_t)n != text.length)
		return graft_fail_errno(err, n < 0 ? errno : EIO, "file write failed: %s", path);
	return 0;
}

int sim_make_directory(const char *path, struct graft_error *err)
{
	return mkdir(path, 0755) < 0 && errno != EEXIST ? graft_fail_errno(err, errno, "mkdir failed: %s", path) : 0;
}

/* --- before anything is touched --- */

static int refuse_real_driver(const struct sim_topology *topology, bool force, struct graft_error *err)
{
	const char *text;
	size_t length;

	if (force)
		return 0;
	if (read_host("/proc/driver/nvidia/version", topology->arena, &text, &length, err) < 0)
		return -1;
	/* A simulated host inside a simulated host is allowed. */
	if (length == 0 || memmem(text, length, "Graft simulated driver", strlen("Graft simulated driver")))
		return 0;
	return graft_fail(err, GRAFT_UNSUPPORTED, 0, "a real NVIDIA driver is loaded; --force hides it from COMMAND");
}

static bool is_major_taken(const char *devices, uint32_t major)
{
	char needle[16];
	const char *blocks = strstr(devices, "Block devices:");
	const char *found;

	(void)snprintf(needle, sizeof(needle), "\n%3u ", major);
	found = strstr(devices, needle);
	return found && (!blocks || found < blocks);
}

/*
 * Chooses major numbers that this machine does not use, so that opening a simulated node fails with
 * ENXIO.
 */
static void choose_majors(struct sim_topology *topology, const char *devices)
{
	uint32_t *majors[] = { &topology->majors.uvm,      &topology->majors.caps, &topology->majors.imex,
			       &topology->majors.nvswitch, &topology->majors.fs,   &topology->majors.gdrdrv };
	uint32_t next = 501;

	if (strstr(devices, " nvidia-uvm\n")) /* already a simulated host: no real driver uses its majors */
		return;
	for (size_t i = 0; i < GRAFT_COUNT(majors); i++) {
		while (is_major_taken(devices, *majors[i]) && next > 384)
			*majors[i] = next--;
	}
}

/* --- the stage --- */

static int make_stage(const struct sim_topology *topology, struct sim_traces *traces, struct graft_error *err)
{
	bool nodes_refused;

	if (sim_traces_directory(traces, SIM_STAGE, err) < 0)
		return -1;
	if (mount("graft-sim", SIM_STAGE, "tmpfs", MS_NOSUID, "mode=0755") < 0)
		return graft_fail_errno(err, errno, "mount operation failed: " SIM_STAGE);
	if (sim_create(topology, SIM_STAGE_ROOT, &nodes_refused, err) < 0)
		return -1;
	if (nodes_refused)
		return graft_fail(err, GRAFT_PERMISSION, EPERM, "mknod failed: " SIM_STAGE_ROOT "/dev/nvidiactl");
	return 0;
}

/* --- /proc --- */

static int bind_text(const char *name, struct graft_buffer *take_text, const char *target, struct graft_error *err)
{
	char path[128];

	(void)snprintf(path, sizeof(path), SIM_STAGE "/%s", name);
	return sim_write_file(path, 0644, take_text, err) < 0 ? -1 : sim_bind(path, target, err);
}

/* The driver's lines come first, after the heading; those of a real driver are left out. */
static int replace_devices(const struct sim_topology *topology, const char *devices, struct graft_error *err)
{
	static const char heading[] = "Character devices:\n";
	struct graft_buffer text = { .max = 0 };
	const char *rest = strstr(devices, heading);

	graft_buffer_string(&text, heading);
	sim_proc_devices(topology, &text);
	rest = rest ? rest + strlen(heading) : "";
	while (*rest != '\0') {
		size_t length = strcspn(rest, "\n") + 1;

		if (rest[length - 1] == '\0')
			length--;
		if (!memmem(rest, length, " nvidia", 7))
			graft_buffer_add(&text, rest, length);
		rest += length;
	}
	return bind_text("devices", &text, "/proc/devices", err);
}

static int replace_modules(const struct sim_topology *topology, struct graft_error *err)
{
	struct graft_buffer text = { .max = 0 };
	const char *simulated, *real;
	size_t n_simulated, n_real;

	/* Kernels without modules have no such file, and it cannot be created. */
	if (!topology->module || access("/proc/modules", F_OK) < 0)
		return 0;
	if (read_host(SIM_STAGE_ROOT "/proc/modules", topology->arena, &simulated, &n_simulated, err) < 0 ||
	    read_host("/proc/modules", topology->arena, &real, &n_real, err) < 0)
		return -1;
	graft_buffer_add(&text, simulated, n_simulated);
	graft_buffer_add(&text, real, n_real);
	return bind_text("modules", &text, "/proc/modules", err);
}

static int replace_proc(const struct sim_topology *topology, const char *devices, struct graft_error *err)
{
	if (sim_make_directory(SIM_STAGE_ROOT "/proc/driver", err) < 0 ||
	    sim_bind(SIM_STAGE_ROOT "/proc/driver", "/proc/driver", err) < 0 ||
	    replace_devices(topology, devices, err) < 0)
		return -1;
	return replace_modules(topology, err);
}

/*
 * QUIRK: the kernel lets a user namespace mount proc and sysfs only where whole ones are in view, and
 * parts of /proc and /sys are about to be mounted over. Without these, containers with a user
 * namespace (LXC, Incus, rootless Podman) could not start. Where they cannot be mounted, the same
 * holds for the machine itself.
 */
static void keep_whole_in_view(void)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	if (mkdir(SIM_STAGE "/proc", 0555) == 0)
		(void)mount("proc", SIM_STAGE "/proc", "proc", flags, NULL);
	if (mkdir(SIM_STAGE "/sys", 0555) == 0)
		(void)mount("sysfs", SIM_STAGE "/sys", "sysfs", flags, NULL);
}

/* --- the loader's cache --- */

/*
 * For ldconfig, which COMMAND may run: the driver's directories are read first, wherever they are.
 */
static int add_loader_directories(const struct sim_topology *topology, struct graft_error *err)
{
	struct graft_buffer text = { .max = 0 };
	struct sim_places places;

	sim_places(topology, &places);
	if (sim_make_directory(SIM_STAGE_ROOT "/etc/ld.so.conf.d", err) < 0)
		return -1;
	graft_buffer_printf(&text, "# simulated by Graft\n%s\n%s\n", places.libraries, places.libraries_32);
	return sim_write_file(SIM_STAGE_ROOT "/etc/ld.so.conf.d/00-graft-sim.conf", 0644, &text, err);
}

/* The driver's libraries come before the machine's. */
static int stage_cache(const struct sim_topology *topology, struct graft_error *err)
{
	static const char path[] = SIM_STAGE_ROOT "/etc/ld.so.cache";
	const char *driver, *host;
	size_t n_driver, n_host;
	struct graft_buffer merged = { .max = 0 };

	if (read_host(path, topology->arena, &driver, &n_driver, err) < 0 ||
	    read_host("/etc/ld.so.cache", topology->arena, &host, &n_host, err) < 0)
		return -1;
	(void)unlink(path);
	(void)unlink(SIM_STAGE_ROOT "/etc/ld.so.conf");
	if (n_driver == 0 || n_host == 0)
		return 0;
	/* This writes all or nothing. */
	if (sim_cache_merge(driver, n_driver, host, n_host, topology->arena, &merged) < 0)
		return graft_fail(err, GRAFT_FORMAT, 0, "unsupported file format: /etc/ld.so.cache");
	return sim_write_file(path, 0644, &merged, err) < 0 ? -1 : add_loader_directories(topology, err);
}

/*
 * Packages of Debian ask this program before they start, stop or restart a service, which would be
 * one of the machine's.
 */
static int stage_service_policy(struct graft_error *err)
{
	static const char path[] = SIM_STAGE_ROOT "/usr/sbin/policy-rc.d";
	struct graft_buffer text = { .max = 0 };

	if (access("/usr/sbin/invoke-rc.d", F_OK) < 0 || access("/usr/sbin/policy-rc.d", F_OK) == 0)
		return 0;
	if (sim_make_directory(SIM_STAGE_ROOT "/usr", err) < 0 ||
	    sim_make_directory(SIM_STAGE_ROOT "/usr/sbin", err) < 0)
		return -1;
	graft_buffer_string(&text,
			    "#!/bin/sh\n# simulated by Graft: services of the machine are left alone\nexit 101\n");
	return sim_write_file(path, 0755, &text, err);
}

/* --- the kernel log --- */

/* The caller's file, if it has named one, or a new one. A FIFO without a reader gets nothing. */
static int make_kernel_log(const struct sim_topology *topology, struct graft_error *err)
{
	const char *path = secure_getenv("SIMULATED_KMSG");
	/* The log of a simulated host around this one is no longer visible. */
	bool own = !path || path[0] == '\0' || strcmp(path, SIM_STAGE "/kmsg") == 0;
	auto_close int fd = -1;
	struct graft_buffer text = { .max = 0 };
	ssize_t n;

	sim_fault_log(topology, &text);
	if (graft_buffer_failed(&text))
		return graft_fail_memory(err);
	if (own)
		path = SIM_STAGE "/kmsg";
	fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | (own ? O_CREAT : 0), 0644);
	if (own && fd >= 0)
		(void)fchmod(fd, 0644);
	n = fd >= 0 ? write(fd, graft_buffer_text(&text), text.length) : -1;
	graft_buffer_done(&text);
	if (n < 0 && errno != ENXIO)
		return graft_fail_errno(err, errno, fd < 0 ? "open failed: %s" : "file write failed: %s", path);
	return own && setenv("SIMULATED_KMSG", path, 1) < 0 ? graft_fail_memory(err) : 0;
}

/* --- /run and /tmp --- */

/* Mounts each directory of the stage as a whole or, given `traces`, makes the mount points. */
static int for_entries(const char *directory, struct sim_traces *traces, struct graft_error *err)
{
	char from[512], to[512];
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;

	(void)snprintf(from, sizeof(from), SIM_STAGE_ROOT "%s", directory);
	dir = opendir(from);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(from, sizeof(from), SIM_STAGE_ROOT "%s/%s", directory, entry->d_name);
		(void)snprintf(to, sizeof(to), "%s/%s", directory, entry->d_name);
		/*
		 * An empty /run/udev on the machine would make programs believe that it has udev.
		 */
		if (strcmp(entry->d_name, "udev") == 0 && access(to, F_OK) < 0)
			continue;
		if ((traces ? sim_traces_directory(traces, to, err) : sim_bind(from, to, err)) < 0)
			return -1;
	}
	return 0;
}

static int make_all_traces(const struct sim_topology *topology, struct sim_traces *traces, struct graft_error *err)
{
	if (make_stage(topology, traces, err) < 0 || for_entries("/run", traces, err) < 0)
		return -1;
	return for_entries("/tmp", traces, err);
}

static int replace_all(struct sim_topology *topology, const char *devices, bool overlays, struct graft_error *err)
{
	keep_whole_in_view();
	if (replace_proc(topology, devices, err) < 0 || sim_replace_dev(err) < 0 || stage_cache(topology, err) < 0 ||
	    stage_service_policy(err) < 0 || sim_stage_numa(topology, err) < 0)
		return -1;
	if (sim_cover_system(overlays, err) < 0)
		return -1;
	sim_merge_if_possible("/sys", overlays);
	return for_entries("/run", NULL, err) < 0 ? -1 : for_entries("/tmp", NULL, err);
}

int sim_enter(struct sim_topology *topology, bool force, bool overlays, struct graft_error *err)
{
	char path[4096];
	/* Every user sees what is made for the host; COMMAND gets its own mask. */
	mode_t mask = umask(022);
	/* The path leads elsewhere if its directory, or one above it, is covered by a mount. */
	const char *directory = getcwd(path, sizeof(path));
	struct sim_traces traces;
	const char *devices;
	size_t length;
	int rc;

	if (refuse_real_driver(topology, force, err) < 0)
		return -1;
	if (read_host("/proc/devices", topology->arena, &devices, &length, err) < 0)
		return -1;
	choose_majors(topology, devices);
	if (sim_traces_open(&traces, err) < 0)
		return -1;
	if (unshare(CLONE_NEWNS) < 0)
		return graft_fail_errno(err, errno, "unshare failed");
	/*
	 * Slave: mounts that the machine makes later arrive here, but none of ours reach the
	 * machine.
	 */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return graft_fail_errno(err, errno, "mount operation failed: /");
	rc = make_all_traces(topology, &traces, err);
	sim_traces_guard(&traces, SIM_STAGE);
	if (rc < 0 || make_kernel_log(topology, err) < 0 || replace_all(topology, devices, overlays, err) < 0)
		return -1;
	if (directory && directory[0] == '/' && chdir(directory) < 0 && chdir("/") < 0)
		return graft_fail_errno(err, errno, "chdir failed: /");
	(void)umask(mask);
	return 0;
}
