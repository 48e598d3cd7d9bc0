/* SPDX-License-Identifier: Apache-2.0 */
/* kube_label_node: reads the facts from which kube_labels.c makes labels. */
#include <fcntl.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/root.h"
#include "host/discover.h"
#include "kubernetes/kube_facts.h"
#include "kubernetes/kube_labels.h"
#include "kubernetes/kube_tables.h"

#define MACHINE_TYPE_MAX ((size_t)4096)

/* Returns the text, or NULL if it cannot be read. */
static const char *read_machine_type(const char *path, struct graft_arena *arena)
{
	auto_root struct graft_root root = GRAFT_ROOT_INIT;
	struct graft_error why = { .status = GRAFT_OK };
	const char *text;
	size_t length;

	if (path[0] != '/' || graft_root_open(&root, "/", &why) < 0 ||
	    graft_root_read(&root, path, MACHINE_TYPE_MAX, arena, &text, &length) < 0)
		return NULL;
	return text;
}

/* Returns whether the facts are available or not needed; otherwise -1 with the error set. */
static int read_kept_facts(const struct graft_kube_config *config, const struct graft_host_options *options,
			   enum graft_kube_ask ask, struct graft_inventory *inventory, struct graft_arena *arena,
			   struct graft_kept_facts *kept, struct graft_error *err)
{
	struct graft_error why = { .status = GRAFT_OK };

	if (graft_kube_facts(options, NULL, ask, inventory, arena, kept, &why) == 0)
		return 1;
	if (config->flags.fail_on_init_error || why.status == GRAFT_NO_MEMORY) {
		*err = why;
		return -1;
	}
	graft_warn(options->log, "omitting the labels that need NVML: %s", GRAFT_ERROR_TEXT(&why));
	return 0;
}

static int label_inventory(const struct graft_kube_config *config, const struct graft_host_options *options,
			   enum graft_kube_ask ask, struct graft_inventory *inventory,
			   struct graft_kube_label_facts facts, struct graft_arena *arena,
			   struct graft_kube_labels *ret_labels, bool *ret_look_again, struct graft_error *err)
{
	struct graft_kept_facts kept;
	struct graft_pci_tree tree;
	int rc = read_kept_facts(config, options, ask, inventory, arena, &kept, err);

	if (rc < 0 || graft_pci_tree_read("/", inventory, arena, &tree, err) < 0)
		return -1;
	*ret_look_again = rc == 0 || (rc > 0 && graft_kept_wait_s(&kept, graft_clock_ms() / 1000) >= 0);
	for (size_t i = 0; i < inventory->n_gpus; i++)
		*ret_look_again |= inventory->gpus[i].mig_enabled;
	facts.inventory = inventory;
	facts.kept = rc > 0 ? &kept : NULL;
	facts.tree = &tree;
	return graft_kube_labels(config, &facts, options->log, arena, ret_labels, err);
}

int graft_kube_label_node(const struct graft_kube_config *config, int64_t timestamp, enum graft_kube_ask ask,
			  const struct graft_log *log, struct graft_arena *arena, struct graft_kube_labels *ret_labels,
			  bool *ret_look_again, struct graft_error *err)
{
	const struct graft_host_options options = kube_host_options(&config->flags, log);
	const struct graft_kube_label_facts facts = {
		.machine_type = read_machine_type(config->flags.gfd.machine_type_file, arena),
		.timestamp = config->flags.gfd.no_timestamp ? 0 : timestamp,
	};
	struct graft_inventory *inventory = NULL;
	int rc = graft_host_discover(&options, GRAFT_NEED_NODES | GRAFT_NEED_GPUS | GRAFT_NEED_MIG, &inventory, err);

	*ret_look_again = false;
	if (rc == 0)
		rc = label_inventory(config, &options, ask, inventory, facts, arena, ret_labels, ret_look_again, err);
	(void)graft_inventory_free(inventory);
	return rc;
}
