/* SPDX-License-Identifier: Apache-2.0 */
/*
 * visible: tries nodes with open(2) and caches nothing, so that a change of the cgroup takes effect
 * at the next initialisation.
 */
#include "visible.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * Volatile and in a section of its own, because the compiler must not assume that the template's
 * empty list of GPUs is final.
 */
__attribute__((section(".graft_sim"), used, aligned(16)))
const volatile struct sim_data sim_data = { .magic = SIM_MAGIC };

enum sim_access sim_access(const char *path, int flags)
{
	int saved = errno, fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
	enum sim_access access_ = SIM_ACCESS_ABSENT;

	if (fd >= 0) {
		(void)close(fd);
		access_ = SIM_ACCESS_YES;
	} else if (errno == ENXIO || errno == ENODEV) {
		access_ = SIM_ACCESS_YES;
	} else if (errno == EPERM) {
		access_ = SIM_ACCESS_REFUSED;
	} else if (errno == EACCES) {
		access_ = SIM_ACCESS_MODE;
	}
	errno = saved;
	return access_;
}

enum sim_access sim_driver_access(void)
{
	if (sim_data.no_nodes)
		return SIM_ACCESS_YES;
	return sim_access(sim_data.wsl ? "/dev/dxg" : "/dev/nvidiactl", O_RDWR);
}

bool sim_versions_agree(void)
{
	char module[32], driver[32];

	(void)sim_copy(module, sizeof(module), sim_data.module_version);
	(void)sim_copy(driver, sizeof(driver), sim_data.driver_version);
	return sim_data.wsl || sim_data.no_nodes || strcmp(module, driver) == 0;
}

bool sim_gpu_visible(uint32_t index)
{
	char path[32];

	if (sim_data.wsl || sim_data.no_nodes)
		return true;
	(void)snprintf(path, sizeof(path), "/dev/nvidia%u", sim_data.gpus[index].minor);
	return sim_access(path, O_RDWR) == SIM_ACCESS_YES;
}

static bool cap_visible(uint32_t minor)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/dev/nvidia-caps/nvidia-cap%u", minor);
	return sim_access(path, O_RDONLY) == SIM_ACCESS_YES;
}

bool sim_mig_visible(uint32_t index, uint32_t mig)
{
	return cap_visible(sim_data.gpus[index].mig[mig].gi_minor) &&
	       cap_visible(sim_data.gpus[index].mig[mig].ci_minor);
}

bool sim_copy(char *to, uint32_t size, const volatile char *from)
{
	uint32_t i = 0;

	if (size == 0)
		return false;
	for (; i + 1 < size && from[i] != '\0'; i++)
		to[i] = from[i];
	to[i] = '\0';
	return from[i] == '\0';
}
