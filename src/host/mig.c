/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mig: MIG instances and capability nodes, from the driver's capability tree in procfs and its
 * table of minors (SPEC libnvidia-container 6.9). NVML, which alone knows the UUIDs, is not asked;
 * they remain unknown.
 *
 * The file of a capability names its device. The table lists every instance that could exist on 32
 * GPUs (thousands of lines), so it is read only if a file names no device, or if all numbers of a
 * GPU are requested.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/procfs.h"
#include "host/survey.h"

#define CAPS_DEVICE  "nvidia-caps"
#define CAPS_DIR     "/dev/nvidia-caps"
#define CAPS_NAME    "nvidia-cap"
#define CONFIG_PATH  GRAFT_PROC_CAPS "/mig/config"
#define MONITOR_PATH GRAFT_PROC_CAPS "/mig/monitor"

struct minors {
	struct graft_mig_minor *items;
	size_t n;
	bool read;
	uint32_t major;
};

static void read_minors(struct graft_survey *survey, struct minors *minors)
{
	const char *text;
	size_t length;
	int rc;

	if (minors->read)
		return;
	minors->read = true;
	rc = graft_survey_read_proc(survey, GRAFT_PROC_MIG_MINORS, &text, &length);
	if (rc < 0)
		graft_survey_omit(survey, "skipping", GRAFT_PROC_MIG_MINORS, "%s", strerror(-rc));
	else if (graft_procfs_mig_minors(text, length, survey->scratch, &minors->items, &minors->n) < 0)
		minors->n = 0;
}

/* Reads the minor from the text of a capability's file. */
static bool minor_in(struct graft_survey *survey, const char *text, size_t length, uint32_t *ret_minor)
{
	struct graft_key_value *items;
	const char *value;
	size_t n;

	if (graft_procfs_key_values(text, length, survey->scratch, &items, &n) < 0)
		return false;
	value = graft_key_value_find(items, n, "DeviceFileMinor");
	if (!value || !isdigit((unsigned char)value[0]))
		return false;
	*ret_minor = (uint32_t)strtoul(value, NULL, 10);
	return true;
}

static void set_node(struct graft_survey *survey, uint32_t major, uint32_t minor, const char *source,
		     struct graft_node *node)
{
	*node = (struct graft_node){ .path = graft_arena_printf(survey->arena, CAPS_DIR "/" CAPS_NAME "%u", minor),
				     .major = major,
				     .minor = minor,
				     .source = source };
	if (!node->path)
		return;
	if (graft_survey_node(survey, node) == -ENODEV)
		graft_survey_omit_node(survey, node->path, -ENODEV);
}

static bool minor_in_table(struct graft_survey *survey, struct minors *minors, const struct graft_mig_minor *wanted,
			   uint32_t *ret_minor)
{
	read_minors(survey, minors);
	for (size_t i = 0; i < minors->n; i++) {
		const struct graft_mig_minor *item = &minors->items[i];

		if (item->kind == wanted->kind && item->gpu == wanted->gpu && item->gi == wanted->gi &&
		    item->ci == wanted->ci) {
			*ret_minor = item->minor;
			return true;
		}
	}
	return false;
}

/*
 * Examines the capability of an instance. Returns false if it has no access file. The file names
 * the node, or else the table does; it remains empty if the driver has no such nodes.
 */
static bool look_at_capability(struct graft_survey *survey, struct minors *minors, const struct graft_mig_minor *wanted,
			       const char *caps_path, struct graft_node *node)
{
	const char *access = caps_path ? graft_arena_printf(survey->arena, "%s/access", caps_path) : NULL;
	const char *text;
	uint32_t minor;
	size_t length;
	int rc = access ? graft_survey_read_proc(survey, access, &text, &length) : -ENOMEM;

	*node = (struct graft_node){ 0 };
	if (rc < 0) {
		if (access)
			graft_survey_omit(survey, "skipping", access, "%s", strerror(-rc));
		return false;
	}
	if (!survey->inventory->caps_devices)
		return true;
	if (minor_in(survey, text, length, &minor))
		set_node(survey, minors->major, minor, access, node);
	else if (minor_in_table(survey, minors, wanted, &minor))
		set_node(survey, minors->major, minor, GRAFT_PROC_MIG_MINORS, node);
	else
		graft_survey_omit(survey, "missing device", caps_path, "the driver names no capability device for it");
	return true;
}

static void add_instance(struct graft_survey *survey, struct minors *minors, struct graft_gpu *gpu, const char *gi_path,
			 const struct graft_node *gi_node, uint32_t gi, uint32_t ci)
{
	struct graft_mig_minor wanted = { GRAFT_MIG_MINOR_CI, (int)gpu->node.minor, (int)gi, (int)ci, 0 };
	const char *ci_path = graft_arena_printf(survey->arena, "%s/ci%u", gi_path, ci);
	struct graft_mig_device *mig;
	struct graft_node ci_node;

	if (!look_at_capability(survey, minors, &wanted, ci_path, &ci_node))
		return;
	mig = graft_arena_push(survey->arena, &gpu->mig_devices, &gpu->n_mig_devices, sizeof(*mig));
	if (!mig)
		return;
	mig->index = (uint32_t)gpu->n_mig_devices - 1;
	mig->gi = gi;
	mig->ci = ci;
	mig->gi_caps_path = gi_path;
	mig->ci_caps_path = ci_path;
	mig->gi_node = *gi_node;
	mig->ci_node = ci_node;
	mig->source = ci_path;
}

static void read_instances(struct graft_survey *survey, struct minors *minors, struct graft_gpu *gpu)
{
	const char *mig_path = graft_arena_printf(survey->scratch, "%s/mig", gpu->mig_caps_path);
	size_t n_gis = 0, n_cis;
	uint32_t *gis = NULL, *cis;
	struct stat st;

	/* procfs counts directories in the links of their parent; other file systems may report 1. */
	if (!mig_path || ((fstatat(survey->proc->fd, mig_path + 1, &st, 0) < 0 || st.st_nlink != 2) &&
			  graft_survey_list_numbers(survey, survey->proc, mig_path, "gi", &gis, &n_gis) < 0))
		return;
	/*
	 * QUIRK: the driver makes the directory for every GPU that it attaches; only an instance
	 * proves that the GPU has MIG.
	 */
	gpu->mig_capable = gpu->mig_enabled = n_gis > 0;
	survey->mig_undecided |= n_gis == 0;
	for (size_t i = 0; i < n_gis; i++) {
		struct graft_mig_minor wanted = { GRAFT_MIG_MINOR_GI, (int)gpu->node.minor, (int)gis[i], -1, 0 };
		const char *gi_path = graft_arena_printf(survey->arena, "%s/gi%u", mig_path, gis[i]);
		struct graft_node gi_node;

		if (graft_survey_list_numbers(survey, survey->proc, gi_path, "ci", &cis, &n_cis) < 0 || n_cis == 0 ||
		    !look_at_capability(survey, minors, &wanted, gi_path, &gi_node))
			continue;
		for (size_t j = 0; j < n_cis; j++)
			add_instance(survey, minors, gpu, gi_path, &gi_node, gis[i], cis[j]);
	}
}

static void read_caps_nodes(struct graft_survey *survey, struct minors *minors)
{
	struct graft_inventory *inventory = survey->inventory;
	uint32_t *present;
	size_t n_present;

	/* Nodes that do not exist, of which there are thousands, need no system calls. */
	(void)graft_survey_list_numbers(survey, survey->dev, CAPS_DIR, CAPS_NAME, &present, &n_present);
	read_minors(survey, minors);
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		struct graft_gpu *gpu = &inventory->gpus[i];

		for (size_t j = 0; j < minors->n && !gpu->excluded; j++) {
			const struct graft_mig_minor *item = &minors->items[j];
			struct graft_node *node;

			if (item->gpu < 0 || (uint32_t)item->gpu != gpu->node.minor)
				continue;
			node = graft_arena_push(survey->arena, &gpu->caps_nodes, &gpu->n_caps_nodes, sizeof(*node));
			if (!node)
				return;
			node->path = graft_arena_printf(survey->arena, CAPS_DIR "/" CAPS_NAME "%u", item->minor);
			node->major = minors->major;
			node->minor = item->minor;
			node->source = GRAFT_PROC_MIG_MINORS;
			if (node->path && graft_survey_has_number(present, n_present, item->minor))
				(void)graft_survey_node(survey, node);
		}
	}
}

static void read_global_node(struct graft_survey *survey, const struct minors *minors, const char *path,
			     struct graft_node *node)
{
	const char *text;
	uint32_t minor;
	size_t length;

	if (graft_survey_read_proc(survey, path, &text, &length) == 0 && minor_in(survey, text, length, &minor))
		set_node(survey, minors->major, minor, path, node);
}

void graft_survey_mig(struct graft_survey *survey)
{
	struct graft_inventory *inventory = survey->inventory;
	struct minors minors = { 0 };

	if (inventory->caps_devices && !graft_survey_major(survey, CAPS_DEVICE, &minors.major))
		return;
	for (size_t i = 0; i < inventory->n_gpus; i++) {
		if (!inventory->gpus[i].excluded && inventory->gpus[i].mig_caps_path)
			read_instances(survey, &minors, &inventory->gpus[i]);
	}
	if (!(survey->needs & GRAFT_NEED_MIG_CAPS) || !inventory->caps_devices)
		return;
	read_caps_nodes(survey, &minors);
	read_global_node(survey, &minors, CONFIG_PATH, &inventory->mig_config_node);
	read_global_node(survey, &minors, MONITOR_PATH, &inventory->mig_monitor_node);
}
