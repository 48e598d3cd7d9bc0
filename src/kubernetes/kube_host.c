/* SPDX-License-Identifier: Apache-2.0 */
/* kube_host: where this node's driver is, and how to read it. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "host/discover.h"
#include "kubernetes/kube_facts.h"
#include "kubernetes/kube_tables.h"

/* A hung GPU must not block the program that reports it. */
#define NVML_TIMEOUT_MS 30000

static bool is_host_directory(const char *path)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_error err = { .status = GRAFT_OK };

	return graft_root_open(&root, path, &err) == 0;
}

const char *graft_kube_driver_root(const struct graft_kube_flags *flags)
{
	if (is_host_directory(flags->plugin.container_driver_root))
		return flags->plugin.container_driver_root;
	return is_host_directory(flags->driver_root) ? flags->driver_root : "/";
}

struct graft_host_options kube_host_options(const struct graft_kube_flags *flags, const struct graft_log *log)
{
	return (struct graft_host_options){ .root = graft_kube_driver_root(flags),
					    .nvml_uid = (uid_t)-1,
					    .nvml_gid = (gid_t)-1,
					    .nvml_timeout_ms = NVML_TIMEOUT_MS,
					    .capabilities = GRAFT_CAP_UTILITY,
					    .log = log };
}

bool graft_kube_is_simulated(const struct graft_kube_flags *flags)
{
	const struct graft_host_options options = kube_host_options(flags, NULL);
	struct graft_inventory *inventory = NULL;
	struct graft_error err = { .status = GRAFT_OK };
	char text[512] = "";
	auto_close int fd = open("/proc/driver/nvidia/version", O_RDONLY | O_CLOEXEC);
	bool simulated = fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strstr(text, GRAFT_SIMULATED_MARK) != NULL;

	if (simulated)
		return true;
	/* Boards and WSL2 have no such file. */
	simulated = graft_host_discover(&options, 0, &inventory, &err) == 0 && inventory->simulated;
	(void)graft_inventory_free(inventory);
	return simulated;
}

int graft_kube_watch_nvml(const struct graft_kube_flags *flags, const struct graft_log *log,
			  const struct graft_inventory *inventory, struct graft_nvml_watch *ret_watch,
			  struct graft_error *err)
{
	const struct graft_host_options options = kube_host_options(flags, log);

	return graft_nvml_watch_begin(&options, inventory, ret_watch, err);
}
