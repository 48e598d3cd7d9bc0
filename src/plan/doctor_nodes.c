/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_nodes: judges the device nodes: there, with the right numbers, to be opened by everybody, known to systemd. */
#include <string.h>

#include "plan/doctor_judge.h"

#define ALL_READ       0444u
#define ALL_WRITE      0222u
#define ALL_READ_WRITE (ALL_READ | ALL_WRITE)

static const char remedy_make[] =
    "Run 'nvidia-modprobe -c 0 -u' for each GPU's number in place of 0, or 'nvidia-smi' once as root; at boot, enable "
    "nvidia-persistenced, which does it.";

static bool is_capability(const struct graft_health_node *node)
{
	return strncmp(node->path, "/dev/nvidia-caps/", strlen("/dev/nvidia-caps/")) == 0;
}

static const char *remedy_for(const struct graft_health_node *node)
{
	if (is_capability(node))
		return "Run 'nvidia-smi -L' once as root, or 'nvidia-modprobe -f' with each file 'access' below "
		       "/proc/driver/nvidia/capabilities.";
	if (strcmp(node->path, "/dev/nvidiactl") == 0 ||
	    strncmp(node->path, "/dev/nvidia-", strlen("/dev/nvidia-")) == 0)
		return "Run 'nvidia-ctk system create-device-nodes --control-devices --load-kernel-modules'.";
	return remedy_make;
}

/* True when the node is as it should be. */
static bool judge_node(struct graft_judge *judge, const struct graft_health_node *node)
{
	if (!node->present) {
		if (node->required)
			graft_judge_add(judge, GRAFT_CHECK_DEVICE_NODES, GRAFT_LEVEL_BROKEN, node->path, "is not there")
			    ->remedy = remedy_for(node);
		return !node->required;
	}
	if (!node->device) {
		graft_judge_add(judge, GRAFT_CHECK_DEVICE_NODES, GRAFT_LEVEL_BROKEN, node->path,
				"is no character device: a container engine made a file or directory of that name "
				"before the driver was loaded")
		    ->remedy = graft_judge_text(judge, "Run 'rm -r %s'. %s", node->path, remedy_for(node));
		return false;
	}
	if (node->has_numbers && (node->major != node->want_major || node->minor != node->want_minor)) {
		graft_judge_add(judge, GRAFT_CHECK_DEVICE_NODES, GRAFT_LEVEL_BROKEN, node->path,
				"is device %u:%u, the driver's is %u:%u: it was made for a driver that was loaded "
				"before",
				node->major, node->minor, node->want_major, node->want_minor)
		    ->remedy = graft_judge_text(judge, "Run 'rm %s'. %s", node->path, remedy_for(node));
		return false;
	}
	return true;
}

static void judge_presence(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	size_t good = 0, there = 0;

	for (size_t i = 0; i < health->n_nodes; i++) {
		good += judge_node(judge, &health->nodes[i]);
		there += health->nodes[i].present;
	}
	if (good == health->n_nodes)
		graft_judge_add(judge, GRAFT_CHECK_DEVICE_NODES, GRAFT_LEVEL_OK,
				graft_judge_text(judge, "%zu node%s", there, there == 1 ? "" : "s"),
				"with the driver's numbers");
}

/* --- modes --- */

/* A capability node is a right by itself: it is opened for reading alone. */
static bool is_for_all(const struct graft_health_node *node)
{
	uint32_t wanted = is_capability(node) ? ALL_READ : ALL_READ_WRITE;

	return (node->mode & wanted) == wanted;
}

static const char *remedy_for_modes(struct graft_judge *judge)
{
	const struct graft_health_kernel *kernel = &judge->health->kernel;

	if (kernel->has_file_mode && (kernel->file_mode & ALL_READ_WRITE) != ALL_READ_WRITE)
		return "Set 'options nvidia NVreg_DeviceFileMode=0666' in /etc/modprobe.d/nvidia.conf and reload the "
		       "module; until then 'chmod 0666 /dev/nvidia*'. Or keep the mode, and let containers' users be "
		       "in "
		       "the group, and NVML run with it: 'nvidia-ctk config --in-place --set "
		       "nvidia-container-cli.user=root:video'.";
	return "Run 'chmod 0666 /dev/nvidia*', and see which udev rule sets another mode: 'grep -r nvidia "
	       "/etc/udev/rules.d /usr/lib/udev/rules.d'.";
}

/* One finding for all of them: a mode is set for all nodes at once. NVML's word makes it certain that somebody is shut out. */
static void judge_modes(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	bool shut_out = health->nvml.status && strcmp(health->nvml.status, "PERMISSION") == 0;
	const struct graft_health_node *first = NULL;
	size_t n = 0, there = 0;

	/* Tegra's nodes are for the group video, which containers get. */
	if (health->inventory.platform == GRAFT_PLATFORM_TEGRA)
		return;
	for (size_t i = 0; i < health->n_nodes; i++) {
		const struct graft_health_node *node = &health->nodes[i];

		if (!node->device || !node->required)
			continue;
		there++;
		if (is_for_all(node))
			continue;
		first = first ? first : node;
		n++;
	}
	if (first)
		graft_judge_add(
		    judge, GRAFT_CHECK_DEVICE_MODES, shut_out ? GRAFT_LEVEL_BROKEN : GRAFT_LEVEL_WARNING, first->path,
		    "insufficient permissions: mode %04o, owner %u:%u%s: only those users and groups can use "
		    "it, also in containers",
		    first->mode, first->uid, first->gid, n > 1 ? ", and other nodes likewise" : "")
		    ->remedy = remedy_for_modes(judge);
	else if (there > 0)
		graft_judge_add(judge, GRAFT_CHECK_DEVICE_MODES, GRAFT_LEVEL_OK,
				graft_judge_text(judge, "%zu node%s", there, there == 1 ? "" : "s"),
				"every user may open them");
}

/* --- links --- */

static void judge_links(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	const struct graft_health_node *first = NULL;
	size_t n = 0, there = 0;

	for (size_t i = 0; i < health->n_nodes; i++) {
		const struct graft_health_node *node = &health->nodes[i];

		there += node->device;
		if (!node->device || node->link_leads_here)
			continue;
		first = first ? first : node;
		n++;
	}
	if (there == 0)
		return;
	if (!first) {
		graft_judge_add(judge, GRAFT_CHECK_DEV_CHAR_LINKS, GRAFT_LEVEL_OK, "/dev/char",
				"has a link for each of %zu nodes", there);
		return;
	}
	if (!health->kernel.systemd) {
		graft_judge_add(judge, GRAFT_CHECK_DEV_CHAR_LINKS, GRAFT_LEVEL_OK, "/dev/char",
				"lacks links, which only systemd needs; this host runs without it");
		return;
	}
	graft_judge_add(judge, GRAFT_CHECK_DEV_CHAR_LINKS, GRAFT_LEVEL_WARNING,
			graft_judge_text(judge, "/dev/char/%u:%u", first->major, first->minor),
			"%s %s%s: running containers lose their GPUs at the next 'systemctl daemon-reload' (Failed to "
			"initialize NVML: Unknown Error)",
			first->char_link ? "leads elsewhere than to" : "is not there for", first->path,
			n > 1 ? ", and for other nodes likewise" : "")
	    ->remedy = "Run 'nvidia-ctk system create-dev-char-symlinks --create-all', and have a udev rule run it at "
		       "boot (docs/systemd.md).";
}

void graft_judge_nodes(struct graft_judge *judge)
{
	if (judge->health->n_nodes == 0)
		return;
	judge_presence(judge);
	judge_modes(judge);
	judge_links(judge);
}
