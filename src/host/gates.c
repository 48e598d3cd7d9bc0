/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gates: device nodes and files, other than GPUs, that a container requests one by one (SPEC
 * runtime-and-hook 7.10): GPUDirect Storage, InfiniBand, GDRCopy, NVSwitches. A host without them
 * is not an error.
 */
#include <errno.h>
#include <string.h>

#include "host/catalog.h"
#include "host/survey.h"

static void add_gate_node(struct graft_survey *survey, enum graft_gate gate, const char *path)
{
	struct graft_inventory *inventory = survey->inventory;
	struct graft_node node = { .path = path, .source = path };
	struct graft_gate_node *slot;

	for (size_t i = 0; path && i < inventory->n_gate_nodes; i++) {
		if (strcmp(inventory->gate_nodes[i].node.path, path) == 0)
			return;
	}
	if (!path || graft_survey_node_as_is(survey, &node) < 0)
		return;
	slot = graft_arena_push(survey->arena, &inventory->gate_nodes, &inventory->n_gate_nodes, sizeof(*slot));
	if (slot)
		*slot = (struct graft_gate_node){ gate, node };
	graft_info(survey->log, "listing device %s", path);
}

static void look_for_nodes(struct graft_survey *survey, const struct graft_catalog_gate_node *row)
{
	const char **names;
	size_t n;

	if (graft_survey_list(survey, survey->dev, row->directory, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		bool matches = row->prefix ? strncmp(names[i], row->name, strlen(row->name)) == 0
					   : strcmp(names[i], row->name) == 0;

		if (matches)
			add_gate_node(survey, row->gate,
				      graft_arena_printf(survey->arena, "%s/%s", row->directory, names[i]));
	}
}

static bool has_gate_node(const struct graft_inventory *inventory, enum graft_gate gate)
{
	for (size_t i = 0; i < inventory->n_gate_nodes; i++) {
		if (inventory->gate_nodes[i].gate == gate)
			return true;
	}
	return false;
}

static void look_for_file(struct graft_survey *survey, const struct graft_catalog_gate_file *row)
{
	struct graft_inventory *inventory = survey->inventory;
	struct graft_gate_file *slot;
	const char *path;
	struct stat st;
	int rc = graft_lookup_path(&survey->lookup, row->path, &path, &st);

	if (rc == 0 && S_ISDIR(st.st_mode) != row->directory)
		rc = row->directory ? -ENOTDIR : -EISDIR;
	if (rc < 0) {
		graft_survey_omit(survey, "missing file", row->path, "%s", strerror(-rc));
		return;
	}
	slot = graft_arena_push(survey->arena, &inventory->gate_files, &inventory->n_gate_files, sizeof(*slot));
	if (!slot)
		return;
	slot->gate = row->gate;
	slot->path = path;
	slot->target = strcmp(path, row->path) != 0 ? row->path : NULL;
	slot->directory = row->directory;
	graft_info(survey->log, "selecting %s", path);
}

void graft_survey_gates(struct graft_survey *survey)
{
	uint32_t gates = survey->options->gates;

	for (size_t i = 0; i < graft_n_catalog_gate_nodes; i++) {
		if ((gates & 1u << graft_catalog_gate_nodes[i].gate) != 0)
			look_for_nodes(survey, &graft_catalog_gate_nodes[i]);
	}
	for (size_t i = 0; i < graft_n_catalog_gate_files; i++) {
		const struct graft_catalog_gate_file *row = &graft_catalog_gate_files[i];

		if ((gates & 1u << row->gate) != 0 && has_gate_node(survey->inventory, row->gate))
			look_for_file(survey, row);
	}
	for (unsigned int i = 0; i < GRAFT_GATE_MAX; i++) {
		if ((gates & 1u << i) != 0 && !has_gate_node(survey->inventory, (enum graft_gate)i))
			graft_survey_omit(survey, "missing device", graft_gate_names[i],
					  "the host has no device node for it");
	}
}
