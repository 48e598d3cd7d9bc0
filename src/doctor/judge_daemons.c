/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_daemons: judges the driver's daemons (persistence daemon, fabric manager) and how GPUs are
 * split.
 */
#include <string.h>

#include "doctor/judge_state.h"

static void judge_persistence(struct graft_judge *judge)
{
	const struct graft_health_daemon *daemon = graft_health_find_daemon(judge->health, "nvidia-persistenced");
	bool hidden = judge->health->processes_hidden;

	if (!daemon || !graft_judge_is_native(judge) || !graft_judge_has_kernel_driver(judge))
		return;
	if (judge->health->inventory.simulated && !daemon->running) {
		graft_judge_add(judge, GRAFT_CHECK_PERSISTENCE, GRAFT_LEVEL_OK, daemon->name,
				"is not judged: the driver is simulated");
		return;
	}
	if (daemon->running || (daemon->has_socket && hidden))
		graft_judge_add(judge, GRAFT_CHECK_PERSISTENCE, GRAFT_LEVEL_OK, daemon->name, "is running");
	else if (daemon->has_socket)
		graft_judge_add(judge, GRAFT_CHECK_PERSISTENCE, GRAFT_LEVEL_WARNING, daemon->name,
				"is not running, but its socket %s exists: it has crashed", daemon->socket)
		    ->remedy = "Run 'systemctl restart nvidia-persistenced'.";
	else
		graft_judge_add(judge, GRAFT_CHECK_PERSISTENCE, GRAFT_LEVEL_OK, daemon->name,
				"is not running: the driver initialises an idle GPU again for each program")
		    ->remedy = "Run 'systemctl enable --now nvidia-persistenced'.";
}

static bool has_nvswitch(const struct graft_health *health)
{
	for (size_t i = 0; i < health->kernel.n_pci; i++) {
		if (health->kernel.pci[i].bridge)
			return true;
	}
	return false;
}

static void judge_fabric_manager(struct graft_judge *judge)
{
	const struct graft_health_daemon *daemon = graft_health_find_daemon(judge->health, "nv-fabricmanager");

	if (!daemon || !has_nvswitch(judge->health) || !graft_judge_has_kernel_driver(judge))
		return;
	if (judge->health->inventory.simulated && !daemon->running)
		graft_judge_add(judge, GRAFT_CHECK_FABRIC_MANAGER, GRAFT_LEVEL_OK, daemon->name,
				"is not judged: the driver is simulated");
	else if (daemon->running || (daemon->has_socket && judge->health->processes_hidden))
		graft_judge_add(judge, GRAFT_CHECK_FABRIC_MANAGER, GRAFT_LEVEL_OK, daemon->name, "is running");
	else
		graft_judge_add(
		    judge, GRAFT_CHECK_FABRIC_MANAGER, daemon->has_socket ? GRAFT_LEVEL_WARNING : GRAFT_LEVEL_BROKEN,
		    daemon->name,
		    "is not running%s: on a host with NVSwitches no CUDA program starts without it (error 802, system "
		    "not yet initialized)",
		    daemon->has_socket ? ", but its socket exists" : "")
		    ->remedy = "Install the fabric manager in exactly the driver's version, then run 'systemctl enable "
			       "--now nvidia-fabricmanager'.";
}

static void judge_mig(struct graft_judge *judge)
{
	const struct graft_inventory *inventory = &judge->health->inventory;
	size_t n_enabled = 0, n_devices = 0;
	bool empty = false;

	if (!graft_judge_is_native(judge) || graft_judge_count_gpus(judge) == 0)
		return;
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const struct graft_gpu *gpu = &inventory->gpus[i];

		n_enabled += gpu->mig_enabled || gpu->n_mig_devices > 0;
		n_devices += gpu->n_mig_devices;
		if (gpu->excluded || !gpu->mig_enabled || gpu->n_mig_devices > 0)
			continue;
		empty = true;
		graft_judge_add(judge, GRAFT_CHECK_MIG, GRAFT_LEVEL_WARNING,
				graft_judge_text(judge, "GPU %u", gpu->index),
				"is in MIG mode without instances: nothing can run on it")
		    ->remedy = graft_judge_text(
		    judge,
		    "Create instances with 'nvidia-smi mig -i %u -cgi PROFILE -C' ('-lgip' "
		    "lists the profiles), or leave MIG mode with 'nvidia-smi -i %u -mig 0'.",
		    gpu->index, gpu->index);
	}
	if (n_enabled > 0 && !inventory->caps_devices)
		graft_judge_add(
		    judge, GRAFT_CHECK_MIG, GRAFT_LEVEL_WARNING, "/proc/devices",
		    "has no nvidia-caps: access to MIG devices is through files of procfs (nv_cap_enable_devfs=0), "
		    "which CDI and Kubernetes do not support")
		    ->remedy = "Remove 'nv_cap_enable_devfs=0' from the options of the module nvidia, and reload it.";
	if (empty)
		return;
	if (n_enabled > 0)
		graft_judge_add(judge, GRAFT_CHECK_MIG, GRAFT_LEVEL_OK,
				graft_judge_text(judge, "%zu MIG devices", n_devices), "on %zu GPUs in MIG mode",
				n_enabled);
	else
		graft_judge_add(judge, GRAFT_CHECK_MIG, GRAFT_LEVEL_OK, "MIG", "is not in use");
}

void graft_judge_daemons(struct graft_judge *judge)
{
	judge_persistence(judge);
	judge_fabric_manager(judge);
	judge_mig(judge);
}
