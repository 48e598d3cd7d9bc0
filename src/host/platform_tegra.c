/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform_tegra: a system on chip with an integrated GPU, which has no PCI function, no entry in
 * /proc/driver/nvidia/gpus, and nodes of its own. A Tegra board with a PCI card is an ordinary
 * host.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/catalog.h"
#include "host/platform.h"
#include "host/survey.h"

#define NODE_DEPTH 3 /* /dev/nvgpu/igpu0/ctrl */

static bool has_pci_gpu(struct graft_survey *survey)
{
	const char **names;
	size_t n;

	return graft_survey_list(survey, survey->proc, GRAFT_PROC_DRIVER "/gpus", &names, &n) == 0 && n > 0;
}

/* SPEC libnvidia-container 3.10. */
bool graft_survey_is_tegra(struct graft_survey *survey)
{
	const struct graft_root *host = survey->host.fd >= 0 ? &survey->host : NULL;

	return graft_platform_has_tegra_files(&survey->root, host, survey->scratch) && !has_pci_gpu(survey);
}

static bool is_tegra_node_name(const char *name)
{
	for (size_t i = 0; i < graft_n_catalog_tegra_nodes; i++) {
		const char *prefix = graft_catalog_tegra_nodes[i].name;
		size_t length = strlen(prefix);

		/* Only a row that ends in '-' or '/' matches more than one node. */
		if (strncmp(name, prefix, length) == 0 &&
		    (name[length] == '\0' || prefix[length - 1] == '-' || prefix[length - 1] == '/'))
			return true;
	}
	return false;
}

/* Returns whether a directory, such as "nvgpu", can contain a known node. */
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

static void add_below(struct graft_survey *survey, const char *directory, int depth)
{
	struct graft_inventory *inventory = survey->inventory;
	const char **names;
	size_t n;

	if (graft_survey_list(survey, survey->dev, directory, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		const char *path = graft_arena_printf(survey->arena, "%s/%s", directory, names[i]);
		const char *name = path ? path + strlen("/dev/") : "";

		if (is_tegra_node_name(name))
			graft_survey_add_node(survey, path, &inventory->nodes, &inventory->n_nodes);
		if (is_known_directory(name) && depth < NODE_DEPTH)
			add_below(survey, path, depth + 1);
	}
}

void graft_survey_tegra_nodes(struct graft_survey *survey)
{
	add_below(survey, "/dev", 1);
}
