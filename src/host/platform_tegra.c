/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform_tegra: a system on chip with an integrated GPU: no PCI function, no entry in /proc/driver/nvidia/gpus, nodes
 * of its own. A Tegra board with a PCI card is an ordinary host.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "host/catalog.h"
#include "host/survey.h"

#define RELEASE_FILE "/etc/nv_tegra_release"
#define FAMILY_FILE  "/sys/devices/soc0/family"
#define FAMILY       "tegra"
#define NODE_DEPTH   3 /* /dev/nvgpu/igpu0/ctrl */

static bool has_pci_gpu(struct graft_survey *survey)
{
	const char **names;
	size_t n;

	return graft_survey_list(survey, survey->proc, GRAFT_PROC_DRIVER "/gpus", &names, &n) == 0 && n > 0;
}

/* SPEC libnvidia-container 3.10. */
bool graft_survey_is_tegra(struct graft_survey *survey)
{
	bool is_tegra;
	const char *text;
	struct stat st;
	size_t length;

	is_tegra = graft_root_stat(&survey->root, RELEASE_FILE, &st) == 0 && !S_ISDIR(st.st_mode);
	if (!is_tegra)
		is_tegra = graft_survey_read(survey, FAMILY_FILE, &text, &length) == 0 &&
			   strncasecmp(text, FAMILY, strlen(FAMILY)) == 0;
	return is_tegra && !has_pci_gpu(survey);
}

static bool is_known(const char *name)
{
	for (size_t i = 0; i < graft_n_catalog_tegra_nodes; i++) {
		const char *prefix = graft_catalog_tegra_nodes[i].name;
		size_t length = strlen(prefix);

		/* Only a row that ends with '-' or '/' stands for several nodes. */
		if (strncmp(name, prefix, length) == 0 &&
		    (name[length] == '\0' || prefix[length - 1] == '-' || prefix[length - 1] == '/'))
			return true;
	}
	return false;
}

/* Whether something known may lie below the directory "nvgpu". */
static bool is_known_directory(const char *name)
{
	for (size_t i = 0; i < graft_n_catalog_tegra_nodes; i++) {
		const char *slash = strchr(graft_catalog_tegra_nodes[i].name, '/');
		size_t length = slash ? (size_t)(slash - graft_catalog_tegra_nodes[i].name) : 0;

		if (length > 0 && strncmp(graft_catalog_tegra_nodes[i].name, name, length) == 0 &&
		    (name[length] == '\0' || name[length] == '/'))
			return true;
	}
	return false;
}

static void add_node(struct graft_survey *survey, const char *path)
{
	struct graft_inventory *inventory = survey->inventory;
	struct graft_node node = { .path = path, .source = path }, *slot;

	if (graft_survey_node_as_is(survey, &node) < 0)
		return;
	slot = graft_arena_push(survey->arena, &inventory->nodes, &inventory->n_nodes, sizeof(*slot));
	if (slot)
		*slot = node;
	graft_info(survey->log, "listing device %s", path);
}

static void add_below(struct graft_survey *survey, const char *directory, int depth)
{
	const char **names;
	size_t n;

	if (graft_survey_list(survey, survey->dev, directory, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		const char *path = graft_arena_printf(survey->arena, "%s/%s", directory, names[i]);
		const char *name = path ? path + strlen("/dev/") : "";

		if (is_known(name))
			add_node(survey, path);
		if (is_known_directory(name) && depth < NODE_DEPTH)
			add_below(survey, path, depth + 1);
	}
}

void graft_survey_tegra_nodes(struct graft_survey *survey)
{
	add_below(survey, "/dev", 1);
}
