/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_kmods: does what nvidia-modprobe does, on request: loads the driver's modules and makes the
 * nodes that the kernel does not make itself, below the driver root (SPEC libnvidia-container 5).
 * Runs modprobe and nothing else; decides nothing about containers. Uses /proc and /sys of the
 * driver root where they exist, otherwise the host's.
 */
#include "apply/load_kmods.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "apply/device_node.h"
#include "apply/modprobe.h"
#include "apply/temporary.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/listing.h"
#include "base/root.h"
#include "formats/procfs.h"

#define SCRATCH_MAX  ((size_t)16 << 20)
#define FILE_MAX     ((size_t)1 << 20)
#define NVIDIA_MAJOR 195u
#define PARAMS       "/proc/driver/nvidia/params"
#define CAPABILITIES "/proc/driver/nvidia/capabilities"
#define MIG_MINORS   "/proc/driver/nvidia-caps/mig-minors"
#define PCI_DEVICES  "/sys/bus/pci/devices"
#define DEVICES_MAX  ((size_t)1 << 16)
#define PCI_VENDOR   0x10deu
#define PCI_DISPLAY  0x03u

struct kmods {
	const struct graft_kmods_options *options;
	const struct graft_log *log;
	struct graft_arena *arena;
	struct graft_root root; /* the driver root */
	struct graft_root host;
	unsigned int n_functions; /* NVIDIA display functions on the PCI bus */
};

static int read_kmod_file(const struct kmods *kmods, const char *path, const char **ret_text, size_t *ret_length)
{
	int rc = graft_root_read(&kmods->root, path, FILE_MAX, kmods->arena, ret_text, ret_length);

	return rc < 0 ? graft_root_read(&kmods->host, path, FILE_MAX, kmods->arena, ret_text, ret_length) : rc;
}

/* Parses the three numbers of the first line. */
static bool parse_map(const char *text, unsigned long map[3])
{
	for (int i = 0; i < 3; i++) {
		char *end;

		errno = 0;
		map[i] = strtoul(text, &end, 10);
		if (end == text || errno != 0)
			return false;
		text = end;
	}
	return true;
}

/*
 * Whether the caller is in a user namespace, according to its own maps: modules and nodes cannot be
 * made there. Returns -1 if the maps cannot be understood.
 */
static int in_user_namespace(struct kmods *kmods)
{
	static const char *const maps[] = { "/proc/self/uid_map", "/proc/self/gid_map" };
	const char *text;
	size_t length;

	for (size_t i = 0; i < GRAFT_COUNT(maps); i++) {
		unsigned long map[3]; /* first id inside, first id outside, count */
		int rc = graft_root_read(&kmods->host, maps[i], FILE_MAX, kmods->arena, &text, &length);

		if (rc == -ENOENT && i == 0)
			return 0; /* a kernel without user namespaces */
		if (rc < 0) {
			graft_warn(kmods->log, "file read error: %s: %s", maps[i], strerror(-rc));
			return -1;
		}
		if (length == 0)
			return 1;
		if (!parse_map(text, map)) {
			graft_warn(kmods->log, "invalid map file: %s", maps[i]);
			return -1;
		}
		if (map[0] != 0 || map[1] != 0 || map[2] != UINT32_MAX)
			return 1;
	}
	return graft_root_read(&kmods->host, "/proc/self/setgroups", FILE_MAX, kmods->arena, &text, &length) == 0 &&
	       strncmp(text, "deny", 4) == 0;
}

static unsigned long read_bus_number(struct kmods *kmods, const struct graft_root *root, const char *device,
				     const char *name)
{
	const char *path = graft_arena_printf(kmods->arena, PCI_DEVICES "/%s/%s", device, name);
	const char *text;
	size_t length;

	/*
	 * Unlike `config`, these two files are served from memory and do not wake a sleeping GPU.
	 */
	if (!path || graft_root_read(root, path, FILE_MAX, kmods->arena, &text, &length) < 0)
		return 0;
	return strtoul(text, NULL, 16);
}

static unsigned int count_functions(struct kmods *kmods, const struct graft_root *root)
{
	const char **devices;
	unsigned int n_functions = 0;
	size_t n;

	(void)graft_root_list(root, PCI_DEVICES, DEVICES_MAX, kmods->arena, &devices, &n, NULL);
	for (size_t i = 0; i < n; i++)
		n_functions += read_bus_number(kmods, root, devices[i], "vendor") == PCI_VENDOR &&
			       read_bus_number(kmods, root, devices[i], "class") >> 16 == PCI_DISPLAY;
	return n_functions;
}

/* The kernel lists "nvidia-uvm" as "nvidia_uvm". */
static bool is_kmod_loaded(struct kmods *kmods, const char *module)
{
	char name[64];
	const char *text;
	size_t length, name_length;

	(void)snprintf(name, sizeof(name), "%s", module);
	for (char *c = name; *c != '\0'; c++)
		if (*c == '-')
			*c = '_';
	name_length = strlen(name);
	if (read_kmod_file(kmods, "/proc/modules", &text, &length) < 0)
		return false;
	while (*text != '\0') {
		if (strncmp(text, name, name_length) == 0 && text[name_length] == ' ')
			return true;
		text += strcspn(text, "\n");
		text += *text == '\n' ? 1 : 0;
	}
	return false;
}

static bool load_kmod(struct kmods *kmods, const char *module)
{
	const char *path;

	if (is_kmod_loaded(kmods, module))
		return true;
	path = graft_modprobe_find(&kmods->root, &kmods->host, kmods->arena);
	if (kmods->n_functions == 0 || geteuid() != 0 || !path) {
		graft_warn(kmods->log, "could not load kernel module %s: %s", module,
			   kmods->n_functions == 0 ? "the PCI bus has no NVIDIA GPU"
			   : path                  ? "only root can load modules"
						   : "modprobe was not found");
		return false;
	}
	graft_info(kmods->log, "loading kernel module %s", module);
	/* What matters is whether the module is loaded now, not modprobe's exit status. */
	(void)graft_modprobe_run(&kmods->root, path, module, NULL, 0, NULL);
	if (is_kmod_loaded(kmods, module))
		return true;
	graft_warn(kmods->log, "could not load kernel module %s", module);
	return false;
}

static struct graft_node_attributes read_attributes(struct kmods *kmods, const char *path)
{
	static const struct graft_node_attributes usual = GRAFT_NODE_ATTRIBUTES_INIT;
	const char *text;
	size_t length;

	if (!path || read_kmod_file(kmods, path, &text, &length) < 0)
		return usual;
	return graft_node_attributes_parse(text, length, kmods->arena);
}

/* Makes /dev/char/195:0 -> ../nvidia0: runc names the device to systemd by this path. */
static int link_node(const struct kmods *kmods, const char *path, unsigned int major, unsigned int minor)
{
	char name[64], target[PATH_MAX], existing[PATH_MAX];
	auto_close int fd = -1;
	ssize_t length;
	int rc = graft_root_mkdir(&kmods->root, "/dev/char", 0755, NULL, &fd);

	if (rc < 0)
		return rc;
	(void)snprintf(name, sizeof(name), "%u:%u", major, minor);
	(void)snprintf(target, sizeof(target), "../%s", path + strlen("/dev/"));
	length = readlinkat(fd, name, existing, sizeof(existing));
	if (length == (ssize_t)strlen(target) && memcmp(existing, target, (size_t)length) == 0)
		return 0;
	return graft_link_replace(fd, name, target);
}

static bool make_kmod_node(struct kmods *kmods, const char *path, unsigned int major, unsigned int minor,
			   const char *attributes_path)
{
	struct graft_node_attributes attributes = read_attributes(kmods, attributes_path);
	char name[NAME_MAX + 1];
	auto_close int parent_fd = -1;
	int rc;

	if (!path)
		return false;
	if (!attributes.modify) {
		graft_info(kmods->log, "not creating %s: the driver does not let tools create device nodes", path);
		return true;
	}
	rc = graft_root_parent(&kmods->root, path, &parent_fd, name);
	if (rc == 0)
		rc = graft_device_node_put(parent_fd, name, makedev(major, minor), &attributes);
	if (rc == 0)
		rc = link_node(kmods, path, major, minor);
	if (rc == 0)
		return true;
	graft_warn(kmods->log, "could not create kernel module device node %s: %s", path, strerror(-rc));
	return false;
}

static bool make_kmod_directory(struct kmods *kmods, const char *path)
{
	auto_close int fd = -1;
	int rc = graft_root_mkdir(&kmods->root, path, 0755, NULL, &fd);

	if (rc == 0 && (fchmodat(fd, ".", 0755, 0) < 0 || fchownat(fd, ".", 0, 0, 0) < 0))
		rc = -errno;
	if (rc == 0)
		return true;
	graft_warn(kmods->log, "could not create %s: %s", path, strerror(-rc));
	return false;
}

static bool find_kmod_major(struct kmods *kmods, const char *name, uint32_t *ret_major)
{
	const char *text;
	size_t length;

	return read_kmod_file(kmods, "/proc/devices", &text, &length) == 0 &&
	       graft_procfs_devices_major(text, length, name, ret_major);
}

/* Returns the path of the capability's file in procfs. */
static const char *capability_path(struct kmods *kmods, const struct graft_mig_minor *item)
{
	switch (item->kind) {
	case GRAFT_MIG_MINOR_CONFIG:
		return CAPABILITIES "/mig/config";
	case GRAFT_MIG_MINOR_MONITOR:
		return CAPABILITIES "/mig/monitor";
	case GRAFT_MIG_MINOR_GI:
		return graft_arena_printf(kmods->arena, CAPABILITIES "/gpu%d/mig/gi%d/access", item->gpu, item->gi);
	case GRAFT_MIG_MINOR_CI:
		return graft_arena_printf(kmods->arena, CAPABILITIES "/gpu%d/mig/gi%d/ci%d/access", item->gpu, item->gi,
					  item->ci);
	}
	return NULL;
}

static bool has_kmod_file(const struct kmods *kmods, const char *path)
{
	return graft_root_has(&kmods->root, path, 0) || graft_root_has(&kmods->host, path, 0);
}

/* Whether a GPU has MIG instances: procfs has a directory for each that exists. */
static bool has_instances(struct kmods *kmods, int gpu)
{
	const struct graft_root *roots[] = { &kmods->root, &kmods->host };
	const char *path = graft_arena_printf(kmods->arena, CAPABILITIES "/gpu%d/mig", gpu);
	const char **names;
	size_t n = 0;

	for (size_t i = 0; path && n == 0 && i < GRAFT_COUNT(roots); i++)
		(void)graft_root_list(roots[i], path, DEVICES_MAX, kmods->arena, &names, &n, NULL);
	return n > 0;
}

/*
 * The table lists all possible instances of 32 GPUs, GPU by GPU, 135 of each; nodes are made for
 * existing ones. Stops at the first failure.
 */
static void make_mig_nodes(struct kmods *kmods)
{
	struct graft_mig_minor *items;
	const char *text;
	size_t length, n;
	uint32_t major;
	int gpu = -1;
	bool instances = false; /* of gpu */

	if (read_kmod_file(kmods, MIG_MINORS, &text, &length) < 0 ||
	    graft_procfs_mig_minors(text, length, kmods->arena, &items, &n) < 0)
		return;
	if (!find_kmod_major(kmods, "nvidia-caps", &major) || !make_kmod_directory(kmods, "/dev/nvidia-caps"))
		return;
	for (size_t i = 0; i < n; i++) {
		const char *capability, *path;

		if (items[i].gpu >= 0 && (unsigned int)items[i].gpu >= kmods->n_functions)
			continue;
		if (items[i].gpu >= 0 && items[i].gpu != gpu) {
			gpu = items[i].gpu;
			instances = has_instances(kmods, gpu);
		}
		if (items[i].gpu >= 0 && !instances)
			continue;
		capability = capability_path(kmods, &items[i]);
		if (!capability || !has_kmod_file(kmods, capability))
			continue;
		path = graft_arena_printf(kmods->arena, "/dev/nvidia-caps/nvidia-cap%u", items[i].minor);
		if (!make_kmod_node(kmods, path, major, items[i].minor, capability))
			return;
	}
}

static void make_imex_nodes(struct kmods *kmods)
{
	const struct graft_kmods_options *options = kmods->options;
	uint32_t major;

	if (options->no_create_imex_channels || options->n_imex_channels == 0)
		return;
	if (!find_kmod_major(kmods, "nvidia-caps-imex-channels", &major)) {
		graft_warn(kmods->log, "could not mknod for IMEX channels: the driver has no IMEX device");
		return;
	}
	if (!make_kmod_directory(kmods, "/dev/nvidia-caps-imex-channels"))
		return;
	for (size_t i = 0; i < options->n_imex_channels; i++) {
		uint32_t id = options->imex_channels[i];
		const char *path = graft_arena_printf(kmods->arena, "/dev/nvidia-caps-imex-channels/channel%u", id);

		if (!make_kmod_node(kmods, path, major, id, PARAMS))
			graft_warn(kmods->log, "could not mknod for IMEX channel %u", id);
	}
}

static void set_up_nvidia(struct kmods *kmods)
{
	(void)make_kmod_node(kmods, "/dev/nvidiactl", NVIDIA_MAJOR, 255, PARAMS);
	for (unsigned int i = 0; i < kmods->n_functions; i++)
		(void)make_kmod_node(kmods, graft_arena_printf(kmods->arena, "/dev/nvidia%u", i), NVIDIA_MAJOR, i,
				     PARAMS);
	make_mig_nodes(kmods);
	make_imex_nodes(kmods);
}

static void set_up_uvm(struct kmods *kmods)
{
	uint32_t major;

	if (!find_kmod_major(kmods, "nvidia-uvm", &major)) {
		graft_warn(kmods->log, "could not create kernel module device node: no major of nvidia-uvm");
		return;
	}
	(void)make_kmod_node(kmods, "/dev/nvidia-uvm", major, 0, NULL);
	(void)make_kmod_node(kmods, "/dev/nvidia-uvm-tools", major, 1, NULL);
}

static void set_up_modeset(struct kmods *kmods)
{
	(void)make_kmod_node(kmods, "/dev/nvidia-modeset", NVIDIA_MAJOR, 254, PARAMS);
}

static void load_all(struct kmods *kmods)
{
	static const struct {
		const char *module;
		void (*set_up)(struct kmods *kmods);
	} modules[] = {
		{ "nvidia", set_up_nvidia },
		{ "nvidia-uvm", set_up_uvm },
		{ "nvidia-modeset", set_up_modeset },
	};

	if (kmods->options->wsl) {
		graft_warn(kmods->log, "skipping kernel modules load on WSL");
		return;
	}
	if (in_user_namespace(kmods) != 0) {
		graft_warn(kmods->log, "skipping kernel modules load due to user namespace");
		return;
	}
	kmods->n_functions = count_functions(kmods, &kmods->root);
	if (kmods->n_functions == 0)
		kmods->n_functions = count_functions(kmods, &kmods->host);
	if (kmods->n_functions == 0)
		graft_warn(kmods->log, "failed to detect NVIDIA devices");
	for (size_t i = 0; i < GRAFT_COUNT(modules); i++) {
		if (load_kmod(kmods, modules[i].module))
			modules[i].set_up(kmods);
	}
}

void graft_load_kmods(const struct graft_kmods_options *options)
{
	struct kmods kmods = {
		.options = options, .log = options->log, .root = GRAFT_ROOT_INIT, .host = GRAFT_ROOT_INIT
	};
	struct graft_error err;

	kmods.arena = graft_arena_new(SCRATCH_MAX);
	if (!kmods.arena)
		graft_warn(options->log, "kernel modules are not loaded: out of memory");
	else if (graft_root_open(&kmods.root, options->root ? options->root : "/", &err) < 0 ||
		 graft_root_open(&kmods.host, "/", &err) < 0)
		graft_warn(options->log, "kernel modules are not loaded: %s: %s", err.msg, strerror(err.sys));
	else
		load_all(&kmods);
	graft_root_close(&kmods.root);
	graft_root_close(&kmods.host);
	kmods.arena = graft_arena_free(kmods.arena);
}
