/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_nodes: judges the device nodes: whether they exist, have the right numbers, can be opened
 * by every user, and are known to systemd.
 */
#include <string.h>

#include "base/strings.h"
#include "doctor/judge_state.h"

#define ALL_READ       0444u
#define ALL_WRITE      0222u
#define ALL_READ_WRITE (ALL_READ | ALL_WRITE)

static const char remedy_make[] = "Run 'nvidia-smi' once as root, or 'nvidia-modprobe -c N -u' with the number N of "
				  "each GPU; nvidia-persistenced does it "
				  "at every boot.";

static bool is_capability(const struct graft_health_node *node)
{
	return graft_starts_with(node->path, "/dev/nvidia-caps/");
}

static const char *remedy_for(const struct graft_health_node *node)
{
	if (is_capability(node))
		return "Run 'nvidia-smi -L' once as root, or 'nvidia-modprobe -f FILE' for each file 'access' below "
		       "/proc/driver/nvidia/capabilities.";
	if (strcmp(node->path, "/dev/nvidiactl") == 0 || graft_starts_with(node->path, "/dev/nvidia-"))
		return "Run 'nvidia-ctk system create-device-nodes --control-devices --load-kernel-modules'.";
	return remedy_make;
}

/* Without the module its node cannot exist either; report only the module. */
static bool is_of_absent_module(const struct graft_judge *judge, const struct graft_health_node *node)
{
	const struct graft_health_module *uvm = graft_health_find_module(judge->health, "nvidia_uvm");

	return uvm && !uvm->loaded && graft_starts_with(node->path, "/dev/nvidia-uvm");
}

/* Returns whether the node is as it should be. */
static bool judge_node(struct graft_judge *judge, const struct graft_health_node *node)
{
	if (!node->present && is_of_absent_module(judge, node))
		return true;
	if (!node->present) {
		if (node->required)
			graft_judge_add(judge, GRAFT_CHECK_DEVICE_NODES, GRAFT_LEVEL_BROKEN, node->path,
					"does not exist")
			    ->remedy = remedy_for(node);
		return !node->required;
	}
	if (!node->device) {
		graft_judge_add(
		    judge, GRAFT_CHECK_DEVICE_NODES, GRAFT_LEVEL_BROKEN, node->path,
		    "is not a character device: a container engine created a file or directory of that name "
		    "before the driver was loaded")
		    ->remedy = graft_judge_text(judge, "Run 'rm -r %s'. %s", node->path, remedy_for(node));
		return false;
	}
	if (node->has_numbers && (node->major != node->want_major || node->minor != node->want_minor)) {
		graft_judge_add(
		    judge, GRAFT_CHECK_DEVICE_NODES, GRAFT_LEVEL_BROKEN, node->path,
		    "is device %u:%u, but the driver now uses %u:%u: the node was made for a driver that was "
		    "loaded earlier",
		    node->major, node->minor, node->want_major, node->want_minor)
		    ->remedy = graft_judge_text(judge, "Run 'rm %s'. %s", node->path, remedy_for(node));
		return false;
	}
	return true;
}

static void judge_node_presence(struct graft_judge *judge)
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
				"exist, with the driver's numbers");
}

/* --- modes --- */

/* A capability node is a right in itself: it is only opened for reading. */
static bool is_for_all(const struct graft_health_node *node)
{
	uint32_t wanted = is_capability(node) ? ALL_READ : ALL_READ_WRITE;

	return (node->mode & wanted) == wanted;
}

static const char *remedy_for_modes(struct graft_judge *judge)
{
	const struct graft_health_kernel *kernel = &judge->health->kernel;

	if (kernel->has_file_mode && (kernel->file_mode & ALL_READ_WRITE) != ALL_READ_WRITE)
		return "Write 'options nvidia NVreg_DeviceFileMode=0666' into /etc/modprobe.d/nvidia.conf and reload "
		       "the "
		       "module; until then, run 'chmod 0666 /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm*'. To "
		       "keep the mode, run containers with the "
		       "group, "
		       "and 'nvidia-ctk config --in-place --set nvidia-container-cli.user=root:video'.";
	return "Run 'chmod 0666 /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm*', and find the udev rule that sets "
	       "another mode: 'grep -r nvidia "
	       "/etc/udev/rules.d /usr/lib/udev/rules.d'.";
}

/*
 * Gives one finding for all nodes, since the mode is set for all of them at once. A permission
 * failure of NVML proves that some user is shut out.
 */
static void judge_modes(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	bool shut_out = health->nvml.status && strcmp(health->nvml.status, "PERMISSION") == 0;
	const struct graft_health_node *first = NULL;
	size_t n = 0, there = 0;

	/* Tegra's nodes belong to the group video, which containers get. */
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
		    "insufficient permissions: mode %04o, owner %u:%u%s: other users cannot open it, in containers "
		    "either",
		    first->mode, first->uid, first->gid, n > 1 ? ", as other nodes" : "")
		    ->remedy = remedy_for_modes(judge);
	else if (there > 0)
		graft_judge_add(judge, GRAFT_CHECK_DEVICE_MODES, GRAFT_LEVEL_OK,
				graft_judge_text(judge, "%zu node%s", there, there == 1 ? "" : "s"),
				"every user can open them");
}

/* --- links --- */

/*
 * Our runtime and hook make the links that are missing. An engine that reads CDI specs calls runc
 * without them, and runc leaves out what systemd cannot find; crun names no device to systemd.
 */
static bool runs_runc(const struct graft_judge *judge, const struct graft_health_engine *engine)
{
	if (engine->default_runtime)
		return strcmp(engine->default_runtime, "runc") == 0;
	return engine->kind != GRAFT_ENGINE_PODMAN || !graft_judge_find_program(judge, "crun");
}

static const struct graft_health_engine *find_engine_that_needs_links(const struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;

	for (size_t i = 0; i < health->n_engines; i++) {
		if (graft_judge_cdi_of(judge, &health->engines[i]).state == GRAFT_CDI_WORKS &&
		    runs_runc(judge, &health->engines[i]))
			return &health->engines[i];
	}
	return NULL;
}

static void judge_links(struct graft_judge *judge)
{
	const struct graft_health *health = judge->health;
	const struct graft_health_node *first = NULL;
	const struct graft_health_engine *engine;
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
	engine = find_engine_that_needs_links(judge);
	graft_judge_add(
	    judge, GRAFT_CHECK_DEV_CHAR_LINKS, engine ? GRAFT_LEVEL_WARNING : GRAFT_LEVEL_OK,
	    graft_judge_text(judge, "/dev/char/%u:%u", first->major, first->minor), "%s %s%s: %s%s%s",
	    first->char_link ? "does not lead to" : "does not exist for", first->path,
	    n > 1 ? ", and links for other nodes are missing too" : "",
	    engine ? "containers that get GPUs through CDI (" : "the toolkit creates it when a container starts",
	    engine ? engine->name : "",
	    engine ? ") lose them at the next 'systemctl daemon-reload' (Failed to initialize NVML: Unknown "
		     "Error)"
		   : "")
	    ->remedy = "Run 'nvidia-ctk system create-dev-char-symlinks --create-all' now and at every boot.";
}

void graft_judge_nodes(struct graft_judge *judge)
{
	if (judge->health->n_nodes == 0)
		return;
	judge_node_presence(judge);
	judge_modes(judge);
	judge_links(judge);
}
