/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_nodes: the device nodes that containers need, and the links /dev/char/MAJOR:MINOR by which
 * systemd knows them. They are examined, but never opened: opening one wakes a GPU.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "doctor/look.h"

#define CONTROL_MINOR 255u
#define MODESET_MINOR 254u

static bool is_known_node(const struct graft_health *health, const char *path)
{
	for (size_t i = 0; i < health->n_nodes; i++) {
		if (strcmp(health->nodes[i].path, path) == 0)
			return true;
	}
	return false;
}

static void look_at_dev_char(struct graft_health_look *look, struct graft_health_node *node)
{
	const char *path = graft_arena_printf(look->scratch, "/dev/char/%u:%u", node->major, node->minor);
	struct stat st;

	if (!path)
		return;
	node->char_link = graft_health_read_link(look, path);
	node->link_leads_here = node->char_link && graft_root_stat(look->host, path, &st) == 0 && S_ISCHR(st.st_mode) &&
				major(st.st_rdev) == node->major && minor(st.st_rdev) == node->minor;
}

static void look_at_health_node(struct graft_health_look *look, struct graft_health_node *node)
{
	struct stat st;

	if (look->survey.dev_fd < 0 ||
	    fstatat(look->survey.dev_fd, node->path + strlen("/dev/"), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	node->present = true;
	node->device = S_ISCHR(st.st_mode);
	node->mode = st.st_mode & 07777;
	node->uid = st.st_uid;
	node->gid = st.st_gid;
	if (!node->device)
		return;
	node->major = major(st.st_rdev);
	node->minor = minor(st.st_rdev);
	look_at_dev_char(look, node);
}

static struct graft_health_node *add_health_node(struct graft_health_look *look, const char *path, bool required)
{
	struct graft_health *health = look->health;
	struct graft_health_node *node;

	if (!path || is_known_node(health, path))
		return NULL;
	node = graft_arena_push(look->arena, &health->nodes, &health->n_nodes, sizeof(*node));
	if (!node)
		return NULL;
	node->path = graft_arena_strdup(look->arena, path);
	if (!node->path) {
		health->n_nodes--;
		return NULL;
	}
	node->required = required;
	look_at_health_node(look, node);
	return node;
}

static void expect(struct graft_health_node *node, bool known, uint32_t major, uint32_t minor)
{
	if (!node)
		return;
	node->has_numbers = known;
	node->want_major = major;
	node->want_minor = minor;
}

/* Adds a node of a driver whose major number was assigned when it was loaded. */
static void add_by_name(struct graft_health_look *look, const char *path, const char *name, uint32_t minor,
			bool required)
{
	uint32_t major = 0;
	bool known = graft_survey_major(&look->survey, name, &major);

	expect(add_health_node(look, path, required), known, major, minor);
}

static void add_survey_node(struct graft_health_look *look, const struct graft_node *node, bool required)
{
	if (node->path)
		expect(add_health_node(look, node->path, required), true, node->major, node->minor);
}

static void add_gpu_nodes(struct graft_health_look *look)
{
	const struct graft_inventory *inventory = look->survey.inventory;

	for (size_t i = 0; i < inventory->n_gpus; i++) {
		const struct graft_gpu *gpu = &inventory->gpus[i];

		if (gpu->excluded)
			continue;
		add_survey_node(look, &gpu->node, true);
		for (size_t k = 0; k < gpu->n_mig_devices; k++) {
			add_survey_node(look, &gpu->mig_devices[k].gi_node, true);
			add_survey_node(look, &gpu->mig_devices[k].ci_node, true);
		}
	}
}

void graft_health_look_nodes(struct graft_health_look *look)
{
	const struct graft_inventory *inventory = look->survey.inventory;

	if (inventory->platform != GRAFT_PLATFORM_NATIVE) {
		for (size_t i = 0; i < inventory->n_nodes; i++)
			(void)add_health_node(look, inventory->nodes[i].path, true);
		return;
	}
	if (!look->survey.module_loaded)
		return;
	expect(add_health_node(look, "/dev/nvidiactl", true), true, GRAFT_NVIDIA_MAJOR, CONTROL_MINOR);
	add_by_name(look, "/dev/nvidia-uvm", "nvidia-uvm", 0, true);
	add_by_name(look, "/dev/nvidia-uvm-tools", "nvidia-uvm", 1, false);
	expect(add_health_node(look, "/dev/nvidia-modeset", false), true, GRAFT_NVIDIA_MAJOR, MODESET_MINOR);
	add_gpu_nodes(look);
}
