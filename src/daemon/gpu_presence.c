/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_presence: stat(2), and four bytes of configuration space. Draws no conclusions. */
#include "daemon/gpu_presence.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "formats/procfs.h"

#define PCI_DEVICES "/sys/bus/pci/devices"

/*
 * A file of the GPU's PCI device; "" names the device itself. Returns false if the GPU has no such
 * address.
 */
static bool pci_path(const struct graft_gpu *gpu, const char *sys_root, const char *file, char path[PATH_MAX])
{
	struct graft_pci_address at;

	if (!gpu->bus_id || !graft_pci_parse(gpu->bus_id, &at))
		return false;
	return snprintf(path, PATH_MAX, "%s" PCI_DEVICES "/%04x:%02x:%02x.%x%s", sys_root, at.domain, at.bus, at.device,
			at.function, file) < PATH_MAX;
}

static size_t read_first_bytes(const char *path, void *bytes, size_t size)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd >= 0 ? read(fd, bytes, size) : 0;

	return n > 0 ? (size_t)n : 0;
}

/*
 * Reading the configuration space would wake a sleeping GPU. A device that does not answer reads as
 * all ones.
 */
static bool answers(const struct graft_gpu *gpu, const char *sys_root)
{
	static const unsigned char ones[4] = { 0xff, 0xff, 0xff, 0xff };
	char path[PATH_MAX], state[16] = "";
	unsigned char id[4];

	if (!pci_path(gpu, sys_root, "/power/runtime_status", path))
		return true;
	if (read_first_bytes(path, state, sizeof(state) - 1) > 0 && strncmp(state, "active", 6) != 0)
		return true;
	return !pci_path(gpu, sys_root, "/config", path) || read_first_bytes(path, id, sizeof(id)) < sizeof(id) ||
	       memcmp(id, ones, sizeof(id)) != 0;
}

/* The prefix "/" adds nothing to a path. */
static bool host_path(const char *root, const char *at, char path[PATH_MAX])
{
	return at && snprintf(path, PATH_MAX, "%s%s", root && strcmp(root, "/") != 0 ? root : "", at) < PATH_MAX;
}

struct health_place gpu_presence_place(const struct graft_inventory *inventory, const struct graft_gpu *gpu,
				       const char *sys_root)
{
	struct health_place place = { .bound = 0 };
	char path[PATH_MAX];
	struct stat st;

	/* The link itself: the kernel makes it when the driver takes the device. */
	if (pci_path(gpu, sys_root, "/driver", path) && lstat(path, &st) == 0)
		place.bound = st.st_ino;
	if (host_path(inventory->proc_root, gpu->procfs_path, path) && stat(path, &st) == 0)
		place.procfs = st.st_ino;
	return place;
}

struct gpu_presence gpu_presence_look(const struct graft_inventory *inventory, const struct graft_gpu *gpu,
				      const char *sys_root)
{
	struct gpu_presence now = { .place = gpu_presence_place(inventory, gpu, sys_root) };
	char path[PATH_MAX];
	struct stat st;

	now.procfs = now.place.procfs != 0;
	now.pci = pci_path(gpu, sys_root, "", path) && stat(path, &st) == 0 && answers(gpu, sys_root);
	now.node = host_path(inventory->dev_root, gpu->node.path, path) && stat(path, &st) == 0 && S_ISCHR(st.st_mode);
	return now;
}
